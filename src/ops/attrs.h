/* SPDX-License-Identifier: MIT
 * The attribute struct of every op that has attributes. Fields stand in the order of the op's attribute list. */
#ifndef RUNG_OPS_ATTRS_H
#define RUNG_OPS_ATTRS_H

#include "ir/op.h"

/* ---- declarations. The result type is given with the node. */
typedef struct rung_input_attrs {
  const char *name;
} rung_input_attrs;
typedef struct rung_weight_attrs {
  const char *name;
} rung_weight_attrs;
typedef struct rung_constant_attrs {
  rung_blob data;
} rung_constant_attrs;
typedef struct rung_state_attrs {
  const char *name;
  int64_t window;
} rung_state_attrs;

/* ---- matmul(a, b) -> y. a[..., M, K] times b[..., K, N], or b[..., N, K] with transpose_b; leading axes broadcast as
 * in numpy. Result f32 unless `type` says otherwise; a is float or a8 (then b must be a block type or i8), b float or
 * block. Roles M (all leading axes of a times rows when b is a matrix), N, K. */
typedef struct rung_matmul_attrs {
  bool transpose_b;
  rung_type type;
} rung_matmul_attrs;
/* ---- grouped_matmul(a, b) -> y0, y1, ...: one product with b[sum of sizes, K] (transposed), results are its column
 * ranges; flag COLUMNS. interleave 0: b's rows are the members one after another; p > 0: panels of p rows in turn (all
 * sizes equal). */
typedef struct rung_grouped_matmul_attrs {
  rung_i64_list sizes;
  int64_t interleave;
  rung_type type;
} rung_grouped_matmul_attrs;
/* ---- expert_matmul(a, b, index) -> y[rows, places, N]: a[rows, places or 1, K], b[experts, N, K] or [experts * N, K],
 * index[rows, places]: y[r, p] = a[r, p] times the transpose of expert index[r, p]. Roles M (rows), N, K, places.
 */
typedef struct rung_expert_matmul_attrs {
  int64_t experts;
  rung_type type;
} rung_expert_matmul_attrs;
/* ---- form(w0, w1, ...) -> w: what depends on weights alone, made once and kept. recipe "concat": rows one after
 * another; "interleave": panels of `panel` rows in turn; "body": the node's body computes it (then cast to `type`). */
typedef enum rung_form_recipe { RUNG_FORM_CONCAT, RUNG_FORM_INTERLEAVE, RUNG_FORM_BODY } rung_form_recipe;
/* layout: the target's layout id of the result, 0 for row-major (the result type carries it). */
typedef struct rung_form_attrs {
  int32_t recipe;
  int64_t panel;
  int64_t layout;
} rung_form_attrs;
/* ---- quantize_rows(x) -> a8: per row, blocks of 32 along the last axis (rung_a8). */

/* ---- norms over the last axis, f32 accumulation in the fixed reduction order.
 * rms_norm(x, weight): x / sqrt(mean(x^2) + epsilon) * weight.  layer_norm(x, weight, bias). weight optional (1
 * operand). */
typedef struct rung_norm_attrs {
  double epsilon;
} rung_norm_attrs;
/* ---- softmax(x), log_softmax(x). */
typedef struct rung_axis_attrs {
  int64_t axis;
} rung_axis_attrs;
/* ---- reductions: reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod, reduce_l1 ...: axes empty: all. */
typedef struct rung_reduce_attrs {
  rung_i64_list axes;
  bool keep;
} rung_reduce_attrs;
/* ---- argmax, argmin(x) -> i64. */
typedef struct rung_arg_attrs {
  int64_t axis;
  bool keep;
  bool last;
} rung_arg_attrs;
/* ---- top_k(x) -> values, indices i64; k an extent. */
typedef struct rung_top_k_attrs {
  rung_dim k;
  int64_t axis;
  bool largest;
  bool sorted;
} rung_top_k_attrs;
typedef struct rung_cumsum_attrs {
  int64_t axis;
  bool exclusive;
  bool reverse;
} rung_cumsum_attrs;

