/* SPDX-License-Identifier: MIT
 * Pre-tokenisers as rows, matched by PCRE2.
 *
 * The patterns mean what Hugging Face's tokenizers mean by them: \p{L} and \p{N} by Unicode category, white space by
 * the property White_Space. PCRE2's own \s would add U+180E, hence SPACE. No just-in-time compiler: its memory is
 * executable, comes from outside the host's allocator, and compiling costs more than reading a prompt saves. */
#include "text/pretokenise.h"

#include <string.h>

enum { MOST_PATTERNS = 6 };

#define SPACE "\\t-\\r\\x{85}\\p{Z}" /* inside a class; U+0020 is in Z */

/* GPT-2's: contractions, then words, numbers and other signs each with one space before them, then white space, of
 * which the last one is left to the word that follows. */
#define WORDS "'(?:[stmd]|re|ve|ll)| ?\\p{L}+"
#define SIGNS " ?[^" SPACE "\\p{L}\\p{N}]+"
#define GPT2 WORDS "| ?\\p{N}+|" SIGNS "|[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+"
/* Digits alone first, then GPT-2's within the pieces between them: in one pattern, so that text is read once. A digit
 * ends a piece, so white space before one ends there too and no space goes with it. */
#define DIGITS_THEN_GPT2 "\\p{N}|" WORDS "|" SIGNS "|[" SPACE "]+(?![^" SPACE "\\p{N}])|[" SPACE "]+"

/* Llama 3's and its relatives': contractions in any case, a word with one sign before it, up to N digits, line ends
 * with the signs or the white space before them. */
#define LLAMA3(numbers)                                                                                              \
  "'(?i:[stmd]|re|ve|ll)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers "|" SIGNS "[\\r\\n]*|[" SPACE "]*[\\r\\n]+|[" SPACE \
  "]+(?![^" SPACE "])|[" SPACE "]+"

typedef struct row {
  const char *names[12];
  const char *patterns[MOST_PATTERNS];
  bool ignore_merges, add_bos;
} row;

/* clang-format off */
static const row rows[] = {
  {.names = {"gpt-2", "gpt2", "mpt", "olmo", "phi-2"}, .patterns = {GPT2}},
  {.names = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"}, .patterns = {DIGITS_THEN_GPT2}},
  {.names = {"llama-bpe", "llama3", "llama-v3"}, .patterns = {LLAMA3("\\p{N}{1,3}")}, .ignore_merges = true, .add_bos = true},
  {.names = {"qwen2", "stablelm2", "deepseek-r1-qwen"}, .patterns = {LLAMA3("\\p{N}")}},
  /* What llama.cpp does for files that name none. */
  {.names = {"default"},       .patterns = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9]{3}"}},
};
/* clang-format on */

static const row *find_row(const char *name) {
  if (!name) name = "default";
  for (size_t r = 0; r < RUNG_COUNT(rows); r++)
    for (size_t n = 0; n < RUNG_COUNT(rows[r].names) && rows[r].names[n]; n++)
      if (strcmp(rows[r].names[n], name) == 0) return &rows[r];
  return NULL;
}

rung_choice rung_pretokeniser_adds_bos(const char *name) {
  const row *found = find_row(name);
  return found && found->add_bos ? RUNG_CHOICE_YES : RUNG_CHOICE_DEFAULT;
}

#if RUNG_HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct rung_pretokeniser {
  rung_host *host;
  const row *row;
  pcre2_general_context *memory;
  pcre2_match_context *limits;
  pcre2_code *code[MOST_PATTERNS];
  int patterns;
};

/* PCRE2 frees without a size, so each block begins with its own. */
enum { HEADER = 16 };
static void *take(size_t bytes, void *self) {
  if (bytes > SIZE_MAX - HEADER) return NULL;
  char *p = rung_host_alloc_raw(self, RUNG_MEMORY_host, bytes + HEADER, 0);
  if (!p) return NULL;
  memcpy(p, &bytes, sizeof bytes);
  return p + HEADER;
}
static void give(void *p, void *self) {
  if (!p) return;
  size_t bytes;
  memcpy(&bytes, (char *)p - HEADER, sizeof bytes);
  rung_host_free(self, RUNG_MEMORY_host, (char *)p - HEADER, bytes + HEADER);
}

static rung_status compile(rung_pretokeniser *p, rung_error *error) {
  pcre2_compile_context *options = pcre2_compile_context_create(p->memory);
  if (!options) return rung_fail(error, RUNG_OUT_OF_MEMORY, "pre-tokeniser \"%s\"", p->row->names[0]);
  rung_status status = RUNG_OK;
  for (; status == RUNG_OK && p->patterns < MOST_PATTERNS && p->row->patterns[p->patterns]; p->patterns++) {
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)p->row->patterns[p->patterns], PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_NO_UTF_CHECK, &code, &at, options);
    p->code[p->patterns] = compiled;
    if (!compiled && code == PCRE2_ERROR_NOMEMORY) {
      status = rung_fail(error, RUNG_OUT_OF_MEMORY, "pre-tokeniser \"%s\"", p->row->names[0]);
    } else if (!compiled) { /* also ERR21: compiling ran out of memory */
      status = rung_fail(error, code == 121 ? RUNG_OUT_OF_MEMORY : RUNG_UNSUPPORTED,
                         "pre-tokeniser \"%s\": PCRE2 refuses pattern %d (error %d at %zu)", p->row->names[0],
                         p->patterns, code, (size_t)at);
    }
  }
  pcre2_compile_context_free(options);
  return status;
}

