/* SPDX-License-Identifier: MIT
 * append and attention_kv of the CPU backend at every level: against the references, and bit for bit over every way to
 * cut a prompt, beside other sequences, split over threads. Blocks hold NaN before anything is written into them, and
 * stand in a random order. */
#include <math.h>

#include "cpu_run.h"
#include "ops/attrs.h"
#include "ops/structured.h"

static rung_host *host;
static uint64_t seed = 88172645463325252u;

enum { SLOTS = 4, MAX_SEQUENCES = SLOTS };

/* ---- states */

typedef struct setting {
  rung_type type;
  int32_t heads, kv_heads, key_dim, value_dim;
  int64_t capacity, window;
  double scale, soft_cap;
  bool narrow;
} setting;

typedef struct state {
  rung_kv_view kv;
  uint32_t *table;
  uint8_t *memory;
  size_t bytes;
  rung_operand operand;
  int64_t length[SLOTS];
} state;

static void state_init(state *s, const setting *c) {
  memset(s, 0, sizeof *s);
  rung_kv_view *kv = &s->kv;
  const int64_t layer = (int64_t)rung_cpu_kv_block_bytes(c->type, c->kv_heads, c->key_dim, c->value_dim);
  *kv = (rung_kv_view){.type = c->type,
                       .kv_heads = c->kv_heads,
                       .key_dim = c->key_dim,
                       .value_dim = c->value_dim,
                       .window = c->window,
                       .capacity = c->capacity,
                       .slots = SLOTS,
                       .length = s->length,
                       .read_row = rung_cpu_kv_read_row,
                       .write_row = rung_cpu_kv_write_row};
  kv->ring = (uint32_t)((c->capacity + RUNG_KV_BLOCK - 1) / RUNG_KV_BLOCK);
  kv->layer_offset = 64; /* other layers lie around this one */
  kv->block_bytes = (size_t)(64 + (layer + 63) / 64 * 64 + 128);
  const uint32_t blocks = SLOTS * kv->ring;
  s->bytes = blocks * kv->block_bytes;
  s->memory = (uint8_t *)aligned_alloc(64, (s->bytes + 63) / 64 * 64);
  memset(s->memory, 0xFF, s->bytes); /* NaN in f16 and in f32 */
  kv->base = s->memory;
  s->table = (uint32_t *)calloc(blocks, sizeof *s->table);
  for (uint32_t i = 0; i < blocks; i++) s->table[i] = i;
  for (uint32_t i = blocks; i > 1; i--) {
    const uint32_t k = (uint32_t)test_below(&seed, i), swap = s->table[i - 1];
    s->table[i - 1] = s->table[k];
    s->table[k] = swap;
  }
  kv->table = s->table;
  s->operand = (rung_operand){.rank = 3, .type = (uint8_t)c->type, .kv = kv};
}
static void state_finish(state *s) {
  free(s->memory);
  free(s->table);
}

/* ---- steps: the node of an op for a number of rows and sequences, and every kernel row that takes it */

typedef struct nodes {
  rung_graph *graph;
  const rung_node *append, *attention;
} nodes;

static const rung_node *add(rung_graph *g, const rung_op *op, const rung_value *in, uint32_t n, const void *attrs) {
  const rung_node *node = rung_graph_append(g, op, in, n, attrs, NULL, 0);
  if (!node) fprintf(stderr, "%s\n", rung_graph_message(g));
  CHECK(node != NULL);
  return node;
}

