/* SPDX-License-Identifier: MIT
 * The table of dimensions: interning, symbols, and the constructors that bring expressions to normal form. */
#include "ir/dim.h"

#include <stdio.h>
#include <string.h>

#include "ir/dim_poly.h"

/* ---- life */

rung_dims *rung_dims_create(rung_host *host) {
  rung_dims *dims = (rung_dims *)rung_host_alloc(host, RUNG_MEMORY_host, sizeof *dims, 0);
  if (!dims) return NULL;
  dims->host = host;
  dims->references = 1;
  dims->reason = "";
  rung_arena_init(&dims->arena, host);
  if (!rung_arena_grow(&dims->arena, (void **)&dims->node, &dims->capacity, 32, sizeof *dims->node)) {
    rung_arena_finish(&dims->arena);
    rung_host_free(host, RUNG_MEMORY_host, dims, sizeof *dims);
    return NULL;
  }
  dims->count = 1; /* the null dimension */
  rung_host_retain(host);
  return dims;
}

void rung_dims_retain(rung_dims *dims) { dims->references++; }

void rung_dims_release(rung_dims *dims) {
  if (!dims || --dims->references) return;
  rung_host *host = dims->host;
  rung_arena_finish(&dims->arena);
  rung_host_free(host, RUNG_MEMORY_host, dims, sizeof *dims);
  rung_host_release(host);
}

static rung_dim fail(rung_dims *dims, rung_status status, const char *reason) {
  dims->failure = status;
  dims->reason = reason;
  return (rung_dim){0};
}
static rung_dim no_memory(rung_dims *dims) { return fail(dims, RUNG_OUT_OF_MEMORY, "out of memory"); }
static rung_dim too_large(rung_dims *dims) {
  return fail(dims, RUNG_OVERFLOW, "the expression is too large or a constant in it overflows");
}

static bool valid(const rung_dims *dims, rung_dim dim) { return dim.id > 0 && dim.id < dims->count; }

/* ---- interning */

static uint64_t mix(uint64_t h, uint64_t x) {
  h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
  return h ^ h >> 29;
}

static uint64_t hash_node(const rung_dims *dims, const rung_dim_node *node) {
  uint64_t h = mix(node->kind, (uint64_t)node->value);
  if (node->kind == RUNG_DIM_KIND_SYMBOL) return mix(h, node->symbol);
  if (node->kind != RUNG_DIM_KIND_POLYNOMIAL) return mix(mix(h, node->a), node->b);
  for (uint32_t i = 0; i < node->b; i++) {
    const rung_dim_term *term = &dims->term[node->a + i];
    h = mix(h, (uint64_t)term->coefficient);
    for (uint32_t k = 0; k < term->atoms; k++) h = mix(h, dims->atom[term->atom + k]);
  }
  return h;
}

static uint64_t hash_poly(const rung_poly *poly) {
  uint64_t h = mix(RUNG_DIM_KIND_POLYNOMIAL, 0);
  for (uint32_t i = 0; i < poly->terms; i++) {
    h = mix(h, (uint64_t)poly->term[i].coefficient);
    for (uint32_t k = 0; k < poly->term[i].atoms; k++) h = mix(h, poly->term[i].atom[k]);
  }
  return h;
}

static bool same_poly(const rung_dims *dims, const rung_dim_node *node, const rung_poly *poly) {
  if (node->kind != RUNG_DIM_KIND_POLYNOMIAL || node->b != poly->terms) return false;
  for (uint32_t i = 0; i < node->b; i++) {
    const rung_dim_term *a = &dims->term[node->a + i];
    const rung_poly_term *b = &poly->term[i];
    if (a->coefficient != b->coefficient || a->atoms != b->atoms) return false;
    if (memcmp(&dims->atom[a->atom], b->atom, a->atoms * sizeof b->atom[0]) != 0) return false;
  }
  return true;
}

static bool same_plain(const rung_dim_node *x, const rung_dim_node *y) {
  return x->kind == y->kind && x->value == y->value && x->symbol == y->symbol && x->a == y->a && x->b == y->b;
}

