/* SPDX-License-Identifier: MIT
 * Programs of strips inside: what strip_compile.c makes and strip.c runs. */
#ifndef RUNG_CPU_STRIP_PROGRAM_H
#define RUNG_CPU_STRIP_PROGRAM_H

#include "backends/cpu/strip.h"

typedef enum rung_strip_kind {
  RUNG_STRIP_LOAD,     /* out = stream `index` */
  RUNG_STRIP_APPLY,    /* out = fn(in) */
  RUNG_STRIP_ROUND,    /* out = in[0] rounded to `type` and back */
  RUNG_STRIP_FOLD,     /* lanes `index` take in[0] */
  RUNG_STRIP_STORE,    /* stream `index` = in[0] in `type` */
  RUNG_STRIP_QUANTIZE, /* stream `index` = blocks of in[0] */
  RUNG_STRIP_FINISH    /* end of a phase: slot = what lanes `index` have taken */
} rung_strip_kind;

/* What a finished fold becomes. */
typedef enum rung_strip_finish {
  RUNG_FINISH_PLAIN,
  RUNG_FINISH_MEAN,
  RUNG_FINISH_NORM, /* 1 / sqrt(mean + epsilon) */
  RUNG_FINISH_INVERSE,
  RUNG_FINISH_LOG
} rung_strip_finish;

typedef struct rung_strip_instr {
  uint8_t kind;
  uint8_t type;   /* rung_type of LOAD, ROUND, STORE */
  uint8_t finish; /* rung_strip_finish */
  bool one;       /* LOAD: one element is all that is read */
  uint8_t phase;
  uint16_t index;
  int16_t out, in[3]; /* registers, -1 for none */
  int16_t slot;       /* FINISH: where it goes; else the first slot that `value` shows, -1: attr */
  rung_apply_fn *fn;
  const rung_fold_kind *fold;
  float attr[2];
  double epsilon;
} rung_strip_instr;

/* Where a register lies. */
typedef enum rung_strip_place {
  RUNG_PLACE_TEMP,    /* strip `at` of scratch; LOAD may point it at the operand instead */
  RUNG_PLACE_ROW,     /* row `at` of scratch */
  RUNG_PLACE_UNIFORM, /* an operand of one element, in strip `at` of scratch; repeated there if `spread` */
  RUNG_PLACE_CONSTANT,
  RUNG_PLACE_ROOT, /* columns that the caller of an epilogue gives */
  RUNG_PLACE_OUT   /* a result's own memory */
} rung_strip_place;
typedef struct rung_strip_reg {
  uint8_t place;
  uint8_t type; /* UNIFORM: of the operand */
  bool spread;
  uint16_t at;
  uint16_t index; /* operand of UNIFORM, result of ROOT, stream of OUT */
  const float *constant;
} rung_strip_reg;

/* An operand that is loaded, or a result: what is walked row by row. */
typedef struct rung_strip_stream {
  bool result;
  uint8_t type;
  uint16_t index, bytes; /* of operand or result; of an element, or a block */
} rung_strip_stream;

struct rung_strip_program {
  const rung_strip_level *level;
  const rung_strip_instr *instr; /* by phase, what finishes last */
  rung_strip_reg *reg;
  const rung_strip_stream *stream; /* operands, then results */
  const uint16_t *moving;          /* registers that move from strip to strip: OUT and ROW */
  const uint16_t *root;            /* those that the caller of an epilogue gives */
  uint16_t instrs, phases, regs, temps, rows, folds, streams, movings, roots;
  bool keeps_last; /* the last axis may not be joined with others: folds, blocks */
  bool is_single;  /* one function of what an epilogue is given and of numbers, its result of f32 */
};

#endif
