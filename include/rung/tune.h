/* SPDX-License-Identifier: MIT
 * Tuning: kernels that can be done in several ways are measured on the device at hand, and the best way is kept.
 *
 *   rung_tune(template_, ...)      measures and records; before programs are made
 *   rung_program_create(...)       takes the ways that are recorded
 *
 * Nothing else measures anything, a run least of all (rung_ladder_warm does where the policy says so). A program keeps
 * the ways that it was made with; those made later take what is recorded by then. Only the device "cuda" has kernels
 * with candidates: decode attention, whose keys can be cut into more or fewer shares. On the other devices rung_tune
 * finds nothing to do: what the cpu device does depends on extents alone, so that bits never depend on a measurement.
 *
 * Winners are kept in a table for each device and kind of kernel (its types, heads, window), one for each bucket of
 * sizes. Buckets are numbered 0..10 and hold up to 1, 2, 4 ... 512 query rows; 10 holds what is larger. A table can lie
 * in a file, a text that docs/formats.md describes, so that the next process need not measure.
 */
#ifndef RUNG_TUNE_H
#define RUNG_TUNE_H

#include <rung/compile.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How far a candidate's result may be from the reference to be chosen, as root of the mean square of the difference
 * over that of the result: 1e-2, 1e-3, 1e-5. Among those within the bound the fastest wins. DETERMINISTIC ignores the
 * table: nothing is looked up, measured or recorded, and every kernel is done as it is without a winner. */
typedef enum rung_tune_profile {
  RUNG_TUNE_BALANCED,
  RUNG_TUNE_LATENCY,
  RUNG_TUNE_ACCURATE,
  RUNG_TUNE_DETERMINISTIC
} rung_tune_profile;

/* What goes when a table is full: the largest buckets, the smallest, or what was used longest ago (of equals the
 * smallest bucket). */
typedef enum rung_tune_eviction { RUNG_TUNE_KEEP_LOW, RUNG_TUNE_KEEP_HIGH, RUNG_TUNE_LRU } rung_tune_eviction;

/* How a device keeps winners (rung_device_options.tune). */
typedef struct rung_tune_policy {
  size_t size;        /* sizeof(rung_tune_policy) */
  const char *folder; /* of the files, made when the first is written; copied. NULL: RUNG_TUNE, and without that winners
                         are kept as long as the device */
  bool load, save;    /* read files, write them; both on by default */
  bool warm;          /* rung_ladder_warm measures what has no winner yet; off by default */
  uint32_t entries;   /* most winners of a table: the smaller of this and rung_device_options.winners, at least 1 */
  rung_tune_eviction eviction;
  rung_tune_profile profile;
} rung_tune_policy;
RUNG_API rung_tune_policy rung_tune_policy_default(void); /* 256 entries, least recently used goes, balanced */

typedef struct rung_tune_options {
  size_t size;          /* sizeof(rung_tune_options) */
  int warmups, repeats; /* runs of each candidate that are not measured, and that are: 2 and 8; the median counts */
  int64_t keys;         /* positions that attention reads: 1024; a window limits it */
  bool again;           /* measure what has a winner, too */
} rung_tune_options;
RUNG_API rung_tune_options rung_tune_options_default(void);

typedef struct rung_tune_report {
  uint32_t kernels;    /* that have candidates */
  uint32_t sizes;      /* buckets measured, over all kernels */
  uint32_t candidates; /* measured */
  uint32_t refused;    /* that were too far from the reference, or that the device cannot do */
  uint32_t recorded;   /* buckets that have a winner from this call */
  uint32_t changed;    /* of these, winners that were not those of before */
} rung_tune_report;

/* Measures every kernel of the template's programs that has candidates, in every bucket up to the ceiling (symbols as
 * in rung_program_create). Candidates, the kernel without a winner and the reference are run on operands of their own,
 * in memory that is given back. A candidate that is not faster than the kernel without a winner in a second look, both
 * in turn, does not win. out_report may be NULL.
 * Fails as compiling and memory on the device can, with RUNG_IO where the table cannot be written (the winner is
 * recorded all the same), with RUNG_INVALID_ARGUMENT under the profile DETERMINISTIC and for a
 * template compiled so. May be called from many threads;
 * what else the device does meanwhile makes the measurements worse. */
RUNG_API RUNG_CHECKED rung_status rung_tune(rung_template *template_, const rung_binding *ceiling, size_t count,
                                            const rung_tune_options *options, rung_error *error,
                                            rung_tune_report *out_report);

/* One winner of a kernel that programs of this device have asked for or that was tuned. Texts live for the call. */
typedef struct rung_tune_winner {
  const char *signature; /* the kernel's: "attend_one,kv=f16,..." */
  const char *tag;       /* the candidate: "splits=16,keys=256,kv=f16,head=128,stages=2" */
  uint16_t bucket;
  int64_t tick; /* when it was used, by the table's clock */
} rung_tune_winner;
typedef void rung_tune_winner_fn(void *self, const rung_tune_winner *winner);
/* All of them, by signature in the order of first use, then by bucket. */
RUNG_API RUNG_CHECKED rung_status rung_tune_winners(rung_device *device, rung_tune_winner_fn *fn, void *self,
                                                    rung_error *error);

#ifdef __cplusplus
}
#endif
#endif
