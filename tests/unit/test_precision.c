/* SPDX-License-Identifier: MIT
 * The bf16 policy: products with float weights round both factors to bf16 and add up in f32, with a bound that follows
 * from those roundings; everything else is what it is without the policy. Bits do not depend on the number of rows, the
 * size planned for or the threads; weights take half the bytes, as predicted. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <math.h>
#include <rung/program.h>
#include <stdlib.h>

#include "../test.h"
#include "ir/type.h"

/* Weights as torch and as ONNX have them, of three types; several products of one value; an odd K; one product of two
 * computed values, which stays f32. */
static const char text[] =
    "rung 1\nsymbol n 1..200\n"
    "%0 = input {name=\"x\"} : f32[n,97]\n"
    "%1 = weight {name=\"a\"} : f32[48,97]\n"
    "%2 = weight {name=\"b\"} : f16[32,97]\n"
    "%3 = weight {name=\"c\"} : bf16[16,97]\n"
    "%4 = weight {name=\"d\"} : f32[97,70]\n"
    "%5 = weight {name=\"e\"} : f32[64,97]\n"
    "%6 = weight {name=\"f\"} : f32[64,97]\n"
    "%7 = matmul %0, %1 {transpose_b=true} : f32[n,48]\n"
    "%8 = matmul %0, %2 {transpose_b=true} : f32[n,32]\n"
    "%9 = matmul %0, %3 {transpose_b=true} : f32[n,16]\n"
    "%10 = matmul %0, %4 : f32[n,70]\n"
    "%11 = matmul %0, %5 {transpose_b=true} : f32[n,64]\n"
    "%12 = matmul %0, %6 {transpose_b=true} : f32[n,64]\n"
    "%13 = silu %11 : f32[n,64]\n"
    "%14 = mul %13, %12 : f32[n,64]\n"
    "%15 = matmul %0, %0 {transpose_b=true} : f32[n,n]\n"
    "output \"a\" %7\noutput \"b\" %8\noutput \"c\" %9\noutput \"d\" %10\noutput \"gated\" %14\noutput \"own\" %15\n";

enum { K = 97, ROWS = 131, MOST = 64 * K + 70 * K };
typedef struct weight {
  const char *name;
  rung_type type;
  int64_t extent[2];
  bool turned; /* [K, N] */
} weight;
static const weight weights[] = {{"a", RUNG_TYPE_F32, {48, K}, false},  {"b", RUNG_TYPE_F16, {32, K}, false},
                                 {"c", RUNG_TYPE_BF16, {16, K}, false}, {"d", RUNG_TYPE_F32, {K, 70}, true},
                                 {"e", RUNG_TYPE_F32, {64, K}, false},  {"f", RUNG_TYPE_F32, {64, K}, false}};
enum { WEIGHTS = 6, OUTPUTS = 6 };
static const int64_t widths[OUTPUTS] = {48, 32, 16, 70, 64, ROWS};

static const float *numbers_of(const weight *w) {
  static float x[MOST];
  uint64_t seed = 7 + (uint64_t)(w - weights);
  for (int64_t i = 0; i < w->extent[0] * w->extent[1]; i++) x[i] = test_uniform(&seed, -1, 1);
  return x;
}
static const float *rows_of(void) {
  static float x[ROWS * K];
  uint64_t seed = 3;
  for (int i = 0; i < ROWS * K; i++) x[i] = test_uniform(&seed, -2, 2);
  return x;
}

typedef struct world {
  rung_host *host;
  rung_device *device;
  rung_template *template_;
  rung_weights *store;
  rung_view *view;
  rung_error error;
} world;

static bool open_world(world *w, const char *device, rung_precision precision) {
  *w = (world){NULL};
  rung_graph *graph = NULL;
  rung_compile_options o = rung_compile_options_default();
  o.precision = precision;
  rung_status s = rung_host_create(NULL, &w->error, &w->host);
  if (!s) s = rung_device_create(w->host, device, NULL, &w->error, &w->device);
  if (!s) s = rung_graph_parse(w->host, text, strlen(text), &w->error, &graph);
  if (!s) s = rung_template_create(w->device, graph, &o, &w->error, &w->template_);
  if (!s) s = rung_weights_create(w->host, &w->error, &w->store);
  for (const weight *v = weights; !s && v < weights + WEIGHTS; v++) {
    s = rung_weights_declare(w->store, v->name, v->type, 2, v->extent, &w->error);
    const uint64_t bytes = (uint64_t)(v->extent[0] * v->extent[1]) * 4;
    if (!s) s = rung_weights_set(w->store, v->name, RUNG_TYPE_F32, numbers_of(v), bytes, &w->error);
  }
  if (!s) s = rung_weights_commit(w->store, &w->error);
  if (!s) s = rung_view_create(w->store, &w->error, &w->view);
  rung_graph_destroy(graph);
  test_state.checks++;
  if (s) TEST_FAIL_("%s: %s", device, w->error.message);
  return !s;
}
static void close_world(world *w) {
  rung_view_release(w->view);
  rung_weights_release(w->store);
  rung_template_release(w->template_);
  rung_device_release(w->device);
  rung_host_release(w->host);
}

