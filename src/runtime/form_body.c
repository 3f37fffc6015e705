/* SPDX-License-Identifier: MIT
 * Forms that a body makes of weights: transposes, casts, products ... computed once, when the form is first asked for.
 *
 * Most are matrices whose rows are rows or columns of weights, one weight after another or in turn by panels, perhaps
 * cast. Their rows are gathered slice by slice and packed, without another copy of the weight. All others are computed node by node
 * by the ops' references; each value goes as soon as nothing reads it. What is held meanwhile is known beforehand: the
 * same walk, dry, adds it up. */
#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "passes/pass.h"
#include "runtime/runtime.h"

static uint64_t type_bytes(const rung_plan *plan, const rung_value_type *type) {
  int64_t elements = 0;
  rung_type_is_fixed(plan->dims, type, &elements);
  return rung_type_bytes(type->type, (uint64_t)elements);
}

/* The body's inputs are the node's operands, in order. */
static uint32_t input_index(const rung_graph *body, uint32_t node) {
  uint32_t i = 0;
  while (i < body->inputs && body->input[i] != node) i++;
  return i;
}

/* ---- rows that lie in weights */

enum { MAX_PARTS = RUNG_MAX_RANK };
typedef struct part {
  uint32_t source;
  rung_type type; /* of the weight: not the form's where it is cast on the way */
  bool turned;    /* rows are the weight's columns */
  int64_t rows;
} part;
typedef struct parts {
  part part[MAX_PARTS];
  uint32_t count;
  int64_t panel; /* rows of each part in turn; 0: one part after another */
  int64_t k;
} parts;

static bool extent_of(const rung_plan *plan, const rung_graph *body, uint32_t value, int axis, int64_t *out) {
  const rung_value_type *type = rung_graph_value_type(body, value);
  return axis < type->rank && rung_dims_is_constant(plan->dims, type->extent[axis], out);
}

static bool is_plain_float(rung_type type) {
  return type == RUNG_TYPE_F32 || type == RUNG_TYPE_F16 || type == RUNG_TYPE_BF16;
}

/* A weight or its transpose, as it is or cast between floats that f32 holds. */
static bool add_part(const rung_plan *plan, const rung_graph *body, uint32_t value, parts *out) {
  const rung_node *node = rung_graph_producer(body, value);
  if (out->count == MAX_PARTS || rung_graph_value_type(body, value)->rank != 2) return false;
  part *p = &out->part[out->count++];
  if (!extent_of(plan, body, value, 0, &p->rows)) return false;
  const rung_type type = rung_graph_value_type(body, value)->type;
  bool cast = false;
  for (int step = 0; step < 2 && node->op != &rung_op_input; step++) {
    if (node->op == &rung_op_transpose && !p->turned)
      p->turned = ((const rung_transpose_attrs *)node->attrs)->permutation.value[0] == 1;
    else if (node->op != &rung_op_cast || cast || !is_plain_float(type))
      return false;
    else
      cast = true;
    node = rung_graph_producer(body, node->in[0]);
  }
  if (node->op != &rung_op_input) return false;
  p->type = rung_graph_value_type(body, node->first_value)->type;
  if (p->type != type && !is_plain_float(p->type)) return false;
  p->source = input_index(body, body->value[node->first_value].node);
  return true;
}

/* reshape(concat(reshape(part) ...)): [n / panel, 1, panel, k] of each side by side. */
static bool add_woven(const rung_plan *plan, const rung_graph *body, const rung_node *last, parts *out) {
  const rung_node *join = rung_graph_producer(body, last->in[0]);
  if (join->op != &rung_op_concat || ((const rung_concat_attrs *)join->attrs)->axis != 1) return false;
  for (uint32_t i = 0; i < join->n_in; i++) {
    const rung_node *cut = rung_graph_producer(body, join->in[i]);
    int64_t one, panel, k;
    if (cut->op != &rung_op_reshape || rung_graph_value_type(body, join->in[i])->rank != 4) return false;
    if (!extent_of(plan, body, join->in[i], 1, &one) || !extent_of(plan, body, join->in[i], 2, &panel) ||
        !extent_of(plan, body, join->in[i], 3, &k))
      return false;
    if (one != 1 || panel < 1 || k != out->k || (i && panel != out->panel) || !add_part(plan, body, cut->in[0], out))
      return false;
    out->panel = panel;
    if (i && out->part[i].rows != out->part[0].rows) return false;
  }
  return true;
}

