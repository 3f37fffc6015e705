/* SPDX-License-Identifier: MIT
 * Arithmetic on polynomials and intervals outside the table of dimensions. */
#include "ir/dim_poly.h"

#include <string.h>

/* ---- intervals. Infinite stays infinite whatever is added: two opposite infinities must not cancel. */

static int64_t saturate_mul(int64_t a, int64_t b) {
  int64_t out;
  if (!rung_mul_overflows(a, b, &out) && out != INT64_MIN) return out;
  return (a < 0) == (b < 0) ? RUNG_DIM_INFINITE : -RUNG_DIM_INFINITE;
}
/* `bound` is the infinity of the side that is computed: it wins over its opposite. */
static int64_t saturate_add(int64_t a, int64_t b, int64_t bound) {
  if (a == bound || b == bound) return bound;
  if (a == -bound || b == -bound) return -bound;
  int64_t out;
  if (!rung_add_overflows(a, b, &out) && out != INT64_MIN) return out;
  return a < 0 ? -RUNG_DIM_INFINITE : RUNG_DIM_INFINITE;
}

rung_interval rung_interval_add(rung_interval a, rung_interval b) {
  return (rung_interval){saturate_add(a.lo, b.lo, -RUNG_DIM_INFINITE), saturate_add(a.hi, b.hi, RUNG_DIM_INFINITE)};
}

rung_interval rung_interval_mul(rung_interval a, rung_interval b) {
  const int64_t corner[4] = {saturate_mul(a.lo, b.lo), saturate_mul(a.lo, b.hi), saturate_mul(a.hi, b.lo),
                             saturate_mul(a.hi, b.hi)};
  rung_interval out = {corner[0], corner[0]};
  for (int i = 1; i < 4; i++) {
    if (corner[i] < out.lo) out.lo = corner[i];
    if (corner[i] > out.hi) out.hi = corner[i];
  }
  return out;
}

int64_t rung_floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}
int64_t rung_floor_mod(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r < 0 ? r + b : r;
}

rung_interval rung_interval_floordiv(rung_interval a, rung_interval b) {
  if (b.lo < 1) b.lo = 1;
  if (b.hi < b.lo) b.hi = b.lo;
  rung_interval out = {rung_floor_div(a.lo, a.lo >= 0 ? b.hi : b.lo), rung_floor_div(a.hi, a.hi >= 0 ? b.lo : b.hi)};
  if (a.lo == -RUNG_DIM_INFINITE) out.lo = -RUNG_DIM_INFINITE;
  if (a.hi == RUNG_DIM_INFINITE) out.hi = RUNG_DIM_INFINITE;
  return out;
}

rung_interval rung_interval_mod(rung_interval a, rung_interval b) {
  if (b.hi < 1) b.hi = 1;
  rung_interval out = {0, b.hi == RUNG_DIM_INFINITE ? b.hi : b.hi - 1};
  if (a.lo >= 0 && a.hi < out.hi) out.hi = a.hi;
  return out;
}

/* ---- order */

/* First place where two polynomials differ: their atoms there, or 0 and the answer. */
static int differ(const rung_dims *dims, const rung_dim_node *a, const rung_dim_node *b, uint32_t *x, uint32_t *y) {
  *x = *y = 0;
  for (uint32_t i = 0; i < a->b && i < b->b; i++) {
    const rung_dim_term *s = &dims->term[a->a + i], *t = &dims->term[b->a + i];
    if (s->atoms != t->atoms) return s->atoms > t->atoms ? -1 : 1;
    for (uint32_t k = 0; k < s->atoms; k++) {
      *x = dims->atom[s->atom + k];
      *y = dims->atom[t->atom + k];
      if (*x != *y) return 0;
    }
    *x = *y = 0;
    if (s->coefficient != t->coefficient) return s->coefficient < t->coefficient ? -1 : 1;
  }
  return a->b < b->b ? -1 : 1;
}

/* Operands that have one id are equal, so only one pair can decide at each level: a loop, no recursion. */
int rung_dims_order(const rung_dims *dims, uint32_t x, uint32_t y) {
  while (x != y) {
    const rung_dim_node *a = &dims->node[x], *b = &dims->node[y];
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->kind == RUNG_DIM_KIND_CONSTANT) return a->value < b->value ? -1 : 1;
    if (a->kind == RUNG_DIM_KIND_SYMBOL) {
      return strcmp(dims->symbol[a->symbol].name, dims->symbol[b->symbol].name) < 0 ? -1 : 1;
    }
    if (a->kind == RUNG_DIM_KIND_POLYNOMIAL) {
      const int answer = differ(dims, a, b, &x, &y);
      if (answer) return answer;
    } else {
      const bool first = a->a != b->a;
      x = first ? a->a : a->b;
      y = first ? b->a : b->b;
    }
  }
  return 0;
}

