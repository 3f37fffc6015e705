/* SPDX-License-Identifier: MIT
 * Expressions of templates: precedence and forms as jinja2's parser has them. */
#include <stdio.h>
#include <string.h>

#include "text/jinja/ast.h"

/* ---- tokens, nodes, names */

const rung_jtoken *rung_jparser_token(const rung_jparser *p) { return &p->tokens.item[p->at]; }

static bool token_is(const rung_jtoken *t, rung_jtoken_kind kind, const char *text) {
  return t->kind == kind && (!text || (t->length == strlen(text) && memcmp(t->text, text, t->length) == 0));
}

bool rung_jparser_is(const rung_jparser *p, rung_jtoken_kind kind, const char *text) {
  return token_is(rung_jparser_token(p), kind, text);
}

bool rung_jparser_skip(rung_jparser *p, rung_jtoken_kind kind, const char *text) {
  if (!rung_jparser_is(p, kind, text)) return false;
  p->at++;
  return true;
}

rung_status rung_jparser_fail(const rung_jparser *p, int line, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return rung_fail(p->error, RUNG_CORRUPT_FILE, "line %d: %s", line, text);
}

rung_status rung_jparser_expect(rung_jparser *p, rung_jtoken_kind kind, const char *text, const char *what) {
  if (rung_jparser_skip(p, kind, text)) return RUNG_OK;
  const rung_jtoken *t = rung_jparser_token(p);
  static const char *const ends[] = {[RUNG_J_TOKEN_END] = "the end of the template",
                                     [RUNG_J_TOKEN_BLOCK_END] = "the end of the block",
                                     [RUNG_J_TOKEN_VARIABLE_END] = "the end of the block"};
  if (!t->length)
    return rung_jparser_fail(p, t->line, "%s expected, not %s", what, ends[t->kind] ? ends[t->kind] : "a block");
  return rung_jparser_fail(p, t->line, "%s expected, not \"%.*s\"", what, t->length < 40 ? (int)t->length : 40,
                           t->text);
}

rung_status rung_jparser_enter(rung_jparser *p) {
  if (p->depth >= RUNG_J_PARSE_DEPTH)
    return rung_jparser_fail(p, rung_jparser_token(p)->line, "nested more than %d deep", RUNG_J_PARSE_DEPTH);
  p->depth++;
  return RUNG_OK;
}

static rung_status no_memory(const rung_jparser *p) { return rung_fail(p->error, RUNG_OUT_OF_MEMORY, "out of memory"); }

rung_status rung_jparser_node(rung_jparser *p, rung_jnode_kind kind, int line, rung_jnode **out) {
  rung_jnode *node = rung_arena_alloc(&p->template_->arena, sizeof *node);
  if (!node) return no_memory(p);
  node->kind = kind;
  node->line = line;
  node->height = 1;
  *out = node;
  return RUNG_OK;
}

rung_status rung_jparser_close(rung_jparser *p, rung_jnode *node) {
  const rung_jnode *const child[] = {node->a, node->b, node->c};
  int height = 0;
  for (size_t i = 0; i < RUNG_COUNT(child); i++)
    if (child[i] && child[i]->height > height) height = child[i]->height;
  for (const rung_jnode *n = node->list; n; n = n->next)
    if (n->height > height) height = n->height;
  node->height = height + 1;
  if (height < RUNG_J_HEIGHT) return RUNG_OK;
  return rung_jparser_fail(p, node->line, "an expression of more than %d levels", RUNG_J_HEIGHT);
}

/* A string that many threads may read: its characters are counted here and now. */
static rung_status constant_text(rung_jparser *p, const char *data, size_t length, rung_jvalue *out) {
  rung_jstring *s = rung_arena_alloc(&p->template_->arena, sizeof *s);
  if (!s) return no_memory(p);
  *s = (rung_jstring){.data = data, .length = length, .characters = -1};
  (void)rung_j_characters(s);
  *out = (rung_jvalue){.kind = RUNG_J_STRING, .as.string = s};
  return RUNG_OK;
}

