/* SPDX-License-Identifier: MIT
 * Convolution as a product: weights [results, k] times what windows see [k, places], which is never held whole.
 *
 *   for chunk of k (RUNG_CONV_K)
 *     gather [k][places of the task], unless x lies that way (1 x 1 windows, few results)
 *     for rows of a tile
 *       copy their weights, unless they lie as tiles read them
 *       for columns of a tile
 *         tile
 *
 * Places of a task times a chunk of k stay in the second cache, weights of a tile in the first. */
#include "backends/cpu/conv.h"

#include <string.h>

#include "backends/cpu/conv_shape.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

enum {
  GRAIN = 100000, /* products that are worth a task */
  WEIGHT_ROW =
      RUNG_CONV_K + 16, /* floats between copied rows of weights, so that they do not meet in one set of a cache */
  SLACK = 16            /* floats behind what few and taps read */
};

/* ---- what fits */

static bool narrow_float(rung_type type) {
  return type == RUNG_TYPE_F32 || type == RUNG_TYPE_F16 || type == RUNG_TYPE_BF16;
}

bool rung_conv_fits(const rung_match *match, char *why) {
  for (uint32_t i = 0; i < match->n_in; i++)
    if (!narrow_float(match->in[i]->type)) {
      strcpy(why, "takes f32, f16 and bf16");
      return false;
    }
  return true;
}

/* ---- division */

typedef struct division {
  int64_t phases, chunks, step; /* chunks of `step` places of a phase */
  int64_t row_parts, blocks;    /* blocks of rows of a tile, evenly sized */
  bool few, held;
} division;

static bool weights_lie(const rung_conv_shape *s) { return s->w->type == RUNG_TYPE_F32 && rung_conv_weights_lie(s); }

/* The largest k of a phase. */
static int64_t most_k(const rung_conv_shape *s) {
  int64_t k = s->channels;
  for (int a = 0; a < RUNG_CONV_AXES; a++) {
    const rung_conv_axis *axis = &s->axis[a];
    int64_t taps = axis->kernel;
    if (s->transposed && axis->stride % axis->dilation == 0) taps = rung_conv_up(taps, axis->stride / axis->dilation);
    k *= taps;
  }
  return k;
}

static division divide(const rung_conv_shape *s, const rung_conv_kernel *kernel) {
  division d = {.phases = rung_conv_phases(s), .chunks = 1, .row_parts = 1};
  rung_conv_phase phase;
  rung_conv_phase_at(s, 0, &phase); /* no other has more places */
  const int64_t places = phase.places, k = most_k(s), threads = s->args->threads;
  const int64_t pictures = s->batch * s->groups * d.phases;
  const double grains = (double)pictures * (double)places * (double)s->results * (double)k / GRAIN;
  const int64_t want = threads == 1 ? 1 : (int64_t)(grains < 8.0 * (double)threads ? grains : 8.0 * (double)threads);
  d.held = d.phases > 1 || s->y->type != RUNG_TYPE_F32;
  d.few = !d.held && !s->transposed && places <= RUNG_CONV_FEW && k >= 64; /* not by how weights lie: bits */
  d.blocks = rung_conv_up(s->results, d.few ? 8 : kernel->tile_rows);
  d.step = RUNG_CONV_FLOATS / rung_conv_max(1, rung_conv_min(k, RUNG_CONV_K)) / RUNG_CONV_COLUMNS * RUNG_CONV_COLUMNS;
  d.step = rung_conv_min(d.step, d.held ? RUNG_CONV_HELD : RUNG_CONV_PLACES);
  d.chunks = rung_conv_max(1, rung_conv_up(places, d.step));
  if (pictures * d.chunks < want && !d.few) {
    const int64_t most = rung_conv_up(places, RUNG_CONV_COLUMNS);
    d.chunks = rung_conv_min(rung_conv_up(want, pictures), most);
    d.step = rung_conv_up(rung_conv_up(places, d.chunks), RUNG_CONV_COLUMNS) * RUNG_CONV_COLUMNS;
    d.chunks = rung_conv_up(places, d.step);
  }
  /* Fewer results make a task repeat what it gathers: only so many that every thread has one. */
  const int64_t least = rung_conv_min(want, d.few ? 4 * threads : threads), have = pictures * d.chunks;
  if (have && have < least) d.row_parts = rung_conv_max(1, rung_conv_min(d.blocks, rung_conv_up(least, have)));
  return d;
}

