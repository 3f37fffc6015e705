/* SPDX-License-Identifier: MIT
 * Look-ups in tables of spans. */
#include "text/jinja/characters.h"

#include "base/compiler.h"
#include "text/utf8.h"

typedef struct span {
  uint32_t from, to, step;
} span;
typedef struct shift {
  uint32_t from, to, step;
  int32_t by;
} shift;
typedef struct longer {
  uint32_t from, to[3];
} longer;

#include "text/jinja/characters.inc"

bool rung_jclass_is(uint32_t c, rung_jclass class_) {
#define TABLE(name) \
  { name, RUNG_COUNT(name) }
  static const struct {
    const span *span;
    size_t count;
  } table[RUNG_J_CLASSES] = {TABLE(unprintable), TABLE(space), TABLE(alpha), TABLE(decimal), TABLE(digit),
                             TABLE(numeric),     TABLE(upper), TABLE(lower), TABLE(title)};
  const span *s = table[class_].span;
  size_t low = 0, high = table[class_].count; /* spans do not overlap: the last that begins at or before c */
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (s[middle].from <= c)
      low = middle + 1;
    else
      high = middle;
  }
  return low && c <= s[low - 1].to && (c - s[low - 1].from) % s[low - 1].step == 0;
}

int rung_jcase_of(uint32_t c, rung_jcase to, uint32_t out[3]) {
  static const struct {
    const shift *shift;
    size_t count;
    const longer *longer;
    size_t longer_count;
  } table[] = {{to_upper, RUNG_COUNT(to_upper), to_upper_longer, RUNG_COUNT(to_upper_longer)},
               {to_lower, RUNG_COUNT(to_lower), to_lower_longer, RUNG_COUNT(to_lower_longer)},
               {to_title, RUNG_COUNT(to_title), to_title_longer, RUNG_COUNT(to_title_longer)}};
  out[0] = c;
  if (c < 0x80) {
    const bool up = to != RUNG_J_TO_LOWER;
    if (up ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') out[0] = c ^ 0x20;
    return 1;
  }
  size_t low = 0, high = table[to].count; /* the last one that begins at or before c */
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (table[to].shift[middle].from <= c)
      low = middle + 1;
    else
      high = middle;
  }
  const shift *s = low ? &table[to].shift[low - 1] : NULL;
  if (s && c <= s->to && (c - s->from) % s->step == 0) {
    out[0] = (uint32_t)((int32_t)c + s->by);
    return 1;
  }
  for (size_t i = 0; i < table[to].longer_count; i++) {
    if (table[to].longer[i].from != c) continue;
    int n = 0;
    for (; n < 3 && table[to].longer[i].to[n]; n++) out[n] = table[to].longer[i].to[n];
    return n;
  }
  return 1;
}

static bool is_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x9 && c <= 0xD) || (c >= 0x1C && c <= 0x1F);
  return rung_jclass_is(c, RUNG_J_SPACE);
}

size_t rung_jspace_at(const char *text, size_t length) {
  uint32_t c;
  if (!length) return 0;
  const int n = rung_utf8_read((const uint8_t *)text, length, &c);
  return n > 0 && is_space(c) ? (size_t)n : 0;
}

size_t rung_jspace_before(const char *text, size_t length) {
  size_t n = 1;
  while (n < 4 && n < length && ((uint8_t)text[length - n] & 0xC0) == 0x80) n++;
  return length && rung_jspace_at(text + length - n, n) == n ? n : 0;
}
