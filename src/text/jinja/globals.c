/* SPDX-License-Identifier: MIT
 * Functions that every template has, and the methods of the objects that they make. */
#include <stdio.h>

#include "text/jinja/ast.h"
#include "text/jinja/rows.h"

#define ROW(name) \
  rung_status name(rung_jrun *run, rung_jvalue self, const rung_jcall *call, const rung_jvalue *arg, rung_jvalue *out)
#define UNUSED (void)run, (void)self, (void)call, (void)arg

ROW(rung_jglobal_raise_exception) {
  UNUSED, (void)out;
  rung_jvalue text;
  RUNG_TRY(rung_j_str(run, arg[0], &text));
  return rung_j_fail(run, "%.*s", text.as.string->length < 400 ? (int)text.as.string->length : 400,
                     text.as.string->data);
}

ROW(rung_jglobal_strftime_now) {
  UNUSED;
  const rung_jstring *format;
  RUNG_TRY(rung_jarg_text(run, arg[0], "format", &format));
  return rung_j_strftime(run, format, run->now, out);
}

ROW(rung_jglobal_range) {
  UNUSED;
  enum { MOST = 100000 }; /* of the sandbox */
  int64_t start = 0, stop, step;
  if (arg[1].kind == RUNG_J_MISSING) {
    RUNG_TRY(rung_jarg_integer(run, arg[0], "range", 0, &stop));
  } else {
    RUNG_TRY(rung_jarg_integer(run, arg[0], "range", 0, &start));
    RUNG_TRY(rung_jarg_integer(run, arg[1], "range", 0, &stop));
  }
  RUNG_TRY(rung_jarg_integer(run, arg[2], "range", 1, &step));
  if (!step) return rung_j_fail(run, "range() arg 3 must not be zero");
  RUNG_TRY(rung_j_list(run, RUNG_J_RANGE, 0, out));
  rung_jlist *list = out->as.list;
  list->start = start;
  list->stop = stop;
  list->step = step;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (list->count == MOST)
      return rung_j_fail(run, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", MOST);
    RUNG_TRY(rung_j_append(run, list, rung_j_int(i)));
    if (rung_add_overflows(i, step, &i)) break;
  }
  return RUNG_OK;
}

/* dict(...) and namespace(...): a mapping or pairs, then named arguments. */
static rung_status fill(rung_jrun *run, const rung_jcall *call, rung_jkind kind, rung_jvalue *out) {
  rung_jvalue made;
  RUNG_TRY(rung_j_dict(run, kind, &made));
  if (call->count > 1) return rung_j_fail(run, "dict expected at most 1 argument, got %zu", call->count);
  const rung_jdict *from = call->count && call->item[0].kind == RUNG_J_DICT ? call->item[0].as.dict : NULL;
  if (call->count && !from) {
    rung_jlist *pairs, *pair;
    if (call->item[0].kind == RUNG_J_NAMESPACE) return rung_j_fail(run, "'Namespace' object is not iterable");
    RUNG_TRY(rung_j_elements(run, call->item[0], &pairs));
    for (size_t i = 0; i < pairs->count; i++) {
      RUNG_TRY(rung_j_elements(run, pairs->item[i], &pair));
      if (pair->count != 2)
        return rung_j_fail(run, "dictionary update sequence element #%zu has length %zu; 2 is required", i,
                           pair->count);
      RUNG_TRY(rung_j_set(run, made.as.dict, pair->item[0], pair->item[1]));
    }
  }
  for (uint32_t i = 0; from && i < from->count; i++)
    RUNG_TRY(rung_j_set(run, made.as.dict, from->entry[i].key, from->entry[i].value));
  for (uint32_t i = 0; call->named && i < call->named->count; i++)
    RUNG_TRY(rung_j_set(run, made.as.dict, call->named->entry[i].key, call->named->entry[i].value));
  *out = made;
  return RUNG_OK;
}

ROW(rung_jglobal_dict) {
  UNUSED;
  return fill(run, call, RUNG_J_DICT, out);
}
ROW(rung_jglobal_namespace) {
  UNUSED;
  return fill(run, call, RUNG_J_NAMESPACE, out);
}
ROW(rung_jglobal_lipsum) {
  UNUSED, (void)out;
  return rung_j_refuse(run, RUNG_UNSUPPORTED, "random text");
}

ROW(rung_jglobal_cycler) {
  UNUSED;
  rung_jcycler *cycler;
  rung_jvalue items;
  if (!call->count || call->named) return rung_j_fail(run, "at least one item has to be provided");
  RUNG_TRY(rung_j_alloc(run, sizeof *cycler, &cycler));
  RUNG_TRY(rung_j_list(run, RUNG_J_TUPLE, call->count, &items));
  for (size_t i = 0; i < call->count; i++) RUNG_TRY(rung_j_append(run, items.as.list, call->item[i]));
  cycler->items = items.as.list;
  *out = (rung_jvalue){.kind = RUNG_J_CYCLER, .as.cycler = cycler};
  return RUNG_OK;
}

