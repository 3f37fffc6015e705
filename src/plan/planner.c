/* SPDX-License-Identifier: MIT
 * From a legal graph to steps: declarations become roots, views become references, the rest becomes kernel steps. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "plan/planner.h"

rung_status rung_planner_fail(rung_planner *p, rung_status status, const char *format, ...) {
  if (p->status) return p->status;
  va_list args;
  va_start(args, format);
  p->status = rung_fail_v(p->error, status, format, args);
  va_end(args);
  return p->status;
}

int64_t rung_planner_upper(rung_planner *p, rung_dim dim) {
  if (dim.id >= p->uppers) {
    const uint32_t count = p->dims->count;
    if (!rung_arena_grow(&p->work, (void **)&p->upper, &p->upper_capacity, count, sizeof *p->upper) ||
        !rung_arena_grow(&p->work, (void **)&p->lower, &p->lower_capacity, count, sizeof *p->lower)) {
      rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory");
      return INT64_MAX;
    }
    rung_dims_bounds(p->dims, p->plan->lo, p->plan->ceiling, p->lower, p->upper);
    p->uppers = count;
  }
  return p->upper[dim.id];
}

uint32_t rung_planner_step(rung_planner *p, rung_step_kind kind, const rung_op *op, const void *attrs,
                           const char *label) {
  const uint32_t at = RUNG_PUSH(p, step);
  if (at == RUNG_NONE) return RUNG_NONE;
  rung_step *step = &p->plan->step[at];
  *step = (rung_step){.kind = (uint8_t)kind,
                      .op = op,
                      .attrs = attrs,
                      .end = at + 1,
                      .label = RUNG_NONE,
                      .block = RUNG_NONE,
                      .loop = RUNG_NONE,
                      .symbol = RUNG_NONE,
                      .in = p->plan->refs,
                      .out = p->plan->refs};
  if (!label) return at;
  const uint32_t text =
      p->plan->labels && p->plan->label[p->plan->labels - 1] == label ? p->plan->labels - 1 : RUNG_PUSH(p, label);
  if (text == RUNG_NONE) return RUNG_NONE;
  p->plan->label[text] = label;
  p->plan->step[at].label = text;
  return at;
}

static const char *where(const rung_node *node) { return node->label ? node->label : "graph"; }

/* The structured op inside a fused node, or the node itself: roles and guards speak of it. */
static void roles_of(rung_planner *p, const rung_match *match, rung_dim *out_role, uint32_t *out_count) {
  const rung_op *op = match->node->op;
  if (match->node->bodies == 1 && op == &rung_op_fused) {
    const rung_graph *body = match->node->body[0];
    for (uint32_t i = 0; i < body->nodes; i++) {
      const rung_node *inner = &body->node[i];
      if (inner->op->flags & (RUNG_OP_DECLARES | RUNG_OP_ROW_LOCAL | RUNG_OP_ELEMENTWISE | RUNG_OP_VIEW)) continue;
      rung_match root;
      rung_match_init(&root, body, inner);
      roles_of(p, &root, out_role, out_count);
      return;
    }
  }
  *out_count = 1;
  rung_value_type in[256];
  for (uint32_t i = 0; i < match->n_in; i++) in[i] = *match->in[i];
  if (op->roles) {
    *out_count = 0;
    while (op->roles[*out_count]) ++*out_count;
  }
  if (op->role_dims) {
    op->role_dims(p->dims, in, match->n_in, match->out, match->node->attrs, out_role);
  } else {
    rung_dim elements = rung_dims_constant(p->dims, 1);
    for (int i = 0; i < match->out[0].rank; i++) elements = rung_dims_mul(p->dims, elements, match->out[0].extent[i]);
    out_role[0] = elements;
  }
}

