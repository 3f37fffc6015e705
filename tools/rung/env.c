/* SPDX-License-Identifier: MIT
 * rung env. */
#include "commands.h"

int cli_env(cli_session *s) { return cli_refuse(s, CLI_UNSUPPORTED, "not supported yet"); }
