/* SPDX-License-Identifier: MIT
 * Prompts and other input of the tool: texts, files, standard input, files of ids. */
#ifndef RUNG_TOOLS_PROMPT_H
#define RUNG_TOOLS_PROMPT_H

#include "session.h"

typedef struct cli_bytes {
  char *data; /* malloc; terminated */
  size_t bytes;
} cli_bytes;
/* A whole file, "-" being standard input; NULL path as well. Returns an exit code; free data in any case. */
int cli_read_file(const cli_session *session, const char *path, cli_bytes *out);

typedef struct cli_ids {
  int32_t *id; /* malloc */
  size_t count;
} cli_ids;
/* Decimal ids separated by blanks, newlines or commas. */
int cli_parse_ids(const cli_session *session, const char *from, const cli_bytes *text, cli_ids *out);
/* Separated by blanks, on standard output. */
void cli_print_ids(const cli_ids *ids);
/* Text to ids; `flags` are rung_text_flags. Returns an exit code. */
int cli_encode(cli_session *session, rung_model *model, const char *text, size_t bytes, unsigned flags, cli_ids *out);
/* The ids of prompt `index` of the options. An empty prompt is refused. */
int cli_prompt_ids(cli_session *session, rung_model *model, int index, cli_ids *out);

#endif
