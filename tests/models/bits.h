/* SPDX-License-Identifier: MIT
 * The bit matrix: the logits of one text, whole and in chunks, on several threads, alone and beside other sequences,
 * must be identical; and every variant of every step must have been chosen at least once along the way. */
#ifndef RUNG_TESTS_BITS_H
#define RUNG_TESTS_BITS_H

#include <rung/model.h>

#include "../test.h"
#include "runtime/runtime.h"

typedef struct bits_case {
  const char *path;
  rung_quant quant;
  rung_type kv;
  int64_t length;       /* of the text */
  const int64_t *chunk; /* 0 ends; the first is the reference */
  int64_t largest_chunk;
  const int *threads; /* 0 ends */
  /* Of a device that is deterministic when asked: its name (NULL: cpu), and blocks that the state's slots share (0:
   * contiguous). */
  const char *device;
  int64_t blocks;
} bits_case;

/* Which (step, variant) pairs were run. */
typedef struct bits_seen {
  const rung_plan *plan;
  uint8_t *variant; /* by plan->variant index */
} bits_seen;

static inline void bits_note(void *self, const rung_step_info *info) {
  bits_seen *seen = self;
  const rung_step *step = &seen->plan->step[info->step];
  for (uint32_t v = step->variant; v < step->variant + step->variants; v++)
    if (strcmp(seen->plan->variant[v].kernel->name, info->kernel) == 0) seen->variant[v] = 1;
}

static int32_t bits_id(int64_t i, int64_t vocabulary) {
  return (int32_t)((uint64_t)(i * 2654435761u + 12345) % (uint64_t)vocabulary);
}

/* Hash of each position's logits row. */
static void bits_hash(const float *logits, int64_t rows, int64_t vocabulary, uint64_t *out) {
  for (int64_t r = 0; r < rows; r++) {
    const rung_hash h = rung_hash_bytes(logits + r * vocabulary, (size_t)vocabulary * sizeof(float));
    out[r] = h.low ^ h.high;
  }
}

/* The text in slot 0 in chunks; `beside` others of other lengths advance in the same runs. */
static bool bits_run(rung_generator *g, const bits_case *c, int64_t vocabulary, int64_t chunk, int beside,
                     uint64_t *out) {
  static const int64_t other[] = {3, 1, 5};
  int32_t ids[4096], wanted[4096];
  bool good = true;
  for (int32_t s = 0; s < 4; s++) good &= !rung_generator_reset(g, s);
  for (int64_t at = 0; at < c->length && good; at += chunk) {
    const int64_t n = c->length - at < chunk ? c->length - at : chunk;
    rung_rows rows[4];
    int32_t count = 0, total = 0, first = 0;
    for (int s = 1; s <= beside; s++) {
      if (s == 2) { /* the text stands between the others */
        first = total;
        rows[count++] = (rung_rows){0, (int32_t)n};
        for (int64_t i = 0; i < n; i++) ids[total++] = bits_id(at + i, vocabulary);
      }
      int64_t more = other[s - 1];
      if (rung_generator_length(g, s) + more > c->length) more = 0; /* an empty sequence is legal */
      rows[count++] = (rung_rows){s, (int32_t)more};
      for (int64_t i = 0; i < more; i++) ids[total++] = bits_id(7 * s + i, vocabulary);
    }
    if (beside < 2) {
      first = total;
      rows[count++] = (rung_rows){0, (int32_t)n};
      for (int64_t i = 0; i < n; i++) ids[total++] = bits_id(at + i, vocabulary);
    }
    for (int64_t i = 0; i < n; i++) wanted[i] = first + (int32_t)i;
    const float *logits;
    const rung_status status = rung_generator_run(g, rows, count, ids, wanted, (int32_t)n, &logits);
    if (status) fprintf(stderr, "  %s\n", rung_generator_message(g));
    good = !status;
    if (good) bits_hash(logits, n, vocabulary, out + at);
  }
  CHECK(good);
  return good;
}

