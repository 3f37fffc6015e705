/* SPDX-License-Identifier: MIT
 * What is derived of a store's weights, shared by its views: looked up and made for tables, dropped when nothing can
 * reach it any more. */
#include <string.h>

#include "passes/pass.h"
#include "runtime/runtime.h"

static void destroy(void *object) {
  rung_derived *derived = object;
  /* Tables and views hold the store, so nothing is left of either. */
  rung_dead dead = {derived->form, derived->pinned};
  rung_dead_destroy(derived, &dead);
  rung_banks_close(derived);
  rung_host_free(derived->host, RUNG_MEMORY_host, derived, sizeof *derived);
}

rung_status rung_derived_of(rung_weights *weights, rung_error *error, rung_derived **out_derived) {
  void *there = rung_weights_attached(weights);
  if (!there) {
    rung_host *host = rung_weights_host(weights);
    rung_derived *derived = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *derived, 0);
    if (!derived) return rung_fail(error, RUNG_OUT_OF_MEMORY, "view: out of memory");
    derived->host = host;
    derived->weights = weights;
    rung_weights_attach(weights, derived, destroy, &there);
    if (there != derived) rung_host_free(host, RUNG_MEMORY_host, derived, sizeof *derived);
  }
  *out_derived = there;
  return RUNG_OK;
}

/* ---- sources */

rung_tensor_value *rung_sources_value(const rung_sources *s, const rung_tensor_entry *entry) {
  if (s->pending && s->pending[entry->index]) return s->pending[entry->index];
  if (s->own && s->own[entry->index]) return s->own[entry->index];
  rung_tensor_value *pending = s->store_pending ? rung_weights_pending(s->derived->weights, entry) : NULL;
  return pending ? pending : rung_weights_now(s->derived->weights, entry);
}

/* For forms it is enough to know what a weight is: they may be found ready made. */
static rung_tensor_value *value_or_known(const rung_sources *s, const rung_tensor_entry *entry) {
  rung_tensor_value *value = rung_sources_value(s, entry);
  return value ? value : rung_weights_known(s->derived->weights, entry);
}

