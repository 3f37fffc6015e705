/* SPDX-License-Identifier: MIT
 * Measuring candidates. Times are medians; whether a candidate may win is decided by its result before its time. */
#include "runtime/tune/measure.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"

typedef struct measuring {
  const rung_bench *bench;
  const rung_measuring *how;
  rung_error *error;
  const float *want; /* a copy of the reference's result */
  size_t count;
  uint64_t *ns[2]; /* how->repeats each */
} measuring;

double rung_tune_distance(const float *a, const float *b, size_t count) {
  double off = 0, all = 0;
  for (size_t i = 0; i < count; i++) {
    const double x = (double)a[i], y = (double)b[i];
    if (isfinite(y)) {
      off += (x - y) * (x - y);
      all += y * y;
    } else if (isnan(y) ? !isnan(x) : x != y) {
      return (double)INFINITY;
    }
  }
  const double distance = all > 0 ? sqrt(off / all) : sqrt(count ? off / (double)count : 0);
  return isnan(distance) ? (double)INFINITY : distance;
}

static bool is_shorter(const void *self, const void *a, const void *b) {
  (void)self;
  return *(const uint64_t *)a < *(const uint64_t *)b;
}

uint64_t rung_tune_median(uint64_t *ns, size_t count) {
  rung_sort(ns, count, sizeof *ns, is_shorter, NULL);
  const uint64_t low = ns[(count - 1) / 2], high = ns[count / 2];
  return low + (high - low) / 2;
}

static rung_status warm_up(const measuring *m) {
  uint64_t ns;
  for (int i = 0; i < m->how->warmups; i++) RUNG_TRY(m->bench->run(m->bench->self, m->error, &ns));
  return RUNG_OK;
}

/* Makes the candidate the bench's and looks at what it computes. */
static rung_status try_candidate(const measuring *m, const rung_candidate *candidate, bool *out_usable) {
  const float *got;
  size_t count;
  uint64_t ns;
  *out_usable = false;
  const rung_status status = m->bench->choose(m->bench->self, candidate, m->error);
  if (status == RUNG_UNSUPPORTED) return RUNG_OK;
  RUNG_TRY(status);
  RUNG_TRY(m->bench->run(m->bench->self, m->error, &ns));
  RUNG_TRY(m->bench->output(m->bench->self, m->error, &got, &count));
  *out_usable = count == m->count && rung_tune_distance(got, m->want, count) <= m->how->bound;
  return RUNG_OK;
}

static rung_status take_times(const measuring *m, uint64_t *out_ns) {
  RUNG_TRY(warm_up(m));
  for (int i = 0; i < m->how->repeats; i++) RUNG_TRY(m->bench->run(m->bench->self, m->error, &m->ns[0][i]));
  *out_ns = rung_tune_median(m->ns[0], (size_t)m->how->repeats);
  return RUNG_OK;
}

static rung_status measure_one(const measuring *m, const rung_candidate *candidate, rung_measured *out,
                               bool *out_usable, uint64_t *out_ns) {
  RUNG_TRY(try_candidate(m, candidate, out_usable));
  out->candidates++;
  out->refused += !*out_usable;
  return *out_usable ? take_times(m, out_ns) : RUNG_OK;
}

/* Clocks drift while many candidates are measured: who is better is asked once more, of both at the same time. */
static rung_status compare_again(const measuring *m, const rung_candidate *standard, rung_measured *out) {
  const rung_candidate *pair[2] = {&out->winner, standard};
  for (int i = 0; i < m->how->repeats; i++)
    for (int side = 0; side < 2; side++) {
      RUNG_TRY(m->bench->choose(m->bench->self, pair[side], m->error));
      if (i == 0) RUNG_TRY(warm_up(m));
      RUNG_TRY(m->bench->run(m->bench->self, m->error, &m->ns[side][i]));
    }
  out->winner_ns = rung_tune_median(m->ns[0], (size_t)m->how->repeats);
  out->standard_ns = rung_tune_median(m->ns[1], (size_t)m->how->repeats);
  if (out->standard_ns <= out->winner_ns) {
    out->winner = *standard;
    out->winner_ns = out->standard_ns;
  }
  return RUNG_OK;
}

static rung_status measure_all(const measuring *m, const rung_candidate *candidate, size_t candidates,
                               const rung_candidate *standard, rung_measured *out) {
  bool usable, standard_usable;
  uint64_t ns = 0;
  RUNG_TRY(measure_one(m, standard, out, &standard_usable, &ns));
  if (standard_usable) {
    out->found = true;
    out->winner = *standard;
    out->winner_ns = out->standard_ns = ns;
  }
  for (size_t i = 0; i < candidates; i++) {
    if (rung_candidate_equal(&candidate[i], standard)) continue;
    RUNG_TRY(measure_one(m, &candidate[i], out, &usable, &ns));
    if (!usable || (out->found && ns >= out->winner_ns)) continue;
    out->found = true;
    out->winner = candidate[i];
    out->winner_ns = ns;
  }
  if (!standard_usable || rung_candidate_equal(&out->winner, standard)) return RUNG_OK;
  return compare_again(m, standard, out);
}

static rung_status copy_reference(rung_host *host, measuring *m, float **out) {
  const float *want;
  RUNG_TRY(m->bench->reference(m->bench->self, m->error, &want, &m->count));
  *out = rung_host_array(host, m->count, sizeof *want);
  if (!*out) return rung_fail(m->error, RUNG_OUT_OF_MEMORY, "tune: no memory for %zu numbers to compare", m->count);
  if (m->count) memcpy(*out, want, m->count * sizeof *want);
  m->want = *out;
  return RUNG_OK;
}

rung_status rung_measure(rung_host *host, const rung_bench *bench, const rung_candidate_space *space,
                         const rung_candidate *standard, const rung_measuring *how, rung_error *error,
                         rung_measured *out) {
  measuring m = {.bench = bench, .how = how, .error = error};
  float *want = NULL;
  const size_t repeats = (size_t)how->repeats;
  rung_candidate *candidate = rung_host_array(host, RUNG_CANDIDATES, sizeof *candidate);
  uint64_t *ns = rung_host_array(host, 2 * repeats, sizeof *ns);
  *out = (rung_measured){.found = false};
  rung_status status = RUNG_OK;
  if (!candidate || !ns) status = rung_fail(error, RUNG_OUT_OF_MEMORY, "tune: no memory for candidates and times");
  if (!status) status = copy_reference(host, &m, &want);
  if (!status) {
    m.ns[0] = ns;
    m.ns[1] = ns + repeats;
    status = measure_all(&m, candidate, rung_candidates(space, candidate, RUNG_CANDIDATES), standard, out);
  }
  rung_host_free(host, RUNG_MEMORY_host, want, m.count * sizeof *want);
  rung_host_free(host, RUNG_MEMORY_host, ns, 2 * repeats * sizeof *ns);
  rung_host_free(host, RUNG_MEMORY_host, candidate, RUNG_CANDIDATES * sizeof *candidate);
  return status;
}