static nodes build_nodes(const setting *c, int64_t rows, int64_t sequences) {
  nodes s = {NULL, NULL, NULL};
  CHECK_OK(rung_graph_create(host, NULL, &s.graph));
  rung_graph *g = s.graph;
#define DIM(n) rung_graph_constant_dim(g, n)
  const rung_dim q[] = {DIM(rows), DIM(c->heads), DIM(c->key_dim)},
                 k[] = {DIM(rows), DIM(c->kv_heads), DIM(c->key_dim)},
                 v[] = {DIM(rows), DIM(c->kv_heads), DIM(c->value_dim)}, n[] = {DIM(sequences)},
                 n1[] = {DIM(sequences + 1)};
  const rung_state_desc desc = {.size = sizeof desc,
                                .kind = RUNG_STATE_KV,
                                .type = c->type,
                                .rank = 3,
                                .extent = {c->kv_heads, c->key_dim, c->value_dim},
                                .window = c->window};
  const rung_value kv = rung_graph_state(g, "kv", &desc);
  const rung_value ragged[] = {rung_graph_input(g, "offsets", RUNG_TYPE_I32, 1, n1),
                               rung_graph_input(g, "slot", RUNG_TYPE_I32, 1, n),
                               rung_graph_input(g, "past", RUNG_TYPE_I32, 1, n)};
  const rung_value in[] = {kv,
                           rung_graph_input(g, "k", RUNG_TYPE_F32, 3, k),
                           rung_graph_input(g, "v", RUNG_TYPE_F32, 3, v),
                           ragged[0],
                           ragged[1],
                           ragged[2]};
  s.append = add(g, &rung_op_append, in, 6, NULL);
  const rung_attention_kv_attrs attrs = {c->scale, c->soft_cap, c->window, c->narrow};
  const rung_value to[] = {rung_graph_input(g, "q", RUNG_TYPE_F32, 3, q), rung_node_result(g, s.append, 0), ragged[0],
                           ragged[1], ragged[2]};
  s.attention = add(g, &rung_op_attention_kv, to, 5, &attrs);
#undef DIM
  return s;
}

/* The level's row for the node: the last that takes it. */
static const rung_cpu_kernel *find(uint32_t isa, uint32_t level, const rung_graph *g, const rung_node *node) {
  cpu_rows at = {0, 0, 0, NULL};
  const rung_cpu_kernel *kernel, *found = NULL;
  rung_match match;
  char why[160];
  rung_match_init(&match, g, node);
  while ((kernel = cpu_rows_next(&at, isa)) != NULL)
    if (kernel->row.isa == level && cpu_row_takes(&kernel->row, &match, why)) found = kernel;
  CHECK(found != NULL);
  return found;
}

/* ---- a batch: rows of some sequences */

typedef struct sequence {
  int32_t slot, past, count;
  int64_t from; /* row in the data that its first row is */
} sequence;
/* What all rows of a test are taken from: [rows][heads][dim]. */
typedef struct data {
  float *q, *k, *v, *y;
} data;

static float *random_floats(int64_t n, float low, float high) {
  float *x = (float *)malloc((size_t)(n + 1) * sizeof *x);
  for (int64_t i = 0; i < n; i++) x[i] = test_uniform(&seed, low, high);
  return x;
}
static data data_make(const setting *c, int64_t rows) {
  data d;
  d.q = random_floats(rows * c->heads * c->key_dim, -2, 2);
  d.k = random_floats(rows * c->kv_heads * c->key_dim, -2, 2);
  d.v = random_floats(rows * c->kv_heads * c->value_dim, -2, 2);
  d.y = random_floats(rows * c->heads * c->value_dim, 0, 1);
  return d;
}
static void data_free(data *d) {
  free(d->q);
  free(d->k);
  free(d->v);
  free(d->y);
}

/* A row-strided operand with the rows of all sequences one after another. */
typedef struct packed {
  float *memory;
  int64_t extent[3], stride[3];
  rung_operand operand;
} packed;
static void pack(packed *p, const float *from, const sequence *s, int n, int64_t heads, int64_t dim, int64_t gap) {
  int64_t rows = 0;
  for (int i = 0; i < n; i++) rows += s[i].count;
  *p = (packed){.extent = {rows, heads, dim}, .stride = {heads * dim + gap, dim, 1}};
  p->memory = (float *)malloc((size_t)(rows * p->stride[0] + 1) * sizeof(float));
  float *to = p->memory;
  for (int i = 0; i < n; i++)
    for (int64_t r = 0; r < s[i].count; r++, to += p->stride[0])
      if (from) memcpy(to, from + (s[i].from + r) * heads * dim, (size_t)(heads * dim) * sizeof(float));
  p->operand = (rung_operand){
      .base = (uint8_t *)p->memory, .extent = p->extent, .stride = p->stride, .rank = 3, .type = RUNG_TYPE_F32};
}

