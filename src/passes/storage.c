/* SPDX-License-Identifier: MIT
 * storage: behind fusion, what lies between kernels is kept in the type that the policy has for the op that makes it.
 *
 *   fused(x, ..)  ->  fused: x' as f32, what was there, cast of the result: only what crosses is rounded
 *   other ops     ->  the same op on narrow operands, where the target's kernels for it are those that it has for f32
 *   row-local ops that stand alone  ->  a fused node of one op
 *
 * A value is kept narrow if its op can give it so and some reader takes it so; else nothing would be gained but a
 * rounding. Readers that need f32 get it from the fused node that has it, or by a cast. What moves numbers goes the way
 * that its operand came. Bodies of `if` and `loop` begin and end with the types that they have. */
#include "passes/storage.h"

#include <string.h>

#include "ops/attrs.h"
#include "ops/build.h"
#include "ops/op_table.h"
#include "passes/policy.h"

rung_status rung_pass_storage(rung_pass_env *env, const rung_graph *from, rung_graph *to);

static bool is_f32(const rung_graph *g, uint32_t value) { return rung_is_plain_f32(rung_graph_value_type(g, value)); }

/* ---- values of `to` */

/* A constant's numbers as another type; null if it is none. */
static rung_value constant_as(rung_keeper *k, uint32_t value, rung_type type) {
  const rung_graph *g = k->rw.from;
  const rung_blob *data = rung_constant_of(g, value);
  const rung_node *node = rung_graph_producer(g, value);
  if (!data || node->op != &rung_op_constant) return (rung_value){0, 0};
  rung_value_type narrow = *rung_graph_value_type(g, value);
  narrow.type = type;
  const uint64_t count = data->bytes / sizeof(float);
  const rung_blob made = {.data = rung_arena_alloc(&k->rw.to->arena, (size_t)count * 2 + 1), .bytes = count * 2};
  if (!made.data) {
    rung_graph_fail(k->rw.to, RUNG_OUT_OF_MEMORY, "out of memory");
    return (rung_value){0, 0};
  }
  for (uint64_t i = 0; i < count; i++) {
    float x;
    memcpy(&x, data->data + i * sizeof x, sizeof x);
    rung_type_get(type)->from_f32(&x, (uint8_t *)(uintptr_t)made.data + 2 * i, 1);
  }
  const rung_constant_attrs attrs = {.data = made};
  const rung_node *constant = rung_graph_declare(k->rw.to, &rung_op_constant, &attrs, &narrow);
  return constant ? rung_node_result(k->rw.to, constant, 0) : (rung_value){0, 0};
}

/* A value of f32 as `type`: as it was made, else by a cast that all its readers share. */
rung_value rung_keeper_get(rung_keeper *k, uint32_t value, rung_type type) {
  rung_value *as = type == RUNG_TYPE_F32 ? &k->rw.map[value] : &k->narrow[type][value];
  if (as->id) return *as;
  if (type != RUNG_TYPE_F32) *as = constant_as(k, value, type);
  if (as->id) return *as;
  rung_value made = k->rw.map[value];
  for (int t = RUNG_TYPE_F16; t < RUNG_PRECISION_ENDS && !made.id; t++) made = k->narrow[t][value];
  return *as = rung_build_cast(k->rw.to, made, type);
}

/* What a reader that takes f32 as well as what is kept gets. */
rung_value rung_keeper_kept(rung_keeper *k, uint32_t value) {
  const rung_type type = k->kept[value];
  return rung_type_is_narrow(type) && k->narrow[type][value].id ? k->narrow[type][value]
                                                                : rung_keeper_get(k, value, RUNG_TYPE_F32);
}

/* ---- which nodes can be narrow */

static const rung_kernel *typed_for(const rung_kernel *row, rung_type type) {
  for (uint32_t i = 0; i < row->n_in_type; i++)
    if (row->in_type[i] == type) return row;
  return NULL;
}

/* The narrow node's kernels are those of the one in f32, or made for the type: so it is no slower. Neither has any: what
 * they decompose into decides. */
