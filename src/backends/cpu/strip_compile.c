/* SPDX-License-Identifier: MIT
 * From ops to programs of strips: phases, registers, and which ops can be part of one. */
#include <string.h>

#include "backends/cpu/strip_program.h"
#include "ops/attrs.h"
#include "ops/elementwise.h"
#include "ops/op_table.h"
#include "ops/reference.h"
#include "ops/shape.h"

enum { MAX_INSTRS = 4 * RUNG_STRIP_REGS, MAX_VALUES = 2 * RUNG_STRIP_REGS };

/* A value of the region. An operand gets a register in every phase that reads it: reading it again is cheaper than
 * keeping a row. */
typedef struct strip_value {
  int reg, phase;
  rung_type type;
  bool narrow;                        /* not rounded to its type yet */
  bool one;                           /* one number for a row */
  int operand;                        /* -1 for computed values */
  int in_phase[2][RUNG_STRIP_PHASES]; /* operand: registers, of a strip and of one number */
} strip_value;

typedef struct builder {
  rung_arena *arena;  /* of what stays: the plan's image */
  rung_arena scratch; /* of what building needs */
  const rung_strip_level *level;
  rung_strip_program *program;
  rung_strip_instr *instr;
  strip_value *value;
  int instrs, values, slots, results;
  uint8_t result_type[RUNG_STRIP_IO];
  bool failed;
} builder;

/* Needs a finish, also when it has failed. */
static void begin(builder *b, rung_arena *arena, const rung_strip_level *level) {
  *b = (builder){.arena = arena, .level = level};
  rung_arena_init_raw(&b->scratch, arena->host); /* what is read has been written */
  b->program = rung_arena_alloc(arena, sizeof *b->program);
  b->instr = rung_arena_array(&b->scratch, MAX_INSTRS, sizeof *b->instr);
  b->value = rung_arena_array(&b->scratch, MAX_VALUES, sizeof *b->value);
  rung_strip_reg *reg = rung_arena_array(&b->scratch, RUNG_STRIP_REGS, sizeof *reg);
  b->failed = !b->program || !b->instr || !b->value || !reg;
  if (b->failed) return;
  b->program->level = level;
  b->program->reg = reg;
}

/* ---- registers, instructions, values */

static int new_reg(builder *b, rung_strip_place place, uint32_t index) {
  if (b->failed || b->program->regs == RUNG_STRIP_REGS) {
    b->failed = true;
    return 0;
  }
  b->program->reg[b->program->regs] = (rung_strip_reg){.place = (uint8_t)place, .index = (uint16_t)index};
  return b->program->regs++;
}

static rung_strip_instr *emit(builder *b, rung_strip_kind kind, int phase) {
  if (b->instrs == MAX_INSTRS || phase >= RUNG_STRIP_PHASES) b->failed = true;
  rung_strip_instr *i = &b->instr[b->failed ? 0 : b->instrs++];
  *i = (rung_strip_instr){.kind = (uint8_t)kind, .out = -1, .in = {-1, -1, -1}, .slot = -1, .phase = (uint8_t)phase};
  if (phase + 1 > b->program->phases) b->program->phases = (uint16_t)(phase + 1);
  return i;
}

static int new_value(builder *b, int reg, int phase, rung_type type) {
  if (b->failed || b->values == MAX_VALUES) {
    b->failed = true;
    return 0;
  }
  b->value[b->values] = (strip_value){.reg = reg, .phase = phase, .type = type, .operand = -1};
  return b->values++;
}

/* How many elements of an operand a row sees. */
typedef enum spread { ALONG_ROW, ONE_A_ROW, ONE_IN_ALL } spread;

static int operand_value(builder *b, uint32_t operand, rung_type type, spread lies) {
  int reg = 0;
  if (lies == ONE_IN_ALL) {
    reg = new_reg(b, RUNG_PLACE_UNIFORM, operand);
    if (!b->failed) b->program->reg[reg].type = (uint8_t)type;
  }
  const int value = new_value(b, reg, 0, type);
  if (b->failed) return 0;
  b->value[value].one = lies != ALONG_ROW;
  if (lies == ONE_IN_ALL) return value;
  b->value[value].operand = (int)operand;
  for (int p = 0; p < RUNG_STRIP_PHASES; p++) b->value[value].in_phase[0][p] = b->value[value].in_phase[1][p] = -1;
  return value;
}