static int64_t most_tasks;

/* Appends and attends; level 0xffffffff: the references. */
#define REFERENCE UINT32_MAX
static void run_batch(const setting *c, state *st, const data *d, const sequence *s, int n, uint32_t level,
                      int threads) {
  packed q, k, v, y;
  int32_t offsets[MAX_SEQUENCES + 1] = {0}, slot[MAX_SEQUENCES + 1], past[MAX_SEQUENCES + 1];
  const int64_t gap = test_below(&seed, 3) * 4;
  pack(&q, d->q, s, n, c->heads, c->key_dim, gap);
  pack(&k, d->k, s, n, c->kv_heads, c->key_dim, gap);
  pack(&v, d->v, s, n, c->kv_heads, c->value_dim, gap);
  pack(&y, NULL, s, n, c->heads, c->value_dim, 0);
  for (int i = 0; i < n; i++) offsets[i + 1] = offsets[i] + s[i].count, slot[i] = s[i].slot, past[i] = s[i].past;
  const int64_t one[] = {1}, e[] = {n}, e1[] = {n + 1};
  const rung_operand ragged[] = {
      {.base = (uint8_t *)offsets, .extent = e1, .stride = one, .rank = 1, .type = RUNG_TYPE_I32},
      {.base = (uint8_t *)slot, .extent = e, .stride = one, .rank = 1, .type = RUNG_TYPE_I32},
      {.base = (uint8_t *)past, .extent = e, .stride = one, .rank = 1, .type = RUNG_TYPE_I32}};
  const rung_operand append_in[] = {st->operand, k.operand, v.operand, ragged[0], ragged[1], ragged[2]};
  const rung_operand attention_in[] = {q.operand, st->operand, ragged[0], ragged[1], ragged[2]};
  nodes graph = build_nodes(c, q.extent[0], n);
  rung_error error = {RUNG_OK, ""};
  if (level == REFERENCE) {
    rung_args args = {.in = append_in, .out = &st->operand, .n_in = 6, .n_out = 1, .error = &error};
    CHECK_OK(rung_op_append.reference(&args));
    args = (rung_args){
        .in = attention_in, .out = &y.operand, .n_in = 5, .n_out = 1, .attrs = graph.attention->attrs, .error = &error};
    CHECK_OK(rung_op_attention_kv.reference(&args));
  } else {
    const rung_node *node[] = {graph.append, graph.attention};
    for (int i = 0; i < 2; i++) {
      cpu_step step;
      int64_t symbol[RUNG_MAX_SYMBOLS] = {0};
      if (!cpu_step_make(&step, host, find(rung_isa_detect(), level, graph.graph, node[i]), graph.graph, node[i],
                         symbol))
        continue;
      CHECK_OK(cpu_step_run(&step, i ? attention_in : append_in, i ? &y.operand : &st->operand, threads, &error));
      if (i && step.tasks > most_tasks) most_tasks = step.tasks;
      cpu_step_finish(&step);
    }
  }
  const float *from = y.memory;
  for (int i = 0; i < n; i++)
    for (int64_t r = 0; r < s[i].count; r++, from += c->heads * c->value_dim)
      memcpy(d->y + (s[i].from + r) * c->heads * c->value_dim, from, (size_t)(c->heads * c->value_dim) * sizeof(float));
  rung_graph_destroy(graph.graph);
  free(q.memory);
  free(k.memory);
  free(v.memory);
  free(y.memory);
}

static uint32_t levels[4];
static int level_count;

/* ---- against the references */

/* Roundings: the dot product's dim terms of at most 4 each in f32 (random, so their root counts), the weights' exponent
 * takes that over; sums of up to keys terms below max|v| likewise. */
