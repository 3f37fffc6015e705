/* SPDX-License-Identifier: MIT
 * Rows for products: with weights (few rows of x, many), with anything else. */
#include "backends/cuda/matmul.h"

#include <stdio.h>
#include <string.h>

#include "backends/cuda/families.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

enum { FEW = 9, A8_CODE = RUNG_TYPE_A8, MOST_DEEP = 32768, BYTES_TILE = 64 };

static const uint8_t block_types[] = {
    RUNG_TYPE_Q4_0,   RUNG_TYPE_Q4_1,    RUNG_TYPE_Q5_0,   RUNG_TYPE_Q5_1,  RUNG_TYPE_Q8_0,    RUNG_TYPE_Q8_1,
    RUNG_TYPE_Q2_K,   RUNG_TYPE_Q3_K,    RUNG_TYPE_Q4_K,   RUNG_TYPE_Q5_K,  RUNG_TYPE_Q6_K,    RUNG_TYPE_IQ1_S,
    RUNG_TYPE_IQ1_M,  RUNG_TYPE_IQ2_XXS, RUNG_TYPE_IQ2_XS, RUNG_TYPE_IQ2_S, RUNG_TYPE_IQ3_XXS, RUNG_TYPE_IQ3_S,
    RUNG_TYPE_IQ4_NL, RUNG_TYPE_IQ4_XS,  RUNG_TYPE_TQ1_0,  RUNG_TYPE_TQ2_0, RUNG_TYPE_MXFP4};

bool rung_cuda_multiplies_a8(rung_type type) {
  for (size_t i = 0; i < RUNG_COUNT(block_types); i++)
    if (block_types[i] == type) return true;
  return false;
}

bool rung_cuda_reads_weight(int type, uint16_t layout) {
  if (layout)
    return (layout == RUNG_CUDA_TILES && type == RUNG_TYPE_Q4_K) ||
           (layout == RUNG_CUDA_Q8_TILES && type == RUNG_TYPE_Q8_0);
  return rung_cuda_is_float(type) || rung_cuda_multiplies_a8((rung_type)type);
}

/* The tables of ir/codebooks.inc that a type has its levels from. */
static const struct {
  uint8_t type;
  const char *name[2];
} books[] = {{RUNG_TYPE_IQ1_S, {" grid_iq1["}},
             {RUNG_TYPE_IQ1_M, {" grid_iq1["}},
             {RUNG_TYPE_IQ2_XXS, {" grid_iq2_xxs[", " signs_even["}},
             {RUNG_TYPE_IQ2_XS, {" grid_iq2_xs[", " signs_even["}},
             {RUNG_TYPE_IQ2_S, {" grid_iq2_s["}},
             {RUNG_TYPE_IQ3_XXS, {" grid_iq3_xxs[", " signs_even["}},
             {RUNG_TYPE_IQ3_S, {" grid_iq3_s["}},
             {RUNG_TYPE_MXFP4, {" values_mxfp4["}}};

/* One of them, "static const TYPE NAME[..] = {..};" in that text, as memory of the device. */
static void put_book(const char *name, rung_text *front) {
  static const char begin[] = "static const ";
  const char *all = rung_cuda_unit_text("codebooks"), *at = strstr(all, name), *end = strstr(at, "};\n");
  while (strncmp(at, begin, sizeof begin - 1) != 0) at--;
  rung_text_puts(front, "__device__ ");
  rung_text_add(front, at, (size_t)(end + 3 - at));
}

static void put_books(int type, rung_text *front) {
  for (size_t i = 0; i < RUNG_COUNT(books); i++) {
    if (books[i].type != type) continue;
    rung_text_puts(front, "#define uint64_t u64\n#define uint32_t u32\n#define uint8_t u8\n#define int8_t i8\n");
    for (int n = 0; n < 2 && books[i].name[n]; n++) put_book(books[i].name[n], front);
    rung_text_puts(front, "#undef uint64_t\n#undef uint32_t\n#undef uint8_t\n#undef int8_t\n");
  }
}

/* Types that kernels/books.cu reads. */
static bool in_books(int type) {
  if (type == RUNG_TYPE_Q8_1) return true;
  return type >= RUNG_TYPE_IQ1_S && type <= RUNG_TYPE_MXFP4 && type != RUNG_TYPE_IQ4_NL && type != RUNG_TYPE_IQ4_XS;
}

