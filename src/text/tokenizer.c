/* SPDX-License-Identifier: MIT
 * The tokeniser: checks a description, puts vocabulary, special tokens and model together, and walks a text. */
#include "text/tokenizer.h"

#include "text/tokenizer_parts.h"

/* The list of models. */
static const rung_text_model *const models[] = {&rung_text_model_bpe,       &rung_text_model_spm,
                                                &rung_text_model_pairs,     &rung_text_model_unigram,
                                                &rung_text_model_wordpiece, &rung_text_model_wordlevel};

rung_tokenizer_desc rung_tokenizer_desc_default(void) {
  const int64_t none = RUNG_TOKEN_NONE;
  return (rung_tokenizer_desc){
      .size = sizeof(rung_tokenizer_desc),
      .ids = {none, none, none, none, none, none, none, none},
      .add_bos = RUNG_CHOICE_DEFAULT,
      .add_eos = RUNG_CHOICE_DEFAULT,
      .add_space_prefix = RUNG_CHOICE_DEFAULT,
      .unknown = none,
  };
}

static const rung_text_model *find_model(const char *name) {
  for (size_t m = 0; name && m < RUNG_COUNT(models); m++)
    if (strcmp(models[m]->name, name) == 0) return models[m];
  return NULL;
}

static rung_status check_desc(const rung_tokenizer_desc *desc, rung_error *error, const rung_text_model **out_model) {
  if (!desc || desc->size != sizeof *desc)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "tokeniser: the description's size is not set");
  const rung_text_model *model = find_model(desc->model);
  if (!model)
    return rung_fail(error, RUNG_UNSUPPORTED, "model: the tokeniser model \"%.64s\" is not known",
                     desc->model ? desc->model : "");
  if (model->needs_steps && !desc->use_steps)
    return rung_fail(error, RUNG_UNSUPPORTED, "model: a \"%s\" tokeniser is made of steps", model->name);
  if (model->needs_scores && !desc->scores)
    return rung_fail(error, RUNG_CORRUPT_FILE, "scores: missing, a \"%s\" tokeniser needs them", model->name);
  if (model->needs_merges && desc->merge_count && (!desc->merges || !desc->merge_lengths))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "merges: no texts given");
  const rung_choice choices[] = {desc->add_bos, desc->add_eos, desc->add_space_prefix};
  for (size_t i = 0; i < RUNG_COUNT(choices); i++)
    if ((int)choices[i] < -1 || (int)choices[i] > 1)
      return rung_fail(error, RUNG_INVALID_ARGUMENT, "add_bos, add_eos or add_space_prefix is %d", (int)choices[i]);
  *out_model = model;
  return RUNG_OK;
}

static rung_status check_ids(const rung_token_ids *ids, int64_t model, size_t count, rung_error *error) {
  const struct {
    const char *name;
    int64_t id;
  } all[] = {{"bos", ids->bos},
             {"eos", ids->eos},
             {"eot", ids->eot},
             {"eom", ids->eom},
             {"unknown", ids->unknown},
             {"padding", ids->pad},
             {"seperator", ids->separator} /* GGUF spells it so */,
             {"mask", ids->mask},
             {"unk", model}};
  for (size_t i = 0; i < RUNG_COUNT(all); i++)
    if (all[i].id != RUNG_TOKEN_NONE && (all[i].id < 0 || (uint64_t)all[i].id >= count))
      return rung_fail(error, RUNG_OUT_OF_RANGE, "%s_token_id: %lld is outside the vocabulary of %zu tokens",
                       all[i].name, (long long)all[i].id, count);
  return RUNG_OK;
}

/* The model's default for a role that the file leaves open, if the vocabulary is that large. */
static void fill(int64_t *id, int32_t usual, size_t count) {
  if (*id == RUNG_TOKEN_NONE && (size_t)usual < count) *id = usual;
}

static bool decide(rung_choice said, rung_choice named, bool usual) {
  if (said != RUNG_CHOICE_DEFAULT) return said == RUNG_CHOICE_YES;
  return named != RUNG_CHOICE_DEFAULT ? named == RUNG_CHOICE_YES : usual;
}