static bool as_good(const rung_keeper *k, const rung_match *wide, const rung_match *narrow, rung_type type) {
  int64_t upper[RUNG_MAX_ROLES];
  for (int i = 0; i < RUNG_MAX_ROLES; i++) upper[i] = INT64_MAX;
  const rung_kernel *a[RUNG_MAX_VARIANTS], *b[RUNG_MAX_VARIANTS];
  const size_t n = rung_target_match(k->env->target, wide, upper, a, RUNG_MAX_VARIANTS, NULL, 0);
  const size_t m = rung_target_match(k->env->target, narrow, upper, b, RUNG_MAX_VARIANTS, NULL, 0);
  bool good = n == m || (m && typed_for(b[0], type));
  for (size_t i = 0; good && i < m; i++) good = (i < n && a[i] == b[i]) || typed_for(b[i], type);
  return good;
}

/* Attributes with the type of the result changed, in memory of `to`; others as they are. */
static const void *attrs_as(rung_keeper *k, const rung_node *node, rung_type type) {
  if (!rung_op_is_product(node->op)) return node->attrs;
  void *attrs = rung_attrs_copy(node->op, &k->rw.to->arena, node->attrs);
  if (!attrs) return NULL;
  if (node->op == &rung_op_matmul)
    ((rung_matmul_attrs *)attrs)->type = type;
  else if (node->op == &rung_op_grouped_matmul)
    ((rung_grouped_matmul_attrs *)attrs)->type = type;
  else
    ((rung_expert_matmul_attrs *)attrs)->type = type;
  return attrs;
}

/* Products keep their factors, which an earlier pass has cast; others take the narrow type. */
static bool takes_as(const rung_keeper *k, const rung_node *node, uint32_t operand) {
  return is_f32(k->rw.from, node->in[operand]) && !rung_op_is_product(node->op);
}

/* Operands of states: the shape rules of these two are known to take narrow rows. */
static rung_status whole_with_state(rung_keeper *k, const rung_node *node, rung_type type, bool *out_is) {
  if (node->op != &rung_op_append && node->op != &rung_op_attention_kv) return RUNG_OK;
  rung_match *match = (rung_match *)rung_arena_array(&k->rw.to->arena, 2, sizeof *match);
  rung_value_type *in = (rung_value_type *)rung_arena_array(&k->rw.to->arena, node->n_in, sizeof *in);
  if (!match || !in) return rung_pass_no_memory(k->env);
  for (int i = 0; i < 2; i++) rung_match_init(&match[i], k->rw.from, node);
  for (uint32_t i = 0; i < node->n_in; i++) {
    in[i] = *match[1].in[i];
    if (takes_as(k, node, i)) in[i].type = type;
    match[1].in[i] = &in[i];
  }
  for (uint32_t r = 0; r < node->results; r++)
    if (is_f32(k->rw.from, node->first_value + r)) match[1].out_type[r].type = type;
  *out_is = as_good(k, &match[0], &match[1], type);
  return RUNG_OK;
}

static bool has_state(const rung_graph *g, const rung_node *node) {
  for (uint32_t i = 0; i < node->n_in; i++)
    if (rung_graph_value_type(g, node->in[i])->kind != RUNG_VALUE_TENSOR) return true;
  return false;
}

/* Tried in a body of its own: what the op's shape rule makes of narrow operands, and whether kernels like it. */
static rung_status fits_whole(rung_keeper *k, const rung_node *node, rung_type type, bool *out_is) {
  const rung_graph *g = k->rw.from;
  *out_is = false;
  if (k->rw.to->depth >= RUNG_MAX_NESTING) return RUNG_OK;
  if (has_state(g, node)) return whole_with_state(k, node, type, out_is);
  rung_value *in = (rung_value *)rung_arena_array(&k->rw.to->arena, node->n_in, sizeof *in);
  rung_match *match = (rung_match *)rung_arena_array(&k->rw.to->arena, 2, sizeof *match);
  const void *attrs = attrs_as(k, node, type);
  if (!in || !match || (node->attrs && !attrs)) return rung_pass_no_memory(k->env);
  rung_graph *body = rung_graph_body(k->rw.to);
  for (uint32_t i = 0; i < node->n_in; i++) {
    rung_value_type own = *rung_graph_value_type(g, node->in[i]);
    if (takes_as(k, node, i)) own.type = type;
    in[i] = rung_body_input(body, 'x', i, &own);
  }
  if (rung_graph_status(body)) return rung_pass_failed(k->env, body);
  const rung_node *tried = rung_graph_append(body, node->op, in, node->n_in, attrs, NULL, 0);
  if (rung_graph_status(body) == RUNG_OUT_OF_MEMORY) return rung_pass_failed(k->env, body);
  bool is = tried != NULL;
  for (uint32_t r = 0; is && r < node->results; r++)
    is = !is_f32(g, node->first_value + r) || rung_graph_value_type(body, tried->first_value + r)->type == type;
  if (is && !(node->op->flags & RUNG_OP_VIEW)) {
    rung_match_init(&match[0], g, node);
    rung_match_init(&match[1], body, tried);
    is = as_good(k, &match[0], &match[1], type);
  }
  rung_body_discard(k->rw.to, body);
  *out_is = is;
  return RUNG_OK;
}