rung_status rung_jparser_name(rung_jparser *p, const char *text, size_t length, const rung_jname **out) {
  uint32_t hash = 0;
  for (size_t i = 0; i < length; i++) hash = hash * 31 + (uint8_t)text[i];
  rung_jname **at = &p->template_->names[hash % RUNG_COUNT(p->template_->names)];
  for (; *at; at = &(*at)->next) {
    if ((*at)->length != length || memcmp((*at)->text, text, length) != 0) continue;
    *out = *at;
    return RUNG_OK;
  }
  rung_jname *name = rung_arena_alloc(&p->template_->arena, sizeof *name);
  if (!name) return no_memory(p);
  name->text = rung_arena_text(&p->template_->arena, text, length);
  if (!name->text) return no_memory(p);
  name->length = length;
  RUNG_TRY(constant_text(p, name->text, length, &name->value));
  *at = name;
  *out = name;
  return RUNG_OK;
}

/* A node over one or two others. */
static rung_status make(rung_jparser *p, rung_jnode_kind kind, int line, rung_jnode *a, rung_jnode *b,
                        rung_jnode **out) {
  RUNG_TRY(rung_jparser_node(p, kind, line, out));
  (*out)->a = a;
  (*out)->b = b;
  return rung_jparser_close(p, *out);
}

static rung_status constant(rung_jparser *p, int line, rung_jvalue value, rung_jnode **out) {
  RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_CONST, line, out));
  (*out)->value = value;
  return RUNG_OK;
}

static bool is_operator(const rung_jparser *p, const char *text) {
  return rung_jparser_is(p, RUNG_J_TOKEN_OPERATOR, text);
}
static bool skip_operator(rung_jparser *p, const char *text) {
  return rung_jparser_skip(p, RUNG_J_TOKEN_OPERATOR, text);
}
static bool is_word(const rung_jparser *p, const char *text) { return rung_jparser_is(p, RUNG_J_TOKEN_NAME, text); }
static bool skip_word(rung_jparser *p, const char *text) { return rung_jparser_skip(p, RUNG_J_TOKEN_NAME, text); }
static rung_status expect_operator(rung_jparser *p, const char *text) {
  char what[8];
  snprintf(what, sizeof what, "\"%s\"", text);
  return rung_jparser_expect(p, RUNG_J_TOKEN_OPERATOR, text, what);
}

/* ---- primaries */

static rung_status parse_string(rung_jparser *p, rung_jnode **out) {
  const int line = rung_jparser_token(p)->line;
  const char *data = NULL;
  size_t length = 0;
  while (rung_jparser_is(p, RUNG_J_TOKEN_STRING, NULL)) { /* neighbours are one string */
    const char *piece;
    size_t bytes;
    RUNG_TRY(rung_jtoken_string(&p->tokens, rung_jparser_token(p), &piece, &bytes));
    p->at++;
    if (!data) {
      data = piece;
      length = bytes;
      continue;
    }
    char *both = rung_arena_alloc(&p->template_->arena, length + bytes + 1);
    if (!both) return no_memory(p);
    memcpy(both, data, length);
    memcpy(both + length, piece, bytes);
    data = both;
    length += bytes;
  }
  rung_jvalue value;
  RUNG_TRY(constant_text(p, data, length, &value));
  return constant(p, line, value, out);
}

static rung_status parse_number(rung_jparser *p, rung_jnode **out) {
  const rung_jtoken *t = rung_jparser_token(p);
  char text[512];
  size_t n = 0;
  for (size_t i = 0; i < t->length; i++) {
    if (t->text[i] == '_') continue;
    if (n + 1 == sizeof text) return rung_jparser_fail(p, t->line, "a number of more than 500 digits");
    text[n++] = t->text[i];
  }
  text[n] = 0;
  p->at++;
  rung_jvalue value = rung_j_int(0);
  if (t->kind == RUNG_J_TOKEN_FLOAT) {
    value.kind = RUNG_J_FLOAT;
    if (!rung_parse_f64(text, NULL, &value.as.number, NULL))
      return rung_jparser_fail(p, t->line, "the number %.40s is too large", text);
    return constant(p, t->line, value, out);
  }
  const char letter = n > 1 && text[0] == '0' ? (char)(text[1] | 0x20) : 0;
  const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  for (const char *c = base == 10 ? text : text + 2; *c; c++) {
    const int digit = *c <= '9' ? *c - '0' : (*c | 0x20) - 'a' + 10;
    if (rung_mul_overflows(value.as.integer, (int64_t)base, &value.as.integer) ||
        rung_add_overflows(value.as.integer, (int64_t)digit, &value.as.integer))
      return rung_jparser_fail(p, t->line, "the number %.40s has more than 64 bits", text);
  }
  if (base == 10 && text[0] == '0' && value.as.integer)
    return rung_jparser_fail(p, t->line, "the number %.40s begins with a zero", text);
  return constant(p, t->line, value, out);
}

