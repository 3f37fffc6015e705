/* SPDX-License-Identifier: MIT
 * Steps to launches, and launches to the device: one by one, or as a captured graph once the same list has been seen.
 *
 * A list is a stretch of steps between two that the host must take part in. Its bytes say all that its launches depend
 * on: functions, grids, pointers, extents. So a graph whose bytes are equal does the same, and sizes that alternate find
 * theirs again; what a context has seen least recently goes first. */
#include "backends/cuda/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { GRAPHS = 8, TABLES = 8, WORTH_A_GRAPH = 4 };

typedef struct captured {
  uint8_t *bytes; /* of the list; NULL: free */
  size_t size;
  uint64_t hash, used;
  void *executable; /* NULL: seen, not captured yet */
} captured;

typedef struct table {
  const uint32_t *host;
  uint64_t there;
  size_t bytes;
  uint64_t serial;
} table;

/* What steps keep for a context. */
typedef struct kept {
  rung_cuda *device;
  rung_cuda_list list;
  captured graph[GRAPHS];
  table table[TABLES];
  uint64_t clock, serial;
  rung_cuda_refusal *refusal; /* pinned: a copy of what is on the device, behind the steps */
  void *refusal_there;
  void *counters; /* on the device, RUNG_CUDA_COUNTERS words */
  bool failed;    /* a table could not be placed */
  rung_cuda_times times;
} kept;

/* ---- lists */

static rung_status list_room(rung_cuda_list *list, size_t bytes, rung_error *error) {
  void *data = list->data;
  if (!rung_host_grow(list->host, &data, &list->capacity, list->bytes + bytes, 1))
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory for a list of launches");
  list->data = data;
  return RUNG_OK;
}

rung_status rung_cuda_emit_product(const rung_cuda_step *step, const rung_cuda_product *product) {
  rung_cuda_list *list = step->list;
  const rung_cuda_launch launch = {.bytes = sizeof *product};
  if (product->m <= 0 || product->n <= 0) return RUNG_OK;
  RUNG_TRY(list_room(list, sizeof launch + sizeof *product, step->args->error));
  memcpy(list->data + list->bytes, &launch, sizeof launch);
  memcpy(list->data + list->bytes + sizeof launch, product, sizeof *product);
  list->bytes += sizeof launch + sizeof *product;
  list->launches++;
  return RUNG_OK;
}

rung_status rung_cuda_emit(const rung_cuda_step *step, int which, int64_t x, int64_t y, int64_t z, uint32_t threads,
                           uint32_t shared, const void *parameters, size_t bytes) {
  rung_cuda_list *list = step->list;
  if (x <= 0 || y <= 0 || z <= 0) return RUNG_OK;
  if (x > INT32_MAX || y > 65535 || z > 65535 || bytes > RUNG_CUDA_PARAMETERS)
    return rung_fail(step->args->error, RUNG_UNSUPPORTED, "cuda: %s needs a grid of %lld by %lld by %lld blocks",
                     step->prepared->kernel->row.name, (long long)x, (long long)y, (long long)z);
  const size_t room = (bytes + 7) / 8 * 8;
  RUNG_TRY(list_room(list, sizeof(rung_cuda_launch) + room, step->args->error));
  const rung_cuda_launch launch = {.function = step->prepared->function[which],
                                   .grid = {(uint32_t)x, (uint32_t)y, (uint32_t)z},
                                   .threads = threads,
                                   .shared = shared,
                                   .bytes = (uint32_t)bytes};
  memcpy(list->data + list->bytes, &launch, sizeof launch);
  uint8_t *to = list->data + list->bytes + sizeof launch;
  memset(to, 0, room);
  memcpy(to, parameters, bytes);
  list->bytes += sizeof launch + room;
  list->launches++;
  return RUNG_OK;
}

/* A variable switches something off by 0. */
static bool is_on(const char *variable) {
  const char *text = getenv(variable);
  return !text || strcmp(text, "0") != 0;
}

