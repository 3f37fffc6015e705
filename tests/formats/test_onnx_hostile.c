/* SPDX-License-Identifier: MIT
 * ONNX files that are wrong on purpose: external data that leads elsewhere, numbers without end, nesting, cycles, sizes
 * that disagree. Refused with a message that names the place; and a small model with every byte flipped, which is
 * refused or runs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/make_onnx.h"

static rung_host *host;
static rung_device *device;

static rung_status open_bytes(const void *data, size_t bytes, rung_error *error) {
  const rung_source source = rung_source_memory(data, bytes);
  rung_onnx model = {0};
  *error = (rung_error){RUNG_OK, ""};
  const rung_status status = rung_onnx_open(host, &source, NULL, NULL, error, &model);
  rung_onnx_close(&model);
  return status;
}
/* Opening what the maker holds is refused with this status and a message that holds `part`. */
static void refused(maker *m, rung_status want, const char *part, int line) {
  rung_error error;
  pb file = make_file(m);
  const rung_status status = open_bytes(file.data, file.size, &error);
  test_state.checks++;
  if (status != want || !strstr(error.message, part))
    TEST_FAIL_("line %d: %s: \"%s\"", line, rung_status_name(status), error.message);
  free(file.data);
  make_end(m);
}
#define OPEN_REFUSED(m, want, part) refused(m, want, part, __LINE__)

/* ---- external data */

enum { FLOATS = 100 };
static char folder[64];

static const char *path_of(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}
static void write_file(const char *name, const void *data, size_t bytes) {
  FILE *f = fopen(path_of(name), "wb");
  CHECK(f != NULL);
  if (!f) return;
  CHECK(fwrite(data, 1, bytes, f) == bytes);
  fclose(f);
}
static void set_up_folder(void) {
  static float numbers[FLOATS + 1];
  for (int i = 0; i <= FLOATS; i++) numbers[i] = (float)i;
  snprintf(folder, sizeof folder, "/tmp/rung-onnx-XXXXXX");
  CHECK(mkdtemp(folder) != NULL);
  CHECK(mkdir(path_of("m"), 0700) == 0 && mkdir(path_of("m/a"), 0700) == 0);
  write_file("x", numbers, sizeof numbers);
  write_file("m/w.bin", numbers, sizeof numbers);
  write_file("m/a/w.bin", numbers, sizeof numbers);
  CHECK(symlink("../x", path_of("m/out")) == 0);
  CHECK(symlink("w.bin", path_of("m/in")) == 0);
  CHECK(symlink("..", path_of("m/up")) == 0);
}
static void remove_folder(void) {
  static const char *const names[] = {"m/model.onnx", "m/up", "m/in", "m/out", "m/a/w.bin", "m/w.bin", "x"};
  for (size_t i = 0; i < RUNG_COUNT(names); i++) unlink(path_of(names[i]));
  rmdir(path_of("m/a")), rmdir(path_of("m")), rmdir(folder);
}

/* y = w of 100 floats that lie elsewhere; keys and values in pairs, NULL at the end. */
static rung_status open_external(const char *const *pairs, size_t location_bytes, float *first, rung_error *error) {
  maker m;
  make_begin(&m, 13);
  pb tensor = make_tensor_message("w", RUNG_TYPE_F32, "100", NULL);
  for (; *pairs; pairs += 2) {
    pb entry = {0};
    pb_text(&entry, 1, pairs[0]);
    pb_bytes(&entry, 2, pairs[1],
             strcmp(pairs[0], "location") == 0 && location_bytes ? location_bytes : strlen(pairs[1]));
    pb_take(&tensor, 13, &entry);
  }
  pb_int(&tensor, 14, 1);
  pb_take(&m.graph, 5, &tensor);
  make_node(&m, "Neg", "w", "y");
  make_output(&m, "y");
  pb file = make_file(&m);
  write_file("m/model.onnx", file.data, file.size);
  const rung_source source = rung_source_path(path_of("m/model.onnx"));
  rung_onnx model = {0};
  *error = (rung_error){RUNG_OK, ""};
  rung_status status = rung_onnx_open(host, &source, NULL, NULL, error, &model);
  if (!status) status = make_run_opened(&m, device, &model);
  if (!status) *first = ((float *)m.result[0].tensor.data)[0];
  rung_onnx_close(&model);
  free(file.data);
  make_end(&m);
  return status;
}
static void external_is(const char *location, float want) {
  rung_error error;
  float first = 1;
  CHECK_OK(open_external((const char *const[]){"location", location, NULL}, 0, &first, &error));
  CHECK(first == want);
  if (first != want) fprintf(stderr, "  %s: %s\n", location, error.message);
}
static void external_refused(const char *const *pairs, size_t bytes, int line) {
  rung_error error;
  float first;
  const rung_status status = open_external(pairs, bytes, &first, &error);
  test_state.checks++;
  if (!status || status == RUNG_OUT_OF_MEMORY ||
      !(strstr(error.message, "external") || strstr(error.message, "\"w\"") || strstr(error.message, folder)))
    TEST_FAIL_("line %d: %s: \"%s\"", line, rung_status_name(status), error.message);
}
#define EXTERNAL_REFUSED(bytes, ...) external_refused((const char *const[]){__VA_ARGS__, NULL}, bytes, __LINE__)

