/* SPDX-License-Identifier: MIT
 * Packed forms in files: a warm start packs nothing and reads no weights, with the same bits and the same memory
 * report; every damaged byte is noticed; files that hold all they need. */
#define _GNU_SOURCE
#include "aot_world.h"

enum { ROWS = 21 };
static float want[ROWS * WIDTH];
static uint64_t want_packed;

static rung_program *program_of(aot_world *w) {
  rung_template *t = NULL;
  rung_program *program = NULL;
  const rung_binding ceiling[] = {{"rows", 48}};
  CHECK_OK(rung_template_create(w->device, w->graph, NULL, &w->error, &t));
  if (t) CHECK_OK(rung_program_create(t, ceiling, 1, &w->error, &program));
  rung_template_release(t);
  return program;
}

/* Runs with the view; bits and packed bytes as they should be. */
static void check_run(aot_world *w, rung_program *program, rung_view *view) {
  float got[ROWS * WIDTH];
  if (!program || !aot_run_program(w, program, view, ROWS, got)) return;
  CHECK(memcmp(got, want, sizeof got) == 0);
  CHECK_EQ_I64(rung_view_memory(view).packed, want_packed);
}

static bool plain(aot_world *w, rung_program *program) {
  const bool ok = program && aot_run_program(w, program, w->view, ROWS, want);
  want_packed = rung_view_memory(w->view).packed;
  CHECK(want_packed > 0);
  return ok;
}

/* A start: weights of the file over a store. */
static rung_store_counters start(aot_world *w, rung_program *program, const char *folder, const char *path) {
  rung_store *store = aot_store(w, folder, 0);
  rung_store_counters c = {0};
  if (aot_bind_weights(w, path)) {
    CHECK_OK(rung_store_attach(store, w->weights, &w->error));
    check_run(w, program, w->view);
    c = aot_counters(store);
  }
  aot_drop_weights(w);
  rung_store_release(store);
  return c;
}

static const char *weights_file(void) {
  static char path[512];
  snprintf(path, sizeof path, "%s", aot_path("weights.bin"));
  aot_write(path, aot_bytes, sizeof aot_bytes);
  aot_age(path, 60);
  return path;
}

static void test_cold_and_warm(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  rung_program *program = program_of(&w);
  if (plain(&w, program)) {
    const char *file = weights_file();
    char pack[512];
    aot_drop_weights(&w);
    rung_store_counters c = start(&w, program, "warm", file); /* cold */
    CHECK_EQ_I64(c.misses, 1);
    CHECK_EQ_I64(c.forms_mapped, 0);
    CHECK_EQ_I64(c.hashed_bytes, 2 * AOT_MATRIX);
    CHECK_EQ_I64(c.written, 2);
    CHECK_EQ_I64(aot_count(aot_path("warm"), ".pack", pack), 1);
    aot_age(pack, 60);
    for (int i = 0; i < 3; i++) {
      c = start(&w, program, "warm", file);
      CHECK_EQ_I64(c.hits, 1);
      CHECK(c.forms_mapped > 0);
      CHECK_EQ_I64(c.hashed_bytes, 0);
      CHECK((c.checked_bytes > 0) == (i == 0)); /* once */
      CHECK_EQ_I64(c.written, i == 0);
    }
    c = start(&w, program, "warm", NULL); /* the same weights from memory: known by content */
    CHECK(c.hits == 1 && c.forms_mapped > 0 && c.hashed_bytes == 2 * AOT_MATRIX);
    CHECK_EQ_I64(w.log.warnings, 0);
    rung_store_options o = rung_store_options_default(); /* templates only */
    rung_store *store = NULL;
    o.packed = false;
    CHECK_OK(rung_store_open(w.host, aot_path("warm"), &o, &w.error, &store));
    if (store && aot_bind_weights(&w, file)) {
      CHECK_OK(rung_store_attach(store, w.weights, &w.error));
      check_run(&w, program, w.view);
      CHECK_EQ_I64(aot_counters(store).forms_mapped, 0);
    }
    rung_store_release(store);
  }
  rung_program_release(program);
  aot_close(&w);
}

