/* SPDX-License-Identifier: MIT
 * Cloned contexts go on where the original is, to the same bits, and neither sees what the other does afterwards. */
#include "cts/kv_world.h"
#include "cts/weights_world.h"

/* The same outputs of the last runs, bit for bit. */
static bool same_outputs(world *a, world *b) {
  bool same = true;
  for (int s = 0; s < rung_program_outputs(a->program); s++) {
    const rung_tensor x = world_output(a, s), y = world_output(b, s);
    same &= world_count(&x) == world_count(&y) && memcmp(x.data, y.data, (size_t)world_count(&x) * 4) == 0;
  }
  return same;
}

static bool clone_world(const world *w, world *copy) {
  *copy = *w;
  const rung_status status = rung_context_clone(w->context, &copy->error, &copy->context);
  test_state.checks++;
  if (status) TEST_FAIL_("clone: %s", copy->error.message);
  copy->state = status ? NULL : copy->context->state;
  return !status;
}

/* Keys and values, windows that have gone round included. */
static void test_kv(void) {
  static kv_model m, other;
  for (int d = 0; d < 2; d++) {
    world w, copy;
    m = (kv_model){.random = 5};
    if (kv_open(&w, d, 500)) {
      for (int run = 0; run < 8; run++) CHECK(kv_run(&w, &m, (rung_rows[]){{0, 40 + run}, {2, run & 1}}, 2));
      if (clone_world(&w, &copy)) {
        CHECK(copy.state != w.state && rung_state_bytes(copy.state) == rung_state_bytes(w.state));
        other = m;
        kv_check_rows(&copy, &other);
        const rung_rows next[] = {{2, 30}, {0, 1}, {1, 49}};
        CHECK(kv_run(&copy, &other, next, 3)); /* the clone goes first */
        kv_check_rows(&w, &m);
        CHECK(kv_run(&w, &m, next, 3));
        CHECK(same_outputs(&w, &copy));
        kv_check_attention(&copy, &other, next, 3);
        CHECK(kv_run(&w, &m, (rung_rows[]){{1, 70}}, 1));
        kv_check_rows(&copy, &other);
        kv_check_rows(&w, &m);
        rung_context_destroy(copy.context);
        CHECK(kv_run(&w, &m, (rung_rows[]){{0, 7}}, 1)); /* and the original outlives it */
        kv_check_rows(&w, &m);
      }
    }
    world_close(&w);
  }
}

/* A dense state, the random generator where it stands, an extent that was set. */
static void test_dense_random_extent(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..8\nsymbol free 1..100\n"
      "%0 = input {name=\"x\"} : f32[2,n,3]\n"
      "%1 = input {name=\"at\"} : i32[2]\n"
      "%s2 = state {name=\"s\"} : state f32[2,8,3]\n"
      "%s3 = append_dense %s2, %0, %1 : state f32[2,8,3]\n"
      "%4 = reduce_sum %s3 {axes=[2]} : f32[2,8]\n"
      "%5 = random_uniform {shape=[free]} : f32[free]\n"
      "output \"y\" %4\n"
      "output \"r\" %5\n";
  for (int d = 0; d < 2; d++) {
    world w, copy;
    const rung_state_options so = rung_state_options_default();
    if (world_open(&w, text, &(world_options){.device = world_devices[d], .state = &so, .seed = 77})) {
      const int32_t at[2] = {3, 1};
      float x[6] = {1, 2, 3, 4, 5, 6}, z[6] = {0};
      CHECK_OK(rung_context_set_extent(w.context, "free", 33));
      CHECK(world_put(&w, 0, (int64_t[]){2, 1, 3}, x, 24) && world_put(&w, 1, (int64_t[]){2}, at, 8) && world_run(&w));
      if (clone_world(&w, &copy)) {
        for (int run = 0; run < 2; run++) {
          for (int i = 0; i < 2; i++) {
            world *one = i ? &copy : &w;
            CHECK(world_put(one, 0, (int64_t[]){2, 1, 3}, z, 24));
            CHECK(world_put(one, 1, (int64_t[]){2}, (int32_t[]){run, run}, 8) && world_run(one));
          }
          CHECK(same_outputs(&w, &copy));
          CHECK_EQ_I64(world_output(&copy, 1).extent[0], 33);
        }
        rung_context_destroy(copy.context);
      }
    }
    world_close(&w);
  }
}

/* The same view: nothing is packed again, and a commit reaches both. */
static void test_weights(void) {
  net n;
  net_values v;
  net_fill(&v, 3);
  rung_weights *store;
  rung_view *view;
  rung_context *context, *copy;
  CHECK_OK(net_try(&n, "cpu", 2, NULL, 0));
  CHECK_OK(net_store(&n, &v, &store));
  CHECK_OK(rung_view_create(store, &n.error, &view));
  CHECK_OK(net_context(&n, view, &context));
  const rung_memory before = rung_weights_memory(store);
  CHECK_OK(rung_context_clone(context, &n.error, &copy));
  CHECK_EQ_I64(rung_weights_memory(store).packed, before.packed);
  NET_CHECK(copy, &v);
  v.b[0] += 1;
  CHECK_OK(net_set_view(view, 1, &v, &n.error));
  CHECK_OK(rung_view_commit(view, &n.error));
  NET_CHECK(copy, &v);
  rung_context_destroy(context);
  NET_CHECK(copy, &v);
  rung_context_destroy(copy);
  rung_view_release(view);
  rung_weights_release(store);
  net_close(&n);
}

/* The n-th allocation or commit fails: a status, nothing leaks, the original is as it was. */
static void test_failures(void) {
  static const rung_fault kinds[] = {RUNG_FAULT_ALLOC, RUNG_FAULT_COMMIT};
  static kv_model m;
  rung_error error;
  CHECK_STATUS(rung_context_clone(NULL, &error, NULL), RUNG_INVALID_ARGUMENT);
  for (size_t k = 0; k < RUNG_COUNT(kinds); k++) {
    world w, copy;
    m = (kv_model){.random = 6};
    if (kv_open(&w, 1, 500)) {
      CHECK(kv_run(&w, &m, (rung_rows[]){{0, 80}, {2, 0}}, 2));
      const rung_memory before = rung_host_memory(w.host);
      bool hit = true;
      for (int64_t at = 1; hit; at++) {
        rung_context *c = NULL;
        test_fault f = {.kind = kinds[k], .at = at};
        rung_host_set_fault(w.host, test_fault_hit, &f);
        const rung_status status = rung_context_clone(w.context, &error, &c);
        rung_host_set_fault(w.host, NULL, NULL);
        hit = f.hit;
        CHECK_STATUS(status, hit ? RUNG_OUT_OF_MEMORY : RUNG_OK);
        rung_context_destroy(status ? NULL : c);
        const rung_memory after = rung_host_memory(w.host);
        CHECK(memcmp(&before, &after, sizeof before) == 0);
      }
      kv_check_rows(&w, &m);
      CHECK(clone_world(&w, &copy));
      rung_context_destroy(copy.context);
    }
    world_close(&w);
  }
}

int main(void) {
  RUN(test_kv);
  RUN(test_dense_random_extent);
  RUN(test_weights);
  RUN(test_failures);
  return TEST_END();
}
