/* SPDX-License-Identifier: MIT
 * The GPU's memory as the rest of the library sees it (base/far.h): pages that are mapped one by one into reserved
 * addresses, and copies on the device's one stream. */
#include "backends/cuda/device.h"

enum {
  LARGE = 256 << 10, /* bytes of a copy that does not go through the ring */
  MUCH = 256 << 20   /* bytes to map of which the driver is asked first whether there are so many */
};

static void wait_all(rung_cuda *self) {
  rung_cuda_ok(self, self->driver.stream_wait(self->stream), "waiting");
  self->ring_at = 0;
}

uint64_t rung_cuda_take(rung_cuda *self, size_t bytes) {
  uint64_t address = 0;
  if (self->driver.alloc(&address, bytes)) return 0;
  self->counters.allocations++;
  self->counters.buffers += bytes;
  rung_cuda_ok(self, self->driver.fill(address, 0, bytes, self->stream), "filling");
  return address;
}

static void *far_alloc(void *self_, size_t bytes) {
  rung_cuda *self = self_;
  void *before;
  rung_cuda_enter(self, &before);
  const uint64_t address = rung_cuda_take(self, bytes);
  rung_cuda_leave(self, before);
  return (void *)(uintptr_t)address;
}

void rung_cuda_give_back(rung_cuda *self, uint64_t address, size_t bytes) {
  if (!address) return;
  wait_all(self);
  rung_cuda_ok(self, self->driver.free(address), "freeing");
  self->counters.buffers -= bytes;
}

static void far_free(void *self_, void *p, size_t bytes) {
  rung_cuda *self = self_;
  void *before;
  rung_cuda_enter(self, &before);
  rung_cuda_give_back(self, (uint64_t)(uintptr_t)p, bytes);
  rung_cuda_leave(self, before);
}

static void *far_reserve(void *self_, size_t bytes) {
  rung_cuda *self = self_;
  uint64_t address = 0;
  void *before;
  rung_cuda_enter(self, &before);
  if (self->driver.reserve(&address, bytes, 0, 0, 0)) address = 0;
  rung_cuda_leave(self, before);
  return (void *)(uintptr_t)address;
}

static rung_cu_page_kind page_kind(const rung_cuda *self) {
  return (rung_cu_page_kind){.type = 1, .location = 1, .device = self->device};
}

static bool map_page(rung_cuda *self, uint64_t at) {
  const rung_cu_page_kind kind = page_kind(self);
  uint64_t page;
  if (self->driver.page_create(&page, self->page, &kind, 0)) return false;
  const bool mapped = self->driver.map(at, self->page, 0, page, 0) == 0;
  /* The mapping keeps the page: it goes with it. */
  self->driver.page_release(page);
  return mapped;
}

/* What cannot be had is refused before the GPU is filled with the part that can. */
static bool is_there(rung_cuda *self, size_t bytes) {
  size_t left = 0, all = 0;
  return bytes <= MUCH || self->driver.memory_info(&left, &all) || bytes <= left;
}

/* Each page alone, so that any of them can be taken away again. */
static bool far_commit(void *self_, void *p, size_t bytes) {
  rung_cuda *self = self_;
  const uint64_t first = (uint64_t)(uintptr_t)p;
  const rung_cu_access access = {.location = 1, .device = self->device, .flags = 3};
  void *before;
  size_t done = 0;
  rung_cuda_enter(self, &before);
  if (is_there(self, bytes))
    while (done < bytes && map_page(self, first + done)) done += self->page;
  bool all = done == bytes;
  if (all) all = self->driver.set_access(first, bytes, &access, 1) == 0;
  if (all) {
    self->counters.allocations++;
    self->counters.pages += bytes;
    rung_cuda_ok(self, self->driver.fill(first, 0, bytes, self->stream), "filling");
  } else
    for (size_t at = 0; at < done; at += self->page) self->driver.unmap(first + at, self->page);
  rung_cuda_leave(self, before);
  return all;
}

static void far_decommit(void *self_, void *p, size_t bytes) {
  rung_cuda *self = self_;
  const uint64_t first = (uint64_t)(uintptr_t)p;
  void *before;
  rung_cuda_enter(self, &before);
  wait_all(self);
  for (size_t at = 0; at < bytes; at += self->page)
    rung_cuda_ok(self, self->driver.unmap(first + at, self->page), "unmapping");
  self->counters.pages -= bytes;
  rung_cuda_leave(self, before);
}

/* Nothing is mapped there any more. */
static void far_release(void *self_, void *p, size_t bytes) {
  rung_cuda *self = self_;
  void *before;
  rung_cuda_enter(self, &before);
  wait_all(self);
  rung_cuda_ok(self, self->driver.unreserve((uint64_t)(uintptr_t)p, bytes), "giving addresses back");
  rung_cuda_leave(self, before);
}

/* ---- copies */

/* Room in the ring; once round, all that is in it has to have been copied. */
static uint8_t *ring_room(rung_cuda *self, size_t bytes) {
  const size_t room = (bytes + 63) / 64 * 64;
  if (self->ring_at + room > RUNG_CUDA_RING) wait_all(self);
  uint8_t *p = self->ring + self->ring_at;
  self->ring_at += room;
  return p;
}

static void far_write(void *self_, void *to, const void *from, size_t bytes) {
  rung_cuda *self = self_;
  const uint64_t at = (uint64_t)(uintptr_t)to;
  void *before;
  rung_cuda_enter(self, &before);
  self->counters.to_device += bytes;
  if (bytes <= LARGE) {
    uint8_t *here = ring_room(self, bytes);
    memcpy(here, from, bytes);
    rung_cuda_ok(self, self->driver.to_device(at, here, bytes, self->stream), "copying to the device");
  } else {
    rung_cuda_ok(self, self->driver.to_device(at, from, bytes, self->stream), "copying to the device");
    wait_all(self);
  }
  rung_cuda_leave(self, before);
}

