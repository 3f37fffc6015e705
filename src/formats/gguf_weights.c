/* SPDX-License-Identifier: MIT
 * A store over the tensors of a GGUF file. */
#include <inttypes.h>
#include <string.h>

#include "formats/gguf.h"
#include "weights/store.h"

static void release(void *owner) { rung_gguf_release((rung_gguf *)owner); }

static rung_status check_whole(const rung_gguf *gguf, rung_error *error) {
  uint64_t parts = 1;
  RUNG_TRY(rung_gguf_maybe_u64(gguf, "split.count", error, &parts));
  if (parts <= 1) return RUNG_OK;
  return rung_fail(error, RUNG_UNSUPPORTED,
                   "this is one of %" PRIu64 " parts of a model (split.count); join them first", parts);
}

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

rung_status rung_gguf_weights(rung_gguf *gguf, rung_error *error, rung_weights **out_weights) {
  RUNG_TRY(check_whole(gguf, error));
  rung_weights *weights;
  RUNG_TRY(rung_weights_create(rung_gguf_host(gguf), error, &weights));
  const rung_status status = add_tensors(gguf, weights, error);
  if (status) {
    rung_weights_release(weights);
    return status;
  }
  *out_weights = weights;
  return RUNG_OK;
}
