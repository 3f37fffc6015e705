/* SPDX-License-Identifier: MIT
 * New generations: sets of a view, commits of a view and of a store, and views that take their values from another. All
 * that can fail is done beside the current generation; publishing swaps pointers. */
#include <inttypes.h>
#include <string.h>

#include "runtime/runtime.h"

void rung_view_drop_values(rung_weights *weights, rung_tensor_value **value, size_t count) {
  if (!value) return;
  for (size_t i = 0; i < count; i++) rung_tensor_value_release(weights, value[i]);
  rung_host_free(rung_weights_host(weights), RUNG_MEMORY_host, value, count * sizeof *value);
}

/* Room for a value of each tensor, under change; what is there stays. */
static rung_status make_values(rung_weights *weights, rung_error *error, rung_tensor_value ***out_value) {
  *out_value = rung_host_array(rung_weights_host(weights), rung_weights_count(weights), sizeof **out_value);
  return *out_value ? RUNG_OK : rung_fail(error, RUNG_OUT_OF_MEMORY, "view: out of memory for its values");
}

/* ---- sets of a view */

static rung_status set(rung_view *view, const rung_weight_write *write, rung_error *error) {
  if (!view || !write->name) return rung_fail(error, RUNG_INVALID_ARGUMENT, "set: view and name are required");
  rung_weights *weights = rung_view_lock(view);
  const rung_tensor_entry *entry = rung_weights_find(weights, write->name);
  rung_status status = entry ? RUNG_OK : rung_fail(error, RUNG_NOT_FOUND, "there is no tensor '%s'", write->name);
  if (!status && !view->pending) status = make_values(weights, error, &view->pending);
  if (!status) {
    const rung_sources now = {.derived = view->derived, .own = view->own};
    rung_tensor_value **pending = &view->pending[entry->index];
    status = rung_tensor_value_write(weights, entry, rung_sources_value(&now, entry), *pending, write, error, pending);
  }
  rung_view_unlock(weights);
  return status;
}

rung_status rung_view_set_weight(rung_view *view, const char *name, rung_type type, const void *data, uint64_t bytes,
                                 rung_error *error) {
  return set(view, &(rung_weight_write){.name = name, .whole = true, .type = type, .data = data, .bytes = bytes},
             error);
}

rung_status rung_view_set_weight_range(rung_view *view, const char *name, uint64_t offset, rung_type type,
                                       const void *data, uint64_t bytes, rung_error *error) {
  return set(view, &(rung_weight_write){.name = name, .offset = offset, .type = type, .data = data, .bytes = bytes},
             error);
}

rung_status rung_view_get_weight(rung_view *view, const char *name, uint64_t offset, rung_type type, void *out,
                                 uint64_t bytes, rung_error *error) {
  if (!view || !name) return rung_fail(error, RUNG_INVALID_ARGUMENT, "get: view and name are required");
  rung_weights *weights = NULL;
  rung_tensor_value *value = NULL;
  rung_host_lock(view->host);
  weights = view->weights;
  rung_weights_retain(weights);
  const rung_tensor_entry *entry = rung_weights_find(weights, name);
  if (entry) {
    value = rung_sources_value(&(rung_sources){.derived = view->derived, .own = view->own}, entry);
    rung_tensor_value_retain(value);
  }
  rung_host_unlock(view->host);
  const rung_weight_read read = {.offset = offset, .type = type, .out = out, .bytes = bytes};
  const rung_status status = entry ? rung_tensor_value_read(weights, entry, value, &read, error)
                                   : rung_fail(error, RUNG_NOT_FOUND, "there is no tensor '%s'", name);
  rung_tensor_value_release(weights, value);
  rung_weights_release(weights);
  return status;
}

/* Under change. */
static void drop_pending(rung_view *view, rung_weights *weights) {
  rung_view_drop_values(weights, view->pending, rung_weights_count(weights));
  view->pending = NULL;
}

void rung_view_discard(rung_view *view) {
  if (!view) return;
  rung_weights *weights = rung_view_lock(view);
  drop_pending(view, weights);
  rung_view_unlock(weights);
}

/* ---- commits */

/* Under both locks: what the pending sets displace is left in their place. */
static void take_pending(rung_view *view, size_t count) {
  for (size_t i = 0; i < count; i++) {
    rung_tensor_value *set = view->pending[i];
    if (!set) continue;
    view->pending[i] = view->own[i];
    view->own[i] = set;
  }
}

