/* SPDX-License-Identifier: MIT
 * A generator that is one step ahead gives what one gives that is not, whatever is asked of it in between. On a device of
 * the host whose memory counts as far. */
#include "cts/far_world.h"
#include "models/generator.h"
#include "tiny_world.h"

enum { CONTEXT = 96 };

typedef struct side {
  tiny t;
  rung_generator *g;
} side;

/* far: choosing on the device, one step ahead; else by the host. */
static bool open_side(side *s, const char *path, bool far, int64_t context) {
  const rung_source source = rung_source_path(path);
  rung_generate_options o = tiny_options(1, context, 16);
  o.choose = far ? RUNG_CHOOSE_DEVICE : RUNG_CHOOSE_HOST;
  *s = (side){0};
  rung_status status = rung_host_create(NULL, &s->t.error, &s->t.host);
  if (!status) status = rung_device_create(s->t.host, "cpu", NULL, &s->t.error, &s->t.device);
  if (!status && far) far_world_make(s->t.device);
  if (!status) status = rung_model_open(s->t.device, &source, NULL, &s->t.error, &s->t.model);
  if (!status) rung_model_get_info(s->t.model, &s->t.info);
  if (!status) status = rung_generator_create(s->t.model, &o, &s->t.error, &s->g);
  test_state.checks++;
  if (status) TEST_FAIL_("%s: %s", path, s->t.error.message);
  return !status;
}
static void close_side(side *s) {
  rung_generator_destroy(s->g);
  tiny_close(&s->t);
}

typedef struct pair {
  side far, plain;
  int ahead, tokens;
} pair;
static bool open_pair(pair *p, const char *path, int64_t context) {
  memset(p, 0, sizeof *p);
  const bool far = open_side(&p->far, path, true, context);
  return open_side(&p->plain, path, false, context) && far;
}
static void close_pair(pair *p) {
  close_side(&p->far);
  close_side(&p->plain);
}

static void sampling(pair *p, double temperature, uint64_t seed, bool history) {
  rung_sample_options o = rung_sample_options_default();
  o.temperature = temperature;
  o.seed = seed;
  if (history) o.repeat_penalty = 1.2;
  CHECK_OK(rung_generator_sampling(p->far.g, 0, &o));
  CHECK_OK(rung_generator_sampling(p->plain.g, 0, &o));
}

static void prompt(pair *p, int which, int64_t n) {
  CHECK_EQ_I64(tiny_prompt(&p->far.t, p->far.g, 0, which, n), tiny_prompt(&p->plain.t, p->plain.g, 0, which, n));
}

/* One step of both: false where nothing is left to do. */
static bool step(pair *p) {
  rung_token a, b;
  size_t n = 0, m = 0;
  bool busy = false, too = false;
  const rung_status x = rung_generator_step(p->far.g, &a, &n, &busy), y = rung_generator_step(p->plain.g, &b, &m, &too);
  test_state.checks++;
  if (x != y || n != m || busy != too || (n && (a.id != b.id || a.end != b.end || a.slot != b.slot))) {
    TEST_FAIL_("token %d: %s %s, %d and %d", p->tokens, rung_generator_message(p->far.g),
               rung_generator_message(p->plain.g), n ? a.id : -1, m ? b.id : -1);
    return false;
  }
  CHECK_EQ_I64(rung_generator_length(p->far.g, 0), rung_generator_length(p->plain.g, 0));
  CHECK_EQ_I64(rung_generator_runs(p->far.g), rung_generator_runs(p->plain.g));
  p->tokens += n > 0;
  p->ahead += p->far.g->ahead;
  return busy;
}

static void test_texts(void) {
  for (size_t f = 0; f < RUNG_COUNT(tiny_paths); f++) {
    pair p;
    if (open_pair(&p, tiny_paths[f], CONTEXT)) {
      int busy = 0;
      for (int round = 0; round < 12; round++) {
        sampling(&p, (const double[]){0, 0.8, 2}[round % 3], (uint64_t)round, false);
        CHECK_OK(rung_generator_reset(p.far.g, 0));
        CHECK_OK(rung_generator_reset(p.plain.g, 0));
        prompt(&p, round, 1 + 5 * round);
        while (step(&p)) busy++;
      }
      /* Behind every step that is not the last of its text; not where there are windows. */
      CHECK_EQ_I64(p.ahead > busy / 2, p.far.t.info.window == 0);
      CHECK(p.tokens > 40);
    }
    close_pair(&p);
  }
}

static void test_end_of_context(void) {
  for (int64_t context = 2; context < 14; context++) {
    pair p;
    if (open_pair(&p, tiny_paths[0], context)) {
      sampling(&p, 2, 3, false);
      prompt(&p, 1, 1 + context / 3);
      while (step(&p)) continue;
      CHECK_EQ_I64(rung_state_length(rung_generator_state(p.far.g), 0),
                   rung_state_length(rung_generator_state(p.plain.g), 0));
    }
    close_pair(&p);
  }
}

static void same_ids(pair *p) {
  const int32_t *a = NULL, *b = NULL;
  size_t n = 0, m = 0;
  CHECK_OK(rung_generator_ids(p->far.g, 0, &a, &n));
  CHECK_OK(rung_generator_ids(p->plain.g, 0, &b, &m));
  CHECK(n == m && (!n || memcmp(a, b, n * sizeof *a) == 0));
}

