/* SPDX-License-Identifier: MIT
 * Events as lines of a JSON array: {"name", "ph":"X", "ts", "dur", "pid", "tid", "cat", "args"}, times in microseconds.
 * "Trace Event Format", Google; its array form allows the closing bracket to be missing. */
#include <inttypes.h>
#include <rung/trace.h>
#include <stdio.h>
#include <string.h>

#include "base/append_file.h"
#include "base/clock.h"
#include "base/thread.h"

/* A process that is killed inside a write leaves it cut where one page ends and the next begins (the kernel looks for
 * fatal signals between pages), so no event crosses that: newlines fill what is left of a page. */
enum { PAGE = 4096, BUFFER = 16 * PAGE, LONGEST = PAGE - 2, FLUSH_NS = 100 * 1000 * 1000 };

/* What a context's listener gets: the trace and the context's line in it. */
typedef struct lane {
  struct lane *next;
  rung_trace *trace;
  int id;
} lane;

struct rung_trace {
  rung_host *host;
  rung_mutex lock;
  rung_append_file file;
  lane *lanes;
  int lane_count;
  uint64_t origin; /* times count from here: small numbers, short lines */
  uint64_t flushed;
  rung_status status; /* of the first write that failed; nothing is written after it */
  rung_error error;
  bool any;         /* an event was written */
  uint64_t written; /* bytes of the file before the buffer */
  size_t used;
  char buffer[BUFFER];
};

uint64_t rung_trace_now(void) { return rung_clock_ns(); }

/* ---- writing; under the lock */

static void flush(rung_trace *t, uint64_t now) {
  if (!t->status && t->used) t->status = rung_append_put(&t->file, t->buffer, t->used, &t->error);
  t->written += t->used;
  t->used = 0;
  t->flushed = now;
}

/* Room for an event in one piece. */
static void make_room(rung_trace *t, size_t bytes, uint64_t now) {
  const size_t left = PAGE - (size_t)((t->written + t->used) % PAGE), pad = bytes > left ? left : 0;
  if (pad + bytes > BUFFER - t->used) flush(t, now);
  memset(t->buffer + t->used, '\n', pad);
  t->used += pad;
}

typedef struct line {
  char text[LONGEST];
  size_t used;
} line;

static void put(line *l, const char *text) {
  const size_t n = strlen(text);
  if (n >= LONGEST - l->used) return;
  memcpy(l->text + l->used, text, n);
  l->used += n;
}

/* A JSON string; anything that is no printable ASCII and no part of a longer character is escaped, long ones are cut.
 */
static void put_quoted(line *l, const char *text) {
  put(l, "\"");
  for (size_t i = 0; text[i] && i < 400; i++) {
    const unsigned char c = (unsigned char)text[i];
    char one[8] = {(char)c, 0};
    if (c == '"' || c == '\\')
      snprintf(one, sizeof one, "\\%c", c);
    else if (c < 0x20 || c >= 0x7F)
      snprintf(one, sizeof one, "\\u%04x", c);
    put(l, one);
  }
  put(l, "\"");
}

