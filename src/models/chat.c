/* SPDX-License-Identifier: MIT
 * A model's own chat template and special tokens: from GGUF metadata, or from the files of its folder. */
#include <stdio.h>
#include <string.h>

#include "models/model.h"
#include "text/chat.h"

enum { NAME_BYTES = 64 };

static rung_status no_template(const char *name, rung_error *error) {
  if (!name) return rung_fail(error, RUNG_NOT_FOUND, "the model has no chat template");
  return rung_fail(error, RUNG_NOT_FOUND, "the model has no chat template \"%s\"", name);
}

/* ---- GGUF */

static rung_status gguf_template(rung_model *m, const char *name, rung_error *error, rung_chat_template **out) {
  char key[NAME_BYTES + 32] = "tokenizer.chat_template";
  rung_gguf_text text;
  if (name) snprintf(key, sizeof key, "tokenizer.chat_template.%s", name);
  if (!rung_gguf_has(m->gguf, key)) return no_template(name, error);
  RUNG_TRY(rung_gguf_get_text(m->gguf, key, error, &text));
  return rung_chat_template_create(m->host, text.data, (size_t)text.length, error, out);
}

/* ---- folders */

static rung_status from_json(rung_model *m, rung_json text, rung_error *error, rung_chat_template **out) {
  char *copy = rung_host_alloc(m->host, RUNG_MEMORY_host, text.length, 0);
  if (!copy) return rung_fail(error, RUNG_OUT_OF_MEMORY, "chat template: out of memory");
  const size_t length = rung_json_string(text, copy, text.length);
  const rung_status status = rung_chat_template_create(m->host, copy, length, error, out);
  rung_host_free(m->host, RUNG_MEMORY_host, copy, text.length);
  return status;
}

/* chat_template of tokenizer_config.json: a text, or a list of {"name", "template"}. */
static rung_status config_template(rung_model *m, const char *name, rung_error *error, rung_chat_template **out) {
  rung_folder_json file;
  rung_status status = rung_folder_read(m->folder, "tokenizer_config.json", RUNG_JSON_OBJECT, error, &file);
  if (status == RUNG_NOT_FOUND) return no_template(name, error);
  RUNG_TRY(status);
  rung_json found = rung_json_find(file.value, "chat_template", NULL), entry;
  if (rung_json_kind_of(found) == RUNG_JSON_ARRAY) {
    rung_json_walk walk = rung_json_begin(found);
    for (found = (rung_json){NULL, 0}; !found.text && rung_json_next(&walk, NULL, &entry);)
      if (rung_json_equals(rung_json_find(entry, "name", NULL), name ? name : "default"))
        found = rung_json_find(entry, "template", NULL);
  } else if (name) {
    found = (rung_json){NULL, 0};
  }
  if (rung_json_kind_of(found) == RUNG_JSON_STRING)
    status = from_json(m, found, error, out);
  else if (found.text && rung_json_kind_of(found) != RUNG_JSON_NULL)
    status = rung_fail(error, RUNG_CORRUPT_FILE, "tokenizer_config.json: chat_template is %s, expected a string",
                       rung_json_kind_name(rung_json_kind_of(found)));
  else
    status = no_template(name, error);
  rung_folder_json_close(&file);
  return status;
}

static rung_status folder_template(rung_model *m, const char *name, rung_error *error, rung_chat_template **out) {
  char file[NAME_BYTES + 48] = "chat_template.jinja", path[RUNG_PATH_BYTES];
  if (name) snprintf(file, sizeof file, "additional_chat_templates/%s.jinja", name);
  RUNG_TRY(rung_path_join(m->folder->path, file, error, path));
  if (!rung_path_is_file(path)) return config_template(m, name, error, out);
  rung_source source = rung_source_path(path);
  rung_map map;
  source.mode = m->folder->mode;
  RUNG_TRY(rung_map_open(&map, m->host, &source, error));
  const rung_status status = rung_chat_template_create(m->host, (const char *)map.data, (size_t)map.size, error, out);
  rung_map_close(&map);
  return status ? rung_fail_prefix(error, status, "%s", file) : RUNG_OK;
}

/* ---- the two */

static bool is_plain(const char *name) {
  const size_t length = strlen(name);
  return length && length < NAME_BYTES && !strchr(name, '/') && name[0] != '.';
}

rung_status rung_model_chat_template(rung_model *m, const char *name, rung_error *error, rung_chat_template **out) {
  if (!m || !out) return rung_fail(error, RUNG_INVALID_ARGUMENT, "chat template: model and out_template are required");
  if (name && strcmp(name, "default") == 0) name = NULL;
  if (name && !is_plain(name))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "chat template: \"%.80s\" is no name", name);
  return m->gguf ? gguf_template(m, name, error, out) : folder_template(m, name, error, out);
}

