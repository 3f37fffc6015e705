/* SPDX-License-Identifier: MIT
 * Submitted runs: the queue of a context, who runs what is in it, and what a failure means for those behind it.
 *
 * Runs end in the order of their tickets. In the host's memory to end one is to run it, which a runner of the process
 * does (base/runner.h) or whoever waits; a far device has been told everything when the submit returns, and to end one is
 * to wait for its mark, which only the caller's thread does. What the caller binds meanwhile is main's; what a run needs is
 * its flight's. Lengths of states move when a run is submitted, by the caller's thread, so that rows behind it can be set;
 * they go back, also by the caller's thread, when it learns of a failure. */
#include <inttypes.h>
#include <string.h>

#include "runtime/flight.h"

/* ---- ending a run; one at a time, without the lock */

static rung_status not_run(const rung_flights *f, rung_flight *x) {
  rung_table_release(x->table);
  x->table = NULL;
  return rung_fail(&x->run.error, RUNG_CANCELLED,
                   "submitted run %" PRIu64 " goes on with what run %" PRIu64 " was to leave, which failed", x->ticket,
                   x->in_state ? f->broken_by : x->ticket - 1);
}

static bool is_cancelled(const rung_flights *f, const rung_flight *x) {
  return x->ticket < atomic_load(&f->main->cancelled);
}

static rung_status say_cancelled(rung_flight *x) {
  return rung_fail(&x->run.error, RUNG_CANCELLED, "the submitted run was cancelled");
}

static rung_status run_here(rung_flights *f, rung_flight *x) {
  rung_context *r = &x->run;
  rung_table *table = x->table;
  x->table = NULL;
  atomic_store(&f->main->cancel, 0);
  if (is_cancelled(f, x)) { /* the flag of a cancel that came before is gone, one that comes now is seen */
    rung_table_release(table);
    return say_cancelled(x);
  }
  RUNG_TRY(rung_run_start(r, x->now, &x->rows, table));
  RUNG_TRY(rung_context_copy_outputs(r, x->now));
  rung_run_results(r, x->now);
  RUNG_TRY(rung_flight_keep_late(f, x));
  RUNG_TRY(rung_context_feed_whole(r));
  rung_context_feed_inputs(r, x->now);
  return RUNG_OK;
}

static rung_status end_here(rung_flights *f, rung_flight *x, bool skip) {
  if (skip) return not_run(f, x);
  const uint64_t counter = f->main->random[1];
  rung_status status = run_here(f, x);
  if (status) return rung_run_fail(&x->run, x->now, &x->rows, counter, status);
  x->run.ran = true;
  return RUNG_OK;
}

/* Also where its results are no longer wanted: the device is done with its memory. */
static rung_status end_far(rung_flights *f, rung_flight *x, bool skip) {
  rung_status status = x->status;
  if (x->launched) status = rung_flight_read(x);
  x->launched = false;
  if (skip || x->table) return not_run(f, x); /* with the table: it was lost when it was submitted */
  if (is_cancelled(f, x)) status = say_cancelled(x);
  if (!status && rung_context_feeds_whole(f->main)) status = rung_context_feed_whole(&x->run);
  if (status) return rung_run_fail(&x->run, x->now, &x->rows, f->main->random[1], status);
  x->run.ran = true;
  return RUNG_OK;
}

/* Under the lock, which is given up while the run goes on. */
static void end_next(rung_flights *f) {
  rung_flight *x = rung_flight_of(f, f->next);
  const bool skip = x->doomed || (f->broken && x->in_state) || (x->fed && !f->fed_well);
  f->running = true;
  rung_mutex_unlock(&f->lock);
  const rung_status status = f->main->far ? end_far(f, x, skip) : end_here(f, x, skip);
  rung_mutex_lock(&f->lock);
  x->status = status;
  x->stage = RUNG_FLIGHT_DONE;
  f->running = false;
  f->next++;
  f->fed_well = !status;
  if (status && x->in_state && !x->doomed && !f->broken) {
    f->broken = true;
    f->broken_by = x->ticket;
  }
  rung_cond_broadcast(&f->ended);
}