static bool deals_in_f32(const rung_graph *g, const rung_node *node) {
  for (uint32_t i = 0; i < node->n_in; i++)
    if (is_f32(g, node->in[i])) return true;
  for (uint32_t r = 0; r < node->results; r++)
    if (is_f32(g, node->first_value + r)) return true;
  return false;
}

/* A cast between f32 and a narrow type is no work: it says which of a value's types is read, or kept. */
static bool is_between(const rung_graph *g, const rung_node *node) {
  if (node->op != &rung_op_cast) return false;
  const rung_value_type *in = rung_graph_value_type(g, node->in[0]);
  const rung_type out = rung_graph_value_type(g, node->first_value)->type;
  if (in->kind != RUNG_VALUE_TENSOR || in->layout) return false;
  return (in->type == RUNG_TYPE_F32 && rung_type_is_narrow(out)) ||
         (rung_type_is_narrow(in->type) && out == RUNG_TYPE_F32);
}

static bool is_lone(const rung_node *node) {
  return (node->op->flags & (RUNG_OP_ELEMENTWISE | RUNG_OP_ROW_LOCAL)) && node->results == 1 && !node->bodies;
}

static rung_status find_way(rung_keeper *k, uint32_t index) {
  const rung_graph *g = k->rw.from;
  const rung_node *node = &g->node[index];
  const rung_type type = rung_precision_of(k->policy, node->op);
  enum { APART = RUNG_OP_DECLARES | RUNG_OP_CONTROL | RUNG_OP_SIZES | RUNG_OP_RANDOM };
  k->way[index] = RUNG_KEEP_F32;
  if (node->op == &rung_op_fused) {
    k->way[index] = RUNG_KEEP_BODY;
    return RUNG_OK;
  }
  if (is_between(g, node)) {
    k->way[index] = RUNG_KEEP_CAST;
    return RUNG_OK;
  }
  if (type == RUNG_TYPE_F32 || node->bodies || !node->n_in || (node->op->flags & APART) || !deals_in_f32(g, node) ||
      (node->results && k->exact[node->first_value]))
    return RUNG_OK;
  const rung_target *target = k->env->target;
  bool is = false;
  if (rung_op_computes(node->op) && !rung_op_is_product(node->op) &&
      (k->policy->compute != type || (target->multiplies_narrow && !target->multiplies_narrow(target, node->op, type))))
    return RUNG_OK;
  if (is_lone(node)) RUNG_TRY(rung_keeper_try_lone(k, node, type, &is));
  if (is) {
    k->way[index] = RUNG_KEEP_BODY;
    return RUNG_OK;
  }
  RUNG_TRY(fits_whole(k, node, type, &is));
  if (is) k->way[index] = RUNG_KEEP_WHOLE;
  if (!is) rung_note(k->env, RUNG_NOTE_NEARLY, node->label, node->op->name, "stays in f32: no kernel as good for less");
  return RUNG_OK;
}

/* ---- which values are kept narrow */

/* The op that makes result r. */
static const rung_op *maker_of(const rung_node *node, uint32_t r) {
  if (node->op != &rung_op_fused) return node->op;
  const rung_graph *body = node->body[0];
  return rung_graph_producer(body, body->output[r].value)->op;
}

static bool passes_on(const rung_graph *g, const rung_node *node) {
  return rung_op_moves(node->op) && node->results && is_f32(g, node->first_value);
}

