/* SPDX-License-Identifier: MIT
 * Products of dequantised levels as products of integers: within the rounding of the floats that they replace, exactly
 * where those do not round, the same bits at every size, and by integer kernels. */
#include "run_graph.h"

/* Scales of the weights, as text: of f32[24]. */
#define PRODUCT(scales)                                                                                       \
  "rung 1\nsymbol n 1..64\n%0 = input {name=\"x\"} : u8[n,37]\n%1 = constant {data=u8(2)} : u8[]\n"           \
  "%2 = cast %1 {type=i32} : i32[]\n%3 = cast %0 {type=i32} : i32[n,37]\n%4 = sub %3, %2 : i32[n,37]\n"       \
  "%5 = cast %4 {type=f32} : f32[n,37]\n%6 = constant {data=f32(0.5)} : f32[]\n%7 = mul %5, %6 : f32[n,37]\n" \
  "%8 = weight {name=\"w\"} : i8[37,24]\n%9 = cast %8 {type=i32} : i32[37,24]\n%10 = cast %9 {type=f32} : "   \
  "f32[37,24]\n"                                                                                              \
  "%11 = " scales "\n%12 = mul %10, %11 : f32[37,24]\n%13 = matmul %7, %12 : f32[n,24]\noutput \"y\" %13\n"
#define WINDOWS(scales)                                                                                              \
  "rung 1\nsymbol n 1..64\n%0 = input {name=\"x\"} : i8[2,8,n,n]\n%1 = cast %0 {type=i32} : i32[2,8,n,n]\n"          \
  "%2 = cast %1 {type=f32} : f32[2,8,n,n]\n%3 = constant {data=f32(0.25)} : f32[]\n%4 = mul %2, %3 : f32[2,8,n,n]\n" \
  "%5 = weight {name=\"w\"} : i8[24,4,3,3]\n%6 = weight {name=\"z\"} : i8[24]\n%7 = cast %6 {type=i32} : i32[24]\n"  \
  "%8 = reshape %7 {shape=[24,1,1,1]} : i32[24,1,1,1]\n%9 = cast %5 {type=i32} : i32[24,4,3,3]\n"                    \
  "%10 = sub %9, %8 : i32[24,4,3,3]\n%11 = " scales                                                                  \
  "\n%12 = cast %10 {type=f32} : f32[24,4,3,3]\n"                                                                    \
  "%13 = mul %12, %11 : f32[24,4,3,3]\n%14 = weight {name=\"b\"} : f32[24]\n"                                        \
  "%15 = conv %4, %13, %14 {pad_before=[1,1], pad_after=[1,1], groups=2} : f32[2,24,n,n]\n%16 = relu %15 : "         \
  "f32[2,24,n,n]\noutput \"y\" %16\n"

/* A zero point that wraps on its way, and a scale of more axes than what it scales: not as integers, but right. */
#define WRAPPED                                                                                                \
  "rung 1\nsymbol n 1..64\n%0 = input {name=\"x\"} : i8[n,37]\n%1 = constant {data=i8(-3)} : i8[]\n"           \
  "%2 = cast %1 {type=u8} : u8[]\n%3 = cast %2 {type=i32} : i32[]\n%4 = cast %0 {type=i32} : i32[n,37]\n"      \
  "%5 = sub %4, %3 : i32[n,37]\n%6 = cast %5 {type=f32} : f32[n,37]\n%7 = constant {data=f32(0.5)} : f32[]\n"  \
  "%8 = mul %6, %7 : f32[n,37]\n%9 = weight {name=\"w\"} : i8[37,24]\n%10 = cast %9 {type=f32} : f32[37,24]\n" \
  "%11 = mul %10, %7 : f32[37,24]\n%12 = matmul %8, %11 : f32[n,24]\noutput \"y\" %12\n"
