/* SPDX-License-Identifier: MIT
 * Decoders work at the end of the growing text: a token's text is appended and each step rewrites it there. */
#include "text/detokenise.h"

#include <string.h>

#include "text/bytes.h"
#include "text/utf8.h"
#include "text/vocab.h"

struct rung_detokeniser {
  rung_host *host;
  rung_text_step steps[RUNG_MOST_STEPS];
  size_t count;
  bool strips;
  char *copy;
  size_t copy_bytes;
};

static rung_slice keep(rung_detokeniser *d, size_t *used, rung_slice s) {
  char *at = d->copy + *used;
  if (s.length) memcpy(at, s.text, s.length);
  *used += s.length;
  return (rung_slice){at, s.length};
}

static rung_status fill(rung_detokeniser *d, const rung_text_step *steps, size_t count, rung_error *error) {
  if (count > RUNG_MOST_STEPS)
    return rung_fail(error, RUNG_UNSUPPORTED, "decoder: %zu steps, at most %d are supported", count,
                     (int)RUNG_MOST_STEPS);
  for (size_t i = 0; i < count; i++) d->copy_bytes += steps[i].pattern.length + steps[i].content.length;
  d->copy = rung_host_alloc_raw(d->host, RUNG_MEMORY_host, d->copy_bytes, 0);
  if (!d->copy) return rung_fail(error, RUNG_OUT_OF_MEMORY, "decoder");
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    rung_text_step *s = &d->steps[d->count++];
    *s = steps[i];
    s->pattern = keep(d, &used, steps[i].pattern);
    s->content = keep(d, &used, steps[i].content);
    const bool replaces = s->kind == RUNG_DECODE_STEP_REPLACE, blanks = s->kind == RUNG_DECODE_STEP_METASPACE;
    if ((replaces && !s->pattern.length) || (blanks && !s->content.length))
      return rung_fail(error, RUNG_CORRUPT_FILE, "decoder: an empty pattern");
    if (s->kind == RUNG_DECODE_STEP_STRIP && (s->flags & RUNG_STEP_WHOLE)) d->strips = true;
  }
  return RUNG_OK;
}

rung_status rung_detokeniser_create(rung_host *host, const rung_text_step *steps, size_t count, rung_error *error,
                                    rung_detokeniser **out_detokeniser) {
  rung_detokeniser *d = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *d, 0);
  if (!d) return rung_fail(error, RUNG_OUT_OF_MEMORY, "decoder");
  d->host = host;
  const rung_status status = fill(d, steps, count, error);
  if (status) {
    rung_detokeniser_destroy(d);
    return status;
  }
  *out_detokeniser = d;
  return RUNG_OK;
}

void rung_detokeniser_destroy(rung_detokeniser *d) {
  if (!d) return;
  if (d->copy) rung_host_free(d->host, RUNG_MEMORY_host, d->copy, d->copy_bytes);
  rung_host_free(d->host, RUNG_MEMORY_host, d, sizeof *d);
}

bool rung_detokeniser_strips(const rung_detokeniser *d) { return d->strips; }

/* text[from ..) loses its first `drop` bytes. */
static void drop_front(rung_text *text, size_t from, size_t drop) {
  if (!drop) return;
  memmove(text->data + from, text->data + from + drop, text->length - from - drop + 1); /* the terminator too */
  text->length -= drop;
}

/* Each `pattern` in text[from ..) becomes `content`: the new text is written behind the old one. */
static void replace(rung_text *text, size_t from, rung_slice pattern, rung_slice content) {
  const size_t end = text->length;
  size_t done = from;
  bool any = false;
  for (size_t at = from; at + pattern.length <= end && !text->failed;) {
    if (memcmp(text->data + at, pattern.text, pattern.length) != 0) {
      at++;
      continue;
    }
    any = true;
    for (size_t i = done; i < at; i++) { /* the buffer may move, so no pointer into it is handed over */
      const char c = text->data[i];
      rung_text_add(text, &c, 1);
    }
    rung_text_add(text, content.text, content.length);
    done = at += pattern.length;
  }
  if (!any || text->failed) return;
  for (size_t i = done; i < end; i++) {
    const char c = text->data[i];
    rung_text_add(text, &c, 1);
  }
  if (!text->failed) drop_front(text, from, end - from);
}

