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

#define CONTRACTIONS "'(?i:[stmd]|re|ve|ll)"
#define LINES "[" SPACE "]*[\\r\\n]+"
#define BLANKS "[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+"
/* Llama 3's and its relatives': contractions in any case, a word with one sign before it, up to N digits, line ends
 * with the signs or the white space before them. */
#define LLAMA3(numbers) CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers "|" SIGNS "[\\r\\n]*|" LINES "|" BLANKS

/* GPT-4o's and Mistral's: a word is capital letters, then small ones; letters without case and marks are both. `end`
 * may follow a word. */
#define CAPITALS "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define SMALL "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define CASES(end, numbers)                                                                                        \
  "[^\\r\\n\\p{L}\\p{N}]?[" CAPITALS "]*[" SMALL "]+" end "|[^\\r\\n\\p{L}\\p{N}]?[" CAPITALS "]+[" SMALL "]*" end \
  "|" numbers "|" SIGNS "[\\r\\n/]*|" LINES "|" BLANKS

/* DeepSeek's first models: their own lists of letters, signs and CJK characters. */
#define DEEPSEEK_LETTERS                                                                                              \
  "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}"    \
  "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}"      \
  "\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}"        \
  "\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-"         \
  "\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}" \
  "\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-" \
  "\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}" \
  "\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-"  \
  "\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-"  \
  "\\x{2CE4}\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-" \
  "\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}" \
  "-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-"         \
  "\\x{10CF2}\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"
#define DEEPSEEK_SIGNS "!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}"
#define DEEPSEEK_CJK "[\\x{800}-\\x{9FA5}\\x{AC00}-\\x{D7FF}]+"
#define CJK "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{30FF}]+"
#define DEEPSEEK3 \
  "[!-/:-@\\[-`{-~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES "|" BLANKS
/* BLOOM's: up to white space or a full stop or comma of some script. */
#define BLOOM " ?[^(" SPACE "|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"

typedef struct row {
  const char *what; /* in messages */
  const char *names[12];
  const char *patterns[MOST_PATTERNS];
  bool ignore_merges, add_bos;
} row;

#define ROW(name) .what = "pre: the pre-tokeniser \"" name "\""

/* clang-format off */
static const row rows[] = {
  {ROW("gpt-2"), .names = {"gpt-2", "gpt2", "mpt", "olmo", "phi-2", "jais", "trillion", "exaone4", "modern-bert", "roberta-bpe", "mellum", "granite-docling"}, .patterns = {GPT2}},
  {ROW("smollm"), .names = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"}, .patterns = {DIGITS_THEN_GPT2}},
  {ROW("llama-bpe"), .names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"}, .patterns = {LLAMA3("\\p{N}{1,3}")}, .ignore_merges = true, .add_bos = true},
  {ROW("dbrx"), .names = {"dbrx", "smaug-bpe", "chatglm-bpe"}, .patterns = {LLAMA3("\\p{N}{1,3}")}},
  {ROW("glm4"), .names = {"glm4", "glm5"}, .patterns = {LLAMA3("\\p{N}{1,3}")}, .ignore_merges = true},
  {ROW("qwen2"), .names = {"qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan", "grok-2", "solar-open", "kormo", "f2llmv2"}, .patterns = {LLAMA3("\\p{N}")}},
  {ROW("qwen35"), .names = {"qwen35"}, .patterns = {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" SPACE "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES "|" BLANKS}},
  {ROW("seed-coder"), .names = {"seed-coder"}, .patterns = {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^" SPACE "\\p{L}\\p{N}\\r\\n]+|" LINES "|" BLANKS}},
  {ROW("bailingmoe"), .names = {"bailingmoe", "bailingmoe2", "llada-moe"}, .patterns = {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" SIGNS "[\\r\\n]*|[" SPACE "]*[\\r\\n]|" BLANKS}},
  {ROW("gpt-4o"), .names = {"gpt-4o", "llama4", "kanana2", "minimax-m2"}, .patterns = {CASES("(?:" CONTRACTIONS ")?", "\\p{N}{1,3}")}},
  {ROW("tekken"), .names = {"tekken"}, .patterns = {CASES("", "\\p{N}")}, .ignore_merges = true, .add_bos = true},
  {ROW("deepseek-llm"), .names = {"deepseek-llm"}, .patterns = {"[\\r\\n]", "[" SPACE "]?[" DEEPSEEK_LETTERS "]+", "[" SPACE "]?[" DEEPSEEK_SIGNS "]+", "[" SPACE "]+\\z", DEEPSEEK_CJK, "\\p{N}+"}},
  {ROW("deepseek-coder"), .names = {"deepseek-coder"}, .patterns = {"[\\r\\n]", "[" SPACE "]?\\p{L}+", "[" SPACE "]?\\p{P}+", DEEPSEEK_CJK, "\\p{N}"}},
  {ROW("deepseek-v3"), .names = {"deepseek-v3", "hunyuan-dense", "joyai-llm"}, .patterns = {"\\p{N}{1,3}", CJK, DEEPSEEK3}},
  {ROW("falcon"), .names = {"falcon"}, .patterns = {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9]{3}"}},
  {ROW("bloom"), .names = {"bloom", "poro-chat", "gpt3-finnish"}, .patterns = {BLOOM}},
  {ROW("viking"), .names = {"viking"}, .patterns = {BLOOM, "\\p{N}"}},
  /* What llama.cpp does for files that name none. */
  {ROW("default"), .names = {"default"}, .patterns = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9]{3}"}},
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
