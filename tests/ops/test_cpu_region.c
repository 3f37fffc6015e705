/* SPDX-License-Identifier: MIT
 * Regions of row-local ops as programs of strips, at every level: random bodies against their reference, one task
 * against several bit for bit; the bodies that passes build; what follows a matrix product, strip after strip. */
#include <math.h>

#include "cpu_run.h"
#include "ops/attrs.h"
#include "ops/build.h"

static rung_host *host;
static uint64_t seed = 88172645463325252u;
static uint32_t isa;
static struct { int64_t bodies, ops, results, split, epilogues; } done;

/* ---- bodies. Shapes of operands against [outer, rows, columns]: whole, a row, a column of numbers, one number. */
enum { WHOLE, COLUMNS, ROWS, ONE, SHAPES };
typedef struct extents {
  int64_t outer, rows, columns;
} extents;

static int shape_of(int which, const extents *x, int64_t *out) {
  const int64_t whole[] = {x->outer, x->rows, x->columns}, rows[] = {x->rows, 1};
  if (which == WHOLE) memcpy(out, whole, sizeof whole);
  if (which == COLUMNS) out[0] = x->columns;
  if (which == ROWS) memcpy(out, rows, sizeof rows);
  return which == WHOLE ? 3 : which == COLUMNS ? 1 : which == ROWS ? 2 : 0;
}

enum { MAX_INPUTS = 6, MAX_VALUES = 48 };
typedef struct region {
  rung_graph *graph, *body;
  rung_value in[MAX_INPUTS], inner[MAX_INPUTS];
  int inputs;
  rung_value value[MAX_VALUES]; /* f32, whole */
  int values;
  const rung_node *node;
  rung_value plain[8]; /* what its results are when the body's ops run one by one */
} region;

static void add_input(region *r, rung_type type, int which, const extents *x) {
  int64_t n[3] = {0};
  rung_dim extent[3];
  char name[8];
  const int rank = shape_of(which, x, n);
  for (int i = 0; i < rank; i++) extent[i] = rung_graph_constant_dim(r->graph, n[i]);
  snprintf(name, sizeof name, "x%d", r->inputs);
  r->in[r->inputs] = rung_graph_input(r->graph, name, type, rank, extent);
  r->inner[r->inputs] = rung_graph_input(r->body, name, type, rank, extent);
  rung_value v = r->inner[r->inputs++];
  if (type != RUNG_TYPE_F32) v = rung_build_cast(r->body, v, RUNG_TYPE_F32);
  if (which == WHOLE) r->value[r->values++] = v;
}

/* Any operand in f32, most often a whole one. */
static rung_value any(const region *r) {
  if (test_below(&seed, 4)) return r->value[test_below(&seed, r->values)];
  const rung_value v = r->inner[test_below(&seed, r->inputs)];
  return rung_build_type(r->body, v)->type == RUNG_TYPE_F32 ? v : r->value[0];
}

/* One op on values at hand. None of them can be far from its reference where operands are close: what jumps (rounding
 * to bf16, comparing) gets inputs, which are the same for both. */
static rung_value random_op(const region *r, bool whole_rows) {
  rung_graph *g = r->body;
  const rung_value x = r->value[test_below(&seed, r->values)], y = any(r);
  static const rung_op *const unary[] = {&rung_op_tanh, &rung_op_sigmoid, &rung_op_silu, &rung_op_gelu_tanh,
                                         &rung_op_gelu, &rung_op_abs,     &rung_op_neg,  &rung_op_relu,
                                         &rung_op_sin,  &rung_op_softplus};
  static const rung_op *const binary[] = {&rung_op_add, &rung_op_sub, &rung_op_max, &rung_op_min};
  static const rung_op *const fold[] = {&rung_op_rms_norm, &rung_op_layer_norm, &rung_op_softmax, &rung_op_log_softmax};
  const int64_t kind = test_below(&seed, whole_rows ? 10 : 7);
  if (kind < 2) return rung_graph_op(g, unary[test_below(&seed, RUNG_COUNT(unary))], &x, 1, NULL);
  if (kind < 4) return rung_graph_op(g, binary[test_below(&seed, RUNG_COUNT(binary))], (rung_value[]){x, y}, 2, NULL);
  if (kind == 4) return rung_build_mul(g, rung_build_tanh(g, x), y);
  if (kind == 5)
    return rung_build_mul(g, rung_build_cast(g, rung_build_cast(g, r->inner[0], RUNG_TYPE_BF16), RUNG_TYPE_F32),
                          rung_build_scalar(g, RUNG_TYPE_F32, 0.5));
  if (kind == 6) return rung_build_where(g, rung_build_less(g, r->inner[0], r->inner[1]), x, y);
  const rung_op *op = fold[kind == 7 ? 0 : test_below(&seed, RUNG_COUNT(fold))];
  if (op != &rung_op_rms_norm && op != &rung_op_layer_norm) return rung_graph_op(g, op, &x, 1, NULL);
  const rung_norm_attrs attrs = {1e-2};
  const rung_value in[] = {x, r->inner[2]};
  return rung_graph_op(g, op, in, 1 + (uint32_t)test_below(&seed, 2), &attrs);
}

