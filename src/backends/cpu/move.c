/* SPDX-License-Identifier: MIT
 * Copies between strides. A copy is brought to a form with few axes, then falls into pieces of which each task takes a
 * range:
 *   run    the last axis is dense on both sides: memcpy
 *   tile   the last axis is dense in the result, another one in the operand (a matrix is turned): squares of TILE by
 *          TILE elements, so that every cache line that is touched is used whole
 *   walk   neither: element by element */
#include "backends/cpu/move.h"

#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/reference.h"
#include "ops/shape.h"

enum { TILE = 32, GRAIN = 1 << 16 /* bytes of a task */ };

typedef struct move {
  uint8_t *to;
  const uint8_t *from;
  int64_t unit; /* bytes */
  int axes;
  int64_t extent[RUNG_MAX_RANK], to_step[RUNG_MAX_RANK], from_step[RUNG_MAX_RANK]; /* bytes; extents above 1 */
  int turned; /* axis that is dense in the operand where the last one is not, -1: none */
} move;

static void add_axis(move *m, int64_t extent, int64_t to, int64_t from) {
  if (extent == 1) return;
  const int last = m->axes - 1;
  if (m->axes && m->to_step[last] == to * extent && m->from_step[last] == from * extent) {
    m->extent[last] *= extent;
    m->to_step[last] = to;
    m->from_step[last] = from;
    return;
  }
  m->extent[m->axes] = extent;
  m->to_step[m->axes] = to;
  m->from_step[m->axes++] = from;
}

static move move_of(const rung_units *to, const rung_units *from) {
  move m = {.to = to->base, .from = from->base, .unit = (int64_t)to->bytes, .turned = -1};
  for (int i = 0; i < to->rank; i++) add_axis(&m, to->extent[i], to->stride[i] * m.unit, from->stride[i] * m.unit);
  const int last = m.axes - 1;
  if (m.axes < 2 || m.to_step[last] != m.unit || m.from_step[last] == m.unit) return m;
  for (int i = 0; i < last; i++)
    if (m.from_step[i] == m.unit) m.turned = i;
  return m;
}

/* Along the turned axis in TILEs, along a single run in GRAINs, along all other axes but the last one by one. */
static int64_t extent_in_pieces(const move *m, int axis) {
  if (axis == m->turned) return (m->extent[axis] + TILE - 1) / TILE;
  if (axis == m->axes - 1) return (m->extent[axis] * m->unit + GRAIN - 1) / GRAIN;
  return m->extent[axis];
}
static int64_t pieces_of(const move *m) {
  int64_t n = 1;
  for (int i = 0; i < m->axes; i++) n *= extent_in_pieces(m, i);
  return n;
}
static int64_t bytes_of(const move *m) {
  int64_t n = m->unit;
  for (int i = 0; i < m->axes; i++) n *= m->extent[i];
  return n;
}

/* ---- pieces */

#define WALK(type)                                          \
  for (int64_t i = 0; i < n; i++) {                         \
    type element;                                           \
    memcpy(&element, from + i * from_step, sizeof element); \
    memcpy(to + i * to_step, &element, sizeof element);     \
  }
static void walk(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step, int64_t n, int64_t unit) {
  switch (unit) {
    case 1:
      WALK(uint8_t) return;
    case 2:
      WALK(uint16_t) return;
    case 4:
      WALK(uint32_t) return;
    case 8:
      WALK(uint64_t) return;
    default:
      for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, (size_t)unit);
  }
}
#undef WALK

/* `rows` of the turned axis by n of the last, square after square. */
static void turn(const move *m, uint8_t *to, const uint8_t *from, int64_t rows, int64_t n) {
  const int64_t row_to = m->to_step[m->turned], from_step = m->from_step[m->axes - 1];
  for (int64_t first = 0; first < n; first += TILE) {
    const int64_t count = n - first < TILE ? n - first : TILE;
    for (int64_t r = 0; r < rows; r++)
      walk(to + r * row_to + first * m->unit, m->unit, from + r * m->unit + first * from_step, from_step, count,
           m->unit);
  }
}

static void move_piece(const move *m, int64_t piece) {
  const int last = m->axes - 1;
  uint8_t *to = m->to;
  const uint8_t *from = m->from;
  if (!m->axes) {
    memcpy(to, from, (size_t)m->unit);
    return;
  }
  int64_t n = 0, rows = 0;
  for (int axis = last; axis >= 0; axis--) {
    const int64_t pieces = extent_in_pieces(m, axis);
    const int64_t width = axis == m->turned ? TILE : axis == last ? (m->extent[axis] + pieces - 1) / pieces : 1;
    const int64_t at = piece % pieces * width;
    piece /= pieces;
    to += at * m->to_step[axis];
    from += at * m->from_step[axis];
    const int64_t left = m->extent[axis] - at < width ? m->extent[axis] - at : width;
    if (axis == last) n = left;
    if (axis == m->turned) rows = left;
  }
  if (n <= 0) return;
  if (m->turned >= 0)
    turn(m, to, from, rows, n);
  else if (m->to_step[last] == m->unit && m->from_step[last] == m->unit)
    memcpy(to, from, (size_t)(n * m->unit));
  else
    walk(to, m->to_step[last], from, m->from_step[last], n, m->unit);
}

static void move_range(const move *m, int64_t task, int64_t tasks) {
  const int64_t pieces = bytes_of(m) ? pieces_of(m) : 0;
  for (int64_t i = pieces * task / tasks; i < pieces * (task + 1) / tasks; i++) move_piece(m, i);
}

/* ---- ops */

static bool whole_bytes(const rung_value_type *type) {
  const rung_type_row *row = rung_type_get(type->type);
  return !type->layout && type->kind != RUNG_VALUE_STATE_KV && (row->block == 1 || rung_type_is_block(type->type)) &&
         (row->class_ != RUNG_CLASS_STORAGE || row->block == 1);
}

