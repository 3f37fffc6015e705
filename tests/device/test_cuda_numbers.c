/* SPDX-License-Identifier: MIT
 * Numbers that are none, and numbers at the ends of their range, through programs on the CUDA device: NaN at every place
 * of maxima and minima, rows of attention that see nothing, scores beyond -50,000, rows of NaN that spoil nothing but
 * themselves, activations of 3000 in a quantised product. The cpu device is held to the same. On a GPU, or on the false
 * driver with every step on the host. */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>

#include "base/half.h"
#include "cts/world.h"
#include "device/fake_world.h"

static const char *device;
static bool quick; /* every number of a step is read by the host */

/* Runs a text whose inputs are all given; the outputs are the world's. */
typedef struct given {
  int64_t extent[4];
  const void *data;
  size_t bytes;
} given;

static bool run(world *w, const char *text, const char *on, const given *in, int count) {
  if (!world_open(w, text, &(world_options){.device = on})) return false;
  for (int i = 0; i < count; i++)
    if (!world_put(w, i, in[i].extent, in[i].data, in[i].bytes)) return false;
  return world_run(w);
}

/* All outputs are the reference device's: NaN where it has NaN, else within 1e-5 of the largest that is finite. */
static void check_as_reference(const char *text, const given *in, int count, const char *what) {
  world have = {0}, want = {0};
  const bool both = run(&want, text, "ref", in, count) && run(&have, text, device, in, count);
  for (int o = 0; both && o < rung_program_outputs(want.program); o++) {
    const rung_tensor a = world_output(&have, o), b = world_output(&want, o);
    CHECK_EQ_I64(world_count(&a), world_count(&b));
    if (b.type == RUNG_TYPE_I64) {
      CHECK(memcmp(a.data, b.data, (size_t)world_count(&b) * 8) == 0);
      continue;
    }
    const float *x = a.data, *y = b.data;
    double largest = 0;
    for (int64_t i = 0; i < world_count(&b); i++)
      if (isfinite(y[i])) largest = fmax(largest, fabs((double)y[i]));
    for (int64_t i = 0; i < world_count(&b); i++) {
      test_state.checks++;
      if (isnan(x[i]) == isnan(y[i]) &&
          (isnan(y[i]) || x[i] == y[i] || fabs((double)x[i] - (double)y[i]) <= 1e-5 * largest))
        continue;
      TEST_FAIL_("%s on %s: %s[%lld] is %g, not %g", what, device, rung_program_output_name(want.program, o),
                 (long long)i, (double)x[i], (double)y[i]);
      break;
    }
  }
  world_close(&have);
  world_close(&want);
}

/* ---- maxima and minima */

static const char maxima[] =
    "rung 1\nsymbol n 1..64\n"
    "%0 = input {name=\"x\"} : f32[2,n]\n%1 = input {name=\"y\"} : f32[2,n]\n"
    "%2 = input {name=\"one\"} : f32[1]\n%3 = input {name=\"low\"} : f32[]\n%4 = input {name=\"high\"} : f32[]\n"
    "%5 = max %0, %1\n%6 = min %0, %1\n%7 = max %0, %2\n%8 = min %2, %0\n%9 = relu %0\n%10 = clip %0, %3, %4\n"
    "%11 = reduce_max %0 {axes=[1]}\n%12 = reduce_min %0 {axes=[1]}\n%13 = reduce_max %0 {axes=[0]}\n"
    "%14 = argmax %0 {axis=1}\n%15 = argmin %0 {axis=1}\n%16 = softmax %0\n"
    "output \"max\" %5\noutput \"min\" %6\noutput \"max_one\" %7\noutput \"min_one\" %8\noutput \"relu\" %9\n"
    "output \"clip\" %10\noutput \"reduce_max\" %11\noutput \"reduce_min\" %12\noutput \"reduce_max_0\" %13\n"
    "output \"arg_max\" %14\noutput \"arg_min\" %15\noutput \"softmax\" %16\n";

