/* SPDX-License-Identifier: MIT
 * Ladders: ranges, which program a key gets, runs at the actual sizes, who is evicted, padding by hand. */
#include "cts/cache_world.h"

/* ---- ranges */

static void check_powers(int64_t min, int64_t max, size_t count, const int64_t *bound) {
  rung_range r[RUNG_MAX_RANGES];
  size_t n = 0;
  rung_error error = {0};
  CHECK_OK(rung_ranges_power_of_two(min, max, &error, r, &n));
  CHECK_EQ_I64(n, count);
  for (size_t i = 0; i < n && i < count; i++) {
    CHECK_EQ_I64(r[i].start, bound[i]);
    CHECK_EQ_I64(r[i].end, bound[i + 1]);
  }
}

static void test_powers_of_two(void) {
  check_powers(8, 64, 4, (const int64_t[]){1, 9, 17, 33, 65});
  check_powers(16, 32, 2, (const int64_t[]){1, 17, 33});
  check_powers(10, 64, 3, (const int64_t[]){1, 17, 33, 65});
  check_powers(8, 20, 3, (const int64_t[]){1, 9, 17, 33});
  check_powers(16, 16, 1, (const int64_t[]){1, 17});
  check_powers(1, 1, 1, (const int64_t[]){1, 2});
  rung_range r[RUNG_MAX_RANGES];
  size_t n = 0;
  rung_error error = {0};
  CHECK_STATUS(rung_ranges_power_of_two(0, 5, &error, r, &n), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_ranges_power_of_two(6, 5, &error, r, &n), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_ranges_power_of_two(1, INT64_MAX, &error, r, &n), RUNG_OVERFLOW);
  CHECK_STATUS(rung_ranges_power_of_two(INT64_MAX, INT64_MAX, &error, r, &n), RUNG_OVERFLOW);
  CHECK_OK(rung_ranges_power_of_two(1, (int64_t)1 << 62, &error, r, &n));
  CHECK(n == 63 && r[62].end == ((int64_t)1 << 62) + 1);
}

typedef struct climb {
  cache_world w;
  rung_ladder *ladder;
} climb;

static bool open_ladder(climb *c, const char *device, const rung_range *range, size_t count,
                        const rung_ladder_options *o) {
  c->ladder = NULL;
  if (!cache_open(&c->w, device)) return false;
  const rung_build b = cache_build_of(&c->w, cache_build_open);
  const rung_status s = rung_ladder_create(c->w.device, &b, range, count, o, &c->w.error, &c->ladder);
  CHECK_OK(s);
  if (s) fprintf(stderr, "  %s\n", c->w.error.message);
  return !s;
}
static void close_ladder(climb *c) {
  rung_ladder_destroy(c->ladder);
  cache_close(&c->w);
}
static rung_cache_counters counters(climb *c) {
  rung_cache_counters n;
  rung_cache_get_counters(rung_ladder_cache(c->ladder), &n);
  return n;
}
static bool has(climb *c, size_t rung) { return rung_cache_contains(rung_ladder_cache(c->ladder), rung); }

static void test_refused_ranges(void) {
  cache_world w;
  if (cache_open(&w, "ref")) {
    const rung_build b = cache_build_of(&w, cache_build_open);
    rung_ladder *l = NULL;
    static const struct {
      rung_range range[3];
      size_t count;
      const char *says[2];
    } bad[] = {
        {{{1, 5}}, 0, {"at least one", "range"}},    {{{1, 5}, {5, 5}}, 2, {"range 1", "empty"}},
        {{{1, 5}, {7, 6}}, 2, {"range 1", "empty"}}, {{{1, 5}, {4, 9}}, 2, {"1..5", "4..9"}},
        {{{5, 9}, {1, 5}}, 2, {"5..9", "1..5"}},     {{{-1, 5}}, 1, {"range 0", "below 0"}},
    };
    for (size_t i = 0; i < RUNG_COUNT(bad); i++) {
      CHECK_STATUS(rung_ladder_create(w.device, &b, bad[i].range, bad[i].count, NULL, &w.error, &l),
                   RUNG_INVALID_ARGUMENT);
      for (int k = 0; k < 2; k++) CHECK(strstr(w.error.message, bad[i].says[k]) != NULL);
    }
    CHECK(!l && w.built == 0);
    const rung_range wrong = {0, 1 << 21}; /* above what the graph declares: found when it is compiled */
    CHECK_OK(rung_ladder_create(w.device, &b, &wrong, 1, NULL, &w.error, &l));
    rung_program *p = NULL;
    CHECK_STATUS(rung_ladder_get(l, 1, &w.error, &p), RUNG_OUT_OF_RANGE);
    CHECK(!p && rung_cache_count(rung_ladder_cache(l)) == 0);
    rung_ladder_destroy(l);
  }
  cache_close(&w);
}

