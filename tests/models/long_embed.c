/* SPDX-License-Identifier: MIT
 * A thousand texts of 1 to 512 tokens through all-MiniLM-L6-v2: each vector has the same bits alone, at any budget of a
 * run and on any number of threads. Thousands of runs of changing sizes leave the memory where it was. */
#include "../process.h"
#include "embed_world.h"
#include "fetched.h"

enum { TEXTS = 1000, LONGEST = 512, WIDTH = 384 };

static texts t;

/* Short and long ones equally often by the logarithm; the extremes are among them. */
static void make_texts(void) {
  uint64_t seed = 11;
  t.ids = malloc((size_t)TEXTS * LONGEST * sizeof *t.ids);
  for (t.count = 0; t.count < TEXTS; t.count++) {
    int64_t n = (int64_t)exp((double)test_uniform(&seed, 0, 1) * log(LONGEST + 1));
    if (n > LONGEST || t.count == 7) n = LONGEST;
    int32_t *ids = t.ids + t.total;
    for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)test_below(&seed, 30522);
    t.text[t.count] = (rung_token_list){ids, (size_t)n};
    t.total += (size_t)n;
  }
}

static float *vectors_of(const char *path, int threads, int64_t rows, bool alone) {
  world w;
  CHECK_OK(world_open(&w, "cpu", threads, path));
  rung_encoder_options options = rung_encoder_options_default();
  options.rows = rows;
  options.longest = LONGEST;
  rung_encoder *e = world_encoder(&w, &options);
  float *out;
  if (alone) {
    out = malloc((size_t)TEXTS * WIDTH * sizeof *out);
    for (size_t i = 0; i < t.count; i++) CHECK_OK(rung_encoder_run(e, &t.text[i], 1, out + i * WIDTH));
  } else {
    out = world_vectors(e, t.text, t.count);
  }
  rung_encoder_destroy(e);
  world_close(&w);
  return out;
}

static void test_bits(void) {
  static const struct {
    int threads;
    int64_t rows;
    bool alone;
  } ways[] = {{1, 1024, false}, {2, 512, true}, {2, 512, false}, {3, 4096, false}, {2, 777, false}};
  char path[1024];
  if (!fetched_model("minilm", path, sizeof path)) {
    CHECK(!"the model is not there; run scripts/models.py fetch");
    return;
  }
  float *want = NULL;
  for (size_t i = 0; i < RUNG_COUNT(ways); i++) {
    float *got = vectors_of(path, ways[i].threads, ways[i].rows, ways[i].alone);
    if (!want) {
      want = got;
      continue;
    }
    size_t off = 0;
    for (size_t k = 0; k < t.count; k++) off += memcmp(want + k * WIDTH, got + k * WIDTH, WIDTH * sizeof *got) != 0;
    CHECK_EQ_I64(off, 0);
    free(got);
  }
  free(want);
  printf("%zu texts, %zu tokens, %zu ways, one result\n", t.count, t.total, RUNG_COUNT(ways));
}

/* 10,000 runs of random lengths and numbers of texts: after the first thousand nothing grows. */
static void test_memory(void) {
  world w;
  uint64_t seed = 5;
  CHECK_OK(world_open(&w, "cpu", 2, TINY_MODELS "bert"));
  rung_encoder *e = world_encoder(&w, NULL);
  float *out = malloc((size_t)64 * 32 * sizeof *out);
  int32_t ids[130];
  for (int i = 0; i < 130; i++) ids[i] = i % 61;
  uint64_t before = 0;
  uint64_t held = 0;
  for (int run = 0; run < 10000; run++) {
    rung_token_list text[64];
    const size_t n = 1 + (size_t)test_below(&seed, 64);
    for (size_t i = 0; i < n; i++) text[i] = (rung_token_list){ids, (size_t)test_below(&seed, 131)};
    CHECK_OK(rung_encoder_run(e, text, n, out));
    if (run == 1000) {
      before = process_bytes("VmRSS");
      held = rung_context_memory(rung_encoder_context(e)).activations;
    }
  }
  CHECK(process_bytes("VmRSS") < before + (1 << 20));
  CHECK_EQ_I64(rung_context_memory(rung_encoder_context(e)).activations, held);
  free(out);
  rung_encoder_destroy(e);
  world_close(&w);
}

int main(void) {
  make_texts();
  RUN(test_bits);
  RUN(test_memory);
  texts_free(&t);
  return TEST_END();
}
