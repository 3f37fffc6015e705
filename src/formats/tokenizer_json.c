/* SPDX-License-Identifier: MIT
 * tokenizer.json: the model, what goes around a text, roles; then all of it at once to the tokeniser. */
#include "formats/tokenizer_json.h"

#include <stdio.h>
#include <string.h>

#include "base/map_file.h"
#include "formats/tokenizer_json_internal.h"

/* ---- members ---- */

rung_status rung_tokenizer_wrong(rung_tokenizer_reader *r, const char *where, const char *why) {
  return rung_fail(r->error, RUNG_CORRUPT_FILE, "%s: %s", where, why);
}

static void keep_members(rung_tokenizer_members *m, rung_json object) {
  rung_json name, value;
  m->object = object;
  for (rung_json_walk walk = rung_json_begin(object); rung_json_next(&walk, &name, &value); m->count++) {
    if (m->count >= RUNG_COUNT(m->name)) continue;
    m->name[m->count] = name;
    m->value[m->count] = value;
  }
}

rung_json rung_tokenizer_look_up(const rung_tokenizer_reader *r, rung_json object, const char *key, bool *out_twice) {
  for (size_t i = 0; i < RUNG_COUNT(r->members); i++) {
    const rung_tokenizer_members *m = &r->members[i];
    if (!object.text || m->object.text != object.text || m->count > RUNG_COUNT(m->name)) continue;
    rung_json found = {0};
    *out_twice = false;
    for (size_t k = 0; k < m->count; k++) {
      if (!rung_json_equals(m->name[k], key)) continue;
      *out_twice = found.text != NULL;
      found = m->value[k];
    }
    return found;
  }
  return rung_json_find(object, key, out_twice);
}

rung_status rung_tokenizer_member(rung_tokenizer_reader *r, rung_json object, const char *where, const char *key,
                                  rung_json_kind kind, bool required, rung_json *out) {
  bool twice;
  *out = (rung_json){0};
  if (rung_json_kind_of(object) != RUNG_JSON_OBJECT) return rung_tokenizer_wrong(r, where, "expected an object");
  const rung_json value = rung_tokenizer_look_up(r, object, key, &twice);
  if (twice) return rung_fail(r->error, RUNG_CORRUPT_FILE, "%s: \"%s\" is there twice", where, key);
  const rung_json_kind found = rung_json_kind_of(value);
  if (found == RUNG_JSON_NONE || found == RUNG_JSON_NULL) {
    if (required) return rung_fail(r->error, RUNG_CORRUPT_FILE, "%s: \"%s\" is missing", where, key);
    return RUNG_OK;
  }
  if (found != kind)
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "%s: \"%s\" is %s, expected %s", where, key,
                     rung_json_kind_name(found), rung_json_kind_name(kind));
  *out = value;
  return RUNG_OK;
}

rung_status rung_tokenizer_flag(rung_tokenizer_reader *r, rung_json object, const char *where, const char *key,
                                bool usual, bool *out) {
  rung_json value;
  RUNG_TRY(rung_tokenizer_member(r, object, where, key, RUNG_JSON_BOOL, false, &value));
  *out = value.text ? value.text[0] == 't' : usual;
  return RUNG_OK;
}

rung_status rung_tokenizer_number(rung_tokenizer_reader *r, rung_json object, const char *where, const char *key,
                                  int64_t low, int64_t high, int64_t usual, int64_t *out) {
  rung_json value;
  RUNG_TRY(rung_tokenizer_member(r, object, where, key, RUNG_JSON_NUMBER, false, &value));
  *out = usual;
  if (!value.text) return RUNG_OK;
  if (!rung_json_i64(value, out) || *out < low || *out > high)
    return rung_fail(r->error, RUNG_OUT_OF_RANGE, "%s: \"%s\" is %.*s, expected %lld to %lld", where, key,
                     (int)(value.length < 40 ? value.length : 40), value.text, (long long)low, (long long)high);
  return RUNG_OK;
}

rung_slice rung_tokenizer_keep(rung_tokenizer_reader *r, rung_json string) {
  char *at = r->store + r->used;
  const size_t length = rung_json_string(string, at, r->store_bytes - r->used);
  r->used += length;
  return (rung_slice){at, length};
}

