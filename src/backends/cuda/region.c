/* SPDX-License-Identifier: MIT
 * Regions: what they may consist of, and their launches. region_text.c writes the kernels. */
#include "backends/cuda/region.h"

#include <stdio.h>
#include <string.h>

#include "ops/attrs.h"
#include "ops/elementwise.h"
#include "ops/op_table.h"
#include "ops/shape.h"

enum { WHY_BYTES = 120, MOST_COLUMNS = 16384 };

static bool refuse(char *why, const char *text) {
  if (why) snprintf(why, WHY_BYTES, "%s", text);
  return false;
}

static bool is_plain(int type) { return type <= RUNG_TYPE_BOOL; }

static bool is_norm(const rung_op *op) { return op == &rung_op_rms_norm || op == &rung_op_layer_norm; }
static bool is_row_op(const rung_op *op) { return is_norm(op) || op == &rung_op_quantize_rows; }

/* Narrow floats are rounded from double once by the reference; a kernel that computes in f32 rounds twice. That is
 * within the tolerances of all ops but the exact ones, whose results are numbers of the type already. */
static bool takes(const rung_op *op, const uint8_t *in, int n, int out) {
  for (int i = 0; i < n; i++)
    if (!is_plain(in[i])) return false;
  if (is_row_op(op)) {
    for (int i = 0; i < n; i++)
      if (!rung_cuda_is_float(in[i])) return false;
    return op == &rung_op_quantize_rows ? out == RUNG_TYPE_A8 : rung_cuda_is_float(out);
  }
  return is_plain(out) && (op == &rung_op_cast || rung_row_of(op));
}

static bool add_op(rung_region_list *list, const rung_op *op, const void *attrs, const int *in, int n, int out_type,
                   char *why) {
  if (list->ops == RUNG_REGION_OPS || list->values == RUNG_REGION_VALUES) return refuse(why, "it has too many ops");
  uint8_t type[3];
  if (n > 3) return refuse(why, "an op has too many operands");
  for (int i = 0; i < n; i++) type[i] = list->type[in[i]];
  if (op && !takes(op, type, n, out_type)) {
    if (why) snprintf(why, WHY_BYTES, "no generated code for %.40s of these types", op->name);
    return false;
  }
  rung_region_op *o = &list->op[list->ops++];
  *o = (rung_region_op){.op = op, .attrs = attrs, .n_in = n, .out = list->values};
  for (int i = 0; i < n; i++) o->in[i] = in[i];
  list->type[list->values++] = (uint8_t)out_type;
  return true;
}

/* Rows: extents agree with those of the first result, and the last is a constant. */
static bool find_columns(const rung_match *match, rung_region_list *list, char *why) {
  bool rows = false;
  for (int i = 0; i < list->ops; i++) rows |= list->op[i].op && is_row_op(list->op[i].op);
  list->columns = 0;
  if (!rows) return true;
  const rung_value_type *out = &match->out[0];
  int64_t columns;
  if (!out->rank || !rung_dims_is_constant(match->graph->dims, out->extent[out->rank - 1], &columns))
    return refuse(why, "rows of an extent that is not a constant");
  if (columns < 1 || columns > MOST_COLUMNS) return refuse(why, "rows are too long");
  list->columns = columns;
  return true;
}

static bool read_constant(const rung_graph *body, uint32_t value, rung_region_list *list, char *why) {
  const rung_node *node = rung_graph_producer(body, value);
  const rung_value_type *type = rung_graph_value_type(body, value);
  int64_t count = 1, extent;
  for (int a = 0; a < type->rank; a++) {
    if (!rung_dims_is_constant(body->dims, type->extent[a], &extent)) return refuse(why, "a constant of open extents");
    count *= extent;
  }
  if (count != 1 || !is_plain(type->type)) return refuse(why, "a constant of several numbers");
  if (!add_op(list, NULL, NULL, NULL, 0, type->type, why)) return false;
  const rung_operand o = {.base = (uint8_t *)(uintptr_t)((const rung_constant_attrs *)node->attrs)->data.data,
                          .type = (uint8_t)type->type};
  list->op[list->ops - 1].constant =
      rung_type_is_float(type->type) ? rung_load_f64(&o, 0) : (double)rung_load_i64(&o, 0);
  return true;
}

