/* SPDX-License-Identifier: MIT
 * Placing buffers: no two that live at once share a byte, the arena stays near what must live at once, and the overlap
 * checker sees what a wrong placement would do. */
#include "../test.h"
#include "plan/plan.h"

enum { MOST = 240, ALIGN = 64 };

typedef struct set {
  rung_buffer buffer[MOST];
  uint32_t count;
} set;

/* Lifetimes as graphs have them: most short, some long; sizes over several orders, sometimes 0. */
static void fill(set *s, uint64_t *random) {
  s->count = (uint32_t)test_below(random, MOST) + 1;
  const int64_t steps = 1 + test_below(random, 2 * s->count);
  for (uint32_t i = 0; i < s->count; i++) {
    const int64_t first = test_below(random, steps);
    const int64_t life = test_below(random, 8) ? test_below(random, 4) : test_below(random, steps);
    const uint64_t bytes =
        test_below(random, 12) ? (uint64_t)test_below(random, (int64_t)1 << (4 + test_below(random, 17))) : 0;
    s->buffer[i] = (rung_buffer){.bound = bytes, .first = (uint32_t)first, .last = (uint32_t)(first + life)};
  }
}

static uint64_t rounded(uint64_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

static bool together(const rung_buffer *a, const rung_buffer *b) { return a->first <= b->last && b->first <= a->last; }

/* What lives at the busiest step. */
static uint64_t lower_bound(const set *s) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    uint64_t sum = 0;
    for (uint32_t j = 0; j < s->count; j++)
      if (s->buffer[j].first <= s->buffer[i].first && s->buffer[i].first <= s->buffer[j].last)
        sum += rounded(s->buffer[j].bound);
    if (sum > most) most = sum;
  }
  return most;
}

static uint32_t overlaps(const set *s) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    for (uint32_t j = 0; j < i; j++) {
      const rung_buffer *a = &s->buffer[i], *b = &s->buffer[j];
      n += together(a, b) && a->bound && b->bound && a->offset < b->offset + b->bound &&
           b->offset < a->offset + a->bound;
    }
  }
  return n;
}

static void test_no_overlap_and_near_the_bound(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  uint64_t random = 7;
  double worst = 1, sum = 0;
  enum { CASES = 300 };
  static set s;
  for (int c = 0; c < CASES; c++) {
    fill(&s, &random);
    uint64_t total = 0;
    CHECK_OK(rung_plan_place(host, s.buffer, s.count, ALIGN, NULL, &total));
    CHECK_EQ_I64(overlaps(&s), 0);
    CHECK_OK(rung_plan_check_overlap(host, s.buffer, s.count, NULL));
    const uint64_t least = lower_bound(&s);
    CHECK(total >= least);
    for (uint32_t i = 0; i < s.count; i++) {
      CHECK_EQ_I64(s.buffer[i].offset % ALIGN, 0);
      CHECK(s.buffer[i].offset + s.buffer[i].bound <= total);
    }
    const double ratio = least ? (double)total / (double)least : 1;
    if (ratio > worst) worst = ratio;
    sum += ratio;
  }
  printf("arena over what lives at once: %.3f on average, %.3f at worst\n", sum / CASES, worst);
  CHECK(sum / CASES < 1.1);
  CHECK(worst < 1.6);
  rung_host_release(host);
}

/* Moving any one buffer onto a neighbour in time is seen, whichever of the two comes first in memory. */
static void test_planted_overlap_is_seen(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  uint64_t random = 11;
  static set s;
  int planted = 0;
  for (int c = 0; c < 100; c++) {
    fill(&s, &random);
    uint64_t total = 0;
    CHECK_OK(rung_plan_place(host, s.buffer, s.count, ALIGN, NULL, &total));
    const uint32_t i = (uint32_t)test_below(&random, s.count), j = (uint32_t)test_below(&random, s.count);
    rung_buffer *a = &s.buffer[i], *b = &s.buffer[j];
    if (i == j || !a->bound || !b->bound) continue;
    if (test_below(&random, 2))
      a->offset = b->offset + b->bound - 1; /* the last byte of b */
    else
      a->offset = b->offset;
    rung_error error = {0};
    const rung_status status = rung_plan_check_overlap(host, s.buffer, s.count, &error);
    CHECK((overlaps(&s) != 0) == (status != RUNG_OK));
    if (!overlaps(&s)) continue;
    planted++;
    CHECK_STATUS(status, RUNG_INTERNAL);
    CHECK(strstr(error.message, "share bytes") != NULL);
  }
  CHECK(planted > 5);
  rung_host_release(host);
}

static void test_edges(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  uint64_t total = 1;
  CHECK_OK(rung_plan_place(host, NULL, 0, ALIGN, NULL, &total));
  CHECK_EQ_I64(total, 0);
  CHECK_OK(rung_plan_check_overlap(host, NULL, 0, NULL));
  /* Too large together, though each alone would fit. */
  rung_buffer two[2] = {{.bound = (uint64_t)PTRDIFF_MAX - 100, .last = 1}, {.bound = 1000, .last = 1}};
  rung_error error = {0};
  CHECK_STATUS(rung_plan_place(host, two, 2, ALIGN, &error, &total), RUNG_OVERFLOW);
  CHECK(strstr(error.message, "ceiling") != NULL);
  /* A thousand buffers of one size one after another need one place. */
  static rung_buffer chain[1000];
  for (uint32_t i = 0; i < 1000; i++) chain[i] = (rung_buffer){.bound = 4096, .first = i, .last = i};
  CHECK_OK(rung_plan_place(host, chain, 1000, ALIGN, NULL, &total));
  CHECK_EQ_I64(total, 4096);
  rung_host_release(host);
}

/* A place where a buffer of another time starts is taken even if a tighter gap has none, so that small bindings touch few
 * pages; not if that makes the arena larger. */
static void test_starts_are_shared(void) {
  rung_host *host = NULL;
  uint64_t total = 0;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  rung_buffer b[] = {{.bound = 192, .first = 0, .last = 0}, {.bound = 128, .first = 0, .last = 0},
                     {.bound = 100, .first = 0, .last = 0}, {.bound = 64, .first = 2, .last = 2},
                     {.bound = 64, .first = 2, .last = 2},  {.bound = 64, .first = 2, .last = 2}};
  CHECK_OK(rung_plan_place(host, b, RUNG_COUNT(b), ALIGN, NULL, &total));
  CHECK_EQ_I64(total, 192 + 128 + 128);
  for (size_t i = 3; i < RUNG_COUNT(b); i++)
    CHECK(b[i].offset == b[0].offset || b[i].offset == b[1].offset || b[i].offset == b[2].offset);
  rung_host_release(host);
}

int main(void) {
  RUN(test_edges);
  RUN(test_starts_are_shared);
  RUN(test_no_overlap_and_near_the_bound);
  RUN(test_planted_overlap_is_seen);
  return TEST_END();
}
