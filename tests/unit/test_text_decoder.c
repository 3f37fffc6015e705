/* SPDX-License-Identifier: MIT
 * Decoding: never half a character, wherever the ids are cut; what is no text becomes U+FFFD. */
#include "test_text_helper.h"
#include "text/utf8.h"

static toy vocabulary;

enum { BYTE = 3, BLANK = 259, HELLO, HALF, USER, UNUSED, UNDEFINED };

static rung_tokenizer *make(rung_host *host) {
  memset(&vocabulary, 0, sizeof vocabulary);
  toy_add(&vocabulary, "<unk>", RUNG_TOKEN_UNKNOWN, 0);
  toy_add(&vocabulary, "<s>", RUNG_TOKEN_CONTROL, 0);
  toy_add(&vocabulary, "</s>", RUNG_TOKEN_CONTROL, 0);
  toy_add_byte_tokens(&vocabulary);
  toy_add(&vocabulary, "\xE2\x96\x81", RUNG_TOKEN_NORMAL, -1);
  toy_add(&vocabulary, "\xE2\x96\x81hello\xE2\x96\x81\xC3\xA9", RUNG_TOKEN_NORMAL, -1);
  toy_add(&vocabulary, "x\xE6\x97", RUNG_TOKEN_NORMAL, -1); /* ends in half a character */
  toy_add(&vocabulary, "<\xE2\x96\x81>", RUNG_TOKEN_USER_DEFINED, -1);
  toy_add(&vocabulary, "unused", RUNG_TOKEN_UNUSED, -1);
  toy_add(&vocabulary, "undefined", RUNG_TOKEN_UNDEFINED, -1);
  rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
  d.add_space_prefix = RUNG_CHOICE_NO;
  rung_tokenizer *t = NULL;
  CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
  return t;
}

static void decode(const int32_t *ids, size_t count, unsigned flags, const char *want) {
  rung_host *host = toy_host();
  rung_tokenizer *t = make(host);
  rung_text text;
  rung_text_init(&text, host);
  rung_text_puts(&text, "> "); /* what is there stays */
  CHECK_OK(rung_tokenizer_decode(t, ids, count, flags, NULL, &text));
  CHECK_STR(text.data + 2, want);
  CHECK(memcmp(text.data, "> ", 2) == 0);
  rung_text_finish(&text);
  rung_tokenizer_release(t);
  rung_host_release(host);
}
#define DECODE(flags, want, ...)                 \
  do {                                           \
    const int32_t list[] = {__VA_ARGS__};        \
    decode(list, RUNG_COUNT(list), flags, want); \
  } while (0)

static void test_kinds(void) {
  DECODE(0, " hello \xC3\xA9", HELLO);
  DECODE(0, " ", BLANK);
  DECODE(0, "<\xE2\x96\x81>", USER); /* as it is spelled */
  DECODE(0, " ", 0, 1, 2, UNUSED, UNDEFINED, BLANK);
  DECODE(RUNG_DECODE_SPECIAL, "<unk><s></s> ", 0, 1, 2, UNUSED, BLANK);
  DECODE(0, "A\n", BYTE + 'A', BYTE + '\n');
}