size_t rung_cuda_launch_one(rung_cuda *self, const rung_cuda_list *list, size_t at) {
  const rung_cu_launch_attribute programmatic = {.id = RUNG_CU_PROGRAMMATIC, .value = {.programmatic = 1}};
  rung_cuda_launch l;
  memcpy(&l, list->data + at, sizeof l);
  void *parameter = list->data + at + sizeof l;
  if (!l.function) {
    rung_cuda_product product;
    memcpy(&product, parameter, sizeof product);
    rung_cuda_multiply(self, &product);
  } else {
    const rung_cu_launch config = {.grid = {l.grid[0], l.grid[1], l.grid[2]},
                                   .block = {l.threads, 1, 1},
                                   .shared = l.shared,
                                   .stream = self->stream,
                                   .attribute = &programmatic,
                                   .attributes = self->chip >= 90 && self->overlap ? 1 : 0};
    rung_cuda_ok(self, self->driver.launch(&config, l.function, &parameter, NULL), "launching a kernel");
  }
  return at + sizeof l + (l.bytes + 7) / 8 * 8;
}

static bool launch_list(rung_cuda *self, const rung_cuda_list *list) {
  self->overlap = is_on("RUNG_CUDA_OVERLAP");
  for (size_t at = 0; at < list->bytes && !self->failed;) at = rung_cuda_launch_one(self, list, at);
  return !self->failed;
}

/* ---- graphs */

static void drop_graph(rung_cuda *self, captured *g) {
  if (g->executable) self->driver.graph_drop(g->executable);
  if (g->bytes) rung_host_free(self->host, RUNG_MEMORY_host, g->bytes, g->size);
  *g = (captured){0};
}

static captured *find_graph(kept *k, uint64_t hash) {
  for (int i = 0; i < GRAPHS; i++) {
    captured *g = &k->graph[i];
    if (g->bytes && g->hash == hash && g->size == k->list.bytes && !memcmp(g->bytes, k->list.data, g->size)) return g;
  }
  return NULL;
}

static void remember(kept *k, uint64_t hash) {
  captured *victim = &k->graph[0];
  for (int i = 1; i < GRAPHS && victim->bytes; i++)
    if (!k->graph[i].bytes || k->graph[i].used < victim->used) victim = &k->graph[i];
  drop_graph(k->device, victim);
  victim->bytes = rung_host_alloc_raw(k->device->host, RUNG_MEMORY_host, k->list.bytes, 0);
  if (!victim->bytes) return; /* then it stays a list of launches */
  memcpy(victim->bytes, k->list.data, k->list.bytes);
  victim->size = k->list.bytes;
  victim->hash = hash;
  victim->used = ++k->clock;
}

/* A graph that cannot be made is done without. */
static void capture(kept *k, captured *g) {
  rung_cuda *self = k->device;
  void *graph = NULL;
  if (self->driver.capture_begin(self->stream, RUNG_CU_CAPTURE_THREAD)) return;
  const bool whole = launch_list(self, &k->list);
  if (self->driver.capture_end(self->stream, &graph) || !whole || !graph) return;
  if (self->driver.graph_make(&g->executable, graph, 0)) g->executable = NULL;
  self->driver.graph_destroy(graph);
}

static void flush(kept *k, bool traced) {
  rung_cuda *self = k->device;
  void *before;
  if (!k->list.launches) return;
  rung_cuda_enter(self, &before);
  captured *g = NULL;
  if (!traced && k->list.launches >= WORTH_A_GRAPH && is_on("RUNG_CUDA_GRAPHS")) {
    const uint64_t hash = rung_hash64(k->list.data, k->list.bytes);
    g = find_graph(k, hash);
    if (!g)
      remember(k, hash);
    else if (!g->executable)
      capture(k, g);
    if (g) g->used = ++k->clock;
  }
  rung_cuda_times_begin(self, &k->times);
  if (g && g->executable)
    rung_cuda_ok(self, self->driver.graph_launch(g->executable, self->stream), "launching a graph");
  else
    launch_list(self, &k->list);
  rung_cuda_times_end(self, &k->times);
  if (traced) rung_cuda_ok(self, self->driver.stream_wait(self->stream), "waiting");
  rung_cuda_leave(self, before);
  k->list.launches = 0;
}

