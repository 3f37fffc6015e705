/* SPDX-License-Identifier: MIT
 * Conditions that rows of patterns.def name. They see what was found. */
#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/shape.h"
#include "passes/pattern.h"

static int find(const char *const *list, uint8_t count, const char *name) {
  for (uint8_t i = 0; i < count; i++)
    if (strcmp(list[i], name) == 0) return i;
  return -1;
}

static const rung_value_type *hole_type(const rung_found *f, const char *name) {
  const int i = find(f->pattern->hole_name, f->pattern->holes, name);
  return i < 0 || !f->hole[i] ? NULL : rung_graph_value_type(f->graph, f->hole[i]);
}

static const rung_i64_list *kept_list(const rung_found *f, const char *name) {
  const int i = find(f->pattern->kept_name, f->pattern->kept, name);
  if (i < 0 || !f->kept_attr[i] || f->kept_attr[i]->kind != RUNG_ATTR_I64S) return NULL;
  return (const rung_i64_list *)rung_attr_get(f->kept_attr[i], f->kept[i]);
}

/* ?a is a list of one axis. */
static bool one_axis(const rung_found *f) {
  const rung_i64_list *axes = kept_list(f, "a");
  return axes && axes->count == 1;
}

/* ?a is the last axis of ?x. */
static bool last_axis(const rung_found *f) {
  const rung_value_type *x = hole_type(f, "x");
  const rung_i64_list *axes = kept_list(f, "a");
  return x && axes && axes->count == 1 && (axes->value[0] == -1 || axes->value[0] == x->rank - 1);
}

/* ---- rotary positions. What a statement with {?} took is looked at here. */

static uint32_t value_of(const rung_found *f, const char *name) {
  const int i = find(f->pattern->value_name, f->pattern->values, name);
  return i < 0 ? 0 : f->value[i];
}
static const rung_node *node_of(const rung_found *f, const char *name) {
  const uint32_t value = value_of(f, name);
  return value ? rung_graph_producer(f->graph, value) : NULL;
}

/* Its extents are those of x, with these in the place of the last one; behind 0: one only. */
static bool has_extents(const rung_found *f, const char *name, const rung_value_type *x, int64_t last, int64_t behind) {
  const uint32_t value = value_of(f, name);
  if (!value) return false;
  const rung_value_type *type = rung_graph_value_type(f->graph, value);
  if (type->rank != x->rank + (behind != 0)) return false;
  for (int axis = 0; axis < x->rank - 1; axis++)
    if (!rung_dim_same(type->extent[axis], x->extent[axis])) return false;
  return rung_dim_is(f->graph->dims, type->extent[x->rank - 1], last) &&
         (!behind || rung_dim_is(f->graph->dims, type->extent[x->rank], behind));
}

/* `name` is elements first, first + step ... of the last axis of `from`, and all of the others. */
static bool is_part(const rung_found *f, const char *name, const rung_value_type *from, int64_t first, int64_t count,
                    int64_t step) {
  const rung_node *node = node_of(f, name);
  if (!node || node->op != &rung_op_slice) return false;
  const rung_dims *dims = f->graph->dims;
  const rung_slice_attrs *attrs = (const rung_slice_attrs *)node->attrs;
  const int last = from->rank - 1;
  for (int axis = 0; axis < last; axis++) {
    if (!rung_dim_is(dims, attrs->start.dim[axis], 0) || attrs->step.value[axis] != 1 ||
        !rung_dim_same(attrs->length.dim[axis], from->extent[axis]))
      return false;
  }
  return rung_dim_is(dims, attrs->start.dim[last], first) && rung_dim_is(dims, attrs->length.dim[last], count) &&
         (count == 1 || attrs->step.value[last] == step);
}

/* %k puts its operands one behind another along its last axis. */
static bool joins_last(const rung_found *f) {
  const rung_node *node = node_of(f, "k");
  if (!node) return false;
  const int64_t axis = ((const rung_concat_attrs *)node->attrs)->axis;
  return axis == -1 || axis == rung_graph_value_type(f->graph, value_of(f, "k"))->rank - 1;
}