static void add_results(region *r, bool blocks) {
  const int64_t n = 1 + test_below(&seed, 3);
  for (int64_t i = 0; i < n; i++) {
    rung_value y = r->value[r->values - 1 - (i ? test_below(&seed, r->values) : 0)];
    char name[8];
    const int64_t kind = test_below(&seed, 5);
    if (kind == 0 && blocks) y = rung_graph_op(r->body, &rung_op_quantize_rows, &y, 1, NULL);
    if (kind == 1) y = rung_build_cast(r->body, y, RUNG_TYPE_F16);
    if (kind == 2) y = rung_build_less(r->body, r->inner[0], r->inner[1]);
    snprintf(name, sizeof name, "y%d", (int)i);
    rung_graph_output(r->body, name, y);
  }
}

static void region_begin(region *r, const extents *x) {
  memset(r, 0, sizeof *r);
  CHECK_OK(rung_graph_create(host, NULL, &r->graph));
  r->body = rung_graph_body(r->graph);
  add_input(r, RUNG_TYPE_F32, WHOLE, x);
  add_input(r, RUNG_TYPE_F32, WHOLE, x);
  add_input(r, RUNG_TYPE_F32, COLUMNS, x);
}
static bool region_end(region *r) {
  r->node = rung_graph_append(r->graph, &rung_op_fused, r->in, (uint32_t)r->inputs, NULL, &r->body, 1);
  if (!r->node) fprintf(stderr, "%s\n", rung_graph_message(r->graph));
  CHECK(r->node != NULL);
  if (!r->node) return false;
  /* Adding nodes moves those that are there. */
  const uint32_t at = (uint32_t)(r->node - r->graph->node);
  rung_op_fused.decompose(r->graph, r->node, r->in, r->plain);
  r->node = &r->graph->node[at];
  return true;
}
static void region_random(region *r, const extents *x, int64_t ops) {
  region_begin(r, x);
  add_input(r, RUNG_TYPE_F32, ROWS, x);
  add_input(r, RUNG_TYPE_F16, WHOLE, x);
  add_input(r, RUNG_TYPE_F32, ONE, x);
  int folds = 0;
  for (int64_t i = 0; i < ops; i++) {
    const rung_value v = random_op(r, folds < 3);
    const rung_op *op = rung_graph_producer(r->body, v.id)->op;
    folds +=
        op == &rung_op_rms_norm || op == &rung_op_layer_norm || op == &rung_op_softmax || op == &rung_op_log_softmax;
    if (rung_build_type(r->body, v)->rank == 3) r->value[r->values++] = v;
  }
  add_results(r, x->columns % 32 == 0);
}

/* ---- comparing */

/* Results are off by some roundings of every op, which softmax and norms of a few numbers of one size can enlarge. */
static double room_of(const tensor *y, double value) {
  const rung_type type = (rung_type)y->operand.type;
  return 2e-5 * (1 + fabs(value)) + (type == RUNG_TYPE_F16 ? 0x1p-10 * fabs(value) + 0x1p-20 : 0);
}
static double blocks_room(const tensor *y, int64_t i, double value) { /* a level more or less */
  rung_a8 block;
  memcpy(&block, y->operand.base + tensor_offset(y, i) / 32 * (int64_t)sizeof block, sizeof block);
  return 1.01 * (double)block.scale + 1e-4 * (1 + fabs(value));
}

