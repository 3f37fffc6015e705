/* SPDX-License-Identifier: MIT
 * The constructors that bring expressions to normal form. */
#include <string.h>

#include "ir/dim_poly.h"

/* ---- sums and products */

static rung_dim linear(rung_dims *dims, rung_dim a, rung_dim b, int64_t factor) {
  rung_poly p, q;
  rung_poly_load(dims, a, &p);
  rung_poly_load(dims, b, &q);
  return rung_poly_add_scaled(dims, &p, &q, factor) ? rung_dims_intern_poly(dims, &p) : rung_dims_too_large(dims);
}

static rung_dim multiply(rung_dims *dims, rung_dim a, rung_dim b) {
  rung_poly p, q, product;
  rung_poly_load(dims, a, &p);
  rung_poly_load(dims, b, &q);
  return rung_poly_mul(dims, &p, &q, &product) ? rung_dims_intern_poly(dims, &product) : rung_dims_too_large(dims);
}

/* ---- floor division. Each rule is an identity of floor((c*q + r) / c) = q + floor(r / c). */

/* Moves what c divides from p to q; the rest of a coefficient keeps its sign so that intervals stay tight. */
static bool take_multiples(const rung_dims *dims, rung_poly *p, int64_t c, rung_poly *q) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->terms; i++) {
    rung_poly_term term = p->term[i];
    const int64_t quotient = term.atoms ? term.coefficient / c : rung_floor_div(term.coefficient, c);
    p->term[i].coefficient = term.atoms ? term.coefficient % c : rung_floor_mod(term.coefficient, c);
    if (p->term[i].coefficient) p->term[kept++] = p->term[i];
    term.coefficient = quotient;
    if (quotient && !rung_poly_add_term(dims, q, &term)) return false;
  }
  p->terms = kept;
  return true;
}

/* floor((g*p + k) / (g*c)) = floor((p + floor(k / g)) / c); the rest of k is left out. */
static void divide_content(rung_poly *p, int64_t g) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->terms; i++) {
    p->term[i].coefficient = rung_floor_div(p->term[i].coefficient, g);
    if (p->term[i].coefficient) p->term[kept++] = p->term[i];
  }
  p->terms = kept;
}

/* floor((floor(x / e) + k) / c) = floor((x + e*k) / (e*c)): replaces p and c if p has this form. */
static bool merge_nested(const rung_dims *dims, rung_poly *p, int64_t *c) {
  if (p->terms == 0 || p->terms > 2 || p->term[0].atoms != 1 || p->term[0].coefficient != 1) return false;
  if (p->terms == 2 && p->term[1].atoms) return false;
  const int64_t k = p->terms == 2 ? p->term[1].coefficient : 0;
  const rung_dim_node *inner = &dims->node[p->term[0].atom[0]];
  if (inner->kind != RUNG_DIM_KIND_FLOORDIV || dims->node[inner->b].kind != RUNG_DIM_KIND_CONSTANT) return false;
  const int64_t e = dims->node[inner->b].value;
  int64_t product, shift;
  if (rung_mul_overflows(e, *c, &product) || rung_mul_overflows(e, k, &shift)) return false;
  rung_poly merged;
  rung_poly_load(dims, (rung_dim){inner->a}, &merged);
  if (!rung_poly_add_constant(dims, &merged, shift)) return false;
  rung_poly_copy(p, &merged);
  *c = product;
  return true;
}

static rung_dim divide_constant(rung_dims *dims, rung_poly *p, int64_t c) {
  rung_poly q; /* large: its terms are written as they come */
  q.terms = 0;
  for (;;) {
    if (!take_multiples(dims, p, c, &q)) return rung_dims_too_large(dims);
    const rung_interval interval = rung_poly_interval(dims, p);
    if (rung_interval_bounded(interval) && rung_floor_div(interval.lo, c) == rung_floor_div(interval.hi, c)) {
      if (!rung_poly_add_constant(dims, &q, rung_floor_div(interval.lo, c))) return rung_dims_too_large(dims);
      return rung_dims_intern_poly(dims, &q);
    }
    const int64_t g = rung_poly_gcd(p, c);
    if (g > 1) {
      divide_content(p, g);
      c /= g;
    } else if (!merge_nested(dims, p, &c)) {
      break;
    }
  }
  const rung_dim rest = rung_dims_intern_poly(dims, p);
  const rung_dim atom = rung_dims_intern_pair(dims, RUNG_DIM_KIND_FLOORDIV, rest, rung_dims_constant(dims, c));
  if (!atom.id) return atom;
  rung_poly_load(dims, atom, p);
  return rung_poly_add_scaled(dims, &q, p, 1) ? rung_dims_intern_poly(dims, &q) : rung_dims_too_large(dims);
}

