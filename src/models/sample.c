/* SPDX-License-Identifier: MIT
 * The sampler chain. No step sorts a vocabulary: top-k keeps a heap, top-p narrows like quickselect but by probability
 * mass, min-p is a threshold. Ids are put in order again at the end, so that the draw does not depend on how the tokens
 * left were found. */
#include "models/sample.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"

/* A token that is still in the race. `weight` is its unscaled probability, exp(logit - largest), where a step needs it.
 */
typedef struct candidate {
  float logit;
  int32_t id;
  double weight;
} candidate;

typedef struct candidates {
  candidate *data;
  int64_t count;
  float largest;
} candidates;

rung_sampler_options rung_sampler_options_default(void) {
  return (rung_sampler_options){
      .size = sizeof(rung_sampler_options), .temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05};
}

rung_status rung_sampler_init(rung_sampler *sampler, const rung_sampler_options *options, rung_error *error) {
  const rung_sampler_options o = options ? *options : rung_sampler_options_default();
  if (o.size != sizeof o) return rung_fail(error, RUNG_INVALID_ARGUMENT, "sampler options: size is not set");
  if (!(o.temperature >= 0) || isinf(o.temperature))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "temperature %g: a finite number from 0 is expected", o.temperature);
  if (o.top_k < 0)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "top_k %lld: at least 1, or 0 for all", (long long)o.top_k);
  if (!(o.top_p > 0 && o.top_p <= 1))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "top_p %g: above 0 and at most 1 (all) is expected", o.top_p);
  if (!(o.min_p >= 0 && o.min_p <= 1))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "min_p %g: between 0 (all) and 1 is expected", o.min_p);
  *sampler = (rung_sampler){.options = o};
  return RUNG_OK;
}

/* 2^k with k from rounding x / ln 2, times a Taylor polynomial of the rest, |r| <= ln 2 / 2: the first term left out is
 * below 2^-58. ln 2 is split so that k * LN2_HIGH is exact. Results that would be denormal are 0, so that it does not
 * matter whether the calling thread flushes them. */
double rung_sample_exp(double x) {
  static const double INVERSE_LN2 = 0x1.71547652b82fep+0, LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;
  static const double coefficient[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                       1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                                       1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        1.0 / 2.0};
  if (!(x > -708.0)) return 0.0;                      /* NaN too */
  const int64_t k = (int64_t)(x * INVERSE_LN2 - 0.5); /* towards zero, which is up for x <= 0: rounds to nearest */
  const double r = (x - (double)k * LN2_HIGH) - (double)k * LN2_LOW;
  double p = coefficient[0];
  for (size_t i = 1; i < RUNG_COUNT(coefficient); i++) p = p * r + coefficient[i];
  p = (p * r + 1.0) * r + 1.0;
  const uint64_t bits = (uint64_t)(1023 + k) << 52;
  double scale;
  memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

/* exp(logit - largest), 1 for the largest even if it is infinite. */
static double weigh(float logit, float largest) {
  return logit == largest ? 1.0 : rung_sample_exp((double)logit - (double)largest);
}
static double weigh_at(float logit, float largest, double temperature) {
  return logit == largest ? 1.0 : rung_sample_exp(((double)logit - (double)largest) / temperature);
}

enum { BLOCK = 256, LANES = 16 };

/* The largest of a few logits. Independent lanes become vector instructions; NaN never wins a comparison. */
static float largest_of(const float *logits, int64_t count) {
  float lane[LANES];
  for (int j = 0; j < LANES; j++) lane[j] = -INFINITY;
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int j = 0; j < LANES; j++) lane[j] = logits[i + j] > lane[j] ? logits[i + j] : lane[j];
  for (; i < count; i++) lane[0] = logits[i] > lane[0] ? logits[i] : lane[0];
  for (int j = 1; j < LANES; j++) lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
  return lane[0];
}

int32_t rung_sample_greedy(const float *logits, int64_t count) {
  float largest = -INFINITY;
  int64_t block = 0;
  for (int64_t i = 0; i < count; i += BLOCK) {
    const float here = largest_of(logits + i, count - i < BLOCK ? count - i : BLOCK);
    if (!(here > largest)) continue;
    largest = here;
    block = i;
  }
  if (!(largest > -INFINITY)) return -1;
  while (logits[block] != largest) block++;
  return (int32_t)block;
}

