/* SPDX-License-Identifier: MIT
 * A tokeniser from the tokenizer.ggml.* keys of a GGUF file. Token texts stay in the mapped file. */
#include <string.h>

#include "models/model.h"

/* Texts of a string array as the tokeniser wants them: pointers into the file and lengths. */
typedef struct texts {
  const char **text;
  uint32_t *length;
  size_t count;
} texts;

static rung_status read_texts(const rung_gguf *gguf, const char *key, bool required, rung_error *error, texts *out) {
  rung_host *host = rung_gguf_host(gguf);
  rung_gguf_entry entry;
  const rung_status status = rung_gguf_get_array(gguf, key, RUNG_GGUF_TEXT, error, &entry);
  if (status == RUNG_NOT_FOUND && !required) return RUNG_OK;
  if (status) return status;
  out->count = (size_t)entry.count;
  out->text = rung_host_array(host, out->count, sizeof *out->text);
  out->length = rung_host_array(host, out->count, sizeof *out->length);
  if (!out->text || !out->length)
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "%s: out of memory for %zu texts", key, out->count);
  for (size_t i = 0; i < out->count; i++) {
    const rung_gguf_text text = rung_gguf_entry_text(&entry, i);
    if (text.length > UINT32_MAX)
      return rung_fail(error, RUNG_CORRUPT_FILE, "%s: entry %zu has %llu bytes", key, i,
                       (unsigned long long)text.length);
    out->text[i] = text.data;
    out->length[i] = (uint32_t)text.length;
  }
  return RUNG_OK;
}

static void free_texts(rung_host *host, texts *t) {
  rung_host_free(host, RUNG_MEMORY_host, t->text, t->count * sizeof *t->text);
  rung_host_free(host, RUNG_MEMORY_host, t->length, t->count * sizeof *t->length);
}

static rung_status copy_text(const rung_gguf *gguf, const char *key, bool required, char *out, size_t bytes,
                             rung_error *error) {
  rung_gguf_text text;
  out[0] = 0;
  const rung_status status = rung_gguf_get_text(gguf, key, error, &text);
  if (status == RUNG_NOT_FOUND && !required) return RUNG_OK;
  if (status) return status;
  if (text.length >= bytes)
    return rung_fail(error, RUNG_CORRUPT_FILE, "%s has %llu bytes", key, (unsigned long long)text.length);
  memcpy(out, text.data, (size_t)text.length);
  out[text.length] = 0;
  return RUNG_OK;
}

static rung_status read_ids(const rung_gguf *gguf, rung_tokenizer_desc *desc, rung_error *error) {
  const struct {
    const char *key;
    int64_t *id;
  } keys[] = {{"tokenizer.ggml.bos_token_id", &desc->ids.bos},
              {"tokenizer.ggml.eos_token_id", &desc->ids.eos},
              {"tokenizer.ggml.eot_token_id", &desc->ids.eot},
              {"tokenizer.ggml.eom_token_id", &desc->ids.eom},
              {"tokenizer.ggml.unknown_token_id", &desc->ids.unknown},
              {"tokenizer.ggml.padding_token_id", &desc->ids.pad},
              {"tokenizer.ggml.seperator_token_id", &desc->ids.separator},
              {"tokenizer.ggml.mask_token_id", &desc->ids.mask}};
  for (size_t i = 0; i < RUNG_COUNT(keys); i++) RUNG_TRY(rung_gguf_maybe_i64(gguf, keys[i].key, error, keys[i].id));
  const struct {
    const char *key;
    rung_choice *choice;
  } flags[] = {{"tokenizer.ggml.add_bos_token", &desc->add_bos},
               {"tokenizer.ggml.add_eos_token", &desc->add_eos},
               {"tokenizer.ggml.add_space_prefix", &desc->add_space_prefix}};
  for (size_t i = 0; i < RUNG_COUNT(flags); i++) {
    if (!rung_gguf_has(gguf, flags[i].key)) continue;
    bool value;
    RUNG_TRY(rung_gguf_get_bool(gguf, flags[i].key, error, &value));
    *flags[i].choice = value ? RUNG_CHOICE_YES : RUNG_CHOICE_NO;
  }
  return RUNG_OK;
}

