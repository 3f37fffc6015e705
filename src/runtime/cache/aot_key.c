/* SPDX-License-Identifier: MIT
 * Keys of stored compiles. The portable key says what was compiled; the tag says what of the device had a say in it. */
#include "passes/pass.h"
#include "passes/policy.h"
#include "runtime/cache/aot.h"

void rung_aot_put_precision(rung_text *out, const rung_precision *precision) {
  const rung_type *const category[] = RUNG_PRECISION_TYPES(precision);
  for (size_t i = 0; i < RUNG_COUNT(category); i++) rung_put(out, (uint64_t)*category[i], 1);
}

/* Field by field: the struct's layout is not part of the key, nor is the number of threads, which only planning asks.
 */
static void put_options(rung_text *out, const rung_compile_options *o) {
  rung_put(out, (uint64_t)o->quant, 1);
  rung_aot_put_precision(out, &o->precision);
  rung_put(out, o->fold, 1);
  rung_put(out, o->fuse, 1);
  rung_put(out, o->merge, 1);
  rung_put(out, o->deterministic, 1);
}

rung_status rung_aot_key(const rung_device *device, const rung_graph *graph, const rung_compile_options *options,
                         rung_error *error, rung_hash *out_key) {
  rung_text text;
  rung_text_init(&text, device->host);
  rung_put_string(&text, "rung-template");
  rung_put(&text, RUNG_FILE_VERSION, 4);
  rung_put(&text, RUNG_PASSES_REVISION, 4);
  rung_put_string(&text, RUNG_VERSION_TEXT);
  rung_put_string(&text, device->target->name);
  put_options(&text, options);
  rung_graph_encode(graph, &text);
  const rung_status status = rung_text_status(&text, error);
  if (!status) *out_key = rung_hash_bytes(text.data, text.length);
  rung_text_finish(&text);
  return status;
}

rung_status rung_aot_tag(const rung_device *device, rung_error *error, uint64_t *out_tag) {
  const rung_target *target = device->target;
  rung_text text;
  rung_text_init(&text, device->host);
  rung_put_string(&text, target->name);
  rung_put_string(&text, target->level ? target->level : "");
  for (size_t i = 0; i < target->kernels; i++) rung_put_string(&text, target->kernel[i]->name);
  for (size_t i = 0; i < target->layouts; i++) {
    rung_put(&text, target->layout[i].id, 2);
    rung_put_string(&text, target->layout[i].name);
  }
  const rung_status status = rung_text_status(&text, error);
  if (!status) *out_tag = rung_hash64(text.data, text.length);
  rung_text_finish(&text);
  return status;
}

rung_status rung_store_key(const rung_device *device, const rung_graph *graph, const rung_compile_options *options,
                           rung_error *error, char out_key[33]) {
  const rung_compile_options o = options ? *options : rung_compile_options_default();
  if (!device || !graph || !out_key)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "key: device, graph and out_key are required");
  if (o.size != sizeof o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "key: options.size is %zu, expected %zu", o.size, sizeof o);
  if (rung_graph_status(graph)) return rung_fail(error, rung_graph_status(graph), "%s", rung_graph_message(graph));
  rung_hash key;
  RUNG_TRY(rung_aot_key(device, graph, &o, error, &key));
  rung_hash_hex(key, out_key);
  return RUNG_OK;
}
