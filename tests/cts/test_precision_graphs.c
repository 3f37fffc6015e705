/* SPDX-License-Identifier: MIT
 * Random graphs under every precision policy, and under random ones, against the reference in f32: within the bound that
 * follows from rounding every value, every operand and every constant to the policy's types; the same bits planned large
 * and planned for the size, on one thread and on three. */
#define _GNU_SOURCE
#include "cts/random_run.h"

/* To nearest: half of the distance to the next number, relative. */
static double unit_of(rung_type type) { return type == RUNG_TYPE_F16 ? 0x1p-11 : type == RUNG_TYPE_BF16 ? 0x1p-8 : 0; }

static double unit_of_all(const rung_precision *p) {
  const rung_type type[] = {p->compute, p->reduction, p->elementwise, p->movement};
  double unit = 0;
  for (size_t i = 0; i < RUNG_COUNT(type); i++) unit = unit_of(type[i]) > unit ? unit_of(type[i]) : unit;
  return unit;
}

static void check(const char *device, rung_precision precision, uint64_t seed, int graphs) {
  rg_run run = {.precision = precision};
  rung_error error = {0};
  rung_device_options o = rung_device_options_default();
  o.threads = 3;
  CHECK_OK(rung_host_create(NULL, &error, &run.host));
  CHECK_OK(rung_device_create(run.host, "ref", NULL, &error, &run.ref));
  CHECK_OK(rung_device_create(run.host, device, &o, &error, &run.cpu));
  /* A number may be rounded as operand, as result and once more where it moves on. */
  rg_stored = 3 * unit_of_all(&precision);
  rg_step = 4 * unit_of_all(&precision) + 0x1p-19;
  int failed = 0;
  for (int i = 0; i < graphs && run.cpu && run.ref && failed < 5; i++) {
    rg_choices c = {.random = seed + 2 * (uint64_t)i};
    const bool good = rg_once(&run, &c, 2);
    test_state.checks++;
    if (!good)
      TEST_FAIL_("%s, %s, graph %" PRIu64 ": %s", rung_device_name(run.cpu), rung_precision_name(precision),
                 seed + 2 * (uint64_t)i, run.why);
    failed += !good;
  }
  rung_device_release(run.ref);
  rung_device_release(run.cpu);
  const rung_memory m = rung_host_memory(run.host);
  CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state, 0);
  rung_host_release(run.host);
}

static int graphs(void) {
  const char *more = getenv("RUNG_GRAPHS"); /* by hand: as many as wanted */
  return more ? atoi(more) : test_slow() ? 20 : 100;
}

static void check_all(const char *device, uint64_t seed) {
  static const char *const names[] = {"f16", "bf16", "mixed", "mixed-f16"};
  rung_precision precision;
  for (size_t i = 0; i < RUNG_COUNT(names); i++) {
    CHECK(rung_precision_find(names[i], &precision));
    check(device, precision, seed + 10000 * i, graphs());
  }
  for (int i = 0; i < 12; i++) { /* every category by itself, in any type */
    static const rung_type types[] = {RUNG_TYPE_F32, RUNG_TYPE_F16, RUNG_TYPE_BF16};
    uint64_t random = seed + 77 + 2 * (uint64_t)i;
    precision = rung_precision_f32();
    rung_type *const category[] = {&precision.compute, &precision.reduction, &precision.elementwise,
                                   &precision.movement};
    for (size_t k = 0; k < RUNG_COUNT(category); k++) *category[k] = types[test_below(&random, 3)];
    check(device, precision, seed + 10000 * (uint64_t)(10 + i), graphs() / 4);
  }
}

static void test_ref(void) { check_all("ref", 1001); }
static void test_base(void) {
  setenv("RUNG_MAX_ISA", "base", 1);
  check_all("cpu", 500001);
}
static void test_best(void) {
  unsetenv("RUNG_MAX_ISA");
  check_all("cpu", 900001);
}

int main(void) {
  RUN(test_ref);
  RUN(test_base);
  RUN(test_best);
  return TEST_END();
}
