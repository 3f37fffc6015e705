/* SPDX-License-Identifier: MIT
 * What the planner makes of a graph: views without steps, copies where a kernel wants dense rows, results in their
 * operand's memory, outputs that are inputs, views or constants. */
#include "cts/world.h"

static const rung_plan *plan_of(const world *w) { return w->program->plan; }

static uint32_t kernels_named(const world *w, const char *op) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < plan_of(w)->steps; i++)
    n += plan_of(w)->step[i].kind == RUNG_STEP_KERNEL && strcmp(plan_of(w)->step[i].op->name, op) == 0;
  return n;
}

/* A reduction reads its operand through any strides on ref: no view on the way may cost a step. */
static void test_views_are_references(void) {
  static const char text[] =
      "rung 1\nsymbol n 0..8\n"
      "%0 = input {name=\"x\"} : f32[n,6]\n"
      "%1 = transpose %0 {permutation=[1,0]} : f32[6,n]\n"
      "%2 = slice %1 {start=[1,0], length=[4,n], step=[1,1]} : f32[4,n]\n"
      "%3 = slice %2 {start=[3,0], length=[2,n], step=[-2,1]} : f32[2,n]\n"
      "%4 = reduce_sum %3 {axes=[0]} : f32[n]\n"
      "output \"y\" %4\n";
  world w;
  if (world_open(&w, text, &(world_options){.plain = true})) {
    CHECK_EQ_I64(plan_of(&w)->steps, 1);
    CHECK_EQ_I64(kernels_named(&w, "cast"), 0);
    for (int64_t n = 0; n <= 8; n += 4) {
      float x[48], want[8];
      for (int i = 0; i < 48; i++) x[i] = (float)(i * i);
      for (int64_t i = 0; i < n; i++) want[i] = x[6 * i + 4] + x[6 * i + 2];
      if (world_put(&w, 0, (int64_t[]){n, 6}, x, (size_t)n * 24) && world_run(&w)) WORLD_CHECK_F32(&w, 0, n, want);
    }
  }
  world_close(&w);
}

/* Splitting an axis of a transposed matrix is a view; joining its axes is not. Both give right numbers. */
static void test_reshape_of_strided(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..5\n"
      "%0 = input {name=\"x\"} : f32[n,6]\n"
      "%1 = transpose %0 {permutation=[1,0]} : f32[6,n]\n"
      "%2 = reshape %1 {shape=[2,3,n]} : f32[2,3,n]\n"
      "%3 = neg %2 : f32[2,3,n]\n"
      "%4 = reshape %1 {shape=[6*n]} : f32[6*n]\n"
      "%5 = neg %4 : f32[6*n]\n"
      "output \"split\" %3\n"
      "output \"flat\" %5\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      for (int64_t n = 1; n <= 5; n++) {
        float x[30], want[30];
        for (int64_t i = 0; i < 6 * n; i++) x[i] = (float)i;
        for (int64_t i = 0; i < 6 * n; i++) want[i] = -x[i % n * 6 + i / n];
        if (!world_put(&w, 0, (int64_t[]){n, 6}, x, (size_t)n * 24) || !world_run(&w)) continue;
        WORLD_CHECK_F32(&w, 0, 6 * n, want);
        WORLD_CHECK_F32(&w, 1, 6 * n, want);
      }
    }
    world_close(&w);
  }
}

