/* SPDX-License-Identifier: MIT
 * The builders of rung/ops.h. Printed by tools/gen_ops from the table of ops; not edited by hand. */
/* clang-format off */
#include <rung/ops.h>
#include <string.h>

#include "ops/build_attrs.h"
#include "ops/op_table.h"

rung_value rung_matmul(rung_graph *graph, rung_value a, rung_value b, bool transpose_b, rung_type type) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_matmul);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  rung_builder_bool(&builder, 0, transpose_b);
  rung_builder_type(&builder, 1, type);
  return rung_builder_end(&builder);
}

void rung_grouped_matmul(rung_graph *graph, rung_value a, rung_value b, int count, const int64_t *sizes,
    int64_t interleave, rung_type type, uint32_t results, rung_value *out_results) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_grouped_matmul);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  rung_builder_i64s(&builder, 0, count, sizes);
  rung_builder_i64(&builder, 1, interleave);
  rung_builder_type(&builder, 2, type);
  rung_builder_end_all(&builder, results, out_results);
}

rung_value rung_quantize_rows(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_quantize_rows);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_rope_options rung_rope_options_default(void) {
  rung_rope_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.dims = 0;
  options.base = 10000;
  options.scale = 1;
  options.magnitude = 1;
  options.mode = RUNG_ROPE_MODE_HALF;
  return options;
}

rung_value rung_rope(rung_graph *graph, rung_value x, rung_value positions, rung_value factors,
    const rung_rope_options *options) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_rope);
  rung_rope_options o = rung_rope_options_default();
  if (options && rung_builder_options(&builder, options->size))
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  rung_builder_in(&builder, x);
  rung_builder_in(&builder, positions);
  rung_builder_optional(&builder, factors);
  rung_builder_i64(&builder, 0, o.dims);
  rung_builder_f64(&builder, 1, o.base);
  rung_builder_f64(&builder, 2, o.scale);
  rung_builder_f64(&builder, 3, o.magnitude);
  rung_builder_enum(&builder, 4, o.mode);
  return rung_builder_end(&builder);
}

rung_value rung_positions(rung_graph *graph, rung_value offsets, rung_value past, rung_dim rows) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_positions);
  rung_builder_in(&builder, offsets);
  rung_builder_in(&builder, past);
  rung_builder_dim(&builder, 0, rows);
  return rung_builder_end(&builder);
}

rung_value rung_append(rung_graph *graph, rung_value state, rung_value k, rung_value v, rung_value offsets,
    rung_value slot, rung_value past) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_append);
  rung_builder_in(&builder, state);
  rung_builder_in(&builder, k);
  rung_builder_in(&builder, v);
  rung_builder_in(&builder, offsets);
  rung_builder_in(&builder, slot);
  rung_builder_in(&builder, past);
  return rung_builder_end(&builder);
}

rung_value rung_append_dense(rung_graph *graph, rung_value state, rung_value x, rung_value position) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_append_dense);
  rung_builder_in(&builder, state);
  rung_builder_in(&builder, x);
  rung_builder_in(&builder, position);
  return rung_builder_end(&builder);
}

rung_value rung_attention_kv(rung_graph *graph, rung_value q, rung_value state, rung_value offsets, rung_value slot,
    rung_value past, double scale, double soft_cap, int64_t window) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_attention_kv);
  rung_builder_in(&builder, q);
  rung_builder_in(&builder, state);
  rung_builder_in(&builder, offsets);
  rung_builder_in(&builder, slot);
  rung_builder_in(&builder, past);
  rung_builder_f64(&builder, 0, scale);
  rung_builder_f64(&builder, 1, soft_cap);
  rung_builder_i64(&builder, 2, window);
  return rung_builder_end(&builder);
}

rung_value rung_gather(rung_graph *graph, rung_value x, rung_value indices, int64_t axis) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_gather);
  rung_builder_in(&builder, x);
  rung_builder_in(&builder, indices);
  rung_builder_i64(&builder, 0, axis);
  return rung_builder_end(&builder);
}

rung_value rung_gather_elements(rung_graph *graph, rung_value x, rung_value indices, int64_t axis) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_gather_elements);
  rung_builder_in(&builder, x);
  rung_builder_in(&builder, indices);
  rung_builder_i64(&builder, 0, axis);
  return rung_builder_end(&builder);
}

