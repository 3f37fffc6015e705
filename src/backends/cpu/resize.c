/* SPDX-License-Identifier: MIT
 * resize of f32 without antialiasing: at most four neighbours an axis.
 *
 *   for each row of the result (all axes but the last)
 *     sum of rows of x, weights of all axes but the last multiplied        -> one row of x's width
 *     for each place of the row: its neighbours, by a table made once a task
 *
 * A row that has the same neighbours as the one before it is copied from there. */
#include "backends/cpu/resize.h"

#include <string.h>

#include "ops/reference.h"
#include "ops/resize.h"

enum { NEIGHBOURS = 4, GRAIN = 16384 };

typedef struct entry {
  int32_t at[NEIGHBOURS];
  float weight[NEIGHBOURS];
} entry;

bool rung_cpu_resize_fits(const rung_match *match, char *why) {
  const rung_resize_attrs *attrs = match->node->attrs;
  if (match->in[0]->type == RUNG_TYPE_F32 && match->in[0]->rank && !attrs->antialias &&
      attrs->coordinates != RUNG_RESIZE_TF_CROP_AND_RESIZE)
    return true;
  strcpy(why, "takes f32, without antialias and regions");
  return false;
}

/* The table, and a row of x. */
rung_dim rung_cpu_resize_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  (void)role;
  const int last = match->in[0]->rank - 1;
  const rung_dim table = rung_dims_mul(dims, match->out[0].extent[last], rung_dims_constant(dims, sizeof(entry)));
  const rung_dim row = rung_dims_mul(dims, match->in[0]->extent[last], rung_dims_constant(dims, sizeof(float)));
  return rung_dims_add(dims, rung_dims_add(dims, table, row), rung_dims_constant(dims, 64));
}

static int64_t rows_of(const rung_operand *o) {
  int64_t n = 1;
  for (int i = 0; i < o->rank - 1; i++) n *= o->extent[i];
  return n;
}

int64_t rung_cpu_resize_tasks(const rung_args *args) {
  const rung_operand *y = &args->out[0];
  const int64_t rows = rows_of(y), grains = rows * y->extent[y->rank - 1] / GRAIN, most = 8 * (int64_t)args->threads;
  int64_t tasks = args->threads == 1 ? 1 : grains < most ? grains : most;
  if (tasks > rows) tasks = rows;
  return tasks < 1 ? 1 : tasks;
}

typedef struct work {
  const rung_operand *x;
  rung_resize_axis axis[RUNG_MAX_RANK];
  entry *table;
  int taps;      /* of the last axis */
  int64_t twice; /* every place of x that many times, one after another; 0: not so */
  float *row;
} work;

static void make_table(work *w) {
  const rung_resize_axis *a = &w->axis[w->x->rank - 1];
  w->taps = 1;
  w->twice = a->in && a->out % a->in == 0 ? a->out / a->in : 0;
  for (int64_t i = 0; i < a->out; i++) {
    const rung_resize_line line = rung_resize_line_at(a, i);
    entry *e = &w->table[i];
    memset(e, 0, sizeof *e);
    for (int64_t k = 0; k < line.count && k < NEIGHBOURS; k++) {
      e->at[k] = (int32_t)rung_resize_index(a, line.first + k);
      e->weight[k] = (float)rung_resize_weight(a, &line, line.first + k);
    }
    if (line.count > w->taps) w->taps = (int)line.count;
    if (line.count != 1 || (w->twice && e->at[0] != i / w->twice)) w->twice = 0;
  }
}

/* Adds weight times the rows that axes [axis, last) choose; `at`: elements. False: nothing was there before. */
static void add_rows(const work *w, const rung_resize_line *line, int axis, int64_t at, double weight, bool *some) {
  const int last = w->x->rank - 1;
  const int64_t n = w->axis[last].in, step = w->x->stride[last];
  if (axis < last) {
    for (int64_t k = 0; k < line[axis].count; k++) {
      const int64_t index = line[axis].first + k;
      const double part = rung_resize_weight(&w->axis[axis], &line[axis], index);
      if (part == 0 && line[axis].count > 1) continue;
      add_rows(w, line, axis + 1, at + rung_resize_index(&w->axis[axis], index) * w->x->stride[axis], weight * part,
               some);
    }
    return;
  }
  const float *x = (const float *)w->x->base + at, by = (float)weight;
  if (!*some) {
    for (int64_t i = 0; i < n; i++) w->row[i] = by * x[i * step];
  } else {
    for (int64_t i = 0; i < n; i++) w->row[i] += by * x[i * step];
  }
  *some = true;
}

