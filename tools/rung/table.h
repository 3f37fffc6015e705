/* SPDX-License-Identifier: MIT
 * The one table of commands and the one table of flags. Parsing, --help, man pages and completion all come from them.
 */
#ifndef RUNG_TOOLS_TABLE_H
#define RUNG_TOOLS_TABLE_H

#include "options.h"

/* Exit codes of every command. */
enum {
  CLI_OK = 0,
  CLI_FAILED = 1,
  CLI_USAGE = 2,
  CLI_BAD_FILE = 3,
  CLI_UNSUPPORTED = 4,
  CLI_NO_MEMORY = 5,
  CLI_INTERRUPTED = 130
};

typedef enum cli_command_id {
  CLI_GENERATE,
  CLI_TOKENIZE,
  CLI_LOGITS,
  CLI_EMBED,
  CLI_RUN,
  CLI_INSPECT,
  CLI_BENCH,
  CLI_ENV,
  CLI_COMPILE,
  CLI_GRAPH,
  CLI_CACHE,
  CLI_PERPLEXITY,
  CLI_CHAT,
  CLI_TUNE,
  CLI_QUANTIZE, /* from here on: known by name, not there yet */
  CLI_CONVERT,
  CLI_COMMANDS
} cli_command_id;

typedef struct cli_command {
  const char *name;
  const char *doc;         /* one line */
  const char *description; /* what --help and the man page say below the usage line; NULL: not there yet */
  const char *example;     /* lines of shell */
} cli_command;
extern const cli_command cli_commands[CLI_COMMANDS];

typedef enum cli_kind {
  CLI_SWITCH, /* bool */
  CLI_TEXT,   /* const char *, or cli_texts where the row may be repeated */
  CLI_COUNT,  /* int64_t in [lo, hi] */
  CLI_NUMBER, /* double in [lo, hi] */
  CLI_BYTES,  /* uint64_t: 1024, 64K, 512M, 2G */
  CLI_CHOICE, /* int: the place among `values` */
  CLI_LIST    /* cli_counts: N,N in [lo, hi] */
} cli_kind;

typedef struct cli_flag {
  unsigned commands;  /* bit set of cli_command_id: where it works */
  unsigned later;     /* where it is known and refused as not there yet */
  const char *name;   /* "--temp" */
  const char *letter; /* "-t"; NULL: none */
  cli_kind kind;
  const char *value;        /* what --help calls it: "TEXT"; for choices the values, "f16|f32" */
  const char *later_values; /* of a choice: known and refused */
  size_t offset;
  bool repeat, required;
  double lo, hi;
  const char *standard; /* the default, as text to parse; NULL: zero */
  const char *doc;
} cli_flag;
extern const cli_flag cli_flags[];
extern const int cli_flag_count;

/* Variables of the environment that are read. */
typedef struct cli_variable {
  const char *name, *doc;
} cli_variable;
extern const cli_variable cli_variables[];
extern const int cli_variable_count;

/* What codes mean, for help and man pages. */
extern const char cli_exit_text[];

#endif
