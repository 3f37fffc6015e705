/* SPDX-License-Identifier: MIT
 * The runtime's objects as its files see them. */
#ifndef RUNG_RUNTIME_RUNTIME_H
#define RUNG_RUNTIME_RUNTIME_H

#include <rung/program.h>
#include <stdatomic.h>

#include "plan/backend.h"
#include "runtime/state.h"
#include "runtime/view.h"

struct rung_device {
  atomic_int references;
  rung_host *host;
  const rung_backend *backend;
  void *self;
  const rung_target *target, *deterministic; /* the second for templates that ask for it; maybe the same */
  rung_pool *pool;
  int threads;
  char name[48];
  _Atomic uint64_t passes;    /* rewrite passes run so far */
  struct rung_tables *tables; /* of winners (runtime/tune); NULL: no kernel has candidates */
};

/* The memory that operands lie in; NULL: the host's. */
static inline const rung_far *rung_device_far(const rung_device *device) { return device->target->far; }

struct rung_template {
  atomic_int references;
  rung_device *device;
  rung_graph *graph; /* optimised and legal; never changes, so any thread may read and plan it */
  rung_compile_options options;
  int threads;
  rung_text explain;
};

static inline const rung_target *rung_template_target(const rung_template *t) {
  return t->options.deterministic ? t->device->deterministic : t->device->target;
}

/* A template of a graph that is optimised already (stored compiles); takes the graph if it succeeds. */
rung_status rung_template_take(rung_device *device, rung_graph *graph, const rung_compile_options *options,
                               const char *explain, size_t explain_bytes, rung_error *error,
                               rung_template **out_template);

/* Bytes of all programs that somebody counts together, for as long as the programs exist. */
typedef struct rung_account {
  atomic_int references;
  _Atomic uint64_t bytes;
  rung_host *host;
} rung_account;
rung_account *rung_account_create(rung_host *host); /* NULL: out of memory */
void rung_account_release(rung_account *account);

struct rung_program {
  atomic_int references;
  rung_account *account; /* NULL: nobody counts */
  uint64_t accounted;    /* bytes there */
  rung_template *template_;
  rung_plan *plan;
  void *image;         /* the backend's */
  uint64_t load_bytes; /* largest slice of source weights held while packing */
  uint64_t staging;    /* far devices: largest form, which is packed here and then written there */
  uint8_t *constant;   /* far devices: the plan's constants, one behind the other */
  uint64_t constant_bytes;
};

/* rung_program_create with a question in between: may a program of this size be? Asked when the plan is made and before
 * the backend prepares it, and again when all of it is there. */
typedef rung_status rung_program_gate(void *self, rung_program *program, rung_error *error);
rung_status rung_program_make(rung_template *template_, const rung_binding *ceiling, size_t count,
                              rung_program_gate *gate, void *self, rung_error *error, rung_program **out_program);
/* What such a program would be a plan of. */
rung_status rung_template_plan(rung_template *template_, const rung_binding *ceiling, size_t count, rung_error *error,
                               rung_plan **out_plan);
/* rung_tune as the device's policy has it for ladders that are warmed: mostly nothing. Tables that cannot be written are
 * said to the log (tune/tune.c). */
rung_status rung_tune_warm(rung_template *template_, const rung_binding *ceiling, size_t count, rung_error *error);
/* Has the backend make ahead what runs with the symbol in [lo, hi] would make on their way (rehearse.c). */
rung_status rung_program_rehearse(rung_program *program, const char *symbol, int64_t lo, int64_t hi, rung_error *error);
uint64_t rung_program_bytes(const rung_program *program);     /* class host */
uint64_t rung_template_bytes(const rung_template *template_); /* class host; graph and dimensions */
void rung_program_account(rung_program *program, rung_account *account, uint64_t bytes);