/* What turns: ?x, or what has the extents of %r. */
static const rung_value_type *turning(const rung_found *f) {
  const rung_value_type *x = hole_type(f, "x");
  if (x) return x;
  const uint32_t value = value_of(f, "r");
  return value ? rung_graph_value_type(f->graph, value) : NULL;
}

/* Half of the extent of its last axis, 0 where that is open or odd. */
static int64_t pairs_of(const rung_found *f, const rung_value_type *x) {
  int64_t width;
  if (!x || x->rank < 1 || !rung_dims_is_constant(f->graph->dims, x->extent[x->rank - 1], &width)) return 0;
  return width % 2 ? 0 : width / 2;
}

/* %a and %b are the halves of ?x. */
static bool halves(const rung_found *f) {
  const rung_value_type *x = hole_type(f, "x");
  const int64_t n = pairs_of(f, x);
  return n && is_part(f, "a", x, 0, n, 1) && is_part(f, "b", x, n, n, 1) && joins_last(f);
}

/* `name` is the `which`-th of each pair of x: a slice of steps of 2, or taken out of %w, which is x in pairs. Where there
 * is none, `cut` has been taken at once. */
static bool is_one_of_pairs(const rung_found *f, const char *name, const char *cut, const rung_value_type *x,
                            int which) {
  const int64_t n = pairs_of(f, x);
  const rung_node *node = node_of(f, name);
  if (node && node->op == &rung_op_slice) return is_part(f, name, x, which, n, 2);
  if (!has_extents(f, "w", x, n, 2) || (node && !has_extents(f, name, x, n, 0))) return false;
  if (node && node->op == &rung_op_gather) { /* of index `which`, says the row */
    const int64_t axis = ((const rung_gather_attrs *)node->attrs)->axis;
    return axis == -1 || axis == x->rank;
  }
  return is_part(f, cut, rung_graph_value_type(f->graph, value_of(f, "w")), which, 1, 1);
}

/* %a and %b are the firsts and seconds of the pairs of what turns; %p and %q, with an axis of one number more, become
 * pairs of neighbours %k again, and these %r, which has the extents of what turns. */
static bool neighbours(const rung_found *f) {
  const rung_value_type *x = turning(f);
  const int64_t n = pairs_of(f, x);
  return n && is_one_of_pairs(f, "a", value_of(f, "a") ? "a2" : "q", x, 0) &&
         is_one_of_pairs(f, "b", value_of(f, "b") ? "b2" : "m", x, 1) && has_extents(f, "p", x, n, 1) &&
         has_extents(f, "q", x, n, 1) && joins_last(f) && has_extents(f, "r", x, 2 * n, 0) &&
         (!value_of(f, "h") || has_extents(f, "h", x, 2 * n, 0));
}

/* %a and %b are the beginning and the rest of ?x along its last axis. */
static bool beginning(const rung_found *f) {
  const rung_value_type *x = hole_type(f, "x");
  const uint32_t a = value_of(f, "a");
  int64_t width, first;
  if (!x || x->rank < 1 || !a || !rung_dims_is_constant(f->graph->dims, x->extent[x->rank - 1], &width)) return false;
  if (!rung_dims_is_constant(f->graph->dims, rung_graph_value_type(f->graph, a)->extent[x->rank - 1], &first))
    return false;
  return is_part(f, "a", x, 0, first, 1) && is_part(f, "b", x, first, width - first, 1) && joins_last(f);
}

bool (*rung_pattern_condition(const char *name))(const rung_found *found) {
  static const struct {
    const char *name;
    bool (*holds)(const rung_found *found);
  } conditions[] = {{"one_axis", one_axis},
                    {"last_axis", last_axis},
                    {"halves", halves},
                    {"neighbours", neighbours},
                    {"beginning", beginning}};
  for (size_t i = 0; i < RUNG_COUNT(conditions); i++)
    if (strcmp(conditions[i].name, name) == 0) return conditions[i].holds;
  return NULL;
}