static uint64_t last_ticket(const rung_flights *f) { return atomic_load(&f->main->next_ticket) - 1; }

/* Under the lock: until that ticket and all in front of it have ended. */
static void end_until(rung_flights *f, uint64_t ticket) {
  while (f->next <= ticket) {
    if (f->running)
      rung_cond_wait(&f->ended, &f->lock);
    else
      end_next(f);
  }
}

/* A runner's: as long as there is something and nobody else is at it. */
void rung_flights_run(void *self) {
  rung_flights *f = self;
  rung_mutex_lock(&f->lock);
  while (!f->running && f->next <= last_ticket(f) && rung_flight_of(f, f->next)->stage == RUNG_FLIGHT_PENDING)
    end_next(f);
  rung_mutex_unlock(&f->lock);
}

/* Under the lock, by the caller's thread: the caller knows now. What was to go on with the state never will, and lengths
 * are what they were. */
static void recover(rung_flights *f) {
  if (!f->broken) return;
  rung_state *s = f->main->state;
  for (uint64_t t = last_ticket(f); t >= f->broken_by; t--) {
    rung_flight *x = rung_flight_of(f, t);
    if (!x->in_state) continue;
    if (x->stage == RUNG_FLIGHT_PENDING) x->doomed = true;
    for (int64_t i = 0; i < x->rows.n; i++) s->length[x->rows.slot[i]] = x->rows.past[i];
  }
  for (uint64_t t = f->broken_by; t <= last_ticket(f); t++) {
    const rung_flight *x = rung_flight_of(f, t);
    for (int64_t i = 0; x->in_state && i < x->rows.n; i++) rung_state_give_back(s, x->rows.slot[i]);
  }
  f->broken = false;
}

/* ---- for the other calls */

void rung_context_lock(rung_context *c) {
  if (c->main->flights) rung_mutex_lock(&c->main->flights->lock);
}
void rung_context_unlock(rung_context *c) {
  if (c->main->flights) rung_mutex_unlock(&c->main->flights->lock);
}

void rung_context_quiet(rung_context *c) {
  rung_flights *f = c ? c->main->flights : NULL;
  if (!f) return;
  rung_mutex_lock(&f->lock);
  end_until(f, last_ticket(f));
  recover(f);
  rung_mutex_unlock(&f->lock);
}

void rung_state_quiet(rung_state *s) {
  if (s && s->submitter) rung_context_quiet(s->submitter);
}

void rung_context_stale(rung_context *c) {
  const rung_flights *f = c->main->flights;
  c->main->commit_stamp++;
  for (uint32_t i = 0; f && i < f->count; i++) f->flight[i].run.commit_stamp++;
}

void rung_context_drop_flights(rung_context *c) {
  if (!c->flights) return;
  rung_context_quiet(c);
  rung_job_withdraw(&c->flights->job);
  rung_flights_destroy(c->flights);
  c->flights = NULL;
}

/* ---- submitting */

static bool is_pending(rung_context *c) {
  if (!c->flights) return false;
  rung_mutex_lock(&c->flights->lock);
  const bool pending = c->flights->next <= last_ticket(c->flights);
  rung_mutex_unlock(&c->flights->lock);
  return pending;
}

static rung_status take_state(rung_context *c) {
  rung_state *s = c->state;
  if (!s || s->submitter == c) return RUNG_OK;
  if (s->submitter && is_pending(s->submitter))
    return rung_fail(&c->error, RUNG_BUSY, "submit: runs of another context that use the state are pending");
  rung_state_quiet(s); /* lengths that a failure has left */
  s->submitter = c;
  return RUNG_OK;
}

