/* SPDX-License-Identifier: MIT
 * Where scripts/models.py puts the real models. */
#ifndef RUNG_TESTS_FETCHED_H
#define RUNG_TESTS_FETCHED_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* name: as scripts/models.py knows it; a file, or a folder. False if it cannot be read. */
static bool fetched_model(const char *name, char *out_path, size_t bytes) {
  static const char *const file[][2] = {{"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"},
                                        {"gemma3", "gemma-3-270m-q4_k_m.gguf"},
                                        {"minilm", "all-MiniLM-L6-v2"},
                                        {"silero-vad", "silero_vad.onnx"},
                                        {"magika", "magika-standard_v3_3.onnx"},
                                        {"magika-labels", "magika-standard_v3_3.json"},
                                        {"ppocr-det", "ch_PP-OCRv4_det_infer.onnx"},
                                        {"ppocr-rec", "ch_PP-OCRv4_rec_infer.onnx"},
                                        {"kokoro", "kokoro-82m-int8.onnx"},
                                        {"kokoro-voice", "kokoro-jf_alpha.npy"},
                                        {"llama-cpp-src", "llama-cpp-src"}};
  const char *cache = getenv("RUNG_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
    if (strcmp(file[i][0], name) != 0) continue;
    if (cache && *cache)
      snprintf(out_path, bytes, "%s/models/%s", cache, file[i][1]);
    else if (xdg && *xdg)
      snprintf(out_path, bytes, "%s/rung/models/%s", xdg, file[i][1]);
    else
      snprintf(out_path, bytes, "%s/.cache/rung/models/%s", home ? home : "", file[i][1]);
    FILE *f = fopen(out_path, "rb");
    if (f) fclose(f);
    return f != NULL;
  }
  return false;
}

#endif
