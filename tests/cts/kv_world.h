/* SPDX-License-Identifier: MIT
 * A graph with a full and a windowed key/value state, and the same contents in plain arrays: what runs must agree with.
 */
#ifndef RUNG_TESTS_CTS_KV_WORLD_H
#define RUNG_TESTS_CTS_KV_WORLD_H

#include <math.h>

#include "cts/world.h"

enum {
  KV_HEADS = 4,
  KV_SHARED = 2,
  KV_DIM = 8,
  KV_ROW = KV_SHARED * KV_DIM,
  KV_WINDOW = 100,
  KV_SLOTS = 3,
  KV_MOST = 600,
  KV_CHUNK = 80
};
enum { KV_IN_OFFSETS, KV_IN_SLOT, KV_IN_PAST, KV_IN_Q, KV_IN_K, KV_IN_V, KV_IN_I };

static const char kv_text[] =
    "rung 1\nsymbol rows 0..80\nsymbol sequences 0..3\n"
    "%0 = input {name=\"offsets\"} : i32[sequences+1]\n"
    "%1 = input {name=\"slot\"} : i32[sequences]\n"
    "%2 = input {name=\"past\"} : i32[sequences]\n"
    "%3 = input {name=\"q\"} : f32[rows,4,8]\n"
    "%4 = input {name=\"k\"} : f32[rows,2,8]\n"
    "%5 = input {name=\"v\"} : f32[rows,2,8]\n"
    "%6 = input {name=\"i\"} : i32[rows]\n"
    "%s7 = state {name=\"full\"} : kv f32[2,8,8]\n"
    "%s8 = state {name=\"ring\", window=100} : kv f32[2,8,8]\n"
    "%s9 = append %s7, %4, %5, %0, %1, %2 : kv f32[2,8,8]\n"
    "%s10 = append %s8, %4, %5, %0, %1, %2 : kv f32[2,8,8]\n"
    "%11 = attention_kv %3, %s9, %0, %1, %2 : f32[rows,4,8]\n"
    "%12 = attention_kv %3, %s10, %0, %1, %2 {window=100} : f32[rows,4,8]\n"
    "%13 = gather %11, %6 : f32[rows,4,8]\n"
    "output \"full\" %13\n"
    "output \"ring\" %12\n";

/* What each slot should hold. */
typedef struct kv_model {
  int64_t length[KV_SLOTS];
  float k[KV_SLOTS][KV_MOST][KV_ROW], v[KV_SLOTS][KV_MOST][KV_ROW];
  uint64_t random;
  bool poison; /* values that nobody else may ever see */
} kv_model;

static inline bool kv_open(world *w, int device, int64_t capacity) {
  rung_state_options so = rung_state_options_default();
  so.sequences = KV_SLOTS;
  so.capacity = capacity;
  so.chunk = KV_CHUNK;
  return world_open(w, kv_text, &(world_options){.device = world_devices[device], .state = &so});
}

/* Everything for a run that adds `rows`; q of row r is a function of slot and position alone. */
static inline bool kv_bind(world *w, kv_model *m, const rung_rows *rows, int32_t count) {
  static float q[KV_CHUNK][KV_HEADS * KV_DIM], k[KV_CHUNK][KV_ROW], v[KV_CHUNK][KV_ROW];
  static int32_t index[KV_CHUNK];
  int64_t n = 0;
  for (int32_t r = 0; r < count; r++) {
    for (int32_t i = 0; i < rows[r].count; i++, n++) {
      const int32_t slot = rows[r].slot;
      const int64_t position = m->length[slot] + i;
      uint64_t random = 1 + (uint64_t)position * 977;
      for (int e = 0; e < KV_HEADS * KV_DIM; e++) q[n][e] = test_uniform(&random, -2, 2);
      for (int e = 0; e < KV_ROW; e++) {
        k[n][e] = test_uniform(&m->random, -2, 2);
        v[n][e] = m->poison ? NAN : test_uniform(&m->random, -2, 2);
        if (position < KV_MOST) m->k[slot][position][e] = k[n][e], m->v[slot][position][e] = v[n][e];
      }
      index[n] = (int32_t)n;
    }
  }
  if (rung_context_set_rows(w->context, rows, count)) return false;
  return world_put(w, KV_IN_Q, (int64_t[]){n, 4, 8}, q, (size_t)n * sizeof q[0]) &&
         world_put(w, KV_IN_K, (int64_t[]){n, 2, 8}, k, (size_t)n * sizeof k[0]) &&
         world_put(w, KV_IN_V, (int64_t[]){n, 2, 8}, v, (size_t)n * sizeof v[0]) &&
         world_put(w, KV_IN_I, &n, index, (size_t)n * 4);
}

