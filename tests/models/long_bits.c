/* SPDX-License-Identifier: MIT
 * The bit matrix on the real models: 1,400 positions, exact and fast, keys and values in f32 and f16. */
#include "bits.h"
#include "fetched.h"

static void matrix(const char *name) {
  static const int64_t chunk[] = {1400, 1, 7, 64, 512, 0};
  static const int threads[] = {1, 2, 3, 0};
  char path[1024];
  if (!fetched_model(name, path, sizeof path)) {
    CHECK(!"the model is not there; run scripts/models.py fetch");
    return;
  }
  for (int quant = 0; quant < 2; quant++)
    for (int kv = 0; kv < 2; kv++) {
      const bits_case c = {.path = path,
                           .quant = quant ? RUNG_QUANT_EXACT : RUNG_QUANT_FAST,
                           .kv = kv ? RUNG_TYPE_F32 : RUNG_TYPE_F16,
                           .length = 1400,
                           .chunk = chunk,
                           .largest_chunk = 1400,
                           .threads = threads};
      bits_matrix(&c);
    }
}

static void test_smollm2(void) { matrix("smollm2"); }
static void test_gemma3(void) { matrix("gemma3"); }

int main(void) {
  RUN(test_smollm2);
  RUN(test_gemma3);
  return TEST_END();
}
