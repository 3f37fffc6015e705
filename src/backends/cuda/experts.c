/* SPDX-License-Identifier: MIT
 * Rows for products with experts: few rows pair by pair, many in lots of one expert. */
#include <stdio.h>

#include "backends/cuda/families.h"
#include "backends/cuda/matmul.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

enum { MANY_ROWS = 32, MOST_EXPERTS = 4096, MOST_DEEP = 65535, ORDER_THREADS = 1024 };

static int64_t experts_of(const rung_args *args) { return ((const rung_expert_matmul_attrs *)args->attrs)->experts; }

/* ---- floats of any strides */

typedef struct any_params {
  uint64_t a, b, index, y, refused;
  int64_t pairs, places, n, k;
  int64_t a_row, a_place, a_k, b_expert, b_n, b_k, index_row, index_place, y_row, y_place, y_n;
  int32_t a_type, b_type, index_type, y_type, experts, pad;
} any_params;

static bool fits_any(const rung_match *match, char *why) {
  for (uint32_t i = 0; i < 2; i++)
    if (match->in[i]->type > RUNG_TYPE_F64 || match->in[i]->layout)
      return rung_cuda_unfit(why, "an operand is not of plain floats");
  if (((const rung_expert_matmul_attrs *)match->node->attrs)->experts > INT32_MAX)
    return rung_cuda_unfit(why, "many experts");
  return match->out[0].type <= RUNG_TYPE_F64 || rung_cuda_unfit(why, "the result is not of plain floats");
}

static rung_status launch_any(const rung_cuda_step *step) {
  const rung_args *args = step->args;
  const rung_operand *a = &args->in[0], *b = &args->in[1], *index = &args->in[2], *y = &args->out[0];
  const any_params p = {.a = rung_cuda_address(a),
                        .b = rung_cuda_address(b),
                        .index = rung_cuda_address(index),
                        .y = rung_cuda_address(y),
                        .refused = step->refusal,
                        .pairs = y->extent[0] * y->extent[1],
                        .places = y->extent[1],
                        .n = y->extent[2],
                        .k = a->extent[2],
                        .a_row = a->stride[0],
                        .a_place = a->extent[1] == 1 ? 0 : a->stride[1],
                        .a_k = a->stride[2],
                        .b_expert = b->rank == 3 ? b->stride[0] : b->stride[0] * y->extent[2],
                        .b_n = b->stride[b->rank - 2],
                        .b_k = b->stride[b->rank - 1],
                        .index_row = index->stride[0],
                        .index_place = index->stride[1],
                        .y_row = y->stride[0],
                        .y_place = y->stride[1],
                        .y_n = y->stride[2],
                        .a_type = a->type,
                        .b_type = b->type,
                        .index_type = index->type,
                        .y_type = y->type,
                        .experts = (int32_t)experts_of(args)};
  const bool wide = a->type == RUNG_TYPE_F64 || b->type == RUNG_TYPE_F64 || y->type == RUNG_TYPE_F64;
  return rung_cuda_emit(step, wide, (p.n + 7) / 8, 1, rung_cuda_blocks(p.pairs, 1, MOST_DEEP), 256, 0, &p, sizeof p);
}

/* ---- weights of every type */

static bool fits_weight(const rung_match *match, char *why) {
  const rung_value_type *a = match->in[0], *b = match->in[1], *y = &match->out[0];
  int64_t n, k;
  if (b->kind != RUNG_VALUE_TENSOR || !rung_cuda_reads_weight(b->type, b->layout))
    return rung_cuda_unfit(why, "no kernel reads that type of weight");
  if (a->type == RUNG_TYPE_A8 ? !rung_cuda_multiplies_a8(b->type) : !rung_cuda_is_float(a->type))
    return rung_cuda_unfit(why, "no kernel multiplies these types");
  if (!rung_dims_is_constant(match->graph->dims, a->extent[2], &k) || k < 32 || k % 32)
    return rung_cuda_unfit(why, "K is no multiple of 32");
  if (b->layout &&
      (!rung_dims_is_constant(match->graph->dims, y->extent[2], &n) || n % rung_cuda_layout_of(b->type)->panel))
    return rung_cuda_unfit(why, "packed experts are not of whole panels");
  if (((const rung_expert_matmul_attrs *)match->node->attrs)->experts > INT32_MAX)
    return rung_cuda_unfit(why, "many experts");
  return rung_cuda_is_float(y->type) || rung_cuda_unfit(why, "the result is not f32, f16 or bf16");
}

