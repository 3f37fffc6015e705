/* SPDX-License-Identifier: MIT
 * A store of compiles and many: processes at one key, processes that are killed, threads, ten thousand entries, a cap
 * with the least recently used going first, caches above it. */
#define _GNU_SOURCE
#include "aot_kill.h"
#include "base/clock.h"
#include "base/folder.h"
#include "base/thread.h"
#include <rung/ops.h>

static void test_kill(void) {
  if (!test_may_fork()) SKIP(NO_FORK);
  aot_kill(20);
}

/* Eight processes at a barrier. */
static void test_processes(void) {
  if (!test_may_fork()) SKIP(NO_FORK);
  enum { PROCESSES = 8 };
  int gate[2];
  CHECK(pipe(gate) == 0);
  pid_t child[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) {
    child[i] = fork();
    if (child[i]) continue;
    char byte;
    close(gate[1]);
    test_state.failed = 0;
    if (read(gate[0], &byte, 1) != 0) _exit(2);
    aot_world w;
    if (!aot_open(&w)) _exit(3);
    rung_store *store = aot_store(&w, "eight", 0);
    CHECK_OK(rung_store_attach(store, w.weights, &w.error));
    aot_check_template(&w, store);
    CHECK_EQ_I64(aot_counters(store).damaged, 0);
    CHECK_EQ_I64(w.log.warnings, 0);
    rung_store_release(store);
    aot_close(&w);
    _exit(test_state.failed ? 1 : 0);
  }
  close(gate[0]);
  close(gate[1]); /* all at once */
  for (int i = 0; i < PROCESSES; i++) {
    int status = -1;
    CHECK(waitpid(child[i], &status, 0) == child[i] && status == 0);
  }
  CHECK_EQ_I64(aot_count(aot_path("eight"), ".rung", NULL), 1);
  CHECK_EQ_I64(aot_count(aot_path("eight"), ".pack", NULL), 1);
  CHECK_EQ_I64(aot_count(aot_path("eight"), "", NULL), 2); /* nothing half-written */
}

/* ---- threads of one process over one store */

typedef struct worker {
  rung_thread thread;
  aot_world *world;
  rung_store *store;
  int number, failures;
} worker;

static void work(void *self) {
  worker *w = self;
  rung_graph *graph = NULL; /* of its own: a graph belongs to one thread at a time */
  if (rung_graph_parse(w->world->host, aot_text, strlen(aot_text), NULL, &graph)) w->failures++;
  for (int i = 0; i < 12 && graph; i++) {
    rung_compile_options o = rung_compile_options_default();
    o.fuse = (w->number + i) % 2 == 0;
    o.merge = (w->number + i) % 3 != 0;
    rung_template *t = NULL;
    rung_error error;
    if (rung_store_template(w->store, w->world->device, graph, &o, &error, &t)) w->failures++;
    rung_template_release(t);
    if (i % 5 == w->number && rung_store_trim(w->store, 0, &error, NULL)) w->failures++;
  }
  rung_graph_destroy(graph);
}

static void test_threads(void) {
  enum { THREADS = 4 };
  aot_world w;
  if (!aot_open(&w)) return;
  rung_store *store = aot_store(&w, "threads", 8000);
  worker all[THREADS];
  for (int i = 0; i < THREADS; i++) {
    all[i] = (worker){.world = &w, .store = store, .number = i};
    CHECK_OK(rung_thread_start(&all[i].thread, w.host, work, &all[i], &w.error));
  }
  for (int i = 0; i < THREADS; i++) {
    rung_thread_join(&all[i].thread);
    CHECK_EQ_I64(all[i].failures, 0);
  }
  CHECK_EQ_I64(aot_counters(store).damaged, 0);
  rung_store_release(store);
  aot_close(&w);
}

/* ---- size */

static uint64_t folder_bytes(const char *path) {
  uint64_t bytes = 0;
  DIR *d = opendir(path);
  for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
    struct stat info;
    if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &info, 0) == 0) bytes += (uint64_t)info.st_size;
  }
  if (d) closedir(d);
  return bytes;
}

/* Entries that differ in a constant. */
static rung_status make_entry(aot_world *w, rung_store *store, int number, bool find) {
  char text[sizeof aot_text + 32];
  const char *at = strstr(aot_text, "0.5");
  snprintf(text, sizeof text, "%.*s%d.5%s", (int)(at - aot_text), aot_text, number, at + 3);
  rung_graph *g = NULL;
  rung_template *t = NULL;
  CHECK_OK(rung_graph_parse(w->host, text, strlen(text), &w->error, &g));
  const rung_status s = find ? rung_store_find(store, w->device, g, NULL, &w->error, &t)
                             : rung_store_template(store, w->device, g, NULL, &w->error, &t);
  rung_template_release(t);
  rung_graph_destroy(g);
  return s;
}

static void test_cap(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  rung_store *store = aot_store(&w, "cap", 20000); /* six entries */
  for (int i = 0; i < 4; i++) CHECK_OK(make_entry(&w, store, i, false));
  usleep(20000); /* times of files have the grain of the system's clock */
  CHECK_OK(make_entry(&w, store, 0, true));
  usleep(20000);
  for (int i = 4; i < 30; i++) {
    CHECK_OK(make_entry(&w, store, i, false));
    CHECK(folder_bytes(aot_path("cap")) <= 20000);
    if (i == 6) { /* the one that was looked at outlives those beside it */
      CHECK_OK(make_entry(&w, store, 0, true));
      CHECK_STATUS(make_entry(&w, store, 1, true), RUNG_NOT_FOUND);
    }
    usleep(5000);
  }
  CHECK(aot_counters(store).evicted > 20);
  CHECK_OK(make_entry(&w, store, 29, true));
  uint64_t removed = 0;
  aot_write(aot_path("cap/mine.txt"), (const uint8_t *)"x", 1); /* not ours: stays */
  CHECK_OK(rung_store_trim(store, 0, &w.error, &removed));
  CHECK(removed > 0);
  CHECK_EQ_I64(aot_count(aot_path("cap"), "", NULL), 1);
  rung_store_release(store);
  aot_close(&w);
}

