/* SPDX-License-Identifier: MIT
 * Flags to sampling options. */
#include "sampling.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

/* "15043+1", "29905-0.5", "13-inf". */
static bool read_bias(const char *text, rung_logit_bias *out) {
  int64_t id;
  double value;
  const char *end = NULL;
  if (!rung_parse_i64(text, NULL, &id, &end) || id < 0 || id > INT32_MAX || (*end != '+' && *end != '-')) return false;
  const char sign = *end++;
  if (strcmp(end, "inf") == 0) {
    if (sign == '+') return false;
    value = (double)INFINITY;
  } else if (!rung_parse_f64(end, NULL, &value, &end) || *end || !(fabs(value) < 1e30)) {
    return false;
  }
  *out = (rung_logit_bias){(int32_t)id, (float)(sign == '-' ? -value : value)};
  return true;
}

uint64_t cli_seed(const cli_options *o) { return o->seed >= 0 ? (uint64_t)o->seed : rung_trace_now() & 0xFFFFFFFF; }

int cli_set_sampling(const cli_session *s, rung_generator *generator, int32_t slot, uint64_t seed) {
  const cli_options *o = s->options;
  rung_logit_bias bias[CLI_MOST_ITEMS];
  for (int i = 0; i < o->biases.count; i++)
    if (!read_bias(o->biases.item[i], &bias[i]))
      return cli_refuse(s, CLI_USAGE,
                        "--logit-bias: \"%s\" is no token with a bias; write 15043+1, 29905-0.5 or 13-inf",
                        o->biases.item[i]);
  rung_sample_options so = rung_sample_options_default();
  so.bias = bias;
  so.biases = (size_t)o->biases.count;
  so.repeat_penalty = o->repeat_penalty;
  so.presence_penalty = o->presence_penalty;
  so.frequency_penalty = o->frequency_penalty;
  so.repeat_last_n = o->repeat_last_n;
  so.dry_multiplier = o->dry_multiplier;
  so.dry_base = o->dry_base;
  so.dry_allowed_length = o->dry_allowed_length;
  so.dry_last_n = o->dry_last_n;
  if (o->dry_breakers.count) {
    const bool none = o->dry_breakers.count == 1 && strcmp(o->dry_breakers.item[0], "none") == 0;
    so.dry_breakers = o->dry_breakers.item;
    so.dry_breaker_count = none ? 0 : (size_t)o->dry_breakers.count;
  }
  so.top_n_sigma = o->top_n_sigma > 0 ? o->top_n_sigma : 0;
  so.top_k = o->top_k;
  so.typical_p = o->typical_p;
  so.top_p = o->top_p;
  so.min_p = o->min_p;
  so.xtc_probability = o->xtc_probability;
  so.xtc_threshold = o->xtc_threshold;
  so.temperature = o->temperature;
  so.seed = seed;
  so.log_probabilities = o->logprobs;
  const rung_status status = rung_generator_sampling(generator, slot, &so);
  return status ? cli_fail(s, CLI_ON_FLAGS, status, rung_generator_message(generator)) : CLI_OK;
}
