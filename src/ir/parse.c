/* SPDX-License-Identifier: MIT
 * Reading the text form. One statement a line; a scope per body, since bodies are closed. The text is not trusted:
 * every size is bounded by its length, nesting by RUNG_MAX_NESTING, and names are found by hash. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/graph.h"
#include "ir/lex.h"

typedef struct slot {
  const char *name; /* in the text; NULL: free */
  uint32_t length;
  uint32_t value;
} slot;

typedef struct scope {
  rung_graph *graph;
  slot *slots; /* a power of two, at most half full */
  uint32_t capacity, count;
} scope;

typedef struct parser {
  rung_lex lex;
  const char *text;
  rung_arena arena; /* what lives as long as the parser */
  rung_dims *dims;
  rung_error *error;
} parser;

/* ---- errors */

static rung_status refuse(parser *p, const char *at, rung_status status, const char *format, ...) RUNG_PRINTF(4, 5);
static rung_status refuse(parser *p, const char *at, rung_status status, const char *format, ...) {
  if (!p->error) return status;
  va_list args;
  va_start(args, format);
  rung_fail_v(p->error, status, format, args);
  va_end(args);
  size_t line = 1, column = 1;
  for (const char *c = p->text; c < at; c++) {
    column++;
    if (*c == '\n') {
      line++;
      column = 1;
    }
  }
  return rung_fail_prefix(p->error, status, "line %zu, column %zu", line, column);
}

/* What a lower layer wrote into p->error, with the place. */
static rung_status refuse_with(parser *p, const char *at, rung_status status) {
  if (!p->error) return status;
  const rung_error why = *p->error;
  return refuse(p, at, status, "%s", why.message);
}

static rung_status expected(parser *p, const char *what) {
  rung_lex_spaces(&p->lex);
  if (p->lex.at == p->lex.limit) return refuse(p, p->lex.at, RUNG_CORRUPT_FILE, "expected %s, not the end", what);
  const unsigned char c = (unsigned char)*p->lex.at;
  if (c == '\n') return refuse(p, p->lex.at, RUNG_CORRUPT_FILE, "expected %s, not the end of the line", what);
  if (c < 0x20 || c > 0x7E) return refuse(p, p->lex.at, RUNG_CORRUPT_FILE, "expected %s, not byte %02x", what, c);
  return refuse(p, p->lex.at, RUNG_CORRUPT_FILE, "expected %s, not '%c'", what, c);
}

static rung_status no_memory(parser *p) { return refuse(p, p->lex.at, RUNG_OUT_OF_MEMORY, "out of memory"); }

static int shown(size_t length) { return (int)(length > 80 ? 80 : length); }

/* ---- lines */

static void skip_comment(rung_lex *lex) {
  while (lex->at < lex->limit && *lex->at != '\n') lex->at++;
}

/* Blank lines and comments between statements. */
static void skip_lines(rung_lex *lex) {
  for (;;) {
    rung_lex_spaces(lex);
    if (rung_lex_at(lex, '#')) skip_comment(lex);
    if (!rung_lex_at(lex, '\n')) return;
    lex->at++;
  }
}

/* `# text` behind a statement: its label, in quotes if it needs them. NULL without one. */
static rung_status read_label(parser *p, const char **out_label) {
  *out_label = NULL;
  if (!rung_lex_accept(&p->lex, '#')) return RUNG_OK;
  rung_lex_spaces(&p->lex);
  const char *start = p->lex.at;
  if (rung_lex_at(&p->lex, '"')) {
    const rung_status status = rung_lex_quoted(&p->lex, &p->arena, out_label, p->error);
    if (status) return refuse_with(p, start, status);
    return RUNG_OK;
  }
  skip_comment(&p->lex);
  const char *end = p->lex.at;
  while (end > start && (end[-1] == ' ' || end[-1] == '\r' || end[-1] == '\t')) end--;
  if (end == start) return RUNG_OK;
  if (memchr(start, 0, (size_t)(end - start))) {
    return refuse(p, start, RUNG_CORRUPT_FILE, "a label contains the byte 0");
  }
  *out_label = rung_arena_text(&p->arena, start, (size_t)(end - start));
  return *out_label ? RUNG_OK : no_memory(p);
}

static rung_status end_line(parser *p) {
  rung_lex_spaces(&p->lex);
  if (rung_lex_at(&p->lex, '#')) skip_comment(&p->lex);
  if (p->lex.at == p->lex.limit) return RUNG_OK;
  if (!rung_lex_at(&p->lex, '\n')) return expected(p, "the end of the line");
  p->lex.at++;
  return RUNG_OK;
}