static int constant_value(builder *b, float number) {
  const int reg = new_reg(b, RUNG_PLACE_CONSTANT, 0);
  float *repeated = rung_arena_array(b->arena, RUNG_STRIP, sizeof *repeated);
  if (b->failed || !repeated) {
    b->failed = true;
    return 0;
  }
  for (int i = 0; i < RUNG_STRIP; i++) repeated[i] = number;
  b->program->reg[reg].constant = repeated;
  const int value = new_value(b, reg, 0, RUNG_TYPE_F32);
  b->value[value].one = true;
  return value;
}

static bool is_narrow(rung_type type) { return type == RUNG_TYPE_F16 || type == RUNG_TYPE_BF16; }

static int operand_reg(builder *b, strip_value *v, int phase, bool one) {
  if (phase >= RUNG_STRIP_PHASES) {
    b->failed = true;
    return 0;
  }
  if (v->in_phase[one][phase] >= 0) return v->in_phase[one][phase];
  const int reg = new_reg(b, RUNG_PLACE_TEMP, 0);
  if (b->failed) return 0;
  rung_strip_instr *i = emit(b, RUNG_STRIP_LOAD, phase);
  i->out = (int16_t)reg;
  i->index = (uint16_t)v->operand;
  i->type = (uint8_t)v->type;
  i->one = one;
  return v->in_phase[one][phase] = reg;
}

/* The register that holds a value in a phase, which is not before the value's own. `one`: where its first element is
 * all that is wanted. */
static int16_t use_as(builder *b, int value, int phase, bool one) {
  strip_value *v = &b->value[value];
  if (v->operand >= 0) return (int16_t)operand_reg(b, v, phase, one);
  if (!one && b->program->reg[v->reg].place == RUNG_PLACE_UNIFORM) b->program->reg[v->reg].spread = true;
  if (v->narrow) {
    const int reg = new_reg(b, RUNG_PLACE_TEMP, 0);
    rung_strip_instr *i = emit(b, RUNG_STRIP_ROUND, v->phase);
    i->out = (int16_t)reg;
    i->in[0] = (int16_t)v->reg;
    i->type = (uint8_t)v->type;
    v->reg = reg;
    v->narrow = false;
  }
  rung_strip_reg *reg = &b->program->reg[v->reg];
  if (v->phase < phase && reg->place == RUNG_PLACE_TEMP) reg->place = RUNG_PLACE_ROW;
  return (int16_t)v->reg;
}

static int16_t use(builder *b, int value, int phase) { return use_as(b, value, phase, false); }

/* out = fn(values) in a phase; slot -1: with attributes. `last_is_one`: fn reads one element of the last value. */
static int apply_as(builder *b, rung_apply_fn *fn, const int *in, uint32_t n, int phase, int slot, const double *attr,
                    bool last_is_one) {
  int16_t reg[3] = {-1, -1, -1};
  for (uint32_t i = 0; i < n && !b->failed; i++) reg[i] = use_as(b, in[i], phase, last_is_one && i + 1 == n);
  const int out = new_reg(b, RUNG_PLACE_TEMP, 0);
  if (b->failed) return 0;
  rung_strip_instr *i = emit(b, RUNG_STRIP_APPLY, phase);
  i->fn = fn;
  i->out = (int16_t)out;
  memcpy(i->in, reg, sizeof reg);
  i->slot = (int16_t)slot;
  for (int k = 0; attr && k < 2; k++) i->attr[k] = (float)attr[k];
  return new_value(b, out, phase, RUNG_TYPE_F32);
}

static int apply(builder *b, rung_apply_fn *fn, const int *in, uint32_t n, int phase, int slot, const double *attr) {
  return apply_as(b, fn, in, n, phase, slot, attr, false);
}

/* Folds a value over the row; the result is in `slot` from the next phase on. */
static void fold(builder *b, const rung_fold_kind *kind, int in, int phase, int shown, rung_strip_finish finish,
                 double epsilon, int slot) {
  const int16_t reg = use(b, in, phase);
  if (b->failed || b->program->folds == RUNG_STRIP_FOLDS) {
    b->failed = true;
    return;
  }
  const uint16_t lanes = b->program->folds++;
  rung_strip_instr *i = emit(b, RUNG_STRIP_FOLD, phase);
  i->fold = kind;
  i->in[0] = reg;
  i->index = lanes;
  i->slot = (int16_t)shown;
  i = emit(b, RUNG_STRIP_FINISH, phase);
  i->fold = kind;
  i->index = lanes;
  i->finish = (uint8_t)finish;
  i->epsilon = epsilon;
  i->slot = (int16_t)slot;
  b->program->keeps_last = true;
}

