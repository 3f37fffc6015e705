/* SPDX-License-Identifier: MIT
 * Recorded logits of the float64 oracle, a model fed in different ways, and how far apart the two are. */
#ifndef RUNG_TESTS_RECORDED_H
#define RUNG_TESTS_RECORDED_H

#include <math.h>
#include <rung/model.h>

#include "../test.h"
#include "formats/npy.h"

enum { RECORDED_IDS = 256, RECORDED_SLOTS = 3 };

/* A text, and what was recorded at some of its positions. */
typedef struct recorded {
  int32_t id[RECORDED_IDS], position[RECORDED_IDS];
  int32_t ids, positions;
  rung_npy logits; /* f64 [positions, vocabulary] */
  bool open;
} recorded;

static inline int32_t recorded_ids(const char *path, int32_t *out) {
  FILE *f = fopen(path, "r");
  int32_t n = 0;
  while (f && n < RECORDED_IDS && fscanf(f, "%d", &out[n]) == 1) n++;
  if (f) fclose(f);
  test_state.checks++;
  if (!n) TEST_FAIL_("%s: no ids", path);
  return n;
}

static inline bool recorded_npy(rung_host *host, const char *path, rung_npy *out) {
  const rung_source source = rung_source_path(path);
  rung_error error = {RUNG_OK, ""};
  const rung_status s = rung_npy_open(out, host, &source, &error);
  test_state.checks++;
  if (s) TEST_FAIL_("%s", error.message);
  return !s;
}

/* position NULL: all of them. Paths below tests/models. */
static inline bool recorded_open(recorded *r, rung_host *host, const char *ids, const char *logits,
                                 const int32_t *position, int32_t positions) {
  char path[600];
  *r = (recorded){.ids = 0};
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/%s", ids);
  r->ids = recorded_ids(path, r->id);
  r->positions = position ? positions : r->ids;
  for (int32_t i = 0; i < r->positions; i++) r->position[i] = position ? position[i] : i;
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/%s", logits);
  r->open = recorded_npy(host, path, &r->logits);
  return r->open && r->ids > 0;
}
static inline void recorded_close(recorded *r) {
  if (r->open) rung_npy_close(&r->logits);
}

/* ---- a model on a device */

typedef struct recorded_side {
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_generator *generator;
  rung_model_info info;
  rung_error error;
} recorded_side;

static inline bool recorded_side_open(recorded_side *s, const char *device, const char *path, rung_quant quant,
                                      bool deterministic, rung_type kv, int64_t blocks) {
  const rung_source source = rung_source_path(path);
  rung_model_options mo = rung_model_options_default();
  mo.quant = quant;
  mo.deterministic = deterministic;
  rung_generate_options go = rung_generate_options_default();
  go.sequences = RECORDED_SLOTS;
  go.context = RECORDED_IDS;
  go.chunk = go.logits = RECORDED_SLOTS * RECORDED_IDS;
  go.kv = kv;
  go.blocks = blocks;
  *s = (recorded_side){0};
  rung_status status = rung_host_create(NULL, &s->error, &s->host);
  if (!status) status = rung_device_create(s->host, device, NULL, &s->error, &s->device);
  if (!status) status = rung_model_open(s->device, &source, &mo, &s->error, &s->model);
  if (!status) rung_model_get_info(s->model, &s->info);
  if (!status) status = rung_generator_create(s->model, &go, &s->error, &s->generator);
  test_state.checks++;
  if (status) TEST_FAIL_("%s on %s: %s", path, device, s->error.message);
  return !status;
}

static inline void recorded_side_close(recorded_side *s) {
  rung_generator_destroy(s->generator);
  rung_model_release(s->model);
  rung_device_release(s->device);
  if (s->host) {
    const rung_memory m = rung_host_memory(s->host);
    CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state + m.weights + m.load, 0);
  }
  rung_host_release(s->host);
}

/* How a text is fed: `first` rows, then `piece` at a time; the same into the first `slots` sequences at once. */
typedef struct recorded_way {
  int32_t first, piece, slots;
} recorded_way;

/* Called with the logits of each position that was recorded. */
typedef void recorded_row_fn(void *self, int32_t slot, int32_t index, const float *row);

