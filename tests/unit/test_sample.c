/* SPDX-License-Identifier: MIT
 * The sampler against a plain one that sorts, against exact distributions, and the random numbers under it. */
#include <stdlib.h>

#include "plain_sampler.h"

enum { MOST = PLAIN_MOST };

static void test_philox_known_answers(void) {
  /* Published with the Random123 library. */
  static const struct {
    uint32_t counter[4], key[2], words[4];
  } known[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < RUNG_COUNT(known); i++) {
    uint32_t words[4];
    rung_philox_block(known[i].counter, known[i].key, words);
    CHECK(memcmp(words, known[i].words, sizeof words) == 0);
  }
  uint32_t words[4];
  const uint32_t counter[4] = {7, 9, 0, 0}, key[2] = {0x89abcdef, 0x01234567};
  uint32_t want[4];
  rung_philox_block(counter, key, want);
  rung_philox(UINT64_C(0x0123456789abcdef), UINT64_C(9) << 32 | 7, words);
  CHECK(memcmp(words, want, sizeof words) == 0);
  CHECK(rung_philox_float(0xffffffff) < 1.0f && rung_philox_float(0) == 0.0f);
  double sum = 0;
  for (uint64_t i = 0; i < 100000; i++) {
    const double u = rung_philox_double(3, i);
    CHECK(u >= 0 && u < 1);
    sum += u;
  }
  CHECK(fabs(sum / 100000 - 0.5) < 0.005);
}

static void test_exp(void) {
  double worst = 0;
  uint64_t seed = 1;
  for (int i = 0; i < 200000; i++) {
    const double x = -(double)test_uniform(&seed, 0, i % 2 ? 700.0f : 2.0f);
    const double error = fabs(rung_sample_exp(x) / exp(x) - 1);
    if (error > worst) worst = error;
  }
  CHECK(worst < 1e-15);
  CHECK(rung_sample_exp(0) == 1);
  CHECK(rung_sample_exp(-0.0) == 1);
  CHECK(rung_sample_exp(-(double)INFINITY) == 0);
  CHECK(rung_sample_exp(-708) == 0 && rung_sample_exp(-707.9) > 0);
  CHECK(!(rung_sample_exp((double)NAN) > 0));
  /* The same bits on every processor and compiler. */
  CHECK(rung_sample_exp(-1) == 0x1.78b56362cef38p-2);
  CHECK(rung_sample_exp(-0.3) == 0x1.7b4c869c37c05p-1);
  CHECK(rung_sample_exp(-20.75) == 0x1.0ba06b3d9c887p-30);
}

static void test_greedy(void) {
  float row[1000];
  for (int i = 0; i < 1000; i++) row[i] = -(float)(i % 7);
  row[300] = row[700] = 2;
  CHECK_EQ_I64(rung_sample_greedy(row, 1000), 300);
  row[5] = NAN;
  CHECK_EQ_I64(rung_sample_greedy(row, 1000), 300);
  row[999] = INFINITY;
  CHECK_EQ_I64(rung_sample_greedy(row, 1000), 999);
  for (int i = 0; i < 1000; i++) row[i] = i % 2 ? NAN : -INFINITY;
  CHECK_EQ_I64(rung_sample_greedy(row, 1000), -1);
  row[998] = -3e38f;
  CHECK_EQ_I64(rung_sample_greedy(row, 1000), 998);
  CHECK_EQ_I64(rung_sample_greedy(row, 0), -1);
  uint64_t seed = 5;
  for (int n = 1; n < 1000; n += 13) { /* every tail of a block */
    int32_t want = 0;
    for (int i = 0; i < n; i++) {
      row[i] = (float)test_below(&seed, 50);
      if (row[i] > row[want]) want = i;
    }
    CHECK_EQ_I64(rung_sample_greedy(row, n), want);
  }
}

/* ---- against the plain sampler */

static bool coin(uint64_t *seed, int64_t n) { return test_below(seed, n) == 0; }

