/* SPDX-License-Identifier: MIT
 * Dimensions: normal form, intervals, evaluation, text. Random expressions are checked against plain arithmetic. */
#include "ir/dim.h"
#include "test.h"

static rung_host *host;

static const char *shown(const rung_dims *dims, rung_dim dim) {
  static char buffer[8][4096];
  static int next;
  char *out = buffer[next++ % 8];
  rung_text text;
  rung_text_init(&text, host);
  rung_dims_print(dims, dim, &text);
  snprintf(out, sizeof buffer[0], "%s", text.length ? text.data : "");
  rung_text_finish(&text);
  return out;
}
static rung_dim parsed(rung_dims *dims, const char *text) {
  const char *end;
  const rung_dim dim = rung_dims_parse(dims, text, text + strlen(text), &end);
  return *end ? (rung_dim){0} : dim;
}
/* The text means the same as `want`, which is how it prints. */
#define CHECK_NORMAL(text, want) CHECK_STR(shown(dims, parsed(dims, text)), want)

static rung_dims *make(void) {
  rung_dims *dims = rung_dims_create(host);
  rung_dims_symbol(dims, "n", 0, 100);
  rung_dims_symbol(dims, "rows", 1, 512);
  rung_dims_symbol(dims, "seq", 1, 2048);
  rung_dims_symbol(dims, "batch", 1, 8);
  return dims;
}

static void test_normal_form(void) {
  rung_dims *dims = make();
  CHECK_NORMAL("3 + 4*5", "23");
  CHECK_NORMAL("batch*seq - seq*batch", "0");
  CHECK(rung_dim_same(parsed(dims, "batch*seq"), parsed(dims, "seq*batch")));
  CHECK_NORMAL("3 + rows*8", "8*rows + 3");
  CHECK_NORMAL("(rows + n)*(rows - n)", "-n*n + rows*rows");
  CHECK_NORMAL("0 - n", "-n");
  CHECK_NORMAL("5 - n*2", "-2*n + 5");
  CHECK_NORMAL("--n", "n");
  CHECK_NORMAL("8*n/8", "n");
  CHECK_NORMAL("8*n % 8", "0");
  CHECK_NORMAL("(seq + 63)/64", "(seq + 63) / 64");
  CHECK_NORMAL("(seq + 64)/64", "seq / 64 + 1");
  CHECK_NORMAL("(8*n + 3)/4", "2*n");
  CHECK_NORMAL("(2*n + 3)/4", "(n + 1) / 2");
  CHECK_NORMAL("5*n/4", "n + n / 4");
  CHECK_NORMAL("-5*n/4", "-n + -n / 4");
  CHECK_NORMAL("((n + 1)/2 + 1)/2", "(n + 3) / 4");
  CHECK_NORMAL("8*n % 16", "8*(n % 2)");
  CHECK_NORMAL("(n + 9) % 4", "(n + 1) % 4");
  CHECK_NORMAL("(n - 1) % 4", "(n + 3) % 4");
  CHECK_NORMAL("n % 101", "n");
  CHECK_NORMAL("n / 101", "0");
  CHECK_NORMAL("-7 / 2", "-4");
  CHECK_NORMAL("-7 % 2", "1");
  CHECK_NORMAL("7 / (0 - 2)", "-4");
  CHECK_NORMAL("7 % (0 - 2)", "-1");
  CHECK_NORMAL("batch*seq*64/seq", "64*batch");
  CHECK_NORMAL("batch*seq*64/(batch*seq)", "64");
  CHECK_NORMAL("(batch*seq + seq)/(batch + 1)", "seq");
  CHECK_NORMAL("(batch*seq + 3)/seq", "batch + 3 / seq");
  CHECK_NORMAL("batch*seq % seq", "0");
  CHECK_NORMAL("(n + 1)/2*rows", "rows*((n + 1) / 2)");
  CHECK_NORMAL("n/7*2", "2*(n / 7)");
  CHECK_NORMAL("n % 7 % rows", "(n % 7) % rows");
  CHECK_NORMAL("rows - n/7", "rows - (n / 7)");
  rung_dims_release(dims);
}