static void test_external_data_lies_in_the_folder(void) {
  char absolute[256];
  set_up_folder();
  external_is("w.bin", 0);
  external_is("a/w.bin", 0);
  rung_error error;
  float first = 1;
  CHECK_OK(open_external((const char *const[]){"location", "w.bin", "offset", "4", "length", "400", NULL}, 0, &first,
                         &error));
  CHECK(first == -1);
  CHECK_OK(open_external((const char *const[]){"location", "w.bin", "checksum", "whatever", NULL}, 0, &first, &error));
  EXTERNAL_REFUSED(0, "location", "../x");
  EXTERNAL_REFUSED(0, "location", "../../x");
  EXTERNAL_REFUSED(0, "location", "a/../../x");
  EXTERNAL_REFUSED(0, "location", "up/x");
  EXTERNAL_REFUSED(0, "location", "out");
  snprintf(absolute, sizeof absolute, "%s", path_of("x"));
  EXTERNAL_REFUSED(0, "location", absolute);
  snprintf(absolute, sizeof absolute, "%s", path_of("m/w.bin"));
  EXTERNAL_REFUSED(0, "location", absolute);
  EXTERNAL_REFUSED(0, "location", "/etc/passwd");
  EXTERNAL_REFUSED(0, "location", "missing.bin");
  EXTERNAL_REFUSED(0, "location", "");
  EXTERNAL_REFUSED(0, "location", ".");
  EXTERNAL_REFUSED(0, "location", "a");
  EXTERNAL_REFUSED(7, "location", "w.bin\0x");
  EXTERNAL_REFUSED(0, "offset", "0"); /* no location */
  EXTERNAL_REFUSED(0, "location", "w.bin", "where", "here");
  remove_folder();
}
static void test_external_data_has_the_tensors_size(void) {
  set_up_folder();
  EXTERNAL_REFUSED(0, "location", "w.bin", "offset", "8"); /* 400 bytes are wanted, 396 are left */
  EXTERNAL_REFUSED(0, "location", "w.bin", "offset", "4", "length", "404");
  EXTERNAL_REFUSED(0, "location", "w.bin", "length", "396");
  EXTERNAL_REFUSED(0, "location", "w.bin", "offset", "405");
  EXTERNAL_REFUSED(0, "location", "w.bin", "offset", "18446744073709551615");
  EXTERNAL_REFUSED(0, "location", "w.bin", "offset", "18446744073709551616");
  EXTERNAL_REFUSED(0, "location", "w.bin", "offset", "-4");
  EXTERNAL_REFUSED(0, "location", "w.bin", "offset", "4x");
  EXTERNAL_REFUSED(0, "location", "w.bin", "length", "");
  remove_folder();
}
static void test_external_data_wants_a_path(void) {
  maker m;
  make_begin(&m, 13);
  pb tensor = make_tensor_message("w", RUNG_TYPE_F32, "100", NULL), entry = {0};
  pb_text(&entry, 1, "location"), pb_text(&entry, 2, "w.bin");
  pb_take(&tensor, 13, &entry);
  pb_int(&tensor, 14, 1);
  pb_take(&m.graph, 5, &tensor);
  make_output(&m, "w");
  OPEN_REFUSED(&m, RUNG_UNSUPPORTED, "\"w\"");
}

