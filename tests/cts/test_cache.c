/* SPDX-License-Identifier: MIT
 * Exact cache: who is compiled, who is kept, who leaves; a program that somebody holds outlives its entry. */
#include "cts/cache_world.h"

static rung_cache *make(cache_world *w, size_t entries, uint64_t bytes, rung_evict_order order) {
  rung_cache_options o = rung_cache_options_default();
  o.entries = entries;
  o.bytes = bytes;
  o.order = order;
  rung_cache *cache = NULL;
  CHECK_OK(rung_cache_create(w->device, &o, &w->error, &cache));
  return cache;
}

static rung_status touch(cache_world *w, rung_cache *cache, uint64_t key) {
  const rung_build b = cache_build_of(w, cache_build_exact);
  rung_program *p = NULL;
  const rung_status s = rung_cache_get_or_compile(cache, key, &b, &w->error, &p);
  if (!s) cache_check_exact(w, p, (int64_t)key);
  rung_program_release(p);
  return s;
}

static void test_compiles_once(void) {
  cache_world w;
  if (cache_open(&w, "cpu")) {
    rung_cache *cache = make(&w, 4, 0, RUNG_EVICT_LRU);
    for (int i = 0; i < 3; i++) CHECK_OK(touch(&w, cache, 7));
    CHECK_EQ_I64(w.built, 1);
    CHECK_OK(touch(&w, cache, 8));
    CHECK_EQ_I64(w.built, 2);
    CHECK_EQ_I64(rung_cache_count(cache), 2);
    rung_cache_counters c;
    rung_cache_get_counters(cache, &c);
    CHECK(c.hits == 2 && c.misses == 2 && c.compiles[RUNG_COMPILE_FIRST] == 2 && c.evictions == 0 && c.builds == 2);
    CHECK(c.compile_ns[RUNG_COMPILE_FIRST] >= c.build_ns && c.build_ns > 0 && c.programs > 0);
    rung_cache_destroy(cache);
  }
  cache_close(&w);
}

static void test_order(void) {
  cache_world w;
  if (cache_open(&w, "ref")) {
    rung_cache *fifo = make(&w, 2, 0, RUNG_EVICT_FIFO);
    CHECK_OK(touch(&w, fifo, 1));
    CHECK_OK(touch(&w, fifo, 2));
    CHECK_OK(touch(&w, fifo, 1)); /* changes nothing */
    CHECK_OK(touch(&w, fifo, 3));
    CHECK(!rung_cache_contains(fifo, 1) && rung_cache_contains(fifo, 2) && rung_cache_contains(fifo, 3));
    rung_cache_destroy(fifo);
    rung_cache *lru = make(&w, 2, 0, RUNG_EVICT_LRU);
    CHECK_OK(touch(&w, lru, 1));
    CHECK_OK(touch(&w, lru, 2));
    CHECK_OK(touch(&w, lru, 1));
    CHECK_OK(touch(&w, lru, 3));
    CHECK(rung_cache_contains(lru, 1) && !rung_cache_contains(lru, 2) && rung_cache_contains(lru, 3));
    CHECK(rung_cache_contains(lru, 1)); /* asking is no use: 1 is still the next to go */
    CHECK_OK(touch(&w, lru, 4));
    CHECK(!rung_cache_contains(lru, 1) && rung_cache_contains(lru, 3));
    CHECK_OK(touch(&w, lru, 1));
    rung_cache_counters c;
    rung_cache_get_counters(lru, &c);
    CHECK_EQ_I64(c.compiles[RUNG_COMPILE_AGAIN], 1);
    CHECK_EQ_I64(c.compiles[RUNG_COMPILE_FIRST], 4);
    CHECK_EQ_I64(c.evictions, 3);
    rung_cache_destroy(lru);
  }
  cache_close(&w);
}

