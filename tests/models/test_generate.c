/* SPDX-License-Identifier: MIT
 * Generating with tiny models of both families: several sequences in one run, the same text whatever stands beside it
 * and however the prompt is cut, seeds, pauses, the end of the context, refusals, cancelling. */
#include <inttypes.h>

#include "base/hash.h"
#include "tiny_world.h"

static void each_family(void (*test)(tiny *t)) {
  for (int f = 0; f < 2; f++) {
    tiny t;
    if (tiny_open(&t, tiny_paths[f], 2)) test(&t);
    tiny_close(&t);
  }
}

static const int64_t lengths[] = {5, 40, 1, 17};

/* All prompts are read in one run where they fit, and every further token of all slots takes one. */
static void check_one_run(tiny *t) {
  const rung_generate_options o = tiny_options(4, 96, 64);
  rung_generator *g = tiny_generator(t, &o);
  if (!g) return;
  tiny_greedy(g, 4);
  for (int32_t s = 0; s < 4; s++) CHECK_OK(tiny_prompt(t, g, s, s, lengths[s]));
  for (int run = 1; run <= 5; run++) {
    rung_token tokens[4];
    size_t n = 0;
    bool busy = false;
    CHECK_OK(rung_generator_step(g, tokens, &n, &busy));
    CHECK_EQ_I64(rung_generator_runs(g), run);
    if (run == 1) CHECK_EQ_I64(n, 4);
    for (int32_t s = 0; s < 4; s++) CHECK(rung_generator_length(g, s) <= lengths[s] + run - 1);
    if (!busy) break; /* every one met its end token */
  }
  rung_generator_destroy(g);
}
static void test_sequences_share_runs(void) { each_family(check_one_run); }

/* Alone or beside others, in chunks of any size, with few rows of logits: the same tokens. */
static void check_same_text(tiny *t) {
  static const int64_t chunks[] = {64, 4, 7, 13};
  tiny_texts want = {0};
  for (int32_t s = 0; s < 4; s++) {
    const rung_generate_options o = tiny_options(1, 96, 64);
    rung_generator *g = tiny_generator(t, &o);
    if (!g) return;
    tiny_greedy(g, 1);
    tiny_texts one = {0};
    CHECK_OK(tiny_prompt(t, g, 0, s, lengths[s]));
    CHECK(tiny_go_on(g, 1, 12, &one));
    memcpy(want.id[s], one.id[0], sizeof one.id[0]);
    want.count[s] = one.count[0];
    rung_generator_destroy(g);
  }
  for (int c = 0; c < 8; c++) {
    rung_generate_options o = tiny_options(4, 96, chunks[c % 4]);
    o.logits = c / 4; /* one row for all in the second half */
    rung_generator *g = tiny_generator(t, &o);
    if (!g) return;
    tiny_greedy(g, 4);
    tiny_texts got = {0};
    for (int32_t s = 0; s < 4; s++) CHECK_OK(tiny_prompt(t, g, s, s, lengths[s]));
    CHECK(tiny_go_on(g, 15, 12, &got));
    for (int32_t s = 0; s < 4; s++) {
      CHECK(got.count[s] >= (want.count[s] < 12 ? want.count[s] : 12));
      for (int i = 0; i < 12 && i < want.count[s]; i++) CHECK_EQ_I64(got.id[s][i], want.id[s][i]);
    }
    rung_generator_destroy(g);
  }
}
static void test_same_text_whatever_is_beside(void) { each_family(check_same_text); }

/* ---- the same bits */

/* Hashes of the rows of logits that tokens of one slot were chosen from. */
typedef struct seen {
  int32_t slot;
  int count;
  rung_hash hash[TINY_TOKENS];
} seen;

static rung_status look(void *self, rung_sample_row *row) {
  seen *s = self;
  if (row->slot == s->slot && s->count < TINY_TOKENS)
    s->hash[s->count++] = rung_hash_bytes(row->logits, (size_t)row->vocabulary * sizeof *row->logits);
  return RUNG_OK;
}

