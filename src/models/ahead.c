/* SPDX-License-Identifier: MIT
 * One step ahead: where a program on a far device chooses the tokens of the only slot, the run behind a token is submitted
 * before the caller has looked at the token, which goes from run to run on the device.
 *
 * Between two steps one run is on its way: it reads the slot's one pending id and gives the next token. A step submits the
 * run behind that, fed with its token, then waits for the first. Whatever else is asked of the generator first undoes the
 * run that is on its way (rung_generator_quiet): the state loses its position, and the id is pending still. */
#include "models/generator.h"
#include "runtime/runtime.h"

/* A window's ring may have overwritten what the sequence without the last position needs. */
static bool can_look(const rung_generator *g) {
  const rung_sequence *s = &g->sequence[0];
  return g->out_tokens >= 0 && g->options.sequences == 1 && !g->exposed && g->model->config.window == 0 && s->live &&
         s->pending.count - s->read == 1 && rung_sampler_is_plain(&s->sampler) && rung_context_is_far(g->context) &&
         rung_state_length(g->state, 0) < g->options.context;
}

/* One row behind what the state holds. id -1: the token of the run before. `later`: how many tokens are on their way. */
static rung_status submit(rung_generator *g, int32_t id, uint64_t later, uint64_t *out_ticket) {
  double parameters[RUNG_SAMPLE_COLUMNS];
  const rung_rows rows = {0, 1};
  void *in;
  rung_sampler sampler = g->sequence[0].sampler;
  sampler.drawn += later;
  rung_sampler_parameters(&sampler, parameters);
  RUNG_TRY(rung_context_set_rows(g->context, &rows, 1));
  if (id >= 0) {
    RUNG_TRY(rung_context_input(g->context, g->in_ids, (int64_t[]){1}, &in));
    *(int32_t *)in = id;
  }
  RUNG_TRY(rung_context_input(g->context, g->in_wanted, (int64_t[]){1}, &in));
  *(int32_t *)in = 0;
  RUNG_TRY(rung_generator_ask(g, parameters, 1));
  return rung_context_submit(g->context, out_ticket);
}

static bool is_fed(rung_generator *g) {
  if (!g->fed) g->fed = rung_context_add_input_feed(g->context, "tokens", "ids") == RUNG_OK;
  return g->fed;
}

/* What cannot be submitted is done by the next step, which says why it cannot be. */
void rung_generator_look_ahead(rung_generator *g) {
  const rung_sequence *s = &g->sequence[0];
  if (g->ahead || !can_look(g) || !is_fed(g)) return;
  g->ahead_from = rung_state_length(g->state, 0);
  g->ahead = submit(g, s->pending.id[s->read], 0, &g->ahead_ticket) == RUNG_OK;
}

void rung_generator_quiet(rung_generator *g) {
  rung_error ignored = {0};
  if (!g->ahead) return;
  g->ahead = false;
  (void)!rung_context_wait(g->context, g->ahead_ticket); /* one that has failed has put the state back */
  if (rung_state_length(g->state, 0) > g->ahead_from)
    (void)!rung_state_truncate(g->state, 0, g->ahead_from, &ignored); /* not refused: there is no window */
}

void rung_generator_unfeed(rung_generator *g) {
  if (!g->fed) return;
  rung_context_clear_feeds(g->context);
  g->fed = false;
}

int64_t rung_generator_held(const rung_generator *g, int32_t slot) {
  return g->ahead ? g->ahead_from : rung_state_length(g->state, slot);
}

/* The run that is on its way; behind it the next one, if there is room for its row. */
rung_status rung_generator_take_ahead(rung_generator *g, int32_t *out_id) {
  rung_sequence *s = &g->sequence[0];
  const int64_t from = g->ahead_from;
  const int32_t read = s->pending.id[s->read];
  uint64_t next = 0;
  rung_tensor token = {0};
  RUNG_TRY(rung_slot_reserve(g, &s->held, s->held.count + 2, &g->error));
  const bool more = from + 1 < g->options.context && submit(g, -1, 1, &next) == RUNG_OK;
  rung_status status = rung_context_wait(g->context, g->ahead_ticket);
  if (!status) status = rung_context_output(g->context, g->out_tokens, &token);
  if (status) rung_fail(&g->error, status, "%s", rung_context_message(g->context));
  g->ahead = more;
  g->ahead_ticket = next;
  g->ahead_from = from + !status;
  g->runs++;
  g->hidden_rows = !status;
  if (status) {
    const rung_error error = g->error;
    rung_generator_quiet(g);
    g->error = error;
    return status;
  }
  *out_id = *(const int32_t *)token.data;
  rung_slot_read(g, 0, &read, 1);
  s->read++;
  s->wanted = 0;
  return RUNG_OK;
}
