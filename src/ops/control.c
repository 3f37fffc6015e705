/* SPDX-License-Identifier: MIT
 * if and loop. The runtime runs them; their references here, for bodies whose extents stay put, say what it must do. */
#include "ops/attrs.h"
#include "ops/bodies.h"
#include "ops/structured.h"

/* ---- if(condition, captures...) */

static uint32_t if_results(const void *attrs, uint32_t n_in, uint32_t bodies, rung_graph *const *body) {
  (void)attrs, (void)n_in;
  return bodies ? body[0]->outputs : 0;
}

/* An extent that both branches agree on and that has a meaning outside of them. */
static bool shared(const rung_infer *infer, rung_dim a, rung_dim b) {
  const uint64_t inner = rung_body_symbols(infer->body[0]) | rung_body_symbols(infer->body[1]);
  return rung_dim_same(a, b) && !(infer->dims->node[a.id].symbols & inner);
}

static rung_dim branch_extent(const rung_infer *infer, int body, uint32_t r, int axis) {
  return rung_body_output_type(infer->body[body], r)->extent[axis];
}

/* Results whose branch extents are the same pair share a symbol. */
static rung_dim joined(rung_infer *infer, uint32_t r, int axis) {
  const rung_dim a = branch_extent(infer, 0, r, axis), b = branch_extent(infer, 1, r, axis);
  if (shared(infer, a, b)) return a;
  for (uint32_t before = 0; before <= r; before++) {
    const int end = before < r ? infer->out[before].rank : axis;
    for (int i = 0; i < end; i++) {
      const bool same =
          rung_dim_same(branch_extent(infer, 0, before, i), a) && rung_dim_same(branch_extent(infer, 1, before, i), b);
      if (same) return infer->out[before].extent[i];
    }
  }
  return rung_infer_symbol(infer, r, axis, NULL, rung_dims_combine(infer->dims, RUNG_DIM_MAX, a, b));
}

static rung_status infer_if(rung_infer *infer) {
  RUNG_TRY(rung_infer_scalar(infer, 0, RUNG_TYPE_BOOL));
  for (uint32_t b = 0; b < 2; b++) RUNG_TRY(rung_infer_body_inputs(infer, b, 0, infer->n_in - 1, 1));
  if (infer->body[0]->outputs != infer->body[1]->outputs) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "the branches have %u and %u outputs",
                             infer->body[0]->outputs, infer->body[1]->outputs);
  }
  for (uint32_t r = 0; r < infer->n_out; r++) {
    const rung_value_type *yes = rung_body_output_type(infer->body[0], r),
                          *no = rung_body_output_type(infer->body[1], r);
    if (!rung_body_type_fits(yes, no) || yes->kind != no->kind) {
      return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH,
                               "output %u is %s of rank %d in one branch, %s of rank %d in the other", r,
                               rung_type_name(yes->type), yes->rank, rung_type_name(no->type), no->rank);
    }
    infer->out[r] = *yes;
    for (int axis = 0; axis < yes->rank; axis++) {
      infer->out[r].extent[axis] = joined(infer, r, axis);
      RUNG_TRY(rung_infer_dim(infer, infer->out[r].extent[axis]));
    }
  }
  return RUNG_OK;
}

static rung_status if_reference(const rung_args *args) {
  return args->run_body(args->self, rung_load_i64(&args->in[0], 0) ? 0 : 1, args->in + 1, args->out);
}

const rung_op rung_op_if = {
    .name = "if",
    .doc = "runs one of two bodies",
    .operands = (const char *const[]){"condition", "captures...", NULL},
    .results_named = (const char *const[]){"y...", NULL},
    .in_lo = 1,
    .in_hi = 255,
    .bodies = 2,
    .flags = RUNG_OP_CONTROL | RUNG_OP_SIZES,
    .result_count = if_results,
    .infer = infer_if,
    .reference = if_reference,
    .no_gradient = "choose with where, or train what is outside",
};

/* ---- loop(trip, condition, carried..., captures...) */

enum { FIRST = 2, MOST_OPERANDS = RUNG_LOOP_OPERANDS }; /* iteration and condition come before the carried values */

static const rung_attr loop_attributes[] = {
    {.name = "carried",
     .kind = RUNG_ATTR_I64,
     .offset = offsetof(rung_loop_attrs, carried),
     .text_default = "0",
     .doc = "operands behind the condition that an iteration hands to the next"},
    {.name = "symbol",
     .kind = RUNG_ATTR_TEXT,
     .offset = offsetof(rung_loop_attrs, symbol),
     .text_default = "\"\"",
     .doc = "name of the symbol for the number of iterations, the first extent of scans"},
    {.name = "trip",
     .kind = RUNG_ATTR_DIM,
     .offset = offsetof(rung_loop_attrs, trip),
     .text_default = "none",
     .doc = "the number of iterations, or with a symbol the most of them"},
    {0}};

