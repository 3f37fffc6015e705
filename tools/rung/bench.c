/* SPDX-License-Identifier: MIT
 * rung bench. */
#include "commands.h"

int cli_bench(cli_session *s) { return cli_refuse(s, CLI_UNSUPPORTED, "not supported yet"); }