/* ---- wire format */

static void test_numbers_without_end(void) {
  uint8_t data[4096];
  rung_error error;
  memset(data, 0x80, sizeof data);
  CHECK_STATUS(open_bytes(data, sizeof data, &error), RUNG_CORRUPT_FILE);
  data[0] = 0x08;
  CHECK_STATUS(open_bytes(data, sizeof data, &error), RUNG_CORRUPT_FILE);
  CHECK(strstr(error.message, "offset") != NULL);
  maker m;
  make_begin(&m, 13); /* inside a packed list of extents */
  pb tensor = {0};
  pb_bytes(&tensor, 1, data + 1, 100);
  pb_take(&m.graph, 5, &tensor);
  make_output(&m, "w");
  OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "offset");
}
static void test_sizes_past_the_end(void) {
  static const uint64_t sizes[] = {100, 1u << 31, UINT32_MAX, INT64_MAX, UINT64_MAX};
  static const unsigned fields[] = {2, 7, 8, 14, 25};
  for (size_t f = 0; f < RUNG_COUNT(fields); f++)
    for (size_t i = 0; i < RUNG_COUNT(sizes); i++) {
      pb model = {0};
      rung_error error;
      pb_int(&model, 1, 9);
      pb_varint(&model, fields[f] << 3 | 2);
      pb_varint(&model, sizes[i]);
      CHECK_STATUS(open_bytes(model.data, model.size, &error), RUNG_CORRUPT_FILE);
      CHECK(strstr(error.message, "offset 2") != NULL);
      free(model.data);
    }
}
/* Graphs in attributes of nodes of graphs ..., each closed properly. Bytes are written from the inside out. */
static void test_nesting_ten_thousand_deep(void) {
  enum { DEEP = 10000, ROOM = 1 << 20 };
  uint8_t *data = malloc(ROOM);
  size_t at = ROOM; /* the front of what is written */
  rung_error error;
  for (int i = 0; i < 3 * DEEP; i++) {
    static const uint8_t key[] = {6 << 3 | 2, 5 << 3 | 2, 1 << 3 | 2}; /* graph in attribute in node in graph */
    uint8_t size[5];
    int n = 0;
    for (size_t left = ROOM - at; n == 0 || left; left >>= 7)
      size[n++] = (uint8_t)((left & 0x7F) | (left > 0x7F ? 0x80 : 0));
    at -= (size_t)n;
    memcpy(data + at, size, (size_t)n);
    data[--at] = key[i % 3];
  }
  pb model = {0};
  pb_int(&model, 1, 9);
  pb_bytes(&model, 7, data + at, ROOM - at);
  CHECK_STATUS(open_bytes(model.data, model.size, &error), RUNG_UNSUPPORTED);
  CHECK(strstr(error.message, "nested") != NULL);
  free(model.data);
  free(data);
}
static void add_function(pb *model, const char *name, const char *calls) {
  pb f = {0}, node = {0}, opset = {0};
  pb_text(&f, 1, name), pb_text(&f, 4, "a"), pb_text(&f, 5, "b"), pb_text(&f, 10, "local");
  pb_text(&node, 1, "a"), pb_text(&node, 2, "b"), pb_text(&node, 4, calls), pb_text(&node, 7, "local");
  pb_take(&f, 7, &node);
  pb_text(&opset, 1, "local"), pb_int(&opset, 2, 1);
  pb_take(&f, 9, &opset);
  pb_take(model, 25, &f);
}
static void test_functions_that_call_themselves(void) {
  maker m;
  rung_error error;
  make_begin(&m, 13);
  make_input(&m, "x", RUNG_TYPE_F32, "2");
  make_node(&m, "F", "x", "y");
  pb_text(&m.node, 7, "local");
  make_output(&m, "y");
  pb model = make_file(&m), opset = {0};
  pb_text(&opset, 1, "local"), pb_int(&opset, 2, 1);
  pb_take(&model, 8, &opset);
  add_function(&model, "F", "G");
  add_function(&model, "G", "F");
  CHECK_STATUS(open_bytes(model.data, model.size, &error), RUNG_UNSUPPORTED);
  CHECK(strstr(error.message, "call each other") != NULL);
  free(model.data);
  make_end(&m);
}

