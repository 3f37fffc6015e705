/* SPDX-License-Identifier: MIT
 * Decoder layers with rotary positions as exporters spell them, or as an operator: what ONNX Runtime computes, on every
 * device and instruction set, at any batch and length from one compile; two rotations and one attention are left of
 * each; an entry of a batch alone gives the bits that it gives among others. Models and numbers are written by
 * scripts/oracle/rotary_onnx.py. */
#define _GNU_SOURCE
#include "formats/make_onnx.h"
#include "ops/op_table.h"
#include "runtime/runtime.h"

enum { WIDTH = 16, BATCH = 3, LENGTH = 7 };

static const char *const names[] = {"llama", "neox",  "gptj",     "cohere",  "unbound",      "unbound_rows",
                                    "split", "pairs", "standard", "contrib", "contrib_first"};
static const int64_t sizes[][2] = {{1, 1}, {2, 7}, {3, 4}};

static pb read_bytes(const char *name, const char *ending) {
  char path[512];
  pb b = {0};
  uint8_t some[4096];
  snprintf(path, sizeof path, "%s/tests/formats/data/rotary/%s.%s", RUNG_SOURCE_DIR, name, ending);
  FILE *f = fopen(path, "rb");
  CHECK(f != NULL);
  for (size_t n; f && (n = fread(some, 1, sizeof some, f)) > 0;) pb_raw(&b, some, n);
  if (f) fclose(f);
  return b;
}

/* ---- a model that is open */

typedef struct opened {
  pb file;
  rung_host *host;
  rung_device *device;
  rung_onnx model;
  rung_template *made;
  rung_program *program;
  rung_view *view;
  rung_context *context;
  rung_error error;
} opened;

static rung_status open_model(opened *o, const char *name, const struct make_mode *mode) {
  *o = (opened){.file = read_bytes(name, "onnx")};
  const rung_source source = rung_source_memory(o->file.data, o->file.size);
  if (mode->isa) setenv("RUNG_MAX_ISA", mode->isa, 1);
  rung_status status = rung_host_create(NULL, &o->error, &o->host);
  if (!status) status = rung_device_create(o->host, mode->device, NULL, &o->error, &o->device);
  unsetenv("RUNG_MAX_ISA");
  if (!status) status = rung_onnx_open(o->host, &source, NULL, NULL, &o->error, &o->model);
  if (!status) status = rung_template_create(o->device, o->model.graph, NULL, &o->error, &o->made);
  if (!status)
    status = rung_program_create(o->made, (rung_binding[]){{"b", BATCH}, {"n", LENGTH}}, 2, &o->error, &o->program);
  if (!status) status = rung_view_create(o->model.weights, &o->error, &o->view);
  if (!status) status = rung_context_create(o->made, o->view, NULL, NULL, &o->error, &o->context);
  return status ? status : rung_context_use(o->context, o->program);
}
static void close_model(opened *o) {
  rung_context_destroy(o->context);
  rung_view_release(o->view);
  rung_program_release(o->program);
  rung_template_release(o->made);
  rung_onnx_close(&o->model);
  rung_device_release(o->device);
  rung_host_release(o->host);
  free(o->file.data);
}

/* Entries `first` on of a batch: the numbers of rotary_onnx.py. */
static rung_status run_entries(opened *o, int64_t first, int64_t batch, int64_t length, float *out_y) {
  float x[BATCH * LENGTH * WIDTH], mask[BATCH * LENGTH * LENGTH];
  int64_t positions[BATCH * LENGTH];
  for (int64_t i = 0; i < batch * length * WIDTH; i++) {
    const int64_t number = (first * length * WIDTH + i) * 37 % 101;
    x[i] = (float)number / 50.0f - 1;
  }
  for (int64_t i = 0; i < batch * length; i++) positions[i] = i % length + 3 * (first + i / length);
  for (int64_t i = 0; i < batch * length * length; i++) mask[i] = i % length > i / length % length ? -1e9f : 0;
  const rung_tensor in[] = {rung_tensor_dense(RUNG_TYPE_F32, 3, (const int64_t[]){batch, length, WIDTH}, x),
                            rung_tensor_dense(RUNG_TYPE_I64, 2, (const int64_t[]){batch, length}, positions),
                            rung_tensor_dense(RUNG_TYPE_F32, 4, (const int64_t[]){batch, 1, length, length}, mask)};
  static const char *const inputs[] = {"x", "positions", "mask"};
  rung_tensor y;
  rung_status status = RUNG_OK;
  for (int i = 0; i < 3 && !status; i++) {
    const int slot = rung_program_find_input(o->program, inputs[i]);
    if (slot >= 0) status = rung_context_bind_input(o->context, slot, &in[i]);
  }
  if (!status) status = rung_context_run(o->context);
  if (!status) status = rung_context_output(o->context, 0, &y);
  if (!status) memcpy(out_y, y.data, (size_t)(batch * length * WIDTH) * sizeof *out_y);
  return status;
}

