/* SPDX-License-Identifier: MIT
 * The commands: one file each. They take a session that is open and return an exit code. */
#ifndef RUNG_TOOLS_COMMANDS_H
#define RUNG_TOOLS_COMMANDS_H

#include "session.h"

int cli_generate(cli_session *session);
int cli_chat(cli_session *session);
int cli_tokenize(cli_session *session);
int cli_logits(cli_session *session);
int cli_run(cli_session *session);
int cli_inspect(cli_session *session);
int cli_bench(cli_session *session);
int cli_embed(cli_session *session);
int cli_compile(cli_session *session);
int cli_graph(cli_session *session);
int cli_cache(cli_session *session);
int cli_perplexity(cli_session *session);
int cli_tune(cli_session *session);
int cli_env(cli_session *session);

#endif
