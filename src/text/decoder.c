/* SPDX-License-Identifier: MIT
 * Ids to text: pieces are appended as raw bytes, then the end of the text is made whole characters. */
#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"
#include "text/utf8.h"

static const char replacement[3] = {'\xEF', '\xBF', '\xBD'};

void rung_decoder_init(rung_decoder *decoder, const rung_tokenizer *tokenizer, unsigned flags) {
  *decoder = (rung_decoder){.tokenizer = tokenizer, .flags = flags};
  const bool strips =
      tokenizer->use_steps ? rung_detokeniser_strips(tokenizer->detokeniser) : tokenizer->add_space_prefix;
  decoder->strip_space = strips && !(flags & RUNG_DECODE_CONTINUE);
  decoder->begun = flags & RUNG_DECODE_CONTINUE;
}

static void strip_space(rung_decoder *decoder, size_t before, rung_text *text) {
  if (text->length == before) return;
  if (decoder->strip_space && text->data[before] == ' ') {
    memmove(text->data + before, text->data + before + 1, text->length - before); /* the terminator too */
    text->length--;
  }
  decoder->strip_space = false;
}

/* With steps all tokens go the same way; special ones are left out unless asked for. */
static void add_by_steps(rung_decoder *decoder, uint32_t id, rung_text *text) {
  const rung_tokenizer *t = decoder->tokenizer;
  const rung_token_type type = rung_vocab_type(&t->vocab, id);
  const bool special = type == RUNG_TOKEN_CONTROL || type == RUNG_TOKEN_UNKNOWN || type == RUNG_TOKEN_UNDEFINED;
  if (special && !(decoder->flags & RUNG_DECODE_SPECIAL)) return;
  const size_t before = text->length;
  const rung_special_entry *entry = NULL;
  if (special || type == RUNG_TOKEN_USER_DEFINED) entry = rung_pipeline_normal(&t->pipeline, (int32_t)id);
  const rung_slice stored = entry ? (rung_slice){entry->text, entry->length}
                                  : (rung_slice){rung_vocab_text(&t->vocab, id), t->vocab.spans[id].length};
  rung_detokenise(t->detokeniser, stored.text, stored.length, !decoder->begun, text);
  decoder->begun = true;
  strip_space(decoder, before, text);
}

/* Appends the bytes of a token as they are. */
static void add_piece(rung_decoder *decoder, uint32_t id, rung_text *text) {
  const rung_tokenizer *t = decoder->tokenizer;
  const char *stored = rung_vocab_text(&t->vocab, id);
  const size_t length = t->vocab.spans[id].length, before = text->length;
  bool plain = false;
  if (t->use_steps) {
    add_by_steps(decoder, id, text);
    return;
  }
  switch (rung_vocab_type(&t->vocab, id)) {
    case RUNG_TOKEN_NORMAL:
      t->model->piece(stored, length, text);
      plain = true;
      break;
    case RUNG_TOKEN_BYTE: {
      const char byte = (char)rung_vocab_byte_value(stored, length);
      rung_text_add(text, &byte, 1);
      plain = true;
      break;
    }
    case RUNG_TOKEN_CONTROL:
    case RUNG_TOKEN_UNKNOWN:
      if (decoder->flags & RUNG_DECODE_SPECIAL) rung_text_add(text, stored, length);
      break;
    case RUNG_TOKEN_USER_DEFINED:
      rung_text_add(text, stored, length);
      break;
    case RUNG_TOKEN_UNDEFINED:
    case RUNG_TOKEN_UNUSED:
      return;
  }
  if (!plain) {
    decoder->strip_space = t->add_space_prefix; /* encoding puts one after each special token */
  } else {
    strip_space(decoder, before, text);
  }
}

/* What is not yet right in a stretch of text. */
typedef struct survey {
  size_t bad;  /* places to replace */
  size_t more; /* bytes that this adds */
  size_t tail; /* bytes at the end that begin a character */
} survey;

