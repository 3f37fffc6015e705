/* SPDX-License-Identifier: MIT
 * Killing a process at a random moment of writing entries, again and again. */
#ifndef RUNG_TESTS_AOT_KILL_H
#define RUNG_TESTS_AOT_KILL_H

#include "aot_world.h"

/* The child compiles through the store and removes what it made, without end; the parent kills it and starts anew. */
static inline void aot_kill(int times) {
  aot_world w;
  if (!aot_open(&w)) return;
  (void)aot_folder(); /* before there are children */
  uint64_t seed = (uint64_t)getpid() * 2654435761u + 1;
  int hits = 0;
  for (int i = 0; i < times; i++) {
    int ready[2];
    if (pipe(ready)) break;
    const pid_t child = fork();
    if (!child) {
      aot_world v;
      if (!aot_open(&v)) _exit(1);
      rung_store *store = aot_store(&v, "kill", 0);
      if (rung_store_attach(store, v.weights, NULL) || write(ready[1], "x", 1) != 1) _exit(1);
      for (;;) {
        rung_template *t = NULL;
        rung_program *program = NULL;
        float y[9 * WIDTH];
        if (rung_store_template(store, v.device, v.graph, NULL, NULL, &t) ||
            rung_program_create(t, NULL, 0, NULL, &program) || !aot_run_program(&v, program, v.view, 9, y))
          _exit(1);
        rung_program_release(program);
        rung_template_release(t);
        aot_drop_weights(&v);
        if (rung_store_trim(store, 0, NULL, NULL) || !aot_bind_weights(&v, NULL) ||
            rung_store_attach(store, v.weights, NULL))
          _exit(1);
      }
    }
    char byte;
    CHECK(child > 0 && read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    const struct timespec wait = {.tv_nsec = (long)test_below(&seed, 40000000)};
    nanosleep(&wait, NULL);
    kill(child, SIGKILL);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    /* The next start: whatever is there is whole. */
    w.log = (aot_log){0};
    rung_store *store = aot_store(&w, "kill", 0);
    aot_drop_weights(&w);
    CHECK(aot_bind_weights(&w, NULL));
    CHECK_OK(rung_store_attach(store, w.weights, &w.error));
    aot_check_template(&w, store);
    const rung_store_counters c = aot_counters(store);
    CHECK_EQ_I64(c.damaged, 0);
    CHECK_EQ_I64(w.log.warnings, 0);
    hits += c.hits > 0;
    rung_store_release(store);
  }
  printf("%d kills, %d starts found something\n", times, hits);
  aot_close(&w);
}

#endif
