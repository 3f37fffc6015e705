/* SPDX-License-Identifier: MIT
 * Devices and templates: a graph is optimised once for a device, with its dimensions left open.
 *
 *   graph --rung_template_create--> template --rung_program_create--> program --context--> run
 *
 * Everything here is counted (retain/release), immutable once made and safe to use from many threads.
 */
#ifndef RUNG_COMPILE_H
#define RUNG_COMPILE_H

#include <rung/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_device rung_device;
typedef struct rung_template rung_template;

typedef struct rung_device_options {
  size_t size; /* sizeof(rung_device_options) */
  int threads; /* most threads a run may use; 0: RUNG_THREADS, else what this process may use well */
  const struct rung_tune_policy *tune; /* how winners of tuning are kept (rung/tune.h); NULL: RUNG_TUNE is the folder,
                                          RUNG_TUNE_PROFILE the profile, all else as rung_tune_policy_default */
  uint32_t winners;                    /* most winners of a table, whatever a policy says; 0: 256 */
} rung_device_options;
RUNG_API rung_device_options rung_device_options_default(void);
/* name: "cpu" or "ref" (plain reference functions, the oracle). Environment variables only fill what options leave at
 * default and are read here, once (RUNG_MAX_ISA caps the instruction set: base, avx2, avx512, neon). RUNG_NOT_FOUND
 * names the devices there are. */
RUNG_API RUNG_CHECKED rung_status rung_device_create(rung_host *host, const char *name,
                                                     const rung_device_options *options, rung_error *error,
                                                     rung_device **out_device);
RUNG_API void rung_device_retain(rung_device *device);
RUNG_API void rung_device_release(rung_device *device);
RUNG_API const char *rung_device_name(const rung_device *device); /* "cpu (avx512)" */
/* Rewrite passes that were run for it so far: none is by planning, by making contexts or by a run. */
RUNG_API uint64_t rung_device_passes(const rung_device *device);
/* What a device with memory of its own has done since it was created: zeros for "cpu" and "ref". `text` says what is
 * counted. Runs compile nothing, and once sizes have been met they capture nothing and take no memory: two readings
 * with runs in between show it. */
#define RUNG_DEVICE_COUNTER_MAP(X)                                                           \
  X(compiles, "texts of kernels that were compiled")                                         \
  X(modules, "compiled kernels that were loaded, those kept from a process before included") \
  X(captures, "stretches of a run that were captured, to be replayed as a whole")            \
  X(patches, "launches in such a capture that were given other sizes or places")             \
  X(replays, "captures that were replayed")                                                  \
  X(launches, "kernels that were launched one by one")                                       \
  X(host_steps, "steps without a kernel, computed by the host")                              \
  X(to_device, "bytes copied there")                                                         \
  X(to_host, "bytes copied back")                                                            \
  X(on_device, "bytes copied there from one place to another")                               \
  X(allocations, "calls that took memory: buffers and pages")                                \
  X(buffers, "bytes held now: weights, forms, constants, words of contexts")                 \
  X(pages, "bytes held now, mapped as sizes grow: arenas, scratch, states")
typedef struct rung_device_counters {
#define X(name, text) uint64_t name;
  RUNG_DEVICE_COUNTER_MAP(X)
#undef X
} rung_device_counters;
RUNG_API void rung_device_get_counters(const rung_device *device, rung_device_counters *out_counters);
RUNG_API int rung_device_threads(const rung_device *device);
RUNG_API rung_host *rung_device_host(const rung_device *device);

typedef enum rung_quant {
  RUNG_QUANT_FAST, /* quantised weights meet activations quantised per 32 elements to 8 bits: integer dot products */
  RUNG_QUANT_EXACT /* activations stay f32 */
} rung_quant;

