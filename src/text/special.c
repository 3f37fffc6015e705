/* SPDX-License-Identifier: MIT
 * Special tokens: a sorted list, narrowed byte by byte as the text is read. */
#include "text/special.h"

#include <string.h>

#include "base/sort.h"

enum { LONGEST = 1024 }; /* bounds the work per byte of text */

bool rung_special_is(const rung_vocab *vocab, uint32_t id) {
  const rung_token_type type = rung_vocab_type(vocab, id);
  return type == RUNG_TOKEN_CONTROL || type == RUNG_TOKEN_UNKNOWN || type == RUNG_TOKEN_USER_DEFINED;
}

static bool before(const void *self, const void *left, const void *right) {
  (void)self;
  const rung_special_entry *a = left, *b = right;
  const int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
  if (order) return order < 0;
  return a->length != b->length ? a->length < b->length : a->order < b->order;
}

/* The entries are there: brings them into order. */
static rung_status index_entries(rung_special *special, rung_error *error) {
  for (uint32_t i = 0; i < special->count; i++)
    if (special->entries[i].length > LONGEST)
      return rung_fail(error, RUNG_UNSUPPORTED, "tokens[%d]: a special token of %u bytes, at most %d are supported",
                       (int)special->entries[i].id, special->entries[i].length, (int)LONGEST);
  rung_sort(special->entries, special->count, sizeof *special->entries, before, NULL);
  for (uint32_t i = 0; i < special->count; i++) special->first[(uint8_t)special->entries[i].text[0] + 1]++;
  for (int b = 0; b < 256; b++) special->first[b + 1] += special->first[b];
  return RUNG_OK;
}

static rung_status take(rung_special *special, rung_host *host, uint32_t count, rung_error *error) {
  special->host = host;
  special->count = count;
  special->entries = rung_host_array(host, count, sizeof *special->entries);
  if (!special->entries) return rung_fail(error, RUNG_OUT_OF_MEMORY, "tokens: %u special tokens", count);
  return RUNG_OK;
}

rung_status rung_special_init(rung_special *special, const rung_vocab *vocab, const rung_added_token *added,
                              size_t added_count, rung_error *error) {
  uint32_t count = 0, n = 0;
  for (uint32_t id = 0; id < vocab->count; id++) count += rung_special_is(vocab, id) && vocab->spans[id].length;
  RUNG_TRY(take(special, vocab->host, count, error));
  for (uint32_t id = 0; id < vocab->count; id++)
    if (rung_special_is(vocab, id) && vocab->spans[id].length) {
      special->entries[n] = (rung_special_entry){
          .text = rung_vocab_text(vocab, id), .length = vocab->spans[id].length, .id = (int32_t)id, .order = n};
      for (size_t i = 0; i < added_count; i++)
        if (added[i].id == (int32_t)id) {
          special->entries[n].lstrip = added[i].lstrip;
          special->entries[n].rstrip = added[i].rstrip;
        }
      n++;
    }
  return index_entries(special, error);
}

rung_status rung_special_init_list(rung_special *special, rung_host *host, const rung_special_entry *entries,
                                   size_t count, rung_error *error) {
  RUNG_TRY(take(special, host, (uint32_t)count, error));
  if (count) memcpy(special->entries, entries, count * sizeof *entries);
  return index_entries(special, error);
}

void rung_special_finish(rung_special *special) {
  if (special->entries)
    rung_host_free(special->host, RUNG_MEMORY_host, special->entries, special->count * sizeof *special->entries);
  special->entries = NULL;
}

