/* SPDX-License-Identifier: MIT
 * One program at several sizes, on every device: values, extents, memory report, allocator calls, branches and loops.
 */
#include <rung/program.h>

#include "../test.h"
#include "base/host.h"

typedef struct world {
  rung_host *host;
  rung_device *device;
  rung_graph *graph;
  rung_template *template_;
  rung_program *program;
  rung_context *context;
  rung_error error;
} world;

static bool open_world(world *w, const char *device, const char *text) {
  *w = (world){0};
  rung_status s = rung_host_create(NULL, &w->error, &w->host);
  if (!s) s = rung_device_create(w->host, device, NULL, &w->error, &w->device);
  if (!s) s = rung_graph_parse(w->host, text, strlen(text), &w->error, &w->graph);
  if (!s) s = rung_template_create(w->device, w->graph, NULL, &w->error, &w->template_);
  if (!s) s = rung_program_create(w->template_, NULL, 0, &w->error, &w->program);
  if (!s) s = rung_context_create(w->template_, NULL, NULL, NULL, &w->error, &w->context);
  if (!s && (s = rung_context_use(w->context, w->program)))
    snprintf(w->error.message, sizeof w->error.message, "%s", rung_context_message(w->context));
  CHECK_OK(s);
  if (s) fprintf(stderr, "  %s: %s\n", device, w->error.message);
  return !s;
}

static void close_world(world *w) {
  rung_context_destroy(w->context);
  rung_program_release(w->program);
  rung_template_release(w->template_);
  rung_graph_destroy(w->graph);
  rung_device_release(w->device);
  if (w->host) {
    const rung_memory m = rung_host_memory(w->host);
    CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state, 0);
  }
  rung_host_release(w->host);
}

static bool run(world *w) {
  const rung_status s = rung_context_run(w->context);
  CHECK_OK(s);
  if (s) fprintf(stderr, "  %s\n", rung_context_message(w->context));
  return !s;
}

static const char *const devices[] = {"ref", "cpu"};

static void test_three_sizes(void) {
  static const char text[] =
      "rung 1\n"
      "symbol rows 0..512\n"
      "%0 = input {name=\"x\"} : f32[rows,3]\n"
      "%1 = input {name=\"y\"} : f32[3,2]\n"
      "%2 = matmul %0, %1 : f32[rows,2]\n"
      "%3 = relu %2 : f32[rows,2]\n"
      "output \"z\" %3\n";
  for (size_t d = 0; d < 2; d++) {
    world w;
    if (!open_world(&w, devices[d], text)) {
      close_world(&w);
      continue;
    }
    const float y[6] = {1, -1, 2, -2, 3, -3};
    for (int pass = 0; pass < 2; pass++) {
      const uint64_t before = rung_host_allocations(w.host) + rung_host_commits(w.host);
      const int64_t sizes[] = {1, 37, 512, 0, 5};
      for (int s = 0; s < 5; s++) {
        const int64_t n = sizes[s];
        void *x, *b;
        CHECK_OK(rung_context_input(w.context, 0, (int64_t[]){n, 3}, &x));
        CHECK_OK(rung_context_input(w.context, 1, (int64_t[]){3, 2}, &b));
        memcpy(b, y, sizeof y);
        for (int64_t i = 0; i < n * 3; i++) ((float *)x)[i] = (float)i;
        if (!run(&w)) continue;
        rung_tensor z;
        CHECK_OK(rung_context_output(w.context, 0, &z));
        CHECK_EQ_I64(z.extent[0], n);
        CHECK_EQ_I64(z.extent[1], 2);
        for (int64_t i = 0; i < n; i++) {
          const float want = (float)(3 * i) + 2 * (float)(3 * i + 1) + 3 * (float)(3 * i + 2);
          CHECK(((float *)z.data)[2 * i] == want);
          CHECK(((float *)z.data)[2 * i + 1] == 0);
        }
      }
      if (pass) CHECK_EQ_I64(rung_host_allocations(w.host) + rung_host_commits(w.host), before);
    }
    rung_memory predicted = {0}, held = rung_context_memory(w.context);
    CHECK_OK(rung_program_memory(w.program, (rung_binding[]){{"rows", 512}}, 1, NULL, &w.error, &predicted));
    CHECK_EQ_I64(predicted.activations, held.activations);
    CHECK_EQ_I64(predicted.scratch, held.scratch);
    close_world(&w);
  }
}

