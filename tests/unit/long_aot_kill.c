/* SPDX-License-Identifier: MIT
 * 200 processes killed while they write a store of compiles: the next start is always right. */
#define _GNU_SOURCE
#include "aot_kill.h"

static void test_kill(void) { aot_kill(200); }

int main(void) {
  RUN(test_kill);
  aot_clean();
  return TEST_END();
}
