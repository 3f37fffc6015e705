/* SPDX-License-Identifier: MIT
 * Caches of compiled sizes. On the CPU one program runs any size up to its ceiling at the cost of that size, so most
 * callers need none of this: they make one program with a large ceiling and keep it (rung/program.h). Caches are for
 * graphs that differ from size to size, for callers whose key is one concrete shape, and for devices that want one
 * program per range of sizes.
 *
 *   rung_cache    a program per key. Either every key has a graph of its own (rung_cache_get_or_compile), or all are
 *                 one template planned for another binding (rung_cache_create_template, rung_cache_specialise)
 *   rung_ladder   a program per range of sizes, all of one template; it can run them as well
 *
 * Programs are counted: one that was evicted lives on while a context runs it. Everything here may be used from many
 * threads at once; threads that ask for one missing key at once compile it once. What a builder or a compile refuses
 * changes nothing. A run (rung_context_run) never compiles: only the calls here do, and not with `no_compile`.
 */
#ifndef RUNG_CACHE_H
#define RUNG_CACHE_H

#include <rung/program.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_cache rung_cache;
typedef struct rung_ladder rung_ladder;

/* ---- what is compiled */

/* Fills an empty graph. Errors of the graph are found by the caller of the builder; a status other than RUNG_OK is
 * passed on, with the message written to `error`. `key` is the one that was asked for; 0 where one graph serves all
 * keys. Called without a lock, by one of the threads that asked. It may not have the cache that called it compile
 * anything (RUNG_BUSY): it could wait for itself. */
typedef rung_status rung_build_fn(void *self, uint64_t key, rung_graph *graph, rung_error *error);

/* One of fn, graph and template_; the rest may stay zero. */
typedef struct rung_build {
  size_t size; /* sizeof(rung_build) */
  rung_build_fn *fn;
  void *self;
  const rung_graph *graph;  /* as it stands, composite ops and all; read during the call only */
  rung_template *template_; /* compiled already; kept alive */
  /* NULL: those of the cache. Its `quant` and `precision` must be the cache's: one policy holds for all that it compiles. */
  const rung_compile_options *compile;
  /* What will bind the weights. Compiling then also looks for every weight and makes every form, so that a weight that
   * is missing or not loaded is refused here and no run has to wait. Kept alive with the program. NULL: the first
   * context does that. */
  rung_view *view;
  const char *name; /* what a store below the cache may know the graph by without building it; NULL: nothing */
} rung_build;
RUNG_API rung_build rung_build_default(void);

/* ---- bindings */

/* Names with one meaning, which callers, model families and importers agree on: `batch` and `seq` where sequences have
 * equal lengths, `rows` (of all sequences together) and `sequences` in ragged graphs. A caller with equal lengths gives
 * rows = batch*seq. Symbols that a step of the graph binds may not have these names; those that the library makes up
 * are called s1, s2 ... and never collide with one in use. */
#define RUNG_SYMBOL_BATCH "batch"
#define RUNG_SYMBOL_SEQ "seq"
#define RUNG_SYMBOL_ROWS "rows"
#define RUNG_SYMBOL_SEQUENCES "sequences"

/* An input or output of one run. name NULL: the slot of its place in the list. */
typedef struct rung_io {
  const char *name;
  rung_tensor tensor;
  bool ceiling; /* tensor.extent are those of a larger buffer: see rung_context_bind_input_ceiling */
} rung_io;

/* The value of every symbol that the extents of `inputs` fix; each input may leave any of its own open as long as all
 * of them together fix them. Inputs with `ceiling` fix nothing. Refused: two inputs that disagree (symbol and both
 * values), an extent that leaves a remainder (input and remainder), symbols that are still open (all of them named), a
 * value outside a symbol's declared range. out_binding has room for RUNG_MAX_SYMBOLS; names live as long as the
 * template. */
RUNG_API RUNG_CHECKED rung_status rung_template_bind(rung_template *template_, const rung_io *inputs, size_t count,
                                                     rung_error *error, rung_binding *out_binding, size_t *out_count);
/* A program for this binding and all below it: rung_program_create, except that every symbol that callers bind must be
 * named. Plans; runs no rewrite pass. */
RUNG_API RUNG_CHECKED rung_status rung_template_specialise(rung_template *template_, const rung_binding *binding,
                                                           size_t count, rung_error *error, rung_program **out_program);

/* ---- cache */

typedef enum rung_evict_order {
  RUNG_EVICT_LRU, /* least recently used first */
  RUNG_EVICT_FIFO /* oldest first; a hit changes nothing */
} rung_evict_order;

