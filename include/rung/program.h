/* SPDX-License-Identifier: MIT
 * Programs and contexts: a template planned for a ceiling, and what one caller runs it with.
 *
 * A program accepts any extents up to its ceiling and costs what the actual ones cost: kernels are told the actual
 * extents at each run; nothing is padded. It is immutable and shared by any number of contexts and threads. A context
 * belongs to one thread at a time.
 */
#ifndef RUNG_PROGRAM_H
#define RUNG_PROGRAM_H

#include <rung/compile.h>
#include <rung/state.h>
#include <rung/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_view rung_view;
typedef struct rung_program rung_program;
typedef struct rung_context rung_context;

/* What binds a program's weight names to values: a store, private values over it, and a generation of both. Any number
 * of views of one store share each weight that neither has set, and one packed form per layout of it. Counted, safe
 * from many threads; a view keeps its store. */
RUNG_API RUNG_CHECKED rung_status rung_view_create(rung_weights *weights, rung_error *error, rung_view **out_view);
RUNG_API void rung_view_retain(rung_view *view);
RUNG_API void rung_view_release(rung_view *view); /* NULL allowed */
/* Bytes of the forms made from what the view binds now; as weights, of source tensors used in place and of values that
 * were set. What views share counts in each of them: rung_weights_memory counts it once. */
RUNG_API rung_memory rung_view_memory(const rung_view *view);

/* Private values: as rung_weights_set, rung_weights_set_range, rung_weights_commit and rung_weights_discard (see there
 * for types, checks and failures), but for this view alone. The first commit of a tensor gives the view a copy of its
 * own, which later commits of the store no longer reach; only forms that are made from the tensor are made anew. */
RUNG_API RUNG_CHECKED rung_status rung_view_set_weight(rung_view *view, const char *name, rung_type type,
                                                       const void *data, uint64_t bytes, rung_error *error);
RUNG_API RUNG_CHECKED rung_status rung_view_set_weight_range(rung_view *view, const char *name, uint64_t offset,
                                                             rung_type type, const void *data, uint64_t bytes,
                                                             rung_error *error);
RUNG_API RUNG_CHECKED rung_status rung_view_commit(rung_view *view, rung_error *error);
RUNG_API void rung_view_discard(rung_view *view);
/* As rung_weights_get, of what the view binds. */
RUNG_API RUNG_CHECKED rung_status rung_view_get_weight(rung_view *view, const char *name, uint64_t offset,
                                                       rung_type type, void *out, uint64_t bytes, rung_error *error);
/* How many generations the view has had: grows by one with each commit of its own or of its store, and with
 * rung_view_share_from and rung_view_copy_from. */
RUNG_API uint64_t rung_view_generation(const rung_view *view);

/* Both make the view bind what `other` binds now, at once and for all programs in use; private values that the view had
 * go. Everything is checked before anything changes. Refused: the view itself, views of different hosts, sets of the
 * view that wait (commit or discard them first), a tensor of the one that the other lacks or that differs in type or
 * extents, a tensor that is not loaded in `other`; sets of `other` that wait are not seen. Failed: nothing changed.
 *
 * share: the view becomes one of the other's store and shares its private values: nothing is copied, forms are those of
 * `other`, and later commits of that store reach the view. A set that either commits later is its own.
 * copy: the view stays with its store and gets private values; later commits of neither store reach it. Tensors of
 * another store are copied (class weights) and packed anew; within one store nothing is, since a value never changes.
 */
RUNG_API RUNG_CHECKED rung_status rung_view_share_from(rung_view *view, rung_view *other, rung_error *error);
RUNG_API RUNG_CHECKED rung_status rung_view_copy_from(rung_view *view, rung_view *other, rung_error *error);

/* Drops the forms made from what the view binds that no context uses now, of other views neither; the others of the
 * store stay (rung_weights_trim drops those, too). */
RUNG_API void rung_view_trim(rung_view *view);