/* ---- names of values */

static uint32_t find_slot(const slot *slots, uint32_t capacity, const char *name, size_t length) {
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < length; i++) h = (h ^ (uint8_t)name[i]) * 16777619u;
  h = (h ^ h >> 15) & (capacity - 1);
  while (slots[h].name && (slots[h].length != length || memcmp(slots[h].name, name, length) != 0)) {
    h = (h + 1) & (capacity - 1);
  }
  return h;
}

static rung_status define(parser *p, scope *s, const char *name, size_t length, uint32_t value) {
  if (s->capacity < 2 * (s->count + 1)) {
    const uint32_t capacity = s->capacity ? s->capacity * 2 : 16;
    slot *slots = (slot *)rung_arena_array(&p->arena, capacity, sizeof *slots);
    if (!slots) return no_memory(p);
    for (uint32_t i = 0; i < s->capacity; i++) {
      const slot *old = &s->slots[i];
      if (old->name) slots[find_slot(slots, capacity, old->name, old->length)] = *old;
    }
    s->slots = slots;
    s->capacity = capacity;
  }
  slot *place = &s->slots[find_slot(s->slots, s->capacity, name, length)];
  if (place->name) return refuse(p, name, RUNG_CORRUPT_FILE, "%%%.*s is defined twice", shown(length), name);
  *place = (slot){name, (uint32_t)length, value};
  s->count++;
  return RUNG_OK;
}

static rung_status read_value_name(parser *p, const char **out_name, size_t *out_length) {
  if (!rung_lex_accept(&p->lex, '%')) return expected(p, "a value");
  const char *at = p->lex.at;
  *out_length = rung_lex_name(&p->lex, out_name);
  if (*out_length == 0 || *out_name != at) return refuse(p, at, RUNG_CORRUPT_FILE, "a name must follow %%");
  return RUNG_OK;
}

static rung_status read_use(parser *p, const scope *s, rung_value *out) {
  const char *name = p->lex.at;
  size_t length = 0;
  RUNG_TRY(read_value_name(p, &name, &length));
  const slot *place = s->capacity ? &s->slots[find_slot(s->slots, s->capacity, name, length)] : NULL;
  if (!place || !place->name) {
    return refuse(p, name, RUNG_CORRUPT_FILE, "%%%.*s is not defined before its use", shown(length), name);
  }
  *out = (rung_value){s->graph->serial, place->value};
  return RUNG_OK;
}

/* ---- types */

static rung_status read_dim(parser *p, rung_dim *out) {
  const char *end = p->lex.at;
  *out = rung_dims_parse(p->dims, p->lex.at, p->lex.limit, &end);
  p->lex.at = end;
  return out->id ? RUNG_OK : refuse(p, end, p->dims->failure, "%s", p->dims->reason);
}

/* `word(number)`; false and nothing read if there is none. */
static rung_status read_suffix(parser *p, const char *word, int64_t most, int64_t *out) {
  *out = 0;
  if (!rung_lex_word(&p->lex, word)) return RUNG_OK;
  if (!rung_lex_accept(&p->lex, '(')) return expected(p, "'('");
  rung_lex_spaces(&p->lex);
  const char *end;
  if (!rung_parse_i64(p->lex.at, p->lex.limit, out, &end) || *out < 0 || *out > most) {
    return refuse(p, p->lex.at, RUNG_CORRUPT_FILE, "%s takes a number up to %" PRId64, word, most);
  }
  p->lex.at = end;
  return rung_lex_accept(&p->lex, ')') ? RUNG_OK : expected(p, "')'");
}

static rung_status read_type(parser *p, rung_value_type *out) {
  *out = (rung_value_type){.kind = RUNG_VALUE_TENSOR};
  if (rung_lex_word(&p->lex, "state")) {
    out->kind = RUNG_VALUE_STATE_DENSE;
  } else if (rung_lex_word(&p->lex, "kv")) {
    out->kind = RUNG_VALUE_STATE_KV;
  }
  const char *name;
  char copy[16] = "";
  const size_t length = rung_lex_name(&p->lex, &name);
  if (length < sizeof copy) memcpy(copy, name, length);
  if (length == 0 || length >= sizeof copy || !rung_type_find(copy, &out->type)) {
    return refuse(p, name, RUNG_CORRUPT_FILE, "'%.*s' is no type", shown(length), name);
  }
  if (!rung_lex_accept(&p->lex, '[')) return expected(p, "'['");
  bool more = !rung_lex_accept(&p->lex, ']');
  while (more) {
    if (out->rank == RUNG_MAX_RANK) return refuse(p, p->lex.at, RUNG_CORRUPT_FILE, "more than 8 extents");
    RUNG_TRY(read_dim(p, &out->extent[out->rank]));
    out->rank++;
    more = rung_lex_accept(&p->lex, ',');
    if (!more && !rung_lex_accept(&p->lex, ']')) return expected(p, "',' or ']'");
  }
  int64_t layout, place;
  RUNG_TRY(read_suffix(p, "layout", UINT16_MAX, &layout));
  RUNG_TRY(read_suffix(p, "place", INT8_MAX, &place));
  out->layout = (uint16_t)layout;
  out->place = (int8_t)place;
  return RUNG_OK;
}

