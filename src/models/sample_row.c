/* SPDX-License-Identifier: MIT
 * Steps of the sampler chain that work on the row of logits: biases, the caller's own function, penalties, DRY, and the
 * threshold by standard deviations. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/sort.h"
#include "models/sample_steps.h"

#define AT(field) offsetof(rung_sample_options, field)

/* ---- biases */

static bool has_bias(const rung_sample_options *o) { return o->biases > 0; }
static rung_status add_bias(rung_race *r, rung_error *error) {
  const rung_sample_options *o = &r->sampler->options;
  for (size_t i = 0; i < o->biases; i++) {
    const rung_logit_bias b = o->bias[i];
    if (b.id >= r->input->count)
      return rung_fail(error, RUNG_OUT_OF_RANGE, "bias: id %d, the vocabulary has %lld", b.id,
                       (long long)r->input->count);
    r->copy[b.id] += b.bias;
  }
  return RUNG_OK;
}
const rung_sample_step rung_step_bias = {
    .name = "bias", .active = has_bias, .apply = add_bias, .changes_row = true, .before_gathering = true};

/* ---- the caller's own function */

static bool has_own(const rung_sample_options *o) { return o->fn != NULL; }
static rung_status call_own(rung_race *r, rung_error *error) {
  rung_sample_row row = {.slot = r->input->slot,
                         .logits = r->copy,
                         .vocabulary = r->input->count,
                         .ids = r->input->ids,
                         .count = r->input->id_count,
                         .id = -1};
  const rung_status status = r->sampler->options.fn(r->sampler->options.fn_self, &row);
  if (status) return rung_fail(error, status, "the caller's sampler: %s", rung_status_text(status));
  if (row.id < -1 || row.id >= r->input->count)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "the caller's sampler: id %d, the vocabulary has %lld", row.id,
                     (long long)r->input->count);
  r->chosen = row.id;
  return RUNG_OK;
}
const rung_sample_step rung_step_own = {
    .name = "own", .active = has_own, .apply = call_own, .changes_row = true, .before_gathering = true};

/* ---- numbers in order */

static bool is_less(const void *self, const void *a, const void *b) {
  (void)self;
  return *(const int64_t *)a < *(const int64_t *)b;
}
static void sort(int64_t *data, int64_t count) { rung_sort(data, (size_t)count, sizeof *data, is_less, NULL); }

/* How many of the text's last ids count. */
static int64_t window(const rung_race *r, int64_t last_n) {
  const int64_t count = r->input->id_count;
  return last_n < 0 || last_n > count ? count : last_n;
}

/* ---- penalties */

static bool has_penalties(const rung_sample_options *o) {
  return o->repeat_last_n != 0 && (o->repeat_penalty != 1 || o->presence_penalty != 0 || o->frequency_penalty != 0);
}

static rung_status penalise(rung_race *r, rung_error *error) {
  (void)error;
  const rung_sample_options *o = &r->sampler->options;
  const int64_t n = window(r, o->repeat_last_n);
  const int32_t *ids = r->input->ids + r->input->id_count - n;
  int64_t known = 0;
  for (int64_t i = 0; i < n; i++)
    if (ids[i] >= 0 && ids[i] < r->input->count) r->work[known++] = ids[i];
  sort(r->work, known);
  for (int64_t i = 0, next; i < known; i = next) {
    for (next = i + 1; next < known && r->work[next] == r->work[i]; next++) continue;
    float *logit = &r->copy[r->work[i]];
    double x = (double)*logit;
    x = x > 0 ? x / o->repeat_penalty : x * o->repeat_penalty;
    *logit = (float)(x - ((double)(next - i) * o->frequency_penalty + o->presence_penalty));
  }
  return RUNG_OK;
}
const rung_sample_step rung_step_penalties = {
    .name = "penalties",
    .option = {{"repeat_penalty", AT(repeat_penalty), false, 0, 1e30, true, "a finite number above 0 (1: off) is"},
               {"presence_penalty", AT(presence_penalty), false, -1e30, 1e30, false, "a finite number (0: off) is"},
               {"frequency_penalty", AT(frequency_penalty), false, -1e30, 1e30, false, "a finite number (0: off) is"},
               {"repeat_last_n", AT(repeat_last_n), true, -1, 0x1p62, false, "-1 (the whole text) or more is"}},
    .active = has_penalties,
    .apply = penalise,
    .changes_row = true,
    .reads_text = true,
    .before_gathering = true};

