/* SPDX-License-Identifier: MIT
 * Logits against the float64 oracle's recorded numbers: whole rows on the tiny models (every device), and on the real
 * ones the best 32, the log-sum-exp and 64 fixed columns of every position of five prompts (tests/models/README.md). */
#include <math.h>
#include <rung/model.h>

#include "../test.h"
#include "fetched.h"
#include "formats/npy.h"

typedef struct world {
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_generator *generator;
  rung_model_info info;
} world;

enum { CHUNK = 256, MAX_IDS = 4096 };

static bool open_world(world *w, const char *device, const char *path, rung_quant quant) {
  *w = (world){0};
  rung_error error = {0};
  rung_model_options mo = rung_model_options_default();
  mo.quant = quant;
  rung_generate_options go = rung_generate_options_default();
  go.chunk = go.logits = CHUNK;
  go.kv = RUNG_TYPE_F32;
  go.context = 1024;
  const rung_source source = rung_source_path(path);
  rung_status s = rung_host_create(NULL, &error, &w->host);
  if (!s) s = rung_device_create(w->host, device, NULL, &error, &w->device);
  if (!s) s = rung_model_open(w->device, &source, &mo, &error, &w->model);
  if (!s) s = rung_generator_create(w->model, &go, &error, &w->generator);
  CHECK_OK(s);
  if (s)
    fprintf(stderr, "  %s: %s\n", path, error.message);
  else
    rung_model_get_info(w->model, &w->info);
  return !s;
}

static void close_world(world *w) {
  rung_generator_destroy(w->generator);
  rung_model_release(w->model);
  rung_device_release(w->device);
  rung_host_release(w->host);
}

static int64_t read_ids(const char *path, int32_t *out) {
  FILE *f = fopen(path, "r");
  int64_t n = 0;
  while (f && n < MAX_IDS && fscanf(f, "%d", &out[n]) == 1) n++;
  if (f) fclose(f);
  return n;
}

static bool open_npy(world *w, rung_npy *npy, const char *path) {
  const rung_source source = rung_source_path(path);
  rung_error error = {0};
  const rung_status s = rung_npy_open(npy, w->host, &source, &error);
  CHECK_OK(s);
  if (s) fprintf(stderr, "  %s\n", error.message);
  return !s;
}

/* Rows [at, at + n) of the text. */
static const float *run_chunk(world *w, const int32_t *ids, int64_t at, int64_t n) {
  int32_t wanted[CHUNK];
  for (int32_t i = 0; i < n; i++) wanted[i] = i;
  const rung_rows rows = {0, (int32_t)n};
  const float *logits = NULL;
  const rung_status s = rung_generator_run(w->generator, &rows, 1, ids + at, wanted, (int32_t)n, &logits);
  CHECK_OK(s);
  if (s) fprintf(stderr, "  %s\n", rung_generator_message(w->generator));
  return s ? NULL : logits;
}

static int32_t best(const float *row, int64_t n) {
  int32_t b = 0;
  for (int64_t i = 1; i < n; i++)
    if (row[i] > row[b]) b = (int32_t)i;
  return b;
}

/* ---- tiny models: every logit */

/* f32 arithmetic over three layers of width 64 differs from float64 by a few 1e-7 of the largest logit (measured 2e-7
 * to 3e-7 on every device); 2e-6 leaves room for other orders of summation and for nothing else. */
static const double TINY_EXACT = 2e-6;
/* Eight-bit activations: measured 3e-2 of the largest logit on random weights of width 64 (few terms to average over).
 */
static const double TINY_FAST = 8e-2;

static void tiny(const char *device, const char *family, rung_quant quant, double bound) {
  char path[1200];
  world w;
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s.gguf", family);
  if (!open_world(&w, device, path, quant)) {
    close_world(&w);
    return;
  }
  for (const char *prompt = "ab"; *prompt; prompt++) {
    int32_t ids[MAX_IDS];
    rung_npy want;
    snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s.%c.ids", family, *prompt);
    const int64_t n = read_ids(path, ids);
    CHECK(n > 0);
    snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s.%c.logits.npy", family, *prompt);
    CHECK_OK(rung_generator_reset(w.generator, 0));
    const float *got = run_chunk(&w, ids, 0, n);
    if (!got || !open_npy(&w, &want, path)) continue;
    const double *exact = want.data;
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < n * w.info.vocabulary; i++) {
      largest = fmax(largest, fabs(exact[i]));
      worst = fmax(worst, isnan(got[i]) ? (double)INFINITY : fabs(exact[i] - (double)got[i]));
    }
    CHECK(worst <= bound * largest);
    printf("%s %s %s: largest difference %.2g of the largest logit\n", device, path + sizeof RUNG_SOURCE_DIR + 18,
           quant == RUNG_QUANT_EXACT ? "exact" : "fast", worst / largest);
    rung_npy_close(&want);
  }
  close_world(&w);
}

static void test_tiny_exact(void) {
  static const char *const devices[] = {"cpu", "ref"};
  for (int d = 0; d < 2; d++) {
    tiny(devices[d], "llama", RUNG_QUANT_EXACT, TINY_EXACT);
    tiny(devices[d], "gemma3", RUNG_QUANT_EXACT, TINY_EXACT);
  }
}
static void test_tiny_fast(void) {
  tiny("cpu", "llama", RUNG_QUANT_FAST, TINY_FAST);
  tiny("cpu", "gemma3", RUNG_QUANT_FAST, TINY_FAST);
}

