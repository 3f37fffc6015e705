/* SPDX-License-Identifier: MIT
 * Running programs of strips: where rows lie, which task takes which, the loop over instructions. */
#include <math.h>
#include <string.h>

#include "backends/cpu/matmul.h"
#include "backends/cpu/strip_program.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

/* ---- where rows lie. Leading axes are joined where every operand goes on at one distance; so is the last axis with
 * them unless the program keeps it. */

typedef struct space {
  int axes; /* leading ones */
  int64_t extent[RUNG_MAX_RANK];
  int64_t columns, rows;
  int64_t step[2 * RUNG_STRIP_IO][RUNG_MAX_RANK]; /* bytes; operands, then results */
  int64_t last[2 * RUNG_STRIP_IO];                /* bytes from element to element, 0: repeated */
  uint8_t *base[2 * RUNG_STRIP_IO];
  uint16_t n_in, n;
} space;

static int64_t unit_bytes(const rung_operand *o) { return rung_type_get((rung_type)o->type)->bytes; }

/* Bytes along an axis of the space, which is aligned with the operand's last axes. */
static int64_t step_of(const rung_operand *o, int axis, int rank) {
  const int own = axis - (rank - o->rank);
  return own < 0 || o->extent[own] == 1 ? 0 : o->stride[own] * unit_bytes(o);
}

static bool joins(const space *s, const int64_t *inner, int64_t inner_extent, int axis) {
  for (int i = 0; i < s->n; i++)
    if (s->step[i][axis] != inner[i] * inner_extent) return false;
  return true;
}

static void add_axis(space *s, const rung_args *args, int axis, int rank, int64_t extent) {
  const int at = s->axes;
  for (int i = 0; i < s->n; i++)
    s->step[i][at] = step_of(i < s->n_in ? &args->in[i] : &args->out[i - s->n_in], axis, rank);
  if (at > 0) {
    int64_t inner[2 * RUNG_STRIP_IO];
    for (int i = 0; i < s->n; i++) inner[i] = s->step[i][at];
    if (joins(s, inner, extent, at - 1)) {
      for (int i = 0; i < s->n; i++) s->step[i][at - 1] = inner[i];
      s->extent[at - 1] *= extent;
      return;
    }
  }
  s->extent[at] = extent;
  s->axes++;
}

static void resolve(const rung_args *args, const rung_strip_program *p, space *s) {
  const rung_operand *y = &args->out[0];
  const int rank = y->rank;
  s->axes = 0;
  s->n_in = args->n_in;
  s->n = (uint16_t)(args->n_in + args->n_out);
  s->columns = rank ? y->extent[rank - 1] : 1;
  for (int i = 0; i < s->n; i++) {
    const rung_operand *o = i < s->n_in ? &args->in[i] : &args->out[i - s->n_in];
    s->base[i] = o->base;
    s->last[i] = rank ? step_of(o, rank - 1, rank) : 0;
    if (o->type == RUNG_TYPE_A8) s->last[i] = 0;
  }
  for (int axis = 0; axis + 1 < rank; axis++)
    if (y->extent[axis] != 1) add_axis(s, args, axis, rank, y->extent[axis]);
  if (s->axes && !p->keeps_last && joins(s, s->last, s->columns, s->axes - 1)) s->columns *= s->extent[--s->axes];
  s->rows = 1;
  for (int i = 0; i < s->axes; i++) s->rows *= s->extent[i];
}

static void find_row(const space *s, int64_t row, uint8_t **out) {
  for (int i = 0; i < s->n; i++) out[i] = s->base[i];
  for (int axis = s->axes; axis-- > 0;) {
    const int64_t at = axis ? row % s->extent[axis] : row;
    row /= s->extent[axis];
    for (int i = 0; i < s->n; i++) out[i] += at * s->step[i][axis];
  }
}

/* ---- a strip */

typedef struct frame {
  const rung_strip_program *p;
  const rung_strip_level *level;
  const rung_args *args;
  const space *space;
  float *temp;   /* strips of `strip` elements */
  float *row;    /* rows of space->columns */
  int64_t strip; /* distance of temps */
  uint8_t *at[2 * RUNG_STRIP_IO];     /* of the current row */
  float *reg[RUNG_STRIP_REGS];
  float slot[RUNG_STRIP_SLOTS];
  float total[RUNG_STRIP_FOLDS];
  float lanes[RUNG_STRIP_FOLDS][RUNG_FOLD_LANES];
} frame;