void rung_cuda_put_weights(int type, uint16_t layout, rung_text *front) {
  put_books(type, front);
  rung_text_printf(front, "#define W_TYPE %d\n#define W_LAYOUT %d\n", type, layout);
  rung_text_puts(front, rung_cuda_unit_text("weights"));
  if (in_books(type)) rung_text_puts(front, rung_cuda_unit_text("books"));
}

/* ---- with weights */

static bool fits_weight(const rung_match *match, char *why) {
  const rung_value_type *a = match->in[0], *b = match->in[1];
  if (match->node->op == &rung_op_matmul && !((const rung_matmul_attrs *)match->node->attrs)->transpose_b)
    return rung_cuda_unfit(why, "the second operand is not transposed");
  if (match->node->op == &rung_op_grouped_matmul && ((const rung_grouped_matmul_attrs *)match->node->attrs)->interleave)
    return rung_cuda_unfit(why, "members lie in turn");
  int64_t k;
  if (b->rank != 2 || b->kind != RUNG_VALUE_TENSOR) return rung_cuda_unfit(why, "the second operand is no matrix");
  if (!rung_cuda_reads_weight(b->type, b->layout)) return rung_cuda_unfit(why, "no kernel reads that type of weight");
  if (a->type == RUNG_TYPE_A8 ? !rung_cuda_multiplies_a8(b->type) : !rung_cuda_is_float(a->type))
    return rung_cuda_unfit(why, "no kernel multiplies these types");
  if (!rung_dims_is_constant(match->graph->dims, a->extent[a->rank - 1], &k) || k < 32 || k % 32)
    return rung_cuda_unfit(why, "K is no multiple of 32");
  for (uint32_t i = 0; i < match->n_out; i++)
    if (!rung_cuda_is_float(match->out[i].type)) return rung_cuda_unfit(why, "the result is not f32, f16 or bf16");
  return true;
}

rung_cuda_way_of rung_cuda_put_product(int x, int w, uint16_t layout, rung_text *front) {
  const bool a8 = x == RUNG_TYPE_A8, narrow = w == RUNG_TYPE_F16 || w == RUNG_TYPE_BF16;
  const rung_cuda_way_of way = {.rows_a_warp = a8 && (layout || w != RUNG_TYPE_Q8_0) ? 2 : 1,
                                .tiles = a8 && layout == RUNG_CUDA_TILES,
                                .split = !a8 && narrow,
                                .exact = !a8 && !narrow};
  rung_text_printf(front, "#define X_TYPE %d\n#define ROWS_A_WARP %d\n#define SPLIT %d\n", a8 ? A8_CODE : x,
                   way.rows_a_warp, way.split);
  rung_cuda_put_weights(w, layout, front);
  return way;
}

