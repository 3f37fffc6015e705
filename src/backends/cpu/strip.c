/* SPDX-License-Identifier: MIT
 * Running programs of strips: where rows lie, which task takes which, the loop over instructions. */
#include <math.h>
#include <string.h>

#include "backends/cpu/matmul.h"
#include "backends/cpu/strip_program.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

/* ---- where rows lie. Leading axes are joined where every stream goes on at one distance; so is the last axis with
 * them unless the program keeps it. */

enum { STREAMS = RUNG_STRIP_STREAMS };
typedef struct space {
  int axes, streams; /* leading axes */
  int64_t columns, rows;
  int64_t extent[RUNG_MAX_RANK];
  int64_t step[RUNG_MAX_RANK][STREAMS]; /* bytes */
  int64_t last[STREAMS];                /* bytes from element to element, 0: repeated (or blocks) */
  uint8_t *base[STREAMS];
} space;

static const rung_operand *operand_of(const rung_args *args, const rung_strip_stream *stream) {
  return stream->result ? &args->out[stream->index] : &args->in[stream->index];
}

/* Bytes along an axis of the space, which is aligned with the operand's last axes. */
static int64_t step_of(const rung_operand *o, int64_t bytes, int axis, int rank) {
  const int own = axis - (rank - o->rank);
  return own < 0 || o->extent[own] == 1 ? 0 : o->stride[own] * bytes;
}

/* Does every stream go from the end of `extent` steps of `inner` on at `outer`? */
static bool goes_on(const space *s, const int64_t *outer, const int64_t *inner, int64_t extent) {
  for (int i = 0; i < s->streams; i++)
    if (outer[i] != inner[i] * extent) return false;
  return true;
}

static void add_axis(space *s, const rung_args *args, const rung_strip_program *p, int axis, int64_t extent) {
  const int at = s->axes, rank = args->out[0].rank;
  for (int i = 0; i < s->streams; i++)
    s->step[at][i] = step_of(operand_of(args, &p->stream[i]), p->stream[i].bytes, axis, rank);
  if (at > 0 && goes_on(s, s->step[at - 1], s->step[at], extent)) {
    memcpy(s->step[at - 1], s->step[at], (size_t)s->streams * sizeof **s->step);
    s->extent[at - 1] *= extent;
    return;
  }
  s->extent[at] = extent;
  s->axes++;
}

static void resolve(const rung_args *args, const rung_strip_program *p, space *s) {
  const rung_operand *y = &args->out[0];
  const int rank = y->rank;
  s->axes = 0;
  s->streams = p->streams;
  s->columns = rank ? y->extent[rank - 1] : 1;
  for (int i = 0; i < s->streams; i++) {
    const rung_operand *o = operand_of(args, &p->stream[i]);
    s->base[i] = o->base;
    s->last[i] = rank && o->type != RUNG_TYPE_A8 ? step_of(o, p->stream[i].bytes, rank - 1, rank) : 0;
  }
  for (int axis = 0; axis + 1 < rank; axis++)
    if (y->extent[axis] != 1) add_axis(s, args, p, axis, y->extent[axis]);
  if (s->axes && !p->keeps_last && goes_on(s, s->step[s->axes - 1], s->last, s->columns))
    s->columns *= s->extent[--s->axes];
  s->rows = 1;
  for (int i = 0; i < s->axes; i++) s->rows *= s->extent[i];
}

static void find_row(const space *s, int64_t row, uint8_t **out) {
  for (int i = 0; i < s->streams; i++) out[i] = s->base[i];
  for (int axis = s->axes; axis-- > 0;) {
    const int64_t at = axis ? row % s->extent[axis] : row;
    if (axis) row /= s->extent[axis];
    for (int i = 0; i < s->streams; i++) out[i] += at * s->step[axis][i];
  }
}

/* ---- a strip */

typedef rung_strip_frame frame;

