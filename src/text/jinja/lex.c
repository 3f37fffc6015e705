/* SPDX-License-Identifier: MIT
 * Tokens of a template. Blanks around blocks go as with jinja2's trim_blocks and lstrip_blocks. */
#include <string.h>

#include "text/jinja/ast.h"
#include "text/jinja/characters.h"
#include "text/utf8.h"

enum { MOST_BRACKETS = 256 };

typedef struct lexer {
  rung_jtokens *tokens;
  const char *begin, *at, *end;
  const char *counted; /* lines are counted up to here */
  int line;
  bool line_starting; /* what came before ended a line, or nothing came */
} lexer;

static int line_at(lexer *l, const char *at) {
  for (; l->counted < at; l->counted++) l->line += *l->counted == '\n';
  return l->line;
}

static rung_status fail(lexer *l, const char *at, const char *what) {
  return rung_fail(l->tokens->error, RUNG_CORRUPT_FILE, "line %d: %s", line_at(l, at), what);
}

static rung_status add(lexer *l, rung_jtoken_kind kind, const char *from, const char *to) {
  rung_jtokens *t = l->tokens;
  void *array = t->item;
  if (!rung_arena_grow(t->arena, &array, &t->capacity, t->count + 1, sizeof *t->item))
    return rung_fail(t->error, RUNG_OUT_OF_MEMORY, "out of memory");
  t->item = array;
  t->item[t->count++] = (rung_jtoken){kind, line_at(l, from), from, (size_t)(to - from)};
  return RUNG_OK;
}

static bool starts(const lexer *l, const char *at, const char *text) {
  const size_t n = strlen(text);
  return (size_t)(l->end - at) >= n && memcmp(at, text, n) == 0;
}

static const char *skip_spaces(const lexer *l, const char *at) {
  for (size_t n; (n = rung_jspace_at(at, (size_t)(l->end - at))) != 0;) at += n;
  return at;
}

/* ---- the text between blocks */

/* {%- raw %}: behind it, NULL if it is another block. *out_sign is the sign that counts for the text before. */
static const char *raw_begin(const lexer *l, const char *at, const char *word, char *out_sign) {
  if (!starts(l, at, "{%")) return NULL;
  at += 2;
  *out_sign = at < l->end && (*at == '-' || *at == '+') ? *at++ : 0;
  at = skip_spaces(l, at);
  if (!starts(l, at, word)) return NULL;
  at = skip_spaces(l, at + strlen(word));
  if (starts(l, at, "-%}")) return skip_spaces(l, at + 3);
  if (starts(l, at, "%}")) return at + 2;
  return NULL;
}

/* {%- endraw %} also trims the line end behind it, as other blocks do. */
static const char *raw_end(const lexer *l, const char *at, char *out_sign) {
  if (!starts(l, at, "{%")) return NULL;
  at += 2;
  *out_sign = at < l->end && (*at == '-' || *at == '+') ? *at++ : 0;
  at = skip_spaces(l, at);
  if (!starts(l, at, "endraw")) return NULL;
  at = skip_spaces(l, at + 6);
  if (starts(l, at, "+%}")) return at + 3;
  if (starts(l, at, "-%}")) return skip_spaces(l, at + 3);
  if (!starts(l, at, "%}")) return NULL;
  at += 2;
  return at < l->end && *at == '\n' ? at + 1 : at;
}

/* The text in front of a block, without the blanks that its sign, or lstrip_blocks, takes. */
static rung_status add_data(lexer *l, const char *from, const char *to, char sign, bool variable) {
  if (sign == '-') {
    for (size_t n; (n = rung_jspace_before(from, (size_t)(to - from))) != 0;) to -= n;
  } else if (sign != '+' && !variable) {
    const char *start = to;
    while (start > from && start[-1] != '\n') start--;
    const bool whole = start > from || l->line_starting;
    const char *at = start;
    for (size_t n; at < to && (n = rung_jspace_at(at, (size_t)(to - at))) != 0;) at += n;
    if (whole && at == to) to = start;
  }
  return to > from ? add(l, RUNG_J_TOKEN_DATA, from, to) : RUNG_OK;
}

static rung_status read_comment(lexer *l, const char *open, const char *from) {
  for (const char *at = from; at + 1 < l->end; at++) {
    if (at[0] != '#' || at[1] != '}') continue;
    const char before = at > from ? at[-1] : 0;
    l->at = at + 2;
    if (before == '-')
      l->at = skip_spaces(l, l->at);
    else if (before != '+' && l->at < l->end && *l->at == '\n')
      l->at++;
    l->line_starting = l->at[-1] == '\n';
    return RUNG_OK;
  }
  return fail(l, open, "{# that is never closed");
}

