/* SPDX-License-Identifier: MIT
 * A growing text buffer (sticky on failure) and small helpers for reading text. Locale-independent numbers. */
#ifndef RUNG_BASE_TEXT_H
#define RUNG_BASE_TEXT_H

#include "base/host.h"

typedef struct rung_text {
  rung_host *host;
  char *data; /* terminated when length > 0 */
  size_t length, capacity;
  bool failed; /* an allocation failed; later writes do nothing */
} rung_text;
void rung_text_init(rung_text *text, rung_host *host);
void rung_text_finish(rung_text *text);
void rung_text_add(rung_text *text, const char *data, size_t length);
void rung_text_puts(rung_text *text, const char *string);
void rung_text_printf(rung_text *text, const char *format, ...) RUNG_PRINTF(2, 3);
/* The shortest decimal that reads back as the same double; inf, -inf, nan as such. */
void rung_text_double(rung_text *text, double value);
void rung_text_quoted(rung_text *text, const char *data, size_t length); /* "..." with \" \\ \n \t \xHH */
rung_status rung_text_status(const rung_text *text, rung_error *error);  /* OUT_OF_MEMORY if failed */

/* Locale-independent; *end is set behind what was read; false if nothing was read or it does not fit. */
bool rung_parse_i64(const char *text, const char *limit, int64_t *out, const char **end);
bool rung_parse_f64(const char *text, const char *limit, double *out, const char **end);
/* "1024", "64K", "512M", "2G" (powers of 1024). */
bool rung_parse_bytes(const char *text, uint64_t *out);

#endif
