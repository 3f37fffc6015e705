/* SPDX-License-Identifier: MIT
 * Feeds against plain arrays: rows of outputs into dense states in each of the four ways, whole outputs behind runs,
 * outputs that are the state's own memory, refusals that change nothing, clones. */
#include <math.h>

#include "cts/world.h"

enum { BATCH = 3, CAPACITY = 8, ROW = 2, CELLS = BATCH * CAPACITY * ROW };
enum { OUT_ONE, OUT_TWO, OUT_CACHE, OUT_FLAT, OUT_READ };

/* one, two: [b, 2]; cache: [b, n, 2]; flat: the same numbers as [b*n, 1, 2]. The states are read, too. */
static const char text[] =
    "rung 1\nsymbol b 0..3\nsymbol n 0..12\n"
    "%x = input {name=\"x\"} : f32[b,2]\n"
    "%c = input {name=\"c\"} : f32[b,n,2]\n"
    "%k = input {name=\"k\"} : i32[b]\n"
    "%s = state {name=\"s\"} : state f32[3,8,2]\n"
    "%t = state {name=\"t\"} : state f32[3,8,2]\n"
    "%first = state {name=\"first\"} : state f32[1,8,2]\n"
    "%line = state {name=\"line\"} : state f32[8]\n"
    "%ints = state {name=\"ints\"} : state i32[3]\n"
    "%empty = state {name=\"empty\"} : state f32[3,8,0]\n"
    "%kv = state {name=\"kv\"} : kv f32[2,8,8]\n"
    "%one = neg %x\n"
    "%two = add %x, %x\n"
    "%cache = neg %c\n"
    "%flat = reshape %cache {shape=[b*n,1,2]}\n"
    "%flat1 = add %flat, %flat\n"
    "%r = reduce_sum %s {axes=[0,1,2]}\n"
    "%r1 = reduce_sum %t {axes=[0,1,2]}\n"
    "%r2 = reduce_sum %first {axes=[0,1,2]}\n"
    "%r3 = reduce_sum %line {axes=[0]}\n"
    "%r5 = reduce_sum %empty {axes=[0,1,2]}\n"
    "%e = neg %empty\n"
    "%q = add %r, %r1\n%q1 = add %q, %r2\n%q2 = add %q1, %r3\n%q3 = add %q2, %r5\n"
    "%m = neg %ints\n"
    "output \"one\" %one\n"
    "output \"two\" %two\n"
    "output \"cache\" %cache\n"
    "output \"flat\" %flat1\n"
    "output \"read\" %q3\n"
    "output \"m\" %m\n"
    "output \"k2\" %k\n"
    "output \"e\" %e\n";

typedef struct model {
  float s[CELLS], t[CELLS], first[CAPACITY * ROW];
} model;

static bool open_world(world *w, int d) {
  const rung_state_options so = rung_state_options_default();
  return world_open(w, text, &(world_options){.device = world_devices[d], .state = &so});
}

static float *state_of(world *w, const char *name) {
  rung_tensor t = {0};
  CHECK_OK(rung_state_tensor(w->state, name, NULL, &t));
  return t.data;
}

static void check_model(world *w, const model *m) {
  CHECK(memcmp(state_of(w, "s"), m->s, sizeof m->s) == 0);
  CHECK(memcmp(state_of(w, "t"), m->t, sizeof m->t) == 0);
  CHECK(memcmp(state_of(w, "first"), m->first, sizeof m->first) == 0);
}

static float value_of(int run, int64_t i) { return (float)(run * 1000 + (int)i); }

static bool run_with(world *w, int run, int64_t b, int64_t n) {
  float x[BATCH * ROW], c[BATCH * 12 * ROW];
  for (int64_t i = 0; i < b * ROW; i++) x[i] = value_of(run, i);
  for (int64_t i = 0; i < b * n * ROW; i++) c[i] = value_of(run, 100 + i);
  const int32_t k[BATCH] = {1, 2, 3};
  return world_put(w, 0, (int64_t[]){b, ROW}, x, (size_t)(b * ROW) * 4) &&
         world_put(w, 1, (int64_t[]){b, n, ROW}, c, (size_t)(b * n * ROW) * 4) &&
         world_put(w, 2, &b, k, (size_t)b * 4) && world_run(w);
}

/* Row of `state` [.., CAPACITY, ROW]: entry b, row r. */
static void set(float *state, int64_t b, int64_t r, float a0, float a1) {
  state[(b * CAPACITY + r) * ROW] = a0;
  state[(b * CAPACITY + r) * ROW + 1] = a1;
}

