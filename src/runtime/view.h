/* SPDX-License-Identifier: MIT
 * Views from inside: what is derived of a store's weights, and the tables by which runs find it.
 *
 * Locks: `change` of the store while a generation is made (sets of views, forms packed, commits); the host's for the
 * moment in which it is published. What both guard is written under both and read under either. */
#ifndef RUNG_RUNTIME_VIEW_H
#define RUNG_RUNTIME_VIEW_H

#include <rung/store.h>

#include "formats/sections.h"
#include "plan/plan.h"
#include "weights/store.h"

/* A packed or derived form of weights, keyed by recipe, the values of its sources and layout; one that a body makes
 * also by the hash of the body's canonical encoding. So a form of weights that no set changed serves all generations
 * and all views. */
typedef struct rung_form {
  struct rung_form *next;
  uint64_t references; /* of tables; under the host's lock */
  int32_t recipe;
  int64_t panel;
  const rung_layout *layout; /* NULL: row-major */
  rung_hash body;
  uint32_t sources;
  rung_tensor_value **source; /* retained */
  const uint8_t *data;        /* the region's, or in the file that it was found in */
  rung_region region;
  rung_sections *bank; /* that file, retained; its pages count as packed */
  uint64_t mapped;     /* bytes of them */
  const rung_far *far; /* the memory that data is an address of; NULL: the host's */
  uint8_t *there;      /* data, in far memory */
  uint64_t there_bytes;
} rung_form;
static inline uint64_t rung_form_held(const rung_form *form) {
  return form->region.committed + form->mapped + form->there_bytes;
}

/* A file with packed forms (runtime/cache/aot_forms.c). */
typedef struct rung_bank {
  struct rung_bank *next;
  rung_sections *file;
} rung_bank;

/* A weight that steps read as it lies. */
typedef struct rung_pinned {
  struct rung_pinned *next;
  uint64_t references;
  rung_tensor_value *value; /* retained */
  /* Of a small mapped weight, one that lies where kernels cannot read it, or in far memory; NULL: used in place. */
  uint8_t *copy;
  const rung_far *far;
} rung_pinned;

/* All that is derived of one store, for all its views; attached to the store. What no table points to stays until it is
 * trimmed, or until no view binds the values it was made from. */
typedef struct rung_derived {
  rung_host *host;
  rung_weights *weights; /* whose this is */
  rung_form *form;       /* the lists: under the host's lock */
  rung_pinned *pinned;
  rung_view *view;  /* all of the store; under both locks */
  uint64_t touched; /* bytes of mapped sources read since all were let go; under change */
  /* Under change: */
  rung_bank *bank;
  rung_store *store; /* where forms are looked for and kept; NULL: nowhere */
  bool remembered;   /* what the store knows of the sources has been asked for */
} rung_derived;

/* What the weights and forms of one program are in one generation of a view. Runs keep the table they began with. */
typedef struct rung_table_root {
  const uint8_t *data;
  rung_form *form; /* one of both is held */
  rung_pinned *pinned;
} rung_table_root;
typedef struct rung_table {
  uint64_t references; /* under the host's lock */
  uint64_t stamp;      /* grows with each table of a view */
  rung_derived *derived;
  uint32_t roots;
  rung_table_root root[]; /* by root of the plan; zeros for those of other kinds */
} rung_table;

/* A program that contexts run with a view. */
typedef struct rung_use {
  struct rung_use *next;
  const rung_program *program;
  uint32_t contexts;
  rung_table *table; /* the current one */
  rung_table *fresh; /* the one that a commit makes; the one before, once it is published */
} rung_use;

struct rung_view {
  atomic_int references;
  rung_host *host;
  rung_view *next; /* in the list of the store */
  /* Under both locks: */
  rung_weights *weights;
  rung_derived *derived;
  rung_tensor_value **own; /* private values by tensor, NULL where the store's holds; NULL: none at all */
  rung_use *use;
  uint64_t generation, stamp;
  /* Under change: */
  rung_tensor_value **pending; /* sets that wait for a commit, by tensor; NULL: none */
};

typedef struct rung_form_key {
  const rung_plan_form *want;
  const rung_layout *layout;
  rung_hash body;
  rung_tensor_value **source;
  const rung_far *far; /* where the form is wanted */
} rung_form_key;

/* Which values a table is made from. */
typedef struct rung_sources {
  rung_derived *derived;
  rung_tensor_value *const *own, *const *pending; /* NULL: none */
  bool store_pending;                             /* the store's own sets that wait, too */
} rung_sources;
rung_tensor_value *rung_sources_value(const rung_sources *sources, const rung_tensor_entry *entry);

/* ---- derived.c */
/* What identifies form `index` of a plan; the array of sources is the key's, finish in any case. */
rung_status rung_form_key_make(const rung_sources *sources, const rung_program *program, uint32_t index,
                               rung_error *error, rung_form_key *out_key);
void rung_form_key_finish(const rung_sources *sources, rung_form_key *key);
/* That of a store, made when it is missing. */
rung_status rung_derived_of(rung_weights *weights, rung_error *error, rung_derived **out_derived);
/* Under change. */
rung_status rung_table_make(const rung_sources *sources, const rung_program *program, rung_error *error,
                            rung_table **out_table);
