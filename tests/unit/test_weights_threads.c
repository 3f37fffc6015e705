/* SPDX-License-Identifier: MIT
 * Weights change while other threads run: every run sees one whole generation, no older than what was committed when it
 * began and no newer than what was being committed when it ended; views come, go, share, copy and trim meanwhile. */
#include <stdatomic.h>

#include "base/thread.h"
#include "cts/weights_world.h"

enum { FAR = 1000, RUNNERS = 4 };

/* Generation g of all weights at once. */
static void values_of(int64_t g, net_values *v) {
  net_fill(v, 100 + (uint64_t)g);
  for (int i = 0; i < NET_N; i++) v->b[i] = (float)g;
}

typedef struct line {
  rung_view *view;
  atomic_llong committed, begun; /* generations */
} line;

typedef struct shared {
  net n;
  rung_weights *store, *far_store;
  rung_view *far; /* generation FAR, for good */
  line store_line, own_line;
  rung_view *wandering; /* of either store, in turn */
  atomic_int writers;   /* that are not done */
  atomic_llong bad, runs;
} shared;

static bool is_generation(rung_context *c, int64_t g) {
  net_values v;
  values_of(g, &v);
  return net_wrong(c, &v) == 0;
}

/* A run that must see a generation of the line, or FAR where that is allowed. */
static void run_and_check(shared *s, rung_context *c, line *l, bool far) {
  const int64_t low = atomic_load(&l->committed);
  if (net_run(c)) {
    atomic_fetch_add(&s->bad, 1);
    return;
  }
  const int64_t high = atomic_load(&l->begun);
  bool found = far && is_generation(c, FAR);
  for (int64_t g = low; g <= high && !found; g++) found = is_generation(c, g);
  if (!found) atomic_fetch_add(&s->bad, 1);
  atomic_fetch_add(&s->runs, 1);
}

typedef struct job {
  shared *s;
  int index;
  rung_thread thread;
} job;

static void runner(void *self) {
  job *j = self;
  shared *s = j->s;
  rung_context *c = NULL;
  rung_view *own = NULL, *view = j->index == 2 ? s->own_line.view : j->index == 3 ? s->wandering : NULL;
  if (!view && rung_view_create(s->store, NULL, &own)) atomic_fetch_add(&s->bad, 1);
  if (rung_context_create(s->n.template_, view ? view : own, NULL, NULL, NULL, &c) || rung_context_use(c, s->n.program))
    atomic_fetch_add(&s->bad, 1);
  do {
    run_and_check(s, c, j->index == 2 ? &s->own_line : &s->store_line, j->index == 3);
  } while (atomic_load(&s->writers));
  rung_context_destroy(c);
  rung_view_release(own);
}

static void set_all(shared *s, rung_view *view, int64_t g) {
  net_values v;
  values_of(g, &v);
  for (int w = 0; w < NET_WEIGHTS; w++)
    if (view ? net_set_view(view, w, &v, NULL) : net_set(s->store, w, &v, NULL)) atomic_fetch_add(&s->bad, 1);
}

/* Of the store, and of one view. */
static void write_line(shared *s, line *l, int64_t count) {
  for (int64_t g = 1; g <= count; g++) {
    set_all(s, l->view, g);
    atomic_store(&l->begun, g);
    if (l->view ? rung_view_commit(l->view, NULL) : rung_weights_commit(s->store, NULL)) atomic_fetch_add(&s->bad, 1);
    atomic_store(&l->committed, g);
    set_all(s, l->view, FAR + 1); /* never seen */
    l->view ? rung_view_discard(l->view) : rung_weights_discard(s->store);
  }
  atomic_fetch_sub(&s->writers, 1);
}
static int64_t rounds(void) { return test_slow() ? 12 : 200; }
static void store_writer(void *self) { write_line(((job *)self)->s, &((job *)self)->s->store_line, rounds()); }
static void view_writer(void *self) { write_line(((job *)self)->s, &((job *)self)->s->own_line, rounds()); }

