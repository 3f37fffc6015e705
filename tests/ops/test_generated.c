/* SPDX-License-Identifier: MIT
 * What is derived from the table of ops is up to date: rung/ops.h, build_generated.c, docs/ops.md. */
#define _POSIX_C_SOURCE 200809L /* popen */
#include <stdlib.h>

#include "test.h"

static char *read_all(FILE *f, size_t *out_bytes) {
  size_t n = 0, capacity = 1 << 20;
  char *text = (char *)malloc(capacity);
  while (text) {
    const size_t got = fread(text + n, 1, capacity - n, f);
    n += got;
    if (!got) break;
    if (n == capacity) text = (char *)realloc(text, capacity *= 2);
  }
  *out_bytes = n;
  return text;
}

static void compare(const char *mode, const char *path) {
  char command[1024], file[512];
  size_t have_bytes = 0, want_bytes = 0;
  snprintf(file, sizeof file, "%s/tools/gen_ops", RUNG_BINARY_DIR);
  FILE *tool = fopen(file, "rb");
  if (!tool) SKIP("tools/gen_ops is not built");
  if (getenv("RUNG_EMULATED")) {
    fclose(tool);
    SKIP("no child process can be run here");
  }
  fclose(tool);
  snprintf(command, sizeof command, "'%s' %s '%s'/include/rung/*.h", file, mode, RUNG_SOURCE_DIR);
  snprintf(file, sizeof file, "%s/%s", RUNG_SOURCE_DIR, path);
  FILE *pipe = popen(command, "r"), *committed = fopen(file, "rb");
  char *want = pipe ? read_all(pipe, &want_bytes) : NULL, *have = committed ? read_all(committed, &have_bytes) : NULL;
  CHECK(pipe && pclose(pipe) == 0);
  if (committed) fclose(committed);
  test_state.checks++;
  if (!want || !have || want_bytes != have_bytes || memcmp(want, have, want_bytes) != 0)
    TEST_FAIL_("%s is out of date: gen_ops %s include/rung/*.h > %s", path, mode, path);
  free(want);
  free(have);
}

static void test_header(void) { compare("header", "include/rung/ops.h"); }
static void test_source(void) { compare("source", "src/ops/build_generated.c"); }
static void test_docs(void) { compare("docs", "docs/ops.md"); }

int main(void) {
  RUN(test_header);
  RUN(test_source);
  RUN(test_docs);
  return TEST_END();
}
