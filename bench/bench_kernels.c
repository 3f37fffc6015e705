/* SPDX-License-Identifier: MIT
 * Kernels over rows, one thread, on the shapes of small language models: time, rate, and the share of what the machine
 * does at most, measured in the same run. Rounds go through all of them in turn and the best of each counts, so that
 * what else the machine does meets every one alike. Time is that of the thread.
 *
 *   bench_kernels [rounds] [part of a name] */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/cpu/kernel.h"
#include "base/pool.h"
#include "ops/attrs.h"
#include "ops/build.h"
#include "ops/op_table.h"
#include "../tools/rung/peaks.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- limits */

static double fma_peak(uint32_t isa) {
  double lanes, best = 1e9;
  rung_task_fn *dot, *fma = peak_fma(isa, &lanes, &dot);
  for (int round = 0; round < 25; round++) {
    const double start = now();
    fma(NULL, 0, 0);
    const double took = now() - start;
    if (took < best) best = took;
  }
  return 2 * lanes * PEAK_LOOPS * CHAINS / best;
}

/* Copying between buffers of this size: bytes read and written per second. */
static double copy_rate(size_t bytes) {
  uint8_t *a = malloc(bytes), *b = malloc(bytes);
  memset(a, 1, bytes);
  memset(b, 2, bytes);
  double best = 0;
  for (int turn = 0; turn < 5; turn++) {
    const int times = (int)(1 + (64u << 20) / bytes);
    const double start = now();
    for (int i = 0; i < times; i++) {
      memcpy(b, a, bytes);
      __asm__ volatile("" ::"r"(b) : "memory");
    }
    const double rate = 2.0 * (double)bytes * times / (now() - start);
    if (rate > best) best = rate;
  }
  free(a);
  free(b);
  return best;
}

/* ---- a kernel with its operands */

typedef struct bench {
  char name[64];
  double bytes, flops; /* of one run; what is compared with the limit is the one that is not 0 */
  rung_graph *graph;
  const rung_cpu_kernel *kernel;
  rung_arena arena;
  rung_args args;
  rung_operand in[8], out[4];
  int64_t shape[12][2 * RUNG_MAX_RANK];
  rung_plan plan;
  rung_step step;
  rung_ref ref[16];
  const void *prepared;
  double best;
} bench;

enum { MAX_BENCHES = 64 };
static bench all[MAX_BENCHES];
static int count;
static rung_host *host;
static uint32_t isa;

static void *memory(size_t bytes) {
  void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
  memset(p, 0, bytes);
  return p;
}
static float uniform(void) { return (float)rand() / (float)RAND_MAX * 2 - 1; }