static uint32_t loop_results(const void *attrs, uint32_t n_in, uint32_t bodies, rung_graph *const *body) {
  (void)attrs, (void)n_in;
  return bodies && body[0]->outputs ? body[0]->outputs - 1 : 0;
}

static bool is_scalar(const rung_value_type *type, rung_type element) {
  return type->kind == RUNG_VALUE_TENSOR && type->type == element && type->rank == 0;
}

static rung_status check_signature(rung_infer *infer) {
  const rung_loop_attrs *attrs = infer->attrs;
  const rung_graph *body = infer->body[0];
  RUNG_TRY(rung_infer_scalar(infer, 0, RUNG_TYPE_I64));
  RUNG_TRY(rung_infer_scalar(infer, 1, RUNG_TYPE_BOOL));
  if (body->inputs != infer->n_in || body->outputs < 1 || infer->n_in > MOST_OPERANDS ||
      body->outputs > MOST_OPERANDS) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "the body has %u inputs and %u outputs for %u operands",
                             body->inputs, body->outputs, infer->n_in);
  }
  if (attrs->carried < 0 || attrs->carried > infer->n_in - FIRST || attrs->carried > body->outputs - 1) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "carried is %lld", (long long)attrs->carried);
  }
  if (is_scalar(rung_body_input_type(body, 0), RUNG_TYPE_I64) &&
      is_scalar(rung_body_input_type(body, 1), RUNG_TYPE_BOOL) &&
      is_scalar(rung_body_output_type(body, 0), RUNG_TYPE_BOOL)) {
    return RUNG_OK;
  }
  return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH,
                           "the body must begin with inputs i64[] and bool[] and with an output bool[]");
}

/* One extent of carried value j: `inside` of the body's input, `start` of the operand, `next` of the body's output. */
static rung_status carried_extent(rung_infer *infer, uint64_t inner, rung_dim inside, rung_dim start, rung_dim next) {
  const rung_dim_node *node = &infer->dims->node[inside.id];
  const bool fixed = rung_dim_same(inside, start) && rung_dim_same(inside, next);
  if (fixed || (node->kind == RUNG_DIM_KIND_SYMBOL && infer->dims->symbol[node->symbol].made)) {
    return fixed || infer->made & node->symbols ? RUNG_OK : rung_infer_bind(infer, inside);
  }
  if (infer->dims->node[next.id].symbols & inner) {
    return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH,
                             "a carried extent is found in the body, but its input has no made symbol");
  }
  RUNG_TRY(rung_infer_agree(infer, start, inside, "the carried operand and its body input"));
  return rung_infer_agree(infer, next, inside, "the carried input and output of the body");
}

static rung_status infer_carried(rung_infer *infer, uint32_t j, uint64_t inner) {
  const rung_graph *body = infer->body[0];
  const rung_value_type *start = &infer->in[FIRST + j];
  const rung_value_type *inside = rung_body_input_type(body, FIRST + j), *next = rung_body_output_type(body, 1 + j);
  if (!rung_body_type_fits(inside, start) || !rung_body_type_fits(inside, next) || inside->kind != next->kind) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH,
                             "carried value %u is not of one type outside, into and out of the body", j);
  }
  for (int axis = 0; axis < inside->rank; axis++) {
    RUNG_TRY(carried_extent(infer, inner, inside->extent[axis], start->extent[axis], next->extent[axis]));
  }
  infer->out[j] = *inside;
  return RUNG_OK;
}

/* Scan r is stacked `count` times. Its own extents must mean the same in every iteration and outside. */
static rung_status infer_scan(rung_infer *infer, uint32_t r, rung_dim count, uint64_t inner) {
  const rung_value_type *slice = rung_body_output_type(infer->body[0], 1 + r);
  if (slice->kind != RUNG_VALUE_TENSOR || !(rung_type_takes(slice->type) & RUNG_TAKES_PLAIN) ||
      slice->rank == RUNG_MAX_RANK) {
    return rung_infer_refuse(infer, RUNG_TYPE_MISMATCH, "output %u of the body cannot be stacked", 1 + r);
  }
  infer->out[r] = rung_value_type_of(slice->type, slice->rank + 1);
  infer->out[r].place = slice->place;
  infer->out[r].extent[0] = count;
  for (int axis = 0; axis < slice->rank; axis++) {
    if (infer->dims->node[slice->extent[axis].id].symbols & inner) {
      return rung_infer_refuse(infer, RUNG_SHAPE_MISMATCH,
                               "extent %d of output %u of the body is not the same in every iteration", axis, 1 + r);
    }
    infer->out[r].extent[1 + axis] = slice->extent[axis];
  }
  return RUNG_OK;
}