static rung_status read_raw(lexer *l, const char *open, const char *from) {
  for (const char *at = from; at < l->end; at++) {
    char sign;
    const char *behind = *at == '{' ? raw_end(l, at, &sign) : NULL;
    if (!behind) continue;
    l->line_starting = from[-1] == '\n';
    RUNG_TRY(add_data(l, from, at, sign, false));
    l->at = behind;
    l->line_starting = behind[-1] == '\n';
    return RUNG_OK;
  }
  return fail(l, open, "{% raw %} without {% endraw %}");
}

/* ---- inside a block */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
/* Bytes of the letter, digit or _ at `at`, 0 if there is none. */
static size_t word_at(const lexer *l, const char *at) {
  if (at == l->end) return 0;
  const char c = *at;
  if ((uint8_t)c < 0x80) return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  uint32_t character;
  const int n = rung_utf8_read((const uint8_t *)at, (size_t)(l->end - at), &character);
  return n > 0 && (rung_jclass_is(character, RUNG_J_ALPHA) || rung_jclass_is(character, RUNG_J_NUMERIC)) ? (size_t)n
                                                                                                         : 0;
}

/* (\d+_)*\d+ : behind it, or `at` if there is none. */
static const char *digits(const lexer *l, const char *at) {
  const char *last = at;
  while (at < l->end && is_digit(*at)) {
    while (at < l->end && is_digit(*at)) at++;
    last = at;
    if (at + 1 < l->end && *at == '_' && is_digit(at[1])) at++;
  }
  return last;
}

static bool is_base_digit(char c, int bits) {
  if (bits == 4) return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  return c >= '0' && c < '0' + (1 << bits);
}

static const char *based(const lexer *l, const char *at) {
  const char letter = at + 1 < l->end && *at == '0' ? (char)(at[1] | 0x20) : 0;
  const int bits = letter == 'x' ? 4 : letter == 'o' ? 3 : letter == 'b' ? 1 : 0;
  const char *last = at;
  if (!bits) return at;
  for (at += 2; at < l->end;) {
    if (*at == '_' && at + 1 < l->end && is_base_digit(at[1], bits)) at++;
    if (!is_base_digit(*at, bits)) break;
    last = ++at;
  }
  return last;
}

static rung_status read_number(lexer *l) {
  const char *from = l->at, *whole = digits(l, from), *to = whole;
  rung_jtoken_kind kind = RUNG_J_TOKEN_INTEGER;
  const bool behind_dot = from > l->begin && from[-1] == '.';
  if (!behind_dot) {
    if (to < l->end && *to == '.' && digits(l, to + 1) > to + 1) {
      to = digits(l, to + 1);
      kind = RUNG_J_TOKEN_FLOAT;
    }
    if (to < l->end && (*to == 'e' || *to == 'E')) {
      const char *power = to + 1;
      if (power < l->end && (*power == '+' || *power == '-')) power++;
      if (digits(l, power) > power) {
        to = digits(l, power);
        kind = RUNG_J_TOKEN_FLOAT;
      }
    }
  }
  if (kind == RUNG_J_TOKEN_INTEGER) {
    const char *other = based(l, from);
    if (other > from) to = other;
  }
  l->at = to;
  return add(l, kind, from, to);
}

static rung_status read_string(lexer *l) {
  const char quote = *l->at, *from = l->at, *at = from + 1;
  while (at < l->end && *at != quote) at += *at == '\\' && at + 1 < l->end ? 2 : 1;
  if (at >= l->end) return fail(l, from, "a string that is never closed");
  l->at = at + 1;
  return add(l, RUNG_J_TOKEN_STRING, from, l->at);
}

/* Reads up to the end of the block or variable. */
static rung_status read_block(lexer *l, bool variable) {
  static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                          "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
  const char *const close = variable ? "}}" : "%}", *open = l->at;
  char bracket[MOST_BRACKETS];
  int depth = 0;
  for (;;) {
    l->at = skip_spaces(l, l->at);
    if (l->at == l->end) return fail(l, open, variable ? "{{ that is never closed" : "{% that is never closed");
    const char *from = l->at;
    const bool minus = *from == '-', plus = !variable && *from == '+';
    if (!depth && starts(l, from + (minus || plus), close)) {
      l->at = from + (minus || plus) + 2;
      if (minus)
        l->at = skip_spaces(l, l->at);
      else if (!plus && !variable && l->at < l->end && *l->at == '\n')
        l->at++;
      l->line_starting = l->at[-1] == '\n';
      return add(l, variable ? RUNG_J_TOKEN_VARIABLE_END : RUNG_J_TOKEN_BLOCK_END, from, from);
    }
    if (is_digit(*from)) {
      RUNG_TRY(read_number(l));
    } else if (*from == '"' || *from == '\'') {
      RUNG_TRY(read_string(l));
    } else if (word_at(l, from)) {
      for (size_t n; (n = word_at(l, l->at)) != 0;) l->at += n;
      RUNG_TRY(add(l, RUNG_J_TOKEN_NAME, from, l->at));
    } else {
      size_t i = 0;
      while (i < RUNG_COUNT(operators) && !starts(l, from, operators[i])) i++;
      if (i == RUNG_COUNT(operators)) return fail(l, from, "an unexpected character");
      if (strchr("([{", *from)) {
        if (depth == MOST_BRACKETS) return fail(l, from, "brackets nested too deep");
        bracket[depth++] = *from == '(' ? ')' : *from == '[' ? ']' : '}';
      } else if (strchr(")]}", *from)) {
        if (!depth || bracket[--depth] != *from) return fail(l, from, "a bracket that closes nothing");
      }
      l->at = from + strlen(operators[i]);
      RUNG_TRY(add(l, RUNG_J_TOKEN_OPERATOR, from, l->at));
    }
  }
}