/* ---- models that are made of steps ---- */

#define BLANK "\xE2\x96\x81" /* U+2581 */
#define SLICE(literal) ((rung_slice){literal, sizeof(literal) - 1})
enum { MOST_STEPS = 3 };

/* One reading: the description and what it points to. */
typedef struct reading {
  const rung_gguf *gguf;
  rung_error *error;
  rung_tokenizer_desc desc;
  char model[32], pre[64];
  texts tokens, merges;
  rung_text_step normalisers[MOST_STEPS], cuts[MOST_STEPS], decoders[MOST_STEPS];
  int32_t before, after;
  rung_added_token *strips; /* special tokens that take white space along */
  size_t strip_count;
  double *scores;
} reading;

static void normalise(reading *r, rung_text_step step) {
  r->normalisers[r->desc.normaliser_count++] = step;
  r->desc.normalisers = r->normalisers;
}
static void cut(reading *r, rung_text_step step) {
  r->cuts[r->desc.cut_count++] = step;
  r->desc.cuts = r->cuts;
}
static void decode(reading *r, rung_text_step step) {
  r->decoders[r->desc.decoder_count++] = step;
  r->desc.decoders = r->decoders;
}

static void fill(int64_t *id, int64_t usual, size_t count) {
  if (*id < 0 && (size_t)usual < count) *id = usual;
}

/* The ids around a text. Those outside the vocabulary are refused later, with all the others. */
static rung_status put_around(reading *r, bool before, bool after, int64_t first, int64_t last) {
  if ((before && first < 0) || (after && last < 0))
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "tokenizer.ggml: no id of the token %s a text",
                     before && first < 0 ? "before" : "behind");
  r->before = (int32_t)first;
  r->after = (int32_t)last;
  r->desc.before = &r->before;
  r->desc.after = &r->after;
  r->desc.before_count = before && (uint64_t)first < r->desc.count;
  r->desc.after_count = after && (uint64_t)last < r->desc.count;
  return RUNG_OK;
}

/* WordPiece: what begins a word has U+2581 before it, what continues one has nothing. */
static rung_status make_bert(reading *r) {
  rung_token_ids *ids = &r->desc.ids;
  bool lower = true;
  RUNG_TRY(rung_gguf_maybe_bool(r->gguf, "tokenizer.ggml.normalizer.lowercase", r->error, &lower));
  bool accents = lower;
  RUNG_TRY(rung_gguf_maybe_bool(r->gguf, "tokenizer.ggml.normalizer.strip_accents", r->error, &accents));
  RUNG_TRY(rung_gguf_maybe_i64(r->gguf, "tokenizer.ggml.cls_token_id", r->error, &ids->bos));
  fill(&ids->bos, 101, r->desc.count);
  fill(&ids->unknown, 100, r->desc.count);
  fill(&ids->separator, 102, r->desc.count);
  fill(&ids->mask, 103, r->desc.count);
  fill(&ids->pad, 0, r->desc.count);
  r->desc.model = "WordPiece";
  r->desc.unknown = ids->unknown;
  r->desc.word_begin = SLICE(BLANK);
  r->desc.longest_word = 100; /* as BERT has it; no key says so */
  normalise(r, (rung_text_step){.kind = RUNG_NORMALISE_BERT,
                                .flags = RUNG_STEP_CLEAN | RUNG_STEP_CHINESE | (accents ? RUNG_STEP_ACCENTS : 0u) |
                                         (lower ? RUNG_STEP_LOWER : 0u)});
  cut(r, (rung_text_step){.kind = RUNG_CUT_BERT});
  decode(r, (rung_text_step){.kind = RUNG_DECODE_STEP_WORDPIECE,
                             .flags = RUNG_STEP_BEGINS | RUNG_STEP_CLEAN_UP,
                             .pattern = SLICE(BLANK)});
  return put_around(r, true, true, ids->bos, ids->separator);
}