ROW(rung_jglobal_joiner) {
  UNUSED;
  rung_jcycler *joiner;
  RUNG_TRY(rung_j_alloc(run, sizeof *joiner, &joiner));
  joiner->text = arg[0];
  if (arg[0].kind == RUNG_J_MISSING) RUNG_TRY(rung_j_text(run, ", ", 2, &joiner->text));
  *out = (rung_jvalue){.kind = RUNG_J_JOINER, .as.cycler = joiner};
  return RUNG_OK;
}

ROW(rung_jmethod_cycler_next) {
  UNUSED;
  rung_jcycler *cycler = self.as.cycler;
  *out = cycler->items->item[cycler->at];
  cycler->at = (cycler->at + 1) % cycler->items->count;
  return RUNG_OK;
}
ROW(rung_jmethod_cycler_reset) {
  UNUSED;
  self.as.cycler->at = 0;
  *out = rung_j_none();
  return RUNG_OK;
}

/* ---- loops */

ROW(rung_jmethod_loop_cycle) {
  UNUSED;
  if (!call->count || call->named) return rung_j_fail(run, "no items for cycling given");
  *out = call->item[(size_t)self.as.loop->index % call->count];
  return RUNG_OK;
}

ROW(rung_jmethod_loop_changed) {
  UNUSED;
  rung_jloop *loop = self.as.loop;
  rung_jvalue now;
  bool same = loop->changed && loop->changed->count == call->count;
  for (size_t i = 0; same && i < call->count; i++)
    RUNG_TRY(rung_j_equal(run, loop->changed->item[i], call->item[i], &same));
  RUNG_TRY(rung_j_list(run, RUNG_J_TUPLE, call->count, &now));
  for (size_t i = 0; i < call->count; i++) RUNG_TRY(rung_j_append(run, now.as.list, call->item[i]));
  loop->changed = now.as.list;
  *out = rung_j_bool(!same);
  return RUNG_OK;
}

/* ---- dictionaries and lists */

ROW(rung_jmethod_get) {
  UNUSED;
  const rung_jvalue *found;
  RUNG_TRY(rung_j_get(run, self.as.dict, arg[0], &found));
  *out = found ? *found : arg[1].kind == RUNG_J_MISSING ? rung_j_none() : arg[1];
  return RUNG_OK;
}

static rung_status view(rung_jrun *run, const rung_jdict *dict, const char *name, bool keys, bool values,
                        rung_jvalue *out) {
  RUNG_TRY(rung_j_list(run, RUNG_J_VIEW, dict->count, out));
  out->as.list->name = name;
  for (uint32_t i = 0; i < dict->count; i++) {
    rung_jvalue item = keys ? dict->entry[i].key : dict->entry[i].value;
    if (keys && values) RUNG_TRY(rung_j_pair(run, dict->entry[i].key, dict->entry[i].value, &item));
    RUNG_TRY(rung_j_append(run, out->as.list, item));
  }
  return RUNG_OK;
}
ROW(rung_jmethod_items) {
  UNUSED;
  return view(run, self.as.dict, "dict_items", true, true, out);
}
ROW(rung_jmethod_keys) {
  UNUSED;
  return view(run, self.as.dict, "dict_keys", true, false, out);
}
ROW(rung_jmethod_values) {
  UNUSED;
  return view(run, self.as.dict, "dict_values", false, true, out);
}

/* Values do not change, so that a copy is as good as the thing. */
ROW(rung_jmethod_copy) {
  UNUSED;
  *out = self;
  return RUNG_OK;
}

ROW(rung_jmethod_list_count) {
  UNUSED;
  int64_t count = 0;
  for (size_t i = 0; i < self.as.list->count; i++) {
    bool same;
    RUNG_TRY(rung_j_equal(run, self.as.list->item[i], arg[0], &same));
    count += same;
  }
  *out = rung_j_int(count);
  return RUNG_OK;
}

ROW(rung_jmethod_list_index) {
  UNUSED;
  const int64_t length = (int64_t)self.as.list->count;
  int64_t start, stop;
  RUNG_TRY(rung_jarg_integer(run, arg[1], "start", 0, &start));
  RUNG_TRY(rung_jarg_integer(run, arg[2], "stop", length, &stop));
  if (start < 0) start = start + length < 0 ? 0 : start + length;
  if (stop < 0) stop += length;
  for (int64_t i = start; i < stop && i < length; i++) {
    bool same;
    RUNG_TRY(rung_j_equal(run, self.as.list->item[i], arg[0], &same));
    if (!same) continue;
    *out = rung_j_int(i);
    return RUNG_OK;
  }
  return rung_j_fail(run, "the value is not in the list");
}