static void watch(rung_generator *g, int32_t slots, seen *s) {
  rung_sample_options o = rung_sample_options_default();
  o.temperature = 0;
  o.fn = look;
  o.fn_self = s;
  for (int32_t i = 0; i < slots; i++) CHECK_OK(rung_generator_sampling(g, i, &o));
}

static void same_bits(const seen *want, const seen *got, const char *how, int64_t n) {
  int differ = want->count != got->count;
  for (int i = 0; i < want->count && i < got->count; i++) differ += !rung_hash_equal(want->hash[i], got->hash[i]);
  test_state.checks++;
  if (differ) TEST_FAIL_("%s %" PRId64 ": %d of %d rows of logits differ", how, n, differ, want->count);
}

/* Temperature 0: logits of the answer are equal to the bit for a prompt read at once or in chunks of any size, read again
 * behind what a slot has kept of it, and with 1 to 8 sequences side by side. */
static void check_bits(tiny *t) {
  enum { TEXT = 40, MORE = 8 };
  static const int64_t chunks[] = {TEXT, 1, 7, 39};
  seen want = {0};
  int32_t ids[TEXT];
  for (int i = 0; i < TEXT; i++) ids[i] = tiny_id(t, 1, i);
  for (size_t c = 0; c < RUNG_COUNT(chunks); c++) {
    const rung_generate_options o = tiny_options(1, 96, chunks[c]);
    rung_generator *g = tiny_generator(t, &o);
    if (!g) return;
    for (int again = 0; again < 2; again++) {
      seen got = {0};
      tiny_texts texts = {0};
      size_t kept = 0;
      watch(g, 1, &got);
      CHECK_OK(rung_generator_set_text(g, 0, ids, TEXT, &kept));
      CHECK(!again || kept == TEXT - 1 || t->info.window);
      CHECK(tiny_go_on(g, 1, MORE, &texts));
      if (!want.count) want = got;
      same_bits(&want, &got, again ? "read again, chunk" : "chunk", chunks[c]);
    }
    rung_generator_destroy(g);
  }
  CHECK(want.count > 2);
  for (int32_t n = 1; n <= TINY_SLOTS; n++) {
    const rung_generate_options o = tiny_options(n, 96, 64);
    rung_generator *g = tiny_generator(t, &o);
    if (!g) return;
    seen got = {.slot = n / 2};
    tiny_texts texts = {0};
    watch(g, n, &got);
    for (int32_t s = 0; s < n; s++)
      CHECK_OK(tiny_prompt(t, g, s, s == got.slot ? 1 : s + 2, s == got.slot ? TEXT : 3 + 5 * s));
    CHECK(tiny_go_on(g, 1u << got.slot, want.count, &texts));
    got.count = got.count < want.count ? got.count : want.count;
    same_bits(&want, &got, "sequences", n);
    rung_generator_destroy(g);
  }
}
static void test_same_bits_in_chunks_repeats_and_company(void) { each_family(check_bits); }

static void check_seeds(tiny *t) {
  tiny_texts texts[3];
  memset(texts, 0, sizeof texts);
  for (int run = 0; run < 3; run++) {
    const rung_generate_options o = tiny_options(1, 96, 32);
    rung_generator *g = tiny_generator(t, &o);
    if (!g) return;
    rung_sample_options so = rung_sample_options_default();
    so.temperature = 1.5;
    so.top_k = 0;
    so.top_p = 1;
    so.min_p = 0;
    so.seed = run == 2 ? 8 : 7;
    CHECK_OK(rung_generator_sampling(g, 0, &so));
    CHECK_OK(tiny_prompt(t, g, 0, 1, 9));
    CHECK(tiny_go_on(g, 1, 24, &texts[run]));
    rung_generator_destroy(g);
  }
  CHECK_EQ_I64(texts[0].count[0], texts[1].count[0]);
  CHECK(memcmp(texts[0].id, texts[1].id, sizeof texts[0].id) == 0);
  CHECK(memcmp(texts[0].id, texts[2].id, sizeof texts[0].id) != 0);
}
static void test_seeds(void) { each_family(check_seeds); }

