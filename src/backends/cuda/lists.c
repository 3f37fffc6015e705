/* SPDX-License-Identifier: MIT
 * Lists of launches: written by kernel rows, launched one by one. */
#include <string.h>

#include "backends/cuda/run.h"

void rung_cuda_list_begin(rung_cuda_list *list) {
  list->bytes = 0;
  list->launches = 0;
  list->library = false;
  list->range = list->serial = 0;
}

/* Room for a launch with its parameters, which are zero up to a multiple of 8 bytes. */
static rung_status add(rung_cuda_list *list, const rung_cuda_launch *launch, const void *parameters,
                       rung_error *error) {
  const size_t room = ((size_t)launch->bytes + 7) / 8 * 8, need = list->bytes + sizeof *launch + room;
  void *data = list->data;
  if (!rung_host_grow(list->host, &data, &list->capacity, need, 1))
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory for a list of launches");
  list->data = data;
  uint8_t *to = list->data + list->bytes;
  memcpy(to, launch, sizeof *launch);
  memset(to + need - list->bytes - 8, 0, room ? 8 : 0);
  memcpy(to + sizeof *launch, parameters, launch->bytes);
  list->bytes = need;
  list->launches++;
  list->range = (list->range ^ (uint64_t)(uintptr_t)launch->function) * UINT64_C(0x9E3779B97F4A7C15);
  list->range ^= list->range >> 29;
  list->serial = 0;
  return RUNG_OK;
}

rung_status rung_cuda_emit_product(const rung_cuda_step *step, const rung_cuda_product *product) {
  const rung_cuda_launch launch = {.bytes = sizeof *product};
  if (product->m <= 0 || product->n <= 0) return RUNG_OK;
  step->list->library = true;
  return add(step->list, &launch, product, step->args->error);
}

rung_status rung_cuda_emit(const rung_cuda_step *step, int which, int64_t x, int64_t y, int64_t z, uint32_t threads,
                           uint32_t shared, const void *parameters, size_t bytes) {
  if (x <= 0 || y <= 0 || z <= 0) return RUNG_OK;
  if (x > INT32_MAX || y > 65535 || z > 65535 || bytes > RUNG_CUDA_PARAMETERS)
    return rung_fail(step->args->error, RUNG_UNSUPPORTED, "cuda: %s needs a grid of %lld by %lld by %lld blocks",
                     step->prepared->kernel->row.name, (long long)x, (long long)y, (long long)z);
  const rung_cuda_launch launch = {.function = step->prepared->function[which],
                                   .grid = {(uint32_t)x, (uint32_t)y, (uint32_t)z},
                                   .threads = threads,
                                   .shared = shared,
                                   .bytes = (uint32_t)bytes};
  return add(step->list, &launch, parameters, step->args->error);
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
  return rung_cuda_launch_behind(&l, at);
}

void rung_cuda_launch_list(rung_cuda *self, const rung_cuda_list *list) {
  for (size_t at = 0; at < list->bytes && !self->failed;) at = rung_cuda_launch_one(self, list, at);
  self->counters.launches += list->launches;
}