typedef struct rung_cache_options {
  size_t size;    /* sizeof(rung_cache_options) */
  size_t entries; /* most programs, at least 1; default 16 */
  uint64_t bytes; /* most bytes of programs, see rung_cache_counters; 0: no cap */
  rung_evict_order order;
  rung_compile_options compile; /* for all of them */
  bool no_compile;              /* what is missing is RUNG_NOT_COMPILED */
} rung_cache_options;
RUNG_API rung_cache_options rung_cache_options_default(void);

/* options NULL: defaults. entries 0: RUNG_INVALID_ARGUMENT. */
RUNG_API RUNG_CHECKED rung_status rung_cache_create(rung_device *device, const rung_cache_options *options,
                                                    rung_error *error, rung_cache **out_cache);
/* A cache whose programs are all of one template, which is built when first needed: at most once, until
 * rung_cache_clear. What `build` points to must live until then; its view is kept. */
RUNG_API RUNG_CHECKED rung_status rung_cache_create_template(rung_device *device, const rung_build *build,
                                                             const rung_cache_options *options, rung_error *error,
                                                             rung_cache **out_cache);
/* No call may be under way. Programs that were given out live on. NULL allowed. */
RUNG_API void rung_cache_destroy(rung_cache *cache);

/* The program of a key, compiled by `build` if it is missing. `build` NULL: RUNG_NOT_COMPILED then. *out_program is the
 * caller's to release; contexts for it are made with rung_program_template. A hit changes recency only. A miss
 * compiles, evicts, and then publishes; with a cap on bytes it plans, evicts what is in the way, and then allocates.
 * What cannot fit is RUNG_OVER_BUDGET and evicts nothing: programs that contexts hold are not given back by evicting
 * them. */
RUNG_API RUNG_CHECKED rung_status rung_cache_get_or_compile(rung_cache *cache, uint64_t key, const rung_build *build,
                                                            rung_error *error, rung_program **out_program);
/* For a cache made with a template: the program planned for `binding`. Every symbol that callers bind is named, in any
 * order. A key that is there with another binding is RUNG_INVALID_ARGUMENT. */
RUNG_API RUNG_CHECKED rung_status rung_cache_specialise(rung_cache *cache, uint64_t key, const rung_binding *binding,
                                                        size_t count, rung_error *error, rung_program **out_program);
/* The same with the binding read off inputs (rung_template_bind). */
RUNG_API RUNG_CHECKED rung_status rung_cache_specialise_for(rung_cache *cache, uint64_t key, const rung_io *inputs,
                                                            size_t count, rung_error *error,
                                                            rung_program **out_program);
/* The template, built now if it is missing (ahead of any binding); the caller's to release. A cache made without one:
 * RUNG_INVALID_ARGUMENT. */
RUNG_API RUNG_CHECKED rung_status rung_cache_template(rung_cache *cache, rung_error *error,
                                                      rung_template **out_template);

RUNG_API bool rung_cache_contains(const rung_cache *cache, uint64_t key); /* leaves recency alone */
RUNG_API size_t rung_cache_count(const rung_cache *cache);
/* Evicts a key; false if it is not there. Waits for runs of it that the cache knows of. */
RUNG_API bool rung_cache_evict(rung_cache *cache, uint64_t key);
/* Evicts all, and drops the template: the builder runs again when it is needed. What is being compiled meanwhile goes to
 * those who asked for it and is not kept. */
RUNG_API void rung_cache_clear(rung_cache *cache);
/* Waits until nothing is being compiled, and no run that the cache knows of is under way. */
RUNG_API void rung_cache_sync(rung_cache *cache);
RUNG_API void rung_cache_set_no_compile(rung_cache *cache, bool no_compile);
/* `bytes` more belong to a key than the cache can see (device code captured later, buffers that the caller keeps for
 * it). They count until the key is evicted, renew its recency and may evict others; saturating. 0 or a key that is not
 * there: nothing happens. */
RUNG_API void rung_cache_note_bytes(rung_cache *cache, uint64_t key, uint64_t bytes);

/* Why something was compiled. */
typedef enum rung_compile_reason {
  RUNG_COMPILE_FIRST, /* asked for the first time */
  RUNG_COMPILE_AGAIN, /* it had been evicted or cleared (remembered for the last 256 keys) */
  RUNG_COMPILE_WARM,  /* ahead of use: rung_ladder_warm, rung_cache_template */
  RUNG_COMPILE_REASONS
} rung_compile_reason;

