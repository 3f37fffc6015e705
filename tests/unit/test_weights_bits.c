/* SPDX-License-Identifier: MIT
 * The same bits whatever way a view comes to its values: from a store, trimmed and made again, shared, copied, set
 * whole or in pieces, as a private value or the store's. */
#include <rung/program.h>

#include "../test.h"
#include "base/half.h"
#include "ir/type.h"

static const char text[] =
    "rung 1\nsymbol n 1..64\n"
    "%0 = input {name=\"x\"} : f32[n,256]\n"
    "%1 = weight {name=\"gate\"} : q8_0[96,256]\n"
    "%2 = weight {name=\"up\"} : q8_0[96,256]\n"
    "%3 = weight {name=\"down\"} : f32[96,64]\n"
    "%4 = weight {name=\"wide\"} : q4_k[64,256]\n"
    "%5 = weight {name=\"half\"} : bf16[64]\n"
    "%6 = matmul %0, %1 {transpose_b=true} : f32[n,96]\n"
    "%7 = matmul %0, %2 {transpose_b=true} : f32[n,96]\n"
    "%8 = silu %6 : f32[n,96]\n"
    "%9 = mul %8, %7 : f32[n,96]\n"
    "%10 = matmul %9, %3 : f32[n,64]\n"
    "%11 = matmul %0, %4 {transpose_b=true} : f32[n,64]\n"
    "%12 = cast %5 {type=f32} : f32[64]\n"
    "%13 = add %10, %11 : f32[n,64]\n"
    "%14 = mul %13, %12 : f32[n,64]\n"
    "output \"y\" %14\n";

typedef struct weight {
  const char *name;
  rung_type type;
  int rank;
  int64_t extent[2];
} weight;
static const weight weights[] = {{"gate", RUNG_TYPE_Q8_0, 2, {96, 256}},
                                 {"up", RUNG_TYPE_Q8_0, 2, {96, 256}},
                                 {"down", RUNG_TYPE_F32, 2, {96, 64}},
                                 {"wide", RUNG_TYPE_Q4_K, 2, {64, 256}},
                                 {"half", RUNG_TYPE_BF16, 1, {64}}};
enum { WEIGHTS = 5, ROWS = 7, MOST = 96 * 256 };

typedef struct bits {
  rung_host *host;
  rung_device *device;
  rung_template *template_;
  rung_program *program;
  rung_error error;
  float first[ROWS * 64];
} bits;

static int64_t count_of(const weight *w) { return w->extent[0] * (w->rank == 2 ? w->extent[1] : 1); }
static const float *numbers_of(const weight *w, uint64_t seed) {
  static float x[MOST];
  seed += (uint64_t)(w - weights);
  for (int64_t i = 0; i < count_of(w); i++) x[i] = test_uniform(&seed, -1, 1);
  return x;
}

static bool bits_open(bits *b, const char *device, rung_quant quant) {
  *b = (bits){NULL};
  rung_graph *graph = NULL;
  rung_compile_options o = rung_compile_options_default();
  o.quant = quant;
  rung_status s = rung_host_create(NULL, &b->error, &b->host);
  if (!s) s = rung_device_create(b->host, device, NULL, &b->error, &b->device);
  if (!s) s = rung_graph_parse(b->host, text, strlen(text), &b->error, &graph);
  if (!s) s = rung_template_create(b->device, graph, &o, &b->error, &b->template_);
  if (!s) s = rung_program_create(b->template_, NULL, 0, &b->error, &b->program);
  rung_graph_destroy(graph);
  test_state.checks++;
  if (s) TEST_FAIL_("%s: %s", device, b->error.message);
  return !s;
}

static rung_status open_store(bits *b, uint64_t seed, rung_weights **store, rung_view **view) {
  RUNG_TRY(rung_weights_create(b->host, &b->error, store));
  for (const weight *w = weights; w < weights + WEIGHTS; w++) {
    RUNG_TRY(rung_weights_declare(*store, w->name, w->type, w->rank, w->extent, &b->error));
    RUNG_TRY(
        rung_weights_set(*store, w->name, RUNG_TYPE_F32, numbers_of(w, seed), (uint64_t)count_of(w) * 4, &b->error));
  }
  RUNG_TRY(rung_weights_commit(*store, &b->error));
  return rung_view_create(*store, &b->error, view);
}

static rung_context *context_of(bits *b, rung_view *view) {
  rung_context *c = NULL;
  CHECK_OK(rung_context_create(b->template_, view, NULL, NULL, &b->error, &c));
  CHECK_OK(rung_context_use(c, b->program));
  return c;
}

