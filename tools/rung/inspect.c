/* SPDX-License-Identifier: MIT
 * rung inspect. */
#include "commands.h"

int cli_inspect(cli_session *s) { return cli_refuse(s, CLI_UNSUPPORTED, "not supported yet"); }
