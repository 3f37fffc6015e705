/* SPDX-License-Identifier: MIT
 * The memory promise measured: a model is loaded, reads a prompt and decodes; what was predicted, what the allocator
 * was asked for, and what the kernel saw (VmHWM) are put side by side. For test_memory.c and bench/memory.c. */
#ifndef RUNG_TESTS_MEMORY_H
#define RUNG_TESTS_MEMORY_H

#include <inttypes.h>
#include <rung/model.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../process.h"
#include "base/host_internal.h"
#include "models/model.h"
#include "runtime/runtime.h"

typedef struct memory_case {
  const char *path;
  rung_quant quant;
  rung_type kv;
  int64_t prompt, decode, context;
  int32_t sequences; /* each reads the prompt */
  int threads;
  bool counted; /* through an allocator that counts, and so without huge pages */
} memory_case;

typedef struct memory_result {
  rung_memory predicted;           /* the larger of reading and of going on, by class; host is 0 */
  rung_memory held;                /* at the end */
  uint64_t peak;                   /* of all classes but host, as the host object saw it */
  uint64_t host_most;              /* the most of class host */
  uint64_t metadata;               /* bytes of the file in front of its tensors */
  uint64_t counted;                /* counted: bytes that the allocator still has out at the end, heap and pages */
  uint64_t in_place;               /* mapped weights used as they lie: in the account, but from no allocator */
  uint64_t before, most;           /* the process: resident just before the load, and its high-water mark since */
  uint64_t anonymous, file_backed; /* resident at the end */
  uint64_t later_allocations, later_commits; /* of the same text again */
  int32_t last;                              /* token, so that runs can be compared */
} memory_result;

/* What loading and running together take at most; loading ends before running begins. */
static inline uint64_t memory_most(const rung_memory *m) {
  const uint64_t loading = m->weights + m->packed + m->load;
  const uint64_t running = m->weights + m->packed + m->activations + m->state + m->scratch + m->cache;
  return loading > running ? loading : running;
}

/* ---- the process, as Linux sees it */

/* The high-water mark begins again at what is resident now. */
static bool memory_reset_high_water(void) {
  FILE *f = fopen("/proc/self/clear_refs", "w");
  if (!f) return false;
  const bool written = fputs("5", f) >= 0;
  return fclose(f) == 0 && written;
}

/* ---- an allocator that counts what it has given out */

typedef struct memory_counter {
  rung_allocator real;
  _Atomic uint64_t heap, pages;
} memory_counter;

static void *counter_alloc(void *self, size_t bytes, size_t align) {
  memory_counter *c = self;
  void *p = c->real.alloc(c->real.self, bytes, align);
  if (p) atomic_fetch_add(&c->heap, bytes);
  return p;
}
static void counter_free(void *self, void *p, size_t bytes) {
  memory_counter *c = self;
  c->real.free(c->real.self, p, bytes);
  if (p) atomic_fetch_sub(&c->heap, bytes);
}
static void *counter_reserve(void *self, size_t bytes) {
  memory_counter *c = self;
  return c->real.reserve(c->real.self, bytes);
}
static bool counter_commit(void *self, void *p, size_t bytes) {
  memory_counter *c = self;
  const bool done = c->real.commit(c->real.self, p, bytes);
  if (done) atomic_fetch_add(&c->pages, bytes);
  return done;
}
static void counter_decommit(void *self, void *p, size_t bytes) {
  memory_counter *c = self;
  c->real.decommit(c->real.self, p, bytes);
  atomic_fetch_sub(&c->pages, bytes);
}
static void counter_release(void *self, void *p, size_t bytes) {
  memory_counter *c = self;
  c->real.release(c->real.self, p, bytes);
}
static rung_allocator memory_counting(memory_counter *c) {
  *c = (memory_counter){.real = rung_system_allocator()};
  return (rung_allocator){.size = sizeof(rung_allocator),
                          .self = c,
                          .page = c->real.page,
                          .alloc = counter_alloc,
                          .free = counter_free,
                          .reserve = counter_reserve,
                          .commit = counter_commit,
                          .decommit = counter_decommit,
                          .release = counter_release};
}

/* ---- one run */

typedef struct memory_job {
  const memory_case *c;
  memory_result *result;
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_generator *generator;
} memory_job;

/* Asked before every allocation, commit and read; never makes one fail. */
static bool memory_watch_host(void *self, rung_fault kind) {
  memory_job *j = self;
  (void)kind;
  const uint64_t now = rung_host_memory(j->host).host;
  if (now > j->result->host_most) j->result->host_most = now;
  return false;
}

static rung_status memory_predict(memory_job *j, rung_error *error) {
  const memory_case *c = j->c;
  const int64_t length = c->prompt + c->decode - 1, rows = c->prompt * c->sequences; /* the last token is not read */
  const rung_generate_options o = rung_generate_options_default();
  rung_memory later, *all = &j->result->predicted;
  RUNG_TRY(rung_generator_memory(j->generator, rows < o.chunk ? rows : o.chunk, length, error, all));
  RUNG_TRY(rung_generator_memory(j->generator, c->sequences, length, error, &later));
#define X(name, text) \
  if (later.name > all->name) all->name = later.name;
  RUNG_MEMORY_MAP(X)
#undef X
  return RUNG_OK;
}

