/* SPDX-License-Identifier: MIT
 * Rendering a conversation: the public input and special tokens as variables of a template. */
#ifndef RUNG_TEXT_CHAT_H
#define RUNG_TEXT_CHAT_H

#include <rung/chat.h>

#include "text/jinja/jinja.h"

enum { RUNG_CHAT_TOKENS = 8 };

/* `token`: special tokens by variable, which bos_token and eos_token of the input override. */
rung_status rung_chat_render_with(const rung_chat_template *chat_template, const rung_chat_input *input,
                                  const rung_jvariable *token, size_t count, rung_error *error, char **out_text,
                                  size_t *out_bytes);

#endif
