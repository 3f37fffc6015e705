/* SPDX-License-Identifier: MIT
 * Views: a store, private values over it, a generation of both, and the tables by which programs read them. */
#include "runtime/runtime.h"

rung_status rung_view_create(rung_weights *weights, rung_error *error, rung_view **out_view) {
  if (!weights || !out_view) return rung_fail(error, RUNG_INVALID_ARGUMENT, "view: weights and out_view are required");
  rung_host *host = rung_weights_host(weights);
  rung_derived *derived;
  RUNG_TRY(rung_derived_of(weights, error, &derived));
  rung_view *view = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *view, 0);
  if (!view) return rung_fail(error, RUNG_OUT_OF_MEMORY, "view: out of memory");
  atomic_init(&view->references, 1);
  rung_host_retain(host);
  rung_weights_retain(weights);
  view->host = host;
  view->weights = weights;
  view->derived = derived;
  rung_weights_lock_change(weights);
  rung_host_lock(host);
  view->next = derived->view;
  derived->view = view;
  rung_host_unlock(host);
  rung_weights_unlock_change(weights);
  *out_view = view;
  return RUNG_OK;
}

void rung_view_retain(rung_view *view) {
  if (view) atomic_fetch_add(&view->references, 1);
}

rung_weights *rung_view_lock(rung_view *view) {
  for (;;) {
    rung_host_lock(view->host);
    rung_weights *weights = view->weights;
    rung_weights_retain(weights);
    rung_host_unlock(view->host);
    rung_weights_lock_change(weights);
    /* A view may have gone over to another store meanwhile. */
    rung_host_lock(view->host);
    const bool same = view->weights == weights;
    rung_host_unlock(view->host);
    if (same) return weights;
    rung_view_unlock(weights);
  }
}

void rung_view_unlock(rung_weights *weights) {
  rung_weights_unlock_change(weights);
  rung_weights_release(weights);
}

void rung_view_release(rung_view *view) {
  if (!view || atomic_fetch_sub(&view->references, 1) != 1) return;
  rung_host *host = view->host;
  rung_weights *weights = rung_view_lock(view);
  rung_derived *derived = view->derived;
  const size_t count = rung_weights_count(weights);
  rung_dead dead = {NULL, NULL};
  rung_host_lock(host);
  rung_view **at = &derived->view;
  while (*at != view) at = &(*at)->next;
  *at = view->next;
  rung_derived_sweep(derived, RUNG_SWEEP_UNREACHABLE, NULL, &dead);
  rung_host_unlock(host);
  rung_dead_destroy(derived, &dead);
  rung_view_drop_values(weights, view->own, count);
  rung_view_drop_values(weights, view->pending, count);
  rung_view_unlock(weights);
  rung_weights_release(weights);
  rung_host_free(host, RUNG_MEMORY_host, view, sizeof *view);
  rung_host_release(host);
}

/* ---- memory */

static bool is_pinned(const rung_derived *derived, const rung_tensor_value *value) {
  for (const rung_pinned *p = derived->pinned; p; p = p->next)
    if (p->value == value) return true;
  return false;
}

rung_memory rung_view_memory(const rung_view *view) {
  rung_memory m = {0};
  if (!view) return m;
  rung_host_lock(view->host);
  const rung_derived *derived = view->derived;
  const rung_sources sources = {.derived = view->derived, .own = view->own};
  for (const rung_form *f = derived->form; f; f = f->next)
    if (rung_view_binds(view, f->source, f->sources)) m.packed += rung_form_held(f);
  for (size_t i = 0; i < rung_weights_count(view->weights); i++) {
    const rung_tensor_value *value = rung_sources_value(&sources, rung_weights_entry(view->weights, i));
    if (value && (value->set || is_pinned(derived, value))) m.weights += value->entry->bytes;
  }
  rung_host_unlock(view->host);
  return m;
}

rung_memory rung_weights_memory(const rung_weights *weights) {
  rung_memory m = {0};
  const rung_derived *derived = weights ? rung_weights_attached(weights) : NULL;
  if (weights) m.weights = rung_weights_set_bytes(weights);
  if (!derived) return m;
  rung_host_lock(derived->host);
  for (const rung_form *f = derived->form; f; f = f->next) m.packed += rung_form_held(f);
  for (const rung_pinned *p = derived->pinned; p; p = p->next) m.weights += p->value->set ? 0 : p->value->entry->bytes;
  rung_host_unlock(derived->host);
  return m;
}

static void trim(rung_derived *derived, rung_sweep which, const rung_view *view) {
  rung_dead dead = {NULL, NULL};
  rung_host_lock(derived->host);
  rung_derived_sweep(derived, which, view, &dead);
  rung_host_unlock(derived->host);
  rung_dead_destroy(derived, &dead);
}

void rung_view_trim(rung_view *view) {
  if (!view) return;
  rung_weights *weights = rung_view_lock(view);
  trim(view->derived, RUNG_SWEEP_VIEW, view);
  rung_view_unlock(weights);
}

void rung_weights_trim(rung_weights *weights) {
  rung_derived *derived = weights ? rung_weights_attached(weights) : NULL;
  if (derived) trim(derived, RUNG_SWEEP_ALL, NULL);
}

