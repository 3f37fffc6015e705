/* SPDX-License-Identifier: MIT
 * Statements of templates, and making a template of a text. */
#include <stdio.h>
#include <string.h>

#include "text/jinja/ast.h"
#include "text/utf8.h"

static bool is_word(const rung_jparser *p, const char *text) { return rung_jparser_is(p, RUNG_J_TOKEN_NAME, text); }
static bool skip_word(rung_jparser *p, const char *text) { return rung_jparser_skip(p, RUNG_J_TOKEN_NAME, text); }
static bool skip_operator(rung_jparser *p, const char *text) {
  return rung_jparser_skip(p, RUNG_J_TOKEN_OPERATOR, text);
}
static rung_status expect_word(rung_jparser *p, const char *text) {
  return rung_jparser_expect(p, RUNG_J_TOKEN_NAME, text, text);
}
static rung_status expect_operator(rung_jparser *p, const char *text) {
  return rung_jparser_expect(p, RUNG_J_TOKEN_OPERATOR, text, text);
}
static rung_status expect_block_end(rung_jparser *p) {
  return rung_jparser_expect(p, RUNG_J_TOKEN_BLOCK_END, NULL, "the end of the block");
}

static rung_status subparse(rung_jparser *p, const char *const *ends, const char *opened, int opened_line,
                            rung_jnode **out_list);

/* The body of a block up to one of the words; stands at that word then. */
static rung_status parse_body(rung_jparser *p, const char *const *ends, const char *opened, rung_jnode **out_list) {
  const int line = rung_jparser_token(p)->line;
  (void)skip_operator(p, ":");
  RUNG_TRY(expect_block_end(p));
  RUNG_TRY(rung_jparser_enter(p));
  RUNG_TRY(subparse(p, ends, opened, line, out_list));
  p->depth--;
  return RUNG_OK;
}

/* A body that is a scope of its own, so that unknown filters in it are found at once again. `loops`: those that break
 * and continue in it can end. */
static rung_status parse_scope(rung_jparser *p, const char *const *ends, const char *opened, int loops,
                               rung_jnode **out_list) {
  const bool soft = p->soft;
  const int outer = p->loops;
  p->soft = false;
  p->loops = loops;
  const rung_status status = parse_body(p, ends, opened, out_list);
  p->soft = soft;
  p->loops = outer;
  return status;
}

static rung_status check_target(const rung_jparser *p, const rung_jnode *target) {
  if (target->kind == RUNG_J_NODE_NAME || target->kind == RUNG_J_NODE_MEMBER) return RUNG_OK;
  if (target->kind != RUNG_J_NODE_TUPLE) return rung_jparser_fail(p, target->line, "nothing can be assigned to that");
  for (const rung_jnode *n = target->list; n; n = n->next) RUNG_TRY(check_target(p, n));
  return RUNG_OK;
}

static rung_status parse_target(rung_jparser *p, const char *end_word, rung_jnode **out) {
  RUNG_TRY(rung_jparse_tuple(p, RUNG_J_TUPLE_TARGET, end_word, out));
  return check_target(p, *out);
}

static rung_status parse_name_target(rung_jparser *p, rung_jnode **out) {
  if (!rung_jparser_is(p, RUNG_J_TOKEN_NAME, NULL)) return rung_jparser_expect(p, RUNG_J_TOKEN_NAME, NULL, "a name");
  RUNG_TRY(rung_jparse_primary(p, false, out));
  return check_target(p, *out);
}

/* ---- one function a statement: called behind its word, with a node of its kind */

static rung_status parse_if(rung_jparser *p, rung_jnode *node) {
  static const char *const ends[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif", NULL};
  rung_jnode **tail = &node->list;
  const bool soft = p->soft;
  p->soft = true;
  for (bool otherwise = false;;) {
    RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_IF, rung_jparser_token(p)->line, tail));
    if (!otherwise) RUNG_TRY(rung_jparse_tuple(p, RUNG_J_TUPLE_NO_CHOICE, NULL, &(*tail)->a));
    RUNG_TRY(parse_body(p, otherwise ? last : ends, "{% if %}", &(*tail)->list));
    tail = &(*tail)->next;
    if (skip_word(p, "endif")) break;
    otherwise = is_word(p, "else");
    p->at++;
  }
  p->soft = soft;
  return RUNG_OK;
}

static rung_status parse_for(rung_jparser *p, rung_jnode *node) {
  static const char *const ends[] = {"endfor", "else", NULL}, *const last[] = {"endfor", NULL};
  RUNG_TRY(parse_target(p, "in", &node->a));
  RUNG_TRY(expect_word(p, "in"));
  RUNG_TRY(rung_jparse_tuple(p, RUNG_J_TUPLE_NO_CHOICE, "recursive", &node->b));
  if (skip_word(p, "if")) RUNG_TRY(rung_jparse_expression(p, &node->c));
  node->flag = skip_word(p, "recursive");
  RUNG_TRY(parse_scope(p, ends, "{% for %}", p->loops + 1, &node->list));
  if (skip_word(p, "endfor")) return RUNG_OK;
  p->at++;
  RUNG_TRY(parse_scope(p, last, "{% for %}", p->loops, &node->more));
  return expect_word(p, "endfor");
}

