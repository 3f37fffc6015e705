/* SPDX-License-Identifier: MIT
 * Neighbouring steps that one kernel does at once, where each would be small: launching one behind the other costs more
 * than they do. A rule looks at the steps from one on, and at where their buffers lie: a joined kernel reads and writes
 * what steps in turn would have, but at one time, so nothing that it writes may lie where it reads. */
#include <string.h>

#include "backends/cuda/join.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

typedef rung_cuda_looking looking;

static const rung_step *step_at(const looking *l, uint32_t s) {
  return s < l->plan->steps && l->plan->step[s].kind == RUNG_STEP_KERNEL && l->plan->step[s].variants == 1
             ? &l->plan->step[s]
             : NULL;
}
static rung_cuda_prepared *prepared_of(const looking *l, const rung_step *step) { return &l->prepared[step->variant]; }
static bool is_kernel(const looking *l, const rung_step *step, const rung_op *op, const char *name) {
  return step && step->op == op && strcmp(prepared_of(l, step)->kernel->row.name, name) == 0;
}
static const rung_ref *in_ref(const looking *l, const rung_step *step, uint32_t i) {
  return rung_cuda_in_ref(l, step, i);
}
static const rung_ref *out_ref(const looking *l, const rung_step *step) { return rung_cuda_out_ref(l, step, 0); }

static rung_status take(const looking *l, const rung_step *step, const rung_cuda_kernel *kernel) {
  rung_cuda_prepared *p = prepared_of(l, step);
  p->kernel = kernel;
  const rung_cuda_prepare in = {
      .device = l->self, .arena = l->arena, .plan = l->plan, .step = step, .prepared = p, .error = l->error};
  return rung_cuda_prepare_kernel(&in);
}

/* ---- rope of queries, rope of keys, append */

enum { ROPE_HEADS = 8 }; /* of a block (kernels/kv.cu) */

typedef struct rope_append_params {
  rung_cuda_append_params a;
  rung_cuda_operand q, y;
  uint64_t positions, factors;
  int64_t position_stride, factor_stride;
  int32_t position_type, factor_type;
} rope_append_params;

static const rung_operand *operand_of(const rung_cuda_step *step, uint32_t index, uint32_t i) {
  return &step->run->operand[step->run->plan->step[index].in + i];
}

static rung_status launch_rope_append(const rung_cuda_step *step) {
  const uint32_t q = step->index - 2, k = step->index - 1;
  const bool factors = step->run->plan->step[q].n_in > 2;
  const rung_operand *positions = operand_of(step, q, 1), *f = factors ? operand_of(step, q, 2) : NULL;
  rope_append_params p = {.a = rung_cuda_append_params_of(step),
                          .q = rung_cuda_operand_of(operand_of(step, q, 0)),
                          .y = rung_cuda_operand_of(&step->run->operand[step->run->plan->step[q].out]),
                          .positions = (uint64_t)(uintptr_t)positions->base,
                          .factors = f ? (uint64_t)(uintptr_t)f->base : 0,
                          .position_stride = positions->stride[0],
                          .factor_stride = f ? f->stride[0] : 0,
                          .position_type = positions->type,
                          .factor_type = f ? f->type : 0};
  p.a.k = rung_cuda_operand_of(operand_of(step, k, 0));
  return rung_cuda_emit(step, 0, p.a.rows, (p.q.extent[1] + 2 * (int64_t)p.a.kv.kv_heads + ROPE_HEADS - 1) / ROPE_HEADS,
                        1, 64, 0, &p, sizeof p);
}

/* The lines of the rope two steps before. */
static rung_status prepare_rope_append(const rung_cuda_prepare *in, rung_text *front) {
  rung_cuda_prepare rope = *in;
  rope.step = in->step - 2;
  return rung_cuda_prepare_rope(&rope, front);
}

static const rung_cuda_kernel rope_append = {.row = {.name = "rope_append"},
                                             .unit = "kv",
                                             .function = {"rope_append", NULL},
                                             .prepare = prepare_rope_append,
                                             .launch = launch_rope_append};