static rung_dim divide_general(rung_dims *dims, const rung_poly *p, const rung_poly *d) {
  rung_poly q, r;
  if (!rung_poly_divide(dims, p, d, &q, &r)) return rung_dims_too_large(dims);
  const rung_interval rest = rung_poly_interval(dims, &r), divisor = rung_poly_interval(dims, d);
  if (r.terms == 0 || (rest.lo >= 0 && rest.hi < divisor.lo)) return rung_dims_intern_poly(dims, &q);
  const rung_dim numerator = rung_dims_intern_poly(dims, &r), denominator = rung_dims_intern_poly(dims, d);
  const rung_dim atom = rung_dims_intern_pair(dims, RUNG_DIM_KIND_FLOORDIV, numerator, denominator);
  if (!atom.id) return atom;
  rung_poly_load(dims, atom, &r);
  return rung_poly_add_scaled(dims, &q, &r, 1) ? rung_dims_intern_poly(dims, &q) : rung_dims_too_large(dims);
}

/* ---- modulo */

/* Coefficients into [0, c). */
static void reduce_modulo(rung_poly *p, int64_t c) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->terms; i++) {
    p->term[i].coefficient = rung_floor_mod(p->term[i].coefficient, c);
    if (p->term[i].coefficient) p->term[kept++] = p->term[i];
  }
  p->terms = kept;
}

/* If p stays within one multiple of c, p mod c is a polynomial. */
static bool modulo_by_interval(const rung_dims *dims, rung_poly *p, int64_t c) {
  const rung_interval interval = rung_poly_interval(dims, p);
  if (!rung_interval_bounded(interval)) return false;
  const int64_t k = rung_floor_div(interval.lo, c);
  int64_t shift;
  if (k != rung_floor_div(interval.hi, c) || rung_mul_overflows(-k, c, &shift)) return false;
  return rung_poly_add_constant(dims, p, shift);
}

/* (g*p + k) mod (g*c) = g * ((p + floor(k/g)) mod c) + k mod g, so the answer is scale * (p mod c) + offset. */
static rung_dim modulo_constant(rung_dims *dims, rung_poly *p, int64_t c) {
  int64_t scale = 1, offset = 0;
  bool found = modulo_by_interval(dims, p, c);
  while (!found) {
    reduce_modulo(p, c);
    found = modulo_by_interval(dims, p, c);
    const int64_t g = found ? 1 : rung_poly_gcd(p, c);
    if (g == 1) break;
    const rung_poly_term *last = &p->term[p->terms - 1];
    offset += scale * (last->atoms ? 0 : last->coefficient % g);
    divide_content(p, g);
    scale *= g;
    c /= g;
  }
  if (!found) {
    const rung_dim rest = rung_dims_intern_poly(dims, p);
    const rung_dim atom = rung_dims_intern_pair(dims, RUNG_DIM_KIND_MOD, rest, rung_dims_constant(dims, c));
    if (!atom.id) return atom;
    rung_poly_load(dims, atom, p);
  }
  if (!rung_poly_scale(p, scale) || !rung_poly_add_constant(dims, p, offset)) return rung_dims_too_large(dims);
  return rung_dims_intern_poly(dims, p);
}

static rung_dim modulo_general(rung_dims *dims, const rung_poly *p, const rung_poly *d) {
  rung_poly q, r;
  if (!rung_poly_divide(dims, p, d, &q, &r)) return rung_dims_too_large(dims);
  const rung_interval rest = rung_poly_interval(dims, &r), divisor = rung_poly_interval(dims, d);
  if (r.terms == 0 || (rest.lo >= 0 && rest.hi < divisor.lo)) return rung_dims_intern_poly(dims, &r);
  const rung_dim numerator = rung_dims_intern_poly(dims, &r), denominator = rung_dims_intern_poly(dims, d);
  return rung_dims_intern_pair(dims, RUNG_DIM_KIND_MOD, numerator, denominator);
}