static void read_row(const work *w, const float *x, int64_t step, float *y) {
  const int64_t n = w->axis[w->x->rank - 1].out;
  if (w->twice == 1 && step == 1) {
    memcpy(y, x, (size_t)n * sizeof *y);
  } else if (w->twice == 2) {
    for (int64_t i = 0; i < n / 2; i++) y[2 * i] = y[2 * i + 1] = x[i * step];
  } else if (w->taps == 1) {
    for (int64_t i = 0; i < n; i++) y[i] = w->table[i].weight[0] * x[w->table[i].at[0] * step];
  } else if (w->taps == 2) {
    for (int64_t i = 0; i < n; i++) {
      const entry *e = &w->table[i];
      y[i] = e->weight[0] * x[e->at[0] * step] + e->weight[1] * x[e->at[1] * step];
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      const entry *e = &w->table[i];
      float sum = e->weight[0] * x[e->at[0] * step];
      for (int k = 1; k < NEIGHBOURS; k++) sum += e->weight[k] * x[e->at[k] * step];
      y[i] = sum;
    }
  }
}

/* Do the rows of the result before and at an index read the same of x? Only the axis before the last may differ. */
static bool same_lines(const work *w, const rung_resize_line *a, const rung_resize_line *b, const int64_t *index) {
  const int axis = w->x->rank - 2;
  if (axis < 0 || index[axis] == 0) return false;
  return a[axis].count == 1 && b[axis].count == 1 &&
         rung_resize_index(&w->axis[axis], a[axis].first) == rung_resize_index(&w->axis[axis], b[axis].first);
}

rung_status rung_cpu_resize_run(const rung_args *args, int64_t task, int thread) {
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  const int last = x->rank - 1;
  const int64_t rows = rows_of(y), tasks = rung_cpu_resize_tasks(args), width = y->extent[last];
  work w = {.x = x, .table = (entry *)((uint8_t *)args->scratch + (size_t)thread * args->scratch_stride)};
  for (int i = 0; i <= last; i++) {
    w.axis[i] = rung_resize_axis_of(args, i);
    if (w.axis[i].in == 0 && rows && width)
      return rung_fail(args->error, RUNG_OUT_OF_RANGE, "resize: nothing along axis %d to make something of", i);
  }
  if (!rows || !width) return RUNG_OK;
  w.row = (float *)(w.table + width);
  make_table(&w);
  rung_resize_line line[2][RUNG_MAX_RANK];
  const int64_t first = rows * task / tasks;
  for (int64_t r = first; r < rows * (task + 1) / tasks; r++) {
    rung_resize_line *now = line[r % 2];
    int64_t rest = r, index[RUNG_MAX_RANK] = {0}, at = 0;
    bool one = true, some = false;
    for (int i = last; i-- > 0; rest /= y->extent[i]) {
      index[i] = rest % y->extent[i];
      now[i] = rung_resize_line_at(&w.axis[i], index[i]);
      one = one && now[i].count == 1;
      at += rung_resize_index(&w.axis[i], now[i].first) * x->stride[i];
    }
    float *to = (float *)y->base + r * width;
    if (r > first && one && same_lines(&w, line[(r + 1) % 2], now, index)) {
      memcpy(to, to - width, (size_t)width * sizeof *to);
    } else if (one) {
      read_row(&w, (const float *)x->base + at, x->stride[last], to);
    } else {
      add_rows(&w, now, 0, 0, 1, &some);
      read_row(&w, w.row, 1, to);
    }
  }
  return RUNG_OK;
}