typedef struct results {
  float *y[OUTPUTS];
} results;

/* Rows [first, first + rows) by a program that is planned for `ceiling` rows. */
static results run(world *w, int64_t first, int64_t rows, int64_t ceiling, int threads) {
  results r;
  rung_program *program = NULL;
  rung_context *c = NULL;
  rung_context_options o = rung_context_options_default();
  o.threads = threads;
  void *x;
  CHECK_OK(rung_program_create(w->template_, &(rung_binding){"n", ceiling}, 1, &w->error, &program));
  CHECK_OK(rung_context_create(w->template_, w->view, NULL, &o, &w->error, &c));
  CHECK_OK(rung_context_use(c, program));
  CHECK_OK(rung_context_input(c, 0, (int64_t[]){rows, K}, &x));
  memcpy(x, rows_of() + first * K, (size_t)(rows * K) * sizeof(float));
  CHECK_OK(rung_context_run(c));
  for (int i = 0; i < OUTPUTS; i++) {
    rung_tensor y;
    CHECK_OK(rung_context_output(c, i, &y));
    const size_t bytes = (size_t)(rows * (i + 1 < OUTPUTS ? widths[i] : rows)) * sizeof(float);
    r.y[i] = malloc(bytes + 1);
    memcpy(r.y[i], y.data, bytes);
  }
  rung_context_destroy(c);
  rung_program_release(program);
  return r;
}
static void forget(results *r) {
  for (int i = 0; i < OUTPUTS; i++) free(r->y[i]);
}

/* ---- against double */

/* Each factor is off by 2^-8 of itself at most, a sum of K terms by K roundings of f32 on top. */
static void product(const float *x, const weight *w, int64_t column, double *out_sum, double *out_bound) {
  const float *b = numbers_of(w);
  double sum = 0, magnitude = 0;
  for (int64_t k = 0; k < K; k++) {
    float stored = b[w->turned ? k * w->extent[1] + column : column * K + k];
    uint8_t raw[4];
    rung_type_get(w->type)->from_f32(&stored, raw, 1);
    rung_type_get(w->type)->to_f32(raw, &stored, 1);
    sum += (double)x[k] * (double)stored;
    magnitude += fabs((double)x[k] * (double)stored);
  }
  *out_sum = sum;
  *out_bound = magnitude * (0x1p-7 + 0x1p-16 + 2 * K * 0x1p-24);
}

static void check_numbers(const char *device) {
  world w;
  if (open_world(&w, device, RUNG_PRECISION_BF16)) {
    results r = run(&w, 0, ROWS, 200, 2);
    const float *x = rows_of();
    double worst = 0, sum, bound;
    for (int i = 0; i < 4; i++)
      for (int64_t row = 0; row < ROWS; row++)
        for (int64_t c = 0; c < widths[i]; c++) {
          product(x + row * K, &weights[i], c, &sum, &bound);
          const double off = fabs((double)r.y[i][row * widths[i] + c] - sum) / bound;
          worst = off <= worst ? worst : off; /* NaN counts */
        }
    /* gated = silu(e) f: the slope of silu is below 1.1, and it is below |e|. */
    for (int64_t row = 0; row < ROWS; row++)
      for (int64_t c = 0; c < 64; c++) {
        double f, f_bound;
        product(x + row * K, &weights[4], c, &sum, &bound);
        product(x + row * K, &weights[5], c, &f, &f_bound);
        const double want = sum / (1 + exp(-sum)) * f;
        const double room = 1.1 * bound * (fabs(f) + f_bound) + fabs(sum) * f_bound + 1e-5 * (1 + fabs(want));
        const double off = fabs((double)r.y[4][row * 64 + c] - want) / room;
        worst = off <= worst ? worst : off;
      }
    CHECK(worst <= 1);
    CHECK(worst > 0.01); /* it does round */
    printf("%s: %.2g of the bound\n", rung_device_name(w.device), worst);
    forget(&r);
  }
  close_world(&w);
}