static rung_status copy_ids(rung_ids *to, rung_host *host, const int32_t *ids, size_t count, size_t tokens,
                            rung_error *error) {
  rung_ids_init(to, host);
  for (size_t i = 0; i < count; i++) {
    if (ids[i] < 0 || (size_t)ids[i] >= tokens)
      return rung_fail(error, RUNG_OUT_OF_RANGE, "post_processor: id %d is outside the vocabulary of %zu", (int)ids[i],
                       tokens);
    RUNG_TRY(rung_ids_add(to, ids[i], error));
  }
  return RUNG_OK;
}

/* The pipeline of a description whose special tokens are those that types say. */
static rung_status pipeline_by_types(rung_tokenizer *t, const rung_tokenizer_desc *desc, rung_error *error) {
  const rung_vocab *vocab = &t->vocab;
  size_t count = 0, n = 0;
  for (uint32_t id = 0; id < vocab->count; id++) count += rung_special_is(vocab, id) && vocab->spans[id].length;
  rung_added_token *added = rung_host_array(t->host, count, sizeof *added);
  if (!added) return rung_fail(error, RUNG_OUT_OF_MEMORY, "tokens: %zu special tokens", count);
  for (uint32_t id = 0; id < vocab->count; id++) {
    if (!rung_special_is(vocab, id) || !vocab->spans[id].length) continue;
    added[n] = (rung_added_token){.id = (int32_t)id};
    for (size_t i = 0; i < desc->added_count; i++)
      if (desc->added[i].id == (int32_t)id) added[n] = desc->added[i];
    n++;
  }
  rung_tokenizer_desc with = *desc;
  with.added = added;
  with.added_count = count;
  const rung_status status = rung_pipeline_init(&t->pipeline, vocab, &with, error);
  rung_host_free(t->host, RUNG_MEMORY_host, added, count * sizeof *added);
  return status;
}

static rung_status build_steps(rung_tokenizer *t, const rung_tokenizer_desc *desc, rung_error *error) {
  rung_special_roles(&t->vocab, &t->ids, desc->by_types);
  t->truncation = desc->truncation;
  RUNG_TRY(copy_ids(&t->before, t->host, desc->before, desc->before_count, desc->count, error));
  RUNG_TRY(copy_ids(&t->after, t->host, desc->after, desc->after_count, desc->count, error));
  /* As far as they can say it: that a begin token comes first, an end token last. */
  t->add_bos = t->before.count && t->before.data[0] == t->ids.bos;
  t->add_eos = t->after.count && t->after.data[t->after.count - 1] == t->ids.eos;
  RUNG_TRY(desc->by_types ? pipeline_by_types(t, desc, error)
                          : rung_pipeline_init(&t->pipeline, &t->vocab, desc, error));
  RUNG_TRY(rung_detokeniser_create(t->host, desc->decoders, desc->decoder_count, error, &t->detokeniser));
  return t->model->create(&t->vocab, desc, &t->ids, error, &t->self);
}

static rung_status build(rung_tokenizer *t, const rung_tokenizer_desc *desc, rung_error *error) {
  const rung_text_model *model = t->model;
  t->ids = desc->ids;
  RUNG_TRY(rung_vocab_init(&t->vocab, t->host, desc, error));
  RUNG_TRY(check_ids(&t->ids, desc->unknown, desc->count, error));
  t->use_steps = desc->use_steps;
  if (t->use_steps) return build_steps(t, desc, error);
  if (model->usual) {
    fill(&t->ids.bos, model->usual->bos, desc->count);
    fill(&t->ids.eos, model->usual->eos, desc->count);
    fill(&t->ids.unknown, model->usual->unknown, desc->count);
  }
  rung_special_roles(&t->vocab, &t->ids, true);
  t->add_bos =
      decide(desc->add_bos, model->adds_bos ? model->adds_bos(desc->pre) : RUNG_CHOICE_DEFAULT, model->add_bos);
  t->add_eos = decide(desc->add_eos, RUNG_CHOICE_DEFAULT, false);
  t->add_space_prefix = decide(desc->add_space_prefix, RUNG_CHOICE_DEFAULT, model->add_space_prefix);
  if (t->add_bos && t->ids.bos < 0)
    return rung_fail(error, RUNG_CORRUPT_FILE, "add_bos_token is set, but there is no bos_token_id");
  if (t->add_eos && t->ids.eos < 0)
    return rung_fail(error, RUNG_CORRUPT_FILE, "add_eos_token is set, but there is no eos_token_id");
  RUNG_TRY(rung_special_init(&t->special, &t->vocab, desc->added, desc->added_count, error));
  return model->create(&t->vocab, desc, &t->ids, error, &t->self);
}