#define MORE_AXES                                                                                              \
  "rung 1\nsymbol n 1..64\n%0 = input {name=\"x\"} : i8[n,37]\n%1 = cast %0 {type=f32} : f32[n,37]\n"          \
  "%2 = constant {data=f32(0.5)} : f32[]\n%3 = mul %1, %2 : f32[n,37]\n%4 = weight {name=\"w\"} : i8[37,24]\n" \
  "%5 = cast %4 {type=f32} : f32[37,24]\n%6 = constant {data=f32(0.25)} : f32[1,1,1]\n"                        \
  "%7 = mul %5, %6 : f32[1,37,24]\n%8 = matmul %3, %7 : f32[1,n,24]\noutput \"y\" %8\n"

static const struct {
  const char *text, *kernel; /* kernel "": any */
  double off;
} cases[] = {
    {WRAPPED, "", 1e-6},
    {MORE_AXES, "", 1e-6},
    {PRODUCT("weight {name=\"s\"} : f32[24]"), "integer_matmul", 1e-6},
    {PRODUCT("constant {data=f32(0.5)} : f32[]"), "integer_matmul", 0},
    {WINDOWS("weight {name=\"s\"} : f32[24,1,1,1]"), "integer_conv", 1e-6},
    {WINDOWS("constant {data=f32(2)} : f32[]"), "integer_conv", 1e-6},
};

/* The same for one size: n, where it is an extent, becomes a number. */
static void fix_size(const char *text, int64_t size, char *out) {
  char *at = out;
  for (const char *from = strstr(text, "%0"), *start = from; *from; from++) {
    const bool extent =
        *from == 'n' && from > start && (from[-1] == '[' || from[-1] == ',') && (from[1] == ']' || from[1] == ',');
    if (extent)
      at += sprintf(at, "%d", (int)size);
    else
      *at++ = *from;
  }
  *at = 0;
}

static void check_size(rung_host *host, size_t i, int64_t size) {
  char body[4096], fixed[4200];
  fix_size(cases[i].text, size, body);
  snprintf(fixed, sizeof fixed, "rung 1\n%s", body);
  rung_compile_options off = rung_compile_options_default(), on = off;
  off.fold = off.fuse = off.merge = false;
  graph_run want = graph_execute(host, "ref", cases[i].text, &off, size);
  graph_run have = graph_execute(host, "cpu", cases[i].text, &on, size);
  graph_run exact = graph_execute(host, "cpu", fixed, &on, size);
  CHECK_OK(want.status);
  CHECK_OK(have.status);
  CHECK_OK(exact.status);
  if (!want.status && !have.status && !exact.status) {
    CHECK(graph_difference(&want, &have) <= cases[i].off);
    CHECK(have.elements[0] == exact.elements[0] &&
          memcmp(have.value[0], exact.value[0], (size_t)have.elements[0] * sizeof(float)) == 0);
  }
  graph_run_free(&want);
  graph_run_free(&have);
  graph_run_free(&exact);
}

static void test_results(void) {
  rung_host *host = NULL;
  rung_error error;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  for (size_t i = 0; i < RUNG_COUNT(cases); i++)
    for (int64_t size = 1; size <= 33; size *= 2) check_size(host, i, size + (size > 4));
  rung_host_release(host);
}

static void test_kernels(void) {
  rung_host *host = NULL;
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    graph_world w = {.maps = 0};
    const rung_compile_options on = rung_compile_options_default();
    CHECK_OK(graph_open(host, &w, "cpu", cases[i].text, &on, &error));
    bool any = false;
    for (uint32_t k = 0; w.program && k < w.program->plan->steps; k++) {
      const rung_step *step = &w.program->plan->step[k];
      if (step->kind != RUNG_STEP_KERNEL) continue;
      const char *name = w.program->plan->variant[step->variant].kernel->name;
      any = any || strncmp(name, cases[i].kernel, strlen(cases[i].kernel)) == 0;
    }
    CHECK(any);
    graph_close(&w);
  }
  rung_host_release(host);
}

int main(void) {
  RUN(test_results);
  RUN(test_kernels);
  return TEST_END();
}
