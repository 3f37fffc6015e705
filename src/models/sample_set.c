/* SPDX-License-Identifier: MIT
 * Steps of the sampler chain that narrow a set of tokens, and the draw. No step sorts a vocabulary: top-k keeps a heap,
 * top-p and typical narrow like quickselect but by probability mass, min-p is a threshold. Ids are put in order again at
 * the end, so that the draw does not depend on how the tokens left were found. */
#include <math.h>

#include "base/sort.h"
#include "models/sample_steps.h"

#define AT(field) offsetof(rung_sample_options, field)

/* The order of preference: larger logit, then lower id. Total, so every step has one answer. */
static bool better(const rung_candidate *a, const rung_candidate *b) {
  return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

static void find_largest(rung_race *r) {
  float largest = -INFINITY;
  for (int64_t i = 0; i < r->count; i++)
    if (r->left[i].logit > largest) largest = r->left[i].logit;
  r->largest = largest;
}

void rung_race_gather(rung_race *r) {
  if (r->gathered) return;
  int64_t filled = 0;
  for (int64_t i = 0; i < r->input->count; i++)
    if ((double)r->row[i] >= r->floor) r->left[filled++] = (rung_candidate){r->row[i], (int32_t)i, 0};
  r->count = filled;
  r->gathered = true;
  find_largest(r);
}

/* ---- top-k: a heap of the best k so far, the worst of them on top */

static void sift_worst(rung_candidate *heap, int64_t at, int64_t count) {
  const rung_candidate c = heap[at];
  for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && better(&heap[child], &heap[child + 1])) child++;
    if (!better(&c, &heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = c;
}

enum { BLOCK = 256, LANES = 16 };

/* Is one of a block above a logit? Independent lanes become vector instructions; NaN never is. */
static bool any_above(const float *logits, int64_t count, float bound) {
  int above[LANES] = {0}, any = 0;
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int j = 0; j < LANES; j++) above[j] |= logits[i + j] > bound;
  for (; i < count; i++) any |= logits[i] > bound;
  for (int j = 0; j < LANES; j++) any |= above[j];
  return any != 0;
}

static bool has_top_k(const rung_sample_options *o) { return o->top_k > 0; }
static rung_status keep_top_k(rung_race *r, rung_error *error) {
  (void)error;
  const int64_t count = r->input->count, k = r->sampler->options.top_k;
  const float *row = r->row;
  rung_candidate *heap = r->left;
  if (k >= count) return RUNG_OK;
  int64_t filled = 0, i = 0;
  for (; i < count && filled < k; i++)
    if ((double)row[i] >= r->floor) heap[filled++] = (rung_candidate){row[i], (int32_t)i, 0};
  if (filled == k && i < count) {
    for (int64_t at = k / 2; at-- > 0;) sift_worst(heap, at, k);
    while (i < count) {
      const int64_t end = count - i < BLOCK ? count : i + BLOCK;
      if (!any_above(row + i, end - i, heap[0].logit)) i = end; /* most blocks hold none of the best */
      for (; i < end; i++) {
        if (!(row[i] > heap[0].logit)) continue; /* equal ones have a higher id and lose */
        heap[0] = (rung_candidate){row[i], (int32_t)i, 0};
        sift_worst(heap, 0, k);
      }
    }
  }
  r->count = filled;
  r->gathered = true;
  find_largest(r);
  return RUNG_OK;
}
const rung_sample_step rung_step_top_k = {
    .name = "top_k",
    .option = {{"top_k", AT(top_k), true, 0, 0x1p62, false, "at least 1, or 0 for all, is"}},
    .active = has_top_k,
    .apply = keep_top_k,
    .keeps_best = true,
    .before_gathering = true};

/* ---- the fewest tokens of an order whose weights reach a sum: top-p and typical */

/* By distance from a logit if `typical`, else best first; total orders both. */
typedef struct order {
  bool typical;
  double centre;
} order;

static double distance(const order *o, float logit) {
  return (double)logit == o->centre ? 0 : fabs((double)logit - o->centre);
}
static bool before(const order *o, const rung_candidate *a, const rung_candidate *b) {
  if (o->typical) {
    const double x = distance(o, a->logit), y = distance(o, b->logit);
    if (x != y) return x < y;
  }
  return better(a, b);
}

static void swap(rung_candidate *a, rung_candidate *b) {
  const rung_candidate c = *a;
  *a = *b;
  *b = c;
}

/* Brings what comes before the pivot to the front of [low, high) and the pivot behind it; returns the pivot's place.
 * The pivot is the middle one of three, so that rows already in order are no bad case. */
static int64_t partition(const order *o, rung_candidate *data, int64_t low, int64_t high) {
  const int64_t middle = low + (high - low) / 2, last = high - 1;
  if (before(o, &data[middle], &data[low])) swap(&data[middle], &data[low]);
  if (before(o, &data[last], &data[low])) swap(&data[last], &data[low]);
  if (before(o, &data[middle], &data[last])) swap(&data[middle], &data[last]);
  int64_t to = low; /* now the pivot is last */
  for (int64_t i = low; i < last; i++)
    if (before(o, &data[i], &data[last])) swap(&data[i], &data[to++]);
  swap(&data[to], &data[last]);
  return to;
}

static double weigh_all(rung_race *r) {
  double total = 0;
  for (int64_t i = 0; i < r->count; i++) {
    r->left[i].weight = rung_sample_weight(r->left[i].logit, r->largest);
    total += r->left[i].weight;
  }
  return total;
}

/* Keeps the first of an order until their weights reach the goal (or exceed it, if `beyond`): the side on which the sum
 * crosses is searched further, the other one is counted whole. */
static void keep_mass(rung_race *r, const order *o, double goal, bool beyond) {
  rung_candidate *data = r->left;
  double kept = 0; /* of data[0 .. low) */
  int64_t low = 0, high = r->count;
  while (high - low > 1) {
    const int64_t pivot = partition(o, data, low, high);
    double upper = 0;
    for (int64_t i = low; i < pivot; i++) upper += data[i].weight;
    const double with = kept + upper, all = with + data[pivot].weight;
    if (pivot > low && (beyond ? with > goal : with >= goal)) {
      high = pivot;
    } else if (beyond ? all > goal : all >= goal) {
      low = pivot;
      break;
    } else {
      kept = all;
      low = pivot + 1;
    }
  }
  if (low < r->count) r->count = low + 1;
}

static bool has_top_p(const rung_sample_options *o) { return o->top_p < 1; }
static rung_status keep_top_p(rung_race *r, rung_error *error) {
  (void)error;
  const double total = weigh_all(r);
  keep_mass(r, &(order){.typical = false}, r->sampler->options.top_p * total, false);
  return RUNG_OK;
}
const rung_sample_step rung_step_top_p = {
    .name = "top_p",
    .option = {{"top_p", AT(top_p), false, 0, 1, true, "above 0 and at most 1 (all) is"}},
    .active = has_top_p,
    .apply = keep_top_p,
    .keeps_best = true};

/* |-ln p - entropy| needs no logarithm: with p = exp(logit) / Z it is the distance of the logit from the mean logit. */
static bool has_typical(const rung_sample_options *o) { return o->typical_p < 1; }
static rung_status keep_typical(rung_race *r, rung_error *error) {
  (void)error;
  const double total = weigh_all(r);
  double below = 0; /* how far the mean is below the largest, times total */
  for (int64_t i = 0; i < r->count; i++)
    if (r->left[i].logit != r->largest && r->left[i].weight > 0)
      below += r->left[i].weight * ((double)r->largest - (double)r->left[i].logit);
  const order nearest = {.typical = true, .centre = (double)r->largest - below / total};
  keep_mass(r, &nearest, r->sampler->options.typical_p * total, true);
  find_largest(r);
  return RUNG_OK;
}
const rung_sample_step rung_step_typical = {
    .name = "typical",
    .option = {{"typical_p", AT(typical_p), false, 0, 1, true, "above 0 and at most 1 (all) is"}},
    .active = has_typical,
    .apply = keep_typical};

/* ---- min-p */

static bool has_min_p(const rung_sample_options *o) { return o->min_p > 0; }
static rung_status keep_min_p(rung_race *r, rung_error *error) {
  (void)error;
  const double p = r->sampler->options.min_p;
  int64_t filled = 0;
  for (int64_t i = 0; i < r->count; i++) {
    /* exp(x) is less than the inverse of any beginning of the series of exp(-x): most tokens are far below and need no
     * exponential. */
    const double x = (double)r->left[i].logit - (double)r->largest;
    if (p * (1 - x * (1 - x * (0.5 - x * (1.0 / 6 - x * (1.0 / 24))))) > 1.001) continue;
    if (rung_sample_weight(r->left[i].logit, r->largest) >= p) r->left[filled++] = r->left[i];
  }
  r->count = filled; /* the largest one's weight is 1, so one is left */
  return RUNG_OK;
}
const rung_sample_step rung_step_min_p = {
    .name = "min_p",
    .option = {{"min_p", AT(min_p), false, 0, 1, false, "between 0 (all) and 1 is"}},
    .active = has_min_p,
    .apply = keep_min_p,
    .keeps_best = true};

/* ---- XTC ("exclude top choices", p-e-w) */

static bool has_xtc(const rung_sample_options *o) { return o->xtc_probability > 0 && o->xtc_threshold <= 0.5; }
static rung_status drop_top(rung_race *r, rung_error *error) {
  (void)error;
  const rung_sample_options *o = &r->sampler->options;
  if (!(r->xtc_uniform < o->xtc_probability)) return RUNG_OK;
  const double bound = o->xtc_threshold * weigh_all(r);
  const rung_candidate *keep = NULL; /* the worst of those above */
  for (int64_t i = 0; i < r->count; i++)
    if (r->left[i].weight >= bound && (!keep || better(keep, &r->left[i]))) keep = &r->left[i];
  if (!keep) return RUNG_OK;
  const rung_candidate least = *keep;
  int64_t filled = 0;
  for (int64_t i = 0; i < r->count; i++)
    if (!better(&r->left[i], &least)) r->left[filled++] = r->left[i];
  r->count = filled;
  find_largest(r);
  return RUNG_OK;
}
const rung_sample_step rung_step_xtc = {
    .name = "xtc",
    .option = {{"xtc_probability", AT(xtc_probability), false, 0, 1, false, "between 0 (off) and 1 is"},
               {"xtc_threshold", AT(xtc_threshold), false, 0, 1, false, "between 0 and 1 (above 0.5: off) is"}},
    .active = has_xtc,
    .apply = drop_top};

/* ---- the draw */

int32_t rung_race_best(rung_race *r) {
  if (!r->gathered) return rung_sample_greedy(r->row, r->input->count);
  const rung_candidate *best = &r->left[0];
  for (int64_t i = 1; i < r->count; i++)
    if (better(&r->left[i], best)) best = &r->left[i];
  return best->id;
}

static bool has_lower_id(const void *self, const void *a, const void *b) {
  (void)self;
  return ((const rung_candidate *)a)->id < ((const rung_candidate *)b)->id;
}

/* Rising ids. What came from a filter alone is in order already; what is left of top-k or top-p is small as a rule. */
static void order_by_id(rung_race *r) {
  rung_candidate *data = r->left;
  bool ordered = true;
  for (int64_t i = 1; i < r->count && ordered; i++) ordered = data[i - 1].id < data[i].id;
  if (ordered) return;
  rung_sort(data, (size_t)r->count, sizeof *data, has_lower_id, NULL);
}

/* Nothing is left out but what is below the floor, so the row itself is walked and no set is needed. */
static int32_t draw_row(const rung_race *r, double temperature, double uniform) {
  const float *row = r->row;
  const int64_t count = r->input->count;
  const float largest = row[rung_sample_greedy(row, count)];
  double total = 0, sum = 0;
  for (int64_t i = 0; i < count; i++)
    if ((double)row[i] >= r->floor) total += rung_sample_weight_at(row[i], largest, temperature);
  const double goal = uniform * total;
  int32_t last = -1;
  for (int64_t i = 0; i < count; i++) {
    if (!((double)row[i] >= r->floor)) continue;
    const double weight = rung_sample_weight_at(row[i], largest, temperature);
    sum += weight;
    if (weight > 0) last = (int32_t)i; /* only if uniform * total rounds up to total is it not the next line's */
    if (sum > goal) break;
  }
  return last;
}

int32_t rung_race_draw(rung_race *r, double temperature, double uniform) {
  if (!r->gathered) return draw_row(r, temperature, uniform);
  order_by_id(r);
  rung_candidate *data = r->left;
  double total = 0;
  for (int64_t i = 0; i < r->count; i++) {
    data[i].weight = rung_sample_weight_at(data[i].logit, r->largest, temperature);
    total += data[i].weight;
  }
  const double goal = uniform * total;
  double sum = 0;
  int32_t last = data[0].id;
  for (int64_t i = 0; i < r->count; i++) {
    sum += data[i].weight;
    if (data[i].weight > 0) last = data[i].id;
    if (sum > goal) return data[i].id;
  }
  return last; /* only if uniform * total rounds up to total */
}