static void test_failing_builder_changes_nothing(void) {
  cache_world w;
  if (cache_open(&w, "ref")) {
    rung_cache *cache = make(&w, 2, 0, RUNG_EVICT_LRU);
    CHECK_OK(touch(&w, cache, 1));
    CHECK_OK(touch(&w, cache, 2));
    rung_cache_counters before, after;
    rung_cache_get_counters(cache, &before);
    const uint64_t held = rung_host_memory(w.host).host;
    w.fails = RUNG_IO;
    CHECK_STATUS(touch(&w, cache, 3), RUNG_IO);
    w.fails = RUNG_OK;
    rung_cache_get_counters(cache, &after);
    CHECK_EQ_I64(rung_host_memory(w.host).host, held);
    CHECK(rung_cache_contains(cache, 1) && rung_cache_contains(cache, 2) && rung_cache_count(cache) == 2);
    CHECK(after.evictions == before.evictions && after.programs == before.programs && after.failures == 1);
    CHECK_OK(touch(&w, cache, 3));
    rung_cache_destroy(cache);
  }
  cache_close(&w);
}

/* A wrong graph and one that the device has no kernels for are refused as well, with a message. */
static rung_status build_wrong(void *self, uint64_t key, rung_graph *g, rung_error *error) {
  (void)self, (void)key, (void)error;
  const rung_dim two = rung_graph_constant_dim(g, 2), three = rung_graph_constant_dim(g, 3);
  const rung_value a = rung_graph_input(g, "a", RUNG_TYPE_F32, 1, &two);
  rung_graph_output(g, "y", rung_add(g, a, rung_graph_input(g, "b", RUNG_TYPE_F32, 1, &three)));
  return RUNG_OK;
}

typedef struct nested {
  rung_cache *cache;
  rung_status inner;
} nested;
static rung_status build_nested(void *self, uint64_t key, rung_graph *g, rung_error *error) {
  nested *n = self;
  rung_build b = rung_build_default();
  b.fn = build_wrong;
  rung_program *p;
  n->inner = rung_cache_get_or_compile(n->cache, key + 1, &b, error, &p);
  return build_wrong(NULL, key, g, error);
}

static void test_refusals(void) {
  cache_world w;
  if (cache_open(&w, "ref")) {
    rung_cache_options o = rung_cache_options_default();
    rung_cache *cache = NULL;
    rung_program *p = NULL;
    o.entries = 0;
    CHECK_STATUS(rung_cache_create(w.device, &o, &w.error, &cache), RUNG_INVALID_ARGUMENT);
    CHECK(!cache && strstr(w.error.message, "0 entries") != NULL);
    cache = make(&w, 1, 0, RUNG_EVICT_LRU);
    rung_build b = rung_build_default();
    CHECK_STATUS(rung_cache_get_or_compile(cache, 1, &b, &w.error, &p), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_cache_get_or_compile(cache, 1, NULL, &w.error, &p), RUNG_NOT_COMPILED);
    b.fn = build_wrong;
    CHECK_STATUS(rung_cache_get_or_compile(cache, 1, &b, &w.error, &p), RUNG_SHAPE_MISMATCH);
    CHECK(w.error.message[0] != 0);
    rung_compile_options exact = rung_compile_options_default();
    exact.quant = RUNG_QUANT_EXACT;
    b.compile = &exact;
    CHECK_STATUS(rung_cache_get_or_compile(cache, 1, &b, &w.error, &p), RUNG_INVALID_ARGUMENT);
    CHECK(strstr(w.error.message, "quant policy") != NULL);
    exact.quant = RUNG_QUANT_FAST;
    exact.precision = rung_precision_mixed(RUNG_TYPE_BF16);
    CHECK_STATUS(rung_cache_get_or_compile(cache, 1, &b, &w.error, &p), RUNG_INVALID_ARGUMENT);
    CHECK(strstr(w.error.message, "precision policy") != NULL);
    nested n = {.cache = cache};
    b = rung_build_default();
    b.fn = build_nested;
    b.self = &n;
    CHECK_STATUS(rung_cache_get_or_compile(cache, 1, &b, &w.error, &p), RUNG_SHAPE_MISMATCH);
    CHECK_STATUS(n.inner, RUNG_BUSY); /* a builder waits for nobody */
    rung_cache_set_no_compile(cache, true);
    w.built = 0;
    CHECK_STATUS(touch(&w, cache, 2), RUNG_NOT_COMPILED);
    CHECK_EQ_I64(w.built, 0);
    CHECK_EQ_I64(rung_cache_count(cache), 0);
    CHECK(!p);
    rung_cache_destroy(cache);
  }
  cache_close(&w);
}

