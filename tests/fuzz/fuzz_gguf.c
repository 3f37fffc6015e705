/* SPDX-License-Identifier: MIT
 * Fuzz target of the GGUF reader: opens the bytes, and reads all of what was let through, as a store too.
 *
 * Coverage of the reader's lines, by the corpus and a minute of fuzzing:
 *   flags="-fsanitize=fuzzer,address,undefined -fprofile-instr-generate -fcoverage-mapping"
 *   clang -std=c11 -g -O1 $flags -Isrc -Iinclude -Itests tests/fuzz/fuzz_gguf.c src/formats/gguf*.c \
 *     src/weights/[a-z]*.c src/ir/type.c src/ir/blocks*.c src/base/[a-z]*.c -lm -lpthread -o /tmp/fuzz_gguf
 *   mkdir -p /tmp/found
 *   LLVM_PROFILE_FILE=/tmp/fuzz.raw /tmp/fuzz_gguf -max_total_time=60 /tmp/found tests/fuzz/corpus/fuzz_gguf
 *   llvm-profdata merge /tmp/fuzz.raw -o /tmp/fuzz.data
 *   llvm-cov report /tmp/fuzz_gguf -instr-profile=/tmp/fuzz.data src/formats/gguf.c src/formats/gguf_metadata.c \
 *     src/formats/gguf_tensors.c src/formats/gguf_weights.c */
#include "formats/walk_gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rung_host *host;
  if (!host && rung_host_create(NULL, NULL, &host)) return 0;
  const rung_source source = rung_source_memory(data, size);
  rung_error error;
  rung_gguf *gguf = NULL;
  if (rung_gguf_open(host, &source, &error, &gguf)) return 0;
  (void)walk_gguf(gguf);
  rung_weights *weights = NULL;
  if (!rung_gguf_weights(gguf, &error, &weights)) {
    if (rung_weights_count(weights) != rung_gguf_tensor_count(gguf)) abort();
    if (rung_weights_check(weights, &error) && error.message[0] == 0) abort();
  }
  rung_weights_release(weights);
  (void)rung_gguf_release_metadata(gguf);
  rung_gguf_release(gguf);
  return 0;
}
