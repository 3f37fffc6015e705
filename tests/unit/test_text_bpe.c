/* SPDX-License-Identifier: MIT
 * Byte-level BPE: cutting into words, the merge loop against one that looks through everything, long words. */
#include "test_text_helper.h"
#include "text/pretokenise.h"

static toy vocabulary;

/* ---- words ---- */

typedef struct words {
  char text[512];
  size_t length;
} words;
static rung_status collect(void *self, const char *text, size_t length, rung_error *error) {
  words *w = self;
  (void)error;
  if (w->length) w->text[w->length++] = '|';
  memcpy(w->text + w->length, text, length);
  w->length += length;
  return RUNG_OK;
}
static void cut(const char *name, const char *text, const char *want) {
  rung_host *host = toy_host();
  rung_cutter *p = NULL;
  words w = {0};
  CHECK_OK(rung_pretokeniser_create(host, name, NULL, &p));
  if (p) CHECK_OK(rung_cutter_run(p, text, strlen(text), true, collect, &w, NULL));
  CHECK_STR(w.text, want);
  rung_cutter_destroy(p);
  rung_host_release(host);
}

static void test_words(void) {
  cut("gpt-2", "Hello  world", "Hello| | world");
  cut("gpt-2", "I'm we'll don't 'RE'", "I|'m| we|'ll| don|'t| '|RE|'");
  cut("gpt-2", "a1 23  4.5e6", "a|1| 23| | 4|.|5|e|6");
  cut("gpt-2", "x  \n\n y\t\tz  ", "x|  \n\n| y|\t|\t|z|  ");
  cut("gpt-2", " ?! \xE6\x97\xA5\xE6\x9C\xAC\xE2\x82\xAC \xCC\x81",
      " ?!| \xE6\x97\xA5\xE6\x9C\xAC|\xE2\x82\xAC| \xCC\x81");
  cut("gpt-2", "", "");
  cut("gpt-2", " ", " ");
  cut("smollm", "a1 23  4", "a|1| |2|3|  |4");
  cut("smollm", "12\xC2\xBD \xE2\x85\xA7x 'll9 s", "1|2|\xC2\xBD| |\xE2\x85\xA7|x| '|ll|9| s");
  cut("smollm", "  a \n1", " | a| \n|1");
  /* White space is what Unicode calls so: U+0085, U+00A0 and U+3000 are, U+180E and U+200B are not. */
  cut("smollm", "a\xC2\x85\xC2\xA0\xE3\x80\x80z", "a|\xC2\x85\xC2\xA0|\xE3\x80\x80|z");
  cut("smollm", "a\xE1\xA0\x8E\xE2\x80\x8Bz", "a|\xE1\xA0\x8E\xE2\x80\x8B|z");
  cut("llama-bpe", "I'LL go  1234567 x\r\n\n y?!\n", "I|'LL| go| | |123|456|7| x|\r\n\n| y|?!\n");
  cut("qwen2",
      "12\xC2\xBD"
      "3 (ab)",
      "1|2|\xC2\xBD|3| (|ab|)");
  cut("default", "f(1234567, x) it's", "f|(|123|456|7|,| x|)| it|'|s");
}

/* ---- the merge loop ---- */

/* Joins the pair of the lowest rank, the leftmost of equals, until there is none. */
static size_t plain_merge(int32_t *id, size_t count, const int32_t (*merge)[3], int merges) {
  for (;;) {
    int best = merges;
    size_t at = 0;
    for (size_t i = 0; i + 1 < count; i++)
      for (int r = 0; r < best; r++)
        if (merge[r][0] == id[i] && merge[r][1] == id[i + 1]) {
          best = r;
          at = i;
        }
    if (best == merges) return count;
    id[at] = merge[best][2];
    memmove(id + at + 1, id + at + 2, (count - at - 2) * sizeof *id);
    count--;
  }
}

