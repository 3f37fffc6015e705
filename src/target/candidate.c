/* SPDX-License-Identifier: MIT
 * Candidates of decode attention: tags, which of them there are, sizes. */
#include "target/candidate.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ir/type.h"

enum { LEAST_KEYS = 64, MOST_KEYS = 512, LAST_BUCKET = RUNG_TUNE_BUCKETS - 1 };

typedef enum field { SPLITS, KEYS, TILE, PADDING, KV, HEAD, STAGES, FIELDS } field;
static const char *const names[FIELDS] = {"splits", "keys", "tile", "padding", "kv", "head", "stages"};

static bool is_power(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }
static bool is_kv_type(int64_t type) {
  return type == RUNG_TYPE_F32 || type == RUNG_TYPE_F16 || type == RUNG_TYPE_BF16 || type == RUNG_TYPE_Q8_0;
}

static bool fits(field which, int64_t n) {
  switch (which) {
    case SPLITS:
      return is_power(n) && n <= RUNG_CANDIDATE_SPLITS;
    case KEYS:
      return is_power(n) && n >= LEAST_KEYS && n <= MOST_KEYS;
    case TILE:
    case PADDING:
      return n >= 1 && n <= RUNG_CANDIDATE_TILE;
    case KV:
      return is_kv_type(n);
    case HEAD:
      return n >= 1 && n <= RUNG_CANDIDATE_HEAD;
    default:
      return n == 1 || n == 2;
  }
}

bool rung_candidate_equal(const rung_candidate *a, const rung_candidate *b) {
  return a->splits == b->splits && a->keys == b->keys && a->tile == b->tile && a->padding == b->padding &&
         a->head == b->head && a->kv == b->kv && a->stages == b->stages;
}

void rung_candidate_print(const rung_candidate *c, char out[RUNG_CANDIDATE_TAG]) {
  char tile[16] = "", padding[20] = "";
  if (c->tile != 1) snprintf(tile, sizeof tile, ",tile=%u", c->tile);
  if (c->padding != 1) snprintf(padding, sizeof padding, ",padding=%u", c->padding);
  snprintf(out, RUNG_CANDIDATE_TAG, "splits=%u,keys=%u%s%s,kv=%s,head=%u,stages=%u", c->splits, c->keys, tile, padding,
           rung_type_name((rung_type)c->kv), c->head, c->stages);
}

/* ---- reading */

static int find_field(const char *name, size_t length) {
  for (int f = 0; f < FIELDS; f++)
    if (strlen(names[f]) == length && memcmp(names[f], name, length) == 0) return f;
  return -1;
}

/* Digits only: a sign or a blank would make two tags of one candidate. */
static bool read_number(const char *text, const char *end, int64_t *out) {
  const char *rest;
  return text < end && *text >= '0' && *text <= '9' && rung_parse_i64(text, end, out, &rest) && rest == end;
}

static bool read_type(const char *text, const char *end, int64_t *out) {
  for (size_t i = 0; i < rung_type_count(); i++) {
    const char *name = rung_type_name(rung_type_at(i));
    if (strlen(name) != (size_t)(end - text) || memcmp(name, text, (size_t)(end - text)) != 0) continue;
    *out = rung_type_at(i);
    return true;
  }
  return false;
}

static rung_status read_field(const char *text, const char *end, int64_t value[FIELDS], rung_error *error) {
  const char *equals = memchr(text, '=', (size_t)(end - text));
  const int length = (int)(end - text > 40 ? 40 : end - text);
  const int which = equals ? find_field(text, (size_t)(equals - text)) : -1;
  if (which < 0) return rung_fail(error, RUNG_INVALID_ARGUMENT, "candidate: unknown field \"%.*s\"", length, text);
  if (value[which] >= 0) return rung_fail(error, RUNG_INVALID_ARGUMENT, "candidate: %s is there twice", names[which]);
  int64_t n;
  const bool read = which == KV ? read_type(equals + 1, end, &n) : read_number(equals + 1, end, &n);
  if (!read || !fits((field)which, n))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "candidate: \"%.*s\" is not in its range", length, text);
  value[which] = n;
  return RUNG_OK;
}

