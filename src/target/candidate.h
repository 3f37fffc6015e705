/* SPDX-License-Identifier: MIT
 * Ways to do decode attention: what a tuner chooses among. Numbers only; a backend says which of them its kernels have,
 * and what each means there.
 *
 * A candidate's tag is "splits=16,keys=256,kv=f16,head=128,stages=2", with "tile=" and "padding=" where they are not 1.
 * Tags stand in files, so fields keep their names and meanings. */
#ifndef RUNG_TARGET_CANDIDATE_H
#define RUNG_TARGET_CANDIDATE_H

#include <rung/tensor.h>

#include "base/host.h"

enum {
  RUNG_CANDIDATE_SPLITS = 32, /* most */
  RUNG_CANDIDATE_HEAD = 512,
  RUNG_CANDIDATE_TILE = 64, /* most, of tile and padding */
  RUNG_CANDIDATE_TAG = 96,  /* bytes of the longest tag, with its end */
  RUNG_CANDIDATES = 1029    /* there are never more: (1 + 5 splits * 4 groups) * 7 tiles * 7 paddings */
};

typedef struct rung_candidate {
  uint16_t splits; /* shares that the keys of a row are cut into: a power of two, 1..32 */
  uint16_t keys;   /* 64, 128, 256 or 512: so many keys are one group, which is never cut */
  /* Of the kernel's inner loop and of its rows in shared memory, 1.. in the kernel's own units. */
  uint16_t tile, padding;
  uint16_t head;  /* numbers of a key: 1..512 */
  uint8_t kv;     /* rung_type of keys and values: f32, f16, bf16 or q8_0 */
  uint8_t stages; /* 1: each row is summed in one go; 2: shares first, then the shares' sums */
} rung_candidate;

bool rung_candidate_equal(const rung_candidate *a, const rung_candidate *b);
/* Terminated; the candidate must be valid. */
void rung_candidate_print(const rung_candidate *candidate, char out[RUNG_CANDIDATE_TAG]);
/* Fields in any order, each once; missing tile and padding are 1. INVALID_ARGUMENT, naming the field: one that is
 * missing, unknown, there twice, or out of its range. */
rung_status rung_candidate_parse(const char *text, size_t length, rung_error *error, rung_candidate *out);

/* What a kernel can be asked for: candidates of one type of keys and values and one width of heads. */
typedef struct rung_candidate_space {
  rung_type kv;
  int64_t head;
  uint16_t most_splits;             /* of two stages; 1: it has only one stage */
  bool one_stage;                   /* it can do without a second stage */
  uint16_t most_keys;               /* largest group */
  uint16_t most_tile, most_padding; /* powers of two are tried */
} rung_candidate_space;
/* Every valid candidate, or the first `most`; returns how many were written. One stage cuts nothing: it has splits 1 and
 * the smallest group. Two stages have at least two splits. */
size_t rung_candidates(const rung_candidate_space *space, rung_candidate *out, size_t most);
/* Is this one of them? */
bool rung_candidate_in(const rung_candidate_space *space, const rung_candidate *candidate);

/* ---- sizes: runs are told apart by their query rows n */
enum { RUNG_TUNE_BUCKETS = 11 };
/* b < 10 holds 2^(b-1) < n <= 2^b, 10 all that is larger; 0 also what is below 1. */
uint16_t rung_tune_bucket(int64_t rows);
/* The largest n of a bucket; of the last one the smallest. */
int64_t rung_tune_bucket_rows(uint16_t bucket);
/* What is done without a winner: two stages up to 8 rows or beyond 1024 keys. */
enum { RUNG_DEFAULT_KEYS = 1024 };
int rung_default_stages(int64_t rows, int64_t keys);

#endif
