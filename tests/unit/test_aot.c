/* SPDX-License-Identifier: MIT
 * Stored compiles: a warm start is the cold one, bit for bit; keys say what was compiled; a damaged, cut or older entry
 * is noticed, removed and made anew; a folder in any kind of trouble costs a warning and nothing else. */
#define _GNU_SOURCE
#include "aot_world.h"

static char *text_of(rung_template *t, bool explain) {
  char *text = NULL;
  size_t bytes = 0;
  CHECK_OK(explain ? rung_template_explain(t, NULL, &text, &bytes) : rung_template_print(t, NULL, &text, &bytes));
  char *copy = malloc(bytes + 1);
  if (copy && text) memcpy(copy, text, bytes), copy[bytes] = 0;
  rung_text_free(t->device->host, text, bytes);
  return copy;
}

static void check_same_text(rung_template *a, rung_template *b, bool explain) {
  char *x = text_of(a, explain), *y = text_of(b, explain);
  CHECK_STR(x, y);
  free(x);
  free(y);
}

static void test_cold_and_warm(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  rung_store *store = aot_store(&w, "same/deeper", 0), *again = aot_store(&w, "same/deeper", 0);
  rung_template *cold = NULL, *warm = NULL;
  CHECK_STATUS(rung_store_find(store, w.device, w.graph, NULL, &w.error, &cold), RUNG_NOT_FOUND);
  CHECK_OK(rung_store_template(store, w.device, w.graph, NULL, &w.error, &cold));
  CHECK_OK(rung_store_find(again, w.device, w.graph, NULL, &w.error, &warm));
  if (cold && warm) {
    check_same_text(cold, warm, false);
    check_same_text(cold, warm, true);
    for (int64_t rows = 1; rows <= MOST_ROWS; rows += 13) {
      float a[MOST_ROWS * WIDTH], b[MOST_ROWS * WIDTH];
      if (aot_run(&w, cold, rows, a) && aot_run(&w, warm, rows, b))
        CHECK(memcmp(a, b, (size_t)(rows * WIDTH) * sizeof *a) == 0);
    }
    rung_program *program = NULL; /* a symbol that nothing uses can still be named */
    const rung_binding ceiling[] = {{"spare", 3}, {"rows", 20}};
    CHECK_OK(rung_program_create(warm, ceiling, 2, &w.error, &program));
    rung_program_release(program);
  }
  CHECK_EQ_I64(aot_counters(store).misses, 2);
  CHECK_EQ_I64(aot_counters(store).written, 1);
  CHECK_EQ_I64(aot_counters(again).hits, 1);
  CHECK_EQ_I64(w.log.warnings, 0);
  rung_template_release(cold);
  rung_template_release(warm);
  rung_store_release(store);
  rung_store_release(again);
  aot_close(&w);
}

/* ---- keys */

static void key_of(aot_world *w, const char *text, const rung_compile_options *o, char out[33]) {
  rung_graph *g = NULL;
  out[0] = 0;
  CHECK_OK(rung_graph_parse(w->host, text, strlen(text), &w->error, &g));
  if (g) CHECK_OK(rung_store_key(w->device, g, o, &w->error, out));
  rung_graph_destroy(g);
}

static void test_keys(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  char base[33], other[33];
  key_of(&w, aot_text, NULL, base);
  CHECK_EQ_I64(strlen(base), 32);
  rung_hash hash; /* on every machine and in every later version of the format */
  CHECK_OK(rung_graph_hash(w.graph, &hash, &w.error));
  rung_hash_hex(hash, other);
  CHECK_STR(other, "c75a5f321b07fce04b12eff0e778fc10");
  rung_compile_options o = rung_compile_options_default();
  for (int i = 0; i < 6; i++) {
    o = rung_compile_options_default();
    if (i == 0) o.quant = RUNG_QUANT_EXACT;
    if (i == 1) o.fold = false;
    if (i == 2) o.fuse = false;
    if (i == 3) o.merge = false;
    if (i == 4) o.threads = 3;
    if (i == 5) o.deterministic = true;
    key_of(&w, aot_text, &o, other);
    CHECK((strcmp(base, other) == 0) == (i == 4)); /* threads change no result */
  }
  static const char *const edits[][2] = {
      {"rows 1..64", "rows 1..65"}, {"silu", "gelu"},    {"1e-05", "1e-06"}, {"f32(0.5)", "f32(0.25)"},
      {"\"y\" %y", "\"z\" %y"},     {"# last", "# end"}, {"spare", "other"}};
  for (size_t i = 0; i < RUNG_COUNT(edits); i++) {
    char text[sizeof aot_text + 64];
    const char *at = strstr(aot_text, edits[i][0]);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - aot_text), aot_text, edits[i][1], at + strlen(edits[i][0]));
    key_of(&w, text, NULL, other);
    CHECK((strcmp(base, other) == 0) == (i >= 5)); /* nor do labels, and symbols that nothing uses */
  }
  rung_device *ref = NULL;
  CHECK_OK(rung_device_create(w.host, "ref", NULL, &w.error, &ref));
  CHECK_OK(rung_store_key(ref, w.graph, NULL, &w.error, other));
  CHECK(strcmp(base, other) != 0);
  rung_device_release(ref);
  aot_close(&w);
}