static rung_sample_options random_options(uint64_t *seed) {
  rung_sample_options o = rung_sample_options_default();
  o.seed = test_random(seed);
  o.temperature = coin(seed, 8) ? 0 : 0.05 + (double)test_uniform(seed, 0, 3);
  o.top_k = coin(seed, 2) ? 0 : 1 + test_below(seed, coin(seed, 2) ? 8 : 300);
  o.top_p = coin(seed, 2) ? 1 : (double)test_uniform(seed, 0.01f, 1);
  o.min_p = coin(seed, 2) ? 0 : (double)test_uniform(seed, 0, 0.5f);
  if (coin(seed, 3)) o.typical_p = (double)test_uniform(seed, 0.01f, 1);
  if (coin(seed, 4)) o.top_n_sigma = (double)test_uniform(seed, 0.1f, 3);
  if (coin(seed, 3)) o.xtc_probability = (double)test_uniform(seed, 0, 1.2f) > 1 ? 1 : 0.5;
  if (coin(seed, 2)) o.xtc_threshold = (double)test_uniform(seed, 0, 0.6f);
  if (coin(seed, 3)) o.repeat_penalty = (double)test_uniform(seed, 0.5f, 2);
  if (coin(seed, 4)) o.presence_penalty = (double)test_uniform(seed, -2, 2);
  if (coin(seed, 4)) o.frequency_penalty = (double)test_uniform(seed, -2, 2);
  o.repeat_last_n = test_below(seed, 80) - 1;
  if (coin(seed, 3)) o.dry_multiplier = (double)test_uniform(seed, 0, 3);
  o.dry_base = (double)test_uniform(seed, 1, 2.5f);
  o.dry_allowed_length = test_below(seed, 5);
  o.dry_last_n = test_below(seed, 100) - 1;
  return o;
}

/* spread, flat, with ties, with holes */
static void random_row(uint64_t *seed, float *row, int64_t count) {
  const int shape = (int)test_below(seed, 4);
  for (int64_t i = 0; i < count; i++) {
    row[i] = test_uniform(seed, -8, 8) * (shape == 1 ? 0.01f : 1.0f);
    if (shape == 2) row[i] = floorf(row[i]);
    if (shape == 3 && coin(seed, 3)) row[i] = coin(seed, 2) ? NAN : -INFINITY;
  }
  row[test_below(seed, count)] = 1;
}

/* A step that cuts where a sum crosses a goal may see it cross one token later than the plain one does, whose sums differ
 * by rounding; with ties of many tokens that happens. Then the draw may differ too. */
static void test_against_plain(void) {
  static float row[MOST];
  static plain p;
  uint64_t seed = 77;
  int64_t picks = 0, differ = 0;
  for (int round = 0; round < 3000; round++) {
    const int64_t count = 1 + test_below(&seed, round % 10 ? 300 : MOST);
    random_row(&seed, row, count);
    rung_sample_options o = random_options(&seed);
    rung_logit_bias bias[3];
    for (int i = 0; i < 3; i++)
      bias[i] = (rung_logit_bias){(int32_t)test_below(&seed, count), test_uniform(&seed, -3, 3)};
    if (coin(&seed, 3)) {
      o.bias = bias;
      o.biases = 3;
    }
    int32_t text[128];
    const int64_t text_count = test_below(&seed, 129), kinds = 1 + test_below(&seed, 12);
    for (int64_t i = 0; i < text_count; i++) text[i] = (int32_t)(test_below(&seed, kinds) % count);
    world w;
    world_open(&w, &o, count, text_count);
    p.o = &o;
    p.text = text;
    p.text_count = text_count;
    const bool random = o.temperature > 0 || (o.xtc_probability > 0 && o.xtc_threshold <= 0.5);
    for (uint64_t n = 0; n < 5; n++) {
      int32_t id = -1;
      CHECK_OK(world_pick(&w, row, count, text, text_count, NULL, &id));
      picks++;
      differ += id != plain_pick(&p, random ? n : 0, row, count);
    }
    CHECK_EQ_I64(w.sampler.drawn, random ? 5 : 0);
    world_close(&w);
  }
  CHECK_EQ_I64(picks, 15000);
  CHECK(differ <= 15);
}

/* ---- distributions */

/* Chi-square of 100,000 draws, fewer where they are slow; the limit is that of one in a million for a true sampler, seeds
 * are fixed. A digest of the first tokens in their order. */
