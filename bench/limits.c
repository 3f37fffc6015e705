/* SPDX-License-Identifier: MIT
 * What this machine can do at most: memory read bandwidth, multiply-add rates, hand-off of a cache line between cores.
 *
 *   limits [--threads N] [--only NAME[,NAME]] [--quick]
 *
 * Prints one JSON object. Every figure is taken several times: lowest, median, highest. RUNG_MAX_ISA caps the instruction
 * set as it does for the library. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#elif defined(__aarch64__)
#include <arm_neon.h>
#define PAUSE() __asm__ volatile("yield")
#else
#define PAUSE() ((void)0)
#endif

enum { MOST_THREADS = 256, MOST_PASSES = 32, HUGE_PAGE = 2 << 20 };
static const size_t LARGE = (size_t)512 << 20, SMALL = (size_t)43 * 1000 * 1000 / HUGE_PAGE * HUGE_PAGE;

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a team of threads that start together */

typedef void work_fn(void *self, int thread, int threads);
typedef struct team {
  work_fn *work;
  void *self;
  int threads;
  atomic_int ready, go, done;
} team;
typedef struct member {
  team *t;
  int index;
  pthread_t id;
} member;

static void *member_main(void *arg) {
  const member *m = arg;
  atomic_fetch_add(&m->t->ready, 1);
  while (!atomic_load_explicit(&m->t->go, memory_order_acquire)) PAUSE();
  m->t->work(m->t->self, m->index, m->t->threads);
  atomic_fetch_add(&m->t->done, 1);
  return NULL;
}

/* Seconds from the start to the end of the last one; the caller is thread 0. */
static double run_team(int threads, work_fn *work, void *self) {
  team t = {.work = work, .self = self, .threads = threads};
  member m[MOST_THREADS];
  for (int i = 1; i < threads; i++) {
    m[i] = (member){.t = &t, .index = i};
    if (pthread_create(&m[i].id, NULL, member_main, &m[i])) {
      fprintf(stderr, "limits: thread %d of %d cannot be started\n", i, threads);
      exit(1);
    }
  }
  while (atomic_load(&t.ready) < threads - 1) PAUSE();
  const double start = seconds();
  atomic_store_explicit(&t.go, 1, memory_order_release);
  work(self, 0, threads);
  while (atomic_load(&t.done) < threads - 1) PAUSE();
  const double took = seconds() - start;
  for (int i = 1; i < threads; i++) pthread_join(m[i].id, NULL);
  return took;
}

/* ---- figures */

typedef struct figures {
  double value[MOST_PASSES];
  int count;
} figures;

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_figures(figures *f, const char *name, int threads, const char *unit) {
  static bool later;
  if (!f->count) return;
  qsort(f->value, (size_t)f->count, sizeof *f->value, compare_doubles);
  printf("%s\n  {\"name\": \"%s\", \"threads\": %d, \"unit\": \"%s\", \"low\": %.6g, \"median\": %.6g, \"high\": %.6g}",
         later ? "," : "", name, threads, unit, f->value[0], f->value[f->count / 2], f->value[f->count - 1]);
  later = true;
}

static void add_figure(figures *f, double value) {
  if (f->count < MOST_PASSES) f->value[f->count++] = value;
}

/* ---- reading memory */

typedef struct reading {
  const uint8_t *data;
  size_t bytes;
  int64_t ahead; /* prefetch distance, 0: none */
  int passes;
  _Alignas(64) uint64_t sum[MOST_THREADS][8]; /* so that nothing can be left out */
} reading;

typedef uint64_t read_fn(const uint8_t *from, size_t bytes, int64_t ahead);