/* A slot that rests takes part in nothing; a reset begins anew, with nothing of the former text. */
static void check_pause_and_reset(tiny *t) {
  const rung_generate_options o = tiny_options(2, 96, 32);
  rung_generator *g = tiny_generator(t, &o);
  if (!g) return;
  tiny_greedy(g, 2);
  tiny_texts first = {0}, again = {0};
  CHECK_OK(tiny_prompt(t, g, 0, 0, 20));
  CHECK_OK(tiny_prompt(t, g, 1, 1, 6));
  CHECK(tiny_go_on(g, 3, 3, &first));
  const int64_t held = rung_generator_length(g, 1);
  rung_generator_pause(g, 1);
  CHECK(tiny_go_on(g, 1, 8, &first));
  CHECK_EQ_I64(rung_generator_length(g, 1), held);
  CHECK_OK(tiny_prompt(t, g, 1, 2, 2)); /* goes on: what was sampled, then this */
  CHECK(tiny_go_on(g, 2, first.count[1] + 1, &first));
  for (int32_t s = 0; s < 2; s++) CHECK_OK(rung_generator_reset(g, s));
  CHECK_EQ_I64(rung_generator_length(g, 0), 0);
  bool busy = true;
  size_t n = 9;
  rung_token tokens[2];
  CHECK_OK(rung_generator_step(g, tokens, &n, &busy));
  CHECK(n == 0 && !busy);
  CHECK_OK(tiny_prompt(t, g, 1, 0, 20)); /* the text of slot 0, where slot 1 was */
  CHECK(tiny_go_on(g, 2, 8, &again));
  for (int i = 0; i < 8 && i < first.count[0] && i < again.count[1]; i++) CHECK_EQ_I64(again.id[1][i], first.id[0][i]);
  rung_generator_destroy(g);
}
static void test_pause_and_reset(void) { each_family(check_pause_and_reset); }

/* ---- the end of the context */

static void check_full_context(tiny *t) {
  for (int64_t context = 1; context <= 11; context++) {
    for (int64_t prompt = 1; prompt <= context; prompt += 3) {
      const rung_generate_options o = tiny_options(1, context, 4);
      rung_generator *g = tiny_generator(t, &o);
      if (!g) return;
      tiny_greedy(g, 1);
      tiny_texts texts = {0};
      CHECK_OK(tiny_prompt(t, g, 0, 3, prompt));
      CHECK(tiny_go_on(g, 1, TINY_TOKENS, &texts));
      bool ended = false;
      for (int i = 0; i < texts.count[0]; i++) ended |= rung_model_is_end(t->model, texts.id[0][i]);
      if (!ended) {
        CHECK_EQ_I64(rung_generator_length(g, 0), context); /* the last slot is used */
        CHECK_EQ_I64(texts.count[0], context - prompt + 1);
        const int32_t one = 1;
        CHECK_STATUS(rung_generator_prompt(g, 0, &one, 1), RUNG_OUT_OF_RANGE);
        CHECK(strstr(rung_generator_message(g), "context") != NULL);
        const rung_rows rows = {0, 1};
        CHECK_STATUS(rung_generator_run(g, &rows, 1, &one, NULL, 0, NULL), RUNG_OUT_OF_RANGE);
        CHECK_EQ_I64(rung_generator_length(g, 0), context);
      }
      rung_generator_destroy(g);
    }
  }
}
static void test_last_slot_of_the_context(void) { each_family(check_full_context); }

