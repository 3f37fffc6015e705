/* SPDX-License-Identifier: MIT
 * The device's layouts give back the source's blocks, bit for bit, and the same numbers. Needs no GPU. */
#include <string.h>

#include "backends/cuda/matmul.h"
#include "test.h"

enum { MOST_ROWS = 16, MOST_BYTES = 1024, MOST_K = 768 };

static uint64_t state = 7;
static uint8_t draw(void) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint8_t)(state >> 56);
}

static uint8_t source[MOST_ROWS][MOST_BYTES], back[MOST_ROWS][MOST_BYTES], panel[MOST_ROWS * MOST_BYTES * 2];
static float want[MOST_K], have[MOST_K];

/* Any bits but factors that are no numbers: those would not compare. */
static void fill(const rung_layout *layout, size_t bytes) {
  const rung_type_row *type = rung_type_get(layout->source);
  for (int r = 0; r < MOST_ROWS; r++)
    for (size_t i = 0; i < bytes; i++) {
      source[r][i] = draw();
      if (i % type->bytes == 1 || i % type->bytes == 3) source[r][i] &= layout->source == RUNG_TYPE_Q4_K ? 0xbb : 0xff;
      if (i % type->bytes == 1) source[r][i] &= 0xbb;
    }
}

static void check(const rung_layout *layout, int64_t k, int rows) {
  const rung_type_row *type = rung_type_get(layout->source);
  const size_t bytes = (size_t)(k / type->block) * type->bytes;
  const uint8_t *from[MOST_ROWS];
  uint8_t *to[MOST_ROWS];
  fill(layout, bytes);
  for (int r = 0; r < MOST_ROWS; r++) {
    from[r] = source[r];
    to[r] = back[r];
  }
  memset(panel, 0xee, sizeof panel);
  memset(back, 0, sizeof back);
  layout->pack(from, rows, k, panel);
  for (uint64_t i = layout->panel_bytes(k); i < sizeof panel; i++) CHECK_EQ_I64(panel[i], 0xee);
  layout->unpack(panel, rows, k, to);
  for (int r = 0; r < rows; r++) {
    CHECK(memcmp(source[r], back[r], bytes) == 0);
    type->to_f32(source[r], want, (size_t)k);
    layout->row(panel, r, k, have);
    CHECK(memcmp(want, have, (size_t)k * sizeof *want) == 0);
  }
}

static void test_layouts(void) {
  size_t count;
  const rung_layout *layout = rung_cuda_layouts(&count);
  for (size_t i = 0; i < count; i++) {
    const int64_t block = rung_type_get(layout[i].source)->block;
    CHECK(rung_cuda_layout_of(layout[i].source) == &layout[i]);
    CHECK(rung_cuda_reads_weight(layout[i].source, layout[i].id));
    for (int64_t k = block; k <= MOST_K; k += block) {
      check(&layout[i], k, MOST_ROWS);
      check(&layout[i], k, 5);
    }
  }
}

int main(void) {
  RUN(test_layouts);
  return TEST_END();
}
