/* SPDX-License-Identifier: MIT
 * Shifts: positions of a sequence that take the place of forgotten ones.
 *
 * Keys were turned by their positions before they were stored, so a row that moves down by n places is turned back by n
 * as well. By which angles is in the graph: the rope that stands before the append of that state. Shifts only add up
 * until somebody reads, so that each key is turned and rounded once, however many there were. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "runtime/runtime.h"

/* ---- how keys are turned */

/* A value of a graph; inside a body, `node` is the one that has it. */
typedef struct place {
  const rung_graph *graph;
  const rung_node *node;
  const struct place *outer;
} place;

static uint32_t input_index(const rung_graph *body, uint32_t node) {
  uint32_t i = 0;
  while (i < body->inputs && body->input[i] != node) i++;
  return i;
}

/* The node that makes a value, seen through what changes no number but by rounding it. Its graph goes to *at. */
static const rung_node *maker(const place *where, uint32_t value, place *at) {
  const rung_graph *g = where->graph;
  const rung_node *node = &g->node[g->value[value].node];
  if (node->op == &rung_op_input && where->node) {
    const uint32_t i = input_index(g, g->value[value].node);
    return i < where->node->n_in ? maker(where->outer, where->node->in[i], at) : NULL;
  }
  if (node->op == &rung_op_cast) return maker(where, node->in[0], at);
  if (node->op == &rung_op_fused && !where->node) {
    const place inner = {node->body[0], node, where};
    const uint32_t result = g->value[value].result;
    if (result >= node->body[0]->outputs) return NULL;
    return maker(&inner, node->body[0]->output[result].value, at);
  }
  *at = *where;
  return node;
}

/* The only append that writes a state, NULL if there is none, or more, or one in a body. */
static const rung_node *only_append(const rung_graph *g, uint32_t state) {
  const rung_node *found = NULL;
  for (uint32_t n = 0; n < g->nodes; n++) {
    const rung_node *node = &g->node[n];
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (node->in[i] != state) continue;
      if (node->op == &rung_op_append && !found)
        found = node;
      else if (node->bodies || node->op->flags & RUNG_OP_EFFECT)
        return NULL;
    }
  }
  if (!found) return NULL;
  for (uint32_t n = 0; n < g->nodes; n++) {
    const rung_node *node = &g->node[n];
    for (uint32_t i = 0; i < node->n_in; i++)
      if (node->in[i] == found->first_value && (node->bodies || node->op->flags & RUNG_OP_EFFECT)) return NULL;
  }
  return found;
}

static bool counts_positions(const place *top, const place *at, const rung_node *rope, const rung_node *append) {
  place other;
  const rung_node *positions = maker(at, rope->in[1], &other);
  return positions && positions->op == &rung_op_positions && other.graph == top->graph && positions->n_in == 2 &&
         positions->in[0] == append->in[3] && positions->in[1] == append->in[5];
}

static void find_turn(const rung_graph *g, uint32_t state, int64_t key_dim, rung_turn *out) {
  const place top = {g, NULL, NULL};
  place at, other;
  *out = (rung_turn){.unknown = "its keys are not written by one append of the graph"};
  const rung_node *append = only_append(g, state);
  if (!append) return;
  out->unknown = "no rope stands before the append of its keys";
  const rung_node *rope = maker(&top, append->in[1], &at);
  if (!rope || rope->op != &rung_op_rope) return;
  out->unknown = "the rope of its keys does not count the positions of the sequence";
  if (!counts_positions(&top, &at, rope, append)) return;
  const rung_rope_attrs *attrs = rope->attrs;
  out->dims = attrs->dims ? attrs->dims : key_dim;
  out->base = attrs->base;
  out->scale = attrs->scale;
  out->half = attrs->mode == RUNG_ROPE_HALF;
  if (rope->n_in == 3) {
    out->unknown = "the factors of its rope are not constants";
    const rung_node *factors = maker(&at, rope->in[2], &other);
    if (!factors || factors->op != &rung_op_constant) return;
    out->factors =
        (rung_operand){.base = (uint8_t *)(uintptr_t)((const rung_constant_attrs *)factors->attrs)->data.data,
                       .type = (uint8_t)rung_graph_value_type(other.graph, factors->first_value)->type};
  }
  out->unknown = NULL;
}

void rung_state_find_turns(rung_state *s) {
  const rung_graph *g = s->template_->graph;
  uint32_t item = 0;
  for (uint32_t n = 0; n < g->nodes && item < s->items; n++) {
    if (g->node[n].op != &rung_op_state) continue;
    if (rung_state_is_kv(&s->item[item]))
      find_turn(g, g->node[n].first_value, s->item[item].kv.key_dim, &s->item[item].turn);
    item++;
  }
}

/* ---- moving rows */

typedef struct move {
  const rung_kv_view *kv;
  const rung_turn *turn;
  int32_t slot;
  float *row, *spare;
  double *cosine, *sine; /* by pair */
} move;

/* Angles that `by` positions less take away. */
static void set_angles(move *m, int64_t by) {
  for (int64_t i = 0; i < m->turn->dims / 2; i++) {
    double angle = -(double)by * pow(m->turn->base, -2.0 * (double)i / (double)m->turn->dims) * m->turn->scale;
    if (m->turn->factors.base) angle /= rung_load_f64(&m->turn->factors, i);
    m->cosine[i] = cos(angle);
    m->sine[i] = sin(angle);
  }
}

