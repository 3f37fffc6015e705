/* SPDX-License-Identifier: MIT
 * rung run and inspect on ONNX models: named inputs from arrays, and what is said when a name, a type or an extent is
 * wrong, an operator is missing, or the file is no model. */
#define _GNU_SOURCE
#include "cli/tool.h"
#undef EXPECT
#include "formats/make_onnx.h"
#include "formats/npy.h"
#undef EXPECT

#define CORPUS RUNG_SOURCE_DIR "/tests/fuzz/corpus/fuzz_onnx/"

static rung_host *host;

static const char *array(const char *name, rung_type type, const char *shape) {
  static double zeros[4096];
  int64_t extent[RUNG_MAX_RANK];
  const int rank = make_shape(shape, extent, NULL);
  const rung_tensor t = rung_tensor_dense(type, rank, extent, zeros);
  static char path[4][256];
  static int turn;
  snprintf(path[turn = (turn + 1) % 4], sizeof path[0], "%s", tool_file(name));
  CHECK_OK(rung_npy_write(host, path[turn], &t, NULL));
  return path[turn];
}
/* Runs, expects an exit code, and every text of a list in what is printed on either stream. */
static void expect(int line, int code, const char *const *texts, const char *arguments) {
  tool_result r = tool("%s", arguments);
  test_state.checks++;
  if (r.code != code) TEST_FAIL_("line %d: exit code %d, not %d: %s", line, r.code, code, r.err);
  for (; *texts; texts++) {
    test_state.checks++;
    if (!strstr(r.out, *texts) && !strstr(r.err, *texts))
      TEST_FAIL_("line %d: no \"%s\" in: %s%s", line, *texts, r.out, r.err);
  }
  tool_free(&r);
}
#define SAYS(code, arguments, ...) expect(__LINE__, code, (const char *const[]){__VA_ARGS__, NULL}, arguments)
static const char *line(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *line(const char *format, ...) {
  static char text[2048];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return text;
}

static void test_named_inputs(void) {
  const char *x = array("x.npy", RUNG_TYPE_F32, "2,2,5,7");
  SAYS(0, line("run " CORPUS "net.onnx -i x=%s", x), "y f32[2,5]");
  SAYS(0, line("run " CORPUS "net.onnx -i x=%s --check", x), "y");
  SAYS(0, line("run " CORPUS "net.onnx -i x=%s --profile --repeat 2", x), "conv", "share");
  SAYS(0, "run " CORPUS "net.onnx --bind n=3 --bind h=8 --bind w=9 --json", "\"extent\": [3, 5]");
  SAYS(0, line("run " CORPUS "net.onnx -i x=%s -o %s", x, tool_file("out-folder")), "y.npy");
}
static void test_wrong_names(void) {
  const char *x = array("x.npy", RUNG_TYPE_F32, "2,2,5,7");
  SAYS(2, line("run " CORPUS "net.onnx -i xx=%s", x), "there is no input xx", "did you mean x?");
  SAYS(2, "run " CORPUS "net.onnx --bind N=3 --bind h=8 --bind w=9", "there are: n, h, w");
  SAYS(2, line("run " CORPUS "net.onnx -i picture=%s", x), "there is no input picture; there are: x");
  SAYS(2, "run " CORPUS "net.onnx --bind n=3", "--bind h=N or -i x=FILE.npy");
}
static void test_wrong_types_and_extents(void) {
  const char *whole = array("i.npy", RUNG_TYPE_I64, "2,2,5,7"), *flat = array("r.npy", RUNG_TYPE_F32, "2,2,35"),
             *planes = array("c.npy", RUNG_TYPE_F32, "2,3,5,7"), *x = array("x.npy", RUNG_TYPE_F32, "2,2,5,7");
  SAYS(3, line("run " CORPUS "net.onnx -i x=%s", whole), "i64", "f32", "input x");
  SAYS(3, line("run " CORPUS "net.onnx -i x=%s", flat), "rank 3", "rank 4", "input x");
  SAYS(3, line("run " CORPUS "net.onnx -i x=%s", planes), "axis 1 of input \"x\" is 3", "2");
  SAYS(3, line("run " CORPUS "net.onnx -i x=%s --bind n=5", x), "n");
}
static void test_files_that_are_no_models(void) {
  write_file(tool_file("text.onnx"), "this is no model at all");
  SAYS(3, line("run %s", tool_file("text.onnx")), "text.onnx", "offset");
  SAYS(3, "run /nowhere/model.onnx", "/nowhere/model.onnx");
  write_file(tool_file("empty.onnx"), "");
  SAYS(3, line("inspect %s", tool_file("empty.onnx")), "empty.onnx");
}
static void test_missing_operators_are_listed(void) {
  maker m;
  make_begin(&m, 17);
  make_input(&m, "x", RUNG_TYPE_F32, "2");
  make_node(&m, "Frobnicate", "x", "a"), make_node(&m, "Frobnicate", "a", "b"), make_node(&m, "Mystify", "b", "y");
  make_output(&m, "y");
  pb file = make_file(&m);
  FILE *f = fopen(tool_file("missing.onnx"), "wb");
  CHECK(f && fwrite(file.data, 1, file.size, f) == file.size);
  if (f) fclose(f);
  SAYS(4, line("run %s", tool_file("missing.onnx")), "2 operators at 3 nodes", "Frobnicate version 17 (2): \"a\" \"b\"",
       "Mystify version 17 (1): \"y\"");
  free(file.data);
  make_end(&m);
}
static void test_inspect(void) {
  SAYS(0, "inspect " CORPUS "net.onnx", "x", "f32[n,2,h,w]", "y");
  SAYS(0, "inspect " CORPUS "net.onnx --fused --kernels", "conv");
  SAYS(0, "inspect " CORPUS "net.onnx --memory --bind n=1 --bind h=8 --bind w=8", "activations");
  SAYS(0, "inspect " CORPUS "net.onnx --memory --bind n=1 --bind h=8 --bind w=8", "are copied");
  tool_result r = tool("inspect " CORPUS "shapes.onnx --graph --json");
  CHECK_EQ_I64(r.code, 0);
  CHECK(strstr(r.out, "reshape") != NULL); /* the shapes that the graph computed have become extents */
  CHECK(strstr(r.out, "gather") == NULL);
  tool_free(&r);
}

int main(void) {
  if (rung_host_create(NULL, NULL, &host)) return 1;
  RUN(test_named_inputs);
  RUN(test_wrong_names);
  RUN(test_wrong_types_and_extents);
  RUN(test_files_that_are_no_models);
  RUN(test_missing_operators_are_listed);
  RUN(test_inspect);
  rung_host_release(host);
  tool_clean();
  return TEST_END();
}