static bool find_parts(const rung_plan *plan, const rung_graph *body, parts *out) {
  const uint32_t value = body->output[0].value;
  const rung_value_type *type = rung_graph_value_type(body, value);
  const rung_node *last = rung_graph_producer(body, value);
  *out = (parts){.count = 0};
  if (type->rank != 2 || rung_type_get(type->type)->block != 1 || !extent_of(plan, body, value, 1, &out->k))
    return false;
  if (last->op == &rung_op_reshape) return add_woven(plan, body, last, out);
  if (last->op != &rung_op_concat) return add_part(plan, body, value, out);
  if (((const rung_concat_attrs *)last->attrs)->axis != 0) return false;
  for (uint32_t i = 0; i < last->n_in; i++)
    if (!add_part(plan, body, last->in[i], out)) return false;
  return true;
}

typedef struct gathering {
  const rung_program *program;
  const rung_form *form;
  parts parts;
  rung_type type;
  size_t unit;    /* bytes of an element of the form */
  uint8_t *slice; /* rows [first, limit), dense */
  int64_t first, limit;
} gathering;

static const part *part_of(const gathering *g, int64_t r, int64_t *out_row, int64_t *out_run) {
  const parts *p = &g->parts;
  if (p->panel) {
    const int64_t group = r / p->panel;
    *out_row = group / p->count * p->panel + r % p->panel;
    *out_run = p->panel - r % p->panel;
    return &p->part[group % p->count];
  }
  uint32_t i = 0;
  for (; i + 1 < p->count && r >= p->part[i].rows; i++) r -= p->part[i].rows;
  *out_row = r;
  *out_run = p->part[i].rows - r;
  return &p->part[i];
}

enum { K_RUN = 64 };

/* `rows` columns of the weight from `row` on, elements [k0, k1) of each, to rows `to_step` bytes apart. */
static void turn(const gathering *g, const part *p, int64_t row, int64_t rows, int64_t k0, int64_t k1, uint8_t *out,
                 size_t to_step) {
  const rung_tensor_value *value = g->form->source[p->source];
  const size_t unit = rung_type_get(p->type)->bytes, from_step = (size_t)value->entry->extent[1] * unit;
  for (int64_t k = k0; k < k1; k++) {
    const uint8_t *from = (const uint8_t *)value->data + (size_t)k * from_step + (size_t)row * unit;
    uint8_t *to = out + (size_t)(k - k0) * unit;
    for (int64_t r = 0; r < rows; r++, from += unit, to += to_step) {
      if (unit == 4)
        memcpy(to, from, 4);
      else if (unit == 2)
        memcpy(to, from, 2);
      else
        memcpy(to, from, unit);
    }
  }
}

/* The same elements of `rows` rows, cast on their way; a few rows at once. */
static void gather_cast(const gathering *g, const part *p, int64_t row, int64_t rows, int64_t k0, int64_t k1,
                        uint8_t *out, size_t to_step) {
  enum { ROWS = 16 };
  float raw[ROWS][K_RUN], x[K_RUN];
  const rung_type_row *from = rung_type_get(p->type), *to = rung_type_get(g->type);
  const uint8_t *data = (const uint8_t *)g->form->source[p->source]->data;
  for (int64_t i = 0; i < rows; i++, out += to_step) {
    const void *at = data + (size_t)((row + i) * g->parts.k + k0) * from->bytes;
    if (p->turned) {
      const int64_t some = rows - i < ROWS ? rows - i : ROWS;
      if (i % ROWS == 0) turn(g, p, row + i, some, k0, k1, (uint8_t *)raw, sizeof raw[0]);
      at = raw[i % ROWS];
    }
    from->to_f32(at, x, (size_t)(k1 - k0));
    to->from_f32(x, out, (size_t)(k1 - k0));
  }
}

