/* SPDX-License-Identifier: MIT
 * Views: the forms made from a store's weights. A form is packed once, in slices whose source pages are let go before
 * the next, so that loading never holds two copies of a model. */
#include <string.h>

#include "ops/attrs.h"
#include "runtime/runtime.h"

rung_status rung_view_create(rung_weights *weights, rung_error *error, rung_view **out_view) {
  if (!weights || !out_view) return rung_fail(error, RUNG_INVALID_ARGUMENT, "view: weights and out_view are required");
  rung_host *host = rung_weights_host(weights);
  rung_view *view = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *view, 0);
  if (!view) return rung_fail(error, RUNG_OUT_OF_MEMORY, "view: out of memory");
  if (!rung_mutex_init(&view->lock)) {
    rung_host_free(host, RUNG_MEMORY_host, view, sizeof *view);
    return rung_fail(error, RUNG_SYSTEM, "view: no lock");
  }
  atomic_init(&view->references, 1);
  rung_host_retain(host);
  rung_weights_retain(weights);
  view->host = host;
  view->weights = weights;
  *out_view = view;
  return RUNG_OK;
}

void rung_view_retain(rung_view *view) {
  if (view) atomic_fetch_add(&view->references, 1);
}

static void form_destroy(rung_view *view, rung_form *form) {
  rung_region_finish(&form->region);
  rung_host_free(view->host, RUNG_MEMORY_host, form->source, form->sources * sizeof *form->source);
  rung_host_free(view->host, RUNG_MEMORY_host, form, sizeof *form);
}

void rung_view_release(rung_view *view) {
  if (!view || atomic_fetch_sub(&view->references, 1) != 1) return;
  while (view->form) {
    rung_form *next = view->form->next;
    form_destroy(view, view->form);
    view->form = next;
  }
  while (view->pinned) {
    rung_pinned *next = view->pinned->next;
    if (view->pinned->copy)
      rung_host_free(view->host, RUNG_MEMORY_weights, view->pinned->copy, view->pinned->entry->bytes);
    else
      rung_weights_unaccount(view->weights, view->pinned->entry);
    rung_host_free(view->host, RUNG_MEMORY_host, view->pinned, sizeof *view->pinned);
    view->pinned = next;
  }
  rung_mutex_finish(&view->lock);
  rung_weights_release(view->weights);
  rung_host *host = view->host;
  rung_host_free(host, RUNG_MEMORY_host, view, sizeof *view);
  rung_host_release(host);
}

rung_memory rung_view_memory(const rung_view *view) {
  rung_memory m = {0};
  if (!view) return m;
  rung_mutex_lock((rung_mutex *)&view->lock);
  for (const rung_form *f = view->form; f; f = f->next) m.packed += f->region.committed;
  for (const rung_pinned *p = view->pinned; p; p = p->next) m.weights += p->entry->bytes;
  rung_mutex_unlock((rung_mutex *)&view->lock);
  return m;
}

/* What the first program of a view takes of weights and forms is refused before any of it is made, with the whole of
 * it. Programs after it share most, and are refused form by form. */
rung_status rung_view_would_fit(rung_view *view, const rung_program *program, rung_error *error) {
  const rung_memory held = rung_view_memory(view);
  if (held.packed || held.weights) return RUNG_OK;
  const rung_plan *plan = program->plan;
  const size_t page = rung_host_page(view->host);
  uint64_t bytes = program->load_bytes;
  for (uint32_t i = 0; i < plan->forms; i++) bytes += rung_form_committed(&plan->form[i], page);
  for (uint32_t i = 0; i < plan->roots; i++) {
    if (plan->root[i].kind != RUNG_ROOT_WEIGHT || !plan->root[i].read) continue;
    const rung_tensor_entry *entry = rung_weights_find(view->weights, plan->weight[plan->root[i].index].name);
    if (entry) bytes += entry->bytes;
  }
  return rung_host_would_fit(view->host, bytes, "weights and their forms", error);
}

/* ---- sources */

static rung_status find_weight(rung_view *view, const rung_plan_weight *want, rung_error *error,
                               const rung_tensor_entry **out_entry) {
  const rung_tensor_entry *entry = rung_weights_find(view->weights, want->name);
  if (!entry) return rung_fail(error, RUNG_NOT_LOADED, "weight \"%s\" is not in the store", want->name);
  if (!entry->data) return rung_fail(error, RUNG_NOT_LOADED, "weight \"%s\" is declared but not loaded", want->name);
  if (entry->type != want->type.type)
    return rung_fail(error, RUNG_TYPE_MISMATCH, "weight \"%s\" is %s in the store, the program wants %s", want->name,
                     rung_type_name(entry->type), rung_type_name(want->type.type));
  if (entry->rank != want->type.rank)
    return rung_fail(error, RUNG_SHAPE_MISMATCH, "weight \"%s\" has rank %d in the store, the program wants %d",
                     want->name, entry->rank, want->type.rank);
  *out_entry = entry;
  return RUNG_OK;
}

