/* SPDX-License-Identifier: MIT
 * rung compile, run, graph, cache and --store: what is compiled runs in another process with the same bits; a store fills
 * itself, finds damage and can be emptied; graphs as text and as pictures. */
#define _GNU_SOURCE
#include "tool.h"

static const char net[] =
    "rung 1\n"
    "symbol rows 1..64\n"
    "%x = input {name=\"x\"} : f32[rows,64]\n"
    "%w = weight {name=\"blk.0.ffn_norm.weight\"} : f32[64]\n"
    "%n = rms_norm %x, %w {epsilon=1e-05}  # first <&>\n"
    "%q = weight {name=\"blk.0.attn_q.weight\"} : q8_0[64,64]\n"
    "%m = matmul %n, %q {transpose_b=true}\n"
    "%s = softmax %m {axis=-1}\n"
    "%y = add %s, %x\n"
    "output \"y\" %y\n";

static bool same_files(const char *a, const char *b) {
  size_t n, m;
  char *x = read_file(a, &n), *y = read_file(b, &m);
  const bool same = n > 0 && n == m && memcmp(x, y, n) == 0;
  free(x);
  free(y);
  return same;
}

/* Runs and compares y.npy of both folders. */
static void check_same_run(const char *first, const char *second) {
  EXPECT(0, NULL, "run %s -o '%s'", first, tool_file("one"));
  EXPECT(0, NULL, "run %s -o '%s'", second, tool_file("two"));
  CHECK(same_files(tool_file("one/y.npy"), tool_file("two/y.npy")));
}

static void test_compile(void) {
  char plain[600], compiled[600], packed[600];
  write_file(tool_file("net.rung"), net);
  EXPECT(0, "c.rung", "compile -m '%s' -o '%s' --ceiling rows=40", tool_file("net.rung"), tool_file("c.rung"));
  EXPECT(0, NULL, "compile '%s' -o '%s' --pack --weights " LLAMA, tool_file("net.rung"), tool_file("p.rung"));
  snprintf(plain, sizeof plain, "'%s' --weights " LLAMA " --bind rows=17", tool_file("net.rung"));
  snprintf(compiled, sizeof compiled, "'%s' --weights " LLAMA " --bind rows=17", tool_file("c.rung"));
  snprintf(packed, sizeof packed, "'%s' --bind rows=17", tool_file("p.rung"));
  check_same_run(plain, compiled);
  check_same_run(plain, packed); /* which needs no weights brought */
  EXPECT(0, NULL, "compile -m '%s' -o '%s' --ceiling rows=40", tool_file("net.rung"), tool_file("d.rung"));
  CHECK(same_files(tool_file("c.rung"), tool_file("d.rung")));
  EXPECT(0, NULL, "run '%s' --bind rows=40 --weights " LLAMA, tool_file("c.rung"));
  EXPECT(2, NULL, "run '%s' --bind rows=0 --weights " LLAMA, tool_file("c.rung"));
  EXPECT(3, "accepts 1..40", "run '%s' --bind rows=41 --weights " LLAMA, tool_file("c.rung"));
  EXPECT(3, "without a view", "run '%s' --bind rows=4", tool_file("c.rung"));
  EXPECT(2, "is compiled", "run '%s' --bind rows=4 --check", tool_file("p.rung"));
  EXPECT(2, "is compiled already", "compile '%s' -o x", tool_file("c.rung"));
  EXPECT(2, "--ceiling: there is no symbol row; did you mean rows?", "compile '%s' -o x --ceiling row=3",
         tool_file("net.rung"));
  EXPECT(2, "has no weights", "compile '%s' -o x --pack", tool_file("net.rung"));
  EXPECT(1, "cannot be created", "compile '%s' -o /nowhere/at/all", tool_file("net.rung"));
  EXPECT(4, "compiled for device cpu", "run '%s' --bind rows=4 --device ref", tool_file("p.rung"));
  tool_result r = tool("inspect --json '%s'", tool_file("p.rung"));
  CHECK(r.code == 0 && json_lines_have(r.out, "device version key packed ceiling input output weight"));
  tool_free(&r);
  char *bytes = read_file(tool_file("p.rung"), NULL); /* text and compiled are told apart by their first bytes */
  CHECK(strncmp(bytes, "rung ", 5) != 0);
  free(bytes);
}