static uint64_t read_plain(const uint8_t *from, size_t bytes, int64_t ahead) {
  enum { LANES = 32 };
  uint64_t lane[LANES] = {0}, sum = 0, word[LANES];
  (void)ahead;
  for (size_t i = 0; i < bytes; i += sizeof word) {
    memcpy(word, from + i, sizeof word);
    for (int k = 0; k < LANES; k++) lane[k] += word[k];
  }
  for (int k = 0; k < LANES; k++) sum += lane[k];
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t read_avx2(const uint8_t *from, size_t bytes, int64_t ahead) {
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  for (size_t i = 0; i < bytes; i += 128) {
    const uint8_t *p = from + i;
    if (ahead) {
      _mm_prefetch((const char *)p + ahead, _MM_HINT_T0);
      _mm_prefetch((const char *)p + ahead + 64, _MM_HINT_T0);
    }
    a = _mm256_add_epi64(a, _mm256_loadu_si256((const void *)p));
    b = _mm256_add_epi64(b, _mm256_loadu_si256((const void *)(p + 32)));
    c = _mm256_add_epi64(c, _mm256_loadu_si256((const void *)(p + 64)));
    d = _mm256_add_epi64(d, _mm256_loadu_si256((const void *)(p + 96)));
  }
  uint64_t lane[4], sum = 0;
  _mm256_storeu_si256((void *)lane, _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d)));
  for (int k = 0; k < 4; k++) sum += lane[k];
  return sum;
}

__attribute__((target("avx512f"))) static uint64_t read_avx512(const uint8_t *from, size_t bytes, int64_t ahead) {
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  for (size_t i = 0; i < bytes; i += 256) {
    const uint8_t *p = from + i;
    if (ahead)
      for (int k = 0; k < 256; k += 64) _mm_prefetch((const char *)p + ahead + k, _MM_HINT_T0);
    a = _mm512_add_epi64(a, _mm512_loadu_si512(p));
    b = _mm512_add_epi64(b, _mm512_loadu_si512(p + 64));
    c = _mm512_add_epi64(c, _mm512_loadu_si512(p + 128));
    d = _mm512_add_epi64(d, _mm512_loadu_si512(p + 192));
  }
  uint64_t lane[8], sum = 0;
  _mm512_storeu_si512(lane, _mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d)));
  for (int k = 0; k < 8; k++) sum += lane[k];
  return sum;
}
#endif

static read_fn *reader(uint32_t isa) {
#if defined(__x86_64__)
  if (isa & RUNG_ISA_AVX512) return read_avx512;
  if (isa & RUNG_ISA_AVX2) return read_avx2;
#endif
  (void)isa;
  return read_plain;
}

static read_fn *chosen_reader;

static void read_part(void *self, int thread, int threads) {
  reading *r = self;
  const size_t part = r->bytes / (size_t)threads / 256 * 256;
  for (int pass = 0; pass < r->passes; pass++)
    r->sum[thread][0] += chosen_reader(r->data + (size_t)thread * part, part, r->ahead);
}

/* The better of plain reading and prefetching, for each figure: the limit is what the machine can do. */
static void measure_reading(const uint8_t *data, size_t bytes, const char *name, int threads, int passes, int repeat) {
  static reading r;
  figures f = {.count = 0};
  const size_t read = bytes / (size_t)threads / 256 * 256 * (size_t)threads * (size_t)repeat;
  r = (reading){.data = data, .bytes = bytes, .passes = repeat};
  (void)run_team(threads, read_part, &r);
  for (int pass = 0; pass < passes; pass++) {
    double best = 0;
    for (int way = 0; way < 2; way++) {
      r.ahead = way ? 4096 : 0;
      const double rate = (double)read / run_team(threads, read_part, &r);
      if (rate > best) best = rate;
    }
    add_figure(&f, best);
  }
  print_figures(&f, name, threads, "byte/s");
}

/* With a page of room behind it for prefetches. */
static uint8_t *buffer_new(size_t bytes) {
  uint8_t *p = aligned_alloc(HUGE_PAGE, bytes + HUGE_PAGE);
  if (!p) {
    fprintf(stderr, "limits: no memory for %zu bytes\n", bytes);
    exit(1);
  }
  (void)madvise(p, bytes + HUGE_PAGE, MADV_HUGEPAGE);
  memset(p, 1, bytes + HUGE_PAGE);
  return p;
}

