/* SPDX-License-Identifier: MIT
 * ONNX operators that are small graphs of others: Einsum, pooling by norms and back, scattered rows, random numbers. */
#include <math.h>
#include <string.h>

#include "formats/onnx/import.h"
#include "formats/onnx/windows.h"

/* ---- Einsum: labels are axes. Each operand gets an axis for every label; what is in no result is summed. */

enum { LABELS = 64, ELLIPSIS = 128 };

typedef struct term {
  int count;
  int label[RUNG_MAX_RANK]; /* letters; ELLIPSIS + i: axis i, counted from the last, of what "..." stands for */
} term;

typedef struct equation {
  term in[8], out;
  int terms;
  bool explicit_out;
} equation;

/* One term of an equation of an operand with `rank` axes (-1: the result, "..." of `wide` axes). */
static bool parse_term(onnx_call *c, const char **text, const char *end, int rank, int *wide, term *t) {
  int letters = 0;
  const char *p = *text;
  for (const char *q = p; q < end && *q != ',' && *q != '-'; q++)
    letters += (*q >= 'a' && *q <= 'z') || (*q >= 'A' && *q <= 'Z');
  int dots = rank < 0 ? *wide : rank - letters;
  for (; p < end && *p != ',' && *p != '-'; p++) {
    if (*p == ' ') continue;
    if (*p == '.') {
      if (end - p < 3 || p[1] != '.' || p[2] != '.' || dots < 0) return false;
      p += 2;
      if (rank >= 0 && dots > *wide) *wide = dots;
      for (int i = dots; i > 0; i--) {
        if (t->count == RUNG_MAX_RANK) return false;
        t->label[t->count++] = ELLIPSIS + i - 1;
      }
      dots = 0;
      continue;
    }
    if (t->count == RUNG_MAX_RANK || !((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z'))) return false;
    t->label[t->count++] = *p;
  }
  *text = p;
  (void)c;
  return rank < 0 || t->count == rank;
}

static bool has_label(const term *t, int label) {
  for (int i = 0; i < t->count; i++)
    if (t->label[i] == label) return true;
  return false;
}

static bool parse_equation(onnx_call *c, equation *e) {
  const onnx_attr *a = onnx_attr_find(c, "equation");
  if (!a || a->type != ONNX_ATTR_STRING || c->n_in > RUNG_COUNT(e->in)) return false;
  const char *p = a->s.text, *end = p + a->s.length;
  int wide = 0;
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (!parse_term(c, &p, end, onnx_rank(c, c->in[i]), &wide, &e->in[i])) return false;
    if (i + 1 < c->n_in && (p == end || *p++ != ',')) return false;
  }
  e->terms = (int)c->n_in;
  while (p < end && *p == ' ') p++;
  if (p == end) { /* what stands once, in the order of letters, behind "..." */
    for (int i = wide; i > 0; i--) e->out.label[e->out.count++] = ELLIPSIS + i - 1;
    for (int letter = 'A'; letter <= 'z'; letter++) {
      int seen = 0;
      for (int t = 0; t < e->terms; t++)
        for (int i = 0; i < e->in[t].count; i++) seen += e->in[t].label[i] == letter;
      if (seen == 1 && e->out.count < RUNG_MAX_RANK) e->out.label[e->out.count++] = letter;
    }
    return true;
  }
  if (end - p < 2 || p[0] != '-' || p[1] != '>') return false;
  p += 2;
  return parse_term(c, &p, end, -1, &wide, &e->out) && p == end;
}

/* A label that stands twice in a term means the diagonal: the axes are made one. */
static rung_value diagonals(onnx_call *c, rung_value x, term *t) {
  for (int i = 0; i < t->count; i++)
    for (int j = i + 1; j < t->count; j++) {
      if (t->label[i] != t->label[j]) continue;
      const int rank = onnx_rank(c, x);
      rung_dim a[RUNG_MAX_RANK], b[RUNG_MAX_RANK];
      for (int k = 0; k < rank; k++) a[k] = b[k] = onnx_dim(c, 1);
      a[i] = onnx_extent(c, x, i);
      b[j] = onnx_extent(c, x, j);
      const rung_value on = rung_build_equal(c->g, onnx_reshape(c, onnx_arange(c, a[i], RUNG_TYPE_I64), rank, a),
                                             onnx_reshape(c, onnx_arange(c, b[j], RUNG_TYPE_I64), rank, b));
      const rung_reduce_attrs along = {.axes = {1, {j}}};
      x = onnx_op(c, &rung_op_reduce_sum, rung_build_where(c->g, on, x, onnx_scalar(c, x, 0)), &along);
      t->count--;
      memmove(t->label + j, t->label + j + 1, (size_t)(t->count - j) * sizeof t->label[0]);
      j--;
    }
  return x;
}

void onnx_build_einsum(onnx_call *c);
void onnx_build_einsum(onnx_call *c) {
  equation e = {0};
  if (!parse_equation(c, &e)) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "its equation does not fit the operands");
    return;
  }
  int all[LABELS], n = 0;
  rung_value y = rung_build_null();
  for (int i = 0; i < e.out.count; i++) all[n++] = e.out.label[i];
  for (int t = 0; t < e.terms; t++)
    for (int i = 0; i < e.in[t].count; i++) {
      bool known = false;
      for (int k = 0; k < n; k++) known = known || all[k] == e.in[t].label[i];
      if (!known) all[n++] = e.in[t].label[i];
    }
  if (n > RUNG_MAX_RANK) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "%d different labels", n);
    return;
  }
  for (int t = 0; t < e.terms && !onnx_failed(c); t++) {
    rung_value x = diagonals(c, c->in[t], &e.in[t]);
    const rung_value_type type = *onnx_type(c, x);
    int64_t order[RUNG_MAX_RANK];
    rung_dim extent[RUNG_MAX_RANK];
    int found = 0;
    for (int k = 0; k < n; k++) {
      extent[k] = onnx_dim(c, 1);
      for (int i = 0; i < e.in[t].count; i++)
        if (e.in[t].label[i] == all[k]) {
          order[found++] = i;
          extent[k] = type.extent[i];
        }
    }
    if (found != type.rank) {
      onnx_refuse(c, RUNG_UNSUPPORTED, "its equation does not fit the operands");
      return;
    }
    x = onnx_reshape(c, rung_build_transpose(c->g, x, order), n, extent);
    y = y.id ? rung_build_mul(c->g, y, x) : x;
  }
  for (int i = 0; i < e.out.count; i++) {
    bool there = false;
    for (int t = 0; t < e.terms; t++) there = there || has_label(&e.in[t], e.out.label[i]);
    if (!there) onnx_refuse(c, RUNG_UNSUPPORTED, "the result has a label that no operand has");
  }
  rung_reduce_attrs attrs = {.axes = {.count = n - e.out.count}};
  for (int i = 0; i < attrs.axes.count; i++) attrs.axes.value[i] = e.out.count + i;
  c->out[0] = attrs.axes.count ? onnx_op(c, &rung_op_reduce_sum, y, &attrs) : y;
}