static void test_min_max(void) {
  rung_dims *dims = make();
  CHECK_NORMAL("max(n, n + 1)", "n + 1");
  CHECK_NORMAL("min(n, 100)", "n");
  CHECK_NORMAL("max(n, 0)", "n");
  CHECK_NORMAL("min(n, rows + 100)", "n");
  CHECK_NORMAL("max(seq, rows)", "max(rows, seq)");
  CHECK_NORMAL("max(seq, max(rows, n))", "max(max(n, rows), seq)");
  CHECK(rung_dim_same(parsed(dims, "max(max(seq, n), rows)"), parsed(dims, "max(n, max(rows, seq))")));
  CHECK_NORMAL("max(seq, max(rows, seq))", "max(rows, seq)");
  CHECK_NORMAL("min(7, n)", "min(7, n)");
  CHECK_NORMAL("min(min(n, 7), 3)", "min(3, n)");
  CHECK_NORMAL("min(n, 5) - min(5, n)", "0");
  CHECK_NORMAL("2*max(n, rows) + 1", "2*max(n, rows) + 1");
  rung_dims_release(dims);
}

static void test_refusals(void) {
  rung_dims *dims = make();
  CHECK_EQ_I64(parsed(dims, "5 / n").id, 0);
  CHECK_STATUS(dims->failure, RUNG_INVALID_ARGUMENT);
  CHECK(parsed(dims, "5 / rows").id != 0);
  CHECK_EQ_I64(parsed(dims, "5 % (rows - 4)").id, 0);
  CHECK_EQ_I64(parsed(dims, "9223372036854775807 + 1").id, 0);
  CHECK_STATUS(dims->failure, RUNG_OVERFLOW);
  CHECK_EQ_I64(parsed(dims, "9223372036854775808").id, 0);
  CHECK_EQ_I64(parsed(dims, "-9223372036854775807 - 1").id, 0);
  CHECK_STR(shown(dims, parsed(dims, "-9223372036854775807")), "-9223372036854775807");
  CHECK_EQ_I64(parsed(dims, "4611686018427387904*n*2").id, 0);
  CHECK_EQ_I64(rung_dims_constant(dims, INT64_MIN).id, 0);
  CHECK_EQ_I64(rung_dims_add(dims, (rung_dim){0}, parsed(dims, "n")).id, 0);
  CHECK_EQ_I64(rung_dims_add(dims, (rung_dim){1u << 30}, parsed(dims, "n")).id, 0);
  static const char *const bad[] = {"",        "(", "n +", "n n",  "max(n)", "max n", "min(n, rows",
                                    "unknown", "%", "()",  "n**2", "1..2",   ")"};
  for (size_t i = 0; i < RUNG_COUNT(bad); i++) CHECK_EQ_I64(parsed(dims, bad[i]).id, 0);
  CHECK_EQ_I64(rung_dims_symbol(dims, "n", 0, 101).id, 0);
  CHECK(rung_dim_same(rung_dims_symbol(dims, "n", 0, 100), parsed(dims, "n")));
  CHECK_EQ_I64(rung_dims_symbol(dims, "bad", 3, 2).id, 0);
  CHECK_EQ_I64(rung_dims_symbol(dims, "bad", -1, 2).id, 0);
  static const char *const names[] = {"", "min", "max", "none", "9a", "a b", "a-b", "a[", "é"};
  for (size_t i = 0; i < RUNG_COUNT(names); i++) CHECK_EQ_I64(rung_dims_symbol(dims, names[i], 0, 1).id, 0);
  char deep[4000] = "";
  for (int i = 0; i < 1500; i++) deep[i] = '(';
  CHECK_EQ_I64(parsed(dims, deep).id, 0);
  rung_dims_release(dims);
}

/* Expressions that grow without end are refused, not built: depth, size, terms, degree. */
static void test_limits(void) {
  rung_dims *dims = make();
  const rung_dim n = parsed(dims, "n"), seven = rung_dims_constant(dims, 7), three = rung_dims_constant(dims, 3);
  rung_dim dim = n;
  int steps = 0;
  for (; dim.id && steps < 1000; steps++) { /* ((n + 3) % 7 * n + 3) % 7 ... */
    dim = rung_dims_combine(dims, RUNG_DIM_MOD, rung_dims_add(dims, rung_dims_mul(dims, dim, n), three), seven);
  }
  CHECK(steps > 20 && steps < 1000);
  dim = n;
  for (steps = 0; dim.id && steps < 1000; steps++) dim = rung_dims_mul(dims, dim, n);
  CHECK_EQ_I64(steps, 16);
  dim = n;
  for (steps = 0; dim.id && steps < 1000; steps++) { /* doubles when written out */
    const rung_dim half = rung_dims_div(dims, rung_dims_add(dims, dim, rung_dims_constant(dims, steps)), seven);
    dim = rung_dims_combine(dims, RUNG_DIM_MOD, rung_dims_add(dims, rung_dims_mul(dims, half, half), dim),
                            rung_dims_constant(dims, 11 + steps));
  }
  CHECK(steps < 64);
  CHECK_STATUS(dims->failure, RUNG_OVERFLOW);
  rung_dims_release(dims);

  dims = rung_dims_create(host);
  char name[16];
  for (int i = 0; i < RUNG_MAX_SYMBOLS; i++) {
    snprintf(name, sizeof name, "d%d", i);
    CHECK(rung_dims_symbol(dims, name, 0, 10).id != 0);
  }
  CHECK_EQ_I64(rung_dims_symbol(dims, "one_more", 0, 10).id, 0);
  rung_dim sum = rung_dims_constant(dims, 0);
  for (int i = 0; i < RUNG_MAX_SYMBOLS; i++) sum = rung_dims_add(dims, sum, dims->symbol[i].dim);
  CHECK(sum.id != 0);
  CHECK_EQ_I64(rung_dims_mul(dims, sum, sum).id, 0); /* 2,080 terms */
  rung_dims_release(dims);
}

