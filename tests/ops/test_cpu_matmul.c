/* SPDX-License-Identifier: MIT
 * Matrix products of the CPU backend at every level that this machine has: against sums in double with a bound derived
 * from the roundings that the kernels make, and bit for bit over heights, divisions among threads and layouts. */
#include "cpu_product.h"

static float *widen(rung_type type, const uint8_t *data, int64_t rows, int64_t k) {
  float *x = malloc((size_t)(rows * k + 1) * sizeof *x);
  for (int64_t r = 0; r < rows; r++)
    rung_type_get(type)->to_f32(data + (uint64_t)r * rung_type_bytes(type, (uint64_t)k), x + r * k, (size_t)k);
  return x;
}

/* a[m, k] (dense unless a_stride says otherwise) times b, a matrix in the target's layout or as it lies. */
typedef struct matrices {
  rung_type a_type, b_type, y_type;
  bool packed;
  int64_t m, n, k, a_stride;
  const uint8_t *a, *b;
  float *y; /* memory of the results, any type */
} matrices;

static const char *multiply(const level *l, const matrices *x, int threads) {
  const int64_t a_block = rung_type_get(x->a_type)->block, b_block = rung_type_get(x->b_type)->block;
  const int64_t a_extent[] = {x->m, x->k}, b_extent[] = {x->n, x->k}, y_extent[] = {x->m, x->n};
  const int64_t a_stride[] = {x->a_stride ? x->a_stride : x->k / a_block, 1}, b_stride[] = {x->k / b_block, 1},
                y_stride[] = {x->n, 1};
  const rung_layout *layout = x->packed ? l->target->layout_of(x->b_type) : NULL;
  const rung_matmul_attrs attrs = {.transpose_b = true, .type = x->y_type};
  const product p = {
      .op = &rung_op_matmul,
      .attrs = &attrs,
      .in = {{(uint8_t *)x->a, a_extent, a_stride, 2, (uint8_t)x->a_type, 0, NULL},
             {(uint8_t *)x->b, b_extent, b_stride, 2, (uint8_t)x->b_type, layout ? layout->id : 0, NULL}},
      .out = {{(uint8_t *)x->y, y_extent, y_stride, 2, (uint8_t)x->y_type, 0, NULL}},
      .n_out = 1,
      .m = x->m,
      .n = x->n,
      .k = x->k,
      .threads = threads};
  return run(l, &p);
}

/* ---- bounds. u = 2^-24 is the largest relative error of one rounding.
 *
 * f32: each of K terms is added with one rounding (base: two), and every rounding is at most u times the sum of
 * magnitudes up to there: K u S to first order, S the sum of all |a b|.
 * a8: the sums of levels are exact (below 2^24). A block's term takes a scale product, a fused addition and, with a
 * minimum, a product and another addition, of magnitudes that its largest weight bounds: the levels' part is at most
 * twice that, the minimum's at most once, for encoders use all levels. 4 roundings of 3 max|w| sum|a| a block, and K /
 * 32 additions. */
static double bound(const matrices *x, const float *a, const float *w) {
  const double u = 0x1p-24;
  double all = 0;
  if (x->a_type != RUNG_TYPE_A8) {
    for (int64_t i = 0; i < x->k; i++) all += fabs((double)a[i] * (double)w[i]);
    return (2 * (double)x->k + 2) * u * all + 1e-37;
  }
  for (int64_t block = 0; block < x->k; block += 32) {
    double weight = 0, row = 0;
    for (int64_t i = block; i < block + 32; i++) {
      weight = fmax(weight, fabs((double)w[i]));
      row += fabs((double)a[i]);
    }
    all += 3 * weight * row;
  }
  return (4 + 2 * (double)x->k / 32) * u * all + 1e-37;
}