rung_value rung_gather_nd(rung_graph *graph, rung_value x, rung_value indices, int64_t batch_dims) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_gather_nd);
  rung_builder_in(&builder, x);
  rung_builder_in(&builder, indices);
  rung_builder_i64(&builder, 0, batch_dims);
  return rung_builder_end(&builder);
}

rung_value rung_scatter_elements(rung_graph *graph, rung_value x, rung_value indices, rung_value updates,
    int64_t axis, int32_t mode) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_scatter_elements);
  rung_builder_in(&builder, x);
  rung_builder_in(&builder, indices);
  rung_builder_in(&builder, updates);
  rung_builder_i64(&builder, 0, axis);
  rung_builder_enum(&builder, 1, mode);
  return rung_builder_end(&builder);
}

rung_value rung_scatter_nd(rung_graph *graph, rung_value x, rung_value indices, rung_value updates, int32_t mode) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_scatter_nd);
  rung_builder_in(&builder, x);
  rung_builder_in(&builder, indices);
  rung_builder_in(&builder, updates);
  rung_builder_enum(&builder, 0, mode);
  return rung_builder_end(&builder);
}

rung_value rung_reshape(rung_graph *graph, rung_value x, int count, const rung_dim *shape) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reshape);
  rung_builder_in(&builder, x);
  rung_builder_dims(&builder, 0, count, shape);
  return rung_builder_end(&builder);
}

rung_value rung_expand(rung_graph *graph, rung_value x, int count, const rung_dim *shape) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_expand);
  rung_builder_in(&builder, x);
  rung_builder_dims(&builder, 0, count, shape);
  return rung_builder_end(&builder);
}

rung_value rung_transpose(rung_graph *graph, rung_value x, int count, const int64_t *permutation) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_transpose);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, count, permutation);
  return rung_builder_end(&builder);
}

rung_value rung_slice(rung_graph *graph, rung_value x, int count, const rung_dim *start, const rung_dim *length,
    const int64_t *step) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_slice);
  rung_builder_in(&builder, x);
  rung_builder_dims(&builder, 0, count, start);
  rung_builder_dims(&builder, 1, count, length);
  rung_builder_i64s(&builder, 2, count, step);
  return rung_builder_end(&builder);
}

rung_value rung_concat(rung_graph *graph, const rung_value *x, uint32_t x_count, int64_t axis) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_concat);
  rung_builder_many(&builder, x, x_count);
  rung_builder_i64(&builder, 0, axis);
  return rung_builder_end(&builder);
}

rung_pad_options rung_pad_options_default(void) {
  rung_pad_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.mode = RUNG_PAD_MODE_CONSTANT;
  options.value = 0;
  return options;
}

rung_value rung_pad(rung_graph *graph, rung_value x, int count, const rung_dim *before, const rung_dim *after,
    const rung_pad_options *options) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_pad);
  rung_pad_options o = rung_pad_options_default();
  if (options && rung_builder_options(&builder, options->size))
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  rung_builder_in(&builder, x);
  rung_builder_dims(&builder, 0, count, before);
  rung_builder_dims(&builder, 1, count, after);
  rung_builder_enum(&builder, 2, o.mode);
  rung_builder_f64(&builder, 3, o.value);
  return rung_builder_end(&builder);
}

rung_value rung_cast(rung_graph *graph, rung_value x, rung_type type) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_cast);
  rung_builder_in(&builder, x);
  rung_builder_type(&builder, 0, type);
  return rung_builder_end(&builder);
}

rung_value rung_iota(rung_graph *graph, int count, const rung_dim *shape, int64_t axis, rung_type type) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_iota);
  rung_builder_dims(&builder, 0, count, shape);
  rung_builder_i64(&builder, 1, axis);
  rung_builder_type(&builder, 2, type);
  return rung_builder_end(&builder);
}

rung_value rung_assign(rung_graph *graph, rung_value state, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_assign);
  rung_builder_in(&builder, state);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_random_uniform_options rung_random_uniform_options_default(void) {
  rung_random_uniform_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.low = 0;
  options.high = 1;
  options.seed = 0;
  return options;
}

