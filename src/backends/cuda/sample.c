/* SPDX-License-Identifier: MIT
 * Rows that choose and draw: sample, random numbers. */
#include "backends/cuda/families.h"
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/reference.h"
#include "ops/sampling.h"

/* As kernels/sample.cu has them. A segment is a stretch of a row; a block has at least so many. */
enum { THREADS = 1024, SEGMENT = 128, SEGMENTS = 2048, SEGMENTS_OF_BLOCK = 64 };

typedef struct sample_params {
  uint64_t logits, parameters, out, best, counter;
  int64_t rows, count, length;
  int32_t segments, pad;
} sample_params;

/* One number for each segment; there are no more than these. */
static rung_dim sample_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  (void)match;
  const rung_dim above = rung_dims_add(dims, role[1], rung_dims_constant(dims, SEGMENT - 1)),
                 pieces = rung_dims_div(dims, above, rung_dims_constant(dims, SEGMENT)),
                 most = rung_dims_combine(dims, RUNG_DIM_MIN, pieces, rung_dims_constant(dims, SEGMENTS));
  return rung_dims_mul(dims, rung_dims_mul(dims, role[0], most), rung_dims_constant(dims, sizeof(uint64_t)));
}

static rung_status launch_sample(const rung_cuda_step *step) {
  const rung_operand *logits = &step->args->in[0];
  const int64_t rows = logits->extent[0], count = logits->extent[1];
  const int64_t length = count <= (int64_t)SEGMENT * SEGMENTS ? SEGMENT : (count + SEGMENTS - 1) / SEGMENTS;
  const sample_params p = {.logits = (uint64_t)(uintptr_t)logits->base,
                           .parameters = (uint64_t)(uintptr_t)step->args->in[1].base,
                           .out = (uint64_t)(uintptr_t)step->args->out[0].base,
                           .best = (uint64_t)(uintptr_t)step->args->scratch,
                           .counter = step->counters,
                           .rows = rows,
                           .count = count,
                           .length = length,
                           .segments = (int32_t)((count + length - 1) / length)};
  int64_t blocks = rung_cuda_blocks(p.segments, SEGMENTS_OF_BLOCK, rows ? step->device->processors / rows : 1);
  if (blocks < 1 || rows > RUNG_CUDA_COUNTERS) blocks = 1;
  return rung_cuda_emit(step, 0, blocks, rows < 65535 ? rows : 65535, 1, THREADS, 0, &p, sizeof p);
}

/* ---- random numbers */

typedef struct random_params {
  uint64_t out;
  int64_t count;
  uint64_t key, counter;
  double a, b;
} random_params;

/* The counter moves on as the reference says. */
static rung_status draw(const rung_cuda_step *step, int64_t seed, double a, double b) {
  uint64_t *random = step->args->random;
  const random_params p = {.out = (uint64_t)(uintptr_t)step->args->out[0].base,
                           .count = rung_operand_count(&step->args->out[0]),
                           .key = random[0] ^ (uint64_t)seed,
                           .counter = random[1],
                           .a = a,
                           .b = b};
  const int64_t blocks = (p.count + 3) / 4;
  random[1] += (uint64_t)blocks;
  return rung_cuda_emit(step, 0, rung_cuda_blocks(blocks, 256, 65536), 1, 1, 256, 0, &p, sizeof p);
}
static rung_status launch_uniform(const rung_cuda_step *step) {
  const rung_random_attrs *attrs = step->args->attrs;
  return draw(step, attrs->seed, attrs->low, attrs->high);
}
static rung_status launch_normal(const rung_cuda_step *step) {
  const rung_random_normal_attrs *attrs = step->args->attrs;
  return draw(step, attrs->seed, attrs->mean, attrs->deviation);
}

/* ---- rows */

#define RANDOM(op_, launch_)                                      \
  {                                                               \
    .row = {.name = #op_ "_blocks",                               \
            .op = &rung_op_##op_,                                 \
            .out_type = {RUNG_TYPE_F32},                          \
            .n_out_type = 1,                                      \
            .in_strides = RUNG_STRIDES_DENSE,                     \
            .out_strides = RUNG_STRIDES_DENSE,                    \
            .guard_role = -1},                                    \
    .unit = "random", .function = {#op_, NULL}, .launch = launch_ \
  }

static const rung_cuda_kernel rows[] = {{.row = {.name = "sample_rows",
                                                 .op = &rung_op_sample,
                                                 .in_type = {RUNG_TYPE_F32, RUNG_TYPE_F64},
                                                 .n_in_type = 2,
                                                 .out_type = {RUNG_TYPE_I32},
                                                 .n_out_type = 1,
                                                 .in_strides = RUNG_STRIDES_DENSE,
                                                 .out_strides = RUNG_STRIDES_DENSE,
                                                 .guard_role = -1,
                                                 .scratch = sample_scratch},
                                         .unit = "sample",
                                         .function = {"sample", NULL},
                                         .launch = launch_sample},
                                        RANDOM(random_uniform, launch_uniform),
                                        RANDOM(random_normal, launch_normal)};
const rung_cuda_family rung_cuda_family_sample = {"sample", rows, RUNG_COUNT(rows)};