/* A context goes on with a program that has been evicted, cleared, and whose cache is gone. */
static void test_held_program_survives(void) {
  cache_world w;
  if (cache_open(&w, "cpu")) {
    rung_cache *cache = make(&w, 1, 0, RUNG_EVICT_LRU);
    const rung_build b = cache_build_of(&w, cache_build_exact);
    rung_program *p = NULL;
    CHECK_OK(rung_cache_get_or_compile(cache, 5, &b, &w.error, &p));
    CHECK_OK(touch(&w, cache, 6));
    CHECK(!rung_cache_contains(cache, 5));
    rung_cache_counters c;
    rung_cache_get_counters(cache, &c);
    const uint64_t both = c.programs;
    if (p) cache_check_exact(&w, p, 5);
    rung_cache_clear(cache);
    CHECK_EQ_I64(rung_cache_count(cache), 0);
    rung_cache_get_counters(cache, &c);
    CHECK(c.programs > 0 && c.programs < both); /* what is held still counts */
    if (p) cache_check_exact(&w, p, 5);
    rung_cache_destroy(cache);
    if (p) cache_check_exact(&w, p, 5);
    rung_program_release(p);
  }
  cache_close(&w);
}

/* With a cap on bytes: two fit, three do not; what cannot fit at all is refused and evicts nothing; what others hold is
 * not evicted for it. */
static void test_byte_cap(void) {
  cache_world w;
  if (cache_open(&w, "cpu")) {
    rung_cache *cache = make(&w, 100, 0, RUNG_EVICT_LRU);
    CHECK_OK(touch(&w, cache, 1));
    rung_cache_counters c;
    rung_cache_get_counters(cache, &c);
    const uint64_t one = c.programs;
    rung_cache_destroy(cache);
    cache = make(&w, 100, one / 2, RUNG_EVICT_LRU);
    CHECK_STATUS(touch(&w, cache, 1), RUNG_OVER_BUDGET);
    CHECK(strstr(w.error.message, "cap") != NULL);
    rung_cache_destroy(cache);
    cache = make(&w, 100, one * 5 / 2, RUNG_EVICT_LRU);
    CHECK_OK(touch(&w, cache, 1));
    CHECK_OK(touch(&w, cache, 2));
    CHECK_OK(touch(&w, cache, 1));
    CHECK_OK(touch(&w, cache, 3));
    CHECK(rung_cache_contains(cache, 1) && !rung_cache_contains(cache, 2) && rung_cache_contains(cache, 3));
    rung_cache_get_counters(cache, &c);
    CHECK(c.programs <= one * 5 / 2);
    const rung_build b = cache_build_of(&w, cache_build_exact);
    rung_program *p[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) CHECK_OK(rung_cache_get_or_compile(cache, i ? 3 : 1, &b, &w.error, &p[i]));
    CHECK_STATUS(touch(&w, cache, 4), RUNG_OVER_BUDGET);
    CHECK(rung_cache_contains(cache, 1) && rung_cache_contains(cache, 3)); /* nothing changed */
    rung_program_release(p[0]);
    CHECK_OK(touch(&w, cache, 4));
    CHECK(!rung_cache_contains(cache, 1) && rung_cache_contains(cache, 3));
    rung_program_release(p[1]);
    rung_cache_destroy(cache);
  }
  cache_close(&w);
}

static void test_noted_bytes(void) {
  cache_world w;
  if (cache_open(&w, "ref")) {
    const uint64_t cap = 64 << 20;
    rung_cache *cache = make(&w, 8, cap, RUNG_EVICT_LRU);
    for (uint64_t k = 1; k < 4; k++) CHECK_OK(touch(&w, cache, k));
    rung_cache_note_bytes(cache, 9, 5); /* not there */
    rung_cache_note_bytes(cache, 1, 0);
    rung_cache_counters c;
    rung_cache_get_counters(cache, &c);
    CHECK(c.noted == 0 && c.evictions == 0);
    rung_cache_note_bytes(cache, 1, 1000); /* 1 is now the last used: 2 goes first */
    rung_cache_note_bytes(cache, 3, cap);
    CHECK(!rung_cache_contains(cache, 1) && !rung_cache_contains(cache, 2) && rung_cache_contains(cache, 3));
    rung_cache_get_counters(cache, &c);
    CHECK_EQ_I64(c.noted, cap);
    rung_cache_note_bytes(cache, 3, UINT64_MAX - 5);
    rung_cache_get_counters(cache, &c);
    CHECK(c.noted == UINT64_MAX);
    CHECK_OK(touch(&w, cache, 4)); /* 3 goes, and what was noted with it */
    rung_cache_get_counters(cache, &c);
    CHECK(!rung_cache_contains(cache, 3) && c.noted == 0);
    rung_cache_destroy(cache);
  }
  cache_close(&w);
}

