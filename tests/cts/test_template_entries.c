/* SPDX-License-Identifier: MIT
 * Open dimensions: bindings read off inputs and their refusals, programs planned for a binding without a rewrite pass,
 * entries of a template by key. */
#include "cts/cache_world.h"
#include "cts/encoder_graph.h"

/* ---- bindings */

typedef struct bound {
  cache_world w;
  rung_template *t;
} bound;

static bool open_text(bound *b, const char *text) {
  b->t = NULL;
  if (!cache_open(&b->w, "ref")) return false;
  rung_graph *g = NULL;
  rung_status s = rung_graph_parse(b->w.host, text, strlen(text), &b->w.error, &g);
  if (!s) s = rung_template_create(b->w.device, g, NULL, &b->w.error, &b->t);
  rung_graph_destroy(g);
  CHECK_OK(s);
  if (s) fprintf(stderr, "  %s\n", b->w.error.message);
  return !s;
}
static void close_text(bound *b) {
  rung_template_release(b->t);
  cache_close(&b->w);
}
static rung_io shaped(const char *name, int rank, const int64_t *extent) {
  return (rung_io){.name = name, .tensor = rung_tensor_dense(RUNG_TYPE_F32, rank, extent, NULL)};
}
#define SHAPED(name, ...) \
  shaped(name, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static int64_t value_of(const rung_binding *b, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(b[i].symbol, name) == 0) return b[i].value;
  return -1;
}

/* Every input leaves several open; what one fixes lets another fix more, in whatever order they come. */
static const char chain[] =
    "rung 1\nsymbol a 1..99\nsymbol b 1..99\nsymbol c 1..99\nsymbol d 0..99\nsymbol one 1..1\n"
    "%0 = input {name=\"p\"} : f32[c*d+3,c]\n%1 = input {name=\"q\"} : f32[b*c]\n%2 = input {name=\"r\"} : f32[a*b]\n"
    "%3 = input {name=\"s\"} : f32[2*a+1]\n%4 = input {name=\"u\"} : f32[one]\n"
    "%5 = reduce_sum %0 : f32[]\n%6 = reduce_sum %1 : f32[]\n%7 = reduce_sum %2 : f32[]\n%8 = reduce_sum %3 : f32[]\n"
    "%9 = reduce_sum %4 : f32[]\n"
    "%10 = add %5, %6 : f32[]\n%11 = add %7, %8 : f32[]\n%12 = add %10, %11 : f32[]\n%13 = add %12, %9 : f32[]\n"
    "output \"y\" %13\n";

static void test_chain(void) {
  bound b;
  if (open_text(&b, chain)) {
    rung_binding out[RUNG_MAX_SYMBOLS];
    size_t n = 0;
    const int64_t A = 7, B = 5, C = 4, D = 0;
    const rung_io in[] = {SHAPED("p", C * D + 3, C), SHAPED("q", B * C), SHAPED("r", A * B), SHAPED("s", 2 * A + 1)};
    CHECK_OK(rung_template_bind(b.t, in, 4, &b.w.error, out, &n));
    CHECK_EQ_I64(n, 5);
    CHECK(value_of(out, n, "a") == A && value_of(out, n, "b") == B && value_of(out, n, "c") == C &&
          value_of(out, n, "d") == D && value_of(out, n, "one") == 1);
    const rung_io by_place[] = {SHAPED(NULL, C * D + 3, C), SHAPED(NULL, B * C), SHAPED(NULL, A * B)};
    CHECK_OK(rung_template_bind(b.t, by_place, 3, &b.w.error, out, &n)); /* without s: c, b, a all follow */
    CHECK(n == 5 && value_of(out, n, "a") == A);
    rung_io larger[] = {SHAPED("p", 90, 90), SHAPED("p", C * D + 3, C), SHAPED("q", B * C), SHAPED("r", A * B)};
    larger[0].ceiling = true; /* fixes nothing */
    CHECK_OK(rung_template_bind(b.t, larger, 4, &b.w.error, out, &n));
  }
  close_text(&b);
}

