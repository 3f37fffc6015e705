/* SPDX-License-Identifier: MIT
 * The vocabulary of a tokenizer.json, by id, with the tokens that were added to it, and the merges. */
#include <string.h>

#include "formats/tokenizer_json_internal.h"

enum { HOLES = 65536 }; /* ids that nobody has beyond four for each token: more are a mistake, or made to cost memory */

static int shown(size_t length) { return (int)(length < 64 ? length : 64); }

static rung_status check_id(rung_tokenizer_reader *r, const char *where, int64_t id, size_t most) {
  if (id >= 0 && (uint64_t)id < most) return RUNG_OK;
  return rung_fail(r->error, RUNG_OUT_OF_RANGE, "%s: id %lld, expected 0 to %zu", where, (long long)id, most - 1);
}

static rung_status place(rung_tokenizer_reader *r, const char *where, int64_t id, rung_slice text,
                         rung_token_type type) {
  if (r->texts[id])
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "%s: id %lld is both \"%.*s\" and \"%.*s\"", where, (long long)id,
                     shown(r->lengths[id]), r->texts[id], shown(text.length), text.text);
  r->texts[id] = text.text;
  r->lengths[id] = (uint32_t)text.length;
  r->types[id] = (int32_t)type;
  return RUNG_OK;
}

/* The largest id in the vocabulary and the added tokens, checked, so that arrays can be made. */
static rung_status count_ids(rung_tokenizer_reader *r, rung_json vocab, rung_json added, size_t *out_count) {
  const bool places = rung_json_kind_of(vocab) == RUNG_JSON_ARRAY; /* ids are places */
  const size_t entries = rung_json_count(vocab), more = rung_json_count(added), most = (entries + more) * 4 + HOLES;
  int64_t id, last = places ? (int64_t)entries - 1 : -1;
  rung_json name, value;
  for (rung_json_walk walk = rung_json_begin(vocab); !places && rung_json_next(&walk, &name, &value);) {
    if (!rung_json_i64(value, &id))
      return rung_fail(r->error, RUNG_CORRUPT_FILE, "model.vocab: the id of %.*s is no whole number",
                       shown(name.length), name.text);
    RUNG_TRY(check_id(r, "model.vocab", id, most));
    if (id > last) last = id;
  }
  for (rung_json_walk walk = rung_json_begin(added); rung_json_next(&walk, NULL, &value);) {
    RUNG_TRY(rung_tokenizer_number(r, value, "added_tokens", "id", 0, (int64_t)most - 1, -1, &id));
    if (id < 0) return rung_tokenizer_wrong(r, "added_tokens", "an entry without id");
    if (id > last) last = id;
  }
  if (last < 0) return rung_tokenizer_wrong(r, "model.vocab", "the vocabulary is empty");
  *out_count = (size_t)last + 1;
  return RUNG_OK;
}

/* {"text": id, ...} */
static rung_status read_object(rung_tokenizer_reader *r, rung_json vocab) {
  rung_json name, value;
  for (rung_json_walk walk = rung_json_begin(vocab); rung_json_next(&walk, &name, &value);) {
    int64_t id = 0;
    (void)rung_json_i64(value, &id); /* looked at before */
    RUNG_TRY(place(r, "model.vocab", id, rung_tokenizer_keep(r, name), RUNG_TOKEN_NORMAL));
  }
  return RUNG_OK;
}

/* Two values of an array of two. */
static bool read_two(rung_json pair, rung_json out[2]) {
  rung_json more;
  rung_json_walk walk = rung_json_begin(pair);
  return rung_json_kind_of(pair) == RUNG_JSON_ARRAY && rung_json_next(&walk, NULL, &out[0]) &&
         rung_json_next(&walk, NULL, &out[1]) && !rung_json_next(&walk, NULL, &more);
}

