/* SPDX-License-Identifier: MIT
 * ONNX control flow. A sub-graph becomes a body; what it reads from around it is captured as an operand. */
#include <stdio.h>
#include <string.h>

#include "formats/onnx/import.h"
#include "ops/control.h"

/* ---- sub-graphs */

typedef struct sub {
  onnx_body *body;
  onnx_scope *scope;
  const onnx_graph *graph;
} sub;

static bool begin(onnx_call *c, const char *attr, sub *s) {
  const onnx_attr *a = onnx_attr_find(c, attr);
  if (!a || !a->g) {
    onnx_refuse(c, RUNG_CORRUPT_FILE, "it has no %s", attr);
    return false;
  }
  s->graph = a->g;
  s->body = onnx_body_create(c->imp, c->scope->body, rung_graph_body(c->g));
  s->scope = s->body ? onnx_scope_create(c->imp, c->scope, s->body, a->g) : NULL;
  return s->scope && !onnx_failed(c);
}

static bool fill(onnx_call *c, sub *s) {
  for (uint32_t i = 0; i < s->graph->tensors && !c->imp->status; i++)
    (void)onnx_bind_name(s->scope, s->graph->tensor[i].name,
                         onnx_tensor_value(s->scope, &s->graph->tensor[i], s->graph->tensor[i].name));
  if (c->imp->status) return false;
  return !onnx_import_nodes(s->scope, s->graph->node, s->graph->nodes);
}

static rung_value result_of(onnx_call *c, sub *s, uint32_t i) {
  const rung_value v = onnx_look_up(s->scope, s->graph->output[i].name);
  if (!v.id && !c->imp->status)
    onnx_refuse(c, RUNG_CORRUPT_FILE, "nothing gives the output \"%s\" of its sub-graph",
                onnx_show(s->graph->output[i].name).text);
  return v;
}

static void finish(onnx_call *c, sub *s, uint32_t from, uint32_t count) {
  char name[24];
  for (uint32_t i = from; i < from + count && !onnx_failed(c); i++) {
    snprintf(name, sizeof name, "y%u", i);
    const rung_value v = result_of(c, s, i);
    if (v.id) rung_graph_output(s->body->g, name, v);
  }
}

static void take_results(onnx_call *c, const rung_node *node, uint32_t skip) {
  if (!node) return;
  for (uint32_t i = 0; i < c->n_out && i + skip < node->results; i++)
    c->out[i] = rung_node_result(c->g, node, i + skip);
}

/* ---- if */

/* A branch that is known is imported in the place of the node. */
static void known_branch(onnx_call *c, const char *attr) {
  const onnx_attr *a = onnx_attr_find(c, attr);
  if (!a || !a->g) {
    onnx_refuse(c, RUNG_CORRUPT_FILE, "it has no %s", attr);
    return;
  }
  sub s = {.body = c->scope->body, .graph = a->g};
  s.scope = onnx_scope_create(c->imp, c->scope, c->scope->body, a->g);
  if (!s.scope || !fill(c, &s)) return;
  for (uint32_t i = 0; i < c->n_out && i < a->g->outputs; i++) c->out[i] = result_of(c, &s, i);
}

/* Both bodies take the same captures in the same order. */
static void share_captures(onnx_call *c, sub *a, sub *b) {
  for (uint32_t i = 0; i < b->body->captures && !onnx_failed(c); i++)
    (void)onnx_capture(c->imp, a->body, b->body->outside[i]);
}

/* Results of different ranks have no type: which branch it is must be known. */
static bool ranks_differ(onnx_call *c, sub *yes, sub *no) {
  for (uint32_t i = 0; i < yes->graph->outputs && i < no->graph->outputs; i++) {
    const rung_value a = result_of(c, yes, i), b = result_of(c, no, i);
    if (!a.id || !b.id) return true;
    const int ranks[2] = {rung_build_type(yes->body->g, a)->rank, rung_build_type(no->body->g, b)->rank};
    if (ranks[0] == ranks[1]) continue;
    const char *name = onnx_root(c, c->in[0]);
    if (name)
      onnx_refuse(c, RUNG_NOT_FOUND, "its branches have results of %d and %d axes; which is taken depends on: %s",
                  ranks[0], ranks[1], name);
    else
      onnx_refuse(c, RUNG_UNSUPPORTED, "its branches have results of %d and %d axes", ranks[0], ranks[1]);
    return true;
  }
  return onnx_failed(c);
}

