/* SPDX-License-Identifier: MIT
 * Prompts to ids. */
#include "prompt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "conversation.h"

static int read_all(const cli_session *s, FILE *file, const char *name, cli_bytes *out) {
  size_t capacity = 1 << 16;
  out->data = malloc(capacity + 1);
  for (;;) {
    if (!out->data) return cli_refuse(s, CLI_NO_MEMORY, "%s: out of memory", name);
    out->bytes += fread(out->data + out->bytes, 1, capacity - out->bytes, file);
    if (out->bytes < capacity) break;
    char *grown = realloc(out->data, 2 * capacity + 1);
    if (!grown) return cli_refuse(s, CLI_NO_MEMORY, "%s: out of memory after %zu bytes", name, out->bytes);
    out->data = grown;
    capacity *= 2;
  }
  out->data[out->bytes] = 0;
  if (cli_interrupted()) return CLI_INTERRUPTED;
  return ferror(file) ? cli_refuse(s, CLI_BAD_FILE, "%s: reading failed: %s", name, strerror(errno)) : CLI_OK;
}

int cli_read_file(const cli_session *s, const char *path, cli_bytes *out) {
  *out = (cli_bytes){0};
  if (!path || strcmp(path, "-") == 0) return read_all(s, stdin, "standard input", out);
  FILE *file = fopen(path, "rb");
  if (!file) return cli_refuse(s, CLI_BAD_FILE, "%s: %s", path, strerror(errno));
  const int code = read_all(s, file, path, out);
  fclose(file);
  return code;
}

int cli_parse_ids(const cli_session *s, const char *from, const cli_bytes *text, cli_ids *out) {
  static const char blanks[] = " \t\r\n,";
  *out = (cli_ids){0};
  out->id = malloc((text->bytes / 2 + 1) * sizeof *out->id);
  if (!out->id) return cli_refuse(s, CLI_NO_MEMORY, "%s: out of memory", from);
  const char *p = text->data, *end = text->data + text->bytes;
  for (;;) {
    while (p < end && *p && strchr(blanks, *p)) p++;
    if (p == end) return CLI_OK;
    int64_t value;
    const char *stop;
    if (!rung_parse_i64(p, end, &value, &stop) || (stop < end && !strchr(blanks, *stop)))
      return cli_refuse(s, CLI_BAD_FILE, "%s: offset %zu is no id", from, (size_t)(p - text->data));
    if (value < 0 || value > INT32_MAX)
      return cli_refuse(s, CLI_BAD_FILE, "%s: offset %zu: no id is that large", from, (size_t)(p - text->data));
    out->id[out->count++] = (int32_t)value;
    p = stop;
  }
}

void cli_print_ids(const cli_ids *ids) {
  for (size_t i = 0; i < ids->count; i++) printf("%s%d", i ? " " : "", ids->id[i]);
}

int cli_encode(cli_session *s, rung_model *model, const char *text, size_t bytes, unsigned flags, cli_ids *out) {
  int32_t *ids;
  size_t count;
  *out = (cli_ids){0};
  const rung_status status = rung_model_encode(model, text, bytes, flags, &s->error, &ids, &count);
  if (status) return cli_fail(s, CLI_ON_RUN, status, NULL);
  out->id = malloc((count + 1) * sizeof *ids);
  if (out->id && count) memcpy(out->id, ids, count * sizeof *ids);
  out->count = count;
  rung_ids_free(model, ids, count);
  return out->id ? CLI_OK : cli_refuse(s, CLI_NO_MEMORY, "out of memory for %zu tokens", count);
}

/* A prompt as it stands, or as the one message of a conversation. */
static int encode(cli_session *s, rung_model *model, const char *text, size_t bytes, cli_ids *out) {
  if (!s->options->chat) return cli_encode(s, model, text, bytes, RUNG_TEXT_ADD_SPECIAL | RUNG_TEXT_PARSE_SPECIAL, out);
  cli_conversation conversation = {0};
  int code = cli_conversation_begin(s, &conversation, s->options->system);
  if (!code) code = cli_conversation_add(s, &conversation, "user", text, bytes);
  if (!code) code = cli_conversation_ids(s, model, &conversation, out);
  cli_conversation_free(&conversation);
  return code;
}

/* Ids of a file are looked at here, so that the message names the file. */
static int check_ids(const cli_session *s, rung_model *model, const char *from, const cli_ids *ids) {
  rung_model_info info;
  rung_model_get_info(model, &info);
  for (size_t i = 0; i < ids->count; i++)
    if (ids->id[i] >= info.vocabulary)
      return cli_refuse(s, CLI_BAD_FILE, "%s: id %zu is %d, the vocabulary has %lld", from, i, ids->id[i],
                        (long long)info.vocabulary);
  return CLI_OK;
}

int cli_prompt_ids(cli_session *s, rung_model *model, int index, cli_ids *out) {
  const char *item = s->options->prompts.item[index], letter = s->options->prompts.letter[index];
  *out = (cli_ids){0};
  int code;
  if (letter == 'p') {
    code = encode(s, model, item, strlen(item), out);
  } else {
    cli_bytes text;
    code = cli_read_file(s, item, &text);
    if (!code) code = letter == 'f' ? encode(s, model, text.data, text.bytes, out) : cli_parse_ids(s, item, &text, out);
    if (!code && letter == 'i') code = check_ids(s, model, item, out);
    free(text.data);
  }
  if (!code && !out->count)
    code = cli_refuse(s, letter == 'p' ? CLI_USAGE : CLI_BAD_FILE, "%s: an empty prompt", letter == 'p' ? "-p" : item);
  return code;
}
