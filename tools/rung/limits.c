/* SPDX-License-Identifier: MIT
 * Read bandwidth: every thread sums slices of one buffer. Arithmetic: every thread runs the same loop of registers.
 * Memory: Linux's high-water mark of resident pages. */
#include "limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

enum { LEAST = 64 << 10, MOST = 512 << 20, LANES = 32, SLICES = 64, MOST_PASSES = 200 };
static const double ENOUGH = 2e9; /* bytes to read in all */

typedef struct reader {
  const uint64_t *data;
  size_t words;         /* of a slice, a multiple of LANES */
  uint64_t sum[SLICES]; /* so that nothing can be left out */
} reader;

static void read_slice(void *self, int64_t task, int thread) {
  (void)thread;
  reader *r = self;
  const uint64_t *p = r->data + (size_t)task * r->words;
  uint64_t lane[LANES] = {0};
  for (size_t i = 0; i < r->words; i += LANES)
    for (int k = 0; k < LANES; k++) lane[k] += p[i + (size_t)k];
  uint64_t sum = 0;
  for (int k = 0; k < LANES; k++) sum += lane[k];
  r->sum[task] = sum;
}

double cli_bandwidth(const cli_session *s, int threads, uint64_t bytes) {
  reader r = {0};
  const uint64_t size = bytes < LEAST ? LEAST : bytes > MOST ? MOST : bytes;
  r.words = (size_t)(size / 8 / SLICES / LANES * LANES);
  const size_t all = r.words * 8 * SLICES;
  void *buffer = malloc(all);
  if (!buffer) return 0;
  memset(buffer, 1, all); /* pages of its own, not one page of zeros */
  r.data = buffer;
  rung_pool *pool = rung_pool_shared(s->host);
  (void)rung_pool_ensure(pool, s->host, threads);
  double best = 0, total = 0;
  for (int pass = 0; pass < MOST_PASSES && total < ENOUGH && !cli_interrupted(); pass++) {
    const double start = cli_seconds();
    rung_pool_run(pool, threads, SLICES, read_slice, &r);
    const double took = cli_seconds() - start;
    if (took > 0 && (double)all / took > best) best = (double)all / took;
    total += (double)all;
  }
  free(buffer);
  return best;
}

peak_rates cli_arithmetic(const cli_session *s, int threads) {
  enum { PASSES = 100 };
  rung_pool *pool = rung_pool_shared(s->host);
  (void)rung_pool_ensure(pool, s->host, threads);
  return peak_measure(pool, threads, PASSES, rung_isa_detect());
}

static bool began_anew;

void cli_resident_reset(void) {
  FILE *f = fopen("/proc/self/clear_refs", "w");
  began_anew = f && fputs("5", f) >= 0;
  if (f) began_anew &= fclose(f) == 0;
}

uint64_t cli_resident_most(void) {
  FILE *f = began_anew ? fopen("/proc/self/status", "r") : NULL;
  char line[256];
  uint64_t kib = 0;
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "VmHWM: %" SCNu64, &kib) == 1) break;
  if (f) fclose(f);
  return kib * 1024;
}
