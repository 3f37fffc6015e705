/* SPDX-License-Identifier: MIT
 * Elementwise rows. Their value columns are read as a vector backend reads them: in f32, on values and masks that are
 * structs, so that a column that leans on C's operators does not compile. The results must stay within each row's
 * tolerance of the reference: what a plain kernel made from the row reaches. NaN at any place stays there. */
#include <math.h>

#include "cases.h"
#include "ops/elementwise.h"

typedef struct V {
  float v;
} V;
typedef struct M {
  bool m;
} M;
static V value(float v) { return (V){v}; }

#define OP1(NAME, expression) \
  static inline RUNG_UNUSED V NAME(V a) { return value(expression); }
#define OP2(NAME, expression) \
  static inline RUNG_UNUSED V NAME(V a, V b) { return value(expression); }
#define TEST2(NAME, expression) \
  static inline RUNG_UNUSED M NAME(V a, V b) { return (M){expression}; }
OP2(ADD, a.v + b.v)
OP2(SUB, a.v - b.v)
OP2(MUL, a.v *b.v)
OP2(DIV, a.v / b.v)
OP1(NEG, -a.v)
OP1(ABS, fabsf(a.v))
OP1(SIGN, a.v > 0 ? 1 : a.v < 0 ? -1 : a.v)
OP1(SQRT, sqrtf(a.v))
OP2(POW, powf(a.v, b.v))
OP2(FMOD, fmodf(a.v, b.v))
OP1(CEIL, ceilf(a.v))
OP1(FLOOR, floorf(a.v))
OP1(ROUND, rintf(a.v))
OP1(TRUNC, truncf(a.v))
OP1(EXP, expf(a.v))
OP1(EXPM1, expm1f(a.v))
OP1(LOG, logf(a.v))
OP1(LOG1P, log1pf(a.v))
OP1(ERF, erff(a.v))
OP1(SIN, sinf(a.v))
OP1(COS, cosf(a.v))
OP1(TAN, tanf(a.v))
OP1(ASIN, asinf(a.v))
OP1(ACOS, acosf(a.v))
OP1(ATAN, atanf(a.v))
OP2(ATAN2, atan2f(a.v, b.v))
OP1(SINH, sinhf(a.v))
OP1(COSH, coshf(a.v))
OP1(TANH, tanhf(a.v))
OP1(ASINH, asinhf(a.v))
OP1(ACOSH, acoshf(a.v))
OP1(ATANH, atanhf(a.v))
OP2(MIN, a.v < b.v || a.v != a.v ? a.v : b.v)
OP2(MAX, a.v > b.v || a.v != a.v ? a.v : b.v)
TEST2(LT, a.v < b.v)
TEST2(LE, a.v <= b.v)
TEST2(GT, a.v > b.v)
TEST2(GE, a.v >= b.v)
TEST2(EQ, a.v == b.v)
TEST2(NE, a.v != b.v)
static inline RUNG_UNUSED M ISNAN(V a) { return (M){a.v != a.v}; }
static inline RUNG_UNUSED M ISINF(V a) { return (M){fabsf(a.v) == HUGE_VALF}; }
static inline RUNG_UNUSED M AND(M a, M b) { return (M){a.m && b.m}; }
static inline RUNG_UNUSED V SELECT(M m, V b, V c) { return m.m ? b : c; }
#define K(c) value((float)(c))
#define P attr[0]
#define Q attr[1]

typedef V value_fn(const V *in, const V *attr);
#define VALUE(name, operands, column)                 \
  static V value_##name(const V *in, const V *attr) { \
    operands(void) attr;                              \
    return column;                                    \
  }
#define MASK(name, operands, column)                  \
  static V value_##name(const V *in, const V *attr) { \
    operands(void) attr;                              \
    return value((column).m ? 1 : 0);                 \
  }
#define X_OF const V x = in[0];
#define AB_OF const V a = in[0], b = in[1];
#define ABC_OF const V a = in[0], b = in[1], c = in[2];
#define UNARY(name, takes, form, column, ...) VALUE(name, X_OF, column)
#define UNARY1(name, column, ...) VALUE(name, X_OF, column)
#define UNARY2(name, column, ...) VALUE(name, X_OF, column)
#define PREDICATE(name, column, ...) MASK(name, X_OF, column)
#define BINARY(name, takes, form, column, ...) VALUE(name, AB_OF, column)
#define COMPARE(name, takes, column, ...) MASK(name, AB_OF, column)
#define TERNARY(name, n1, n2, n3, takes, form, column, ...) VALUE(name, ABC_OF, column)
#define SELECTION(name, n1, n2, n3, takes, column, ...) \
  static V value_##name(const V *in, const V *attr) {   \
    const M a = {in[0].v != 0};                         \
    const V b = in[1], c = in[2];                       \
    (void)attr;                                         \
    return column;                                      \
  }
#define INTEGER1(name, ...)
#define INTEGER2(name, ...)
#include "ops/binary.def"
#include "ops/ternary.def"
#include "ops/unary.def"
#undef UNARY
#undef UNARY1
#undef UNARY2
#undef PREDICATE
#undef BINARY
#undef COMPARE
#undef TERNARY
#undef SELECTION

static const struct {
  const rung_op *op;
  value_fn *fn;
} rows[] = {
#define LISTED(name, ...) {&rung_op_##name, value_##name},
#define UNARY LISTED
#define UNARY1 LISTED
#define UNARY2 LISTED
#define PREDICATE LISTED
#define BINARY LISTED
#define COMPARE LISTED
#define TERNARY LISTED
#define SELECTION LISTED
#include "ops/binary.def"
#include "ops/ternary.def"
#include "ops/unary.def"
};

