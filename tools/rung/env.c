/* SPDX-License-Identifier: MIT
 * rung env: what this machine has and what of it is used. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "backends/cpu/isa.h"
#include "base/pool.h"
#include "commands.h"
#include "json.h"

extern char **environ;

static const struct {
  const char *name, *doc;
  bool there;
} libraries[] = {
    {"jansson", "JSON in tests", RUNG_HAVE_JANSSON},
    {"pcre2", "byte-level BPE tokenisers", RUNG_HAVE_PCRE2},
    {"utf8proc", "Unicode normalisation", RUNG_HAVE_UTF8PROC},
};

typedef struct facts {
  const char *detected, *used;
  int threads, usable;
  long online;
  uint64_t memory, budget;
  char device[2][64];
} facts;

static int find_out(cli_session *s, facts *f) {
  f->used = rung_isa_name(rung_isa_detect());
  const char *cap = getenv("RUNG_MAX_ISA");
  char *kept = cap ? strdup(cap) : NULL;
  (void)unsetenv("RUNG_MAX_ISA"); /* what would be used without the cap */
  f->detected = rung_isa_name(rung_isa_detect());
  if (kept) (void)setenv("RUNG_MAX_ISA", kept, 1);
  free(kept);
  f->threads = rung_device_threads(s->device);
  f->usable = rung_pool_default_threads(NULL);
  f->online = sysconf(_SC_NPROCESSORS_ONLN);
  f->memory = rung_memory_limit(NULL);
  f->budget = rung_host_budget(s->host);
  for (int d = CLI_DEVICE_CPU; d <= CLI_DEVICE_REF; d++) {
    rung_device *device;
    const rung_status status = cli_device_open(s, d, &device);
    if (status) return cli_fail(s, CLI_ON_FLAGS, status, NULL);
    snprintf(f->device[d], sizeof f->device[d], "%s", rung_device_name(device));
    rung_device_release(device);
  }
  return CLI_OK;
}

static void print_json(const facts *f) {
  cli_json j = cli_json_begin(stdout);
  cli_json_string(&j, "version", RUNG_VERSION_TEXT);
  cli_json_string(&j, "isa_detected", f->detected);
  cli_json_string(&j, "isa_used", f->used);
  cli_json_integer(&j, "threads", f->threads);
  cli_json_integer(&j, "threads_usable", f->usable);
  cli_json_integer(&j, "processors_online", f->online);
  cli_json_bytes(&j, "memory_limit_bytes", f->memory);
  cli_json_bytes(&j, "memory_budget_bytes", f->budget);
  cli_json_open(&j, "devices", '[');
  for (int d = 0; d < 2; d++) cli_json_string(&j, NULL, f->device[d]);
  cli_json_close(&j, ']');
  cli_json_open(&j, "libraries", '{');
  for (size_t i = 0; i < RUNG_COUNT(libraries); i++) cli_json_bool(&j, libraries[i].name, libraries[i].there);
  cli_json_close(&j, '}');
  cli_json_open(&j, "variables", '{');
  for (int i = 0; i < cli_variable_count; i++)
    cli_json_string(&j, cli_variables[i].name, getenv(cli_variables[i].name));
  cli_json_close(&j, '}');
  cli_json_end(&j);
}

static void print_text(const facts *f) {
  printf("version            %s\n", RUNG_VERSION_TEXT);
  printf("instruction sets   %s used, %s detected\n", f->used, f->detected);
  printf("threads            %d (%ld processors online, %d of them usable under affinity and quota)\n", f->threads,
         f->online, f->usable);
  printf("memory             limit %.2f GB, budget %.2f GB\n", (double)f->memory * 1e-9, (double)f->budget * 1e-9);
  printf("devices            %s, %s\n", f->device[0], f->device[1]);
  for (size_t i = 0; i < RUNG_COUNT(libraries); i++)
    printf("%-18s %-10s %s (%s)\n", i ? "" : "libraries", libraries[i].name, libraries[i].there ? "there" : "not there",
           libraries[i].doc);
  for (int i = 0; i < cli_variable_count; i++) {
    const char *value = getenv(cli_variables[i].name);
    printf("%-18s %s%s%s (%s)\n", i ? "" : "variables", cli_variables[i].name, value ? "=" : " is not set",
           value ? value : "", cli_variables[i].doc);
  }
}

/* A misspelt variable does nothing, silently; here it is said. */
static void warn_unknown(const cli_session *s) {
  for (char **entry = environ; *entry; entry++) {
    const size_t n = strcspn(*entry, "=");
    char name[64];
    if (strncmp(*entry, "RUNG_", 5) != 0 || n >= sizeof name) continue;
    snprintf(name, sizeof name, "%.*s", (int)n, *entry);
    bool known = false;
    cli_nearest nearest = cli_nearest_begin(name);
    for (int i = 0; i < cli_variable_count; i++) {
      known = known || strcmp(cli_variables[i].name, name) == 0;
      cli_nearest_offer(&nearest, cli_variables[i].name);
    }
    if (known) continue;
    if (nearest.best && nearest.distance <= 2)
      cli_note(s, "warning: %s is not read; did you mean %s?", name, nearest.best);
    else
      cli_note(s, "note: %s is not read by this command", name);
  }
}

static void warn_values(const cli_session *s) {
  static const char *const levels[] = {"base", "avx2", "avx512", "neon"};
  const char *cap = getenv("RUNG_MAX_ISA");
  bool known = !cap || !*cap;
  for (size_t i = 0; !known && i < RUNG_COUNT(levels); i++) known = strcmp(levels[i], cap) == 0;
  if (!known) cli_note(s, "warning: RUNG_MAX_ISA=%s is no level (base, avx2, avx512, neon): it caps nothing", cap);
}

int cli_env(cli_session *s) {
  facts f = {0};
  const int code = find_out(s, &f);
  if (code) return code;
  if (s->options->json)
    print_json(&f);
  else
    print_text(&f);
  warn_unknown(s);
  warn_values(s);
  return CLI_OK;
}
