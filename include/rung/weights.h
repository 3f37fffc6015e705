/* SPDX-License-Identifier: MIT
 * Weights: a store of named tensors that any number of programs and contexts share.
 *
 * A store is counted and safe to use from several threads. Opened from a file, it refers to the file's mapped pages:
 * nothing is copied, and the file must not be changed while the store lives (a listed limit). With RUNG_SOURCE_COPY the
 * file is read into memory instead. A store can also be made by hand: rung_weights_create, rung_weights_declare for
 * each tensor, rung_weights_set, rung_weights_commit.
 *
 * A tensor is declared (name, type, extents) and, once it has a value, loaded. A program that needs a tensor which is
 * not in the store, or not loaded, is refused with its name when a context begins to use it: there are no silent zeros.
 *
 * Generations. rung_weights_set changes nothing that anyone can see; sets wait until rung_weights_commit makes all of
 * them one new generation. Commit first builds what programs in use need of the new values (packed forms), beside the
 * old ones, and then changes over at once: a run that has begun keeps the generation it began with to its end, later
 * runs use the new one. Contexts read a store through a view (rung/program.h), which may hold private values over it;
 * a commit of the store reaches all of them except where a view has a value of its own.
 *
 * Calls that pack or commit hold the store: sets, commits, rung_view_create and rung_context_use of other threads wait
 * for them, runs do not. The host's progress callback, which hears of them, must not make such a call of the same store
 * itself. */
#ifndef RUNG_WEIGHTS_H
#define RUNG_WEIGHTS_H

#include <rung/source.h>
#include <rung/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_weights rung_weights;

typedef struct rung_weights_options {
  size_t size; /* sizeof(rung_weights_options) */
  bool check;  /* read every weight once and refuse a NaN or an infinity, as rung_weights_check does */
} rung_weights_options;
RUNG_API rung_weights_options rung_weights_options_default(void);

/* Opens a file of weights; its format is recognised by its first bytes (GGUF versions 2 and 3, safetensors). Or a model
 * folder, by its own path or that of its config.json or model.safetensors.index.json: model.safetensors, or the files
 * that the index names, all of which must lie in it. options NULL: defaults.
 * A file that is malformed in any way is refused: the message names the field or tensor and the file offset. */
RUNG_API RUNG_CHECKED rung_status rung_weights_open(rung_host *host, const rung_source *source,
                                                    const rung_weights_options *options, rung_error *error,
                                                    rung_weights **out_weights);
/* An empty store, to be filled by hand. */
RUNG_API RUNG_CHECKED rung_status rung_weights_create(rung_host *host, rung_error *error, rung_weights **out_weights);
/* Adds a tensor without a value; the name is copied. Before a view is made of the store, and by one thread. Refused:
 * names that are taken, extents that are negative, rows that are no whole blocks, sizes that do not fit 63 bits. */
RUNG_API RUNG_CHECKED rung_status rung_weights_declare(rung_weights *weights, const char *name, rung_type type,
                                                       int rank, const int64_t *extent, rung_error *error);
RUNG_API void rung_weights_retain(rung_weights *weights);
RUNG_API void rung_weights_release(rung_weights *weights); /* NULL allowed */

typedef struct rung_weights_info {
  const char *name; /* lives as long as the store */
  rung_type type;
  int rank;
  int64_t extent[RUNG_MAX_RANK]; /* outermost first */
  uint64_t bytes;
  bool loaded; /* false: declared, without a value yet */
} rung_weights_info;
/* In the order of the file. */
RUNG_API size_t rung_weights_count(const rung_weights *weights);
/* false if there is no such index. */
RUNG_API bool rung_weights_at(const rung_weights *weights, size_t index, rung_weights_info *out_info);
/* The index of a name; false if there is none. */
RUNG_API bool rung_weights_index(const rung_weights *weights, const char *name, size_t *out_index);

/* Sets all elements of a tensor, dense and outermost first: `bytes` of `type`, which is f32 or the type that the tensor
 * is stored in. f32 is converted to the stored type (to nearest, ties to even; integers saturate; a NaN stays one where
 * the type has one), never reinterpreted; bytes of the stored type are copied as they are. The data is copied before
 * the call returns. Any thread; waits while another packs forms of the store or commits. Nothing is visible before the
 * commit; a second set of the same tensor replaces the first. Refused, with nothing changed: a name that is not there,
 * any other type, a number of bytes that is not that of all elements, a block format that f32 cannot be converted to,
 * no memory. */
RUNG_API RUNG_CHECKED rung_status rung_weights_set(rung_weights *weights, const char *name, rung_type type,
                                                   const void *data, uint64_t bytes, rung_error *error);
/* Sets the elements from byte `offset` of the tensor as it is stored; the others keep what they hold (or what was set
 * and waits). The offset must be where an element begins, or a block; f32 comes in whole blocks. A tensor that is not
 * loaded is refused unless all of it is given. */
RUNG_API RUNG_CHECKED rung_status rung_weights_set_range(rung_weights *weights, const char *name, uint64_t offset,
                                                         rung_type type, const void *data, uint64_t bytes,
                                                         rung_error *error);
/* Makes what was set the current generation. It builds the forms of every program in use that needs one of the tensors
 * set, which takes the time of packing them and, until old runs have ended, the memory of both. Failed (memory,
 * budget): the generation before is still the current one, the sets still wait, and the call can be made again. Nothing
 * set: no new generation. */
RUNG_API RUNG_CHECKED rung_status rung_weights_commit(rung_weights *weights, rung_error *error);
/* Forgets what was set and not committed. */
RUNG_API void rung_weights_discard(rung_weights *weights);
/* Reads elements of the current generation from byte `offset` of the tensor as it is stored: `bytes` of `type`, f32 or
 * the stored one. f64 and wide integers are rounded in f32. NOT_LOADED: there is no value. */
RUNG_API RUNG_CHECKED rung_status rung_weights_get(rung_weights *weights, const char *name, uint64_t offset,
                                                   rung_type type, void *out, uint64_t bytes, rung_error *error);

/* Drops every form of the store that no context uses now (nor a cache, for a program that it keeps with a view),
 * whatever view it was made for; forms that are needed again are packed again, to the same bits. Forms also go when no
 * view binds the values they were made from, and with the last view. */
RUNG_API void rung_weights_trim(rung_weights *weights);
/* Bytes held for all views together, each once: `packed` forms, those of a generation that runs still keep included;
 * `weights`: source tensors that are used in place, and values that were set, waiting ones included. */
RUNG_API rung_memory rung_weights_memory(const rung_weights *weights);

/* Looks for a NaN or an infinity among the numbers of a tensor, packed formats included (a scale that is no number
 * counts for its whole block). OK: all are finite. CORRUPT_FILE: one is not; the message names tensor and index, and
 * *out_element, if not NULL, is the place of the first. NOT_LOADED: no value to look at. */
RUNG_API RUNG_CHECKED rung_status rung_weights_check_tensor(rung_weights *weights, size_t index, rung_error *error,
                                                            uint64_t *out_element);
/* The same for all that are loaded; stops at the first. */
RUNG_API RUNG_CHECKED rung_status rung_weights_check(rung_weights *weights, rung_error *error);

#ifdef __cplusplus
}
#endif
#endif
