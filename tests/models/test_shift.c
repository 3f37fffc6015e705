/* SPDX-License-Identifier: MIT
 * Texts longer than their context, prefixes copied from slot to slot, saved sequences, pools of blocks: with tiny models
 * of both families. What goes on elsewhere goes on with the same bits; what shifts goes on, or says why not. */
#include <math.h>

#include "tiny_world.h"

static void each_family(void (*test)(tiny *t)) {
  for (int f = 0; f < 2; f++) {
    tiny t;
    if (tiny_open(&t, tiny_paths[f], 2)) test(&t);
    tiny_close(&t);
  }
}

/* Logits behind each of `count` ids of text `which`, read one by one from id `first` on. */
static bool read_on(tiny *t, rung_generator *g, int32_t slot, int which, int64_t first, int64_t count, float *out) {
  for (int64_t i = 0; i < count; i++) {
    const int32_t id = tiny_id(t, which, first + i), wanted = 0;
    const rung_rows rows = {slot, 1};
    const float *logits = NULL;
    const rung_status status = rung_generator_run(g, &rows, 1, &id, &wanted, 1, &logits);
    test_state.checks++;
    if (status) {
      TEST_FAIL_("run: %s", rung_generator_message(g));
      return false;
    }
    if (out) memcpy(out + i * t->info.vocabulary, logits, (size_t)t->info.vocabulary * sizeof *out);
  }
  return true;
}

static float *new_logits(const tiny *t, int64_t rows) {
  float *p = calloc((size_t)(rows * t->info.vocabulary), sizeof *p);
  if (!p) abort();
  return p;
}

enum { TEXT = 150, FORK = 70, MORE = 4 }; /* beyond the tiny window */

/* ---- elsewhere, the same bits */

static void check_prefix(tiny *t) {
  const size_t bytes = (size_t)(MORE * t->info.vocabulary) * sizeof(float);
  float *want = new_logits(t, MORE), *got = new_logits(t, MORE);
  for (int blocks = 0; blocks < 2; blocks++) {
    rung_generate_options o = tiny_options(3, 200, 16);
    o.blocks = blocks ? 12 : 0;
    rung_generator *g = tiny_generator(t, &o);
    if (!g) break;
    CHECK(read_on(t, g, 0, 0, 0, FORK, NULL) && read_on(t, g, 2, 2, 0, 33, NULL));
    CHECK_OK(rung_state_copy(rung_generator_state(g), 1, rung_generator_state(g), 0, FORK, &t->error));
    CHECK(read_on(t, g, 0, 0, FORK, MORE, want));
    CHECK(read_on(t, g, 1, 0, FORK, MORE, got));
    CHECK(memcmp(want, got, bytes) == 0);
    CHECK(read_on(t, g, 1, 1, 0, 5, NULL)); /* they go their own ways */
    CHECK(read_on(t, g, 0, 0, FORK + MORE, MORE, want));
    CHECK_OK(rung_generator_reset(g, 1));
    CHECK(read_on(t, g, 1, 0, 0, FORK + MORE, NULL) && read_on(t, g, 1, 0, FORK + MORE, MORE, got)); /* never left */
    CHECK(memcmp(want, got, bytes) == 0);
    rung_generator_destroy(g);
  }
  free(want);
  free(got);
}
static void test_copied_prefix(void) { each_family(check_prefix); }