static rung_status read_scores(reading *r) {
  const bool there = r->desc.scores != NULL;
  if (!there || r->desc.score_count != r->desc.count)
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "tokenizer.ggml.scores: %zu entries for a vocabulary of %zu",
                     there ? r->desc.score_count : (size_t)0, r->desc.count);
  r->scores = rung_host_array(rung_gguf_host(r->gguf), r->desc.count, sizeof *r->scores);
  if (!r->scores) return rung_fail(r->error, RUNG_OUT_OF_MEMORY, "tokenizer.ggml.scores: %zu", r->desc.count);
  for (size_t i = 0; i < r->desc.count; i++) {
    float score;
    memcpy(&score, (const char *)r->desc.scores + i * sizeof score, sizeof score);
    r->scores[i] = (double)score;
  }
  r->desc.piece_scores = r->scores;
  return RUNG_OK;
}

/* SentencePiece's Unigram: its table of replacements, blanks written as U+2581. */
static rung_status make_unigram(reading *r) {
  static const char charsmap[] = "tokenizer.ggml.precompiled_charsmap";
  rung_tokenizer_desc *desc = &r->desc;
  bool prefix = false, merge = false, bos = false, eos = true;
  RUNG_TRY(rung_gguf_maybe_bool(r->gguf, "tokenizer.ggml.add_space_prefix", r->error, &prefix));
  RUNG_TRY(rung_gguf_maybe_bool(r->gguf, "tokenizer.ggml.remove_extra_whitespaces", r->error, &merge));
  RUNG_TRY(rung_gguf_maybe_bool(r->gguf, "tokenizer.ggml.add_bos_token", r->error, &bos));
  RUNG_TRY(rung_gguf_maybe_bool(r->gguf, "tokenizer.ggml.add_eos_token", r->error, &eos));
  fill(&desc->ids.eos, 1, desc->count);
  fill(&desc->ids.unknown, 2, desc->count);
  fill(&desc->ids.pad, 0, desc->count);
  RUNG_TRY(read_scores(r));
  desc->model = "Unigram";
  desc->unknown = desc->ids.unknown;
  desc->byte_fallback = true; /* where there are byte tokens */
  if (rung_gguf_has(r->gguf, charsmap)) {
    rung_gguf_entry entry;
    RUNG_TRY(rung_gguf_get_array(r->gguf, charsmap, RUNG_GGUF_INTEGER, r->error, &entry));
    if (entry.kind != RUNG_GGUF_U8 && entry.kind != RUNG_GGUF_I8)
      return rung_fail(r->error, RUNG_TYPE_MISMATCH, "%s is an array of %s, expected u8", charsmap,
                       rung_gguf_kind_name(entry.kind));
    if (entry.count)
      normalise(r, (rung_text_step){.kind = RUNG_NORMALISE_CHARSMAP,
                                    .pattern = {(const char *)entry.data, (size_t)entry.count}});
  }
  /* One blank between words and none around them: cut there, then each word begins with one. */
  if (merge) cut(r, (rung_text_step){.kind = RUNG_CUT_SPLIT, .behaviour = RUNG_CUT_REMOVED, .pattern = SLICE(" ")});
  cut(r, (rung_text_step){.kind = RUNG_CUT_METASPACE,
                          .flags = merge || prefix ? RUNG_STEP_PREFIX | RUNG_STEP_ALWAYS : 0u,
                          .content = SLICE(BLANK)});
  decode(r, (rung_text_step){.kind = RUNG_DECODE_STEP_BYTE_FALLBACK});
  decode(r, (rung_text_step){.kind = RUNG_DECODE_STEP_METASPACE,
                             .flags = merge || prefix ? RUNG_STEP_PREFIX : 0u,
                             .content = SLICE(BLANK)});
  return put_around(r, bos, eos, desc->ids.bos, desc->ids.eos);
}

