/* SPDX-License-Identifier: MIT
 * Rows for attention of tensors and of ragged rows, and for what is made of the rows of a sequence. */
#include <math.h>
#include <stdio.h>

#include "backends/cuda/families.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

enum { NARROW_VALUES = 64, WIDE_VALUES = 128, FEW_QUERIES = 16, POOLED_COLUMNS = 32 };

/* ---- attention */

typedef struct attention_operand {
  uint64_t base;
  int64_t stride[4]; /* batch, head, query or key, number */
} attention_operand;
typedef struct attention_params {
  attention_operand q, k, v, y, mask;
  uint64_t offsets, refused;
  int64_t queries, keys, dim, value_dim, heads, kv_heads, sequences, offsets_stride, window, tiles;
  double scale, soft_cap;
  int32_t causal, added, mask_type, offsets_type;
} attention_params;

typedef struct attention_own {
  int64_t values, side; /* numbers of a value, and queries, that a block has */
  bool one_way;         /* few queries are done as many are */
} attention_own;

static bool fits_attention(const rung_match *match, char *why) {
  for (uint32_t i = 0; i < 3; i++)
    if (match->in[i]->type > RUNG_TYPE_F64 || match->in[i]->type != match->in[0]->type || match->in[i]->layout)
      return rung_cuda_unfit(why, "q, keys and values are not of one type of plain floats");
  return match->out[0].type == match->in[0]->type || rung_cuda_unfit(why, "the result is of another type");
}

