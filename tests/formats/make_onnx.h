/* SPDX-License-Identifier: MIT
 * Small ONNX models written by a test, and run: a protobuf writer, a model that is put together call by call, and one
 * call that opens, compiles and runs it on every device and instruction set in turn. */
#ifndef RUNG_TESTS_FORMATS_MAKE_ONNX_H
#define RUNG_TESTS_FORMATS_MAKE_ONNX_H

#include <math.h>
#include <rung/rung.h>

#include "../test.h"
#include "formats/onnx/onnx.h"

/* ---- protobuf */

typedef struct pb {
  uint8_t *data;
  size_t size, room;
} pb;
static inline void pb_raw(pb *p, const void *data, size_t bytes) {
  if (p->room - p->size < bytes) {
    p->room = 2 * (p->size + bytes) + 64;
    p->data = realloc(p->data, p->room);
    if (!p->data) abort();
  }
  if (bytes) memcpy(p->data + p->size, data, bytes);
  p->size += bytes;
}
static inline void pb_varint(pb *p, uint64_t value) {
  uint8_t byte;
  do {
    byte = (uint8_t)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
    pb_raw(p, &byte, 1);
  } while (value >>= 7);
}
static inline void pb_int(pb *p, unsigned field, int64_t value) {
  pb_varint(p, field << 3);
  pb_varint(p, (uint64_t)value);
}
static inline void pb_float(pb *p, unsigned field, float value) {
  pb_varint(p, field << 3 | 5);
  pb_raw(p, &value, 4);
}
static inline void pb_bytes(pb *p, unsigned field, const void *data, size_t bytes) {
  pb_varint(p, field << 3 | 2);
  pb_varint(p, bytes);
  pb_raw(p, data, bytes);
}
static inline void pb_text(pb *p, unsigned field, const char *text) { pb_bytes(p, field, text, strlen(text)); }
/* A message inside; it is used up. */
static inline void pb_take(pb *p, unsigned field, pb *inner) {
  pb_bytes(p, field, inner->data, inner->size);
  free(inner->data);
  *inner = (pb){0};
}

/* ---- a model */

enum { MAKE_MOST = 16 };
typedef struct maker {
  pb graph, node; /* node: the one that attributes go to */
  int64_t opset;
  struct {
    char name[32];
    rung_tensor tensor;
  } feed[MAKE_MOST], result[MAKE_MOST];
  int feeds, results;
  rung_error error;
} maker;

