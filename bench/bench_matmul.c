/* SPDX-License-Identifier: MIT
 * How near the CPU's matrix product kernels come to what the machine can do. Limits and kernels are measured in one
 * run, and the best of many short rounds counts; with one thread its processor time, so that a busy machine disturbs
 * less.
 *
 *   bench_matmul [level] [kernel name part]
 *
 * level: base, avx2, avx512 or neon instead of the best. Shares are of the fused-multiply-add peak (f32 kernels; twice
 * that where pairs of bf16 are multiplied), of the dot-product peak (a8 kernels), or, for weights larger than the caches, of the read bandwidth. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/isa.h"
#include "../tools/rung/peaks.h"
#include "base/clock.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

static rung_host *host;
static rung_pool *pool;
static const rung_target *target;
static double seconds(int threads) {
  if (threads > 1) return (double)rung_clock_ns() * 1e-9;
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- limits */

enum { PEAK_ROUNDS = 2000 };

typedef struct stream {
  const uint8_t *data;
  int64_t at, bytes, tasks; /* a window of `bytes`, divided among the tasks */
} stream;
static void read_stream(void *self, int64_t task, int thread) {
  (void)thread;
  const stream *s = self;
  const int64_t part = s->bytes / s->tasks / 4096 * 4096;
  const uint64_t *p = (const uint64_t *)(s->data + s->at + task * part);
  uint64_t a = 0, b = 0, c = 0, d = 0;
  for (int64_t i = 0; i < part / 8; i += 32) {
    __builtin_prefetch((const char *)(p + i) + 8192);
    __builtin_prefetch((const char *)(p + i) + 8192 + 64);
    __builtin_prefetch((const char *)(p + i) + 8192 + 128);
    __builtin_prefetch((const char *)(p + i) + 8192 + 192);
    for (int j = 0; j < 32; j += 4) {
      a += p[i + j];
      b += p[i + j + 1];
      c ^= p[i + j + 2];
      d ^= p[i + j + 3];
    }
  }
  sink = (float)(a + b + c + d);
}

typedef struct limits {
  double fma, dot; /* 1e9 operations a second, a product and a sum being two */
  double read;     /* 1e9 bytes a second */
} limits;
static uint8_t *memory;
enum { MEMORY = 256 << 20 };

static double best_of(rung_task_fn *fn, void *self, int threads, int rounds) {
  double best = 1e9;
  for (int r = 0; r < rounds; r++) {
    const double start = (double)rung_clock_ns();
    rung_pool_run(pool, threads, threads, fn, self);
    const double took = ((double)rung_clock_ns() - start) * 1e-9;
    if (took < best) best = took;
  }
  return best;
}
/* Windows of 4 MiB, one after another through memory that no cache holds. */
static double best_read(int threads) {
  double best = 1e9;
  stream s = {memory, 0, 4 << 20, threads};
  for (int r = 0; r < 4; r++)
    for (s.at = 0; s.at + s.bytes < MEMORY; s.at += s.bytes) {
      const double took = best_of(read_stream, &s, threads, 1);
      if (took < best) best = took;
    }
  return best / (double)s.bytes;
}
static limits measure_limits(int threads) {
  const peak_rates peak = peak_measure(pool, threads, PEAK_ROUNDS, target->isa);
  limits l = {.fma = peak.multiply_add * 1e-9, .dot = peak.dot * 1e-9};
  l.read = 1e-9 / best_read(threads);
  return l;
}

/* ---- kernels */

typedef struct problem {
  rung_type a, b;
  int64_t m, n, k;
  const uint8_t *rows, *form;
  float *y;
} problem;
typedef struct job {
  const rung_kernel *row;
  rung_args args;
} job;
static void run_task(void *self, int64_t task, int thread) {
  const job *j = self;
  if (j->row->run(&j->args, task, thread)) abort();
}

