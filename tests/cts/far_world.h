/* SPDX-License-Identifier: MIT
 * A device whose memory the host may not touch, made of a backend of the host: what is read later arrives at the mark and
 * not before, and a step that refuses says so only when the run is settled, as a GPU's do. Steps themselves run at once. */
#ifndef RUNG_TESTS_CTS_FAR_WORLD_H
#define RUNG_TESTS_CTS_FAR_WORLD_H

#include "cts/world.h"

enum { FAR_PAGE = 4096, FAR_READS = 256 };

typedef struct far_read {
  uint8_t *to, *bytes;
  size_t count;
  uint64_t at;
} far_read;

typedef struct far_world {
  rung_far far;
  rung_target target;
  rung_backend backend;
  const rung_backend *under;
  uint64_t clock; /* of reads and marks */
  far_read read[FAR_READS];
  int reads, pinned, marks;
  rung_status refused;
  int waits; /* for the whole device */
} far_world;
static far_world far_device; /* one at a time */

static inline void *far_w_alloc(void *self, size_t bytes) {
  (void)self;
  return calloc(1, bytes ? bytes : 1);
}
static inline void far_w_free(void *self, void *p, size_t bytes) {
  (void)self, (void)bytes;
  free(p);
}
static inline void *far_w_reserve(void *self, size_t bytes) {
  (void)self;
  return aligned_alloc(FAR_PAGE, bytes);
}
static inline bool far_w_commit(void *self, void *p, size_t bytes) {
  (void)self;
  memset(p, 0, bytes);
  return true;
}
static inline void far_w_decommit(void *self, void *p, size_t bytes) {
  (void)self;
  memset(p, 0xA5, bytes);
}
static inline void far_w_copy(void *self, void *to, const void *from, size_t bytes) {
  (void)self;
  memcpy(to, from, bytes);
}
static inline void far_w_write(void *self, void *to, const void *from, size_t bytes) {
  (void)self;
  memcpy(to, from, bytes);
}
/* Everything that was to come by then is there. */
static inline void far_w_pass(far_world *f, uint64_t at) {
  int kept = 0;
  for (int i = 0; i < f->reads; i++) {
    far_read *r = &f->read[i];
    if (r->at > at) {
      f->read[kept++] = *r;
      continue;
    }
    memcpy(r->to, r->bytes, r->count);
    free(r->bytes);
  }
  f->reads = kept;
}
static inline void far_w_read(void *self, void *to, const void *from, size_t bytes) {
  far_world *f = (far_world *)self;
  far_w_pass(f, UINT64_MAX);
  f->waits++;
  memcpy(to, from, bytes);
}
static inline void far_w_zero(void *self, void *to, size_t bytes) {
  (void)self;
  memset(to, 0, bytes);
}
static inline rung_status far_w_check(void *self, rung_error *error) {
  far_world *f = (far_world *)self;
  (void)error;
  f->waits++;
  far_w_pass(f, UINT64_MAX);
  return RUNG_OK;
}
static inline void *far_w_pin(void *self, size_t bytes) {
  ((far_world *)self)->pinned++;
  return malloc(bytes);
}
static inline void far_w_unpin(void *self, void *p) {
  far_world *f = (far_world *)self;
  far_w_pass(f, UINT64_MAX);
  f->pinned--;
  free(p);
}
static inline void far_w_read_later(void *self, void *to, const void *from, size_t bytes) {
  far_world *f = (far_world *)self;
  if (f->reads == FAR_READS) far_w_pass(f, UINT64_MAX);
  far_read r = {.to = (uint8_t *)to, .bytes = (uint8_t *)malloc(bytes), .count = bytes, .at = ++f->clock};
  memcpy(r.bytes, from, bytes);
  memset(to, 0xEE, bytes);
  f->read[f->reads++] = r;
}
static inline void *far_w_mark_make(void *self) {
  ((far_world *)self)->marks++;
  return calloc(1, sizeof(uint64_t));
}
static inline void far_w_mark_drop(void *self, void *mark) {
  ((far_world *)self)->marks--;
  free(mark);
}
static inline rung_status far_w_mark_set(void *self, void *mark, rung_error *error) {
  (void)error;
  *(uint64_t *)mark = ++((far_world *)self)->clock;
  return RUNG_OK;
}
static inline rung_status far_w_mark_wait(void *self, void *mark, rung_error *error) {
  (void)error;
  far_w_pass((far_world *)self, *(uint64_t *)mark);
  return RUNG_OK;
}

static inline rung_status far_w_steps(void *self, void *image, rung_run *run, uint32_t first, uint32_t count) {
  const rung_status status = far_device.under->steps(self, image, run, first, count);
  if (status != RUNG_OUT_OF_RANGE) return status;
  if (!far_device.refused) far_device.refused = status;
  *run->error = (rung_error){RUNG_OK, ""};
  return RUNG_OK;
}
static inline rung_status far_w_settle(void *self, void *kept, rung_error *error) {
  (void)self, (void)kept;
  const rung_status status = far_device.refused;
  far_device.refused = RUNG_OK;
  return status ? rung_fail(error, status, "refused by the device") : RUNG_OK;
}
static inline void far_w_settle_later(void *self, void *kept, void *note) {
  (void)self, (void)kept;
  far_w_read_later(&far_device, note, &far_device.refused, sizeof far_device.refused);
  far_device.refused = RUNG_OK;
}
static inline rung_status far_w_settle_note(void *self, const void *note, rung_error *error) {
  (void)self;
  rung_status status;
  memcpy(&status, note, sizeof status);
  return status ? rung_fail(error, status, "refused by the device") : RUNG_OK;
}

/* Turns a device into one; call it before anything is made with it. */
static inline void far_world_make(rung_device *device) {
  far_world *f = &far_device;
  *f = (far_world){.under = device->backend, .backend = *device->backend, .target = *device->target};
  f->far = (rung_far){.self = f,
                      .page = FAR_PAGE,
                      .alloc = far_w_alloc,
                      .free = far_w_free,
                      .reserve = far_w_reserve,
                      .commit = far_w_commit,
                      .decommit = far_w_decommit,
                      .release = far_w_free,
                      .write = far_w_write,
                      .read = far_w_read,
                      .copy = far_w_copy,
                      .zero = far_w_zero,
                      .check = far_w_check,
                      .pin = far_w_pin,
                      .unpin = far_w_unpin,
                      .read_later = far_w_read_later,
                      .mark_make = far_w_mark_make,
                      .mark_drop = far_w_mark_drop,
                      .mark_set = far_w_mark_set,
                      .mark_wait = far_w_mark_wait};
  f->backend.steps = far_w_steps;
  f->backend.settle = far_w_settle;
  f->backend.settle_later = far_w_settle_later;
  f->backend.settle_note = far_w_settle_note;
  f->target.far = &f->far;
  f->target.own_memory = true;
  device->target = &f->target;
  device->backend = &f->backend;
}

#endif