static double room(const setting *c) {
  const double score =
      4 * sqrt((double)c->key_dim) * 0x1p-23 * (c->scale > 0 ? c->scale : 1 / sqrt((double)c->key_dim));
  /* Rounded to bf16: each of the terms by up to 2^-8, and each of the weighted values. */
  return c->narrow ? 0x1p15 * 2 * (score + 4 * 0x1p-23) : 2 * (8 * score + 32 * 0x1p-23);
}

static void check_close(const setting *c, const data *want, const data *have, int64_t rows, uint32_t level,
                        const char *what) {
  test_state.checks++;
  for (int64_t i = 0; i < rows * c->heads * c->value_dim; i++) {
    const double u = (double)want->y[i], v = (double)have->y[i];
    if ((u != u && v != v) || fabs(u - v) <= room(c)) continue;
    TEST_FAIL_("%s, level %u, heads %d/%d dims %d/%d window %lld: row %lld is %.9g, not %.9g", what, level, c->heads,
               c->kv_heads, c->key_dim, c->value_dim, (long long)c->window, (long long)(i / (c->heads * c->value_dim)),
               v, u);
    return;
  }
}

static const setting settings[] = {{RUNG_TYPE_F16, 9, 3, 64, 64, 2304, 0, 0, 0, false},
                                   {RUNG_TYPE_F32, 9, 3, 64, 64, 2304, 0, 0, 0, false},
                                   {RUNG_TYPE_F16, 4, 1, 256, 256, 640, 100, 0.0625, 0, false},
                                   {RUNG_TYPE_F32, 4, 1, 256, 256, 640, 0, 0.0625, 0, false},
                                   {RUNG_TYPE_F16, 2, 2, 7, 5, 320, 0, 0, 0, false},
                                   {RUNG_TYPE_F32, 6, 2, 80, 33, 320, 3, 0, 20, false},
                                   {RUNG_TYPE_F16, 5, 1, 16, 96, 256, 64, 0, 5, false},
                                   {RUNG_TYPE_F32, 64, 1, 16, 16, 192, 0, 0, 0, false},
                                   {RUNG_TYPE_F32, 1, 1, 1, 1, 192, 1, 0, 0, false},
                                   {RUNG_TYPE_F16, 50, 1, 8, 20, 128, 0, 0, 0, false},
                                   {RUNG_TYPE_BF16, 9, 3, 64, 64, 640, 0, 0, 0, false},
                                   {RUNG_TYPE_BF16, 5, 1, 7, 33, 256, 64, 0, 5, false},
                                   {RUNG_TYPE_F16, 9, 3, 64, 64, 2304, 0, 0, 0, true},
                                   {RUNG_TYPE_F16, 4, 1, 256, 256, 640, 100, 0.0625, 0, true},
                                   {RUNG_TYPE_F16, 2, 2, 7, 5, 320, 0, 0, 0, true},
                                   {RUNG_TYPE_BF16, 6, 2, 80, 33, 320, 3, 0, 20, true},
                                   {RUNG_TYPE_F16, 5, 1, 16, 96, 256, 65, 0, 5, true},
                                   {RUNG_TYPE_BF16, 1, 1, 1, 1, 192, 1, 0, 0, true},
                                   {RUNG_TYPE_BF16, 50, 1, 9, 20, 128, 0, 0, 0, true},
                                   {RUNG_TYPE_Q8_0, 9, 3, 64, 64, 640, 0, 0, 0, false},
                                   {RUNG_TYPE_Q8_0, 5, 1, 32, 96, 256, 64, 0, 5, false}};

