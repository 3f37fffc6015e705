/* SPDX-License-Identifier: MIT
 * A library that has the symbols of NVIDIA's driver, run-time compiler and library of products, and no GPU: memory of
 * the device is memory of the host, copies are copies, kernels do nothing. What can be got wrong on the host's side is
 * checked more strictly than a driver does:
 *
 *   - Addresses of the device have a bit set that makes the processor refuse them, so reading one here is a fault.
 *   - Work waits in a queue until somebody waits for the stream: memory that changes too early is seen changed.
 *   - Ranges lie inside one buffer or inside mapped pages that may be accessed; fresh memory is no zeros.
 *   - Every handle is known, of the right kind, and given back; calls need a current context.
 *   - The call with a given number fails.
 *
 * With FAKE_LACKS defined it is a driver without cuLaunchKernelEx. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include "device/fake_inside.h"

static const uint64_t there = UINT64_C(1) << 52; /* set in every address of the device */

EXPORT fake_cuda *fake_cuda_state(void);
EXPORT void fake_cuda_reset(void);

fake_cuda state;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
_Thread_local void *current;
static char the_context;

fake_cuda *fake_cuda_state(void) { return &state; }

int wrong(const char *form, ...) {
  va_list args;
  va_start(args, form);
  if (!state.wrongs++) vsnprintf(state.wrong, sizeof state.wrong, form, args);
  va_end(args);
  return INVALID;
}

static const char *const kind_name[KINDS] = {"buffer",  "reservation", "physical memory", "pinned memory", "stream",
                                             "event",   "module",      "function",        "graph",         "executable",
                                             "program", "product",     "shape",           "node"};

thing *things;
works queue;
thing *capturing; /* the graph that is being made */

thing *add(kind k) {
  thing *t = calloc(1, sizeof *t);
  if (!t) abort();
  t->kind = k;
  t->next = things;
  things = t;
  return t;
}

thing *find(const void *handle, kind k) {
  for (thing *t = things; t; t = t->next)
    if (t == handle) {
      if (t->kind == k) return t;
      wrong("a %s where a %s is wanted", kind_name[t->kind], kind_name[k]);
      return NULL;
    }
  wrong("a %s that is not alive", kind_name[k]);
  return NULL;
}

void drop_works(works *w) {
  for (size_t i = 0; i < w->count; i++)
    if (w->data[i].own) free(w->data[i].here);
  free(w->data);
  *w = (works){NULL, 0, 0};
}

void drop(thing *gone) {
  for (thing **at = &things; *at; at = &(*at)->next) {
    if (*at != gone) continue;
    *at = gone->next;
    break;
  }
  drop_works(&gone->works);
  free(gone->page);
  free(gone->backing);
  free(gone);
}

/* ---- calls */

bool fails(const char *name, int *out_result) {
  state.calls++;
  if (!state.fail_at || (state.fail_from ? state.calls < state.fail_at : state.calls != state.fail_at)) return false;
  if (!state.failed) state.failed = name;
  *out_result = state.fail_with;
  return true;
}

/* ---- memory there */

static uint64_t address_of(const uint8_t *p) { return (uint64_t)(uintptr_t)p | there; }
static uint8_t *pointer_of(uint64_t address) { return (uint8_t *)(uintptr_t)(address & ~there); }

static thing *owner(uint64_t address, size_t bytes) {
  if (!(address & there)) return NULL;
  const uint8_t *p = pointer_of(address);
  for (thing *t = things; t; t = t->next)
    if ((t->kind == BUFFER || t->kind == RESERVATION || t->kind == PINNED) && p >= t->memory &&
        p + bytes <= t->memory + t->bytes)
      return t;
  return NULL;
}

uint8_t *range(uint64_t address, size_t bytes, const char *what) {
  const thing *t = owner(address, bytes);
  if (!t) {
    wrong("%s of %zu bytes outside of all memory of the device", what, bytes);
    return NULL;
  }
  uint8_t *p = pointer_of(address);
  for (size_t page = (size_t)(p - t->memory) / PAGE; t->kind == RESERVATION && bytes; page++) {
    if (t->page[page] != 2) {
      wrong("%s of %zu bytes in a page that is not mapped", what, bytes);
      return NULL;
    }
    if ((page + 1) * PAGE >= (size_t)(p - t->memory) + bytes) break;
  }
  return p;
}

