/* SPDX-License-Identifier: MIT
 * Special tokens in text: longest match, what is found when, begin and end tokens; roles from well-known texts. */
#include "test_text_helper.h"

static toy vocabulary;

enum { UNK, BOS, EOS, BYTE, A = 259, AB, ABCD, NL2, NL3, CONTROL, TAG };

static rung_tokenizer *make(rung_host *host, rung_choice eos) {
  memset(&vocabulary, 0, sizeof vocabulary);
  toy_add(&vocabulary, "<unk>", RUNG_TOKEN_UNKNOWN, 0);
  toy_add(&vocabulary, "<s>", RUNG_TOKEN_CONTROL, 0);
  toy_add(&vocabulary, "</s>", RUNG_TOKEN_CONTROL, 0);
  toy_add_byte_tokens(&vocabulary);
  toy_add(&vocabulary, "[a", RUNG_TOKEN_USER_DEFINED, 0);
  toy_add(&vocabulary, "[ab", RUNG_TOKEN_CONTROL, 0);
  toy_add(&vocabulary, "[abcd", RUNG_TOKEN_USER_DEFINED, 0);
  toy_add(&vocabulary, "\n\n", RUNG_TOKEN_USER_DEFINED, 0);
  toy_add(&vocabulary, "\n\n\n", RUNG_TOKEN_USER_DEFINED, 0);
  toy_add(&vocabulary, "<|im_start|>", RUNG_TOKEN_CONTROL, 0);
  toy_add(&vocabulary, "<b>", RUNG_TOKEN_USER_DEFINED, 0);
  rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
  d.add_space_prefix = RUNG_CHOICE_NO;
  d.add_eos = eos;
  rung_tokenizer *t = NULL;
  CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
  return t;
}

static void test_matches(void) {
  rung_host *host = toy_host();
  rung_tokenizer *t = make(host, RUNG_CHOICE_DEFAULT);
  const unsigned all = RUNG_ENCODE_PARSE_SPECIAL;
  char want[64];
  snprintf(want, sizeof want, "%d", ABCD);
  CHECK_STR(toy_ids(t, host, "[abcd", all), want);
  snprintf(want, sizeof want, "%d %d", AB, BYTE + 'c');
  CHECK_STR(toy_ids(t, host, "[abc", all), want); /* falls back to the longest that ended */
  snprintf(want, sizeof want, "%d %d %d", A, BYTE + 'b', BYTE + 'c');
  CHECK_STR(toy_ids(t, host, "[abc", 0), want); /* control tokens are plain text */
  snprintf(want, sizeof want, "%d", A);
  CHECK_STR(toy_ids(t, host, "[a", 0), want);
  snprintf(want, sizeof want, "%d", BYTE + '[');
  CHECK_STR(toy_ids(t, host, "[", all), want);
  snprintf(want, sizeof want, "%d %d %d", NL3, NL2, BYTE + 'x');
  CHECK_STR(toy_ids(t, host, "\n\n\n\n\nx", 0), want);
  snprintf(want, sizeof want, "%d %d", NL3, BYTE + '\n');
  CHECK_STR(toy_ids(t, host, "\n\n\n\n", 0), want);
  snprintf(want, sizeof want, "%d %d %d %d", CONTROL, CONTROL, BYTE + 'u', UNK);
  CHECK_STR(toy_ids(t, host, "<|im_start|><|im_start|>u<unk>", all), want);
  snprintf(want, sizeof want, "%d %d", BYTE + '<', TAG);
  CHECK_STR(toy_ids(t, host, "<<b>", 0), want);
  rung_tokenizer_release(t);
  rung_host_release(host);
}

static void test_begin_and_end(void) {
  rung_host *host = toy_host();
  rung_tokenizer *t = make(host, RUNG_CHOICE_YES);
  CHECK(rung_tokenizer_adds_eos(t));
  CHECK_STR(toy_ids(t, host, "", RUNG_ENCODE_ADD_SPECIAL), "1 2");
  char want[64];
  snprintf(want, sizeof want, "1 1 %d 2", TAG);
  CHECK_STR(toy_ids(t, host, "<s><b>", RUNG_ENCODE_ADD_SPECIAL | RUNG_ENCODE_PARSE_SPECIAL), want);
  rung_tokenizer_release(t);
  rung_host_release(host);
}

