/* SPDX-License-Identifier: MIT
 * rope: rotary position embedding (Su et al., "RoFormer", 2021). Pair i of a head is turned by
 * position * base^(-2i/dims) * scale / factors[i]; magnitude multiplies sine and cosine (YaRN's attention factor). */
#include <math.h>

#include "ops/build.h"
#include "ops/structured.h"

#define FIELD(field) .name = #field, .offset = offsetof(rung_rope_attrs, field)
static const char *const modes[] = {"half", "adjacent", NULL};
static const rung_attr attributes[] = {
    {FIELD(dims), .kind = RUNG_ATTR_I64, .text_default = "0", .doc = "leading elements of each head that turn; 0: all"},
    {FIELD(base), .kind = RUNG_ATTR_F64, .text_default = "10000", .doc = "of the geometric series of frequencies"},
    {FIELD(scale), .kind = RUNG_ATTR_F64, .text_default = "1", .doc = "multiplies every angle"},
    {FIELD(magnitude), .kind = RUNG_ATTR_F64, .text_default = "1", .doc = "multiplies sine and cosine"},
    {FIELD(mode), .kind = RUNG_ATTR_ENUM, .text_default = "half", .names = modes,
     .doc = "which elements pair up: half (i, i + dims/2), adjacent (2i, 2i + 1)"},
    {0}};
#undef FIELD

static rung_status infer(rung_infer *infer) {
  const rung_rope_attrs *attrs = infer->attrs;
  const rung_value_type *x = &infer->in[0];
  RUNG_TRY(rung_infer_class(infer, 0, RUNG_TAKES_FLOAT));
  RUNG_TRY(rung_infer_rank(infer, 0, 3));
  RUNG_TRY(rung_infer_index(infer, 1));
  RUNG_TRY(rung_infer_rank(infer, 1, 1));
  RUNG_TRY(rung_infer_agree(infer, x->extent[0], infer->in[1].extent[0], "rows of x and positions"));
  int64_t head, dims;
  RUNG_TRY(rung_infer_constant(infer, x->extent[2], "the last axis of x", &head));
  dims = attrs->dims ? attrs->dims : head;
  if (dims < 0 || dims > head || dims % 2) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "dims is %lld: not an even number up to the head's %lld",
                             (long long)dims, (long long)head);
  }
  if (!(attrs->base > 0) || !isfinite(attrs->base) || !isfinite(attrs->scale) || !isfinite(attrs->magnitude)) {
    return rung_infer_refuse(infer, RUNG_INVALID_ARGUMENT, "base must be positive, scale and magnitude finite");
  }
  if (infer->n_in == 3) {
    RUNG_TRY(rung_infer_class(infer, 2, RUNG_TAKES_FLOAT));
    RUNG_TRY(rung_infer_rank(infer, 2, 1));
    RUNG_TRY(rung_infer_agree(infer, infer->in[2].extent[0], rung_dims_constant(infer->dims, dims / 2),
                              "the extent of factors and dims / 2"));
  }
  infer->out[0] = rung_value_type_like(x, x->type);
  return RUNG_OK;
}

static void role_dims(rung_dims *dims, const rung_value_type *in, uint32_t n_in, const rung_value_type *out,
                      const void *attrs, rung_dim *out_role) {
  (void)dims, (void)n_in, (void)out, (void)attrs;
  out_role[0] = in[0].extent[0];
  out_role[1] = in[0].extent[1];
}

static rung_status reference(const rung_args *args) {
  const rung_rope_attrs *attrs = args->attrs;
  const rung_operand *x = &args->in[0], *positions = &args->in[1], *y = &args->out[0];
  const int64_t dims = attrs->dims ? attrs->dims : x->extent[2];
  const bool half = attrs->mode == RUNG_ROPE_HALF;
  for (int64_t row = 0; row < x->extent[0]; row++) {
    for (int64_t h = 0; h < x->extent[1]; h++) {
      for (int64_t i = 0; i < dims / 2; i++) {
        double angle =
            (double)rung_vector_at(positions, row) * pow(attrs->base, -2.0 * (double)i / (double)dims) * attrs->scale;
        if (args->n_in == 3) angle /= rung_load_f64(&args->in[2], i * args->in[2].stride[0]);
        const double cosine = cos(angle) * attrs->magnitude, sine = sin(angle) * attrs->magnitude;
        const int64_t first[3] = {row, h, half ? i : 2 * i}, second[3] = {row, h, half ? i + dims / 2 : 2 * i + 1};
        const double a = rung_load_f64(x, rung_element_offset(x, first)),
                     b = rung_load_f64(x, rung_element_offset(x, second));
        rung_store_f64(y, rung_element_offset(y, first), a * cosine - b * sine);
        rung_store_f64(y, rung_element_offset(y, second), a * sine + b * cosine);
      }
      for (int64_t i = dims; i < x->extent[2]; i++) {
        const int64_t at[3] = {row, h, i};
        rung_store_f64(y, rung_element_offset(y, at), rung_load_f64(x, rung_element_offset(x, at)));
      }
    }
  }
  return RUNG_OK;
}

/* A rotation's transpose turns the other way. */
static void gradient(rung_graph *g, const rung_node *node, const rung_value *in, const rung_value *y,
                     const rung_value *gy, rung_value *out_gx) {
  (void)y;
  rung_rope_attrs back = *(const rung_rope_attrs *)node->attrs;
  back.scale = -back.scale;
  rung_value operand[3] = {gy[0], in[1]};
  if (node->n_in == 3) operand[2] = in[2];
  out_gx[0] = rung_graph_op(g, &rung_op_rope, operand, node->n_in, &back);
}

static const rung_test_case cases[] = {{"f32[7,3,64] i32[7]{0,2000}", ""},
                                       {"f32[5,2,16] i32[5]{0,100}", "mode=adjacent"},
                                       {"f32[5,2,20] i64[5]{0,100}", "dims=8, base=500000, magnitude=1.25"},
                                       {"f32[5,2,20] i32[5]{0,100}", "dims=12, scale=0.25, mode=adjacent"},
                                       {"f64[4,2,16] i32[4]{0,4000} f32[8]{1,8}", ""},
                                       {"f16[3,1,32] i32[3]{0,40}", ""},
                                       {"f32[0,4,8] i32[0]", ""},
                                       {0}};

/* One rounding of two products and a sum; angles must be computed in double or as precisely, whatever the position. */
const rung_op rung_op_rope = {
    .name = "rope",
    .doc = "rotary positions: turns pairs of each head by an angle that grows with the position",
    .operands = (const char *const[]){"x", "positions", "factors", NULL},
    .in_lo = 2,
    .in_hi = 3,
    .results = 1,
    .flags = RUNG_OP_ROW_LOCAL | RUNG_OP_IN_PLACE,
    .attrs = attributes,
    .attrs_bytes = sizeof(rung_rope_attrs),
    .roles = (const char *const[]){"rows", "heads", NULL},
    .infer = infer,
    .role_dims = role_dims,
    .reference = reference,
    .gradient = gradient,
    .test_lo = -2,
    .test_hi = 2,
    .tests = cases,
    .tolerance = {.relative = 5e-7, .absolute = 1e-6},
};
