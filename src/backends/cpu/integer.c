/* SPDX-License-Identifier: MIT
 * Products of small integers: rows of one operand, columns of the other, each brought to pairs of 16 bits as tiles take
 * them. matmul_integer and convolutions differ in where rows and columns come from. */
#include "backends/cpu/integer.h"

#include <string.h>

#include "backends/cpu/conv_shape.h"
#include "ops/attrs.h"
#include "ops/structured.h"

enum { GRAIN = 200000, ROW = RUNG_INTEGER_K + 32 /* numbers between rows */ };

typedef struct product {
  int64_t rows, columns, k;
  int32_t *y;
  int64_t y_row;
  /* count numbers of a row from k0 on; columns [first, first + n) as pairs, `row` pairs from one to the next. */
  void (*load_row)(const struct product *p, int64_t row, int64_t k0, int64_t count, int16_t *out);
  void (*load_columns)(const struct product *p, int64_t k0, int64_t count, int64_t first, int64_t n, int16_t *out,
                       int64_t row, int16_t *space);
  const void *self;
} product;

/* ---- division */

typedef struct division {
  int64_t column_parts, step, row_parts;
} division;

static division divide(int64_t outer, int64_t rows, int64_t columns, int64_t k, int64_t threads) {
  division d = {.column_parts = 1, .step = RUNG_INTEGER_COLUMNS, .row_parts = 1};
  const double grains = (double)outer * (double)rows * (double)columns * (double)k / GRAIN;
  const double most = 8 * (double)threads;
  const int64_t want = threads == 1 ? 1 : (int64_t)(grains < most ? grains : most);
  d.column_parts = rung_conv_max(1, rung_conv_up(columns, d.step));
  while (outer * d.column_parts < want && d.step > 32) {
    d.step /= 2;
    d.column_parts = rung_conv_up(columns, d.step);
  }
  const int64_t have = outer * d.column_parts, least = rung_conv_min(want, threads);
  if (have && have < least)
    d.row_parts = rung_conv_max(1, rung_conv_min(rung_conv_up(rows, 32), rung_conv_up(least, have)));
  return d;
}

/* ---- a task: pairs of columns | rows | a tile that is not whole | two rows of columns */

enum {
  PAIRS = RUNG_INTEGER_K / 2 * RUNG_INTEGER_COLUMNS, /* of columns, four bytes each */
  ROWS = RUNG_INTEGER_ROWS * ROW / 2,
  TAIL = RUNG_INTEGER_ROWS * RUNG_INTEGER_COLUMNS,
  SPACE = RUNG_INTEGER_COLUMNS /* two rows of columns */
};
rung_dim rung_integer_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  (void)match, (void)role;
  return rung_dims_constant(dims, 4 * (int64_t)(PAIRS + ROWS + TAIL + SPACE) + 64);
}

static void run_tile(const product *p, const rung_integer_kernel *kernel, rung_integer_tile *t, int64_t row,
                     int64_t column, int64_t left, int32_t *tail) {
  int32_t *y = p->y + row * p->y_row + column;
  const bool whole = left >= kernel->tile_columns;
  const size_t bytes = (size_t)left * sizeof *y;
  t->c = whole ? y : tail;
  t->c_row = whole ? p->y_row : RUNG_INTEGER_COLUMNS;
  for (int r = 0; r < t->rows && !whole && !t->first; r++)
    memcpy(tail + r * RUNG_INTEGER_COLUMNS, y + r * p->y_row, bytes);
  kernel->tile(t);
  for (int r = 0; r < t->rows && !whole; r++) memcpy(y + r * p->y_row, tail + r * RUNG_INTEGER_COLUMNS, bytes);
}

static void run_product(const product *p, const rung_integer_kernel *kernel, const division *d, int64_t column_part,
                        int64_t row_part, void *scratch) {
  int16_t *pairs = scratch, *rows = pairs + 2 * PAIRS;
  int32_t *tail = (int32_t *)scratch + PAIRS + ROWS;
  int16_t *space = (int16_t *)(tail + TAIL);
  const int64_t first = column_part * d->step, n = rung_conv_min(d->step, p->columns - first);
  const int64_t row0 = p->rows * row_part / d->row_parts, row1 = p->rows * (row_part + 1) / d->row_parts;
  const int64_t width = rung_conv_up(n, kernel->tile_columns) * kernel->tile_columns;
  int64_t k0 = 0;
  do {
    const int64_t count = rung_conv_min(RUNG_INTEGER_K, p->k - k0);
    if (count) p->load_columns(p, k0, count, first, n, pairs, width, space);
    for (int64_t row = row0; row < row1; row += kernel->tile_rows) {
      rung_integer_tile t = {.rows = (int)rung_conv_min(kernel->tile_rows, row1 - row),
                             .pairs = (count + 1) / 2,
                             .a = rows,
                             .a_row = ROW,
                             .b_row = 2 * width,
                             .first = k0 == 0};
      for (int r = 0; r < t.rows && count; r++) {
        p->load_row(p, row + r, k0, count, rows + r * ROW);
        rows[r * ROW + count] = 0;
      }
      for (int64_t column = 0; column < n; column += kernel->tile_columns) {
        t.b = pairs + 2 * column;
        run_tile(p, kernel, &t, row, first + column, n - column, tail);
      }
    }
    k0 += count;
  } while (k0 < p->k);
}

