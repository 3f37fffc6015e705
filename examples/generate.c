/* SPDX-License-Identifier: MIT
 * Text generation: generate MODEL.gguf "What is the tallest mountain?" */
#include <rung/rung.h>
#include <stdio.h>
#include <string.h>

static rung_status answer(rung_model *model, const char *question, rung_error *error) {
  char prompt[4096];
  const int n = snprintf(prompt, sizeof prompt, "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n", question);
  if (n < 0 || (size_t)n >= sizeof prompt) return RUNG_INVALID_ARGUMENT;
  rung_generator *generator = NULL;
  rung_stream *stream = NULL;
  int32_t *ids = NULL;
  size_t count = 0;
  rung_status s =
      rung_model_encode(model, prompt, (size_t)n, RUNG_TEXT_ADD_SPECIAL | RUNG_TEXT_PARSE_SPECIAL, error, &ids, &count);
  if (!s) s = rung_generator_create(model, NULL, error, &generator);
  if (!s) s = rung_stream_create(model, RUNG_STREAM_CONTINUE, error, &stream);
  if (!s) s = rung_generator_prompt(generator, 0, ids, count);
  for (int made = 0; made < 200 && !s;) {
    rung_token token;
    const char *text;
    size_t tokens, bytes;
    s = rung_generator_step(generator, &token, &tokens, NULL);
    if (s || !tokens) continue; /* a long prompt is read in several steps */
    if (token.end) break;
    s = rung_stream_push(stream, token.id, error, &text, &bytes);
    if (!s) fwrite(text, 1, bytes, stdout);
    fflush(stdout);
    made++;
  }
  putchar('\n');
  if (s && !error->message[0]) snprintf(error->message, sizeof error->message, "%s", rung_generator_message(generator));
  rung_ids_free(model, ids, count);
  rung_stream_destroy(stream);
  rung_generator_destroy(generator);
  return s;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: generate MODEL.gguf QUESTION\n"), 2;
  rung_error error = {0};
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_model *model = NULL;
  const rung_source file = rung_source_path(argv[1]);
  rung_status s = rung_host_create(NULL, &error, &host);
  if (!s) s = rung_device_create(host, "cpu", NULL, &error, &device);
  if (!s) s = rung_model_open(device, &file, NULL, &error, &model);
  if (!s) s = answer(model, argv[2], &error);
  if (s) fprintf(stderr, "%s: %s\n", rung_status_text(s), error.message);
  rung_model_release(model);
  rung_device_release(device);
  rung_host_release(host);
  return s ? 1 : 0;
}
