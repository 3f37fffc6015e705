/* SPDX-License-Identifier: MIT
 * Read bandwidth: every thread sums slices of one large buffer. */
#include "bandwidth.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

enum { BUFFER = 512 << 20, SLICE = 4 << 20, PASSES = 5 };

typedef struct reader {
  const uint64_t *data;
  uint64_t *sum; /* by slice, so that nothing can be left out */
} reader;

static void read_slice(void *self, int64_t task, int thread) {
  (void)thread;
  enum { WORDS = SLICE / 8, LANES = 32 };
  const reader *r = self;
  const uint64_t *p = r->data + task * WORDS;
  uint64_t lane[LANES] = {0};
  for (int i = 0; i < WORDS; i += LANES)
    for (int k = 0; k < LANES; k++) lane[k] += p[i + k];
  uint64_t sum = 0;
  for (int k = 0; k < LANES; k++) sum += lane[k];
  r->sum[task] = sum;
}

double cli_bandwidth(const cli_session *s, int threads) {
  enum { SLICES = BUFFER / SLICE };
  uint64_t sums[SLICES];
  void *buffer = malloc(BUFFER);
  if (!buffer) return 0;
  memset(buffer, 1, BUFFER); /* pages of its own, not one page of zeros */
  rung_pool *pool = rung_pool_shared(s->host);
  (void)rung_pool_ensure(pool, s->host, threads);
  reader r = {buffer, sums};
  double best = 0;
  for (int pass = 0; pass < PASSES; pass++) {
    const double start = cli_seconds();
    rung_pool_run(pool, threads, SLICES, read_slice, &r);
    const double took = cli_seconds() - start;
    if (took > 0 && BUFFER / took > best) best = BUFFER / took;
  }
  free(buffer);
  return best;
}