static void test_ten_thousand(void) {
  enum { ENTRIES = 10000 };
  aot_world w;
  if (!aot_open(&w)) return;
  rung_store *store = aot_store(&w, "many", 0);
  for (int i = 0; i < 3; i++) CHECK_OK(make_entry(&w, store, i, false));
  char path[512];
  CHECK_EQ_I64(aot_count(aot_path("many"), ".rung", path), 3);
  size_t bytes;
  uint8_t *data = aot_read(path, &bytes);
  uint64_t seed = 5;
  for (int i = 3; i < ENTRIES; i++) { /* without waiting for the disk each time */
    char name[128];
    snprintf(name, sizeof name, "many/%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 ".rung", test_random(&seed),
             test_random(&seed), test_random(&seed));
    aot_write(aot_path(name), data, bytes);
  }
  free(data);
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 30; i++) {
    const uint64_t start = rung_clock_ns();
    CHECK_OK(make_entry(&w, store, i % 3, true));
    const uint64_t took = rung_clock_ns() - start;
    if (took < best) best = took;
  }
  printf("among %d entries: found, read and decoded in %.0f us\n", ENTRIES, (double)best * 1e-3);
  rung_store_release(store);
  store = aot_store(&w, "many", bytes * 1000);
  usleep(20000);
  CHECK_OK(make_entry(&w, store, 1, true));
  usleep(20000);
  const uint64_t start = rung_clock_ns();
  CHECK_OK(make_entry(&w, store, 7, false)); /* the first write looks at the folder */
  printf("thinned out to a tenth in %.0f ms\n", (double)(rung_clock_ns() - start) * 1e-6);
  CHECK(folder_bytes(aot_path("many")) <= bytes * 1000);
  CHECK_OK(make_entry(&w, store, 1, true));
  CHECK_OK(make_entry(&w, store, 7, true));
  rung_store_release(store);
  aot_close(&w);
}

/* What a process that died left behind goes when the folder is next looked at; what somebody writes stays. */
static void test_left_behind(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  CHECK(rung_folder_make(aot_path("left")));
  rung_writer *writer = NULL;
  const char *name = aot_path("left/0123456789abcdef0123456789abcdef.pack");
  CHECK_OK(rung_writer_open(w.host, name, &w.error, &writer));
  aot_write(aot_path("left/0123456789abcdef0123456789abcdef.pack.1-2-3.part"), (const uint8_t *)"x", 1);
  CHECK_EQ_I64(aot_count(aot_path("left"), ".part", NULL), 2);
  usleep(test_slow() ? 0 : 5200000); /* the age from which files count as left behind */
  rung_store *store = aot_store(&w, "left", 0);
  CHECK_OK(rung_store_verify(store, &w.error, NULL));
  CHECK_EQ_I64(aot_count(aot_path("left"), ".part", NULL), test_slow() ? 2 : 1);
  CHECK_OK(rung_writer_commit(writer, &w.error));
  CHECK_OK(rung_store_verify(store, &w.error, NULL)); /* an empty file is no entry */
  CHECK_EQ_I64(aot_count(aot_path("left"), ".pack", NULL), 0);
  rung_store_release(store);
  aot_close(&w);
}

/* ---- below a cache: memory, disk, build */

static rung_status build(void *self, uint64_t key, rung_graph *graph, rung_error *error) {
  ++*(int *)self;
  (void)error;
  const rung_dim rows = rung_graph_symbol(graph, "rows", 1, 64);
  const rung_dim extent[2] = {rows, rung_graph_constant_dim(graph, (int64_t)key)};
  const rung_value x = rung_graph_input(graph, "x", RUNG_TYPE_F32, 2, extent);
  rung_graph_output(graph, "y", rung_relu(graph, x));
  return RUNG_OK;
}

static void test_below_a_cache(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  for (int start = 0; start < 2; start++) {
    int built = 0;
    rung_store *store = aot_store(&w, "below", 0);
    rung_cache *cache = NULL;
    CHECK_OK(rung_cache_create(w.device, NULL, &w.error, &cache));
    rung_store_below(store, cache);
    rung_build b = rung_build_default();
    b.fn = build;
    b.self = &built;
    for (int i = 0; i < 6; i++) {
      rung_program *program = NULL;
      CHECK_OK(rung_cache_get_or_compile(cache, 1 + (uint64_t)i % 3, &b, &w.error, &program));
      rung_program_release(program);
    }
    CHECK_EQ_I64(built, 3); /* building is how a graph is known; compiling is what the second start leaves out */
    const rung_store_counters c = aot_counters(store);
    CHECK_EQ_I64(c.hits, start ? 3 : 0);
    CHECK_EQ_I64(c.written, start ? 0 : 3);
    rung_cache_destroy(cache);
    rung_store_release(store);
  }
  aot_close(&w);
}

int main(void) {
  (void)aot_folder(); /* before there are children */
  RUN(test_processes);
  RUN(test_kill);
  RUN(test_threads);
  RUN(test_cap);
  RUN(test_ten_thousand);
  RUN(test_left_behind);
  RUN(test_below_a_cache);
  aot_clean();
  return TEST_END();
}