static void byte_level(rung_text *text, size_t from) {
  size_t to = from;
  for (int pass = 0; pass < 2; pass++) /* a token with any other character means itself */
    for (size_t at = from; at < text->length;) {
      uint32_t c = 0;
      const int n = rung_utf8_read((const uint8_t *)text->data + at, text->length - at, &c);
      const int byte = n > 0 ? rung_byte_of_character(c) : -1;
      if (byte < 0) return;
      if (pass) text->data[to++] = (char)byte;
      at += (size_t)n;
    }
  text->length = to;
  text->data[to] = 0;
}

static void clean_up(rung_text *text, size_t from) {
  static const char *const pairs[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                         {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                         {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    replace(text, from, (rung_slice){pairs[i][0], strlen(pairs[i][0])}, (rung_slice){pairs[i][1], strlen(pairs[i][1])});
}

static bool begins_with(const rung_text *text, size_t from, rung_slice what) {
  return text->length - from >= what.length && memcmp(text->data + from, what.text, what.length) == 0;
}

static void blank_before(rung_text *text, size_t from) {
  rung_text_add(text, " ", 1);
  if (text->failed) return;
  memmove(text->data + from + 1, text->data + from, text->length - from - 1);
  text->data[from] = ' ';
}

static void word_piece(const rung_text_step *step, rung_text *text, size_t from, bool first) {
  const bool marked = begins_with(text, from, step->pattern);
  bool apart = !marked;
  if (step->flags & RUNG_STEP_BEGINS) /* and what is in brackets has no mark */
    apart = marked || (text->data[from] == '[' && text->data[text->length - 1] == ']');
  if (marked && (!first || (step->flags & RUNG_STEP_BEGINS))) drop_front(text, from, step->pattern.length);
  if (apart && !first) blank_before(text, from);
  if (text->failed) return;
  if (step->flags & RUNG_STEP_CLEAN_UP) clean_up(text, from);
}

void rung_detokenise(const rung_detokeniser *d, const char *stored, size_t length, bool first, rung_text *text) {
  const size_t from = text->length;
  if (!d->count && !first) rung_text_add(text, " ", 1);
  rung_text_add(text, stored, length);
  for (size_t i = 0; i < d->count && !text->failed && text->length > from; i++) {
    const rung_text_step *step = &d->steps[i];
    switch ((int)step->kind) {
      case RUNG_DECODE_STEP_REPLACE:
        replace(text, from, step->pattern, step->content);
        break;
      case RUNG_DECODE_STEP_BYTE_LEVEL:
        byte_level(text, from);
        break;
      case RUNG_DECODE_STEP_BYTE_FALLBACK: {
        const int byte = rung_vocab_byte_value(text->data + from, text->length - from);
        if (byte < 0) break;
        text->data[from] = (char)byte;
        text->length = from + 1;
        break;
      }
      case RUNG_DECODE_STEP_WORDPIECE:
        word_piece(step, text, from, first);
        break;
      case RUNG_DECODE_STEP_METASPACE:
        replace(text, from, step->content,
                (step->flags & RUNG_STEP_PREFIX) && first ? (rung_slice){"", 0} : (rung_slice){" ", 1});
        break;
      case RUNG_DECODE_STEP_STRIP:
        for (size_t n = 0; n < step->count && !(step->flags & RUNG_STEP_WHOLE); n++)
          if (begins_with(text, from, step->content)) drop_front(text, from, step->content.length);
        break;
      default:
        break;
    }
  }
}