static void test_against_reference(void) {
  for (size_t k = 0; k < RUNG_COUNT(settings); k++) {
    const setting *c = &settings[k];
    const int64_t most = test_slow() ? 100 : 200, length = c->capacity < most ? c->capacity : most;
    data want = data_make(c, SLOTS * c->capacity), have = want;
    have.y = random_floats(SLOTS * c->capacity * c->heads * c->value_dim, 0, 1);
    for (int l = 0; l < level_count; l++) {
      state a, b;
      state_init(&a, c);
      state_init(&b, c);
      int32_t past[SLOTS] = {0};
      for (int turn = 0; turn < 6; turn++) {
        sequence s[MAX_SEQUENCES];
        int n = 0;
        const int32_t first = (int32_t)test_below(&seed, SLOTS);
        for (int32_t i = 0; i < SLOTS; i++) {
          const int32_t slot = (first + i) % SLOTS, left = (int32_t)length - past[slot];
          if (test_below(&seed, 3) == 0) continue;
          int32_t count = (int32_t)test_below(&seed, turn == 0 ? 130 : turn == 1 ? 2 : 40);
          if (count > left) count = left;
          s[n++] = (sequence){slot, past[slot], count, slot * c->capacity + past[slot]};
          past[slot] += count;
        }
        if (!n) continue;
        run_batch(c, &a, &want, s, n, REFERENCE, 1);
        run_batch(c, &b, &have, s, n, levels[l], 1 + (int)test_below(&seed, 3));
        for (int i = 0; i < n; i++) {
          const int64_t from = s[i].from;
          data w = want, h = have;
          w.y += from * c->heads * c->value_dim;
          h.y += from * c->heads * c->value_dim;
          check_close(c, &w, &h, s[i].count, levels[l], "rows");
        }
      }
      /* The states hold the same numbers. */
      const int64_t row = c->kv_heads * (c->key_dim + c->value_dim);
      float *u = random_floats(2 * row, 0, 1);
      for (int32_t slot = 0; slot < SLOTS; slot++)
        for (int64_t p = 0; p < past[slot]; p++) {
          rung_cpu_kv_read_row(&a.kv, slot, p, u);
          rung_cpu_kv_read_row(&b.kv, slot, p, u + row);
          CHECK(memcmp(u, u + row, (size_t)row * sizeof *u) == 0);
        }
      free(u);
      state_finish(&a);
      state_finish(&b);
    }
    free(have.y);
    data_free(&want);
  }
}

/* ---- bits */

/* A sequence of `length` rows in chunks, alone or beside others, on some threads; its results in d->y. */
static void run_chunks(const setting *c, const data *d, int64_t length, int64_t chunk, bool beside, uint32_t level,
                       int threads) {
  state st;
  state_init(&st, c);
  int32_t past = 0, other = 0;
  while (past < length) {
    const int64_t left = length - past;
    const int32_t count =
        (int32_t)(chunk > 0 ? (chunk < left ? chunk : left) : 1 + test_below(&seed, left < 90 ? left : 90));
    sequence s[MAX_SEQUENCES];
    int n = 0;
    if (beside && other + 5 < c->capacity) s[n++] = (sequence){3, other, 5, c->capacity + other}, other += 5;
    s[n++] = (sequence){1, past, count, past};
    if (beside) s[n++] = (sequence){0, 0, 1, c->capacity};
    run_batch(c, &st, d, s, n, level, threads);
    past += count;
  }
  state_finish(&st);
}

static void same_bits(const setting *c, const data *a, const data *b, int64_t rows, const char *what, int64_t chunk,
                      int threads) {
  const int64_t row = c->heads * c->value_dim;
  test_state.checks++;
  for (int64_t r = 0; r < rows; r++)
    if (memcmp(a->y + r * row, b->y + r * row, (size_t)row * sizeof(float)) != 0) {
      TEST_FAIL_("%s, chunks of %lld, %d threads: row %lld has other bits (dims %d/%d, window %lld)", what,
                 (long long)chunk, threads, (long long)r, c->key_dim, c->value_dim, (long long)c->window);
      return;
    }
}

