/* SPDX-License-Identifier: MIT
 * Fuzz target of compiled files: the container, the graph, its notes, the manifest. Checksums are made right first, or
 * nothing behind them would be read. What decodes is a valid graph whose encoding decodes to itself. Seeds: what `rung
 * compile` makes of texts of fuzz_text, and the encodings in them. */
#include <stdlib.h>
#include <string.h>

#include "formats/sections.h"
#include "ir/graph.h"
#include "runtime/cache/aot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static rung_host *host;

static void must(bool holds) {
  if (!holds) abort();
}

/* A refusal that says what is wrong. */
static bool refused(rung_status status, const rung_error *error) {
  if (!status) return false;
  must(status != RUNG_INTERNAL && error->status == status && error->message[0] != 0);
  return true;
}

static void check_graph(const void *code, uint64_t bytes, const void *notes, uint64_t notes_bytes) {
  rung_error error = {RUNG_OK, ""};
  rung_graph *graph = NULL, *again = NULL;
  if (refused(rung_graph_decode(host, code, bytes, notes, notes_bytes, &error, &graph), &error)) return;
  rung_text first, second, kept;
  rung_text_init(&first, host);
  rung_text_init(&second, host);
  rung_text_init(&kept, host);
  must(!rung_graph_encode(graph, &first) && !rung_graph_encode_notes(graph, &kept));
  must(!rung_graph_decode(host, first.data, first.length, kept.data, kept.length, &error, &again));
  must(!rung_graph_encode(again, &second));
  must(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
  rung_text_finish(&first);
  rung_text_finish(&second);
  rung_text_finish(&kept);
  rung_graph_destroy(graph);
  rung_graph_destroy(again);
}

static void check_file(const uint8_t *data, size_t size) {
  const rung_source source = rung_source_memory(data, size);
  rung_error error = {RUNG_OK, ""};
  rung_sections *file = NULL;
  if (refused(rung_sections_open(host, &source, &error, &file), &error)) return;
  for (uint32_t i = 0; i < rung_sections_count(file); i++) (void)refused(rung_sections_check(file, i, &error), &error);
  const rung_section *code = rung_sections_find(file, RUNG_SECTION_GRAPH);
  const rung_section *notes = rung_sections_find(file, RUNG_SECTION_NOTES);
  const rung_section *manifest = rung_sections_find(file, RUNG_SECTION_MANIFEST);
  if (code) check_graph(code->data, code->bytes, notes ? notes->data : NULL, notes ? notes->bytes : 0);
  rung_manifest m;
  if (manifest && !refused(rung_manifest_read(host, manifest->data, manifest->bytes, &error, &m), &error))
    rung_manifest_finish(&m);
  rung_sections_release(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!host && rung_host_create(NULL, NULL, &host)) return 0;
  check_file(data, size);
  check_graph(data, size, NULL, 0);
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  rung_sections_seal(copy, size);
  check_file(copy, size);
  free(copy);
  return 0;
}
