/* SPDX-License-Identifier: MIT
 * rung cache: what is in a store of compiles, and keeping it small and whole. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "commands.h"
#include "json.h"

typedef struct sum {
  bool json;
  uint64_t entries, bytes, damaged;
} sum;

static void show(void *self, const rung_store_entry *e) {
  sum *all = self;
  const bool damaged = strcmp(e->kind, "damaged") == 0;
  all->entries++;
  all->bytes += e->bytes;
  all->damaged += damaged;
  const time_t used = (time_t)(e->used_ns / 1000000000);
  struct tm parts;
  char when[32] = "";
  if (gmtime_r(&used, &parts)) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (!all->json) {
    printf("%-9s %12" PRIu64 "  %s  %s%s%s\n", e->kind, e->bytes, when, e->name, damaged || e->device[0] ? "  " : "",
           damaged ? e->problem : e->device);
    return;
  }
  cli_json json = cli_json_begin(stdout);
  cli_json_string(&json, "name", e->name);
  cli_json_string(&json, "kind", e->kind);
  cli_json_bytes(&json, "bytes", e->bytes);
  cli_json_string(&json, "used", when);
  cli_json_string(&json, "device", e->device);
  if (damaged) cli_json_string(&json, "problem", e->problem);
  cli_json_end(&json);
}

static int list(cli_session *s) {
  sum all = {.json = s->options->json};
  const rung_status status = rung_store_list(s->store, false, show, &all, &s->error);
  if (status) return cli_fail(s, CLI_ON_RUN, status, NULL);
  cli_note(s, "%" PRIu64 " entries, %" PRIu64 " bytes", all.entries, all.bytes);
  return CLI_OK;
}

static int report(const cli_session *s, rung_status status, uint64_t removed) {
  if (status) return cli_fail(s, CLI_ON_RUN, status, NULL);
  if (s->options->json) {
    cli_json json = cli_json_begin(stdout);
    cli_json_bytes(&json, "removed", removed);
    cli_json_end(&json);
  }
  cli_note(s, "%" PRIu64 " entries removed", removed);
  return CLI_OK;
}

int cli_cache(cli_session *s) {
  static const char *const actions[] = {"list", "verify", "trim", "clear"};
  const char *action = s->options->action;
  uint64_t removed = 0;
  if (!action) return cli_refuse(s, CLI_USAGE, "say what to do: list, verify, trim or clear");
  cli_nearest nearest = cli_nearest_begin(action);
  int found = -1;
  for (int i = 0; i < 4; i++) {
    if (strcmp(actions[i], action) == 0) found = i;
    cli_nearest_offer(&nearest, actions[i]);
  }
  if (found < 0 && nearest.best)
    return cli_refuse(s, CLI_USAGE, "there is no \"%s\"; did you mean %s?", action, nearest.best);
  if (found < 0) return cli_refuse(s, CLI_USAGE, "there is no \"%s\", but list, verify, trim and clear", action);
  if (!s->store) return cli_refuse(s, CLI_USAGE, "which folder? Give --dir DIR, or set RUNG_STORE");
  if ((found == 2) != (s->options->most != 0))
    return cli_refuse(s, CLI_USAGE, found == 2 ? "trim needs --max BYTES" : "--max is for trim");
  if (found == 0) return list(s);
  const rung_status status = found == 1 ? rung_store_verify(s->store, &s->error, &removed)
                                        : rung_store_trim(s->store, s->options->most, &s->error, &removed);
  return report(s, status, removed);
}