bool rung_view_binds(const rung_view *view, rung_tensor_value *const *value, uint32_t count) {
  const rung_sources sources = {.derived = view->derived, .own = view->own};
  for (uint32_t i = 0; i < count; i++)
    if (value_or_known(&sources, value[i]->entry) != value[i]) return false;
  return true;
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

static rung_status find_value(const rung_sources *sources, const rung_plan *plan, uint32_t index, rung_error *error,
                              rung_tensor_value **out_value) {
  const rung_plan_weight *want = &plan->weight[index];
  const rung_tensor_entry *entry = rung_weights_find(sources->derived->weights, want->name);
  if (!entry) return rung_fail(error, RUNG_NOT_LOADED, "weight \"%s\" is not in the store", want->name);
  *out_value = value_or_known(sources, entry);
  if (!*out_value) return rung_fail(error, RUNG_NOT_LOADED, "weight \"%s\" is declared but not loaded", want->name);
  if (entry->type != want->type.type)
    return rung_fail(error, RUNG_TYPE_MISMATCH, "weight \"%s\" is %s in the store, the program wants %s", want->name,
                     rung_type_name(entry->type), rung_type_name(want->type.type));
  if (entry->rank != want->type.rank)
    return rung_fail(error, RUNG_SHAPE_MISMATCH, "weight \"%s\" has rank %d in the store, the program wants %d",
                     want->name, entry->rank, want->type.rank);
  return check_extents(plan->dims, want, entry, error);
}

/* ---- weights in place */

/* A mapped page that is touched brings its neighbours, up to 2 MiB of them, into the process. So what is small is
 * copied, and its pages can go with all others; large weights stay where they lie, if kernels can read them there. */
enum { SMALL_WEIGHT = 64 << 10 };

/* Protobuf puts numbers at any byte. Blocks lie well in GGUF files. */
static bool lies_well(const rung_tensor_value *value) {
  const rung_type_row *row = rung_type_get(value->entry->type);
  return (uintptr_t)value->data % (row->class_ == RUNG_CLASS_BLOCK ? 8 : row->bytes) == 0;
}

/* The same for all readers of one value: whether a kernel wants it `aligned` decides the rest. */
static bool is_copied(const rung_derived *derived, const rung_tensor_value *value, bool aligned, const rung_far *far) {
  if (far || (aligned && !lies_well(value))) return true;
  return value->entry->bytes <= SMALL_WEIGHT && rung_tensor_value_can_let_go(derived->weights, value);
}

uint64_t rung_weight_load_bytes(const rung_plan *plan, const rung_plan_weight *weight) {
  int64_t elements = 0;
  rung_type_is_fixed(plan->dims, &weight->type, &elements);
  const uint64_t bytes = rung_type_bytes(weight->type.type, (uint64_t)elements);
  if (!plan->target->far && !weight->aligned && bytes > SMALL_WEIGHT) return 0;
  return bytes < RUNG_FORM_SLICE ? bytes : RUNG_FORM_SLICE;
}

uint64_t rung_view_copied(rung_view *view, const rung_program *program) {
  const rung_plan *plan = program->plan;
  uint64_t bytes = 0;
  rung_weights *weights = rung_view_lock(view);
  const rung_sources sources = {.derived = view->derived, .own = view->own};
  for (uint32_t i = 0; i < plan->roots; i++) {
    const rung_root *root = &plan->root[i];
    if (root->kind != RUNG_ROOT_WEIGHT || !root->read) continue;
    const rung_plan_weight *weight = &plan->weight[root->index];
    const rung_tensor_entry *entry = rung_weights_find(weights, weight->name);
    const rung_tensor_value *value = entry ? rung_sources_value(&sources, entry) : NULL;
    if (value && is_copied(view->derived, value, weight->aligned, plan->target->far)) bytes += entry->bytes;
  }
  rung_view_unlock(weights);
  return bytes;
}

static void pinned_destroy(rung_derived *derived, rung_pinned *p) {
  const rung_tensor_entry *entry = p->value->entry;
  if (p->far)
    rung_far_remove(derived->host, p->far, RUNG_MEMORY_weights, p->copy, entry->bytes);
  else if (p->copy)
    rung_host_free(derived->host, RUNG_MEMORY_weights, p->copy, entry->bytes);
  else if (!p->value->set)
    rung_weights_unaccount(derived->weights, entry);
  rung_tensor_value_release(derived->weights, p->value);
  rung_host_free(derived->host, RUNG_MEMORY_host, p, sizeof *p);
}

/* In slices, so that the source's pages and the copy are never all held at once. */
static void fill_copy(rung_derived *derived, const rung_pinned *p, const rung_tensor_value *value, uint64_t most) {
  const uint8_t *from = value->data;
  for (uint64_t at = 0, n; at < value->entry->bytes; at += n) {
    n = value->entry->bytes - at;
    if (rung_tensor_value_can_let_go(derived->weights, value)) {
      if (n > most) n = most;
      rung_derived_touch(derived, n, most);
    }
    if (p->far)
      p->far->write(p->far->self, p->copy + at, from + at, n);
    else
      memcpy(p->copy + at, from + at, n);
  }
}

static rung_status make_copy(rung_derived *derived, rung_pinned *p, const rung_tensor_value *value,
                             const rung_program *program, rung_error *error) {
  const rung_tensor_entry *entry = value->entry;
  rung_host *host = derived->host;
  p->far = program->plan->target->far;
  if (p->far) {
    RUNG_TRY(rung_far_place(host, p->far, RUNG_MEMORY_weights, NULL, entry->bytes, error, &p->copy));
  } else {
    p->copy = rung_host_alloc_raw(host, RUNG_MEMORY_weights, entry->bytes, 64);
    if (!p->copy) {
      RUNG_TRY(rung_host_would_fit(host, entry->bytes, entry->name, error));
      return rung_fail(error, RUNG_OUT_OF_MEMORY, "weight \"%s\": out of memory", entry->name);
    }
  }
  rung_status status = rung_host_account(host, RUNG_MEMORY_load, program->load_bytes, error);
  if (!status) {
    fill_copy(derived, p, value, program->load_bytes);
    rung_host_unaccount(host, RUNG_MEMORY_load, program->load_bytes);
    if (p->far) status = rung_far_check(p->far, error);
  }
  if (status && p->far)
    rung_far_remove(host, p->far, RUNG_MEMORY_weights, p->copy, entry->bytes);
  else if (status)
    rung_host_free(host, RUNG_MEMORY_weights, p->copy, entry->bytes);
  return status;
}

static rung_status pin(rung_derived *derived, rung_tensor_value *value, const rung_program *program, bool aligned,
                       rung_error *error, rung_pinned **out_pinned) {
  const rung_tensor_entry *entry = value->entry;
  rung_pinned *p = rung_host_alloc(derived->host, RUNG_MEMORY_host, sizeof *p, 0);
  if (!p) return rung_fail(error, RUNG_OUT_OF_MEMORY, "weight \"%s\": out of memory", entry->name);
  rung_status status = RUNG_OK;
  if (is_copied(derived, value, aligned, program->plan->target->far))
    status = make_copy(derived, p, value, program, error);
  else if (!value->set)
    status = rung_weights_account(derived->weights, entry, error);
  if (status) {
    rung_host_free(derived->host, RUNG_MEMORY_host, p, sizeof *p);
    return status;
  }
  p->value = value;
  rung_tensor_value_retain(value);
  *out_pinned = p;
  return RUNG_OK;
}

static bool serves(const rung_pinned *p, const rung_tensor_value *value, const rung_far *far, bool aligned) {
  return p->value == value && p->far == far && (p->copy || !aligned || lies_well(value));
}

static rung_status find_pinned(rung_derived *derived, rung_tensor_value *value, const rung_program *program,
                               bool aligned, rung_error *error, rung_pinned **out_pinned) {
  rung_host_lock(derived->host);
  rung_pinned *p = derived->pinned;
  while (p && !serves(p, value, program->plan->target->far, aligned)) p = p->next;
  if (p) p->references++;
  rung_host_unlock(derived->host);
  if (!p) {
    RUNG_TRY(pin(derived, value, program, aligned, error, &p));
    rung_host_lock(derived->host);
    p->references = 1;
    p->next = derived->pinned;
    derived->pinned = p;
    rung_host_unlock(derived->host);
  }
  *out_pinned = p;
  return RUNG_OK;
}

/* ---- tables */

rung_status rung_form_key_make(const rung_sources *sources, const rung_program *program, uint32_t index,
                               rung_error *error, rung_form_key *out_key) {
  const rung_plan *plan = program->plan;
  const rung_plan_form *want = &plan->form[index];
  *out_key = (rung_form_key){.want = want,
                             .layout = rung_target_layout(plan->target, want->type.layout),
                             .far = plan->target->far,
                             .source = rung_host_array(sources->derived->host, want->weights, sizeof(void *))};
  if (!out_key->source) return rung_fail(error, RUNG_OUT_OF_MEMORY, "form: out of memory");
  for (uint32_t i = 0; i < want->weights; i++)
    RUNG_TRY(find_value(sources, plan, plan->form_weight[want->weight + i], error, &out_key->source[i]));
  return want->node->bodies ? rung_graph_hash(want->node->body[0], &out_key->body, error) : RUNG_OK;
}

void rung_form_key_finish(const rung_sources *sources, rung_form_key *key) {
  rung_host_free(sources->derived->host, RUNG_MEMORY_host, key->source, key->want->weights * sizeof(void *));
}

static rung_status form_root(const rung_sources *sources, const rung_program *program, uint32_t index,
                             rung_error *error, rung_table_root *out) {
  rung_form_key key;
  rung_status status = rung_form_key_make(sources, program, index, error, &key);
  if (!status) status = rung_derived_form(sources->derived, program, &key, error, &out->form);
  if (!status) {
    out->data = out->form->data;
    rung_progress(sources->derived->host, "pack", index + 1, program->plan->forms);
  }
  rung_form_key_finish(sources, &key);
  return status;
}

static rung_status weight_root(const rung_sources *sources, const rung_program *program, uint32_t index,
                               rung_error *error, rung_table_root *out) {
  const rung_plan *plan = program->plan;
  rung_tensor_value *value;
  RUNG_TRY(find_value(sources, plan, index, error, &value));
  if (!value->data) return rung_fail(error, RUNG_NOT_LOADED, "weight \"%s\" has no value", value->entry->name);
  RUNG_TRY(find_pinned(sources->derived, value, program, plan->weight[index].aligned, error, &out->pinned));
  out->data = out->pinned->copy ? out->pinned->copy : value->data;
  return RUNG_OK;
}

static size_t table_bytes(uint32_t roots) { return sizeof(rung_table) + roots * sizeof(rung_table_root); }

/* Forms lie side by side in large pages. Those that exist already, or are mapped from a file, are counted too: that
 * costs addresses, for as long as the table is being made and only if one is packed. */
static void expect_forms(rung_host *host, const rung_plan *plan) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < plan->forms; i++) rung_region_expect(host, plan->form[i].bytes, &sum);
  rung_region_expected(host, sum);
}

