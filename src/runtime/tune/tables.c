/* SPDX-License-Identifier: MIT
 * A device's tables of winners, found by signature; files are named by a hash of device and signature. */
#include "runtime/tune/tables.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/path.h"

typedef struct table {
  struct table *next;
  rung_winners *winners;
  char signature[RUNG_TUNE_TEXT];
} table;

struct rung_tables {
  rung_host *host;
  rung_tune_policy policy; /* folder: behind the struct, or NULL */
  uint32_t most;
  char device[RUNG_TUNE_TEXT];
  rung_winner_source source;
  size_t bytes;
  rung_mutex lock; /* of what follows; tables are only ever added */
  table *first;
  bool warned;
};

/* ---- looking up */

static rung_status find(void *self, const char *signature, int64_t rows, rung_error *error, bool *out_found,
                        rung_candidate *out) {
  rung_tables *t = self;
  rung_error why = {RUNG_OK, ""};
  rung_winners *winners;
  *out_found = false;
  if (t->policy.profile == RUNG_TUNE_DETERMINISTIC) return RUNG_OK;
  rung_status status = rung_tables_get(t, signature, &why, &winners);
  if (!status) status = rung_winners_find(winners, rung_tune_bucket(rows), &why, out_found, out);
  if (!status) return RUNG_OK;
  *out_found = false;
  if (status == RUNG_OUT_OF_MEMORY) return rung_fail(error, status, "%s", why.message);
  rung_mutex_lock(&t->lock);
  const bool say = !t->warned;
  t->warned = true;
  rung_mutex_unlock(&t->lock);
  if (say) rung_host_log(t->host, RUNG_LOG_WARNING, "winners cannot be read: %s", why.message);
  return RUNG_OK;
}

const rung_winner_source *rung_tables_source(const rung_tables *t) { return &t->source; }
const rung_tune_policy *rung_tables_policy(const rung_tables *t) { return &t->policy; }

/* ---- tables */

static rung_status make_table(rung_tables *t, const char *signature, rung_error *error, table **out) {
  char path[RUNG_PATH_BYTES], name[48], digits[33], both[2 * RUNG_TUNE_TEXT];
  const int length = snprintf(both, sizeof both, "%s\n%s", t->device, signature);
  rung_hash_hex(rung_hash_bytes(both, (size_t)length), digits);
  snprintf(name, sizeof name, "%s.winners", digits);
  if (t->policy.folder) RUNG_TRY(rung_path_join(t->policy.folder, name, error, path));
  table *made = rung_host_array(t->host, 1, sizeof *made);
  if (!made) return rung_fail(error, RUNG_OUT_OF_MEMORY, "winners: no memory for a table");
  const rung_winners_options o = {.device = t->device,
                                  .signature = signature,
                                  .path = t->policy.folder ? path : NULL,
                                  .load = t->policy.load,
                                  .save = t->policy.save,
                                  .entries = t->policy.entries,
                                  .most = t->most,
                                  .eviction = t->policy.eviction};
  const rung_status status = rung_winners_create(t->host, &o, error, &made->winners);
  if (status) {
    rung_host_free(t->host, RUNG_MEMORY_host, made, sizeof *made);
    return status;
  }
  snprintf(made->signature, sizeof made->signature, "%s", signature);
  *out = made;
  return RUNG_OK;
}

static rung_status get_table(rung_tables *t, const char *signature, rung_error *error, rung_winners **out) {
  table **at = &t->first;
  for (; *at; at = &(*at)->next)
    if (strcmp((*at)->signature, signature) == 0) break;
  if (!*at) RUNG_TRY(make_table(t, signature, error, at));
  *out = (*at)->winners;
  return RUNG_OK;
}

rung_status rung_tables_get(rung_tables *t, const char *signature, rung_error *error, rung_winners **out_winners) {
  if (strlen(signature) >= RUNG_TUNE_TEXT)
    return rung_fail(error, RUNG_OVERFLOW, "winners: a signature has more than %d bytes", RUNG_TUNE_TEXT - 1);
  rung_mutex_lock(&t->lock);
  const rung_status status = get_table(t, signature, error, out_winners);
  rung_mutex_unlock(&t->lock);
  return status;
}

bool rung_tables_at(rung_tables *t, size_t index, const char **out_signature, rung_winners **out_winners) {
  rung_mutex_lock(&t->lock);
  const table *at = t->first;
  for (; at && index; index--) at = at->next;
  rung_mutex_unlock(&t->lock);
  if (!at) return false;
  *out_signature = at->signature;
  *out_winners = at->winners;
  return true;
}

/* ---- all of them */

rung_status rung_tables_create(rung_host *host, const rung_tune_policy *policy, uint32_t most, const char *device,
                               rung_error *error, rung_tables **out_tables) {
  const size_t folder = policy->folder ? strlen(policy->folder) + 1 : 0, bytes = sizeof(rung_tables) + folder;
  rung_tables *t = rung_host_alloc(host, RUNG_MEMORY_host, bytes, 0);
  if (!t) return rung_fail(error, RUNG_OUT_OF_MEMORY, "winners: out of memory");
  if (!rung_mutex_init(&t->lock)) {
    rung_host_free(host, RUNG_MEMORY_host, t, bytes);
    return rung_fail(error, RUNG_SYSTEM, "winners: a lock could not be made");
  }
  rung_host_retain(host);
  t->host = host;
  t->policy = *policy;
  t->most = most;
  t->bytes = bytes;
  t->source = (rung_winner_source){.self = t, .find = find};
  snprintf(t->device, sizeof t->device, "%s", device);
  if (folder) t->policy.folder = memcpy(t + 1, policy->folder, folder);
  *out_tables = t;
  return RUNG_OK;
}

void rung_tables_destroy(rung_tables *t) {
  if (!t) return;
  rung_host *host = t->host;
  while (t->first) {
    table *next = t->first->next;
    rung_winners_destroy(t->first->winners);
    rung_host_free(host, RUNG_MEMORY_host, t->first, sizeof *t->first);
    t->first = next;
  }
  rung_mutex_finish(&t->lock);
  rung_host_free(host, RUNG_MEMORY_host, t, t->bytes);
  rung_host_release(host);
}