/* The declaration's extents, which rows are counted by. */
static rung_status check_extents(const rung_dims *dims, const rung_plan_weight *want, const rung_tensor_entry *entry,
                                 rung_error *error) {
  for (int i = 0; i < entry->rank; i++) {
    int64_t extent = -1;
    if (rung_dims_is_constant(dims, want->type.extent[i], &extent) && extent == entry->extent[i]) continue;
    return rung_fail(error, RUNG_SHAPE_MISMATCH,
                     "weight \"%s\" has another extent %d in the store than the program wants", want->name, i);
  }
  return RUNG_OK;
}

/* A mapped page that is touched brings its neighbours, up to 2 MiB of them, into the process. So what is small is
 * copied, and its pages can go with all others; large weights stay where they lie. */
enum { SMALL_WEIGHT = 64 << 10 };

static rung_status pin(rung_view *view, const rung_tensor_entry *entry, rung_error *error) {
  rung_pinned *p = rung_host_alloc(view->host, RUNG_MEMORY_host, sizeof *p, 0);
  if (!p) return rung_fail(error, RUNG_OUT_OF_MEMORY, "weight \"%s\": out of memory", entry->name);
  p->entry = entry;
  rung_status status = RUNG_OK;
  if (entry->bytes <= SMALL_WEIGHT && rung_weights_can_let_go(view->weights, entry)) {
    p->copy = rung_host_alloc_raw(view->host, RUNG_MEMORY_weights, entry->bytes, 64);
    if (p->copy)
      memcpy(p->copy, entry->data, entry->bytes);
    else if (!(status = rung_host_would_fit(view->host, entry->bytes, entry->name, error)))
      status = rung_fail(error, RUNG_OUT_OF_MEMORY, "weight \"%s\": out of memory", entry->name);
  } else {
    status = rung_weights_account(view->weights, entry, error);
  }
  if (status) {
    rung_host_free(view->host, RUNG_MEMORY_host, p, sizeof *p);
    return status;
  }
  view->touched += entry->bytes;
  p->next = view->pinned;
  view->pinned = p;
  return RUNG_OK;
}

rung_status rung_view_weight(rung_view *view, const rung_plan_weight *want, rung_error *error,
                             const uint8_t **out_data) {
  const rung_tensor_entry *entry;
  RUNG_TRY(find_weight(view, want, error, &entry));
  rung_mutex_lock(&view->lock);
  rung_status status = RUNG_OK;
  const rung_pinned *pinned = view->pinned;
  while (pinned && pinned->entry != entry) pinned = pinned->next;
  if (!pinned && !(status = pin(view, entry, error))) pinned = view->pinned;
  if (!status) *out_data = pinned->copy ? pinned->copy : entry->data;
  rung_mutex_unlock(&view->lock);
  return status;
}

/* Under the lock. */
static void let_all_go(rung_view *view) {
  if (view->touched) rung_weights_rest(view->weights);
  view->touched = 0;
}

void rung_view_rest(rung_view *view) {
  rung_mutex_lock(&view->lock);
  let_all_go(view);
  rung_mutex_unlock(&view->lock);
}

/* ---- packing */

typedef struct packing {
  const rung_layout *layout;
  const rung_form_rows *rows;
  uint8_t *base;      /* of the form */
  uint64_t row_bytes; /* of a row as it lies */
  int64_t count, k;   /* rows of the form, elements of a row */
  int64_t panel;      /* rows per unit of work */
  uint64_t panel_bytes;
  int64_t first; /* panel of this slice */
} packing;

enum { MAX_PANEL = 256, PLAIN_PANEL = 16 };

static void pack_panel(void *self, int64_t task, int thread) {
  (void)thread;
  const packing *p = self;
  const int64_t panel = p->first + task, first = panel * p->panel;
  const int64_t rows = p->count - first < p->panel ? p->count - first : p->panel;
  uint8_t *out = p->base + (uint64_t)panel * p->panel_bytes;
  const uint8_t *row[MAX_PANEL];
  for (int64_t i = 0; i < rows; i++) row[i] = p->rows->row(p->rows->self, first + i);
  if (p->layout) {
    p->layout->pack(row, rows, p->k, out);
    return;
  }
  for (int64_t i = 0; i < rows; i++) memcpy(out + (uint64_t)i * p->row_bytes, row[i], p->row_bytes);
}