static void compare(const region *r, const tensor *want, const tensor *have, uint32_t which, const char *name) {
  const bool blocks = want->operand.type == RUNG_TYPE_A8;
  test_state.checks++;
  for (int64_t i = 0; i < tensor_count(want); i++) {
    const double u = tensor_get(want, i), v = tensor_get(have, i);
    if (u == v || (u != u && v != v) || fabs(u - v) <= (blocks ? blocks_room(want, i, u) : room_of(want, u))) continue;
    char *text = NULL;
    size_t bytes = 0;
    TEST_FAIL_("%s: result %u element %lld of %lld is %.9g, not %.9g", name, which, (long long)i,
               (long long)tensor_count(want), v, u);
    if (test_state.failed < 3 && !rung_graph_print(r->graph, NULL, &text, &bytes)) {
      fprintf(stderr, "%s\n", text);
      rung_text_free(host, text, bytes);
    }
    return;
  }
}

static void draw(tensor *t) {
  for (int64_t i = 0; i < tensor_count(t); i++) tensor_set(t, i, (double)test_uniform(&seed, -2, 2));
}

/* Reference, then every level with one thread and with three. */
static void check_region(const region *r) {
  eval e;
  eval_init(&e, r->graph, NULL);
  CHECK_OK(eval_begin(&e));
  for (int i = 0; i < r->inputs; i++) draw(e.value[r->in[i].id]);
  CHECK_OK(eval_run(&e));
  rung_match match;
  char why[160];
  rung_match_init(&match, r->graph, r->node);
  cpu_rows at = {0, 0, 0, NULL};
  const rung_cpu_kernel *kernel;
  int rows = 0;
  while ((kernel = cpu_rows_next(&at, isa)) != NULL) {
    if (!cpu_row_takes(&kernel->row, &match, why)) continue;
    tensor *in[MAX_INPUTS], *out[2][8];
    rung_operand from[MAX_INPUTS], to[8];
    for (int i = 0; i < r->inputs; i++) {
      in[i] = cpu_operand(e.value[r->in[i].id], (uint8_t)(test_below(&seed, 2) ? RUNG_STRIDES_ANY : RUNG_STRIDES_ROWS),
                          &seed);
      from[i] = in[i]->operand;
    }
    for (int turn = 0; turn < 2; turn++) {
      cpu_step s;
      rung_error error = {RUNG_OK, ""};
      for (uint32_t k = 0; k < r->node->results; k++) {
        const tensor *y = e.value[r->plain[k].id];
        out[turn][k] = tensor_make((rung_type)y->operand.type, y->operand.rank, y->extent, NULL);
        to[k] = out[turn][k]->operand;
      }
      if (cpu_step_make(&s, host, kernel, r->graph, r->node, e.symbol))
        CHECK_OK(cpu_step_run(&s, from, to, turn ? 3 : 1, &error));
      if (turn && s.tasks > 1) done.split++;
      cpu_step_finish(&s);
    }
    for (uint32_t k = 0; k < r->node->results; k++) {
      compare(r, e.value[r->plain[k].id], out[0][k], k, kernel->row.name);
      CHECK(cpu_same_bits(out[0][k], out[1][k]));
      CHECK(tensor_guards_hold(out[0][k]) && tensor_guards_hold(out[1][k]));
      tensor_free(out[0][k]);
      tensor_free(out[1][k]);
      done.results++;
    }
    for (int i = 0; i < r->inputs; i++) tensor_free(in[i]);
    rows++;
  }
  if (!rows) TEST_FAIL_("no row takes the region: %s", why);
  eval_finish(&e);
  done.bodies++;
  done.ops += r->body->nodes;
}

static void test_random_regions(void) {
  static const extents sizes[] = {{1, 5, 64}, {2, 3, 33}, {1, 1, 1},    {1, 3, 1025}, {3, 1, 96}, {1, 2, 4097},
                                  {1, 0, 32}, {1, 7, 16}, {2, 40, 576}, {1, 1, 2048}, {4, 5, 1},  {1, 2, 8192}};
  for (int turn = 0; turn < (test_slow() ? 60 : 400); turn++) {
    region r;
    const extents *x = &sizes[test_below(&seed, RUNG_COUNT(sizes))];
    if (test_slow() && x->columns > 2000) continue;
    region_random(&r, x, 1 + test_below(&seed, 9));
    if (region_end(&r)) check_region(&r);
    rung_graph_destroy(r.graph);
  }
}

