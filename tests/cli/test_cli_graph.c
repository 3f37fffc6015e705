/* SPDX-License-Identifier: MIT
 * rung run, inspect, bench and env. */
#define _GNU_SOURCE
#include <math.h>

#include "cli/tool.h"
#include "formats/gguf.h"
#include "formats/npy.h"

static const char net[] =
    "rung 1\n"
    "symbol rows 1..512\n"
    "%0 = input {name=\"x\"} : f32[rows,64]\n"
    "%1 = input {name=\"w\"} : f32[32,64]\n"
    "%2 = matmul %0, %1 {transpose_b=true} : f32[rows,32]\n"
    "%3 = silu %2 : f32[rows,32]\n"
    "%4 = softmax %3 : f32[rows,32]\n"
    "output \"y\" %4\n"
    "output \"h\" %3\n";
static char path[256]; /* of the graph */

static void write_input(rung_host *host, const char *file, int64_t rows, int64_t columns) {
  float *data = malloc((size_t)(rows * columns) * sizeof *data);
  for (int64_t i = 0; i < rows * columns; i++) data[i] = (float)(i % 13) / 13 - 0.5f;
  const rung_tensor t = rung_tensor_dense(RUNG_TYPE_F32, 2, (int64_t[]){rows, columns}, data);
  CHECK_OK(rung_npy_write(host, file, &t, NULL));
  free(data);
}

/* softmax(silu(x w')) by hand. */
static void check_outputs(rung_host *host, int64_t rows) {
  char file[300];
  snprintf(file, sizeof file, "%s/y.npy", tool_file("results"));
  rung_npy y;
  const rung_source source = rung_source_path(file);
  CHECK_OK(rung_npy_open(&y, host, &source, NULL));
  CHECK_EQ_I64(y.rank, 2);
  CHECK_EQ_I64(y.extent[0], rows);
  CHECK_EQ_I64(y.extent[1], 32);
  for (int64_t r = 0; r < rows && y.data && y.extent[0] == rows; r++) {
    double h[32], sum = 0;
    for (int64_t c = 0; c < 32; c++) {
      double dot = 0;
      for (int64_t k = 0; k < 64; k++)
        dot += ((double)((r * 64 + k) % 13) / 13 - 0.5) * ((double)((c * 64 + k) % 13) / 13 - 0.5);
      h[c] = exp(dot / (1 + exp(-dot)));
      sum += h[c];
    }
    for (int64_t c = 0; c < 32; c++) CHECK(fabs((double)((const float *)y.data)[r * 32 + c] - h[c] / sum) < 1e-5);
  }
  rung_npy_close(&y);
}

static void test_run(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  write_input(host, tool_file("x.npy"), 5, 64);
  write_input(host, tool_file("w.npy"), 32, 64);
  EXPECT(0, "runs: median", "run -m '%s' -i x='%s' -i w='%s' -o '%s' --repeat 3", path, tool_file("x.npy"),
         tool_file("w.npy"), tool_file("results"));
  check_outputs(host, 5);
  EXPECT(2, "did you mean x?", "run -m '%s' -i xx='%s'", path, tool_file("x.npy"));
  EXPECT(2, "is not NAME=FILE.npy", "run -m '%s' -i x", path);
  EXPECT(3, "No such file", "run -m '%s' -i x=/nowhere.npy", path);
  write_input(host, tool_file("w.npy"), 31, 64);
  EXPECT(3, NULL, "run -m '%s' --bind rows=2 -i w='%s'", path, tool_file("w.npy"));
  rung_host_release(host);
}

static void test_symbols(void) {
  EXPECT(2, "--bind rows=N", "run -m '%s'", path);
  EXPECT(2, "did you mean rows?", "run -m '%s' --bind row=3", path);
  EXPECT(2, "the nearest is 512", "run -m '%s' --bind rows=513", path);
  EXPECT(2, "is not SYMBOL=N", "run -m '%s' --bind rows", path);
  tool_result r = tool("run -m '%s' --bind rows=7 --json", path);
  CHECK_EQ_I64(r.code, 0);
  CHECK(json_lines_have(r.out, "outputs runs seconds spread"));
  CHECK(strstr(r.out, "\"extent\": [7, 32]") != NULL);
  tool_free(&r);
}

