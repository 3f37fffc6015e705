/* SPDX-License-Identifier: MIT
 * Normalisers: most text is ASCII, which each step passes through quickly; the rest goes character by character. */
#include "text/normalise.h"

#include <string.h>

#include "text/charsmap.h"
#include "text/regex.h"
#include "text/unicode.h"
#include "text/utf8.h"

#if RUNG_HAVE_UTF8PROC
#include <utf8proc.h>
#endif

typedef struct stage {
  rung_text_step step; /* its texts lie in the normaliser's copy */
  rung_regex *regex;
  rung_charsmap map;
} stage;

struct rung_normaliser {
  rung_host *host;
  stage stages[RUNG_MOST_STEPS];
  size_t count;
  char *copy;
  size_t copy_bytes;
};

static const char what[] = "normalizer";

/* ---- creation ---- */

static bool needs_utf8proc(const rung_text_step *step) {
  return (step->kind == RUNG_NORMALISE_BERT && (step->flags & RUNG_STEP_ACCENTS)) ||
         (step->kind == RUNG_NORMALISE_CHARSMAP && (step->flags & RUNG_STEP_GRAPHEMES)) ||
         (step->kind >= RUNG_NORMALISE_NFC && step->kind <= RUNG_NORMALISE_NFKD);
}

static rung_slice keep(rung_normaliser *n, size_t *used, rung_slice s) {
  char *at = n->copy + *used;
  if (s.length) memcpy(at, s.text, s.length);
  *used += s.length;
  return (rung_slice){at, s.length};
}

static rung_status fill(rung_normaliser *n, const rung_text_step *steps, size_t count, rung_error *error) {
  if (count > RUNG_MOST_STEPS)
    return rung_fail(error, RUNG_UNSUPPORTED, "normalizer: %zu steps, at most %d are supported", count,
                     (int)RUNG_MOST_STEPS);
  for (size_t i = 0; i < count; i++) n->copy_bytes += steps[i].pattern.length + steps[i].content.length;
  n->copy = rung_host_alloc_raw(n->host, RUNG_MEMORY_host, n->copy_bytes, 0);
  if (!n->copy) return rung_fail(error, RUNG_OUT_OF_MEMORY, "normalizer");
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    stage *s = &n->stages[n->count++];
    s->step = steps[i];
    s->step.pattern = keep(n, &used, steps[i].pattern);
    s->step.content = keep(n, &used, steps[i].content);
    if (!RUNG_HAVE_UTF8PROC && needs_utf8proc(&s->step))
      return rung_fail(error, RUNG_UNSUPPORTED, "normalizer: %s needs utf8proc, which this build is without",
                       s->step.kind == RUNG_NORMALISE_BERT       ? "strip_accents"
                       : s->step.kind == RUNG_NORMALISE_CHARSMAP ? "Precompiled"
                                                                 : "a normal form");
    if (s->step.kind == RUNG_NORMALISE_CHARSMAP) RUNG_TRY(rung_charsmap_init(&s->map, s->step.pattern, error));
    if (s->step.kind != RUNG_NORMALISE_REPLACE) continue;
    if (!s->step.pattern.length) return rung_fail(error, RUNG_CORRUPT_FILE, "normalizer: Replace of an empty pattern");
    if (s->step.flags & RUNG_STEP_REGEX)
      RUNG_TRY(rung_regex_create(n->host, what, s->step.pattern.text, s->step.pattern.length, true, error, &s->regex));
  }
  return RUNG_OK;
}

rung_status rung_normaliser_create(rung_host *host, const rung_text_step *steps, size_t count, rung_error *error,
                                   rung_normaliser **out_normaliser) {
  rung_normaliser *n = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *n, 0);
  if (!n) return rung_fail(error, RUNG_OUT_OF_MEMORY, "normalizer");
  n->host = host;
  const rung_status status = fill(n, steps, count, error);
  if (status) {
    rung_normaliser_destroy(n);
    return status;
  }
  *out_normaliser = n;
  return RUNG_OK;
}