rung_value rung_random_uniform(rung_graph *graph, int count, const rung_dim *shape,
    const rung_random_uniform_options *options) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_random_uniform);
  rung_random_uniform_options o = rung_random_uniform_options_default();
  if (options && rung_builder_options(&builder, options->size))
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  rung_builder_dims(&builder, 0, count, shape);
  rung_builder_f64(&builder, 1, o.low);
  rung_builder_f64(&builder, 2, o.high);
  rung_builder_i64(&builder, 3, o.seed);
  return rung_builder_end(&builder);
}

rung_random_normal_options rung_random_normal_options_default(void) {
  rung_random_normal_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.mean = 0;
  options.deviation = 1;
  options.seed = 0;
  return options;
}

rung_value rung_random_normal(rung_graph *graph, int count, const rung_dim *shape,
    const rung_random_normal_options *options) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_random_normal);
  rung_random_normal_options o = rung_random_normal_options_default();
  if (options && rung_builder_options(&builder, options->size))
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  rung_builder_dims(&builder, 0, count, shape);
  rung_builder_f64(&builder, 1, o.mean);
  rung_builder_f64(&builder, 2, o.deviation);
  rung_builder_i64(&builder, 3, o.seed);
  return rung_builder_end(&builder);
}

rung_conv_options rung_conv_options_default(void) {
  rung_conv_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.groups = 1;
  return options;
}

rung_value rung_conv(rung_graph *graph, rung_value x, rung_value w, rung_value bias, const rung_conv_options *options) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_conv);
  rung_conv_options o = rung_conv_options_default();
  if (options && rung_builder_options(&builder, options->size))
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  rung_builder_in(&builder, x);
  rung_builder_in(&builder, w);
  rung_builder_optional(&builder, bias);
  rung_builder_i64s(&builder, 0, o.stride_count, o.stride);
  rung_builder_i64s(&builder, 1, o.dilation_count, o.dilation);
  rung_builder_i64s(&builder, 2, o.pad_before_count, o.pad_before);
  rung_builder_i64s(&builder, 3, o.pad_after_count, o.pad_after);
  rung_builder_i64(&builder, 4, o.groups);
  return rung_builder_end(&builder);
}

rung_conv_transpose_options rung_conv_transpose_options_default(void) {
  rung_conv_transpose_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.groups = 1;
  return options;
}

rung_value rung_conv_transpose(rung_graph *graph, rung_value x, rung_value w, rung_value bias,
    const rung_conv_transpose_options *options) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_conv_transpose);
  rung_conv_transpose_options o = rung_conv_transpose_options_default();
  if (options && rung_builder_options(&builder, options->size))
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  rung_builder_in(&builder, x);
  rung_builder_in(&builder, w);
  rung_builder_optional(&builder, bias);
  rung_builder_i64s(&builder, 0, o.stride_count, o.stride);
  rung_builder_i64s(&builder, 1, o.dilation_count, o.dilation);
  rung_builder_i64s(&builder, 2, o.pad_before_count, o.pad_before);
  rung_builder_i64s(&builder, 3, o.pad_after_count, o.pad_after);
  rung_builder_i64(&builder, 4, o.groups);
  rung_builder_dims(&builder, 5, o.output_count, o.output);
  return rung_builder_end(&builder);
}

rung_max_pool_options rung_max_pool_options_default(void) {
  rung_max_pool_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.ceil_ = false;
  options.count_pad = false;
  return options;
}

rung_value rung_max_pool(rung_graph *graph, rung_value x, const rung_max_pool_options *options) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_max_pool);
  rung_max_pool_options o = rung_max_pool_options_default();
  if (options && rung_builder_options(&builder, options->size))
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, o.kernel_count, o.kernel);
  rung_builder_i64s(&builder, 1, o.stride_count, o.stride);
  rung_builder_i64s(&builder, 2, o.dilation_count, o.dilation);
  rung_builder_i64s(&builder, 3, o.pad_before_count, o.pad_before);
  rung_builder_i64s(&builder, 4, o.pad_after_count, o.pad_after);
  rung_builder_bool(&builder, 5, o.ceil_);
  rung_builder_bool(&builder, 6, o.count_pad);
  return rung_builder_end(&builder);
}

rung_average_pool_options rung_average_pool_options_default(void) {
  rung_average_pool_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.ceil_ = false;
  options.count_pad = false;
  return options;
}

