/* SPDX-License-Identifier: MIT
 * A model's template and program without a generator, for looking at them. */
#include <inttypes.h>

#include "models/model.h"

rung_status rung_model_compile(rung_model *model, const rung_generate_options *options, rung_error *error,
                               rung_template **out_template, rung_program **out_program) {
  const rung_generate_options o = options ? *options : rung_generate_options_default();
  if (!model || !out_template || !out_program)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "compile: an argument is missing");
  if (o.size != sizeof o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "compile: options.size is %zu, expected %zu", o.size, sizeof o);
  if (o.sequences < 1 || o.chunk < 1 || o.logits < 0)
    return rung_fail(error, RUNG_INVALID_ARGUMENT,
                     "compile: %d sequences, a chunk of %" PRId64 " rows, logits of %" PRId64, o.sequences, o.chunk,
                     o.logits);
  rung_template *template_;
  const rung_compile_key key = {
      .kv = o.kv, .hidden = o.hidden, .tokens = rung_model_chooses(model, o.choose), .threads = o.threads};
  RUNG_TRY(rung_model_template(model, &key, error, &template_));
  const int64_t chunk = o.chunk < o.sequences ? o.sequences : o.chunk;
  const rung_binding ceiling[] = {
      {"rows", chunk}, {"sequences", o.sequences}, {"wanted", o.logits ? o.logits : o.sequences}};
  const rung_status status = rung_program_create(template_, ceiling, RUNG_COUNT(ceiling), error, out_program);
  if (status)
    rung_template_release(template_);
  else
    *out_template = template_;
  return status;
}