static rung_status join_rope(const looking *l, uint32_t s) {
  const rung_step *q = step_at(l, s), *k = step_at(l, s + 1), *append = step_at(l, s + 2);
  if (!is_kernel(l, q, &rung_op_rope, "rope_pairs") || !is_kernel(l, k, &rung_op_rope, "rope_pairs") ||
      !is_kernel(l, append, &rung_op_append, "append_rows"))
    return RUNG_OK;
  if (!rung_attrs_equal(&rung_op_rope, q->attrs, k->attrs) || q->n_in != k->n_in) return RUNG_OK;
  for (uint32_t i = 1; i < q->n_in; i++)
    if (!rung_cuda_same_ref(in_ref(l, q, i), in_ref(l, k, i))) return RUNG_OK;
  if (!rung_cuda_same_ref(out_ref(l, k), in_ref(l, append, 1)) || !rung_cuda_dies_in(l, out_ref(l, k), s + 2))
    return RUNG_OK;
  /* Heads of queries and keys are of one width, or the turns would differ. */
  if (!rung_dim_same(in_ref(l, q, 0)->extent[2], in_ref(l, k, 0)->extent[2])) return RUNG_OK;
  for (uint32_t i = 0; i < q->n_in; i++)
    if (!rung_cuda_lives_until(l, in_ref(l, q, i), s + 2) || !rung_cuda_lives_until(l, in_ref(l, k, i), s + 2) ||
        rung_cuda_overlap(l, out_ref(l, q), in_ref(l, q, i)) || rung_cuda_overlap(l, out_ref(l, q), in_ref(l, k, i)))
      return RUNG_OK;
  prepared_of(l, q)->absorbed = prepared_of(l, k)->absorbed = true;
  return take(l, append, &rope_append);
}

/* ---- attention, and quantising what it gives */

static rung_status launch_attend_a8(const rung_cuda_step *step) {
  return rung_cuda_launch_attend_to(step, &step->run->operand[step->run->plan->step[step->index + 1].out]);
}

static rung_status prepare_attend_a8(const rung_cuda_prepare *in, rung_text *front) {
  rung_text_puts(front, "#define QUANTIZED 1\n");
  return rung_cuda_prepare_attend_rows(in, front);
}

static const rung_cuda_kernel attend_a8 = {.row = {.name = "attend_rows_a8"},
                                           .unit = "attend",
                                           .function = {"attend", "attend_split", NULL},
                                           .prepare = prepare_attend_a8,
                                           .launch = launch_attend_a8};

static rung_status join_attend(const looking *l, uint32_t s) {
  const rung_step *attend = step_at(l, s), *quantize = step_at(l, s + 1);
  int64_t width;
  if (!is_kernel(l, attend, &rung_op_attention_kv, "attend_rows") ||
      !is_kernel(l, quantize, &rung_op_quantize_rows, "region_quantize_rows"))
    return RUNG_OK;
  const rung_ref *made = out_ref(l, attend), *to = out_ref(l, quantize);
  if (!rung_cuda_same_ref(made, in_ref(l, quantize, 0)) || !rung_cuda_dies_in(l, made, s + 1) || to->rank != 2)
    return RUNG_OK;
  if (!rung_dims_is_constant(l->plan->dims, made->extent[2], &width) || width % 32) return RUNG_OK;
  if (rung_cuda_overlap(l, to, in_ref(l, attend, 0))) return RUNG_OK;
  prepared_of(l, quantize)->absorbed = true;
  return take(l, attend, &attend_a8);
}

rung_status rung_cuda_join(rung_cuda *self, const rung_plan *plan, rung_arena *arena, rung_cuda_prepared *prepared,
                           uint32_t step, rung_error *error) {
  const looking l = {self, plan, arena, prepared, error};
  RUNG_TRY(join_rope(&l, step));
  return join_attend(&l, step);
}
