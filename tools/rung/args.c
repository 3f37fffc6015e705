/* SPDX-License-Identifier: MIT
 * Parsing: every word is a flag of the table or the value of one; everything else is refused. */
#include "args.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"

typedef struct parser {
  cli_command_id command;
  cli_options *options;
  const cli_flag *flag; /* whose value is being read */
  const char *word;     /* as it was typed */
} parser;

RUNG_PRINTF(2, 3) static int refuse(const parser *p, const char *format, ...) {
  va_list args;
  fprintf(stderr, "rung %s: ", cli_commands[p->command].name);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, "\n");
  return CLI_USAGE;
}

static bool is_name(const cli_flag *flag, const char *name) {
  return strcmp(flag->name, name) == 0 || (flag->letter && strcmp(flag->letter, name) == 0);
}

const cli_flag *cli_find_flag(cli_command_id command, const char *name) {
  for (int i = 0; i < cli_flag_count; i++)
    if ((cli_flags[i].commands >> command & 1) && is_name(&cli_flags[i], name)) return &cli_flags[i];
  return NULL;
}

static int unknown_flag(const parser *p, const char *name) {
  for (int i = 0; i < cli_flag_count; i++) {
    if (!(cli_flags[i].later >> p->command & 1) || !is_name(&cli_flags[i], name)) continue;
    (void)refuse(p, "%s is not supported yet", name);
    return CLI_UNSUPPORTED;
  }
  cli_nearest nearest = cli_nearest_begin(name);
  for (int i = 0; i < cli_flag_count; i++) {
    if (!(cli_flags[i].commands >> p->command & 1)) continue;
    cli_nearest_offer(&nearest, cli_flags[i].name);
    if (cli_flags[i].letter) cli_nearest_offer(&nearest, cli_flags[i].letter);
  }
  if (nearest.best) return refuse(p, "there is no flag %s; did you mean %s?", name, nearest.best);
  return refuse(p, "there is no flag %s; see rung %s --help", name, cli_commands[p->command].name);
}

/* ---- values */

static void *target(const parser *p) { return (char *)p->options + p->flag->offset; }

static int read_text(const parser *p, const char *value) {
  if (!p->flag->repeat) {
    *(const char **)target(p) = value;
    return CLI_OK;
  }
  cli_texts *texts = target(p);
  if (texts->count == CLI_MOST_ITEMS) return refuse(p, "%s: given more than %d times", p->word, CLI_MOST_ITEMS);
  texts->letter[texts->count] = p->flag->letter ? p->flag->letter[1] : p->flag->name[2];
  texts->item[texts->count++] = value;
  return CLI_OK;
}

static int read_integer(const parser *p, const char *text, size_t length, int64_t *out) {
  const cli_flag *f = p->flag;
  const char *end = NULL;
  const bool read = rung_parse_i64(text, text + length, out, &end) && end == text + length;
  if (!read) return refuse(p, "%s: \"%.*s\" is no whole number", p->word, (int)length, text);
  if ((double)*out < f->lo || (double)*out > f->hi)
    return refuse(p, "%s: %.*s is outside %.0f..%.0f; the nearest is %.0f", p->word, (int)length, text, f->lo, f->hi,
                  (double)*out < f->lo ? f->lo : f->hi);
  return CLI_OK;
}

static int read_number(const parser *p, const char *text) {
  const cli_flag *f = p->flag;
  const char *end = NULL;
  double value;
  if (!rung_parse_f64(text, NULL, &value, &end) || *end || !isfinite(value))
    return refuse(p, "%s: \"%s\" is no number", p->word, text);
  if (value < f->lo || value > f->hi)
    return refuse(p, "%s: %s is outside %g..%g; the nearest is %g", p->word, text, f->lo, f->hi,
                  value < f->lo ? f->lo : f->hi);
  *(double *)target(p) = value;
  return CLI_OK;
}

/* Looks for `text` among "a|b|c": its place, or -1 with each one offered to `nearest`. */
static int find_choice(const char *values, const char *text, cli_nearest *nearest) {
  static char words[2][512]; /* candidates must live on; one buffer for those that work, one for later ones */
  static int turn;
  char *copy = words[turn ^= 1];
  snprintf(copy, sizeof words[0], "%s", values ? values : "");
  int place = 0;
  for (char *word = copy; word && *word; place++) {
    char *bar = strchr(word, '|');
    if (bar) *bar = 0;
    if (strcmp(word, text) == 0) return place;
    cli_nearest_offer(nearest, word);
    word = bar ? bar + 1 : NULL;
  }
  return -1;
}

