/* SPDX-License-Identifier: MIT
 * Words of the text form. All functions stay inside [at, limit) whatever the bytes are. */
#ifndef RUNG_IR_LEX_H
#define RUNG_IR_LEX_H

#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"

typedef struct rung_lex {
  const char *at, *limit;
} rung_lex;

void rung_lex_spaces(rung_lex *lex);                 /* blanks of one line */
bool rung_lex_accept(rung_lex *lex, char c);         /* after blanks */
bool rung_lex_word(rung_lex *lex, const char *word); /* after blanks; not the start of a longer word */
static inline bool rung_lex_at(const rung_lex *lex, char c) { return lex->at < lex->limit && *lex->at == c; }
/* A name of [A-Za-z0-9_.] after blanks; its length, 0 if there is none. */
size_t rung_lex_name(rung_lex *lex, const char **out_name);
/* "..." after blanks, as rung_text_quoted writes it; a terminated copy in the arena. The byte 0 is refused. */
rung_status rung_lex_quoted(rung_lex *lex, rung_arena *arena, const char **out_text, rung_error *error);

/* Bytes as `hex"00ff"` (short) or `base64"AP8="`. The rest of such a word after its name: from the opening quote on. */
void rung_blob_print(const uint8_t *data, uint64_t bytes, rung_text *out);
rung_status rung_lex_hex(rung_lex *lex, rung_arena *arena, uint8_t **out_data, uint64_t *out_bytes, rung_error *error);
rung_status rung_lex_base64(rung_lex *lex, rung_arena *arena, uint8_t **out_data, uint64_t *out_bytes,
                            rung_error *error);

#endif
