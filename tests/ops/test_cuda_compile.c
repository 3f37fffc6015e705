/* SPDX-License-Identifier: MIT
 * Every kernel of the CUDA backend compiles for every chip that is supported: all types of weights, and the generated
 * regions of all cases of the op table. Needs NVIDIA's run-time compiler but no GPU; skipped without it. */
#define _GNU_SOURCE
#include <glob.h>

#include "backends/cuda/families.h"
#include "backends/cuda/matmul.h"
#include "backends/cuda/region.h"
#include "backends/cuda/window.h"
#include "cases.h"
#include "ops/op_table.h"

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
    compile_with(chip, "index", "");
    compile_with(chip, "product", "");
    compile_with(chip, "reduce", "");
    compile_with(chip, "sample", "");
    compile_with(chip, "random", "");
    compile_with(chip, "whole", "");
    compile_with(chip, "pool_ragged", "");
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

/* The types of what attention of one row reads and writes. */
static const char numbers[] =
    "typedef f16 q_number;\ntypedef float k_number;\ntypedef bf16 v_number;\n"
    "typedef float y_number;\ntypedef int slot_number;\ntypedef long long past_number;\n"
    "typedef float factor_number;\n#define FACTORS 1\n#define CAPPED 1\n#define WARPS 4\n#define STAGES 3\n";

/* Of tensors and ragged rows: all types, and for f32 both widths of values and both profiles. */
static void test_plain_attention(void) {
  for (int type = 0; type < 4; type++)
    for (int way = 0; way < 8; way += type ? 3 : 1) {
      char front[120];
      snprintf(front, sizeof front, "#define TYPE %d\n#define VALUES %d\n#define RAGGED %d\n#define APART %d\n", type,
               way & 1 ? 128 : 64, way >> 1 & 1, way >> 2);
      compile_with(way & 1 ? 80 : 90, "attention", front);
    }
}

/* The kernel for any number of rows stands behind that for one. */
static void compile_any(const char *front) {
  rung_text text;
  rung_text_init(&text, host);
  rung_text_puts(&text, front);
  rung_text_puts(&text, rung_cuda_unit_text("attend_one"));
  compile(90, "attend_any", &text, "attend_any");
  rung_text_finish(&text);
}

/* Attention of one row and of many, for heads of several widths. */
static void test_attention(void) {
  static const int shape[][3] = {{128, 128, 4}, {64, 64, 3}, {96, 64, 8}}; /* keys, values, group */
  for (size_t i = 0; i < RUNG_COUNT(shape); i++)
    for (int narrow = 0; narrow < 2; narrow++) {
      char front[640];
      snprintf(front, sizeof front,
               "#define KEY_DIM %d\n#define VALUE_DIM %d\n#define GROUP %d\n#define KV_HEADS 2\n#define KV_TYPE 1\n"
               "#define NARROW %d\n#define QUANTIZED %d\n#define DIMS %d\n#define HALF %d\n#define MAGNITUDE 1.0f\n"
               "__constant__ double turns[DIMS / 2] = {1, 2};\n%s",
               shape[i][0], shape[i][1], shape[i][2], narrow, narrow, shape[i][0] / 2, narrow, numbers);
      compile_with(90, "attend_one", front);
      compile_any(front);
      compile_with(80, "attend_many", front);
      compile_with(90, "attend_many", front);
    }
}

/* Decode attention as each of its candidates has it: what differs in the text. */
static void test_candidates(void) {
  static const int splits[] = {1, 2, 4, 8, 16, 32}, clusters[] = {2, 4, 8};
  for (size_t i = 0; i < RUNG_COUNT(splits); i++) {
    char front[640];
    snprintf(front, sizeof front,
             "#define KEY_DIM 128\n#define VALUE_DIM 128\n#define GROUP 4\n#define KV_HEADS 8\n#define KV_TYPE 1\n"
             "#define NARROW 1\n#define QUANTIZED 1\n#define DIMS 128\n#define HALF 1\n#define MAGNITUDE 1.0f\n"
             "#define SPLITS %d\n__constant__ double turns[DIMS / 2] = {1, 2};\n%s",
             splits[i], numbers);
    compile_with(90, "attend_one", front);
  }
  for (size_t i = 0; i < RUNG_COUNT(clusters); i++) {
    char front[200];
    snprintf(front, sizeof front,
             "#define CLUSTER %d\n#define KEY_DIM 64\n#define VALUE_DIM 64\n#define GROUP 3\n#define KV_HEADS 3\n"
             "#define KV_TYPE 1\n",
             clusters[i]);
    compile_with(90, "attend", front);
  }
}

/* Products of one row, the row from memory or of a region in front, and with a pair of results joined. */
static void compile_row(rung_type type, uint16_t layout, bool tiled) {
  rung_region_list list = {.inputs = 1, .values = 2, .ops = 1, .outputs = 1, .columns = 512};
  list.type[0] = RUNG_TYPE_F32;
  list.type[1] = tiled ? RUNG_TYPE_A8 : RUNG_TYPE_F32;
  list.op[0] = (rung_region_op){.op = tiled ? &rung_op_quantize_rows : &rung_op_neg, .n_in = 1, .out = 1};
  list.output[0] = 1;
  rung_region_list pair = {.inputs = 2, .values = 3, .ops = 1, .outputs = 1};
  pair.op[0] = (rung_region_op){.op = &rung_op_mul, .in = {0, 1}, .n_in = 2, .out = 2};
  const rung_region_row region = {.x = 0, .quantized = 0};
  for (int members = 1; members < 4; members++) {
    const rung_cuda_row row = {.weight = type,
                               .layout = layout,
                               .x = tiled ? RUNG_TYPE_A8 : type,
                               .k = 512,
                               .members = members,
                               .tiled = tiled,
                               .list = members > 1 ? &list : NULL,
                               .region = &region,
                               .after = members < 3 ? &pair : NULL,
                               .after_value = 2,
                               .levels = tiled && members < 3,
                               .ready = tiled && members == 1};
    rung_text front;
    rung_text_init(&front, host);
    rung_cuda_put_row(&row, &front);
    compile(90, rung_type_name(type), &front, "decode");
    rung_text_finish(&front);
  }
}