static rung_status parse_name(rung_jparser *p, bool target, rung_jnode **out) {
  static const struct {
    const char *name;
    rung_jvalue value;
  } fixed[] = {{"true", {RUNG_J_BOOL, {.truth = true}}},
               {"True", {RUNG_J_BOOL, {.truth = true}}},
               {"false", {RUNG_J_BOOL, {.truth = false}}},
               {"False", {RUNG_J_BOOL, {.truth = false}}},
               {"none", {RUNG_J_NONE, {0}}},
               {"None", {RUNG_J_NONE, {0}}}};
  const rung_jtoken *t = rung_jparser_token(p);
  p->at++;
  for (size_t i = 0; i < RUNG_COUNT(fixed); i++)
    if (token_is(t, RUNG_J_TOKEN_NAME, fixed[i].name)) return constant(p, t->line, fixed[i].value, out);
  RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_NAME, t->line, out));
  RUNG_TRY(rung_jparser_name(p, t->text, t->length, &(*out)->name));
  if (!target || !skip_operator(p, ".")) return RUNG_OK;
  const rung_jtoken *attribute = rung_jparser_token(p);
  RUNG_TRY(rung_jparser_expect(p, RUNG_J_TOKEN_NAME, NULL, "a name"));
  rung_jnode *name;
  RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_NAME, attribute->line, &name));
  RUNG_TRY(rung_jparser_name(p, attribute->text, attribute->length, &name->name));
  (*out)->kind = RUNG_J_NODE_MEMBER;
  (*out)->a = name;
  return RUNG_OK;
}

/* Elements up to a bracket; a comma may end them. */
static rung_status parse_elements(rung_jparser *p, rung_jnode_kind kind, const char *close, rung_jnode **out) {
  RUNG_TRY(rung_jparser_node(p, kind, rung_jparser_token(p)->line, out));
  p->at++;
  rung_jnode **tail = &(*out)->list;
  while (!is_operator(p, close)) {
    if ((*out)->list) RUNG_TRY(expect_operator(p, ","));
    if (is_operator(p, close)) break;
    rung_jnode *element;
    RUNG_TRY(rung_jparse_expression(p, &element));
    if (kind == RUNG_J_NODE_DICT) {
      rung_jnode *value;
      RUNG_TRY(expect_operator(p, ":"));
      RUNG_TRY(rung_jparse_expression(p, &value));
      RUNG_TRY(make(p, RUNG_J_NODE_PAIR, element->line, element, value, &element));
    }
    *tail = element;
    tail = &element->next;
  }
  p->at++;
  return rung_jparser_close(p, *out);
}

rung_status rung_jparse_primary(rung_jparser *p, bool target, rung_jnode **out) {
  const rung_jtoken *t = rung_jparser_token(p);
  if (t->kind == RUNG_J_TOKEN_NAME) return parse_name(p, target, out);
  if (t->kind == RUNG_J_TOKEN_STRING) return parse_string(p, out);
  if (t->kind == RUNG_J_TOKEN_INTEGER || t->kind == RUNG_J_TOKEN_FLOAT) return parse_number(p, out);
  if (is_operator(p, "[")) return parse_elements(p, RUNG_J_NODE_LIST, "]", out);
  if (is_operator(p, "{")) return parse_elements(p, RUNG_J_NODE_DICT, "}", out);
  if (!skip_operator(p, "(")) return rung_jparser_expect(p, RUNG_J_TOKEN_NAME, NULL, "an expression");
  RUNG_TRY(rung_jparse_tuple(p, target ? RUNG_J_TUPLE_TARGET : RUNG_J_TUPLE_BRACKETS, NULL, out));
  return expect_operator(p, ")");
}

/* ---- what follows a primary */