static bool read_body(const rung_match *match, rung_region_list *list, char *why) {
  const rung_graph *body = match->node->body[0];
  int of[256];
  if (body->values > RUNG_COUNT(of)) return refuse(why, "its body is too large");
  int input = 0;
  for (uint32_t i = 0; i < body->nodes; i++) {
    const rung_node *node = &body->node[i];
    if (node->op == &rung_op_input) {
      of[node->first_value] = input++;
      continue;
    }
    if (node->op == &rung_op_constant) {
      if (!read_constant(body, node->first_value, list, why)) return false;
    } else {
      int in[3];
      for (uint32_t k = 0; k < node->n_in && k < 3; k++) in[k] = of[node->in[k]];
      if (node->results != 1) return refuse(why, "an op has several results");
      if (!add_op(list, node->op, node->attrs, in, (int)node->n_in,
                  rung_graph_value_type(body, node->first_value)->type, why))
        return false;
    }
    of[node->first_value] = list->values - 1;
  }
  list->outputs = (int)body->outputs;
  for (uint32_t r = 0; r < body->outputs; r++) list->output[r] = of[body->output[r].value];
  return true;
}

/* What quantize_rows makes can only be written. */
static bool only_written(const rung_region_list *list, char *why) {
  for (int i = 0; i < list->ops; i++)
    for (int k = 0; k < list->op[i].n_in; k++)
      if (list->type[list->op[i].in[k]] == RUNG_TYPE_A8) return refuse(why, "a quantised row is read inside");
  return true;
}

bool rung_region_read(const rung_match *match, rung_region_list *out, char *why) {
  *out = (rung_region_list){.inputs = (int)match->n_in, .values = (int)match->n_in};
  if (match->n_in > RUNG_KERNEL_IN || match->n_out > RUNG_KERNEL_OUT) return refuse(why, "it has too many operands");
  for (uint32_t i = 0; i < match->n_in; i++) {
    if (!is_plain(match->in[i]->type) || match->in[i]->layout || match->in[i]->kind != RUNG_VALUE_TENSOR)
      return refuse(why, "an operand is not of plain numbers");
    out->type[i] = (uint8_t)match->in[i]->type;
  }
  if (match->node->bodies) {
    if (!read_body(match, out, why)) return false;
  } else {
    int in[3] = {0, 1, 2};
    if (!add_op(out, match->node->op, match->node->attrs, in, (int)match->n_in, match->out[0].type, why)) return false;
    out->outputs = 1;
    out->output[0] = out->values - 1;
  }
  return only_written(out, why) && find_columns(match, out, why);
}

bool rung_region_fits(const rung_match *match, char *why) {
  rung_region_list list;
  return rung_region_read(match, &list, why);
}

/* ---- preparing: the match of a planned step */

static void match_of(const rung_cuda_prepare *in, rung_node *node, rung_value_type *type, rung_match *match) {
  const rung_step *step = in->step;
  rung_graph **body = NULL;
  if (step->body) {
    body = rung_arena_array(in->arena, 1, sizeof *body);
    if (body) body[0] = (rung_graph *)(uintptr_t)step->body;
  }
  *node = (rung_node){.op = step->op,
                      .attrs = step->attrs,
                      .n_in = step->n_in,
                      .results = step->n_out,
                      .bodies = body ? 1 : 0,
                      .body = body};
  *match = (rung_match){
      .graph = in->plan->graph, .node = node, .n_in = step->n_in, .out = match->out_type, .n_out = step->n_out};
  for (uint32_t i = 0; i < (uint32_t)step->n_in + step->n_out; i++) {
    const rung_ref *ref = &in->plan->ref[i < step->n_in ? step->in + i : step->out + i - step->n_in];
    type[i] = (rung_value_type){.type = (rung_type)ref->type, .rank = (int8_t)ref->rank, .layout = ref->layout};
    for (int a = 0; a < ref->rank; a++) type[i].extent[a] = ref->extent[a];
    if (i < step->n_in)
      match->in[i] = &type[i];
    else
      match->out_type[i - step->n_in] = type[i];
  }
}

typedef struct region_own {
  int64_t columns;
  rung_region_cut cut;
  int operands, outputs;
} region_own;

