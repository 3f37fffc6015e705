/* SPDX-License-Identifier: MIT
 * Normalisers: a text becomes another one, step by step, before it is cut. Normal forms and the stripping of accents
 * need utf8proc. */
#ifndef RUNG_TEXT_NORMALISE_H
#define RUNG_TEXT_NORMALISE_H

#include "base/text.h"
#include "text/steps.h"

typedef struct rung_normaliser rung_normaliser; /* immutable; any number of threads */

/* Takes copies of what the steps point to. UNSUPPORTED names a step that this build cannot do. */
rung_status rung_normaliser_create(rung_host *host, const rung_text_step *steps, size_t count, rung_error *error,
                                   rung_normaliser **out_normaliser);
void rung_normaliser_destroy(rung_normaliser *normaliser); /* NULL allowed */

/* What one caller works in; it grows and is used again. */
typedef struct rung_normal_work {
  rung_host *host;
  rung_text text[2];
  uint32_t *character;
  size_t capacity;
} rung_normal_work;
void rung_normal_work_init(rung_normal_work *work, rung_host *host);
void rung_normal_work_finish(rung_normal_work *work);

/* *out is in `work`, or the text itself where nothing changes. *out_first: the first character still is, or comes from,
 * the text's first one. The text must be valid UTF-8; so is the result. */
rung_status rung_normaliser_run(const rung_normaliser *normaliser, const char *text, size_t length,
                                rung_normal_work *work, rung_error *error, rung_slice *out, bool *out_first);

#endif