uint64_t rung_view_generation(const rung_view *view) {
  if (!view) return 0;
  rung_host_lock(view->host);
  const uint64_t generation = view->generation;
  rung_host_unlock(view->host);
  return generation;
}

/* ---- programs */

/* What the first program of a view takes of weights and forms is refused before any of it is made, with the whole of
 * it. Programs after it share most, and are refused form by form. */
static rung_status would_fit(rung_view *view, const rung_program *program, rung_error *error) {
  const rung_memory held = rung_view_memory(view);
  if (held.packed || held.weights) return RUNG_OK;
  const rung_plan *plan = program->plan;
  const size_t page = plan->target->far ? 1 : rung_host_page(view->host);
  uint64_t bytes = program->load_bytes + program->staging;
  for (uint32_t i = 0; i < plan->forms; i++) bytes += rung_form_committed(&plan->form[i], page);
  for (uint32_t i = 0; i < plan->roots; i++) {
    if (plan->root[i].kind != RUNG_ROOT_WEIGHT || !plan->root[i].read) continue;
    const rung_tensor_entry *entry = rung_weights_find(view->weights, plan->weight[plan->root[i].index].name);
    if (entry) bytes += entry->bytes;
  }
  return rung_host_would_fit(view->host, bytes, "weights and their forms", error);
}

static rung_status make_use(rung_view *view, const rung_program *program, rung_error *error, rung_use **out_use) {
  RUNG_TRY(would_fit(view, program, error));
  rung_use *use = rung_host_alloc(view->host, RUNG_MEMORY_host, sizeof *use, 0);
  if (!use) return rung_fail(error, RUNG_OUT_OF_MEMORY, "view: out of memory");
  const rung_sources sources = {.derived = view->derived, .own = view->own};
  use->program = program;
  rung_bank_use bank;
  rung_status status = rung_bank_fetch(&sources, program, error, &bank);
  if (!status) status = rung_table_make(&sources, program, error, &use->table);
  if (!status) rung_bank_keep(&sources, program, use->table, &bank);
  rung_derived_rest(view->derived);
  if (status) {
    rung_host_free(view->host, RUNG_MEMORY_host, use, sizeof *use);
    return status;
  }
  rung_host_lock(view->host);
  use->table->stamp = ++view->stamp;
  use->next = view->use;
  view->use = use;
  rung_host_unlock(view->host);
  *out_use = use;
  return RUNG_OK;
}

rung_status rung_view_use(rung_view *view, const rung_program *program, rung_error *error, rung_use **out_use) {
  rung_weights *weights = rung_view_lock(view);
  rung_use *use = view->use;
  while (use && use->program != program) use = use->next;
  const rung_status status = use ? RUNG_OK : make_use(view, program, error, &use);
  if (!status) {
    use->contexts++;
    *out_use = use;
  }
  rung_view_unlock(weights);
  return status;
}

void rung_view_unuse(rung_view *view, rung_use *use) {
  if (!use) return;
  rung_weights *weights = rung_view_lock(view);
  const bool last = --use->contexts == 0;
  if (last) {
    rung_host_lock(view->host);
    rung_use **at = &view->use;
    while (*at != use) at = &(*at)->next;
    *at = use->next;
    rung_host_unlock(view->host);
    rung_table_release(use->table);
    rung_host_free(view->host, RUNG_MEMORY_host, use, sizeof *use);
  }
  rung_view_unlock(weights);
}

rung_table *rung_use_table(rung_host *host, rung_use *use) {
  rung_host_lock(host);
  rung_table *table = use->table;
  table->references++;
  rung_host_unlock(host);
  return table;
}

/* ---- generations */

static bool reaches(const rung_program *program, const rung_sources *s) {
  const rung_weights *weights = s->derived->weights;
  for (uint32_t i = 0; i < program->plan->weights; i++) {
    const rung_tensor_entry *entry = rung_weights_find(weights, program->plan->weight[i].name);
    if (!entry) continue;
    if (s->pending && s->pending[entry->index]) return true;
    if (s->store_pending && rung_weights_pending(weights, entry) && !(s->own && s->own[entry->index])) return true;
  }
  return false;
}

rung_status rung_view_freshen(rung_view *view, const rung_sources *sources, bool all, rung_error *error) {
  rung_status status = RUNG_OK;
  for (rung_use *use = view->use; use && !status; use = use->next)
    if (all || reaches(use->program, sources)) status = rung_table_make(sources, use->program, error, &use->fresh);
  rung_derived_rest(sources->derived);
  if (status) rung_view_drop_fresh(view);
  return status;
}

void rung_view_publish(rung_view *view) {
  view->generation++;
  for (rung_use *use = view->use; use; use = use->next) {
    if (!use->fresh) continue;
    rung_table *before = use->table;
    use->table = use->fresh;
    use->table->stamp = ++view->stamp;
    use->fresh = before;
  }
}

void rung_view_drop_fresh(rung_view *view) {
  for (rung_use *use = view->use; use; use = use->next) {
    rung_table_release(use->fresh);
    use->fresh = NULL;
  }
}