/* ---- resolved bindings */
enum { RUNG_REMEMBERED = 4 };
typedef struct rung_resolved {
  bool valid;
  uint64_t stamp;      /* when last used */
  uint64_t root_stamp; /* context->root_stamp that the bases were made from */
  uint64_t commit_stamp;
  int64_t symbol[RUNG_MAX_SYMBOLS];
  int64_t *dim;
  int64_t *role;
  int64_t *shape; /* extents and strides of all refs, one after another */
  rung_operand *operand;
  uint8_t *variant;
  uint64_t scratch;
} rung_resolved;

typedef struct rung_bound {
  rung_tensor tensor;
  bool set;          /* extents are known */
  bool owned;        /* data is the context's */
  bool copy;         /* memory of the caller that the run cannot use in place: copied before or behind it */
  bool roomy;        /* the extents are those of a larger buffer */
  bool by_reference; /* submitted runs read it where it lies */
  bool fed;          /* what an output of the run before left in the input's place of the arena */
} rung_bound;

typedef struct rung_kept rung_kept;
typedef struct rung_feed rung_feed;
typedef struct rung_flights rung_flights;
/* Each submitted run has one of these as well, for what is bound, resolved and found by it alone (submit.c); what all runs
 * of a context share is read through `main`. */
struct rung_context {
  rung_context *main; /* itself, but for submitted runs */
  rung_host *host;
  rung_template *template_;
  rung_view *view;
  rung_state *state;
  rung_program *program;
  rung_use *use;        /* the program in the view; NULL: it has no weights */
  uint64_t table_stamp; /* of the table that the roots of weights point by */
  rung_context_options options;
  int threads;
  const rung_far *far; /* the device's; arena, scratch and roots are addresses there */
  /* Of main only, as are the feeds, the generator and the flag of cancel. */
  rung_region arena, scratch;
  rung_region boundary;  /* far devices: inputs and outputs as the caller sees them, at their offsets of the arena */
  void *kept_steps;      /* the backend's */
  rung_flights *flights; /* submitted runs of the program; NULL: there were none */
  _Atomic uint64_t next_ticket, cancelled; /* tickets below the second one are cancelled where they have not ended */
  const rung_context *shown;               /* whose results rung_context_output gives; NULL: nobody's */
  rung_context *newest;                    /* the run that began last */
  uint8_t **root;                          /* by plan root */
  uint32_t roots;
  uint64_t root_stamp, commit_stamp, clock;
  int remembered; /* of these in use */
  rung_resolved resolved[RUNG_REMEMBERED];
  void *resolved_memory;
  size_t resolved_bytes;
  rung_bound *input, *output;
  rung_tensor *result; /* of the last run, by output */
  uint8_t *unwanted;   /* wanted.c: first a byte for each output */
  size_t unwanted_bytes;
  bool leaves_out;
  uint64_t wanted_stamp, left_out_stamp; /* of main: what is wanted or fed has changed; what this one has seen of it */
  int64_t extent[RUNG_MAX_SYMBOLS];      /* set by the caller, RUNG_UNBOUND otherwise */
  rung_kept *kept; /* what the run going on has put aside of dense states; room for each keep step of the plan */
  uint32_t kept_count, kept_room;
  rung_feed *feed; /* outlive programs */
  uint32_t feeds;
  size_t feed_room;
  bool ran; /* the results are those of a run */
  atomic_int cancel;
  uint64_t random[2];
  rung_step_fn *on_step;
  void *on_step_self;
  rung_error error;
};

/* resolve.c */
size_t rung_resolved_bytes(const rung_plan *plan);
void rung_resolved_carve(rung_resolved *resolved, const rung_plan *plan, uint8_t **memory);
/* Dims, shapes, variants from resolved->symbol. */
rung_status rung_resolve(const rung_plan *plan, rung_resolved *resolved, rung_error *error);
void rung_resolve_bases(const rung_plan *plan, rung_resolved *resolved, uint8_t *const *root);
/* Gives symbols their values from an input's extents (binding.c); refuses conflicts. roomy: the extents are those of a
 * larger buffer, so that they only count for symbols that have no value. */