static void find_wants(rung_keeper *k) {
  const rung_graph *g = k->rw.from;
  const bool narrow = k->rw.to->depth == 0 && k->policy->boundary != RUNG_TYPE_F32;
  for (uint32_t i = 0; i < g->outputs; i++) k->wants[g->output[i].value] |= narrow ? RUNG_WANT_NARROW : RUNG_WANT_F32;
  for (uint32_t i = g->nodes; i-- > 0;) {
    const rung_node *node = &g->node[i];
    uint8_t want = k->way[i] == RUNG_KEEP_F32 ? RUNG_WANT_F32 : RUNG_WANT_NARROW;
    if (k->way[i] == RUNG_KEEP_WHOLE && passes_on(g, node)) want = k->wants[node->first_value];
    if (k->way[i] == RUNG_KEEP_WHOLE && rung_op_is_product(node->op)) want = RUNG_WANT_F32;
    for (uint32_t n = 0; n < node->n_in; n++) k->wants[node->in[n]] |= want;
  }
}

/* What a whole narrow op is made of: true if it is better left in f32. Of operands that are narrow already it needs no
 * cast. Operands of f32 are not cast for it: a sum would be of rounded numbers, and a mean of large ones an infinity. */
static bool stays_f32(const rung_node *node, bool reads, bool gives) {
  return rung_op_is_product(node->op) ? !gives : !reads;
}

static void find_kept(rung_keeper *k, uint32_t index) {
  const rung_graph *g = k->rw.from;
  const rung_node *node = &g->node[index];
  bool reads = false, gives = !node->results || (node->op->flags & RUNG_OP_EFFECT);
  for (uint32_t i = 0; i < node->n_in; i++) reads |= rung_type_is_narrow(k->kept[node->in[i]]);
  for (uint32_t r = 0; r < node->results; r++)
    gives |= is_f32(g, node->first_value + r) && (k->wants[node->first_value + r] & RUNG_WANT_NARROW) &&
             !k->exact[node->first_value + r];
  if (node->op == &rung_op_input && k->rw.to->depth == 0) {
    if (is_f32(g, node->first_value)) k->kept[node->first_value] = k->policy->boundary;
    return;
  }
  if (k->way[index] == RUNG_KEEP_CAST) {
    if (is_f32(g, node->first_value)) k->kept[node->first_value] = rung_graph_value_type(g, node->in[0])->type;
    return;
  }
  if (k->way[index] == RUNG_KEEP_WHOLE && stays_f32(node, reads, gives)) k->way[index] = RUNG_KEEP_F32;
  if (k->way[index] == RUNG_KEEP_BODY && !reads && !gives) k->way[index] = RUNG_KEEP_F32;
  for (uint32_t r = 0; r < node->results; r++) {
    const uint32_t value = node->first_value + r;
    const bool whole = k->way[index] == RUNG_KEEP_WHOLE;
    if (k->way[index] != RUNG_KEEP_F32 && is_f32(g, value) &&
        (whole || ((k->wants[value] & RUNG_WANT_NARROW) && !k->exact[value])))
      k->kept[value] = rung_precision_of(k->policy, maker_of(node, r));
  }
}

/* ---- rewriting */

static rung_status copy_f32(rung_keeper *k, uint32_t index) {
  const rung_node *node = &k->rw.from->node[index];
  rung_graph_label(k->rw.to, node->label);
  for (uint32_t i = 0; i < node->n_in; i++)
    if (is_f32(k->rw.from, node->in[i])) rung_keeper_get(k, node->in[i], RUNG_TYPE_F32);
  if (rung_graph_status(k->rw.to)) return rung_pass_failed(k->env, k->rw.to);
  return rung_pass_copy(k->env, &k->rw, index, rung_pass_storage);
}

static rung_status copy_whole(rung_keeper *k, uint32_t index) {
  const rung_node *node = &k->rw.from->node[index];
  rung_graph *to = k->rw.to;
  const rung_type type = rung_precision_of(k->policy, node->op);
  rung_value *in = (rung_value *)rung_arena_array(&to->arena, node->n_in, sizeof *in);
  const void *attrs = attrs_as(k, node, type);
  if (!in || (node->attrs && !attrs)) return rung_pass_no_memory(k->env);
  rung_graph_label(to, node->label);
  for (uint32_t i = 0; i < node->n_in; i++)
    in[i] = takes_as(k, node, i)              ? rung_keeper_get(k, node->in[i], type)
            : is_f32(k->rw.from, node->in[i]) ? rung_keeper_get(k, node->in[i], RUNG_TYPE_F32)
                                              : k->rw.map[node->in[i]];
  const rung_node *made = rung_graph_append(to, node->op, in, node->n_in, attrs, NULL, 0);
  if (!made) return rung_pass_failed(k->env, to);
  for (uint32_t r = 0; r < node->results; r++) {
    const uint32_t value = node->first_value + r;
    *(is_f32(k->rw.from, value) ? &k->narrow[type][value] : &k->rw.map[value]) = rung_node_result(to, made, r);
  }
  return RUNG_OK;
}