static rung_status memory_generate(memory_job *j, const int32_t *ids) {
  const memory_case *c = j->c;
  rung_generator *g = j->generator;
  rung_token tokens[16];
  int64_t made = 0;
  for (int32_t s = 0; s < c->sequences; s++) {
    RUNG_TRY(rung_generator_reset(g, s));
    RUNG_TRY(rung_generator_prompt(g, s, ids, (size_t)c->prompt));
  }
  while (made < c->decode * c->sequences) {
    size_t count;
    RUNG_TRY(rung_generator_step(g, tokens, &count, NULL));
    for (size_t i = 0; i < count; i++) {
      made++;
      j->result->last = tokens[i].id;
      if (tokens[i].end)
        RUNG_TRY(rung_generator_prompt(g, tokens[i].slot, &tokens[i].id, 1)); /* goes on all the same */
    }
  }
  return RUNG_OK;
}

static rung_status memory_open(memory_job *j, rung_error *error) {
  const memory_case *c = j->c;
  rung_device_options device = rung_device_options_default();
  device.threads = c->threads;
  RUNG_TRY(rung_device_create(j->host, "cpu", &device, error, &j->device));
  rung_model_options mo = rung_model_options_default();
  mo.quant = c->quant;
  const rung_source source = rung_source_path(c->path);
  RUNG_TRY(rung_model_open(j->device, &source, &mo, error, &j->model));
  rung_generate_options go = rung_generate_options_default();
  go.sequences = c->sequences;
  go.context = c->context;
  go.kv = c->kv;
  RUNG_TRY(rung_generator_create(j->model, &go, error, &j->generator));
  rung_sample_options greedy = rung_sample_options_default();
  greedy.temperature = 0;
  for (int32_t s = 0; s < c->sequences; s++) RUNG_TRY(rung_generator_sampling(j->generator, s, &greedy));
  return RUNG_OK;
}

static rung_status memory_scenario(memory_job *j, rung_error *error) {
  const memory_case *c = j->c;
  memory_result *r = j->result;
  int32_t ids[1024];
  memory_reset_high_water();
  r->before = process_bytes("VmHWM");
  RUNG_TRY(memory_open(j, error));
  /* Text goes through the tokeniser once, as it does in use. */
  int32_t *some;
  size_t count;
  RUNG_TRY(rung_model_encode(j->model, "hello there", 11, RUNG_TEXT_ADD_SPECIAL, error, &some, &count));
  for (int64_t i = 0; i < c->prompt; i++) ids[i] = some[(size_t)i % count];
  rung_ids_free(j->model, some, count);
  rung_status status = memory_generate(j, ids);
  if (status) return rung_fail(error, status, "%s", rung_generator_message(j->generator));
  r->most = process_bytes("VmHWM");
  r->anonymous = process_bytes("RssAnon");
  r->file_backed = process_bytes("RssFile");
  r->held = rung_host_memory(j->host);
  r->peak = rung_host_peak(j->host);
  for (const rung_pinned *p = j->model->view->derived->pinned; p; p = p->next)
    r->in_place += p->copy ? 0 : p->value->entry->bytes;
  r->metadata = rung_gguf_data_offset(j->model->gguf);
  const int32_t last = r->last;
  const uint64_t allocations = rung_host_allocations(j->host), commits = rung_host_commits(j->host);
  status = memory_generate(j, ids);
  if (status) return rung_fail(error, status, "%s", rung_generator_message(j->generator));
  r->later_allocations = rung_host_allocations(j->host) - allocations;
  r->later_commits = rung_host_commits(j->host) - commits;
  if (r->last != last)
    return rung_fail(error, RUNG_INTERNAL, "the same text again ended in token %d, not %d", r->last, last);
  return memory_predict(j, error);
}

static rung_status memory_run(const memory_case *c, rung_error *error, memory_result *out) {
  *out = (memory_result){0};
  memory_job j = {.c = c, .result = out};
  memory_counter counter;
  const rung_allocator allocator = memory_counting(&counter);
  rung_host_options options = rung_host_options_default();
  if (c->counted) options.allocator = &allocator;
  RUNG_TRY(rung_host_create(&options, error, &j.host));
  rung_host_set_fault(j.host, memory_watch_host, &j);
  const rung_status status =
      c->prompt > 1024 || c->sequences > 16
          ? rung_fail(error, RUNG_INVALID_ARGUMENT, "memory: at most 1024 tokens and 16 sequences")
          : memory_scenario(&j, error);
  if (c->counted) {
    out->held = rung_host_memory(j.host);
    out->counted = atomic_load(&counter.heap) + atomic_load(&counter.pages);
  }
  rung_generator_destroy(j.generator);
  rung_model_release(j.model);
  rung_device_release(j.device);
  rung_host_set_fault(j.host, NULL, NULL);
  rung_host_release(j.host);
  return status;
}

#endif
