/* SPDX-License-Identifier: MIT
 * Weights in compiled files: a file that needs nothing else holds the forms that its program uses, and the weights that
 * steps read as they lie. Of the others it knows what they are, which is enough to find their forms. */
#include <string.h>

#include "runtime/cache/aot.h"

/* ---- writing */

static rung_status list(rung_program *program, rung_view *view, rung_error *error, rung_aot_weights *w) {
  const rung_plan *plan = program->plan;
  for (uint32_t i = 0; i < plan->roots; i++) {
    const rung_root *root = &plan->root[i];
    if (root->kind != RUNG_ROOT_WEIGHT || !root->read) continue;
    const rung_tensor_entry *entry = rung_weights_find(view->weights, plan->weight[root->index].name);
    const uint32_t index = rung_manifest_weight(program->template_->graph, entry->name);
    bool there = false;
    for (uint32_t k = 0; k < w->count; k++) there |= w->section[k].index == index;
    if (there) continue;
    w->section[w->count++] = (rung_section){
        .kind = RUNG_SECTION_WEIGHT, .index = index, .data = w->table->root[i].data, .bytes = entry->bytes};
  }
  uint32_t forms;
  const rung_sources sources = {.derived = view->derived, .own = view->own};
  RUNG_TRY(rung_aot_list_forms(&sources, program, w->table, error, w->section + w->count, &forms));
  w->count += forms;
  return RUNG_OK;
}

rung_status rung_aot_weights_list(rung_program *program, rung_view *view, rung_error *error, rung_aot_weights *out) {
  *out = (rung_aot_weights){.capacity = program->plan->roots};
  if (program->plan->target->far)
    return rung_fail(error, RUNG_UNSUPPORTED,
                     "compiled file: weights of device %s lie in its own memory; write it for cpu",
                     program->plan->target->name);
  RUNG_TRY(rung_view_use(view, program, error, &out->use));
  out->table = rung_use_table(view->host, out->use);
  out->section = rung_host_array(view->host, out->capacity, sizeof *out->section);
  if (!out->section) return rung_fail(error, RUNG_OUT_OF_MEMORY, "compiled file: out of memory");
  rung_weights *weights = rung_view_lock(view);
  const rung_status status = list(program, view, error, out);
  rung_view_unlock(weights);
  return status;
}

void rung_aot_weights_finish(rung_view *view, rung_aot_weights *weights) {
  rung_host_free(view->host, RUNG_MEMORY_host, weights->section, weights->capacity * sizeof *weights->section);
  rung_table_release(weights->table);
  rung_view_unuse(view, weights->use);
}

/* ---- opening */

/* The part of a file where its weights lie, so that their pages can go without those of the forms. */
typedef struct part {
  rung_map map;
  rung_sections *file;
} part;

static void part_release(void *owner) {
  part *p = owner;
  rung_host *host = p->map.host;
  rung_sections_release(p->file);
  rung_host_free(host, RUNG_MEMORY_host, p, sizeof *p);
}

static const rung_section *weight_section(const rung_sections *file, uint32_t index) {
  for (uint32_t i = 0; i < rung_sections_count(file); i++) {
    const rung_section *s = rung_sections_at(file, i);
    if (s->kind == RUNG_SECTION_WEIGHT && s->index == index) return s;
  }
  return NULL;
}

static rung_status add_part(rung_weights *weights, rung_sections *file, rung_host *host, rung_error *error,
                            uint64_t *out_start) {
  const rung_map *map = rung_sections_map(file);
  uint64_t start = map->size, end = 0;
  for (uint32_t i = 0; i < rung_sections_count(file); i++) {
    const rung_section *s = rung_sections_at(file, i);
    if (s->kind != RUNG_SECTION_WEIGHT) continue;
    if (s->offset < start) start = s->offset;
    if (s->offset + s->bytes > end) end = s->offset + s->bytes;
  }
  *out_start = start;
  if (!end) return RUNG_OK;
  part *p = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *p, 0);
  if (!p) return rung_fail(error, RUNG_OUT_OF_MEMORY, "compiled file: out of memory");
  p->map = (rung_map){.host = host,
                      .data = map->data + start,
                      .size = end - start,
                      .kind = map->kind == RUNG_MAP_PAGES ? RUNG_MAP_PAGES : RUNG_MAP_BORROWED,
                      .base = (uint8_t *)(uintptr_t)map->data + start,
                      .base_bytes = (size_t)(end - start)};
  p->file = file;
  int source;
  const rung_weights_source given = {.map = &p->map, .owner = p, .release = part_release};
  const rung_status status = rung_weights_add_source(weights, &given, error, &source);
  if (status)
    rung_host_free(host, RUNG_MEMORY_host, p, sizeof *p);
  else
    rung_sections_retain(file);
  return status;
}

static rung_status add_weight(rung_weights *weights, const rung_aot_tensor *t, const rung_section *section,
                              uint64_t start, rung_error *error) {
  rung_tensor_desc desc = {.name = t->name, .name_length = strlen(t->name), .type = t->type, .rank = t->rank};
  memcpy(desc.extent, t->extent, sizeof desc.extent);
  const rung_tensor_entry *entry;
  if (!section) {
    RUNG_TRY(rung_weights_declare_desc(weights, &desc, error, &entry));
  } else {
    uint64_t bytes;
    RUNG_TRY(rung_weights_size(t->type, t->rank, t->extent, error, &bytes));
    if (bytes != section->bytes)
      return rung_fail(error, RUNG_CORRUPT_FILE, "compiled file: weight \"%s\" does not have its bytes", t->name);
    RUNG_TRY(rung_weights_add(weights, &desc, 0, section->offset - start, error, &entry));
  }
  if (t->known) rung_weights_know(weights, entry, t->identity);
  return RUNG_OK;
}

static rung_status fill(rung_weights *weights, rung_sections *file, const rung_manifest *manifest, rung_host *host,
                        rung_error *error) {
  uint64_t start;
  RUNG_TRY(add_part(weights, file, host, error, &start));
  for (uint32_t i = 0; i < manifest->tensors[RUNG_COMPILED_WEIGHT]; i++)
    RUNG_TRY(add_weight(weights, &manifest->tensor[RUNG_COMPILED_WEIGHT][i], weight_section(file, i), start, error));
  return RUNG_OK;
}

rung_status rung_aot_weights_open(rung_sections *file, const rung_manifest *manifest, rung_host *host,
                                  rung_error *error, rung_weights **out_weights) {
  rung_weights *weights;
  RUNG_TRY(rung_weights_create(host, error, &weights));
  const rung_status status = fill(weights, file, manifest, host, error);
  if (status) {
    rung_weights_release(weights);
    /* What the store of weights refuses was never written by us. */
    return status == RUNG_OUT_OF_MEMORY ? status : rung_fail_prefix(error, RUNG_CORRUPT_FILE, "compiled file");
  }
  *out_weights = weights;
  return RUNG_OK;
}