rung_status rung_pretokeniser_create(rung_host *host, const char *name, rung_error *error,
                                     rung_pretokeniser **out_pretokeniser) {
  const row *found = find_row(name);
  if (!found) return rung_fail(error, RUNG_UNSUPPORTED, "pre: the pre-tokeniser \"%.64s\" is not known", name);
  rung_pretokeniser *p = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *p, 0);
  if (!p) return rung_fail(error, RUNG_OUT_OF_MEMORY, "pre-tokeniser \"%s\"", found->names[0]);
  p->host = host;
  p->row = found;
  p->memory = pcre2_general_context_create(take, give, host);
  p->limits = p->memory ? pcre2_match_context_create(p->memory) : NULL;
  const rung_status status =
      p->limits ? compile(p, error) : rung_fail(error, RUNG_OUT_OF_MEMORY, "pre-tokeniser \"%s\"", found->names[0]);
  if (status) {
    rung_pretokeniser_destroy(p);
    return status;
  }
  *out_pretokeniser = p;
  return RUNG_OK;
}

void rung_pretokeniser_destroy(rung_pretokeniser *p) {
  if (!p) return;
  for (int i = 0; i < MOST_PATTERNS; i++) pcre2_code_free(p->code[i]);
  pcre2_match_context_free(p->limits);
  pcre2_general_context_free(p->memory);
  rung_host_free(p->host, RUNG_MEMORY_host, p, sizeof *p);
}

/* One split under way. Match data is per call and per stage: a stage goes on after the ones below it have matched. */
typedef struct split {
  const rung_pretokeniser *p;
  pcre2_match_data *match[MOST_PATTERNS];
  rung_word_fn *word;
  void *self;
  rung_error *error;
} split;

static rung_status split_at(split *s, int stage, const char *text, size_t length);

static rung_status piece(split *s, int stage, const char *text, size_t length) {
  if (length == 0) return RUNG_OK;
  if (stage + 1 == s->p->patterns) return s->word(s->self, text, length, s->error);
  return split_at(s, stage + 1, text, length);
}

static rung_status split_at(split *s, int stage, const char *text, size_t length) {
  size_t done = 0, from = 0;
  while (from < length) {
    const int found = pcre2_match(s->p->code[stage], (PCRE2_SPTR)text, length, from, PCRE2_NO_UTF_CHECK,
                                  s->match[stage], s->p->limits);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      return rung_fail(s->error, found == PCRE2_ERROR_NOMEMORY ? RUNG_OUT_OF_MEMORY : RUNG_OUT_OF_RANGE,
                       "pre-tokeniser \"%s\": PCRE2 gives up on %zu bytes of text (error %d)", s->p->row->names[0],
                       length, found);
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(s->match[stage]);
    const size_t start = range[0], end = range[1];
    if (end <= start) break; /* no pattern of ours matches nothing */
    RUNG_TRY(piece(s, stage, text + done, start - done));
    RUNG_TRY(piece(s, stage, text + start, end - start));
    done = from = end;
  }
  return piece(s, stage, text + done, length - done);
}

rung_status rung_pretokeniser_split(const rung_pretokeniser *p, const char *text, size_t length, rung_word_fn *word,
                                    void *self, rung_error *error) {
  split s = {.p = p, .word = word, .self = self, .error = error};
  rung_status status = RUNG_OK;
  for (int i = 0; i < p->patterns && status == RUNG_OK; i++) {
    s.match[i] = pcre2_match_data_create(1, p->memory);
    if (!s.match[i]) status = rung_fail(error, RUNG_OUT_OF_MEMORY, "pre-tokeniser \"%s\"", p->row->names[0]);
  }
  if (status == RUNG_OK) status = split_at(&s, 0, text, length);
  for (int i = 0; i < p->patterns; i++) pcre2_match_data_free(s.match[i]);
  return status;
}

bool rung_pretokeniser_ignores_merges(const rung_pretokeniser *p) { return p->row->ignore_merges; }

#else

rung_status rung_pretokeniser_create(rung_host *host, const char *name, rung_error *error,
                                     rung_pretokeniser **out_pretokeniser) {
  (void)host, (void)out_pretokeniser;
  const row *found = find_row(name);
  if (!found) return rung_fail(error, RUNG_UNSUPPORTED, "pre: the pre-tokeniser \"%.64s\" is not known", name);
  return rung_fail(error, RUNG_UNSUPPORTED, "pre: the pre-tokeniser \"%s\" needs PCRE2, which this build is without",
                   found->names[0]);
}
void rung_pretokeniser_destroy(rung_pretokeniser *p) { (void)p; }
bool rung_pretokeniser_ignores_merges(const rung_pretokeniser *p) {
  (void)p;
  return false;
}
rung_status rung_pretokeniser_split(const rung_pretokeniser *p, const char *text, size_t length, rung_word_fn *word,
                                    void *self, rung_error *error) {
  (void)p, (void)text, (void)length, (void)word, (void)self;
  return rung_fail(error, RUNG_UNSUPPORTED, "pre-tokenisers need PCRE2");
}
#endif
