/* SPDX-License-Identifier: MIT
 * Walks the table of ops and names none: a new row or file is tested the day it lands. Each test case of each op: any
 * strides, open extents, other extents, float64, gradient, decomposition, view, text form. */
#include <math.h>

#include "cases.h"
#include "ops/elementwise.h"

static rung_host *host;
static char **only; /* names of ops to look at, from the command line; NULL: all */
static uint64_t seed = 88172645463325252u;
static struct { int64_t cases, strided, open, other, wide, gradients, kinks, smaller, views, texts; } done;

#define FAIL_CASE(c, ...)                                                                 \
  do {                                                                                    \
    test_state.failed++;                                                                  \
    if (test_state.failed <= 20) {                                                        \
      char shapes_[256];                                                                  \
      fprintf(stderr, "%s(%s) {%s}: ", (c)->op->name, shapes_of(c, shapes_), (c)->attrs); \
      fprintf(stderr, __VA_ARGS__);                                                       \
      fputc('\n', stderr);                                                                \
    }                                                                                     \
  } while (0)

static const char *shapes_of(const op_case *c, char text[256]) {
  size_t at = 0;
  text[0] = 0;
  for (int i = 0; i < c->n && at < 200; i++) {
    at += (size_t)snprintf(text + at, 256 - at, "%s%s[", i ? " " : "", rung_type_name(c->operand[i].type));
    for (int axis = 0; axis < c->operand[i].rank && at < 200; axis++)
      at += (size_t)snprintf(text + at, 256 - at, "%s%lld", axis ? "," : "", (long long)c->operand[i].extent[axis]);
    at += (size_t)snprintf(text + at, 256 - at, "]");
  }
  return text;
}

/* Compares all results; where they differ says how. */
static void compare(const op_case *c, const char *what, const eval *want, const built *want_built, const eval *have,
                    const built *have_built, double relative, double absolute) {
  for (uint32_t r = 0; r < want_built->outs; r++) {
    const tensor *a = result_of(want, want_built, r), *b = result_of(have, have_built, r);
    test_state.checks++;
    if (!a || !b || tensor_count(a) != tensor_count(b) || a->operand.rank != b->operand.rank) {
      FAIL_CASE(c, "%s: result %u has other extents", what, r);
      return;
    }
    if (tensor_equal(a, b)) continue;
    for (int64_t i = 0; i < tensor_count(a); i++) {
      const double u = tensor_get(a, i), v = tensor_get(b, i);
      if (u == v || (u != u && v != v) || fabs(u - v) <= absolute + relative * fabs(u)) continue;
      FAIL_CASE(c, "%s: result %u element %lld is %.17g, not %.17g", what, r, (long long)i, v, u);
      break;
    }
  }
}

/* ---- the case as it stands, and again with other strides */
static void check_strides(const op_case *c, tensor *const *operand, const eval *want, const built *b) {
  for (int turn = 0; turn < 2; turn++) {
    eval e;
    const rung_status status = run_case(b, c, operand, &seed, &e);
    if (status)
      FAIL_CASE(c, "strides: %s", e.error.message);
    else {
      compare(c, "strides", want, b, &e, b, 0, 0);
      for (uint32_t r = 0; r < b->outs; r++)
        if (!tensor_guards_hold(result_of(&e, b, r))) FAIL_CASE(c, "wrote beside result %u", r);
    }
    done.strided++;
    eval_finish(&e);
  }
}

static void check_open(const op_case *c, tensor *const *operand, const eval *want, const built *closed) {
  built open;
  eval e;
  if (!build_case(host, c, BUILD_OPEN, &open)) { /* some need a constant, which they say */
    CHECK(strlen(rung_graph_message(open.graph)) > 0);
    rung_graph_destroy(open.graph);
    return;
  }
  const rung_status status = run_case(&open, c, operand, NULL, &e);
  if (status)
    FAIL_CASE(c, "open extents: %s", e.error.message);
  else
    compare(c, "open extents", want, closed, &e, &open, 0, 0);
  if (!status && !eval_checks_hold(&e)) FAIL_CASE(c, "open extents: a check at run time fails");
  done.open++;
  eval_finish(&e);
  rung_graph_destroy(open.graph);
}

/* In float64 the same numbers must round to the same results: the reference computes in double and rounds once. Where
 * several updates meet in one element (scatter), each may round: within the op's tolerance. */
