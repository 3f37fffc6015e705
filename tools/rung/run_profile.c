/* SPDX-License-Identifier: MIT
 * rung run --profile: time by op and kernel. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"

enum { MOST_ROWS = 512 };

typedef struct row {
  const char *op, *kernel;
  uint64_t ns, bytes, steps;
} row;

struct cli_profile {
  rung_context *context;
  int rows;
  row row[MOST_ROWS]; /* kernels beyond that count as the last one */
};

static void on_step(void *self, const rung_step_info *info) {
  cli_profile *p = self;
  int i = 0;
  while (i < p->rows && (strcmp(p->row[i].op, info->op) != 0 || strcmp(p->row[i].kernel, info->kernel) != 0)) i++;
  if (i == MOST_ROWS) i--;
  if (i == p->rows) p->row[p->rows++] = (row){info->op, info->kernel, 0, 0, 0};
  p->row[i].ns += info->end_ns - info->start_ns;
  p->row[i].bytes += info->bytes;
  p->row[i].steps++;
}

cli_profile *cli_profile_begin(rung_context *context) {
  cli_profile *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->context = context;
  rung_context_on_step(context, on_step, p);
  return p;
}

static int by_time(const void *a, const void *b) {
  const uint64_t x = ((const row *)a)->ns, y = ((const row *)b)->ns;
  return (x < y) - (x > y);
}

/* session NULL: nothing is printed. */
void cli_profile_end(cli_profile *p, const cli_session *s, int64_t runs) {
  rung_context_on_step(p->context, NULL, NULL);
  qsort(p->row, (size_t)p->rows, sizeof *p->row, by_time);
  uint64_t total = 0;
  for (int i = 0; i < p->rows; i++) total += p->row[i].ns;
  if (s) printf("%-18s %-34s %7s %12s %6s %8s\n", "op", "kernel", "steps", "us per run", "share", "GB/s");
  for (int i = 0; s && i < p->rows; i++) {
    const row *r = &p->row[i];
    printf("%-18s %-34s %7" PRIu64 " %12.1f %5.1f%% %8.2f\n", r->op, r->kernel, r->steps / (uint64_t)runs,
           (double)r->ns * 1e-3 / (double)runs, total ? 100.0 * (double)r->ns / (double)total : 0,
           r->ns ? (double)r->bytes / (double)r->ns : 0);
  }
  free(p);
}