int64_t rung_conv_tasks(const rung_args *args, bool transposed, const rung_conv_kernel *kernel) {
  rung_conv_shape s;
  rung_conv_resolve(args, transposed, &s);
  rung_conv_long_lines(&s);
  if (!s.batch || !s.places || !s.results) return 1;
  const int64_t padded = rung_conv_tasks_padded(&s, kernel);
  if (padded) return padded;
  const division d = divide(&s, kernel);
  return s.batch * s.groups * d.phases * d.chunks * d.row_parts;
}

/* ---- scratch of a thread: gathered | weights | last columns | results held back, or places of few with weights */

rung_dim rung_conv_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  const int64_t floats = RUNG_CONV_FLOATS + RUNG_CONV_ROWS * (WEIGHT_ROW + RUNG_CONV_COLUMNS) + RUNG_CONV_COLUMNS;
  const bool transposed = match->node->op == &rung_op_conv_transpose;
  rung_dim more = rung_dims_constant(dims, 0);
  if (transposed || match->out[0].type != RUNG_TYPE_F32)
    more = rung_dims_mul(dims, role[1], rung_dims_constant(dims, RUNG_CONV_HELD));
  if (!transposed)
    more = rung_dims_add(dims, more, rung_dims_mul(dims, role[2], rung_dims_constant(dims, 2 * RUNG_CONV_FEW + 1)));
  more = rung_dims_add(dims, more, rung_dims_constant(dims, floats + SLACK));
  more = rung_dims_mul(dims, more, rung_dims_constant(dims, sizeof(float)));
  return rung_dims_combine(dims, RUNG_DIM_MAX, more, rung_conv_scratch_padded(dims, match, role));
}

/* ---- a task */

typedef struct work {
  const rung_conv_shape *s;
  const rung_conv_kernel *kernel;
  const division *d;
  rung_conv_phase phase;
  const uint8_t *x, *w; /* of the picture and group */
  uint8_t *y;
  int64_t picture, group, row0, rows, block0, blocks;
  int64_t p0, n;       /* places */
  bool lies;           /* w */
  const float *direct; /* x as rows of k, NULL: gathered */
  float *gathered, *weights, *tail, *held;
  int64_t held_row;
} work;

static int64_t block_start(const work *w, int64_t block) { return w->s->results * block / w->d->blocks; }

/* Windows of one place that are all of x, channels one behind the other: then x is what gathering would give. */
static const float *direct_rows(const work *w) {
  const rung_conv_axis *a = w->s->axis;
  if (w->s->x->type != RUNG_TYPE_F32 || w->rows > 2 * w->kernel->tile_rows) return NULL;
  int64_t step = 1;
  for (int i = RUNG_CONV_AXES; i-- > 0;) {
    const rung_conv_line *line = &w->phase.line[i];
    if (line->taps != 1 || line->in_step != 1 || line->off0 != 0 || line->n != a[i].in) return NULL;
    if (a[i].in != 1 && a[i].x_step != step) return NULL;
    step *= a[i].in;
  }
  return (const float *)w->x + w->p0;
}

/* The bias of results from `first` on as floats; NULL without. */
static const float *bias_of(const work *w, int64_t first, int64_t rows, float *space) {
  const rung_operand *bias = w->s->bias;
  if (!bias) return NULL;
  const int64_t at = (w->group * w->s->results + first) * bias->stride[0];
  const int64_t bytes = rung_type_get((rung_type)bias->type)->bytes;
  rung_conv_load((rung_type)bias->type, bias->base + at * bytes, bias->stride[0], rows, space);
  return space;
}

/* Columns [column, column + columns of a tile) of one block of rows. A last tile that is not whole goes by way of
 * `tail`. */
static void run_tile(const work *w, rung_conv_tile *tile, int64_t row, int64_t column) {
  const int64_t columns = w->kernel->tile_columns, left = rung_conv_min(columns, w->n - column);
  float *y = (float *)w->y + (w->row0 + row) * w->s->places + w->p0 + column;
  const size_t bytes = (size_t)left * sizeof *y;
  tile->c = y;
  tile->c_row = w->s->places;
  if (w->held) {
    tile->c = w->held + row * w->held_row + column;
    tile->c_row = w->held_row;
  } else if (left < columns) {
    tile->c = w->tail;
    tile->c_row = RUNG_CONV_COLUMNS;
    for (int r = 0; r < tile->rows && !tile->first; r++)
      memcpy(w->tail + r * RUNG_CONV_COLUMNS, y + r * w->s->places, bytes);
  }
  w->kernel->tile(tile);
  for (int r = 0; r < tile->rows && tile->c == w->tail; r++)
    memcpy(y + r * w->s->places, w->tail + r * RUNG_CONV_COLUMNS, bytes);
}