static rung_status commit(rung_view *view, rung_weights *weights, rung_error *error) {
  rung_host *host = view->host;
  if (!view->own) {
    rung_tensor_value **own;
    RUNG_TRY(make_values(weights, error, &own));
    rung_host_lock(host);
    view->own = own;
    rung_host_unlock(host);
  }
  const rung_sources sources = {.derived = view->derived, .own = view->own, .pending = view->pending};
  RUNG_TRY(rung_view_freshen(view, &sources, false, error));
  rung_dead dead = {NULL, NULL};
  rung_host_lock(host);
  take_pending(view, rung_weights_count(weights));
  rung_view_publish(view);
  rung_derived_sweep(view->derived, RUNG_SWEEP_UNREACHABLE, NULL, &dead);
  rung_host_unlock(host);
  rung_dead_destroy(view->derived, &dead);
  rung_view_drop_fresh(view);
  drop_pending(view, weights);
  return RUNG_OK;
}

rung_status rung_view_commit(rung_view *view, rung_error *error) {
  if (!view) return rung_fail(error, RUNG_INVALID_ARGUMENT, "commit: a view is required");
  rung_weights *weights = rung_view_lock(view);
  const rung_status status = view->pending ? commit(view, weights, error) : RUNG_OK;
  rung_view_unlock(weights);
  return status;
}

static rung_status freshen_all(rung_derived *derived, rung_error *error) {
  rung_status status = RUNG_OK;
  for (rung_view *v = derived->view; v && !status; v = v->next) {
    const rung_sources sources = {.derived = derived, .own = v->own, .store_pending = true};
    status = rung_view_freshen(v, &sources, false, error);
  }
  for (rung_view *v = derived->view; v && status; v = v->next) rung_view_drop_fresh(v);
  return status;
}

static rung_status commit_store(rung_weights *weights, rung_error *error) {
  rung_host *host = rung_weights_host(weights);
  rung_derived *derived = rung_weights_attached(weights);
  rung_dead dead = {NULL, NULL};
  if (derived) RUNG_TRY(freshen_all(derived, error));
  rung_host_lock(host);
  rung_weights_publish(weights);
  for (rung_view *v = derived ? derived->view : NULL; v; v = v->next) rung_view_publish(v);
  if (derived) rung_derived_sweep(derived, RUNG_SWEEP_UNREACHABLE, NULL, &dead);
  rung_host_unlock(host);
  if (derived) rung_dead_destroy(derived, &dead);
  for (rung_view *v = derived ? derived->view : NULL; v; v = v->next) rung_view_drop_fresh(v);
  rung_weights_drop_pending(weights);
  return RUNG_OK;
}

rung_status rung_weights_commit(rung_weights *weights, rung_error *error) {
  if (!weights) return rung_fail(error, RUNG_INVALID_ARGUMENT, "commit: a store is required");
  rung_weights_lock_change(weights);
  const rung_status status = rung_weights_has_pending(weights) ? commit_store(weights, error) : RUNG_OK;
  rung_weights_unlock_change(weights);
  return status;
}

/* ---- from another view */

/* Two views and their stores, the change locks of both held. */
typedef struct pair {
  rung_view *view, *other;
  rung_weights *to, *from; /* retained */
} pair;

static void unlock_pair(pair *p) {
  rung_weights_unlock_change(p->to);
  if (p->from != p->to) rung_weights_unlock_change(p->from);
  rung_weights_release(p->to);
  rung_weights_release(p->from);
}

static bool still_there(const pair *p) {
  rung_host_lock(p->view->host);
  const bool there = p->view->weights == p->to && p->other->weights == p->from;
  rung_host_unlock(p->view->host);
  return there;
}

static void lock_pair(pair *p) {
  for (;;) {
    rung_host_lock(p->view->host);
    p->to = p->view->weights;
    p->from = p->other->weights;
    rung_weights_retain(p->to);
    rung_weights_retain(p->from);
    rung_host_unlock(p->view->host);
    const bool swapped = (uintptr_t)p->from < (uintptr_t)p->to; /* one order, whoever takes from whom */
    rung_weights_lock_change(swapped ? p->from : p->to);
    if (p->from != p->to) rung_weights_lock_change(swapped ? p->to : p->from);
    if (still_there(p)) return;
    unlock_pair(p);
  }
}

static rung_status check_same(const rung_tensor_entry *want, const rung_tensor_entry *have, const char *call,
                              rung_error *error) {
  if (!have) return rung_fail(error, RUNG_NOT_FOUND, "%s: the other view has no tensor '%s'", call, want->name);
  if (have->type != want->type)
    return rung_fail(error, RUNG_TYPE_MISMATCH, "%s: tensor '%s' is %s here and %s in the other view", call, want->name,
                     rung_type_name(want->type), rung_type_name(have->type));
  bool same = have->rank == want->rank;
  for (int i = 0; same && i < want->rank; i++) same = have->extent[i] == want->extent[i];
  return same ? RUNG_OK
              : rung_fail(error, RUNG_SHAPE_MISMATCH, "%s: tensor '%s' has other extents in the other view", call,
                          want->name);
}

