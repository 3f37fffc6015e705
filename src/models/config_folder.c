/* SPDX-License-Identifier: MIT
 * config.json of a model folder: opening it, and its values under the keys that GGUF has. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "models/folder.h"

/* ---- files */

static rung_status check_kind(const rung_map *map, rung_json_kind kind, rung_error *error, rung_json *out) {
  RUNG_TRY(rung_json_check((const char *)map->data, (size_t)map->size, 0, error, out));
  if (rung_json_kind_of(*out) == kind) return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE, "%s where %s is expected", rung_json_kind_name(rung_json_kind_of(*out)),
                   rung_json_kind_name(kind));
}

rung_status rung_folder_read(const rung_folder *folder, const char *name, rung_json_kind kind, rung_error *error,
                             rung_folder_json *out) {
  *out = (rung_folder_json){.map = {.kind = RUNG_MAP_NONE}};
  char path[RUNG_PATH_BYTES];
  RUNG_TRY(rung_path_join(folder->path, name, error, path));
  rung_source source = rung_source_path(path);
  source.mode = folder->mode;
  RUNG_TRY(rung_map_open(&out->map, folder->host, &source, error));
  const rung_status status = check_kind(&out->map, kind, error, &out->value);
  if (!status) return RUNG_OK;
  rung_folder_json_close(out);
  return rung_fail_prefix(error, status, "%s", name);
}

void rung_folder_json_close(rung_folder_json *file) {
  rung_map_close(&file->map);
  file->value = (rung_json){NULL, 0};
}

rung_status rung_folder_open(rung_host *host, const rung_source *source, const char *path, rung_error *error,
                             rung_folder **out_folder) {
  rung_folder *folder = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *folder, 0);
  if (!folder) return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory to open a folder");
  folder->host = host;
  folder->mode = source->mode;
  snprintf(folder->path, sizeof folder->path, "%s", path);
  const rung_status status = rung_folder_read(folder, "config.json", RUNG_JSON_OBJECT, error, &folder->config);
  if (status) {
    rung_folder_close(folder);
    return status;
  }
  *out_folder = folder;
  return RUNG_OK;
}

void rung_folder_close(rung_folder *folder) {
  if (!folder) return;
  rung_folder_json_close(&folder->config);
  rung_host_free(folder->host, RUNG_MEMORY_host, folder, sizeof *folder);
}

/* ---- values */

/* GGUF's key, and where config.json has it; the first that is there counts. Dots go into objects. What is not in the
 * table is asked for by its own name. */