/* ---- damage */

/* The entry's file after something was done to it: refused, gone, made anew as it was. */
static void check_repaired(aot_world *w, const char *path, const uint8_t *whole, size_t bytes) {
  rung_store *store = aot_store(w, "damage", 0);
  w->log = (aot_log){0};
  rung_template *t = NULL;
  CHECK_OK(rung_store_template(store, w->device, w->graph, NULL, &w->error, &t));
  rung_template_release(t);
  const rung_store_counters c = aot_counters(store);
  CHECK_EQ_I64(c.damaged, 1);
  CHECK_EQ_I64(c.hits, 0);
  CHECK_EQ_I64(c.written, 1);
  CHECK_EQ_I64(w->log.warnings, 1);
  size_t now;
  uint8_t *data = aot_read(path, &now);
  CHECK(now == bytes && memcmp(data, whole, bytes) == 0);
  free(data);
  rung_store_release(store);
}

static void check_noticed(aot_world *w, const char *path) {
  rung_store *store = aot_store(w, "damage", 0);
  rung_template *t = NULL;
  CHECK_STATUS(rung_store_find(store, w->device, w->graph, NULL, &w->error, &t), RUNG_NOT_FOUND);
  CHECK_EQ_I64(aot_counters(store).damaged, 1);
  CHECK(access(path, F_OK) != 0);
  rung_template_release(t);
  rung_store_release(store);
}

static void test_damage(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  rung_store *store = aot_store(&w, "damage", 0);
  aot_check_template(&w, store);
  rung_store_release(store);
  char path[512];
  CHECK_EQ_I64(aot_count(aot_path("damage"), ".rung", path), 1);
  size_t bytes;
  uint8_t *whole = aot_read(path, &bytes), *copy = malloc(bytes + 64);
  printf("an entry of %zu bytes\n", bytes);
  for (size_t i = 0; copy && i < bytes; i++) { /* every byte of it; made anew for some, since that waits for the disk */
    memcpy(copy, whole, bytes);
    copy[i] ^= (uint8_t)(1 << i % 8);
    aot_write(path, copy, bytes);
    if (i % 61 == 0)
      check_repaired(&w, path, whole, bytes);
    else
      check_noticed(&w, path);
  }
  for (size_t cut = 0; cut < bytes; cut += 1 + bytes / 16) {
    aot_write(path, whole, cut);
    check_repaired(&w, path, whole, bytes);
  }
  memcpy(copy, whole, bytes);
  memset(copy + bytes, 0, 64);
  aot_write(path, copy, bytes + 64); /* longer */
  check_repaired(&w, path, whole, bytes);
  copy[8]++; /* a later version, all checksums right */
  rung_sections_seal(copy, bytes);
  aot_write(path, copy, bytes);
  check_repaired(&w, path, whole, bytes);
  CHECK(strstr(w.log.last, "version") != NULL);
  memcpy(copy, whole, bytes);
  copy[32] ^= 1; /* another entry's content under this name */
  rung_sections_seal(copy, bytes);
  aot_write(path, copy, bytes);
  check_repaired(&w, path, whole, bytes);
  /* Bytes that were never written by us, under right checksums: a status, whatever they are. */
  uint64_t seed = 3;
  for (int i = 0; i < 300; i++) {
    memcpy(copy, whole, bytes);
    for (int k = 0; k <= i % 3; k++) copy[64 + test_below(&seed, (int64_t)bytes - 64)] = (uint8_t)test_random(&seed);
    rung_sections_seal(copy, bytes);
    const rung_source source = rung_source_memory(copy, bytes);
    rung_compiled *c = NULL;
    rung_error error = {RUNG_OK, ""};
    if (rung_compiled_open(w.device, &source, &error, &c)) CHECK(error.status && error.message[0]);
    rung_compiled_release(c);
  }
  free(whole);
  free(copy);
  aot_close(&w);
}