static int count_ops(const opened *o, const rung_op *op) {
  int n = 0;
  for (uint32_t i = 0; i < o->made->graph->nodes; i++) n += o->made->graph->node[i].op == op;
  return n;
}

static void check_model(const char *name, const struct make_mode *mode) {
  opened o;
  pb want = read_bytes(name, "bin");
  const float *next = (const float *)(const void *)want.data;
  const rung_status status = open_model(&o, name, mode);
  CHECK_OK(status);
  if (status) fprintf(stderr, "%s: %s\n", name, o.error.message);
  if (!status) {
    CHECK_EQ_I64(count_ops(&o, &rung_op_rotate), 2);
    CHECK_EQ_I64(count_ops(&o, &rung_op_attention), 1);
  }
  for (size_t i = 0; i < RUNG_COUNT(sizes) && !status; i++) {
    const int64_t batch = sizes[i][0], length = sizes[i][1], row = length * WIDTH;
    float y[BATCH * LENGTH * WIDTH], alone[LENGTH * WIDTH];
    double off = 0, largest = 0;
    CHECK_OK(run_entries(&o, 0, batch, length, y));
    for (int64_t k = 0; k < batch * row; k++, next++) {
      off = fmax(off, fabs((double)y[k] - (double)*next));
      largest = fmax(largest, fabs((double)*next));
    }
    CHECK(off <= 2e-6 * largest);
    if (!(off <= 2e-6 * largest)) fprintf(stderr, "%s on %s: off by %g of %g\n", name, mode->device, off, largest);
    for (int64_t b = 0; b < batch && strcmp(mode->device, "cpu") == 0; b++) {
      CHECK_OK(run_entries(&o, b, 1, length, alone));
      CHECK(memcmp(alone, y + b * row, (size_t)row * sizeof *y) == 0);
    }
  }
  close_model(&o);
  free(want.data);
}

static void test_models(void) {
  for (size_t i = 0; i < RUNG_COUNT(names); i++)
    for (int mode = 0; mode < MAKE_MODES; mode++) check_model(names[i], &make_modes[mode]);
}

/* What the operators do not take is refused by name. */
static void test_refusals(void) {
  static const struct {
    const char *x, *table, *message;
    int64_t heads, dims;
  } cases[] = {{"1,3,16", "8,3", "the tables turn 6 numbers, rotary_embedding_dim says 4", 2, 4},
               {"1,3,16", "8,3", "num_heads 0", 0, 0},
               {"1,3,16", "8,7", "turn no pairs", 2, 0},
               {"3,16", "8,4", "operands of 2 and 3 axes", 2, 0}};
  static const float numbers[64];
  static const int64_t positions[3] = {0, 1, 2};
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    maker m;
    make_begin(&m, 23);
    make_given(&m, "x", RUNG_TYPE_F32, cases[i].x, numbers);
    make_tensor(&m, "c", RUNG_TYPE_F32, cases[i].table, numbers);
    make_tensor(&m, "s", RUNG_TYPE_F32, cases[i].table, numbers);
    make_tensor(&m, "p", RUNG_TYPE_I64, "1,3", positions);
    make_node(&m, "RotaryEmbedding", "x c s p", "y");
    make_attr_int(&m, "num_heads", cases[i].heads);
    make_attr_int(&m, "rotary_embedding_dim", cases[i].dims);
    make_output(&m, "y");
    CHECK(make_run(&m, 0) != RUNG_OK);
    CHECK(strstr(m.error.message, cases[i].message) != NULL);
    if (!strstr(m.error.message, cases[i].message)) fprintf(stderr, "%s\n", m.error.message);
    make_end(&m);
  }
}

/* Reading and compiling: every allocation fails once. */
static void test_failures(void) {
  for (size_t i = 0; i < RUNG_COUNT(names); i += 3) {
    pb file = read_bytes(names[i], "onnx");
    rung_host *host;
    CHECK_OK(rung_host_create(NULL, NULL, &host));
    rung_device *device;
    CHECK_OK(rung_device_create(host, "cpu", NULL, NULL, &device));
    int64_t n = 1;
    for (bool hit = true; hit; n += test_slow() ? 7 : 1) {
      rung_onnx model = {0};
      rung_template *made = NULL;
      rung_error error;
      const rung_source source = rung_source_memory(file.data, file.size);
      test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = n};
      rung_host_set_fault(host, test_fault_hit, &fault);
      rung_status status = rung_onnx_open(host, &source, NULL, NULL, &error, &model);
      if (!status) status = rung_template_create(device, model.graph, NULL, &error, &made);
      rung_host_set_fault(host, NULL, NULL);
      hit = fault.hit;
      CHECK(status ? hit && (status == RUNG_OUT_OF_MEMORY || status == RUNG_OVERFLOW) : true);
      rung_template_release(made);
      rung_onnx_close(&model);
    }
    printf("%s: %" PRId64 " allocations failed\n", names[i], n - 2);
    rung_device_release(device);
    rung_host_release(host);
    free(file.data);
  }
}

int main(void) {
  RUN(test_models);
  RUN(test_refusals);
  RUN(test_failures);
  return TEST_END();
}
