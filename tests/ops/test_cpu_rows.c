/* SPDX-License-Identifier: MIT
 * Walks the op table and the CPU backend's kernel rows and names none: each row of each instruction set that takes a
 * case of its op, against the op's reference, on the strides that the row takes; as one task and as many; in place
 * where the row allows. Families of matrix products have a test of their own. */
#include <math.h>

#include "cpu_run.h"
#include "ops/elementwise.h"

static rung_host *host;
static uint64_t seed = 88172645463325252u;
static uint32_t isa;
static struct { int64_t cases, split, in_place, nans; } done;
static char **only; /* names of ops to look at, from the command line; NULL: all */

#define FAIL_ROW(c, row, ...)                                                               \
  do {                                                                                      \
    if (++test_state.failed <= 40) {                                                        \
      fprintf(stderr, "%s {%s} %s: ", (c)->op->name, (c)->attrs, (row)->name);              \
      for (int o_ = 0; o_ < (c)->n; o_++) {                                                 \
        fprintf(stderr, "%s[", rung_type_name((c)->operand[o_].type));                      \
        for (int a_ = 0; a_ < (c)->operand[o_].rank; a_++)                                  \
          fprintf(stderr, "%s%lld", a_ ? "," : "", (long long)(c)->operand[o_].extent[a_]); \
        fprintf(stderr, "] ");                                                              \
      }                                                                                     \
      fprintf(stderr, __VA_ARGS__);                                                         \
      fputc('\n', stderr);                                                                  \
    }                                                                                       \
  } while (0)

/* What a result may be off by: the op's tolerance, and one rounding of the result's own type. Sums are compared with
 * what goes into a result at most: `fan` numbers as large as the largest; a product of so many rounds as often. Norms
 * of nearly equal numbers enlarge the rounding of their mean by 1 / sqrt(epsilon). */
typedef struct scale {
  double largest, fan, norm;
} scale;
static double room_of(const op_case *c, const tensor *y, double value, const scale *s) {
  const double unit = y->operand.type == RUNG_TYPE_F16 ? 0x1p-10 : y->operand.type == RUNG_TYPE_BF16 ? 0x1p-7 : 0;
  const double floor = y->operand.type == RUNG_TYPE_F16 ? 0x1p-24 : 1.2e-38, size = fabs(value);
  const double rounded = unit * size + fmax(c->op->tolerance.absolute, floor);
  if (c->op->flags & RUNG_OP_ELEMENTWISE) return c->op->tolerance.relative * size + rounded;
  return c->op->tolerance.relative * fmax(size, s->largest * s->fan) + s->fan * 0x1p-24 * size +
         s->norm * s->largest * 0x1p-23 + rounded;
}
/* How many products an op that has a role K adds up; 0 without. */
static int64_t products_of(const op_case *c, const built *b, const eval *e) {
  rung_match match;
  rung_dim role[RUNG_MAX_ROLES] = {{0}};
  int k = 0;
  while (c->op->roles && c->op->roles[k] && strcmp(c->op->roles[k], "K") != 0) k++;
  if (!c->op->roles || !c->op->roles[k]) return 0;
  rung_match_init(&match, b->graph, b->node);
  rung_value_type in[CASE_OPERANDS];
  for (uint32_t i = 0; i < match.n_in; i++) in[i] = *match.in[i];
  c->op->role_dims(b->graph->dims, in, match.n_in, match.out, b->node->attrs, role);
  int64_t *dim = (int64_t *)calloc(b->graph->dims->count, sizeof *dim);
  CHECK_OK(rung_dims_evaluate(b->graph->dims, e->symbol, dim, NULL));
  const int64_t products = dim[role[k].id];
  free(dim);
  return products;
}
static scale scale_of(const op_case *c, const built *b, const eval *e) {
  scale s = {0, 1, 0};
  for (int i = 0; i < c->n; i++)
    for (int64_t k = 0; k < tensor_count(e->value[b->in[i].id]); k++) {
      const double v = fabs(tensor_get(e->value[b->in[i].id], k));
      if (v > s.largest) s.largest = v;
    }
  const double out = (double)tensor_count(result_of(e, b, 0));
  if (c->n && out > 0) s.fan = fmax(1, (double)tensor_count(e->value[b->in[0].id]) / out);
  s.fan = fmax(s.fan, sqrt((double)products_of(c, b, e))); /* signs that are drawn make sums grow with the root */
  const rung_attr *epsilon = rung_attr_find(c->op, "epsilon", 7);
  if (epsilon) s.norm = 1 / sqrt(*(const double *)rung_attr_get(epsilon, b->node->attrs));
  return s;
}

