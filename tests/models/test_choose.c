/* SPDX-License-Identifier: MIT
 * Tokens chosen by the program are those that the host chooses, whatever is asked of sampling; where the program cannot,
 * logits come out; and what is not wanted of a run is not there. */
#include "tiny_world.h"

enum { SLOTS = 4, TEXT = 40 };

static rung_generator *open_generator(tiny *t, rung_choose choose, bool hidden) {
  rung_generate_options o = tiny_options(SLOTS, 96, 64);
  o.choose = choose;
  o.hidden = hidden;
  return tiny_generator(t, &o);
}

/* Sampling of each slot; `history` gives slot 1 what only the host does. */
static void set_sampling(rung_generator *g, bool history) {
  for (int32_t s = 0; s < SLOTS; s++) {
    rung_sample_options o = rung_sample_options_default();
    o.seed = 100 + (uint64_t)s;
    o.temperature = (const double[]){0.8, 1.5, 0, 1}[s];
    if (s == 1) o.top_k = 0, o.top_p = 1, o.min_p = 0;
    if (s == 3) o.top_k = 0, o.top_p = 0.6, o.min_p = 0;
    if (s == 1 && history) o.repeat_penalty = 1.3;
    CHECK_OK(rung_generator_sampling(g, s, &o));
  }
}

/* Which of the two outputs did the last run give? */
static int given(rung_generator *g) {
  const rung_program *p = rung_generator_program(g);
  const int logits = rung_program_find_output(p, "logits"), tokens = rung_program_find_output(p, "tokens");
  rung_tensor out;
  int n = 0;
  if (!rung_context_output(rung_generator_context(g), logits, &out)) n += 1;
  if (tokens >= 0 && !rung_context_output(rung_generator_context(g), tokens, &out)) n += 2;
  return n;
}

static bool make_texts(tiny *t, rung_choose choose, bool history, tiny_texts *texts, int *out_given) {
  rung_generator *g = open_generator(t, choose, false);
  if (!g) return false;
  CHECK_EQ_I64(rung_program_find_output(rung_generator_program(g), "tokens") >= 0, choose == RUNG_CHOOSE_DEVICE);
  set_sampling(g, history);
  for (int32_t s = 0; s < SLOTS; s++) CHECK_OK(tiny_prompt(t, g, s, s, 3 + 7 * s));
  CHECK(tiny_go_on(g, (1 << SLOTS) - 1, TEXT, texts));
  *out_given = given(g);
  rung_generator_destroy(g);
  return true;
}

static void check_same_texts(tiny *t, bool history) {
  static tiny_texts host, device, automatic;
  int from;
  memset(&host, 0, sizeof host);
  memset(&device, 0, sizeof device);
  memset(&automatic, 0, sizeof automatic);
  if (!make_texts(t, RUNG_CHOOSE_HOST, history, &host, &from)) return;
  CHECK_EQ_I64(from, 1);
  if (!make_texts(t, RUNG_CHOOSE_AUTO, history, &automatic, &from)) return; /* on this device the host */
  CHECK_EQ_I64(from, 1);
  if (!make_texts(t, RUNG_CHOOSE_DEVICE, history, &device, &from)) return;
  CHECK_EQ_I64(from, history ? 1 : 2);
  CHECK(memcmp(&host, &device, sizeof host) == 0);
  CHECK(memcmp(&host, &automatic, sizeof host) == 0);
  CHECK(host.count[0] > 3);
}

static void each_family(void (*test)(tiny *t)) {
  for (int f = 0; f < 2; f++) {
    tiny t;
    if (tiny_open(&t, tiny_paths[f], 2)) test(&t);
    tiny_close(&t);
  }
}

static void check_texts(tiny *t) {
  check_same_texts(t, false);
  check_same_texts(t, true);
}
static void test_same_texts(void) { each_family(check_texts); }

