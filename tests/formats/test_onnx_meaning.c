/* SPDX-License-Identifier: MIT
 * What ONNX operators mean where runtimes differ: copied and inferred extents, axes by version, negative indices,
 * NaN, conversions and integers at their ends, dimensions of 0. Each on every device and instruction set. */
#define _GNU_SOURCE
#include <limits.h>

#include "formats/make_onnx.h"

static const float ramp[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                               16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
#define NUMBERS(type, ...) ((const type[]){__VA_ARGS__})
#define I64(...) NUMBERS(int64_t, __VA_ARGS__)

/* ---- shapes */

/* The shape as an initializer, or as an input whose value is found when the graph runs. */
static void reshape(maker *m, int64_t opset, const char *shape, const int64_t *want, int64_t n, int allow_zero,
                    bool open) {
  char count[8];
  snprintf(count, sizeof count, "%d", (int)n);
  make_begin(m, opset);
  make_given(m, "x", RUNG_TYPE_F32, shape, ramp);
  if (open)
    make_given(m, "s", RUNG_TYPE_I64, count, want);
  else
    make_i64(m, "s", n, want);
  make_node(m, "Reshape", "x s", "y");
  if (allow_zero >= 0) make_attr_int(m, "allowzero", allow_zero);
  make_output(m, "y");
}

static void test_reshape_copies_by_position(void) {
  maker m;
  double want[24];
  for (int i = 0; i < 24; i++) want[i] = i;
  for (int open = 0; open < 2; open++) {
    reshape(&m, 13, "2,2,3,2", I64(-1, 0, 0), 3, -1, open);
    make_expect(&m, 0, "4,2,3", want, __FILE__, __LINE__);
    make_end(&m);
    reshape(&m, 13, "2,3,4", I64(0, -1), 2, -1, open);
    make_expect(&m, 0, "2,12", want, __FILE__, __LINE__);
    make_end(&m);
    reshape(&m, 14, "2,3,4", I64(0, 0, 2, 2), 4, 0, open);
    make_expect(&m, 0, "2,3,2,2", want, __FILE__, __LINE__);
    make_end(&m);
  }
  reshape(&m, 13, "2,3", I64(3, 2, 0), 3, -1, false);
  REFUSED(&m, "axis 2");
  make_end(&m);
  reshape(&m, 13, "2,3", I64(-1, -1), 2, -1, false);
  REFUSED(&m, "more than one -1");
  make_end(&m);
  for (int open = 0; open < 2; open++) { /* as many elements as there are, or none */
    reshape(&m, 13, "2,3", I64(4, 2), 2, -1, open);
    REFUSED(&m, open ? "agree" : "Reshape");
    make_end(&m);
    reshape(&m, 13, "2,3", I64(4, -1), 2, -1, open);
    REFUSED(&m, open ? "agree" : "Reshape");
    make_end(&m);
  }
}

static void test_reshape_of_no_elements(void) {
  maker m;
  for (int open = 0; open < 2; open++) {
    reshape(&m, 14, "0,4,0", I64(0, 0, 4), 3, 1, open);
    EXPECT(&m, 0, "0,0,4", 0);
    make_end(&m);
    reshape(&m, 14, "2,0", I64(1, 2, 0), 3, 1, open);
    EXPECT(&m, 0, "1,2,0", 0);
    make_end(&m);
    reshape(&m, 13, "2,0", I64(0, 0, 1), 3, -1, open);
    EXPECT(&m, 0, "2,0,1", 0);
    make_end(&m);
    reshape(&m, 13, "0,3", I64(3, -1), 2, -1, open);
    EXPECT(&m, 0, "3,0", 0);
    make_end(&m);
  }
  reshape(&m, 14, "2,0", I64(0, -1), 2, 1, false);
  REFUSED(&m, "allowzero");
  make_end(&m);
}

/* ---- extents found while the graph runs */

/* The elements of x and of y that are not 0, added: as many of each, or refused before anything is read. */
static void test_found_extents_must_agree(void) {
  static const float x[4] = {1, 0, 2, 3}, y[2][4] = {{0, 10, 20, 30}, {0, 0, 20, 30}};
  for (int k = 0; k < 2; k++) {
    maker m;
    make_begin(&m, 13);
    make_given(&m, "x", RUNG_TYPE_F32, "4", x), make_given(&m, "y", RUNG_TYPE_F32, "4", y[k]);
    make_i64(&m, "zero", 1, I64(0));
    make_node(&m, "NonZero", "x", "xi"), make_node(&m, "NonZero", "y", "yi");
    make_node(&m, "Squeeze", "xi zero", "xr"), make_node(&m, "Squeeze", "yi zero", "yr");
    make_node(&m, "Gather", "x xr", "a"), make_node(&m, "Gather", "y yr", "b");
    make_node(&m, "Add", "a b", "s"), make_node(&m, "Mul", "s b", "p"), make_node(&m, "Neg", "p", "z");
    make_output(&m, "z");
    if (k)
      REFUSED(&m, "agree");
    else
      EXPECT(&m, 0, "3", -110, -440, -990);
    make_end(&m);
  }
}
/* The same of two inputs that are as long as they like, in one fused step. */
static void test_given_extents_must_agree(void) {
  for (int k = 0; k < 2; k++) {
    maker m;
    make_begin(&m, 13);
    make_input(&m, "x", RUNG_TYPE_F32, "n"), make_input(&m, "y", RUNG_TYPE_F32, "k");
    make_feed(&m, "x", RUNG_TYPE_F32, "4", ramp), make_feed(&m, "y", RUNG_TYPE_F32, k ? "3" : "4", ramp);
    make_node(&m, "Add", "x y", "s"), make_node(&m, "Mul", "s y", "p"), make_node(&m, "Neg", "p", "z");
    make_output(&m, "z");
    if (k)
      REFUSED(&m, "agree");
    else
      EXPECT(&m, 0, "4", 0, -2, -8, -18);
    make_end(&m);
  }
}
static pb branch(const char *op, int keep) {
  maker m;
  make_begin(&m, 13);
  make_node(&m, op, "x last", "r");
  if (keep >= 0) make_attr_int(&m, "keepdims", keep);
  make_output(&m, "r");
  pb graph = m.graph;
  pb_text(&graph, 2, op);
  return graph;
}
/* What a branch asks of an extent need not hold where the other is taken. */
static void test_a_branch_not_taken_asks_nothing(void) {
  for (int n = 1; n <= 2; n++)
    for (int yes = 0; yes < 2; yes++) {
      maker m;
      const uint8_t condition = (uint8_t)yes;
      make_begin(&m, 13);
      make_input(&m, "x", RUNG_TYPE_F32, "3,n");
      make_feed(&m, "x", RUNG_TYPE_F32, n == 1 ? "3,1" : "3,2", ramp);
      make_given(&m, "c", RUNG_TYPE_BOOL, "", &condition);
      make_i64(&m, "last", 1, I64(1));
      make_node(&m, "If", "c", "y");
      pb then = branch("Squeeze", -1), other = branch("ReduceSum", 0);
      make_attr_graph(&m, "then_branch", &then), make_attr_graph(&m, "else_branch", &other);
      make_output(&m, "y");
      if (n == 2 && yes)
        REFUSED(&m, "agree");
      else if (n == 2)
        EXPECT(&m, 0, "3", 1, 5, 9);
      else
        EXPECT(&m, 0, "3", 0, 1, 2);
      make_end(&m);
    }
}

/* ---- axes */

static void test_squeeze_wants_extent_one(void) {
  maker m;
  for (int opset = 11; opset <= 13; opset += 2)
    for (int bad = 0; bad < 2; bad++) {
      make_begin(&m, opset);
      make_given(&m, "x", RUNG_TYPE_F32, "1,3,1", ramp);
      if (opset >= 13) make_i64(&m, "a", 1, I64(bad ? 1 : -1));
      make_node(&m, "Squeeze", opset < 13 ? "x" : "x a", "y");
      if (opset < 13) make_attr_ints(&m, "axes", 1, I64(bad ? 1 : -1));
      make_output(&m, "y");
      if (bad)
        REFUSED(&m, "axis 1");
      else
        EXPECT(&m, 0, "1,3", 0, 1, 2);
      make_end(&m);
    }
  for (int n = 1; n <= 2; n++) { /* an open extent turns out to be 1, or not */
    make_begin(&m, 13);
    make_input(&m, "x", RUNG_TYPE_F32, "3,n");
    make_feed(&m, "x", RUNG_TYPE_F32, n == 1 ? "3,1" : "3,2", ramp);
    make_i64(&m, "a", 1, I64(1));
    make_node(&m, "Squeeze", "x a", "y");
    make_output(&m, "y");
    if (n == 2)
      REFUSED(&m, "");
    else
      EXPECT(&m, 0, "3", 0, 1, 2);
    make_end(&m);
  }
}

static void test_axes_move_from_attribute_to_input(void) {
  maker m;
  for (int opset = 11; opset <= 13; opset += 2) {
    const bool old = opset < 13;
    make_begin(&m, opset);
    make_given(&m, "x", RUNG_TYPE_F32, "2,3", ramp);
    if (!old) make_i64(&m, "zero", 1, I64(0)), make_i64(&m, "parts", 2, I64(1, 2)), make_i64(&m, "last", 1, I64(-1));
    make_node(&m, "Unsqueeze", old ? "x" : "x zero", "u");
    if (old) make_attr_ints(&m, "axes", 1, I64(0));
    make_node(&m, "Split", old ? "x" : "x parts", "p q");
    make_attr_int(&m, "axis", 1);
    if (old) make_attr_ints(&m, "split", 2, I64(1, 2));
    make_node(&m, "ReduceSum", old ? "x" : "x last", "s");
    if (old) make_attr_ints(&m, "axes", 1, I64(-1));
    make_attr_int(&m, "keepdims", 0);
    make_output(&m, "u"), make_output(&m, "p"), make_output(&m, "q"), make_output(&m, "s");
    EXPECT(&m, 0, "1,2,3", 0, 1, 2, 3, 4, 5);
    EXPECT(&m, 1, "2,1", 0, 3);
    EXPECT(&m, 2, "2,2", 1, 2, 4, 5);
    EXPECT(&m, 3, "2", 3, 12);
    make_end(&m);
  }
  static const char *const means[] = {"ReduceMean", "ReduceMax"}; /* these change at 18 */
  for (int opset = 17; opset <= 18; opset++)
    for (int k = 0; k < 2; k++) {
      make_begin(&m, opset);
      make_given(&m, "x", RUNG_TYPE_F32, "2,3", ramp);
      make_i64(&m, "a", 1, I64(0));
      make_node(&m, means[k], opset < 18 ? "x" : "x a", "y");
      if (opset < 18) make_attr_ints(&m, "axes", 1, I64(0));
      make_output(&m, "y");
      if (k)
        EXPECT(&m, 0, "1,3", 3, 4, 5);
      else
        EXPECT(&m, 0, "1,3", 1.5, 2.5, 3.5);
      make_end(&m);
    }
  make_begin(&m, 13); /* no axes: all, or none where the attribute says so */
  make_given(&m, "x", RUNG_TYPE_F32, "2,2", ramp);
  make_i64(&m, "none", 0, NULL);
  make_node(&m, "ReduceSum", "x none", "all");
  make_node(&m, "ReduceSum", "x none", "same");
  make_attr_int(&m, "noop_with_empty_axes", 1);
  make_output(&m, "all"), make_output(&m, "same");
  EXPECT(&m, 0, "1,1", 6);
  EXPECT(&m, 1, "2,2", 0, 1, 2, 3);
  make_end(&m);
}

static void slice(maker *m, const char *shape, int64_t from, int64_t to, int64_t step, bool open) {
  make_begin(m, 13);
  make_input(m, "x", RUNG_TYPE_F32, open ? "n" : shape);
  make_feed(m, "x", RUNG_TYPE_F32, shape, ramp);
  make_i64(m, "from", 1, &from), make_i64(m, "to", 1, &to), make_i64(m, "axis", 1, I64(0)),
      make_i64(m, "step", 1, &step);
  make_node(m, "Slice", "x from to axis step", "y");
  make_output(m, "y");
}
static void test_slices_clamp(void) {
  static const struct {
    int64_t from, to, step;
    int n;
    double first, next;
  } cases[] = {{0, 5, -1, 0, 0, 0},
               {-3, 10, 1, 3, 7, 8},
               {-100, 2, 1, 2, 0, 1},
               {8, 1000, 1, 2, 8, 9},
               {20, 30, 1, 0, 0, 0},
               {-1, -100, -1, 10, 9, 8},
               {100, 7, -1, 2, 9, 8},
               {0, INT64_MAX, 3, 4, 0, 3},
               {-1, INT64_MIN, -4, 3, 9, 5},
               {5, 2, 1, 0, 0, 0},
               {INT64_MIN, INT64_MAX, 5, 2, 0, 5},
               {INT64_MAX, INT64_MIN, -9, 2, 9, 0},
               {-20, -15, -1, 0, 0, 0},
               {3, 3, 1, 0, 0, 0},
               {2, -2, 2, 3, 2, 4}};
  for (size_t i = 0; i < RUNG_COUNT(cases); i++)
    for (int open = 0; open < 2; open++) {
      maker m;
      char shape[8];
      double want[10];
      for (int k = 0; k < cases[i].n; k++) want[k] = cases[i].first + k * (cases[i].next - cases[i].first);
      snprintf(shape, sizeof shape, "%d", cases[i].n);
      slice(&m, "10", cases[i].from, cases[i].to, cases[i].step, open);
      make_expect(&m, 0, shape, want, __FILE__, __LINE__);
      make_end(&m);
    }
  maker m;
  slice(&m, "10", 0, 5, 0, false);
  REFUSED(&m, "step");
  make_end(&m);
  make_begin(&m, 9); /* by attributes */
  make_given(&m, "x", RUNG_TYPE_F32, "2,4", ramp);
  make_node(&m, "Slice", "x", "y");
  make_attr_ints(&m, "starts", 2, I64(-1, -3)), make_attr_ints(&m, "ends", 2, I64(1000, -1));
  make_output(&m, "y");
  EXPECT(&m, 0, "1,2", 5, 6);
  make_end(&m);
}

/* ---- indices */

typedef struct picking {
  const char *op, *inputs, *shape; /* shape: of the indices */
  int64_t good[2], bad[4];         /* one index of three rows: from the end; below and above */
} picking;
static void pick(maker *m, const char *op, const char *shape, int64_t index, bool open, bool narrow) {
  static int64_t wide[4];
  static int32_t small[4];
  for (int i = 0; i < 4; i++) wide[i] = index, small[i] = (int32_t)index;
  const rung_type type = narrow ? RUNG_TYPE_I32 : RUNG_TYPE_I64;
  const void *data = narrow ? (const void *)small : wide;
  make_begin(m, 13);
  make_given(m, "x", RUNG_TYPE_F32, "3,2", ramp);
  if (open)
    make_given(m, "i", type, shape, data);
  else
    make_tensor(m, "i", type, shape, data);
  const bool scatter = strncmp(op, "Scatter", 7) == 0;
  if (scatter) make_given(m, "u", RUNG_TYPE_F32, strcmp(op, "ScatterND") ? "1,2" : "1,2", ramp + 20);
  make_node(m, op, scatter ? "x i u" : "x i", "y");
  make_output(m, "y");
}
static void test_indices_from_the_end(void) {
  for (int k = 0; k < 4; k++) { /* indices known when opened or not; 64 and 32 bits */
    const bool open = k & 1, narrow = k & 2;
    maker m;
    pick(&m, "Gather", "1", -1, open, narrow);
    EXPECT(&m, 0, "1,2", 4, 5);
    make_end(&m);
    pick(&m, "GatherElements", "1,2", -3, open, narrow);
    EXPECT(&m, 0, "1,2", 0, 1);
    make_end(&m);
    pick(&m, "ScatterElements", "1,2", -2, open, narrow);
    EXPECT(&m, 0, "3,2", 0, 1, 20, 21, 4, 5);
    make_end(&m);
    if (narrow) continue; /* the others take 64 bits only */
    pick(&m, "GatherND", "1,1", -1, open, narrow);
    EXPECT(&m, 0, "1,2", 4, 5);
    make_end(&m);
    pick(&m, "ScatterND", "1,1", -1, open, narrow);
    EXPECT(&m, 0, "3,2", 0, 1, 2, 3, 20, 21);
    make_end(&m);
  }
}
static void test_indices_outside_are_refused(void) {
  static const struct {
    const char *op, *shape;
  } ops[] = {{"Gather", "1"},
             {"GatherElements", "1,2"},
             {"GatherND", "1,1"},
             {"ScatterElements", "1,2"},
             {"ScatterND", "1,1"}};
  static const int64_t bad[] = {3, -4, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};
  for (size_t o = 0; o < RUNG_COUNT(ops); o++)
    for (size_t b = 0; b < RUNG_COUNT(bad); b++)
      for (int open = 0; open < 2; open++) {
        maker m;
        pick(&m, ops[o].op, ops[o].shape, bad[b], open, false);
        REFUSED(&m, "index");
        make_end(&m);
        if (b > 3 || o == 2 || o == 4) continue;
        pick(&m, ops[o].op, ops[o].shape, bad[b], open, true);
        REFUSED(&m, "index");
        make_end(&m);
      }
}
/* OneHot alone takes any number: a row without the mark. */
static void test_one_hot_outside(void) {
  maker m;
  make_begin(&m, 11);
  make_given(&m, "i", RUNG_TYPE_I64, "6", I64(1, -1, 3, -4, INT32_MIN, INT64_MIN));
  make_i64(&m, "depth", 1, I64(3));
  make_tensor(&m, "values", RUNG_TYPE_F32, "2", ((const float[]){2, 5}));
  make_node(&m, "OneHot", "i depth values", "y");
  make_output(&m, "y");
  EXPECT(&m, 0, "6,3", 2, 5, 2, 2, 2, 5, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2);
  make_end(&m);
}

/* ---- NaN */

enum { LONG = 18 };

/* One of the operators on a vector of 18 with a NaN at `at`. */
static void nan_case(maker *m, const char *op, float *x, int at) {
  for (int i = 0; i < LONG; i++) x[i] = (float)(i % 5) - 2;
  x[at] = NAN;
  make_begin(m, 18);
  make_given(m, "x", RUNG_TYPE_F32, "18", x);
  make_f32(m, "low", -1), make_f32(m, "high", 1);
  if (strcmp(op, "Clip") == 0)
    make_node(m, op, "x low high", "y");
  else if (strcmp(op, "Max") == 0 || strcmp(op, "Min") == 0)
    make_node(m, op, "x low", "y");
  else
    make_node(m, op, "x", "y");
  if (strncmp(op, "Reduce", 6) == 0 || strncmp(op, "Arg", 3) == 0) make_attr_int(m, "keepdims", 0);
  make_output(m, "y");
}
static double nan_want(const char *op, double x) {
  if (isnan(x)) return x;
  if (strcmp(op, "Max") == 0) return x > -1 ? x : -1;
  if (strcmp(op, "Min") == 0) return x < -1 ? x : -1;
  if (strcmp(op, "Relu") == 0) return x > 0 ? x : 0;
  return x < -1 ? -1 : x > 1 ? 1 : x;
}
static void test_nan_is_kept_at_every_position(void) {
  static const char *const each[] = {"Max", "Min", "Relu", "Clip"}, *const whole[] = {"ReduceMax", "ReduceMin"};
  float x[LONG];
  double want[LONG];
  maker m;
  for (int at = 0; at < LONG; at++) {
    for (size_t o = 0; o < RUNG_COUNT(each); o++) {
      nan_case(&m, each[o], x, at);
      for (int i = 0; i < LONG; i++) want[i] = nan_want(each[o], (double)x[i]);
      make_expect(&m, 0, "18", want, __FILE__, __LINE__);
      make_end(&m);
    }
    for (size_t o = 0; o < RUNG_COUNT(whole); o++) {
      nan_case(&m, whole[o], x, at);
      EXPECT(&m, 0, "", (double)NAN);
      make_end(&m);
    }
    nan_case(&m, "ArgMax", x, at); /* the first NaN is the largest */
    EXPECT(&m, 0, "", at);
    make_end(&m);
  }
}
static void test_nan_of_one_element_reaches_all(void) {
  static const char *const ops[] = {"Max", "Min", "Add", "Mul"};
  double want[LONG];
  for (int i = 0; i < LONG; i++) want[i] = (double)NAN;
  for (size_t o = 0; o < RUNG_COUNT(ops); o++)
    for (int side = 0; side < 2; side++) {
      maker m;
      const float one = NAN;
      make_begin(&m, 13);
      make_given(&m, "x", RUNG_TYPE_F32, "18", ramp);
      make_given(&m, "one", RUNG_TYPE_F32, "1", &one);
      make_node(&m, ops[o], side ? "one x" : "x one", "y");
      make_output(&m, "y");
      make_expect(&m, 0, "18", want, __FILE__, __LINE__);
      make_end(&m);
    }
}

/* ---- integers and conversions at their ends */

static void test_min_and_max_of_thirty_with_one(void) {
  for (int k = 0; k < 4; k++) {
    maker m;
    const float middle = 14.5f;
    double want[30];
    for (int i = 0; i < 30; i++) want[i] = k & 1 ? (i < 14.5 ? i : 14.5) : (i > 14.5 ? i : 14.5);
    make_begin(&m, 13);
    make_given(&m, "x", RUNG_TYPE_F32, "30", ramp);
    make_given(&m, "one", RUNG_TYPE_F32, "1", &middle);
    make_node(&m, k & 1 ? "Min" : "Max", k & 2 ? "one x" : "x one", "y");
    make_output(&m, "y");
    make_expect(&m, 0, "30", want, __FILE__, __LINE__);
    make_end(&m);
  }
}

static void two(maker *m, const char *op, rung_type type, const char *shape, const void *a, const void *b) {
  make_begin(m, 14);
  make_given(m, "a", type, shape, a);
  make_given(m, "b", type, shape, b);
  make_node(m, op, "a b", "y");
  make_output(m, "y");
}
static void test_mod_of_negatives(void) {
  static const int32_t a[] = {-4, 7, 5, 4, -7, 8, -4, 0}, b[] = {2, -3, 8, -2, 3, 5, -3, 5};
  static const float x[] = {-4.25f, 7.5f, 5, 4.25f, -7.5f, 8, -0.5f, 3}, y[] = {2, -3, 8, -2, 3, 5, 3, 3};
  maker m;
  two(&m, "Mod", RUNG_TYPE_I32, "8", a, b); /* the sign of the divisor */
  EXPECT(&m, 0, "8", 0, -2, 5, 0, 2, 3, -1, 0);
  make_end(&m);
  for (int type = 0; type < 2; type++) { /* the sign of the dividend */
    make_begin(&m, 14);
    make_given(&m, "a", type ? RUNG_TYPE_F32 : RUNG_TYPE_I32, "8", type ? (const void *)x : a);
    make_given(&m, "b", type ? RUNG_TYPE_F32 : RUNG_TYPE_I32, "8", type ? (const void *)y : b);
    make_node(&m, "Mod", "a b", "y");
    make_attr_int(&m, "fmod", 1);
    make_output(&m, "y");
    if (type)
      EXPECT(&m, 0, "8", -0.25, 1.5, 5, 0.25, -1.5, 3, -0.5, 0);
    else
      EXPECT(&m, 0, "8", 0, 1, 5, 0, -1, 3, -1, 0);
    make_end(&m);
  }
}
/* No trap: a quotient that does not exist is refused or has one defined value, the same in every mode. */
static void no_trap(maker *m) {
  rung_status first = RUNG_OK;
  uint8_t bytes[64] = {0};
  size_t size = 0;
  for (int mode = 0; mode < MAKE_MODES; mode++) {
    const rung_status status = make_run(m, mode);
    if (mode == 0) first = status;
    CHECK_STATUS(status, first);
    if (status) {
      CHECK(m->error.message[0] != 0);
      continue;
    }
    const rung_tensor *t = &m->result[0].tensor;
    const size_t now = (size_t)t->extent[0] * (size_t)rung_type_bytes(t->type, 1);
    if (mode == 0) memcpy(bytes, t->data, size = now);
    CHECK(size == now && memcmp(bytes, t->data, size) == 0);
  }
}
static void test_division_never_traps(void) {
  static const int32_t a[] = {5, INT32_MIN, 0, -5}, zero[] = {0, 0, 0, 0}, minus[] = {-1, -1, -1, -1};
  static const int64_t la[] = {5, INT64_MIN, 0, -5}, lzero[] = {0, 0, 0, 0}, lminus[] = {-1, -1, -1, -1};
  static const int8_t ba[] = {5, INT8_MIN, 0, -5}, bzero[] = {0, 0, 0, 0}, bminus[] = {-1, -1, -1, -1};
  static const uint8_t ua[] = {5, 255, 0, 1}, uzero[] = {0, 0, 0, 0};
  static const char *const ops[] = {"Div", "Mod"};
  for (int o = 0; o < 2; o++) {
    const struct {
      rung_type type;
      const void *a, *b;
    } cases[] = {{RUNG_TYPE_I32, a, zero},    {RUNG_TYPE_I32, a, minus}, {RUNG_TYPE_I64, la, lzero},
                 {RUNG_TYPE_I64, la, lminus}, {RUNG_TYPE_I8, ba, bzero}, {RUNG_TYPE_I8, ba, bminus},
                 {RUNG_TYPE_U8, ua, uzero}};
    for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
      maker m;
      two(&m, ops[o], cases[i].type, "4", cases[i].a, cases[i].b);
      no_trap(&m);
      make_end(&m);
      make_begin(&m, 14); /* and while constants are folded */
      make_tensor(&m, "a", cases[i].type, "4", cases[i].a);
      make_tensor(&m, "b", cases[i].type, "4", cases[i].b);
      make_node(&m, ops[o], "a b", "y");
      if (o) make_attr_int(&m, "fmod", 1);
      make_output(&m, "y");
      no_trap(&m);
      make_end(&m);
    }
  }
}
/* A float that no integer of the type is near becomes the nearest end, NaN becomes 0: everywhere the same. */
static void test_cast_of_what_does_not_fit(void) {
  static const float x[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 3.9f, -3.9f, 300, -300, 0};
  static const struct {
    rung_type type;
    double low, high;
  } types[] = {{RUNG_TYPE_I8, INT8_MIN, INT8_MAX},
               {RUNG_TYPE_U8, 0, UINT8_MAX},
               {RUNG_TYPE_I32, INT32_MIN, INT32_MAX},
               {RUNG_TYPE_I64, -0x1p63, 0x1p63}};
  for (size_t t = 0; t < RUNG_COUNT(types); t++)
    for (int known = 0; known < 2; known++) {
      maker m;
      double want[10];
      for (int i = 0; i < 10; i++) {
        want[i] = isnan(x[i]) ? 0 : trunc((double)x[i]);
        want[i] = want[i] < types[t].low ? types[t].low : want[i] > types[t].high ? types[t].high : want[i];
      }
      make_begin(&m, 13);
      if (known)
        make_tensor(&m, "x", RUNG_TYPE_F32, "10", x);
      else
        make_given(&m, "x", RUNG_TYPE_F32, "10", x);
      make_node(&m, "Cast", "x", "y");
      make_attr_int(&m, "to", make_type(types[t].type));
      make_output(&m, "y");
      make_expect(&m, 0, "10", want, __FILE__, __LINE__);
      make_end(&m);
    }
}