static RUNG_NOINLINE void load_spread(rung_type type, const uint8_t *from, int64_t step, float *out, int64_t n) {
  const rung_type_row *row = rung_type_get(type);
  row->to_f32(from, out, 1);
  if (step == 0) {
    for (int64_t i = 1; i < n; i++) out[i] = out[0];
  } else {
    for (int64_t i = 1; i < n; i++) row->to_f32(from + i * step, out + i, 1);
  }
}

static void load(frame *f, const rung_strip_instr *i, int64_t col, int64_t n) {
  const rung_strip_stream *stream = &f->p->stream[i->index];
  const int64_t step = f->last[i->index];
  uint8_t *from = f->at[i->index] + col * step;
  if (RUNG_LIKELY((step == sizeof(float) || i->one) && stream->type == RUNG_TYPE_F32)) {
    f->reg[i->out] = (float *)from;
    return;
  }
  float *temp = f->reg[i->out] = f->temp + f->p->reg[i->out].at * f->strip;
  if (step == stream->bytes)
    f->level->load((rung_type)stream->type, from, temp, i->one ? 1 : n);
  else
    load_spread((rung_type)stream->type, from, step, temp, i->one ? 1 : n);
}

static void round_to(const frame *f, const rung_strip_instr *i, int64_t n) {
  uint16_t narrow[RUNG_STRIP];
  f->level->store((rung_type)i->type, f->reg[i->in[0]], narrow, n);
  f->level->load((rung_type)i->type, narrow, f->reg[i->out], n);
}

static const float *value_of(const frame *f, const rung_strip_instr *i) {
  return i->slot < 0 ? i->attr : f->slot + i->slot;
}

static void apply(const frame *f, const rung_strip_instr *i, int64_t n) {
  const float *in[3];
  for (int k = 0; k < 3; k++) in[k] = i->in[k] < 0 ? NULL : f->reg[i->in[k]];
  i->fn(f->reg[i->out], in, n, value_of(f, i));
}

static void fold(frame *f, const rung_strip_instr *i, int64_t col, int64_t n, int64_t end) {
  const float *x = f->reg[i->in[0]];
  if (end <= RUNG_STRIP) {
    f->total[i->index] = i->fold->whole(x, n, value_of(f, i));
    return;
  }
  float *lanes = f->lanes[i->index];
  if (col % RUNG_FOLD == 0)
    for (int k = 0; k < RUNG_FOLD_LANES; k++) lanes[k] = i->fold->start;
  i->fold->add(lanes, x, n, value_of(f, i));
  if ((col + n) % RUNG_FOLD != 0 && col + n != end) return;
  const float now = i->fold->finish(lanes);
  f->total[i->index] = col < RUNG_FOLD ? now : i->fold->join(f->total[i->index], now);
}

/* In double: a few numbers per row. */
static void finish_row(frame *f, const rung_strip_instr *i) {
  const double total = (double)f->total[i->index], n = (double)f->columns;
  double value = total;
  if (i->finish == RUNG_FINISH_MEAN) value = total / n;
  if (i->finish == RUNG_FINISH_NORM) value = 1 / sqrt(total / n + i->epsilon);
  if (i->finish == RUNG_FINISH_INVERSE) value = 1 / total;
  if (i->finish == RUNG_FINISH_LOG) value = log(total);
  f->slot[i->slot] = (float)value;
}

/* Registers that move with the strip. */
static void place(frame *f, int64_t col) {
  const rung_strip_program *p = f->p;
  for (int k = 0; k < p->movings; k++) {
    const int r = p->moving[k];
    const rung_strip_reg *reg = &p->reg[r];
    f->reg[r] = reg->place == RUNG_PLACE_OUT ? (float *)f->at[reg->index] + col : f->row + reg->at * f->columns + col;
  }
}

/* Instructions of one phase from `first` on, for columns [col, col + n) of a row that ends at `end`; returns where the
 * next phase begins. */