/* Is there a place for one more? */
static rung_status check_limit(rung_context *c) {
  rung_flights *f = c->flights;
  const uint64_t ticket = atomic_load(&c->next_ticket), limit = f->count - 1;
  if (ticket < f->first + limit) return RUNG_OK;
  rung_mutex_lock(&f->lock);
  const bool waited = rung_flight_of(f, ticket - limit)->stage == RUNG_FLIGHT_WAITED;
  rung_mutex_unlock(&f->lock);
  return waited ? RUNG_OK
                : rung_fail(&c->error, RUNG_BUSY,
                            "submit: %" PRIu64 " runs are in flight; run %" PRIu64 " has not been waited for", limit,
                            ticket - limit);
}

/* Shifts that wait are done by the caller, while lengths are those that the state has. */
static void settle_shifts(rung_context *c) {
  bool any = false;
  for (int32_t i = 0; c->state && i < c->state->sequences; i++) any |= c->state->shift[i].by != 0;
  if (!any) return;
  rung_context_quiet(c);
  for (int32_t i = 0; i < c->state->sequences; i++) rung_state_settle(c->state, i);
}

/* What fails is at the ticket as well: nothing behind it can be trusted to have happened. */
static void launch(rung_flights *f, rung_flight *x) {
  rung_context *r = &x->run;
  const uint64_t counter = f->main->random[1];
  rung_table *table = x->table;
  x->table = NULL;
  atomic_store(&f->main->cancel, 0);
  if (is_cancelled(f, x)) { /* as in run_here */
    rung_table_release(table);
    x->status = say_cancelled(x);
    return;
  }
  x->status = rung_run_start(r, x->now, &x->rows, table);
  if (!x->status) {
    const rung_device *device = r->template_->device;
    rung_error ignored;
    rung_context_feed_inputs(r, x->now);
    x->status = rung_flight_read_later(f, x);
    /* What its steps may have refused is not the next run's. */
    if (x->status && device->backend->settle)
      (void)device->backend->settle(device->self, f->main->kept_steps, &ignored);
  }
  x->launched = !x->status;
  if (x->status) rung_run_fail(r, x->now, &x->rows, counter, x->status);
}

/* Does the host take part behind the launches, or put back what they wrote? */
static bool needs_host(const rung_context *c) {
  const rung_plan *plan = c->program->plan;
  for (uint32_t i = 0; i < plan->steps; i++)
    if (plan->step[i].kind == RUNG_STEP_KEEP) return true;
  return c->on_step || rung_context_feeds_whole(c);
}

/* As far as is known: what is under way is taken to end well, what could not be launched has not. */
static bool is_lost(const rung_flights *f, const rung_flight *x) {
  if (x->in_state && f->broken) return true;
  if (x->fed && f->next == x->ticket && !f->fed_well) return true;
  for (uint64_t t = f->next; t < x->ticket; t++) {
    const rung_flight *y = rung_flight_of(f, t);
    if (y->status && ((x->in_state && y->in_state && !y->doomed) || (x->fed && t + 1 == x->ticket))) return true;
  }
  return false;
}

static void begin_far(rung_flights *f, rung_flight *x) {
  const bool at_once = needs_host(f->main);
  rung_mutex_lock(&f->lock);
  if (at_once) end_until(f, x->ticket - 1);
  const bool lost = is_lost(f, x);
  rung_mutex_unlock(&f->lock);
  if (lost)
    x->status = RUNG_CANCELLED; /* said when it ends */
  else
    launch(f, x);
  rung_mutex_lock(&f->lock);
  x->stage = RUNG_FLIGHT_PENDING;
  if (at_once) end_next(f);
  rung_mutex_unlock(&f->lock);
}

static void begin_here(rung_flights *f, rung_flight *x) {
  rung_mutex_lock(&f->lock);
  x->stage = RUNG_FLIGHT_PENDING;
  const bool running = f->running;
  rung_mutex_unlock(&f->lock);
  /* Who runs looks for more, a waiter only up to his ticket: he posts what he leaves. */
  if (!running) rung_job_post(&f->job, f->main->host);
}

