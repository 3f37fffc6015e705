/* SPDX-License-Identifier: MIT
 * The steps of a tokenizer.json: one row a type; the row says which list it goes to and how it is read. */
#include <stdio.h>
#include <string.h>

#include "formats/tokenizer_json_internal.h"

typedef rung_status read_fn(rung_tokenizer_reader *r, rung_json object, const char *where, rung_text_step *step);

typedef struct row {
  const char *type;
  rung_text_step_kind kind;
  read_fn *read; /* NULL: the type says it all */
} row;

/* A list of steps that is being read. */
typedef struct list {
  const char *where, *members; /* its name, and that of what a Sequence holds */
  const row *rows;
  size_t row_count;
  rung_text_step *steps;
  size_t *count;
} list;

static rung_status flag(rung_tokenizer_reader *r, rung_json object, const char *where, const char *key, bool usual,
                        unsigned bit, rung_text_step *step) {
  bool on;
  RUNG_TRY(rung_tokenizer_flag(r, object, where, key, usual, &on));
  if (on) step->flags |= bit;
  return RUNG_OK;
}

static rung_status text(rung_tokenizer_reader *r, rung_json object, const char *where, const char *key, bool required,
                        rung_slice *out) {
  rung_json value;
  RUNG_TRY(rung_tokenizer_member(r, object, where, key, RUNG_JSON_STRING, required, &value));
  if (value.text) *out = rung_tokenizer_keep(r, value);
  return RUNG_OK;
}

/* {"String": ...} or {"Regex": ...} */
static rung_status pattern(rung_tokenizer_reader *r, rung_json object, const char *where, rung_text_step *step) {
  rung_json value, string, regex;
  RUNG_TRY(rung_tokenizer_member(r, object, where, "pattern", RUNG_JSON_OBJECT, true, &value));
  RUNG_TRY(rung_tokenizer_member(r, value, where, "String", RUNG_JSON_STRING, false, &string));
  RUNG_TRY(rung_tokenizer_member(r, value, where, "Regex", RUNG_JSON_STRING, !string.text, &regex));
  if (regex.text) step->flags |= RUNG_STEP_REGEX;
  step->pattern = rung_tokenizer_keep(r, regex.text ? regex : string);
  return step->pattern.length ? RUNG_OK : rung_tokenizer_wrong(r, where, "the pattern is empty");
}

static rung_status behaviour(rung_tokenizer_reader *r, rung_json object, const char *where, rung_text_step *step) {
  static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  rung_json value;
  RUNG_TRY(rung_tokenizer_member(r, object, where, "behavior", RUNG_JSON_STRING, true, &value));
  for (size_t i = 0; i < RUNG_COUNT(names); i++)
    if (rung_json_equals(value, names[i])) {
      step->behaviour = (rung_behaviour)i;
      return RUNG_OK;
    }
  return rung_tokenizer_wrong(r, where, "the behavior is not known");
}

/* ---- normalisers ---- */

static rung_status read_bert(rung_tokenizer_reader *r, rung_json object, const char *where, rung_text_step *step) {
  bool lower;
  RUNG_TRY(flag(r, object, where, "clean_text", true, RUNG_STEP_CLEAN, step));
  RUNG_TRY(flag(r, object, where, "handle_chinese_chars", true, RUNG_STEP_CHINESE, step));
  RUNG_TRY(rung_tokenizer_flag(r, object, where, "lowercase", true, &lower));
  if (lower) step->flags |= RUNG_STEP_LOWER;
  return flag(r, object, where, "strip_accents", lower, RUNG_STEP_ACCENTS, step);
}

static rung_status read_strip(rung_tokenizer_reader *r, rung_json object, const char *where, rung_text_step *step) {
  RUNG_TRY(flag(r, object, where, "strip_left", true, RUNG_STEP_LEFT, step));
  return flag(r, object, where, "strip_right", true, RUNG_STEP_RIGHT, step);
}

static rung_status read_replace(rung_tokenizer_reader *r, rung_json object, const char *where, rung_text_step *step) {
  RUNG_TRY(pattern(r, object, where, step));
  return text(r, object, where, "content", true, &step->content);
}

static rung_status read_prepend(rung_tokenizer_reader *r, rung_json object, const char *where, rung_text_step *step) {
  return text(r, object, where, "prepend", true, &step->content);
}

static int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Base64 (RFC 4648) with its padding, in place. */
static bool base64(char *text, size_t length, size_t *out_length) {
  if (length % 4) return false;
  size_t n = length;
  while (n && length - n < 2 && text[n - 1] == '=') n--;
  size_t to = 0;
  uint32_t held = 0;
  for (size_t i = 0; i < n; i++) {
    const int digit = base64_digit(text[i]);
    if (digit < 0) return false;
    held = held << 6 | (uint32_t)digit;
    if (i % 4) text[to++] = (char)(held >> (6 - 2 * (i % 4)) & 0xFF);
  }
  *out_length = to;
  return true;
}