/* BPE by characters, blanks written as U+2581, runs of line ends apart, bytes for what has no token. */
static rung_status make_gemma4(reading *r) {
  bool eos = false;
  RUNG_TRY(rung_gguf_maybe_bool(r->gguf, "tokenizer.ggml.add_eos_token", r->error, &eos));
  r->desc.model = "BPE";
  r->desc.byte_fallback = r->desc.fuse_unknown = true;
  r->desc.unknown = r->desc.ids.unknown;
  normalise(r, (rung_text_step){.kind = RUNG_NORMALISE_REPLACE, .pattern = SLICE(" "), .content = SLICE(BLANK)});
  cut(r, (rung_text_step){.kind = RUNG_CUT_SPLIT, .behaviour = RUNG_CUT_CONTIGUOUS, .pattern = SLICE("\n")});
  decode(r, (rung_text_step){.kind = RUNG_DECODE_STEP_REPLACE, .pattern = SLICE(BLANK), .content = SLICE(" ")});
  decode(r, (rung_text_step){.kind = RUNG_DECODE_STEP_BYTE_FALLBACK});
  return put_around(r, true, eos, r->desc.ids.bos, r->desc.ids.eos);
}

static const struct {
  const char *model;
  rung_status (*make)(reading *r);
} made_of_steps[] = {{"bert", make_bert}, {"t5", make_unigram}, {"gemma4", make_gemma4}};

/* ---- tokens that take white space along ---- */

/* GGUF has no key for it, so files are known by what they call themselves, as in llama.cpp. */
static const struct {
  const char *key, *part; /* a text of the file, and what occurs in it */
  const char *token;      /* that takes the white space before it; NULL: all but `except` take what comes after them */
  const char *except[4];
} strips[] = {
    {"general.architecture", "nomic-bert-moe", "<mask>", {NULL}},
    {"general.architecture", "jina-bert-v3", "<mask>", {NULL}},
    {"general.name", "phi-3", NULL, {"<unk>", "<s>", "<|endoftext|>"}},
    {"general.name", "phi3", NULL, {"<unk>", "<s>", "<|endoftext|>"}},
    {"general.name", "modern-bert", "[MASK]", {NULL}},
};

/* Whether `part`, in small letters, occurs in a text of the file in any case. */
static bool says(const rung_gguf *gguf, const char *key, const char *part) {
  rung_gguf_text text;
  if (!rung_gguf_has(gguf, key) || rung_gguf_get_text(gguf, key, NULL, &text)) return false;
  const size_t length = strlen(part);
  for (uint64_t at = 0; at + length <= text.length; at++) {
    size_t same = 0;
    for (; same < length; same++) {
      const char c = text.data[at + same];
      if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != part[same]) break;
    }
    if (same == length) return true;
  }
  return false;
}

static bool is_text(const texts *tokens, size_t id, const char *text) {
  return tokens->length[id] == strlen(text) && memcmp(tokens->text[id], text, tokens->length[id]) == 0;
}

static int32_t type_of(const reading *r, size_t id) {
  int32_t type = RUNG_TOKEN_NORMAL;
  if (r->desc.types && r->desc.type_count == r->desc.count)
    memcpy(&type, (const char *)r->desc.types + id * sizeof type, sizeof type);
  return type;
}

static rung_status find_strips(reading *r) {
  for (size_t s = 0; s < RUNG_COUNT(strips); s++) {
    if (!says(r->gguf, strips[s].key, strips[s].part)) continue;
    r->strip_count = r->desc.count;
    r->strips = rung_host_array(rung_gguf_host(r->gguf), r->strip_count, sizeof *r->strips);
    if (!r->strips) return rung_fail(r->error, RUNG_OUT_OF_MEMORY, "tokenizer.ggml.tokens: %zu", r->desc.count);
    r->desc.added = r->strips;
    for (size_t id = 0; id < r->desc.count; id++) {
      const int32_t type = type_of(r, id);
      if (type != RUNG_TOKEN_CONTROL && type != RUNG_TOKEN_UNKNOWN && type != RUNG_TOKEN_USER_DEFINED) continue;
      bool counts = !strips[s].token || is_text(&r->tokens, id, strips[s].token);
      for (size_t n = 0; n < RUNG_COUNT(strips[s].except) && strips[s].except[n]; n++)
        counts = counts && !is_text(&r->tokens, id, strips[s].except[n]);
      if (counts)
        r->strips[r->desc.added_count++] =
            (rung_added_token){.id = (int32_t)id, .lstrip = strips[s].token != NULL, .rstrip = strips[s].token == NULL};
    }
    return RUNG_OK;
  }
  return RUNG_OK;
}

