/* SPDX-License-Identifier: MIT
 * The ONNX reader and importer: numbers against onnx's reference evaluator, damaged files, external data, refusals,
 * failing allocations. Models and numbers are written by scripts/oracle/make_onnx.py. */
#define _GNU_SOURCE
#include <math.h>
#include <rung/rung.h>

#include "formats/onnx/onnx.h"
#include "ir/graph.h"
#include "test.h"

static rung_host *host;
static rung_device *device;
static const char *const names[] = {"branches",  "loop",       "scan",    "shapes",    "function",  "net",
                                    "sizes",     "types",      "contrib", "masked",    "quantised", "quantised_lstm",
                                    "recurrent", "arithmetic", "windows", "functions", "growing"};

typedef struct bytes {
  uint8_t *data;
  size_t size;
} bytes;

static bytes read_file(const char *path) {
  bytes b = {0};
  FILE *f = fopen(path, "rb");
  if (!f) return b;
  fseek(f, 0, SEEK_END);
  b.size = (size_t)ftell(f);
  rewind(f);
  b.data = malloc(b.size + 1);
  if (fread(b.data, 1, b.size, f) != b.size) abort();
  b.data[b.size] = 0;
  fclose(f);
  return b;
}
static bytes model_named(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/fuzz/corpus/fuzz_onnx/%s.onnx", RUNG_SOURCE_DIR, name);
  bytes b = read_file(path);
  CHECK(b.data != NULL);
  return b;
}
static rung_status open_bytes(bytes b, rung_error *error, rung_onnx *out) {
  const rung_source source = rung_source_memory(b.data, b.size);
  *error = (rung_error){RUNG_OK, ""};
  return rung_onnx_open(host, &source, NULL, NULL, error, out);
}

/* ---- numbers */

static void fill(void *data, rung_type type, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (type == RUNG_TYPE_F32) ((float *)data)[i] = (float)i / 4;
    if (type == RUNG_TYPE_F64) ((double *)data)[i] = (double)i / 4;
    if (type == RUNG_TYPE_I64) ((int64_t *)data)[i] = i;
  }
}

static double number_at(const rung_tensor *t, int64_t i) {
  return t->type == RUNG_TYPE_F32 ? (double)((const float *)t->data)[i] : ((const double *)t->data)[i];
}

static void compare_outputs(rung_context *context, rung_program *program, char *text) {
  const char *given = strstr(text, "tolerance ");
  const double tolerance = given ? strtod(given + 10, NULL) : 1e-5;
  for (char *line = strstr(text, "output "); line; line = strstr(line, "output ")) {
    char name[64], shape[64], have[64] = "";
    if (sscanf(line, "output %63s %63s", name, shape) != 2) break;
    rung_tensor t;
    const int slot = rung_program_find_output(program, name);
    CHECK(slot >= 0);
    CHECK_OK(rung_context_output(context, slot, &t));
    int64_t n = 1;
    for (int d = 0; d < t.rank; d++) {
      n *= t.extent[d];
      snprintf(have + strlen(have), sizeof have - strlen(have), "%s%" PRId64, d ? "," : "", t.extent[d]);
    }
    CHECK_STR(have, shape);
    char *p = strchr(line, '\n');
    for (int64_t i = 0; p && i < n && strcmp(have, shape) == 0; i++) {
      char *end;
      const double want = strtod(p, &end);
      const bool near = end != p && fabs(number_at(&t, i) - want) <= tolerance * fmax(1, fabs(want));
      CHECK(near);
      if (!near) fprintf(stderr, "  %s[%d] is %g, not %g\n", name, (int)i, number_at(&t, i), want);
      p = end;
    }
    line += 7;
  }
}

