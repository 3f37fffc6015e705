/* SPDX-License-Identifier: MIT
 * Factors and addends in the weights of the convolution before them: nothing of them is left to run, results are what
 * they meant, what is not finite does not become finite, and every refused allocation ends in a status. */
#include "run_graph.h"

#define X "rung 1\nsymbol n 1..64\n%0 = input {name=\"x\"} : f32[2,6,n,n]\n"
/* Batch normalisation as an importer writes it: of `in`, with values from %20 on; the variance is v v + epsilon. */
#define NORM(in, out, shape, epsilon)                                                                               \
  "%20 = weight {name=\"g\"} : f32[6]\n%21 = weight {name=\"v\"} : f32[6]\n%22 = mul %21, %21 : f32[6]\n"           \
  "%23 = constant {data=f32(" epsilon                                                                               \
  ")} : f32[]\n%24 = add %22, %23 : f32[6]\n%25 = sqrt %24 : f32[6]\n"                                              \
  "%26 = div %20, %25 : f32[6]\n%27 = weight {name=\"m\"} : f32[6]\n%28 = mul %27, %26 : f32[6]\n"                  \
  "%29 = weight {name=\"t\"} : f32[6]\n%30 = sub %29, %28 : f32[6]\n%31 = reshape %26 {shape=[6,1,1]} : f32[6,1,1]" \
  "\n%32 = mul " in ", %31 : " shape "\n%33 = reshape %30 {shape=[6,1,1]} : f32[6,1,1]\n" out                       \
  " = add %32, %33 : " shape "\n"
#define SMALL "f32[2,6,n / 2,n / 2]"
#define LARGE "f32[2,6,2 * n,2 * n]"
#define SAME "f32[2,6,n,n]"
#define W "%1 = weight {name=\"w\"} : f32[6,6,2,2]\n"
#define POINT "%1 = weight {name=\"w\"} : f32[6,6,1,1]\n"