/* ---- what a context keeps */

static rung_status make_kept(rung_cuda *self, rung_error *error, kept **out) {
  kept *k = rung_host_array(self->host, 1, sizeof *k);
  if (!k) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: out of memory");
  k->device = self;
  k->list.host = self->host;
  void *before, *pinned = NULL;
  rung_cuda_enter(self, &before);
  const int result = self->driver.host_alloc(&pinned, sizeof *k->refusal, 0);
  k->refusal = pinned;
  if (!result) memset(pinned, 0, sizeof *k->refusal);
  rung_cuda_times_open(self, &k->times);
  rung_cuda_leave(self, before);
  *out = k;
  if (!result && (!(k->counters = self->far.alloc(self, RUNG_CUDA_COUNTERS * sizeof(uint32_t))) ||
                  !(k->refusal_there = self->far.alloc(self, sizeof *k->refusal))))
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory for counters on the device");
  return result ? rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: pinned memory: %s", rung_cuda_text(self, result))
                : RUNG_OK;
}

void rung_cuda_forget(void *self_, void *kept_) {
  rung_cuda *self = self_;
  kept *k = kept_;
  if (!k) return;
  void *before;
  rung_cuda_enter(self, &before);
  self->driver.stream_wait(self->stream);
  rung_cuda_times_close(self, &k->times, &k->list);
  for (int i = 0; i < GRAPHS; i++) drop_graph(self, &k->graph[i]);
  for (int i = 0; i < TABLES; i++)
    if (k->table[i].there) self->driver.free(k->table[i].there);
  if (k->refusal) self->driver.host_free(k->refusal);
  if (k->counters) self->driver.free((uint64_t)(uintptr_t)k->counters);
  if (k->refusal_there) self->driver.free((uint64_t)(uintptr_t)k->refusal_there);
  rung_cuda_leave(self, before);
  rung_host_free(self->host, RUNG_MEMORY_host, k->list.data, k->list.capacity);
  rung_host_free(self->host, RUNG_MEMORY_host, k, sizeof *k);
}

/* Queues the copy to where the host looks. */
static void fetch_refusal(kept *k, void *to) {
  rung_cuda *self = k->device;
  rung_cuda_ok(self,
               self->driver.to_host(to, (uint64_t)(uintptr_t)k->refusal_there, sizeof(rung_cuda_refusal), self->stream),
               "reading refusals");
}

static rung_status refused(const rung_cuda_refusal *note, rung_error *error) {
  const rung_cuda_refusal r = *note;
  if (!r.set) return RUNG_OK;
  if (r.kind == RUNG_CUDA_REFUSES_INDEX)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "an index is %lld, outside an extent of %lld", (long long)r.value,
                     (long long)r.limit);
  return rung_fail(error, RUNG_OUT_OF_RANGE, "ragged rows: position or slot %lld, the state has room for %lld",
                   (long long)r.value, (long long)r.limit);
}

rung_status rung_cuda_settle(void *self_, void *kept_, rung_error *error) {
  rung_cuda *self = self_;
  kept *k = kept_;
  RUNG_TRY(self->far.check(self, error));
  if (k) rung_cuda_times_take(self, &k->times);
  if (!k || !k->refusal->set) return RUNG_OK;
  const rung_status status = refused(k->refusal, error);
  rung_far_zero(&self->far, k->refusal_there, sizeof *k->refusal);
  *k->refusal = (rung_cuda_refusal){0};
  return status;
}

