/* SPDX-License-Identifier: MIT
 * Rows for keys and values: rope and rotate, append, attention over a state. */
#include <math.h>
#include <stdio.h>

#include "backends/cuda/families.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

enum { MOST_PAIRS = 512 };

static bool are_floats(const rung_match *match, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++)
    if (!rung_cuda_is_float(match->in[i]->type)) return false;
  return true;
}

/* ---- rope */

static bool fits_rope(const rung_match *match, char *why) {
  const rung_rope_attrs *attrs = match->node->attrs;
  int64_t dim;
  if (!are_floats(match, 0, 1) || !rung_cuda_is_float(match->out[0].type))
    return rung_cuda_unfit(why, "x is not f32, f16 or bf16");
  if (match->n_in > 2 && match->in[2]->type > RUNG_TYPE_F64) return rung_cuda_unfit(why, "factors are no plain floats");
  if (!rung_dims_is_constant(match->graph->dims, match->in[0]->extent[2], &dim))
    return rung_cuda_unfit(why, "heads of open extent");
  const int64_t dims = attrs->dims ? attrs->dims : dim;
  return (dims >= 2 && dims <= 2 * MOST_PAIRS) || rung_cuda_unfit(why, "heads are too wide, or nothing turns");
}

rung_status rung_cuda_prepare_rope(const rung_cuda_prepare *in, rung_text *front) {
  const rung_rope_attrs *attrs = in->step->attrs;
  const rung_ref *x = &in->plan->ref[in->step->in];
  int64_t dim = 0;
  rung_dims_is_constant(in->plan->dims, x->extent[2], &dim);
  const int64_t dims = attrs->dims ? attrs->dims : dim;
  rung_text_printf(front, "#define DIMS %lld\n#define HALF %d\n#define MAGNITUDE ((float)", (long long)dims,
                   attrs->mode == RUNG_ROPE_HALF);
  rung_text_double(front, attrs->magnitude);
  rung_text_puts(front, ")\n__constant__ double turns[DIMS / 2] = {");
  for (int64_t i = 0; i < dims / 2; i++) {
    rung_text_puts(front, i ? ", " : "");
    rung_text_double(front, pow(attrs->base, -2.0 * (double)i / (double)dims) * attrs->scale);
  }
  rung_text_puts(front, "};\n");
  return RUNG_OK;
}

typedef struct rope_params {
  rung_cuda_operand x, y;
  uint64_t positions, factors;
  int64_t position_stride, factor_stride;
  int32_t position_type, factor_type;
} rope_params;

static rung_status launch_rope(const rung_cuda_step *step) {
  const rung_args *args = step->args;
  const rung_rope_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0];
  const bool factors = args->n_in > 2;
  const rope_params p = {.x = rung_cuda_operand_of(x),
                         .y = rung_cuda_operand_of(&args->out[0]),
                         .positions = rung_cuda_address(&args->in[1]),
                         .factors = factors ? rung_cuda_address(&args->in[2]) : 0,
                         .position_stride = args->in[1].stride[0],
                         .factor_stride = factors ? args->in[2].stride[0] : 0,
                         .position_type = args->in[1].type,
                         .factor_type = factors ? args->in[2].type : 0};
  const int64_t dims = attrs->dims ? attrs->dims : x->extent[2];
  const int64_t count = x->extent[0] * x->extent[1] * (x->extent[2] - dims / 2);
  return rung_cuda_emit(step, 0, rung_cuda_blocks(count, 128, (int64_t)step->device->processors * 32), 1, 1, 128, 0, &p,
                        sizeof p);
}

/* ---- rotate */

static bool fits_rotate(const rung_match *match, char *why) {
  return are_floats(match, 0, 3) || rung_cuda_unfit(why, "operands are not f32, f16 or bf16");
}

typedef struct rotate_params {
  rung_cuda_operand x, y, cosine, sine;
  int64_t rows, pairs;
  int32_t half, channel;
} rotate_params;

