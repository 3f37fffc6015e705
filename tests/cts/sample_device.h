/* SPDX-License-Identifier: MIT
 * The op `sample` on a device beside the host's sampler. */
#ifndef RUNG_TESTS_CTS_SAMPLE_DEVICE_H
#define RUNG_TESTS_CTS_SAMPLE_DEVICE_H

#include "cts/world.h"
#include "unit/sample_rows.h"

/* Runs of a program that is one op, over rows with parameters of their own. Returns how many tokens are not the host's. */
static inline int sample_on_device(const char *device, int64_t vocabulary, int rounds, uint64_t seed) {
  enum { MOST_ROWS = 6 };
  char text[300];
  world w;
  int differ = 0;
  snprintf(text, sizeof text,
           "rung 1\nsymbol n 0..64\n%%l = input {name=\"l\"} : f32[n,%" PRId64
           "]\n%%p = input {name=\"p\"} : f64[n,%d]\n%%t = sample %%l, %%p\noutput \"t\" %%t\n",
           vocabulary, RUNG_SAMPLE_COLUMNS);
  if (!world_open(&w, text, &(world_options){.device = device})) {
    world_close(&w);
    return 1;
  }
  const size_t bytes = (size_t)vocabulary * 16, all = (size_t)vocabulary * MOST_ROWS;
  float *logits = malloc(all * sizeof *logits);
  void *scratch = aligned_alloc(16, bytes);
  for (int round = 0; round < rounds; round++) {
    const int64_t rows = 1 + test_below(&seed, MOST_ROWS);
    int32_t want[MOST_ROWS];
    double parameter[MOST_ROWS][RUNG_SAMPLE_COLUMNS];
    for (int64_t r = 0; r < rows; r++) {
      float *row = logits + r * vocabulary;
      const rung_sample_options o = sample_some_options(&seed);
      rung_sampler sampler;
      sample_fill(row, vocabulary, (int)test_below(&seed, SAMPLE_KINDS), &seed);
      CHECK_OK(rung_sampler_init(&sampler, w.host, &o, &w.error));
      rung_sampler_parameters(&sampler, parameter[r]);
      want[r] = sample_by_host(&sampler, row, vocabulary, scratch, bytes);
      rung_sampler_finish(&sampler);
    }
    if (!world_put(&w, 0, (int64_t[]){rows, vocabulary}, logits, (size_t)(rows * vocabulary) * sizeof *logits) ||
        !world_put(&w, 1, (int64_t[]){rows, RUNG_SAMPLE_COLUMNS}, parameter, (size_t)rows * sizeof *parameter) ||
        !world_run(&w))
      break;
    const rung_tensor out = world_output(&w, 0);
    for (int64_t r = 0; r < rows && out.data; r++) {
      const int32_t got = ((const int32_t *)out.data)[r];
      if (got == want[r]) continue;
      differ++;
      printf("%s, %" PRId64 " of %" PRId64 " rows: %d, not %d (temperature %g, top_k %g, top_p %g, min_p %g, %.17g)\n",
             device, r, rows, got, want[r], parameter[r][0], parameter[r][1], parameter[r][2], parameter[r][3],
             parameter[r][4]);
    }
  }
  free(logits);
  free(scratch);
  world_close(&w);
  return differ;
}

/* Random numbers spread evenly over rows of equal logits: each token is chosen as often as its probability says, but for
 * one row at each edge. */
static inline void sample_shares(const char *device, double temperature) {
  enum { TOKENS = 37, ROWS = 4000 };
  static float logits[ROWS][TOKENS];
  static double parameter[ROWS][RUNG_SAMPLE_COLUMNS];
  static const char text[] =
      "rung 1\nsymbol n 0..4000\n%l = input {name=\"l\"} : f32[n,37]\n%p = input {name=\"p\"} : f64[n,5]\n"
      "%t = sample %l, %p\noutput \"t\" %t\n";
  world w;
  int count[TOKENS] = {0};
  double total = 0;
  for (int r = 0; r < ROWS; r++) {
    for (int i = 0; i < TOKENS; i++) logits[r][i] = (float)((i * 29) % TOKENS) * 0.21f - 3;
    parameter[r][RUNG_SAMPLE_TEMPERATURE] = temperature;
    parameter[r][RUNG_SAMPLE_TOP_P] = 1;
    parameter[r][RUNG_SAMPLE_UNIFORM] = ((double)((int64_t)r * 1009 % ROWS) + 0.5) / ROWS;
  }
  for (int i = 0; i < TOKENS; i++) total += exp((double)logits[0][i] / temperature);
  if (world_open(&w, text, &(world_options){.device = device}) &&
      world_put(&w, 0, (int64_t[]){ROWS, TOKENS}, logits, sizeof logits) &&
      world_put(&w, 1, (int64_t[]){ROWS, RUNG_SAMPLE_COLUMNS}, parameter, sizeof parameter) && world_run(&w)) {
    const rung_tensor out = world_output(&w, 0);
    for (int r = 0; r < ROWS; r++) {
      const int32_t id = ((const int32_t *)out.data)[r];
      CHECK(id >= 0 && id < TOKENS);
      if (id >= 0 && id < TOKENS) count[id]++;
    }
    for (int i = 0; i < TOKENS; i++)
      CHECK(fabs(count[i] - ROWS * exp((double)logits[0][i] / temperature) / total) <= 1.001);
  }
  world_close(&w);
}

#endif
