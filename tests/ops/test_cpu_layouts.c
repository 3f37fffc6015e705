/* SPDX-License-Identifier: MIT
 * Packed layouts of the CPU backend: packing can be undone byte for byte, rows read from a form are the type's own
 * floats, and quantising gives the bytes of the definition at every level. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <math.h>
#include <stdlib.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/layouts.h"
#include "ops/op_table.h"
#include "test.h"

static rung_host *host;
static uint64_t seed = 7;

/* Any bytes: NaN scales and all. */
static void check_layout(const rung_layout *layout, int64_t n, int64_t k) {
  const uint64_t bytes = rung_type_bytes(layout->source, (uint64_t)k);
  uint8_t *source = malloc(bytes * (uint64_t)n + 1), *back = malloc(bytes * (uint64_t)n + 1);
  uint8_t *form = malloc(rung_layout_bytes(layout, n, k) + 1);
  for (uint64_t i = 0; i < bytes * (uint64_t)n; i++) source[i] = (uint8_t)test_random(&seed);
  memset(form, 0x5a, rung_layout_bytes(layout, n, k));
  memset(back, 0xa5, bytes * (uint64_t)n);
  for (int64_t first = 0; first < n; first += layout->panel) {
    const uint8_t *row[RUNG_PANEL];
    uint8_t *out[RUNG_PANEL];
    int64_t rows = 0;
    for (; rows < layout->panel && first + rows < n; rows++) {
      row[rows] = source + (uint64_t)(first + rows) * bytes;
      out[rows] = back + (uint64_t)(first + rows) * bytes;
    }
    uint8_t *panel = form + (uint64_t)(first / layout->panel) * layout->panel_bytes(k);
    layout->pack(row, rows, k, panel);
    layout->unpack(panel, rows, k, out);
  }
  test_state.checks++;
  if (memcmp(source, back, bytes * (uint64_t)n) != 0)
    TEST_FAIL_("%s [%d, %d]: not what was packed", layout->name, (int)n, (int)k);
  float *want = malloc((size_t)(k + 1) * sizeof *want), *have = malloc((size_t)(k + 1) * sizeof *have);
  bool equal = true;
  for (int64_t r = 0; r < n; r++) {
    rung_type_get(layout->source)->to_f32(source + (uint64_t)r * bytes, want, (size_t)k);
    layout->row(form, r, k, have);
    for (int64_t i = 0; i < k; i++) equal = equal && (have[i] == want[i] || (isnan(have[i]) && isnan(want[i])));
  }
  test_state.checks++;
  if (!equal) TEST_FAIL_("%s [%d, %d]: a row read from the form is another", layout->name, (int)n, (int)k);
  free(source), free(back), free(form), free(want), free(have);
}

static void test_layouts(void) {
  void *self;
  CHECK_OK(rung_backend_cpu.open(host, NULL, &self));
  const rung_target *target = rung_backend_cpu.target(self);
  CHECK(target->layouts >= 11);
  for (size_t i = 0; i < target->layouts; i++) {
    const rung_layout *layout = &target->layout[i];
    CHECK(layout->id != 0);
    CHECK(rung_target_layout(target, layout->id) == layout);
    CHECK(target->layout_of(layout->source) == layout);
    /* A packed form takes no more than the source, but for the last panel's missing rows and bf16's odd last k. */
    CHECK_EQ_I64(rung_layout_bytes(layout, 64, 512), rung_type_bytes(layout->source, 512) * 64);
    const int64_t block = rung_type_get(layout->source)->block;
    for (int64_t n = 1; n <= 50; n += 7) check_layout(layout, n, block * (1 + test_below(&seed, block > 1 ? 5 : 90)));
    check_layout(layout, 3, block * 40);
  }
  CHECK(rung_target_layout(target, 0) == NULL);
  CHECK(target->layout_of(RUNG_TYPE_IQ2_XS) == NULL);
  rung_backend_cpu.close(self);
}

/* ---- quantising */

static void check_quantize(const rung_kernel *row, float *x, int64_t rows, int64_t k) {
  const int64_t x_extent[] = {rows, k}, x_stride[] = {k, 1}, y_stride[] = {k / 32, 1};
  rung_a8 *want = malloc((size_t)(rows * k / 32) * sizeof *want),
          *have = malloc((size_t)(rows * k / 32) * sizeof *have);
  const rung_operand in = {(uint8_t *)x, x_extent, x_stride, 2, RUNG_TYPE_F32, 0, NULL};
  rung_operand out = {(uint8_t *)want, x_extent, y_stride, 2, RUNG_TYPE_A8, 0, NULL};
  rung_args args = {.in = &in, .out = &out, .n_in = 1, .n_out = 1, .threads = 1};
  CHECK_OK(rung_op_quantize_rows.reference(&args));
  out.base = (uint8_t *)have;
  for (int64_t t = 0, tasks = row->tasks(&args); t < (tasks ? tasks : 1); t++) CHECK_OK(row->run(&args, t, 0));
  bool equal = true;
  for (int64_t i = 0; i < rows * k / 32; i++) {
    const bool both_nan = isnan(want[i].scale) && isnan(have[i].scale);
    if (both_nan) have[i].scale = want[i].scale;
    equal = equal && memcmp(&want[i], &have[i], sizeof *want) == 0;
  }
  test_state.checks++;
  if (!equal) TEST_FAIL_("%s: other bytes than the definition's", row->name);
  free(want), free(have);
}

static void test_quantize(void) {
  static const char *const caps[] = {"base", "avx2", "avx512", "neon"};
  for (size_t c = 0; c < RUNG_COUNT(caps); c++) {
    setenv("RUNG_MAX_ISA", caps[c], 1);
    void *self;
    CHECK_OK(rung_backend_cpu.open(host, NULL, &self));
    const rung_target *target = rung_backend_cpu.target(self);
    for (size_t i = 0; i < target->kernels; i++) {
      const rung_kernel *row = target->kernel[i];
      if (strncmp(row->name, "quantize_rows_f32", 17) != 0) continue;
      enum { ROWS = 60, K = 320 };
      float *x = malloc(ROWS * K * sizeof *x);
      for (int j = 0; j < ROWS * K; j++) {
        const int r = j / K;
        x[j] = test_uniform(&seed, -1, 1) * ldexpf(1, (int)test_below(&seed, r % 60 + 1) - r % 30);
        if (r % 7 == 3 && test_below(&seed, 200) == 0) x[j] = r % 2 ? NAN : r % 3 ? INFINITY : -INFINITY;
        if (r % 7 == 4 && j % K < 64) x[j] = 0;
        if (r % 7 == 5) x[j] = roundf(x[j] * 254) / 2; /* halves: ties go to even */
      }
      for (int j = 0; j < 32; j++) x[5 * K + j] = j == 9 ? 127 : (float)j - 15.5f;
      check_quantize(row, x, ROWS, K);
      check_quantize(row, x, 0, K);
      free(x);
    }
    rung_backend_cpu.close(self);
  }
  unsetenv("RUNG_MAX_ISA");
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  RUN(test_layouts);
  RUN(test_quantize);
  rung_host_release(host);
  return TEST_END();
}