static rung_status read_precompiled(rung_tokenizer_reader *r, rung_json object, const char *where,
                                    rung_text_step *step) {
  RUNG_TRY(text(r, object, where, "precompiled_charsmap", true, &step->pattern));
  char *data = r->store + (step->pattern.text - r->store);
  step->flags |= RUNG_STEP_GRAPHEMES;
  return base64(data, step->pattern.length, &step->pattern.length)
             ? RUNG_OK
             : rung_tokenizer_wrong(r, where, "the precompiled_charsmap is no base64");
}

static const row normalisers[] = {
    {"BertNormalizer", RUNG_NORMALISE_BERT, read_bert},
    {"NFC", RUNG_NORMALISE_NFC, NULL},
    {"NFD", RUNG_NORMALISE_NFD, NULL},
    {"NFKC", RUNG_NORMALISE_NFKC, NULL},
    {"NFKD", RUNG_NORMALISE_NFKD, NULL},
    {"Lowercase", RUNG_NORMALISE_LOWERCASE, NULL},
    {"Strip", RUNG_NORMALISE_STRIP, read_strip},
    {"StripAccents", RUNG_NORMALISE_STRIP_ACCENTS, NULL},
    {"Replace", RUNG_NORMALISE_REPLACE, read_replace},
    {"Prepend", RUNG_NORMALISE_PREPEND, read_prepend},
    {"Precompiled", RUNG_NORMALISE_CHARSMAP, read_precompiled},
};

/* ---- pre-tokenisers ---- */

static rung_status read_split(rung_tokenizer_reader *r, rung_json object, const char *where, rung_text_step *step) {
  RUNG_TRY(pattern(r, object, where, step));
  RUNG_TRY(behaviour(r, object, where, step));
  return flag(r, object, where, "invert", false, RUNG_STEP_INVERT, step);
}

static rung_status read_byte_level(rung_tokenizer_reader *r, rung_json object, const char *where,
                                   rung_text_step *step) {
  RUNG_TRY(flag(r, object, where, "add_prefix_space", true, RUNG_STEP_PREFIX, step));
  return flag(r, object, where, "use_regex", true, RUNG_STEP_REGEX, step);
}

/* Of a pre-tokeniser and of a decoder. Older files have add_prefix_space where newer ones have prepend_scheme. */
static rung_status read_metaspace(rung_tokenizer_reader *r, rung_json object, const char *where, rung_text_step *step) {
  rung_json scheme;
  bool prefix;
  RUNG_TRY(text(r, object, where, "replacement", true, &step->content));
  if (!step->content.length) return rung_tokenizer_wrong(r, where, "the replacement is empty");
  RUNG_TRY(rung_tokenizer_flag(r, object, where, "add_prefix_space", true, &prefix));
  RUNG_TRY(rung_tokenizer_member(r, object, where, "prepend_scheme", RUNG_JSON_STRING, false, &scheme));
  bool first = false;
  if (scheme.text) {
    first = rung_json_equals(scheme, "first");
    prefix = first || rung_json_equals(scheme, "always");
    if (!prefix && !rung_json_equals(scheme, "never"))
      return rung_tokenizer_wrong(r, where, "the prepend_scheme is not known");
  }
  const bool decodes = step->kind == RUNG_DECODE_STEP_METASPACE;
  if (prefix) step->flags |= first && !decodes ? RUNG_STEP_PREFIX_FIRST : RUNG_STEP_PREFIX;
  return decodes ? RUNG_OK : flag(r, object, where, "split", true, RUNG_STEP_SPLIT, step);
}

static rung_status read_digits(rung_tokenizer_reader *r, rung_json object, const char *where, rung_text_step *step) {
  return flag(r, object, where, "individual_digits", false, RUNG_STEP_EACH, step);
}

static rung_status read_punctuation(rung_tokenizer_reader *r, rung_json object, const char *where,
                                    rung_text_step *step) {
  rung_json value;
  RUNG_TRY(rung_tokenizer_member(r, object, where, "behavior", RUNG_JSON_STRING, false, &value));
  return value.text ? behaviour(r, object, where, step) : RUNG_OK;
}

static const row cuts[] = {
    {"BertPreTokenizer", RUNG_CUT_BERT, NULL},
    {"Split", RUNG_CUT_SPLIT, read_split},
    {"ByteLevel", RUNG_CUT_BYTE_LEVEL, read_byte_level},
    {"Metaspace", RUNG_CUT_METASPACE, read_metaspace},
    {"Whitespace", RUNG_CUT_WHITESPACE, NULL},
    {"WhitespaceSplit", RUNG_CUT_WHITESPACE_SPLIT, NULL},
    {"Punctuation", RUNG_CUT_PUNCTUATION, read_punctuation},
    {"Digits", RUNG_CUT_DIGITS, read_digits},
};

/* ---- decoders ---- */

static rung_status read_word_piece(rung_tokenizer_reader *r, rung_json object, const char *where,
                                   rung_text_step *step) {
  RUNG_TRY(text(r, object, where, "prefix", true, &step->pattern));
  return flag(r, object, where, "cleanup", true, RUNG_STEP_CLEAN_UP, step);
}

