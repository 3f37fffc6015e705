/* SPDX-License-Identifier: MIT
 * Prints man pages and shell completion from the table of the rung command (tools/rung/table.c).
 *
 *   gen_man list          the files there are, one a line
 *   gen_man FILE          one of them
 *   gen_man write DIR     all of them into DIR (which must hold man/ and completion/)
 *
 * The output is committed under docs/; a test compares it. */
#include <stdio.h>
#include <string.h>

#include "rung/table.c"

/* ---- man pages */

/* Text for troff: hyphens that can be copied, no requests by accident. */
static void put(FILE *out, const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    const int at_line_start = i == 0 || text[i - 1] == '\n';
    if (text[i] == '-')
      fputs("\\-", out);
    else if (text[i] == '\\')
      fputs("\\e", out);
    else if (at_line_start && (text[i] == '.' || text[i] == '\''))
      fprintf(out, "\\&%c", text[i]);
    else
      fputc(text[i], out);
  }
}
static void put_text(FILE *out, const char *text) { put(out, text, strlen(text)); }

static void put_example(FILE *out, const char *example) {
  fputs(".SH EXAMPLE\n.nf\n", out);
  put_text(out, example);
  fputs("\n.fi\n", out);
}

static void put_exit(FILE *out) {
  fputs(".SH EXIT STATUS\n", out);
  put_text(out, cli_exit_text);
  fputs("\n", out);
}

static void put_variables(FILE *out) {
  fputs(".SH ENVIRONMENT\n", out);
  for (int i = 0; i < cli_variable_count; i++) {
    fprintf(out, ".TP\n.B %s\n", cli_variables[i].name);
    put_text(out, cli_variables[i].doc);
    fputs("\n", out);
  }
}

static void put_flag(FILE *out, const cli_flag *f) {
  fputs(".TP\n", out);
  if (f->letter) {
    fputs("\\fB", out);
    put_text(out, f->letter);
    fputs("\\fR, ", out);
  }
  fputs("\\fB", out);
  put_text(out, f->name);
  fputs("\\fR", out);
  if (f->value) {
    fputs(" \\fI", out);
    put_text(out, f->value);
    fputs("\\fR", out);
  }
  fputs("\n", out);
  put_text(out, f->doc);
  if (f->standard) {
    fputs(" (default: ", out);
    put_text(out, f->standard);
    fputs(")", out);
  }
  fputs("\n", out);
}

static void page(FILE *out, int command) {
  const cli_command *c = &cli_commands[command];
  fprintf(out, ".TH RUNG-%s 1 \"\" \"rung " RUNG_VERSION_TEXT "\"\n.SH NAME\nrung\\-%s \\- ", c->name, c->name);
  put_text(out, c->doc);
  fprintf(out, "\n.SH SYNOPSIS\n\\fBrung %s\\fR", c->name);
  for (int i = 0; i < cli_flag_count; i++) {
    const cli_flag *f = &cli_flags[i];
    if (!f->required || !(f->commands >> command & 1)) continue;
    fputs(" \\fB", out);
    put_text(out, f->letter ? f->letter : f->name);
    fprintf(out, "\\fR \\fI%s\\fR", f->value);
  }
  fputs(" [flags]\n.SH DESCRIPTION\n", out);
  put_text(out, c->description);
  fputs("\n.SH FLAGS\n", out);
  for (int i = 0; i < cli_flag_count; i++)
    if (cli_flags[i].commands >> command & 1) put_flag(out, &cli_flags[i]);
  put_example(out, c->example);
  put_exit(out);
  put_variables(out);
  fputs(".SH SEE ALSO\n\\fBrung\\fR(1)\n", out);
}

static void main_page(FILE *out) {
  fputs(".TH RUNG 1 \"\" \"rung " RUNG_VERSION_TEXT
        "\"\n.SH NAME\nrung \\- compiles and runs models\n"
        ".SH SYNOPSIS\n\\fBrung\\fR \\fICOMMAND\\fR [flags]\n.SH DESCRIPTION\n"
        "Results go to standard output, everything else to standard error.\n.SH COMMANDS\n",
        out);
  for (int i = 0; i < CLI_COMMANDS; i++) {
    if (!cli_commands[i].description) continue;
    fprintf(out, ".TP\n\\fBrung\\-%s\\fR(1)\n", cli_commands[i].name);
    put_text(out, cli_commands[i].doc);
    fputs("\n", out);
  }
  put_example(out, cli_commands[CLI_GENERATE].example);
  put_exit(out);
  put_variables(out);
}

