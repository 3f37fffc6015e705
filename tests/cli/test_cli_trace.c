/* SPDX-License-Identifier: MIT
 * Traces that can be read, also of a process that was killed, and Ctrl-C. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/tool.h"

static int count(const char *text, const char *word) {
  int n = 0;
  for (const char *p = text; (p = strstr(p, word)); p++) n++;
  return n;
}

static bool is_json(const char *text) {
#if RUNG_HAVE_JANSSON
  return json_valid(text);
#else
  return text[0] == '[' && strrchr(text, ']') != NULL;
#endif
}

static void check_trace(const char *text) {
  CHECK(is_json(text));
  CHECK_EQ_I64(count(text, "\"name\":\"load\""), 1);
  CHECK_EQ_I64(count(text, "\"name\":\"compile\""), 1);
  CHECK(count(text, "\"cat\":\"step\"") > 10);
  CHECK(count(text, "\"kernel\":\"") > 10 && count(text, "\"label\":\"layers.1.") > 0 &&
        count(text, "\"bytes\":") > 10);
  CHECK(count(text, "\"dur\":") == count(text, "\"ph\":\"X\""));
}

static void test_trace(void) {
  EXPECT(0, NULL, "generate -m " LLAMA " -p Hello -n 3 --trace '%s'", tool_file("t.json"));
  char *flag = read_file(tool_file("t.json"), NULL);
  check_trace(flag);
  setenv("RUNG_TRACE", tool_file("v.json"), 1);
  EXPECT(0, NULL, "logits -m " LLAMA " -p Hello -o '%s'", tool_file("l.npy"));
  unsetenv("RUNG_TRACE");
  char *variable = read_file(tool_file("v.json"), NULL);
  check_trace(variable);
  free(flag);
  free(variable);
  EXPECT(1, "cannot be written", "generate -m " LLAMA " -p Hello -n 3 --trace /nowhere/t.json");
}

/* ---- a process of one's own, so that signals can be sent */

static pid_t start(char *const *arguments, const char *out) {
  const pid_t child = fork();
  if (child) return child;
  const int file = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), null = open("/dev/null", O_WRONLY);
  if (file < 0 || null < 0 || dup2(file, 1) < 0 || dup2(null, 2) < 0) _exit(99);
  execv(tool_path(), arguments);
  _exit(98);
}

static void pause_ms(long ms) {
  const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

static bool wait_for_bytes(const char *path, off_t bytes) {
  struct stat info;
  for (int i = 0; i < 3000; i++) {
    if (stat(path, &info) == 0 && info.st_size >= bytes) return true;
    pause_ms(10);
  }
  return false;
}

static int finish(pid_t child) {
  int status = -1;
  for (int i = 0; i < 3000; i++) {
    const pid_t got = waitpid(child, &status, WNOHANG);
    if (got == child) return exit_code(status);
    pause_ms(10);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return -1;
}

/* Goes on for long: the context is large and the end token ignored. */
#define LONG_RUN(trace)                                                                                           \
  {                                                                                                               \
    (char *)"rung", (char *)"generate", (char *)"-m", (char *)LLAMA, (char *)"-p", (char *)"Hello", (char *)"-c", \
        (char *)"200000", (char *)"--ignore-eos", (char *)"-s", (char *)"1", (char *)(trace), NULL                \
  }

static void test_interrupt(void) {
  char trace[256], out[256];
  snprintf(trace, sizeof trace, "--trace=%s", tool_file("i.json"));
  snprintf(out, sizeof out, "%s", tool_file("text"));
  char *const arguments[] = LONG_RUN(trace);
  const pid_t child = start(arguments, out);
  CHECK(wait_for_bytes(out, 20));
  CHECK(kill(child, SIGINT) == 0);
  CHECK_EQ_I64(finish(child), 130);
  char *text = read_file(tool_file("i.json"), NULL);
  check_trace(text); /* closed in order */
  free(text);
  size_t bytes;
  text = read_file(out, &bytes);
  CHECK(bytes && text[bytes - 1] == '\n');
  free(text);
}

/* Everything that reached the file is readable with nothing but a bracket added. */
static void test_killed(void) {
  char trace[300], path[256], out[256];
  snprintf(path, sizeof path, "%s", tool_file("k.json"));
  snprintf(trace, sizeof trace, "--trace=%s", path);
  snprintf(out, sizeof out, "%s", tool_file("text"));
  char *const arguments[] = LONG_RUN(trace);
  const pid_t child = start(arguments, out);
  CHECK(wait_for_bytes(path, 100000));
  CHECK(kill(child, SIGKILL) == 0);
  CHECK_EQ_I64(finish(child), 1000 + SIGKILL);
  size_t bytes;
  char *text = read_file(path, &bytes), *closed = malloc(bytes + 2);
  memcpy(closed, text, bytes);
  memcpy(closed + bytes, "]", 2);
  check_trace(closed);
  free(text);
  free(closed);
}

int main(void) {
  RUN(test_trace);
  RUN(test_interrupt);
  RUN(test_killed);
  tool_clean();
  return TEST_END();
}
