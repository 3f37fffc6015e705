/* SPDX-License-Identifier: MIT
 * Where the weights of an ONNX file lie, protobuf putting them at any byte: every place gives the same bits; kernels
 * that can read them there do, others get one copy; what is held is what was predicted, while loading as well. */
#define _GNU_SOURCE
#include <rung/program.h>
#include <unistd.h>

#include "../process.h"
#include "make_onnx.h"
#include "runtime/runtime.h"

/* ---- numbers */

static uint32_t state = 1;
static float next(void) {
  state = state * 1664525u + 1013904223u;
  return (float)(int32_t)(state >> 8) * 0x1p-23f - 1;
}
static float *numbers(int64_t n) {
  float *x = malloc((size_t)n * sizeof *x);
  if (!x) abort();
  for (int64_t i = 0; i < n; i++) x[i] = next();
  return x;
}
static void weight(maker *m, const char *name, rung_type type, const char *shape) {
  int64_t extent[RUNG_MAX_RANK], n = 1;
  const int rank = make_shape(shape, extent, NULL);
  for (int i = 0; i < rank; i++) n *= extent[i];
  float *x = numbers(n);
  rung_type_get(type)->from_f32(x, x, (size_t)n); /* in place: no type here is wider */
  make_tensor(m, name, type, shape, x);
  free(x);
}

/* ---- one model with every way of reading weights */

static float *feed_x, *feed_row;
static const int64_t ids[] = {3, 69, 0, 17, 3};

static void conv(maker *m, const char *inputs, const char *output, int64_t groups, int64_t pad) {
  const int64_t pads[4] = {pad, pad, pad, pad};
  make_node(m, "Conv", inputs, output);
  make_attr_int(m, "group", groups);
  make_attr_ints(m, "pads", 4, pads);
  make_output(m, output);
  make_flush(m);
}
static void node(maker *m, const char *op, const char *inputs, const char *output) {
  make_node(m, op, inputs, output);
  make_output(m, output);
}

static void make_gathers(maker *m) {
  weight(m, "table", RUNG_TYPE_F32, "70,33");
  weight(m, "table16", RUNG_TYPE_F16, "70,35");
  node(m, "Gather", "table ids", "rows");
  node(m, "Gather", "table16 ids", "rows16");
}
static void make_products(maker *m) {
  weight(m, "w", RUNG_TYPE_F32, "40,48");
  weight(m, "v", RUNG_TYPE_F32, "24,40");
  weight(m, "left", RUNG_TYPE_F32, "19,5");
  weight(m, "w16", RUNG_TYPE_F16, "40,24");
  node(m, "MatMul", "row w", "product");
  make_node(m, "Gemm", "row v", "turned");
  make_attr_int(m, "transB", 1);
  make_output(m, "turned");
  node(m, "MatMul", "left row", "of_weight");
  make_node(m, "Cast", "w16", "wide");
  make_attr_int(m, "to", 1);
  node(m, "MatMul", "row wide", "widened");
}
static void make_convolutions(maker *m) {
  const int64_t two[2] = {2, 2};
  weight(m, "c3", RUNG_TYPE_F32, "13,16,3,3");
  weight(m, "c1", RUNG_TYPE_F32, "130,16,1,1");
  weight(m, "c1_bias", RUNG_TYPE_F32, "130");
  weight(m, "c9", RUNG_TYPE_F32, "7,16,9,8");
  weight(m, "grouped", RUNG_TYPE_F32, "12,4,3,3");
  weight(m, "depth", RUNG_TYPE_F32, "16,1,5,5");
  weight(m, "up", RUNG_TYPE_F32, "16,6,3,3");
  conv(m, "x c3", "windows", 1, 1);
  conv(m, "x c1 c1_bias", "places", 1, 0);
  conv(m, "x c9", "few", 1, 0);
  conv(m, "x grouped", "groups", 4, 1);
  conv(m, "x depth", "channels", 16, 2);
  make_node(m, "ConvTranspose", "x up", "larger");
  make_attr_ints(m, "strides", 2, two);
  make_output(m, "larger");
}
static void make_others(maker *m) {
  weight(m, "added", RUNG_TYPE_F32, "5,40");
  weight(m, "more", RUNG_TYPE_F32, "3,40");
  node(m, "Add", "row added", "sum");
  make_node(m, "Concat", "more row", "joined");
  make_attr_int(m, "axis", 0);
  make_output(m, "joined");
  node(m, "Sin", "added", "sine"); /* of weights alone: computed once */
}
static void begin(maker *m) {
  make_begin(m, 17);
  make_given(m, "ids", RUNG_TYPE_I64, "5", ids);
  make_given(m, "row", RUNG_TYPE_F32, "5,40", feed_row);
  make_given(m, "x", RUNG_TYPE_F32, "1,16,9,8", feed_x);
  state = 7;
}