/* Each function calls the next one twice, sixty deep: 2^60 nodes once they are written out. */
static void test_functions_that_double(void) {
  maker m;
  rung_error error;
  char name[16], next[16];
  make_begin(&m, 13);
  make_input(&m, "x", RUNG_TYPE_F32, "2");
  make_node(&m, "F0", "x", "y");
  pb_text(&m.node, 7, "local");
  make_output(&m, "y");
  pb model = make_file(&m), opset = {0};
  pb_text(&opset, 1, "local"), pb_int(&opset, 2, 1);
  pb_take(&model, 8, &opset);
  for (int i = 0; i < 60; i++) {
    pb f = {0};
    snprintf(name, sizeof name, "F%d", i);
    snprintf(next, sizeof next, "F%d", i + 1);
    pb_text(&f, 1, name), pb_text(&f, 4, "a"), pb_text(&f, 5, "c"), pb_text(&f, 10, "local");
    for (int k = 0; k < 2; k++) {
      pb node = {0};
      pb_text(&node, 1, k ? "b" : "a"), pb_text(&node, 2, k ? "c" : "b");
      pb_text(&node, 4, i == 59 ? "Identity" : next), pb_text(&node, 7, i == 59 ? "" : "local");
      pb_take(&f, 7, &node);
    }
    pb_take(&model, 25, &f);
  }
  CHECK_STATUS(open_bytes(model.data, model.size, &error), RUNG_UNSUPPORTED);
  CHECK(strstr(error.message, "nodes") != NULL);
  free(model.data);
  make_end(&m);
}

/* ---- graphs */

static void test_names(void) {
  maker m;
  const float one[2] = {1, 2};
  make_begin(&m, 13); /* a cycle: the first node reads what only the second gives */
  make_input(&m, "x", RUNG_TYPE_F32, "2");
  make_node(&m, "Add", "x b", "a");
  make_node(&m, "Neg", "a", "b");
  make_output(&m, "b");
  OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "\"b\"");
  make_begin(&m, 13); /* a node that reads itself */
  make_node(&m, "Neg", "a", "a");
  make_output(&m, "a");
  OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "\"a\"");
  make_begin(&m, 13); /* nothing gives it */
  make_input(&m, "x", RUNG_TYPE_F32, "2");
  make_node(&m, "Add", "x nobody", "y");
  make_output(&m, "y");
  OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "\"nobody\"");
  make_begin(&m, 13);
  make_input(&m, "x", RUNG_TYPE_F32, "2");
  make_output(&m, "gone");
  OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "\"gone\"");
  make_begin(&m, 13); /* given twice: by two nodes, a node and an initializer, two initializers, two inputs */
  make_input(&m, "x", RUNG_TYPE_F32, "2");
  make_node(&m, "Neg", "x", "y");
  make_node(&m, "Abs", "x", "y");
  make_output(&m, "y");
  OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "\"y\"");
  make_begin(&m, 13);
  make_tensor(&m, "y", RUNG_TYPE_F32, "2", one);
  make_node(&m, "Neg", "y", "y");
  make_output(&m, "y");
  OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "\"y\"");
  make_begin(&m, 13);
  make_tensor(&m, "w", RUNG_TYPE_F32, "2", one), make_tensor(&m, "w", RUNG_TYPE_F32, "2", one);
  make_output(&m, "w");
  OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "\"w\"");
  make_begin(&m, 13);
  make_input(&m, "x", RUNG_TYPE_F32, "2"), make_input(&m, "x", RUNG_TYPE_F32, "2");
  make_output(&m, "x");
  OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "\"x\"");
  make_begin(&m, 13); /* one node that gives a name twice */
  make_input(&m, "x", RUNG_TYPE_F32, "4");
  make_node(&m, "Split", "x", "p p");
  make_output(&m, "p");
  OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "\"p\"");
}
/* A node of any operator, in a model that is opened: refused with a message, or built. */
static void begin_operator(maker *m, const rung_onnx_operator *o) {
  make_begin(m, o->until ? o->until : RUNG_ONNX_NEWEST_OPSET);
  make_input(m, "x", RUNG_TYPE_F32, "2,3");
}
static void open_operator(maker *m, const rung_onnx_operator *o, const char *operands) {
  rung_error error;
  make_node(m, o->name, operands, "y");
  pb_text(&m->node, 7, o->domain);
  make_output(m, "y");
  pb file = make_file(m), opset = {0};
  pb_text(&opset, 1, o->domain), pb_int(&opset, 2, o->until ? o->until : o->since > 1 ? o->since : 1);
  if (o->domain[0]) pb_take(&file, 8, &opset);
  free(opset.data);
  if (open_bytes(file.data, file.size, &error)) CHECK(error.message[0] != 0);
  free(file.data);
  make_end(m);
}