static rung_status prepare_product(const rung_cuda_prepare *in, rung_text *front) {
  const rung_ref *a = &in->plan->ref[in->step->in], *b = a + 1;
  rung_cuda_way_of *own = rung_arena_alloc(in->arena, sizeof *own);
  if (!own) return rung_fail(in->error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare a product");
  *own = rung_cuda_put_product(a->type, b->type, b->layout, front);
  in->prepared->own = own;
  return RUNG_OK;
}

static rung_status product_params(const rung_cuda_step *step, rung_cuda_product_params *out) {
  const rung_args *args = step->args;
  const rung_operand *a = &args->in[0], *b = &args->in[1], *y = &args->out[0];
  const int64_t k = a->extent[a->rank - 1];
  int64_t m = 1;
  for (int i = 0; i < a->rank - 1; i++) m *= a->extent[i];
  *out = (rung_cuda_product_params){.x = (uint64_t)(uintptr_t)a->base,
                                    .w = (uint64_t)(uintptr_t)b->base,
                                    .y = (uint64_t)(uintptr_t)y->base,
                                    .m = m,
                                    .n = b->extent[0],
                                    .k = k,
                                    .ldx = a->type == RUNG_TYPE_A8 ? k / 32 : k,
                                    .ldy = y->stride[y->rank - 2],
                                    .y_type = y->type};
  if (m && k && out->n && (out->x % 16 || out->w % 16))
    return rung_fail(args->error, RUNG_INTERNAL, "cuda: %s: an operand is not aligned to 16 bytes",
                     step->prepared->kernel->row.name);
  return RUNG_OK;
}

static rung_status launch_few(const rung_cuda_step *step) {
  const rung_cuda_way_of *own = step->args->prepared;
  rung_cuda_product_params p;
  RUNG_TRY(product_params(step, &p));
  const int64_t batches = p.m == 1 ? 1 : (p.m + 3) / 4;
  if (own->tiles) return rung_cuda_emit(step, p.m == 1 ? 2 : 3, (p.n + 15) / 16, batches, 1, 256, 0, &p, sizeof p);
  const int64_t rows = 4 * own->rows_a_warp;
  return rung_cuda_emit(step, p.m == 1 ? 0 : 1, (p.n + rows - 1) / rows, batches, 1, 128, 0, &p, sizeof p);
}

static rung_status launch_many(const rung_cuda_step *step) {
  const rung_cuda_way_of *own = step->args->prepared;
  rung_cuda_product_params p;
  RUNG_TRY(product_params(step, &p));
  if (own->exact) return rung_cuda_emit(step, 1, (p.n + 63) / 64, (p.m + 63) / 64, 1, 256, 0, &p, sizeof p);
  return rung_cuda_emit(step, 0, (p.n + 127) / 128, (p.m + 127) / 128, 1, 256, 0, &p, sizeof p);
}

/* ---- any number of rows, each with the sums that a row alone has (docs/cuda.md) */

enum { EIGHT = 8, WIDE = 4, TILES_FEW = 32, TILES_BLOCK = 64 };

static rung_status prepare_all(const rung_cuda_prepare *in, rung_text *front) {
  rung_text_puts(front, "#define EIGHT 1\n");
  return prepare_product(in, front);
}

static rung_status launch_all(const rung_cuda_step *step) {
  const rung_cuda_way_of *own = step->args->prepared;
  rung_cuda_product_params p;
  RUNG_TRY(product_params(step, &p));
  const rung_operand *x = &step->args->in[0], *w = &step->args->in[1];
  const bool wide = p.m > 1 && rung_cuda_is_float(w->type) && x->type != RUNG_TYPE_A8;
  const int64_t rows = 4 * (wide ? WIDE : own->rows_a_warp), batches = p.m == 1 ? 1 : (p.m + EIGHT - 1) / EIGHT;
  return rung_cuda_emit(step, p.m == 1 ? 0 : 1, (p.n + rows - 1) / rows, batches, 1, 128, 0, &p, sizeof p);
}

static bool fits_tiles(const rung_match *match, char *why) {
  if (match->in[0]->type != RUNG_TYPE_A8 || !match->in[1]->layout) return rung_cuda_unfit(why, "not of tiles");
  return fits_weight(match, why);
}

static rung_status prepare_tiles(const rung_cuda_prepare *in, rung_text *front) {
  const rung_ref *b = &in->plan->ref[in->step->in + 1];
  rung_cuda_put_weights(b->type, b->layout, front);
  return RUNG_OK;
}

static rung_status launch_tiles(const rung_cuda_step *step) {
  rung_cuda_product_params p;
  RUNG_TRY(product_params(step, &p));
  const int64_t n = TILES_BLOCK;
  if (p.m <= TILES_FEW)
    return rung_cuda_emit(step, 0, (p.n + 15) / 16, (p.m + EIGHT - 1) / EIGHT, 1, 512, 0, &p, sizeof p);
  return rung_cuda_emit(step, 1, (p.n + n - 1) / n, (p.m + n - 1) / n, 1, 512, 0, &p, sizeof p);
}

/* ---- many rows, through the library: halves of both sides, which quantised ones become in scratch. The weights of a
 * large matrix come in slabs of rows. */

enum { MANY_ROWS = 64, SLAB_BYTES = 128 << 20, ALIGN = 256 };

static bool fits_library(const rung_match *match, char *why) {
  const int a = match->in[0]->type, b = match->in[1]->type;
  if (!fits_weight(match, why)) return false;
  if (a != RUNG_TYPE_A8 && (a != b || a == RUNG_TYPE_F32))
    return rung_cuda_unfit(why, "the library multiplies f16 or bf16");
  for (uint32_t i = 0; i < match->n_out; i++)
    if (match->out[i].type != RUNG_TYPE_F32) return rung_cuda_unfit(why, "the result is not f32");
  return true;
}

static int64_t slab_rows(int64_t n, int64_t k) {
  const int64_t slabs = (n * k * 2 + SLAB_BYTES - 1) / SLAB_BYTES, most = (n + slabs - 1) / slabs;
  return (most + 127) / 128 * 128;
}

/* The workspace, x, a slab. */
static rung_dim library_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  int64_t n, k;
  const rung_dim workspace = rung_dims_constant(dims, RUNG_CUDA_WORKSPACE);
  if (match->in[0]->type != RUNG_TYPE_A8 || !rung_dims_is_constant(dims, role[1], &n) ||
      !rung_dims_is_constant(dims, role[2], &k) || !n)
    return workspace;
  const rung_dim x = rung_dims_combine(dims, RUNG_DIM_MUL, role[0], rung_dims_constant(dims, 2 * k));
  const rung_dim slab = rung_dims_constant(dims, RUNG_CUDA_WORKSPACE + ALIGN + slab_rows(n, k) * k * 2);
  return rung_dims_combine(dims, RUNG_DIM_ADD, x, slab);
}

