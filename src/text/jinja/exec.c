/* SPDX-License-Identifier: MIT
 * Statements of templates, macros, loops, and a whole render. */
#include "text/jinja/ast.h"

/* ---- assigning */

static rung_status unpack(rung_jrun *run, const rung_jnode *target, rung_jscope *scope, rung_jvalue value) {
  rung_jlist *list;
  size_t i = 0, wanted = 0;
  for (const rung_jnode *n = target->list; n; n = n->next) wanted++;
  if (!rung_j_is_list(value) && value.kind != RUNG_J_STRING && value.kind != RUNG_J_DICT &&
      value.kind != RUNG_J_UNDEFINED)
    return rung_j_fail(run, "cannot unpack non-iterable %s object", rung_j_type(value));
  RUNG_TRY(rung_j_elements(run, value, &list));
  if (list->count != wanted)
    return rung_j_fail(run, "%s values to unpack (expected %zu, got %zu)",
                       list->count > wanted ? "too many" : "not enough", wanted, list->count);
  for (const rung_jnode *n = target->list; n; n = n->next) RUNG_TRY(rung_jassign(run, n, scope, list->item[i++]));
  return RUNG_OK;
}

rung_status rung_jassign(rung_jrun *run, const rung_jnode *target, rung_jscope *scope, rung_jvalue value) {
  if (target->kind == RUNG_J_NODE_NAME) return rung_jscope_set(run, scope, target->name, value);
  if (target->kind == RUNG_J_NODE_TUPLE) return rung_j_place(run, target, unpack(run, target, scope, value));
  rung_jnode name = *target; /* the namespace, looked up as any name is */
  rung_jvalue space;
  name.kind = RUNG_J_NODE_NAME;
  RUNG_TRY(rung_jeval(run, &name, scope, &space));
  if (space.kind != RUNG_J_NAMESPACE)
    return rung_j_place(run, target, rung_j_fail(run, "cannot assign attribute on non-namespace object"));
  return rung_j_set(run, space.as.dict, target->a->name->value, value);
}

/* ---- text of a body */

/* Runs a body in a scope of its own and gives its text. */
static rung_status capture(rung_jrun *run, const rung_jnode *list, rung_jscope *scope, rung_jvalue *out) {
  rung_jtext text = {0}, *before = run->out;
  rung_jscope *inner;
  rung_jflow flow;
  RUNG_TRY(rung_jscope_new(run, scope, &inner));
  run->out = &text;
  const rung_status status = rung_jexec(run, list, inner, &flow);
  run->out = before;
  RUNG_TRY(status);
  return rung_j_take(run, &text, out);
}

/* ---- macros */

static bool is_parameter(const rung_jnode *macro, rung_jvalue key) {
  for (const rung_jnode *n = macro->list; n; n = n->next)
    if (rung_j_is_text(key, n->name->text)) return true;
  return false;
}

/* varargs, kwargs and caller, for macros that name them; too many arguments are an error for the others. */
static rung_status bind_others(rung_jrun *run, const rung_jnode *node, const rung_jcall *call, const rung_jdict *left,
                               size_t parameters, rung_jscope *scope) {
  rung_jvalue others, named;
  const char *name = node->name->text;
  RUNG_TRY(rung_j_dict(run, RUNG_J_DICT, &named));
  const rung_jvalue *caller = left ? rung_j_find(left, "caller", 6) : NULL;
  const bool takes = node->uses_caller && !is_parameter(node, run->template_->caller->value);
  if (takes) {
    RUNG_TRY(caller ? RUNG_OK : rung_j_undefined(run, &others, "No caller defined"));
    RUNG_TRY(rung_jscope_set(run, scope, run->template_->caller, caller ? *caller : others));
  }
  for (uint32_t i = 0; left && i < left->count; i++) {
    if (takes && rung_j_is_text(left->entry[i].key, "caller")) continue;
    if (!node->uses_named)
      return rung_j_fail(run, "macro '%.60s' takes no keyword argument '%.60s'", name,
                         left->entry[i].key.as.string->data);
    RUNG_TRY(rung_j_set(run, named.as.dict, left->entry[i].key, left->entry[i].value));
  }
  if (node->uses_named) RUNG_TRY(rung_jscope_set(run, scope, run->template_->kwargs, named));
  if (!node->uses_positional)
    return call->count <= parameters
               ? RUNG_OK
               : rung_j_fail(run, "macro '%.60s' takes not more than %zu argument(s)", name, parameters);
  RUNG_TRY(rung_j_list(run, RUNG_J_TUPLE, 0, &others));
  for (size_t i = parameters; i < call->count; i++) RUNG_TRY(rung_j_append(run, others.as.list, call->item[i]));
  return rung_jscope_set(run, scope, run->template_->varargs, others);
}

