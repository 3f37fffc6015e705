/* SPDX-License-Identifier: MIT
 * Active extents: buffers of the ceiling's size of which a run reads and writes the actual part only, whatever the graph
 * does with its rows. */
#include <math.h>

#include "cts/world.h"

typedef struct buffer {
  const char *name;
  int rank;
  int64_t extent[4];
  float *data;
} buffer;

static rung_tensor tensor_of(const buffer *b) {
  rung_tensor t = {.type = RUNG_TYPE_F32, .rank = b->rank, .data = b->data};
  for (int i = 0; i < b->rank; i++) t.extent[i] = b->extent[i];
  return t;
}

/* Binds larger buffers and runs with the symbol at `extent` (-1: cleared). */
static rung_status run_at(world *w, const char *symbol, int64_t extent, const buffer *in, int inputs,
                          const buffer *out) {
  rung_status s = rung_context_set_extent(w->context, symbol, extent);
  for (int i = 0; i < inputs && !s; i++) {
    const rung_tensor t = tensor_of(&in[i]);
    s = rung_context_bind_input_ceiling(w->context, rung_program_find_input(w->program, in[i].name), &t);
  }
  const rung_tensor t = tensor_of(out);
  if (!s) s = rung_context_bind_output_ceiling(w->context, 0, &t);
  return s ? s : rung_context_run(w->context);
}

static void fill(float *x, int n, float value) {
  for (int i = 0; i < n; i++) x[i] = value;
}

static void test_relu(void) {
  static const char text[] =
      "rung 1\nsymbol n 0..15\n%0 = input {name=\"x\"} : f32[n]\n%1 = relu %0 : f32[n]\noutput \"y\" %1\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      static _Alignas(64) float x[15], y[15];
      const buffer in = {"x", 1, {15}, x}, out = {"y", 1, {15}, y};
      fill(x, 15, 1);
      CHECK_OK(run_at(&w, "n", -1, &in, 1, &out));
      for (int i = 0; i < 15; i++) CHECK(y[i] == 1);
      fill(x, 15, -1);
      CHECK_OK(run_at(&w, "n", 5, &in, 1, &out));
      for (int i = 0; i < 15; i++) CHECK(y[i] == (i < 5 ? 0 : 1));
      CHECK_EQ_I64(world_output(&w, 0).extent[0], 5);
      CHECK(world_output(&w, 0).data == y);  /* in place */
      CHECK_OK(rung_context_run(w.context)); /* sticky */
      CHECK_EQ_I64(world_output(&w, 0).extent[0], 5);
      CHECK_STATUS(rung_context_set_extent(w.context, "n", 16), RUNG_OUT_OF_RANGE);
      CHECK_OK(run_at(&w, "n", -1, &in, 1, &out));
      for (int i = 0; i < 15; i++) CHECK(y[i] == 0);
      fill(y, 15, 3);
      CHECK_OK(run_at(&w, "n", 0, &in, 1, &out));
      for (int i = 0; i < 15; i++) CHECK(y[i] == 3);
    }
    world_close(&w);
  }
}