static double run(const problem *p, int threads, int rounds, double least, const char **out_name) {
  rung_dims *dims = rung_dims_create(host);
  const rung_layout *layout = target->layout_of(p->b);
  const int64_t a_extent[] = {p->m, p->k}, b_extent[] = {p->n, p->k}, y_extent[] = {p->m, p->n};
  const int64_t a_stride[] = {p->k / rung_type_get(p->a)->block, 1},
                b_stride[] = {p->k / rung_type_get(p->b)->block, 1}, y_stride[] = {p->n, 1};
  const rung_matmul_attrs attrs = {.transpose_b = true, .type = RUNG_TYPE_F32};
  const rung_operand in[] = {{(uint8_t *)p->rows, a_extent, a_stride, 2, (uint8_t)p->a, 0, NULL},
                             {(uint8_t *)p->form, b_extent, b_stride, 2, (uint8_t)p->b, layout->id, NULL}};
  const rung_operand out = {(uint8_t *)p->y, y_extent, y_stride, 2, RUNG_TYPE_F32, 0, NULL};
  const int64_t role[] = {p->m, p->n, p->k};
  rung_dim role_dim[3];
  for (int i = 0; i < 3; i++) role_dim[i] = rung_dims_constant(dims, role[i]);
  const rung_value_type types[] = {
      {.type = p->a, .rank = 2, .extent = {role_dim[0], role_dim[2]}},
      {.type = p->b, .rank = 2, .layout = layout->id, .extent = {role_dim[1], role_dim[2]}}};
  const rung_node node = {.op = &rung_op_matmul, .attrs = &attrs, .n_in = 2, .results = 1};
  rung_match match = {.node = &node, .in = {&types[0], &types[1]}, .n_in = 2, .n_out = 1};
  match.out_type[0] = (rung_value_type){.type = RUNG_TYPE_F32, .rank = 2, .extent = {role_dim[0], role_dim[1]}};
  match.out = match.out_type;
  const rung_kernel *rows[RUNG_MAX_VARIANTS];
  char why[160];
  const size_t count = rung_target_match(target, &match, role, rows, RUNG_MAX_VARIANTS, why, sizeof why);
  job j = {.args = {.in = in, .out = &out, .n_in = 2, .n_out = 1, .attrs = &attrs, .role = role, .threads = threads}};
  for (size_t i = 0; i < count && !j.row; i++)
    if (rows[i]->guard_role < 0 || (p->m >= rows[i]->guard_lo && (!rows[i]->guard_hi || p->m < rows[i]->guard_hi)))
      j.row = rows[i];
  if (!j.row || !j.row->tasks) abort();
  int64_t bytes = 0;
  if (j.row->scratch && !rung_dims_is_constant(dims, j.row->scratch(dims, &match, role_dim), &bytes)) abort();
  j.args.scratch_stride = (size_t)(bytes + 63) / 64 * 64;
  j.args.scratch = rung_host_alloc(host, RUNG_MEMORY_scratch, j.args.scratch_stride * (size_t)threads + 64, 64);
  double best = 1e9;
  for (int r = 0; r < rounds || least > 0; r++) {
    const double start = seconds(threads);
    rung_pool_run(pool, threads, j.row->tasks(&j.args), run_task, &j);
    const double took = seconds(threads) - start;
    if (took < best) best = took;
    if (r >= rounds) least -= took;
  }
  rung_host_free(host, RUNG_MEMORY_scratch, j.args.scratch, j.args.scratch_stride * (size_t)threads + 64);
  rung_dims_release(dims);
  *out_name = j.row->name;
  return best;
}