/* Chooses kernel rows for the node and records them with roles and scratch on the step. */
static rung_status choose_kernels(rung_planner *p, uint32_t step_index, const rung_match *match, uint8_t *out_strides) {
  rung_dim role[RUNG_MAX_ROLES] = {{0}};
  uint32_t roles = 0;
  roles_of(p, match, role, &roles);
  int64_t upper[RUNG_MAX_ROLES];
  for (uint32_t i = 0; i < roles; i++) upper[i] = rung_planner_upper(p, role[i]);
  if (p->status) return p->status;
  const rung_kernel *rows[RUNG_MAX_VARIANTS];
  char why[160] = "";
  const size_t count = rung_target_match(p->target, match, upper, rows, RUNG_MAX_VARIANTS, why, sizeof why);
  if (!count)
    return rung_planner_fail(p, RUNG_UNSUPPORTED, "%s: device %s has no kernel for %s: %s", where(match->node),
                             p->target->name, match->node->op->name,
                             why[0] ? why : "no row of that op and these types");
  rung_step *step = &p->plan->step[step_index];
  step->roles = (uint8_t)roles;
  step->role = p->plan->roles;
  step->variant = p->plan->variants;
  step->variants = (uint8_t)count;
  for (uint32_t i = 0; i < roles; i++) {
    const uint32_t at = RUNG_PUSH(p, role);
    if (at == RUNG_NONE) return p->status;
    p->plan->role[at] = role[i];
  }
  *out_strides = RUNG_STRIDES_ANY;
  for (size_t i = 0; i < count; i++) {
    rung_variant variant = {.kernel = rows[i]};
    if (rows[i]->in_strides < *out_strides) *out_strides = rows[i]->in_strides;
    if (rows[i]->scratch) {
      const rung_dim align = rung_dims_constant(p->dims, 64);
      rung_dim bytes = rows[i]->scratch(p->dims, match, role);
      bytes = rung_dims_mul(
          p->dims, rung_dims_div(p->dims, rung_dims_add(p->dims, bytes, rung_dims_constant(p->dims, 63)), align),
          align);
      if (rows[i]->scratch_per_thread)
        bytes = rung_dims_mul(p->dims, bytes, rung_dims_constant(p->dims, p->plan->threads));
      if (!bytes.id)
        return rung_planner_fail(p, p->dims->failure ? p->dims->failure : RUNG_OVERFLOW, "%s: scratch of %s: %s",
                                 where(match->node), rows[i]->name,
                                 p->dims->reason ? p->dims->reason : "does not fit 64 bits");
      variant.scratch = bytes;
      const int64_t bound = rung_planner_upper(p, bytes);
      if ((uint64_t)bound > p->plan->scratch_bytes) p->plan->scratch_bytes = (uint64_t)bound;
    }
    const uint32_t at = RUNG_PUSH(p, variant);
    if (at == RUNG_NONE) return p->status;
    p->plan->variant[at] = variant;
  }
  return RUNG_OK;
}

/* Operand references stand one after another behind the step. */
static rung_status push_refs(rung_planner *p, const uint32_t *ref, uint32_t count, uint32_t *out_first) {
  *out_first = p->plan->refs;
  for (uint32_t i = 0; i < count; i++) {
    const rung_ref copy = p->plan->ref[ref[i]];
    if (rung_planner_ref(p, &copy) == RUNG_NONE) return p->status;
  }
  return RUNG_OK;
}

rung_status rung_planner_copy(rung_planner *p, uint32_t from, uint32_t to, const char *label) {
  if (from == RUNG_NONE || to == RUNG_NONE) return p->status;
  /* A cast to its own type is the copy kernel: it takes any strides. */
  rung_cast_attrs *attrs = rung_arena_alloc(&p->plan->arena, sizeof *attrs);
  rung_node *node = rung_arena_alloc(&p->plan->arena, sizeof *node);
  if (!attrs || !node) return rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory");
  attrs->type = (rung_type)p->plan->ref[to].type;
  *node = (rung_node){.op = &rung_op_cast, .attrs = attrs, .n_in = 1, .results = 1, .label = label};
  rung_value_type in, out;
  rung_ref_value_type(&p->plan->ref[from], &in);
  rung_ref_value_type(&p->plan->ref[to], &out);
  rung_match match = {.node = node, .n_in = 1, .out = &out, .n_out = 1};
  match.in[0] = &in;
  const uint32_t step = rung_planner_step(p, RUNG_STEP_KERNEL, &rung_op_cast, attrs, label);
  if (step == RUNG_NONE) return p->status;
  uint8_t strides;
  RUNG_TRY(choose_kernels(p, step, &match, &strides));
  uint32_t first;
  RUNG_TRY(push_refs(p, &from, 1, &first));
  p->plan->step[step].in = first;
  p->plan->step[step].n_in = 1;
  RUNG_TRY(push_refs(p, &to, 1, &first));
  p->plan->step[step].out = first;
  p->plan->step[step].n_out = 1;
  return RUNG_OK;
}

