/* SPDX-License-Identifier: MIT
 * Steps to launches, and launches to the device.
 *
 * A list is a stretch of steps between two that the host must take part in. What a list was made of is remembered
 * (record.c): while that is the same, the next run has its list already. A list of a few launches goes to the device one
 * by one; a longer one does so the first time that its range is seen, and while the device is at work a graph is made of
 * it (graphs.c), which is what later runs launch. */
#include "backends/cuda/run.h"

#include <string.h>

#include "base/clock.h"

enum { RECORDS = 8 };

typedef struct table {
  const uint32_t *host;
  uint64_t there;
  size_t bytes;
  uint64_t serial;
} table;

/* What steps keep for a context. */
typedef struct kept {
  rung_cuda *device;
  rung_cuda_record record[RECORDS], *now; /* now: that of the list being made or launched */
  table table[RUNG_CUDA_TABLES];
  uint64_t clock, serial;
  rung_cuda_words *words;
  bool failed;    /* a table could not be placed */
  bool rehearses; /* graphs are made, nothing is launched */
  rung_cuda_times times;
} kept;

/* To the device. Behind its launch, while the device is at work, a list of a new range becomes a graph. What fails is taken
 * before another context can find it. */
static rung_status flush(kept *k, bool traced, rung_error *error) {
  rung_cuda *self = k->device;
  rung_cuda_list *list = &k->now->list;
  void *before;
  if (!list->launches) return RUNG_OK;
  rung_cuda_enter(self, &before);
  if (!list->serial) list->serial = ++self->lists;
  const bool takes = !traced && rung_cuda_graphs_take(self, list);
  rung_cuda_times_begin(self, &k->times);
  const bool replayed = takes && rung_cuda_graph_replay(self, list, k);
  if (!replayed) rung_cuda_launch_list(self, list);
  rung_cuda_times_end(self, &k->times);
  if (takes && !replayed && !rung_cuda_graph_is_there(self, list, k)) rung_cuda_graph_capture(self, list, k);
  if (traced) rung_cuda_ok(self, self->driver.stream_wait(self->stream), "waiting");
  const rung_status status = rung_cuda_failed(self, error);
  rung_cuda_leave(self, before);
  return status;
}

static void rehearse_list(kept *k) {
  rung_cuda *self = k->device;
  rung_cuda_list *list = &k->now->list;
  void *before;
  if (!rung_cuda_graphs_take(self, list)) return;
  rung_cuda_enter(self, &before);
  list->serial = ++self->lists;
  if (!rung_cuda_graph_is_there(self, list, NULL)) rung_cuda_graph_capture(self, list, NULL);
  rung_cuda_leave(self, before);
}

/* ---- what a context keeps */

static rung_status make_kept(rung_cuda *self, rung_error *error, kept **out) {
  kept *k = rung_host_array(self->host, 1, sizeof *k);
  if (!k) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: out of memory");
  k->device = self;
  for (int i = 0; i < RECORDS; i++) k->record[i].list.host = self->host;
  k->now = &k->record[0];
  const rung_status status = rung_cuda_words_take(self, error, &k->words);
  if (status) {
    rung_host_free(self->host, RUNG_MEMORY_host, k, sizeof *k);
    return status;
  }
  void *before;
  rung_cuda_enter(self, &before);
  rung_cuda_times_open(self, &k->times);
  rung_cuda_leave(self, before);
  *out = k;
  return RUNG_OK;
}

void rung_cuda_forget(void *self_, void *kept_) {
  rung_cuda *self = self_;
  kept *k = kept_;
  if (!k) return;
  void *before;
  rung_cuda_enter(self, &before);
  self->driver.stream_wait(self->stream);
  rung_cuda_times_close(self, &k->times, &k->now->list);
  rung_cuda_graphs_leave(self, k);
  rung_cuda_words_leave(self, k->words);
  rung_cuda_leave(self, before);
  for (int i = 0; i < RECORDS; i++) rung_cuda_record_finish(&k->record[i]);
  rung_host_free(self->host, RUNG_MEMORY_host, k, sizeof *k);
}

/* Queues the copy to where the host looks. */
static void fetch_refusal(kept *k, void *to) {
  rung_cuda *self = k->device;
  rung_cuda_ok(self, self->driver.to_host(to, k->words->refusal_there, sizeof(rung_cuda_refusal), self->stream),
               "reading refusals");
}

