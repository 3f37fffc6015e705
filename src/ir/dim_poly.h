/* SPDX-License-Identifier: MIT
 * Polynomials over atoms, worked on outside the table: only results are interned, so that no intermediate of a
 * comparison or a division stays behind to be evaluated at every binding. */
#ifndef RUNG_IR_DIM_POLY_H
#define RUNG_IR_DIM_POLY_H

#include "ir/dim.h"

/* Larger expressions are refused; these also bound the time that hostile text can take. */
enum { RUNG_POLY_TERMS = 128, RUNG_POLY_DEGREE = 16, RUNG_DIM_DEPTH = 64, RUNG_DIM_SIZE = 2048 };

typedef struct rung_poly_term {
  int64_t coefficient; /* never 0, never INT64_MIN */
  uint32_t atoms;
  uint32_t atom[RUNG_POLY_DEGREE]; /* in the order of rung_dims_order, repeated for powers */
} rung_poly_term;

/* Terms by falling degree, then by their atoms: the constant comes last. This is a monomial order (graded
 * lexicographic), so division by leading terms finds every exact quotient. */
typedef struct rung_poly {
  uint32_t terms;
  rung_poly_term term[RUNG_POLY_TERMS];
} rung_poly;

/* A saturating interval: RUNG_DIM_INFINITE is "no bound above", its negative "no bound below". */
#define RUNG_DIM_INFINITE INT64_MAX
rung_interval rung_interval_add(rung_interval a, rung_interval b);
rung_interval rung_interval_mul(rung_interval a, rung_interval b);
rung_interval rung_interval_floordiv(rung_interval a, rung_interval b); /* b above 0 */
rung_interval rung_interval_mod(rung_interval a, rung_interval b);      /* b above 0 */
static inline bool rung_interval_bounded(rung_interval a) {
  return a.lo != -RUNG_DIM_INFINITE && a.hi != RUNG_DIM_INFINITE;
}

int64_t rung_floor_div(int64_t a, int64_t b); /* b above 0 */
int64_t rung_floor_mod(int64_t a, int64_t b);

/* An order by content: equal only for one id, and the same in every table whatever was made first. Symbols by name. */
int rung_dims_order(const rung_dims *dims, uint32_t a, uint32_t b);

/* Arithmetic gives false when a coefficient, the degree or the number of terms does not fit. */
void rung_poly_load(const rung_dims *dims, rung_dim dim, rung_poly *out);
void rung_poly_copy(rung_poly *to, const rung_poly *from);
bool rung_poly_constant(rung_poly *out, int64_t value);
bool rung_poly_add_term(const rung_dims *dims, rung_poly *poly, const rung_poly_term *term);
bool rung_poly_add_constant(const rung_dims *dims, rung_poly *poly, int64_t value);
bool rung_poly_add_scaled(const rung_dims *dims, rung_poly *poly, const rung_poly *other, int64_t factor);
bool rung_poly_mul(const rung_dims *dims, const rung_poly *a, const rung_poly *b, rung_poly *out);
bool rung_poly_scale(rung_poly *poly, int64_t factor);
bool rung_poly_is_constant(const rung_poly *poly, int64_t *out_value);
rung_interval rung_poly_interval(const rung_dims *dims, const rung_poly *poly);
/* poly = divisor * quotient + rest, by leading terms; for a divisor of several terms only when the rest is 0 (otherwise
 * quotient 0 and rest poly). False when something does not fit. */
bool rung_poly_divide(const rung_dims *dims, const rung_poly *poly, const rung_poly *divisor, rung_poly *out_quotient,
                      rung_poly *out_rest);
/* Greatest common divisor of `value` and the coefficients of all terms but the constant. */
int64_t rung_poly_gcd(const rung_poly *poly, int64_t value);

/* ---- the table, for those who build expressions (dim.c) */
static inline bool rung_dims_has(const rung_dims *dims, rung_dim dim) { return dim.id > 0 && dim.id < dims->count; }
rung_dim rung_dims_intern_poly(rung_dims *dims, const rung_poly *poly);
/* One of floordiv, mod, min, max as it stands. */
rung_dim rung_dims_intern_pair(rung_dims *dims, rung_dim_kind kind, rung_dim a, rung_dim b);
rung_dim rung_dims_fail(rung_dims *dims, rung_status status, const char *reason); /* {0} */
rung_dim rung_dims_too_large(rung_dims *dims);

#endif
