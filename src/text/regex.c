/* SPDX-License-Identifier: MIT
 * PCRE2 behind one small interface, and the translation of Oniguruma's syntax.
 *
 * No just-in-time compiler: its memory is executable, comes from outside the host's allocator, and compiling costs more
 * than reading a prompt saves. */
#include "text/regex.h"

#include <string.h>

#include "base/text.h"

#if RUNG_HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct rung_regex {
  rung_host *host;
  const char *what;
  pcre2_general_context *memory;
  pcre2_match_context *limits;
  pcre2_code *code;
};

/* PCRE2 frees without a size, so each block begins with its own. */
enum { HEADER = 16 };
static void *take(size_t bytes, void *self) {
  if (bytes > SIZE_MAX - HEADER) return NULL;
  char *p = rung_host_alloc_raw(self, RUNG_MEMORY_host, bytes + HEADER, 0);
  if (!p) return NULL;
  memcpy(p, &bytes, sizeof bytes);
  return p + HEADER;
}
static void give(void *p, void *self) {
  if (!p) return;
  size_t bytes;
  memcpy(&bytes, (char *)p - HEADER, sizeof bytes);
  rung_host_free(self, RUNG_MEMORY_host, (char *)p - HEADER, bytes + HEADER);
}

/* ---- Oniguruma's syntax ---- */

/* Classes that PCRE2 reads otherwise: its \s adds U+180E, its \w lacks marks, and \h is white space there. */
static const struct {
  char letter;
  const char *members;
} classes[] = {
    {'s', "\\t-\\r\\x{85}\\p{Z}"}, {'w', "\\p{L}\\p{M}\\p{Nd}\\p{Pc}"}, {'d', "\\p{Nd}"}, {'h', "0-9A-Fa-f"}};

static const char *members_of(char letter) {
  for (size_t i = 0; i < RUNG_COUNT(classes); i++)
    if (classes[i].letter == letter) return classes[i].members;
  return NULL;
}

typedef struct translation {
  const char *what, *pattern;
  size_t length, at;
  rung_error *error;
  rung_text *out;
} translation;

static rung_status cannot(const translation *t, const char *why) {
  return rung_fail(t->error, RUNG_UNSUPPORTED, "%s: the pattern's %s at byte %zu", t->what, why, t->at);
}

