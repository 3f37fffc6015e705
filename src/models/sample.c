/* SPDX-License-Identifier: MIT
 * The sampler chain: the list of steps, what their options may be, and one choice. */
#include "models/sample.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "models/sample_steps.h"

/* In llama.cpp's default order. */
static const rung_sample_step *const chain[] = {
    &rung_step_bias,  &rung_step_own,     &rung_step_penalties, &rung_step_dry,   &rung_step_sigma,
    &rung_step_top_k, &rung_step_typical, &rung_step_top_p,     &rung_step_min_p, &rung_step_xtc,
};

/* What the draw itself reads. */
static const rung_sample_option draw_options[] = {
    {"temperature", offsetof(rung_sample_options, temperature), false, 0, DBL_MAX, false, "a finite number from 0 is"},
    {"log_probabilities", offsetof(rung_sample_options, log_probabilities), true, 0, INT32_MAX, false, "0 or more is"},
};

rung_sample_options rung_sample_options_default(void) {
  return (rung_sample_options){.size = sizeof(rung_sample_options),
                               .repeat_penalty = 1,
                               .repeat_last_n = 64,
                               .dry_base = 1.75,
                               .dry_allowed_length = 2,
                               .dry_last_n = -1,
                               .top_k = 40,
                               .typical_p = 1,
                               .top_p = 0.95,
                               .min_p = 0.05,
                               .xtc_threshold = 0.1,
                               .temperature = 0.8};
}

static rung_status check_option(const rung_sample_options *o, const rung_sample_option *option, rung_error *error) {
  const char *at = (const char *)o + option->offset;
  double value = 0;
  int64_t whole = 0;
  if (option->integer) {
    memcpy(&whole, at, sizeof whole);
    value = (double)whole;
  } else {
    memcpy(&value, at, sizeof value);
  }
  if (value >= option->low && value <= option->high && !(option->above && value <= option->low)) return RUNG_OK;
  return rung_fail(error, RUNG_INVALID_ARGUMENT, "%s %g: %s expected", option->name, value, option->expected);
}

static rung_status check_options(const rung_sample_options *o, rung_error *error) {
  if (o->size != sizeof *o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "sampling: options.size is %zu, expected %zu", o->size, sizeof *o);
  for (size_t i = 0; i < RUNG_COUNT(chain); i++)
    for (int k = 0; k < RUNG_STEP_OPTIONS && chain[i]->option[k].name; k++)
      RUNG_TRY(check_option(o, &chain[i]->option[k], error));
  for (size_t i = 0; i < RUNG_COUNT(draw_options); i++) RUNG_TRY(check_option(o, &draw_options[i], error));
  if (o->biases && !o->bias)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "bias: there are %zu, but no list", o->biases);
  for (size_t i = 0; i < o->biases; i++)
    if (o->bias[i].id < 0 || !(o->bias[i].bias < INFINITY))
      return rung_fail(error, RUNG_INVALID_ARGUMENT,
                       "bias %zu: id %d, %g; a token and a number below infinity are expected", i, o->bias[i].id,
                       (double)o->bias[i].bias);
  return RUNG_OK;
}

rung_status rung_sampler_init(rung_sampler *sampler, rung_host *host, const rung_sample_options *options,
                              rung_error *error) {
  rung_sample_options o = options ? *options : rung_sample_options_default();
  *sampler = (rung_sampler){0};
  RUNG_TRY(check_options(&o, error));
  if (o.biases) {
    rung_logit_bias *copy = rung_host_array(host, o.biases, sizeof *copy);
    if (!copy) return rung_fail(error, RUNG_OUT_OF_MEMORY, "bias: out of memory for %zu", o.biases);
    memcpy(copy, o.bias, o.biases * sizeof *copy);
    o.bias = copy;
  } else {
    o.bias = NULL;
  }
  o.dry_breakers = NULL;
  *sampler = (rung_sampler){.options = o, .host = host, .breakers = {.host = host}};
  return RUNG_OK;
}

void rung_sampler_finish(rung_sampler *sampler) {
  if (!sampler || !sampler->host) return;
  rung_host_free(sampler->host, RUNG_MEMORY_host, (void *)(uintptr_t)sampler->options.bias,
                 sampler->options.biases * sizeof(rung_logit_bias));
  rung_breakers_finish(&sampler->breakers);
  *sampler = (rung_sampler){0};
}

/* ---- scratch: the row's copy, then work, then the tokens left */

typedef struct layout {
  bool copy;
  size_t copy_bytes, work_bytes, left_bytes;
} layout;

/* At temperature 0 only those matter that can take the best token away, and what such steps work on. */
static bool runs(const rung_sample_step *step, const rung_sample_options *o) {
  const bool best = o->temperature == 0 && !rung_step_typical.active(o) && !rung_step_xtc.active(o);
  return step->active(o) && !(step->keeps_best && best);
}

static layout lay_out(const rung_sampler *sampler, int64_t count, int64_t history) {
  const rung_sample_options *o = &sampler->options;
  layout l = {0};
  bool text = false, set = false;
  for (size_t i = 0; i < RUNG_COUNT(chain); i++) {
    if (!chain[i]->active(o)) continue;
    l.copy = l.copy || chain[i]->changes_row;
    text = text || chain[i]->reads_text;
    set = set || (runs(chain[i], o) && !chain[i]->before_gathering);
  }
  const bool few = runs(&rung_step_top_k, o) && o->top_k < count;
  const int64_t left = few ? o->top_k : set ? count : 0;
  if (l.copy) l.copy_bytes = ((size_t)count * sizeof(float) + 15) / 16 * 16;
  if (text) l.work_bytes = ((size_t)history * sizeof(int64_t) + 15) / 16 * 16;
  l.left_bytes = (size_t)left * sizeof(rung_candidate);
  return l;
}

