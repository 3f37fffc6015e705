/* SPDX-License-Identifier: MIT
 * The store's folder as a whole: its size under the cap, listing, thinning out. Look-ups never come here: an entry is
 * found by its name. The folder is read when this process first writes, and again after every sixteenth of the cap. */
#include <stdlib.h>
#include <string.h>

#include "base/folder.h"
#include "runtime/cache/aot.h"

typedef struct item {
  char name[RUNG_STORE_NAME];
  uint64_t bytes;
  int64_t used_ns;
} item;

typedef struct listing {
  rung_host *host;
  item *item;
  size_t count, capacity;
  uint64_t bytes;
  bool failed;
  const rung_store *store; /* half-written files that nobody writes any more are removed; NULL: left out */
} listing;

static bool ends_with(const char *name, const char *end) {
  const size_t n = strlen(name), m = strlen(end);
  return n >= m && strcmp(name + n - m, end) == 0;
}

/* Only what a store writes: whatever else lies in the folder is not ours. */
static bool is_ours(const char *name) {
  static const char *const ends[] = {".rung", ".pack", ".known", ".part"};
  if (strspn(name, "0123456789abcdef") < 32) return false;
  for (size_t i = 0; i < RUNG_COUNT(ends); i++)
    if (ends_with(name, ends[i])) return true;
  return false;
}

static void sweep(const rung_store *store, const char *name) {
  size_t bytes;
  char *path = store ? rung_store_path(store, name, &bytes) : NULL;
  if (!path) return;
  if (rung_file_is_left_behind(path)) (void)rung_file_remove(path);
  rung_host_free(store->host, RUNG_MEMORY_host, path, bytes);
}

static void take(void *self, const rung_folder_entry *entry) {
  listing *l = self;
  if (!is_ours(entry->name)) return;
  if (ends_with(entry->name, ".part")) {
    sweep(l->store, entry->name);
    return;
  }
  if (strlen(entry->name) >= RUNG_STORE_NAME) return;
  void *array = l->item;
  if (!rung_host_grow(l->host, &array, &l->capacity, l->count + 1, sizeof *l->item)) {
    l->failed = true;
    return;
  }
  l->item = array;
  item *i = &l->item[l->count++];
  strcpy(i->name, entry->name);
  i->bytes = entry->bytes;
  i->used_ns = entry->used_ns;
  l->bytes += entry->bytes;
}

static rung_status read_folder(const rung_store *store, bool clean, rung_error *error, listing *out) {
  *out = (listing){.host = store->host, .store = clean && !store->options.read_only ? store : NULL};
  rung_status status = rung_folder_scan(store->host, store->folder, take, out, error);
  if (!status && out->failed) status = rung_fail(error, RUNG_OUT_OF_MEMORY, "store: out of memory");
  return status;
}

static void listing_finish(listing *l) {
  rung_host_free(l->host, RUNG_MEMORY_host, l->item, l->capacity * sizeof *l->item);
}

static int by_use(const void *a, const void *b) {
  const item *x = a, *y = b;
  if (x->used_ns != y->used_ns) return x->used_ns < y->used_ns ? -1 : 1;
  return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) { return strcmp(((const item *)a)->name, ((const item *)b)->name); }

/* Removes what was used longest ago until `most` bytes are left. */
static uint64_t thin_out(const rung_store *store, listing *l, uint64_t most) {
  uint64_t removed = 0;
  if (l->count) qsort(l->item, l->count, sizeof *l->item, by_use);
  for (size_t i = 0; i < l->count && l->bytes > most; i++) {
    size_t bytes;
    char *path = rung_store_path(store, l->item[i].name, &bytes);
    if (path && rung_file_remove(path)) {
      l->bytes -= l->item[i].bytes;
      removed++;
    }
    rung_host_free(store->host, RUNG_MEMORY_host, path, bytes);
  }
  return removed;
}

void rung_store_wrote(rung_store *store, uint64_t bytes) {
  rung_mutex_lock(&store->lock);
  store->counters.written++;
  store->held += bytes;
  store->since += bytes;
  const uint64_t cap = store->options.cap;
  const bool look = cap && (!store->looked || store->held > cap || store->since > cap / 16);
  if (look) { /* other threads wait: two that thin out at once would take too much */
    listing l;
    if (!read_folder(store, true, NULL, &l)) {
      /* A tenth less than allowed, so that a full store is not looked at for every entry. */
      if (l.bytes > cap) store->counters.evicted += thin_out(store, &l, cap - cap / 10);
      store->held = l.bytes;
      store->since = 0;
      store->looked = true;
    }
    listing_finish(&l);
  }
  rung_mutex_unlock(&store->lock);
}

