/* SPDX-License-Identifier: MIT
 * Text of --help, of the whole command and of each subcommand. */
#include "help.h"

#include <string.h>

enum { COLUMN = 26 }; /* where descriptions begin */

void cli_help(FILE *out) {
  fprintf(out, "usage: rung COMMAND [flags]\n\nCompiles and runs models.\n\ncommands:\n");
  for (int i = 0; i < CLI_COMMANDS; i++)
    if (cli_commands[i].description) fprintf(out, "  %-10s %s\n", cli_commands[i].name, cli_commands[i].doc);
  fprintf(out,
          "\nrung COMMAND --help shows the flags of one; rung --version the version.\n"
          "Results go to standard output, everything else to standard error.\nexit: %s\n\nexample:\n  %s\n",
          cli_exit_text, "rung generate -m model.gguf -p \"Once upon a time\" -n 64");
}

static void print_flag(FILE *out, const cli_flag *f) {
  char left[96], notes[160] = "";
  snprintf(left, sizeof left, "  %s%s%s %s", f->letter ? f->letter : "", f->letter ? ", " : "", f->name,
           f->value ? f->value : "");
  if (f->standard) snprintf(notes, sizeof notes, " (default: %s)", f->standard);
  const int width = (int)strlen(left);
  if (width < COLUMN)
    fprintf(out, "%-*s%s%s\n", COLUMN, left, f->doc, notes);
  else
    fprintf(out, "%s\n%*s%s%s\n", left, COLUMN, "", f->doc, notes);
}

static void print_indented(FILE *out, const char *lines) {
  while (*lines) {
    const size_t n = strcspn(lines, "\n");
    fprintf(out, "  %.*s\n", (int)n, lines);
    lines += n + (lines[n] == '\n');
  }
}

void cli_help_command(FILE *out, cli_command_id command) {
  const cli_command *c = &cli_commands[command];
  fprintf(out, "usage: rung %s", c->name);
  for (int i = 0; i < cli_flag_count; i++) {
    const cli_flag *f = &cli_flags[i];
    if (f->required && (f->commands >> command & 1)) fprintf(out, " %s %s", f->letter ? f->letter : f->name, f->value);
  }
  fprintf(out, " [flags]\n\n%s\n\nflags:\n", c->description);
  for (int i = 0; i < cli_flag_count; i++)
    if (cli_flags[i].commands >> command & 1) print_flag(out, &cli_flags[i]);
  fprintf(out, "\nexample:\n");
  print_indented(out, c->example);
}
