/* SPDX-License-Identifier: MIT
 * Running kernel rows of matrix products one by one, at every level, as a plan would choose and prepare them. */
#ifndef RUNG_TESTS_CPU_PRODUCT_H
#define RUNG_TESTS_CPU_PRODUCT_H

#define _POSIX_C_SOURCE 200809L /* setenv */
#include <math.h>
#include <stdlib.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/layouts.h"
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "test.h"

static rung_host *host;
static uint64_t seed = 20;

/* ---- levels: the backend opened under every cap */

typedef struct level {
  const char *name;
  void *self;
  const rung_target *target;
} level;
static level levels[4];
static int level_count;

static void open_levels(void) {
  static const char *const caps[] = {"base", "avx2", "avx512", "neon"};
  uint32_t seen = UINT32_MAX;
  for (size_t i = 0; i < RUNG_COUNT(caps); i++) {
    setenv("RUNG_MAX_ISA", caps[i], 1);
    level *l = &levels[level_count];
    CHECK_OK(rung_backend_cpu.open(host, NULL, &l->self));
    l->target = rung_backend_cpu.target(l->self);
    l->name = rung_isa_name(l->target->isa);
    if (l->target->isa == seen) {
      rung_backend_cpu.close(l->self);
      continue;
    }
    seen = l->target->isa;
    level_count++;
  }
  unsetenv("RUNG_MAX_ISA");
}
static void close_levels(void) {
  for (int i = 0; i < level_count; i++) rung_backend_cpu.close(levels[i].self);
}

/* ---- numbers */

static void fill_floats(float *x, int64_t n, float reach) {
  for (int64_t i = 0; i < n; i++) x[i] = test_uniform(&seed, -reach, reach);
}
/* Rows of a type from random floats, or, for types without an encoder, from random bytes with a tame scale. */
static uint8_t *make_rows(rung_type type, int64_t rows, int64_t k) {
  const uint64_t bytes = rung_type_bytes(type, (uint64_t)k);
  uint8_t *data = malloc(bytes * (uint64_t)rows + 1);
  float *x = malloc((size_t)(k + 1) * sizeof *x);
  const rung_type_row *row = rung_type_get(type);
  for (int64_t r = 0; r < rows; r++) {
    fill_floats(x, k, 1);
    if (row->from_f32) {
      row->from_f32(x, data + (uint64_t)r * bytes, (size_t)k);
      continue;
    }
    for (uint64_t i = 0; i < bytes; i++) data[(uint64_t)r * bytes + i] = (uint8_t)test_below(&seed, 64);
  }
  free(x);
  return data;
}
static uint8_t *pack(const rung_layout *layout, const uint8_t *data, int64_t n, int64_t k) {
  const uint64_t bytes = rung_type_bytes(layout->source, (uint64_t)k);
  uint8_t *form = malloc(rung_layout_bytes(layout, n, k) + 1);
  for (int64_t first = 0; first < n; first += layout->panel) {
    const uint8_t *row[RUNG_PANEL];
    int64_t rows = 0;
    for (; rows < layout->panel && first + rows < n; rows++) row[rows] = data + (uint64_t)(first + rows) * bytes;
    layout->pack(row, rows, k, form + (uint64_t)(first / layout->panel) * layout->panel_bytes(k));
  }
  return form;
}

/* ---- one product through the table of rows */

typedef struct product {
  const rung_op *op;
  const void *attrs;
  rung_operand in[2], out[3];
  uint32_t n_out;
  int64_t m, n, k;
  int threads;
} product;

static rung_value_type value_type(rung_dims *dims, const rung_operand *o) {
  rung_value_type type = {.type = (rung_type)o->type, .rank = (int8_t)o->rank, .layout = o->layout};
  for (int i = 0; i < o->rank; i++) type.extent[i] = rung_dims_constant(dims, o->extent[i]);
  return type;
}

