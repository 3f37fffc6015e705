/* SPDX-License-Identifier: MIT
 * What one sequence has said: ids, text, and where a stop text ends it. */
#ifndef RUNG_TOOLS_REPLY_H
#define RUNG_TOOLS_REPLY_H

#include "prompt.h"

typedef enum cli_finish { CLI_GOES_ON, CLI_AT_END, CLI_AT_STOP, CLI_AT_LIMIT, CLI_AT_CONTEXT } cli_finish;
const char *cli_finish_name(cli_finish finish); /* "end", "stop", "limit", "context" */

typedef struct cli_reply {
  rung_stream *stream; /* NULL: no tokeniser, ids only */
  const cli_texts *stops;
  cli_ids ids;
  size_t ids_capacity;
  char *text; /* malloc */
  size_t bytes, capacity;
  size_t ready; /* of `bytes`: cannot become part of a stop text any more */
  cli_finish finish;
} cli_reply;

/* Text needs the model's tokeniser; without_text allows it to be missing. */
int cli_reply_begin(cli_session *session, rung_model *model, bool without_text, cli_reply *out);
/* Takes a token; at a stop text the reply is cut before it and finished. */
int cli_reply_add(cli_session *session, cli_reply *reply, int32_t id);
/* The end: everything is ready. */
int cli_reply_end(cli_session *session, cli_reply *reply);
void cli_reply_free(cli_reply *reply);

#endif
