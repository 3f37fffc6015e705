/* SPDX-License-Identifier: MIT
 * What the parts of the false driver share: everything that is alive, the work that waits, how a call begins and ends. */
#ifndef RUNG_TESTS_FAKE_INSIDE_H
#define RUNG_TESTS_FAKE_INSIDE_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/driver.h"
#include "device/fake_cuda.h"

#define EXPORT __attribute__((visibility("default")))
enum {
  INVALID = 1,
  NO_MEMORY = 2,
  NO_DEVICE = 100,
  NO_CONTEXT = 201,
  FAULT = 700,
  CAPTURING = 900,
  PAGE = 2 << 20,
  MOST_THREADS = 1024,
  SHARED_STANDARD = 48 << 10,
  SHARED_LIMIT = 227 << 10
};

/* ---- things that are alive */

typedef enum kind {
  BUFFER,
  RESERVATION,
  PHYSICAL,
  PINNED,
  STREAM,
  EVENT,
  MODULE,
  FUNCTION,
  GRAPH,
  EXECUTABLE,
  PROGRAM,
  PRODUCT,
  SHAPE,
  NODE,
  KINDS
} kind;

enum { WRITE, READ, COPY, FILL, LAUNCH };
typedef struct work {
  int what;
  uint64_t to, from; /* addresses there */
  uint8_t *here;     /* memory here; own: a copy made when the work was asked for */
  bool own;
  uint8_t value;
  size_t bytes;
} work;
typedef struct works {
  work *data;
  size_t count, room;
} works;

/* CUDA_KERNEL_NODE_PARAMS_v2 */
typedef struct launch_node {
  void *function;
  unsigned grid[3], block[3], shared;
  void **parameters, **extra;
  void *kernel, *context;
} launch_node;

typedef struct thing {
  struct thing *next;
  kind kind;
  uint8_t *memory; /* of a buffer, a reservation, pinned memory */
  size_t bytes;
  uint8_t *page; /* of a reservation: 0 free, 1 mapped, 2 accessible */
  struct thing **backing;
  int users; /* of physical memory: its handle and its mappings */
  works works;
  struct thing *of; /* the module of a function, the graph of a node */
  char name[64];
  int shared;
  int64_t rows, columns, pitch;
  int element;
  launch_node node;
} thing;

extern fake_cuda state;
extern pthread_mutex_t lock;
extern _Thread_local void *current;
extern thing *things;
extern works queue;
extern thing *capturing;     /* the graph that is being made */
extern const char magic[16]; /* of compiled kernels */

int wrong(const char *form, ...) __attribute__((format(printf, 1, 2)));
thing *add(kind k);
thing *find(const void *handle, kind k); /* NULL, and wrong: it is not there */
void drop(thing *gone);
void drop_works(works *w);
void put(works *to, const work *w);
void work_all(void);
int ask(void *stream, const work *w);                             /* for later, or for the graph that is being made */
uint8_t *range(uint64_t address, size_t bytes, const char *what); /* NULL, and wrong */

/* ---- calls */

bool fails(const char *name, int *out_result);
/* Begins and ends every call; a call that was made to fail does nothing. */
#define ENTER(...)                        \
  int result = 0;                         \
  pthread_mutex_lock(&lock);              \
  if (fails(__func__, &result)) goto end; \
  if (false) goto end
#define ENTER_IN_CONTEXT()                                      \
  ENTER();                                                      \
  if (!current) {                                               \
    if (!state.failed) wrong("%s without a context", __func__); \
    result = NO_CONTEXT;                                        \
    goto end;                                                   \
  }
#define LEAVE()                \
  end:                         \
  pthread_mutex_unlock(&lock); \
  return result
#define FAIL(code)   \
  do {               \
    result = (code); \
    goto end;        \
  } while (0)

#endif