bool rung_move_fits(const rung_match *match, char *why) {
  for (uint32_t i = 0; i < match->n_in; i++)
    if (!whole_bytes(match->in[i]) || match->in[i]->type != match->out->type) {
      strcpy(why, "moves elements of whole bytes of one type");
      return false;
    }
  return true;
}
bool rung_move_fits_cast(const rung_match *match, char *why) { return rung_move_fits(match, why); }
bool rung_move_fits_pad(const rung_match *match, char *why) {
  if (!rung_move_fits(match, why)) return false;
  if (((const rung_pad_attrs *)match->node->attrs)->mode == RUNG_PAD_CONSTANT && !rung_type_is_block(match->out->type))
    return true;
  strcpy(why, "pads plain types with a constant");
  return false;
}

int64_t rung_move_tasks(const rung_args *args) {
  const rung_type_row *row = rung_type_get((rung_type)args->out[0].type);
  const int64_t bytes = rung_operand_count(&args->out[0]) / row->block * row->bytes;
  const int64_t wanted = bytes / GRAIN, most = 4 * (int64_t)args->threads;
  if (args->threads == 1 || wanted < 2) return 1;
  return wanted < most ? wanted : most;
}

static void copy_range(const rung_units *to, const rung_units *from, const rung_args *args, int64_t task) {
  const move m = move_of(to, from);
  move_range(&m, task, rung_move_tasks(args));
}

/* Extents of the operand, dense: what a reshape's result is, whatever its own extents. */
static rung_units dense_like(const rung_units *x, uint8_t *base) {
  rung_units dense = *x;
  int64_t step = 1;
  dense.base = base;
  for (int i = x->rank - 1; i >= 0; i--) {
    dense.stride[i] = step;
    step *= x->extent[i];
  }
  return dense;
}

rung_status rung_move_copy(const rung_args *args, int64_t task, int thread) {
  (void)thread;
  const rung_units x = rung_units_of(&args->in[0]), y = rung_units_of(&args->out[0]);
  if (x.base == y.base) return RUNG_OK;
  const bool same = x.rank == y.rank && memcmp(x.extent, y.extent, (size_t)x.rank * sizeof *x.extent) == 0;
  const rung_units to = same ? y : dense_like(&x, y.base);
  copy_range(&to, &x, args, task);
  return RUNG_OK;
}

rung_status rung_move_assign(const rung_args *args, int64_t task, int thread) {
  (void)thread;
  const rung_units x = rung_units_of(&args->in[1]), y = rung_units_of(&args->out[0]);
  if (x.base != y.base) copy_range(&y, &x, args, task);
  return RUNG_OK;
}

rung_status rung_move_concat(const rung_args *args, int64_t task, int thread) {
  (void)thread;
  rung_units to = rung_units_of(&args->out[0]);
  const int axis = rung_axis_of(((const rung_concat_attrs *)args->attrs)->axis, to.rank);
  for (int i = 0; i < args->n_in; i++) {
    const rung_units x = rung_units_of(&args->in[i]);
    to.extent[axis] = x.extent[axis];
    copy_range(&to, &x, args, task);
    to.base += x.extent[axis] * to.stride[axis] * (int64_t)to.bytes;
  }
  return RUNG_OK;
}

/* ---- padding, row after row of the result */

static void fill(uint8_t *to, int64_t n, const uint8_t *element, size_t bytes) {
  for (int64_t i = 0; i < n; i++) memcpy(to + i * (int64_t)bytes, element, bytes);
}

rung_status rung_move_pad(const rung_args *args, int64_t task, int thread) {
  (void)thread;
  const rung_pad_attrs *attrs = args->attrs;
  const rung_units x = rung_units_of(&args->in[0]), y = rung_units_of(&args->out[0]);
  const int last = y.rank - 1;
  uint64_t bits[2] = {0};
  const rung_operand one = {.base = (uint8_t *)bits, .type = args->out[0].type};
  if (rung_operand_is_integer(&one))
    rung_store_i64(&one, 0, (int64_t)attrs->value);
  else
    rung_store_f64(&one, 0, attrs->value);
  if (last < 0) {
    memcpy(y.base, x.base, y.bytes);
    return RUNG_OK;
  }
  int64_t rows = 1;
  for (int i = 0; i < last; i++) rows *= y.extent[i];
  const int64_t tasks = rung_move_tasks(args), unit = (int64_t)y.bytes, width = y.extent[last];
  for (int64_t row = rows * task / tasks; row < rows * (task + 1) / tasks; row++) {
    uint8_t *to = y.base;
    const uint8_t *from = x.base;
    bool inside = x.extent[last] > 0;
    for (int64_t axis = last - 1, rest = row; axis >= 0; rest /= y.extent[axis--]) {
      const int64_t at = rest % y.extent[axis], own = at - rung_args_dim(args, attrs->before.dim[axis]);
      inside = inside && own >= 0 && own < x.extent[axis];
      to += at * y.stride[axis] * unit;
      from += own * x.stride[axis] * unit;
    }
    int64_t before = rung_args_dim(args, attrs->before.dim[last]), n = inside ? x.extent[last] : 0, skip = 0;
    if (before < 0) skip = -before, n -= skip, before = 0;
    if (n > width - before) n = width - before;
    if (n <= 0) n = 0, before = width;
    fill(to, before, (const uint8_t *)bits, y.bytes);
    walk(to + before * unit, unit, from + skip * x.stride[last] * unit, x.stride[last] * unit, n, unit);
    fill(to + (before + n) * unit, width - before - n, (const uint8_t *)bits, y.bytes);
  }
  return RUNG_OK;
}