/* Every operator with no operand at all, and with one: refused, never read. */
static void test_operands_left_out(void) {
  static const char *const operands[] = {"", "x", "- x", "x -"};
  for (size_t i = 0; i < rung_onnx_operators(); i++)
    for (size_t n = 0; n < RUNG_COUNT(operands); n++) {
      const rung_onnx_operator o = rung_onnx_operator_at(i);
      maker m;
      begin_operator(&m, &o);
      open_operator(&m, &o, operands[n]);
    }
}

/* Every operator on numbers that no size, axis or count can be: built or refused, never undefined. */
static void try_number(const rung_onnx_operator *o, rung_type type, const void *pair) {
  static const struct {
    const char *shape, *operands; /* of k, which is known; n is known at run time only */
  } ways[] = {{"", "k k k k k k"},  {"", "x k k k k k"},  {"2", "k k k k k k"},
              {"2", "x k k k k k"}, {"2", "n n n n n n"}, {"2", "x n n n n n"}};
  for (size_t i = 0; i < RUNG_COUNT(ways); i++) {
    maker m;
    begin_operator(&m, o);
    make_tensor(&m, "k", type, ways[i].shape, pair);
    make_input(&m, "n", type, "2");
    open_operator(&m, o, ways[i].operands);
  }
}
static void test_numbers_that_are_no_sizes(void) {
  static const float real[] = {NAN, INFINITY, -INFINITY, 3e38F, -3e38F, 0.5F, -1, 0};
  static const int64_t whole[] = {INT64_MIN, INT64_MAX, -1, 0};
  for (size_t i = 0; i < rung_onnx_operators(); i++) {
    const rung_onnx_operator o = rung_onnx_operator_at(i);
    for (size_t k = 0; k < RUNG_COUNT(real); k++) try_number(&o, RUNG_TYPE_F32, (const float[]){real[k], real[k]});
    for (size_t k = 0; k < RUNG_COUNT(whole); k++) try_number(&o, RUNG_TYPE_I64, (const int64_t[]){whole[k], whole[k]});
  }
}

static void test_tensors_that_disagree(void) {
  static const float numbers[3] = {1, 2, 3};
  maker m;
  for (int k = 0; k < 4; k++) { /* bytes and shape */
    make_begin(&m, 13);
    pb tensor = make_tensor_message("w", RUNG_TYPE_F32, k == 3 ? "4611686018427387904,4" : "2", NULL);
    if (k < 2) pb_bytes(&tensor, 9, numbers, k ? 12 : 7);
    if (k == 2) pb_float(&tensor, 4, 1); /* one number of two */
    pb_take(&m.graph, 5, &tensor);
    make_output(&m, "w");
    OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "\"w\"");
  }
  make_begin(&m, 13); /* an extent below 0 */
  pb tensor = make_tensor_message("w", RUNG_TYPE_F32, "-2", numbers);
  pb_take(&m.graph, 5, &tensor);
  make_output(&m, "w");
  OPEN_REFUSED(&m, RUNG_CORRUPT_FILE, "negative");
  make_begin(&m, 13); /* no such type */
  tensor = (pb){0};
  pb_int(&tensor, 1, 1), pb_int(&tensor, 2, 99), pb_text(&tensor, 8, "w"), pb_bytes(&tensor, 9, numbers, 4);
  pb_take(&m.graph, 5, &tensor);
  make_output(&m, "w");
  OPEN_REFUSED(&m, RUNG_UNSUPPORTED, "\"w\"");
  make_begin(&m, 13); /* nine axes */
  tensor = (pb){0};
  for (int i = 0; i < 9; i++) pb_int(&tensor, 1, 1);
  pb_int(&tensor, 2, 1), pb_text(&tensor, 8, "w"), pb_bytes(&tensor, 9, numbers, 4);
  pb_take(&m.graph, 5, &tensor);
  make_output(&m, "w");
  OPEN_REFUSED(&m, RUNG_UNSUPPORTED, "axes");
}

