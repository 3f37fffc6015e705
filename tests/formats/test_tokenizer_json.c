/* SPDX-License-Identifier: MIT
 * tokenizer.json: what is wrong is refused by its name, what is not supported too; no allocation may fail unseen; cut and
 * flipped files end in a status; bytes that are no UTF-8 read as U+FFFD. */
#include "base/map_file.h"
#include "formats/tokenizer_json.h"
#include "test.h"

typedef struct parts {
  const char *model, *added, *normaliser, *cuts, *post, *decoder;
} parts;

#define WORDPIECE "{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"##b\":2,\"ab\":3}}"
#define PAIRS(more, merges) \
  "{\"type\":\"BPE\"" more ",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"<0x41>\":3},\"merges\":[" merges "]}"

static rung_host *new_host(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  return host;
}

static rung_status read_text(rung_host *host, const char *text, size_t bytes, rung_error *error, rung_tokenizer **out) {
  const rung_source source = rung_source_memory(text, bytes);
  return rung_tokenizer_json(host, &source, NULL, error, out);
}

static const char *whole(const parts *p) {
  static char text[8192];
  snprintf(text, sizeof text,
           "{\"version\":\"1.0\",\"added_tokens\":%s,\"normalizer\":%s,\"pre_tokenizer\":%s,\"post_processor\":%s,"
           "\"decoder\":%s,\"model\":%s}",
           p->added ? p->added : "[]", p->normaliser ? p->normaliser : "null", p->cuts ? p->cuts : "null",
           p->post ? p->post : "null", p->decoder ? p->decoder : "null", p->model ? p->model : WORDPIECE);
  return text;
}

static void refused_text(const char *text, rung_status want, const char *named) {
  rung_host *host = new_host();
  rung_error error = {0};
  rung_tokenizer *t = NULL;
  const uint64_t before = rung_host_memory(host).host;
  const rung_status status = read_text(host, text, strlen(text), &error, &t);
  if (status != want || !strstr(error.message, named))
    TEST_FAIL_("%s: \"%s\", wanted %s naming %s, of %s", rung_status_name(status), error.message,
               rung_status_name(want), named, text);
  test_state.checks++;
  CHECK(!t);
  CHECK_EQ_I64(rung_host_memory(host).host, before);
  rung_tokenizer_release(t);
  rung_host_release(host);
}
static void refused(parts p, rung_status want, const char *named) { refused_text(whole(&p), want, named); }

/* The ids of a text, as "1 2 3"; the message if it is refused. */
static const char *ids_of(parts p, const char *text, size_t bytes) {
  static char out[256];
  static rung_error error;
  rung_host *host = new_host();
  rung_tokenizer *t = NULL;
  const char *json = whole(&p);
  rung_status status = read_text(host, json, strlen(json), &error, &t);
  rung_ids ids;
  rung_ids_init(&ids, host);
  if (!status)
    status = rung_tokenizer_encode(t, text, bytes, RUNG_ENCODE_PARSE_SPECIAL | RUNG_ENCODE_ADD_SPECIAL, &error, &ids);
  size_t n = 0;
  out[0] = 0;
  for (size_t i = 0; i < ids.count && n < sizeof out - 12; i++)
    n += (size_t)snprintf(out + n, sizeof out - n, i ? " %d" : "%d", (int)ids.data[i]);
  rung_ids_finish(&ids);
  rung_tokenizer_release(t);
  rung_host_release(host);
  return status ? error.message : out;
}

static void test_wrong_files(void) {
  refused_text("", RUNG_CORRUPT_FILE, "offset 0");
  refused_text("[]", RUNG_CORRUPT_FILE, "expected an object");
  refused_text("{}", RUNG_CORRUPT_FILE, "\"model\" is missing");
  refused_text("{\"model\":[]}", RUNG_CORRUPT_FILE, "\"model\" is a list");
  refused_text("{\"model\":{},\"model\":{}}", RUNG_CORRUPT_FILE, "\"model\" is there twice");
  refused_text("{\"model\":{\"type\":\"Syllables\",\"vocab\":{}}}", RUNG_UNSUPPORTED, "Syllables");
  refused_text("{\"model\":{\"vocab\":{}}}", RUNG_UNSUPPORTED, "model");
}

