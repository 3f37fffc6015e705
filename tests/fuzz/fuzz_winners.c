/* SPDX-License-Identifier: MIT
 * Fuzz target of tables of winners: reads the bytes as a table of "d" and "s", also with a head in front that fits;
 * what was read is written and must read back the same, capped by each policy. */
#include <rung/tune.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tune/winners.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static rung_host *the_host(void) {
  static rung_host *host;
  if (!host && rung_host_create(NULL, NULL, &host)) abort();
  return host;
}

static rung_winner_list read(const char *text, size_t length) {
  rung_winner_list list = {.host = the_host()};
  rung_error error;
  if (rung_winners_read(&list, text, length, "d", "s", &error)) abort();
  for (size_t i = 1; i < list.rows; i++)
    if (list.row[i - 1].bucket >= list.row[i].bucket) abort();
  return list;
}

/* A candidate that was read is in the space of its own type and width just when the space lists it. */
static void look_up(const rung_winner *row) {
  static rung_candidate all[RUNG_CANDIDATES];
  const rung_candidate_space space = {row->candidate.kv, row->candidate.head, 32, true, 512, 64, 64};
  const size_t n = rung_candidates(&space, all, RUNG_CANDIDATES);
  bool listed = false;
  for (size_t i = 0; i < n; i++) listed = listed || rung_candidate_equal(&all[i], &row->candidate);
  if (listed != rung_candidate_in(&space, &row->candidate)) abort();
  const uint16_t bucket = rung_tune_bucket(row->bucket);
  if (bucket < RUNG_TUNE_BUCKETS - 1 && row->bucket > rung_tune_bucket_rows(bucket)) abort();
  if (rung_default_stages(row->bucket, row->tick) == 1 && row->bucket <= 8) abort();
}

static void check(const char *text, size_t length) {
  rung_winner_list list = read(text, length);
  rung_text out;
  rung_text_init(&out, the_host());
  rung_winners_write(&list, "d", "s", &out);
  if (rung_text_status(&out, NULL)) abort();
  rung_winner_list again = read(out.data, out.length);
  rung_text_finish(&out);
  if (list.rows) look_up(&list.row[0]);
  if (again.rows != list.rows || again.clock > list.clock) abort();
  for (size_t i = 0; i < list.rows; i++)
    if (again.row[i].bucket != list.row[i].bucket || again.row[i].tick != list.row[i].tick ||
        !rung_candidate_equal(&again.row[i].candidate, &list.row[i].candidate))
      abort();
  rung_winners_trim(&list, 3, (rung_tune_eviction)(length % 3));
  if (list.rows > 3) abort();
  rung_winner_list_finish(&list);
  rung_winner_list_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char head[] = "# device\td\n# signature\ts\n";
  const size_t n = sizeof head - 1;
  char *text = malloc(size + n);
  if (!text) return 0;
  memcpy(text, head, n);
  if (size) memcpy(text + n, data, size);
  check(text + n, size);
  check(text, n + size);
  free(text);
  return 0;
}