static int read_choice(const parser *p, const char *text) {
  const cli_flag *f = p->flag;
  cli_nearest nearest = cli_nearest_begin(text);
  const int place = find_choice(f->value, text, &nearest);
  if (place >= 0) {
    *(int *)target(p) = place;
    return CLI_OK;
  }
  if (find_choice(f->later_values, text, &nearest) >= 0) {
    (void)refuse(p, "%s %s is not supported yet; there is %s", p->word, text, f->value);
    return CLI_UNSUPPORTED;
  }
  if (nearest.best)
    return refuse(p, "%s: there is no \"%s\"; did you mean %s? (%s)", p->word, text, nearest.best, f->value);
  return refuse(p, "%s: there is no \"%s\", but %s", p->word, text, f->value);
}

static int read_list(const parser *p, const char *text) {
  cli_counts *list = target(p);
  list->count = 0;
  for (;;) {
    const size_t length = strcspn(text, ",");
    if (list->count == CLI_MOST_ITEMS) return refuse(p, "%s: more than %d numbers", p->word, CLI_MOST_ITEMS);
    const int code = read_integer(p, text, length, &list->item[list->count]);
    if (code) return code;
    list->count++;
    if (!text[length]) return CLI_OK;
    text += length + 1;
  }
}

static int read_value(const parser *p, const char *text) {
  switch (p->flag->kind) {
    case CLI_SWITCH:
      *(bool *)target(p) = true;
      return CLI_OK;
    case CLI_TEXT:
      return read_text(p, text);
    case CLI_COUNT:
      return read_integer(p, text, strlen(text), target(p));
    case CLI_NUMBER:
      return read_number(p, text);
    case CLI_BYTES:
      if (rung_parse_bytes(text, target(p))) return CLI_OK;
      return refuse(p, "%s: \"%s\" is no number of bytes; write 1048576, 64K, 512M or 2G", p->word, text);
    case CLI_CHOICE:
      return read_choice(p, text);
    case CLI_LIST:
      return read_list(p, text);
  }
  return CLI_FAILED;
}

/* ---- the command line */

static void set_defaults(cli_command_id command, cli_options *options) {
  *options = (cli_options){0};
  for (int i = 0; i < cli_flag_count; i++) {
    const cli_flag *f = &cli_flags[i];
    if (!f->standard || !(f->commands >> command & 1)) continue;
    const parser p = {command, options, f, f->name};
    (void)read_value(&p, f->standard);
  }
}

static int check_required(const parser *p) {
  const cli_options *o = p->options;
  if (o->help || o->version) return CLI_OK;
  for (int i = 0; i < cli_flag_count; i++) {
    const cli_flag *f = &cli_flags[i];
    if (!f->required || !(f->commands >> p->command & 1)) continue;
    if (*(const char *const *)((const char *)o + f->offset)) continue;
    return refuse(p, "%s %s is missing; see rung %s --help", f->letter ? f->letter : f->name, f->value,
                  cli_commands[p->command].name);
  }
  return CLI_OK;
}

int cli_parse(cli_command_id command, int count, char **argv, cli_options *out) {
  set_defaults(command, out);
  parser p = {.command = command, .options = out};
  for (int i = 0; i < count; i++) {
    const char *word = argv[i];
    if (word[0] != '-' || !word[1]) { /* a word alone is the model */
      const char **place = command == CLI_CACHE ? &out->action : &out->model;
      if (*place || (command != CLI_CACHE && !cli_find_flag(command, "--model")))
        return refuse(&p, "\"%s\" is no flag", word);
      *place = word;
      continue;
    }
    char name[64];
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - word) : (int)strlen(word), word);
    p.flag = cli_find_flag(command, name);
    if (!p.flag) return unknown_flag(&p, name);
    p.word = name;
    const char *value = equals ? equals + 1 : NULL;
    if (p.flag->kind == CLI_SWITCH) {
      if (value) return refuse(&p, "%s takes no value", name);
    } else if (!value) {
      if (++i == count) return refuse(&p, "%s needs a value: %s", name, p.flag->value);
      value = argv[i];
    }
    const int code = read_value(&p, value);
    if (code) return code;
  }
  return check_required(&p);
}

bool cli_find_command(const char *name, cli_command_id *out_id, int *out_code) {
  cli_nearest nearest = cli_nearest_begin(name);
  for (int i = 0; i < CLI_COMMANDS; i++) {
    if (strcmp(cli_commands[i].name, name) != 0) {
      cli_nearest_offer(&nearest, cli_commands[i].name);
      continue;
    }
    *out_id = (cli_command_id)i;
    if (cli_commands[i].description) return true;
    fprintf(stderr, "rung: %s (%s) is not supported yet\n", name, cli_commands[i].doc);
    *out_code = CLI_UNSUPPORTED;
    return false;
  }
  if (nearest.best)
    fprintf(stderr, "rung: there is no command %s; did you mean %s?\n", name, nearest.best);
  else
    fprintf(stderr, "rung: there is no command %s; see rung --help\n", name);
  *out_code = CLI_USAGE;
  return false;
}
