/* SPDX-License-Identifier: MIT
 * What a list of launches was made of. Kernel rows see resolved operands, extents, chosen variants, scratch and the
 * states' views, and nothing else that a run could change: while the bytes of these are the same, so is the list.
 * Comparing them takes a microsecond or two, making a list of a hundred and fifty launches twenty times as long. */
#include <string.h>

#include "backends/cuda/run.h"

void rung_cuda_record_begin(rung_cuda_record *r) {
  rung_cuda_list_begin(&r->list);
  r->operand = NULL;
  r->views = r->bounds = 0;
  r->tables = 0;
  r->lost = false;
}

void rung_cuda_record_bound(rung_cuda_record *r, const rung_kv_view *kv, int64_t from, int64_t to) {
  for (size_t i = 0; i < r->bounds; i++) {
    const rung_cuda_bound *b = &r->bound[i];
    if (b->kv->length == kv->length && b->from == from && b->to == to) return; /* another layer of the same state */
  }
  void *bound = r->bound;
  if (!rung_host_grow(r->list.host, &bound, &r->bound_room, r->bounds + 1, sizeof *r->bound)) {
    r->lost = true;
    return;
  }
  r->bound = bound;
  r->bound[r->bounds++] = (rung_cuda_bound){kv, from, to};
}

static bool is_within(const rung_cuda_bound *b) {
  int64_t longest = 0;
  for (int32_t s = 0; s < b->kv->slots; s++)
    if (b->kv->length[s] > longest) longest = b->kv->length[s];
  return longest >= b->from && longest <= b->to;
}

/* The operands that steps name lie in one stretch. */
static void find_refs(rung_cuda_record *r, const rung_plan *plan, uint32_t first, uint32_t count) {
  uint32_t low = UINT32_MAX, high = 0;
  for (uint32_t s = first; s < first + count; s++) {
    const rung_step *step = &plan->step[s];
    const uint32_t begin[2] = {step->in, step->out}, n[2] = {step->n_in, step->n_out};
    for (int i = 0; i < 2; i++) {
      if (!n[i]) continue;
      if (begin[i] < low) low = begin[i];
      if (begin[i] + n[i] > high) high = begin[i] + n[i];
    }
  }
  r->ref = low < high ? low : 0;
  r->refs = low < high ? high - low : 0;
}

static bool note_views(rung_cuda_record *r, const rung_run *run) {
  for (uint32_t i = r->ref; i < r->ref + r->refs; i++) {
    const rung_kv_view *kv = run->operand[i].kv;
    if (!kv || (r->views && r->view[r->views - 1].at == kv)) continue;
    void *view = r->view;
    if (!rung_host_grow(r->list.host, &view, &r->view_room, r->views + 1, sizeof *r->view)) return false;
    r->view = view;
    r->view[r->views].at = kv;
    memcpy(&r->view[r->views++].was, kv, sizeof *kv);
  }
  return true;
}

/* dims, operands, variants, and which steps are left out: sizes of the four. */
typedef struct parts {
  size_t dims, operands, variants, left_out;
} parts;
static parts parts_of(const rung_cuda_record *r, const rung_run *run) {
  return (parts){run->plan->dims->count * sizeof(int64_t), r->refs * sizeof(rung_operand), r->steps,
                 run->left_out ? r->steps : 0};
}

void rung_cuda_record_keep(rung_cuda_record *r, const rung_run *run, uint32_t first, uint32_t count) {
  if (r->lost) return;
  find_refs(r, run->plan, first, count);
  r->first = first;
  r->steps = count;
  const parts p = parts_of(r, run);
  void *seen = r->seen;
  if (!rung_host_grow(r->list.host, &seen, &r->seen_room, p.dims + p.operands + p.variants + p.left_out, 1)) return;
  r->seen = seen;
  if (!note_views(r, run)) return;
  memcpy(r->seen, run->dim, p.dims);
  memcpy(r->seen + p.dims, run->operand + r->ref, p.operands);
  memcpy(r->seen + p.dims + p.operands, run->variant + first, p.variants);
  if (p.left_out) memcpy(r->seen + p.dims + p.operands + p.variants, run->left_out + first, p.left_out);
  r->leaves_out = run->left_out != NULL;
  r->scratch = run->scratch;
  r->operand = run->operand;
}

bool rung_cuda_record_holds(const rung_cuda_record *r, const rung_run *run, uint32_t first, uint32_t count) {
  if (!r->operand || r->operand != run->operand || r->first != first || r->steps != count ||
      r->scratch != run->scratch || r->leaves_out != (run->left_out != NULL))
    return false;
  const parts p = parts_of(r, run);
  if (memcmp(r->seen, run->dim, p.dims) != 0 || memcmp(r->seen + p.dims, run->operand + r->ref, p.operands) != 0 ||
      memcmp(r->seen + p.dims + p.operands, run->variant + first, p.variants) != 0)
    return false;
  if (p.left_out && memcmp(r->seen + p.dims + p.operands + p.variants, run->left_out + first, p.left_out) != 0)
    return false;
  for (size_t i = 0; i < r->views; i++)
    if (memcmp(r->view[i].at, &r->view[i].was, sizeof r->view[i].was) != 0) return false;
  for (size_t i = 0; i < r->bounds; i++)
    if (!is_within(&r->bound[i])) return false;
  return true;
}

void rung_cuda_record_finish(rung_cuda_record *r) {
  rung_host *host = r->list.host;
  rung_host_free(host, RUNG_MEMORY_host, r->list.data, r->list.capacity);
  rung_host_free(host, RUNG_MEMORY_host, r->seen, r->seen_room);
  rung_host_free(host, RUNG_MEMORY_host, r->view, r->view_room * sizeof *r->view);
  rung_host_free(host, RUNG_MEMORY_host, r->bound, r->bound_room * sizeof *r->bound);
  *r = (rung_cuda_record){0};
}