/* ---- integers of any of the types */

#define TYPES(X) X(U8, uint8_t) X(I8, int8_t) X(I16, int16_t)
static int32_t load_one(const rung_operand *o, int64_t at) {
  switch (o->type) {
#define X(NAME, type)                                       \
  case RUNG_TYPE_##NAME: {                                  \
    type x;                                                 \
    memcpy(&x, o->base + at * (int64_t)sizeof x, sizeof x); \
    return x;                                               \
  }
    TYPES(X)
#undef X
    default:
      return 0;
  }
}
static int32_t zero_at(const rung_operand *zero, int64_t index) {
  if (!zero) return 0;
  return load_one(zero, zero->rank && zero->extent[0] != 1 ? index * zero->stride[0] : 0);
}
/* Two rows of n numbers side by side. */
static void interleave(const int16_t *a, const int16_t *b, int64_t n, int16_t *out) {
  for (int64_t i = 0; i < n; i++) {
    out[2 * i] = a[i];
    out[2 * i + 1] = b[i];
  }
}

/* ---- matmul_integer */

typedef struct matmul {
  const rung_operand *a, *b, *a_zero, *b_zero;
  int64_t a_at, b_at; /* where the batch begins */
} matmul;

static void matmul_row(const product *p, int64_t row, int64_t k0, int64_t count, int16_t *out) {
  const matmul *m = p->self;
  const int64_t *step = m->a->stride + m->a->rank - 2;
  const uint8_t *from = m->a->base + m->a_at + row * step[0] + k0 * step[1]; /* elements are bytes */
  rung_conv_load_integers((rung_type)m->a->type, from, step[1], count, zero_at(m->a_zero, row), out);
}

static void matmul_columns(const product *p, int64_t k0, int64_t count, int64_t first, int64_t n, int16_t *out,
                           int64_t row, int16_t *space) {
  const matmul *m = p->self;
  const int64_t *step = m->b->stride + m->b->rank - 2;
  const bool single = !m->b_zero || m->b_zero->rank == 0 || m->b_zero->extent[0] == 1;
  const int32_t zero = single ? zero_at(m->b_zero, 0) : 0;
  for (int64_t k = 0; k < count; k += 2, out += 2 * row) {
    const uint8_t *from = m->b->base + m->b_at + (k0 + k) * step[0] + first * step[1];
    const bool both = k + 1 < count;
    rung_conv_load_integers((rung_type)m->b->type, from, step[1], n, zero, space);
    memset(space + n, 0, (size_t)n * sizeof *space);
    if (both) rung_conv_load_integers((rung_type)m->b->type, from + step[0], step[1], n, zero, space + n);
    for (int64_t i = 0; i < n && !single; i++) {
      const int32_t own = zero_at(m->b_zero, first + i);
      space[i] = (int16_t)(space[i] - own);
      if (both) space[n + i] = (int16_t)(space[n + i] - own);
    }
    interleave(space, space + n, n, out);
    memset(out + 2 * n, 0, (size_t)(row - n) * 4);
  }
}

static int64_t batches_of(const rung_operand *y) {
  int64_t n = 1;
  for (int axis = 0; axis < y->rank - 2; axis++) n *= y->extent[axis];
  return n;
}
static division divide_matmul(const rung_args *args) {
  const rung_operand *a = &args->in[0], *y = &args->out[0];
  return divide(batches_of(y), y->extent[y->rank - 2], y->extent[y->rank - 1], a->extent[a->rank - 1], args->threads);
}

int64_t rung_integer_tasks_matmul(const rung_args *args) {
  const division d = divide_matmul(args);
  return rung_conv_max(1, batches_of(&args->out[0]) * d.column_parts * d.row_parts);
}

rung_status rung_integer_run_matmul(const rung_args *args, const rung_integer_kernel *kernel, int64_t task,
                                    int thread) {
  const rung_operand *a = &args->in[0], *b = &args->in[1], *y = &args->out[0];
  if (!rung_operand_count(y)) return RUNG_OK;
  const division d = divide_matmul(args);
  int64_t batch = task / d.column_parts / d.row_parts, index[RUNG_MAX_RANK] = {0};
  const int leading = y->rank - 2;
  const int64_t rows = y->extent[leading], columns = y->extent[leading + 1];
  int32_t *to = (int32_t *)y->base + batch * rows * columns;
  for (int axis = leading; axis-- > 0; batch /= y->extent[axis]) index[axis] = batch % y->extent[axis];
  const matmul m = {.a = a,
                    .b = b,
                    .a_zero = args->n_in > 2 ? &args->in[2] : NULL,
                    .b_zero = args->n_in > 3 ? &args->in[3] : NULL,
                    .a_at = rung_broadcast_offset(a, a->rank - 2, index, leading),
                    .b_at = rung_broadcast_offset(b, b->rank - 2, index, leading)};
  const product p = {.rows = rows,
                     .columns = columns,
                     .k = a->extent[a->rank - 1],
                     .y = to,
                     .y_row = columns,
                     .load_row = matmul_row,
                     .load_columns = matmul_columns,
                     .self = &m};
  run_product(&p, kernel, &d, task % d.column_parts, task / d.column_parts % d.row_parts,
              (uint8_t *)args->scratch + (size_t)thread * args->scratch_stride);
  return RUNG_OK;
}