static rung_status bind(rung_jrun *run, const rung_jmacro *macro, const rung_jcall *call, rung_jscope *scope) {
  const rung_jnode *node = macro->node;
  rung_jvalue left;
  size_t i = 0;
  RUNG_TRY(rung_j_dict(run, RUNG_J_DICT, &left)); /* named arguments that are no parameter, or given by place too */
  for (uint32_t k = 0; call->named && k < call->named->count; k++) {
    const rung_jentry *e = &call->named->entry[k];
    size_t place = 0;
    const rung_jnode *n = node->list;
    for (; n && !rung_j_is_text(e->key, n->name->text); n = n->next) place++;
    if (!n || place < call->count) RUNG_TRY(rung_j_set(run, left.as.dict, e->key, e->value));
  }
  for (const rung_jnode *n = node->list; n; n = n->next, i++) {
    const rung_jvalue *named =
        call->named && i >= call->count ? rung_j_find(call->named, n->name->text, n->name->length) : NULL;
    rung_jvalue value;
    if (i < call->count)
      value = call->item[i];
    else if (named)
      value = *named;
    else if (n->a)
      RUNG_TRY(rung_jeval(run, n->a, scope, &value));
    else
      RUNG_TRY(rung_j_undefined(run, &value, "parameter '%.60s' was not provided", n->name->text));
    RUNG_TRY(rung_jscope_set(run, scope, n->name, value));
  }
  return bind_others(run, node, call, left.as.dict, i, scope);
}

rung_status rung_jmacro_call(rung_jrun *run, const rung_jmacro *macro, const rung_jcall *call, rung_jvalue *out) {
  rung_jscope *scope;
  RUNG_TRY(rung_jscope_new(run, macro->scope, &scope));
  RUNG_TRY(bind(run, macro, call, scope));
  return capture(run, macro->node->more, scope, out);
}

static rung_status make_macro(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out) {
  rung_jmacro *macro;
  RUNG_TRY(rung_j_alloc(run, sizeof *macro, &macro));
  *macro = (rung_jmacro){node, scope};
  *out = (rung_jvalue){.kind = RUNG_J_MACRO, .as.macro = macro};
  return RUNG_OK;
}

/* ---- loops */

rung_status rung_jloop_pull(rung_jrun *run, rung_jloop *loop, rung_jvalue *out) {
  while (loop->at < loop->source->count) {
    *out = loop->source->item[loop->at++];
    if (!loop->node->c || loop->filtered) return RUNG_OK;
    rung_jscope *scope;
    rung_jvalue test;
    RUNG_TRY(rung_jscope_new(run, loop->scope, &scope));
    RUNG_TRY(rung_jassign(run, loop->node->a, scope, *out));
    RUNG_TRY(rung_jeval(run, loop->node->c, scope, &test));
    if (rung_j_true(test)) return RUNG_OK;
  }
  *out = (rung_jvalue){.kind = RUNG_J_MISSING};
  return RUNG_OK;
}

static rung_status run_loop(rung_jrun *run, const rung_jnode *node, rung_jscope *outer, rung_jvalue over,
                            int64_t depth) {
  rung_jloop *loop;
  rung_jscope *scope;
  rung_jflow flow = RUNG_J_GOES_ON;
  RUNG_TRY(rung_j_alloc(run, sizeof *loop, &loop));
  *loop = (rung_jloop){.node = node, .scope = outer, .index = -1, .depth = depth};
  RUNG_TRY(rung_j_elements(run, over, &loop->source));
  while (flow != RUNG_J_BREAKS) {
    rung_jvalue next = loop->after;
    loop->after = (rung_jvalue){.kind = RUNG_J_MISSING};
    if (next.kind == RUNG_J_MISSING) RUNG_TRY(rung_jloop_pull(run, loop, &next));
    if (next.kind == RUNG_J_MISSING) break;
    loop->index++;
    loop->before = loop->current;
    loop->current = next;
    RUNG_TRY(rung_jscope_new(run, outer, &scope));
    RUNG_TRY(rung_jscope_set(run, scope, run->template_->loop, (rung_jvalue){.kind = RUNG_J_LOOP, .as.loop = loop}));
    RUNG_TRY(rung_jassign(run, node->a, scope, next));
    RUNG_TRY(rung_jexec(run, node->list, scope, &flow));
  }
  if (loop->index >= 0 || !node->more) return RUNG_OK;
  RUNG_TRY(rung_jscope_new(run, outer, &scope));
  return rung_jexec(run, node->more, scope, &flow);
}

