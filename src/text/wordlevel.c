/* SPDX-License-Identifier: MIT
 * WordLevel: a word is a token, or unknown. */
#include "text/cut.h"
#include "text/model.h"

typedef struct wordlevel {
  rung_cutter *cutter;
  int32_t unknown;
} wordlevel;

static rung_status create(const rung_vocab *vocab, const rung_tokenizer_desc *desc, const rung_token_ids *ids,
                          rung_error *error, void **out_self) {
  (void)ids;
  wordlevel *w = rung_host_alloc(vocab->host, RUNG_MEMORY_host, sizeof *w, 0);
  if (!w) return rung_fail(error, RUNG_OUT_OF_MEMORY, "WordLevel");
  *out_self = w;
  if (desc->unknown < 0) return rung_fail(error, RUNG_CORRUPT_FILE, "unk_token: WordLevel needs one in the vocabulary");
  w->unknown = (int32_t)desc->unknown;
  RUNG_TRY(rung_cutter_create(vocab->host, "pre_tokenizer", desc->cuts, desc->cut_count, error, &w->cutter));
  if (rung_cutter_is_byte_level(w->cutter))
    return rung_fail(error, RUNG_UNSUPPORTED, "pre_tokenizer: ByteLevel with a WordLevel model");
  return RUNG_OK;
}

static void destroy(const rung_vocab *vocab, void *self) {
  wordlevel *w = self;
  if (!w) return;
  rung_cutter_destroy(w->cutter);
  rung_host_free(vocab->host, RUNG_MEMORY_host, w, sizeof *w);
}

typedef struct run {
  const wordlevel *w;
  const rung_vocab *vocab;
  rung_ids *ids;
} run;

static rung_status word(void *self, const char *text, size_t length, rung_error *error) {
  run *r = self;
  const int32_t id = rung_vocab_find_word(r->vocab, text, length);
  return rung_ids_add(r->ids, id < 0 ? r->w->unknown : id, error);
}

static rung_status encode(const void *self, const rung_vocab *vocab, const char *text, size_t length, bool first,
                          rung_error *error, rung_ids *ids) {
  run r = {self, vocab, ids};
  return rung_cutter_run(r.w->cutter, text, length, first, word, &r, error);
}

const rung_text_model rung_text_model_wordlevel = {
    .name = "WordLevel",
    .needs_steps = true,
    .create = create,
    .destroy = destroy,
    .encode = encode,
};
