/* SPDX-License-Identifier: MIT
 * Passes keep results: random graphs, each pass by itself and the whole pipeline, on ref and cpu, against the graph as
 * it was written. And every allocation failed once over passes, forms made by bodies and a run. */
#include <stdarg.h>

#include "passes/pass.h"
#include "run_graph.h"

enum { TEXT = 1 << 15, VALUES = 64 };

/* ---- random graphs. Values are f32[n,32]; what is made of weights alone is f32[32] or f32[32,32]. */

typedef struct maker {
  uint64_t seed;
  char text[TEXT];
  size_t length;
  int next; /* name of the next value */
  int value[VALUES], values;
} maker;

static void put(maker *m, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(m->text + m->length, TEXT - m->length, format, args);
  va_end(args);
  if (n > 0 && m->length + (size_t)n < TEXT) m->length += (size_t)n;
}

/* One statement; gives the value's number. `type` is what stands behind the colon. */
static int say(maker *m, const char *type, const char *format, ...) {
  char what[256];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  put(m, "%%%d = %s : %s\n", m->next, what, type);
  return m->next++;
}

static int pick(maker *m) { return m->value[test_below(&m->seed, m->values)]; }
static int keep(maker *m, int value) {
  if (m->values < VALUES) m->value[m->values++] = value;
  return value;
}
static int scalar(maker *m, double v) { return say(m, "f32[]", "constant {data=f32(%.9g)}", v); }
#define ROWS "f32[n,32]"

static int make_softmax(maker *m, int x) {
  const int top = say(m, "f32[n,1]", "reduce_max %%%d {axes=[1], keep=true}", x);
  const int e = say(m, ROWS, "exp %%%d", say(m, ROWS, "sub %%%d, %%%d", x, top));
  const int sum = say(m, "f32[n,1]", "reduce_sum %%%d {axes=[1], keep=true}", e);
  if (test_below(&m->seed, 4) == 0) keep(m, e); /* may get another reader */
  return say(m, ROWS, "div %%%d, %%%d", e, sum);
}

static int make_norm(maker *m, int x, int weight) {
  const bool centred = test_below(&m->seed, 2);
  if (centred) x = say(m, ROWS, "sub %%%d, %%%d", x, say(m, "f32[n,1]", "reduce_mean %%%d {axes=[1], keep=true}", x));
  const int mean = say(m, "f32[n,1]", "reduce_mean %%%d {axes=[1], keep=true}", say(m, ROWS, "mul %%%d, %%%d", x, x));
  const int sum = say(m, "f32[n,1]", "add %%%d, %%%d", mean, scalar(m, 1e-5));
  const int y = say(m, ROWS, "mul %%%d, %%%d", x, say(m, "f32[n,1]", "rsqrt %%%d", sum));
  return weight < 0 ? y : say(m, ROWS, "mul %%%d, %%%d", y, weight);
}

static int make_gelu(maker *m, int x) {
  const int half = say(m, ROWS, "mul %%%d, %%%d", x, scalar(m, 0.5));
  const int inner = say(m, ROWS, "erf %%%d", say(m, ROWS, "mul %%%d, %%%d", scalar(m, 0.70710678), x));
  return say(m, ROWS, "mul %%%d, %%%d", say(m, ROWS, "add %%%d, %%%d", inner, scalar(m, 1)), half);
}

static int make_row(maker *m) {
  const int w = say(m, "f16[32]", "weight {name=\"r%d\"}", (int)test_below(&m->seed, 3));
  const int wide = say(m, "f32[32]", "cast %%%d {type=f32}", w);
  return test_below(&m->seed, 2) ? wide : say(m, "f32[32]", "exp %%%d", wide);
}

static int make_matrix(maker *m) {
  int w = say(m, "f32[32,32]", "weight {name=\"m%d\"}", (int)test_below(&m->seed, 4));
  if (test_below(&m->seed, 3) == 0) w = say(m, "f32[32,32]", "mul %%%d, %%%d", w, make_row(m));
  if (test_below(&m->seed, 3) == 0) w = say(m, "f32[32,32]", "transpose %%%d {permutation=[1,0]}", w);
  return w;
}

