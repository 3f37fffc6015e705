/* SPDX-License-Identifier: MIT
 * rung generate on the tiny models: what is printed, that it reproduces, where it ends. */
#define _GNU_SOURCE
#include "cli/tool.h"

#define FIELDS                                                                                         \
  "text ids finish load_seconds compile_seconds prompt_tokens prompt_tokens_per_second decode_tokens " \
  "decode_tokens_per_second "                                                                          \
  "memory_predicted_bytes memory_peak_bytes"

static const char *const models[] = {LLAMA, GEMMA};

/* Two runs print the same. */
#define SAME(a, b)                  \
  do {                              \
    tool_result x_ = (a), y_ = (b); \
    CHECK_EQ_I64(x_.code, 0);       \
    CHECK_EQ_I64(y_.code, 0);       \
    CHECK(x_.out_bytes > 1);        \
    CHECK_STR(x_.out, y_.out);      \
    tool_free(&x_);                 \
    tool_free(&y_);                 \
  } while (0)

static void test_reproduces(void) {
  for (size_t i = 0; i < RUNG_COUNT(models); i++) {
    SAME(tool("generate -m %s -p 'Hello there' -n 12 --temp 0 -t 1", models[i]),
         tool("generate -m %s -p 'Hello there' -n 12 --temp 0 -t 2 --ubatch 3", models[i]));
    SAME(tool("generate -m %s -p 'Hello there' -n 12 -s 7", models[i]),
         tool("generate -m %s -p 'Hello there' -n 12 -s 7 --no-map", models[i]));
  }
}

static void test_prompts(void) {
  write_file(tool_file("prompt"), "Hello there");
  SAME(tool("generate -m " LLAMA " -p 'Hello there' -n 8 --temp 0"),
       tool("generate -m " LLAMA " -f '%s' -n 8 --temp 0", tool_file("prompt")));
  SAME(tool("generate -m " LLAMA " -p 'Hello there' -n 8 --temp 0"),
       tool("generate -m " LLAMA " -f - -n 8 --temp 0 <'%s'", tool_file("prompt")));
  tool_result text = tool("generate -m " LLAMA " -f " TINY "llama.b.txt -n 8 --temp 0");
  tool_result ids = tool("generate -m " LLAMA " --ids " TINY "llama.b.ids -n 8 --temp 0");
  CHECK_STR(text.out, ids.out);
  tool_free(&text);
  tool_free(&ids);
  write_file(tool_file("empty"), "");
  EXPECT(3, "an empty prompt", "generate -m " LLAMA " -f '%s'", tool_file("empty"));
  EXPECT(2, "an empty prompt", "generate -m " LLAMA " -p ''");
}

/* Each of several sequences says what it says alone. */
static void test_sequences(void) {
  tool_result a = tool("generate -m " LLAMA " -p Hello -n 9 --temp 0"),
              b = tool("generate -m " LLAMA " -p 'the other one' -n 9 --temp 0");
  tool_result both = tool("generate -m " LLAMA " -p Hello -p 'the other one' -n 9 --temp 0");
  CHECK_EQ_I64(both.code, 0);
  CHECK_EQ_I64(both.out_bytes, a.out_bytes + b.out_bytes);
  if (both.out_bytes == a.out_bytes + b.out_bytes) {
    CHECK(memcmp(both.out, a.out, a.out_bytes) == 0);
    CHECK(memcmp(both.out + a.out_bytes, b.out, b.out_bytes) == 0);
  }
  tool_free(&a);
  tool_free(&b);
  tool_free(&both);
}

