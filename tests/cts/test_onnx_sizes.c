/* SPDX-License-Identifier: MIT
 * One compile of an ONNX model serves all sizes: a convolutional net with open batch, height and width runs at 200 random
 * sizes from two threads, and nothing is compiled or allocated any more; every size gives the bits of a model that was
 * read with these extents fixed. */
#define _GNU_SOURCE
#include <pthread.h>

#include "formats/make_onnx.h"

enum { RUNS = 200, BATCH = 3, LOW = 20, HIGH = 96, CHANNELS = 4, CLASSES = 3, THREADS = 2 };

static rung_host *host;
static rung_device *device;

/* Strides, padding that follows the size, a depthwise step, upsampling by an extent of another value, shapes computed
 * in the graph, and a softmax over what is left. */
static void net(maker *m) {
  static float w1[CHANNELS * 2 * 9], w2[CHANNELS * 9], w3[CHANNELS * CHANNELS * 4], w4[CHANNELS * CLASSES],
      four[4][CHANNELS];
  uint64_t random = 3;
  for (size_t i = 0; i < RUNG_COUNT(w1); i++) w1[i] = test_uniform(&random, -0.5f, 0.5f);
  for (size_t i = 0; i < RUNG_COUNT(w2); i++) w2[i] = test_uniform(&random, -0.5f, 0.5f);
  for (size_t i = 0; i < RUNG_COUNT(w3); i++) w3[i] = test_uniform(&random, -0.5f, 0.5f);
  for (size_t i = 0; i < RUNG_COUNT(w4); i++) w4[i] = test_uniform(&random, -0.5f, 0.5f);
  for (int i = 0; i < CHANNELS; i++) four[0][i] = 1.5f, four[1][i] = 0.1f, four[2][i] = 0.2f, four[3][i] = 2;
  make_begin(m, 17);
  make_input(m, "x", RUNG_TYPE_F32, "n,2,h,w");
  make_tensor(m, "w1", RUNG_TYPE_F32, "4,2,3,3", w1), make_tensor(m, "w2", RUNG_TYPE_F32, "4,1,3,3", w2);
  make_tensor(m, "w3", RUNG_TYPE_F32, "4,4,2,2", w3), make_tensor(m, "w4", RUNG_TYPE_F32, "4,3", w4);
  static const char *const names[] = {"scale", "shift", "mean", "spread"};
  for (int i = 0; i < 4; i++) make_tensor(m, names[i], RUNG_TYPE_F32, "4", four[i]);
  make_i64(m, "zero", 1, (const int64_t[]){0}), make_i64(m, "two", 1, (const int64_t[]){2});
  make_i64(m, "end", 1, (const int64_t[]){4}), make_i64(m, "channels", 1, (const int64_t[]){CHANNELS});
  make_i64(m, "rest", 1, (const int64_t[]){-1});
  const int64_t ones[4] = {1, 1, 1, 1}, twos[2] = {2, 2};
  make_node(m, "Conv", "x w1", "c1");
  make_attr_ints(m, "pads", 4, ones), make_attr_ints(m, "strides", 2, twos);
  make_node(m, "BatchNormalization", "c1 scale shift mean spread", "b1");
  make_node(m, "HardSwish", "b1", "a1");
  make_node(m, "Conv", "a1 w2", "c2");
  make_attr_ints(m, "pads", 4, ones), make_attr_int(m, "group", CHANNELS);
  make_node(m, "Relu", "c2", "a2");
  make_node(m, "MaxPool", "a2", "p");
  make_attr_ints(m, "kernel_shape", 2, twos), make_attr_ints(m, "strides", 2, twos);
  make_node(m, "ConvTranspose", "p w3", "u");
  make_attr_ints(m, "strides", 2, twos);
  make_node(m, "Shape", "a1", "s1");
  make_node(m, "Slice", "s1 two end", "hw");
  make_node(m, "Shape", "u", "s2");
  make_node(m, "Slice", "s2 zero two", "nc");
  make_node(m, "Concat", "nc hw", "size");
  make_attr_int(m, "axis", 0);
  make_node(m, "Resize", "u - - size", "r");
  make_attr_text(m, "mode", "linear");
  make_node(m, "Add", "r a1", "sum");
  make_node(m, "Shape", "x", "s0");
  make_node(m, "Slice", "s0 zero one", "n");
  make_i64(m, "one", 1, (const int64_t[]){1});
  make_node(m, "Concat", "n channels rest", "flat");
  make_attr_int(m, "axis", 0);
  make_node(m, "Reshape", "sum flat", "f");
  make_node(m, "Transpose", "f", "t");
  make_attr_ints(m, "perm", 3, (const int64_t[]){0, 2, 1});
  make_node(m, "MatMul", "t w4", "z");
  make_node(m, "Softmax", "z", "y");
  make_attr_int(m, "axis", -1);
  make_node(m, "GlobalAveragePool", "sum", "g");
  make_output(m, "y"), make_output(m, "g");
}