static void test_add(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..4\n%0 = input {name=\"a\"} : f32[n]\n%1 = input {name=\"b\"} : f32[n]\n"
      "%2 = add %0, %1 : f32[n]\noutput \"y\" %2\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      static _Alignas(64) float a[4], b[4], y[4];
      const buffer in[2] = {{"a", 1, {4}, a}, {"b", 1, {4}, b}}, out = {"y", 1, {4}, y};
      fill(a, 4, 1), fill(b, 4, 1);
      CHECK_OK(run_at(&w, "n", -1, in, 2, &out));
      for (int i = 0; i < 4; i++) CHECK(y[i] == 2);
      fill(a, 4, 10), fill(b, 4, 10);
      CHECK_OK(run_at(&w, "n", 2, in, 2, &out));
      for (int i = 0; i < 4; i++) CHECK(y[i] == (i < 2 ? 20 : 2));
      /* One buffer, and one input that says its size: they must agree, and the smaller buffer is not read past. */
      CHECK_OK(rung_context_set_extent(w.context, "n", -1));
      const rung_tensor three = {.type = RUNG_TYPE_F32, .rank = 1, .extent = {3}, .data = b};
      CHECK_OK(rung_context_bind_input(w.context, 1, &three));
      CHECK_OK(rung_context_run(w.context));
      CHECK_EQ_I64(world_output(&w, 0).extent[0], 3);
      const rung_tensor small = {.type = RUNG_TYPE_F32, .rank = 1, .extent = {2}, .data = a};
      CHECK_OK(rung_context_bind_input_ceiling(w.context, 0, &small));
      CHECK_STATUS(rung_context_run(w.context), RUNG_OUT_OF_RANGE);
      CHECK(strstr(rung_context_message(w.context), "\"a\"") && strstr(rung_context_message(w.context), "room for 2"));
      const rung_tensor room = {.type = RUNG_TYPE_F32, .rank = 1, .extent = {2}, .data = y};
      CHECK_OK(run_at(&w, "n", 3, in, 2, &out));
      CHECK_OK(rung_context_bind_output_ceiling(w.context, 0, &room));
      CHECK_STATUS(rung_context_run(w.context), RUNG_OUT_OF_RANGE);
    }
    world_close(&w);
  }
}

/* The definition, in double: 2 heads of 4, no mask. */
static void attend(const float *q, const float *k, const float *v, int rows, double *out) {
  for (int h = 0; h < 2; h++)
    for (int i = 0; i < rows; i++) {
      double score[8], sum = 0, most = -INFINITY;
      for (int j = 0; j < rows; j++) {
        score[j] = 0;
        for (int e = 0; e < 4; e++) score[j] += (double)q[i * 8 + h * 4 + e] * (double)k[j * 8 + h * 4 + e];
        score[j] /= 2;
        if (score[j] > most) most = score[j];
      }
      for (int j = 0; j < rows; j++) sum += score[j] = exp(score[j] - most);
      for (int e = 0; e < 4; e++) {
        out[i * 8 + h * 4 + e] = 0;
        for (int j = 0; j < rows; j++) out[i * 8 + h * 4 + e] += score[j] / sum * (double)v[j * 8 + h * 4 + e];
      }
    }
}

static void test_attention(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..4\n"
      "%0 = input {name=\"q\"} : f32[1,n,8]\n%1 = input {name=\"k\"} : f32[1,n,8]\n%2 = input {name=\"v\"} : "
      "f32[1,n,8]\n"
      "%3 = reshape %0 {shape=[1,n,2,4]}\n%4 = reshape %1 {shape=[1,n,2,4]}\n%5 = reshape %2 {shape=[1,n,2,4]}\n"
      "%6 = transpose %3 {permutation=[0,2,1,3]}\n%7 = transpose %4 {permutation=[0,2,1,3]}\n"
      "%8 = transpose %5 {permutation=[0,2,1,3]}\n"
      "%9 = attention %6, %7, %8\n%10 = transpose %9 {permutation=[0,2,1,3]}\n%11 = reshape %10 {shape=[1,n,8]}\n"
      "output \"y\" %11\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      static _Alignas(64) float q[32], k[32], v[32], y[32];
      uint64_t random = 17;
      for (int i = 0; i < 32; i++) {
        q[i] = test_uniform(&random, -1, 1);
        k[i] = i < 16 ? test_uniform(&random, -1, 1) : NAN;
        v[i] = i < 16 ? test_uniform(&random, -1, 1) : NAN;
        y[i] = -7;
      }
      const buffer in[3] = {{"q", 3, {1, 4, 8}, q}, {"k", 3, {1, 4, 8}, k}, {"v", 3, {1, 4, 8}, v}};
      const buffer out = {"y", 3, {1, 4, 8}, y};
      CHECK_OK(run_at(&w, "n", 2, in, 3, &out));
      double want[16];
      attend(q, k, v, 2, want);
      for (int i = 0; i < 16; i++) CHECK(fabs((double)y[i] - want[i]) < 1e-6);
      for (int i = 16; i < 32; i++) CHECK(y[i] == -7);
    }
    world_close(&w);
  }
}