static rung_status result_refs(rung_planner *p, rung_scope *scope, const rung_node *node, uint32_t *out_ref) {
  if (node->op->flags & RUNG_OP_EFFECT) {
    out_ref[0] = scope->ref[node->in[0]];
    return RUNG_OK;
  }
  if (!(node->op->flags & RUNG_OP_COLUMNS) || node->results == 1) {
    for (uint32_t r = 0; r < node->results; r++) {
      out_ref[r] = rung_planner_buffer_ref(p, rung_graph_value_type(scope->graph, node->first_value + r));
      if (out_ref[r] == RUNG_NONE) return p->status;
    }
    return RUNG_OK;
  }
  /* Column ranges of one buffer whose rows hold all results. */
  rung_value_type whole = *rung_graph_value_type(scope->graph, node->first_value);
  const int last = whole.rank - 1;
  rung_dim columns = rung_dims_constant(p->dims, 0);
  for (uint32_t r = 0; r < node->results; r++)
    columns = rung_dims_add(p->dims, columns, rung_graph_value_type(scope->graph, node->first_value + r)->extent[last]);
  whole.extent[last] = columns;
  const uint32_t all = rung_planner_buffer_ref(p, &whole);
  if (all == RUNG_NONE) return p->status;
  rung_dim offset = rung_dims_constant(p->dims, 0);
  for (uint32_t r = 0; r < node->results; r++) {
    rung_ref part = p->plan->ref[all];
    part.extent[last] = rung_graph_value_type(scope->graph, node->first_value + r)->extent[last];
    part.offset = offset;
    offset = rung_dims_add(p->dims, offset, part.extent[last]);
    out_ref[r] = rung_planner_ref(p, &part);
    if (out_ref[r] == RUNG_NONE) return p->status;
  }
  return RUNG_OK;
}

/* bind_symbol: the scalar is passed on as it is, the symbol gets its value between two segments. */
static rung_status bind_node(rung_planner *p, rung_scope *scope, const rung_node *node) {
  const char *name = ((const rung_bind_symbol_attrs *)node->attrs)->symbol;
  const int symbol = rung_dims_find_symbol(p->dims, name, strlen(name));
  if (symbol < 0) return rung_planner_fail(p, RUNG_INTERNAL, "%s: symbol \"%s\" does not exist", where(node), name);
  const uint32_t step = rung_planner_step(p, RUNG_STEP_BIND, node->op, node->attrs, node->label);
  if (step == RUNG_NONE) return p->status;
  uint32_t first;
  RUNG_TRY(push_refs(p, &scope->ref[node->in[0]], 1, &first));
  p->plan->step[step].in = first;
  p->plan->step[step].n_in = 1;
  p->plan->step[step].symbol = (uint32_t)symbol;
  scope->ref[node->first_value] = scope->ref[node->in[0]];
  return RUNG_OK;
}