static uint64_t chi_square(const rung_sample_options *o, const float *row, int64_t count, const int32_t *text,
                           int64_t text_count) {
  static plain p;
  static int64_t seen[MOST];
  static double expected[MOST];
  enum { FIRST = 10000 };
  const int draws = test_slow() ? FIRST : 100000;
  memset(seen, 0, sizeof seen);
  memset(expected, 0, sizeof expected);
  world w;
  world_open(&w, o, count, text_count);
  uint64_t digest = 0;
  for (int i = 0; i < draws; i++) {
    int32_t id = -1;
    CHECK_OK(world_pick(&w, row, count, text, text_count, NULL, &id));
    if (id >= 0) seen[id]++;
    if (i < FIRST) digest = digest * 0x9E3779B97F4A7C15u + (uint32_t)id;
  }
  world_close(&w);
  p.o = o;
  p.text = text;
  p.text_count = text_count;
  for (int xtc = 0; xtc < 2; xtc++) { /* without and with XTC taking part */
    const double share = xtc ? o->xtc_probability : 1 - o->xtc_probability;
    p.xtc = xtc ? -1 : 2;
    plain_run(&p, row, count);
    for (int64_t i = 0; i < p.n; i++) expected[p.set[i].id] += share * p.set[i].p * draws;
  }
  double statistic = 0, rest_expected = 0;
  int64_t rest_seen = 0, inside = 0, freedom = -1;
  for (int64_t i = 0; i < count; i++) {
    if (expected[i] == 0) continue;
    inside += seen[i];
    if (expected[i] < 8) { /* rare ones are one class */
      rest_expected += expected[i];
      rest_seen += seen[i];
      continue;
    }
    statistic += ((double)seen[i] - expected[i]) * ((double)seen[i] - expected[i]) / expected[i];
    freedom++;
  }
  if (rest_expected >= 8) {
    statistic += ((double)rest_seen - rest_expected) * ((double)rest_seen - rest_expected) / rest_expected;
    freedom++;
  }
  CHECK_EQ_I64(inside, draws);
  CHECK(freedom >= 1);
  const double k = (double)(freedom > 0 ? freedom : 1), z = 4.75; /* Wilson and Hilferty's approximation */
  const double limit = k * pow(1 - 2 / (9 * k) + z * sqrt(2 / (9 * k)), 3);
  CHECK(statistic < limit);
  return digest;
}

static rung_sample_options nothing(void) {
  rung_sample_options o = rung_sample_options_default();
  o.temperature = 1;
  o.top_k = 0;
  o.top_p = 1;
  o.min_p = 0;
  o.seed = 3;
  return o;
}

/* Each step alone, then the default chain, then all at once: 150,000 tokens from equal logits, which are the same on
 * every machine, instruction set and number of threads. Recorded, as the seeds below. */
static void test_distributions(void) {
  static float row[MOST];
  uint64_t seed = 9;
  for (int i = 0; i < MOST; i++) row[i] = test_uniform(&seed, -3, 3);
  row[3] = 5;
  row[4] = 4.5f;
  row[5] = 4.4f;
  const int32_t text[] = {7, 3, 4, 5, 9, 8, 3, 3, 4, 11, 5, 3, 4};
  const int64_t n = RUNG_COUNT(text), count = 120;
  rung_sample_options o[14];
  for (size_t i = 0; i < RUNG_COUNT(o); i++) o[i] = nothing();
  const rung_logit_bias bias[] = {{3, -INFINITY}, {50, 4}, {51, -1}};
  o[1].bias = bias;
  o[1].biases = 3;
  o[2].repeat_penalty = 1.5;
  o[3].presence_penalty = 1.5;
  o[3].repeat_last_n = 4;
  o[4].frequency_penalty = 0.7;
  o[5].dry_multiplier = 0.8;
  o[6].top_n_sigma = 1.2;
  o[7].top_k = 7;
  o[8].typical_p = 0.6;
  o[9].top_p = 0.6;
  o[10].min_p = 0.08;
  o[11].xtc_probability = 0.4;
  o[11].xtc_threshold = 0.05;
  o[12].temperature = 1.7;
  o[13] = rung_sample_options_default();
  uint64_t digest = 0;
  for (size_t i = 0; i < RUNG_COUNT(o); i++) digest = digest * 31 + chi_square(&o[i], row, count, text, n);
  rung_sample_options all = o[13];
  all.seed = UINT64_MAX;
  all.temperature = 1.3;
  all.repeat_penalty = 1.1;
  all.presence_penalty = 0.2;
  all.frequency_penalty = 0.1;
  all.dry_multiplier = 0.5;
  all.top_n_sigma = 2.5;
  all.top_k = 60;
  all.typical_p = 0.95;
  all.xtc_probability = 0.5;
  all.xtc_threshold = 0.04;
  all.bias = bias + 1;
  all.biases = 2;
  digest = digest * 31 + chi_square(&all, row, 1000, text, n);
  CHECK_EQ_I64((int64_t)digest, -3035445442480613707);
}

