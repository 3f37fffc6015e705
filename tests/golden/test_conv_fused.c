/* SPDX-License-Identifier: MIT
 * What follows a convolution inside a fused step: the bits of the ops one by one, for every way that a convolution is
 * computed and every way that an operand lies, on every instruction set; the same bits compiled for one size and for
 * all; fused where that gains, and only there. */
#define _POSIX_C_SOURCE 200809L

#include <stdarg.h>

#include "run_graph.h"

enum { TEXT = 4096 };

/* @ stands for the open extent. Operands of channels are inputs here, so that nothing of them goes into weights. `kernel`:
 * the only one that the graph runs, NULL where what follows is a step of its own. */
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
    {"one place a window, x is added again", NULL,
     X("70") "%1 = weight {name=\"w\"} : f32[70,70,1,1]\n%2 = conv %0, %1 : f32[2,70,@,@]\n"
             "%3 = add %2, %0 : f32[2,70,@,@]\n%4 = silu %3 : f32[2,70,@,@]\noutput \"y\" %4\n"},
    {"k in chunks", NULL,
     X("300") BY_CHANNEL(
         "30") "%2 = weight {name=\"w\"} : f32[30,300,1,1]\n%3 = conv %0, %2 : f32[2,30,@,@]\n"
               "%4 = add %1, %3 : f32[2,30,@,@]\n%5 = leaky_relu %4 {alpha=0.1} : f32[2,30,@,@]\noutput \"y\" %5\n"},
    {"groups", "conv_strip_f32",
     X("8") BY_CHANNEL("24") "%2 = weight {name=\"w\"} : f32[24,4,2,3]\n"
                             "%3 = conv %0, %2 {pad_before=[1,1], pad_after=[0,1], groups=2} : f32[2,24,@,@]\n"
                             "%4 = mul %3, %1 : f32[2,24,@,@]\noutput \"y\" %4\n"},
    {"one channel a group", NULL,
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
    {"transposed, places in turn", NULL,
     X("6") BY_CHANNEL(
         "14") "%2 = weight {name=\"w\"} : f32[6,14,2,2]\n"
               "%3 = conv_transpose %0, %2 {stride=[2,2]} : f32[2,14,2 * @,2 * @]\n"
               "%4 = add %3, %1 : f32[2,14,2 * @,2 * @]\n%5 = relu %4 : f32[2,14,2 * @,2 * @]\noutput \"y\" %5\n"},
    {"transposed, results held back", NULL,
     "%0 = input {name=\"x\"} : f32[2,6,@]\n%1 = input {name=\"s\"} : f32[14,1]\n"
     "%2 = weight {name=\"w\"} : f32[6,14,9]\n%3 = conv_transpose %0, %2 {stride=[9]} : f32[2,14,9 * @]\n"
     "%4 = mul %3, %1 : f32[2,14,9 * @]\n%5 = silu %4 : f32[2,14,9 * @]\noutput \"y\" %5\n"},
    {"one place a picture", "conv_strip_f32",
     "%0 = input {name=\"x\"} : f32[2,70,1,1]\n%1 = input {name=\"z\"} : f32[2,9,1,1]\n"
     "%2 = input {name=\"s\"} : f32[9,1,1]\n%3 = weight {name=\"w\"} : f32[9,70,1,1]\n"
     "%4 = conv %0, %3 : f32[2,9,1,1]\n%5 = add %1, %4 : f32[2,9,1,1]\n%6 = mul %2, %5 : f32[2,9,1,1]\n"
     "%7 = hard_sigmoid %6 : f32[2,9,1,1]\noutput \"y\" %7\n"},
    {"numbers", "conv_strip_f32",
     X("5") "%1 = input {name=\"s\"} : f32[1]\n%2 = input {name=\"t\"} : f32[]\n"
            "%3 = weight {name=\"w\"} : f32[20,5,3,3]\n"
            "%4 = conv %0, %3 {pad_before=[1,1], pad_after=[1,1]} : f32[2,20,@,@]\n"
            "%5 = hard_swish %4 : f32[2,20,@,@]\n%6 = mul %1, %5 : f32[2,20,@,@]\n%7 = add %6, %2 : f32[2,20,@,@]\n"
            "%8 = sub %2, %7 : f32[2,20,@,@]\n%9 = div %8, %1 : f32[2,20,@,@]\noutput \"y\" %9\n"},
    {"one axis", "conv_strip_f32",
     "%0 = input {name=\"x\"} : f32[2,6,@]\n%1 = input {name=\"z\"} : f32[2,1,@]\n"
     "%2 = weight {name=\"w\"} : f32[14,6,5]\n"
     "%3 = conv %0, %2 {pad_before=[2], pad_after=[2]} : f32[2,14,@]\n"
     "%4 = mul %3, %1 : f32[2,14,@]\n%5 = tanh %4 : f32[2,14,@]\noutput \"y\" %5\n"},
};

