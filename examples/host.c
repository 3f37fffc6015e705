/* SPDX-License-Identifier: MIT
 * An allocator and a log sink of one's own: every byte that the library takes goes through the program. Opens a model
 * file and prints what it took: host MODEL.gguf */
#include <rung/rung.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct meter {
  atomic_size_t held, peak, calls;
} meter;

static void *take(void *self, size_t bytes, size_t align) {
  meter *m = self;
  const size_t rounded = (bytes + align - 1) / align * align;
  void *p = aligned_alloc(align < sizeof(void *) ? sizeof(void *) : align, rounded ? rounded : align);
  if (!p) return NULL; /* the library turns this into RUNG_OUT_OF_MEMORY, wherever it happens */
  const size_t held = atomic_fetch_add(&m->held, bytes) + bytes;
  size_t peak = atomic_load(&m->peak);
  while (held > peak && !atomic_compare_exchange_weak(&m->peak, &peak, held)) continue;
  atomic_fetch_add(&m->calls, 1);
  return p;
}

static void give(void *self, void *p, size_t bytes) {
  atomic_fetch_sub(&((meter *)self)->held, bytes);
  free(p);
}

static void log_line(void *self, rung_log_level level, const char *text) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  (void)self;
  fprintf(stderr, "[rung %s] %s\n", names[level], text);
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: host MODEL.gguf\n"), 2;
  meter m;
  atomic_init(&m.held, 0), atomic_init(&m.peak, 0), atomic_init(&m.calls, 0);
  const rung_allocator allocator = {.size = sizeof allocator, .self = &m, .alloc = take, .free = give};
  rung_host_options options = rung_host_options_default();
  options.allocator = &allocator;
  options.log = log_line;
  options.log_level = RUNG_LOG_INFO;
  rung_error error = {0};
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_model *model = NULL;
  const rung_source file = rung_source_path(argv[1]);
  rung_status s = rung_host_create(&options, &error, &host);
  if (!s) s = rung_device_create(host, "cpu", NULL, &error, &device);
  if (!s) s = rung_model_open(device, &file, NULL, &error, &model);
  if (!s) {
    rung_model_info info;
    rung_model_get_info(model, &info);
    printf("%s, %lld layers of width %lld, %llu bytes of weights\n", info.architecture, (long long)info.layers,
           (long long)info.width, (unsigned long long)info.weight_bytes);
    printf("%zu bytes held in %zu allocations, at most %zu at once\n", atomic_load(&m.held), atomic_load(&m.calls),
           atomic_load(&m.peak));
  }
  if (s) fprintf(stderr, "%s: %s\n", rung_status_text(s), error.message);
  rung_model_release(model);
  rung_device_release(device);
  rung_host_release(host);
  if (atomic_load(&m.held)) return fprintf(stderr, "%zu bytes leaked\n", atomic_load(&m.held)), 1;
  return s ? 1 : 0;
}
