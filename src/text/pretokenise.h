/* SPDX-License-Identifier: MIT
 * The pre-tokenisers that GGUF files name, as steps that cut: a row of a table is names and patterns. The first pattern
 * is applied to the whole text, each later one inside the pieces that the one before left; a match is a piece and so is
 * what lies between matches. */
#ifndef RUNG_TEXT_PRETOKENISE_H
#define RUNG_TEXT_PRETOKENISE_H

#include "text/cut.h"
#include "text/tokenizer.h"

/* name NULL means "default". UNSUPPORTED names the pre-tokeniser that is not known. */
rung_status rung_pretokeniser_create(rung_host *host, const char *name, rung_error *error, rung_cutter **out_cutter);

/* Whether words that are tokens are taken whole without asking the merges, and whether a begin token is usual. */
bool rung_pretokeniser_ignores_merges(const char *name);
rung_choice rung_pretokeniser_adds_bos(const char *name);

#endif