static void run_named(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/formats/data/onnx/%s.txt", RUNG_SOURCE_DIR, name);
  bytes text = read_file(path), b = model_named(name);
  rung_error error;
  rung_onnx model = {0};
  rung_template *made = NULL;
  rung_program *program = NULL;
  rung_view *view = NULL;
  rung_context *context = NULL;
  CHECK(text.data != NULL);
  CHECK_OK(open_bytes(b, &error, &model));
  if (!model.graph) {
    fprintf(stderr, "%s: %s\n", name, error.message);
    free(text.data);
    free(b.data);
    return;
  }
  rung_binding ceiling[8];
  size_t n = 0;
  char symbols[8][16];
  for (char *line = strstr((char *)text.data, "bind "); line && n < 8; line = strstr(line + 5, "bind "), n++) {
    long long value;
    CHECK(sscanf(line, "bind %15s %lld", symbols[n], &value) == 2);
    ceiling[n] = (rung_binding){symbols[n], value};
  }
  CHECK_OK(rung_template_create(device, model.graph, NULL, &error, &made));
  CHECK_OK(rung_program_create(made, ceiling, n, &error, &program));
  CHECK_OK(rung_view_create(model.weights, &error, &view));
  CHECK_OK(rung_context_create(made, view, NULL, NULL, &error, &context));
  CHECK_OK(rung_context_use(context, program));
  for (int i = 0; i < rung_program_inputs(program); i++) {
    int64_t extent[RUNG_MAX_RANK], count = 1;
    const uint32_t value = model.graph->node[model.graph->input[i]].first_value;
    const rung_value_type *type = rung_graph_value_type(model.graph, value);
    for (int d = 0; d < type->rank; d++) {
      const rung_dim_node *dim = &model.graph->dims->node[type->extent[d].id];
      extent[d] = dim->value;
      for (size_t k = 0; dim->kind == RUNG_DIM_KIND_SYMBOL && k < n; k++)
        if (strcmp(ceiling[k].symbol, model.graph->dims->symbol[dim->symbol].name) == 0) extent[d] = ceiling[k].value;
      count *= extent[d];
    }
    void *data;
    CHECK_OK(rung_context_input(context, i, extent, &data));
    fill(data, type->type, count);
  }
  CHECK_OK(rung_context_run(context));
  compare_outputs(context, program, (char *)text.data);
  rung_context_destroy(context);
  rung_view_release(view);
  rung_program_release(program);
  rung_template_release(made);
  rung_onnx_close(&model);
  free(text.data);
  free(b.data);
}
static void test_numbers(void) {
  for (size_t i = 0; i < RUNG_COUNT(names); i++) {
    const int64_t before = test_state.failed;
    run_named(names[i]);
    if (test_state.failed != before) fprintf(stderr, "  in %s\n", names[i]);
  }
}

/* ---- damage: every prefix and every flipped byte is refused with a message, or opens */

static void try_bytes(bytes b) {
  rung_error error;
  rung_onnx model = {0};
  if (open_bytes(b, &error, &model))
    CHECK(error.message[0] != 0);
  else
    CHECK_OK(rung_graph_verify(model.graph, &error));
  rung_onnx_close(&model);
}
static void test_damage(void) {
  for (size_t i = 0; i < RUNG_COUNT(names); i++) {
    bytes b = model_named(names[i]);
    for (size_t cut = 0; cut < b.size; cut++) try_bytes((bytes){b.data, cut});
    const size_t step = test_slow() ? 7 : 1;
    for (size_t at = 0; at < b.size; at += step) {
      const uint8_t old = b.data[at];
      b.data[at] = (uint8_t)~old;
      try_bytes(b);
      b.data[at] = old ^ 1;
      try_bytes(b);
      b.data[at] = old;
    }
    free(b.data);
  }
}

static void test_endless_numbers(void) {
  uint8_t data[64];
  rung_error error;
  rung_onnx model;
  memset(data, 0xFF, sizeof data);
  CHECK_STATUS(open_bytes((bytes){data, sizeof data}, &error, &model), RUNG_CORRUPT_FILE);
  const uint8_t past_the_end[] = {0x08, 0x09, 0x3A, 0xFF, 0x7F};
  CHECK_STATUS(open_bytes((bytes){(uint8_t *)(uintptr_t)past_the_end, sizeof past_the_end}, &error, &model),
               RUNG_CORRUPT_FILE);
  CHECK(strstr(error.message, "offset") != NULL);
}

/* ---- memory: each allocation failing in turn gives a status, and leaves nothing behind */

typedef struct failing {
  int64_t left;
} failing;
static bool fail_at(void *self, rung_fault kind) {
  failing *f = self;
  return kind == RUNG_FAULT_ALLOC && f->left-- == 0;
}
static void test_memory(void) {
  for (size_t i = 0; i < RUNG_COUNT(names); i++) {
    bytes b = model_named(names[i]);
    rung_status status = RUNG_OUT_OF_MEMORY;
    for (int64_t n = 0; status && n < 5000; n++) {
      failing f = {n};
      rung_error error;
      rung_onnx model = {0};
      rung_host_set_fault(host, fail_at, &f);
      status = open_bytes(b, &error, &model);
      rung_host_set_fault(host, NULL, NULL);
      if (status) CHECK_STATUS(status, RUNG_OUT_OF_MEMORY);
      if (status && status != RUNG_OUT_OF_MEMORY) fprintf(stderr, "  %s: %s\n", names[i], error.message);
      rung_onnx_close(&model);
    }
    CHECK_OK(status);
    free(b.data);
  }
}

int main(void) {
  rung_error error;
  if (rung_host_create(NULL, &error, &host) || rung_device_create(host, "cpu", NULL, &error, &device)) return 1;
  RUN(test_numbers);
  RUN(test_damage);
  RUN(test_endless_numbers);
  RUN(test_memory);
  rung_device_release(device);
  rung_host_release(host);
  return TEST_END();
}
