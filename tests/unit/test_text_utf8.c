/* SPDX-License-Identifier: MIT
 * UTF-8: every scalar value there and back, every ill-formed beginning. */
#include "test.h"
#include "text/utf8.h"

static void test_all_characters(void) {
  for (uint32_t c = 0; c < 0x110000; c++) {
    if (c >= 0xD800 && c < 0xE000) continue;
    uint8_t bytes[4];
    const int n = rung_utf8_write(c, bytes);
    uint32_t back = 0;
    if (rung_utf8_read(bytes, 4, &back) != n || back != c || rung_utf8_valid_prefix(bytes, (size_t)n) != (size_t)n ||
        rung_utf8_announced(bytes[0]) != (size_t)n) {
      CHECK_EQ_I64(back, c);
      break;
    }
    for (int k = 1; k < n; k++) /* any beginning waits for more */
      if (rung_utf8_read(bytes, (size_t)k, &back) != 0) CHECK_EQ_I64(c, -k);
  }
  CHECK(true);
}

/* What table 3-7 of the Unicode standard says, written the long way. */
static bool well_formed(const uint8_t *b, int n) {
  const uint8_t first = b[0];
  if (n == 1) return first < 0x80;
  for (int i = 1; i < n; i++)
    if (b[i] < 0x80 || b[i] > 0xBF) return false;
  if (n == 2) return first >= 0xC2 && first <= 0xDF;
  if (n == 3)
    return first >= 0xE0 && first <= 0xEF && !(first == 0xE0 && b[1] < 0xA0) && !(first == 0xED && b[1] > 0x9F);
  return first >= 0xF0 && first <= 0xF4 && !(first == 0xF0 && b[1] < 0x90) && !(first == 0xF4 && b[1] > 0x8F);
}

static void test_all_beginnings(void) {
  static const uint8_t third[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
  int bad = 0;
  for (int a = 0; a < 256; a++)
    for (int b = 0; b < 256; b++)
      for (size_t c = 0; c < RUNG_COUNT(third); c++)
        for (size_t d = 0; d < RUNG_COUNT(third); d++) {
          const uint8_t bytes[4] = {(uint8_t)a, (uint8_t)b, third[c], third[d]};
          int want = 0;
          for (int n = 1; n <= 4 && !want; n++)
            if (well_formed(bytes, n)) want = n;
          uint32_t character = 0;
          const int got = rung_utf8_read(bytes, 4, &character);
          bad += want ? got != want : got >= 0;
          /* What is called bad must be a beginning of something unless it is one byte. */
          if (got < -1) bad += rung_utf8_read(bytes, (size_t)-got, &character) != 0;
          if (got > 0) bad += character > 0x10FFFF || (character >= 0xD800 && character < 0xE000);
        }
  CHECK_EQ_I64(bad, 0);
}

static void test_valid_prefix(void) {
  const char *text = "0123456789abcdef\xC3\xA9 0123456789\xE6\x97\xA5\xF0\x9F\x98\x80";
  const size_t length = strlen(text);
  CHECK_EQ_I64(rung_utf8_valid_prefix((const uint8_t *)text, length), length);
  CHECK_EQ_I64(rung_utf8_valid_prefix((const uint8_t *)text, length - 1), length - 4);
  CHECK_EQ_I64(rung_utf8_valid_prefix((const uint8_t *)text, 17), 16);
  CHECK_EQ_I64(rung_utf8_valid_prefix((const uint8_t *)text, 0), 0);
  for (size_t at = 0; at < 40; at++) {
    uint8_t bytes[40];
    memset(bytes, 'x', sizeof bytes);
    bytes[at] = 0xFF;
    CHECK_EQ_I64(rung_utf8_valid_prefix(bytes, sizeof bytes), at);
  }
}

int main(void) {
  RUN(test_all_characters);
  RUN(test_all_beginnings);
  RUN(test_valid_prefix);
  return TEST_END();
}
