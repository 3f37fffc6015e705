/* SPDX-License-Identifier: MIT
 * What goes on around submitted runs: commits of weights, shifts that wait, numbers drawn, clones, listeners for steps,
 * contexts in several threads. */
#include "base/thread.h"
#include "cts/rope_world.h"
#include "cts/submit_world.h"
#include "cts/weights_world.h"

/* ---- weights */

/* A run has the weights that were committed when it was submitted, whenever it is done. Nobody but the waiter runs. */
static void test_weights_of_the_submit(void) {
  static net_values old, fresh;
  net_fill(&old, 1);
  net_fill(&fresh, 2);
  for (int d = submit_on.first; d < SUBMIT_FAR; d++) {
    net n;
    rung_weights *store = NULL;
    rung_view *view = NULL;
    rung_context *c = NULL;
    rung_runners_stop();
    CHECK_OK(net_try(&n, world_devices[d], 1, NULL, 0));
    CHECK_OK(net_store(&n, &old, &store));
    CHECK_OK(rung_view_create(store, &n.error, &view));
    CHECK_OK(net_context(&n, view, &c));
    CHECK_OK(net_run(c)); /* leaves its input bound */
    test_fault fault = {.kind = RUNG_FAULT_THREAD, .at = 1};
    rung_host_set_fault(n.host, test_fault_hit, &fault);
    uint64_t one = 0, two = 0;
    CHECK_OK(rung_context_submit(c, &one));
    for (int w = 0; w < NET_WEIGHTS; w++) CHECK_OK(net_set(store, w, &fresh, &n.error));
    CHECK_OK(rung_weights_commit(store, &n.error));
    fault = (test_fault){.kind = RUNG_FAULT_THREAD, .at = 1};
    CHECK_OK(rung_context_submit(c, &two));
    CHECK_EQ_I64(rung_runners(), 0);
    CHECK_OK(rung_context_wait(c, one));
    CHECK_EQ_I64(net_wrong(c, &old), 0);
    CHECK_OK(rung_context_wait(c, two));
    CHECK_EQ_I64(net_wrong(c, &fresh), 0);
    rung_host_set_fault(n.host, NULL, NULL);
    rung_context_destroy(c);
    rung_view_release(view);
    rung_weights_release(store);
    net_close(&n);
  }
}

/* ---- shifts */

/* A shift waits until rows are read, which a submitted run does; so it is done by then, and only once. */
static void test_shifts(void) {
  for (int d = submit_on.first; d < SUBMIT_FAR; d++) {
    world w;
    static rope_model m;
    m = (rope_model){.next = 0};
    if (rope_open(&w, &m, d, "f32", 600, 0) && rope_fill(&w, &m, 0, 90) && rope_fill(&w, &m, 1, 20)) {
      for (int i = 0; i < 6; i++) {
        const rung_rows rows[2] = {{0, 3}, {1, 2}};
        CHECK_OK(rope_bind(&w, &m, rows, 2));
        const uint64_t ticket = submit(&w);
        rope_grown(&m, rows, 2);
        CHECK_OK(rung_state_shift(w.state, 0, 4, 10, NULL)); /* behind that run */
        rope_shifted(&m, 0, 4, 10);
        CHECK_OK(rope_bind(&w, &m, rows, 2));
        const uint64_t next = submit(&w);
        rope_grown(&m, rows, 2);
        CHECK(submit_wait(&w, ticket) && submit_wait(&w, next));
        rope_check(&w, &m, 0, 1e-4);
        rope_check(&w, &m, 1, 1e-4);
      }
    }
    world_close(&w);
  }
}

/* ---- numbers drawn, clones */

static const char draw_text[] =
    "rung 1\nsymbol n 1..9\n%x = input {name=\"x\"} : f32[n]\n%r = random_uniform {shape=[n]}\n%y = add %x, %r\n"
    "output \"y\" %y\n";

static float drawn(world *w) {
  const rung_tensor y = world_output(w, 0);
  return y.data ? ((float *)y.data)[y.extent[0] - 1] : -1;
}