static rung_status parse_set(rung_jparser *p, rung_jnode *node) {
  static const char *const ends[] = {"endset", NULL};
  RUNG_TRY(parse_target(p, NULL, &node->a));
  if (skip_operator(p, "=")) return rung_jparse_tuple(p, RUNG_J_TUPLE_FULL, NULL, &node->b);
  node->kind = RUNG_J_NODE_SET_BLOCK;
  if (skip_operator(p, "|")) RUNG_TRY(rung_jparse_filters(p, NULL, &node->b));
  RUNG_TRY(parse_scope(p, ends, "{% set %}", 0, &node->list));
  return expect_word(p, "endset");
}

static rung_status parse_signature(rung_jparser *p, rung_jnode *node) {
  RUNG_TRY(expect_operator(p, "("));
  rung_jnode **tail = &node->list;
  bool defaults = false;
  while (!rung_jparser_is(p, RUNG_J_TOKEN_OPERATOR, ")")) {
    if (node->list) RUNG_TRY(expect_operator(p, ","));
    RUNG_TRY(parse_name_target(p, tail));
    rung_jnode *parameter = *tail;
    tail = &parameter->next;
    if (skip_operator(p, "=")) {
      defaults = true;
      RUNG_TRY(rung_jparse_expression(p, &parameter->a));
    } else if (defaults) {
      return rung_jparser_fail(p, parameter->line, "a parameter without default behind one with a default");
    }
  }
  p->at++;
  return RUNG_OK;
}

/* Which of the names that every macro has its body uses. */
static void find_uses(rung_jnode *macro, const rung_jparser *p, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++) {
    const rung_jtoken *t = &p->tokens.item[i];
    if (t->kind != RUNG_J_TOKEN_NAME) continue;
    macro->uses_caller |= t->length == 6 && memcmp(t->text, "caller", 6) == 0;
    macro->uses_named |= t->length == 6 && memcmp(t->text, "kwargs", 6) == 0;
    macro->uses_positional |= t->length == 7 && memcmp(t->text, "varargs", 7) == 0;
  }
}

static rung_status parse_macro_body(rung_jparser *p, rung_jnode *macro, const char *end, const char *opened) {
  const char *const ends[] = {end, NULL};
  const uint32_t from = p->at;
  RUNG_TRY(parse_scope(p, ends, opened, 0, &macro->more));
  find_uses(macro, p, from, p->at);
  return expect_word(p, end);
}

static rung_status parse_macro(rung_jparser *p, rung_jnode *node) {
  rung_jnode *name;
  RUNG_TRY(parse_name_target(p, &name));
  node->name = name->name;
  RUNG_TRY(parse_signature(p, node));
  return parse_macro_body(p, node, "endmacro", "{% macro %}");
}

static rung_status parse_call_block(rung_jparser *p, rung_jnode *node) {
  rung_jnode *macro;
  RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_MACRO, node->line, &macro));
  RUNG_TRY(rung_jparser_name(p, "caller", 6, &macro->name));
  if (rung_jparser_is(p, RUNG_J_TOKEN_OPERATOR, "(")) RUNG_TRY(parse_signature(p, macro));
  RUNG_TRY(rung_jparse_expression(p, &node->a));
  if (node->a->kind != RUNG_J_NODE_CALL) return rung_jparser_fail(p, node->line, "{%% call %%} needs a call");
  node->b = macro;
  return parse_macro_body(p, macro, "endcall", "{% call %}");
}

static rung_status parse_filter_block(rung_jparser *p, rung_jnode *node) {
  static const char *const ends[] = {"endfilter", NULL};
  RUNG_TRY(rung_jparse_filters(p, NULL, &node->b));
  RUNG_TRY(parse_scope(p, ends, "{% filter %}", 0, &node->list));
  return expect_word(p, "endfilter");
}

static rung_status parse_with(rung_jparser *p, rung_jnode *node) {
  static const char *const ends[] = {"endwith", NULL};
  rung_jnode **tail = &node->list;
  while (!rung_jparser_is(p, RUNG_J_TOKEN_BLOCK_END, NULL)) {
    if (node->list) RUNG_TRY(expect_operator(p, ","));
    RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_SET, rung_jparser_token(p)->line, tail));
    RUNG_TRY(rung_jparse_primary(p, false, &(*tail)->a));
    RUNG_TRY(check_target(p, (*tail)->a));
    RUNG_TRY(expect_operator(p, "="));
    RUNG_TRY(rung_jparse_expression(p, &(*tail)->b));
    tail = &(*tail)->next;
  }
  RUNG_TRY(parse_scope(p, ends, "{% with %}", p->loops, &node->more));
  return expect_word(p, "endwith");
}

