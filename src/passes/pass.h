/* SPDX-License-Identifier: MIT
 * Passes: plain functions that read one graph and write another (ir/rewrite.h). One a file; pipeline.c lists the order.
 */
#ifndef RUNG_PASSES_PASS_H
#define RUNG_PASSES_PASS_H

#include <rung/compile.h>

#include "base/text.h"
#include "ir/rewrite.h"
#include "target/target.h"

typedef struct rung_notes rung_notes;
typedef struct rung_patterns rung_patterns;

/* What the caller sets, and what the pipeline keeps while it runs. */
typedef struct rung_pass_env {
  rung_host *host;
  const rung_target *target;
  const rung_compile_options *options;
  rung_text *report; /* gets what fused, what nearly did and why not, for `inspect --fused`; NULL: nobody asks */
  rung_error *error;
  _Atomic uint64_t *ran; /* counts passes; NULL: nobody asks */
  bool again;            /* set by a pass that wants to run once more on its own result */
  /* The pipeline's own: made when it starts, gone when it ends. */
  rung_notes *notes;
  rung_patterns *patterns;
} rung_pass_env;

/* Writes the changed graph to `to`, which is empty and shares `from`'s dims. Both may be bodies. */
typedef rung_status rung_pass(rung_pass_env *env, const rung_graph *from, rung_graph *to);

typedef struct rung_pass_row {
  const char *name;
  rung_pass *run;
  /* Is it switched on? NULL: always. */
  bool (*wanted)(const rung_compile_options *options);
} rung_pass_row;

/* Part of the keys of stored compiles: raise it with every change that makes another graph out of the same one. */
enum { RUNG_PASSES_REVISION = 7 };

/* All passes in order over a copy of `graph`; the verifier runs after each. The result is the caller's. */
rung_status rung_pipeline_run(rung_pass_env *env, const rung_graph *graph, rung_graph **out_graph);
/* One pass by name until it does not ask for another round, for tests. RUNG_NOT_FOUND if there is none. */
rung_status rung_pipeline_pass(rung_pass_env *env, const char *name, const rung_graph *graph, rung_graph **out_graph);

/* ---- what passes share (helpers.c) */

/* As rung_rewrite_copy; the bodies of control ops are what `inside` makes of them. */
rung_status rung_pass_copy(rung_pass_env *env, rung_rewrite *rewrite, uint32_t index, rung_pass *inside);
/* `to` has failed: its message goes to the error. */
rung_status rung_pass_failed(const rung_pass_env *env, const rung_graph *to);
rung_status rung_pass_no_memory(const rung_pass_env *env);
/* Does the node, or a node of its bodies, have one of the flags? */
bool rung_node_has(const rung_node *node, uint32_t flags);
/* Does the value lie in the memory of a state (the state itself, views of it)? Such a value may not be read later than
 * the graph says. */
bool rung_value_in_state(const rung_graph *graph, uint32_t value);
/* All extents constant: their product goes to *out_elements (NULL: not wanted). False if one is open or it does not
 * fit. */
bool rung_type_is_fixed(const rung_dims *dims, const rung_value_type *type, int64_t *out_elements);
/* No attribute speaks of a symbol. */
bool rung_attrs_are_fixed(const rung_dims *dims, const rung_node *node);
/* Symbols in the extents of a type and in a node's attributes, one bit each. */
uint64_t rung_type_symbols(const rung_dims *dims, const rung_value_type *type);
uint64_t rung_attrs_symbols(const rung_dims *dims, const rung_node *node);
/* Where a value comes from: of weights and constants alone if a pure op with fixed extents makes it from such values.
 * `origin` has that of the node's operands, by value. */
enum { RUNG_FROM_ELSEWHERE, RUNG_FROM_CONSTANTS, RUNG_FROM_WEIGHTS };
uint8_t rung_origin_of(const rung_graph *graph, const rung_node *node, const uint8_t *origin);
/* Values of the fixed dimensions that attributes name go to dim[id], which has room for `dims->count`. */
void rung_attrs_take_dims(const rung_dims *dims, const rung_node *node, int64_t *dim);
/* A row-major operand of a fixed type at `base`; `shape` has room for twice the rank. False for open extents, states
 * and packed layouts. */
bool rung_dense_operand(const rung_dims *dims, const rung_value_type *type, uint8_t *base, int64_t *shape,
                        rung_operand *out_operand, uint64_t *out_bytes);
/* The same value whenever it is computed from the same operands, and nothing else happens. */
static inline bool rung_node_is_pure(const rung_node *node) {
  return !node->bodies &&
         !(node->op->flags & (RUNG_OP_DECLARES | RUNG_OP_RANDOM | RUNG_OP_EFFECT | RUNG_OP_CONTROL | RUNG_OP_SIZES));
}
/* Has the target kernels for the node as it stands, or with operand `packed` in layout `layout`? */
bool rung_pass_has_kernel(const rung_pass_env *env, const rung_graph *graph, const rung_node *node, uint32_t packed,
                          uint16_t layout, char *why, size_t why_bytes);
/* The target's layout for a value that is a plain matrix; NULL if it has none. */
const rung_layout *rung_pass_layout(const rung_pass_env *env, const rung_value_type *type);
/* Attention that can round what it multiplies to bf16; a copy of it that may. */
bool rung_pass_is_attention(const rung_node *node);
rung_status rung_pass_narrow_attention(const rung_pass_env *env, rung_rewrite *rewrite, uint32_t index);
/* A body input called x<index>, w<index> ... of a type. */
rung_value rung_body_input(rung_graph *body, char letter, uint32_t index, const rung_value_type *type);
void rung_body_output(rung_graph *body, uint32_t index, rung_value value);
/* Gives up a body that was made last and that no node has. */
void rung_body_discard(rung_graph *to, rung_graph *body);