/* ceiling: the largest value of symbols; those not named keep their declared maximum. Above the declared maximum or
 * below the minimum: RUNG_OUT_OF_RANGE. */
RUNG_API RUNG_CHECKED rung_status rung_program_create(rung_template *template_, const rung_binding *ceiling,
                                                      size_t count, rung_error *error, rung_program **out_program);
RUNG_API void rung_program_retain(rung_program *program);
RUNG_API void rung_program_release(rung_program *program);
RUNG_API rung_template *rung_program_template(const rung_program *program); /* what it was made of; borrowed */

/* Slots, in the order of the graph. The names live as long as the program. -1: no such name. */
RUNG_API int rung_program_inputs(const rung_program *program);
RUNG_API int rung_program_outputs(const rung_program *program);
RUNG_API const char *rung_program_input_name(const rung_program *program, int slot);
RUNG_API const char *rung_program_output_name(const rung_program *program, int slot);
RUNG_API int rung_program_find_input(const rung_program *program, const char *name);
RUNG_API int rung_program_find_output(const rung_program *program, const char *name);

/* Bytes that a fresh context needs to run the program at a binding (symbols not named: their ceiling), by class:
 * exactly what will be reserved as heap and committed as pages. state counts `lengths` positions in each of `sequences`
 * sequences. packed and weights are those of the whole view, shared by all its contexts. */
typedef struct rung_lengths {
  int sequences;
  const int64_t *length;           /* positions held by each after the run */
  int64_t capacity, chunk, blocks; /* as in rung_state_options */
} rung_lengths;
RUNG_API RUNG_CHECKED rung_status rung_program_memory(const rung_program *program, const rung_binding *binding,
                                                      size_t count, const rung_lengths *lengths, rung_error *error,
                                                      rung_memory *out_memory);
/* The steps, one a line: kernel, shapes, buffers with offset, size and lifetime (rung_text_free). */
RUNG_API RUNG_CHECKED rung_status rung_program_print(const rung_program *program, rung_error *error, char **out_text,
                                                     size_t *out_bytes);

typedef struct rung_context_options {
  size_t size;     /* sizeof(rung_context_options) */
  int threads;     /* most threads of a run; 0: the template's */
  uint64_t seed;   /* of the generator that random ops take from */
  bool commit_all; /* commit the ceiling at once, so that runs never call the allocator */
  int in_flight;   /* most submitted runs that have not been waited for; 0: RUNG_IN_FLIGHT */
  bool one_output; /* submitted runs share the memory of the outputs that the caller has not bound */
} rung_context_options;
enum { RUNG_IN_FLIGHT = 2, RUNG_MOST_IN_FLIGHT = 64 };
RUNG_API rung_context_options rung_context_options_default(void);
/* view NULL: a graph without weights. state NULL: a graph without states. The context keeps all of them alive. */
RUNG_API RUNG_CHECKED rung_status rung_context_create(rung_template *template_, rung_view *view, rung_state *state,
                                                      const rung_context_options *options, rung_error *error,
                                                      rung_context **out_context);
RUNG_API void rung_context_destroy(rung_context *context);
/* Another context that goes on where this one is: the same template (and with it policy), view and program, the same
 * options, the random generator where it stands, a copy of the states with all they hold (rung_state_clone), the feeds,
 * and the extents that were set. Inputs and outputs are bound anew, results are not taken along, nor is the trace. Both
 * contexts are independent afterwards: for each the next run gives the same bits. Called by the context's thread. */
RUNG_API RUNG_CHECKED rung_status rung_context_clone(const rung_context *context, rung_error *error,
                                                     rung_context **out_context);
/* Makes `program` (of the context's template) the one that runs: builds forms of weights that are missing in the view
 * and grows the arena's reservation. States and the random generator go on. */
RUNG_API RUNG_CHECKED rung_status rung_context_use(rung_context *context, rung_program *program);