static const rung_range gaps[] = {{1, 4}, {4, 9}, {20, 33}};

static void test_lookup(void) {
  climb c;
  if (open_ladder(&c, "ref", gaps, 3, NULL)) {
    static const int64_t keys[][3] = {{1, 0, 3}, {3, 0, 3}, {4, 1, 8}, {8, 1, 8}, {20, 2, 32}, {32, 2, 32}};
    for (size_t i = 0; i < RUNG_COUNT(keys); i++) {
      size_t rung = 99;
      int64_t ceiling = 0;
      CHECK_OK(rung_ladder_lookup(c.ladder, keys[i][0], &c.w.error, &rung, &ceiling));
      CHECK(rung == (size_t)keys[i][1] && ceiling == keys[i][2]);
    }
    static const int64_t out[] = {INT64_MIN, -1, 0, 9, 19, 33, INT64_MAX};
    rung_program *p = NULL;
    for (size_t i = 0; i < RUNG_COUNT(out); i++) {
      CHECK_STATUS(rung_ladder_lookup(c.ladder, out[i], &c.w.error, NULL, NULL), RUNG_OUT_OF_RANGE);
      CHECK_STATUS(rung_ladder_get(c.ladder, out[i], &c.w.error, &p), RUNG_OUT_OF_RANGE);
      CHECK_STATUS(rung_ladder_run(c.ladder, NULL, out[i], NULL, 0, NULL, 0, &c.w.error), RUNG_OUT_OF_RANGE);
    }
    CHECK(c.w.built == 0 && counters(&c).misses == 0);
    rung_program *q = NULL;
    CHECK_OK(rung_ladder_get(c.ladder, 2, &c.w.error, &p));
    CHECK_OK(rung_ladder_get(c.ladder, 3, &c.w.error, &q));
    CHECK(p && p == q);
    if (p) CHECK_EQ_I64(p->plan->ceiling[rung_dims_find_symbol(p->plan->dims, "seq", 3)], 3);
    CHECK_EQ_I64(counters(&c).compiles[RUNG_COMPILE_FIRST], 1);
    rung_program_release(p);
    rung_program_release(q);
  }
  close_ladder(&c);
}

/* ---- running */

enum { MOST = 64 };
static void fill(float *x, int64_t rows) {
  for (int64_t i = 0; i < rows * CACHE_WIDTH; i++) x[i] = (float)i * 0.25f - 3;
}
/* What cache_build_open means, for output rows of `room`. */
static void check_rows(const float *x, const float *y, int64_t rows) {
  for (int64_t i = 0; i < rows * CACHE_WIDTH; i++) CHECK(y[i] == x[i] * 2 + (float)rows);
}

