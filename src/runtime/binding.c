/* SPDX-License-Identifier: MIT
 * Symbols from extents: the values that a set of inputs fixes, for templates and for runs. */
#include <rung/cache.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "runtime/runtime.h"

/* A polynomial that is linear in its only symbol without a value: coefficient * symbol + rest. */
static bool linear(const rung_dims *dims, const rung_dim_node *node, const int64_t *symbol, uint32_t *out_symbol,
                   int64_t *out_coefficient, int64_t *out_rest) {
  *out_symbol = RUNG_NONE;
  *out_coefficient = *out_rest = 0;
  for (uint32_t t = node->a; t < node->a + node->b; t++) {
    const rung_dim_term *term = &dims->term[t];
    int64_t product = term->coefficient;
    uint32_t open = RUNG_NONE;
    for (uint32_t a = term->atom; a < term->atom + term->atoms; a++) {
      const rung_dim_node *atom = &dims->node[dims->atom[a]];
      if (atom->kind != RUNG_DIM_KIND_SYMBOL) return false;
      if (symbol[atom->symbol] == RUNG_UNBOUND) {
        if (open != RUNG_NONE) return false;
        open = atom->symbol;
      } else if (rung_mul_overflows(product, symbol[atom->symbol], &product)) {
        return false;
      }
    }
    if (open == RUNG_NONE) {
      if (rung_add_overflows(*out_rest, product, out_rest)) return false;
    } else {
      if (*out_symbol != RUNG_NONE && *out_symbol != open) return false;
      *out_symbol = open;
      if (rung_add_overflows(*out_coefficient, product, out_coefficient)) return false;
    }
  }
  return *out_symbol != RUNG_NONE && *out_coefficient != 0;
}

static rung_status give(const rung_solve *solve, uint32_t s, int64_t value, int axis, rung_error *error) {
  if (solve->symbol[s] == RUNG_UNBOUND) {
    solve->symbol[s] = value;
    return RUNG_OK;
  }
  if (solve->symbol[s] == value || solve->roomy) return RUNG_OK;
  return rung_fail(error, RUNG_SHAPE_MISMATCH,
                   "symbol %s is %" PRId64 " by earlier inputs and %" PRId64 " by axis %d of input \"%s\"",
                   solve->dims->symbol[s].name, solve->symbol[s], value, axis, solve->name);
}

static rung_status solve_polynomial(const rung_solve *solve, const rung_dim_node *node, int axis, int64_t extent,
                                    rung_error *error) {
  uint32_t s;
  int64_t coefficient, rest, left;
  if (!linear(solve->dims, node, solve->symbol, &s, &coefficient, &rest)) {
    /* One symbol that has its value: what this input would make of it is said where they differ. */
    int64_t open[RUNG_MAX_SYMBOLS];
    if (solve->roomy || !node->symbols || (node->symbols & (node->symbols - 1))) return RUNG_OK;
    for (int i = 0; i < RUNG_MAX_SYMBOLS; i++) open[i] = RUNG_UNBOUND;
    if (!linear(solve->dims, node, open, &s, &coefficient, &rest)) return RUNG_OK;
  }
  if (rung_sub_overflows(extent, rest, &left)) return RUNG_OK; /* checked once all symbols are known */
  if (coefficient == -1 && left == INT64_MIN) return RUNG_OK;
  if (left % coefficient == 0) return give(solve, s, left / coefficient, axis, error);
  if (solve->roomy) return RUNG_OK;
  return rung_fail(error, RUNG_SHAPE_MISMATCH,
                   "axis %d of input \"%s\" is %" PRId64 ": not divisible for symbol %s, %" PRId64 " remains", axis,
                   solve->name, extent, solve->dims->symbol[s].name, left % coefficient);
}

rung_status rung_solve_extents(const rung_solve *solve, const rung_value_type *type, const int64_t *extent,
                               rung_error *error) {
  for (int axis = 0; axis < type->rank; axis++) {
    const rung_dim_node *node = &solve->dims->node[type->extent[axis].id];
    if (node->kind == RUNG_DIM_KIND_SYMBOL) {
      RUNG_TRY(give(solve, node->symbol, extent[axis], axis, error));
    } else if (node->kind == RUNG_DIM_KIND_CONSTANT) {
      if (extent[axis] != node->value && !solve->roomy)
        return rung_fail(error, RUNG_SHAPE_MISMATCH,
                         "axis %d of input \"%s\" is %" PRId64 ", the program takes %" PRId64, axis, solve->name,
                         extent[axis], node->value);
    } else if (node->kind == RUNG_DIM_KIND_POLYNOMIAL) {
      RUNG_TRY(solve_polynomial(solve, node, axis, extent[axis], error));
    }
  }
  return RUNG_OK;
}