/* Task: K_RUN elements of every row of the slice. */
static void gather_columns(void *self, int64_t task, int thread) {
  (void)thread;
  const gathering *g = self;
  const int64_t k0 = task * K_RUN, k1 = k0 + K_RUN < g->parts.k ? k0 + K_RUN : g->parts.k;
  const size_t row_bytes = (size_t)g->parts.k * g->unit;
  int64_t row, run;
  for (int64_t r = g->first; r < g->limit; r += run) {
    const part *p = part_of(g, r, &row, &run);
    if (run > g->limit - r) run = g->limit - r;
    uint8_t *out = g->slice + (size_t)(r - g->first) * row_bytes;
    if (p->type != g->type) {
      gather_cast(g, p, row, run, k0, k1, out + (size_t)k0 * g->unit, row_bytes);
      continue;
    }
    if (p->turned) {
      turn(g, p, row, run, k0, k1, out + (size_t)k0 * g->unit, row_bytes);
      continue;
    }
    const uint8_t *from = (const uint8_t *)g->form->source[p->source]->data + (size_t)row * row_bytes;
    for (int64_t i = 0; i < run; i++)
      memcpy(out + (size_t)i * row_bytes + (size_t)k0 * g->unit, from + (size_t)i * row_bytes + (size_t)k0 * g->unit,
             (size_t)(k1 - k0) * g->unit);
  }
}

static void gather_slice(void *self, int64_t first, int64_t limit) {
  gathering *g = self;
  g->first = first;
  g->limit = limit;
  const rung_template *t = g->program->template_;
  rung_pool_run(t->device->pool, t->threads, (g->parts.k + K_RUN - 1) / K_RUN, gather_columns, g);
}

static const uint8_t *slice_row(void *self, int64_t r) {
  const gathering *g = self;
  return g->slice + (size_t)(r - g->first) * (size_t)g->parts.k * g->unit;
}

/* Stays in the second cache until it is packed. */
enum { GATHERED_SLICE = 512 << 10 };
static uint64_t slice_bytes(const rung_plan *plan, const rung_plan_form *want, int64_t k) {
  return (uint64_t)rung_form_slice_rows(plan, want, GATHERED_SLICE) * rung_type_bytes(want->type.type, (uint64_t)k);
}

static rung_status fill_gathered(rung_derived *derived, const rung_program *program, const rung_plan_form *want,
                                 rung_form *form, const parts *found, rung_error *error) {
  const uint64_t bytes = slice_bytes(program->plan, want, found->k);
  gathering g = {.program = program,
                 .form = form,
                 .parts = *found,
                 .type = want->type.type,
                 .unit = rung_type_get(want->type.type)->bytes};
  g.slice = rung_host_alloc_raw(derived->host, RUNG_MEMORY_load, bytes, 0);
  if (!g.slice)
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory for a slice of %llu bytes", (unsigned long long)bytes);
  const rung_form_rows rows = {.self = &g, .slice = GATHERED_SLICE, .row = slice_row, .begin = gather_slice};
  const rung_status status = rung_form_pack(program, want, form, &rows, error);
  rung_host_free(derived->host, RUNG_MEMORY_load, g.slice, bytes);
  return status;
}

/* ---- node by node */

typedef struct evaluation {
  const rung_plan *plan;
  const rung_plan_form *want;
  const rung_graph *body;
  uint64_t live, peak;
  /* NULL in a dry walk. */
  rung_host *host;
  rung_form *form;
  uint8_t **memory;   /* by value */
  rung_region *pages; /* by value: of what is computed; pages go back to the system at once, which a heap keeps */
  int64_t *dim;       /* by dimension: those that attributes name */
  rung_error *error;
} evaluation;

/* A result without a layout is computed where it stays. */
static bool in_place(const evaluation *e, uint32_t value) {
  return value == e->body->output[0].value && !e->want->type.layout;
}

static bool read_later(const rung_graph *body, uint32_t value, uint32_t node) {
  if (body->output[0].value == value) return true;
  for (uint32_t i = node + 1; i < body->nodes; i++)
    for (uint32_t k = 0; k < body->node[i].n_in; k++)
      if (body->node[i].in[k] == value) return true;
  return false;
}

static bool is_held(const evaluation *e, uint32_t value) {
  return !(rung_graph_producer(e->body, value)->op->flags & RUNG_OP_DECLARES) && !in_place(e, value);
}

static uint64_t held_bytes(const evaluation *e, uint32_t value) {
  const uint64_t bytes = type_bytes(e->plan, rung_graph_value_type(e->body, value));
  const size_t page = rung_host_page(e->plan->arena.host);
  return ((bytes ? bytes : 1) + page - 1) / page * page;
}