/* ---- the four ways */

static void test_row(void) {
  for (int d = 0; d < 2; d++) {
    world w;
    model m = {{0}, {0}, {0}};
    if (open_world(&w, d)) {
      CHECK_OK(rung_context_add_feed(w.context, "cache", "first"));
      CHECK_OK(rung_context_add_feed(w.context, "flat", "s")); /* its first entry */
      CHECK_EQ_I64(rung_context_feeds(w.context), 2);
      CHECK_STATUS(rung_context_feed_row(w.context, 0, 0), RUNG_INVALID_ARGUMENT); /* no run yet */
      for (int run = 1; run < 6; run++) {
        CHECK(run_with(&w, run, 1, 5));
        const int64_t source = run % 5, row = (run * 3) % CAPACITY;
        CHECK_OK(rung_context_feed_row(w.context, source, row));
        const float a = value_of(run, 100 + source * 2), b = value_of(run, 101 + source * 2);
        set(m.first, 0, row, -a, -b);
        set(m.s, 0, row, -2 * a, -2 * b);
        check_model(&w, &m);
      }
      CHECK_STATUS(rung_context_feed_row(w.context, 5, 0), RUNG_OUT_OF_RANGE);
      CHECK_STATUS(rung_context_feed_row(w.context, -1, 0), RUNG_OUT_OF_RANGE);
      CHECK_STATUS(rung_context_feed_row(w.context, 0, CAPACITY), RUNG_OUT_OF_RANGE);
      CHECK(strstr(rung_context_message(w.context), "capacity is 8") != NULL);
      CHECK_STATUS(rung_context_feed_row(w.context, 0, -1), RUNG_OUT_OF_RANGE);
      CHECK_STATUS(rung_context_feed_row(w.context, INT64_MAX, INT64_MAX), RUNG_OUT_OF_RANGE);
      check_model(&w, &m);
    }
    world_close(&w);
  }
}

static void test_batch(void) {
  world w;
  model m = {{0}, {0}, {0}};
  if (open_world(&w, 1)) {
    CHECK_OK(rung_context_add_feed(w.context, "one", "s"));
    CHECK_OK(rung_context_add_feed(w.context, "two", "t"));
    for (int run = 1; run < 6; run++) {
      const int64_t batch = run % 4, row = (run * 5) % CAPACITY;
      CHECK(run_with(&w, run, batch, 1));
      CHECK_OK(rung_context_feed_batch(w.context, batch, row));
      for (int64_t b = 0; b < batch; b++) {
        const float a0 = value_of(run, b * 2), a1 = value_of(run, b * 2 + 1);
        set(m.s, b, row, -a0, -a1);
        set(m.t, b, row, 2 * a0, 2 * a1);
      }
      check_model(&w, &m);
      CHECK_STATUS(rung_context_feed_batch(w.context, batch + 1, row),
                   batch == BATCH ? RUNG_OUT_OF_RANGE : RUNG_SHAPE_MISMATCH);
      if (batch) CHECK_STATUS(rung_context_feed_batch(w.context, batch, CAPACITY), RUNG_OUT_OF_RANGE);
      CHECK_OK(rung_context_feed_batch(w.context, 0, 1000)); /* nobody is asked anything */
      CHECK_STATUS(rung_context_feed_batch(w.context, -1, 0), RUNG_OUT_OF_RANGE);
      check_model(&w, &m);
    }
    /* One feed that does not fit: the other is not done either. */
    CHECK_OK(rung_context_add_feed(w.context, "cache", "t"));
    CHECK(run_with(&w, 7, 2, 3));
    CHECK_STATUS(rung_context_feed_batch(w.context, 2, 1), RUNG_SHAPE_MISMATCH);
    check_model(&w, &m);
    rung_context_clear_feeds(w.context);
    CHECK_EQ_I64(rung_context_feeds(w.context), 0);
    CHECK_OK(rung_context_feed_batch(w.context, 2, 1));
    check_model(&w, &m);
  }
  world_close(&w);
}