static void test_maxima(void) {
  enum { MOST = 40 };
  static const int64_t lengths[] = {1, 7, 18, 33, 40};
  uint64_t random = 3;
  for (size_t l = 0; l < RUNG_COUNT(lengths); l++)
    for (int64_t at = -1; at < lengths[l] && at < 18; at++)
      for (int which = 0; which < 3; which++) {
        float x[2 * MOST], y[2 * MOST], one = which == 2 && at >= 0 ? NAN : 0.25F, low = -1, high = 1;
        const int64_t n = lengths[l];
        for (int64_t i = 0; i < 2 * n; i++) x[i] = test_uniform(&random, -3, 3), y[i] = test_uniform(&random, -3, 3);
        if (at >= 0 && which < 2) (which ? y : x)[n * (at % 2) + at] = at % 3 == 2 && !which ? -(float)INFINITY : NAN;
        const given in[] = {
            {{2, n}, x, (size_t)n * 8}, {{2, n}, y, (size_t)n * 8}, {{1}, &one, 4}, {{0}, &low, 4}, {{0}, &high, 4}};
        check_as_reference(maxima, in, 5, "maxima");
        if (at < 0) break;
      }
}

/* ---- attention of tensors, with masks */

static void test_masks(void) {
  enum { ROWS = 20, KEYS = 512, DIM = 8 };
  static const char *const forms[] = {"", "{causal=true}"};
  static float q[ROWS * DIM], k[KEYS * DIM], v[KEYS * DIM], soft[2 * KEYS];
  static uint8_t mask[ROWS * KEYS];
  uint64_t random = 4;
  for (int i = 0; i < ROWS * DIM; i++) q[i] = test_uniform(&random, -2, 2);
  for (int i = 0; i < KEYS * DIM; i++) k[i] = test_uniform(&random, -2, 2), v[i] = test_uniform(&random, -2, 2);
  for (int i = 0; i < ROWS * KEYS; i++) mask[i] = i / KEYS >= 14 && (i * 7) % 3 > 0; /* 14 rows see nothing */
  for (int i = 0; i < 2 * KEYS; i++) soft[i] = i < KEYS ? -(float)INFINITY : -FLT_MAX;
  for (int f = 0; f < 2; f++) {
    char text[600];
    snprintf(text, sizeof text,
             "rung 1\nsymbol rows 1..20\nsymbol keys 1..512\n"
             "%%0 = input {name=\"q\"} : f32[1,1,rows,8]\n%%1 = input {name=\"k\"} : f32[1,1,keys,8]\n"
             "%%2 = input {name=\"v\"} : f32[1,1,keys,8]\n%%3 = input {name=\"m\"} : bool[rows,keys]\n"
             "%%4 = attention %%0, %%1, %%2, %%3 %s\n%%5 = input {name=\"x\"} : f32[2,keys]\n%%6 = softmax %%5\n"
             "output \"y\" %%4\noutput \"soft\" %%6\n",
             forms[f]);
    const given in[] = {{{1, 1, ROWS, DIM}, q, sizeof q},
                        {{1, 1, KEYS, DIM}, k, sizeof k},
                        {{1, 1, KEYS, DIM}, v, sizeof v},
                        {{ROWS, KEYS}, mask, sizeof mask},
                        {{2, KEYS}, soft, sizeof soft}};
    check_as_reference(text, in, 5, "a mask");
    world w = {0};
    if (run(&w, text, device, in, 5)) {
      const rung_tensor y = world_output(&w, 0), s = world_output(&w, 1);
      for (int i = 0; i < 14 * DIM; i++) CHECK(((const float *)y.data)[i] == 0);
      for (int64_t i = 0; i < world_count(&y); i++) CHECK(isfinite(((const float *)y.data)[i]));
      for (int i = 0; i < KEYS; i++) CHECK(isnan(((const float *)s.data)[i]));
      for (int i = KEYS; i < 2 * KEYS; i++) CHECK(fabsf(((const float *)s.data)[i] - 1.0F / KEYS) < 1e-6F);
    }
    world_close(&w);
  }
}

/* ---- attention over keys and values */

enum { HEADS = 4, DIM = 32, MOST_ROWS = 100, MOST_PAST = 200 };