static const struct {
  const char *name;
  int steps; /* kernels that run */
  const char *text;
} cases[] = {
    {"batch normalisation", 1,
     X W "%3 = conv %0, %1 {stride=[2,2]} : " SMALL "\n" NORM("%3", "%34", SMALL, "0.125") "output \"y\" %34\n"},
    {"with a bias", 1,
     X W "%2 = weight {name=\"b\"} : f32[6]\n%3 = conv %0, %1, %2 {stride=[2,2]} : " SMALL
         "\n" NORM("%3", "%34", SMALL, "0.125") "output \"y\" %34\n"},
    {"over a transpose", 1,
     X W "%2 = weight {name=\"b\"} : f32[6]\n%3 = conv_transpose %0, %1, %2 {stride=[2,2]} : " LARGE
         "\n" NORM("%3", "%34", LARGE, "0.125") "output \"y\" %34\n"},
    {"one channel a group", 1,
     X "%1 = weight {name=\"w\"} : f32[6,1,3,3]\n"
       "%3 = conv %0, %1 {pad_before=[1,1], pad_after=[1,1], groups=6} : " SAME
       "\n" NORM("%3", "%34", SAME, "0.125") "output \"y\" %34\n"},
    {"one weight of two convolutions, each with factors of its own", 2,
     X POINT "%2 = weight {name=\"s\"} : f32[6,1,1]\n%3 = conv %0, %1 : " SAME "\n" NORM(
         "%3", "%34", SAME, "0.125") "%35 = conv %0, %1 : " SAME "\n%36 = mul %2, %35 : " SAME "\noutput \"y\" "
                                     "%34\noutput \"z\" "
                                     "%36\n"},
    {"results that are read twice keep their values", 3,
     X POINT "%3 = conv %0, %1 : " SAME "\n" NORM("%3", "%34", SAME, "0.125") "%35 = exp %3 : " SAME
                                                                              "\noutput \"y\" %34\noutput \"z\" %35\n"},
    {"results that are an output keep their values", 2,
     X POINT "%3 = conv %0, %1 : " SAME "\n" NORM("%3", "%34", SAME, "0.125") "output \"y\" %34\noutput \"z\" %3\n"},
    {"numbers", 1,
     X POINT "%2 = weight {name=\"s\"} : f32[1]\n%4 = constant {data=f32(0.75)} : f32[]\n"
             "%5 = constant {data=f32(-3)} : f32[1,1]\n%3 = conv %0, %1 : " SAME "\n%6 = mul %2, %3 : " SAME
             "\n%7 = add %6, %4 : " SAME "\n%8 = div %7, %5 : " SAME "\n%9 = sub %8, %2 : " SAME
             "\n%10 = mul %9, %4 : " SAME "\noutput \"y\" %10\n"},
    {"a number over the groups of a transpose", 1,
     X "%1 = weight {name=\"w\"} : f32[6,3,2,2]\n%2 = weight {name=\"s\"} : f32[]\n"
       "%3 = conv_transpose %0, %1 {stride=[2,2], groups=2} : " LARGE "\n%4 = mul %3, %2 : " LARGE
       "\n%5 = add %4, %2 : " LARGE "\noutput \"y\" %5\n"},
    {"factors of channels over the groups of a transpose stay", 2,
     X "%1 = weight {name=\"w\"} : f32[6,3,2,2]\n%2 = weight {name=\"s\"} : f32[6,1,1]\n"
       "%3 = conv_transpose %0, %1 {stride=[2,2], groups=2} : " LARGE "\n%4 = mul %3, %2 : " LARGE
       "\noutput \"y\" %4\n"},
    {"what comes from an input stays", 2,
     X POINT "%2 = input {name=\"s\"} : f32[6,1,1]\n%3 = conv %0, %1 : " SAME "\n%4 = mul %3, %2 : " SAME
             "\noutput \"y\" %4\n"},
    {"what divides by the results stays", 2,
     X POINT "%2 = constant {data=f32(0.75)} : f32[]\n%3 = conv %0, %1 : " SAME "\n%4 = mul %3, %3 : " SAME
             "\n%5 = sub %2, %4 : " SAME "\noutput \"y\" %5\n"},
    {"two convolutions of weights alone that meet", 1,
     X "%1 = weight {name=\"a\"} : f32[1,6,1,1]\n%2 = weight {name=\"w\"} : f32[6,6,1,1]\n"
       "%3 = weight {name=\"b\"} : f32[1,6,1,1]\n%4 = conv %1, %2 : f32[1,6,1,1]\n%5 = conv %3, %2 : f32[1,6,1,1]\n"
       "%6 = add %4, %5 : f32[1,6,1,1]\n%7 = mul %0, %6 : " SAME "\noutput \"y\" %7\n"},
    {"a factor of zero", 1,
     X POINT "%2 = constant {data=f32(1, 0, -1, 0, 2, -0)} : f32[6,1,1]\n%3 = conv %0, %1 : " SAME
             "\n%4 = mul %3, %2 : " SAME "\n%5 = weight {name=\"t\"} : f32[6,1,1]\n%6 = add %4, %5 : " SAME
             "\noutput \"y\" %6\n"},
};

static rung_host *open_host(void) {
  rung_host *host = NULL;
  rung_error error;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  return host;
}

/* As the graph is written, and as it is compiled by default. */
static void run_both(rung_host *host, const char *text, int64_t size, graph_run *want, graph_run *have) {
  rung_compile_options off = rung_compile_options_default(), on = off;
  off.fold = off.fuse = off.merge = false;
  *want = graph_execute(host, "ref", text, &off, size);
  *have = graph_execute(host, "cpu", text, &on, size);
  CHECK_OK(want->status);
  CHECK_OK(have->status);
}

static void test_results(void) {
  rung_host *host = open_host();
  for (size_t i = 0; i < RUNG_COUNT(cases); i++)
    for (int64_t size = 2; size <= 34; size += 16) {
      graph_run want, have;
      run_both(host, cases[i].text, size, &want, &have);
      const bool near = graph_difference(&want, &have) <= 1e-5;
      CHECK(near);
      if (!near) fprintf(stderr, "%s: %g\n", cases[i].name, graph_difference(&want, &have));
      graph_run_free(&want);
      graph_run_free(&have);
    }
  rung_host_release(host);
}

static void test_steps(void) {
  rung_host *host = open_host();
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    graph_world w = {.maps = 0};
    rung_error error = {RUNG_OK, ""};
    CHECK_OK(graph_open(host, &w, "cpu", cases[i].text, NULL, &error));
    int steps = 0;
    for (uint32_t k = 0; w.program && k < w.program->plan->steps; k++)
      steps += w.program->plan->step[k].kind == RUNG_STEP_KERNEL;
    CHECK_EQ_I64(steps, cases[i].steps);
    if (steps != cases[i].steps) fprintf(stderr, "%s: %s\n", cases[i].name, error.message);
    graph_close(&w);
  }
  rung_host_release(host);
}