static void test_json(void) {
  for (size_t i = 0; i < RUNG_COUNT(models); i++) {
    tool_result r = tool("generate -m %s -p Hello -p 'and more' -n 5 --temp 1 -s 1 --json", models[i]);
    CHECK_EQ_I64(r.code, 0);
    CHECK(json_lines_have(r.out, FIELDS));
#if RUNG_HAVE_JANSSON
    char *second = strchr(r.out, '\n');
    if (second) *second = 0;
    CHECK(json_number_of(r.out, "decode_tokens") <= 5);
    CHECK(json_number_of(r.out, "memory_peak_bytes") > 0);
    CHECK(json_number_of(r.out, "memory_predicted_bytes") >= json_number_of(r.out, "memory_peak_bytes"));
#endif
    tool_free(&r);
  }
}

/* Each flag of the sampler chain arrives: it changes what is made, or is refused by its name. */
static void test_sampling(void) {
  static const char *const flags[] = {"--typical 0.3",
                                      "--top-nsigma 0.5",
                                      "--xtc-probability 1 --xtc-threshold 0.001",
                                      "--repeat-penalty 3",
                                      "--presence-penalty 5 --repeat-last-n -1",
                                      "--frequency-penalty 5",
                                      "--dry-multiplier 5 --dry-allowed-length 0",
                                      "--dry-multiplier 5 --dry-allowed-length 0 --dry-sequence-breaker none",
                                      "--logit-bias 5+100",
                                      "--logit-bias 5+20 -l 6+20 -l 7-inf"};
  tool_result plain = tool("generate -m " LLAMA " --ids " TINY "llama.b.ids -n 40 --ignore-eos -s 3 --temp 1.5 --json");
  char *ids = strdup(strstr(plain.out, "\"ids\""));
  strchr(ids, ']')[1] = 0;
  for (size_t i = 0; i < RUNG_COUNT(flags); i++) {
    tool_result r =
        tool("generate -m " LLAMA " --ids " TINY "llama.b.ids -n 40 --ignore-eos -s 3 --temp 1.5 --json %s", flags[i]);
    CHECK_EQ_I64(r.code, 0);
    CHECK(strstr(r.out, "\"ids\"") != NULL && strstr(r.out, ids) == NULL);
    tool_free(&r);
  }
  free(ids);
  tool_free(&plain);
  EXPECT(2, "repeat-penalty", "generate -m x --repeat-penalty 0");
  EXPECT(2, "is no token with a bias", "generate -m " LLAMA " -p Hello --logit-bias 5");
  EXPECT(2, "is no token with a bias", "generate -m " LLAMA " -p Hello --logit-bias 5+inf");
  EXPECT(2, "the vocabulary has", "generate -m " LLAMA " -p Hello --logit-bias 99999+1");
  EXPECT(2, "dry_breakers", "generate -m " LLAMA " -p Hello --dry-multiplier 1 --dry-sequence-breaker ''");
}

/* q8_0 where heads are whole blocks, else refused with both numbers. */
static void test_kv_types(void) {
  static const char *const types[] = {"f16", "f32", "bf16", "q8_0"};
  for (size_t i = 0; i < RUNG_COUNT(types); i++) {
    tool_result r = tool("generate -m " GEMMA " -p Hello -n 5 --temp 0 --kv %s", types[i]);
    CHECK_EQ_I64(r.code, 0);
    tool_free(&r);
  }
  EXPECT(4, "heads of 16 keys as q8_0, which has blocks of 32", "generate -m " LLAMA " -p Hello --kv q8_0");
}

static void test_logprobs(void) {
  tool_result r = tool("generate -m " LLAMA " -p Hello -n 3 --temp 0 --ignore-eos --logprobs 2 --json");
  CHECK_EQ_I64(r.code, 0);
  int tokens = 0, all = 0;
  for (const char *at = r.out; (at = strstr(at, "\"top\"")) != NULL; at++) tokens++;
  for (const char *at = r.out; (at = strstr(at, "\"logprob\": -")) != NULL; at++) all++;
  CHECK_EQ_I64(tokens, 3);
  CHECK_EQ_I64(all, 9);
  tool_free(&r);
}

