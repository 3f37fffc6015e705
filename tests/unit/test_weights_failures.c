/* SPDX-License-Identifier: MIT
 * What a call that changes weights leaves when it fails: the generation before, whole; and what runs ask of the
 * allocator: nothing. */
#include "cts/weights_world.h"

/* Every change of weights with the n-th allocation or commit of pages failing: the call says so, the generation before
 * is whole, and the same call succeeds next. */
static rung_status changes(trio *t, rung_view *far, net_values *next, int step) {
  rung_error *e = &t->n.error;
  switch (step) {
    case 0:
      return net_set(t->store, 0, next, e);
    case 1:
      return net_set(t->store, 2, next, e);
    case 2:
      return rung_weights_commit(t->store, e);
    case 3:
      return rung_view_set_weight_range(t->view[1], "b", 8, RUNG_TYPE_F32, &next->b[2], 8, e);
    case 4:
      return rung_view_commit(t->view[1], e);
    case 5:
      return rung_view_share_from(t->view[2], t->view[1], e);
    case 6:
      return rung_view_copy_from(t->view[0], far, e);
    default:
      return rung_view_share_from(t->view[1], far, e);
  }
}

/* Goes through all changes, with the at-th call of a kind failing in one of them; false once there is none. */
static bool fail_once(rung_fault kind, int where, int64_t at, int64_t *failed) {
  trio t;
  net_values far, next;
  rung_weights *store;
  rung_view *view;
  bool hit = false;
  if (!trio_open(&t, "cpu") || !other_open(&t, &far, &store, &view)) return false;
  net_values want[3] = {t.v, t.v, t.v};
  net_fill(&next, 51);
  for (int step = 0; step < 8; step++) {
    if (step == where) {
      test_fault f = {.kind = kind, .at = at};
      rung_host_set_fault(t.n.host, test_fault_hit, &f);
      const rung_status status = changes(&t, view, &next, step);
      rung_host_set_fault(t.n.host, NULL, NULL);
      hit = f.hit;
      CHECK_STATUS(status, hit ? RUNG_OUT_OF_MEMORY : RUNG_OK);
      *failed += hit;
      for (int i = 0; hit && i < 3; i++) NET_CHECK(t.context[i], &want[i]);
      if (hit) CHECK_OK(changes(&t, view, &next, step));
    } else {
      CHECK_OK(changes(&t, view, &next, step));
    }
    for (int i = 0; step == 2 && i < 3; i++) {
      memcpy(want[i].a, next.a, sizeof next.a);
      memcpy(want[i].h, next.h, sizeof next.h);
    }
    if (step == 4) memcpy(&want[1].b[2], &next.b[2], 8);
    if (step == 5) want[2] = want[1];
    if (step == 6) want[0] = far;
    if (step == 7) want[1] = far;
    for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], &want[i]);
  }
  rung_view_release(view);
  rung_weights_release(store);
  trio_close(&t);
  return hit;
}

static void test_failures(void) {
  static const rung_fault kinds[] = {RUNG_FAULT_ALLOC, RUNG_FAULT_COMMIT};
  for (size_t k = 0; k < RUNG_COUNT(kinds); k++) {
    int64_t failed = 0;
    for (int step = 0; step < 8; step++)
      for (int64_t at = 1; fail_once(kinds[k], step, at, &failed); at++) continue;
    CHECK(failed > 2);
  }
}

/* Past the budget: refused with the bytes, the generation before stays. */
static void test_budget(void) {
  net n;
  net_values v, next;
  net_fill(&v, 61), net_fill(&next, 62);
  rung_weights *store;
  rung_view *view;
  rung_context *context;
  CHECK_OK(net_try(&n, "cpu", 1, NULL, 256 << 10));
  CHECK_OK(net_store(&n, &v, &store));
  CHECK_OK(rung_weights_declare(store, "large", RUNG_TYPE_F32, 1, (int64_t[]){64 << 10}, &n.error));
  CHECK_OK(rung_view_create(store, &n.error, &view));
  CHECK_OK(net_context(&n, view, &context));
  float *large = calloc(64 << 10, 4);
  CHECK_STATUS(rung_weights_set(store, "large", RUNG_TYPE_F32, large, 256 << 10, &n.error), RUNG_OVER_BUDGET);
  CHECK(strstr(n.error.message, "large") != NULL);
  CHECK_OK(net_set(store, 0, &next, &n.error));
  CHECK_OK(rung_weights_commit(store, &n.error));
  memcpy(v.a, next.a, sizeof v.a);
  NET_CHECK(context, &v);
  free(large);
  rung_context_destroy(context);
  rung_view_release(view);
  rung_weights_release(store);
  net_close(&n);
}

/* A run within a generation calls no allocator, the first one after a commit neither. */
static void test_runs_allocate_nothing(void) {
  trio t;
  if (!trio_open(&t, "cpu")) return;
  NET_CHECK(t.context[0], &t.v);
  net_fill(&t.v, 71);
  for (int w = 0; w < NET_WEIGHTS; w++) CHECK_OK(net_set(t.store, w, &t.v, &t.n.error));
  CHECK_OK(rung_weights_commit(t.store, &t.n.error));
  test_fault f = {.at = 0};
  rung_host_set_fault(t.n.host, test_fault_hit, &f);
  for (int i = 0; i < 3; i++) NET_CHECK(t.context[0], &t.v);
  rung_host_set_fault(t.n.host, NULL, NULL);
  CHECK_EQ_I64(f.count[RUNG_FAULT_ALLOC] + f.count[RUNG_FAULT_COMMIT], 0);
  trio_close(&t);
}

int main(void) {
  RUN(test_failures);
  RUN(test_budget);
  RUN(test_runs_allocate_nothing);
  return TEST_END();
}
