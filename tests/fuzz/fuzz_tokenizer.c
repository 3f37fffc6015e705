/* SPDX-License-Identifier: MIT
 * Vocabularies and texts made of the input: whatever they are, a status or ids that decode again.
 *
 * Input: four bytes of settings, tokens, merges, then the text.
 *   0: model, add_bos, add_eos, add_space_prefix, parse special, add special, byte tokens first, lie about counts
 *   1: pre-tokeniser (2 bits), which id is replaced (3 bits), by what (3 bits)
 *   2: number of tokens    3: number of merges
 *   token: one byte length (4 bits) and type (4 bits), one byte score, text
 *   merge: one byte; even: the two tokens that follow by number, odd: text of half that length, at most 15 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"
#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TOKENS = 256 + 256, MERGES = 256 };

static void expect(bool condition) {
  if (!condition) abort();
}

typedef struct input {
  const uint8_t *at, *end;
  char store[32 * MERGES + 8 * 256];
  size_t used;
  const char *texts[TOKENS], *merges[MERGES];
  uint32_t lengths[TOKENS], merge_lengths[MERGES];
  float scores[TOKENS];
  int32_t types[TOKENS];
  size_t count, merge_count;
  bool plain; /* only normal and byte tokens */
} input;

static uint8_t next(input *in) { return in->at < in->end ? *in->at++ : 0; }
static const char *next_text(input *in, size_t *length) {
  const size_t left = (size_t)(in->end - in->at);
  if (*length > left) *length = left;
  const char *text = (const char *)in->at;
  in->at += *length;
  return text;
}
static void add_token(input *in, const char *text, size_t length, int32_t type, float score) {
  in->texts[in->count] = text;
  in->lengths[in->count] = (uint32_t)length;
  in->types[in->count] = type;
  in->scores[in->count++] = score;
}

static void read_tokens(input *in, size_t count, bool bytes) {
  in->plain = true;
  for (int b = 0; bytes && b < 256; b++) {
    static const char digits[] = "0123456789ABCDEF";
    char *text = in->store + in->used;
    const char spelled[6] = {'<', '0', 'x', digits[b >> 4], digits[b & 15], '>'};
    memcpy(text, spelled, sizeof spelled);
    in->used += sizeof spelled;
    add_token(in, text, sizeof spelled, RUNG_TOKEN_BYTE, 0);
  }
  for (size_t i = 0; i < count && in->at < in->end; i++) {
    const uint8_t shape = next(in), score = next(in);
    size_t length = shape & 15;
    const char *text = next_text(in, &length);
    const int32_t type = shape >> 4 == 15 ? -1 : shape >> 4 > 9 ? RUNG_TOKEN_NORMAL : shape >> 4;
    in->plain &= type == RUNG_TOKEN_NORMAL || type == RUNG_TOKEN_BYTE;
    add_token(in, text, length, type, score == 255 ? NAN : (float)score - 100);
  }
}

static void read_merges(input *in, size_t count) {
  for (size_t i = 0; i < count && in->at < in->end; i++) {
    const uint8_t kind = next(in);
    size_t length = kind / 2 & 15;
    const char *text = NULL;
    if (kind & 1 || in->count == 0) {
      text = next_text(in, &length);
    } else {
      const size_t a = next(in) % in->count, b = next(in) % in->count;
      char *joined = in->store + in->used;
      memcpy(joined, in->texts[a], in->lengths[a]);
      joined[in->lengths[a]] = ' ';
      memcpy(joined + in->lengths[a] + 1, in->texts[b], in->lengths[b]);
      length = in->lengths[a] + 1 + in->lengths[b];
      in->used += length;
      text = joined;
    }
    in->merges[in->merge_count] = text;
    in->merge_lengths[in->merge_count++] = (uint32_t)length;
  }
}

static bool contains(const char *text, size_t length, const char *what) {
  const size_t n = strlen(what);
  for (size_t i = 0; i + n <= length; i++)
    if (memcmp(text + i, what, n) == 0) return true;
  return false;
}