static void load_spread(const rung_operand *o, const uint8_t *from, int64_t step, float *out, int64_t n) {
  const rung_type_row *type = rung_type_get((rung_type)o->type);
  type->to_f32(from, out, 1);
  if (step == 0) {
    for (int64_t i = 1; i < n; i++) out[i] = out[0];
  } else {
    for (int64_t i = 1; i < n; i++) type->to_f32(from + i * step, out + i, 1);
  }
}

static void load(frame *f, const rung_strip_instr *i, int64_t col, int64_t n) {
  const rung_operand *o = &f->args->in[i->index];
  const int64_t step = f->space->last[i->index];
  uint8_t *from = f->at[i->index] + col * step;
  float *temp = f->temp + f->p->reg[i->out].at * f->strip;
  if (step == sizeof(float) && o->type == RUNG_TYPE_F32) {
    f->reg[i->out] = (float *)from;
    return;
  }
  f->reg[i->out] = temp;
  if (step == unit_bytes(o))
    f->level->load((rung_type)o->type, from, temp, n);
  else
    load_spread(o, from, step, temp, n);
}

static void round_to(const frame *f, const rung_strip_instr *i, int64_t n) {
  uint16_t narrow[RUNG_STRIP];
  f->level->store((rung_type)i->type, f->reg[i->in[0]], narrow, n);
  f->level->load((rung_type)i->type, narrow, f->reg[i->out], n);
}

/* Results lie densely along the last axis. */
static void store(const frame *f, const rung_strip_instr *i, int64_t col, int64_t n) {
  const int to = f->space->n_in + i->index;
  const int64_t bytes = rung_type_get((rung_type)i->type)->bytes;
  f->level->store((rung_type)i->type, f->reg[i->in[0]], f->at[to] + col * bytes, n);
}

static void apply(const frame *f, const rung_strip_instr *i, int64_t n) {
  const float *in[3] = {NULL, NULL, NULL};
  for (int k = 0; k < 3 && i->in[k] >= 0; k++) in[k] = f->reg[i->in[k]];
  i->fn(f->reg[i->out], in, n, i->slot < 0 ? i->attr : f->slot + i->slot);
}

static void finish_chunk(frame *f, const rung_strip_instr *i, bool first) {
  const float now = i->fold->finish(f->lanes[i->index]);
  f->total[i->index] = first ? now : i->fold->join(f->total[i->index], now);
}

static void fold(frame *f, const rung_strip_instr *i, int64_t col, int64_t n, int64_t end) {
  float *lanes = f->lanes[i->index];
  if (col % RUNG_FOLD == 0)
    for (int k = 0; k < RUNG_FOLD_LANES; k++) lanes[k] = i->fold->start;
  i->fold->add(lanes, f->reg[i->in[0]], n, i->slot < 0 ? i->attr : f->slot + i->slot);
  if ((col + n) % RUNG_FOLD == 0 || col + n == end) finish_chunk(f, i, col / RUNG_FOLD == 0);
}

/* In double: a few numbers per row. */
static void finish_row(frame *f, const rung_strip_instr *i) {
  const int64_t n = f->space->columns;
  const double total = (double)f->total[i->index];
  double value = total;
  if (i->finish == RUNG_FINISH_MEAN) value = total / (double)n;
  if (i->finish == RUNG_FINISH_NORM) value = 1 / sqrt(total / (double)n + i->epsilon);
  if (i->finish == RUNG_FINISH_INVERSE) value = 1 / total;
  if (i->finish == RUNG_FINISH_LOG) value = log(total);
  f->slot[i->slot] = (float)value;
}

/* Registers that move with the strip. */
static void place(frame *f, int64_t col) {
  const rung_strip_program *p = f->p;
  for (int r = 0; r < p->regs; r++) {
    const rung_strip_reg *reg = &p->reg[r];
    if (reg->place == RUNG_PLACE_OUT)
      f->reg[r] = (float *)f->at[f->space->n_in + reg->index] + col;
    else if (reg->place == RUNG_PLACE_ROW)
      f->reg[r] = f->row + reg->at * f->space->columns + col;
  }
}

/* Instructions of one phase from `first` on, for columns [col, col + n) of a row that ends at `end`; returns where the
 * next phase begins. */