static int order_terms(const rung_dims *dims, const rung_poly_term *a, const rung_poly_term *b) {
  if (a->atoms != b->atoms) return a->atoms > b->atoms ? -1 : 1;
  for (uint32_t i = 0; i < a->atoms; i++) {
    if (a->atom[i] != b->atom[i]) return rung_dims_order(dims, a->atom[i], b->atom[i]);
  }
  return 0;
}

/* ---- building */

void rung_poly_load(const rung_dims *dims, rung_dim dim, rung_poly *out) {
  const rung_dim_node *node = &dims->node[dim.id];
  out->terms = 0;
  if (node->kind == RUNG_DIM_KIND_CONSTANT) {
    rung_poly_constant(out, node->value);
  } else if (node->kind != RUNG_DIM_KIND_POLYNOMIAL) {
    out->terms = 1;
    out->term[0].coefficient = 1;
    out->term[0].atoms = 1;
    out->term[0].atom[0] = dim.id;
  } else {
    out->terms = node->b;
    for (uint32_t i = 0; i < node->b; i++) {
      const rung_dim_term *term = &dims->term[node->a + i];
      out->term[i].coefficient = term->coefficient;
      out->term[i].atoms = term->atoms;
      for (uint32_t k = 0; k < term->atoms; k++) out->term[i].atom[k] = dims->atom[term->atom + k];
    }
  }
}

void rung_poly_copy(rung_poly *to, const rung_poly *from) {
  to->terms = from->terms;
  memcpy(to->term, from->term, from->terms * sizeof from->term[0]);
}

bool rung_poly_constant(rung_poly *out, int64_t value) {
  out->terms = value != 0;
  out->term[0].coefficient = value;
  out->term[0].atoms = 0;
  return value != INT64_MIN;
}

bool rung_poly_add_term(const rung_dims *dims, rung_poly *poly, const rung_poly_term *term) {
  uint32_t lo = 0, hi = poly->terms;
  while (lo < hi) {
    const uint32_t middle = (lo + hi) / 2;
    if (order_terms(dims, &poly->term[middle], term) < 0) {
      lo = middle + 1;
    } else {
      hi = middle;
    }
  }
  if (lo < poly->terms && order_terms(dims, &poly->term[lo], term) == 0) {
    int64_t sum;
    if (rung_add_overflows(poly->term[lo].coefficient, term->coefficient, &sum) || sum == INT64_MIN) return false;
    poly->term[lo].coefficient = sum;
    if (sum == 0) {
      poly->terms--;
      memmove(&poly->term[lo], &poly->term[lo + 1], (poly->terms - lo) * sizeof *term);
    }
    return true;
  }
  if (poly->terms == RUNG_POLY_TERMS) return false;
  memmove(&poly->term[lo + 1], &poly->term[lo], (poly->terms - lo) * sizeof *term);
  poly->term[lo] = *term;
  poly->terms++;
  return true;
}

bool rung_poly_add_constant(const rung_dims *dims, rung_poly *poly, int64_t value) {
  if (value == 0) return true;
  const rung_poly_term term = {.coefficient = value};
  return value != INT64_MIN && rung_poly_add_term(dims, poly, &term);
}

bool rung_poly_add_scaled(const rung_dims *dims, rung_poly *poly, const rung_poly *other, int64_t factor) {
  for (uint32_t i = 0; i < other->terms; i++) {
    rung_poly_term term = other->term[i];
    if (rung_mul_overflows(term.coefficient, factor, &term.coefficient) || term.coefficient == INT64_MIN) return false;
    if (term.coefficient && !rung_poly_add_term(dims, poly, &term)) return false;
  }
  return true;
}

bool rung_poly_scale(rung_poly *poly, int64_t factor) {
  if (factor == 0) poly->terms = 0;
  for (uint32_t i = 0; i < poly->terms; i++) {
    int64_t *c = &poly->term[i].coefficient;
    if (rung_mul_overflows(*c, factor, c) || *c == INT64_MIN) return false;
  }
  return true;
}

