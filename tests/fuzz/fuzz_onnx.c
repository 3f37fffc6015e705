/* SPDX-License-Identifier: MIT
 * Fuzz target of the ONNX reader and importer: opens the bytes and verifies what was made of them. What must be known then
 * is given: a number of a kind that the first byte of its name chooses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/onnx/onnx.h"
#include "ir/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PINS = 4 };

/* A value for what the message names behind its last colon; false if it names nothing, or the same again. */
static bool pin(rung_onnx_pin *pins, char names[][64], size_t *count, const char *message) {
  static const int64_t whole[4] = {1, 2, 1, 3};
  static const int32_t narrow[4] = {1, 0, 2, 1};
  static const float real[4] = {0.5f, 1, 2, 1};
  static const struct {
    rung_type type;
    int rank;
    const void *data;
  } kinds[] = {{RUNG_TYPE_I64, 0, whole}, {RUNG_TYPE_I64, 1, whole},  {RUNG_TYPE_F32, 0, real},
               {RUNG_TYPE_F32, 1, real},  {RUNG_TYPE_I32, 1, narrow}, {RUNG_TYPE_BOOL, 0, narrow}};
  const int64_t extent[1] = {2};
  const char *colon = strrchr(message, ':');
  if (!colon || *count == MOST_PINS) return false;
  snprintf(names[*count], sizeof names[0], "%s", colon + 2);
  for (size_t i = 0; i < *count; i++)
    if (strcmp(names[i], names[*count]) == 0) return false;
  const size_t kind = (size_t)(uint8_t)names[*count][0] % RUNG_COUNT(kinds);
  pins[*count] = (rung_onnx_pin){names[*count], rung_tensor_dense(kinds[kind].type, kinds[kind].rank, extent,
                                                                  (void *)(uintptr_t)kinds[kind].data)};
  ++*count;
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rung_host *host;
  rung_error error = {RUNG_OK, ""};
  if (!host && rung_host_create(NULL, NULL, &host)) return 0;
  const rung_source source = rung_source_memory(data, size);
  rung_onnx model = {0};
  rung_onnx_pin pins[MOST_PINS];
  char names[MOST_PINS][64];
  rung_onnx_options options = {.pin = pins};
  rung_text missing;
  rung_text_init(&missing, host);
  rung_status status;
  do {
    status = rung_onnx_open(host, &source, &options, &missing, &error, &model);
  } while (status == RUNG_NOT_FOUND && pin(pins, names, &options.pins, error.message));
  rung_text_finish(&missing);
  char *note = NULL;
  size_t bytes;
  if (!rung_onnx_note(host, &source, "character", NULL, &note, &bytes)) rung_text_free(host, note, bytes);
  if (status) {
    if (!error.message[0]) abort();
    return 0;
  }
  if (rung_graph_verify(model.graph, &error)) abort(); /* the importer makes graphs that hold the rules */
  rung_onnx_close(&model);
  return 0;
}