/* A table with an axis for each of x's: no stride where it repeats. */
static rung_cuda_operand table_like(const rung_operand *table, const rung_operand *x) {
  rung_cuda_operand out = rung_cuda_operand_of(x);
  out.base = rung_cuda_address(table);
  out.type = table->type;
  for (int a = 0; a < x->rank; a++) {
    const int from = a - (x->rank - table->rank);
    out.stride[a] = from < 0 || (a < x->rank - 1 && table->extent[from] == 1) ? 0 : table->stride[from];
  }
  return out;
}

static rung_status launch_rotate(const rung_cuda_step *step) {
  const rung_args *args = step->args;
  const rung_rotate_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0];
  rotate_params p = {.x = rung_cuda_operand_of(x),
                     .y = rung_cuda_operand_of(&args->out[0]),
                     .cosine = table_like(&args->in[1], x),
                     .sine = table_like(&args->in[2], x),
                     .rows = 1,
                     .pairs = args->in[1].extent[args->in[1].rank - 1],
                     .half = attrs->mode == RUNG_ROPE_HALF,
                     .channel = attrs->table == RUNG_ROTATE_CHANNEL};
  if (p.channel) p.pairs /= 2;
  for (int a = 0; a < x->rank - 1; a++) p.rows *= x->extent[a];
  const int64_t count = p.rows * (x->extent[x->rank - 1] - p.pairs);
  return rung_cuda_emit(step, 0, rung_cuda_blocks(count, 128, (int64_t)step->device->processors * 32), 1, 1, 128, 0, &p,
                        sizeof p);
}

/* ---- append */

static bool fits_append(const rung_match *match, char *why) {
  return (rung_cuda_is_float(match->in[0]->type) && are_floats(match, 1, 3)) ||
         rung_cuda_unfit(why, "keys and values are not f32, f16 or bf16");
}

rung_cuda_append_params rung_cuda_append_params_of(const rung_cuda_step *step) {
  const rung_operand *in = step->args->in;
  return (rung_cuda_append_params){.kv = rung_cuda_kv_of(step, step->args->out[0].kv),
                                   .k = rung_cuda_operand_of(&in[1]),
                                   .v = rung_cuda_operand_of(&in[2]),
                                   .offsets = rung_cuda_address(&in[3]),
                                   .slot = rung_cuda_address(&in[4]),
                                   .past = rung_cuda_address(&in[5]),
                                   .refused = step->refusal,
                                   .rows = in[1].extent[0],
                                   .sequences = in[4].extent[0],
                                   .offsets_type = in[3].type,
                                   .slot_type = in[4].type,
                                   .past_type = in[5].type};
}

static rung_status launch_append(const rung_cuda_step *step) {
  const rung_cuda_append_params p = rung_cuda_append_params_of(step);
  return rung_cuda_emit(step, 0, p.rows, 2 * (int64_t)p.kv.kv_heads, 1, 64, 0, &p, sizeof p);
}

/* ---- attention over a state */

typedef rung_cuda_attend_shape attend_shape;

static bool shape_of(const rung_dims *dims, const rung_dim *q, const rung_dim *state, attend_shape *out) {
  return rung_dims_is_constant(dims, q[1], &out->heads) && rung_dims_is_constant(dims, state[0], &out->kv_heads) &&
         rung_dims_is_constant(dims, state[1], &out->key_dim) && rung_dims_is_constant(dims, state[2], &out->value_dim);
}

bool rung_cuda_attend_shape_of(const rung_plan *plan, const rung_step *step, attend_shape *out) {
  const rung_ref *q = &plan->ref[step->in];
  return shape_of(plan->dims, q->extent, plan->state[plan->root[q[1].root].index].type.extent, out);
}

static int64_t shared_bytes(int64_t group, int64_t value_dim) { return 5 * 4 * group * (2 + value_dim); }

