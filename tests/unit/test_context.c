/* SPDX-License-Identifier: MIT
 * What one caller runs with: inputs and outputs of any memory, remembered bindings, sizes found at run time, refusals,
 * cancelling; a failed run leaves everything as it was. */
#include "cts/world.h"

static const char sum_text[] =
    "rung 1\nsymbol n 0..100\nsymbol m 1..4\n"
    "%0 = input {name=\"a\"} : f32[n,m]\n"
    "%1 = input {name=\"b\"} : f32[n,m]\n"
    "%2 = add %0, %1 : f32[n,m]\n"
    "%3 = mul %2, %2 : f32[n,m]\n"
    "output \"sum\" %2\n"
    "output \"square\" %3\n";

static void check_sum(world *w, int64_t n, int64_t m) {
  float want[400];
  for (int64_t i = 0; i < n * m; i++) want[i] = 3 * (float)i;
  WORLD_CHECK_F32(w, 0, n * m, want);
  for (int64_t i = 0; i < n * m; i++) want[i] *= want[i];
  WORLD_CHECK_F32(w, 1, n * m, want);
}

static float ramp[2][512];
static void fill_ramps(void) {
  for (int i = 0; i < 512; i++) ramp[0][i] = (float)i, ramp[1][i] = 2 * (float)i;
}
static bool bind_ramps(world *w, int64_t n, int64_t m) {
  for (int s = 0; s < 2; s++)
    if (!world_put(w, s, (int64_t[]){n, m}, ramp[s], (size_t)(n * m) * 4)) return false;
  return true;
}

/* The caller's memory: dense and aligned in place, anything else copied, all with one result. */
static void test_memory_of_the_caller(void) {
  fill_ramps();
  static _Alignas(64) float dense[64], strided[512], backwards[64];
  static _Alignas(64) uint8_t odd[64 * 4 + 1];
  for (int i = 0; i < 12; i++) {
    dense[i] = (float)i;
    strided[i / 3 * 40 + i % 3 * 2] = (float)i;
    backwards[11 - i] = (float)i;
    memcpy(odd + 1 + 4 * i, &dense[i], 4);
  }
  const rung_tensor kinds[] = {
      {.type = RUNG_TYPE_F32, .rank = 2, .extent = {4, 3}, .data = dense},
      {.type = RUNG_TYPE_F32, .rank = 2, .extent = {4, 3}, .stride = {3, 1}, .data = dense},
      {.type = RUNG_TYPE_F32, .rank = 2, .extent = {4, 3}, .stride = {40, 2}, .data = strided},
      {.type = RUNG_TYPE_F32, .rank = 2, .extent = {4, 3}, .stride = {-3, -1}, .data = backwards + 11},
      {.type = RUNG_TYPE_F32, .rank = 2, .extent = {4, 3}, .data = odd + 1},
  };
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, sum_text, &(world_options){.device = world_devices[d]})) {
      for (int round = 0; round < 2; round++) {
        for (size_t k = 0; k < RUNG_COUNT(kinds); k++) {
          CHECK_OK(rung_context_bind_input(w.context, 0, &kinds[k]));
          if (world_put(&w, 1, (int64_t[]){4, 3}, ramp[1], 48) && world_run(&w)) check_sum(&w, 4, 3);
        }
        if (bind_ramps(&w, 4, 3) && world_run(&w)) check_sum(&w, 4, 3); /* and the context's own again */
      }
    }
    world_close(&w);
  }
}

/* Outputs go to the caller's memory and come back to the context's, at bindings that were there before. */
static void test_outputs_of_the_caller(void) {
  fill_ramps();
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, sum_text, &(world_options){.device = world_devices[d]})) {
      static _Alignas(64) float mine[2][64];
      const rung_tensor room[2] = {{.type = RUNG_TYPE_F32, .rank = 2, .extent = {16, 4}, .data = mine[0]},
                                   {.type = RUNG_TYPE_F32, .rank = 2, .extent = {16, 4}, .data = mine[1]}};
      for (int round = 0; round < 3; round++) {
        for (int s = 0; s < 2; s++) CHECK_OK(rung_context_bind_output(w.context, s, &room[s]));
        for (int64_t n = 16; n > 0; n -= 5) {
          if (!bind_ramps(&w, n, 4) || !world_run(&w)) continue;
          check_sum(&w, n, 4);
          CHECK(world_output(&w, 0).data == mine[0] && world_output(&w, 1).data == mine[1]);
        }
        CHECK(bind_ramps(&w, 17, 4));
        CHECK_STATUS(rung_context_run(w.context), RUNG_OUT_OF_RANGE);
        CHECK(strstr(rung_context_message(w.context), "output \"sum\"") != NULL);
        for (int s = 0; s < 2; s++) CHECK_OK(rung_context_bind_output(w.context, s, NULL));
        for (int64_t n = 16; n > 0; n -= 5) {
          if (!bind_ramps(&w, n, 4) || !world_run(&w)) continue;
          check_sum(&w, n, 4);
          CHECK(world_output(&w, 0).data != mine[0]);
        }
      }
    }
    world_close(&w);
  }
}

