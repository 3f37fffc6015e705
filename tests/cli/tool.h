/* SPDX-License-Identifier: MIT
 * Running the built rung command from a test: its exit code, standard output and standard error. */
#ifndef RUNG_TESTS_CLI_TOOL_H
#define RUNG_TESTS_CLI_TOOL_H

#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#if RUNG_HAVE_JANSSON
#include <jansson.h>
#endif

#include "test.h"

#define TINY RUNG_SOURCE_DIR "/tests/models/tiny/"
#define LLAMA TINY "llama.gguf"
#define GEMMA TINY "gemma3.gguf"

static const char *tool_path(void) {
  const char *path = getenv("RUNG_TOOL");
  return path ? path : RUNG_BINARY_DIR "/rung";
}

/* A folder of this test's own; removed by tool_clean. */
static const char *tool_folder(void) {
  static char folder[128];
  if (!folder[0]) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.90s/rung-cli-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) perror(folder), exit(1);
  }
  return folder;
}
static inline const char *tool_file(const char *name) {
  static char path[4][256];
  static int turn;
  char *out = path[turn++ % 4];
  snprintf(out, sizeof path[0], "%s/%s", tool_folder(), name);
  return out;
}
static inline void tool_clean(void) {
  char command[256];
  snprintf(command, sizeof command, "rm -rf '%s'", tool_folder());
  if (system(command)) fprintf(stderr, "%s stays\n", tool_folder());
}

static inline char *read_file(const char *path, size_t *out_bytes) {
  FILE *file = fopen(path, "rb");
  size_t used = 0, capacity = 1 << 16;
  char *data = malloc(capacity + 1);
  while (file && data) {
    const size_t got = fread(data + used, 1, capacity - used, file);
    used += got;
    if (!got) break;
    if (used == capacity) data = realloc(data, (capacity *= 2) + 1);
  }
  if (file) fclose(file);
  if (!data) exit(1);
  data[used] = 0;
  if (out_bytes) *out_bytes = used;
  return data;
}
static inline void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  if (!file || fputs(text, file) < 0 || fclose(file)) perror(path), exit(1);
}

typedef struct tool_result {
  int code; /* exit code; 1000 + signal */
  char *out, *err;
  size_t out_bytes;
} tool_result;

static inline int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status); }

/* Arguments as in a shell; "<file" and so on work. */
__attribute__((format(printf, 1, 2))) static inline tool_result tool(const char *format, ...) {
  char arguments[4096], command[8192];
  va_list list;
  va_start(list, format);
  vsnprintf(arguments, sizeof arguments, format, list);
  va_end(list);
  snprintf(command, sizeof command, "'%s' %s >'%s' 2>'%s'", tool_path(), arguments, tool_file("out"), tool_file("err"));
  tool_result r = {.code = exit_code(system(command))};
  r.out = read_file(tool_file("out"), &r.out_bytes);
  r.err = read_file(tool_file("err"), NULL);
  return r;
}
static inline void tool_free(tool_result *r) {
  free(r->out);
  free(r->err);
}

/* Runs, expects an exit code and a text in standard error (NULL: anything). */
#define EXPECT(want_code, want_error, ...)                                                                  \
  do {                                                                                                      \
    tool_result expect_ = tool(__VA_ARGS__);                                                                \
    test_state.checks++;                                                                                    \
    const char *text_ = (want_error);                                                                       \
    if (expect_.code != (want_code) || (text_ && !strstr(expect_.err, text_)))                              \
      TEST_FAIL_("exit code %d, not %d with \"%s\"; said: %s", expect_.code, want_code, text_ ? text_ : "", \
                 expect_.err);                                                                              \
    tool_free(&expect_);                                                                                    \
  } while (0)

/* ---- JSON. Without jansson: only that the key is there. */
#if RUNG_HAVE_JANSSON
static inline bool json_valid(const char *text) {
  json_t *root = json_loads(text, 0, NULL);
  json_decref(root);
  return root != NULL;
}
/* One number of an object, NAN if it is missing. */
static inline double json_number_of(const char *text, const char *key) {
  json_t *root = json_loads(text, 0, NULL);
  const json_t *value = json_object_get(root, key);
  const double number = json_is_number(value) ? json_number_value(value) : (double)__builtin_nanf("");
  json_decref(root);
  return number;
}
#endif
/* Every line of `text` is an object that has all keys (separated by blanks). */
static inline bool json_lines_have(const char *text, const char *keys) {
  char *copy = malloc(strlen(text) + 1), *line = copy;
  if (!copy) return false;
  strcpy(copy, text);
  bool all = *text != 0;
  for (char *end; all && *line; line = end + 1) {
    end = strchr(line, '\n');
    if (!end) break;
    *end = 0;
#if RUNG_HAVE_JANSSON
    json_t *root = json_loads(line, 0, NULL);
    all = json_is_object(root);
#endif
    char key[64];
    int used;
    for (const char *k = keys; all && sscanf(k, "%63s%n", key, &used) == 1; k += used) {
#if RUNG_HAVE_JANSSON
      all = json_object_get(root, key) != NULL;
#else
      all = strstr(line, key) != NULL;
#endif
      if (!all) fprintf(stderr, "no %s in %s\n", key, line);
    }
#if RUNG_HAVE_JANSSON
    json_decref(root);
#endif
  }
  free(copy);
  return all;
}

#endif
