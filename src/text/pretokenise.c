/* SPDX-License-Identifier: MIT
 * Pre-tokenisers as rows.
 *
 * The patterns mean what Hugging Face's tokenizers mean by them: \p{L} and \p{N} by Unicode category, white space by
 * the property White_Space. PCRE2's own \s would add U+180E, hence SPACE. */
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
  const char *what; /* in messages */
  const char *names[12];
  const char *patterns[MOST_PATTERNS];
  bool ignore_merges, add_bos;
} row;

/* clang-format off */
static const row rows[] = {
  {.what = "pre: the pre-tokeniser \"gpt-2\"", .names = {"gpt-2", "gpt2", "mpt", "olmo", "phi-2"}, .patterns = {GPT2}},
  {.what = "pre: the pre-tokeniser \"smollm\"", .names = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"}, .patterns = {DIGITS_THEN_GPT2}},
  {.what = "pre: the pre-tokeniser \"llama-bpe\"", .names = {"llama-bpe", "llama3", "llama-v3"}, .patterns = {LLAMA3("\\p{N}{1,3}")}, .ignore_merges = true, .add_bos = true},
  {.what = "pre: the pre-tokeniser \"qwen2\"", .names = {"qwen2", "stablelm2", "deepseek-r1-qwen"}, .patterns = {LLAMA3("\\p{N}")}},
  /* What llama.cpp does for files that name none. */
  {.what = "pre: the pre-tokeniser \"default\"", .names = {"default"},      .patterns = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9]{3}"}},
};
/* clang-format on */

static const row *find_row(const char *name) {
  if (!name) name = "default";
  for (size_t r = 0; r < RUNG_COUNT(rows); r++)
    for (size_t n = 0; n < RUNG_COUNT(rows[r].names) && rows[r].names[n]; n++)
      if (strcmp(rows[r].names[n], name) == 0) return &rows[r];
  return NULL;
}

bool rung_pretokeniser_ignores_merges(const char *name) {
  const row *found = find_row(name);
  return found && found->ignore_merges;
}

rung_choice rung_pretokeniser_adds_bos(const char *name) {
  const row *found = find_row(name);
  return found && found->add_bos ? RUNG_CHOICE_YES : RUNG_CHOICE_DEFAULT;
}

rung_status rung_pretokeniser_create(rung_host *host, const char *name, rung_error *error, rung_cutter **out_cutter) {
  const row *found = find_row(name);
  if (!found) return rung_fail(error, RUNG_UNSUPPORTED, "pre: the pre-tokeniser \"%.64s\" is not known", name);
  rung_text_step steps[MOST_PATTERNS];
  size_t count = 0;
  for (; count < MOST_PATTERNS && found->patterns[count]; count++)
    steps[count] = (rung_text_step){.kind = RUNG_CUT_SPLIT,
                                    .flags = RUNG_STEP_REGEX | RUNG_STEP_NATIVE,
                                    .behaviour = RUNG_CUT_ISOLATED,
                                    .pattern = {found->patterns[count], strlen(found->patterns[count])}};
  return rung_cutter_create(host, found->what, steps, count, error, out_cutter);
}