static void compare_row(const op_case *c, const rung_kernel *row, const tensor *want, const tensor *have,
                        const scale *s, const char *what) {
  const bool integer = (rung_type_takes((rung_type)want->operand.type) & (RUNG_TAKES_INT | RUNG_TAKES_BOOL)) != 0;
  test_state.checks++;
  if (eval_is_blocks((rung_type)want->operand.type)) {
    if (!cpu_same_bits(want, have)) FAIL_ROW(c, row, "%s: other blocks", what);
    return;
  }
  for (int64_t i = 0; i < tensor_count(want); i++) {
    if (integer ? tensor_get_i64(want, i) == tensor_get_i64(have, i) : false) continue;
    const double u = tensor_get(want, i), v = tensor_get(have, i);
    if (!integer && (u == v || (u != u && v != v) || fabs(u - v) <= room_of(c, want, u, s))) continue;
    FAIL_ROW(c, row, "%s: element %lld is %.9g, not %.9g", what, (long long)i, v, u);
    return;
  }
}

typedef struct run_row {
  tensor *in[CASE_OPERANDS], *out[CASE_OPERANDS];
  rung_status status;
  rung_error error;
  int64_t tasks;
} run_row;

static void free_run(const op_case *c, const built *b, run_row *r) {
  for (int i = 0; i < c->n; i++) tensor_free(r->in[i]);
  for (uint32_t i = 0; i < b->outs; i++) tensor_free(r->out[i]);
}

/* in_place >= 0: the result has the memory of that operand. */
static run_row run_once(const op_case *c, const built *b, const eval *want, const rung_cpu_kernel *kernel, int threads,
                        int in_place) {
  run_row r = {.status = RUNG_OK};
  cpu_step s;
  rung_operand in[CASE_OPERANDS], out[CASE_OPERANDS];
  for (int i = 0; i < c->n; i++) {
    r.in[i] = cpu_operand(want->value[b->in[i].id], in_place >= 0 ? RUNG_STRIDES_DENSE : kernel->row.in_strides, &seed);
    in[i] = r.in[i]->operand;
  }
  for (uint32_t k = 0; k < b->outs; k++) {
    const tensor *y = result_of(want, b, k);
    r.out[k] = tensor_make((rung_type)y->operand.type, y->operand.rank, y->extent, NULL);
    if (in_place >= 0) copy_values(r.out[k], r.in[in_place]), in[in_place] = r.out[k]->operand;
    out[k] = r.out[k]->operand;
  }
  if (cpu_step_make(&s, host, kernel, b->graph, b->node, want->symbol)) {
    r.status = cpu_step_run(&s, in, out, threads, &r.error);
    r.tasks = s.tasks;
  }
  cpu_step_finish(&s);
  for (uint32_t k = 0; k < b->outs; k++)
    if (!tensor_guards_hold(r.out[k])) FAIL_ROW(c, &kernel->row, "wrote beside result %u", k);
  return r;
}

static bool same_shape(const tensor *a, const tensor *b) {
  return a->operand.type == b->operand.type && a->operand.rank == b->operand.rank &&
         memcmp(a->extent, b->extent, (size_t)a->operand.rank * sizeof *a->extent) == 0;
}

static void check_row(const op_case *c, const built *b, const eval *want, const rung_cpu_kernel *kernel) {
  const scale size = scale_of(c, b, want);
  run_row one = run_once(c, b, want, kernel, 1, -1), many = run_once(c, b, want, kernel, 3, -1);
  test_state.checks += 2;
  if (one.status || many.status) FAIL_ROW(c, &kernel->row, "refused: %s", one.error.message);
  for (uint32_t k = 0; k < b->outs; k++) {
    compare_row(c, &kernel->row, result_of(want, b, k), one.out[k], &size, "one task");
    test_state.checks++;
    if (!cpu_same_bits(one.out[k], many.out[k]))
      FAIL_ROW(c, &kernel->row, "%lld tasks give other bits", (long long)many.tasks);
  }
  done.cases++;
  done.split += many.tasks > 1;
  for (int i = 0; kernel->row.in_place && b->outs == 1 && i < c->n; i++) {
    if (!same_shape(want->value[b->in[i].id], result_of(want, b, 0))) continue;
    run_row same = run_once(c, b, want, kernel, 1, i);
    test_state.checks++;
    if (!cpu_same_bits(one.out[0], same.out[0]))
      FAIL_ROW(c, &kernel->row, "in place of operand %d gives other bits", i);
    done.in_place++;
    free_run(c, b, &same);
  }
  free_run(c, b, &one);
  free_run(c, b, &many);
}

static void check_case(const op_case *c, bool stated, int nan_operand, int64_t nan_at) {
  tensor *operand[CASE_OPERANDS] = {NULL};
  built b;
  eval e;
  for (int i = 0; i < c->n; i++) operand[i] = draw_operand(&c->operand[i], &seed);
  if (nan_operand >= 0) tensor_set(operand[nan_operand], nan_at, NAN);
  if (build_case(host, c, BUILD_CLOSED, &b)) {
    const rung_status status = run_case(&b, c, operand, NULL, &e);
    rung_match match;
    rung_match_init(&match, b.graph, b.node);
    cpu_rows at = {0, 0, 0, NULL};
    const rung_cpu_kernel *kernel;
    char why[160];
    while (!status && (kernel = cpu_rows_next(&at, isa)) != NULL)
      if (strncmp(at.name, "matmul", 6) != 0 && cpu_row_takes(&kernel->row, &match, why)) check_row(c, &b, &e, kernel);
    (void)stated;
    eval_finish(&e);
  }
  rung_graph_destroy(b.graph);
  for (int i = 0; i < c->n; i++) tensor_free(operand[i]);
}

