/* SPDX-License-Identifier: MIT
 * Between the caller's memory and a run: which extents inputs fix, and what cannot be used in place. */
#include <inttypes.h>
#include <string.h>

#include "runtime/runtime.h"

/* ---- symbols */

static rung_status solve_round(rung_context *c, bool roomy, int64_t *symbol) {
  const rung_plan *plan = c->program->plan;
  for (uint32_t i = 0; i < plan->inputs; i++) {
    const rung_plan_input *in = &plan->input[i];
    if (!c->input[i].set) return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "input \"%s\" is not bound", in->name);
    if (c->input[i].roomy != roomy) continue;
    const rung_solve solve = {.dims = plan->dims, .name = in->name, .symbol = symbol, .roomy = roomy};
    RUNG_TRY(rung_solve_extents(&solve, &in->type, c->input[i].tensor.extent, &c->error));
  }
  return RUNG_OK;
}

static bool any_open(const rung_plan *plan, const int64_t *symbol) {
  for (uint32_t s = 0; s < plan->dims->symbols; s++)
    if (symbol[s] == RUNG_UNBOUND && !plan->dims->symbol[s].made) return true;
  return false;
}

/* Rounds until one adds nothing: an extent like batch*seq waits for another input. The last one holds every input
 * against all values. */
static rung_status solve_all(rung_context *c, bool roomy, int64_t *symbol) {
  const rung_plan *plan = c->program->plan;
  int64_t before[RUNG_MAX_SYMBOLS];
  for (uint32_t round = 0; round <= plan->dims->symbols + 1; round++) {
    memcpy(before, symbol, sizeof before);
    RUNG_TRY(solve_round(c, roomy, symbol));
    if (memcmp(before, symbol, sizeof before) == 0) break;
  }
  return RUNG_OK;
}

rung_status rung_context_solve(rung_context *c, int64_t *symbol) {
  const rung_plan *plan = c->program->plan;
  memcpy(symbol, c->extent, sizeof(int64_t) * RUNG_MAX_SYMBOLS);
  RUNG_TRY(solve_all(c, false, symbol));
  for (uint32_t s = 0; s < plan->dims->symbols; s++)
    if (symbol[s] == RUNG_UNBOUND && plan->lo[s] == plan->ceiling[s] && !plan->dims->symbol[s].made)
      symbol[s] = plan->lo[s];
  if (any_open(plan, symbol)) {
    RUNG_TRY(solve_all(c, false, symbol));
    RUNG_TRY(solve_all(c, true, symbol));
    RUNG_TRY(solve_all(c, false, symbol));
  }
  return rung_check_binding(plan, symbol, &c->error);
}

bool rung_context_leaves_open(rung_context *c, uint32_t s) {
  int64_t symbol[RUNG_MAX_SYMBOLS];
  memcpy(symbol, c->extent, sizeof symbol);
  return !solve_all(c, false, symbol) && symbol[s] == RUNG_UNBOUND;
}

rung_status rung_context_check_block(rung_context *c, const rung_block *block, const rung_resolved *now, uint64_t about,
                                     uint64_t stale) {
  const rung_plan *plan = c->program->plan;
  for (uint32_t i = block->check; i < block->check + block->checks; i++) {
    const rung_dim_check *check = &plan->check[i];
    const uint64_t symbols = plan->dims->node[check->a.id].symbols | plan->dims->node[check->b.id].symbols;
    if ((about && !(symbols & about)) || (symbols & stale)) continue;
    const int64_t a = now->dim[check->a.id], b = now->dim[check->b.id];
    if (a != RUNG_UNBOUND && b != RUNG_UNBOUND && (check->at_least ? a < b : a != b))
      return rung_fail(&c->error, RUNG_SHAPE_MISMATCH,
                       "two extents that must %s are %" PRId64 " and %" PRId64 " (node %u)",
                       check->at_least ? "not fall" : "agree", a, b, check->node);
  }
  return RUNG_OK;
}

rung_status rung_context_check_extents(rung_context *c, const rung_resolved *now) {
  const rung_plan *plan = c->program->plan;
  for (uint32_t i = 0; i < plan->inputs; i++)
    for (int a = 0; a < plan->input[i].type.rank; a++) {
      const int64_t want = now->dim[plan->input[i].type.extent[a].id], have = c->input[i].tensor.extent[a];
      if (c->input[i].roomy && have < want)
        return rung_fail(&c->error, RUNG_OUT_OF_RANGE,
                         "axis %d of input \"%s\" is %" PRId64 ", its buffer has room for %" PRId64, a,
                         plan->input[i].name, want, have);
      if (want == have || c->input[i].roomy) continue;
      char text[160];
      rung_symbols_text(plan->dims, plan->dims->node[plan->input[i].type.extent[a].id].symbols, now->symbol, text,
                        sizeof text);
      return rung_fail(&c->error, RUNG_SHAPE_MISMATCH,
                       "axis %d of input \"%s\" is %" PRId64 ", the other inputs make it %" PRId64 " (%s)", a,
                       plan->input[i].name, have, want, text);
    }
  return rung_context_check_block(c, &plan->whole, now, 0, 0);
}