/* [["text", score], ...] */
static rung_status read_array(rung_tokenizer_reader *r, rung_json vocab) {
  r->scores = rung_host_array(r->host, r->count, sizeof *r->scores);
  if (!r->scores) return rung_fail(r->error, RUNG_OUT_OF_MEMORY, "model.vocab: %zu scores", r->count);
  rung_json entry, pair[2];
  int64_t i = 0;
  for (rung_json_walk walk = rung_json_begin(vocab); rung_json_next(&walk, NULL, &entry); i++) {
    double score;
    if (!read_two(entry, pair) || rung_json_kind_of(pair[0]) != RUNG_JSON_STRING || !rung_json_f64(pair[1], &score))
      return rung_fail(r->error, RUNG_CORRUPT_FILE, "model.vocab: entry %lld is not a text and a score", (long long)i);
    r->scores[i] = score;
    RUNG_TRY(place(r, "model.vocab", i, rung_tokenizer_keep(r, pair[0]), RUNG_TOKEN_NORMAL));
  }
  return RUNG_OK;
}

static rung_status read_added(rung_tokenizer_reader *r, rung_json object) {
  static const char where[] = "added_tokens";
  rung_json content;
  int64_t id;
  bool special, single_word, lstrip, rstrip, normalised;
  RUNG_TRY(rung_tokenizer_number(r, object, where, "id", 0, (int64_t)r->count - 1, -1, &id));
  RUNG_TRY(rung_tokenizer_member(r, object, where, "content", RUNG_JSON_STRING, true, &content));
  RUNG_TRY(rung_tokenizer_flag(r, object, where, "special", false, &special));
  RUNG_TRY(rung_tokenizer_flag(r, object, where, "single_word", false, &single_word));
  RUNG_TRY(rung_tokenizer_flag(r, object, where, "lstrip", false, &lstrip));
  RUNG_TRY(rung_tokenizer_flag(r, object, where, "rstrip", false, &rstrip));
  RUNG_TRY(rung_tokenizer_flag(r, object, where, "normalized", !special, &normalised));
  const rung_slice text = rung_tokenizer_keep(r, content);
  if (!text.length)
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "added_tokens: the content of %lld is empty", (long long)id);
  const rung_token_type type = special ? RUNG_TOKEN_CONTROL : RUNG_TOKEN_USER_DEFINED;
  bool outside = false;
  if (r->texts[id] && r->lengths[id] == text.length && memcmp(r->texts[id], text.text, text.length) == 0) {
    r->types[id] = (int32_t)type; /* also a token of the model */
  } else {
    RUNG_TRY(place(r, where, id, text, type));
    outside = true;
  }
  r->added[r->added_count++] = (rung_added_token){.id = (int32_t)id,
                                                  .single_word = single_word,
                                                  .lstrip = lstrip,
                                                  .rstrip = rstrip,
                                                  .normalised = normalised,
                                                  .outside = outside};
  return RUNG_OK;
}

/* Of two tokens with the same text the special one counts, so these come first. */
static void specials_first(rung_tokenizer_reader *r) {
  size_t to = 0;
  for (size_t i = 0; i < r->added_count; i++) {
    const rung_added_token token = r->added[i];
    if (r->types[token.id] != RUNG_TOKEN_CONTROL) continue;
    memmove(r->added + to + 1, r->added + to, (i - to) * sizeof token);
    r->added[to++] = token;
  }
}

