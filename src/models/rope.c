/* SPDX-License-Identifier: MIT
 * Scalings of rotary frequencies, for contexts longer than a model was trained on. All of them come down to a number
 * that multiplies every angle, one that divides each frequency, and one that multiplies sines and cosines:
 *
 *   linear     every angle less (Chen et al. 2023)
 *   ntk        another base, so that slow frequencies become slower (bloc97 2023)
 *   llama3     slow frequencies are divided, fast ones stay, what lies between is mixed (Llama 3.1)
 *   yarn       as llama3 with another ramp, and a magnitude (Peng et al. 2023)
 *   longrope   factors that were searched for, short and long ones, and a magnitude (Ding et al. 2024)
 *
 * GGUF files hold the results of llama3 and longrope as tensors, and that of ntk as the base. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "models/family.h"

static double frequency(const rung_config *c, int64_t i) {
  return pow(c->rope_base, -2.0 * (double)i / (double)c->rope_dims);
}

static rung_status configure_ntk(const rung_metadata *meta, rung_config *c, rung_error *error) {
  double factor;
  RUNG_TRY(rung_metadata_number(meta, "rope.scaling.factor", error, &factor));
  if (c->rope_dims <= 2)
    return rung_fail(error, RUNG_UNSUPPORTED, "metadata %s ntk for heads of %" PRId64,
                     meta->spell(meta->self, "rope.scaling.type"), c->rope_dims);
  c->rope_base *= pow(factor, (double)c->rope_dims / (double)(c->rope_dims - 2));
  return RUNG_OK;
}

static rung_status configure_llama3(const rung_metadata *meta, rung_config *c, rung_error *error) {
  double factor, low, high;
  int64_t context;
  RUNG_TRY(rung_metadata_number(meta, "rope.scaling.factor", error, &factor));
  RUNG_TRY(rung_metadata_number(meta, "rope.scaling.low_freq_factor", error, &low));
  RUNG_TRY(rung_metadata_number(meta, "rope.scaling.high_freq_factor", error, &high));
  RUNG_TRY(rung_metadata_count(meta, "rope.scaling.original_context_length", 1, INT32_MAX, error, &context));
  if (low >= high)
    return rung_fail(error, RUNG_CORRUPT_FILE, "metadata %s %g is not below %s, %g",
                     meta->spell(meta->self, "rope.scaling.low_freq_factor"), low,
                     meta->spell(meta->self, "rope.scaling.high_freq_factor"), high);
  for (int64_t i = 0; i < c->rope_dims / 2; i++) {
    const double turns = (double)context * frequency(c, i) / (2 * acos(-1.0)); /* in the context that was trained */
    const double kept = fmin(fmax((turns - low) / (high - low), 0), 1);
    c->rope.factor[i] = (float)(1 / (kept + (1 - kept) / factor));
  }
  c->rope.has_factors = true;
  return RUNG_OK;
}

static double yarn_magnitude(double factor, double weight) { return factor <= 1 ? 1 : 0.1 * weight * log(factor) + 1; }

/* Which of the frequencies turns so often in the context that was trained, as a fraction. */
static double yarn_index(const rung_config *c, double turns, double context) {
  return (double)c->rope_dims * log(context / (turns * 2 * acos(-1.0))) / (2 * log(c->rope_base));
}

/* The magnitude follows from the factor unless it is given; DeepSeek's two weights of it are a quotient. */
static rung_status configure_yarn_magnitude(const rung_metadata *meta, double factor, rung_config *c,
                                            rung_error *error) {
  double weight = 0, all = 0;
  RUNG_TRY(rung_metadata_maybe_number(meta, "mscale", error, &weight));
  RUNG_TRY(rung_metadata_maybe_number(meta, "rope.scaling.yarn_log_multiplier", error, &all));
  if (!c->names && all != 0) weight = 1; /* GGUF has no key for it */
  c->rope.magnitude = yarn_magnitude(factor, 1);
  if (weight != 0 && all != 0) c->rope.magnitude = yarn_magnitude(factor, weight) / yarn_magnitude(factor, all);
  if (c->names) RUNG_TRY(rung_metadata_maybe_number(meta, "attention_factor", error, &c->rope.magnitude));
  return RUNG_OK;
}

static rung_status configure_yarn(const rung_metadata *meta, rung_config *c, rung_error *error) {
  double factor = 0, fast = 32, slow = 1, mix = 1;
  int64_t context = c->context;
  bool whole = true;
  RUNG_TRY(rung_metadata_maybe_count(meta, "rope.scaling.original_context_length", 1, INT32_MAX, error, &context));
  RUNG_TRY(rung_metadata_number(meta, "rope.scaling.factor", error, &factor));
  RUNG_TRY(rung_metadata_maybe_number(meta, "rope.scaling.yarn_beta_fast", error, &fast));
  RUNG_TRY(rung_metadata_maybe_number(meta, "rope.scaling.yarn_beta_slow", error, &slow));
  RUNG_TRY(rung_metadata_maybe_number(meta, "rope.scaling.yarn_ext_factor", error, &mix));
  RUNG_TRY(rung_metadata_maybe_flag(meta, "truncate", error, &whole));
  if (mix != 1)
    return rung_fail(error, RUNG_UNSUPPORTED, "metadata %s %g is not supported",
                     meta->spell(meta->self, "rope.scaling.yarn_ext_factor"), mix);
  if (c->rope_base <= 1)
    return rung_fail(error, RUNG_CORRUPT_FILE, "metadata %s is %g, expected more than 1 with %s yarn",
                     meta->spell(meta->self, "rope.freq_base"), c->rope_base,
                     meta->spell(meta->self, "rope.scaling.type"));
  RUNG_TRY(configure_yarn_magnitude(meta, factor, c, error));
  double low = yarn_index(c, fast, (double)context), high = yarn_index(c, slow, (double)context);
  if (whole) low = floor(low), high = ceil(high);
  low = fmax(low, 0), high = fmin(high, (double)c->rope_dims - 1);
  const double width = high == low ? 0.001 : high - low;
  for (int64_t i = 0; i < c->rope_dims / 2; i++) {
    const double kept = 1 - fmin(fmax(((double)i - low) / width, 0), 1);
    c->rope.factor[i] = (float)(1 / (kept + (1 - kept) / factor));
  }
  c->rope.has_factors = true;
  return RUNG_OK;
}