/* The level's strip compiler, as the backend picks it. */
static rung_strip_compile_fn *strip_compiler(const rung_target *target) {
  rung_strip_compile_fn *compile = NULL;
  const rung_cpu_table *table;
  for (size_t i = 0; (table = rung_cpu_table_at(i)) != NULL; i++)
    if ((table->isa & target->isa) == table->isa && table->compile_strip) compile = table->compile_strip;
  return compile;
}

/* Runs a node on the row that the planner would choose; the name of that row. */
static const char *run_match_roles(const level *l, rung_dims *dims, const rung_match *match, rung_args args,
                                   const int64_t *role, int roles) {
  const int64_t m = role[0];
  rung_dim role_dim[RUNG_MAX_ROLES];
  for (int i = 0; i < roles; i++) role_dim[i] = rung_dims_constant(dims, role[i]);
  const rung_kernel *rows[RUNG_MAX_VARIANTS], *row = NULL;
  static char why[160];
  const size_t count = rung_target_match(l->target, match, role, rows, RUNG_MAX_VARIANTS, why, sizeof why);
  for (size_t i = 0; i < count && !row; i++)
    if (rows[i]->guard_role < 0 || (m >= rows[i]->guard_lo && (!rows[i]->guard_hi || m < rows[i]->guard_hi)))
      row = rows[i];
  test_state.checks++;
  if (!row) {
    TEST_FAIL_("%s", why);
    return why;
  }
  rung_arena arena;
  rung_arena_init(&arena, host);
  const rung_cpu_kernel *kernel = (const rung_cpu_kernel *)row;
  if (kernel->prepare) {
    const rung_step step = {
        .op = match->node->op, .attrs = match->node->attrs, .body = match->node->bodies ? match->node->body[0] : NULL};
    const rung_cpu_prepare in = {
        .arena = &arena, .step = &step, .kernel = kernel, .compile_strip = strip_compiler(l->target)};
    CHECK_OK(kernel->prepare(&in, &args.prepared));
  }
  int64_t bytes = 0;
  if (row->scratch) CHECK(rung_dims_is_constant(dims, row->scratch(dims, match, role_dim), &bytes));
  args.role = role;
  args.scratch_stride = (size_t)(bytes + 63) / 64 * 64;
  const size_t all = args.scratch_stride * (size_t)args.threads;
  args.scratch = rung_host_alloc(host, RUNG_MEMORY_scratch, all, 64);
  memset(args.scratch, 0x7f, all); /* NaN wherever read before it is written */
  const int64_t tasks = row->tasks ? row->tasks(&args) : 1;
  for (int64_t t = tasks; t-- > 0;) CHECK_OK(row->run(&args, t, (int)(t % args.threads)));
  rung_host_free(host, RUNG_MEMORY_scratch, args.scratch, all);
  rung_arena_finish(&arena);
  return row->name;
}

static inline const char *run_match(const level *l, rung_dims *dims, const rung_match *match, rung_args args, int64_t m,
                                    int64_t n, int64_t k) {
  return run_match_roles(l, dims, match, args, (const int64_t[]){m, n, k}, 3);
}

static const char *run(const level *l, const product *p) {
  rung_dims *dims = rung_dims_create(host);
  rung_node node = {.op = p->op, .attrs = p->attrs, .n_in = 2, .results = p->n_out};
  rung_match match = {.node = &node, .n_in = 2, .n_out = p->n_out};
  rung_value_type in[2];
  for (int i = 0; i < 2; i++) {
    in[i] = value_type(dims, &p->in[i]);
    match.in[i] = &in[i];
  }
  for (uint32_t i = 0; i < p->n_out; i++) match.out_type[i] = value_type(dims, &p->out[i]);
  match.out = match.out_type;
  const rung_args args = {
      .in = p->in, .out = p->out, .n_in = 2, .n_out = (uint16_t)p->n_out, .attrs = p->attrs, .threads = p->threads};
  const char *name = run_match(l, dims, &match, args, p->m, p->n, p->k);
  rung_dims_release(dims);
  return name;
}

#endif
