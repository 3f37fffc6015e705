/* SPDX-License-Identifier: MIT
 * A graph whose keys are turned by their positions before they go into a full and a windowed state, and plain arrays of
 * what was put in: rows read back are compared with keys turned in double. */
#ifndef RUNG_TESTS_CTS_ROPE_WORLD_H
#define RUNG_TESTS_CTS_ROPE_WORLD_H

#include <math.h>
#include <stdio.h>

#include "cts/world.h"

enum {
  ROPE_SLOTS = 3,
  ROPE_MOST = 1200,
  ROPE_CHUNK = 32,
  ROPE_DIM = 8,
  ROPE_ROW = 2 * 2 * ROPE_DIM,
  ROPE_WINDOW = 200
};
enum { ROPE_IN_OFFSETS, ROPE_IN_SLOT, ROPE_IN_PAST, ROPE_IN_Q, ROPE_IN_K, ROPE_IN_V };

/* mode, dims, base, scale of the full state's rope; the windowed one has others, and factors. */
static inline const char *rope_text(const char *type, bool adjacent) {
  static char text[3000];
  snprintf(text, sizeof text,
           "rung 1\nsymbol rows 0..32\nsymbol sequences 0..3\n"
           "%%offsets = input {name=\"offsets\"} : i32[sequences+1]\n"
           "%%slot = input {name=\"slot\"} : i32[sequences]\n"
           "%%past = input {name=\"past\"} : i32[sequences]\n"
           "%%q = input {name=\"q\"} : f32[rows,4,8]\n"
           "%%k = input {name=\"k\"} : f32[rows,2,8]\n"
           "%%v = input {name=\"v\"} : f32[rows,2,8]\n"
           "%%at = positions %%offsets, %%past {rows=rows}\n"
           "%%k1 = rope %%k, %%at {base=100, scale=0.5%s, dims=6}\n"
           "%%f = constant {data=f32(1, 2, 4, 8)} : f32[4]\n"
           "%%k2 = rope %%k, %%at, %%f {base=1000}\n"
           "%%s0 = state {name=\"full\"} : kv %s[2,8,8]\n"
           "%%s1 = state {name=\"ring\", window=200} : kv %s[2,8,8]\n"
           "%%s2 = append %%s0, %%k1, %%v, %%offsets, %%slot, %%past\n"
           "%%s3 = append %%s1, %%k2, %%v, %%offsets, %%slot, %%past\n"
           "%%y = attention_kv %%q, %%s2, %%offsets, %%slot, %%past\n"
           "%%z = attention_kv %%q, %%s3, %%offsets, %%slot, %%past {window=200}\n"
           "output \"y\" %%y\n"
           "output \"z\" %%z\n",
           adjacent ? ", mode=adjacent" : "", type, type);
  return text;
}

/* What slots should hold: the number of the row that was put there. Rows are functions of their number. */
typedef struct rope_model {
  int64_t length[ROPE_SLOTS], next;
  int64_t row[ROPE_SLOTS][ROPE_MOST];
  bool adjacent;
} rope_model;

static inline void rope_row(int64_t number, float out[ROPE_ROW]) {
  uint64_t random = 1 + (uint64_t)number * 7919;
  for (int i = 0; i < ROPE_ROW; i++) out[i] = test_uniform(&random, -2, 2);
}

/* Keys of row `number` as they should stand at `position`. */
static inline void rope_want(const rope_model *m, bool ring, int64_t number, int64_t position, double out[ROPE_ROW]) {
  float plain[ROPE_ROW];
  rope_row(number, plain);
  for (int i = 0; i < ROPE_ROW; i++) out[i] = (double)plain[i];
  const int dims = ring ? 8 : 6;
  for (int h = 0; h < 2; h++) {
    for (int i = 0; i < dims / 2; i++) {
      const double factor = ring ? (double)(1 << i) : 1;
      const double angle = (double)position * pow(ring ? 1000 : 100, -2.0 * i / dims) * (ring ? 1 : 0.5) / factor;
      const bool half = ring || !m->adjacent;
      const int a = h * 8 + (half ? i : 2 * i), b = h * 8 + (half ? i + dims / 2 : 2 * i + 1);
      const double x = out[a], y = out[b];
      out[a] = x * cos(angle) - y * sin(angle);
      out[b] = x * sin(angle) + y * cos(angle);
    }
  }
}

