/* SPDX-License-Identifier: MIT
 * Filters of sequences. What Python makes lazily is made at once here: what it would never have looked at can fail. */
#include "text/jinja/ast.h"
#include "text/jinja/filter.h"
#include "text/jinja/text.h"

/* ---- one element */

ROW(length) {
  UNUSED;
  int64_t length;
  RUNG_TRY(rung_j_length(run, self, &length));
  *out = rung_j_int(length);
  return RUNG_OK;
}

ROW(first) {
  UNUSED;
  rung_jlist *list = self.as.list;
  if (self.kind == RUNG_J_ITERATOR) {
    if (list->at < list->count) {
      *out = list->item[list->at++];
      return RUNG_OK;
    }
  } else {
    RUNG_TRY(rung_j_elements(run, self, &list));
    if (list->count) {
      *out = list->item[0];
      return RUNG_OK;
    }
  }
  return rung_j_undefined(run, out, "No first item, sequence was empty.");
}

ROW(last) {
  UNUSED;
  rung_jlist *list;
  if (self.kind == RUNG_J_ITERATOR || self.kind == RUNG_J_UNDEFINED)
    return rung_j_fail(run, "'%s' object is not reversible", rung_j_type(self));
  RUNG_TRY(rung_j_elements(run, self, &list));
  if (!list->count) return rung_j_undefined(run, out, "No last item, sequence was empty.");
  *out = list->item[list->count - 1];
  return RUNG_OK;
}

/* ---- whole sequences */

static rung_status iterator(rung_jrun *run, const char *name, rung_jvalue *out) {
  RUNG_TRY(rung_j_list(run, RUNG_J_ITERATOR, 0, out));
  out->as.list->name = name;
  return RUNG_OK;
}

ROW(list) {
  UNUSED;
  rung_jlist *from;
  RUNG_TRY(rung_j_elements(run, self, &from));
  RUNG_TRY(rung_j_list(run, RUNG_J_LIST, from->count, out));
  for (size_t i = 0; i < from->count; i++) RUNG_TRY(rung_j_append(run, out->as.list, from->item[i]));
  return RUNG_OK;
}

ROW(reverse) {
  UNUSED;
  rung_jlist *from;
  if (self.kind == RUNG_J_STRING) {
    const rung_jvalue bound[3] = {rung_j_none(), rung_j_none(), rung_j_int(-1)};
    return rung_j_slice(run, self, bound, out);
  }
  RUNG_TRY(rung_j_elements(run, self, &from));
  rung_jvalue made;
  if (self.kind == RUNG_J_ITERATOR || self.kind == RUNG_J_UNDEFINED)
    RUNG_TRY(rung_j_list(run, RUNG_J_LIST, from->count, &made));
  else
    RUNG_TRY(iterator(run, "list_reverseiterator", &made));
  for (size_t i = from->count; i-- > 0;) RUNG_TRY(rung_j_append(run, made.as.list, from->item[i]));
  *out = made;
  return RUNG_OK;
}

ROW(items) {
  UNUSED;
  RUNG_TRY(iterator(run, "generator", out));
  if (self.kind == RUNG_J_UNDEFINED) return RUNG_OK;
  if (self.kind != RUNG_J_DICT) return rung_j_fail(run, "Can only get item pairs from a mapping.");
  for (uint32_t i = 0; i < self.as.dict->count; i++) {
    rung_jvalue pair;
    RUNG_TRY(rung_j_pair(run, self.as.dict->entry[i].key, self.as.dict->entry[i].value, &pair));
    RUNG_TRY(rung_j_append(run, out->as.list, pair));
  }
  return RUNG_OK;
}