static void check_saved(tiny *t) {
  static const rung_type kv[] = {RUNG_TYPE_F16, RUNG_TYPE_F32, RUNG_TYPE_BF16, RUNG_TYPE_Q8_0};
  const int kinds = t->info.head_dim % 32 ? 3 : 4;
  const size_t bytes = (size_t)(MORE * t->info.vocabulary) * sizeof(float);
  float *want = new_logits(t, MORE), *got = new_logits(t, MORE);
  for (int k = 0; k < kinds; k++) {
    rung_generate_options o = tiny_options(2, 200, 16);
    o.kv = kv[k];
    rung_generator *g = tiny_generator(t, &o);
    o.context = 180;
    o.chunk = 40;
    rung_generator *h = tiny_generator(t, &o);
    if (!g || !h) break;
    CHECK(read_on(t, g, 0, 0, 0, TEXT, NULL));
    uint64_t size = 0;
    CHECK_OK(rung_state_saved_bytes(rung_generator_state(g), 0, &t->error, &size));
    uint8_t *data = malloc(size);
    CHECK_OK(rung_state_save_memory(rung_generator_state(g), 0, data, size, &t->error));
    CHECK(read_on(t, g, 0, 0, TEXT, MORE, want));
    const rung_source source = rung_source_memory(data, size);
    CHECK_OK(rung_state_restore(rung_generator_state(h), 1, &source, &t->error));
    CHECK_EQ_I64(rung_generator_length(h, 1), TEXT);
    CHECK(read_on(t, h, 1, 0, TEXT, MORE, got));
    CHECK(memcmp(want, got, bytes) == 0);
    CHECK_OK(rung_generator_reset(g, 0)); /* back where it came from */
    CHECK_OK(rung_state_restore(rung_generator_state(g), 0, &source, &t->error));
    CHECK(read_on(t, g, 0, 0, TEXT, MORE, got));
    CHECK(memcmp(want, got, bytes) == 0);
    free(data);
    rung_generator_destroy(g);
    rung_generator_destroy(h);
  }
  free(want);
  free(got);
}
static void test_saved_sequence(void) { each_family(check_saved); }

/* A cached prompt: the second reading of a text begins behind the prefix that it shares with the first. */
static void check_cached(tiny *t) {
  tiny_texts whole = {0}, cached = {0};
  const rung_generate_options o = tiny_options(2, 200, 32);
  rung_generator *g = tiny_generator(t, &o);
  if (!g) return;
  tiny_greedy(g, 2);
  CHECK_OK(tiny_prompt(t, g, 0, 0, 90));
  CHECK(tiny_go_on(g, 1, 10, &whole));
  CHECK_OK(rung_state_copy(rung_generator_state(g), 1, rung_generator_state(g), 0, 80, &t->error));
  int32_t rest[10];
  for (int64_t i = 0; i < 10; i++) rest[i] = tiny_id(t, 0, 80 + i);
  CHECK_OK(rung_generator_prompt(g, 1, rest, 10));
  CHECK(tiny_go_on(g, 2, 10, &cached));
  for (int i = 0; i < 10 && i < whole.count[0] && i < cached.count[1]; i++)
    CHECK_EQ_I64(cached.id[1][i], whole.id[0][i]);
  rung_generator_destroy(g);
}
static void test_cached_prompt(void) { each_family(check_cached); }

/* ---- shifts */

/* By 1 twice before a read is by 2, bit for bit on logits, for every type of keys and with windows; and the logits of a
 * shifted text are near those of the text that is left (not equal: what was forgotten was seen by what stayed). */
static void check_add_up(tiny *t) {
  static const rung_type kv[] = {RUNG_TYPE_F16, RUNG_TYPE_F32, RUNG_TYPE_BF16, RUNG_TYPE_Q8_0};
  const int kinds = t->info.head_dim % 32 ? 3 : 4;
  const size_t bytes = (size_t)(MORE * t->info.vocabulary) * sizeof(float);
  float *want = new_logits(t, MORE), *got = new_logits(t, MORE);
  for (int k = 0; k < 2 * kinds; k++) {
    rung_generate_options o = tiny_options(2, 200, 16);
    o.kv = kv[k % kinds];
    o.blocks = k / kinds ? 7 : 0;
    const int64_t keep = k == 1 ? 5 : 0, length = keep ? 20 : TEXT;
    rung_generator *g = tiny_generator(t, &o);
    if (!g) break;
    rung_state *s = rung_generator_state(g);
    CHECK(read_on(t, g, 0, 0, 0, length, NULL));
    CHECK_OK(rung_state_copy(s, 1, s, 0, length, &t->error));
    CHECK_OK(rung_state_shift(s, 0, keep, 1, &t->error));
    CHECK_OK(rung_state_shift(s, 0, keep, 1, &t->error));
    CHECK_OK(rung_state_shift(s, 1, keep, 2, &t->error));
    CHECK_EQ_I64(rung_generator_length(g, 0), length - 2);
    CHECK(read_on(t, g, 0, 0, length, MORE, want) && read_on(t, g, 1, 0, length, MORE, got));
    CHECK(memcmp(want, got, bytes) == 0);
    rung_generator_destroy(g);
  }
  free(want);
  free(got);
}
static void test_shifts_add_up(void) { each_family(check_add_up); }

/* The first layer's rows depend on a token and its position alone: a shifted text has those of what is left of it, read
 * anew. Values to the bit, keys within two roundings of the state's type. */
