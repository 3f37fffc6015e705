/* SPDX-License-Identifier: MIT
 * Regular expressions, by PCRE2. A build without it makes them too, unread, and refuses (UNSUPPORTED) what would match.
 * Memory is the host's. */
#ifndef RUNG_TEXT_REGEX_H
#define RUNG_TEXT_REGEX_H

#include "base/host.h"

typedef struct rung_regex rung_regex; /* immutable; any number of threads */

/* `foreign`: the pattern is in Oniguruma's syntax (what tokenizer.json has) and is translated; what means something
 * else there and has no translation is UNSUPPORTED. `what` names it in messages and must stay. */
rung_status rung_regex_create(rung_host *host, const char *what, const char *pattern, size_t length, bool foreign,
                              rung_error *error, rung_regex **out_regex);
void rung_regex_destroy(rung_regex *regex); /* NULL allowed */

/* One caller's place for matches of one expression. */
typedef struct rung_regex_match rung_regex_match;
rung_status rung_regex_match_create(const rung_regex *regex, rung_error *error, rung_regex_match **out_match);
void rung_regex_match_destroy(rung_regex_match *match); /* NULL allowed */

/* The first match at or after `from` that is not empty; *out_end == *out_start: none. The text must be valid UTF-8. */
rung_status rung_regex_next(const rung_regex *regex, rung_regex_match *match, const char *text, size_t length,
                            size_t from, rung_error *error, size_t *out_start, size_t *out_end);

#endif
