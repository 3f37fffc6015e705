/* SPDX-License-Identifier: MIT
 * The rung command: finds the subcommand, reads its flags, runs it. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "help.h"

static int (*const runs[CLI_COMMANDS])(cli_session *) = {
    [CLI_GENERATE] = cli_generate, [CLI_TOKENIZE] = cli_tokenize, [CLI_LOGITS] = cli_logits,
    [CLI_RUN] = cli_run,           [CLI_INSPECT] = cli_inspect,   [CLI_BENCH] = cli_bench,
    [CLI_EMBED] = cli_embed,       [CLI_ENV] = cli_env,           [CLI_PERPLEXITY] = cli_perplexity,
    [CLI_COMPILE] = cli_compile,   [CLI_GRAPH] = cli_graph,       [CLI_CACHE] = cli_cache,
    [CLI_CHAT] = cli_chat,         [CLI_TUNE] = cli_tune,
};

static int print_version(void) {
  printf("rung " RUNG_VERSION_TEXT "\n");
  return CLI_OK;
}

/* Results that could not be written are a failure, whatever came before. */
static int flush(int code) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  perror("rung: standard output");
  return code ? code : CLI_FAILED;
}

static int run_command(cli_command_id command, int count, char **argv) {
  static cli_options options; /* large */
  int code = cli_parse(command, count, argv, &options);
  if (code) return code;
  if (options.help) {
    cli_help_command(stdout, command);
    return CLI_OK;
  }
  if (options.version) return print_version();
  cli_interrupt_install();
  cli_session session;
  code = cli_open(&session, command, &options);
  if (!code) code = runs[command](&session);
  return cli_close(&session, code);
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : NULL;
  if (!name) {
    cli_help(stderr);
    return CLI_USAGE;
  }
  if (strcmp(name, "--version") == 0) return flush(print_version());
  const bool asked = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0;
  if (asked && argc < 3) {
    cli_help(stdout);
    return flush(CLI_OK);
  }
  cli_command_id command;
  int code;
  if (!cli_find_command(asked ? argv[2] : name, &command, &code)) return code;
  if (asked) {
    cli_help_command(stdout, command);
    return flush(CLI_OK);
  }
  return flush(run_command(command, argc - 2, argv + 2));
}
