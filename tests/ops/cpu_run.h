/* SPDX-License-Identifier: MIT
 * Runs single kernel rows of the CPU backend without plan or runtime: as often as there are instruction sets here, with
 * any number of threads (played one after another, each with its own scratch), on operands with the strides that the
 * row takes. */
#ifndef RUNG_TESTS_OPS_CPU_RUN_H
#define RUNG_TESTS_OPS_CPU_RUN_H

#include "backends/cpu/kernel.h"
#include "base/pool.h"
#include "cases.h"

/* Every row of every level that this machine has, in the order of the tables; `name`: its family's. */
typedef struct cpu_rows {
  size_t table, family, row;
  const char *name;
} cpu_rows;
static inline const rung_cpu_kernel *cpu_rows_next(cpu_rows *at, uint32_t isa) {
  const rung_cpu_table *table;
  for (; (table = rung_cpu_table_at(at->table)) != NULL; at->table++, at->family = 0) {
    if ((table->isa & isa) != table->isa) continue;
    for (; table->family[at->family].name; at->family++, at->row = 0)
      if (at->row < table->family[at->family].rows) {
        at->name = table->family[at->family].name;
        return &table->family[at->family].row[at->row++];
      }
  }
  return NULL;
}
static inline rung_strip_compile_fn *cpu_compile_strip(uint32_t isa) {
  rung_strip_compile_fn *fn = NULL;
  const rung_cpu_table *table;
  for (size_t i = 0; (table = rung_cpu_table_at(i)) != NULL; i++)
    if (table->isa == isa && table->compile_strip) fn = table->compile_strip;
  return fn;
}

static inline bool cpu_row_takes(const rung_kernel *row, const rung_match *match, char *why) {
  const rung_op *root = NULL;
  why[0] = 0;
  if (row->op != match->node->op || row->root != root) return false;
  for (uint32_t i = 0; row->n_in_type && i < match->n_in; i++) {
    const uint32_t k = i < row->n_in_type ? i : row->n_in_type - 1u;
    if (row->in_type[k] != RUNG_ANY_TYPE && row->in_type[k] != match->in[i]->type) return false;
    if (row->in_layout[k] != RUNG_ANY_LAYOUT && row->in_layout[k] != match->in[i]->layout) return false;
  }
  for (uint32_t i = 0; row->n_out_type && i < match->n_out; i++) {
    const uint32_t k = i < row->n_out_type ? i : row->n_out_type - 1u;
    if (row->out_type[k] != RUNG_ANY_TYPE && row->out_type[k] != match->out[i].type) return false;
  }
  return !row->fits || row->fits(match, why);
}

/* A step made for one row. Arrays are the caller's. */
typedef struct cpu_step {
  rung_host *host;
  rung_arena arena;
  const rung_cpu_kernel *kernel;
  const rung_graph *graph;
  const rung_node *node;
  rung_plan plan;
  rung_step step;
  rung_ref ref[64];
  const void *prepared;
  int64_t role[RUNG_MAX_ROLES];
  int64_t *dim;          /* values of all dims */
  int64_t scratch_bytes; /* per thread */
  int64_t tasks;         /* of the last run */
} cpu_step;

static inline void cpu_ref(rung_ref *ref, const rung_value_type *type) {
  *ref = (rung_ref){.rank = (uint8_t)type->rank, .type = (uint8_t)type->type, .layout = type->layout};
  memcpy(ref->extent, type->extent, sizeof ref->extent);
}