static inline int64_t make_type(rung_type type) {
  switch (type) {
    case RUNG_TYPE_F32:
      return 1;
    case RUNG_TYPE_U8:
      return 2;
    case RUNG_TYPE_I8:
      return 3;
    case RUNG_TYPE_I32:
      return 6;
    case RUNG_TYPE_I64:
      return 7;
    case RUNG_TYPE_BOOL:
      return 9;
    case RUNG_TYPE_F16:
      return 10;
    case RUNG_TYPE_F64:
      return 11;
    default:
      return 0;
  }
}
/* "2,n,3": numbers and names, "" for a scalar. */
static inline int make_shape(const char *text, int64_t extent[RUNG_MAX_RANK], char name[RUNG_MAX_RANK][16]) {
  int rank = 0;
  for (const char *p = text; *p && rank < RUNG_MAX_RANK; rank++) {
    char part[16] = "";
    size_t n = strcspn(p, ",");
    if (n > 15) n = 15;
    memcpy(part, p, n);
    char *end;
    extent[rank] = strtoll(part, &end, 10);
    if (name) snprintf(name[rank], 16, "%s", *end ? part : "");
    p += n;
    if (*p == ',') p++;
  }
  return rank;
}
static inline void make_begin(maker *m, int64_t opset) { *m = (maker){.opset = opset}; }
static inline void make_flush(maker *m) {
  if (m->node.size) pb_take(&m->graph, 1, &m->node);
}
static inline pb make_value(const char *name, rung_type type, const char *shape) {
  int64_t extent[RUNG_MAX_RANK];
  char symbol[RUNG_MAX_RANK][16];
  pb dims = {0}, tensor = {0}, kind = {0}, value = {0};
  const int rank = make_shape(shape, extent, symbol);
  for (int i = 0; i < rank; i++) {
    pb dim = {0};
    if (symbol[i][0])
      pb_text(&dim, 2, symbol[i]);
    else
      pb_int(&dim, 1, extent[i]);
    pb_take(&dims, 1, &dim);
  }
  pb_int(&tensor, 1, make_type(type));
  pb_take(&tensor, 2, &dims);
  pb_take(&kind, 1, &tensor);
  pb_text(&value, 1, name);
  pb_take(&value, 2, &kind);
  return value;
}
static inline void make_input(maker *m, const char *name, rung_type type, const char *shape) {
  pb value = make_value(name, type, shape);
  pb_take(&m->graph, 11, &value);
}
/* Numbers for an input; they are not copied. */
static inline void make_feed(maker *m, const char *name, rung_type type, const char *shape, const void *data) {
  int64_t extent[RUNG_MAX_RANK];
  const int rank = make_shape(shape, extent, NULL);
  int i = 0;
  while (i < m->feeds && strcmp(m->feed[i].name, name) != 0) i++;
  if (i == m->feeds) m->feeds++;
  snprintf(m->feed[i].name, sizeof m->feed[i].name, "%s", name);
  m->feed[i].tensor = rung_tensor_dense(type, rank, extent, (void *)(uintptr_t)data);
}
/* Both: an input of just this shape. */
static inline void make_given(maker *m, const char *name, rung_type type, const char *shape, const void *data) {
  make_input(m, name, type, shape);
  make_feed(m, name, type, shape, data);
}
static inline pb make_tensor_message(const char *name, rung_type type, const char *shape, const void *data) {
  int64_t extent[RUNG_MAX_RANK], n = 1;
  pb tensor = {0};
  const int rank = make_shape(shape, extent, NULL);
  for (int i = 0; i < rank; i++) {
    pb_int(&tensor, 1, extent[i]);
    n *= extent[i];
  }
  pb_int(&tensor, 2, make_type(type));
  pb_text(&tensor, 8, name);
  if (data) pb_bytes(&tensor, 9, data, rung_type_bytes(type, (uint64_t)n));
  return tensor;
}
static inline void make_tensor(maker *m, const char *name, rung_type type, const char *shape, const void *data) {
  pb tensor = make_tensor_message(name, type, shape, data);
  pb_take(&m->graph, 5, &tensor);
}
static inline void make_i64(maker *m, const char *name, int64_t n, const int64_t *value) {
  char shape[16];
  snprintf(shape, sizeof shape, "%d", (int)n);
  make_tensor(m, name, RUNG_TYPE_I64, shape, value);
}
static inline void make_f32(maker *m, const char *name, float value) {
  make_tensor(m, name, RUNG_TYPE_F32, "", &value);
}

static inline void make_names(pb *p, unsigned field, const char *names) {
  while (*names) {
    const size_t n = strcspn(names, " ");
    if (n == 1 && *names == '-')
      pb_bytes(p, field, "", 0); /* left out */
    else
      pb_bytes(p, field, names, n);
    names += n + (names[n] == ' ');
  }
}
/* Names with blanks between them; "-": left out. Attributes that follow are the node's. */
static inline void make_node(maker *m, const char *op, const char *inputs, const char *outputs) {
  make_flush(m);
  make_names(&m->node, 1, inputs);
  make_names(&m->node, 2, outputs);
  pb_text(&m->node, 4, op);
}
static inline void make_attr_int(maker *m, const char *name, int64_t value) {
  pb a = {0};
  pb_text(&a, 1, name);
  pb_int(&a, 3, value);
  pb_int(&a, 20, 2);
  pb_take(&m->node, 5, &a);
}
static inline void make_attr_ints(maker *m, const char *name, int n, const int64_t *value) {
  pb a = {0};
  pb_text(&a, 1, name);
  for (int i = 0; i < n; i++) pb_int(&a, 8, value[i]);
  pb_int(&a, 20, 7);
  pb_take(&m->node, 5, &a);
}
static inline void make_attr_text(maker *m, const char *name, const char *value) {
  pb a = {0};
  pb_text(&a, 1, name);
  pb_text(&a, 4, value);
  pb_int(&a, 20, 3);
  pb_take(&m->node, 5, &a);
}
static inline void make_attr_graph(maker *m, const char *name, pb *graph) {
  pb a = {0};
  pb_text(&a, 1, name);
  pb_take(&a, 6, graph);
  pb_int(&a, 20, 5);
  pb_take(&m->node, 5, &a);
}
static inline void make_output(maker *m, const char *name) {
  pb value = {0};
  make_flush(m);
  pb_text(&value, 1, name);
  pb_take(&m->graph, 12, &value);
}
/* The bytes of the whole model; the maker's graph stays as it is. */
static inline pb make_file(maker *m) {
  pb model = {0}, opset = {0};
  make_flush(m);
  pb_int(&model, 1, 9);
  pb_text(&opset, 1, "");
  pb_int(&opset, 2, m->opset);
  pb_bytes(&model, 7, m->graph.data, m->graph.size);
  pb_take(&model, 8, &opset);
  return model;
}

