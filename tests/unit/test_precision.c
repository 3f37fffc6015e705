/* SPDX-License-Identifier: MIT
 * Precision policies on a graph of products: results within the bound that follows from rounding both factors, and what
 * lies between ops, to the narrow type; what a policy does not speak of is what it is without. Bits do not depend on the
 * number of rows, the size planned for or the threads; weights take half the bytes, as predicted. Where f16 ends. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <math.h>
#include <rung/program.h>
#include <rung/store.h>
#include <stdlib.h>

#include "../test.h"
#include "ir/type.h"
#include "plan/plan.h"
#include "runtime/runtime.h"

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
    "%16 = silu %0 : f32[n,97]\n"
    "output \"a\" %7\noutput \"b\" %8\noutput \"c\" %9\noutput \"d\" %10\noutput \"gated\" %14\noutput \"plain\" "
    "%16\noutput \"own\" %15\n";

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
enum { WEIGHTS = 6, OUTPUTS = 7, GATED = 4, PLAIN = 5, OWN = 6 };
static const int64_t widths[OUTPUTS] = {48, 32, 16, 70, 64, K, ROWS};

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

static const char *const policies[] = {"mixed", "mixed-f16", "bf16", "f16"};
static rung_precision policy_of(const char *name) {
  rung_precision precision = rung_precision_f32();
  CHECK(rung_precision_find(name, &precision));
  return precision;
}

/* To nearest: half of the distance to the next number, relative; and of the smallest numbers of f16, absolute. */
static double unit_of(rung_type type) { return type == RUNG_TYPE_F16 ? 0x1p-11 : 0x1p-8; }
static double floor_of(rung_type type) { return type == RUNG_TYPE_F16 ? 0x1p-25 : 0; }

/* Each factor is rounded, a sum of K terms has K roundings of f32 on top. */
static void product(rung_type type, const float *x, const float *b, int64_t step, rung_type b_type, double *out_sum,
                    double *out_bound) {
  const double unit = unit_of(type);
  double sum = 0, magnitude = 0, smallest = 0;
  for (int64_t k = 0; k < K; k++) {
    float stored = b[k * step];
    uint8_t raw[4];
    rung_type_get(b_type)->from_f32(&stored, raw, 1);
    rung_type_get(b_type)->to_f32(raw, &stored, 1);
    sum += (double)x[k] * (double)stored;
    magnitude += fabs((double)x[k] * (double)stored);
    smallest += (fabs((double)x[k]) + fabs((double)stored)) * floor_of(type);
  }
  *out_sum = sum;
  *out_bound = magnitude * (2 * unit + unit * unit + 2 * K * 0x1p-24) + 2 * smallest;
}

static double worse(double worst, double off) { return off <= worst ? worst : off; /* NaN counts */ }

static double check_products(const results *r, const float *x, rung_type type) {
  double worst = 0, sum, bound;
  for (int i = 0; i < 4; i++)
    for (int64_t row = 0; row < ROWS; row++)
      for (int64_t c = 0; c < widths[i]; c++) {
        const weight *w = &weights[i];
        product(type, x + row * K, numbers_of(w) + (w->turned ? c : c * K), w->turned ? w->extent[1] : 1, w->type, &sum,
                &bound);
        worst = worse(worst, fabs((double)r->y[i][row * widths[i] + c] - sum) / bound);
      }
  for (int64_t row = 0; row < ROWS; row++)
    for (int64_t c = 0; c < ROWS; c++) {
      product(type, x + row * K, x + c * K, 1, RUNG_TYPE_F32, &sum, &bound);
      worst = worse(worst, fabs((double)r->y[OWN][row * ROWS + c] - sum) / bound);
    }
  return worst;
}

/* gated = silu(e) f: the slope of silu is below 1.1, and it is below |e|. Where a policy keeps e, f and silu(e) narrow
 * each is rounded once more. */
