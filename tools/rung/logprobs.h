/* SPDX-License-Identifier: MIT
 * Log-probabilities of a reply's tokens, collected for --json. */
#ifndef RUNG_TOOLS_LOGPROBS_H
#define RUNG_TOOLS_LOGPROBS_H

#include "json.h"
#include "session.h"

typedef struct cli_logprobs {
  rung_log_probability *chosen, *best; /* malloc; `most` best ones for each chosen one */
  int64_t *best_count;
  int64_t most;
  size_t count, capacity;
} cli_logprobs;

/* The slot's last token; nothing where none were asked for (`most` 0). Returns an exit code. */
int cli_logprobs_add(const cli_session *session, cli_logprobs *list, rung_generator *generator,
                     const rung_token *token);
void cli_logprobs_print(const cli_logprobs *list, cli_json *json);
void cli_logprobs_free(cli_logprobs *list);

#endif