rung_status rung_tokenizer_kind(rung_tokenizer_reader *r, rung_json object, const char *where, char out[64]) {
  rung_json type;
  RUNG_TRY(rung_tokenizer_member(r, object, where, "type", RUNG_JSON_STRING, true, &type));
  const size_t length = rung_json_string(type, out, 63);
  out[length < 63 ? length : 63] = 0;
  return RUNG_OK;
}

/* ---- post-processors ---- */

static rung_status add_id(rung_tokenizer_reader *r, rung_ids *to, int64_t id) {
  if (id < 0 || (uint64_t)id >= r->count)
    return rung_fail(r->error, RUNG_OUT_OF_RANGE, "post_processor: id %lld is outside the vocabulary of %zu",
                     (long long)id, r->count);
  return rung_ids_add(to, (int32_t)id, r->error);
}

/* ["text", id] under a key. */
static rung_status read_pair(rung_tokenizer_reader *r, rung_json object, const char *key, rung_ids *to) {
  rung_json pair, name, number;
  int64_t id;
  RUNG_TRY(rung_tokenizer_member(r, object, "post_processor", key, RUNG_JSON_ARRAY, true, &pair));
  rung_json_walk walk = rung_json_begin(pair);
  if (!rung_json_next(&walk, NULL, &name) || !rung_json_next(&walk, NULL, &number) || !rung_json_i64(number, &id))
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "post_processor: \"%s\" is not a text and an id", key);
  return add_id(r, to, id);
}

/* The ids of a special token of a template. */
static rung_status add_special(rung_tokenizer_reader *r, rung_json specials, rung_json piece, rung_ids *to) {
  static const char where[] = "post_processor.single";
  rung_json string, name, value, ids, entry = {0};
  RUNG_TRY(rung_tokenizer_member(r, piece, where, "id", RUNG_JSON_STRING, true, &string));
  const rung_slice text = rung_tokenizer_keep(r, string);
  for (rung_json_walk walk = rung_json_begin(specials); rung_json_next(&walk, &name, &value) && !entry.text;) {
    const rung_slice key = rung_tokenizer_keep(r, name);
    r->used -= key.length;
    if (key.length == text.length && memcmp(key.text, text.text, key.length) == 0) entry = value;
  }
  if (!entry.text) return rung_tokenizer_wrong(r, where, "a special token that special_tokens lacks");
  RUNG_TRY(rung_tokenizer_member(r, entry, "post_processor.special_tokens", "ids", RUNG_JSON_ARRAY, true, &ids));
  for (rung_json_walk walk = rung_json_begin(ids); rung_json_next(&walk, NULL, &value);) {
    int64_t id;
    if (!rung_json_i64(value, &id))
      return rung_tokenizer_wrong(r, "post_processor.special_tokens", "an id that is no whole number");
    RUNG_TRY(add_id(r, to, id));
  }
  return RUNG_OK;
}

static rung_status read_template(rung_tokenizer_reader *r, rung_json object, rung_ids *before, rung_ids *after) {
  static const char where[] = "post_processor.single";
  rung_json single, specials, piece, special, sequence, name;
  RUNG_TRY(rung_tokenizer_member(r, object, "post_processor", "single", RUNG_JSON_ARRAY, true, &single));
  RUNG_TRY(rung_tokenizer_member(r, object, "post_processor", "special_tokens", RUNG_JSON_OBJECT, true, &specials));
  bool text = false;
  for (rung_json_walk walk = rung_json_begin(single); rung_json_next(&walk, NULL, &piece);) {
    RUNG_TRY(rung_tokenizer_member(r, piece, where, "SpecialToken", RUNG_JSON_OBJECT, false, &special));
    RUNG_TRY(rung_tokenizer_member(r, piece, where, "Sequence", RUNG_JSON_OBJECT, !special.text, &sequence));
    if (special.text) {
      RUNG_TRY(add_special(r, specials, special, text ? after : before));
      continue;
    }
    RUNG_TRY(rung_tokenizer_member(r, sequence, where, "id", RUNG_JSON_STRING, true, &name));
    if (text || !rung_json_equals(name, "A"))
      return rung_fail(r->error, RUNG_UNSUPPORTED, "%s: a text other than one A", where);
    text = true;
  }
  return text ? RUNG_OK : rung_fail(r->error, RUNG_UNSUPPORTED, "%s: without the text A", where);
}

