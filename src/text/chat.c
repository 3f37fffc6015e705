/* SPDX-License-Identifier: MIT
 * The public interface of chat templates. */
#include "text/chat.h"

#include <string.h>

#include "base/clock.h"

enum { MOST_DEPTH = 4000 };

rung_status rung_chat_template_create(rung_host *host, const char *text, size_t bytes, rung_error *error,
                                      rung_chat_template **out_template) {
  if (!host || (!text && bytes) || !out_template)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "chat template: host, text and out_template are required");
  return rung_jtemplate_create(host, text ? text : "", bytes, error, out_template);
}
void rung_chat_template_retain(rung_chat_template *t) { rung_jtemplate_retain(t); }
void rung_chat_template_release(rung_chat_template *t) { rung_jtemplate_release(t); }
const char *rung_chat_template_text(const rung_chat_template *t, size_t *out_bytes) {
  return rung_jtemplate_source(t, out_bytes);
}

rung_chat_input rung_chat_input_default(void) {
  return (rung_chat_input){.size = sizeof(rung_chat_input),
                           .add_generation_prompt = true,
                           .now = INT64_MIN,
                           .steps = 100000000,
                           .bytes = UINT64_C(256) << 20,
                           .depth = 1000};
}

static rung_status check(const rung_chat_input *input, rung_error *error) {
  if (input->size != sizeof *input)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "chat: input.size is %zu, expected %zu", input->size, sizeof *input);
  if (!input->messages) return rung_fail(error, RUNG_INVALID_ARGUMENT, "chat: messages are required");
  if (input->depth < 1 || input->depth > MOST_DEPTH)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "chat: depth is %d, expected 1 to %d", input->depth, MOST_DEPTH);
  return RUNG_OK;
}

static rung_jvariable json_variable(const char *name, const char *json) {
  return (rung_jvariable){.name = name, .json = json ? json : "null", .json_bytes = json ? strlen(json) : 4};
}

rung_status rung_chat_render_with(const rung_chat_template *t, const rung_chat_input *input,
                                  const rung_jvariable *token, size_t count, rung_error *error, char **out_text,
                                  size_t *out_bytes) {
  RUNG_TRY(check(input, error));
  rung_jvariable variable[RUNG_CHAT_TOKENS + 6];
  size_t n = 0;
  while (n < count && n < RUNG_CHAT_TOKENS) variable[n] = token[n], n++;
  const struct { const char *name, *text; } own[] = {{"bos_token", input->bos_token}, {"eos_token", input->eos_token}};
  for (size_t i = 0; i < RUNG_COUNT(own); i++)
    if (own[i].text)
      variable[n++] = (rung_jvariable){.name = own[i].name, .text = own[i].text, .text_bytes = strlen(own[i].text)};
  variable[n++] = json_variable("messages", input->messages);
  variable[n++] = json_variable("tools", input->tools);
  variable[n++] = json_variable("documents", input->documents);
  variable[n++] = json_variable("add_generation_prompt", input->add_generation_prompt ? "true" : "false");
  const rung_jlimits limits = {input->steps, input->bytes, input->depth};
  const int64_t now = input->now == INT64_MIN ? rung_clock_local() : input->now;
  return rung_jtemplate_render(t, variable, n, input->variables, now, &limits, error, out_text, out_bytes);
}

rung_status rung_chat_render(const rung_chat_template *t, const rung_chat_input *input, rung_error *error,
                             char **out_text, size_t *out_bytes) {
  if (!t || !input || !out_text || !out_bytes)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "chat: an argument is missing");
  return rung_chat_render_with(t, input, NULL, 0, error, out_text, out_bytes);
}