static void test_made_symbols(void) {
  rung_dims *dims = make();
  const rung_dim found = rung_dims_make_symbol(dims, "found", parsed(dims, "8*rows")),
                 fresh = rung_dims_make_symbol(dims, NULL, found);
  CHECK(found.id && fresh.id && !rung_dim_same(found, fresh));
  CHECK_EQ_I64(dims->node[found.id].hi, 4096);
  CHECK_EQ_I64(dims->node[fresh.id].hi, 4096);
  CHECK_EQ_I64(rung_dims_make_symbol(dims, "found", fresh).id, 0);
  CHECK_EQ_I64(rung_dims_make_symbol(dims, "rows", fresh).id, 0);
  const rung_dim open = rung_dims_make_symbol(dims, "", (rung_dim){0});
  CHECK_EQ_I64(dims->node[open.id].hi, INT64_MAX);
  int64_t lo[RUNG_MAX_SYMBOLS] = {0}, hi[RUNG_MAX_SYMBOLS], lower[64], upper[64];
  for (int i = 0; i < RUNG_MAX_SYMBOLS; i++) hi[i] = INT64_MAX;
  hi[rung_dims_find_symbol(dims, "rows", 4)] = 3;
  CHECK(dims->count < 64);
  rung_dims_bounds(dims, lo, hi, lower, upper);
  CHECK_EQ_I64(upper[found.id], 24);
  CHECK_EQ_I64(upper[fresh.id], 24);
  CHECK_EQ_I64(upper[open.id], INT64_MAX);
  int64_t only[64];
  CHECK(rung_dims_upper(dims, lo, hi, only));
  CHECK(memcmp(only, upper, dims->count * sizeof *only) == 0);
  test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = 1};
  rung_host_set_fault(host, test_fault_hit, &fault);
  CHECK(!rung_dims_upper(dims, lo, hi, only)); /* no bound is the safe answer */
  rung_host_set_fault(host, NULL, NULL);
  CHECK_EQ_I64(only[found.id], INT64_MAX);
  rung_dims_release(dims);
}

static void test_compare(void) {
  rung_dims *dims = make();
  CHECK_EQ_I64(rung_dims_compare(dims, parsed(dims, "n + 1"), parsed(dims, "1 + n")), RUNG_DIM_EQUAL);
  CHECK_EQ_I64(rung_dims_compare(dims, parsed(dims, "n + 1"), parsed(dims, "n")), RUNG_DIM_DIFFERENT);
  CHECK_EQ_I64(rung_dims_compare(dims, parsed(dims, "n"), parsed(dims, "rows + 200")), RUNG_DIM_DIFFERENT);
  CHECK_EQ_I64(rung_dims_compare(dims, parsed(dims, "n"), parsed(dims, "rows")), RUNG_DIM_UNKNOWN);
  CHECK_EQ_I64(rung_dims_compare(dims, parsed(dims, "n"), parsed(dims, "100")), RUNG_DIM_UNKNOWN);
  CHECK_EQ_I64(rung_dims_compare(dims, parsed(dims, "n"), parsed(dims, "101")), RUNG_DIM_DIFFERENT);
  const uint32_t count = dims->count;
  rung_dims_compare(dims, parsed(dims, "n"), parsed(dims, "rows"));
  CHECK_EQ_I64(dims->count, count); /* questions leave nothing behind */
  int64_t value;
  CHECK(rung_dims_is_constant(dims, parsed(dims, "3*4"), &value) && value == 12);
  CHECK(!rung_dims_is_constant(dims, parsed(dims, "n"), &value));
  CHECK(!rung_dims_is_constant(dims, (rung_dim){0}, &value));
  rung_dims_release(dims);
}