/* ---- pooling */

/* (sum of |x|^p)^(1/p): the mean over windows with the padding, times their size. */
void onnx_build_lp_pool(onnx_call *c);
void onnx_build_lp_pool(onnx_call *c) {
  onnx_window w;
  const int64_t p = onnx_int(c, "p", 2);
  rung_value x = c->in[0];
  rung_i64_list whole = {.count = 0};
  if (!onnx_window_read(c, &w, onnx_rank(c, x) - 2, &whole)) return;
  x = rung_build_pow(c->g, rung_build_abs(c->g, x), onnx_scalar(c, x, (double)p));
  x = onnx_window_same(c, x, &w, 0);
  rung_pool_attrs attrs = {.ceil = onnx_int(c, "ceil_mode", 0) != 0, .count_pad = true};
  double size = 1;
  for (int i = 0; i < w.axes; i++) size *= (double)w.kernel[i];
  onnx_window_list(&attrs.kernel, w.axes, w.kernel);
  onnx_window_list(&attrs.stride, w.axes, w.stride);
  onnx_window_list(&attrs.dilation, w.axes, w.dilation);
  onnx_window_list(&attrs.pad_before, w.axes, w.before);
  onnx_window_list(&attrs.pad_after, w.axes, w.after);
  x = onnx_op(c, &rung_op_average_pool, x, &attrs);
  x = rung_build_mul(c->g, x, onnx_scalar(c, x, size));
  c->out[0] = rung_build_pow(c->g, x, onnx_scalar(c, x, 1 / (double)p));
}
void onnx_build_global_lp_pool(onnx_call *c);
void onnx_build_global_lp_pool(onnx_call *c) {
  const double p = (double)onnx_int(c, "p", 2);
  rung_reduce_attrs attrs = {.keep = true, .axes = {.count = onnx_rank(c, c->in[0]) - 2}};
  for (int i = 0; i < attrs.axes.count; i++) attrs.axes.value[i] = 2 + i;
  rung_value x = rung_build_abs(c->g, c->in[0]);
  x = onnx_op(c, &rung_op_reduce_sum, rung_build_pow(c->g, x, onnx_scalar(c, x, p)), &attrs);
  c->out[0] = rung_build_pow(c->g, x, onnx_scalar(c, x, 1 / p));
}