rung_status rung_table_make(const rung_sources *sources, const rung_program *program, rung_error *error,
                            rung_table **out_table) {
  const rung_plan *plan = program->plan;
  rung_table *table = rung_host_alloc(sources->derived->host, RUNG_MEMORY_host, table_bytes(plan->roots), 0);
  if (!table) return rung_fail(error, RUNG_OUT_OF_MEMORY, "table of weights: out of memory");
  rung_weights_retain(sources->derived->weights);
  table->references = 1;
  table->derived = sources->derived;
  table->roots = plan->roots;
  rung_status status = RUNG_OK;
  expect_forms(sources->derived->host, plan);
  for (uint32_t i = 0; i < plan->roots && !status; i++) {
    const rung_root *root = &plan->root[i];
    if (root->kind == RUNG_ROOT_FORM)
      status = form_root(sources, program, root->index, error, &table->root[i]);
    else if (root->kind == RUNG_ROOT_WEIGHT && root->read)
      status = weight_root(sources, program, root->index, error, &table->root[i]);
  }
  rung_region_expected(sources->derived->host, 0);
  if (status) {
    rung_table_release(table);
    return status;
  }
  *out_table = table;
  return RUNG_OK;
}

void rung_table_release(rung_table *table) {
  if (!table) return;
  rung_derived *derived = table->derived;
  rung_host *host = derived->host;
  rung_dead dead = {NULL, NULL};
  rung_host_lock(host);
  const bool last = --table->references == 0;
  for (uint32_t i = 0; last && i < table->roots; i++) {
    if (table->root[i].form) table->root[i].form->references--;
    if (table->root[i].pinned) table->root[i].pinned->references--;
  }
  if (last) rung_derived_sweep(derived, RUNG_SWEEP_UNREACHABLE, NULL, &dead);
  rung_host_unlock(host);
  if (!last) return;
  rung_dead_destroy(derived, &dead);
  rung_weights *weights = derived->weights;
  rung_host_free(host, RUNG_MEMORY_host, table, table_bytes(table->roots));
  rung_weights_release(weights); /* the host may go with it */
}

