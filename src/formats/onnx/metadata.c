/* SPDX-License-Identifier: MIT
 * The notes of an ONNX file: pairs of key and value that its maker left, such as the labels of its classes. */
#include <string.h>

#include "base/map_file.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/wire.h"

enum { NOTES = 14, KEY = 1, VALUE = 2 };

/* One pair; *out_value of 0 bytes at NULL where the key is another. */
static rung_status read_pair(const uint8_t *file, rung_span pair, const char *key, rung_error *error,
                             rung_span *out_value) {
  rung_cursor c = rung_cursor_of(file, pair, error);
  rung_field f;
  rung_span value = {pair.data, 0};
  bool same = false;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) break;
    if (f.wire != RUNG_WIRE_BYTES) continue;
    if (f.number == KEY) same = f.span.bytes == strlen(key) && memcmp(f.span.data, key, strlen(key)) == 0;
    if (f.number == VALUE) value = f.span;
  }
  if (same) *out_value = value;
  return RUNG_OK;
}

static rung_status find(const rung_map *map, const char *key, rung_error *error, rung_span *out) {
  rung_cursor c = rung_cursor_of(map->data, (rung_span){map->data, map->size}, error);
  rung_field f;
  for (bool more;;) {
    RUNG_TRY(rung_wire_next(&c, &f, &more));
    if (!more) return rung_fail(error, RUNG_NOT_FOUND, "the model has no note \"%.80s\"", key);
    if (f.number != NOTES || f.wire != RUNG_WIRE_BYTES) continue;
    RUNG_TRY(read_pair(map->data, f.span, key, error, out));
    if (out->data) return RUNG_OK;
  }
}

rung_status rung_onnx_note(rung_host *host, const rung_source *source, const char *key, rung_error *error,
                           char **out_text, size_t *out_bytes) {
  if (!host || !source || !key || !out_text || !out_bytes)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "onnx: a host, a source, a key and places for the text are wanted");
  rung_map map = {0};
  rung_span value = {0};
  RUNG_TRY(rung_map_open(&map, host, source, error));
  rung_status status = find(&map, key, error, &value);
  char *text = status ? NULL : (char *)rung_host_alloc(host, RUNG_MEMORY_host, (size_t)value.bytes + 1, 0);
  if (!status && !text) status = rung_fail(error, RUNG_OUT_OF_MEMORY, "onnx: no memory for a note");
  if (!status) {
    if (value.bytes) memcpy(text, value.data, (size_t)value.bytes);
    text[value.bytes] = 0;
    *out_text = text;
    *out_bytes = (size_t)value.bytes;
  }
  rung_map_close(&map);
  return status;
}