static void test_seeds_repeat(void) {
  static float row[512];
  for (int i = 0; i < 512; i++) row[i] = (float)((i * 37) % 101) / 10.0f;
  /* Recorded: a change here changes what users get from their seeds. */
  static const int32_t want[12] = {232, 150, 322, 333, 423, 139, 363, 191, 60, 191, 333, 221};
  rung_sample_options o = rung_sample_options_default();
  o.seed = 42;
  world w;
  world_open(&w, &o, 512, 0);
  for (int i = 0; i < 12; i++) {
    rung_sampler before = w.sampler;
    int32_t id = -1, again = -2;
    CHECK_OK(world_pick(&w, row, 512, NULL, 0, NULL, &id));
    w.sampler = before;
    CHECK_OK(world_pick(&w, row, 512, NULL, 0, NULL, &again));
    CHECK_EQ_I64(id, want[i]);
    CHECK_EQ_I64(again, id);
  }
  world_close(&w);
}

/* ---- edges */

static void test_infinite_logits(void) {
  float row[64];
  for (int i = 0; i < 64; i++) row[i] = i == 10 || i == 20 ? INFINITY : 0;
  for (int round = 0; round < 3; round++) {
    rung_sample_options o = rung_sample_options_default();
    if (round == 1) o.typical_p = 0.9;
    if (round == 2) o.top_n_sigma = 1;
    world w;
    world_open(&w, &o, 64, 0);
    bool both[2] = {false, false};
    for (int i = 0; i < 100; i++) { /* they share everything */
      int32_t id = -1;
      CHECK_OK(world_pick(&w, row, 64, NULL, 0, NULL, &id));
      CHECK(id == 10 || id == 20);
      both[id == 20] = true;
    }
    CHECK(both[0] && both[1]);
    world_close(&w);
  }
}

static void test_edges(void) {
  rung_error error;
  float row[64];
  int32_t id = -1;
  world w;
  for (int i = 0; i < 64; i++) row[i] = i == 10 || i == 20 ? 7 : 0;
  rung_sample_options o = rung_sample_options_default();
  o.temperature = 0;
  world_open(&w, &o, 64, 0);
  CHECK_EQ_I64(rung_sampler_scratch(&w.sampler, 1 << 20, 1 << 20), 0);
  CHECK_OK(world_pick(&w, row, 64, NULL, 0, &error, &id));
  CHECK_EQ_I64(id, 10);
  CHECK_EQ_I64(w.sampler.drawn, 0);
  world_close(&w);
  for (int i = 0; i < 64; i++) row[i] = i % 2 ? NAN : -INFINITY;
  for (int round = 0; round < 4; round++) {
    o.temperature = round % 2;
    o.top_k = round / 2;
    world_open(&w, &o, 64, 0);
    CHECK_STATUS(world_pick(&w, row, 64, NULL, 0, &error, &id), RUNG_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "logits") != NULL);
    CHECK_STATUS(world_pick(&w, row, 0, NULL, 0, &error, &id), RUNG_INVALID_ARGUMENT);
    CHECK_EQ_I64(w.sampler.drawn, 0);
    world_close(&w);
  }
  o.temperature = 1e-300; /* overflows the quotient, not the draw */
  row[3] = 1;
  row[4] = 2;
  world_open(&w, &o, 64, 0);
  CHECK_OK(world_pick(&w, row, 64, NULL, 0, &error, &id));
  CHECK_EQ_I64(id, 4);
  world_close(&w);
}

/* Every token forbidden by biases is a status; a penalty, however large, forbids nothing. */
static void test_nothing_left(void) {
  float row[4] = {1, 2, 3, 4};
  rung_logit_bias bias[4];
  for (int32_t i = 0; i < 4; i++) bias[i] = (rung_logit_bias){i, -INFINITY};
  rung_sample_options o = nothing();
  o.bias = bias;
  o.biases = 4;
  world w;
  int32_t id = -1;
  rung_error error;
  world_open(&w, &o, 4, 0);
  CHECK_STATUS(world_pick(&w, row, 4, NULL, 0, &error, &id), RUNG_INVALID_ARGUMENT);
  world_close(&w);
  o = nothing();
  o.dry_multiplier = 1e30;
  o.dry_base = 1e30;
  o.dry_allowed_length = 0;
  o.repeat_penalty = 1e30;
  world_open(&w, &o, 4, 200);
  int32_t text[200];
  for (int i = 0; i < 200; i++) text[i] = i % 4;
  CHECK_OK(world_pick(&w, row, 4, text, 200, &error, &id));
  CHECK(id >= 0 && id < 4);
  world_close(&w);
}