static void test_run(void) {
  climb c;
  for (int d = 0; d < 2; d++) {
    if (open_ladder(&c, d ? "cpu" : "ref", gaps, 3, NULL)) {
      static _Alignas(64) float x[MOST * CACHE_WIDTH], y[MOST * CACHE_WIDTH];
      fill(x, MOST);
      const int64_t sizes[] = {3, 1, 8, 32, 2, 5, 20, 0};
      for (size_t i = 0; i < RUNG_COUNT(sizes); i++) {
        const int64_t n = sizes[i];
        rung_io in = cache_io("x", n, x), out = cache_io(NULL, MOST, y);
        memset(y, 0x7f, sizeof y);
        CHECK_OK(rung_ladder_run(c.ladder, NULL, n ? n : 1, &in, 1, &out, 1, &c.w.error)); /* 0 rows are rows */
        CHECK_EQ_I64(out.tensor.extent[0], n);
        CHECK(out.tensor.data == y);
        check_rows(x, y, n);
        CHECK(((uint32_t *)y)[n * CACHE_WIDTH] == 0x7f7f7f7f);
      }
      CHECK_EQ_I64(c.w.built, 1);
      CHECK_EQ_I64(counters(&c).compiles[RUNG_COMPILE_FIRST], 3);
      CHECK_EQ_I64(counters(&c).runs, 8);
      CHECK_EQ_I64(counters(&c).rollovers, 6);
      rung_io in = cache_io("x", 4, x), out = cache_io("y", MOST, y); /* above the rung's ceiling */
      CHECK_STATUS(rung_ladder_run(c.ladder, NULL, 3, &in, 1, &out, 1, &c.w.error), RUNG_OUT_OF_RANGE);
      CHECK(strstr(c.w.error.message, "seq") != NULL);
      in.name = "z";
      CHECK_STATUS(rung_ladder_run(c.ladder, NULL, 3, &in, 1, &out, 1, &c.w.error), RUNG_NOT_FOUND);
      CHECK_STATUS(rung_ladder_run(c.ladder, NULL, 3, NULL, 0, &out, 1, &c.w.error), RUNG_INVALID_ARGUMENT);
      CHECK(strstr(c.w.error.message, "not bound") != NULL);    /* what an earlier run bound is not there any more */
      CHECK(c.ladder->cache.own && !c.ladder->cache.own->next); /* one context for all of them */
    }
    close_ladder(&c);
  }
}

/* Buffers of the ceiling: the key says how many rows there are; what lies behind them is not read and not written. */
static void test_ceiling_buffers(void) {
  climb c;
  if (open_ladder(&c, "cpu", gaps, 3, NULL)) {
    static _Alignas(64) float x[8 * CACHE_WIDTH], y[8 * CACHE_WIDTH];
    for (int64_t n = 4; n <= 8; n++) {
      fill(x, 8);
      memset(x + n * CACHE_WIDTH, 0xff, (size_t)(8 - n) * CACHE_WIDTH * 4); /* NaN */
      for (int i = 0; i < 8 * CACHE_WIDTH; i++) y[i] = -9;
      rung_io in = cache_io("x", 8, x), out = cache_io("y", 8, y);
      in.ceiling = out.ceiling = true;
      CHECK_OK(rung_ladder_run(c.ladder, NULL, n, &in, 1, &out, 1, &c.w.error));
      check_rows(x, y, n);
      for (int64_t i = n * CACHE_WIDTH; i < 8 * CACHE_WIDTH; i++) CHECK(y[i] == -9);
      CHECK_EQ_I64(out.tensor.extent[0], n);
    }
    fill(x, 8); /* an input that says its size counts, not the key */
    rung_io in = cache_io("x", 5, x), out = cache_io("y", 8, y);
    out.ceiling = true;
    CHECK_OK(rung_ladder_run(c.ladder, NULL, 8, &in, 1, &out, 1, &c.w.error));
    check_rows(x, y, 5);
  }
  close_ladder(&c);
}

static void test_no_compile_and_warm(void) {
  climb c;
  if (open_ladder(&c, "ref", gaps, 3, NULL)) {
    rung_program *p = NULL;
    rung_cache_set_no_compile(rung_ladder_cache(c.ladder), true);
    CHECK_STATUS(rung_ladder_get(c.ladder, 2, &c.w.error, &p), RUNG_NOT_COMPILED);
    CHECK_STATUS(rung_ladder_warm(c.ladder, NULL, 0, &c.w.error), RUNG_NOT_COMPILED);
    CHECK(c.w.built == 0 && !p);
    rung_cache_set_no_compile(rung_ladder_cache(c.ladder), false);
    CHECK_STATUS(rung_ladder_warm(c.ladder, (const size_t[]){1, 3}, 2, &c.w.error), RUNG_OUT_OF_RANGE);
    CHECK_EQ_I64(c.w.built, 0);
    CHECK_OK(rung_ladder_warm(c.ladder, (const size_t[]){2}, 1, &c.w.error));
    CHECK(has(&c, 2) && !has(&c, 1) && !has(&c, 0));
    CHECK_OK(rung_ladder_warm(c.ladder, NULL, 0, &c.w.error));
    CHECK(has(&c, 0) && has(&c, 1) && has(&c, 2));
    CHECK(c.w.built == 1 && counters(&c).compiles[RUNG_COMPILE_WARM] == 3);
    rung_cache_set_no_compile(rung_ladder_cache(c.ladder), true);
    CHECK_OK(rung_ladder_get(c.ladder, 2, &c.w.error, &p));
    rung_program_release(p);
  }
  close_ladder(&c);
}

