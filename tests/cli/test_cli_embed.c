/* SPDX-License-Identifier: MIT
 * rung embed: vectors of ids and of lines in each form of output, and what is refused. */
#define _GNU_SOURCE
#include <math.h>

#include "cli/tool.h"
#include "formats/npy.h"

#define BERT TINY "bert"

static bool open_npy(rung_host *host, const char *path, rung_npy *out) {
  const rung_source source = rung_source_path(path);
  rung_error error = {0};
  const rung_status status = rung_npy_open(out, host, &source, &error);
  if (status) fprintf(stderr, "%s\n", error.message);
  CHECK_OK(status);
  return !status;
}

/* The recorded vectors, whatever the budget of a run; in bf16 within what its roundings may make of them. */
static void test_ids(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  static const char *const flags[] = {"", "--ubatch 140 -t 2", "--no-map -t 3", "--precision mixed",
                                      "--precision bf16"};
  for (size_t i = 0; i < RUNG_COUNT(flags); i++) {
    tool_result r = tool("embed -m " BERT " --ids " TINY "encoder.ids -o '%s' %s", tool_file("v.npy"), flags[i]);
    CHECK_EQ_I64(r.code, 0);
    CHECK_STR(r.out, "");
    tool_free(&r);
    rung_npy got, want;
    if (!open_npy(host, tool_file("v.npy"), &got)) continue;
    if (open_npy(host, TINY "bert.vectors.npy", &want)) {
      CHECK(got.type == RUNG_TYPE_F32 && got.rank == 2 && got.extent[0] == 12 && got.extent[1] == 32);
      double worst = 0;
      for (int64_t k = 0; k < 12 * 32; k++) {
        const double off = fabs((double)((const float *)got.data)[k] - ((const double *)want.data)[k]);
        worst = off <= worst ? worst : off;
      }
      const bool narrow = strstr(flags[i], "precision") != NULL;
      CHECK(worst <= (narrow ? 0.1 : 1e-5) && (worst > 1e-4) == narrow);
      rung_npy_close(&want);
    }
    rung_npy_close(&got);
  }
  rung_host_release(host);
}

static int lines_of(const char *text) {
  int n = 0;
  for (; *text; text++) n += *text == '\n';
  return n;
}

static void test_lines(void) {
  tool_result plain = tool("embed -m " BERT " --dims 5 -f " TINY "encoder.txt");
  CHECK_EQ_I64(plain.code, 0);
  CHECK_EQ_I64(lines_of(plain.out), 7);
  tool_result piped = tool("embed -m " BERT " --dims 5 -q <" TINY "encoder.txt");
  CHECK_EQ_I64(piped.code, 0);
  CHECK_STR(piped.out, plain.out);
  CHECK_STR(piped.err, "");
  tool_free(&piped);
  tool_free(&plain);
  /* The last line needs no newline; one that ends in CR LF is the line without them. */
  write_file(tool_file("a.txt"), "b");
  write_file(tool_file("b.txt"), "a b\r\n");
  tool_result a = tool("embed -m " BERT " --prefix 'a ' --no-normalize --pool cls -f '%s'", tool_file("a.txt"));
  tool_result b = tool("embed -m " BERT " --no-normalize --pool cls -f - <'%s'", tool_file("b.txt"));
  CHECK(a.code == 0 && b.code == 0);
  CHECK_STR(a.out, b.out);
  tool_free(&a);
  tool_free(&b);
}

static void test_json(void) {
  tool_result r = tool("embed -m " BERT " --json -f " TINY "encoder.txt");
  CHECK_EQ_I64(r.code, 0);
  CHECK(json_lines_have(r.out, "text embedding"));
  CHECK_EQ_I64(lines_of(r.out), 7);
  tool_free(&r);
  r = tool("embed -m " BERT " --json -o '%s' -f " TINY "encoder.txt", tool_file("v.npy"));
  CHECK(json_lines_have(r.out, "file lines dims tokens seconds"));
  tool_free(&r);
}

static void test_refused(void) {
  EXPECT(3, "the longest may have 5",
         "embed "
         "-m " BERT " -c 5 -f " TINY "encoder.txt");
  EXPECT(3, "encoder.txt: line 3",
         "embed "
         "-m " BERT " -c 5 -f " TINY "encoder.txt");
  EXPECT(3, "/nonexistent",
         "embed "
         "-m " BERT " -f /nonexistent");
  EXPECT(2, "the model has 32",
         "embed "
         "-m " BERT " --dims 33 -f /dev/null");
  EXPECT(2, "140 positions",
         "embed "
         "-m " BERT " -c 141 -f /dev/null");
  EXPECT(2, "median",
         "embed "
         "-m " BERT " --pool median");
  EXPECT(4, "no modules.json",
         "embed "
         "-m " TINY "bert-plain --ids /dev/null");
  EXPECT(4, "makes text",
         "embed "
         "-m " LLAMA " -f /dev/null");
  EXPECT(3, "offset 0 is no id",
         "embed "
         "-m " BERT " --ids " TINY "encoder.txt");
  tool_result r = tool("embed -m " BERT " -c 5 --truncate -q -f " TINY "encoder.txt");
  CHECK(r.code == 0 && lines_of(r.out) == 7);
  tool_free(&r);
  r = tool("embed -m " BERT " -f /dev/null");
  CHECK_EQ_I64(r.code, 0);
  CHECK_STR(r.out, "");
  tool_free(&r);
  EXPECT(4, "makes vectors", "generate -m " BERT " -p a");
}

int main(void) {
  RUN(test_ids);
  RUN(test_lines);
  RUN(test_json);
  RUN(test_refused);
  tool_clean();
  return TEST_END();
}