static void test_refusals(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..8\n%0 = input {name=\"a\"} : f32[n]\n%1 = input {name=\"b\"} : f32[n]\n%2 = add %0, %1 : "
      "f32[n]\noutput \"c\" %2\n";
  world w;
  if (!open_world(&w, "ref", text)) {
    close_world(&w);
    return;
  }
  void *p;
  CHECK_STATUS(rung_context_run(w.context), RUNG_INVALID_ARGUMENT);
  CHECK_OK(rung_context_input(w.context, 0, (int64_t[]){4}, &p));
  memset(p, 0, 16);
  CHECK_OK(rung_context_input(w.context, 1, (int64_t[]){5}, &p));
  memset(p, 0, 20);
  CHECK_STATUS(rung_context_run(w.context), RUNG_SHAPE_MISMATCH);
  CHECK(strstr(rung_context_message(w.context), "symbol n is 4") != NULL);
  CHECK_STATUS(rung_context_input(w.context, 0, (int64_t[]){9}, &p), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_context_set_extent(w.context, "m", 3), RUNG_NOT_FOUND);
  close_world(&w);
}

static void test_if(void) {
  static const char text[] =
      "rung 1\n"
      "symbol n 1..16\n"
      "%0 = input {name=\"c\"} : bool[]\n"
      "%1 = input {name=\"x\"} : f32[n]\n"
      "%2 = if %0, %1 {\n"
      "  %0 = input {name=\"x\"} : f32[n]\n"
      "  %1 = exp %0 : f32[n]\n"
      "  output \"y\" %1\n"
      "} else {\n"
      "  %0 = input {name=\"x\"} : f32[n]\n"
      "  %1 = neg %0 : f32[n]\n"
      "  output \"y\" %1\n"
      "} : f32[n]\n"
      "output \"y\" %2\n";
  for (size_t d = 0; d < 2; d++) {
    world w;
    if (!open_world(&w, devices[d], text)) {
      close_world(&w);
      continue;
    }
    for (int c = 0; c < 2; c++) {
      void *p;
      CHECK_OK(rung_context_input(w.context, 0, (int64_t[]){0}, &p));
      *(uint8_t *)p = (uint8_t)c;
      CHECK_OK(rung_context_input(w.context, 1, (int64_t[]){3}, &p));
      memcpy(p, (float[]){0, 0, 2}, 12);
      if (!run(&w)) continue;
      rung_tensor y;
      CHECK_OK(rung_context_output(w.context, 0, &y));
      CHECK(((float *)y.data)[0] == (c ? 1.0f : -0.0f));
      CHECK(c ? ((float *)y.data)[2] > 7.3f : ((float *)y.data)[2] == -2);
    }
    close_world(&w);
  }
}

static void test_loop(void) {
  static const char text[] =
      "rung 1\n"
      "symbol n 1..16\n"
      "symbol steps <= 64 made\n"
      "%0 = input {name=\"trip\"} : i64[]\n"
      "%1 = input {name=\"go\"} : bool[]\n"
      "%2 = input {name=\"x\"} : f32[n]\n"
      "%3, %4 = loop %0, %1, %2 {carried=1, symbol=\"steps\", trip=64} {\n"
      "  %0 = input {name=\"i\"} : i64[]\n"
      "  %1 = input {name=\"go\"} : bool[]\n"
      "  %2 = input {name=\"x\"} : f32[n]\n"
      "  %3 = add %2, %2 : f32[n]\n"
      "  output \"go\" %1\n"
      "  output \"x\" %3\n"
      "  output \"trace\" %2\n"
      "} : f32[n], f32[steps,n]\n"
      "output \"last\" %3\n"
      "output \"trace\" %4\n";
  for (size_t d = 0; d < 2; d++) {
    world w;
    if (!open_world(&w, devices[d], text)) {
      close_world(&w);
      continue;
    }
    for (int64_t trip = 0; trip < 7; trip++) {
      void *p;
      CHECK_OK(rung_context_input(w.context, 0, (int64_t[]){0}, &p));
      *(int64_t *)p = trip;
      CHECK_OK(rung_context_input(w.context, 1, (int64_t[]){0}, &p));
      *(uint8_t *)p = 1;
      CHECK_OK(rung_context_input(w.context, 2, (int64_t[]){2}, &p));
      memcpy(p, (float[]){1, 3}, 8);
      if (!run(&w)) continue;
      rung_tensor last, trace;
      CHECK_OK(rung_context_output(w.context, 0, &last));
      CHECK_OK(rung_context_output(w.context, 1, &trace));
      CHECK_EQ_I64(trace.extent[0], trip);
      CHECK(((float *)last.data)[1] == 3.0f * (float)(1 << trip));
      for (int64_t i = 0; i < trip; i++) CHECK(((float *)trace.data)[2 * i] == (float)(1 << i));
    }
    close_world(&w);
  }
}

static void test_found_size(void) {
  static const char text[] =
      "rung 1\n"
      "symbol n 1..1000\n"
      "symbol found <= n made\n"
      "%0 = input {name=\"x\"} : f32[n]\n"
      "%1 = count_nonzero %0 : i64[]\n"
      "%2 = bind_symbol %1 {symbol=\"found\", bound=n} : i64[]\n"
      "%3 = nonzero %0 {count=found} : i64[1,found]\n"
      "%4 = cast %3 {type=f32} : f32[1,found]\n"
      "output \"at\" %4\n";
  for (size_t d = 0; d < 2; d++) {
    world w;
    if (!open_world(&w, devices[d], text)) {
      close_world(&w);
      continue;
    }
    for (int64_t n = 1; n < 600; n += 97) {
      void *p;
      CHECK_OK(rung_context_input(w.context, 0, &n, &p));
      for (int64_t i = 0; i < n; i++) ((float *)p)[i] = i % 3 ? 0.0f : 1.0f;
      if (!run(&w)) continue;
      rung_tensor at;
      CHECK_OK(rung_context_output(w.context, 0, &at));
      CHECK_EQ_I64(at.extent[1], (n + 2) / 3);
      for (int64_t i = 0; i < at.extent[1]; i++) CHECK(((float *)at.data)[i] == (float)(3 * i));
    }
    close_world(&w);
  }
}

int main(void) {
  RUN(test_three_sizes);
  RUN(test_refusals);
  RUN(test_if);
  RUN(test_loop);
  RUN(test_found_size);
  return TEST_END();
}