static double check_gated(const results *r, const float *x, rung_type type) {
  double worst = 0, e, e_bound, f, f_bound;
  const double unit = unit_of(type);
  static float ew[64 * K], fw[64 * K];
  memcpy(ew, numbers_of(&weights[4]), sizeof ew);
  memcpy(fw, numbers_of(&weights[5]), sizeof fw);
  for (int64_t row = 0; row < ROWS; row++)
    for (int64_t c = 0; c < 64; c++) {
      product(type, x + row * K, ew + c * K, 1, RUNG_TYPE_F32, &e, &e_bound);
      product(type, x + row * K, fw + c * K, 1, RUNG_TYPE_F32, &f, &f_bound);
      e_bound += unit * (fabs(e) + e_bound);
      f_bound += unit * (fabs(f) + f_bound);
      const double want = e / (1 + exp(-e)) * f;
      const double room =
          (1.1 * e_bound + unit * fabs(e)) * (fabs(f) + f_bound) + fabs(e) * f_bound + 1e-5 * (1 + fabs(want));
      worst = worse(worst, fabs((double)r->y[GATED][row * 64 + c] - want) / room);
    }
  return worst;
}

static void check_numbers(const char *device) {
  for (size_t i = 0; i < RUNG_COUNT(policies); i++) {
    world w;
    const rung_precision precision = policy_of(policies[i]);
    if (open_world(&w, device, precision)) {
      results r = run(&w, 0, ROWS, 200, 2);
      const double products = check_products(&r, rows_of(), precision.compute),
                   gated = check_gated(&r, rows_of(), precision.compute);
      CHECK(products <= 1 && gated <= 1);
      CHECK(products > 0.01); /* it does round */
      printf("%s, %s: %.2g and %.2g of the bound\n", rung_device_name(w.device), policies[i], products, gated);
      forget(&r);
    }
    close_world(&w);
  }
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

static void check_bits(rung_precision precision) {
  static const int64_t counts[] = {1, 2, 5, 13, 64, ROWS};
  world w;
  if (open_world(&w, "cpu", precision)) {
    results all = run(&w, 0, ROWS, 200, 1);
    bool equal = true;
    for (size_t i = 0; i < RUNG_COUNT(counts); i++) {
      const int64_t n = counts[i], first = (ROWS - n) / 2;
      results part = run(&w, first, n, i % 2 ? n : 200, 1 + (int)i % 3);
      for (int o = 0; o < OWN; o++)
        equal = equal && memcmp(part.y[o], all.y[o] + first * widths[o], (size_t)(n * widths[o]) * sizeof(float)) == 0;
      forget(&part);
    }
    CHECK(equal);
    forget(&all);
  }
  close_world(&w);
}

static void test_bits(void) {
  for (size_t l = 0; l < RUNG_COUNT(levels); l++) {
    setenv("RUNG_MAX_ISA", levels[l], 1);
    for (size_t i = 0; i < RUNG_COUNT(policies); i++) check_bits(policy_of(policies[i]));
  }
  unsetenv("RUNG_MAX_ISA");
}

/* What a policy does not speak of has the bits that it has without. */
static void test_others_untouched(void) {
  world narrow, wide;
  if (open_world(&narrow, "cpu", policy_of("mixed")) & open_world(&wide, "cpu", rung_precision_f32())) {
    results a = run(&narrow, 0, ROWS, 200, 2), b = run(&wide, 0, ROWS, 200, 2);
    CHECK(memcmp(a.y[PLAIN], b.y[PLAIN], ROWS * K * sizeof(float)) == 0);
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
  for (size_t i = 0; i < RUNG_COUNT(policies); i++) {
    const rung_precision precision = policy_of(policies[i]);
    CHECK_EQ_I64(packed(precision, true), packed(precision, false));
    /* Of whole panels: a 48, b 32, c 16, d 80, e and f 64 columns of K; of bf16 rounded up to pairs. */
    const uint64_t k = precision.compute == RUNG_TYPE_BF16 ? (K + 1) / 2 * 2 : K, columns = 48 + 32 + 16 + 80 + 64 + 64;
    const uint64_t page = 4096, wanted = columns * k * 2;
    const uint64_t have = packed(precision, false);
    CHECK(have >= wanted && have <= wanted + WEIGHTS * page);
  }
}

/* A table that is gathered from is kept narrow as well, where movement is; two rows of it are read. */
static const char table[] =
    "rung 1\n"
    "%0 = input {name=\"i\"} : i32[2]\n"
    "%1 = weight {name=\"t\"} : f32[4096,64]\n"
    "%2 = gather %1, %0 : f32[2,64]\n"
    "output \"y\" %2\n";

static void check_table(const char *policy, bool kept) {
  world w = {NULL};
  rung_graph *graph = NULL;
  rung_program *program = NULL;
  rung_memory m = {0};
  rung_compile_options o = rung_compile_options_default();
  o.precision = policy_of(policy);
  CHECK_OK(rung_host_create(NULL, &w.error, &w.host));
  CHECK_OK(rung_device_create(w.host, "cpu", NULL, &w.error, &w.device));
  CHECK_OK(rung_graph_parse(w.host, table, strlen(table), &w.error, &graph));
  CHECK_OK(rung_template_create(w.device, graph, &o, &w.error, &w.template_));
  CHECK_OK(rung_program_create(w.template_, NULL, 0, &w.error, &program));
  CHECK_OK(rung_program_memory(program, NULL, 0, NULL, &w.error, &m));
  CHECK_EQ_I64(m.packed, kept ? 4096 * 64 * 2 : 0);
  rung_program_release(program);
  rung_graph_destroy(graph);
  close_world(&w);
}
static void test_table(void) {
  check_table("f32", false);
  check_table("mixed", false);
  check_table("f16", true);
  check_table("bf16", true);
}

/* ---- the ends of types, and the boundary */

static const char ends[] =
    "rung 1\nsymbol n 1..8\n"
    "%0 = input {name=\"x\"} : f32[n,2]\n"
    "%1 = weight {name=\"w\"} : f32[2,2]\n"
    "%2 = matmul %0, %1 {transpose_b=true} : f32[n,2]\n"
    "output \"y\" %2\n";
enum { ENDS = 7 };

/* y[row] = x[row][0], which is rounded as a factor. *out_type: that of the input. */
static void run_ends(const char *device, rung_precision precision, float *out, rung_type *out_type) {
  static const float x[ENDS][2] = {{1e5f, 0}, {65504, 0}, {65519, 0}, {65520, 0}, {NAN, 0}, {-INFINITY, 0}, {1e-9f, 0}};
  world w = {NULL};
  rung_graph *graph = NULL;
  rung_program *program = NULL;
  rung_context *c = NULL;
  rung_tensor y;
  void *to;
  const float one[4] = {1, 1, 1, 1};
  rung_compile_options o = rung_compile_options_default();
  o.precision = precision;
  CHECK_OK(rung_host_create(NULL, &w.error, &w.host));
  CHECK_OK(rung_device_create(w.host, device, NULL, &w.error, &w.device));
  CHECK_OK(rung_graph_parse(w.host, ends, strlen(ends), &w.error, &graph));
  CHECK_OK(rung_template_create(w.device, graph, &o, &w.error, &w.template_));
  CHECK_OK(rung_weights_create(w.host, &w.error, &w.store));
  CHECK_OK(rung_weights_declare(w.store, "w", RUNG_TYPE_F32, 2, (int64_t[]){2, 2}, &w.error));
  CHECK_OK(rung_weights_set(w.store, "w", RUNG_TYPE_F32, one, sizeof one, &w.error));
  CHECK_OK(rung_weights_commit(w.store, &w.error));
  CHECK_OK(rung_view_create(w.store, &w.error, &w.view));
  CHECK_OK(rung_program_create(w.template_, NULL, 0, &w.error, &program));
  CHECK_OK(rung_context_create(w.template_, w.view, NULL, NULL, &w.error, &c));
  CHECK_OK(rung_context_use(c, program));
  *out_type = program->plan->input[0].type.type;
  CHECK_OK(rung_context_input(c, 0, (int64_t[]){ENDS, 2}, &to));
  rung_type_get(*out_type)->from_f32(&x[0][0], to, ENDS * 2);
  CHECK_OK(rung_context_run(c));
  CHECK_OK(rung_context_output(c, 0, &y));
  CHECK(y.type == *out_type);
  float all[ENDS * 2];
  rung_type_get(y.type)->to_f32(y.data, all, ENDS * 2);
  for (int i = 0; i < ENDS; i++) out[i] = all[2 * i];
  rung_context_destroy(c);
  rung_program_release(program);
  rung_graph_destroy(graph);
  close_world(&w);
}

static void check_ends(const char *device) {
  float y[ENDS];
  rung_type type;
  run_ends(device, policy_of("f16"), y, &type);
  CHECK(type == RUNG_TYPE_F32);
  CHECK(isinf(y[0]) && y[0] > 0 && y[1] == 65504 && y[2] == 65504 && isinf(y[3]));
  CHECK(isnan(y[4]) && isinf(y[5]) && y[5] < 0 && y[6] == 0);
  run_ends(device, policy_of("bf16"), y, &type);
  CHECK(fabs((double)y[0] - 1e5) <= 1e5 * 0x1p-8 && y[1] == 65536 && y[3] == 65536);
  CHECK(isnan(y[4]) && isinf(y[5]) && fabs((double)y[6] - 1e-9) <= 1e-9 * 0x1p-8);
  rung_precision all = policy_of("f16");
  all.boundary = RUNG_TYPE_F16;
  CHECK(strcmp(rung_precision_name(all), "custom") == 0);
  run_ends(device, all, y, &type);
  CHECK(type == RUNG_TYPE_F16 && isinf(y[0]) && y[1] == 65504 && isnan(y[4]));
}
static void test_ends(void) {
  check_ends("cpu");
  check_ends("ref");
}

/* ---- what is not rounded */

/* Indices that leave a fused node beside what is measured; a mean whose numbers no f16 holds. */
static const char kept[] =
    "rung 1\nsymbol n 1..64\n"
    "%0 = input {name=\"x\"} : f32[n,1]\n"
    "%1 = input {name=\"i\"} : i32[n,1]\n"
    "%2 = cast %1 {type=f32} : f32[n,1]\n"
    "%3 = neg %2 : f32[n,1]\n"
    "%4 = mul %0, %3 : f32[n,1]\n"
    "%5 = reshape %3 {shape=[n]} : f32[n]\n"
    "%6 = neg %5 : f32[n]\n"
    "%7 = cast %6 {type=i32} : i32[n]\n"
    "%8 = reduce_mean %0 {axes=[0]} : f32[1]\n"
    "%9 = tanh %8 : f32[1]\n"
    "output \"index\" %7\noutput \"product\" %4\noutput \"mean\" %9\n";

static void check_kept(const char *device, const char *policy) {
  enum { N = 4 };
  static const int32_t index[N] = {1, 257, 1001, 4099};
  static const float x[N] = {1e5f + 1, -1e5f + 1, 1e5f + 1, -1e5f + 1};
  world w = {NULL};
  rung_graph *graph = NULL;
  rung_program *program = NULL;
  rung_context *c = NULL;
  rung_tensor y;
  void *to;
  rung_compile_options o = rung_compile_options_default();
  o.precision = policy_of(policy);
  CHECK_OK(rung_host_create(NULL, &w.error, &w.host));
  CHECK_OK(rung_device_create(w.host, device, NULL, &w.error, &w.device));
  CHECK_OK(rung_graph_parse(w.host, kept, strlen(kept), &w.error, &graph));
  CHECK_OK(rung_template_create(w.device, graph, &o, &w.error, &w.template_));
  CHECK_OK(rung_program_create(w.template_, NULL, 0, &w.error, &program));
  CHECK_OK(rung_context_create(w.template_, NULL, NULL, NULL, &w.error, &c));
  CHECK_OK(rung_context_use(c, program));
  CHECK_OK(rung_context_input(c, 0, (int64_t[]){N, 1}, &to));
  memcpy(to, x, sizeof x);
  CHECK_OK(rung_context_input(c, 1, (int64_t[]){N, 1}, &to));
  memcpy(to, index, sizeof index);
  CHECK_OK(rung_context_run(c));
  CHECK_OK(rung_context_output(c, 0, &y));
  CHECK(memcmp(y.data, index, sizeof index) == 0);
  CHECK_OK(rung_context_output(c, 2, &y));
  CHECK(fabs((double)*(const float *)y.data - tanh(1.0)) <= 0x1p-7); /* rounded twice, and sums of 1e5 */
  rung_context_destroy(c);
  rung_program_release(program);
  rung_graph_destroy(graph);
  close_world(&w);
}
static void test_kept(void) {
  check_kept("cpu", "f16");
  check_kept("cpu", "bf16");
  check_kept("ref", "f16");
  check_kept("ref", "bf16");
}

/* Stored compiles of different policies have different keys. */
static void test_keys(void) {
  world w = {NULL};
  rung_graph *graph = NULL;
  char key[RUNG_COUNT(policies) + 6][33];
  size_t keys = 0;
  CHECK_OK(rung_host_create(NULL, &w.error, &w.host));
  CHECK_OK(rung_device_create(w.host, "cpu", NULL, &w.error, &w.device));
  CHECK_OK(rung_graph_parse(w.host, text, strlen(text), &w.error, &graph));
  for (size_t i = 0; i < RUNG_COUNT(policies) + 6; i++) {
    rung_compile_options o = rung_compile_options_default();
    rung_type *const category[] = {&o.precision.compute, &o.precision.reduction, &o.precision.elementwise,
                                   &o.precision.movement, &o.precision.boundary};
    if (i < RUNG_COUNT(policies)) o.precision = policy_of(policies[i]);
    if (i > RUNG_COUNT(policies)) *category[i - RUNG_COUNT(policies) - 1] = RUNG_TYPE_F16; /* the first is mixed-f16 */
    CHECK_OK(rung_store_key(w.device, graph, &o, &w.error, key[keys]));
    for (size_t k = 0; k < keys; k++)
      CHECK((strcmp(key[k], key[keys]) == 0) == (k == 1 && i == RUNG_COUNT(policies) + 1));
    keys++;
  }
  rung_graph_destroy(graph);
  close_world(&w);
}

static void test_names(void) {
  static const char *const all[] = {"f32", "f16", "bf16", "mixed", "mixed-f16"};
  rung_precision precision;
  for (size_t i = 0; i < RUNG_COUNT(all); i++) {
    CHECK(rung_precision_find(all[i], &precision));
    CHECK(strcmp(rung_precision_name(precision), all[i]) == 0);
  }
  CHECK(!rung_precision_find("f64", &precision) && !rung_precision_find(NULL, &precision));
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
  o.precision = rung_precision_mixed(RUNG_TYPE_F64);
  CHECK_STATUS(rung_template_create(w.device, graph, &o, &w.error, &t), RUNG_INVALID_ARGUMENT);
  CHECK(!t && strstr(w.error.message, "precision.compute cannot be f64") != NULL);
  rung_graph_destroy(graph);
  close_world(&w);
}

int main(void) {
  RUN(test_numbers);
  RUN(test_bits);
  RUN(test_others_untouched);
  RUN(test_memory);
  RUN(test_table);
  RUN(test_ends);
  RUN(test_kept);
  RUN(test_names);
  RUN(test_keys);
  RUN(test_refused);
  return TEST_END();
}
