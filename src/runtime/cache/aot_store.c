/* SPDX-License-Identifier: MIT
 * The store: a folder of entries found by name, and templates through it. What goes wrong with the folder is logged and
 * otherwise means that nothing is there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/folder.h"
#include "runtime/cache/aot.h"
#include "runtime/cache/entries.h"

rung_store_options rung_store_options_default(void) {
  return (rung_store_options){.size = sizeof(rung_store_options), .cap = (uint64_t)8 << 30, .packed = true};
}

rung_status rung_store_open(rung_host *host, const char *folder, const rung_store_options *options, rung_error *error,
                            rung_store **out_store) {
  const rung_store_options o = options ? *options : rung_store_options_default();
  if (!host || !folder || !folder[0] || !out_store)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "store: host, folder and out_store are required");
  if (o.size != sizeof o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "store: options.size is %zu, expected %zu", o.size, sizeof o);
  const size_t bytes = strlen(folder) + 1;
  rung_store *store = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *store, 0);
  char *copy = rung_host_alloc(host, RUNG_MEMORY_host, bytes, 1);
  if (!store || !copy || !rung_mutex_init(&store->lock)) {
    rung_host_free(host, RUNG_MEMORY_host, copy, bytes);
    rung_host_free(host, RUNG_MEMORY_host, store, sizeof *store);
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "store: out of memory");
  }
  memcpy(copy, folder, bytes);
  rung_host_retain(host);
  atomic_init(&store->references, 1);
  store->host = host;
  store->options = o;
  store->folder = copy;
  store->folder_bytes = bytes;
  *out_store = store;
  return RUNG_OK;
}

void rung_store_retain(rung_store *store) {
  if (store) atomic_fetch_add(&store->references, 1);
}

void rung_store_release(rung_store *store) {
  if (!store || atomic_fetch_sub(&store->references, 1) != 1) return;
  rung_host *host = store->host;
  rung_mutex_finish(&store->lock);
  rung_host_free(host, RUNG_MEMORY_host, store->folder, store->folder_bytes);
  rung_host_free(host, RUNG_MEMORY_host, store, sizeof *store);
  rung_host_release(host);
}

void rung_store_get_counters(const rung_store *store, rung_store_counters *out) {
  rung_mutex_lock((rung_mutex *)&store->lock);
  *out = store->counters;
  rung_mutex_unlock((rung_mutex *)&store->lock);
}

void rung_store_count(rung_store *store, uint64_t *counter, uint64_t more) {
  rung_mutex_lock(&store->lock);
  *counter += more;
  rung_mutex_unlock(&store->lock);
}

void rung_store_warn(rung_store *store, rung_aot_trouble trouble, const char *format, ...) {
  rung_mutex_lock(&store->lock);
  const bool again = store->warned[trouble];
  store->warned[trouble] = true;
  rung_mutex_unlock(&store->lock);
  rung_error text = {RUNG_OK, ""};
  va_list args;
  va_start(args, format);
  rung_fail_v(&text, RUNG_IO, format, args);
  va_end(args);
  rung_host_log(store->host, again ? RUNG_LOG_INFO : RUNG_LOG_WARNING, "%s", text.message);
}

char *rung_store_path(const rung_store *store, const char *name, size_t *out_bytes) {
  *out_bytes = store->folder_bytes + strlen(name) + 1;
  char *path = rung_host_alloc(store->host, RUNG_MEMORY_host, *out_bytes, 1);
  if (path) snprintf(path, *out_bytes, "%s/%s", store->folder, name);
  return path;
}

/* ---- entries */

static void bad(rung_store *store, const char *path, const rung_error *why) {
  rung_store_count(store, &store->counters.damaged, 1);
  const bool gone = !store->options.read_only && rung_file_remove(path);
  rung_store_warn(store, RUNG_AOT_DAMAGED, "stored compile %s %s: %s", path, gone ? "removed" : "cannot be used",
                  why->message);
}