rung_status rung_tokenizer_create(rung_host *host, const rung_tokenizer_desc *desc, rung_error *error,
                                  rung_tokenizer **out_tokenizer) {
  const rung_text_model *model = NULL;
  RUNG_TRY(check_desc(desc, error, &model));
  rung_tokenizer *t = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *t, 0);
  if (!t) return rung_fail(error, RUNG_OUT_OF_MEMORY, "tokeniser");
  t->host = host;
  t->model = model;
  rung_host_retain(host);
  atomic_init(&t->references, 1);
  const rung_status status = build(t, desc, error);
  if (status) {
    rung_tokenizer_release(t);
    return status;
  }
  *out_tokenizer = t;
  return RUNG_OK;
}

void rung_tokenizer_retain(rung_tokenizer *t) { atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed); }

void rung_tokenizer_release(rung_tokenizer *t) {
  if (!t || atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) > 1) return;
  rung_host *host = t->host;
  if (t->self) t->model->destroy(&t->vocab, t->self);
  rung_special_finish(&t->special);
  rung_pipeline_finish(&t->pipeline);
  rung_detokeniser_destroy(t->detokeniser);
  rung_ids_finish(&t->before);
  rung_ids_finish(&t->after);
  rung_vocab_finish(&t->vocab);
  rung_host_free(host, RUNG_MEMORY_host, t, sizeof *t);
  rung_host_release(host);
}

void rung_ids_init(rung_ids *ids, rung_host *host) { *ids = (rung_ids){.host = host}; }

void rung_ids_finish(rung_ids *ids) {
  if (ids->data) rung_host_free(ids->host, RUNG_MEMORY_host, ids->data, ids->capacity * sizeof *ids->data);
  *ids = (rung_ids){.host = ids->host};
}

rung_status rung_ids_add(rung_ids *ids, int32_t id, rung_error *error) {
  if (ids->count == ids->capacity) {
    void *data = ids->data;
    if (!rung_host_grow(ids->host, &data, &ids->capacity, ids->count + 1, sizeof *ids->data))
      return rung_fail(error, RUNG_OUT_OF_MEMORY, "a list of %zu token ids", ids->count + 1);
    ids->data = data;
  }
  ids->data[ids->count++] = id;
  return RUNG_OK;
}

static rung_status plain_text(const void *self, const char *text, size_t length, bool first, rung_error *error,
                              rung_ids *ids) {
  const rung_tokenizer *t = self;
  return t->model->encode(t->self, &t->vocab, text, length, first, error, ids);
}