/* All results one behind the other. */
static pb results(const maker *m) {
  pb all = {0};
  for (int i = 0; i < m->results; i++) {
    const rung_tensor *t = &m->result[i].tensor;
    uint64_t n = 1;
    for (int d = 0; d < t->rank; d++) n *= (uint64_t)t->extent[d];
    pb_raw(&all, t->data, rung_type_bytes(t->type, n));
  }
  return all;
}

static void check_places(void make(maker *)) {
  maker m;
  begin(&m);
  make(&m);
  pb file = make_file(&m);
  for (int mode = 0; mode < MAKE_MODES; mode++) {
    pb first = {0};
    for (size_t at = 0; at < 8; at++) {
      uint8_t *room = aligned_alloc(64, (file.size + 8 + 63) / 64 * 64);
      if (!room) abort();
      memcpy(room + at, file.data, file.size);
      CHECK_STATUS(make_run_bytes(&m, mode, room + at, file.size), RUNG_OK);
      if (m.error.status) fprintf(stderr, "  %s\n", m.error.message);
      free(room);
      pb now = results(&m);
      if (at == 0) {
        first = now;
        CHECK(first.size > 0);
        continue;
      }
      CHECK(now.size == first.size && memcmp(now.data, first.data, now.size) == 0);
      free(now.data);
    }
    free(first.data);
  }
  free(file.data);
  make_end(&m);
}

static void test_gathers(void) { check_places(make_gathers); }
static void test_products(void) { check_places(make_products); }
static void test_convolutions(void) { check_places(make_convolutions); }
static void test_others(void) { check_places(make_others); }

/* ---- memory */

enum { ROWS = 40000, WIDTH = 96 }; /* of a table of 15 MB */

/* A table to gather from, one to add, both larger than what is copied for its pages' sake; a product. */
static void make_large(maker *m) {
  make_begin(m, 17);
  make_given(m, "ids", RUNG_TYPE_I64, "5", ids);
  make_given(m, "row", RUNG_TYPE_F32, "5,40", feed_row);
  state = 9;
  weight(m, "table", RUNG_TYPE_F32, "40000,96");
  weight(m, "added", RUNG_TYPE_F32, "200,96");
  weight(m, "w", RUNG_TYPE_F32, "96,600");
  weight(m, "bias", RUNG_TYPE_F32, "600");
  node(m, "Gather", "table ids", "rows");
  make_node(m, "Unsqueeze", "rows one", "apart");
  make_i64(m, "one", 1, (int64_t[]){1});
  node(m, "Add", "apart added", "sum");
  make_node(m, "MatMul", "sum w", "product");
  node(m, "Add", "product bias", "out");
}

static const char *path(void) {
  static char text[512];
  snprintf(text, sizeof text, "%s/test_onnx_places.onnx", RUNG_BINARY_DIR);
  return text;
}
/* With a text in front, so that what follows lies `shift` bytes further. */
static bool write_file(maker *m, size_t shift) {
  char front[16];
  memset(front, 'x', sizeof front);
  pb doc = {0}, file = make_file(m);
  pb_bytes(&doc, 6, front, shift);
  FILE *f = fopen(path(), "wb");
  const bool done =
      f && fwrite(doc.data, 1, doc.size, f) == doc.size && fwrite(file.data, 1, file.size, f) == file.size;
  if (f && fclose(f)) return false;
  free(doc.data);
  free(file.data);
  return done;
}

typedef struct opened {
  rung_host *host;
  rung_device *device;
  rung_onnx model;
  rung_template *template_;
  rung_program *program;
  rung_view *view;
  rung_context *context;
  rung_error error;
} opened;