void rung_symbols_text(const rung_dims *dims, uint64_t mask, const int64_t *symbol, char *out, size_t bytes) {
  size_t used = 0;
  out[0] = 0;
  for (uint32_t s = 0; s < dims->symbols; s++) {
    if (!(mask >> s & 1) || symbol[s] == RUNG_UNBOUND) continue;
    const int n =
        snprintf(out + used, bytes - used, "%s%s = %" PRId64, used ? ", " : "", dims->symbol[s].name, symbol[s]);
    if (n > 0 && (size_t)n < bytes - used) used += (size_t)n;
  }
}

rung_status rung_check_open(const rung_dims *dims, const int64_t *symbol, const char *what, rung_error *error) {
  char open[256] = "";
  size_t used = 0;
  for (uint32_t s = 0; s < dims->symbols; s++) {
    const rung_symbol *info = &dims->symbol[s];
    if (info->made || symbol[s] != RUNG_UNBOUND) continue;
    const int n = snprintf(open + used, sizeof open - used, "%s%s", used ? ", " : "", info->name);
    if (n > 0 && (size_t)n < sizeof open - used) used += (size_t)n;
  }
  return used ? rung_fail(error, RUNG_INVALID_ARGUMENT, "%s: %s", what, open) : RUNG_OK;
}

/* ---- templates */

typedef struct given {
  const rung_node *node;
  const rung_io *io;
} given;

static rung_status find_inputs(const rung_template *t, const rung_io *inputs, size_t count, given *out,
                               rung_error *error) {
  const rung_graph *g = t->graph;
  for (size_t i = 0; i < count; i++) {
    uint32_t slot = (uint32_t)(i < g->inputs ? i : g->inputs);
    for (uint32_t k = 0; inputs[i].name && (slot = k) < g->inputs; k++)
      if (strcmp(((const rung_input_attrs *)g->node[g->input[k]].attrs)->name, inputs[i].name) == 0) break;
    if (slot >= g->inputs) {
      if (inputs[i].name) return rung_fail(error, RUNG_NOT_FOUND, "binding: there is no input \"%s\"", inputs[i].name);
      return rung_fail(error, RUNG_NOT_FOUND, "binding: %zu inputs are given, the template has %u", count, g->inputs);
    }
    out[i] = (given){.node = &g->node[g->input[slot]], .io = &inputs[i]};
    const rung_value_type *type = rung_graph_value_type(g, out[i].node->first_value);
    const char *name = ((const rung_input_attrs *)out[i].node->attrs)->name;
    if (inputs[i].tensor.type != type->type)
      return rung_fail(error, RUNG_TYPE_MISMATCH, "input \"%s\" is %s, the template takes %s", name,
                       rung_type_name(inputs[i].tensor.type), rung_type_name(type->type));
    if (inputs[i].tensor.rank != type->rank)
      return rung_fail(error, RUNG_SHAPE_MISMATCH, "input \"%s\" has rank %d, the template takes %d", name,
                       inputs[i].tensor.rank, type->rank);
  }
  return RUNG_OK;
}

/* What is fixed goes on fixing more (batch*seq waits for seq), until a round adds nothing. */
static rung_status solve_all(const rung_template *t, const given *in, size_t count, int64_t *symbol,
                             rung_error *error) {
  const rung_dims *dims = t->graph->dims;
  for (uint32_t round = 0; round <= dims->symbols; round++) {
    int64_t before[RUNG_MAX_SYMBOLS];
    memcpy(before, symbol, sizeof before);
    for (size_t i = 0; i < count; i++) {
      if (in[i].io->ceiling) continue;
      const rung_solve solve = {
          .dims = dims, .name = ((const rung_input_attrs *)in[i].node->attrs)->name, .symbol = symbol};
      RUNG_TRY(rung_solve_extents(&solve, rung_graph_value_type(t->graph, in[i].node->first_value),
                                  in[i].io->tensor.extent, error));
    }
    if (round && memcmp(before, symbol, sizeof before) == 0) break;
  }
  return RUNG_OK;
}

