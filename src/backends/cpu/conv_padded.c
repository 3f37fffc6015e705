/* SPDX-License-Identifier: MIT
 * Convolution over windows of more than one place, without gathering them: a band of rows of x is copied once, with what
 * stands around it, and rows follow one another at one distance, so that what a kernel position sees of all places of
 * the band is one stretch of that copy.
 *
 *      x, one channel          copied, distance n + 2        position (1, 2) of a 3 x 3 kernel sees
 *      a b c                   . . . . .
 *      d e f                   . a b c .                     c . . d e f . . g ..
 *                              . d e f .                     (places between the rows are computed, too, and dropped)
 *                              . . . . .
 *
 * With a stride, every stride-th row and column has a copy of its own. The transpose of a convolution is one such product
 * for each place within a stride; their results lie side by side and are put in turn. Channels come CHANNELS at a time:
 * that, and nothing else, sets the order of the sums. */
#include <string.h>

#include "backends/cpu/conv_shape.h"
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/shape.h"

enum {
  CHANNELS = 32,
  FLOATS = 131072,   /* most of a copy */
  TARGET = 65536,    /* floats of a copy that should do */
  TURNS = 8,         /* most places within a stride along a row */
  PHASES = 64,       /* most in all */
  GAP = 16,          /* floats between rows of weights */
  DEPTH = 16384,     /* most k of a chunk */
  WEIGHTS = 1 << 20, /* most floats of weights that are copied for one */
  LINE = 256,        /* columns of tiles, of all turns, that go to y together */
  FINISH = 32768,    /* results that are finished at once, from the second cache */
  SLACK = RUNG_CONV_COLUMNS + 16,
  GRAIN = 100000
};

/* Along an axis: what places see lies from place * step + lo to place * step + hi. */
typedef struct side {
  int64_t n, lo, hi, step, copies, more; /* copies: one for each start within a step; more: rows beyond the places */
  int64_t phases;
} side;

typedef struct plan {
  side v, h;
  int64_t channels, pitch, taps, phases;
  int64_t rows, bands, row_parts, blocks;
  bool lies; /* w is read where it lies */
} plan;

/* Rows at a distance of 2 KiB would share sets of the first cache. */
static bool reads_weights(const rung_conv_shape *s) {
  return s->w->type == RUNG_TYPE_F32 && rung_conv_weights_lie(s) && s->w_result * (int64_t)sizeof(float) % 2048 != 0;
}

static side side_of(const rung_conv_shape *s, int axis) {
  const rung_conv_axis *a = &s->axis[axis];
  side d = {
      .n = a->out, .lo = -a->before, .hi = (a->kernel - 1) * a->dilation - a->before, .step = a->stride, .phases = 1};
  if (s->transposed) {
    bool some = false;
    d = (side){.step = 1, .phases = rung_conv_max(1, rung_conv_min(a->stride, a->out))};
    for (int64_t r = 0; r < d.phases; r++) {
      const rung_conv_line line = rung_conv_line_of(s, axis, r);
      const int64_t last = line.off0 + (line.taps - 1) * line.off_step; /* the lowest: off_step is negative */
      if (r == 0) d.n = line.n;
      if (!line.taps) continue;
      d.lo = some ? rung_conv_min(d.lo, last) : last;
      d.hi = some ? rung_conv_max(d.hi, line.off0) : line.off0;
      some = true;
    }
  }
  d.copies = rung_conv_min(d.step, d.hi - d.lo + 1);
  d.more = (d.hi - d.lo) / d.step;
  return d;
}

