/* SPDX-License-Identifier: MIT
 * What follows a convolution inside a fused step: the bits of the ops one by one, for every way that a convolution is
 * computed and every way that an operand lies; the same bits compiled for one size and for all; factors and addends of
 * channels in the weights are what they meant. */
#include "run_graph.h"

enum { TEXT = 4096 };

/* @ stands for the open extent. Operands of channels are inputs here, so that nothing of them goes into weights. */
typedef struct conv_case {
  const char *name, *kernel, *text;
} conv_case;

#define X(channels) "%0 = input {name=\"x\"} : f32[2," channels ",@,@]\n"
#define BY_CHANNEL(channels) "%1 = input {name=\"s\"} : f32[" channels ",1,1]\n"
static const conv_case cases[] = {
    {"windows, what is added lies as the result", "conv_strip_f32",
     X("5") "%1 = weight {name=\"w\"} : f32[20,5,3,3]\n%2 = weight {name=\"b\"} : f32[20]\n"
            "%3 = input {name=\"z\"} : f32[2,20,@,@]\n"
            "%4 = conv %0, %1, %2 {pad_before=[1,1], pad_after=[1,1]} : f32[2,20,@,@]\n"
            "%5 = add %4, %3 : f32[2,20,@,@]\n%6 = relu %5 : f32[2,20,@,@]\noutput \"y\" %6\n"},
    {"many channels, several chunks of them", "conv_strip_f32",
     X("70") BY_CHANNEL("13") "%2 = weight {name=\"w\"} : f32[13,70,3,3]\n"
                              "%3 = conv %0, %2 {pad_before=[1,1], pad_after=[1,1]} : f32[2,13,@,@]\n"
                              "%4 = mul %3, %1 : f32[2,13,@,@]\n%5 = hard_swish %4 : f32[2,13,@,@]\noutput \"y\" %5\n"},
    {"one place a window, x is added again", "conv_strip_f32",
     X("70") "%1 = weight {name=\"w\"} : f32[70,70,1,1]\n%2 = conv %0, %1 : f32[2,70,@,@]\n"
             "%3 = add %2, %0 : f32[2,70,@,@]\n%4 = silu %3 : f32[2,70,@,@]\noutput \"y\" %4\n"},
    {"k in chunks", "conv_strip_f32",
     X("300") BY_CHANNEL(
         "30") "%2 = weight {name=\"w\"} : f32[30,300,1,1]\n%3 = conv %0, %2 : f32[2,30,@,@]\n"
               "%4 = add %1, %3 : f32[2,30,@,@]\n%5 = leaky_relu %4 {alpha=0.1} : f32[2,30,@,@]\noutput \"y\" %5\n"},
    {"groups", "conv_strip_f32",
     X("8") BY_CHANNEL("24") "%2 = weight {name=\"w\"} : f32[24,4,2,3]\n"
                             "%3 = conv %0, %2 {pad_before=[1,1], pad_after=[0,1], groups=2} : f32[2,24,@,@]\n"
                             "%4 = mul %3, %1 : f32[2,24,@,@]\noutput \"y\" %4\n"},
    {"one channel a group", "conv_strip_f32_depthwise",
     X("9")
         BY_CHANNEL("18") "%2 = weight {name=\"w\"} : f32[18,1,3,3]\n"
                          "%3 = constant {data=f32(0)} : f32[]\n%4 = constant {data=f32(0.25)} : f32[]\n"
                          "%5 = conv %0, %2 {pad_before=[1,1], pad_after=[1,1], groups=9} : f32[2,18,@,@]\n"
                          "%6 = add %5, %1 : f32[2,18,@,@]\n%7 = clip %6, %3, %4 : f32[2,18,@,@]\noutput \"y\" %7\n"},
    {"lines of something longer are added", "conv_strip_f32",
     X("5") "%1 = weight {name=\"w\"} : f32[20,5,1,2]\n%2 = input {name=\"z\"} : f32[2,20,@,@]\n"
            "%3 = slice %2 {start=[0,0,0,1], length=[2,20,@,@ - 1], step=[1,1,1,1]} : f32[2,20,@,@ - 1]\n"
            "%4 = conv %0, %1 : f32[2,20,@,@ - 1]\n%5 = add %4, %3 : f32[2,20,@,@ - 1]\n"
            "%6 = relu %5 : f32[2,20,@,@ - 1]\noutput \"y\" %6\n"},
    {"transposed, places in turn", "conv_transpose_strip_f32",
     X("6") BY_CHANNEL(
         "14") "%2 = weight {name=\"w\"} : f32[6,14,2,2]\n"
               "%3 = conv_transpose %0, %2 {stride=[2,2]} : f32[2,14,2 * @,2 * @]\n"
               "%4 = add %3, %1 : f32[2,14,2 * @,2 * @]\n%5 = relu %4 : f32[2,14,2 * @,2 * @]\noutput \"y\" %5\n"},
    {"transposed, results held back", "conv_transpose_strip_f32",
     "%0 = input {name=\"x\"} : f32[2,6,@]\n%1 = input {name=\"s\"} : f32[14,1]\n"
     "%2 = weight {name=\"w\"} : f32[6,14,9]\n%3 = conv_transpose %0, %2 {stride=[9]} : f32[2,14,9 * @]\n"
     "%4 = mul %3, %1 : f32[2,14,9 * @]\n%5 = silu %4 : f32[2,14,9 * @]\noutput \"y\" %5\n"},
    {"one axis", "conv_strip_f32",
     "%0 = input {name=\"x\"} : f32[2,6,@]\n%1 = input {name=\"z\"} : f32[2,1,@]\n"
     "%2 = weight {name=\"w\"} : f32[14,6,5]\n"
     "%3 = conv %0, %2 {pad_before=[2], pad_after=[2]} : f32[2,14,@]\n"
     "%4 = mul %3, %1 : f32[2,14,@]\n%5 = tanh %4 : f32[2,14,@]\noutput \"y\" %5\n"},
};