/* A branch that cannot be built may be one that is never taken: whoever knows which it is can say so. */
static void ask_which(onnx_call *c) {
  onnx_import *imp = c->imp;
  const rung_status why = imp->status;
  if (!why || why == RUNG_NOT_FOUND || why == RUNG_OUT_OF_MEMORY || why == RUNG_CORRUPT_FILE) return;
  imp->status = RUNG_OK;
  const char *name = rung_graph_status(c->g) ? NULL : onnx_root(c, c->in[0]);
  rung_error before = *imp->error;
  imp->status = why;
  if (!name) return;
  imp->status = rung_fail(imp->error, RUNG_NOT_FOUND, "%.300s; whether this branch is taken depends on: %s",
                          before.message, name);
}

void onnx_build_if(onnx_call *c);
void onnx_build_if(onnx_call *c) {
  double known;
  uint32_t count = 0;
  rung_value condition = c->in[0];
  if (onnx_scalar_known(c, condition, &known)) {
    known_branch(c, known != 0 ? "then_branch" : "else_branch");
    return;
  }
  const onnx_symbolic *s = onnx_symbolic_of(c->imp, c->scope->body, condition, &count);
  int64_t value;
  if (s && count == 1 && s[0].dim.id && rung_dims_is_constant(c->g->dims, s[0].dim, &value)) {
    known_branch(c, value ? "then_branch" : "else_branch");
    return;
  }
  if (onnx_rank(c, condition)) condition = onnx_reshape(c, condition, 0, NULL);
  sub yes, no;
  if (!begin(c, "then_branch", &yes) || !fill(c, &yes) || !begin(c, "else_branch", &no)) {
    ask_which(c);
    return;
  }
  for (uint32_t i = 0; i < yes.body->captures && !onnx_failed(c); i++)
    (void)onnx_capture(c->imp, no.body, yes.body->outside[i]);
  if (!fill(c, &no)) {
    ask_which(c);
    return;
  }
  if (ranks_differ(c, &yes, &no)) return;
  finish(c, &yes, 0, yes.graph->outputs);
  finish(c, &no, 0, no.graph->outputs);
  share_captures(c, &yes, &no);
  if (onnx_failed(c)) return;
  take_results(c, rung_build_if(c->g, condition, yes.body->g, no.body->g, yes.body->outside, yes.body->captures), 0);
}

/* ---- loop */

/* A value that a loop hands on: its extents inside. Where the body changes one, a made symbol takes its place and the
 * body is imported again. */
typedef struct carried {
  rung_value_type inside;
  bool open[RUNG_MAX_RANK];
} carried;

static rung_value body_input(onnx_call *c, sub *s, const char *letter, uint32_t i, const rung_value_type *type) {
  char name[24];
  (void)c;
  snprintf(name, sizeof name, "%s%u", letter, i);
  return rung_graph_input(s->body->g, name, type->type, type->rank, type->extent);
}