/* ---- the bodies that models bring */

static void residual(region *r) {
  rung_graph *g = r->body;
  const rung_norm_attrs attrs = {1e-5};
  const rung_value sum = rung_build_add(g, r->inner[0], r->inner[1]);
  const rung_value normal = rung_graph_op(g, &rung_op_rms_norm, (const rung_value[]){sum, r->inner[2]}, 2, &attrs);
  rung_graph_output(g, "sum", sum);
  rung_graph_output(g, "a8", rung_graph_op(g, &rung_op_quantize_rows, &normal, 1, NULL));
}
/* Norm, then sum, then another norm. */
static void twice(region *r) {
  rung_graph *g = r->body;
  const rung_norm_attrs attrs = {1e-6};
  const rung_value first =
      rung_graph_op(g, &rung_op_rms_norm, (const rung_value[]){r->inner[0], r->inner[2]}, 2, &attrs);
  const rung_value sum = rung_build_add(g, first, r->inner[1]);
  const rung_value normal = rung_graph_op(g, &rung_op_rms_norm, (const rung_value[]){sum, r->inner[2]}, 2, &attrs);
  rung_graph_output(g, "sum", sum);
  rung_graph_output(g, "a8", rung_graph_op(g, &rung_op_quantize_rows, &normal, 1, NULL));
}
static void gate(region *r) {
  const rung_value y = rung_build_mul(r->body, rung_build_silu(r->body, r->inner[0]), r->inner[1]);
  rung_graph_output(r->body, "a8", rung_graph_op(r->body, &rung_op_quantize_rows, &y, 1, NULL));
}
/* The same value as two results, an operand as a result, a constant. */
static void corners(region *r) {
  const rung_value y = rung_build_mul(r->body, r->inner[0], rung_build_scalar(r->body, RUNG_TYPE_F32, 3));
  rung_graph_output(r->body, "a", y);
  rung_graph_output(r->body, "b", y);
  rung_graph_output(r->body, "c", r->inner[1]);
  rung_graph_output(r->body, "d", rung_build_add(r->body, y, y));
}

static void test_known_regions(void) {
  static const extents sizes[] = {{1, 1, 576}, {1, 70, 576}, {1, 3, 1536}, {1, 2, 6912}, {1, 1, 32}};
  static void (*const body[])(region *) = {residual, twice, gate, corners};
  for (size_t i = 0; i < RUNG_COUNT(sizes); i++)
    for (size_t k = 0; k < RUNG_COUNT(body); k++) {
      region r;
      region_begin(&r, &sizes[i]);
      body[k](&r);
      if (region_end(&r)) check_region(&r);
      rung_graph_destroy(r.graph);
    }
}

/* ---- behind a product: a body whose root is a matmul, given strip after strip of its result */

