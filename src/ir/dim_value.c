/* SPDX-License-Identifier: MIT
 * Numbers for dimensions: one walk in id order gives the values, or the bounds, of all of them. */
#include "ir/dim_poly.h"

static rung_status refuse(const rung_dims *dims, uint32_t id, rung_status status, const char *what, rung_error *error) {
  if (!error) return status;
  rung_text text;
  rung_text_init(&text, dims->host);
  rung_dims_print(dims, (rung_dim){id}, &text);
  rung_fail(error, status, "dimension %s %s", text.length && !text.failed ? text.data : "?", what);
  rung_text_finish(&text);
  return status;
}

static bool polynomial_value(const rung_dims *dims, const rung_dim_node *node, const int64_t *value, int64_t *out) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < node->b; i++) {
    const rung_dim_term *term = &dims->term[node->a + i];
    int64_t product = term->coefficient;
    for (uint32_t k = 0; k < term->atoms; k++) {
      if (rung_mul_overflows(product, value[dims->atom[term->atom + k]], &product)) return false;
    }
    if (rung_add_overflows(sum, product, &sum)) return false;
  }
  *out = sum;
  return sum != RUNG_UNBOUND;
}

rung_status rung_dims_evaluate(const rung_dims *dims, const int64_t *symbol, int64_t *out_value, rung_error *error) {
  uint64_t unbound = 0;
  for (uint32_t i = 0; i < dims->symbols; i++) {
    if (symbol[i] == RUNG_UNBOUND) unbound |= UINT64_C(1) << i;
  }
  out_value[0] = RUNG_UNBOUND;
  for (uint32_t id = 1; id < dims->count; id++) {
    const rung_dim_node *node = &dims->node[id];
    int64_t *out = &out_value[id];
    *out = RUNG_UNBOUND;
    if (node->symbols & unbound) continue;
    const int64_t a = node->kind >= RUNG_DIM_KIND_FLOORDIV ? out_value[node->a] : 0;
    const int64_t b = node->kind >= RUNG_DIM_KIND_FLOORDIV ? out_value[node->b] : 0;
    if ((node->kind == RUNG_DIM_KIND_FLOORDIV || node->kind == RUNG_DIM_KIND_MOD) && b <= 0) {
      return refuse(dims, id, RUNG_OUT_OF_RANGE, "divides by a number that is not above 0", error);
    }
    switch ((rung_dim_kind)node->kind) {
      case RUNG_DIM_KIND_NONE:
        break;
      case RUNG_DIM_KIND_CONSTANT:
        *out = node->value;
        break;
      case RUNG_DIM_KIND_SYMBOL:
        *out = symbol[node->symbol];
        break;
      case RUNG_DIM_KIND_POLYNOMIAL:
        if (!polynomial_value(dims, node, out_value, out)) {
          return refuse(dims, id, RUNG_OVERFLOW, "does not fit 64 bits", error);
        }
        break;
      case RUNG_DIM_KIND_FLOORDIV:
        *out = rung_floor_div(a, b);
        break;
      case RUNG_DIM_KIND_MOD:
        *out = rung_floor_mod(a, b);
        break;
      case RUNG_DIM_KIND_MIN:
        *out = a < b ? a : b;
        break;
      case RUNG_DIM_KIND_MAX:
        *out = a > b ? a : b;
        break;
    }
  }
  return RUNG_OK;
}

static rung_interval polynomial_interval(const rung_dims *dims, const rung_dim_node *node, const int64_t *lower,
                                         const int64_t *upper) {
  rung_interval sum = {0, 0};
  for (uint32_t i = 0; i < node->b; i++) {
    const rung_dim_term *term = &dims->term[node->a + i];
    rung_interval product = {term->coefficient, term->coefficient};
    for (uint32_t k = 0; k < term->atoms; k++) {
      const uint32_t atom = dims->atom[term->atom + k];
      product = rung_interval_mul(product, (rung_interval){lower[atom], upper[atom]});
    }
    sum = rung_interval_add(sum, product);
  }
  return sum;
}

static rung_interval symbol_interval(const rung_dims *dims, uint8_t index, const int64_t *lo, const int64_t *hi,
                                     const int64_t *upper) {
  const rung_symbol *symbol = &dims->symbol[index];
  rung_interval out = {lo[index], hi[index]};
  if (symbol->bound.id && upper[symbol->bound.id] < out.hi) out.hi = upper[symbol->bound.id];
  if (out.hi < out.lo) out.hi = out.lo;
  return out;
}

void rung_dims_bounds(const rung_dims *dims, const int64_t *lo, const int64_t *hi, int64_t *out_lower,
                      int64_t *out_upper) {
  out_lower[0] = out_upper[0] = 0;
  for (uint32_t id = 1; id < dims->count; id++) {
    const rung_dim_node *node = &dims->node[id];
    rung_interval out = {node->lo, node->hi}, a = out, b = out;
    if (node->kind >= RUNG_DIM_KIND_FLOORDIV) {
      a = (rung_interval){out_lower[node->a], out_upper[node->a]};
      b = (rung_interval){out_lower[node->b], out_upper[node->b]};
    }
    switch ((rung_dim_kind)node->kind) {
      case RUNG_DIM_KIND_NONE:
      case RUNG_DIM_KIND_CONSTANT:
        break;
      case RUNG_DIM_KIND_SYMBOL:
        out = symbol_interval(dims, node->symbol, lo, hi, out_upper);
        break;
      case RUNG_DIM_KIND_POLYNOMIAL:
        out = polynomial_interval(dims, node, out_lower, out_upper);
        break;
      case RUNG_DIM_KIND_FLOORDIV:
        out = rung_interval_floordiv(a, b);
        break;
      case RUNG_DIM_KIND_MOD:
        out = rung_interval_mod(a, b);
        break;
      case RUNG_DIM_KIND_MIN:
        out = (rung_interval){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
        break;
      case RUNG_DIM_KIND_MAX:
        out = (rung_interval){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
        break;
    }
    out_lower[id] = out.lo;
    out_upper[id] = out.hi;
  }
}

bool rung_dims_upper(const rung_dims *dims, const int64_t *lo, const int64_t *hi, int64_t *out_upper) {
  int64_t *lower = (int64_t *)rung_host_array(dims->host, dims->count, sizeof *lower);
  if (!lower) {
    for (uint32_t id = 0; id < dims->count; id++) out_upper[id] = INT64_MAX;
    return false;
  }
  rung_dims_bounds(dims, lo, hi, lower, out_upper);
  rung_host_free(dims->host, RUNG_MEMORY_host, lower, dims->count * sizeof *lower);
  return true;
}