static bool make_plan(const rung_conv_shape *s, const rung_conv_kernel *kernel, plan *out) {
  plan p = {.channels = rung_conv_min(s->channels, CHANNELS), .row_parts = 1};
  if (s->axis[0].in != 1 || s->axis[0].out != 1 || s->axis[0].kernel != 1 || s->axis[0].before) return false;
  if (s->y->type != RUNG_TYPE_F32 || !s->channels || !s->places) return false;
  p.taps = s->axis[1].kernel * s->axis[2].kernel;
  for (int a = 1; a < RUNG_CONV_AXES; a++)
    if (s->axis[a].in == 0 || s->axis[a].kernel == 0 || s->axis[a].stride > 65536) return false;
  if (!s->transposed && (p.taps == 1 || s->places <= RUNG_CONV_FEW)) return false;
  if (s->transposed && s->axis[1].stride * s->axis[2].stride > PHASES) return false;
  p.v = side_of(s, 1);
  p.h = side_of(s, 2);
  p.phases = p.v.phases * p.h.phases;
  p.pitch = p.h.n + p.h.more;
  if (p.h.phases > TURNS || p.pitch > FLOATS) return false;
  p.lies = reads_weights(s);
  const int64_t depth = p.channels * p.taps;
  if (depth > DEPTH || (!p.lies && depth + GAP * p.phases > WEIGHTS / s->results)) return false;
  const int64_t row = p.channels * p.v.copies * p.h.copies * p.pitch;
  if ((1 + p.v.more) > FLOATS / row) return false;
  p.rows = rung_conv_min(rung_conv_max(1, TARGET / row - p.v.more), p.v.n);
  p.bands = rung_conv_up(p.v.n, p.rows);
  p.blocks = rung_conv_up(s->results, kernel->tile_rows);
  const int64_t threads = s->args->threads, pictures = s->batch * s->groups;
  const double grains = (double)(pictures * s->places) * (double)(s->results * s->channels * p.taps) / GRAIN;
  const int64_t want = threads == 1 ? 1 : (int64_t)(grains < 8.0 * (double)threads ? grains : 8.0 * (double)threads);
  if (pictures * p.bands < want) {
    p.rows = rung_conv_max(rung_conv_min(2, p.rows), rung_conv_up(p.v.n, rung_conv_up(want, pictures)));
    p.rows = rung_conv_min(p.rows, rung_conv_max(1, TARGET / row - p.v.more));
    p.bands = rung_conv_up(p.v.n, p.rows);
  }
  const int64_t least = rung_conv_min(want, threads), have = pictures * p.bands;
  if (have && have < least) p.row_parts = rung_conv_min(p.blocks, rung_conv_up(least, have));
  *out = p;
  return true;
}

/* Weights of a chunk of channels, offsets of its k, the bias: beside the copy and the tiles. */
rung_dim rung_conv_scratch_padded(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  const rung_value_type *w = match->in[1];
  const bool transposed = match->node->op == &rung_op_conv_transpose;
  const rung_dim channels =
      rung_dims_combine(dims, RUNG_DIM_MIN, w->extent[transposed ? 0 : 1], rung_dims_constant(dims, CHANNELS));
  const rung_dim depth = rung_dims_mul(dims, channels, rung_dims_product(dims, w->extent, 2, w->rank));
  const rung_dim row = rung_dims_add(dims, depth, rung_dims_constant(dims, GAP * (transposed ? PHASES : 1)));
  const rung_dim weights =
      rung_dims_combine(dims, RUNG_DIM_MIN, rung_dims_mul(dims, row, role[1]), rung_dims_constant(dims, WEIGHTS));
  const rung_dim offsets = rung_dims_combine(dims, RUNG_DIM_MIN, depth, rung_dims_constant(dims, DEPTH));
  const int64_t rest = FLOATS + SLACK + RUNG_CONV_ROWS * LINE;
  const rung_dim beside = rung_dims_add(dims, rung_dims_add(dims, weights, offsets), role[1]);
  return rung_dims_mul(dims, rung_dims_add(dims, beside, rung_dims_constant(dims, rest)),
                       rung_dims_constant(dims, sizeof(float)));
}

int64_t rung_conv_tasks_padded(const rung_conv_shape *s, const rung_conv_kernel *kernel) {
  plan p;
  return make_plan(s, kernel, &p) ? s->batch * s->groups * p.bands * p.row_parts : 0;
}

/* ---- a task */

typedef struct run {
  int64_t at, to, n; /* columns of a tile, places of y along a channel, how many */
} run;