/* ---- larger buffers */

void rung_buffer_strides(const rung_tensor *t, int64_t *out) {
  bool given = false;
  for (int a = 0; a < t->rank; a++) given |= t->stride[a] != 0;
  int64_t want = 1;
  for (int a = t->rank - 1; a >= 0; want *= t->extent[a], a--) out[a] = given ? t->stride[a] : want;
}

/* Do the actual elements lie in the buffer as a dense tensor of their own? */
static bool lies_dense(const rung_tensor *buffer, const int64_t *extent) {
  int64_t stride[RUNG_MAX_RANK], want = 1;
  rung_buffer_strides(buffer, stride);
  for (int a = buffer->rank - 1; a >= 0; want *= extent[a], a--) {
    if (extent[a] == 0) return true;
    if (extent[a] > 1 && stride[a] != want) return false;
  }
  return true;
}

static rung_status place(rung_context *c, rung_bound *b, uint32_t root, const rung_value_type *type, const char *name,
                         const rung_resolved *now) {
  const rung_plan *plan = c->program->plan;
  int64_t extent[RUNG_MAX_RANK];
  bool copy = !c->far && (uintptr_t)b->tensor.data % 16 != 0;
  for (int a = 0; a < type->rank; a++) {
    extent[a] = now->dim[type->extent[a].id];
    if (extent[a] == RUNG_UNBOUND) copy = true; /* found during the run */
  }
  if (rung_type_is_block(type->type)) {
    for (int a = 0; a < type->rank; a++)
      if (extent[a] != b->tensor.extent[a]) copy = true;
  } else if (!copy) {
    copy = !lies_dense(&b->tensor, extent);
  }
  if (copy && rung_type_is_block(type->type))
    return rung_fail(&c->error, RUNG_UNSUPPORTED, "\"%s\": blocks must be aligned to 16 bytes and fill their buffer",
                     name);
  uint8_t *data = b->tensor.data;
  uint8_t *arena = c->main->arena.base;
  if (copy || c->far) data = arena ? arena + plan->buffer[plan->root[root].buffer].offset : NULL;
  if (c->root[root] != data) c->root[root] = data, c->root_stamp++;
  if (b->copy != copy) c->commit_stamp++;
  b->copy = copy;
  return RUNG_OK;
}

static rung_status check_room(rung_context *c, uint32_t slot, const rung_resolved *now) {
  const rung_plan_output *out = &c->program->plan->output[slot];
  for (int a = 0; a < out->type.rank; a++) {
    const int64_t want = now->dim[out->type.extent[a].id], have = c->output[slot].tensor.extent[a];
    if (want != RUNG_UNBOUND && have < want)
      return rung_fail(&c->error, RUNG_OUT_OF_RANGE,
                       "axis %d of output \"%s\" is %" PRId64 ", its buffer has room for %" PRId64, a, out->name, want,
                       have);
  }
  return RUNG_OK;
}

rung_status rung_context_place(rung_context *c, const rung_resolved *now) {
  const rung_plan *plan = c->program->plan;
  for (uint32_t i = 0; i < plan->inputs; i++)
    if (c->input[i].roomy)
      RUNG_TRY(place(c, &c->input[i], plan->input[i].root, &plan->input[i].type, plan->input[i].name, now));
  for (uint32_t i = 0; i < plan->outputs; i++) {
    if (!c->output[i].roomy) continue;
    RUNG_TRY(check_room(c, i, now));
    RUNG_TRY(place(c, &c->output[i], plan->output[i].root, &plan->output[i].type, plan->output[i].name, now));
  }
  return RUNG_OK;
}

/* ---- copies */

