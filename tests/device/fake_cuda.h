/* SPDX-License-Identifier: MIT
 * What a test sets on the false driver (fake_cuda.c), and what that has counted. Found by the symbol fake_cuda_state in
 * the library that RUNG_CUDA_DRIVER names: opening a file twice gives one library. */
#ifndef RUNG_TESTS_FAKE_CUDA_H
#define RUNG_TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fake_cuda {
  /* set by tests; fake_cuda_reset gives them their standard values */
  int version, devices, major, minor;
  uint64_t memory;    /* bytes that the GPU has */
  int64_t fail_at;    /* the call with this number fails (calls counts from 1); 0: none */
  int fail_with;      /* its result */
  bool fail_from;     /* and all behind it, as after a fault of a kernel */
  const char *failed; /* its name, once it has happened */
  /* counted */
  int64_t calls;
  int64_t contexts, streams, events, modules, graphs, executables, buffers, reservations, pages, pinned, programs,
      products;                                              /* alive now */
  uint64_t used;                                             /* of memory */
  int64_t launches, captured, patched, replayed, multiplied; /* launches: those of graphs are not counted */
  /* What no driver forgives: memory that is not mapped, handles that are gone, calls without a context. */
  int64_t wrongs;
  char wrong[200]; /* the first */
} fake_cuda;

typedef fake_cuda *fake_cuda_state_fn(void);
typedef void fake_cuda_reset_fn(void); /* only while nothing is alive */

#endif
