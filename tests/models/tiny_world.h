/* SPDX-License-Identifier: MIT
 * A tiny model and generators over it, for tests. */
#ifndef RUNG_TESTS_TINY_WORLD_H
#define RUNG_TESTS_TINY_WORLD_H

#include <rung/model.h>

#include "../test.h"

static const char *const tiny_paths[] = {RUNG_SOURCE_DIR "/tests/models/tiny/llama.gguf",
                                         RUNG_SOURCE_DIR "/tests/models/tiny/gemma3.gguf"};

typedef struct tiny {
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_model_info info;
  rung_error error;
} tiny;

static inline bool tiny_open(tiny *t, const char *path, int threads) {
  *t = (tiny){0};
  rung_device_options device = rung_device_options_default();
  device.threads = threads;
  const rung_source source = rung_source_path(path);
  rung_status s = rung_host_create(NULL, &t->error, &t->host);
  if (!s) s = rung_device_create(t->host, "cpu", &device, &t->error, &t->device);
  if (!s) s = rung_model_open(t->device, &source, NULL, &t->error, &t->model);
  test_state.checks++;
  if (s) TEST_FAIL_("%s: %s", path, t->error.message);
  if (!s) rung_model_get_info(t->model, &t->info);
  return !s;
}

/* Bytes of all classes. */
static inline uint64_t tiny_held(const tiny *t) {
  const rung_memory m = rung_host_memory(t->host);
#define X(name, text) +m.name
  return 0 RUNG_MEMORY_MAP(X);
#undef X
}

static inline void tiny_close(tiny *t) {
  rung_model_release(t->model);
  rung_device_release(t->device);
  if (t->host) {
    const rung_memory m = rung_host_memory(t->host);
    CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state + m.weights + m.load, 0);
  }
  rung_host_release(t->host);
}

static inline rung_generate_options tiny_options(int32_t sequences, int64_t context, int64_t chunk) {
  rung_generate_options o = rung_generate_options_default();
  o.sequences = sequences;
  o.context = context;
  o.chunk = chunk;
  return o;
}

static inline rung_generator *tiny_generator(tiny *t, const rung_generate_options *o) {
  rung_generator *g = NULL;
  const rung_status s = rung_generator_create(t->model, o, &t->error, &g);
  test_state.checks++;
  if (s) TEST_FAIL_("generator: %s", t->error.message);
  return g;
}

static inline void tiny_greedy(rung_generator *g, int32_t slots) {
  rung_sample_options greedy = rung_sample_options_default();
  greedy.temperature = 0;
  for (int32_t s = 0; s < slots; s++) CHECK_OK(rung_generator_sampling(g, s, &greedy));
}

/* Some text: id i of text `which`. */
static inline int32_t tiny_id(const tiny *t, int which, int64_t i) {
  return (int32_t)((uint64_t)((i + 1) * 2654435761u + (uint64_t)which * 40503u) % (uint64_t)t->info.vocabulary);
}

static inline rung_status tiny_prompt(tiny *t, rung_generator *g, int32_t slot, int which, int64_t length) {
  int32_t ids[1024];
  for (int64_t i = 0; i < length && i < 1024; i++) ids[i] = tiny_id(t, which, i);
  return rung_generator_prompt(g, slot, ids, (size_t)length);
}

/* What each slot got, a few tokens each. */
enum { TINY_SLOTS = 8, TINY_TOKENS = 64 };
typedef struct tiny_texts {
  int32_t id[TINY_SLOTS][TINY_TOKENS];
  int count[TINY_SLOTS];
} tiny_texts;

/* Until every slot of the mask has `tokens` of them (or nothing is left to do); false on an error. */
static inline bool tiny_go_on(rung_generator *g, uint32_t slots, int tokens, tiny_texts *texts) {
  for (;;) {
    bool done = true;
    for (int s = 0; s < TINY_SLOTS; s++) done &= !(slots >> s & 1) || texts->count[s] >= tokens;
    if (done) return true;
    rung_token out[TINY_SLOTS];
    size_t n;
    bool busy;
    const rung_status status = rung_generator_step(g, out, &n, &busy);
    test_state.checks++;
    if (status) {
      TEST_FAIL_("step: %s", rung_generator_message(g));
      return false;
    }
    for (size_t i = 0; i < n; i++)
      if (texts->count[out[i].slot] < TINY_TOKENS) texts->id[out[i].slot][texts->count[out[i].slot]++] = out[i].id;
    if (!busy) return true;
  }
}

#endif