static void test_refusals(void) {
  bound b;
  if (open_text(&b, chain)) {
    rung_binding out[RUNG_MAX_SYMBOLS];
    size_t n = 77;
    const struct {
      rung_io in[4];
      size_t count;
      rung_status status;
      const char *says[3];
    } bad[] = {
        /* a conflict: symbol and both values */
        {{SHAPED("s", 15), SHAPED("r", 12), SHAPED("q", 9)}, 3, RUNG_SHAPE_MISMATCH, {"\"r\"", "12", "5 remains"}},
        {{SHAPED("p", 3, 4), SHAPED("q", 20), SHAPED("r", 35), SHAPED("s", 13)},
         4,
         RUNG_SHAPE_MISMATCH,
         {"symbol a is 7", "6 by axis 0", "\"s\""}},
        /* a length that does not divide: input and remainder */
        {{SHAPED("s", 14)}, 1, RUNG_SHAPE_MISMATCH, {"\"s\"", "symbol a", "1 remains"}},
        /* every symbol that is open */
        {{SHAPED("s", 15)}, 1, RUNG_INVALID_ARGUMENT, {"open", "b, c, d", ""}},
        {{SHAPED("r", 6), SHAPED("q", 6)}, 2, RUNG_INVALID_ARGUMENT, {"a, b, c, d", "", ""}},
        /* outside what was declared */
        {{SHAPED("p", 3, 100), SHAPED("q", 100), SHAPED("r", 5)}, 3, RUNG_OUT_OF_RANGE, {"symbol c is 100", "99", ""}},
        {{SHAPED("s", -3)}, 1, RUNG_INVALID_ARGUMENT, {"b, c, d", "", ""}},
        {{SHAPED("z", 1)}, 1, RUNG_NOT_FOUND, {"\"z\"", "", ""}},
        {{SHAPED("s", 1, 1)}, 1, RUNG_SHAPE_MISMATCH, {"\"s\"", "rank 2", ""}},
    };
    for (size_t i = 0; i < RUNG_COUNT(bad); i++) {
      CHECK_STATUS(rung_template_bind(b.t, bad[i].in, bad[i].count, &b.w.error, out, &n), bad[i].status);
      for (int k = 0; k < 3; k++) {
        CHECK(strstr(b.w.error.message, bad[i].says[k]) != NULL);
        if (!strstr(b.w.error.message, bad[i].says[k]))
          fprintf(stderr, "  %zu: no \"%s\" in \"%s\"\n", i, bad[i].says[k], b.w.error.message);
      }
    }
    CHECK_EQ_I64(n, 77);
    rung_io typed = SHAPED("s", 15);
    typed.tensor.type = RUNG_TYPE_I32;
    CHECK_STATUS(rung_template_bind(b.t, &typed, 1, &b.w.error, out, &n), RUNG_TYPE_MISMATCH);
    rung_program *p = NULL;
    CHECK_STATUS(rung_template_specialise(b.t, (const rung_binding[]){{"a", 3}, {"d", 3}}, 2, &b.w.error, &p),
                 RUNG_INVALID_ARGUMENT);
    CHECK(!p && strstr(b.w.error.message, "b, c") != NULL && !strstr(b.w.error.message, "one"));
  }
  close_text(&b);
}

/* What cannot be turned round is held against what the others say. */
static void test_checked_afterwards(void) {
  static const char text[] =
      "rung 1\nsymbol a 1..99\nsymbol b 1..99\n"
      "%0 = input {name=\"p\"} : f32[a*b]\n%1 = input {name=\"q\"} : f32[max(a,b)]\n%2 = input {name=\"r\"} : f32[a]\n"
      "%3 = reduce_sum %0 : f32[]\n%4 = reduce_sum %1 : f32[]\n%5 = reduce_sum %2 : f32[]\n"
      "%6 = add %3, %4 : f32[]\n%7 = add %6, %5 : f32[]\noutput \"y\" %7\n";
  bound b;
  if (open_text(&b, text)) {
    rung_binding out[RUNG_MAX_SYMBOLS];
    size_t n = 0;
    const rung_io good[] = {SHAPED("p", 24), SHAPED("q", 6), SHAPED("r", 4)};
    CHECK_OK(rung_template_bind(b.t, good, 3, &b.w.error, out, &n));
    CHECK(value_of(out, n, "a") == 4 && value_of(out, n, "b") == 6);
    const rung_io bad[] = {SHAPED("p", 24), SHAPED("q", 7), SHAPED("r", 4)};
    CHECK_STATUS(rung_template_bind(b.t, bad, 3, &b.w.error, out, &n), RUNG_SHAPE_MISMATCH);
    CHECK(strstr(b.w.error.message, "\"q\" is 7") != NULL && strstr(b.w.error.message, "6") != NULL);
  }
  close_text(&b);
}

/* ---- reserved symbols */