static void test_wrong_vocabularies(void) {
  const struct {
    const char *vocab, *named;
    rung_status status;
  } cases[] = {
      {"{}", "empty", RUNG_CORRUPT_FILE},
      {"[]", "model.vocab", RUNG_CORRUPT_FILE},
      {"7", "model.vocab", RUNG_CORRUPT_FILE},
      {"{\"?\":\"0\"}", "\"?\"", RUNG_CORRUPT_FILE},
      {"{\"?\":0.5}", "\"?\"", RUNG_CORRUPT_FILE},
      {"{\"?\":-1}", "id -1", RUNG_OUT_OF_RANGE},
      {"{\"?\":0,\"a\":4294967296}", "id 4294967296", RUNG_OUT_OF_RANGE},
      {"{\"?\":0,\"a\":67000000}", "id 67000000", RUNG_OUT_OF_RANGE}, /* would cost a gigabyte */
      {"{\"?\":0,\"a\":0}", "id 0 is both", RUNG_CORRUPT_FILE},
      {"{\"?\":0,\"a\":1,\"a\":2}", "\"a\" is also", RUNG_CORRUPT_FILE},
      {"{\"a\":0}", "unk_token", RUNG_CORRUPT_FILE},
  };
  char text[256];
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    snprintf(text, sizeof text, "{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"vocab\":%s}", cases[i].vocab);
    refused((parts){.model = text}, cases[i].status, cases[i].named);
  }
  refused((parts){.model = "{\"type\":\"WordPiece\",\"unk_token\":1,\"vocab\":{\"?\":0}}"}, RUNG_CORRUPT_FILE,
          "\"unk_token\" is a number");
  refused((parts){.model = "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":{\"?\":0}}"}, RUNG_CORRUPT_FILE,
          "model.vocab");
  refused((parts){.model = "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",\"x\"]]}"}, RUNG_CORRUPT_FILE,
          "entry 0");
  refused((parts){.model = "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\"]]}"}, RUNG_CORRUPT_FILE, "entry 0");
  refused((parts){.model = "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0,1]]}"}, RUNG_CORRUPT_FILE,
          "entry 0");
  refused((parts){.model = "{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"?\",0]]}"}, RUNG_OUT_OF_RANGE, "unk_id");
  refused((parts){.model = "{\"type\":\"Unigram\",\"vocab\":[[\"?\",0]]}"}, RUNG_CORRUPT_FILE, "unk_id");
}

static void test_wrong_merges(void) {
  refused((parts){.model = PAIRS("", "\"a c\"")}, RUNG_CORRUPT_FILE, "merges[0]: \"a c\" names a token");
  refused((parts){.model = PAIRS("", "\"a b\",\"b a\"")}, RUNG_CORRUPT_FILE, "merges[1]: \"b a\" makes a token");
  refused((parts){.model = PAIRS("", "\"ab\"")}, RUNG_CORRUPT_FILE, "merges[0]");
  refused((parts){.model = PAIRS("", "\"\"")}, RUNG_CORRUPT_FILE, "merges[0]");
  refused((parts){.model = PAIRS("", "[\"a\"]")}, RUNG_CORRUPT_FILE, "entry 0");
  refused((parts){.model = PAIRS("", "[\"a\",\"b\",\"a\"]")}, RUNG_CORRUPT_FILE, "entry 0");
  refused((parts){.model = PAIRS("", "[\"a\",\"\"]")}, RUNG_CORRUPT_FILE, "merges[0]");
  refused((parts){.model = PAIRS("", "[\"\",\"ab\"]")}, RUNG_CORRUPT_FILE, "merges[0]");
  refused((parts){.model = PAIRS("", "7")}, RUNG_CORRUPT_FILE, "entry 0");
  refused((parts){.model = PAIRS(",\"dropout\":0.1", "")}, RUNG_UNSUPPORTED, "dropout");
  refused((parts){.model = PAIRS(",\"continuing_subword_prefix\":\"##\"", "")}, RUNG_UNSUPPORTED,
          "continuing_subword_prefix");
  refused((parts){.model = PAIRS(",\"byte_fallback\":true,\"end_of_word_suffix\":\"</w>\"", "")}, RUNG_UNSUPPORTED,
          "end_of_word_suffix");
  refused((parts){.model = PAIRS(",\"unk_token\":\"?\"", "")}, RUNG_CORRUPT_FILE, "unk_token");
  CHECK_STR(ids_of((parts){.model = PAIRS("", "\"a b\"")}, "abab", 4), "2 2");
  CHECK_STR(ids_of((parts){.model = PAIRS("", "[\"a\",\"b\"]")}, "abab", 4), "2 2");
  CHECK_STR(ids_of((parts){.model = PAIRS(",\"byte_fallback\":true", "\"a b\"")}, "abAab", 5), "2 3 2");
}