/* What one processor puts around a text. */
static rung_status read_around(rung_tokenizer_reader *r, rung_json object, const char *type, rung_ids *before,
                               rung_ids *after) {
  if (strcmp(type, "ByteLevel") == 0) return RUNG_OK; /* moves offsets only */
  if (strcmp(type, "TemplateProcessing") == 0) return read_template(r, object, before, after);
  if (strcmp(type, "BertProcessing") != 0 && strcmp(type, "RobertaProcessing") != 0)
    return rung_fail(r->error, RUNG_UNSUPPORTED, "post_processor: \"%s\" is not supported", type);
  RUNG_TRY(read_pair(r, object, "cls", before));
  return read_pair(r, object, "sep", after);
}

static rung_status read_post(rung_tokenizer_reader *r, rung_json object) {
  char type[64];
  RUNG_TRY(rung_tokenizer_kind(r, object, "post_processor", type));
  if (strcmp(type, "Sequence") == 0) {
    rung_json processors, processor;
    RUNG_TRY(rung_tokenizer_member(r, object, "post_processor", "processors", RUNG_JSON_ARRAY, true, &processors));
    for (rung_json_walk walk = rung_json_begin(processors); rung_json_next(&walk, NULL, &processor);)
      RUNG_TRY(read_post(r, processor));
    return RUNG_OK;
  }
  /* A later processor goes around what the ones before it made. */
  rung_ids before, after;
  rung_ids_init(&before, r->host);
  rung_ids_init(&after, r->host);
  rung_status status = read_around(r, object, type, &before, &after);
  for (size_t i = 0; i < r->before.count && !status; i++) status = rung_ids_add(&before, r->before.data[i], r->error);
  for (size_t i = 0; i < after.count && !status; i++) status = rung_ids_add(&r->after, after.data[i], r->error);
  rung_ids_finish(&after);
  if (status) {
    rung_ids_finish(&before);
    return status;
  }
  rung_ids_finish(&r->before);
  r->before = before;
  return RUNG_OK;
}

/* ---- the model ---- */

static rung_status read_unknown(rung_tokenizer_reader *r, rung_json model, const char *usual) {
  rung_json value;
  RUNG_TRY(rung_tokenizer_member(r, model, "model", "unk_token", RUNG_JSON_STRING, false, &value));
  const rung_slice text = value.text ? rung_tokenizer_keep(r, value) : (rung_slice){usual, strlen(usual)};
  r->desc.unknown = r->desc.ids.unknown = rung_tokenizer_id_of(r, text);
  if (text.length && r->desc.unknown < 0)
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "model.unk_token: \"%.*s\" is not in the vocabulary",
                     (int)(text.length < 64 ? text.length : 64), text.text);
  return RUNG_OK;
}

static rung_status read_word_piece(rung_tokenizer_reader *r, rung_json model) {
  rung_json prefix;
  RUNG_TRY(rung_tokenizer_member(r, model, "model", "continuing_subword_prefix", RUNG_JSON_STRING, false, &prefix));
  r->desc.word_prefix = prefix.text ? rung_tokenizer_keep(r, prefix) : (rung_slice){"##", 2};
  RUNG_TRY(
      rung_tokenizer_number(r, model, "model", "max_input_chars_per_word", 0, INT64_MAX, 100, &r->desc.longest_word));
  return read_unknown(r, model, "[UNK]");
}