static rung_status hold(evaluation *e, uint32_t value) {
  if (!is_held(e, value)) {
    if (e->memory) e->memory[value] = e->form->region.base;
    return RUNG_OK;
  }
  const uint64_t bytes = held_bytes(e, value);
  if (e->memory) {
    rung_region *pages = &e->pages[value];
    RUNG_TRY(rung_region_init(pages, e->host, RUNG_MEMORY_load, bytes, e->error));
    e->memory[value] = pages->base;
    RUNG_TRY(rung_region_commit(pages, 0, bytes, e->error));
  }
  e->live += bytes;
  if (e->live > e->peak) e->peak = e->live;
  return RUNG_OK;
}

static void drop(evaluation *e, uint32_t value) {
  if (!is_held(e, value)) return;
  e->live -= held_bytes(e, value);
  if (!e->memory) return;
  rung_region_finish(&e->pages[value]);
  e->memory[value] = NULL;
}

static void drop_unread(evaluation *e, uint32_t index) {
  const rung_node *node = &e->body->node[index];
  for (uint32_t r = 0; r < node->results; r++)
    if (!read_later(e->body, node->first_value + r, index)) drop(e, node->first_value + r);
  for (uint32_t k = 0; k < node->n_in; k++) {
    bool again = false;
    for (uint32_t j = 0; j < k; j++) again |= node->in[j] == node->in[k];
    if (!again && !read_later(e->body, node->in[k], index)) drop(e, node->in[k]);
  }
}

static rung_status declare(evaluation *e, uint32_t index) {
  const rung_node *node = &e->body->node[index];
  if (!e->memory) return RUNG_OK;
  if (node->op == &rung_op_input) {
    e->memory[node->first_value] = (uint8_t *)(uintptr_t)e->form->source[input_index(e->body, index)]->data;
    return RUNG_OK;
  }
  const rung_blob *blob = rung_constant_of(e->body, node->first_value);
  if (!blob) return rung_fail(e->error, RUNG_UNSUPPORTED, "a form's body declares %s", node->op->name);
  e->memory[node->first_value] = (uint8_t *)(uintptr_t)blob->data;
  return RUNG_OK;
}

static bool operand_of(const evaluation *e, uint32_t value, int64_t *shape, rung_operand *out) {
  uint64_t bytes;
  return rung_dense_operand(e->plan->dims, rung_graph_value_type(e->body, value), e->memory[value], shape, out, &bytes);
}

static rung_status compute(evaluation *e, const rung_node *node) {
  enum { SHAPE = 2 * RUNG_MAX_RANK };
  const uint32_t count = node->n_in + node->results;
  rung_operand *operand = rung_host_array(e->host, count, sizeof *operand);
  int64_t *shape = rung_host_array(e->host, (size_t)count * SHAPE, sizeof *shape);
  rung_status status = operand && shape ? RUNG_OK : rung_fail(e->error, RUNG_OUT_OF_MEMORY, "out of memory");
  for (uint32_t i = 0; i < count && !status; i++) {
    const uint32_t value = i < node->n_in ? node->in[i] : node->first_value + i - node->n_in;
    if (!operand_of(e, value, shape + (size_t)i * SHAPE, &operand[i]))
      status = rung_fail(e->error, RUNG_INTERNAL, "a form's body has open extents");
  }
  if (!status) {
    rung_attrs_take_dims(e->plan->dims, node, e->dim);
    const rung_args args = {.in = operand,
                            .out = operand + node->n_in,
                            .n_in = (uint16_t)node->n_in,
                            .n_out = (uint16_t)node->results,
                            .attrs = node->attrs,
                            .dim = e->dim,
                            .threads = 1,
                            .error = e->error};
    status = node->op->reference(&args);
    if (status) rung_fail_prefix(e->error, status, "%s", node->op->name);
  }
  rung_host_free(e->host, RUNG_MEMORY_host, operand, count * sizeof *operand);
  rung_host_free(e->host, RUNG_MEMORY_host, shape, (size_t)count * SHAPE * sizeof *shape);
  return status;
}

/* Adds up what is held; with memory also computes. */
static rung_status walk(evaluation *e) {
  for (uint32_t i = 0; i < e->body->nodes; i++) {
    const rung_node *node = &e->body->node[i];
    if (node->op->flags & RUNG_OP_DECLARES) {
      RUNG_TRY(declare(e, i));
      continue;
    }
    for (uint32_t r = 0; r < node->results; r++) {
      const rung_status status = hold(e, node->first_value + r);
      if (status) return rung_fail_prefix(e->error, status, "result of %s", node->op->name);
    }
    if (e->memory) {
      if (!rung_node_is_pure(node) || !node->op->reference)
        return rung_fail(e->error, RUNG_UNSUPPORTED, "a form's body contains %s", node->op->name);
      RUNG_TRY(compute(e, node));
    }
    drop_unread(e, i);
  }
  return RUNG_OK;
}