static int64_t form_rows(const rung_plan_form *form, const rung_dims *dims, int64_t *out_k) {
  int64_t rows = 1, extent = 1;
  for (int i = 0; i < form->type.rank; i++) {
    rung_dims_is_constant(dims, form->type.extent[i], &extent);
    if (i < form->type.rank - 1) rows *= extent;
  }
  *out_k = extent;
  return rows;
}

static int64_t slice_panels(uint64_t panel_bytes, int64_t panels) {
  const int64_t step = panel_bytes ? (int64_t)(RUNG_FORM_SLICE / panel_bytes) : panels;
  return step < 1 ? 1 : step < panels ? step : panels;
}

int64_t rung_form_slice_rows(const rung_plan *plan, const rung_plan_form *want) {
  int64_t k;
  const rung_layout *layout = rung_target_layout(plan->target, want->type.layout);
  const int64_t rows = form_rows(want, &plan->dims, &k), panel = layout ? layout->panel : PLAIN_PANEL;
  const uint64_t bytes = layout ? layout->panel_bytes(k) : rung_type_bytes(want->type.type, (uint64_t)k) * PLAIN_PANEL;
  const int64_t slice = slice_panels(bytes, (rows + panel - 1) / panel) * panel;
  return slice < rows ? slice : rows;
}

rung_status rung_form_pack(const rung_program *program, const rung_plan_form *want, rung_form *form,
                           const rung_form_rows *rows, rung_error *error) {
  const rung_plan *plan = program->plan;
  packing p = {.layout = rung_target_layout(plan->target, want->type.layout), .rows = rows, .base = form->region.base};
  p.count = form_rows(want, &plan->dims, &p.k);
  p.row_bytes = rung_type_bytes(want->type.type, (uint64_t)p.k);
  p.panel = p.layout ? p.layout->panel : PLAIN_PANEL;
  p.panel_bytes = p.layout ? p.layout->panel_bytes(p.k) : p.row_bytes * PLAIN_PANEL;
  if (p.panel > MAX_PANEL)
    return rung_fail(error, RUNG_INTERNAL, "layout %s: panels of %d rows", p.layout->name, (int)p.panel);
  const int64_t panels = (p.count + p.panel - 1) / p.panel, step = slice_panels(p.panel_bytes, panels);
  for (p.first = 0; p.first < panels; p.first += step) {
    const int64_t count = panels - p.first < step ? panels - p.first : step;
    const int64_t first = p.first * p.panel, end = (p.first + count) * p.panel, limit = end < p.count ? end : p.count;
    if (rows->begin) rows->begin(rows->self, first, limit);
    rung_pool_run(program->template_->device->pool, program->template_->threads, count, pack_panel, &p);
    if (rows->end) rows->end(rows->self, first, limit);
  }
  return RUNG_OK;
}

/* ---- weights together: their rows are packed where they lie */

typedef struct gathered {
  rung_view *view;
  const rung_form *form;
  uint64_t row_bytes;
  uint64_t most; /* bytes of source pages that may be held at once */
} gathered;

/* Row r of the form: concat puts the members one after another, interleave takes `panel` rows from each in turn. */
static const uint8_t *gathered_row(void *self, int64_t r) {
  const gathered *g = self;
  const rung_form *f = g->form;
  uint32_t s = 0;
  if (f->recipe == RUNG_FORM_INTERLEAVE) {
    const int64_t group = r / f->panel;
    s = (uint32_t)(group % f->sources);
    r = group / f->sources * f->panel + r % f->panel;
  } else {
    int64_t rows;
    for (; s + 1 < f->sources; s++, r -= rows) {
      rows = 1;
      for (int i = 0; i < f->source[s]->rank - 1; i++) rows *= f->source[s]->extent[i];
      if (r < rows) break;
    }
  }
  return (const uint8_t *)f->source[s]->data + (uint64_t)r * g->row_bytes;
}

/* Lets all source pages go where the rows to come would make them more than the prediction. A call for each run of rows
 * would cost more than packing does: every one interrupts the other cores. */
static void make_room(void *self, int64_t first, int64_t limit) {
  const gathered *g = self;
  const uint64_t bytes = (uint64_t)(limit - first) * g->row_bytes;
  if (g->view->touched + bytes > g->most) let_all_go(g->view);
  g->view->touched += bytes;
}