/* The table has a power of two of places and stays at most half full. */
static bool rehash(rung_dims *dims) {
  if (dims->table_size >= dims->count * 2 + 2) return true;
  const uint32_t size = dims->table_size ? dims->table_size * 2 : 64;
  uint32_t *table = (uint32_t *)rung_arena_array(&dims->arena, size, sizeof *table);
  if (!table) return false;
  for (uint32_t id = 1; id < dims->count; id++) {
    uint64_t place = hash_node(dims, &dims->node[id]) & (size - 1);
    while (table[place]) place = (place + 1) & (size - 1);
    table[place] = id;
  }
  dims->table = table;
  dims->table_size = size;
  return true;
}

/* The id of a node (poly NULL) or polynomial, or the free place for it. */
static uint32_t look_up(const rung_dims *dims, const rung_dim_node *node, const rung_poly *poly, uint64_t hash,
                        uint64_t *out_place) {
  uint64_t place = hash & (dims->table_size - 1);
  for (; dims->table[place]; place = (place + 1) & (dims->table_size - 1)) {
    const rung_dim_node *there = &dims->node[dims->table[place]];
    if (poly ? same_poly(dims, there, poly) : same_plain(there, node)) return dims->table[place];
  }
  *out_place = place;
  return 0;
}

static rung_dim add_node(rung_dims *dims, const rung_dim_node *node, uint64_t place) {
  if (dims->count >= UINT32_MAX / 4) return too_large(dims);
  if (!rung_arena_grow(&dims->arena, (void **)&dims->node, &dims->capacity, dims->count + 1, sizeof *node)) {
    return no_memory(dims);
  }
  dims->node[dims->count] = *node;
  dims->table[place] = dims->count;
  return (rung_dim){dims->count++};
}

/* Constants, symbols and pairs. */
static rung_dim intern_plain(rung_dims *dims, const rung_dim_node *node) {
  if (!rehash(dims)) return no_memory(dims);
  uint64_t place = 0;
  const uint32_t id = look_up(dims, node, NULL, hash_node(dims, node), &place);
  return id ? (rung_dim){id} : add_node(dims, node, place);
}

static bool measure(rung_dims *dims, const rung_poly *poly, rung_dim_node *node) {
  uint32_t depth = 0, size = 0;
  for (uint32_t i = 0; i < poly->terms; i++) {
    size++;
    for (uint32_t k = 0; k < poly->term[i].atoms; k++) {
      const rung_dim_node *atom = &dims->node[poly->term[i].atom[k]];
      size += atom->size;
      if (atom->depth > depth) depth = atom->depth;
      node->symbols |= atom->symbols;
    }
  }
  node->depth = (uint16_t)(depth + 1);
  node->size = (uint16_t)size;
  return depth < RUNG_DIM_DEPTH && size <= RUNG_DIM_SIZE;
}

static rung_dim intern_poly(rung_dims *dims, const rung_poly *poly) {
  int64_t value;
  if (rung_poly_is_constant(poly, &value)) return rung_dims_constant(dims, value);
  if (poly->terms == 1 && poly->term[0].atoms == 1 && poly->term[0].coefficient == 1) {
    return (rung_dim){poly->term[0].atom[0]};
  }
  if (!rehash(dims)) return no_memory(dims);
  uint64_t place = 0;
  const uint32_t id = look_up(dims, NULL, poly, hash_poly(poly), &place);
  if (id) return (rung_dim){id};
  uint32_t atoms = 0;
  for (uint32_t i = 0; i < poly->terms; i++) atoms += poly->term[i].atoms;
  const rung_interval interval = rung_poly_interval(dims, poly);
  rung_dim_node node = {
      .kind = RUNG_DIM_KIND_POLYNOMIAL, .a = dims->terms, .b = poly->terms, .lo = interval.lo, .hi = interval.hi};
  if (!measure(dims, poly, &node)) return too_large(dims);
  if (!rung_arena_grow(&dims->arena, (void **)&dims->term, &dims->term_capacity, dims->terms + poly->terms,
                       sizeof *dims->term) ||
      !rung_arena_grow(&dims->arena, (void **)&dims->atom, &dims->atom_capacity, dims->atoms + atoms,
                       sizeof *dims->atom)) {
    return no_memory(dims);
  }
  uint32_t next = dims->atoms;
  for (uint32_t i = 0; i < poly->terms; i++) {
    const rung_poly_term *term = &poly->term[i];
    dims->term[dims->terms + i] = (rung_dim_term){term->coefficient, next, term->atoms};
    memcpy(&dims->atom[next], term->atom, term->atoms * sizeof term->atom[0]);
    next += term->atoms;
  }
  const rung_dim dim = add_node(dims, &node, place);
  if (dim.id) {
    dims->terms += poly->terms;
    dims->atoms = next;
  }
  return dim;
}

