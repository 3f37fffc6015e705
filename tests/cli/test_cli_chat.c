/* SPDX-License-Identifier: MIT
 * rung chat and rung generate --chat: the model's template is applied, only new tokens are read, commands, messages of
 * several lines, an answer that is interrupted. */
#define _GNU_SOURCE
#include <signal.h>

#include "cli/tool.h"
#include "models/fetched.h"

static void test_generate_applies_the_template(void) {
  write_file(tool_file("chatml"), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  tool_result plain = tool("generate -m " LLAMA " -f '%s' -n 8 --temp 0 --json", tool_file("chatml"));
  tool_result chat = tool("generate -m " LLAMA " -p Hi --chat -n 8 --temp 0 --json");
  CHECK_EQ_I64(plain.code, 0);
  CHECK_EQ_I64(chat.code, 0);
  const char *a = strstr(plain.out, "\"ids\""), *b = strstr(chat.out, "\"ids\"");
  CHECK(a && b && strcspn(a, "]") == strcspn(b, "]") && strncmp(a, b, strcspn(a, "]")) == 0);
  tool_free(&plain);
  tool_free(&chat);
  EXPECT(2, "--system needs --chat", "generate -m " LLAMA " -p x --system y");
  EXPECT(3, "the model has no chat template", "generate -m " GEMMA " -p x --chat");
  EXPECT(3, "the model has no chat template", "chat -m " GEMMA " </dev/null");
}

static void test_conversation(void) {
  write_file(tool_file("talk"),
             "Hello\nAnd \\\nagain\n\n/reset\nHello\n/system Be brief.\n\"\"\"\na\nb\n\"\"\"\n/what\n/quit\nnever\n");
  tool_result r = tool("chat -m " LLAMA " --temp 0 -n 4 -v <'%s'", tool_file("talk"));
  tool_result same = tool("chat -m " LLAMA " --temp 0 -n 4 -q <'%s'", tool_file("talk"));
  CHECK_EQ_I64(r.code, 0);
  CHECK_STR(r.out, same.out);
  CHECK(strstr(r.err, "\"/what\" is no command; there are /reset, /system TEXT and /quit") != NULL);
  CHECK(strstr(same.err, "\"/what\" is no command") !=
        NULL); /* a line that is not answered is never passed over in silence */
  /* The second turn goes on from the first one; /reset and /system begin anew. */
  int turns = 0, whole = 0, fresh, all;
  for (const char *at = r.err; (at = strstr(at, " tokens are new")) != NULL; at++, turns++) {
    const char *line = at;
    while (line > r.err && line[-1] != '\n') line--;
    CHECK(sscanf(line, "%d of %d", &fresh, &all) == 2);
    CHECK(turns == 1 ? fresh < all - 10 : fresh == all);
    whole += fresh == all;
  }
  CHECK_EQ_I64(turns, 4);
  CHECK_EQ_I64(whole, 3);
  tool_free(&r);
  tool_free(&same);
  EXPECT(1, "raise -c", "chat -m " LLAMA " -c 16 <'%s'", tool_file("talk"));
}

/* How many lines a text has, each an answer. */
static int answers(const char *text) {
  int lines = 0;
  for (; *text; text++) lines += *text == '\n';
  return lines;
}

static void expect_answers(int want, const char *messages, const char *flags) {
  write_file(tool_file("said"), messages);
  tool_result r = tool("chat -m " LLAMA " --temp 0 -n 2 --json %s <'%s'", flags, tool_file("said"));
  CHECK_EQ_I64(r.code, 0);
  CHECK_EQ_I64(answers(r.out), want);
  if (want)
    CHECK(json_lines_have(r.out,
                          "text ids finish prompt_tokens kept_tokens prompt_tokens_per_second decode_tokens "
                          "decode_tokens_per_second seed"));
  tool_free(&r);
}

static void test_what_is_a_message(void) {
  expect_answers(0, "", "");
  expect_answers(1, "no line end", "");
  expect_answers(0, "\n\n", "");
  expect_answers(1, "\r\nHello\r\n/quit\r\nnever\r\n", ""); /* lines of Windows */
  expect_answers(1, "\"\"\"\n/quit\n\"\"\"\n", "");         /* no command between quotes */
  expect_answers(1, "\"\"\"\nnever closed", "");
  expect_answers(0, "/usr/bin is a folder\n/systemx\n/system\n", "");
  expect_answers(3, "Third\n", "-p First -p Second"); /* those of the command line come first */
  expect_answers(1, "", "-p First --logprobs 2");
  EXPECT(2, "an empty message", "chat -m " LLAMA " -p '' </dev/null");
  EXPECT(1, "standard input", "chat -m " LLAMA " <&-");
}

static void test_flags_as_in_generate(void) {
  tool_result none = tool("chat -m " LLAMA " -p Hi -n 0 --json </dev/null");
  CHECK_EQ_I64(none.code, 0);
  CHECK(strstr(none.out, "\"ids\": []") != NULL && strstr(none.out, "\"finish\": \"limit\"") != NULL);
  tool_result once = tool("generate -m " LLAMA " --chat -p Hi -n 6 --temp 0 --ignore-eos --logprobs 1 --json");
  tool_result said = tool("chat -m " LLAMA " -p Hi -n 6 --temp 0 --ignore-eos --logprobs 1 --json </dev/null");
  const char *end = strstr(once.out, "\"finish\"");
  CHECK(end && strncmp(once.out, said.out, (size_t)(end - once.out)) == 0);
  tool_result full = tool("chat -m " LLAMA " -p Hi -c 40 --temp 0 --ignore-eos --json </dev/null");
  CHECK(strstr(full.out, "\"finish\": \"context\"") != NULL);
  tool_result more = tool("chat -m " LLAMA " -p Hi -c 40 -n 60 --keep 4 --temp 0 --ignore-eos --json </dev/null");
  CHECK(strstr(more.out, "\"decode_tokens\": 60") != NULL && strstr(more.out, "\"finish\": \"limit\"") != NULL);
  tool_free(&none);
  tool_free(&once);
  tool_free(&said);
  tool_free(&full);
  tool_free(&more);
}

/* A template that raises refuses the conversation, not the file. */
static void test_refused_by_the_template(void) {
  char folder[256];
  snprintf(folder, sizeof folder, "%s", tool_file("model"));
  char command[1024];
  snprintf(command, sizeof command,
           "mkdir '%s' && cp " TINY "llama-f32/config.json " TINY "llama-f32/model.safetensors '%s'", folder, folder);
  CHECK_EQ_I64(system(command), 0);
  write_file(tool_file("model/chat_template.jinja"), "\n{{ raise_exception('roles must alternate') }}");
  EXPECT(1, "line 2: the call raise_exception: roles must alternate", "generate -m '%s' --chat -p x", folder);
  EXPECT(1, "roles must alternate", "chat -m '%s' -p x </dev/null", folder);
  write_file(tool_file("model/chat_template.jinja"), "{% block x %}");
  EXPECT(4, "block", "generate -m '%s' --chat -p x", folder);
  write_file(tool_file("model/chat_template.jinja"), "{% if");
  EXPECT(3, "chat_template.jinja", "chat -m '%s' -p x </dev/null", folder);
}

/* Ctrl-C while an answer comes ends the answer; the next message is answered; the end of the input ends the program. */
static void test_interrupt(void) {
  char model[512];
  if (test_slow() || !fetched_model("smollm2", model, sizeof model)) SKIP("the model that answers long enough");
  int to[2], from[2];
  if (pipe(to) || pipe(from)) perror("pipe"), exit(1);
  const pid_t child = fork();
  if (!child) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    close(to[1]);
    close(from[0]);
    signal(SIGINT, SIG_DFL);
    /* The tokens that end a turn are forbidden, so that the first answer does not end by itself. */
    execl(tool_path(), "rung", "chat", "-m", model, "-q", "--temp", "0", "-c", "8192", "-l", "2-inf", "-l", "0-inf",
          NULL);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  char text[4096];
  CHECK(write(to[1], "Count\n", 6) == 6);
  CHECK(read(from[0], text, sizeof text) > 0);
  CHECK(kill(child, SIGINT) == 0);
  ssize_t got;
  bool ended = false;
  while (!ended && (got = read(from[0], text, sizeof text)) > 0)
    ended = text[got - 1] == '\n' || memchr(text, '\n', (size_t)got);
  usleep(200000);
  CHECK(write(to[1], "/quit\n", 6) == 6);
  close(to[1]);
  while (read(from[0], text, sizeof text) > 0) continue;
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ_I64(exit_code(status), 0);
  close(from[0]);
}

int main(void) {
  RUN(test_generate_applies_the_template);
  RUN(test_conversation);
  RUN(test_what_is_a_message);
  RUN(test_flags_as_in_generate);
  RUN(test_refused_by_the_template);
  RUN(test_interrupt);
  tool_clean();
  return TEST_END();
}