rung_value rung_average_pool(rung_graph *graph, rung_value x, const rung_average_pool_options *options) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_average_pool);
  rung_average_pool_options o = rung_average_pool_options_default();
  if (options && rung_builder_options(&builder, options->size))
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, o.kernel_count, o.kernel);
  rung_builder_i64s(&builder, 1, o.stride_count, o.stride);
  rung_builder_i64s(&builder, 2, o.dilation_count, o.dilation);
  rung_builder_i64s(&builder, 3, o.pad_before_count, o.pad_before);
  rung_builder_i64s(&builder, 4, o.pad_after_count, o.pad_after);
  rung_builder_bool(&builder, 5, o.ceil_);
  rung_builder_bool(&builder, 6, o.count_pad);
  return rung_builder_end(&builder);
}

rung_value rung_reduce_sum(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reduce_sum);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, axes_count, axes);
  rung_builder_bool(&builder, 1, keep);
  return rung_builder_end(&builder);
}

rung_value rung_reduce_mean(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reduce_mean);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, axes_count, axes);
  rung_builder_bool(&builder, 1, keep);
  return rung_builder_end(&builder);
}

rung_value rung_reduce_prod(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reduce_prod);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, axes_count, axes);
  rung_builder_bool(&builder, 1, keep);
  return rung_builder_end(&builder);
}

rung_value rung_reduce_max(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reduce_max);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, axes_count, axes);
  rung_builder_bool(&builder, 1, keep);
  return rung_builder_end(&builder);
}

rung_value rung_reduce_min(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reduce_min);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, axes_count, axes);
  rung_builder_bool(&builder, 1, keep);
  return rung_builder_end(&builder);
}

rung_value rung_reduce_l1(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reduce_l1);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, axes_count, axes);
  rung_builder_bool(&builder, 1, keep);
  return rung_builder_end(&builder);
}

rung_value rung_reduce_l2(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reduce_l2);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, axes_count, axes);
  rung_builder_bool(&builder, 1, keep);
  return rung_builder_end(&builder);
}

rung_value rung_reduce_sum_square(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reduce_sum_square);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, axes_count, axes);
  rung_builder_bool(&builder, 1, keep);
  return rung_builder_end(&builder);
}

rung_value rung_reduce_log_sum(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reduce_log_sum);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, axes_count, axes);
  rung_builder_bool(&builder, 1, keep);
  return rung_builder_end(&builder);
}

rung_value rung_reduce_log_sum_exp(rung_graph *graph, rung_value x, int axes_count, const int64_t *axes, bool keep) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reduce_log_sum_exp);
  rung_builder_in(&builder, x);
  rung_builder_i64s(&builder, 0, axes_count, axes);
  rung_builder_bool(&builder, 1, keep);
  return rung_builder_end(&builder);
}

rung_value rung_argmax(rung_graph *graph, rung_value x, int64_t axis, bool keep, bool last) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_argmax);
  rung_builder_in(&builder, x);
  rung_builder_i64(&builder, 0, axis);
  rung_builder_bool(&builder, 1, keep);
  rung_builder_bool(&builder, 2, last);
  return rung_builder_end(&builder);
}

rung_value rung_argmin(rung_graph *graph, rung_value x, int64_t axis, bool keep, bool last) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_argmin);
  rung_builder_in(&builder, x);
  rung_builder_i64(&builder, 0, axis);
  rung_builder_bool(&builder, 1, keep);
  rung_builder_bool(&builder, 2, last);
  return rung_builder_end(&builder);
}

rung_value rung_softmax(rung_graph *graph, rung_value x, int64_t axis) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_softmax);
  rung_builder_in(&builder, x);
  rung_builder_i64(&builder, 0, axis);
  return rung_builder_end(&builder);
}

rung_value rung_log_softmax(rung_graph *graph, rung_value x, int64_t axis) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_log_softmax);
  rung_builder_in(&builder, x);
  rung_builder_i64(&builder, 0, axis);
  return rung_builder_end(&builder);
}

rung_value rung_rms_norm(rung_graph *graph, rung_value x, rung_value weight, rung_value bias, double epsilon) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_rms_norm);
  rung_builder_in(&builder, x);
  rung_builder_optional(&builder, weight);
  rung_builder_optional(&builder, bias);
  rung_builder_f64(&builder, 0, epsilon);
  return rung_builder_end(&builder);
}