/* Against looking at every token at every place. */
static void test_against_plain(void) {
  rung_host *host = toy_host();
  uint64_t seed = 12;
  for (int round = 0; round < 60; round++) {
    memset(&vocabulary, 0, sizeof vocabulary);
    toy_add(&vocabulary, "<unk>", RUNG_TOKEN_UNKNOWN, 0);
    toy_add(&vocabulary, "<s>", RUNG_TOKEN_CONTROL, 0);
    toy_add(&vocabulary, "</s>", RUNG_TOKEN_CONTROL, 0);
    toy_add_byte_tokens(&vocabulary);
    for (int n = 0; n < 60; n++) {
      char text[8];
      const size_t length = (size_t)(1 + test_below(&seed, 6));
      for (size_t i = 0; i < length; i++) text[i] = "ab\xFF"[test_below(&seed, 3)];
      bool known = false;
      for (size_t i = 0; i < vocabulary.count; i++)
        known |= vocabulary.lengths[i] == length && memcmp(vocabulary.texts[i], text, length) == 0;
      if (!known)
        toy_add_bytes(&vocabulary, text, length, test_below(&seed, 2) ? RUNG_TOKEN_CONTROL : RUNG_TOKEN_USER_DEFINED,
                      0);
    }
    rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
    d.add_space_prefix = RUNG_CHOICE_NO;
    rung_tokenizer *t = NULL;
    CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
    for (int line = 0; t && line < 100; line++) {
      char text[64];
      const size_t length = (size_t)test_below(&seed, 64);
      for (size_t i = 0; i < length; i++)
        text[i] =
            "ab\xFF"
            "c"[test_below(&seed, 4)];
      const bool all = line % 2;
      rung_ids ids;
      rung_ids_init(&ids, host);
      CHECK_OK(rung_tokenizer_encode(t, text, length, all ? RUNG_ENCODE_PARSE_SPECIAL : 0, NULL, &ids));
      size_t at = 0, n = 0;
      while (at < length && n < ids.count) {
        size_t best = 0;
        int32_t id = BYTE + (uint8_t)text[at];
        for (size_t i = 259; i < vocabulary.count; i++) {
          const size_t l = vocabulary.lengths[i];
          if (l > best && l <= length - at && memcmp(vocabulary.texts[i], text + at, l) == 0 &&
              (all || vocabulary.types[i] == RUNG_TOKEN_USER_DEFINED)) {
            best = l;
            id = (int32_t)i;
          }
        }
        /* A control token of one byte is also what that byte alone is called. */
        if (!best)
          for (size_t i = 259; i < vocabulary.count; i++)
            if (vocabulary.lengths[i] == 1 && vocabulary.texts[i][0] == text[at] && text[at] != '\xFF') id = (int32_t)i;
        if (!best && (ids.data[n] >= 259 || text[at] == '\xFF'))
          break; /* plain text may be joined: not looked at here */
        CHECK_EQ_I64(ids.data[n], id);
        at += best ? best : 1;
        n++;
      }
      rung_ids_finish(&ids);
    }
    rung_tokenizer_release(t);
  }
  rung_host_release(host);
}

static void test_roles(void) {
  rung_host *host = toy_host();
  memset(&vocabulary, 0, sizeof vocabulary);
  toy_add(&vocabulary, "<unk>", RUNG_TOKEN_UNKNOWN, 0);
  toy_add(&vocabulary, "<bos>", RUNG_TOKEN_CONTROL, 0);
  toy_add(&vocabulary, "<eos>", RUNG_TOKEN_CONTROL, 0);
  toy_add_byte_tokens(&vocabulary);
  const int32_t strike = toy_add(&vocabulary, "</s>", RUNG_TOKEN_USER_DEFINED, 0);
  const int32_t im_end = toy_add(&vocabulary, "<|im_end|>", RUNG_TOKEN_USER_DEFINED, 0);
  const int32_t text_end = toy_add(&vocabulary, "<|endoftext|>", RUNG_TOKEN_CONTROL, 0);
  const int32_t message_end = toy_add(&vocabulary, "<|eom_id|>", RUNG_TOKEN_CONTROL, 0);
  rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
  d.ids.eos = 5;
  rung_tokenizer *t = NULL;
  CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
  CHECK_EQ_I64(rung_tokenizer_ids(t)->eot, im_end);
  CHECK_EQ_I64(rung_tokenizer_ids(t)->eom, message_end);
  CHECK(rung_tokenizer_is_eog(t, 5)); /* because the file says so */
  CHECK(rung_tokenizer_is_eog(t, im_end) && rung_tokenizer_is_eog(t, text_end) &&
        rung_tokenizer_is_eog(t, message_end));
  CHECK(!rung_tokenizer_is_eog(t, strike)); /* a word in some vocabularies */
  CHECK_EQ_I64(rung_tokenizer_type(t, strike), RUNG_TOKEN_USER_DEFINED);
  CHECK_EQ_I64(rung_tokenizer_type(t, im_end), RUNG_TOKEN_CONTROL);
  rung_tokenizer_release(t);
  rung_host_release(host);
}

int main(void) {
  RUN(test_matches);
  RUN(test_begin_and_end);
  RUN(test_against_plain);
  RUN(test_roles);
  return TEST_END();
}