/* It is queued: what the caller sets next is for the run behind it. */
static void go(rung_context *c, rung_flight *x) {
  rung_flights *f = c->flights;
  const rung_run_rows *rows = &x->rows;
  x->ticket = atomic_load(&c->next_ticket);
  x->in_state = c->state && c->program->plan->states;
  x->doomed = x->launched = false;
  x->status = RUNG_OK;
  x->table = rung_run_begin(&x->run);
  atomic_store(&c->next_ticket, x->ticket + 1);
  c->newest = &x->run;
  if (c->far) begin_far(f, x);
  for (int64_t i = 0; i < rows->n; i++) c->state->length[rows->slot[i]] += rows->offsets[i + 1] - rows->offsets[i];
  rung_context_bind_fed_inputs(&x->run, x->now);
  if (!c->far) begin_here(f, x);
}

/* Once the caller knows that a run has failed, what it was to feed is not bound; before, runs that go on with it are taken
 * and end at their tickets. */
static void forget_lost_feeds(rung_context *c) {
  rung_flights *f = c->flights;
  rung_mutex_lock(&f->lock);
  if (c->newest == c) f->fed_well = true; /* a plain run that failed has unbound what it was to feed */
  const bool lost =
      c->newest && c->newest != c && rung_flight_of(f, last_ticket(f))->stage == RUNG_FLIGHT_WAITED && !c->newest->ran;
  rung_mutex_unlock(&f->lock);
  if (lost) rung_context_unfeed_inputs(c);
}

rung_status rung_context_submit(rung_context *c, uint64_t *out_ticket) {
  RUNG_TRY(rung_context_ready(c));
  if (!out_ticket) return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "submit: out_ticket is required");
  RUNG_TRY(take_state(c));
  if (!c->flights) RUNG_TRY(rung_flights_make(c));
  rung_flights *f = c->flights;
  RUNG_TRY(check_limit(c));
  settle_shifts(c);
  forget_lost_feeds(c);
  rung_flight *x = rung_flight_of(f, atomic_load(&c->next_ticket));
  if (c->shown == &x->run) c->shown = NULL;
  rung_status status = rung_flight_take(f, x);
  if (!status) status = rung_flight_keep_outputs(f, x);
  if (status) {
    c->error = x->run.error;
    return status;
  }
  go(c, x);
  *out_ticket = x->ticket;
  return RUNG_OK;
}

/* ---- waiting */

static rung_status report(rung_context *c, const rung_flight *x) {
  if (x->status) c->error = x->run.error;
  return x->status;
}

static bool leaves_some(rung_flights *f) { return !f->main->far && !f->running && f->next <= last_ticket(f); }

rung_status rung_context_wait(rung_context *c, uint64_t ticket) {
  RUNG_TRY(rung_context_ready(c));
  rung_flights *f = c->flights;
  if (!f || ticket < f->first || ticket > last_ticket(f) || last_ticket(f) - ticket >= f->count - 1)
    return rung_fail(&c->error, RUNG_NOT_FOUND, "wait: there is no run %" PRIu64 ", or others have taken its place",
                     ticket);
  rung_flight *x = rung_flight_of(f, ticket);
  rung_mutex_lock(&f->lock);
  end_until(f, ticket);
  if (f->broken && f->broken_by <= ticket) recover(f);
  x->stage = RUNG_FLIGHT_WAITED;
  const bool more = leaves_some(f);
  rung_mutex_unlock(&f->lock);
  if (more) rung_job_post(&f->job, c->host);
  c->shown = x->status ? NULL : &x->run;
  return report(c, x);
}

rung_status rung_context_sync(rung_context *c) {
  RUNG_TRY(rung_context_ready(c));
  rung_flights *f = c->flights;
  if (!f) return RUNG_OK;
  rung_context_quiet(c);
  const rung_flight *failed = NULL;
  const uint64_t last = last_ticket(f), count = last + 1 - f->first;
  for (uint64_t t = count < f->count ? f->first : last + 1 - (f->count - 1); t <= last; t++) {
    rung_flight *x = rung_flight_of(f, t);
    if (x->stage == RUNG_FLIGHT_DONE && x->status && !failed) failed = x;
    x->stage = RUNG_FLIGHT_WAITED;
  }
  return failed ? report(c, failed) : RUNG_OK;
}
