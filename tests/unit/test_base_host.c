/* SPDX-License-Identifier: MIT
 * Host: account by class, budget, peak, allocators of the caller's, regions, arenas, log and faults. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/host.h"
#include "test.h"

/* A heap-only allocator that counts what it holds, and fails on demand. */
typedef struct counting {
  int64_t bytes, calls;
  bool fail;
} counting;
static void *counting_alloc(void *self, size_t bytes, size_t align) {
  counting *c = (counting *)self;
  c->calls++;
  if (c->fail) return NULL;
  void *p = aligned_alloc(align, (bytes + align - 1) / align * align);
  if (p) c->bytes += (int64_t)bytes;
  return p;
}
static void counting_free(void *self, void *p, size_t bytes) {
  ((counting *)self)->bytes -= (int64_t)bytes;
  free(p);
}
static rung_allocator counting_allocator(counting *c) {
  return (rung_allocator){.size = sizeof(rung_allocator), .self = c, .alloc = counting_alloc, .free = counting_free};
}

static rung_host *make_host(uint64_t budget) {
  rung_host_options options = rung_host_options_default();
  options.memory_budget = budget;
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(&options, NULL, &host));
  return host;
}

static void test_options(void) {
  rung_error error;
  rung_host *host = NULL;
  rung_host_options options = {0};
  CHECK_STATUS(rung_host_create(&options, &error, &host), RUNG_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "size") != NULL);
  counting c = {0};
  rung_allocator allocator = counting_allocator(&c);
  options = rung_host_options_default();
  options.allocator = &allocator;
  allocator.size = 0;
  CHECK_STATUS(rung_host_create(&options, &error, &host), RUNG_INVALID_ARGUMENT);
  allocator = counting_allocator(&c);
  allocator.free = NULL;
  CHECK_STATUS(rung_host_create(&options, &error, &host), RUNG_INVALID_ARGUMENT);
  allocator = counting_allocator(&c);
  allocator.reserve = (void *(*)(void *, size_t))(void (*)(void))abort;
  CHECK_STATUS(rung_host_create(&options, &error, &host), RUNG_INVALID_ARGUMENT);
  allocator = counting_allocator(&c);
  c.fail = true;
  CHECK_STATUS(rung_host_create(&options, &error, &host), RUNG_OUT_OF_MEMORY);
  CHECK(host == NULL);
  c.fail = false;
  CHECK_OK(rung_host_create(&options, &error, &host));
  CHECK(c.bytes > 0 && (uint64_t)c.bytes == rung_host_memory(host).host && rung_host_budget(host) > 0);
  rung_host_retain(host);
  rung_host_release(host);
  CHECK(c.bytes > 0);
  rung_host_release(host);
  CHECK_EQ_I64(c.bytes, 0);
  rung_host_release(NULL);
}

static void test_account(void) {
  rung_host *host = make_host(10000);
  const uint64_t start = rung_host_memory(host).host;
  uint8_t *a = (uint8_t *)rung_host_alloc(host, RUNG_MEMORY_weights, 6000, 0);
  CHECK(a && (uintptr_t)a % 64 == 0 && a[0] == 0 && a[5999] == 0);
  CHECK(rung_host_alloc(host, RUNG_MEMORY_packed, 4001, 0) == NULL);
  void *b = rung_host_alloc_raw(host, RUNG_MEMORY_packed, 4000, 4096);
  CHECK(b && (uintptr_t)b % 4096 == 0);
  void *c = rung_host_alloc(host, RUNG_MEMORY_host, 100000, 8); /* class host is outside the budget */
  CHECK(c != NULL);
  const rung_memory memory = rung_host_memory(host);
  CHECK_EQ_I64(memory.weights, 6000);
  CHECK_EQ_I64(memory.packed, 4000);
  CHECK_EQ_I64(memory.host, start + 100000);
  CHECK_EQ_I64(rung_host_peak(host), 10000);
  rung_error error;
  CHECK_STATUS(rung_host_account(host, RUNG_MEMORY_state, 1, &error), RUNG_OVER_BUDGET);
  CHECK(strstr(error.message, "state") && strstr(error.message, "10000"));
  CHECK_STATUS(rung_host_would_fit(host, 5, "run", &error), RUNG_OVER_BUDGET);
  CHECK_STATUS(rung_host_would_fit(host, UINT64_MAX, "run", &error), RUNG_OVER_BUDGET);
  rung_host_free(host, RUNG_MEMORY_packed, b, 4000);
  CHECK_OK(rung_host_would_fit(host, 4000, "run", &error));
  CHECK_OK(rung_host_account(host, RUNG_MEMORY_state, 1500, &error));
  rung_host_unaccount(host, RUNG_MEMORY_state, 1500);
  rung_host_free(host, RUNG_MEMORY_weights, a, 6000);
  rung_host_free(host, RUNG_MEMORY_host, c, 100000);
  rung_host_free(host, RUNG_MEMORY_host, NULL, 0);
  CHECK_EQ_I64(rung_host_peak(host), 10000);
  rung_host_reset_peak(host);
  CHECK_EQ_I64(rung_host_peak(host), 0);
  void *none = rung_host_alloc(host, RUNG_MEMORY_host, 0, 0);
  CHECK(none != NULL);
  rung_host_free(host, RUNG_MEMORY_host, none, 0);
  CHECK_EQ_I64(rung_host_memory(host).host, start);
  CHECK(rung_host_array(host, SIZE_MAX / 2, 3) == NULL);
  rung_host_release(host);
}