rung_status rung_tokenizer_read_vocabulary(rung_tokenizer_reader *r, rung_json root, rung_json model) {
  bool twice;
  const rung_json vocab = rung_tokenizer_look_up(r, model, "vocab", &twice);
  const rung_json_kind kind = rung_json_kind_of(vocab);
  if (twice || (kind != RUNG_JSON_OBJECT && kind != RUNG_JSON_ARRAY))
    return rung_tokenizer_wrong(r, "model.vocab", twice ? "there twice" : "missing, or no object or array");
  rung_json added, entry;
  RUNG_TRY(rung_tokenizer_member(r, root, "the file", "added_tokens", RUNG_JSON_ARRAY, false, &added));
  size_t count;
  RUNG_TRY(count_ids(r, vocab, added, &count));
  r->count = count;
  r->texts = rung_host_array(r->host, count, sizeof *r->texts);
  r->lengths = rung_host_array(r->host, count, sizeof *r->lengths);
  r->types = rung_host_array(r->host, count, sizeof *r->types);
  r->added_capacity = rung_json_count(added);
  r->added = rung_host_array(r->host, r->added_capacity, sizeof *r->added);
  if (!r->texts || !r->lengths || !r->types || !r->added)
    return rung_fail(r->error, RUNG_OUT_OF_MEMORY, "model.vocab: %zu tokens", count);
  RUNG_TRY(kind == RUNG_JSON_OBJECT ? read_object(r, vocab) : read_array(r, vocab));
  for (rung_json_walk walk = rung_json_begin(added); rung_json_next(&walk, NULL, &entry);)
    RUNG_TRY(read_added(r, entry));
  specials_first(r);
  for (size_t i = 0; i < count; i++) {
    if (r->texts[i]) continue;
    r->texts[i] = "";
    r->types[i] = RUNG_TOKEN_UNUSED;
  }
  return RUNG_OK;
}

int64_t rung_tokenizer_id_of(const rung_tokenizer_reader *r, rung_slice text) {
  for (size_t i = 0; i < r->count && text.length; i++)
    if (r->lengths[i] == text.length && memcmp(r->texts[i], text.text, text.length) == 0) return (int64_t)i;
  return RUNG_TOKEN_NONE;
}

/* "left right", or ["left", "right"]: then the two are kept one behind the other with a blank between. */
static rung_status read_merge(rung_tokenizer_reader *r, rung_json merge, size_t i) {
  rung_json pair[2];
  const bool two = read_two(merge, pair);
  if (two ? rung_json_kind_of(pair[0]) != RUNG_JSON_STRING || rung_json_kind_of(pair[1]) != RUNG_JSON_STRING
          : rung_json_kind_of(merge) != RUNG_JSON_STRING)
    return rung_fail(r->error, RUNG_CORRUPT_FILE, "model.merges: entry %zu is not two texts", i);
  rung_slice text = rung_tokenizer_keep(r, two ? pair[0] : merge);
  if (two) {
    r->merge_left[i] = (uint32_t)text.length;
    r->store[r->used++] = ' '; /* where the file has quotes and a comma there is room enough */
    text.length += 1 + rung_tokenizer_keep(r, pair[1]).length;
  } else {
    const char *blank = text.length ? memchr(text.text + 1, ' ', text.length - 1) : NULL;
    r->merge_left[i] = blank ? (uint32_t)(blank - text.text) : 0;
  }
  r->merges[i] = text.text;
  r->merge_lengths[i] = (uint32_t)text.length;
  return RUNG_OK;
}

rung_status rung_tokenizer_read_merges(rung_tokenizer_reader *r, rung_json model) {
  rung_json merges, merge;
  RUNG_TRY(rung_tokenizer_member(r, model, "model", "merges", RUNG_JSON_ARRAY, true, &merges));
  r->merge_count = rung_json_count(merges);
  r->merges = rung_host_array(r->host, r->merge_count, sizeof *r->merges);
  r->merge_lengths = rung_host_array(r->host, r->merge_count, sizeof *r->merge_lengths);
  r->merge_left = rung_host_array(r->host, r->merge_count, sizeof *r->merge_left);
  if (!r->merges || !r->merge_lengths || !r->merge_left)
    return rung_fail(r->error, RUNG_OUT_OF_MEMORY, "model.merges: %zu", r->merge_count);
  size_t i = 0;
  for (rung_json_walk walk = rung_json_begin(merges); rung_json_next(&walk, NULL, &merge); i++)
    RUNG_TRY(read_merge(r, merge, i));
  return RUNG_OK;
}