/* ---- constants (constant.c) */

/* The value's bytes if a constant makes it. */
const rung_blob *rung_constant_of(const rung_graph *graph, uint32_t value);
/* The number that all elements have, also behind views; `exact` bits for wide integers are not kept. False if they
 * differ, there are none, or it is no constant. -0 keeps its sign. */
bool rung_constant_number(const rung_graph *graph, uint32_t value, double *out_number);
/* What op's reference makes of constant operands becomes constants of `to`. *out_done says if it did: not for results
 * that are large, that grow, or that the reference refuses. */
rung_status rung_constant_fold(rung_pass_env *env, rung_rewrite *rewrite, uint32_t index, bool *out_done);

/* ---- captures of control ops, and values of weights alone (captures.c) */

/* The first operand that the op does nothing with but hand it to its bodies; n_in for ops that are no control op. */
uint32_t rung_first_capture(const rung_node *node);
/* How many operands the control op may have. */
uint32_t rung_most_operands(const rung_node *node);
/* The value of body `b` that is capture `operand`; 0 where the body has it by another type (extents that a run checks).
 */
uint32_t rung_captured_as(const rung_graph *graph, const rung_node *node, uint32_t b, uint32_t operand);
/* Can operand 1 of the matmul be packed? *out_turn: only its transpose. */
bool rung_factor_packs(const rung_pass_env *env, const rung_graph *graph, const rung_node *node, bool *out_turn);
/* The transpose of a matrix, and the product `node` copied with it, as a factor that lies transposed. */
rung_value rung_pass_transpose(rung_graph *to, rung_value value);
rung_status rung_turn_product(const rung_pass_env *env, rung_rewrite *rewrite, const rung_node *node,
                              rung_value factor);
/* By operand: is it a capture with which a product in the bodies multiplies, and that this can read packed? In memory of
 * `arena`. */
rung_status rung_captured_factors(const rung_pass_env *env, rung_arena *arena, const rung_graph *graph,
                                  const rung_node *node, bool **out_factor);
/* Begins a body of `to` with the inputs of `body` and behind them one for each value `more` of `to`, given in
 * out_inside; what stands between the inputs is the caller's to copy with out_inner. `as` by input: itself, an earlier
 * one that stands for it, or UINT32_MAX: it goes. NULL: all stay. */
rung_status rung_body_begin(const rung_pass_env *env, const rung_graph *body, rung_graph *to, const uint32_t *as,
                            const rung_value *more, uint32_t n_more, rung_rewrite *out_inner, rung_value *out_inside);
/* Control op `index` again on these operands and finished bodies; maps the results. */
rung_status rung_control_end(const rung_pass_env *env, rung_rewrite *rewrite, uint32_t index, const rung_value *in,
                             uint32_t n_in, rung_graph *const *body);

/* A graph, or a body with the node that has it and the scope of that. */
typedef struct rung_scope {
  const rung_graph *graph;
  const rung_node *node;
  const struct rung_scope *outer; /* NULL: no body */
  uint8_t *origin;                /* by value */
} rung_scope;
enum { RUNG_FORM_BODY_NODES = 96, RUNG_FORM_SOURCES = 128 }; /* most of a sub-graph that becomes a form's body */
/* The nodes that make a value, weights included, each with its scope. */
typedef struct rung_part {
  const rung_scope *scope[RUNG_FORM_BODY_NODES];
  uint32_t node[RUNG_FORM_BODY_NODES];
  uint32_t nodes, sources;
} rung_part;
/* Why a value of weights alone is better left to the run; NULL: it may be a form of `out`. */
const char *rung_form_refused(const rung_scope *scope, uint32_t value, rung_part *out);

/* ---- forms of several weights (group.c) */

/* A form of the weights (or bodies' forms) `member`, which are nodes of `from`: rows one after another, or with panel >
 * 0 panels of them in turn; the sources are copied to `to` where they are missing. */
rung_value rung_group_form(rung_pass_env *env, rung_rewrite *rewrite, const uint32_t *member, uint32_t count);
/* The same members as form node `index` of `from`, which has them one after another, in turn by `panel` rows. Null if
 * that cannot be done. */
rung_value rung_group_interleave(rung_pass_env *env, rung_rewrite *rewrite, uint32_t index, uint32_t members,
                                 int64_t panel);

/* ---- the report (report.c): lines that say the same are counted */

typedef enum rung_note_kind {
  RUNG_NOTE_REPLACED,
  RUNG_NOTE_FOLDED,
  RUNG_NOTE_MERGED,
  RUNG_NOTE_FORM,
  RUNG_NOTE_FUSED,
  RUNG_NOTE_NEARLY,
  RUNG_NOTES
} rung_note_kind;
rung_status rung_notes_create(rung_host *host, rung_error *error, rung_notes **out_notes);
void rung_notes_destroy(rung_notes *notes);
/* `why` NULL for what worked. `label` as of the node, NULL for none. */
void rung_note(const rung_pass_env *env, rung_note_kind kind, const char *label, const char *what, const char *why);
/* OUT_OF_MEMORY if a line could not be kept. */
rung_status rung_notes_print(const rung_notes *notes, rung_text *out, rung_error *error);
/* "matmul + add + silu" of nodes given by index. */
void rung_note_ops(const rung_graph *graph, const uint32_t *node, uint32_t count, char *out, size_t bytes);

/* ---- patterns (pattern.c, match.c) */
rung_status rung_patterns_create(rung_host *host, rung_error *error, rung_patterns **out_patterns);
void rung_patterns_destroy(rung_patterns *patterns);

#endif
