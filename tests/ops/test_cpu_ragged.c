/* SPDX-License-Identifier: MIT
 * attention_ragged, pool_ragged and positions of the CPU backend at every level: against the references, and bit for
 * bit alone, beside other sequences and split over threads. What lies beside a sequence may hold NaN. */
#include <math.h>

#include "base/half.h"
#include "cpu_run.h"
#include "ops/attrs.h"

static rung_host *host;
static uint64_t seed = 88172645463325252u;
static uint32_t isa; /* asking costs microseconds under a hypervisor */
static uint32_t levels[4];
static int level_count;
static int64_t most_tasks;

enum { MOST = 40 }; /* sequences */

typedef struct setting {
  int64_t heads, kv_heads, key_dim, value_dim, window;
  double scale, soft_cap;
  bool causal, narrow;
} setting;
static const setting settings[] = {{12, 12, 32, 32, 0, 0, 0, false, false},  {3, 3, 64, 64, 0, 0, 0, true, false},
                                   {6, 2, 16, 80, 0, 0.25, 0, false, false}, {2, 2, 7, 5, 0, 0, 0, false, false},
                                   {4, 1, 33, 20, 100, 0, 0, false, false},  {4, 2, 8, 16, 3, 0, 20, true, false},
                                   {1, 1, 96, 96, 64, 0, 5, false, false},   {100, 1, 4, 4, 20, 0, 0, false, false},
                                   {1, 1, 1, 1, 1, 0, 0, true, false},       {2, 1, 128, 112, 0, 0, 0, false, false},
                                   {12, 12, 32, 32, 0, 0, 0, false, true},   {3, 1, 64, 64, 0, 0, 0, true, true},
                                   {2, 2, 7, 5, 0, 0, 0, false, true},       {4, 1, 33, 20, 100, 0, 0, false, true},
                                   {4, 2, 8, 16, 3, 0, 20, true, true},      {1, 1, 1, 1, 1, 0, 0, true, true},
                                   {2, 1, 96, 112, 65, 0, 0, false, true}};

/* ---- a step of one op: q, k, v, offsets or x, offsets; all inputs as extents say */

typedef struct dense {
  float *memory;
  int64_t extent[3], stride[3];
  rung_operand operand;
} dense;
static void dense_make(dense *d, int rank, const int64_t *extent, int64_t gap, const float *from) {
  *d = (dense){.stride = {1, 1, 1}};
  for (int i = 0; i < rank; i++) d->extent[i] = extent[i];
  for (int i = rank - 2; i >= 0; i--) d->stride[i] = d->stride[i + 1] * extent[i + 1];
  const int64_t row = d->stride[0];
  d->stride[0] += gap;
  d->memory = (float *)malloc((size_t)(extent[0] * d->stride[0] + 1) * sizeof(float));
  for (int64_t i = 0; i < extent[0] * d->stride[0]; i++) d->memory[i] = NAN;
  for (int64_t r = 0; from && r < extent[0]; r++)
    memcpy(d->memory + r * d->stride[0], from + r * row, (size_t)row * sizeof(float));
  d->operand = (rung_operand){.base = (uint8_t *)d->memory,
                              .extent = d->extent,
                              .stride = d->stride,
                              .rank = (uint8_t)rank,
                              .type = RUNG_TYPE_F32};
}