void rung_normaliser_destroy(rung_normaliser *n) {
  if (!n) return;
  for (size_t i = 0; i < n->count; i++) rung_regex_destroy(n->stages[i].regex);
  if (n->copy) rung_host_free(n->host, RUNG_MEMORY_host, n->copy, n->copy_bytes);
  rung_host_free(n->host, RUNG_MEMORY_host, n, sizeof *n);
}

void rung_normal_work_init(rung_normal_work *work, rung_host *host) {
  *work = (rung_normal_work){.host = host};
  rung_text_init(&work->text[0], host);
  rung_text_init(&work->text[1], host);
}

void rung_normal_work_finish(rung_normal_work *work) {
  rung_text_finish(&work->text[0]);
  rung_text_finish(&work->text[1]);
  if (work->character)
    rung_host_free(work->host, RUNG_MEMORY_host, work->character, work->capacity * sizeof *work->character);
  work->character = NULL;
}

/* ---- steps ---- */

/* One step under way. */
typedef struct pass {
  const stage *s;
  const char *text;
  size_t length;
  rung_normal_work *work;
  rung_text *out;
  rung_error *error;
  size_t span, out_span; /* bytes at the beginning that come from the whole text's first character */
} pass;

static void put(rung_text *out, uint32_t c) {
  uint8_t bytes[4];
  const int n = rung_utf8_write(c, bytes);
  rung_text_add(out, (const char *)bytes, (size_t)n);
}

static bool is_ascii(const char *text, size_t length) {
  size_t at = 0;
  for (uint64_t eight; length - at >= sizeof eight; at += sizeof eight) {
    memcpy(&eight, text + at, sizeof eight);
    if (eight & UINT64_C(0x8080808080808080)) return false;
  }
  for (; at < length; at++)
    if ((uint8_t)text[at] >= 0x80) return false;
  return true;
}

static uint32_t character(const pass *p, size_t at, size_t *next) {
  uint32_t c = (uint8_t)p->text[at];
  const int n = c < 0x80 ? 1 : rung_utf8_read((const uint8_t *)p->text + at, p->length - at, &c);
  *next = at + (n > 0 ? (size_t)n : 1);
  return c;
}

static void put_lower(rung_text *out, uint32_t c) {
  uint32_t second;
  put(out, rung_unicode_lower(c, &second));
  if (second) put(out, second);
}

#if RUNG_HAVE_UTF8PROC
enum { LONGEST_FORM = 32 }; /* characters that one character may become; U+FDFA becomes 18 */

static uint8_t order_of(uint32_t c) {
  if (c < 0x300 || rung_unicode_is(c, RUNG_UNICODE_KEPT_WHOLE)) return 0;
  return (uint8_t)utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
}

/* The characters that c is made of; at least one. */
static int decompose(uint32_t c, bool compatible, uint32_t out[LONGEST_FORM]) {
  utf8proc_int32_t parts[LONGEST_FORM];
  int boundary = 0;
  utf8proc_ssize_t n = 1;
  parts[0] = (utf8proc_int32_t)c;
  if (c >= 0xA0 && !rung_unicode_is(c, RUNG_UNICODE_KEPT_WHOLE))
    n = utf8proc_decompose_char((utf8proc_int32_t)c, parts, LONGEST_FORM,
                                UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0), &boundary);
  if (n <= 0 || n > LONGEST_FORM) {
    parts[0] = (utf8proc_int32_t)c;
    n = 1;
  }
  for (int i = 0; i < (int)n; i++) out[i] = (uint32_t)parts[i];
  return (int)n;
}

/* Puts what follows a base character into the order of the combining classes. */
static void sort_marks(uint32_t *character, size_t count) {
  for (size_t i = 1; i < count; i++) {
    const uint32_t c = character[i];
    const uint8_t order = order_of(c);
    if (order == 0) continue;
    size_t at = i;
    for (; at > 0 && order_of(character[at - 1]) > order; at--) character[at] = character[at - 1];
    character[at] = c;
  }
}