static rung_status prepare_library(const rung_cuda_prepare *in, rung_text *front) {
  const rung_ref *b = &in->plan->ref[in->step->in + 1];
  rung_cuda_put_weights(b->type, b->layout, front);
  return RUNG_OK;
}

typedef struct widen_params {
  uint64_t from, to;
  int64_t rows, first, k;
} widen_params;

static rung_status widen(const rung_cuda_step *step, int which, const widen_params *p) {
  const int64_t most = (int64_t)step->device->processors * 8;
  return rung_cuda_emit(step, which, rung_cuda_blocks(p->rows * p->k / 32, 256, most), 1, 1, 256, 0, p, sizeof *p);
}

static rung_status launch_library(const rung_cuda_step *step) {
  const rung_operand *a = &step->args->in[0], *b = &step->args->in[1];
  rung_cuda_product_params p;
  RUNG_TRY(product_params(step, &p));
  const uint64_t scratch = (uint64_t)(uintptr_t)step->args->scratch;
  rung_cuda_product product = {.x = p.x,
                               .w = p.w,
                               .y = p.y,
                               .workspace = scratch,
                               .m = p.m,
                               .n = p.n,
                               .k = p.k,
                               .pitch = p.ldy,
                               .type = a->type == RUNG_TYPE_A8 ? RUNG_TYPE_F16 : b->type};
  if (a->type != RUNG_TYPE_A8) return rung_cuda_emit_product(step, &product);
  const uint64_t x = scratch + RUNG_CUDA_WORKSPACE, slab = x + (uint64_t)(p.m * p.k * 2 + ALIGN - 1) / ALIGN * ALIGN;
  const widen_params of_x = {.from = p.x, .to = x, .rows = p.m, .k = p.k};
  RUNG_TRY(widen(step, 0, &of_x));
  const int64_t rows = slab_rows(p.n, p.k);
  for (int64_t first = 0; first < p.n; first += rows) {
    const widen_params of_w = {
        .from = p.w, .to = slab, .rows = p.n - first < rows ? p.n - first : rows, .first = first, .k = p.k};
    RUNG_TRY(widen(step, 1, &of_w));
    product.x = x;
    product.w = slab;
    product.n = of_w.rows;
    product.y = p.y + (uint64_t)first * sizeof(float);
    RUNG_TRY(rung_cuda_emit_product(step, &product));
  }
  return RUNG_OK;
}

/* ---- any floats */

typedef struct any_params {
  uint64_t a, b, y;
  int64_t m, n, k, batches;
  int64_t a_m, a_k, b_n, b_k, y_m, y_n;
  int32_t rank, a_type, b_type, y_type;
  int64_t extent[6], a_lead[6], b_lead[6], y_lead[6];
} any_params;