typedef struct work {
  const rung_conv_shape *s;
  const rung_conv_kernel *kernel;
  const plan *p;
  const uint8_t *x, *w;
  const float *bias; /* of the group, NULL without */
  float *y;
  int64_t picture, group;
  int64_t row0, rows;     /* places along axis 1 */
  int64_t plane, sheet;   /* floats of a copy of a channel, and of all of them */
  int64_t block0, block1; /* of results */
  int64_t c0, channels;   /* the chunk */
  float *copy, *weights, *tiles;
  int64_t tile_row; /* columns of a group of tiles */
  int32_t *offset;
  rung_conv_phase phase[PHASES];
  int64_t k_begin[PHASES], a_begin[PHASES]; /* where a phase's offsets and weights begin */
  bool lies;
} work;

/* Rows of the chunk's channels, every copy. */
static void copy_band(const work *w) {
  const plan *p = w->p;
  const rung_conv_axis *v = &w->s->axis[1], *h = &w->s->axis[2];
  const rung_type type = (rung_type)w->s->x->type;
  const int64_t bytes = rung_type_get(type)->bytes, rows = w->rows + p->v.more;
  for (int64_t c = 0; c < w->channels; c++)
    for (int64_t a = 0; a < p->v.copies; a++)
      for (int64_t b = 0; b < p->h.copies; b++) {
        float *to = w->copy + c * w->sheet + (a * p->h.copies + b) * w->plane;
        const int64_t off = p->h.lo + b;
        int64_t lo = off < 0 ? (-off + p->h.step - 1) / p->h.step : 0;
        int64_t hi = h->in > off ? (h->in - off - 1) / p->h.step + 1 : 0;
        lo = rung_conv_min(lo, p->pitch);
        hi = rung_conv_max(lo, rung_conv_min(hi, p->pitch));
        for (int64_t i = 0; i < rows; i++, to += p->pitch) {
          const int64_t row = (w->row0 + i) * p->v.step + p->v.lo + a;
          if (row < 0 || row >= v->in) {
            memset(to, 0, (size_t)p->pitch * sizeof *to);
            continue;
          }
          const int64_t at = (w->c0 + c) * w->s->x_channel + row * v->x_step + (lo * p->h.step + off) * h->x_step;
          memset(to, 0, (size_t)lo * sizeof *to);
          if (hi > lo) rung_conv_load(type, w->x + at * bytes, p->h.step * h->x_step, hi - lo, to + lo);
          memset(to + hi, 0, (size_t)(p->pitch - hi) * sizeof *to);
        }
      }
}

/* Where each k of a phase lies in the copy, for place 0. */
static void fill_offsets(work *w) {
  const plan *p = w->p;
  int64_t n = 0;
  for (int64_t f = 0; f < p->phases; f++) {
    const rung_conv_line *v = &w->phase[f].line[1], *h = &w->phase[f].line[2];
    w->k_begin[f] = n;
    for (int64_t c = 0; c < w->channels; c++)
      for (int64_t i = 0; i < v->taps; i++)
        for (int64_t j = 0; j < h->taps; j++) {
          const int64_t down = v->off0 + i * v->off_step - p->v.lo, right = h->off0 + j * h->off_step - p->h.lo;
          const int64_t plane = down % p->v.step * p->h.copies + right % p->h.step;
          w->offset[n++] = (int32_t)(c * w->sheet + plane * w->plane + down / p->v.step * p->pitch + right / p->h.step);
        }
  }
}

static int64_t k_of(const work *w, int64_t f) { return w->channels * w->phase[f].taps; }

static void fill_weights(work *w) {
  int64_t n = 0;
  const int64_t first = w->s->results * w->block0 / w->p->blocks, end = w->s->results * w->block1 / w->p->blocks;
  for (int64_t f = 0; f < w->p->phases && !w->lies; f++) {
    const int64_t k = k_of(w, f);
    w->a_begin[f] = n;
    for (int64_t r = first; r < end; r++, n += k + GAP)
      if (k) rung_conv_weights(w->s, &w->phase[f], w->w, r, w->c0 * w->phase[f].taps, k, w->weights + n);
  }
}

