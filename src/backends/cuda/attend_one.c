/* SPDX-License-Identifier: MIT
 * Decoding's attention: in runs of one row of one sequence the ropes of query and key, the append and the attention (and
 * the quantising behind it) are one kernel. The static joins of join.c have to be there already; runs of more rows use
 * them. */
#include <math.h>
#include <string.h>

#include "backends/cuda/join.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

/* A warp for each quarter of a processor: a quarter has 16,384 registers, of which a product's block beside this one takes
 * half, so that a second warp of 160 a thread does not fit, and the next kernel could not begin while this one waits. */
enum { MOST_GROUP = 8, WARPS = 4, THREADS = 32 * WARPS };
/* Places for keys and values in shared memory, as the kernel lays them out. */
enum { STAGES = 3 }; /* of each warp */
static uint32_t shared_of(int64_t key_dim, int64_t value_dim, int stages) {
  return (uint32_t)(WARPS * stages * 16 * (key_dim * 2 + 16 + value_dim * 2 + 16));
}

/* As the kernel has it. */
typedef struct attend_one_params {
  rung_cuda_kv kv;
  uint64_t q, k, v, y;
  int64_t q_step, k_step, v_step, y_step, factor_step;
  uint64_t slot, past, factors, refused, partial, counter;
  int64_t window;
  float scale, soft_cap;
  int32_t alone, pad;
} attend_one_params;

typedef struct one_own {
  int64_t key_dim, kv_heads;
  uint32_t shared, any_shared; /* bytes; of the kernel for any number of rows: one place a warp, and all shares */
  bool quantized;
  int32_t splits, alone; /* blocks of a head's keys, and up to how many keys one has all of them */
} one_own;

/* Steps around the attention at `index`. */
enum { ROPE_Q = 3, ROPE_K = 2, APPEND = 1 }; /* in front of it */

static const rung_operand *in_of(const rung_run *run, uint32_t index, uint32_t i) {
  return &run->operand[run->plan->step[index].in + i];
}

static bool one_applies(const rung_cuda_prepared *prepared, const rung_run *run, uint32_t index) {
  const rung_operand *q = in_of(run, index - ROPE_Q, 0), *k = in_of(run, index - ROPE_K, 0),
                     *v = in_of(run, index - APPEND, 2);
  (void)prepared;
  return q->extent[0] == 1 && in_of(run, index, 3)->extent[0] == 1 && q->stride[2] == 1 && k->stride[2] == 1 &&
         v->stride[2] == 1;
}

/* k, v and f: NULL where the kernel has no use for them. */
static attend_one_params params_of(const rung_cuda_step *step, const rung_operand *q, const rung_operand *k,
                                   const rung_operand *v, const rung_operand *f, const rung_operand *y) {
  const one_own *own = step->prepared->own;
  const rung_attention_kv_attrs *attrs = step->args->attrs;
  const rung_operand *in = step->args->in;
  return (attend_one_params){.kv = rung_cuda_kv_of(step, in[1].kv),
                             .q = (uint64_t)(uintptr_t)q->base,
                             .k = k ? (uint64_t)(uintptr_t)k->base : 0,
                             .v = v ? (uint64_t)(uintptr_t)v->base : 0,
                             .y = (uint64_t)(uintptr_t)y->base,
                             .q_step = q->stride[1],
                             .k_step = k ? k->stride[1] : 0,
                             .v_step = v ? v->stride[1] : 0,
                             .y_step = own->quantized ? 0 : y->stride[1],
                             .factor_step = f ? f->stride[0] : 0,
                             .slot = (uint64_t)(uintptr_t)in[3].base,
                             .past = (uint64_t)(uintptr_t)in[4].base,
                             .factors = f ? (uint64_t)(uintptr_t)f->base : 0,
                             .refused = step->refusal,
                             .partial = (uint64_t)(uintptr_t)step->args->scratch,
                             .counter = step->counters,
                             .window = attrs->window,
                             .scale = (float)(attrs->scale > 0 ? attrs->scale : 1 / sqrt((double)own->key_dim)),
                             .soft_cap = (float)attrs->soft_cap,
                             .alone = own->alone};
}

