/* SPDX-License-Identifier: MIT
 * Look-ups in tables of ranges. */
#include "text/unicode.h"

#include <stddef.h>

#include "base/compiler.h"

typedef struct range {
  uint32_t first, last;
} range;
typedef struct lower_row {
  uint32_t first, last, step;
  int32_t delta;
} lower_row;

#include "text/unicode.inc"

typedef struct table {
  const range *ranges;
  size_t count;
} table;
#define TABLE(name) \
  { name, RUNG_COUNT(name) }
static const table tables[RUNG_UNICODE_CLASSES] = {
    [RUNG_UNICODE_SPACE] = TABLE(space),
    [RUNG_UNICODE_OTHER] = TABLE(other),
    [RUNG_UNICODE_NONSPACING] = TABLE(nonspacing),
    [RUNG_UNICODE_MARK] = TABLE(mark),
    [RUNG_UNICODE_PUNCTUATION] = TABLE(punctuation),
    [RUNG_UNICODE_NUMERIC] = TABLE(numeric),
    [RUNG_UNICODE_WORD] = TABLE(word),
    [RUNG_UNICODE_IDEOGRAPH] = TABLE(ideograph),
    [RUNG_UNICODE_KEPT_WHOLE] = TABLE(kept_whole),
};

bool rung_unicode_is(uint32_t c, rung_unicode_class class_) {
  const table t = tables[class_];
  size_t low = 0, high = t.count;
  while (low < high) { /* the first range that ends at c or behind it */
    const size_t middle = low + (high - low) / 2;
    if (t.ranges[middle].last < c)
      low = middle + 1;
    else
      high = middle;
  }
  return low < t.count && t.ranges[low].first <= c;
}

uint32_t rung_unicode_lower(uint32_t c, uint32_t *out_second) {
  *out_second = 0;
  if (c < 128) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  if (c == 0x130) {
    *out_second = 0x307;
    return 'i';
  }
  size_t at = 0, high = RUNG_COUNT(lower);
  while (at < high) {
    const size_t middle = at + (high - at) / 2;
    if (lower[middle].last < c)
      at = middle + 1;
    else
      high = middle;
  }
  if (at == RUNG_COUNT(lower) || lower[at].first > c || (c - lower[at].first) % lower[at].step) return c;
  return (uint32_t)((int32_t)c + lower[at].delta);
}