/* Binds an input to memory of the caller, which must stay until the run has ended; its extents give the symbols their
 * values. Dense, aligned memory is used in place, other is copied. */
RUNG_API RUNG_CHECKED rung_status rung_context_bind_input(rung_context *context, int slot, const rung_tensor *tensor);
/* The same, but that submitted runs (below) read it where it lies: it must stay until they have been waited for. */
RUNG_API RUNG_CHECKED rung_status rung_context_bind_input_reference(rung_context *context, int slot,
                                                                    const rung_tensor *tensor);
/* Memory of the context for an input of these extents, to be filled before the run; stays valid until rung_context_use
 * or a later call for the same slot. */
RUNG_API RUNG_CHECKED rung_status rung_context_input(rung_context *context, int slot, const int64_t *extent,
                                                     void **out_data);
/* Binds an output to memory of the caller, at least as large as the actual result and dense; NULL: the context's own.
 */
RUNG_API RUNG_CHECKED rung_status rung_context_bind_output(rung_context *context, int slot, const rung_tensor *tensor);
/* The same for buffers that are larger than what is in them: the tensor's extents are the buffer's (at the ceiling,
 * say), the actual ones follow from the symbols, whose values other inputs or rung_context_set_extent give; where
 * neither does, this input's extents count in full. What lies beyond the actual extents is never read in inputs and
 * never written in outputs. (Systems that pad compute those rows from zeros; here there is nothing to compute them
 * from.) Where the outermost axis is the open one, or those outside it are 1, nothing is copied; else rows are gathered
 * into the context's memory before the run, or spread from it behind the run, and rung_context_output has the buffer's
 * strides. A buffer smaller than the actual extents is RUNG_OUT_OF_RANGE at the run. Not for the inputs that say which
 * rows there are. */
RUNG_API RUNG_CHECKED rung_status rung_context_bind_input_ceiling(rung_context *context, int slot,
                                                                  const rung_tensor *tensor);
RUNG_API RUNG_CHECKED rung_status rung_context_bind_output_ceiling(rung_context *context, int slot,
                                                                   const rung_tensor *tensor);
/* The active extent: gives a symbol a value that no input fixes, or that must agree with them. Sticky until cleared
 * with value -1. Above the program's ceiling: RUNG_OUT_OF_RANGE. */
RUNG_API RUNG_CHECKED rung_status rung_context_set_extent(rung_context *context, const char *symbol, int64_t value);

/* Ragged batches: how many new rows each sequence of the state contributes, in the order of the rows. Fills the graph's
 * inputs for offsets, slot and past, and gives the symbols that they fix. Empty sequences are allowed; slots are
 * distinct. */
typedef struct rung_rows {
  int32_t slot;
  int32_t count;
} rung_rows;
RUNG_API RUNG_CHECKED rung_status rung_context_set_rows(rung_context *context, const rung_rows *rows, int32_t count);

/* Runs. After RUNG_OK, outputs hold the results and states have advanced; after anything else, a cancel included, outputs
 * are undefined and every state holds what it held before, bit for bit: lengths of key/value states have not moved (rows
 * that had left a window may be gone), and what the run wrote of dense states is put back. Compiles nothing; within
 * sizes and lengths already reached it calls no allocator. */
RUNG_API RUNG_CHECKED rung_status rung_context_run(rung_context *context);
/* Ends the run that is going on within one step, and every submitted run that has not ended; from any thread, also from a
 * handler of signals. The run returns RUNG_CANCELLED, each submitted one at its ticket. Between two runs there is nothing
 * to end: the next one is not affected. What a GPU has been told to do already it does; only the results are dropped. */
RUNG_API void rung_context_cancel(rung_context *context);
/* Is an output asked for? All are when a program is taken into use. One that is not stays where it was computed (on a
 * device with memory of its own it is not moved), steps that serve nothing else may be left out, and rung_context_output
 * refuses it; the other outputs, states and random numbers are the same. A feed into a state wants its output; one into an
 * input has it computed. From the next run or submit on.
 */