static rung_status copy_cast(rung_keeper *k, const rung_node *node) {
  const rung_graph *g = k->rw.from;
  const uint32_t value = node->first_value, of = node->in[0];
  rung_graph_label(k->rw.to, node->label);
  if (is_f32(g, value))
    k->narrow[rung_graph_value_type(g, of)->type][value] = k->rw.map[of];
  else
    k->rw.map[value] = rung_keeper_get(k, of, rung_graph_value_type(g, value)->type);
  return rung_graph_status(k->rw.to) ? rung_pass_failed(k->env, k->rw.to) : RUNG_OK;
}

static rung_status declare_input(rung_keeper *k, const rung_node *node) {
  rung_value_type type = *rung_graph_value_type(k->rw.from, node->first_value);
  type.type = k->kept[node->first_value];
  const rung_node *made = rung_graph_declare(k->rw.to, node->op, node->attrs, &type);
  if (!made) return rung_pass_failed(k->env, k->rw.to);
  k->narrow[type.type][node->first_value] = rung_node_result(k->rw.to, made, 0);
  return RUNG_OK;
}

static rung_status rewrite(rung_keeper *k, uint32_t index) {
  const rung_node *node = &k->rw.from->node[index];
  if (node->op == &rung_op_input && rung_type_is_narrow(k->kept[node->first_value])) return declare_input(k, node);
  bool done = false;
  switch (k->way[index]) {
    case RUNG_KEEP_CAST:
      return copy_cast(k, node);
    case RUNG_KEEP_WHOLE:
      return copy_whole(k, index);
    case RUNG_KEEP_BODY:
      RUNG_TRY(rung_keeper_body(k, node, &done));
      break;
    default:
      break;
  }
  return done ? RUNG_OK : copy_f32(k, index);
}

static rung_status begin(rung_keeper *k, const rung_graph *from, rung_graph *to) {
  RUNG_TRY(rung_rewrite_init(&k->rw, from, to, k->env->error));
  k->exact = rung_precision_exact(from, &to->arena);
  k->way = (uint8_t *)rung_arena_array(&to->arena, from->nodes + 1, sizeof *k->way);
  k->wants = (uint8_t *)rung_arena_array(&to->arena, from->values + 1, sizeof *k->wants);
  k->kept = (rung_type *)rung_arena_array(&to->arena, from->values + 1, sizeof *k->kept);
  if (!k->exact || !k->way || !k->wants || !k->kept) return rung_pass_no_memory(k->env);
  for (int type = RUNG_TYPE_F16; type < RUNG_PRECISION_ENDS; type++) {
    k->narrow[type] = (rung_value *)rung_arena_array(&to->arena, from->values + 1, sizeof **k->narrow);
    if (!k->narrow[type]) return rung_pass_no_memory(k->env);
  }
  return RUNG_OK;
}

rung_status rung_pass_storage(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_keeper k = {.env = env, .policy = &env->options->precision};
  RUNG_TRY(begin(&k, from, to));
  for (uint32_t i = 0; i < from->nodes; i++) RUNG_TRY(find_way(&k, i));
  find_wants(&k);
  for (uint32_t i = 0; i < from->nodes; i++) find_kept(&k, i);
  for (uint32_t i = 0; i < from->nodes; i++) RUNG_TRY(rewrite(&k, i));
  const rung_type boundary = to->depth ? RUNG_TYPE_F32 : k.policy->boundary;
  for (uint32_t i = 0; i < from->outputs; i++) { /* all as f32 first: an output may be read as f32 for another type */
    const uint32_t value = from->output[i].value;
    if (is_f32(from, value) && !rung_type_is_narrow(boundary)) rung_keeper_get(&k, value, RUNG_TYPE_F32);
    if (is_f32(from, value) && rung_type_is_narrow(boundary)) rung_keeper_get(&k, value, boundary);
  }
  for (uint32_t i = 0; i < from->outputs; i++)
    if (is_f32(from, from->output[i].value) && rung_type_is_narrow(boundary))
      k.rw.map[from->output[i].value] = k.narrow[boundary][from->output[i].value];
  if (rung_graph_status(to)) return rung_pass_failed(env, to);
  return rung_rewrite_finish(&k.rw, env->error);
}
