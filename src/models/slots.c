/* SPDX-License-Identifier: MIT
 * Slots of a generator: what each holds and has still to read, and how its tokens are chosen. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "models/generator.h"

rung_status rung_slot_check(rung_generator *g, int32_t slot) {
  if (!g) return RUNG_INVALID_ARGUMENT;
  rung_generator_quiet(g);
  g->error = (rung_error){0};
  if (slot < 0 || slot >= g->options.sequences)
    return rung_fail(&g->error, RUNG_OUT_OF_RANGE, "generator: there is no slot %d, only %d", slot,
                     g->options.sequences);
  return RUNG_OK;
}

/* ---- lists of ids */

rung_status rung_slot_reserve(rung_generator *g, rung_id_list *list, size_t count, rung_error *error) {
  void *array = list->id;
  if (!rung_host_grow(g->host, &array, &list->capacity, count, sizeof *list->id))
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "prompt: out of memory for %zu ids", count);
  list->id = array;
  return RUNG_OK;
}

static void free_list(rung_generator *g, rung_id_list *list) {
  rung_host_free(g->host, RUNG_MEMORY_host, list->id, list->capacity * sizeof *list->id);
}

rung_status rung_slot_sync(rung_generator *g, int32_t slot, size_t more) {
  rung_sequence *s = &g->sequence[slot];
  const size_t length = (size_t)rung_state_length(g->state, slot);
  RUNG_TRY(rung_slot_reserve(g, &s->held, length + more, &g->error));
  for (size_t i = s->held.count; i < length; i++) s->held.id[i] = -1;
  s->held.count = length;
  if (s->plain > length) s->plain = length;
  return RUNG_OK;
}

void rung_slot_read(rung_generator *g, int32_t slot, const int32_t *ids, size_t count) {
  rung_sequence *s = &g->sequence[slot];
  if (!count) return;
  if (s->plain == s->held.count) s->plain += count;
  memcpy(s->held.id + s->held.count, ids, count * sizeof *ids);
  s->held.count += count;
}

void rung_slot_shifted(rung_generator *g, int32_t slot, size_t keep, size_t count) {
  rung_sequence *s = &g->sequence[slot];
  const size_t rest = s->held.count - keep - count;
  if (rest && count) memmove(s->held.id + keep, s->held.id + keep + count, rest * sizeof *s->held.id);
  s->held.count -= count;
  if (count && s->plain > keep) s->plain = keep;
}

/* ---- sampling */

/* The text that steps look at: at most the context, and the token that is chosen next to it. */
static rung_status reserve_scratch(rung_generator *g, const rung_sampler *sampler, rung_error *error) {
  const size_t bytes = rung_sampler_scratch(sampler, g->model->config.vocabulary, g->options.context);
  if (bytes <= g->scratch_bytes) return RUNG_OK;
  void *grown = rung_host_alloc_raw(g->host, RUNG_MEMORY_host, bytes, 64);
  if (!grown) return rung_fail(error, RUNG_OUT_OF_MEMORY, "sampling: out of memory");
  rung_host_free(g->host, RUNG_MEMORY_host, g->scratch, g->scratch_bytes);
  g->scratch = grown;
  g->scratch_bytes = bytes;
  return RUNG_OK;
}

rung_status rung_slot_init(rung_generator *g, int32_t slot, rung_error *error) {
  rung_sequence *s = &g->sequence[slot];
  RUNG_TRY(rung_sampler_init(&s->sampler, g->host, NULL, error));
  return reserve_scratch(g, &s->sampler, error);
}

static void free_best(rung_generator *g, rung_sequence *s) {
  rung_host_free(g->host, RUNG_MEMORY_host, s->best, (size_t)s->best_room * sizeof *s->best);
}

void rung_slot_finish(rung_generator *g, int32_t slot) {
  rung_sequence *s = &g->sequence[slot];
  free_list(g, &s->pending);
  free_list(g, &s->held);
  free_best(g, s);
  rung_sampler_finish(&s->sampler);
}

static rung_status make_sampler(rung_generator *g, const rung_sample_options *o, rung_sampler *sampler,
                                rung_log_probability **out_best) {
  const int64_t vocabulary = g->model->config.vocabulary;
  RUNG_TRY(rung_sampler_init(sampler, g->host, o, &g->error));
  o = &sampler->options;
  for (size_t i = 0; i < o->biases; i++)
    if (o->bias[i].id >= vocabulary)
      return rung_fail(&g->error, RUNG_INVALID_ARGUMENT, "bias %zu: id %d, the vocabulary has %" PRId64, i,
                       o->bias[i].id, vocabulary);
  if (o->log_probabilities > vocabulary)
    return rung_fail(&g->error, RUNG_INVALID_ARGUMENT, "log_probabilities %" PRId64 ": the vocabulary has %" PRId64,
                     o->log_probabilities, vocabulary);
  *out_best = o->log_probabilities ? rung_host_array(g->host, (size_t)o->log_probabilities, sizeof **out_best) : NULL;
  if (o->log_probabilities && !*out_best)
    return rung_fail(&g->error, RUNG_OUT_OF_MEMORY, "sampling: out of memory for log-probabilities");
  return RUNG_OK;
}