static rung_status refused(const rung_cuda_refusal *note, rung_error *error) {
  const rung_cuda_refusal r = *note;
  if (!r.set) return RUNG_OK;
  if (r.kind == RUNG_CUDA_REFUSES_INDEX)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "an index is %lld, outside an extent of %lld", (long long)r.value,
                     (long long)r.limit);
  if (r.kind == RUNG_CUDA_REFUSES_COUNT)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "nonzero: %lld elements are not 0, but count is %lld",
                     (long long)r.value, (long long)r.limit);
  if (r.kind == RUNG_CUDA_REFUSES_OFFSETS)
    return rung_fail(error, RUNG_OUT_OF_RANGE,
                     "ragged rows: an offset is %lld, but offsets start at 0, do not fall and end at %lld rows",
                     (long long)r.value, (long long)r.limit);
  return rung_fail(error, RUNG_OUT_OF_RANGE, "ragged rows: position or slot %lld, the state has room for %lld",
                   (long long)r.value, (long long)r.limit);
}

rung_status rung_cuda_settle(void *self_, void *kept_, rung_error *error) {
  rung_cuda *self = self_;
  kept *k = kept_;
  const rung_status failed = self->far.check(self, error);
  if (k && !failed) rung_cuda_times_take(self, &k->times);
  if (!k || !k->words || (!failed && !k->words->refusal->set)) return failed;
  /* Where the run failed besides, a refusal is not known to have come: it is not the next one's in any case. */
  const rung_status status = failed ? failed : refused(k->words->refusal, error);
  rung_far_zero(&self->far, (void *)(uintptr_t)k->words->refusal_there, sizeof *k->words->refusal);
  *k->words->refusal = (rung_cuda_refusal){0};
  return status;
}

/* Graphs have the address of the one refusal in them, so each run's is taken from there before the next one's steps. */
void rung_cuda_settle_later(void *self_, void *kept_, void *note) {
  rung_cuda *self = self_;
  kept *k = kept_;
  void *before;
  if (!k || !k->words) return;
  _Static_assert(sizeof(rung_cuda_refusal) <= RUNG_NOTE, "a refusal fits a note");
  rung_cuda_enter(self, &before);
  fetch_refusal(k, note);
  rung_cuda_ok(self, self->driver.fill(k->words->refusal_there, 0, sizeof(rung_cuda_refusal), self->stream), "filling");
  rung_cuda_leave(self, before);
}

rung_status rung_cuda_settle_note(void *self, const void *note, rung_error *error) {
  (void)self;
  return refused(note, error);
}

/* Block tables are copied once a run. */
static void send_table(kept *k, table *t) {
  if (t->serial != k->serial) rung_far_write(&k->device->far, (void *)(uintptr_t)t->there, t->host, t->bytes);
  t->serial = k->serial;
}

/* The block table of a paged state. */
static uint64_t place_table(void *kept_, const rung_kv_view *kv) {
  kept *k = kept_;
  if (kv->contiguous || k->rehearses) return 0;
  const size_t bytes = (size_t)kv->slots * kv->ring * sizeof(uint32_t);
  int i = 0;
  while (i < RUNG_CUDA_TABLES && k->table[i].host && k->table[i].host != kv->table) i++;
  table *t = i < RUNG_CUDA_TABLES ? &k->table[i] : NULL;
  if (t && !t->host) *t = (table){kv->table, rung_cuda_words_table(k->device, k->words, i, bytes), bytes, 0};
  if (!t || !t->there) {
    if (t) t->host = NULL;
    k->failed = true;
    return 0;
  }
  send_table(k, t);
  k->now->tables |= 1u << (t - k->table);
  return t->there;
}