uint64_t rung_form_committed(const rung_plan_form *form, size_t page) { return (form->bytes + page - 1) / page * page; }
uint64_t rung_form_load_bytes(const rung_plan *plan, const rung_plan_form *form) {
  if (form->node->bodies) return rung_form_body_bytes(plan, form);
  return form->bytes < RUNG_FORM_SLICE ? form->bytes : RUNG_FORM_SLICE;
}

static rung_status fill(rung_view *view, const rung_program *program, const rung_plan_form *want, rung_form *form,
                        rung_error *error) {
  if (form->recipe == RUNG_FORM_BODY) return rung_form_body_fill(view, program, want, form, error);
  int64_t k;
  form_rows(want, &program->plan->dims, &k);
  gathered g = {.view = view,
                .form = form,
                .row_bytes = rung_type_bytes(want->type.type, (uint64_t)k),
                .most = program->load_bytes};
  const rung_form_rows rows = {.self = &g, .row = gathered_row, .begin = make_room};
  RUNG_TRY(rung_host_account(view->host, RUNG_MEMORY_load, g.most, error));
  const rung_status status = rung_form_pack(program, want, form, &rows, error);
  rung_host_unaccount(view->host, RUNG_MEMORY_load, g.most);
  return status;
}

static bool same_form(const rung_form *form, const rung_form_attrs *attrs, rung_hash body,
                      const rung_tensor_entry *const *source, uint32_t sources) {
  if (form->recipe != attrs->recipe || form->panel != attrs->panel || form->layout != attrs->layout ||
      form->sources != sources)
    return false;
  if (!rung_hash_equal(form->body, body)) return false;
  return memcmp(form->source, source, sources * sizeof *source) == 0;
}

static rung_status form_create(rung_view *view, const rung_program *program, const rung_plan_form *want, rung_hash body,
                               const rung_tensor_entry *const *source, rung_error *error, rung_form **out_form) {
  const rung_form_attrs *attrs = want->node->attrs;
  rung_form *form = rung_host_alloc(view->host, RUNG_MEMORY_host, sizeof *form, 0);
  const rung_tensor_entry **entries = rung_host_array(view->host, want->weights, sizeof *entries);
  if (!form || !entries) {
    rung_host_free(view->host, RUNG_MEMORY_host, form, sizeof *form);
    rung_host_free(view->host, RUNG_MEMORY_host, entries, want->weights * sizeof *entries);
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "form of \"%s\": out of memory", source[0]->name);
  }
  memcpy(entries, source, want->weights * sizeof *entries);
  *form = (rung_form){.recipe = attrs->recipe,
                      .panel = attrs->panel,
                      .layout = (uint16_t)attrs->layout,
                      .body = body,
                      .sources = want->weights,
                      .source = entries};
  rung_status status =
      rung_region_init(&form->region, view->host, RUNG_MEMORY_packed, want->bytes ? want->bytes : 1, error);
  if (!status && want->bytes) status = rung_region_commit(&form->region, 0, want->bytes, error);
  if (!status && want->bytes) status = fill(view, program, want, form, error);
  if (status) {
    form_destroy(view, form);
    return rung_fail_prefix(error, status, "form of \"%s\"", source[0]->name);
  }
  *out_form = form;
  return RUNG_OK;
}

rung_status rung_view_form(rung_view *view, const rung_program *program, uint32_t index, rung_error *error,
                           const uint8_t **out_data) {
  const rung_plan_form *want = &program->plan->form[index];
  const rung_tensor_entry **source = rung_host_array(view->host, want->weights, sizeof *source);
  if (!source) return rung_fail(error, RUNG_OUT_OF_MEMORY, "form: out of memory");
  rung_status status = RUNG_OK;
  for (uint32_t i = 0; i < want->weights && !status; i++) {
    const rung_plan_weight *weight = &program->plan->weight[program->plan->form_weight[want->weight + i]];
    status = find_weight(view, weight, error, &source[i]);
    if (!status) status = check_extents(&program->plan->dims, weight, source[i], error);
  }
  rung_hash body = {0};
  if (!status) status = rung_form_body_hash(program, want, error, &body);
  if (!status) {
    rung_mutex_lock(&view->lock);
    rung_form *form = view->form;
    while (form && !same_form(form, want->node->attrs, body, source, want->weights)) form = form->next;
    if (!form && !(status = form_create(view, program, want, body, source, error, &form))) {
      form->next = view->form;
      view->form = form;
    }
    if (!status) *out_data = form->region.base;
    rung_mutex_unlock(&view->lock);
    if (!status) rung_progress(view->host, "pack", index + 1, program->plan->forms);
  }
  rung_host_free(view->host, RUNG_MEMORY_host, source, want->weights * sizeof *source);
  return status;
}