static int make_product(maker *m, int x) {
  const int w = test_below(&m->seed, 3) ? make_matrix(m)
                                        : say(m, "q8_0[32,32]", "weight {name=\"q%d\"}", (int)test_below(&m->seed, 4));
  const bool turned = strstr(strrchr(m->text, ':'), "q8_0") || test_below(&m->seed, 2);
  const int y = say(m, ROWS, turned ? "matmul %%%d, %%%d {transpose_b=true}" : "matmul %%%d, %%%d", x, w);
  return say(m, ROWS, "mul %%%d, %%%d", y, scalar(m, 0.25));
}

/* gate and up of one value */
static int make_gate(maker *m, int x) {
  const char *turn = test_below(&m->seed, 2) ? " {transpose_b=true}" : "";
  const int a = say(m, "f32[32,32]", "weight {name=\"g%d\"}", m->next),
            b = say(m, "f32[32,32]", "weight {name=\"g%d\"}", m->next);
  const int gate = say(m, ROWS, "matmul %%%d, %%%d%s", x, a, turn),
            up = say(m, ROWS, "matmul %%%d, %%%d%s", x, b, turn);
  const int s = say(m, ROWS, "mul %%%d, %%%d", gate, say(m, ROWS, "sigmoid %%%d", gate));
  return say(m, ROWS, "mul %%%d, %%%d", say(m, ROWS, "mul %%%d, %%%d", s, up), scalar(m, 0.125));
}

static int make_nothing(maker *m, int x) {
  switch (test_below(&m->seed, 5)) {
    case 0:
      return say(m, ROWS, "mul %%%d, %%%d", x, scalar(m, 1));
    case 1:
      return say(m, ROWS, "neg %%%d", say(m, ROWS, "neg %%%d", x));
    case 2:
      return say(m, ROWS, "transpose %%%d {permutation=[1,0]}",
                 say(m, "f32[32,n]", "transpose %%%d {permutation=[1,0]}", x));
    case 3:
      return say(m, ROWS, "reshape %%%d {shape=[n,32]}", say(m, "f32[n,4,8]", "reshape %%%d {shape=[n,4,8]}", x));
    default:
      return say(m, ROWS, "add %%%d, %%%d", x, scalar(m, 0));
  }
}

static int make_if(maker *m, int x) {
  const bool known = test_below(&m->seed, 2);
  const int c = known ? say(m, "bool[]", "constant {data=bool(%d)}", (int)test_below(&m->seed, 2)) : 1;
  put(m,
      "%%%d = if %%%d, %%%d {\n  %%0 = input {name=\"x\"} : " ROWS "\n  %%1 = sigmoid %%0 : " ROWS
      "\n  %%2 = mul %%0, %%1 : " ROWS "\n  %%3 = sigmoid %%0 : " ROWS "\n  %%4 = add %%2, %%3 : " ROWS
      "\n  output \"y\" %%4\n} else {\n  %%0 = input {name=\"x\"} : " ROWS
      "\n  %%1 = constant {data=f32(2)} : f32[]\n  %%2 = mul %%1, %%1 : f32[]\n  %%3 = div %%0, %%2 : " ROWS
      "\n  output \"y\" %%3\n} : " ROWS "\n",
      m->next, c, x);
  return m->next++;
}

/* A branch and, in the other, a loop compute with what they make of captured weights: a row, and a factor that lies
 * either way. */
