/* SPDX-License-Identifier: MIT
 * Vocabularies that contradict themselves are refused by name; what fails half-way leaves nothing behind. */
#include <math.h>

#include "test_text_helper.h"

static toy vocabulary; /* set up anew by each case */

static void begin(const char *model) {
  memset(&vocabulary, 0, sizeof vocabulary);
  toy_add(&vocabulary, "<unk>", RUNG_TOKEN_UNKNOWN, 0);
  toy_add(&vocabulary, "<s>", RUNG_TOKEN_CONTROL, 0);
  toy_add(&vocabulary, "</s>", RUNG_TOKEN_CONTROL, 0);
  if (strcmp(model, "llama") == 0)
    toy_add_byte_tokens(&vocabulary);
  else
    toy_add_ascii(&vocabulary);
  toy_add(&vocabulary, "th", RUNG_TOKEN_NORMAL, -1);
}

static void refused(const rung_tokenizer_desc *desc, rung_status status, const char *field) {
  rung_host *host = toy_host();
  const uint64_t before = rung_host_memory(host).host;
  rung_error error = {0};
  rung_tokenizer *t = NULL;
  CHECK_STATUS(rung_tokenizer_create(host, desc, &error, &t), status);
  CHECK(t == NULL);
  if (!strstr(error.message, field)) TEST_FAIL_("\"%s\" does not name %s", error.message, field);
  CHECK_EQ_I64(rung_host_memory(host).host, before);
  rung_tokenizer_release(t);
  rung_host_release(host);
}

static void test_counts(void) {
  begin("llama");
  rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
  d.count = d.text_count = 0;
  refused(&d, RUNG_CORRUPT_FILE, "tokens");
  d = toy_desc(&vocabulary, "llama");
  d.count++;
  refused(&d, RUNG_CORRUPT_FILE, "tokens");
  d.count -= 2;
  refused(&d, RUNG_CORRUPT_FILE, "tokens");
  d = toy_desc(&vocabulary, "llama");
  d.type_count--;
  refused(&d, RUNG_CORRUPT_FILE, "token_type");
  d = toy_desc(&vocabulary, "llama");
  d.score_count++;
  refused(&d, RUNG_CORRUPT_FILE, "scores");
  d = toy_desc(&vocabulary, "llama");
  d.scores = NULL;
  refused(&d, RUNG_CORRUPT_FILE, "scores");
  d = toy_desc(&vocabulary, "llama");
  d.count = d.text_count = d.type_count = d.score_count = ((size_t)1 << 26) + 1;
  refused(&d, RUNG_UNSUPPORTED, "tokens");
  d = toy_desc(&vocabulary, "llama");
  d.size = 3;
  refused(&d, RUNG_INVALID_ARGUMENT, "size");
  d = toy_desc(&vocabulary, "unigram?");
  refused(&d, RUNG_UNSUPPORTED, "unigram?");
  d.model = NULL;
  refused(&d, RUNG_UNSUPPORTED, "model");
}

static void test_byte_tokens(void) {
  static const char *const bad[] = {"<0x-1>", "<0xZZ>", "<0x1>",  "<0x123>", "0x12",
                                    "<0x12",  "<0X12>", "<0x+1>", "<0x 1>"};
  for (size_t i = 0; i < RUNG_COUNT(bad); i++) {
    begin("llama");
    toy_add(&vocabulary, bad[i], RUNG_TOKEN_BYTE, 0);
    rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
    refused(&d, RUNG_CORRUPT_FILE, bad[i]);
    vocabulary.types[vocabulary.count - 1] = RUNG_TOKEN_NORMAL; /* as a word it is fine */
    rung_host *host = toy_host();
    rung_tokenizer *t = NULL;
    CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
    rung_tokenizer_release(t);
    rung_host_release(host);
  }
  memset(&vocabulary, 0, sizeof vocabulary); /* no bytes, no unknown token */
  toy_add(&vocabulary, "a", RUNG_TOKEN_NORMAL, 0);
  rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
  d.add_bos = RUNG_CHOICE_NO;
  d.ids.unknown = RUNG_TOKEN_NONE;
  vocabulary.count = 1;
  rung_host *host = toy_host(); /* the model's usual unknown token is id 0 */
  rung_tokenizer *t = NULL;
  CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
  CHECK_STR(toy_ids(t, host, "ab", 0), "0 0 0 0 0");
  rung_tokenizer_release(t);
  rung_host_release(host);
}