/* ---- nodes */

typedef struct name_span {
  const char *name;
  size_t length;
} name_span;

typedef struct statement {
  const char *start; /* of the op's name */
  name_span *name;
  uint32_t names, name_capacity;
  const rung_op *op;
  rung_value *in;
  uint32_t n_in, in_capacity;
  void *attrs;
  rung_graph **body;
  uint32_t bodies, body_capacity;
  rung_value_type *type;
  const char **type_at;
  uint32_t types, type_capacity, type_at_capacity;
  const char *label;
} statement;

static rung_status read_results(parser *p, statement *n) {
  rung_lex_spaces(&p->lex);
  if (!rung_lex_at(&p->lex, '%')) return RUNG_OK;
  do {
    if (n->names == RUNG_MAX_OPERANDS) return refuse(p, p->lex.at, RUNG_CORRUPT_FILE, "too many results");
    if (!rung_arena_grow(&p->arena, (void **)&n->name, &n->name_capacity, n->names + 1, sizeof *n->name)) {
      return no_memory(p);
    }
    RUNG_TRY(read_value_name(p, &n->name[n->names].name, &n->name[n->names].length));
    n->names++;
  } while (rung_lex_accept(&p->lex, ','));
  return rung_lex_accept(&p->lex, '=') ? RUNG_OK : expected(p, "',' or '='");
}

static rung_status read_operands(parser *p, const scope *s, statement *n) {
  rung_lex_spaces(&p->lex);
  if (!rung_lex_at(&p->lex, '%')) return RUNG_OK;
  do {
    if (n->n_in == RUNG_MAX_OPERANDS) return refuse(p, p->lex.at, RUNG_CORRUPT_FILE, "too many operands");
    if (!rung_arena_grow(&p->arena, (void **)&n->in, &n->in_capacity, n->n_in + 1, sizeof *n->in)) {
      return no_memory(p);
    }
    RUNG_TRY(read_use(p, s, &n->in[n->n_in]));
    n->n_in++;
  } while (rung_lex_accept(&p->lex, ','));
  return RUNG_OK;
}

/* `{name=` opens attributes, any other brace a body. */
static bool at_attributes(const parser *p) {
  rung_lex ahead = p->lex;
  const char *name;
  return rung_lex_accept(&ahead, '{') && rung_lex_name(&ahead, &name) > 0 && rung_lex_accept(&ahead, '=');
}

static rung_status read_attributes(parser *p, statement *n) {
  const bool braces = at_attributes(p);
  n->attrs = rung_arena_alloc(&p->arena, n->op->attrs_bytes);
  if (!n->attrs) return no_memory(p);
  if (braces) rung_lex_accept(&p->lex, '{');
  const char *end = p->lex.at;
  const rung_status status = rung_attrs_parse(n->op, p->dims, &p->arena, p->lex.at, braces ? p->lex.limit : p->lex.at,
                                              &end, n->attrs, p->error);
  p->lex.at = end;
  if (status) return refuse_with(p, end, status);
  if (braces && !rung_lex_accept(&p->lex, '}')) return expected(p, "',' or '}'");
  return RUNG_OK;
}

static rung_status read_block(parser *p, scope *s);

static rung_status read_bodies(parser *p, rung_graph *graph, statement *n) {
  if (!rung_lex_accept(&p->lex, '{')) return RUNG_OK;
  do {
    const char *at = p->lex.at;
    if (n->bodies && !rung_lex_accept(&p->lex, '{')) return expected(p, "'{'");
    /* Before they are made: a body takes far more memory than its text. */
    if (n->bodies == n->op->bodies) return refuse(p, at, RUNG_CORRUPT_FILE, "%s has %u bodies", n->op->name, n->bodies);
    if (!rung_arena_grow(&p->arena, (void **)&n->body, &n->body_capacity, n->bodies + 1, sizeof *n->body)) {
      return no_memory(p);
    }
    scope inner = {.graph = rung_graph_body(graph)};
    if (rung_graph_status(graph)) return refuse(p, at, graph->error.status, "%s", graph->error.message);
    n->body[n->bodies++] = inner.graph;
    RUNG_TRY(read_block(p, &inner));
  } while (rung_lex_word(&p->lex, "else"));
  return RUNG_OK;
}

