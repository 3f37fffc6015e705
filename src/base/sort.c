/* SPDX-License-Identifier: MIT
 * Heap sort over elements of any size. */
#include "base/sort.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

typedef struct heap {
  uint8_t *data;
  size_t bytes;
  rung_before_fn *before;
  const void *self;
} heap;

/* The element in `value` goes down from `at` until no child stands behind it. */
static void sift(const heap *h, size_t at, size_t count, const void *value) {
  for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    const uint8_t *c = h->data + child * h->bytes;
    if (child + 1 < count && h->before(h->self, c, c + h->bytes)) child++, c += h->bytes;
    if (!h->before(h->self, value, c)) break;
    memcpy(h->data + at * h->bytes, c, h->bytes);
    at = child;
  }
  memcpy(h->data + at * h->bytes, value, h->bytes);
}

void rung_sort(void *data, size_t count, size_t bytes, rung_before_fn *before, const void *self) {
  const heap h = {data, bytes, before, self};
  _Alignas(16) uint8_t value[RUNG_SORT_BYTES];
  assert(bytes <= sizeof value);
  for (size_t at = count / 2; at-- > 0;) {
    memcpy(value, h.data + at * bytes, bytes);
    sift(&h, at, count, value);
  }
  for (size_t n = count; n-- > 1;) {
    memcpy(value, h.data + n * bytes, bytes);
    memcpy(h.data + n * bytes, h.data, bytes);
    sift(&h, 0, n, value);
  }
}
