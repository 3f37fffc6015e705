/* SPDX-License-Identifier: MIT
 * Dimensions as text: `8*rows + 3`, `(seq + 63) / 64`, `n % 4`, `max(a, b)`. Normal form makes the printed text a
 * function of the expression alone, and reading it gives the same id. */
#include <inttypes.h>
#include <string.h>

#include "ir/dim_poly.h"

/* ---- printing. Recursion is bounded by RUNG_DIM_DEPTH, length by RUNG_DIM_SIZE. */

static void print_in_parentheses(const rung_dims *dims, uint32_t id, rung_text *out) {
  rung_text_puts(out, "(");
  rung_dims_print(dims, (rung_dim){id}, out);
  rung_text_puts(out, ")");
}

/* A factor or a divisor: binds tighter than any operator. */
static void print_factor(const rung_dims *dims, uint32_t id, rung_text *out) {
  const rung_dim_node *node = &dims->node[id];
  const bool bare = node->kind == RUNG_DIM_KIND_SYMBOL || node->kind == RUNG_DIM_KIND_MIN ||
                    node->kind == RUNG_DIM_KIND_MAX || (node->kind == RUNG_DIM_KIND_CONSTANT && node->value >= 0);
  if (bare) {
    rung_dims_print(dims, (rung_dim){id}, out);
  } else {
    print_in_parentheses(dims, id, out);
  }
}

static void print_term(const rung_dims *dims, const rung_dim_term *term, bool first, rung_text *out) {
  const bool negative = term->coefficient < 0;
  const int64_t magnitude = negative ? -term->coefficient : term->coefficient;
  rung_text_puts(out, first ? (negative ? "-" : "") : (negative ? " - " : " + "));
  const bool coefficient = magnitude != 1 || term->atoms == 0;
  if (coefficient) rung_text_printf(out, "%" PRId64, magnitude);
  /* `n / 4 + 1` needs no parentheses, `-(n / 4)` and `m - (n / 4)` are easier to read with them. */
  if (!coefficient && term->atoms == 1 && !negative) {
    rung_dims_print(dims, (rung_dim){dims->atom[term->atom]}, out);
    return;
  }
  for (uint32_t k = 0; k < term->atoms; k++) {
    if (k || coefficient) rung_text_puts(out, "*");
    print_factor(dims, dims->atom[term->atom + k], out);
  }
}

static void print_dividend(const rung_dims *dims, uint32_t id, rung_text *out) {
  const rung_dim_node *node = &dims->node[id];
  if (node->kind == RUNG_DIM_KIND_POLYNOMIAL && node->b == 1) {
    print_term(dims, &dims->term[node->a], true, out);
  } else {
    print_factor(dims, id, out);
  }
}

void rung_dims_print(const rung_dims *dims, rung_dim dim, rung_text *out) {
  if (dim.id == 0 || dim.id >= dims->count) {
    rung_text_puts(out, "?");
    return;
  }
  const rung_dim_node *node = &dims->node[dim.id];
  switch ((rung_dim_kind)node->kind) {
    case RUNG_DIM_KIND_NONE:
      break;
    case RUNG_DIM_KIND_CONSTANT:
      rung_text_printf(out, "%" PRId64, node->value);
      break;
    case RUNG_DIM_KIND_SYMBOL:
      rung_text_puts(out, dims->symbol[node->symbol].name);
      break;
    case RUNG_DIM_KIND_POLYNOMIAL:
      for (uint32_t i = 0; i < node->b; i++) print_term(dims, &dims->term[node->a + i], i == 0, out);
      break;
    case RUNG_DIM_KIND_FLOORDIV:
    case RUNG_DIM_KIND_MOD:
      print_dividend(dims, node->a, out);
      rung_text_puts(out, node->kind == RUNG_DIM_KIND_MOD ? " % " : " / ");
      print_factor(dims, node->b, out);
      break;
    case RUNG_DIM_KIND_MIN:
    case RUNG_DIM_KIND_MAX:
      rung_text_puts(out, node->kind == RUNG_DIM_KIND_MIN ? "min(" : "max(");
      rung_dims_print(dims, (rung_dim){node->a}, out);
      rung_text_puts(out, ", ");
      rung_dims_print(dims, (rung_dim){node->b}, out);
      rung_text_puts(out, ")");
      break;
  }
}

/* ---- parsing */

/* Every operator of a printed expression costs at most two levels of parentheses. */
enum { MOST_NESTING = 2 * RUNG_DIM_DEPTH + 8 };