static void test_check(void) {
  EXPECT(0, "", "run -m '%s' --bind rows=7 --check", path);
  tool_result r = tool("run -m '%s' --bind rows=7 --check --json", path);
  CHECK(json_lines_have(r.out, "value type difference bound index ok"));
  CHECK(strstr(r.out, "\"ok\": false") == NULL);
  tool_free(&r);
  r = tool("run -m '%s' --bind rows=64 --profile --repeat 3", path);
  CHECK_EQ_I64(r.code, 0);
  CHECK(strstr(r.out, "matmul") != NULL && strstr(r.out, "share") != NULL);
  tool_free(&r);
  EXPECT(2, "cannot be given together", "run -m '%s' --bind rows=64 --profile --trace '%s'", path, tool_file("t.json"));
  EXPECT(2, "rung generate runs language models", "run -m " LLAMA);
}

static void test_inspect_model(void) {
  tool_result r = tool("inspect -m " LLAMA);
  CHECK_EQ_I64(r.code, 0);
  CHECK(strstr(r.out, "general.architecture") != NULL && strstr(r.out, "token_embd.weight") != NULL);
  tool_free(&r);
  r = tool("inspect -m " GEMMA " --json");
  CHECK(json_lines_have(r.out, "format version metadata tensors"));
  tool_free(&r);
  r = tool("inspect -m " LLAMA " --graph --plan --memory --kernels --fused --check --json -c 100 --ubatch 32");
  CHECK_EQ_I64(r.code, 0);
  CHECK(json_lines_have(r.out, "graph plan memory kernels fused bad checked"));
  tool_free(&r);
  r = tool("inspect -m " LLAMA " --check");
  CHECK_EQ_I64(r.code, 0);
  CHECK(strstr(r.out, ": 0 with a NaN") != NULL);
  tool_free(&r);
  /* More positions take more memory. */
  tool_result few = tool("inspect -m " LLAMA " --memory -c 64"), many = tool("inspect -m " LLAMA " --memory -c 512");
  CHECK_EQ_I64(few.code, 0);
  CHECK(strstr(few.out, "state") != NULL && strcmp(few.out, many.out) != 0);
  tool_free(&few);
  tool_free(&many);
}

/* A NaN in a tensor is found and named. */
static void test_inspect_bad(void) {
  static const char name[] = "blk.1.attn_norm.weight"; /* f32 */
  rung_host *host = NULL;
  rung_gguf *gguf = NULL;
  const rung_source source = rung_source_path(LLAMA);
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  CHECK_OK(rung_gguf_open(host, &source, NULL, &gguf));
  const rung_gguf_tensor *tensor = rung_gguf_tensor_find(gguf, name);
  const uint64_t offset = tensor ? tensor->offset + 5 * sizeof(float) : 0;
  CHECK(tensor != NULL);
  rung_gguf_release(gguf);
  rung_host_release(host);
  size_t bytes;
  char *file = read_file(LLAMA, &bytes);
  static const float nan_bits = NAN;
  memcpy(file + offset, &nan_bits, sizeof nan_bits);
  FILE *out = fopen(tool_file("nan.gguf"), "wb");
  CHECK(out && fwrite(file, 1, bytes, out) == bytes && fclose(out) == 0);
  free(file);
  tool_result r = tool("inspect -m '%s' --check", tool_file("nan.gguf"));
  CHECK_EQ_I64(r.code, 3);
  CHECK(strstr(r.out, ": 1 with a NaN") != NULL && strstr(r.out, name) != NULL);
  tool_free(&r);
  r = tool("inspect -m '%s' --check --json", tool_file("nan.gguf"));
  CHECK(strstr(r.out, "\"element\": 5") != NULL);
  tool_free(&r);
}

