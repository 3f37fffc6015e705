/* SPDX-License-Identifier: MIT
 * Cuts: each stage hands its pieces to the next one, the last one to the caller; nothing is collected. */
#include "text/cut.h"

#include <string.h>

#include "base/text.h"
#include "text/regex.h"
#include "text/unicode.h"
#include "text/utf8.h"

typedef struct stage {
  rung_text_step step; /* its texts lie in the cutter's copy */
  rung_regex *regex;
} stage;

struct rung_cutter {
  rung_host *host;
  stage stages[RUNG_MOST_STEPS];
  size_t count;
  char *copy;
  size_t copy_bytes;
};

/* GPT-2's, for ByteLevel: see pretokenise.c; written with the classes that text/regex.h translates. */
static const char byte_level[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* ---- creation ---- */

static rung_slice keep(rung_cutter *c, size_t *used, rung_slice s) {
  char *at = c->copy + *used;
  if (s.length) memcpy(at, s.text, s.length);
  *used += s.length;
  return (rung_slice){at, s.length};
}

static rung_status compile(rung_cutter *c, stage *s, const char *what, rung_error *error) {
  const rung_text_step *step = &s->step;
  if (step->kind == RUNG_CUT_BYTE_LEVEL && (step->flags & RUNG_STEP_REGEX))
    return rung_regex_create(c->host, what, byte_level, sizeof byte_level - 1, true, error, &s->regex);
  if (step->kind == RUNG_CUT_SPLIT && (step->flags & RUNG_STEP_REGEX))
    return rung_regex_create(c->host, what, step->pattern.text, step->pattern.length, !(step->flags & RUNG_STEP_NATIVE),
                             error, &s->regex);
  if ((step->kind == RUNG_CUT_SPLIT && !step->pattern.length) ||
      (step->kind == RUNG_CUT_METASPACE && !step->content.length))
    return rung_fail(error, RUNG_CORRUPT_FILE, "%s: an empty pattern", what);
  return RUNG_OK;
}

static rung_status fill(rung_cutter *c, const char *what, const rung_text_step *steps, size_t count,
                        rung_error *error) {
  if (count > RUNG_MOST_STEPS)
    return rung_fail(error, RUNG_UNSUPPORTED, "%s: %zu steps, at most %d are supported", what, count,
                     (int)RUNG_MOST_STEPS);
  for (size_t i = 0; i < count; i++) c->copy_bytes += steps[i].pattern.length + steps[i].content.length;
  c->copy = rung_host_alloc_raw(c->host, RUNG_MEMORY_host, c->copy_bytes, 0);
  if (!c->copy) return rung_fail(error, RUNG_OUT_OF_MEMORY, "%s", what);
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    stage *s = &c->stages[c->count++];
    s->step = steps[i];
    s->step.pattern = keep(c, &used, steps[i].pattern);
    s->step.content = keep(c, &used, steps[i].content);
    if (s->step.kind == RUNG_CUT_BYTE_LEVEL && i + 1 < count)
      return rung_fail(error, RUNG_UNSUPPORTED, "%s: steps behind ByteLevel", what);
    RUNG_TRY(compile(c, s, what, error));
  }
  return RUNG_OK;
}

rung_status rung_cutter_create(rung_host *host, const char *what, const rung_text_step *steps, size_t count,
                               rung_error *error, rung_cutter **out_cutter) {
  rung_cutter *c = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *c, 0);
  if (!c) return rung_fail(error, RUNG_OUT_OF_MEMORY, "%s", what);
  c->host = host;
  const rung_status status = fill(c, what, steps, count, error);
  if (status) {
    rung_cutter_destroy(c);
    return status;
  }
  *out_cutter = c;
  return RUNG_OK;
}

void rung_cutter_destroy(rung_cutter *c) {
  if (!c) return;
  for (size_t i = 0; i < c->count; i++) rung_regex_destroy(c->stages[i].regex);
  if (c->copy) rung_host_free(c->host, RUNG_MEMORY_host, c->copy, c->copy_bytes);
  rung_host_free(c->host, RUNG_MEMORY_host, c, sizeof *c);
}

bool rung_cutter_is_byte_level(const rung_cutter *c) {
  return c->count && c->stages[c->count - 1].step.kind == RUNG_CUT_BYTE_LEVEL;
}

/* ---- running ---- */

typedef struct run {
  const rung_cutter *cutter;
  /* Per stage, since a stage goes on after the ones below it have worked. */
  rung_regex_match *match[RUNG_MOST_STEPS];
  rung_text text[RUNG_MOST_STEPS];
  rung_word_fn *word;
  void *self;
  rung_error *error;
} run;

/* The text that a stage is cutting. */
typedef struct piece {
  run *w;
  size_t stage;
  const char *text;
  size_t length;
  bool first;
  /* What is held back until it is known whether it grows. */
  size_t start, end;
  bool held, matched;
} piece;

static rung_status stage_at(run *w, size_t stage, const char *text, size_t length, bool first);

