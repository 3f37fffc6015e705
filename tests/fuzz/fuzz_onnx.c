/* SPDX-License-Identifier: MIT
 * Fuzz target of the ONNX reader and importer: opens the bytes, prints and verifies what was made of them. */
#include <stdlib.h>

#include "formats/onnx/onnx.h"
#include "ir/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rung_host *host;
  rung_error error = {RUNG_OK, ""};
  if (!host && rung_host_create(NULL, NULL, &host)) return 0;
  const rung_source source = rung_source_memory(data, size);
  rung_onnx model = {0};
  rung_text missing;
  rung_text_init(&missing, host);
  const rung_status status = rung_onnx_open(host, &source, NULL, &missing, &error, &model);
  rung_text_finish(&missing);
  if (status) {
    if (!error.message[0]) abort();
    return 0;
  }
  if (rung_graph_verify(model.graph, &error)) abort(); /* the importer makes graphs that hold the rules */
  rung_onnx_close(&model);
  return 0;
}