static void check_first_layer(tiny *t) {
  static const struct {
    rung_type kv;
    double rounding;
  } types[] = {{RUNG_TYPE_F16, 0x1p-11}, {RUNG_TYPE_F32, 0x1p-22}, {RUNG_TYPE_BF16, 0x1p-8}, {RUNG_TYPE_Q8_0, 0x1p-8}};
  for (int k = 0; k < (t->info.head_dim % 32 ? 3 : 4); k++) {
    rung_generate_options o = tiny_options(2, 200, 16);
    o.kv = types[k].kv;
    rung_generator *g = tiny_generator(t, &o);
    if (!g) return;
    rung_state *s = rung_generator_state(g);
    const size_t keys = (size_t)(t->info.kv_heads * t->info.head_dim), row = 2 * keys;
    float *left = calloc(row, 4), *anew = calloc(row, 4);
    CHECK(read_on(t, g, 0, 0, 0, TEXT, NULL) && read_on(t, g, 1, 0, 60, TEXT - 60, NULL));
    CHECK_OK(rung_state_shift(s, 0, 0, 60, &t->error));
    int64_t wrong = 0;
    double largest = 0;
    for (int64_t p = rung_state_held(s, 0); p < TEXT - 60; p++) {
      CHECK_OK(rung_state_read_rows(s, "kv.0", 0, p, 1, left, row, &t->error));
      CHECK_OK(rung_state_read_rows(s, "kv.0", 1, p, 1, anew, row, &t->error));
      wrong += memcmp(left + keys, anew + keys, keys * 4) != 0;
      for (size_t i = 0; i < keys; i++)
        if (fabs((double)anew[i]) > largest) largest = fabs((double)anew[i]);
      for (size_t i = 0; i < keys; i++) {
        const double a = (double)left[i], b = (double)anew[i];
        wrong += !(fabs(a - b) <= 2 * types[k].rounding * (fabs(b) + 2 * largest));
      }
    }
    CHECK_EQ_I64(wrong, 0);
    CHECK(largest > 0.01);
    free(left);
    free(anew);
    rung_generator_destroy(g);
  }
}
static void test_first_layer(void) { each_family(check_first_layer); }

/* Far longer than the context, with every small context, beginning kept or not: each token is given, the length never
 * passes the context, and it ends. */
static void check_endless(tiny *t) {
  int texts_done = 0, refused = 0;
  for (int64_t context = 1; context <= 130; context += context < 8 ? 1 : 61) {
    for (int64_t keep = 0; keep < context; keep = keep < 3 ? keep + 1 : keep * 2) {
      rung_generate_options o = tiny_options(1, context, context % 3 ? 4 : 200);
      o.shift = true;
      o.keep = keep;
      rung_generator *g = tiny_generator(t, &o);
      if (!g) return;
      rung_sample_options so = rung_sample_options_default();
      so.temperature = 2; /* so that few texts end by themselves */
      so.top_p = 1;
      so.min_p = 0;
      so.top_k = 0;
      CHECK_OK(rung_generator_sampling(g, 0, &so));
      const int64_t prompt = context * 2 < 250 ? context * 2 + 3 : 250; /* longer than the context, too */
      CHECK_OK(tiny_prompt(t, g, 0, 1, prompt));
      int64_t given = 0, runs = 0;
      bool busy = true;
      rung_status status = RUNG_OK;
      while (busy && given < context + 20 && runs < 1000) {
        rung_token token;
        size_t n;
        status = rung_generator_step(g, &token, &n, &busy);
        if (status) break;
        CHECK(rung_generator_length(g, 0) <= context);
        given += (int64_t)n;
        runs++;
        if (n && token.end) { /* go on all the same */
          CHECK_OK(rung_generator_prompt(g, 0, &token.id, 1));
          busy = true;
        }
      }
      /* A window that has left the kept positions behind: an error that says so, no loop. */
      if (status) CHECK(status == RUNG_UNSUPPORTED && strstr(rung_generator_message(g), "window") != NULL);
      if (status) refused++;
      if (!status) CHECK_EQ_I64(given, context + 20);
      if (!status) texts_done++;
      rung_generator_destroy(g);
    }
  }
  CHECK(texts_done > 20);
  CHECK(refused == 0 || t->info.window > 0);
}
static void test_text_longer_than_its_context(void) { each_family(check_endless); }

