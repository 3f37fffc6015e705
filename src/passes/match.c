/* SPDX-License-Identifier: MIT
 * The pattern engine: matching left sides backwards from a value, building right sides.
 *
 * A match is a search over a list of pairs (term, value): taking a pair binds a name and adds the pairs of its
 * operands; alternatives and the two orders of a commutative op are tried in turn, each undone if what follows fails.
 * Its size depends on the pattern alone, so a pass over a graph is linear in the graph. */
#include <math.h>
#include <string.h>

#include "ops/build.h"
#include "passes/pattern.h"

enum { MAX_PAIRS = 96, MAX_STEPS = 20000 };

typedef struct pair {
  const rung_term *want;
  uint32_t value;
} pair;

typedef struct matcher {
  rung_pass_env *env;
  const rung_graph *graph;
  const uint32_t *uses;
  const bool *taken;
  uint32_t root;
  rung_found found;
  pair pairs[MAX_PAIRS];
  uint32_t count, steps;
  rung_text scratch;
  const char *near; /* why a place that has the form does not match */
  rung_status status;
} matcher;

static bool solve(matcher *m, uint32_t at);

/* ---- numbers */

static bool near_enough(double have, double want, rung_type type) {
  const double tolerance = type == RUNG_TYPE_F16 ? 1e-3 : type == RUNG_TYPE_BF16 ? 8e-3 : 2e-5;
  return fabs(have - want) <= tolerance * fabs(want);
}

static bool take_number(matcher *m, const rung_term *want, uint32_t value) {
  double have;
  return rung_constant_number(m->graph, value, &have) &&
         near_enough(have, want->number, rung_graph_value_type(m->graph, value)->type);
}

/* Its shape must not matter: a constant of several elements may broadcast the result. */
static bool keep_number(matcher *m, const rung_term *want, uint32_t value, uint32_t at) {
  double have;
  rung_found *f = &m->found;
  if (!rung_constant_number(m->graph, value, &have)) return false;
  if (f->number_set[want->index]) return f->number[want->index] == have && solve(m, at);
  f->number[want->index] = have;
  f->number_set[want->index] = true;
  if (solve(m, at)) return true;
  f->number_set[want->index] = false;
  return false;
}

/* ---- attributes */

static bool is_literal(matcher *m, const rung_attr_term *term, const rung_node *node) {
  m->scratch.length = 0;
  rung_attr_print(term->attr, m->graph->dims, node->attrs, NULL, &m->scratch);
  if (m->scratch.failed) m->status = RUNG_OUT_OF_MEMORY;
  return !m->scratch.failed && m->scratch.length == strlen(term->text) &&
         memcmp(m->scratch.data, term->text, m->scratch.length) == 0;
}

static const rung_attr_term *mentioned(const rung_statement *s, const rung_attr *attr) {
  for (uint8_t i = 0; i < s->attrs; i++)
    if (s->attr[i].attr == attr) return &s->attr[i];
  return NULL;
}

/* Binds kept attributes; bits of *out_bound tell which, for undoing. */
static bool take_attrs(matcher *m, const rung_statement *s, const rung_node *node, uint32_t *out_bound) {
  rung_found *f = &m->found;
  if (s->any) return true;
  for (const rung_attr *attr = node->op->attrs; attr && attr->name; attr++) {
    const rung_attr_term *term = mentioned(s, attr);
    if (!term) {
      if (!rung_attr_is_default(attr, m->graph->dims, node->attrs)) return false;
    } else if (term->text) {
      if (!is_literal(m, term, node)) return false;
    } else if (!f->kept_attr[term->kept]) {
      f->kept_attr[term->kept] = attr;
      f->kept[term->kept] = node->attrs;
      *out_bound |= 1u << term->kept;
    } else {
      /* The same attribute kept by another node: equal content. The lists of both are of one kind. */
      const rung_attr *have = f->kept_attr[term->kept];
      rung_attr other = *attr;
      if (have->kind != attr->kind) return false;
      other.offset = 0;
      if (!rung_attr_equal(&other, rung_attr_get(have, f->kept[term->kept]), rung_attr_get(attr, node->attrs)))
        return false;
    }
  }
  return true;
}

/* ---- nodes */

static bool commutes(const rung_op *op) {
  return op == &rung_op_add || op == &rung_op_mul || op == &rung_op_min || op == &rung_op_max || op == &rung_op_and ||
         op == &rung_op_or || op == &rung_op_equal;
}

static bool push_operands(matcher *m, const rung_statement *s, const rung_node *node, bool swapped) {
  if (m->count + s->n_in > MAX_PAIRS) return false;
  for (uint8_t i = 0; i < s->n_in; i++) m->pairs[m->count++] = (pair){&s->in[i], node->in[swapped ? 1 - i : i]};
  return true;
}

