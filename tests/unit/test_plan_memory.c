/* SPDX-License-Identifier: MIT
 * Memory of contexts: what the report predicts is what is committed, at any size; trim, commit_all, an allocator
 * without pages, ceilings beyond the address space, budgets. */
#include "cts/world.h"

/* Largest at the ceiling of rows, and for one buffer at the least seq. */
static const char mixed[] =
    "rung 1\nsymbol rows 0..3000\nsymbol seq 0..512\n"
    "%0 = input {name=\"x\"} : f32[rows,24]\n"
    "%1 = input {name=\"w\"} : f32[24,40]\n"
    "%2 = input {name=\"p\"} : f32[seq,8]\n"
    "%3 = matmul %0, %1 : f32[rows,40]\n"
    "%4 = relu %3 : f32[rows,40]\n"
    "%5 = softmax %4 : f32[rows,40]\n"
    "%6 = matmul %5, %1 {transpose_b=true} : f32[rows,24]\n"
    "%7 = add %6, %0 : f32[rows,24]\n"
    "%8 = constant {data=f32(2)} : f32[]\n"
    "%9 = expand %8 {shape=[512-seq,8]} : f32[512-seq,8]\n"
    "%10 = exp %9 : f32[512-seq,8]\n"
    "%11 = concat %2, %10 {axis=0} : f32[512,8]\n"
    "%12 = reduce_sum %11 {axes=[1]} : f32[512]\n"
    "output \"y\" %7\n"
    "output \"s\" %12\n";

static bool bind_mixed(world *w, int64_t rows, int64_t seq) {
  void *p;
  const rung_status s[3] = {rung_context_input(w->context, 0, (int64_t[]){rows, 24}, &p),
                            rung_context_input(w->context, 1, (int64_t[]){24, 40}, &p),
                            rung_context_input(w->context, 2, (int64_t[]){seq, 8}, &p)};
  return !s[0] && !s[1] && !s[2];
}

static rung_status fresh_context(world *w) {
  rung_context_destroy(w->context);
  w->context = NULL;
  RUNG_TRY(rung_context_create(w->template_, NULL, NULL, NULL, &w->error, &w->context));
  return rung_context_use(w->context, w->program);
}

static const int64_t bindings[][2] = {{0, 0}, {1, 512}, {37, 511},   {3000, 0}, {512, 100},
                                      {2, 1}, {0, 512}, {3000, 512}, {700, 256}};

static void test_report_is_what_is_committed(void) {
  for (int d = 0; d < 4; d++) {
    world w;
    if (world_open(&w, mixed, &(world_options){.device = world_devices[d % 2], .plain = d >= 2})) {
      for (size_t i = 0; i < RUNG_COUNT(bindings); i++) {
        CHECK_OK(fresh_context(&w));
        if (!bind_mixed(&w, bindings[i][0], bindings[i][1]) || !world_run(&w)) continue;
        world_check_memory(&w, (rung_binding[]){{"rows", bindings[i][0]}, {"seq", bindings[i][1]}}, 2);
      }
    }
    world_close(&w);
  }
}

/* One context through many sizes: a size that was there before costs no call, and trim goes back to the last size. */
static void test_growth_and_trim(void) {
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, mixed, &(world_options){.device = world_devices[d]})) {
      for (int pass = 0; pass < 2; pass++) {
        const uint64_t calls = rung_host_allocations(w.host) + rung_host_commits(w.host);
        for (size_t i = 0; i < RUNG_COUNT(bindings); i++)
          CHECK(bind_mixed(&w, bindings[i][0], bindings[i][1]) && world_run(&w));
        if (pass) CHECK_EQ_I64(rung_host_allocations(w.host) + rung_host_commits(w.host), calls);
      }
      const rung_memory large = rung_context_memory(w.context);
      CHECK(bind_mixed(&w, 5, 500) && world_run(&w));
      rung_context_trim(w.context);
      CHECK(rung_context_memory(w.context).activations < large.activations);
      world_check_memory(&w, (rung_binding[]){{"rows", 5}, {"seq", 500}}, 2);
      rung_context_trim(w.context);
      world_check_memory(&w, (rung_binding[]){{"rows", 5}, {"seq", 500}}, 2);
      CHECK(bind_mixed(&w, 3000, 0) && world_run(&w)); /* and up again */
    }
    world_close(&w);
  }
}

/* Results do not depend on what memory held before: the same input gives the same bits on a fresh context, after
 * others, and after a trim between filling the inputs and the run. */
