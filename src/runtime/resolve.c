/* SPDX-License-Identifier: MIT
 * From a binding to numbers: one 64-bit value per dimension expression, operands, and one variant per step. */
#include <inttypes.h>
#include <string.h>

#include "base/sort.h"
#include "runtime/runtime.h"

static size_t shapes_of(const rung_plan *plan) {
  size_t n = 0;
  for (uint32_t i = 0; i < plan->refs; i++) n += 2 * (size_t)plan->ref[i].rank;
  return n;
}

static size_t rounded(size_t n) { return (n + 63) / 64 * 64; }

size_t rung_resolved_bytes(const rung_plan *plan) {
  return rounded(plan->dims->count * sizeof(int64_t)) + rounded((plan->roles + 1) * sizeof(int64_t)) +
         rounded((shapes_of(plan) + 1) * sizeof(int64_t)) + rounded((plan->refs + 1) * sizeof(rung_operand)) +
         rounded(plan->steps + 1);
}

static void *carve(uint8_t **memory, size_t bytes) {
  void *p = *memory;
  *memory += rounded(bytes);
  return p;
}

void rung_resolved_carve(rung_resolved *r, const rung_plan *plan, uint8_t **memory) {
  *r = (rung_resolved){0};
  r->dim = carve(memory, plan->dims->count * sizeof(int64_t));
  r->role = carve(memory, (plan->roles + 1) * sizeof(int64_t));
  r->shape = carve(memory, (shapes_of(plan) + 1) * sizeof(int64_t));
  r->operand = carve(memory, (plan->refs + 1) * sizeof(rung_operand));
  r->variant = carve(memory, plan->steps + 1);
}

/* A dim without a value yet belongs to a later segment: its operands stay empty until a bind step gives it one. */
static int64_t known(const rung_resolved *r, rung_dim dim) {
  return r->dim[dim.id] == RUNG_UNBOUND ? 0 : r->dim[dim.id];
}

static uint8_t choose(const rung_plan *plan, const rung_resolved *r, const rung_step *step) {
  for (uint8_t v = 0; v < step->variants; v++) {
    const rung_kernel *k = plan->variant[step->variant + v].kernel;
    if (k->guard_role < 0) return v;
    const int64_t role = r->role[step->role + (uint32_t)k->guard_role];
    if (role >= k->guard_lo && (!k->guard_hi || role < k->guard_hi)) return v;
  }
  return step->variants ? (uint8_t)(step->variants - 1) : 0;
}

rung_status rung_resolve(const rung_plan *plan, rung_resolved *r, rung_error *error) {
  RUNG_TRY(rung_dims_evaluate(plan->dims, r->symbol, r->dim, error));
  int64_t *shape = r->shape;
  for (uint32_t i = 0; i < plan->refs; i++) {
    const rung_ref *ref = &plan->ref[i];
    rung_operand *o = &r->operand[i];
    *o = (rung_operand){
        .extent = shape, .stride = shape + ref->rank, .rank = ref->rank, .type = ref->type, .layout = ref->layout};
    for (int a = 0; a < ref->rank; a++) {
      shape[a] = known(r, ref->extent[a]);
      shape[ref->rank + a] = known(r, ref->stride[a]);
    }
    shape += 2 * ref->rank;
  }
  for (uint32_t i = 0; i < plan->roles; i++) r->role[i] = known(r, plan->role[i]);
  for (uint32_t i = 0; i < plan->steps; i++) r->variant[i] = choose(plan, r, &plan->step[i]);
  r->scratch = rung_plan_scratch(plan, r);
  r->root_stamp = 0;
  return RUNG_OK;
}

uint64_t rung_plan_scratch(const rung_plan *plan, const rung_resolved *r) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < plan->steps; i++) {
    const rung_step *step = &plan->step[i];
    if (!step->variants) continue;
    const rung_dim scratch = plan->variant[step->variant + r->variant[i]].scratch;
    if (scratch.id && (uint64_t)known(r, scratch) > most) most = (uint64_t)known(r, scratch);
  }
  return most;
}

void rung_resolve_bases(const rung_plan *plan, rung_resolved *r, uint8_t *const *root) {
  for (uint32_t i = 0; i < plan->refs; i++) {
    const rung_ref *ref = &plan->ref[i];
    rung_operand *o = &r->operand[i];
    const rung_root *from = &plan->root[ref->root];
    if (from->kind == RUNG_ROOT_STATE && plan->state[from->index].type.kind == RUNG_VALUE_STATE_KV) {
      o->kv = (const rung_kv_view *)(const void *)root[ref->root];
      o->base = NULL;
      continue;
    }
    const rung_type_row *type = rung_type_get(ref->type);
    const int64_t offset = ref->layout ? 0 : known(r, ref->offset);
    o->base = root[ref->root] ? root[ref->root] + offset * type->bytes : NULL;
  }
}

rung_status rung_check_binding(const rung_plan *plan, const int64_t *symbol, rung_error *error) {
  for (uint32_t s = 0; s < plan->dims->symbols; s++) {
    const rung_symbol *info = &plan->dims->symbol[s];
    if (info->made || symbol[s] == RUNG_UNBOUND) continue;
    if (symbol[s] < plan->lo[s] || symbol[s] > plan->ceiling[s])
      return rung_fail(error, RUNG_OUT_OF_RANGE, "symbol %s is %" PRId64 ", the program accepts %" PRId64 "..%" PRId64,
                       info->name, symbol[s], plan->lo[s], plan->ceiling[s]);
  }
  return rung_check_open(plan->dims, symbol, "no input gives these symbols a value", error);
}

/* Pages of a buffer: [first, last]. */
typedef struct span {
  uint64_t first, last;
} span;
static bool span_before(const void *self, const void *a, const void *b) {
  (void)self;
  return ((const span *)a)->first < ((const span *)b)->first;
}

rung_status rung_plan_committed(rung_host *host, const rung_plan *plan, const int64_t *dim, size_t page,
                                rung_error *error, uint64_t *out_bytes) {
  const size_t bytes = ((size_t)plan->buffers + 1) * sizeof(span);
  span *spans = rung_host_alloc(host, RUNG_MEMORY_host, bytes, 0);
  if (!spans) return rung_fail(error, RUNG_OUT_OF_MEMORY, "memory report: out of memory");
  size_t n = 0;
  for (uint32_t i = 0; i < plan->buffers; i++) {
    const int64_t size = dim[plan->buffer[i].bytes.id];
    if (size == RUNG_UNBOUND || size <= 0) continue;
    const uint64_t offset = plan->buffer[i].offset;
    spans[n++] = (span){offset / page, (offset + (uint64_t)size - 1) / page};
  }
  rung_sort(spans, n, sizeof *spans, span_before, NULL);
  uint64_t count = 0, next = 0; /* next: the first page that is not counted */
  for (size_t i = 0; i < n; i++) {
    const uint64_t first = spans[i].first > next ? spans[i].first : next;
    if (spans[i].last < first) continue;
    count += spans[i].last - first + 1;
    next = spans[i].last + 1;
  }
  rung_host_free(host, RUNG_MEMORY_host, spans, bytes);
  *out_bytes = count * page;
  return RUNG_OK;
}
