/* SPDX-License-Identifier: MIT
 * Templates to sections and back. */
#include <string.h>

#include "runtime/cache/aot.h"

/* ---- to sections */

rung_status rung_aot_parts_make(rung_template *t, const rung_program *program, rung_view *view, rung_error *error,
                                rung_aot_parts *out) {
  rung_host *host = t->device->host;
  rung_text_init(&out->graph, host);
  rung_text_init(&out->notes, host);
  rung_text_init(&out->explain, host);
  rung_text_init(&out->manifest, host);
  uint64_t tag;
  rung_status status = rung_aot_tag(t->device, error, &tag);
  rung_text_add(&out->explain, t->explain.data, t->explain.length);
  rung_graph_encode(t->graph, &out->graph);
  rung_graph_encode_notes(t->graph, &out->notes);
  if (!status) status = rung_manifest_write(t, program, view, tag, error, &out->manifest);
  if (!status) status = rung_text_status(&out->graph, error);
  if (!status) status = rung_text_status(&out->notes, error);
  if (!status) status = rung_text_status(&out->explain, error);
  if (status) rung_aot_parts_finish(out);
  return status;
}

void rung_aot_parts_list(const rung_aot_parts *parts, rung_section out[RUNG_AOT_PARTS]) {
  const rung_text *const text[RUNG_AOT_PARTS] = {&parts->manifest, &parts->graph, &parts->notes, &parts->explain};
  static const uint32_t kind[RUNG_AOT_PARTS] = {RUNG_SECTION_MANIFEST, RUNG_SECTION_GRAPH, RUNG_SECTION_NOTES,
                                                RUNG_SECTION_EXPLAIN};
  for (int i = 0; i < RUNG_AOT_PARTS; i++)
    out[i] = (rung_section){.kind = kind[i], .data = (const uint8_t *)text[i]->data, .bytes = text[i]->length};
}

void rung_aot_parts_finish(rung_aot_parts *parts) {
  rung_text_finish(&parts->graph);
  rung_text_finish(&parts->notes);
  rung_text_finish(&parts->explain);
  rung_text_finish(&parts->manifest);
}

/* ---- back */

/* A layout that this device does not know would be taken for row-major memory. */
static rung_status check_layouts(const rung_device *device, const rung_graph *graph, rung_error *error) {
  for (uint32_t i = 1; i < graph->values; i++) {
    const rung_value_type *type = &graph->value[i].type;
    if (!type->layout) continue;
    const rung_layout *layout = rung_target_layout(device->target, type->layout);
    if (!layout || type->rank < 2 || layout->source != type->type)
      return rung_fail(error, RUNG_UNSUPPORTED, "device %s has no layout %u for weights of %s", device->name,
                       type->layout, rung_type_name(type->type));
  }
  for (uint32_t i = 0; i < graph->nodes; i++)
    for (uint32_t b = 0; b < graph->node[i].bodies; b++) RUNG_TRY(check_layouts(device, graph->node[i].body[b], error));
  return RUNG_OK;
}

rung_status rung_aot_load(rung_device *device, const rung_sections *file, const rung_manifest *manifest,
                          const rung_compile_options *options, rung_error *error, rung_template **out_template) {
  if (strcmp(manifest->target, device->target->name) != 0)
    return rung_fail(error, RUNG_UNSUPPORTED, "compiled for device %s, not for %s", manifest->target,
                     device->target->name);
  const rung_section *code = rung_sections_find(file, RUNG_SECTION_GRAPH);
  const rung_section *notes = rung_sections_find(file, RUNG_SECTION_NOTES);
  const rung_section *explain = rung_sections_find(file, RUNG_SECTION_EXPLAIN);
  if (!code || !notes || !explain) return rung_fail(error, RUNG_CORRUPT_FILE, "compiled file: it holds no graph");
  rung_graph *graph;
  RUNG_TRY(rung_graph_decode(device->host, code->data, code->bytes, notes->data, notes->bytes, error, &graph));
  rung_compile_options o = options ? *options : manifest->options;
  rung_status status = check_layouts(device, graph, error);
  if (!status)
    status =
        rung_template_take(device, graph, &o, (const char *)explain->data, (size_t)explain->bytes, error, out_template);
  if (status) rung_graph_destroy(graph);
  return status;
}
