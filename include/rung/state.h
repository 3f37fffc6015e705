/* SPDX-License-Identifier: MIT
 * States: memory that outlives a run. One object holds all states that a template declares, for a number of sequences.
 *
 * Key/value states live in blocks of 64 positions that hold all layers of one retention class (all positions, or a
 * sliding window). Addresses are reserved for the capacity; memory is committed as sequences grow. Lengths move only
 * when a run succeeds.
 */
#ifndef RUNG_STATE_H
#define RUNG_STATE_H

#include <rung/compile.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_state rung_state;

typedef struct rung_state_options {
  size_t size;       /* sizeof(rung_state_options) */
  int32_t sequences; /* slots, at least 1 */
  int64_t capacity;  /* positions that each sequence can reach, at least 1 */
  int64_t chunk; /* most rows of one sequence in one run: what a window's ring must have room for; 0: the capacity */
} rung_state_options;
RUNG_API rung_state_options rung_state_options_default(void);
RUNG_API RUNG_CHECKED rung_status rung_state_create(rung_template *template_, const rung_state_options *options,
                                                    rung_error *error, rung_state **out_state);
/* Another state of the same template, sizes and contents, which goes its own way from now on. Not while a run uses it.
 */
RUNG_API RUNG_CHECKED rung_status rung_state_clone(const rung_state *state, rung_error *error, rung_state **out_state);
RUNG_API void rung_state_retain(rung_state *state);
RUNG_API void rung_state_release(rung_state *state);

RUNG_API int32_t rung_state_sequences(const rung_state *state);
RUNG_API int64_t rung_state_capacity(const rung_state *state);
/* Positions that a sequence holds. */
RUNG_API int64_t rung_state_length(const rung_state *state, int32_t slot);
/* Shortens a sequence; keeps memory. Refused where a window no longer holds what would be needed. */
RUNG_API RUNG_CHECKED rung_status rung_state_truncate(rung_state *state, int32_t slot, int64_t length,
                                                      rung_error *error);
/* Forgets all sequences; decommits their memory. */
RUNG_API void rung_state_clear(rung_state *state);
/* Dense states by name: the whole tensor, borrowed. */
RUNG_API RUNG_CHECKED rung_status rung_state_tensor(rung_state *state, const char *name, rung_error *error,
                                                    rung_tensor *out_tensor);
/* One position of a key/value state in the canonical order key[kv_heads][key_dim], value[kv_heads][value_dim], as f32.
 */
RUNG_API RUNG_CHECKED rung_status rung_state_read_row(rung_state *state, const char *name, int32_t slot,
                                                      int64_t position, float *out_row, size_t count,
                                                      rung_error *error);
RUNG_API uint64_t rung_state_bytes(const rung_state *state); /* committed */

#ifdef __cplusplus
}
#endif
#endif
