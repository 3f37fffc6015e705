/* SPDX-License-Identifier: MIT
 * rung run. */
#include "commands.h"

int cli_run(cli_session *s) { return cli_refuse(s, CLI_UNSUPPORTED, "not supported yet"); }