static void test_evaluate(void) {
  rung_dims *dims = make();
  const rung_dim product = parsed(dims, "4000000000*seq*seq"), open = parsed(dims, "n + 1"),
                 half = parsed(dims, "(seq + 63) / 64");
  int64_t symbol[RUNG_MAX_SYMBOLS] = {RUNG_UNBOUND, 5, 130, 2}, value[64];
  rung_error error;
  CHECK_OK(rung_dims_evaluate(dims, symbol, value, &error));
  CHECK_EQ_I64(value[product.id], INT64_C(4000000000) * 130 * 130);
  CHECK_EQ_I64(value[open.id], RUNG_UNBOUND);
  CHECK_EQ_I64(value[half.id], 3);
  symbol[2] = 100000;
  CHECK_STATUS(rung_dims_evaluate(dims, symbol, value, &error), RUNG_OVERFLOW);
  CHECK(strstr(error.message, "4000000000*seq*seq") != NULL);
  CHECK_STATUS(rung_dims_evaluate(dims, symbol, value, NULL), RUNG_OVERFLOW);
  symbol[2] = 0;
  CHECK(parsed(dims, "rows / seq").id != 0);
  CHECK_STATUS(rung_dims_evaluate(dims, symbol, value, &error), RUNG_OUT_OF_RANGE);
  CHECK(strstr(error.message, "rows / seq") != NULL);
  /* Infinite bounds do not cancel. */
  const rung_dim large = rung_dims_symbol(dims, "large", 0, INT64_MAX);
  const rung_dim difference =
      rung_dims_sub(dims, rung_dims_mul(dims, large, large), rung_dims_mul(dims, large, parsed(dims, "n")));
  CHECK_EQ_I64(dims->node[difference.id].hi, INT64_MAX);
  CHECK_EQ_I64(dims->node[difference.id].lo, -INT64_MAX);
  rung_dims_release(dims);
}

/* ---- random expressions against plain arithmetic */

enum { SYMBOLS = 4, SAMPLES = 12 };
typedef struct sample {
  int64_t symbol[SAMPLES][SYMBOLS];
} sample;
typedef struct expression {
  rung_dim dim;
  int64_t value[SAMPLES];
} expression;

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

static bool combine_values(rung_dim_op op, const expression *a, const expression *b, expression *out) {
  for (int i = 0; i < SAMPLES; i++) {
    const int64_t x = a->value[i], y = b->value[i];
    int64_t *v = &out->value[i];
    bool overflow = false;
    switch (op) {
      case RUNG_DIM_ADD:
        overflow = rung_add_overflows(x, y, v);
        break;
      case RUNG_DIM_SUB:
        overflow = rung_sub_overflows(x, y, v);
        break;
      case RUNG_DIM_MUL:
        overflow = rung_mul_overflows(x, y, v);
        break;
      case RUNG_DIM_FLOORDIV:
        *v = floor_div(x, y);
        break;
      case RUNG_DIM_MOD:
        *v = x - floor_div(x, y) * y;
        break;
      case RUNG_DIM_MIN:
        *v = x < y ? x : y;
        break;
      case RUNG_DIM_MAX:
        *v = x > y ? x : y;
        break;
    }
    if (overflow || *v > INT64_C(1) << 40 || *v < -(INT64_C(1) << 40)) return false;
  }
  return true;
}

static void check_expression(rung_dims *dims, rung_dims *other, const sample *s, const expression *e) {
  const rung_dim_node *node = &dims->node[e->dim.id];
  int64_t *value = (int64_t *)rung_host_array(host, dims->count, sizeof *value);
  int64_t *lower = (int64_t *)rung_host_array(host, dims->count, sizeof *lower);
  int64_t *upper = (int64_t *)rung_host_array(host, dims->count, sizeof *upper);
  int64_t lo[SYMBOLS], hi[SYMBOLS];
  for (int k = 0; k < SYMBOLS; k++) {
    lo[k] = INT64_MAX;
    hi[k] = 0;
    for (int i = 0; i < SAMPLES; i++) {
      if (s->symbol[i][k] < lo[k]) lo[k] = s->symbol[i][k];
      if (s->symbol[i][k] > hi[k]) hi[k] = s->symbol[i][k];
    }
  }
  rung_dims_bounds(dims, lo, hi, lower, upper);
  for (int i = 0; i < SAMPLES; i++) {
    CHECK_OK(rung_dims_evaluate(dims, s->symbol[i], value, NULL));
    test_state.checks++;
    if (value[e->dim.id] != e->value[i]) {
      TEST_FAIL_("%s is %" PRId64 ", not %" PRId64, shown(dims, e->dim), value[e->dim.id], e->value[i]);
    }
    CHECK(node->lo <= e->value[i] && e->value[i] <= node->hi);
    CHECK(lower[e->dim.id] <= e->value[i] && e->value[i] <= upper[e->dim.id]);
  }
  rung_host_free(host, RUNG_MEMORY_host, value, dims->count * sizeof *value);
  rung_host_free(host, RUNG_MEMORY_host, lower, dims->count * sizeof *lower);
  rung_host_free(host, RUNG_MEMORY_host, upper, dims->count * sizeof *upper);
  const char *text = shown(dims, e->dim);
  test_state.checks++;
  if (!rung_dim_same(parsed(dims, text), e->dim)) {
    TEST_FAIL_("%s reads back as %s", text, shown(dims, parsed(dims, text)));
  }
  CHECK_STR(shown(other, parsed(other, text)), text); /* the same in a table with another history */
}