static void check_options(tiny *t) {
  rung_generate_options o[9];
  for (int i = 0; i < 9; i++) o[i] = tiny_options(1, 16, 4);
  o[0].context = -1;
  o[1].sequences = 0;
  o[2].chunk = 0;
  o[3].kv = RUNG_TYPE_Q4_0;
  o[4].logits = 5;
  o[5].logits = -1;
  o[6].size = 0;
  o[7].context = (int64_t)1 << 38;
  o[8].sequences = INT32_MAX;
  for (int i = 0; i < 9; i++) {
    rung_generator *g = NULL;
    rung_error error = {0};
    CHECK(rung_generator_create(t->model, &o[i], &error, &g) != RUNG_OK);
    CHECK(!g && error.message[0]);
    if (i < 3) CHECK(strstr(error.message, i == 1 ? "1.." : "at least 1") != NULL);
  }
  o[0] = tiny_options(1, 0, 4); /* 0: the model's own */
  rung_generator *g = tiny_generator(t, &o[0]);
  if (g) CHECK_EQ_I64(rung_state_capacity(rung_generator_state(g)), t->info.context < 4096 ? t->info.context : 4096);
  rung_generator_destroy(g);
}
static void test_options(void) { each_family(check_options); }

/* ---- refusals */

static void check_refusals(tiny *t) {
  const rung_generate_options o = tiny_options(2, 32, 16);
  rung_generator *g = tiny_generator(t, &o);
  if (!g) return;
  const int32_t vocabulary = (int32_t)t->info.vocabulary, wrong[] = {-1, vocabulary, INT32_MAX, INT32_MIN};
  const rung_rows one = {0, 1};
  const int32_t zero = 0;
  const float *logits;
  for (int i = 0; i < 4; i++) {
    const int32_t ids[3] = {1, wrong[i], 1};
    CHECK_STATUS(rung_generator_prompt(g, 0, ids, 3), RUNG_OUT_OF_RANGE);
    CHECK(strstr(rung_generator_message(g), "id 1 is") != NULL);
    CHECK_STATUS(rung_generator_run(g, &one, 1, &wrong[i], &zero, 1, &logits), RUNG_OUT_OF_RANGE);
    CHECK_EQ_I64(rung_generator_length(g, 0), 0);
  }
  const int32_t id = 1, wanted[] = {1, -1, INT32_MAX};
  for (int i = 0; i < 3; i++) {
    CHECK_STATUS(rung_generator_run(g, &one, 1, &id, &wanted[i], 1, &logits), RUNG_OUT_OF_RANGE);
    CHECK_EQ_I64(rung_generator_length(g, 0), 0);
  }
  CHECK_STATUS(rung_generator_prompt(g, 2, &id, 1), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_generator_prompt(g, -1, &id, 1), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_generator_run(g, &(rung_rows){2, 1}, 1, &id, &zero, 1, &logits), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_generator_run(g, (rung_rows[]){{0, 1}, {0, 1}}, 2, (int32_t[]){1, 1}, &zero, 1, &logits),
               RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_generator_run(g, &(rung_rows){0, -1}, 1, &id, &zero, 0, &logits), RUNG_INVALID_ARGUMENT);
  int32_t many[17] = {0};
  CHECK_STATUS(rung_generator_run(g, &(rung_rows){0, 17}, 1, many, &zero, 1, &logits),
               RUNG_OUT_OF_RANGE); /* more than the chunk */
  CHECK_OK(rung_generator_run(g, &one, 1, &id, &zero, 1, &logits));
  CHECK_EQ_I64(rung_generator_length(g, 0), 1);
  rung_generator_destroy(g);
}
static void test_refusals(void) { each_family(check_refusals); }

/* ---- cancelling */

static void cancel_here(void *self, const rung_step_info *info) {
  if (info->step > 6) rung_context_cancel((rung_context *)self);
}