static inline bool rope_open(world *w, rope_model *m, int device, const char *type, int64_t capacity, int64_t blocks) {
  rung_state_options so = rung_state_options_default();
  so.sequences = ROPE_SLOTS;
  so.capacity = capacity;
  so.chunk = ROPE_CHUNK;
  so.blocks = blocks;
  return world_open(w, rope_text(type, m->adjacent), &(world_options){.device = world_devices[device], .state = &so});
}

static inline rung_status rope_bind(world *w, rope_model *m, const rung_rows *rows, int32_t count) {
  static float q[ROPE_CHUNK][4 * ROPE_DIM], k[ROPE_CHUNK][2 * ROPE_DIM], v[ROPE_CHUNK][2 * ROPE_DIM];
  int64_t n = 0;
  for (int32_t r = 0; r < count; r++) {
    for (int32_t i = 0; i < rows[r].count; i++, n++) {
      float row[ROPE_ROW];
      const int64_t at = m->length[rows[r].slot] + i;
      if (at < ROPE_MOST) m->row[rows[r].slot][at] = m->next;
      uint64_t random = 5 + (uint64_t)at;
      for (int e = 0; e < 4 * ROPE_DIM; e++) q[n][e] = test_uniform(&random, -1, 1);
      rope_row(m->next++, row);
      memcpy(k[n], row, sizeof k[n]);
      memcpy(v[n], row + 2 * ROPE_DIM, sizeof v[n]);
    }
  }
  const rung_status status = rung_context_set_rows(w->context, rows, count);
  if (status) return status;
  CHECK(world_put(w, ROPE_IN_Q, (int64_t[]){n, 4, 8}, q, (size_t)n * sizeof q[0]) &&
        world_put(w, ROPE_IN_K, (int64_t[]){n, 2, 8}, k, (size_t)n * sizeof k[0]) &&
        world_put(w, ROPE_IN_V, (int64_t[]){n, 2, 8}, v, (size_t)n * sizeof v[0]));
  return RUNG_OK;
}

static inline rung_status rope_try(world *w, rope_model *m, const rung_rows *rows, int32_t count) {
  const rung_status status = rope_bind(w, m, rows, count);
  return status ? status : rung_context_run(w->context);
}

static inline void rope_grown(rope_model *m, const rung_rows *rows, int32_t count) {
  for (int32_t r = 0; r < count; r++) m->length[rows[r].slot] += rows[r].count;
}

static inline bool rope_run(world *w, rope_model *m, const rung_rows *rows, int32_t count) {
  const rung_status status = rope_try(w, m, rows, count);
  test_state.checks++;
  if (status) {
    TEST_FAIL_("run: %s", rung_context_message(w->context));
    return false;
  }
  rope_grown(m, rows, count);
  return true;
}

static inline bool rope_fill(world *w, rope_model *m, int32_t slot, int64_t length) {
  while (m->length[slot] < length) {
    const int64_t left = length - m->length[slot];
    if (!rope_run(w, m, &(rung_rows){slot, (int32_t)(left < ROPE_CHUNK ? left : ROPE_CHUNK)}, 1)) return false;
  }
  return true;
}

/* The same of a model alone. */
static inline void rope_shifted(rope_model *m, int32_t slot, int64_t keep, int64_t count) {
  m->length[slot] -= count;
  memmove(&m->row[slot][keep], &m->row[slot][keep + count], (size_t)(m->length[slot] - keep) * sizeof m->row[slot][0]);
}

/* Every position that is held reads back within `bound` of what stands there, keys turned by where they stand. */
static inline void rope_check(world *w, const rope_model *m, int32_t slot, double bound) {
  int64_t wrong = 0, lost = 0;
  CHECK_EQ_I64(rung_state_length(w->state, slot), m->length[slot]);
  for (int ring = 0; ring < 2; ring++) {
    for (int64_t p = 0; p < m->length[slot]; p++) {
      float row[ROPE_ROW];
      double want[ROPE_ROW];
      if (rung_state_read_rows(w->state, ring ? "ring" : "full", slot, p, 1, row, ROPE_ROW, NULL)) {
        lost += !ring || p >= m->length[slot] - ROPE_WINDOW;
        continue;
      }
      rope_want(m, ring, m->row[slot][p], p, want);
      for (int i = 0; i < ROPE_ROW; i++) wrong += !(fabs((double)row[i] - want[i]) <= bound * (fabs(want[i]) + 2));
    }
  }
  CHECK_EQ_I64(wrong, 0);
  CHECK_EQ_I64(lost, 0);
}

#endif