/* ---- arithmetic: independent chains of one instruction, all in registers */

typedef struct arithmetic {
  double (*kernel)(int64_t rounds); /* returns operations made */
  int64_t rounds;
  double operations[MOST_THREADS];
} arithmetic;

static volatile float float_sink;
static volatile int int_sink;

#if defined(__x86_64__)
enum {
  WIDE = 16,
  NARROW = 12
}; /* chains: enough for four cycles of latency on two pipes, few enough for the registers */

__attribute__((target("avx512f"))) static double fma_avx512(int64_t rounds) {
  __m512 a[WIDE], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
  for (int k = 0; k < WIDE; k++) a[k] = _mm512_set1_ps((float)k);
  for (int64_t i = 0; i < rounds; i++)
    for (int k = 0; k < WIDE; k++) a[k] = _mm512_fmadd_ps(a[k], x, y);
  for (int k = 1; k < WIDE; k++) a[0] = _mm512_add_ps(a[0], a[k]);
  float_sink = _mm512_cvtss_f32(a[0]);
  return (double)rounds * WIDE * 16 * 2;
}

__attribute__((target("avx512f,avx512bf16"))) static double bf16_avx512(int64_t rounds) {
  __m512 a[WIDE];
  const __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
  for (int k = 0; k < WIDE; k++) a[k] = _mm512_set1_ps((float)k);
  for (int64_t i = 0; i < rounds; i++)
    for (int k = 0; k < WIDE; k++) a[k] = _mm512_dpbf16_ps(a[k], x, x);
  for (int k = 1; k < WIDE; k++) a[0] = _mm512_add_ps(a[0], a[k]);
  float_sink = _mm512_cvtss_f32(a[0]);
  return (double)rounds * WIDE * 32 * 2;
}

__attribute__((target("avx512f,avx512vnni"))) static double int8_avx512(int64_t rounds) {
  __m512i a[WIDE], x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(-2);
  for (int k = 0; k < WIDE; k++) a[k] = _mm512_set1_epi32(k);
  for (int64_t i = 0; i < rounds; i++)
    for (int k = 0; k < WIDE; k++) a[k] = _mm512_dpbusd_epi32(a[k], x, y);
  for (int k = 1; k < WIDE; k++) a[0] = _mm512_add_epi32(a[0], a[k]);
  int_sink = _mm_cvtsi128_si32(_mm512_castsi512_si128(a[0]));
  return (double)rounds * WIDE * 64 * 2;
}

__attribute__((target("avx2,fma"))) static double fma_avx2(int64_t rounds) {
  __m256 a[NARROW], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (int k = 0; k < NARROW; k++) a[k] = _mm256_set1_ps((float)k);
  for (int64_t i = 0; i < rounds; i++)
    for (int k = 0; k < NARROW; k++) a[k] = _mm256_fmadd_ps(a[k], x, y);
  for (int k = 1; k < NARROW; k++) a[0] = _mm256_add_ps(a[0], a[k]);
  float_sink = _mm256_cvtss_f32(a[0]);
  return (double)rounds * NARROW * 8 * 2;
}

/* Without VNNI a step of a dot product of bytes takes two instructions, and whatever brings 16 bits to 32 comes once in
 * several steps. As C, compilers would see that all products are alike. */