static bool is_pinned(const void *here, size_t bytes) {
  for (const thing *t = things; t; t = t->next)
    if (t->kind == PINNED && (const uint8_t *)here >= t->memory &&
        (const uint8_t *)here + bytes <= t->memory + t->bytes)
      return true;
  return false;
}

/* ---- the stream */

static void work_off(const work *w) {
  uint8_t *to = w->what == READ ? w->here : w->what == LAUNCH ? NULL : range(w->to, w->bytes, "writing");
  const uint8_t *from = w->what == WRITE                     ? w->here
                        : w->what == READ || w->what == COPY ? range(w->from, w->bytes, "reading")
                                                             : NULL;
  if (w->what == LAUNCH) return;
  if (w->what == FILL && to)
    memset(to, w->value, w->bytes);
  else if (to && from)
    memmove(to, from, w->bytes);
}

void work_all(void) {
  for (size_t i = 0; i < queue.count; i++) work_off(&queue.data[i]);
  drop_works(&queue);
}

static bool is_waited_for(const uint8_t *first, size_t bytes) {
  for (size_t i = 0; i < queue.count; i++) {
    const work *w = &queue.data[i];
    const uint64_t at[] = {w->to, w->from};
    for (int k = 0; k < 2; k++)
      if (at[k] && pointer_of(at[k]) < first + bytes && pointer_of(at[k]) + w->bytes > first) return true;
  }
  return false;
}

void put(works *to, const work *w) {
  if (to->count == to->room) {
    to->room = to->room ? 2 * to->room : 64;
    to->data = realloc(to->data, to->room * sizeof *to->data);
    if (!to->data) abort();
  }
  to->data[to->count++] = *w;
}

int ask(void *stream, const work *w) {
  if (!find(stream, STREAM)) return INVALID;
  put(capturing ? &capturing->works : &queue, w);
  return 0;
}

/* ---- driver: beginnings */

EXPORT int cuInit(unsigned flags) {
  ENTER();
  if (flags) result = wrong("cuInit(%u)", flags);
  LEAVE();
}
EXPORT int cuDriverGetVersion(int *version) {
  ENTER();
  *version = state.version;
  LEAVE();
}
EXPORT int cuGetErrorString(int code, const char **text) {
  *text = code == NO_MEMORY ? "out of memory" : code == FAULT ? "an illegal memory access" : "a false error";
  return 0;
}
EXPORT int cuDeviceGetCount(int *count) {
  ENTER();
  *count = state.devices;
  LEAVE();
}
EXPORT int cuDeviceGet(int *device, int ordinal) {
  ENTER();
  if (ordinal < 0 || ordinal >= state.devices) FAIL(NO_DEVICE);
  *device = ordinal;
  LEAVE();
}
EXPORT int cuDeviceGetName(char *name, int bytes, int device) {
  ENTER();
  snprintf(name, (size_t)bytes, "False %d", device);
  LEAVE();
}
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER();
  (void)device;
  *value = attribute == RUNG_CU_PROCESSORS     ? 132
           : attribute == RUNG_CU_MAJOR        ? state.major
           : attribute == RUNG_CU_MINOR        ? state.minor
           : attribute == RUNG_CU_SHARED_LIMIT ? SHARED_LIMIT
                                               : 0;
  LEAVE();
}
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  ENTER();
  (void)device;
  *bytes = state.memory;
  LEAVE();
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER();
  (void)device;
  state.contexts++;
  *context = &the_context;
  LEAVE();
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER();
  (void)device;
  if (--state.contexts < 0) result = wrong("the context was released too often");
  LEAVE();
}
EXPORT int cuCtxSetCurrent(void *context) {
  ENTER();
  if (context && context != &the_context) FAIL(wrong("a context that was never given"));
  current = context;
  LEAVE();
}
EXPORT int cuCtxGetCurrent(void **context) {
  ENTER();
  *context = current;
  LEAVE();
}

