/* SPDX-License-Identifier: MIT
 * JSON (RFC 8259) read where it lies: a text is checked once as a whole, then values are ranges of it. Nothing is
 * copied or allocated, and what was checked can be walked without failing. Safe for hostile text: grammar, UTF-8 and
 * depth are checked before anything is believed; a walk over a container takes time in proportion to its text. */
#ifndef RUNG_TEXT_JSON_H
#define RUNG_TEXT_JSON_H

#include <rung/status.h>

#include "base/compiler.h"

enum { RUNG_JSON_DEPTH = 64 };

typedef enum rung_json_kind {
  RUNG_JSON_NONE, /* no value at all: what a look-up did not find */
  RUNG_JSON_NULL,
  RUNG_JSON_BOOL,
  RUNG_JSON_NUMBER,
  RUNG_JSON_STRING,
  RUNG_JSON_ARRAY,
  RUNG_JSON_OBJECT
} rung_json_kind;

/* One value of a checked text, without blanks around it. Zeroed: none. */
typedef struct rung_json {
  const char *text;
  size_t length;
} rung_json;

/* Checks `bytes` of text that hold one value. CORRUPT_FILE: the message names the offset, counted from `offset`, that
 * the text has in its file. */
rung_status rung_json_check(const char *text, size_t bytes, uint64_t offset, rung_error *error, rung_json *out_value);

rung_json_kind rung_json_kind_of(rung_json value);
const char *rung_json_kind_name(rung_json_kind kind); /* "a string" */

/* Walks the elements of an array or the members of an object; anything else has none. *out_name (NULL allowed) is the
 * member's name, none in arrays. */
typedef struct rung_json_walk {
  const char *at;
  bool object;
} rung_json_walk;
rung_json_walk rung_json_begin(rung_json container);
bool rung_json_next(rung_json_walk *walk, rung_json *out_name, rung_json *out_value);
/* Elements or members. */
size_t rung_json_count(rung_json container);
/* The first member of a name, none if there is no such; *out_twice (NULL allowed): is there a second? */
rung_json rung_json_find(rung_json object, const char *name, bool *out_twice);

/* A string's text with its escapes read. At most `bytes` are written; returns the whole length (never more than
 * value.length). Without a backslash the text lies between the quotes as it is: rung_json_plain. */
size_t rung_json_string(rung_json value, char *out, size_t bytes);
bool rung_json_plain(rung_json value, const char **out_text, size_t *out_length); /* false: it has escapes */
bool rung_json_equals(rung_json value, const char *text);                         /* is it the string `text`? */
/* false: no number, not whole (it has a fraction or an exponent), or beyond the type. */
bool rung_json_i64(rung_json value, int64_t *out);
bool rung_json_f64(rung_json value, double *out);

#endif