static rung_status parse_argument(rung_jparser *p, bool *named, rung_jnode **out) {
  const rung_jtoken *t = rung_jparser_token(p);
  const bool spread = is_operator(p, "*"), spread_named = is_operator(p, "**");
  if (spread || spread_named) {
    rung_jnode *value;
    p->at++;
    RUNG_TRY(rung_jparse_expression(p, &value));
    *named = true;
    return make(p, spread ? RUNG_J_NODE_SPREAD : RUNG_J_NODE_SPREAD_NAMED, t->line, value, NULL, out);
  }
  if (t->kind == RUNG_J_TOKEN_NAME && token_is(t + 1, RUNG_J_TOKEN_OPERATOR, "=")) {
    rung_jnode *value;
    p->at += 2;
    *named = true;
    RUNG_TRY(rung_jparse_expression(p, &value));
    RUNG_TRY(make(p, RUNG_J_NODE_KEYWORD, t->line, value, NULL, out));
    return rung_jparser_name(p, t->text, t->length, &(*out)->name);
  }
  if (*named) return rung_jparser_fail(p, t->line, "a positional argument behind a named one");
  return rung_jparse_expression(p, out);
}

static rung_status parse_arguments(rung_jparser *p, rung_jnode **out_list) {
  rung_jnode **tail = out_list;
  bool named = false, first = true;
  RUNG_TRY(expect_operator(p, "("));
  while (!is_operator(p, ")")) {
    if (!first) RUNG_TRY(expect_operator(p, ","));
    if (!first && is_operator(p, ")")) break;
    first = false;
    RUNG_TRY(parse_argument(p, &named, tail));
    tail = &(*tail)->next;
  }
  p->at++;
  return RUNG_OK;
}

static rung_status parse_call(rung_jparser *p, rung_jnode *node, rung_jnode **out) {
  rung_jnode *call;
  RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_CALL, rung_jparser_token(p)->line, &call));
  call->a = node;
  RUNG_TRY(parse_arguments(p, &call->list));
  *out = call;
  return rung_jparser_close(p, call);
}

/* One subscript: an expression, or start:stop:step. */
static rung_status parse_subscribed(rung_jparser *p, rung_jnode **out) {
  const int line = rung_jparser_token(p)->line;
  rung_jnode *bound[3] = {NULL};
  if (!is_operator(p, ":")) {
    RUNG_TRY(rung_jparse_expression(p, &bound[0]));
    if (!is_operator(p, ":")) {
      *out = bound[0];
      return RUNG_OK;
    }
  }
  p->at++;
  for (int i = 1; i < 3; i++) {
    if (!is_operator(p, ":") && !is_operator(p, "]") && !is_operator(p, ","))
      RUNG_TRY(rung_jparse_expression(p, &bound[i]));
    if (i == 1 && !skip_operator(p, ":")) break;
  }
  RUNG_TRY(make(p, RUNG_J_NODE_SLICE, line, bound[0], bound[1], out));
  (*out)->c = bound[2];
  return rung_jparser_close(p, *out);
}

static rung_status parse_subscript(rung_jparser *p, rung_jnode *node, rung_jnode **out) {
  const int line = rung_jparser_token(p)->line;
  if (skip_operator(p, ".")) {
    const rung_jtoken *t = rung_jparser_token(p);
    rung_jnode *key;
    if (t->kind == RUNG_J_TOKEN_INTEGER) {
      RUNG_TRY(parse_number(p, &key));
      return make(p, RUNG_J_NODE_ITEM, line, node, key, out);
    }
    RUNG_TRY(rung_jparser_expect(p, RUNG_J_TOKEN_NAME, NULL, "a name or number"));
    RUNG_TRY(make(p, RUNG_J_NODE_ATTRIBUTE, line, node, NULL, out));
    return rung_jparser_name(p, t->text, t->length, &(*out)->name);
  }
  rung_jnode *key, *list = NULL, **tail = &list;
  p->at++;
  while (!is_operator(p, "]")) {
    if (list) RUNG_TRY(expect_operator(p, ","));
    RUNG_TRY(parse_subscribed(p, tail));
    tail = &(*tail)->next;
  }
  p->at++;
  if (!list) return rung_jparser_fail(p, line, "[ ] without an index");
  key = list;
  if (list->next) {
    RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_TUPLE, line, &key));
    key->list = list;
    RUNG_TRY(rung_jparser_close(p, key));
  }
  return make(p, RUNG_J_NODE_ITEM, line, node, key, out);
}

