/* SPDX-License-Identifier: MIT
 * Conformance of the cpu device at every instruction set that this machine has: random graphs against the reference. */
#define _GNU_SOURCE
#include "cts/random_run.h"

static void check_level(const char *level, uint64_t seed, int graphs) {
  rg_run run = {0};
  rung_error error = {0};
  if (level) setenv("RUNG_MAX_ISA", level, 1);
  rung_device_options o = rung_device_options_default();
  o.threads = 3;
  CHECK_OK(rung_host_create(NULL, &error, &run.host));
  CHECK_OK(rung_device_create(run.host, "ref", NULL, &error, &run.ref));
  CHECK_OK(rung_device_create(run.host, "cpu", &o, &error, &run.cpu));
  int failed = 0;
  for (int i = 0; i < graphs && run.cpu && run.ref; i++) {
    rg_choices c = {.random = seed + 2 * (uint64_t)i};
    const bool good = rg_once(&run, &c, 3);
    test_state.checks++;
    if (!good) TEST_FAIL_("%s, graph %" PRIu64 ": %s", rung_device_name(run.cpu), seed + 2 * (uint64_t)i, run.why);
    failed += !good;
    if (failed == 5) break;
  }
  printf("%s: %d random graphs\n", run.cpu ? rung_device_name(run.cpu) : "?", graphs);
  rung_device_release(run.ref);
  rung_device_release(run.cpu);
  const rung_memory m = rung_host_memory(run.host);
  CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state, 0);
  rung_host_release(run.host);
}

static int graphs(void) {
  const char *more = getenv("RUNG_GRAPHS"); /* by hand: as many as wanted */
  return more ? atoi(more) : test_slow() ? 40 : 300;
}

/* One graph by hand: RUNG_GRAPH_SEED=1043 RUNG_GRAPH_PRINT=1 */
static void test_seed(void) { check_level(NULL, strtoull(getenv("RUNG_GRAPH_SEED"), NULL, 10), 1); }
static void test_base(void) { check_level("base", 1001, graphs()); }
static void test_avx2(void) { check_level("avx2", 300001, graphs()); }
static void test_best(void) { check_level("avx512", 600001, graphs()); }
static void test_as_set(void) { check_level(NULL, 900001, graphs()); }

int main(void) {
  if (getenv("RUNG_GRAPH_SEED")) {
    RUN(test_seed);
    return TEST_END();
  }
  if (getenv("RUNG_MAX_ISA")) {
    RUN(test_as_set);
    return TEST_END();
  }
  RUN(test_base);
  RUN(test_avx2);
  RUN(test_best);
  return TEST_END();
}
