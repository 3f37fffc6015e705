/* SPDX-License-Identifier: MIT
 * What the files of the safetensors reader share; nobody else includes this. */
#ifndef RUNG_FORMATS_SAFETENSORS_INTERNAL_H
#define RUNG_FORMATS_SAFETENSORS_INTERNAL_H

#include "base/arena.h"
#include "base/status.h"
#include "formats/safetensors.h"
#include "text/json.h"

/* Text of a file made fit for a message: cut, and what could upset a terminal replaced. */
typedef struct rung_safetensors_shown {
  char text[68];
} rung_safetensors_shown;
rung_safetensors_shown rung_safetensors_show(const char *text, size_t length);

/* A name without control characters; one with escapes is copied into the arena. */
rung_status rung_safetensors_name(rung_arena *arena, rung_json name, uint64_t at, rung_error *error,
                                  const char **out_text, size_t *out_length);
/* Adds a file's tensors to a store, as a source. The map is taken, also on failure. */
rung_status rung_safetensors_add(rung_weights *weights, rung_map *map, rung_error *error, int *out_source);

#endif