/* Other weights in the same place, of the same size, are other weights. */
static void test_other_weights(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  rung_program *program = program_of(&w);
  const char *file = weights_file();
  aot_drop_weights(&w);
  for (int i = 0; i < 3; i++) {
    aot_bytes[40 + i] ^= 0x11;
    aot_write(file, aot_bytes, sizeof aot_bytes);
    if (i) aot_age(file, 60 + 5 * i);
    if (!aot_bind_weights(&w, NULL)) break;
    plain(&w, program);
    aot_drop_weights(&w);
    (void)start(&w, program, "other", file);
    const rung_store_counters c = start(&w, program, "other", file);
    CHECK_EQ_I64(c.hits, 1);
  }
  CHECK_EQ_I64(aot_count(aot_path("other"), ".pack", NULL), 3);
  rung_program_release(program);
  aot_close(&w);
}

static void test_set_weight(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  rung_program *program = program_of(&w);
  rung_store *store = aot_store(&w, "set", 0);
  CHECK_OK(rung_store_attach(store, w.weights, &w.error));
  float one[WIDTH * WIDTH], got[ROWS * WIDTH], other[ROWS * WIDTH];
  for (int i = 0; i < WIDTH * WIDTH; i++) one[i] = (float)(i % 7) * 0.125f;
  for (int i = 0; i < 2; i++) {
    if (!program || !aot_run_program(&w, program, w.view, ROWS, got)) break;
    CHECK_OK(rung_view_set_weight(w.view, "w", RUNG_TYPE_F32, one, sizeof one, &w.error));
    CHECK_OK(rung_view_commit(w.view, &w.error));
    aot_run_program(&w, program, w.view, ROWS, other);
    CHECK(memcmp(got, other, sizeof got) != 0);
    aot_drop_weights(&w);
    if (!aot_bind_weights(&w, NULL)) break;
    CHECK_OK(rung_store_attach(store, w.weights, &w.error));
  }
  CHECK_EQ_I64(aot_counters(store).hits, 1);
  rung_store_release(store);
  rung_program_release(program);
  aot_close(&w);
}

/* ---- damage */

static void test_damage(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  rung_program *program = program_of(&w);
  char pack[512];
  if (plain(&w, program)) {
    const char *file = weights_file();
    aot_drop_weights(&w);
    (void)start(&w, program, "damage", file);
    CHECK_EQ_I64(aot_count(aot_path("damage"), ".pack", pack), 1);
    size_t bytes, now;
    uint8_t *whole = aot_read(pack, &bytes), *copy = malloc(bytes);
    printf("a pack of %zu bytes\n", bytes);
    const size_t step = test_slow() ? 331 : 37; /* each is made anew and flushed to the disk */
    for (size_t i = 0; copy && i < bytes; i += i < 400 ? 7 : step) {
      memcpy(copy, whole, bytes);
      copy[i] ^= (uint8_t)(1 << i % 8);
      aot_write(pack, copy, bytes);
      w.log = (aot_log){0};
      const rung_store_counters c = start(&w, program, "damage", file);
      CHECK(c.damaged == 1 && c.forms_mapped == 0 && c.written == 1 && w.log.warnings == 1);
    }
    uint8_t *again = aot_read(pack, &now);
    CHECK(now == bytes && memcmp(again, whole, bytes) == 0);
    free(again);
    /* A disk that loses a bit without telling anybody: starts trust what was checked, `verify` reads everything. */
    aot_age(pack, 60);
    (void)start(&w, program, "damage", file);
    struct stat info;
    CHECK(stat(pack, &info) == 0);
    memcpy(copy, whole, bytes);
    copy[bytes - 500] ^= 4;
    const int fd = open(pack, O_WRONLY);
    CHECK(fd >= 0 && pwrite(fd, copy, bytes, 0) == (ssize_t)bytes && close(fd) == 0);
    const struct timespec times[2] = {info.st_atim, info.st_mtim};
    CHECK(utimensat(AT_FDCWD, pack, times, 0) == 0);
    rung_store *store = aot_store(&w, "damage", 0);
    uint64_t removed = 0;
    CHECK_OK(rung_store_verify(store, &w.error, &removed));
    CHECK_EQ_I64(removed, 1);
    CHECK(access(pack, F_OK) != 0);
    rung_store_release(store);
    free(whole);
    free(copy);
  }
  rung_program_release(program);
  aot_close(&w);
}

