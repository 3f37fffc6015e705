/* SPDX-License-Identifier: MIT
 * A unit of the double array: bits 0-7 the byte that leads to it, 8 whether a text ends here, 9-30 where its children
 * lie, relative to it. Where a text ends the unit at its offset holds the place of the replacement. */
#include "text/charsmap.h"

#include <string.h>

#include "base/status.h"
#include "text/utf8.h"

static rung_status corrupt(rung_error *error, const char *why) {
  return rung_fail(error, RUNG_CORRUPT_FILE, "precompiled_charsmap: %s", why);
}

static uint32_t read_u32(const uint8_t *at) {
  return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & UINT32_C(0x200)) >> 6); }
static uint32_t unit_at(const rung_charsmap *map, uint32_t at) { return read_u32(map->units + 4 * (size_t)at); }
enum { ENDS_HERE = 0x100 };
#define VALUE UINT32_C(0x80000000) /* of a unit that holds a place */

/* Every unit where a text ends, whether it can be reached or not. */
static rung_status check_units(const rung_charsmap *map, rung_error *error) {
  for (uint32_t at = 0; at < map->count; at++) {
    const uint32_t unit = unit_at(map, at);
    if ((unit & VALUE) || !(unit & ENDS_HERE)) continue;
    const uint32_t end = at ^ offset_of(unit);
    if (end >= map->count) return corrupt(error, "it points out of its array");
    const uint32_t place = unit_at(map, end) & ~VALUE;
    if (place >= map->replacements.length || ((uint8_t)map->replacements.text[place] & 0xC0) == 0x80)
      return corrupt(error, "it points into no replacement");
  }
  return RUNG_OK;
}

rung_status rung_charsmap_init(rung_charsmap *map, rung_slice table, rung_error *error) {
  *map = (rung_charsmap){0};
  if (table.length < 4) return corrupt(error, "shorter than its first number");
  const uint32_t bytes = read_u32((const uint8_t *)table.text);
  const size_t left = table.length - 4;
  if (bytes > left || bytes % 4 || !bytes) return corrupt(error, "its first number is no number of bytes that follow");
  map->units = (const uint8_t *)table.text + 4;
  map->count = bytes / 4;
  map->replacements = (rung_slice){table.text + 4 + bytes, left - bytes};
  const rung_slice r = map->replacements;
  if (!r.length || r.text[r.length - 1] != 0) return corrupt(error, "its replacements have no end");
  if (rung_utf8_valid_prefix((const uint8_t *)r.text, r.length) < r.length)
    return corrupt(error, "its replacements are no UTF-8");
  return check_units(map, error);
}

size_t rung_charsmap_find(const rung_charsmap *map, const char *text, size_t length, bool longest, rung_slice *out) {
  size_t taken = 0;
  uint32_t at = offset_of(unit_at(map, 0)), place = 0;
  for (size_t i = 0; i < length && text[i] && (longest || !taken); i++) {
    at ^= (uint8_t)text[i];
    if (at >= map->count) break;
    const uint32_t unit = unit_at(map, at);
    if ((unit & (VALUE | 0xFF)) != (uint8_t)text[i]) break;
    at ^= offset_of(unit);
    if (!(unit & ENDS_HERE) || (i + 1 < length && ((uint8_t)text[i + 1] & 0xC0) == 0x80)) continue;
    taken = i + 1;
    place = unit_at(map, at) & ~VALUE;
  }
  if (!taken) return 0;
  out->text = map->replacements.text + place;
  out->length = strlen(out->text); /* the last byte is zero */
  return taken;
}
