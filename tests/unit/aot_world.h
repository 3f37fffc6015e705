/* SPDX-License-Identifier: MIT
 * A small graph with packed weights, a device, a folder of this test's own: what tests of stored compiles share. */
#ifndef RUNG_TESTS_AOT_WORLD_H
#define RUNG_TESTS_AOT_WORLD_H

#include <dirent.h>
#include <fcntl.h>
#include <rung/store.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/map_file.h"
#include "formats/sections.h"
#include "ir/graph.h"
#include "runtime/runtime.h"
#include "test.h"
#include "weights/store.h"

enum { WIDTH = 64, MOST_ROWS = 40 };

static const char aot_text[] =
    "rung 1\n"
    "symbol rows 1..64\n"
    "symbol spare 1..8\n"
    "%x = input {name=\"x\"} : f32[rows,64]\n"
    "%w = weight {name=\"w\"} : q4_0[64,64]\n"
    "%v = weight {name=\"v\"} : q4_0[64,64]\n"
    "%g = weight {name=\"g\"} : f32[64]\n"
    "%n = rms_norm %x, %g {epsilon=1e-05}  # first\n"
    "%a = matmul %n, %w {transpose_b=true}  # up\n"
    "%b = matmul %n, %v {transpose_b=true}  # gate\n"
    "%s = silu %b  # gate\n"
    "%m = mul %s, %a\n"
    "%half = constant {data=f32(0.5)} : f32[]\n"
    "%h = mul %m, %half\n"
    "%y = add %h, %x  # last\n"
    "output \"y\" %y\n";

typedef struct aot_log {
  int warnings, infos;
  char last[1024];
} aot_log;

typedef struct aot_world {
  rung_host *host;
  rung_device *device;
  rung_graph *graph;
  rung_map map;
  rung_weights *weights;
  rung_view *view;
  aot_log log;
  rung_error error;
} aot_world;

static void aot_on_log(void *self, rung_log_level level, const char *text) {
  aot_log *log = self;
  if (level == RUNG_LOG_WARNING) log->warnings++;
  if (level == RUNG_LOG_INFO) log->infos++;
  snprintf(log->last, sizeof log->last, "%s", text);
}

/* Blocks of q4_0 with plain scales, then g. */
static uint8_t aot_bytes[2 * WIDTH * (WIDTH / 32) * 18 + WIDTH * 4];

static inline void aot_write(const char *path, const uint8_t *data, size_t bytes);
static inline const char *aot_path(const char *name);

/* Files that are a few seconds old can be remembered. */
static inline void aot_age(const char *path, int seconds) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = time(NULL) - seconds}};
  CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

enum { AOT_MATRIX = WIDTH * (WIDTH / 32) * 18 };

/* The weights as they are in memory, or in a file with these bytes. */
static inline bool aot_bind_weights(aot_world *w, const char *path) {
  const rung_source source = path ? rung_source_path(path) : rung_source_memory(aot_bytes, sizeof aot_bytes);
  int s;
  if (rung_map_open(&w->map, w->host, &source, &w->error) || rung_weights_create(w->host, &w->error, &w->weights) ||
      rung_weights_add_source(w->weights, &(rung_weights_source){.map = &w->map}, &w->error, &s))
    return false;
  const rung_tensor_desc desc[3] = {{"w", 1, RUNG_TYPE_Q4_0, 2, {WIDTH, WIDTH}},
                                    {"v", 1, RUNG_TYPE_Q4_0, 2, {WIDTH, WIDTH}},
                                    {"g", 1, RUNG_TYPE_F32, 1, {WIDTH}}};
  for (size_t i = 0; i < 3; i++)
    if (rung_weights_add(w->weights, &desc[i], s, i * AOT_MATRIX, &w->error, NULL)) return false;
  return !rung_view_create(w->weights, &w->error, &w->view);
}

static inline void aot_drop_weights(aot_world *w) {
  rung_view_release(w->view);
  rung_weights_release(w->weights);
  rung_map_close(&w->map);
  w->view = NULL;
  w->weights = NULL;
}

static inline bool aot_make_weights(aot_world *w) {
  uint64_t seed = 7;
  const size_t matrix = AOT_MATRIX;
  for (size_t i = 0; i < 2 * matrix; i++) aot_bytes[i] = (uint8_t)test_random(&seed);
  for (size_t i = 0; i < 2 * matrix; i += 18) aot_bytes[i] = (uint8_t)(i / 18), aot_bytes[i + 1] = 0x28; /* f16 */
  for (int i = 0; i < WIDTH; i++) {
    const float g = test_uniform(&seed, 0.5f, 1.5f);
    memcpy(aot_bytes + 2 * matrix + (size_t)i * 4, &g, 4);
  }
  return aot_bind_weights(w, NULL);
}

static inline bool aot_open(aot_world *w) {
  *w = (aot_world){0};
  rung_host_options o = rung_host_options_default();
  o.log = aot_on_log;
  o.log_self = &w->log;
  o.log_level = RUNG_LOG_INFO;
  rung_device_options d = rung_device_options_default();
  d.threads = 2;
  const bool ok = !rung_host_create(&o, &w->error, &w->host) &&
                  !rung_device_create(w->host, "cpu", &d, &w->error, &w->device) &&
                  !rung_graph_parse(w->host, aot_text, strlen(aot_text), &w->error, &w->graph) && aot_make_weights(w);
  test_state.checks++;
  if (!ok) TEST_FAIL_("%s", w->error.message);
  return ok;
}