static void check_against_double(const level *l, const char *name, const matrices *x, const float *a, const float *w) {
  int64_t worst_row = -1, worst_column = -1;
  double worst = 1;
  for (int64_t r = 0; r < x->m; r++)
    for (int64_t c = 0; c < x->n; c++) {
      double sum = 0;
      for (int64_t i = 0; i < x->k; i++) sum += (double)a[r * x->k + i] * (double)w[c * x->k + i];
      const double ratio = fabs((double)x->y[r * x->n + c] - sum) / bound(x, a + r * x->k, w + c * x->k);
      if (ratio <= worst) continue; /* a NaN goes on */
      worst = ratio;
      worst_row = r;
      worst_column = c;
      if (!(ratio < 1e30)) break;
    }
  test_state.checks++;
  if (worst_row >= 0)
    TEST_FAIL_("%s (%s) M %d N %d K %d: y[%d][%d] is off by %g bounds", name, l->name, (int)x->m, (int)x->n, (int)x->k,
               (int)worst_row, (int)worst_column, worst);
}

/* Rows alone and all divisions give the same bits. */
static void check_bits(const level *l, const char *name, const matrices *x) {
  const size_t bytes = (size_t)(x->m * x->n) * sizeof(float);
  matrices other = *x;
  other.y = malloc(bytes + 1);
  static const int threads[] = {2, 3, 7, 64};
  for (size_t i = 0; i < RUNG_COUNT(threads); i++) {
    memset(other.y, 0x55, bytes);
    multiply(l, &other, threads[i]);
    CHECK(memcmp(other.y, x->y, bytes) == 0);
  }
  other.m = 1;
  bool equal = true;
  for (int64_t r = 0; r < x->m; r++) {
    other.a = x->a + (uint64_t)r * rung_type_bytes(x->a_type, (uint64_t)x->k);
    multiply(l, &other, 1);
    equal = equal && memcmp(other.y, x->y + r * x->n, (size_t)x->n * sizeof(float)) == 0;
  }
  test_state.checks++;
  if (!equal)
    TEST_FAIL_("%s (%s) M %d N %d K %d: a row alone has other bits", name, l->name, (int)x->m, (int)x->n, (int)x->k);
  free(other.y);
}

static void check_product(const level *l, matrices x) {
  uint8_t *a = make_rows(x.a_type, x.m, x.k), *b = make_rows(x.b_type, x.n, x.k);
  float *a_floats = widen(x.a_type, a, x.m, x.k), *w = widen(x.b_type, b, x.n, x.k);
  const rung_layout *layout = x.packed ? l->target->layout_of(x.b_type) : NULL;
  uint8_t *form = layout ? pack(layout, b, x.n, x.k) : NULL;
  x.y_type = RUNG_TYPE_F32;
  x.a = a;
  x.b = form ? form : b;
  x.y = malloc((size_t)(x.m * x.n + 1) * sizeof(float));
  const char *name = multiply(l, &x, 1);
  test_state.checks++;
  if (strncmp(name, "matmul_", 7) != 0)
    TEST_FAIL_("%s x %s (%s): %s", rung_type_name(x.a_type), rung_type_name(x.b_type), l->name, name);
  check_against_double(l, name, &x, a_floats, w);
  check_bits(l, name, &x);
  free(a), free(b), free(a_floats), free(w), free(form), free(x.y);
}

static const rung_type packed_types[] = {RUNG_TYPE_F32,  RUNG_TYPE_F16,  RUNG_TYPE_BF16, RUNG_TYPE_Q4_0,
                                         RUNG_TYPE_Q4_1, RUNG_TYPE_Q5_0, RUNG_TYPE_Q5_1, RUNG_TYPE_Q8_0,
                                         RUNG_TYPE_Q4_K, RUNG_TYPE_Q5_K, RUNG_TYPE_Q6_K};

static int64_t random_k(rung_type a, rung_type b) {
  const int64_t block = rung_type_get(b)->block, step = a == RUNG_TYPE_A8 && block < 32 ? 32 : block;
  return step * (1 + test_below(&seed, step == 1 ? 600 : 1024 / step));
}