#define TOKEN(id, text, more) "{\"id\":" #id ",\"content\":\"" text "\"" more "}"

static void test_wrong_added_tokens(void) {
  refused((parts){.added = "{}"}, RUNG_CORRUPT_FILE, "\"added_tokens\" is");
  refused((parts){.added = "[1]"}, RUNG_CORRUPT_FILE, "added_tokens");
  refused((parts){.added = "[{\"content\":\"x\"}]"}, RUNG_CORRUPT_FILE, "without id");
  refused((parts){.added = "[{\"id\":4}]"}, RUNG_CORRUPT_FILE, "\"content\" is missing");
  refused((parts){.added = "[" TOKEN(4, "", "") "]"}, RUNG_CORRUPT_FILE, "is empty");
  refused((parts){.added = "[" TOKEN(1, "x", "") "]"}, RUNG_CORRUPT_FILE, "id 1 is both");
  refused((parts){.added = "[" TOKEN(4, "a", "") "]"}, RUNG_CORRUPT_FILE, "also");
  refused((parts){.added = "[" TOKEN(99999999, "x", "") "]"}, RUNG_OUT_OF_RANGE, "99999999");
  refused((parts){.added = "[" TOKEN(4, "x", ",\"special\":1") "]"}, RUNG_CORRUPT_FILE, "\"special\" is a number");
  refused((parts){.added = "[" TOKEN(4, " ", ",\"normalized\":true") "]",
                  .normaliser = "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}"},
          RUNG_CORRUPT_FILE, "nothing is left of token 4");
  /* Words never become a token that was only added; the longest of two counts. */
  CHECK_STR(ids_of((parts){.added = "[" TOKEN(4, "x", "") "," TOKEN(5, "xy", "") "]"}, "axyxa", 5), "1 5 4 1");
  CHECK_STR(ids_of((parts){.added = "[" TOKEN(4, "ax", ",\"single_word\":true") "]"}, "axx", 3), "0");
}

static void test_wrong_steps(void) {
  refused((parts){.normaliser = "{\"type\":\"Nmt\"}"}, RUNG_UNSUPPORTED, "normalizer: \"Nmt\"");
  refused((parts){.normaliser = "{}"}, RUNG_CORRUPT_FILE, "\"type\" is missing");
  refused((parts){.normaliser = "{\"type\":\"Sequence\"}"}, RUNG_CORRUPT_FILE, "normalizers");
  refused((parts){.normaliser = "{\"type\":\"Sequence\",\"normalizers\":[7]}"}, RUNG_CORRUPT_FILE, "normalizer");
  refused((parts){.normaliser = "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"}"},
          RUNG_CORRUPT_FILE, "pattern is empty");
  refused((parts){.normaliser = "{\"type\":\"Replace\",\"pattern\":{},\"content\":\"\"}"}, RUNG_CORRUPT_FILE, "Regex");
  refused((parts){.normaliser = "{\"type\":\"BertNormalizer\",\"lowercase\":\"yes\"}"}, RUNG_CORRUPT_FILE, "lowercase");
  refused((parts){.cuts = "{\"type\":\"UnicodeScripts\"}"}, RUNG_UNSUPPORTED, "pre_tokenizer: \"UnicodeScripts\"");
  refused((parts){.cuts = "{\"type\":\"Metaspace\",\"replacement\":\"\"}"}, RUNG_CORRUPT_FILE, "replacement");
  refused((parts){.cuts = "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"x\"}"}, RUNG_CORRUPT_FILE,
          "prepend_scheme");
  refused((parts){.cuts = "{\"type\":\"Punctuation\",\"behavior\":\"x\"}"}, RUNG_CORRUPT_FILE, "behavior");
  refused((parts){.decoder = "{\"type\":\"CTC\"}"}, RUNG_UNSUPPORTED, "decoder: \"CTC\"");
  refused((parts){.decoder = "{\"type\":\"Strip\",\"content\":\" \",\"start\":0,\"stop\":1}"}, RUNG_UNSUPPORTED,
          "Strip");
  refused((parts){.post = "{\"type\":\"Mine\"}"}, RUNG_UNSUPPORTED, "post_processor: \"Mine\"");
  refused((parts){.post = "{\"type\":\"BertProcessing\",\"sep\":[\"?\",9],\"cls\":[\"?\",0]}"}, RUNG_OUT_OF_RANGE,
          "id 9");
  refused((parts){.post = "{\"type\":\"BertProcessing\",\"sep\":[\"?\"],\"cls\":[\"?\",0]}"}, RUNG_CORRUPT_FILE, "sep");
  refused((parts){.post = "{\"type\":\"TemplateProcessing\",\"single\":[],\"special_tokens\":{}}"}, RUNG_UNSUPPORTED,
          "without the text A");
  refused((parts){.post = "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}}],"
                          "\"special_tokens\":{}}"},
          RUNG_CORRUPT_FILE, "special_tokens lacks");
  char nested[2048] = "", *at = nested;
  for (int i = 0; i < 24; i++) at += sprintf(at, "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},");
  at += sprintf(at, "{\"type\":\"NFC\"}");
  for (int i = 0; i < 24; i++) at += sprintf(at, "]}");
  refused((parts){.normaliser = nested}, RUNG_UNSUPPORTED, "more than 16 steps");
}

