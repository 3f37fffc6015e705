/* SPDX-License-Identifier: MIT
 * Test cases of the op table as graphs: reading "f32[5,67] i32[9]{0,4}", drawing operands, building the node with
 * closed or open extents and in other element types. */
#ifndef RUNG_TESTS_OPS_CASES_H
#define RUNG_TESTS_OPS_CASES_H

#include "eval.h"
#include "ops/op_table.h"

enum { CASE_OPERANDS = 16 };

typedef struct operand_case {
  rung_type type;
  int rank;
  int64_t extent[RUNG_MAX_RANK];
  double low, high; /* of its values */
} operand_case;
typedef struct op_case {
  const rung_op *op;
  int n;
  operand_case operand[CASE_OPERANDS];
  const char *attrs;
} op_case;

static inline const char *read_extents(const char *at, operand_case *o) {
  const char *limit = at + strlen(at);
  for (at++; *at && *at != ']';) {
    if (o->rank == RUNG_MAX_RANK || !rung_parse_i64(at, limit, &o->extent[o->rank++], &at)) return NULL;
    if (*at == ',') at++;
  }
  return *at == ']' ? at + 1 : NULL;
}

/* False if the text is malformed: an error in the op's own table. */
static inline bool read_case(const rung_op *op, const rung_test_case *test, op_case *out) {
  *out = (op_case){.op = op, .attrs = test->attrs};
  for (const char *at = test->operands; *at;) {
    if (out->n == CASE_OPERANDS) return false;
    operand_case *o = &out->operand[out->n++];
    const char *bracket = strchr(at, '[');
    char name[16] = "";
    if (!bracket || (size_t)(bracket - at) >= sizeof name) return false;
    memcpy(name, at, (size_t)(bracket - at));
    if (!rung_type_find(name, &o->type) || !(at = read_extents(bracket, o))) return false;
    const uint32_t takes = rung_type_takes(o->type);
    o->low = takes == RUNG_TAKES_INT ? 0 : takes == RUNG_TAKES_BOOL ? 0 : op->test_lo;
    o->high = takes == RUNG_TAKES_INT ? 9 : takes == RUNG_TAKES_BOOL ? 1 : op->test_hi;
    if (takes == RUNG_TAKES_BLOCK && o->low == o->high) o->high = o->low + 1;
    if (*at == '{') {
      const char *limit = at + strlen(at);
      if (!rung_parse_f64(at + 1, limit, &o->low, &at) || *at != ',' || !rung_parse_f64(at + 1, limit, &o->high, &at) ||
          *at != '}')
        return false;
      at++;
    }
    while (*at == ' ') at++;
  }
  return true;
}

/* A dense tensor of drawn values. */
static inline tensor *draw_operand(const operand_case *o, uint64_t *seed) {
  tensor *t = tensor_make(o->type, o->rank, o->extent, NULL);
  const rung_type_row *row = rung_type_get(o->type);
  const uint32_t takes = rung_type_takes(o->type);
  const int64_t n = tensor_count(t);
  if (takes == RUNG_TAKES_BLOCK) {
    float value[256];
    for (int64_t i = 0; i < n; i += row->block) {
      for (int k = 0; k < row->block; k++) value[k] = test_uniform(seed, (float)o->low, (float)o->high);
      if (row->from_f32) row->from_f32(value, t->operand.base + i / row->block * row->bytes, row->block);
    }
    return t;
  }
  for (int64_t i = 0; i < n; i++) {
    if (takes & (RUNG_TAKES_INT | RUNG_TAKES_BOOL)) {
      const int64_t low = (int64_t)o->low, span = (int64_t)o->high - low + 1;
      rung_store_i64(&t->operand, tensor_offset(t, i), low + test_below(seed, span));
    } else {
      const double unit = (double)(test_random(seed) >> 11) * 0x1p-53;
      tensor_set(t, i, o->low + (o->high - o->low) * unit);
    }
  }
  return t;
}

/* The same numbers in another tensor; floats may change their type. */
static inline void copy_values(tensor *to, const tensor *from) {
  if (eval_is_blocks((rung_type)to->operand.type)) {
    const rung_type_row *row = rung_type_get((rung_type)to->operand.type);
    for (int64_t i = 0; i < tensor_count(to); i += row->block)
      memcpy(to->operand.base + tensor_offset(to, i) / row->block * row->bytes,
             from->operand.base + tensor_offset(from, i) / row->block * row->bytes, row->bytes);
    return;
  }
  const bool integer = (rung_type_takes((rung_type)to->operand.type) & (RUNG_TAKES_INT | RUNG_TAKES_BOOL)) != 0;
  for (int64_t i = 0; i < tensor_count(to); i++) {
    if (integer)
      rung_store_i64(&to->operand, tensor_offset(to, i), tensor_get_i64(from, i));
    else
      tensor_set(to, i, tensor_get(from, i));
  }
}