typedef struct reader {
  rung_dims *dims;
  const char *at, *limit;
  int depth;
} reader;

static rung_dim read_sum(reader *r);

static rung_dim refuse(reader *r, const char *reason) {
  r->dims->failure = RUNG_CORRUPT_FILE;
  r->dims->reason = reason;
  return (rung_dim){0};
}

static void skip_spaces(reader *r) {
  while (r->at < r->limit && (*r->at == ' ' || *r->at == '\t')) r->at++;
}
static bool accept(reader *r, char c) {
  skip_spaces(r);
  if (r->at == r->limit || *r->at != c) return false;
  r->at++;
  return true;
}

static rung_dim read_number(reader *r) {
  int64_t value = 0;
  for (; r->at < r->limit && *r->at >= '0' && *r->at <= '9'; r->at++) {
    if (rung_mul_overflows(value, 10, &value) || rung_add_overflows(value, *r->at - '0', &value)) {
      return refuse(r, "a number does not fit 64 bits");
    }
  }
  return rung_dims_constant(r->dims, value);
}

static rung_dim read_pair(reader *r, rung_dim_op op) {
  const rung_dim a = read_sum(r);
  if (!a.id) return a;
  if (!accept(r, ',')) return refuse(r, "expected ',' between two operands");
  const rung_dim b = read_sum(r);
  if (!b.id) return b;
  if (!accept(r, ')')) return refuse(r, "expected ')'");
  return rung_dims_combine(r->dims, op, a, b);
}

static bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static rung_dim read_name(reader *r) {
  const char *start = r->at;
  while (r->at < r->limit && in_name(*r->at)) r->at++;
  const size_t length = (size_t)(r->at - start);
  if (length == 0) return refuse(r, "expected a number, a symbol or '('");
  const bool is_min = length == 3 && memcmp(start, "min", 3) == 0, is_max = length == 3 && memcmp(start, "max", 3) == 0;
  if (is_min || is_max) {
    if (!accept(r, '(')) return refuse(r, "expected '('");
    return read_pair(r, is_min ? RUNG_DIM_MIN : RUNG_DIM_MAX);
  }
  const int index = rung_dims_find_symbol(r->dims, start, length);
  if (index >= 0) return r->dims->symbol[index].dim;
  r->at = start;
  return refuse(r, "a symbol of this name is not declared");
}

static rung_dim read_factor(reader *r) {
  bool negative = false;
  while (accept(r, '-')) negative = !negative;
  rung_dim out;
  if (++r->depth > MOST_NESTING) return refuse(r, "the expression is nested too deep");
  if (accept(r, '(')) {
    out = read_sum(r);
    if (out.id && !accept(r, ')')) return refuse(r, "expected ')'");
  } else if (r->at < r->limit && *r->at >= '0' && *r->at <= '9') {
    out = read_number(r);
  } else {
    out = read_name(r);
  }
  r->depth--;
  if (!out.id || !negative) return out;
  return rung_dims_combine(r->dims, RUNG_DIM_SUB, rung_dims_constant(r->dims, 0), out);
}

static rung_dim read_product(reader *r) {
  rung_dim out = read_factor(r);
  while (out.id) {
    rung_dim_op op;
    if (accept(r, '*')) {
      op = RUNG_DIM_MUL;
    } else if (accept(r, '/')) {
      op = RUNG_DIM_FLOORDIV;
    } else if (accept(r, '%')) {
      op = RUNG_DIM_MOD;
    } else {
      break;
    }
    const rung_dim right = read_factor(r);
    out = right.id ? rung_dims_combine(r->dims, op, out, right) : right;
  }
  return out;
}

static rung_dim read_sum(reader *r) {
  rung_dim out = read_product(r);
  while (out.id) {
    rung_dim_op op;
    if (accept(r, '+')) {
      op = RUNG_DIM_ADD;
    } else if (accept(r, '-')) {
      op = RUNG_DIM_SUB;
    } else {
      break;
    }
    const rung_dim right = read_product(r);
    out = right.id ? rung_dims_combine(r->dims, op, out, right) : right;
  }
  return out;
}

rung_dim rung_dims_parse(rung_dims *dims, const char *text, const char *limit, const char **end) {
  reader r = {.dims = dims, .at = text, .limit = limit};
  const rung_dim out = read_sum(&r);
  *end = r.at;
  return out;
}