/* ---- movement */
typedef struct rung_reshape_attrs {
  rung_dim_list shape;
} rung_reshape_attrs;
typedef struct rung_expand_attrs {
  rung_dim_list shape;
} rung_expand_attrs;
typedef struct rung_transpose_attrs {
  rung_i64_list permutation;
} rung_transpose_attrs;
/* slice(x): per axis start, length and step as dimensions (start and length are resolved, not clamped; step constant).
 */
typedef struct rung_slice_attrs {
  rung_dim_list start;
  rung_dim_list length;
  rung_i64_list step;
} rung_slice_attrs;
typedef struct rung_concat_attrs {
  int64_t axis;
} rung_concat_attrs;
typedef enum rung_pad_mode { RUNG_PAD_CONSTANT, RUNG_PAD_REFLECT, RUNG_PAD_EDGE, RUNG_PAD_WRAP } rung_pad_mode;
typedef struct rung_pad_attrs {
  rung_dim_list before;
  rung_dim_list after;
  int32_t mode;
  double value;
} rung_pad_attrs;
/* gather(x, indices): along axis; negative indices count from the end; out of range is refused. */
typedef struct rung_gather_attrs {
  int64_t axis;
} rung_gather_attrs;
/* gather_elements(x, indices): rung_gather_attrs, as ONNX GatherElements. gather_nd(x, indices), as ONNX GatherND. */
typedef struct rung_gather_nd_attrs {
  int64_t batch_dims;
} rung_gather_nd_attrs;
/* scatter_elements(x, indices, updates): element by element along axis, as ONNX ScatterElements; of indices that meet,
 * the later one (row-major) wins. scatter_nd(x, indices, updates), as ONNX ScatterND. */
typedef enum rung_scatter_mode {
  RUNG_SCATTER_SET,
  RUNG_SCATTER_ADD,
  RUNG_SCATTER_MUL,
  RUNG_SCATTER_MIN,
  RUNG_SCATTER_MAX
} rung_scatter_mode;
typedef struct rung_scatter_attrs {
  int64_t axis;
  int32_t mode;
} rung_scatter_attrs;
typedef struct rung_scatter_nd_attrs {
  int32_t mode;
} rung_scatter_nd_attrs;
typedef struct rung_cast_attrs {
  rung_type type;
} rung_cast_attrs;

/* ---- ragged rows. offsets[n+1], slot[n], past[n] are i32 (design: ragged batches).
 * positions(offsets[, past]) -> i32[rows]: past[s] + row - offsets[s]. */
typedef struct rung_positions_attrs {
  rung_dim rows;
} rung_positions_attrs;
/* rope(x, positions[, factors]): x[rows, heads, dim]; rotates the first `dims` of each head by position *
 * base^(-2i/dims) * scale (divided by factors[i] where given). Pairs: (i, i + dims/2) with mode HALF (NeoX), (2i, 2i+1)
 * with ADJACENT. */
typedef enum rung_rope_mode { RUNG_ROPE_HALF, RUNG_ROPE_ADJACENT } rung_rope_mode;
typedef struct rung_rope_attrs {
  int64_t dims;
  double base;
  double scale;
  double magnitude;
  int32_t mode;
} rung_rope_attrs;
/* rotate(x, cosine, sine) -> y of x's type: the same turn by tables c and s [..., n] of x's element type, the leading axes
 * of each broadcast to x's. `table` says what one of the n numbers is for. pair: a pair (a, b) of channels becomes a c -
 * b s, b c + a s; channel: a c[a] - b s[a], b c[b] + a s[b]. So the first 2n or n channels turn, paired as in rope; what
 * is behind them stays. */
typedef enum rung_rotate_table { RUNG_ROTATE_PAIR, RUNG_ROTATE_CHANNEL } rung_rotate_table;
typedef struct rung_rotate_attrs {
  int32_t mode; /* rung_rope_mode */
  int32_t table;
} rung_rotate_attrs;
/* append(state, k, v, offsets, slot, past) -> state': k[rows, kv_heads, key_dim], v[rows, kv_heads, value_dim] go to
 * positions past[s] .. of slot[s]. EFFECT. Roles: rows.
 * append_dense(state[batch, capacity, row...], x[batch, n, row...], position[batch]) -> state'. */
