/* SPDX-License-Identifier: MIT
 * The families there are. */
#include <stdio.h>
#include <string.h>

#include "models/family.h"

extern const rung_family rung_family_llama, rung_family_qwen2, rung_family_qwen3, rung_family_gemma2,
    rung_family_gemma3, rung_family_phi3, rung_family_olmo2, rung_family_smollm3, rung_family_qwen3moe,
    rung_family_bert, rung_family_roberta, rung_family_xlm_roberta;
static const rung_family *const families[] = {&rung_family_llama,  &rung_family_qwen2,   &rung_family_qwen3,
                                              &rung_family_gemma2, &rung_family_gemma3,  &rung_family_phi3,
                                              &rung_family_olmo2,  &rung_family_smollm3, &rung_family_qwen3moe,
                                              &rung_family_bert,   &rung_family_roberta, &rung_family_xlm_roberta};

const rung_family *rung_family_find(const char *architecture, size_t length) {
  for (size_t i = 0; i < RUNG_COUNT(families); i++)
    if (strlen(families[i]->architecture) == length && memcmp(families[i]->architecture, architecture, length) == 0)
      return families[i];
  return NULL;
}

void rung_family_names(bool types, char *out, size_t bytes) {
  size_t used = 0;
  out[0] = 0;
  for (size_t i = 0; i < RUNG_COUNT(families); i++) {
    const char *name = types ? families[i]->model_type : families[i]->architecture;
    const int n = name ? snprintf(out + used, bytes - used, "%s%s", used ? ", " : "", name) : 0;
    if (n > 0 && used + (size_t)n < bytes) used += (size_t)n;
  }
}

const rung_family *rung_family_of_type(const char *model_type) {
  for (size_t i = 0; i < RUNG_COUNT(families); i++)
    if (families[i]->model_type && strcmp(families[i]->model_type, model_type) == 0) return families[i];
  return NULL;
}