/* ---- no elements */

static void test_nothing_flows_through(void) {
  maker m;
  make_begin(&m, 13); /* no row in either part */
  make_input(&m, "a", RUNG_TYPE_F32, "n,4"), make_input(&m, "b", RUNG_TYPE_F32, "k,4");
  make_feed(&m, "a", RUNG_TYPE_F32, "0,4", ramp), make_feed(&m, "b", RUNG_TYPE_F32, "0,4", ramp);
  make_node(&m, "Concat", "a b", "y");
  make_attr_int(&m, "axis", 0);
  make_output(&m, "y");
  REFUSED(&m, ""); /* open extents begin at 1: what may be empty says so */
  make_end(&m);
  make_begin(&m, 13);
  make_given(&m, "a", RUNG_TYPE_F32, "0,4", ramp), make_given(&m, "b", RUNG_TYPE_F32, "2,4", ramp);
  make_node(&m, "Concat", "a b", "y");
  make_attr_int(&m, "axis", 0);
  make_node(&m, "Concat", "a a", "z");
  make_attr_int(&m, "axis", 0);
  make_output(&m, "y"), make_output(&m, "z");
  EXPECT(&m, 0, "2,4", 0, 1, 2, 3, 4, 5, 6, 7);
  EXPECT(&m, 1, "0,4", 0);
  make_end(&m);
}
/* Rows whose first number is not 0 are kept, sorted by their second, scaled and convolved: all of them or none. */
static void test_no_rows_found(void) {
  static const float some[] = {1, 5, 0, 7, 2, 6}, none[] = {0, 5, 0, 7, 0, 6};
  for (int empty = 0; empty < 2; empty++) {
    maker m;
    make_begin(&m, 13);
    make_given(&m, "x", RUNG_TYPE_F32, "3,2", empty ? none : some);
    make_i64(&m, "zero", 1, I64(0)), make_i64(&m, "one", 1, I64(1)), make_i64(&m, "two", 1, I64(2)),
        make_i64(&m, "column", 0 + 1, I64(0));
    make_node(&m, "Gather", "x column", "c"); /* [1,2]: unused rows keep the shapes honest */
    make_node(&m, "Slice", "x zero one one", "first");
    make_node(&m, "Squeeze", "first one", "flat");
    make_node(&m, "NonZero", "flat", "at");
    make_node(&m, "Squeeze", "at zero", "rows");
    make_node(&m, "Gather", "x rows", "kept");
    make_node(&m, "Shape", "rows", "count");
    make_node(&m, "Slice", "kept one two one", "score");
    make_node(&m, "Squeeze", "score one", "scores");
    make_node(&m, "TopK", "scores count", "best order");
    make_node(&m, "Concat", "kept kept", "twice");
    make_attr_int(&m, "axis", 0);
    make_output(&m, "kept"), make_output(&m, "best"), make_output(&m, "order"), make_output(&m, "twice");
    if (empty) {
      EXPECT(&m, 0, "0,2", 0);
      EXPECT(&m, 1, "0", 0);
      EXPECT(&m, 2, "0", 0);
      EXPECT(&m, 3, "0,2", 0);
    } else {
      EXPECT(&m, 0, "2,2", 1, 5, 2, 6);
      EXPECT(&m, 1, "2", 6, 5);
      EXPECT(&m, 2, "2", 1, 0);
      EXPECT(&m, 3, "4,2", 1, 5, 2, 6, 1, 5, 2, 6);
    }
    make_end(&m);
  }
}
/* Boxes that pass a threshold, then a picture cut out, resized and convolved for each: none is no error. */
static void test_no_detections(void) {
  static const float boxes[] = {0, 0, 1, 1, 0, 0, 1, 0.9f, 5, 5, 6, 6}, score[] = {0.9f, 0.8f, 0.7f};
  static const float kernel[] = {1, 1, 1, 1};
  for (int empty = 0; empty < 2; empty++) {
    maker m;
    const float threshold = empty ? 0.95f : 0.5f;
    make_begin(&m, 13);
    make_given(&m, "boxes", RUNG_TYPE_F32, "1,3,4", boxes);
    make_given(&m, "scores", RUNG_TYPE_F32, "1,1,3", score);
    make_given(&m, "pictures", RUNG_TYPE_F32, "3,1,2,2", ramp);
    make_given(&m, "t", RUNG_TYPE_F32, "1", &threshold);
    make_i64(&m, "most", 1, I64(10));
    make_tensor(&m, "overlap", RUNG_TYPE_F32, "1", ((const float[]){0.5f}));
    make_i64(&m, "two", 1, I64(2)), make_i64(&m, "one", 1, I64(1)), make_i64(&m, "three", 1, I64(3));
    make_tensor(&m, "scales", RUNG_TYPE_F32, "4", ((const float[]){1, 1, 2, 2}));
    make_tensor(&m, "w", RUNG_TYPE_F32, "1,1,2,2", kernel);
    make_node(&m, "NonMaxSuppression", "boxes scores most overlap t", "found");
    make_node(&m, "Slice", "found two three one", "column");
    make_node(&m, "Squeeze", "column one", "which");
    make_node(&m, "Gather", "pictures which", "cut");
    make_node(&m, "Resize", "cut - scales", "large");
    make_attr_text(&m, "mode", "nearest");
    make_node(&m, "Conv", "large w", "y");
    make_attr_ints(&m, "strides", 2, I64(2, 2));
    make_node(&m, "MaxPool", "large", "p");
    make_attr_ints(&m, "kernel_shape", 2, I64(2, 2)), make_attr_ints(&m, "strides", 2, I64(2, 2));
    make_node(&m, "GlobalAveragePool", "y", "mean");
    make_output(&m, "found"), make_output(&m, "y"), make_output(&m, "p"), make_output(&m, "mean");
    if (empty) {
      EXPECT(&m, 0, "0,3", 0);
      EXPECT(&m, 1, "0,1,2,2", 0);
      EXPECT(&m, 2, "0,1,2,2", 0);
      EXPECT(&m, 3, "0,1,1,1", 0);
    } else {
      EXPECT(&m, 0, "2,3", 0, 0, 0, 0, 0, 2);
      EXPECT(&m, 1, "2,1,2,2", 0, 4, 8, 12, 32, 36, 40, 44);
      EXPECT(&m, 2, "2,1,2,2", 0, 1, 2, 3, 8, 9, 10, 11);
      EXPECT(&m, 3, "2,1,1,1", 6, 38);
    }
    make_end(&m);
  }
}

int main(void) {
  RUN(test_reshape_copies_by_position);
  RUN(test_reshape_of_no_elements);
  RUN(test_found_extents_must_agree);
  RUN(test_given_extents_must_agree);
  RUN(test_a_branch_not_taken_asks_nothing);
  RUN(test_squeeze_wants_extent_one);
  RUN(test_axes_move_from_attribute_to_input);
  RUN(test_slices_clamp);
  RUN(test_indices_from_the_end);
  RUN(test_indices_outside_are_refused);
  RUN(test_one_hot_outside);
  RUN(test_nan_is_kept_at_every_position);
  RUN(test_nan_of_one_element_reaches_all);
  RUN(test_min_and_max_of_thirty_with_one);
  RUN(test_mod_of_negatives);
  RUN(test_division_never_traps);
  RUN(test_cast_of_what_does_not_fit);
  RUN(test_nothing_flows_through);
  RUN(test_no_rows_found);
  RUN(test_no_detections);
  return TEST_END();
}