enum { PAIRS = 8 }; /* chains: products need registers too */
__attribute__((target("avx2"))) static double int8_avx2(int64_t rounds) {
  __m256i a[PAIRS], x = _mm256_set1_epi8(3), y = _mm256_set1_epi8(-2);
  for (int k = 0; k < PAIRS; k++) a[k] = _mm256_set1_epi16((short)k);
  for (int64_t i = 0; i < rounds; i++)
    for (int k = 0; k < PAIRS; k++) {
      __m256i product;
      __asm__ volatile("vpmaddubsw %2, %1, %0" : "=x"(product) : "x"(x), "x"(y));
      a[k] = _mm256_add_epi16(a[k], product);
    }
  for (int k = 1; k < PAIRS; k++) a[0] = _mm256_add_epi16(a[0], a[k]);
  int_sink = _mm_cvtsi128_si32(_mm256_castsi256_si128(a[0]));
  return (double)rounds * PAIRS * 32 * 2;
}
#elif defined(__aarch64__)
enum { WIDE = 16 };

static double fma_neon(int64_t rounds) {
  float32x4_t a[WIDE], x = vdupq_n_f32(0.999f), y = vdupq_n_f32(0.001f);
  for (int k = 0; k < WIDE; k++) a[k] = vdupq_n_f32((float)k);
  for (int64_t i = 0; i < rounds; i++)
    for (int k = 0; k < WIDE; k++) a[k] = vfmaq_f32(y, a[k], x);
  for (int k = 1; k < WIDE; k++) a[0] = vaddq_f32(a[0], a[k]);
  float_sink = vgetq_lane_f32(a[0], 0);
  return (double)rounds * WIDE * 4 * 2;
}

/* clang before 16 has this intrinsic only where the whole file is compiled for it. */
#if !defined(__clang__) || defined(__ARM_FEATURE_DOTPROD)
#define HAVE_INT8_NEON
__attribute__((target("arch=armv8.2-a+dotprod"))) static double int8_neon(int64_t rounds) {
  int32x4_t a[WIDE];
  const int8x16_t x = vdupq_n_s8(3), y = vdupq_n_s8(-2);
  for (int k = 0; k < WIDE; k++) a[k] = vdupq_n_s32(k);
  for (int64_t i = 0; i < rounds; i++)
    for (int k = 0; k < WIDE; k++) a[k] = vdotq_s32(a[k], x, y);
  for (int k = 1; k < WIDE; k++) a[0] = vaddq_s32(a[0], a[k]);
  int_sink = vgetq_lane_s32(a[0], 0);
  return (double)rounds * WIDE * 16 * 2;
}
#endif
#endif

typedef struct instruction {
  const char *name;
  uint32_t isa;
  double (*kernel)(int64_t rounds);
} instruction;

/* The first of a name that the machine has is taken. */
static const instruction instructions[] = {
#if defined(__x86_64__)
    {"fma_f32", RUNG_ISA_AVX512, fma_avx512},
    {"fma_f32", RUNG_ISA_AVX2, fma_avx2},
    {"dot_bf16", RUNG_ISA_AVX512, bf16_avx512},
    {"dot_int8", RUNG_ISA_AVX512, int8_avx512},
    {"dot_int8", RUNG_ISA_AVX2, int8_avx2},
#elif defined(__aarch64__)
    {"fma_f32", RUNG_ISA_NEON, fma_neon},
#ifdef HAVE_INT8_NEON
    {"dot_int8", RUNG_ISA_NEON, int8_neon},
#endif
#endif
    {NULL, 0, NULL}};

static void compute_part(void *self, int thread, int threads) {
  arithmetic *a = self;
  (void)threads;
  a->operations[thread] = a->kernel(a->rounds);
}

static void measure_arithmetic(const instruction *in, int threads, int passes, double length) {
  static arithmetic a;
  figures f = {.count = 0};
  a = (arithmetic){.kernel = in->kernel, .rounds = 1 << 16};
  while (run_team(1, compute_part, &a) < length) a.rounds *= 2;
  for (int pass = 0; pass < passes; pass++) {
    const double took = run_team(threads, compute_part, &a);
    double all = 0;
    for (int t = 0; t < threads; t++) all += a.operations[t];
    add_figure(&f, all / took);
  }
  print_figures(&f, in->name, threads, "op/s");
}

/* ---- handing a cache line over */