void rung_copy_elements(const rung_far *far, size_t bytes, int rank, const int64_t *extent, uint8_t *to,
                        const int64_t *to_stride, const uint8_t *from, const int64_t *from_stride) {
  int64_t index[RUNG_MAX_RANK] = {0}, n = 1;
  for (int a = 0; a < rank; a++) n *= extent[a];
  /* Innermost runs that are dense on both sides go at once. */
  int64_t run = 1;
  int inner = rank;
  while (inner > 0 && to_stride[inner - 1] == run && from_stride[inner - 1] == run) run *= extent[--inner];
  for (int64_t e = 0; e < n; e += run) {
    int64_t t = 0, f = 0;
    for (int a = 0; a < inner; a++) t += index[a] * to_stride[a], f += index[a] * from_stride[a];
    rung_far_copy(far, to + t * (int64_t)bytes, from + f * (int64_t)bytes, (size_t)run * bytes);
    for (int a = inner - 1; a >= 0 && ++index[a] == extent[a]; a--) index[a] = 0;
  }
}

uint8_t *rung_context_boundary(const rung_context *c, uint32_t root) {
  uint8_t *base = c->main->boundary.base;
  return base ? base + c->program->plan->buffer[c->program->plan->root[root].buffer].offset : NULL;
}

static size_t bytes_now(const rung_context *c, uint32_t root, const rung_resolved *now) {
  const int64_t bytes = now->dim[c->program->plan->buffer[c->program->plan->root[root].buffer].bytes.id];
  return bytes > 0 ? (size_t)bytes : 0;
}

/* The image of an input or output here, with memory for what it has now. */
static rung_status image_of(rung_context *c, uint32_t root, const rung_resolved *now, uint8_t **out) {
  *out = rung_context_boundary(c, root);
  const size_t bytes = bytes_now(c, root, now);
  return bytes ? rung_region_commit(&c->main->boundary,
                                    c->program->plan->buffer[c->program->plan->root[root].buffer].offset, bytes,
                                    &c->error)
               : RUNG_OK;
}

rung_status rung_context_copy_inputs(rung_context *c, const rung_resolved *now) {
  const rung_plan *plan = c->program->plan;
  for (uint32_t i = 0; i < plan->inputs; i++) {
    const rung_bound *b = &c->input[i];
    const uint32_t root = plan->input[i].root;
    uint8_t *image = c->root[root];
    if (b->fed) continue; /* it is there */
    if (c->far && !b->copy) rung_far_write(c->far, c->root[root], b->tensor.data, bytes_now(c, root, now));
    if (!b->copy) continue;
    if (c->far) RUNG_TRY(image_of(c, root, now, &image));
    const rung_value_type *type = &plan->input[i].type;
    int64_t from[RUNG_MAX_RANK], to[RUNG_MAX_RANK];
    rung_tensor actual = {.rank = type->rank};
    for (int a = 0; a < type->rank; a++) actual.extent[a] = now->dim[type->extent[a].id];
    rung_buffer_strides(&b->tensor, from);
    rung_buffer_strides(&actual, to);
    rung_copy_elements(NULL, rung_type_get(type->type)->bytes, type->rank, actual.extent, image, to, b->tensor.data,
                       from);
    if (c->far) rung_far_write(c->far, c->root[root], image, bytes_now(c, root, now));
  }
  return RUNG_OK;
}

rung_status rung_context_spread_output(rung_context *c, uint32_t i, const rung_resolved *now, const uint8_t *image) {
  RUNG_TRY(check_room(c, i, now)); /* extents found during the run */
  const rung_tensor *buffer = &c->output[i].tensor;
  const rung_value_type *type = &c->program->plan->output[i].type;
  int64_t from[RUNG_MAX_RANK], to[RUNG_MAX_RANK];
  rung_tensor actual = {.rank = type->rank};
  for (int a = 0; a < type->rank; a++) actual.extent[a] = now->dim[type->extent[a].id];
  rung_buffer_strides(buffer, to);
  rung_buffer_strides(&actual, from);
  rung_copy_elements(NULL, rung_type_get(type->type)->bytes, type->rank, actual.extent, buffer->data, to, image, from);
  return RUNG_OK;
}

rung_status rung_context_copy_outputs(rung_context *c, const rung_resolved *now) {
  const rung_plan *plan = c->program->plan;
  for (uint32_t i = 0; i < plan->outputs; i++) {
    const rung_bound *b = &c->output[i];
    const uint32_t root = plan->output[i].root;
    if (!rung_context_wants(c, i)) continue;
    uint8_t *image = c->root[root];
    if (c->far) {
      if (!b->set || b->copy)
        RUNG_TRY(image_of(c, root, now, &image));
      else
        image = b->tensor.data;
      rung_far_read(c->far, image, c->root[root], bytes_now(c, root, now));
    }
    if (b->copy) RUNG_TRY(rung_context_spread_output(c, i, now, image));
  }
  return RUNG_OK;
}