static int new_slots(builder *b, int n) {
  if (b->slots + n > RUNG_STRIP_SLOTS) b->failed = true;
  if (b->failed) return 0;
  b->slots += n;
  return b->slots - n;
}

/* ---- ops */

static int phase_of(const builder *b, const int *in, uint32_t n) {
  int phase = 0;
  for (uint32_t i = 0; i < n; i++)
    if (b->value[in[i]].phase > phase) phase = b->value[in[i]].phase;
  return phase;
}

/* The normalised row times weight plus bias; those may come from a later phase than the sums. */
static int normalise(builder *b, rung_apply_fn *const *fn, const int *in, uint32_t n, int phase, int slot) {
  const int last = phase_of(b, in, n);
  return b->failed ? 0 : apply(b, fn[n - 1], in, n, last > phase ? last : phase, slot, NULL);
}

static int rms_norm(builder *b, const void *attrs, const int *in, uint32_t n) {
  rung_apply_fn *const fn[] = {b->level->scale, b->level->scale_by};
  const int phase = phase_of(b, in, 1), slot = new_slots(b, 1);
  fold(b, &b->level->squares, in[0], phase, -1, RUNG_FINISH_NORM, ((const rung_norm_attrs *)attrs)->epsilon, slot);
  return normalise(b, fn, in, n, phase + 1, slot);
}

static int layer_norm(builder *b, const void *attrs, const int *in, uint32_t n) {
  const int phase = phase_of(b, in, 1), mean = new_slots(b, 2);
  fold(b, &b->level->sum, in[0], phase, -1, RUNG_FINISH_MEAN, 0, mean);
  fold(b, &b->level->squares, in[0], phase + 1, mean, RUNG_FINISH_NORM, ((const rung_norm_attrs *)attrs)->epsilon,
       mean + 1);
  return normalise(b, b->level->centre, in, n, phase + 2, mean);
}

static int softmax(builder *b, const int *in) {
  const int phase = phase_of(b, in, 1), top = new_slots(b, 2);
  fold(b, &b->level->largest, in[0], phase, -1, RUNG_FINISH_PLAIN, 0, top);
  const int e = apply(b, b->level->exp_less, in, 1, phase + 1, top, NULL);
  if (b->failed) return 0;
  fold(b, &b->level->sum, e, phase + 1, -1, RUNG_FINISH_INVERSE, 0, top + 1);
  return apply(b, b->level->scale, &e, 1, phase + 2, top + 1, NULL);
}

static int log_softmax(builder *b, const int *in) {
  const int phase = phase_of(b, in, 1), top = new_slots(b, 2);
  fold(b, &b->level->largest, in[0], phase, -1, RUNG_FINISH_PLAIN, 0, top);
  fold(b, &b->level->exponentials, in[0], phase + 1, top, RUNG_FINISH_LOG, 0, top + 1);
  return apply(b, b->level->less_less, in, 1, phase + 2, top, NULL);
}

/* Operands that are of no float type are only cast. */
static int cast(builder *b, const int *in, rung_type type) {
  if (type == RUNG_TYPE_BOOL) return apply(b, b->level->to_bool, in, 1, phase_of(b, in, 1), -1, NULL);
  const strip_value *from = &b->value[in[0]];
  if (from->operand >= 0 && type == RUNG_TYPE_F32) return in[0];
  /* What is only narrower stays where it is: storing rounds it, and so does whoever reads it. */
  if (from->operand < 0 && is_narrow(type) && !from->narrow) return new_value(b, from->reg, from->phase, type);
  return apply(b, b->level->copy, in, 1, phase_of(b, in, 1), -1, NULL);
}

static int quantize(builder *b, const int *in) {
  const int phase = phase_of(b, in, 1);
  b->program->keeps_last = true;
  const int16_t reg = use(b, in[0], phase);
  return new_value(b, reg, phase, RUNG_TYPE_A8);
}