static rung_status launch_one(const rung_cuda_step *step) {
  const one_own *own = step->prepared->own;
  const rung_run *run = step->run;
  const uint32_t s = step->index;
  const rung_operand *q = in_of(run, s - ROPE_Q, 0), *k = in_of(run, s - ROPE_K, 0), *v = in_of(run, s - APPEND, 2);
  const rung_operand *f = run->plan->step[s - ROPE_Q].n_in > 2 ? in_of(run, s - ROPE_Q, 2) : NULL;
  const rung_operand *y = own->quantized ? &run->operand[run->plan->step[s + 1].out] : &step->args->out[0];
  RUNG_TRY(rung_cuda_check_window(step));
  const attend_one_params p = params_of(step, q, k, v, f, y);
  /* As many blocks as the products around it have, so that each processor has one of every kernel's. */
  const int64_t blocks = own->splits * own->kv_heads, processors = step->device->processors;
  return rung_cuda_emit(step, 0, blocks < processors ? processors : blocks, 1, 1, THREADS, own->shared, &p, sizeof p);
}

static const rung_cuda_kernel one_kernel = {.row = {.name = "decode_attention"},
                                            .unit = "attend_one",
                                            .function = {"attend_one", NULL},
                                            .launch = launch_one,
                                            .applies = one_applies};

/* ---- the deterministic profile: the same sums for rows of any number */

typedef struct attend_any_params {
  attend_one_params one;
  uint64_t offsets;
  int64_t rows, sequences, q_row, q_column, y_row;
  int32_t offsets_type, pad;
} attend_any_params;

static rung_status launch_any(const rung_cuda_step *step) {
  const one_own *own = step->prepared->own;
  const rung_operand *in = step->args->in, *q = &in[0];
  const rung_operand *y =
      own->quantized ? &step->run->operand[step->run->plan->step[step->index + 1].out] : &step->args->out[0];
  RUNG_TRY(rung_cuda_check_window(step));
  const attend_any_params p = {.one = params_of(step, q, NULL, NULL, NULL, y),
                               .offsets = (uint64_t)(uintptr_t)in[2].base,
                               .rows = q->extent[0],
                               .sequences = in[3].extent[0],
                               .q_row = q->stride[0],
                               .q_column = q->stride[2],
                               .y_row = y->stride[0],
                               .offsets_type = in[2].type};
  return rung_cuda_emit(step, 0, p.rows, own->kv_heads, 1, THREADS, own->any_shared, &p, sizeof p);
}

static const rung_cuda_kernel any_kernel = {
    .row = {.name = "attend_rows_any"}, .unit = "attend_any", .function = {"attend_any", NULL}, .launch = launch_any};

rung_dim rung_cuda_attend_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  int64_t heads = 0, value_dim = 0;
  (void)role;
  if (!rung_dims_is_constant(dims, match->in[0]->extent[1], &heads) ||
      !rung_dims_is_constant(dims, match->in[1]->extent[2], &value_dim))
    return rung_dims_constant(dims, 0);
  return rung_dims_constant(dims, heads * RUNG_CANDIDATE_SPLITS * (value_dim + 8) * (int64_t)sizeof(float));
}

/* ---- preparing */

/* The position that the ropes turn by is the sequence's length where one row comes: what `positions` computes. */
static bool turns_by_length(const rung_cuda_looking *l, const rung_ref *positions, const rung_step *attend) {
  for (uint32_t s = 0; s < l->plan->steps; s++) {
    const rung_step *step = &l->plan->step[s];
    if (step->kind != RUNG_STEP_KERNEL || step->op != &rung_op_positions || step->n_in != 2) continue;
    if (rung_cuda_same_ref(rung_cuda_out_ref(l, step, 0), positions) &&
        rung_cuda_same_ref(rung_cuda_in_ref(l, step, 0), rung_cuda_in_ref(l, attend, 2)) &&
        rung_cuda_same_ref(rung_cuda_in_ref(l, step, 1), rung_cuda_in_ref(l, attend, 4)))
      return true;
  }
  return false;
}

/* What is read before the kernel in front is done: inputs of the run. */
static bool comes_from_outside(const rung_cuda_looking *l, const rung_ref *ref) {
  return l->plan->root[ref->root].kind == RUNG_ROOT_INPUT;
}