static void check_wide(const op_case *c, tensor *const *operand, const eval *want, const built *narrow) {
  built wide;
  eval e;
  bool floats = false;
  for (int i = 0; i < c->n; i++)
    floats |= rung_type_is_float(c->operand[i].type) && c->operand[i].type != RUNG_TYPE_F64;
  if (!floats) return;
  if (build_case(host, c, BUILD_F64, &wide) && run_case(&wide, c, operand, NULL, &e) == RUNG_OK) {
    for (uint32_t r = 0; r < wide.outs; r++) {
      const tensor *a = result_of(want, narrow, r), *b = result_of(&e, &wide, r);
      if (!tensor_is_float(a)) continue;
      uint64_t bits = 0;
      const rung_operand rounded = {.base = (uint8_t *)&bits, .type = a->operand.type};
      for (int64_t i = 0; i < tensor_count(a); i++) {
        rung_store_f64(&rounded, 0, tensor_get(b, i));
        const double u = tensor_get(a, i), v = rung_load_f64(&rounded, 0);
        test_state.checks++;
        const double room = c->op->tolerance.relative * fabs(v) + c->op->tolerance.absolute;
        if (u == v || (u != u && v != v) || fabs(u - v) <= room) continue;
        FAIL_CASE(c, "result %u element %lld is %.17g where float64 gives %.17g", r, (long long)i, u, tensor_get(b, i));
        break;
      }
    }
    done.wide++;
    eval_finish(&e);
  }
  rung_graph_destroy(wide.graph);
}

/* ---- decomposition against the reference, in float64 where the op allows */
static void check_smaller(const op_case *c, tensor *const *operand) {
  built whole, parts;
  eval want, have;
  int mode = BUILD_F64;
  if (!c->op->decompose) return;
  if (!build_case(host, c, mode, &whole)) {
    rung_graph_destroy(whole.graph);
    mode = BUILD_CLOSED;
    if (!build_case(host, c, mode, &whole)) {
      rung_graph_destroy(whole.graph);
      return;
    }
  }
  rung_error error;
  build_inputs(host, c, mode, &parts);
  rung_node node = *whole.node;
  node.attrs = c->op->attrs_bytes ? case_attrs(c, parts.graph, mode, &error) : NULL;
  uint32_t ids[CASE_OPERANDS];
  for (int i = 0; i < c->n; i++) ids[i] = parts.in[i].id;
  node.in = ids;
  parts.outs = whole.outs;
  c->op->decompose(parts.graph, &node, parts.in, parts.out);
  const bool exact = mode == BUILD_F64;
  if (rung_graph_status(parts.graph)) {
    FAIL_CASE(c, "decomposition: %s", rung_graph_message(parts.graph));
  } else if (run_case(&whole, c, operand, NULL, &want) != RUNG_OK) {
    FAIL_CASE(c, "decomposition: %s", want.error.message);
    eval_finish(&want);
  } else {
    const rung_status status = run_case(&parts, c, operand, &seed, &have);
    if (status)
      FAIL_CASE(c, "decomposition: %s", have.error.message);
    else
      compare(c, "decomposition", &want, &whole, &have, &parts, exact ? 1e-11 : 1e-3, exact ? 1e-12 : 1e-4);
    for (uint32_t r = 0; !status && r < parts.outs; r++)
      if (rung_graph_type_of(parts.graph, parts.out[r]) != rung_graph_type_of(whole.graph, whole.out[r]))
        FAIL_CASE(c, "decomposition: result %u has another type", r);
    done.smaller++;
    eval_finish(&have);
    eval_finish(&want);
  }
  rung_graph_destroy(parts.graph);
  rung_graph_destroy(whole.graph);
}

/* ---- gradient against central differences of the op's own reference, in float64 */
typedef struct loss {
  const built *b;
  const op_case *c;
  tensor *const *operand;
  tensor **weight; /* gy of each result, NULL for those without */
} loss;
static double loss_of(const loss *l, int which, int64_t element, double value) {
  eval e;
  double sum = 0;
  eval_init(&e, l->b->graph, NULL);
  rung_status status = eval_begin(&e);
  for (int i = 0; !status && i < l->c->n; i++) copy_values(e.value[l->b->in[i].id], l->operand[i]);
  if (!status && which >= 0) tensor_set(e.value[l->b->in[which].id], element, value);
  if (!status) status = eval_run(&e);
  for (uint32_t r = 0; !status && r < l->b->outs; r++) {
    const tensor *y = result_of(&e, l->b, r);
    for (int64_t i = 0; l->weight[r] && i < tensor_count(y); i++) sum += tensor_get(l->weight[r], i) * tensor_get(y, i);
  }
  if (status) sum = (double)NAN;
  eval_finish(&e);
  return sum;
}