/* A form of n x k in `memory`: one panel of random weights over and over. */
static void make_form(rung_type type, int64_t n, int64_t k) {
  static float x[16384];
  static uint8_t rows[16 * 65536];
  const uint64_t bytes = rung_type_bytes(type, (uint64_t)k);
  const uint8_t *row[16];
  uint64_t state = 1;
  for (int r = 0; r < 16; r++) {
    for (int64_t i = 0; i < k; i++) {
      state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
      x[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
    }
    row[r] = rows + (uint64_t)r * bytes;
    rung_type_get(type)->from_f32(x, rows + (uint64_t)r * bytes, (size_t)k);
  }
  const rung_layout *layout = target->layout_of(type);
  layout->pack(row, 16, k, memory);
  for (int64_t p = 1; p < n / 16; p++)
    memcpy(memory + (uint64_t)p * layout->panel_bytes(k), memory, layout->panel_bytes(k));
}

static void measure(rung_type a, rung_type b, int64_t m, int64_t n, int64_t k, const limits *limit, int threads,
                    const char *part) {
  static float x[16384];
  problem p = {.a = a, .b = b, .m = m, .n = n, .k = k, .form = memory};
  uint8_t *rows = rung_host_alloc(host, RUNG_MEMORY_activations, rung_type_bytes(a, (uint64_t)k) * (uint64_t)m, 64);
  for (int64_t i = 0; i < k; i++) x[i] = (float)(i * 37 % 101) - 50;
  for (int64_t r = 0; r < m; r++)
    rung_type_get(a)->from_f32(x, rows + (uint64_t)r * rung_type_bytes(a, (uint64_t)k), (size_t)k);
  p.rows = rows;
  p.y = rung_host_alloc(host, RUNG_MEMORY_activations, (size_t)(m * n) * sizeof(float), 64);
  const uint64_t bytes = rung_layout_bytes(target->layout_of(b), n, k);
  const bool streams = bytes > (64u << 20);
  const char *name = "";
  for (int t = 0; t < 2; t++) {
    const int used = t ? threads : 1;
    const double took = run(&p, used, streams ? 5 : 20, streams ? 0.1 : 0.02, &name);
    if (part && !strstr(name, part)) break;
    const double gops = 2.0 * (double)m * (double)n * (double)k / took * 1e-9, gbs = (double)bytes / took * 1e-9;
    const double peak = a == RUNG_TYPE_A8 ? limit[t].dot : strstr(name, "bf16_bf16") ? 2 * limit[t].fma : limit[t].fma;
    if (!t) printf("%-34s %4d %6d %5d", name, (int)m, (int)n, (int)k);
    if (streams) {
      printf("  %7.1f GB/s  %3.0f%%", gbs, 100 * gbs / limit[t].read);
    } else {
      printf("  %7.1f GOP/s %3.0f%%", gops, 100 * gops / peak);
    }
    if (t || threads == 1) putchar('\n');
    if (threads == 1) break;
  }
  rung_host_free(host, RUNG_MEMORY_activations, rows, rung_type_bytes(a, (uint64_t)k) * (uint64_t)m);
  rung_host_free(host, RUNG_MEMORY_activations, p.y, (size_t)(m * n) * sizeof(float));
}

int main(int argc, char **argv) {
  if (argc > 1) setenv("RUNG_MAX_ISA", argv[1], 1);
  const char *part = argc > 2 ? argv[2] : NULL;
  void *self;
  if (rung_host_create(NULL, NULL, &host) || rung_backend_cpu.open(host, NULL, &self)) return 1;
  target = rung_backend_cpu.target(self);
  pool = rung_pool_shared(host);
  const int threads = rung_pool_threads(pool);
  memory = rung_host_alloc(host, RUNG_MEMORY_packed, MEMORY, 1 << 21);
  memset(memory, 1, MEMORY);
  limits limit[2];
  for (int t = 0; t < 2; t++) {
    limit[t] = measure_limits(t ? threads : 1);
    printf("%s, %d thread%s: fused multiply-add %.0f GFLOP/s, dot products %.0f GOP/s, reads %.1f GB/s\n",
           rung_isa_name(target->isa), t ? threads : 1, t ? "s" : "", limit[t].fma, limit[t].dot, limit[t].read);
  }
  printf("%-34s %4s %6s %5s  %-17s %d\n", "kernel", "M", "N", "K", "threads: 1", threads);
  static const rung_type types[] = {RUNG_TYPE_Q4_0, RUNG_TYPE_Q4_1, RUNG_TYPE_Q5_0, RUNG_TYPE_Q5_1,
                                    RUNG_TYPE_Q8_0, RUNG_TYPE_Q4_K, RUNG_TYPE_Q5_K, RUNG_TYPE_Q6_K,
                                    RUNG_TYPE_F32,  RUNG_TYPE_F16,  RUNG_TYPE_BF16};
  static const int64_t heights[] = {1, 2, 4, 6, 16, 33, 128, 512};
  for (size_t i = 0; i < RUNG_COUNT(types); i++) {
    const rung_type_row *row = rung_type_get(types[i]);
    const bool blocks = row->block > 1;
    const rung_type other = blocks ? RUNG_TYPE_A8 : types[i] == RUNG_TYPE_BF16 ? RUNG_TYPE_BF16 : RUNG_TYPE_F32;
    const int64_t k = 768, n = 1536, long_k = 1536,
                  long_n = (96 << 20) / (int64_t)rung_type_bytes(types[i], long_k) / 64 * 64;
    make_form(types[i], n, k);
    for (int more = other != RUNG_TYPE_F32; more >= 0; more--)
      for (size_t h = 0; h < RUNG_COUNT(heights); h++)
        measure(more ? other : RUNG_TYPE_F32, types[i], heights[h], n, k, limit, threads, part);
    make_form(types[i], long_n, long_k);
    for (int64_t m = 1; m <= 16; m *= 4) measure(other, types[i], m, long_n, long_k, limit, threads, part);
    fflush(stdout);
  }
  rung_host_free(host, RUNG_MEMORY_packed, memory, MEMORY);
  rung_backend_cpu.close(self);
  rung_host_release(host);
  return 0;
}