/* Source caches of other capacities, larger ones too. */
static void test_cache(void) {
  world w;
  model m = {{0}, {0}, {0}};
  if (open_world(&w, 1)) {
    CHECK_OK(rung_context_add_feed(w.context, "cache", "s"));
    CHECK_OK(rung_context_add_feed(w.context, "flat", "t"));
    for (int run = 1; run < 13; run++) {
      const int64_t batch = 1 + run % 3, capacity = run, source = run / 2, row = (run * 3) % CAPACITY;
      CHECK(run_with(&w, run, batch, capacity));
      CHECK_OK(rung_context_feed_cache(w.context, batch, capacity, source, row));
      for (int64_t b = 0; b < batch; b++) {
        const float a0 = value_of(run, 100 + (b * capacity + source) * 2),
                    a1 = value_of(run, 101 + (b * capacity + source) * 2);
        set(m.s, b, row, -a0, -a1);
        set(m.t, b, row, -2 * a0, -2 * a1);
      }
      check_model(&w, &m);
      CHECK_STATUS(rung_context_feed_cache(w.context, batch, capacity + 1, source, row), RUNG_SHAPE_MISMATCH);
      CHECK_STATUS(rung_context_feed_cache(w.context, batch, capacity, capacity, row), RUNG_OUT_OF_RANGE);
      CHECK_STATUS(rung_context_feed_cache(w.context, batch, capacity, source, CAPACITY), RUNG_OUT_OF_RANGE);
      CHECK_STATUS(rung_context_feed_cache(w.context, batch, 0, 0, 0), RUNG_OUT_OF_RANGE);
      CHECK_STATUS(rung_context_feed_cache(w.context, batch, INT64_MAX, 0, 0), RUNG_SHAPE_MISMATCH);
      CHECK_OK(rung_context_feed_cache(w.context, 0, 0, 0, 0));
      check_model(&w, &m);
    }
  }
  world_close(&w);
}

static void test_ragged(void) {
  world w;
  model m = {{0}, {0}, {0}};
  if (open_world(&w, 1)) {
    CHECK_OK(rung_context_add_feed(w.context, "one", "s"));
    CHECK_OK(rung_context_add_feed(w.context, "one", "t")); /* an output may feed several */
    for (int run = 1; run < 8; run++) {
      const int64_t batch = run % 4, rows[BATCH + 1] = {run % 8, (run * 5) % 8, 7 - run % 8, 0};
      CHECK(run_with(&w, run, batch, 1));
      CHECK_OK(rung_context_feed_ragged(w.context, rows, batch));
      for (int64_t b = 0; b < batch; b++) {
        set(m.s, b, rows[b], -value_of(run, b * 2), -value_of(run, b * 2 + 1));
        set(m.t, b, rows[b], -value_of(run, b * 2), -value_of(run, b * 2 + 1));
      }
      check_model(&w, &m);
      CHECK_STATUS(rung_context_feed_ragged(w.context, rows, batch + 1),
                   batch == BATCH ? RUNG_OUT_OF_RANGE : RUNG_SHAPE_MISMATCH);
      if (batch) CHECK_STATUS(rung_context_feed_ragged(w.context, NULL, batch), RUNG_INVALID_ARGUMENT);
      const int64_t wrong[BATCH] = {0, 0, 8};
      if (batch == BATCH) CHECK_STATUS(rung_context_feed_ragged(w.context, wrong, batch), RUNG_OUT_OF_RANGE);
      check_model(&w, &m);
    }
  }
  world_close(&w);
}

/* ---- the state's own memory */

static void test_same_memory(void) {
  for (int d = 0; d < 2; d++) {
    world w;
    model m = {{0}, {0}, {0}};
    if (open_world(&w, d)) {
      const int64_t whole[] = {BATCH, CAPACITY, ROW};
      const rung_tensor same = rung_tensor_dense(RUNG_TYPE_F32, 3, whole, state_of(&w, "s"));
      CHECK_OK(rung_context_add_feed(w.context, "cache", "s"));
      CHECK_OK(rung_context_bind_output(w.context, OUT_CACHE, &same));
      CHECK(run_with(&w, 2, BATCH, CAPACITY));
      for (int64_t i = 0; i < CELLS; i++) m.s[i] = -value_of(2, 100 + i);
      check_model(&w, &m);
      const uint64_t moved = rung_state_moved(w.state);
      CHECK_OK(rung_context_feed_cache(w.context, BATCH, CAPACITY, 5, 5)); /* the same row */
      CHECK_EQ_I64(rung_state_moved(w.state), moved);
      CHECK_OK(rung_context_feed_cache(w.context, BATCH, CAPACITY, 6, 2)); /* a move inside it */
      for (int64_t b = 0; b < BATCH; b++)
        set(m.s, b, 2, m.s[(b * CAPACITY + 6) * ROW], m.s[(b * CAPACITY + 6) * ROW + 1]);
      check_model(&w, &m);
      CHECK_EQ_I64(rung_state_moved(w.state), moved + BATCH * ROW * 4);
      /* Another capacity in the same memory. */
      CHECK(run_with(&w, 3, BATCH, 4));
      memcpy(m.s, state_of(&w, "s"), sizeof m.s);
      CHECK_STATUS(rung_context_feed_cache(w.context, BATCH, 4, 1, 1), RUNG_INVALID_ARGUMENT);
      CHECK(strstr(rung_context_message(w.context), "same memory") != NULL);
      check_model(&w, &m);
      /* Inside the state, but elsewhere. */
      const rung_tensor across = rung_tensor_dense(RUNG_TYPE_F32, 3, (int64_t[]){BATCH, 4, ROW}, state_of(&w, "s") + 8);
      CHECK_OK(rung_context_bind_output(w.context, OUT_CACHE, &across));
      CHECK(run_with(&w, 3, BATCH, 4));
      memcpy(m.s, state_of(&w, "s"), sizeof m.s);
      CHECK_STATUS(rung_context_feed_cache(w.context, BATCH, 4, 1, 1), RUNG_INVALID_ARGUMENT);
      check_model(&w, &m);
    }
    world_close(&w);
  }
}

