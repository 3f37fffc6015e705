/* SPDX-License-Identifier: MIT
 * The one table under exact cache, template entries and ladder: key to program, with recency, bytes, a latch for what
 * is being made, and runs under way. What the three add is where a program comes from, and who goes first. */
#ifndef RUNG_RUNTIME_CACHE_ENTRIES_H
#define RUNG_RUNTIME_CACHE_ENTRIES_H

#include <rung/cache.h>

#include "base/thread.h"
#include "runtime/runtime.h"
#include "runtime/view.h"

typedef struct rung_entry {
  uint64_t key;
  uint64_t made, used;  /* clock of the table */
  uint32_t running;     /* runs under way: whoever evicts waits for them */
  uint32_t running_own; /* of these, on contexts of the table */
  bool chosen;          /* while victims are looked for */
  bool left;            /* out of the table; goes when its runs have ended */
  rung_program *program;
  rung_view *view; /* NULL: the first context sees to weights */
  rung_use *use;   /* of the view: forms stay while the entry does */
  uint64_t noted;
  struct rung_entry *next; /* of those that leave */
} rung_entry;

/* What a thread is making. Lives in that thread's frame; it leaves when nobody waits any more. */
typedef struct rung_making {
  struct rung_making *next;
  const void *maker; /* of the thread */
  bool is_template;  /* else the entry of `key` */
  uint64_t key;
  bool done;
  uint32_t waiting;
  rung_status status; /* what those who wait get */
  rung_error error;
  rung_program *program;
  rung_entry *entry; /* NULL: not kept */
  rung_template *template_;
} rung_making;

/* A context of a ladder. */
typedef struct rung_own {
  struct rung_own *next;
  rung_context *context;
  bool busy;
  rung_memory memory; /* when it was last idle */
} rung_own;

/* What lies under memory: a store that keeps templates longer than the process. Asked before anything is built, told
 * afterwards. Both are called without a lock, from any thread.
 *   load   with `graph` NULL first, where the build has a name; then with the graph that was built. RUNG_NOT_FOUND: go
 *          on and compile. Anything else but RUNG_OK is passed on: a store that is damaged says NOT_FOUND.
 *   save   what was compiled; failures are the store's own affair */
typedef struct rung_cache_level {
  void *self;
  rung_status (*load)(void *self, rung_device *device, const char *name, const rung_graph *graph,
                      const rung_compile_options *options, rung_error *error, rung_template **out_template);
  void (*save)(void *self, const char *name, const rung_graph *graph, rung_template *template_);
} rung_cache_level;

enum { RUNG_GONE_KEYS = 256 };

struct rung_cache {
  rung_host *host;
  rung_device *device;
  rung_cache_options options;
  uint64_t large_bytes;
  size_t large_limit;  /* 0: none */
  bool ready;          /* lock and condition are there */
  bool has_template;   /* all entries are of one template */
  bool keeps_template; /* clear leaves it */
  const char *symbol;  /* ladder: for printing */
  rung_build build;    /* has_template */
  rung_compile_options build_compile;
  rung_cache_level below;
  rung_mutex lock;
  rung_cond changed; /* something was made, a run ended, a waiter left */
  /* under the lock */
  rung_template *template_;
  rung_entry **entry; /* by key */
  size_t entries, capacity;
  rung_making *making;
  rung_own *own;
  uint64_t clock, generation; /* of clear: what was begun before is not kept */
  uint64_t runs_now;
  size_t coming, large_coming;          /* past the gate, not in the table yet */
  uint64_t gone[RUNG_GONE_KEYS], gones; /* keys evicted last */
  bool no_compile;
  rung_cache_counters counters;
  rung_account *account; /* bytes of programs that exist */
};

/* ---- table.c */
rung_status rung_entries_init(rung_cache *cache, rung_device *device, const rung_cache_options *options,
                              rung_error *error);
void rung_entries_finish(rung_cache *cache);
/* All entries are of the template that `build` gives (exact.c). */
rung_status rung_entries_keep_build(rung_cache *cache, const rung_build *build, rung_error *error);
/* The place of a key: where it is or belongs. */
bool rung_entries_find(const rung_cache *cache, uint64_t key, size_t *out_at);

/* Makes the program of a key: called without the lock. Passes `gate` on to rung_program_make. */
typedef struct rung_gate {
  rung_cache *cache;
  uint64_t extra; /* bytes beside the program's own: its template */
  bool passed;    /* counted among those coming */
  bool large;
} rung_gate;
rung_status rung_gate_pass(void *self, rung_program *program, rung_error *error);
typedef rung_status rung_make_fn(void *self, rung_gate *gate, uint64_t key, rung_error *error,
                                 rung_program **out_program, rung_view **out_view); /* the view is borrowed */
typedef struct rung_ask {
  uint64_t key;
  rung_make_fn *make; /* NULL: what is missing is not compiled */
  void *self;
  bool warm;
  bool run; /* counts a run of the entry, to be ended by rung_entries_ran */
  bool own; /* the run is on a context of the table */
} rung_ask;
/* *out_entry (with `run`): NULL where the program is not kept. The program is retained for the caller. */
rung_status rung_entries_get(rung_cache *cache, const rung_ask *ask, rung_error *error, rung_program **out_program,
                             rung_entry **out_entry);
void rung_entries_ran(rung_cache *cache, rung_entry *entry, bool own);
/* The template that all entries share, built once. */
rung_status rung_entries_template(rung_cache *cache, bool warm, rung_error *error, rung_template **out_template);

/* ---- evict.c; all under the lock */

/* What was taken out of the table and goes once the lock is free. Zeroed: nothing. */
typedef struct rung_leaving {
  rung_entry *entry;
  rung_own *own;
} rung_leaving;
/* An entry leaves the table: its key is remembered as gone, idle contexts of its program go with it. */
void rung_entries_take_out(rung_cache *cache, size_t at, rung_leaving *leaving);
/* Entries beyond the number that may be kept, never `keep`. */
void rung_entries_to_capacity(rung_cache *cache, const rung_entry *keep, rung_leaving *leaving);
/* Room for `incoming` more bytes. `large`: of a program that counts as large. */
rung_status rung_entries_make_room(rung_cache *cache, uint64_t incoming, bool large, rung_leaving *leaving,
                                   rung_error *error);
/* Bytes under the cap, as far as others than `keep` can give. */
void rung_entries_shrink(rung_cache *cache, const rung_entry *keep, rung_leaving *leaving);
uint64_t rung_entries_bytes(const rung_cache *cache); /* of programs that exist, and noted */
/* Waits for runs of those that leave, lets the lock go and frees them. */
void rung_entries_unlock(rung_cache *cache, rung_leaving *leaving);

/* ---- source.c; without the lock */
/* A template as `build` says: the one given, from below, or built and compiled. */
rung_status rung_source_template(rung_cache *cache, uint64_t key, const rung_build *build, rung_error *error,
                                 rung_template **out_template);
rung_status rung_source_check(const rung_build *build, const rung_compile_options *options, rung_error *error);
/* Every weight is there and every form made; kept in the entry until rung_source_unbind. */
rung_status rung_source_bind(rung_entry *entry, rung_view *view, rung_error *error);
void rung_source_unbind(rung_entry *entry);

#endif
