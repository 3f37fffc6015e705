/* SPDX-License-Identifier: MIT
 * What measurements share. */
#ifndef RUNG_TOOLS_BENCH_H
#define RUNG_TOOLS_BENCH_H

#include "limits.h"

typedef struct cli_measure {
  double *seconds; /* malloc, one for each repeat */
  int64_t repeat;
  double median, spread; /* spread: (slowest - fastest) / median; after cli_measure_end */
} cli_measure;
int cli_measure_begin(const cli_session *session, cli_measure *out);
void cli_measure_end(cli_measure *measure); /* frees */

/* Text graphs (bench_graph.c). */
int cli_bench_graph(cli_session *session);

#endif