static rung_status read_types(parser *p, statement *n) {
  if (!rung_lex_accept(&p->lex, ':')) return RUNG_OK;
  do {
    if (n->types == RUNG_MAX_OPERANDS) return refuse(p, p->lex.at, RUNG_CORRUPT_FILE, "too many types");
    if (!rung_arena_grow(&p->arena, (void **)&n->type, &n->type_capacity, n->types + 1, sizeof *n->type) ||
        !rung_arena_grow(&p->arena, (void **)&n->type_at, &n->type_at_capacity, n->types + 1, sizeof *n->type_at)) {
      return no_memory(p);
    }
    rung_lex_spaces(&p->lex);
    n->type_at[n->types] = p->lex.at;
    RUNG_TRY(read_type(p, &n->type[n->types]));
    n->types++;
  } while (rung_lex_accept(&p->lex, ','));
  return RUNG_OK;
}

static rung_status type_differs(parser *p, const statement *n, uint32_t i, const rung_value_type *inferred) {
  rung_text both;
  rung_text_init(&both, p->dims->host);
  rung_text_puts(&both, "the text says ");
  rung_value_type_print(p->dims, &n->type[i], &both);
  rung_text_printf(&both, ", %s gives ", n->op->name);
  rung_value_type_print(p->dims, inferred, &both);
  const rung_status status = both.failed ? no_memory(p) : refuse(p, n->type_at[i], RUNG_CORRUPT_FILE, "%s", both.data);
  rung_text_finish(&both);
  return status;
}

static rung_status add_statement(parser *p, scope *s, statement *n) {
  rung_graph *graph = s->graph;
  const rung_node *node = NULL;
  rung_graph_label(graph, n->label);
  if (n->op->flags & RUNG_OP_DECLARES) {
    if (n->n_in || n->bodies) {
      return refuse(p, n->start, RUNG_CORRUPT_FILE, "%s takes no operands and no bodies", n->op->name);
    }
    if (n->types != 1) return refuse(p, n->start, RUNG_CORRUPT_FILE, "%s needs its type", n->op->name);
    node = rung_graph_declare(graph, n->op, n->attrs, &n->type[0]);
  } else {
    node = rung_graph_append_as(graph, n->op, n->in, n->n_in, n->attrs, n->body, n->bodies, n->type, n->types);
  }
  if (!node) return refuse(p, n->start, graph->error.status, "%s", graph->error.message);
  if (node->results != n->names || (n->types && n->types != n->names)) {
    return refuse(p, n->start, RUNG_CORRUPT_FILE, "%s has %u results; %u are named, %u types are given", n->op->name,
                  node->results, n->names, n->types);
  }
  for (uint32_t i = 0; i < node->results; i++) {
    const rung_value_type *inferred = rung_graph_value_type(graph, node->first_value + i);
    if (n->types && !rung_value_type_equal(&n->type[i], inferred)) return type_differs(p, n, i, inferred);
    RUNG_TRY(define(p, s, n->name[i].name, n->name[i].length, node->first_value + i));
  }
  return RUNG_OK;
}

static rung_status read_node(parser *p, scope *s) {
  statement n = {.start = NULL};
  RUNG_TRY(read_results(p, &n));
  rung_lex_spaces(&p->lex);
  n.start = p->lex.at;
  const char *name;
  const size_t length = rung_lex_name(&p->lex, &name);
  if (length == 0) return expected(p, "an op");
  n.op = rung_op_find(name, length);
  if (!n.op) return refuse(p, name, RUNG_CORRUPT_FILE, "no op is called '%.*s'", shown(length), name);
  RUNG_TRY(read_operands(p, s, &n));
  RUNG_TRY(read_attributes(p, &n));
  RUNG_TRY(read_bodies(p, s->graph, &n));
  RUNG_TRY(read_types(p, &n));
  RUNG_TRY(read_label(p, &n.label));
  RUNG_TRY(end_line(p));
  return add_statement(p, s, &n);
}

/* ---- other statements */

static rung_status read_output(parser *p, const scope *s) {
  rung_lex_spaces(&p->lex);
  const char *at = p->lex.at, *name;
  const rung_status status = rung_lex_quoted(&p->lex, &p->arena, &name, p->error);
  if (status) return refuse_with(p, at, status);
  rung_value value;
  RUNG_TRY(read_use(p, s, &value));
  RUNG_TRY(end_line(p));
  rung_graph_output(s->graph, name, value);
  if (rung_graph_status(s->graph)) return refuse(p, at, s->graph->error.status, "%s", s->graph->error.message);
  return RUNG_OK;
}