/* attention_kv(q, state, offsets, slot, past) -> y[rows, heads, value_dim]; q[rows, heads, key_dim]. Causal: a row at
 * position p sees positions max(0, p - window + 1) .. p of its sequence (window 0: all). scale 0: 1/sqrt(key_dim).
 * soft_cap c > 0: c * tanh(score / c). Roles rows, keys, heads. */
typedef struct rung_attention_kv_attrs {
  double scale;
  double soft_cap;
  int64_t window;
  bool narrow; /* q, keys, values and weights may be rounded to bf16 before they are multiplied */
} rung_attention_kv_attrs;
/* attention(q, k, v[, mask]) -> y: [batch, heads, queries, dim] x [batch, kv_heads, keys, dim]; mask bool (true:
 * visible) or float (added), broadcast. causal: query i sees keys up to i + keys - queries. */
typedef struct rung_attention_attrs {
  double scale;
  double soft_cap;
  int64_t window;
  bool causal;
  bool narrow; /* attention_ragged: q, k, v and weights may be rounded to bf16 before they are multiplied */
  bool added;  /* a float mask hides nothing: a row of -inf gives NaN, as a softmax of sums does */
} rung_attention_attrs;
/* attention_ragged(q, k, v, offsets) -> y[rows, heads, value_dim]: q[rows, heads, dim], k[rows, kv_heads, dim], v[rows,
 * kv_heads, value_dim]; rung_attention_attrs. Every row sees rows of its own sequence: all, those at most window - 1
 * away, causal: none after its own. pool_ragged(x[rows, width], offsets) -> y[n, width]. */
typedef enum rung_pool_mode { RUNG_POOL_MEAN, RUNG_POOL_FIRST, RUNG_POOL_LAST, RUNG_POOL_MAX } rung_pool_mode;
typedef struct rung_pool_ragged_attrs {
  int32_t mode;
} rung_pool_ragged_attrs;

/* ---- convolution and pooling, channels first, as ONNX. */
typedef struct rung_conv_attrs {
  rung_i64_list stride;
  rung_i64_list dilation;
  rung_i64_list pad_before;
  rung_i64_list pad_after;
  int64_t groups;
} rung_conv_attrs;
typedef struct rung_conv_transpose_attrs {
  rung_i64_list stride;
  rung_i64_list dilation;
  rung_i64_list pad_before;
  rung_i64_list pad_after;
  int64_t groups;
  rung_dim_list output;
} rung_conv_transpose_attrs;
/* max_pool(x), average_pool(x); kernel empty: the whole of every spatial axis (global pooling). */
typedef struct rung_pool_attrs {
  rung_i64_list kernel;
  rung_i64_list stride;
  rung_i64_list dilation;
  rung_i64_list pad_before;
  rung_i64_list pad_after;
  bool ceil;
  bool count_pad;
} rung_pool_attrs;

/* ---- integers with a scale and a zero point, as ONNX. quantize_linear(x, scale[, zero]) -> saturated round(x / scale) +
 * zero; dequantize_linear(x, scale[, zero]) -> (x - zero) * scale. scale and zero: one number, one for each index along
 * `axis`, or one for each run of `block` along it (then of x's rank). dynamic_quantize(x) -> y u8, scale, zero.
 * matmul_integer(a, b[, a_zero[, b_zero]]), conv_integer(x, w[, x_zero[, w_zero]]) (rung_conv_attrs) -> i32, exact. */
typedef struct rung_quantize_attrs {
  int64_t axis;
  int64_t block;
  rung_type type;
} rung_quantize_attrs;

/* ---- resize(x[, scale f32[rank][, roi f32[2 rank]]]), as ONNX Resize: `output` are the result's extents; without scale
 * it is output / extent. */
