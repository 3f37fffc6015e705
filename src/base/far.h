/* SPDX-License-Identifier: MIT
 * Memory that the host cannot address: a device's own. Addresses in it are the device's; what is behind them is reached
 * by these calls alone. NULL stands for the host's memory, so that code which moves bytes is written once.
 *
 * The calls happen in the order in which one thread makes them, and behind the steps that it ran before; `read` waits
 * for all of them. A call that fails marks the memory, and `check` says so. */
#ifndef RUNG_BASE_FAR_H
#define RUNG_BASE_FAR_H

#include <string.h>

#include "base/status.h"

typedef struct rung_far {
  void *self;
  size_t page; /* granularity of the page calls, a power of two */
  /* As in rung_allocator. What alloc and commit give is filled with zeros. */
  void *(*alloc)(void *self, size_t bytes);
  void (*free)(void *self, void *p, size_t bytes);
  void *(*reserve)(void *self, size_t bytes);
  bool (*commit)(void *self, void *p, size_t bytes);
  void (*decommit)(void *self, void *p, size_t bytes);
  void (*release)(void *self, void *p, size_t bytes);                  /* nothing is committed there */
  void (*write)(void *self, void *to, const void *from, size_t bytes); /* `from` may change when it returns */
  void (*read)(void *self, void *to, const void *from, size_t bytes);
  void (*copy)(void *self, void *to, const void *from, size_t bytes); /* the ranges do not overlap */
  void (*zero)(void *self, void *to, size_t bytes);
  rung_status (*check)(void *self, rung_error *error);
  /* For those who do not wait: memory of the host that `read_later` may fill while nobody looks, and marks. A mark set
   * behind a read says, once waited for, that the bytes are there; it does not wait for what was asked for later. */
  void *(*pin)(void *self, size_t bytes);
  void (*unpin)(void *self, void *p); /* once nothing that fills it is under way */
  void (*read_later)(void *self, void *to, const void *from, size_t bytes);
  void *(*mark_make)(void *self); /* NULL: there is none */
  void (*mark_drop)(void *self, void *mark);
  rung_status (*mark_set)(void *self, void *mark,
                          rung_error *error); /* says what has failed before it, as check does */
  rung_status (*mark_wait)(void *self, void *mark, rung_error *error);
} rung_far;

static inline void rung_far_write(const rung_far *far, void *to, const void *from, size_t bytes) {
  if (!bytes) return;
  if (far)
    far->write(far->self, to, from, bytes);
  else
    memcpy(to, from, bytes);
}
static inline void rung_far_read(const rung_far *far, void *to, const void *from, size_t bytes) {
  if (!bytes) return;
  if (far)
    far->read(far->self, to, from, bytes);
  else
    memcpy(to, from, bytes);
}
static inline void rung_far_copy(const rung_far *far, void *to, const void *from, size_t bytes) {
  if (!bytes) return;
  if (far)
    far->copy(far->self, to, from, bytes);
  else
    memcpy(to, from, bytes);
}
static inline void rung_far_zero(const rung_far *far, void *to, size_t bytes) {
  if (!bytes) return;
  if (far)
    far->zero(far->self, to, bytes);
  else
    memset(to, 0, bytes);
}
static inline rung_status rung_far_check(const rung_far *far, rung_error *error) {
  return far ? far->check(far->self, error) : RUNG_OK;
}

#endif
