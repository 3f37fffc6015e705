/* SPDX-License-Identifier: MIT
 * What follows a convolution inside a fused step: the strips that follow matrix products (strip.h), over places of a
 * channel instead of columns of a row. Results lie in y already and are changed there, in the second cache.
 *
 *   y [pictures, channels, places]     operands of the strip     one a channel    [channels, 1, 1]
 *                                                                one a place      as y
 *
 * The axes of places are joined to one where every operand goes on at one distance; where one does not (a slice of
 * something larger), lines are taken one by one.
 *
 * Not for every convolution: a pass of its own over y goes from line to line without a gap, so that it costs its
 * arithmetic and hardly more. What follows inside goes by pieces of channels and costs up to twice that; it gains a step
 * and where the convolution is deep. docs/kernels.md has the figures. */
#include <string.h>

#include "backends/cpu/conv_shape.h"
#include "backends/cpu/strip.h"
#include "ops/op_table.h"
#include "ops/shape.h"

static bool refuse(char *why, const char *text) {
  strncpy(why, text, 119);
  return false;
}

static const rung_node *root_node(const rung_graph *body) {
  for (uint32_t i = 0; i < body->nodes; i++)
    if (body->node[i].op == &rung_op_conv) return &body->node[i];
  return NULL;
}

/* Which operand of the fused node a value of its body is; -1 if it is none. */
static int64_t input_index(const rung_graph *body, uint32_t value) {
  for (uint32_t i = 0; i < body->inputs; i++)
    if (body->node[body->input[i]].first_value == value) return i;
  return -1;
}

/* ---- what fits */

/* One element a channel (or a picture, or in all), or one a place of y. */
static bool lies_along(const rung_dims *dims, const rung_value_type *type, const rung_value_type *y) {
  bool one = true, all = type->rank >= y->rank - 2;
  for (int a = 2; a < y->rank; a++) {
    const int own = a - (y->rank - type->rank);
    if (own < 0) continue;
    one = one && rung_dim_is(dims, type->extent[own], 1);
    all = all && rung_dim_same(type->extent[own], y->extent[a]);
  }
  return one || all;
}

static bool all_ones(const rung_dims *dims, const rung_value_type *type) {
  for (int a = 2; a < type->rank; a++)
    if (!rung_dim_is(dims, type->extent[a], 1)) return false;
  return true;
}

/* Windows of several places over several channels; or one place a picture, as behind a mean over all of them. */
static bool gains(const rung_match *conv) {
  char why[160];
  const rung_dims *dims = conv->graph->dims;
  return all_ones(dims, &conv->out[0]) || (!all_ones(dims, conv->in[1]) && !rung_conv_fits_depthwise(conv, why));
}

bool rung_conv_fits_fused(const rung_match *match, char *why) {
  const rung_graph *body = match->node->body[0];
  const rung_node *root = root_node(body);
  rung_match inner;
  rung_match_init(&inner, body, root);
  if (!rung_conv_fits(&inner, why)) return false;
  if (!gains(&inner)) return refuse(why, "a pass of its own costs less");
  for (uint32_t i = 0; i < root->n_in; i++)
    if (input_index(body, root->in[i]) < 0) return refuse(why, "takes no prologue");
  if (match->n_out != 1 || match->out[0].type != RUNG_TYPE_F32 || inner.out[0].type != RUNG_TYPE_F32)
    return refuse(why, "gives one result, of f32");
  /* The weights may lie at any byte; strips read numbers where numbers lie. */
  if (input_index(body, root->in[1]) != 1) return refuse(why, "takes weights as operand 1");
  for (const rung_node *node = root + 1; node < body->node + body->nodes; node++)
    for (uint32_t i = 0; i < node->n_in; i++) {
      const int64_t operand = input_index(body, node->in[i]);
      if (operand == 1) return refuse(why, "an operand of the epilogue is the weights");
      if (operand >= 0 && !lies_along(body->dims, rung_graph_value_type(body, node->in[i]), &inner.out[0]))
        return refuse(why, "an operand of the epilogue lies along some places only");
    }
  return rung_cpu_strip_fits(body, root, why);
}

rung_dim rung_conv_scratch_fused(rung_dims *dims, const rung_match *match, const rung_dim *fused_role) {
  (void)fused_role; /* the fused node's own */
  const rung_graph *body = match->node->body[0];
  const rung_node *root = root_node(body);
  rung_match inner;
  rung_match_init(&inner, body, root);
  rung_value_type in[3];
  rung_dim role[RUNG_MAX_ROLES];
  for (uint32_t i = 0; i < root->n_in; i++) in[i] = *inner.in[i];
  root->op->role_dims(dims, in, root->n_in, inner.out, root->attrs, role);
  return rung_conv_scratch(dims, &inner, role);
}