/* ---- folders in trouble: compiling goes on, one warning */

static void check_trouble(aot_world *w, const char *name) {
  w->log = (aot_log){0};
  rung_store *store = aot_store(w, name, 0);
  aot_check_template(w, store);
  aot_check_template(w, store);
  CHECK_EQ_I64(aot_counters(store).hits, 0);
  CHECK_EQ_I64(aot_counters(store).write_failures, 2);
  CHECK(w->log.warnings == 1 || w->log.warnings == 2); /* one for reading, one for writing */
  rung_store_release(store);
}

static void test_trouble(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  aot_write(aot_path("file"), (const uint8_t *)"x", 1);
  check_trouble(&w, "file"); /* no folder at all */
  check_trouble(&w, "file/below");
  if (geteuid() != 0) {
    CHECK(mkdir(aot_path("locked"), 0555) == 0);
    check_trouble(&w, "locked");
  }
  rung_store *store = aot_store(&w, "gone", 0);
  w.log = (aot_log){0};
  for (int i = 0; i < 3; i++) { /* a folder that vanishes comes back with the next entry */
    aot_check_template(&w, store);
    char path[512], command[600];
    CHECK_EQ_I64(aot_count(aot_path("gone"), ".rung", path), 1);
    snprintf(command, sizeof command, "rm -rf '%s'", aot_path("gone"));
    if (system(command)) CHECK(!"removed");
  }
  CHECK_EQ_I64(aot_counters(store).written, 3);
  CHECK_EQ_I64(w.log.warnings, 0);
  rung_store_release(store);
  aot_close(&w);
}

/* A disk that is full: writes end in the middle. In a child, since the limit is the process's. */
static void test_full_disk(void) {
  if (!test_may_fork()) SKIP(NO_FORK);
  const pid_t child = fork();
  if (!child) {
    test_state.failed = 0;
    aot_world w;
    if (!aot_open(&w)) _exit(1);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t bytes = 0; bytes < 3200; bytes += 1000) {
      const struct rlimit limit = {bytes, RLIM_INFINITY};
      if (setrlimit(RLIMIT_FSIZE, &limit)) _exit(2);
      w.log = (aot_log){0};
      rung_store *store = aot_store(&w, "full", 0);
      aot_check_template(&w, store);
      aot_check_template(&w, store);
      CHECK_EQ_I64(aot_counters(store).write_failures, 2);
      CHECK_EQ_I64(w.log.warnings, 1);
      CHECK_EQ_I64(aot_count(aot_path("full"), "", NULL), 0); /* no truncated entry stays */
      rung_store_release(store);
    }
    aot_close(&w);
    fflush(NULL);
    _exit(test_state.failed ? 1 : 0);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_EQ_I64(status, 0);
}

/* A file system of its own, where that is allowed. */
static void test_small_disk(void) {
  char command[1200];
  CHECK(mkdir(aot_path("disk"), 0777) == 0);
  snprintf(command, sizeof command, "mount -t tmpfs -o size=64k tmpfs '%s' 2>/dev/null", aot_path("disk"));
  if (system(command)) SKIP("no file system can be mounted here");
  aot_world w;
  if (aot_open(&w)) {
    char fill[512];
    snprintf(fill, sizeof fill, "%s/fill", aot_path("disk"));
    uint8_t *zeros = calloc(1, 64 << 10);
    if (zeros) aot_write(fill, zeros, 64 << 10);
    free(zeros);
    rung_store *store = aot_store(&w, "disk", 0);
    w.log = (aot_log){0};
    aot_check_template(&w, store);
    CHECK_EQ_I64(aot_count(aot_path("disk"), "", NULL), 1);
    CHECK_EQ_I64(w.log.warnings, 1);
    if (unlink(fill)) CHECK(!"removed");
    aot_check_template(&w, store);
    CHECK_EQ_I64(aot_counters(store).written, 1);
    rung_store_release(store);
    aot_close(&w);
  }
  snprintf(command, sizeof command, "umount '%s'", aot_path("disk"));
  if (system(command)) CHECK(!"unmounted");
}