static void die(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static const rung_cpu_kernel *choose(const rung_match *match) {
  const rung_cpu_kernel *found = NULL;
  const rung_cpu_table *table;
  char why[160];
  for (size_t t = 0; (table = rung_cpu_table_at(t)) != NULL; t++) {
    if ((table->isa & isa) != table->isa) continue;
    for (const rung_cpu_family *f = table->family; f->name; f++)
      for (size_t i = 0; i < f->rows; i++) {
        const rung_kernel *row = &f->row[i].row;
        bool fits = row->op == match->node->op && !row->root;
        for (uint32_t k = 0; fits && k < match->n_in; k++) {
          const uint32_t at = k < row->n_in_type ? k : row->n_in_type - 1u;
          fits = row->in_type[at] == RUNG_ANY_TYPE || row->in_type[at] == match->in[k]->type;
        }
        if (fits && (!row->fits || row->fits(match, why))) found = &f->row[i];
      }
  }
  return found;
}

/* Sizes are constants; operands dense; floats random in -1 .. 1. */
static void set_operand(bench *b, rung_operand *o, int at, const rung_value_type *type) {
  *o = (rung_operand){.rank = (uint8_t)type->rank,
                      .type = (uint8_t)type->type,
                      .extent = b->shape[at],
                      .stride = b->shape[at] + RUNG_MAX_RANK};
  const rung_type_row *row = rung_type_get(type->type);
  int64_t units = 1;
  for (int i = type->rank - 1; i >= 0; i--) {
    int64_t n = 0;
    rung_dims_is_constant(b->graph->dims, type->extent[i], &n);
    b->shape[at][i] = n;
    b->shape[at][RUNG_MAX_RANK + i] = units;
    units *= i == type->rank - 1 ? n / row->block : n;
  }
  if (type->kind == RUNG_VALUE_STATE_KV) return;
  o->base = memory((size_t)units * row->bytes);
  for (int64_t i = 0; type->type == RUNG_TYPE_F32 && i < units; i++) ((float *)o->base)[i] = uniform();
}

/* The last node of the graph. */
static bench *finish(bench *b, const char *name, double bytes, double flops) {
  const rung_graph *g = b->graph;
  if (rung_graph_message(g)[0]) die(rung_graph_message(g));
  const rung_node *node = &g->node[g->nodes - 1];
  rung_match match;
  rung_dim role[RUNG_MAX_ROLES] = {{0}};
  rung_value_type in[8];
  snprintf(b->name, sizeof b->name, "%s", name);
  b->bytes = bytes;
  b->flops = flops;
  b->best = 1e9;
  rung_match_init(&match, g, node);
  b->kernel = choose(&match);
  if (!b->kernel) die(name);
  rung_arena_init(&b->arena, host);
  for (uint32_t i = 0; i < match.n_in; i++) {
    in[i] = *match.in[i];
    set_operand(b, &b->in[i], (int)i, match.in[i]);
  }
  for (uint32_t r = 0; r < match.n_out; r++) set_operand(b, &b->out[r], 8 + (int)r, &match.out[r]);
  for (uint32_t i = 0; i < match.n_in + match.n_out; i++) {
    const rung_value_type *type = i < match.n_in ? match.in[i] : &match.out[i - match.n_in];
    b->ref[i] = (rung_ref){.rank = (uint8_t)type->rank, .type = (uint8_t)type->type};
    memcpy(b->ref[i].extent, type->extent, sizeof type->extent);
  }
  node->op->role_dims(g->dims, in, match.n_in, match.out, node->attrs, role);
  b->args = (rung_args){.in = b->in,
                        .out = b->out,
                        .n_in = (uint16_t)match.n_in,
                        .n_out = (uint16_t)match.n_out,
                        .attrs = node->attrs,
                        .threads = 1};
  if (b->kernel->row.scratch) {
    const rung_dim scratch = b->kernel->row.scratch(g->dims, &match, role);
    int64_t size = 0;
    rung_dims_is_constant(g->dims, scratch, &size);
    b->args.scratch = memory((size_t)size + 64);
  }
  b->plan.dims = g->dims;
  b->plan.ref = b->ref;
  b->plan.refs = match.n_in + match.n_out;
  b->step = (rung_step){.n_in = (uint16_t)match.n_in,
                        .n_out = (uint16_t)match.n_out,
                        .out = match.n_in,
                        .op = node->op,
                        .attrs = node->attrs,
                        .body = node->bodies ? node->body[0] : NULL};
  const rung_cpu_prepare prepare = {.arena = &b->arena, .plan = &b->plan, .step = &b->step, .kernel = b->kernel};
  if (b->kernel->prepare && b->kernel->prepare(&prepare, &b->args.prepared)) die("prepare");
  return b;
}

static bench *begin(void) {
  if (count == MAX_BENCHES) die("too many");
  bench *b = &all[count++];
  if (rung_graph_create(host, NULL, &b->graph)) die("no graph");
  return b;
}
static rung_dim constant(const bench *b, int64_t n) { return rung_graph_constant_dim(b->graph, n); }
static rung_value input(const bench *b, rung_graph *g, const char *name, int rank, int64_t m, int64_t n, int64_t k) {
  const int64_t extent[] = {m, n, k};
  rung_dim dim[3];
  for (int i = 0; i < rank; i++) dim[i] = constant(b, extent[i]);
  return rung_graph_input(g, name, RUNG_TYPE_F32, rank, dim);
}

/* ---- what is measured */

static void elementwise(const char *name, const rung_op *op, int n, int64_t rows, int64_t columns) {
  bench *b = begin();
  rung_value in[2];
  char text[64];
  for (int i = 0; i < n; i++) in[i] = input(b, b->graph, i ? "b" : "a", 2, rows, columns, 0);
  rung_graph_op(b->graph, op, in, (uint32_t)n, NULL);
  snprintf(text, sizeof text, "%s %lldx%lld", name, (long long)rows, (long long)columns);
  finish(b, text, 4.0 * (n + 1) * (double)(rows * columns), 0);
}

static void norm(int64_t rows, int64_t columns) {
  bench *b = begin();
  const rung_norm_attrs attrs = {1e-5};
  const rung_value in[] = {input(b, b->graph, "x", 2, rows, columns, 0), input(b, b->graph, "w", 1, columns, 0, 0)};
  char text[64];
  rung_graph_op(b->graph, &rung_op_rms_norm, in, 2, &attrs);
  snprintf(text, sizeof text, "rms_norm %lldx%lld", (long long)rows, (long long)columns);
  finish(b, text, 8.0 * (double)(rows * columns), 0);
}

static void simple(const char *name, const rung_op *op, const void *attrs, int64_t rows, int64_t columns,
                   double bytes) {
  bench *b = begin();
  const rung_value in[] = {input(b, b->graph, "x", 2, rows, columns, 0)};
  char text[64];
  rung_graph_op(b->graph, op, in, 1, attrs);
  snprintf(text, sizeof text, "%s %lldx%lld", name, (long long)rows, (long long)columns);
  finish(b, text, bytes * (double)(rows * columns), 0);
}

/* x + y, its norm, and that quantised; the sum is a result too. */
static void residual_norm(int64_t rows, int64_t columns) {
  bench *b = begin();
  rung_graph *g = b->graph, *body = rung_graph_body(g);
  const rung_norm_attrs attrs = {1e-5};
  const rung_value in[] = {input(b, g, "x", 2, rows, columns, 0), input(b, g, "y", 2, rows, columns, 0),
                           input(b, g, "w", 1, columns, 0, 0)};
  const rung_value x = input(b, body, "x", 2, rows, columns, 0), y = input(b, body, "y", 2, rows, columns, 0),
                   w = input(b, body, "w", 1, columns, 0, 0), sum = rung_build_add(body, x, y);
  const rung_value normal = rung_graph_op(body, &rung_op_rms_norm, (const rung_value[]){sum, w}, 2, &attrs);
  rung_graph_output(body, "sum", sum);
  rung_graph_output(body, "a8", rung_graph_op(body, &rung_op_quantize_rows, &normal, 1, NULL));
  rung_graph_append(g, &rung_op_fused, in, 3, NULL, &body, 1);
  char text[64];
  snprintf(text, sizeof text, "add+norm+quantize %lldx%lld", (long long)rows, (long long)columns);
  finish(b, text, (12 + 1.25) * (double)(rows * columns), 0);
}
static void gate(const char *name, const rung_op *op, int64_t rows, int64_t columns) {
  bench *b = begin();
  rung_graph *g = b->graph, *body = rung_graph_body(g);
  const rung_value in[] = {input(b, g, "x", 2, rows, columns, 0), input(b, g, "y", 2, rows, columns, 0)};
  const rung_value x = input(b, body, "x", 2, rows, columns, 0), y = input(b, body, "y", 2, rows, columns, 0);
  const rung_value both = rung_build_mul(body, rung_graph_op(body, op, &x, 1, NULL), y);
  rung_graph_output(body, "a8", rung_graph_op(body, &rung_op_quantize_rows, &both, 1, NULL));
  rung_graph_append(g, &rung_op_fused, in, 2, NULL, &body, 1);
  char text[64];
  snprintf(text, sizeof text, "%s+mul+quantize %lldx%lld", name, (long long)rows, (long long)columns);
  finish(b, text, (8 + 1.25) * (double)(rows * columns), 0);
}

static void rope(int64_t rows, int64_t heads, int64_t dim, int32_t mode) {
  bench *b = begin();
  const rung_dim n[] = {constant(b, rows)};
  const rung_rope_attrs attrs = {.base = 10000, .scale = 1, .magnitude = 1, .mode = mode};
  const rung_value in[] = {input(b, b->graph, "x", 3, rows, heads, dim),
                           rung_graph_input(b->graph, "p", RUNG_TYPE_I32, 1, n)};
  char text[64];
  rung_graph_op(b->graph, &rung_op_rope, in, 2, &attrs);
  snprintf(text, sizeof text, "rope %s %lldx%lldx%lld", mode ? "adjacent" : "half", (long long)rows, (long long)heads,
           (long long)dim);
  finish(b, text, 8.0 * (double)(rows * heads * dim), 0);
  for (int64_t i = 0; i < rows; i++) ((int32_t *)b->in[1].base)[i] = (int32_t)(i + 1000);
}

static rung_kv_view *state(rung_type type, int32_t heads, int32_t dim, int64_t capacity) {
  rung_kv_view *kv = memory(sizeof *kv);
  const uint32_t blocks = (uint32_t)((capacity + 63) / 64);
  *kv = (rung_kv_view){.type = type,
                       .kv_heads = heads,
                       .key_dim = dim,
                       .value_dim = dim,
                       .capacity = capacity,
                       .slots = 1,
                       .ring = blocks};
  kv->block_bytes = rung_cpu_kv_block_bytes(type, heads, dim, dim);
  kv->base = memory(kv->block_bytes * blocks);
  uint32_t *table = memory(blocks * sizeof *table);
  for (uint32_t i = 0; i < blocks; i++) table[i] = i;
  kv->table = table;
  float *row = memory((size_t)(2 * heads * dim) * sizeof *row);
  for (int64_t p = 0; p < capacity; p++) {
    for (int i = 0; i < 2 * heads * dim; i++) row[i] = uniform();
    rung_cpu_kv_write_row(kv, 0, p, row);
  }
  free(row);
  return kv;
}

/* `rows` rows from position `past` on: attention, or append. */
static void over_state(bool attend, rung_type type, int64_t rows, int64_t past, int64_t heads, int32_t kv_heads,
                       int32_t dim) {
  bench *b = begin();
  rung_graph *g = b->graph;
  const rung_state_desc desc = {
      .size = sizeof desc, .kind = RUNG_STATE_KV, .type = type, .rank = 3, .extent = {kv_heads, dim, dim}};
  const rung_value kv = rung_graph_state(g, "kv", &desc);
  const rung_dim one[] = {constant(b, 1)}, two[] = {constant(b, 2)};
  const rung_value offsets = rung_graph_input(g, "offsets", RUNG_TYPE_I32, 1, two),
                   slot = rung_graph_input(g, "slot", RUNG_TYPE_I32, 1, one),
                   before = rung_graph_input(g, "past", RUNG_TYPE_I32, 1, one);
  char text[64];
  double pairs = 0;
  for (int64_t r = 0; r < rows; r++) pairs += (double)(past + r + 1);
  if (attend) {
    const rung_attention_kv_attrs attrs = {.window = 0};
    const rung_value in[] = {input(b, g, "q", 3, rows, heads, dim), kv, offsets, slot, before};
    rung_graph_op(g, &rung_op_attention_kv, in, 5, &attrs);
    snprintf(text, sizeof text, "attention %s %lld after %lld %lld/%dx%d", rung_type_name(type), (long long)rows,
             (long long)past, (long long)heads, kv_heads, dim);
    finish(b, text, 0, 4.0 * pairs * (double)(heads * dim));
  } else {
    const rung_value in[] = {
        kv, input(b, g, "k", 3, rows, kv_heads, dim), input(b, g, "v", 3, rows, kv_heads, dim), offsets, slot, before};
    rung_graph_append(g, &rung_op_append, in, 6, NULL, NULL, 0);
    snprintf(text, sizeof text, "append %s %lld after %lld %dx%d", rung_type_name(type), (long long)rows,
             (long long)past, kv_heads, dim);
    finish(b, text, (double)(2 * rows * kv_heads * dim) * (type == RUNG_TYPE_F16 ? 6 : 8), 0);
  }
  const rung_kv_view *view = state(type, kv_heads, dim, past + rows);
  b->in[attend].kv = view;
  b->out[0].kv = view;
  ((int32_t *)b->in[attend ? 2 : 3].base)[1] = (int32_t)rows;
  ((int32_t *)b->in[attend ? 4 : 5].base)[0] = (int32_t)past;
}

static void list(void) {
  static const int64_t rows[] = {512, 1};
  const rung_axis_attrs last = {-1};
  for (int i = 0; i < 2; i++) {
    norm(rows[i], 576);
    elementwise("add", &rung_op_add, 2, rows[i], 576);
    elementwise("mul", &rung_op_mul, 2, rows[i], 1536);
    elementwise("silu", &rung_op_silu, 1, rows[i], 1536);
    elementwise("gelu_tanh", &rung_op_gelu_tanh, 1, rows[i], 2048);
    elementwise("exp", &rung_op_exp, 1, rows[i], 1024);
    elementwise("erf", &rung_op_erf, 1, rows[i], 1024);
    simple("quantize_rows", &rung_op_quantize_rows, NULL, rows[i], 576, 5.25);
    simple("softmax", &rung_op_softmax, &last, rows[i], 1024, 8);
    residual_norm(rows[i], 576);
    gate("silu", &rung_op_silu, rows[i], 1536);
    gate("gelu_tanh", &rung_op_gelu_tanh, rows[i], 2048);
    rope(rows[i], 9, 64, RUNG_ROPE_ADJACENT);
    rope(rows[i], 4, 256, RUNG_ROPE_HALF);
  }
  over_state(false, RUNG_TYPE_F16, 512, 0, 9, 3, 64);
  over_state(false, RUNG_TYPE_F16, 1, 500, 9, 3, 64);
  over_state(true, RUNG_TYPE_F16, 512, 0, 9, 3, 64);
  over_state(true, RUNG_TYPE_F32, 512, 0, 9, 3, 64);
  over_state(true, RUNG_TYPE_F16, 512, 0, 4, 1, 256);
  over_state(true, RUNG_TYPE_F16, 512, 512, 9, 3, 64);
  over_state(true, RUNG_TYPE_F16, 33, 0, 9, 3, 64);
  over_state(true, RUNG_TYPE_F16, 1, 63, 9, 3, 64);
  over_state(true, RUNG_TYPE_F16, 1, 511, 9, 3, 64);
  over_state(true, RUNG_TYPE_F16, 1, 1999, 9, 3, 64);
  over_state(true, RUNG_TYPE_F16, 1, 1999, 4, 1, 256);
  over_state(true, RUNG_TYPE_F16, 1, 1999, 32, 8, 128);
  over_state(true, RUNG_TYPE_F16, 1, 1999, 8, 8, 128);
}

static void measure(bench *b, double seconds) {
  const double end = now() + seconds;
  int times = 1;
  for (double start = now(); start < end;) {
    for (int i = 0; i < times; i++) {
      const int64_t tasks = b->kernel->row.tasks ? b->kernel->row.tasks(&b->args) : 1;
      for (int64_t t = 0; t < tasks; t++)
        if (b->kernel->row.run(&b->args, t, 0)) die(b->name);
    }
    const double at = now(), took = (at - start) / times;
    if (took < b->best) b->best = took;
    if (at - start < 1e-4) times *= 2;
    start = at;
  }
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 5;
  double fma = 0, copy = 0, small = 0;
  isa = rung_isa_detect();
  if (rung_host_create(NULL, NULL, &host)) die("no host");
  list();
  const uint64_t state = rung_float_state_set();
  for (int r = 0; r < rounds; r++) {
    const double f = fma_peak(isa), c = argc < 3 ? copy_rate(64u << 20) : 0, s = copy_rate(256u << 10);
    if (f > fma) fma = f;
    if (c > copy) copy = c;
    if (s > small) small = s;
    for (int i = 0; i < count; i++)
      if (argc < 3 || strstr(all[i].name, argv[2])) measure(&all[i], 0.02);
  }
  rung_float_state_restore(state);
  printf(
      "level %s, one thread: FMA %.0f GFLOP/s; copying %.1f GB/s from memory, %.1f GB/s within 512 KiB (read + "
      "written)\n",
      rung_isa_name(isa), fma * 1e-9, copy * 1e-9, small * 1e-9);
  printf("%-44s %12s %12s  %s\n", "kernel", "us", "rate", "share");
  for (int i = 0; i < count; i++) {
    const bench *b = &all[i];
    if (b->best > 1e8) continue;
    printf("%-44s %12.2f ", b->name, b->best * 1e6);
    if (b->flops > 0)
      printf("%7.1f GF/s  %3.0f%% of FMA   %s\n", b->flops / b->best * 1e-9,
             fma > 0 ? 100 * b->flops / b->best / fma : 0, b->kernel->row.name);
    else
      printf("%7.1f GB/s  %3.0f%% of %s   %s\n", b->bytes / b->best * 1e-9,
             100 * b->bytes / b->best / (b->bytes > (4 << 20) ? copy : small),
             b->bytes > (4 << 20) ? "memory" : "cache ", b->kernel->row.name);
  }
  rung_host_release(host);
  return 0;
}