static int elementwise(builder *b, const rung_op *op, const void *attrs, const int *in, uint32_t n) {
  const int phase = phase_of(b, in, n), which = n == 2 && b->value[in[0]].one && !b->value[in[1]].one ? 0 : 1;
  if (n == 2 && b->value[in[which]].one) {
    const int turned[2] = {in[1 - which], in[which]};
    rung_apply_fn *fn = b->level->find_one(op, which);
    if (fn) return apply_as(b, fn, turned, 2, phase, -1, NULL, true);
  }
  rung_apply_fn *fn = b->level->find(op);
  if (!fn) b->failed = true;
  return b->failed ? 0 : apply(b, fn, in, n, phase, -1, op->attrs ? (const double *)attrs : NULL);
}

static int node_value(builder *b, const rung_op *op, const void *attrs, const int *in, uint32_t n, rung_type type) {
  if (b->failed) return 0;
  if (op == &rung_op_quantize_rows) return quantize(b, in);
  int value;
  if (op == &rung_op_rms_norm) {
    value = rms_norm(b, attrs, in, n);
  } else if (op == &rung_op_layer_norm) {
    value = layer_norm(b, attrs, in, n);
  } else if (op == &rung_op_softmax) {
    value = softmax(b, in);
  } else if (op == &rung_op_log_softmax) {
    value = log_softmax(b, in);
  } else if (op == &rung_op_cast) {
    value = cast(b, in, type);
    if (value == in[0]) return value;
  } else {
    value = elementwise(b, op, attrs, in, n);
  }
  if (b->failed) return 0;
  b->value[value].type = type;
  b->value[value].narrow = is_narrow(type);
  return value;
}

/* f32 goes to the result's memory at once, the rest (and a value that is two results) is stored. */
static void result(builder *b, int value, uint32_t index, rung_type type) {
  if (b->failed) return;
  b->result_type[index] = (uint8_t)type;
  if ((int)index >= b->results) b->results = (int)index + 1;
  strip_value *v = &b->value[value];
  if (type == RUNG_TYPE_A8) {
    rung_strip_instr *i = emit(b, RUNG_STRIP_QUANTIZE, v->phase);
    i->in[0] = (int16_t)v->reg;
    i->index = (uint16_t)index;
    return;
  }
  if (v->operand < 0 && type == RUNG_TYPE_F32) {
    rung_strip_reg *reg = &b->program->reg[v->reg];
    if (reg->place == RUNG_PLACE_TEMP || reg->place == RUNG_PLACE_ROW) {
      reg->place = RUNG_PLACE_OUT;
      reg->index = (uint16_t)index;
      return;
    }
  }
  const int16_t from = v->operand >= 0 ? use(b, value, 0) : (int16_t)v->reg; /* storing rounds */
  rung_strip_instr *i = emit(b, RUNG_STRIP_STORE, v->phase);
  i->in[0] = from;
  i->index = (uint16_t)index;
  i->type = (uint8_t)type;
}

/* ---- the finished program */

static int order_of(const rung_strip_instr *i) { return 2 * i->phase + (i->kind == RUNG_STRIP_FINISH); }

/* By phase, what was emitted first stays first. */
static void sort_instrs(builder *b) {
  for (int i = 1; i < b->instrs; i++) {
    const rung_strip_instr moved = b->instr[i];
    int to = i;
    for (; to > 0 && order_of(&b->instr[to - 1]) > order_of(&moved); to--) b->instr[to] = b->instr[to - 1];
    b->instr[to] = moved;
  }
}

static int readers_of(const builder *b, int reg) {
  int n = 0;
  for (int i = 0; i < b->instrs; i++)
    for (int k = 0; k < 3; k++) n += b->instr[i].in[k] == reg;
  return n;
}

/* The instruction behind `first` that can be done together with it: nothing but loads stand between, and nothing else
 * wants what lies between the two. -1: none. */