typedef enum rung_resize_mode { RUNG_RESIZE_NEAREST, RUNG_RESIZE_LINEAR, RUNG_RESIZE_CUBIC } rung_resize_mode;
typedef enum rung_resize_coordinates {
  RUNG_RESIZE_HALF_PIXEL,
  RUNG_RESIZE_HALF_PIXEL_SYMMETRIC,
  RUNG_RESIZE_PYTORCH_HALF_PIXEL,
  RUNG_RESIZE_ALIGN_CORNERS,
  RUNG_RESIZE_ASYMMETRIC,
  RUNG_RESIZE_TF_HALF_PIXEL_FOR_NN,
  RUNG_RESIZE_TF_CROP_AND_RESIZE
} rung_resize_coordinates;
typedef enum rung_resize_round {
  RUNG_RESIZE_ROUND_PREFER_FLOOR,
  RUNG_RESIZE_ROUND_PREFER_CEIL,
  RUNG_RESIZE_FLOOR,
  RUNG_RESIZE_CEIL
} rung_resize_round;
typedef struct rung_resize_attrs {
  rung_dim_list output;
  int32_t mode;
  int32_t coordinates;
  int32_t round;
  double cubic;
  bool exclude_outside;
  bool antialias;
  double extrapolation;
} rung_resize_attrs;

/* ---- lstm(x, r, ..), gru(x, r, ..), rnn(x, r, ..): what is recurrent in ONNX LSTM, GRU and RNN. x[seq, batch,
 * directions, gates * hidden] is the input times W with the biases added, r[directions, gates * hidden, hidden]; gates in
 * ONNX's order. Further operands are there in this order where the attribute says so: bias (gru: the recurrent one of the
 * third gate, [directions, hidden]), lengths i32[batch], initial h0[directions, batch, hidden] (and c0), peepholes
 * [directions, 3 hidden]. Results y[seq, directions, batch, hidden], the last h and (lstm) c[directions, batch, hidden].
 * `activations`: words in order, for one direction or for all, as "leaky_relu:0.1"; empty: ONNX's. clip 0: none. */
typedef enum rung_direction { RUNG_FORWARD, RUNG_REVERSE, RUNG_BIDIRECTIONAL } rung_direction;
typedef struct rung_recurrent_attrs {
  int32_t direction;
  const char *activations;
  double clip;
  bool lengths;
  bool initial;
  bool peepholes;    /* lstm */
  bool input_forget; /* lstm */
  bool bias;         /* gru */
  bool linear;       /* gru: linear_before_reset */
  bool levels;       /* lstm: h meets r rounded as dynamic_quantize rounds it, each sequence for itself */
} rung_recurrent_attrs;
/* ---- non_max_suppression(boxes[batch, n, 4], scores[batch, classes, n], limit i64[], overlap f32[][, least f32[]]) ->
 * selected i64[batch * classes * n, 3], of which `count` rows are filled, the rest zeros. */
typedef struct rung_nms_attrs {
  bool centre;
} rung_nms_attrs;
/* ---- roi_align(x[batch, channels, h, w], rois[n, 4], batch[n]) -> [n, channels, height, width]; max_roi_pool(x,
 * rois[n, 5]). */
typedef struct rung_roi_attrs {
  int64_t height;
  int64_t width;
  double scale;
  int64_t sampling;
  bool largest;
  bool half_pixel;
} rung_roi_attrs;
/* ---- grid_sample(x[batch, channels, spatial...], grid[batch, places..., axes]). */
typedef enum rung_sample_mode { RUNG_SAMPLE_LINEAR, RUNG_SAMPLE_NEAREST, RUNG_SAMPLE_CUBIC } rung_sample_mode;
typedef enum rung_sample_padding { RUNG_SAMPLE_ZEROS, RUNG_SAMPLE_BORDER, RUNG_SAMPLE_REFLECTION } rung_sample_padding;
typedef struct rung_grid_sample_attrs {
  int32_t mode;
  int32_t padding;
  bool align_corners;
} rung_grid_sample_attrs;
/* ---- deform_conv(x, w, offset[, bias[, mask]]): conv over two axes whose kernel positions are shifted, as ONNX
 * DeformConv; mask without a bias: has_bias false. */