static void check_epilogue(const region *r, const rung_node *root, const extents *x) {
  eval e;
  eval_init(&e, r->graph, NULL);
  CHECK_OK(eval_begin(&e));
  for (int i = 0; i < r->inputs; i++) draw(e.value[r->in[i].id]);
  CHECK_OK(eval_run(&e));
  /* The product itself. */
  const rung_operand operands[] = {e.value[r->in[r->inputs - 2].id]->operand,
                                   e.value[r->in[r->inputs - 1].id]->operand};
  const int64_t extent[] = {x->outer, x->rows, x->columns};
  tensor *product = tensor_make(RUNG_TYPE_F32, 3, extent, NULL);
  const rung_args args = {.in = operands, .out = &product->operand, .n_in = 2, .n_out = 1, .attrs = root->attrs};
  CHECK_OK(root->op->reference(&args));
  char why[160] = "";
  if (!rung_cpu_strip_fits(r->node->body[0], root, why)) TEST_FAIL_("epilogue: %s", why);
  const rung_cpu_table *table;
  for (size_t t = 0; (table = rung_cpu_table_at(t)) != NULL; t++) {
    if (!table->compile_strip || (table->isa & isa) != table->isa) continue;
    rung_arena arena;
    rung_cpu_strip strip;
    rung_operand from[MAX_INPUTS], to[8];
    tensor *out[8];
    rung_error error = {RUNG_OK, ""};
    rung_arena_init(&arena, host);
    CHECK_OK(table->compile_strip(&arena, r->node->body[0], root, &error, &strip));
    for (int i = 0; i < r->inputs; i++) from[i] = e.value[r->in[i].id]->operand;
    for (uint32_t k = 0; k < r->node->results; k++) {
      const tensor *y = e.value[r->plain[k].id];
      out[k] = tensor_make((rung_type)y->operand.type, y->operand.rank, y->extent, NULL);
      to[k] = out[k]->operand;
    }
    const rung_args step = {
        .in = from, .out = to, .n_in = (uint16_t)r->inputs, .n_out = (uint16_t)r->node->results, .threads = 1};
    const int64_t all = x->outer * x->rows;
    for (int64_t row = 0, some; row < all; row += some) {
      some = 1 + test_below(&seed, 3);
      if (some > all - row) some = all - row;
      for (int64_t col = 0, n; col < x->columns; col += n) {
        float held[3][256], *value[] = {held[0]};
        n = 32 * (1 + test_below(&seed, 8));
        if (n > x->columns - col) n = x->columns - col;
        for (int64_t i = 0; i < some; i++)
          memcpy(held[i], (float *)product->operand.base + (row + i) * x->columns + col, (size_t)n * sizeof(float));
        strip.fn(strip.program, &step, row, some, col, n, value, 256);
      }
    }
    for (uint32_t k = 0; k < r->node->results; k++) {
      compare(r, e.value[r->plain[k].id], out[k], k, "epilogue");
      CHECK(tensor_guards_hold(out[k]));
      tensor_free(out[k]);
    }
    rung_arena_finish(&arena);
    done.epilogues++;
  }
  tensor_free(product);
  eval_finish(&e);
}

static void test_epilogues(void) {
  static const extents sizes[] = {{1, 3, 64}, {2, 2, 96}, {1, 1, 33}, {1, 4, 576}, {3, 1, 1}};
  for (int turn = 0; turn < (test_slow() ? 30 : 150); turn++) {
    const extents *x = &sizes[test_below(&seed, RUNG_COUNT(sizes))], a = {x->outer, x->rows, 4}, b = {1, 4, x->columns};
    region r;
    region_begin(&r, x);
    add_input(&r, RUNG_TYPE_F16, WHOLE, x);
    const int64_t matrix[] = {b.rows, b.columns};
    rung_dim extent[2];
    add_input(&r, RUNG_TYPE_F32, WHOLE, &a);
    r.values--;
    for (int i = 0; i < 2; i++) extent[i] = rung_graph_constant_dim(r.graph, matrix[i]);
    r.in[r.inputs] = rung_graph_input(r.graph, "m", RUNG_TYPE_F32, 2, extent);
    r.inner[r.inputs] = rung_graph_input(r.body, "m", RUNG_TYPE_F32, 2, extent);
    r.inputs++;
    const rung_matmul_attrs attrs = {.type = RUNG_TYPE_F32};
    /* Nothing may be computed before the product: drop what add_input has cast. */
    r.values = 0;
    r.value[r.values++] = rung_graph_op(r.body, &rung_op_matmul, &r.inner[r.inputs - 2], 2, &attrs);
    const uint32_t root = r.value[0].id;
    r.value[r.values++] = r.inner[0];
    for (int64_t i = 0, ops = test_below(&seed, 6); i < ops; i++) {
      const int inputs = r.inputs;
      r.inputs = 3;
      const rung_value v = random_op(&r, false);
      r.inputs = inputs;
      if (rung_build_type(r.body, v)->rank == 3) r.value[r.values++] = v;
    }
    add_results(&r, x->columns % 32 == 0);
    if (region_end(&r)) check_epilogue(&r, rung_graph_producer(r.node->body[0], root), x);
    rung_graph_destroy(r.graph);
  }
}

int main(void) {
  isa = rung_isa_detect();
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  RUN(test_known_regions);
  RUN(test_random_regions);
  RUN(test_epilogues);
  printf("level %s: %lld bodies of %lld nodes, %lld results, %lld runs in several tasks, %lld epilogues\n",
         rung_isa_name(isa), (long long)done.bodies, (long long)done.ops, (long long)done.results,
         (long long)done.split, (long long)done.epilogues);
  CHECK(done.split > 0 && done.epilogues > 0);
  rung_host_release(host);
  return TEST_END();
}