/* ---- sweeping */

static bool goes(const rung_derived *derived, rung_sweep which, const rung_view *view, rung_tensor_value *const *value,
                 uint32_t count) {
  if (which == RUNG_SWEEP_ALL) return true;
  if (which == RUNG_SWEEP_VIEW) return rung_view_binds(view, value, count);
  for (const rung_view *v = derived->view; v; v = v->next)
    if (rung_view_binds(v, value, count)) return false;
  return true;
}

void rung_derived_sweep(rung_derived *derived, rung_sweep which, const rung_view *view, rung_dead *out_dead) {
  for (rung_form **at = &derived->form; *at;) {
    rung_form *form = *at;
    if (form->references || !goes(derived, which, view, form->source, form->sources)) {
      at = &form->next;
      continue;
    }
    *at = form->next;
    form->next = out_dead->form;
    out_dead->form = form;
  }
  for (rung_pinned **at = &derived->pinned; *at;) {
    rung_pinned *pinned = *at;
    if (pinned->references || !goes(derived, which, view, &pinned->value, 1)) {
      at = &pinned->next;
      continue;
    }
    *at = pinned->next;
    pinned->next = out_dead->pinned;
    out_dead->pinned = pinned;
  }
}

void rung_dead_destroy(rung_derived *derived, rung_dead *dead) {
  while (dead->form) {
    rung_form *next = dead->form->next;
    rung_form_destroy(derived, dead->form);
    dead->form = next;
  }
  while (dead->pinned) {
    rung_pinned *next = dead->pinned->next;
    pinned_destroy(derived, dead->pinned);
    dead->pinned = next;
  }
}