/* Graphs have the address of the one refusal in them, so each run's is taken from there before the next one's steps. */
void rung_cuda_settle_later(void *self_, void *kept_, void *note) {
  rung_cuda *self = self_;
  kept *k = kept_;
  void *before;
  if (!k) return;
  _Static_assert(sizeof(rung_cuda_refusal) <= RUNG_NOTE, "a refusal fits a note");
  rung_cuda_enter(self, &before);
  fetch_refusal(k, note);
  rung_cuda_ok(self,
               self->driver.fill((uint64_t)(uintptr_t)k->refusal_there, 0, sizeof(rung_cuda_refusal), self->stream),
               "filling");
  rung_cuda_leave(self, before);
}

rung_status rung_cuda_settle_note(void *self, const void *note, rung_error *error) {
  (void)self;
  return refused(note, error);
}

/* The block table of a paged state, copied once a run. */
static uint64_t place_table(void *kept_, const rung_kv_view *kv) {
  kept *k = kept_;
  if (kv->contiguous) return 0;
  const size_t bytes = (size_t)kv->slots * kv->ring * sizeof(uint32_t);
  table *t = NULL;
  for (int i = 0; i < TABLES && !t; i++)
    if (!k->table[i].host || k->table[i].host == kv->table) t = &k->table[i];
  if (!t) {
    k->failed = true;
    return 0;
  }
  if (!t->host) {
    void *there = k->device->far.alloc(k->device->far.self, bytes);
    if (!there) {
      k->failed = true;
      return 0;
    }
    *t = (table){.host = kv->table, .there = (uint64_t)(uintptr_t)there, .bytes = bytes};
  }
  if (t->serial != k->serial) rung_far_write(&k->device->far, (void *)(uintptr_t)t->there, kv->table, bytes);
  t->serial = k->serial;
  return t->there;
}

/* ---- steps */

typedef struct running {
  rung_cuda *self;
  const rung_cuda_image *image;
  rung_run *run;
  kept *kept;
} running;

static const rung_cuda_prepared *prepared_at(const running *r, uint32_t index) {
  return &r->image->prepared[r->run->plan->step[index].variant + r->run->variant[index]];
}
static bool is_one_row(const running *r, uint32_t index) {
  const rung_cuda_prepared *one = prepared_at(r, index)->one;
  return one && one->kernel->applies(one, r->run, index);
}

/* A step that no other kernel does, and whose kernel does no other step. */
static bool is_alone(const running *r, const rung_cuda_prepared *p, uint32_t index) {
  const rung_plan *plan = r->run->plan;
  const uint32_t variant = plan->step[index].variant + r->run->variant[index];
  return &p->kernel->row == plan->variant[variant].kernel && !p->absorbed && !p->one && !p->ahead && !p->before;
}

static rung_status run_step(const running *r, uint32_t index, const rung_cuda_prepared *prepared) {
  const rung_step *step = &r->run->plan->step[index];
  if (prepared->ahead) {
    const uint32_t last = index + prepared->ahead;
    if (prepared_at(r, last)->before >= prepared->ahead && is_one_row(r, last)) return RUNG_OK;
  }
  if (is_one_row(r, index)) prepared = prepared->one;
  const rung_args args = {.in = r->run->operand + step->in,
                          .out = r->run->operand + step->out,
                          .n_in = step->n_in,
                          .n_out = step->n_out,
                          .attrs = step->attrs,
                          .dim = r->run->dim,
                          .role = r->run->role + step->role,
                          .scratch = r->run->scratch,
                          .prepared = prepared->own,
                          .random = r->run->random,
                          .threads = 1,
                          .error = r->run->error};
  if (prepared->absorbed) return RUNG_OK;
  if (!prepared->kernel->unit) {
    flush(r->kept, r->run->on_step != NULL);
    r->kept->list.bytes = 0;
    return rung_cuda_run_host(r->self, step->op, &args);
  }
  const rung_cuda_step s = {.device = r->self,
                            .args = &args,
                            .run = r->run,
                            .index = index,
                            .prepared = prepared,
                            .refusal = (uint64_t)(uintptr_t)r->kept->refusal_there,
                            .table = place_table,
                            .kept = r->kept,
                            .counters = (uint64_t)(uintptr_t)r->kept->counters,
                            .list = &r->kept->list};
  RUNG_TRY(prepared->kernel->launch(&s));
  if (r->kept->failed) {
    r->kept->failed = false;
    return rung_fail(r->run->error, RUNG_OUT_OF_MEMORY, "cuda: no memory for a block table on the device");
  }
  return RUNG_OK;
}