static int make_captured(maker *m, int x) {
  const int row = say(m, "f16[32]", "weight {name=\"r%d\"}", (int)test_below(&m->seed, 3)),
            matrix = say(m, "f32[32,32]", "weight {name=\"m%d\"}", (int)test_below(&m->seed, 4)),
            trip = say(m, "i64[]", "constant {data=i64(%d)}", (int)test_below(&m->seed, 4)),
            go = say(m, "bool[]", "constant {data=bool(1)}");
  const char *turn = test_below(&m->seed, 2) ? " {transpose_b=true}" : "";
  const char *computed = test_below(&m->seed, 2) ? "exp %6" : "mul %6, %6";
  put(m,
      "%%%d = if %%1, %%%d, %%%d, %%%d, %%%d, %%%d {\n  %%0 = input {name=\"x\"} : " ROWS
      "\n  %%1 = input {name=\"r\"} : f16[32]\n  %%2 = input {name=\"m\"} : f32[32,32]"
      "\n  %%3 = input {name=\"t\"} : i64[]\n  %%4 = input {name=\"g\"} : bool[]"
      "\n  %%5 = cast %%1 {type=f32} : f32[32]\n  %%6 = sigmoid %%5 : f32[32]\n  %%7 = mul %%0, %%6 : " ROWS
      "\n  %%8 = matmul %%7, %%2%s : " ROWS "\n  %%9 = constant {data=f32(0.25)} : f32[]\n  %%10 = mul %%8, %%9 : " ROWS
      "\n  output \"y\" %%10\n} else {\n  %%0 = input {name=\"x\"} : " ROWS
      "\n  %%1 = input {name=\"r\"} : f16[32]\n  %%2 = input {name=\"m\"} : f32[32,32]"
      "\n  %%3 = input {name=\"t\"} : i64[]\n  %%4 = input {name=\"g\"} : bool[]"
      "\n  %%5 = loop %%3, %%4, %%0, %%1, %%2 {carried=1} {\n    %%0 = input {name=\"i\"} : i64[]"
      "\n    %%1 = input {name=\"go\"} : bool[]\n    %%2 = input {name=\"v\"} : " ROWS
      "\n    %%3 = input {name=\"r\"} : f16[32]\n    %%4 = input {name=\"m\"} : f32[32,32]"
      "\n    %%5 = cast %%3 {type=f32} : f32[32]\n    %%6 = mul %%4, %%5 : f32[32,32]\n    %%7 = %s : f32[32,32]"
      "\n    %%8 = matmul %%2, %%7%s : " ROWS "\n    %%9 = tanh %%8 : " ROWS "\n    %%10 = add %%9, %%2 : " ROWS
      "\n    output \"go\" %%1\n    output \"v\" %%10\n  } : " ROWS "\n  output \"y\" %%5\n} : " ROWS "\n",
      m->next, x, row, matrix, trip, go, turn, computed, turn);
  return m->next++;
}

static void make_graph(maker *m, uint64_t seed) {
  *m = (maker){.seed = seed};
  put(m, "rung 1\nsymbol n 1..16\n");
  keep(m, say(m, ROWS, "input {name=\"x\"}"));
  say(m, "bool[]", "input {name=\"c\"}");
  const int steps = 4 + (int)test_below(&m->seed, 10);
  for (int i = 0; i < steps; i++) {
    const int x = pick(m);
    switch (test_below(&m->seed, 10)) {
      case 0:
        keep(m, make_softmax(m, x));
        break;
      case 1:
        keep(m, make_norm(m, x, test_below(&m->seed, 2) ? make_row(m) : -1));
        break;
      case 2:
        keep(m, make_gelu(m, x));
        break;
      case 3:
      case 4:
        keep(m, make_product(m, x));
        break;
      case 5:
        keep(m, make_gate(m, x));
        break;
      case 6:
        keep(m, make_nothing(m, x));
        break;
      case 7:
        keep(m, make_if(m, x));
        break;
      case 8:
        keep(m, make_captured(m, x));
        break;
      default:
        keep(m, say(m, ROWS, "add %%%d, %%%d", x, pick(m)));
        break;
    }
  }
  put(m, "output \"y\" %%%d\noutput \"z\" %%%d\n", m->value[m->values - 1], pick(m));
}

/* ---- comparisons */

static rung_compile_options plain_options(void) {
  rung_compile_options o = rung_compile_options_default();
  o.quant = RUNG_QUANT_EXACT;
  o.fold = o.fuse = o.merge = false;
  return o;
}

static bool check_run(const graph_run *want, const graph_run *have, double tolerance, const char *what,
                      const char *text) {
  CHECK_OK(have->status);
  if (have->status) fprintf(stderr, "%s: %s\n%s", what, have->error.message, text);
  if (have->status) return false;
  const double off = graph_difference(want, have);
  CHECK(off <= tolerance);
  if (off > tolerance) fprintf(stderr, "%s: off by %g\n%s", what, off, text);
  return off <= tolerance;
}

enum { GRAPHS = 60 };
static const char *const devices[] = {"ref", "cpu"};

