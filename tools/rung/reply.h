/* SPDX-License-Identifier: MIT
 * What one sequence has said: ids, text, and where a stop text ends it. */
#ifndef RUNG_TOOLS_REPLY_H
#define RUNG_TOOLS_REPLY_H

#include "logprobs.h"
#include "prompt.h"

typedef enum cli_finish {
  CLI_GOES_ON,
  CLI_AT_END,
  CLI_AT_STOP,
  CLI_AT_LIMIT,
  CLI_AT_CONTEXT,
  CLI_AT_INTERRUPT
} cli_finish;

typedef struct cli_reply {
  rung_stream *stream; /* NULL: no tokeniser, ids only */
  const cli_texts *stops;
  cli_ids ids;
  cli_logprobs logprobs;
  size_t ids_capacity;
  char *text; /* malloc */
  size_t bytes, capacity;
  size_t ready; /* of `bytes`: cannot become part of a stop text any more */
  cli_finish finish;
} cli_reply;

/* Text needs the model's tokeniser; without_text allows it to be missing. */
int cli_reply_begin(cli_session *session, rung_model *model, bool without_text, cli_reply *out);
/* Takes a token of the generator: at an end token (unless --ignore-eos), a stop text (which is cut off), -n tokens or the
 * end of a context of `context` positions (unless --keep) the reply is finished, everything is ready and the slot rests.
 * With -n 0 no token is taken. Returns an exit code. */
int cli_reply_take(cli_session *session, cli_reply *reply, rung_generator *generator, const rung_token *token,
                   int64_t context);
/* "text" (null without a tokeniser), "ids", "logprobs" if they were asked for, "finish". */
void cli_reply_print(const cli_session *session, const cli_reply *reply, cli_json *json);
void cli_reply_free(cli_reply *reply);

#endif