static void test_same_bits(void) {
  static const int64_t chunks[] = {1, 7, 64, 100, 0};
  for (size_t k = 0; k < RUNG_COUNT(settings); k++) {
    const setting *c = &settings[k];
    const int64_t most = test_slow() ? 150 : k < 2 ? 1200 : 300, length = c->capacity < most ? c->capacity : most;
    data whole = data_make(c, 2 * c->capacity), parts = whole;
    parts.y = random_floats(2 * c->capacity * c->heads * c->value_dim, 0, 1);
    for (int l = 0; l < level_count; l++) {
      run_chunks(c, &whole, length, length, false, levels[l], 1);
      for (size_t i = 0; i < RUNG_COUNT(chunks); i++) {
        if (chunks[i] == 1 && length > 700 && l + 1 < level_count) continue;
        const int threads = 1 + (int)(i % 3);
        run_chunks(c, &parts, length, chunks[i], i % 2 == 1, levels[l], threads);
        same_bits(c, &whole, &parts, length, i % 2 ? "beside others" : "alone", chunks[i], threads);
      }
    }
    free(parts.y);
    data_free(&whole);
  }
}

/* One row at depth, split over 1 to 9 threads, at lengths around segments and groups. */
static void test_split(void) {
  static const int64_t lengths[] = {1, 63, 64, 65, 256, 1023, 1024, 1025, 2047, 2048, 2112, 2304};
  for (int k = 0; k < (test_slow() ? 1 : 2); k++) {
    const setting *c = &settings[k];
    data one = data_make(c, c->capacity), many = one;
    many.y = random_floats(c->capacity * c->heads * c->value_dim, 0, 1);
    for (int l = 0; l < level_count; l++) {
      state st;
      state_init(&st, c);
      const sequence all = {2, 0, (int32_t)c->capacity, 0};
      run_batch(c, &st, &one, &all, 1, levels[l], 1);
      for (size_t i = 0; i < RUNG_COUNT(lengths); i++)
        for (int threads = 2; threads < 10; threads += 1 + threads / 3) {
          const int32_t last = (int32_t)lengths[i] - 1;
          const sequence row = {2, last, 1, last};
          run_batch(c, &st, &many, &row, 1, levels[l], threads);
          data u = one, v = many;
          u.y += last * c->heads * c->value_dim;
          v.y += last * c->heads * c->value_dim;
          same_bits(c, &u, &v, 1, "split", lengths[i], threads);
        }
      state_finish(&st);
    }
    free(many.y);
    data_free(&one);
  }
  CHECK(most_tasks > 6);
}

/* ---- numbers that are none */

/* A row of NaN in q, k or v spoils what sees it and nothing else; the largest and infinite scores. */
static void test_not_numbers(void) {
  const setting *c = &settings[5];
  enum { LENGTH = 150 };
  data clean = data_make(c, LENGTH), spoiled = clean;
  spoiled.y = random_floats(LENGTH * c->heads * c->value_dim, 0, 1);
  for (int l = 0; l < level_count; l++) {
    run_chunks(c, &clean, LENGTH, LENGTH, false, levels[l], 1);
    for (int which = 0; which < 3; which++) {
      const int64_t at = 70 + 5 * which,
                    width = (which == 2 ? c->value_dim : c->key_dim) * (which ? c->kv_heads : c->heads);
      float *x = (which == 0 ? clean.q : which == 1 ? clean.k : clean.v) + at * width;
      float *kept = random_floats(width, 0, 1);
      memcpy(kept, x, (size_t)width * sizeof *x);
      for (int64_t i = 0; i < width; i++) x[i] = NAN;
      run_chunks(c, &spoiled, LENGTH, which ? 64 : LENGTH, false, levels[l], 1);
      memcpy(x, kept, (size_t)width * sizeof *x);
      free(kept);
      const int64_t row = c->heads * c->value_dim;
      for (int64_t r = 0; r < LENGTH; r++) {
        const bool sees = which == 0 ? r == at : r >= at && r < at + c->window;
        test_state.checks++;
        for (int64_t i = 0; i < row; i++) {
          const float u = clean.y[r * row + i], v = spoiled.y[r * row + i];
          if (sees ? v == v : u != v) {
            TEST_FAIL_("NaN in operand %d of row %lld: row %lld is %g, was %g", which, (long long)at, (long long)r,
                       (double)v, (double)u);
            break;
          }
        }
      }
    }
  }
  free(spoiled.y);
  data_free(&clean);
}

