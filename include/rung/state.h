/* SPDX-License-Identifier: MIT
 * States: memory that outlives a run. One object holds all states that a template declares, for a number of sequences.
 *
 * Key/value states hold rows by sequence ("slot") and position: position p of all layers is what the p-th token of a
 * text left there. They live in blocks of 64 positions that hold all layers of one retention class (all positions, or a
 * sliding window, whose blocks are used again in a ring). A sequence is a row of a table of blocks. Dense states are
 * plain tensors; they know no sequences.
 *
 * Programs of any ceiling of the template run on one state: going from one to another moves no byte. Memory is
 * committed as sequences grow. Lengths move only when a run succeeds; a run that fails or is cancelled leaves every
 * state as it was.
 *
 * A state belongs to one thread at a time, together with the contexts that use it. No call here may be made during a
 * run. Calls that fail have changed nothing, unless they say otherwise.
 */
#ifndef RUNG_STATE_H
#define RUNG_STATE_H

#include <rung/compile.h>
#include <rung/source.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_state rung_state;

typedef struct rung_state_options {
  size_t size;       /* sizeof(rung_state_options) */
  int32_t sequences; /* slots, at least 1 */
  int64_t capacity;  /* positions that each sequence can reach, at least 1 */
  int64_t chunk; /* most rows of one sequence in one run: what a window's ring must have room for; 0: the capacity */
  /* 0: every sequence has addresses for its capacity (contiguous, [sequences][capacity] as a batch). Else paged: all
   * sequences share this many blocks of 64 positions (in each retention class), take them as they grow and give them
   * back when they shrink; growing when none is free is RUNG_OUT_OF_RANGE. The bits of a run are the same. */
  int64_t blocks;
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
/* The first position that all key/value states still hold of a sequence: more than 0 once a window's ring has gone
 * round. */
RUNG_API int64_t rung_state_held(const rung_state *state, int32_t slot);
/* Shortens a sequence; contiguous states keep its memory. RUNG_UNSUPPORTED where a window no longer holds what would be
 * needed. To 0: nothing of the sequence is visible to a later one. */
RUNG_API RUNG_CHECKED rung_status rung_state_truncate(rung_state *state, int32_t slot, int64_t length,
                                                      rung_error *error);
/* Makes a sequence longer, up to the capacity: the new positions hold zeros, to be written with rung_state_write_rows.
 */
RUNG_API RUNG_CHECKED rung_status rung_state_extend(rung_state *state, int32_t slot, int64_t length, rung_error *error);
/* Forgets positions [keep, keep + count) of a sequence; those behind take their place, and its length falls by count.
 *
 * Keys are turned back by `count` positions, by the rotary embedding (rope) that the graph turned them with. That
 * happens once, in the type of the state, when the sequence is next read (a run that goes on with it, reading or
 * writing rows, copying, saving, extending): shifts behind the same `keep` add up as integers until then, so two by 1
 * are one by 2, bit for bit, and otherwise within two roundings of the state's type.
 *
 * RUNG_UNSUPPORTED, naming the state: where the graph has not one rope before the append of its keys that counts the
 * positions of the sequence, and where a window no longer holds what the next row would see. Dense states are left
 * alone. */
RUNG_API RUNG_CHECKED rung_status rung_state_shift(rung_state *state, int32_t slot, int64_t keep, int64_t count,
                                                   rung_error *error);
/* Sequence to_slot of `to` becomes a copy of the first `length` positions of from_slot of `from`, another sequence of
 * the same state or of another one of the template, whatever its capacity. RUNG_UNSUPPORTED where a window of `from` no
 * longer holds what the next row would see. */
RUNG_API RUNG_CHECKED rung_status rung_state_copy(rung_state *to, int32_t to_slot, rung_state *from, int32_t from_slot,
                                                  int64_t length, rung_error *error);
/* Forgets all sequences and decommits their memory; dense states become 0. */
RUNG_API void rung_state_clear(rung_state *state);
/* Dense states by name: the whole tensor, borrowed. */
RUNG_API RUNG_CHECKED rung_status rung_state_tensor(rung_state *state, const char *name, rung_error *error,
                                                    rung_tensor *out_tensor);

/* Rows of positions [first, first + count) of a key/value state, which the sequence must hold. One row in the canonical
 * order, whatever the device's own is: key[kv_heads][key_dim], value[kv_heads][value_dim], as f32. `floats` is what
 * count rows have. Keys are as the graph stored them, turned by their positions; writing rounds to the state's type. */
RUNG_API RUNG_CHECKED rung_status rung_state_read_rows(rung_state *state, const char *name, int32_t slot, int64_t first,
                                                       int64_t count, float *out_rows, size_t floats,
                                                       rung_error *error);
RUNG_API RUNG_CHECKED rung_status rung_state_write_rows(rung_state *state, const char *name, int32_t slot,
                                                        int64_t first, int64_t count, const float *rows, size_t floats,
                                                        rung_error *error);

/* Saving: one sequence, or all of them and the dense states. The rows are stored in the canonical order and the state's
 * type, with checksums: the same bits come back on any instruction set. What is stored are numbers, not what they
 * belong to: a state restored under other weights continues with nonsense.
 *
 * To a file: written beside its name and renamed, whole or not at all. To memory of exactly rung_state_saved_bytes. */
enum { RUNG_ALL_SEQUENCES = -1 };
RUNG_API RUNG_CHECKED rung_status rung_state_save(rung_state *state, int32_t slot, const char *path, rung_error *error);
RUNG_API RUNG_CHECKED rung_status rung_state_saved_bytes(rung_state *state, int32_t slot, rung_error *error,
                                                         uint64_t *out_bytes);
RUNG_API RUNG_CHECKED rung_status rung_state_save_memory(rung_state *state, int32_t slot, void *memory, uint64_t bytes,
                                                         rung_error *error);
/* Restoring what was saved: one sequence into any slot, or all of them, slots that the file does not have being
 * emptied. Capacity, chunk and blocks may differ. Refused before anything changes: a damaged file or one of another
 * version, states of other names, types or extents than the template's, sequences longer than the capacity. */
RUNG_API RUNG_CHECKED rung_status rung_state_restore(rung_state *state, int32_t slot, const rung_source *source,
                                                     rung_error *error);

RUNG_API uint64_t rung_state_bytes(const rung_state *state); /* committed */
/* Bytes that copies, shifts and feeds have moved so far; runs, and going to another program, move none. */
RUNG_API uint64_t rung_state_moved(const rung_state *state);

#ifdef __cplusplus
}
#endif
#endif