typedef struct rung_cache_counters {
  uint64_t hits, misses; /* look-ups that found their program, and that did not (compiled or refused) */
  uint64_t compiles[RUNG_COMPILE_REASONS], compile_ns[RUNG_COMPILE_REASONS]; /* that were published; build to publish */
  uint64_t builds, build_ns; /* graphs built and optimised (templates), as part of the above or ahead of them */
  uint64_t failures;         /* builds and compiles that were refused */
  uint64_t evictions;        /* all: by capacity, budget and by hand */
  uint64_t runs;             /* of a ladder */
  uint64_t rollovers;        /* runs that went on with another program than the one before */
  size_t entries;
  uint64_t programs;  /* bytes of the programs that still exist, evicted ones that contexts hold included (class host):
                         plan, compiled regions, and the template where it belongs to one key */
  uint64_t noted;     /* rung_cache_note_bytes */
  rung_memory memory; /* what else is held: activations and scratch of a ladder's own contexts; weights and packed forms
                         of its view, which all its programs share; host: the template */
} rung_cache_counters;
RUNG_API void rung_cache_get_counters(const rung_cache *cache, rung_cache_counters *out_counters);
/* The counters and every entry (key, bytes, binding or range, last use) as text; free with rung_text_free. */
RUNG_API RUNG_CHECKED rung_status rung_cache_print(const rung_cache *cache, rung_error *error, char **out_text,
                                                   size_t *out_bytes);

/* ---- ladder */

/* Keys start <= key < end. */
typedef struct rung_range {
  int64_t start, end;
} rung_range;
enum { RUNG_MAX_RANGES = 64 }; /* that rung_ranges_power_of_two makes */
/* Ranges whose ceilings are powers of two: the first starts at 1 and has the smallest that is >= min, each next begins
 * where the one before ends, the last has the smallest that is >= max. (8, 20): 1..9, 9..17, 17..33. min < 1, max <
 * min: RUNG_OUT_OF_RANGE; a ceiling that does not fit: RUNG_OVERFLOW. */
RUNG_API RUNG_CHECKED rung_status rung_ranges_power_of_two(int64_t min, int64_t max, rung_error *error,
                                                           rung_range out_range[RUNG_MAX_RANGES], size_t *out_count);

typedef struct rung_ladder_options {
  size_t size;                 /* sizeof(rung_ladder_options) */
  const char *symbol;          /* whose values are keys; default "seq" */
  const rung_binding *ceiling; /* of the other symbols, for all rungs; those not named keep their declared maximum */
  size_t ceilings;
  rung_compile_options compile;
  rung_context_options context; /* of the contexts that the ladder makes for its own runs */
  uint64_t bytes;               /* most bytes of programs and noted bytes; 0: no cap */
  uint64_t large_bytes;         /* a rung of this size or more is large; default 256 MiB */
  size_t large_rungs;           /* most large rungs at once; 0: 1 on devices with memory of their own, else no cap */
  bool keep_all;                /* switches both caps off */
  bool no_compile;
} rung_ladder_options;
RUNG_API rung_ladder_options rung_ladder_options_default(void);

/* Ranges are sorted, non-empty, do not overlap (else refused, naming the two) and may leave gaps; a rung is the index
 * of its range, its ceiling end - 1. The graph of `build` has the symbol open with a declared maximum of at least the
 * largest ceiling; it is built when the first rung is, once, and its view binds the weights of all rungs. */
RUNG_API RUNG_CHECKED rung_status rung_ladder_create(rung_device *device, const rung_build *build,
                                                     const rung_range *ranges, size_t count,
                                                     const rung_ladder_options *options, rung_error *error,
                                                     rung_ladder **out_ladder);
/* No call may be under way. NULL allowed. */
RUNG_API void rung_ladder_destroy(rung_ladder *ladder);
/* Counters, printing, count, sync, no_compile: the ladder's entries, whose keys are the rungs' indices. Borrowed. */
RUNG_API rung_cache *rung_ladder_cache(rung_ladder *ladder);

RUNG_API size_t rung_ladder_rungs(const rung_ladder *ladder);
/* RUNG_OUT_OF_RANGE: no rung holds the key. Compiles nothing. Either pointer may be NULL. */
RUNG_API RUNG_CHECKED rung_status rung_ladder_lookup(const rung_ladder *ladder, int64_t key, rung_error *error,
                                                     size_t *out_rung, int64_t *out_ceiling);
/* The program of the key's rung, compiled if it is cold; the caller's to release. */
RUNG_API RUNG_CHECKED rung_status rung_ladder_get(rung_ladder *ladder, int64_t key, rung_error *error,
                                                  rung_program **out_program);