static inline void kv_grown(kv_model *m, const rung_rows *rows, int32_t count) {
  for (int32_t r = 0; r < count; r++) m->length[rows[r].slot] += rows[r].count;
}

static inline bool kv_run(world *w, kv_model *m, const rung_rows *rows, int32_t count) {
  if (!kv_bind(w, m, rows, count) || !world_run(w)) return false;
  kv_grown(m, rows, count);
  return true;
}

/* Every position that is still there reads back as it was written. */
static inline void kv_check_rows(world *w, const kv_model *m) {
  int64_t wrong = 0, lost = 0;
  for (int32_t s = 0; s < KV_SLOTS; s++) {
    CHECK_EQ_I64(rung_state_length(w->state, s), m->length[s]);
    for (int64_t p = 0; p < m->length[s]; p++) {
      float row[2 * KV_ROW];
      wrong += rung_state_read_rows(w->state, "full", s, p, 1, row, 2 * KV_ROW, NULL) ||
               memcmp(row, m->k[s][p], sizeof m->k[s][p]) || memcmp(row + KV_ROW, m->v[s][p], sizeof m->v[s][p]);
      const rung_status status = rung_state_read_rows(w->state, "ring", s, p, 1, row, 2 * KV_ROW, NULL);
      lost += status && p >= m->length[s] - KV_WINDOW;
      wrong += !status &&
               (memcmp(row, m->k[s][p], sizeof m->k[s][p]) || memcmp(row + KV_ROW, m->v[s][p], sizeof m->v[s][p]));
    }
    float row[2 * KV_ROW];
    CHECK_STATUS(rung_state_read_rows(w->state, "full", s, m->length[s], 1, row, 2 * KV_ROW, NULL), RUNG_OUT_OF_RANGE);
  }
  CHECK_EQ_I64(wrong, 0);
  CHECK_EQ_I64(lost, 0);
}

/* Attention of one row in double. */
static inline void kv_attend(const kv_model *m, int32_t slot, int64_t position, int64_t window, const float *q,
                             double *out) {
  for (int h = 0; h < KV_HEADS; h++) {
    double total = 0;
    for (int d = 0; d < KV_DIM; d++) out[h * KV_DIM + d] = 0;
    for (int64_t p = window && position >= window ? position - window + 1 : 0; p <= position; p++) {
      const float *k = m->k[slot][p] + h / 2 * KV_DIM, *v = m->v[slot][p] + h / 2 * KV_DIM;
      double score = 0;
      for (int d = 0; d < KV_DIM; d++) score += (double)q[h * KV_DIM + d] * (double)k[d];
      const double weight = exp(score / sqrt((double)KV_DIM));
      total += weight;
      for (int d = 0; d < KV_DIM; d++) out[h * KV_DIM + d] += weight * (double)v[d];
    }
    for (int d = 0; d < KV_DIM; d++) out[h * KV_DIM + d] /= total;
  }
}

static double kv_bound = 1e-5; /* of numbers up to 2 */
/* The outputs of the run that just added `rows` (m is grown already). */
static inline void kv_check_attention(world *w, const kv_model *m, const rung_rows *rows, int32_t count) {
  const rung_tensor full = world_output(w, 0), ring = world_output(w, 1);
  int64_t n = 0, wrong = 0;
  for (int32_t r = 0; r < count; r++) {
    for (int32_t i = 0; i < rows[r].count; i++, n++) {
      const int64_t position = m->length[rows[r].slot] - rows[r].count + i;
      uint64_t random = 1 + (uint64_t)position * 977;
      float q[KV_HEADS * KV_DIM];
      double want[2][KV_HEADS * KV_DIM];
      for (int e = 0; e < KV_HEADS * KV_DIM; e++) q[e] = test_uniform(&random, -2, 2);
      kv_attend(m, rows[r].slot, position, 0, q, want[0]);
      kv_attend(m, rows[r].slot, position, KV_WINDOW, q, want[1]);
      for (int e = 0; e < KV_HEADS * KV_DIM; e++) {
        const int64_t at = n * KV_HEADS * KV_DIM + e;
        wrong += !(fabs((double)((float *)full.data)[at] - want[0][e]) < kv_bound) ||
                 !(fabs((double)((float *)ring.data)[at] - want[1][e]) < kv_bound);
      }
    }
  }
  CHECK_EQ_I64(wrong, 0);
}

#endif