static rung_status read_decode_replace(rung_tokenizer_reader *r, rung_json object, const char *where,
                                       rung_text_step *step) {
  RUNG_TRY(read_replace(r, object, where, step));
  if (!(step->flags & RUNG_STEP_REGEX)) return RUNG_OK;
  return rung_fail(r->error, RUNG_UNSUPPORTED, "%s: Replace by a Regex is not supported", where);
}

/* Behind a Fuse there is one text, otherwise there is one for each token. */
static rung_status read_decode_strip(rung_tokenizer_reader *r, rung_json object, const char *where,
                                     rung_text_step *step) {
  int64_t start, stop;
  RUNG_TRY(text(r, object, where, "content", true, &step->content));
  RUNG_TRY(rung_tokenizer_number(r, object, where, "start", 0, 1024, 0, &start));
  RUNG_TRY(rung_tokenizer_number(r, object, where, "stop", 0, 1024, 0, &stop));
  const bool blank = step->content.length == 1 && step->content.text[0] == ' ';
  if (stop || ((step->flags & RUNG_STEP_WHOLE) && start && (start != 1 || !blank)))
    return rung_fail(r->error, RUNG_UNSUPPORTED, "%s: this Strip is not supported", where);
  step->count = (size_t)start;
  if (!start) step->flags &= ~(unsigned)RUNG_STEP_WHOLE;
  return RUNG_OK;
}

static const row decoders[] = {
    {"WordPiece", RUNG_DECODE_STEP_WORDPIECE, read_word_piece},
    {"ByteLevel", RUNG_DECODE_STEP_BYTE_LEVEL, NULL},
    {"Metaspace", RUNG_DECODE_STEP_METASPACE, read_metaspace},
    {"Replace", RUNG_DECODE_STEP_REPLACE, read_decode_replace},
    {"ByteFallback", RUNG_DECODE_STEP_BYTE_FALLBACK, NULL},
    {"Fuse", RUNG_DECODE_STEP_END, NULL},
    {"Strip", RUNG_DECODE_STEP_STRIP, read_decode_strip},
};

/* ---- lists ---- */

static rung_status read_step(rung_tokenizer_reader *r, const list *l, rung_json object, bool *fused);

static rung_status read_sequence(rung_tokenizer_reader *r, const list *l, rung_json object, bool *fused) {
  rung_json steps, step;
  RUNG_TRY(rung_tokenizer_member(r, object, l->where, l->members, RUNG_JSON_ARRAY, true, &steps));
  for (rung_json_walk walk = rung_json_begin(steps); rung_json_next(&walk, NULL, &step);)
    RUNG_TRY(read_step(r, l, step, fused));
  return RUNG_OK;
}

static rung_status read_step(rung_tokenizer_reader *r, const list *l, rung_json object, bool *fused) {
  char type[64];
  RUNG_TRY(rung_tokenizer_kind(r, object, l->where, type));
  if (strcmp(type, "Sequence") == 0) return read_sequence(r, l, object, fused);
  const row *found = NULL;
  for (size_t i = 0; i < l->row_count; i++)
    if (strcmp(l->rows[i].type, type) == 0) found = &l->rows[i];
  if (!found) return rung_fail(r->error, RUNG_UNSUPPORTED, "%s: \"%s\" is not supported", l->where, type);
  if (found->kind == RUNG_DECODE_STEP_END) {
    *fused = true;
    return RUNG_OK;
  }
  if (*fused && found->kind != RUNG_DECODE_STEP_STRIP)
    return rung_fail(r->error, RUNG_UNSUPPORTED, "%s: \"%s\" behind Fuse is not supported", l->where, type);
  if (*l->count == RUNG_MOST_STEPS)
    return rung_fail(r->error, RUNG_UNSUPPORTED, "%s: more than %d steps", l->where, (int)RUNG_MOST_STEPS);
  rung_text_step *step = &l->steps[*l->count];
  *step = (rung_text_step){.kind = found->kind, .flags = *fused ? RUNG_STEP_WHOLE : 0u};
  char where[128];
  snprintf(where, sizeof where, "%s: %s", l->where, type);
  if (found->read) RUNG_TRY(found->read(r, object, where, step));
  ++*l->count;
  return RUNG_OK;
}

rung_status rung_tokenizer_read_normaliser(rung_tokenizer_reader *r, rung_json object) {
  const list l = {"normalizer",   "normalizers",       normalisers, RUNG_COUNT(normalisers),
                  r->normalisers, &r->normaliser_count};
  bool fused = false;
  return read_step(r, &l, object, &fused);
}

rung_status rung_tokenizer_read_cuts(rung_tokenizer_reader *r, rung_json object) {
  const list l = {"pre_tokenizer", "pretokenizers", cuts, RUNG_COUNT(cuts), r->cuts, &r->cut_count};
  bool fused = false;
  return read_step(r, &l, object, &fused);
}

rung_status rung_tokenizer_read_decoder(rung_tokenizer_reader *r, rung_json object) {
  const list l = {"decoder", "decoders", decoders, RUNG_COUNT(decoders), r->decoders, &r->decoder_count};
  bool fused = false;
  return read_step(r, &l, object, &fused);
}