static void test_patterns(void) {
  if (!RUNG_HAVE_PCRE2) {
    SKIP("patterns need PCRE2");
  }
  static const char *const unsupported[] = {"[a[b]]", "[a&&b]", "[\\\\S]", "\\\\Ga", "(?<n>a)",
                                            "(?m)a",  "a\\\\",  "(a",      "[a"};
  char cuts[256];
  for (size_t i = 0; i < RUNG_COUNT(unsupported); i++) {
    snprintf(cuts, sizeof cuts, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"Isolated\"}",
             unsupported[i]);
    refused((parts){.cuts = cuts}, RUNG_UNSUPPORTED, "pre_tokenizer");
  }
  refused((parts){.cuts = "{\"type\":\"ByteLevel\"}"}, RUNG_UNSUPPORTED, "ByteLevel with a WordPiece");
  const parts lines = {.cuts =
                           "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"^\\\\w|\\\\s\"},\"behavior\":\"Removed\"}"};
  CHECK_STR(ids_of(lines, "aab\naa", 6), "3 1"); /* ^ is where any line begins */
}

static void test_utf8(void) {
  const parts p = {
      .model = "{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"\xEF\xBF\xBD\":2}}",
      .cuts = "{\"type\":\"Split\",\"pattern\":{\"String\":\"\xEF\xBF\xBD\"},\"behavior\":\"Isolated\"}"};
  CHECK_STR(ids_of(p,
                   "a\xFF\xE2\x82"
                   "a\xC3",
                   6),
            "1 2 2 1 2");
  CHECK_STR(ids_of(p, "\x80\x80", 2), "2 2");
  CHECK_STR(ids_of(p, "", 0), "");
  CHECK_STR(ids_of((parts){0}, "a\0b", 3), "0");
}

static const char roles[] =
    "{\"bos_token\":{\"content\":\"a\"},\"eos_token\":\"ab\",\"pad_token\":null,\"model_max_length\":512}";

static void test_roles(void) {
  rung_host *host = new_host();
  const parts p = {0};
  const char *text = whole(&p);
  const rung_source source = rung_source_memory(text, strlen(text));
  rung_source config = rung_source_memory(roles, sizeof roles - 1);
  rung_error error = {0};
  rung_tokenizer *t = NULL;
  CHECK_OK(rung_tokenizer_json(host, &source, &config, &error, &t));
  if (t) {
    CHECK_EQ_I64(rung_tokenizer_ids(t)->bos, 1);
    CHECK_EQ_I64(rung_tokenizer_ids(t)->eos, 3);
    CHECK_EQ_I64(rung_tokenizer_ids(t)->pad, -1);
    CHECK_EQ_I64(rung_tokenizer_ids(t)->unknown, 0);
    CHECK(rung_tokenizer_is_eog(t, 3) && !rung_tokenizer_adds_bos(t));
    CHECK_EQ_I64(rung_tokenizer_truncation(t), 512);
  }
  rung_tokenizer_release(t);
  t = NULL;
  config = rung_source_memory("[", 1);
  CHECK_STATUS(rung_tokenizer_json(host, &source, &config, &error, &t), RUNG_CORRUPT_FILE);
  CHECK(strstr(error.message, "tokenizer_config.json"));
  CHECK_STATUS(rung_tokenizer_json_folder(host, "/nowhere", &error, &t), RUNG_NOT_FOUND);
  rung_host_release(host);
}

