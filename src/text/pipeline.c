/* SPDX-License-Identifier: MIT
 * Added tokens and normalisers around a model. */
#include "text/pipeline.h"

#include "text/unicode.h"
#include "text/utf8.h"

/* ---- creation ---- */

static rung_status check_added(const rung_tokenizer_desc *desc, rung_error *error) {
  for (size_t i = 0; i < desc->added_count; i++) {
    const int32_t id = desc->added[i].id;
    if (id < 0 || (size_t)id >= desc->count)
      return rung_fail(error, RUNG_OUT_OF_RANGE, "added_tokens[%zu]: id %d is outside the vocabulary of %zu", i,
                       (int)id, desc->count);
    if (!desc->lengths[id]) return rung_fail(error, RUNG_CORRUPT_FILE, "added_tokens[%zu]: an empty text", i);
  }
  return RUNG_OK;
}

/* The texts of tokens that are looked for in normalised text are normalised once. */
static rung_status normalise_entries(rung_pipeline *p, rung_special_entry *entries, size_t count, rung_error *error) {
  rung_normal_work work;
  rung_normal_work_init(&work, p->host);
  rung_text all;
  rung_text_init(&all, p->host);
  rung_status status = RUNG_OK;
  for (size_t i = 0; i < count && !status; i++) {
    rung_slice out = {entries[i].text, entries[i].length};
    bool first;
    if (rung_utf8_valid_prefix((const uint8_t *)out.text, out.length) < out.length)
      status = rung_fail(error, RUNG_CORRUPT_FILE, "added_tokens: token %d is not UTF-8", (int)entries[i].id);
    else if (p->normaliser)
      status = rung_normaliser_run(p->normaliser, out.text, out.length, &work, error, &out, &first);
    if (!status && !out.length)
      status = rung_fail(error, RUNG_CORRUPT_FILE, "added_tokens: nothing is left of token %d when it is normalised",
                         (int)entries[i].id);
    if (!status && out.length > UINT32_MAX)
      status = rung_fail(error, RUNG_UNSUPPORTED, "added_tokens: token %d is too long", (int)entries[i].id);
    if (status) break;
    rung_text_add(&all, out.text, out.length);
    entries[i].length = (uint32_t)out.length;
    status = rung_text_status(&all, error);
  }
  size_t used = 0;
  for (size_t i = 0; i < count && !status; i++) {
    entries[i].text = all.data + used;
    used += entries[i].length;
  }
  rung_normal_work_finish(&work);
  p->normal_text = all.data; /* freed with the pipeline */
  p->normal_bytes = all.capacity;
  return status;
}

static rung_status sort_added(rung_pipeline *p, const rung_vocab *vocab, rung_special_entry *entries,
                              rung_error *error) {
  size_t raw = 0, normal = p->added_count; /* from both ends */
  for (size_t i = 0; i < p->added_count; i++) {
    const uint32_t id = (uint32_t)p->added[i].id;
    const rung_special_entry entry = {
        .text = rung_vocab_text(vocab, id), .length = vocab->spans[id].length, .id = (int32_t)id, .order = (uint32_t)i};
    entries[p->added[i].normalised ? --normal : raw++] = entry;
  }
  RUNG_TRY(rung_special_init_list(&p->raw, p->host, entries, raw, error));
  RUNG_TRY(normalise_entries(p, entries + normal, p->added_count - normal, error));
  return rung_special_init_list(&p->normal, p->host, entries + normal, p->added_count - normal, error);
}

rung_status rung_pipeline_init(rung_pipeline *p, const rung_vocab *vocab, const rung_tokenizer_desc *desc,
                               rung_error *error) {
  p->host = vocab->host;
  p->repair_bytes = desc->by_types;
  RUNG_TRY(check_added(desc, error));
  if (desc->normaliser_count)
    RUNG_TRY(rung_normaliser_create(p->host, desc->normalisers, desc->normaliser_count, error, &p->normaliser));
  p->added_count = desc->added_count;
  p->added = rung_host_array(p->host, p->added_count, sizeof *p->added);
  rung_special_entry *entries = rung_host_array(p->host, p->added_count, sizeof *entries);
  rung_status status;
  if (p->added && entries) {
    if (p->added_count) memcpy(p->added, desc->added, p->added_count * sizeof *p->added);
    status = sort_added(p, vocab, entries, error);
  } else {
    status = rung_fail(error, RUNG_OUT_OF_MEMORY, "added_tokens: %zu", p->added_count);
  }
  if (entries) rung_host_free(p->host, RUNG_MEMORY_host, entries, p->added_count * sizeof *entries);
  return status;
}

void rung_pipeline_finish(rung_pipeline *p) {
  if (!p->host) return;
  rung_normaliser_destroy(p->normaliser);
  rung_special_finish(&p->raw);
  rung_special_finish(&p->normal);
  if (p->added) rung_host_free(p->host, RUNG_MEMORY_host, p->added, p->added_count * sizeof *p->added);
  rung_host_free(p->host, RUNG_MEMORY_host, p->normal_text, p->normal_bytes);
  *p = (rung_pipeline){0};
}

const rung_special_entry *rung_pipeline_normal(const rung_pipeline *p, int32_t id) {
  for (uint32_t i = 0; p->normaliser && i < p->normal.count; i++)
    if (p->normal.entries[i].id == id) return &p->normal.entries[i];
  return NULL;
}