static void test_packed(void) {
  for (int i = 0; i < level_count; i++)
    for (size_t t = 0; t < RUNG_COUNT(packed_types); t++)
      for (int a8 = 0; a8 < 2; a8++) {
        const rung_type b = packed_types[t], a = a8 ? RUNG_TYPE_A8 : RUNG_TYPE_F32;
        if (a8 && !levels[i].target->multiplies_a8(b)) continue;
        for (int64_t m = 0; m <= 20; m += m < 7 ? 1 : 3)
          check_product(&levels[i], (matrices){.a_type = a,
                                               .b_type = b,
                                               .packed = true,
                                               .m = m,
                                               .n = 1 + test_below(&seed, 150),
                                               .k = random_k(a, b)});
        check_product(&levels[i],
                      (matrices){.a_type = a, .b_type = b, .packed = true, .m = 131, .n = 70, .k = random_k(a, b)});
      }
}

/* Every other weight type as it lies in the source, and narrow activations. */
static void test_unpacked(void) {
  for (int i = 0; i < level_count; i++) {
    for (size_t t = 0; t < rung_type_count(); t++) {
      const rung_type b = rung_type_at(t);
      const rung_type_class class_ = rung_type_get(b)->class_;
      if (b == RUNG_TYPE_A8 || b == RUNG_TYPE_F64 || (class_ != RUNG_CLASS_FLOAT && class_ != RUNG_CLASS_BLOCK))
        continue;
      for (int64_t m = 1; m <= 17; m += 4)
        check_product(&levels[i], (matrices){.a_type = RUNG_TYPE_F32,
                                             .b_type = b,
                                             .m = m,
                                             .n = 1 + test_below(&seed, 70),
                                             .k = random_k(RUNG_TYPE_F32, b)});
    }
    static const rung_type narrow[] = {RUNG_TYPE_F16, RUNG_TYPE_BF16};
    for (int64_t m = 1; m <= 25; m += 6)
      for (int t = 0; t < 2; t++) {
        check_product(
            &levels[i],
            (matrices){.a_type = narrow[t], .b_type = RUNG_TYPE_F32, .packed = true, .m = m, .n = 40, .k = 301});
        check_product(&levels[i], (matrices){.a_type = narrow[t], .b_type = narrow[1 - t], .m = m, .n = 33, .k = 77});
      }
    /* bf16 on both sides. Rows 4 KiB apart are copied. */
    for (int64_t m = 1; m <= 140; m += m < 26 ? 4 : 37) {
      const int64_t k[] = {1, 77, 128, 301, 1024, 2048};
      for (size_t j = 0; j < RUNG_COUNT(k); j++)
        check_product(&levels[i], (matrices){.a_type = RUNG_TYPE_BF16,
                                             .b_type = RUNG_TYPE_BF16,
                                             .packed = true,
                                             .m = m,
                                             .n = 1 + test_below(&seed, 100),
                                             .k = k[j]});
    }
    /* Rows 4 KiB apart are copied. */
    check_product(
        &levels[i],
        (matrices){.a_type = RUNG_TYPE_F32, .b_type = RUNG_TYPE_F32, .packed = true, .m = 30, .n = 45, .k = 1024});
  }
}

/* One-hot rows read weights out: what the f32 kernels multiply is, bit for bit, what the type means. */
static void test_weights_exact(void) {
  for (int i = 0; i < level_count; i++)
    for (size_t t = 0; t < RUNG_COUNT(packed_types); t++) {
      const int64_t n = 19, k = 512;
      uint8_t *b = make_rows(packed_types[t], n, k);
      float *w = widen(packed_types[t], b, n, k), *a = calloc((size_t)(k * k), sizeof *a);
      uint8_t *form = pack(levels[i].target->layout_of(packed_types[t]), b, n, k);
      for (int64_t j = 0; j < k; j++) a[j * k + j] = 1;
      matrices x = {.a_type = RUNG_TYPE_F32,
                    .b_type = packed_types[t],
                    .y_type = RUNG_TYPE_F32,
                    .packed = true,
                    .m = k,
                    .n = n,
                    .k = k,
                    .a = (uint8_t *)a,
                    .b = form,
                    .y = malloc((size_t)(k * n) * sizeof(float))};
      multiply(&levels[i], &x, 1);
      bool equal = true;
      for (int64_t c = 0; c < n; c++)
        for (int64_t j = 0; j < k; j++) equal = equal && x.y[j * n + c] == w[c * k + j];
      CHECK(equal);
      free(b), free(w), free(a), free(form), free(x.y);
    }
}