/* An output whose extent is found during the run is held to what the caller bound, never written past it. */
static void test_found_output_of_the_caller(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..64\nsymbol found <= n made\n"
      "%0 = input {name=\"x\"} : f32[n]\n"
      "%1 = count_nonzero %0 : i64[]\n"
      "%2 = bind_symbol %1 {symbol=\"found\", bound=n} : i64[]\n"
      "%3 = nonzero %0 {count=found} : i64[1,found]\n"
      "output \"at\" %3\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      static _Alignas(64) int64_t mine[65];
      const rung_tensor room = {.type = RUNG_TYPE_I64, .rank = 2, .extent = {1, 5}, .data = mine};
      CHECK_OK(rung_context_bind_output(w.context, 0, &room));
      for (int64_t found = 0; found <= 8; found++) {
        float x[64] = {0};
        for (int64_t i = 0; i < found; i++) x[3 * i] = 1;
        for (int i = 0; i < 65; i++) mine[i] = -7;
        if (!world_put(&w, 0, (int64_t[]){64}, x, sizeof x)) continue;
        CHECK_STATUS(rung_context_run(w.context), found <= 5 ? RUNG_OK : RUNG_OUT_OF_RANGE);
        for (int64_t i = 0; found <= 5 && i < found; i++) CHECK_EQ_I64(mine[i], 3 * i);
        for (int64_t i = 5; i < 65; i++) CHECK_EQ_I64(mine[i], -7);
        if (found > 5) CHECK(strstr(rung_context_message(w.context), "output \"at\"") != NULL);
      }
    }
    world_close(&w);
  }
}

/* More bindings than are remembered, in an order that evicts, each time the right numbers and no call of the allocator.
 */
static void test_remembered_bindings(void) {
  fill_ramps();
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, sum_text, &(world_options){.device = world_devices[d]})) {
      uint64_t random = 3;
      if (bind_ramps(&w, 100, 4)) CHECK(world_run(&w));
      const uint64_t calls = rung_host_allocations(w.host) + rung_host_commits(w.host);
      for (int i = 0; i < 400; i++) {
        const int64_t n = test_below(&random, i % 2 ? 3 : 101), m = 1 + test_below(&random, 4);
        if (bind_ramps(&w, n, m) && world_run(&w)) check_sum(&w, n, m);
      }
      CHECK_EQ_I64(rung_host_allocations(w.host) + rung_host_commits(w.host), calls);
    }
    world_close(&w);
  }
}

static void test_refusals(void) {
  fill_ramps();
  world w;
  if (world_open(&w, sum_text, &(world_options){0})) {
    static _Alignas(64) float data[16];
    rung_tensor t;
    void *p;
    CHECK_STATUS(rung_context_output(w.context, 0, &t), RUNG_INVALID_ARGUMENT); /* nothing has run */
    CHECK_STATUS(rung_context_run(w.context), RUNG_INVALID_ARGUMENT);
    CHECK(strstr(rung_context_message(w.context), "input \"a\"") != NULL);
    CHECK_STATUS(rung_context_input(w.context, 2, (int64_t[]){1, 1}, &p), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_context_input(w.context, -1, (int64_t[]){1, 1}, &p), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_context_input(w.context, 0, (int64_t[]){-1, 1}, &p), RUNG_SHAPE_MISMATCH);
    CHECK_STATUS(rung_context_input(w.context, 0, (int64_t[]){INT64_MAX, INT64_MAX}, &p), RUNG_OUT_OF_RANGE);
    t = (rung_tensor){.type = RUNG_TYPE_F16, .rank = 2, .extent = {1, 1}, .data = data};
    CHECK_STATUS(rung_context_bind_input(w.context, 0, &t), RUNG_TYPE_MISMATCH);
    t = (rung_tensor){.type = RUNG_TYPE_F32, .rank = 1, .extent = {1}, .data = data};
    CHECK_STATUS(rung_context_bind_input(w.context, 0, &t), RUNG_SHAPE_MISMATCH);
    t = (rung_tensor){.type = RUNG_TYPE_F32, .rank = 2, .extent = {1, 1}};
    CHECK_STATUS(rung_context_bind_input(w.context, 0, &t), RUNG_INVALID_ARGUMENT);
    t = (rung_tensor){.type = RUNG_TYPE_F32, .rank = 2, .extent = {2, 2}, .stride = {1, 2}, .data = data};
    CHECK_STATUS(rung_context_bind_output(w.context, 0, &t), RUNG_INVALID_ARGUMENT);
    t = (rung_tensor){.type = RUNG_TYPE_F32, .rank = 2, .extent = {101, 1}, .data = ramp[0]};
    CHECK_OK(rung_context_bind_input(w.context, 0, &t)); /* its extents are looked at with those of the others */
    CHECK(world_put(&w, 1, (int64_t[]){100, 1}, ramp[1], 400));
    CHECK(rung_context_run(w.context) != RUNG_OK);
    CHECK(strstr(rung_context_message(w.context), "symbol n") != NULL);
    if (bind_ramps(&w, 3, 2) && world_run(&w)) check_sum(&w, 3, 2);
    CHECK(world_put(&w, 1, (int64_t[]){3, 3}, ramp[1], 36));
    CHECK_STATUS(rung_context_run(w.context), RUNG_SHAPE_MISMATCH);
    CHECK_OK(rung_context_set_extent(w.context, "n", 4));
    CHECK(bind_ramps(&w, 3, 2));
    CHECK_STATUS(rung_context_run(w.context), RUNG_SHAPE_MISMATCH); /* sticky until cleared */
    CHECK_OK(rung_context_set_extent(w.context, "n", -1));
    if (world_run(&w)) check_sum(&w, 3, 2);
  }
  world_close(&w);
}

