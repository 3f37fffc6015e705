/* SPDX-License-Identifier: MIT
 * Texts as Python's str works on them: searching, stripping, case, replacing, lines, padding. */
#include "text/jinja/text.h"

#include "text/jinja/characters.h"
#include "text/utf8.h"

static uint32_t character_at(const rung_jstring *s, size_t at, size_t *out_bytes) {
  uint32_t c = 0;
  *out_bytes = (size_t)rung_utf8_read((const uint8_t *)s->data + at, s->length - at, &c);
  return c;
}

rung_status rung_j_part(rung_jrun *run, const rung_jstring *s, size_t from, size_t to, rung_jvalue *out) {
  const bool safe = s->safe;
  RUNG_TRY(rung_j_text(run, s->data + from, to - from, out));
  out->as.string->safe = safe;
  return RUNG_OK;
}

rung_status rung_j_search(rung_jrun *run, const rung_jstring *s, const rung_jstring *part, size_t from, size_t *out) {
  *out = SIZE_MAX;
  if (from > s->length || part->length > s->length - from) return RUNG_OK;
  if (!part->length) {
    *out = from;
    return RUNG_OK;
  }
  const char *at = s->data + from, *last = s->data + s->length - part->length;
  while (at <= last) {
    const char *next = memchr(at, part->data[0], (size_t)(last - at) + 1);
    RUNG_TRY(rung_j_work(run, next ? (size_t)(next - at) + part->length : (size_t)(last - at)));
    if (!next) return RUNG_OK;
    if (memcmp(next, part->data, part->length) == 0) {
      *out = (size_t)(next - s->data);
      return RUNG_OK;
    }
    at = next + 1;
  }
  return RUNG_OK;
}