static rung_status infer_loop(rung_infer *infer) {
  const rung_loop_attrs *attrs = infer->attrs;
  RUNG_TRY(check_signature(infer));
  const uint32_t carried = (uint32_t)attrs->carried, captures = infer->n_in - FIRST - carried;
  RUNG_TRY(rung_infer_body_inputs(infer, 0, FIRST + carried, captures, FIRST + carried));
  const uint64_t inner = rung_body_symbols(infer->body[0]);
  for (uint32_t j = 0; j < carried; j++) RUNG_TRY(infer_carried(infer, j, inner));
  if (infer->n_out == carried) return RUNG_OK;
  const uint64_t changing = inner | infer->made;
  rung_dim count = attrs->trip;
  if (!count.id || attrs->symbol[0]) {
    const char *name = attrs->symbol[0] ? attrs->symbol : NULL;
    count = rung_infer_symbol(infer, carried, 0, name, attrs->trip);
    if (!count.id)
      return rung_infer_refuse(infer, infer->dims->failure, "no symbol for the iterations: %s", infer->dims->reason);
  }
  for (uint32_t r = carried; r < infer->n_out; r++) RUNG_TRY(infer_scan(infer, r, count, changing));
  return RUNG_OK;
}

/* The slice of a scan that iteration i fills. */
static rung_operand slice_of(const rung_operand *scan, int64_t i) {
  rung_operand slice = *scan;
  slice.base += i * scan->stride[0] * rung_type_get((rung_type)scan->type)->bytes;
  slice.rank--;
  slice.extent++;
  slice.stride++;
  return slice;
}

/* Carried values live in the results from the start: run_body reads all of its operands before it writes a result. */
static rung_status start_loop(const rung_args *args, uint32_t carried, rung_operand *in) {
  for (uint32_t j = 0; j < carried; j++) {
    const rung_operand *start = &args->in[FIRST + j], *y = &args->out[j];
    for (int axis = 0; axis < y->rank; axis++) {
      if (start->extent[axis] == y->extent[axis]) continue;
      return rung_fail(args->error, RUNG_UNSUPPORTED,
                       "loop: the reference cannot change the extents of carried values");
    }
    if (!y->kv) rung_copy_operand(start, y);
    in[FIRST + j] = *y;
  }
  for (uint32_t i = FIRST + carried; i < args->n_in; i++) in[i] = args->in[i];
  return RUNG_OK;
}

static rung_status loop_reference(const rung_args *args) {
  const uint32_t carried = (uint32_t)((const rung_loop_attrs *)args->attrs)->carried;
  const int64_t trip = rung_load_i64(&args->in[0], 0);
  const int64_t rows = args->n_out > carried ? args->out[carried].extent[0] : -1; /* of the scans */
  int64_t iteration = 0;
  uint8_t go = rung_load_i64(&args->in[1], 0) != 0;
  rung_operand in[MOST_OPERANDS] = {{.base = (uint8_t *)&iteration, .type = RUNG_TYPE_I64},
                                    {.base = &go, .type = RUNG_TYPE_BOOL}};
  rung_operand out[MOST_OPERANDS] = {{.base = &go, .type = RUNG_TYPE_BOOL}};
  RUNG_TRY(start_loop(args, carried, in));
  for (; go && iteration < trip && iteration != rows; iteration++) {
    for (uint32_t r = 0; r < args->n_out; r++) {
      out[1 + r] = r < carried ? args->out[r] : slice_of(&args->out[r], iteration);
    }
    RUNG_TRY(args->run_body(args->self, 0, in, out));
  }
  if (rows < 0 || (iteration == rows && !(go && iteration < trip))) return RUNG_OK;
  return rung_fail(args->error, RUNG_OUT_OF_RANGE, "loop: has %s than the %lld iterations that its scans have room for",
                   iteration < rows ? "fewer" : "more", (long long)rows);
}

const rung_op rung_op_loop = {
    .name = "loop",
    .doc = "runs a body again and again; hands values from iteration to iteration and stacks others",
    .operands = (const char *const[]){"trip", "condition", "values...", NULL},
    .results_named = (const char *const[]){"y...", NULL},
    .in_lo = 2,
    .in_hi = 255,
    .bodies = 1,
    .flags = RUNG_OP_CONTROL | RUNG_OP_SIZES,
    .attrs = loop_attributes,
    .attrs_bytes = sizeof(rung_loop_attrs),
    .result_count = loop_results,
    .infer = infer_loop,
    .reference = loop_reference,
    .no_gradient = "unroll it, or train what is outside",
};
