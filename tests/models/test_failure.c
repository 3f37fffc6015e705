/* SPDX-License-Identifier: MIT
 * Whole scenarios on tiny models with the n-th call failing, for every n and every kind of call (allocation, commit,
 * thread, map, read): a status each time, nothing leaks, and the same call succeeds next. */
#include <rung/model.h>

#include "../held.h"
#include "../test.h"
#include "base/host.h"
#include "base/pool.h"

static const char *const kinds[] = {"allocation", "commit", "thread start", "map", "read"};

typedef struct objects {
  rung_device *device;
  rung_model *model;
  rung_generator *generator;
} objects;

static rung_status generate(objects *o, rung_error *error, int32_t *out_ids, size_t *out_count) {
  int32_t *ids;
  size_t count;
  RUNG_TRY(rung_model_encode(o->model, "hello there", 11, RUNG_TEXT_ADD_SPECIAL, error, &ids, &count));
  rung_status status = rung_generator_prompt(o->generator, 0, ids, count);
  if (!status) status = rung_generator_prompt(o->generator, 1, ids, count > 2 ? 2 : count);
  rung_ids_free(o->model, ids, count);
  rung_sample_options greedy = rung_sample_options_default();
  greedy.temperature = 0;
  if (!status) status = rung_generator_sampling(o->generator, 0, &greedy);
  const rung_logit_bias bias = {3, 0.5f};
  greedy.bias = &bias;
  greedy.biases = 1;
  greedy.repeat_penalty = 1.2;
  greedy.dry_multiplier = 0.8;
  greedy.log_probabilities = 4;
  if (!status) status = rung_generator_sampling(o->generator, 1, &greedy);
  *out_count = 0;
  for (int i = 0; i < 6 && !status; i++) {
    rung_token tokens[2];
    size_t n;
    status = rung_generator_step(o->generator, tokens, &n, NULL);
    for (size_t t = 0; t < n && !status; t++) out_ids[(*out_count)++] = tokens[t].id;
  }
  if (status) return rung_fail(error, status, "%s", rung_generator_message(o->generator));
  char *text;
  size_t bytes;
  RUNG_TRY(rung_model_decode(o->model, out_ids, *out_count, false, error, &text, &bytes));
  rung_text_free(rung_device_host(o->device), text, bytes);
  return RUNG_OK;
}

static rung_status scenario(rung_host *host, const char *path, rung_source_mode mode, objects *o, rung_error *error,
                            int32_t *ids, size_t *count) {
  rung_device_options device = rung_device_options_default();
  device.threads = 3;
  RUNG_TRY(rung_device_create(host, "cpu", &device, error, &o->device));
  rung_source source = rung_source_path(path);
  source.mode = mode;
  RUNG_TRY(rung_model_open(o->device, &source, NULL, error, &o->model));
  rung_generate_options options = rung_generate_options_default();
  options.sequences = 2;
  options.context = 96;
  options.chunk = 5;
  options.choose = mode == RUNG_SOURCE_COPY ? RUNG_CHOOSE_DEVICE : RUNG_CHOOSE_HOST;
  RUNG_TRY(rung_generator_create(o->model, &options, error, &o->generator));
  return generate(o, error, ids, count);
}

static void drop(objects *o) {
  rung_generator_destroy(o->generator);
  rung_model_release(o->model);
  rung_device_release(o->device);
  *o = (objects){0};
}

/* Returns how many calls of the kind a whole scenario makes. */
static int64_t every_nth(const char *path, rung_source_mode mode, rung_fault kind) {
  int32_t want[32], got[32];
  size_t want_count, got_count;
  int64_t total = 0;
  for (int64_t n = 0;; n++) { /* n 0: nothing fails */
    rung_host *host;
    rung_error error = {0};
    if (rung_host_create(NULL, &error, &host)) {
      CHECK(!"host");
      return 0;
    }
    const uint64_t before = held(host);
    if (kind == RUNG_FAULT_THREAD) rung_pool_stop(rung_pool_shared(host));
    test_fault f = {.kind = kind, .at = n};
    objects o = {0};
    rung_host_set_fault(host, test_fault_hit, &f);
    const rung_status status = scenario(host, path, mode, &o, &error, got, &got_count);
    if (n && f.hit && kind != RUNG_FAULT_THREAD) {
      CHECK(status != RUNG_OK);
      CHECK(status == error.status && error.message[0] != 0);
    } else {
      if (status) fprintf(stderr, "  %s %" PRId64 ": %s\n", kinds[kind], n, error.message);
      CHECK_OK(status);
    }
    if (status && o.generator) { /* the failed call again, in the same objects */
      f.at = 0;
      for (int32_t slot = 0; slot < 2; slot++) CHECK_OK(rung_generator_reset(o.generator, slot));
      CHECK_OK(generate(&o, &error, got, &got_count));
    }
    if (!n) {
      memcpy(want, got, sizeof want);
      want_count = got_count;
      total = f.count[kind];
    } else if (!status || o.generator) {
      CHECK_EQ_I64(got_count, want_count);
      CHECK(memcmp(got, want, want_count * sizeof *want) == 0);
    }
    drop(&o);
    CHECK_EQ_I64(held(host), before);
    rung_host_set_fault(host, NULL, NULL);
    rung_host_release(host);
    if (n >= total) return total;
  }
}

static void check(const char *path) {
  for (int mode = 0; mode < 2; mode++) {
    for (int kind = 0; kind < RUNG_FAULTS; kind++) {
      if (test_slow() && kind == RUNG_FAULT_ALLOC && mode == 1) continue;
      const int64_t calls = every_nth(path, mode ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP, (rung_fault)kind);
      printf("%s, %s: %" PRId64 " calls of kind %s, each failed once\n", path, mode ? "copied" : "mapped", calls,
             kinds[kind]);
      if (kind == RUNG_FAULT_ALLOC) CHECK(calls >= 300);
    }
  }
}

static void test_llama(void) {
  if (!RUNG_HAVE_PCRE2) SKIP("its pre-tokeniser needs PCRE2");
  check(RUNG_SOURCE_DIR "/tests/models/tiny/llama.gguf");
}
static void test_gemma3(void) { check(RUNG_SOURCE_DIR "/tests/models/tiny/gemma3.gguf"); }

int main(void) {
  RUN(test_llama);
  RUN(test_gemma3);
  return TEST_END();
}