rung_status rung_store_trim(rung_store *store, uint64_t bytes, rung_error *error, uint64_t *out_removed) {
  if (!store) return rung_fail(error, RUNG_INVALID_ARGUMENT, "store is required");
  if (store->options.read_only) return rung_fail(error, RUNG_INVALID_ARGUMENT, "store: it is read-only");
  listing l;
  rung_mutex_lock(&store->lock);
  rung_status status = read_folder(store, true, error, &l);
  uint64_t removed = 0;
  if (!status) {
    removed = thin_out(store, &l, bytes);
    store->counters.evicted += removed;
    store->held = l.bytes;
    if (l.bytes > bytes) status = rung_fail(error, RUNG_IO, "store: %s: entries could not be removed", store->folder);
  } else if (status == RUNG_NOT_FOUND) {
    status = RUNG_OK;
  }
  rung_mutex_unlock(&store->lock);
  listing_finish(&l);
  if (!status && out_removed) *out_removed = removed;
  return status;
}

/* ---- listing */

static const char *kind_name(rung_file_kind kind) {
  static const char *const names[] = {"", "template", "pack", "known"};
  return names[kind];
}

/* Everything that opening does not look at. */
static rung_status check_whole(rung_sections *file, rung_error *error) {
  for (uint32_t i = 0; i < rung_sections_count(file); i++) RUNG_TRY(rung_sections_check(file, i, error));
  return RUNG_OK;
}

static rung_status examine(rung_host *host, const char *path, bool whole, rung_error *error, rung_manifest *manifest,
                           rung_file_kind *out_kind) {
  const rung_source source = rung_source_path(path);
  rung_sections *file;
  RUNG_TRY(rung_sections_open(host, &source, error, &file));
  rung_status status = whole ? check_whole(file, error) : RUNG_OK;
  const rung_section *section = rung_sections_find(file, RUNG_SECTION_MANIFEST);
  *out_kind = rung_sections_kind(file);
  if (!status && section) status = rung_manifest_read(host, section->data, section->bytes, error, manifest);
  rung_sections_release(file);
  return status;
}

static rung_status list_one(rung_store *store, const item *i, bool whole, rung_store_list_fn *fn, void *self,
                            rung_error *error) {
  size_t bytes;
  char *path = rung_store_path(store, i->name, &bytes);
  if (!path) return rung_fail(error, RUNG_OUT_OF_MEMORY, "store: out of memory");
  rung_manifest manifest = {.tag = 0};
  rung_error why = {RUNG_OK, ""};
  rung_file_kind kind = RUNG_FILE_TEMPLATE;
  rung_status status = examine(store->host, path, whole, &why, &manifest, &kind);
  rung_host_free(store->host, RUNG_MEMORY_host, path, bytes);
  if (status == RUNG_NOT_FOUND) return RUNG_OK; /* another process was quicker */
  if (status == RUNG_OUT_OF_MEMORY) return rung_fail(error, status, "%s", why.message);
  const rung_store_entry entry = {.name = i->name,
                                  .kind = status ? "damaged" : kind_name(kind),
                                  .bytes = i->bytes,
                                  .used_ns = i->used_ns,
                                  .device = manifest.device ? manifest.device : "",
                                  .problem = why.message};
  fn(self, &entry);
  rung_manifest_finish(&manifest);
  return RUNG_OK;
}

rung_status rung_store_list(rung_store *store, bool whole, rung_store_list_fn *fn, void *self, rung_error *error) {
  if (!store || !fn) return rung_fail(error, RUNG_INVALID_ARGUMENT, "store and fn are required");
  listing l;
  rung_status status = read_folder(store, false, error, &l);
  if (status == RUNG_NOT_FOUND) status = RUNG_OK;
  if (l.count) qsort(l.item, l.count, sizeof *l.item, by_name);
  for (size_t i = 0; i < l.count && !status; i++) status = list_one(store, &l.item[i], whole, fn, self, error);
  listing_finish(&l);
  return status;
}

typedef struct verification {
  rung_store *store;
  uint64_t removed;
} verification;

static void remove_damaged(void *self, const rung_store_entry *entry) {
  verification *v = self;
  if (strcmp(entry->kind, "damaged") != 0) return;
  size_t bytes;
  char *path = rung_store_path(v->store, entry->name, &bytes);
  if (path && rung_file_remove(path)) v->removed++;
  rung_host_free(v->store->host, RUNG_MEMORY_host, path, bytes);
  rung_store_count(v->store, &v->store->counters.damaged, 1);
  rung_host_log(v->store->host, RUNG_LOG_WARNING, "stored compile %s removed: %s", entry->name, entry->problem);
}

rung_status rung_store_verify(rung_store *store, rung_error *error, uint64_t *out_removed) {
  if (!store) return rung_fail(error, RUNG_INVALID_ARGUMENT, "store is required");
  if (store->options.read_only) return rung_fail(error, RUNG_INVALID_ARGUMENT, "store: it is read-only");
  verification v = {.store = store};
  RUNG_TRY(rung_store_list(store, true, remove_damaged, &v, error));
  listing l; /* what a process left behind when it died */
  const rung_status status = read_folder(store, true, error, &l);
  listing_finish(&l);
  if (status && status != RUNG_NOT_FOUND) return status;
  if (out_removed) *out_removed = v.removed;
  return RUNG_OK;
}