/* ---- evicting */

static void test_evict_by_hand(void) {
  climb c;
  if (open_ladder(&c, "ref", gaps, 3, NULL)) {
    CHECK_OK(rung_ladder_warm(c.ladder, NULL, 0, &c.w.error));
    CHECK_EQ_I64(rung_ladder_evict_one_except(c.ladder, 2), 1);
    CHECK_EQ_I64(rung_ladder_evict_one_except(c.ladder, RUNG_NO_RUNG), 2);
    CHECK_EQ_I64(rung_ladder_evict_one_except(c.ladder, 0), RUNG_NO_RUNG);
    CHECK(has(&c, 0));
    CHECK_OK(rung_ladder_warm(c.ladder, NULL, 0, &c.w.error));
    rung_ladder_evict_except(c.ladder, 1);
    CHECK(!has(&c, 0) && has(&c, 1) && !has(&c, 2));
    rung_ladder_clear(c.ladder);
    CHECK_EQ_I64(rung_cache_count(rung_ladder_cache(c.ladder)), 0);
    CHECK_EQ_I64(rung_ladder_evict_one_except(c.ladder, RUNG_NO_RUNG), RUNG_NO_RUNG);
    CHECK_OK(rung_ladder_warm(c.ladder, NULL, 0, &c.w.error));
    CHECK_EQ_I64(c.w.built, 1); /* the template stays */
  }
  close_ladder(&c);
}

static const rung_range five[] = {{1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}};

static void use_rung(climb *c, size_t rung) {
  rung_program *p = NULL;
  CHECK_OK(rung_ladder_get(c->ladder, five[rung].start, &c->w.error, &p));
  rung_program_release(p);
}

/* Every rung counts as large: at most two at once, the incoming one included; the least recently used goes. */
static void test_large_rungs(void) {
  climb c;
  rung_ladder_options o = rung_ladder_options_default();
  CHECK_EQ_I64(o.large_bytes, 256 << 20);
  o.large_bytes = 1;
  o.large_rungs = 2;
  if (open_ladder(&c, "cpu", five, 5, &o)) {
    use_rung(&c, 0);
    use_rung(&c, 1);
    use_rung(&c, 0);
    use_rung(&c, 2);
    CHECK(has(&c, 0) && !has(&c, 1) && has(&c, 2));
    use_rung(&c, 3);
    CHECK(!has(&c, 0) && has(&c, 2) && has(&c, 3));
  }
  close_ladder(&c);
  o.keep_all = true;
  if (open_ladder(&c, "cpu", five, 5, &o)) {
    CHECK_OK(rung_ladder_warm(c.ladder, NULL, 0, &c.w.error));
    CHECK_EQ_I64(rung_cache_count(rung_ladder_cache(c.ladder)), 5);
  }
  close_ladder(&c);
}

/* Small rungs neither trigger the count nor go for it; large ones are those that became so by what was noted. */
static void test_small_rungs_stay(void) {
  climb c;
  rung_ladder_options o = rung_ladder_options_default();
  o.large_bytes = 1 << 30;
  o.large_rungs = 1;
  if (open_ladder(&c, "cpu", five, 5, &o)) {
    CHECK_OK(rung_ladder_warm(c.ladder, (const size_t[]){0, 1, 2}, 3, &c.w.error));
    rung_ladder_note_bytes(c.ladder, 1, 1 << 30);
    rung_ladder_note_bytes(c.ladder, 2, 1 << 30);
    rung_ladder_note_bytes(c.ladder, 77, 1 << 30);                            /* no such key */
    CHECK_OK(rung_ladder_warm(c.ladder, (const size_t[]){3}, 1, &c.w.error)); /* small: two large ones stay */
    CHECK_EQ_I64(rung_cache_count(rung_ladder_cache(c.ladder)), 4);
    c.ladder->cache.large_bytes = 1 << 8; /* from here on every program is large */
    rung_ladder_note_bytes(c.ladder, 3, 1);
    CHECK_OK(rung_ladder_warm(c.ladder, (const size_t[]){4}, 1, &c.w.error));
    CHECK_EQ_I64(rung_cache_count(rung_ladder_cache(c.ladder)), 1);
    CHECK(has(&c, 4)); /* never the one being compiled */
  }
  close_ladder(&c);
}