/* ---- DRY ("don't repeat yourself", p-e-w, as in llama.cpp) */

void rung_breakers_finish(rung_breakers *b) {
  if (!b->host) return;
  rung_host_free(b->host, RUNG_MEMORY_host, b->breaker, b->capacity * sizeof *b->breaker);
  rung_host_free(b->host, RUNG_MEMORY_host, b->tail, b->tail_capacity * sizeof *b->tail);
  *b = (rung_breakers){.host = b->host};
}

rung_status rung_breakers_add(rung_breakers *b, const int32_t *ids, size_t count, rung_error *error) {
  void *breaker = b->breaker, *tail = b->tail;
  const bool grown = rung_host_grow(b->host, &breaker, &b->capacity, b->count + 1, sizeof *b->breaker);
  b->breaker = breaker;
  const bool both = grown && rung_host_grow(b->host, &tail, &b->tail_capacity, b->tail_count + count, sizeof *b->tail);
  b->tail = tail;
  if (!both) return rung_fail(error, RUNG_OUT_OF_MEMORY, "dry_breakers: out of memory");
  b->breaker[b->count++] = (rung_breaker){ids[0], (int32_t)b->tail_count, (int32_t)count - 1};
  if (count > 1) memcpy(b->tail + b->tail_count, ids + 1, (count - 1) * sizeof *ids);
  b->tail_count += count - 1;
  return RUNG_OK;
}

static bool has_lower_head(const void *self, const void *a, const void *b) {
  (void)self;
  return ((const rung_breaker *)a)->head < ((const rung_breaker *)b)->head;
}

void rung_breakers_order(rung_breakers *b) {
  rung_sort(b->breaker, b->count, sizeof *b->breaker, has_lower_head, NULL);
}

/* The first breaker of a head, or b->count. */
static size_t find_head(const rung_breakers *b, int32_t head) {
  size_t low = 0, high = b->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (b->breaker[middle].head < head)
      low = middle + 1;
    else
      high = middle;
  }
  return low < b->count && b->breaker[low].head == head ? low : b->count;
}

/* Tokens behind the last breaker: how long a repetition can be. back[-i] is the i-th last token. */
static int64_t repeat_limit(const rung_breakers *b, const int32_t *back, int64_t n) {
  for (int64_t i = 0; i < n && b->count; i++) {
    int64_t longest = -1;
    for (size_t at = find_head(b, back[-i]); at < b->count && b->breaker[at].head == back[-i]; at++) {
      const int64_t length = b->breaker[at].count;
      if (length <= longest || length > i) continue;
      int64_t same = 0;
      while (same < length && b->tail[b->breaker[at].first + same] == back[-(i - same - 1)]) same++;
      if (same == length) longest = length;
    }
    if (longest >= 0) return i - longest;
  }
  return n;
}

static bool ends_repeats(const rung_breakers *b, int32_t id) {
  for (size_t at = find_head(b, id); at < b->count && b->breaker[at].head == id; at++)
    if (!b->breaker[at].count) return true;
  return false;
}

/* count[k]: how many of the last tokens also stand k tokens earlier, for k in [1, n): the Z-function of the reversed text
 * (Gusfield 1997). */
static void count_repeats(const int32_t *back, int64_t n, int64_t *count) {
  int64_t left = 0, right = 0; /* the box [left, right) that reaches furthest */
  for (int64_t k = 1; k < n; k++) {
    int64_t same = k < right ? count[k - left] : 0;
    if (k + same >= right) {
      if (k < right) same = right - k;
      while (k + same < n && back[-same] == back[-(k + same)] && back[-same] >= 0) same++;
      left = k;
      right = k + same;
    }
    count[k] = same;
  }
}