/* ---- numbers that are not finite. The factor of a channel whose variance is zero may be infinite; results may then be
 * NaN in place of infinities, but never finite, and other channels know nothing of it. */

static const char *const strange[] = {
    X POINT
    "%2 = constant {data=f32(0, 1, 0, 4, 1, 1)} : f32[6]\n%3 = sqrt %2 : f32[6]\n"
    "%4 = constant {data=f32(1, 1, 0, 2, nan, inf)} : f32[6]\n%5 = div %4, %3 : f32[6]\n"
    "%6 = reshape %5 {shape=[6,1,1]} : f32[6,1,1]\n%7 = conv %0, %1 : " SAME "\n%8 = mul %7, %6 : " SAME
    "\noutput \"y\" %8\n",
    X POINT "%2 = constant {data=f32(inf, 1, nan, 4, -inf, 1)} : f32[6,1,1]\n%7 = conv %0, %1 : " SAME
            "\n%8 = add %7, %2 : " SAME "\noutput \"y\" %8\n",
    X POINT "%2 = constant {data=f32(0, 1, 2, -0, 1, 1)} : f32[6,1,1]\n%7 = conv %0, %1 : " SAME
            "\n%8 = div %7, %2 : " SAME "\noutput \"y\" %8\n",
};

static void test_not_finite(void) {
  rung_host *host = open_host();
  for (size_t i = 0; i < RUNG_COUNT(strange); i++) {
    graph_run want, have;
    run_both(host, strange[i], 5, &want, &have);
    CHECK(want.outputs == 1 && have.outputs == 1 && want.elements[0] == have.elements[0]);
    int64_t wrong = 0, odd = 0;
    for (int64_t k = 0; have.outputs && k < want.elements[0]; k++) {
      const float a = want.value[0][k], b = have.value[0][k];
      odd += !isfinite(a);
      wrong += isfinite(a) ? !(fabsf(a - b) <= 1e-5f) : isfinite(b);
    }
    CHECK_EQ_I64(wrong, 0);
    CHECK(odd > 0 && odd < want.elements[0]);
    graph_run_free(&want);
    graph_run_free(&have);
  }
  rung_host_release(host);
}

/* ---- failures, of this pass and of the one that makes integers of dequantised products */

static const char quantised[] =
    "rung 1\nsymbol n 1..64\n%0 = input {name=\"x\"} : i8[2,8,n,n]\n%1 = cast %0 {type=i32} : i32[2,8,n,n]\n"
    "%2 = cast %1 {type=f32} : f32[2,8,n,n]\n%3 = constant {data=f32(0.25)} : f32[]\n%4 = mul %2, %3 : f32[2,8,n,n]\n"
    "%5 = weight {name=\"w\"} : i8[24,4,3,3]\n%6 = weight {name=\"z\"} : i8[24]\n%7 = cast %6 {type=i32} : i32[24]\n"
    "%8 = reshape %7 {shape=[24,1,1,1]} : i32[24,1,1,1]\n%9 = cast %5 {type=i32} : i32[24,4,3,3]\n"
    "%10 = sub %9, %8 : i32[24,4,3,3]\n%11 = weight {name=\"s\"} : f32[24,1,1,1]\n"
    "%12 = cast %10 {type=f32} : f32[24,4,3,3]\n%13 = mul %12, %11 : f32[24,4,3,3]\n"
    "%14 = weight {name=\"b\"} : f32[24]\n"
    "%15 = conv %4, %13, %14 {pad_before=[1,1], pad_after=[1,1], groups=2} : f32[2,24,n,n]\n"
    "%16 = relu %15 : f32[2,24,n,n]\noutput \"y\" %16\n";

static void test_failures(void) {
  static const rung_fault kinds[] = {RUNG_FAULT_ALLOC, RUNG_FAULT_COMMIT};
  const char *const texts[] = {cases[1].text, cases[7].text, quantised};
  rung_host *host = open_host();
  for (size_t t = 0; t < RUNG_COUNT(texts); t++)
    for (size_t k = 0; k < RUNG_COUNT(kinds); k++) graph_fail_each(host, texts[t], kinds[k], test_slow() ? 7 : 1);
  rung_host_release(host);
}

int main(void) {
  RUN(test_results);
  RUN(test_steps);
  RUN(test_not_finite);
  RUN(test_failures);
  return TEST_END();
}