/* Rows that mix: a sum over all of them, their mean, and their product with themselves. */
static void test_mixing_rows(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..64\n%0 = input {name=\"x\"} : f32[n,3]\n"
      "%1 = transpose %0 {permutation=[1,0]}\n%2 = matmul %1, %0 : f32[3,3]\n%3 = reduce_sum %0 : f32[]\n"
      "%4 = reduce_max %0 : f32[]\n%5 = mul %2, %3 : f32[3,3]\n%6 = add %5, %4 : f32[3,3]\noutput \"y\" %6\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      static _Alignas(64) float x[64 * 3], y[9];
      const buffer in = {"x", 2, {64, 3}, x}, out = {"y", 2, {3, 3}, y};
      for (int n = 1; n <= 64; n += n < 20 ? 1 : 11) {
        double product[9] = {0}, sum = 0, most = -INFINITY;
        for (int i = 0; i < 64 * 3; i++) x[i] = i < 3 * n ? (float)(i % 7) - 3 : NAN;
        for (int r = 0; r < n; r++)
          for (int i = 0; i < 3; i++) {
            sum += (double)x[r * 3 + i];
            most = fmax(most, (double)x[r * 3 + i]);
            for (int j = 0; j < 3; j++) product[i * 3 + j] += (double)x[r * 3 + i] * (double)x[r * 3 + j];
          }
        CHECK_OK(run_at(&w, "n", n, &in, 1, &out));
        for (int i = 0; i < 9; i++) CHECK((double)y[i] == product[i] * sum + most); /* small integers: exact */
      }
    }
    world_close(&w);
  }
}

/* An open axis inside others: rows are gathered and spread, the rest of the buffers is left alone. */
static void test_inner_axes(void) {
  static const char text[] =
      "rung 1\nsymbol a 1..3\nsymbol b 0..5\nsymbol c 1..4\n%0 = input {name=\"x\"} : f32[a,b,c]\n"
      "%1 = neg %0 : f32[a,b,c]\noutput \"y\" %1\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      static _Alignas(64) float x[64], y[64];
      for (int a = 1; a <= 3; a++)
        for (int b = 0; b <= 5; b++)
          for (int c = 1; c <= 4; c++) {
            for (int i = 0; i < 60; i++) x[i] = (float)i + 1, y[i] = -99;
            const buffer in = {"x", 3, {3, 5, 4}, x}, out = {"y", 3, {3, 5, 4}, y};
            CHECK_OK(rung_context_set_extent(w.context, "a", a));
            CHECK_OK(rung_context_set_extent(w.context, "c", c));
            CHECK_OK(run_at(&w, "b", b, &in, 1, &out));
            for (int i = 0; i < 60; i++) {
              const bool inside = i / 20 < a && i / 4 % 5 < b && i % 4 < c;
              CHECK(y[i] == (inside ? -x[i] : -99));
            }
            const rung_tensor t = world_output(&w, 0);
            CHECK(t.extent[0] == a && t.extent[1] == b && t.extent[2] == c);
            if (t.data == y && (b < 5 || c < 4) && a > 1 && b > 1) CHECK(t.stride[0] == 20);
          }
      /* Buffers with strides and odd addresses, beside an output of the context's own. */
      static _Alignas(64) float wide[3 * 40];
      for (int i = 0; i < 120; i++) wide[i] = (float)i;
      rung_tensor odd = {.type = RUNG_TYPE_F32, .rank = 3, .extent = {3, 5, 4}, .stride = {40, 8, 2}, .data = wide + 1};
      CHECK_OK(rung_context_bind_input_ceiling(w.context, 0, &odd));
      CHECK_OK(rung_context_bind_output(w.context, 0, NULL));
      CHECK_OK(rung_context_set_extent(w.context, "a", 2));
      CHECK_OK(rung_context_set_extent(w.context, "b", 3));
      CHECK_OK(rung_context_set_extent(w.context, "c", 2));
      if (world_run(&w)) {
        const float want[12] = {-1, -3, -9, -11, -17, -19, -41, -43, -49, -51, -57, -59};
        WORLD_CHECK_F32(&w, 0, 12, want);
      }
    }
    world_close(&w);
  }
}