static rung_status open_all(opened *o) {
  *o = (opened){0};
  const rung_source source = rung_source_path(path());
  RUNG_TRY(rung_host_create(NULL, &o->error, &o->host));
  RUNG_TRY(rung_device_create(o->host, "cpu", NULL, &o->error, &o->device));
  RUNG_TRY(rung_onnx_open(o->host, &source, NULL, NULL, &o->error, &o->model));
  RUNG_TRY(rung_template_create(o->device, o->model.graph, NULL, &o->error, &o->template_));
  RUNG_TRY(rung_program_create(o->template_, NULL, 0, &o->error, &o->program));
  RUNG_TRY(rung_view_create(o->model.weights, &o->error, &o->view));
  return rung_context_create(o->template_, o->view, NULL, NULL, &o->error, &o->context);
}
static void close_all(opened *o) {
  rung_context_destroy(o->context);
  rung_view_release(o->view);
  rung_program_release(o->program);
  rung_template_release(o->template_);
  rung_onnx_close(&o->model);
  rung_device_release(o->device);
  rung_host_release(o->host);
}
static rung_status run(opened *o, maker *m) {
  RUNG_TRY(rung_context_use(o->context, o->program));
  for (int i = 0; i < m->feeds; i++) {
    const int slot = rung_program_find_input(o->program, m->feed[i].name);
    if (slot >= 0) RUNG_TRY(rung_context_bind_input(o->context, slot, &m->feed[i].tensor));
  }
  return rung_context_run(o->context);
}

/* Which weights have a copy. */
static bool has_copy(const opened *o, const char *name) {
  for (const rung_pinned *p = o->view->derived->pinned; p; p = p->next)
    if (strcmp(p->value->entry->name, name) == 0) return p->copy != NULL;
  fprintf(stderr, "  %s is not read as it lies\n", name);
  return false;
}

static void test_memory(void) {
  maker m;
  make_large(&m);
  pb first = {0};
  for (size_t shift = 0; shift < 5; shift++) {
    opened o;
    CHECK(write_file(&m, shift));
    CHECK_OK(open_all(&o));
    rung_memory predicted;
    CHECK_OK(rung_program_memory(o.program, NULL, 0, NULL, &o.error, &predicted));
    const uint64_t before = process_bytes("RssFile");
    CHECK_OK(rung_context_use(o.context, o.program));
    const uint64_t after = process_bytes("RssFile");
    const rung_memory loaded = rung_host_memory(o.host);
    CHECK_EQ_I64(loaded.load, 0);
    CHECK(rung_host_peak(o.host) <= predicted.weights + predicted.packed + predicted.load);
    CHECK_OK(run(&o, &m));
    const rung_memory held = rung_host_memory(o.host);
    CHECK_EQ_I64(held.weights, predicted.weights);
    CHECK_EQ_I64(held.packed, predicted.packed);
    CHECK_EQ_I64(held.activations, predicted.activations);
    CHECK_EQ_I64(held.scratch, predicted.scratch);
    /* Read in place: nothing of the table is in memory but the pages of rows that were asked for. */
    CHECK(!has_copy(&o, "table"));
    uint64_t copied = 0;
    for (const rung_pinned *p = o.view->derived->pinned; p; p = p->next) copied += p->copy ? p->value->entry->bytes : 0;
    CHECK_EQ_I64(rung_view_copied(o.view, o.program), copied);
    CHECK(after <= before + (1 << 20) || test_slow());
    maker taken = {0};
    CHECK_OK(make_take_results(&taken, o.context, o.program));
    pb now = results(&taken);
    if (shift == 0) first = now;
    CHECK(now.size == first.size && memcmp(now.data, first.data, now.size) == 0);
    if (shift) free(now.data);
    make_forget(&taken);
    close_all(&o);
  }
  free(first.data);
  make_end(&m);
  unlink(path());
}

/* The table that is added is copied where it lies badly and left alone where it lies well; four places in a row hold
 * each once. */
static void test_copies(void) {
  maker m;
  int well = 0;
  make_large(&m);
  for (size_t shift = 1; shift < 5; shift++) {
    opened o;
    CHECK(write_file(&m, shift));
    CHECK_OK(open_all(&o));
    CHECK_OK(rung_context_use(o.context, o.program));
    const rung_tensor_entry *entry = rung_weights_find(o.model.weights, "added");
    const bool lies = entry->offset % sizeof(float) == 0;
    CHECK_EQ_I64(has_copy(&o, "added"), !lies);
    well += lies;
    close_all(&o);
  }
  CHECK_EQ_I64(well, 1);
  make_end(&m);
  unlink(path());
}