static void test_grow(void) {
  rung_host *host = make_host(0);
  const uint64_t start = rung_host_memory(host).host;
  void *array = NULL;
  size_t capacity = 0;
  for (size_t n = 0; n < 1000; n++) {
    CHECK(rung_host_grow(host, &array, &capacity, n + 1, sizeof(uint32_t)));
    ((uint32_t *)array)[n] = (uint32_t)n;
  }
  for (size_t n = 0; n < 1000; n++) CHECK_EQ_I64(((uint32_t *)array)[n], n);
  CHECK(!rung_host_grow(host, &array, &capacity, SIZE_MAX / 2, 4) && ((uint32_t *)array)[999] == 999);
  rung_host_free(host, RUNG_MEMORY_host, array, capacity * sizeof(uint32_t));
  CHECK_EQ_I64(rung_host_memory(host).host, start);
  rung_host_release(host);
}

static void test_region(void) {
  rung_host *host = make_host(0);
  const size_t page = rung_host_page(host);
  const uint64_t start = rung_host_memory(host).host;
  rung_region region;
  rung_error error;
  CHECK(rung_host_has_pages(host));
  CHECK_OK(rung_region_init(&region, host, RUNG_MEMORY_state, 200 * page - 1, &error));
  CHECK_EQ_I64(region.reserved, 200 * page);
  CHECK_EQ_I64(rung_host_memory(host).state, 0);
  CHECK_OK(rung_region_commit(&region, 10, 1, &error));
  CHECK_EQ_I64(region.committed, page);
  CHECK_OK(rung_region_commit(&region, 70 * page, page + 1, &error));
  CHECK_EQ_I64(region.committed, 3 * page);
  const uint64_t commits = rung_host_commits(host);
  CHECK_OK(rung_region_commit(&region, 0, 200 * page, &error)); /* the two gaps and the rest */
  CHECK_EQ_I64(region.committed, 200 * page);
  CHECK_EQ_I64(rung_host_commits(host), commits + 2);
  CHECK_OK(rung_region_commit(&region, 0, 200 * page, &error));
  CHECK_EQ_I64(rung_host_commits(host), commits + 2);
  bool zero = true;
  for (size_t i = 0; i < region.reserved; i += 512) zero &= region.base[i] == 0;
  CHECK(zero);
  memset(region.base, 1, region.reserved);
  rung_region_decommit(&region, page + 1, 98 * page); /* pages 2 to 98 */
  CHECK_EQ_I64(region.committed, (200 - 97) * page);
  CHECK_EQ_I64(rung_host_memory(host).state, (200 - 97) * page);
  CHECK(region.base[2 * page - 1] == 1 && region.base[99 * page] == 1);
  rung_region_decommit(&region, page - 1, 1);
  CHECK_EQ_I64(region.committed, (200 - 97) * page);
  CHECK_STATUS(rung_region_commit(&region, 199 * page, page + 1, &error), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_region_commit(&region, SIZE_MAX, 2, &error), RUNG_OUT_OF_RANGE);
  rung_region_decommit(&region, 0, SIZE_MAX);
  CHECK_EQ_I64(region.committed, 0);
  rung_region_finish(&region);
  rung_region_finish(&region);
  CHECK_STATUS(rung_region_init(&region, host, RUNG_MEMORY_state, SIZE_MAX, &error), RUNG_OVERFLOW);
  CHECK_STATUS(rung_region_init(&region, host, RUNG_MEMORY_state, (size_t)1 << 62, &error), RUNG_OUT_OF_MEMORY);
  CHECK_EQ_I64(rung_host_memory(host).host, start);
  rung_host_release(host);
}

