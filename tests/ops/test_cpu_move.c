/* SPDX-License-Identifier: MIT
 * Copies of the CPU backend between random strides, against element by element; concat likewise; split over threads. */
#include "backends/cpu/move.h"

#include "cpu_run.h"
#include "ops/attrs.h"
#include "ops/reference.h"

static uint64_t seed = 88172645463325252u;

static const rung_type types[] = {RUNG_TYPE_F32,  RUNG_TYPE_BOOL, RUNG_TYPE_F16,   RUNG_TYPE_I64,
                                  RUNG_TYPE_Q8_0, RUNG_TYPE_A8,   RUNG_TYPE_F8E4M3};

/* Random extents, now and then large enough for tiles and several tasks. */
static int random_extents(rung_type type, int64_t *extent) {
  static const int64_t small[] = {1, 1, 2, 3, 5, 8, 17}, large[] = {31, 32, 33, 64, 65, 100};
  const int rank = (int)test_below(&seed, 5);
  int64_t total = 1;
  for (int i = 0; i < rank; i++) {
    extent[i] = test_below(&seed, 3) ? small[test_below(&seed, RUNG_COUNT(small))]
                                     : large[test_below(&seed, RUNG_COUNT(large))];
    if (test_below(&seed, 40) == 0) extent[i] = 0;
    if (total * extent[i] > 40000) extent[i] = 1;
    if (extent[i]) total *= extent[i];
  }
  if (rank && eval_is_blocks(type)) extent[rank - 1] *= 32;
  return rank;
}

static void fill(tensor *t) {
  for (size_t i = EVAL_GUARD; i < t->bytes - EVAL_GUARD; i++) t->memory[i] = (uint8_t)test_random(&seed);
}

/* As its rows of the table call it. */
static void run(rung_status (*fn)(const rung_args *, int64_t, int), const rung_args *args) {
  const int64_t tasks = rung_move_tasks(args);
  for (int64_t t = tasks - 1; t >= 0; t--) CHECK_OK(fn(args, t, 0));
}

static void check_same(const tensor *want, const tensor *have, const char *what) {
  test_state.checks++;
  if (!cpu_same_bits(want, have) || !tensor_guards_hold(have))
    TEST_FAIL_("%s of %s rank %d: [%lld,%lld,%lld,%lld]", what, rung_type_name((rung_type)want->operand.type),
               want->operand.rank, (long long)want->extent[0], (long long)want->extent[1], (long long)want->extent[2],
               (long long)want->extent[3]);
}

static void test_copies(void) {
  for (int turn = 0; turn < 2000; turn++) {
    const rung_type type = types[test_below(&seed, RUNG_COUNT(types))];
    int64_t extent[RUNG_MAX_RANK] = {0};
    const int rank = random_extents(type, extent);
    tensor *x = tensor_make(type, rank, extent, &seed), *want = tensor_make(type, rank, extent, NULL);
    uint64_t *strides = test_below(&seed, 3) ? NULL : &seed;
    tensor *y = tensor_make(type, rank, extent, strides);
    fill(x);
    const rung_units from = rung_units_of(&x->operand), to = rung_units_of(&want->operand);
    rung_units_copy(&to, &from);
    const rung_args args = {
        .in = &x->operand, .out = &y->operand, .n_in = 1, .n_out = 1, .threads = 1 + (int)test_below(&seed, 4)};
    run(rung_move_copy, &args);
    check_same(want, y, "copy");
    tensor_free(x);
    tensor_free(y);
    tensor_free(want);
  }
}

static void test_concat(void) {
  for (int turn = 0; turn < 300; turn++) {
    const rung_type type = types[test_below(&seed, 5)];
    int64_t extent[RUNG_MAX_RANK] = {0}, total = 0;
    int rank = 0;
    while (!rank) rank = random_extents(type, extent);
    const int n = 1 + (int)test_below(&seed, 4), axis = (int)test_below(&seed, rank);
    tensor *x[4];
    rung_operand in[4];
    for (int i = 0; i < n; i++) {
      extent[axis] = test_below(&seed, 9) * (axis == rank - 1 && eval_is_blocks(type) ? 32 : 1);
      total += extent[axis];
      x[i] = tensor_make(type, rank, extent, &seed);
      fill(x[i]);
      in[i] = x[i]->operand;
    }
    extent[axis] = total;
    tensor *y = tensor_make(type, rank, extent, NULL), *want = tensor_make(type, rank, extent, NULL);
    const rung_concat_attrs attrs = {axis};
    rung_args args = {.in = in, .out = &want->operand, .n_in = (uint16_t)n, .n_out = 1, .attrs = &attrs, .threads = 3};
    CHECK_OK(rung_op_concat.reference(&args));
    args.out = &y->operand;
    run(rung_move_concat, &args);
    check_same(want, y, "concat");
    for (int i = 0; i < n; i++) tensor_free(x[i]);
    tensor_free(y);
    tensor_free(want);
  }
}

int main(void) {
  RUN(test_copies);
  RUN(test_concat);
  return TEST_END();
}