static int run_strip(frame *f, int first, int64_t col, int64_t n, int64_t end) {
  const rung_strip_program *p = f->p;
  const int phase = p->instr[first].phase;
  int k = first;
  for (; k < p->instrs && p->instr[k].phase == phase; k++) {
    const rung_strip_instr *i = &p->instr[k];
    switch ((rung_strip_kind)i->kind) {
      case RUNG_STRIP_LOAD:
        load(f, i, col, n);
        break;
      case RUNG_STRIP_APPLY:
        apply(f, i, n);
        break;
      case RUNG_STRIP_ROUND:
        round_to(f, i, n);
        break;
      case RUNG_STRIP_FOLD:
        fold(f, i, col, n, end);
        break;
      case RUNG_STRIP_STORE:
        f->level->store((rung_type)i->type, f->reg[i->in[0]], f->at[i->index] + col * p->stream[i->index].bytes, n);
        break;
      case RUNG_STRIP_QUANTIZE:
        f->level->quantize(f->reg[i->in[0]], (rung_a8 *)f->at[i->index] + col / 32, n / 32);
        break;
      case RUNG_STRIP_FINISH:
        if (col + n == end) finish_row(f, i);
        break;
    }
  }
  return k;
}

/* Columns [begin, end) of the current row; whole rows where sums are taken. */
static void run_columns(frame *f, int64_t begin, int64_t end) {
  for (int first = 0, next = 0; first < f->p->instrs; first = next) {
    for (int64_t col = begin; col < end; col += RUNG_STRIP) {
      const int64_t n = end - col < RUNG_STRIP ? end - col : RUNG_STRIP;
      place(f, col);
      next = run_strip(f, first, col, n, end);
    }
  }
}

static void init_frame(frame *f, const rung_strip_program *p, const rung_args *args, float *temp, int64_t strip,
                       int64_t columns) {
  f->p = p;
  f->level = p->level;
  f->temp = temp;
  f->strip = strip;
  f->columns = columns;
  f->row = temp + p->temps * strip;
  for (int r = 0; r < p->regs; r++) {
    const rung_strip_reg *reg = &p->reg[r];
    f->reg[r] = temp + reg->at * strip;
    if (reg->place == RUNG_PLACE_CONSTANT) f->reg[r] = (float *)reg->constant; /* never written */
    if (reg->place == RUNG_PLACE_UNIFORM)
      load_spread((rung_type)reg->type, args->in[reg->index].base, 0, f->reg[r], reg->spread ? strip : 1);
  }
}

/* ---- kernel rows */

enum { GRAIN = 16384, LEAST_GRAIN = 1024 }; /* elements times instructions of a task: a microsecond or more */

/* A task is a range of items: rows, or strips of rows that need not be whole. */
static int64_t items_of(const rung_strip_program *p, const space *s) {
  return p->folds ? s->rows : s->rows * ((s->columns + RUNG_STRIP - 1) / RUNG_STRIP);
}

int64_t rung_strip_tasks(const rung_args *args) {
  const rung_operand *y = &args->out[0];
  int64_t elements = 1;
  for (int i = 0; i < y->rank; i++) elements *= y->extent[i];
  const rung_strip_program *p = args->prepared;
  const int64_t threads = args->threads, each = GRAIN / p->instrs, grain = each > LEAST_GRAIN ? each : LEAST_GRAIN;
  if (threads == 1 || elements < 2 * grain) return 1;
  space s;
  resolve(args, p, &s);
  const int64_t items = items_of(p, &s), wanted = (elements / grain + threads - 1) / threads * threads;
  const int64_t most = 4 * threads, tasks = wanted < most ? wanted : most;
  return tasks < items ? tasks : items;
}

static void run_rows(frame *f, const space *s, int64_t first, int64_t end) {
  for (int64_t row = first; row < end; row++) {
    if (row > first && s->axes == 1) {
      for (int i = 0; i < s->streams; i++) f->at[i] += s->step[0][i];
    } else {
      find_row(s, row, f->at);
    }
    run_columns(f, 0, s->columns);
  }
}

