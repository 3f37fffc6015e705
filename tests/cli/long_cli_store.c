/* SPDX-License-Identifier: MIT
 * Real models without a store, filling one, and out of one in a new process: the same bits each time, and nothing of a
 * start out of a store is compiled or packed. */
#define _GNU_SOURCE
#include "models/fetched.h"
#include "tool.h"

static bool same_files(const char *a, const char *b) {
  size_t n, m;
  char *x = read_file(a, &n), *y = read_file(b, &m);
  const bool same = n > 0 && n == m && memcmp(x, y, n) == 0;
  free(x);
  free(y);
  return same;
}

static void check_starts(const char *command, const char *name) {
  static const char *const names[] = {"plain.npy", "cold.npy", "warm.npy"};
  char model[4096];
  test_state.checks++;
  if (!fetched_model(name, model, sizeof model)) {
    TEST_FAIL_("%s is not there; scripts/models.py fetches it", name);
    return;
  }
  for (int i = 0; i < 3; i++) {
    char store[300] = "";
    if (i) snprintf(store, sizeof store, "--store '%s'", tool_file("store"));
    EXPECT(0, NULL, "%s -m '%s' -o '%s' %s", command, model, tool_file(names[i]), store);
    if (i) CHECK(same_files(tool_file(names[0]), tool_file(names[i])));
  }
  EXPECT(0, "0 entries removed", "cache verify --dir '%s'", tool_file("store"));
  EXPECT(0, NULL, "cache clear --dir '%s'", tool_file("store"));
}

static const char text[] =
    "-p \"In the beginning there was a machine that could not keep a secret, and nobody minded.\"";

static void test_language_models(void) {
  char command[300];
  for (int exact = 0; exact < 2; exact++) {
    snprintf(command, sizeof command, "logits --quant %s %s", exact ? "exact" : "fast", text);
    check_starts(command, "smollm2");
    check_starts(command, "gemma3");
  }
}

static void test_encoder(void) {
  char command[600];
  write_file(tool_file("lines"), "a line\nand another one, which is somewhat longer than the first\n");
  snprintf(command, sizeof command, "embed -f '%s'", tool_file("lines"));
  check_starts(command, "minilm");
}

int main(void) {
  RUN(test_language_models);
  RUN(test_encoder);
  tool_clean();
  return TEST_END();
}