static rung_status read_pairs(rung_tokenizer_reader *r, rung_json model) {
  rung_json value;
  RUNG_TRY(rung_tokenizer_member(r, model, "model", "continuing_subword_prefix", RUNG_JSON_STRING, false, &value));
  if (value.text && !rung_json_equals(value, ""))
    return rung_fail(r->error, RUNG_UNSUPPORTED, "model: BPE with a continuing_subword_prefix");
  RUNG_TRY(rung_tokenizer_member(r, model, "model", "end_of_word_suffix", RUNG_JSON_STRING, false, &value));
  if (value.text) r->desc.word_suffix = rung_tokenizer_keep(r, value);
  double dropout = 0;
  RUNG_TRY(rung_tokenizer_member(r, model, "model", "dropout", RUNG_JSON_NUMBER, false, &value));
  if (value.text && (!rung_json_f64(value, &dropout) || dropout != 0))
    return rung_fail(r->error, RUNG_UNSUPPORTED, "model: BPE with dropout");
  RUNG_TRY(rung_tokenizer_flag(r, model, "model", "fuse_unk", false, &r->desc.fuse_unknown));
  RUNG_TRY(rung_tokenizer_flag(r, model, "model", "byte_fallback", false, &r->desc.byte_fallback));
  RUNG_TRY(rung_tokenizer_flag(r, model, "model", "ignore_merges", false, &r->desc.ignore_merges));
  RUNG_TRY(read_unknown(r, model, ""));
  return rung_tokenizer_read_merges(r, model);
}

static rung_status read_word_level(rung_tokenizer_reader *r, rung_json model) {
  return read_unknown(r, model, "<unk>");
}

static rung_status read_unigram(rung_tokenizer_reader *r, rung_json model) {
  RUNG_TRY(rung_tokenizer_number(r, model, "model", "unk_id", 0, (int64_t)r->count - 1, -1, &r->desc.unknown));
  r->desc.ids.unknown = r->desc.unknown;
  return rung_tokenizer_flag(r, model, "model", "byte_fallback", false, &r->desc.byte_fallback);
}

static const struct model {
  const char *type, *sign; /* the sign is a member that others lack: files of old have no type */
  rung_json_kind vocab;
  rung_status (*read)(rung_tokenizer_reader *r, rung_json model);
} models[] = {{"BPE", "merges", RUNG_JSON_OBJECT, read_pairs},
              {"WordPiece", "max_input_chars_per_word", RUNG_JSON_OBJECT, read_word_piece},
              {"Unigram", "unk_id", RUNG_JSON_ARRAY, read_unigram},
              {"WordLevel", "unk_token", RUNG_JSON_OBJECT, read_word_level}};

static rung_status find_model(rung_tokenizer_reader *r, rung_json model, const struct model **out) {
  char type[64] = "";
  bool twice;
  const bool named = rung_json_kind_of(rung_tokenizer_look_up(r, model, "type", &twice)) != RUNG_JSON_NONE;
  if (named) RUNG_TRY(rung_tokenizer_kind(r, model, "model", type));
  for (size_t i = 0; i < RUNG_COUNT(models); i++) {
    const struct model *m = &models[i];
    if (named ? strcmp(m->type, type) != 0 : !rung_tokenizer_look_up(r, model, m->sign, &twice).text) continue;
    *out = m;
    return RUNG_OK;
  }
  return rung_fail(r->error, RUNG_UNSUPPORTED,
                   "model: \"%s\" is not supported; there are: BPE, WordPiece, WordLevel, Unigram", type);
}

static rung_status read_model(rung_tokenizer_reader *r, rung_json model) {
  const struct model *found;
  bool twice;
  keep_members(&r->members[1], model);
  RUNG_TRY(find_model(r, model, &found));
  const rung_json vocab = rung_tokenizer_look_up(r, model, "vocab", &twice);
  if (rung_json_kind_of(vocab) != found->vocab)
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "model.vocab: expected %s", rung_json_kind_name(found->vocab));
  RUNG_TRY(rung_tokenizer_read_vocabulary(r, r->root, model));
  r->desc.model = found->type;
  return found->read(r, model);
}

/* ---- the whole ---- */