static int joins_with(const builder *b, int first, rung_apply_fn **out_fn) {
  const rung_strip_instr *a = &b->instr[first];
  if (a->kind != RUNG_STRIP_APPLY || a->slot >= 0 || a->in[2] >= 0 || b->program->reg[a->out].place != RUNG_PLACE_TEMP)
    return -1;
  int second = first + 1;
  while (second < b->instrs && b->instr[second].kind == RUNG_STRIP_LOAD && b->instr[second].phase == a->phase) second++;
  if (second == b->instrs || readers_of(b, a->out) != 1) return -1;
  const rung_strip_instr *c = &b->instr[second];
  if (c->kind != RUNG_STRIP_APPLY || c->slot >= 0 || c->phase != a->phase || c->in[0] != a->out || c->in[2] >= 0)
    return -1;
  *out_fn = b->level->join(a->fn, c->fn);
  return *out_fn ? second : -1;
}

/* Pairs of instructions become one pass over the strip where the level has a function for both. */
static void join_instrs(builder *b) {
  int n = 0;
  for (int i = 0; i < b->instrs; i++) {
    rung_apply_fn *fn;
    const int second = joins_with(b, i, &fn);
    if (second < 0) {
      b->instr[n++] = b->instr[i];
      continue;
    }
    rung_strip_instr *c = &b->instr[second];
    const int16_t other = c->in[1];
    memcpy(c->in, b->instr[i].in, sizeof c->in);
    if (other >= 0) c->in[c->in[1] >= 0 ? 2 : 1] = other;
    c->fn = fn;
  }
  b->instrs = n;
}

/* Strips of scratch for registers, each free again behind its last reader. Operands of an instruction are free before
 * its result is placed: instructions may work in place. */
static void place_regs(builder *b) {
  rung_strip_program *p = b->program;
  int last[RUNG_STRIP_REGS] = {0};
  uint16_t open[RUNG_STRIP_REGS];
  int n_open = 0;
  for (int i = 0; i < b->instrs; i++) {
    for (int k = 0; k < 3; k++)
      if (b->instr[i].in[k] >= 0) last[b->instr[i].in[k]] = i;
    if (b->instr[i].out >= 0 && last[b->instr[i].out] < i) last[b->instr[i].out] = i;
  }
  for (int r = 0; r < p->regs; r++) {
    if (p->reg[r].place == RUNG_PLACE_UNIFORM) p->reg[r].at = p->temps++;
    if (p->reg[r].place == RUNG_PLACE_ROW) p->reg[r].at = p->rows++;
  }
  for (int i = 0; i < b->instrs; i++) {
    const rung_strip_instr *in = &b->instr[i];
    for (int k = 0; k < 3; k++) {
      const int r = in->in[k];
      bool again = false;
      for (int j = 0; j < k; j++) again = again || in->in[j] == r;
      if (r >= 0 && !again && last[r] == i && p->reg[r].place == RUNG_PLACE_TEMP) open[n_open++] = p->reg[r].at;
    }
    if (in->out < 0 || p->reg[in->out].place != RUNG_PLACE_TEMP) continue;
    p->reg[in->out].at = n_open ? open[--n_open] : p->temps++;
    if (last[in->out] == i) open[n_open++] = p->reg[in->out].at;
  }
}

static rung_strip_stream stream_of(bool is_result, uint16_t index, uint8_t type) {
  return (rung_strip_stream){is_result, type, index, rung_type_get((rung_type)type)->bytes};
}

/* Operands and results become streams: each operand that is loaded once, then all results. */
static bool make_streams(builder *b) {
  rung_strip_program *p = b->program;
  rung_strip_stream stream[2 * RUNG_STRIP_IO];
  uint16_t n = 0;
  for (int i = 0; i < b->instrs; i++) {
    rung_strip_instr *in = &b->instr[i];
    if (in->kind != RUNG_STRIP_LOAD) continue;
    uint16_t at = 0;
    while (at < n && stream[at].index != in->index) at++;
    if (at == n) stream[n++] = stream_of(false, in->index, in->type);
    in->index = at;
  }
  for (int i = 0; i < b->instrs; i++)
    if (b->instr[i].kind == RUNG_STRIP_STORE || b->instr[i].kind == RUNG_STRIP_QUANTIZE)
      b->instr[i].index = (uint16_t)(b->instr[i].index + n);
  for (int r = 0; r < p->regs; r++)
    if (p->reg[r].place == RUNG_PLACE_OUT) p->reg[r].index = (uint16_t)(p->reg[r].index + n);
  for (int k = 0; k < b->results; k++) stream[n++] = stream_of(true, (uint16_t)k, b->result_type[k]);
  p->streams = n;
  p->stream = rung_arena_copy(b->arena, stream, (size_t)(n ? n : 1) * sizeof *stream);
  return p->stream != NULL;
}