/* ---- leading axes, strides, b that is not a weight */

/* An operand over fresh floats with gaps and, where asked, axes exchanged in memory. */
typedef struct strided {
  rung_operand o;
  int64_t extent[4], stride[4];
  float *data;
} strided;
static void make_strided(strided *s, int rank, const int64_t *extent, bool swapped, int64_t gap, bool still) {
  int64_t at = 1;
  for (int i = rank; i-- > 0;) {
    s->extent[i] = extent[i];
    s->stride[i] = at;
    at *= extent[i];
    if (i == rank - 1) at += gap;
  }
  if (swapped) {
    s->stride[rank - 2] = 1;
    s->stride[rank - 1] = extent[rank - 2] + gap;
    at = extent[rank - 1] * s->stride[rank - 1];
    for (int i = rank - 2; i-- > 0;) {
      s->stride[i] = at;
      at *= extent[i];
    }
  }
  if (still && rank > 2) s->stride[0] = 0;
  s->data = malloc((size_t)(at + 1) * sizeof(float));
  fill_floats(s->data, at, 1);
  s->o = (rung_operand){(uint8_t *)s->data, s->extent, s->stride, (uint8_t)rank, RUNG_TYPE_F32, 0, NULL};
}
static float at(const strided *s, const int64_t *lead, int leads, int64_t i, int64_t j) {
  int64_t offset = i * s->stride[s->o.rank - 2] + j * s->stride[s->o.rank - 1];
  for (int axis = 0; axis < s->o.rank - 2; axis++) {
    const int64_t index = lead[leads - (s->o.rank - 2) + axis];
    offset += (s->extent[axis] == 1 ? 0 : index) * s->stride[axis];
  }
  return s->data[offset];
}

static void check_batched(const level *l, int variant) {
  const int64_t m = 1 + test_below(&seed, 14), n = 1 + test_below(&seed, 50), k = test_below(&seed, 300);
  const int64_t batch = 1 + test_below(&seed, 3), heads = 1 + test_below(&seed, 3);
  const bool transposed = variant & 1, matrix = variant & 16;
  const int64_t a_extent[] = {variant & 2 ? 1 : batch, heads, m, k};
  const int64_t b_extent[] = {batch, variant & 4 ? 1 : heads, transposed ? n : k, transposed ? k : n};
  strided a, b, y;
  make_strided(&a, 4, a_extent, variant & 8, variant & 1 ? 3 : 0, false);
  make_strided(&b, matrix ? 2 : 4, matrix ? b_extent + 2 : b_extent, variant & 32, 2, variant & 4);
  make_strided(&y, 4, (int64_t[]){matrix ? a_extent[0] : batch, heads, m, n}, false, 5, false);
  const rung_matmul_attrs attrs = {.transpose_b = transposed, .type = RUNG_TYPE_F32};
  product p = {.op = &rung_op_matmul,
               .attrs = &attrs,
               .in = {a.o, b.o},
               .out = {y.o},
               .n_out = 1,
               .m = matrix ? a_extent[0] * heads * m : m,
               .n = n,
               .k = k,
               .threads = 1 + (int)test_below(&seed, 5)};
  const char *name = run(l, &p);
  int64_t wrong = 0;
  for (int64_t i0 = 0; i0 < y.extent[0]; i0++)
    for (int64_t i1 = 0; i1 < heads; i1++)
      for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
          const int64_t lead[] = {i0, i1};
          double sum = 0, magnitude = 0;
          for (int64_t q = 0; q < k; q++) {
            const double term =
                (double)at(&a, lead, 2, i, q) * (double)(transposed ? at(&b, lead, 2, j, q) : at(&b, lead, 2, q, j));
            sum += term;
            magnitude += fabs(term);
          }
          if (!(fabs((double)at(&y, lead, 2, i, j) - sum) <= (2 * (double)k + 2) * 0x1p-24 * magnitude)) wrong++;
        }
  test_state.checks++;
  if (wrong)
    TEST_FAIL_("%s (%s) variant %d M %d N %d K %d: %d wrong", name, l->name, variant, (int)m, (int)n, (int)k,
               (int)wrong);
  free(a.data), free(b.data), free(y.data);
}
static void test_batched(void) {
  for (int i = 0; i < level_count; i++)
    for (int variant = 0; variant < 64; variant++) check_batched(&levels[i], variant);
}

