/* SPDX-License-Identifier: MIT
 * Reading a command line by the tables. */
#ifndef RUNG_TOOLS_ARGS_H
#define RUNG_TOOLS_ARGS_H

#include "table.h"

/* Fills options from argv[0..count) (flags only). Returns an exit code; a refusal is printed, with the nearest flag or
 * value there is. */
int cli_parse(cli_command_id command, int count, char **argv, cli_options *out);
/* The command of this name, or a refusal with the nearest one (exit code in *out_code). */
bool cli_find_command(const char *name, cli_command_id *out_id, int *out_code);

/* The row of `name` ("--temp" or "-n") that works for a command; NULL: none. */
const cli_flag *cli_find_flag(cli_command_id command, const char *name);

/* Edits (insert, delete, replace, swap) between two words. */
int cli_distance(const char *a, const char *b);
/* The candidate that is nearest to `word` and near enough to be meant; NULL: none. */
typedef struct cli_nearest {
  const char *word, *best;
  int distance;
} cli_nearest;
cli_nearest cli_nearest_begin(const char *word);
void cli_nearest_offer(cli_nearest *nearest, const char *candidate);

#endif
