/* SPDX-License-Identifier: MIT
 * The command line itself: help, versions, refusals with the nearest flag or value, exit codes. */
#define _GNU_SOURCE
#include "cli/tool.h"

static const char *const commands[] = {"generate", "tokenize", "logits",     "run", "inspect",
                                       "bench",    "env",      "perplexity", "chat"};

static void test_help(void) {
  for (size_t i = 0; i < RUNG_COUNT(commands); i++) {
    tool_result r = tool("%s --help", commands[i]);
    CHECK_EQ_I64(r.code, 0);
    CHECK(strstr(r.out, "usage: rung ") == r.out);
    CHECK(strstr(r.out, "\nexample:\n  ") != NULL);
    CHECK(strstr(r.out, "--version") != NULL);
    CHECK_STR(r.err, "");
    tool_result same = tool("help %s", commands[i]);
    CHECK_STR(same.out, r.out);
    tool_free(&same);
    tool_free(&r);
  }
  tool_result r = tool("--help");
  CHECK_EQ_I64(r.code, 0);
  for (size_t i = 0; i < RUNG_COUNT(commands); i++) CHECK(strstr(r.out, commands[i]) != NULL);
  tool_free(&r);
  EXPECT(2, "usage: rung", " ");
}

static void test_version(void) {
  tool_result r = tool("--version"), of_command = tool("bench --version");
  CHECK(strncmp(r.out, "rung " RUNG_VERSION_TEXT, strlen("rung " RUNG_VERSION_TEXT)) == 0);
  CHECK_STR(r.out, of_command.out);
  tool_free(&r);
  tool_free(&of_command);
}

static void test_unknown(void) {
  EXPECT(2, "did you mean generate?", "genrate -m x");
  EXPECT(2, "did you mean inspect?", "insp");
  EXPECT(2, "there is no command zzzzzz", "zzzzzz");
  EXPECT(2, "there is no flag --tmp; did you mean --temp?", "generate -m x --tmp 1");
  EXPECT(2, "did you mean --ignore-eos?", "generate -m x --ignore-eso");
  EXPECT(2, "did you mean --model?", "logits --modell x");
  EXPECT(2, "there is no flag --qqqqqqqq", "generate -m x --qqqqqqqq 1");
  EXPECT(2, "\"y.gguf\" is no flag", "inspect x.gguf y.gguf");
  EXPECT(2, "\"x\" is no flag", "env x");
  EXPECT(2, "there is no flag --temp", "tokenize -m x --temp 1"); /* of another command */
}

static void test_values(void) {
  EXPECT(2, "-n: \"abc\" is no whole number", "generate -m x -n abc");
  EXPECT(2, "--top-p: 3 is outside 0..1; the nearest is 1", "generate -m x --top-p 3");
  EXPECT(2, "--temp: \"warm\" is no number", "generate -m x --temp warm");
  EXPECT(2, "the nearest is 0", "generate -m x --temp=-1");
  EXPECT(2, "--temp: \"nan\" is no number", "generate -m x --temp nan");
  EXPECT(2, "--kv: there is no \"f61\"; did you mean f16?", "generate -m x --kv f61");
  EXPECT(2, "did you mean exact?", "logits -m x -o y --quant exakt");
  EXPECT(2, "--memory: \"5Q\" is no number of bytes", "generate -m x --memory 5Q");
  EXPECT(2, "-n needs a value", "generate -m x -n");
  EXPECT(2, "--json takes no value", "generate -m x --json=yes");
  EXPECT(2, "-p: \"\" is no whole number", "bench -m x -p 1,,2");
  EXPECT(2, "-m FILE is missing", "generate -p x");
  EXPECT(2, "bf16", "generate -m x --precision b16");
  EXPECT(2, "-o FILE.npy is missing", "logits -m x -p y");
  EXPECT(2, "a prompt is missing", "generate -m " LLAMA);
  EXPECT(2, "one prompt is needed", "logits -m " LLAMA " -p a -p b -o /dev/null");
}

static void test_later(void) {
  static const char *const later[] = {"quantize", "convert"};
  for (size_t i = 0; i < RUNG_COUNT(later); i++) EXPECT(4, "is not supported yet", "%s -m x", later[i]);
  static const char *const flags[] = {"--no-compile", "--device cuda:0", "--device cuda:1"};
  for (size_t i = 0; i < RUNG_COUNT(flags); i++) EXPECT(4, "is not supported yet", "generate -m x %s", flags[i]);
}

static void test_files(void) {
  EXPECT(3, "No such file", "generate -m /nowhere/model.gguf -p x");
  EXPECT(3, "No such file", "generate /nowhere/model.gguf -p x");
  EXPECT(0, NULL, "inspect " LLAMA);
  write_file(tool_file("bad.gguf"), "GGUF\x03");
  EXPECT(3, "bad.gguf", "generate -m '%s' -p x", tool_file("bad.gguf"));
  EXPECT(3, NULL, "inspect -m '%s'", tool_file("bad.gguf"));
  write_file(tool_file("text"), "neither\n");
  EXPECT(3, "neither a GGUF file nor a model folder nor ONNX nor a text graph", "inspect -m '%s'", tool_file("text"));
  write_file(tool_file("net.onnx"), "\x08\x07");
  EXPECT(3, "the file holds no graph", "run -m '%s'", tool_file("net.onnx"));
  write_file(tool_file("bad.rung"), "rung 1\n%0 = nonsense\n");
  EXPECT(3, "bad.rung", "run -m '%s'", tool_file("bad.rung"));
  write_file(tool_file("ids"), "1 2 three");
  EXPECT(3, "offset 4 is no id", "generate -m " LLAMA " --ids '%s'", tool_file("ids"));
  write_file(tool_file("ids"), "1 100000");
  EXPECT(3, "the vocabulary has 307", "generate -m " LLAMA " --ids '%s'", tool_file("ids"));
}

static void test_full_device(void) {
  char command[512];
  if (access("/dev/full", W_OK)) SKIP("no /dev/full");
  snprintf(command, sizeof command, "'%s' --help >/dev/full 2>/dev/null", tool_path());
  CHECK_EQ_I64(exit_code(system(command)), 1);
}

int main(void) {
  RUN(test_help);
  RUN(test_version);
  RUN(test_unknown);
  RUN(test_values);
  RUN(test_later);
  RUN(test_files);
  RUN(test_full_device);
  tool_clean();
  return TEST_END();
}