/* In what types a graph of f32 is computed and kept: a type (f32, f16 or bf16) for each category of ops. All f32, which
 * is what a zeroed struct says, changes nothing.
 *
 *   compute      what products, convolutions, attention and recurrences multiply, to nearest; sums are f32. Weights that
 *                they multiply with are kept so: half the bytes. Results of products are of the category elementwise;
 *                convolutions, dense attention and recurrences that a device has in the type (the cpu device has none)
 *                take their biases and first states in it, too, and give it
 *   reduction    results of reductions, norms, softmax, running sums and pooling; sums are f32
 *   elementwise  results of all other ops
 *   movement     results of ops that only move numbers: views, gathers, scatters, concat, pad, slices ...
 *   boundary     the graph's inputs and outputs: what a caller binds and reads is then of the narrow type
 *
 * A category's type is that of what lies in memory. It is applied after fusion: inside a fused kernel everything stays
 * f32, and is rounded once where it is written. Weights that an op reads are kept in the type of its category. Rounding
 * is to nearest, ties to even. f16 ends at 65504: what is larger, weights included, becomes an infinity, what is below
 * 6e-8 zero; bf16 has the range of f32 and 8 bits. NaN stays NaN.
 *
 * What a policy leaves as it is: values that are not f32 (a graph's own f16 or f64, integers) except where a product
 * multiplies f32, f16 or bf16; quantised weights, and what quantised rows multiply; states, whose types the graph
 * says, and values that control ops carry; what is made of integers and constants alone (positions, angles, masks):
 * rounding those would round an index (in bodies of branches and loops what comes from outside counts as measured, so
 * pass such values as integers); products over a single k. An op that has one narrow operand takes all in its
 * category's type. Where a device has no kernel for a narrow type as good as that for f32 the op stays in f32, casts
 * standing where it meets narrow values, and `rung inspect --fused` lists it. */
typedef struct rung_precision {
  rung_type compute, reduction, elementwise, movement, boundary;
} rung_precision;
RUNG_API rung_precision rung_precision_f32(void);
RUNG_API rung_precision rung_precision_all(rung_type type);   /* everywhere but the boundary */
RUNG_API rung_precision rung_precision_mixed(rung_type type); /* compute alone */
/* "f32", "f16", "bf16" (everywhere but the boundary), "mixed" (of bf16), "mixed-f16". False if no policy has the name. */
RUNG_API bool rung_precision_find(const char *name, rung_precision *out_precision);
RUNG_API const char *rung_precision_name(rung_precision precision); /* "custom" for one that has no name */

typedef struct rung_compile_options {
  size_t size; /* sizeof(rung_compile_options) */
  rung_quant quant;
  rung_precision precision;
  bool fold, fuse, merge; /* constant folding and dead code; fused regions; merged matmuls. All on by default */
  /* A row's bits depend on the row alone: not on the rows and sequences beside it, the cut of a text into runs, captured
   * launches or what tuning found. The cpu and ref devices are always so; on "cuda" it leaves out the kernels that are
   * not, which costs speed where many rows come at once (docs/cuda.md). Off by default. */
  bool deterministic;
  int threads; /* most threads a run of these programs may use; 0: the device's */
} rung_compile_options;
RUNG_API rung_compile_options rung_compile_options_default(void);

/* Optimises a copy of the graph; the graph stays the caller's and may go. Fails with the graph's own sticky error, or
 * with RUNG_UNSUPPORTED and a list of what the device cannot do. */
RUNG_API RUNG_CHECKED rung_status rung_template_create(rung_device *device, const rung_graph *graph,
                                                       const rung_compile_options *options, rung_error *error,
                                                       rung_template **out_template);
RUNG_API void rung_template_retain(rung_template *template_);
RUNG_API void rung_template_release(rung_template *template_);
/* The optimised graph, and what was fused, what nearly and why not, as text (rung_text_free). */
RUNG_API RUNG_CHECKED rung_status rung_template_print(const rung_template *template_, rung_error *error,
                                                      char **out_text, size_t *out_bytes);
RUNG_API RUNG_CHECKED rung_status rung_template_explain(const rung_template *template_, rung_error *error,
                                                        char **out_text, size_t *out_bytes);

#ifdef __cplusplus
}
#endif
#endif
