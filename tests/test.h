/* SPDX-License-Identifier: MIT
 * The whole test framework: checks, a list of tests, one summary line. A test is a function without arguments; main is
 *
 *   int main(void) {
 *     RUN(test_this);
 *     RUN(test_that);
 *     return TEST_END();
 *   }
 *
 * A failed check prints its place and the test goes on; TEST_END gives the exit status (77: everything was skipped). */
#ifndef RUNG_TESTS_TEST_H
#define RUNG_TESTS_TEST_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"

static struct {
  int tests, failed_tests, skipped;
  int64_t checks, failed;
} test_state;

/* After 20 failures only counts: a broken loop must not fill the log. */
#define TEST_FAIL_(...)                               \
  do {                                                \
    if (++test_state.failed <= 20) {                  \
      fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
      fprintf(stderr, __VA_ARGS__);                   \
      fputc('\n', stderr);                            \
    }                                                 \
  } while (0)
#define CHECK(cond)                                 \
  do {                                              \
    test_state.checks++;                            \
    if (!(cond)) TEST_FAIL_("not true: %s", #cond); \
  } while (0)
#define CHECK_EQ_I64(a, b)                                                                                \
  do {                                                                                                    \
    const int64_t test_a_ = (int64_t)(a), test_b_ = (int64_t)(b);                                         \
    test_state.checks++;                                                                                  \
    if (test_a_ != test_b_) TEST_FAIL_("%s is %" PRId64 ", not %s = %" PRId64, #a, test_a_, #b, test_b_); \
  } while (0)
#define CHECK_STATUS(expr, want)                                                                   \
  do {                                                                                             \
    const rung_status test_a_ = (expr), test_b_ = (want);                                          \
    test_state.checks++;                                                                           \
    if (test_a_ != test_b_)                                                                        \
      TEST_FAIL_("%s is %s, not %s", #expr, rung_status_name(test_a_), rung_status_name(test_b_)); \
  } while (0)
#define CHECK_OK(expr) CHECK_STATUS(expr, RUNG_OK)
#define CHECK_STR(a, b)                                                                                       \
  do {                                                                                                        \
    const char *test_a_ = (a), *test_b_ = (b);                                                                \
    test_state.checks++;                                                                                      \
    if (!test_a_ || !test_b_ || strcmp(test_a_, test_b_) != 0)                                                \
      TEST_FAIL_("%s is \"%s\", not \"%s\"", #a, test_a_ ? test_a_ : "(null)", test_b_ ? test_b_ : "(null)"); \
  } while (0)
#define RUN(test)                                   \
  do {                                              \
    const int64_t test_before_ = test_state.failed; \
    test_state.tests++;                             \
    test();                                         \
    if (test_state.failed != test_before_) {        \
      test_state.failed_tests++;                    \
      fprintf(stderr, "FAILED: %s\n", #test);       \
    }                                               \
  } while (0)
/* Inside a test: says why it cannot run here and leaves it. */
#define SKIP(...)                    \
  do {                               \
    printf("skipped: " __VA_ARGS__); \
    putchar('\n');                   \
    test_state.skipped++;            \
    return;                          \
  } while (0)
#define TEST_END() test_end_(__FILE__)

static inline int test_end_(const char *file) {
  const char *slash = strrchr(file, '/');
  printf("%s: %d tests, %d failed, %d skipped; %" PRId64 " checks\n", slash ? slash + 1 : file, test_state.tests,
         test_state.failed_tests, test_state.skipped, test_state.checks);
  if (test_state.failed) return 1;
  return test_state.tests && test_state.skipped == test_state.tests ? 77 : 0;
}

/* xorshift64*: the same numbers everywhere. Seed with anything but 0. */
static inline uint64_t test_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(0x2545F4914F6CDD1D);
}
/* In [0, n). */
static inline int64_t test_below(uint64_t *state, int64_t n) {
  return (int64_t)((test_random(state) >> 33) % (uint64_t)n);
}
/* In [low, high). */
static inline float test_uniform(uint64_t *state, float low, float high) {
  return low + (high - low) * (float)(test_random(state) >> 40) * 0x1p-24f;
}

/* Under a sanitizer or an emulator: tests of whole models leave out what would take minutes there. */
static inline bool test_slow(void) { return getenv("RUNG_SLOW") != NULL; }

/* A forked child may run threads: not under the thread sanitizer, nor under an emulator. */
#if defined(__SANITIZE_THREAD__)
#define TEST_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_UNDER_TSAN 1
#endif
#endif
#ifndef TEST_UNDER_TSAN
#define TEST_UNDER_TSAN 0
#endif
static inline bool test_may_fork(void) { return !TEST_UNDER_TSAN && !getenv("RUNG_EMULATED"); }
#define NO_FORK "the sanitizer or emulator allows no threads in a forked child"

/* Counts the calls of each kind and fails the n-th of one kind (0: none). Use: test_fault f = {.kind = ..., .at = n};
 * rung_host_set_fault(host, test_fault_hit, &f). The scenario has passed all its calls once !f.hit. Not for several
 * threads at once unless their calls may be counted in any order. */
typedef struct test_fault {
  rung_fault kind;
  int64_t at;
  bool hit;
  int64_t count[RUNG_FAULTS];
} test_fault;
static inline bool test_fault_hit(void *self, rung_fault kind) {
  test_fault *f = (test_fault *)self;
  const int64_t n = __atomic_add_fetch(&f->count[kind], 1, __ATOMIC_RELAXED);
  if (!f->at || kind != f->kind || n != f->at) return false;
  f->hit = true;
  return true;
}

#endif
