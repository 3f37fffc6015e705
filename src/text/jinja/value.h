/* SPDX-License-Identifier: MIT
 * Values of templates, as Python has them, and the run that owns them: all memory of a run is one arena, counted
 * against the run's limit and gone at its end. Values never change once made; only namespaces do, and iterators move. */
#ifndef RUNG_TEXT_JINJA_VALUE_H
#define RUNG_TEXT_JINJA_VALUE_H

#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "text/jinja/jinja.h"
#include "text/json.h"

typedef enum rung_jkind {
  RUNG_J_MISSING, /* no value at all: an argument that was not given */
  RUNG_J_UNDEFINED,
  RUNG_J_NONE,
  RUNG_J_BOOL,
  RUNG_J_INT,
  RUNG_J_BIG, /* an integer of more than 64 bits, as its digits: passed through, never computed with */
  RUNG_J_FLOAT,
  RUNG_J_STRING,
  RUNG_J_LIST,
  RUNG_J_TUPLE,
  RUNG_J_RANGE, /* a list with another name */
  RUNG_J_VIEW,  /* dict_items, dict_keys, dict_values */
  RUNG_J_ITERATOR,
  RUNG_J_DICT,
  RUNG_J_NAMESPACE,
  RUNG_J_LOOP,
  RUNG_J_MACRO,
  RUNG_J_FUNCTION,
  RUNG_J_METHOD,
  RUNG_J_CYCLER,
  RUNG_J_JOINER
} rung_jkind;

typedef struct rung_jstring rung_jstring;
typedef struct rung_jlist rung_jlist;
typedef struct rung_jdict rung_jdict;
typedef struct rung_jloop rung_jloop;
typedef struct rung_jmacro rung_jmacro;
typedef struct rung_jmethod rung_jmethod;
typedef struct rung_jcycler rung_jcycler;
typedef struct rung_jfunction rung_jfunction;

typedef struct rung_jvalue {
  rung_jkind kind;
  union {
    bool truth;
    int64_t integer;
    double number;
    rung_jstring *string; /* of UNDEFINED: why, for the message; of BIG: the digits */
    rung_jlist *list;
    rung_jdict *dict;
    rung_jloop *loop;
    const rung_jmacro *macro;
    const rung_jfunction *function;
    const rung_jmethod *method;
    rung_jcycler *cycler; /* and of JOINER */
  } as;
} rung_jvalue;

/* Room at the end of which a string may grow in place: text that is put together piece by piece would otherwise be
 * copied whole for every piece. */
typedef struct rung_jroom {
  size_t used, capacity;
  char *data;
} rung_jroom;

struct rung_jstring {
  const char *data; /* valid UTF-8 */
  size_t length;
  int64_t characters; /* -1: not counted yet */
  bool safe;          /* markup: what is added to it is escaped */
  rung_jroom *room;   /* NULL: none */
};

struct rung_jlist {
  rung_jvalue *item;
  size_t count, capacity;
  size_t at;        /* of an iterator: the next one */
  const char *name; /* of a view or an iterator: its Python type */
  int64_t start, stop, step;
};

typedef struct rung_jentry {
  rung_jvalue key, value;
  uint64_t hash;
} rung_jentry;

struct rung_jdict {
  rung_jentry *entry; /* in the order in which they came */
  uint32_t count, capacity;
  uint32_t *slot; /* hash table of index + 1; NULL while small */
  uint32_t slots; /* a power of two */
};

typedef struct rung_jnode rung_jnode;
typedef struct rung_jscope rung_jscope;

struct rung_jmacro {
  const rung_jnode *node;
  rung_jscope *scope; /* where it was defined */
};

struct rung_jcycler { /* of a joiner: `used` and the text */
  rung_jlist *items;
  size_t at;
  bool used;
  rung_jvalue text;
};

/* Text that grows inside a run. */
typedef struct rung_jtext {
  char *data;
  size_t length, capacity;
} rung_jtext;

struct rung_jrun {
  rung_arena arena;
  rung_host *host;
  rung_error *error;
  bool placed;           /* the message says where */
  uint64_t steps, bytes; /* left */
  int depth, deepest;
  rung_jdict *given; /* the variables of the caller */
  rung_jtext *out;
  const rung_jtemplate *template_;
  int64_t now;
};
typedef struct rung_jrun rung_jrun;

/* ---- the run */
rung_status rung_j_fail(rung_jrun *run, const char *format, ...) RUNG_PRINTF(2, 3); /* what Python raises */
rung_status rung_j_refuse(rung_jrun *run, rung_status status, const char *format, ...) RUNG_PRINTF(3, 4);
rung_status rung_j_steps(rung_jrun *run, size_t count); /* takes them from what is left */
/* Work on `bytes` bytes of text, or on so many bytes' worth of elements. */
static inline rung_status rung_j_work(rung_jrun *run, size_t bytes) { return rung_j_steps(run, bytes / 64 + 1); }
/* One level deeper, for everything that calls itself; rung_j_leave in any case when it was OK. */
rung_status rung_j_enter(rung_jrun *run);
static inline void rung_j_leave(rung_jrun *run) { run->depth--; }
rung_status rung_j_alloc(rung_jrun *run, size_t bytes, void *out_pointer); /* a pointer to a pointer; zeroed */