static bool fits_any(const rung_match *match, char *why) {
  for (uint32_t i = 0; i < 2; i++)
    if (match->in[i]->type > RUNG_TYPE_F64 || match->in[i]->layout)
      return rung_cuda_unfit(why, "an operand is not of plain floats");
  return match->out[0].type <= RUNG_TYPE_F64 || rung_cuda_unfit(why, "the result is not of plain floats");
}

static any_params any_of(const rung_args *args, bool turned) {
  const rung_operand *a = &args->in[0], *b = &args->in[1], *y = &args->out[0];
  const int bn = b->rank - (turned ? 2 : 1), bk = b->rank - (turned ? 1 : 2);
  any_params p = {.a = (uint64_t)(uintptr_t)a->base,
                  .b = (uint64_t)(uintptr_t)b->base,
                  .y = (uint64_t)(uintptr_t)y->base,
                  .m = a->extent[a->rank - 2],
                  .n = b->extent[bn],
                  .k = a->extent[a->rank - 1],
                  .batches = 1,
                  .a_m = a->stride[a->rank - 2],
                  .a_k = a->stride[a->rank - 1],
                  .b_n = b->stride[bn],
                  .b_k = b->stride[bk],
                  .y_m = y->stride[y->rank - 2],
                  .y_n = y->stride[y->rank - 1],
                  .rank = y->rank - 2,
                  .a_type = a->type,
                  .b_type = b->type,
                  .y_type = y->type};
  for (int d = 0; d < y->rank - 2; d++) {
    const int of_a = d - (y->rank - a->rank), of_b = d - (y->rank - b->rank);
    p.extent[d] = y->extent[d];
    p.batches *= y->extent[d];
    p.a_lead[d] = of_a < 0 || a->extent[of_a] == 1 ? 0 : a->stride[of_a];
    p.b_lead[d] = of_b < 0 || b->extent[of_b] == 1 ? 0 : b->stride[of_b];
    p.y_lead[d] = y->stride[d];
  }
  return p;
}

static rung_status launch_any(const rung_cuda_step *step) {
  const rung_args *args = step->args;
  const any_params p = any_of(args, ((const rung_matmul_attrs *)args->attrs)->transpose_b);
  const bool wide = p.a_type == RUNG_TYPE_F64 || p.b_type == RUNG_TYPE_F64 || p.y_type == RUNG_TYPE_F64;
  return rung_cuda_emit(step, wide ? 1 : 0, (p.n + 15) / 16, (p.m + 15) / 16, rung_cuda_blocks(p.batches, 1, MOST_DEEP),
                        256, 0, &p, sizeof p);
}

/* ---- integers */

static bool is_byte(int type) { return type == RUNG_TYPE_I8 || type == RUNG_TYPE_U8; }

static bool fits_whole(const rung_match *match, char *why) {
  if (match->in[0]->layout || match->in[1]->layout) return rung_cuda_unfit(why, "an operand is packed");
  return (rung_cuda_is_integer(match->in[0]->type) && rung_cuda_is_integer(match->in[1]->type) &&
          rung_cuda_is_integer(match->out[0].type)) ||
         rung_cuda_unfit(why, "not of integers");
}

/* 32 bits of a sum tell all that the result keeps. */
static bool fits_bytes(const rung_match *match, char *why) {
  if (!fits_whole(match, why)) return false;
  return (is_byte(match->in[0]->type) && is_byte(match->in[1]->type) &&
          rung_type_get(match->out[0].type)->bytes <= 4) ||
         rung_cuda_unfit(why, "not of bytes, or the result is wider than 32 bits");
}

static rung_status launch_whole(const rung_cuda_step *step) {
  const any_params p = any_of(step->args, ((const rung_matmul_attrs *)step->args->attrs)->transpose_b);
  return rung_cuda_emit(step, 0, (p.n + 15) / 16, (p.m + 15) / 16, rung_cuda_blocks(p.batches, 1, MOST_DEEP), 256, 0,
                        &p, sizeof p);
}

typedef struct bytes_params {
  any_params of;
  uint64_t a_zero, b_zero;
  int64_t a_step, b_step;
} bytes_params;

