/* SPDX-License-Identifier: MIT
 * Reductions: the axes taken apart, rows and columns of results. */
#include "backends/cpu/reduce.h"

#include <math.h>
#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/reference.h"
#include "ops/shape.h"

/* What becomes of an element before it is folded, and of the total. */
typedef enum made_of { AS_IT_IS, MAGNITUDE, SQUARE, EXPONENTIAL } made_of;
typedef enum becomes { TOTAL, MEAN, ROOT, LOGARITHM, LOGARITHM_ABOVE } becomes;
typedef struct kind {
  const rung_op *op, *combine;
  made_of made_of;
  becomes becomes;
} kind;
static const kind kinds[] = {{&rung_op_reduce_sum, &rung_op_add, AS_IT_IS, TOTAL},
                             {&rung_op_reduce_mean, &rung_op_add, AS_IT_IS, MEAN},
                             {&rung_op_reduce_prod, &rung_op_mul, AS_IT_IS, TOTAL},
                             {&rung_op_reduce_max, &rung_op_max, AS_IT_IS, TOTAL},
                             {&rung_op_reduce_min, &rung_op_min, AS_IT_IS, TOTAL},
                             {&rung_op_reduce_l1, &rung_op_add, MAGNITUDE, TOTAL},
                             {&rung_op_reduce_l2, &rung_op_add, SQUARE, ROOT},
                             {&rung_op_reduce_sum_square, &rung_op_add, SQUARE, TOTAL},
                             {&rung_op_reduce_log_sum, &rung_op_add, AS_IT_IS, LOGARITHM},
                             {&rung_op_reduce_log_sum_exp, &rung_op_add, EXPONENTIAL, LOGARITHM_ABOVE}};

typedef struct prepared {
  const rung_strip_level *level;
  const kind *kind;
  rung_apply_fn *combine, *most, *abs, *mul, *sub, *exp;
} prepared;

rung_status rung_reduce_prepare(const rung_cpu_prepare *in, const rung_strip_level *level, const void **out_prepared) {
  prepared *p = rung_arena_alloc(in->arena, sizeof *p);
  if (!p) return rung_fail(in->error, RUNG_OUT_OF_MEMORY, "cpu: no memory to prepare a reduction");
  p->level = level;
  for (size_t i = 0; i < RUNG_COUNT(kinds); i++)
    if (kinds[i].op == in->step->op) p->kind = &kinds[i];
  p->combine = level->find(p->kind->combine);
  p->most = level->find(&rung_op_max);
  p->abs = level->find(&rung_op_abs);
  p->mul = level->find(&rung_op_mul);
  p->sub = level->find(&rung_op_sub);
  p->exp = level->find(&rung_op_exp);
  *out_prepared = p;
  return RUNG_OK;
}

bool rung_reduce_fits(const rung_match *match, char *why) {
  const rung_type type = match->in[0]->type;
  if (type == RUNG_TYPE_F32 || type == RUNG_TYPE_F16 || type == RUNG_TYPE_BF16) return true;
  strcpy(why, "folds f32, f16 and bf16");
  return false;
}

/* Of a thread: a strip of operands, one of what becomes of them, totals and chunks of columns, their shifts. */
enum { STRIPS = 5 };
rung_dim rung_reduce_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  (void)match, (void)role;
  return rung_dims_constant(dims, STRIPS * RUNG_STRIP * (int64_t)sizeof(float));
}

/* ---- the axes, without those of extent 1. Strides in bytes. */

typedef struct axes {
  int n;
  int64_t extent[RUNG_MAX_RANK], x[RUNG_MAX_RANK], y[RUNG_MAX_RANK];
  int64_t count;
} axes;

static void add_axis(axes *a, int64_t extent, int64_t x, int64_t y) {
  a->count *= extent;
  if (extent == 1) return;
  const int last = a->n - 1;
  if (a->n && a->x[last] == x * extent && a->y[last] == y * extent) {
    a->extent[last] *= extent;
    a->x[last] = x;
    a->y[last] = y;
    return;
  }
  a->extent[a->n] = extent;
  a->x[a->n] = x;
  a->y[a->n++] = y;
}

typedef struct reduction {
  const rung_args *args;
  const prepared *p;
  rung_type type;
  int64_t bytes;
  axes kept, reduced;
  bool columns;          /* the last axis is kept */
  int64_t width, wx, wy; /* columns: extent and strides of that axis, taken out of kept */
  float *in, *made, *total, *chunk, *shift;
} reduction;

