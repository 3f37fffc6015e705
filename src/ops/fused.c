/* SPDX-License-Identifier: MIT
 * fused: a body that runs as one kernel: a structured root with the row-local ops before and after it, or row-local ops
 * alone. It means what its body means. */
#include "ir/graph.h"
#include "ir/rewrite.h"
#include "ops/bodies.h"
#include "ops/structured.h"

static uint32_t result_count(const void *attrs, uint32_t n_in, uint32_t bodies, rung_graph *const *body) {
  (void)attrs, (void)n_in;
  return bodies ? body[0]->outputs : 0;
}

static rung_status infer(rung_infer *infer) {
  RUNG_TRY(rung_infer_body_inputs(infer, 0, 0, infer->n_in, 0));
  for (uint32_t r = 0; r < infer->n_out; r++) infer->out[r] = *rung_body_output_type(infer->body[0], r);
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  rung_role_elements(dims, in, n_in, out, attrs, &out_role[0]);
  out_role[1] = rung_dims_product(dims, out->extent, 0, out->rank ? out->rank - 1 : 0);
}

static rung_status reference(const rung_args *args) { return args->run_body(args->self, 0, args->in, args->out); }

static void decompose(rung_graph *g, const rung_node *node, const rung_value *in, rung_value *out) {
  if (rung_rewrite_inline(g, node->body[0], in, out)) {
    for (uint32_t r = 0; r < node->results; r++) out[r] = (rung_value){0};
  }
}

const rung_op rung_op_fused = {
    .name = "fused",
    .doc = "one kernel for a body: a structured op with the row-local ops around it, or row-local ops alone",
    .operands = (const char *const[]){"x...", NULL},
    .results_named = (const char *const[]){"y...", NULL},
    .in_hi = 255,
    .bodies = 1,
    .roles = (const char *const[]){"elements", "rows", NULL},
    .result_count = result_count,
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .no_gradient = "made by passes; differentiate before them",
    .decompose = decompose,
};
