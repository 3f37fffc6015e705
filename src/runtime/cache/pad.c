/* SPDX-License-Identifier: MIT
 * Padding and slicing by rows, for callers that keep doing that by themselves. */
#include <stdint.h>
#include <string.h>

#include <rung/cache.h>

#include "base/compiler.h"
#include "base/host.h"

static rung_status check_rows(const char *what, const void *data, size_t length, size_t inner, size_t element,
                              rung_error *error, size_t *out_bytes) {
  if (!inner || !element)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "%s: a row of %zu elements of %zu bytes", what, inner, element);
  if (length % inner)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "%s: %zu elements are no whole rows of %zu", what, length, inner);
  if (!data && length) return rung_fail(error, RUNG_INVALID_ARGUMENT, "%s: data is required", what);
  if (rung_mul_overflows(length, element, out_bytes))
    return rung_fail(error, RUNG_OVERFLOW, "%s: %zu elements of %zu bytes", what, length, element);
  return RUNG_OK;
}

rung_status rung_pad_rows_into(const void *data, size_t length, size_t inner, size_t element, void *out_data,
                               size_t out_length, rung_error *error) {
  size_t bytes, room;
  RUNG_TRY(check_rows("pad_rows", data, length, inner, element, error, &bytes));
  RUNG_TRY(check_rows("pad_rows: output", out_data, out_length, inner, element, error, &room));
  if (length > out_length)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "pad_rows: %zu rows, room for %zu", length / inner, out_length / inner);
  if (bytes) memmove(out_data, data, bytes);
  if (room > bytes) memset((uint8_t *)out_data + bytes, 0, room - bytes);
  return RUNG_OK;
}

rung_status rung_pad_rows(rung_host *host, const void *data, size_t length, size_t inner, size_t element,
                          size_t ceiling, rung_error *error, void **out_data, size_t *out_length) {
  if (!host || !out_data || !out_length)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "pad_rows: host, out_data and out_length are required");
  size_t bytes, padded, room;
  RUNG_TRY(check_rows("pad_rows", data, length, inner, element, error, &bytes));
  if (length / inner > ceiling)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "pad_rows: %zu rows, the ceiling is %zu", length / inner, ceiling);
  if (rung_mul_overflows(ceiling, inner, &padded) || rung_mul_overflows(padded, element, &room))
    return rung_fail(error, RUNG_OVERFLOW, "pad_rows: %zu rows of %zu elements", ceiling, inner);
  uint8_t *out = rung_host_alloc(host, RUNG_MEMORY_host, room, 64);
  if (!out) return rung_fail(error, RUNG_OUT_OF_MEMORY, "pad_rows: %zu bytes", room);
  if (bytes) memcpy(out, data, bytes);
  *out_data = out;
  *out_length = padded;
  return RUNG_OK;
}

rung_status rung_slice_rows(const void *data, size_t length, size_t inner, size_t element, size_t rows,
                            rung_error *error, const void **out_data, size_t *out_length) {
  if (!out_data || !out_length)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "slice_rows: out_data and out_length are required");
  size_t bytes;
  RUNG_TRY(check_rows("slice_rows", data, length, inner, element, error, &bytes));
  if (rows > length / inner)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "slice_rows: %zu rows of %zu", rows, length / inner);
  *out_data = data;
  *out_length = rows * inner;
  return RUNG_OK;
}

void rung_rows_free(rung_host *host, void *data, size_t length, size_t element) {
  if (host && data) rung_host_free(host, RUNG_MEMORY_host, data, length * element);
}
