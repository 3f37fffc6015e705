/* SPDX-License-Identifier: MIT
 * Forms: weights packed for a layout, or put together. A form is packed once, in slices whose source pages are let go
 * before the next, so that loading never holds two copies of a model. */
#include <string.h>

#include "ops/attrs.h"
#include "runtime/runtime.h"

/* Under change. */
static void let_all_go(rung_derived *derived) {
  if (derived->touched) rung_weights_rest(derived->weights);
  derived->touched = 0;
}

void rung_derived_rest(rung_derived *derived) { let_all_go(derived); }

/* A call for each run of rows would cost more than packing does: every one interrupts the other cores. */
void rung_derived_touch(rung_derived *derived, uint64_t bytes, uint64_t most) {
  if (derived->touched + bytes > most) let_all_go(derived);
  derived->touched += bytes;
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

static int64_t slice_panels(uint64_t panel_bytes, int64_t panels, uint64_t slice) {
  const int64_t step = panel_bytes ? (int64_t)(slice / panel_bytes) : panels;
  return step < 1 ? 1 : step < panels ? step : panels;
}

int64_t rung_form_slice_rows(const rung_plan *plan, const rung_plan_form *want, uint64_t most) {
  int64_t k;
  const rung_layout *layout = rung_target_layout(plan->target, want->type.layout);
  const int64_t rows = form_rows(want, plan->dims, &k), panel = layout ? layout->panel : PLAIN_PANEL;
  const uint64_t bytes = layout ? layout->panel_bytes(k) : rung_type_bytes(want->type.type, (uint64_t)k) * PLAIN_PANEL;
  const int64_t slice = slice_panels(bytes, (rows + panel - 1) / panel, most) * panel;
  return slice < rows ? slice : rows;
}

rung_status rung_form_pack(const rung_program *program, const rung_plan_form *want, rung_form *form,
                           const rung_form_rows *rows, rung_error *error) {
  const rung_plan *plan = program->plan;
  packing p = {.layout = rung_target_layout(plan->target, want->type.layout), .rows = rows, .base = form->region.base};
  p.count = form_rows(want, plan->dims, &p.k);
  p.row_bytes = rung_type_bytes(want->type.type, (uint64_t)p.k);
  p.panel = p.layout ? p.layout->panel : PLAIN_PANEL;
  p.panel_bytes = p.layout ? p.layout->panel_bytes(p.k) : p.row_bytes * PLAIN_PANEL;
  if (p.panel > MAX_PANEL)
    return rung_fail(error, RUNG_INTERNAL, "layout %s: panels of %d rows", p.layout->name, (int)p.panel);
  const int64_t panels = (p.count + p.panel - 1) / p.panel, step = slice_panels(p.panel_bytes, panels, rows->slice);
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
  rung_derived *derived;
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
      const rung_tensor_entry *entry = f->source[s]->entry;
      for (int i = 0; i < entry->rank - 1; i++) rows *= entry->extent[i];
      if (r < rows) break;
    }
  }
  return (const uint8_t *)f->source[s]->data + (uint64_t)r * g->row_bytes;
}

static void make_room(void *self, int64_t first, int64_t limit) {
  const gathered *g = self;
  rung_derived_touch(g->derived, (uint64_t)(limit - first) * g->row_bytes, g->most);
}

uint64_t rung_form_committed(const rung_plan_form *form, size_t page) { return (form->bytes + page - 1) / page * page; }
uint64_t rung_form_load_bytes(const rung_plan *plan, const rung_plan_form *form) {
  if (form->node->bodies) return rung_form_body_bytes(plan, form);
  return form->bytes < RUNG_FORM_SLICE ? form->bytes : RUNG_FORM_SLICE;
}

static rung_status fill(rung_derived *derived, const rung_program *program, const rung_plan_form *want, rung_form *form,
                        rung_error *error) {
  if (form->recipe == RUNG_FORM_BODY) return rung_form_body_fill(derived, program, want, form, error);
  int64_t k;
  form_rows(want, program->plan->dims, &k);
  gathered g = {.derived = derived,
                .form = form,
                .row_bytes = rung_type_bytes(want->type.type, (uint64_t)k),
                .most = program->load_bytes};
  const rung_form_rows rows = {.self = &g, .slice = RUNG_FORM_SLICE, .row = gathered_row, .begin = make_room};
  RUNG_TRY(rung_host_account(derived->host, RUNG_MEMORY_load, g.most, error));
  const rung_status status = rung_form_pack(program, want, form, &rows, error);
  rung_host_unaccount(derived->host, RUNG_MEMORY_load, g.most);
  return status;
}

/* ---- far memory */

rung_status rung_far_place(rung_host *host, const rung_far *far, rung_memory_class class_, const void *data,
                           uint64_t bytes, rung_error *error, uint8_t **out_there) {
  *out_there = NULL;
  if (!bytes) return RUNG_OK;
  RUNG_TRY(rung_host_account(host, class_, bytes, error));
  *out_there = rung_host_fault(host, RUNG_FAULT_ALLOC) ? NULL : far->alloc(far->self, bytes);
  if (!*out_there) {
    rung_host_unaccount(host, class_, bytes);
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "%llu bytes of the device's memory could not be allocated",
                     (unsigned long long)bytes);
  }
  if (!data) return RUNG_OK;
  far->write(far->self, *out_there, data, bytes);
  const rung_status status = rung_far_check(far, error);
  if (!status) return RUNG_OK;
  rung_far_remove(host, far, class_, *out_there, bytes);
  *out_there = NULL;
  return status;
}