/* ---- whole outputs */

static void test_whole(void) {
  for (int d = 0; d < 2; d++) {
    world w;
    model m = {{0}, {0}, {0}};
    if (open_world(&w, d)) {
      CHECK_OK(rung_context_add_whole_feed(w.context, "cache", "s"));
      CHECK_OK(rung_context_add_whole_feed(w.context, "cache", "t"));
      for (int run = 1; run < 9; run++) {
        const int64_t batch = run % 4, n = run;
        CHECK(run_with(&w, run, batch, n));
        float total = 0;
        for (int64_t i = 0; i < CELLS; i++) total += m.s[i] + m.t[i];
        const rung_tensor read = world_output(&w, OUT_READ);
        CHECK(*(float *)read.data == total); /* the run saw what was before */
        for (int64_t b = 0; b < batch; b++)
          for (int64_t i = 0; i < n * ROW; i++)
            m.s[b * CAPACITY * ROW + i] = m.t[b * CAPACITY * ROW + i] = -value_of(run, 100 + b * n * ROW + i);
        check_model(&w, &m); /* rows past the actual ones stay */
      }
      /* More rows than there is room for: the run fails, and nothing has changed. */
      float x[6] = {0}, c[2 * 9 * 2] = {0};
      CHECK(world_put(&w, 0, (int64_t[]){2, 2}, x, 16) && world_put(&w, 1, (int64_t[]){2, 9, 2}, c, sizeof c) &&
            world_put(&w, 2, (int64_t[]){2}, x, 8));
      CHECK_STATUS(rung_context_run(w.context), RUNG_SHAPE_MISMATCH);
      CHECK(strstr(rung_context_message(w.context), "\"cache\"") != NULL);
      check_model(&w, &m);
      CHECK_STATUS(rung_context_add_whole_feed(w.context, "one", "s"), RUNG_SHAPE_MISMATCH);
    }
    world_close(&w);
  }
}

/* Buffers at the ceiling and an extent that was set: only the actual rows are fed. */
static void test_whole_under_an_extent(void) {
  static const char limited[] =
      "rung 1\nsymbol n 0..8\n"
      "%x = input {name=\"x\"} : f32[1,n,2]\n"
      "%s = state {name=\"s\"} : state f32[1,8,2]\n"
      "%y = neg %x\n"
      "%r = reduce_sum %s {axes=[0,1,2]}\n"
      "output \"y\" %y\noutput \"r\" %r\n";
  world w;
  const rung_state_options so = rung_state_options_default();
  if (world_open(&w, limited, &(world_options){.device = "cpu", .state = &so})) {
    static _Alignas(64) float x[16], y[16]; /* outputs are bound where they lie */
    for (int i = 0; i < 16; i++) x[i] = i < 6 ? (float)(i + 1) : NAN, y[i] = 77;
    const rung_tensor in = rung_tensor_dense(RUNG_TYPE_F32, 3, (int64_t[]){1, 8, 2}, x),
                      out = rung_tensor_dense(RUNG_TYPE_F32, 3, (int64_t[]){1, 8, 2}, y);
    CHECK_OK(rung_context_add_whole_feed(w.context, "y", "s"));
    CHECK_OK(rung_context_bind_input_ceiling(w.context, 0, &in));
    CHECK_OK(rung_context_bind_output_ceiling(w.context, 0, &out));
    CHECK_OK(rung_context_set_extent(w.context, "n", 3));
    CHECK(world_run(&w));
    const float *s = state_of(&w, "s");
    for (int i = 0; i < 16; i++) CHECK(s[i] == (i < 6 ? -(float)(i + 1) : 0));
    CHECK(y[5] == -6 && y[6] == 77);
  }
  world_close(&w);
}

