/* SPDX-License-Identifier: MIT
 * Cutting text into words before byte-level BPE: merges never cross a cut. A pre-tokeniser is a row of a table: names
 * and patterns. The first pattern is applied to the whole text, each later one inside the pieces that the one before
 * left; a match is a piece and so is what lies between matches. */
#ifndef RUNG_TEXT_PRETOKENISE_H
#define RUNG_TEXT_PRETOKENISE_H

#include "base/host.h"
#include "text/tokenizer.h"

typedef struct rung_pretokeniser rung_pretokeniser; /* immutable; any number of threads */

/* name NULL means "default". UNSUPPORTED names the pre-tokeniser that is not known, or PCRE2 where it is left out. */
rung_status rung_pretokeniser_create(rung_host *host, const char *name, rung_error *error,
                                     rung_pretokeniser **out_pretokeniser);
void rung_pretokeniser_destroy(rung_pretokeniser *pretokeniser);

/* Whether words that are tokens are taken whole without asking the merges, and whether a begin token is usual. */
bool rung_pretokeniser_ignores_merges(const rung_pretokeniser *pretokeniser);
rung_choice rung_pretokeniser_adds_bos(const char *name);

/* Calls `word` for each piece in order; stops at its first failure. The text must be valid UTF-8. */
typedef rung_status rung_word_fn(void *self, const char *text, size_t length, rung_error *error);
rung_status rung_pretokeniser_split(const rung_pretokeniser *pretokeniser, const char *text, size_t length,
                                    rung_word_fn *word, void *self, rung_error *error);

#endif