rung_status rung_jtokens_read(rung_jtokens *tokens, const char *text, size_t length) {
  lexer l = {.tokens = tokens,
             .begin = text,
             .at = text,
             .end = text + length,
             .counted = text,
             .line = 1,
             .line_starting = true};
  while (l.at < l.end) {
    const char *open = l.at, *from = l.at;
    while (open < l.end && !(open[0] == '{' && open + 1 < l.end && strchr("{%#", open[1]) && open[1])) open++;
    if (open == l.end) {
      RUNG_TRY(add(&l, RUNG_J_TOKEN_DATA, from, open));
      break;
    }
    char sign;
    const char *raw = raw_begin(&l, open, "raw", &sign);
    if (!raw) sign = open + 2 < l.end && (open[2] == '-' || open[2] == '+') ? open[2] : 0;
    const bool variable = open[1] == '{';
    RUNG_TRY(add_data(&l, from, open, sign, variable));
    if (raw) {
      RUNG_TRY(read_raw(&l, open, raw));
    } else if (open[1] == '#') {
      RUNG_TRY(read_comment(&l, open, open + 2 + (sign != 0)));
    } else {
      l.at = open + 2 + (sign != 0);
      RUNG_TRY(add(&l, variable ? RUNG_J_TOKEN_VARIABLE_BEGIN : RUNG_J_TOKEN_BLOCK_BEGIN, open, open));
      RUNG_TRY(read_block(&l, variable));
    }
  }
  return add(&l, RUNG_J_TOKEN_END, l.end, l.end);
}

/* ---- strings */

static int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One escape of Python's, at the backslash: writes what it means, returns how many bytes it took, 0 if it is none. */
static size_t read_escape(const char *at, const char *end, char *out, size_t *out_bytes) {
  static const char letters[] = "\\'\"abfnrtv", meanings[] = "\\'\"\a\b\f\n\r\t\v";
  const char c = at[1];
  const char *simple = c ? strchr(letters, c) : NULL;
  *out_bytes = 1;
  if (c == '\n') {
    *out_bytes = 0;
    return 2;
  }
  if (simple) {
    *out = meanings[simple - letters];
    return 2;
  }
  uint32_t value = 0;
  size_t n = 2;
  if (c >= '0' && c <= '7') {
    for (n = 1; n < 4 && at + n < end && at[n] >= '0' && at[n] <= '7'; n++) value = value * 8 + (uint32_t)(at[n] - '0');
  } else if (c == 'x' || c == 'u' || c == 'U') {
    const size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    for (; n < count + 2; n++) {
      const int digit = at + n < end ? hex_digit(at[n]) : -1;
      if (digit < 0) return 0;
      value = value << 4 | (uint32_t)digit;
    }
  } else if (c == 'N') {
    return 0;
  } else { /* no escape: the backslash stays */
    out[0] = '\\';
    return 1;
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return 0;
  *out_bytes = (size_t)rung_utf8_write(value, (uint8_t *)out);
  return n;
}

rung_status rung_jtoken_string(const rung_jtokens *tokens, const rung_jtoken *token, const char **out_data,
                               size_t *out_length) {
  const char *at = token->text + 1, *end = token->text + token->length - 1;
  *out_data = at;
  *out_length = (size_t)(end - at);
  if (!memchr(at, '\\', *out_length)) return RUNG_OK;
  char *copy = rung_arena_alloc(tokens->arena, *out_length + 1);
  if (!copy) return rung_fail(tokens->error, RUNG_OUT_OF_MEMORY, "out of memory");
  size_t length = 0;
  while (at < end) {
    if (*at != '\\') {
      copy[length++] = *at++;
      continue;
    }
    size_t bytes;
    const size_t taken = read_escape(at, end, copy + length, &bytes);
    if (!taken)
      return rung_fail(tokens->error, RUNG_CORRUPT_FILE, "line %d: an escape in a string that names no character",
                       token->line);
    at += taken;
    length += bytes;
  }
  *out_data = copy;
  *out_length = length;
  return RUNG_OK;
}