typedef struct opened {
  rung_onnx model;
  rung_template *made;
  rung_program *program;
  rung_view *view;
} opened;
/* With pins: extents are fixed while the model is read. */
static bool open_net(opened *o, const pb *file, const rung_onnx_pin *pin, size_t pins) {
  rung_error error = {RUNG_OK, ""};
  const rung_source source = rung_source_memory(file->data, file->size);
  const rung_onnx_options options = {.pin = pin, .pins = pins, .largest = HIGH};
  const rung_binding ceiling[] = {{"n", BATCH}, {"h", HIGH}, {"w", HIGH}};
  *o = (opened){0};
  rung_status s = rung_onnx_open(host, &source, &options, NULL, &error, &o->model);
  if (!s) s = rung_template_create(device, o->model.graph, NULL, &error, &o->made);
  if (!s) s = rung_program_create(o->made, ceiling, pins ? 0 : 3, &error, &o->program);
  if (!s) s = rung_view_create(o->model.weights, &error, &o->view);
  CHECK_OK(s);
  if (s) fprintf(stderr, "  %s\n", error.message);
  return !s;
}
static void close_net(opened *o) {
  rung_view_release(o->view);
  rung_program_release(o->program);
  rung_template_release(o->made);
  rung_onnx_close(&o->model);
}
static rung_context *context_of(opened *o, int threads) {
  rung_error error;
  rung_context *c = NULL;
  rung_context_options options = rung_context_options_default();
  options.threads = threads;
  CHECK_OK(rung_context_create(o->made, o->view, NULL, &options, &error, &c));
  CHECK_OK(rung_context_use(c, o->program));
  return c;
}
static rung_status run_at(rung_context *c, int64_t n, int64_t h, int64_t w) {
  void *x;
  rung_status s = rung_context_input(c, 0, (const int64_t[]){n, 2, h, w}, &x);
  for (int64_t i = 0; !s && i < n * 2 * h * w; i++) ((float *)x)[i] = (float)((i * 37 + h) % 101) / 50 - 1;
  return s ? s : rung_context_run(c);
}
static uint64_t calls(void) { return rung_host_allocations(host) + rung_host_commits(host); }