typedef struct line {
  _Alignas(128) atomic_long turn;
  _Alignas(128) long rounds;
} line;

static void hand_over(void *self, int thread, int threads) {
  line *l = self;
  (void)threads;
  for (long i = 0; i < l->rounds; i++) {
    const long mine = 2 * i + thread;
    while (atomic_load_explicit(&l->turn, memory_order_acquire) != mine) PAUSE();
    atomic_store_explicit(&l->turn, mine + 1, memory_order_release);
  }
}

static void measure_hand_over(int passes, long rounds) {
  static line l;
  figures f = {.count = 0};
  for (int pass = 0; pass < passes; pass++) {
    l.rounds = rounds;
    atomic_store(&l.turn, 0);
    add_figure(&f, run_team(2, hand_over, &l) / (double)(2 * rounds));
  }
  print_figures(&f, "hand_over", 2, "s");
}

/* ---- the command */

typedef struct options {
  int threads;
  bool quick;
  const char *only; /* names with commas between them, NULL: all */
} options;

static bool wanted(const options *o, const char *name) {
  const size_t n = strlen(name);
  for (const char *p = o->only; p; p = strchr(p, ',')) {
    p += *p == ',';
    if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == 0)) return true;
  }
  return !o->only;
}

static void measure_memory(const options *o, int threads, const char *name, size_t bytes, uint8_t *data) {
  if (!data) return;
  const int passes = o->quick ? 2 : 7, repeat = o->quick || bytes == LARGE ? 1 : 4;
  measure_reading(data, bytes, name, 1, passes, repeat);
  if (threads > 1) measure_reading(data, bytes, name, threads, passes, repeat);
}

static void measure_all(const options *o, uint32_t isa) {
  const bool large = wanted(o, "read"), small = wanted(o, "read_43mb");
  uint8_t *data = large ? buffer_new(LARGE) : small ? buffer_new(SMALL) : NULL;
  chosen_reader = reader(isa);
  if (large) measure_memory(o, o->threads, "read", LARGE, data);
  if (small) measure_memory(o, o->threads, "read_43mb", SMALL, data);
  free(data);
  const char *last = "";
  for (const instruction *in = instructions; in->name; in++) {
    if (!(in->isa & isa) || strcmp(in->name, last) == 0 || !wanted(o, in->name)) continue;
    last = in->name;
    measure_arithmetic(in, 1, o->quick ? 2 : 7, o->quick ? 0.005 : 0.05);
    if (o->threads > 1) measure_arithmetic(in, o->threads, o->quick ? 2 : 7, o->quick ? 0.005 : 0.05);
  }
  if (o->threads > 1 && wanted(o, "hand_over")) measure_hand_over(o->quick ? 5 : 15, o->quick ? 5000 : 20000);
}

static int usage(void) {
  fprintf(stderr,
          "usage: limits [--threads N] [--only NAME[,NAME]] [--quick]\n"
          "names: read, read_43mb, fma_f32, dot_bf16, dot_int8, hand_over\n"
          "example: limits --only read,hand_over --quick\n");
  return 2;
}

int main(int count, char **argument) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  options o = {.threads = cores > 0 ? (int)cores : 1};
  for (int i = 1; i < count; i++) {
    if (strcmp(argument[i], "--quick") == 0) {
      o.quick = true;
    } else if (strcmp(argument[i], "--only") == 0 && i + 1 < count) {
      o.only = argument[++i];
    } else if (strcmp(argument[i], "--threads") == 0 && i + 1 < count) {
      o.threads = atoi(argument[++i]);
    } else {
      return usage();
    }
  }
  if (o.threads < 1 || o.threads > MOST_THREADS) return usage();
  const uint32_t isa = rung_isa_detect();
  printf("{\"isa\": \"%s\", \"threads\": %d, \"limits\": [", rung_isa_name(isa), o.threads);
  measure_all(&o, isa);
  printf("\n]}\n");
  return 0;
}