rung_status rung_conv_prepare(const rung_cpu_prepare *in, const void **out_prepared) {
  const rung_graph *body = in->step->body;
  const rung_node *root = root_node(body);
  rung_conv_prepared *p = rung_arena_alloc(in->arena, sizeof *p);
  if (!p) return rung_fail(in->error, RUNG_OUT_OF_MEMORY, "cpu: no memory to prepare a convolution");
  *p = (rung_conv_prepared){.n_in = root->n_in, .attrs = root->attrs};
  for (uint32_t i = 0; i < root->n_in; i++) p->in[i] = (uint32_t)input_index(body, root->in[i]);
  for (const rung_node *node = root + 1; node < body->node + body->nodes; node++)
    for (uint32_t i = 0; i < node->n_in; i++) {
      const int64_t operand = input_index(body, node->in[i]);
      if (operand >= 0) p->reads[operand] = true;
    }
  RUNG_TRY(in->compile_strip(in->arena, body, root, in->error, &p->strip));
  *out_prepared = p;
  return RUNG_OK;
}

/* ---- running */

/* The operand with its places as one axis; false if they do not lie at one distance. */
static bool join(const rung_operand *o, int rank, int64_t *extent, int64_t *stride, rung_operand *out) {
  for (int a = 0; a < RUNG_CONV_JOINED; a++) {
    extent[a] = 1;
    stride[a] = 0;
  }
  for (int a = rank; a-- > 0;) {
    const int own = a - (rank - o->rank), to = a < 2 ? a : 2;
    if (own < 0 || o->extent[own] == 1) continue;
    if (extent[to] == 1) {
      stride[to] = o->stride[own];
    } else if (o->stride[own] != stride[to] * extent[to]) {
      return false;
    }
    extent[to] *= o->extent[own];
  }
  *out = *o;
  out->extent = extent;
  out->stride = stride;
  out->rank = RUNG_CONV_JOINED;
  return true;
}

static bool is_number(const int64_t *extent) { return extent[0] == 1 && extent[1] == 1 && extent[2] == 1; }

/* Does the operand go on from channel to channel as y does, or is it one element? */
static bool as_one_row(const rung_conv_shape *s, const int64_t *extent, const int64_t *stride) {
  const int64_t channels = s->groups * s->results, all = channels * s->places;
  if (is_number(extent)) return true;
  return s->places > 1 && extent[2] == s->places && stride[2] == 1 && extent[1] == channels &&
         (channels == 1 || stride[1] == s->places) && extent[0] == s->batch && (s->batch == 1 || stride[0] == all);
}

void rung_conv_view_make(const rung_conv_shape *s, rung_conv_view *v) {
  const rung_args *args = s->args;
  const int rank = s->y->rank;
  v->args = *args;
  v->args.in = v->in;
  v->args.out = &v->out;
  v->joined = v->one_row = true;
  for (int i = 0; i < args->n_in && v->joined; i++) {
    v->in[i] = args->in[i];
    if (!s->fused->reads[i]) continue;
    v->joined = join(&args->in[i], rank, v->extent[i], v->stride[i], &v->in[i]);
    v->one_row = v->one_row && v->joined && as_one_row(s, v->extent[i], v->stride[i]);
  }
  join(s->y, rank, v->extent[RUNG_STRIP_IO], v->stride[RUNG_STRIP_IO], &v->out);
  rung_strip_epilogue_begin(&v->run, s->fused->strip.program, v->joined ? &v->args : args);
}

static void run_columns(const rung_conv_shape *s, int64_t row, int64_t rows, int64_t col, int64_t n, float *at,
                        int64_t at_row) {
  float *value[1] = {at};
  rung_strip_epilogue_rows(&s->view->run, row, rows, col, n, value, at_row);
}

void rung_conv_finish(const rung_conv_shape *s, int64_t picture, int64_t channel, int64_t rows, int64_t place,
                      int64_t n) {
  if (n <= 0) return;
  const rung_conv_view *v = s->view;
  const int64_t row = picture * s->groups * s->results + channel;
  float *at = (float *)s->y->base + row * s->places + place;
  if (v->joined) {
    if (v->one_row && n == s->places) /* whole channels: one long row */
      run_columns(s, 0, 1, row * n, rows * n, at, 0);
    else
      run_columns(s, row, rows, place, n, at, s->places);
    return;
  }
  const int64_t width = s->y->extent[s->y->rank - 1], lines = s->places / width;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n;) {
      const int64_t column = (place + i) % width, run = rung_conv_min(n - i, width - column);
      run_columns(s, (row + r) * lines + (place + i) / width, 1, column, run, at + r * s->places + i, 0);
      i += run;
    }
}