static rung_status parse_postfix(rung_jparser *p, rung_jnode **node) {
  for (;;) {
    if (is_operator(p, ".") || is_operator(p, "["))
      RUNG_TRY(parse_subscript(p, *node, node));
    else if (is_operator(p, "("))
      RUNG_TRY(parse_call(p, *node, node));
    else
      return RUNG_OK;
  }
}

/* The name of a filter or test, and its row. Without one, outside {% if %}, the template is refused at its end. */
static rung_status parse_row(rung_jparser *p, rung_jnode_kind kind, rung_jnode *input, rung_jnode **out) {
  const rung_jtoken *t = rung_jparser_token(p);
  rung_jnode *node;
  RUNG_TRY(rung_jparser_expect(p, RUNG_J_TOKEN_NAME, NULL, kind == RUNG_J_NODE_FILTER ? "a filter" : "a test"));
  RUNG_TRY(rung_jparser_node(p, kind, t->line, &node));
  node->a = input;
  const char *end = t->text + t->length;
  while (is_operator(p, ".")) { /* dotted names exist, but none of these is known */
    p->at++;
    const rung_jtoken *part = rung_jparser_token(p);
    RUNG_TRY(rung_jparser_expect(p, RUNG_J_TOKEN_NAME, NULL, "a name"));
    end = part->text + part->length;
  }
  RUNG_TRY(rung_jparser_name(p, t->text, (size_t)(end - t->text), &node->name));
  node->function = kind == RUNG_J_NODE_FILTER ? rung_jrow_filter(node->name->text, node->name->length)
                                              : rung_jrow_test(node->name->text, node->name->length);
  if (!node->function && !p->soft && !p->missing) p->missing = node;
  *out = node;
  return RUNG_OK;
}

rung_status rung_jparse_filters(rung_jparser *p, rung_jnode *node, rung_jnode **out) {
  for (bool first = !node; first || is_operator(p, "|"); first = false) {
    if (!first) p->at++;
    RUNG_TRY(parse_row(p, RUNG_J_NODE_FILTER, node, &node));
    if (is_operator(p, "(")) RUNG_TRY(parse_arguments(p, &node->list));
    RUNG_TRY(rung_jparser_close(p, node));
  }
  *out = node;
  return RUNG_OK;
}

static bool begins_argument(const rung_jparser *p) {
  const rung_jtoken *t = rung_jparser_token(p);
  if (t->kind == RUNG_J_TOKEN_NAME) return !is_word(p, "else") && !is_word(p, "or") && !is_word(p, "and");
  return t->kind == RUNG_J_TOKEN_STRING || t->kind == RUNG_J_TOKEN_INTEGER || t->kind == RUNG_J_TOKEN_FLOAT ||
         is_operator(p, "(") || is_operator(p, "[") || is_operator(p, "{");
}

static rung_status parse_test(rung_jparser *p, rung_jnode *node, rung_jnode **out) {
  const int line = rung_jparser_token(p)->line;
  p->at++;
  const bool negated = skip_word(p, "not");
  RUNG_TRY(parse_row(p, RUNG_J_NODE_TEST, node, &node));
  if (is_operator(p, "(")) {
    RUNG_TRY(parse_arguments(p, &node->list));
  } else if (begins_argument(p)) {
    if (is_word(p, "is")) return rung_jparser_fail(p, line, "tests cannot be chained with \"is\"");
    RUNG_TRY(rung_jparse_primary(p, false, &node->list));
    RUNG_TRY(parse_postfix(p, &node->list));
  }
  RUNG_TRY(rung_jparser_close(p, node));
  *out = node;
  return negated ? make(p, RUNG_J_NODE_NOT, line, node, NULL, out) : RUNG_OK;
}

/* ---- operators, loosest last */