static rung_status emit_bytes(const rung_cuda_step *step, const bytes_params *p) {
  const int64_t x = (p->of.n + BYTES_TILE - 1) / BYTES_TILE, y = (p->of.m + BYTES_TILE - 1) / BYTES_TILE;
  return rung_cuda_emit(step, 0, x, y, rung_cuda_blocks(p->of.batches, 1, MOST_DEEP), 256, 0, p, sizeof *p);
}

static rung_status launch_bytes(const rung_cuda_step *step) {
  const bytes_params p = {.of = any_of(step->args, ((const rung_matmul_attrs *)step->args->attrs)->transpose_b)};
  return emit_bytes(step, &p);
}

/* One zero point for all rows or columns has no stride. */
static int64_t zero_step(const rung_operand *zero) { return zero->rank && zero->extent[0] != 1 ? zero->stride[0] : 0; }

static rung_status launch_integer(const rung_cuda_step *step) {
  const rung_args *args = step->args;
  bytes_params p = {.of = any_of(args, false)};
  if (args->n_in > 2) {
    p.a_zero = (uint64_t)(uintptr_t)args->in[2].base;
    p.a_step = zero_step(&args->in[2]);
  }
  if (args->n_in > 3) {
    p.b_zero = (uint64_t)(uintptr_t)args->in[3].base;
    p.b_step = zero_step(&args->in[3]);
  }
  return emit_bytes(step, &p);
}

/* ---- rows of weights by index */

typedef struct rows_params {
  uint64_t w, index, out, refused;
  int64_t rows, limit, k;
  int32_t index_type, pad;
} rows_params;

static bool fits_rows(const rung_match *match, char *why) {
  const rung_value_type *x = match->in[0];
  const int64_t axis = ((const rung_gather_attrs *)match->node->attrs)->axis;
  if (x->rank != 2 || (axis != 0 && axis != -2)) return rung_cuda_unfit(why, "rows of matrices only");
  return (rung_cuda_multiplies_a8(x->type) && rung_cuda_reads_weight(x->type, x->layout)) ||
         rung_cuda_unfit(why, "no kernel reads that type of weight");
}

static rung_status prepare_rows(const rung_cuda_prepare *in, rung_text *front) {
  const rung_ref *x = &in->plan->ref[in->step->in];
  rung_cuda_put_weights(x->type, x->layout, front);
  return RUNG_OK;
}

static rung_status launch_rows(const rung_cuda_step *step) {
  const rung_operand *x = &step->args->in[0], *index = &step->args->in[1], *y = &step->args->out[0];
  const rows_params p = {.w = (uint64_t)(uintptr_t)x->base,
                         .index = (uint64_t)(uintptr_t)index->base,
                         .out = (uint64_t)(uintptr_t)y->base,
                         .refused = step->refusal,
                         .rows = rung_operand_count(index),
                         .limit = x->extent[0],
                         .k = x->extent[1],
                         .index_type = index->type};
  const int64_t threads = p.k / 32 >= 128 ? 128 : 32;
  return rung_cuda_emit(step, 0, rung_cuda_blocks(p.rows, 1, 65536), 1, 1, (uint32_t)threads, 0, &p, sizeof p);
}

/* ---- rows */

#define WEIGHT(profile_, name_, op_, unit_, lo, hi, fits_, scratch_, prepare_, launch_, ...) \
  {                                                                                          \
    .profile = (profile_),                                                                   \
    .row = {.name = name_,                                                                   \
            .op = &rung_op_##op_,                                                            \
            .in_type = {RUNG_ANY_TYPE, RUNG_ANY_TYPE},                                       \
            .n_in_type = 2,                                                                  \
            .out_type = {RUNG_ANY_TYPE},                                                     \
            .n_out_type = 1,                                                                 \
            .in_layout = {0, RUNG_ANY_LAYOUT},                                               \
            .in_strides = RUNG_STRIDES_DENSE,                                                \
            .out_strides = RUNG_STRIDES_ROWS,                                                \
            .guard_role = (lo) || (hi) ? 0 : -1,                                             \
            .guard_lo = lo,                                                                  \
            .guard_hi = hi,                                                                  \
            .fits = fits_,                                                                   \
            .scratch = scratch_},                                                            \
    .unit = unit_, .function = {__VA_ARGS__, NULL}, .prepare = prepare_, .launch = launch_   \
  }

