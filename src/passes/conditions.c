/* SPDX-License-Identifier: MIT
 * Conditions that rows of patterns.def name. They see what was found. */
#include <string.h>

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

bool (*rung_pattern_condition(const char *name))(const rung_found *found) {
  static const struct {
    const char *name;
    bool (*holds)(const rung_found *found);
  } conditions[] = {{"one_axis", one_axis}, {"last_axis", last_axis}};
  for (size_t i = 0; i < RUNG_COUNT(conditions); i++)
    if (strcmp(conditions[i].name, name) == 0) return conditions[i].holds;
  return NULL;
}