static void put_microseconds(line *l, const char *key, uint64_t ns) {
  char number[64];
  snprintf(number, sizeof number, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
  put(l, number);
}

static void begin_event(line *l, const rung_trace *t, const char *name, const char *category, int id, uint64_t start,
                        uint64_t end) {
  char number[64];
  l->used = 0;
  put(l, "{\"name\":");
  put_quoted(l, name);
  put(l, ",\"cat\":\"");
  put(l, category);
  put(l, "\",\"ph\":\"X\"");
  put_microseconds(l, "ts", start > t->origin ? start - t->origin : 0);
  put_microseconds(l, "dur", end > start ? end - start : 0);
  snprintf(number, sizeof number, ",\"pid\":1,\"tid\":%d", id);
  put(l, number);
}

/* The comma comes before the next event, never behind the last one: what is written is strict JSON but for the bracket.
 */
static void end_event(rung_trace *t, line *l, uint64_t now) {
  put(l, "}");
  make_room(t, l->used + 2, now);
  memcpy(t->buffer + t->used, t->any ? ",\n" : "[\n", 2);
  memcpy(t->buffer + t->used + 2, l->text, l->used);
  t->used += 2 + l->used;
  t->any = true;
  if (now - t->flushed > FLUSH_NS) flush(t, now);
}

/* The name of a line. */
static void name_lane(rung_trace *t, int id, const char *name) {
  char number[64];
  line l = {.used = 0};
  snprintf(number, sizeof number, ",\"pid\":1,\"tid\":%d,\"args\":{\"name\":", id);
  put(&l, "{\"name\":\"thread_name\",\"ph\":\"M\"");
  put(&l, number);
  put_quoted(&l, name);
  put(&l, "}");
  end_event(t, &l, t->flushed);
}

/* ---- events */

static void on_step(void *self, const rung_step_info *info) {
  const lane *lane_ = self;
  rung_trace *t = lane_->trace;
  char numbers[96];
  line l;
  begin_event(&l, t, info->op, "step", lane_->id, info->start_ns, info->end_ns);
  put(&l, ",\"args\":{\"op\":");
  put_quoted(&l, info->op);
  put(&l, ",\"kernel\":");
  put_quoted(&l, info->kernel);
  put(&l, ",\"label\":");
  put_quoted(&l, info->label);
  snprintf(numbers, sizeof numbers, ",\"bytes\":%" PRIu64 ",\"tasks\":%d,\"step\":%" PRIu32 "}", info->bytes,
           info->tasks, info->step);
  put(&l, numbers);
  rung_mutex_lock(&t->lock);
  end_event(t, &l, info->end_ns);
  rung_mutex_unlock(&t->lock);
}

void rung_trace_phase(rung_trace *t, const char *name, uint64_t start_ns, uint64_t end_ns) {
  if (!t || !name) return;
  line l;
  begin_event(&l, t, name, "phase", 0, start_ns, end_ns);
  rung_mutex_lock(&t->lock);
  end_event(t, &l, end_ns);
  flush(t, end_ns); /* rare, and what a crash after it would be explained by */
  rung_mutex_unlock(&t->lock);
}

rung_status rung_trace_context(rung_trace *t, rung_context *context, const char *name, rung_error *error) {
  if (!t || !context) return rung_fail(error, RUNG_INVALID_ARGUMENT, "trace: trace and context are required");
  lane *lane_ = rung_host_alloc(t->host, RUNG_MEMORY_host, sizeof *lane_, 0);
  if (!lane_) return rung_fail(error, RUNG_OUT_OF_MEMORY, "trace: out of memory");
  rung_mutex_lock(&t->lock);
  *lane_ = (lane){t->lanes, t, ++t->lane_count};
  t->lanes = lane_;
  name_lane(t, lane_->id, name ? name : "context");
  rung_mutex_unlock(&t->lock);
  rung_context_on_step(context, on_step, lane_);
  return RUNG_OK;
}

/* ---- opening and closing */

rung_status rung_trace_open(rung_host *host, const char *path, rung_error *error, rung_trace **out_trace) {
  if (!host || !path || !out_trace)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "trace: host, path and out_trace are required");
  rung_trace *t = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *t, 0);
  if (!t) return rung_fail(error, RUNG_OUT_OF_MEMORY, "trace: out of memory");
  t->host = host;
  rung_status status = rung_mutex_init(&t->lock) ? RUNG_OK : rung_fail(error, RUNG_SYSTEM, "trace: no lock");
  if (!status) {
    status = rung_append_open(&t->file, host, path, error);
    if (status) rung_mutex_finish(&t->lock);
  }
  if (status) {
    rung_host_free(host, RUNG_MEMORY_host, t, sizeof *t);
    return status;
  }
  rung_host_retain(host);
  t->origin = t->flushed = rung_clock_ns();
  name_lane(t, 0, "phases");
  flush(t, t->origin);
  *out_trace = t;
  return RUNG_OK;
}

rung_status rung_trace_close(rung_trace *t, rung_error *error) {
  if (!t) return RUNG_OK;
  flush(t, t->flushed);
  memcpy(t->buffer, "\n]\n", 3);
  t->used = 3;
  flush(t, t->flushed);
  rung_status status = t->status;
  if (status) (void)rung_fail(error, status, "trace: %s", t->error.message);
  const rung_status closed = rung_append_close(&t->file, status ? NULL : error);
  while (t->lanes) {
    lane *next = t->lanes->next;
    rung_host_free(t->host, RUNG_MEMORY_host, t->lanes, sizeof *t->lanes);
    t->lanes = next;
  }
  rung_mutex_finish(&t->lock);
  rung_host *host = t->host;
  rung_host_free(host, RUNG_MEMORY_host, t, sizeof *t);
  rung_host_release(host);
  return status ? status : closed;
}