RUNG_API RUNG_CHECKED rung_status rung_context_want_output(rung_context *context, int slot, bool wanted);
/* The result of the last run, or of the submitted run that was waited for last: actual extents, dense; borrowed until the
 * next run or use, of a submitted run until in_flight more have been submitted. */
RUNG_API RUNG_CHECKED rung_status rung_context_output(rung_context *context, int slot, rung_tensor *out_tensor);
/* Feeds: for programs in the "output row to input row" style, which give the new rows of their caches as outputs. Each
 * is a pair of an output and a dense state [batch, capacity, row...] (rank 2 or more; a row may be one number), by name;
 * any number of them, also several of one output. They belong to the context: they stay when another program is used,
 * and clones have them.
 *
 * One call folds the rows of all of them into the states. An output's rows are as many as it has numbers by the state's
 * row, whatever its rank. Everything is checked before the first row moves: RUNG_NOT_FOUND for an unknown output or
 * state, RUNG_OUT_OF_RANGE for a row past the capacity or an entry past the batch, RUNG_SHAPE_MISMATCH for an output
 * with other rows than the call says, RUNG_INVALID_ARGUMENT before a run has succeeded. No entries, or rows of no
 * numbers: nothing is done.
 *
 * An output may be bound to the memory of its state: then a fold is a move inside it, nothing where the row stays, and
 * RUNG_INVALID_ARGUMENT where the two differ in rows for each entry, or the output begins elsewhere inside the state. */
RUNG_API RUNG_CHECKED rung_status rung_context_add_feed(rung_context *context, const char *output, const char *state);
/* Row `source` of each output into row `row` of its state's first entry: batch 1. */
RUNG_API RUNG_CHECKED rung_status rung_context_feed_row(rung_context *context, int64_t source, int64_t row);
/* Outputs [batch, row...] of one row an entry, into row `row` of each. */
RUNG_API RUNG_CHECKED rung_status rung_context_feed_batch(rung_context *context, int64_t batch, int64_t row);
/* Outputs that are whole caches [batch, capacity, row...], whose capacity may be another than the state's: row `source` of
 * each entry into row `row`. */
RUNG_API RUNG_CHECKED rung_status rung_context_feed_cache(rung_context *context, int64_t batch, int64_t capacity,
                                                          int64_t source, int64_t row);
/* Outputs [sequences, row...]: the row of sequence i into row rows[i] of entry i. */
RUNG_API RUNG_CHECKED rung_status rung_context_feed_ragged(rung_context *context, const int64_t *rows,
                                                           int64_t sequences);
/* The other kind: the output as it is, into a state of its rank, behind every run that succeeds. The first two axes may
 * be shorter than the state's: then so many entries and rows are written (the actual ones, where an extent was set), the
 * others stay. Where they do not fit, the run fails and changes nothing. */
RUNG_API RUNG_CHECKED rung_status rung_context_add_whole_feed(rung_context *context, const char *output,
                                                              const char *state);
/* The third kind: the output of a run is the input of the next one, in the device's memory, so that the host need not see
 * it in between. Type and rank are equal and the extents known before the run (RUNG_UNSUPPORTED where it finds them); an
 * input has one feed. The first run finds the input bound, and so does each run in front of which it is bound anew: that
 * one takes what was bound. A run that fails leaves nothing to go on with: the input is "not bound" then, as it is behind
 * rung_context_use. Inputs that say which rows there are cannot be fed. */
RUNG_API RUNG_CHECKED rung_status rung_context_add_input_feed(rung_context *context, const char *output,
                                                              const char *input);
RUNG_API void rung_context_clear_feeds(rung_context *context); /* of all kinds */
RUNG_API int rung_context_feeds(const rung_context *context);  /* how many there are */
/* Gives memory beyond the last binding back. */
RUNG_API void rung_context_trim(rung_context *context);
RUNG_API void rung_context_set_seed(rung_context *context, uint64_t seed);
RUNG_API const char *rung_context_message(const rung_context *context);
/* Bytes this context holds now, by class. */
RUNG_API rung_memory rung_context_memory(const rung_context *context);

