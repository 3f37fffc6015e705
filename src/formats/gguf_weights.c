/* SPDX-License-Identifier: MIT
 * A store over the tensors of a GGUF file, or of all parts of one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "formats/gguf.h"
#include "weights/store.h"

static void release(void *owner) { rung_gguf_release((rung_gguf *)owner); }

static rung_status add_tensors(rung_gguf *gguf, rung_weights *weights, rung_error *error) {
  const rung_weights_source source = {rung_gguf_map(gguf), gguf, release};
  int index;
  RUNG_TRY(rung_weights_add_source(weights, &source, error, &index));
  rung_gguf_retain(gguf);
  for (size_t i = 0; i < rung_gguf_tensor_count(gguf); i++) {
    const rung_gguf_tensor *t = rung_gguf_tensor_at(gguf, i);
    rung_tensor_desc desc = {
        .name = t->name.data, .name_length = (size_t)t->name.length, .type = t->type, .rank = t->rank};
    memcpy(desc.extent, t->extent, sizeof t->extent);
    RUNG_TRY(rung_weights_add(weights, &desc, index, t->offset, error, NULL));
  }
  return RUNG_OK;
}

/* ---- models in several parts: NAME-00001-of-00003.gguf and its neighbours, each with its number and how many there
 * are; all other metadata is in the first */

enum { MOST_PARTS = 65535, SUFFIX = sizeof "-00001-of-00003.gguf" - 1 };

/* The path of another part: what ends as parts are called, with its own number there. */
static rung_status part_path(const rung_source *first, uint64_t part, uint64_t parts, rung_error *error,
                             char out[RUNG_PATH_BYTES]) {
  char suffix[64];
  const size_t length = strlen(first->path), stem = length - SUFFIX;
  snprintf(suffix, sizeof suffix, "-00001-of-%05" PRIu64 ".gguf", parts);
  if (strlen(suffix) != SUFFIX || length < SUFFIX || strcmp(first->path + stem, suffix) != 0)
    return rung_fail(error, RUNG_UNSUPPORTED,
                     "the other parts are found beside a first one that is called NAME-00001-of-%05" PRIu64 ".gguf",
                     parts);
  if (length >= RUNG_PATH_BYTES) return rung_fail(error, RUNG_OVERFLOW, "the path is too long");
  snprintf(out, RUNG_PATH_BYTES, "%.*s-%05" PRIu64 "-of-%05" PRIu64 ".gguf", (int)stem, first->path, part, parts);
  return RUNG_OK;
}

/* Is it the part that its name says, of this model? */
static rung_status check_part(const rung_gguf *gguf, const rung_gguf *first, uint64_t part, uint64_t parts,
                              rung_error *error) {
  uint64_t number = 0, count = 1;
  rung_gguf_text mine, theirs;
  rung_error ignored;
  RUNG_TRY(rung_gguf_get_u64(gguf, "split.no", error, &number));
  RUNG_TRY(rung_gguf_get_u64(gguf, "split.count", error, &count));
  if (number != part - 1 || count != parts)
    return rung_fail(error, RUNG_CORRUPT_FILE,
                     "it says that it is part %" PRIu64 " of %" PRIu64 " (split.no, split.count), expected %" PRIu64
                     " of %" PRIu64,
                     number < UINT64_MAX ? number + 1 : number, count, part, parts);
  if (rung_gguf_get_text(gguf, "general.architecture", &ignored, &theirs)) return RUNG_OK;
  if (!rung_gguf_get_text(first, "general.architecture", &ignored, &mine) && mine.length == theirs.length &&
      memcmp(mine.data, theirs.data, (size_t)mine.length) == 0)
    return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE, "it is part of another model: general.architecture differs");
}

static rung_status add_part(const rung_gguf *first, const rung_source *source, uint64_t part, uint64_t parts,
                            rung_weights *weights, rung_error *error) {
  char path[RUNG_PATH_BYTES];
  rung_gguf *gguf;
  RUNG_TRY(part_path(source, part, parts, error, path));
  rung_source other = *source;
  other.path = path;
  rung_status status = rung_gguf_open(rung_gguf_host(first), &other, error, &gguf);
  if (status) return rung_fail_prefix(error, status, "part %" PRIu64 " of %" PRIu64, part, parts);
  status = check_part(gguf, first, part, parts, error);
  if (!status) status = add_tensors(gguf, weights, error);
  if (!status) (void)rung_gguf_release_metadata(gguf);
  rung_gguf_release(gguf);
  return status ? rung_fail_prefix(error, status, "%s", path) : RUNG_OK;
}

static rung_status add_parts(const rung_gguf *first, const rung_source *source, rung_weights *weights,
                             rung_error *error) {
  uint64_t parts = 1, number = 0, tensors = 0;
  RUNG_TRY(rung_gguf_maybe_u64(first, "split.count", error, &parts));
  if (parts <= 1) return RUNG_OK;
  RUNG_TRY(rung_gguf_maybe_u64(first, "split.no", error, &number));
  if (parts > MOST_PARTS)
    return rung_fail(error, RUNG_CORRUPT_FILE, "split.count is %" PRIu64 ", expected 1..%d", parts, MOST_PARTS);
  if (number)
    return rung_fail(error, RUNG_UNSUPPORTED, "this is part %" PRIu64 " of %" PRIu64 " (split.no); name the first one",
                     number + 1, parts);
  if (!source || source->kind != RUNG_SOURCE_PATH)
    return rung_fail(error, RUNG_UNSUPPORTED,
                     "this is one of %" PRIu64 " parts of a model (split.count), which are found by path only", parts);
  for (uint64_t part = 2; part <= parts; part++) RUNG_TRY(add_part(first, source, part, parts, weights, error));
  const size_t found = rung_weights_count(weights);
  tensors = found;
  RUNG_TRY(rung_gguf_maybe_u64(first, "split.tensors.count", error, &tensors));
  if (tensors == found) return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE,
                   "the %" PRIu64 " parts have %zu tensors, split.tensors.count says %" PRIu64, parts, found, tensors);
}

rung_status rung_gguf_weights(rung_gguf *gguf, const rung_source *source, rung_error *error,
                              rung_weights **out_weights) {
  rung_weights *weights;
  RUNG_TRY(rung_weights_create(rung_gguf_host(gguf), error, &weights));
  rung_status status = add_tensors(gguf, weights, error);
  if (!status) status = add_parts(gguf, source, weights, error);
  if (status) {
    rung_weights_release(weights);
    return status;
  }
  *out_weights = weights;
  return RUNG_OK;
}