static const char *kv_text(const char *type, bool narrow) {
  static char text[900];
  snprintf(text, sizeof text,
           "rung 1\nsymbol rows 0..%d\nsymbol sequences 0..2\n"
           "%%0 = input {name=\"offsets\"} : i32[sequences+1]\n%%1 = input {name=\"slot\"} : i32[sequences]\n"
           "%%2 = input {name=\"past\"} : i32[sequences]\n%%3 = input {name=\"q\"} : f32[rows,4,32]\n"
           "%%4 = input {name=\"k\"} : f32[rows,2,32]\n%%5 = input {name=\"v\"} : f32[rows,2,32]\n"
           "%%6 = state {name=\"kv\"} : kv %s[2,32,32]\n%%7 = append %%6, %%4, %%5, %%0, %%1, %%2\n"
           "%%8 = attention_kv %%3, %%7, %%0, %%1, %%2 {scale=1%s}\noutput \"y\" %%8\n",
           MOST_ROWS, type, narrow ? ", narrow=true" : "");
  return text;
}

/* What row `position` has: an ordinary one, one of NaN in q, k or v, or one whose scores are all the lowest. */
typedef enum trouble { NOTHING, IN_Q, IN_K, IN_V, LOW_SCORES, DEEP_SCORES } trouble;

static bool run_rows(world *w, trouble what, int64_t at, int64_t position, int32_t rows, float *out) {
  static float q[MOST_ROWS * HEADS * DIM], k[MOST_ROWS * 2 * DIM], v[MOST_ROWS * 2 * DIM];
  for (int64_t r = 0; r < rows; r++) {
    uint64_t random = 1 + (uint64_t)(position + r) * 7919;
    const bool here = position + r == at;
    float *qr = q + r * HEADS * DIM, *kr = k + r * 2 * DIM, *vr = v + r * 2 * DIM;
    for (int i = 0; i < HEADS * DIM; i++) qr[i] = here && what == IN_Q ? NAN : test_uniform(&random, -1, 1);
    for (int i = 0; i < 2 * DIM; i++) kr[i] = here && what == IN_K ? NAN : test_uniform(&random, -1, 1);
    for (int i = 0; i < 2 * DIM; i++) vr[i] = here && what == IN_V ? NAN : test_uniform(&random, -1, 1);
    /* Every score -3e38, or about -60,000 with one that is a little higher. */
    for (int i = 0; i < HEADS * DIM && what >= LOW_SCORES; i++) qr[i] = i % DIM ? 0 : what == LOW_SCORES ? 3e38F : 250;
    for (int i = 0; i < 2 * DIM && what >= LOW_SCORES; i++)
      kr[i] = i % DIM ? 0 : what == LOW_SCORES ? -1 : (position + r) % 64 == 5 ? -240 : -241;
  }
  const rung_rows one = {0, rows};
  if (rung_context_set_rows(w->context, &one, 1)) return false;
  if (!world_put(w, 3, (int64_t[]){rows, HEADS, DIM}, q, (size_t)rows * HEADS * DIM * 4) ||
      !world_put(w, 4, (int64_t[]){rows, 2, DIM}, k, (size_t)rows * 2 * DIM * 4) ||
      !world_put(w, 5, (int64_t[]){rows, 2, DIM}, v, (size_t)rows * 2 * DIM * 4) || !world_run(w))
    return false;
  const rung_tensor y = world_output(w, 0);
  if (y.data) memcpy(out, y.data, (size_t)rows * HEADS * DIM * 4);
  return y.data != NULL;
}

/* The rows of a whole sequence, fed in pieces. */
static bool run_sequence(const char *on, const char *text, trouble what, int64_t at, int32_t piece, float *out) {
  world w = {0};
  rung_state_options so = rung_state_options_default();
  so.sequences = 2;
  so.capacity = 512;
  so.chunk = MOST_ROWS;
  bool good = world_open(&w, text, &(world_options){.device = on, .state = &so});
  for (int64_t p = 0; good && p < MOST_PAST; p += piece) {
    const int32_t rows = MOST_PAST - p < piece ? (int32_t)(MOST_PAST - p) : piece;
    good = run_rows(&w, what, at, p, rows, out + p * HEADS * DIM);
  }
  world_close(&w);
  return good;
}

