/* SPDX-License-Identifier: MIT
 * The bit matrix on tiny models of both families; with real models in long_bits.c. */
#include "bits.h"

static void matrix(const char *path, bool heads_of_32) {
  static const int64_t chunk[] = {100, 1, 7, 64, 33, 0};
  static const int threads[] = {1, 2, 3, 0};
  for (int quant = 0; quant < 2; quant++)
    for (int kv = 0; kv < (heads_of_32 ? 4 : 2 + quant); kv++) {
      static const rung_type types[] = {RUNG_TYPE_F16, RUNG_TYPE_F32, RUNG_TYPE_BF16, RUNG_TYPE_Q8_0};
      const bits_case c = {.path = path,
                           .quant = quant ? RUNG_QUANT_EXACT : RUNG_QUANT_FAST,
                           .kv = types[kv],
                           .length = 100,
                           .chunk = chunk,
                           .largest_chunk = 100,
                           .threads = threads};
      bits_matrix(&c);
    }
}

static void test_llama(void) { matrix(RUNG_SOURCE_DIR "/tests/models/tiny/llama.gguf", false); }
static void test_gemma3(void) { matrix(RUNG_SOURCE_DIR "/tests/models/tiny/gemma3.gguf", true); }

int main(void) {
  RUN(test_llama);
  RUN(test_gemma3);
  return TEST_END();
}
