/* SPDX-License-Identifier: MIT
 * Dense states after runs that fail: cancelled at every step, refused by a late kernel, out of memory in the middle.
 * They hold what they held before, bit for bit, whatever wrote them: rows, assignments, branches, loops. */
#include "cts/world.h"

/* rows: written by append_dense, twice. sum: by assign, in a branch, and again. turns: in a loop. where: the position of
 * the rows is a state, too. The last gather refuses an index beyond 7. */
static const char text[] =
    "rung 1\nsymbol n 1..6\nsymbol found <= 2000*n made\n"
    "%x = input {name=\"x\"} : f32[2,n,3]\n"
    "%i = input {name=\"i\"} : i32[2]\n"
    "%yes = input {name=\"yes\"} : bool[]\n"
    "%trip = input {name=\"trip\"} : i64[]\n"
    "%big = input {name=\"big\"} : f32[n,2000]\n"
    "%rows = state {name=\"rows\"} : state f32[2,8,3]\n"
    "%where = state {name=\"where\"} : state i32[2]\n"
    "%sum = state {name=\"sum\"} : state f32[8]\n"
    "%turns = state {name=\"turns\"} : state f32[8]\n"
    "%wide = state {name=\"wide\"} : state f32[8000]\n"
    "%wider = add %wide, %wide\n"
    "%wide1 = assign %wide, %wider\n"
    "%rows1 = append_dense %rows, %x, %where\n"
    "%two = constant {data=i32(1, 1)} : i32[2]\n"
    "%next = add %where, %two\n"
    "%where1 = assign %where, %next\n"
    "%rows2 = append_dense %rows1, %x, %where1\n"
    "%s = reduce_sum %rows2 {axes=[0,2]}\n"
    "%sum1 = if %yes, %sum, %s {\n"
    "  %s0 = input {name=\"s\"} : state f32[8]\n"
    "  %v = input {name=\"v\"} : f32[8]\n"
    "  %t = add %s0, %v\n"
    "  %s1 = assign %s0, %t\n"
    "  output \"s\" %s1\n"
    "} else {\n"
    "  %s0 = input {name=\"s\"} : state f32[8]\n"
    "  %v = input {name=\"v\"} : f32[8]\n"
    "  %t = sub %s0, %v\n"
    "  %s1 = assign %s0, %t\n"
    "  output \"s\" %s1\n"
    "}\n"
    "%go = constant {data=bool(1)} : bool[]\n"
    "%turns1 = loop %trip, %go, %turns, %s {carried=1, trip=4} {\n"
    "  %k = input {name=\"k\"} : i64[]\n"
    "  %c = input {name=\"c\"} : bool[]\n"
    "  %s0 = input {name=\"s\"} : state f32[8]\n"
    "  %v = input {name=\"v\"} : f32[8]\n"
    "  %d = add %s0, %s0\n"
    "  %t = add %d, %v\n"
    "  %s1 = assign %s0, %t\n"
    "  output \"c\" %c\n"
    "  output \"s\" %s1\n"
    "}\n"
    "%double = add %sum1, %sum1\n"
    "%sum2 = assign %sum1, %double\n"
    "%count = count_nonzero %big\n"
    "%bound = bind_symbol %count {symbol=\"found\", bound=2000*n}\n"
    "%some = nonzero %big {count=found}\n"
    "%some32 = cast %some {type=f32}\n"
    "%all = add %sum2, %turns1\n"
    "%y = gather %all, %i\n"
    "output \"y\" %y\n"
    "output \"some\" %some32\n";
enum { IN_X, IN_I, IN_YES, IN_TRIP, IN_BIG, STATES = 4 };
static const char *const names[STATES] = {"rows", "where", "sum", "turns"};

typedef struct held {
  float rows[48];
  int32_t where[2];
  float sum[8], turns[8];
} held;

static void read_states(world *w, held *out) {
  void *to[STATES] = {out->rows, out->where, out->sum, out->turns};
  const size_t bytes[STATES] = {sizeof out->rows, sizeof out->where, sizeof out->sum, sizeof out->turns};
  for (int s = 0; s < STATES; s++) {
    rung_tensor t;
    CHECK_OK(rung_state_tensor(w->state, names[s], NULL, &t));
    memcpy(to[s], t.data, bytes[s]);
  }
}