static rung_status hand_on(const piece *p, size_t start, size_t end) {
  if (start == end) return RUNG_OK;
  run *w = p->w;
  if (p->stage + 1 == w->cutter->count) return w->word(w->self, p->text + start, end - start, w->error);
  return stage_at(w, p->stage + 1, p->text + start, end - start, p->first && start == 0);
}

static rung_status let_go(piece *p) {
  const bool held = p->held;
  p->held = false;
  return held ? hand_on(p, p->start, p->end) : RUNG_OK;
}

static rung_status hold(piece *p, size_t start, size_t end, bool matched) {
  RUNG_TRY(let_go(p));
  p->start = start;
  p->end = end;
  p->held = true;
  p->matched = matched;
  return RUNG_OK;
}

/* The next match, or what lies between two. `p->matched` is that of the span before. */
static rung_status span(piece *p, size_t start, size_t end, bool match, rung_behaviour behaviour) {
  switch (behaviour) {
    case RUNG_CUT_ISOLATED:
      return hand_on(p, start, end);
    case RUNG_CUT_REMOVED:
      return match ? RUNG_OK : hand_on(p, start, end);
    case RUNG_CUT_WITH_PREVIOUS:
      if (match && p->held && !p->matched) {
        p->end = end;
        p->matched = true;
        return RUNG_OK;
      }
      return hold(p, start, end, match);
    case RUNG_CUT_WITH_NEXT:
      if (!match && p->held && p->matched) {
        p->end = end;
        p->matched = false;
        return RUNG_OK;
      }
      return hold(p, start, end, match);
    case RUNG_CUT_CONTIGUOUS:
      if (p->held && p->matched == match) {
        p->end = end;
        return RUNG_OK;
      }
      return hold(p, start, end, match);
  }
  return RUNG_OK;
}

static rung_status next_match(const piece *p, const stage *s, size_t from, size_t *start, size_t *end) {
  const run *w = p->w;
  if (s->regex) return rung_regex_next(s->regex, w->match[p->stage], p->text, p->length, from, w->error, start, end);
  const rung_slice pattern = s->step.kind == RUNG_CUT_METASPACE ? s->step.content : s->step.pattern;
  *start = *end = p->length;
  while (from + pattern.length <= p->length) {
    const char *at = memchr(p->text + from, pattern.text[0], p->length - from - pattern.length + 1);
    if (!at) break;
    from = (size_t)(at - p->text);
    if (memcmp(at, pattern.text, pattern.length) == 0) {
      *start = from;
      *end = from + pattern.length;
      break;
    }
    from++;
  }
  return RUNG_OK;
}

static rung_status cut_at_matches(piece *p, const stage *s, rung_behaviour behaviour, bool invert) {
  size_t done = 0;
  while (done < p->length) {
    size_t start, end;
    RUNG_TRY(next_match(p, s, done, &start, &end));
    if (start > done) RUNG_TRY(span(p, done, start, invert, behaviour));
    if (end > start) RUNG_TRY(span(p, start, end, !invert, behaviour));
    done = end;
  }
  return let_go(p);
}

static uint32_t character_at(const piece *p, size_t at, size_t *next) {
  const uint8_t byte = (uint8_t)p->text[at];
  uint32_t c = byte;
  int n = 1;
  if (byte >= 0x80) n = rung_utf8_read((const uint8_t *)p->text + at, p->length - at, &c);
  *next = at + (n > 0 ? (size_t)n : 1);
  return c;
}

static rung_status cut_at_class(piece *p, rung_unicode_class class_, rung_behaviour behaviour) {
  size_t done = 0;
  for (size_t at = 0, next; at < p->length; at = next) {
    if (!rung_unicode_is(character_at(p, at, &next), class_)) continue;
    if (at > done) RUNG_TRY(span(p, done, at, false, behaviour));
    RUNG_TRY(span(p, at, next, true, behaviour));
    done = next;
  }
  if (done < p->length) RUNG_TRY(span(p, done, p->length, false, behaviour));
  return let_go(p);
}

