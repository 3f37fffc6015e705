/* SPDX-License-Identifier: MIT
 * rung tokenize: text to ids and back. */
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "json.h"
#include "prompt.h"

static int encode(cli_session *s, rung_model *model, const cli_bytes *text) {
  const cli_options *o = s->options;
  const unsigned flags = (o->no_bos ? 0u : RUNG_TEXT_ADD_SPECIAL) | (o->no_special ? 0u : RUNG_TEXT_PARSE_SPECIAL);
  cli_ids ids;
  const int code = cli_encode(s, model, text->data, text->bytes, flags, &ids);
  if (code) return code;
  if (o->json) {
    cli_json json = cli_json_begin(stdout);
    cli_json_ids(&json, "ids", ids.id, ids.count);
    cli_json_end(&json);
  } else {
    cli_print_ids(&ids);
    printf("\n");
  }
  free(ids.id);
  return CLI_OK;
}

/* Plain output is the text and nothing else, so that encoding it again gives the same ids. */
static int decode(cli_session *s, rung_model *model, const cli_bytes *input) {
  cli_ids ids;
  int code = cli_parse_ids(s, "standard input", input, &ids);
  char *text = NULL;
  size_t bytes = 0;
  if (!code) {
    const rung_status status =
        rung_model_decode(model, ids.id, ids.count, !s->options->no_special, &s->error, &text, &bytes);
    if (status) code = cli_fail(s, CLI_ON_FILE, status, NULL);
  }
  if (!code && s->options->json) {
    cli_json json = cli_json_begin(stdout);
    cli_json_text(&json, "text", text, bytes);
    cli_json_end(&json);
  } else if (!code) {
    fwrite(text, 1, bytes, stdout);
  }
  if (text) rung_text_free(s->host, text, bytes);
  free(ids.id);
  return code;
}

int cli_tokenize(cli_session *s) {
  rung_model *model = NULL;
  cli_bytes input = {0};
  int code = cli_open_model(s, &model, NULL);
  if (!code) code = cli_read_file(s, NULL, &input);
  if (!code) code = s->options->decode ? decode(s, model, &input) : encode(s, model, &input);
  free(input.data);
  rung_model_release(model);
  return code;
}
