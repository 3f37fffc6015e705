/* SPDX-License-Identifier: MIT
 * Compiled files by hand: written from a program, opened as a template with a ceiling. */
#include <stdio.h>
#include <string.h>

#include "runtime/cache/aot.h"

struct rung_compiled {
  rung_host *host;
  rung_sections *file;
  rung_manifest manifest;
  rung_template *template_;
  rung_program *program;
  rung_weights *weights; /* those in the file, once they were asked for */
};

/* The same program gives the same key: a hash of what the file holds, weights by what they are made from. */
static rung_hash content_key(const rung_section *section, uint32_t count) {
  rung_hash each[RUNG_AOT_PARTS];
  for (uint32_t i = 0; i < count; i++) each[i] = rung_hash_bytes(section[i].data, (size_t)section[i].bytes);
  return rung_hash_bytes(each, sizeof each);
}

static rung_status write_all(rung_program *program, rung_view *view, const rung_aot_weights *weights, const char *path,
                             rung_error *error) {
  rung_host *host = program->template_->device->host;
  const uint32_t count = RUNG_AOT_PARTS + weights->count;
  rung_section *section = rung_host_array(host, count, sizeof *section);
  rung_aot_parts parts;
  if (!section) return rung_fail(error, RUNG_OUT_OF_MEMORY, "%s: out of memory", path);
  rung_weights *locked = view ? rung_view_lock(view) : NULL; /* the manifest says what the weights are */
  rung_status status = rung_aot_parts_make(program->template_, program, view, error, &parts);
  if (locked) rung_view_unlock(locked);
  if (!status) {
    rung_aot_parts_list(&parts, section);
    for (uint32_t i = 0; i < weights->count; i++) section[RUNG_AOT_PARTS + i] = weights->section[i];
    status = rung_sections_write(host, path, RUNG_FILE_TEMPLATE, content_key(section, RUNG_AOT_PARTS), section, count,
                                 error);
    rung_aot_parts_finish(&parts);
  }
  rung_host_free(host, RUNG_MEMORY_host, section, count * sizeof *section);
  return status;
}

rung_status rung_compiled_write(rung_program *program, rung_view *view, const char *path, rung_error *error) {
  if (!program || !path) return rung_fail(error, RUNG_INVALID_ARGUMENT, "compiled file: program and path are required");
  rung_aot_weights weights = {.count = 0};
  rung_status status = view ? rung_aot_weights_list(program, view, error, &weights) : RUNG_OK;
  if (!status) status = write_all(program, view, &weights, path, error);
  if (view) rung_aot_weights_finish(view, &weights);
  return status;
}

static rung_status load(rung_compiled *c, rung_device *device, const rung_source *source, rung_error *error) {
  RUNG_TRY(rung_sections_open(c->host, source, error, &c->file));
  const rung_section *section = rung_sections_find(c->file, RUNG_SECTION_MANIFEST);
  if (rung_sections_kind(c->file) != RUNG_FILE_TEMPLATE || !section)
    return rung_fail(error, RUNG_CORRUPT_FILE, "compiled file: it holds no graph");
  RUNG_TRY(rung_manifest_read(c->host, section->data, section->bytes, error, &c->manifest));
  RUNG_TRY(rung_aot_load(device, c->file, &c->manifest, NULL, error, &c->template_));
  /* Kernels are chosen here: what is missing must be said now, not at a run. */
  const rung_status status =
      rung_program_create(c->template_, c->manifest.ceiling, c->manifest.ceilings, error, &c->program);
  if (status != RUNG_UNSUPPORTED || strcmp(c->manifest.device, device->name) == 0) return status;
  return rung_fail_prefix(error, status, "compiled on %s, opened on %s", c->manifest.device, device->name);
}