/* One of floordiv, mod, min, max as it stands. */
static rung_dim intern_pair(rung_dims *dims, rung_dim_kind kind, rung_dim a, rung_dim b) {
  if (!a.id || !b.id) return (rung_dim){0};
  const rung_dim_node *x = &dims->node[a.id], *y = &dims->node[b.id];
  const rung_interval p = {x->lo, x->hi}, q = {y->lo, y->hi};
  rung_interval out = {p.lo < q.lo ? p.lo : q.lo, p.hi < q.hi ? p.hi : q.hi};
  if (kind == RUNG_DIM_KIND_MAX) out = (rung_interval){p.lo > q.lo ? p.lo : q.lo, p.hi > q.hi ? p.hi : q.hi};
  if (kind == RUNG_DIM_KIND_FLOORDIV) out = rung_interval_floordiv(p, q);
  if (kind == RUNG_DIM_KIND_MOD) out = rung_interval_mod(p, q);
  if (out.lo == out.hi && rung_interval_bounded(out)) return rung_dims_constant(dims, out.lo);
  const uint32_t depth = x->depth > y->depth ? x->depth : y->depth, size = (uint32_t)x->size + y->size + 1;
  if (depth >= RUNG_DIM_DEPTH || size > RUNG_DIM_SIZE) return too_large(dims);
  const rung_dim_node node = {.kind = (uint8_t)kind,
                              .a = a.id,
                              .b = b.id,
                              .lo = out.lo,
                              .hi = out.hi,
                              .symbols = x->symbols | y->symbols,
                              .depth = (uint16_t)(depth + 1),
                              .size = (uint16_t)size};
  return intern_plain(dims, &node);
}

/* ---- constants and symbols */

rung_dim rung_dims_constant(rung_dims *dims, int64_t value) {
  if (value == INT64_MIN) return too_large(dims);
  const rung_dim_node node = {.kind = RUNG_DIM_KIND_CONSTANT, .value = value, .lo = value, .hi = value, .size = 1};
  return intern_plain(dims, &node);
}

static bool name_is_valid(const char *name) {
  size_t n = 0;
  for (; name[n]; n++) {
    const char c = name[n];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (n == 0 || !((c >= '0' && c <= '9') || c == '.'))) return false;
    if (n >= 63) return false;
  }
  return n > 0 && strcmp(name, "min") != 0 && strcmp(name, "max") != 0;
}

int rung_dims_find_symbol(const rung_dims *dims, const char *name, size_t length) {
  for (uint32_t i = 0; i < dims->symbols; i++) {
    if (strlen(dims->symbol[i].name) == length && memcmp(dims->symbol[i].name, name, length) == 0) return (int)i;
  }
  return -1;
}

static rung_dim add_symbol(rung_dims *dims, const char *name, int64_t lo, int64_t hi, bool made, rung_dim bound) {
  if (dims->symbols == RUNG_MAX_SYMBOLS) return fail(dims, RUNG_OUT_OF_RANGE, "more than 64 symbols");
  const uint32_t index = dims->symbols;
  const char *copy = rung_arena_text(&dims->arena, name, strlen(name));
  if (!copy) return no_memory(dims);
  const rung_dim_node node = {.kind = RUNG_DIM_KIND_SYMBOL,
                              .symbol = (uint8_t)index,
                              .lo = lo,
                              .hi = hi,
                              .symbols = UINT64_C(1) << index,
                              .size = 1};
  const rung_dim dim = intern_plain(dims, &node);
  if (!dim.id) return dim;
  dims->symbol[index] = (rung_symbol){.name = copy, .lo = lo, .hi = hi, .dim = dim, .bound = bound, .made = made};
  dims->symbols++;
  return dim;
}

rung_dim rung_dims_symbol(rung_dims *dims, const char *name, int64_t lo, int64_t hi) {
  if (!name || !name_is_valid(name)) return fail(dims, RUNG_INVALID_ARGUMENT, "a symbol's name must be an identifier");
  if (lo < 0 || hi < lo) return fail(dims, RUNG_OUT_OF_RANGE, "a symbol's range must have 0 <= lo <= hi");
  const int index = rung_dims_find_symbol(dims, name, strlen(name));
  if (index < 0) return add_symbol(dims, name, lo, hi, false, (rung_dim){0});
  const rung_symbol *there = &dims->symbol[index];
  if (there->made || there->lo != lo || there->hi != hi) {
    return fail(dims, RUNG_INVALID_ARGUMENT, "a symbol of this name has another range");
  }
  return there->dim;
}

