/* SPDX-License-Identifier: MIT
 * Reading patterns.def. The language is the text form with holes; patterns.def explains it. A row that cannot be read
 * is an error of ours, which the first compile (and the test) reports. */
#include "passes/pattern.h"

#include <string.h>

#include "ir/lex.h"
#include "ops/op_table.h"

static const struct {
  const char *name, *left, *right, *condition;
} texts[] = {
#define PATTERN(name, left, right, condition) {#name, left, right, condition},
#include "passes/patterns.def"
#undef PATTERN
};

typedef struct reader {
  rung_lex lex;
  rung_arena *arena;
  rung_pattern *p;
  const char *value_name[RUNG_PATTERN_VALUES];
  uint8_t *values; /* how many names there are */
  bool right;
  rung_error *error;
} reader;

static rung_status bad(reader *r, const char *what) {
  return rung_fail(r->error, RUNG_INTERNAL, "pattern %s, %s side: %s before \"%.20s\"", r->p->name,
                   r->right ? "right" : "left", what, r->lex.at);
}
static rung_status no_memory(reader *r) { return rung_fail(r->error, RUNG_OUT_OF_MEMORY, "patterns: out of memory"); }

/* Index of a name in a list, added where it is new and may be. */
static rung_status name_index(reader *r, const char **list, uint8_t *count, uint8_t most, bool may_add,
                              uint8_t *out_index) {
  const char *name;
  const size_t length = rung_lex_name(&r->lex, &name);
  if (!length) return bad(r, "a name is missing");
  for (uint8_t i = 0; i < *count; i++) {
    if (strlen(list[i]) != length || memcmp(list[i], name, length) != 0) continue;
    *out_index = i;
    return RUNG_OK;
  }
  if (!may_add) return bad(r, "unknown name");
  if (*count == most) return bad(r, "too many names");
  list[*count] = rung_arena_text(r->arena, name, length);
  if (!list[*count]) return no_memory(r);
  *out_index = (*count)++;
  return RUNG_OK;
}

static bool starts_number(const rung_lex *lex) {
  return lex->at < lex->limit &&
         (*lex->at == '-' || *lex->at == '+' || *lex->at == '.' || (*lex->at >= '0' && *lex->at <= '9'));
}

static rung_status read_term(reader *r, rung_term *out) {
  rung_pattern *p = r->p;
  rung_lex_spaces(&r->lex);
  if (rung_lex_accept(&r->lex, '?')) {
    out->kind = RUNG_TERM_HOLE;
    return name_index(r, p->hole_name, &p->holes, RUNG_PATTERN_HOLES, !r->right, &out->index);
  }
  if (rung_lex_accept(&r->lex, '%')) {
    out->kind = RUNG_TERM_VALUE;
    return name_index(r, r->value_name, r->values, RUNG_PATTERN_VALUES, false, &out->index);
  }
  if (!rung_lex_accept(&r->lex, '#')) return bad(r, "an operand is missing");
  if (starts_number(&r->lex)) {
    out->kind = RUNG_TERM_NUMBER;
    const char *end;
    if (!rung_parse_f64(r->lex.at, r->lex.limit, &out->number, &end)) return bad(r, "a number is missing");
    r->lex.at = end;
    return RUNG_OK;
  }
  out->kind = RUNG_TERM_KEPT;
  return name_index(r, p->number_name, &p->numbers, RUNG_PATTERN_KEPT, !r->right, &out->index);
}

/* A literal: up to the comma or brace outside of brackets. */
static rung_status read_literal(reader *r, const char **out) {
  const char *start = r->lex.at;
  int depth = 0;
  while (r->lex.at < r->lex.limit && (depth || (*r->lex.at != ',' && *r->lex.at != '}'))) {
    depth += *r->lex.at == '[';
    depth -= *r->lex.at == ']';
    r->lex.at++;
  }
  *out = rung_arena_text(r->arena, start, (size_t)(r->lex.at - start));
  return *out ? RUNG_OK : no_memory(r);
}

static rung_status read_attr(reader *r, rung_statement *s) {
  rung_pattern *p = r->p;
  const char *name;
  const size_t length = rung_lex_name(&r->lex, &name);
  if (s->attrs == RUNG_PATTERN_ATTRS) return bad(r, "too many attributes");
  rung_attr_term *term = &s->attr[s->attrs++];
  term->attr = rung_attr_find(s->op, name, length);
  if (!term->attr || !rung_lex_accept(&r->lex, '=')) return bad(r, "no such attribute");
  if (rung_lex_accept(&r->lex, '?'))
    return name_index(r, p->kept_name, &p->kept, RUNG_PATTERN_KEPT, !r->right, &term->kept);
  if (r->right && r->lex.limit - r->lex.at > 3 && memcmp(r->lex.at, "1/#", 3) == 0) {
    term->inverse = true;
    r->lex.at += 2;
  }
  if (r->right && rung_lex_accept(&r->lex, '#')) {
    term->number = true;
    return name_index(r, p->number_name, &p->numbers, RUNG_PATTERN_KEPT, false, &term->kept);
  }
  return read_literal(r, &term->text);
}