static void test_region_budget(void) {
  rung_host *host = make_host(10 * 4096);
  const size_t page = rung_host_page(host);
  rung_region region;
  rung_error error;
  if (page != 4096) SKIP("pages of %zu bytes", page);
  CHECK_OK(rung_region_init(&region, host, RUNG_MEMORY_activations, 100 * page, &error));
  CHECK_OK(rung_region_commit(&region, 5 * page, page, &error));
  CHECK_STATUS(rung_region_commit(&region, 0, 11 * page, &error), RUNG_OVER_BUDGET);
  CHECK(strstr(error.message, "activations") != NULL);
  CHECK_EQ_I64(region.committed, page);
  CHECK_OK(rung_region_commit(&region, 0, 10 * page, &error));
  /* The second of two commit calls fails: the first is undone, what was there stays. */
  rung_region_decommit(&region, 0, 100 * page);
  CHECK_OK(rung_region_commit(&region, 2 * page, page, &error));
  region.base[2 * page] = 77;
  test_fault fault = {.kind = RUNG_FAULT_COMMIT, .at = 2};
  rung_host_set_fault(host, test_fault_hit, &fault);
  CHECK_STATUS(rung_region_commit(&region, 0, 6 * page, &error), RUNG_OUT_OF_MEMORY);
  rung_host_set_fault(host, NULL, NULL);
  CHECK(fault.hit && region.committed == page && region.base[2 * page] == 77);
  CHECK_EQ_I64(rung_host_memory(host).activations, page);
  CHECK_OK(rung_region_commit(&region, 0, 6 * page, &error));
  CHECK(region.base[0] == 0 && region.base[2 * page] == 77);
  rung_region_finish(&region);
  rung_host_release(host);
}

static void test_region_heap(void) {
  counting c = {0};
  const rung_allocator allocator = counting_allocator(&c);
  rung_host_options options = rung_host_options_default();
  options.allocator = &allocator;
  options.memory_budget = 8 * 4096;
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(&options, NULL, &host));
  rung_region region;
  rung_error error;
  CHECK_STATUS(rung_region_init(&region, host, RUNG_MEMORY_state, 8 * 4096 + 1, &error), RUNG_OVER_BUDGET);
  CHECK_OK(rung_region_init(&region, host, RUNG_MEMORY_state, 7 * 4096, &error));
  CHECK(region.heap && region.committed == 7 * 4096);
  CHECK_OK(rung_region_commit(&region, 0, 7 * 4096, &error));
  CHECK(region.base[0] == 0 && region.base[7 * 4096 - 1] == 0);
  rung_region_decommit(&region, 0, 7 * 4096);
  CHECK_EQ_I64(rung_host_memory(host).state, 7 * 4096);
  rung_region_finish(&region);
  CHECK_EQ_I64(rung_host_memory(host).state, 0);
  c.fail = true;
  CHECK_STATUS(rung_region_init(&region, host, RUNG_MEMORY_state, 4096, &error), RUNG_OUT_OF_MEMORY);
  c.fail = false;
  rung_host_release(host);
  CHECK_EQ_I64(c.bytes, 0);
}