static rung_status kernel_node(rung_planner *p, rung_scope *scope, const rung_node *node) {
  enum { MAX_OPERANDS = 256 };
  if (node->n_in > MAX_OPERANDS || node->results > MAX_OPERANDS)
    return rung_planner_fail(p, RUNG_UNSUPPORTED, "%s: %s has %u operands, at most %d are planned", where(node),
                             node->op->name, node->n_in, MAX_OPERANDS);
  if (node->op->flags & RUNG_OP_EFFECT) RUNG_TRY(rung_planner_keep(p, scope, node, 0));
  rung_match match;
  rung_match_init(&match, scope->graph, node);
  /* Copies of irregular operands must come before the step, so kernels are chosen on a probe first. */
  const uint32_t mark_variant = p->plan->variants, mark_role = p->plan->roles;
  uint32_t step = rung_planner_step(p, RUNG_STEP_KERNEL, node->op, node->attrs, node->label);
  if (step == RUNG_NONE) return p->status;
  uint8_t strides;
  RUNG_TRY(choose_kernels(p, step, &match, &strides));
  uint32_t in[MAX_OPERANDS], out[MAX_OPERANDS];
  bool copies = false;
  for (uint32_t i = 0; i < node->n_in; i++) {
    in[i] = scope->ref[node->in[i]];
    if (in[i] == RUNG_NONE)
      return rung_planner_fail(p, RUNG_INTERNAL, "%s: operand %u of %s is not planned yet", where(node), i,
                               node->op->name);
    if (match.in[i]->kind == RUNG_VALUE_TENSOR && !rung_ref_is(p, &p->plan->ref[in[i]], strides)) copies = true;
  }
  if (copies) {
    p->plan->steps--;
    p->plan->variants = mark_variant;
    p->plan->roles = mark_role;
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (match.in[i]->kind != RUNG_VALUE_TENSOR || rung_ref_is(p, &p->plan->ref[in[i]], strides)) continue;
      rung_value_type type;
      rung_ref_value_type(&p->plan->ref[in[i]], &type);
      const uint32_t dense = rung_planner_buffer_ref(p, &type);
      RUNG_TRY(rung_planner_copy(p, in[i], dense, node->label));
      in[i] = dense;
    }
    step = rung_planner_step(p, RUNG_STEP_KERNEL, node->op, node->attrs, node->label);
    if (step == RUNG_NONE) return p->status;
    RUNG_TRY(choose_kernels(p, step, &match, &strides));
  }
  RUNG_TRY(result_refs(p, scope, node, out));
  uint32_t first;
  RUNG_TRY(push_refs(p, in, node->n_in, &first));
  p->plan->step[step].in = first;
  p->plan->step[step].n_in = (uint16_t)node->n_in;
  RUNG_TRY(push_refs(p, out, node->results, &first));
  p->plan->step[step].out = first;
  p->plan->step[step].n_out = (uint16_t)node->results;
  if (node->bodies) p->plan->step[step].body = node->body[0];
  for (uint32_t r = 0; r < node->results; r++) scope->ref[node->first_value + r] = out[r];
  return RUNG_OK;
}

/* ---- declarations */

static rung_status input_node(rung_planner *p, rung_scope *scope, const rung_node *node) {
  const rung_value_type *type = rung_graph_value_type(scope->graph, node->first_value);
  const uint32_t at = RUNG_PUSH(p, input);
  if (at == RUNG_NONE) return p->status;
  const rung_dim bytes = rung_planner_bytes(p, type);
  const uint32_t root = bytes.id ? rung_planner_root(p, RUNG_ROOT_INPUT, at, bytes) : RUNG_NONE;
  if (root == RUNG_NONE) return p->status;
  p->plan->input[at] =
      (rung_plan_input){.name = ((const rung_input_attrs *)node->attrs)->name, .type = *type, .root = root};
  scope->ref[node->first_value] = rung_planner_dense_ref(p, root, type);
  return p->status;
}

/* The place of a name in the table of weights, which is at most half full. */
static uint32_t *weight_place(rung_planner *p, const char *name) {
  const uint32_t mask = p->weight_places - 1;
  uint32_t at = (uint32_t)rung_hash64(name, strlen(name)) & mask;
  while (p->weight_table[at] && strcmp(p->plan->weight[p->weight_table[at] - 1].name, name) != 0) at = (at + 1) & mask;
  return &p->weight_table[at];
}

static bool grow_weight_table(rung_planner *p) {
  if (p->plan->weights < p->weight_places / 2) return true;
  const uint32_t places = p->weight_places ? p->weight_places * 2 : 64;
  uint32_t *table = rung_arena_array(&p->work, places, sizeof *table);
  if (!table) return false;
  memset(table, 0, places * sizeof *table);
  p->weight_table = table;
  p->weight_places = places;
  for (uint32_t i = 0; i < p->plan->weights; i++) *weight_place(p, p->plan->weight[i].name) = i + 1;
  return true;
}