static void note_lengths(void *kept_, const rung_kv_view *kv, int64_t from, int64_t to) {
  rung_cuda_record_bound(((kept *)kept_)->now, kv, from, to);
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
  if (!prepared->kernel->unit && r->kept->rehearses) {
    rehearse_list(r->kept);
    rung_cuda_list_begin(&r->kept->now->list);
    return RUNG_OK;
  }
  if (!prepared->kernel->unit) {
    RUNG_TRY(flush(r->kept, r->run->on_step != NULL, r->run->error));
    rung_cuda_record_begin(r->kept->now);
    r->kept->now->lost = true; /* the list goes on behind this step */
    rung_mutex_lock(&r->self->lock);
    r->self->counters.host_steps++;
    rung_mutex_unlock(&r->self->lock);
    return rung_cuda_run_host(r->self, step->op, &args);
  }
  const rung_cuda_words *words = r->kept->words; /* NULL: a rehearsal */
  const rung_cuda_step s = {.device = r->self,
                            .args = &args,
                            .run = r->run,
                            .index = index,
                            .prepared = prepared,
                            .refusal = words ? words->refusal_there : 0,
                            .table = place_table,
                            .lengths = note_lengths,
                            .kept = r->kept,
                            .counters = words ? words->counters : 0,
                            .list = &r->kept->now->list};
  RUNG_TRY(prepared->kernel->launch(&s));
  if (step->op->flags & RUNG_OP_RANDOM) r->kept->now->lost = true; /* the next run's numbers are others */
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
  RUNG_TRY(flush(r->kept, true, r->run->error));
  rung_cuda_list_begin(&r->kept->now->list);
  event.end_ns = rung_clock_ns();
  r->run->on_step(r->run->on_step_self, &event);
  return RUNG_OK;
}

/* The record that holds for this run, or the one used least recently, to be made anew. */
static bool find_record(kept *k, const rung_run *run, uint32_t first, uint32_t count) {
  rung_cuda_record *victim = &k->record[0];
  bool holds = false;
  for (int i = 0; i < RECORDS && !holds; i++) {
    rung_cuda_record *r = &k->record[i];
    /* One that no longer holds would never again: its operands are these. */
    const bool same = r->operand == run->operand && r->first == first;
    holds = same && !run->on_step && rung_cuda_record_holds(r, run, first, count);
    if (same || (victim->operand && (!r->operand || r->used < victim->used))) victim = r;
    if (same) break;
  }
  k->now = victim;
  victim->used = ++k->clock;
  return holds;
}

static rung_status cancelled(const rung_run *run) {
  return RUNG_UNLIKELY(atomic_load_explicit(run->cancel, memory_order_relaxed))
             ? rung_fail(run->error, RUNG_CANCELLED, "the run was cancelled")
             : RUNG_OK;
}

static rung_status make_list(const running *r, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++) {
    RUNG_TRY(cancelled(r->run));
    const rung_cuda_prepared *prepared = prepared_at(r, i);
    if (r->run->left_out && r->run->left_out[i] && is_alone(r, prepared, i)) continue;
    RUNG_TRY(r->run->on_step ? trace_step(r, i, prepared) : run_step(r, i, prepared));
  }
  return RUNG_OK;
}

static rung_status launch_steps(const running *r, uint32_t first, uint32_t count) {
  kept *k = r->kept;
  if (find_record(k, r->run, first, count)) {
    RUNG_TRY(cancelled(r->run));
    for (int i = 0; i < RUNG_CUDA_TABLES; i++)
      if (k->now->tables & (1u << i)) send_table(k, &k->table[i]);
  } else {
    rung_cuda_record_begin(k->now);
    RUNG_TRY(make_list(r, first, count));
    if (!r->run->on_step) rung_cuda_record_keep(k->now, r->run, first, count);
  }
  return flush(k, false, r->run->error);
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
  kept *k = r.kept = *run->kept;
  k->serial++;
  const rung_status status = launch_steps(&r, first, count);
  rung_cuda_enter(r.self, &before);
  fetch_refusal(k, k->words->refusal);
  rung_cuda_leave(r.self, before);
  return status;
}

/* Nothing of a context is there: its addresses are 0, as those of operands are of no meaning. */
rung_status rung_cuda_rehearse(void *self_, void *image_, rung_run *run, uint32_t first, uint32_t count) {
  rung_cuda *self = self_;
  kept *k = rung_host_array(self->host, 1, sizeof *k);
  if (!k) return rung_fail(run->error, RUNG_OUT_OF_MEMORY, "cuda: out of memory");
  const running r = {.self = self, .image = image_, .run = run, .kept = k};
  k->device = self;
  k->rehearses = true;
  k->now = &k->record[0];
  k->now->list.host = self->host;
  rung_cuda_record_begin(k->now);
  const rung_status status = make_list(&r, first, count);
  if (!status) rehearse_list(k);
  rung_cuda_record_finish(k->now);
  rung_host_free(self->host, RUNG_MEMORY_host, k, sizeof *k);
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