static void compare_differences(const loss *l, int which, const tensor *gx) {
  const int64_t n = tensor_count(l->operand[which]);
  const double middle = loss_of(l, -1, 0, 0);
  for (int turn = 0; turn < 8 && n > 0; turn++) {
    const int64_t i = test_below(&seed, n);
    const double x = tensor_get(l->operand[which], i), h = 1e-5 * (1 + fabs(x));
    const double up = loss_of(l, which, i, x + h), down = loss_of(l, which, i, x - h);
    const double slope = (up - down) / (2 * h), right = (up - middle) / h, left = (middle - down) / h;
    if (fabs(right - left) > 1e-2 * (1 + fabs(slope))) { /* a kink or a jump between the points */
      done.kinks++;
      continue;
    }
    const double have = tensor_get(gx, i);
    done.gradients++;
    test_state.checks++;
    if (!(fabs(slope - have) <= 2e-6 * (1 + fabs(slope) + fabs(middle)))) {
      FAIL_CASE(l->c, "gradient of operand %d, element %lld: %.10g, not %.10g", which, (long long)i, have, slope);
      return;
    }
  }
}

/* The node once more with gy for every float result, and what the op's rule makes of it. */
static bool build_gradient(const op_case *c, built *b, rung_value *gy, rung_value *gx) {
  char name[16];
  bool any = false;
  if (!build_case(host, c, BUILD_F64, b)) return false;
  for (uint32_t r = 0; r < b->outs; r++) {
    const rung_value_type type = *rung_graph_value_type(b->graph, b->out[r].id);
    snprintf(name, sizeof name, "gy%u", r);
    gy[r] = (rung_value){0, 0};
    if (!rung_type_is_float(type.type)) continue;
    if (type.type != RUNG_TYPE_F64) return false;
    gy[r] = rung_graph_input(b->graph, name, type.type, type.rank, type.extent);
    any = true;
  }
  if (!any) return false;
  const rung_node node = *b->node; /* the array of nodes moves as the graph grows */
  c->op->gradient(b->graph, &node, b->in, b->out, gy, gx);
  if (rung_graph_status(b->graph) == RUNG_UNSUPPORTED) return false;
  if (rung_graph_status(b->graph)) FAIL_CASE(c, "gradient: %s", rung_graph_message(b->graph));
  return rung_graph_status(b->graph) == RUNG_OK;
}

static void check_gradient(const op_case *c, tensor *const *operand) {
  built forward, b;
  rung_value gy[CASE_OPERANDS], gx[CASE_OPERANDS] = {{0, 0}};
  tensor *weight[CASE_OPERANDS] = {NULL};
  bool floats = false;
  for (int i = 0; i < c->n; i++) floats |= rung_type_is_float(c->operand[i].type);
  if (!c->op->gradient || !floats) return;
  if (!build_gradient(c, &b, gy, gx)) {
    rung_graph_destroy(b.graph);
    return;
  }
  eval e;
  eval_init(&e, b.graph, &seed);
  rung_status status = eval_begin(&e);
  for (int i = 0; !status && i < c->n; i++) copy_values(e.value[b.in[i].id], operand[i]);
  for (uint32_t r = 0; !status && r < b.outs; r++) {
    if (!gy[r].id) continue;
    weight[r] = e.value[gy[r].id];
    for (int64_t i = 0; i < tensor_count(weight[r]); i++) tensor_set(weight[r], i, (double)test_uniform(&seed, -1, 1));
  }
  if (!status) status = eval_run(&e);
  if (status) FAIL_CASE(c, "gradient: %s", e.error.message);
  build_case(host, c, BUILD_F64, &forward);
  const loss l = {&forward, c, operand, weight};
  for (int i = 0; !status && i < c->n; i++) {
    if (!rung_type_is_float(c->operand[i].type)) continue;
    if (gx[i].id == 0) { /* no gradient: rows must be flat; others may hold an operand constant (rope's factors) */
      if (!rung_row_of(c->op)) continue;
      tensor *zero = tensor_make(RUNG_TYPE_F64, c->operand[i].rank, c->operand[i].extent, NULL);
      for (int64_t k = 0; k < tensor_count(zero); k++) tensor_set(zero, k, 0);
      compare_differences(&l, i, zero);
      tensor_free(zero);
    } else if (tensor_count(e.value[gx[i].id]) != tensor_count(operand[i]) ||
               rung_graph_rank_of(b.graph, gx[i]) != c->operand[i].rank) {
      FAIL_CASE(c, "gradient of operand %d has other extents", i);
    } else {
      compare_differences(&l, i, e.value[gx[i].id]);
    }
  }
  eval_finish(&e);
  rung_graph_destroy(b.graph);
  rung_graph_destroy(forward.graph);
}

