/* SPDX-License-Identifier: MIT
 * Builders of control flow and of run-time sizes: what they build, verified, copied as a pass copies, and run; and
 * every allocation failing once. */
#include "ir/rewrite.h"
#include "ops/control.h"
#include "structured_run.h"

typedef rung_status build_fn(rung_graph *g); /* declares inputs "x" f32[rows,3] and more, outputs "y" */

static rung_dim rows_of(rung_graph *g) { return rung_graph_symbol(g, "rows", 0, 64); }
static rung_value input_x(rung_graph *g) {
  return rung_graph_input(g, "x", RUNG_TYPE_F32, 2, (rung_dim[]){rows_of(g), rung_graph_constant_dim(g, 3)});
}

/* The elements that are not 0, twice. */
static rung_status build_nonzero(rung_graph *g) {
  const rung_value x = input_x(g), where = rung_build_nonzero(g, x, NULL);
  const rung_value found =
      rung_graph_op(g, &rung_op_gather_nd, (rung_value[]){x, rung_build_swap_last(g, where)}, 2, NULL);
  rung_graph_output(g, "y", rung_build_add(g, found, found));
  return rung_graph_status(g);
}

/* x when flag, else its rows twice. */
static rung_status build_if(rung_graph *g) {
  const rung_value x = input_x(g), flag = rung_graph_input(g, "flag", RUNG_TYPE_BOOL, 0, NULL);
  rung_graph *yes = rung_graph_body(g), *no = rung_graph_body(g);
  rung_graph_output(yes, "y", input_x(yes));
  const rung_value inner = input_x(no);
  rung_graph_output(no, "y", rung_build_concat(no, (rung_value[]){inner, inner}, 2, 0));
  const rung_node *node = rung_build_if(g, flag, yes, no, &x, 1);
  rung_graph_output(g, "y", rung_build_neg(g, rung_node_result(g, node, 0)));
  return rung_graph_status(g);
}

/* Running sums of the rows, and the last of them behind. */
static rung_status build_scan(rung_graph *g) {
  const rung_value x = input_x(g);
  const rung_dim three = rung_graph_constant_dim(g, 3);
  rung_graph *body = rung_graph_body(g);
  const rung_value sum = rung_graph_input(body, "sum", RUNG_TYPE_F32, 1, &three);
  const rung_value row = rung_graph_input(body, "row", RUNG_TYPE_F32, 1, &three);
  const rung_value next = rung_build_add(body, sum, row);
  rung_graph_output(body, "sum", next);
  rung_graph_output(body, "all", next);
  const rung_value zeros = rung_build_expand(g, rung_build_scalar(g, RUNG_TYPE_F32, 0), 1, &three);
  const rung_node *node = rung_build_scan(g, body, (rung_value[]){zeros, x}, 2, 1, 1);
  const rung_value last = rung_build_unsqueeze(g, rung_node_result(g, node, 0), 0);
  rung_graph_output(g, "y", rung_build_concat(g, (rung_value[]){rung_node_result(g, node, 1), last}, 2, 0));
  return rung_graph_status(g);
}

/* Doubles until a sum passes 100, at most 8 times; the sums. */
static rung_status build_loop(rung_graph *g) {
  const rung_value x = input_x(g);
  rung_graph *body = rung_graph_body(g);
  (void)rung_graph_input(body, "i", RUNG_TYPE_I64, 0, NULL);
  (void)rung_graph_input(body, "go", RUNG_TYPE_BOOL, 0, NULL);
  const rung_value a = input_x(body), twice = rung_build_add(body, a, a);
  const rung_value sum = rung_build_reduce(body, &rung_op_reduce_sum, twice, NULL, 0, false);
  rung_graph_output(body, "go", rung_build_less(body, sum, rung_build_scalar(body, RUNG_TYPE_F32, 100)));
  rung_graph_output(body, "a", twice);
  rung_graph_output(body, "sum", sum);
  const rung_loop_attrs attrs = {.carried = 1, .trip = rung_graph_constant_dim(g, 8), .symbol = "times"};
  const rung_value trip = rung_build_cast(g, rung_build_scalar(g, RUNG_TYPE_F32, 8), RUNG_TYPE_I64);
  const rung_node *node = rung_build_loop(g, trip, rung_build_null(), body, &x, 1, &attrs);
  rung_graph_output(g, "y", rung_node_result(g, node, 1));
  return rung_graph_status(g);
}

/* ---- running */

typedef struct want {
  build_fn *build;
  int64_t rows;
  bool flag;
  int64_t n;
  float y[24];
} want;
/* x[i] = 0, 1, 2, ... */
static const want wants[] = {{build_nonzero, 2, false, 5, {2, 4, 6, 8, 10}},
                             {build_nonzero, 0, false, 0, {0}},
                             {build_if, 1, true, 3, {0, -1, -2}},
                             {build_if, 1, false, 6, {0, -1, -2, 0, -1, -2}},
                             {build_if, 0, false, 0, {0}},
                             {build_scan, 3, false, 12, {0, 1, 2, 3, 5, 7, 9, 12, 15, 9, 12, 15}},
                             {build_scan, 0, false, 3, {0, 0, 0}},
                             {build_loop, 2, false, 3, {30, 60, 120}},
                             {build_loop, 0, false, 8, {0}}};