static rung_status normal_form(pass *p, bool compatible, bool compose) {
  rung_normal_work *work = p->work;
  size_t count = 0, first = 0;
  for (size_t at = 0, next; at < p->length; at = next) {
    const uint32_t c = character(p, at, &next);
    void *grown = work->character;
    if (count + LONGEST_FORM > work->capacity &&
        !rung_host_grow(work->host, &grown, &work->capacity, count + LONGEST_FORM, sizeof *work->character))
      return rung_fail(p->error, RUNG_OUT_OF_MEMORY, "normalizer: a text of %zu bytes", p->length);
    work->character = grown;
    count += (size_t)decompose(c, compatible, work->character + count);
    if (at < p->span) first = count;
  }
  sort_marks(work->character, count);
  if (compose) {
    const utf8proc_ssize_t n = utf8proc_normalize_utf32((utf8proc_int32_t *)work->character, (utf8proc_ssize_t)count,
                                                        UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    if (n < 0) return rung_fail(p->error, RUNG_INTERNAL, "normalizer: utf8proc fails (%d)", (int)n);
    count = (size_t)n;
  }
  for (size_t i = 0; i < count; i++) {
    put(p->out, work->character[i]);
    if (i < first) p->out_span = p->out->length;
  }
  return RUNG_OK;
}
#else
enum { LONGEST_FORM = 1 };
static int decompose(uint32_t c, bool compatible, uint32_t *out) {
  (void)compatible;
  *out = c;
  return 1;
}
static uint8_t order_of(uint32_t c) {
  (void)c;
  return 0;
}
static void sort_marks(uint32_t *character, size_t count) { (void)character, (void)count; }
static rung_status normal_form(pass *p, bool compatible, bool compose) {
  (void)compatible, (void)compose;
  return rung_fail(p->error, RUNG_UNSUPPORTED, "normalizer: a normal form needs utf8proc");
}
#endif

/* Marks that stay although accents are stripped: they must still come in the order of their classes, and wait here
 * until the next character that is no mark. */
typedef struct waiting {
  uint32_t character[64];
  size_t count;
} waiting;

static void put_waiting(waiting *w, rung_text *out, bool lower) {
  sort_marks(w->character, w->count);
  for (size_t i = 0; i < w->count; i++) lower ? put_lower(out, w->character[i]) : put(out, w->character[i]);
  w->count = 0;
}

static void put_stripped(uint32_t c, waiting *w, rung_text *out, bool lower) {
  uint32_t parts[LONGEST_FORM];
  const int n = decompose(c, false, parts);
  for (int i = 0; i < n; i++) {
    if (rung_unicode_is(parts[i], RUNG_UNICODE_NONSPACING)) continue;
    if (order_of(parts[i]) == 0 || w->count == RUNG_COUNT(w->character)) put_waiting(w, out, lower);
    w->character[w->count++] = parts[i];
  }
}

/* BertNormalizer on a character that is not ASCII. */
static void bert_character(uint32_t c, unsigned flags, waiting *w, rung_text *out) {
  const bool lower = flags & RUNG_STEP_LOWER;
  if (flags & RUNG_STEP_CLEAN) {
    if (c == RUNG_UTF8_REPLACEMENT || rung_unicode_is(c, RUNG_UNICODE_OTHER)) return;
    if (rung_unicode_is(c, RUNG_UNICODE_SPACE)) c = ' ';
  }
  const bool apart = (flags & RUNG_STEP_CHINESE) && rung_unicode_is(c, RUNG_UNICODE_IDEOGRAPH);
  if (apart) {
    put_waiting(w, out, lower);
    rung_text_add(out, " ", 1);
  }
  if (flags & RUNG_STEP_ACCENTS)
    put_stripped(c, w, out, lower);
  else if (lower)
    put_lower(out, c);
  else
    put(out, c);
  if (!apart) return;
  put_waiting(w, out, lower);
  rung_text_add(out, " ", 1);
}

/* ASCII from `at` on; returns where it ends. */
static size_t bert_ascii(const char *text, size_t at, size_t length, unsigned flags, rung_text *out) {
  char buffer[256];
  size_t n = 0;
  for (; at < length && (uint8_t)text[at] < 0x80; at++) {
    char c = text[at];
    if (flags & RUNG_STEP_CLEAN) {
      if (c == '\t' || c == '\n' || c == '\r') c = ' ';
      if ((uint8_t)c < 0x20 || c == 0x7F) continue;
    }
    if ((flags & RUNG_STEP_LOWER) && c >= 'A' && c <= 'Z') c = (char)(c + 32);
    if (n == sizeof buffer) {
      rung_text_add(out, buffer, n);
      n = 0;
    }
    buffer[n++] = c;
  }
  rung_text_add(out, buffer, n);
  return at;
}

static rung_status bert(pass *p) {
  const unsigned flags = p->s->step.flags;
  const bool lower = flags & RUNG_STEP_LOWER;
  waiting w = {.count = 0};
  for (size_t at = 0; at < p->length;) {
    const size_t end = at < p->span ? p->span : p->length, start = at;
    if ((uint8_t)p->text[at] < 0x80) {
      put_waiting(&w, p->out, lower);
      at = bert_ascii(p->text, at, end, flags, p->out);
    } else {
      const uint32_t c = character(p, at, &at);
      bert_character(c, flags, &w, p->out);
    }
    if (start < p->span) p->out_span = p->out->length + w.count;
  }
  put_waiting(&w, p->out, lower);
  return RUNG_OK;
}

static rung_status lowercase(pass *p) {
  for (size_t at = 0, next; at < p->length; at = next) {
    if ((uint8_t)p->text[at] < 0x80)
      next = bert_ascii(p->text, at, at < p->span ? p->span : p->length, RUNG_STEP_LOWER, p->out);
    else
      put_lower(p->out, character(p, at, &next));
    if (at < p->span) p->out_span = p->out->length;
  }
  return RUNG_OK;
}

static rung_status strip(pass *p) {
  size_t start = 0, end = p->length;
  for (size_t next; (p->s->step.flags & RUNG_STEP_LEFT) && start < end; start = next)
    if (!rung_unicode_is(character(p, start, &next), RUNG_UNICODE_SPACE)) break;
  while ((p->s->step.flags & RUNG_STEP_RIGHT) && end > start) {
    size_t at = end - 1, next;
    while (at > start && ((uint8_t)p->text[at] & 0xC0) == 0x80) at--;
    if (!rung_unicode_is(character(p, at, &next), RUNG_UNICODE_SPACE)) break;
    end = at;
  }
  p->out_span = p->span > start ? p->span - start : 0;
  rung_text_add(p->out, p->text + start, end - start);
  return RUNG_OK;
}

static rung_status strip_accents(pass *p) {
  for (size_t at = 0, next; at < p->length; at = next) {
    const uint32_t c = character(p, at, &next);
    const bool gone = c >= 0x80 && rung_unicode_is(c, RUNG_UNICODE_MARK);
    if (!gone) rung_text_add(p->out, p->text + at, next - at);
    if (at < p->span) p->out_span = p->out->length;
  }
  return RUNG_OK;
}

static rung_status replace(pass *p) {
  const rung_text_step *step = &p->s->step;
  rung_regex_match *match = NULL;
  if (p->s->regex) RUNG_TRY(rung_regex_match_create(p->s->regex, p->error, &match));
  rung_status status = RUNG_OK;
  for (size_t done = 0; done < p->length && !status;) {
    size_t start = done, end;
    if (match) {
      status = rung_regex_next(p->s->regex, match, p->text, p->length, done, p->error, &start, &end);
    } else {
      const size_t n = step->pattern.length;
      while (start + n <= p->length && memcmp(p->text + start, step->pattern.text, n) != 0) start++;
      if (start + n > p->length) start = p->length;
      end = start < p->length ? start + n : start;
    }
    if (status) break;
    rung_text_add(p->out, p->text + done, start - done);
    if (end > start) rung_text_add(p->out, step->content.text, step->content.length);
    if (end > start && start == 0) p->out_span = step->content.length;
    done = end;
  }
  rung_regex_match_destroy(match);
  return status;
}

/* The bytes of the first grapheme cluster, what a reader takes for one character. */
static size_t grapheme(const pass *p, size_t from) {
#if RUNG_HAVE_UTF8PROC
  utf8proc_int32_t state = 0;
  size_t at, next;
  uint32_t before = character(p, from, &at);
  for (; at < p->length; at = next) {
    const uint32_t c = character(p, at, &next);
    if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)c, &state)) break;
    before = c;
  }
  return at - from;