/* Values put back to where the largest were: a scatter into zeros. */
void onnx_build_max_unpool(onnx_call *c);
void onnx_build_max_unpool(onnx_call *c) {
  onnx_window w;
  const rung_value_type x = *onnx_type(c, c->in[0]);
  if (!onnx_window_read(c, &w, x.rank - 2, NULL)) return;
  rung_dim whole[RUNG_MAX_RANK] = {x.extent[0], x.extent[1]};
  for (int i = 0; i < w.axes; i++) {
    const int64_t rest = w.kernel[i] - w.stride[i] - w.before[i] - w.after[i];
    whole[2 + i] = rung_graph_dim(c->g, RUNG_DIM_MUL, x.extent[2 + i], onnx_dim(c, w.stride[i]));
    whole[2 + i] = rung_graph_dim(c->g, RUNG_DIM_ADD, whole[2 + i], onnx_dim(c, rest));
  }
  const rung_dim have = rung_dims_product(c->g->dims, x.extent, 0, x.rank);
  rung_dim_list given = {0};
  if (onnx_has(c, 2)) {
    if (!onnx_dims_known(c, c->in[2], &given)) return;
    for (int i = 0; i < given.count; i++)
      if (!given.dim[i].id) {
        (void)onnx_constant_in(c, 2);
        return;
      }
    if (given.count != x.rank) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "a shape of %d numbers", given.count);
  }
  const rung_dim total = rung_dims_product(c->g->dims, whole, 0, x.rank);
  const rung_scatter_attrs attrs = {.axis = 0};
  rung_value y = onnx_op3(c, &rung_op_scatter_elements, onnx_filled(c, x.type, 0, 1, &total),
                          onnx_reshape(c, c->in[1], 1, &have), onnx_reshape(c, c->in[0], 1, &have), &attrs);
  y = onnx_reshape(c, y, x.rank, whole);
  if (given.count) {
    rung_pad_attrs pad = {.before = {.count = x.rank}, .after = {.count = x.rank}};
    for (int i = 0; i < x.rank; i++) {
      pad.before.dim[i] = onnx_dim(c, 0);
      pad.after.dim[i] = rung_graph_dim(c->g, RUNG_DIM_SUB, given.dim[i], whole[i]);
    }
    y = onnx_op(c, &rung_op_pad, y, &pad);
  }
  c->out[0] = y;
}

