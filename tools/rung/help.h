/* SPDX-License-Identifier: MIT
 * Help made from the tables. */
#ifndef RUNG_TOOLS_HELP_H
#define RUNG_TOOLS_HELP_H

#include <stdio.h>

#include "table.h"

void cli_help(FILE *out);                                 /* of the whole command */
void cli_help_command(FILE *out, cli_command_id command); /* of one */

#endif