static void run(rung_context *c, float *out) {
  void *data;
  rung_tensor y;
  uint64_t seed = 99;
  CHECK_OK(rung_context_input(c, 0, (int64_t[]){ROWS, 256}, &data));
  for (int i = 0; i < ROWS * 256; i++) ((float *)data)[i] = test_uniform(&seed, -2, 2);
  CHECK_OK(rung_context_run(c));
  CHECK_OK(rung_context_output(c, 0, &y));
  memcpy(out, y.data, ROWS * 64 * sizeof *out);
}
static void check_same(const bits *b, rung_context *c) {
  float out[ROWS * 64];
  run(c, out);
  CHECK(memcmp(out, b->first, sizeof out) == 0);
}
static void check_fresh(bits *b, rung_view *view) {
  rung_context *c = context_of(b, view);
  check_same(b, c);
  rung_context_destroy(c);
}

/* The numbers of the first store, set in a view over other ones. */
static void set_in_pieces(bits *b, rung_view *view, uint64_t seed) {
  for (const weight *w = weights; w < weights + WEIGHTS; w++) {
    const float *x = numbers_of(w, seed);
    const int64_t block = rung_type_get(w->type)->block, blocks = count_of(w) / block;
    const uint64_t bytes = rung_type_get(w->type)->bytes;
    for (int64_t at = 0, step = 1; at < blocks; at += step, step = step * 3 + 1) {
      const int64_t n = blocks - at < step ? blocks - at : step;
      CHECK_OK(rung_view_set_weight_range(view, w->name, (uint64_t)at * bytes, RUNG_TYPE_F32, x + at * block,
                                          (uint64_t)(n * block) * 4, &b->error));
    }
  }
  CHECK_OK(rung_view_commit(view, &b->error));
}

/* In the stored type, from another view. */
static void set_stored(bits *b, rung_view *view, rung_view *from) {
  static uint8_t raw[MOST * 4];
  for (const weight *w = weights; w < weights + WEIGHTS; w++) {
    const uint64_t bytes = rung_type_bytes(w->type, (uint64_t)count_of(w));
    CHECK_OK(rung_view_get_weight(from, w->name, 0, w->type, raw, bytes, &b->error));
    CHECK_OK(rung_view_set_weight(view, w->name, w->type, raw, bytes, &b->error));
  }
  CHECK_OK(rung_view_commit(view, &b->error));
}

static void check_ways(const char *device, rung_quant quant) {
  bits b;
  rung_weights *store, *other;
  rung_view *view, *far, *third;
  if (bits_open(&b, device, quant)) {
    CHECK_OK(open_store(&b, 1, &store, &view));
    CHECK_OK(open_store(&b, 1001, &other, &far));
    CHECK_OK(rung_view_create(other, &b.error, &third));
    rung_context *c = context_of(&b, view), *d = context_of(&b, far), *e = context_of(&b, third);
    float different[ROWS * 64];
    run(c, b.first);
    run(d, different);
    CHECK(memcmp(b.first, different, sizeof different) != 0);
    check_fresh(&b, view);
    rung_context_destroy(c);
    rung_weights_trim(store);
    CHECK_EQ_I64(rung_weights_memory(store).packed, 0);
    c = context_of(&b, view); /* packed again */
    check_same(&b, c);
    CHECK_OK(rung_view_copy_from(far, view, &b.error));
    check_same(&b, d);
    check_fresh(&b, far);
    set_in_pieces(&b, third, 1);
    check_same(&b, e);
    CHECK_OK(rung_view_share_from(far, view, &b.error));
    check_same(&b, d);
    set_stored(&b, far, third);
    check_same(&b, d);
    rung_view_trim(far);
    check_same(&b, d);
    check_same(&b, c);
    for (const weight *w = weights; w < weights + WEIGHTS; w++) /* the store's, with the numbers that it has */
      CHECK_OK(rung_weights_set(store, w->name, RUNG_TYPE_F32, numbers_of(w, 1), (uint64_t)count_of(w) * 4, &b.error));
    CHECK_OK(rung_weights_commit(store, &b.error));
    check_same(&b, c);
    rung_context_destroy(c);
    rung_context_destroy(d);
    rung_context_destroy(e);
    rung_view_release(view);
    rung_view_release(far);
    rung_view_release(third);
    rung_weights_release(store);
    rung_weights_release(other);
  }
  rung_program_release(b.program);
  rung_template_release(b.template_);
  rung_device_release(b.device);
  CHECK_EQ_I64(rung_host_memory(b.host).packed + rung_host_memory(b.host).weights, 0);
  rung_host_release(b.host);
}

static void test_ref(void) { check_ways("ref", RUNG_QUANT_EXACT); }
static void test_exact(void) { check_ways("cpu", RUNG_QUANT_EXACT); }
static void test_fast(void) { check_ways("cpu", RUNG_QUANT_FAST); }

int main(void) {
  RUN(test_ref);
  RUN(test_exact);
  RUN(test_fast);
  return TEST_END();
}