/* The order of preference: larger logit, then lower id. Total, so every step has one answer. */
static bool better(const candidate *a, const candidate *b) {
  return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

/* ---- top-k: a heap of the best k so far, the worst of them on top ---- */

static void sift_worst(candidate *heap, int64_t at, int64_t count) {
  const candidate c = heap[at];
  for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && better(&heap[child], &heap[child + 1])) child++;
    if (!better(&c, &heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = c;
}

static void gather_best(candidates *set, const float *logits, int64_t count, int64_t k) {
  candidate *heap = set->data;
  int64_t filled = 0, i = 0;
  for (; i < count && filled < k; i++)
    if (logits[i] > -INFINITY) heap[filled++] = (candidate){logits[i], (int32_t)i, 0};
  if (filled == k && i < count) {
    for (int64_t at = k / 2; at-- > 0;) sift_worst(heap, at, k);
    while (i < count) {
      const int64_t end = count - i < BLOCK ? count : i + BLOCK;
      if (!(largest_of(logits + i, end - i) > heap[0].logit)) i = end; /* most blocks hold none of the best */
      for (; i < end; i++) {
        if (!(logits[i] > heap[0].logit)) continue; /* equal ones have a higher id and lose */
        heap[0] = (candidate){logits[i], (int32_t)i, 0};
        sift_worst(heap, 0, k);
      }
    }
  }
  set->count = filled;
}

static void gather_all(candidates *set, const float *logits, int64_t count) {
  int64_t filled = 0;
  for (int64_t i = 0; i < count; i++)
    if (logits[i] > -INFINITY) set->data[filled++] = (candidate){logits[i], (int32_t)i, 0};
  set->count = filled;
}

/* ---- top-p ---- */

static void swap(candidate *a, candidate *b) {
  const candidate c = *a;
  *a = *b;
  *b = c;
}

/* Brings what is better than the pivot to the front of [low, high) and the pivot behind it; returns the pivot's place.
 * The pivot is the middle one of three, so that rows already in order are no bad case. */
static int64_t partition(candidate *data, int64_t low, int64_t high) {
  const int64_t middle = low + (high - low) / 2, last = high - 1;
  if (better(&data[middle], &data[low])) swap(&data[middle], &data[low]);
  if (better(&data[last], &data[low])) swap(&data[last], &data[low]);
  if (better(&data[middle], &data[last])) swap(&data[middle], &data[last]);
  int64_t to = low; /* now the pivot is last */
  for (int64_t i = low; i < last; i++)
    if (better(&data[i], &data[last])) swap(&data[i], &data[to++]);
  swap(&data[to], &data[last]);
  return to;
}

/* Keeps the fewest best candidates whose weights reach `p` of the total: the side on which the sum crosses is searched
 * further, the other one is counted whole. */
static void keep_mass(candidates *set, double p) {
  candidate *data = set->data;
  double total = 0;
  for (int64_t i = 0; i < set->count; i++) {
    data[i].weight = weigh(data[i].logit, set->largest);
    total += data[i].weight;
  }
  const double goal = p * total;
  double kept = 0; /* of data[0 .. low) */
  int64_t low = 0, high = set->count;
  while (high - low > 1) {
    const int64_t pivot = partition(data, low, high);
    double upper = 0;
    for (int64_t i = low; i < pivot; i++) upper += data[i].weight;
    if (pivot > low && kept + upper >= goal) {
      high = pivot;
    } else if (kept + upper + data[pivot].weight >= goal) {
      low = pivot;
      break;
    } else {
      kept += upper + data[pivot].weight;
      low = pivot + 1;
    }
  }
  set->count = low < set->count ? low + 1 : set->count;
}

/* ---- min-p ---- */

static void keep_probable(candidates *set, double p) {
  int64_t filled = 0;
  for (int64_t i = 0; i < set->count; i++) {
    /* exp(x) is less than the inverse of any beginning of the series of exp(-x): most tokens are far below and need no
     * exponential. */
    const double x = (double)set->data[i].logit - (double)set->largest;
    if (p * (1 - x * (1 - x * (0.5 - x * (1.0 / 6 - x * (1.0 / 24))))) > 1.001) continue;
    if (weigh(set->data[i].logit, set->largest) >= p) set->data[filled++] = set->data[i];
  }
  set->count = filled; /* the largest one's weight is 1, so one is left */
}

/* ---- the draw ---- */

static void sift_id(candidate *heap, int64_t at, int64_t count) {
  const candidate c = heap[at];
  for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && heap[child + 1].id > heap[child].id) child++;
    if (heap[child].id <= c.id) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = c;
}

/* Rising ids. What came from a filter alone is in order already; what is left of top-k or top-p is small as a rule. */
static void order_by_id(candidates *set) {
  candidate *data = set->data;
  bool ordered = true;
  for (int64_t i = 1; i < set->count && ordered; i++) ordered = data[i - 1].id < data[i].id;
  if (ordered) return;
  for (int64_t at = set->count / 2; at-- > 0;) sift_id(data, at, set->count);
  for (int64_t n = set->count; n-- > 1;) {
    swap(&data[0], &data[n]);
    sift_id(data, 0, n);
  }
}

static int32_t draw(candidates *set, double temperature, double uniform) {
  candidate *data = set->data;
  double total = 0;
  for (int64_t i = 0; i < set->count; i++) {
    data[i].weight = weigh_at(data[i].logit, set->largest, temperature);
    total += data[i].weight;
  }
  const double goal = uniform * total;
  double sum = 0;
  int32_t last = data[0].id;
  for (int64_t i = 0; i < set->count; i++) {
    sum += data[i].weight;
    if (data[i].weight > 0) last = data[i].id;
    if (sum > goal) return data[i].id;
  }
  return last; /* only if uniform * total rounds up to total */
}

/* Temperature alone: nothing is left out, so the row itself is walked and no scratch is needed. */
static int32_t draw_row(const float *logits, int64_t count, float largest, double temperature, double uniform) {
  double total = 0, sum = 0;
  for (int64_t i = 0; i < count; i++)
    if (logits[i] > -INFINITY) total += weigh_at(logits[i], largest, temperature);
  const double goal = uniform * total;
  int32_t last = -1;
  for (int64_t i = 0; i < count; i++) {
    if (!(logits[i] > -INFINITY)) continue;
    const double weight = weigh_at(logits[i], largest, temperature);
    sum += weight;
    if (weight > 0) last = (int32_t)i;
    if (sum > goal) break;
  }
  return last;
}

static bool limits_count(const rung_sampler_options *o, int64_t count) { return o->top_k > 0 && o->top_k < count; }

size_t rung_sampler_scratch(const rung_sampler *sampler, int64_t count) {
  const rung_sampler_options *o = &sampler->options;
  if (count <= 0 || o->temperature == 0) return 0;
  if (limits_count(o, count)) return (size_t)o->top_k * sizeof(candidate);
  if (o->top_k == 0 && o->top_p >= 1 && o->min_p <= 0) return 0;
  return (size_t)count * sizeof(candidate);
}

rung_status rung_sampler_pick(rung_sampler *sampler, const float *logits, int64_t count, void *scratch,
                              rung_error *error, int32_t *out_id) {
  const rung_sampler_options *o = &sampler->options;
  if (count > INT32_MAX) return rung_fail(error, RUNG_OUT_OF_RANGE, "logits: %lld in a row", (long long)count);
  const int32_t best = rung_sample_greedy(logits, count);
  if (best < 0)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "logits: none of %lld is above minus infinity", (long long)count);
  if (o->temperature == 0) {
    *out_id = best;
    return RUNG_OK;
  }
  const double uniform = rung_philox_double(o->seed, sampler->drawn++);
  const float largest = logits[best];
  if (rung_sampler_scratch(sampler, count) == 0) {
    *out_id = draw_row(logits, count, largest, o->temperature, uniform);
    return RUNG_OK;
  }
  candidates set = {.data = scratch, .largest = largest};
  if (limits_count(o, count))
    gather_best(&set, logits, count, o->top_k);
  else
    gather_all(&set, logits, count);
  if (o->top_p < 1) keep_mass(&set, o->top_p);
  if (o->min_p > 0) keep_probable(&set, o->min_p);
  order_by_id(&set);
  *out_id = draw(&set, o->temperature, uniform);
  return RUNG_OK;
}