/* Extents above 1 exchanged for others, each the same everywhere. Some ops refuse some of them. */
static void check_other_extents(const op_case *stated) {
  static const int64_t choice[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 257, 1024, 1025, 2048};
  for (int turn = 0; turn < (test_slow() ? 3 : 8); turn++) {
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
        small = small && !rung_mul_overflows(total[i], *extent ? *extent : 1, &total[i]);
      }
      small = small && total[i] <= (turn == 0 ? 200000 : 20000) && !eval_is_blocks(c.operand[i].type);
    }
    if (small) check_case(&c, false, -1, 0);
  }
}

/* NaN at each position of a vector, of each operand. */
static void check_nan(const rung_op *op) {
  enum { N = 18 };
  const rung_row *row = rung_row_of(op);
  if (!row || !(row->takes & RUNG_TAKES_FLOAT)) return;
  for (int which = row->selection; which < row->operands; which++)
    for (int at = 0; at < N; at++) {
      op_case c = {.op = op, .n = row->operands, .attrs = ""};
      for (int i = 0; i < c.n; i++) {
        const bool mask = row->selection && i == 0;
        c.operand[i] = (operand_case){mask ? RUNG_TYPE_BOOL : RUNG_TYPE_F32,
                                      1,
                                      {N},
                                      mask ? 1 - (which == 2) : op->test_lo,
                                      mask ? 1 - (which == 2) : op->test_hi};
      }
      check_case(&c, false, which, at);
      done.nans++;
    }
}

/* NaN at the first places of an op's first operand: maxima, sums, norms and what else gives more than one element. */
static void check_nan_spread(const op_case *c) {
  int64_t n = 1;
  if (!c->n || c->operand[0].type != RUNG_TYPE_F32) return;
  for (int axis = 0; axis < c->operand[0].rank; axis++) n *= c->operand[0].extent[axis];
  for (int64_t at = 0; at < n && at < 18; at++, done.nans++) check_case(c, false, 0, at);
}

static bool wanted(const rung_op *op) {
  if (!only) return true;
  for (char **name = only; *name; name++)
    if (strcmp(*name, op->name) == 0) return true;
  return false;
}

static void test_every_row(void) {
  for (size_t i = 0; i < rung_op_count(); i++) {
    const rung_op *op = rung_op_at(i);
    if (!wanted(op)) continue;
    const int64_t before = done.cases;
    for (const rung_test_case *t = op->tests; t && t->operands; t++) {
      op_case c;
      CHECK(read_case(op, t, &c));
      check_case(&c, true, -1, 0);
      if (done.cases != before) check_other_extents(&c);
      if (done.cases != before && t == op->tests && !rung_row_of(op)) check_nan_spread(&c);
    }
    if (done.cases != before) check_nan(op);
  }
}

/* Many turns away what is left of an angle is as exact as close by, not only its turn. */
static void test_far_turns(void) {
  const rung_op *const ops[] = {&rung_op_sin, &rung_op_cos};
  for (size_t i = 0; i < RUNG_COUNT(ops); i++) {
    const op_case c = {.op = ops[i], .n = 1, .attrs = "", .operand = {{RUNG_TYPE_F32, 1, {4096}, -11900, 11900}}};
    tensor *x = draw_operand(&c.operand[0], &seed), *operand[CASE_OPERANDS] = {x};
    built b;
    eval e;
    rung_match match;
    cpu_rows at = {0, 0, 0, NULL};
    const rung_cpu_kernel *kernel;
    char why[160];
    if (!wanted(ops[i]) || !build_case(host, &c, BUILD_CLOSED, &b)) {
      tensor_free(x);
      continue;
    }
    const rung_status status = run_case(&b, &c, operand, NULL, &e);
    rung_match_init(&match, b.graph, b.node);
    while (!status && (kernel = cpu_rows_next(&at, isa)) != NULL) {
      if (!cpu_row_takes(&kernel->row, &match, why)) continue;
      run_row have = run_once(&c, &b, &e, kernel, 1, -1);
      double worst = 0;
      for (int64_t k = 0; k < tensor_count(x); k++)
        worst = fmax(worst, fabs(tensor_get(have.out[0], k) - tensor_get(result_of(&e, &b, 0), k)));
      test_state.checks++;
      if (!(worst <= 6e-7)) FAIL_ROW(&c, &kernel->row, "off by %.3g", worst);
      free_run(&c, &b, &have);
      done.cases++;
    }
    eval_finish(&e);
    rung_graph_destroy(b.graph);
    tensor_free(x);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) only = argv + 1;
  isa = rung_isa_detect();
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  RUN(test_every_row);
  RUN(test_far_turns);
  printf("level %s: %lld runs of rows, %lld of them in several tasks, %lld in place, NaN places %lld\n",
         rung_isa_name(isa), (long long)done.cases, (long long)done.split, (long long)done.in_place,
         (long long)done.nans);
  CHECK(done.cases > 0);
  rung_host_release(host);
  return TEST_END();
}