/* Every instruction set that this machine has, and the definition. */
static const char *const levels[] = {"base", "avx2", "avx512", "neon"};
static void test_numbers(void) {
  for (size_t i = 0; i < RUNG_COUNT(levels); i++) {
    setenv("RUNG_MAX_ISA", levels[i], 1);
    check_numbers("cpu");
  }
  unsetenv("RUNG_MAX_ISA");
  check_numbers("ref");
}

/* ---- bits */

static void test_bits(void) {
  static const int64_t counts[] = {1, 2, 5, 13, 64, ROWS};
  for (size_t l = 0; l < RUNG_COUNT(levels); l++) {
    world w;
    setenv("RUNG_MAX_ISA", levels[l], 1);
    if (open_world(&w, "cpu", RUNG_PRECISION_BF16)) {
      results all = run(&w, 0, ROWS, 200, 1);
      bool equal = true;
      for (size_t i = 0; i < RUNG_COUNT(counts); i++) {
        const int64_t n = counts[i], first = (ROWS - n) / 2;
        results part = run(&w, first, n, i % 2 ? n : 200, 1 + (int)i % 3);
        for (int o = 0; o + 1 < OUTPUTS; o++)
          equal =
              equal && memcmp(part.y[o], all.y[o] + first * widths[o], (size_t)(n * widths[o]) * sizeof(float)) == 0;
        forget(&part);
      }
      CHECK(equal);
      forget(&all);
    }
    close_world(&w);
  }
  unsetenv("RUNG_MAX_ISA");
}

/* What the policy does not speak of has the bits that it has without. */
static void test_others_untouched(void) {
  world narrow, wide;
  if (open_world(&narrow, "cpu", RUNG_PRECISION_BF16) & open_world(&wide, "cpu", RUNG_PRECISION_F32)) {
    results a = run(&narrow, 0, ROWS, 200, 2), b = run(&wide, 0, ROWS, 200, 2);
    CHECK(memcmp(a.y[5], b.y[5], ROWS * ROWS * sizeof(float)) == 0);
    CHECK(memcmp(a.y[0], b.y[0], ROWS * 48 * sizeof(float)) != 0);
    forget(&a);
    forget(&b);
  }
  close_world(&narrow);
  close_world(&wide);
}

/* ---- memory */

static uint64_t packed(rung_precision precision, bool held) {
  world w;
  uint64_t bytes = 0;
  if (open_world(&w, "cpu", precision)) {
    rung_program *program = NULL;
    rung_memory m = {0};
    CHECK_OK(rung_program_create(w.template_, NULL, 0, &w.error, &program));
    CHECK_OK(rung_program_memory(program, NULL, 0, NULL, &w.error, &m));
    bytes = m.packed;
    if (held) {
      rung_context *c = NULL;
      CHECK_OK(rung_context_create(w.template_, w.view, NULL, NULL, &w.error, &c));
      CHECK_OK(rung_context_use(c, program));
      bytes = rung_view_memory(w.view).packed;
      rung_context_destroy(c);
    }
    rung_program_release(program);
  }
  close_world(&w);
  return bytes;
}

static void test_memory(void) {
  CHECK_EQ_I64(packed(RUNG_PRECISION_BF16, true), packed(RUNG_PRECISION_BF16, false));
  /* Of whole panels: a 48, b 32, c 16, d 80, e and f 64 columns of K, rounded up to pairs. */
  const uint64_t pairs = (K + 1) / 2 * 4, columns = 48 + 32 + 16 + 80 + 64 + 64;
  const uint64_t page = 4096, wanted = columns * pairs;
  const uint64_t have = packed(RUNG_PRECISION_BF16, false);
  CHECK(have >= wanted && have <= wanted + WEIGHTS * page);
}

/* ---- refused */

static void test_refused(void) {
  world w = {NULL};
  rung_graph *graph = NULL;
  rung_template *t = NULL;
  CHECK_OK(rung_host_create(NULL, &w.error, &w.host));
  CHECK_OK(rung_device_create(w.host, "cpu", NULL, &w.error, &w.device));
  CHECK_OK(rung_graph_parse(w.host, text, strlen(text), &w.error, &graph));
  rung_compile_options o = rung_compile_options_default();
  o.precision = (rung_precision)2;
  CHECK_STATUS(rung_template_create(w.device, graph, &o, &w.error, &t), RUNG_INVALID_ARGUMENT);
  CHECK(!t && strstr(w.error.message, "precision policy 2") != NULL);
  rung_graph_destroy(graph);
  close_world(&w);
}

int main(void) {
  RUN(test_numbers);
  RUN(test_bits);
  RUN(test_others_untouched);
  RUN(test_memory);
  RUN(test_refused);
  return TEST_END();
}