/* On devices with memory of their own one large rung is the default; on shared memory there is none. */
static void test_default_by_device(void) {
  climb c;
  if (open_ladder(&c, "ref", five, 5, NULL)) CHECK_EQ_I64(c.ladder->cache.large_limit, 0);
  close_ladder(&c);
  if (cache_open(&c.w, "ref")) {
    rung_target apart = *c.w.device->target;
    apart.own_memory = true;
    c.w.device->target = &apart;
    const rung_build b = cache_build_of(&c.w, cache_build_open);
    rung_ladder_options o = rung_ladder_options_default();
    c.ladder = NULL;
    CHECK_OK(rung_ladder_create(c.w.device, &b, five, 5, &o, &c.w.error, &c.ladder));
    CHECK_EQ_I64(c.ladder->cache.large_limit, 1);
    rung_ladder_destroy(c.ladder);
    o.keep_all = true;
    CHECK_OK(rung_ladder_create(c.w.device, &b, five, 5, &o, &c.w.error, &c.ladder));
    CHECK_EQ_I64(c.ladder->cache.large_limit, 0);
    rung_ladder_destroy(c.ladder);
  }
  cache_close(&c.w);
}

static void test_byte_budget(void) {
  climb c;
  if (open_ladder(&c, "cpu", five, 5, NULL)) {
    use_rung(&c, 0);
    rung_ladder_options o = rung_ladder_options_default();
    const uint64_t one = counters(&c).programs;
    close_ladder(&c);
    o.bytes = one * 5 / 2;
    if (open_ladder(&c, "cpu", five, 5, &o)) {
      use_rung(&c, 0);
      use_rung(&c, 1);
      use_rung(&c, 0);
      use_rung(&c, 2);
      CHECK(has(&c, 0) && !has(&c, 1) && has(&c, 2));
      CHECK(counters(&c).programs <= o.bytes);
      rung_ladder_note_bytes(c.ladder, five[0].start, one); /* 2 goes for it */
      CHECK(has(&c, 0) && !has(&c, 2));
      use_rung(&c, 3);
      CHECK(!has(&c, 0) && has(&c, 3)); /* and what was noted with 0 */
      rung_program *p[3] = {NULL, NULL, NULL};
      CHECK_OK(rung_ladder_get(c.ladder, five[3].start, &c.w.error, &p[0]));
      CHECK_OK(rung_ladder_get(c.ladder, five[4].start, &c.w.error, &p[1]));
      CHECK_STATUS(rung_ladder_get(c.ladder, five[0].start, &c.w.error, &p[2]), RUNG_OVER_BUDGET);
      CHECK(has(&c, 3) && has(&c, 4) && !p[2]); /* evicting what others hold would free nothing */
      rung_program_release(p[0]);
      use_rung(&c, 0);
      CHECK(!has(&c, 3) && has(&c, 4));
      rung_program_release(p[1]);
    }
  }
  close_ladder(&c);
}

/* ---- contexts of the caller */

/* From rung to rung the state stays where it is, nothing is copied, and the text equals that of one large program. */
static rung_status build_state(void *self, uint64_t key, rung_graph *g, rung_error *error) {
  (void)self, (void)key, (void)error;
  const rung_dim n = rung_graph_symbol(g, "seq", 1, 64), one = rung_graph_constant_dim(g, 1);
  rung_state_desc desc = {
      .size = sizeof desc, .kind = RUNG_STATE_DENSE, .type = RUNG_TYPE_F32, .rank = 3, .extent = {1, 64, CACHE_WIDTH}};
  const rung_value state = rung_graph_state(g, "memory", &desc);
  const rung_dim extent[] = {one, n, rung_graph_constant_dim(g, CACHE_WIDTH)};
  const rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 3, extent);
  const rung_value at = rung_graph_input(g, "at", RUNG_TYPE_I32, 1, &one);
  const rung_value next = rung_append_dense(g, state, x, at);
  rung_graph_output(g, "sum", rung_reduce_sum(g, next, 2, (const int64_t[]){0, 1}, false));
  return RUNG_OK;
}