static void test_ends(void) {
  tool_result none = tool("generate -m " LLAMA " -p Hello -n 0 --json");
  CHECK_EQ_I64(none.code, 0);
  CHECK(strstr(none.out, "\"finish\": \"limit\"") != NULL && strstr(none.out, "\"ids\": []") != NULL);
  tool_free(&none);
  tool_result on = tool("generate -m " LLAMA " -p Hello -c 20 --keep 2 -n 50 --ignore-eos --temp 2 -s 5 --json");
  CHECK_EQ_I64(on.code, 0);
  CHECK(strstr(on.out, "\"finish\": \"limit\"") != NULL);
  tool_free(&on);
  EXPECT(2, "at least 21", "generate -m " LLAMA " -p Hello -c 20 --keep 20");
  tool_result full = tool("generate -m " LLAMA " -p Hello -c 20 --ignore-eos --temp 2 -s 5 --json");
  CHECK_EQ_I64(full.code, 0);
  CHECK(strstr(full.out, "\"finish\": \"context\"") != NULL);
  tool_free(&full);
  EXPECT(2, "raise -c", "generate -m " LLAMA " -p 'a long prompt it is' -c 3");
  /* The text before the stop text and nothing behind; a stop text that comes in pieces is held back. */
  tool_result whole = tool("generate -m " GEMMA " -p Hello -n 30 --temp 0");
  CHECK_EQ_I64(whole.code, 0);
  if (whole.out_bytes > 12) {
    char stop[5] = {0}, path[256];
    memcpy(stop, whole.out + 6, 4);
    snprintf(path, sizeof path, "%s", tool_file("stop"));
    write_file(path, stop);
    const char *at = strstr(whole.out, stop);
    tool_result cut = tool("generate -m " GEMMA " -p Hello -n 30 --temp 0 --stop \"$(cat '%s')\"", path);
    CHECK_EQ_I64(cut.code, 0);
    if (strcspn(stop, "\n") == 4) {
      CHECK(strncmp(cut.out, whole.out, (size_t)(at - whole.out)) == 0);
      CHECK(strstr(cut.out, stop) == NULL);
      CHECK(cut.out_bytes <= (size_t)(at - whole.out) + 1);
    }
    tool_free(&cut);
  }
  tool_free(&whole);
}

static void test_streams(void) {
  tool_result r = tool("generate -m " LLAMA " -p Hello -n 6 --temp 0");
  CHECK(strstr(r.err, "tok/s") != NULL && strstr(r.err, "memory predicted") != NULL); /* the summary */
  tool_result quiet = tool("generate -m " LLAMA " -p Hello -n 6 --temp 0 -q");
  CHECK_STR(quiet.err, "");
  CHECK_STR(quiet.out, r.out);
  tool_result verbose = tool("generate -m " LLAMA " -p Hello -n 6 --temp 0 -v");
  CHECK(strstr(verbose.err, "seed") != NULL);
  tool_free(&r);
  tool_free(&quiet);
  tool_free(&verbose);
}

static void test_budget(void) {
  EXPECT(5, "budget of 102400 bytes", "generate -m " LLAMA " -p Hello --memory 100K");
  EXPECT(5, "lower -n or -c", "generate -m " LLAMA " -p Hello --memory 600K --kv f32");
  EXPECT(0, NULL, "generate -m " LLAMA " -p Hello -n 2 --memory 64M");
}

static void test_devices(void) {
  if (test_slow()) SKIP("too slow here");
  SAME(tool("generate -m " LLAMA " -p Hello -n 4 --temp 0 --quant exact --kv f32 --device ref"),
       tool("generate -m " LLAMA " -p Hello -n 4 --temp 0 --quant exact --kv f32 --device cpu"));
}

int main(void) {
  RUN(test_reproduces);
  RUN(test_prompts);
  RUN(test_sequences);
  RUN(test_json);
  RUN(test_sampling);
  RUN(test_kv_types);
  RUN(test_logprobs);
  RUN(test_ends);
  RUN(test_streams);
  RUN(test_budget);
  RUN(test_devices);
  tool_clean();
  return TEST_END();
}