static rung_status prepare(const rung_cuda_prepare *in, rung_text *front, bool ragged) {
  const rung_ref *q = &in->plan->ref[in->step->in], *v = q + 2;
  int64_t width;
  attention_own *own = rung_arena_alloc(in->arena, sizeof *own);
  if (!own) return rung_fail(in->error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare attention");
  const bool narrow = rung_dims_is_constant(in->plan->dims, v->extent[v->rank - 1], &width) && width <= NARROW_VALUES;
  *own = (attention_own){.values = narrow ? NARROW_VALUES : WIDE_VALUES,
                         .side = q->type == RUNG_TYPE_F64 ? 32 : 64,
                         .one_way = in->plan->target->deterministic};
  rung_text_printf(front, "#define TYPE %d\n#define VALUES %d\n#define RAGGED %d\n#define APART %d\n", q->type,
                   (int)own->values, ragged, in->plan->target->deterministic);
  in->prepared->own = own;
  return RUNG_OK;
}
static rung_status prepare_tensors(const rung_cuda_prepare *in, rung_text *front) { return prepare(in, front, false); }
static rung_status prepare_ragged(const rung_cuda_prepare *in, rung_text *front) { return prepare(in, front, true); }

/* What tensors and ragged rows share. `window` is cut to what cannot overflow when a place is added. */
static attention_params params_of(const rung_cuda_step *step, int64_t dim) {
  const rung_attention_attrs *attrs = step->args->attrs;
  return (attention_params){.refused = step->refusal,
                            .dim = dim,
                            .window = attrs->window < (int64_t)1 << 48 ? attrs->window : (int64_t)1 << 48,
                            .scale = attrs->scale > 0 ? attrs->scale : 1 / sqrt((double)dim),
                            .soft_cap = attrs->soft_cap,
                            .causal = attrs->causal,
                            .added = attrs->added};
}

static rung_status emit(const rung_cuda_step *step, attention_params *p, int64_t batches) {
  const attention_own *own = step->args->prepared;
  const int64_t pieces = (p->value_dim + own->values - 1) / own->values;
  if (p->queries <= FEW_QUERIES && !own->one_way)
    return rung_cuda_emit(step, 1, p->queries * p->heads * batches, pieces, 1, 256, 0, p, sizeof *p);
  p->tiles = (p->queries + own->side - 1) / own->side;
  return rung_cuda_emit(step, 0, p->tiles * p->heads * batches, pieces, 1, 256, 0, p, sizeof *p);
}

static attention_operand tensor(const rung_operand *o) {
  return (attention_operand){rung_cuda_address(o), {o->stride[0], o->stride[1], o->stride[2], o->stride[3]}};
}

static rung_status launch_tensors(const rung_cuda_step *step) {
  const rung_operand *in = step->args->in, *q = &in[0], *k = &in[1], *v = &in[2];
  attention_params p = params_of(step, q->extent[3]);
  p.q = tensor(q);
  p.k = tensor(k);
  p.v = tensor(v);
  p.y = tensor(&step->args->out[0]);
  p.queries = q->extent[2];
  p.keys = k->extent[2];
  p.value_dim = v->extent[3];
  p.heads = q->extent[1];
  p.kv_heads = k->extent[1];
  if (step->args->n_in == 4) {
    const rung_operand *mask = &in[3];
    p.mask.base = rung_cuda_address(mask);
    p.mask_type = mask->type;
    for (int a = 0; a < mask->rank; a++) p.mask.stride[4 - mask->rank + a] = mask->extent[a] == 1 ? 0 : mask->stride[a];
  }
  return emit(step, &p, q->extent[0]);
}

/* [rows, heads, dim] */
static attention_operand rows_of(const rung_operand *o) {
  return (attention_operand){rung_cuda_address(o), {0, o->stride[1], o->stride[0], o->stride[2]}};
}

static rung_status launch_ragged(const rung_cuda_step *step) {
  const rung_operand *in = step->args->in, *q = &in[0], *offsets = &in[3];
  attention_params p = params_of(step, q->extent[2]);
  p.q = rows_of(q);
  p.k = rows_of(&in[1]);
  p.v = rows_of(&in[2]);
  p.y = rows_of(&step->args->out[0]);
  p.queries = p.keys = q->extent[0];
  p.value_dim = in[2].extent[2];
  p.heads = q->extent[1];
  p.kv_heads = in[1].extent[1];
  p.offsets = rung_cuda_address(offsets);
  p.offsets_type = offsets->type;
  p.offsets_stride = offsets->stride[0];
  p.sequences = offsets->extent[0] - 1;
  return emit(step, &p, 1);
}

/* ---- one row for every sequence */

typedef struct pool_params {
  uint64_t x, offsets, y, refused;
  int64_t rows, columns, sequences, x_row, x_column, y_row, y_column, offsets_stride;
  int32_t x_type, y_type, offsets_type, mode;
} pool_params;

static bool fits_pool(const rung_match *match, char *why) {
  return (match->in[0]->type <= RUNG_TYPE_F64 && !match->in[0]->layout && match->out[0].type <= RUNG_TYPE_F64) ||
         rung_cuda_unfit(why, "not of plain floats");
}

static rung_status launch_pool(const rung_cuda_step *step) {
  const rung_operand *x = &step->args->in[0], *offsets = &step->args->in[1], *y = &step->args->out[0];
  const pool_params p = {.x = rung_cuda_address(x),
                         .offsets = rung_cuda_address(offsets),
                         .y = rung_cuda_address(y),
                         .refused = step->refusal,
                         .rows = x->extent[0],
                         .columns = x->extent[1],
                         .sequences = y->extent[0],
                         .x_row = x->stride[0],
                         .x_column = x->stride[1],
                         .y_row = y->stride[0],
                         .y_column = y->stride[1],
                         .offsets_stride = offsets->stride[0],
                         .x_type = x->type,
                         .y_type = y->type,
                         .offsets_type = offsets->type,
                         .mode = ((const rung_pool_ragged_attrs *)step->args->attrs)->mode};
  return rung_cuda_emit(step, 0, rung_cuda_blocks(p.sequences, 1, INT32_MAX),
                        (p.columns + POOLED_COLUMNS - 1) / POOLED_COLUMNS, 1, 256, 0, &p, sizeof p);
}

/* ---- rows */

#define ROW(name_, op_, unit_, fits_, prepare_, launch_, ...)                                                 \
  {                                                                                                           \
    .row = {RUNG_CUDA_ANY_ROW(name_, op_, RUNG_STRIDES_ANY, RUNG_STRIDES_ANY), .fits = fits_}, .unit = unit_, \
    .function = {unit_, __VA_ARGS__}, .prepare = prepare_, .launch = launch_                                  \
  }

static const rung_cuda_kernel rows[] = {
    ROW("attention_tensors", attention, "attention", fits_attention, prepare_tensors, launch_tensors, "attention_few",
        NULL),
    ROW("attention_rows", attention_ragged, "attention", fits_attention, prepare_ragged, launch_ragged, "attention_few",
        NULL),
    ROW("pool_rows", pool_ragged, "pool_ragged", fits_pool, NULL, launch_pool, NULL),
};
const rung_cuda_family rung_cuda_family_attention = {"attention", rows, RUNG_COUNT(rows)};