static rung_status parse_unary(rung_jparser *p, bool filters, rung_jnode **out) {
  const int line = rung_jparser_token(p)->line;
  RUNG_TRY(rung_jparser_enter(p));
  const bool minus = is_operator(p, "-");
  if (minus || is_operator(p, "+")) {
    p->at++;
    rung_jnode *operand;
    RUNG_TRY(parse_unary(p, false, &operand));
    RUNG_TRY(make(p, minus ? RUNG_J_NODE_NEGATIVE : RUNG_J_NODE_POSITIVE, line, operand, NULL, out));
  } else {
    RUNG_TRY(rung_jparse_primary(p, false, out));
  }
  p->depth--;
  RUNG_TRY(parse_postfix(p, out));
  while (filters) {
    if (is_operator(p, "|"))
      RUNG_TRY(rung_jparse_filters(p, *out, out));
    else if (is_word(p, "is"))
      RUNG_TRY(parse_test(p, *out, out));
    else if (is_operator(p, "("))
      RUNG_TRY(parse_call(p, *out, out));
    else
      break;
  }
  return RUNG_OK;
}

static rung_status parse_power(rung_jparser *p, rung_jnode **out) {
  RUNG_TRY(parse_unary(p, true, out));
  while (is_operator(p, "**")) {
    const int line = rung_jparser_token(p)->line;
    rung_jnode *right;
    p->at++;
    RUNG_TRY(parse_unary(p, true, &right));
    RUNG_TRY(make(p, RUNG_J_NODE_POWER, line, *out, right, out));
  }
  return RUNG_OK;
}

typedef struct operator_row {
  const char *text;
  rung_jnode_kind kind;
} operator_row;

static rung_status parse_left(rung_jparser *p, const operator_row *row, size_t count,
                              rung_status (*part)(rung_jparser *, rung_jnode **), rung_jnode **out) {
  RUNG_TRY(part(p, out));
  for (;;) {
    size_t i = 0;
    while (i < count && !is_operator(p, row[i].text)) i++;
    if (i == count) return RUNG_OK;
    const int line = rung_jparser_token(p)->line;
    rung_jnode *right;
    p->at++;
    RUNG_TRY(part(p, &right));
    RUNG_TRY(make(p, row[i].kind, line, *out, right, out));
  }
}

static rung_status parse_product(rung_jparser *p, rung_jnode **out) {
  static const operator_row rows[] = {
      {"*", RUNG_J_NODE_MULTIPLY}, {"/", RUNG_J_NODE_DIVIDE}, {"//", RUNG_J_NODE_FLOOR}, {"%", RUNG_J_NODE_MODULO}};
  return parse_left(p, rows, RUNG_COUNT(rows), parse_power, out);
}

static rung_status parse_concat(rung_jparser *p, rung_jnode **out) {
  const int line = rung_jparser_token(p)->line;
  RUNG_TRY(parse_product(p, out));
  if (!is_operator(p, "~")) return RUNG_OK;
  rung_jnode *concat;
  RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_CONCAT, line, &concat));
  concat->list = *out;
  for (rung_jnode *tail = *out; skip_operator(p, "~"); tail = tail->next) RUNG_TRY(parse_product(p, &tail->next));
  *out = concat;
  return rung_jparser_close(p, concat);
}

static rung_status parse_sum(rung_jparser *p, rung_jnode **out) {
  static const operator_row rows[] = {{"+", RUNG_J_NODE_ADD}, {"-", RUNG_J_NODE_SUBTRACT}};
  return parse_left(p, rows, RUNG_COUNT(rows), parse_concat, out);
}

static bool parse_comparison(rung_jparser *p, rung_jcomparison *out) {
  static const char *const text[] = {"==", "!=", "<", "<=", ">", ">="};
  for (size_t i = 0; i < RUNG_COUNT(text); i++) {
    if (!skip_operator(p, text[i])) continue;
    *out = (rung_jcomparison)i;
    return true;
  }
  *out = RUNG_J_IN;
  if (skip_word(p, "in")) return true;
  if (!is_word(p, "not") || !token_is(rung_jparser_token(p) + 1, RUNG_J_TOKEN_NAME, "in")) return false;
  p->at += 2;
  *out = RUNG_J_NOT_IN;
  return true;
}