/* What was compiled for less runs on more, and the other way round where there are kernels. */
static void test_targets(void) {
  char plain[600], other[600];
  snprintf(plain, sizeof plain, "'%s' --weights " LLAMA " --bind rows=5", tool_file("net.rung"));
  EXPECT(0, NULL, "compile '%s' -o '%s' --target base --weights " LLAMA " --pack", tool_file("net.rung"),
         tool_file("base.rung"));
  snprintf(other, sizeof other, "'%s' --bind rows=5", tool_file("base.rung"));
  EXPECT(0, NULL, "run %s", other);
  setenv("RUNG_MAX_ISA", "base", 1);
  check_same_run(plain, other);
  EXPECT(0, NULL, "run '%s' --bind rows=5", tool_file("p.rung")); /* made with all that this machine has */
  unsetenv("RUNG_MAX_ISA");
}

static void test_damaged(void) {
  size_t n;
  char *data = read_file(tool_file("p.rung"), &n);
  data[n - 100] ^= 1;
  FILE *file = fopen(tool_file("bad.rung"), "wb");
  CHECK(file && fwrite(data, 1, n, file) == n && fclose(file) == 0);
  EXPECT(3, "checksum", "run '%s' --bind rows=3", tool_file("bad.rung"));
  data[20] ^= 1;
  file = fopen(tool_file("bad.rung"), "wb");
  CHECK(file && fwrite(data, 1, n, file) == n && fclose(file) == 0);
  EXPECT(3, "compiled file", "run '%s' --bind rows=3", tool_file("bad.rung"));
  free(data);
}

