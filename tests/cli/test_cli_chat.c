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
  CHECK(strstr(r.err, "there is /reset, /system TEXT and /quit") != NULL);
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
  RUN(test_interrupt);
  tool_clean();
  return TEST_END();
}