/* ---- members of a group */

/* Members' results must be those of the plain product, whatever their order in b and the type they are stored in. */
static void check_grouped(const level *l, rung_type a_type, rung_type b_type, rung_type y_type, int64_t m,
                          bool interleaved) {
  const int64_t sizes[] = {interleaved ? 80 : 48, interleaved ? 80 : 33, interleaved ? 80 : 64}, k = 256;
  const int64_t total = sizes[0] + sizes[1] + sizes[2];
  rung_grouped_matmul_attrs attrs = {.sizes = {.count = 3, .value = {sizes[0], sizes[1], sizes[2]}},
                                     .interleave = interleaved ? 16 : 0,
                                     .type = y_type};
  uint8_t *a = make_rows(a_type, m, k), *b = make_rows(b_type, total, k);
  const rung_layout *layout = l->target->layout_of(b_type);
  uint8_t *form = pack(layout, b, total, k);
  float *plain = malloc((size_t)(m * total + 1) * sizeof(float));
  const matrices x = {.a_type = a_type,
                      .b_type = b_type,
                      .y_type = RUNG_TYPE_F32,
                      .packed = true,
                      .m = m,
                      .n = total,
                      .k = k,
                      .a = a,
                      .b = form,
                      .y = plain};
  multiply(l, &x, 1);
  const int64_t y_bytes = rung_type_get(y_type)->bytes, a_extent[] = {m, k},
                a_stride[] = {k / rung_type_get(a_type)->block, 1};
  const int64_t b_extent[] = {total, k}, b_stride[] = {k / rung_type_get(b_type)->block, 1}, y_stride[] = {total, 1};
  int64_t y_extent[3][2];
  uint8_t *y = malloc((size_t)(m * total * y_bytes + 1));
  product p = {.op = &rung_op_grouped_matmul,
               .attrs = &attrs,
               .n_out = 3,
               .m = m,
               .n = total,
               .k = k,
               .threads = 3,
               .in = {{a, a_extent, a_stride, 2, (uint8_t)a_type, 0, NULL},
                      {form, b_extent, b_stride, 2, (uint8_t)b_type, layout->id, NULL}}};
  int64_t first = 0;
  for (int i = 0; i < 3; i++) {
    y_extent[i][0] = m;
    y_extent[i][1] = sizes[i];
    p.out[i] = (rung_operand){y + first * y_bytes, y_extent[i], y_stride, 2, (uint8_t)y_type, 0, NULL};
    first += sizes[i];
  }
  const char *name = run(l, &p);
  bool equal = strncmp(name, "grouped_matmul_", 15) == 0;
  first = 0;
  for (int i = 0; i < 3; i++) {
    for (int64_t r = 0; r < m; r++)
      for (int64_t c = 0; c < sizes[i]; c++) {
        uint8_t want[4];
        const int64_t column = interleaved ? (c / 16 * 3 + i) * 16 + c % 16 : first + c;
        rung_type_get(y_type)->from_f32(&plain[r * total + column], want, 1);
        equal = equal && memcmp(p.out[i].base + (r * total + c) * y_bytes, want, (size_t)y_bytes) == 0;
      }
    first += sizes[i];
  }
  test_state.checks++;
  if (!equal) TEST_FAIL_("%s (%s) M %d: members differ from the plain product", name, l->name, (int)m);
  free(a), free(b), free(form), free(plain), free(y);
}
static void test_grouped(void) {
  static const rung_type y_types[] = {RUNG_TYPE_F32, RUNG_TYPE_F16, RUNG_TYPE_BF16};
  for (int i = 0; i < level_count; i++)
    for (int t = 0; t < 3; t++)
      for (int64_t m = 0; m < 14; m += m < 2 ? 1 : 5)
        for (int interleaved = 0; interleaved < 2; interleaved++) {
          check_grouped(&levels[i], RUNG_TYPE_A8, RUNG_TYPE_Q4_K, y_types[t], m, interleaved);
          check_grouped(&levels[i], RUNG_TYPE_A8, RUNG_TYPE_Q8_0, y_types[t], m, interleaved);
          check_grouped(&levels[i], RUNG_TYPE_F32, RUNG_TYPE_Q5_1, y_types[t], m, interleaved);
          check_grouped(&levels[i], RUNG_TYPE_F32, RUNG_TYPE_F32, y_types[t], m, interleaved);
        }
}

