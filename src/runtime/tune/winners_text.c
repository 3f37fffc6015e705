/* SPDX-License-Identifier: MIT
 * Tables of winners as text, and what goes when a table is too large. */
#include <inttypes.h>
#include <string.h>

#include "base/sort.h"
#include "runtime/tune/winners.h"

enum { BUCKETS = 1 << 16 }; /* that 16 bits can name */

void rung_winner_list_finish(rung_winner_list *list) {
  rung_host_free(list->host, RUNG_MEMORY_host, list->row, list->room * sizeof *list->row);
  *list = (rung_winner_list){.host = list->host};
}

/* ---- trimming */

static bool by_bucket(const void *self, const void *a, const void *b) {
  (void)self;
  return ((const rung_winner *)a)->bucket < ((const rung_winner *)b)->bucket;
}

/* Does a stay longer than b? */
static bool by_worth(const void *eviction_, const void *a_, const void *b_) {
  const rung_tune_eviction eviction = *(const rung_tune_eviction *)eviction_;
  const rung_winner *a = a_, *b = b_;
  if (eviction == RUNG_TUNE_LRU && a->tick != b->tick) return a->tick > b->tick;
  return eviction == RUNG_TUNE_KEEP_LOW ? a->bucket < b->bucket : a->bucket > b->bucket;
}

void rung_winners_trim(rung_winner_list *list, size_t cap, rung_tune_eviction eviction) {
  if (list->rows <= cap) return;
  rung_sort(list->row, list->rows, sizeof *list->row, by_worth, &eviction);
  list->rows = cap;
  rung_sort(list->row, list->rows, sizeof *list->row, by_bucket, NULL);
}

/* ---- reading */

typedef struct span {
  const char *at, *end;
} span;

/* What stands in front of `stop`, which is passed over. */
static span take_until(span *from, char stop) {
  const char *found = from->at < from->end ? memchr(from->at, stop, (size_t)(from->end - from->at)) : NULL;
  const span taken = {from->at, found ? found : from->end};
  from->at = found ? found + 1 : from->end;
  return taken;
}

static bool is_text(span s, const char *text) {
  return (size_t)(s.end - s.at) == strlen(text) && memcmp(s.at, text, (size_t)(s.end - s.at)) == 0;
}

/* All of it, digits only, up to `most`. */
static bool read_number(span s, int64_t most, int64_t *out) {
  const char *rest;
  return s.at < s.end && *s.at >= '0' && *s.at <= '9' && rung_parse_i64(s.at, s.end, out, &rest) && rest == s.end &&
         *out <= most;
}

/* Line by line; `index` has the place of each bucket's row, counted from 1. */
static rung_status read_row(rung_winner_list *list, span line, uint32_t *index, rung_error *error) {
  rung_winner row = {.tick = 0};
  int64_t bucket;
  const span first = take_until(&line, '\t'), tag = take_until(&line, '\t'), tick = take_until(&line, '\t');
  if (!read_number(first, BUCKETS - 1, &bucket) || tag.at == tag.end ||
      rung_candidate_parse(tag.at, (size_t)(tag.end - tag.at), NULL, &row.candidate))
    return RUNG_OK;
  row.bucket = (uint16_t)bucket;
  if (!read_number(tick, INT64_MAX, &row.tick)) row.tick = 0;
  if (row.tick > list->clock) list->clock = row.tick;
  if (!index[bucket]) {
    void *array = list->row;
    const bool grown = rung_host_grow(list->host, &array, &list->room, list->rows + 1, sizeof row);
    list->row = array;
    if (!grown) return rung_fail(error, RUNG_OUT_OF_MEMORY, "winners: no memory for a row of the table");
    index[bucket] = (uint32_t)++list->rows;
  }
  list->row[index[bucket] - 1] = row;
  return RUNG_OK;
}

/* "# name<TAB>value": does it say who the table is for, and is that us? */
static void read_header(span line, const char *name, const char *wanted, bool *same) {
  line.at += 2;
  if (is_text(take_until(&line, '\t'), name)) *same = is_text(line, wanted);
}

static span next_line(span *rest) {
  span line = take_until(rest, '\n');
  if (line.end > line.at && line.end[-1] == '\r') line.end--;
  return line;
}

rung_status rung_winners_read(rung_winner_list *list, const char *text, size_t length, const char *device,
                              const char *signature, rung_error *error) {
  bool our_device = false, our_signature = false;
  const span all = {text, text + length};
  for (span rest = all; rest.at < rest.end;) {
    const span line = next_line(&rest);
    if (line.end - line.at < 2 || line.at[0] != '#' || line.at[1] != ' ') continue;
    read_header(line, "device", device, &our_device);
    read_header(line, "signature", signature, &our_signature);
  }
  list->rows = 0;
  if (!our_device || !our_signature) return RUNG_OK;
  uint32_t *index = rung_host_array(list->host, BUCKETS, sizeof *index);
  if (!index) return rung_fail(error, RUNG_OUT_OF_MEMORY, "winners: no memory to read the table");
  rung_status status = RUNG_OK;
  for (span rest = all; rest.at < rest.end && !status;) {
    const span line = next_line(&rest);
    if (line.at < line.end && line.at[0] != '#') status = read_row(list, line, index, error);
  }
  rung_host_free(list->host, RUNG_MEMORY_host, index, BUCKETS * sizeof *index);
  if (list->rows) rung_sort(list->row, list->rows, sizeof *list->row, by_bucket, NULL);
  return status;
}

/* ---- writing */

void rung_winners_write(const rung_winner_list *list, const char *device, const char *signature, rung_text *out) {
  rung_text_puts(out, "# rung winners 1\n# columns\tbucket\ttag\ttick\n");
  rung_text_printf(out, "# device\t%s\n# signature\t%s\n", device, signature);
  for (size_t i = 0; i < list->rows; i++) {
    char tag[RUNG_CANDIDATE_TAG];
    rung_candidate_print(&list->row[i].candidate, tag);
    rung_text_printf(out, "%u\t%s\t%" PRId64 "\n", list->row[i].bucket, tag, list->row[i].tick);
  }
}
