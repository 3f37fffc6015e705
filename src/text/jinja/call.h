/* SPDX-License-Identifier: MIT
 * What can be called: filters, tests, methods and functions are rows of tables with one signature. */
#ifndef RUNG_TEXT_JINJA_CALL_H
#define RUNG_TEXT_JINJA_CALL_H

#include "text/jinja/value.h"

enum { RUNG_J_MOST_PARAMETERS = 6 };

typedef struct rung_jcall {
  const rung_jvalue *item; /* positional */
  size_t count;
  const rung_jdict *named; /* NULL: none */
} rung_jcall;

/* `self` is what a filter is applied to, what a test asks about, what a method belongs to. `arg` holds the arguments in
 * the order of the row's parameters, MISSING where none was given; rows whose parameters are "*" look into the call. */
typedef rung_status rung_jfunction_fn(rung_jrun *run, rung_jvalue self, const rung_jcall *call, const rung_jvalue *arg,
                                      rung_jvalue *out);

struct rung_jfunction {
  const char *name, *parameters; /* names separated by blanks, or "*" */
  int required;
  unsigned kinds;          /* of methods: a bit per kind of value that has it */
  rung_jfunction_fn *call; /* NULL: a method that would change its value, which the sandbox refuses */
};

struct rung_jmethod {
  const rung_jfunction *function;
  rung_jvalue self;
};

/* By name; NULL: there is none. */
const rung_jfunction *rung_jrow_filter(const char *name, size_t length);
const rung_jfunction *rung_jrow_test(const char *name, size_t length);
const rung_jfunction *rung_jrow_global(const char *name, size_t length);
const rung_jfunction *rung_jrow_method(rung_jkind kind, const char *name, size_t length);

/* Binds arguments to parameters and calls. */
rung_status rung_jfunction_call(rung_jrun *run, const rung_jfunction *function, rung_jvalue self,
                                const rung_jcall *call, rung_jvalue *out);
/* Calls any value. */
rung_status rung_j_call(rung_jrun *run, rung_jvalue callee, const rung_jcall *call, rung_jvalue *out);
rung_status rung_jmacro_call(rung_jrun *run, const rung_jmacro *macro, const rung_jcall *call, rung_jvalue *out);
rung_status rung_jloop_call(rung_jrun *run, rung_jloop *loop, const rung_jcall *call, rung_jvalue *out);

/* value.name and value[key] of the sandbox; what is not there is UNDEFINED. */
rung_status rung_j_attribute(rung_jrun *run, rung_jvalue value, const char *name, size_t length, rung_jvalue *out);
rung_status rung_j_item(rung_jrun *run, rung_jvalue value, rung_jvalue key, rung_jvalue *out);
/* Only what Python has as an attribute, no key of a dict. */
rung_status rung_j_own(rung_jrun *run, rung_jvalue value, const char *name, size_t length, rung_jvalue *out,
                       bool *out_found);
rung_status rung_jloop_attribute(rung_jrun *run, rung_jloop *loop, const char *name, size_t length, rung_jvalue *out,
                                 bool *out_found);
/* An attribute as filters name it: "a.b.0". */
rung_status rung_j_path(rung_jrun *run, rung_jvalue value, rung_jvalue path, rung_jvalue *out);
rung_status rung_j_slice(rung_jrun *run, rung_jvalue value, const rung_jvalue bound[3], rung_jvalue *out);

/* Reading arguments. `what` names the parameter in messages. */
rung_status rung_jarg_integer(rung_jrun *run, rung_jvalue value, const char *what, int64_t standard, int64_t *out);
rung_status rung_jarg_text(rung_jrun *run, rung_jvalue value, const char *what, const rung_jstring **out);
/* What Undefined raises when it is used. */
rung_status rung_j_undefined_error(rung_jrun *run, rung_jvalue value);

/* Texts: where `part` begins at or behind `from`, SIZE_MAX if nowhere; last: the last one that ends at or before `to`. */
rung_status rung_j_search(rung_jrun *run, const rung_jstring *text, const rung_jstring *part, size_t from, size_t *out);
rung_status rung_j_escape(rung_jrun *run, rung_jtext *text, const rung_jstring *s); /* & < > ' " */
/* A part of a string, sharing its bytes. */
rung_status rung_j_part(rung_jrun *run, const rung_jstring *s, size_t from, size_t to, rung_jvalue *out);

/* text % value, and text.format(...) (format.c) */
rung_status rung_j_percent(rung_jrun *run, const rung_jstring *format, rung_jvalue value, rung_jvalue *out);
rung_status rung_j_format(rung_jrun *run, const rung_jstring *format, const rung_jcall *call, rung_jvalue *out);
rung_status rung_j_strftime(rung_jrun *run, const rung_jstring *format, int64_t now, rung_jvalue *out);
/* a op b for arithmetic; kind is the node's. */
rung_status rung_j_binary(rung_jrun *run, int kind, rung_jvalue a, rung_jvalue b, rung_jvalue *out);

#endif
