/* SPDX-License-Identifier: MIT
 * Messages of a conversation, and what the model's chat template makes of them. */
#ifndef RUNG_TOOLS_CONVERSATION_H
#define RUNG_TOOLS_CONVERSATION_H

#include "prompt.h"

typedef struct cli_message {
  const char *role; /* a constant */
  cli_bytes text;
} cli_message;

typedef struct cli_conversation {
  cli_message *message; /* malloc */
  size_t count, capacity;
} cli_conversation;

/* Empties it and puts the system prompt there, if there is one (NULL: none). All return exit codes. */
int cli_conversation_begin(cli_session *session, cli_conversation *conversation, const char *system);
int cli_conversation_add(cli_session *session, cli_conversation *conversation, const char *role, const char *text,
                         size_t bytes);
void cli_conversation_drop(cli_conversation *conversation, size_t count); /* the messages from there on */
/* The ids up to where the answer begins. */
int cli_conversation_ids(cli_session *session, rung_model *model, const cli_conversation *conversation, cli_ids *out);
/* Says that the template is not there, or why it refuses, and returns the exit code. */
int cli_fail_template(const cli_session *session, rung_status status);
void cli_conversation_free(cli_conversation *conversation);

#endif