/* Every weight of both has the same name, type and extents, and a value in the other. */
static rung_status check_pair(const pair *p, const char *call, rung_error *error) {
  const rung_sources sources = {.derived = p->other->derived, .own = p->other->own};
  const size_t count = rung_weights_count(p->to), others = rung_weights_count(p->from);
  if (p->view->pending)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "%s: the view has sets that wait for a commit or a discard", call);
  for (size_t i = 0; i < others; i++) {
    const rung_tensor_entry *have = rung_weights_entry(p->from, i);
    if (!rung_weights_find(p->to, have->name))
      return rung_fail(error, RUNG_NOT_FOUND, "%s: the view has no tensor '%s', the other one has", call, have->name);
  }
  for (size_t i = 0; i < count; i++) {
    const rung_tensor_entry *want = rung_weights_entry(p->to, i), *have = rung_weights_find(p->from, want->name);
    RUNG_TRY(check_same(want, have, call, error));
    if (!rung_sources_value(&sources, have))
      return rung_fail(error, RUNG_NOT_LOADED, "%s: tensor '%s' is not loaded in the other view", call, want->name);
  }
  return RUNG_OK;
}

/* Replaces the private values of a view, and its store where `weights` is another. `own` is the view's afterwards. */
static rung_status replace(pair *p, rung_weights *weights, rung_tensor_value **own, rung_error *error) {
  rung_view *view = p->view;
  rung_derived *to = weights == p->to ? view->derived : p->other->derived, *before = view->derived;
  const rung_sources sources = {.derived = to, .own = own};
  RUNG_TRY(rung_view_freshen(view, &sources, true, error));
  rung_dead dead = {NULL, NULL};
  rung_tensor_value **old = view->own;
  rung_host_lock(view->host);
  if (to != before) {
    rung_view **at = &before->view;
    while (*at != view) at = &(*at)->next;
    *at = view->next;
    view->next = to->view;
    to->view = view;
    view->derived = to;
    view->weights = weights;
  }
  view->own = own;
  rung_view_publish(view);
  rung_derived_sweep(before, RUNG_SWEEP_UNREACHABLE, NULL, &dead);
  rung_host_unlock(view->host);
  rung_dead_destroy(before, &dead);
  rung_view_drop_fresh(view);
  rung_view_drop_values(p->to, old, rung_weights_count(p->to));
  if (to != before) { /* the view's reference goes over; the pair still holds both */
    rung_weights_retain(weights);
    rung_weights_release(p->to);
  }
  return RUNG_OK;
}

static rung_status check_arguments(const rung_view *view, const rung_view *other, const char *call, rung_error *error) {
  if (!view || !other) return rung_fail(error, RUNG_INVALID_ARGUMENT, "%s: two views are required", call);
  if (view == other) return rung_fail(error, RUNG_INVALID_ARGUMENT, "%s: the other view is the view itself", call);
  if (view->host != other->host)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "%s: the views belong to different hosts", call);
  return RUNG_OK;
}

rung_status rung_view_share_from(rung_view *view, rung_view *other, rung_error *error) {
  static const char call[] = "share";
  RUNG_TRY(check_arguments(view, other, call, error));
  pair p = {.view = view, .other = other};
  lock_pair(&p);
  rung_status status = check_pair(&p, call, error);
  rung_tensor_value **own = NULL;
  const size_t count = rung_weights_count(p.from);
  if (!status && other->own) status = make_values(p.from, error, &own);
  for (size_t i = 0; own && i < count; i++) rung_tensor_value_retain(own[i] = other->own[i]);
  if (!status && (status = replace(&p, p.from, own, error))) rung_view_drop_values(p.from, own, count);
  unlock_pair(&p);
  return status;
}

/* Values never change, so those of the view's own store are kept by reference; those of another store are copied. */
static rung_status copy_values(const pair *p, rung_tensor_value **own, rung_error *error) {
  const rung_sources sources = {.derived = p->other->derived, .own = p->other->own};
  for (size_t i = 0; i < rung_weights_count(p->to); i++) {
    const rung_tensor_entry *entry = rung_weights_entry(p->to, i);
    rung_tensor_value *value = rung_sources_value(&sources, rung_weights_find(p->from, entry->name));
    if (p->from == p->to)
      rung_tensor_value_retain(own[i] = value);
    else
      RUNG_TRY(rung_tensor_value_copy(p->to, entry, p->from, value, error, &own[i]));
  }
  return RUNG_OK;
}

rung_status rung_view_copy_from(rung_view *view, rung_view *other, rung_error *error) {
  static const char call[] = "copy";
  RUNG_TRY(check_arguments(view, other, call, error));
  pair p = {.view = view, .other = other};
  lock_pair(&p);
  rung_status status = check_pair(&p, call, error);
  rung_tensor_value **own = NULL;
  if (!status) status = make_values(p.to, error, &own);
  if (!status) status = copy_values(&p, own, error);
  if (!status) status = replace(&p, p.to, own, error);
  if (status) rung_view_drop_values(p.to, own, rung_weights_count(p.to));
  unlock_pair(&p);
  return status;
}