/* In a file beside the model: the same places, the same bits. */
static void test_beside(void) {
  char beside[512];
  snprintf(beside, sizeof beside, "%s/test_onnx_places.bin", RUNG_BINARY_DIR);
  float *table = numbers(1000 * 96);
  pb first = {0};
  for (size_t shift = 0; shift < 8; shift++) {
    char offset[8];
    snprintf(offset, sizeof offset, "%zu", shift);
    const char *const pair[][2] = {{"location", "test_onnx_places.bin"}, {"offset", offset}, {"length", "384000"}};
    maker m;
    make_begin(&m, 17);
    make_given(&m, "ids", RUNG_TYPE_I64, "5", ids);
    pb tensor = make_tensor_message("table", RUNG_TYPE_F32, "1000,96", NULL);
    for (size_t i = 0; i < RUNG_COUNT(pair); i++) {
      pb entry = {0};
      pb_text(&entry, 1, pair[i][0]);
      pb_text(&entry, 2, pair[i][1]);
      pb_take(&tensor, 13, &entry);
    }
    pb_int(&tensor, 14, 1);
    pb_take(&m.graph, 5, &tensor);
    node(&m, "Gather", "table ids", "rows");
    FILE *f = fopen(beside, "wb");
    CHECK(f && fwrite("........", 1, shift, f) == shift && fwrite(table, 4, 1000 * 96, f) == 1000 * 96);
    if (f) fclose(f);
    opened o;
    CHECK(write_file(&m, 0));
    CHECK_OK(open_all(&o));
    CHECK_OK(run(&o, &m));
    CHECK(!has_copy(&o, "table"));
    maker taken = {0};
    CHECK_OK(make_take_results(&taken, o.context, o.program));
    pb now = results(&taken);
    if (shift == 0) first = now;
    CHECK(now.size == 5 * 96 * 4 && memcmp(now.data, first.data, now.size) == 0);
    if (shift) free(now.data);
    make_forget(&taken);
    close_all(&o);
    make_end(&m);
  }
  CHECK(first.size && memcmp(first.data, table + 3 * 96, 96 * 4) == 0);
  free(first.data);
  free(table);
  unlink(beside);
  unlink(path());
}

/* Binding the weights with the n-th allocation or commit failing: refused, nothing left, and the next time it works. */
static void test_failures(void) {
  static const rung_fault kinds[] = {RUNG_FAULT_ALLOC, RUNG_FAULT_COMMIT};
  maker m;
  make_large(&m);
  CHECK(write_file(&m, 1));
  opened o;
  CHECK_OK(open_all(&o));
  for (size_t k = 0; k < RUNG_COUNT(kinds); k++) {
    bool hit = true;
    for (int64_t at = 1; hit && at < 1000; at++) {
      rung_context *context = NULL;
      CHECK_OK(rung_context_create(o.template_, o.view, NULL, NULL, &o.error, &context));
      const rung_memory before = rung_host_memory(o.host);
      test_fault f = {.kind = kinds[k], .at = at};
      rung_host_set_fault(o.host, test_fault_hit, &f);
      const rung_status status = rung_context_use(context, o.program);
      rung_host_set_fault(o.host, NULL, NULL);
      hit = f.hit;
      CHECK_STATUS(status, hit ? RUNG_OUT_OF_MEMORY : RUNG_OK);
      if (hit) CHECK_EQ_I64(rung_host_memory(o.host).load, before.load);
      if (hit) CHECK_OK(rung_context_use(context, o.program));
      rung_context_destroy(context);
      rung_view_trim(o.view);
    }
    CHECK(!hit);
  }
  close_all(&o);
  make_end(&m);
  unlink(path());
}

int main(void) {
  feed_x = numbers(16 * 9 * 8);
  feed_row = numbers(5 * 40);
  RUN(test_gathers);
  RUN(test_products);
  RUN(test_convolutions);
  RUN(test_others);
  RUN(test_memory);
  RUN(test_copies);
  RUN(test_beside);
  RUN(test_failures);
  free(feed_x);
  free(feed_row);
  return TEST_END();
}