static rung_status read_factors(const rung_metadata *meta, const char *key, rung_config *c, rung_error *error,
                                float *out) {
  double number[RUNG_MAX_ROPE / 2];
  bool there;
  RUNG_TRY(rung_metadata_maybe_numbers(meta, key, c->rope_dims / 2, error, number, &there));
  if (!there) return rung_fail(error, RUNG_NOT_FOUND, "metadata %s is missing", meta->spell(meta->self, key));
  for (int64_t i = 0; i < c->rope_dims / 2; i++) {
    out[i] = (float)number[i];
    if (isfinite(number[i]) && out[i] > 0) continue;
    return rung_fail(error, RUNG_CORRUPT_FILE, "metadata %s[%" PRId64 "] is %g, expected a positive number",
                     meta->spell(meta->self, key), i, number[i]);
  }
  return RUNG_OK;
}

/* A folder's; GGUF files have the factors as tensors, and the magnitude as a key that all scalings may have. */
static rung_status configure_longrope(const rung_metadata *meta, rung_config *c, rung_error *error) {
  double factor;
  RUNG_TRY(rung_metadata_count(meta, "rope.scaling.original_context_length", 1, INT32_MAX, error, &c->rope.long_above));
  if (!c->names) return RUNG_OK;
  factor = (double)c->context / (double)c->rope.long_above;
  c->rope.magnitude = factor <= 1 ? 1 : sqrt(1 + log(factor) / log((double)c->rope.long_above));
  RUNG_TRY(rung_metadata_maybe_number(meta, "attention_factor", error, &c->rope.magnitude));
  RUNG_TRY(read_factors(meta, "short_factor", c, error, c->rope.factor));
  RUNG_TRY(read_factors(meta, "long_factor", c, error, c->rope.long_factor));
  c->rope.has_factors = true;
  return RUNG_OK;
}

rung_status rung_configure_rope(const rung_metadata *meta, rung_config *c, rung_error *error) {
  static const char *const kinds[] = {"linear", "default", "none", "ntk", "llama3", "yarn", "longrope", "su", NULL};
  double factor = 1, more = 1;
  char kind[32] = "linear";
  RUNG_TRY(rung_metadata_one_of(meta, "rope.scaling.type", kinds, error));
  RUNG_TRY(rung_metadata_maybe_text(meta, "rope.scaling.type", error, kind, sizeof kind));
  c->rope_scale = 1;
  if (c->rope_dims > RUNG_MAX_ROPE)
    return rung_fail(error, RUNG_UNSUPPORTED, "rotary positions of %" PRId64 " elements of a head; at most %d",
                     c->rope_dims, RUNG_MAX_ROPE);
  if (strcmp(kind, "linear") == 0) {
    RUNG_TRY(rung_metadata_maybe_number(meta, "rope.scale_linear", error, &factor)); /* in old GGUF files */
    RUNG_TRY(rung_metadata_maybe_number(meta, "rope.scaling.factor", error, &factor));
    c->rope_scale = 1 / factor;
  } else if (strcmp(kind, "ntk") == 0) {
    RUNG_TRY(configure_ntk(meta, c, error));
  } else if (strcmp(kind, "llama3") == 0) {
    RUNG_TRY(configure_llama3(meta, c, error));
  } else if (strcmp(kind, "yarn") == 0) {
    RUNG_TRY(configure_yarn(meta, c, error));
  } else if (strcmp(kind, "longrope") == 0 || strcmp(kind, "su") == 0) {
    RUNG_TRY(configure_longrope(meta, c, error));
  }
  if (c->names) return RUNG_OK;
  RUNG_TRY(rung_metadata_maybe_number(meta, "rope.scaling.attn_factor", error, &more));
  c->rope.magnitude = (c->rope.magnitude == 0 ? 1 : c->rope.magnitude) * more;
  return RUNG_OK;
}

rung_value rung_rope_factors(rung_builder *b) {
  const rung_config *c = b->config;
  const int64_t count = c->rope_dims / 2;
  const char *tensor = b->long_context ? "rope_factors_long.weight" : "rope_factors_short.weight";
  if (rung_has_weight(b, "rope_freqs.weight")) return rung_model_weight(b, "rope_freqs.weight", 1, &count);
  if (rung_has_weight(b, tensor)) return rung_model_weight(b, tensor, 1, &count);
  if (!c->rope.has_factors) return rung_build_null();
  return rung_graph_constant(b->graph, RUNG_TYPE_F32, 1, &count,
                             b->long_context ? c->rope.long_factor : c->rope.factor);
}