/* An output whose extent is found during the run fits its buffer or is refused; nothing is written past it. */
static void test_found_extent(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..64\nsymbol found <= n made\n%0 = input {name=\"x\"} : f32[n]\n"
      "%1 = count_nonzero %0 : i64[]\n%2 = bind_symbol %1 {symbol=\"found\", bound=n} : i64[]\n"
      "%3 = nonzero %0 {count=found} : i64[1,found]\noutput \"at\" %3\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      static _Alignas(64) int64_t at[8];
      const rung_tensor room = {.type = RUNG_TYPE_I64, .rank = 2, .extent = {1, 5}, .data = at};
      for (int found = 0; found < 8; found++) {
        float x[64] = {0};
        for (int i = 0; i < found; i++) x[5 * i] = 1;
        for (int i = 0; i < 8; i++) at[i] = -7;
        CHECK(world_put(&w, 0, (const int64_t[]){64}, x, sizeof x));
        CHECK_OK(rung_context_bind_output_ceiling(w.context, 0, &room));
        CHECK_STATUS(rung_context_run(w.context), found <= 5 ? RUNG_OK : RUNG_OUT_OF_RANGE);
        for (int i = 0; i < 8; i++) CHECK_EQ_I64(at[i], found <= 5 && i < found ? 5 * i : -7);
      }
    }
    world_close(&w);
  }
}

/* Ordinary and larger buffers in turn: no run sees what another bound, and none calls the allocator. */
static void test_in_turn(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..32\nsymbol m 1..4\n%0 = input {name=\"x\"} : f32[m,n]\n%1 = neg %0 : f32[m,n]\n"
      "output \"y\" %1\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d], .commit_all = true})) {
      static _Alignas(64) float x[128], y[128];
      uint64_t random = 3, calls = 0;
      for (int i = 0; i < 400; i++) {
        const int64_t m = 1 + test_below(&random, 4), n = 1 + test_below(&random, 32);
        const bool roomy_in = test_below(&random, 2), roomy_out = test_below(&random, 2);
        for (int k = 0; k < 128; k++) x[k] = (float)(k + i), y[k] = 5;
        const rung_tensor full = {.type = RUNG_TYPE_F32, .rank = 2, .extent = {4, 32}, .data = x};
        const rung_tensor fit = {.type = RUNG_TYPE_F32, .rank = 2, .extent = {m, n}, .data = x};
        rung_tensor out = roomy_out ? full : fit;
        out.data = y;
        CHECK_OK(rung_context_set_extent(w.context, "m", m));
        CHECK_OK(rung_context_set_extent(w.context, "n", n));
        CHECK_OK(roomy_in ? rung_context_bind_input_ceiling(w.context, 0, &full)
                          : rung_context_bind_input(w.context, 0, &fit));
        CHECK_OK(roomy_out ? rung_context_bind_output_ceiling(w.context, 0, &out)
                           : rung_context_bind_output(w.context, 0, &out));
        if (!world_run(&w)) continue;
        for (int64_t r = 0; r < m; r++)
          for (int64_t c = 0; c < n; c++) CHECK(y[r * (roomy_out ? 32 : n) + c] == -x[r * (roomy_in ? 32 : n) + c]);
        if (i < 20) calls = rung_host_allocations(w.host) + rung_host_commits(w.host);
      }
      CHECK_EQ_I64(rung_host_allocations(w.host) + rung_host_commits(w.host), calls);
    }
    world_close(&w);
  }
}

int main(void) {
  RUN(test_relu);
  RUN(test_add);
  RUN(test_attention);
  RUN(test_mixing_rows);
  RUN(test_inner_axes);
  RUN(test_found_extent);
  RUN(test_in_turn);
  return TEST_END();
}