/* Imports the body once; false on failure. *out_changed: an extent is not what it was on the way in. */
static bool try_loop(onnx_call *c, sub *s, carried *v, uint32_t n, bool *out_changed) {
  if (!begin(c, "body", s)) return false;
  if (s->graph->inputs != n + 2 || s->graph->outputs < n + 1) {
    onnx_refuse(c, RUNG_CORRUPT_FILE, "its body has %u inputs and %u outputs for %u carried values", s->graph->inputs,
                s->graph->outputs, n);
    return false;
  }
  rung_value iteration = rung_graph_input(s->body->g, "iteration", RUNG_TYPE_I64, 0, NULL);
  rung_value go = rung_graph_input(s->body->g, "condition", RUNG_TYPE_BOOL, 0, NULL);
  const rung_dim one = rung_graph_constant_dim(s->body->g, 1);
  if (s->graph->input[0].rank == 1) iteration = rung_build_reshape(s->body->g, iteration, 1, &one);
  if (s->graph->input[1].rank == 1) go = rung_build_reshape(s->body->g, go, 1, &one);
  (void)onnx_bind_name(s->scope, s->graph->input[0].name, iteration);
  (void)onnx_bind_name(s->scope, s->graph->input[1].name, go);
  for (uint32_t i = 0; i < n; i++)
    (void)onnx_bind_name(s->scope, s->graph->input[2 + i].name, body_input(c, s, "v", i, &v[i].inside));
  if (!fill(c, s)) return false;
  *out_changed = false;
  for (uint32_t i = 0; i < n; i++) {
    const rung_value y = result_of(c, s, 1 + i);
    if (!y.id) return false;
    const rung_value_type *type = rung_build_type(s->body->g, y);
    if (type->rank != v[i].inside.rank) {
      onnx_refuse(c, RUNG_UNSUPPORTED, "carried value %u has %d axes, then %d", i, v[i].inside.rank, type->rank);
      return false;
    }
    for (int axis = 0; axis < type->rank; axis++) {
      if (v[i].open[axis] || rung_dim_same(type->extent[axis], v[i].inside.extent[axis])) continue;
      v[i].open[axis] = *out_changed = true;
    }
  }
  return !onnx_failed(c);
}

void onnx_build_loop(onnx_call *c);
void onnx_build_loop(onnx_call *c) {
  const uint32_t n = c->n_in > 2 ? c->n_in - 2 : 0;
  carried *v = (carried *)rung_arena_array(&c->imp->arena, (size_t)n + 1, sizeof *v);
  if (!v) {
    onnx_refuse(c, RUNG_OUT_OF_MEMORY, "no memory");
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (!c->in[2 + i].id) onnx_refuse(c, RUNG_UNSUPPORTED, "carried value %u is left out", i);
    v[i].inside = *onnx_type(c, c->in[2 + i]);
  }
  sub s = {0};
  bool changed = true;
  for (int round = 0; changed; round++) {
    if (round == 4) {
      onnx_refuse(c, RUNG_UNSUPPORTED, "the extents of its carried values do not settle");
      return;
    }
    for (uint32_t i = 0; i < n; i++)
      for (int axis = 0; axis < v[i].inside.rank; axis++) {
        if (!v[i].open[axis] || round == 0) continue;
        rung_dim bound = onnx_declared(c, i, axis);
        if (!bound.id) bound = onnx_largest(c);
        v[i].inside.extent[axis] = rung_dims_make_symbol(c->g->dims, NULL, bound);
        if (!v[i].inside.extent[axis].id)
          onnx_refuse(c, c->g->dims->failure, "no symbol for a carried extent: %s", c->g->dims->reason);
      }
    if (onnx_failed(c) || !try_loop(c, &s, v, n, &changed)) return;
  }
  rung_value go = result_of(c, &s, 0);
  if (onnx_failed(c)) return;
  if (rung_build_type(s.body->g, go)->rank) go = rung_build_reshape(s.body->g, go, 0, NULL);
  rung_graph_output(s.body->g, "condition", go);
  finish(c, &s, 1, s.graph->outputs - 1);
  if (onnx_failed(c)) return;
  rung_value *values = (rung_value *)rung_arena_array(&c->imp->arena, (size_t)n + s.body->captures + 1, sizeof *values);
  if (!values) {
    onnx_refuse(c, RUNG_OUT_OF_MEMORY, "no memory");
    return;
  }
  for (uint32_t i = 0; i < n; i++) values[i] = c->in[2 + i];
  for (uint32_t i = 0; i < s.body->captures; i++) values[n + i] = s.body->outside[i];
  rung_value trip = onnx_has(c, 0) ? onnx_element(c, c->in[0], 0) : rung_build_null();
  rung_value start = onnx_has(c, 1) ? c->in[1] : rung_build_null();
  if (start.id && onnx_rank(c, start)) start = onnx_reshape(c, start, 0, NULL);
  rung_loop_attrs attrs = {.carried = n, .symbol = ""};
  char symbol[24];
  if (s.graph->outputs > n + 1) { /* rows are stacked: as many as iterations */
    rung_dim_list known = {0};
    snprintf(symbol, sizeof symbol, "loop_%u", ++c->imp->fresh);
    attrs.symbol = symbol;
    if (trip.id && onnx_dims_known(c, trip, &known) && known.dim[0].id && c->g->dims->node[known.dim[0].id].lo >= 0)
      attrs.trip = known.dim[0];
    else
      attrs.trip = onnx_declared(c, n, 0);
    if (!attrs.trip.id) attrs.trip = onnx_largest(c);
  }
  take_results(c, rung_build_loop(c->g, trip, start, s.body->g, values, n + s.body->captures, &attrs), 0);
}

