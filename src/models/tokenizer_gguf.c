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

static rung_status make(const rung_gguf *gguf, texts *tokens, texts *merges, rung_error *error, rung_tokenizer **out) {
  char model[32], pre[64];
  rung_tokenizer_desc desc = rung_tokenizer_desc_default();
  RUNG_TRY(copy_text(gguf, "tokenizer.ggml.model", true, model, sizeof model, error));
  RUNG_TRY(copy_text(gguf, "tokenizer.ggml.pre", false, pre, sizeof pre, error));
  RUNG_TRY(read_texts(gguf, "tokenizer.ggml.tokens", true, error, tokens));
  RUNG_TRY(read_texts(gguf, "tokenizer.ggml.merges", false, error, merges));
  RUNG_TRY(read_ids(gguf, &desc, error));
  desc.model = model;
  desc.pre = pre[0] ? pre : NULL;
  desc.count = desc.text_count = tokens->count;
  desc.texts = tokens->text;
  desc.lengths = tokens->length;
  desc.merges = merges->text;
  desc.merge_lengths = merges->length;
  desc.merge_count = merges->count;
  rung_gguf_entry entry;
  if (rung_gguf_has(gguf, "tokenizer.ggml.scores")) {
    RUNG_TRY(rung_gguf_get_array(gguf, "tokenizer.ggml.scores", RUNG_GGUF_FLOAT, error, &entry));
    if (entry.kind != RUNG_GGUF_F32)
      return rung_fail(error, RUNG_TYPE_MISMATCH, "tokenizer.ggml.scores is an array of %s, expected f32",
                       rung_gguf_kind_name(entry.kind));
    desc.scores = entry.data;
    desc.score_count = (size_t)entry.count;
  }
  if (rung_gguf_has(gguf, "tokenizer.ggml.token_type")) {
    RUNG_TRY(rung_gguf_get_array(gguf, "tokenizer.ggml.token_type", RUNG_GGUF_INTEGER, error, &entry));
    if (entry.kind != RUNG_GGUF_I32 && entry.kind != RUNG_GGUF_U32)
      return rung_fail(error, RUNG_TYPE_MISMATCH, "tokenizer.ggml.token_type is an array of %s, expected i32",
                       rung_gguf_kind_name(entry.kind));
    desc.types = entry.data;
    desc.type_count = (size_t)entry.count;
  }
  return rung_tokenizer_create(rung_gguf_host(gguf), &desc, error, out);
}

rung_status rung_gguf_tokenizer(const rung_gguf *gguf, rung_error *error, rung_tokenizer **out_tokenizer) {
  texts tokens = {0}, merges = {0};
  const rung_status status = make(gguf, &tokens, &merges, error, out_tokenizer);
  free_texts(rung_gguf_host(gguf), &tokens);
  free_texts(rung_gguf_host(gguf), &merges);
  (void)rung_gguf_release_metadata(gguf); /* texts that are asked for come back page by page */
  return status;
}
