/* SPDX-License-Identifier: MIT
 * Writing JSON objects to standard output; works without a JSON library. */
#ifndef RUNG_TOOLS_JSON_H
#define RUNG_TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct cli_json {
  FILE *out;
  bool follows; /* something stands before: a comma is due */
} cli_json;

cli_json cli_json_begin(FILE *out);                                /* { */
void cli_json_end(cli_json *json);                                 /* } and a newline */
void cli_json_open(cli_json *json, const char *key, char bracket); /* "key": { or [; key NULL inside a list */
void cli_json_close(cli_json *json, char bracket);
void cli_json_text(cli_json *json, const char *key, const char *text,
                   size_t bytes);                                        /* bytes that are no UTF-8: U+FFFD */
void cli_json_string(cli_json *json, const char *key, const char *text); /* NULL: null */
void cli_json_integer(cli_json *json, const char *key, int64_t value);
void cli_json_bytes(cli_json *json, const char *key, uint64_t value);
void cli_json_number(cli_json *json, const char *key, double value); /* null where it is no finite number */
void cli_json_bool(cli_json *json, const char *key, bool value);
void cli_json_ids(cli_json *json, const char *key, const int32_t *ids, size_t count);

#endif