/* The runs of places of y that columns [at, at + columns) of the band are, for phases of row start `v`. */
static int find_runs(const work *w, const rung_conv_line *v, int64_t at, int64_t columns, run *out) {
  const plan *p = w->p;
  int n = 0;
  for (int64_t i = at; i < at + columns;) {
    const int64_t row = i / p->pitch, column = i % p->pitch, left = rung_conv_min(p->pitch - column, at + columns - i);
    const int64_t place = w->row0 + row, valid = rung_conv_min(left, p->h.n - column);
    if (row < w->rows && place < v->n && valid > 0) {
      const int64_t line = place * v->out_step + v->out0;
      out[n++] = (run){i - at, line * w->s->axis[2].out + column * w->phase[0].line[2].out_step, valid};
    }
    i += left;
  }
  return n;
}

/* n results of one row between tiles and where they lie: one of `turns` tiles after another. `back`: into the tiles.
 * `room`: places up to the end of the row, whose last ones may have no neighbour. */
static void move_run(const work *w, float *t, float *to, int64_t n, int64_t room, bool back) {
  const int64_t turns = w->p->h.phases, size = RUNG_CONV_ROWS * w->tile_row;
  if (turns == 1) {
    memcpy(back ? t : to, back ? to : t, (size_t)n * sizeof *t);
    return;
  }
  if (turns == 2 && 2 * n <= room && !back) {
    const float *u = t + size;
    for (int64_t i = 0; i < n; i++) {
      to[2 * i] = t[i];
      to[2 * i + 1] = u[i];
    }
    return;
  }
  for (int64_t k = 0; k < turns; k++)
    for (int64_t i = 0; i < n && i * turns + k < room; i++) {
      if (back) {
        t[k * size + i] = to[i * turns + k];
      } else {
        to[i * turns + k] = t[k * size + i];
      }
    }
}

/* All runs of a group of tiles between these and y, for `rows` results from `first` on. */
static void move_runs(const work *w, int64_t first, int64_t rows, const run *runs, int n, bool back) {
  const int64_t width = w->s->axis[2].out;
  for (int64_t r = 0; r < rows; r++)
    for (int i = 0; i < n; i++)
      move_run(w, w->tiles + r * w->tile_row + runs[i].at, w->y + (first + r) * w->s->places + runs[i].to, runs[i].n,
               width - runs[i].to % width, back);
}

/* All phases along a row that begin at row phase f0, for one block of results and a group of tiles. */
static void run_tiles(const work *w, int64_t f0, int64_t block, int64_t column, int64_t columns, const run *runs,
                      int n) {
  const int64_t first = w->s->results * block / w->p->blocks, next = w->s->results * (block + 1) / w->p->blocks;
  const int64_t begin = w->s->results * w->block0 / w->p->blocks;
  rung_conv_tile t = {.rows = (int)(next - first), .c_row = w->tile_row, .first = w->c0 == 0};
  t.bias = w->c0 || !w->bias ? NULL : w->bias + first;
  if (!t.first) move_runs(w, first, t.rows, runs, n, true);
  for (int64_t k = 0; k < w->p->h.phases; k++) {
    const int64_t f = f0 + k, depth = k_of(w, f);
    t.k = depth;
    t.offset = w->offset + w->k_begin[f];
    t.a_row = w->lies ? w->s->w_result : depth + GAP;
    t.a = w->lies ? w->w + (first * t.a_row + w->c0 * w->p->taps) * (int64_t)sizeof(float)
                  : (const uint8_t *)(w->weights + w->a_begin[f] + (first - begin) * t.a_row);
    for (int64_t i = 0; i < columns; i += w->kernel->tile_columns) {
      t.b = w->copy + column + i;
      t.c = w->tiles + k * RUNG_CONV_ROWS * w->tile_row + i;
      w->kernel->tile_offsets(&t);
    }
  }
  move_runs(w, first, t.rows, runs, n, false);
}