static uint32_t weight_index(rung_planner *p, const char *name, const rung_value_type *type) {
  if (!grow_weight_table(p)) {
    rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory");
    return RUNG_NONE;
  }
  uint32_t *place = weight_place(p, name);
  if (*place) return *place - 1;
  const uint32_t at = RUNG_PUSH(p, weight);
  if (at == RUNG_NONE) return at;
  p->plan->weight[at] = (rung_plan_weight){.name = name, .type = *type};
  *place = at + 1;
  return at;
}

static rung_status weight_node(rung_planner *p, rung_scope *scope, const rung_node *node) {
  const rung_value_type *type = rung_graph_value_type(scope->graph, node->first_value);
  const uint32_t at = weight_index(p, ((const rung_weight_attrs *)node->attrs)->name, type);
  if (at == RUNG_NONE) return p->status;
  const uint32_t root = rung_planner_root(p, RUNG_ROOT_WEIGHT, at, (rung_dim){0});
  scope->ref[node->first_value] = rung_planner_dense_ref(p, root, type);
  return p->status;
}

static rung_status form_node(rung_planner *p, rung_scope *scope, const rung_node *node) {
  const rung_value_type *type = rung_graph_value_type(scope->graph, node->first_value);
  const rung_layout *layout = rung_target_layout(p->target, type->layout);
  int64_t rows = 1, k = 1;
  for (int i = 0; i < type->rank; i++) {
    int64_t extent;
    if (!rung_dims_is_constant(p->dims, type->extent[i], &extent))
      return rung_planner_fail(p, RUNG_INTERNAL, "%s: a form's extents must be constant", where(node));
    if (i == type->rank - 1)
      k = extent;
    else
      rows *= extent;
  }
  const uint32_t at = RUNG_PUSH(p, form);
  if (at == RUNG_NONE) return p->status;
  rung_plan_form form = {
      .node = node, .graph = scope->graph, .type = *type, .weight = p->plan->form_weights, .weights = node->n_in};
  form.bytes = layout ? rung_layout_bytes(layout, rows, k) : rung_type_bytes(type->type, (uint64_t)k) * (uint64_t)rows;
  for (uint32_t i = 0; i < node->n_in; i++) {
    const rung_node *source = rung_graph_producer(scope->graph, node->in[i]);
    if (source->op != &rung_op_weight)
      return rung_planner_fail(p, RUNG_INTERNAL, "%s: operand %u of a form is no weight", where(node), i);
    const uint32_t weight = weight_index(p, ((const rung_weight_attrs *)source->attrs)->name,
                                         rung_graph_value_type(scope->graph, node->in[i]));
    const uint32_t slot = RUNG_PUSH(p, form_weight);
    if (weight == RUNG_NONE || slot == RUNG_NONE) return p->status;
    p->plan->form_weight[slot] = weight;
  }
  p->plan->form[at] = form;
  const uint32_t root = rung_planner_root(p, RUNG_ROOT_FORM, at, (rung_dim){0});
  scope->ref[node->first_value] = rung_planner_dense_ref(p, root, type);
  return p->status;
}

static rung_status constant_node(rung_planner *p, rung_scope *scope, const rung_node *node) {
  const rung_constant_attrs *attrs = node->attrs;
  const uint32_t at = RUNG_PUSH(p, constant);
  uint8_t *data = rung_arena_alloc(&p->plan->arena, attrs->data.bytes + 64);
  if (at == RUNG_NONE || !data) return rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory for a constant");
  data += (64 - (uintptr_t)data % 64) % 64;
  if (attrs->data.bytes) memcpy(data, attrs->data.data, attrs->data.bytes);
  p->plan->constant[at] = (rung_plan_constant){data, attrs->data.bytes};
  const uint32_t root = rung_planner_root(p, RUNG_ROOT_CONSTANT, at, (rung_dim){0});
  scope->ref[node->first_value] =
      rung_planner_dense_ref(p, root, rung_graph_value_type(scope->graph, node->first_value));
  return p->status;
}

