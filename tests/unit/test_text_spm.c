/* SPDX-License-Identifier: MIT
 * SentencePiece BPE: the merge loop against one that looks through everything, byte fallback, blanks, long text. */
#include <math.h>

#include "test_text_helper.h"

static toy vocabulary;

static rung_tokenizer *make(rung_host *host, rung_choice prefix) {
  rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
  d.add_space_prefix = prefix;
  rung_tokenizer *t = NULL;
  CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
  return t;
}

static void begin(void) {
  memset(&vocabulary, 0, sizeof vocabulary);
  toy_add(&vocabulary, "<unk>", RUNG_TOKEN_UNKNOWN, 0);
  toy_add(&vocabulary, "<s>", RUNG_TOKEN_CONTROL, 0);
  toy_add(&vocabulary, "</s>", RUNG_TOKEN_CONTROL, 0);
  toy_add_byte_tokens(&vocabulary); /* 3 .. 258 */
}

/* ---- against a plain loop ---- */

typedef struct span {
  size_t start, length;
} span;

static int32_t look_up(const char *text, size_t length) {
  for (size_t i = 0; i < vocabulary.count; i++)
    if (vocabulary.lengths[i] == length && memcmp(vocabulary.texts[i], text, length) == 0) return (int32_t)i;
  return -1;
}
static size_t plain_encode(const char *text, size_t length, int32_t *out) {
  static span symbol[512];
  size_t count = length, n = 0;
  for (size_t i = 0; i < length; i++) symbol[i] = (span){i, 1}; /* ASCII only */
  for (;;) {
    int32_t best = -1;
    size_t at = 0;
    for (size_t i = 0; i + 1 < count; i++) {
      const int32_t id = look_up(text + symbol[i].start, symbol[i].length + symbol[i + 1].length);
      if (id >= 0 && (best < 0 || vocabulary.scores[id] > vocabulary.scores[best])) {
        best = id;
        at = i;
      }
    }
    if (best < 0) break;
    symbol[at].length += symbol[at + 1].length;
    memmove(symbol + at + 1, symbol + at + 2, (count - at - 2) * sizeof *symbol);
    count--;
  }
  for (size_t i = 0; i < count; i++) {
    const int32_t id = look_up(text + symbol[i].start, symbol[i].length);
    if (id >= 0) {
      out[n++] = id;
      continue;
    }
    for (size_t k = 0; k < symbol[i].length; k++) out[n++] = 3 + (uint8_t)text[symbol[i].start + k];
  }
  return n;
}

static void test_merges_against_plain(void) {
  uint64_t seed = 8;
  for (int round = 0; round < 80; round++) {
    begin();
    const int letters = 1 + round % 4;
    for (int tokens = 0; tokens < 120; tokens++) {
      char text[16];
      const size_t n = (size_t)(1 + test_below(&seed, 10));
      for (size_t i = 0; i < n; i++) text[i] = (char)('a' + test_below(&seed, letters));
      /* Few distinct scores: ties go to the left. Infinite and negative zero ones are scores too. */
      static const float scores[] = {-5, -2, -2, 0, -0.0f, 3, -HUGE_VALF, 1e-40f};
      if (look_up(text, n) < 0)
        toy_add_bytes(&vocabulary, text, n, RUNG_TOKEN_NORMAL, scores[test_below(&seed, RUNG_COUNT(scores))]);
    }
    rung_host *host = toy_host();
    rung_tokenizer *t = make(host, RUNG_CHOICE_NO);
    for (int line = 0; t && line < 60; line++) {
      char text[200];
      int32_t want[200];
      const size_t n = (size_t)(1 + test_below(&seed, 200));
      for (size_t i = 0; i < n; i++) text[i] = (char)('a' + test_below(&seed, letters + (line % 2)));
      const size_t count = plain_encode(text, n, want);
      rung_ids ids;
      rung_ids_init(&ids, host);
      CHECK_OK(rung_tokenizer_encode(t, text, n, 0, NULL, &ids));
      CHECK(ids.count == count && memcmp(ids.data, want, count * sizeof *want) == 0);
      rung_ids_finish(&ids);
    }
    rung_tokenizer_release(t);
    rung_host_release(host);
  }
}

/* ---- blanks, bytes, prefixes ---- */

