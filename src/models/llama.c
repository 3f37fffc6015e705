/* SPDX-License-Identifier: MIT
 * Llama (Touvron et al. 2023, "LLaMA: open and efficient foundation language models"): RMS norm before each half of a
 * layer, rotary positions, grouped keys (Ainslie et al. 2023), SwiGLU. GGUF files hold query and key rows permuted for
 * rotating neighbouring elements; folders hold them as they were trained, for rotating halves. */
#include "models/family.h"

static const rung_tensor_name names[] = {RUNG_DECODER_NAMES, {NULL, NULL}};

static rung_status configure(const rung_metadata *meta, rung_config *c, rung_error *error) {
  RUNG_TRY(rung_configure_transformer(meta, c, error));
  RUNG_TRY(rung_configure_plain(meta, error));
  if (!c->names) c->rope_mode = RUNG_ROPE_ADJACENT;
  return RUNG_OK;
}

extern const rung_family rung_family_llama;
const rung_family rung_family_llama = {.architecture = "llama",
                                       .model_type = "llama",
                                       .names = names,
                                       .name_prefix = "model.",
                                       .configure = configure,
                                       .build = rung_transformer};