/* What follows, over rows of places [from, to) of the band: of each result they lie side by side in y. */
static void finish_rows(const work *w, int64_t from, int64_t to) {
  const rung_conv_shape *s = w->s;
  const int64_t step = w->phase[0].line[1].out_step, width = s->axis[2].out;
  const int64_t first = (w->row0 + from) * step, end = rung_conv_min((w->row0 + to) * step, s->axis[1].out);
  const int64_t r = s->results * w->block0 / w->p->blocks, next = s->results * w->block1 / w->p->blocks;
  rung_conv_finish(s, w->picture, w->group * s->results + r, next - r, first * width, (end - first) * width);
}

static void run_chunk(work *w) {
  const plan *p = w->p;
  run runs[LINE];
  copy_band(w);
  fill_offsets(w);
  fill_weights(w);
  const int64_t places = (w->rows - 1) * p->pitch + p->h.n;
  const int64_t each =
      w->s->axis[2].out * w->phase[0].line[1].out_step * w->s->results; /* results of a row of places */
  const bool last = w->s->fused && w->c0 + w->channels == w->s->channels;
  int64_t finished = 0;
  for (int64_t column = 0; column < places; column += w->tile_row) {
    const int64_t columns = rung_conv_min(w->tile_row, places - column);
    for (int64_t v = 0; v < p->v.phases; v++) {
      const int n = find_runs(w, &w->phase[v * p->h.phases].line[1], column, columns, runs);
      for (int64_t block = w->block0; block < w->block1 && n; block++)
        run_tiles(w, v * p->h.phases, block, column, columns, runs, n);
    }
    const int64_t have = column + columns < places ? (column + columns) / p->pitch : w->rows; /* whole rows */
    if (!last || (have < w->rows && (have - finished) * each < FINISH)) continue;
    finish_rows(w, finished, have);
    finished = have;
  }
}

bool rung_conv_run_padded(const rung_conv_shape *s, const rung_conv_kernel *kernel, int64_t task, float *scratch) {
  plan p;
  if (!make_plan(s, kernel, &p)) return false;
  const int64_t part = task % p.row_parts, band = task / p.row_parts % p.bands;
  const int64_t outer = task / p.row_parts / p.bands, picture = outer / s->groups, group = outer % s->groups;
  work w = {.s = s, .kernel = kernel, .p = &p, .picture = picture, .group = group};
  w.block0 = p.blocks * part / p.row_parts;
  w.block1 = p.blocks * (part + 1) / p.row_parts;
  w.row0 = band * p.rows;
  w.rows = rung_conv_min(p.rows, p.v.n - w.row0);
  w.plane = (w.rows + p.v.more) * p.pitch;
  w.sheet = w.plane * p.v.copies * p.h.copies;
  for (int64_t f = 0; f < p.phases; f++) rung_conv_phase_at(s, f, &w.phase[f]);
  const int64_t x_bytes = rung_type_get((rung_type)s->x->type)->bytes;
  const int64_t w_bytes = rung_type_get((rung_type)s->w->type)->bytes;
  w.x = s->x->base + (picture * s->x->stride[0] + group * s->channels * s->x_channel) * x_bytes;
  w.w = s->w->base + group * (s->transposed ? s->channels * s->w_channel : s->results * s->w_result) * w_bytes;
  w.y = (float *)s->y->base + outer * s->results * s->places;
  w.lies = p.lies;
  w.copy = scratch;
  w.tiles = scratch + FLOATS + SLACK;
  w.tile_row = LINE / p.h.phases / RUNG_CONV_COLUMNS * RUNG_CONV_COLUMNS;
  float *bias = w.tiles + RUNG_CONV_ROWS * LINE; /* as many as there are results */
  if (s->bias) {
    const int64_t bytes = rung_type_get((rung_type)s->bias->type)->bytes, at = group * s->results * s->bias->stride[0];
    rung_conv_load((rung_type)s->bias->type, s->bias->base + at * bytes, s->bias->stride[0], s->results, bias);
    w.bias = bias;
  }
  w.offset = (int32_t *)(bias + s->results);
  w.weights = (float *)(w.offset + p.channels * p.taps);
  for (w.c0 = 0; w.c0 < s->channels; w.c0 += CHANNELS) {
    w.channels = rung_conv_min(CHANNELS, s->channels - w.c0);
    run_chunk(&w);
  }
  return true;
}
