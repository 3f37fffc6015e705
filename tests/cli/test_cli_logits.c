/* SPDX-License-Identifier: MIT
 * rung logits and rung tokenize against the recorded numbers of the tiny models. */
#define _GNU_SOURCE
#include <math.h>

#include "cli/tool.h"
#include "formats/npy.h"

static const char *const names[] = {"llama", "gemma3"};
static const char *const prompts[] = {"a", "b"};

static rung_host *host_of_test(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  return host;
}

static bool open_npy(rung_host *host, const char *path, rung_npy *out) {
  const rung_source source = rung_source_path(path);
  rung_error error = {0};
  const rung_status status = rung_npy_open(out, host, &source, &error);
  if (status) fprintf(stderr, "%s\n", error.message);
  CHECK_OK(status);
  return !status;
}

/* Largest difference over largest magnitude. */
static double compare(const rung_npy *got, const rung_npy *want) {
  CHECK_EQ_I64(got->type, RUNG_TYPE_F32);
  CHECK_EQ_I64(got->rank, 2);
  CHECK_EQ_I64(got->extent[0], want->extent[0]);
  CHECK_EQ_I64(got->extent[1], want->extent[1]);
  if (got->rank != 2 || got->extent[0] != want->extent[0] || got->extent[1] != want->extent[1]) return HUGE_VAL;
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < want->extent[0] * want->extent[1]; i++) {
    const double a = (double)((const float *)got->data)[i], b = ((const double *)want->data)[i];
    if (!(fabs(a - b) <= worst)) worst = fabs(a - b);
    if (fabs(b) > largest) largest = fabs(b);
  }
  return worst / largest;
}

static void test_logits(void) {
  rung_host *host = host_of_test();
  static const char *const chunks[] = {"", "--ubatch 1", "--ubatch 7"};
  for (size_t m = 0; m < 2; m++)
    for (size_t p = 0; p < 2; p++)
      for (size_t c = 0; c < RUNG_COUNT(chunks); c++) {
        char recorded[256];
        snprintf(recorded, sizeof recorded, TINY "%s.%s.logits.npy", names[m], prompts[p]);
        tool_result r = tool("logits -m " TINY "%s.gguf --ids " TINY "%s.%s.ids -o '%s' --quant exact --kv f32 %s",
                             names[m], names[m], prompts[p], tool_file("l.npy"), chunks[c]);
        CHECK_EQ_I64(r.code, 0);
        CHECK_STR(r.out, "");
        tool_free(&r);
        rung_npy got, want;
        if (!open_npy(host, tool_file("l.npy"), &got)) continue;
        if (open_npy(host, recorded, &want)) {
          CHECK(compare(&got, &want) <= 1e-4);
          rung_npy_close(&want);
        }
        rung_npy_close(&got);
      }
  rung_host_release(host);
}

static void test_report(void) {
  tool_result r = tool("logits -m " LLAMA " -p Hello -o '%s' --json", tool_file("l.npy"));
  CHECK_EQ_I64(r.code, 0);
  CHECK(json_lines_have(r.out, "file positions vocabulary seconds"));
  tool_free(&r);
  EXPECT(1, "cannot be created", "logits -m " LLAMA " -p Hello -o /nowhere/l.npy");
}

/* Ids without line ends, single blanks between them. */
static void normalise(char *text) {
  char *out = text;
  for (char *p = text; *p; p++) {
    const bool blank = *p == ' ' || *p == '\n';
    if (!blank)
      *out++ = *p;
    else if (out > text && out[-1] != ' ')
      *out++ = ' ';
  }
  while (out > text && out[-1] == ' ') out--;
  *out = 0;
}

static void test_tokenize(void) {
  for (size_t m = 0; m < 2; m++)
    for (size_t p = 0; p < 2; p++) {
      char path[256];
      snprintf(path, sizeof path, TINY "%s.%s.ids", names[m], prompts[p]);
      char *want = read_file(path, NULL);
      normalise(want);
      tool_result r = tool("tokenize -m " TINY "%s.gguf <" TINY "%s.%s.txt", names[m], names[m], prompts[p]);
      CHECK_EQ_I64(r.code, 0);
      CHECK(r.out_bytes && strchr(r.out, '\n') == r.out + r.out_bytes - 1); /* one line */
      normalise(r.out);
      CHECK_STR(r.out, want);
      tool_free(&r);
      r = tool("tokenize -m " TINY "%s.gguf --json <" TINY "%s.%s.txt", names[m], names[m], prompts[p]);
      CHECK(json_lines_have(r.out, "ids"));
      tool_free(&r);
      free(want);
    }
}

static void test_decode(void) {
  char *text = read_file(TINY "llama.b.txt", NULL);
  tool_result r = tool("tokenize -m " LLAMA " --decode <" TINY "llama.b.ids");
  CHECK_EQ_I64(r.code, 0);
  CHECK_STR(r.out, text);
  tool_free(&r);
  r = tool("tokenize -m " LLAMA " --decode --json <" TINY "llama.b.ids");
  CHECK(json_lines_have(r.out, "text"));
  tool_free(&r);
  free(text);
  write_file(tool_file("ids"), "1 999999");
  EXPECT(3, NULL, "tokenize -m " LLAMA " --decode <'%s'", tool_file("ids"));
}

static void test_special(void) {
  write_file(tool_file("text"), "<|im_start|>a");
  tool_result parsed = tool("tokenize -m " LLAMA " <'%s'", tool_file("text"));
  tool_result plain = tool("tokenize -m " LLAMA " --no-special <'%s'", tool_file("text"));
  CHECK(strlen(plain.out) > strlen(parsed.out));
  CHECK(strncmp(parsed.out, "1 ", 2) == 0);
  tool_free(&parsed);
  tool_free(&plain);
  tool_result with = tool("tokenize -m " GEMMA " <'%s'", tool_file("text")),
              without = tool("tokenize -m " GEMMA " --no-bos <'%s'", tool_file("text"));
  CHECK(strncmp(with.out, "2 ", 2) == 0 && strcmp(with.out + 2, without.out) == 0);
  tool_free(&with);
  tool_free(&without);
}

int main(void) {
  RUN(test_logits);
  RUN(test_report);
  RUN(test_tokenize);
  RUN(test_decode);
  RUN(test_special);
  tool_clean();
  return TEST_END();
}