static rung_status params_of(const rung_cuda_step *step, rung_cuda_product_params *out, int64_t *expert_bytes) {
  const rung_args *args = step->args;
  const rung_operand *a = &args->in[0], *b = &args->in[1], *y = &args->out[0];
  const int64_t n = y->extent[2], k = a->extent[2];
  *out = (rung_cuda_product_params){.x = rung_cuda_address(a),
                                    .w = rung_cuda_address(b),
                                    .y = rung_cuda_address(y),
                                    .m = 1,
                                    .n = n,
                                    .k = k,
                                    .ldx = a->type == RUNG_TYPE_A8 ? k / 32 : k,
                                    .ldy = n,
                                    .y_type = y->type};
  *expert_bytes = (int64_t)(b->layout ? rung_layout_bytes(rung_cuda_layout_of((rung_type)b->type), n, k)
                                      : (uint64_t)n * rung_type_bytes((rung_type)b->type, (uint64_t)k));
  if (y->extent[0] && y->extent[1] && n && (out->x % 16 || out->w % 16))
    return rung_fail(args->error, RUNG_INTERNAL, "cuda: %s: an operand is not aligned to 16 bytes",
                     step->prepared->kernel->row.name);
  return RUNG_OK;
}

/* The kernels of matmul.cu and gemm.cu, with experts: `text` stands in front of what the row names. */
static rung_status prepare(const rung_cuda_prepare *in, rung_text *front, const char *text) {
  const rung_ref *a = &in->plan->ref[in->step->in], *b = a + 1;
  rung_cuda_way_of *own = rung_arena_alloc(in->arena, sizeof *own);
  if (!own) return rung_fail(in->error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare a product");
  rung_text_puts(front, "#define EXPERTS 1\n");
  *own = rung_cuda_put_product(a->type, b->type, b->layout, front);
  rung_text_puts(front, rung_cuda_unit_text(text));
  in->prepared->own = own;
  return RUNG_OK;
}
static rung_status prepare_few(const rung_cuda_prepare *in, rung_text *front) { return prepare(in, front, "matmul"); }
static rung_status prepare_many(const rung_cuda_prepare *in, rung_text *front) {
  return prepare(in, front, "experts_order");
}

typedef struct experts_params {
  rung_cuda_product_params one;
  uint64_t index, refused;
  int64_t pairs, places, expert_bytes, x_bytes, y_bytes;
  int32_t index_type, experts, shared, pad;
} experts_params;

static rung_status launch_few(const rung_cuda_step *step) {
  const rung_cuda_way_of *own = step->args->prepared;
  const rung_operand *a = &step->args->in[0], *index = &step->args->in[2], *y = &step->args->out[0];
  experts_params p = {.index = rung_cuda_address(index),
                      .refused = step->refusal,
                      .pairs = y->extent[0] * y->extent[1],
                      .places = y->extent[1],
                      .x_bytes = (int64_t)rung_type_bytes((rung_type)a->type, (uint64_t)a->extent[2]),
                      .y_bytes = (int64_t)rung_type_bytes((rung_type)y->type, (uint64_t)y->extent[2]),
                      .index_type = index->type,
                      .experts = (int32_t)experts_of(step->args),
                      .shared = a->extent[1] == 1};
  RUNG_TRY(params_of(step, &p.one, &p.expert_bytes));
  const int64_t rows = own->tiles ? 16 : 4 * own->rows_a_warp;
  return rung_cuda_emit(step, 0, (p.one.n + rows - 1) / rows, 1, rung_cuda_blocks(p.pairs, 1, MOST_DEEP),
                        own->tiles ? 256 : 128, 0, &p, sizeof p);
}

/* ---- many rows. In scratch: how many lots there are, the lots, the order. */

typedef struct expert_lot {
  int32_t expert, first, end;
} expert_lot;
typedef struct expert_lots {
  uint64_t count, lot, order;
} expert_lots;
typedef struct order_params {
  uint64_t index, refused;
  expert_lots to;
  int64_t pairs;
  int32_t index_type, experts, most, pad;
} order_params;
typedef struct many_params {
  rung_cuda_product_params product;
  expert_lots lots;
  int64_t expert_bytes;
  int32_t places, shared;
} many_params;
enum { LOT = 64 /* the smaller of both products' */, HEAD = 16 };

static bool fits_many(const rung_match *match, char *why) {
  if (((const rung_expert_matmul_attrs *)match->node->attrs)->experts > MOST_EXPERTS)
    return rung_cuda_unfit(why, "more experts than are put in order");
  return fits_weight(match, why);
}

static int64_t most_lots(int64_t pairs, int64_t experts, int64_t lot) {
  return pairs / lot + (experts < pairs ? experts : pairs);
}

/* At least what places() takes: sizeof(expert_lot) is less than LOT / 4 words. */
static rung_dim many_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  const int64_t experts = ((const rung_expert_matmul_attrs *)match->node->attrs)->experts;
  const rung_dim pairs = rung_dims_mul(dims, role[0], role[3]);
  return rung_dims_add(dims, rung_dims_mul(dims, pairs, rung_dims_constant(dims, 8)),
                       rung_dims_constant(dims, HEAD + (int64_t)sizeof(expert_lot) * experts));
}