static bool fits_attend(const rung_match *match, char *why) {
  attend_shape s;
  if (!rung_cuda_is_float(match->in[1]->type) || !are_floats(match, 0, 1) || !rung_cuda_is_float(match->out[0].type))
    return rung_cuda_unfit(why, "q, keys or values are not f32, f16 or bf16");
  if (!shape_of(match->graph->dims, match->in[0]->extent, match->in[1]->extent, &s))
    return rung_cuda_unfit(why, "heads of open extent");
  const int64_t group = s.heads / s.kv_heads, widest = s.key_dim > s.value_dim ? s.key_dim : s.value_dim;
  if (widest > 512 || group * ((widest + 31) / 32) > 64 || shared_bytes(group, s.value_dim) > 48 * 1024)
    return rung_cuda_unfit(why, "heads are too wide for one block");
  return true;
}

/* Which of prepared->function: all keys of a row in one block, in clusters of 8, many rows, clusters of 2 and of 4. */
enum { WHOLE, SPLIT_8, MANY, SPLIT_2, SPLIT_4 };
enum { FEW_BUCKETS = 6, MANY_ROWS = 64, MANY_THREADS = 128 }; /* of runs of few rows; rows of a block of MANY */

/* How runs of few rows are done. splits 0: as without a winner. */
typedef struct attend_way {
  uint8_t splits;
  uint16_t alone; /* up to so many keys one block of a cluster has all of them */
} attend_way;

typedef struct attend_own {
  attend_shape shape;
  bool split;
  uint32_t many;                    /* bytes of shared memory of the kernel for many rows; 0: there is none */
  attend_way way[FEW_BUCKETS], any; /* any: of runs that have no other */
} attend_own;