/* ---- what cannot be registered, clones, memory */

static void test_refusals(void) {
  world w;
  if (open_world(&w, 1)) {
    static const struct {
      const char *output, *state;
      rung_status want;
    } bad[] = {{"none", "s", RUNG_NOT_FOUND},       {"one", "none", RUNG_NOT_FOUND}, {NULL, "s", RUNG_NOT_FOUND},
               {"one", NULL, RUNG_NOT_FOUND},       {"one", "kv", RUNG_UNSUPPORTED}, {"k2", "s", RUNG_TYPE_MISMATCH},
               {"one", "line", RUNG_SHAPE_MISMATCH}};
    for (size_t i = 0; i < RUNG_COUNT(bad); i++) {
      CHECK_STATUS(rung_context_add_feed(w.context, bad[i].output, bad[i].state), bad[i].want);
      CHECK(rung_context_message(w.context)[0]);
    }
    CHECK_EQ_I64(rung_context_feeds(w.context), 0);
    /* Rows of no numbers: nothing is done. */
    CHECK_OK(rung_context_add_feed(w.context, "e", "empty"));
    CHECK(run_with(&w, 1, 2, 2));
    CHECK_OK(rung_context_feed_row(w.context, 100, 100));
    CHECK_OK(rung_context_feed_batch(w.context, 100, 100));
    test_fault f = {.kind = RUNG_FAULT_ALLOC, .at = 1};
    rung_context_clear_feeds(w.context);
    rung_host_set_fault(w.host, test_fault_hit, &f);
    CHECK_STATUS(rung_context_add_feed(w.context, "one", "s"), RUNG_OUT_OF_MEMORY);
    rung_host_set_fault(w.host, NULL, NULL);
    CHECK_EQ_I64(rung_context_feeds(w.context), 0);
  }
  world_close(&w);
}

static void test_clone(void) {
  world w, copy;
  model m = {{0}, {0}, {0}}, n;
  if (open_world(&w, 1)) {
    CHECK_OK(rung_context_add_feed(w.context, "one", "s"));
    CHECK_OK(rung_context_add_whole_feed(w.context, "cache", "t"));
    CHECK(run_with(&w, 1, 3, 8));
    for (int64_t i = 0; i < CELLS; i++) m.t[i] = -value_of(1, 100 + i);
    n = m;
    copy = w;
    CHECK_OK(rung_context_clone(w.context, &w.error, &copy.context));
    copy.state = copy.context->state;
    CHECK_EQ_I64(rung_context_feeds(copy.context), 2);
    CHECK_STATUS(rung_context_feed_batch(copy.context, 3, 1), RUNG_INVALID_ARGUMENT); /* results are not taken along */
    CHECK(run_with(&copy, 2, 3, 8));
    CHECK_OK(rung_context_feed_batch(copy.context, 3, 1));
    for (int64_t b = 0; b < BATCH; b++) set(n.s, b, 1, -value_of(2, b * 2), -value_of(2, b * 2 + 1));
    for (int64_t i = 0; i < CELLS; i++) n.t[i] = -value_of(2, 100 + i);
    check_model(&copy, &n);
    check_model(&w, &m);
    rung_context_destroy(copy.context);
    rung_program *small;
    CHECK_OK(rung_program_create(w.template_, &(rung_binding){"n", 8}, 1, &w.error, &small));
    CHECK_OK(rung_context_use(w.context, small)); /* feeds stay */
    rung_program_release(small);
    CHECK_STATUS(rung_context_feed_batch(w.context, 3, 1), RUNG_INVALID_ARGUMENT);
    CHECK(run_with(&w, 2, 3, 8));
    CHECK_OK(rung_context_feed_batch(w.context, 3, 1));
    check_model(&w, &n);
  }
  world_close(&w);
}

int main(void) {
  RUN(test_row);
  RUN(test_batch);
  RUN(test_cache);
  RUN(test_ragged);
  RUN(test_same_memory);
  RUN(test_whole);
  RUN(test_whole_under_an_extent);
  RUN(test_refusals);
  RUN(test_clone);
  return TEST_END();
}