static void test_ids(void) {
  const struct {
    size_t at;
    const char *name;
  } fields[] = {
      {offsetof(rung_token_ids, bos), "bos_token_id"},         {offsetof(rung_token_ids, eos), "eos_token_id"},
      {offsetof(rung_token_ids, eot), "eot_token_id"},         {offsetof(rung_token_ids, eom), "eom_token_id"},
      {offsetof(rung_token_ids, unknown), "unknown_token_id"}, {offsetof(rung_token_ids, pad), "padding_token_id"},
      {offsetof(rung_token_ids, mask), "mask_token_id"}};
  begin("llama");
  const int64_t bad[] = {-2, (int64_t)vocabulary.count, INT32_MAX, (int64_t)1 << 32, INT64_MIN};
  for (size_t f = 0; f < RUNG_COUNT(fields); f++)
    for (size_t b = 0; b < RUNG_COUNT(bad); b++) {
      rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
      memcpy((char *)&d.ids + fields[f].at, &bad[b], sizeof bad[b]);
      refused(&d, RUNG_OUT_OF_RANGE, fields[f].name);
    }
  if (!toy_has_pcre2()) return;
  begin("gpt2");
  rung_tokenizer_desc d = toy_desc(&vocabulary, "gpt2");
  d.add_bos = RUNG_CHOICE_YES;
  refused(&d, RUNG_CORRUPT_FILE, "bos_token_id");
  d.add_bos = RUNG_CHOICE_NO;
  d.add_eos = RUNG_CHOICE_YES;
  refused(&d, RUNG_CORRUPT_FILE, "eos_token_id");
}

static void test_types_scores_texts(void) {
  const int32_t bad[] = {-1, 7, INT32_MAX, INT32_MIN};
  for (size_t b = 0; b < RUNG_COUNT(bad); b++) {
    begin("llama");
    vocabulary.types[5] = bad[b];
    rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
    refused(&d, RUNG_CORRUPT_FILE, "token_type[5]");
  }
  begin("llama");
  vocabulary.scores[7] = NAN;
  rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
  refused(&d, RUNG_CORRUPT_FILE, "scores[7]");
  begin("llama");
  toy_add(&vocabulary, "th", RUNG_TOKEN_NORMAL, 0);
  d = toy_desc(&vocabulary, "llama");
  refused(&d, RUNG_CORRUPT_FILE, "is also tokens[");
  begin("llama");
  vocabulary.texts[4] = NULL;
  d = toy_desc(&vocabulary, "llama");
  refused(&d, RUNG_INVALID_ARGUMENT, "tokens[4]");
  d.texts = NULL;
  refused(&d, RUNG_INVALID_ARGUMENT, "tokens");
  begin("llama");
  for (size_t i = 0; i < vocabulary.count; i++) vocabulary.lengths[i] = 0;
  for (size_t i = 0; i < vocabulary.count; i++) vocabulary.types[i] = RUNG_TOKEN_NORMAL;
  d = toy_desc(&vocabulary, "llama");
  refused(&d, RUNG_CORRUPT_FILE, "empty");
  begin("llama");
  char large[1100];
  memset(large, 'x', sizeof large);
  toy_add_bytes(&vocabulary, large, sizeof large, RUNG_TOKEN_CONTROL, 0);
  d = toy_desc(&vocabulary, "llama");
  refused(&d, RUNG_UNSUPPORTED, "special token");
}

static void test_merges(void) {
  static const char *const bad[] = {"t hx", "q\xC2\xA1 h", "th x", "x th", "th", "t", "", " th", "th ", "t  h", "a b"};
  for (size_t i = 0; i < RUNG_COUNT(bad); i++) {
    begin("gpt2");
    toy_merge(&vocabulary, "t h");
    toy_merge(&vocabulary, bad[i]);
    rung_tokenizer_desc d = toy_desc(&vocabulary, "gpt2");
    refused(&d, RUNG_CORRUPT_FILE, "merges[1]");
  }
  begin("gpt2");
  rung_tokenizer_desc d = toy_desc(&vocabulary, "gpt2");
  d.merge_count = 1;
  d.merges = NULL;
  refused(&d, RUNG_INVALID_ARGUMENT, "merges");
  d = toy_desc(&vocabulary, "gpt2");
  d.pre = "what-is-this";
  refused(&d, RUNG_UNSUPPORTED, "what-is-this");
}

/* Texts that lie more than 4 GiB apart cannot be reached by short offsets: they are copied, and nothing else changes.
 */
static void test_texts_far_apart(void) {
  begin("llama");
  char *far = malloc(16); /* far from static memory as a rule; if not, the test is still right */
  if (!far) return;
  memcpy(far, "far", 3);
  toy_add(&vocabulary, "x", RUNG_TOKEN_NORMAL, 0);
  vocabulary.texts[vocabulary.count - 1] = far;
  vocabulary.lengths[vocabulary.count - 1] = 3;
  rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
  rung_host *host = toy_host();
  rung_tokenizer *t = NULL;
  CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
  CHECK_EQ_I64(rung_tokenizer_find(t, "far", 3), (int64_t)vocabulary.count - 1);
  CHECK_EQ_I64(rung_tokenizer_find(t, "th", 2), (int64_t)vocabulary.count - 2);
  for (int32_t id = 0; id < rung_tokenizer_count(t); id++) {
    size_t length = 0;
    const char *text = rung_tokenizer_text(t, id, &length);
    CHECK(length == vocabulary.lengths[id] && memcmp(text, vocabulary.texts[id], length) == 0);
    CHECK_EQ_I64(rung_tokenizer_find(t, text, length), id);
  }
  rung_tokenizer_release(t);
  rung_host_release(host);
  free(far);
}