static void same_logits(pair *p, int which) {
  const float *a = NULL, *b = NULL;
  const int32_t ids[2] = {tiny_id(&p->far.t, which, 0), tiny_id(&p->far.t, which, 1)};
  const rung_status x = rung_generator_run(p->far.g, (const rung_rows[]){{0, 2}}, 1, ids, (const int32_t[]){1}, 1, &a),
                    y = rung_generator_run(p->plain.g, (const rung_rows[]){{0, 2}}, 1, ids, (const int32_t[]){1}, 1,
                                           &b);
  CHECK_EQ_I64(x, y);
  if (!x && !y) CHECK(memcmp(a, b, (size_t)p->far.t.info.vocabulary * sizeof *a) == 0);
}

static void set_text(pair *p, int which, size_t n) {
  int32_t ids[CONTEXT];
  size_t kept = 0, too = 0;
  for (size_t i = 0; i < n; i++) ids[i] = tiny_id(&p->far.t, which, (int64_t)i);
  CHECK_OK(rung_generator_set_text(p->far.g, 0, ids, n, &kept));
  CHECK_OK(rung_generator_set_text(p->plain.g, 0, ids, n, &too));
  CHECK_EQ_I64(kept, too);
}

static void truncate_both(pair *p, int64_t length) {
  if (length > rung_generator_length(p->plain.g, 0)) length = rung_generator_length(p->plain.g, 0);
  CHECK_OK(rung_generator_truncate(p->far.g, 0, length));
  CHECK_OK(rung_generator_truncate(p->plain.g, 0, length));
}

/* Calls of every kind between steps, in any order. */
static void test_calls_between(void) {
  pair p;
  uint64_t seed = 77;
  if (open_pair(&p, tiny_paths[0], CONTEXT)) {
    sampling(&p, 1, 1, false);
    prompt(&p, 0, 7);
    for (int i = 0; i < 400; i++) {
      const int what = (int)test_below(&seed, 14), which = (int)test_below(&seed, 9);
      if (what < 6) (void)!step(&p);
      if (what == 6) prompt(&p, which, 1 + which);
      if (what == 7) sampling(&p, (double)(which % 3), (uint64_t)i, which == 4);
      if (what == 8) truncate_both(&p, test_below(&seed, CONTEXT));
      if (what == 9) same_ids(&p);
      if (what == 10) same_logits(&p, which);
      if (what == 11) set_text(&p, which % 2, 3 + (size_t)which);
      if (what == 12 && which < 3) rung_generator_pause(p.far.g, 0), rung_generator_pause(p.plain.g, 0);
      if (what == 13 && which < 2) truncate_both(&p, 0);
    }
    CHECK(p.ahead > 20 && p.tokens > 60);
  }
  close_pair(&p);
}

/* The step whose run fails says so, and the next one goes on as if nothing had been. */
static void test_failure(void) {
  pair p;
  if (open_pair(&p, tiny_paths[0], CONTEXT)) {
    sampling(&p, 1, 5, false);
    prompt(&p, 2, 6);
    for (int i = 0; i < 20 && step(&p); i++) {
      rung_token token;
      size_t n = 1;
      if (i % 5 != 2 || !p.far.g->ahead) continue;
      rung_context_cancel(rung_generator_context(p.far.g)); /* what is on its way */
      CHECK_STATUS(rung_generator_step(p.far.g, &token, &n, NULL), RUNG_CANCELLED);
      CHECK_EQ_I64(n, 0);
      CHECK(rung_generator_message(p.far.g)[0]);
      CHECK_EQ_I64(rung_generator_length(p.far.g, 0), rung_generator_length(p.plain.g, 0));
      p.plain.g->runs++;
    }
    CHECK(p.tokens > 4);
  }
  close_pair(&p);
}

/* Who has the state may look at it: there is nothing ahead from then on. */
static void test_state_in_hand(void) {
  pair p;
  if (open_pair(&p, tiny_paths[0], CONTEXT)) {
    sampling(&p, 1, 9, false);
    prompt(&p, 4, 5);
    CHECK(step(&p) && step(&p) && p.ahead == 2);
    const rung_state *state = rung_generator_state(p.far.g);
    CHECK_EQ_I64(rung_state_length(state, 0), rung_generator_length(p.plain.g, 0));
    for (int i = 0; i < 3 && step(&p); i++)
      CHECK_EQ_I64(rung_state_length(state, 0), rung_generator_length(p.plain.g, 0));
    CHECK_EQ_I64(p.ahead, 2);
  }
  close_pair(&p);
}

static void test_no_memory(void) {
  for (int64_t n = 1; n < 400; n++) {
    side s;
    test_fault f = {.kind = RUNG_FAULT_ALLOC, .at = n};
    bool hit = false;
    if (open_side(&s, tiny_paths[0], true, CONTEXT)) {
      rung_host_set_fault(s.t.host, test_fault_hit, &f);
      rung_status status = tiny_prompt(&s.t, s.g, 0, 3, 6);
      for (int i = 0; i < 6 && !status; i++) {
        rung_token token;
        size_t count;
        status = rung_generator_step(s.g, &token, &count, NULL);
      }
      rung_host_set_fault(s.t.host, NULL, NULL);
      hit = f.hit;
      CHECK(!status || (hit && status == RUNG_OUT_OF_MEMORY));
      rung_token token;
      size_t count = 0;
      if (s.g->sequence[0].live) CHECK_OK(rung_generator_step(s.g, &token, &count, NULL));
    }
    close_side(&s);
    if (!hit) break;
    CHECK(n < 399);
  }
}

int main(void) {
  RUN(test_texts);
  RUN(test_end_of_context);
  RUN(test_calls_between);
  RUN(test_failure);
  RUN(test_state_in_hand);
  RUN(test_no_memory);
  return TEST_END();
}