static const struct {
  const char *key, *own;
} keys[] = {{"block_count", "num_hidden_layers"},
            {"embedding_length", "hidden_size"},
            {"feed_forward_length", "intermediate_size"},
            {"attention.head_count", "num_attention_heads"},
            {"attention.head_count_kv", "num_key_value_heads"},
            {"attention.key_length", "head_dim"},
            {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
            {"attention.layer_norm_epsilon", "layer_norm_eps"},
            {"attention.sliding_window", "sliding_window"},
            {"attention.sliding_window_pattern", "sliding_window_pattern"},
            {"attention.sliding_window_pattern", "_sliding_window_pattern"},
            {"context_length", "max_position_embeddings"},
            {"vocabulary", "vocab_size"},
            {"rope.freq_base", "rope_theta"},
            {"rope.freq_base", "rope_parameters.rope_theta"},
            {"rope.freq_base", "rope_parameters.full_attention.rope_theta"},
            {"expert_count", "num_experts"},
            {"expert_used_count", "num_experts_per_tok"},
            {"expert_feed_forward_length", "moe_intermediate_size"},
            {"rope.freq_base_swa", "rope_local_base_freq"},
            {"rope.freq_base_swa", "rope_parameters.sliding_attention.rope_theta"},
            {"rope.scaling.type", "rope_scaling.rope_type"},
            {"rope.scaling.type", "rope_scaling.type"},
            {"rope.scaling.type", "rope_parameters.rope_type"},
            {"rope.scaling.type", "rope_parameters.full_attention.rope_type"},
            {"rope.scaling.low_freq_factor", "rope_scaling.low_freq_factor"},
            {"rope.scaling.low_freq_factor", "rope_parameters.low_freq_factor"},
            {"rope.scaling.high_freq_factor", "rope_scaling.high_freq_factor"},
            {"rope.scaling.high_freq_factor", "rope_parameters.high_freq_factor"},
            {"rope.scaling.original_context_length", "rope_scaling.original_max_position_embeddings"},
            {"rope.scaling.original_context_length", "rope_parameters.original_max_position_embeddings"},
            {"rope.scaling.original_context_length", "original_max_position_embeddings"},
            {"rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast"},
            {"rope.scaling.yarn_beta_fast", "rope_parameters.beta_fast"},
            {"rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow"},
            {"rope.scaling.yarn_beta_slow", "rope_parameters.beta_slow"},
            {"rope.scaling.yarn_log_multiplier", "rope_scaling.mscale_all_dim"},
            {"rope.scaling.yarn_log_multiplier", "rope_parameters.mscale_all_dim"},
            {"mscale", "rope_scaling.mscale"},
            {"mscale", "rope_parameters.mscale"},
            {"truncate", "rope_scaling.truncate"},
            {"truncate", "rope_parameters.truncate"},
            {"attention_factor", "rope_scaling.attention_factor"},
            {"attention_factor", "rope_parameters.attention_factor"},
            {"short_factor", "rope_scaling.short_factor"},
            {"short_factor", "rope_parameters.short_factor"},
            {"long_factor", "rope_scaling.long_factor"},
            {"long_factor", "rope_parameters.long_factor"},
            {"partial_rotary_factor", "partial_rotary_factor"},
            {"partial_rotary_factor", "rope_parameters.partial_rotary_factor"},
            {"rope.scaling.factor", "rope_scaling.factor"},
            {"rope.scaling.factor", "rope_parameters.factor"},
            {"rope.scaling.factor", "rope_parameters.full_attention.factor"}};

/* A value by the path of names that lead to it; null counts as none. */
static rung_status look(rung_json object, const char *path, rung_error *error, rung_json *out) {
  char name[64];
  const char *at = path;
  *out = (rung_json){NULL, 0};
  for (;;) {
    const size_t length = strcspn(at, ".");
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    bool twice;
    const rung_json value = rung_json_find(object, name, &twice);
    if (twice) return rung_fail(error, RUNG_CORRUPT_FILE, "config.json: %s comes twice", path);
    if (rung_json_kind_of(value) == RUNG_JSON_NONE || rung_json_kind_of(value) == RUNG_JSON_NULL) return RUNG_OK;
    if (!at[length]) {
      *out = value;
      return RUNG_OK;
    }
    object = value;
    at += length + 1;
  }
}

static rung_status find(const rung_folder *folder, const char *key, rung_error *error, const char **out_own,
                        rung_json *out) {
  *out_own = NULL;
  for (size_t i = 0; i < RUNG_COUNT(keys); i++) {
    if (strcmp(keys[i].key, key) != 0) continue;
    RUNG_TRY(look(folder->config.value, keys[i].own, error, out));
    if (out->length || !*out_own) *out_own = keys[i].own;
    if (out->length) return RUNG_OK;
  }
  if (*out_own) return RUNG_OK;
  *out_own = key;
  return look(folder->config.value, key, error, out);
}

static const char *spell(const void *self, const char *key) {
  const char *own;
  rung_json value;
  rung_error ignored;
  (void)find(self, key, &ignored, &own, &value);
  return own;
}

static rung_status wrong(const char *own, rung_json value, const char *want, rung_error *error) {
  return rung_fail(error, RUNG_TYPE_MISMATCH, "config.json: %s is %s, expected %s", own,
                   rung_json_kind_name(rung_json_kind_of(value)), want);
}

/* One that is there. */
static rung_status must(const void *self, const char *key, rung_error *error, const char **out_own, rung_json *out) {
  RUNG_TRY(find(self, key, error, out_own, out));
  if (out->length) return RUNG_OK;
  return rung_fail(error, RUNG_NOT_FOUND, "config.json: %s is missing", *out_own);
}

static rung_status get_i64(const void *self, const char *key, rung_error *error, int64_t *out) {
  const char *own;
  rung_json value;
  RUNG_TRY(must(self, key, error, &own, &value));
  return rung_json_i64(value, out) ? RUNG_OK : wrong(own, value, "a whole number that fits 64 bits", error);
}

static rung_status get_f64(const void *self, const char *key, rung_error *error, double *out) {
  const char *own;
  rung_json value;
  RUNG_TRY(must(self, key, error, &own, &value));
  return rung_json_f64(value, out) ? RUNG_OK : wrong(own, value, "a number", error);
}

static rung_status get_flag(const void *self, const char *key, rung_error *error, bool *out) {
  const char *own;
  rung_json value;
  RUNG_TRY(must(self, key, error, &own, &value));
  if (rung_json_kind_of(value) != RUNG_JSON_BOOL) return wrong(own, value, "true or false", error);
  *out = value.text[0] == 't';
  return RUNG_OK;
}

/* Element of a list; NOT_FOUND past its end. */
static rung_status element_of(const char *own, rung_json list, int64_t index, rung_error *error, rung_json *out) {
  if (rung_json_kind_of(list) != RUNG_JSON_ARRAY) return wrong(own, list, "a list", error);
  rung_json_walk walk = rung_json_begin(list);
  for (int64_t i = 0; i <= index; i++)
    if (!rung_json_next(&walk, NULL, out))
      return rung_fail(error, RUNG_NOT_FOUND, "config.json: %s[%" PRId64 "] is missing", own, index);
  return RUNG_OK;
}

static rung_status get_number(const void *self, const char *key, int64_t index, rung_error *error, double *out) {
  const char *own;
  rung_json value, element;
  RUNG_TRY(must(self, key, error, &own, &value));
  RUNG_TRY(element_of(own, value, index, error, &element));
  if (rung_json_kind_of(element) == RUNG_JSON_BOOL) {
    *out = element.text[0] == 't';
    return RUNG_OK;
  }
  return rung_json_f64(element, out) ? RUNG_OK : wrong(own, element, "a number", error);
}

static rung_status get_text(const void *self, const char *key, int64_t index, rung_error *error, char *out,
                            size_t bytes) {
  const char *own;
  rung_json value, element;
  RUNG_TRY(must(self, key, error, &own, &value));
  if (index >= 0) {
    RUNG_TRY(element_of(own, value, index, error, &element));
    value = element;
  }
  if (rung_json_kind_of(value) != RUNG_JSON_STRING) return wrong(own, value, "a string", error);
  const size_t length = rung_json_string(value, out, bytes);
  if (length >= bytes || (length && memchr(out, 0, length)))
    return rung_fail(error, RUNG_CORRUPT_FILE, "config.json: %s is a text of %zu bytes", own, length);
  out[length] = 0;
  return RUNG_OK;
}

rung_metadata rung_folder_metadata(const rung_folder *folder) {
  return (rung_metadata){.self = folder,
                         .i64 = get_i64,
                         .f64 = get_f64,
                         .flag = get_flag,
                         .number = get_number,
                         .text = get_text,
                         .spell = spell};
}

/* ---- family */

rung_status rung_folder_family(const rung_folder *folder, rung_error *error, const rung_family **out_family) {
  char type[64];
  RUNG_TRY(get_text(folder, "model_type", -1, error, type, sizeof type));
  *out_family = rung_family_of_type(type);
  if (*out_family) return RUNG_OK;
  char known[256];
  rung_family_names(true, known, sizeof known);
  for (char *p = type; *p; p++) *p = *p < 0x20 || *p > 0x7E ? '?' : *p;
  return rung_fail(error, RUNG_UNSUPPORTED, "config.json: model_type \"%s\" is not supported; there are: %s", type,
                   known);
}

rung_status rung_folder_configure(const rung_folder *folder, const rung_family *family, rung_config *out_config,
                                  rung_error *error) {
  const rung_metadata meta = rung_folder_metadata(folder);
  bool tied = family->ties;
  rung_json packed;
  RUNG_TRY(look(folder->config.value, "quantization_config", error, &packed));
  if (packed.length) return rung_fail(error, RUNG_UNSUPPORTED, "config.json: quantization_config is not supported");
  *out_config = (rung_config){.names = family->names, .name_prefix = family->name_prefix};
  RUNG_TRY(family->configure(&meta, out_config, error));
  RUNG_TRY(rung_metadata_maybe_flag(&meta, "tie_word_embeddings", error, &tied));
  out_config->tied = tied ? RUNG_TIED : RUNG_NOT_TIED;
  return RUNG_OK;
}