/* ---- the ends of the ranges */

/* Activations of +-127 against all bytes that levels can be, scales of one: sums are whole numbers, and those must be
 * the very same everywhere. Nothing may saturate in 16 bits on the way. */
static void test_extremes(void) {
  static const rung_type types[] = {RUNG_TYPE_Q4_0, RUNG_TYPE_Q4_1, RUNG_TYPE_Q5_0, RUNG_TYPE_Q5_1,
                                    RUNG_TYPE_Q8_0, RUNG_TYPE_Q4_K, RUNG_TYPE_Q5_K, RUNG_TYPE_Q6_K};
  enum { M = 7, N = 37, K = 512, ONE = 0x3c00 };
  for (size_t t = 0; t < RUNG_COUNT(types); t++) {
    const rung_type_row *type = rung_type_get(types[t]);
    const uint64_t row_bytes = rung_type_bytes(types[t], K);
    uint8_t *b = malloc(row_bytes * N);
    for (uint64_t i = 0; i < row_bytes * N; i++) b[i] = test_below(&seed, 3) ? 0xff : (uint8_t)test_random(&seed);
    for (uint64_t i = 0; i < row_bytes * N; i += type->bytes) {
      const uint16_t one = ONE;
      memcpy(b + i + (types[t] == RUNG_TYPE_Q6_K ? 208 : 0), &one, 2);
      if (types[t] != RUNG_TYPE_Q6_K && types[t] != RUNG_TYPE_Q8_0 && types[t] != RUNG_TYPE_Q4_0 &&
          types[t] != RUNG_TYPE_Q5_0)
        memcpy(b + i + 2, &one, 2);
      if (types[t] == RUNG_TYPE_Q8_0)
        for (int j = 0; j < 32; j++)
          if (test_below(&seed, 2)) b[i + 2 + (uint64_t)j] = 0x80;
    }
    rung_a8 a[M * (K / 32)];
    for (size_t i = 0; i < RUNG_COUNT(a); i++) {
      a[i] = (rung_a8){.scale = 1};
      for (int j = 0; j < 32; j++) {
        a[i].q[j] = i % 3 == 0 ? 127 : i % 3 == 1 ? -127 : test_below(&seed, 2) ? 127 : -127;
        *(j < 16 ? &a[i].sum_low : &a[i].sum_high) += a[i].q[j];
      }
    }
    float *w = widen(types[t], b, N, K), y[M * N];
    for (int i = 0; i < level_count; i++) {
      uint8_t *form = pack(levels[i].target->layout_of(types[t]), b, N, K);
      matrices x = {.a_type = RUNG_TYPE_A8,
                    .b_type = types[t],
                    .y_type = RUNG_TYPE_F32,
                    .packed = true,
                    .m = M,
                    .n = N,
                    .k = K,
                    .a = (const uint8_t *)a,
                    .b = form,
                    .y = y};
      multiply(&levels[i], &x, 2);
      float *a_floats = widen(RUNG_TYPE_A8, (const uint8_t *)a, M, K);
      check_against_double(&levels[i], "extremes", &x, a_floats, w);
      bool whole = true;
      for (int j = 0; j < M * N; j++) {
        double sum = 0, magnitude = 0;
        for (int q = 0; q < K; q++) {
          sum += (double)a_floats[j / N * K + q] * (double)w[j % N * K + q];
          magnitude += fabs((double)a_floats[j / N * K + q] * (double)w[j % N * K + q]);
        }
        whole = whole && (magnitude >= 0x1p24 || (double)y[j] == sum);
      }
      CHECK(whole);
      free(a_floats), free(form);
    }
    free(b), free(w);
  }
}

