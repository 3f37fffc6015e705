/* SPDX-License-Identifier: MIT
 * Choosing kernel rows: the last that fits wins, guards are filled from the rows before it, and a refusal says what
 * came nearest. */
#include "target/target.h"
#include "test.h"

static const rung_op op = {.name = "product"}, other_op = {.name = "other"};
static bool never(const rung_match *match, char *why) {
  (void)match;
  strcpy(why, "only on Sundays");
  return false;
}

#define ROW(text, type, role, lo, hi, ...)                                                                          \
  {                                                                                                                 \
    .name = text, .op = &op, .in_type = {type}, .n_in_type = 1, .guard_role = role, .guard_lo = lo, .guard_hi = hi, \
    __VA_ARGS__                                                                                                     \
  }
#define PLAIN(text, ...) ROW(text, RUNG_TYPE_F32, -1, 0, 0, __VA_ARGS__)
#define GUARDED(text, lo, hi) ROW(text, RUNG_TYPE_F32, 0, lo, hi, .isa = 0)
#define LIST(...)                                                   \
  const rung_kernel rows[] = {__VA_ARGS__};                         \
  const rung_kernel *list[RUNG_COUNT(rows)];                        \
  for (size_t i = 0; i < RUNG_COUNT(rows); i++) list[i] = &rows[i]; \
  const rung_target target = {.name = "test", .isa = 1, .kernel = list, .kernels = RUNG_COUNT(rows)}

static char why[160];
static size_t choose(const rung_target *target, rung_type type, int64_t upper, const rung_kernel **out_rows,
                     size_t max) {
  static rung_value_type in[2], out;
  in[0] = in[1] = out = (rung_value_type){.type = RUNG_TYPE_F32, .rank = 1};
  in[1].type = type;
  const rung_node node = {.op = &op, .n_in = 2, .results = 1};
  const rung_match match = {.node = &node, .in = {&in[0], &in[1]}, .n_in = 2, .out = &out, .n_out = 1};
  const int64_t uppers[RUNG_MAX_ROLES] = {upper, upper};
  why[0] = '\0';
  return rung_target_match(target, &match, uppers, out_rows, max, why, sizeof why);
}

static void test_last_wins(void) {
  LIST(PLAIN("plain", .isa = 0), PLAIN("shiny", .isa = 0), PLAIN("other_isa", .isa = 2),
       {.name = "foreign", .op = &other_op, .guard_role = -1});
  const rung_kernel *row[4];
  CHECK_EQ_I64(choose(&target, RUNG_TYPE_F32, 10, row, 4), 1);
  CHECK_STR(row[0]->name, "shiny");
}

static void test_guards(void) {
  LIST(PLAIN("plain", .isa = 0), GUARDED("many", 8, 0), GUARDED("some", 2, 8), GUARDED("inside", 3, 5),
       GUARDED("one", 1, 2));
  const rung_kernel *row[6];
  CHECK_EQ_I64(choose(&target, RUNG_TYPE_F32, 100, row, 6), 5);
  CHECK_STR(row[0]->name, "one");
  CHECK_STR(row[1]->name, "inside");
  CHECK_STR(row[2]->name, "some");
  CHECK_STR(row[3]->name, "many");
  CHECK_STR(row[4]->name, "plain"); /* for 0 */
  /* What lies above the ceiling is left out. */
  CHECK_EQ_I64(choose(&target, RUNG_TYPE_F32, 1, row, 6), 2);
  CHECK_STR(row[1]->name, "plain");
  /* Too few places: the last one closes the gap. */
  CHECK_EQ_I64(choose(&target, RUNG_TYPE_F32, 100, row, 2), 2);
  CHECK_STR(row[0]->name, "one");
  CHECK_STR(row[1]->name, "plain");
}

static void test_hidden_rows(void) {
  LIST(GUARDED("never_needed", 2, 4), GUARDED("low", 0, 3), GUARDED("high", 3, 0));
  const rung_kernel *row[6];
  CHECK_EQ_I64(choose(&target, RUNG_TYPE_F32, INT64_MAX, row, 6), 2);
  CHECK_STR(row[0]->name, "high");
  CHECK_STR(row[1]->name, "low");
}

static void test_gap(void) {
  LIST(GUARDED("one", 1, 2), GUARDED("many", 3, 0));
  const rung_kernel *row[6];
  CHECK_EQ_I64(choose(&target, RUNG_TYPE_F32, 9, row, 6), 0);
  CHECK_STR(why, "the kernel rows of product leave sizes out");
}

static void test_why(void) {
  const rung_kernel *row[6];
  {
    LIST(PLAIN("f32_row", .isa = 0));
    CHECK_EQ_I64(choose(&target, RUNG_TYPE_Q2_K, 9, row, 6), 0);
    CHECK_STR(why, "f32_row: does not take q2_k as operand 1");
  }
  {
    LIST(PLAIN("f32_row", .isa = 0), ROW("picky", RUNG_ANY_TYPE, -1, 0, 0, .fits = never));
    CHECK_EQ_I64(choose(&target, RUNG_TYPE_Q2_K, 9, row, 6), 0);
    CHECK_STR(why, "picky: only on Sundays");
  }
  {
    LIST({.name = "foreign", .op = &other_op, .guard_role = -1});
    CHECK_EQ_I64(choose(&target, RUNG_TYPE_F32, 9, row, 6), 0);
    CHECK_STR(why, "no kernel row for product");
  }
}

int main(void) {
  RUN(test_last_wins);
  RUN(test_guards);
  RUN(test_hidden_rows);
  RUN(test_gap);
  RUN(test_why);
  return TEST_END();
}