static void run_strips(frame *f, const space *s, int64_t first, int64_t end) {
  const int64_t strips = (s->columns + RUNG_STRIP - 1) / RUNG_STRIP;
  for (int64_t item = first, n; item < end; item += n) {
    const int64_t row = item / strips, strip = item - row * strips;
    n = end - item < strips - strip ? end - item : strips - strip;
    const int64_t limit = (strip + n) * RUNG_STRIP;
    find_row(s, row, f->at);
    run_columns(f, strip * RUNG_STRIP, limit < s->columns ? limit : s->columns);
  }
}

rung_status rung_strip_run(const rung_args *args, int64_t task, int thread) {
  const rung_strip_program *p = args->prepared;
  space s;
  frame f;
  resolve(args, p, &s);
  if (!s.rows || !s.columns) return RUNG_OK;
  const int64_t tasks = rung_strip_tasks(args), items = items_of(p, &s);
  const int64_t first = items * task / tasks, end = items * (task + 1) / tasks;
  float *scratch = (float *)((uint8_t *)args->scratch + (size_t)thread * args->scratch_stride);
  init_frame(&f, p, args, scratch, RUNG_STRIP, s.columns);
  f.last = s.last;
  (p->folds ? run_rows : run_strips)(&f, &s, first, end);
  return RUNG_OK;
}

/* Programs are made after their scratch is planned: what the nodes need at most. */
rung_dim rung_strip_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role) {
  (void)role;
  const rung_node *node = match->node;
  const rung_value_type *y = match->out;
  int64_t temps = match->n_in + 2, rows = node->op == &rung_op_softmax ? 1 : 0;
  if (node->op == &rung_op_fused) {
    const rung_graph *body = node->body[0];
    temps += 2 * (int64_t)(body->nodes - body->inputs);
    for (uint32_t i = 0; i < body->nodes; i++)
      if (rung_strip_folds(body->node[i].op)) rows = body->nodes - body->inputs;
  }
  const rung_dim bytes = rung_dims_constant(dims, temps * RUNG_STRIP * (int64_t)sizeof(float));
  if (!y->rank || !rows) return bytes;
  const rung_dim row = rung_dims_constant(dims, rows * (int64_t)sizeof(float));
  return rung_dims_add(dims, bytes, rung_dims_mul(dims, y->extent[y->rank - 1], row));
}

/* ---- epilogues. Their strips lie on the stack: short ones, unless there are few. */

enum { EPILOGUE_STRIP = RUNG_STRIP_TEMPS / RUNG_STRIP_EPILOGUE, FEW_TEMPS = 4 };
_Static_assert((int)EPILOGUE_STRIP == (int)RUNG_STRIP_COLUMNS, "a product's columns are one strip");

/* Where the row of an operand begins when all leading axes of the space are counted as rows. */
static uint8_t *epilogue_row(const rung_operand *o, int64_t bytes, const rung_operand *y, int64_t row) {
  uint8_t *at = o->base;
  if (o->rank < 2) return at;
  if (y->rank == 2) return o->extent[0] == 1 ? at : at + row * o->stride[0] * bytes;
  for (int axis = y->rank - 2; axis >= 0; axis--) {
    at += row % y->extent[axis] * step_of(o, bytes, axis, y->rank);
    row /= y->extent[axis];
  }
  return at;
}

enum { EPILOGUE_AHEAD = 4 }; /* rows: an operand lies where another thread, or the step before last, left it */

/* Operands and results of two axes whose rows are worth fetching ahead. */
static bool comes_from_afar(const rung_operand *o, int64_t row) {
  return o->rank == 2 && rung_type_get((rung_type)o->type)->block == 1 && row + EPILOGUE_AHEAD < o->extent[0];
}