rung_value rung_layer_norm(rung_graph *graph, rung_value x, rung_value weight, rung_value bias, double epsilon) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_layer_norm);
  rung_builder_in(&builder, x);
  rung_builder_optional(&builder, weight);
  rung_builder_optional(&builder, bias);
  rung_builder_f64(&builder, 0, epsilon);
  return rung_builder_end(&builder);
}

rung_value rung_cumsum(rung_graph *graph, rung_value x, int64_t axis, bool exclusive, bool reverse) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_cumsum);
  rung_builder_in(&builder, x);
  rung_builder_i64(&builder, 0, axis);
  rung_builder_bool(&builder, 1, exclusive);
  rung_builder_bool(&builder, 2, reverse);
  return rung_builder_end(&builder);
}

rung_top_k_options rung_top_k_options_default(void) {
  rung_top_k_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.axis = -1;
  options.largest = true;
  options.sorted = true;
  return options;
}

void rung_top_k(rung_graph *graph, rung_value x, rung_dim k, const rung_top_k_options *options,
    rung_value *out_results) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_top_k);
  rung_top_k_options o = rung_top_k_options_default();
  if (options && rung_builder_options(&builder, options->size))
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  rung_builder_in(&builder, x);
  rung_builder_dim(&builder, 0, k);
  rung_builder_i64(&builder, 1, o.axis);
  rung_builder_bool(&builder, 2, o.largest);
  rung_builder_bool(&builder, 3, o.sorted);
  rung_builder_end_all(&builder, 2, out_results);
}

rung_value rung_bind_symbol(rung_graph *graph, rung_value value, const char *symbol, rung_dim bound) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_bind_symbol);
  rung_builder_in(&builder, value);
  rung_builder_text(&builder, 0, symbol);
  rung_builder_dim(&builder, 1, bound);
  return rung_builder_end(&builder);
}

rung_value rung_count_nonzero(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_count_nonzero);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_nonzero(rung_graph *graph, rung_value x, rung_dim count_) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_nonzero);
  rung_builder_in(&builder, x);
  rung_builder_dim(&builder, 0, count_);
  return rung_builder_end(&builder);
}

void rung_if(rung_graph *graph, rung_value condition, const rung_value *captures, uint32_t captures_count,
    rung_graph *body_0, rung_graph *body_1, uint32_t results, rung_value *out_results) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_if);
  rung_builder_in(&builder, condition);
  rung_builder_many(&builder, captures, captures_count);
  rung_builder_body(&builder, body_0);
  rung_builder_body(&builder, body_1);
  rung_builder_end_all(&builder, results, out_results);
}

void rung_loop(rung_graph *graph, rung_value trip, rung_value condition,
    const rung_value *values, uint32_t values_count, rung_graph *body, int64_t carried, const char *symbol,
    rung_dim trip_, uint32_t results, rung_value *out_results) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_loop);
  rung_builder_in(&builder, trip);
  rung_builder_in(&builder, condition);
  rung_builder_many(&builder, values, values_count);
  rung_builder_body(&builder, body);
  rung_builder_i64(&builder, 0, carried);
  rung_builder_text(&builder, 1, symbol);
  rung_builder_dim(&builder, 2, trip_);
  rung_builder_end_all(&builder, results, out_results);
}

rung_attention_options rung_attention_options_default(void) {
  rung_attention_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.scale = 0;
  options.soft_cap = 0;
  options.window = 0;
  options.causal = false;
  return options;
}

rung_value rung_attention(rung_graph *graph, rung_value q, rung_value k, rung_value v, rung_value mask,
    const rung_attention_options *options) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_attention);
  rung_attention_options o = rung_attention_options_default();
  if (options && rung_builder_options(&builder, options->size))
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  rung_builder_in(&builder, q);
  rung_builder_in(&builder, k);
  rung_builder_in(&builder, v);
  rung_builder_optional(&builder, mask);
  rung_builder_f64(&builder, 0, o.scale);
  rung_builder_f64(&builder, 1, o.soft_cap);
  rung_builder_i64(&builder, 2, o.window);
  rung_builder_bool(&builder, 3, o.causal);
  return rung_builder_end(&builder);
}