ROW(join) {
  UNUSED;
  rung_jlist *list;
  rung_jvalue between;
  rung_jtext text = {0};
  if (arg[0].kind == RUNG_J_MISSING)
    RUNG_TRY(rung_j_text(run, "", 0, &between));
  else
    RUNG_TRY(rung_j_str(run, arg[0], &between));
  RUNG_TRY(rung_j_elements(run, self, &list));
  for (size_t i = 0; i < list->count; i++) {
    rung_jvalue one = list->item[i];
    if (arg[1].kind != RUNG_J_MISSING && arg[1].kind != RUNG_J_NONE) RUNG_TRY(rung_j_path(run, one, arg[1], &one));
    if (i) RUNG_TRY(rung_j_put(run, &text, between.as.string->data, between.as.string->length));
    RUNG_TRY(rung_j_put_str(run, &text, one));
  }
  return rung_j_take(run, &text, out);
}

ROW(batch) {
  UNUSED;
  rung_jlist *list;
  rung_jvalue part = {0};
  int64_t size;
  RUNG_TRY(rung_jarg_integer(run, arg[0], "linecount", 0, &size));
  RUNG_TRY(rung_j_elements(run, self, &list));
  RUNG_TRY(iterator(run, "generator", out));
  for (size_t i = 0; i < list->count; i++) {
    if (part.kind == RUNG_J_MISSING || (int64_t)part.as.list->count == size) {
      RUNG_TRY(rung_j_list(run, RUNG_J_LIST, 0, &part));
      RUNG_TRY(rung_j_append(run, out->as.list, part));
    }
    RUNG_TRY(rung_j_append(run, part.as.list, list->item[i]));
  }
  if (arg[1].kind == RUNG_J_MISSING || arg[1].kind == RUNG_J_NONE || part.kind == RUNG_J_MISSING) return RUNG_OK;
  while ((int64_t)part.as.list->count < size) RUNG_TRY(rung_j_append(run, part.as.list, arg[1]));
  return RUNG_OK;
}

ROW(slice) {
  UNUSED;
  rung_jlist *list;
  int64_t slices;
  RUNG_TRY(rung_jarg_integer(run, arg[0], "slices", 0, &slices));
  RUNG_TRY(rung_j_elements(run, self, &list));
  RUNG_TRY(iterator(run, "generator", out));
  if (slices == 0) return rung_j_fail(run, "integer division or modulo by zero");
  if (slices < 0) return RUNG_OK;
  const int64_t count = (int64_t)list->count, each = count / slices, extra = count % slices;
  size_t at = 0;
  for (int64_t i = 0; i < slices; i++) {
    rung_jvalue part;
    RUNG_TRY(rung_j_list(run, RUNG_J_LIST, 0, &part));
    for (int64_t k = 0; k < each + (i < extra); k++) RUNG_TRY(rung_j_append(run, part.as.list, list->item[at++]));
    if (arg[1].kind != RUNG_J_MISSING && arg[1].kind != RUNG_J_NONE && i >= extra)
      RUNG_TRY(rung_j_append(run, part.as.list, arg[1]));
    RUNG_TRY(rung_j_append(run, out->as.list, part));
  }
  return RUNG_OK;
}

/* ---- map, select, reject */

/* The arguments from the n-th on. */
static rung_jcall rest(const rung_jcall *call, size_t n) {
  return (rung_jcall){call->item ? call->item + n : NULL, call->count - n, call->named};
}

static rung_status map_attribute(rung_jrun *run, const rung_jlist *list, const rung_jdict *named, rung_jlist *to) {
  const rung_jvalue *path = rung_j_find(named, "attribute", 9), *standard = rung_j_find(named, "default", 7);
  if (!path) return rung_j_fail(run, "map requires a filter argument");
  if (named->count != 1u + (standard != NULL)) return rung_j_fail(run, "map: unexpected keyword argument");
  for (size_t i = 0; i < list->count; i++) {
    rung_jvalue one;
    RUNG_TRY(rung_j_path(run, list->item[i], *path, &one));
    if (one.kind == RUNG_J_UNDEFINED && standard && standard->kind != RUNG_J_NONE) one = *standard;
    RUNG_TRY(rung_j_append(run, to, one));
  }
  return RUNG_OK;
}