static bool note_moving(builder *b) {
  uint16_t moving[RUNG_STRIP_REGS] = {0}, root[RUNG_STRIP_REGS] = {0};
  rung_strip_program *p = b->program;
  for (uint16_t r = 0; r < p->regs; r++) {
    if (p->reg[r].place == RUNG_PLACE_OUT || p->reg[r].place == RUNG_PLACE_ROW) moving[p->movings++] = r;
    if (p->reg[r].place == RUNG_PLACE_ROOT) root[p->roots++] = r;
  }
  p->moving = rung_arena_copy(b->arena, moving, (size_t)(p->movings ? p->movings : 1) * sizeof *moving);
  p->root = rung_arena_copy(b->arena, root, (size_t)(p->roots ? p->roots : 1) * sizeof *root);
  return p->moving && p->root;
}

/* What stays of a program, at its own size. */
static bool keep(builder *b) {
  sort_instrs(b);
  join_instrs(b);
  place_regs(b);
  rung_strip_program *p = b->program;
  if (!make_streams(b) || !note_moving(b)) return false;
  p->instr = rung_arena_copy(b->arena, b->instr, (size_t)(b->instrs ? b->instrs : 1) * sizeof *b->instr);
  p->reg = rung_arena_copy(b->arena, p->reg, (size_t)(p->regs ? p->regs : 1) * sizeof *p->reg);
  p->instrs = (uint16_t)b->instrs;
  const rung_strip_instr *i = p->instr;
  p->is_single = i && p->roots && p->instrs == 1 && p->streams == 1 && i->kind == RUNG_STRIP_APPLY && i->slot < 0 &&
                 p->reg && p->reg[i->out].place == RUNG_PLACE_OUT;
  if (!p->phases) p->phases = 1;
  return p->instr && p->reg;
}

static const rung_strip_program *finish(builder *b) {
  const bool good = !b->failed && keep(b);
  rung_arena_finish(&b->scratch);
  return good ? b->program : NULL;
}

/* ---- what can be part of a program */

static bool refuse(char *why, const char *text) {
  strncpy(why, text, 119);
  return false;
}

static bool is_float(rung_type type) { return type == RUNG_TYPE_F32 || is_narrow(type); }
static bool is_small(rung_type type) {
  return type == RUNG_TYPE_BOOL || type == RUNG_TYPE_I8 || type == RUNG_TYPE_U8 || type == RUNG_TYPE_I16 ||
         type == RUNG_TYPE_U16 || type == RUNG_TYPE_I32;
}
bool rung_strip_folds(const rung_op *op) {
  return op == &rung_op_rms_norm || op == &rung_op_layer_norm || op == &rung_op_softmax || op == &rung_op_log_softmax;
}
static bool is_bool_op(const rung_op *op) {
  return op == &rung_op_and || op == &rung_op_or || op == &rung_op_xor || op == &rung_op_not;
}

static bool takes(const rung_op *op, const void *attrs, const rung_value_type *const *in, uint32_t n,
                  const rung_value_type *out, char *why) {
  for (uint32_t i = 0; i < n; i++) {
    if (in[i]->layout || in[i]->kind == RUNG_VALUE_STATE_KV) return refuse(why, "an operand is packed");
    const rung_type type = in[i]->type;
    if (!is_float(type) && type != RUNG_TYPE_BOOL && !(op == &rung_op_cast && is_small(type)))
      return refuse(why, "strips compute in f32 and bool");
  }
  if (op == &rung_op_quantize_rows) return in[0]->type != RUNG_TYPE_BOOL;
  if (!is_float(out->type) && out->type != RUNG_TYPE_BOOL) return refuse(why, "strips give f32, f16, bf16 and bool");
  if (op == &rung_op_softmax || op == &rung_op_log_softmax) {
    const int64_t axis = ((const rung_axis_attrs *)attrs)->axis;
    if (rung_axis_of(axis, in[0]->rank) != in[0]->rank - 1) return refuse(why, "strips run along the last axis");
  }
  if (rung_strip_folds(op) || op == &rung_op_cast || is_bool_op(op)) return true;
  const rung_row *row = rung_row_of(op);
  if (!row || !(row->takes & RUNG_TAKES_FLOAT)) return refuse(why, "no op of strips");
  return true;
}