static void test_store(void) {
  static const char *const models[] = {LLAMA, GEMMA};
  write_file(tool_file("ids"), "1 2 3 4 5 6 7 8 9 10 11 12 13");
  for (int m = 0; m < 2; m++) { /* cold, warm in a new process, and without: the same bits */
    for (int i = 0; i < 3; i++) {
      char store[300] = "";
      if (i) snprintf(store, sizeof store, "--store '%s'", tool_file("store"));
      EXPECT(0, NULL, "logits -m %s --ids '%s' -o '%s' %s", models[m], tool_file("ids"),
             tool_file(i == 0   ? "plain.npy"
                       : i == 1 ? "cold.npy"
                                : "warm.npy"),
             store);
    }
    CHECK(same_files(tool_file("plain.npy"), tool_file("cold.npy")));
    CHECK(same_files(tool_file("plain.npy"), tool_file("warm.npy")));
  }
  for (int i = 0; i < 3; i++) { /* vectors as well */
    char store[300] = "";
    if (i) snprintf(store, sizeof store, "--store '%s'", tool_file("store"));
    EXPECT(0, NULL, "embed -m " TINY "bert --ids " TINY "encoder.ids -o '%s' %s",
           tool_file(i == 0   ? "plain.npy"
                     : i == 1 ? "cold.npy"
                              : "warm.npy"),
           store);
  }
  CHECK(same_files(tool_file("plain.npy"), tool_file("cold.npy")));
  CHECK(same_files(tool_file("plain.npy"), tool_file("warm.npy")));
  setenv("RUNG_MAX_ISA", "base", 1); /* another machine at the same folder */
  EXPECT(0, NULL, "logits -m " LLAMA " --ids '%s' -o '%s'", tool_file("ids"), tool_file("plain.npy"));
  for (int i = 0; i < 2; i++)
    EXPECT(0, NULL, "logits -m " LLAMA " --ids '%s' -o '%s' --store '%s'", tool_file("ids"), tool_file("warm.npy"),
           tool_file("store"));
  unsetenv("RUNG_MAX_ISA");
  CHECK(same_files(tool_file("plain.npy"), tool_file("warm.npy")));
  tool_result r = tool("cache list --dir '%s' --json", tool_file("store"));
  CHECK(r.code == 0 && strstr(r.err, " entries, ") && json_lines_have(r.out, "name kind bytes used device"));
  CHECK(strstr(r.out, "\"template\"") && strstr(r.out, "\"pack\"") && strstr(r.out, "\"known\""));
  tool_free(&r);
  EXPECT(0, "0 entries removed", "cache verify --dir '%s'", tool_file("store"));
  char command[600];
  snprintf(command, sizeof command, "for f in '%s'/*.pack; do printf x >>\"$f\"; done", tool_file("store"));
  CHECK(system(command) == 0);
  EXPECT(0, "3 entries removed", "cache verify --dir '%s'", tool_file("store"));
  EXPECT(0, NULL, "logits -m " LLAMA " --ids '%s' -o '%s' --store '%s'", tool_file("ids"), tool_file("warm.npy"),
         tool_file("store"));
  EXPECT(0, NULL, "cache trim --max 1K --dir '%s'", tool_file("store"));
  setenv("RUNG_STORE", tool_file("store"), 1);
  EXPECT(0, NULL, "cache list");
  EXPECT(0, "removed", "cache clear");
  EXPECT(0, "0 entries, 0 bytes", "cache list");
  EXPECT(0, NULL, "run '%s' --weights " LLAMA " --bind rows=5", tool_file("net.rung"));
  EXPECT(0, " entries, ", "cache list");
  unsetenv("RUNG_STORE");
  EXPECT(0, "0 entries", "cache list --dir '%s'", tool_file("nothing"));
  EXPECT(2, "which folder", "cache list");
  EXPECT(2, "say what to do", "cache --dir x");
  EXPECT(2, "did you mean verify?", "cache verfy --dir x");
  EXPECT(2, "trim needs --max", "cache trim --dir x");
  EXPECT(2, "--max is for trim", "cache clear --dir x --max 1G");
  EXPECT(0, "compiles are not stored", "logits -m " LLAMA " --ids '%s' -o '%s' --store '%s/below'", tool_file("ids"),
         tool_file("plain.npy"), tool_file("ids"));
}

static void test_graph(void) {
  tool_result r = tool("graph '%s' --source", tool_file("net.rung"));
  CHECK(r.code == 0 && strncmp(r.out, "rung 1\n", 7) == 0 && strstr(r.out, "rms_norm"));
  write_file(tool_file("again.rung"), r.out); /* what is printed reads back */
  tool_free(&r);
  EXPECT(0, NULL, "run '%s' --weights " LLAMA " --bind rows=5", tool_file("again.rung"));
  r = tool("graph '%s' --source --svg", tool_file("net.rung"));
  CHECK(r.code == 0 && strncmp(r.out, "<svg xmlns=", 11) == 0 && strstr(r.out, "</svg>\n"));
  CHECK(strstr(r.out, ">rms_norm<") && strstr(r.out, "first &lt;&amp;&gt;") && strstr(r.out, "blk.0.ffn_norm.weight"));
  tool_free(&r);
  EXPECT(0, "net.svg", "graph '%s' -o '%s'", tool_file("net.rung"), tool_file("net.svg"));
  EXPECT(0, "m.svg", "graph " LLAMA " -o '%s'", tool_file("m.svg"));
  EXPECT(0, NULL, "graph '%s'", tool_file("p.rung"));
  EXPECT(2, "--source is for text graphs", "graph " LLAMA " --source");
  char *svg = read_file(tool_file("m.svg"), NULL);
  CHECK(strstr(svg, "attention_kv") && strstr(svg, "logits"));
  free(svg);
}

int main(void) {
  RUN(test_compile);
  RUN(test_targets);
  RUN(test_damaged);
  RUN(test_store);
  RUN(test_graph);
  tool_clean();
  return TEST_END();
}
