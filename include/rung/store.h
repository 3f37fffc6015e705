/* SPDX-License-Identifier: MIT
 * Stored compiles: what compiling and packing made, kept in files, so that the next start does neither.
 *
 *   a store      a folder of entries that look after themselves: rung_store_template looks there before it compiles
 *   by hand      rung_compiled_write makes one file of a program, rung_compiled_open gives it back
 *
 * A file holds an optimised graph with its dimensions still open, the ceiling it was planned for, a manifest, and, if
 * asked, the packed forms of its weights, which are then mapped and used in place. Kernels are chosen when a file is
 * loaded, not when it is written, so one made on another machine runs wherever there are kernels for what it holds. A
 * cold and a warm start give the same bits. docs/formats.md describes the files.
 *
 * Damage. Every byte of a file is under a checksum. Opening checks the head and everything small; packed forms and
 * weights are checked when they are first used. In a store that check is made once: it is remembered for the device,
 * inode, size and modification time of the file, so that later starts do not read what they do not need.
 */
#ifndef RUNG_STORE_H
#define RUNG_STORE_H

#include <rung/cache.h>
#include <rung/program.h>
#include <rung/source.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- store */

/* A folder with one file an entry, named after its key. Any number of processes and threads may use one folder at once:
 * files are written beside their name and renamed, so that each is there whole or not at all. Counted.
 *
 * A store never makes a call fail that would succeed without it: an entry that is damaged, or of another version, is
 * removed and made anew; a folder that is full, read-only or gone means that nothing is kept. Each kind of trouble is
 * logged once, as a warning. */
typedef struct rung_store rung_store;

typedef struct rung_store_options {
  size_t size;    /* sizeof(rung_store_options) */
  uint64_t cap;   /* bytes that all entries may take; those used longest ago go. 0: no cap. Several processes that
                     write at once may pass it by a sixteenth of it each, until the next of them looks */
  bool packed;    /* keep packed forms of weights too: as large as the weights, and nothing is packed any more */
  bool read_only; /* look, but write and remove nothing */
} rung_store_options;
RUNG_API rung_store_options rung_store_options_default(void); /* packed, 8 GiB */

/* The folder is made with those above it when something is first written. Fails for bad arguments and without memory
 * only. */
RUNG_API RUNG_CHECKED rung_status rung_store_open(rung_host *host, const char *folder,
                                                  const rung_store_options *options, rung_error *error,
                                                  rung_store **out_store);
RUNG_API void rung_store_retain(rung_store *store);
RUNG_API void rung_store_release(rung_store *store); /* NULL allowed */

/* The key of what would be compiled: 32 hexadecimal digits, terminated. A hash of the graph's canonical encoding, the
 * options, the kind of device and the versions of format and compiler; the same on every run and machine. Threads,
 * labels, weights' values and the order in which symbols were made are not part of it. */
RUNG_API RUNG_CHECKED rung_status rung_store_key(const rung_device *device, const rung_graph *graph,
                                                 const rung_compile_options *options, rung_error *error,
                                                 char out_key[33]);
/* rung_template_create, but for what is in the store already. `store` NULL: just that. */
RUNG_API RUNG_CHECKED rung_status rung_store_template(rung_store *store, rung_device *device, const rung_graph *graph,
                                                      const rung_compile_options *options, rung_error *error,
                                                      rung_template **out_template);
/* The same without compiling: RUNG_NOT_FOUND for what is not there. */
RUNG_API RUNG_CHECKED rung_status rung_store_find(rung_store *store, rung_device *device, const rung_graph *graph,
                                                  const rung_compile_options *options, rung_error *error,
                                                  rung_template **out_template);

/* From now on, packed forms of these weights (all views of the store of weights) are looked for here before they are
 * made, and kept here when they had to be made, if options.packed says so. They are found by the content of the
 * weights, which is read once for that and then remembered for the file that it lies in. The store of compiles stays
 * alive. */
RUNG_API RUNG_CHECKED rung_status rung_store_attach(rung_store *store, rung_weights *weights, rung_error *error);

/* Puts the store below a cache (or a ladder's, rung_ladder_cache): look-up order is memory, disk, build. Before the cache
 * is used; the store must outlive it. */
RUNG_API void rung_store_below(rung_store *store, rung_cache *cache);

typedef struct rung_store_counters {
  uint64_t hits, misses; /* look-ups of templates and of packed forms */
  uint64_t written;      /* files */
  uint64_t write_failures;
  uint64_t damaged;       /* entries refused, and removed where that was possible */
  uint64_t evicted;       /* for the cap */
  uint64_t forms_mapped;  /* packed forms that were not made but found */
  uint64_t hashed_bytes;  /* of weights, to know what they are: 0 for files seen before */
  uint64_t checked_bytes; /* of packed forms, to know that they are whole: 0 for files checked before */
} rung_store_counters;
RUNG_API void rung_store_get_counters(const rung_store *store, rung_store_counters *out_counters);