static rung_status state_node(rung_planner *p, rung_scope *scope, const rung_node *node) {
  const rung_state_attrs *attrs = node->attrs;
  const rung_value_type *type = rung_graph_value_type(scope->graph, node->first_value);
  const uint32_t at = RUNG_PUSH(p, state);
  if (at == RUNG_NONE) return p->status;
  const uint32_t root = rung_planner_root(p, RUNG_ROOT_STATE, at, (rung_dim){0});
  p->plan->state[at] = (rung_plan_state){.name = attrs->name, .type = *type, .window = attrs->window, .root = root};
  scope->ref[node->first_value] = rung_planner_dense_ref(p, root, type);
  return p->status;
}

static const struct {
  const rung_op *op;
  rung_status (*plan)(rung_planner *, rung_scope *, const rung_node *);
} special[] = {
    {&rung_op_input, input_node},       {&rung_op_weight, weight_node},    {&rung_op_form, form_node},
    {&rung_op_constant, constant_node}, {&rung_op_state, state_node},      {&rung_op_if, rung_planner_if},
    {&rung_op_loop, rung_planner_loop}, {&rung_op_bind_symbol, bind_node},
};

/* The inputs that describe ragged rows are those that append and attention read. */
static void note_ragged(rung_planner *p, const rung_scope *scope, const rung_node *node) {
  if (node->op != &rung_op_append || p->plan->ragged[0] != RUNG_NONE) return;
  for (uint32_t i = 0; i < 3; i++) {
    const rung_root *root = &p->plan->root[p->plan->ref[scope->ref[node->in[3 + i]]].root];
    if (root->kind == RUNG_ROOT_INPUT) p->plan->ragged[i] = root->index;
    p->plan->ragged_rows = rung_graph_value_type(scope->graph, node->in[1])->extent[0];
  }
}

static rung_status plan_node(rung_planner *p, rung_scope *scope, const rung_node *node) {
  for (size_t i = 0; i < RUNG_COUNT(special); i++)
    if (special[i].op == node->op) return special[i].plan(p, scope, node);
  if (node->op->flags & RUNG_OP_VIEW) {
    const uint32_t ref = rung_planner_view(p, scope->graph, node, scope->ref[node->in[0]]);
    if (p->status) return p->status;
    if (ref != RUNG_NONE) {
      scope->ref[node->first_value] = ref;
      return RUNG_OK;
    }
  }
  RUNG_TRY(kernel_node(p, scope, node));
  note_ragged(p, scope, node);
  return RUNG_OK;
}

rung_status rung_planner_scope(rung_planner *p, const rung_graph *graph, rung_scope *out_scope) {
  out_scope->graph = graph;
  out_scope->ref = rung_arena_array(&p->work, graph->values + 1, sizeof *out_scope->ref);
  if (!out_scope->ref) return rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory");
  for (uint32_t i = 0; i < graph->values; i++) out_scope->ref[i] = RUNG_NONE;
  return RUNG_OK;
}

rung_status rung_planner_nodes(rung_planner *p, rung_scope *scope) {
  for (uint32_t i = 0; i < scope->graph->nodes; i++) {
    const rung_node *node = &scope->graph->node[i];
    if (node->op == &rung_op_input && scope->graph->parent)
      continue; /* a body's inputs are its captures, set by control.c */
    RUNG_TRY(plan_node(p, scope, node));
  }
  return p->status;
}

static rung_status plan_outputs(rung_planner *p, rung_scope *scope) {
  for (uint32_t i = 0; i < scope->graph->outputs; i++) {
    const rung_output *output = &scope->graph->output[i];
    const rung_value_type *type = rung_graph_value_type(scope->graph, output->value);
    const uint32_t from = scope->ref[output->value];
    if (type->kind == RUNG_VALUE_STATE_KV)
      return rung_planner_fail(p, RUNG_UNSUPPORTED,
                               "output \"%s\" is a key/value state; its effect is kept without an output",
                               output->name);
    const uint32_t at = RUNG_PUSH(p, output);
    if (at == RUNG_NONE) return p->status;
    rung_root *root = &p->plan->root[p->plan->ref[from].root];
    uint32_t index = p->plan->ref[from].root;
    if (root->kind == RUNG_ROOT_BUFFER && rung_ref_covers_root(p, &p->plan->ref[from])) {
      root->kind = RUNG_ROOT_OUTPUT;
      root->index = at;
    } else {
      const rung_dim bytes = rung_planner_bytes(p, type);
      index = bytes.id ? rung_planner_root(p, RUNG_ROOT_OUTPUT, at, bytes) : RUNG_NONE;
      const uint32_t to = rung_planner_dense_ref(p, index, type);
      RUNG_TRY(rung_planner_copy(p, from, to, output->name));
    }
    if (index == RUNG_NONE) return p->status;
    p->plan->output[at] = (rung_plan_output){.name = output->name, .type = *type, .root = index};
    p->plan->output[at].type.kind = RUNG_VALUE_TENSOR;
  }
  return p->status;
}