/* A slot that changes to sampling of the host's and back goes on as if it had always been one of the two. */
static void check_changes(tiny *t) {
  tiny_texts texts[2];
  memset(texts, 0, sizeof texts);
  for (int way = 0; way < 2; way++) {
    rung_generator *g = open_generator(t, way ? RUNG_CHOOSE_DEVICE : RUNG_CHOOSE_HOST, true);
    if (!g) return;
    for (int part = 0; part < 4; part++) {
      rung_sample_options o = rung_sample_options_default();
      o.seed = (uint64_t)part;
      o.log_probabilities = part % 2 ? 3 : 0;
      CHECK_OK(rung_generator_sampling(g, 0, &o));
      if (part == 0) CHECK_OK(tiny_prompt(t, g, 0, 5, 9));
      CHECK(tiny_go_on(g, 1, 6 * (part + 1), &texts[way]));
      double chosen;
      if (texts[way].count[0] < 6 * (part + 1)) break; /* the text has ended */
      CHECK_STATUS(rung_generator_log_probabilities(g, 0, &chosen, NULL, NULL), part % 2 ? RUNG_OK : RUNG_NOT_FOUND);
      if (way) CHECK_EQ_I64(given(g), part % 2 ? 1 : 2);
      const float *hidden = NULL;
      int32_t rows = 0;
      CHECK_OK(rung_generator_hidden(g, &hidden, &rows));
      CHECK(rows == 1 && hidden);
    }
    rung_generator_destroy(g);
  }
  CHECK(memcmp(&texts[0], &texts[1], sizeof texts[0]) == 0);
}
static void test_changes(void) { each_family(check_changes); }

/* Runs by hand give logits, equal to the bit to those of a program that does not choose; then steps choose again. */
static void check_runs(tiny *t) {
  rung_generator *g[2] = {open_generator(t, RUNG_CHOOSE_HOST, false), open_generator(t, RUNG_CHOOSE_DEVICE, false)};
  const float *row[2] = {NULL, NULL};
  rung_token token[2][SLOTS];
  const size_t bytes = (size_t)t->info.vocabulary * sizeof(float);
  int32_t ids[5];
  for (int i = 0; i < 5; i++) ids[i] = tiny_id(t, 2, i);
  for (int way = 0; way < 2 && g[0] && g[1]; way++) {
    size_t n = 0;
    CHECK_OK(tiny_prompt(t, g[way], 1, 4, 8));
    CHECK_OK(rung_generator_step(g[way], token[way], &n, NULL));
    CHECK_EQ_I64(n, 1);
    CHECK_OK(rung_generator_run(g[way], (const rung_rows[]){{0, 5}}, 1, ids, (const int32_t[]){4}, 1, &row[way]));
  }
  CHECK(row[0] && row[1] && memcmp(row[0], row[1], bytes) == 0);
  for (int way = 0; way < 2 && g[0] && g[1]; way++) {
    size_t n = 0;
    const int32_t before = token[way][0].id;
    CHECK_OK(rung_generator_step(g[way], token[way], &n, NULL));
    CHECK(n == 1 && token[way][0].slot == 1);
    CHECK(before >= 0);
  }
  if (g[0] && g[1]) CHECK_EQ_I64(token[0][0].id, token[1][0].id);
  rung_generator_destroy(g[0]);
  rung_generator_destroy(g[1]);
}
static void test_runs_by_hand(void) { each_family(check_runs); }

static void test_refusals(void) {
  tiny t;
  if (tiny_open(&t, tiny_paths[0], 1)) {
    rung_generate_options o = tiny_options(1, 16, 4);
    rung_generator *g = NULL;
    o.choose = (rung_choose)7;
    CHECK_STATUS(rung_generator_create(t.model, &o, &t.error, &g), RUNG_INVALID_ARGUMENT);
    CHECK(strstr(t.error.message, "choose") != NULL);
  }
  tiny_close(&t);
}

int main(void) {
  RUN(test_same_texts);
  RUN(test_changes);
  RUN(test_runs_by_hand);
  RUN(test_refusals);
  return TEST_END();
}