static void check_cancel(tiny *t) {
  const rung_generate_options o = tiny_options(2, 96, 32);
  tiny_texts want = {0}, got = {0};
  for (int cancelled = 0; cancelled < 2; cancelled++) {
    rung_generator *g = tiny_generator(t, &o);
    if (!g) return;
    tiny_greedy(g, 2);
    tiny_texts *texts = cancelled ? &got : &want;
    for (int32_t s = 0; s < 2; s++) CHECK_OK(tiny_prompt(t, g, s, s, 30));
    for (int step = 0; step < 8; step++) {
      const int64_t held[2] = {rung_generator_length(g, 0), rung_generator_length(g, 1)};
      rung_token tokens[2];
      size_t n = 0;
      if (cancelled) {
        rung_context_on_step(rung_generator_context(g), cancel_here, rung_generator_context(g));
        CHECK_STATUS(rung_generator_step(g, tokens, &n, NULL), RUNG_CANCELLED);
        rung_context_on_step(rung_generator_context(g), NULL, NULL);
        CHECK(rung_generator_length(g, 0) == held[0] && rung_generator_length(g, 1) == held[1]);
      }
      CHECK_OK(rung_generator_step(g, tokens, &n, NULL));
      for (size_t i = 0; i < n; i++) texts->id[tokens[i].slot][texts->count[tokens[i].slot]++] = tokens[i].id;
      if (!n && step > 2) break;
    }
    rung_generator_destroy(g);
  }
  CHECK(memcmp(&want, &got, sizeof want) == 0);
}
static void test_cancelled_step_begins_again(void) { each_family(check_cancel); }

/* ---- memory */

/* Everything that was predicted is what is held, and a step within sizes that were there before calls no allocator. */
static void check_memory(tiny *t) {
  const rung_generate_options o = tiny_options(3, 200, 40);
  rung_generator *g = tiny_generator(t, &o);
  if (!g) return;
  tiny_greedy(g, 3);
  const float *logits;
  int32_t ids[40], wanted[3] = {0, 1, 2};
  for (int i = 0; i < 40; i++) ids[i] = tiny_id(t, 1, i);
  for (int pass = 0; pass < 2; pass++) {
    const uint64_t calls = rung_host_allocations(t->host) + rung_host_commits(t->host);
    for (int run = 0; run < 5; run++)
      CHECK_OK(rung_generator_run(g, (rung_rows[]){{0, 14}, {1, 12}, {2, 14}}, 3, ids, wanted, 3, &logits));
    for (int run = 0; run < 20; run++)
      CHECK_OK(rung_generator_run(g, (rung_rows[]){{0, 1}, {1, 1}, {2, 1}}, 3, ids, wanted, 3, &logits));
    if (pass) CHECK_EQ_I64(rung_host_allocations(t->host) + rung_host_commits(t->host), calls);
    const rung_lengths each = {3, (int64_t[]){90, 80, 90}, 200, 40, 0};
    rung_memory need = {0};
    CHECK_OK(rung_program_memory(rung_generator_program(g),
                                 (rung_binding[]){{"rows", 40}, {"sequences", 3}, {"wanted", 3}}, 3, &each, NULL,
                                 &need));
    const rung_memory held = rung_host_memory(t->host);
    CHECK_EQ_I64(held.activations, need.activations);
    CHECK_EQ_I64(held.scratch, need.scratch);
    CHECK_EQ_I64(held.state, need.state);
    CHECK_EQ_I64(held.packed, need.packed);
    CHECK_EQ_I64(held.load, 0);
    for (int32_t s = 0; s < 3; s++) CHECK_OK(rung_generator_reset(g, s));
  }
  rung_generator_destroy(g);
}
static void test_memory(void) { each_family(check_memory); }

int main(void) {
  RUN(test_options);
  RUN(test_refusals);
  RUN(test_sequences_share_runs);
  RUN(test_memory);
  RUN(test_seeds);
  RUN(test_pause_and_reset);
  RUN(test_cancelled_step_begins_again);
  RUN(test_last_slot_of_the_context);
  RUN(test_same_text_whatever_is_beside);
  RUN(test_same_bits_in_chunks_repeats_and_company);
  return TEST_END();
}