/* Columns of windows added up to a picture: a transposed convolution with one kernel a window position. */
void onnx_build_col2im(onnx_call *c);
void onnx_build_col2im(onnx_call *c) {
  onnx_window w;
  rung_i64_list image, block;
  if (!onnx_constant_ints(c, 1, &image) || !onnx_constant_ints(c, 2, &block)) return;
  const rung_value_type x = *onnx_type(c, c->in[0]);
  int64_t columns;
  if (x.rank != 3 || image.count != block.count || !onnx_window_read(c, &w, block.count, &block) ||
      !rung_dims_is_constant(c->g->dims, x.extent[1], &columns)) {
    if (!onnx_failed(c)) onnx_refuse(c, RUNG_SHAPE_MISMATCH, "operands that do not fit together");
    return;
  }
  int64_t size = 1;
  for (int i = 0; i < w.axes; i++) size *= w.kernel[i];
  if (size < 1 || size > 4096 || columns % size) {
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "%lld rows for windows of %lld", (long long)columns, (long long)size);
    return;
  }
  rung_dim flat[2 + 3] = {rung_graph_dim(c->g, RUNG_DIM_MUL, x.extent[0], onnx_dim(c, columns / size)),
                          onnx_dim(c, size)};
  rung_conv_transpose_attrs attrs = {.groups = 1, .output = {.count = w.axes}};
  for (int i = 0; i < w.axes; i++) {
    const int64_t reach = w.dilation[i] * (w.kernel[i] - 1) + 1;
    flat[2 + i] = onnx_dim(c, (image.value[i] + w.before[i] + w.after[i] - reach) / w.stride[i] + 1);
    attrs.output.dim[i] = onnx_dim(c, image.value[i]);
  }
  onnx_window_list(&attrs.stride, w.axes, w.stride);
  onnx_window_list(&attrs.dilation, w.axes, w.dilation);
  onnx_window_list(&attrs.pad_before, w.axes, w.before);
  onnx_window_list(&attrs.pad_after, w.axes, w.after);
  /* Kernel i is 1 at position i. */
  const rung_dim square[2] = {onnx_dim(c, size), onnx_dim(c, size)};
  rung_iota_attrs count = {.shape = {2, {square[0], square[1]}}, .axis = 0, .type = RUNG_TYPE_I64};
  const rung_value row = rung_graph_op(c->g, &rung_op_iota, NULL, 0, &count);
  count.axis = 1;
  const rung_value column = rung_graph_op(c->g, &rung_op_iota, NULL, 0, &count);
  rung_dim kernel[5] = {onnx_dim(c, size), onnx_dim(c, 1)};
  for (int i = 0; i < w.axes; i++) kernel[2 + i] = onnx_dim(c, w.kernel[i]);
  const rung_value one = onnx_reshape(c, onnx_cast(c, rung_build_equal(c->g, row, column), x.type), 2 + w.axes, kernel);
  const rung_value y = onnx_op2(c, &rung_op_conv_transpose, onnx_reshape(c, c->in[0], 2 + w.axes, flat), one, &attrs);
  rung_dim out[5] = {x.extent[0], onnx_dim(c, columns / size)};
  for (int i = 0; i < w.axes; i++) out[2 + i] = attrs.output.dim[i];
  c->out[0] = onnx_reshape(c, y, 2 + w.axes, out);
}

/* ---- rows of a cache replaced from a place of each entry on */

void onnx_build_tensor_scatter(onnx_call *c);
void onnx_build_tensor_scatter(onnx_call *c) {
  const rung_value_type cache = *onnx_type(c, c->in[0]), update = *onnx_type(c, c->in[1]);
  const int axis = onnx_axis(c, onnx_int(c, "axis", -2), cache.rank);
  if (update.rank != cache.rank || axis < 1)
    onnx_refuse(c, RUNG_SHAPE_MISMATCH, "axis %d of %d axes", axis, update.rank);
  if (onnx_failed(c)) return;
  rung_dim extent[RUNG_MAX_RANK];
  for (int i = 0; i < cache.rank; i++) extent[i] = i == axis ? update.extent[axis] : onnx_dim(c, 1);
  rung_value at = onnx_reshape(c, onnx_arange(c, update.extent[axis], RUNG_TYPE_I64), cache.rank, extent);
  if (onnx_has(c, 2)) {
    for (int i = 0; i < cache.rank; i++) extent[i] = i ? onnx_dim(c, 1) : update.extent[0];
    at = rung_build_add(c->g, at, onnx_reshape(c, onnx_cast(c, c->in[2], RUNG_TYPE_I64), cache.rank, extent));
  }
  if (onnx_text_is(c, "mode", "linear", "circular"))
    at = rung_build_mod(c->g, at, rung_build_extent(c->g, cache.extent[axis], RUNG_TYPE_I64));
  const rung_scatter_attrs attrs = {.axis = axis};
  c->out[0] = onnx_op3(c, &rung_op_scatter_elements, c->in[0], rung_build_expand(c->g, at, update.rank, update.extent),
                       c->in[1], &attrs);
}

/* ---- random numbers: of the context's generator, so that no two systems agree on them */

