/* SPDX-License-Identifier: MIT
 * storage, fused nodes: operands that are kept narrow become f32 inside, results are rounded where they leave. What a
 * product at the root multiplies stays as it comes: kernels take no prologue. */
#include "ops/attrs.h"
#include "ops/build.h"
#include "ops/op_table.h"
#include "passes/policy.h"
#include "passes/storage.h"

typedef struct result {
  uint32_t value; /* of `from` that it stands for */
  rung_type type;
  rung_value inner;
} result;

typedef struct remaker {
  rung_keeper *k;
  rung_graph *body;
  rung_rewrite inner;             /* from the old body; of a lone op: its own map of operands */
  rung_value in[RUNG_KERNEL_IN];  /* operands in `to` */
  rung_value raw[RUNG_KERNEL_IN]; /* the same in the body */
  uint32_t n_in;
  result out[2 * RUNG_KERNEL_OUT], passed[RUNG_KERNEL_OUT]; /* passed: `inner` is an operand in `to` */
  uint32_t n_out, n_passed;
} remaker;

static rung_value widened(rung_graph *body, rung_value value) {
  const rung_type type = rung_graph_value_type(body, value.id)->type;
  return rung_type_is_narrow(type) ? rung_build_cast(body, value, RUNG_TYPE_F32) : value;
}

/* ---- the question for a kernel, before anything is added to the graph */

static bool has_kernel(const rung_keeper *k, rung_graph *body, char *why, size_t why_bytes) {
  const rung_node node = {
      .op = &rung_op_fused, .n_in = body->inputs, .results = body->outputs, .bodies = 1, .body = &body};
  rung_value_type out[2 * RUNG_KERNEL_OUT];
  if (body->outputs > RUNG_KERNEL_OUT || body->inputs > RUNG_KERNEL_IN) return false;
  rung_match match = {.graph = k->rw.to, .node = &node, .n_in = body->inputs, .out = out, .n_out = body->outputs};
  for (uint32_t i = 0; i < body->inputs; i++)
    match.in[i] = rung_graph_value_type(body, body->node[body->input[i]].first_value);
  for (uint32_t r = 0; r < body->outputs; r++) out[r] = *rung_graph_value_type(body, body->output[r].value);
  int64_t upper[RUNG_MAX_ROLES];
  for (int i = 0; i < RUNG_MAX_ROLES; i++) upper[i] = INT64_MAX;
  const rung_kernel *rows[RUNG_MAX_VARIANTS];
  return rung_target_match(k->env->target, &match, upper, rows, RUNG_MAX_VARIANTS, why, why_bytes) > 0;
}

rung_status rung_keeper_try_lone(rung_keeper *k, const rung_node *node, rung_type type, bool *out_is) {
  const rung_graph *g = k->rw.from;
  *out_is = false;
  if (node->n_in > RUNG_KERNEL_IN || k->rw.to->depth >= RUNG_MAX_NESTING) return RUNG_OK;
  rung_graph *body = rung_graph_body(k->rw.to);
  rung_value in[RUNG_KERNEL_IN];
  for (uint32_t i = 0; i < node->n_in; i++) {
    rung_value_type own = *rung_graph_value_type(g, node->in[i]);
    if (rung_is_plain_f32(&own)) own.type = type;
    in[i] = rung_body_input(body, 'x', i, &own);
  }
  for (uint32_t i = 0; i < node->n_in && !rung_graph_status(body); i++)
    if (rung_graph_value_type(g, node->in[i])->type == RUNG_TYPE_F32) in[i] = widened(body, in[i]);
  rung_value made = rung_graph_op(body, node->op, in, node->n_in, node->attrs);
  if (made.id && rung_graph_value_type(body, made.id)->type == RUNG_TYPE_F32) made = rung_build_cast(body, made, type);
  if (made.id) rung_body_output(body, 0, made);
  if (rung_graph_status(body)) return rung_pass_failed(k->env, body);
  *out_is = has_kernel(k, body, NULL, 0);
  rung_body_discard(k->rw.to, body);
  return RUNG_OK;
}

/* ---- bodies */

/* The old operand i as operand of the new node. `f32`: that is asked for. */
static void add_operand(remaker *m, uint32_t value, bool f32) {
  const rung_value_type *type = rung_graph_value_type(m->k->rw.from, value);
  const bool tensor = rung_is_plain_f32(type);
  m->in[m->n_in] = !tensor ? m->k->rw.map[value]
                   : f32   ? rung_keeper_get(m->k, value, RUNG_TYPE_F32)
                           : rung_keeper_kept(m->k, value);
  if (rung_graph_status(m->k->rw.to)) return;
  const rung_value_type now = *rung_graph_value_type(m->k->rw.to, m->in[m->n_in].id);
  m->raw[m->n_in] = rung_body_input(m->body, 'x', m->n_in, &now);
  m->n_in++;
}