/* ---- every byte */

/* A model of a few operators, with weights, shapes computed in it and a loop. */
static void small_model(maker *m) {
  static const float x[6] = {1, -2, 3, -4, 5, -6}, w[6] = {0.5f, 1, 1.5f, 2, 2.5f, 3};
  make_begin(m, 17);
  make_input(m, "x", RUNG_TYPE_F32, "n,3");
  make_feed(m, "x", RUNG_TYPE_F32, "2,3", x);
  make_tensor(m, "w", RUNG_TYPE_F32, "3,2", w);
  make_i64(m, "zero", 1, (const int64_t[]){0}), make_i64(m, "rest", 1, (const int64_t[]){-1});
  make_node(m, "MatMul", "x w", "p");
  make_node(m, "Shape", "x", "s");
  make_node(m, "Gather", "s zero", "rows");
  make_node(m, "Concat", "rest rows", "shape");
  make_attr_int(m, "axis", 0);
  make_node(m, "Reshape", "p shape", "r");
  make_node(m, "Softmax", "r", "y");
  make_attr_int(m, "axis", -1);
  make_output(m, "y");
}
static void try_and_run(maker *m, const uint8_t *data, size_t bytes) {
  const rung_source source = rung_source_memory(data, bytes);
  rung_onnx model = {0};
  make_forget(m);
  m->error = (rung_error){RUNG_OK, ""};
  rung_status status = rung_onnx_open(host, &source, NULL, NULL, &m->error, &model);
  if (!status) {
    CHECK_OK(rung_graph_verify(model.graph, &m->error));
    status = make_run_opened(m, device, &model);
  }
  if (status) CHECK(m->error.message[0] != 0);
  rung_onnx_close(&model);
}
static void test_every_byte_flipped_and_run(void) {
  maker m;
  small_model(&m);
  pb file = make_file(&m);
  try_and_run(&m, file.data, file.size);
  CHECK(m.results == 1);
  for (size_t at = 0; at < file.size; at++)
    for (int bit = 0; bit < 9; bit++) {
      if (test_slow() && (at + (size_t)bit) % 3) continue;
      const uint8_t old = file.data[at];
      file.data[at] = (uint8_t)(bit == 8 ? 0xFFu ^ old : old ^ 1u << bit);
      try_and_run(&m, file.data, file.size);
      file.data[at] = old;
    }
  free(file.data);
  make_end(&m);
}
static void test_every_length_is_refused(void) {
  maker m;
  small_model(&m);
  pb file = make_file(&m);
  for (size_t bytes = 0; bytes < file.size; bytes++) {
    uint8_t *cut = malloc(bytes + 1); /* of its own, so that a checker sees a read behind the end */
    memcpy(cut, file.data, bytes);
    rung_error error;
    const rung_status status = open_bytes(cut, bytes, &error);
    CHECK(status == RUNG_CORRUPT_FILE || status == RUNG_UNSUPPORTED || status == RUNG_IO);
    CHECK(error.message[0] != 0);
    free(cut);
  }
  free(file.data);
  make_end(&m);
}

int main(void) {
  rung_error error;
  rung_device_options options = rung_device_options_default();
  options.threads = 1;
  if (rung_host_create(NULL, &error, &host) || rung_device_create(host, "cpu", &options, &error, &device)) return 1;
  RUN(test_external_data_lies_in_the_folder);
  RUN(test_external_data_has_the_tensors_size);
  RUN(test_external_data_wants_a_path);
  RUN(test_numbers_without_end);
  RUN(test_sizes_past_the_end);
  RUN(test_nesting_ten_thousand_deep);
  RUN(test_functions_that_call_themselves);
  RUN(test_functions_that_double);
  RUN(test_names);
  RUN(test_operands_left_out);
  RUN(test_numbers_that_are_no_sizes);
  RUN(test_tensors_that_disagree);
  RUN(test_every_byte_flipped_and_run);
  RUN(test_every_length_is_refused);
  rung_device_release(device);
  rung_host_release(host);
  return TEST_END();
}