static void test_inspect_graph(void) {
  tool_result r = tool("inspect -m '%s'", path);
  CHECK_EQ_I64(r.code, 0);
  CHECK(strstr(r.out, "rows") != NULL && strstr(r.out, "f32[rows,64]") != NULL);
  tool_free(&r);
  r = tool("inspect -m '%s' --json", path);
  CHECK(json_lines_have(r.out, "format nodes symbols inputs weights states outputs"));
  tool_free(&r);
  r = tool("inspect -m '%s' --graph", path);
  CHECK(strncmp(r.out, "rung 1\n", 7) == 0);
  tool_free(&r);
  EXPECT(0, NULL, "inspect -m '%s' --plan --memory --kernels --fused --bind rows=4", path);
  EXPECT(2, "--check looks at tensors", "inspect -m '%s' --check", path);
}

static void test_bench(void) {
  if (test_slow()) SKIP("too slow here");
  tool_result r = tool("bench -m " LLAMA " -p 4,9 -n 3 --sequences 1,2 --repeat 2 --json -t 1");
  CHECK_EQ_I64(r.code, 0);
  CHECK(json_lines_have(r.out, "work tokens sequences depth threads tokens_per_second limit limit_share spread"));
  int lines = 0;
  for (const char *c = r.out; *c; c++) lines += *c == '\n';
  CHECK_EQ_I64(lines, 6);
  CHECK(strstr(r.out, "\"work\": \"prompt\"") != NULL && strstr(r.out, "\"work\": \"decode\"") != NULL);
  tool_free(&r);
  /* Sequences decode behind so many positions, also where a measurement takes up those of the one before. */
  r = tool("bench -m " LLAMA " -p 5 -n 3 --depth 40 --sequences 2 --repeat 3 --ubatch 16 --json");
  CHECK_EQ_I64(r.code, 0);
  CHECK(strstr(r.out, "\"work\": \"decode\", \"tokens\": 3, \"sequences\": 2, \"depth\": 40") != NULL);
  CHECK(strstr(r.out, "\"work\": \"prompt\", \"tokens\": 5, \"sequences\": 2, \"depth\": 0") != NULL);
  tool_free(&r);
  r = tool("bench -m " LLAMA " -p 4 -n 2 --depth 9 --repeat 1");
  CHECK(strstr(r.out, "2 tokens x 1   sequences behind 9, ") != NULL);
  tool_free(&r);
  r = tool("bench -m '%s' --bind rows=1,8 --repeat 2 --json", path);
  CHECK_EQ_I64(r.code, 0);
  CHECK(json_lines_have(r.out, "work binding threads seconds limit limit_share spread"));
  CHECK(strstr(r.out, "\"binding\": {\"rows\": 8}") != NULL);
  tool_free(&r);
  EXPECT(0, "GB/s", "bench -m " LLAMA " -p 4 -n 0 --repeat 1");
}

static void test_env(void) {
  tool_result r = tool("env");
  CHECK_EQ_I64(r.code, 0);
  CHECK(strstr(r.out, "instruction sets") != NULL && strstr(r.out, "RUNG_THREADS") != NULL);
  tool_free(&r);
  CHECK(setenv("RUNG_MAX_ISA", "base", 1) == 0 && setenv("RUNG_THREADS", "1", 1) == 0 &&
        setenv("RUNG_TREADS", "9", 1) == 0);
  r = tool("env --json");
  CHECK_EQ_I64(r.code, 0);
  CHECK(json_lines_have(r.out, "version isa_detected isa_used threads memory_limit_bytes devices libraries variables"));
  CHECK(strstr(r.out, "\"isa_used\": \"base\"") != NULL && strstr(r.out, "\"threads\": 1,") != NULL);
  CHECK(strstr(r.err, "RUNG_TREADS is not read; did you mean RUNG_THREADS?") != NULL);
  tool_free(&r);
  CHECK(setenv("RUNG_THREADS", "many", 1) == 0);
  EXPECT(2, "RUNG_THREADS", "env");
  CHECK(unsetenv("RUNG_MAX_ISA") == 0 && unsetenv("RUNG_THREADS") == 0 && unsetenv("RUNG_TREADS") == 0);
}

int main(void) {
  snprintf(path, sizeof path, "%s", tool_file("net.rung"));
  write_file(path, net);
  RUN(test_run);
  RUN(test_symbols);
  RUN(test_check);
  RUN(test_inspect_model);
  RUN(test_inspect_bad);
  RUN(test_inspect_graph);
  RUN(test_bench);
  RUN(test_env);
  tool_clean();
  return TEST_END();
}