static bool ascii_space(uint32_t c) { return c == ' ' || (c >= 9 && c <= 13); }
static bool ascii_sign(uint32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

static rung_status cut_bert(piece *p) {
  size_t word = 0;
  for (size_t at = 0, next; at < p->length; at = next) {
    const uint32_t c = character_at(p, at, &next);
    const bool space = c < 128 ? ascii_space(c) : rung_unicode_is(c, RUNG_UNICODE_SPACE);
    const bool sign = !space && (c < 128 ? ascii_sign(c) : rung_unicode_is(c, RUNG_UNICODE_PUNCTUATION));
    if (!space && !sign) continue;
    RUNG_TRY(hand_on(p, word, at));
    if (sign) RUNG_TRY(hand_on(p, at, next));
    word = next;
  }
  return hand_on(p, word, p->length);
}

/* What \w+|[^\w\s]+ finds. */
static rung_status cut_whitespace(piece *p) {
  enum { SPACE, WORD, SIGN } kind = SPACE;
  size_t start = 0;
  for (size_t at = 0, next; at < p->length; at = next) {
    const uint32_t c = character_at(p, at, &next);
    const int now = rung_unicode_is(c, RUNG_UNICODE_SPACE)  ? SPACE
                    : rung_unicode_is(c, RUNG_UNICODE_WORD) ? WORD
                                                            : SIGN;
    if (now == (int)kind) continue;
    if (kind != SPACE) RUNG_TRY(hand_on(p, start, at));
    start = at;
    kind = now;
  }
  return kind == SPACE ? RUNG_OK : hand_on(p, start, p->length);
}

static bool begins_with(const piece *p, rung_slice s) {
  return p->length >= s.length && memcmp(p->text, s.text, s.length) == 0;
}

/* The piece becomes what `text` holds. */
static rung_status use(piece *p, const rung_text *text) {
  p->text = text->data;
  p->length = text->length;
  return rung_text_status(text, p->w->error);
}

static rung_status cut_byte_level(piece *p, const stage *s) {
  rung_text *text = &p->w->text[p->stage];
  if ((s->step.flags & RUNG_STEP_PREFIX) && p->text[0] != ' ') {
    text->length = 0;
    rung_text_add(text, " ", 1);
    rung_text_add(text, p->text, p->length);
    RUNG_TRY(use(p, text));
  }
  return s->regex ? cut_at_matches(p, s, RUNG_CUT_ISOLATED, false) : hand_on(p, 0, p->length);
}

static rung_status cut_metaspace(piece *p, const stage *s) {
  const rung_text_step *step = &s->step;
  rung_text *text = &p->w->text[p->stage];
  text->length = 0;
  const bool wanted = (step->flags & RUNG_STEP_PREFIX) || ((step->flags & RUNG_STEP_PREFIX_FIRST) && p->first);
  const bool there = p->text[0] == ' ' || begins_with(p, step->content);
  if (wanted && (!there || (step->flags & RUNG_STEP_ALWAYS)))
    rung_text_add(text, step->content.text, step->content.length);
  size_t done = 0;
  for (const char *at; (at = memchr(p->text + done, ' ', p->length - done)) != NULL;) {
    const size_t blank = (size_t)(at - p->text);
    rung_text_add(text, p->text + done, blank - done);
    rung_text_add(text, step->content.text, step->content.length);
    done = blank + 1;
  }
  rung_text_add(text, p->text + done, p->length - done);
  RUNG_TRY(use(p, text));
  return step->flags & RUNG_STEP_SPLIT ? cut_at_matches(p, s, RUNG_CUT_WITH_NEXT, false) : hand_on(p, 0, p->length);
}

static rung_status stage_at(run *w, size_t number, const char *text, size_t length, bool first) {
  const stage *s = &w->cutter->stages[number];
  const rung_text_step *step = &s->step;
  piece p = {.w = w, .stage = number, .text = text, .length = length, .first = first};
  switch ((int)step->kind) {
    case RUNG_CUT_BERT:
      return cut_bert(&p);
    case RUNG_CUT_SPLIT:
      return cut_at_matches(&p, s, step->behaviour, step->flags & RUNG_STEP_INVERT);
    case RUNG_CUT_BYTE_LEVEL:
      return cut_byte_level(&p, s);
    case RUNG_CUT_METASPACE:
      return cut_metaspace(&p, s);
    case RUNG_CUT_WHITESPACE:
      return cut_whitespace(&p);
    case RUNG_CUT_WHITESPACE_SPLIT:
      return cut_at_class(&p, RUNG_UNICODE_SPACE, RUNG_CUT_REMOVED);
    case RUNG_CUT_PUNCTUATION:
      return cut_at_class(&p, RUNG_UNICODE_PUNCTUATION, step->behaviour);
    case RUNG_CUT_DIGITS:
      return cut_at_class(&p, RUNG_UNICODE_NUMERIC,
                          step->flags & RUNG_STEP_EACH ? RUNG_CUT_ISOLATED : RUNG_CUT_CONTIGUOUS);
    default:
      return rung_fail(w->error, RUNG_INTERNAL, "a step that cuts nothing");
  }
}

rung_status rung_cutter_run(const rung_cutter *c, const char *text, size_t length, bool first, rung_word_fn *word,
                            void *self, rung_error *error) {
  if (length == 0) return RUNG_OK;
  if (c->count == 0) return word(self, text, length, error);
  run w = {.cutter = c, .word = word, .self = self, .error = error};
  rung_status status = RUNG_OK;
  for (size_t i = 0; i < c->count; i++) {
    rung_text_init(&w.text[i], c->host);
    if (c->stages[i].regex && !status) status = rung_regex_match_create(c->stages[i].regex, error, &w.match[i]);
  }
  if (!status) status = stage_at(&w, 0, text, length, first);
  for (size_t i = 0; i < c->count; i++) {
    rung_text_finish(&w.text[i]);
    rung_regex_match_destroy(w.match[i]);
  }
  return status;
}