/* ---- every call fails once */

static void test_failing(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  aot_check_template(&w, NULL); /* the view has its forms */
  for (int kind = 0; kind < RUNG_FAULTS; kind++) {
    if (kind == RUNG_FAULT_THREAD || kind == RUNG_FAULT_COMMIT) continue;
    for (int warm = 0; warm < 2; warm++) {
      for (int64_t n = 1;; n++) {
        char command[600];
        snprintf(command, sizeof command, "rm -rf '%s'", aot_path("failing"));
        if (n % 16 == 1 || !warm) CHECK(system(command) == 0);
        if (warm && n % 16 == 1) {
          rung_store *store = aot_store(&w, "failing", 0);
          aot_check_template(&w, store);
          rung_store_release(store);
        }
        const uint64_t before = aot_held(w.host);
        test_fault f = {.kind = (rung_fault)kind, .at = n};
        rung_store *store = NULL;
        rung_template *t = NULL;
        rung_error error = {RUNG_OK, ""};
        rung_host_set_fault(w.host, test_fault_hit, &f);
        rung_status s = rung_store_open(w.host, aot_path("failing"), NULL, &error, &store);
        if (!s) s = rung_store_template(store, w.device, w.graph, NULL, &error, &t);
        rung_host_set_fault(w.host, NULL, NULL);
        CHECK(s == RUNG_OK || (s == RUNG_OUT_OF_MEMORY && kind == RUNG_FAULT_ALLOC && error.message[0]));
        if (s && (s != RUNG_OUT_OF_MEMORY || kind)) fprintf(stderr, "%" PRId64 ": %s\n", n, error.message);
        rung_template_release(t);
        if (store && n % 5 == 0) aot_check_template(&w, store);
        rung_store_release(store);
        CHECK_EQ_I64(aot_held(w.host), before);
        if (!f.hit) break;
      }
    }
  }
  aot_close(&w);
}

/* ---- other instruction sets */

static void test_instruction_sets(void) {
  static const char *const levels[] = {"base", "avx2", "avx512", "neon"};
  aot_world w;
  if (!aot_open(&w)) return;
  rung_template *t = NULL;
  rung_program *program = NULL;
  CHECK_OK(rung_template_create(w.device, w.graph, NULL, &w.error, &t));
  const rung_binding ceiling[] = {{"rows", 48}};
  CHECK_OK(rung_program_create(t, ceiling, 1, &w.error, &program));
  CHECK_OK(rung_compiled_write(program, NULL, aot_path("net.rung"), &w.error));
  const rung_source source = rung_source_path(aot_path("net.rung"));
  float want[MOST_ROWS * WIDTH], got[MOST_ROWS * WIDTH];
  aot_run(&w, t, 33, want);
  int opened = 0;
  for (size_t i = 0; i < RUNG_COUNT(levels); i++) {
    rung_device *device = NULL;
    rung_compiled *c = NULL;
    setenv("RUNG_MAX_ISA", levels[i], 1);
    if (!rung_device_create(w.host, "cpu", NULL, &w.error, &device)) {
      const rung_status s = rung_compiled_open(device, &source, &w.error, &c);
      test_state.checks++;
      if (s && (s != RUNG_UNSUPPORTED || !strstr(w.error.message, "opened on")))
        TEST_FAIL_("%s: %s", levels[i], w.error.message);
      if (s) printf("%s: %s\n", levels[i], w.error.message);
      rung_program *other = NULL;
      if (!s) CHECK_OK(rung_compiled_program(c, &w.error, &other));
      if (other && aot_run_program(&w, other, w.view, 33, got)) {
        for (int k = 0; k < 33 * WIDTH; k++) CHECK(got[k] - want[k] < 1e-3f && want[k] - got[k] < 1e-3f);
        opened++;
      }
      rung_program_release(other);
      rung_compiled_release(c);
      rung_device_release(device);
    }
    unsetenv("RUNG_MAX_ISA");
  }
  CHECK(opened >= 1);
  rung_device *ref = NULL;
  rung_compiled *c = NULL;
  CHECK_OK(rung_device_create(w.host, "ref", NULL, &w.error, &ref));
  CHECK_STATUS(rung_compiled_open(ref, &source, &w.error, &c), RUNG_UNSUPPORTED);
  CHECK(strstr(w.error.message, "compiled for device cpu") != NULL);
  rung_device_release(ref);
  rung_program_release(program);
  rung_template_release(t);
  aot_close(&w);
}

