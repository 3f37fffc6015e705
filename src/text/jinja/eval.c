/* SPDX-License-Identifier: MIT
 * Expressions of templates, evaluated. */
#include <math.h>

#include "text/jinja/ast.h"

rung_status rung_j_place(rung_jrun *run, const rung_jnode *node, rung_status status) {
  if (!status || run->placed) return status;
  char what[96];
  rung_jnode_describe(node, what, sizeof what);
  run->placed = true;
  return rung_fail_prefix(run->error, status, "line %d: %s", node->line, what);
}

/* ---- scopes */

rung_status rung_jscope_new(rung_jrun *run, rung_jscope *parent, rung_jscope **out) {
  RUNG_TRY(rung_j_alloc(run, sizeof **out, out));
  (*out)->parent = parent;
  return RUNG_OK;
}

rung_status rung_jscope_set(rung_jrun *run, rung_jscope *scope, const rung_jname *name, rung_jvalue value) {
  for (rung_jbinding *b = scope->first; b; b = b->next) {
    if (b->name != name) continue;
    b->value = value;
    return RUNG_OK;
  }
  rung_jbinding *b;
  RUNG_TRY(rung_j_alloc(run, sizeof *b, &b));
  *b = (rung_jbinding){scope->first, name, value};
  scope->first = b;
  return RUNG_OK;
}

static rung_status look_up(rung_jrun *run, const rung_jname *name, const rung_jscope *scope, rung_jvalue *out) {
  for (; scope; scope = scope->parent) {
    RUNG_TRY(rung_j_steps(run, 1));
    for (const rung_jbinding *b = scope->first; b; b = b->next) {
      if (b->name != name) continue;
      *out = b->value;
      return RUNG_OK;
    }
  }
  const rung_jvalue *given = rung_j_find(run->given, name->text, name->length);
  if (given) {
    *out = *given;
    return RUNG_OK;
  }
  const rung_jfunction *function = rung_jrow_global(name->text, name->length);
  if (function) {
    *out = (rung_jvalue){.kind = RUNG_J_FUNCTION, .as.function = function};
    return RUNG_OK;
  }
  return rung_j_undefined(run, out, "'%.100s' is undefined", name->text);
}

/* ---- calls */

static rung_status spread(rung_jrun *run, rung_jvalue value, rung_jlist *items) {
  rung_jlist *list;
  RUNG_TRY(rung_j_elements(run, value, &list));
  for (size_t i = 0; i < list->count; i++) RUNG_TRY(rung_j_append(run, items, list->item[i]));
  return RUNG_OK;
}

static rung_status spread_named(rung_jrun *run, rung_jvalue value, rung_jdict *named) {
  if (value.kind != RUNG_J_DICT)
    return rung_j_fail(run, "argument after ** must be a mapping, not %s", rung_j_type(value));
  for (uint32_t i = 0; i < value.as.dict->count; i++) {
    const rung_jvalue *twice;
    if (value.as.dict->entry[i].key.kind != RUNG_J_STRING) return rung_j_fail(run, "keywords must be strings");
    RUNG_TRY(rung_j_get(run, named, value.as.dict->entry[i].key, &twice));
    if (twice) return rung_j_fail(run, "got multiple values for a keyword argument");
    RUNG_TRY(rung_j_set(run, named, value.as.dict->entry[i].key, value.as.dict->entry[i].value));
  }
  return RUNG_OK;
}

static rung_status arguments(rung_jrun *run, const rung_jnode *list, rung_jscope *scope, rung_jvalue caller,
                             rung_jcall *out) {
  rung_jvalue items, named;
  size_t count = 0;
  bool any = caller.kind != RUNG_J_MISSING;
  for (const rung_jnode *n = list; n; n = n->next) {
    count++;
    any |= n->kind == RUNG_J_NODE_KEYWORD || n->kind == RUNG_J_NODE_SPREAD_NAMED;
  }
  *out = (rung_jcall){0};
  if (!count && !any) return RUNG_OK;
  RUNG_TRY(rung_j_list(run, RUNG_J_LIST, count, &items));
  RUNG_TRY(rung_j_dict(run, RUNG_J_DICT, &named));
  for (const rung_jnode *n = list; n; n = n->next) {
    const bool wrapped =
        n->kind == RUNG_J_NODE_KEYWORD || n->kind == RUNG_J_NODE_SPREAD || n->kind == RUNG_J_NODE_SPREAD_NAMED;
    rung_jvalue value;
    RUNG_TRY(rung_jeval(run, wrapped ? n->a : n, scope, &value));
    if (n->kind == RUNG_J_NODE_KEYWORD)
      RUNG_TRY(rung_j_set(run, named.as.dict, n->name->value, value));
    else if (n->kind == RUNG_J_NODE_SPREAD)
      RUNG_TRY(spread(run, value, items.as.list));
    else if (n->kind == RUNG_J_NODE_SPREAD_NAMED)
      RUNG_TRY(spread_named(run, value, named.as.dict));
    else
      RUNG_TRY(rung_j_append(run, items.as.list, value));
  }
  if (caller.kind != RUNG_J_MISSING) RUNG_TRY(rung_j_set(run, named.as.dict, run->template_->caller->value, caller));
  *out = (rung_jcall){items.as.list->item, items.as.list->count, named.as.dict->count ? named.as.dict : NULL};
  return RUNG_OK;
}