/* The text for an extent: "n", or a number. */
static const char *write_text(const conv_case *c, const char *extent, char *out) {
  char *at = out + sprintf(out, "rung 1\n%s", strcmp(extent, "n") == 0 ? "symbol n 1..64\n" : "");
  for (const char *from = c->text; *from; from++) {
    if (*from == '@')
      at += sprintf(at, "%s", extent);
    else
      *at++ = *from;
  }
  *at = 0;
  return out;
}

static rung_compile_options options(bool fuse) {
  rung_compile_options o = rung_compile_options_default();
  o.fuse = fuse;
  return o;
}

static bool check_same(const conv_case *c, const graph_run *want, const graph_run *have, int64_t size,
                       const char *what) {
  bool same = !want->status && !have->status && want->outputs == have->outputs &&
              want->elements[0] == have->elements[0] &&
              memcmp(want->value[0], have->value[0], (size_t)want->elements[0] * sizeof(float)) == 0;
  CHECK(same);
  if (!same)
    fprintf(stderr, "%s, %d: not the bits of %s: %s%s\n", c->name, (int)size, what, want->error.message,
            have->error.message);
  return same;
}

static rung_host *open_host(void) {
  rung_host *host = NULL;
  rung_error error;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  return host;
}

static void test_bits(void) {
  static const int64_t sizes[] = {1, 2, 5, 19, 40, 64};
  rung_host *host = open_host();
  for (size_t i = 0; i < RUNG_COUNT(cases); i++)
    for (size_t k = 0; k < RUNG_COUNT(sizes); k++) {
      char text[TEXT], fixed[TEXT], extent[16];
      const conv_case *c = &cases[i];
      snprintf(extent, sizeof extent, "%d", (int)sizes[k]);
      write_text(c, "n", text);
      write_text(c, extent, fixed);
      const rung_compile_options on = options(true), off = options(false);
      graph_run reference = graph_execute(host, "ref", text, &off, sizes[k]);
      graph_run apart = graph_execute(host, "cpu", text, &off, sizes[k]);
      graph_run fused = graph_execute(host, "cpu", text, &on, sizes[k]);
      graph_run exact = graph_execute(host, "cpu", fixed, &on, sizes[k]);
      check_same(c, &apart, &fused, sizes[k], "the ops alone");
      check_same(c, &fused, &exact, sizes[k], "a compile for all sizes");
      CHECK(graph_difference(&reference, &fused) <= 1e-5);
      graph_run_free(&reference);
      graph_run_free(&apart);
      graph_run_free(&fused);
      graph_run_free(&exact);
    }
  rung_host_release(host);
}