void rung_table_release(rung_table *table); /* not under the host's lock; NULL allowed */
/* What nothing points to: taken out under the host's lock, destroyed without it. */
typedef struct rung_dead {
  rung_form *form;
  rung_pinned *pinned;
} rung_dead;
typedef enum rung_sweep {
  RUNG_SWEEP_UNREACHABLE, /* made from values that no view binds */
  RUNG_SWEEP_VIEW,        /* made from those that the view binds */
  RUNG_SWEEP_ALL
} rung_sweep;
void rung_derived_sweep(rung_derived *derived, rung_sweep which, const rung_view *view, rung_dead *out_dead);
void rung_dead_destroy(rung_derived *derived, rung_dead *dead);
/* Does the view bind every value that this was made from? Under the host's lock. */
bool rung_view_binds(const rung_view *view, rung_tensor_value *const *value, uint32_t count);

/* ---- cache/aot_forms.c: forms in files. All under change. */
typedef struct rung_bank_use {
  bool keep; /* what is made now should be written */
  rung_hash key;
} rung_bank_use;
/* Looks for a file with the forms of a program in the store that the weights have; trouble with it is logged, and then
 * the forms are made. */
rung_status rung_bank_fetch(const rung_sources *sources, const rung_program *program, rung_error *error,
                            rung_bank_use *out_use);
void rung_bank_keep(const rung_sources *sources, const rung_program *program, const rung_table *table,
                    const rung_bank_use *use);
/* Points the form into a file that has it; leaves form->bank NULL if there is none. */
rung_status rung_bank_map(rung_derived *derived, const rung_form_key *key, rung_form *form, rung_error *error);
rung_status rung_bank_add(rung_derived *derived, rung_sections *file, rung_error *error);
void rung_banks_close(rung_derived *derived);

/* ---- view.c */
/* The store of a view, retained, its change lock held. */
rung_weights *rung_view_lock(rung_view *view);
void rung_view_unlock(rung_weights *weights);
/* Of a program of a context: makes what is missing, and counts the context. NULL use: no weights. */
rung_status rung_view_use(rung_view *view, const rung_program *program, rung_error *error, rung_use **out_use);
void rung_view_unuse(rung_view *view, rung_use *use); /* NULL allowed */
/* Bytes of the weights that steps of a program read which get copies in this view (derived.c); part of class weights. */
uint64_t rung_view_copied(rung_view *view, const rung_program *program);
/* The current table, retained. */
rung_table *rung_use_table(rung_host *host, rung_use *use);
/* Tables for the uses of a view over these sources; only for those that a pending set reaches, unless `all`. Failed:
 * none is left. */
rung_status rung_view_freshen(rung_view *view, const rung_sources *sources, bool all, rung_error *error);
/* Swaps the fresh tables in; under both locks. Afterwards rung_view_drop_fresh, without the host's. */
void rung_view_publish(rung_view *view);
void rung_view_drop_fresh(rung_view *view);
/* An array of values by tensor; NULL allowed. */
void rung_view_drop_values(rung_weights *weights, rung_tensor_value **value, size_t count);

/* ---- form.c */
/* Found or made, and counted for one table. Under change. */
rung_status rung_derived_form(rung_derived *derived, const rung_program *program, const rung_form_key *key,
                              rung_error *error, rung_form **out_form);
void rung_form_destroy(rung_derived *derived, rung_form *form);
/* Lets go of what the process still holds of mapped files. Under change. */
void rung_derived_rest(rung_derived *derived);
/* Under change: `bytes` of mapped files are about to be read; all that was read goes first where it would become more
 * than `most`. */
void rung_derived_touch(rung_derived *derived, uint64_t bytes, uint64_t most);
/* Bytes that a form of a plan takes, and what is held beside it while it is made (class load): a slice of its sources,
 * or what its body needs. */
uint64_t rung_form_committed(const rung_plan_form *form, size_t page);
/* What of its source is held at once while a weight that steps read is copied, if it may have to be (derived.c). */
uint64_t rung_weight_load_bytes(const rung_plan *plan, const rung_plan_weight *weight);
/* Moves bytes to new memory of a device, counted under a class; NULL data: only takes the memory. */
rung_status rung_far_place(rung_host *host, const rung_far *far, rung_memory_class class_, const void *data,
                           uint64_t bytes, rung_error *error, uint8_t **out_there);
void rung_far_remove(rung_host *host, const rung_far *far, rung_memory_class class_, uint8_t *there, uint64_t bytes);
/* What a constant of a plan takes there. */
static inline uint64_t rung_constant_room(const rung_plan_constant *constant) {
  return (constant->bytes + 255) / 256 * 256;
}
uint64_t rung_form_load_bytes(const rung_plan *plan, const rung_plan_form *form);

/* The rows of a form while it is packed. */
typedef struct rung_form_rows {
  void *self;
  uint64_t slice;                               /* most bytes of rows that are packed at once, if a panel is not more */
  const uint8_t *(*row)(void *self, int64_t r); /* of the current slice; from any thread */
  /* Rows [first, limit) are next; they have been packed. NULL: nothing to do. */
  void (*begin)(void *self, int64_t first, int64_t limit);
  void (*end)(void *self, int64_t first, int64_t limit);
} rung_form_rows;
enum { RUNG_FORM_SLICE = 4 << 20 }; /* of rows where they lie */
int64_t rung_form_slice_rows(const rung_plan *plan, const rung_plan_form *want, uint64_t most);
/* Packs all rows into the form's region, slice by slice. */
rung_status rung_form_pack(const rung_program *program, const rung_plan_form *want, rung_form *form,
                           const rung_form_rows *rows, rung_error *error);
/* Fills the region of a form that a body makes (form_body.c), and says what that takes besides. */
rung_status rung_form_body_fill(rung_derived *derived, const rung_program *program, const rung_plan_form *want,
                                rung_form *form, rung_error *error);
uint64_t rung_form_body_bytes(const rung_plan *plan, const rung_plan_form *want);

#endif