/* ---- scan */

static int64_t at(const rung_i64_list *list, uint32_t i) { return (int32_t)i < list->count ? list->value[i] : 0; }

static rung_value reversed(onnx_call *c, rung_value x) {
  const rung_value_type t = *onnx_type(c, x);
  rung_slice_attrs attrs = {.start = {.count = t.rank}, .length = {.count = t.rank}, .step = {.count = t.rank}};
  for (int i = 0; i < t.rank; i++) {
    attrs.start.dim[i] = onnx_dim(c, 0);
    attrs.length.dim[i] = t.extent[i];
    attrs.step.value[i] = 1;
  }
  attrs.start.dim[0] = rung_graph_dim(c->g, RUNG_DIM_SUB, t.extent[0], onnx_dim(c, 1));
  attrs.step.value[0] = -1;
  return onnx_op(c, &rung_op_slice, x, &attrs);
}

void onnx_build_scan(onnx_call *c);
void onnx_build_scan(onnx_call *c) {
  const int64_t rows = onnx_int(c, "num_scan_inputs", 0);
  rung_i64_list in_axes, out_axes, in_back, out_back;
  (void)onnx_int_list(c, "scan_input_axes", &in_axes);
  (void)onnx_int_list(c, "scan_output_axes", &out_axes);
  (void)onnx_int_list(c, "scan_input_directions", &in_back);
  (void)onnx_int_list(c, "scan_output_directions", &out_back);
  sub s;
  if (rows < 1 || rows > c->n_in || !begin(c, "body", &s)) {
    if (!onnx_failed(c)) onnx_refuse(c, RUNG_CORRUPT_FILE, "num_scan_inputs is %lld", (long long)rows);
    return;
  }
  const uint32_t n = c->n_in, states = n - (uint32_t)rows;
  if (s.graph->inputs != n || s.graph->outputs < states) {
    onnx_refuse(c, RUNG_CORRUPT_FILE, "its body has %u inputs and %u outputs", s.graph->inputs, s.graph->outputs);
    return;
  }
  rung_value value[ONNX_MAX_INPUTS];
  for (uint32_t i = 0; i < n && !onnx_failed(c); i++) {
    value[i] = c->in[i];
    rung_value_type type = *onnx_type(c, value[i]);
    if (i >= states) {
      const uint32_t k = i - states;
      value[i] = onnx_move_axis(c, value[i], onnx_axis(c, at(&in_axes, k), type.rank), 0);
      if (at(&in_back, k)) value[i] = reversed(c, value[i]);
      type = *onnx_type(c, value[i]);
      type.rank--;
      memmove(type.extent, type.extent + 1, (RUNG_MAX_RANK - 1) * sizeof type.extent[0]);
    }
    (void)onnx_bind_name(s.scope, s.graph->input[i].name, body_input(c, &s, "v", i, &type));
  }
  if (onnx_failed(c) || !fill(c, &s)) return;
  finish(c, &s, 0, s.graph->outputs);
  if (onnx_failed(c) || n + s.body->captures > ONNX_MAX_INPUTS) return;
  for (uint32_t i = 0; i < s.body->captures; i++) value[n + i] = s.body->outside[i];
  take_results(c, rung_build_scan(c->g, s.body->g, value, n + s.body->captures, states, (uint32_t)rows), 0);
  for (uint32_t i = states; i < c->n_out && !onnx_failed(c); i++) {
    if (!c->out[i].id) continue;
    if (at(&out_back, i - states)) c->out[i] = reversed(c, c->out[i]);
    const int axis = onnx_axis(c, at(&out_axes, i - states), onnx_rank(c, c->out[i]));
    c->out[i] = onnx_move_axis(c, c->out[i], 0, axis);
  }
}