static void take_apart(const rung_args *args, reduction *r) {
  const rung_reduce_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0], *y = &args->out[0];
  *r = (reduction){
      .args = args, .p = args->prepared, .type = (rung_type)x->type, .kept = {.count = 1}, .reduced = {.count = 1}};
  r->bytes = rung_type_get(r->type)->bytes;
  uint32_t mask = attrs->axes.count ? 0 : (1u << x->rank) - 1;
  for (int i = 0; i < attrs->axes.count; i++) mask |= 1u << rung_axis_of(attrs->axes.value[i], x->rank);
  r->columns = x->rank && !(mask >> (x->rank - 1) & 1);
  for (int axis = 0, to = 0; axis < x->rank; axis++) {
    const bool over = mask >> axis & 1;
    const int64_t at = over && !attrs->keep ? 0 : y->stride[to++] * r->bytes, step = x->stride[axis] * r->bytes;
    if (over) {
      add_axis(&r->reduced, x->extent[axis], step, 0);
    } else if (axis == x->rank - 1) {
      r->width = x->extent[axis];
      r->wx = step;
      r->wy = at;
    } else {
      add_axis(&r->kept, x->extent[axis], step, at);
    }
  }
}

static void offsets_of(const axes *a, int64_t index, int64_t *x, int64_t *y) {
  for (int i = a->n - 1; i >= 0; i--) {
    *x += index % a->extent[i] * a->x[i];
    *y += index % a->extent[i] * a->y[i];
    index /= a->extent[i];
  }
}

/* n numbers `step` apart; where they lie if they are dense f32, else in `out`. */
static const float *load(const reduction *r, const uint8_t *from, int64_t step, int64_t n, float *out) {
  if (step == 4 && r->type == RUNG_TYPE_F32) return (const float *)from;
  if (step == r->bytes) {
    r->p->level->load(r->type, from, out, n);
    return out;
  }
  const rung_type_row *row = rung_type_get(r->type);
  for (int64_t i = 0; i < n; i++) row->to_f32(from + i * step, out + i, 1);
  return out;
}

static double finish(const reduction *r, double total, double top) {
  switch (r->p->kind->becomes) {
    case MEAN:
      return total / (double)r->reduced.count;
    case ROOT:
      return sqrt(total);
    case LOGARITHM:
      return log(total);
    case LOGARITHM_ABOVE:
      return isinf(top) ? top : top + log(total);
    default:
      return total;
  }
}

static float start_of(const reduction *r) {
  const rung_op *combine = r->p->kind->combine;
  return combine == &rung_op_mul ? 1 : combine == &rung_op_max ? -HUGE_VALF : combine == &rung_op_min ? HUGE_VALF : 0;
}

/* ---- rows */

/* Elements [first, first + n) of the row that begins at x, n at most a strip. Runs of the last reduced axis are put one
 * behind the other. */
static const float *row_strip(const reduction *r, const uint8_t *x, int64_t first, int64_t n) {
  const axes *a = &r->reduced;
  if (a->n <= 1) return load(r, x + (a->n ? first * a->x[0] : 0), a->n ? a->x[0] : r->bytes, n, r->in);
  const int64_t run = a->extent[a->n - 1], step = a->x[a->n - 1];
  for (int64_t i = 0; i < n;) {
    int64_t at = 0, none = 0;
    offsets_of(a, first + i, &at, &none);
    const int64_t left = run - (first + i) % run, count = left < n - i ? left : n - i;
    const float *got = load(r, x + at, step, count, r->in + i);
    if (got != r->in + i) memcpy(r->in + i, got, (size_t)count * sizeof *got);
    i += count;
  }
  return r->in;
}

static const rung_fold_kind *fold_of(const reduction *r) {
  const rung_strip_level *level = r->p->level;
  const rung_op *combine = r->p->kind->combine;
  if (combine == &rung_op_mul) return &level->product;
  if (combine == &rung_op_max) return &level->most;
  if (combine == &rung_op_min) return &level->least;
  if (r->p->kind->made_of == SQUARE) return &level->squares;
  return r->p->kind->made_of == EXPONENTIAL ? &level->exponentials : &level->sum;
}

static float fold_row(const reduction *r, const rung_fold_kind *fold, const uint8_t *x, bool magnitude, float shift) {
  float lanes[RUNG_FOLD_LANES], total = fold->start;
  const int64_t count = r->reduced.count;
  for (int64_t first = 0; first < count; first += RUNG_STRIP) {
    const int64_t n = count - first < RUNG_STRIP ? count - first : RUNG_STRIP;
    const float *strip = row_strip(r, x, first, n);
    if (magnitude) {
      r->p->abs(r->made, &strip, n, NULL);
      strip = r->made;
    }
    if (first % RUNG_FOLD == 0)
      for (int i = 0; i < RUNG_FOLD_LANES; i++) lanes[i] = fold->start;
    fold->add(lanes, strip, n, &shift);
    if ((first + n) % RUNG_FOLD != 0 && first + n != count) continue;
    const float now = fold->finish(lanes);
    total = first < RUNG_FOLD ? now : fold->join(total, now);
  }
  return total;
}

