/* SPDX-License-Identifier: MIT
 * SentencePiece's table of replacements: the longest and the shortest text at a place, tables that are wrong. */
#include "base/host.h"
#include "test.h"
#include "text/charsmap.h"

/* A double array made by hand for the texts "a" -> "x", "ab" -> "yz", "c" -> nothing. The root's children lie at 0x100
 * xor their byte; those of "a" at 0x200 xor theirs, the value of a text at offset 0 of its children. */
enum { UNITS = 0x400, LEAF = 0x100 };
static uint8_t table[4 + 4 * UNITS + 8];

static void put(uint32_t at, uint32_t unit) {
  for (int i = 0; i < 4; i++) table[4 + 4 * at + (uint32_t)i] = (uint8_t)(unit >> 8 * i);
}
static uint32_t offset(uint32_t from, uint32_t to) { return (from ^ to) << 10; }

static rung_slice make(void) {
  static const char replacements[8] = "x\0yz\0\0\0";
  memset(table, 0, sizeof table);
  table[1] = (uint8_t)(4 * UNITS >> 8);
  put(0, offset(0, 0x100));
  put(0x100 ^ 'a', offset(0x100 ^ 'a', 0x200) | LEAF | 'a');
  put(0x200, UINT32_C(0x80000000) | 0);
  put(0x200 ^ 'b', offset(0x200 ^ 'b', 0x300) | LEAF | 'b');
  put(0x300, UINT32_C(0x80000000) | 2);
  put(0x100 ^ 'c', offset(0x100 ^ 'c', 0x3F0) | LEAF | 'c');
  put(0x3F0, UINT32_C(0x80000000) | 5);
  memcpy(table + 4 + 4 * UNITS, replacements, sizeof replacements);
  return (rung_slice){(const char *)table, sizeof table};
}

static void finds(const char *text, bool longest, size_t want, const char *becomes) {
  rung_charsmap map;
  rung_slice out = {"", 0};
  CHECK_OK(rung_charsmap_init(&map, make(), NULL));
  const size_t taken = rung_charsmap_find(&map, text, strlen(text), longest, &out);
  CHECK_EQ_I64(taken, want);
  if (taken) CHECK(out.length == strlen(becomes) && memcmp(out.text, becomes, out.length) == 0);
}

static void test_finds(void) {
  finds("abc", true, 2, "yz");
  finds("abc", false, 1, "x");
  finds("ac", true, 1, "x");
  finds("cab", true, 1, "");
  finds("bca", true, 0, "");
  finds("", true, 0, "");
}

/* The message of a table that is refused. */
static void refused(rung_slice slice, const char *says) {
  rung_charsmap map;
  rung_error error = {0};
  CHECK_STATUS(rung_charsmap_init(&map, slice, &error), RUNG_CORRUPT_FILE);
  CHECK(strstr(error.message, says) != NULL);
}

static void test_wrong_tables(void) {
  rung_slice slice = make();
  slice.length = 3;
  refused(slice, "shorter");
  slice.length = 4 * UNITS;
  refused(slice, "no number of bytes that follow");
  slice = make();
  table[0] = 2;
  refused(slice, "no number of bytes that follow");
  slice = make();
  slice.length = 4 + 4 * UNITS;
  refused(slice, "no end");
  slice = make();
  slice.length -= 5; /* "x\0y" */
  refused(slice, "no end");
  slice = make();
  table[sizeof table - 2] = 0xFF;
  refused(slice, "no UTF-8");
  slice = make();
  put(0x300, UINT32_C(0x80000000) | 8);
  refused(slice, "into no replacement");
  slice = make();
  put(0x200 ^ 'b', offset(0x200 ^ 'b', 0xFFFFF) | LEAF | 'b');
  refused(slice, "out of its array");
  slice = make();
  put(0x100 ^ 'a', offset(0x100 ^ 'a', 0xFFF00) | 'a'); /* no children there: nothing found, nothing read */
  rung_charsmap map;
  rung_slice out;
  CHECK_OK(rung_charsmap_init(&map, slice, NULL));
  CHECK_EQ_I64(rung_charsmap_find(&map, "abc", 3, true, &out), 0);
}

int main(void) {
  RUN(test_finds);
  RUN(test_wrong_tables);
  return TEST_END();
}