typedef struct rung_solve {
  const rung_dims *dims;
  const char *name; /* of the input */
  int64_t *symbol;  /* RUNG_UNBOUND: open */
  bool roomy;
} rung_solve;
rung_status rung_solve_extents(const rung_solve *solve, const rung_value_type *type, const int64_t *extent,
                               rung_error *error);
/* Does a binding name every symbol that callers bind? */
rung_status rung_check_complete(rung_template *template_, const rung_binding *binding, size_t count, rung_error *error);
/* "a = 3, b = 4": those of the mask that have a value. */
void rung_symbols_text(const rung_dims *dims, uint64_t mask, const int64_t *symbol, char *out, size_t bytes);
/* "what: a, b, c" if symbols that callers bind have no value. */
rung_status rung_check_open(const rung_dims *dims, const int64_t *symbol, const char *what, rung_error *error);
rung_status rung_check_binding(const rung_plan *plan, const int64_t *symbol, rung_error *error);
/* Pages that buffers touch at these dims, in bytes. */
rung_status rung_plan_committed(rung_host *host, const rung_plan *plan, const int64_t *dim, size_t page,
                                rung_error *error, uint64_t *out_bytes);
uint64_t rung_plan_scratch(const rung_plan *plan, const rung_resolved *resolved);
/* Clears the message; refuses contexts without a program (context.c). */
rung_status rung_context_ready(rung_context *context);
static inline bool rung_context_is_far(const rung_context *c) { return c->far != NULL; }
/* Ragged inputs as they are bound (rows.c). */
rung_status rung_context_check_rows(rung_context *context);
rung_status rung_context_check_total(rung_context *context, const rung_resolved *now);
/* Inputs and outputs of the caller (boundary.c). Symbols from what is bound: */
rung_status rung_context_solve(rung_context *context, int64_t *symbol);
/* Do inputs that fix extents, and values set, leave this symbol without a value? False on conflicts. */
bool rung_context_leaves_open(rung_context *context, uint32_t symbol);
rung_status rung_context_check_extents(rung_context *context, const rung_resolved *now);
/* What a block asks of extents that are known, of those that mention a symbol of `about` (0: all) and none of `stale`. */
rung_status rung_context_check_block(rung_context *context, const rung_block *block, const rung_resolved *now,
                                     uint64_t about, uint64_t stale);
/* Larger buffers: in place where the actual rows lie there as the run has them, else beside it. */
rung_status rung_context_place(rung_context *context, const rung_resolved *now);
rung_status rung_context_copy_inputs(rung_context *context, const rung_resolved *now);
rung_status rung_context_copy_outputs(rung_context *context, const rung_resolved *now);
/* Rows of an output from `image`, where they lie dense, into a larger buffer of the caller. */
rung_status rung_context_spread_output(rung_context *context, uint32_t slot, const rung_resolved *now,
                                       const uint8_t *image);
/* Strides of a tensor, dense ones where it has none. */
void rung_buffer_strides(const rung_tensor *tensor, int64_t *out_stride);
/* Where the caller finds an output that it has not bound. */
uint8_t *rung_context_boundary(const rung_context *context, uint32_t root);
/* Elements of `bytes`, both sides in one memory. */
void rung_copy_elements(const rung_far *far, size_t bytes, int rank, const int64_t *extent, uint8_t *to,
                        const int64_t *to_stride, const uint8_t *from, const int64_t *from_stride);