static void test_blanks_and_bytes(void) {
  begin();
  toy_add(&vocabulary, "\xE2\x96\x81", RUNG_TOKEN_NORMAL, -10); /* 259 */
  toy_add(&vocabulary,
          "\xE2\x96\x81"
          "a",
          RUNG_TOKEN_NORMAL, -1);                          /* 260 */
  toy_add(&vocabulary, "a", RUNG_TOKEN_NORMAL, -20);       /* 261 */
  toy_add(&vocabulary, "<u>", RUNG_TOKEN_USER_DEFINED, 0); /* 262 */
  rung_host *host = toy_host();
  rung_tokenizer *t = make(host, RUNG_CHOICE_NO);
  CHECK_STR(toy_ids(t, host, "a a", 0), "261 260");
  CHECK_STR(toy_ids(t, host, "  a", 0), "259 260");
  CHECK_STR(toy_ids(t, host,
                    "\xE2\x96\x81"
                    "a",
                    0),
            "260"); /* the stand-in itself cannot be told from a blank */
  CHECK_STR(toy_ids(t, host, "\xE6\x97\xA5", 0), "233 154 168");
  CHECK_STR(toy_ids(t, host,
                    "\xFF"
                    "a\xE6",
                    0),
            "258 100 233"); /* broken text is bytes, as far as its first byte announces */
  CHECK_STR(toy_ids(t, host, "a<u> a", RUNG_ENCODE_ADD_SPECIAL), "1 261 262 260");
  CHECK_STR(toy_ids(t, host, "", RUNG_ENCODE_ADD_SPECIAL), "1");
  rung_tokenizer_release(t);
  t = make(host, RUNG_CHOICE_DEFAULT); /* a blank in front, and after each special token */
  CHECK_STR(toy_ids(t, host, "a a", 0), "260 260");
  CHECK_STR(toy_ids(t, host, "a<u>a<s>", RUNG_ENCODE_PARSE_SPECIAL), "260 262 260 1");
  CHECK_STR(toy_ids(t, host, "", 0), "");
  static const char *const lines[] = {"a a", " a", "a<u>a", "<u> a <u>", "  ", "\n<s>a", "b"};
  for (size_t i = 0; i < RUNG_COUNT(lines); i++) { /* what the prefix adds is taken away again */
    rung_ids ids;
    rung_text back;
    rung_ids_init(&ids, host);
    rung_text_init(&back, host);
    CHECK_OK(rung_tokenizer_encode(t, lines[i], strlen(lines[i]), RUNG_ENCODE_PARSE_SPECIAL, NULL, &ids));
    CHECK_OK(rung_tokenizer_decode(t, ids.data, ids.count, RUNG_DECODE_SPECIAL, NULL, &back));
    CHECK_STR(back.data, lines[i]);
    back.length = 0;
    const int32_t one = 260;
    CHECK_OK(rung_tokenizer_decode(t, &one, 1, RUNG_DECODE_CONTINUE, NULL, &back));
    CHECK_STR(back.data, " a");
    rung_text_finish(&back);
    rung_ids_finish(&ids);
  }
  rung_tokenizer_release(t);
  rung_host_release(host);
}

static void test_long_text(void) {
  enum { LONG = 1000000 };
  begin();
  char run[64];
  memset(run, 'a', sizeof run);
  for (size_t n = 1; n <= 64; n *= 2) toy_add_bytes(&vocabulary, run, n, RUNG_TOKEN_NORMAL, -(float)n);
  rung_host *host = toy_host();
  rung_tokenizer *t = make(host, RUNG_CHOICE_NO);
  char *text = malloc(LONG);
  for (int kind = 0; text && t && kind < 3; kind++) {
    for (size_t i = 0; i < LONG; i++) text[i] = kind == 0 ? 'a' : kind == 1 ? ' ' : (char)(i * 7 % 256);
    rung_ids ids;
    rung_text back;
    rung_ids_init(&ids, host);
    rung_text_init(&back, host);
    CHECK_OK(rung_tokenizer_encode(t, text, LONG, 0, NULL, &ids));
    if (kind == 0) CHECK_EQ_I64(ids.count, LONG / 64);
    CHECK_OK(rung_tokenizer_decode(t, ids.data, ids.count, RUNG_DECODE_BYTES, NULL, &back));
    if (kind != 1) CHECK(back.length >= LONG); /* blanks that have no token come back as U+2581 from their bytes */
    if (kind == 0) CHECK(memcmp(back.data, text, LONG) == 0);
    rung_text_finish(&back);
    rung_ids_finish(&ids);
  }
  free(text);
  rung_tokenizer_release(t);
  rung_host_release(host);
}

int main(void) {
  RUN(test_merges_against_plain);
  RUN(test_blanks_and_bytes);
  RUN(test_long_text);
  return TEST_END();
}