/* Large activations, and one channel a thousand times the others: finite, and as near as quantising in blocks allows:
 * half a step, max|x| / 254, for each of the 32. */
static void test_large_activations(void) {
  enum { M = 3, N = 32, K = 256 };
  for (int i = 0; i < level_count; i++)
    for (int one_channel = 0; one_channel < 2; one_channel++) {
      float x[M * K], y[M * N];
      for (int j = 0; j < M * K; j++) {
        const float s = test_uniform(&seed, -3, 3);
        x[j] = one_channel ? (j % K == 77 ? 3000 * s : s) : 3000;
      }
      uint8_t *b = make_rows(RUNG_TYPE_Q4_1, N, K), *form = pack(levels[i].target->layout_of(RUNG_TYPE_Q4_1), b, N, K);
      float *w = widen(RUNG_TYPE_Q4_1, b, N, K);
      rung_a8 a[M * K / 32];
      rung_type_get(RUNG_TYPE_A8)->from_f32(x, a, M * K);
      multiply(&levels[i],
               &(matrices){.a_type = RUNG_TYPE_A8,
                           .b_type = RUNG_TYPE_Q4_1,
                           .y_type = RUNG_TYPE_F32,
                           .packed = true,
                           .m = M,
                           .n = N,
                           .k = K,
                           .a = (const uint8_t *)a,
                           .b = form,
                           .y = y},
               1);
      bool near = true;
      for (int j = 0; j < M * N; j++) {
        double sum = 0, error = 0;
        for (int q = 0; q < K; q++) {
          sum += (double)x[j / N * K + q] * (double)w[j % N * K + q];
          error += (double)a[(j / N * K + q) / 32].scale * 0.501 * fabs((double)w[j % N * K + q]);
        }
        near = near && fabs((double)y[j] - sum) <= error;
      }
      CHECK(near);
      free(b), free(form), free(w);
    }
}

/* A NaN or an infinity in a row spoils that row, in a weight that column, and nothing else. */
static void test_not_a_number(void) {
  enum { M = 9, N = 40, K = 64, ROW = 4, COLUMN = 21 };
  for (int i = 0; i < level_count; i++)
    for (int a8 = 0; a8 < 2; a8++)
      for (int in_weight = 0; in_weight < 2; in_weight++) {
        float x[M * K], y[M * N];
        fill_floats(x, M * K, 1);
        if (!in_weight) x[ROW * K + 50] = i % 2 ? NAN : INFINITY;
        uint8_t *b = make_rows(RUNG_TYPE_Q8_0, N, K);
        const uint16_t nan = 0x7e00;
        if (in_weight) memcpy(b + (COLUMN * (K / 32) + 1) * 34, &nan, 2);
        uint8_t *form = pack(levels[i].target->layout_of(RUNG_TYPE_Q8_0), b, N, K);
        rung_a8 a[M * K / 32];
        rung_type_get(RUNG_TYPE_A8)->from_f32(x, a, M * K);
        multiply(&levels[i],
                 &(matrices){.a_type = a8 ? RUNG_TYPE_A8 : RUNG_TYPE_F32,
                             .b_type = RUNG_TYPE_Q8_0,
                             .y_type = RUNG_TYPE_F32,
                             .packed = true,
                             .m = M,
                             .n = N,
                             .k = K,
                             .a = a8 ? (const uint8_t *)a : (const uint8_t *)x,
                             .b = form,
                             .y = y},
                 1);
        bool right = true;
        for (int j = 0; j < M * N; j++) right = right && isfinite(y[j]) == (in_weight ? j % N != COLUMN : j / N != ROW);
        CHECK(right);
        free(b), free(form);
      }
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  open_levels();
  RUN(test_packed);
  RUN(test_unpacked);
  RUN(test_weights_exact);
  RUN(test_batched);
  RUN(test_grouped);
  RUN(test_extremes);
  RUN(test_large_activations);
  RUN(test_not_a_number);
  close_levels();
  rung_host_release(host);
  return TEST_END();
}