/* ---- driver: memory */

EXPORT int cuMemGetInfo_v2(size_t *free_, size_t *total) {
  ENTER_IN_CONTEXT();
  *total = state.memory;
  *free_ = state.memory - state.used;
  LEAVE();
}
EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  ENTER_IN_CONTEXT();
  if (!bytes) FAIL(wrong("a buffer of no bytes"));
  if (bytes > state.memory - state.used) FAIL(NO_MEMORY);
  thing *t = add(BUFFER);
  t->bytes = bytes;
  if (posix_memalign((void **)&t->memory, 256, bytes)) abort();
  memset(t->memory, 0xa5, bytes);
  state.used += bytes;
  state.buffers++;
  *address = address_of(t->memory);
  LEAVE();
}
EXPORT int cuMemFree_v2(uint64_t address) {
  ENTER_IN_CONTEXT();
  thing *t = owner(address, 1);
  if (!t || t->kind != BUFFER || address_of(t->memory) != address) FAIL(wrong("freeing what is no buffer"));
  work_all();
  state.used -= t->bytes;
  state.buffers--;
  free(t->memory);
  drop(t);
  LEAVE();
}
EXPORT int cuMemHostAlloc(void **p, size_t bytes, unsigned flags) {
  ENTER_IN_CONTEXT();
  (void)flags;
  thing *t = add(PINNED);
  t->bytes = bytes;
  if (posix_memalign((void **)&t->memory, 4096, bytes)) abort();
  memset(t->memory, 0xa5, bytes);
  state.pinned++;
  *p = t->memory;
  LEAVE();
}
EXPORT int cuMemFreeHost(void *p) {
  ENTER_IN_CONTEXT();
  thing *t = things;
  while (t && (t->kind != PINNED || t->memory != p)) t = t->next;
  if (!t) FAIL(wrong("freeing what is no pinned memory"));
  work_all();
  state.pinned--;
  free(t->memory);
  drop(t);
  LEAVE();
}
EXPORT int cuMemGetAllocationGranularity(size_t *bytes, const rung_cu_page_kind *kind_, int option) {
  ENTER();
  if (kind_->type != 1 || kind_->location != 1 || option) FAIL(wrong("pages of another kind"));
  *bytes = PAGE;
  LEAVE();
}
EXPORT int cuMemAddressReserve(uint64_t *address, size_t bytes, size_t align, uint64_t at, uint64_t flags) {
  ENTER_IN_CONTEXT();
  if (!bytes || bytes % PAGE || align || at || flags) FAIL(wrong("reserving %zu bytes", bytes));
  void *p = mmap(NULL, bytes + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) FAIL(NO_MEMORY);
  uint8_t *first = (uint8_t *)p + (PAGE - (uintptr_t)p % PAGE) % PAGE;
  if (first > (uint8_t *)p) munmap(p, (size_t)(first - (uint8_t *)p));
  const size_t behind = PAGE - (size_t)(first - (uint8_t *)p);
  if (behind) munmap(first + bytes, behind);
  thing *t = add(RESERVATION);
  t->memory = first;
  t->bytes = bytes;
  t->page = calloc(bytes / PAGE, 1);
  t->backing = calloc(bytes / PAGE, sizeof *t->backing);
  if (!t->page || !t->backing) abort();
  state.reservations++;
  *address = address_of(first);
  LEAVE();
}
EXPORT int cuMemAddressFree(uint64_t address, size_t bytes) {
  ENTER_IN_CONTEXT();
  thing *t = owner(address, bytes);
  if (!t || t->kind != RESERVATION || address_of(t->memory) != address || t->bytes != bytes)
    FAIL(wrong("giving back addresses that were not reserved so"));
  for (size_t i = 0; i < bytes / PAGE; i++)
    if (t->page[i] && !state.failed) FAIL(wrong("giving back addresses of mapped pages"));
  munmap(t->memory, t->bytes);
  state.reservations--;
  drop(t);
  LEAVE();
}