/* ---- files that hold all they need */

static void test_whole_file(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  rung_program *program = program_of(&w);
  const char *path = aot_path("whole.rung"), *twice = aot_path("twice.rung");
  if (plain(&w, program)) {
    CHECK_OK(rung_compiled_write(program, w.view, path, &w.error));
    CHECK_OK(rung_compiled_write(program, w.view, twice, &w.error));
    size_t bytes, other;
    uint8_t *a = aot_read(path, &bytes), *b = aot_read(twice, &other);
    CHECK(bytes > 0 && bytes == other && memcmp(a, b, bytes) == 0);
    free(b);
    aot_drop_weights(&w); /* nothing of them is needed any more */
    const uint64_t before = aot_held(w.host);
    for (int mode = 0; mode < 3; mode++) {
      rung_source source = mode < 2 ? rung_source_path(path) : rung_source_memory(a, bytes);
      if (mode == 1) source.mode = RUNG_SOURCE_COPY;
      rung_compiled *c = NULL;
      rung_view *view = NULL, *second = NULL;
      rung_program *back = NULL;
      CHECK_OK(rung_compiled_open(w.device, &source, &w.error, &c));
      if (!c) fprintf(stderr, "%s\n", w.error.message);
      if (!c) continue;
      rung_compiled_info info;
      rung_compiled_tensor tensor;
      rung_compiled_get_info(c, &info);
      CHECK(info.packed && info.memory.packed == want_packed);
      for (size_t i = 0; i < 3; i++)
        CHECK(rung_compiled_at(c, RUNG_COMPILED_WEIGHT, i, &tensor) && strlen(tensor.hash) == 32);
      CHECK_OK(rung_compiled_program(c, &w.error, &back));
      CHECK_OK(rung_compiled_view(c, NULL, &w.error, &view));
      CHECK_OK(rung_compiled_view(c, NULL, &w.error, &second));
      rung_compiled_release(c);
      if (view && second && back) {
        check_run(&w, back, view);
        check_run(&w, back, second);
      }
      rung_view_release(second);
      rung_view_release(view);
      rung_program_release(back);
      CHECK_EQ_I64(aot_held(w.host), before);
    }
    free(a);
    /* Other weights brought along: the forms of the file are not theirs. */
    const rung_source source = rung_source_path(path);
    rung_compiled *c = NULL;
    rung_view *view = NULL;
    aot_bytes[2] ^= 0x40;
    CHECK(aot_bind_weights(&w, NULL));
    plain(&w, program);
    aot_drop_weights(&w);
    CHECK(aot_bind_weights(&w, NULL));
    CHECK_OK(rung_compiled_open(w.device, &source, &w.error, &c));
    CHECK_OK(rung_compiled_view(c, w.weights, &w.error, &view));
    check_run(&w, program, view);
    rung_view_release(view);
    rung_compiled_release(c);
  }
  rung_program_release(program);
  aot_close(&w);
}

