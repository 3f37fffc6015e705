/* SPDX-License-Identifier: MIT
 * Caches under eight threads for a minute. */
#include "cts/cache_threads.h"

static void test_storm(void) { storm_run(60); }

int main(void) {
  RUN(test_storm);
  return TEST_END();
}