static const rung_cpu_kernel *find(uint32_t level, const rung_graph *g, const rung_node *node) {
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

/* The op on operands, by a level or (UINT32_MAX) by its definition. */
#define REFERENCE UINT32_MAX
static rung_status run_op(const rung_op *op, const void *attrs, const rung_operand *in, uint32_t n_in,
                          const rung_operand *out, uint32_t level, int threads) {
  rung_error error = {RUNG_OK, ""};
  if (level == REFERENCE) {
    const rung_args args = {.in = in, .out = out, .n_in = (uint16_t)n_in, .n_out = 1, .attrs = attrs, .error = &error};
    return op->reference(&args);
  }
  rung_graph *g;
  CHECK_OK(rung_graph_create(host, NULL, &g));
  rung_value value[4];
  for (uint32_t i = 0; i < n_in; i++) {
    char name[16];
    rung_dim extent[3];
    for (int k = 0; k < in[i].rank; k++) extent[k] = rung_graph_constant_dim(g, in[i].extent[k]);
    snprintf(name, sizeof name, "x%u", i);
    value[i] = rung_graph_input(g, name, (rung_type)in[i].type, in[i].rank, extent);
  }
  rung_positions_attrs positions = {{0}};
  if (op == &rung_op_positions) {
    positions.rows = rung_graph_constant_dim(g, out->extent[0]);
    attrs = &positions;
  }
  const rung_node *node = rung_graph_append(g, op, value, n_in, attrs, NULL, 0);
  CHECK(node != NULL);
  cpu_step step;
  const int64_t symbol[RUNG_MAX_SYMBOLS] = {0};
  rung_status status = RUNG_INTERNAL;
  if (node && cpu_step_make(&step, host, find(level, g, node), g, node, symbol)) {
    status = cpu_step_run(&step, in, out, threads, &error);
    if (step.tasks > most_tasks) most_tasks = step.tasks;
    cpu_step_finish(&step);
  }
  rung_graph_destroy(g);
  return status;
}

typedef struct offsets {
  int32_t at[MOST + 1];
  int64_t extent[1], stride[1];
  rung_operand operand;
} offsets;
static void offsets_make(offsets *o, const int32_t *length, int n) {
  o->at[0] = 0;
  for (int i = 0; i < n; i++) o->at[i + 1] = o->at[i] + length[i];
  o->extent[0] = n + 1;
  o->stride[0] = 1;
  o->operand = (rung_operand){
      .base = (uint8_t *)o->at, .extent = o->extent, .stride = o->stride, .rank = 1, .type = RUNG_TYPE_I32};
}

static float *random_floats(int64_t n, float low, float high) {
  float *x = (float *)malloc((size_t)(n + 1) * sizeof *x);
  for (int64_t i = 0; i < n; i++) x[i] = test_uniform(&seed, low, high);
  return x;
}

/* What all rows of a test are taken from. */
typedef struct data {
  float *q, *k, *v;
} data;
static data data_make(const setting *c, int64_t rows) {
  return (data){random_floats(rows * c->heads * c->key_dim, -2, 2),
                random_floats(rows * c->kv_heads * c->key_dim, -2, 2),
                random_floats(rows * c->kv_heads * c->value_dim, -2, 2)};
}
static void data_free(data *d) {
  free(d->q);
  free(d->k);
  free(d->v);
}

/* Rows [first, first + sum of lengths) of the data as sequences of these lengths: y[rows][heads][value_dim]. */
static float *attend(const setting *c, const data *d, int64_t first, const int32_t *length, int n, uint32_t level,
                     int threads) {
  offsets o;
  dense q, k, v, y;
  offsets_make(&o, length, n);
  const int64_t rows = o.at[n], gap = test_below(&seed, 3) * 4;
  dense_make(&q, 3, (const int64_t[]){rows, c->heads, c->key_dim}, gap, d->q + first * c->heads * c->key_dim);
  dense_make(&k, 3, (const int64_t[]){rows, c->kv_heads, c->key_dim}, gap, d->k + first * c->kv_heads * c->key_dim);
  dense_make(&v, 3, (const int64_t[]){rows, c->kv_heads, c->value_dim}, gap, d->v + first * c->kv_heads * c->value_dim);
  dense_make(&y, 3, (const int64_t[]){rows, c->heads, c->value_dim}, 0, NULL);
  const rung_attention_attrs attrs = {
      .scale = c->scale, .soft_cap = c->soft_cap, .window = c->window, .causal = c->causal, .narrow = c->narrow};
  const rung_operand in[] = {q.operand, k.operand, v.operand, o.operand};
  CHECK_OK(run_op(&rung_op_attention_ragged, &attrs, in, 4, &y.operand, level, threads));
  free(q.memory);
  free(k.memory);
  free(v.memory);
  return y.memory;
}

/* ---- attention */

/* Roundings: the dot product's dim terms of at most 4 each in f32 (random, so their root counts), the weights' exponent
 * takes that over; sums of up to keys terms below max|v| likewise. */
static double room(const setting *c) {
  const double scale = c->scale > 0 ? c->scale : 1 / sqrt((double)c->key_dim);
  const double score = 4 * sqrt((double)c->key_dim) * 0x1p-23 * scale;
  /* Rounded to bf16: each of the terms by up to 2^-8, and each of the weighted values. */
  return c->narrow ? 0x1p15 * 2 * (score + 4 * 0x1p-23) : 2 * (8 * score + 32 * 0x1p-23);
}

static void test_attention(void) {
  static const int32_t length[] = {1, 130, 0, 17, 64, 0, 63, 200, 65, 2};
  enum { N = RUNG_COUNT(length), ROWS = 542 };
  for (size_t s = 0; s < RUNG_COUNT(settings); s++) {
    const setting *c = &settings[s];
    data d = data_make(c, ROWS);
    float *want = attend(c, &d, 0, length, N, REFERENCE, 1);
    for (int l = 0; l < level_count; l++) {
      float *have = attend(c, &d, 0, length, N, levels[l], 1 + (int)(s % 3));
      double worst = 0;
      for (int64_t i = 0; i < ROWS * c->heads * c->value_dim; i++) {
        const double off = fabs((double)want[i] - (double)have[i]);
        if (!(off <= worst)) worst = off;
      }
      CHECK(worst <= room(c));
      free(have);
    }
    free(want);
    data_free(&d);
  }
}

/* A sequence's bits are its own: alone, in any batch, on any number of threads. */
static void test_same_bits(void) {
  int32_t length[MOST];
  for (size_t s = 0; s < RUNG_COUNT(settings); s++) {
    const setting *c = &settings[s];
    int64_t rows = 0;
    int n = 0;
    for (; n < MOST; n++) rows += length[n] = (int32_t)test_below(&seed, n % 8 == 0 ? (test_slow() ? 100 : 200) : 40);
    if (s == 3 && !test_slow()) rows += 2100 - length[3], length[3] = 2100; /* more than two groups of segments */
    data d = data_make(c, rows);
    for (int l = 0; l < level_count; l++) {
      float *all = attend(c, &d, 0, length, n, levels[l], 1);
      for (int threads = 2; threads < 7; threads += 2) {
        float *split = attend(c, &d, 0, length, n, levels[l], threads);
        CHECK(memcmp(all, split, (size_t)(rows * c->heads * c->value_dim) * sizeof *all) == 0);
        free(split);
      }
      int64_t first = 0;
      for (int i = 0; i < n; first += length[i++]) {
        float *alone = attend(c, &d, first, &length[i], 1, levels[l], 1 + i % 3);
        const int64_t row = c->heads * c->value_dim;
        CHECK(memcmp(all + first * row, alone, (size_t)(length[i] * row) * sizeof *all) == 0);
        free(alone);
      }
      free(all);
    }
    data_free(&d);
  }
  CHECK(most_tasks > 6);
}

/* A NaN in q, k or v spoils rows that see it, and no other sequence. Scores of any size have weights that add up to 1.
 */
static void check_not_numbers(bool narrow) {
  static const int32_t length[] = {70, 90, 30};
  const setting c = {2, 1, 16, 16, 50, 1, 0, false, narrow};
  enum { ROWS = 190, AT = 100 };
  data d = data_make(&c, ROWS);
  for (int l = 0; l < level_count; l++) {
    float *clean = attend(&c, &d, 0, length, 3, levels[l], 1);
    for (int which = 0; which < 3; which++) {
      const int64_t width = 16 * (which ? c.kv_heads : c.heads);
      float *x = (which == 0 ? d.q : which == 1 ? d.k : d.v) + AT * width, kept[32];
      memcpy(kept, x, (size_t)width * sizeof *x);
      for (int64_t i = 0; i < width; i++) x[i] = NAN;
      float *spoiled = attend(&c, &d, 0, length, 3, levels[l], 2);
      memcpy(x, kept, (size_t)width * sizeof *x);
      for (int64_t r = 0; r < ROWS; r++) {
        const bool sees = which == 0 ? r == AT : r >= 70 && r < 160 && r > AT - 50 && r < AT + 50;
        for (int64_t i = 0; i < 32; i++) {
          const float u = clean[r * 32 + i], v = spoiled[r * 32 + i];
          if (sees ? v == v : u != v) TEST_FAIL_("NaN in operand %d: row %lld is %g", which, (long long)r, (double)v);
        }
      }
      free(spoiled);
    }
    free(clean);
    for (int64_t i = 0; i < ROWS * 16; i++) d.k[i] = i % 16 ? 0 : -1, d.v[i] = 3;
    for (int64_t i = 0; i < ROWS * 32; i++) d.q[i] = i % 16 ? 0 : 2e38f;
    float *even = attend(&c, &d, 0, length, 3, levels[l], 1); /* all scores -2e38 */
    for (int64_t i = 0; i < ROWS * 32; i++) CHECK(fabs((double)even[i] - 3) < 1e-5);
    free(even);
    data_free(&d);
    d = data_make(&c, ROWS);
  }
  data_free(&d);
}

static bool has_row(rung_type type, uint32_t level) {
  cpu_rows at = {0, 0, 0, NULL};
  const rung_cpu_kernel *kernel;
  bool has = false;
  while ((kernel = cpu_rows_next(&at, isa)) != NULL)
    has |= kernel->row.op == &rung_op_attention_ragged && kernel->row.isa == level && kernel->row.in_type[0] == type;
  return has;
}

/* Operands of bf16 give what the same numbers as f32 give where attention may round, rounded. */
static void test_bf16_operands(void) {
  static const int32_t length[] = {1, 130, 0, 17, 65};
  enum { N = RUNG_COUNT(length), ROWS = 213 };
  for (size_t s = 0; s < RUNG_COUNT(settings); s++) {
    const setting *c = &settings[s];
    if (!c->narrow) continue;
    data d = data_make(c, ROWS);
    float *from[] = {d.q, d.k, d.v};
    const int64_t row[] = {c->heads * c->key_dim, c->kv_heads * c->key_dim, c->kv_heads * c->value_dim,
                           c->heads * c->value_dim};
    uint16_t *half[4];
    for (int i = 0; i < 4; i++) {
      half[i] = calloc((size_t)(ROWS * row[i]) + 1, sizeof **half);
      for (int64_t k = 0; i < 3 && k < ROWS * row[i]; k++)
        from[i][k] = rung_bf16_to_f32(half[i][k] = rung_bf16_from_f32(from[i][k]));
    }
    const int64_t extent[4][3] = {{ROWS, c->heads, c->key_dim},
                                  {ROWS, c->kv_heads, c->key_dim},
                                  {ROWS, c->kv_heads, c->value_dim},
                                  {ROWS, c->heads, c->value_dim}};
    int64_t stride[4][3];
    rung_operand o[5];
    for (int i = 0; i < 4; i++) {
      memcpy(stride[i], (int64_t[]){row[i], extent[i][2], 1}, sizeof stride[i]);
      o[i] = (rung_operand){
          .base = (uint8_t *)half[i], .extent = extent[i], .stride = stride[i], .rank = 3, .type = RUNG_TYPE_BF16};
    }
    offsets at;
    offsets_make(&at, length, N);
    const rung_attention_attrs attrs = {
        .scale = c->scale, .soft_cap = c->soft_cap, .window = c->window, .causal = c->causal, .narrow = c->narrow};
    const rung_operand in[] = {o[0], o[1], o[2], at.operand};
    for (int l = 0; l < level_count; l++) {
      if (!has_row(RUNG_TYPE_BF16, levels[l])) continue;
      float *want = attend(c, &d, 0, length, N, levels[l], 1);
      CHECK_OK(run_op(&rung_op_attention_ragged, &attrs, in, 4, &o[3], levels[l], 2));
      bool equal = true;
      for (int64_t i = 0; i < ROWS * row[3]; i++) equal = equal && half[3][i] == rung_bf16_from_f32(want[i]);
      CHECK(equal);
      free(want);
    }
    for (int i = 0; i < 4; i++) free(half[i]);
    data_free(&d);
  }
}

static void test_not_numbers(void) {
  check_not_numbers(false);
  check_not_numbers(true);
}

/* ---- pooling and positions */

static void test_pool(void) {
  static const int64_t widths[] = {1, 16, 37, 384};
  int32_t length[MOST];
  int64_t rows = 0;
  for (int i = 0; i < MOST; i++) rows += length[i] = (int32_t)test_below(&seed, i % 9 == 0 ? 700 : i % 4 ? 50 : 1);
  offsets o, one;
  offsets_make(&o, length, MOST);
  for (size_t w = 0; w < RUNG_COUNT(widths); w++) {
    float *from = random_floats(rows * widths[w], -2, 2);
    from[5 * widths[w]] = NAN;
    dense x, want, have, alone;
    dense_make(&x, 2, (const int64_t[]){rows, widths[w]}, 3, from);
    for (int32_t mode = 0; mode < 4; mode++) {
      const rung_pool_ragged_attrs attrs = {mode};
      const rung_operand in[] = {x.operand, o.operand};
      dense_make(&want, 2, (const int64_t[]){MOST, widths[w]}, 0, NULL);
      CHECK_OK(run_op(&rung_op_pool_ragged, &attrs, in, 2, &want.operand, REFERENCE, 1));
      for (int l = 0; l < level_count; l++) {
        dense_make(&have, 2, (const int64_t[]){MOST, widths[w]}, 0, NULL);
        CHECK_OK(run_op(&rung_op_pool_ragged, &attrs, in, 2, &have.operand, levels[l], 2));
        for (int64_t i = 0; i < MOST * widths[w]; i++) {
          const double u = (double)want.memory[i], v = (double)have.memory[i];
          if (!(fabs(u - v) <= 4e-6 || (u != u && v != v))) TEST_FAIL_("mode %d: %.9g is not %.9g", mode, v, u);
        }
        for (int s = 0, first = 0; s < MOST; first += length[s++]) {
          offsets_make(&one, &length[s], 1);
          const int64_t extent[] = {length[s], widths[w]};
          rung_operand row = x.operand;
          row.base += first * x.stride[0] * 4;
          row.extent = extent;
          dense_make(&alone, 2, (const int64_t[]){1, widths[w]}, 0, NULL);
          CHECK_OK(run_op(&rung_op_pool_ragged, &attrs, (const rung_operand[]){row, one.operand}, 2, &alone.operand,
                          levels[l], 1));
          CHECK(memcmp(alone.memory, have.memory + s * widths[w], (size_t)widths[w] * sizeof(float)) == 0);
          free(alone.memory);
        }
        free(have.memory);
      }
      free(want.memory);
    }
    free(x.memory);
    free(from);
  }
}

static void test_positions(void) {
  static const int32_t length[] = {3, 0, 1, 70}, past[] = {9, 1, 0, 100};
  offsets o;
  offsets_make(&o, length, 4);
  const int64_t four[] = {4}, one[] = {1}, rows[] = {74};
  int32_t y[74];
  const rung_operand in[] = {
      o.operand, {.base = (uint8_t *)past, .extent = four, .stride = one, .rank = 1, .type = RUNG_TYPE_I32}};
  const rung_operand out = {.base = (uint8_t *)y, .extent = rows, .stride = one, .rank = 1, .type = RUNG_TYPE_I32};
  for (int l = 0; l < level_count; l++)
    for (uint32_t n = 1; n <= 2; n++) {
      memset(y, 0xff, sizeof y);
      CHECK_OK(run_op(&rung_op_positions, NULL, in, n, &out, levels[l], 1));
      for (int s = 0, row = 0; s < 4; s++)
        for (int i = 0; i < length[s]; i++, row++) CHECK(y[row] == i + (n == 2 ? past[s] : 0));
    }
}

/* Offsets that do not fit the rows are refused before anything is read. */
static void test_refused(void) {
  static const int32_t bad[][3] = {{0, 2, 9}, {1, 2, 4}, {0, 5, 4}, {0, -1, 4}, {0, 1, 3}};
  float x[64] = {0};
  const int64_t extent[] = {4, 2, 8}, stride[] = {16, 8, 1}, flat[] = {4, 16}, flat_stride[] = {16, 1}, two[] = {2, 16};
  const int64_t three[] = {3}, one[] = {1};
  const rung_operand q = {.base = (uint8_t *)x, .extent = extent, .stride = stride, .rank = 3, .type = RUNG_TYPE_F32};
  rung_operand m = {.base = (uint8_t *)x, .extent = flat, .stride = flat_stride, .rank = 2, .type = RUNG_TYPE_F32};
  rung_operand y = m;
  y.extent = two;
  const rung_attention_attrs attrs = {0};
  const rung_pool_ragged_attrs pool = {0};
  for (size_t i = 0; i < RUNG_COUNT(bad); i++)
    for (int l = 0; l < level_count; l++) {
      const rung_operand o = {
          .base = (uint8_t *)bad[i], .extent = three, .stride = one, .rank = 1, .type = RUNG_TYPE_I32};
      CHECK_STATUS(run_op(&rung_op_attention_ragged, &attrs, (const rung_operand[]){q, q, q, o}, 4, &q, levels[l], 1),
                   RUNG_OUT_OF_RANGE);
      CHECK_STATUS(run_op(&rung_op_pool_ragged, &pool, (const rung_operand[]){m, o}, 2, &y, levels[l], 1),
                   RUNG_OUT_OF_RANGE);
    }
}

int main(void) {
  const rung_cpu_table *table;
  isa = rung_isa_detect();
  for (size_t i = 0; (table = rung_cpu_table_at(i)) != NULL; i++) {
    bool known = (table->isa & isa) != table->isa;
    for (int k = 0; k < level_count; k++) known = known || levels[k] == table->isa;
    if (!known) levels[level_count++] = table->isa;
  }
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  RUN(test_attention);
  RUN(test_same_bits);
  RUN(test_bf16_operands);
  RUN(test_not_numbers);
  RUN(test_pool);
  RUN(test_positions);
  RUN(test_refused);
  printf("%d levels, at most %lld tasks\n", level_count, (long long)most_tasks);
  rung_host_release(host);
  return TEST_END();
}