/* ---- completion */

static const cli_flag *flag_at(int i, int command) {
  return cli_flags[i].commands >> command & 1 ? &cli_flags[i] : NULL;
}

static void words_of(FILE *out, int command) {
  for (int i = 0; i < cli_flag_count; i++) {
    const cli_flag *f = flag_at(i, command);
    if (!f) continue;
    fprintf(out, " %s", f->name);
    if (f->letter) fprintf(out, " %s", f->letter);
  }
}

/* What may follow a flag: the values of a choice, nothing to offer for texts and numbers, else file names. */
static void values_of(FILE *out, int command) {
  for (int i = 0; i < cli_flag_count; i++) {
    const cli_flag *f = flag_at(i, command);
    if (!f || f->kind == CLI_SWITCH) continue;
    const int files = f->kind == CLI_TEXT && (strstr(f->value, "FILE") || strstr(f->value, "DIR"));
    fprintf(out, "    %s:%s", cli_commands[command].name, f->name);
    if (f->letter) fprintf(out, "|%s:%s", cli_commands[command].name, f->letter);
    fputs(") ", out);
    if (f->kind == CLI_CHOICE) {
      fputs("words=\"", out);
      for (const char *c = f->value; *c; c++) fputc(*c == '|' ? ' ' : *c, out);
      fputs("\" ;;\n", out);
    } else {
      fputs(files ? "compopt -o default; return ;;\n" : "return ;;\n", out);
    }
  }
}

static void completion(FILE *out) {
  fputs(
      "# Completion of the rung command for bash (and zsh after bashcompinit). Made by tools/gen_man.c.\n"
      "_rung() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"",
      out);
  for (int i = 0; i < CLI_COMMANDS; i++)
    if (cli_commands[i].description) fprintf(out, "%s ", cli_commands[i].name);
  fputs("--help --version\" -- \"$word\"))\n    return\n  fi\n  case $command:$before in\n", out);
  for (int i = 0; i < CLI_COMMANDS; i++)
    if (cli_commands[i].description) values_of(out, i);
  fputs("  esac\n  if [ -z \"$words\" ]; then\n    case $command in\n", out);
  for (int i = 0; i < CLI_COMMANDS; i++) {
    if (!cli_commands[i].description) continue;
    fprintf(out, "      %s) words=\"", cli_commands[i].name);
    words_of(out, i);
    fputs("\" ;;\n", out);
  }
  fputs("    esac\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -F _rung rung\n", out);
}

/* ---- files */

enum { FILES = CLI_COMMANDS + 2 };

/* The name of file i below docs/, or NULL for a command that is not there yet. */
static const char *file_name(int i) {
  static char name[64];
  if (i == CLI_COMMANDS) return "man/rung.1";
  if (i == CLI_COMMANDS + 1) return "completion/rung.bash";
  if (!cli_commands[i].description) return NULL;
  snprintf(name, sizeof name, "man/rung-%s.1", cli_commands[i].name);
  return name;
}

static void print_file(FILE *out, int i) {
  if (i == CLI_COMMANDS)
    main_page(out);
  else if (i == CLI_COMMANDS + 1)
    completion(out);
  else
    page(out, i);
}

static int write_all(const char *folder) {
  for (int i = 0; i < FILES; i++) {
    char path[4096];
    const char *name = file_name(i);
    if (!name) continue;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (!out) return perror(path), 1;
    print_file(out, i);
    if (fclose(out)) return perror(path), 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "write") == 0) return write_all(argv[2]);
  for (int i = 0; argc == 2 && i < FILES; i++) {
    const char *name = file_name(i);
    if (!name) continue;
    if (strcmp(argv[1], "list") == 0) {
      printf("%s\n", name);
    } else if (strcmp(argv[1], name) == 0) {
      print_file(stdout, i);
      return 0;
    }
  }
  if (argc == 2 && strcmp(argv[1], "list") == 0) return 0;
  fprintf(stderr, "usage: gen_man list | FILE | write DIR\n");
  return 2;
}