static rung_status trace_step(const running *r, uint32_t index, const rung_cuda_prepared *prepared) {
  const rung_step *step = &r->run->plan->step[index];
  rung_step_event event = {.plan = r->run->plan,
                           .step = index,
                           .kernel = &prepared->kernel->row,
                           .in = r->run->operand + step->in,
                           .out = r->run->operand + step->out,
                           .start_ns = rung_clock_ns(),
                           .tasks = 1};
  RUNG_TRY(run_step(r, index, prepared));
  flush(r->kept, true);
  r->kept->list.bytes = 0;
  event.end_ns = rung_clock_ns();
  r->run->on_step(r->run->on_step_self, &event);
  return RUNG_OK;
}

rung_status rung_cuda_steps(void *self_, void *image_, rung_run *run, uint32_t first, uint32_t count) {
  running r = {.self = self_, .image = image_, .run = run};
  void *before;
  if (!*run->kept) {
    kept *made = NULL;
    const rung_status status = make_kept(r.self, run->error, &made);
    *run->kept = made;
    RUNG_TRY(status);
  }
  r.kept = *run->kept;
  r.kept->serial++;
  r.kept->list.bytes = 0;
  r.kept->list.launches = 0;
  rung_status status = RUNG_OK;
  for (uint32_t i = first; !status && i < first + count; i++) {
    const rung_cuda_prepared *prepared = prepared_at(&r, i);
    if (run->left_out && run->left_out[i] && is_alone(&r, prepared, i)) continue;
    if (RUNG_UNLIKELY(atomic_load_explicit(run->cancel, memory_order_relaxed)))
      status = rung_fail(run->error, RUNG_CANCELLED, "the run was cancelled");
    else
      status = run->on_step ? trace_step(&r, i, prepared) : run_step(&r, i, prepared);
  }
  if (!status) flush(r.kept, false);
  rung_cuda_enter(r.self, &before);
  fetch_refusal(r.kept, r.kept->refusal);
  rung_cuda_leave(r.self, before);
  return status;
}

/* ---- operands */

rung_cuda_operand rung_cuda_operand_of(const rung_operand *o) {
  rung_cuda_operand out = {.base = (uint64_t)(uintptr_t)o->base, .rank = o->rank, .type = o->type};
  for (int a = 0; a < o->rank; a++) {
    out.extent[a] = o->extent[a];
    out.stride[a] = o->stride[a];
  }
  return out;
}

rung_cuda_kv rung_cuda_kv_of(const rung_cuda_step *step, const rung_kv_view *kv) {
  return (rung_cuda_kv){.base = (uint64_t)(uintptr_t)kv->base,
                        .table = step->table(step->kept, kv),
                        .block_bytes = (int64_t)kv->block_bytes,
                        .layer_offset = (int64_t)kv->layer_offset,
                        .window = kv->window,
                        .capacity = kv->capacity,
                        .type = kv->type,
                        .kv_heads = kv->kv_heads,
                        .key_dim = kv->key_dim,
                        .value_dim = kv->value_dim,
                        .ring = (int32_t)kv->ring,
                        .slots = kv->slots};
}