/* loop(children) of a recursive loop: the text of the same loop over other things. */
rung_status rung_jloop_call(rung_jrun *run, rung_jloop *loop, const rung_jcall *call, rung_jvalue *out) {
  if (!loop->node->flag) return rung_j_fail(run, "The loop must have the 'recursive' marker enabled.");
  if (call->count != 1 || call->named) return rung_j_fail(run, "loop() takes one argument");
  rung_jtext text = {0}, *before = run->out;
  run->out = &text;
  const rung_status status = run_loop(run, loop->node, loop->scope, call->item[0], loop->depth + 1);
  run->out = before;
  RUNG_TRY(status);
  return rung_j_take(run, &text, out);
}

/* ---- statements */

static rung_status run_if(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jflow *flow) {
  for (const rung_jnode *branch = node->list; branch; branch = branch->next) {
    rung_jvalue test = rung_j_bool(true);
    if (branch->a) RUNG_TRY(rung_jeval(run, branch->a, scope, &test));
    if (rung_j_true(test)) return rung_jexec(run, branch->list, scope, flow);
  }
  return RUNG_OK;
}

static rung_status output(rung_jrun *run, const rung_jnode *node, rung_jscope *scope) {
  for (const rung_jnode *n = node->list; n; n = n->next) {
    rung_jvalue value;
    RUNG_TRY(rung_jeval(run, n, scope, &value));
    RUNG_TRY(rung_j_place(run, n, rung_j_put_str(run, run->out, value)));
  }
  return RUNG_OK;
}

static rung_status with(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jflow *flow) {
  rung_jscope *inner;
  RUNG_TRY(rung_jscope_new(run, scope, &inner));
  for (const rung_jnode *n = node->list; n; n = n->next) {
    rung_jvalue value;
    RUNG_TRY(rung_jeval(run, n->b, scope, &value));
    RUNG_TRY(rung_jassign(run, n->a, inner, value));
  }
  return rung_jexec(run, node->more, inner, flow);
}

static rung_status set(rung_jrun *run, const rung_jnode *node, rung_jscope *scope) {
  rung_jvalue value;
  if (node->kind == RUNG_J_NODE_SET) {
    RUNG_TRY(rung_jeval(run, node->b, scope, &value));
    return rung_jassign(run, node->a, scope, value);
  }
  RUNG_TRY(capture(run, node->list, scope, &value));
  if (node->b) RUNG_TRY(rung_jeval_filters(run, node->b, scope, value, &value));
  return rung_jassign(run, node->a, scope, value);
}

/* {% filter %}, {% call %} and {% generation %} print what comes of their body. */
static rung_status block(rung_jrun *run, const rung_jnode *node, rung_jscope *scope) {
  rung_jvalue value;
  if (node->kind == RUNG_J_NODE_CALL_BLOCK) {
    rung_jvalue caller;
    RUNG_TRY(make_macro(run, node->b, scope, &caller));
    RUNG_TRY(rung_jeval_call(run, node->a, scope, caller, &value));
  } else if (node->kind == RUNG_J_NODE_FILTER_BLOCK) {
    RUNG_TRY(capture(run, node->list, scope, &value));
    RUNG_TRY(rung_jeval_filters(run, node->b, scope, value, &value));
  } else {
    RUNG_TRY(capture(run, node->more, scope, &value));
  }
  return rung_j_place(run, node, rung_j_put_str(run, run->out, value));
}