/* ---- views: where the rule says so, the result is found in the operand's memory */
static void check_view(const op_case *c, tensor *const *operand, const eval *want, const built *b, int64_t pad) {
  rung_dims *dims = b->graph->dims;
  const rung_value_type *x = rung_graph_value_type(b->graph, b->in[0].id);
  const rung_value_type *y = rung_graph_value_type(b->graph, b->out[0].id);
  rung_dim stride[RUNG_MAX_RANK];
  rung_view_dense_strides(dims, x->type, x->rank, x->extent, stride);
  for (int axis = 0; axis + 1 < x->rank; axis++)
    stride[axis] = rung_dims_add(dims, stride[axis], rung_dims_constant(dims, pad * (x->rank - 1 - axis) * 64));
  rung_view_rule rule = {.dims = dims,
                         .attrs = b->node->attrs,
                         .in = x,
                         .out = y,
                         .in_stride = stride,
                         .out_offset = rung_dims_constant(dims, 0)};
  if (!c->op->view(&rule)) return;
  int64_t *dim = (int64_t *)calloc(dims->count, sizeof *dim);
  CHECK_OK(rung_dims_evaluate(dims, want->symbol, dim, NULL));
  int64_t span = 1;
  tensor source = *operand[0], result;
  memset(&result, 0, sizeof result);
  for (int axis = 0; axis < x->rank; axis++) {
    source.stride[axis] = dim[stride[axis].id];
    span += source.stride[axis] * operand[0]->extent[axis];
  }
  const rung_type_row *row = rung_type_get(x->type);
  uint8_t *memory = (uint8_t *)calloc((size_t)span + 1, row->bytes);
  source.operand.base = memory;
  source.operand.extent = source.extent;
  source.operand.stride = source.stride;
  source.bytes = (size_t)span * row->bytes + 2 * EVAL_GUARD;
  copy_values(&source, operand[0]);
  result.operand = (rung_operand){.base = memory + dim[rule.out_offset.id] * row->bytes,
                                  .extent = result.extent,
                                  .stride = result.stride,
                                  .rank = (uint8_t)y->rank,
                                  .type = (uint8_t)x->type};
  for (int axis = 0; axis < y->rank; axis++) {
    result.extent[axis] = dim[y->extent[axis].id];
    result.stride[axis] = dim[rule.out_stride[axis].id];
  }
  if (!tensor_equal(&result, result_of(want, b, 0)))
    FAIL_CASE(c, "the view does not show the result (pad %lld)", (long long)pad);
  done.views++;
  test_state.checks++;
  free(dim);
  free(memory);
}

/* ---- text: what is printed reads back and prints the same */
static void check_text(const op_case *c, const built *b) {
  char *text = NULL, *again = NULL;
  size_t bytes = 0, again_bytes = 0;
  rung_graph *read = NULL;
  rung_error error = {RUNG_OK, ""};
  for (uint32_t r = 0; r < b->outs; r++) {
    char name[16];
    snprintf(name, sizeof name, "y%u", r);
    rung_graph_output(b->graph, name, b->out[r]);
  }
  rung_status status = rung_graph_print(b->graph, &error, &text, &bytes);
  if (!status) status = rung_graph_parse(host, text, bytes, &error, &read);
  if (!status) status = rung_graph_verify(read, &error);
  if (!status) status = rung_graph_print(read, &error, &again, &again_bytes);
  if (status)
    FAIL_CASE(c, "text form: %s\n%s", error.message, text ? text : "");
  else if (bytes != again_bytes || memcmp(text, again, bytes) != 0)
    FAIL_CASE(c, "text form changes: %s\n%s", text, again);
  if (text) rung_text_free(host, text, bytes);
  if (again) rung_text_free(host, again, again_bytes);
  rung_graph_destroy(read);
  done.texts++;
  test_state.checks++;
}

