/* SPDX-License-Identifier: MIT
 * The tree of a template and its tokens. Nodes live in the template's arena and never change once it is made. */
#ifndef RUNG_TEXT_JINJA_AST_H
#define RUNG_TEXT_JINJA_AST_H

#include <stdatomic.h>

#include "text/jinja/call.h"
#include "text/jinja/value.h"

/* ---- tokens */
typedef enum rung_jtoken_kind {
  RUNG_J_TOKEN_END, /* of the template */
  RUNG_J_TOKEN_DATA,
  RUNG_J_TOKEN_BLOCK_BEGIN,
  RUNG_J_TOKEN_BLOCK_END,
  RUNG_J_TOKEN_VARIABLE_BEGIN,
  RUNG_J_TOKEN_VARIABLE_END,
  RUNG_J_TOKEN_NAME,
  RUNG_J_TOKEN_STRING, /* quotes included */
  RUNG_J_TOKEN_INTEGER,
  RUNG_J_TOKEN_FLOAT,
  RUNG_J_TOKEN_OPERATOR
} rung_jtoken_kind;

typedef struct rung_jtoken {
  rung_jtoken_kind kind;
  int line;
  const char *text;
  size_t length;
} rung_jtoken;

typedef struct rung_jtokens {
  rung_arena *arena;
  rung_error *error;
  rung_jtoken *item; /* the last one is END */
  uint32_t count, capacity;
} rung_jtokens;
/* `text`: UTF-8 with \n as the only line end. */
rung_status rung_jtokens_read(rung_jtokens *tokens, const char *text, size_t length);
/* The text of a string token with its escapes read; the data lies in the arena. */
rung_status rung_jtoken_string(const rung_jtokens *tokens, const rung_jtoken *token, const char **out_data,
                               size_t *out_length);

/* ---- nodes: kind and how messages call it */
#define RUNG_J_NODES(X)                     \
  X(TEXT, "text")                           \
  X(OUTPUT, "{{ }}")                        \
  X(IF, "{% if %}")                         \
  X(FOR, "{% for %}")                       \
  X(SET, "{% set %}")                       \
  X(SET_BLOCK, "{% set %}")                 \
  X(MACRO, "{% macro %}")                   \
  X(CALL_BLOCK, "{% call %}")               \
  X(FILTER_BLOCK, "{% filter %}")           \
  X(WITH, "{% with %}")                     \
  X(GENERATION, "{% generation %}")         \
  X(BREAK, "{% break %}")                   \
  X(CONTINUE, "{% continue %}")             \
  X(CONST, "a constant")                    \
  X(NAME, "the name")                       \
  X(MEMBER, "the attribute of a namespace") \
  X(TUPLE, "a tuple")                       \
  X(LIST, "a list")                         \
  X(DICT, "a dict")                         \
  X(PAIR, "a dict's item")                  \
  X(ATTRIBUTE, "the attribute")             \
  X(ITEM, "[ ]")                            \
  X(SLICE, "a slice")                       \
  X(CALL, "the call")                       \
  X(FILTER, "the filter")                   \
  X(TEST, "the test")                       \
  X(NOT, "not")                             \
  X(NEGATIVE, "-")                          \
  X(POSITIVE, "+")                          \
  X(AND, "and")                             \
  X(OR, "or")                               \
  X(ADD, "+")                               \
  X(SUBTRACT, "-")                          \
  X(MULTIPLY, "*")                          \
  X(DIVIDE, "/")                            \
  X(FLOOR, "//")                            \
  X(MODULO, "%")                            \
  X(POWER, "**")                            \
  X(CONCAT, "~")                            \
  X(COMPARE, "a comparison")                \
  X(OPERAND, "an operand")                  \
  X(CHOICE, "an inline if")                 \
  X(KEYWORD, "a keyword argument")          \
  X(SPREAD, "*")                            \
  X(SPREAD_NAMED, "**")
typedef enum rung_jnode_kind {
#define X(name, text) RUNG_J_NODE_##name,
  RUNG_J_NODES(X)
#undef X
      RUNG_J_NODE_KINDS
} rung_jnode_kind;

typedef enum rung_jcomparison {
  RUNG_J_EQUAL,
  RUNG_J_UNEQUAL,
  RUNG_J_LESS,
  RUNG_J_AT_MOST,
  RUNG_J_MORE,
  RUNG_J_AT_LEAST,
  RUNG_J_IN,
  RUNG_J_NOT_IN
} rung_jcomparison;

/* A name, once per template: equal names are the same pointer. */
typedef struct rung_jname {
  struct rung_jname *next;
  const char *text; /* terminated */
  size_t length;
  rung_jvalue value; /* the name as a string */
} rung_jname;

/* What `a`, `b`, `c` and the lists are, by kind:
 *   OUTPUT list; IF list = tests and bodies as nodes of kind IF (a: test, NULL for else; list: body)
 *   FOR a: target, b: what, c: filter, list: body, more: else, flag: recursive
 *   SET a: target, b: value; SET_BLOCK a: target, b: filter, list: body
 *   MACRO name, list: parameters (NAME, a: default), more: body, flags uses; CALL_BLOCK a: call, b: MACRO
 *   FILTER_BLOCK b: filter, list: body; WITH list: pairs SET, more: body; GENERATION more: body
 *   MEMBER name of the namespace, a: NAME of the attribute; TUPLE, LIST, CONCAT list; DICT list of PAIR (a, b)
 *   ATTRIBUTE a, name; ITEM a, b; SLICE a, b, c; CALL a, list; FILTER and TEST a (NULL: the text of the block), name,
 *   function, list; COMPARE a, list of OPERAND (comparison, a); CHOICE a: test, b: then, c: else */