static void test_arena(void) {
  rung_host *host = make_host(0);
  const uint64_t start = rung_host_memory(host).host;
  rung_arena arena;
  rung_arena_init(&arena, host);
  CHECK_EQ_I64(rung_arena_bytes(&arena), 0);
  uint64_t seed = 5;
  uint8_t *parts[2000];
  size_t sizes[2000];
  for (size_t i = 0; i < 2000; i++) {
    sizes[i] = (size_t)test_below(&seed, i % 97 == 0 ? 100000 : 200);
    parts[i] = (uint8_t *)rung_arena_alloc(&arena, sizes[i]);
    CHECK(parts[i] && (uintptr_t)parts[i] % 16 == 0);
    bool zero = true;
    for (size_t k = 0; k < sizes[i]; k++) zero &= parts[i][k] == 0;
    CHECK(zero);
    memset(parts[i], (int)(i & 255), sizes[i]);
  }
  for (size_t i = 0; i < 2000; i++) {
    bool same = true;
    for (size_t k = 0; k < sizes[i]; k++) same &= parts[i][k] == (i & 255);
    CHECK(same);
  }
  CHECK(rung_arena_alloc(&arena, SIZE_MAX) == NULL && rung_arena_alloc(&arena, SIZE_MAX - 20) == NULL);
  CHECK(rung_arena_array(&arena, SIZE_MAX / 4, 8) == NULL && rung_arena_text(&arena, "", SIZE_MAX) == NULL);
  CHECK_STR(rung_arena_text(&arena, "abcdef", 3), "abc");
  CHECK_STR((char *)rung_arena_copy(&arena, "hello", 6), "hello");
  CHECK(rung_host_memory(host).host == start + rung_arena_bytes(&arena));
  void *array = NULL;
  uint32_t capacity = 0;
  for (uint32_t n = 0; n < 300; n++) {
    CHECK(rung_arena_grow(&arena, &array, &capacity, n + 1, 4));
    ((uint32_t *)array)[n] = n;
  }
  CHECK_EQ_I64(((uint32_t *)array)[299], 299);
  rung_arena_finish(&arena);
  rung_arena_finish(&arena);
  rung_arena_finish(NULL);
  CHECK_EQ_I64(rung_host_memory(host).host, start);
  test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = 2};
  rung_host_set_fault(host, test_fault_hit, &fault);
  CHECK(rung_arena_alloc(&arena, 4000) != NULL && rung_arena_alloc(&arena, 4000) == NULL);
  CHECK(rung_arena_alloc(&arena, 4000) != NULL); /* still in order */
  rung_host_set_fault(host, NULL, NULL);
  rung_arena_finish(&arena);
  rung_host_release(host);
}

typedef struct heard {
  int lines;
  rung_log_level level;
  char text[2000];
  uint64_t done, total;
} heard;
static void hear(void *self, rung_log_level level, const char *text) {
  heard *h = (heard *)self;
  h->lines++;
  h->level = level;
  snprintf(h->text, sizeof h->text, "%s", text);
}
static void hear_progress(void *self, const char *what, uint64_t done, uint64_t total) {
  (void)what;
  ((heard *)self)->done = done;
  ((heard *)self)->total = total;
}

static void test_log(void) {
  heard h = {0};
  rung_host_options options = rung_host_options_default();
  options.log = hear;
  options.log_self = &h;
  options.log_level = RUNG_LOG_INFO;
  options.progress = hear_progress;
  options.progress_self = &h;
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(&options, NULL, &host));
  rung_host_log(host, RUNG_LOG_DEBUG, "not made");
  CHECK_EQ_I64(h.lines, 0);
  rung_host_log(host, RUNG_LOG_WARNING, "%d\nlines", 2);
  CHECK(h.lines == 1 && h.level == RUNG_LOG_WARNING);
  CHECK_STR(h.text, "2 lines");
  rung_host_log(NULL, RUNG_LOG_ERROR, "nobody");
  rung_progress(host, "load", 3, 4);
  CHECK(h.done == 3 && h.total == 4);
  rung_progress(NULL, "load", 3, 4);
  rung_host_release(host);
}

int main(void) {
  RUN(test_options);
  RUN(test_account);
  RUN(test_grow);
  RUN(test_region);
  RUN(test_region_budget);
  RUN(test_region_heap);
  RUN(test_arena);
  RUN(test_log);
  return TEST_END();
}