/* `dim`: values of all dims, for roles and scratch; grows with them, so they are evaluated again here. */
static inline bool cpu_step_make(cpu_step *s, rung_host *host, const rung_cpu_kernel *kernel, const rung_graph *graph,
                                 const rung_node *node, const int64_t *symbol) {
  rung_match match;
  rung_dim role[RUNG_MAX_ROLES] = {{0}};
  rung_value_type in[64];
  memset(s, 0, sizeof *s);
  s->host = host;
  s->kernel = kernel;
  s->graph = graph;
  s->node = node;
  rung_arena_init(&s->arena, host);
  rung_match_init(&match, graph, node);
  for (uint32_t i = 0; i < match.n_in; i++) in[i] = *match.in[i], cpu_ref(&s->ref[i], match.in[i]);
  for (uint32_t r = 0; r < match.n_out; r++) cpu_ref(&s->ref[match.n_in + r], &match.out[r]);
  if (node->op->role_dims) node->op->role_dims(graph->dims, in, match.n_in, match.out, node->attrs, role);
  rung_dim scratch = {0};
  if (kernel->row.scratch) {
    scratch = kernel->row.scratch(graph->dims, &match, role);
    CHECK(scratch.id != 0);
  }
  int64_t *dim = s->dim = (int64_t *)calloc(graph->dims->count, sizeof *dim);
  CHECK_OK(rung_dims_evaluate(graph->dims, symbol, dim, NULL));
  for (int i = 0; i < RUNG_MAX_ROLES; i++) s->role[i] = dim[role[i].id];
  s->scratch_bytes = scratch.id ? (dim[scratch.id] + 63) / 64 * 64 : 0;
  s->plan.dims = graph->dims;
  s->plan.ref = s->ref;
  s->plan.refs = (uint32_t)(match.n_in + match.n_out);
  s->plan.graph = graph;
  s->step = (rung_step){.n_in = (uint16_t)match.n_in,
                        .n_out = (uint16_t)match.n_out,
                        .out = match.n_in,
                        .op = node->op,
                        .attrs = node->attrs,
                        .body = node->bodies ? node->body[0] : NULL};
  if (!kernel->prepare) return true;
  const rung_cpu_prepare prepare = {.arena = &s->arena,
                                    .plan = &s->plan,
                                    .step = &s->step,
                                    .kernel = kernel,
                                    .compile_strip = cpu_compile_strip(kernel->row.isa)};
  const rung_status status = kernel->prepare(&prepare, &s->prepared);
  CHECK_OK(status);
  return status == RUNG_OK;
}
static inline void cpu_step_finish(cpu_step *s) {
  rung_arena_finish(&s->arena);
  free(s->dim);
}

/* Runs all tasks; the scratch begins as bytes that are NaN in f32 and is guarded. */
static inline rung_status cpu_step_run(cpu_step *s, const rung_operand *in, const rung_operand *out, int threads,
                                       rung_error *error) {
  enum { GUARD = 64 };
  const bool per_thread = s->kernel->row.scratch_per_thread;
  const size_t bytes = (size_t)(s->scratch_bytes * (per_thread ? threads : 1));
  uint8_t *memory = (uint8_t *)malloc(bytes + 64 + 2 * GUARD), *scratch = memory + GUARD;
  scratch += (64 - (uintptr_t)scratch % 64) % 64;
  memset(memory, 0xFF, bytes + 64 + 2 * GUARD);
  const rung_args args = {.in = in,
                          .out = out,
                          .n_in = (uint16_t)s->node->n_in,
                          .n_out = (uint16_t)s->node->results,
                          .attrs = s->node->attrs,
                          .dim = s->dim,
                          .role = s->role,
                          .scratch = scratch,
                          .scratch_stride = per_thread ? (size_t)s->scratch_bytes : 0,
                          .prepared = s->prepared,
                          .threads = threads,
                          .error = error};
  const uint64_t state = rung_float_state_set();
  s->tasks = s->kernel->row.tasks ? s->kernel->row.tasks(&args) : 1;
  rung_status status = RUNG_OK;
  /* Not in order: the last first, so that nothing can lean on it. */
  for (int64_t t = (s->tasks ? s->tasks : 1) - 1; t >= 0 && !status; t--)
    status = s->kernel->row.run(&args, t, (int)(t % threads));
  rung_float_state_restore(state);
  for (size_t i = 0; i < GUARD; i++) CHECK(scratch[bytes + i] == 0xFF && (i >= GUARD / 2 || memory[i] == 0xFF));
  free(memory);
  return status;
}

/* The values of `from` with the strides that a row takes: gaps between rows, or anything. */
static inline tensor *cpu_operand(const tensor *from, uint8_t strides, uint64_t *seed) {
  const rung_type type = (rung_type)from->operand.type;
  tensor *t;
  if ((strides == RUNG_STRIDES_ROWS || strides == RUNG_STRIDES_LINES) && !eval_is_blocks(type) &&
      from->operand.rank > 1 && rung_type_get(type)->block == 1) {
    const int rank = from->operand.rank;
    int64_t wide[RUNG_MAX_RANK];
    memcpy(wide, from->extent, sizeof wide);
    wide[rank - 1] += test_below(seed, 5);
    t = tensor_make(type, rank, wide, NULL);
    t->extent[rank - 1] = from->extent[rank - 1];
  } else {
    t = tensor_make(type, from->operand.rank, from->extent, strides == RUNG_STRIDES_ANY ? seed : NULL);
  }
  copy_values(t, from);
  return t;
}

static inline bool cpu_same_bits(const tensor *a, const tensor *b) {
  const rung_type_row *row = rung_type_get((rung_type)a->operand.type);
  for (int64_t i = 0; i < tensor_count(a); i += row->block)
    if (memcmp(a->operand.base + tensor_offset(a, i) / row->block * row->bytes,
               b->operand.base + tensor_offset(b, i) / row->block * row->bytes, row->bytes) != 0)
      return false;
  return true;
}

#endif
