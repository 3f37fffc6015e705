/* SPDX-License-Identifier: MIT
 * The decoders of a tokenizer.json: what the text of one token becomes. */
#ifndef RUNG_TEXT_DETOKENISE_H
#define RUNG_TEXT_DETOKENISE_H

#include "base/text.h"
#include "text/steps.h"

typedef struct rung_detokeniser rung_detokeniser; /* immutable; any number of threads */

/* Takes copies of what the steps point to. Without steps tokens are joined by blanks. */
rung_status rung_detokeniser_create(rung_host *host, const rung_text_step *steps, size_t count, rung_error *error,
                                    rung_detokeniser **out_detokeniser);
void rung_detokeniser_destroy(rung_detokeniser *detokeniser); /* NULL allowed */

/* Appends what a token's stored text stands for, bytes perhaps; `first`: no token came before it. */
void rung_detokenise(const rung_detokeniser *detokeniser, const char *stored, size_t length, bool first,
                     rung_text *text);
/* Whether the whole text loses one blank at its beginning. */
bool rung_detokeniser_strips(const rung_detokeniser *detokeniser);

#endif