/* ---- by hand: the manifest, the ceiling, the same bytes */

static void test_by_hand(void) {
  if (!test_may_fork()) SKIP(NO_FORK);
  aot_world w;
  if (!aot_open(&w)) return;
  rung_template *t = NULL;
  rung_program *program = NULL;
  rung_compile_options o = rung_compile_options_default();
  o.deterministic = true; /* which the file says, too */
  CHECK_OK(rung_template_create(w.device, w.graph, &o, &w.error, &t));
  const rung_binding ceiling[] = {{"rows", 33}};
  CHECK_OK(rung_program_create(t, ceiling, 1, &w.error, &program));
  CHECK_OK(rung_compiled_write(program, NULL, aot_path("a.rung"), &w.error));
  const pid_t child = fork(); /* in another process, from the start */
  if (!child) {
    aot_world v;
    rung_template *u = NULL;
    rung_program *other = NULL;
    const bool ok = aot_open(&v) && !rung_template_create(v.device, v.graph, &o, NULL, &u) &&
                    !rung_program_create(u, ceiling, 1, NULL, &other) &&
                    !rung_compiled_write(other, NULL, aot_path("b.rung"), NULL);
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  size_t a_bytes, b_bytes;
  uint8_t *a = aot_read(aot_path("a.rung"), &a_bytes), *b = aot_read(aot_path("b.rung"), &b_bytes);
  CHECK(a_bytes > 0 && a_bytes == b_bytes && memcmp(a, b, a_bytes) == 0);
  free(a);
  free(b);
  const rung_source source = rung_source_path(aot_path("a.rung"));
  rung_compiled *c = NULL;
  CHECK_OK(rung_compiled_open(w.device, &source, &w.error, &c));
  if (c) {
    rung_compiled_info info;
    rung_compiled_tensor tensor;
    rung_memory memory;
    rung_compiled_get_info(c, &info);
    CHECK_STR(info.device, rung_device_name(w.device));
    CHECK_EQ_I64(info.ceilings, 1);
    CHECK(info.deterministic);
    CHECK_STR(info.ceiling[0].symbol, "rows");
    CHECK_EQ_I64(info.ceiling[0].value, 33);
    CHECK(info.inputs == 1 && info.outputs == 1 && info.weights == 3 && !info.packed);
    CHECK(rung_compiled_at(c, RUNG_COMPILED_INPUT, 0, &tensor));
    CHECK_STR(tensor.name, "x");
    CHECK_STR(tensor.extents, "rows,64");
    CHECK(rung_compiled_at(c, RUNG_COMPILED_WEIGHT, 0, &tensor) && tensor.type == RUNG_TYPE_Q4_0 && !tensor.hash[0]);
    CHECK(!rung_compiled_at(c, RUNG_COMPILED_OUTPUT, 1, &tensor));
    CHECK_OK(rung_program_memory(program, NULL, 0, NULL, &w.error, &memory));
    CHECK_EQ_I64(info.memory.activations, memory.activations);
    CHECK_EQ_I64(info.memory.packed, memory.packed);
    rung_program *back = NULL;
    float want[MOST_ROWS * WIDTH], got[MOST_ROWS * WIDTH];
    CHECK_OK(rung_compiled_program(c, &w.error, &back));
    CHECK(!back || rung_program_template(back)->options.deterministic);
    rung_compiled_release(c);
    if (back && aot_run_program(&w, program, w.view, 33, want) && aot_run_program(&w, back, w.view, 33, got))
      CHECK(memcmp(want, got, 33 * WIDTH * sizeof *got) == 0);
    rung_program_release(back);
  }
  CHECK_STATUS(rung_compiled_write(program, NULL, aot_path("no/where.rung"), &w.error), RUNG_IO);
  rung_program_release(program);
  rung_template_release(t);
  aot_close(&w);
}

int main(void) {
  RUN(test_cold_and_warm);
  RUN(test_keys);
  RUN(test_damage);
  RUN(test_trouble);
  RUN(test_full_disk);
  RUN(test_small_disk);
  RUN(test_failing);
  RUN(test_instruction_sets);
  RUN(test_by_hand);
  aot_clean();
  return TEST_END();
}