void rung_store_entry_bad(rung_store *store, const char *name, const rung_error *why) {
  size_t bytes;
  char *path = rung_store_path(store, name, &bytes);
  if (!path) return;
  bad(store, path, why);
  rung_host_free(store->host, RUNG_MEMORY_host, path, bytes);
}

rung_status rung_store_entry_open(rung_store *store, const char *name, rung_file_kind kind, rung_error *error,
                                  rung_sections **out_file) {
  size_t bytes;
  char *path = rung_store_path(store, name, &bytes);
  if (!path) return rung_fail(error, RUNG_NOT_FOUND, "store: out of memory");
  const rung_source source = rung_source_path(path);
  rung_error why = {RUNG_OK, ""};
  rung_sections *file = NULL;
  rung_status status = rung_sections_open(store->host, &source, &why, &file);
  if (!status && rung_sections_kind(file) != kind)
    status = rung_fail(&why, RUNG_CORRUPT_FILE, "it is of another kind than its name says");
  if (!status) {
    if (!store->options.read_only) rung_file_touch(path);
    *out_file = file;
  } else {
    if (status == RUNG_CORRUPT_FILE || status == RUNG_UNSUPPORTED)
      bad(store, path, &why);
    else if (status != RUNG_NOT_FOUND)
      rung_store_warn(store, RUNG_AOT_READING, "stored compiles cannot be read: %s", why.message);
    status = rung_fail(error, RUNG_NOT_FOUND, "store: there is no %s", name);
    rung_sections_release(file);
  }
  rung_host_free(store->host, RUNG_MEMORY_host, path, bytes);
  return status;
}

void rung_store_entry_write(rung_store *store, const char *name, rung_file_kind kind, rung_hash key,
                            rung_section *section, uint32_t count) {
  if (store->options.read_only) return;
  size_t bytes;
  char *path = rung_store_path(store, name, &bytes);
  rung_error why = {RUNG_OK, ""};
  rung_status status = RUNG_OUT_OF_MEMORY;
  if (path) {
    status = rung_sections_write(store->host, path, kind, key, section, count, &why);
    if (status == RUNG_IO && rung_folder_make(store->folder)) /* the first entry, or the folder has vanished */
      status = rung_sections_write(store->host, path, kind, key, section, count, &why);
  }
  if (status) {
    rung_store_count(store, &store->counters.write_failures, 1);
    rung_store_warn(store, RUNG_AOT_WRITING, "compiles are not stored: %s", path ? why.message : "out of memory");
  } else {
    uint64_t size = 0;
    if (count) size = section[count - 1].offset + section[count - 1].bytes;
    rung_store_wrote(store, size);
  }
  rung_host_free(store->host, RUNG_MEMORY_host, path, bytes);
}

/* ---- templates */

typedef struct lookup {
  rung_hash key;
  char name[RUNG_STORE_NAME];
} lookup;

static rung_status look_up(const rung_device *device, const rung_graph *graph, const rung_compile_options *o,
                           rung_error *error, lookup *out) {
  if (o->size != sizeof *o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "store: options.size is %zu, expected %zu", o->size, sizeof *o);
  if (rung_graph_status(graph)) return rung_fail(error, rung_graph_status(graph), "%s", rung_graph_message(graph));
  uint64_t tag;
  RUNG_TRY(rung_aot_key(device, graph, o, error, &out->key));
  RUNG_TRY(rung_aot_tag(device, error, &tag));
  char hex[33];
  rung_hash_hex(out->key, hex);
  snprintf(out->name, sizeof out->name, "%s-%016" PRIx64 ".rung", hex, tag);
  return RUNG_OK;
}

static rung_status load(rung_store *store, rung_device *device, const rung_sections *file, const lookup *at,
                        const rung_compile_options *o, rung_error *error, rung_template **out_template) {
  const rung_section *section = rung_sections_find(file, RUNG_SECTION_MANIFEST);
  if (!section || !rung_hash_equal(rung_sections_key(file), at->key))
    return rung_fail(error, RUNG_CORRUPT_FILE, "it is not what its name says");
  rung_manifest manifest;
  RUNG_TRY(rung_manifest_read(store->host, section->data, section->bytes, error, &manifest));
  const rung_status status = rung_aot_load(device, file, &manifest, o, error, out_template);
  rung_manifest_finish(&manifest);
  return status;
}