/* Random merges over an alphabet of a few letters; ids of a word that is one piece. */
static void test_merges_against_plain(void) {
  static int32_t merge[60][3];
  uint64_t seed = 4;
  for (int round = 0; round < 60; round++) {
    memset(&vocabulary, 0, sizeof vocabulary);
    const int letters = 1 + round % 4;
    for (int c = 0; c < letters; c++) toy_add_bytes(&vocabulary, &"abcd"[c], 1, RUNG_TOKEN_NORMAL, 0);
    int merges = 0;
    for (int tries = 0; tries < 400 && merges < 60; tries++) {
      const int32_t a = (int32_t)test_below(&seed, (int64_t)vocabulary.count),
                    b = (int32_t)test_below(&seed, (int64_t)vocabulary.count);
      char joined[128], line[128];
      const int n = snprintf(joined, sizeof joined, "%.*s%.*s", (int)vocabulary.lengths[a], vocabulary.texts[a],
                             (int)vocabulary.lengths[b], vocabulary.texts[b]);
      if (n > 60) continue;
      int32_t result = -1;
      bool known = false;
      for (size_t i = 0; i < vocabulary.count; i++)
        if (vocabulary.lengths[i] == (uint32_t)n && memcmp(vocabulary.texts[i], joined, (size_t)n) == 0)
          result = (int32_t)i;
      for (int r = 0; r < merges; r++) known |= merge[r][0] == a && merge[r][1] == b;
      if (known) continue;
      snprintf(line, sizeof line, "%.*s %.*s", (int)vocabulary.lengths[a], vocabulary.texts[a],
               (int)vocabulary.lengths[b], vocabulary.texts[b]);
      if (result < 0) result = toy_add_bytes(&vocabulary, joined, (size_t)n, RUNG_TOKEN_NORMAL, 0);
      toy_merge(&vocabulary, line);
      merge[merges][0] = a;
      merge[merges][1] = b;
      merge[merges++][2] = result;
    }
    rung_host *host = toy_host();
    rung_tokenizer_desc d = toy_desc(&vocabulary, "gpt2");
    rung_tokenizer *t = NULL;
    CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
    for (int word = 0; t && word < 60; word++) {
      char text[300];
      int32_t want[300];
      const size_t n = (size_t)(1 + test_below(&seed, word % 3 ? 30 : 300)); /* both ways of keeping a word */
      for (size_t i = 0; i < n; i++) {
        want[i] = (int32_t)test_below(&seed, letters);
        text[i] = "abcd"[want[i]];
      }
      const size_t count = plain_merge(want, n, (const int32_t(*)[3])merge, merges);
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

static rung_tokenizer *thing(rung_host *host, const char *pre) {
  memset(&vocabulary, 0, sizeof vocabulary);
  toy_add_ascii(&vocabulary);
  toy_add(&vocabulary, "th", RUNG_TOKEN_NORMAL, 0);        /* 96 */
  toy_add(&vocabulary, "\xC4\xA0t", RUNG_TOKEN_NORMAL, 0); /* 97 */
  toy_add(&vocabulary, "ab", RUNG_TOKEN_NORMAL, 0);        /* 98 */
  toy_add(&vocabulary, "\xC3\xAF", RUNG_TOKEN_NORMAL, 0);  /* 99: byte EF */
  toy_add(&vocabulary, "\xC2\xBF", RUNG_TOKEN_NORMAL, 0);  /* 100: byte BF */
  toy_add(&vocabulary, "\xC2\xBD", RUNG_TOKEN_NORMAL, 0);  /* 101: byte BD */
  toy_merge(&vocabulary, "\xC4\xA0 t");
  toy_merge(&vocabulary, "t h");
  toy_merge(&vocabulary, "a b");
  toy_merge(&vocabulary, "t h"); /* said twice */
  rung_tokenizer_desc d = toy_desc(&vocabulary, "gpt2");
  d.pre = pre;
  rung_tokenizer *t = NULL;
  CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
  return t;
}

static void test_bytes_and_broken_text(void) {
  rung_host *host = toy_host();
  rung_tokenizer *t = thing(host, "gpt-2");
  CHECK_STR(toy_ids(t, host, "th th", 0), "96 97 71");
  CHECK_STR(toy_ids(t, host, "a\n b", 0), "64 95 94 65");
  CHECK_STR(toy_ids(t, host,
                    "a\x01"
                    "b",
                    0),
            "64 65"); /* a byte without a token is left out, and is still between */
  CHECK_STR(toy_ids(t, host,
                    "a\xFF"
                    "b",
                    0),
            "64 99 100 101 65"); /* U+FFFD */
  CHECK_STR(toy_ids(t, host, "\xE6\x97", 0), "99 100 101 99 100 101");
  CHECK_STR(toy_ids(t, host, "", 0), "");
  rung_ids ids;
  rung_ids_init(&ids, host);
  CHECK_OK(rung_tokenizer_encode(t, "a\0b", 3, 0, NULL, &ids)); /* zeros are bytes like others */
  CHECK_EQ_I64(ids.count, 2);
  rung_error error;
  CHECK_STATUS(rung_tokenizer_encode(t, "a", (size_t)RUNG_ENCODE_MOST_BYTES + 1, 0, &error, &ids), RUNG_OUT_OF_RANGE);
  CHECK_EQ_I64(ids.count, 2);
  rung_ids_finish(&ids);
  rung_tokenizer_release(t);
  rung_host_release(host);
}

/* Some models take a word that is a token whole, though no merge makes it. */
static void test_whole_words(void) {
  rung_host *host = toy_host();
  memset(&vocabulary, 0, sizeof vocabulary);
  toy_add_ascii(&vocabulary);
  toy_add(&vocabulary, "\xC4\xA0hey", RUNG_TOKEN_NORMAL, 0); /* 96 */
  for (int i = 0; i < 2; i++) {
    rung_tokenizer_desc d = toy_desc(&vocabulary, "gpt2");
    d.pre = i ? "qwen2" : "llama-bpe";
    d.ids.bos = 3;
    rung_tokenizer *t = NULL;
    CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
    CHECK_STR(toy_ids(t, host, " hey heya", 0), i ? "94 71 68 88 94 71 68 88 64" : "96 94 71 68 88 64");
    CHECK_STR(toy_ids(t, host, " hey hey", 0), i ? "94 71 68 88 94 71 68 88" : "96 96");
    CHECK(rung_tokenizer_adds_bos(t) == !i);
    rung_tokenizer_release(t);
  }
  rung_host_release(host);
}

/* One word of a million bytes and other text without an end: a merge loop that searched would not finish. */
static void test_long_text(void) {
  enum { LONG = 1000000 };
  rung_host *host = toy_host();
  rung_tokenizer *t = thing(host, "smollm");
  char *text = malloc(LONG);
  static const char *const fills[] = {"ab", "a", " ", "\n", "1", "=", "' ", "\t\n", "th "};
  for (size_t f = 0; text && f < RUNG_COUNT(fills); f++) {
    const size_t n = strlen(fills[f]);
    for (size_t i = 0; i < LONG; i++) text[i] = fills[f][i % n];
    rung_ids ids;
    rung_ids_init(&ids, host);
    CHECK_OK(rung_tokenizer_encode(t, text, LONG, 0, NULL, &ids));
    rung_text back;
    rung_text_init(&back, host);
    CHECK_OK(rung_tokenizer_decode(t, ids.data, ids.count, 0, NULL, &back));
    if (fills[f][0] != '\t') CHECK(back.length == LONG && memcmp(back.data, text, LONG) == 0); /* no tab in there */
    if (f == 0) CHECK_EQ_I64(ids.count, LONG / 2);
    rung_text_finish(&back);
    rung_ids_finish(&ids);
  }
  free(text);
  rung_tokenizer_release(t);
  rung_host_release(host);
}

int main(void) {
  if (!toy_has_pcre2()) {
    printf("skipped: byte-level BPE needs PCRE2\n");
    return 77;
  }
  RUN(test_words);
  RUN(test_merges_against_plain);
  RUN(test_bytes_and_broken_text);
  RUN(test_whole_words);
  RUN(test_long_text);
  return TEST_END();
}