/* ---- convolution */

static bool small_integer(rung_type type) {
  return type == RUNG_TYPE_U8 || type == RUNG_TYPE_I8 || type == RUNG_TYPE_I16;
}
bool rung_integer_fits_conv(const rung_match *match, char *why) {
  if (match->n_in == 2 && small_integer(match->in[0]->type) && small_integer(match->in[1]->type)) return true;
  strcpy(why, "takes integers of at most 16 bits without a bias");
  return false;
}

typedef struct conv {
  const rung_conv_shape *s;
  rung_conv_phase phase;
  const uint8_t *x, *w;
  int64_t group;
  int32_t x_zero;
  const rung_operand *w_zero;
} conv;

static void conv_row(const product *p, int64_t row, int64_t k0, int64_t count, int16_t *out) {
  const conv *c = p->self;
  const int32_t zero = zero_at(c->w_zero, c->group * c->s->results + row);
  const rung_type type = (rung_type)c->s->w->type;
  float space[RUNG_INTEGER_K];
  if (rung_conv_weights_lie(c->s)) {
    const uint8_t *from = c->w + (row * c->s->w_result + k0) * rung_type_get(type)->bytes;
    rung_conv_load_integers(type, from, 1, count, zero, out);
    return;
  }
  rung_conv_weights(c->s, &c->phase, c->w, row, k0, count, space);
  for (int64_t i = 0; i < count; i++) out[i] = (int16_t)((int32_t)space[i] - zero);
}

static void conv_columns(const product *p, int64_t k0, int64_t count, int64_t first, int64_t n, int16_t *out,
                         int64_t row, int16_t *space) {
  const conv *c = p->self;
  for (int64_t k = 0; k < count; k += 2, out += 2 * row) {
    const int64_t both = rung_conv_min(2, count - k);
    rung_conv_gather_integers(c->s, &c->phase, c->x, c->x_zero, k0 + k, both, first, n, space, n);
    if (both == 1) memset(space + n, 0, (size_t)n * sizeof *space);
    interleave(space, space + n, n, out);
    memset(out + 2 * n, 0, (size_t)(row - n) * 4);
  }
}

static division divide_conv(const rung_conv_shape *s) {
  int64_t k = s->channels;
  for (int a = 0; a < RUNG_CONV_AXES; a++) k *= s->axis[a].kernel;
  return divide(s->batch * s->groups, s->results, s->places, k, s->args->threads);
}

int64_t rung_integer_tasks_conv(const rung_args *args) {
  rung_conv_shape s;
  rung_conv_resolve(args, false, &s);
  rung_conv_long_lines(&s);
  const division d = divide_conv(&s);
  return rung_conv_max(1, s.batch * s.groups * d.column_parts * d.row_parts);
}

rung_status rung_integer_run_conv(const rung_args *args, bool zero_points, const rung_integer_kernel *kernel,
                                  int64_t task, int thread) {
  if (!rung_operand_count(&args->out[0])) return RUNG_OK;
  rung_conv_shape s;
  rung_conv_resolve(args, false, &s);
  rung_conv_long_lines(&s);
  const division d = divide_conv(&s);
  const int64_t outer = task / d.column_parts / d.row_parts, picture = outer / s.groups, group = outer % s.groups;
  conv c = {.s = &s, .group = group};
  rung_conv_phase_at(&s, 0, &c.phase);
  const int64_t x_bytes = rung_type_get((rung_type)s.x->type)->bytes;
  const int64_t w_bytes = rung_type_get((rung_type)s.w->type)->bytes;
  c.x = s.x->base + (picture * s.x->stride[0] + group * s.channels * s.x_channel) * x_bytes;
  c.w = s.w->base + group * s.results * s.w_result * w_bytes;
  if (zero_points && args->n_in > 2) c.x_zero = zero_at(&args->in[2], 0);
  if (zero_points && args->n_in > 3) c.w_zero = &args->in[3];
  const product p = {.rows = s.results,
                     .columns = s.places,
                     .k = c.phase.k,
                     .y = (int32_t *)s.y->base + outer * s.results * s.places,
                     .y_row = s.places,
                     .load_row = conv_row,
                     .load_columns = conv_columns,
                     .self = &c};
  run_product(&p, kernel, &d, task % d.column_parts, task / d.column_parts % d.row_parts,
              (uint8_t *)args->scratch + (size_t)thread * args->scratch_stride);
  return RUNG_OK;
}
