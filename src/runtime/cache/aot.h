/* SPDX-License-Identifier: MIT
 * Stored compiles inside: keys, the manifest, files of templates, the store's folder. docs/formats.md describes the
 * files. */
#ifndef RUNG_RUNTIME_CACHE_AOT_H
#define RUNG_RUNTIME_CACHE_AOT_H

#include <rung/store.h>

#include "formats/sections.h"
#include "runtime/runtime.h"

/* ---- keys (aot_key.c) */

/* Portable: what is compiled, not for which machine. */
rung_status rung_aot_key(const rung_device *device, const rung_graph *graph, const rung_compile_options *options,
                         rung_error *error, rung_hash *out_key);
/* Five bytes, in keys and manifests. */
void rung_aot_put_precision(rung_text *out, const rung_precision *precision);
/* What of a device decides how a graph is optimised: its kernel rows and layouts. The same entry may be there for
 * several of them. */
rung_status rung_aot_tag(const rung_device *device, rung_error *error, uint64_t *out_tag);

/* The identity of a view's weight (aot_forms.c). */
rung_status rung_aot_identity(rung_view *view, const char *name, rung_error *error, rung_hash *out_identity);

/* ---- manifest (aot_manifest.c) */

typedef struct rung_aot_tensor {
  const char *name;
  rung_type type;
  int rank;
  const char *extents; /* as text; those of weights as numbers as well */
  int64_t extent[RUNG_MAX_RANK];
  bool known; /* a weight whose identity is known */
  rung_hash identity;
} rung_aot_tensor;

typedef struct rung_manifest {
  rung_arena arena;
  const char *version, *device, *target;
  uint64_t tag;
  rung_compile_options options;
  rung_binding *ceiling;
  rung_aot_tensor *tensor[3]; /* by rung_compiled_kind */
  uint32_t ceilings, tensors[3];
  rung_memory memory;
} rung_manifest;
/* program NULL: no ceiling, no memory report. view NULL: weights have no identities. Under the template's lock. */
rung_status rung_manifest_write(const rung_template *t, const rung_program *program, rung_view *view, uint64_t tag,
                                rung_error *error, rung_text *out);
/* Which of the manifest's weights a name is. */
uint32_t rung_manifest_weight(const rung_graph *graph, const char *name);
rung_status rung_manifest_read(rung_host *host, const uint8_t *data, uint64_t bytes, rung_error *error,
                               rung_manifest *out);
void rung_manifest_finish(rung_manifest *manifest); /* zeroed allowed */

/* ---- files of templates (aot_file.c) */

/* The sections of a template, in memory until the file is written. */
typedef struct rung_aot_parts {
  rung_text graph, notes, explain, manifest;
} rung_aot_parts;
rung_status rung_aot_parts_make(rung_template *t, const rung_program *program, rung_view *view, rung_error *error,
                                rung_aot_parts *out);
enum { RUNG_AOT_PARTS = 4 };
void rung_aot_parts_list(const rung_aot_parts *parts, rung_section out_section[RUNG_AOT_PARTS]);
void rung_aot_parts_finish(rung_aot_parts *parts);
/* The template that a file holds. options NULL: those of the manifest. */
rung_status rung_aot_load(rung_device *device, const rung_sections *file, const rung_manifest *manifest,
                          const rung_compile_options *options, rung_error *error, rung_template **out_template);

/* ---- packed forms in files (aot_forms.c) */

/* Looks at every checksum, by all threads. */
rung_status rung_aot_check(rung_sections *file, const rung_template *t, rung_error *error);
/* A section for each form that a program has in a table; room for one a root. Under change. */
rung_status rung_aot_list_forms(const rung_sources *sources, const rung_program *program, const rung_table *table,
                                rung_error *error, rung_section *out_section, uint32_t *out_count);

/* ---- what is remembered of other files (aot_known.c) */
bool rung_known_checked(rung_store *store, const rung_stamp *stamp);
void rung_known_keep_checked(rung_store *store, const rung_stamp *stamp);
/* Of the tensors of a store of weights: taken from what is remembered, and remembered. Under change. */
void rung_known_sources(rung_derived *derived);
void rung_known_keep_sources(rung_derived *derived);

/* ---- weights in compiled files (aot_packed.c) */

/* The weights of a program as a view has them: those read as they lie, then forms. Both live as long as the use. */
typedef struct rung_aot_weights {
  rung_use *use;
  rung_table *table;
  rung_section *section;
  uint32_t count, capacity;
} rung_aot_weights;
rung_status rung_aot_weights_list(rung_program *program, rung_view *view, rung_error *error, rung_aot_weights *out);
void rung_aot_weights_finish(rung_view *view, rung_aot_weights *weights); /* zeroed allowed */
/* The weights that a file holds: those that lie in it, the others known by what they are. */
rung_status rung_aot_weights_open(rung_sections *file, const rung_manifest *manifest, rung_host *host,
                                  rung_error *error, rung_weights **out_weights);

/* ---- the folder (aot_store.c, aot_folder.c) */

/* Kinds of trouble: each is logged once a store. */
typedef enum rung_aot_trouble {
  RUNG_AOT_READING,
  RUNG_AOT_WRITING,
  RUNG_AOT_DAMAGED,
  RUNG_AOT_TROUBLES
} rung_aot_trouble;

struct rung_store {
  atomic_int references;
  rung_host *host;
  rung_store_options options;
  char *folder;
  size_t folder_bytes;
  rung_mutex lock;
  rung_store_counters counters; /* under lock */
  bool warned[RUNG_AOT_TROUBLES];
  bool looked;    /* at the folder, for its size */
  uint64_t held;  /* bytes of all files, as far as is known */
  uint64_t since; /* bytes written since the folder was looked at */
};

/* folder/key[-tag].suffix. Freed with rung_host_free(host, class host, path, *out_bytes). */
char *rung_store_path(const rung_store *store, const char *name, size_t *out_bytes);
void rung_store_count(rung_store *store, uint64_t *counter, uint64_t more);
RUNG_PRINTF(3, 4) void rung_store_warn(rung_store *store, rung_aot_trouble trouble, const char *format, ...);
/* Opens an entry and says that it was used. NOT_FOUND: there is none that is good, or it cannot be read now; a bad one
 * is removed. */
rung_status rung_store_entry_open(rung_store *store, const char *name, rung_file_kind kind, rung_error *error,
                                  rung_sections **out_file);
/* An entry turned out to be bad. */
void rung_store_entry_bad(rung_store *store, const char *name, const rung_error *why);
/* Writes one, if the store may; trouble is logged, not returned. */
void rung_store_entry_write(rung_store *store, const char *name, rung_file_kind kind, rung_hash key,
                            rung_section *section, uint32_t count);
enum { RUNG_STORE_NAME = 80 };
/* A file of so many bytes was written: keeps the cap (aot_folder.c). */
void rung_store_wrote(rung_store *store, uint64_t bytes);

#endif