static void test_pipeline(void) {
  rung_host *host;
  rung_error error;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  static maker m;
  bool good = true;
  for (uint64_t seed = 1; seed <= (test_slow() ? GRAPHS / 6 : GRAPHS) && good; seed++) {
    make_graph(&m, seed * 7919);
    const rung_compile_options off = plain_options();
    graph_run want = graph_execute(host, "ref", m.text, &off, 5);
    CHECK_OK(want.status);
    if (want.status) fprintf(stderr, "%s\n%s", want.error.message, m.text);
    for (int d = 0; d < 2 && good; d++) {
      rung_compile_options on = rung_compile_options_default();
      on.quant = RUNG_QUANT_EXACT;
      graph_run have = graph_execute(host, devices[d], m.text, &on, 5);
      good = check_run(&want, &have, 1e-4, devices[d], m.text);
      if (good) CHECK_EQ_I64(have.view_memory.packed, have.predicted.packed);
      graph_run_free(&have);
    }
    graph_run_free(&want);
  }
  rung_host_release(host);
}

static char *copy_text(const char *text) {
  char *copy = malloc(strlen(text) + 1);
  strcpy(copy, text);
  return copy;
}

static rung_status run_pass(rung_host *host, const rung_target *target, const char *pass, const char *text,
                            rung_text *out, rung_error *error) {
  const rung_compile_options options = plain_options();
  rung_pass_env env = {.host = host, .target = target, .options = &options, .error = error};
  rung_graph *graph = NULL, *done = NULL;
  rung_status status = rung_graph_parse(host, text, strlen(text), error, &graph);
  if (!status) status = rung_pipeline_pass(&env, pass, graph, &done);
  if (!status) rung_graph_print_text(done, out);
  rung_graph_destroy(graph);
  rung_graph_destroy(done);
  return status;
}

/* Passes in the pipeline's order, each on what the one before made. */
static void test_each_pass(void) {
  static const char *const passes[] = {
      "integer_products", "affine", "fold",  "common",    "dead",    "patterns", "hoist", "dead",
      "weights_only",     "merge",  "forms", "epilogues", "regions", "legalise"};
  rung_host *host;
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  rung_device *device = NULL;
  CHECK_OK(rung_device_create(host, "cpu", NULL, &error, &device));
  static maker m;
  bool good = device != NULL;
  for (uint64_t seed = 1; seed <= (test_slow() ? 4 : 24) && good; seed++) {
    make_graph(&m, seed * 104729);
    const rung_compile_options off = plain_options();
    graph_run want = graph_execute(host, "ref", m.text, &off, 3);
    char *text = copy_text(m.text);
    for (size_t p = 0; p < RUNG_COUNT(passes) && good; p++) {
      rung_text next;
      rung_text_init(&next, host);
      CHECK_OK(run_pass(host, device->target, passes[p], text, &next, &error));
      good = next.length > 0;
      if (!good) fprintf(stderr, "%s: %s\n%s", passes[p], error.message, text);
      free(text);
      text = copy_text(next.data ? next.data : "");
      rung_text_finish(&next);
      graph_run have = graph_execute(host, "cpu", text, &off, 3);
      good = good && check_run(&want, &have, 1e-4, passes[p], text);
      graph_run_free(&have);
    }
    free(text);
    graph_run_free(&want);
  }
  rung_device_release(device);
  rung_host_release(host);
}

/* ---- forms that bodies make */

static const char form_text[] =
    "rung 1\n"
    "symbol n 1..16\n"
    "%0 = input {name=\"x\"} : f32[n,48]\n"
    "%1 = weight {name=\"a\"} : f32[48,80]\n"
    "%2 = matmul %0, %1 : f32[n,80]\n" /* turned */
    "%3 = weight {name=\"q\"} : f32[48,32]\n"
    "%4 = weight {name=\"k\"} : f32[48,16]\n"
    "%5 = matmul %0, %3 : f32[n,32]\n" /* turned and joined */
    "%6 = matmul %0, %4 : f32[n,16]\n"
    "%7 = exp %5 : f32[n,32]\n"
    "%8 = weight {name=\"g\"} : f32[48,64]\n"
    "%9 = weight {name=\"u\"} : f32[48,64]\n"
    "%10 = input {name=\"z\"} : f32[n,48]\n"
    "%11 = matmul %10, %8 : f32[n,64]\n" /* turned and in turn */
    "%12 = matmul %10, %9 : f32[n,64]\n"
    "%13 = silu %11 : f32[n,64]\n"
    "%14 = mul %13, %12 : f32[n,64]\n"
    "%15 = weight {name=\"h\"} : f16[80,48]\n"
    "%16 = cast %15 {type=f32} : f32[80,48]\n"
    "%17 = constant {data=f32(0.5)} : f32[]\n"
    "%18 = mul %16, %17 : f32[80,48]\n"
    "%19 = matmul %0, %18 {transpose_b=true} : f32[n,80]\n" /* computed, then packed */
    "%20 = weight {name=\"b\"} : f32[80]\n"
    "%21 = exp %20 : f32[80]\n"
    "%22 = add %19, %21 : f32[n,80]\n" /* computed, not packed */
    "%23 = weight {name=\"t\"} : bf16[48,20]\n"
    "%24 = matmul %0, %23 : f32[n,20]\n" /* turned in two bytes, rows that fill no panel */
    "output \"a\" %2\noutput \"q\" %7\noutput \"k\" %6\noutput \"g\" %14\noutput \"h\" %22\noutput \"t\" %24\n";