static int run_strip(frame *f, int first, int64_t col, int64_t n, int64_t end) {
  const rung_strip_program *p = f->p;
  int k = first;
  for (; k < p->instrs && p->instr[k].phase == p->instr[first].phase; k++) {
    const rung_strip_instr *i = &p->instr[k];
    switch ((rung_strip_kind)i->kind) {
      case RUNG_STRIP_LOAD: load(f, i, col, n); break;
      case RUNG_STRIP_APPLY: apply(f, i, n); break;
      case RUNG_STRIP_ROUND: round_to(f, i, n); break;
      case RUNG_STRIP_FOLD: fold(f, i, col, n, end); break;
      case RUNG_STRIP_STORE: store(f, i, col, n); break;
      case RUNG_STRIP_QUANTIZE:
        f->level->quantize(f->reg[i->in[0]], (rung_a8 *)f->at[f->space->n_in + i->index] + col / 32, n / 32);
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

static void init_frame(frame *f, const rung_strip_program *p, const rung_args *args, const space *s, float *temp,
                       int64_t strip) {
  f->p = p;
  f->level = p->level;
  f->args = args;
  f->space = s;
  f->temp = temp;
  f->strip = strip;
  f->row = temp + p->temps * strip;
  for (int r = 0; r < p->regs; r++) {
    const rung_strip_reg *reg = &p->reg[r];
    if (reg->place == RUNG_PLACE_TEMP) f->reg[r] = temp + reg->at * strip;
    if (reg->place == RUNG_PLACE_CONSTANT) f->reg[r] = (float *)reg->constant; /* never written */
    if (reg->place != RUNG_PLACE_UNIFORM) continue;
    f->reg[r] = temp + reg->at * strip;
    load_spread(&args->in[reg->index], args->in[reg->index].base, 0, f->reg[r], strip);
  }
}

/* ---- kernel rows */

enum { GRAIN = 16384 }; /* elements of a task: a microsecond or more */

/* A task is a range of items: rows, or strips of rows that need not be whole. */
static int64_t items_of(const rung_strip_program *p, const space *s) {
  return p->folds ? s->rows : s->rows * ((s->columns + RUNG_STRIP - 1) / RUNG_STRIP);
}

static int64_t tasks_of(const rung_args *args, const rung_strip_program *p, const space *s) {
  const int64_t items = items_of(p, s), wanted = s->rows * s->columns / GRAIN, most = 4 * (int64_t)args->threads;
  int64_t tasks = wanted < most ? wanted : most;
  if (tasks > items) tasks = items;
  return args->threads == 1 || tasks < 1 ? 1 : tasks;
}

int64_t rung_strip_tasks(const rung_args *args) {
  if (args->threads == 1) return 1;
  const rung_operand *y = &args->out[0];
  int64_t elements = 1;
  for (int i = 0; i < y->rank; i++) elements *= y->extent[i];
  if (elements < 2 * GRAIN) return 1;
  space s;
  resolve(args, args->prepared, &s);
  return tasks_of(args, args->prepared, &s);
}

rung_status rung_strip_run(const rung_args *args, int64_t task, int thread) {
  const rung_strip_program *p = args->prepared;
  space s;
  frame f;
  resolve(args, p, &s);
  if (!s.rows || !s.columns) return RUNG_OK;
  const int64_t tasks = rung_strip_tasks(args), items = items_of(p, &s);
  const int64_t first = items * task / tasks, end = items * (task + 1) / tasks;
  init_frame(&f, p, args, &s, (float *)((uint8_t *)args->scratch + (size_t)thread * args->scratch_stride), RUNG_STRIP);
  if (p->folds) {
    for (int64_t row = first; row < end; row++) {
      find_row(&s, row, f.at);
      run_columns(&f, 0, s.columns);
    }
    return RUNG_OK;
  }
  const int64_t strips = (s.columns + RUNG_STRIP - 1) / RUNG_STRIP;
  for (int64_t item = first; item < end;) {
    const int64_t row = item / strips, strip = item - row * strips;
    const int64_t n = end - item < strips - strip ? end - item : strips - strip;
    const int64_t limit = (strip + n) * RUNG_STRIP < s.columns ? (strip + n) * RUNG_STRIP : s.columns;
    find_row(&s, row, f.at);
    run_columns(&f, strip * RUNG_STRIP, limit);
    item += n;
  }
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

/* ---- epilogues. Their strips are short, and lie on the stack. */

enum { EPILOGUE_STRIP = RUNG_STRIP_COLUMNS };

void rung_strip_epilogue(const void *program, const rung_args *args, int64_t row, int64_t col, int64_t n,
                         float *const *value) {
  const rung_strip_program *p = program;
  float temp[RUNG_STRIP_EPILOGUE * EPILOGUE_STRIP];
  space s;
  frame f;
  resolve(args, p, &s);
  init_frame(&f, p, args, &s, temp, EPILOGUE_STRIP);
  find_row(&s, row, f.at);
  place(&f, col);
  for (int r = 0; r < p->regs; r++)
    if (p->reg[r].place == RUNG_PLACE_ROOT) f.reg[r] = value[p->reg[r].index];
  run_strip(&f, 0, col, n, col + n);
}