/* The text does not depend on what stands beside it, when all of them shift. */
static void check_beside(tiny *t) {
  tiny_texts want = {0}, got = {0};
  for (int how = 0; how < 2; how++) {
    rung_generate_options o = tiny_options(how ? 3 : 1, 48, 16);
    o.shift = true;
    o.keep = 4;
    rung_generator *g = tiny_generator(t, &o);
    if (!g) return;
    tiny_greedy(g, o.sequences);
    for (int32_t s = 0; s < o.sequences; s++) CHECK_OK(tiny_prompt(t, g, s, s, 30 + 5 * s));
    CHECK(tiny_go_on(g, 1, 40, how ? &got : &want));
    rung_generator_destroy(g);
  }
  for (int i = 0; i < 40 && i < want.count[0]; i++) CHECK_EQ_I64(got.id[0][i], want.id[0][i]);
}
static void test_shifting_beside_others(void) { each_family(check_beside); }

static void check_options(tiny *t) {
  rung_generate_options o = tiny_options(1, 16, 4);
  rung_generator *g = NULL;
  o.shift = true;
  static const int64_t keeps[] = {16, 17, -1, INT64_MAX};
  for (int i = 0; i < 4; i++) {
    o.keep = keeps[i];
    rung_error error = {0};
    CHECK_STATUS(rung_generator_create(t->model, &o, &error, &g), RUNG_INVALID_ARGUMENT);
    CHECK(!g && strstr(error.message, "at least") != NULL);
  }
  o.keep = 0;
  o.blocks = -1;
  CHECK_STATUS(rung_generator_create(t->model, &o, &t->error, &g), RUNG_INVALID_ARGUMENT);
  o.blocks = 1; /* one block for both: the second waits in vain */
  o.sequences = 2;
  o.context = 64;
  g = tiny_generator(t, &o);
  if (!g) return;
  CHECK(read_on(t, g, 0, 0, 0, 3, NULL));
  const int32_t id = 1;
  CHECK_STATUS(rung_generator_run(g, &(rung_rows){1, 1}, 1, &id, NULL, 0, NULL), RUNG_OUT_OF_RANGE);
  CHECK(strstr(rung_generator_message(g), "blocks") != NULL);
  CHECK_OK(rung_generator_reset(g, 0));
  CHECK(read_on(t, g, 1, 0, 0, 3, NULL));
  rung_generator_destroy(g);
}
static void test_options(void) { each_family(check_options); }

/* An empty sequence in the batch, one dropped in the middle, a slot used again: nothing of the former owner. */
static void check_used_again(tiny *t) {
  const size_t bytes = (size_t)(MORE * t->info.vocabulary) * sizeof(float);
  float *want = new_logits(t, MORE), *got = new_logits(t, MORE);
  for (int blocks = 0; blocks < 2; blocks++) {
    rung_generate_options o = tiny_options(3, 130, 32);
    o.blocks = blocks ? 5 : 0;
    rung_generator *g = tiny_generator(t, &o);
    if (!g) break;
    CHECK(read_on(t, g, 0, 0, 0, 10, NULL) && read_on(t, g, 0, 0, 10, MORE, want));
    CHECK(read_on(t, g, 1, 1, 0, 100, NULL) && read_on(t, g, 2, 2, 0, 60, NULL));
    CHECK_OK(rung_generator_reset(g, 0));
    CHECK_OK(rung_generator_reset(g, 1)); /* dropped in the middle */
    const int32_t id = tiny_id(t, 2, 60);
    CHECK_OK(rung_generator_run(g, (rung_rows[]){{1, 0}, {2, 1}, {0, 0}}, 3, &id, NULL, 0, NULL));
    CHECK(read_on(t, g, 1, 0, 0, 10, NULL) && read_on(t, g, 1, 0, 10, MORE, got));
    CHECK(memcmp(want, got, bytes) == 0);
    CHECK_EQ_I64(rung_generator_length(g, 2), 61);
    rung_generator_destroy(g);
  }
  free(want);
  free(got);
}
static void test_slot_used_again(void) { each_family(check_used_again); }

int main(void) {
  RUN(test_copied_prefix);
  RUN(test_saved_sequence);
  RUN(test_cached_prompt);
  RUN(test_shifts_add_up);
  RUN(test_first_layer);
  RUN(test_text_longer_than_its_context);
  RUN(test_shifting_beside_others);
  RUN(test_options);
  RUN(test_slot_used_again);
  return TEST_END();
}