/* The wandering view changes its store while its context runs. */
static void wanderer(void *self) {
  shared *s = ((job *)self)->s;
  rung_view *home = NULL;
  if (rung_view_create(s->store, NULL, &home)) atomic_fetch_add(&s->bad, 1);
  for (int64_t i = 0; i < rounds(); i++) {
    if (rung_view_share_from(s->wandering, i % 2 ? home : s->far, NULL)) atomic_fetch_add(&s->bad, 1);
    const rung_memory m = rung_view_memory(s->wandering);
    if (!m.packed && !m.weights) atomic_fetch_add(&s->bad, 1);
  }
  rung_view_release(home);
  atomic_fetch_sub(&s->writers, 1);
}

/* Views and contexts that come and go, copies that stay what they were, trims and reports. */
static void visitor(void *self) {
  shared *s = ((job *)self)->s;
  for (int64_t i = 0; i < rounds(); i++) {
    rung_view *view = NULL, *copy = NULL;
    rung_context *c = NULL, *fixed = NULL;
    if (rung_view_create(s->store, NULL, &view) || rung_view_create(i % 2 ? s->store : s->far_store, NULL, &copy) ||
        net_context(&(net){.template_ = s->n.template_, .program = s->n.program}, view, &c)) {
      atomic_fetch_add(&s->bad, 1);
    } else {
      run_and_check(s, c, &s->store_line, false);
      rung_weights_trim(s->store);
      line then = {.view = copy};
      atomic_init(&then.committed, atomic_load(&s->store_line.committed));
      if (rung_view_copy_from(copy, view, NULL)) atomic_fetch_add(&s->bad, 1);
      atomic_init(&then.begun, atomic_load(&s->store_line.begun));
      if (net_context(&(net){.template_ = s->n.template_, .program = s->n.program}, copy, &fixed))
        atomic_fetch_add(&s->bad, 1);
      for (int r = 0; r < 3; r++) run_and_check(s, fixed, &then, false);
      float one;
      if (rung_view_get_weight(copy, "b", 4, RUNG_TYPE_F32, &one, 4, NULL)) atomic_fetch_add(&s->bad, 1);
      rung_view_trim(view);
      (void)rung_weights_memory(s->store);
    }
    rung_context_destroy(c);
    rung_context_destroy(fixed);
    rung_view_release(view);
    rung_view_release(copy);
  }
  atomic_fetch_sub(&s->writers, 1);
}

static void test_changes_while_running(void) {
  shared s = {.bad = 0};
  net_values v;
  values_of(0, &v);
  CHECK_OK(net_try(&s.n, "cpu", 2, NULL, 0));
  CHECK_OK(net_store(&s.n, &v, &s.store));
  values_of(FAR, &v);
  CHECK_OK(net_store(&s.n, &v, &s.far_store));
  CHECK_OK(rung_view_create(s.far_store, &s.n.error, &s.far));
  CHECK_OK(rung_view_create(s.store, &s.n.error, &s.wandering));
  CHECK_OK(rung_view_create(s.store, &s.n.error, &s.own_line.view));
  values_of(0, &v);
  for (int w = 0; w < NET_WEIGHTS; w++) CHECK_OK(net_set_view(s.own_line.view, w, &v, &s.n.error));
  CHECK_OK(rung_view_commit(s.own_line.view, &s.n.error));
  void (*const work[])(void *) = {store_writer, view_writer, wanderer, visitor, runner, runner, runner, runner};
  job jobs[RUNG_COUNT(work)];
  atomic_init(&s.writers, RUNG_COUNT(work) - RUNNERS);
  for (size_t i = 0; i < RUNG_COUNT(work); i++) {
    jobs[i] = (job){.s = &s, .index = (int)i - (int)(RUNG_COUNT(work) - RUNNERS)};
    CHECK_OK(rung_thread_start(&jobs[i].thread, s.n.host, work[i], &jobs[i], &s.n.error));
  }
  for (size_t i = 0; i < RUNG_COUNT(work); i++) rung_thread_join(&jobs[i].thread);
  CHECK_EQ_I64(atomic_load(&s.bad), 0);
  CHECK(atomic_load(&s.runs) > rounds());
  rung_view_release(s.own_line.view);
  rung_view_release(s.wandering);
  rung_view_release(s.far);
  rung_weights_release(s.store);
  rung_weights_release(s.far_store);
  net_close(&s.n);
}

int main(void) {
  RUN(test_changes_while_running);
  return TEST_END();
}