static void test_against_arithmetic(void) {
  uint64_t seed = 42;
  for (int round = 0; round < 150; round++) {
    rung_dims *dims = rung_dims_create(host), *other = rung_dims_create(host);
    static const char *const names[SYMBOLS] = {"b", "seq", "a", "rows"};
    expression pool[64];
    sample s;
    int count = 0;
    for (int k = 0; k < SYMBOLS; k++) {
      const int64_t lo = test_below(&seed, 3), hi = lo + test_below(&seed, 300);
      pool[count].dim = rung_dims_symbol(dims, names[k], lo, hi);
      for (int i = 0; i < SAMPLES; i++) {
        s.symbol[i][k] = i == 0 ? lo : i == 1 ? hi : lo + test_below(&seed, hi - lo + 1);
        pool[count].value[i] = s.symbol[i][k];
      }
      count++;
    }
    for (int k = SYMBOLS; k-- > 0;) rung_dims_symbol(other, names[k], dims->symbol[k].lo, dims->symbol[k].hi);
    while (count < 40) {
      expression e, constant, *a = &pool[test_below(&seed, count)], *b = &pool[test_below(&seed, count)];
      const rung_dim_op op = (rung_dim_op)test_below(&seed, 7);
      if (test_below(&seed, 2)) {
        const int64_t c = test_below(&seed, 10) < 7 ? test_below(&seed, 70) - 10 : 64;
        constant.dim = rung_dims_constant(dims, c);
        for (int i = 0; i < SAMPLES; i++) constant.value[i] = c;
        b = &constant;
      }
      if ((op == RUNG_DIM_FLOORDIV || op == RUNG_DIM_MOD) && dims->node[b->dim.id].lo <= 0 &&
          dims->node[b->dim.id].hi >= 0)
        continue;
      if (!combine_values(op, a, b, &e)) continue;
      e.dim = rung_dims_combine(dims, op, a->dim, b->dim);
      if (!e.dim.id) continue; /* beyond the limits */
      pool[count++] = e;
      check_expression(dims, other, &s, &e);
    }
    rung_dims_release(dims);
    rung_dims_release(other);
  }
}

static void test_memory(void) {
  for (int64_t at = 1;; at++) {
    test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = at};
    rung_host_set_fault(host, test_fault_hit, &fault);
    rung_dims *dims = rung_dims_create(host);
    rung_dim dim = {0};
    if (dims) {
      rung_dims_symbol(dims, "n", 0, 100);
      dim = parsed(dims, "max(n / 3, 5*n*n - 7) + (n + 9) % 4");
      for (int i = 0; dim.id && i < 3000; i++) dim = rung_dims_add(dims, dim, rung_dims_constant(dims, i * 5));
      if (!dim.id) CHECK_STATUS(dims->failure, RUNG_OUT_OF_MEMORY);
      CHECK(dim.id || fault.hit);
      rung_dims_release(dims);
    }
    rung_host_set_fault(host, NULL, NULL);
    if (!fault.hit) break;
  }
}

int main(void) {
  if (rung_host_create(NULL, NULL, &host)) return 1;
  const uint64_t before = rung_host_memory(host).host;
  RUN(test_normal_form);
  RUN(test_min_max);
  RUN(test_refusals);
  RUN(test_limits);
  RUN(test_made_symbols);
  RUN(test_compare);
  RUN(test_evaluate);
  RUN(test_against_arithmetic);
  RUN(test_memory);
  CHECK_EQ_I64(rung_host_memory(host).host, before);
  rung_host_release(host);
  return TEST_END();
}