#else
  return p->length - from;
#endif
}

/* tokenizers asks the table for each cluster of fewer bytes than this as a whole, then for its characters, and takes
 * the shortest text that the table has; SentencePiece takes the longest one at each place. */
enum { SHORT_GRAPHEME = 6 };

static rung_status charsmap(pass *p) {
  const bool clusters = p->s->step.flags & RUNG_STEP_GRAPHEMES;
  size_t cluster = 0; /* where the one under way ends */
  for (size_t at = 0, next; at < p->length; at = next) {
    rung_slice out = {p->text + at, 0};
    (void)character(p, at, &next);
    const size_t single = next - at, whole = clusters && at >= cluster ? grapheme(p, at) : 0;
    if (whole) cluster = at + whole;
    const bool as_whole = whole && whole < SHORT_GRAPHEME;
    const size_t look = !clusters ? p->length - at : as_whole ? whole : single;
    size_t taken = rung_charsmap_find(&p->s->map, p->text + at, look, !clusters, &out);
    if (taken && as_whole)
      next = at + whole;
    else if (taken && !clusters)
      next = at + taken;
    else if (!taken && as_whole && whole > single)
      taken = rung_charsmap_find(&p->s->map, p->text + at, single, false, &out);
    if (!taken) out.length = next - at;
    rung_text_add(p->out, out.text, out.length);
    if (at < p->span) p->out_span = p->out->length;
  }
  return RUNG_OK;
}

