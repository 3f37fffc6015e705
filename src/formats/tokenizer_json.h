/* SPDX-License-Identifier: MIT
 * A tokeniser from Hugging Face's tokenizer.json: the same object that a GGUF file makes, and the same ids as the
 * `tokenizers` library.
 *
 * Read: the models WordPiece, WordLevel, BPE (byte-level or by characters, with byte_fallback, ignore_merges and
 * end_of_word_suffix) and Unigram; added tokens; the normalisers BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, Strip,
 * StripAccents, Replace, Prepend, Precompiled;
 * the pre-tokenisers BertPreTokenizer, ByteLevel, Split, Metaspace, Whitespace, WhitespaceSplit, Punctuation, Digits;
 * the post-processors TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel; the decoders WordPiece,
 * ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip; sequences of these. Anything else is UNSUPPORTED with its
 * name.
 *
 * Padding and truncation are not done; rung_tokenizer_truncation() tells the length. The library reads special tokens
 * that are spelled out in a text as such: that is RUNG_ENCODE_PARSE_SPECIAL here. The second text of a pair is not
 * supported. What is not UTF-8 becomes U+FFFD. */
#ifndef RUNG_FORMATS_TOKENIZER_JSON_H
#define RUNG_FORMATS_TOKENIZER_JSON_H

#include <rung/source.h>

#include "text/tokenizer.h"

/* `config`: a tokenizer_config.json, for roles (bos_token, eos_token ...) and model_max_length; NULL: none. Nothing is
 * kept of either source. CORRUPT_FILE names the member that is wrong, JSON errors their offset. */
RUNG_CHECKED rung_status rung_tokenizer_json(rung_host *host, const rung_source *source, const rung_source *config,
                                             rung_error *error, rung_tokenizer **out_tokenizer);
/* From a folder: its tokenizer.json and, if there is one, its tokenizer_config.json. NOT_FOUND if the first is missing.
 */
RUNG_CHECKED rung_status rung_tokenizer_json_folder(rung_host *host, const char *folder, rung_error *error,
                                                    rung_tokenizer **out_tokenizer);

#endif
