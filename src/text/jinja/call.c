/* SPDX-License-Identifier: MIT
 * The tables of what can be called, and binding arguments to parameters. */
#include "text/jinja/call.h"

#include <stdio.h>

#include "text/jinja/rows.h"

#define KIND(name) (1u << RUNG_J_##name)

static const rung_jfunction filters[] = {
#define FILTER(name, parameters, required, function) {#name, parameters, required, 0, rung_jfilter_##function},
#include "text/jinja/filters.def"
#undef FILTER
};
static const rung_jfunction tests[] = {
#define TEST(name, parameters, required, function) {name, parameters, required, 0, rung_jtest_##function},
#include "text/jinja/tests.def"
#undef TEST
};
static const rung_jfunction globals[] = {
#define GLOBAL(name, parameters, required) {#name, parameters, required, 0, rung_jglobal_##name},
#include "text/jinja/globals.def"
#undef GLOBAL
};
static const rung_jfunction methods[] = {
#define METHOD(kinds, name, parameters, required, function) \
  {#name, parameters, required, kinds, rung_jmethod_##function},
#define MUTATES(kinds, name) {#name, "*", 0, kinds, NULL},
#include "text/jinja/methods.def"
#undef METHOD
#undef MUTATES
};

static const rung_jfunction *find(const rung_jfunction *row, size_t count, unsigned kinds, const char *name,
                                  size_t length) {
  for (size_t i = 0; i < count; i++)
    if ((!kinds || (row[i].kinds & kinds)) && strlen(row[i].name) == length && memcmp(row[i].name, name, length) == 0)
      return &row[i];
  return NULL;
}
const rung_jfunction *rung_jrow_filter(const char *name, size_t length) {
  return find(filters, RUNG_COUNT(filters), 0, name, length);
}
const rung_jfunction *rung_jrow_test(const char *name, size_t length) {
  return find(tests, RUNG_COUNT(tests), 0, name, length);
}
const rung_jfunction *rung_jrow_global(const char *name, size_t length) {
  return find(globals, RUNG_COUNT(globals), 0, name, length);
}
const rung_jfunction *rung_jrow_method(rung_jkind kind, const char *name, size_t length) {
  return find(methods, RUNG_COUNT(methods), 1u << kind, name, length);
}

/* ---- binding */

/* The next name of a list separated by blanks; its length, 0 at the end. */
static size_t next_name(const char **at) {
  while (**at == ' ') (*at)++;
  size_t n = 0;
  while ((*at)[n] && (*at)[n] != ' ') n++;
  return n;
}

static rung_status bind(rung_jrun *run, const rung_jfunction *f, const rung_jcall *call, rung_jvalue *arg) {
  size_t count = 0, used = 0;
  const char *at = f->parameters;
  for (size_t n; (n = next_name(&at)) != 0; at += n, count++) {
    const rung_jvalue *named = call->named ? rung_j_find(call->named, at, n) : NULL;
    if (named && count < call->count) return rung_j_fail(run, "got multiple values for argument '%.*s'", (int)n, at);
    if (count < call->count)
      arg[count] = call->item[count];
    else if (named)
      arg[count] = *named;
    else if ((int)count < f->required)
      return rung_j_fail(run, "missing a required argument: '%.*s'", (int)n, at);
    used += named != NULL;
  }
  if (call->count > count) return rung_j_fail(run, "takes at most %zu arguments (%zu given)", count, call->count);
  if (call->named && used < call->named->count) return rung_j_fail(run, "got an unexpected keyword argument");
  return RUNG_OK;
}

rung_status rung_jfunction_call(rung_jrun *run, const rung_jfunction *f, rung_jvalue self, const rung_jcall *call,
                                rung_jvalue *out) {
  rung_jvalue arg[RUNG_J_MOST_PARAMETERS] = {{0}};
  if (f->parameters[0] != '*') RUNG_TRY(bind(run, f, call, arg));
  RUNG_TRY(rung_j_enter(run));
  const rung_status status = f->call(run, self, call, arg, out);
  rung_j_leave(run);
  return status;
}

rung_status rung_j_call(rung_jrun *run, rung_jvalue callee, const rung_jcall *call, rung_jvalue *out) {
  switch (callee.kind) {
    case RUNG_J_UNDEFINED:
      return rung_j_undefined_error(run, callee);
    case RUNG_J_MACRO:
      return rung_jmacro_call(run, callee.as.macro, call, out);
    case RUNG_J_LOOP:
      return rung_jloop_call(run, callee.as.loop, call, out);
    case RUNG_J_FUNCTION:
      return rung_jfunction_call(run, callee.as.function, callee, call, out);
    case RUNG_J_METHOD:
      return rung_jfunction_call(run, callee.as.method->function, callee.as.method->self, call, out);
    case RUNG_J_JOINER: {
      rung_jcycler *joiner = callee.as.cycler;
      if (joiner->used) {
        *out = joiner->text;
        return RUNG_OK;
      }
      joiner->used = true;
      return rung_j_text(run, "", 0, out);
    }
    default:
      return rung_j_fail(run, "'%s' object is not callable", rung_j_type(callee));
  }
}

/* ---- reading arguments */

rung_status rung_jarg_integer(rung_jrun *run, rung_jvalue v, const char *what, int64_t standard, int64_t *out) {
  *out = standard;
  if (v.kind == RUNG_J_MISSING) return RUNG_OK;
  if (v.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, v);
  if (!rung_j_is_integer(v)) return rung_j_fail(run, "%s: an integer expected, not '%s'", what, rung_j_type(v));
  *out = rung_j_integer(v);
  return RUNG_OK;
}

rung_status rung_jarg_text(rung_jrun *run, rung_jvalue v, const char *what, const rung_jstring **out) {
  if (v.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, v);
  if (v.kind != RUNG_J_STRING) return rung_j_fail(run, "%s: a str expected, not '%s'", what, rung_j_type(v));
  *out = v.as.string;
  return RUNG_OK;
}
