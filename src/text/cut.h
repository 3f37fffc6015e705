/* SPDX-License-Identifier: MIT
 * Cutting text into words, step by step: merges and pieces never cross a cut. */
#ifndef RUNG_TEXT_CUT_H
#define RUNG_TEXT_CUT_H

#include "base/host.h"
#include "text/steps.h"

typedef struct rung_cutter rung_cutter; /* immutable; any number of threads */

/* Takes copies of what the steps point to. `what` names it in messages and must stay. */
rung_status rung_cutter_create(rung_host *host, const char *what, const rung_text_step *steps, size_t count,
                               rung_error *error, rung_cutter **out_cutter);
void rung_cutter_destroy(rung_cutter *cutter); /* NULL allowed */
/* Whether the words are bytes for byte-level BPE. */
bool rung_cutter_is_byte_level(const rung_cutter *cutter);

/* Calls `word` for each piece in order, none of them empty; stops at its first failure. `first`: the text begins where
 * the whole one does. The text must be valid UTF-8. */
typedef rung_status rung_word_fn(void *self, const char *text, size_t length, rung_error *error);
rung_status rung_cutter_run(const rung_cutter *cutter, const char *text, size_t length, bool first, rung_word_fn *word,
                            void *self, rung_error *error);

#endif
