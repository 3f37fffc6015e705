/* SPDX-License-Identifier: MIT
 * Whole models on the CUDA device: logits of prompts and of decoding, contiguous and paged, against the cpu device.
 * Skipped where there is no GPU. */
#include <math.h>
#include <string.h>

#include "cuda_device.h"
#include "tiny_world.h"

enum { CONTEXT = 256, CHUNK = 128 };

typedef struct side {
  tiny t;
  rung_generator *g;
} side;

static bool open_side(side *s, const char *path, const char *device, rung_quant quant, bool deterministic,
                      const rung_generate_options *o) {
  memset(s, 0, sizeof *s);
  const rung_source source = rung_source_path(path);
  rung_model_options mo = rung_model_options_default();
  mo.quant = quant;
  mo.deterministic = deterministic;
  rung_status status = rung_host_create(NULL, &s->t.error, &s->t.host);
  if (!status) status = rung_device_create(s->t.host, device, NULL, &s->t.error, &s->t.device);
  if (!status) status = rung_model_open(s->t.device, &source, &mo, &s->t.error, &s->t.model);
  if (!status) rung_model_get_info(s->t.model, &s->t.info);
  if (!status) status = rung_generator_create(s->t.model, o, &s->t.error, &s->g);
  test_state.checks++;
  if (status) TEST_FAIL_("%s on %s: %s", path, device, s->t.error.message);
  return !status;
}

static void close_side(side *s) {
  rung_generator_destroy(s->g);
  tiny_close(&s->t);
}

/* Root of the mean square of a - b over that of b. */
static double distance(const float *a, const float *b, int64_t n) {
  double off = 0, all = 0;
  for (int64_t i = 0; i < n; i++) {
    const double d = (double)a[i] - (double)b[i];
    off += d * d;
    all += (double)b[i] * (double)b[i];
  }
  return sqrt(off / all);
}

static void run_both(side *gpu, side *cpu, const rung_rows *rows, int32_t count, const int32_t *ids, int32_t total,
                     double bound, const char *what) {
  int32_t wanted[CHUNK];
  const int32_t first = total > 8 ? total - 8 : 0, n = total - first;
  const float *a = NULL, *b = NULL;
  for (int32_t i = 0; i < n; i++) wanted[i] = first + i;
  const rung_status x = rung_generator_run(gpu->g, rows, count, ids, wanted, n, &a),
                    y = rung_generator_run(cpu->g, rows, count, ids, wanted, n, &b);
  test_state.checks++;
  if (x || y) {
    TEST_FAIL_("%s: %s %s", what, rung_generator_message(gpu->g), rung_generator_message(cpu->g));
    return;
  }
  const double far = distance(a, b, (int64_t)n * gpu->t.info.vocabulary);
  test_state.checks++;
  if (!(far <= bound)) TEST_FAIL_("%s: logits are %g apart, the bound is %g", what, far, bound);
}

static void check_model(const char *path, rung_quant quant, bool deterministic, rung_type kv, int64_t blocks,
                        double bound) {
  side gpu, cpu;
  rung_generate_options o = rung_generate_options_default();
  o.sequences = 3;
  o.context = CONTEXT;
  o.chunk = CHUNK;
  o.logits = 8;
  o.kv = kv;
  o.blocks = blocks;
  const bool there = open_side(&gpu, path, "cuda", quant, deterministic, &o),
             both = open_side(&cpu, path, "cpu", quant, deterministic, &o) && there;
  char what[200];
  int32_t ids[CHUNK];
  snprintf(what, sizeof what, "%s, %s, kv %s%s%s", strrchr(path, '/'), quant == RUNG_QUANT_FAST ? "fast" : "exact",
           rung_type_name(kv), blocks ? ", paged" : "", deterministic ? ", deterministic" : "");
  if (both) {
    for (int i = 0; i < CHUNK; i++) ids[i] = tiny_id(&gpu.t, 1, i);
    run_both(&gpu, &cpu, (const rung_rows[]){{0, 100}}, 1, ids, 100, bound, what);
    run_both(&gpu, &cpu, (const rung_rows[]){{1, 7}, {0, 3}, {2, 21}}, 3, ids, 31, bound, what);
    for (int i = 0; i < 70; i++) /* past the first block of keys, and often enough to be captured */
      run_both(&gpu, &cpu, (const rung_rows[]){{0, 1}, {1, 1}, {2, 1}}, 3, ids + i % 32, 3, bound, what);
    run_both(&gpu, &cpu, (const rung_rows[]){{1, 1}}, 1, ids + 5, 1, bound, what);
  }
  close_side(&gpu);
  close_side(&cpu);
}

static void test_models(void) {
  for (size_t i = 0; i < RUNG_COUNT(tiny_paths); i++)
    for (int deterministic = 0; deterministic < 2; deterministic++) {
      check_model(tiny_paths[i], RUNG_QUANT_EXACT, deterministic, RUNG_TYPE_F32, 0, 2e-5);
      check_model(tiny_paths[i], RUNG_QUANT_EXACT, deterministic, RUNG_TYPE_F16, 0, 2e-3);
      check_model(tiny_paths[i], RUNG_QUANT_EXACT, deterministic, RUNG_TYPE_F32, 7, 2e-5);
      check_model(tiny_paths[i], RUNG_QUANT_FAST, deterministic, RUNG_TYPE_F16, 0, 8e-2);
    }
}

int main(void) {
  if (!cuda_is_here()) return 77;
  RUN(test_models);
  return TEST_END();
}
