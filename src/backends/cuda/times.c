/* SPDX-License-Identifier: MIT
 * Where the time of runs goes: on the device, and on the host between the end of one list and the launch of the next. */
#include "backends/cuda/run.h"
#include "base/clock.h"

void rung_cuda_times_open(rung_cuda *self, rung_cuda_times *t) {
  t->wanted = self->times;
  for (int i = 0; t->wanted && i < 2; i++)
    if (self->driver.event_create(&t->event[i], 0)) t->wanted = 0;
}

void rung_cuda_times_begin(rung_cuda *self, rung_cuda_times *t) {
  if (!t->wanted) return;
  if (t->last_end_ns) t->between += (double)(rung_clock_ns() - t->last_end_ns) * 1e-3;
  t->last_end_ns = 0;
  self->driver.event_record(t->event[0], self->stream);
}

void rung_cuda_times_end(rung_cuda *self, rung_cuda_times *t) {
  if (!t->wanted) return;
  self->driver.event_record(t->event[1], self->stream);
  t->running = true;
}

void rung_cuda_times_take(rung_cuda *self, rung_cuda_times *t) {
  float milliseconds = 0;
  if (!t->running || self->driver.event_between(&milliseconds, t->event[0], t->event[1])) return;
  t->running = false;
  t->runs++;
  t->device += 1e3 * (double)milliseconds;
  t->last_end_ns = rung_clock_ns();
}

static void list_launches(rung_cuda *self, const rung_cuda_times *t, const rung_cuda_list *list) {
  int number = 0;
  for (size_t at = 0; at < list->bytes; number++) {
    rung_cuda_launch l;
    memcpy(&l, list->data + at, sizeof l);
    float milliseconds = 0;
    const char *name = "library";
    if (l.function && self->driver.function_name(&name, l.function)) name = "?";
    self->driver.event_record(t->event[0], self->stream);
    at = rung_cuda_launch_one(self, list, at);
    self->driver.event_record(t->event[1], self->stream);
    self->driver.stream_wait(self->stream);
    self->driver.event_between(&milliseconds, t->event[0], t->event[1]);
    rung_host_log(self->host, RUNG_LOG_WARNING, "cuda: launch %d: %s, grid %u %u, %.1f us", number, name, l.grid[0],
                  l.grid[1], 1e3 * (double)milliseconds);
  }
}

void rung_cuda_times_close(rung_cuda *self, rung_cuda_times *t, const rung_cuda_list *last) {
  if (t->wanted && t->runs)
    rung_host_log(self->host, RUNG_LOG_WARNING,
                  "cuda: %llu lists, each %.1f us on the device and %.1f us between its end and the next launch",
                  (unsigned long long)t->runs, t->device / (double)t->runs, t->between / (double)t->runs);
  if (t->wanted > 1) list_launches(self, t, last);
  for (int i = 0; i < 2; i++)
    if (t->event[i]) self->driver.event_destroy(t->event[i]);
}