ROW(map) {
  UNUSED;
  rung_jlist *list;
  rung_jvalue made;
  RUNG_TRY(iterator(run, "generator", &made));
  *out = made;
  if (!rung_j_true(self)) return RUNG_OK;
  RUNG_TRY(rung_j_elements(run, self, &list));
  if (!call->count && call->named) return map_attribute(run, list, call->named, made.as.list);
  if (!call->count) return rung_j_fail(run, "map requires a filter argument");
  const rung_jstring *name;
  RUNG_TRY(rung_jarg_text(run, call->item[0], "map", &name));
  const rung_jfunction *filter = rung_jrow_filter(name->data, name->length);
  if (!filter)
    return rung_j_refuse(run, RUNG_UNSUPPORTED, "the filter %.*s is not known",
                         name->length < 64 ? (int)name->length : 64, name->data);
  const rung_jcall others = rest(call, 1);
  for (size_t i = 0; i < list->count; i++) {
    rung_jvalue one;
    RUNG_TRY(rung_jfunction_call(run, filter, list->item[i], &others, &one));
    RUNG_TRY(rung_j_append(run, made.as.list, one));
  }
  return RUNG_OK;
}

/* Elements (or their attribute) that pass a test, or that do not. */
static rung_status choose(rung_jrun *run, rung_jvalue self, const rung_jcall *call, bool attribute, bool wanted,
                          rung_jvalue *out) {
  rung_jlist *list;
  rung_jvalue made;
  const size_t off = attribute;
  RUNG_TRY(iterator(run, "generator", &made));
  *out = made;
  if (!rung_j_true(self)) return RUNG_OK;
  if (call->count < off) return rung_j_fail(run, "Missing parameter for attribute name");
  const rung_jfunction *test = NULL;
  if (call->count > off) {
    const rung_jstring *name;
    RUNG_TRY(rung_jarg_text(run, call->item[off], "test", &name));
    test = rung_jrow_test(name->data, name->length);
    if (!test)
      return rung_j_refuse(run, RUNG_UNSUPPORTED, "the test %.*s is not known",
                           name->length < 64 ? (int)name->length : 64, name->data);
  }
  const rung_jcall others = rest(call, test ? off + 1 : off);
  RUNG_TRY(rung_j_elements(run, self, &list));
  for (size_t i = 0; i < list->count; i++) {
    rung_jvalue one = list->item[i];
    RUNG_TRY(rung_j_steps(run, 1));
    if (attribute) RUNG_TRY(rung_j_path(run, one, call->item[0], &one));
    if (test) RUNG_TRY(rung_jfunction_call(run, test, one, &others, &one));
    if (rung_j_true(one) == wanted) RUNG_TRY(rung_j_append(run, made.as.list, list->item[i]));
  }
  return RUNG_OK;
}
ROW(select) {
  UNUSED;
  return choose(run, self, call, false, true, out);
}
ROW(reject) {
  UNUSED;
  return choose(run, self, call, false, false, out);
}
ROW(selectattr) {
  UNUSED;
  return choose(run, self, call, true, true, out);
}
ROW(rejectattr) {
  UNUSED;
  return choose(run, self, call, true, false, out);
}

/* ---- order */

/* What an element is compared by: itself or its attribute, texts in lower case unless case counts. */
static rung_status key_of(rung_jrun *run, rung_jvalue v, rung_jvalue path, bool cased, rung_jvalue *out) {
  *out = v;
  if (path.kind != RUNG_J_MISSING && path.kind != RUNG_J_NONE) RUNG_TRY(rung_j_path(run, v, path, out));
  if (cased || out->kind != RUNG_J_STRING) return RUNG_OK;
  return rung_jtext_form(run, out->as.string, RUNG_J_FORM_LOWER, out);
}