static rung_status read_all(rung_tokenizer_reader *r) {
  const rung_json root = r->root;
  keep_members(&r->members[0], root);
  rung_json model, part;
  int64_t most;
  RUNG_TRY(rung_tokenizer_member(r, root, "the file", "model", RUNG_JSON_OBJECT, true, &model));
  RUNG_TRY(read_model(r, model));
  RUNG_TRY(rung_tokenizer_member(r, root, "the file", "normalizer", RUNG_JSON_OBJECT, false, &part));
  if (part.text) RUNG_TRY(rung_tokenizer_read_normaliser(r, part));
  RUNG_TRY(rung_tokenizer_member(r, root, "the file", "pre_tokenizer", RUNG_JSON_OBJECT, false, &part));
  if (part.text) RUNG_TRY(rung_tokenizer_read_cuts(r, part));
  RUNG_TRY(rung_tokenizer_member(r, root, "the file", "post_processor", RUNG_JSON_OBJECT, false, &part));
  if (part.text) RUNG_TRY(read_post(r, part));
  RUNG_TRY(rung_tokenizer_member(r, root, "the file", "decoder", RUNG_JSON_OBJECT, false, &part));
  if (part.text) RUNG_TRY(rung_tokenizer_read_decoder(r, part));
  RUNG_TRY(rung_tokenizer_member(r, root, "the file", "truncation", RUNG_JSON_OBJECT, false, &part));
  if (part.text) {
    RUNG_TRY(rung_tokenizer_number(r, part, "truncation", "max_length", 0, INT64_MAX, 0, &most));
    r->desc.truncation = most;
  }
  return RUNG_OK;
}

/* The text of a role: "text" or {"content": "text"}. */
static rung_status find_role(rung_tokenizer_reader *r, rung_json config, const char *key, int64_t *id) {
  rung_json value = rung_json_find(config, key, NULL);
  if (rung_json_kind_of(value) == RUNG_JSON_OBJECT) value = rung_json_find(value, "content", NULL);
  if (rung_json_kind_of(value) != RUNG_JSON_STRING || *id >= 0) return RUNG_OK;
  char *text = rung_host_array(r->host, value.length, 1);
  if (!text) return rung_fail(r->error, RUNG_OUT_OF_MEMORY, "tokenizer_config.json: %s", key);
  *id = rung_tokenizer_id_of(r, (rung_slice){text, rung_json_string(value, text, value.length)});
  rung_host_free(r->host, RUNG_MEMORY_host, text, value.length);
  return RUNG_OK;
}

static rung_status read_config(rung_tokenizer_reader *r, const rung_map *map) {
  const struct {
    const char *key;
    int64_t *id;
  } roles[] = {{"bos_token", &r->desc.ids.bos},  {"cls_token", &r->desc.ids.bos},
               {"eos_token", &r->desc.ids.eos},  {"unk_token", &r->desc.ids.unknown},
               {"pad_token", &r->desc.ids.pad},  {"sep_token", &r->desc.ids.separator},
               {"mask_token", &r->desc.ids.mask}};
  rung_json config;
  const rung_status status = rung_json_check((const char *)map->data, (size_t)map->size, 0, r->error, &config);
  if (status) return rung_fail_prefix(r->error, status, "tokenizer_config.json");
  if (rung_json_kind_of(config) != RUNG_JSON_OBJECT)
    return rung_tokenizer_wrong(r, "tokenizer_config.json", "expected an object");
  for (size_t i = 0; i < RUNG_COUNT(roles); i++) RUNG_TRY(find_role(r, config, roles[i].key, roles[i].id));
  int64_t most; /* where there is no limit the file has 1e30, which is no i64 */
  if (!r->desc.truncation && rung_json_i64(rung_json_find(config, "model_max_length", NULL), &most) && most > 0)
    r->desc.truncation = most;
  return RUNG_OK;
}

static rung_status create(rung_tokenizer_reader *r, rung_tokenizer **out_tokenizer) {
  rung_tokenizer_desc *d = &r->desc;
  d->use_steps = d->copy_texts = true;
  d->count = d->text_count = d->type_count = r->count;
  d->texts = r->texts;
  d->lengths = r->lengths;
  d->types = r->types;
  d->piece_scores = r->scores;
  d->added = r->added;
  d->added_count = r->added_count;
  d->merges = r->merges;
  d->merge_lengths = r->merge_lengths;
  d->merge_left = r->merge_left;
  d->merge_count = r->merge_count;
  d->normalisers = r->normalisers;
  d->normaliser_count = r->normaliser_count;
  d->cuts = r->cuts;
  d->cut_count = r->cut_count;
  d->decoders = r->decoders;
  d->decoder_count = r->decoder_count;
  d->before = r->before.data;
  d->before_count = r->before.count;
  d->after = r->after.data;
  d->after_count = r->after.count;
  return rung_tokenizer_create(r->host, d, r->error, out_tokenizer);
}

