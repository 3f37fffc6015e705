/* SPDX-License-Identifier: MIT
 * Messages as JSON for the template, and its text as ids. */
#define _POSIX_C_SOURCE 200809L
#include "conversation.h"

#include <rung/chat.h>
#include <rung/graph.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

int cli_conversation_add(cli_session *s, cli_conversation *c, const char *role, const char *text, size_t bytes) {
  if (c->count == c->capacity) {
    const size_t capacity = c->capacity ? 2 * c->capacity : 16;
    cli_message *grown = realloc(c->message, capacity * sizeof *grown);
    if (!grown) return cli_refuse(s, CLI_NO_MEMORY, "out of memory for the conversation");
    c->message = grown;
    c->capacity = capacity;
  }
  char *copy = malloc(bytes + 1);
  if (!copy) return cli_refuse(s, CLI_NO_MEMORY, "out of memory for the conversation");
  if (bytes) memcpy(copy, text, bytes);
  copy[bytes] = 0;
  c->message[c->count++] = (cli_message){role, {copy, bytes}};
  return CLI_OK;
}

void cli_conversation_drop(cli_conversation *c, size_t count) {
  while (c->count > count) free(c->message[--c->count].text.data);
}

int cli_conversation_begin(cli_session *s, cli_conversation *c, const char *system) {
  cli_conversation_drop(c, 0);
  return system ? cli_conversation_add(s, c, "system", system, strlen(system)) : CLI_OK;
}

void cli_conversation_free(cli_conversation *c) {
  cli_conversation_drop(c, 0);
  free(c->message);
  *c = (cli_conversation){0};
}

/* [{"role": ..., "content": ...}, ...]; malloc, NULL without memory. */
static char *messages_json(const cli_conversation *c) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  if (!out) return NULL;
  cli_json json = {.out = out};
  fputc('[', out);
  for (size_t i = 0; i < c->count; i++) {
    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "role", c->message[i].role);
    cli_json_text(&json, "content", c->message[i].text.data, c->message[i].text.bytes);
    cli_json_close(&json, '}');
  }
  fputc(']', out);
  if (fclose(out) == 0) return text;
  free(text);
  return NULL;
}

int cli_fail_template(const cli_session *s, rung_status status) {
  if (status != RUNG_NOT_FOUND) return cli_fail(s, CLI_ON_RUN, status, NULL);
  return cli_refuse(s, CLI_BAD_FILE, "%s; rung generate without --chat goes on from a text as it stands",
                    s->error.message);
}

int cli_conversation_ids(cli_session *s, rung_model *model, const cli_conversation *c, cli_ids *out) {
  char *json = messages_json(c), *text = NULL;
  size_t bytes = 0;
  *out = (cli_ids){0};
  if (!json) return cli_refuse(s, CLI_NO_MEMORY, "out of memory for the conversation");
  rung_chat_input input = rung_chat_input_default();
  input.messages = json;
  const rung_status status = rung_model_chat_render(model, NULL, &input, &s->error, &text, &bytes);
  free(json);
  if (status) return cli_fail_template(s, status);
  /* The template writes the begin token itself. */
  const int code = cli_encode(s, model, text, bytes, RUNG_TEXT_PARSE_SPECIAL, out);
  rung_text_free(s->host, text, bytes);
  return code;
}
