/* SPDX-License-Identifier: MIT
 * Special tokens: a sorted list, narrowed byte by byte as the text is read. */
#include "text/special.h"

enum { LONGEST = 1024 }; /* bounds the work per byte of text */

static bool is_special(const rung_vocab *vocab, uint32_t id) {
  const rung_token_type type = rung_vocab_type(vocab, id);
  return type == RUNG_TOKEN_CONTROL || type == RUNG_TOKEN_UNKNOWN || type == RUNG_TOKEN_USER_DEFINED;
}

static int compare(const rung_vocab *vocab, uint32_t a, uint32_t b) {
  const rung_token_span x = vocab->spans[a], y = vocab->spans[b];
  const int order = memcmp(vocab->base + x.offset, vocab->base + y.offset, x.length < y.length ? x.length : y.length);
  return order ? order : (x.length > y.length) - (x.length < y.length);
}

/* Heap sort: in place, no recursion, no bad cases. */
static void sift(const rung_vocab *vocab, uint32_t *ids, uint32_t at, uint32_t count) {
  const uint32_t id = ids[at];
  for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && compare(vocab, ids[child + 1], ids[child]) > 0) child++;
    if (compare(vocab, ids[child], id) <= 0) break;
    ids[at] = ids[child];
    at = child;
  }
  ids[at] = id;
}
static void sort(const rung_vocab *vocab, uint32_t *ids, uint32_t count) {
  for (uint32_t i = count / 2; i-- > 0;) sift(vocab, ids, i, count);
  for (uint32_t n = count; n-- > 1;) {
    const uint32_t last = ids[n];
    ids[n] = ids[0];
    ids[0] = last;
    sift(vocab, ids, 0, n);
  }
}

rung_status rung_special_init(rung_special *special, const rung_vocab *vocab, rung_error *error) {
  for (uint32_t id = 0; id < vocab->count; id++) {
    const rung_token_span span = vocab->spans[id];
    if (!is_special(vocab, id) || span.length == 0) continue;
    if (span.length > LONGEST)
      return rung_fail(error, RUNG_UNSUPPORTED, "tokens[%u]: a special token of %u bytes, at most %d are supported", id,
                       span.length, (int)LONGEST);
    special->count++;
  }
  special->ids = rung_host_array(vocab->host, special->count, sizeof *special->ids);
  if (!special->ids) return rung_fail(error, RUNG_OUT_OF_MEMORY, "tokens: %u special tokens", special->count);
  uint32_t n = 0;
  for (uint32_t id = 0; id < vocab->count; id++)
    if (is_special(vocab, id) && vocab->spans[id].length) special->ids[n++] = id;
  sort(vocab, special->ids, n);
  for (uint32_t i = 0; i < n; i++) special->first[(uint8_t)*rung_vocab_text(vocab, special->ids[i]) + 1]++;
  for (int b = 0; b < 256; b++) special->first[b + 1] += special->first[b];
  return RUNG_OK;
}

void rung_special_finish(rung_special *special, const rung_vocab *vocab) {
  if (special->ids) rung_host_free(vocab->host, RUNG_MEMORY_host, special->ids, special->count * sizeof *special->ids);
  special->ids = NULL;
}

