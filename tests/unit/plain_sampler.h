/* SPDX-License-Identifier: MIT
 * The sampler chain as its definitions say it: sorts everything, compares all pairs, uses the C library's functions. */
#ifndef RUNG_TESTS_PLAIN_SAMPLER_H
#define RUNG_TESTS_PLAIN_SAMPLER_H

#include <math.h>

#include "base/philox.h"
#include "models/sample.h"
#include "test.h"

enum { PLAIN_MOST = 4096 };

typedef struct entry {
  float logit;
  int32_t id;
  double p, key; /* key: what a step sorts by, smallest first */
} entry;
typedef struct plain {
  const rung_sample_options *o;
  const int32_t *text;
  int64_t text_count;
  double xtc; /* the random number */
  float row[PLAIN_MOST];
  entry set[PLAIN_MOST];
  int64_t n;
} plain;

static inline int plain_by_key(const void *a, const void *b) {
  const entry *x = (const entry *)a, *y = (const entry *)b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
  return (x->id > y->id) - (x->id < y->id);
}
static inline int plain_by_id(const void *a, const void *b) {
  const entry *x = (const entry *)a, *y = (const entry *)b;
  return (x->id > y->id) - (x->id < y->id);
}
static inline void plain_sort_best(plain *p) {
  for (int64_t i = 0; i < p->n; i++) p->set[i].key = 0;
  qsort(p->set, (size_t)p->n, sizeof *p->set, plain_by_key);
}
/* Probabilities of what is left; the set is best first. */
static inline void plain_softmax(plain *p, double temperature) {
  double total = 0;
  const double top = (double)p->set[0].logit;
  for (int64_t i = 0; i < p->n; i++) {
    p->set[i].p = (double)p->set[i].logit == top ? 1 : exp(((double)p->set[i].logit - top) / temperature);
    total += p->set[i].p;
  }
  for (int64_t i = 0; i < p->n; i++) p->set[i].p /= total;
}

static inline void plain_penalties(plain *p, int64_t count) {
  const rung_sample_options *o = p->o;
  const int64_t n = o->repeat_last_n < 0 || o->repeat_last_n > p->text_count ? p->text_count : o->repeat_last_n;
  for (int64_t id = 0; id < count; id++) {
    int64_t times = 0;
    for (int64_t i = p->text_count - n; i < p->text_count; i++) times += p->text[i] == id;
    if (!times) continue;
    double x = (double)p->row[id];
    x = x > 0 ? x / o->repeat_penalty : x * o->repeat_penalty;
    p->row[id] = (float)(x - (double)times * o->frequency_penalty - o->presence_penalty);
  }
}

/* For each token: the longest end of the text that stood somewhere in it followed by the token. */
static inline void plain_dry(plain *p, int64_t count) {
  const rung_sample_options *o = p->o;
  const int64_t n = o->dry_last_n < 0 || o->dry_last_n > p->text_count ? p->text_count : o->dry_last_n;
  const int32_t *text = p->text + p->text_count - n;
  for (int64_t id = 0; id < count; id++) {
    int64_t longest = -1;
    for (int64_t at = 1; at < n; at++) { /* text[at] follows text[at - length .. at) */
      int64_t length = 0;
      while (length < at && text[at - 1 - length] == text[n - 1 - length]) length++;
      if (text[at] == id && length > longest) longest = length;
    }
    if (longest < o->dry_allowed_length || o->dry_allowed_length >= n) continue;
    p->row[id] =
        (float)((double)p->row[id] - o->dry_multiplier * pow(o->dry_base, (double)(longest - o->dry_allowed_length)));
  }
}

static inline void plain_sigma(plain *p) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < p->n; i++) mean += (double)p->set[i].logit / (double)p->n;
  for (int64_t i = 0; i < p->n; i++) variance += pow((double)p->set[i].logit - mean, 2) / (double)p->n;
  while (p->n > 1 && (double)p->set[p->n - 1].logit < (double)p->set[0].logit - p->o->top_n_sigma * sqrt(variance))
    p->n--;
}

static inline void plain_typical(plain *p) {
  double entropy = 0, sum = 0;
  plain_softmax(p, 1);
  for (int64_t i = 0; i < p->n; i++) entropy -= p->set[i].p > 0 ? p->set[i].p * log(p->set[i].p) : 0;
  for (int64_t i = 0; i < p->n; i++) p->set[i].key = fabs(-log(p->set[i].p) - entropy);
  qsort(p->set, (size_t)p->n, sizeof *p->set, plain_by_key);
  for (int64_t i = 0; i < p->n; i++) {
    sum += p->set[i].p;
    if (sum > p->o->typical_p) p->n = i + 1;
  }
  plain_sort_best(p);
}