rung_status rung_region_of_step(const rung_cuda_prepare *in, rung_region_list *out) {
  if (in->step->n_in > RUNG_KERNEL_IN || in->step->n_out > RUNG_KERNEL_OUT)
    return rung_fail(in->error, RUNG_INTERNAL, "cuda: a region of too many operands");
  rung_node node;
  rung_value_type type[RUNG_REGION_OPERANDS];
  rung_match *match = rung_arena_alloc(in->arena, sizeof *match);
  if (!match) return rung_fail(in->error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare a region");
  match_of(in, &node, type, match);
  char why[WHY_BYTES] = "";
  if (!rung_region_read(match, out, why))
    return rung_fail(in->error, RUNG_INTERNAL, "cuda: a region that was promised has no kernel: %s", why);
  return RUNG_OK;
}

rung_status rung_region_prepare(const rung_cuda_prepare *in, rung_text *front) {
  region_own *own = rung_arena_alloc(in->arena, sizeof *own);
  rung_region_list *list = rung_arena_alloc(in->arena, sizeof *list);
  if (!own || !list) return rung_fail(in->error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare a region");
  RUNG_TRY(rung_region_of_step(in, list));
  list->eights = in->plan->target->deterministic && rung_region_has_norm(list);
  rung_region_print_front(front);
  rung_region_print(list, front);
  *own = (region_own){.columns = list->columns,
                      .cut = {.threads = 256, .part = 1, .blocks = 1},
                      .operands = list->inputs + list->outputs,
                      .outputs = list->outputs};
  if (list->columns) own->cut = rung_region_cut_of(list);
  in->prepared->own = own;
  return RUNG_OK;
}

/* ---- launching */

/* As kernels have it (region_text.c prints the same). */
typedef struct region_params {
  uint64_t base[RUNG_REGION_OPERANDS];
  int64_t count; /* elements, or rows */
  int32_t rank, pad;
  int64_t extent[RUNG_MAX_RANK];
  int64_t stride[RUNG_REGION_OPERANDS][RUNG_MAX_RANK];
} region_params;

/* Neighbouring axes that lie in a row for every operand become one. */
static void collapse(region_params *p, int operands, int keep) {
  for (int a = p->rank - 2 - keep; a >= 0; a--) {
    bool joins = true;
    for (int k = 0; k < operands; k++) joins &= p->stride[k][a] == p->stride[k][a + 1] * p->extent[a + 1];
    if (!joins) continue;
    p->extent[a + 1] *= p->extent[a];
    for (int b = a; b + 1 < p->rank; b++) {
      p->extent[b] = p->extent[b + 1];
      for (int k = 0; k < operands; k++) p->stride[k][b] = p->stride[k][b + 1];
    }
    p->rank--;
  }
}

rung_status rung_region_launch(const rung_cuda_step *step) {
  const rung_args *args = step->args;
  const region_own *own = args->prepared;
  const rung_operand *shape = &args->out[0];
  region_params p = {.rank = shape->rank};
  for (int a = 0; a < shape->rank; a++) p.extent[a] = shape->extent[a];
  for (int k = 0; k < own->operands; k++) {
    const rung_operand *o = k < args->n_in ? &args->in[k] : &args->out[k - args->n_in];
    const int lead = shape->rank - o->rank;
    p.base[k] = (uint64_t)(uintptr_t)o->base;
    for (int a = 0; a < o->rank; a++) p.stride[k][a + lead] = o->extent[a] == 1 ? 0 : o->stride[a];
    /* Blocks of 32: the last axis counts blocks where a kernel writes them. */
    if (o->type == RUNG_TYPE_A8 && o->rank) p.stride[k][shape->rank - 1] = 1;
  }
  const int keep = own->columns ? 1 : 0;
  collapse(&p, own->operands, keep);
  p.count = 1;
  for (int a = 0; a < p.rank - keep; a++) p.count *= p.extent[a];
  const int threads = own->cut.threads;
  const int64_t blocks = keep ? p.count : rung_cuda_blocks(p.count, threads, (int64_t)step->device->processors * 32);
  return rung_cuda_emit(step, 0, blocks, own->cut.blocks, 1, (uint32_t)threads, 0, &p, sizeof p);
}