static rung_status read_attrs(reader *r, rung_statement *s) {
  if (!rung_lex_accept(&r->lex, '{')) return RUNG_OK;
  if (!r->right && rung_lex_accept(&r->lex, '?')) {
    s->any = true;
    return rung_lex_accept(&r->lex, '}') ? RUNG_OK : bad(r, "'}' is missing");
  }
  do RUNG_TRY(read_attr(r, s));
  while (rung_lex_accept(&r->lex, ','));
  return rung_lex_accept(&r->lex, '}') ? RUNG_OK : bad(r, "'}' is missing");
}

static rung_status read_statement(reader *r, rung_statement *s) {
  if (!rung_lex_accept(&r->lex, '%')) return bad(r, "'%' is missing");
  RUNG_TRY(name_index(r, r->value_name, r->values, RUNG_PATTERN_VALUES, true, &s->value));
  if (!rung_lex_accept(&r->lex, '=')) return bad(r, "'=' is missing");
  const char *name;
  const size_t length = rung_lex_name(&r->lex, &name);
  s->op = rung_op_find(name, length);
  if (!s->op) return bad(r, "no such op");
  do {
    if (s->n_in == RUNG_PATTERN_IN) return bad(r, "too many operands");
    RUNG_TRY(read_term(r, &s->in[s->n_in++]));
  } while (rung_lex_accept(&r->lex, ','));
  RUNG_TRY(read_attrs(r, s));
  rung_lex_spaces(&r->lex);
  if (!rung_lex_accept(&r->lex, ';') && r->lex.at != r->lex.limit) return bad(r, "';' is missing");
  rung_lex_spaces(&r->lex);
  return RUNG_OK;
}

/* Statements of one name on the left are alternatives, in order. */
static void append_left(rung_pattern *p, rung_statement *s) {
  if (!p->left[s->value]) {
    p->left[s->value] = s;
    return;
  }
  rung_statement *last = (rung_statement *)p->left[s->value];
  while (last->next) last = (rung_statement *)last->next;
  last->next = s;
}

static rung_status read_side(reader *r, const char *text, bool right) {
  rung_pattern *p = r->p;
  r->lex = (rung_lex){text, text + strlen(text)};
  r->right = right;
  r->values = right ? &p->right_values : &p->values;
  while (r->lex.at < r->lex.limit) {
    rung_statement *s = (rung_statement *)rung_arena_alloc(r->arena, sizeof *s);
    if (!s) return no_memory(r);
    RUNG_TRY(read_statement(r, s));
    if (!right) {
      append_left(p, s);
      p->root = s->value;
      continue;
    }
    if (p->right_last)
      ((rung_statement *)p->right_last)->next = s;
    else
      p->right = s;
    p->right_last = s;
  }
  return p->values && (!right || p->right) ? RUNG_OK : bad(r, "nothing stands there");
}

static rung_status read_row(rung_patterns *patterns, size_t i, rung_error *error) {
  rung_pattern *p = &patterns->row[i];
  p->name = texts[i].name;
  reader r = {.arena = &patterns->arena, .p = p, .error = error};
  RUNG_TRY(read_side(&r, texts[i].left, false));
  memcpy(p->value_name, r.value_name, sizeof p->value_name);
  memset(r.value_name, 0, sizeof r.value_name);
  RUNG_TRY(read_side(&r, texts[i].right, true));
  static const char kernel[] = "kernel";
  const char *condition = texts[i].condition;
  if (strncmp(condition, kernel, sizeof kernel - 1) == 0) {
    p->kernel = true;
    condition += sizeof kernel - 1;
    while (*condition == ' ') condition++;
  }
  if (!condition[0]) return RUNG_OK;
  p->holds = rung_pattern_condition(condition);
  return p->holds ? RUNG_OK : bad(&r, "no such condition");
}

rung_status rung_patterns_create(rung_host *host, rung_error *error, rung_patterns **out_patterns) {
  rung_patterns *patterns = (rung_patterns *)rung_host_alloc(host, RUNG_MEMORY_host, sizeof *patterns, 0);
  if (!patterns) return rung_fail(error, RUNG_OUT_OF_MEMORY, "patterns: out of memory");
  rung_arena_init(&patterns->arena, host);
  patterns->rows = (uint32_t)RUNG_COUNT(texts);
  patterns->row = (rung_pattern *)rung_arena_array(&patterns->arena, patterns->rows, sizeof *patterns->row);
  rung_status status = patterns->row ? RUNG_OK : rung_fail(error, RUNG_OUT_OF_MEMORY, "patterns: out of memory");
  for (size_t i = 0; i < RUNG_COUNT(texts) && !status; i++) status = read_row(patterns, i, error);
  if (status) {
    rung_patterns_destroy(patterns);
    return status;
  }
  *out_patterns = patterns;
  return RUNG_OK;
}

void rung_patterns_destroy(rung_patterns *patterns) {
  if (!patterns) return;
  rung_host *host = patterns->arena.host;
  rung_arena_finish(&patterns->arena);
  rung_host_free(host, RUNG_MEMORY_host, patterns, sizeof *patterns);
}