rung_dim rung_dims_make_symbol(rung_dims *dims, const char *name, rung_dim bound) {
  if (bound.id && !valid(dims, bound)) return fail(dims, RUNG_INVALID_ARGUMENT, "a symbol's bound is no dimension");
  int64_t hi = bound.id ? dims->node[bound.id].hi : RUNG_DIM_INFINITE;
  if (hi < 0) hi = 0;
  char fresh[24];
  if (!name || !name[0]) {
    uint32_t n = dims->symbols;
    do {
      snprintf(fresh, sizeof fresh, "s%u", n++);
    } while (rung_dims_find_symbol(dims, fresh, strlen(fresh)) >= 0);
    name = fresh;
  } else if (!name_is_valid(name)) {
    return fail(dims, RUNG_INVALID_ARGUMENT, "a symbol's name must be an identifier");
  } else if (rung_dims_find_symbol(dims, name, strlen(name)) >= 0) {
    return fail(dims, RUNG_INVALID_ARGUMENT, "a symbol of this name exists");
  }
  return add_symbol(dims, name, 0, hi, true, bound);
}

/* ---- sums and products */

static rung_dim linear(rung_dims *dims, rung_dim a, rung_dim b, int64_t factor) {
  rung_poly p, q;
  rung_poly_load(dims, a, &p);
  rung_poly_load(dims, b, &q);
  return rung_poly_add_scaled(dims, &p, &q, factor) ? intern_poly(dims, &p) : too_large(dims);
}

static rung_dim multiply(rung_dims *dims, rung_dim a, rung_dim b) {
  rung_poly p, q, product;
  rung_poly_load(dims, a, &p);
  rung_poly_load(dims, b, &q);
  return rung_poly_mul(dims, &p, &q, &product) ? intern_poly(dims, &product) : too_large(dims);
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
  rung_poly q = {.terms = 0};
  for (;;) {
    if (!take_multiples(dims, p, c, &q)) return too_large(dims);
    const rung_interval interval = rung_poly_interval(dims, p);
    if (rung_interval_bounded(interval) && rung_floor_div(interval.lo, c) == rung_floor_div(interval.hi, c)) {
      if (!rung_poly_add_constant(dims, &q, rung_floor_div(interval.lo, c))) return too_large(dims);
      return intern_poly(dims, &q);
    }
    const int64_t g = rung_poly_gcd(p, c);
    if (g > 1) {
      divide_content(p, g);
      c /= g;
    } else if (!merge_nested(dims, p, &c)) {
      break;
    }
  }
  const rung_dim rest = intern_poly(dims, p);
  const rung_dim atom = intern_pair(dims, RUNG_DIM_KIND_FLOORDIV, rest, rung_dims_constant(dims, c));
  if (!atom.id) return atom;
  rung_poly_load(dims, atom, p);
  return rung_poly_add_scaled(dims, &q, p, 1) ? intern_poly(dims, &q) : too_large(dims);
}

static rung_dim divide_general(rung_dims *dims, const rung_poly *p, const rung_poly *d) {
  rung_poly q, r;
  if (!rung_poly_divide(dims, p, d, &q, &r)) return too_large(dims);
  const rung_interval rest = rung_poly_interval(dims, &r), divisor = rung_poly_interval(dims, d);
  if (r.terms == 0 || (rest.lo >= 0 && rest.hi < divisor.lo)) return intern_poly(dims, &q);
  const rung_dim numerator = intern_poly(dims, &r), denominator = intern_poly(dims, d);
  const rung_dim atom = intern_pair(dims, RUNG_DIM_KIND_FLOORDIV, numerator, denominator);
  if (!atom.id) return atom;
  rung_poly_load(dims, atom, &r);
  return rung_poly_add_scaled(dims, &q, &r, 1) ? intern_poly(dims, &q) : too_large(dims);
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
    const rung_dim rest = intern_poly(dims, p);
    const rung_dim atom = intern_pair(dims, RUNG_DIM_KIND_MOD, rest, rung_dims_constant(dims, c));
    if (!atom.id) return atom;
    rung_poly_load(dims, atom, p);
  }
  if (!rung_poly_scale(p, scale) || !rung_poly_add_constant(dims, p, offset)) return too_large(dims);
  return intern_poly(dims, p);
}