typedef struct rung_deform_attrs {
  rung_i64_list stride;
  rung_i64_list dilation;
  rung_i64_list pad_before;
  rung_i64_list pad_after;
  int64_t groups;
  int64_t offset_groups;
  bool bias;
} rung_deform_attrs;
/* ---- col2im(x[batch, channels * places of the kernel, columns]) -> [batch, channels, output...], as ONNX Col2Im. */
typedef struct rung_col2im_attrs {
  rung_dim_list output;
  rung_i64_list kernel;
  rung_i64_list stride;
  rung_i64_list dilation;
  rung_i64_list pad_before;
  rung_i64_list pad_after;
} rung_col2im_attrs;
/* ---- dft(x[..., n, ..., 1 or 2]) along an axis, the last axis being real and imaginary parts, as ONNX DFT. length none:
 * the axis's own. mel_weights() -> [length / 2 + 1, bins], as ONNX MelWeightMatrix. */
typedef struct rung_dft_attrs {
  int64_t axis;
  rung_dim length;
  bool inverse;
  bool onesided;
} rung_dft_attrs;
typedef struct rung_mel_attrs {
  int64_t bins;
  int64_t length;
  int64_t rate;
  double low;
  double high;
} rung_mel_attrs;
/* ---- unique(x) along an axis -> y (x's type and extents; `count` of its indices are filled), first, inverse, counts
 * (each i64[extent of the axis]; of first and counts, `count` are filled), count i64[]. What is not filled is 0. */
typedef struct rung_unique_attrs {
  int64_t axis;
  bool sorted;
} rung_unique_attrs;

/* ---- random_uniform, random_normal: f32 of a shape, from the context's generator (random.c says which numbers).
 * `seed` names a stream of its own. */
typedef struct rung_random_attrs {
  rung_dim_list shape;
  double low;
  double high;
  int64_t seed;
} rung_random_attrs;
typedef struct rung_random_normal_attrs {
  rung_dim_list shape;
  double mean;
  double deviation;
  int64_t seed;
} rung_random_normal_attrs;
/* ---- sizes found at run time. A symbol that a step binds is "made": it has a name and a bound.
 * bind_symbol(value i64[]) -> i64[]: from here on `symbol` is value (0 to its bound, else the run is refused); what
 * speaks of the symbol comes later in the graph. The result is the value. The only plain op that binds: whatever finds
 * a size gives an i64 scalar first (count_nonzero, a sum of durations, an element of a shape). count_nonzero(x) ->
 * i64[]. nonzero(x) -> i64[rank, count]: indices of the elements that are not 0, row-major; count is the symbol bound
 * to count_nonzero(x). rung_build_nonzero (control.h) hides the three. */
typedef struct rung_bind_symbol_attrs {
  const char *symbol;
  rung_dim bound;
} rung_bind_symbol_attrs;
typedef struct rung_count_attrs {
  rung_dim count;
} rung_count_attrs;
/* extent() -> i64[]: a dimension as a number. */
typedef struct rung_extent_attrs {
  rung_dim value;
} rung_extent_attrs;
/* ---- iota() -> 0, 1, 2 ... along an axis. */
typedef struct rung_iota_attrs {
  rung_dim_list shape;
  int64_t axis;
  rung_type type;
} rung_iota_attrs;
/* ---- if(condition bool, captures...): two bodies (then, else) whose inputs are the captures. Where the branches'
 * extents differ, the result has a made symbol, at most the larger of the two; it is bound when the branch has run.
 * loop(trip i64, condition bool, carried..., captures...): one body with inputs (iteration i64, condition bool,
 * carried..., captures...) and outputs (condition, carried..., scans...). Runs while the condition holds, at most trip
 * times. Results: the carried values after the last iteration, then the scans stacked along a new first axis.
 * `carried`: how many. Extents of carried values: where a body input has a made symbol that is not simply the operand's
 * and the output's extent, the loop binds it, before each iteration to the value's actual extent and behind the loop to
 * the last one; the result has it too. Number of iterations, the first extent of scans: `trip` with symbol "" (the loop
 * must run exactly so often), else a made symbol, called `symbol`, at most trip. */
typedef struct rung_loop_attrs {
  int64_t carried;
  const char *symbol;
  rung_dim trip;
} rung_loop_attrs;
enum { RUNG_LOOP_OPERANDS = 256 }; /* the most that a loop may have */
/* ---- assign(state, x) -> state'. fused(operands...): one body, whose meaning it has. */

#endif
