/* SPDX-License-Identifier: MIT
 * rung_tune: which kernels of a template's programs have candidates, at which sizes they are measured, and recording
 * what won. */
#include <inttypes.h>
#include <rung/tune.h>
#include <string.h>

#include "runtime/runtime.h"
#include "runtime/tune/measure.h"
#include "runtime/tune/tables.h"

enum { MOST_RUNS = 100000 };

rung_tune_policy rung_tune_policy_default(void) {
  return (rung_tune_policy){.size = sizeof(rung_tune_policy),
                            .load = true,
                            .save = true,
                            .entries = RUNG_WINNERS,
                            .eviction = RUNG_TUNE_LRU,
                            .profile = RUNG_TUNE_BALANCED};
}

rung_tune_options rung_tune_options_default(void) {
  return (rung_tune_options){.size = sizeof(rung_tune_options), .warmups = 2, .repeats = 8, .keys = 1024};
}

static double bound_of(rung_tune_profile profile) {
  return profile == RUNG_TUNE_LATENCY ? 1e-2 : profile == RUNG_TUNE_BALANCED ? 1e-3 : 1e-5;
}

/* ---- one template */

typedef struct tuning {
  rung_device *device;
  void *session; /* of the backend */
  const rung_tune_options *options;
  rung_error *error;
  rung_tune_report *report;
} tuning;

static rung_status record(const tuning *t, rung_winners *winners, uint16_t bucket, const rung_measured *m) {
  bool changed;
  t->report->sizes++;
  t->report->candidates += m->candidates;
  t->report->refused += m->refused;
  if (!m->found) return RUNG_OK;
  const rung_status status = rung_winners_record(winners, bucket, &m->winner, t->error, &changed);
  t->report->recorded += status == RUNG_OK || changed;
  t->report->changed += changed;
  return status;
}

static rung_status tune_size(const tuning *t, const rung_tunable *kernel, rung_winners *winners, uint16_t bucket) {
  const rung_tuning *ways = t->device->backend->tuning;
  const int64_t edge = rung_tune_bucket_rows(bucket), upper = edge < kernel->most_rows ? edge : kernel->most_rows;
  const int64_t rows = upper > kernel->least_rows ? upper : kernel->least_rows;
  const int64_t keys = t->options->keys > rows ? t->options->keys : rows;
  const rung_measuring how = {.warmups = t->options->warmups,
                              .repeats = t->options->repeats,
                              .bound = bound_of(rung_tables_policy(t->device->tables)->profile)};
  if (!t->options->again) {
    bool found;
    rung_candidate ignored;
    RUNG_TRY(rung_winners_find(winners, bucket, t->error, &found, &ignored));
    if (found) return RUNG_OK;
  }
  rung_bench bench;
  rung_measured measured;
  RUNG_TRY(ways->open(t->session, kernel, rows, keys, t->error, &bench));
  const rung_candidate standard = ways->standard(kernel, rows, keys);
  const rung_status status =
      rung_measure(t->device->host, &bench, &kernel->space, &standard, &how, t->error, &measured);
  bench.close(bench.self);
  return status ? status : record(t, winners, bucket, &measured);
}

static rung_status tune_kernel(const tuning *t, const rung_tunable *kernel) {
  rung_winners *winners;
  rung_status failed = RUNG_OK;
  t->report->kernels++;
  RUNG_TRY(rung_tables_get(t->device->tables, kernel->signature, t->error, &winners));
  const uint16_t last = rung_tune_bucket(kernel->most_rows);
  for (uint16_t b = rung_tune_bucket(kernel->least_rows); b <= last; b++) {
    const rung_status status = tune_size(t, kernel, winners, b);
    if (status == RUNG_IO)
      failed = status; /* the table could not be written: what follows is worth measuring all the same */
    else if (status)
      return rung_fail_prefix(t->error, status, "tune: %s", kernel->signature);
  }
  return failed;
}

static rung_status tune_plan(const tuning *t) {
  rung_tunable kernel;
  rung_status failed = RUNG_OK;
  for (uint32_t i = 0; t->device->backend->tuning->at(t->session, i, &kernel); i++) {
    const rung_status status = tune_kernel(t, &kernel);
    if (status == RUNG_IO)
      failed = status;
    else if (status)
      return status;
  }
  return failed;
}