rung_status rung_jeval_call(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue caller,
                            rung_jvalue *out) {
  rung_jvalue callee;
  rung_jcall call;
  RUNG_TRY(rung_jeval(run, node->a, scope, &callee));
  RUNG_TRY(arguments(run, node->list, scope, caller, &call));
  return rung_j_place(run, node, rung_j_call(run, callee, &call, out));
}

static rung_status apply(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue input,
                         rung_jvalue *out) {
  rung_jcall call;
  if (!node->function) return rung_j_refuse(run, RUNG_UNSUPPORTED, "it is not known");
  RUNG_TRY(arguments(run, node->list, scope, (rung_jvalue){0}, &call));
  return rung_jfunction_call(run, node->function, input, &call, out);
}

rung_status rung_jeval_filters(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue input,
                               rung_jvalue *out) {
  if (node->a) {
    RUNG_TRY(rung_j_enter(run));
    const rung_status status = rung_jeval_filters(run, node->a, scope, input, &input);
    rung_j_leave(run);
    RUNG_TRY(status);
  }
  return rung_j_place(run, node, apply(run, node, scope, input, out));
}

/* ---- operators */

static rung_status compare(rung_jrun *run, rung_jcomparison comparison, rung_jvalue a, rung_jvalue b, bool *out) {
  static const char *const names[] = {"==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  int order;
  switch (comparison) {
    case RUNG_J_EQUAL:
      return rung_j_equal(run, a, b, out);
    case RUNG_J_UNEQUAL:
      RUNG_TRY(rung_j_equal(run, a, b, out));
      *out = !*out;
      return RUNG_OK;
    case RUNG_J_IN:
      return rung_j_contains(run, b, a, out);
    case RUNG_J_NOT_IN:
      RUNG_TRY(rung_j_contains(run, b, a, out));
      *out = !*out;
      return RUNG_OK;
    default:
      RUNG_TRY(rung_j_order(run, a, b, names[comparison], &order));
      if ((a.kind == RUNG_J_FLOAT && isnan(a.as.number)) || (b.kind == RUNG_J_FLOAT && isnan(b.as.number)))
        *out = false;
      else
        *out = comparison == RUNG_J_LESS      ? order < 0
               : comparison == RUNG_J_AT_MOST ? order <= 0
               : comparison == RUNG_J_MORE    ? order > 0
                                              : order >= 0;
      return RUNG_OK;
  }
}

static rung_status comparisons(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out) {
  rung_jvalue left, right;
  bool truth = true;
  RUNG_TRY(rung_jeval(run, node->a, scope, &left));
  for (const rung_jnode *n = node->list; n && truth; n = n->next) {
    RUNG_TRY(rung_jeval(run, n->a, scope, &right));
    RUNG_TRY(compare(run, n->comparison, left, right, &truth));
    left = right;
  }
  *out = rung_j_bool(truth);
  return RUNG_OK;
}

static rung_status concat(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out) {
  for (const rung_jnode *n = node->list; n; n = n->next) {
    rung_jvalue value, text;
    RUNG_TRY(rung_jeval(run, n, scope, &value));
    RUNG_TRY(rung_j_str(run, value, &text));
    if (n != node->list) {
      RUNG_TRY(rung_j_join(run, *out, text.as.string->data, text.as.string->length, out));
      continue;
    }
    RUNG_TRY(rung_j_text(run, text.as.string->data, text.as.string->length, out));
    out->as.string->room = text.as.string->room;
  }
  return RUNG_OK;
}

static rung_status sign(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out) {
  rung_jvalue v;
  RUNG_TRY(rung_jeval(run, node->a, scope, &v));
  if (v.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, v);
  if (!rung_j_is_number(v)) return rung_j_fail(run, "bad operand type for unary operator: '%s'", rung_j_type(v));
  if (v.kind == RUNG_J_FLOAT) {
    *out = rung_j_float(node->kind == RUNG_J_NODE_NEGATIVE ? -v.as.number : v.as.number);
    return RUNG_OK;
  }
  return rung_j_binary(run, node->kind == RUNG_J_NODE_NEGATIVE ? RUNG_J_NODE_SUBTRACT : RUNG_J_NODE_ADD, rung_j_int(0),
                       v, out);
}

/* ---- the rest */

static rung_status elements(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out) {
  size_t count = 0;
  for (const rung_jnode *n = node->list; n; n = n->next) count++;
  RUNG_TRY(rung_j_list(run, node->kind == RUNG_J_NODE_TUPLE ? RUNG_J_TUPLE : RUNG_J_LIST, count, out));
  rung_jlist *list = out->as.list;
  for (const rung_jnode *n = node->list; n; n = n->next) {
    rung_jvalue value;
    RUNG_TRY(rung_jeval(run, n, scope, &value));
    RUNG_TRY(rung_j_append(run, list, value));
  }
  return RUNG_OK;
}

static rung_status members(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out) {
  rung_jvalue dict;
  RUNG_TRY(rung_j_dict(run, RUNG_J_DICT, &dict));
  for (const rung_jnode *n = node->list; n; n = n->next) {
    rung_jvalue key, value;
    RUNG_TRY(rung_jeval(run, n->a, scope, &key));
    RUNG_TRY(rung_jeval(run, n->b, scope, &value));
    RUNG_TRY(rung_j_set(run, dict.as.dict, key, value));
  }
  *out = dict;
  return RUNG_OK;
}

static rung_status item(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out) {
  rung_jvalue value, key;
  RUNG_TRY(rung_jeval(run, node->a, scope, &value));
  if (node->b->kind != RUNG_J_NODE_SLICE) {
    RUNG_TRY(rung_jeval(run, node->b, scope, &key));
    return rung_j_item(run, value, key, out);
  }
  const rung_jnode *const part[3] = {node->b->a, node->b->b, node->b->c};
  rung_jvalue bound[3];
  for (int i = 0; i < 3; i++) {
    bound[i] = rung_j_none();
    if (part[i]) RUNG_TRY(rung_jeval(run, part[i], scope, &bound[i]));
  }
  return rung_j_slice(run, value, bound, out);
}

static rung_status choice(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out) {
  rung_jvalue test;
  RUNG_TRY(rung_jeval(run, node->a, scope, &test));
  if (rung_j_true(test)) return rung_jeval(run, node->b, scope, out);
  if (node->c) return rung_jeval(run, node->c, scope, out);
  return rung_j_undefined(run, out, "the inline if-expression on line %d evaluated to false and has no else",
                          node->line);
}

static rung_status two(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out) {
  rung_jvalue a, b;
  RUNG_TRY(rung_jeval(run, node->a, scope, &a));
  RUNG_TRY(rung_jeval(run, node->b, scope, &b));
  return rung_j_binary(run, (int)node->kind, a, b, out);
}

static rung_status evaluate(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out) {
  rung_jvalue value;
  switch (node->kind) {
    case RUNG_J_NODE_CONST:
      *out = node->value;
      return RUNG_OK;
    case RUNG_J_NODE_NAME:
      return look_up(run, node->name, scope, out);
    case RUNG_J_NODE_TUPLE:
    case RUNG_J_NODE_LIST:
      return elements(run, node, scope, out);
    case RUNG_J_NODE_DICT:
      return members(run, node, scope, out);
    case RUNG_J_NODE_ATTRIBUTE:
      RUNG_TRY(rung_jeval(run, node->a, scope, &value));
      return rung_j_attribute(run, value, node->name->text, node->name->length, out);
    case RUNG_J_NODE_ITEM:
      return item(run, node, scope, out);
    case RUNG_J_NODE_CALL:
      return rung_jeval_call(run, node, scope, (rung_jvalue){0}, out);
    case RUNG_J_NODE_FILTER:
    case RUNG_J_NODE_TEST:
      RUNG_TRY(rung_jeval(run, node->a, scope, &value));
      return apply(run, node, scope, value, out);
    case RUNG_J_NODE_NOT:
      RUNG_TRY(rung_jeval(run, node->a, scope, &value));
      *out = rung_j_bool(!rung_j_true(value));
      return RUNG_OK;
    case RUNG_J_NODE_NEGATIVE:
    case RUNG_J_NODE_POSITIVE:
      return sign(run, node, scope, out);
    case RUNG_J_NODE_AND:
    case RUNG_J_NODE_OR:
      RUNG_TRY(rung_jeval(run, node->a, scope, out));
      return rung_j_true(*out) == (node->kind == RUNG_J_NODE_AND) ? rung_jeval(run, node->b, scope, out) : RUNG_OK;
    case RUNG_J_NODE_CONCAT:
      return concat(run, node, scope, out);
    case RUNG_J_NODE_COMPARE:
      return comparisons(run, node, scope, out);
    case RUNG_J_NODE_CHOICE:
      return choice(run, node, scope, out);
    case RUNG_J_NODE_SLICE:
      return rung_j_refuse(run, RUNG_UNSUPPORTED, "a slice among other indices");
    default:
      return two(run, node, scope, out);
  }
}

rung_status rung_jeval(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out) {
  rung_status status = rung_j_enter(run);
  if (status) return rung_j_place(run, node, status);
  status = rung_j_steps(run, 1);
  if (!status) status = evaluate(run, node, scope, out);
  rung_j_leave(run);
  return rung_j_place(run, node, status);
}
