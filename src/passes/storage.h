/* SPDX-License-Identifier: MIT
 * Inside storage: storage.c decides, storage_body.c changes what fused nodes read and give. */
#ifndef RUNG_PASSES_STORAGE_H
#define RUNG_PASSES_STORAGE_H

#include "passes/pass.h"
#include "passes/policy.h"

/* What becomes of a node. */
enum {
  RUNG_KEEP_F32,   /* as it is, on operands of f32 */
  RUNG_KEEP_WHOLE, /* the same op, narrow throughout */
  RUNG_KEEP_BODY,  /* fused: f32 inside */
  RUNG_KEEP_CAST   /* between f32 and narrow: another name for its operand */
};
enum { RUNG_WANT_NARROW = 1, RUNG_WANT_F32 = 2 }; /* how readers take a value */

typedef struct rung_keeper {
  rung_pass_env *env;
  rung_rewrite rw; /* its map: values as they are, or as f32 if somebody wants that */
  const rung_precision *policy;
  bool *exact;                             /* by value */
  uint8_t *way;                            /* by node: RUNG_KEEP_* */
  uint8_t *wants;                          /* by value: RUNG_WANT_* */
  rung_type *kept;                         /* by value of f32 */
  rung_value *narrow[RUNG_PRECISION_ENDS]; /* by value of f32: as that type; null: not there yet */
} rung_keeper;

rung_value rung_keeper_get(rung_keeper *keeper, uint32_t value, rung_type type);
rung_value rung_keeper_kept(rung_keeper *keeper, uint32_t value);

/* Could the row-local op be a fused node on narrow operands? */
rung_status rung_keeper_try_lone(rung_keeper *keeper, const rung_node *node, rung_type type, bool *out_is);
/* The fused node, or row-local op, on what is kept; *out_done false if there is no kernel. */
rung_status rung_keeper_body(rung_keeper *keeper, const rung_node *node, bool *out_done);

#endif