static rung_status apply(pass *p) {
  const rung_text_step *step = &p->s->step;
  const bool plain = is_ascii(p->text, p->length);
  switch ((int)step->kind) {
    case RUNG_NORMALISE_BERT:
      return bert(p);
    case RUNG_NORMALISE_NFC:
    case RUNG_NORMALISE_NFD:
    case RUNG_NORMALISE_NFKC:
    case RUNG_NORMALISE_NFKD:
      if (!plain)
        return normal_form(p, step->kind == RUNG_NORMALISE_NFKC || step->kind == RUNG_NORMALISE_NFKD,
                           step->kind == RUNG_NORMALISE_NFC || step->kind == RUNG_NORMALISE_NFKC);
      break;
    case RUNG_NORMALISE_LOWERCASE:
      return lowercase(p);
    case RUNG_NORMALISE_STRIP:
      return strip(p);
    case RUNG_NORMALISE_STRIP_ACCENTS:
      if (!plain) return strip_accents(p);
      break;
    case RUNG_NORMALISE_REPLACE:
      return replace(p);
    case RUNG_NORMALISE_CHARSMAP:
      return charsmap(p);
    case RUNG_NORMALISE_PREPEND:
      if (p->length) rung_text_add(p->out, step->content.text, step->content.length);
      p->out_span += p->out->length;
      break;
    default:
      return rung_fail(p->error, RUNG_INTERNAL, "a step that normalises nothing");
  }
  rung_text_add(p->out, p->text, p->length);
  return RUNG_OK;
}

rung_status rung_normaliser_run(const rung_normaliser *n, const char *text, size_t length, rung_normal_work *work,
                                rung_error *error, rung_slice *out, bool *out_first) {
  rung_slice now = {text, length};
  size_t span = 0;
  if (length) {
    const size_t announced = rung_utf8_announced((uint8_t)text[0]);
    span = announced < length ? announced : length;
  }
  for (size_t i = 0; i < n->count; i++) {
    rung_text *to = &work->text[i & 1];
    to->length = 0;
    pass p = {&n->stages[i], now.text, now.length, work, to, error, span, span};
    RUNG_TRY(apply(&p));
    RUNG_TRY(rung_text_status(to, error));
    now = (rung_slice){to->length ? to->data : "", to->length};
    span = p.out_span < now.length ? p.out_span : now.length;
  }
  *out = now;
  *out_first = span > 0;
  return RUNG_OK;
}
