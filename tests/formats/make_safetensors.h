/* SPDX-License-Identifier: MIT
 * safetensors files in memory for tests, and a walk over everything that an opened one gives access to. */
#ifndef RUNG_TESTS_FORMATS_MAKE_SAFETENSORS_H
#define RUNG_TESTS_FORMATS_MAKE_SAFETENSORS_H

#include <stdlib.h>
#include <string.h>

#include "formats/safetensors.h"
#include "test.h"

typedef struct st_file {
  uint8_t *data; /* of exactly `bytes`, so that a sanitizer sees a read past them */
  size_t bytes;
} st_file;

static inline void st_length(st_file *f, uint64_t length) {
  for (int i = 0; i < 8; i++) f->data[i] = (uint8_t)(length >> 8 * i);
}
static inline st_file st_make(const char *header, size_t bytes) {
  const size_t length = strlen(header);
  st_file f = {(uint8_t *)malloc(8 + length + bytes), 8 + length + bytes};
  if (!f.data) abort();
  st_length(&f, length);
  memcpy(f.data + 8, header, length);
  for (size_t i = 0; i < bytes; i++) f.data[8 + length + i] = (uint8_t)(i % 2);
  return f;
}
static inline st_file st_copy(const st_file *from, size_t bytes) {
  st_file f = {(uint8_t *)malloc(bytes ? bytes : 1), bytes};
  if (!f.data) abort();
  memcpy(f.data, from->data, bytes);
  return f;
}

static inline uint64_t st_walk(rung_weights *weights) {
  uint64_t sum = 0;
  for (size_t i = 0; i < rung_weights_count(weights); i++) {
    rung_weights_info info;
    size_t index;
    if (!rung_weights_at(weights, i, &info) || !info.loaded) abort();
    if (!rung_weights_index(weights, info.name, &index) || index != i) abort();
    const uint8_t *data = (const uint8_t *)rung_weights_entry(weights, i)->data;
    for (uint64_t at = 0; at < info.bytes; at++) sum = sum * 31 + data[at];
    for (int axis = 0; axis < info.rank; axis++) sum += (uint64_t)info.extent[axis];
  }
  rung_error error;
  return sum + (rung_weights_check(weights, &error) == RUNG_OK);
}

#endif
