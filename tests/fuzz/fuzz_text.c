/* SPDX-License-Identifier: MIT
 * Fuzz target of the text form: what parses is valid, prints as text that reads back to the same graph, and survives a
 * copy. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "ir/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
  if (!holds) abort();
}

static rung_hash hash_of(const rung_graph *graph) {
  rung_hash hash = {0, 0};
  must(rung_graph_hash(graph, &hash, NULL) == RUNG_OK);
  return hash;
}

static void check_copy(const rung_graph *graph) {
  rung_error error;
  rung_graph *copy = NULL;
  rung_rewrite rewrite;
  must(rung_graph_create_like(graph, &error, &copy) == RUNG_OK);
  must(rung_rewrite_init(&rewrite, graph, copy, &error) == RUNG_OK);
  for (uint32_t i = 0; i < graph->nodes; i++) must(rung_rewrite_copy(&rewrite, i) == RUNG_OK);
  must(rung_rewrite_finish(&rewrite, &error) == RUNG_OK);
  must(rung_graph_verify(copy, &error) == RUNG_OK);
  must(rung_hash_equal(hash_of(graph), hash_of(copy)));
  rung_graph_destroy(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rung_host *host;
  if (!host && rung_host_create(NULL, NULL, &host)) return 0;
  rung_error error = {RUNG_OK, ""};
  rung_graph *graph = NULL, *again = NULL;
  if (rung_graph_parse(host, (const char *)data, size, &error, &graph)) {
    must(error.status != RUNG_OK && error.status != RUNG_INTERNAL && error.message[0] != 0);
    return 0;
  }
  char *text, *second;
  size_t bytes, second_bytes;
  must(rung_graph_print(graph, &error, &text, &bytes) == RUNG_OK);
  must(rung_graph_parse(host, text, bytes, &error, &again) == RUNG_OK);
  must(rung_graph_print(again, &error, &second, &second_bytes) == RUNG_OK);
  must(bytes == second_bytes && memcmp(text, second, bytes) == 0);
  must(rung_hash_equal(hash_of(graph), hash_of(again)));
  check_copy(graph);
  rung_text_free(host, text, bytes);
  rung_text_free(host, second, second_bytes);
  rung_graph_destroy(graph);
  rung_graph_destroy(again);
  return 0;
}