void rung_strip_epilogue_begin(rung_strip_epilogue_run *run, const void *program, const rung_args *args) {
  const rung_strip_program *p = program;
  const rung_operand *y = &args->out[0];
  frame *f = &run->frame;
  run->args = args;
  run->strip = p->temps <= FEW_TEMPS ? RUNG_STRIP : EPILOGUE_STRIP;
  init_frame(f, p, args, run->temp, run->strip, 0);
  f->last = run->last;
  for (int i = 0; i < p->streams; i++) {
    const rung_operand *o = operand_of(args, &p->stream[i]);
    const int own = o->rank - 1;
    run->last[i] = own < 0 || o->extent[own] == 1 ? 0 : o->stride[own] * p->stream[i].bytes;
    run->step[i] = y->rank < 2 ? 0 : step_of(o, p->stream[i].bytes, y->rank - 2, y->rank);
  }
}

/* One instruction from what the caller gives, and numbers, to where the result lies: no more than pointers move. */
static void run_single(const rung_strip_epilogue_run *run, const uint8_t *at, int64_t rows, int64_t col, int64_t n,
                       float *const *value, int64_t value_row) {
  const frame *f = &run->frame;
  const rung_strip_instr *i = &f->p->instr[0];
  const float *in[3] = {NULL, NULL, NULL};
  int64_t step[3] = {0, 0, 0};
  for (int k = 0; k < 3 && i->in[k] >= 0; k++) {
    const rung_strip_reg *reg = &f->p->reg[i->in[k]];
    const bool root = reg->place == RUNG_PLACE_ROOT;
    in[k] = root ? value[reg->index] : f->reg[i->in[k]];
    if (root) step[k] = value_row;
  }
  for (int64_t r = 0; r < rows; r++, at += run->step[0]) {
    for (int k = 0; k < 3 && r + 1 < rows; k++)
      if (step[k]) f->level->fetch(in[k] + step[k], n * (int64_t)sizeof(float));
    i->fn((float *)at + col, in, n, i->attr);
    for (int k = 0; k < 3; k++)
      if (step[k]) in[k] += step[k];
  }
}

void rung_strip_epilogue_rows(rung_strip_epilogue_run *run, int64_t row, int64_t rows, int64_t col, int64_t n,
                              float *const *value, int64_t value_row) {
  frame *f = &run->frame;
  const rung_strip_program *p = f->p;
  const rung_args *args = run->args;
  const rung_operand *y = &args->out[0];
  const int64_t sheet = y->rank < 2 ? rows : y->extent[y->rank - 2]; /* rows that lie at one distance */
  if (p->is_single && n <= run->strip && (rows == 1 || row % sheet + rows <= sheet)) {
    run_single(run, epilogue_row(y, sizeof(float), y, row), rows, col, n, value, value_row);
    return;
  }
  for (int64_t r = 0; r < rows; r++) {
    const bool next = r && (row + r) % sheet;
    for (int i = 0; i < p->streams; i++) {
      const rung_operand *o = operand_of(args, &p->stream[i]);
      if (next)
        f->at[i] += run->step[i];
      else
        f->at[i] = epilogue_row(o, p->stream[i].bytes, y, row + r);
      if (comes_from_afar(o, row + r))
        f->level->fetch(f->at[i] + EPILOGUE_AHEAD * o->stride[0] * p->stream[i].bytes + col * run->last[i],
                        n * run->last[i]);
    }
    for (int64_t c = 0; c < n; c += run->strip) {
      const int64_t some = n - c < run->strip ? n - c : run->strip;
      place(f, col + c);
      for (int k = 0; k < p->roots; k++) f->reg[p->root[k]] = value[p->reg[p->root[k]].index] + r * value_row + c;
      run_strip(f, 0, col + c, some, col + n);
    }
  }
}

void rung_strip_epilogue(const void *program, const rung_args *args, int64_t row, int64_t rows, int64_t col, int64_t n,
                         float *const *value, int64_t value_row) {
  rung_strip_epilogue_run run;
  rung_strip_epilogue_begin(&run, program, args);
  rung_strip_epilogue_rows(&run, row, rows, col, n, value, value_row);
}