/* ---- real models */

/* The bound: 1e-4 of the largest logit, and the same best token unless the oracle's own gap is smaller. */
static const double REAL_EXACT = 1e-4;
enum { TOP = 32, COLUMNS = 64 };

typedef struct expectation {
  rung_npy top_ids, top_logits, lse, max_abs, columns, column_logits;
  double largest;
} expectation;

static bool open_expectation(world *w, expectation *e, const char *model, const char *prompt) {
  char path[1200];
  const struct {
    const char *name;
    rung_npy *npy;
  } parts[] = {{"top_ids", &e->top_ids},
               {"top_logits", &e->top_logits},
               {"lse", &e->lse},
               {"max_abs", &e->max_abs},
               {"column_logits", &e->column_logits}};
  *e = (expectation){0};
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/expect/%s/columns.npy", model);
  if (!open_npy(w, &e->columns, path)) return false;
  for (size_t i = 0; i < RUNG_COUNT(parts); i++) {
    snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/expect/%s/%s.%s.npy", model, prompt, parts[i].name);
    if (!open_npy(w, parts[i].npy, path)) return false;
  }
  for (int64_t i = 0; i < e->max_abs.extent[0]; i++)
    e->largest = fmax(e->largest, ((const double *)e->max_abs.data)[i]);
  return true;
}

static void close_expectation(expectation *e) {
  rung_npy_close(&e->top_ids), rung_npy_close(&e->top_logits), rung_npy_close(&e->lse);
  rung_npy_close(&e->max_abs), rung_npy_close(&e->columns), rung_npy_close(&e->column_logits);
}

static double position_error(const expectation *e, int64_t p, const float *row, int64_t vocabulary) {
  const int32_t *ids = (const int32_t *)e->top_ids.data + p * TOP, *column = e->columns.data;
  const double *top = (const double *)e->top_logits.data + p * TOP,
               *at = (const double *)e->column_logits.data + p * COLUMNS;
  const double largest = (double)row[best(row, vocabulary)];
  double worst = 0, sum = 0;
  for (int i = 0; i < TOP; i++) worst = fmax(worst, fabs(top[i] - (double)row[ids[i]]));
  for (int i = 0; i < COLUMNS; i++) worst = fmax(worst, fabs(at[i] - (double)row[column[i]]));
  for (int64_t i = 0; i < vocabulary; i++) sum += exp((double)row[i] - largest);
  const double lse = largest + log(sum);
  return isnan(lse) ? (double)INFINITY : fmax(worst, fabs(lse - ((const double *)e->lse.data)[p]));
}

static void check_prompt(world *w, const char *model, const char *prompt) {
  char path[1200];
  int32_t ids[MAX_IDS];
  expectation e;
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/prompts/%s/%s.ids", model, prompt);
  const int64_t n = read_ids(path, ids);
  if (!open_expectation(w, &e, model, prompt)) return;
  CHECK_EQ_I64(e.lse.extent[0], n);
  CHECK_OK(rung_generator_reset(w->generator, 0));
  double worst = 0;
  int64_t excused = 0;
  for (int64_t at = 0; at < n; at += CHUNK) {
    const int64_t rows = n - at < CHUNK ? n - at : CHUNK;
    const float *logits = run_chunk(w, ids, at, rows);
    if (!logits) break;
    for (int64_t r = 0; r < rows; r++) {
      const float *row = logits + r * w->info.vocabulary;
      const double *top = (const double *)e.top_logits.data + (at + r) * TOP;
      worst = fmax(worst, position_error(&e, at + r, row, w->info.vocabulary));
      const bool close = top[0] - top[1] < REAL_EXACT * e.largest;
      const bool same = best(row, w->info.vocabulary) == ((const int32_t *)e.top_ids.data)[(at + r) * TOP];
      CHECK(same || close);
      excused += !same;
    }
  }
  CHECK(worst <= REAL_EXACT * e.largest);
  printf("%s %s: %" PRId64 " positions, largest difference %.2g of the largest logit, %" PRId64
         " best tokens excused\n",
         model, prompt, n, worst / e.largest, excused);
  close_expectation(&e);
}

static void real(const char *model) {
  static const char *const prompts[] = {"short", "chat", "code", "languages", "long"};
  char path[1024];
  if (test_slow()) SKIP("too slow here");
  if (!fetched_model(model, path, sizeof path)) {
    CHECK(!"the model is not there; run scripts/models.py fetch");
    return;
  }
  world w;
  if (open_world(&w, "cpu", path, RUNG_QUANT_EXACT))
    for (size_t i = 0; i < RUNG_COUNT(prompts); i++) check_prompt(&w, model, prompts[i]);
  close_world(&w);
}

static void test_smollm2(void) { real("smollm2"); }
static void test_gemma3(void) { real("gemma3"); }

int main(void) {
  RUN(test_tiny_exact);
  RUN(test_tiny_fast);
  RUN(test_smollm2);
  RUN(test_gemma3);
  return TEST_END();
}