static void test_lookups(void) {
  begin("llama");
  toy_add(&vocabulary, "", RUNG_TOKEN_NORMAL, 0); /* holes are allowed */
  toy_add(&vocabulary, "", RUNG_TOKEN_UNUSED, 0);
  toy_add(&vocabulary, "<end_of_turn>", RUNG_TOKEN_NORMAL, 0);
  rung_tokenizer_desc d = toy_desc(&vocabulary, "llama");
  rung_host *host = toy_host();
  rung_tokenizer *t = NULL;
  CHECK_OK(rung_tokenizer_create(host, &d, NULL, &t));
  size_t length = 99;
  CHECK_EQ_I64(rung_tokenizer_count(t), (int64_t)vocabulary.count);
  CHECK_EQ_I64(rung_tokenizer_find(t, "", 0), RUNG_TOKEN_NONE);
  CHECK_EQ_I64(rung_tokenizer_find(t, "nothing like it", 15), RUNG_TOKEN_NONE);
  CHECK(rung_tokenizer_text(t, -1, &length) == NULL && rung_tokenizer_text(t, INT32_MAX, &length) == NULL);
  CHECK(rung_tokenizer_text(t, (int32_t)vocabulary.count - 3, &length) && length == 0);
  CHECK_EQ_I64(rung_tokenizer_type(t, -5), RUNG_TOKEN_UNDEFINED);
  CHECK_EQ_I64(rung_tokenizer_type(t, 1), RUNG_TOKEN_CONTROL);
  CHECK_EQ_I64(rung_tokenizer_type(t, (int32_t)vocabulary.count - 1), RUNG_TOKEN_CONTROL); /* known by its text */
  CHECK(rung_tokenizer_is_eog(t, 2) && rung_tokenizer_is_eog(t, (int32_t)vocabulary.count - 1));
  CHECK(!rung_tokenizer_is_eog(t, 1) && !rung_tokenizer_is_eog(t, -1) && !rung_tokenizer_is_eog(t, INT32_MAX));
  const rung_token_ids *ids = rung_tokenizer_ids(t);
  CHECK_EQ_I64(ids->bos, 1);
  CHECK_EQ_I64(ids->eos, 2);
  CHECK_EQ_I64(ids->unknown, 0);
  CHECK_EQ_I64(ids->eot, (int64_t)vocabulary.count - 1);
  CHECK_EQ_I64(ids->mask, RUNG_TOKEN_NONE);
  CHECK(rung_tokenizer_adds_bos(t) && !rung_tokenizer_adds_eos(t));
  rung_tokenizer_retain(t);
  rung_tokenizer_release(t);
  CHECK_EQ_I64(rung_tokenizer_find(t, "th", 2), 259);
  rung_tokenizer_release(t);
  rung_host_release(host);
}

/* Fails each allocation in turn over creating, encoding and decoding. */
static void failing(const char *model) {
  begin(model);
  if (strcmp(model, "gpt2") == 0) toy_merge(&vocabulary, "t h");
  rung_tokenizer_desc d = toy_desc(&vocabulary, model);
  bool done = false;
  for (int64_t n = 1; !done && n < 500; n++) {
    rung_host *host = toy_host();
    const uint64_t before = rung_host_memory(host).host;
    test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = n};
    rung_host_set_fault(host, test_fault_hit, &fault);
    rung_error error = {0};
    rung_tokenizer *t = NULL;
    rung_ids ids;
    rung_ids_init(&ids, host);
    rung_text text;
    rung_text_init(&text, host);
    const char *input = "the thing <s>\xFF \xE6\x97\xA5 thththththththththththththththththth";
    rung_status status = rung_tokenizer_create(host, &d, &error, &t);
    if (!status) status = rung_tokenizer_encode(t, input, strlen(input), RUNG_ENCODE_PARSE_SPECIAL, &error, &ids);
    if (!status) status = rung_tokenizer_decode(t, ids.data, ids.count, RUNG_DECODE_SPECIAL, &error, &text);
    CHECK_STATUS(status, fault.hit ? RUNG_OUT_OF_MEMORY : RUNG_OK);
    CHECK(!fault.hit || error.message[0]);
    if (t && status) { /* the same call works next */
      CHECK_OK(rung_tokenizer_encode(t, input, strlen(input), 0, &error, &ids));
    }
    done = !fault.hit;
    rung_text_finish(&text);
    rung_ids_finish(&ids);
    rung_tokenizer_release(t);
    CHECK_EQ_I64(rung_host_memory(host).host, before);
    if (done) CHECK(n > 8);
    rung_host_set_fault(host, NULL, NULL);
    rung_host_release(host);
  }
  CHECK(done);
}
static void test_failing_allocations(void) {
  failing("llama");
  if (toy_has_pcre2()) failing("gpt2");
}

int main(void) {
  RUN(test_counts);
  RUN(test_byte_tokens);
  RUN(test_ids);
  RUN(test_types_scores_texts);
  RUN(test_merges);
  RUN(test_texts_far_apart);
  RUN(test_lookups);
  RUN(test_failing_allocations);
  return TEST_END();
}