/* ---- the whole ---- */

static rung_status read_arrays(reading *r) {
  rung_tokenizer_desc *desc = &r->desc;
  RUNG_TRY(read_texts(r->gguf, "tokenizer.ggml.tokens", true, r->error, &r->tokens));
  RUNG_TRY(read_texts(r->gguf, "tokenizer.ggml.merges", false, r->error, &r->merges));
  desc->count = desc->text_count = r->tokens.count;
  desc->texts = r->tokens.text;
  desc->lengths = r->tokens.length;
  desc->merges = r->merges.text;
  desc->merge_lengths = r->merges.length;
  desc->merge_count = r->merges.count;
  rung_gguf_entry entry;
  if (rung_gguf_has(r->gguf, "tokenizer.ggml.scores")) {
    RUNG_TRY(rung_gguf_get_array(r->gguf, "tokenizer.ggml.scores", RUNG_GGUF_FLOAT, r->error, &entry));
    if (entry.kind != RUNG_GGUF_F32)
      return rung_fail(r->error, RUNG_TYPE_MISMATCH, "tokenizer.ggml.scores is an array of %s, expected f32",
                       rung_gguf_kind_name(entry.kind));
    desc->scores = entry.data;
    desc->score_count = (size_t)entry.count;
  }
  if (rung_gguf_has(r->gguf, "tokenizer.ggml.token_type")) {
    RUNG_TRY(rung_gguf_get_array(r->gguf, "tokenizer.ggml.token_type", RUNG_GGUF_INTEGER, r->error, &entry));
    if (entry.kind != RUNG_GGUF_I32 && entry.kind != RUNG_GGUF_U32)
      return rung_fail(r->error, RUNG_TYPE_MISMATCH, "tokenizer.ggml.token_type is an array of %s, expected i32",
                       rung_gguf_kind_name(entry.kind));
    desc->types = entry.data;
    desc->type_count = (size_t)entry.count;
  }
  return RUNG_OK;
}

static rung_status make(reading *r, rung_tokenizer **out) {
  rung_tokenizer_desc *desc = &r->desc;
  RUNG_TRY(copy_text(r->gguf, "tokenizer.ggml.model", true, r->model, sizeof r->model, r->error));
  RUNG_TRY(copy_text(r->gguf, "tokenizer.ggml.pre", false, r->pre, sizeof r->pre, r->error));
  RUNG_TRY(read_arrays(r));
  RUNG_TRY(read_ids(r->gguf, desc, r->error));
  RUNG_TRY(find_strips(r));
  desc->model = r->model;
  desc->pre = r->pre[0] ? r->pre : NULL;
  for (size_t i = 0; i < RUNG_COUNT(made_of_steps); i++) {
    if (strcmp(made_of_steps[i].model, r->model) != 0) continue;
    desc->use_steps = desc->by_types = true;
    RUNG_TRY(made_of_steps[i].make(r));
    break;
  }
  return rung_tokenizer_create(rung_gguf_host(r->gguf), desc, r->error, out);
}

rung_status rung_gguf_tokenizer(const rung_gguf *gguf, rung_error *error, rung_tokenizer **out_tokenizer) {
  rung_host *host = rung_gguf_host(gguf);
  reading r = {.gguf = gguf, .error = error, .desc = rung_tokenizer_desc_default()};
  const rung_status status = make(&r, out_tokenizer);
  free_texts(host, &r.tokens);
  free_texts(host, &r.merges);
  rung_host_free(host, RUNG_MEMORY_host, r.strips, r.strip_count * sizeof *r.strips);
  rung_host_free(host, RUNG_MEMORY_host, r.scores, r.desc.count * sizeof *r.scores);
  (void)rung_gguf_release_metadata(gguf); /* texts that are asked for come back page by page */
  return status;
}
