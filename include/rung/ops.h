/* SPDX-License-Identifier: MIT
 * Ops as verbs on a graph. Printed by tools/gen_ops from the table of ops; not edited by hand.
 *
 * Each call appends one node and gives its result. Building is sticky (rung/graph.h): operands are checked, and
 * after an error every call gives the null value. Operands of elementwise ops broadcast as in numpy. Lists hold at
 * most RUNG_MAX_RANK entries and are copied. Options NULL means defaults.
 */
#ifndef RUNG_OPS_H
#define RUNG_OPS_H

#include <rung/graph.h>

#ifdef __cplusplus
extern "C" {
#endif
/* clang-format off */

/* matrix product, leading axes broadcast; weights may be block types, activations quantised rows.
 * transpose_b (default false): b is [..., N, K]; block types, whose blocks lie along K, need it
 * type (default f32): of the result; integer operands need an integer type, and wrap */
RUNG_API rung_value rung_matmul(rung_graph *graph, rung_value a, rung_value b, bool transpose_b, rung_type type);

/* matrix products of one a with several weights that lie in one transposed b.
 * sizes: rows of b that each result takes
 * interleave (default 0): 0: the members' rows one after another; p > 0: panels of p rows in turn, all sizes equal
 * type (default f32): of the results
 * results: how many out_results has room for; must be what the node has */
RUNG_API void rung_grouped_matmul(rung_graph *graph, rung_value a, rung_value b, int count, const int64_t *sizes,
    int64_t interleave, rung_type type, uint32_t results, rung_value *out_results);

/* blocks of 32 numbers along the last axis as int8 with an f32 scale and two sums. */
RUNG_API rung_value rung_quantize_rows(rung_graph *graph, rung_value x);

enum { RUNG_ROPE_MODE_HALF, RUNG_ROPE_MODE_ADJACENT };
typedef struct rung_rope_options {
  size_t size; /* sizeof(rung_rope_options) */
  int64_t dims; /* leading elements of each head that turn; 0: all; default 0 */
  double base; /* of the geometric series of frequencies; default 10000 */
  double scale; /* multiplies every angle; default 1 */
  double magnitude; /* multiplies sine and cosine; default 1 */
  int32_t mode; /* which elements pair up: half (i, i + dims/2), adjacent (2i, 2i + 1); default half */
} rung_rope_options;
RUNG_API rung_rope_options rung_rope_options_default(void);
/* rotary positions: turns pairs of each head by an angle that grows with the position.
 * factors: optional, {0, 0} for none */
RUNG_API rung_value rung_rope(rung_graph *graph, rung_value x, rung_value positions, rung_value factors,
    const rung_rope_options *options);

/* past[s] + row - offsets[s] for every row of every sequence s of a ragged batch.
 * rows: extent of the result: rows of the batch, where offsets end */
RUNG_API rung_value rung_positions(rung_graph *graph, rung_value offsets, rung_value past, rung_dim rows);

/* writes keys and values of new rows behind those that each sequence holds; rounds to the state's type. */
RUNG_API rung_value rung_append(rung_graph *graph, rung_value state, rung_value k, rung_value v, rung_value offsets,
    rung_value slot, rung_value past);

/* writes rows into a dense state [batch, capacity, ...] from a position of each batch entry on. */
RUNG_API rung_value rung_append_dense(rung_graph *graph, rung_value state, rung_value x, rung_value position);

/* causal softmax attention of ragged rows over the keys and values that a state holds for their sequence.
 * scale (default 0): multiplies scores; 0: 1 / sqrt(key_dim)
 * soft_cap (default 0): c > 0: scores become c tanh(score / c)
 * window (default 0): positions that a row sees, itself included; 0: all */
RUNG_API rung_value rung_attention_kv(rung_graph *graph, rung_value q, rung_value state, rung_value offsets,
    rung_value slot, rung_value past, double scale, double soft_cap, int64_t window);

/* slices of x along an axis, chosen by indices; rows of block types come out as f32.
 * axis (default 0): axis of x that the indices choose from */
RUNG_API rung_value rung_gather(rung_graph *graph, rung_value x, rung_value indices, int64_t axis);

/* one element of x for every index: the index replaces the position along an axis.
 * axis (default 0): axis of x that the indices choose from */
RUNG_API rung_value rung_gather_elements(rung_graph *graph, rung_value x, rung_value indices, int64_t axis);

/* slices of x at index tuples: the last axis of indices holds one index per leading axis of x.
 * batch_dims (default 0): leading axes that x and indices share */
RUNG_API rung_value rung_gather_nd(rung_graph *graph, rung_value x, rung_value indices, int64_t batch_dims);

enum { RUNG_SCATTER_ELEMENTS_MODE_SET, RUNG_SCATTER_ELEMENTS_MODE_ADD, RUNG_SCATTER_ELEMENTS_MODE_MUL, RUNG_SCATTER_ELEMENTS_MODE_MIN, RUNG_SCATTER_ELEMENTS_MODE_MAX };
/* x with single elements replaced by or combined with updates: the index replaces the position along an axis.
 * axis (default 0): axis of x that the indices choose from
 * mode (default set): what happens to the element: replaced, or combined with the update; set, add, mul, min, max */
RUNG_API rung_value rung_scatter_elements(rung_graph *graph, rung_value x, rung_value indices, rung_value updates,
    int64_t axis, int32_t mode);

enum { RUNG_SCATTER_ND_MODE_SET, RUNG_SCATTER_ND_MODE_ADD, RUNG_SCATTER_ND_MODE_MUL, RUNG_SCATTER_ND_MODE_MIN, RUNG_SCATTER_ND_MODE_MAX };
/* x with slices at index tuples replaced by or combined with updates.
 * mode (default set): what happens to the element: replaced, or combined with the update; set, add, mul, min, max */
RUNG_API rung_value rung_scatter_nd(rung_graph *graph, rung_value x, rung_value indices, rung_value updates,
    int32_t mode);

/* the same elements in row-major order under other extents.
 * shape: extents of the result */
RUNG_API rung_value rung_reshape(rung_graph *graph, rung_value x, int count, const rung_dim *shape);

/* axes of extent 1, and new leading axes, repeated.
 * shape: extents of the result */
RUNG_API rung_value rung_expand(rung_graph *graph, rung_value x, int count, const rung_dim *shape);

/* axes in another order.
 * permutation: axis i of the result is axis permutation[i] of x */
RUNG_API rung_value rung_transpose(rung_graph *graph, rung_value x, int count, const int64_t *permutation);

/* along each axis, length elements from start on, step apart.
 * start: first index along each axis
 * length: extents of the result
 * step: distance along each axis, not 0 */
RUNG_API rung_value rung_slice(rung_graph *graph, rung_value x, int count, const rung_dim *start,
    const rung_dim *length, const int64_t *step);

/* operands one after another along an axis.
 * axis: counts from the end if negative */
RUNG_API rung_value rung_concat(rung_graph *graph, const rung_value *x, uint32_t x_count, int64_t axis);

enum { RUNG_PAD_MODE_CONSTANT, RUNG_PAD_MODE_REFLECT, RUNG_PAD_MODE_EDGE, RUNG_PAD_MODE_WRAP };
typedef struct rung_pad_options {
  size_t size; /* sizeof(rung_pad_options) */
  int32_t mode; /* what they are; default constant */
  double value; /* the constant; default 0 */
} rung_pad_options;
RUNG_API rung_pad_options rung_pad_options_default(void);
/* elements before and after along each axis: a constant, reflected, the edge, or from the other end.
 * before: elements put before, along each axis
 * after: elements put after */
RUNG_API rung_value rung_pad(rung_graph *graph, rung_value x, int count, const rung_dim *before,
    const rung_dim *after, const rung_pad_options *options);

/* another element type; floats to integers drop the fraction and saturate, NaN to 0; integers wrap.
 * type: element type of the result */
RUNG_API rung_value rung_cast(rung_graph *graph, rung_value x, rung_type type);

/* 0, 1, 2, ... along an axis.
 * shape: extents of the result
 * axis (default -1): along which it counts
 * type (default i64): element type of the result */
RUNG_API rung_value rung_iota(rung_graph *graph, int count, const rung_dim *shape, int64_t axis, rung_type type);

/* overwrites a dense state; readers of the version before come first. */
RUNG_API rung_value rung_assign(rung_graph *graph, rung_value state, rung_value x);

typedef struct rung_random_uniform_options {
  size_t size; /* sizeof(rung_random_uniform_options) */
  double low; /* smallest value; default 0 */
  double high; /* values stay below, but for rounding; default 1 */
  int64_t seed; /* stream: mixed into the context's seed; default 0 */
} rung_random_uniform_options;
RUNG_API rung_random_uniform_options rung_random_uniform_options_default(void);
/* numbers evenly spread over [low, high) from the context's generator.
 * shape: extents of the result */
RUNG_API rung_value rung_random_uniform(rung_graph *graph, int count, const rung_dim *shape,
    const rung_random_uniform_options *options);

typedef struct rung_random_normal_options {
  size_t size; /* sizeof(rung_random_normal_options) */
  double mean; /* mean; default 0 */
  double deviation; /* standard deviation; default 1 */
  int64_t seed; /* stream: mixed into the context's seed; default 0 */
} rung_random_normal_options;
RUNG_API rung_random_normal_options rung_random_normal_options_default(void);
/* normally distributed numbers from the context's generator.
 * shape: extents of the result */
RUNG_API rung_value rung_random_normal(rung_graph *graph, int count, const rung_dim *shape,
    const rung_random_normal_options *options);

typedef struct rung_conv_options {
  size_t size; /* sizeof(rung_conv_options) */
  int32_t stride_count;
  int64_t stride[RUNG_MAX_RANK]; /* per spatial axis; empty: 1; default [] */
  int32_t dilation_count;
  int64_t dilation[RUNG_MAX_RANK]; /* distance of kernel positions; empty: 1; default [] */
  int32_t pad_before_count;
  int64_t pad_before[RUNG_MAX_RANK]; /* zeros before each axis; empty: 0; default [] */
  int32_t pad_after_count;
  int64_t pad_after[RUNG_MAX_RANK]; /* zeros behind each axis; empty: 0; default [] */
  int64_t groups; /* channels and results are cut into as many parts; default 1 */
} rung_conv_options;
RUNG_API rung_conv_options rung_conv_options_default(void);
/* convolution over one to three spatial axes, with groups, strides, dilations and padding.
 * bias: optional, {0, 0} for none */
RUNG_API rung_value rung_conv(rung_graph *graph, rung_value x, rung_value w, rung_value bias,
    const rung_conv_options *options);

typedef struct rung_conv_transpose_options {
  size_t size; /* sizeof(rung_conv_transpose_options) */
  int32_t stride_count;
  int64_t stride[RUNG_MAX_RANK]; /* per spatial axis; empty: 1; default [] */
  int32_t dilation_count;
  int64_t dilation[RUNG_MAX_RANK]; /* distance of kernel positions; empty: 1; default [] */
  int32_t pad_before_count;
  int64_t pad_before[RUNG_MAX_RANK]; /* cut off the result's begin; empty: 0; default [] */
  int32_t pad_after_count;
  int64_t pad_after[RUNG_MAX_RANK]; /* cut off the result's end; empty: 0; default [] */
  int64_t groups; /* channels and results are cut into as many parts; default 1 */
  int32_t output_count;
  rung_dim output[RUNG_MAX_RANK]; /* extents of the result's spatial axes, zeros behind; empty: stride (extent - 1) + dilation (kernel - 1) + 1 - pads; default [] */
} rung_conv_transpose_options;
RUNG_API rung_conv_transpose_options rung_conv_transpose_options_default(void);
/* transposed convolution: spreads every element of x by a kernel, with groups, strides, dilations and padding.
 * bias: optional, {0, 0} for none */
RUNG_API rung_value rung_conv_transpose(rung_graph *graph, rung_value x, rung_value w, rung_value bias,
    const rung_conv_transpose_options *options);

typedef struct rung_max_pool_options {
  size_t size; /* sizeof(rung_max_pool_options) */
  int32_t kernel_count;
  int64_t kernel[RUNG_MAX_RANK]; /* extents of the window; empty: all of every axis; default [] */
  int32_t stride_count;
  int64_t stride[RUNG_MAX_RANK]; /* per spatial axis; empty: 1; default [] */
  int32_t dilation_count;
  int64_t dilation[RUNG_MAX_RANK]; /* distance of window positions; empty: 1; default [] */
  int32_t pad_before_count;
  int64_t pad_before[RUNG_MAX_RANK]; /* padding before each axis; empty: 0; default [] */
  int32_t pad_after_count;
  int64_t pad_after[RUNG_MAX_RANK]; /* padding behind each axis; empty: 0; default [] */
  bool ceil_; /* a last window that sticks out counts as one; default false */
  bool count_pad; /* average_pool: the padding counts as zeros; default false */
} rung_max_pool_options;
RUNG_API rung_max_pool_options rung_max_pool_options_default(void);
/* the largest number of every window over the spatial axes. */
RUNG_API rung_value rung_max_pool(rung_graph *graph, rung_value x, const rung_max_pool_options *options);

typedef struct rung_average_pool_options {
  size_t size; /* sizeof(rung_average_pool_options) */
  int32_t kernel_count;
  int64_t kernel[RUNG_MAX_RANK]; /* extents of the window; empty: all of every axis; default [] */
  int32_t stride_count;
  int64_t stride[RUNG_MAX_RANK]; /* per spatial axis; empty: 1; default [] */
  int32_t dilation_count;
  int64_t dilation[RUNG_MAX_RANK]; /* distance of window positions; empty: 1; default [] */
  int32_t pad_before_count;
  int64_t pad_before[RUNG_MAX_RANK]; /* padding before each axis; empty: 0; default [] */
  int32_t pad_after_count;
  int64_t pad_after[RUNG_MAX_RANK]; /* padding behind each axis; empty: 0; default [] */
  bool ceil_; /* a last window that sticks out counts as one; default false */
  bool count_pad; /* average_pool: the padding counts as zeros; default false */
} rung_average_pool_options;
RUNG_API rung_average_pool_options rung_average_pool_options_default(void);
/* the mean of every window over the spatial axes, padding left out unless count_pad. */
RUNG_API rung_value rung_average_pool(rung_graph *graph, rung_value x, const rung_average_pool_options *options);

/* sum over axes.
 * axes (default []): reduced axes; none: all
 * keep (default false): reduced axes stay, with extent 1 */
RUNG_API rung_value rung_reduce_sum(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep);

/* mean over axes; integers round towards 0.
 * axes (default []): reduced axes; none: all
 * keep (default false): reduced axes stay, with extent 1 */
RUNG_API rung_value rung_reduce_mean(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep);

/* product over axes; its gradient needs elements that are not 0.
 * axes (default []): reduced axes; none: all
 * keep (default false): reduced axes stay, with extent 1 */
RUNG_API rung_value rung_reduce_prod(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep);

/* largest over axes; NaN if any is; for bool: any.
 * axes (default []): reduced axes; none: all
 * keep (default false): reduced axes stay, with extent 1 */
RUNG_API rung_value rung_reduce_max(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep);

/* smallest over axes; NaN if any is; for bool: all.
 * axes (default []): reduced axes; none: all
 * keep (default false): reduced axes stay, with extent 1 */
RUNG_API rung_value rung_reduce_min(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep);

/* sum of magnitudes over axes.
 * axes (default []): reduced axes; none: all
 * keep (default false): reduced axes stay, with extent 1 */
RUNG_API rung_value rung_reduce_l1(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep);

/* root of the sum of squares over axes.
 * axes (default []): reduced axes; none: all
 * keep (default false): reduced axes stay, with extent 1 */
RUNG_API rung_value rung_reduce_l2(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep);

/* sum of squares over axes.
 * axes (default []): reduced axes; none: all
 * keep (default false): reduced axes stay, with extent 1 */
RUNG_API rung_value rung_reduce_sum_square(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes,
    bool keep);

/* logarithm of the sum over axes.
 * axes (default []): reduced axes; none: all
 * keep (default false): reduced axes stay, with extent 1 */
RUNG_API rung_value rung_reduce_log_sum(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes,
    bool keep);

/* logarithm of the sum of exponentials over axes, without overflow.
 * axes (default []): reduced axes; none: all
 * keep (default false): reduced axes stay, with extent 1 */
RUNG_API rung_value rung_reduce_log_sum_exp(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes,
    bool keep);

/* index of the largest along an axis; NaN counts as largest.
 * axis (default -1): searched axis
 * keep (default false): the axis stays, with extent 1
 * last (default false): of equals the last */
RUNG_API rung_value rung_argmax(rung_graph *graph, rung_value x, int64_t axis, bool keep, bool last);

/* index of the smallest along an axis; NaN counts as smallest.
 * axis (default -1): searched axis
 * keep (default false): the axis stays, with extent 1
 * last (default false): of equals the last */
RUNG_API rung_value rung_argmin(rung_graph *graph, rung_value x, int64_t axis, bool keep, bool last);

/* exp(x) / sum(exp(x)) along an axis; a row of minus infinities is NaN.
 * axis (default -1): along which the result adds up to 1 */
RUNG_API rung_value rung_softmax(rung_graph *graph, rung_value x, int64_t axis);

/* x - log(sum(exp(x))) along an axis.
 * axis (default -1): along which the result adds up to 1 */
RUNG_API rung_value rung_log_softmax(rung_graph *graph, rung_value x, int64_t axis);

/* x / sqrt(mean(x^2) + epsilon), times weight, over the last axis.
 * weight: optional, {0, 0} for none
 * epsilon (default 1e-05): added to the mean of squares */
RUNG_API rung_value rung_rms_norm(rung_graph *graph, rung_value x, rung_value weight, rung_value bias, double epsilon);

/* (x - mean) / sqrt(variance + epsilon), times weight, plus bias, over the last axis.
 * weight: optional, {0, 0} for none
 * bias: optional, {0, 0} for none
 * epsilon (default 1e-05): added to the mean of squares */
RUNG_API rung_value rung_layer_norm(rung_graph *graph, rung_value x, rung_value weight, rung_value bias,
    double epsilon);

/* sums of all elements up to each one along an axis.
 * axis (default -1): summed along
 * exclusive (default false): without the element itself
 * reverse (default false): from the end */
RUNG_API rung_value rung_cumsum(rung_graph *graph, rung_value x, int64_t axis, bool exclusive, bool reverse);

typedef struct rung_top_k_options {
  size_t size; /* sizeof(rung_top_k_options) */
  int64_t axis; /* along which; default -1 */
  bool largest; /* largest or smallest; default true */
  bool sorted; /* if false, any order will do; default true */
} rung_top_k_options;
RUNG_API rung_top_k_options rung_top_k_options_default(void);
/* the k largest or smallest along an axis, in order, and their indices; of equals the lower index first.
 * k: how many
 * out_results[2]: values, indices */
RUNG_API void rung_top_k(rung_graph *graph, rung_value x, rung_dim k, const rung_top_k_options *options,
    rung_value *out_results);

/* gives a symbol its value; the result is the value.
 * symbol: name of the symbol
 * bound (default none): the value is at most this, over earlier symbols */
RUNG_API rung_value rung_bind_symbol(rung_graph *graph, rung_value value, const char *symbol, rung_dim bound);

/* how many elements are not 0. */
RUNG_API rung_value rung_count_nonzero(rung_graph *graph, rung_value x);

/* indices of the elements that are not 0, one column each, in row-major order.
 * count: how many elements are not 0 */
RUNG_API rung_value rung_nonzero(rung_graph *graph, rung_value x, rung_dim count_);

/* runs one of two bodies.
 * results: how many out_results has room for; must be what the node has */
RUNG_API void rung_if(rung_graph *graph, rung_value condition, const rung_value *captures, uint32_t captures_count,
    rung_graph *body_0, rung_graph *body_1, uint32_t results, rung_value *out_results);

/* runs a body again and again; hands values from iteration to iteration and stacks others.
 * carried (default 0): operands behind the condition that an iteration hands to the next
 * symbol (default ""): name of the symbol for the number of iterations, the first extent of scans
 * trip (default none): the number of iterations, or with a symbol the most of them
 * results: how many out_results has room for; must be what the node has */
RUNG_API void rung_loop(rung_graph *graph, rung_value trip, rung_value condition,
    const rung_value *values, uint32_t values_count, rung_graph *body, int64_t carried, const char *symbol,
    rung_dim trip_, uint32_t results, rung_value *out_results);

typedef struct rung_attention_options {
  size_t size; /* sizeof(rung_attention_options) */
  double scale; /* multiplies scores; 0: 1 / sqrt(dim); default 0 */
  double soft_cap; /* c > 0: scores become c tanh(score / c), before the mask; default 0 */
  int64_t window; /* w > 0: keys at most w - 1 places away; 0: all; default 0 */
  bool causal; /* query i stands at key i + keys - queries and sees none after it; default false */
} rung_attention_options;
RUNG_API rung_attention_options rung_attention_options_default(void);
/* softmax attention of tensors; rows that see no key give zeros.
 * mask: optional, {0, 0} for none */
RUNG_API rung_value rung_attention(rung_graph *graph, rung_value q, rung_value k, rung_value v, rung_value mask,
    const rung_attention_options *options);

/* magnitude; the most negative integer stays as it is. */
RUNG_API rung_value rung_abs(rung_graph *graph, rung_value x);

/* -x; integers wrap. */
RUNG_API rung_value rung_neg(rung_graph *graph, rung_value x);

/* -1, 0 or 1; x itself for zeros and NaN. */
RUNG_API rung_value rung_sign(rung_graph *graph, rung_value x);

/* smallest whole number not below x. */
RUNG_API rung_value rung_ceil(rung_graph *graph, rung_value x);

/* largest whole number not above x. */
RUNG_API rung_value rung_floor(rung_graph *graph, rung_value x);

/* nearest whole number, ties to even. */
RUNG_API rung_value rung_round(rung_graph *graph, rung_value x);

/* whole part: rounds towards 0. */
RUNG_API rung_value rung_trunc(rung_graph *graph, rung_value x);

/* square root. */
RUNG_API rung_value rung_sqrt(rung_graph *graph, rung_value x);

/* 1 / sqrt(x). */
RUNG_API rung_value rung_rsqrt(rung_graph *graph, rung_value x);

/* 1 / x. */
RUNG_API rung_value rung_reciprocal(rung_graph *graph, rung_value x);

/* e to the x. */
RUNG_API rung_value rung_exp(rung_graph *graph, rung_value x);

/* e to the x, minus 1, precise near 0. */
RUNG_API rung_value rung_expm1(rung_graph *graph, rung_value x);

/* natural logarithm; NaN below 0. */
RUNG_API rung_value rung_ln(rung_graph *graph, rung_value x);

/* natural logarithm of 1 + x, precise near 0. */
RUNG_API rung_value rung_log1p(rung_graph *graph, rung_value x);

/* sine. */
RUNG_API rung_value rung_sin(rung_graph *graph, rung_value x);

/* cosine. */
RUNG_API rung_value rung_cos(rung_graph *graph, rung_value x);

/* tangent. */
RUNG_API rung_value rung_tan(rung_graph *graph, rung_value x);

/* arc sine; NaN outside -1 .. 1. */
RUNG_API rung_value rung_asin(rung_graph *graph, rung_value x);

/* arc cosine; NaN outside -1 .. 1. */
RUNG_API rung_value rung_acos(rung_graph *graph, rung_value x);

/* arc tangent. */
RUNG_API rung_value rung_atan(rung_graph *graph, rung_value x);

/* hyperbolic sine. */
RUNG_API rung_value rung_sinh(rung_graph *graph, rung_value x);

/* hyperbolic cosine. */
RUNG_API rung_value rung_cosh(rung_graph *graph, rung_value x);

/* hyperbolic tangent. */
RUNG_API rung_value rung_tanh(rung_graph *graph, rung_value x);

/* inverse hyperbolic sine. */
RUNG_API rung_value rung_asinh(rung_graph *graph, rung_value x);

/* inverse hyperbolic cosine; NaN below 1. */
RUNG_API rung_value rung_acosh(rung_graph *graph, rung_value x);

/* inverse hyperbolic tangent; NaN outside -1 .. 1. */
RUNG_API rung_value rung_atanh(rung_graph *graph, rung_value x);

/* error function. */
RUNG_API rung_value rung_erf(rung_graph *graph, rung_value x);

/* max(x, 0). */
RUNG_API rung_value rung_relu(rung_graph *graph, rung_value x);

/* logistic function, 1 / (1 + exp(-x)). */
RUNG_API rung_value rung_sigmoid(rung_graph *graph, rung_value x);

/* log(1 + exp(x)). */
RUNG_API rung_value rung_softplus(rung_graph *graph, rung_value x);

/* x / (1 + |x|). */
RUNG_API rung_value rung_softsign(rung_graph *graph, rung_value x);

/* x sigmoid(x), also called swish. */
RUNG_API rung_value rung_silu(rung_graph *graph, rung_value x);

/* x times the normal distribution function, by erf. */
RUNG_API rung_value rung_gelu(rung_graph *graph, rung_value x);

/* gelu with the tanh approximation. */
RUNG_API rung_value rung_gelu_tanh(rung_graph *graph, rung_value x);

/* x tanh(softplus(x)). */
RUNG_API rung_value rung_mish(rung_graph *graph, rung_value x);

/* x times x/6 + 1/2 limited to 0 .. 1. */
RUNG_API rung_value rung_hard_swish(rung_graph *graph, rung_value x);

/* x, alpha x below 0.
 * alpha (default 0.01): real */
RUNG_API rung_value rung_leaky_relu(rung_graph *graph, rung_value x, double alpha);

/* x, alpha (exp(x) - 1) below 0.
 * alpha (default 1.0): real */
RUNG_API rung_value rung_elu(rung_graph *graph, rung_value x, double alpha);

/* x, alpha (exp(x / alpha) - 1) below 0.
 * alpha (default 1.0): real */
RUNG_API rung_value rung_celu(rung_graph *graph, rung_value x, double alpha);

/* x above alpha, else 0.
 * alpha (default 1.0): real */
RUNG_API rung_value rung_thresholded_relu(rung_graph *graph, rung_value x, double alpha);

/* x sigmoid(alpha x).
 * alpha (default 1.0): real */
RUNG_API rung_value rung_swish(rung_graph *graph, rung_value x, double alpha);

/* gamma x, gamma alpha (exp(x) - 1) below 0.
 * alpha (default 1.67326319217681884765625): real
 * gamma (default 1.05070102214813232421875): real */
RUNG_API rung_value rung_selu(rung_graph *graph, rung_value x, double alpha, double gamma);

/* alpha x + beta limited to 0 .. 1.
 * alpha (default 0.2): real
 * beta (default 0.5): real */
RUNG_API rung_value rung_hard_sigmoid(rung_graph *graph, rung_value x, double alpha, double beta);

/* x + bias below -lambd, x - bias above lambd, else 0, for NaN too.
 * lambd (default 0.5): real
 * bias (default 0.0): real */
RUNG_API rung_value rung_shrink(rung_graph *graph, rung_value x, double lambd, double bias);

/* every bit inverted. */
RUNG_API rung_value rung_bitnot(rung_graph *graph, rung_value x);

/* true where x is false. */
RUNG_API rung_value rung_not(rung_graph *graph, rung_value x);

/* true where x is NaN. */
RUNG_API rung_value rung_isnan(rung_graph *graph, rung_value x);

/* true where x is infinite, of either sign. */
RUNG_API rung_value rung_isinf(rung_graph *graph, rung_value x);

/* a + b. */
RUNG_API rung_value rung_add(rung_graph *graph, rung_value a, rung_value b);

/* a - b. */
RUNG_API rung_value rung_sub(rung_graph *graph, rung_value a, rung_value b);

/* a b. */
RUNG_API rung_value rung_mul(rung_graph *graph, rung_value a, rung_value b);

/* a / b; integers round towards 0. */
RUNG_API rung_value rung_div(rung_graph *graph, rung_value a, rung_value b);

/* a to the b; integers: a negative b gives the whole part. */
RUNG_API rung_value rung_pow(rung_graph *graph, rung_value a, rung_value b);

/* rest of the division that rounds down: has the sign of b. */
RUNG_API rung_value rung_mod(rung_graph *graph, rung_value a, rung_value b);

/* rest of the division that rounds towards 0: has the sign of a. */
RUNG_API rung_value rung_fmod(rung_graph *graph, rung_value a, rung_value b);

/* the smaller; NaN if either is. */
RUNG_API rung_value rung_min(rung_graph *graph, rung_value a, rung_value b);

/* the larger; NaN if either is. */
RUNG_API rung_value rung_max(rung_graph *graph, rung_value a, rung_value b);

/* angle of the point with height a and width b. */
RUNG_API rung_value rung_atan2(rung_graph *graph, rung_value a, rung_value b);

/* a, a b below 0. */
RUNG_API rung_value rung_prelu(rung_graph *graph, rung_value a, rung_value b);

/* true where both are. */
RUNG_API rung_value rung_and(rung_graph *graph, rung_value a, rung_value b);

/* true where one is. */
RUNG_API rung_value rung_or(rung_graph *graph, rung_value a, rung_value b);

/* true where exactly one is. */
RUNG_API rung_value rung_xor(rung_graph *graph, rung_value a, rung_value b);

/* bits set in both. */
RUNG_API rung_value rung_bitand(rung_graph *graph, rung_value a, rung_value b);

/* bits set in one. */
RUNG_API rung_value rung_bitor(rung_graph *graph, rung_value a, rung_value b);

/* bits set in exactly one. */
RUNG_API rung_value rung_bitxor(rung_graph *graph, rung_value a, rung_value b);

/* a times 2 to the b, high bits dropped. */
RUNG_API rung_value rung_shift_left(rung_graph *graph, rung_value a, rung_value b);

/* a divided by 2 to the b, rounded down. */
RUNG_API rung_value rung_shift_right(rung_graph *graph, rung_value a, rung_value b);

/* a == b. */
RUNG_API rung_value rung_equal(rung_graph *graph, rung_value a, rung_value b);

/* a != b; true where either is NaN. */
RUNG_API rung_value rung_not_equal(rung_graph *graph, rung_value a, rung_value b);

/* a < b. */
RUNG_API rung_value rung_less(rung_graph *graph, rung_value a, rung_value b);

/* a <= b. */
RUNG_API rung_value rung_less_equal(rung_graph *graph, rung_value a, rung_value b);

/* a > b. */
RUNG_API rung_value rung_greater(rung_graph *graph, rung_value a, rung_value b);

/* a >= b. */
RUNG_API rung_value rung_greater_equal(rung_graph *graph, rung_value a, rung_value b);

/* a limited to b .. c; c where b > c; NaN if any is. */
RUNG_API rung_value rung_clip(rung_graph *graph, rung_value a, rung_value b, rung_value c);

/* b where a is true, else c. */
RUNG_API rung_value rung_where(rung_graph *graph, rung_value condition, rung_value a, rung_value b);

/* clang-format on */
#ifdef __cplusplus
}
#endif
#endif