static void test_rows(void) {
  compile_row(RUNG_TYPE_Q4_K, RUNG_CUDA_TILES, true);
  compile_row(RUNG_TYPE_Q8_0, RUNG_CUDA_Q8_TILES, true);
  compile_row(RUNG_TYPE_F16, 0, false);
  compile_row(RUNG_TYPE_BF16, 0, false);
}

/* Products with experts: `text` in front of the unit, as experts.c puts it. */
static void compile_experts(const rung_text *product, const char *name, const char *text, const char *unit) {
  rung_text front;
  rung_text_init(&front, host);
  rung_text_puts(&front, "#define EXPERTS 1\n");
  rung_text_add(&front, product->data, product->length);
  rung_text_puts(&front, rung_cuda_unit_text(text));
  compile(90, name, &front, unit);
  rung_text_finish(&front);
}

static void test_weights(void) {
  for (size_t i = 0; i < rung_type_count(); i++) {
    const rung_type type = rung_type_at(i);
    for (uint16_t layout = 0; layout < 3; layout++) {
      if (!rung_cuda_reads_weight(type, layout)) continue;
      const bool block = rung_cuda_multiplies_a8(type);
      for (int a8 = 0; a8 <= block; a8++) {
        rung_text front;
        rung_text_init(&front, host);
        rung_text_printf(&front, "#define EIGHT 1\n#define X_TYPE %d\n#define ROWS_A_WARP %d\n#define SPLIT %d\n",
                         a8 ? RUNG_TYPE_A8 : 0, a8 ? 2 : 1, !a8 && type != RUNG_TYPE_F32);
        rung_cuda_put_weights(type, layout, &front);
        compile(90, rung_type_name(type), &front, "matmul");
        /* What differs from type to type is in the text above; of what else there is a few types are enough. */
        if (layout || !block || type == RUNG_TYPE_Q6_K || type == RUNG_TYPE_IQ3_S) {
          compile(90, rung_type_name(type), &front, "gemm");
          compile_experts(&front, rung_type_name(type), "matmul", "experts");
          compile_experts(&front, rung_type_name(type), "experts_order", "gemm");
        }
        if (a8 && layout) compile(80, rung_type_name(type), &front, "tiles");
        if (a8 && layout) compile(90, rung_type_name(type), &front, "tiles");
        if (block && !a8) compile(90, rung_type_name(type), &front, "rows");
        if (block && a8) compile(90, rung_type_name(type), &front, "widen");
        rung_text_finish(&front);
      }
    }
  }
}

/* Pools and convolutions of every type, and the large tile of every height. */
static void compile_conv(int chip, int x, int w, int y, int height) {
  rung_text front;
  rung_text_init(&front, host);
  rung_cuda_put_conv(x, w, y, height, &front);
  compile(chip, "conv", &front, "conv");
  rung_text_finish(&front);
}

static void test_windows(void) {
  static const rung_op *const pools[] = {&rung_op_max_pool, &rung_op_argmax_pool, &rung_op_average_pool};
  static const int heights[] = {0, 1, 2, 4, 6, 8};
  for (int type = RUNG_TYPE_F32; type < RUNG_TYPE_BOOL; type++) {
    const bool whole = type > RUNG_TYPE_F64;
    for (size_t i = 0; i < RUNG_COUNT(pools) - whole; i++) {
      rung_text front;
      rung_text_init(&front, host);
      rung_cuda_put_pool(pools[i], type, &front);
      compile(90, "pool", &front, "pool");
      rung_text_finish(&front);
    }
    compile_conv(90, type, whole ? RUNG_TYPE_I8 : type, whole ? RUNG_TYPE_I32 : type, 0);
    if (!whole || type == RUNG_TYPE_U8)
      compile_conv(90, type, whole ? RUNG_TYPE_I8 : type, whole ? RUNG_TYPE_I32 : type, 4);
  }
  compile_conv(80, RUNG_TYPE_F32, RUNG_TYPE_F32, RUNG_TYPE_F32, 8);
  for (size_t i = 0; i < RUNG_COUNT(heights); i++) {
    compile_conv(90, RUNG_TYPE_F32, RUNG_TYPE_F32, RUNG_TYPE_F32, heights[i]);
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
      for (int profile = 0; profile <= rung_region_has_norm(&list); profile++) {
        list.eights = profile;
        rung_text_printf(&regions, "#undef COLUMNS\n#undef THREADS\n#undef PART\n#define region region_%d\n",
                         waiting++);
        rung_region_print(&list, &regions);
        rung_text_puts(&regions, "#undef region\n");
        taken++;
      }
    }
  }
  rung_graph_destroy(b.graph);
  if (waiting >= 60) flush_regions();
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
  RUN(test_plain_attention);
  RUN(test_attention);
  RUN(test_candidates);
  RUN(test_rows);
  RUN(test_weights);
  RUN(test_windows);
  RUN(test_regions);
  printf("%d texts compiled, %d regions among them\n", compiled, taken);
  rung_host_release(host);
  return TEST_END();
}
