/* SPDX-License-Identifier: MIT
 * Templates: the part of Jinja that chat templates use, as Python's jinja2 renders it in the settings of Hugging Face's
 * transformers (trim_blocks, lstrip_blocks, an immutable sandbox, break and continue, their tojson).
 *
 * A template is parsed once into a tree and is immutable; any number of threads may render it. A render reaches the
 * values that it is given and nothing else. It is bounded: in steps (every node that is evaluated, and every few bytes
 * that are copied or compared), in depth and in memory; going beyond is a status. Lists are tables: filters.def,
 * tests.def, methods.def, functions.def. */
#ifndef RUNG_TEXT_JINJA_JINJA_H
#define RUNG_TEXT_JINJA_JINJA_H

#include "base/host.h"
#include "base/text.h"

typedef struct rung_chat_template rung_jtemplate; /* the public name */

/* Parses `bytes` of UTF-8. CORRUPT_FILE: not a template, with line and construct; UNSUPPORTED: a construct that is not
 * part of the subset. Counted: made with one reference. */
rung_status rung_jtemplate_create(rung_host *host, const char *text, size_t bytes, rung_error *error,
                                  rung_jtemplate **out_template);
void rung_jtemplate_retain(rung_jtemplate *jtemplate);
void rung_jtemplate_release(rung_jtemplate *jtemplate); /* NULL allowed */
const char *rung_jtemplate_source(const rung_jtemplate *jtemplate, size_t *out_bytes);

typedef struct rung_jvariable {
  const char *name;
  const char *json; /* NULL: the text instead */
  size_t json_bytes;
  const char *text; /* a string */
  size_t text_bytes;
} rung_jvariable;

typedef struct rung_jlimits {
  uint64_t steps, bytes;
  int depth;
} rung_jlimits;

/* Of a variable that is named twice the later counts; `members` (NULL: none) is a JSON object whose members are
 * variables too and count last. `now` is local time in seconds since 1970. The text is terminated and freed with
 * rung_text_free of the template's host. */
rung_status rung_jtemplate_render(const rung_jtemplate *jtemplate, const rung_jvariable *variable, size_t count,
                                  const char *members, int64_t now, const rung_jlimits *limits, rung_error *error,
                                  char **out_text, size_t *out_bytes);

#endif
