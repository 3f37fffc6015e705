/* SPDX-License-Identifier: MIT
 * Text models under every precision policy: with weights of f32, f16, bf16 and quantised ones, experts too. Logits stay
 * within what roundings one after the other can do to those in f32; a text in pieces and on several threads has the same
 * bits. */
#include <math.h>
#include <rung/model.h>

#include "../test.h"

static const char *const paths[] = {
    RUNG_SOURCE_DIR "/tests/models/tiny/llama-f32",         RUNG_SOURCE_DIR "/tests/models/tiny/llama-f16",
    RUNG_SOURCE_DIR "/tests/models/tiny/gemma3-bf16",       RUNG_SOURCE_DIR "/tests/models/tiny/llama.gguf",
    RUNG_SOURCE_DIR "/tests/models/tiny/families/qwen3moe", RUNG_SOURCE_DIR "/tests/models/tiny/families/phi3",
    RUNG_SOURCE_DIR "/tests/models/tiny/families/gemma2"};
static const char *const policies[] = {"f16", "bf16", "mixed", "mixed-f16"};

enum { LENGTH = 40, MOST_VOCABULARY = 512 };

typedef struct world {
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_generator *generator;
  rung_model_info info;
  rung_error error;
} world;

static bool open_world(world *w, const char *device, const char *path, const char *policy, int threads) {
  *w = (world){NULL};
  rung_model_options options = rung_model_options_default();
  rung_generate_options generate = rung_generate_options_default();
  rung_device_options o = rung_device_options_default();
  const rung_source source = rung_source_path(path);
  options.quant = RUNG_QUANT_EXACT;
  CHECK(rung_precision_find(policy, &options.precision));
  generate.kv = RUNG_TYPE_F32;
  generate.chunk = generate.logits = generate.context = LENGTH;
  o.threads = threads;
  rung_status s = rung_host_create(NULL, &w->error, &w->host);
  if (!s) s = rung_device_create(w->host, device, &o, &w->error, &w->device);
  if (!s) s = rung_model_open(w->device, &source, &options, &w->error, &w->model);
  if (!s) s = rung_generator_create(w->model, &generate, &w->error, &w->generator);
  if (!s) rung_model_get_info(w->model, &w->info);
  test_state.checks++;
  if (s) TEST_FAIL_("%s, %s: %s", path, policy, w->error.message);
  CHECK(s || w->info.vocabulary <= MOST_VOCABULARY);
  return !s && w->info.vocabulary <= MOST_VOCABULARY;
}
static void close_world(world *w) {
  rung_generator_destroy(w->generator);
  rung_model_release(w->model);
  rung_device_release(w->device);
  rung_host_release(w->host);
}

/* Logits of every position of a text that is read in pieces. */
static bool read_text(world *w, int64_t piece, float *out) {
  CHECK_OK(rung_generator_reset(w->generator, 0));
  for (int64_t at = 0; at < LENGTH; at += piece) {
    int32_t ids[LENGTH], wanted[LENGTH];
    const int64_t n = LENGTH - at < piece ? LENGTH - at : piece;
    for (int64_t i = 0; i < n; i++) {
      ids[i] = (int32_t)((uint64_t)((at + i) * 2654435761u + 12345) % (uint64_t)w->info.vocabulary);
      wanted[i] = (int32_t)i;
    }
    const float *logits;
    const rung_status s =
        rung_generator_run(w->generator, &(rung_rows){0, (int32_t)n}, 1, ids, wanted, (int32_t)n, &logits);
    test_state.checks++;
    if (s) {
      TEST_FAIL_("%s", rung_generator_message(w->generator));
      return false;
    }
    memcpy(out + at * w->info.vocabulary, logits, (size_t)(n * w->info.vocabulary) * sizeof *out);
  }
  return true;
}

/* Experts are chosen by the largest of a row: what comes close is another choice in few bits, and no bound holds then. */
static bool chooses(const char *path, const char *policy) { return strstr(path, "moe") && strcmp(policy, "bf16") == 0; }

/* A layer rounds some twelve values that follow from one another, and what each is multiplied by; a norm hands on what
 * is relative to its row. Four times that for rows whose numbers cancel. */
static double bound_of(const world *w, const char *policy) {
  const double unit = strstr(policy, "bf16") || strcmp(policy, "mixed") == 0 ? 0x1p-8 : 0x1p-11;
  return 4 * (double)w->info.layers * 12 * unit;
}

static float want[LENGTH * MOST_VOCABULARY], got[LENGTH * MOST_VOCABULARY], again[LENGTH * MOST_VOCABULARY];

static void check(const char *device, const char *path) {
  world plain;
  if (open_world(&plain, device, path, "f32", 2) && read_text(&plain, LENGTH, want)) {
    for (size_t p = 0; p < RUNG_COUNT(policies); p++) {
      world w;
      if (!open_world(&w, device, path, policies[p], 1) || !read_text(&w, LENGTH, got)) {
        close_world(&w);
        continue;
      }
      const int64_t count = LENGTH * w.info.vocabulary;
      double largest = 0, worst = 0;
      for (int64_t i = 0; i < count; i++) {
        const double off = fabs((double)got[i] - (double)want[i]);
        largest = fmax(largest, fabs((double)want[i]));
        worst = off <= worst ? worst : off; /* NaN counts */
      }
      CHECK(isfinite(worst) && (chooses(path, policies[p]) || worst <= bound_of(&w, policies[p]) * largest));
      printf("%s, %s, %s: %.2g of the largest logit, %.2g of the bound\n", device, strrchr(path, '/') + 1, policies[p],
             worst / largest, worst / largest / bound_of(&w, policies[p]));
      if (strcmp(device, "cpu") == 0) {
        CHECK(read_text(&w, 7, again) && memcmp(got, again, (size_t)count * sizeof *got) == 0);
        CHECK(read_text(&w, 1, again) && memcmp(got, again, (size_t)count * sizeof *got) == 0);
        close_world(&w);
        if (open_world(&w, device, path, policies[p], 3))
          CHECK(read_text(&w, 13, again) && memcmp(got, again, (size_t)count * sizeof *got) == 0);
      }
      close_world(&w);
    }
  }
  close_world(&plain);
}

static void test_cpu(void) {
  for (size_t i = 0; i < RUNG_COUNT(paths); i++) check("cpu", paths[i]);
}
static void test_ref(void) {
  check("ref", paths[0]);
  if (!test_slow()) check("ref", paths[4]);
}

/* Callers read logits as f32, so a model's boundary stays so. */
static void test_boundary(void) {
  world w = {NULL};
  rung_model_options options = rung_model_options_default();
  const rung_source source = rung_source_path(paths[0]);
  options.precision.boundary = RUNG_TYPE_F16;
  CHECK_OK(rung_host_create(NULL, &w.error, &w.host));
  CHECK_OK(rung_device_create(w.host, "cpu", NULL, &w.error, &w.device));
  CHECK_STATUS(rung_model_open(w.device, &source, &options, &w.error, &w.model), RUNG_INVALID_ARGUMENT);
  CHECK(!w.model && strstr(w.error.message, "boundary") != NULL);
  close_world(&w);
}

int main(void) {
  RUN(test_boundary);
  RUN(test_cpu);
  RUN(test_ref);
  return TEST_END();
}