static rung_status execute(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jflow *flow) {
  rung_jvalue value;
  switch (node->kind) {
    case RUNG_J_NODE_TEXT:
      return rung_j_put(run, run->out, node->value.as.string->data, node->value.as.string->length);
    case RUNG_J_NODE_OUTPUT:
      return output(run, node, scope);
    case RUNG_J_NODE_IF:
      return run_if(run, node, scope, flow);
    case RUNG_J_NODE_FOR:
      RUNG_TRY(rung_jeval(run, node->b, scope, &value));
      return run_loop(run, node, scope, value, 0);
    case RUNG_J_NODE_SET:
    case RUNG_J_NODE_SET_BLOCK:
      return set(run, node, scope);
    case RUNG_J_NODE_MACRO:
      RUNG_TRY(make_macro(run, node, scope, &value));
      return rung_jscope_set(run, scope, node->name, value);
    case RUNG_J_NODE_WITH:
      return with(run, node, scope, flow);
    case RUNG_J_NODE_BREAK:
      *flow = RUNG_J_BREAKS;
      return RUNG_OK;
    case RUNG_J_NODE_CONTINUE:
      *flow = RUNG_J_CONTINUES;
      return RUNG_OK;
    default:
      return block(run, node, scope);
  }
}

rung_status rung_jexec(rung_jrun *run, const rung_jnode *list, rung_jscope *scope, rung_jflow *out_flow) {
  *out_flow = RUNG_J_GOES_ON;
  rung_status status = rung_j_enter(run);
  if (status) return list ? rung_j_place(run, list, status) : status;
  for (const rung_jnode *node = list; node && !status && *out_flow == RUNG_J_GOES_ON; node = node->next) {
    status = rung_j_steps(run, 1);
    if (!status) status = execute(run, node, scope, out_flow);
    status = rung_j_place(run, node, status);
  }
  rung_j_leave(run);
  return status;
}

/* ---- a render */

static rung_status give_json(rung_jrun *run, const char *name, const char *text, size_t bytes, rung_jvalue *out) {
  rung_json json;
  rung_status status = rung_json_check(text, bytes, 0, run->error, &json);
  if (!status) status = rung_j_json(run, json, out);
  return status ? rung_fail_prefix(run->error, status, "%s", name) : RUNG_OK;
}

static rung_status give(rung_jrun *run, const rung_jvariable *variable, size_t count, const char *members) {
  rung_jvalue value, name;
  RUNG_TRY(rung_j_dict(run, RUNG_J_DICT, &value));
  run->given = value.as.dict;
  for (size_t i = 0; i < count; i++) {
    const rung_jvariable *v = &variable[i];
    RUNG_TRY(rung_j_text(run, v->name, strlen(v->name), &name));
    if (v->json)
      RUNG_TRY(give_json(run, v->name, v->json, v->json_bytes, &value));
    else
      RUNG_TRY(rung_j_text(run, v->text, v->text_bytes, &value));
    RUNG_TRY(rung_j_set(run, run->given, name, value));
  }
  if (!members) return RUNG_OK;
  RUNG_TRY(give_json(run, "variables", members, strlen(members), &value));
  if (value.kind != RUNG_J_DICT)
    return rung_j_fail(run, "variables: a JSON object expected, not a %s", rung_j_type(value));
  for (uint32_t i = 0; i < value.as.dict->count; i++)
    RUNG_TRY(rung_j_set(run, run->given, value.as.dict->entry[i].key, value.as.dict->entry[i].value));
  return RUNG_OK;
}

rung_status rung_jtemplate_render(const rung_jtemplate *t, const rung_jvariable *variable, size_t count,
                                  const char *members, int64_t now, const rung_jlimits *limits, rung_error *error,
                                  char **out_text, size_t *out_bytes) {
  rung_error own = {0}; /* messages are put together piece by piece, which needs a place */
  rung_jtext text = {0};
  rung_jrun run = {.host = t->host,
                   .error = error ? error : &own,
                   .steps = limits->steps,
                   .bytes = limits->bytes,
                   .deepest = limits->depth,
                   .out = &text,
                   .template_ = t,
                   .now = now};
  rung_jscope *scope;
  rung_jflow flow;
  char *copy = NULL;
  rung_arena_init(&run.arena, t->host);
  rung_status status = give(&run, variable, count, members);
  if (!status) status = rung_jscope_new(&run, NULL, &scope);
  if (!status) status = rung_jexec(&run, t->body, scope, &flow);
  if (!status) copy = (char *)rung_host_alloc_raw(t->host, RUNG_MEMORY_host, text.length + 1, 1);
  if (!status && !copy) status = rung_j_refuse(&run, RUNG_OUT_OF_MEMORY, "out of memory for %zu bytes", text.length);
  if (status) {
    (void)rung_fail_prefix(run.error, status, "chat template");
  } else {
    if (text.length) memcpy(copy, text.data, text.length);
    copy[text.length] = 0;
    *out_text = copy;
    *out_bytes = text.length;
  }
  rung_arena_finish(&run.arena);
  return status;
}