rung_status rung_j_escape(rung_jrun *run, rung_jtext *text, const rung_jstring *s) {
  static const char marks[] = "&<>'\"";
  static const char *const entity[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  size_t plain = 0;
  for (size_t at = 0; at < s->length; at++) {
    const char *found = s->data[at] ? strchr(marks, s->data[at]) : NULL;
    if (!found) continue;
    RUNG_TRY(rung_j_put(run, text, s->data + plain, at - plain));
    RUNG_TRY(rung_j_puts(run, text, entity[found - marks]));
    plain = at + 1;
  }
  return rung_j_put(run, text, s->data + plain, s->length - plain);
}

/* ---- stripping */

static bool is_one_of(const rung_jstring *chars, uint32_t c) {
  size_t n;
  for (size_t at = 0; at < chars->length; at += n)
    if (character_at(chars, at, &n) == c) return true;
  return false;
}

rung_status rung_jtext_strip(rung_jrun *run, const rung_jstring *s, const rung_jstring *chars, unsigned ends,
                             rung_jvalue *out) {
  size_t from = 0, to = s->length;
  RUNG_TRY(rung_j_work(run, s->length * (chars ? chars->length + 1 : 1)));
  while ((ends & RUNG_J_LEFT) && from < to) {
    size_t n;
    const uint32_t c = character_at(s, from, &n);
    if (chars ? !is_one_of(chars, c) : !rung_jspace_at(s->data + from, to - from)) break;
    from += n;
  }
  while ((ends & RUNG_J_RIGHT) && from < to) {
    size_t n = 1, ignored;
    while (n < 4 && n < to - from && ((uint8_t)s->data[to - n] & 0xC0) == 0x80) n++;
    const uint32_t c = character_at(s, to - n, &ignored);
    if (chars ? !is_one_of(chars, c) : !rung_jspace_before(s->data + from, to - from)) break;
    to -= n;
  }
  return rung_j_part(run, s, from, to, out);
}

/* ---- case */

static bool is_cased(uint32_t c) {
  return rung_jclass_is(c, RUNG_J_LOWER) || rung_jclass_is(c, RUNG_J_UPPER) || rung_jclass_is(c, RUNG_J_TITLE);
}

/* A capital sigma at the end of a word has a lower case of its own. What Unicode ignores between letters counts as the
 * end of a word here. */
static bool is_final_sigma(const rung_jstring *s, uint32_t c, bool after_cased, size_t next) {
  size_t n;
  return c == 0x3A3 && after_cased && (next >= s->length || !is_cased(character_at(s, next, &n)));
}

static bool begins_word(uint32_t c) { return c == '-' || c == '(' || c == '{' || c == '[' || c == '<'; }

rung_status rung_jtext_form(rung_jrun *run, const rung_jstring *s, rung_jform form, rung_jvalue *out) {
  rung_jtext text = {0};
  bool after_cased = false, first = true; /* first: of the text, or of a word */
  RUNG_TRY(rung_j_work(run, s->length * 4));
  for (size_t at = 0, n; at < s->length; at += n) {
    const uint32_t c = character_at(s, at, &n);
    rung_jcase to = form == RUNG_J_FORM_UPPER ? RUNG_J_TO_UPPER : RUNG_J_TO_LOWER;
    if (form == RUNG_J_FORM_CAPITAL && first) to = RUNG_J_TO_TITLE;
    if (form == RUNG_J_FORM_TITLE && !after_cased) to = RUNG_J_TO_TITLE;
    if (form == RUNG_J_FORM_WORDS && first) to = RUNG_J_TO_UPPER;
    uint32_t changed[3];
    int count = rung_jcase_of(c, to, changed);
    if (to == RUNG_J_TO_LOWER && is_final_sigma(s, c, after_cased, at + n)) changed[0] = 0x3C2;
    for (int i = 0; i < count; i++) RUNG_TRY(rung_j_put_character(run, &text, changed[i]));
    after_cased = (c >= 0x80 || form == RUNG_J_FORM_TITLE) && is_cased(c);
    if (c < 0x80 && form != RUNG_J_FORM_TITLE) after_cased = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    first = form == RUNG_J_FORM_WORDS && (begins_word(c) || rung_jspace_at(s->data + at, s->length - at));
  }
  RUNG_TRY(rung_j_take(run, &text, out));
  out->as.string->safe = s->safe && form != RUNG_J_FORM_WORDS;
  return RUNG_OK;
}

/* ---- replacing, lines, padding */

rung_status rung_jtext_replace(rung_jrun *run, const rung_jstring *s, const rung_jstring *old, const rung_jstring *new_,
                               int64_t count, rung_jvalue *out) {
  rung_jtext text = {0};
  size_t at = 0, found;
  while (count) {
    RUNG_TRY(rung_j_search(run, s, old, at, &found));
    if (found == SIZE_MAX) break;
    RUNG_TRY(rung_j_put(run, &text, s->data + at, found - at));
    RUNG_TRY(rung_j_put(run, &text, new_->data, new_->length));
    at = found + old->length;
    if (count > 0) count--;
    if (old->length) continue;
    if (at == s->length) break; /* nothing is found between all characters, and at both ends */
    const size_t n = rung_utf8_announced((uint8_t)s->data[at]);
    RUNG_TRY(rung_j_put(run, &text, s->data + at, n));
    at += n;
  }
  RUNG_TRY(rung_j_put(run, &text, s->data + at, s->length - at));
  RUNG_TRY(rung_j_take(run, &text, out));
  out->as.string->safe = s->safe;
  return RUNG_OK;
}

/* Bytes of the line end at `at`, 0 if there is none. */
static size_t line_end(const rung_jstring *s, size_t at) {
  size_t n;
  const uint32_t c = character_at(s, at, &n);
  if (c == '\r') return at + 1 < s->length && s->data[at + 1] == '\n' ? 2 : 1;
  return (c >= 0xA && c <= 0xC) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029 ? n : 0;
}

rung_status rung_jtext_lines(rung_jrun *run, const rung_jstring *s, bool keep, rung_jvalue *out) {
  rung_jvalue line;
  size_t from = 0;
  RUNG_TRY(rung_j_work(run, s->length));
  RUNG_TRY(rung_j_list(run, RUNG_J_LIST, 0, out));
  for (size_t at = 0; at < s->length;) {
    const size_t end = line_end(s, at);
    if (!end) {
      at += rung_utf8_announced((uint8_t)s->data[at]);
      continue;
    }
    RUNG_TRY(rung_j_part(run, s, from, keep ? at + end : at, &line));
    RUNG_TRY(rung_j_append(run, out->as.list, line));
    from = at += end;
  }
  if (from == s->length) return RUNG_OK;
  RUNG_TRY(rung_j_part(run, s, from, s->length, &line));
  return rung_j_append(run, out->as.list, line);
}

rung_status rung_jtext_pad(rung_jrun *run, const rung_jstring *s, int64_t width, const char *fill, size_t fill_bytes,
                           char how, rung_jvalue *out) {
  const int64_t length = rung_j_characters((rung_jstring *)(uintptr_t)s), missing = width > length ? width - length : 0;
  const int64_t left = how == '<' ? 0 : how == '>' ? missing : missing / 2 + (missing & width & 1);
  rung_jtext text = {0};
  for (int64_t i = 0; i < left; i++) RUNG_TRY(rung_j_put(run, &text, fill, fill_bytes));
  RUNG_TRY(rung_j_put(run, &text, s->data, s->length));
  for (int64_t i = left; i < missing; i++) RUNG_TRY(rung_j_put(run, &text, fill, fill_bytes));
  RUNG_TRY(rung_j_take(run, &text, out));
  out->as.string->safe = s->safe;
  return RUNG_OK;
}