/* Submitted runs: begun without waiting, done in their order, each with a ticket that says how it went.
 *
 *   rung_context_add_input_feed(c, "next", "token");   the token that a run makes is what the next one reads
 *   bind token, set rows; rung_context_submit(c, &now);
 *   for (; ...; now = next) {
 *     set rows; rung_context_submit(c, &next);         runs behind `now`, with a token that nobody has seen yet
 *     rung_context_wait(c, now);
 *     rung_context_output(c, 0, &t);                   the token of `now`
 *   }
 *
 * Submitting takes what is bound and set now, as a run does: what can be refused by looking at it is refused here, and
 * nothing is queued. Inputs have been read when the call returns, but for those bound by reference; outputs that the caller
 * has bound are written until the wait, so runs in flight want an output each. The others have memory for each run in
 * flight (or together, one_output: a later run overwrites them), taken from the heap when it is first needed: class load,
 * apart from what rung_program_memory counts. At most in_flight runs may be submitted and not waited for: one more is
 * RUNG_BUSY. Weights are those committed when the run is submitted, lengths of states count its rows at once. A steady loop
 * calls no allocator.
 *
 * On the cpu and ref devices a thread of the process runs it, or whoever waits if none has begun (the first submit may
 * start a thread). On cuda its launches are queued when the call returns, and the wait is for an event behind them; where
 * the host takes part, the call itself runs it (branches, loops, sizes found on the way, steps of the host, dense states
 * that are written, whole feeds, more than 256 KiB of one input, a listener for steps). A listener for steps is called by
 * the thread that runs, and may call rung_context_cancel only.
 *
 * A run that fails says so at its ticket. Later ones run all the same, but for those that go on with what it left: a state,
 * or an output that is fed to them. These end with RUNG_CANCELLED and a message that names the one before, also where they
 * were submitted before the failure was waited for. Then states are as they were before the run that failed.
 *
 * Of the other calls, binding, rung_context_want_output, rung_context_set_rows, rung_context_set_extent,
 * rung_context_output, _message and _cancel do not wait; what is bound or wanted anew is for runs submitted later.
 * rung_context_run first waits as rung_context_sync does, and returns its failure. All others, those of the context's state
 * included, wait until nothing is pending, but for rung_state_length (which counts submitted rows), rung_context_memory and
 * rung_context_feeds; rung_context_input waits where the input is fed. Destroying the context waits too, and keeps alive what
 * runs need until then. Runs that are pending keep a state to one context (RUNG_BUSY for another's submit). Forking while any
 * are is not supported; before it, rung_context_sync. Tickets
 * count from 1. */
RUNG_API RUNG_CHECKED rung_status rung_context_submit(rung_context *context, uint64_t *out_ticket);
/* Until the run has ended; returns its status, with its message in the context. Tickets may be waited for in any order, and
 * again: until in_flight more have been submitted, then it is RUNG_NOT_FOUND. */
RUNG_API RUNG_CHECKED rung_status rung_context_wait(rung_context *context, uint64_t ticket);
/* Waits for all. The status is that of the oldest one that failed and was not waited for; each still has its own. */
RUNG_API RUNG_CHECKED rung_status rung_context_sync(rung_context *context);

/* One event per step run; see rung/trace.h for writing them to a file. */
typedef struct rung_step_info {
  const char *op, *kernel, *label;
  uint64_t start_ns, end_ns;
  uint64_t bytes; /* of the operands */
  int tasks;
  uint32_t step;
} rung_step_info;
typedef void rung_step_fn(void *self, const rung_step_info *info);
RUNG_API void rung_context_on_step(rung_context *context, rung_step_fn *fn, void *self);

#ifdef __cplusplus
}
#endif
#endif
