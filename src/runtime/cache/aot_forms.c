/* SPDX-License-Identifier: MIT
 * What stored compiles know of weights. */
#include "runtime/cache/aot.h"

rung_status rung_aot_identity(rung_view *view, const char *name, rung_error *error, rung_hash *out_identity) {
  const rung_tensor_entry *entry = rung_weights_find(view->weights, name);
  if (!entry) return rung_fail(error, RUNG_NOT_LOADED, "weight \"%s\" is not in the store", name);
  return rung_weights_identity(view->weights, entry, error, out_identity);
}