/* base^exponent by squaring: the same bits everywhere. Kept finite, so that a token is only ever unlikely. */
static double dry_penalty(const rung_sample_options *o, int64_t exponent) {
  double power = 1, square = o->dry_base;
  for (; exponent && power < 1e30; exponent >>= 1, square *= square)
    if (exponent & 1) power *= square;
  const double penalty = o->dry_multiplier * power;
  return penalty < 1e30 ? penalty : 1e30;
}

static bool has_dry(const rung_sample_options *o) { return o->dry_multiplier != 0 && o->dry_last_n != 0; }

static rung_status forbid_repeats(rung_race *r, rung_error *error) {
  (void)error;
  const rung_sample_options *o = &r->sampler->options;
  const rung_breakers *b = &r->sampler->breakers;
  const int64_t n = window(r, o->dry_last_n), allowed = o->dry_allowed_length;
  if (n <= allowed) return RUNG_OK;
  const int32_t *back = r->input->ids + r->input->id_count - 1;
  const int64_t limit = repeat_limit(b, back, n);
  if (limit < allowed) return RUNG_OK;
  count_repeats(back, n, r->work);
  int64_t found = 0; /* what followed a repetition, and its length: in place, found < k */
  for (int64_t k = 1; k < n; k++) {
    const int64_t length = r->work[k] < limit ? r->work[k] : limit;
    const int32_t id = back[-(k - 1)];
    if (length < allowed || id < 0 || id >= r->input->count || ends_repeats(b, id)) continue;
    r->work[found++] = (int64_t)id << 32 | length;
  }
  sort(r->work, found);
  for (int64_t i = 0; i < found; i++) {
    const int64_t id = r->work[i] >> 32;
    if (i + 1 < found && r->work[i + 1] >> 32 == id) continue; /* the longest is last */
    const double penalty = dry_penalty(o, (r->work[i] & INT32_MAX) - allowed);
    r->copy[id] = (float)((double)r->copy[id] - penalty);
  }
  return RUNG_OK;
}
const rung_sample_step rung_step_dry = {
    .name = "dry",
    .option = {{"dry_multiplier", AT(dry_multiplier), false, 0, 1e30, false, "a finite number from 0 (off) is"},
               {"dry_base", AT(dry_base), false, 1, 1e30, false, "a finite number from 1 is"},
               {"dry_allowed_length", AT(dry_allowed_length), true, 0, 0x1p62, false, "0 or more is"},
               {"dry_last_n", AT(dry_last_n), true, -1, 0x1p62, false, "-1 (the whole text) or more is"}},
    .active = has_dry,
    .apply = forbid_repeats,
    .changes_row = true,
    .reads_text = true,
    .before_gathering = true};

/* ---- top-n-sigma */

static bool has_sigma(const rung_sample_options *o) { return o->top_n_sigma > 0; }
static rung_status set_floor(rung_race *r, rung_error *error) {
  (void)error;
  const float *row = r->row;
  const int64_t count = r->input->count;
  double sum = 0, squares = 0, largest = -(double)INFINITY;
  int64_t n = 0;
  for (int64_t i = 0; i < count; i++) {
    if (!(row[i] > -INFINITY)) continue;
    sum += (double)row[i];
    if ((double)row[i] > largest) largest = (double)row[i];
    n++;
  }
  if (!n || !(largest < (double)INFINITY)) return RUNG_OK; /* no deviation is known */
  const double mean = sum / (double)n;
  for (int64_t i = 0; i < count; i++)
    if (row[i] > -INFINITY) squares += ((double)row[i] - mean) * ((double)row[i] - mean);
  const double floor = largest - r->sampler->options.top_n_sigma * sqrt(squares / (double)n);
  if (floor > r->floor) r->floor = floor;
  return RUNG_OK;
}
const rung_sample_step rung_step_sigma = {
    .name = "top_n_sigma",
    .option = {{"top_n_sigma", AT(top_n_sigma), false, 0, 1e30, false, "a finite number from 0 (all) is"}},
    .active = has_sigma,
    .apply = set_floor,
    .keeps_best = true,
    .before_gathering = true};
