/* SPDX-License-Identifier: MIT
 * Chat templates render byte for byte what Python's jinja2 renders, and refuse where it raises: small templates of our
 * own, and those of the llama-cpp-python source distribution over many conversations. See tests/templates/README.md. */
#include <rung/rung.h>
#include <unistd.h>

#include "models/fetched.h"
#include "test.h"
#include "text/json.h"

#define FOLDER RUNG_SOURCE_DIR "/tests/templates/"
enum { NOW = 1721999999, MOST = 64 };

static char *read_file(const char *path, size_t *out_bytes) {
  FILE *file = fopen(path, "rb");
  char *data = malloc(1 << 22);
  *out_bytes = file && data ? fread(data, 1, (1 << 22) - 1, file) : 0;
  if (!*out_bytes) fprintf(stderr, "%s cannot be read\n", path), exit(1);
  fclose(file);
  data[*out_bytes] = 0;
  return data;
}

static rung_json parse(const char *text, size_t bytes) {
  rung_json json = {0};
  rung_error error = {0};
  CHECK_OK(rung_json_check(text, bytes, 0, &error, &json));
  return json;
}

/* A terminated copy of a value; NULL where there is none. */
static char *copy_of(rung_json json) {
  if (!json.text) return NULL;
  char *copy = malloc(json.length + 1);
  memcpy(copy, json.text, json.length);
  copy[json.length] = 0;
  return copy;
}

static rung_host *host;

static void test_pieces(void) {
  size_t bytes, json_bytes, variable_bytes;
  char *pieces = read_file(FOLDER "pieces.txt", &bytes), *texts = read_file(FOLDER "pieces.json", &json_bytes);
  char *variables = read_file(FOLDER "variables.json", &variable_bytes);
  rung_json_walk walk = rung_json_begin(parse(texts, json_bytes));
  rung_json want;
  int count = 0;
  for (char *piece = pieces, *next; piece; piece = next, count++) {
    char *end = strstr(piece, "\n---\n");
    next = end ? end + 5 : NULL;
    const size_t length = end ? (size_t)(end - piece) : strlen(piece);
    CHECK(rung_json_next(&walk, NULL, &want));
    rung_error error = {0};
    rung_chat_template *t = NULL;
    char *text = NULL;
    size_t got = 0;
    rung_status status = rung_chat_template_create(host, piece, length, &error, &t);
    rung_chat_input input = rung_chat_input_default();
    input.messages = "[]";
    input.variables = variables;
    input.now = NOW;
    if (!status) status = rung_chat_render(t, &input, &error, &text, &got);
    const bool raises = rung_json_kind_of(want) == RUNG_JSON_NULL;
    char *expected = malloc(want.length + 1);
    const size_t expected_bytes = rung_json_string(want, expected, want.length);
    test_state.checks++;
    if (raises ? !status : status || got != expected_bytes || memcmp(text, expected, got) != 0)
      TEST_FAIL_("%.*s\n  gives %s, expected %.*s", (int)length, piece, status ? error.message : text, (int)want.length,
                 want.text);
    if (status) CHECK(strncmp(error.message, "chat template: line ", 20) == 0);
    free(expected);
    rung_text_free(host, text, got);
    rung_chat_template_release(t);
  }
  CHECK(!rung_json_next(&walk, NULL, &want));
  CHECK(count > 150);
  free(pieces);
  free(texts);
  free(variables);
}

static uint64_t digest_of(const char *text, size_t bytes) {
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < bytes; i++) h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001B3);
  return h;
}

typedef struct conversation {
  char *name, *messages, *tools, *documents, *variables;
  bool prompt;
} conversation;

/* "-" where it raises. */
static void render_one(const rung_chat_template *t, const conversation *c, const char *file, const char *want) {
  rung_error error = {0};
  rung_chat_input input = rung_chat_input_default();
  char *text = NULL, got[32] = "-";
  size_t bytes = 0;
  input.messages = c->messages;
  input.tools = c->tools;
  input.documents = c->documents;
  input.variables = c->variables;
  input.add_generation_prompt = c->prompt;
  input.bos_token = "<BOS>";
  input.eos_token = "<EOS>";
  input.now = NOW;
  const rung_status status = rung_chat_render(t, &input, &error, &text, &bytes);
  if (!status) snprintf(got, sizeof got, "%016llx", (unsigned long long)digest_of(text, bytes));
  test_state.checks++;
  if (strcmp(got, want) != 0)
    TEST_FAIL_("%s %s gives %s, not %s: %s", file, c->name, got, want, status ? error.message : text);
  if (status) CHECK(strncmp(error.message, "chat template: line ", 20) == 0);
  /* Some templates call themselves without end (RecursionError), or ask for a filter that jinja2 has not either. */
  const bool endless = status == RUNG_OUT_OF_RANGE && strstr(error.message, "nested more than");
  const bool unknown = status == RUNG_UNSUPPORTED && strstr(error.message, "is not known");
  if (status && status != RUNG_INVALID_ARGUMENT && !endless && !unknown)
    TEST_FAIL_("%s %s: %s", file, c->name, error.message);
  rung_text_free(host, text, bytes);
}

static void test_fixtures(void) {
  char folder[512], path[1024], file[128], want[32];
  if (!fetched_model("llama-cpp-src", folder, sizeof folder)) SKIP("scripts/models.py fetch llama-cpp-src");
  size_t bytes;
  char *json = read_file(FOLDER "conversations.json", &bytes);
  conversation all[MOST];
  size_t count = 0;
  rung_json_walk walk = rung_json_begin(parse(json, bytes));
  for (rung_json c; count < MOST && rung_json_next(&walk, NULL, &c); count++)
    all[count] = (conversation){
        copy_of(rung_json_find(c, "name", NULL)),      copy_of(rung_json_find(c, "messages", NULL)),
        copy_of(rung_json_find(c, "tools", NULL)),     copy_of(rung_json_find(c, "documents", NULL)),
        copy_of(rung_json_find(c, "variables", NULL)), !rung_json_find(c, "add_generation_prompt", NULL).text};
  FILE *expect = fopen(FOLDER "expect.txt", "r");
  int templates = 0;
  while (expect && fscanf(expect, "%127s", file) == 1) {
    snprintf(path, sizeof path, "%.500s/vendor/llama.cpp/models/templates/%s", folder, file);
    char *source = read_file(path, &bytes);
    rung_error error = {0};
    rung_chat_template *t = NULL;
    CHECK_OK(rung_chat_template_create(host, source, bytes, &error, &t));
    for (size_t i = 0; i < count && fscanf(expect, "%31s", want) == 1; i++)
      if (t) render_one(t, &all[i], file, want);
    rung_chat_template_release(t);
    free(source);
    templates++;
  }
  CHECK(templates >= 70 && count >= 40);
  if (expect) fclose(expect);
  for (size_t i = 0; i < count; i++)
    free(all[i].name), free(all[i].messages), free(all[i].tools), free(all[i].documents), free(all[i].variables);
  free(json);
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  const uint64_t before = rung_host_memory(host).host;
  RUN(test_pieces);
  RUN(test_fixtures);
  CHECK_EQ_I64(rung_host_memory(host).host, before);
  rung_host_release(host);
  return TEST_END();
}