/* Several attributes, "a,b", are compared one after the other. */
static rung_status keys_of(rung_jrun *run, rung_jvalue v, rung_jvalue path, bool cased, rung_jvalue *out) {
  if (path.kind != RUNG_J_STRING || !path.as.string->length ||
      !memchr(path.as.string->data, ',', path.as.string->length))
    return key_of(run, v, path, cased, out);
  rung_jvalue keys, key, part;
  const rung_jstring *s = path.as.string;
  RUNG_TRY(rung_j_list(run, RUNG_J_LIST, 0, &keys));
  for (size_t from = 0, to; from <= s->length; from = to + 1) {
    for (to = from; to < s->length && s->data[to] != ','; to++) continue;
    RUNG_TRY(rung_j_part(run, s, from, to, &part));
    RUNG_TRY(key_of(run, v, part, cased, &key));
    RUNG_TRY(rung_j_append(run, keys.as.list, key));
  }
  *out = keys;
  return RUNG_OK;
}

typedef struct keyed {
  rung_jvalue key, value;
} keyed;

/* A stable merge sort of items[0 .. count); reverse keeps equal elements in their order too. */
static rung_status merge_sort(rung_jrun *run, keyed *item, keyed *scratch, size_t count, bool reverse) {
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t from = 0; from + width < count; from += 2 * width) {
      size_t a = from, b = from + width, n = 0;
      const size_t middle = b, end = b + width < count ? b + width : count;
      while (a < middle && b < end) {
        int order;
        RUNG_TRY(reverse ? rung_j_order(run, item[a].key, item[b].key, "<", &order)
                         : rung_j_order(run, item[b].key, item[a].key, "<", &order));
        scratch[n++] = order < 0 ? item[b++] : item[a++];
      }
      while (a < middle) scratch[n++] = item[a++];
      while (b < end) scratch[n++] = item[b++];
      memcpy(item + from, scratch, n * sizeof *item);
    }
  }
  return RUNG_OK;
}

static rung_status sorted(rung_jrun *run, const rung_jlist *list, rung_jvalue path, bool cased, bool reverse,
                          keyed **out) {
  keyed *item, *scratch;
  RUNG_TRY(rung_j_alloc(run, list->count * sizeof *item, &item));
  RUNG_TRY(rung_j_alloc(run, list->count * sizeof *item, &scratch));
  for (size_t i = 0; i < list->count; i++) {
    item[i].value = list->item[i];
    RUNG_TRY(keys_of(run, list->item[i], path, cased, &item[i].key));
  }
  *out = item;
  return merge_sort(run, item, scratch, list->count, reverse);
}

static rung_status as_list(rung_jrun *run, const keyed *item, size_t count, rung_jvalue *out) {
  RUNG_TRY(rung_j_list(run, RUNG_J_LIST, count, out));
  for (size_t i = 0; i < count; i++) RUNG_TRY(rung_j_append(run, out->as.list, item[i].value));
  return RUNG_OK;
}

ROW(sort) {
  UNUSED;
  rung_jlist *list;
  keyed *item;
  RUNG_TRY(rung_j_elements(run, self, &list));
  RUNG_TRY(sorted(run, list, arg[2], rung_j_true(arg[1]), rung_j_true(arg[0]), &item));
  return as_list(run, item, list->count, out);
}

ROW(dictsort) {
  UNUSED;
  rung_jvalue pairs;
  keyed *item;
  const bool by_value = rung_j_is_text(arg[1], "value");
  if (!by_value && arg[1].kind != RUNG_J_MISSING && !rung_j_is_text(arg[1], "key"))
    return rung_j_fail(run, "You can only sort by either \"key\" or \"value\"");
  if (self.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, self);
  if (self.kind != RUNG_J_DICT) return rung_j_fail(run, "'%s' object has no attribute 'items'", rung_j_type(self));
  RUNG_TRY(rung_jfilter_items(run, self, call, arg, &pairs));
  RUNG_TRY(sorted(run, pairs.as.list, rung_j_int(by_value), rung_j_true(arg[0]), rung_j_true(arg[2]), &item));
  return as_list(run, item, pairs.as.list->count, out);
}