rung_status rung_generator_sampling(rung_generator *g, int32_t slot, const rung_sample_options *options) {
  RUNG_TRY(rung_slot_check(g, slot));
  rung_sequence *s = &g->sequence[slot];
  rung_sampler sampler = {0};
  rung_log_probability *best = NULL;
  rung_status status = make_sampler(g, options, &sampler, &best);
  if (!status && options && options->dry_multiplier > 0)
    status = rung_breakers_of_texts(g->model, options->dry_breakers, options->dry_breaker_count, &g->error,
                                    &sampler.breakers);
  if (!status) status = reserve_scratch(g, &sampler, &g->error);
  if (status) {
    rung_host_free(g->host, RUNG_MEMORY_host, best, (size_t)sampler.options.log_probabilities * sizeof *best);
    rung_sampler_finish(&sampler);
    return status;
  }
  free_best(g, s);
  s->best = best;
  s->best_room = sampler.options.log_probabilities;
  s->has_chosen = false;
  rung_sampler_finish(&s->sampler);
  s->sampler = sampler;
  return RUNG_OK;
}

rung_status rung_slot_pick(rung_generator *g, int32_t slot, const float *logits, int32_t *out_id) {
  rung_sequence *s = &g->sequence[slot];
  const rung_sample_input input = {.logits = logits,
                                   .count = g->model->config.vocabulary,
                                   .ids = s->held.id,
                                   .id_count = (int64_t)s->held.count,
                                   .slot = slot};
  s->has_chosen = false;
  RUNG_TRY(rung_sampler_pick(&s->sampler, &input, g->scratch, &g->error, out_id));
  if (!s->best_room) return RUNG_OK;
  s->best_count = rung_sample_best(logits, input.count, s->best_room, s->best);
  s->chosen = rung_sample_log_probability(logits, input.count, *out_id);
  s->has_chosen = true;
  return RUNG_OK;
}

rung_status rung_slot_take(rung_generator *g, int32_t slot, int32_t id) {
  g->sequence[slot].has_chosen = false;
  return rung_sampler_take(&g->sequence[slot].sampler, id, g->model->config.vocabulary, &g->error);
}

rung_status rung_generator_log_probabilities(rung_generator *g, int32_t slot, double *out_chosen,
                                             const rung_log_probability **out_best, int64_t *out_count) {
  RUNG_TRY(rung_slot_check(g, slot));
  const rung_sequence *s = &g->sequence[slot];
  if (!s->has_chosen)
    return rung_fail(&g->error, RUNG_NOT_FOUND, "log-probabilities: slot %d has made no token that they were asked for",
                     slot);
  if (out_chosen) *out_chosen = s->chosen;
  if (out_best) *out_best = s->best;
  if (out_count) *out_count = s->best_count;
  return RUNG_OK;
}

/* ---- prompts */

rung_status rung_slot_check_ids(rung_generator *g, const int32_t *ids, size_t count) {
  if (count && !ids) return rung_fail(&g->error, RUNG_INVALID_ARGUMENT, "prompt: no ids");
  for (size_t i = 0; i < count; i++)
    if (ids[i] < 0 || ids[i] >= g->model->config.vocabulary)
      return rung_fail(&g->error, RUNG_OUT_OF_RANGE, "prompt: id %zu is %d, the vocabulary has %" PRId64, i, ids[i],
                       g->model->config.vocabulary);
  return RUNG_OK;
}

rung_status rung_slot_prompt(rung_generator *g, int32_t slot, const int32_t *ids, size_t count) {
  rung_sequence *s = &g->sequence[slot];
  const size_t left = s->pending.count - s->read;
  const uint64_t total = (uint64_t)rung_generator_held(g, slot) + left + count;
  if (total > (uint64_t)g->options.context && !g->options.shift)
    return rung_fail(&g->error, RUNG_OUT_OF_RANGE,
                     "prompt: slot %d would hold %" PRIu64 " positions, the context has %" PRId64, slot, total,
                     g->options.context);
  if (left && s->read) memmove(s->pending.id, s->pending.id + s->read, left * sizeof *ids);
  s->pending.count = left;
  s->read = 0;
  RUNG_TRY(rung_slot_reserve(g, &s->pending, left + count, &g->error));
  if (count) memcpy(s->pending.id + left, ids, count * sizeof *ids);
  s->pending.count = left + count;
  s->live = s->pending.count > 0;
  return RUNG_OK;
}

rung_status rung_generator_prompt(rung_generator *g, int32_t slot, const int32_t *ids, size_t count) {
  RUNG_TRY(rung_slot_check(g, slot));
  RUNG_TRY(rung_slot_check_ids(g, ids, count));
  return rung_slot_prompt(g, slot, ids, count);
}

void rung_generator_pause(rung_generator *g, int32_t slot) {
  if (!g || slot < 0 || slot >= g->options.sequences) return;
  rung_generator_quiet(g);
  g->sequence[slot].live = false;
}