static rung_status parse_compare(rung_jparser *p, rung_jnode **out) {
  const int line = rung_jparser_token(p)->line;
  rung_jnode *list = NULL, **tail = &list;
  rung_jcomparison comparison;
  RUNG_TRY(parse_sum(p, out));
  while (parse_comparison(p, &comparison)) {
    rung_jnode *right;
    RUNG_TRY(parse_sum(p, &right));
    RUNG_TRY(make(p, RUNG_J_NODE_OPERAND, line, right, NULL, tail));
    (*tail)->comparison = comparison;
    tail = &(*tail)->next;
  }
  if (!list) return RUNG_OK;
  rung_jnode *left = *out;
  RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_COMPARE, line, out));
  (*out)->a = left;
  (*out)->list = list;
  return rung_jparser_close(p, *out);
}

static rung_status parse_not(rung_jparser *p, rung_jnode **out) {
  const int line = rung_jparser_token(p)->line;
  if (!skip_word(p, "not")) return parse_compare(p, out);
  rung_jnode *operand;
  RUNG_TRY(rung_jparser_enter(p));
  RUNG_TRY(parse_not(p, &operand));
  p->depth--;
  return make(p, RUNG_J_NODE_NOT, line, operand, NULL, out);
}

static rung_status parse_words(rung_jparser *p, const char *word, rung_jnode_kind kind,
                               rung_status (*part)(rung_jparser *, rung_jnode **), rung_jnode **out) {
  RUNG_TRY(part(p, out));
  for (int line = rung_jparser_token(p)->line; skip_word(p, word); line = rung_jparser_token(p)->line) {
    rung_jnode *right;
    RUNG_TRY(part(p, &right));
    RUNG_TRY(make(p, kind, line, *out, right, out));
  }
  return RUNG_OK;
}
static rung_status parse_and(rung_jparser *p, rung_jnode **out) {
  return parse_words(p, "and", RUNG_J_NODE_AND, parse_not, out);
}
static rung_status parse_or(rung_jparser *p, rung_jnode **out) {
  return parse_words(p, "or", RUNG_J_NODE_OR, parse_and, out);
}

rung_status rung_jparse_expression(rung_jparser *p, rung_jnode **out) {
  const int line = rung_jparser_token(p)->line;
  const rung_jnode *missing = p->missing;
  RUNG_TRY(rung_jparser_enter(p));
  RUNG_TRY(parse_or(p, out));
  while (skip_word(p, "if")) {
    rung_jnode *test, *otherwise = NULL, *then = *out;
    RUNG_TRY(parse_or(p, &test));
    if (skip_word(p, "else")) RUNG_TRY(rung_jparse_expression(p, &otherwise));
    RUNG_TRY(make(p, RUNG_J_NODE_CHOICE, line, test, then, out));
    (*out)->c = otherwise;
    RUNG_TRY(rung_jparser_close(p, *out));
    p->missing = missing; /* unknown filters in an inline if are found when they are reached */
  }
  p->depth--;
  return RUNG_OK;
}

/* ---- tuples */

rung_status rung_jparse_tuple(rung_jparser *p, rung_jtuple how, const char *end_word, rung_jnode **out) {
  const int line = rung_jparser_token(p)->line;
  rung_jnode *list = NULL, **tail = &list;
  bool tuple = false;
  RUNG_TRY(rung_jparser_enter(p));
  for (;;) {
    if (list) RUNG_TRY(expect_operator(p, ","));
    if (rung_jparser_is(p, RUNG_J_TOKEN_VARIABLE_END, NULL) || rung_jparser_is(p, RUNG_J_TOKEN_BLOCK_END, NULL) ||
        is_operator(p, ")") || (end_word && is_word(p, end_word)))
      break;
    if (how == RUNG_J_TUPLE_TARGET)
      RUNG_TRY(rung_jparse_primary(p, true, tail));
    else
      RUNG_TRY(how == RUNG_J_TUPLE_NO_CHOICE ? parse_or(p, tail) : rung_jparse_expression(p, tail));
    tail = &(*tail)->next;
    if (!is_operator(p, ",")) break;
    tuple = true;
  }
  p->depth--;
  if (!tuple && list) {
    *out = list;
    return RUNG_OK;
  }
  if (!tuple && how != RUNG_J_TUPLE_BRACKETS) return rung_jparser_fail(p, line, "an expression expected");
  RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_TUPLE, line, out));
  (*out)->list = list;
  return rung_jparser_close(p, *out);
}