rung_status rung_j_put(rung_jrun *run, rung_jtext *text, const char *data, size_t length);
static inline rung_status rung_j_puts(rung_jrun *run, rung_jtext *text, const char *data) {
  return rung_j_put(run, text, data, strlen(data));
}
rung_status rung_j_put_character(rung_jrun *run, rung_jtext *text, uint32_t character);

/* ---- making values */
static inline rung_jvalue rung_j_none(void) { return (rung_jvalue){.kind = RUNG_J_NONE}; }
static inline rung_jvalue rung_j_bool(bool truth) { return (rung_jvalue){.kind = RUNG_J_BOOL, .as.truth = truth}; }
static inline rung_jvalue rung_j_int(int64_t i) { return (rung_jvalue){.kind = RUNG_J_INT, .as.integer = i}; }
static inline rung_jvalue rung_j_float(double d) { return (rung_jvalue){.kind = RUNG_J_FLOAT, .as.number = d}; }
/* The text is borrowed: it lives as long as the run. */
rung_status rung_j_text(rung_jrun *run, const char *data, size_t length, rung_jvalue *out);
rung_status rung_j_undefined(rung_jrun *run, rung_jvalue *out, const char *format, ...) RUNG_PRINTF(3, 4);
/* What `text` holds becomes a string. */
static inline rung_status rung_j_take(rung_jrun *run, const rung_jtext *text, rung_jvalue *out) {
  return rung_j_text(run, text->data ? text->data : "", text->length, out);
}
rung_status rung_j_list(rung_jrun *run, rung_jkind kind, size_t capacity, rung_jvalue *out);
rung_status rung_j_append(rung_jrun *run, rung_jlist *list, rung_jvalue value);
rung_status rung_j_pair(rung_jrun *run, rung_jvalue a, rung_jvalue b, rung_jvalue *out); /* a tuple */
rung_status rung_j_dict(rung_jrun *run, rung_jkind kind, rung_jvalue *out);
rung_status rung_j_set(rung_jrun *run, rung_jdict *dict, rung_jvalue key, rung_jvalue value);
rung_status rung_j_json(rung_jrun *run, rung_json json, rung_jvalue *out);
/* + of strings: the left one grows in place where it can. */
rung_status rung_j_join(rung_jrun *run, rung_jvalue left, const char *data, size_t length, rung_jvalue *out);

/* ---- asking */
const char *rung_j_type(rung_jvalue value); /* Python's name of the type */
bool rung_j_true(rung_jvalue value);
bool rung_j_is_number(rung_jvalue value);  /* bool, int, float; not BIG */
double rung_j_number(rung_jvalue value);   /* of those three */
bool rung_j_is_integer(rung_jvalue value); /* bool or int */
int64_t rung_j_integer(rung_jvalue value);
static inline bool rung_j_is_list(rung_jvalue v) { return v.kind >= RUNG_J_LIST && v.kind <= RUNG_J_ITERATOR; }
static inline bool rung_j_is_text(rung_jvalue v, const char *text) {
  return v.kind == RUNG_J_STRING && v.as.string->length == strlen(text) &&
         memcmp(v.as.string->data, text, v.as.string->length) == 0;
}
int64_t rung_j_characters(rung_jstring *string);
/* Where the i-th character begins, 0 <= i <= characters. */
size_t rung_j_offset(rung_jstring *string, int64_t i);
rung_status rung_j_equal(rung_jrun *run, rung_jvalue a, rung_jvalue b, bool *out);
/* -1, 0, 1; TypeError where Python has no order. `what` is the operator, for the message. */
rung_status rung_j_order(rung_jrun *run, rung_jvalue a, rung_jvalue b, const char *what, int *out);
rung_status rung_j_contains(rung_jrun *run, rung_jvalue container, rung_jvalue item, bool *out);
rung_status rung_j_length(rung_jrun *run, rung_jvalue value, int64_t *out);
/* NULL: there is no such key. A key that cannot be one (a list) is a TypeError. */
rung_status rung_j_get(rung_jrun *run, const rung_jdict *dict, rung_jvalue key, const rung_jvalue **out);
const rung_jvalue *rung_j_find(const rung_jdict *dict, const char *name, size_t length);
/* All elements: of a list itself, of a string its characters, of a dict its keys. What is left of an iterator is used
 * up. Undefined has none; other values are a TypeError. */
rung_status rung_j_elements(rung_jrun *run, rung_jvalue value, rung_jlist **out);

/* ---- as text (repr.c, to_json.c) */
rung_status rung_j_put_str(rung_jrun *run, rung_jtext *text, rung_jvalue value);
rung_status rung_j_put_repr(rung_jrun *run, rung_jtext *text, rung_jvalue value);
rung_status rung_j_put_float(rung_jrun *run, rung_jtext *text, double value);
/* str(value): strings as they are. */
rung_status rung_j_str(rung_jrun *run, rung_jvalue value, rung_jvalue *out);
typedef struct rung_jlayout {
  bool ascii, sort, lines;
  const char *indent, *item, *member; /* of `lines` the blanks of a level; separators */
  size_t indent_length, item_length, member_length;
} rung_jlayout;
rung_status rung_j_put_json(rung_jrun *run, rung_jtext *text, rung_jvalue value, const rung_jlayout *layout);

#endif