rung_status rung_compiled_open(rung_device *device, const rung_source *source, rung_error *error,
                               rung_compiled **out_compiled) {
  if (!device || !source || !out_compiled)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "compiled file: device, source and out_compiled are required");
  rung_compiled *c = rung_host_alloc(device->host, RUNG_MEMORY_host, sizeof *c, 0);
  if (!c) return rung_fail(error, RUNG_OUT_OF_MEMORY, "compiled file: out of memory");
  rung_host_retain(device->host);
  c->host = device->host;
  const rung_status status = load(c, device, source, error);
  if (status) {
    rung_compiled_release(c);
    return status;
  }
  *out_compiled = c;
  return RUNG_OK;
}

void rung_compiled_release(rung_compiled *c) {
  if (!c) return;
  rung_host *host = c->host;
  rung_program_release(c->program);
  rung_template_release(c->template_);
  rung_weights_release(c->weights);
  rung_manifest_finish(&c->manifest);
  rung_sections_release(c->file);
  rung_host_free(host, RUNG_MEMORY_host, c, sizeof *c);
  rung_host_release(host);
}

rung_template *rung_compiled_template(const rung_compiled *c) { return c ? c->template_ : NULL; }

rung_status rung_compiled_program(const rung_compiled *c, rung_error *error, rung_program **out_program) {
  if (!c || !out_program) return rung_fail(error, RUNG_INVALID_ARGUMENT, "compiled and out_program are required");
  rung_program_retain(c->program);
  *out_program = c->program;
  return RUNG_OK;
}

static bool is_packed(const rung_compiled *c) {
  return rung_sections_find(c->file, RUNG_SECTION_FORM) || rung_sections_find(c->file, RUNG_SECTION_WEIGHT);
}

static rung_status own_weights(rung_compiled *c, rung_error *error, rung_weights **out_weights) {
  if (!is_packed(c)) return rung_fail(error, RUNG_NOT_LOADED, "the compiled file holds no weights");
  if (!c->weights) RUNG_TRY(rung_aot_weights_open(c->file, &c->manifest, c->host, error, &c->weights));
  *out_weights = c->weights;
  return RUNG_OK;
}

rung_status rung_compiled_view(rung_compiled *c, rung_weights *weights, rung_error *error, rung_view **out_view) {
  if (!c || !out_view) return rung_fail(error, RUNG_INVALID_ARGUMENT, "compiled and out_view are required");
  if (!weights) RUNG_TRY(own_weights(c, error, &weights));
  RUNG_TRY(rung_aot_check(c->file, c->template_, error));
  rung_derived *derived;
  RUNG_TRY(rung_derived_of(weights, error, &derived));
  rung_weights_lock_change(weights);
  const rung_status status = rung_bank_add(derived, c->file, error);
  rung_weights_unlock_change(weights);
  return status ? status : rung_view_create(weights, error, out_view);
}

void rung_compiled_get_info(const rung_compiled *c, rung_compiled_info *out) {
  const rung_manifest *m = &c->manifest;
  *out = (rung_compiled_info){
      .device = m->device,
      .version = m->version,
      .quant = m->options.quant,
      .precision = m->options.precision,
      .deterministic = m->options.deterministic,
      .packed = rung_sections_find(c->file, RUNG_SECTION_FORM) || rung_sections_find(c->file, RUNG_SECTION_WEIGHT),
      .ceiling = m->ceiling,
      .ceilings = m->ceilings,
      .inputs = m->tensors[RUNG_COMPILED_INPUT],
      .outputs = m->tensors[RUNG_COMPILED_OUTPUT],
      .weights = m->tensors[RUNG_COMPILED_WEIGHT],
      .memory = m->memory};
  rung_hash_hex(rung_sections_key(c->file), out->key);
}

bool rung_compiled_at(const rung_compiled *c, rung_compiled_kind kind, size_t index, rung_compiled_tensor *out) {
  if (!c || (unsigned)kind > RUNG_COMPILED_WEIGHT || index >= c->manifest.tensors[kind]) return false;
  const rung_aot_tensor *t = &c->manifest.tensor[kind][index];
  *out = (rung_compiled_tensor){.name = t->name, .type = t->type, .extents = t->extents};
  if (t->known) rung_hash_hex(t->identity, out->hash);
  return true;
}