static void use(const rung_tokenizer *t, rung_host *host, const input *in, unsigned flags, bool lossless) {
  const char *text = (const char *)in->at;
  const size_t length = (size_t)(in->end - in->at);
  rung_error error;
  rung_ids ids;
  rung_text whole, raw, stream;
  rung_ids_init(&ids, host);
  rung_text_init(&whole, host);
  rung_text_init(&raw, host);
  rung_text_init(&stream, host);
  const rung_status encoded = rung_tokenizer_encode(t, text, length, flags, &error, &ids);
  expect(encoded == RUNG_OK || (!RUNG_HAVE_PCRE2 && encoded == RUNG_UNSUPPORTED && ids.count == 0));
  for (size_t i = 0; i < ids.count; i++) expect(ids.data[i] >= 0 && ids.data[i] < rung_tokenizer_count(t));
  expect(rung_tokenizer_decode(t, ids.data, ids.count, RUNG_DECODE_SPECIAL, &error, &whole) == RUNG_OK);
  expect(rung_tokenizer_decode(t, ids.data, ids.count, RUNG_DECODE_SPECIAL | RUNG_DECODE_BYTES, &error, &raw) ==
         RUNG_OK);
  expect(rung_utf8_valid_prefix((const uint8_t *)whole.data, whole.length) == whole.length);
  if (lossless && !encoded) expect(raw.length == length && (!length || memcmp(raw.data, text, length) == 0));
  rung_decoder decoder;
  rung_decoder_init(&decoder, t, RUNG_DECODE_SPECIAL);
  for (size_t i = 0; i < ids.count; i++) {
    expect(rung_decoder_push(&decoder, ids.data[i], &error, &stream) == RUNG_OK);
    expect(rung_utf8_valid_prefix((const uint8_t *)stream.data, stream.length) == stream.length);
  }
  expect(rung_decoder_flush(&decoder, &error, &stream) == RUNG_OK);
  expect(stream.length == whole.length && (!whole.length || memcmp(stream.data, whole.data, whole.length) == 0));
  for (int32_t id = 0; id < rung_tokenizer_count(t); id++) {
    size_t n = 0;
    const char *stored = rung_tokenizer_text(t, id, &n);
    expect(stored && rung_tokenizer_find(t, stored, n) == (n ? id : RUNG_TOKEN_NONE));
  }
  rung_text_finish(&whole);
  rung_text_finish(&raw);
  rung_text_finish(&stream);
  rung_ids_finish(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static input in;
  memset(&in, 0, sizeof in);
  in.at = data;
  in.end = data + size;
  const uint8_t settings = next(&in), choice = next(&in), tokens = next(&in), merges = next(&in);
  read_tokens(&in, tokens, settings & 64);
  read_merges(&in, merges);
  static const char *const pres[] = {"smollm", "gpt-2", "default", "none"};
  static const int64_t odd[] = {-1, -2, 0, 1, 255, 256, INT64_MAX, INT64_MIN};
  rung_tokenizer_desc d = rung_tokenizer_desc_default();
  d.model = settings & 1 ? "llama" : "gpt2";
  d.pre = pres[choice & 3];
  d.count = d.text_count = d.type_count = d.score_count = in.count;
  d.texts = in.texts;
  d.lengths = in.lengths;
  d.types = in.types;
  d.scores = in.scores;
  d.merges = in.merges;
  d.merge_lengths = in.merge_lengths;
  d.merge_count = in.merge_count;
  d.add_bos = settings & 2 ? RUNG_CHOICE_YES : RUNG_CHOICE_NO;
  d.add_eos = settings & 4 ? RUNG_CHOICE_YES : RUNG_CHOICE_NO;
  d.add_space_prefix = settings & 8 ? RUNG_CHOICE_YES : RUNG_CHOICE_NO;
  (&d.ids.bos)[choice >> 2 & 7] = odd[choice >> 5];
  if (settings & 128)
    *(choice & 4 ? &d.type_count : choice & 8 ? &d.score_count : &d.text_count) += choice & 16 ? 1 : 7;
  const unsigned flags =
      (settings & 16 ? RUNG_ENCODE_PARSE_SPECIAL : 0u) | (settings & 32 ? RUNG_ENCODE_ADD_SPECIAL : 0u);
  const char *text = (const char *)in.at;
  const size_t length = (size_t)(in.end - in.at);
  const bool lossless = (settings & 1) && (settings & 64) && in.plain && !(settings & (2 | 4 | 8)) && length &&
                        !contains(text, length, "<0") && !contains(text, length, " ") &&
                        !contains(text, length, "\xE2\x96\x81");

  rung_host *host = NULL;
  if (rung_host_create(NULL, NULL, &host)) return 0;
  rung_error error = {0};
  rung_tokenizer *t = NULL;
  const rung_status status = rung_tokenizer_create(host, &d, &error, &t);
  expect(status ? error.message[0] != 0 && !t : t != NULL);
  if (t) use(t, host, &in, flags, lossless);
  rung_tokenizer_release(t);
  rung_host_release(host);
  return 0;
}