/* One element of an operand in either memory (run.c). */
int64_t rung_far_load_i64(const rung_far *far, const rung_operand *o, int64_t offset);
void rung_far_store_i64(const rung_far *far, const rung_operand *o, int64_t offset, int64_t value);
/* Keep steps, and putting back (keep.c): dense states hold afterwards what they held before the run. */
rung_status rung_context_make_kept(rung_context *context);
void rung_context_drop_kept(rung_context *context);
void rung_context_keep(rung_context *context, const rung_resolved *now, const rung_step *step);
void rung_context_put_back(rung_context *context);
/* Feeds (feed.c): those of whole outputs behind a run, those into inputs of the next one, and all of them for a clone. */
rung_status rung_context_feed_whole(rung_context *context);
/* Into inputs: memory for it, the copies, what the next run then finds bound, and what it does not where this one failed. */
rung_status rung_context_feed_room(rung_context *context, const rung_resolved *now);
void rung_context_feed_inputs(rung_context *context, const rung_resolved *now);
void rung_context_bind_fed_inputs(rung_context *context, const rung_resolved *now);
void rung_context_unfeed_inputs(rung_context *context);
bool rung_context_feeds_input(const rung_context *context, int slot);
bool rung_context_feeds_whole(const rung_context *context);
rung_status rung_context_copy_feeds(rung_context *to, const rung_context *from);
bool rung_context_feeds_output(const rung_context *main, uint32_t slot); /* states or inputs */
bool rung_context_feeds_state(const rung_context *main, uint32_t slot);
/* Outputs that are asked for (wanted.c): by the caller or by a feed into a state. And the steps that are not taken, a byte
 * each; NULL: all are. Settled by the caller's thread in front of a run. */
rung_status rung_context_make_wanted(rung_context *context);
void rung_context_drop_wanted(rung_context *context);
bool rung_context_wants(const rung_context *context, uint32_t slot);
void rung_context_settle_wanted(rung_context *context);
const uint8_t *rung_context_left_out(const rung_context *context);
/* Walks the steps of a run (run.c). */
rung_status rung_run_steps(rung_context *context, rung_resolved *now);

/* ---- one run (execute.c). The rows by sequence, where the graph has key/value states: */
typedef struct rung_run_rows {
  const int32_t *offsets, *slot, *past;
  int64_t n;
} rung_run_rows;
/* Extents, checks and places, by what is bound. */
rung_status rung_run_prepare(rung_context *context, rung_resolved **out_now, rung_run_rows *out_rows);
/* The generation that a run begins with, retained for it; NULL: no weights. */
rung_table *rung_run_begin(rung_context *context);
/* Steps and what they need in front of them; the table is released. */
rung_status rung_run_start(rung_context *context, rung_resolved *now, const rung_run_rows *rows, rung_table *table);
/* Results as rung_context_output gives them. */
void rung_run_results(rung_context *context, const rung_resolved *now);
/* States as they were; `status` is handed on. */
rung_status rung_run_fail(rung_context *context, rung_resolved *now, const rung_run_rows *rows, uint64_t counter,
                          rung_status status);

/* ---- submitted runs (submit.c) */
void rung_context_drop_flights(rung_context *context); /* waits for them */
/* Waits until none is pending, and puts states back where one has failed. Calls that change what runs share begin so. */
void rung_context_quiet(rung_context *context);
/* The same for whichever context has runs pending that use the state. */
void rung_state_quiet(rung_state *state);
uint64_t rung_flights_bytes(const rung_flights *flights); /* of class load */
/* Only while submitted runs are pending is anybody else there (flights.c). */
void rung_context_lock(rung_context *context);
void rung_context_unlock(rung_context *context);
/* Arenas lose pages only here: everyone looks again. */
void rung_context_stale(rung_context *context);
/* Commits what a binding needs; over the budget: a refusal, and the memory of the binding before (commit.c). */
rung_status rung_context_commit(rung_context *context, rung_resolved *now);
/* Does what the caller bound hold an output of `bytes`? */
rung_status rung_context_check_output(rung_context *context, uint32_t slot, int64_t bytes);
uint64_t rung_tensor_bytes(const rung_tensor *tensor); /* UINT64_MAX where they do not fit 64 bits */

#endif