static void let_go(thing *physical) {
  if (--physical->users) return;
  state.used -= physical->bytes;
  state.pages--;
  drop(physical);
}

EXPORT int cuMemCreate(uint64_t *page, size_t bytes, const rung_cu_page_kind *kind_, uint64_t flags) {
  ENTER_IN_CONTEXT();
  if (!bytes || bytes % PAGE || kind_->type != 1 || kind_->location != 1 || flags) FAIL(wrong("pages of another kind"));
  if (bytes > state.memory - state.used) FAIL(NO_MEMORY);
  thing *t = add(PHYSICAL);
  t->bytes = bytes;
  t->users = 1;
  state.used += bytes;
  state.pages++;
  *page = (uint64_t)(uintptr_t)t;
  LEAVE();
}
EXPORT int cuMemRelease(uint64_t page) {
  ENTER_IN_CONTEXT();
  thing *t = find((void *)(uintptr_t)page, PHYSICAL);
  if (!t) FAIL(INVALID);
  let_go(t);
  LEAVE();
}
EXPORT int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t page, uint64_t flags) {
  ENTER_IN_CONTEXT();
  thing *t = owner(address, bytes), *physical = find((void *)(uintptr_t)page, PHYSICAL);
  if (!t || t->kind != RESERVATION || !physical || bytes != PAGE || physical->bytes != PAGE || offset || flags)
    FAIL(wrong("mapping what cannot be mapped"));
  const size_t i = (size_t)(pointer_of(address) - t->memory) / PAGE;
  if ((address - address_of(t->memory)) % PAGE || t->page[i]) FAIL(wrong("mapping a page twice"));
  t->page[i] = 1;
  t->backing[i] = physical;
  physical->users++;
  LEAVE();
}
EXPORT int cuMemSetAccess(uint64_t address, size_t bytes, const rung_cu_access *access, size_t count) {
  ENTER_IN_CONTEXT();
  thing *t = owner(address, bytes);
  if (!t || t->kind != RESERVATION || count != 1 || access->location != 1 || access->flags != 3)
    FAIL(wrong("access to what is no reservation"));
  const size_t first = (size_t)(pointer_of(address) - t->memory) / PAGE;
  for (size_t i = first; i < first + bytes / PAGE; i++)
    if (!t->page[i]) FAIL(wrong("access to a page that is not mapped"));
  if (mprotect(pointer_of(address), bytes, PROT_READ | PROT_WRITE)) FAIL(NO_MEMORY);
  for (size_t i = first; i < first + bytes / PAGE; i++) {
    if (t->page[i] == 1) memset(t->memory + i * PAGE, 0xa5, PAGE);
    t->page[i] = 2;
  }
  LEAVE();
}
EXPORT int cuMemUnmap(uint64_t address, size_t bytes) {
  ENTER_IN_CONTEXT();
  thing *t = owner(address, bytes);
  if (!t || t->kind != RESERVATION || bytes % PAGE) FAIL(wrong("unmapping what is no reservation"));
  if (is_waited_for(pointer_of(address), bytes)) FAIL(wrong("unmapping what waiting work needs"));
  const size_t first = (size_t)(pointer_of(address) - t->memory) / PAGE;
  for (size_t i = first; i < first + bytes / PAGE; i++)
    if (!t->page[i]) FAIL(INVALID); /* a driver says so too: it is how a caller finds what is mapped */
  for (size_t i = first; i < first + bytes / PAGE; i++) {
    t->page[i] = 0;
    let_go(t->backing[i]);
    t->backing[i] = NULL;
  }
  madvise(pointer_of(address), bytes, MADV_DONTNEED);
  mprotect(pointer_of(address), bytes, PROT_NONE);
  LEAVE();
}

/* ---- driver: copies. From and to memory that is not pinned the driver copies before it returns. */

EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  ENTER_IN_CONTEXT();
  if (!range(to, bytes, "copying there")) FAIL(FAULT);
  work w = {.what = WRITE, .to = to, .here = (uint8_t *)(uintptr_t)from, .bytes = bytes};
  if (!is_pinned(from, bytes)) {
    w.own = true;
    w.here = malloc(bytes);
    if (!w.here) abort();
    memcpy(w.here, from, bytes);
  }
  result = ask(stream, &w);
  LEAVE();
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  ENTER_IN_CONTEXT();
  if (!range(from, bytes, "copying from there")) FAIL(FAULT);
  const work w = {.what = READ, .from = from, .here = to, .bytes = bytes};
  result = ask(stream, &w);
  if (!result && !capturing && !is_pinned(to, bytes)) work_all();
  LEAVE();
}
EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  ENTER_IN_CONTEXT();
  if (!range(from, bytes, "copying there") || !range(to, bytes, "copying there")) FAIL(FAULT);
  result = ask(stream, &(work){.what = COPY, .to = to, .from = from, .bytes = bytes});
  LEAVE();
}
EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
  ENTER_IN_CONTEXT();
  if (!range(to, bytes, "filling")) FAIL(FAULT);
  result = ask(stream, &(work){.what = FILL, .to = to, .value = value, .bytes = bytes});
  LEAVE();
}

/* ---- driver: streams and events */

EXPORT int cuStreamCreate(void **stream, unsigned flags) {
  ENTER_IN_CONTEXT();
  (void)flags;
  *stream = add(STREAM);
  state.streams++;
  LEAVE();
}
EXPORT int cuStreamDestroy_v2(void *stream) {
  ENTER_IN_CONTEXT();
  thing *t = find(stream, STREAM);
  if (!t) FAIL(INVALID);
  work_all();
  state.streams--;
  drop(t);
  LEAVE();
}
EXPORT int cuStreamSynchronize(void *stream) {
  ENTER_IN_CONTEXT();
  if (!find(stream, STREAM)) FAIL(INVALID);
  if (capturing) {
    wrong("waiting while a run is captured");
    FAIL(CAPTURING);
  }
  const int64_t before = state.wrongs;
  work_all();
  if (state.wrongs != before) FAIL(FAULT);
  LEAVE();
}
EXPORT int cuEventCreate(void **event, unsigned flags) {
  ENTER_IN_CONTEXT();
  (void)flags;
  *event = add(EVENT);
  state.events++;
  LEAVE();
}
EXPORT int cuEventDestroy_v2(void *event) {
  ENTER_IN_CONTEXT();
  thing *t = find(event, EVENT);
  if (!t) FAIL(INVALID);
  state.events--;
  drop(t);
  LEAVE();
}
EXPORT int cuEventRecord(void *event, void *stream) {
  ENTER_IN_CONTEXT();
  if (!find(event, EVENT) || !find(stream, STREAM)) FAIL(INVALID);
  LEAVE();
}
EXPORT int cuEventSynchronize(void *event) {
  ENTER_IN_CONTEXT();
  if (!find(event, EVENT)) FAIL(INVALID);
  const int64_t before = state.wrongs;
  work_all();
  if (state.wrongs != before) FAIL(FAULT);
  LEAVE();
}
EXPORT int cuEventElapsedTime(float *milliseconds, void *first, void *last) {
  ENTER_IN_CONTEXT();
  if (!find(first, EVENT) || !find(last, EVENT)) FAIL(INVALID);
  *milliseconds = 0.01F;
  LEAVE();
}

void fake_cuda_reset(void) {
  pthread_mutex_lock(&lock);
  drop_works(&queue);
  capturing = NULL;
  while (things) {
    thing *t = things;
    if (t->kind == BUFFER || t->kind == PINNED) free(t->memory);
    if (t->kind == RESERVATION) munmap(t->memory, t->bytes);
    drop(t);
  }
  state = (fake_cuda){
      .version = 12080, .devices = 1, .major = 9, .minor = 0, .memory = UINT64_C(1) << 30, .fail_with = FAULT};
  pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void) { fake_cuda_reset(); }