static rung_status extreme(rung_jrun *run, rung_jvalue self, const rung_jvalue *arg, int sign, rung_jvalue *out) {
  rung_jlist *list;
  rung_jvalue best = {0}, key;
  RUNG_TRY(rung_j_elements(run, self, &list));
  if (!list->count) return rung_j_undefined(run, out, "No aggregated item, sequence was empty.");
  for (size_t i = 0; i < list->count; i++) {
    int order = -sign;
    RUNG_TRY(key_of(run, list->item[i], arg[1], rung_j_true(arg[0]), &key));
    if (i) RUNG_TRY(rung_j_order(run, key, best, sign < 0 ? "<" : ">", &order));
    if (i && order != sign) continue;
    best = key;
    *out = list->item[i];
  }
  return RUNG_OK;
}
ROW(min) {
  UNUSED;
  return extreme(run, self, arg, -1, out);
}
ROW(max) {
  UNUSED;
  return extreme(run, self, arg, 1, out);
}

ROW(unique) {
  UNUSED;
  rung_jlist *list;
  rung_jvalue seen, key, made;
  RUNG_TRY(rung_j_elements(run, self, &list));
  RUNG_TRY(rung_j_dict(run, RUNG_J_DICT, &seen));
  RUNG_TRY(iterator(run, "generator", &made));
  for (size_t i = 0; i < list->count; i++) {
    const rung_jvalue *before;
    RUNG_TRY(key_of(run, list->item[i], arg[1], rung_j_true(arg[0]), &key));
    RUNG_TRY(rung_j_get(run, seen.as.dict, key, &before));
    if (before) continue;
    RUNG_TRY(rung_j_set(run, seen.as.dict, key, key));
    RUNG_TRY(rung_j_append(run, made.as.list, list->item[i]));
  }
  *out = made;
  return RUNG_OK;
}

ROW(sum) {
  UNUSED;
  rung_jlist *list;
  RUNG_TRY(rung_j_elements(run, self, &list));
  *out = arg[1].kind == RUNG_J_MISSING ? rung_j_int(0) : arg[1];
  for (size_t i = 0; i < list->count; i++) {
    rung_jvalue one = list->item[i];
    if (arg[0].kind != RUNG_J_MISSING && arg[0].kind != RUNG_J_NONE) RUNG_TRY(rung_j_path(run, one, arg[0], &one));
    RUNG_TRY(rung_j_binary(run, RUNG_J_NODE_ADD, *out, one, out));
  }
  return RUNG_OK;
}

/* Tuples (what they share, list) that also have the attributes grouper and list. */
ROW(groupby) {
  UNUSED;
  rung_jlist *list;
  rung_jvalue groups, group, members, path = arg[0], shown;
  keyed *item;
  if (arg[1].kind != RUNG_J_MISSING && arg[1].kind != RUNG_J_NONE)
    return rung_j_refuse(run, RUNG_UNSUPPORTED, "groupby with a default");
  const bool cased = rung_j_true(arg[2]);
  RUNG_TRY(rung_j_elements(run, self, &list));
  RUNG_TRY(sorted(run, list, path, cased, false, &item));
  RUNG_TRY(rung_j_list(run, RUNG_J_LIST, 0, &groups));
  for (size_t i = 0; i < list->count; i++) {
    bool same = false;
    if (i) RUNG_TRY(rung_j_equal(run, item[i - 1].key, item[i].key, &same));
    if (!same) {
      RUNG_TRY(rung_j_list(run, RUNG_J_LIST, 0, &members));
      RUNG_TRY(key_of(run, item[i].value, path, true, &shown));
      RUNG_TRY(rung_j_pair(run, cased ? item[i].key : shown, members, &group));
      group.as.list->name = "group";
      RUNG_TRY(rung_j_append(run, groups.as.list, group));
    }
    RUNG_TRY(rung_j_append(run, members.as.list, item[i].value));
  }
  *out = groups;
  return RUNG_OK;
}