/* Scores of -50,000 and far below, and all alike, are as good as any (in units of log 2 they still are numbers). */
static void test_large_scores(void) {
  const setting c = {RUNG_TYPE_F32, 2, 1, 16, 16, 192, 0, 1, 0, false};
  data want = data_make(&c, 130), have = want;
  have.y = random_floats(130 * c.heads * c.value_dim, 0, 1);
  for (int64_t i = 0; i < 130 * 16; i++) want.k[i] = i % 16 ? 0 : -1;
  for (int64_t i = 0; i < 130 * 32; i++) want.q[i] = i % 16 ? 0 : 2e38f;
  for (int l = 0; l < level_count; l++) {
    run_chunks(&c, &want, 130, 130, false, REFERENCE, 1);
    run_chunks(&c, &have, 130, 130, false, levels[l], 1);
    check_close(&c, &want, &have, 130, levels[l], "all scores -2e38");
    CHECK(have.y[0] == have.y[0]);
  }
  free(have.y);
  data_free(&want);
}

static void test_refused(void) {
  const setting *c = &settings[4];
  data d = data_make(c, 8);
  state st;
  state_init(&st, c);
  nodes g = build_nodes(c, 2, 1);
  packed q;
  const sequence s = {0, 0, 2, 0};
  pack(&q, d.q, &s, 1, c->heads, c->key_dim, 0);
  static const int32_t bad[][4] = {{0, 2, 9, 0}, {0, 2, -1, 0}, {0, 2, 0, 319}, {0, 2, 0, -1},
                                   {0, 1, 0, 0}, {1, 2, 0, 0},  {0, 3, 0, 0}};
  for (size_t i = 0; i < RUNG_COUNT(bad); i++)
    for (int l = 0; l < level_count; l++) {
      const int64_t one[] = {1}, two[] = {2};
      const rung_operand ragged[] = {
          {.base = (uint8_t *)bad[i], .extent = two, .stride = one, .rank = 1, .type = RUNG_TYPE_I32},
          {.base = (uint8_t *)(bad[i] + 2), .extent = one, .stride = one, .rank = 1, .type = RUNG_TYPE_I32},
          {.base = (uint8_t *)(bad[i] + 3), .extent = one, .stride = one, .rank = 1, .type = RUNG_TYPE_I32}};
      const rung_operand in[] = {st.operand, q.operand, q.operand, ragged[0], ragged[1], ragged[2]};
      int64_t symbol[RUNG_MAX_SYMBOLS] = {0};
      cpu_step step;
      rung_error error = {RUNG_OK, ""};
      CHECK(
          cpu_step_make(&step, host, find(rung_isa_detect(), levels[l], g.graph, g.append), g.graph, g.append, symbol));
      CHECK_STATUS(cpu_step_run(&step, in, &st.operand, 1, &error), RUNG_OUT_OF_RANGE);
      CHECK(strlen(error.message) > 0);
      cpu_step_finish(&step);
    }
  rung_graph_destroy(g.graph);
  free(q.memory);
  state_finish(&st);
  data_free(&d);
}

int main(void) {
  const rung_cpu_table *table;
  for (size_t i = 0; (table = rung_cpu_table_at(i)) != NULL; i++) {
    bool known = (table->isa & rung_isa_detect()) != table->isa;
    for (int k = 0; k < level_count; k++) known = known || levels[k] == table->isa;
    if (!known) levels[level_count++] = table->isa;
  }
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  RUN(test_against_reference);
  RUN(test_same_bits);
  RUN(test_split);
  RUN(test_not_numbers);
  RUN(test_large_scores);
  RUN(test_refused);
  printf("%d levels, at most %lld tasks\n", level_count, (long long)most_tasks);
  rung_host_release(host);
  return TEST_END();
}