/* What no rule could turn round (products of two, minima) is held against the values. */
static rung_status check_all(const rung_template *t, const given *in, size_t count, const int64_t *symbol,
                             rung_error *error) {
  const rung_dims *dims = t->graph->dims;
  for (uint32_t s = 0; s < dims->symbols; s++)
    if (!dims->symbol[s].made && (symbol[s] < dims->symbol[s].lo || symbol[s] > dims->symbol[s].hi))
      return rung_fail(error, RUNG_OUT_OF_RANGE, "symbol %s is %" PRId64 ", declared %" PRId64 "..%" PRId64,
                       dims->symbol[s].name, symbol[s], dims->symbol[s].lo, dims->symbol[s].hi);
  const size_t bytes = dims->count * sizeof(int64_t);
  int64_t *dim = rung_host_alloc(t->device->host, RUNG_MEMORY_host, bytes, 0);
  if (!dim) return rung_fail(error, RUNG_OUT_OF_MEMORY, "binding: out of memory");
  rung_status status = rung_dims_evaluate(dims, symbol, dim, error);
  for (size_t i = 0; i < count && !status; i++) {
    const rung_value_type *type = rung_graph_value_type(t->graph, in[i].node->first_value);
    for (int a = 0; a < type->rank && !status; a++) {
      const int64_t want = dim[type->extent[a].id], have = in[i].io->tensor.extent[a];
      if (have == want || (in[i].io->ceiling && have > want)) continue;
      char text[160];
      rung_symbols_text(dims, dims->node[type->extent[a].id].symbols, symbol, text, sizeof text);
      status = rung_fail(error, RUNG_SHAPE_MISMATCH,
                         "axis %d of input \"%s\" is %" PRId64 ", the other inputs make it %" PRId64 " (%s)", a,
                         ((const rung_input_attrs *)in[i].node->attrs)->name, have, want, text);
    }
  }
  rung_host_free(t->device->host, RUNG_MEMORY_host, dim, bytes);
  return status;
}

static rung_status bind_symbols(rung_template *t, const rung_io *inputs, size_t count, int64_t *symbol,
                                rung_error *error) {
  given *in = rung_host_array(t->device->host, count, sizeof *in);
  if (!in) return rung_fail(error, RUNG_OUT_OF_MEMORY, "binding: out of memory");
  const rung_dims *dims = t->graph->dims;
  for (uint32_t s = 0; s < RUNG_MAX_SYMBOLS; s++) symbol[s] = RUNG_UNBOUND;
  for (uint32_t s = 0; s < dims->symbols; s++)
    if (!dims->symbol[s].made && dims->symbol[s].lo == dims->symbol[s].hi) symbol[s] = dims->symbol[s].lo;
  rung_status status = find_inputs(t, inputs, count, in, error);
  if (!status) status = solve_all(t, in, count, symbol, error);
  if (!status) status = rung_check_open(dims, symbol, "the inputs leave these symbols open", error);
  if (!status) status = check_all(t, in, count, symbol, error);
  rung_host_free(t->device->host, RUNG_MEMORY_host, in, count * sizeof *in);
  return status;
}

rung_status rung_template_bind(rung_template *t, const rung_io *inputs, size_t count, rung_error *error,
                               rung_binding *out_binding, size_t *out_count) {
  if (!t || (count && !inputs) || !out_binding || !out_count)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "binding: template, inputs, out_binding and out_count are required");
  int64_t symbol[RUNG_MAX_SYMBOLS];
  RUNG_TRY(bind_symbols(t, inputs, count, symbol, error));
  size_t n = 0;
  for (uint32_t s = 0; s < RUNG_MAX_SYMBOLS; s++)
    if (symbol[s] != RUNG_UNBOUND) out_binding[n++] = (rung_binding){t->graph->dims->symbol[s].name, symbol[s]};
  *out_count = n;
  return RUNG_OK;
}

rung_status rung_check_complete(rung_template *t, const rung_binding *binding, size_t count, rung_error *error) {
  int64_t symbol[RUNG_MAX_SYMBOLS];
  const rung_dims *dims = t->graph->dims;
  for (uint32_t s = 0; s < dims->symbols; s++)
    symbol[s] = dims->symbol[s].lo == dims->symbol[s].hi ? dims->symbol[s].lo : RUNG_UNBOUND;
  for (size_t i = 0; i < count; i++) {
    const int s = binding[i].symbol ? rung_dims_find_symbol(dims, binding[i].symbol, strlen(binding[i].symbol)) : -1;
    if (s >= 0) symbol[s] = binding[i].value;
  }
  const rung_status status = rung_check_open(dims, symbol, "the binding leaves these symbols open", error);
  return status;
}

rung_status rung_template_specialise(rung_template *t, const rung_binding *binding, size_t count, rung_error *error,
                                     rung_program **out_program) {
  if (!t || (count && !binding) || !out_program)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "specialise: template, binding and out_program are required");
  RUNG_TRY(rung_check_complete(t, binding, count, error));
  return rung_program_create(t, binding, count, error, out_program);
}