static inline bool recorded_feed(recorded_side *s, const recorded *r, const recorded_way *way, recorded_row_fn *fn,
                                 void *self) {
  static int32_t ids[RECORDED_SLOTS * RECORDED_IDS], wanted[RECORDED_SLOTS * RECORDED_IDS];
  rung_rows rows[RECORDED_SLOTS];
  for (int32_t slot = 0; slot < RECORDED_SLOTS; slot++) CHECK_OK(rung_generator_reset(s->generator, slot));
  int32_t index = 0;
  for (int32_t at = 0, n; at < r->ids; at += n) {
    n = at ? way->piece : way->first;
    if (n > r->ids - at) n = r->ids - at;
    int32_t behind = index, count = 0;
    while (behind < r->positions && r->position[behind] < at + n) behind++;
    for (int32_t slot = 0; slot < way->slots; slot++) {
      rows[slot] = (rung_rows){slot, n};
      memcpy(ids + slot * n, r->id + at, (size_t)n * sizeof *ids);
      for (int32_t i = index; i < behind; i++) wanted[count++] = slot * n + r->position[i] - at;
    }
    const float *logits = NULL;
    const rung_status status = rung_generator_run(s->generator, rows, way->slots, ids, wanted, count, &logits);
    test_state.checks++;
    if (status) {
      TEST_FAIL_("%d rows at %d: %s", n, at, rung_generator_message(s->generator));
      return false;
    }
    for (int32_t k = 0; k < count; k++)
      fn(self, k / (behind - index), index + k % (behind - index), logits + (int64_t)k * s->info.vocabulary);
    index = behind;
  }
  return true;
}

/* ---- distances */

/* Largest difference, and largest logit. */
typedef struct recorded_far {
  const double *want;
  int64_t vocabulary;
  double worst, largest;
} recorded_far;

static inline void recorded_far_row(void *self, int32_t slot, int32_t index, const float *row) {
  recorded_far *f = self;
  (void)slot;
  for (int64_t i = 0; i < f->vocabulary; i++) {
    const double want = f->want[index * f->vocabulary + i];
    f->largest = fmax(f->largest, fabs(want));
    f->worst = fmax(f->worst, isnan(row[i]) ? (double)INFINITY : fabs(want - (double)row[i]));
  }
}

/* Kullback-Leibler divergence from what was recorded, in nats: sums over positions, for mean and deviation. */
typedef struct recorded_kl {
  const double *want;
  int64_t vocabulary;
  double sum, squares;
  int64_t count;
} recorded_kl;

static inline double recorded_lse(const double *want, const float *have, int64_t n) {
  double top = -(double)INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) top = fmax(top, want ? want[i] : (double)have[i]);
  for (int64_t i = 0; i < n; i++) sum += exp((want ? want[i] : (double)have[i]) - top);
  return top + log(sum);
}

static inline void recorded_kl_row(void *self, int32_t slot, int32_t index, const float *row) {
  recorded_kl *k = self;
  const double *want = k->want + index * k->vocabulary;
  const double a = recorded_lse(want, NULL, k->vocabulary), b = recorded_lse(NULL, row, k->vocabulary);
  double kl = 0;
  (void)slot;
  for (int64_t i = 0; i < k->vocabulary; i++) kl += exp(want[i] - a) * ((want[i] - a) - ((double)row[i] - b));
  k->sum += isnan(kl) ? (double)INFINITY : kl;
  k->squares += kl * kl;
  k->count++;
}
static inline double recorded_kl_mean(const recorded_kl *k) { return k->sum / (double)k->count; }
/* The square of the standard error of that mean. */
static inline double recorded_kl_error(const recorded_kl *k) {
  const double n = (double)k->count, mean = k->sum / n;
  return fmax(k->squares / n - mean * mean, 0) / n;
}
/* Does a device's divergence pass for the cpu device's, both over the same positions? It may be 1.1 times as large, the
 * limit that the project has for the cpu device beside llama.cpp (scripts/oracle/kl.py). Both are means over some hundred
 * positions of errors that fall differently and are of one size, so three standard errors of their difference come on
 * top: the cpu device's, once for itself and once for the other. */
static inline bool recorded_kl_holds(const recorded_kl *device, const recorded_kl *cpu) {
  return recorded_kl_mean(device) <= 1.1 * recorded_kl_mean(cpu) + 3 * sqrt((1 + 1.21) * recorded_kl_error(cpu));
}

#endif