static void test_forms(void) {
  rung_host *host;
  rung_error error;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  const rung_compile_options off = plain_options();
  rung_compile_options on = rung_compile_options_default();
  graph_run want = graph_execute(host, "ref", form_text, &off, 7);
  CHECK_OK(want.status);
  uint64_t total = 0;
  for (int d = 0; d < 2; d++) {
    graph_run have = graph_execute(host, devices[d], form_text, &on, 7);
    check_run(&want, &have, 1e-4, devices[d], form_text);
    CHECK_EQ_I64(have.view_memory.packed, have.predicted.packed);
    const rung_memory p = have.predicted;
    total = p.weights + p.packed + p.activations + p.scratch + p.load;
    graph_run_free(&have);
  }
  rung_host_release(host);
  /* What was predicted is enough. */
  rung_host_options options = rung_host_options_default();
  options.memory_budget = total;
  CHECK_OK(rung_host_create(&options, &error, &host));
  graph_run have = graph_execute(host, "cpu", form_text, &on, 7);
  check_run(&want, &have, 1e-4, "budget", form_text);
  graph_run_free(&have);
  graph_run_free(&want);
  const rung_memory left = rung_host_memory(host);
  CHECK_EQ_I64(left.load + left.packed + left.weights, 0);
  rung_host_release(host);
}

/* One view makes a form once, also for another program. */
static void test_forms_shared(void) {
  rung_host *host;
  rung_error error;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  graph_world w = {.maps = 0};
  CHECK_OK(graph_open(host, &w, "cpu", form_text, NULL, &error));
  const uint64_t packed = rung_view_memory(w.view).packed;
  rung_template *other = NULL;
  rung_program *program = NULL;
  rung_context *context = NULL;
  CHECK(packed > 0);
  CHECK_OK(rung_template_create(w.device, w.graph, NULL, &error, &other));
  CHECK_OK(rung_program_create(other, (rung_binding[]){{"n", 4}}, 1, &error, &program));
  CHECK_OK(rung_context_create(other, w.view, NULL, NULL, &error, &context));
  CHECK_OK(rung_context_use(context, program));
  CHECK_EQ_I64(rung_view_memory(w.view).packed, packed);
  rung_context_destroy(context);
  rung_program_release(program);
  rung_template_release(other);
  graph_close(&w);
  rung_host_release(host);
}

/* ---- failures */

static void test_failures(void) {
  static const rung_fault kinds[] = {RUNG_FAULT_ALLOC, RUNG_FAULT_COMMIT};
  static maker m;
  static maker bodies = {.seed = 5};
  put(&bodies, "rung 1\nsymbol n 1..16\n");
  const int x = say(&bodies, ROWS, "input {name=\"x\"}");
  say(&bodies, "bool[]", "input {name=\"c\"}");
  put(&bodies, "output \"y\" %%%d\n", make_captured(&bodies, x));
  make_graph(&m, 31);
  const char *const texts[] = {form_text, m.text, bodies.text};
  rung_error error;
  for (size_t t = 0; t < RUNG_COUNT(texts); t++)
    for (size_t k = 0; k < RUNG_COUNT(kinds); k++) {
      rung_host *host;
      CHECK_OK(rung_host_create(NULL, &error, &host));
      const int64_t failed = graph_fail_each(host, texts[t], kinds[k], test_slow() ? 7 : 1);
      printf("graph %zu: %" PRId64 " calls of kind %d failed\n", t, failed, (int)kinds[k]);
      rung_host_release(host);
    }
}

int main(void) {
  RUN(test_pipeline);
  RUN(test_each_pass);
  RUN(test_forms);
  RUN(test_forms_shared);
  RUN(test_failures);
  return TEST_END();
}