static void test_numbers_drawn(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (submit_open(&w, draw_text, d, &(world_options){.seed = 4, .in_flight = 8})) {
      float plain[12];
      uint64_t ticket[12];
      rung_context *copy = NULL;
      for (int i = 0; i < 12; i++) {
        world_put_ramp(&w, 0, 1 + i % 5, 0);
        plain[i] = world_run(&w) ? drawn(&w) : -1;
      }
      rung_context_set_seed(w.context, 4);
      for (int i = 0; i < 6; i++) {
        world_put_ramp(&w, 0, 1 + i % 5, 0);
        ticket[i] = submit(&w);
      }
      CHECK_OK(rung_context_clone(w.context, NULL, &copy)); /* behind all of them */
      for (int i = 0; i < 6; i++)
        if (submit_wait(&w, ticket[i])) CHECK(drawn(&w) == plain[i]);
      world two = w;
      two.context = copy;
      for (int i = 6; i < 12; i++) {
        world_put_ramp(&two, 0, 1 + i % 5, 0);
        if (submit_wait(&two, submit(&two))) CHECK(drawn(&two) == plain[i]);
      }
      rung_context_destroy(copy);
    }
    world_close(&w);
  }
}

/* ---- listeners */

static void count_step(void *self, const rung_step_info *info) {
  (void)info;
  atomic_fetch_add((atomic_int *)self, 1);
}

static void test_steps_are_told(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (submit_open(&w, draw_text, d, &(world_options){.in_flight = 3})) {
      atomic_int steps = 0;
      world_put_ramp(&w, 0, 3, 0);
      rung_context_on_step(w.context, count_step, &steps);
      CHECK(world_run(&w));
      const int each = atomic_load(&steps);
      (void)submit(&w);
      (void)submit(&w);
      rung_context_on_step(w.context, NULL, NULL); /* waits */
      CHECK(each > 0);
      CHECK_EQ_I64(atomic_load(&steps), 3 * each);
      (void)submit(&w);
    }
    world_close(&w);
  }
}

/* ---- several threads */

static const char pick_text[] =
    "rung 1\nsymbol n 1..16\n"
    "%x = input {name=\"x\"} : f32[8]\n"
    "%i = input {name=\"i\"} : i32[n]\n"
    "%y = gather %x, %i\n"
    "output \"y\" %y\n";

typedef struct caller {
  rung_context *context;
  int bad;
} caller;

static void call_many(void *self) {
  caller *c = self;
  const int64_t n = 1;
  uint64_t ticket[3] = {0};
  for (int i = 0; i < 200; i++) {
    const int32_t index = i % 8;
    void *x = NULL, *at = NULL;
    if (i >= 3) {
      rung_tensor y = {0};
      c->bad += rung_context_wait(c->context, ticket[i % 3]) || rung_context_output(c->context, 0, &y) || !y.data ||
                *(float *)y.data != (float)(i - 3 + (i - 3) % 8);
    }
    if (rung_context_input(c->context, 0, (int64_t[]){8}, &x) || rung_context_input(c->context, 1, &n, &at)) {
      c->bad++;
      continue;
    }
    for (int e = 0; e < 8; e++) ((float *)x)[e] = (float)(i + e);
    *(int32_t *)at = index;
    c->bad += rung_context_submit(c->context, &ticket[i % 3]) != RUNG_OK;
  }
  c->bad += rung_context_sync(c->context) != RUNG_OK;
}

static void test_contexts_in_threads(void) {
  for (int d = submit_on.first; d < SUBMIT_FAR; d++) {
    enum { THREADS = 3 };
    world w;
    caller c[THREADS] = {{0}};
    rung_thread thread[THREADS];
    memset(thread, 0, sizeof thread);
    if (submit_open(&w, pick_text, d, NULL)) {
      rung_context_options o = rung_context_options_default();
      o.in_flight = 3;
      for (int i = 0; i < THREADS; i++) {
        CHECK_OK(rung_context_create(w.template_, NULL, NULL, &o, NULL, &c[i].context));
        CHECK_OK(rung_context_use(c[i].context, w.program));
        CHECK_OK(rung_thread_start(&thread[i], w.host, call_many, &c[i], NULL));
      }
      for (int i = 0; i < 50; i++) rung_context_cancel(w.context); /* of another context */
      for (int i = 0; i < THREADS; i++) {
        rung_thread_join(&thread[i]);
        CHECK_EQ_I64(c[i].bad, 0);
        rung_context_destroy(c[i].context);
      }
    }
    world_close(&w);
  }
}

int main(int argc, char **argv) {
  if (!submit_begin(argc, argv)) return 77;
  RUN(test_weights_of_the_submit);
  RUN(test_shifts);
  RUN(test_numbers_drawn);
  RUN(test_steps_are_told);
  RUN(test_contexts_in_threads);
  submit_end();
  return TEST_END();
}