static void put(world *w, int run, int64_t n, int32_t last) {
  static float big[12000];
  float x[36];
  for (int i = 0; i < 36; i++) x[i] = (float)(run * 7 + i % 11) * 0.5f;
  for (int i = 0; i < 12000; i++) big[i] = (float)(i % 3);
  CHECK(world_put(w, IN_X, (int64_t[]){2, n, 3}, x, (size_t)n * 24) &&
        world_put(w, IN_I, (int64_t[]){2}, (int32_t[]){0, last}, 8) && world_put_bool(w, IN_YES, run % 2) &&
        world_put_i64(w, IN_TRIP, run % 4) && world_put(w, IN_BIG, (int64_t[]){n, 2000}, big, (size_t)n * 8000));
}

/* The same in C. */
static void model(held *h, int run, int64_t n) {
  float s[8] = {0};
  for (int turn = 0; turn < 2; turn++) {
    for (int b = 0; b < 2; b++) {
      if (turn) h->where[b]++;
      for (int64_t i = 0; i < n * 3; i++)
        h->rows[b * 24 + h->where[b] * 3 + i] = (float)(run * 7 + (int)(b * n * 3 + i) % 11) * 0.5f;
    }
  }
  for (int c = 0; c < 8; c++)
    for (int b = 0; b < 2; b++)
      for (int e = 0; e < 3; e++) s[c] += h->rows[b * 24 + c * 3 + e];
  for (int c = 0; c < 8; c++) h->sum[c] = 2 * (run % 2 ? h->sum[c] + s[c] : h->sum[c] - s[c]);
  for (int k = 0; k < run % 4; k++)
    for (int c = 0; c < 8; c++) h->turns[c] = 2 * h->turns[c] + s[c];
}

static bool open_world(world *w, int d) {
  const rung_state_options so = rung_state_options_default();
  return world_open(w, text, &(world_options){.device = world_devices[d], .state = &so});
}

static void check_states(world *w, const held *want) {
  held got;
  read_states(w, &got);
  CHECK(memcmp(&got, want, sizeof got) == 0);
}

static int countdown;
static void cancel_later(void *self, const rung_step_info *info) {
  (void)info;
  if (--countdown == 0) rung_context_cancel((rung_context *)self);
}

static void test_cancelled_at_every_step(void) {
  for (int d = 0; d < 2; d++) {
    world w;
    if (open_world(&w, d)) {
      held want = {{0}, {0}, {0}, {0}};
      int cancelled = 0;
      for (int run = 1; run < 5; run++) {
        const int64_t n = run;
        put(&w, run, n, 7);
        rung_context_on_step(w.context, cancel_later, w.context);
        for (int at = 1;; at++) {
          countdown = at;
          const rung_status status = rung_context_run(w.context);
          if (!status) break; /* one cancel behind the last step ends nothing */
          CHECK_STATUS(status, RUNG_CANCELLED);
          cancelled++;
          check_states(&w, &want);
        }
        rung_context_on_step(w.context, NULL, NULL);
        model(&want, run, n);
        check_states(&w, &want);
      }
      CHECK(cancelled > 40);
    }
    world_close(&w);
  }
}

static void test_refused_by_a_late_step(void) {
  for (int d = 0; d < 2; d++) {
    world w;
    if (open_world(&w, d)) {
      held want = {{0}, {0}, {0}, {0}};
      for (int run = 1; run < 5; run++) {
        for (int attempt = 0; attempt < 3; attempt++) {
          put(&w, run, 2, attempt < 2 ? 8 : 7);
          CHECK_STATUS(rung_context_run(w.context), attempt < 2 ? RUNG_OUT_OF_RANGE : RUNG_OK);
          if (attempt == 2) model(&want, run, 2);
          check_states(&w, &want);
        }
      }
      /* Rows that have no room for the second time: the first ones go as well. */
      put(&w, 1, 4, 7);
      CHECK_STATUS(rung_context_run(w.context), RUNG_OUT_OF_RANGE);
      check_states(&w, &want);
    }
    world_close(&w);
  }
}

/* The n-th allocation or commit of a run fails, growing sizes found on the way included; runs within sizes reached make
 * none. */
