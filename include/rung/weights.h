/* SPDX-License-Identifier: MIT
 * Weights: a store of named tensors that any number of programs and contexts share.
 *
 * A store is counted and safe to use from several threads. Opened from a file, it refers to the file's mapped pages:
 * nothing is copied, and the file must not be changed while the store lives (a listed limit). With RUNG_SOURCE_COPY the
 * file is read into memory instead. */
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

/* Opens a file of weights; its format is recognised by its first bytes (GGUF versions 2 and 3). options NULL: defaults.
 * A file that is malformed in any way is refused: the message names the field or tensor and the file offset. */
RUNG_API RUNG_CHECKED rung_status rung_weights_open(rung_host *host, const rung_source *source,
                                                    const rung_weights_options *options, rung_error *error,
                                                    rung_weights **out_weights);
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