/* At a backslash. */
static rung_status escape(translation *t, bool in_class) {
  if (t->at + 1 == t->length) return cannot(t, "backslash at the end");
  const char letter = t->pattern[t->at + 1];
  const char lower = letter >= 'A' && letter <= 'Z' ? (char)(letter + 32) : letter;
  const char *members = members_of(lower);
  if (members && lower != letter && in_class) return cannot(t, "negated class inside a class is not supported,");
  if (members) {
    if (!in_class) rung_text_puts(t->out, lower == letter ? "[" : "[^");
    rung_text_puts(t->out, members);
    if (!in_class) rung_text_puts(t->out, "]");
  } else {
    /* The rest means the same in both, or is not used by tokenisers: \A \G \Z \K \R \X and references. */
    const bool plain = letter >= 0 && strchr("pPnrtfvabBx", letter);
    const bool sign =
        !((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9'));
    if (!plain && !sign) return cannot(t, "escape is not supported,");
    rung_text_add(t->out, t->pattern + t->at, 2);
  }
  t->at += 2;
  return RUNG_OK;
}

/* Behind the opening bracket of a class. */
static rung_status class_(translation *t) {
  bool first = true;
  if (t->at < t->length && t->pattern[t->at] == '^') rung_text_add(t->out, &t->pattern[t->at++], 1);
  for (; t->at < t->length; first = false) {
    const char c = t->pattern[t->at];
    if (c == ']' && !first) {
      rung_text_add(t->out, &t->pattern[t->at++], 1);
      return RUNG_OK;
    }
    if (c == '[') return cannot(t, "class inside a class is not supported,");
    if (c == '&' && t->at + 1 < t->length && t->pattern[t->at + 1] == '&')
      return cannot(t, "intersection of classes is not supported,");
    if (c == '\\') {
      RUNG_TRY(escape(t, true));
      continue;
    }
    rung_text_add(t->out, &t->pattern[t->at++], 1);
  }
  return cannot(t, "class has no end,");
}

/* Behind an opening parenthesis and its question mark: flags differ, (?m) is PCRE2's (?s). */
static rung_status group(translation *t) {
  static const char *const same[] = {"?:", "?=", "?!", "?>", "?<=", "?<!", "?i:"};
  for (size_t i = 0; i < RUNG_COUNT(same); i++) {
    const size_t n = strlen(same[i]);
    if (t->length - t->at < n || memcmp(t->pattern + t->at, same[i], n) != 0) continue;
    rung_text_puts(t->out, same[i]);
    t->at += n;
    return RUNG_OK;
  }
  return cannot(t, "kind of group is not supported,");
}

static rung_status translate(translation *t) {
  rung_text_puts(t->out, "(?m)"); /* ^ and $ are those of lines there */
  while (t->at < t->length) {
    const char c = t->pattern[t->at];
    if (c == '\\') {
      RUNG_TRY(escape(t, false));
      continue;
    }
    rung_text_add(t->out, &c, 1);
    t->at++;
    if (c == '[') RUNG_TRY(class_(t));
    if (c == '(' && t->at < t->length && t->pattern[t->at] == '?') RUNG_TRY(group(t));
  }
  return rung_text_status(t->out, t->error);
}

/* ---- the interface ---- */

static rung_status compile(rung_regex *r, const char *pattern, size_t length, rung_error *error) {
  pcre2_compile_context *options = pcre2_compile_context_create(r->memory);
  if (!options) return rung_fail(error, RUNG_OUT_OF_MEMORY, "%s", r->what);
  pcre2_set_newline(options, PCRE2_NEWLINE_LF);
  int code = 0;
  PCRE2_SIZE at = 0;
  r->code = pcre2_compile((PCRE2_SPTR)pattern, length, PCRE2_UTF | PCRE2_NO_UTF_CHECK, &code, &at, options);
  pcre2_compile_context_free(options);
  if (r->code) return RUNG_OK;
  /* ERR21: compiling ran out of memory. */
  if (code == PCRE2_ERROR_NOMEMORY || code == 121) return rung_fail(error, RUNG_OUT_OF_MEMORY, "%s", r->what);
  return rung_fail(error, RUNG_UNSUPPORTED, "%s: PCRE2 refuses the pattern (error %d at %zu)", r->what, code,
                   (size_t)at);
}

static rung_status translate_and_compile(rung_regex *r, const char *pattern, size_t length, rung_error *error) {
  rung_text text;
  rung_text_init(&text, r->host);
  translation t = {r->what, pattern, length, 0, error, &text};
  rung_status status = translate(&t);
  if (!status) status = compile(r, text.data, text.length, error);
  rung_text_finish(&text);
  return status;
}

rung_status rung_regex_create(rung_host *host, const char *what, const char *pattern, size_t length, bool foreign,
                              rung_error *error, rung_regex **out_regex) {
  rung_regex *r = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *r, 0);
  if (!r) return rung_fail(error, RUNG_OUT_OF_MEMORY, "%s", what);
  r->host = host;
  r->what = what;
  r->memory = pcre2_general_context_create(take, give, host);
  r->limits = r->memory ? pcre2_match_context_create(r->memory) : NULL;
  rung_status status = r->limits ? RUNG_OK : rung_fail(error, RUNG_OUT_OF_MEMORY, "%s", what);
  if (!status) status = foreign ? translate_and_compile(r, pattern, length, error) : compile(r, pattern, length, error);
  if (status) {
    rung_regex_destroy(r);
    return status;
  }
  *out_regex = r;
  return RUNG_OK;
}

void rung_regex_destroy(rung_regex *r) {
  if (!r) return;
  pcre2_code_free(r->code);
  pcre2_match_context_free(r->limits);
  pcre2_general_context_free(r->memory);
  rung_host_free(r->host, RUNG_MEMORY_host, r, sizeof *r);
}

rung_status rung_regex_match_create(const rung_regex *r, rung_error *error, rung_regex_match **out_match) {
  pcre2_match_data *data = pcre2_match_data_create(1, r->memory);
  if (!data) return rung_fail(error, RUNG_OUT_OF_MEMORY, "%s", r->what);
  *out_match = (rung_regex_match *)data;
  return RUNG_OK;
}
void rung_regex_match_destroy(rung_regex_match *match) { pcre2_match_data_free((pcre2_match_data *)match); }

rung_status rung_regex_next(const rung_regex *r, rung_regex_match *match, const char *text, size_t length, size_t from,
                            rung_error *error, size_t *out_start, size_t *out_end) {
  pcre2_match_data *data = (pcre2_match_data *)match;
  *out_start = *out_end = length;
  if (from >= length) return RUNG_OK;
  const int found =
      pcre2_match(r->code, (PCRE2_SPTR)text, length, from, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data, r->limits);
  if (found == PCRE2_ERROR_NOMATCH) return RUNG_OK;
  if (found < 0)
    return rung_fail(error, found == PCRE2_ERROR_NOMEMORY ? RUNG_OUT_OF_MEMORY : RUNG_OUT_OF_RANGE,
                     "%s: PCRE2 gives up on %zu bytes of text (error %d)", r->what, length, found);
  const PCRE2_SIZE *range = pcre2_get_ovector_pointer(data);
  if (range[1] <= range[0]) return RUNG_OK;
  *out_start = range[0];
  *out_end = range[1];
  return RUNG_OK;
}

#else

/* Texts cannot be cut without PCRE2, but ids still mean what they mean: the refusal waits until something is to match. */
struct rung_regex {
  rung_host *host;
  const char *what;
};

rung_status rung_regex_create(rung_host *host, const char *what, const char *pattern, size_t length, bool foreign,
                              rung_error *error, rung_regex **out_regex) {
  (void)pattern, (void)length, (void)foreign;
  rung_regex *r = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *r, 0);
  if (!r) return rung_fail(error, RUNG_OUT_OF_MEMORY, "%s", what);
  *r = (rung_regex){host, what};
  *out_regex = r;
  return RUNG_OK;
}
void rung_regex_destroy(rung_regex *r) {
  if (r) rung_host_free(r->host, RUNG_MEMORY_host, r, sizeof *r);
}
rung_status rung_regex_match_create(const rung_regex *r, rung_error *error, rung_regex_match **out_match) {
  (void)out_match;
  return rung_fail(error, RUNG_UNSUPPORTED, "%s needs PCRE2, which this build is without", r->what);
}
void rung_regex_match_destroy(rung_regex_match *match) { (void)match; }
rung_status rung_regex_next(const rung_regex *r, rung_regex_match *match, const char *text, size_t length, size_t from,
                            rung_error *error, size_t *out_start, size_t *out_end) {
  (void)match, (void)text, (void)length, (void)from, (void)out_start, (void)out_end;
  return rung_fail(error, RUNG_UNSUPPORTED, "%s needs PCRE2, which this build is without", r->what);
}
#endif