/* Graphs as they stand, templates, options and weights of an entry. */
static void test_variants(void) {
  cache_world w;
  if (cache_open(&w, "cpu")) {
    rung_cache *cache = make(&w, 4, 0, RUNG_EVICT_LRU);
    rung_graph *g = NULL;
    CHECK_OK(rung_graph_create(w.host, &w.error, &g));
    const rung_dim n = rung_graph_symbol(g, "n", 1, 64);
    rung_graph_output(g, "y", rung_gelu(g, rung_graph_input(g, "x", RUNG_TYPE_F32, 1, &n))); /* composite */
    rung_compile_options plain = rung_compile_options_default();
    plain.fuse = plain.fold = plain.merge = false;
    rung_build b = rung_build_default();
    b.graph = g;
    b.compile = &plain;
    rung_program *p = NULL, *q = NULL;
    CHECK_OK(rung_cache_get_or_compile(cache, 1, &b, &w.error, &p));
    CHECK(p && !rung_program_template(p)->options.fuse);
    b = rung_build_default();
    b.template_ = rung_program_template(p);
    const uint64_t passes = rung_device_passes(w.device);
    CHECK_OK(rung_cache_get_or_compile(cache, 2, &b, &w.error, &q));
    CHECK_EQ_I64(rung_device_passes(w.device), passes);
    CHECK(q && q != p && rung_program_template(q) == rung_program_template(p));
    rung_compile_options steady = rung_compile_options_default();
    steady.deterministic = true;
    b = rung_build_default();
    b.graph = g;
    b.compile = &steady;
    rung_program *none = NULL;
    CHECK_STATUS(rung_cache_get_or_compile(cache, 3, &b, &w.error, &none), RUNG_INVALID_ARGUMENT);
    CHECK(strstr(w.error.message, "deterministic") != NULL);
    rung_program_release(p);
    rung_program_release(q);
    rung_graph_destroy(g);
    rung_cache_destroy(cache);
  }
  cache_close(&w);
}

static void test_print(void) {
  cache_world w;
  if (cache_open(&w, "ref")) {
    rung_cache *cache = make(&w, 4, 1 << 30, RUNG_EVICT_LRU);
    CHECK_OK(touch(&w, cache, 3));
    CHECK_OK(touch(&w, cache, 3));
    rung_cache_note_bytes(cache, 3, 77);
    char *text = NULL;
    size_t bytes = 0;
    CHECK_OK(rung_cache_print(cache, &w.error, &text, &bytes));
    static const char *const parts[] = {
        "hits 1, misses 1", "compiled 1 (first use)", "1 entries, room for 4", "key 3:", "77 noted", "templates 1"};
    for (size_t i = 0; text && i < RUNG_COUNT(parts); i++) {
      CHECK(strstr(text, parts[i]) != NULL);
      if (!strstr(text, parts[i])) fprintf(stderr, "no \"%s\" in\n%s", parts[i], text);
    }
    if (text) rung_text_free(w.host, text, bytes);
    CHECK(rung_cache_evict(cache, 3) && !rung_cache_evict(cache, 3));
    rung_cache_sync(cache);
    rung_cache_destroy(cache);
  }
  cache_close(&w);
}

int main(void) {
  RUN(test_compiles_once);
  RUN(test_order);
  RUN(test_failing_builder_changes_nothing);
  RUN(test_refusals);
  RUN(test_held_program_survives);
  RUN(test_byte_cap);
  RUN(test_noted_bytes);
  RUN(test_variants);
  RUN(test_print);
  return TEST_END();
}