static void test_whole_file_damage(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  rung_program *program = program_of(&w);
  const char *path = aot_path("damaged.rung");
  CHECK_OK(rung_compiled_write(program, w.view, path, &w.error));
  size_t bytes;
  uint8_t *whole = aot_read(path, &bytes);
  const size_t step = test_slow() ? 97 : 1;
  int opened = 0;
  for (size_t i = 0; i < bytes; i += step) {
    whole[i] ^= (uint8_t)(1 << i % 8);
    const rung_source source = rung_source_memory(whole, bytes);
    rung_compiled *c = NULL;
    rung_view *view = NULL;
    rung_status s = rung_compiled_open(w.device, &source, &w.error, &c);
    if (!s) {
      opened++;
      s = rung_compiled_view(c, NULL, &w.error, &view);
    }
    test_state.checks++;
    if (s != RUNG_CORRUPT_FILE && s != RUNG_UNSUPPORTED) TEST_FAIL_("byte %zu: %s", i, rung_status_name(s));
    rung_view_release(view);
    rung_compiled_release(c);
    whole[i] ^= (uint8_t)(1 << i % 8);
  }
  CHECK(opened > 0); /* forms and weights, which opening does not read */
  /* Checksums made right again: whatever the bytes say, a status, or something that runs. */
  uint64_t seed = 9;
  uint8_t *copy = malloc(bytes);
  for (int i = 0; copy && i < (test_slow() ? 60 : 600); i++) {
    memcpy(copy, whole, bytes);
    for (int k = 0; k <= i % 4; k++) copy[64 + test_below(&seed, 3000)] = (uint8_t)test_random(&seed);
    rung_sections_seal(copy, bytes);
    const rung_source source = rung_source_memory(copy, bytes);
    rung_compiled *c = NULL;
    rung_view *view = NULL;
    rung_program *back = NULL;
    rung_context *context = NULL;
    rung_status s = rung_compiled_open(w.device, &source, &w.error, &c);
    if (!s) s = rung_compiled_view(c, NULL, &w.error, &view);
    if (!s) s = rung_compiled_program(c, &w.error, &back);
    if (!s) s = rung_context_create(rung_compiled_template(c), view, NULL, NULL, &w.error, &context);
    if (!s) s = rung_context_use(context, back);
    CHECK(s == RUNG_OK || (s != RUNG_INTERNAL && s != RUNG_OUT_OF_MEMORY));
    rung_context_destroy(context);
    rung_program_release(back);
    rung_view_release(view);
    rung_compiled_release(c);
  }
  free(copy);
  free(whole);
  rung_program_release(program);
  aot_close(&w);
}

/* ---- every call fails once */

static void test_failing(void) {
  aot_world w;
  if (!aot_open(&w)) return;
  rung_program *program = program_of(&w);
  if (!plain(&w, program)) return;
  const char *file = weights_file();
  aot_drop_weights(&w);
  for (int kind = 0; kind < RUNG_FAULTS; kind++) {
    for (int warm = 0; warm < 2 && kind != RUNG_FAULT_THREAD; warm++) {
      for (int64_t n = 1;; n++) {
        char command[600];
        snprintf(command, sizeof command, "rm -rf '%s'", aot_path("failing"));
        if (n == 1 || !warm) CHECK(system(command) == 0);
        if (warm && n == 1) (void)start(&w, program, "failing", file);
        const uint64_t before = aot_held(w.host);
        rung_store *store = aot_store(&w, "failing", 0);
        if (!aot_bind_weights(&w, file)) return;
        CHECK_OK(rung_store_attach(store, w.weights, &w.error));
        rung_context *context = NULL;
        CHECK_OK(rung_context_create(program->template_, w.view, NULL, NULL, &w.error, &context));
        test_fault f = {.kind = (rung_fault)kind, .at = n};
        rung_host_set_fault(w.host, test_fault_hit, &f);
        const rung_status s = rung_context_use(context, program);
        rung_host_set_fault(w.host, NULL, NULL);
        /* Files in trouble cost nothing but time; memory may be missing for what is made, too. */
        if (kind == RUNG_FAULT_READ || kind == RUNG_FAULT_MAP) CHECK_OK(s);
        CHECK(s == RUNG_OK || (s == RUNG_OUT_OF_MEMORY && rung_context_message(context)[0]));
        rung_context_destroy(context);
        check_run(&w, program, w.view);
        aot_drop_weights(&w);
        rung_store_release(store);
        CHECK_EQ_I64(aot_held(w.host), before);
        if (!f.hit) break;
      }
    }
  }
  rung_program_release(program);
  aot_close(&w);
}

int main(void) {
  RUN(test_cold_and_warm);
  RUN(test_other_weights);
  RUN(test_set_weight);
  RUN(test_damage);
  RUN(test_whole_file);
  RUN(test_whole_file_damage);
  RUN(test_failing);
  aot_clean();
  return TEST_END();
}