static void run_block(const work *w, int64_t block, int64_t k0, int64_t count, int64_t gathered_row) {
  const int64_t first = block_start(w, block), columns = w->kernel->tile_columns;
  float bias[RUNG_CONV_ROWS];
  rung_conv_tile tile = {.rows = (int)(block_start(w, block + 1) - first), .k = count, .first = k0 == 0};
  tile.bias = k0 ? NULL : bias_of(w, first, tile.rows, bias);
  const int64_t distance = w->s->w_result;
  /* A dozen rows at such a distance would share sets of the first cache. */
  if (w->lies && (distance * (int64_t)sizeof(float) % 2048 != 0 || tile.rows <= 4)) {
    tile.a = w->w + (first * distance + k0) * (int64_t)sizeof(float);
    tile.a_row = distance;
  } else {
    for (int r = 0; r < tile.rows; r++)
      rung_conv_weights(w->s, &w->phase, w->w, first + r, k0, count, w->weights + r * WEIGHT_ROW);
    tile.a = (const uint8_t *)w->weights;
    tile.a_row = WEIGHT_ROW;
  }
  for (int64_t column = 0; column < w->n; column += columns) {
    const bool whole = column + columns <= w->n;
    tile.b = w->direct && whole ? w->direct + k0 * w->s->x_channel + column : w->gathered + column;
    tile.b_row = w->direct && whole ? w->s->x_channel : gathered_row;
    if (w->direct && !whole) tile.b = w->gathered;
    run_tile(w, &tile, first - w->row0, column);
  }
  if (w->s->fused && k0 + count >= w->phase.k)
    rung_conv_finish(w->s, w->picture, w->group * w->s->results + first, tile.rows, w->p0, w->n);
}

/* Results held back: to their type, and to the places of the phase. */
static void store_held(const work *w) {
  const rung_conv_shape *s = w->s;
  const rung_conv_line *line = w->phase.line;
  const rung_type_row *type = rung_type_get((rung_type)s->y->type);
  for (int64_t r = 0; r < w->rows; r++) {
    const float *from = w->held + r * w->held_row;
    uint8_t *to = w->y + (w->row0 + r) * s->places * type->bytes;
    for (int64_t i = 0; i < w->n;) {
      const int64_t p = w->p0 + i, column = p % line[2].n, row = p / line[2].n % line[1].n;
      const int64_t plane = p / line[2].n / line[1].n, run = rung_conv_min(w->n - i, line[2].n - column);
      const int64_t z = plane * line[0].out_step + line[0].out0, v = row * line[1].out_step + line[1].out0;
      const int64_t at = (z * s->axis[1].out + v) * s->axis[2].out + column * line[2].out_step + line[2].out0;
      const int64_t step = line[2].out_step;
      if (step == 1) {
        type->from_f32(from + i, to + at * type->bytes, (size_t)run);
      } else if (s->y->type == RUNG_TYPE_F32) {
        for (int64_t j = 0; j < run; j++) ((float *)to)[at + j * step] = from[i + j];
      } else {
        for (int64_t j = 0; j < run; j++) type->from_f32(from + i + j, to + (at + j * step) * type->bytes, 1);
      }
      i += run;
    }
  }
}

static void run_product(work *w) {
  const int64_t columns = w->kernel->tile_columns, whole = w->n / columns * columns;
  const int64_t row = rung_conv_up(w->n, columns) * columns;
  int64_t k0 = 0;
  w->direct = direct_rows(w);
  do {
    const int64_t count = rung_conv_min(RUNG_CONV_K, w->phase.k - k0);
    if (!w->direct) {
      rung_conv_gather(w->s, &w->phase, w->x, 0, k0, count, w->p0, w->n, w->gathered, row);
    } else if (whole < w->n) {
      rung_conv_gather(w->s, &w->phase, w->x, 0, k0, count, w->p0 + whole, w->n - whole, w->gathered, columns);
    }
    for (int64_t block = w->block0; block < w->block0 + w->blocks; block++)
      run_block(w, block, k0, count, w->direct ? columns : row);
    k0 += count;
  } while (k0 < w->phase.k);
  if (w->held) store_held(w);
}