static rung_dim modulo_general(rung_dims *dims, const rung_poly *p, const rung_poly *d) {
  rung_poly q, r;
  if (!rung_poly_divide(dims, p, d, &q, &r)) return too_large(dims);
  const rung_interval rest = rung_poly_interval(dims, &r), divisor = rung_poly_interval(dims, d);
  if (r.terms == 0 || (rest.lo >= 0 && rest.hi < divisor.lo)) return intern_poly(dims, &r);
  const rung_dim numerator = intern_poly(dims, &r), denominator = intern_poly(dims, d);
  return intern_pair(dims, RUNG_DIM_KIND_MOD, numerator, denominator);
}

/* Both round towards minus infinity: floor(p / -d) = floor(-p / d), p mod -d = -(-p mod d). */
static rung_dim divide(rung_dims *dims, rung_dim_op op, rung_dim a, rung_dim b) {
  const rung_dim_node *divisor = &dims->node[b.id];
  const bool negative = divisor->hi < 0;
  if (divisor->lo <= 0 && !negative) {
    return fail(dims, RUNG_INVALID_ARGUMENT, "division by an expression that can be 0");
  }
  rung_poly p, d;
  rung_poly_load(dims, a, &p);
  rung_poly_load(dims, b, &d);
  if (negative && (!rung_poly_scale(&p, -1) || !rung_poly_scale(&d, -1))) return too_large(dims);
  int64_t c;
  const bool constant = rung_poly_is_constant(&d, &c);
  if (op == RUNG_DIM_FLOORDIV) return constant ? divide_constant(dims, &p, c) : divide_general(dims, &p, &d);
  const rung_dim rest = constant ? modulo_constant(dims, &p, c) : modulo_general(dims, &p, &d);
  if (!negative || !rest.id) return rest;
  rung_poly_load(dims, rest, &p);
  return rung_poly_scale(&p, -1) ? intern_poly(dims, &p) : too_large(dims);
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
    return intern_pair(dims, kind, swap ? b : a, swap ? a : b);
  }
  count = drop_beaten(dims, kind, list, count);
  rung_dim out = {list[0]};
  for (uint32_t i = 1; i < count && out.id; i++) out = intern_pair(dims, kind, out, (rung_dim){list[i]});
  return out;
}

rung_dim rung_dims_combine(rung_dims *dims, rung_dim_op op, rung_dim a, rung_dim b) {
  if (!valid(dims, a) || !valid(dims, b)) {
    /* A null operand comes from an earlier failure, which says more. */
    if ((!a.id || !b.id) && dims->failure) return (rung_dim){0};
    return fail(dims, RUNG_INVALID_ARGUMENT, "an operand is no dimension");
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
  return fail(dims, RUNG_INVALID_ARGUMENT, "not an operation on dimensions");
}

/* ---- questions */

bool rung_dims_is_constant(const rung_dims *dims, rung_dim dim, int64_t *out_value) {
  if (!valid(dims, dim) || dims->node[dim.id].kind != RUNG_DIM_KIND_CONSTANT) return false;
  *out_value = dims->node[dim.id].value;
  return true;
}

rung_interval rung_dims_difference(const rung_dims *dims, rung_dim a, rung_dim b) {
  rung_poly p, q;
  rung_poly_load(dims, a, &p);
  rung_poly_load(dims, b, &q);
  if (!rung_poly_add_scaled(dims, &p, &q, -1)) return (rung_interval){-RUNG_DIM_INFINITE, RUNG_DIM_INFINITE};
  return rung_poly_interval(dims, &p);
}

rung_dim_relation rung_dims_compare(rung_dims *dims, rung_dim a, rung_dim b) {
  if (!valid(dims, a) || !valid(dims, b)) return RUNG_DIM_UNKNOWN;
  if (a.id == b.id) return RUNG_DIM_EQUAL;
  const rung_interval interval = rung_dims_difference(dims, a, b);
  return interval.lo > 0 || interval.hi < 0 ? RUNG_DIM_DIFFERENT : RUNG_DIM_UNKNOWN;
}