static inline uint64_t aot_held(const rung_host *host) {
  const rung_memory m = rung_host_memory(host);
  uint64_t sum = 0;
#define X(name, text) sum += m.name;
  RUNG_MEMORY_MAP(X)
#undef X
  return sum;
}

static inline void aot_close(aot_world *w) {
  aot_drop_weights(w);
  rung_graph_destroy(w->graph);
  rung_device_release(w->device);
  rung_host_release(w->host);
}

/* ---- running */

static inline void aot_input(float *x, int64_t rows) {
  uint64_t seed = 11;
  for (int64_t i = 0; i < rows * WIDTH; i++) x[i] = test_uniform(&seed, -1, 1);
}

/* y of `rows` rows; false on an error, which is reported. */
static inline bool aot_run_program(aot_world *w, rung_program *program, rung_view *view, int64_t rows, float *out) {
  static float x[MOST_ROWS * WIDTH];
  aot_input(x, rows);
  rung_context *c = NULL;
  rung_status s = rung_context_create(program->template_, view, NULL, NULL, &w->error, &c);
  if (!s) s = rung_context_use(c, program);
  const rung_tensor in = rung_tensor_dense(RUNG_TYPE_F32, 2, (int64_t[]){rows, WIDTH}, x);
  if (!s) s = rung_context_bind_input(c, 0, &in);
  if (!s) s = rung_context_set_extent(c, "spare", 1);
  if (!s) s = rung_context_run(c);
  rung_tensor y = {0};
  if (!s) s = rung_context_output(c, 0, &y);
  if (!s) memcpy(out, y.data, (size_t)(rows * WIDTH) * sizeof *out);
  test_state.checks++;
  if (s) TEST_FAIL_("run: %s: %s", rung_status_name(s), c ? rung_context_message(c) : w->error.message);
  rung_context_destroy(c);
  return !s;
}

static inline bool aot_run(aot_world *w, rung_template *t, int64_t rows, float *out) {
  rung_program *program = NULL;
  CHECK_OK(rung_program_create(t, NULL, 0, &w->error, &program));
  const bool ok = program && aot_run_program(w, program, w->view, rows, out);
  rung_program_release(program);
  return ok;
}

/* ---- folders */

static inline const char *aot_folder(void) {
  static char folder[128];
  if (!folder[0]) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.90s/rung-aot-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) perror(folder), exit(1);
  }
  return folder;
}
static inline const char *aot_path(const char *name) {
  static char path[4][512];
  static int turn;
  char *out = path[turn++ % 4];
  snprintf(out, sizeof path[0], "%.120s/%.300s", aot_folder(), name);
  return out;
}
static inline void aot_clean(void) {
  char command[300];
  snprintf(command, sizeof command, "chmod -R u+w '%s' && rm -rf '%s'", aot_folder(), aot_folder());
  if (system(command)) fprintf(stderr, "%s stays\n", aot_folder());
}
/* Names in a folder that end so; the last one found goes to `out`. */
static inline int aot_count(const char *folder, const char *end, char out[512]) {
  int n = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
    const size_t length = strlen(e->d_name), tail = strlen(end);
    if (e->d_name[0] == '.' || length < tail || strcmp(e->d_name + length - tail, end) != 0) continue;
    if (out) snprintf(out, 512, "%.250s/%.250s", folder, e->d_name);
    n++;
  }
  if (d) closedir(d);
  return n;
}
static inline uint8_t *aot_read(const char *path, size_t *out_bytes) {
  FILE *file = fopen(path, "rb");
  uint8_t *data = malloc(1 << 20);
  *out_bytes = file && data ? fread(data, 1, 1 << 20, file) : 0;
  if (file) fclose(file);
  return data;
}
static inline void aot_write(const char *path, const uint8_t *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file)) perror(path), exit(1);
}

static inline rung_store *aot_store(aot_world *w, const char *name, uint64_t cap) {
  rung_store *store = NULL;
  rung_store_options o = rung_store_options_default();
  o.cap = cap;
  CHECK_OK(rung_store_open(w->host, aot_path(name), &o, &w->error, &store));
  return store;
}
static inline rung_store_counters aot_counters(const rung_store *store) {
  rung_store_counters c;
  rung_store_get_counters(store, &c);
  return c;
}

/* Through a store: bits as without it, whatever state the store is in. */
static inline void aot_check_template(aot_world *w, rung_store *store) {
  static float want[MOST_ROWS * WIDTH], got[MOST_ROWS * WIDTH];
  static bool known;
  if (!known) {
    rung_template *plain = NULL;
    CHECK_OK(rung_template_create(w->device, w->graph, NULL, &w->error, &plain));
    known = plain && aot_run(w, plain, 9, want);
    rung_template_release(plain);
  }
  rung_template *t = NULL;
  const rung_status s = rung_store_template(store, w->device, w->graph, NULL, &w->error, &t);
  test_state.checks++;
  if (s) TEST_FAIL_("store: %s", w->error.message);
  if (!s && aot_run(w, t, 9, got)) CHECK(memcmp(want, got, 9 * WIDTH * sizeof *got) == 0);
  rung_template_release(t);
}

#endif