/* ---- running */

static const struct make_mode {
  const char *device, *isa;
} make_modes[] = {{"ref", NULL}, {"cpu", "base"}, {"cpu", "avx2"}, {"cpu", NULL}};
enum { MAKE_MODES = 4 };

static inline void make_forget(maker *m) {
  for (int i = 0; i < m->results; i++) free(m->result[i].tensor.data);
  m->results = 0;
}
static inline void make_end(maker *m) {
  make_forget(m);
  free(m->graph.data);
  free(m->node.data);
  *m = (maker){0};
}

static inline rung_status make_take_results(maker *m, rung_context *context, rung_program *program) {
  for (int i = 0; i < rung_program_outputs(program) && i < MAKE_MOST; i++) {
    rung_tensor t;
    const rung_status status = rung_context_output(context, i, &t);
    if (status) return status;
    uint64_t n = 1;
    for (int d = 0; d < t.rank; d++) n *= (uint64_t)t.extent[d];
    const size_t bytes = rung_type_bytes(t.type, n);
    void *copy = malloc(bytes + 1);
    if (!copy) abort();
    if (bytes) memcpy(copy, t.data, bytes);
    snprintf(m->result[i].name, sizeof m->result[i].name, "%s", rung_program_output_name(program, i));
    m->result[i].tensor = rung_tensor_dense(t.type, t.rank, t.extent, copy);
    m->results = i + 1;
  }
  return RUNG_OK;
}

static inline rung_status make_run_opened(maker *m, rung_device *device, const rung_onnx *model) {
  rung_template *made = NULL;
  rung_program *program = NULL;
  rung_view *view = NULL;
  rung_context *context = NULL;
  rung_status status = rung_template_create(device, model->graph, NULL, &m->error, &made);
  if (!status) status = rung_program_create(made, NULL, 0, &m->error, &program);
  if (!status) status = rung_view_create(model->weights, &m->error, &view);
  if (!status) status = rung_context_create(made, view, NULL, NULL, &m->error, &context);
  const bool compiled = !status;
  if (!status) status = rung_context_use(context, program);
  for (int i = 0; !status && i < m->feeds; i++) {
    const int slot = rung_program_find_input(program, m->feed[i].name);
    if (slot >= 0) status = rung_context_bind_input(context, slot, &m->feed[i].tensor);
  }
  if (!status) status = rung_context_run(context);
  if (!status) status = make_take_results(m, context, program);
  if (status && compiled) snprintf(m->error.message, sizeof m->error.message, "%s", rung_context_message(context));
  rung_context_destroy(context);
  rung_view_release(view);
  rung_program_release(program);
  rung_template_release(made);
  return status;
}

/* Opens, compiles and runs the bytes of a model on one of make_modes. Results are in m->result, the message of a refusal
 * in m->error. */