/* ---- one case */
static void check_case(const op_case *c, bool stated) {
  tensor *operand[CASE_OPERANDS] = {NULL};
  built b;
  eval e;
  for (int i = 0; i < c->n; i++) operand[i] = draw_operand(&c->operand[i], &seed);
  if (!build_case(host, c, BUILD_CLOSED, &b)) {
    if (stated)
      FAIL_CASE(c, "refused: %s", rung_graph_message(b.graph));
    else
      CHECK(strlen(rung_graph_message(b.graph)) > 0);
  } else {
    const rung_status status = run_case(&b, c, operand, NULL, &e);
    if (status && stated) FAIL_CASE(c, "%s", e.error.message);
    if (!status) {
      stated ? done.cases++ : done.other++;
      for (uint32_t r = 0; r < b.outs; r++)
        if (!tensor_guards_hold(result_of(&e, &b, r))) FAIL_CASE(c, "wrote beside result %u", r);
      check_strides(c, operand, &e, &b);
      check_smaller(c, operand);
      if (stated) {
        check_open(c, operand, &e, &b);
        check_wide(c, operand, &e, &b);
        check_gradient(c, operand);
        if (c->op->view) check_view(c, operand, &e, &b, 0), check_view(c, operand, &e, &b, 1);
        check_text(c, &b);
      }
    }
    eval_finish(&e);
  }
  rung_graph_destroy(b.graph);
  for (int i = 0; i < c->n; i++) tensor_free(operand[i]);
}

/* The case with its extents above 1 exchanged for others, each the same everywhere. Some ops refuse some of them. */
static void check_other_extents(const op_case *stated) {
  static const int64_t choice[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65};
  for (int turn = 0; turn < 3; turn++) {
    op_case c = *stated;
    int64_t from[16], to[16], total[CASE_OPERANDS];
    int n = 0;
    bool small = true;
    for (int i = 0; i < c.n; i++) {
      total[i] = 1;
      for (int axis = 0; axis < c.operand[i].rank; axis++) {
        int64_t *extent = &c.operand[i].extent[axis];
        int k = 0;
        while (k < n && from[k] != *extent) k++;
        if (k == n && n < 16) {
          from[n] = *extent;
          to[n++] = *extent <= 1 ? *extent : choice[test_below(&seed, (int64_t)RUNG_COUNT(choice))];
        }
        if (k < n) *extent = to[k];
        total[i] *= *extent;
      }
      small = small && total[i] <= 20000 && !eval_is_blocks(c.operand[i].type);
    }
    if (small) check_case(&c, false);
  }
}

static bool wanted(const rung_op *op) {
  if (!only) return true;
  for (char **name = only; *name; name++)
    if (strcmp(*name, op->name) == 0) return true;
  return false;
}

static void test_every_op(void) {
  for (size_t i = 0; i < rung_op_count(); i++) {
    const rung_op *op = rung_op_at(i);
    if (!wanted(op)) continue;
    const int64_t before = test_state.failed;
    test_state.checks++;
    if (!op->doc || !op->name || (!op->gradient && !op->no_gradient)) {
      fprintf(stderr, "%s: has no doc line, or neither gradient nor the reason why not\n", op->name);
      test_state.failed++;
    }
    int names = 0;
    while (op->operands && op->operands[names]) names++;
    const bool repeats = names && strstr(op->operands[names - 1], "...");
    test_state.checks++;
    if (repeats ? op->in_hi != 255 : names != op->in_hi) TEST_FAIL_("%s: %d operand names", op->name, names);
    for (const rung_test_case *t = op->tests; t && t->operands; t++) {
      op_case c;
      const bool read = read_case(op, t, &c);
      CHECK(read);
      if (!read) continue;
      check_case(&c, true);
      check_other_extents(&c);
    }
    if (test_state.failed != before) fprintf(stderr, "^ %s\n", op->name);
  }
}

static void test_names_are_unique_and_found(void) {
  for (size_t i = 0; i < rung_op_count(); i++) {
    const rung_op *op = rung_op_at(i);
    CHECK(rung_op_find(op->name, strlen(op->name)) == op);
  }
  CHECK(rung_op_find("ad", 2) == NULL);
  CHECK(rung_op_find("", 0) == NULL);
  CHECK(rung_op_at(rung_op_count()) == NULL);
}

int main(int argc, char **argv) {
  if (argc > 1) only = argv + 1;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  RUN(test_names_are_unique_and_found);
  RUN(test_every_op);
  printf(
      "%zu ops, %lld cases; runs with strides %lld, open extents %lld, other extents %lld, float64 %lld, gradient "
      "slopes "
      "%lld (%lld kinks left out), decompositions %lld, views %lld, texts %lld\n",
      rung_op_count(), (long long)done.cases, (long long)done.strided, (long long)done.open, (long long)done.other,
      (long long)done.wide, (long long)done.gradients, (long long)done.kinks, (long long)done.smaller,
      (long long)done.views, (long long)done.texts);
  CHECK(rung_host_memory(host).host < 65536); /* every graph is gone */
  rung_host_release(host);
  return TEST_END();
}