size_t rung_sampler_scratch(const rung_sampler *sampler, int64_t count, int64_t history) {
  if (count <= 0) return 0;
  const layout l = lay_out(sampler, count, history);
  return l.copy_bytes + l.work_bytes + l.left_bytes;
}

/* ---- one choice */

static rung_status none_left(int64_t count, rung_error *error) {
  return rung_fail(error, RUNG_INVALID_ARGUMENT, "logits: none of %lld is above minus infinity", (long long)count);
}

/* Steps until a token is chosen or all were applied. */
static rung_status run_chain(rung_race *r, rung_error *error) {
  const rung_sample_options *o = &r->sampler->options;
  bool checked = false;
  for (size_t i = 0; i < RUNG_COUNT(chain) && r->chosen < 0; i++) {
    if (!runs(chain[i], o)) continue;
    if (!chain[i]->changes_row && !checked) { /* those that narrow rely on a token being left */
      if (rung_sample_greedy(r->row, r->input->count) < 0) return none_left(r->input->count, error);
      checked = true;
    }
    if (!chain[i]->before_gathering) rung_race_gather(r);
    RUNG_TRY(chain[i]->apply(r, error));
  }
  if (r->chosen < 0 && !checked && rung_sample_greedy(r->row, r->input->count) < 0)
    return none_left(r->input->count, error);
  return RUNG_OK;
}

/* The upper 53 bits of two words, as rung_philox_double has them. */
static double uniform_of(uint32_t low, uint32_t high) {
  return (double)((((uint64_t)high << 32) | low) >> 11) * 0x1p-53;
}

static bool uses_random(const rung_sample_options *o) { return o->temperature > 0 || rung_step_xtc.active(o); }

rung_status rung_sampler_race(const rung_sampler *sampler, const rung_sample_input *input, void *scratch,
                              rung_error *error, rung_race *r, double *out_uniform) {
  const rung_sample_options *o = &sampler->options;
  const int64_t count = input->count;
  if (count > INT32_MAX) return rung_fail(error, RUNG_OUT_OF_RANGE, "logits: %lld in a row", (long long)count);
  if (count <= 0) return none_left(count, error);
  const layout l = lay_out(sampler, count, input->id_count);
  *r = (rung_race){.sampler = sampler, .input = input, .row = input->logits, .floor = -FLT_MAX, .chosen = -1};
  if (l.copy) {
    r->row = r->copy = scratch;
    memcpy(r->copy, input->logits, (size_t)count * sizeof *r->copy);
  }
  if (l.work_bytes) r->work = (int64_t *)(void *)((char *)scratch + l.copy_bytes);
  if (l.left_bytes) r->left = (rung_candidate *)(void *)((char *)scratch + l.copy_bytes + l.work_bytes);
  uint32_t words[4] = {0};
  if (uses_random(o)) rung_philox(o->seed, sampler->drawn, words);
  *out_uniform = uniform_of(words[0], words[1]);
  r->xtc_uniform = uniform_of(words[2], words[3]);
  return run_chain(r, error);
}

rung_status rung_sampler_pick(rung_sampler *sampler, const rung_sample_input *input, void *scratch, rung_error *error,
                              int32_t *out_id) {
  const rung_sample_options *o = &sampler->options;
  rung_race r;
  double uniform;
  RUNG_TRY(rung_sampler_race(sampler, input, scratch, error, &r, &uniform));
  if (r.chosen < 0) {
    r.chosen = o->temperature > 0 ? rung_race_draw(&r, o->temperature, uniform) : rung_race_best(&r);
    sampler->drawn += uses_random(o);
  }
  *out_id = r.chosen;
  return RUNG_OK;
}

/* ---- choices of the op */

bool rung_sampler_is_plain(const rung_sampler *sampler) {
  const rung_sample_options *o = &sampler->options;
  for (size_t i = 0; i < RUNG_COUNT(chain); i++)
    if (runs(chain[i], o) && chain[i] != &rung_step_top_k && chain[i] != &rung_step_top_p &&
        chain[i] != &rung_step_min_p)
      return false;
  return o->log_probabilities == 0;
}

void rung_sampler_parameters(const rung_sampler *sampler, double out[RUNG_SAMPLE_COLUMNS]) {
  const rung_sample_options *o = &sampler->options;
  out[RUNG_SAMPLE_TEMPERATURE] = o->temperature;
  out[RUNG_SAMPLE_TOP_K] = (double)o->top_k;
  out[RUNG_SAMPLE_TOP_P] = o->top_p;
  out[RUNG_SAMPLE_MIN_P] = o->min_p;
  out[RUNG_SAMPLE_UNIFORM] = uses_random(o) ? rung_philox_double(o->seed, sampler->drawn) : 0;
}

rung_status rung_sampler_take(rung_sampler *sampler, int32_t id, int64_t count, rung_error *error) {
  if (id < 0) return none_left(count, error);
  sampler->drawn += uses_random(&sampler->options);
  return RUNG_OK;
}