static inline rung_status make_run_bytes(maker *m, int mode, const uint8_t *data, size_t bytes) {
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_onnx model = {0};
  m->error = (rung_error){RUNG_OK, ""};
  make_forget(m);
  if (make_modes[mode].isa) setenv("RUNG_MAX_ISA", make_modes[mode].isa, 1);
  rung_status status = rung_host_create(NULL, &m->error, &host);
  if (!status) status = rung_device_create(host, make_modes[mode].device, NULL, &m->error, &device);
  unsetenv("RUNG_MAX_ISA");
  const rung_source source = rung_source_memory(data, bytes);
  if (!status) status = rung_onnx_open(host, &source, NULL, NULL, &m->error, &model);
  if (!status) status = make_run_opened(m, device, &model);
  rung_onnx_close(&model);
  rung_device_release(device);
  rung_host_release(host);
  return status;
}
static inline rung_status make_run(maker *m, int mode) {
  pb file = make_file(m);
  const rung_status status = make_run_bytes(m, mode, file.data, file.size);
  free(file.data);
  return status;
}

static inline bool make_same_shape(const rung_tensor *t, const char *shape) {
  int64_t extent[RUNG_MAX_RANK];
  const int rank = make_shape(shape, extent, NULL);
  bool same = rank == t->rank;
  for (int i = 0; same && i < rank; i++) same = extent[i] == t->extent[i];
  return same;
}
static inline double make_number(const rung_tensor *t, int64_t i) {
  switch (t->type) {
    case RUNG_TYPE_F32:
      return (double)((const float *)t->data)[i];
    case RUNG_TYPE_F64:
      return ((const double *)t->data)[i];
    case RUNG_TYPE_I64:
      return (double)((const int64_t *)t->data)[i];
    case RUNG_TYPE_I32:
      return (double)((const int32_t *)t->data)[i];
    case RUNG_TYPE_I8:
      return (double)((const int8_t *)t->data)[i];
    case RUNG_TYPE_U8:
    case RUNG_TYPE_BOOL:
      return (double)((const uint8_t *)t->data)[i];
    default:
      return (double)NAN;
  }
}
/* Does it run in every mode, with result `index` of this shape and these numbers (NaN equals NaN)? */
static inline void make_expect(maker *m, int index, const char *shape, const double *want, const char *file, int line) {
  for (int mode = 0; mode < MAKE_MODES; mode++) {
    const char *where = make_modes[mode].isa ? make_modes[mode].isa : make_modes[mode].device;
    const rung_status status = make_run(m, mode);
    test_state.checks++;
    if (status || index >= m->results) {
      if (++test_state.failed <= 20) fprintf(stderr, "%s:%d: %s: %s\n", file, line, where, m->error.message);
      continue;
    }
    const rung_tensor *t = &m->result[index].tensor;
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++) n *= t->extent[d];
    bool good = make_same_shape(t, shape);
    if (!good && ++test_state.failed <= 20) {
      fprintf(stderr, "%s:%d: %s: [", file, line, where);
      for (int d = 0; d < t->rank; d++) fprintf(stderr, "%s%" PRId64, d ? "," : "", t->extent[d]);
      fprintf(stderr, "] instead of [%s]\n", shape);
    }
    for (int64_t i = 0; good && i < n; i++) {
      const double x = make_number(t, i);
      test_state.checks++;
      if (x == want[i] || (isnan(x) && isnan(want[i]))) continue;
      good = false;
      if (++test_state.failed <= 20)
        fprintf(stderr, "%s:%d: %s: [%" PRId64 "] is %.9g instead of %.9g\n", file, line, where, i, x, want[i]);
    }
  }
}
/* Is it refused in every mode, with a message that holds `part`? */
static inline void make_refused(maker *m, const char *part, const char *file, int line) {
  for (int mode = 0; mode < MAKE_MODES; mode++) {
    const char *where = make_modes[mode].isa ? make_modes[mode].isa : make_modes[mode].device;
    const rung_status status = make_run(m, mode);
    test_state.checks++;
    if (status && status != RUNG_OUT_OF_MEMORY && strstr(m->error.message, part)) continue;
    if (++test_state.failed <= 20)
      fprintf(stderr, "%s:%d: %s: %s: \"%s\" holds no \"%s\"\n", file, line, where, rung_status_name(status),
              m->error.message, part);
  }
}
/* The last argument: the numbers, as a braced list. */
#define EXPECT(m, index, shape, ...) make_expect(m, index, shape, (const double[]){__VA_ARGS__}, __FILE__, __LINE__)
#define REFUSED(m, part) make_refused(m, part, __FILE__, __LINE__)

#endif