static rung_status check_options(const rung_tune_options *o, rung_error *error) {
  if (o->size != sizeof *o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "tune: options.size is %zu, expected %zu", o->size, sizeof *o);
  if (o->warmups < 0 || o->warmups > MOST_RUNS || o->repeats < 1 || o->repeats > MOST_RUNS)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "tune: %d runs to warm up and %d to measure; give 0..%d and 1..%d",
                     o->warmups, o->repeats, MOST_RUNS, MOST_RUNS);
  if (o->keys < 1 || o->keys > INT32_MAX)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "tune: %" PRId64 " keys; give 1..%d", o->keys, INT32_MAX);
  return RUNG_OK;
}

rung_status rung_tune(rung_template *t, const rung_binding *ceiling, size_t count, const rung_tune_options *options,
                      rung_error *error, rung_tune_report *out_report) {
  const rung_tune_options o = options ? *options : rung_tune_options_default();
  rung_tune_report report = {0};
  if (!t || (count && !ceiling))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "tune: template and ceiling are required");
  RUNG_TRY(check_options(&o, error));
  rung_status status = RUNG_OK;
  if (t->device->tables) {
    if (rung_tables_policy(t->device->tables)->profile == RUNG_TUNE_DETERMINISTIC || t->options.deterministic)
      return rung_fail(error, RUNG_INVALID_ARGUMENT, "tune: %s deterministic takes no winners",
                       t->options.deterministic ? "a template compiled" : "the profile");
    const rung_tuning *ways = t->device->backend->tuning;
    tuning all = {.device = t->device, .options = &o, .error = error, .report = &report};
    rung_plan *plan;
    RUNG_TRY(rung_template_plan(t, ceiling, count, error, &plan));
    status = ways->begin(t->device->self, plan, error, &all.session);
    if (!status) {
      status = tune_plan(&all);
      ways->end(all.session);
    }
    rung_plan_destroy(plan);
  }
  if (out_report) *out_report = report;
  return status;
}

rung_status rung_tune_warm(rung_template *t, const rung_binding *ceiling, size_t count, rung_error *error) {
  const rung_tune_policy *policy = t->device->tables ? rung_tables_policy(t->device->tables) : NULL;
  if (!policy || !policy->warm || policy->profile == RUNG_TUNE_DETERMINISTIC || t->options.deterministic)
    return RUNG_OK;
  rung_error why = {RUNG_OK, ""};
  const rung_status status = rung_tune(t, ceiling, count, NULL, &why, NULL);
  if (status && status != RUNG_IO) return rung_fail(error, status, "%s", why.message);
  if (status) rung_host_log(t->device->host, RUNG_LOG_WARNING, "%s", why.message);
  return RUNG_OK;
}

/* ---- listing */

static rung_status list_table(rung_host *host, const char *signature, rung_winners *winners, rung_tune_winner_fn *fn,
                              void *self, rung_error *error) {
  const size_t room = rung_winners_list(winners, NULL, 0);
  rung_winner *row = rung_host_array(host, room, sizeof *row);
  if (!row) return rung_fail(error, RUNG_OUT_OF_MEMORY, "winners: no memory to list them");
  const size_t there = rung_winners_list(winners, row, room), n = there < room ? there : room;
  for (size_t i = 0; i < n; i++) {
    char tag[RUNG_CANDIDATE_TAG];
    rung_candidate_print(&row[i].candidate, tag);
    const rung_tune_winner winner = {signature, tag, row[i].bucket, row[i].tick};
    fn(self, &winner);
  }
  rung_host_free(host, RUNG_MEMORY_host, row, room * sizeof *row);
  return RUNG_OK;
}

rung_status rung_tune_winners(rung_device *device, rung_tune_winner_fn *fn, void *self, rung_error *error) {
  const char *signature;
  rung_winners *winners;
  if (!device || !fn) return rung_fail(error, RUNG_INVALID_ARGUMENT, "winners: device and fn are required");
  for (size_t i = 0; device->tables && rung_tables_at(device->tables, i, &signature, &winners); i++)
    RUNG_TRY(list_table(device->host, signature, winners, fn, self, error));
  return RUNG_OK;
}