static void add_result(remaker *m, uint32_t value, rung_type type, rung_value inner) {
  m->out[m->n_out++] = (result){.value = value, .type = type, .inner = inner};
}

/* Value `of` of the old body as `type`: a cast that is there already, else a new one. */
static rung_value rounded(remaker *m, uint32_t of, rung_type type) {
  const rung_graph *old = m->inner.from;
  for (uint32_t i = 0; old && i < old->nodes; i++) {
    const rung_node *node = &old->node[i];
    if (node->op == &rung_op_cast && node->in[0] == of && rung_graph_value_type(old, node->first_value)->type == type)
      return m->inner.map[node->first_value];
  }
  return rung_build_cast(m->body, m->inner.map[of], type);
}

static uint32_t input_of(const rung_graph *body, uint32_t value) {
  for (uint32_t i = 0; i < body->inputs; i++)
    if (body->node[body->input[i]].first_value == value) return i;
  return UINT32_MAX;
}

/* The operand of `type` that value `of` of the old body is, cast to f32; null if it is none. */
static rung_value passed_on(const remaker *m, uint32_t of, rung_type type) {
  const rung_graph *old = m->inner.from;
  const rung_node *node = rung_graph_producer(old, of);
  const uint32_t input = input_of(old, node->op == &rung_op_cast ? node->in[0] : of);
  const bool is = input != UINT32_MAX && rung_graph_value_type(m->body, m->raw[input].id)->type == type;
  return is ? m->in[input] : (rung_value){0, 0};
}

/* A result: as what it is kept in, as f32 where somebody reads that. What comes in so is not written again. */
static void add_results(remaker *m, uint32_t value, uint32_t of) {
  rung_keeper *k = m->k;
  const rung_value_type *type = rung_graph_value_type(k->rw.from, value);
  const rung_type kept = k->kept[value];
  if (type->type != RUNG_TYPE_F32 || kept == RUNG_TYPE_F32) {
    add_result(m, value, RUNG_TYPE_F32, m->inner.map[of]);
    return;
  }
  const rung_value same = passed_on(m, of, kept);
  if (same.id)
    m->passed[m->n_passed++] = (result){.value = value, .type = kept, .inner = same};
  else
    add_result(m, value, kept, rounded(m, of, kept));
  if (k->wants[value] & RUNG_WANT_F32) add_result(m, value, RUNG_TYPE_F32, m->inner.map[of]);
}

static const rung_node *root_of(const rung_graph *body) {
  for (uint32_t i = 0; i < body->nodes; i++)
    if (rung_op_computes(body->node[i].op)) return &body->node[i];
  return NULL;
}

static bool reads(const rung_node *node, uint32_t value) {
  for (uint32_t i = 0; node && i < node->n_in; i++)
    if (node->in[i] == value) return true;
  return false;
}

/* A node of the old body; the root reads operands as they come. */
static rung_status copy_inner(remaker *m, const rung_graph *old, uint32_t index, const rung_node *root) {
  const rung_node *node = &old->node[index];
  rung_value in[RUNG_KERNEL_IN];
  if (node == root && node->n_in <= RUNG_KERNEL_IN) {
    for (uint32_t i = 0; i < node->n_in; i++) {
      const uint32_t input = input_of(old, node->in[i]);
      in[i] = input == UINT32_MAX ? m->inner.map[node->in[i]] : m->raw[input];
    }
    return rung_rewrite_copy_with(&m->inner, index, in, node->n_in) ? RUNG_OK : rung_graph_status(m->body);
  }
  for (uint32_t i = 0; i < node->n_in; i++) {
    const uint32_t input = input_of(old, node->in[i]);
    rung_value *as = &m->inner.map[node->in[i]];
    if (input == UINT32_MAX || as->id) continue;
    const bool f32 = rung_graph_value_type(old, node->in[i])->type == RUNG_TYPE_F32;
    *as = f32 ? widened(m->body, m->raw[input]) : m->raw[input];
  }
  return rung_rewrite_copy(&m->inner, index);
}

static rung_status remake_fused(remaker *m, const rung_node *node) {
  const rung_graph *old = node->body[0];
  const rung_node *root = root_of(old);
  const bool one_type =
      root && root->op != &rung_op_matmul && root->op != &rung_op_grouped_matmul && root->op != &rung_op_expert_matmul;
  for (uint32_t i = 0; i < node->n_in; i++)
    add_operand(m, node->in[i], one_type && reads(root, old->node[old->input[i]].first_value));
  RUNG_TRY(rung_graph_status(m->k->rw.to));
  RUNG_TRY(rung_rewrite_init(&m->inner, old, m->body, m->k->env->error));
  for (uint32_t i = 0; i < old->nodes; i++)
    if (old->node[i].op != &rung_op_input) RUNG_TRY(copy_inner(m, old, i, root));
  for (uint32_t r = 0; r < node->results; r++) {
    const uint32_t of = old->output[r].value, input = input_of(old, of);
    if (input != UINT32_MAX && !m->inner.map[of].id) m->inner.map[of] = widened(m->body, m->raw[input]);
    add_results(m, node->first_value + r, of);
  }
  return rung_graph_status(m->body);
}