bool rung_strip_fits_node(const rung_match *match, char *why) {
  if (match->node->op == &rung_op_cast && match->in[0]->type == match->out->type) return refuse(why, "copies only");
  return takes(match->node->op, match->node->attrs, match->in, match->n_in, match->out, why);
}

static bool same_extents(const rung_value_type *a, const rung_value_type *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (!rung_dim_same(a->extent[i], b->extent[i])) return false;
  return true;
}

/* A constant of one element: its value. */
static bool constant_of(const rung_graph *body, const rung_node *node, float *out) {
  if (node->op != &rung_op_constant) return false;
  const rung_value_type *type = rung_graph_value_type(body, node->first_value);
  const rung_blob *data = &((const rung_constant_attrs *)node->attrs)->data;
  const rung_type_row *row = rung_type_get(type->type);
  if (!is_float(type->type) || data->bytes != row->bytes) return false;
  row->to_f32(data->data, out, 1);
  return true;
}

static bool takes_node(const rung_graph *body, const rung_node *node, char *why) {
  const rung_value_type *in[RUNG_STRIP_IO];
  float number;
  if (node->op->flags & RUNG_OP_INPUT) return true;
  if (node->op == &rung_op_constant)
    return constant_of(body, node, &number) ? true : refuse(why, "a constant of more than one element");
  if (node->n_in > RUNG_STRIP_IO) return refuse(why, "too many operands");
  for (uint32_t i = 0; i < node->n_in; i++) in[i] = rung_graph_value_type(body, node->in[i]);
  return takes(node->op, node->attrs, in, node->n_in, rung_graph_value_type(body, node->first_value), why);
}

/* Nodes from `from` on; all results have the extents of the first. */
static bool takes_nodes(const rung_graph *body, uint32_t from, bool whole_rows, char *why) {
  if (body->nodes - from > RUNG_STRIP_NODES + body->inputs) return refuse(why, "too many ops for a program of strips");
  if (body->inputs > RUNG_STRIP_IO || body->outputs > RUNG_STRIP_IO) return refuse(why, "too many operands or results");
  if (!body->outputs) return refuse(why, "has no result");
  const rung_value_type *y = rung_graph_value_type(body, body->output[0].value);
  int phases = 0;
  for (uint32_t i = from; i < body->nodes; i++) {
    const rung_node *node = &body->node[i];
    if (!takes_node(body, node, why)) return false;
    if (!rung_strip_folds(node->op)) continue;
    if (!whole_rows) return refuse(why, "an op needs the whole row");
    phases += node->op == &rung_op_rms_norm ? 1 : 2;
    const rung_value_type *x = rung_graph_value_type(body, node->in[0]);
    if (!y->rank || !x->rank || !rung_dim_same(x->extent[x->rank - 1], y->extent[y->rank - 1]))
      return refuse(why, "rows of different lengths");
  }
  if (phases >= RUNG_STRIP_PHASES) return refuse(why, "too many ops that need the whole row");
  for (uint32_t r = 0; r < body->outputs; r++)
    if (!same_extents(y, rung_graph_value_type(body, body->output[r].value)))
      return refuse(why, "results have different extents");
  return true;
}

bool rung_strip_fits_region(const rung_match *match, char *why) {
  for (uint32_t i = 0; i < match->n_in; i++)
    if (match->in[i]->layout) return refuse(why, "an operand is packed");
  return takes_nodes(match->node->body[0], 0, true, why);
}

bool rung_cpu_strip_fits(const rung_graph *body, const rung_node *root, char *why) {
  const rung_value_type *y = rung_graph_value_type(body, root->first_value);
  for (uint32_t r = 0; r < root->results; r++)
    if (!same_extents(y, rung_graph_value_type(body, root->first_value + r)))
      return refuse(why, "members of different widths");
  if (!body->outputs || !same_extents(y, rung_graph_value_type(body, body->output[0].value)))
    return refuse(why, "results and product have different extents");
  const uint32_t first = (uint32_t)(root - body->node) + 1;
  if (2 * (body->nodes - first) + body->inputs > RUNG_STRIP_EPILOGUE)
    return refuse(why, "too many ops behind a product");
  return takes_nodes(body, first, false, why);
}

/* ---- from plan and body */