static void test_reserved_symbols(void) {
  cache_world w;
  if (cache_open(&w, "ref")) {
    rung_graph *g = NULL;
    CHECK_OK(rung_graph_create(w.host, &w.error, &g));
    const rung_dim batch = rung_graph_symbol(g, RUNG_SYMBOL_BATCH, 1, 8),
                   seq = rung_graph_symbol(g, RUNG_SYMBOL_SEQ, 1, 64);
    const rung_dim rows = rung_graph_dim(g, RUNG_DIM_MUL, batch, seq); /* what an equal-length caller means by rows */
    CHECK(rung_graph_dim(g, RUNG_DIM_MUL, seq, batch).id == rows.id);
    CHECK(rung_graph_symbol(g, "batch_", 1, 9).id != batch.id); /* a caller's own */
    CHECK(rung_graph_symbol(g, RUNG_SYMBOL_BATCH, 1, 8).id == batch.id);
    CHECK_OK(rung_graph_status(g));
    (void)rung_graph_symbol(g, RUNG_SYMBOL_SEQ, 1, 65); /* the same name means the same thing, or nothing */
    CHECK_STATUS(rung_graph_status(g), RUNG_INVALID_ARGUMENT);
    rung_graph_destroy(g);
    static const char *const names[] = {"batch", "seq", "rows", "sequences"};
    for (size_t i = 0; i < RUNG_COUNT(names); i++) {
      char text[256];
      snprintf(text, sizeof text,
               "rung 1\nsymbol n 1..9\nsymbol %s <= n made\n%%0 = input {name=\"x\"} : f32[n]\noutput \"y\" %%0\n",
               names[i]);
      g = NULL;
      CHECK_STATUS(rung_graph_parse(w.host, text, strlen(text), &w.error, &g), RUNG_INVALID_ARGUMENT);
      CHECK(!g && strstr(w.error.message, "reserved") != NULL);
    }
  }
  cache_close(&w);
}

/* ---- entries */

static rung_cache *make(cache_world *w, const rung_build *b, size_t entries) {
  rung_cache_options o = rung_cache_options_default();
  o.entries = entries;
  rung_cache *cache = NULL;
  CHECK_OK(rung_cache_create_template(w->device, b, &o, &w->error, &cache));
  return cache;
}

static rung_status touch(cache_world *w, rung_cache *cache, uint64_t key, int64_t seq) {
  rung_program *p = NULL;
  const rung_binding binding = {"seq", seq};
  const rung_status s = rung_cache_specialise(cache, key, &binding, 1, &w->error, &p);
  if (p) CHECK_EQ_I64(p->plan->ceiling[rung_dims_find_symbol(p->plan->dims, "seq", 3)], seq);
  rung_program_release(p);
  return s;
}

static void test_entries(void) {
  cache_world w;
  if (cache_open(&w, "cpu")) {
    const rung_build b = cache_build_of(&w, cache_build_open);
    rung_cache *cache = make(&w, &b, 2);
    rung_template *t = NULL;
    CHECK_OK(rung_cache_template(cache, &w.error, &t)); /* ahead of any binding */
    rung_template_release(t);
    CHECK_EQ_I64(w.built, 1);
    const uint64_t passes = rung_device_passes(w.device);
    CHECK(passes > 0);
    CHECK_OK(touch(&w, cache, 1, 10));
    CHECK_OK(touch(&w, cache, 1, 10));
    CHECK_OK(touch(&w, cache, 2, 20));
    CHECK_STATUS(touch(&w, cache, 1, 11), RUNG_INVALID_ARGUMENT); /* there with another binding */
    CHECK(strstr(w.error.message, "key 1") != NULL && strstr(w.error.message, "10") != NULL &&
          strstr(w.error.message, "11") != NULL);
    CHECK_STATUS(touch(&w, cache, 5, 1 << 21), RUNG_OUT_OF_RANGE);
    CHECK_OK(touch(&w, cache, 1, 10));
    CHECK_OK(touch(&w, cache, 3, 30)); /* 2 goes */
    CHECK(rung_cache_contains(cache, 1) && !rung_cache_contains(cache, 2) && rung_cache_contains(cache, 3));
    const rung_io in = cache_io("x", 40, NULL);
    rung_program *p = NULL;
    CHECK_OK(rung_cache_specialise_for(cache, 4, &in, 1, &w.error, &p));
    if (p) CHECK_EQ_I64(p->plan->ceiling[rung_dims_find_symbol(p->plan->dims, "seq", 3)], 40);
    rung_program_release(p);
    CHECK_STATUS(rung_cache_specialise_for(cache, 3, &in, 1, &w.error, &p), RUNG_INVALID_ARGUMENT);
    CHECK_EQ_I64(rung_device_passes(w.device), passes); /* planning rewrites nothing */
    CHECK_EQ_I64(w.built, 1);
    rung_cache_clear(cache); /* also drops the template */
    CHECK_OK(touch(&w, cache, 1, 11));
    CHECK_EQ_I64(w.built, 2);
    CHECK(rung_device_passes(w.device) > passes);
    CHECK_STATUS(rung_cache_get_or_compile(cache, 9, &b, &w.error, &p), RUNG_INVALID_ARGUMENT);
    rung_cache_destroy(cache);
    rung_cache_options o = rung_cache_options_default();
    CHECK_OK(rung_cache_create(w.device, &o, &w.error, &cache));
    CHECK_STATUS(touch(&w, cache, 1, 1), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_cache_template(cache, &w.error, &t), RUNG_INVALID_ARGUMENT);
    rung_cache_destroy(cache);
  }
  cache_close(&w);
}