struct rung_jnode {
  rung_jnode_kind kind;
  int line, height;
  rung_jnode *next;
  rung_jnode *a, *b, *c, *list, *more;
  const rung_jname *name;
  const rung_jfunction *function;
  rung_jcomparison comparison;
  bool flag;                                     /* FOR: recursive */
  bool uses_caller, uses_named, uses_positional; /* MACRO: what its body names */
  rung_jvalue value;                             /* CONST; TEXT */
};

struct rung_chat_template {
  atomic_int references;
  rung_host *host;
  rung_arena arena;
  const char *source; /* as given */
  size_t source_bytes;
  rung_jnode *body;
  rung_jname *names[64];
  const rung_jname *loop, *caller, *varargs, *kwargs; /* names that are bound without being assigned */
};

/* The parser, shared by statements and expressions. */
typedef struct rung_jparser {
  rung_jtemplate *template_;
  rung_error *error;
  rung_jtokens tokens;
  uint32_t at;
  int depth;
  int loops;                 /* that break and continue would end */
  bool soft;                 /* inside {% if %}: an unknown filter is found when it is reached */
  const rung_jnode *missing; /* the first unknown filter or test outside */
} rung_jparser;

enum { RUNG_J_PARSE_DEPTH = 200, RUNG_J_HEIGHT = 400 }; /* of brackets and blocks; of a tree of operators */

rung_status rung_jparse_statements(rung_jparser *parser);
rung_status rung_jparse_expression(rung_jparser *parser, rung_jnode **out);
/* What {{ }}, {% set %} and so on take: several with commas are a tuple. */
typedef enum rung_jtuple {
  RUNG_J_TUPLE_FULL,
  RUNG_J_TUPLE_NO_CHOICE,
  RUNG_J_TUPLE_TARGET,
  RUNG_J_TUPLE_BRACKETS
} rung_jtuple;
rung_status rung_jparse_tuple(rung_jparser *parser, rung_jtuple how, const char *end_word, rung_jnode **out);
/* Filters behind a `|`, or at once where `node` is NULL. */
rung_status rung_jparse_filters(rung_jparser *parser, rung_jnode *node, rung_jnode **out);
rung_status rung_jparse_primary(rung_jparser *parser, bool target, rung_jnode **out);

const rung_jtoken *rung_jparser_token(const rung_jparser *parser);
bool rung_jparser_is(const rung_jparser *parser, rung_jtoken_kind kind, const char *text); /* text NULL: any */
bool rung_jparser_skip(rung_jparser *parser, rung_jtoken_kind kind, const char *text);
rung_status rung_jparser_expect(rung_jparser *parser, rung_jtoken_kind kind, const char *text, const char *what);
rung_status rung_jparser_fail(const rung_jparser *parser, int line, const char *format, ...) RUNG_PRINTF(3, 4);
rung_status rung_jparser_enter(rung_jparser *parser);
rung_status rung_jparser_node(rung_jparser *parser, rung_jnode_kind kind, int line, rung_jnode **out);
rung_status rung_jparser_name(rung_jparser *parser, const char *text, size_t length, const rung_jname **out);
/* Sets the height from the children; refuses trees that are too high. */
rung_status rung_jparser_close(rung_jparser *parser, rung_jnode *node);
/* "the filter join", "{% for %}": for messages. */
void rung_jnode_describe(const rung_jnode *node, char *out, size_t bytes);

/* ---- running */
typedef struct rung_jbinding {
  struct rung_jbinding *next;
  const rung_jname *name;
  rung_jvalue value;
} rung_jbinding;

struct rung_jscope {
  rung_jscope *parent;
  rung_jbinding *first;
};

typedef enum rung_jflow { RUNG_J_GOES_ON, RUNG_J_BREAKS, RUNG_J_CONTINUES } rung_jflow;

struct rung_jloop {
  const rung_jnode *node;
  rung_jscope *scope; /* around the loop */
  rung_jlist *source;
  size_t at;
  bool filtered;                      /* what is left of source has passed the loop's `if` */
  int64_t index, depth;               /* from 0 */
  int64_t skipped;                    /* elements that came before what is left of source */
  rung_jvalue before, current, after; /* MISSING where there is none */
  rung_jlist *changed;
};

rung_status rung_jscope_new(rung_jrun *run, rung_jscope *parent, rung_jscope **out);
rung_status rung_jscope_set(rung_jrun *run, rung_jscope *scope, const rung_jname *name, rung_jvalue value);
rung_status rung_jeval(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue *out);
/* The filters or the call of a block: `input` is its text, `caller` (MISSING: none) one more named argument. */
rung_status rung_jeval_filters(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue input,
                               rung_jvalue *out);
rung_status rung_jeval_call(rung_jrun *run, const rung_jnode *node, rung_jscope *scope, rung_jvalue caller,
                            rung_jvalue *out);
rung_status rung_jexec(rung_jrun *run, const rung_jnode *list, rung_jscope *scope, rung_jflow *out_flow);
rung_status rung_jassign(rung_jrun *run, const rung_jnode *target, rung_jscope *scope, rung_jvalue value);
/* Says in the message where it came from, once. */
rung_status rung_j_place(rung_jrun *run, const rung_jnode *node, rung_status status);
/* The next element that passes the loop's `if`; MISSING behind the last. */
rung_status rung_jloop_pull(rung_jrun *run, rung_jloop *loop, rung_jvalue *out);

#endif
