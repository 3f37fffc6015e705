/* SPDX-License-Identifier: MIT
 * form: what depends on weights alone; built once and kept beside the weights it is made from. */
#include "ops/attrs.h"
#include "ops/bodies.h"
#include "ops/structured.h"

static const char *const recipes[] = {"concat", "interleave", "body", NULL};
static const rung_attr attributes[] = {
    {.name = "recipe",
     .kind = RUNG_ATTR_ENUM,
     .offset = offsetof(rung_form_attrs, recipe),
     .text_default = "concat",
     .names = recipes,
     .doc = "concat: rows one after another; interleave: panels of rows in turn; body: what the body computes"},
    {.name = "panel",
     .kind = RUNG_ATTR_I64,
     .offset = offsetof(rung_form_attrs, panel),
     .text_default = "0",
     .doc = "interleave: rows of a panel"},
    {.name = "layout",
     .kind = RUNG_ATTR_I64,
     .offset = offsetof(rung_form_attrs, layout),
     .text_default = "0",
     .doc = "layout of the target that the result is packed to; 0: row-major"},
    {0}};

static rung_status infer_layout(rung_infer *infer) {
  const rung_form_attrs *attrs = infer->attrs;
  if (attrs->layout < 0 || attrs->layout > UINT16_MAX || (attrs->layout && infer->out[0].rank < 2)) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "layout %lld: layouts are 0 to 65535 and pack rows",
                             (long long)attrs->layout);
  }
  infer->out[0].layout = (uint16_t)attrs->layout;
  return RUNG_OK;
}

static rung_status infer_body(rung_infer *infer) {
  if (infer->bodies != 1 || infer->body[0]->outputs != 1) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "recipe body needs one body with one output");
  }
  RUNG_TRY(rung_infer_body_inputs(infer, 0, 0, infer->n_in, 0));
  infer->out[0] = *rung_body_output_type(infer->body[0], 0);
  return infer_layout(infer);
}

static rung_status infer(rung_infer *infer) {
  const rung_form_attrs *attrs = infer->attrs;
  const rung_value_type *first = &infer->in[0];
  int64_t rows = 0, value;
  for (uint32_t i = 0; i < infer->n_in; i++) {
    RUNG_TRY(rung_infer_weight_class(infer, i, RUNG_TAKES_ALL));
    for (int axis = 0; axis < infer->in[i].rank; axis++) {
      RUNG_TRY(rung_infer_constant(infer, infer->in[i].extent[axis], "every extent of a weight", &value));
    }
  }
  if (attrs->recipe == RUNG_FORM_BODY) return infer_body(infer);
  if (infer->bodies) return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "only recipe body takes a body");
  /* The last axis of a block type is cut into blocks: it cannot be the one that grows. */
  RUNG_TRY(rung_infer_rank_at_least(infer, 0, rung_type_is_block(first->type) ? 2 : 1));
  for (uint32_t i = 0; i < infer->n_in; i++) {
    RUNG_TRY(rung_infer_same_type(infer, i, 0));
    RUNG_TRY(rung_infer_rank(infer, i, first->rank));
    for (int axis = 1; axis < first->rank; axis++) RUNG_TRY(rung_infer_extent(infer, i, axis, first->extent[axis]));
    if (attrs->recipe == RUNG_FORM_INTERLEAVE) RUNG_TRY(rung_infer_extent(infer, i, 0, first->extent[0]));
    RUNG_TRY(rung_infer_constant(infer, infer->in[i].extent[0], "rows", &value));
    if (rung_add_overflows(rows, value, &rows)) return rung_infer_refuse(infer, RUNG_OVERFLOW, "too many rows");
  }
  if (attrs->recipe == RUNG_FORM_INTERLEAVE && (attrs->panel < 1 || value % attrs->panel)) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "%lld rows are no multiple of a panel of %lld",
                             (long long)value, (long long)attrs->panel);
  }
  infer->out[0] = rung_value_type_like(first, first->type);
  infer->out[0].extent[0] = rung_dims_constant(infer->dims, rows);
  return infer_layout(infer);
}

/* Row `row` (of the first axis) of `from`, as it is, becomes row `to_row` of `to`. */
static void copy_row(const rung_operand *from, int64_t row, const rung_operand *to, int64_t to_row) {
  rung_units source = rung_units_of(from), target = rung_units_of(to);
  source.base = rung_unit_at(&source, row * source.stride[0]);
  target.base = rung_unit_at(&target, to_row * target.stride[0]);
  source.extent[0] = target.extent[0] = 1;
  rung_units_copy(&target, &source);
}

static rung_status reference(const rung_args *args) {
  const rung_form_attrs *attrs = args->attrs;
  const rung_operand *y = &args->out[0];
  if (attrs->recipe == RUNG_FORM_BODY) return args->run_body(args->self, 0, args->in, args->out);
  int64_t end = 0;
  for (int64_t member = 0; member < args->n_in; member++) {
    const rung_operand *w = &args->in[member];
    for (int64_t row = 0; row < w->extent[0]; row++) {
      const int64_t p = attrs->panel;
      copy_row(w, row, y,
               attrs->recipe == RUNG_FORM_CONCAT ? end + row : (row / p * args->n_in + member) * p + row % p);
    }
    end += w->extent[0];
  }
  return RUNG_OK;
}

static const rung_test_case cases[] = {{"f32[5,8] f32[3,8] f32[0,8]", ""},
                                       {"f32[5] f32[3]", ""},
                                       {"q4_0[4,64] q4_0[2,64]", ""},
                                       {"q4_k[8,256] q4_k[8,256]", "recipe=interleave, panel=4"},
                                       {"f16[6,8] f16[6,8] f16[6,8]", "recipe=interleave, panel=2"},
                                       {0}};

/* Exact: moves bits. The body recipe is tested with bodies. */
const rung_op rung_op_form = {
    .name = "form",
    .doc = "a weight made of weights, once: concatenated, interleaved by panels, or computed by a body",
    .operands = (const char *const[]){"w...", NULL},
    .in_lo = 1,
    .in_hi = 255,
    .results = 1,
    .bodies = 255,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_form_attrs),
    .infer = infer,
    .role_dims = rung_role_elements,
    .reference = reference,
    .no_gradient = "made by passes; differentiate before them",
    .test_lo = -1,
    .test_hi = 1,
    .tests = cases,
};