/* The bits do not depend on what was planned for: a program for the binding, and one for the largest. */
static void test_bits_of_bindings(void) {
  cache_world w;
  static const encoder e = {2, 64, 4, 128, 4, 64};
  static _Alignas(64) float x[4 * 64 * 64], y[2][4 * 64 * 64];
  if (cache_open(&w, "cpu")) {
    rung_weights *store = NULL;
    CHECK_OK(encoder_store(w.host, &e, 5, &w.error, &store));
    rung_view *view = NULL;
    CHECK_OK(rung_view_create(store, &w.error, &view));
    rung_build b = rung_build_default();
    b.fn = encoder_build;
    b.self = (void *)(uintptr_t)&e;
    b.view = view;
    rung_cache *cache = make(&w, &b, 8);
    uint64_t random = 9, packed = 0;
    for (size_t i = 0; i < RUNG_COUNT(x); i++) x[i] = test_uniform(&random, -1, 1);
    static const int64_t sizes[][2] = {{1, 1}, {1, 7}, {3, 17}, {4, 64}, {2, 33}};
    for (size_t i = 0; i < RUNG_COUNT(sizes); i++) {
      const rung_io in = SHAPED("x", sizes[i][0], sizes[i][1], 64);
      rung_tensor input = in.tensor;
      input.data = x;
      rung_program *p[2] = {NULL, NULL};
      CHECK_OK(rung_cache_specialise_for(cache, i, &in, 1, &w.error, &p[0]));
      CHECK_OK(rung_cache_specialise(cache, 99, (const rung_binding[]){{"seq", 64}, {"batch", 4}}, 2, &w.error, &p[1]));
      const size_t bytes = (size_t)(sizes[i][0] * sizes[i][1]) * 64 * sizeof(float);
      for (int k = 0; k < 2 && p[k]; k++) {
        rung_context *c = NULL;
        const rung_tensor output = rung_tensor_dense(RUNG_TYPE_F32, 3, input.extent, y[k]);
        CHECK_OK(rung_context_create(rung_program_template(p[k]), view, NULL, NULL, &w.error, &c));
        CHECK_OK(rung_context_use(c, p[k]));
        CHECK_OK(rung_context_bind_input(c, 0, &input));
        CHECK_OK(rung_context_bind_output(c, 0, &output));
        CHECK_OK(rung_context_run(c));
        rung_context_destroy(c);
      }
      CHECK(memcmp(y[0], y[1], bytes) == 0);
      if (packed) CHECK_EQ_I64(rung_view_memory(view).packed, packed); /* one form for all of them */
      packed = rung_view_memory(view).packed;
      CHECK(packed > 0);
      if (i == 2) { /* after evicting all of them the forms are there for the next */
        rung_cache_clear(cache);
        CHECK_EQ_I64(rung_view_memory(view).packed, packed);
      }
      for (int k = 0; k < 2; k++) rung_program_release(p[k]);
    }
    rung_cache_destroy(cache);
    rung_view_release(view);
    rung_weights_release(store);
  }
  cache_close(&w);
}

/* A weight that is missing is refused when the size is compiled, not when it runs. */
static void test_missing_weight(void) {
  cache_world w;
  static const encoder e = {1, 64, 4, 128, 4, 64};
  if (cache_open(&w, "cpu")) {
    rung_weights *store = NULL;
    rung_view *view = NULL;
    CHECK_OK(rung_weights_create(w.host, &w.error, &store));
    CHECK_OK(rung_view_create(store, &w.error, &view));
    rung_build b = rung_build_default();
    b.fn = encoder_build;
    b.self = (void *)(uintptr_t)&e;
    b.view = view;
    rung_cache *cache = make(&w, &b, 8);
    rung_program *p = NULL;
    CHECK_STATUS(rung_cache_specialise(cache, 1, (const rung_binding[]){{"seq", 8}, {"batch", 1}}, 2, &w.error, &p),
                 RUNG_NOT_LOADED);
    CHECK(!p && strstr(w.error.message, "0.") != NULL && rung_cache_count(cache) == 0);
    rung_cache_destroy(cache);
    rung_view_release(view);
    rung_weights_release(store);
  }
  cache_close(&w);
}

int main(void) {
  RUN(test_chain);
  RUN(test_refusals);
  RUN(test_checked_afterwards);
  RUN(test_reserved_symbols);
  RUN(test_entries);
  RUN(test_bits_of_bindings);
  RUN(test_missing_weight);
  return TEST_END();
}