/* A kernel that wants rows gets a dense copy of a transposed operand, and every other operand as it is. */
static void test_copies_where_rows_are_wanted(void) {
  static const char text[] =
      "rung 1\nsymbol m 0..70\nsymbol k 0..70\n"
      "%0 = input {name=\"a\"} : f32[k,m]\n"
      "%1 = input {name=\"b\"} : f32[k,5]\n"
      "%2 = transpose %0 {permutation=[1,0]} : f32[m,k]\n"
      "%3 = matmul %2, %1 : f32[m,5]\n"
      "output \"y\" %3\n";
  static const int64_t sizes[][2] = {{3, 4}, {1, 1}, {70, 70}, {0, 3}, {3, 0}, {1, 64}, {65, 2}};
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      for (size_t i = 0; i < RUNG_COUNT(sizes); i++) {
        const int64_t m = sizes[i][0], k = sizes[i][1];
        static float a[70 * 70], b[70 * 5], want[70 * 5];
        for (int64_t e = 0; e < k * m; e++) a[e] = (float)(e % 7 - 3);
        for (int64_t e = 0; e < k * 5; e++) b[e] = (float)(e % 5 - 2);
        for (int64_t r = 0; r < m; r++) {
          for (int64_t c = 0; c < 5; c++) {
            want[r * 5 + c] = 0;
            for (int64_t e = 0; e < k; e++) want[r * 5 + c] += a[e * m + r] * b[e * 5 + c];
          }
        }
        if (!world_put(&w, 0, (int64_t[]){k, m}, a, (size_t)(k * m) * 4) ||
            !world_put(&w, 1, (int64_t[]){k, 5}, b, (size_t)k * 20))
          continue;
        if (world_run(&w)) WORLD_CHECK_F32(&w, 0, m * 5, want);
      }
    }
    world_close(&w);
  }
}

/* A chain of elementwise steps whose kernels allow it runs in one buffer; an operand that is still needed is kept. */
static void test_in_place(void) {
  static const char text[] =
      "rung 1\nsymbol n 0..2000\n"
      "%0 = input {name=\"x\"} : f32[n]\n"
      "%1 = neg %0 : f32[n]\n"
      "%2 = exp %1 : f32[n]\n"
      "%3 = sqrt %2 : f32[n]\n"
      "%4 = add %3, %1 : f32[n]\n"
      "%5 = neg %4 : f32[n]\n"
      "output \"y\" %5\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d], .plain = true})) {
      float want[9];
      for (int i = 0; i < 9; i++) want[i] = 0;
      if (world_put(&w, 0, (int64_t[]){9}, want, sizeof want) && world_run(&w)) {
        for (int i = 0; i < 9; i++) want[i] = -1;
        WORLD_CHECK_F32(&w, 0, 9, want);
      }
      bool all = true; /* every kernel of the chain may work in place: then two places and the output are enough */
      for (uint32_t i = 0; i < plan_of(&w)->variants; i++) all &= plan_of(&w)->variant[i].kernel->in_place;
      if (all) CHECK(plan_of(&w)->arena_bytes <= 4 * 8064);
    }
    world_close(&w);
  }
}

static void test_outputs_of_every_kind(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..9\n"
      "%0 = input {name=\"x\"} : f32[n,2]\n"
      "%1 = constant {data=f32(3,4)} : f32[2]\n"
      "%2 = transpose %0 {permutation=[1,0]} : f32[2,n]\n"
      "%3 = add %0, %1 : f32[n,2]\n"
      "%4 = transpose %3 {permutation=[1,0]} : f32[2,n]\n"
      "output \"input\" %0\n"
      "output \"constant\" %1\n"
      "output \"view of input\" %2\n"
      "output \"sum\" %3\n"
      "output \"view of sum\" %4\n"
      "output \"sum again\" %3\n"
      "output \"input again\" %0\n";
  for (int d = 0; d < 4; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d % 2], .plain = d >= 2})) {
      for (int64_t n = 1; n <= 9; n += 4) {
        float x[18], turned[18], sum[18], sum_turned[18];
        for (int64_t i = 0; i < 2 * n; i++) x[i] = (float)i, sum[i] = x[i] + (float)(3 + i % 2);
        for (int64_t i = 0; i < 2 * n; i++) turned[i] = x[i % n * 2 + i / n], sum_turned[i] = sum[i % n * 2 + i / n];
        if (!world_put(&w, 0, (int64_t[]){n, 2}, x, (size_t)n * 8) || !world_run(&w)) continue;
        WORLD_CHECK_F32(&w, 0, 2 * n, x);
        WORLD_CHECK_F32(&w, 1, 2, ((float[]){3, 4}));
        WORLD_CHECK_F32(&w, 2, 2 * n, turned);
        WORLD_CHECK_F32(&w, 3, 2 * n, sum);
        WORLD_CHECK_F32(&w, 4, 2 * n, sum_turned);
        WORLD_CHECK_F32(&w, 5, 2 * n, sum);
        WORLD_CHECK_F32(&w, 6, 2 * n, x);
        const rung_tensor a = world_output(&w, 3), b = world_output(&w, 5);
        CHECK(a.data != b.data); /* each output has memory of its own */
      }
    }
    world_close(&w);
  }
}

