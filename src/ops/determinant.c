/* SPDX-License-Identifier: MIT
 * determinant: of the square matrices in the last two axes, by elimination with the largest pivot of each column. */
#include <math.h>

#include "ops/structured.h"

enum { MOST = 64 }; /* rows, which the reference keeps on the stack */

static rung_status infer(rung_infer *infer) {
  const rung_value_type *x = &infer->in[0];
  int64_t rows, columns;
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_rank_at_least(infer, 0, 2));
  RUNG_TRY(rung_infer_constant(infer, x->extent[x->rank - 2], "the rows", &rows));
  RUNG_TRY(rung_infer_constant(infer, x->extent[x->rank - 1], "the columns", &columns));
  if (rows != columns) return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH, "matrices must be square");
  if (rows > MOST) return rung_infer_refuse(infer, RUNG_UNSUPPORTED, "matrices have at most %d rows", MOST);
  rung_infer_result(infer, 0, x->type, x->rank - 2, x->extent);
  return RUNG_OK;
}

static double eliminate(double (*a)[MOST], int n) {
  double product = 1;
  for (int c = 0; c < n; c++) {
    int pivot = c;
    for (int r = c + 1; r < n; r++)
      if (fabs(a[r][c]) > fabs(a[pivot][c])) pivot = r;
    if (a[pivot][c] == 0) return 0;
    for (int k = c; k < n && pivot != c; k++) {
      const double swap = a[c][k];
      a[c][k] = a[pivot][k];
      a[pivot][k] = swap;
    }
    product *= pivot == c ? a[c][c] : -a[c][c];
    for (int r = c + 1; r < n; r++) {
      const double factor = a[r][c] / a[c][c];
      for (int k = c; k < n; k++) a[r][k] -= factor * a[c][k];
    }
  }
  return product;
}

static rung_status reference(const rung_args *args) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  const int n = (int)x->extent[x->rank - 1];
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w)) {
    double a[MOST][MOST];
    int64_t at = 0;
    for (int i = 0; i < y->rank; i++) at += w.index[i] * x->stride[i];
    for (int r = 0; r < n; r++)
      for (int c = 0; c < n; c++)
        a[r][c] = rung_load_f64(x, at + r * x->stride[x->rank - 2] + c * x->stride[x->rank - 1]);
    rung_store_f64(y, w.offset[0], eliminate(a, n));
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {
    {"f32[3,3]", ""}, {"f32[2,4,5,5]", ""}, {"f32[0,2,2]", ""}, {"f16[2,1,1]", ""}, {0}};

const rung_op rung_op_determinant = {
    .name = "determinant",
    .doc = "of the square matrices in the last two axes, at most 64 rows",
    .operands = (const char *const[]){"x", NULL},
    .in_lo = 1,
    .in_hi = 1,
    .results = 1,
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "not yet: wants an inverse",
    .test_lo = -2,
    .test_hi = 2,
    .tests = cases,
    .tolerance = {.relative = 1e-5, .absolute = 1e-35},
};