static bool fits(const rung_cuda_looking *l, uint32_t s, bool quantized) {
  const rung_step *attend = &l->plan->step[s];
  const rung_ref *state = rung_cuda_in_ref(l, attend, 1);
  const rung_value_type *type = &l->plan->state[l->plan->root[state->root].index].type;
  int64_t heads, kv_heads, key_dim, value_dim;
  const rung_dims *dims = l->plan->dims;
  if (type->type != RUNG_TYPE_F16 || !rung_dims_is_constant(dims, rung_cuda_in_ref(l, attend, 0)->extent[1], &heads) ||
      !rung_dims_is_constant(dims, type->extent[0], &kv_heads) ||
      !rung_dims_is_constant(dims, type->extent[1], &key_dim) ||
      !rung_dims_is_constant(dims, type->extent[2], &value_dim))
    return false;
  if (heads % kv_heads || heads / kv_heads > MOST_GROUP || kv_heads > RUNG_CUDA_COUNTERS || key_dim % 32 ||
      value_dim % 64 || key_dim > 128 || value_dim > 128)
    return false;
  if (attend[-ROPE_Q].n_in > 2) {
    const rung_ref *factors = rung_cuda_in_ref(l, attend - ROPE_Q, 2);
    if (!rung_cuda_is_float(factors->type) || !rung_cuda_is_early(l, factors)) return false;
  }
  const rung_ref *y = rung_cuda_out_ref(l, quantized ? attend + 1 : attend, 0);
  const rung_ref *read[3] = {rung_cuda_in_ref(l, attend - ROPE_Q, 0), rung_cuda_in_ref(l, attend - ROPE_K, 0),
                             rung_cuda_in_ref(l, attend - APPEND, 2)};
  for (int i = 0; i < 3; i++)
    if (!rung_cuda_lives_until(l, read[i], s) || rung_cuda_overlap(l, read[i], y)) return false;
  for (uint32_t i = 3; i < 5; i++)
    if (!comes_from_outside(l, rung_cuda_in_ref(l, attend, i)) ||
        !rung_cuda_same_ref(rung_cuda_in_ref(l, attend, i), rung_cuda_in_ref(l, attend - APPEND, i + 1)))
      return false;
  /* What a row alone keeps in registers must not be rounded where it goes through memory. */
  if (l->plan->target->deterministic && rung_cuda_in_ref(l, attend, 0)->type != RUNG_TYPE_F32) return false;
  return rung_cuda_same_ref(rung_cuda_out_ref(l, attend - ROPE_Q, 0), rung_cuda_in_ref(l, attend, 0)) &&
         rung_cuda_dies_in(l, rung_cuda_in_ref(l, attend, 0), s) &&
         state->root == rung_cuda_in_ref(l, attend - APPEND, 0)->root &&
         turns_by_length(l, rung_cuda_in_ref(l, attend - ROPE_Q, 1), attend);
}

static void name_number(const char *what, int type, rung_text *front) {
  rung_text_printf(front, "typedef %s %s_number;\n", rung_cuda_number(type), what);
}
static rung_status write_front(const rung_cuda_prepare *in, const one_own *own, int stages, rung_text *front) {
  rung_cuda_prepare rope = *in;
  rope.step = in->step - ROPE_Q;
  const rung_ref *ref = in->plan->ref, *attend = ref + in->step->in;
  name_number("q", ref[rope.step->in].type, front);
  name_number("k", ref[(in->step - ROPE_K)->in].type, front);
  name_number("v", ref[(in->step - APPEND)->in + 2].type, front);
  name_number("y", ref[in->step->out].type, front); /* where it is not quantised */
  name_number("slot", attend[3].type, front);
  name_number("past", attend[4].type, front);
  name_number("factor", rope.step->n_in > 2 ? ref[rope.step->in + 2].type : RUNG_TYPE_F32, front);
  rung_text_printf(front, "#define WARPS %d\n#define STAGES %d\n", WARPS, stages);
  rung_text_printf(front, "#define FACTORS %d\n#define CAPPED %d\n", rope.step->n_in > 2,
                   ((const rung_attention_kv_attrs *)in->step->attrs)->soft_cap > 0);
  rung_text_printf(front, "#define QUANTIZED %d\n#define NARROW %d\n#define SPLITS %d\n", own->quantized,
                   ((const rung_attention_kv_attrs *)in->step->attrs)->narrow, (int)own->splits);
  RUNG_TRY(rung_cuda_prepare_attend(in, front));
  return rung_cuda_prepare_rope(&rope, front);
}

static rung_status compile_one(const rung_cuda_prepare *in, const one_own *own) {
  rung_text front;
  rung_text_init(&front, in->device->host);
  rung_status status = write_front(in, own, STAGES, &front);
  if (!status) status = rung_text_status(&front, in->error);
  if (!status)
    status =
        rung_cuda_compile(in->device, "attend_one", &front, one_kernel.function, 1, in->prepared->function, in->error);
  rung_text_finish(&front);
  in->prepared->own = own; /* what the front shares with other kernels has set its own */
  return status ? status : rung_cuda_allow_shared(in->device, in->prepared->function[0], own->shared, in->error);
}