static void test_rollover_copies_nothing(void) {
  cache_world w;
  if (cache_open(&w, "cpu")) {
    const rung_build b = cache_build_of(&w, build_state);
    static const rung_range range[] = {{1, 5}, {5, 9}, {9, 17}, {17, 65}};
    rung_ladder *l = NULL;
    rung_template *t = NULL;
    rung_state *state = NULL;
    rung_context *c = NULL;
    CHECK_OK(rung_ladder_create(w.device, &b, range, 4, NULL, &w.error, &l));
    CHECK_OK(rung_ladder_template(l, &w.error, &t));
    rung_state_options so = rung_state_options_default();
    so.sequences = 1;
    so.capacity = 64;
    CHECK_OK(rung_state_create(t, &so, &w.error, &state));
    CHECK_OK(rung_context_create(t, NULL, state, NULL, &w.error, &c));
    rung_tensor memory = {0}, later;
    CHECK_OK(rung_state_tensor(state, "memory", &w.error, &memory));
    static _Alignas(64) float x[64 * CACHE_WIDTH], sum[CACHE_WIDTH];
    fill(x, 64);
    static _Alignas(64) int32_t at[16];
    at[0] = 0;
    float want[CACHE_WIDTH] = {0};
    const uint64_t bytes = rung_state_bytes(state);
    const int64_t sizes[] = {2, 7, 12, 20, 3, 20};
    for (size_t i = 0; i < RUNG_COUNT(sizes); i++) {
      rung_io in[2] = {{.name = "x",
                        .tensor = {.type = RUNG_TYPE_F32,
                                   .rank = 3,
                                   .extent = {1, sizes[i], CACHE_WIDTH},
                                   .data = x + at[0] * CACHE_WIDTH}},
                       {.name = "at", .tensor = {.type = RUNG_TYPE_I32, .rank = 1, .extent = {1}, .data = at}}};
      rung_io out = {.name = "sum", .tensor = {.type = RUNG_TYPE_F32, .rank = 1, .extent = {CACHE_WIDTH}, .data = sum}};
      CHECK_OK(rung_ladder_run(l, c, sizes[i], in, 2, &out, 1, &w.error));
      for (int64_t k = at[0]; k < at[0] + sizes[i]; k++)
        for (int j = 0; j < CACHE_WIDTH; j++) want[j] += x[k * CACHE_WIDTH + j];
      for (int j = 0; j < CACHE_WIDTH; j++) CHECK(sum[j] == want[j]);
      at[0] += (int32_t)sizes[i];
      CHECK_OK(rung_state_tensor(state, "memory", &w.error, &later));
      CHECK(later.data == memory.data);
      CHECK(!at[0] || memcmp(memory.data, x, (size_t)at[0] * CACHE_WIDTH * 4) == 0);
    }
    CHECK_EQ_I64(rung_state_bytes(state), bytes);
    rung_cache_counters n;
    rung_cache_get_counters(rung_ladder_cache(l), &n);
    CHECK(n.rollovers == 5 && n.runs == 6);
    rung_ladder_clear(l); /* the context goes on */
    rung_context_destroy(c);
    rung_state_release(state);
    rung_template_release(t);
    rung_ladder_destroy(l);
  }
  cache_close(&w);
}

/* Going back down the ladder keeps the arena of the largest rung; trim gives it back. */
static void test_one_arena(void) {
  climb c;
  static const rung_range range[] = {{1, 65}, {65, 100001}};
  if (open_ladder(&c, "cpu", range, 2, NULL)) {
    static _Alignas(64) float x[MOST * CACHE_WIDTH], y[MOST * CACHE_WIDTH];
    fill(x, MOST);
    rung_io in = cache_io("x", 3, x), out = cache_io("y", MOST, y);
    CHECK_OK(rung_ladder_run(c.ladder, NULL, 70, &in, 1, &out, 1, &c.w.error));
    const uint8_t *base = c.ladder->cache.own->context->arena.base;
    const uint64_t commits = rung_host_commits(c.w.host);
    for (int i = 0; i < 6; i++) {
      out = cache_io("y", MOST, y);
      CHECK_OK(rung_ladder_run(c.ladder, NULL, i % 2 ? 70 : 3, &in, 1, &out, 1, &c.w.error));
      check_rows(x, y, 3);
      CHECK(c.ladder->cache.own->context->arena.base == base);
    }
    CHECK(rung_host_commits(c.w.host) <= commits + 2);
    CHECK(counters(&c).memory.activations > 0);
    rung_ladder_trim(c.ladder);
    CHECK(counters(&c).memory.activations == 0 && rung_host_memory(c.w.host).activations == 0);
    CHECK_EQ_I64(rung_cache_count(rung_ladder_cache(c.ladder)), 2);
    out = cache_io("y", MOST, y);
    CHECK_OK(rung_ladder_run(c.ladder, NULL, 3, &in, 1, &out, 1, &c.w.error));
    rung_ladder_evict_except(c.ladder, 1); /* takes the idle context of rung 0 along */
    CHECK_EQ_I64(rung_host_memory(c.w.host).activations, 0);
  }
  close_ladder(&c);
}