#define PLAIN(name_, op_, fits_, launch_, ...)                                                                    \
  {                                                                                                               \
    .row = {RUNG_CUDA_ANY_ROW(name_, op_, RUNG_STRIDES_ANY, RUNG_STRIDES_ANY), .fits = fits_}, .unit = "product", \
    .function = {__VA_ARGS__, NULL}, .launch = launch_                                                            \
  }

static const rung_cuda_kernel rows[] = {
    PLAIN("product_any", matmul, fits_any, launch_any, "product_f32", "product_f64"),
    PLAIN("product_whole", matmul, fits_whole, launch_whole, "product_whole"),
    PLAIN("product_bytes", matmul, fits_bytes, launch_bytes, "product_bytes"),
    PLAIN("product_levels", matmul_integer, fits_bytes, launch_integer, "product_bytes"),
    WEIGHT(RUNG_CUDA_FAST, "gemm_weights", matmul, "gemm", 0, 0, fits_weight, NULL, prepare_product, launch_many,
           "gemm_f16", "gemm_f32"),
    WEIGHT(RUNG_CUDA_FAST, "library_weights", matmul, "widen", MANY_ROWS, 0, fits_library, library_scratch,
           prepare_library, launch_library, "widen_x", "widen_w"),
    WEIGHT(RUNG_CUDA_FAST, "gemv_weights", matmul, "matmul", 0, FEW, fits_weight, NULL, prepare_product, launch_few,
           "gemv_1", "gemv_4", "gemv_tile_1", "gemv_tile_4"),
    WEIGHT(RUNG_CUDA_FAST, "gemm_weights_grouped", grouped_matmul, "gemm", 0, 0, fits_weight, NULL, prepare_product,
           launch_many, "gemm_f16", "gemm_f32"),
    WEIGHT(RUNG_CUDA_FAST, "library_weights_grouped", grouped_matmul, "widen", MANY_ROWS, 0, fits_library,
           library_scratch, prepare_library, launch_library, "widen_x", "widen_w"),
    WEIGHT(RUNG_CUDA_FAST, "gemv_weights_grouped", grouped_matmul, "matmul", 0, FEW, fits_weight, NULL, prepare_product,
           launch_few, "gemv_1", "gemv_4", "gemv_tile_1", "gemv_tile_4"),
    WEIGHT(RUNG_CUDA_DETERMINISTIC, "gemv_weights_all", matmul, "matmul", 0, 0, fits_weight, NULL, prepare_all,
           launch_all, "gemv_1", "gemv_8"),
    WEIGHT(RUNG_CUDA_DETERMINISTIC, "gemv_weights_tiles", matmul, "tiles", 0, 0, fits_tiles, NULL, prepare_tiles,
           launch_tiles, "tiles_few", "tiles_many"),
    WEIGHT(RUNG_CUDA_DETERMINISTIC, "gemv_weights_all_grouped", grouped_matmul, "matmul", 0, 0, fits_weight, NULL,
           prepare_all, launch_all, "gemv_1", "gemv_8"),
    WEIGHT(RUNG_CUDA_DETERMINISTIC, "gemv_weights_tiles_grouped", grouped_matmul, "tiles", 0, 0, fits_tiles, NULL,
           prepare_tiles, launch_tiles, "tiles_few", "tiles_many"),
    {.row = {.name = "gather_weight_rows",
             .op = &rung_op_gather,
             .in_type = {RUNG_ANY_TYPE, RUNG_ANY_TYPE},
             .n_in_type = 2,
             .out_type = {RUNG_TYPE_F32},
             .n_out_type = 1,
             .in_layout = {RUNG_ANY_LAYOUT, 0},
             .in_strides = RUNG_STRIDES_DENSE,
             .out_strides = RUNG_STRIDES_DENSE,
             .guard_role = -1,
             .fits = fits_rows},
     .unit = "rows",
     .function = {"gather_rows", NULL},
     .prepare = prepare_rows,
     .launch = launch_rows},
};
const rung_cuda_family rung_cuda_family_matmul = {"matmul", rows, RUNG_COUNT(rows)};