static void turn_keys(const move *m, float *row) {
  const int64_t pairs = m->turn->dims / 2;
  for (int32_t h = 0; h < m->kv->kv_heads; h++, row += m->kv->key_dim) {
    for (int64_t i = 0; i < pairs; i++) {
      float *x = m->turn->half ? &row[i] : &row[2 * i], *y = m->turn->half ? &row[i + pairs] : x + 1;
      const double a = (double)*x, b = (double)*y;
      *x = (float)(a * m->cosine[i] - b * m->sine[i]);
      *y = (float)(a * m->sine[i] + b * m->cosine[i]);
    }
  }
}

static void store(const move *m, int64_t position, float *row) {
  turn_keys(m, row);
  m->kv->write_row(m->kv, m->slot, position, row);
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* All places of a ring at once: place q takes what place q + by had. */
static void move_around(const move *m, int64_t places, int64_t by) {
  const int64_t rounds = common_divisor(places, by);
  for (int64_t start = 0; start < rounds; start++) {
    m->kv->read_row(m->kv, m->slot, start, m->spare);
    int64_t q = start;
    for (int64_t next = (q + by) % places; next != start; q = next, next = (q + by) % places) {
      m->kv->read_row(m->kv, m->slot, next, m->row);
      store(m, q, m->row);
    }
    store(m, q, m->spare);
  }
}

/* Rows [first, end) take what lies `by` behind them, the first ones first. In a ring that would go over rows that have
 * not moved yet where the two ranges meet from behind; then every place moves. That is so only in rings that have gone
 * round, of which all places have memory. */
static void move_rows(const move *m, const rung_kv_class *class_, int64_t first, int64_t end, int64_t by) {
  const int64_t places = (int64_t)class_->ring * RUNG_KV_BLOCK, step = by % places;
  if (step && places - step < end - first) {
    move_around(m, places, step);
    return;
  }
  for (int64_t p = first; p < end; p++) {
    m->kv->read_row(m->kv, m->slot, p + by, m->row);
    store(m, p, m->row);
  }
}

void rung_state_settle(rung_state *s, int32_t slot) {
  const rung_slot_shift shift = s->shift[slot];
  if (!shift.by) return;
  const int64_t end = s->length[slot];
  double *angle = (double *)(void *)(s->row + (2 * s->row_floats + 1) / 2 * 2);
  for (uint32_t i = 0; i < s->items; i++) {
    const rung_state_item *item = &s->item[i];
    if (!rung_state_is_kv(item)) continue;
    const rung_kv_class *class_ = &s->class_[item->class_];
    const int64_t held = rung_state_first(s, class_, slot), first = held > shift.keep ? held : shift.keep;
    move m = {.kv = &item->kv,
              .turn = &item->turn,
              .slot = slot,
              .row = s->row,
              .spare = s->row + s->row_floats,
              .cosine = angle,
              .sine = angle + item->turn.dims / 2};
    set_angles(&m, shift.by);
    move_rows(&m, class_, first, end, shift.by);
    s->moved += (uint64_t)(end - first) * rung_type_bytes(item->type.type, rung_kv_row(&item->kv));
  }
  for (uint32_t c = 0; c < s->classes; c++) s->class_[c].from[slot] = rung_state_first(s, &s->class_[c], slot);
  s->shift[slot] = (rung_slot_shift){0};
  rung_state_give_back(s, slot);
}

rung_status rung_state_shift(rung_state *s, int32_t slot, int64_t keep, int64_t count, rung_error *error) {
  rung_state_quiet(s);
  if (!s || slot < 0 || slot >= s->sequences)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "shift: there is no sequence %d", slot);
  const int64_t length = s->length[slot];
  if (keep < 0 || count < 0 || keep > length || count > length - keep)
    return rung_fail(error, RUNG_OUT_OF_RANGE,
                     "shift: %" PRId64 " positions behind the first %" PRId64 " of sequence %d, which holds %" PRId64,
                     count, keep, slot, length);
  if (!s->classes) return rung_fail(error, RUNG_UNSUPPORTED, "shift: the template has no key/value state");
  for (uint32_t i = 0; i < s->items; i++)
    if (s->item[i].turn.unknown)
      return rung_fail(error, RUNG_UNSUPPORTED, "shift: state \"%s\": %s", s->item[i].name, s->item[i].turn.unknown);
  if (!count) return RUNG_OK;
  if (count == length - keep) return rung_state_truncate(s, slot, keep, error);
  if (s->shift[slot].by && s->shift[slot].keep != keep) rung_state_settle(s, slot);
  const rung_slot_shift before = s->shift[slot];
  s->shift[slot] = (rung_slot_shift){keep, before.by + count};
  for (uint32_t c = 0; c < s->classes; c++) {
    const int64_t needed = rung_class_needs(&s->class_[c], length - count);
    if (needed >= rung_state_first(s, &s->class_[c], slot)) continue;
    s->shift[slot] = before;
    return rung_fail(error, RUNG_UNSUPPORTED,
                     "shift: %" PRId64 " positions behind the first %" PRId64 " of sequence %d: a window of %" PRId64
                     " no longer holds position %" PRId64,
                     count, keep, slot, s->class_[c].window, needed);
  }
  s->length[slot] = length - count;
  return RUNG_OK;
}