static inline void plain_top_p(plain *p) {
  double sum = 0;
  plain_softmax(p, 1);
  for (int64_t i = 0; i < p->n; i++) {
    sum += p->set[i].p;
    if (sum >= p->o->top_p) p->n = i + 1;
  }
}

static inline void plain_xtc(plain *p) {
  if (!(p->xtc < p->o->xtc_probability) || p->o->xtc_threshold > 0.5) return;
  plain_softmax(p, 1);
  int64_t above = 0;
  while (above < p->n && p->set[above].p >= p->o->xtc_threshold) above++;
  if (above < 2) return;
  p->n -= above - 1;
  memmove(p->set, p->set + above - 1, (size_t)p->n * sizeof *p->set);
}

/* What is left after the chain, in rising order of ids, with probabilities at the temperature. */
static inline void plain_run(plain *p, const float *logits, int64_t count) {
  const rung_sample_options *o = p->o;
  memcpy(p->row, logits, (size_t)count * sizeof *logits);
  for (size_t i = 0; i < o->biases; i++) p->row[o->bias[i].id] += o->bias[i].bias;
  plain_penalties(p, count);
  if (o->dry_multiplier > 0) plain_dry(p, count);
  p->n = 0;
  for (int64_t i = 0; i < count; i++)
    if (p->row[i] > -INFINITY) p->set[p->n++] = (entry){p->row[i], (int32_t)i, 0, 0};
  plain_sort_best(p);
  if (o->top_n_sigma > 0) plain_sigma(p);
  if (o->top_k > 0 && o->top_k < p->n) p->n = o->top_k;
  if (o->typical_p < 1) plain_typical(p);
  if (o->top_p < 1) plain_top_p(p);
  while (p->n > 1 && exp((double)p->set[p->n - 1].logit - (double)p->set[0].logit) < o->min_p) p->n--;
  if (o->xtc_probability > 0) plain_xtc(p);
  if (o->temperature == 0)
    p->n = 1;
  else
    plain_softmax(p, o->temperature);
  qsort(p->set, (size_t)p->n, sizeof *p->set, plain_by_id);
}

/* The upper 53 bits of words 2 and 3 of a block. */
static inline double plain_second(uint64_t seed, uint64_t block) {
  uint32_t words[4];
  rung_philox(seed, block, words);
  return (double)((((uint64_t)words[3] << 32) | words[2]) >> 11) * 0x1p-53;
}

static inline int32_t plain_pick(plain *p, uint64_t drawn, const float *logits, int64_t count) {
  p->xtc = plain_second(p->o->seed, drawn);
  plain_run(p, logits, count);
  const double u = rung_philox_double(p->o->seed, drawn);
  double sum = 0;
  for (int64_t i = 0; i < p->n; i++) {
    sum += p->set[i].p;
    if (sum > u) return p->set[i].id;
  }
  return p->set[p->n - 1].id;
}

/* A sampler of the library with its scratch. */
typedef struct world {
  rung_host *host;
  rung_sampler sampler;
  void *scratch;
  size_t bytes;
  uint64_t before; /* held by the host itself */
} world;
static inline void world_open(world *w, const rung_sample_options *o, int64_t count, int64_t history) {
  enum { GUARD = 64 };
  rung_error error = {0};
  *w = (world){0};
  CHECK_OK(rung_host_create(NULL, &error, &w->host));
  w->before = rung_host_memory(w->host).host;
  CHECK_OK(rung_sampler_init(&w->sampler, w->host, o, &error));
  w->bytes = rung_sampler_scratch(&w->sampler, count, history);
  w->scratch = malloc(w->bytes + GUARD);
  memset((char *)w->scratch + w->bytes, 0x5A, GUARD);
}
static inline void world_close(world *w) {
  for (int i = 0; i < 64; i++) CHECK(((char *)w->scratch)[w->bytes + (size_t)i] == 0x5A);
  free(w->scratch);
  rung_sampler_finish(&w->sampler);
  CHECK_EQ_I64(rung_host_memory(w->host).host, w->before);
  rung_host_release(w->host);
}
static inline rung_status world_pick(world *w, const float *logits, int64_t count, const int32_t *text,
                                     int64_t text_count, rung_error *error, int32_t *out_id) {
  const rung_sample_input input = {logits, count, text, text_count, 0};
  return rung_sampler_pick(&w->sampler, &input, w->scratch, error, out_id);
}

#endif