rung_status rung_cuda_prepare_attend(const rung_cuda_prepare *in, rung_text *front) {
  const rung_ref *q = &in->plan->ref[in->step->in], *state = q + 1;
  const rung_value_type *type = &in->plan->state[in->plan->root[state->root].index].type;
  attend_own *own = rung_arena_alloc(in->arena, sizeof *own);
  if (!own) return rung_fail(in->error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare attention");
  shape_of(in->plan->dims, q->extent, type->extent, &own->shape);
  rung_text_printf(front,
                   "#define KEY_DIM %lld\n#define VALUE_DIM %lld\n#define GROUP %lld\n#define KV_HEADS %lld\n"
                   "#define KV_TYPE %d\n",
                   (long long)own->shape.key_dim, (long long)own->shape.value_dim,
                   (long long)(own->shape.heads / own->shape.kv_heads), (long long)own->shape.kv_heads, type->type);
  /* How keys are cut is then a matter of the row's position alone. */
  const bool one_way = in->plan->target->deterministic;
  own->split = in->device->chip >= 90 && !one_way;
  own->any = in->device->chip >= 90 && one_way ? (attend_way){8, 64} : (attend_way){1, 64};
  in->prepared->own = own;
  return RUNG_OK;
}

static int function_of(int splits) {
  return splits == 1 ? WHOLE : splits == 2 ? SPLIT_2 : splits == 4 ? SPLIT_4 : SPLIT_8;
}

/* The unit once more, for clusters of another size than it has. */
static rung_status add_cluster(const rung_cuda_prepare *in, const rung_text *front, int splits) {
  static const char *const name[] = {"attend_split", NULL};
  void **function = &in->prepared->function[function_of(splits)];
  rung_text all;
  if (splits == 1 || splits == 8) return RUNG_OK;
  rung_text_init(&all, in->device->host);
  rung_text_printf(&all, "#define CLUSTER %d\n", splits);
  if (front->data) rung_text_add(&all, front->data, front->length);
  rung_status status = rung_text_status(&all, in->error);
  if (!status) status = rung_cuda_compile(in->device, "attend", &all, name, 1, function, in->error);
  rung_text_finish(&all);
  return status;
}

/* What won for runs of few rows; clusters of 8 are in the unit itself. */
static rung_status take_winners(const rung_cuda_prepare *in, attend_own *own, const rung_text *front) {
  for (uint16_t b = 0; b < FEW_BUCKETS && own->split; b++) {
    bool won;
    rung_candidate c;
    RUNG_TRY(rung_cuda_find_winner(in, RUNG_CUDA_ROWS, rung_tune_bucket_rows(b), &won, &c));
    if (!won) continue;
    own->way[b] = (attend_way){.splits = (uint8_t)c.splits, .alone = c.keys};
    RUNG_TRY(add_cluster(in, front, c.splits));
  }
  return RUNG_OK;
}

static rung_status add_many(const rung_cuda_prepare *in, attend_own *own, const rung_text *front);

rung_status rung_cuda_prepare_attend_rows(const rung_cuda_prepare *in, rung_text *front) {
  RUNG_TRY(rung_cuda_prepare_attend(in, front));
  attend_own *own = (attend_own *)(uintptr_t)in->prepared->own;
  RUNG_TRY(take_winners(in, own, front));
  return add_many(in, own, front);
}

/* The kernel for many rows is a unit of its own. */
static rung_status add_many(const rung_cuda_prepare *in, attend_own *own, const rung_text *front) {
  static const char *const name[] = {"attend_many", NULL};
  const rung_ref *state = &in->plan->ref[in->step->in + 1];
  const attend_shape *s = &own->shape;
  if (in->plan->target->deterministic ||
      in->plan->state[in->plan->root[state->root].index].type.type != RUNG_TYPE_F16 || s->key_dim % 16 ||
      s->value_dim % 32 || s->key_dim > 128 || s->value_dim > 128 || !rung_cuda_is_wanted(name[0]))
    return RUNG_OK;
  rung_text all;
  rung_text_init(&all, in->device->host);
  rung_text_printf(&all, "#define NARROW %d\n", ((const rung_attention_kv_attrs *)in->step->attrs)->narrow);
  if (front->data) rung_text_add(&all, front->data, front->length);
  rung_status status = rung_text_status(&all, in->error);
  if (!status) status = rung_cuda_compile(in->device, name[0], &all, name, 1, &in->prepared->function[MANY], in->error);
  rung_text_finish(&all);
  RUNG_TRY(status);
  own->many = (uint32_t)(2 * MANY_ROWS * (2 * (s->key_dim + s->value_dim) + 32));
  return rung_cuda_allow_shared(in->device, in->prepared->function[MANY], own->many, in->error);
}

typedef struct attend_params {
  rung_cuda_kv kv;
  rung_cuda_operand q, y;
  uint64_t offsets, slot, past, refused;
  int64_t rows, sequences, window;
  float scale, soft_cap;
  int32_t offsets_type, slot_type, past_type, alone;
} attend_params;

rung_status rung_cuda_check_window(const rung_cuda_step *step) {
  const rung_attention_kv_attrs *attrs = step->args->attrs;
  const rung_kv_view *kv = step->args->in[1].kv;
  if (kv->window && (attrs->window == 0 || attrs->window > kv->window))
    return rung_fail(step->args->error, RUNG_INVALID_ARGUMENT,
                     "attention_kv: window %lld of a state that keeps %lld positions", (long long)attrs->window,
                     (long long)kv->window);
  return RUNG_OK;
}

/* Stages for the most keys that a row can have to look at; what is in other sequences counts, too, since which ones run
 * is known to the device alone. */
static int stages_of(const rung_cuda_step *step, int64_t window, int64_t rows) {
  const rung_kv_view *kv = step->args->in[1].kv;
  const int64_t most = RUNG_DEFAULT_KEYS - rows; /* of the longest, for the stages of few keys */
  int64_t longest = 0;
  for (int32_t s = 0; s < kv->slots; s++)
    if (kv->length[s] > longest) longest = kv->length[s];
  const bool few = longest <= most;
  if (step->lengths) step->lengths(step->kept, kv, few ? 0 : most + 1, few ? most : INT64_MAX);
  return rung_default_stages(rows, window && window < longest + rows ? window : longest + rows);
}

static attend_way way_of(const rung_cuda_step *step, const attend_own *own, int64_t rows, int64_t window) {
  const attend_way way = own->way[rung_tune_bucket(rows)];
  const attend_way one = {1, 64}, two = {8, 64};
  if (way.splits) return way;
  return stages_of(step, window, rows) == 2 ? two : one;
}

rung_status rung_cuda_launch_attend_to(const rung_cuda_step *step, const rung_operand *out) {
  const attend_own *own = step->args->prepared;
  const rung_attention_kv_attrs *attrs = step->args->attrs;
  const rung_operand *in = step->args->in;
  attend_params p = {.kv = rung_cuda_kv_of(step, in[1].kv),
                     .q = rung_cuda_operand_of(&in[0]),
                     .y = rung_cuda_operand_of(out),
                     .offsets = rung_cuda_address(&in[2]),
                     .slot = rung_cuda_address(&in[3]),
                     .past = rung_cuda_address(&in[4]),
                     .refused = step->refusal,
                     .rows = in[0].extent[0],
                     .sequences = in[3].extent[0],
                     .window = attrs->window,
                     .scale = (float)(attrs->scale > 0 ? attrs->scale : 1 / sqrt((double)own->shape.key_dim)),
                     .soft_cap = (float)attrs->soft_cap,
                     .offsets_type = in[2].type,
                     .slot_type = in[3].type,
                     .past_type = in[4].type};
  RUNG_TRY(rung_cuda_check_window(step));
  if (own->many && p.rows >= RUNG_CUDA_FEW_ROWS && p.rows >= MANY_ROWS / 4 * p.sequences)
    return rung_cuda_emit(step, MANY, (p.rows + MANY_ROWS - 1) / MANY_ROWS, own->shape.heads, 1, MANY_THREADS,
                          own->many, &p, sizeof p);
  const uint32_t shared = (uint32_t)shared_bytes(own->shape.heads / own->shape.kv_heads, own->shape.value_dim);
  attend_way way = own->any;
  if (own->split && p.rows > 0 && p.rows < RUNG_CUDA_FEW_ROWS) way = way_of(step, own, p.rows, attrs->window);
  p.alone = way.alone;
  return rung_cuda_emit(step, function_of(way.splits), p.rows * way.splits, own->shape.kv_heads, 1, 128, shared, &p,
                        sizeof p);
}

rung_status rung_cuda_try_rows(const rung_cuda_prepare *in, const rung_candidate *candidate) {
  static const char *const whole[] = {"attend", "attend_split", NULL};
  rung_text front;
  rung_text_init(&front, in->device->host);
  rung_status status = rung_cuda_prepare_attend(in, &front);
  if (!status) status = rung_text_status(&front, in->error);
  if (!status) status = rung_cuda_compile(in->device, "attend", &front, whole, 2, in->prepared->function, in->error);
  if (!status) status = add_cluster(in, &front, candidate->splits);
  rung_text_finish(&front);
  RUNG_TRY(status);
  attend_own *own = (attend_own *)(uintptr_t)in->prepared->own;
  for (int b = 0; b < FEW_BUCKETS; b++)
    own->way[b] = (attend_way){.splits = (uint8_t)candidate->splits, .alone = candidate->keys};
  return RUNG_OK;
}

static rung_status launch_attend(const rung_cuda_step *step) {
  return rung_cuda_launch_attend_to(step, &step->args->out[0]);
}

/* ---- rows */

#define ROW(name_, op_, unit_, fits_, scratch_, prepare_, launch_, ...)                                             \
  {                                                                                                                 \
    .row = {RUNG_CUDA_ANY_ROW(name_, op_, RUNG_STRIDES_ANY, RUNG_STRIDES_ANY), .fits = fits_, .scratch = scratch_}, \
    .unit = unit_, .function = {__VA_ARGS__, NULL}, .prepare = prepare_, .launch = launch_                          \
  }

static const rung_cuda_kernel rows[] = {
    ROW("rope_pairs", rope, "kv", fits_rope, NULL, rung_cuda_prepare_rope, launch_rope, "rope"),
    ROW("rotate_pairs", rotate, "kv", fits_rotate, NULL, NULL, launch_rotate, "rotate"),
    ROW("append_rows", append, "kv", fits_append, NULL, NULL, launch_append, "append"),
    ROW("attend_rows", attention_kv, "attend", fits_attend, rung_cuda_attend_scratch, rung_cuda_prepare_attend_rows,
        launch_attend, "attend", "attend_split"),
};
const rung_cuda_family rung_cuda_family_kv = {"kv", rows, RUNG_COUNT(rows)};