static void check_sequence(const char *type, bool narrow, trouble what) {
  static const int32_t pieces[] = {7, 100, 1};
  static float have[MOST_PAST * HEADS * DIM], want[MOST_PAST * HEADS * DIM];
  const char *text = kv_text(type, narrow);
  const int64_t at = 130;
  if (!run_sequence("ref", text, what, at, MOST_ROWS, want)) return;
  for (size_t p = 0; p < (quick ? 1 : RUNG_COUNT(pieces)); p++) {
    if (!run_sequence(device, text, what, at, pieces[p], have)) return;
    /* Narrow: operands rounded to 8 bits (bf16) or 11. Scores of -60,000 then are 234 apart. */
    const double bound = narrow ? 2e-2 : 2e-3;
    for (int64_t i = 0; i < MOST_PAST * HEADS * DIM; i++) {
      const int64_t row = i / (HEADS * DIM);
      const bool spoiled = what == IN_Q ? row == at : (what == IN_K || what == IN_V) && row >= at;
      test_state.checks++;
      if (spoiled ? !isfinite(have[i]) : fabs((double)have[i] - (double)want[i]) <= bound) continue;
      TEST_FAIL_("kv %s%s on %s, trouble %d, pieces of %d: row %lld is %g, not %g", type, narrow ? ", narrow" : "",
                 device, (int)what, pieces[p], (long long)row, (double)have[i], (double)want[i]);
      break;
    }
  }
}

static void test_keys(void) {
  for (trouble what = NOTHING; what <= DEEP_SCORES; what++) {
    if (test_slow() && what != IN_K && what != LOW_SCORES) continue;
    check_sequence("f32", false, what);
    check_sequence("f16", false, what);
    check_sequence("f16", true, what);
  }
}

/* ---- products with quantised weights */

enum { K = 512, N = 48 };

static float w_numbers[N * K];

/* Weights of 34 bytes for 32 numbers, and what they are. */
static void make_q8_0(uint8_t *out) {
  uint64_t random = 11;
  for (int64_t b = 0; b < N * K / 32; b++) {
    const uint16_t d = rung_f16_from_f32(test_uniform(&random, 0.001F, 0.01F));
    memcpy(out + b * 34, &d, 2);
    for (int i = 0; i < 32; i++) {
      const int8_t level = (int8_t)(test_below(&random, 255) - 127);
      out[b * 34 + 2 + i] = (uint8_t)level;
      w_numbers[b * 32 + i] = rung_f16_to_f32(d) * (float)level;
    }
  }
}

typedef struct product {
  rung_host *host;
  rung_device *device;
  rung_graph *graph;
  rung_weights *weights;
  rung_view *view;
  rung_template *template_;
  rung_program *program;
  rung_context *context;
  rung_error error;
} product;

static bool open_product(product *p, rung_quant quant) {
  static const char text[] =
      "rung 1\nsymbol n 1..128\n%0 = input {name=\"x\"} : f32[n,512]\n%1 = weight {name=\"w\"} : q8_0[48,512]\n"
      "%2 = matmul %0, %1 {transpose_b=true} : f32[n,48]\noutput \"y\" %2\n";
  static uint8_t bytes[N * K / 32 * 34];
  rung_compile_options co = rung_compile_options_default();
  co.quant = quant;
  *p = (product){0};
  make_q8_0(bytes);
  rung_status s = rung_host_create(NULL, &p->error, &p->host);
  if (!s) s = rung_device_create(p->host, device, NULL, &p->error, &p->device);
  if (!s) s = rung_graph_parse(p->host, text, strlen(text), &p->error, &p->graph);
  if (!s) s = rung_weights_create(p->host, &p->error, &p->weights);
  if (!s) s = rung_weights_declare(p->weights, "w", RUNG_TYPE_Q8_0, 2, (int64_t[]){N, K}, &p->error);
  if (!s) s = rung_weights_set(p->weights, "w", RUNG_TYPE_Q8_0, bytes, sizeof bytes, &p->error);
  if (!s) s = rung_weights_commit(p->weights, &p->error);
  if (!s) s = rung_view_create(p->weights, &p->error, &p->view);
  if (!s) s = rung_template_create(p->device, p->graph, &co, &p->error, &p->template_);
  if (!s) s = rung_program_create(p->template_, NULL, 0, &p->error, &p->program);
  if (!s) s = rung_context_create(p->template_, p->view, NULL, NULL, &p->error, &p->context);
  if (!s) s = rung_context_use(p->context, p->program);
  test_state.checks++;
  if (s) TEST_FAIL_("%s: %s %s", device, p->error.message, rung_context_message(p->context));
  return !s;
}