/* The byte of a special token's text at `depth`; -1 behind its end, which sorts first. */
static int byte_at(const rung_special *special, const rung_vocab *vocab, uint32_t i, uint32_t depth) {
  const rung_token_span span = vocab->spans[special->ids[i]];
  return depth < span.length ? (uint8_t)vocab->base[span.offset + depth] : -1;
}
/* The first of [low, high), which agree in `depth` bytes, whose next byte is at least `byte`. */
static uint32_t bound(const rung_special *special, const rung_vocab *vocab, uint32_t low, uint32_t high, uint32_t depth,
                      int byte) {
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (byte_at(special, vocab, middle, depth) < byte)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The longest special token that text begins with. */
static int32_t longest_here(const rung_special *special, const rung_vocab *vocab, const uint8_t *text, size_t length,
                            bool all) {
  int32_t best = RUNG_TOKEN_NONE;
  uint32_t low = special->first[text[0]], high = special->first[text[0] + 1];
  for (uint32_t depth = 1; low < high; depth++) {
    const uint32_t id = special->ids[low];
    if (vocab->spans[id].length == depth) {
      if (all || rung_vocab_type(vocab, id) == RUNG_TOKEN_USER_DEFINED) best = (int32_t)id;
      low++;
    }
    if (depth == length) break;
    low = bound(special, vocab, low, high, depth, text[depth]);
    high = bound(special, vocab, low, high, depth, text[depth] + 1);
  }
  return best;
}

bool rung_special_next(const rung_special *special, const rung_vocab *vocab, const char *text, size_t length,
                       size_t from, bool all, size_t *out_at, int32_t *out_id) {
  for (size_t at = from; at < length; at++) {
    const uint8_t byte = (uint8_t)text[at];
    if (special->first[byte] == special->first[byte + 1]) continue;
    const int32_t id = longest_here(special, vocab, (const uint8_t *)text + at, length - at, all);
    if (id < 0) continue;
    *out_at = at;
    *out_id = id;
    return true;
  }
  return false;
}

/* ---- well-known texts ---- */

typedef enum role { ENDS = 1, TURN = 2, MESSAGE = 4, IF_CONTROL = 8 } role;

/* clang-format off */
static const struct { const char *text; int role; } known[] = {
  /* The first one present is the end of a turn where the file names none. All end a generation, as in llama.cpp. */
  {"<|eot_id|>",          ENDS | TURN},
  {"<|im_end|>",          ENDS | TURN},
  {"<|end|>",             ENDS | TURN},
  {"<end_of_turn>",       ENDS | TURN},
  {"<|endoftext|>",       ENDS | TURN},
  {"<|end_of_text|>",     ENDS | TURN},
  {"<EOT>",               ENDS | TURN},
  {"_<EOT>",              ENDS | TURN},
  {"[EOT]",               ENDS | TURN},
  {"<end_of_utterance>",  ENDS | TURN},
  {"<\xEF\xBD\x9C" "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>", ENDS | TURN},
  {"<|eom_id|>",          ENDS | MESSAGE},
  {"[EOS]",               ENDS},
  {"<eos>",               ENDS},
  {"</s>",                ENDS | IF_CONTROL}, /* in Gemma's vocabulary it is HTML's strike-through */
  /* Where a model that fills in code stops: padding, the next file, the next repository. */
  {"<|fim_pad|>",         ENDS},
  {"<fim-pad>",           ENDS},
  {"<fim_pad>",           ENDS},
  {"<|fim_repo|>",        ENDS},
  {"<|repo_name|>",       ENDS},
  {"<fim-repo>",          ENDS},
  {"<reponame>",          ENDS},
  {"<|file_sep|>",        ENDS},
};
/* clang-format on */

static void mark_end(rung_vocab *vocab, int64_t id) {
  if (id >= 0 && id < vocab->count) vocab->flags[id] |= RUNG_VOCAB_EOG;
}

void rung_special_roles(rung_vocab *vocab, rung_token_ids *ids) {
  for (size_t k = 0; k < RUNG_COUNT(known); k++) {
    const int32_t id = rung_vocab_find(vocab, known[k].text, strlen(known[k].text));
    if (id < 0) continue;
    const bool control = rung_vocab_type(vocab, (uint32_t)id) == RUNG_TOKEN_CONTROL;
    if ((known[k].role & IF_CONTROL) && !control) continue;
    /* Some files forget to say that these are control tokens. */
    if (!control) vocab->flags[id] = RUNG_TOKEN_CONTROL;
    mark_end(vocab, id);
    if ((known[k].role & TURN) && ids->eot < 0) ids->eot = id;
    if ((known[k].role & MESSAGE) && ids->eom < 0) ids->eom = id;
  }
  mark_end(vocab, ids->eos);
  mark_end(vocab, ids->eot);
  mark_end(vocab, ids->eom);
}