rung_status rung_candidate_parse(const char *text, size_t length, rung_error *error, rung_candidate *out) {
  int64_t value[FIELDS];
  const char *end = text + length;
  for (int f = 0; f < FIELDS; f++) value[f] = -1;
  for (const char *at = text;; at++) {
    const char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL, *stop = comma ? comma : end;
    if (at == stop) return rung_fail(error, RUNG_INVALID_ARGUMENT, "candidate: an empty field");
    RUNG_TRY(read_field(at, stop, value, error));
    if (!comma) break;
    at = comma;
  }
  if (value[TILE] < 0) value[TILE] = 1;
  if (value[PADDING] < 0) value[PADDING] = 1;
  for (int f = 0; f < FIELDS; f++)
    if (value[f] < 0) return rung_fail(error, RUNG_INVALID_ARGUMENT, "candidate: %s is missing", names[f]);
  *out = (rung_candidate){.splits = (uint16_t)value[SPLITS],
                          .keys = (uint16_t)value[KEYS],
                          .tile = (uint16_t)value[TILE],
                          .padding = (uint16_t)value[PADDING],
                          .head = (uint16_t)value[HEAD],
                          .kv = (uint8_t)value[KV],
                          .stages = (uint8_t)value[STAGES]};
  return RUNG_OK;
}

/* ---- spaces */

bool rung_candidate_in(const rung_candidate_space *s, const rung_candidate *c) {
  if (!fits(SPLITS, c->splits) || !fits(KEYS, c->keys) || !fits(HEAD, c->head) || !is_kv_type(c->kv)) return false;
  if (c->kv != s->kv || c->head != s->head || !is_power(c->tile) || c->tile > s->most_tile || !is_power(c->padding) ||
      c->padding > s->most_padding)
    return false;
  if (c->stages == 1) return s->one_stage && c->splits == 1 && c->keys == LEAST_KEYS;
  return c->stages == 2 && c->splits > 1 && c->splits <= s->most_splits && c->keys <= s->most_keys;
}

size_t rung_candidates(const rung_candidate_space *s, rung_candidate *out, size_t most) {
  size_t n = 0;
  for (uint16_t stages = 1; stages <= 2; stages++)
    for (uint16_t splits = 1; splits <= RUNG_CANDIDATE_SPLITS; splits = (uint16_t)(2 * splits))
      for (uint16_t keys = LEAST_KEYS; keys <= MOST_KEYS; keys = (uint16_t)(2 * keys))
        for (uint16_t tile = 1; tile <= RUNG_CANDIDATE_TILE; tile = (uint16_t)(2 * tile))
          for (uint16_t padding = 1; padding <= RUNG_CANDIDATE_TILE; padding = (uint16_t)(2 * padding)) {
            const rung_candidate c = {.splits = splits,
                                      .keys = keys,
                                      .tile = tile,
                                      .padding = padding,
                                      .head = (uint16_t)s->head,
                                      .kv = (uint8_t)s->kv,
                                      .stages = (uint8_t)stages};
            if (s->head >= 1 && s->head <= RUNG_CANDIDATE_HEAD && n < most && rung_candidate_in(s, &c)) out[n++] = c;
          }
  return n;
}

/* ---- sizes */

uint16_t rung_tune_bucket(int64_t rows) {
  uint16_t b = 0;
  while (b < LAST_BUCKET && rows > INT64_C(1) << b) b++;
  return b;
}

int64_t rung_tune_bucket_rows(uint16_t bucket) {
  return bucket < LAST_BUCKET ? INT64_C(1) << bucket : (INT64_C(1) << (LAST_BUCKET - 1)) + 1;
}

int rung_default_stages(int64_t rows, int64_t keys) { return rows <= 8 || keys > RUNG_DEFAULT_KEYS ? 2 : 1; }