/* Extents that several inputs fix together: batch*seq in one, each alone in others; a wrong one names input and axis.
 */
static void test_solved_symbols(void) {
  static const char text[] =
      "rung 1\nsymbol batch 1..9\nsymbol seq 1..9\n"
      "%0 = input {name=\"x\"} : f32[batch*seq+1]\n"
      "%1 = input {name=\"y\"} : f32[2*seq]\n"
      "%2 = reduce_sum %0 : f32[]\n%3 = reduce_sum %1 : f32[]\n%4 = add %2, %3 : f32[]\n"
      "%5 = iota {shape=[batch,seq]} : i64[batch,seq]\n"
      "output \"y\" %4\noutput \"i\" %5\n";
  world w;
  if (world_open(&w, text, &(world_options){0})) {
    for (int64_t b = 1; b < 9; b += 3) {
      for (int64_t s = 1; s < 9; s += 2) {
        if (!world_put_ramp(&w, 0, b * s + 1, 1) || !world_put_ramp(&w, 1, 2 * s, 0) || !world_run(&w)) continue;
        const rung_tensor i = world_output(&w, 1);
        CHECK(i.extent[0] == b && i.extent[1] == s);
      }
    }
    CHECK(world_put_ramp(&w, 0, 8, 1) && world_put_ramp(&w, 1, 4, 0)); /* 7 is no multiple of 2 */
    CHECK_STATUS(rung_context_run(w.context), RUNG_SHAPE_MISMATCH);
    CHECK(strstr(rung_context_message(w.context), "input \"x\"") != NULL);
    CHECK(world_put_ramp(&w, 0, 7, 1) && world_put_ramp(&w, 1, 5, 0));
    CHECK_STATUS(rung_context_run(w.context), RUNG_SHAPE_MISMATCH);
    CHECK(strstr(rung_context_message(w.context), "input \"y\"") != NULL);
    CHECK(world_put_ramp(&w, 0, 7, 1) && world_put_ramp(&w, 1, 4, 0) && world_run(&w));
  }
  world_close(&w);
}

/* ---- cancelling */

static void cancel_here(void *self, const rung_step_info *info) {
  (void)info;
  rung_context_cancel((rung_context *)self);
}

/* A run that is cancelled within its first step ends with that; the next gives what it would have given. Random numbers
 * go back to where they were. */
static void test_cancelled_run_begins_again(void) {
  static const char text[] =
      "rung 1\nsymbol times <= 9 made\n"
      "%0 = input {name=\"trip\"} : i64[]\n"
      "%1 = random_uniform {shape=[4]} : f32[4]\n"
      "%2 = constant {data=bool(1)} : bool[]\n"
      "%3 = loop %0, %2 {symbol=\"times\", trip=9} {\n"
      "  %0 = input {name=\"i\"} : i64[]\n  %1 = input {name=\"go\"} : bool[]\n"
      "  %2 = random_uniform {shape=[4]} : f32[4]\n"
      "  output \"go\" %1\n  output \"r\" %2\n"
      "} : f32[times,4]\n"
      "output \"a\" %1\noutput \"b\" %3\n";
  for (int d = 0; d < 2; d++) {
    world w[2];
    const world_options o = {.device = world_devices[d], .seed = 99};
    const bool open = world_open(&w[0], text, &o);
    if (world_open(&w[1], text, &o) && open) {
      for (int run = 0; run < 3; run++) {
        for (int i = 0; i < 2; i++) CHECK(world_put_i64(&w[i], 0, 9));
        rung_context_on_step(w[0].context, cancel_here, w[0].context);
        CHECK_STATUS(rung_context_run(w[0].context), RUNG_CANCELLED);
        rung_context_on_step(w[0].context, NULL, NULL);
        if (!world_run(&w[0]) || !world_run(&w[1])) continue;
        for (int s = 0; s < 2; s++) {
          const rung_tensor a = world_output(&w[0], s), b = world_output(&w[1], s);
          CHECK_EQ_I64(world_count(&a), s ? 36 : 4);
          CHECK(memcmp(a.data, b.data, (size_t)world_count(&b) * 4) == 0);
        }
      }
    }
    world_close(&w[1]);
    world_close(&w[0]);
  }
}

int main(void) {
  RUN(test_refusals);
  RUN(test_solved_symbols);
  RUN(test_memory_of_the_caller);
  RUN(test_outputs_of_the_caller);
  RUN(test_found_output_of_the_caller);
  RUN(test_cancelled_run_begins_again);
  RUN(test_remembered_bindings);
  return TEST_END();
}