static rung_host *host;
static uint64_t seed = 4711;

static void check_row(const rung_row *row, value_fn *fn) {
  enum { N = 3000 };
  op_case c = {.op = row->op, .n = row->operands, .attrs = ""};
  tensor *operand[3] = {NULL};
  for (int i = 0; i < c.n; i++) {
    const bool mask = row->selection && i == 0;
    c.operand[i] = (operand_case){
        mask ? RUNG_TYPE_BOOL : RUNG_TYPE_F32, 1, {N}, mask ? 0 : row->op->test_lo, mask ? 1 : row->op->test_hi};
    operand[i] = draw_operand(&c.operand[i], &seed);
  }
  built b;
  eval e;
  double worst = 0;
  if (build_case(host, &c, BUILD_CLOSED, &b)) {
    CHECK_OK(run_case(&b, &c, operand, NULL, &e));
    V attr[2] = {{0}, {0}};
    for (int k = 0; k < row->parameters; k++)
      attr[k].v = (float)*(const double *)rung_attr_get(&row->op->attrs[k], b.node->attrs);
    for (int64_t i = 0; i < N; i++) {
      V in[3];
      for (int k = 0; k < c.n; k++) in[k].v = (float)tensor_get(operand[k], i);
      const double have = (double)fn(in, attr).v, want = tensor_get(result_of(&e, &b, 0), i);
      const double room = row->op->tolerance.absolute + row->op->tolerance.relative * fabs(want);
      if (have != want && !(fabs(have - want) / room <= worst)) worst = fabs(have - want) / room;
    }
    eval_finish(&e);
  }
  test_state.checks++;
  if (!(worst <= 1)) TEST_FAIL_("%s in f32 is %g times its tolerance away", row->op->name, worst);
  rung_graph_destroy(b.graph);
  for (int i = 0; i < c.n; i++) tensor_free(operand[i]);
}

static void test_rows_in_f32(void) {
  for (size_t i = 0; i < RUNG_COUNT(rows); i++) check_row(rung_row_of(rows[i].op), rows[i].fn);
}

/* NaN at each position of an elementwise op: there, and only there, what one element alone gives */
static void check_nan(const rung_op *op) {
  enum { N = 18 };
  const rung_row *row = rung_row_of(op);
  if (!row || !(row->takes & RUNG_TAKES_FLOAT)) return;
  for (int which = row->selection; which < row->operands; which++) {
    for (int at = 0; at < N; at++) {
      op_case c = {.op = op, .n = row->operands, .attrs = ""};
      tensor *operand[3], *single[3];
      for (int i = 0; i < c.n; i++) {
        const bool mask = row->selection && i == 0;
        c.operand[i] = (operand_case){mask ? RUNG_TYPE_BOOL : RUNG_TYPE_F32,
                                      1,
                                      {N},
                                      mask ? 1 - (which == 2) : op->test_lo,
                                      mask ? 1 - (which == 2) : op->test_hi};
        operand[i] = draw_operand(&c.operand[i], &seed);
      }
      tensor_set(operand[which], at, (double)NAN);
      op_case one = c;
      for (int i = 0; i < c.n; i++) {
        one.operand[i].extent[0] = 1;
        single[i] = tensor_make(one.operand[i].type, 1, one.operand[i].extent, NULL);
      }
      built b, b_one;
      eval e, e_one;
      if (build_case(host, &c, BUILD_CLOSED, &b) && build_case(host, &one, BUILD_CLOSED, &b_one)) {
        CHECK_OK(run_case(&b, &c, operand, &seed, &e));
        for (int64_t i = 0; i < N; i++) {
          for (int k = 0; k < c.n; k++) tensor_set(single[k], 0, tensor_get(operand[k], i));
          CHECK_OK(run_case(&b_one, &one, single, NULL, &e_one));
          const double u = tensor_get(result_of(&e, &b, 0), i), v = tensor_get(result_of(&e_one, &b_one, 0), 0);
          if (u != v && (u == u || v == v))
            TEST_FAIL_("%s: NaN in operand %d at %d: element %lld is %g, alone %g", op->name, which, at, (long long)i,
                       u, v);
          if (i != at && tensor_is_float(result_of(&e, &b, 0)) && u != u)
            TEST_FAIL_("%s: NaN in operand %d at %d reaches element %lld", op->name, which, at, (long long)i);
          eval_finish(&e_one);
        }
        eval_finish(&e);
        rung_graph_destroy(b_one.graph);
      }
      rung_graph_destroy(b.graph);
      for (int i = 0; i < c.n; i++) tensor_free(operand[i]), tensor_free(single[i]);
    }
  }
}

static void test_nan_stays_where_it_is(void) {
  for (size_t i = 0; i < rung_row_count(); i++) check_nan(rung_row_at(i)->op);
}

/* Rows as data agree with the ops. */
static void test_rows_as_data(void) {
  size_t values = 0;
  for (size_t i = 0; i < rung_row_count(); i++) {
    const rung_row *row = rung_row_at(i);
    CHECK(rung_row_of(row->op) == row);
    CHECK_EQ_I64(row->op->in_hi, row->operands);
    CHECK(row->value || row->integer);
    CHECK_STR(row->op->expression, row->value ? row->value : row->integer);
    values += row->value != NULL;
  }
  CHECK_EQ_I64(values, RUNG_COUNT(rows));
  CHECK(rung_row_of(&rung_op_reshape) == NULL);
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  RUN(test_rows_in_f32);
  RUN(test_nan_stays_where_it_is);
  RUN(test_rows_as_data);
  rung_host_release(host);
  return TEST_END();
}