/* ---- encoding ---- */

typedef struct run {
  const rung_pipeline *p;
  const rung_vocab *vocab;
  bool all;
  rung_plain_fn *plain;
  const void *self;
  rung_normal_work work;
  rung_error *error;
  rung_ids *ids;
} run;

static bool class_at(const char *text, size_t length, rung_unicode_class class_) {
  uint32_t c;
  return length && rung_utf8_read((const uint8_t *)text, length, &c) > 0 && rung_unicode_is(c, class_);
}
static size_t last_character(const char *text, size_t length) {
  size_t at = length - 1;
  while (at > 0 && ((uint8_t)text[at] & 0xC0) == 0x80) at--;
  return at;
}
static bool class_before(const char *text, size_t at, rung_unicode_class class_) {
  if (at == 0) return false;
  const size_t start = last_character(text, at);
  return class_at(text + start, at - start, class_);
}

/* Where a token that was found really begins and ends; false if it does not count. `done`: text that is used up. */
static bool accept(const run *w, const rung_special_entry *entry, const char *text, size_t length, size_t done,
                   size_t *start, size_t *end) {
  const rung_added_token *token = &w->p->added[entry->order];
  if (!w->all && rung_vocab_type(w->vocab, (uint32_t)entry->id) != RUNG_TOKEN_USER_DEFINED) return false;
  if (token->single_word &&
      (class_before(text, *start, RUNG_UNICODE_WORD) || class_at(text + *end, length - *end, RUNG_UNICODE_WORD)))
    return false;
  while (token->lstrip && *start > done && class_before(text, *start, RUNG_UNICODE_SPACE))
    *start = last_character(text, *start);
  while (token->rstrip && class_at(text + *end, length - *end, RUNG_UNICODE_SPACE)) {
    uint32_t c;
    *end += (size_t)rung_utf8_read((const uint8_t *)text + *end, length - *end, &c);
  }
  return true;
}

static rung_status cut_raw(run *w, const char *text, size_t length, bool first);

/* Takes the tokens of one list out of a text; what lies between goes to the normaliser or to the model. */
static rung_status take_out(run *w, const rung_special *list, const char *text, size_t length, bool first) {
  size_t done = 0, from = 0, at = 0;
  const rung_special_entry *entry;
  while ((entry = rung_special_next(list, NULL, text, length, from, &at)) != NULL) {
    size_t start = at, end = at + entry->length;
    from = end;
    if (!accept(w, entry, text, length, done, &start, &end)) continue;
    if (start > done) {
      if (list == &w->p->raw)
        RUNG_TRY(cut_raw(w, text + done, start - done, first && done == 0));
      else
        RUNG_TRY(w->plain(w->self, text + done, start - done, first && done == 0, w->error, w->ids));
    }
    RUNG_TRY(rung_ids_add(w->ids, entry->id, w->error));
    done = end;
  }
  if (done >= length) return RUNG_OK;
  if (list == &w->p->raw) return cut_raw(w, text + done, length - done, first && done == 0);
  return w->plain(w->self, text + done, length - done, first && done == 0, w->error, w->ids);
}

static rung_status cut_raw(run *w, const char *text, size_t length, bool first) {
  rung_slice now = {text, length};
  bool kept = true;
  if (w->p->normaliser) RUNG_TRY(rung_normaliser_run(w->p->normaliser, text, length, &w->work, w->error, &now, &kept));
  return now.length ? take_out(w, &w->p->normal, now.text, now.length, first && kept) : RUNG_OK;
}

/* The text with U+FFFD for each sequence of bytes that cannot become a character, or for each of its bytes. */
static void repair(const uint8_t *bytes, size_t length, bool each, rung_text *out) {
  while (length > 0) {
    const size_t good = rung_utf8_valid_prefix(bytes, length);
    rung_text_add(out, (const char *)bytes, good);
    if (good == length) return;
    uint32_t c;
    const int n = rung_utf8_read(bytes + good, length - good, &c);
    rung_text_add(out, "\xEF\xBF\xBD", 3);
    const size_t step = each ? good + 1 : n < 0 ? good + (size_t)-n : length;
    bytes += step;
    length -= step;
  }
}

rung_status rung_pipeline_encode(const rung_pipeline *p, const rung_vocab *vocab, const char *text, size_t length,
                                 bool all, rung_plain_fn *plain, const void *self, rung_error *error, rung_ids *ids) {
  if (!length) return RUNG_OK;
  run w = {.p = p, .vocab = vocab, .all = all, .plain = plain, .self = self, .error = error, .ids = ids};
  rung_text repaired;
  rung_text_init(&repaired, p->host);
  rung_normal_work_init(&w.work, p->host);
  if (rung_utf8_valid_prefix((const uint8_t *)text, length) < length) {
    repair((const uint8_t *)text, length, p->repair_bytes, &repaired);
    text = repaired.data;
    length = repaired.length;
  }
  rung_status status = rung_text_status(&repaired, error);
  if (!status) status = take_out(&w, &p->raw, text, length, true);
  rung_normal_work_finish(&w.work);
  rung_text_finish(&repaired);
  return status;
}