/* Fills in->prepared: this kernel, done as the candidate says. */
static rung_status prepare_one(const rung_cuda_prepare *in, const rung_candidate *way, bool quantized) {
  rung_cuda_attend_shape shape;
  one_own *own = rung_arena_alloc(in->arena, sizeof *own);
  if (!own) return rung_fail(in->error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare attention");
  if (!rung_cuda_attend_shape_of(in->plan, in->step, &shape))
    return rung_fail(in->error, RUNG_INTERNAL, "cuda: attention of one row over heads of open extent");
  *own = (one_own){.key_dim = shape.key_dim,
                   .kv_heads = shape.kv_heads,
                   .shared = shared_of(shape.key_dim, shape.value_dim, STAGES),
                   .quantized = quantized,
                   .splits = way->splits,
                   .alone = way->keys};
  own->any_shared = shared_of(shape.key_dim, shape.value_dim, 1);
  if (own->splits > 1)
    own->any_shared += (uint32_t)(own->splits * (shape.heads / shape.kv_heads) * (shape.value_dim + 8) * 4);
  *in->prepared = (rung_cuda_prepared){.kernel = &one_kernel, .step = in->step};
  return compile_one(in, own);
}

rung_status rung_cuda_try_one(const rung_cuda_prepare *in, const rung_candidate *candidate) {
  return prepare_one(in, candidate, false);
}

/* The step's kernel for all other runs: the same sums row by row. */
static rung_status prepare_any(const rung_cuda_prepare *in, const one_own *own) {
  rung_text front;
  rung_cuda_prepared *p = in->prepared;
  rung_text_init(&front, in->device->host);
  rung_status status = write_front(in, own, 1, &front);
  rung_text_puts(&front, rung_cuda_unit_text("attend_one"));
  if (!status) status = rung_text_status(&front, in->error);
  if (!status)
    status = rung_cuda_compile(in->device, any_kernel.unit, &front, any_kernel.function, 1, p->function, in->error);
  rung_text_finish(&front);
  RUNG_TRY(status);
  p->kernel = &any_kernel;
  p->own = own; /* write_front left what attention's other kernels have */
  return rung_cuda_allow_shared(in->device, p->function[0], own->any_shared, in->error);
}

rung_status rung_cuda_join_one(rung_cuda *self, const rung_plan *plan, rung_arena *arena, rung_cuda_prepared *prepared,
                               uint32_t s, rung_error *error) {
  const rung_cuda_looking l = {self, plan, arena, prepared, error};
  const rung_step *step = &plan->step[s];
  if (!rung_cuda_has_one_row(self) || !rung_cuda_is_wanted(one_kernel.row.name) || s < ROPE_Q ||
      step->kind != RUNG_STEP_KERNEL || step->op != &rung_op_attention_kv || step->variants != 1 ||
      step[-APPEND].kind != RUNG_STEP_KERNEL || step[-APPEND].variants != 1)
    return RUNG_OK;
  rung_cuda_prepared *p = &prepared[step->variant], *append = &prepared[step[-APPEND].variant];
  const bool quantized = strcmp(p->kernel->row.name, "attend_rows_a8") == 0;
  if (!quantized && strcmp(p->kernel->row.name, "attend_rows") != 0) return RUNG_OK;
  if (strcmp(append->kernel->row.name, "rope_append") != 0 || !fits(&l, s, quantized)) return RUNG_OK;
  rung_cuda_prepared *one = rung_arena_alloc(arena, sizeof *one);
  if (!one) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare attention");
  const rung_cuda_prepare in = {
      .device = self, .arena = arena, .plan = plan, .step = step, .prepared = one, .error = error};
  bool won;
  rung_candidate way;
  RUNG_TRY(rung_cuda_find_winner(&in, RUNG_CUDA_ONE, 1, &won, &way));
  const rung_candidate_space space = rung_cuda_space(RUNG_CUDA_ONE, plan, step);
  if (!won) way = rung_cuda_standard(RUNG_CUDA_ONE, &space, 1, 1);
  RUNG_TRY(prepare_one(&in, &way, quantized));
  if (plan->target->deterministic) {
    rung_cuda_prepare others = in;
    others.prepared = p;
    RUNG_TRY(prepare_any(&others, one->own));
  }
  p->one = one;
  p->before = APPEND;
  append->ahead = APPEND;
  return RUNG_OK;
}