/* Both round towards minus infinity: floor(p / -d) = floor(-p / d), p mod -d = -(-p mod d). */
static rung_dim divide(rung_dims *dims, rung_dim_op op, rung_dim a, rung_dim b) {
  const rung_dim_node *divisor = &dims->node[b.id];
  const bool negative = divisor->hi < 0;
  if (divisor->lo <= 0 && !negative) {
    return rung_dims_fail(dims, RUNG_INVALID_ARGUMENT, "division by an expression that can be 0");
  }
  rung_poly p, d;
  rung_poly_load(dims, a, &p);
  rung_poly_load(dims, b, &d);
  if (negative && (!rung_poly_scale(&p, -1) || !rung_poly_scale(&d, -1))) return rung_dims_too_large(dims);
  int64_t c;
  const bool constant = rung_poly_is_constant(&d, &c);
  if (op == RUNG_DIM_FLOORDIV) return constant ? divide_constant(dims, &p, c) : divide_general(dims, &p, &d);
  const rung_dim rest = constant ? modulo_constant(dims, &p, c) : modulo_general(dims, &p, &d);
  if (!negative || !rest.id) return rest;
  rung_poly_load(dims, rest, &p);
  return rung_poly_scale(&p, -1) ? rung_dims_intern_poly(dims, &p) : rung_dims_too_large(dims);
}

/* ---- minimum and maximum */

enum { MOST_OPERANDS = 16 };

/* Adds the operands below `dim` if they are of the same kind, else itself: sorted, without repetition. */
static bool flatten(const rung_dims *dims, rung_dim_kind kind, uint32_t id, uint32_t *list, uint32_t *count) {
  while (dims->node[id].kind == kind) { /* chains lean to the left */
    if (!flatten(dims, kind, dims->node[id].b, list, count)) return false;
    id = dims->node[id].a;
  }
  uint32_t at = 0;
  while (at < *count && rung_dims_order(dims, list[at], id) < 0) at++;
  if (at < *count && list[at] == id) return true;
  if (*count == MOST_OPERANDS) return false;
  memmove(&list[at + 1], &list[at], (*count - at) * sizeof *list);
  list[at] = id;
  ++*count;
  return true;
}

static bool never_less(const rung_dims *dims, uint32_t a, uint32_t b) {
  return rung_dims_difference(dims, (rung_dim){a}, (rung_dim){b}).lo >= 0;
}

/* Leaves out operands that another one always beats (of two that always tie, the later). */
static uint32_t drop_beaten(const rung_dims *dims, rung_dim_kind kind, uint32_t *list, uint32_t count) {
  bool out[MOST_OPERANDS] = {false};
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < count && !out[i]; k++) {
      if (k == i || out[k]) continue;
      out[i] = kind == RUNG_DIM_KIND_MAX ? never_less(dims, list[k], list[i]) : never_less(dims, list[i], list[k]);
    }
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!out[i]) list[kept++] = list[i];
  }
  return kept;
}

static rung_dim choose(rung_dims *dims, rung_dim_kind kind, rung_dim a, rung_dim b) {
  uint32_t list[MOST_OPERANDS], count = 0;
  if (!flatten(dims, kind, a.id, list, &count) || !flatten(dims, kind, b.id, list, &count)) {
    const bool swap = rung_dims_order(dims, a.id, b.id) > 0;
    return rung_dims_intern_pair(dims, kind, swap ? b : a, swap ? a : b);
  }
  count = drop_beaten(dims, kind, list, count);
  rung_dim out = {list[0]};
  for (uint32_t i = 1; i < count && out.id; i++) out = rung_dims_intern_pair(dims, kind, out, (rung_dim){list[i]});
  return out;
}

rung_dim rung_dims_combine(rung_dims *dims, rung_dim_op op, rung_dim a, rung_dim b) {
  if (!rung_dims_has(dims, a) || !rung_dims_has(dims, b)) {
    /* A null operand comes from an earlier failure, which says more. */
    if ((!a.id || !b.id) && dims->failure) return (rung_dim){0};
    return rung_dims_fail(dims, RUNG_INVALID_ARGUMENT, "an operand is no dimension");
  }
  switch (op) {
    case RUNG_DIM_ADD:
      return linear(dims, a, b, 1);
    case RUNG_DIM_SUB:
      return linear(dims, a, b, -1);
    case RUNG_DIM_MUL:
      return multiply(dims, a, b);
    case RUNG_DIM_FLOORDIV:
    case RUNG_DIM_MOD:
      return divide(dims, op, a, b);
    case RUNG_DIM_MIN:
      return a.id == b.id ? a : choose(dims, RUNG_DIM_KIND_MIN, a, b);
    case RUNG_DIM_MAX:
      return a.id == b.id ? a : choose(dims, RUNG_DIM_KIND_MAX, a, b);
  }
  return rung_dims_fail(dims, RUNG_INVALID_ARGUMENT, "not an operation on dimensions");
}
