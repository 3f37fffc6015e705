/* SPDX-License-Identifier: MIT
 * Choosing kernel rows for a node. */
#include "target/target.h"

#include <stdio.h>
#include <string.h>

void rung_match_init(rung_match *match, const rung_graph *graph, const rung_node *node) {
  match->graph = graph;
  match->node = node;
  match->n_in = node->n_in < RUNG_COUNT(match->in) ? node->n_in : (uint32_t)RUNG_COUNT(match->in);
  for (uint32_t i = 0; i < match->n_in; i++) match->in[i] = rung_graph_value_type(graph, node->in[i]);
  match->n_out = node->results < RUNG_COUNT(match->out_type) ? node->results : (uint32_t)RUNG_COUNT(match->out_type);
  for (uint32_t i = 0; i < match->n_out; i++) match->out_type[i] = *rung_graph_value_type(graph, node->first_value + i);
  match->out = match->out_type;
}

const rung_layout *rung_target_layout(const rung_target *target, uint16_t id) {
  for (size_t i = 0; id && i < target->layouts; i++)
    if (target->layout[i].id == id) return &target->layout[i];
  return NULL;
}

/* ---- does a row fit the node? */

enum { WHY_BYTES = 160 };

/* The structured op inside a fused node: the first that is neither declared nor elementwise nor row-local; NULL for a
 * pure region. */
static const rung_op *root_of(const rung_node *node) {
  if (!node->bodies) return NULL;
  const rung_graph *body = node->body[0];
  for (uint32_t i = 0; i < body->nodes; i++) {
    const rung_op *op = body->node[i].op;
    if (!(op->flags & (RUNG_OP_DECLARES | RUNG_OP_ELEMENTWISE | RUNG_OP_ROW_LOCAL | RUNG_OP_VIEW))) return op;
  }
  return NULL;
}

/* How far a row got: the more conditions hold, the nearer. */
typedef struct nearest {
  int score;
  char why[WHY_BYTES];
} nearest;

static bool short_of(nearest *near, int score, const char *row, const char *format, const char *a, uint32_t i) {
  if (score <= near->score) return false;
  near->score = score;
  char detail[WHY_BYTES];
  snprintf(detail, sizeof detail, format, a, i);
  snprintf(near->why, sizeof near->why, "%.60s: %.90s", row, detail);
  return false;
}

static uint32_t last_of(uint32_t i, uint8_t n) { return i < n ? i : n - 1u; }

static bool fits(const rung_target *target, const rung_kernel *row, const rung_match *match, nearest *near) {
  if ((row->isa & target->isa) != row->isa)
    return short_of(near, 1, row->name, "needs another %s", "instruction set", 0);
  for (uint32_t i = 0; row->n_in_type && i < match->n_in; i++) {
    const uint8_t want = row->in_type[last_of(i, row->n_in_type)];
    if (want != RUNG_ANY_TYPE && want != match->in[i]->type)
      return short_of(near, 2, row->name, "does not take %s as operand %u", rung_type_name(match->in[i]->type), i);
  }
  for (uint32_t i = 0; row->n_out_type && i < match->n_out; i++) {
    const uint8_t want = row->out_type[last_of(i, row->n_out_type)];
    if (want != RUNG_ANY_TYPE && want != match->out[i].type)
      return short_of(near, 3, row->name, "does not give %s as result %u", rung_type_name(match->out[i].type), i);
  }
  for (uint32_t i = 0; i < match->n_in; i++) {
    const uint16_t want = row->in_layout[row->n_in_type ? last_of(i, row->n_in_type) : 0];
    if (want == RUNG_ANY_LAYOUT || want == match->in[i]->layout) continue;
    const rung_layout *have = rung_target_layout(target, match->in[i]->layout);
    return short_of(near, 4, row->name, "does not read layout %s of operand %u", have ? have->name : "row-major", i);
  }
  char why[WHY_BYTES] = "";
  if (row->fits && !row->fits(match, why)) return short_of(near, 5, row->name, "%s", why, 0);
  return true;
}

/* ---- which values of a role do the chosen rows cover? */

typedef struct cover {
  int64_t lo[RUNG_MAX_VARIANTS], hi[RUNG_MAX_VARIANTS]; /* inclusive */
  int n;
} cover;

static bool covered(const cover *c, int64_t lo, int64_t hi) {
  for (bool moved = true; lo <= hi && moved;) {
    moved = false;
    for (int i = 0; i < c->n && !moved; i++) {
      if (lo < c->lo[i] || lo > c->hi[i]) continue;
      if (c->hi[i] >= hi) return true;
      lo = c->hi[i] + 1;
      moved = true;
    }
  }
  return lo > hi;
}

/* Adds a row's guard; false if it serves no value that is still open. `*done`: nothing is open any more. */
static bool extend(cover *roles, const rung_kernel *row, const int64_t *upper, bool *done) {
  if (row->guard_role < 0) return *done = true;
  cover *c = &roles[row->guard_role];
  const int64_t top = upper[row->guard_role];
  const int64_t lo = row->guard_lo > 0 ? row->guard_lo : 0;
  const int64_t hi = row->guard_hi > 0 && row->guard_hi - 1 < top ? row->guard_hi - 1 : top;
  if (lo > hi || covered(c, lo, hi)) return false;
  c->lo[c->n] = lo;
  c->hi[c->n++] = hi;
  *done = covered(c, 0, top);
  return true;
}

size_t rung_target_match(const rung_target *target, const rung_match *match, const int64_t *role_upper,
                         const rung_kernel **out_rows, size_t max, char *why, size_t why_bytes) {
  const rung_op *op = match->node->op, *root = root_of(match->node);
  nearest near = {.score = 0};
  snprintf(near.why, sizeof near.why, "no kernel row for %.60s", op->name);
  cover roles[RUNG_MAX_ROLES] = {{.n = 0}};
  if (match->node->results > match->n_out) { /* more than a match holds */
    if (why_bytes) snprintf(why, why_bytes, "%.60s: too many results", op->name);
    return 0;
  }
  if (max > RUNG_MAX_VARIANTS) max = RUNG_MAX_VARIANTS;
  size_t n = 0;
  bool done = false;
  for (size_t i = target->kernels; i-- > 0 && !done;) {
    const rung_kernel *row = target->kernel[i];
    if (row->op != op || row->root != root || !fits(target, row, match, &near)) continue;
    cover before[RUNG_MAX_ROLES];
    memcpy(before, roles, sizeof before);
    if (!extend(roles, row, role_upper, &done)) continue;
    /* The last place is for a row that closes the gap. */
    if (n + 1 >= max && !done) {
      memcpy(roles, before, sizeof roles);
      continue;
    }
    out_rows[n++] = row;
  }
  if (done) return n;
  if (n) snprintf(near.why, sizeof near.why, "the kernel rows of %.60s leave sizes out", op->name);
  if (why_bytes) snprintf(why, why_bytes, "%s", near.why);
  return 0;
}