static bool take_statement(matcher *m, const rung_statement *s, uint32_t value, uint32_t at) {
  const rung_node *node = rung_graph_producer(m->graph, value);
  rung_found *f = &m->found;
  if (node->op != s->op || node->n_in != s->n_in || node->results != 1 || node->bodies ||
      m->taken[m->graph->value[value].node])
    return false;
  uint32_t bound = 0;
  bool is = false;
  const uint32_t count = m->count;
  if (take_attrs(m, s, node, &bound)) {
    f->value[s->value] = value;
    const int orders = commutes(node->op) && node->in[0] != node->in[1] ? 2 : 1;
    for (int order = 0; order < orders && !is; order++) {
      is = push_operands(m, s, node, order == 1) && solve(m, at);
      if (!is) m->count = count;
    }
  }
  if (is) return true;
  f->value[s->value] = 0;
  for (uint8_t i = 0; i < RUNG_PATTERN_KEPT; i++)
    if (bound >> i & 1) f->kept_attr[i] = NULL;
  return false;
}

static bool take_value(matcher *m, uint8_t index, uint32_t value, uint32_t at) {
  if (m->found.value[index]) return m->found.value[index] == value && solve(m, at);
  for (const rung_statement *s = m->found.pattern->left[index]; s; s = s->next)
    if (take_statement(m, s, value, at)) return true;
  return false;
}

static bool take_hole(matcher *m, uint8_t index, uint32_t value, uint32_t at) {
  uint32_t *hole = &m->found.hole[index];
  if (*hole) return *hole == value && solve(m, at);
  *hole = value;
  if (solve(m, at)) return true;
  *hole = 0;
  return false;
}

/* ---- the place as a whole */

static bool read_inside(const matcher *m, uint32_t value) {
  const rung_found *f = &m->found;
  uint32_t within = 0;
  for (uint8_t i = 0; i < f->pattern->values; i++) {
    if (!f->value[i]) continue;
    const rung_node *node = rung_graph_producer(m->graph, f->value[i]);
    for (uint32_t k = 0; k < node->n_in; k++) within += node->in[k] == value;
  }
  return within == m->uses[value];
}

/* What the right side would have checked at run time, the left side has checked as well. */
static bool asks_nothing_new(const rung_graph *graph, const rung_graph *trial) {
  for (uint32_t i = 0; i < trial->checks; i++) {
    const rung_dim_check *c = &trial->check[i];
    bool there = false;
    for (uint32_t k = 0; k < graph->checks && !there; k++) {
      const rung_dim_check *g = &graph->check[k];
      there = g->at_least == c->at_least && ((g->a.id == c->a.id && g->b.id == c->b.id) ||
                                             (!g->at_least && g->a.id == c->b.id && g->b.id == c->a.id));
    }
    if (!there) return false;
  }
  return true;
}

/* Tried in a graph of its own, so that what the shape rules refuse there harms nothing. */
static bool right_side_fits(matcher *m) {
  const rung_found *f = &m->found;
  rung_graph *trial;
  m->status = rung_graph_create_like(m->graph, m->env->error, &trial);
  if (m->status) return false;
  rung_value hole[RUNG_PATTERN_HOLES] = {{0, 0}}, value = {0, 0};
  for (uint8_t i = 0; i < f->pattern->holes; i++)
    if (f->hole[i]) hole[i] = rung_body_input(trial, 'x', i, rung_graph_value_type(m->graph, f->hole[i]));
  rung_status status = rung_pattern_build(m->env, f, trial, hole, &value);
  if (status == RUNG_OUT_OF_MEMORY) m->status = status;
  bool fits = !status && asks_nothing_new(m->graph, trial) &&
              rung_value_type_equal(rung_graph_value_type(trial, value.id), rung_graph_value_type(m->graph, m->root));
  char why[160];
  if (fits && f->pattern->kernel)
    fits = rung_pass_has_kernel(m->env, trial, rung_graph_producer(trial, value.id), UINT32_MAX, 0, why, sizeof why);
  rung_graph_destroy(trial);
  return fits;
}

static bool whole(matcher *m) {
  const rung_found *f = &m->found;
  if (f->pattern->holds && !f->pattern->holds(f)) return false;
  for (uint8_t i = 0; i < f->pattern->holes; i++)
    if (f->hole[i] && rung_value_in_state(m->graph, f->hole[i])) return false; /* would be read later than it was */
  for (uint8_t i = 0; i < f->pattern->values; i++) {
    if (!f->value[i] || i == f->pattern->root || read_inside(m, f->value[i])) continue;
    m->near = "a value in between is needed elsewhere";
    return false;
  }
  return right_side_fits(m);
}