/* The only kernel that a graph runs; NULL if there are several. */
static const char *only_kernel(const rung_plan *plan) {
  const char *name = NULL;
  for (uint32_t i = 0; i < plan->steps; i++) {
    if (plan->step[i].kind != RUNG_STEP_KERNEL) continue;
    if (name) return NULL;
    name = plan->variant[plan->step[i].variant].kernel->name;
  }
  return name;
}

static void check_kernel(rung_host *host, const char *text, const char *kernel, const char *what) {
  graph_world w = {.maps = 0};
  rung_error error = {RUNG_OK, ""};
  const rung_compile_options on = options(true);
  CHECK_OK(graph_open(host, &w, "cpu", text, &on, &error));
  const char *name = w.program ? only_kernel(w.program->plan) : NULL;
  const bool is = name && strncmp(name, kernel, strlen(kernel)) == 0;
  CHECK(is);
  if (!is) fprintf(stderr, "%s: %s instead of %s: %s\n", what, name ? name : "several steps", kernel, error.message);
  graph_close(&w);
}

static void test_kernels(void) {
  rung_host *host = open_host();
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    char text[TEXT];
    check_kernel(host, write_text(&cases[i], "n", text), cases[i].kernel, cases[i].name);
  }
  rung_host_release(host);
}

/* Batch normalisation as an importer writes it, over a convolution with and without a bias and over a transpose. */
#define NORM(bias, conv, shape)                                                                                       \
  "rung 1\nsymbol n 1..64\n%0 = input {name=\"x\"} : f32[2,6,n,n]\n%1 = weight {name=\"w\"} : f32[6,6,2,2]\n"         \
  "%2 = weight {name=\"b\"} : f32[6]\n%3 = " conv " %0, %1" bias " {stride=[2,2]} : f32[2,6," shape "," shape         \
  "]\n"                                                                                                               \
  "%4 = weight {name=\"g\"} : f32[6]\n%5 = weight {name=\"v\"} : f32[6]\n%6 = mul %5, %5 : f32[6]\n"                  \
  "%7 = constant {data=f32(0.125)} : f32[]\n%8 = add %6, %7 : f32[6]\n%9 = sqrt %8 : f32[6]\n"                        \
  "%10 = div %4, %9 : f32[6]\n%11 = weight {name=\"m\"} : f32[6]\n%12 = mul %11, %10 : f32[6]\n"                      \
  "%13 = weight {name=\"t\"} : f32[6]\n%14 = sub %13, %12 : f32[6]\n%15 = reshape %10 {shape=[6,1,1]} : f32[6,1,1]\n" \
  "%16 = mul %3, %15 : f32[2,6," shape "," shape                                                                      \
  "]\n%17 = reshape %14 {shape=[6,1,1]} : f32[6,1,1]\n"                                                               \
  "%18 = add %16, %17 : f32[2,6," shape "," shape "]\n%19 = relu %18 : f32[2,6," shape "," shape                      \
  "]\noutput \"y\" %19\n"

static void test_batch_norm(void) {
  static const struct {
    const char *text, *kernel;
  } norms[] = {{NORM("", "conv", "n / 2"), "conv_strip_f32"},
               {NORM(", %2", "conv", "n / 2"), "conv_strip_f32"},
               {NORM(", %2", "conv_transpose", "2 * n"), "conv_transpose_strip_f32"}};
  rung_host *host = open_host();
  for (size_t i = 0; i < RUNG_COUNT(norms); i++) {
    check_kernel(host, norms[i].text, norms[i].kernel, "batch normalisation");
    for (int64_t size = 2; size <= 34; size += 16) {
      rung_compile_options off = options(false);
      off.fold = off.merge = false;
      const rung_compile_options on = options(true);
      graph_run want = graph_execute(host, "ref", norms[i].text, &off, size);
      graph_run have = graph_execute(host, "cpu", norms[i].text, &on, size);
      CHECK_OK(want.status);
      CHECK_OK(have.status);
      CHECK(graph_difference(&want, &have) <= 1e-5);
      graph_run_free(&want);
      graph_run_free(&have);
    }
  }
  rung_host_release(host);
}

int main(void) {
  RUN(test_bits);
  RUN(test_kernels);
  RUN(test_batch_norm);
  return TEST_END();
}
