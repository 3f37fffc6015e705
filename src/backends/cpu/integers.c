/* SPDX-License-Identifier: MIT
 * Elementwise ops of integers: where rows lie, and the strips of a task. */
#include "backends/cpu/integers.h"

#include <string.h>

#include "ops/elementwise.h"
#include "ops/reference.h"
#include "ops/shape.h"

enum { STREAMS = RUNG_INTEGERS_OPERANDS + 1, GRAIN = 8192 /* elements of a task */ };

/* The result, then the operands, in bytes; axes of extent 1 are left out, and axes that go on are joined. */
typedef struct space {
  int axes, streams;
  int64_t extent[RUNG_MAX_RANK], step[RUNG_MAX_RANK][STREAMS];
  const rung_operand *operand[STREAMS];
} space;

static bool goes_on(const space *s, const int64_t *step, int64_t extent) {
  for (int i = 0; i < s->streams; i++)
    if (s->step[s->axes - 1][i] != step[i] * extent) return false;
  return true;
}

static void resolve(const rung_args *args, space *s) {
  const rung_operand *y = &args->out[0];
  *s = (space){.streams = args->n_in + 1, .operand = {y}};
  for (int i = 0; i < args->n_in; i++) s->operand[i + 1] = &args->in[i];
  for (int axis = 0; axis < y->rank; axis++) {
    int64_t step[STREAMS];
    if (y->extent[axis] == 1) continue;
    for (int i = 0; i < s->streams; i++) {
      const rung_operand *o = s->operand[i];
      const int own = axis - (y->rank - o->rank);
      step[i] = own < 0 || o->extent[own] == 1 ? 0 : o->stride[own] * rung_type_get((rung_type)o->type)->bytes;
    }
    if (s->axes && goes_on(s, step, y->extent[axis])) {
      s->extent[s->axes - 1] *= y->extent[axis];
    } else {
      s->extent[s->axes++] = y->extent[axis];
    }
    memcpy(s->step[s->axes - 1], step, sizeof step);
  }
  if (!s->axes) s->extent[s->axes++] = 1;
}

static bool is_whole(rung_type type) {
  const uint32_t takes = rung_type_takes(type);
  return (takes & (RUNG_TAKES_INT | RUNG_TAKES_BOOL)) && type != RUNG_TYPE_U64 && rung_type_get(type)->block == 1;
}

bool rung_integers_fits(const rung_match *match, char *why) {
  bool whole = is_whole(match->out->type);
  for (uint32_t i = 0; i < match->n_in; i++) whole &= !match->in[i]->layout && is_whole(match->in[i]->type);
  if (whole && match->n_in <= RUNG_INTEGERS_OPERANDS) return true;
  strcpy(why, "takes integers and bool, u64 left out");
  return false;
}

static int64_t strips_of(const space *s) {
  return (s->extent[s->axes - 1] + RUNG_INTEGERS_STRIP - 1) / RUNG_INTEGERS_STRIP;
}

int64_t rung_integers_tasks(const rung_args *args) {
  space s;
  const int64_t count = rung_operand_count(&args->out[0]), most = 4 * (int64_t)args->threads;
  if (args->threads == 1 || count < 2 * GRAIN) return 1;
  resolve(args, &s);
  int64_t items = strips_of(&s), tasks = count / GRAIN < most ? count / GRAIN : most;
  for (int i = 0; i < s.axes - 1; i++) items *= s.extent[i];
  return tasks < items ? tasks : items;
}

static void run_strip(const space *s, const rung_integers_level *level, rung_integers_fn *fn, uint8_t *const *at,
                      int64_t n) {
  int64_t value[STREAMS][RUNG_INTEGERS_STRIP];
  const int64_t *const in[RUNG_INTEGERS_OPERANDS] = {value[1], s->streams > 2 ? value[2] : value[1],
                                                     s->streams > 3 ? value[3] : value[1]};
  const int64_t *step = s->step[s->axes - 1];
  for (int i = 1; i < s->streams; i++) level->load((rung_type)s->operand[i]->type, at[i], step[i], value[i], n);
  fn(value[0], in, n);
  level->store((rung_type)s->operand[0]->type, value[0], at[0], step[0], n);
}

rung_status rung_integers_run(const rung_args *args, const rung_integers_level *level, rung_integers_fn *fn,
                              int64_t task) {
  space s;
  resolve(args, &s);
  const int last = s.axes - 1;
  const int64_t tasks = rung_integers_tasks(args), strips = strips_of(&s);
  int64_t items = strips;
  for (int i = 0; i < last; i++) items *= s.extent[i];
  for (int64_t item = items * task / tasks; item < items * (task + 1) / tasks; item++) {
    const int64_t first = item % strips * RUNG_INTEGERS_STRIP, left = s.extent[last] - first;
    uint8_t *at[STREAMS];
    for (int i = 0; i < s.streams; i++) at[i] = s.operand[i]->base + first * s.step[last][i];
    int64_t row = item / strips;
    for (int axis = last; axis-- > 0; row /= s.extent[axis])
      for (int i = 0; i < s.streams; i++) at[i] += row % s.extent[axis] * s.step[axis][i];
    run_strip(&s, level, fn, at, left < RUNG_INTEGERS_STRIP ? left : RUNG_INTEGERS_STRIP);
  }
  return RUNG_OK;
}