static rung_status parse_generation(rung_jparser *p, rung_jnode *node) {
  static const char *const ends[] = {"endgeneration", NULL};
  RUNG_TRY(parse_scope(p, ends, "{% generation %}", 0, &node->more));
  return expect_word(p, "endgeneration");
}

static rung_status parse_print(rung_jparser *p, rung_jnode *node) {
  rung_jnode **tail = &node->list;
  while (!rung_jparser_is(p, RUNG_J_TOKEN_BLOCK_END, NULL)) {
    if (node->list) RUNG_TRY(expect_operator(p, ","));
    RUNG_TRY(rung_jparse_expression(p, tail));
    tail = &(*tail)->next;
  }
  return RUNG_OK;
}

static rung_status parse_leave(rung_jparser *p, rung_jnode *node) {
  return p->loops ? RUNG_OK : rung_jparser_fail(p, node->line, "break and continue need a loop around them");
}

static const struct {
  const char *word;
  rung_jnode_kind kind;
  rung_status (*parse)(rung_jparser *, rung_jnode *);
} statements[] = {{"if", RUNG_J_NODE_IF, parse_if},
                  {"for", RUNG_J_NODE_FOR, parse_for},
                  {"set", RUNG_J_NODE_SET, parse_set},
                  {"macro", RUNG_J_NODE_MACRO, parse_macro},
                  {"call", RUNG_J_NODE_CALL_BLOCK, parse_call_block},
                  {"filter", RUNG_J_NODE_FILTER_BLOCK, parse_filter_block},
                  {"with", RUNG_J_NODE_WITH, parse_with},
                  {"generation", RUNG_J_NODE_GENERATION, parse_generation},
                  {"print", RUNG_J_NODE_OUTPUT, parse_print},
                  {"break", RUNG_J_NODE_BREAK, parse_leave},
                  {"continue", RUNG_J_NODE_CONTINUE, parse_leave}};

static rung_status parse_statement(rung_jparser *p, rung_jnode **out) {
  static const char *const others[] = {"block", "extends", "include", "import", "from", "autoescape"};
  const rung_jtoken *t = rung_jparser_token(p);
  RUNG_TRY(rung_jparser_expect(p, RUNG_J_TOKEN_NAME, NULL, "a tag's name"));
  for (size_t i = 0; i < RUNG_COUNT(statements); i++) {
    if (t->length != strlen(statements[i].word) || memcmp(t->text, statements[i].word, t->length) != 0) continue;
    RUNG_TRY(rung_jparser_node(p, statements[i].kind, t->line, out));
    return statements[i].parse(p, *out);
  }
  for (size_t i = 0; i < RUNG_COUNT(others); i++)
    if (t->length == strlen(others[i]) && memcmp(t->text, others[i], t->length) == 0)
      return rung_fail(p->error, RUNG_UNSUPPORTED, "line %d: {%% %s %%} is not supported", t->line, others[i]);
  return rung_jparser_fail(p, t->line, "unknown tag \"%.*s\"", t->length < 40 ? (int)t->length : 40, t->text);
}

static bool at_end(const rung_jparser *p, const char *const *ends) {
  for (; ends && *ends; ends++)
    if (is_word(p, *ends)) return true;
  return false;
}

static rung_status subparse(rung_jparser *p, const char *const *ends, const char *opened, int opened_line,
                            rung_jnode **out_list) {
  for (rung_jnode **tail = out_list;;) {
    const rung_jtoken *t = rung_jparser_token(p);
    if (t->kind == RUNG_J_TOKEN_END) {
      if (!opened) return RUNG_OK;
      return rung_jparser_fail(p, t->line, "the template ends inside %s of line %d", opened, opened_line);
    }
    p->at++;
    if (t->kind == RUNG_J_TOKEN_BLOCK_BEGIN) {
      if (at_end(p, ends)) return RUNG_OK;
      RUNG_TRY(parse_statement(p, tail));
      RUNG_TRY(expect_block_end(p));
    } else if (t->kind == RUNG_J_TOKEN_VARIABLE_BEGIN) {
      RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_OUTPUT, t->line, tail));
      RUNG_TRY(rung_jparse_tuple(p, RUNG_J_TUPLE_FULL, NULL, &(*tail)->list));
      RUNG_TRY(rung_jparser_expect(p, RUNG_J_TOKEN_VARIABLE_END, NULL, "}}"));
    } else {
      RUNG_TRY(rung_jparser_node(p, RUNG_J_NODE_TEXT, t->line, tail));
      rung_jstring *s = rung_arena_alloc(&p->template_->arena, sizeof *s);
      if (!s) return rung_fail(p->error, RUNG_OUT_OF_MEMORY, "out of memory");
      *s = (rung_jstring){.data = t->text, .length = t->length, .characters = 0};
      (*tail)->value = (rung_jvalue){.kind = RUNG_J_STRING, .as.string = s};
    }
    tail = &(*tail)->next;
  }
}