typedef struct rung_store_entry {
  const char *name; /* of the file; for the call only, as all of this */
  const char *kind; /* "template", "pack", "known" (what is remembered of other files), "damaged" */
  uint64_t bytes;
  int64_t used_ns;     /* wall clock: when it was last used */
  const char *device;  /* of templates: what it was compiled on, "cpu (avx512)"; else "" */
  const char *problem; /* of damaged ones */
} rung_store_entry;
typedef void rung_store_list_fn(void *self, const rung_store_entry *entry);
/* Every entry, in the order of names. whole: reads and checks all of each, else only what opening checks. */
RUNG_API RUNG_CHECKED rung_status rung_store_list(rung_store *store, bool whole, rung_store_list_fn *fn, void *self,
                                                  rung_error *error);
/* Removes what is damaged, of another version, or was left behind by a process that died; reads everything. */
RUNG_API RUNG_CHECKED rung_status rung_store_verify(rung_store *store, rung_error *error, uint64_t *out_removed);
/* Removes what was used longest ago until at most `bytes` are left; 0: everything. A folder that is not there: nothing
 * to do. */
RUNG_API RUNG_CHECKED rung_status rung_store_trim(rung_store *store, uint64_t bytes, rung_error *error,
                                                  uint64_t *out_removed);

/* ---- by hand */

/* Writes a program: its template, its ceiling, its manifest. view NULL: no weights, whoever opens the file brings them.
 * Else the file also holds the packed forms and the weights that are used as they lie, and needs nothing else; forms
 * that are missing in the view are made. The same program and weights give the same bytes. Fails as writing a file can.
 */
RUNG_API RUNG_CHECKED rung_status rung_compiled_write(rung_program *program, rung_view *view, const char *path,
                                                      rung_error *error);

/* Belongs to one thread at a time; templates, programs and views made of it may be shared. */
typedef struct rung_compiled rung_compiled;
/* Opens such a file, an entry of a store as well, for a device: one of another kind is RUNG_UNSUPPORTED, as is a graph
 * that this device has no kernels for, which says what is missing. Damage is RUNG_CORRUPT_FILE with the offset. */
RUNG_API RUNG_CHECKED rung_status rung_compiled_open(rung_device *device, const rung_source *source, rung_error *error,
                                                     rung_compiled **out_compiled);
RUNG_API void rung_compiled_release(rung_compiled *compiled); /* NULL allowed; what was made of it lives on */
RUNG_API rung_template *rung_compiled_template(const rung_compiled *compiled); /* borrowed */
/* Plans for the ceiling that the file has. */
RUNG_API RUNG_CHECKED rung_status rung_compiled_program(const rung_compiled *compiled, rung_error *error,
                                                        rung_program **out_program);
/* A view of `weights` that takes packed forms from the file where the weights are those that they were made from. NULL:
 * of the weights in the file. Reads the packed forms once to check them. */
RUNG_API RUNG_CHECKED rung_status rung_compiled_view(rung_compiled *compiled, rung_weights *weights, rung_error *error,
                                                     rung_view **out_view);

typedef struct rung_compiled_info {
  const char *device;  /* "cpu (avx512)": where it was compiled; all texts live as long as the object */
  const char *version; /* of the library that wrote it */
  char key[33];
  rung_quant quant;
  rung_precision precision;
  bool deterministic;
  bool packed;                 /* holds its weights */
  const rung_binding *ceiling; /* symbols planned for less than their declared maximum */
  size_t ceilings;
  size_t inputs, outputs, weights;
  rung_memory memory; /* at the ceiling, without states */
} rung_compiled_info;
RUNG_API void rung_compiled_get_info(const rung_compiled *compiled, rung_compiled_info *out_info);
typedef enum rung_compiled_kind { RUNG_COMPILED_INPUT, RUNG_COMPILED_OUTPUT, RUNG_COMPILED_WEIGHT } rung_compiled_kind;
typedef struct rung_compiled_tensor {
  const char *name;
  rung_type type;
  const char *extents; /* "rows,576" */
  char hash[33];       /* of a weight: type, extents and content; "" where it is not known */
} rung_compiled_tensor;
/* False if there is no such index. */
RUNG_API bool rung_compiled_at(const rung_compiled *compiled, rung_compiled_kind kind, size_t index,
                               rung_compiled_tensor *out_tensor);

#ifdef __cplusplus
}
#endif
#endif
