/* SPDX-License-Identifier: MIT
 * The table of winners of one kernel on one device: for each bucket of sizes the candidate that was best.
 *
 * Bounded: what is too much goes by the policy. Every row has a tick, of a clock that counts look-ups that hit and
 * records. In a file:
 *
 *   # rung winners 1
 *   # columns<TAB>bucket<TAB>tag<TAB>tick
 *   # device<TAB>...
 *   # signature<TAB>...
 *   bucket<TAB>tag<TAB>tick          sorted by bucket
 *
 * Files are read once, before the first look-up or record, and written whole, by rename: a process that reads one finds
 * all of what some process wrote. Of two that write, the later one's table stays. Safe from many threads. */
#ifndef RUNG_RUNTIME_TUNE_WINNERS_H
#define RUNG_RUNTIME_TUNE_WINNERS_H

#include <rung/tune.h>

#include "base/pool.h"
#include "base/text.h"
#include "target/candidate.h"

enum { RUNG_WINNERS = 256 }; /* that a table may have unless somebody says otherwise */

typedef struct rung_winner {
  rung_candidate candidate;
  uint16_t bucket;
  int64_t tick;
} rung_winner;

typedef struct rung_winners_options {
  const char *device, *signature; /* lines without tabs */
  const char *path;               /* of the file; NULL: none. The folders above it are made */
  bool load, save;
  uint32_t entries, most; /* caps of the policy and of the device: the smaller holds, each at least 1 */
  rung_tune_eviction eviction;
} rung_winners_options;

typedef struct rung_winners rung_winners;
/* All texts are copied. */
rung_status rung_winners_create(rung_host *host, const rung_winners_options *options, rung_error *error,
                                rung_winners **out_winners);
void rung_winners_destroy(rung_winners *winners); /* NULL allowed */

/* A hit renews the row's tick. Fails as reading the file can; a file that is not there is an empty table. */
rung_status rung_winners_find(rung_winners *winners, uint16_t bucket, rung_error *error, bool *out_found,
                              rung_candidate *out);
/* The same candidate as before: renews the tick and writes nothing. Another one is put in, the table trimmed, the file
 * written; *out_changed (may be NULL). If writing fails the table has it all the same. */
rung_status rung_winners_record(rung_winners *winners, uint16_t bucket, const rung_candidate *candidate,
                                rung_error *error, bool *out_changed);
rung_status rung_winners_save(rung_winners *winners, rung_error *error);

/* What is there now, sorted by bucket: copies at most `most` rows, returns how many there are. Renews nothing, reads no
 * file. */
size_t rung_winners_list(rung_winners *winners, rung_winner *out, size_t most);
int64_t rung_winners_clock(rung_winners *winners); /* the largest tick seen */

/* ---- the text (winners_text.c), for a table that nobody else sees yet */
typedef struct rung_winner_list {
  rung_host *host;
  rung_winner *row;
  size_t rows, room;
  int64_t clock;
} rung_winner_list;
void rung_winner_list_finish(rung_winner_list *list);
/* Rows of the text, sorted; none if it is another device's or another signature's. Fails without memory only. */
rung_status rung_winners_read(rung_winner_list *list, const char *text, size_t length, const char *device,
                              const char *signature, rung_error *error);
void rung_winners_write(const rung_winner_list *list, const char *device, const char *signature, rung_text *out);
/* Drops rows until `cap` are left. */
void rung_winners_trim(rung_winner_list *list, size_t cap, rung_tune_eviction eviction);

#endif
