/* SPDX-License-Identifier: MIT
 * rung perplexity against the float64 oracle on tiny models (scripts/oracle/perplexity.py tiny), whatever the chunks, and
 * what it refuses. */
#define _GNU_SOURCE
#include <math.h>

#include "cli/tool.h"

#define TEXT TINY "perplexity.text"

static double number_of(const char *json, const char *key) {
  char name[64];
  snprintf(name, sizeof name, "\"%s\": ", key);
  const char *at = strstr(json, name);
  CHECK(at != NULL);
  return at ? strtod(at + strlen(name), NULL) : -1;
}

static void check_one(const char *family, int window, double want, int scored, const char *flags) {
  tool_result r =
      tool("perplexity -m " TINY "%s.gguf -f " TEXT " -c %d --quant exact --kv f32 --json %s", family, window, flags);
  CHECK_EQ_I64(r.code, 0);
  if (!r.code) {
    CHECK(fabs(number_of(r.out, "perplexity") / want - 1) < 1e-5);
    CHECK_EQ_I64((int64_t)number_of(r.out, "scored_tokens"), scored);
    CHECK_EQ_I64((int64_t)number_of(r.out, "window_tokens"), window);
  }
  tool_free(&r);
}

static void test_oracle(void) {
  FILE *file = fopen(TINY "perplexity.txt", "r");
  char line[256];
  int lines = 0;
  while (file && fgets(line, sizeof line, file)) {
    char family[32];
    int window, scored;
    double want;
    if (line[0] == '#') continue;
    CHECK(sscanf(line, "%31s %d %lf %d", family, &window, &want, &scored) == 4);
    check_one(family, window, want, scored, "");
    check_one(family, window, want, scored, "--ubatch 5 -t 1");
    lines++;
  }
  if (file) fclose(file);
  CHECK_EQ_I64(lines, 4);
}

static void test_output(void) {
  tool_result r = tool("perplexity -m " LLAMA " -f " TEXT " -c 32 -v");
  CHECK_EQ_I64(r.code, 0);
  char *end;
  CHECK(strtod(r.out, &end) > 1 && strncmp(end, " +/- ", 5) == 0);
  CHECK(strstr(r.err, "window 1: ") != NULL && strstr(r.err, "165 tokens scored in 11 windows of 32") != NULL);
  tool_free(&r);
  r = tool("perplexity -m " LLAMA " -c 32 --json <" TEXT " -f -");
  CHECK_EQ_I64(r.code, 0);
  CHECK(json_lines_have(
      r.out, "perplexity uncertainty mean_log_probability scored_tokens tokens windows window_tokens seconds"));
  tool_free(&r);
}

static void test_refusals(void) {
  EXPECT(2, "lower -c", "perplexity -m " LLAMA " -f " TEXT " -c 5000");
  EXPECT(2, "at least 4 tokens", "perplexity -m " LLAMA " -f " TEXT " -c 3");
  EXPECT(2, "one text is needed", "perplexity -m " LLAMA);
  EXPECT(2, "one text is needed", "perplexity -m " LLAMA " -f " TEXT " -f " TEXT);
  EXPECT(3, "missing.txt", "perplexity -m " LLAMA " -f " TINY "missing.txt");
  EXPECT(3, "missing.gguf", "perplexity -m " TINY "missing.gguf -f " TEXT);
  EXPECT(5, "budget", "perplexity -m " LLAMA " -f " TEXT " -c 32 --memory 4K");
}

int main(void) {
  RUN(test_oracle);
  RUN(test_output);
  RUN(test_refusals);
  return TEST_END();
}