/* The pairs from `at` on. */
static bool solve(matcher *m, uint32_t at) {
  if (m->status || ++m->steps > MAX_STEPS) return false;
  if (at == m->count) return whole(m);
  const pair p = m->pairs[at];
  switch ((rung_term_kind)p.want->kind) {
    case RUNG_TERM_HOLE:
      return take_hole(m, p.want->index, p.value, at + 1);
    case RUNG_TERM_VALUE:
      return take_value(m, p.want->index, p.value, at + 1);
    case RUNG_TERM_NUMBER:
      return take_number(m, p.want, p.value) && solve(m, at + 1);
    case RUNG_TERM_KEPT:
      return keep_number(m, p.want, p.value, at + 1);
  }
  return false;
}

static bool may_begin(const rung_pattern *p, const rung_op *op) {
  for (const rung_statement *s = p->left[p->root]; s; s = s->next)
    if (s->op == op) return true;
  return false;
}

rung_status rung_pattern_match(rung_pass_env *env, const rung_graph *graph, uint32_t value, const uint32_t *uses,
                               const bool *taken, bool explain, rung_found *out_found, bool *out_is) {
  const rung_node *node = rung_graph_producer(graph, value);
  bool any = false;
  *out_is = false;
  for (uint32_t i = 0; i < env->patterns->rows && !any; i++) any = may_begin(&env->patterns->row[i], node->op);
  if (!any) return RUNG_OK;
  matcher m = {.env = env, .graph = graph, .uses = uses, .taken = taken, .root = value};
  rung_text_init(&m.scratch, env->host);
  for (uint32_t i = 0; i < env->patterns->rows && !m.status && !*out_is; i++) {
    const rung_pattern *p = &env->patterns->row[i];
    if (!may_begin(p, node->op)) continue;
    m.found = (rung_found){.pattern = p, .graph = graph};
    m.count = m.steps = 0;
    m.near = NULL;
    *out_is = take_value(&m, p->root, value, 0);
    if (!*out_is && m.near && explain) rung_note(env, RUNG_NOTE_NEARLY, node->label, p->name, m.near);
  }
  rung_text_finish(&m.scratch);
  if (m.status) return rung_fail(env->error, m.status, "patterns: out of memory");
  if (*out_is) *out_found = m.found;
  return RUNG_OK;
}

/* ---- right sides */

/* `name=value`: a literal, a kept number, or a kept attribute; a list of one axis may fill in for a single axis. */
static bool write_attr(const rung_found *f, const rung_attr_term *term, const rung_graph *to, rung_text *out) {
  rung_text_printf(out, "%s=", term->attr->name);
  if (term->text) {
    rung_text_puts(out, term->text);
  } else if (term->number) {
    if (!f->number_set[term->kept]) return false;
    rung_text_double(out, term->inverse ? 1 / f->number[term->kept] : f->number[term->kept]);
  } else {
    const rung_attr *kept = f->kept_attr[term->kept];
    if (!kept) return false;
    const rung_i64_list *list = (const rung_i64_list *)rung_attr_get(kept, f->kept[term->kept]);
    if (kept->kind == RUNG_ATTR_I64S && term->attr->kind == RUNG_ATTR_I64) {
      if (list->count != 1) return false;
      rung_text_printf(out, "%lld", (long long)list->value[0]);
    } else {
      rung_attr_print(kept, to->dims, f->kept[term->kept], NULL, out);
    }
  }
  return true;
}

static rung_status make_attrs(rung_pass_env *env, const rung_found *f, const rung_statement *s, rung_graph *to,
                              void **out_attrs) {
  *out_attrs = NULL;
  if (!s->op->attrs_bytes) return RUNG_OK;
  rung_text text;
  rung_text_init(&text, env->host);
  bool is = true;
  for (uint8_t i = 0; i < s->attrs && is; i++) {
    if (i) rung_text_puts(&text, ", ");
    is = write_attr(f, &s->attr[i], to, &text);
  }
  rung_status status = text.failed ? RUNG_OUT_OF_MEMORY : is ? RUNG_OK : RUNG_INVALID_ARGUMENT;
  void *attrs = status ? NULL : rung_arena_alloc(&to->arena, s->op->attrs_bytes);
  if (!status && !attrs) status = RUNG_OUT_OF_MEMORY;
  const char *start = text.data ? text.data : "", *end;
  if (!status) status = rung_attrs_parse(s->op, to->dims, &to->arena, start, start + text.length, &end, attrs, NULL);
  rung_text_finish(&text);
  *out_attrs = attrs;
  return status;
}