static void test_bits_after_growth_and_trim(void) {
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, mixed, &(world_options){.device = world_devices[d]})) {
      static float x[100 * 24], m[24 * 40], first[100 * 24];
      float p[64];
      for (int i = 0; i < 100 * 24; i++) x[i] = (float)(i % 17) * 0.25f - 2;
      for (int i = 0; i < 24 * 40; i++) m[i] = (float)(i % 13) * 0.125f - 1;
      for (int i = 0; i < 64; i++) p[i] = (float)i;
      for (int pass = 0; pass < 4; pass++) {
        if (pass == 2) CHECK(bind_mixed(&w, 3000, 512) && world_run(&w));
        if (pass == 3) CHECK(bind_mixed(&w, 1, 1) && world_run(&w));
        if (!world_put(&w, 0, (int64_t[]){100, 24}, x, sizeof x) ||
            !world_put(&w, 1, (int64_t[]){24, 40}, m, sizeof m) || !world_put(&w, 2, (int64_t[]){8, 8}, p, sizeof p))
          continue;
        if (pass) rung_context_trim(w.context);
        if (!world_run(&w)) continue;
        if (!pass) memcpy(first, world_output(&w, 0).data, sizeof first);
        CHECK(memcmp(first, world_output(&w, 0).data, sizeof first) == 0);
      }
    }
    world_close(&w);
  }
}

static void test_commit_all(void) {
  world w;
  if (world_open(&w, mixed, &(world_options){.device = "cpu", .commit_all = true})) {
    const rung_plan *plan = w.program->plan;
    CHECK(rung_context_memory(w.context).activations >= plan->arena_bytes);
    CHECK(rung_context_memory(w.context).scratch >= plan->scratch_bytes);
    const uint64_t calls = rung_host_allocations(w.host) + rung_host_commits(w.host);
    for (size_t i = 0; i < RUNG_COUNT(bindings); i++)
      CHECK(bind_mixed(&w, bindings[i][0], bindings[i][1]) && world_run(&w));
    CHECK_EQ_I64(rung_host_allocations(w.host) + rung_host_commits(w.host), calls);
  }
  world_close(&w);
}

static void *plain_alloc(void *self, size_t bytes, size_t align) {
  (void)self;
  return aligned_alloc(align < sizeof(void *) ? sizeof(void *) : align, (bytes + align - 1) / align * align);
}
static void plain_free(void *self, void *p, size_t bytes) {
  (void)self, (void)bytes;
  free(p);
}

/* Without page calls everything is taken at the ceiling, and said so. */
static void test_allocator_without_pages(void) {
  const rung_allocator allocator = {.size = sizeof allocator, .alloc = plain_alloc, .free = plain_free};
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, mixed, &(world_options){.device = world_devices[d], .allocator = &allocator})) {
      for (size_t i = 0; i < RUNG_COUNT(bindings); i++) {
        const uint64_t calls = rung_host_allocations(w.host);
        CHECK(bind_mixed(&w, bindings[i][0], bindings[i][1]) && world_run(&w));
        CHECK_EQ_I64(rung_host_allocations(w.host), calls);
        CHECK_EQ_I64(rung_host_commits(w.host), 0);
        world_check_memory(&w, (rung_binding[]){{"rows", bindings[i][0]}, {"seq", bindings[i][1]}}, 2);
      }
      rung_context_trim(w.context);
      CHECK(bind_mixed(&w, 10, 10) && world_run(&w));
    }
    world_close(&w);
  }
}

/* ---- bounds */

static void test_beyond_the_address_space(void) {
  static const char text[] =
      "rung 1\nsymbol n 0..4611686018427387904\nsymbol m 0..9\n"
      "%0 = input {name=\"x\"} : f32[n,m]\n%1 = neg %0 : f32[n,m]\noutput \"y\" %1\n";
  world w;
  CHECK_STATUS(world_try(&w, text, &(world_options){0}), RUNG_OVERFLOW);
  CHECK(strstr(w.error.message, "n*m") || strstr(w.error.message, "m*n") || strstr(w.error.message, "symbol n"));
  CHECK(strstr(w.error.message, "ceiling") != NULL);
  world_close(&w);
  /* With a ceiling it is a program like any other. */
  const rung_binding ceiling = {"n", 100};
  if (world_open(&w, text, &(world_options){.ceiling = &ceiling, .ceilings = 1})) {
    const float x[2] = {1, 2}, want[2] = {-1, -2};
    if (world_put(&w, 0, (int64_t[]){2, 1}, x, sizeof x) && world_run(&w)) WORLD_CHECK_F32(&w, 0, 2, want);
  }
  world_close(&w);
  /* Each buffer would fit, all together do not. */
  static const char sum[] =
      "rung 1\nsymbol n 0..1500000000000000000\n"
      "%0 = input {name=\"x\"} : f32[n]\n%1 = neg %0 : f32[n]\n%2 = input {name=\"z\"} : f32[n]\n%3 = add %1, %2 : "
      "f32[n]\noutput \"y\" %3\n";
  CHECK_STATUS(world_try(&w, sum, &(world_options){0}), RUNG_OVERFLOW);
  world_close(&w);
}