/* The template; the caller's to release. For contexts and states of one's own. */
RUNG_API RUNG_CHECKED rung_status rung_ladder_template(rung_ladder *ladder, rung_error *error,
                                                       rung_template **out_template);
/* Compiles these rungs now; rungs NULL: all, smallest first. Ends at the first that is refused. Tunes them first if the
 * device's policy says so (rung_tune_policy.warm). Where a device captures runs, it captures those of all sizes of the
 * rungs, with the other symbols at their least and at their ceilings; not in programs with sizes that are found at run
 * time, which are captured when they run. */
RUNG_API RUNG_CHECKED rung_status rung_ladder_warm(rung_ladder *ladder, const size_t *rungs, size_t count,
                                                   rung_error *error);

/* Runs at the sizes that the inputs have, in the program of the key's rung. An extent above its ceiling is refused.
 * Nothing is padded, sliced or copied (other than inputs that bind_input copies); outputs are written to the caller's
 * memory, whose extents say how much room there is, and get their actual extents. Outputs that are not listed are
 * dropped, inputs without the symbol pass as they are. Where `ceiling` is set on every input that has the symbol, the
 * key is its value.
 * context NULL: one of the ladder's own, of which there are as many as runs at once, each with one arena of the largest
 * rung that it ran. Otherwise a context of the ladder's template, with its own view and states, which no other thread
 * uses: going from rung to rung leaves its states where they are and copies nothing. */
RUNG_API RUNG_CHECKED rung_status rung_ladder_run(rung_ladder *ladder, rung_context *context, int64_t key,
                                                  const rung_io *inputs, size_t inputs_count, rung_io *outputs,
                                                  size_t outputs_count, rung_error *error);
/* Only the choice: makes the key's program the one that `context` runs, for callers that bind by themselves. */
RUNG_API RUNG_CHECKED rung_status rung_ladder_use(rung_ladder *ladder, rung_context *context, int64_t key,
                                                  rung_error *error);

/* Evicting waits for runs of the rung that the ladder has under way. Large rungs beyond their number go, least recently
 * used first, before a further large one is prepared; smaller rungs never go for that. A cap on bytes takes any rung,
 * least recently used first. Where neither can be kept, the compile is RUNG_OVER_BUDGET and nothing is evicted. */
RUNG_API void rung_ladder_evict_except(rung_ladder *ladder, size_t rung);
enum { RUNG_NO_RUNG = -1 };
/* Evicts one rung other than `except` (RUNG_NO_RUNG: any), the highest that there is. The rung, or RUNG_NO_RUNG. */
RUNG_API int64_t rung_ladder_evict_one_except(rung_ladder *ladder, int64_t except);
/* All programs; the template stays. */
RUNG_API void rung_ladder_clear(rung_ladder *ladder);
/* Gives back the memory of the ladder's own contexts that no run uses now; programs stay. */
RUNG_API void rung_ladder_trim(rung_ladder *ladder);
/* As rung_cache_note_bytes, for the rung of a key. */
RUNG_API void rung_ladder_note_bytes(rung_ladder *ladder, int64_t key, uint64_t bytes);

/* ---- rows, for callers that pad by themselves

 * A row is `inner` elements of `element` bytes. RUNG_INVALID_ARGUMENT: inner or element 0, a length that is no multiple
 * of inner; RUNG_OUT_OF_RANGE: more rows than fit. Lengths count elements. */

/* `ceiling` rows in new memory of the host, those behind data's as zeros; free with rung_rows_free. */
RUNG_API RUNG_CHECKED rung_status rung_pad_rows(rung_host *host, const void *data, size_t length, size_t inner,
                                                size_t element, size_t ceiling, rung_error *error, void **out_data,
                                                size_t *out_length);
/* The same into memory of the caller, which holds out_length elements: all of them are written. */
RUNG_API RUNG_CHECKED rung_status rung_pad_rows_into(const void *data, size_t length, size_t inner, size_t element,
                                                     void *out_data, size_t out_length, rung_error *error);
/* The first `rows` rows of data: nothing is copied, *out_length is what they take. */
RUNG_API RUNG_CHECKED rung_status rung_slice_rows(const void *data, size_t length, size_t inner, size_t element,
                                                  size_t rows, rung_error *error, const void **out_data,
                                                  size_t *out_length);
RUNG_API void rung_rows_free(rung_host *host, void *data, size_t length, size_t element);

#ifdef __cplusplus
}
#endif
#endif