enum { BUILD_CLOSED = 0, BUILD_OPEN = 1, BUILD_F64 = 2 };
typedef struct built {
  rung_graph *graph;
  rung_value in[CASE_OPERANDS];
  const rung_node *node; /* NULL: refused; see rung_graph_message */
  rung_value out[CASE_OPERANDS];
  uint32_t outs;
} built;

/* An extent above 1 becomes the symbol n<extent>. */
static inline rung_dim case_extent(rung_graph *g, int64_t extent, int mode) {
  char name[32];
  if (!(mode & BUILD_OPEN) || extent <= 1) return rung_graph_constant_dim(g, extent);
  snprintf(name, sizeof name, "n%lld", (long long)extent);
  return rung_graph_symbol(g, name, 0, 4096);
}
static inline void bind_case(eval *e, const op_case *c) {
  char name[32];
  for (int i = 0; i < c->n; i++)
    for (int axis = 0; axis < c->operand[i].rank; axis++) {
      snprintf(name, sizeof name, "n%lld", (long long)c->operand[i].extent[axis]);
      eval_bind(e, name, c->operand[i].extent[axis]);
    }
}

/* The case's inputs in a new graph. */
static inline void build_inputs(rung_host *host, const op_case *c, int mode, built *out) {
  memset(out, 0, sizeof *out);
  CHECK_OK(rung_graph_create(host, NULL, &out->graph));
  for (int i = 0; i < c->n; i++) {
    const operand_case *o = &c->operand[i];
    rung_dim extent[RUNG_MAX_RANK];
    char name[16];
    for (int axis = 0; axis < o->rank; axis++) extent[axis] = case_extent(out->graph, o->extent[axis], mode);
    snprintf(name, sizeof name, "x%d", i);
    const rung_type type = (mode & BUILD_F64) && rung_type_is_float(o->type) ? RUNG_TYPE_F64 : o->type;
    out->in[i] = rung_graph_input(out->graph, name, type, o->rank, extent);
  }
}

/* Attributes as the case states them; in f64, an attribute "type" that says a float says f64. NULL: malformed. */
static inline void *case_attrs(const op_case *c, rung_graph *g, int mode, rung_error *error) {
  static uint64_t none;
  if (!c->op->attrs_bytes) return &none;
  void *attrs = rung_arena_alloc(&g->arena, c->op->attrs_bytes);
  const char *limit = c->attrs + strlen(c->attrs), *end = NULL;
  if (rung_attrs_parse(c->op, g->dims, &g->arena, c->attrs, limit, &end, attrs, error) || end != limit) return NULL;
  const rung_attr *type = rung_attr_find(c->op, "type", 4);
  if ((mode & BUILD_F64) && type && type->kind == RUNG_ATTR_TYPE) {
    rung_type *value = (rung_type *)(void *)((uint8_t *)attrs + type->offset);
    if (rung_type_is_float(*value)) *value = RUNG_TYPE_F64;
  }
  return attrs;
}

/* Inputs and the node. */
static inline bool build_case(rung_host *host, const op_case *c, int mode, built *out) {
  rung_error error = {RUNG_OK, ""};
  build_inputs(host, c, mode, out);
  void *attrs = case_attrs(c, out->graph, mode, &error);
  CHECK(attrs != NULL);
  if (!attrs) {
    fprintf(stderr, "%s {%s}: %s\n", c->op->name, c->attrs, error.message);
    return false;
  }
  out->node = rung_graph_append(out->graph, c->op, out->in, (uint32_t)c->n, c->op->attrs_bytes ? attrs : NULL, NULL, 0);
  for (uint32_t r = 0; out->node && r < out->node->results && r < CASE_OPERANDS; r++)
    out->out[out->outs++] = rung_node_result(out->graph, out->node, r);
  return out->node != NULL;
}

/* Runs a built graph on drawn operands. */
static inline rung_status run_case(const built *b, const op_case *c, tensor *const *operand, uint64_t *seed, eval *e) {
  eval_init(e, b->graph, seed);
  bind_case(e, c);
  RUNG_TRY(eval_begin(e));
  for (int i = 0; i < c->n; i++) copy_values(e->value[b->in[i].id], operand[i]);
  return eval_run(e);
}
static inline tensor *result_of(const eval *e, const built *b, uint32_t r) { return e->value[b->out[r].id]; }

#endif