static void run_row(const reduction *r, int64_t index) {
  int64_t x = 0, y = 0;
  offsets_of(&r->kept, index, &x, &y);
  const uint8_t *from = r->args->in[0].base + x;
  const made_of from_x = r->p->kind->made_of;
  const float top = from_x == EXPONENTIAL ? fold_row(r, &r->p->level->most, from, false, 0) : 0;
  const float total = fold_row(r, fold_of(r), from, from_x == MAGNITUDE, top);
  const float value = (float)finish(r, (double)total, (double)top);
  r->p->level->store(r->type, &value, r->args->out[0].base + y, 1);
}

/* ---- columns: n results side by side */

static void combine_columns(const reduction *r, rung_apply_fn *combine, made_of from_x, const uint8_t *x, int64_t n,
                            float start, float *total) {
  const prepared *p = r->p;
  const int64_t count = r->reduced.count;
  for (int64_t i = 0; i < n; i++) total[i] = start;
  for (int64_t first = 0; first < count; first += RUNG_FOLD) {
    const int64_t end = count - first < RUNG_FOLD ? count : first + RUNG_FOLD;
    float *to = first ? r->chunk : total;
    for (int64_t i = 0; i < n; i++) to[i] = start;
    for (int64_t k = first; k < end; k++) {
      int64_t at = 0, none = 0;
      offsets_of(&r->reduced, k, &at, &none);
      const float *v = load(r, x + at, r->wx, n, r->in);
      if (from_x == MAGNITUDE) p->abs(r->made, &v, n, NULL);
      if (from_x == SQUARE) p->mul(r->made, (const float *const[]){v, v}, n, NULL);
      if (from_x == EXPONENTIAL) {
        p->sub(r->made, (const float *const[]){v, r->shift}, n, NULL);
        p->exp(r->made, (const float *const[]){r->made}, n, NULL);
      }
      combine(to, (const float *const[]){to, from_x == AS_IT_IS ? v : r->made}, n, NULL);
    }
    if (first) combine(total, (const float *const[]){total, to}, n, NULL);
  }
}

static void run_columns(const reduction *r, int64_t index, int64_t column, int64_t n) {
  int64_t x = column * r->wx, y = column * r->wy;
  offsets_of(&r->kept, index, &x, &y);
  const uint8_t *from = r->args->in[0].base + x;
  const made_of from_x = r->p->kind->made_of;
  if (from_x == EXPONENTIAL) combine_columns(r, r->p->most, AS_IT_IS, from, n, -HUGE_VALF, r->shift);
  combine_columns(r, r->p->combine, from_x, from, n, start_of(r), r->total);
  if (r->p->kind->becomes != TOTAL)
    for (int64_t i = 0; i < n; i++) r->total[i] = (float)finish(r, (double)r->total[i], (double)r->shift[i]);
  uint8_t *to = r->args->out[0].base + y;
  if (r->wy == r->bytes || n == 1) {
    r->p->level->store(r->type, r->total, to, n);
  } else {
    for (int64_t i = 0; i < n; i++) r->p->level->store(r->type, r->total + i, to + i * r->wy, 1);
  }
}

/* ---- tasks: results, or strips of them */

enum { GRAIN = 32768 }; /* elements */

static int64_t items_of(const reduction *r) {
  return r->columns ? r->kept.count * ((r->width + RUNG_STRIP - 1) / RUNG_STRIP) : r->kept.count;
}
static int64_t tasks_of(const reduction *r) {
  const int64_t items = items_of(r), all = r->kept.count * r->reduced.count * (r->columns ? r->width : 1);
  const int64_t wanted = all / GRAIN, most = 4 * (int64_t)r->args->threads, tasks = wanted < most ? wanted : most;
  if (r->args->threads == 1 || tasks < 2) return 1;
  return tasks < items ? tasks : items > 0 ? items : 1;
}
int64_t rung_reduce_tasks(const rung_args *args) {
  reduction r;
  take_apart(args, &r);
  return tasks_of(&r);
}

rung_status rung_reduce_run(const rung_args *args, int64_t task, int thread) {
  reduction r;
  take_apart(args, &r);
  r.in = (float *)((uint8_t *)args->scratch + (size_t)thread * args->scratch_stride);
  r.made = r.in + RUNG_STRIP;
  r.total = r.made + RUNG_STRIP;
  r.chunk = r.total + RUNG_STRIP;
  r.shift = r.chunk + RUNG_STRIP;
  const int64_t tasks = tasks_of(&r), items = items_of(&r), strips = (r.width + RUNG_STRIP - 1) / RUNG_STRIP;
  for (int64_t i = items * task / tasks; i < items * (task + 1) / tasks; i++) {
    if (!r.columns) {
      run_row(&r, i);
      continue;
    }
    const int64_t column = i % strips * RUNG_STRIP;
    run_columns(&r, i / strips, column, r.width - column < RUNG_STRIP ? r.width - column : RUNG_STRIP);
  }
  return RUNG_OK;
}