/* Few places: each a row of k of its own. */
static void run_few(const work *w, float *space) {
  const int64_t k = w->phase.k, n = w->phase.places;
  float *by_k = space, *by_place = by_k + k * n, *row = by_place + k * n, bias[8];
  rung_conv_gather(w->s, &w->phase, w->x, 0, 0, k, 0, n, by_k, n);
  for (int64_t i = 0; i < k; i++)
    for (int64_t p = 0; p < n; p++) by_place[p * k + i] = by_k[i * n + p];
  for (int64_t block = w->block0; block < w->block0 + w->blocks; block++) {
    const int64_t first = block_start(w, block), rows = block_start(w, block + 1) - first;
    float *out = (float *)w->y + first * n;
    for (int64_t r = 0; r < rows; r++) bias[r] = 0;
    bias_of(w, first, rows, bias);
    const bool together = w->lies && w->s->w_result == k;
    if (together) w->kernel->few(w->w + first * k * (int64_t)sizeof(float), rows, by_place, n, k, bias, out, n);
    for (int64_t r = 0; r < rows && !together; r++) {
      if (!w->lies) rung_conv_weights(w->s, &w->phase, w->w, first + r, 0, k, row);
      const uint8_t *at = w->w + (first + r) * w->s->w_result * (int64_t)sizeof(float);
      const uint8_t *weights = w->lies ? at : (const uint8_t *)row;
      w->kernel->few(weights, 1, by_place, n, k, bias + r, out + r * n, n);
    }
    if (w->s->fused) rung_conv_finish(w->s, w->picture, w->group * w->s->results + first, rows, 0, n);
  }
}

rung_status rung_conv_run(const rung_args *args, bool transposed, const rung_conv_kernel *kernel, int64_t task,
                          int thread) {
  rung_conv_shape s;
  rung_conv_resolve(args, transposed, &s);
  rung_conv_long_lines(&s);
  if (!s.batch || !s.places || !s.results) return RUNG_OK;
  float *scratch = (float *)((uint8_t *)args->scratch + (size_t)thread * args->scratch_stride);
  rung_conv_view view;
  if (s.fused) rung_conv_view_make(&s, &view);
  s.view = &view;
  if (rung_conv_run_padded(&s, kernel, task, scratch)) return RUNG_OK;
  const division d = divide(&s, kernel);
  work w = {.s = &s, .kernel = kernel, .d = &d, .lies = weights_lie(&s)};
  const int64_t chunk = task % d.chunks, part = task / d.chunks % d.row_parts;
  task /= d.chunks * d.row_parts;
  rung_conv_phase_at(&s, task % d.phases, &w.phase);
  task /= d.phases;
  w.group = task % s.groups;
  const int64_t picture = w.picture = task / s.groups;
  w.p0 = chunk * d.step;
  if (w.p0 >= w.phase.places) return RUNG_OK;
  w.n = rung_conv_min(d.step, w.phase.places - w.p0);
  w.block0 = d.blocks * part / d.row_parts;
  w.blocks = d.blocks * (part + 1) / d.row_parts - w.block0;
  w.row0 = block_start(&w, w.block0);
  w.rows = block_start(&w, w.block0 + w.blocks) - w.row0;
  const int64_t x_bytes = rung_type_get((rung_type)s.x->type)->bytes,
                w_bytes = rung_type_get((rung_type)s.w->type)->bytes;
  w.x = s.x->base + (picture * s.x->stride[0] + w.group * s.channels * s.x_channel) * x_bytes;
  w.w = s.w->base + w.group * (transposed ? s.channels * s.w_channel : s.results * s.w_result) * w_bytes;
  w.y = s.y->base + (picture * s.groups + w.group) * s.results * s.places * rung_type_get((rung_type)s.y->type)->bytes;
  w.gathered = scratch;
  w.weights = w.gathered + RUNG_CONV_FLOATS;
  w.tail = w.weights + RUNG_CONV_ROWS * WEIGHT_ROW;
  float *rest = w.tail + RUNG_CONV_ROWS * RUNG_CONV_COLUMNS;
  if (d.few) {
    run_few(&w, rest);
    return RUNG_OK;
  }
  if (d.held) w.held = rest;
  w.held_row = rung_conv_up(w.n, RUNG_CONV_COLUMNS) * RUNG_CONV_COLUMNS;
  run_product(&w);
  return RUNG_OK;
}
