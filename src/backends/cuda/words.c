/* SPDX-License-Identifier: MIT
 * What a context has on the device beside its arena: words that kernels count in, a place to refuse operands, copies of
 * block tables. A context gives them back with every program that it leaves; they wait for the next one, so that going
 * from program to program takes no memory. There are as many as contexts were running at once. */
#include "backends/cuda/device.h"

#include <string.h>

/* Counters, and behind them the refusal. */
enum { COUNTER_BYTES = RUNG_CUDA_COUNTERS * sizeof(uint32_t), WORD_BYTES = 4096 };

static void destroy(rung_cuda *self, rung_cuda_words *w) {
  if (w->refusal) self->driver.host_free(w->refusal);
  rung_cuda_give_back(self, w->counters, WORD_BYTES);
  for (int i = 0; i < RUNG_CUDA_TABLES; i++) rung_cuda_give_back(self, w->table[i].there, w->table[i].bytes);
  rung_host_free(self->host, RUNG_MEMORY_host, w, sizeof *w);
}

static rung_status make(rung_cuda *self, rung_error *error, rung_cuda_words **out) {
  rung_cuda_words *w = rung_host_array(self->host, 1, sizeof *w);
  if (!w) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: out of memory");
  void *pinned = NULL;
  const int result = self->driver.host_alloc(&pinned, sizeof *w->refusal, 0);
  w->refusal = pinned;
  rung_status status = RUNG_OK;
  if (result)
    status = rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: pinned memory: %s", rung_cuda_text(self, result));
  else if (!(w->counters = rung_cuda_take(self, WORD_BYTES)))
    status = rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory for counters on the device");
  if (status) {
    destroy(self, w);
    return status;
  }
  _Static_assert(COUNTER_BYTES + sizeof *w->refusal <= WORD_BYTES, "a refusal fits behind the counters");
  w->refusal_there = w->counters + COUNTER_BYTES;
  *out = w;
  return status;
}

rung_status rung_cuda_words_take(rung_cuda *self, rung_error *error, rung_cuda_words **out) {
  void *before;
  rung_cuda_enter(self, &before);
  rung_cuda_words *w = self->words;
  rung_status status = RUNG_OK;
  if (w) {
    self->words = w->next;
    /* A run that failed may have left them anyhow. */
    rung_cuda_ok(self, self->driver.fill(w->counters, 0, WORD_BYTES, self->stream), "filling");
  } else {
    status = make(self, error, &w);
  }
  rung_cuda_leave(self, before);
  if (status) return status;
  memset(w->refusal, 0, sizeof *w->refusal);
  *out = w;
  return RUNG_OK;
}

void rung_cuda_words_leave(rung_cuda *self, rung_cuda_words *w) {
  if (!w) return;
  w->next = self->words;
  self->words = w;
}

uint64_t rung_cuda_words_table(rung_cuda *self, rung_cuda_words *w, int index, size_t bytes) {
  if (w->table[index].bytes >= bytes) return w->table[index].there;
  void *before;
  rung_cuda_enter(self, &before);
  rung_cuda_give_back(self, w->table[index].there, w->table[index].bytes);
  w->table[index].there = rung_cuda_take(self, bytes);
  w->table[index].bytes = w->table[index].there ? bytes : 0;
  rung_cuda_leave(self, before);
  return w->table[index].there;
}

void rung_cuda_words_close(rung_cuda *self) {
  while (self->words) {
    rung_cuda_words *next = self->words->next;
    destroy(self, self->words);
    self->words = next;
  }
}