static rung_value random_numbers(onnx_call *c, bool normal, rung_type type, int rank, const rung_dim *extent) {
  const double given = onnx_float(c, "seed", 0);
  int64_t seed; /* its bits: any number is a seed, one that is none as well */
  memcpy(&seed, &given, sizeof seed);
  seed ^= ++c->imp->fresh;
  rung_value y;
  if (normal) {
    rung_random_normal_attrs attrs = {.shape = {.count = rank},
                                      .mean = onnx_float(c, "mean", 0),
                                      .deviation = onnx_float(c, "scale", 1),
                                      .seed = seed};
    for (int i = 0; i < rank; i++) attrs.shape.dim[i] = extent[i];
    y = rung_graph_op(c->g, &rung_op_random_normal, NULL, 0, &attrs);
  } else {
    rung_random_attrs attrs = {
        .shape = {.count = rank}, .low = onnx_float(c, "low", 0), .high = onnx_float(c, "high", 1), .seed = seed};
    for (int i = 0; i < rank; i++) attrs.shape.dim[i] = extent[i];
    y = rung_graph_op(c->g, &rung_op_random_uniform, NULL, 0, &attrs);
  }
  return onnx_cast(c, y, type);
}
/* variant: 1 normal, 2 like the operand */
void onnx_build_random(onnx_call *c);
void onnx_build_random(onnx_call *c) {
  rung_type type = RUNG_TYPE_F32;
  rung_i64_list shape = {0};
  rung_dim extent[RUNG_MAX_RANK];
  const bool like = (c->row->variant & 2) != 0;
  if (like && rung_type_is_float(onnx_type(c, c->in[0])->type)) type = onnx_type(c, c->in[0])->type;
  if (onnx_attr_find(c, "dtype") && !onnx_element_type(c, onnx_int(c, "dtype", 1), &type)) return;
  int rank;
  if (like) {
    const rung_value_type *x = onnx_type(c, c->in[0]);
    rank = x->rank;
    memcpy(extent, x->extent, sizeof extent);
  } else {
    (void)onnx_int_list(c, "shape", &shape);
    rank = shape.count;
    for (int i = 0; i < rank; i++) extent[i] = onnx_dim(c, shape.value[i]);
  }
  c->out[0] = random_numbers(c, (c->row->variant & 1) != 0, type, rank, extent);
}
void onnx_build_bernoulli(onnx_call *c);
void onnx_build_bernoulli(onnx_call *c) {
  const rung_value_type x = *onnx_type(c, c->in[0]);
  rung_type type = x.type;
  if (onnx_attr_find(c, "dtype") && !onnx_element_type(c, onnx_int(c, "dtype", 1), &type)) return;
  const rung_value u = random_numbers(c, false, x.type, x.rank, x.extent);
  c->out[0] = onnx_cast(c, rung_build_less(c->g, u, c->in[0]), type);
}

void onnx_build_swiglu(onnx_call *c);
void onnx_build_swiglu(onnx_call *c) {
  const rung_value gate = c->in[0], alpha = onnx_scalar(c, gate, onnx_float(c, "alpha", 1));
  const rung_value open = rung_build_sigmoid(c->g, rung_build_mul(c->g, gate, alpha));
  c->out[0] = rung_build_mul(c->g, rung_build_mul(c->g, gate, open), c->in[1]);
}

void onnx_build_binarizer(onnx_call *c);
void onnx_build_binarizer(onnx_call *c) {
  const rung_value x = c->in[0];
  const rung_value above = rung_build_greater(c->g, x, onnx_scalar(c, x, onnx_float(c, "threshold", 0)));
  c->out[0] = onnx_cast(c, above, onnx_type(c, x)->type);
}
void onnx_build_feature_extractor(onnx_call *c);
void onnx_build_feature_extractor(onnx_call *c) {
  const rung_dim all = rung_dims_product(c->g->dims, onnx_type(c, c->in[1])->extent, 0, onnx_rank(c, c->in[1]));
  const rung_gather_attrs attrs = {-1};
  const rung_value at = onnx_reshape(c, onnx_cast(c, c->in[1], RUNG_TYPE_I64), 1, &all);
  c->out[0] = onnx_op2(c, &rung_op_gather, c->in[0], at, &attrs);
}