void rung_far_remove(rung_host *host, const rung_far *far, rung_memory_class class_, uint8_t *there, uint64_t bytes) {
  if (!there) return;
  far->free(far->self, there, bytes);
  rung_host_unaccount(host, class_, bytes);
}

/* A form that was packed here, or found in a file, goes to the device; nothing of it stays here. */
static rung_status move_there(rung_derived *derived, rung_form *form, uint64_t bytes, rung_error *error) {
  if (!form->far) return RUNG_OK;
  RUNG_TRY(rung_far_place(derived->host, form->far, RUNG_MEMORY_packed, form->data, bytes, error, &form->there));
  form->there_bytes = form->there ? bytes : 0;
  form->data = form->there;
  rung_region_finish(&form->region);
  if (form->bank) rung_host_unaccount(derived->host, RUNG_MEMORY_packed, form->mapped);
  rung_sections_release(form->bank);
  form->bank = NULL;
  form->mapped = 0;
  return RUNG_OK;
}

/* ---- life */

void rung_form_destroy(rung_derived *derived, rung_form *form) {
  rung_region_finish(&form->region);
  rung_far_remove(derived->host, form->far, RUNG_MEMORY_packed, form->there, form->there_bytes);
  if (form->bank) rung_host_unaccount(derived->host, RUNG_MEMORY_packed, form->mapped);
  rung_sections_release(form->bank);
  for (uint32_t i = 0; i < form->sources; i++) rung_tensor_value_release(derived->weights, form->source[i]);
  rung_host_free(derived->host, RUNG_MEMORY_host, form->source, form->sources * sizeof *form->source);
  rung_host_free(derived->host, RUNG_MEMORY_host, form, sizeof *form);
}

static rung_status make(rung_derived *derived, const rung_program *program, const rung_plan_form *want, rung_form *form,
                        rung_error *error) {
  for (uint32_t i = 0; i < form->sources; i++)
    if (!form->source[i]->data)
      return rung_fail(error, RUNG_NOT_LOADED, "weight \"%s\" has no value", form->source[i]->entry->name);
  RUNG_TRY(rung_region_init(&form->region, derived->host, form->far ? RUNG_MEMORY_load : RUNG_MEMORY_packed,
                            want->bytes ? want->bytes : 1, error));
  form->data = form->region.base;
  if (!want->bytes) return RUNG_OK;
  RUNG_TRY(rung_region_commit(&form->region, 0, want->bytes, error));
  return fill(derived, program, want, form, error);
}

static rung_status create(rung_derived *derived, const rung_program *program, const rung_form_key *key,
                          rung_error *error, rung_form **out_form) {
  const rung_plan_form *want = key->want;
  const rung_form_attrs *attrs = want->node->attrs;
  const char *name = key->source[0]->entry->name;
  rung_form *form = rung_host_alloc(derived->host, RUNG_MEMORY_host, sizeof *form, 0);
  rung_tensor_value **source = rung_host_array(derived->host, want->weights, sizeof *source);
  if (!form || !source) {
    rung_host_free(derived->host, RUNG_MEMORY_host, form, sizeof *form);
    rung_host_free(derived->host, RUNG_MEMORY_host, source, want->weights * sizeof *source);
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "form of \"%s\": out of memory", name);
  }
  *form = (rung_form){.recipe = attrs->recipe,
                      .panel = attrs->panel,
                      .layout = key->layout,
                      .body = key->body,
                      .sources = want->weights,
                      .source = source,
                      .far = key->far};
  for (uint32_t i = 0; i < want->weights; i++) rung_tensor_value_retain(source[i] = key->source[i]);
  rung_status status = rung_bank_map(derived, key, form, error);
  if (!status && !form->bank) status = make(derived, program, want, form, error);
  if (!status) status = move_there(derived, form, want->bytes, error);
  if (status) {
    rung_form_destroy(derived, form);
    return rung_fail_prefix(error, status, "form of \"%s\"", name);
  }
  *out_form = form;
  return RUNG_OK;
}

static bool same_form(const rung_form *form, const rung_form_key *key) {
  const rung_form_attrs *attrs = key->want->node->attrs;
  if (form->recipe != attrs->recipe || form->panel != attrs->panel || form->layout != key->layout ||
      form->sources != key->want->weights || form->far != key->far || !rung_hash_equal(form->body, key->body))
    return false;
  return memcmp(form->source, key->source, form->sources * sizeof *form->source) == 0;
}

rung_status rung_derived_form(rung_derived *derived, const rung_program *program, const rung_form_key *key,
                              rung_error *error, rung_form **out_form) {
  rung_host_lock(derived->host);
  rung_form *form = derived->form;
  while (form && !same_form(form, key)) form = form->next;
  if (form) form->references++;
  rung_host_unlock(derived->host);
  if (!form) {
    RUNG_TRY(create(derived, program, key, error, &form));
    rung_host_lock(derived->host);
    form->references = 1;
    form->next = derived->form;
    derived->form = form;
    rung_host_unlock(derived->host);
  }
  *out_form = form;
  return RUNG_OK;
}