static void bits_compare(const uint64_t *want, const uint64_t *got, int64_t n, const char *what, int64_t chunk,
                         int threads, int beside) {
  int64_t differ = 0, first = -1;
  for (int64_t i = 0; i < n; i++)
    if (want[i] != got[i] && differ++ == 0) first = i;
  CHECK_EQ_I64(differ, 0);
  if (differ)
    fprintf(stderr,
            "  %s: chunk %" PRId64 ", %d threads, %d beside: %" PRId64 " of %" PRId64
            " positions differ, the first is %" PRId64 "\n",
            what, chunk, threads, beside, differ, n, first);
}

static inline void bits_check_variants(const bits_seen *seen, const char *what) {
  const rung_plan *plan = seen->plan;
  uint32_t missed = 0;
  for (uint32_t s = 0; s < plan->steps; s++)
    for (uint32_t v = 0; v < plan->step[s].variants; v++)
      if (!seen->variant[plan->step[s].variant + v] && missed++ < 3)
        fprintf(stderr, "  %s: variant %s of step %u (%s) was never chosen\n", what,
                plan->variant[plan->step[s].variant + v].kernel->name, s, plan->step[s].op->name);
  CHECK_EQ_I64(missed, 0);
}

/* What a case is run with. */
typedef struct bits_world {
  rung_device *device;
  rung_model *model;
  rung_generator *g;
  rung_model_info info;
} bits_world;

static rung_status bits_open(rung_host *host, const bits_case *c, int threads, rung_error *error, bits_world *out) {
  rung_device_options device_options = rung_device_options_default();
  device_options.threads = threads;
  rung_model_options mo = rung_model_options_default();
  mo.quant = c->quant;
  mo.deterministic = true; /* which the cpu is anyway */
  rung_generate_options go = rung_generate_options_default();
  go.sequences = 4;
  go.kv = c->kv;
  go.context = c->length;
  go.chunk = c->largest_chunk + 16;
  go.logits = c->largest_chunk;
  go.blocks = c->blocks;
  const rung_source source = rung_source_path(c->path);
  *out = (bits_world){0};
  rung_status status = rung_device_create(host, c->device ? c->device : "cpu", &device_options, error, &out->device);
  if (!status) status = rung_model_open(out->device, &source, &mo, error, &out->model);
  if (!status) status = rung_generator_create(out->model, &go, error, &out->g);
  if (!status) rung_model_get_info(out->model, &out->info);
  return status;
}

static void bits_close(bits_world *w) {
  rung_generator_destroy(w->g);
  rung_model_release(w->model);
  rung_device_release(w->device);
}

static inline void bits_matrix(const bits_case *c) {
  char what[160];
  const char *file = strrchr(c->path, '/');
  snprintf(what, sizeof what, "%.100s %s %s", file ? file + 1 : c->path,
           c->quant == RUNG_QUANT_EXACT ? "exact" : "fast", rung_type_name(c->kv));
  rung_error error = {0};
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  uint64_t *want = calloc((size_t)c->length, sizeof *want), *got = calloc((size_t)c->length, sizeof *got);
  bits_seen seen = {0};
  bool first = true;
  int runs = 0;
  for (const int *t = c->threads; *t; t++) {
    bits_world w;
    const rung_status status = bits_open(host, c, *t, &error, &w);
    rung_generator *g = w.g;
    CHECK_OK(status);
    if (status) {
      fprintf(stderr, "  %s: %s\n", what, error.message);
    } else {
      const rung_plan *plan = rung_generator_program(g)->plan;
      if (!seen.variant) seen.variant = calloc(plan->variants + 1, 1);
      seen.plan = plan;
      rung_context_on_step(rung_generator_context(g), bits_note, &seen);
      for (int beside = 0; beside <= 3; beside += 3) {
        for (const int64_t *chunk = c->chunk; *chunk; chunk++) {
          if (!bits_run(g, c, w.info.vocabulary, *chunk, beside, first ? want : got)) continue;
          if (!first) bits_compare(want, got, c->length, what, *chunk, *t, beside);
          first = false;
          runs++;
        }
      }
      if (!t[1]) bits_check_variants(&seen, what);
    }
    bits_close(&w);
  }
  printf("%s: %d ways to run %" PRId64 " positions, one result\n", what, runs, c->length);
  free(want);
  free(got);
  free(seen.variant);
  rung_host_release(host);
}

#endif