static void test_ceilings(void) {
  world w;
  static const rung_binding wrong[] = {{"rows", 3001}, {"seq", -1}, {"none", 1}};
  static const rung_status want[] = {RUNG_OUT_OF_RANGE, RUNG_OUT_OF_RANGE, RUNG_NOT_FOUND};
  for (int i = 0; i < 3; i++) {
    CHECK_STATUS(world_try(&w, mixed, &(world_options){.ceiling = &wrong[i], .ceilings = 1}), want[i]);
    CHECK(strstr(w.error.message, wrong[i].symbol) != NULL);
    world_close(&w);
  }
  /* A ceiling of nothing: no memory, and it runs. */
  static const char one[] =
      "rung 1\nsymbol n 0..9\n%0 = input {name=\"x\"} : f32[n]\n%1 = neg %0 : f32[n]\noutput \"y\" %1\n";
  const rung_binding zero = {"n", 0};
  for (int d = 0; d < 2; d++) {
    if (world_open(&w, one, &(world_options){.device = world_devices[d], .ceiling = &zero, .ceilings = 1})) {
      CHECK_EQ_I64(w.program->plan->arena_bytes, 0);
      if (world_put(&w, 0, (int64_t[]){0}, NULL, 0) && world_run(&w)) CHECK_EQ_I64(world_output(&w, 0).extent[0], 0);
      void *p;
      CHECK_STATUS(rung_context_input(w.context, 0, (int64_t[]){1}, &p), RUNG_OUT_OF_RANGE);
    }
    world_close(&w);
  }
}

/* Two programs of one template share a context's arena; a program for 64 rows of a bound of 3000 does not take more. */
static void test_two_ceilings(void) {
  world w;
  const rung_binding small = {"rows", 64};
  if (world_open(&w, mixed, &(world_options){.device = "cpu"})) {
    rung_program *other = NULL;
    CHECK_OK(rung_program_create(w.template_, &small, 1, &w.error, &other));
    rung_memory a = {0}, b = {0};
    const rung_binding at[] = {{"rows", 64}, {"seq", 512}};
    CHECK_OK(rung_program_memory(w.program, at, 2, NULL, &w.error, &a));
    CHECK_OK(rung_program_memory(other, at, 2, NULL, &w.error, &b));
    CHECK(a.activations <= b.activations * 7 / 4 + 4096 * (uint64_t)w.program->plan->buffers);
    for (int i = 0; i < 6; i++) {
      CHECK_OK(rung_context_use(w.context, i % 2 ? w.program : other));
      CHECK(bind_mixed(&w, i % 2 ? 3000 : 64, 7) && world_run(&w));
    }
    CHECK_OK(rung_context_use(w.context, other));
    void *p;
    CHECK_STATUS(rung_context_input(w.context, 0, (int64_t[]){65, 24}, &p), RUNG_OUT_OF_RANGE);
    rung_program_release(other);
  }
  world_close(&w);
}

/* ---- budgets */

static const char wide[] =
    "rung 1\nsymbol rows 0..3000\n"
    "%0 = input {name=\"x\"} : f32[rows,4]\n"
    "%1 = input {name=\"w\"} : f32[4,512]\n"
    "%2 = matmul %0, %1 : f32[rows,512]\n"
    "%3 = softmax %2 : f32[rows,512]\n"
    "%4 = matmul %3, %1 {transpose_b=true} : f32[rows,4]\n"
    "output \"y\" %4\n";

static rung_status run_wide(world *w, int64_t rows) {
  void *x, *m;
  RUNG_TRY(rung_context_input(w->context, 0, (int64_t[]){rows, 4}, &x));
  RUNG_TRY(rung_context_input(w->context, 1, (int64_t[]){4, 512}, &m));
  memset(x, 0, (size_t)rows * 16);
  memset(m, 0, 4 * 512 * 4);
  return rung_context_run(w->context);
}

static uint64_t held_by(const world *w) {
  return rung_context_memory(w->context).activations + rung_context_memory(w->context).scratch;
}

/* A run that would pass the budget says what it needs and leaves the context as it was. */
static void test_budget(void) {
  for (int d = 0; d < 2; d++) {
    world w;
    enum { BUDGET = 4000 * 1000 };
    if (world_open(&w, wide, &(world_options){.device = world_devices[d], .budget = BUDGET})) {
      CHECK_OK(run_wide(&w, 100));
      const uint64_t before = held_by(&w);
      rung_memory need = {0};
      CHECK_OK(rung_program_memory(w.program, (rung_binding[]){{"rows", 2900}}, 1, NULL, &w.error, &need));
      CHECK(need.activations > BUDGET);
      for (int again = 0; again < 2; again++) {
        CHECK_STATUS(run_wide(&w, 2900), RUNG_OVER_BUDGET);
        char bytes[32];
        snprintf(bytes, sizeof bytes, "%" PRIu64 " bytes of", need.activations);
        const char *message = rung_context_message(w.context);
        test_state.checks++;
        if (!strstr(message, bytes) || !strstr(message, "4000000")) TEST_FAIL_("needed %s: %s", bytes, message);
        CHECK_OK(run_wide(&w, 100));
      }
      rung_context_trim(w.context);
      CHECK_EQ_I64(held_by(&w), before);
      CHECK_OK(run_wide(&w, 300));
    }
    world_close(&w);
  }
}

int main(void) {
  RUN(test_ceilings);
  RUN(test_beyond_the_address_space);
  RUN(test_commit_all);
  RUN(test_allocator_without_pages);
  RUN(test_budget);
  RUN(test_two_ceilings);
  RUN(test_growth_and_trim);
  RUN(test_report_is_what_is_committed);
  RUN(test_bits_after_growth_and_trim);
  return TEST_END();
}