/* ---- rows by hand */

static void test_rows(void) {
  cache_world w;
  if (cache_open(&w, "ref")) {
    const float x[6] = {1, 2, 3, 4, 5, 6};
    void *padded = NULL;
    size_t n = 0;
    CHECK_OK(rung_pad_rows(w.host, x, 6, 3, sizeof *x, 4, &w.error, &padded, &n));
    CHECK_EQ_I64(n, 12);
    for (size_t i = 0; padded && i < 12; i++) CHECK(((float *)padded)[i] == (i < 6 ? x[i] : 0));
    rung_rows_free(w.host, padded, n, sizeof *x);
    CHECK_STATUS(rung_pad_rows(w.host, x, 6, 3, 4, 1, &w.error, &padded, &n), RUNG_OUT_OF_RANGE);
    CHECK_STATUS(rung_pad_rows(w.host, x, 6, 0, 4, 4, &w.error, &padded, &n), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_pad_rows(w.host, x, 5, 3, 4, 4, &w.error, &padded, &n), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_pad_rows(w.host, x, 6, 3, 4, SIZE_MAX / 4, &w.error, &padded, &n), RUNG_OVERFLOW);
    CHECK_OK(rung_pad_rows(w.host, x, 6, 3, 4, 2, &w.error, &padded, &n)); /* exactly full */
    rung_rows_free(w.host, padded, n, 4);
    CHECK_OK(rung_pad_rows(w.host, NULL, 0, 3, 4, 0, &w.error, &padded, &n));
    CHECK_EQ_I64(n, 0);
    rung_rows_free(w.host, padded, n, 4);
    float out[9];
    for (int i = 0; i < 9; i++) out[i] = -1;
    CHECK_OK(rung_pad_rows_into(x, 6, 3, 4, out, 9, &w.error));
    for (int i = 0; i < 9; i++) CHECK(out[i] == (i < 6 ? x[i] : 0));
    CHECK_STATUS(rung_pad_rows_into(x, 6, 3, 4, out, 8, &w.error), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_pad_rows_into(x, 6, 3, 4, out, 3, &w.error), RUNG_OUT_OF_RANGE);
    CHECK_STATUS(rung_pad_rows_into(x, 6, 3, 4, NULL, 6, &w.error), RUNG_INVALID_ARGUMENT);
    const void *slice = NULL;
    CHECK_OK(rung_slice_rows(out, 9, 3, 4, 2, &w.error, &slice, &n));
    CHECK(slice == out && n == 6);
    CHECK_STATUS(rung_slice_rows(out, 9, 3, 4, 4, &w.error, &slice, &n), RUNG_OUT_OF_RANGE);
    CHECK_STATUS(rung_slice_rows(out, 9, 2, 4, 1, &w.error, &slice, &n), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_slice_rows(out, 9, 0, 4, 1, &w.error, &slice, &n), RUNG_INVALID_ARGUMENT);
  }
  cache_close(&w);
}

int main(void) {
  RUN(test_powers_of_two);
  RUN(test_refused_ranges);
  RUN(test_lookup);
  RUN(test_run);
  RUN(test_ceiling_buffers);
  RUN(test_no_compile_and_warm);
  RUN(test_evict_by_hand);
  RUN(test_large_rungs);
  RUN(test_small_rungs_stay);
  RUN(test_default_by_device);
  RUN(test_byte_budget);
  RUN(test_rollover_copies_nothing);
  RUN(test_one_arena);
  RUN(test_rows);
  return TEST_END();
}