static void far_read(void *self_, void *to, const void *from, size_t bytes) {
  rung_cuda *self = self_;
  const uint64_t at = (uint64_t)(uintptr_t)from;
  void *before;
  rung_cuda_enter(self, &before);
  self->counters.to_host += bytes;
  if (bytes <= LARGE) {
    uint8_t *here = ring_room(self, bytes);
    rung_cuda_ok(self, self->driver.to_host(here, at, bytes, self->stream), "copying from the device");
    wait_all(self);
    memcpy(to, here, bytes);
  } else {
    rung_cuda_ok(self, self->driver.to_host(to, at, bytes, self->stream), "copying from the device");
    wait_all(self);
  }
  rung_cuda_leave(self, before);
}

static void far_copy(void *self_, void *to, const void *from, size_t bytes) {
  rung_cuda *self = self_;
  void *before;
  rung_cuda_enter(self, &before);
  rung_cuda_ok(self, self->driver.on_device((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes, self->stream),
               "copying on the device");
  self->counters.on_device += bytes;
  rung_cuda_leave(self, before);
}

static void far_zero(void *self_, void *to, size_t bytes) {
  rung_cuda *self = self_;
  void *before;
  rung_cuda_enter(self, &before);
  rung_cuda_ok(self, self->driver.fill((uint64_t)(uintptr_t)to, 0, bytes, self->stream), "filling");
  rung_cuda_leave(self, before);
}

static rung_status far_check(void *self_, rung_error *error) {
  rung_cuda *self = self_;
  void *before;
  rung_cuda_enter(self, &before);
  wait_all(self);
  const rung_status status = rung_cuda_failed(self, error);
  rung_cuda_leave(self, before);
  return status;
}

/* ---- without waiting */

static void *far_pin(void *self_, size_t bytes) {
  rung_cuda *self = self_;
  void *before, *p = NULL;
  rung_cuda_enter(self, &before);
  if (self->driver.host_alloc(&p, bytes, 0)) p = NULL;
  rung_cuda_leave(self, before);
  return p;
}

static void far_unpin(void *self_, void *p) {
  rung_cuda *self = self_;
  void *before;
  rung_cuda_enter(self, &before);
  wait_all(self);
  self->driver.host_free(p);
  rung_cuda_leave(self, before);
}

static void far_read_later(void *self_, void *to, const void *from, size_t bytes) {
  rung_cuda *self = self_;
  void *before;
  rung_cuda_enter(self, &before);
  self->counters.to_host += bytes;
  rung_cuda_ok(self, self->driver.to_host(to, (uint64_t)(uintptr_t)from, bytes, self->stream),
               "copying from the device");
  rung_cuda_leave(self, before);
}

static void *mark_make(void *self_) {
  rung_cuda *self = self_;
  void *before, *event = NULL;
  rung_cuda_enter(self, &before);
  if (self->driver.event_create(&event, RUNG_CU_NO_TIMES)) event = NULL;
  rung_cuda_leave(self, before);
  return event;
}

static void mark_drop(void *self_, void *mark) {
  rung_cuda *self = self_;
  void *before;
  rung_cuda_enter(self, &before);
  self->driver.event_destroy(mark);
  rung_cuda_leave(self, before);
}

static rung_status mark_set(void *self_, void *mark, rung_error *error) {
  rung_cuda *self = self_;
  void *before;
  rung_cuda_enter(self, &before);
  rung_cuda_ok(self, self->driver.event_record(mark, self->stream), "marking");
  const rung_status status = rung_cuda_failed(self, error);
  rung_cuda_leave(self, before);
  return status;
}

/* Not under the lock: others go on launching. */
static rung_status mark_wait(void *self_, void *mark, rung_error *error) {
  rung_cuda *self = self_;
  void *before = NULL;
  self->driver.context_get(&before);
  if (before != self->context) self->driver.context_set(self->context);
  const int result = self->driver.event_wait(mark);
  if (before != self->context) self->driver.context_set(before);
  rung_cuda_enter(self, &before);
  rung_cuda_ok(self, result, "waiting");
  const rung_status status = rung_cuda_failed(self, error);
  rung_cuda_leave(self, before);
  return status;
}

rung_status rung_cuda_memory_open(rung_cuda *self, rung_error *error) {
  const rung_cu_page_kind kind = page_kind(self);
  int result = self->driver.page_size(&self->page, &kind, 0);
  void *ring = NULL;
  if (!result) result = self->driver.host_alloc(&ring, RUNG_CUDA_RING, 0);
  self->ring = ring;
  if (result) return rung_fail(error, RUNG_SYSTEM, "cuda: pinned memory and pages: %s", rung_cuda_text(self, result));
  self->far = (rung_far){.self = self,
                         .page = self->page,
                         .alloc = far_alloc,
                         .free = far_free,
                         .reserve = far_reserve,
                         .commit = far_commit,
                         .decommit = far_decommit,
                         .release = far_release,
                         .write = far_write,
                         .read = far_read,
                         .copy = far_copy,
                         .zero = far_zero,
                         .check = far_check,
                         .pin = far_pin,
                         .unpin = far_unpin,
                         .read_later = far_read_later,
                         .mark_make = mark_make,
                         .mark_drop = mark_drop,
                         .mark_set = mark_set,
                         .mark_wait = mark_wait};
  return RUNG_OK;
}

void rung_cuda_memory_close(rung_cuda *self) {
  if (self->ring) self->driver.host_free(self->ring);
  self->ring = NULL;
}