static rung_status launch_many(const rung_cuda_step *step) {
  const rung_cuda_way_of *own = step->args->prepared;
  const rung_operand *a = &step->args->in[0], *index = &step->args->in[2], *y = &step->args->out[0];
  const int64_t pairs = y->extent[0] * y->extent[1], experts = experts_of(step->args);
  const int64_t rows = own->exact ? LOT : 2 * LOT, lots = most_lots(pairs, experts, rows);
  const uint64_t scratch = (uint64_t)(uintptr_t)step->args->scratch;
  many_params p = {
      .lots = {.count = scratch, .lot = scratch + HEAD, .order = scratch + HEAD + (uint64_t)lots * sizeof(expert_lot)},
      .places = (int32_t)y->extent[1],
      .shared = a->extent[1] == 1};
  const order_params order = {.index = rung_cuda_address(index),
                              .refused = step->refusal,
                              .to = p.lots,
                              .pairs = pairs,
                              .index_type = index->type,
                              .experts = (int32_t)experts,
                              .most = (int32_t)rows};
  if (pairs > INT32_MAX)
    return rung_fail(step->args->error, RUNG_OUT_OF_RANGE, "expert_matmul: %lld rows and places", (long long)pairs);
  if (!pairs || !y->extent[2]) return RUNG_OK;
  RUNG_TRY(params_of(step, &p.product, &p.expert_bytes));
  RUNG_TRY(rung_cuda_emit(step, 0, 1, 1, 1, ORDER_THREADS, (uint32_t)(experts * (int64_t)sizeof(int32_t)), &order,
                          sizeof order));
  return rung_cuda_emit(step, own->exact ? 2 : 1, lots, (p.product.n + rows - 1) / rows, 1, 256, 0, &p, sizeof p);
}

/* ---- rows */

#define EXPERTS(profile_, name_, unit_, lo, fits_, scratch_, prepare_, launch_, ...)       \
  {                                                                                        \
    .profile = (profile_),                                                                 \
    .row = {.name = name_,                                                                 \
            .op = &rung_op_expert_matmul,                                                  \
            .in_type = {RUNG_ANY_TYPE, RUNG_ANY_TYPE, RUNG_ANY_TYPE},                      \
            .n_in_type = 3,                                                                \
            .out_type = {RUNG_ANY_TYPE},                                                   \
            .n_out_type = 1,                                                               \
            .in_layout = {0, RUNG_ANY_LAYOUT},                                             \
            .in_strides = RUNG_STRIDES_DENSE,                                              \
            .out_strides = RUNG_STRIDES_DENSE,                                             \
            .guard_role = (lo) ? 0 : -1,                                                   \
            .guard_lo = lo,                                                                \
            .fits = fits_,                                                                 \
            .scratch = scratch_},                                                          \
    .unit = unit_, .function = {__VA_ARGS__, NULL}, .prepare = prepare_, .launch = launch_ \
  }

static const rung_cuda_kernel rows[] = {
    {.row = {RUNG_CUDA_ANY_ROW("experts_any", expert_matmul, RUNG_STRIDES_ANY, RUNG_STRIDES_ANY), .fits = fits_any},
     .unit = "product",
     .function = {"experts_f32", "experts_f64", NULL},
     .launch = launch_any},
    EXPERTS(0, "experts_few", "experts", 0, fits_weight, NULL, prepare_few, launch_few, "experts_few"),
    EXPERTS(RUNG_CUDA_FAST, "experts_many", "gemm", MANY_ROWS, fits_many, many_scratch, prepare_many, launch_many,
            "experts_order", "gemm_f16", "gemm_f32"),
};
const rung_cuda_family rung_cuda_family_experts = {"experts", rows, RUNG_COUNT(rows)};
