/* SPDX-License-Identifier: MIT
 * Fuzz target of the reader of tokenizer.json: whatever the bytes are, a status; a tokeniser that was made encodes any
 * text to ids of its own and decodes them, the same as a whole and token by token.
 *
 * Input: the JSON, then perhaps a zero byte and a text; without it the JSON is the text too. */
#include <stdlib.h>
#include <string.h>

#include "formats/tokenizer_json.h"
#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool condition) {
  if (!condition) abort();
}

static void use(const rung_tokenizer *t, rung_host *host, const char *text, size_t length, unsigned flags) {
  rung_error error;
  rung_ids ids;
  rung_text whole, stream;
  rung_ids_init(&ids, host);
  rung_text_init(&whole, host);
  rung_text_init(&stream, host);
  const rung_status status = rung_tokenizer_encode(t, text, length, flags, &error, &ids);
  /* A pattern may ask for more steps than PCRE2 grants. */
  const bool refused = status == RUNG_OUT_OF_RANGE || (!RUNG_HAVE_PCRE2 && status == RUNG_UNSUPPORTED);
  expect(status == RUNG_OK || (refused && ids.count == 0));
  for (size_t i = 0; i < ids.count; i++) expect(ids.data[i] >= 0 && ids.data[i] < rung_tokenizer_count(t));
  expect(rung_tokenizer_decode(t, ids.data, ids.count, RUNG_DECODE_SPECIAL, &error, &whole) == RUNG_OK);
  expect(rung_utf8_valid_prefix((const uint8_t *)whole.data, whole.length) == whole.length);
  rung_decoder decoder;
  rung_decoder_init(&decoder, t, RUNG_DECODE_SPECIAL);
  for (size_t i = 0; i < ids.count; i++) {
    expect(rung_decoder_push(&decoder, ids.data[i], &error, &stream) == RUNG_OK);
    expect(rung_utf8_valid_prefix((const uint8_t *)stream.data, stream.length) == stream.length);
  }
  expect(rung_decoder_flush(&decoder, &error, &stream) == RUNG_OK);
  expect(stream.length == whole.length && (!whole.length || memcmp(stream.data, whole.data, whole.length) == 0));
  rung_text_finish(&whole);
  rung_text_finish(&stream);
  rung_ids_finish(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char config[] = "{\"bos_token\":\"a\",\"eos_token\":{\"content\":\"b\"},\"model_max_length\":9}";
  const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
  const size_t json = zero ? (size_t)(zero - data) : size;
  const char *text = zero ? (const char *)zero + 1 : (const char *)data;
  const size_t length = zero ? size - json - 1 : size < 256 ? size : 256;
  rung_host *host = NULL;
  if (rung_host_create(NULL, NULL, &host)) return 0;
  const rung_source source = rung_source_memory(data, json), roles = rung_source_memory(config, sizeof config - 1);
  rung_error error = {0};
  rung_tokenizer *t = NULL;
  const rung_status status = rung_tokenizer_json(host, &source, size & 1 ? &roles : NULL, &error, &t);
  expect(status ? error.message[0] != 0 && !t : t != NULL);
  if (t) {
    use(t, host, text, length, RUNG_ENCODE_PARSE_SPECIAL | RUNG_ENCODE_ADD_SPECIAL);
    use(t, host, text, length, 0);
  }
  rung_tokenizer_release(t);
  rung_host_release(host);
  return 0;
}
