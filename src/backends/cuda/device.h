/* SPDX-License-Identifier: MIT
 * One GPU: its context, the one stream on which everything happens in order, its memory, compiled modules. */
#ifndef RUNG_CUDA_DEVICE_H
#define RUNG_CUDA_DEVICE_H

#include <rung/compile.h>

#include "backends/cuda/driver.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/text.h"
#include "target/target.h"

enum { RUNG_CUDA_RING = 1 << 20 }; /* bytes of pinned memory that small copies go through */

/* What a kernel that refuses its operands leaves, in memory of the device: the first refusal of a run. */
typedef struct rung_cuda_refusal {
  int32_t set;
  int32_t kind; /* RUNG_CUDA_REFUSES_* (kernels/common.cu) */
  int64_t value, limit;
} rung_cuda_refusal;
enum {
  RUNG_CUDA_REFUSES_INDEX = 1,
  RUNG_CUDA_REFUSES_ROWS = 2,
  RUNG_CUDA_REFUSES_COUNT = 3,
  RUNG_CUDA_REFUSES_OFFSETS = 4
};

/* words.c: what a context has on the device beside its arena. */
enum { RUNG_CUDA_TABLES = 8, RUNG_CUDA_COUNTERS = 1016 };
typedef struct rung_cuda_words {
  struct rung_cuda_words *next;
  rung_cuda_refusal *refusal; /* pinned */
  uint64_t refusal_there;
  uint64_t counters; /* RUNG_CUDA_COUNTERS of them, 0 between launches */
  struct {
    uint64_t there;
    size_t bytes;
  } table[RUNG_CUDA_TABLES]; /* of block tables, as they come */
} rung_cuda_words;

typedef struct rung_cuda_module {
  struct rung_cuda_module *next;
  rung_hash key;
  void *module;
} rung_cuda_module;

/* One product of the library, as it stands in a list of launches: y[m, n] = x[m, k] w[n, k], f32 from f16 or bf16. */
typedef struct rung_cuda_product {
  uint64_t x, w, y, workspace;
  int64_t m, n, k, pitch; /* of y, in numbers */
  int32_t type, pad;      /* of x and w */
} rung_cuda_product;
enum { RUNG_CUDA_WAYS = 96, RUNG_CUDA_WORKSPACE = 32 << 20 };
typedef struct rung_cuda_way {
  int64_t m, n, k, pitch;
  int32_t type;
  uint64_t used;
  rung_cu_way way;
} rung_cuda_way;

typedef struct rung_cuda_kernel rung_cuda_kernel;
typedef struct rung_cuda {
  rung_host *host;
  rung_cu_driver driver;
  rung_cu_compiler compiler;
  rung_cu_products products;
  void *product_handle; /* NULL: the library is not there */
  rung_cuda_way *way;   /* RUNG_CUDA_WAYS, of sizes that were met; those with `used` 0 are free */
  uint64_t way_clock;
  int device;    /* ordinal */
  void *context; /* the device's primary one */
  void *stream;
  int processors, chip; /* 90 for compute capability 9.0 */
  int shared_limit;
  char level[24];
  rung_mutex lock; /* of all that follows, and of the stream */
  rung_far far;
  size_t page;
  uint8_t *ring; /* pinned */
  size_t ring_at;
  bool overlap;  /* launches may begin while those in front end */
  bool captures; /* lists may become graphs */
  int times;     /* RUNG_CUDA_TIMES */
  struct rung_cuda_graphs *graphs;
  uint64_t lists; /* that were finished: the next one's serial */
  rung_device_counters counters;
  int failed; /* the first result that was not 0 */
  const char *failed_in;
  rung_cuda_module *module;
  rung_cuda_words *words; /* that wait for a context */
  rung_target target, deterministic;
  const rung_kernel **kernel, **deterministic_kernel; /* what their `kernel` points at */
  size_t kernels, listed, deterministic_listed;       /* places, and how many are taken */
  rung_cuda_kernel *plain;                            /* rows that run on the host, one for each op that can */
  size_t plains;
  rung_cuda_kernel *region; /* rows of generated kernels, one for each op that can be in one */
  size_t regions;
  char *names;                              /* of both, in turn */
  const struct rung_winner_source *winners; /* NULL: nobody to ask */
} rung_cuda;

/* Makes the device's context the thread's, and takes the lock; and back. */
void rung_cuda_enter(rung_cuda *self, void **out_before);
void rung_cuda_leave(rung_cuda *self, void *before);
/* Remembers a result that is not 0; true for 0. Under the lock. */
bool rung_cuda_ok(rung_cuda *self, int result, const char *what);
/* What was remembered, as a status. */
rung_status rung_cuda_failed(rung_cuda *self, rung_error *error);
const char *rung_cuda_text(const rung_cuda *self, int result);

/* library.c. Under the lock. */
void rung_cuda_products_open(rung_cuda *self);
void rung_cuda_products_close(rung_cuda *self);
bool rung_cuda_multiply(rung_cuda *self, const rung_cuda_product *p);

/* memory.c */
rung_status rung_cuda_memory_open(rung_cuda *self, rung_error *error);
void rung_cuda_memory_close(rung_cuda *self);
/* What far.alloc and far.free do, under the lock: a buffer filled with zeros, 0 without memory; and back, after waiting. */
uint64_t rung_cuda_take(rung_cuda *self, size_t bytes);
void rung_cuda_give_back(rung_cuda *self, uint64_t address, size_t bytes); /* 0: nothing */

/* words.c. To leave them is under the lock, and so is closing. */
rung_status rung_cuda_words_take(rung_cuda *self, rung_error *error, rung_cuda_words **out);
void rung_cuda_words_leave(rung_cuda *self, rung_cuda_words *words); /* NULL allowed */
/* Room for a block table; 0 without memory. */
uint64_t rung_cuda_words_table(rung_cuda *self, rung_cuda_words *words, int index, size_t bytes);
void rung_cuda_words_close(rung_cuda *self);

/* compile.c: a function of a unit of kernels/, with lines of text in front of it. Compiled when it is not there. */
rung_status rung_cuda_compile(rung_cuda *self, const char *unit, const rung_text *front, const char *const *entry,
                              int entries, void **out_function, rung_error *error);
/* So much dynamic shared memory may be asked for at a launch of the function. */
rung_status rung_cuda_allow_shared(rung_cuda *self, void *function, uint32_t bytes, rung_error *error);
/* Only the text to machine code, for a chip; the code is the caller's (rung_host_free, class host). */
rung_status rung_cuda_compile_text(rung_host *host, const rung_cu_compiler *compiler, int chip, const char *name,
                                   const char *text, rung_error *error, uint8_t **out_code, size_t *out_bytes);
void rung_cuda_modules_close(rung_cuda *self);

/* The texts of kernels/, embedded when the library is built (generated). */
typedef struct rung_cuda_unit {
  const char *name;
  const unsigned char *text; /* terminated by 0 */
} rung_cuda_unit;
extern const rung_cuda_unit rung_cuda_units[];
extern const size_t rung_cuda_unit_count;
const char *rung_cuda_unit_text(const char *name); /* NULL if there is none */

/* Kernels of one row count on what a processor of compute capability 9.0 has: 227 KiB of shared memory, and launches that
 * overlap. */
static inline bool rung_cuda_has_one_row(const rung_cuda *self) { return self->chip / 10 == 9; }

#endif
