/* SPDX-License-Identifier: MIT
 * Tokens to text as they come: the decoder of src/text with a buffer and the model that it needs. */
#include "models/model.h"

struct rung_stream {
  rung_host *host;
  rung_model *model;
  rung_decoder decoder;
  rung_text text;
};

rung_status rung_stream_create(rung_model *model, unsigned flags, rung_error *error, rung_stream **out_stream) {
  if (!model || !out_stream)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "stream: model and out_stream are required");
  const rung_tokenizer *tokenizer;
  RUNG_TRY(rung_model_tokenizer(model, error, &tokenizer));
  rung_stream *s = rung_host_alloc(model->host, RUNG_MEMORY_host, sizeof *s, 0);
  if (!s) return rung_fail(error, RUNG_OUT_OF_MEMORY, "stream: out of memory");
  rung_host_retain(model->host);
  rung_model_retain(model);
  s->host = model->host;
  s->model = model;
  const unsigned f = (flags & RUNG_STREAM_SPECIAL ? RUNG_DECODE_SPECIAL : 0u) |
                     (flags & RUNG_STREAM_CONTINUE ? RUNG_DECODE_CONTINUE : 0u);
  rung_decoder_init(&s->decoder, tokenizer, f);
  rung_text_init(&s->text, model->host);
  *out_stream = s;
  return RUNG_OK;
}

void rung_stream_destroy(rung_stream *s) {
  if (!s) return;
  rung_host *host = s->host;
  rung_text_finish(&s->text);
  rung_model_release(s->model);
  rung_host_free(host, RUNG_MEMORY_host, s, sizeof *s);
  rung_host_release(host);
}

/* A buffer that failed to grow stays failed; the next call starts with a fresh one. */
static void empty(rung_stream *s) {
  if (s->text.failed) {
    rung_text_finish(&s->text);
    rung_text_init(&s->text, s->host);
  }
  s->text.length = 0;
}

static rung_status give(rung_stream *s, const char **out_text, size_t *out_bytes) {
  *out_text = s->text.length ? s->text.data : "";
  *out_bytes = s->text.length;
  return RUNG_OK;
}

rung_status rung_stream_push(rung_stream *s, int32_t id, rung_error *error, const char **out_text, size_t *out_bytes) {
  if (!s || !out_text || !out_bytes) return rung_fail(error, RUNG_INVALID_ARGUMENT, "stream: an argument is missing");
  empty(s);
  RUNG_TRY(rung_decoder_push(&s->decoder, id, error, &s->text));
  return give(s, out_text, out_bytes);
}

rung_status rung_stream_end(rung_stream *s, rung_error *error, const char **out_text, size_t *out_bytes) {
  if (!s || !out_text || !out_bytes) return rung_fail(error, RUNG_INVALID_ARGUMENT, "stream: an argument is missing");
  empty(s);
  RUNG_TRY(rung_decoder_flush(&s->decoder, error, &s->text));
  return give(s, out_text, out_bytes);
}