static survey look_through(const rung_text *text, size_t from) {
  survey s = {0, 0, 0};
  while (from < text->length) {
    const uint8_t *at = (const uint8_t *)text->data + from;
    const size_t left = text->length - from, good = rung_utf8_valid_prefix(at, left);
    from += good;
    if (good == left) break;
    uint32_t character;
    const int n = rung_utf8_read(at + good, left - good, &character);
    if (n == 0) {
      s.tail = left - good;
      break;
    }
    s.bad++;
    s.more += sizeof replacement - (size_t)-n; /* at most 3 bytes are bad at once */
    from += (size_t)-n;
  }
  return s;
}

/* Replaces what is no character in text[from ..), which grows by `more` bytes: moved to its end, then rewritten
 * forwards. */
static void replace(rung_text *text, size_t from, size_t more) {
  static const char room[64] = {0};
  const size_t raw = text->length - from;
  for (size_t left = more; left > 0;) {
    const size_t step = left < sizeof room ? left : sizeof room;
    rung_text_add(text, room, step);
    left -= step;
  }
  if (text->failed) return;
  memmove(text->data + from + more, text->data + from, raw);
  size_t to = from;
  for (size_t at = from + more; at < text->length;) {
    uint32_t character;
    const int n = rung_utf8_read((const uint8_t *)text->data + at, text->length - at, &character);
    /* Where bytes were taken off the end, the bad ones before them look unfinished now. */
    const size_t step = n ? (size_t)(n < 0 ? -n : n) : text->length - at;
    if (n > 0) {
      memmove(text->data + to, text->data + at, step);
      to += step;
    } else {
      memcpy(text->data + to, replacement, sizeof replacement);
      to += sizeof replacement;
    }
    at += step;
  }
}

/* Makes text[from ..) whole characters; an unfinished one at the end is taken off and held. */
static void settle(rung_decoder *decoder, rung_text *text, size_t from) {
  if (text->failed) return;
  const survey s = look_through(text, from);
  if (s.tail) {
    memcpy(decoder->held, text->data + text->length - s.tail, s.tail);
    text->length -= s.tail;
    text->data[text->length] = 0;
  }
  decoder->held_count = (uint8_t)s.tail;
  if (s.bad) replace(text, from, s.more);
}

rung_status rung_decoder_push(rung_decoder *decoder, int32_t id, rung_error *error, rung_text *text) {
  const rung_tokenizer *t = decoder->tokenizer;
  if (id < 0 || (uint32_t)id >= t->vocab.count)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "token id %d is outside the vocabulary of %u", (int)id, t->vocab.count);
  if (decoder->flags & RUNG_DECODE_BYTES) {
    add_piece(decoder, (uint32_t)id, text);
  } else {
    const size_t before = text->length;
    add_piece(decoder, (uint32_t)id, text);
    if (!text->failed && text->length > before) {
      if (decoder->held_count) {
        /* Held bytes go in front of the new ones: appended, then turned round. */
        const size_t held = decoder->held_count, added = text->length - before;
        rung_text_add(text, (const char *)decoder->held, held);
        if (!text->failed) {
          memmove(text->data + before + held, text->data + before, added);
          memcpy(text->data + before, decoder->held, held);
        }
      }
      settle(decoder, text, before);
    }
  }
  return rung_text_status(text, error);
}

rung_status rung_decoder_flush(rung_decoder *decoder, rung_error *error, rung_text *text) {
  if (decoder->held_count) rung_text_add(text, replacement, sizeof replacement);
  decoder->held_count = 0;
  decoder->strip_space = false;
  decoder->begun = true;
  return rung_text_status(text, error);
}

rung_status rung_tokenizer_decode(const rung_tokenizer *tokenizer, const int32_t *ids, size_t count, unsigned flags,
                                  rung_error *error, rung_text *text) {
  rung_decoder decoder;
  rung_decoder_init(&decoder, tokenizer, flags);
  for (size_t i = 0; i < count; i++) RUNG_TRY(rung_decoder_push(&decoder, ids[i], error, text));
  return rung_decoder_flush(&decoder, error, text);
}