typedef struct dense {
  const uint8_t *base;
  uint64_t row_bytes;
} dense;
static const uint8_t *dense_row(void *self, int64_t r) {
  const dense *d = self;
  return d->base + (uint64_t)r * d->row_bytes;
}

/* Packs the result, or copies one that no node of the body computed. */
static rung_status place_result(const evaluation *e, const rung_program *program, rung_error *error) {
  const uint32_t value = e->body->output[0].value;
  const rung_value_type *type = rung_graph_value_type(e->body, value);
  if (e->memory[value] == e->form->region.base) return RUNG_OK;
  int64_t k = 1;
  if (type->rank) rung_dims_is_constant(e->plan->dims, type->extent[type->rank - 1], &k);
  dense d = {e->memory[value], rung_type_bytes(type->type, (uint64_t)k)};
  const rung_form_rows rows = {.self = &d, .slice = RUNG_FORM_SLICE, .row = dense_row};
  return rung_form_pack(program, e->want, e->form, &rows, error);
}

static rung_status fill_computed(rung_derived *derived, const rung_program *program, const rung_plan_form *want,
                                 rung_form *form, rung_error *error) {
  const rung_plan *plan = program->plan;
  const rung_graph *body = want->node->body[0];
  evaluation e = {.plan = plan, .want = want, .body = body, .host = derived->host, .form = form, .error = error};
  e.memory = rung_host_array(derived->host, body->values, sizeof *e.memory);
  e.pages = rung_host_array(derived->host, body->values, sizeof *e.pages);
  e.dim = rung_host_array(derived->host, plan->dims->count, sizeof *e.dim);
  rung_status status = e.memory && e.pages && e.dim ? walk(&e) : rung_fail(error, RUNG_OUT_OF_MEMORY, "out of memory");
  if (!status) status = place_result(&e, program, error);
  for (uint32_t v = 0; e.pages && v < body->values; v++) rung_region_finish(&e.pages[v]);
  rung_host_free(derived->host, RUNG_MEMORY_host, e.memory, body->values * sizeof *e.memory);
  rung_host_free(derived->host, RUNG_MEMORY_host, e.pages, body->values * sizeof *e.pages);
  rung_host_free(derived->host, RUNG_MEMORY_host, e.dim, plan->dims->count * sizeof *e.dim);
  return status;
}

/* ---- both */

/* Sources are read all over, so all of them are held until the form is made. */
static uint64_t source_bytes(const rung_plan *plan, const rung_plan_form *want) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < want->weights; i++)
    bytes += type_bytes(plan, &plan->weight[plan->form_weight[want->weight + i]].type);
  return bytes;
}

uint64_t rung_form_body_bytes(const rung_plan *plan, const rung_plan_form *want) {
  const rung_graph *body = want->node->body[0];
  parts found;
  uint64_t bytes = source_bytes(plan, want);
  if (find_parts(plan, body, &found)) return bytes + slice_bytes(plan, want, found.k);
  evaluation e = {.plan = plan, .want = want, .body = body};
  const rung_status status = walk(&e);
  return status ? bytes : bytes + e.peak;
}

rung_status rung_form_body_fill(rung_derived *derived, const rung_program *program, const rung_plan_form *want,
                                rung_form *form, rung_error *error) {
  parts found;
  const uint64_t held = source_bytes(program->plan, want);
  RUNG_TRY(rung_host_account(derived->host, RUNG_MEMORY_load, held, error));
  rung_status status = find_parts(program->plan, want->node->body[0], &found)
                           ? fill_gathered(derived, program, want, form, &found, error)
                           : fill_computed(derived, program, want, form, error);
  for (uint32_t i = 0; i < form->sources; i++)
    if (rung_tensor_value_can_let_go(derived->weights, form->source[i]))
      rung_weights_let_go(derived->weights, form->source[i]->entry, 0, form->source[i]->entry->bytes);
  rung_host_unaccount(derived->host, RUNG_MEMORY_load, held);
  return status;
}