/* ---- special tokens */

typedef struct tokens {
  rung_jvariable variable[RUNG_CHAT_TOKENS];
  size_t count;
  rung_text text; /* of all of them; variables point into it once it is full */
  size_t start[RUNG_CHAT_TOKENS];
} tokens;

static void begin_token(tokens *t, const char *name) {
  t->start[t->count] = t->text.length;
  t->variable[t->count++] = (rung_jvariable){.name = name};
}

static rung_status gguf_tokens(rung_model *m, tokens *t, rung_error *error) {
  const rung_tokenizer *tokenizer;
  RUNG_TRY(rung_model_tokenizer(m, error, &tokenizer));
  const rung_token_ids *ids = rung_tokenizer_ids(tokenizer);
  const struct {
    const char *name;
    int64_t id;
  } roles[] = {{"bos_token", ids->bos}, {"eos_token", ids->eos},       {"unk_token", ids->unknown},
               {"pad_token", ids->pad}, {"sep_token", ids->separator}, {"mask_token", ids->mask}};
  for (size_t i = 0; i < RUNG_COUNT(roles); i++) {
    if (roles[i].id < 0) continue;
    const int32_t id = (int32_t)roles[i].id;
    begin_token(t, roles[i].name);
    RUNG_TRY(rung_tokenizer_decode(tokenizer, &id, 1, RUNG_DECODE_SPECIAL, error, &t->text));
  }
  return rung_text_status(&t->text, error);
}

/* A role is a text, or an object with the text as "content". */
static rung_status folder_tokens(rung_model *m, tokens *t, rung_error *error) {
  static const char *const roles[] = {"bos_token", "eos_token", "unk_token", "pad_token",
                                      "sep_token", "cls_token", "mask_token"};
  static const char *const files[] = {"tokenizer_config.json", "special_tokens_map.json"};
  bool known[RUNG_COUNT(roles)] = {false};
  for (size_t k = 0; k < RUNG_COUNT(files); k++) {
    rung_folder_json file;
    const rung_status status = rung_folder_read(m->folder, files[k], RUNG_JSON_OBJECT, error, &file);
    if (status == RUNG_NOT_FOUND) continue;
    RUNG_TRY(status);
    for (size_t i = 0; i < RUNG_COUNT(roles); i++) {
      rung_json value = rung_json_find(file.value, roles[i], NULL);
      if (rung_json_kind_of(value) == RUNG_JSON_OBJECT) value = rung_json_find(value, "content", NULL);
      char text[256];
      const size_t length = rung_json_string(value, text, sizeof text);
      if (known[i] || rung_json_kind_of(value) != RUNG_JSON_STRING || length > sizeof text) continue;
      known[i] = true;
      begin_token(t, roles[i]);
      rung_text_add(&t->text, text, length);
    }
    rung_folder_json_close(&file);
  }
  return rung_text_status(&t->text, error);
}

static rung_status render(rung_model *m, const rung_chat_template *chat_template, const rung_chat_input *input,
                          tokens *t, rung_error *error, char **out_text, size_t *out_bytes) {
  RUNG_TRY(m->gguf ? gguf_tokens(m, t, error) : folder_tokens(m, t, error));
  for (size_t i = 0; i < t->count; i++) {
    const size_t end = i + 1 < t->count ? t->start[i + 1] : t->text.length;
    t->variable[i].text = t->text.data ? t->text.data + t->start[i] : "";
    t->variable[i].text_bytes = end - t->start[i];
  }
  rung_chat_template *own = NULL;
  if (!chat_template) {
    rung_status status = RUNG_NOT_FOUND;
    if (input->tools) status = rung_model_chat_template(m, "tool_use", error, &own);
    if (status == RUNG_NOT_FOUND) status = rung_model_chat_template(m, NULL, error, &own);
    RUNG_TRY(status);
    chat_template = own;
  }
  const rung_status status =
      rung_chat_render_with(chat_template, input, t->variable, t->count, error, out_text, out_bytes);
  rung_chat_template_release(own);
  return status;
}

rung_status rung_model_chat_render(rung_model *m, const rung_chat_template *chat_template, const rung_chat_input *input,
                                   rung_error *error, char **out_text, size_t *out_bytes) {
  if (!m || !input || !out_text || !out_bytes)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "chat: an argument is missing");
  tokens t = {.count = 0};
  rung_text_init(&t.text, m->host);
  const rung_status status = render(m, chat_template, input, &t, error, out_text, out_bytes);
  rung_text_finish(&t.text);
  return status;
}