/* The text for an extent: "n", or a number. */
static const char *write_text(const conv_case *c, const char *extent, char *out) {
  char *at =
      out + sprintf(out, "rung 1\n%s", strcmp(extent, "n") == 0 && strchr(c->text, '@') ? "symbol n 1..64\n" : "");
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
  static const int64_t sizes[] = {1, 5, 40, 2, 19, 64};
  const size_t some = test_slow() ? 3 : RUNG_COUNT(sizes);
  rung_host *host = open_host();
  for (size_t i = 0; i < RUNG_COUNT(cases); i++)
    for (size_t k = 0; k < some; k++) {
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
  const bool is = kernel ? name && strncmp(name, kernel, strlen(kernel)) == 0 : w.program && !name;
  CHECK(is);
  if (!is)
    fprintf(stderr, "%s: %s instead of %s: %s\n", what, name ? name : "several steps", kernel ? kernel : "several",
            error.message);
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

/* ---- random shapes */

typedef struct writer {
  uint64_t seed;
  int values, spatial;
  int64_t channels, extent[2]; /* of y */
  char text[TEXT];
} writer;

static int64_t below(writer *w, int64_t n) { return (int64_t)test_below(&w->seed, (uint32_t)n); }

static void put(writer *w, const char *format, ...) RUNG_PRINTF(2, 3);
static void put(writer *w, const char *format, ...) {
  const size_t used = strlen(w->text);
  va_list list;
  va_start(list, format);
  vsnprintf(w->text + used, sizeof w->text - used, format, list);
  va_end(list);
}

/* The extents of a value: pictures, channels, places; `ones`: no places. */
static const char *shape(const writer *w, int64_t batch, int64_t channels, const int64_t *extent, bool ones,
                         char *out) {
  char *at = out + sprintf(out, "f32[%d,%d", (int)batch, (int)channels);
  for (int a = 0; a < w->spatial; a++) at += sprintf(at, ",%d", ones ? 1 : (int)extent[a]);
  strcpy(at, "]");
  return out;
}

/* Something behind value `last`; gives what it makes. */
static int follow(writer *w, int64_t batch, int last) {
  static const char *const alone[] = {"relu", "hard_swish", "hard_sigmoid", "silu", "sigmoid", "tanh", "abs"};
  static const char *const two[] = {"add", "sub", "mul", "max"};
  char y[64], other[64];
  shape(w, batch, w->channels, w->extent, false, y);
  if (below(w, 2)) {
    put(w, "%%%d = %s %%%d : %s\n", w->values, alone[below(w, RUNG_COUNT(alone))], last, y);
    return w->values++;
  }
  const int64_t kind = below(w, 4);
  if (kind == 3)
    strcpy(other, "f32[1]");
  else
    shape(w, kind ? 1 : batch, w->channels, w->extent, kind != 0 && kind != 2, other);
  put(w, "%%%d = input {name=\"in%d\"} : %s\n", w->values, w->values, other);
  const int in = w->values++;
  const bool turned = below(w, 2);
  put(w, "%%%d = %s %%%d, %%%d : %s\n", w->values, two[below(w, RUNG_COUNT(two))], turned ? in : last,
      turned ? last : in, y);
  return w->values++;
}

static void write_random(writer *w) {
  char x[64], kernel[64], y[64];
  const int64_t batch = 1 + below(w, 2), groups = below(w, 4) ? 1 : 1 + below(w, 3);
  const int64_t channels = groups * (1 + below(w, 40));
  int64_t in[2], k[2], stride[2], dilation[2], before[2], after[2];
  w->spatial = 1 + (int)below(w, 2);
  w->channels = groups * (1 + below(w, 30));
  for (int a = 0; a < w->spatial; a++) {
    k[a] = 1 + below(w, 4);
    stride[a] = 1 + (below(w, 3) == 0);
    dilation[a] = 1 + (below(w, 4) == 0);
    before[a] = below(w, 3);
    after[a] = below(w, 3);
    in[a] = below(w, 5) ? 1 + below(w, 40) : 1 + below(w, 300) / w->spatial;
    const int64_t reach = (k[a] - 1) * dilation[a] + 1;
    if (in[a] + before[a] + after[a] < reach) in[a] = reach;
    w->extent[a] = (in[a] + before[a] + after[a] - reach) / stride[a] + 1;
  }
  const bool two = w->spatial == 2;
  put(w, "rung 1\n%%0 = input {name=\"x\"} : %s\n", shape(w, batch, channels, in, false, x));
  put(w, "%%1 = weight {name=\"w\"} : %s\n", shape(w, w->channels, channels / groups, k, false, kernel));
  put(w, "%%2 = weight {name=\"b\"} : f32[%d]\n", (int)w->channels);
  put(w, "%%3 = conv %%0, %%1%s {stride=[%d", below(w, 2) ? ", %2" : "", (int)stride[0]);
  if (two) put(w, ",%d", (int)stride[1]);
  put(w, two ? "], dilation=[%d,%d], " : "], dilation=[%d], ", (int)dilation[0], (int)dilation[two]);
  put(w, two ? "pad_before=[%d,%d], " : "pad_before=[%d], ", (int)before[0], (int)before[two]);
  put(w, two ? "pad_after=[%d,%d], " : "pad_after=[%d], ", (int)after[0], (int)after[two]);
  put(w, "groups=%d} : %s\n", (int)groups, shape(w, batch, w->channels, w->extent, false, y));
  w->values = 4;
  int last = 3;
  for (int64_t n = 1 + below(w, 4); n > 0; n--) last = follow(w, batch, last);
  put(w, "output \"y\" %%%d\n", last);
}

static void check_random(rung_host *host, const char *level, uint64_t seed) {
  writer w = {.seed = seed};
  write_random(&w);
  const conv_case c = {level, NULL, w.text};
  const rung_compile_options on = options(true), off = options(false);
  graph_run reference = graph_execute(host, "ref", w.text, &off, 1);
  graph_run apart = graph_execute(host, "cpu", w.text, &off, 1);
  graph_run fused = graph_execute(host, "cpu", w.text, &on, 1);
  const bool good = check_same(&c, &apart, &fused, (int64_t)seed, "the ops alone");
  const bool near = graph_difference(&reference, &fused) <= 2e-5;
  CHECK(near);
  if (!good || !near) fprintf(stderr, "%s", w.text);
  graph_run_free(&reference);
  graph_run_free(&apart);
  graph_run_free(&fused);
}

static void test_shapes(void) {
#ifdef __aarch64__
  static const char *const levels[] = {"base", "neon"};
#else
  static const char *const levels[] = {"base", "avx2", "avx512"};
#endif
  const char *as_set = getenv("RUNG_MAX_ISA");
  rung_host *host = open_host();
  for (size_t l = 0; l < (as_set ? 1 : RUNG_COUNT(levels)); l++) {
    const char *level = as_set ? as_set : levels[l];
    setenv("RUNG_MAX_ISA", level, 1);
    for (uint64_t seed = 1; seed <= (test_slow() ? 10u : 40u); seed++) check_random(host, level, 1000 * l + seed);
  }
  if (!as_set) unsetenv("RUNG_MAX_ISA");
  rung_host_release(host);
}

int main(void) {
  RUN(test_bits);
  RUN(test_kernels);
  RUN(test_shapes);
  return TEST_END();
}