static rung_status encode_by_steps(const rung_tokenizer *t, const char *text, size_t length, unsigned flags,
                                   rung_error *error, rung_ids *ids) {
  const bool add = flags & RUNG_ENCODE_ADD_SPECIAL;
  for (size_t i = 0; add && i < t->before.count; i++) RUNG_TRY(rung_ids_add(ids, t->before.data[i], error));
  RUNG_TRY(rung_pipeline_encode(&t->pipeline, &t->vocab, text, length, flags & RUNG_ENCODE_PARSE_SPECIAL, plain_text, t,
                                error, ids));
  for (size_t i = 0; add && i < t->after.count; i++) RUNG_TRY(rung_ids_add(ids, t->after.data[i], error));
  return RUNG_OK;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Special tokens first; what lies between them goes to the model. */
static rung_status encode(const rung_tokenizer *t, const char *text, size_t length, unsigned flags, rung_error *error,
                          rung_ids *ids) {
  if ((flags & RUNG_ENCODE_ADD_SPECIAL) && t->add_bos) RUNG_TRY(rung_ids_add(ids, (int32_t)t->ids.bos, error));
  bool prefix = t->add_space_prefix; /* at the beginning and after each special token */
  for (size_t from = 0; from < length;) {
    size_t at = length;
    const rung_special_entry *entry =
        rung_special_next(&t->special, flags & RUNG_ENCODE_PARSE_SPECIAL ? NULL : &t->vocab, text, length, from, &at);
    size_t end = at;
    while (entry && entry->lstrip && end > from && is_space(text[end - 1])) end--;
    if (end > from) {
      RUNG_TRY(t->model->encode(t->self, &t->vocab, text + from, end - from, prefix, error, ids));
      prefix = false;
    }
    from = at;
    if (!entry) continue;
    RUNG_TRY(rung_ids_add(ids, entry->id, error));
    from += entry->length;
    while (entry->rstrip && from < length && is_space(text[from])) from++;
    prefix = t->add_space_prefix;
  }
  if ((flags & RUNG_ENCODE_ADD_SPECIAL) && t->add_eos) RUNG_TRY(rung_ids_add(ids, (int32_t)t->ids.eos, error));
  return RUNG_OK;
}

rung_status rung_tokenizer_encode(const rung_tokenizer *tokenizer, const char *text, size_t length, unsigned flags,
                                  rung_error *error, rung_ids *ids) {
  if (length > RUNG_ENCODE_MOST_BYTES)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "a text of %zu bytes, at most %d are encoded at once", length,
                     (int)RUNG_ENCODE_MOST_BYTES);
  const size_t before = ids->count;
  const rung_status status = tokenizer->use_steps ? encode_by_steps(tokenizer, text, length, flags, error, ids)
                                                  : encode(tokenizer, text, length, flags, error, ids);
  if (status) ids->count = before;
  return status;
}

int32_t rung_tokenizer_find(const rung_tokenizer *tokenizer, const char *text, size_t length) {
  return rung_vocab_find(&tokenizer->vocab, text, length);
}

static bool known(const rung_tokenizer *tokenizer, int32_t id) {
  return id >= 0 && (uint32_t)id < tokenizer->vocab.count;
}

const char *rung_tokenizer_text(const rung_tokenizer *tokenizer, int32_t id, size_t *out_length) {
  if (!known(tokenizer, id)) return NULL;
  *out_length = tokenizer->vocab.spans[id].length;
  return rung_vocab_text(&tokenizer->vocab, (uint32_t)id);
}

rung_token_type rung_tokenizer_type(const rung_tokenizer *tokenizer, int32_t id) {
  return known(tokenizer, id) ? rung_vocab_type(&tokenizer->vocab, (uint32_t)id) : RUNG_TOKEN_UNDEFINED;
}

bool rung_tokenizer_is_eog(const rung_tokenizer *tokenizer, int32_t id) {
  return known(tokenizer, id) && (tokenizer->vocab.flags[id] & RUNG_VOCAB_EOG);
}

int32_t rung_tokenizer_count(const rung_tokenizer *tokenizer) { return (int32_t)tokenizer->vocab.count; }
const rung_token_ids *rung_tokenizer_ids(const rung_tokenizer *tokenizer) { return &tokenizer->ids; }
bool rung_tokenizer_adds_bos(const rung_tokenizer *tokenizer) { return tokenizer->add_bos; }
bool rung_tokenizer_adds_eos(const rung_tokenizer *tokenizer) { return tokenizer->add_eos; }
int64_t rung_tokenizer_truncation(const rung_tokenizer *tokenizer) { return tokenizer->truncation; }

const int32_t *rung_tokenizer_before(const rung_tokenizer *tokenizer, size_t *out_count) {
  *out_count = tokenizer->before.count;
  return tokenizer->before.data;
}
const int32_t *rung_tokenizer_after(const rung_tokenizer *tokenizer, size_t *out_count) {
  *out_count = tokenizer->after.count;
  return tokenizer->after.data;
}
