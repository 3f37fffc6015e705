/* SPDX-License-Identifier: MIT
 * A target for pass tests that no kernel work can change: a row for every op but two, regions of a few ops, epilogues
 * of products, one layout of 4 rows for f32 and one for q8_0. Nothing of it runs. */
#ifndef RUNG_TESTS_GOLDEN_TOY_TARGET_H
#define RUNG_TESTS_GOLDEN_TOY_TARGET_H

#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "target/target.h"

enum { TOY_ROWS = 256, TOY_F32 = 1, TOY_Q8 = 2 };

static inline uint64_t toy_panel_bytes(int64_t k) { return (uint64_t)k * 16; }
static const rung_layout toy_layouts[] = {
    {.id = TOY_F32, .name = "f32x4", .source = RUNG_TYPE_F32, .panel = 4, .panel_bytes = toy_panel_bytes},
    {.id = TOY_Q8, .name = "q8_0x4", .source = RUNG_TYPE_Q8_0, .panel = 4, .panel_bytes = toy_panel_bytes},
};
static inline const rung_layout *toy_layout_of(rung_type type) {
  return type == RUNG_TYPE_F32 ? &toy_layouts[0] : type == RUNG_TYPE_Q8_0 ? &toy_layouts[1] : NULL;
}
static inline bool toy_multiplies_a8(rung_type type) { return type == RUNG_TYPE_Q8_0; }

static inline bool toy_refuse(char *why, const char *text) {
  strcpy(why, text);
  return false;
}

static inline bool toy_is(const rung_op *op, const rung_op *const *list, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (list[i] == op) return true;
  return false;
}

/* Packed weights: products and gathers read them, nothing else. */
static inline bool toy_fits_plain(const rung_match *match, char *why) {
  const rung_op *op = match->node->op;
  const bool reads =
      op == &rung_op_matmul || op == &rung_op_grouped_matmul || op == &rung_op_gather || op == &rung_op_expert_matmul;
  for (uint32_t i = 0; i < match->n_in; i++)
    if (match->in[i]->layout && !reads) return toy_refuse(why, "reads no packed weights");
  return true;
}

static inline bool toy_fits_region(const rung_match *match, char *why) {
  static const rung_op *const local[] = {&rung_op_add,  &rung_op_mul,           &rung_op_silu, &rung_op_rms_norm,
                                         &rung_op_gelu, &rung_op_quantize_rows, &rung_op_cast};
  const rung_graph *body = match->node->body[0];
  for (uint32_t i = body->inputs; i < body->nodes; i++)
    if (!toy_is(body->node[i].op, local, RUNG_COUNT(local))) return toy_refuse(why, "computes no such op in a region");
  return true;
}

static inline bool toy_fits_epilogue(const rung_match *match, char *why) {
  static const rung_op *const local[] = {&rung_op_add,           &rung_op_mul,    &rung_op_silu,
                                         &rung_op_quantize_rows, &rung_op_matmul, &rung_op_grouped_matmul,
                                         &rung_op_cast};
  const rung_graph *body = match->node->body[0];
  for (uint32_t i = body->inputs; i < body->nodes; i++) {
    const rung_node *node = &body->node[i];
    if (!toy_is(node->op, local, RUNG_COUNT(local))) return toy_refuse(why, "computes no such op after a product");
    if (node->op == &rung_op_grouped_matmul && ((const rung_grouped_matmul_attrs *)node->attrs)->interleave != 4)
      return toy_refuse(why, "wants members in turn by 4");
  }
  return true;
}

static rung_kernel toy_kernel[TOY_ROWS];
static const rung_kernel *toy_row[TOY_ROWS];

static inline void toy_add(size_t *n, const char *name, const rung_op *op, const rung_op *root,
                           bool (*fits)(const rung_match *, char *)) {
  toy_kernel[*n] = (rung_kernel){.name = name,
                                 .op = op,
                                 .root = root,
                                 .in_type = {RUNG_ANY_TYPE},
                                 .n_in_type = 1,
                                 .in_layout = {RUNG_ANY_LAYOUT},
                                 .out_type = {RUNG_ANY_TYPE},
                                 .n_out_type = 1,
                                 .in_strides = RUNG_STRIDES_ANY,
                                 .out_strides = RUNG_STRIDES_ANY,
                                 .guard_role = -1,
                                 .fits = fits};
  toy_row[*n] = &toy_kernel[*n];
  ++*n;
}

/* mish must be decomposed; erf and what is made of it has no kernel at all. */
static inline rung_target toy_target(void) {
  size_t n = 0;
  for (size_t i = 0; i < rung_op_count() && n + 3 < TOY_ROWS; i++) {
    const rung_op *op = rung_op_at(i);
    if (op->reference && !op->bodies && op != &rung_op_mish && op != &rung_op_erf)
      toy_add(&n, op->name, op, NULL, toy_fits_plain);
  }
  toy_add(&n, "region", &rung_op_fused, NULL, toy_fits_region);
  toy_add(&n, "matmul_epilogue", &rung_op_fused, &rung_op_matmul, toy_fits_epilogue);
  toy_add(&n, "grouped_epilogue", &rung_op_fused, &rung_op_grouped_matmul, toy_fits_epilogue);
  return (rung_target){.name = "toy",
                       .kernel = toy_row,
                       .kernels = n,
                       .layout = toy_layouts,
                       .layouts = RUNG_COUNT(toy_layouts),
                       .layout_of = toy_layout_of,
                       .multiplies_a8 = toy_multiplies_a8,
                       .align = 64};
}

#endif