rung_value rung_abs(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_abs);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_neg(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_neg);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_sign(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_sign);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_ceil(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_ceil);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_floor(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_floor);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_round(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_round);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_trunc(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_trunc);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_sqrt(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_sqrt);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_rsqrt(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_rsqrt);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_reciprocal(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_reciprocal);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_exp(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_exp);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_expm1(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_expm1);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_ln(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_log);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_log1p(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_log1p);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_sin(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_sin);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_cos(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_cos);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_tan(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_tan);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_asin(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_asin);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_acos(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_acos);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_atan(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_atan);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_sinh(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_sinh);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_cosh(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_cosh);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_tanh(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_tanh);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_asinh(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_asinh);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_acosh(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_acosh);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_atanh(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_atanh);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_erf(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_erf);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_relu(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_relu);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_sigmoid(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_sigmoid);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_softplus(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_softplus);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_softsign(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_softsign);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_silu(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_silu);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_gelu(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_gelu);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_gelu_tanh(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_gelu_tanh);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_mish(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_mish);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_hard_swish(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_hard_swish);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_leaky_relu(rung_graph *graph, rung_value x, double alpha) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_leaky_relu);
  rung_builder_in(&builder, x);
  rung_builder_f64(&builder, 0, alpha);
  return rung_builder_end(&builder);
}

rung_value rung_elu(rung_graph *graph, rung_value x, double alpha) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_elu);
  rung_builder_in(&builder, x);
  rung_builder_f64(&builder, 0, alpha);
  return rung_builder_end(&builder);
}

rung_value rung_celu(rung_graph *graph, rung_value x, double alpha) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_celu);
  rung_builder_in(&builder, x);
  rung_builder_f64(&builder, 0, alpha);
  return rung_builder_end(&builder);
}

rung_value rung_thresholded_relu(rung_graph *graph, rung_value x, double alpha) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_thresholded_relu);
  rung_builder_in(&builder, x);
  rung_builder_f64(&builder, 0, alpha);
  return rung_builder_end(&builder);
}

rung_value rung_swish(rung_graph *graph, rung_value x, double alpha) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_swish);
  rung_builder_in(&builder, x);
  rung_builder_f64(&builder, 0, alpha);
  return rung_builder_end(&builder);
}

rung_value rung_selu(rung_graph *graph, rung_value x, double alpha, double gamma) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_selu);
  rung_builder_in(&builder, x);
  rung_builder_f64(&builder, 0, alpha);
  rung_builder_f64(&builder, 1, gamma);
  return rung_builder_end(&builder);
}

rung_value rung_hard_sigmoid(rung_graph *graph, rung_value x, double alpha, double beta) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_hard_sigmoid);
  rung_builder_in(&builder, x);
  rung_builder_f64(&builder, 0, alpha);
  rung_builder_f64(&builder, 1, beta);
  return rung_builder_end(&builder);
}

rung_value rung_shrink(rung_graph *graph, rung_value x, double lambd, double bias) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_shrink);
  rung_builder_in(&builder, x);
  rung_builder_f64(&builder, 0, lambd);
  rung_builder_f64(&builder, 1, bias);
  return rung_builder_end(&builder);
}

rung_value rung_bitnot(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_bitnot);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_not(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_not);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_isnan(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_isnan);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_isinf(rung_graph *graph, rung_value x) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_isinf);
  rung_builder_in(&builder, x);
  return rung_builder_end(&builder);
}

rung_value rung_add(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_add);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_sub(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_sub);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_mul(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_mul);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_div(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_div);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_pow(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_pow);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_mod(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_mod);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_fmod(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_fmod);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_min(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_min);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_max(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_max);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_atan2(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_atan2);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_prelu(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_prelu);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_and(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_and);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_or(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_or);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_xor(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_xor);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_bitand(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_bitand);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_bitor(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_bitor);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_bitxor(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_bitxor);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_shift_left(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_shift_left);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_shift_right(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_shift_right);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_equal(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_equal);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_not_equal(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_not_equal);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_less(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_less);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_less_equal(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_less_equal);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_greater(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_greater);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_greater_equal(rung_graph *graph, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_greater_equal);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}

rung_value rung_clip(rung_graph *graph, rung_value a, rung_value b, rung_value c) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_clip);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  rung_builder_in(&builder, c);
  return rung_builder_end(&builder);
}

rung_value rung_where(rung_graph *graph, rung_value condition, rung_value a, rung_value b) {
  rung_builder builder;
  rung_builder_begin(&builder, graph, &rung_op_where);
  rung_builder_in(&builder, condition);
  rung_builder_in(&builder, a);
  rung_builder_in(&builder, b);
  return rung_builder_end(&builder);
}