static void run_want(const want *w, const rung_graph *g, rung_host *host) {
  run_state *r = (run_state *)calloc(1, sizeof *r);
  run_tensor out[4];
  run_init(r, host);
  r->symbol[rung_dims_find_symbol(g->dims, "rows", 4)] = w->rows;
  const int64_t extent[] = {w->rows, 3};
  run_tensor x = run_tensor_new(r, RUNG_TYPE_F32, 2, extent), flag = run_tensor_new(r, RUNG_TYPE_BOOL, 0, NULL);
  for (int i = 0; i < w->rows * 3; i++) ((float *)(void *)x.data)[i] = (float)i;
  flag.data[0] = w->flag;
  run_name(r, "x")->tensor = x;
  run_name(r, "flag")->tensor = flag;
  const rung_status status = run_graph(r, g, out);
  if (status) TEST_FAIL_("%s", r->error.message);
  if (!status) {
    CHECK_EQ_I64(run_count(&out[0]), w->n);
    for (int64_t i = 0; i < w->n && i < run_count(&out[0]); i++) CHECK(((float *)(void *)out[0].data)[i] == w->y[i]);
  }
  run_finish(r);
  free(r);
}

/* As a pass does: node by node, bodies too. */
static rung_graph *copied(const rung_graph *g) {
  rung_error error = {RUNG_OK, ""};
  rung_graph *to = NULL;
  rung_rewrite rewrite;
  CHECK_OK(rung_graph_create_like(g, &error, &to));
  CHECK_OK(rung_rewrite_init(&rewrite, g, to, &error));
  for (uint32_t i = 0; i < g->nodes; i++) CHECK_OK(rung_rewrite_copy(&rewrite, i));
  CHECK_OK(rung_rewrite_finish(&rewrite, &error));
  if (error.status) TEST_FAIL_("%s", error.message);
  return to;
}

static void test_builders(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  for (size_t i = 0; i < RUNG_COUNT(wants); i++) {
    rung_graph *g = NULL;
    rung_error error = {RUNG_OK, ""};
    CHECK_OK(rung_graph_create(host, &error, &g));
    if (wants[i].build(g)) TEST_FAIL_("%s", rung_graph_message(g));
    if (rung_graph_verify(g, &error)) TEST_FAIL_("%s", error.message);
    run_want(&wants[i], g, host);
    rung_graph *again = copied(g), *third = copied(again);
    if (rung_graph_verify(third, &error)) TEST_FAIL_("%s", error.message);
    run_want(&wants[i], third, host);
    rung_graph_destroy(third);
    rung_graph_destroy(again);
    rung_graph_destroy(g);
  }
  rung_host_release(host);
}

/* ---- failing */

static void test_failures(void) {
  static build_fn *const builds[] = {build_nonzero, build_if, build_scan, build_loop};
  int64_t failed = 0;
  for (size_t i = 0; i < RUNG_COUNT(builds); i++) {
    bool hit = true;
    for (int64_t n = 1; hit; n++) {
      rung_host *host = NULL;
      rung_graph *g = NULL;
      CHECK_OK(rung_host_create(NULL, NULL, &host));
      CHECK_OK(rung_graph_create(host, NULL, &g));
      test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = n};
      rung_host_set_fault(host, test_fault_hit, &fault);
      const rung_status status = builds[i](g);
      rung_host_set_fault(host, NULL, NULL);
      hit = fault.hit;
      failed += hit;
      CHECK_STATUS(status, hit ? RUNG_OUT_OF_MEMORY : RUNG_OK);
      rung_graph_destroy(g);
      rung_host_release(host);
    }
  }
  printf("%d failed allocations\n", (int)failed);
}

static void test_wrong_use(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  rung_graph *g = NULL;
  CHECK_OK(rung_graph_create(host, NULL, &g));
  const rung_value x = input_x(g);
  rung_graph *body = rung_graph_body(g);
  rung_graph_output(body, "y", input_x(body));
  CHECK(!rung_build_scan(g, body, &x, 1, 1, 1)); /* more states and rows than values */
  CHECK_STATUS(rung_graph_status(g), RUNG_INVALID_ARGUMENT);
  CHECK(!rung_build_if(g, x, body, body, NULL, 0)); /* sticky */
  CHECK(!rung_build_bind(g, x, "n", (rung_dim){0}).id);
  rung_graph_destroy(g);
  CHECK_OK(rung_graph_create(host, NULL, &g));
  const rung_value flag = rung_graph_input(g, "flag", RUNG_TYPE_BOOL, 0, NULL);
  body = rung_graph_body(g);
  rung_graph_output(body, "y", rung_build_scalar(body, RUNG_TYPE_F32, 1));
  CHECK(!rung_build_if(g, flag, body, body, NULL, 0)); /* one body for two branches */
  CHECK(rung_graph_status(g) != RUNG_OK);
  rung_graph_destroy(g);
  rung_host_release(host);
}

int main(void) {
  RUN(test_builders);
  RUN(test_failures);
  RUN(test_wrong_use);
  return TEST_END();
}