typedef struct walker {
  rung_context *context;
  pthread_barrier_t *barrier;
  uint64_t random, before, after, resident;
  int bad;
} walker;
static void *walk(void *self) {
  walker *w = self;
  w->bad += run_at(w->context, BATCH, HIGH, HIGH) != 0; /* the largest comes first */
  for (int i = 0; i < 10; i++) w->bad += run_at(w->context, 1 + i % BATCH, HIGH - i, LOW + 7 * i) != 0;
  pthread_barrier_wait(w->barrier);
  w->before = calls();
  pthread_barrier_wait(w->barrier);
  for (int i = 0; i < RUNS / THREADS; i++) {
    const int64_t n = 1 + test_below(&w->random, BATCH), h = LOW + test_below(&w->random, HIGH - LOW + 1),
                  width = LOW + test_below(&w->random, HIGH - LOW + 1);
    rung_tensor y;
    w->bad += run_at(w->context, n, h, width) != 0 || rung_context_output(w->context, 0, &y) != 0;
    w->bad +=
        !w->bad && (y.extent[0] != n || y.extent[1] != ((h + 1) / 2) * ((width + 1) / 2) || y.extent[2] != CLASSES);
  }
  pthread_barrier_wait(w->barrier);
  w->after = calls();
  return NULL;
}
static void test_two_hundred_random_sizes(void) {
  maker m;
  opened o;
  net(&m);
  pb file = make_file(&m);
  if (open_net(&o, &file, NULL, 0)) {
    pthread_barrier_t barrier;
    pthread_t thread[THREADS];
    walker w[THREADS];
    const uint64_t passes = rung_device_passes(device);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) w[i] = (walker){context_of(&o, 1), &barrier, (uint64_t)i + 1, 0, 0, 0, 0};
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&thread[i], NULL, walk, &w[i]) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
      CHECK_EQ_I64(w[i].bad, 0);
      if (w[i].bad) fprintf(stderr, "  %s\n", rung_context_message(w[i].context));
      CHECK_EQ_I64(w[i].after, w[i].before); /* no call of an allocator */
      rung_context_destroy(w[i].context);
    }
    CHECK_EQ_I64(rung_device_passes(device), passes); /* no compile */
    pthread_barrier_destroy(&barrier);
  }
  close_net(&o);
  free(file.data);
  make_end(&m);
}

static void test_same_bits_as_read_for_the_size(void) {
  static const int64_t size[5][3] = {{1, 20, 20}, {3, 96, 96}, {2, 33, 71}, {1, 64, 21}, {3, 47, 80}};
  maker m;
  opened open, fixed;
  net(&m);
  pb file = make_file(&m);
  if (open_net(&open, &file, NULL, 0)) {
    rung_context *a = context_of(&open, 2);
    for (size_t i = 0; i < RUNG_COUNT(size); i++) {
      int64_t value[3] = {size[i][0], size[i][1], size[i][2]};
      const rung_onnx_pin pin[] = {{"n", rung_tensor_dense(RUNG_TYPE_I64, 0, NULL, &value[0])},
                                   {"h", rung_tensor_dense(RUNG_TYPE_I64, 0, NULL, &value[1])},
                                   {"w", rung_tensor_dense(RUNG_TYPE_I64, 0, NULL, &value[2])}};
      if (!open_net(&fixed, &file, pin, 3)) continue;
      rung_context *b = context_of(&fixed, 1);
      CHECK_OK(run_at(a, value[0], value[1], value[2]));
      CHECK_OK(run_at(b, value[0], value[1], value[2]));
      for (int k = 0; k < 2; k++) {
        rung_tensor x, y;
        if (rung_context_output(a, k, &x) || rung_context_output(b, k, &y)) continue;
        size_t n = sizeof(float);
        for (int d = 0; d < x.rank; d++) {
          CHECK_EQ_I64(x.extent[d], y.extent[d]);
          n *= (size_t)x.extent[d];
        }
        CHECK(memcmp(x.data, y.data, n) == 0);
      }
      rung_context_destroy(b);
      close_net(&fixed);
    }
    rung_context_destroy(a);
  }
  close_net(&open);
  free(file.data);
  make_end(&m);
}

int main(void) {
  rung_error error;
  rung_device_options options = rung_device_options_default();
  options.threads = 2;
  if (rung_host_create(NULL, &error, &host) || rung_device_create(host, "cpu", &options, &error, &device)) return 1;
  RUN(test_two_hundred_random_sizes);
  RUN(test_same_bits_as_read_for_the_size);
  rung_device_release(device);
  rung_host_release(host);
  return TEST_END();
}
