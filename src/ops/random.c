/* SPDX-License-Identifier: MIT
 * random_uniform, random_normal: numbers from the context's generator, Philox 4x32-10.
 *
 * The key is the context's seed exclusive-or the node's `seed`. Element i takes word i mod 4 of block counter + i / 4,
 * where counter is args->random[1] when the op starts; when it has run, the counter has moved on by the blocks taken,
 * ceil(n / 4). So nodes and runs follow one another without meeting, and no thread count changes a number. */
#include <math.h>

#include "base/philox.h"
#include "ops/attrs.h"
#include "ops/structured.h"

#define FIELD(type, field) .name = #field, .offset = offsetof(type, field)

static rung_status infer_shape(rung_infer *infer, const rung_dim_list *shape) {
  rung_infer_result(infer, 0, RUNG_TYPE_F32, shape->count, shape->dim);
  return RUNG_OK;
}

static void store(const rung_operand *y, const rung_walk *w, double value) { rung_store_f64(y, w->offset[0], value); }

/* ---- uniform: low + (high - low) u, u the upper 24 bits of the word times 2^-24, in f32 */

static const rung_attr uniform_attributes[] = {
    {FIELD(rung_random_attrs, shape), .kind = RUNG_ATTR_DIMS, .doc = "extents of the result"},
    {FIELD(rung_random_attrs, low), .kind = RUNG_ATTR_F64, .text_default = "0", .doc = "smallest value"},
    {FIELD(rung_random_attrs, high), .kind = RUNG_ATTR_F64, .text_default = "1",
     .doc = "values stay below, but for rounding"},
    {FIELD(rung_random_attrs, seed), .kind = RUNG_ATTR_I64, .text_default = "0",
     .doc = "stream: mixed into the context's seed"},
    {0}};

static rung_status infer_uniform(rung_infer *infer) {
  const rung_random_attrs *attrs = infer->attrs;
  if (!isfinite(attrs->low) || !isfinite(attrs->high) || attrs->high < attrs->low) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "low and high must be finite, low not above high");
  }
  return infer_shape(infer, &attrs->shape);
}

static rung_status uniform_reference(const rung_args *args) {
  const rung_random_attrs *attrs = args->attrs;
  const rung_operand *y = &args->out[0];
  const uint64_t key = args->random[0] ^ (uint64_t)attrs->seed, counter = args->random[1];
  uint64_t i = 0;
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w), i++) {
    uint32_t word[4];
    rung_philox(key, counter + i / 4, word);
    const double u = (double)rung_philox_float(word[i % 4]);
    store(y, &w, attrs->low + (attrs->high - attrs->low) * u);
  }
  args->random[1] += (i + 3) / 4;
  return RUNG_OK;
}

static const rung_test_case uniform_cases[] = {
    {"", "shape=[5,67]"}, {"", "shape=[3,0]"}, {"", "shape=[1000], low=-2, high=3, seed=7"}, {0}};

/* One product and one sum. */
const rung_op rung_op_random_uniform = {
    .name = "random_uniform",
    .doc = "numbers evenly spread over [low, high) from the context's generator",
    .operands = (const char *const[]){NULL},
    .results = 1,
    .flags = RUNG_OP_RANDOM,
    .attrs = uniform_attributes,
    .attrs_bytes = sizeof(rung_random_attrs),
    .infer = infer_uniform,
    .role_dims = rung_role_elements,
    .reference = uniform_reference,
    .no_gradient = "has no operands",
    .tests = uniform_cases,
    .tolerance = {.relative = 1e-6, .absolute = 1e-6},
};

/* ---- normal: Box and Muller (1958) on words 0 and 1, and on words 2 and 3, of a block */

static const rung_attr normal_attributes[] = {
    {FIELD(rung_random_normal_attrs, shape), .kind = RUNG_ATTR_DIMS, .doc = "extents of the result"},
    {FIELD(rung_random_normal_attrs, mean), .kind = RUNG_ATTR_F64, .text_default = "0", .doc = "mean"},
    {FIELD(rung_random_normal_attrs, deviation), .kind = RUNG_ATTR_F64, .text_default = "1",
     .doc = "standard deviation"},
    {FIELD(rung_random_normal_attrs, seed), .kind = RUNG_ATTR_I64, .text_default = "0",
     .doc = "stream: mixed into the context's seed"},
    {0}};
#undef FIELD

static rung_status infer_normal(rung_infer *infer) {
  const rung_random_normal_attrs *attrs = infer->attrs;
  if (!isfinite(attrs->mean) || !isfinite(attrs->deviation) || attrs->deviation < 0) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "mean and deviation must be finite, deviation not negative");
  }
  return infer_shape(infer, &attrs->shape);
}

/* 1 - u lies in (0, 1]: its logarithm is finite. The first of a pair takes the cosine, the second the sine. */
static double normal_at(const uint32_t word[4], uint64_t i) {
  const double two_pi = 6.28318530717958647692;
  const uint64_t pair = i / 2 * 2;
  const double radius = sqrt(-2 * log(1 - (double)rung_philox_float(word[pair])));
  const double angle = two_pi * (double)rung_philox_float(word[pair + 1]);
  return radius * (i % 2 ? sin(angle) : cos(angle));
}

static rung_status normal_reference(const rung_args *args) {
  const rung_random_normal_attrs *attrs = args->attrs;
  const rung_operand *y = &args->out[0];
  const uint64_t key = args->random[0] ^ (uint64_t)attrs->seed, counter = args->random[1];
  uint64_t i = 0;
  rung_walk w;
  for (rung_walk_begin(&w, y->rank, y->extent, 1, &y); w.live; rung_walk_next(&w), i++) {
    uint32_t word[4];
    rung_philox(key, counter + i / 4, word);
    store(y, &w, attrs->mean + attrs->deviation * normal_at(word, i % 4));
  }
  args->random[1] += (i + 3) / 4;
  return RUNG_OK;
}

static const rung_test_case normal_cases[] = {
    {"", "shape=[5,67]"}, {"", "shape=[0]"}, {"", "shape=[1000], mean=-2, deviation=3, seed=7"}, {0}};

/* Logarithm, sine and cosine of f32 each err by an ulp or two; the absolute part is for values near 0. */
const rung_op rung_op_random_normal = {
    .name = "random_normal",
    .doc = "normally distributed numbers from the context's generator",
    .operands = (const char *const[]){NULL},
    .results = 1,
    .flags = RUNG_OP_RANDOM,
    .attrs = normal_attributes,
    .attrs_bytes = sizeof(rung_random_normal_attrs),
    .infer = infer_normal,
    .role_dims = rung_role_elements,
    .reference = normal_reference,
    .no_gradient = "has no operands",
    .tests = normal_cases,
    .tolerance = {.relative = 2e-6, .absolute = 2e-6},
};