static void test_no_memory(void) {
  static const rung_fault kinds[] = {RUNG_FAULT_ALLOC, RUNG_FAULT_COMMIT};
  for (int d = 0; d < 2; d++) {
    for (size_t k = 0; k < RUNG_COUNT(kinds); k++) {
      bool hit = true;
      int failed = 0;
      for (int64_t at = 1; hit && at < 50; at++) {
        world w;
        hit = false;
        if (open_world(&w, d)) {
          held want = {{0}, {0}, {0}, {0}};
          put(&w, 1, 1, 7);
          CHECK(world_run(&w));
          model(&want, 1, 1);
          put(&w, 3, 5, 7);
          test_fault f = {.kind = kinds[k], .at = at};
          rung_host_set_fault(w.host, test_fault_hit, &f);
          const rung_status status = rung_context_run(w.context);
          rung_host_set_fault(w.host, NULL, NULL);
          hit = f.hit;
          failed += hit;
          CHECK_STATUS(status, hit ? RUNG_OUT_OF_MEMORY : RUNG_OK);
          if (hit) check_states(&w, &want);
          put(&w, 3, 5, 7);
          if (hit) CHECK(world_run(&w));
          model(&want, 3, 5);
          check_states(&w, &want);
          if (!hit) {
            put(&w, 0, 1, 7);
            test_fault none = {.kind = kinds[k]};
            rung_host_set_fault(w.host, test_fault_hit, &none);
            CHECK_STATUS(rung_context_run(w.context), RUNG_OK);
            rung_host_set_fault(w.host, NULL, NULL);
            CHECK_EQ_I64(none.count[kinds[k]], 0);
          }
        }
        world_close(&w);
      }
      if (kinds[k] == RUNG_FAULT_COMMIT) CHECK(failed > 1); /* before the steps, and between them */
    }
  }
}

/* The first run of a context fails between its steps: its pages go, what they kept goes back before. */
static void test_no_memory_at_first(void) {
  bool hit = true;
  int failed = 0;
  for (int64_t at = 1; hit && at < 50; at++) {
    world w;
    hit = false;
    if (open_world(&w, 1)) {
      held want = {{0}, {0}, {0}, {0}};
      for (int i = 0; i < 48; i++) want.rows[i] = (float)(i % 5);
      for (int i = 0; i < 8; i++) want.sum[i] = (float)i, want.turns[i] = (float)(8 - i);
      rung_tensor t;
      CHECK_OK(rung_state_tensor(w.state, "rows", NULL, &t));
      memcpy(t.data, want.rows, sizeof want.rows);
      CHECK_OK(rung_state_tensor(w.state, "sum", NULL, &t));
      memcpy(t.data, want.sum, sizeof want.sum);
      CHECK_OK(rung_state_tensor(w.state, "turns", NULL, &t));
      memcpy(t.data, want.turns, sizeof want.turns);
      CHECK_OK(rung_state_tensor(w.state, "wide", NULL, &t)); /* pages of its own */
      for (int i = 0; i < 8000; i++) ((float *)t.data)[i] = (float)i;
      put(&w, 3, 5, 7);
      test_fault f = {.kind = RUNG_FAULT_COMMIT, .at = at};
      rung_host_set_fault(w.host, test_fault_hit, &f);
      const rung_status status = rung_context_run(w.context);
      rung_host_set_fault(w.host, NULL, NULL);
      hit = f.hit;
      failed += hit;
      CHECK_STATUS(status, hit ? RUNG_OUT_OF_MEMORY : RUNG_OK);
      if (hit) check_states(&w, &want);
      int64_t wrong = 0;
      for (int i = 0; i < 8000; i++) wrong += ((float *)t.data)[i] != (float)(hit ? i : 2 * i);
      CHECK_EQ_I64(wrong, 0);
    }
    world_close(&w);
  }
  CHECK(failed > 1);
}

/* Runs that write no dense state keep none. */
static void test_only_what_is_written(void) {
  static const char reads[] =
      "rung 1\n"
      "%0 = input {name=\"x\"} : f32[4]\n"
      "%s1 = state {name=\"s\"} : state f32[4]\n"
      "%2 = add %0, %s1\n"
      "output \"y\" %2\n";
  world w;
  const rung_state_options so = rung_state_options_default();
  if (world_open(&w, reads, &(world_options){.device = "cpu", .state = &so}))
    CHECK_EQ_I64(world_steps_of(&w, RUNG_STEP_KEEP), 0);
  world_close(&w);
  if (open_world(&w, 1)) CHECK_EQ_I64(world_steps_of(&w, RUNG_STEP_KEEP), 1 + 2 + 1 + 2 + 1 + 1);
  world_close(&w);
}

int main(void) {
  RUN(test_cancelled_at_every_step);
  RUN(test_refused_by_a_late_step);
  RUN(test_no_memory);
  RUN(test_no_memory_at_first);
  RUN(test_only_what_is_written);
  return TEST_END();
}
