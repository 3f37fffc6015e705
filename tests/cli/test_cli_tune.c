/* SPDX-License-Identifier: MIT
 * rung tune on a device without candidates, its flags, and winners in rung inspect. */
#define _GNU_SOURCE
#include "tool.h"

static void test_nothing_to_tune(void) {
  tool_result r = tool("tune -m " LLAMA " --dir '%s'", tool_file("winners"));
  CHECK_EQ_I64(r.code, 0);
  CHECK(strncmp(r.out, "0 kernels with candidates", 25) == 0);
  tool_free(&r);
  CHECK(access(tool_file("winners"), F_OK) != 0); /* nothing was recorded, so nothing is written */
  r = tool("tune -m " LLAMA " --json --dir '%s'", tool_file("winners"));
  CHECK_EQ_I64(r.code, 0);
  CHECK(json_lines_have(r.out, "kernels sizes candidates refused recorded changed winners"));
  tool_free(&r);
  r = tool("inspect -m " LLAMA " --kernels --json");
  CHECK_EQ_I64(r.code, 0);
  CHECK(json_lines_have(r.out, "kernels winners"));
  tool_free(&r);
}

static void test_refusals(void) {
  unsetenv("RUNG_TUNE");
  EXPECT(2, "RUNG_TUNE", "tune -m " LLAMA);
  EXPECT(2, "balanced|latency|accurate", "tune -m " LLAMA " --dir x --bound fastest");
  EXPECT(2, "--depth", "tune -m " LLAMA " --dir x --depth 0");
  EXPECT(2, "--repeat", "tune -m " LLAMA " --dir x --repeat 0");
  EXPECT(2, "-m", "tune --dir x");
  setenv("RUNG_TUNE_PROFILE", "fastest", 1);
  EXPECT(2, "RUNG_TUNE_PROFILE", "inspect -m " LLAMA " --kernels");
  unsetenv("RUNG_TUNE_PROFILE");
}

int main(void) {
  RUN(test_nothing_to_tune);
  RUN(test_refusals);
  tool_clean();
  return TEST_END();
}