static rung_status push_checks(rung_planner *p, const rung_graph *graph) {
  for (uint32_t i = 0; i < graph->checks; i++) {
    const uint32_t at = RUNG_PUSH(p, check);
    if (at == RUNG_NONE) return p->status;
    p->plan->check[at] = graph->check[i];
  }
  return RUNG_OK;
}

rung_status rung_planner_block(rung_planner *p, const rung_graph *graph, uint32_t first, rung_block *out) {
  const uint32_t check = p->plan->checks;
  RUNG_TRY(push_checks(p, graph));
  for (uint32_t i = 0; i < graph->nodes; i++) /* what is fused runs as one step of the block */
    if (graph->node[i].op == &rung_op_fused) RUNG_TRY(push_checks(p, graph->node[i].body[0]));
  *out = (rung_block){.first = first, .end = p->plan->steps, .check = check, .checks = p->plan->checks - check};
  return RUNG_OK;
}

static rung_status make(rung_planner *p, const rung_graph *graph) {
  rung_scope scope;
  RUNG_TRY(rung_planner_scope(p, graph, &scope));
  RUNG_TRY(rung_planner_nodes(p, &scope));
  RUNG_TRY(plan_outputs(p, &scope));
  RUNG_TRY(rung_planner_block(p, graph, 0, &p->plan->whole));
  RUNG_TRY(rung_planner_lifetimes(p));
  RUNG_TRY(
      rung_plan_place(p->host, p->plan->buffer, p->plan->buffers, p->target->align, p->error, &p->plan->arena_bytes));
  RUNG_TRY(rung_plan_check_overlap(p->host, p->plan->buffer, p->plan->buffers, p->error));
  return rung_planner_compact(p);
}

rung_status rung_plan_make(rung_host *host, const rung_graph *graph, const rung_target *target, const int64_t *lo,
                           const int64_t *ceiling, int threads, rung_error *error, rung_plan **out_plan) {
  rung_plan *plan = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *plan, 0);
  if (!plan) return rung_fail(error, RUNG_OUT_OF_MEMORY, "plan: out of memory");
  rung_host_retain(host);
  rung_arena_init(&plan->arena, host);
  plan->graph = graph;
  plan->target = target;
  plan->threads = threads < 1 ? 1 : threads;
  for (int i = 0; i < 3; i++) plan->ragged[i] = RUNG_NONE;
  memcpy(plan->lo, lo, sizeof plan->lo);
  memcpy(plan->ceiling, ceiling, sizeof plan->ceiling);
  plan->dims = rung_dims_clone(graph->dims);
  rung_planner p = {.plan = plan, .host = host, .target = target, .dims = plan->dims, .error = error};
  rung_arena_init_raw(&p.work, host);
  const rung_status status = p.dims ? make(&p, graph) : rung_fail(error, RUNG_OUT_OF_MEMORY, "plan: out of memory");
  rung_arena_finish(&p.work);
  if (status) {
    rung_plan_destroy(plan);
    return status;
  }
  *out_plan = plan;
  return RUNG_OK;
}

void rung_plan_destroy(rung_plan *plan) {
  if (!plan) return;
  rung_host *host = plan->arena.host;
  rung_dims_release(plan->dims);
  rung_arena_finish(&plan->arena);
  rung_host_free(host, RUNG_MEMORY_host, plan, sizeof *plan);
  rung_host_release(host);
}