/* Results of one grouped product are column ranges of one buffer; readers of a part see only that part. */
static void test_columns(void) {
  static const char text[] =
      "rung 1\nsymbol n 0..20\n"
      "%0 = input {name=\"x\"} : f32[n,4]\n"
      "%1 = input {name=\"w\"} : f32[6,4]\n"
      "%2, %3, %4 = grouped_matmul %0, %1 {sizes=[2,1,3]} : f32[n,2], f32[n,1], f32[n,3]\n"
      "%5 = neg %3 : f32[n,1]\n"
      "%6 = reduce_sum %4 {axes=[1]} : f32[n]\n"
      "%7 = reshape %2 {shape=[2*n]} : f32[2*n]\n"
      "output \"first\" %7\n"
      "output \"second\" %5\n"
      "output \"third\" %6\n"
      "output \"raw\" %4\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      static const int64_t sizes[] = {3, 1, 20, 0};
      for (int s = 0; s < 4; s++) {
        const int64_t n = sizes[s];
        float x[80], m[24], y[120], first[40], second[20], third[20], raw[60];
        for (int64_t i = 0; i < 4 * n; i++) x[i] = (float)(i % 9 - 4);
        for (int i = 0; i < 24; i++) m[i] = (float)(i % 5 - 2);
        for (int64_t r = 0; r < n; r++) {
          for (int c = 0; c < 6; c++) {
            y[r * 6 + c] = 0;
            for (int k = 0; k < 4; k++) y[r * 6 + c] += x[r * 4 + k] * m[c * 4 + k];
          }
          first[2 * r] = y[r * 6], first[2 * r + 1] = y[r * 6 + 1];
          second[r] = -y[r * 6 + 2];
          third[r] = y[r * 6 + 3] + y[r * 6 + 4] + y[r * 6 + 5];
          for (int c = 0; c < 3; c++) raw[3 * r + c] = y[r * 6 + 3 + c];
        }
        if (!world_put(&w, 0, (int64_t[]){n, 4}, x, (size_t)n * 16) ||
            !world_put(&w, 1, (int64_t[]){6, 4}, m, sizeof m) || !world_run(&w))
          continue;
        WORLD_CHECK_F32(&w, 0, 2 * n, first);
        WORLD_CHECK_F32(&w, 1, n, second);
        WORLD_CHECK_F32(&w, 2, n, third);
        WORLD_CHECK_F32(&w, 3, 3 * n, raw);
      }
    }
    world_close(&w);
  }
}

/* A view of a state is read after the state's next version was written: it still shows the version it was made of. */
static void test_view_of_a_state_outlives_its_version(void) {
  static const char text[] =
      "rung 1\n"
      "%0 = input {name=\"x\"} : f32[2,3]\n"
      "%s1 = state {name=\"s\"} : state f32[2,3]\n"
      "%2 = transpose %s1 {permutation=[1,0]} : f32[3,2]\n"
      "%s3 = assign %s1, %0 : state f32[2,3]\n"
      "%4 = neg %2 : f32[3,2]\n"
      "output \"y\" %4\n";
  for (int d = 0; d < 2; d++) {
    world w;
    const rung_state_options so = rung_state_options_default();
    if (world_open(&w, text, &(world_options){.device = world_devices[d], .state = &so})) {
      const float x[6] = {1, 2, 3, 4, 5, 6};
      for (int run = 0; run < 2; run++) {
        if (!world_put(&w, 0, (int64_t[]){2, 3}, x, sizeof x) || !world_run(&w)) continue;
        const float want[6] = {-1, -4, -2, -5, -3, -6}, zero[6] = {0};
        WORLD_CHECK_F32(&w, 0, 6, run ? want : zero);
      }
    }
    world_close(&w);
  }
}

int main(void) {
  RUN(test_views_are_references);
  RUN(test_reshape_of_strided);
  RUN(test_copies_where_rows_are_wanted);
  RUN(test_in_place);
  RUN(test_outputs_of_every_kind);
  RUN(test_columns);
  RUN(test_view_of_a_state_outlives_its_version);
  return TEST_END();
}