/* `places`: how many of the last axes of what comes out make a row. */
static spread spread_of(const rung_dims *dims, const rung_dim *extent, int rank, int places) {
  for (int i = rank; i-- > 0;)
    if (!rung_dim_is(dims, extent[i], 1)) return rank - i > places ? ONE_A_ROW : ALONG_ROW;
  return ONE_IN_ALL;
}

/* Values of a body by graph value id. Root results, if there is a root, are the caller's. */
static const rung_strip_program *compile_body(rung_arena *arena, const rung_strip_level *level, const rung_graph *body,
                                              const rung_node *root) {
  const int places = root && root->op == &rung_op_conv ? rung_graph_value_type(body, root->first_value)->rank - 2 : 1;
  builder room, *b = &room;
  begin(b, arena, level);
  int *value = rung_arena_array(&b->scratch, body->values + 1, sizeof *value);
  b->failed |= !value;
  if (value) memset(value, 0, (body->values + 1) * sizeof *value);
  /* An epilogue is asked for by row and column: its rows stay rows, even where every operand is dense. */
  if (root && !b->failed) b->program->keeps_last = true;
  for (uint32_t i = 0; i < body->inputs && !b->failed; i++) {
    const uint32_t id = body->node[body->input[i]].first_value;
    const rung_value_type *type = rung_graph_value_type(body, id);
    value[id] = operand_value(b, i, type->type, spread_of(body->dims, type->extent, type->rank, places));
  }
  for (uint32_t i = 0; i < body->nodes && !b->failed; i++) {
    const rung_node *node = &body->node[i];
    const uint32_t id = node->first_value;
    int in[RUNG_STRIP_IO];
    float number;
    if (node->op->flags & RUNG_OP_INPUT || (root && node < root && node->op != &rung_op_constant)) continue;
    if (node == root) {
      for (uint32_t r = 0; r < node->results; r++)
        value[id + r] = new_value(b, new_reg(b, RUNG_PLACE_ROOT, r), 0, RUNG_TYPE_F32);
      continue;
    }
    if (constant_of(body, node, &number)) {
      value[id] = constant_value(b, number);
      continue;
    }
    for (uint32_t k = 0; k < node->n_in; k++) in[k] = value[node->in[k]];
    value[id] = node_value(b, node->op, node->attrs, in, node->n_in, rung_graph_value_type(body, id)->type);
  }
  for (uint32_t r = 0; r < body->outputs && !b->failed; r++)
    result(b, value[body->output[r].value], r, rung_graph_value_type(body, body->output[r].value)->type);
  return finish(b);
}

static const rung_strip_program *compile_node(const rung_cpu_prepare *in, const rung_strip_level *level) {
  const rung_step *step = in->step;
  builder room, *b = &room;
  begin(b, in->arena, level);
  int operand[RUNG_STRIP_IO];
  b->failed |= step->n_in > RUNG_STRIP_IO;
  for (uint32_t i = 0; i < step->n_in && !b->failed; i++) {
    const rung_ref *ref = &in->plan->ref[step->in + i];
    operand[i] = operand_value(b, i, (rung_type)ref->type, spread_of(in->plan->dims, ref->extent, ref->rank, 1));
  }
  const rung_type type = (rung_type)in->plan->ref[step->out].type;
  if (!b->failed) result(b, node_value(b, step->op, step->attrs, operand, step->n_in, type), 0, type);
  return finish(b);
}

static rung_status no_program(rung_error *error) {
  return rung_fail(error, RUNG_OUT_OF_MEMORY, "cpu: no memory for a program of strips");
}

rung_status rung_strip_prepare(const rung_cpu_prepare *in, const rung_strip_level *level, const void **out_prepared) {
  *out_prepared =
      in->step->op == &rung_op_fused ? compile_body(in->arena, level, in->step->body, NULL) : compile_node(in, level);
  return *out_prepared ? RUNG_OK : no_program(in->error);
}

rung_status rung_strip_compile_epilogue(rung_arena *arena, const rung_strip_level *level, const rung_graph *body,
                                        const rung_node *root, rung_error *error, rung_cpu_strip *out_strip) {
  const rung_strip_program *program = compile_body(arena, level, body, root);
  if (!program) return no_program(error);
  *out_strip = (rung_cpu_strip){rung_strip_epilogue, program};
  return RUNG_OK;
}