static rung_status read_range(parser *p, int64_t *out_lo, int64_t *out_hi) {
  rung_lex_spaces(&p->lex);
  const char *at = p->lex.at, *end;
  if (!rung_parse_i64(at, p->lex.limit, out_lo, &end)) return expected(p, "a range as 1..512");
  if (p->lex.limit - end < 2 || end[0] != '.' || end[1] != '.') {
    return refuse(p, end, RUNG_CORRUPT_FILE, "expected '..'");
  }
  if (!rung_parse_i64(end + 2, p->lex.limit, out_hi, &end)) {
    return refuse(p, end, RUNG_CORRUPT_FILE, "expected the end of a range");
  }
  p->lex.at = end;
  return RUNG_OK;
}

/* `symbol rows 1..512`, `symbol n <= 8*rows made`, `symbol n made`. */
static rung_status read_symbol(parser *p) {
  const char *name;
  const size_t length = rung_lex_name(&p->lex, &name);
  char copy[64];
  if (length == 0 || length >= sizeof copy) {
    return refuse(p, name, RUNG_CORRUPT_FILE, "a symbol's name has 1 to 63 characters");
  }
  memcpy(copy, name, length);
  copy[length] = 0;
  rung_dim dim, bound = {0};
  rung_lex_spaces(&p->lex);
  const bool bounded = rung_lex_at(&p->lex, '<');
  if (bounded) {
    p->lex.at++;
    if (!rung_lex_at(&p->lex, '=')) return expected(p, "'<='");
    p->lex.at++;
    RUNG_TRY(read_dim(p, &bound));
  }
  if (rung_lex_word(&p->lex, "made")) {
    dim = rung_dims_make_symbol(p->dims, copy, bound);
  } else if (bounded) {
    return expected(p, "'made'");
  } else {
    int64_t lo, hi;
    RUNG_TRY(read_range(p, &lo, &hi));
    dim = rung_dims_symbol(p->dims, copy, lo, hi);
  }
  if (!dim.id) return refuse(p, name, p->dims->failure, "symbol %s: %s", copy, p->dims->reason);
  return end_line(p);
}

/* Statements up to the end, or to the brace that closes a body. */
static rung_status read_block(parser *p, scope *s) {
  const bool nested = s->graph->parent != NULL;
  for (;;) {
    skip_lines(&p->lex);
    if (p->lex.at == p->lex.limit) return nested ? expected(p, "'}'") : RUNG_OK;
    if (nested && rung_lex_accept(&p->lex, '}')) return RUNG_OK;
    if (rung_lex_word(&p->lex, "output")) {
      RUNG_TRY(read_output(p, s));
    } else if (!nested && rung_lex_word(&p->lex, "symbol")) {
      RUNG_TRY(read_symbol(p));
    } else {
      RUNG_TRY(read_node(p, s));
    }
  }
}

static rung_status read_graph(parser *p, rung_graph *graph) {
  skip_lines(&p->lex);
  if (!rung_lex_word(&p->lex, "rung")) return expected(p, "'rung 1'");
  if (!rung_lex_word(&p->lex, "1")) return expected(p, "version 1");
  RUNG_TRY(end_line(p));
  scope top = {.graph = graph};
  RUNG_TRY(read_block(p, &top));
  return rung_graph_verify(graph, p->error);
}

rung_status rung_graph_parse(rung_host *host, const char *text, size_t bytes, rung_error *error,
                             rung_graph **out_graph) {
  if (!host || (!text && bytes)) return rung_fail(error, RUNG_INVALID_ARGUMENT, "parse: host or text is NULL");
  rung_graph *graph = NULL;
  RUNG_TRY(rung_graph_create(host, error, &graph));
  static const char nothing[] = "";
  if (!text) text = nothing;
  rung_error local = {RUNG_OK, ""}; /* messages are built in steps, also when nobody wants them */
  parser p = {.lex = {text, text + bytes}, .text = text, .dims = graph->dims, .error = error ? error : &local};
  rung_arena_init(&p.arena, host);
  const rung_status status = read_graph(&p, graph);
  rung_arena_finish(&p.arena);
  if (status) {
    rung_graph_destroy(graph);
    return status;
  }
  graph->label = NULL; /* the last node's is not that of nodes to come */
  *out_graph = graph;
  return RUNG_OK;
}