static rung_status read_map(rung_tokenizer_reader *r, const rung_map *map, const rung_map *config,
                            rung_tokenizer **out_tokenizer) {
  RUNG_TRY(rung_json_check((const char *)map->data, (size_t)map->size, 0, r->error, &r->root));
  r->store_bytes = (size_t)map->size;
  r->store = rung_host_alloc_raw(r->host, RUNG_MEMORY_host, r->store_bytes, 0);
  if (!r->store) return rung_fail(r->error, RUNG_OUT_OF_MEMORY, "%zu bytes for the texts", r->store_bytes);
  RUNG_TRY(read_all(r));
  if (config) RUNG_TRY(read_config(r, config));
  return create(r, out_tokenizer);
}

static void finish(rung_tokenizer_reader *r) {
  const struct {
    void *data;
    size_t bytes;
  } all[] = {{r->store, r->store_bytes},
             {r->texts, r->count * sizeof *r->texts},
             {r->lengths, r->count * sizeof *r->lengths},
             {r->types, r->count * sizeof *r->types},
             {r->scores, r->count * sizeof *r->scores},
             {r->added, r->added_capacity * sizeof *r->added},
             {r->merges, r->merge_count * sizeof *r->merges},
             {r->merge_lengths, r->merge_count * sizeof *r->merge_lengths},
             {r->merge_left, r->merge_count * sizeof *r->merge_left}};
  for (size_t i = 0; i < RUNG_COUNT(all); i++) rung_host_free(r->host, RUNG_MEMORY_host, all[i].data, all[i].bytes);
  rung_ids_finish(&r->before);
  rung_ids_finish(&r->after);
}

rung_status rung_tokenizer_json(rung_host *host, const rung_source *source, const rung_source *config,
                                rung_error *error, rung_tokenizer **out_tokenizer) {
  if (!host || !source || !out_tokenizer)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "tokenizer.json: host, source or result is NULL");
  rung_map map = {0}, roles = {0};
  RUNG_TRY(rung_map_open(&map, host, source, error));
  rung_status status = config ? rung_map_open(&roles, host, config, error) : RUNG_OK;
  if (!status) {
    rung_tokenizer_reader r = {.host = host, .error = error, .desc = rung_tokenizer_desc_default()};
    rung_ids_init(&r.before, host);
    rung_ids_init(&r.after, host);
    status = read_map(&r, &map, config ? &roles : NULL, out_tokenizer);
    finish(&r);
  }
  rung_map_close(&roles);
  rung_map_close(&map);
  if (status && source->kind == RUNG_SOURCE_PATH) return rung_fail_prefix(error, status, "%s", source->path);
  return status;
}

rung_status rung_tokenizer_json_folder(rung_host *host, const char *folder, rung_error *error,
                                       rung_tokenizer **out_tokenizer) {
  if (!host || !folder) return rung_fail(error, RUNG_INVALID_ARGUMENT, "tokenizer.json: host or folder is NULL");
  rung_text path, roles;
  rung_text_init(&path, host);
  rung_text_init(&roles, host);
  rung_text_printf(&path, "%s/tokenizer.json", folder);
  rung_text_printf(&roles, "%s/tokenizer_config.json", folder);
  rung_status status = rung_text_status(&path, error);
  if (!status) status = rung_text_status(&roles, error);
  if (!status) {
    const rung_source source = rung_source_path(path.data), config = rung_source_path(roles.data);
    rung_map there = {0};
    status = rung_map_open(&there, host, &config, error);
    rung_map_close(&there);
    const bool missing = status == RUNG_NOT_FOUND;
    if (!status || missing) status = rung_tokenizer_json(host, &source, missing ? NULL : &config, error, out_tokenizer);
  }
  rung_text_finish(&path);
  rung_text_finish(&roles);
  return status;
}