static rung_status find(rung_store *store, rung_device *device, const lookup *at, const rung_compile_options *o,
                        rung_error *error, rung_template **out_template) {
  rung_sections *file;
  RUNG_TRY(rung_store_entry_open(store, at->name, RUNG_FILE_TEMPLATE, error, &file));
  rung_error why = {RUNG_OK, ""};
  rung_status status = load(store, device, file, at, o, &why, out_template);
  rung_sections_release(file);
  if (!status) return RUNG_OK;
  if (status == RUNG_OUT_OF_MEMORY)
    rung_store_warn(store, RUNG_AOT_READING, "stored compiles cannot be read: %s", why.message);
  else
    rung_store_entry_bad(store, at->name, &why);
  return rung_fail(error, RUNG_NOT_FOUND, "store: there is no %s", at->name);
}

rung_status rung_store_find(rung_store *store, rung_device *device, const rung_graph *graph,
                            const rung_compile_options *options, rung_error *error, rung_template **out_template) {
  const rung_compile_options o = options ? *options : rung_compile_options_default();
  if (!store || !device || !graph || !out_template)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "store: store, device, graph and out_template are required");
  lookup at;
  RUNG_TRY(look_up(device, graph, &o, error, &at));
  const rung_status status = find(store, device, &at, &o, error, out_template);
  rung_store_count(store, status ? &store->counters.misses : &store->counters.hits, 1);
  return status;
}

static void keep(rung_store *store, rung_template *t, const lookup *at) {
  rung_aot_parts parts;
  rung_section section[RUNG_AOT_PARTS];
  rung_error why = {RUNG_OK, ""};
  if (rung_aot_parts_make(t, NULL, NULL, &why, &parts)) {
    rung_store_warn(store, RUNG_AOT_WRITING, "compiles are not stored: %s", why.message);
    return;
  }
  rung_aot_parts_list(&parts, section);
  rung_store_entry_write(store, at->name, RUNG_FILE_TEMPLATE, at->key, section, RUNG_AOT_PARTS);
  rung_aot_parts_finish(&parts);
}

rung_status rung_store_template(rung_store *store, rung_device *device, const rung_graph *graph,
                                const rung_compile_options *options, rung_error *error, rung_template **out_template) {
  const rung_compile_options o = options ? *options : rung_compile_options_default();
  if (!device || !graph || !out_template)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "store: device, graph and out_template are required");
  if (!store) return rung_template_create(device, graph, &o, error, out_template);
  lookup at;
  RUNG_TRY(look_up(device, graph, &o, error, &at));
  const rung_status found = find(store, device, &at, &o, error, out_template);
  if (found != RUNG_OUT_OF_MEMORY) rung_store_count(store, found ? &store->counters.misses : &store->counters.hits, 1);
  if (found != RUNG_NOT_FOUND) return found;
  RUNG_TRY(rung_template_create(device, graph, &o, error, out_template));
  keep(store, *out_template, &at);
  return RUNG_OK;
}

/* ---- below a cache */

static rung_status level_load(void *self, rung_device *device, const char *name, const rung_graph *graph,
                              const rung_compile_options *options, rung_error *error, rung_template **out_template) {
  (void)name; /* entries are found by what was built */
  if (!graph) return RUNG_NOT_FOUND;
  return rung_store_find(self, device, graph, options, error, out_template);
}

static void level_save(void *self, const char *name, const rung_graph *graph, rung_template *t) {
  lookup at;
  (void)name;
  if (!look_up(t->device, graph, &t->options, NULL, &at)) keep(self, t, &at);
}

void rung_store_below(rung_store *store, rung_cache *cache) {
  cache->below = (rung_cache_level){.self = store, .load = level_load, .save = level_save};
}
