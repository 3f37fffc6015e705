/* SPDX-License-Identifier: MIT
 * Work on texts that filters and methods share. */
#ifndef RUNG_TEXT_JINJA_TEXT_H
#define RUNG_TEXT_JINJA_TEXT_H

#include "text/jinja/call.h"

typedef enum rung_jend { RUNG_J_LEFT = 1, RUNG_J_RIGHT = 2 } rung_jend; /* a bit set */

/* `chars` NULL: whitespace. */
rung_status rung_jtext_strip(rung_jrun *run, const rung_jstring *s, const rung_jstring *chars, unsigned ends,
                             rung_jvalue *out);
typedef enum rung_jform {
  RUNG_J_FORM_UPPER,
  RUNG_J_FORM_LOWER,
  RUNG_J_FORM_CAPITAL,
  RUNG_J_FORM_TITLE,
  RUNG_J_FORM_WORDS
} rung_jform;
/* TITLE as str.title, WORDS as the filter title. */
rung_status rung_jtext_form(rung_jrun *run, const rung_jstring *s, rung_jform form, rung_jvalue *out);
/* count < 0: all. */
rung_status rung_jtext_replace(rung_jrun *run, const rung_jstring *s, const rung_jstring *old, const rung_jstring *new_,
                               int64_t count, rung_jvalue *out);
/* A list of lines without (with) their ends. */
rung_status rung_jtext_lines(rung_jrun *run, const rung_jstring *s, bool keep, rung_jvalue *out);
/* `how` is '<', '>' or '^'; width in characters. Python centres with the odd blank on the left where width is odd. */
rung_status rung_jtext_pad(rung_jrun *run, const rung_jstring *s, int64_t width, const char *fill, size_t fill_bytes,
                           char how, rung_jvalue *out);

#endif
