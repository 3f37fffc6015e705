/* SPDX-License-Identifier: MIT
 * Fuzz target of the GGUF reader: opens the bytes, and reads all of what was let through, as a store too. */
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
  if (!rung_gguf_weights(gguf, NULL, &error, &weights)) {
    if (rung_weights_count(weights) != rung_gguf_tensor_count(gguf)) abort();
    if (rung_weights_check(weights, &error) && error.message[0] == 0) abort();
  }
  rung_weights_release(weights);
  (void)rung_gguf_release_metadata(gguf);
  rung_gguf_release(gguf);
  return 0;
}