/* Ids that are not known (-1) are penalised nowhere and repeat nothing. */
static void test_unknown_ids(void) {
  float row[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const int32_t text[] = {-1, -1, -1, 7, -1, -1, -1};
  rung_sample_options o = nothing();
  o.temperature = 0;
  o.dry_multiplier = 100;
  o.dry_allowed_length = 1;
  world w;
  int32_t id = -1;
  world_open(&w, &o, 8, 7);
  CHECK_OK(world_pick(&w, row, 8, text, 7, NULL, &id));
  CHECK_EQ_I64(id, 7);
  world_close(&w);
  o.presence_penalty = 3;
  world_open(&w, &o, 8, 7);
  CHECK_OK(world_pick(&w, row, 8, text, 7, NULL, &id));
  CHECK_EQ_I64(id, 6);
  world_close(&w);
}

/* Breakers of several tokens, heads that several share: a repetition does not reach over them. */
static void test_breakers(void) {
  float row[16];
  const int32_t text[] = {1, 2, 3, 9, 4, 5, 6, 1, 2, 3, 9, 4, 5};
  rung_sample_options o = nothing();
  o.temperature = 0;
  o.dry_multiplier = 10;
  const struct {
    int32_t breaker[3];
    size_t count;
    int32_t want;
  } cases[] = {
      {{0}, 0, 7},       /* 1 2 3 9 4 5 stood before: 6 is unlikely */
      {{9}, 1, 7},       /* 4 5 are behind 9: still 2 long */
      {{4}, 1, 6},       /* 5 alone is too short */
      {{9, 4}, 2, 6},    /* both tokens of the breaker are before 5 */
      {{9, 5}, 2, 7},    /* never there */
      {{3, 9, 4}, 3, 6}, /* three */
      {{6}, 1, 6},       /* what would repeat is a breaker itself */
  };
  for (size_t c = 0; c < RUNG_COUNT(cases); c++) {
    for (int i = 0; i < 16; i++) row[i] = i == 6 ? 2 : i == 7 ? 1 : 0;
    world w;
    int32_t id = -1;
    rung_error error;
    world_open(&w, &o, 16, 13);
    const int32_t other[] = {9, 15, 15};
    CHECK_OK(rung_breakers_add(&w.sampler.breakers, other, 3, &error));
    if (cases[c].count) CHECK_OK(rung_breakers_add(&w.sampler.breakers, cases[c].breaker, cases[c].count, &error));
    CHECK_OK(rung_breakers_add(&w.sampler.breakers, other + 1, 1, &error));
    rung_breakers_order(&w.sampler.breakers);
    CHECK_OK(world_pick(&w, row, 16, text, 13, &error, &id));
    CHECK_EQ_I64(id, cases[c].want);
    world_close(&w);
  }
}

/* ---- the caller's own function */

typedef struct own {
  int calls;
  int32_t choose;
  rung_status status;
} own;
static rung_status own_fn(void *self, rung_sample_row *row) {
  own *o = (own *)self;
  o->calls++;
  CHECK(row->vocabulary == 8 && row->count == 2 && row->ids[1] == 5 && row->id == -1);
  CHECK(row->logits[2] == 12); /* with the bias */
  row->logits[2] = -INFINITY;
  row->id = o->choose;
  return o->status;
}
static void test_own_function(void) {
  const float row[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const int32_t text[] = {4, 5};
  const rung_logit_bias bias = {2, 10};
  own self = {0, -1, RUNG_OK};
  rung_sample_options o = nothing();
  o.temperature = 0;
  o.bias = &bias;
  o.biases = 1;
  o.fn = own_fn;
  o.fn_self = &self;
  world w;
  int32_t id = -1;
  rung_error error = {0};
  world_open(&w, &o, 8, 2);
  CHECK_OK(world_pick(&w, row, 8, text, 2, &error, &id));
  CHECK_EQ_I64(id, 7); /* it forbade the best one */
  self.choose = 3;
  CHECK_OK(world_pick(&w, row, 8, text, 2, &error, &id));
  CHECK_EQ_I64(id, 3);
  self.choose = 8;
  CHECK_STATUS(world_pick(&w, row, 8, text, 2, &error, &id), RUNG_OUT_OF_RANGE);
  self.choose = -1;
  self.status = RUNG_CANCELLED;
  CHECK_STATUS(world_pick(&w, row, 8, text, 2, &error, &id), RUNG_CANCELLED);
  CHECK_EQ_I64(self.calls, 4);
  world_close(&w);
}

static void test_log_probabilities(void) {
  enum { N = 300 };
  float row[N];
  uint64_t seed = 4;
  for (int i = 0; i < N; i++) row[i] = floorf(test_uniform(&seed, -20, 20));
  row[7] = NAN;
  row[8] = -INFINITY;
  double total = 0;
  for (int i = 0; i < N; i++)
    if (row[i] > -INFINITY) total += exp((double)row[i]);
  rung_log_probability best[N];
  for (int64_t n = 0; n <= N; n += n < 9 ? 1 : 97) {
    const int64_t got = rung_sample_best(row, N, n, best);
    CHECK_EQ_I64(got, n > N - 2 ? N - 2 : n);
    for (int64_t i = 0; i < got; i++) {
      CHECK(fabs(best[i].value - ((double)row[best[i].id] - log(total))) < 1e-12);
      if (!i) continue;
      const float a = row[best[i - 1].id], b = row[best[i].id];
      CHECK(a > b || (a == b && best[i - 1].id < best[i].id));
    }
    if (got) CHECK_EQ_I64(best[0].id, rung_sample_greedy(row, N));
  }
  CHECK(rung_sample_log_probability(row, N, 8) == -(double)INFINITY);
  CHECK(rung_sample_log_probability(row, N, 7) == -(double)INFINITY);
  row[9] = INFINITY;
  CHECK(rung_sample_log_probability(row, N, 9) == 0 && rung_sample_log_probability(row, N, 1) == -(double)INFINITY);
}

static void check_refused(const rung_sample_options *o, const char *name) {
  rung_sampler sampler;
  rung_error error = {0};
  rung_host *host;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  CHECK_STATUS(rung_sampler_init(&sampler, host, o, &error), RUNG_INVALID_ARGUMENT);
  CHECK(strstr(error.message, name) != NULL);
  rung_sampler_finish(&sampler);
  rung_host_release(host);
}

static void test_options_refused(void) {
  const rung_sample_options usual = rung_sample_options_default();
  rung_sample_options o;
#define REFUSED(field, value)  \
  do {                         \
    o = usual;                 \
    o.field = (value);         \
    check_refused(&o, #field); \
  } while (0)
  const double nan = (double)NAN, infinite = (double)INFINITY;
  REFUSED(size, 0);
  REFUSED(temperature, -1);
  REFUSED(temperature, nan);
  REFUSED(temperature, infinite);
  REFUSED(top_k, -1);
  REFUSED(top_p, 0);
  REFUSED(top_p, 1.5);
  REFUSED(top_p, nan);
  REFUSED(min_p, -0.1);
  REFUSED(min_p, 1.1);
  REFUSED(typical_p, 0);
  REFUSED(typical_p, 1.01);
  REFUSED(top_n_sigma, -1);
  REFUSED(top_n_sigma, infinite);
  REFUSED(xtc_probability, 2);
  REFUSED(xtc_threshold, -1);
  REFUSED(repeat_penalty, 0);
  REFUSED(repeat_penalty, infinite);
  REFUSED(presence_penalty, nan);
  REFUSED(frequency_penalty, infinite);
  REFUSED(repeat_last_n, -2);
  REFUSED(dry_multiplier, -1);
  REFUSED(dry_base, 0.5);
  REFUSED(dry_allowed_length, -1);
  REFUSED(dry_last_n, -2);
  REFUSED(log_probabilities, -1);
#undef REFUSED
  const rung_logit_bias wrong[] = {{-1, 0}, {0, INFINITY}, {0, NAN}};
  for (int i = 0; i < 3; i++) {
    o = usual;
    o.bias = &wrong[i];
    o.biases = 1;
    check_refused(&o, "bias");
  }
  o.bias = NULL;
  check_refused(&o, "bias");
  world w;
  world_open(&w, NULL, 8, 8);
  CHECK(w.sampler.options.temperature == 0.8 && w.sampler.options.top_k == 40);
  world_close(&w);
}

int main(void) {
  RUN(test_philox_known_answers);
  RUN(test_exp);
  RUN(test_greedy);
  RUN(test_against_plain);
  RUN(test_distributions);
  RUN(test_seeds_repeat);
  RUN(test_infinite_logits);
  RUN(test_edges);
  RUN(test_nothing_left);
  RUN(test_unknown_ids);
  RUN(test_breakers);
  RUN(test_own_function);
  RUN(test_log_probabilities);
  RUN(test_options_refused);
  return TEST_END();
}
