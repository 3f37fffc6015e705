/* SPDX-License-Identifier: MIT
 * Every kernel of the CUDA backend compiles for every chip that is supported: all types of weights, and the generated
 * regions of all cases of the op table. Needs NVIDIA's run-time compiler but no GPU; skipped without it. */
#define _GNU_SOURCE
#include <glob.h>

#include "backends/cuda/families.h"
#include "backends/cuda/matmul.h"
#include "backends/cuda/region.h"
#include "cases.h"

static rung_host *host;
static rung_cu_compiler compiler;
static int compiled;

static void compile(int chip, const char *name, const rung_text *front, const char *unit) {
  rung_text all;
  rung_error error = {RUNG_OK, ""};
  uint8_t *code = NULL;
  size_t bytes = 0;
  rung_text_init(&all, host);
  rung_text_puts(&all, rung_cuda_unit_text("common"));
  if (front && front->data) rung_text_add(&all, front->data, front->length);
  if (unit) rung_text_puts(&all, rung_cuda_unit_text(unit));
  /* Under sanitizers what makes the texts is under test; the compiler is not ours. */
  if (!test_slow() || compiled % 8 == 0) {
    const rung_status status = rung_cuda_compile_text(host, &compiler, chip, name, all.data, &error, &code, &bytes);
    test_state.checks++;
    if (status) TEST_FAIL_("%s for chip %d: %s", name, chip, error.message);
  }
  if (code) rung_host_free(host, RUNG_MEMORY_host, code, bytes);
  rung_text_finish(&all);
  compiled++;
}

static void compile_with(int chip, const char *unit, const char *front) {
  rung_text text;
  rung_text_init(&text, host);
  rung_text_puts(&text, front);
  compile(chip, unit, &text, unit);
  rung_text_finish(&text);
}

static void test_units(void) {
  const int chips[] = {80, 90};
  for (size_t c = 0; c < RUNG_COUNT(chips); c++) {
    const int chip = chips[c];
    compile_with(chip, "move", "");
    compile_with(chip, "product", "");
    compile_with(chip, "reduce", "");
    compile_with(chip, "kv", "");
    compile_with(chip, "kv",
                 "#define DIMS 4\n#define HALF 1\n#define MAGNITUDE 1.0f\n__constant__ double turns[2] = {1, 2};\n");
    compile_with(
        chip, "attend",
        "#define KEY_DIM 128\n#define VALUE_DIM 128\n#define GROUP 4\n#define KV_HEADS 8\n#define KV_TYPE 1\n");
    compile_with(chip, "attend",
                 "#define KEY_DIM 80\n#define VALUE_DIM 48\n#define GROUP 3\n#define KV_HEADS 3\n#define KV_TYPE 0\n");
    for (int kind = 0; kind < 10; kind++) {
      char front[32];
      snprintf(front, sizeof front, "#define KIND %d\n", kind);
      compile_with(chip, "reduce", front);
    }
  }
}

static void test_weights(void) {
  for (size_t i = 0; i < rung_type_count(); i++) {
    const rung_type type = rung_type_at(i);
    for (uint16_t layout = 0; layout < 2; layout++) {
      if (!rung_cuda_reads_weight(type, layout)) continue;
      const bool block = rung_cuda_multiplies_a8(type);
      for (int a8 = 0; a8 <= block; a8++) {
        rung_text front;
        rung_text_init(&front, host);
        rung_text_printf(&front, "#define X_TYPE %d\n#define ROWS_A_WARP %d\n#define SPLIT %d\n", a8 ? RUNG_TYPE_A8 : 0,
                         a8 ? 2 : 1, !a8 && type != RUNG_TYPE_F32);
        rung_cuda_put_weights(type, layout, &front);
        compile(90, rung_type_name(type), &front, "matmul");
        compile(90, rung_type_name(type), &front, "gemm");
        if (block) compile(90, rung_type_name(type), &front, "rows");
        rung_text_finish(&front);
      }
    }
  }
}

/* ---- regions, many in one text */

static rung_text regions;
static int waiting, taken;

static void flush_regions(void) {
  if (waiting) compile(90, "regions", &regions, NULL);
  rung_text_finish(&regions);
  rung_text_init(&regions, host);
  rung_region_print_front(&regions);
  waiting = 0;
}

static void add_region(const op_case *c) {
  built b;
  if (build_case(host, c, BUILD_CLOSED, &b)) {
    rung_match match;
    rung_region_list list;
    rung_match_init(&match, b.graph, b.node);
    if (rung_region_read(&match, &list, NULL)) {
      rung_text_printf(&regions, "#undef COLUMNS\n#undef THREADS\n#undef PART\n#define region region_%d\n", waiting++);
      rung_region_print(&list, &regions);
      rung_text_puts(&regions, "#undef region\n");
      taken++;
    }
  }
  rung_graph_destroy(b.graph);
  if (waiting == 60) flush_regions();
}

static void test_regions(void) {
  rung_text_init(&regions, host);
  flush_regions();
  for (size_t i = 0; i < rung_op_count(); i++) {
    const rung_op *op = rung_op_at(i);
    if (op->bodies || !op->tests || (op->flags & (RUNG_OP_CONTROL | RUNG_OP_DECLARES))) continue;
    for (const rung_test_case *test = op->tests; test->operands; test++) {
      op_case c;
      if (read_case(op, test, &c)) add_region(&c);
    }
  }
  flush_regions();
  rung_text_finish(&regions);
  CHECK(taken > 300);
}

/* Where the environment of the scripts has the package nvidia-cuda-nvrtc. */
static void look_in_packages(void) {
  char pattern[600];
  const char *cache = getenv("RUNG_CACHE"), *home = getenv("HOME");
  glob_t found;
  if (getenv("RUNG_NVRTC")) return;
  snprintf(pattern, sizeof pattern, "%s%s/rung/venv/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1*",
           cache  ? cache
           : home ? home
                  : "",
           cache ? "" : "/.cache");
  if (glob(pattern, 0, NULL, &found)) return;
  setenv("RUNG_NVRTC", found.gl_pathv[0], 1);
  globfree(&found);
}

int main(void) {
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  rung_status status = rung_cu_compiler_open(&compiler, &error);
  if (status) {
    look_in_packages();
    status = rung_cu_compiler_open(&compiler, &error);
  }
  if (status) {
    printf("skipped: %s\n", error.message);
    rung_host_release(host);
    return 77;
  }
  RUN(test_units);
  RUN(test_weights);
  RUN(test_regions);
  printf("%d texts compiled, %d regions among them\n", compiled, taken);
  rung_host_release(host);
  return TEST_END();
}
