/* SPDX-License-Identifier: MIT
 * The op `sample` chooses what the host's sampler chooses, from equal logits and random numbers: rows of every kind, the
 * borders of each parameter, infinities and NaN; and by a definition that sorts. */
#include "ops/op_table.h"
#include "ops/reference.h"
#include "plain_sampler.h"
#include "sample_rows.h"

enum { MOST = 700, ROWS = 3 };

static rung_host *host;

/* One row by the op's reference, laid out with strides of its own. */
static int32_t by_op(const float *row, int64_t count, const double *parameter) {
  static float logits[2 * MOST * ROWS];
  double parameters[ROWS][RUNG_SAMPLE_COLUMNS + 1];
  int32_t out[2 * ROWS] = {-7, -7, -7, -7, -7, -7};
  for (int r = 0; r < ROWS; r++) {
    for (int64_t i = 0; i < count; i++) logits[2 * (r * count + i)] = r == 1 ? row[i] : (float)(i % 5);
    for (int c = 0; c < RUNG_SAMPLE_COLUMNS; c++) parameters[r][c] = r == 1 ? parameter[c] : 0;
  }
  const int64_t extent[3][2] = {{ROWS, count}, {ROWS, RUNG_SAMPLE_COLUMNS}, {ROWS, 0}};
  const int64_t stride[3][2] = {{2 * count, 2}, {RUNG_SAMPLE_COLUMNS + 1, 1}, {2, 0}};
  const rung_operand in[2] = {
      {.base = (uint8_t *)logits, .extent = extent[0], .stride = stride[0], .rank = 2, .type = RUNG_TYPE_F32},
      {.base = (uint8_t *)parameters, .extent = extent[1], .stride = stride[1], .rank = 2, .type = RUNG_TYPE_F64}};
  const rung_operand y = {
      .base = (uint8_t *)out, .extent = extent[2], .stride = stride[2], .rank = 1, .type = RUNG_TYPE_I32};
  rung_error error = {0};
  const rung_args args = {.in = in, .out = &y, .n_in = 2, .n_out = 1, .error = &error};
  CHECK_OK(rung_op_sample.reference(&args));
  CHECK_EQ_I64(out[1], -7);
  CHECK_EQ_I64(out[4], count > 4 ? 4 : count - 1);
  return out[2];
}

/* By sorting, with the C library's exponential. */
static int32_t by_definition(const rung_sample_options *o, const float *row, int64_t count, double uniform) {
  static plain p;
  p.o = o;
  plain_run(&p, row, count);
  if (!p.n) return -1;
  double sum = 0;
  for (int64_t i = 0; i < p.n; i++) {
    sum += p.set[i].p;
    if (o->temperature == 0 || sum > uniform) return p.set[i].id;
  }
  return p.set[p.n - 1].id;
}

static void test_same_choice(void) {
  static float row[MOST];
  static _Alignas(16) uint8_t scratch[MOST * 16];
  uint64_t seed = 11;
  int differ = 0, none = 0, apart = 0, defined = 0;
  for (int i = 0; i < 6000; i++) {
    const int64_t count = 1 + test_below(&seed, i % 50 ? 60 : MOST);
    const int kind = (int)test_below(&seed, SAMPLE_KINDS);
    sample_fill(row, count, kind, &seed);
    const rung_sample_options o = sample_some_options(&seed);
    rung_sampler sampler;
    rung_error error;
    double parameter[RUNG_SAMPLE_COLUMNS];
    CHECK_OK(rung_sampler_init(&sampler, host, &o, &error));
    CHECK(rung_sampler_is_plain(&sampler));
    sampler.drawn = (uint64_t)test_below(&seed, 1000);
    rung_sampler_parameters(&sampler, parameter);
    const int32_t by = by_op(row, count, parameter);
    const uint64_t before = sampler.drawn;
    const int32_t want = sample_by_host(&sampler, row, count, scratch, sizeof scratch);
    const uint64_t after = sampler.drawn;
    differ += by != want;
    none += by < 0;
    sampler.drawn = before; /* taking it counts as choosing it does */
    CHECK_EQ_I64(rung_sampler_take(&sampler, by, count, &error), by < 0 ? RUNG_INVALID_ARGUMENT : RUNG_OK);
    CHECK_EQ_I64(sampler.drawn, after);
    if (kind < 4 && !isnan(row[0])) {
      defined++;
      apart += by != by_definition(&o, row, count, parameter[RUNG_SAMPLE_UNIFORM]);
    }
    rung_sampler_finish(&sampler);
  }
  CHECK_EQ_I64(differ, 0);
  CHECK(none > 100);
  CHECK(defined > 1500);
  CHECK(apart <= 5); /* sums of another exponential, where a goal lies on the edge of a token */
}

/* What a graph may hold and options may not. */
static void test_other_parameters(void) {
  const float row[] = {1, 3, 2, 3, -1};
  CHECK_EQ_I64(by_op(row, 5, (const double[]){NAN, 0, 1, 0, 0.9}), 1);
  CHECK_EQ_I64(by_op(row, 5, (const double[]){-1, 0, 1, 0, 0.9}), 1);
  CHECK_EQ_I64(by_op(row, 5, (const double[]){1, NAN, NAN, NAN, 0}), 0);
  CHECK_EQ_I64(by_op(row, 5, (const double[]){1, -3, 7, -2, 0}), 0);
  CHECK_EQ_I64(by_op(row, 5, (const double[]){1, 1.9, 1, 0, 0.99}), 1);
  CHECK_EQ_I64(by_op(row, 5, (const double[]){1, 2, 1, 0, 0.99}), 3);
  CHECK_EQ_I64(by_op(row, 5, (const double[]){1, 1e300, 1, 0, 1}), 4);
  CHECK_EQ_I64(by_op(row, 5, (const double[]){1, 0, -5, 0, 0.99}), 1);
  CHECK_EQ_I64(by_op(row, 5, (const double[]){1, 0, 1, 9, 0.99}), 3);
  CHECK_EQ_I64(by_op(row, 5, (const double[]){1, 0, 1, 0, NAN}), 4);
  CHECK_EQ_I64(by_op(row, 5, (const double[]){1, 0, 1, 0, -1}), 0);
  CHECK_EQ_I64(by_op(row, 0, (const double[]){1, 0, 1, 0, 0.5}), -1);
}

static void test_what_is_plain(void) {
  for (int i = 0; i < 12; i++) {
    rung_sample_options o = rung_sample_options_default();
    const rung_logit_bias bias = {1, 2};
    rung_sampler sampler;
    rung_error error;
    if (i == 1) o.repeat_penalty = 1.1;
    if (i == 2) o.presence_penalty = 0.1;
    if (i == 3) o.frequency_penalty = 0.1;
    if (i == 4) o.dry_multiplier = 0.8;
    if (i == 5) o.top_n_sigma = 1;
    if (i == 6) o.typical_p = 0.9;
    if (i == 7) o.xtc_probability = 0.5;
    if (i == 8) o.log_probabilities = 1;
    if (i == 9) o.bias = &bias, o.biases = 1;
    if (i == 10) o.temperature = 0;
    if (i == 11) o.temperature = 0, o.top_n_sigma = 1; /* which never removes the best */
    CHECK_OK(rung_sampler_init(&sampler, host, &o, &error));
    CHECK(rung_sampler_is_plain(&sampler) == (i == 0 || i >= 10));
    rung_sampler_finish(&sampler);
  }
}

int main(void) {
  rung_error error = {0};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  RUN(test_same_choice);
  RUN(test_other_parameters);
  RUN(test_what_is_plain);
  rung_host_release(host);
  return TEST_END();
}