static void test_characters_from_bytes(void) {
  DECODE(0, "\xE6\x97\xA5", BYTE + 0xE6, BYTE + 0x97, BYTE + 0xA5);
  DECODE(0, "\xF0\x9F\x98\x80!", BYTE + 0xF0, BYTE + 0x9F, BYTE + 0x98, BYTE + 0x80, BYTE + '!');
  DECODE(0, "x\xE6\x97\xA5", HALF, BYTE + 0xA5);
  DECODE(0, "x\xEF\xBF\xBD hello \xC3\xA9", HALF, HELLO); /* one sign for the longest beginning */
  DECODE(0, "x\xEF\xBF\xBD", HALF);
  DECODE(0, "x\xEF\xBF\xBDx\xEF\xBF\xBD", HALF, HALF);
  DECODE(0,
         "\xEF\xBF\xBD\xEF\xBF\xBD"
         "a",
         BYTE + 0xFF, BYTE + 0x80, BYTE + 'a');
  DECODE(0, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", BYTE + 0xED, BYTE + 0xA0, BYTE + 0x80); /* a surrogate */
  DECODE(RUNG_DECODE_BYTES, "x\xE6\x97\xFF", HALF, BYTE + 0xFF);
  DECODE(0, "x\xE6\x97\xA5", HALF, 1, UNUSED, BYTE + 0xA5); /* silent tokens are nothing in between */
  DECODE(RUNG_DECODE_SPECIAL, "x\xEF\xBF\xBD<s>\xEF\xBF\xBD", HALF, 1, BYTE + 0xA5);
}

/* Random ids, one at a time: whole characters after every push, and in all the same text as at once. */
static void test_streams(void) {
  rung_host *host = toy_host();
  rung_tokenizer *t = make(host);
  uint64_t seed = 6;
  for (int round = 0; round < 4000; round++) {
    int32_t ids[40];
    const size_t count = (size_t)test_below(&seed, 40);
    static const uint8_t common[] = {0xE6, 0x97, 0xA5, 0xF0, 0x9F, 0x98, 0x80, 0xC3, 0xA9, 'a', 0xED, 0xE2, 0x96, 0x81};
    for (size_t i = 0; i < count; i++)
      ids[i] = test_below(&seed, 4) ? BYTE + common[test_below(&seed, sizeof common)]
                                    : (int32_t)test_below(&seed, rung_tokenizer_count(t));
    rung_text whole, raw, stream;
    rung_text_init(&whole, host);
    rung_text_init(&raw, host);
    rung_text_init(&stream, host);
    CHECK_OK(rung_tokenizer_decode(t, ids, count, 0, NULL, &whole));
    CHECK_OK(rung_tokenizer_decode(t, ids, count, RUNG_DECODE_BYTES, NULL, &raw));
    rung_decoder decoder;
    rung_decoder_init(&decoder, t, RUNG_DECODE_CONTINUE);
    for (size_t i = 0; i < count; i++) {
      CHECK_OK(rung_decoder_push(&decoder, ids[i], NULL, &stream));
      CHECK_EQ_I64(rung_utf8_valid_prefix((const uint8_t *)stream.data, stream.length), stream.length);
    }
    CHECK_OK(rung_decoder_flush(&decoder, NULL, &stream));
    CHECK(stream.length == whole.length && (!whole.length || memcmp(stream.data, whole.data, whole.length) == 0));
    if (rung_utf8_valid_prefix((const uint8_t *)raw.data, raw.length) == raw.length)
      CHECK(raw.length == whole.length && (!raw.length || memcmp(raw.data, whole.data, whole.length) == 0));
    rung_text_finish(&whole);
    rung_text_finish(&raw);
    rung_text_finish(&stream);
  }
  rung_tokenizer_release(t);
  rung_host_release(host);
}

static void test_ids_outside(void) {
  rung_host *host = toy_host();
  rung_tokenizer *t = make(host);
  rung_text text;
  rung_text_init(&text, host);
  const int32_t bad[] = {-1, INT32_MIN, INT32_MAX, (int32_t)vocabulary.count};
  for (size_t i = 0; i < RUNG_COUNT(bad); i++) {
    rung_error error;
    CHECK_STATUS(rung_tokenizer_decode(t, &bad[i], 1, 0, &error, &text), RUNG_OUT_OF_RANGE);
    CHECK(strstr(error.message, "vocabulary") != NULL);
  }
  CHECK_EQ_I64(text.length, 0);
  CHECK_OK(rung_tokenizer_decode(t, NULL, 0, 0, NULL, &text));
  rung_text_finish(&text);
  rung_tokenizer_release(t);
  rung_host_release(host);
}

/* The byte alphabet of byte-level BPE: each of the 256 bytes has a character and comes back from it. Without PCRE2 ids are
 * decoded too, only texts are refused. */
static void test_byte_alphabet(void) {
  memset(&vocabulary, 0, sizeof vocabulary);
  for (uint32_t c = 33; c < 324; c++) { /* of these, 256 stand for bytes */
    if (c == 127) continue;             /* one byte, but means itself */
    uint8_t bytes[4];
    const int n = rung_utf8_write(c, bytes);
    toy_add_bytes(&vocabulary, (const char *)bytes, (size_t)n, RUNG_TOKEN_NORMAL, 0);
  }
  toy_add(&vocabulary, "\xE6\x97\xA5", RUNG_TOKEN_NORMAL, 0); /* not of the alphabet: means itself */
  rung_tokenizer_desc d = toy_desc(&vocabulary, "gpt2");
  rung_host *host = toy_host();
  rung_tokenizer *t = NULL;
  CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
  bool seen[256] = {false};
  for (int32_t id = 0; id < (int32_t)vocabulary.count - 1; id++) {
    rung_text text;
    rung_text_init(&text, host);
    CHECK_OK(rung_tokenizer_decode(t, &id, 1, RUNG_DECODE_BYTES, NULL, &text));
    if (text.length == 1) { /* 127 to 160 and 173 are no members and come out as two bytes */
      CHECK(!seen[(uint8_t)text.data[0]]);
      seen[(uint8_t)text.data[0]] = true;
      rung_ids ids;
      rung_ids_init(&ids, host);
      if ((uint8_t)text.data[0] < 0x80) {
        rung_error error = {0};
        const rung_status status = rung_tokenizer_encode(t, text.data, 1, 0, &error, &ids);
        CHECK_STATUS(status, toy_has_pcre2() ? RUNG_OK : RUNG_UNSUPPORTED);
        if (status)
          CHECK(strstr(error.message, "needs PCRE2") != NULL);
        else
          CHECK(ids.count == 1 && ids.data[0] == id);
      }
      rung_ids_finish(&ids);
    }
    rung_text_finish(&text);
  }
  for (int b = 0; b < 256; b++) CHECK(seen[b]);
  const int32_t last = (int32_t)vocabulary.count - 1;
  rung_text text;
  rung_text_init(&text, host);
  CHECK_OK(rung_tokenizer_decode(t, &last, 1, 0, NULL, &text));
  CHECK_STR(text.data, "\xE6\x97\xA5");
  rung_text_finish(&text);
  rung_tokenizer_release(t);
  rung_host_release(host);
}

int main(void) {
  RUN(test_kinds);
  RUN(test_characters_from_bytes);
  RUN(test_streams);
  RUN(test_ids_outside);
  RUN(test_byte_alphabet);
  return TEST_END();
}