rung_status rung_jparse_statements(rung_jparser *p) {
  RUNG_TRY(subparse(p, NULL, NULL, 0, &p->template_->body));
  if (!p->missing) return RUNG_OK;
  char what[96];
  rung_jnode_describe(p->missing, what, sizeof what);
  return rung_fail(p->error, RUNG_UNSUPPORTED, "line %d: %s is not known", p->missing->line, what);
}

/* ---- templates */

void rung_jnode_describe(const rung_jnode *node, char *out, size_t bytes) {
  static const char *const names[] = {
#define X(name, text) text,
      RUNG_J_NODES(X)
#undef X
  };
  const rung_jname *name = node->name;
  if (node->kind == RUNG_J_NODE_CALL && node->a && node->a->name) name = node->a->name;
  const bool named = name && node->kind != RUNG_J_NODE_MACRO;
  snprintf(out, bytes, named ? "%s %.40s" : "%s", names[node->kind], named ? name->text : "");
}

/* Line ends become \n, and the last one goes. */
static char *plain_lines(rung_arena *arena, const char *text, size_t bytes, size_t *out_length) {
  char *copy = rung_arena_alloc(arena, bytes + 1);
  size_t n = 0;
  if (!copy) return NULL;
  for (size_t i = 0; i < bytes; i++) {
    const bool pair = text[i] == '\r' && i + 1 < bytes && text[i + 1] == '\n';
    copy[n++] = text[i] == '\r' ? '\n' : text[i];
    i += pair;
  }
  if (n && copy[n - 1] == '\n') n--;
  *out_length = n;
  return copy;
}

static rung_status fill(rung_jtemplate *t, const char *text, size_t bytes, rung_error *error) {
  if (bytes > (size_t)1 << 26) return rung_fail(error, RUNG_OUT_OF_RANGE, "the template has more than 64 MiB");
  const size_t valid = rung_utf8_valid_prefix((const uint8_t *)text, bytes);
  if (valid != bytes) return rung_fail(error, RUNG_CORRUPT_FILE, "no UTF-8 at offset %zu", valid);
  size_t length = 0;
  char *lines = plain_lines(&t->arena, text, bytes, &length);
  t->source = rung_arena_text(&t->arena, text, bytes);
  t->source_bytes = bytes;
  if (!lines || !t->source) return rung_fail(error, RUNG_OUT_OF_MEMORY, "out of memory");
  rung_jparser p = {.template_ = t, .error = error, .tokens = {.arena = &t->arena, .error = error}};
  RUNG_TRY(rung_jparser_name(&p, "loop", 4, &t->loop));
  RUNG_TRY(rung_jparser_name(&p, "caller", 6, &t->caller));
  RUNG_TRY(rung_jparser_name(&p, "varargs", 7, &t->varargs));
  RUNG_TRY(rung_jparser_name(&p, "kwargs", 6, &t->kwargs));
  RUNG_TRY(rung_jtokens_read(&p.tokens, lines, length));
  return rung_jparse_statements(&p);
}

rung_status rung_jtemplate_create(rung_host *host, const char *text, size_t bytes, rung_error *error,
                                  rung_jtemplate **out_template) {
  rung_jtemplate *t = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *t, 0);
  if (!t) return rung_fail(error, RUNG_OUT_OF_MEMORY, "chat template: out of memory");
  atomic_init(&t->references, 1);
  rung_host_retain(host);
  t->host = host;
  rung_arena_init(&t->arena, host);
  const rung_status status = fill(t, text, bytes, error);
  if (status) {
    rung_jtemplate_release(t);
    return rung_fail_prefix(error, status, "chat template");
  }
  *out_template = t;
  return RUNG_OK;
}

void rung_jtemplate_retain(rung_jtemplate *t) {
  if (t) atomic_fetch_add(&t->references, 1);
}

void rung_jtemplate_release(rung_jtemplate *t) {
  if (!t || atomic_fetch_sub(&t->references, 1) != 1) return;
  rung_host *host = t->host;
  rung_arena_finish(&t->arena);
  rung_host_free(host, RUNG_MEMORY_host, t, sizeof *t);
  rung_host_release(host);
}

const char *rung_jtemplate_source(const rung_jtemplate *t, size_t *out_bytes) {
  *out_bytes = t->source_bytes;
  return t->source;
}
