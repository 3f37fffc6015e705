/* SPDX-License-Identifier: MIT
 * The table of dimensions: interning, constants, symbols, questions. */
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

static bool copy_array(rung_arena *arena, void *to, const void *from, uint32_t count, size_t size) {
  if (!count) return true;
  void *copy = rung_arena_array(arena, count, size);
  if (!copy) return false;
  memcpy(copy, from, count * size);
  memcpy(to, &copy, sizeof copy);
  return true;
}

rung_dims *rung_dims_clone(const rung_dims *from) {
  rung_dims *dims = rung_dims_create(from->host);
  if (!dims) return NULL;
  bool done = copy_array(&dims->arena, &dims->node, from->node, from->count, sizeof *dims->node) &&
              copy_array(&dims->arena, &dims->term, from->term, from->terms, sizeof *dims->term) &&
              copy_array(&dims->arena, &dims->atom, from->atom, from->atoms, sizeof *dims->atom) &&
              copy_array(&dims->arena, &dims->table, from->table, from->table_size, sizeof *dims->table);
  dims->count = dims->capacity = from->count;
  dims->terms = dims->term_capacity = from->terms;
  dims->atoms = dims->atom_capacity = from->atoms;
  dims->table_size = from->table_size;
  dims->symbols = from->symbols;
  dims->cloned_from = from;
  for (uint32_t i = 0; i < from->symbols && done; i++) {
    char *name = NULL;
    done = copy_array(&dims->arena, &name, from->symbol[i].name, (uint32_t)strlen(from->symbol[i].name) + 1, 1);
    dims->symbol[i] = from->symbol[i];
    dims->symbol[i].name = name;
  }
  if (done) return dims;
  rung_dims_release(dims);
  return NULL;
}

void rung_dims_retain(rung_dims *dims) { dims->references++; }

void rung_dims_release(rung_dims *dims) {
  if (!dims || --dims->references) return;
  rung_host *host = dims->host;
  rung_arena_finish(&dims->arena);
  rung_host_free(host, RUNG_MEMORY_host, dims, sizeof *dims);
  rung_host_release(host);
}

rung_dim rung_dims_fail(rung_dims *dims, rung_status status, const char *reason) {
  dims->failure = status;
  dims->reason = reason;
  return (rung_dim){0};
}
static rung_dim no_memory(rung_dims *dims) { return rung_dims_fail(dims, RUNG_OUT_OF_MEMORY, "out of memory"); }
rung_dim rung_dims_too_large(rung_dims *dims) {
  return rung_dims_fail(dims, RUNG_OVERFLOW, "the expression is too large or a constant in it overflows");
}

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
  if (dims->count >= UINT32_MAX / 4) return rung_dims_too_large(dims);
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

rung_dim rung_dims_intern_poly(rung_dims *dims, const rung_poly *poly) {
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
  if (!measure(dims, poly, &node)) return rung_dims_too_large(dims);
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
rung_dim rung_dims_intern_pair(rung_dims *dims, rung_dim_kind kind, rung_dim a, rung_dim b) {
  if (!a.id || !b.id) return (rung_dim){0};
  const rung_dim_node *x = &dims->node[a.id], *y = &dims->node[b.id];
  const rung_interval p = {x->lo, x->hi}, q = {y->lo, y->hi};
  rung_interval out = {p.lo < q.lo ? p.lo : q.lo, p.hi < q.hi ? p.hi : q.hi};
  if (kind == RUNG_DIM_KIND_MAX) out = (rung_interval){p.lo > q.lo ? p.lo : q.lo, p.hi > q.hi ? p.hi : q.hi};
  if (kind == RUNG_DIM_KIND_FLOORDIV) out = rung_interval_floordiv(p, q);
  if (kind == RUNG_DIM_KIND_MOD) out = rung_interval_mod(p, q);
  if (out.lo == out.hi && rung_interval_bounded(out)) return rung_dims_constant(dims, out.lo);
  const uint32_t depth = x->depth > y->depth ? x->depth : y->depth, size = (uint32_t)x->size + y->size + 1;
  if (depth >= RUNG_DIM_DEPTH || size > RUNG_DIM_SIZE) return rung_dims_too_large(dims);
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
  if (value == INT64_MIN) return rung_dims_too_large(dims);
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
  return n > 0 && strcmp(name, "min") != 0 && strcmp(name, "max") != 0 && strcmp(name, "none") != 0;
}

int rung_dims_find_symbol(const rung_dims *dims, const char *name, size_t length) {
  for (uint32_t i = 0; i < dims->symbols; i++) {
    if (strlen(dims->symbol[i].name) == length && memcmp(dims->symbol[i].name, name, length) == 0) return (int)i;
  }
  return -1;
}

static rung_dim add_symbol(rung_dims *dims, const char *name, int64_t lo, int64_t hi, bool made, rung_dim bound) {
  if (dims->symbols == RUNG_MAX_SYMBOLS) return rung_dims_fail(dims, RUNG_OUT_OF_RANGE, "more than 64 symbols");
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
  if (!name || !name_is_valid(name))
    return rung_dims_fail(dims, RUNG_INVALID_ARGUMENT, "a symbol's name must be an identifier");
  if (lo < 0 || hi < lo) return rung_dims_fail(dims, RUNG_OUT_OF_RANGE, "a symbol's range must have 0 <= lo <= hi");
  const int index = rung_dims_find_symbol(dims, name, strlen(name));
  if (index < 0) return add_symbol(dims, name, lo, hi, false, (rung_dim){0});
  const rung_symbol *there = &dims->symbol[index];
  if (there->made || there->lo != lo || there->hi != hi) {
    return rung_dims_fail(dims, RUNG_INVALID_ARGUMENT, "a symbol of this name has another range");
  }
  return there->dim;
}

/* What callers, model families and importers mean the same by (rung/cache.h). */
static bool name_is_reserved(const char *name) {
  static const char *const reserved[] = {"batch", "seq", "rows", "sequences"};
  for (size_t i = 0; i < RUNG_COUNT(reserved); i++)
    if (strcmp(name, reserved[i]) == 0) return true;
  return false;
}

rung_dim rung_dims_make_symbol(rung_dims *dims, const char *name, rung_dim bound) {
  if (bound.id && !rung_dims_has(dims, bound))
    return rung_dims_fail(dims, RUNG_INVALID_ARGUMENT, "a symbol's bound is no dimension");
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
    return rung_dims_fail(dims, RUNG_INVALID_ARGUMENT, "a symbol's name must be an identifier");
  } else if (name_is_reserved(name)) {
    return rung_dims_fail(dims, RUNG_INVALID_ARGUMENT, "the name is reserved for a symbol that callers bind");
  } else if (rung_dims_find_symbol(dims, name, strlen(name)) >= 0) {
    return rung_dims_fail(dims, RUNG_INVALID_ARGUMENT, "a symbol of this name exists");
  }
  return add_symbol(dims, name, 0, hi, true, bound);
}

/* ---- questions */

bool rung_dims_is_constant(const rung_dims *dims, rung_dim dim, int64_t *out_value) {
  if (!rung_dims_has(dims, dim) || dims->node[dim.id].kind != RUNG_DIM_KIND_CONSTANT) return false;
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
  if (!rung_dims_has(dims, a) || !rung_dims_has(dims, b)) return RUNG_DIM_UNKNOWN;
  if (a.id == b.id) return RUNG_DIM_EQUAL;
  const rung_interval interval = rung_dims_difference(dims, a, b);
  return interval.lo > 0 || interval.hi < 0 ? RUNG_DIM_DIFFERENT : RUNG_DIM_UNKNOWN;
}