/* A row-local op that stands alone. */
static rung_status remake_lone(remaker *m, const rung_node *node) {
  const rung_keeper *k = m->k;
  rung_value in[RUNG_KERNEL_IN];
  for (uint32_t i = 0; i < node->n_in; i++) add_operand(m, node->in[i], false);
  RUNG_TRY(rung_graph_status(k->rw.to));
  for (uint32_t i = 0; i < node->n_in; i++)
    in[i] =
        rung_graph_value_type(k->rw.from, node->in[i])->type == RUNG_TYPE_F32 ? widened(m->body, m->raw[i]) : m->raw[i];
  rung_graph_label(m->body, node->label);
  const rung_value made = rung_graph_op(m->body, node->op, in, node->n_in, node->attrs);
  const uint32_t value = node->first_value;
  if (!made.id) return rung_graph_status(m->body);
  const rung_type kept = k->kept[value];
  if (kept != RUNG_TYPE_F32) add_result(m, value, kept, rung_build_cast(m->body, made, kept));
  if (kept == RUNG_TYPE_F32 || (k->wants[value] & RUNG_WANT_F32)) add_result(m, value, RUNG_TYPE_F32, made);
  return rung_graph_status(m->body);
}

/* ---- the node */

/* Where it gives more than a kernel can: f32 beside what is kept goes first, by a cast of its own. */
static void drop_some(remaker *m) {
  for (uint32_t i = m->n_out; i-- > 0 && m->n_out > RUNG_KERNEL_OUT;) {
    const bool beside = i && m->out[i - 1].value == m->out[i].value;
    if (!beside) continue;
    for (uint32_t j = i; j + 1 < m->n_out; j++) m->out[j] = m->out[j + 1];
    m->n_out--;
  }
}

/* Outputs, each value of the body once; *out_place: which of them a result is. */
static void end_body(remaker *m, uint32_t *out_place) {
  uint32_t made = 0;
  for (uint32_t i = 0; i < m->n_out; i++) {
    uint32_t same = 0;
    while (same < i && m->out[same].inner.id != m->out[i].inner.id) same++;
    out_place[i] = same < i ? out_place[same] : made++;
    if (same == i) rung_body_output(m->body, out_place[i], m->out[i].inner);
  }
}

static rung_status append(remaker *m, const rung_node *node, const uint32_t *place) {
  rung_keeper *k = m->k;
  rung_graph *to = k->rw.to;
  rung_graph_label(to, node->label);
  const rung_node *made = rung_graph_append(to, &rung_op_fused, m->in, m->n_in, NULL, &m->body, 1);
  if (!made) return rung_pass_failed(k->env, to);
  for (uint32_t i = 0; i < m->n_out; i++) {
    const result *r = &m->out[i];
    *(r->type == RUNG_TYPE_F32 ? &k->rw.map[r->value] : &k->narrow[r->type][r->value]) =
        rung_node_result(to, made, place[i]);
  }
  for (uint32_t i = 0; i < m->n_passed; i++) k->narrow[m->passed[i].type][m->passed[i].value] = m->passed[i].inner;
  return RUNG_OK;
}

rung_status rung_keeper_body(rung_keeper *k, const rung_node *node, bool *out_done) {
  remaker m = {.k = k};
  uint32_t place[2 * RUNG_KERNEL_OUT];
  char why[160] = "";
  *out_done = false;
  if (node->n_in > RUNG_KERNEL_IN || node->results > RUNG_KERNEL_OUT || k->rw.to->depth >= RUNG_MAX_NESTING)
    return RUNG_OK;
  rung_graph_label(k->rw.to, node->label);
  m.body = rung_graph_body(k->rw.to);
  const rung_status status = node->op == &rung_op_fused ? remake_fused(&m, node) : remake_lone(&m, node);
  if (rung_graph_status(k->rw.to)) return rung_pass_failed(k->env, k->rw.to);
  if (status) return rung_graph_status(m.body) ? rung_pass_failed(k->env, m.body) : status;
  drop_some(&m);
  end_body(&m, place);
  if (rung_graph_status(m.body)) return rung_pass_failed(k->env, m.body);
  *out_done = has_kernel(k, m.body, why, sizeof why);
  if (*out_done) return append(&m, node, place);
  rung_body_discard(k->rw.to, m.body);
  rung_note(k->env, RUNG_NOTE_NEARLY, node->label, node->op->name, why[0] ? why : "too many results");
  return RUNG_OK;
}