static bool multiply_terms(const rung_dims *dims, const rung_poly_term *a, const rung_poly_term *b,
                           rung_poly_term *out) {
  if (a->atoms + b->atoms > RUNG_POLY_DEGREE) return false;
  if (rung_mul_overflows(a->coefficient, b->coefficient, &out->coefficient)) return false;
  uint32_t i = 0, k = 0;
  out->atoms = 0;
  while (i < a->atoms || k < b->atoms) {
    const bool take_a = k == b->atoms || (i < a->atoms && rung_dims_order(dims, a->atom[i], b->atom[k]) <= 0);
    out->atom[out->atoms++] = take_a ? a->atom[i++] : b->atom[k++];
  }
  return out->coefficient != INT64_MIN;
}

bool rung_poly_mul(const rung_dims *dims, const rung_poly *a, const rung_poly *b, rung_poly *out) {
  out->terms = 0;
  for (uint32_t i = 0; i < a->terms; i++) {
    for (uint32_t k = 0; k < b->terms; k++) {
      rung_poly_term term;
      if (!multiply_terms(dims, &a->term[i], &b->term[k], &term)) return false;
      if (!rung_poly_add_term(dims, out, &term)) return false;
    }
  }
  return true;
}

bool rung_poly_is_constant(const rung_poly *poly, int64_t *out_value) {
  if (poly->terms > 1 || (poly->terms == 1 && poly->term[0].atoms)) return false;
  *out_value = poly->terms ? poly->term[0].coefficient : 0;
  return true;
}

rung_interval rung_poly_interval(const rung_dims *dims, const rung_poly *poly) {
  rung_interval sum = {0, 0};
  for (uint32_t i = 0; i < poly->terms; i++) {
    rung_interval product = {poly->term[i].coefficient, poly->term[i].coefficient};
    for (uint32_t k = 0; k < poly->term[i].atoms; k++) {
      const rung_dim_node *atom = &dims->node[poly->term[i].atom[k]];
      product = rung_interval_mul(product, (rung_interval){atom->lo, atom->hi});
    }
    sum = rung_interval_add(sum, product);
  }
  return sum;
}

/* ---- division */

/* a / b for single terms; false if b does not divide a. */
static bool divide_terms(const rung_poly_term *a, const rung_poly_term *b, rung_poly_term *out) {
  if (a->coefficient % b->coefficient != 0) return false;
  out->coefficient = a->coefficient / b->coefficient;
  out->atoms = 0;
  uint32_t k = 0;
  for (uint32_t i = 0; i < a->atoms; i++) {
    if (k < b->atoms && a->atom[i] == b->atom[k]) {
      k++;
    } else {
      out->atom[out->atoms++] = a->atom[i];
    }
  }
  return k == b->atoms;
}

static bool subtract_product(const rung_dims *dims, rung_poly *poly, const rung_poly_term *factor,
                             const rung_poly *divisor) {
  for (uint32_t i = 0; i < divisor->terms; i++) {
    rung_poly_term term;
    if (!multiply_terms(dims, factor, &divisor->term[i], &term)) return false;
    term.coefficient = -term.coefficient;
    if (!rung_poly_add_term(dims, poly, &term)) return false;
  }
  return true;
}

bool rung_poly_divide(const rung_dims *dims, const rung_poly *poly, const rung_poly *divisor, rung_poly *out_quotient,
                      rung_poly *out_rest) {
  rung_poly_copy(out_rest, poly);
  out_quotient->terms = 0;
  rung_poly_term factor;
  if (divisor->terms == 1) {
    for (uint32_t i = 0; i < poly->terms; i++) {
      if (!divide_terms(&poly->term[i], &divisor->term[0], &factor)) continue;
      if (!rung_poly_add_term(dims, out_quotient, &factor)) return false;
      if (!subtract_product(dims, out_rest, &factor, divisor)) return false;
    }
    return true;
  }
  bool exact = true;
  /* Each round cancels the leading term and adds lower ones; the bound is for rounds that a hostile pair could cause.
   */
  for (int rounds = 0; exact && out_rest->terms; rounds++) {
    exact = rounds < RUNG_POLY_TERMS && divide_terms(&out_rest->term[0], &divisor->term[0], &factor) &&
            rung_poly_add_term(dims, out_quotient, &factor) && subtract_product(dims, out_rest, &factor, divisor);
  }
  if (!exact) {
    rung_poly_copy(out_rest, poly);
    out_quotient->terms = 0;
  }
  return true;
}

int64_t rung_poly_gcd(const rung_poly *poly, int64_t value) {
  int64_t g = value;
  for (uint32_t i = 0; i < poly->terms && g > 1; i++) {
    int64_t a = poly->term[i].coefficient;
    if (!poly->term[i].atoms) continue;
    if (a < 0) a = -a;
    while (a) {
      const int64_t rest = g % a;
      g = a;
      a = rest;
    }
  }
  return g;
}