static rung_value make_term(const rung_found *f, const rung_term *term, rung_graph *to, const rung_value *hole,
                            const rung_value *made) {
  const rung_type type = rung_graph_value_type(f->graph, f->value[f->pattern->root])->type;
  switch ((rung_term_kind)term->kind) {
    case RUNG_TERM_HOLE:
      return hole[term->index];
    case RUNG_TERM_VALUE:
      return made[term->index];
    case RUNG_TERM_NUMBER:
      return rung_build_scalar(to, type, term->number);
    case RUNG_TERM_KEPT:
      return rung_build_scalar(to, type, f->number[term->index]);
  }
  return (rung_value){0, 0};
}

rung_status rung_pattern_build(rung_pass_env *env, const rung_found *f, rung_graph *to, const rung_value *hole,
                               rung_value *out_value) {
  rung_value made[RUNG_PATTERN_VALUES] = {{0, 0}};
  for (const rung_statement *s = f->pattern->right; s; s = s->next) {
    rung_value in[RUNG_PATTERN_IN];
    void *attrs;
    RUNG_TRY(make_attrs(env, f, s, to, &attrs));
    for (uint8_t i = 0; i < s->n_in; i++) {
      in[i] = make_term(f, &s->in[i], to, hole, made);
      if (!in[i].id) return rung_graph_status(to) ? rung_graph_status(to) : RUNG_INVALID_ARGUMENT;
    }
    made[s->value] = rung_graph_op(to, s->op, in, s->n_in, attrs);
    if (!made[s->value].id) return rung_graph_status(to);
    *out_value = made[s->value];
  }
  return RUNG_OK;
}

/* ---- the pass */

typedef struct place {
  rung_found found;
  bool is;
} place;

static void claim(const rung_found *f, bool *taken) {
  for (uint8_t i = 0; i < f->pattern->values; i++)
    if (f->value[i]) taken[f->graph->value[f->value[i]].node] = true;
}

/* Later values first, so that the longest chain is found before its beginning. */
static rung_status find_places(rung_pass_env *env, const rung_graph *from, rung_graph *to, bool *taken,
                               rung_found **out_at, bool *out_any) {
  const uint32_t *uses = rung_graph_uses(from, &to->arena);
  if (!uses) return rung_pass_no_memory(env);
  for (int explain = 0; explain < 2 && !*out_any; explain++) {
    for (uint32_t i = from->nodes; i-- > 0;) {
      const rung_node *node = &from->node[i];
      rung_found found;
      bool is;
      if (taken[i] || node->results != 1 || !rung_node_is_pure(node)) continue;
      RUNG_TRY(rung_pattern_match(env, from, node->first_value, uses, taken, explain == 1, &found, &is));
      if (!is) continue;
      out_at[i] = (rung_found *)rung_arena_copy(&to->arena, &found, sizeof found);
      if (!out_at[i]) return rung_pass_no_memory(env);
      claim(&found, taken);
      *out_any = true;
    }
  }
  return RUNG_OK;
}

static rung_status replace(rung_pass_env *env, rung_rewrite *rw, uint32_t index, const rung_found *found) {
  const rung_node *node = &rw->from->node[index];
  rung_value hole[RUNG_PATTERN_HOLES] = {{0, 0}};
  for (uint8_t i = 0; i < found->pattern->holes; i++) hole[i] = rw->map[found->hole[i]];
  rung_graph_label(rw->to, node->label);
  const rung_status status = rung_pattern_build(env, found, rw->to, hole, &rw->map[node->first_value]);
  if (rung_graph_status(rw->to)) return rung_pass_failed(env, rw->to);
  if (status)
    return rung_fail(env->error, status, "pattern %s: its right side could not be built", found->pattern->name);
  rung_note(env, RUNG_NOTE_REPLACED, node->label, found->pattern->name, NULL);
  return RUNG_OK;
}

rung_status rung_pass_patterns(rung_pass_env *env, const rung_graph *from, rung_graph *to);
rung_status rung_pass_patterns(rung_pass_env *env, const rung_graph *from, rung_graph *to) {
  rung_rewrite rw;
  bool any = false;
  RUNG_TRY(rung_rewrite_init(&rw, from, to, env->error));
  bool *taken = (bool *)rung_arena_array(&to->arena, from->nodes + 1, sizeof *taken);
  rung_found **at = (rung_found **)rung_arena_array(&to->arena, from->nodes + 1, sizeof *at);
  if (!taken || !at) return rung_pass_no_memory(env);
  RUNG_TRY(find_places(env, from, to, taken, at, &any));
  for (uint32_t i = 0; i < from->nodes; i++) {
    if (at[i])
      RUNG_TRY(replace(env, &rw, i, at[i]));
    else if (!taken[i])
      RUNG_TRY(rung_pass_copy(env, &rw, i, rung_pass_patterns));
  }
  if (any) env->again = true;
  return rung_rewrite_finish(&rw, env->error);
}
