/* SPDX-License-Identifier: MIT
 * A model's own chat template and special tokens, from GGUF metadata and from folders; a slot that is rewound goes on as
 * one that never held more. */
#define _GNU_SOURCE
#include <rung/chat.h>
#include <rung/graph.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tiny_world.h"

#define FOLDER RUNG_SOURCE_DIR "/tests/models/tiny/llama-f32"
static const char messages[] = "[{\"role\": \"user\", \"content\": \"Hi\"}]";

/* Renders with the model's own template (or `source`); the text or the message. */
static void expect(tiny *t, const char *source, const char *tools, rung_status want, const char *said) {
  rung_chat_template *own = NULL;
  rung_chat_input input = rung_chat_input_default();
  char *text = NULL;
  size_t bytes = 0;
  input.messages = messages;
  input.tools = tools;
  if (source) CHECK_OK(rung_chat_template_create(t->host, source, strlen(source), NULL, &own));
  const rung_status status = rung_model_chat_render(t->model, own, &input, &t->error, &text, &bytes);
  CHECK_STATUS(status, want);
  if (status)
    CHECK(strstr(t->error.message, said) != NULL);
  else
    CHECK_STR(text, said);
  rung_text_free(t->host, text, bytes);
  rung_chat_template_release(own);
}

static void test_gguf(void) {
  tiny t;
  rung_chat_template *own = NULL;
  if (!tiny_open(&t, tiny_paths[0], 1)) return;
  expect(&t, NULL, NULL, RUNG_OK, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  expect(&t, NULL, "[1]", RUNG_OK, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  expect(&t, "{{ bos_token }}|{{ eos_token }}|{{ pad_token }}|{{ sep_token is defined }}", NULL, RUNG_OK,
         "<|im_start|>|<|im_end|>|<|im_end|>|False");
  CHECK_STATUS(rung_model_chat_template(t.model, "rag", &t.error, &own), RUNG_NOT_FOUND);
  CHECK_STATUS(rung_model_chat_template(t.model, "a/b", &t.error, &own), RUNG_INVALID_ARGUMENT);
  CHECK_OK(rung_model_chat_template(t.model, "default", &t.error, &own));
  size_t bytes;
  CHECK(strncmp(rung_chat_template_text(own, &bytes), "{% for message", 14) == 0 && bytes > 100);
  rung_chat_template_release(own);
  tiny_close(&t);
  if (!tiny_open(&t, tiny_paths[1], 1)) return;
  expect(&t, NULL, NULL, RUNG_NOT_FOUND, "the model has no chat template");
  tiny_close(&t);
}

static void put(const char *folder, const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  if (!file || fputs(text, file) < 0 || fclose(file)) perror(path), exit(1);
}

static void with_folder(const char *folder, const char *tools, rung_status want, const char *said) {
  tiny t;
  if (tiny_open(&t, folder, 1)) expect(&t, NULL, tools, want, said);
  tiny_close(&t);
}

static void test_folder(void) {
  char folder[] = "/tmp/rung-chat-XXXXXX", command[1024], path[512];
  if (!mkdtemp(folder)) perror(folder), exit(1);
  snprintf(command, sizeof command, "cp '" FOLDER "/config.json' '" FOLDER "/model.safetensors' '%s'", folder);
  CHECK(system(command) == 0);
  with_folder(folder, NULL, RUNG_NOT_FOUND, "the model has no chat template");
  put(folder, "tokenizer_config.json",
      "{\"chat_template\": \"{{ bos_token }}{{ eos_token }}\\n{{ messages[0].content }}\", \"bos_token\": \"<s>\","
      " \"eos_token\": {\"content\": \"</s>\", \"lstrip\": false}}");
  with_folder(folder, NULL, RUNG_OK, "<s></s>\nHi");
  put(folder, "tokenizer_config.json",
      "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"T{{ tools }}\"},"
      " {\"name\": \"default\", \"template\": \"D{{ unk_token }}\"}]}");
  put(folder, "special_tokens_map.json", "{\"unk_token\": \"<unk>\"}");
  with_folder(folder, NULL, RUNG_OK, "D<unk>");
  with_folder(folder, "[1]", RUNG_OK, "T[1]");
  put(folder, "chat_template.jinja", "file {{ unk_token }}\n");
  with_folder(folder, NULL, RUNG_OK, "file <unk>");
  snprintf(path, sizeof path, "%s/additional_chat_templates", folder);
  CHECK(mkdir(path, 0755) == 0);
  put(folder, "additional_chat_templates/tool_use.jinja", "more");
  with_folder(folder, "[1]", RUNG_OK, "more");
  put(folder, "chat_template.jinja", "\n{% if %}");
  with_folder(folder, NULL, RUNG_CORRUPT_FILE, "chat_template.jinja: chat template: line 2");
  put(folder, "tokenizer_config.json", "{\"chat_template\": 5}");
  snprintf(path, sizeof path, "%s/chat_template.jinja", folder);
  CHECK(unlink(path) == 0);
  with_folder(folder, NULL, RUNG_CORRUPT_FILE, "chat_template is a number");
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  CHECK(system(command) == 0);
}

/* Every allocation of a render fails once; nothing stays behind. */
static void test_every_allocation_may_fail(void) {
  tiny t;
  if (!tiny_open(&t, tiny_paths[0], 1)) return;
  rung_chat_input input = rung_chat_input_default();
  char *text = NULL;
  size_t bytes = 0;
  input.messages = messages;
  CHECK_OK(rung_model_chat_render(t.model, NULL, &input, &t.error, &text, &bytes)); /* makes the tokeniser */
  rung_text_free(t.host, text, bytes);
  const uint64_t before = rung_host_memory(t.host).host;
  bool done = false;
  for (int64_t n = 1; n < 1000 && !done; n++) {
    test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = n};
    rung_host_set_fault(t.host, test_fault_hit, &fault);
    const rung_status status = rung_model_chat_render(t.model, NULL, &input, &t.error, &text, &bytes);
    rung_host_set_fault(t.host, NULL, NULL);
    done = !status;
    if (status) CHECK_STATUS(status, RUNG_OUT_OF_MEMORY);
    if (done) rung_text_free(t.host, text, bytes);
    CHECK_EQ_I64(rung_host_memory(t.host).host, before);
  }
  CHECK(done);
  tiny_close(&t);
}

int main(void) {
  RUN(test_gguf);
  RUN(test_folder);
  RUN(test_every_allocation_may_fail);
  return TEST_END();
}