static const char *const small[] = {"cased",  "words",   "fallback", "pairs",  "llama3",
                                    "digits", "unknown", "unigram",  "suffix", "level"};

static rung_map map_small(rung_host *host, const char *name) {
  char path[1024];
  rung_map map = {0};
  snprintf(path, sizeof path, "%s/tests/tokens/json/%s.json", RUNG_SOURCE_DIR, name);
  const rung_source source = rung_source_path(path);
  CHECK_OK(rung_map_open(&map, host, &source, NULL));
  return map;
}

/* Reading a file, then a text there and back. */
static rung_status use(rung_host *host, const char *json, size_t bytes, rung_error *error) {
  static const char text[] =
      "Hello na\xC3\xAFve  world, \xE2\x85\xA7 <mask> 1984 \xF0\x9F\x98\x80 I'll abcdefghijklmnopqrstuvwxyzabcdefghi "
      "\xFF";
  rung_tokenizer *t = NULL;
  RUNG_TRY(read_text(host, json, bytes, error, &t));
  rung_ids ids;
  rung_text back;
  rung_ids_init(&ids, host);
  rung_text_init(&back, host);
  rung_status status = rung_tokenizer_encode(t, text, sizeof text - 1, RUNG_ENCODE_PARSE_SPECIAL, error, &ids);
  if (!status) status = rung_tokenizer_decode(t, ids.data, ids.count, RUNG_DECODE_SPECIAL, error, &back);
  rung_ids_finish(&ids);
  rung_text_finish(&back);
  rung_tokenizer_release(t);
  return status;
}

/* The n-th allocation fails, for each n: OUT_OF_MEMORY, and nothing stays. */
static void test_faults(void) {
  for (size_t i = 0; i < RUNG_COUNT(small); i++) {
    rung_host *host = new_host();
    rung_map map = map_small(host, small[i]);
    const uint64_t before = rung_host_memory(host).host;
    rung_error error = {0};
    const rung_status plain = use(host, (const char *)map.data, (size_t)map.size, &error);
    CHECK(plain == RUNG_OK || (plain == RUNG_UNSUPPORTED && !(RUNG_HAVE_PCRE2 && RUNG_HAVE_UTF8PROC)));
    for (int64_t n = 1; plain == RUNG_OK; n++) {
      test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = n};
      rung_host_set_fault(host, test_fault_hit, &fault);
      const rung_status status = use(host, (const char *)map.data, (size_t)map.size, &error);
      rung_host_set_fault(host, NULL, NULL);
      CHECK(status == (fault.hit ? RUNG_OUT_OF_MEMORY : RUNG_OK));
      CHECK_EQ_I64(rung_host_memory(host).host, before);
      if (!fault.hit || status == RUNG_OK) break;
    }
    rung_map_close(&map);
    rung_host_release(host);
  }
}

/* Cut at every byte: refused. Every byte changed once: whatever it is, a status and nothing left. */
static void test_damage(void) {
  rung_host *host = new_host();
  rung_map map = map_small(host, "words");
  char *copy = malloc((size_t)map.size);
  const uint64_t before = rung_host_memory(host).host;
  rung_error error = {0};
  rung_tokenizer *t = NULL;
  for (size_t n = 0; copy && n < map.size; n++) {
    memcpy(copy, map.data, (size_t)map.size);
    CHECK_STATUS(read_text(host, copy, n, &error, &t), RUNG_CORRUPT_FILE);
    for (int bit = 0; bit < 8; bit += 3) {
      copy[n] = (char)(copy[n] ^ 1 << bit);
      error.message[0] = 0;
      const rung_status status = use(host, copy, (size_t)map.size, &error);
      CHECK(status == RUNG_OK || error.message[0]);
    }
    CHECK_EQ_I64(rung_host_memory(host).host, before);
  }
  free(copy);
  rung_map_close(&map);
  rung_host_release(host);
}

int main(void) {
  RUN(test_wrong_files);
  RUN(test_wrong_vocabularies);
  RUN(test_wrong_merges);
  RUN(test_wrong_added_tokens);
  RUN(test_wrong_steps);
  RUN(test_patterns);
  RUN(test_utf8);
  RUN(test_roles);
  RUN(test_faults);
  RUN(test_damage);
  return TEST_END();
}
