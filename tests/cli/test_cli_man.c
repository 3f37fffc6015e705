/* SPDX-License-Identifier: MIT
 * The committed man pages and completion are what tools/gen_man prints now. */
#define _GNU_SOURCE
#include "cli/tool.h"

static void test_generated(void) {
  const char *generator = RUNG_BINARY_DIR "/tools/gen_man";
  if (access(generator, X_OK)) SKIP("no gen_man");
  char command[1024];
  snprintf(command, sizeof command, "'%s' list >'%s'", generator, tool_file("list"));
  CHECK_EQ_I64(system(command), 0);
  char *list = read_file(tool_file("list"), NULL);
  int files = 0;
  for (char *name = strtok(list, "\n"); name; name = strtok(NULL, "\n"), files++) {
    char path[512];
    snprintf(path, sizeof path, RUNG_SOURCE_DIR "/docs/%s", name);
    snprintf(command, sizeof command, "'%s' '%s' >'%s'", generator, name, tool_file("made"));
    CHECK_EQ_I64(system(command), 0);
    char *made = read_file(tool_file("made"), NULL), *committed = read_file(path, NULL);
    test_state.checks++;
    if (strcmp(made, committed) != 0) TEST_FAIL_("docs/%s is not what gen_man prints; run gen_man write docs", name);
    free(made);
    free(committed);
  }
  CHECK(files >= 9);
  free(list);
}

int main(void) {
  RUN(test_generated);
  tool_clean();
  return TEST_END();
}