/* The byte of an entry's text at `depth`; -1 behind its end, which sorts first. */
static int byte_at(const rung_special *special, uint32_t i, uint32_t depth) {
  const rung_special_entry *entry = &special->entries[i];
  return depth < entry->length ? (uint8_t)entry->text[depth] : -1;
}
/* The first of [low, high), which agree in `depth` bytes, whose next byte is at least `byte`. */
static uint32_t bound(const rung_special *special, uint32_t low, uint32_t high, uint32_t depth, int byte) {
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (byte_at(special, middle, depth) < byte)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The longest special token that text begins with. */
static const rung_special_entry *longest_here(const rung_special *special, const rung_vocab *users, const uint8_t *text,
                                              size_t length) {
  const rung_special_entry *best = NULL;
  uint32_t low = special->first[text[0]], high = special->first[text[0] + 1];
  for (uint32_t depth = 1; low < high; depth++) {
    for (; low < high && special->entries[low].length == depth; low++) {
      const rung_special_entry *entry = &special->entries[low];
      const bool counts = !users || rung_vocab_type(users, (uint32_t)entry->id) == RUNG_TOKEN_USER_DEFINED;
      if (counts && (!best || best->length < depth)) best = entry;
    }
    if (depth == length) break;
    low = bound(special, low, high, depth, text[depth]);
    high = bound(special, low, high, depth, text[depth] + 1);
  }
  return best;
}

const rung_special_entry *rung_special_next(const rung_special *special, const rung_vocab *users, const char *text,
                                            size_t length, size_t from, size_t *out_at) {
  for (size_t at = from; at < length; at++) {
    const uint8_t byte = (uint8_t)text[at];
    if (special->first[byte] == special->first[byte + 1]) continue;
    const rung_special_entry *entry = longest_here(special, users, (const uint8_t *)text + at, length - at);
    if (!entry) continue;
    *out_at = at;
    return entry;
  }
  return NULL;
}

/* ---- well-known texts ---- */

typedef enum role { ENDS = 1, TURN = 2, MESSAGE = 4, IF_CONTROL = 8 } role;

/* clang-format off */
static const struct { const char *text; int role; } known[] = {
  /* The first one present is the end of a turn where the file names none. */
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
  {"<turn|>",             ENDS | TURN},
  {"<|return|>",          ENDS},
  {"<|call|>",            ENDS},
  {"<|tool_response>",    ENDS},
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
  /* What such a model is asked with: special, and ends nothing. */
  {"<|fim_prefix|>",      0},
  {"<|fim_suffix|>",      0},
  {"<|fim_middle|>",      0},
  {"<fim-prefix>",        0},
  {"<fim-suffix>",        0},
  {"<fim-middle>",        0},
  {"<fim_prefix>",        0},
  {"<fim_suffix>",        0},
  {"<fim_middle>",        0},
  {"<\xEF\xBD\x9C" "fim\xE2\x96\x81" "begin\xEF\xBD\x9C>", 0},
  {"<\xEF\xBD\x9C" "fim\xE2\x96\x81hole\xEF\xBD\x9C>", 0},
  {"<\xEF\xBD\x9C" "fim\xE2\x96\x81" "end\xEF\xBD\x9C>", 0},
};
/* clang-format on */

static void mark_end(rung_vocab *vocab, int64_t id) {
  if (id >= 0 && id < vocab->count) vocab->flags[id] |= RUNG_VOCAB_EOG;
}

void rung_special_roles(rung_vocab *vocab, rung_token_ids *ids, bool retype) {
  for (size_t k = 0; k < RUNG_COUNT(known); k++) {
    const int32_t id = rung_vocab_find(vocab, known[k].text, strlen(known[k].text));
    if (id < 0) continue;
    const bool control = rung_vocab_type(vocab, (uint32_t)id) == RUNG_TOKEN_CONTROL;
    if ((known[k].role & IF_CONTROL) && !control) continue;
    if (!control && !retype) continue;
    if (!control) vocab->flags[id] = RUNG_TOKEN_CONTROL;
    if (known[k].role & ENDS) mark_end(vocab, id);
    if ((known[k].role & TURN) && ids->eot < 0) ids->eot = id;
    if ((known[k].role & MESSAGE) && ids->eom < 0) ids->eom = id;
  }
  mark_end(vocab, ids->eos);
  mark_end(vocab, ids->eot);
  mark_end(vocab, ids->eom);
}
