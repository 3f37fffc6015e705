/* SPDX-License-Identifier: MIT
 * Sorting: in order, nothing lost, whatever the size of elements. */
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "test.h"

static bool before(const void *self, const void *a, const void *b) {
  CHECK(self != NULL);
  uint32_t x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  return x < y;
}

static void check(size_t count, size_t bytes, int64_t kinds) {
  uint64_t seed = count * 64 + bytes;
  uint8_t *data = malloc(count * bytes + 1);
  uint32_t seen[8] = {0}, last = 0;
  for (size_t i = 0; i < count; i++) {
    const uint32_t key = (uint32_t)test_below(&seed, kinds);
    memset(data + i * bytes, (int)(key * 7 + 1), bytes); /* the rest of an element goes with its key */
    memcpy(data + i * bytes, &key, sizeof key);
    seen[key % 8]++;
  }
  data[count * bytes] = 0xA5;
  rung_sort(data, count, bytes, before, &seed);
  for (size_t i = 0; i < count; i++) {
    uint32_t key;
    memcpy(&key, data + i * bytes, sizeof key);
    CHECK(key >= last && key < kinds);
    for (size_t b = sizeof key; b < bytes; b++) CHECK(data[i * bytes + b] == (uint8_t)(key * 7 + 1));
    last = key;
    seen[key % 8]--;
  }
  for (int k = 0; k < 8; k++) CHECK_EQ_I64(seen[k], 0);
  CHECK(data[count * bytes] == 0xA5);
  free(data);
}

static void test_every_count_and_size(void) {
  static const size_t sizes[] = {4, 8, 12, 16, 24, RUNG_SORT_BYTES};
  for (size_t s = 0; s < RUNG_COUNT(sizes); s++) {
    for (size_t count = 0; count < 40; count++) {
      check(count, sizes[s], 3);
      check(count, sizes[s], 1000000);
    }
    check(3001, sizes[s], 50);
  }
}

int main(void) {
  RUN(test_every_count_and_size);
  return TEST_END();
}