static void close_product(product *p) {
  rung_context_destroy(p->context);
  rung_program_release(p->program);
  rung_template_release(p->template_);
  rung_view_release(p->view);
  rung_weights_release(p->weights);
  rung_graph_destroy(p->graph);
  rung_device_release(p->device);
  rung_host_release(p->host);
}

enum { ALL_3000, ONE_CHANNEL, WITH_NAN, WITH_INFINITY, KINDS };

/* Large activations, and one channel a thousand times the others: finite, and as near as quantising in blocks allows,
 * half a step (the largest of 32 by 254) for each. A NaN or an infinity spoils its row and no other. */
static void check_product(product *p, rung_quant quant, int kind, int64_t rows) {
  static float x[128 * K];
  uint64_t random = 21;
  void *to = NULL;
  const int64_t bad = rows / 2;
  for (int64_t i = 0; i < rows * K; i++) {
    const float s = test_uniform(&random, -3, 3);
    x[i] = kind == ALL_3000 ? 3000 : kind == ONE_CHANNEL && i % K == 77 ? 3000 * s : s;
  }
  if (kind == WITH_NAN) x[bad * K + 50] = NAN;
  if (kind == WITH_INFINITY) x[bad * K + 50] = INFINITY;
  rung_tensor y = {0};
  CHECK_OK(rung_context_input(p->context, 0, (int64_t[]){rows, K}, &to));
  if (to) memcpy(to, x, (size_t)rows * K * 4);
  CHECK_OK(rung_context_run(p->context));
  CHECK_OK(rung_context_output(p->context, 0, &y));
  for (int64_t r = 0; y.data && r < rows; r++)
    for (int64_t n = 0; n < N; n++) {
      const float have = ((const float *)y.data)[r * N + n];
      double sum = 0, room = 0, terms = 0;
      for (int64_t k = 0; k < K; k++) {
        double most = 0;
        for (int64_t i = k / 32 * 32; i < k / 32 * 32 + 32; i++) most = fmax(most, fabs((double)x[r * K + i]));
        sum += (double)x[r * K + k] * (double)w_numbers[n * K + k];
        terms += fabs((double)x[r * K + k] * (double)w_numbers[n * K + k]);
        room += 0.501 / 127 * most * fabs((double)w_numbers[n * K + k]);
      }
      /* Products of many rows round both factors to f16 besides. Where 512 terms are added one behind the other, each sum
       * is rounded by up to 2^-24 of `terms`, by a third of a square of it on the average: sqrt(512 / 3) 2^-24, and five
       * times that among the tens of thousands of results. */
      room = quant == RUNG_QUANT_FAST ? room + terms * 0x1p-10 : terms * 5 * 13.1 * 0x1p-24;
      const bool spoiled = kind >= WITH_NAN && r == bad;
      test_state.checks++;
      if (spoiled ? !isfinite(have) : fabs((double)have - sum) <= room) continue;
      TEST_FAIL_("%s on %s, kind %d, %lld rows: [%lld,%lld] is %g, not %g +- %g",
                 quant == RUNG_QUANT_FAST ? "fast" : "exact", device, kind, (long long)rows, (long long)r, (long long)n,
                 (double)have, sum, room);
      return;
    }
}

static void test_products(void) {
  static const int64_t sizes[] = {1, 2, 8, 9, 40, 64, 100};
  for (rung_quant quant = RUNG_QUANT_FAST; quant <= RUNG_QUANT_EXACT; quant++) {
    product p;
    if (open_product(&p, quant))
      for (size_t i = 0; i < RUNG_COUNT(sizes); i++)
        for (int kind = 0; kind < KINDS; kind++) check_product(&p, quant, kind, sizes[i]);
    close_product(&p);
  }
}

int main(void) {
  static const char *const devices[] = {"cpu", "cuda"};
  const bool real = fake_unless_real();
  if (!real) setenv("RUNG_CUDA_KERNELS", "0", 1);
  for (size_t d = 0; d < RUNG_COUNT(devices); d++) {
    device = devices[d];
    quick = !real && d == 1;
    RUN(test_maxima);
    RUN(test_masks);
    RUN(test_keys);
    RUN(test_products);
  }
  if (!real) fake_check("numbers");
  return TEST_END();
}
