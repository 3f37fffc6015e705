/* SPDX-License-Identifier: MIT
 * The op `sample` in programs chooses what the host's sampler chooses, and as often as probabilities say. */
#include "cts/sample_device.h"

static void test_same_choice(void) {
  for (int d = 0; d < 2; d++) {
    CHECK_EQ_I64(sample_on_device(world_devices[d], 331, 60, 5), 0);
    CHECK_EQ_I64(sample_on_device(world_devices[d], 3000, 10, 6), 0);
  }
}

static void test_shares(void) {
  for (int d = 0; d < 2; d++) {
    sample_shares(world_devices[d], 0.7);
    sample_shares(world_devices[d], 3);
  }
}

int main(void) {
  RUN(test_same_choice);
  RUN(test_shares);
  return TEST_END();
}
