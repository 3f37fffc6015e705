/* SPDX-License-Identifier: MIT
 * JSON out: commas, escapes, numbers. */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void quote(FILE *out, const char *text, size_t bytes);

static void begin_item(cli_json *j, const char *key) {
  if (j->follows) fputs(", ", j->out);
  j->follows = true;
  if (!key) return;
  quote(j->out, key, strlen(key));
  fputs(": ", j->out);
}

cli_json cli_json_begin(FILE *out) {
  fputc('{', out);
  return (cli_json){.out = out};
}

void cli_json_end(cli_json *j) { fputs("}\n", j->out); }

void cli_json_open(cli_json *j, const char *key, char bracket) {
  begin_item(j, key);
  fputc(bracket, j->out);
  j->follows = false;
}

void cli_json_close(cli_json *j, char bracket) {
  fputc(bracket, j->out);
  j->follows = true;
}

/* Length of the UTF-8 character at p, 0 if there is none. */
static size_t character(const unsigned char *p, size_t left) {
  if (p[0] < 0x80) return 1;
  const size_t n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
  if (p[0] < 0xC2 || p[0] > 0xF4 || n > left) return 0;
  for (size_t i = 1; i < n; i++)
    if ((p[i] & 0xC0) != 0x80) return 0;
  if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F)) return 0; /* too long; halves of UTF-16 pairs */
  if ((p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F)) return 0;
  return n;
}

static void quote(FILE *out, const char *text, size_t bytes) {
  const unsigned char *p = (const unsigned char *)text;
  fputc('"', out);
  for (size_t i = 0; i < bytes;) {
    const size_t n = character(p + i, bytes - i);
    if (n == 0)
      fputs("\\ufffd", out);
    else if (n > 1)
      fwrite(p + i, 1, n, out);
    else if (p[i] == '"' || p[i] == '\\')
      fprintf(out, "\\%c", p[i]);
    else if (p[i] == '\n')
      fputs("\\n", out);
    else if (p[i] == '\t')
      fputs("\\t", out);
    else if (p[i] < 0x20 || p[i] == 0x7F)
      fprintf(out, "\\u%04x", p[i]);
    else
      fputc(p[i], out);
    i += n ? n : 1;
  }
  fputc('"', out);
}

void cli_json_text(cli_json *j, const char *key, const char *text, size_t bytes) {
  begin_item(j, key);
  quote(j->out, text, bytes);
}

void cli_json_string(cli_json *j, const char *key, const char *text) {
  if (text) {
    cli_json_text(j, key, text, strlen(text));
    return;
  }
  begin_item(j, key);
  fputs("null", j->out);
}

void cli_json_integer(cli_json *j, const char *key, int64_t value) {
  begin_item(j, key);
  fprintf(j->out, "%" PRId64, value);
}

void cli_json_bytes(cli_json *j, const char *key, uint64_t value) {
  begin_item(j, key);
  fprintf(j->out, "%" PRIu64, value);
}

void cli_json_number(cli_json *j, const char *key, double value) {
  begin_item(j, key);
  if (isfinite(value))
    fprintf(j->out, "%.9g", value);
  else
    fputs("null", j->out);
}

void cli_json_bool(cli_json *j, const char *key, bool value) {
  begin_item(j, key);
  fputs(value ? "true" : "false", j->out);
}

void cli_json_ids(cli_json *j, const char *key, const int32_t *ids, size_t count) {
  cli_json_open(j, key, '[');
  for (size_t i = 0; i < count; i++) cli_json_integer(j, NULL, ids[i]);
  cli_json_close(j, ']');
}
