/* SPDX-License-Identifier: MIT
 * What the sampler chain leaves of rows of logits, and with which logits, against llama.cpp's own samplers
 * (scripts/oracle/record_samplers.py, which makes the same rows from the same seeds). */
#include <math.h>

#include "models/sample_steps.h"
#include "plain_sampler.h"

static const int32_t text[] = {7, 3, 4, 5, 9, 8, 3, 3, 4, 11, 5, 3, 4, 1, 2, 6, 1, 2, 6, 1, 2};

static void make_row(uint64_t state, float *row, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    row[i] = (float)((int64_t)((state >> 40) % 3072) - 1536) / 256.0f;
  }
}

static void set_option(rung_sample_options *o, const char *name, double value) {
  const struct {
    const char *name;
    double *number;
    int64_t *whole;
  } fields[] = {{"repeat_penalty", &o->repeat_penalty, NULL},
                {"presence_penalty", &o->presence_penalty, NULL},
                {"frequency_penalty", &o->frequency_penalty, NULL},
                {"repeat_last_n", NULL, &o->repeat_last_n},
                {"dry_multiplier", &o->dry_multiplier, NULL},
                {"dry_base", &o->dry_base, NULL},
                {"dry_allowed_length", NULL, &o->dry_allowed_length},
                {"dry_last_n", NULL, &o->dry_last_n},
                {"top_n_sigma", &o->top_n_sigma, NULL},
                {"top_k", NULL, &o->top_k},
                {"typical_p", &o->typical_p, NULL},
                {"top_p", &o->top_p, NULL},
                {"min_p", &o->min_p, NULL},
                {"xtc_threshold", &o->xtc_threshold, NULL}};
  for (size_t i = 0; i < RUNG_COUNT(fields); i++) {
    if (strcmp(fields[i].name, name) != 0) continue;
    if (fields[i].number)
      *fields[i].number = value;
    else
      *fields[i].whole = (int64_t)value;
    if (strcmp(name, "xtc_threshold") == 0) o->xtc_probability = 1;
    return;
  }
  TEST_FAIL_("no option %s", name);
}

static int by_id(const void *a, const void *b) {
  const rung_candidate *x = a, *y = b;
  return (x->id > y->id) - (x->id < y->id);
}

static void check_case(FILE *file, uint64_t seed, int64_t count, int64_t kept) {
  static float row[PLAIN_MOST];
  rung_sample_options o = rung_sample_options_default();
  o.top_k = 0;
  o.top_p = 1;
  o.min_p = 1e-300; /* leaves all, but gathers */
  o.temperature = 1;
  int options;
  CHECK(fscanf(file, " options %d", &options) == 1);
  for (int i = 0; i < options; i++) {
    char name[64];
    double value;
    CHECK(fscanf(file, "%63s %lf", name, &value) == 2);
    set_option(&o, name, value);
  }
  make_row(seed, row, count);
  world w;
  rung_race race;
  double uniform;
  rung_error error = {0};
  const rung_sample_input input = {row, count, text, RUNG_COUNT(text), 0};
  world_open(&w, &o, count, RUNG_COUNT(text));
  CHECK_OK(rung_sampler_race(&w.sampler, &input, w.scratch, &error, &race, &uniform));
  CHECK(race.gathered);
  CHECK_EQ_I64(race.count, kept);
  qsort(race.left, (size_t)race.count, sizeof *race.left, by_id);
  for (int64_t i = 0; i < kept; i++) {
    int id;
    double logit;
    CHECK(fscanf(file, "%d:%lf", &id, &logit) == 2);
    if (i >= race.count) continue;
    CHECK_EQ_I64(race.left[i].id, id);
    CHECK(fabs((double)race.left[i].logit - logit) <= 1e-6 * fabs(logit) + 1e-6);
  }
  world_close(&w);
}

static void test_llama_cpp(void) {
  FILE *file = fopen(RUNG_SOURCE_DIR "/tests/unit/expect/samplers.txt", "r");
  CHECK(file != NULL);
  if (!file) return;
  char line[512];
  int cases = 0;
  while (fgets(line, sizeof line, file)) {
    uint64_t seed;
    int64_t count, kept;
    if (sscanf(line, "case %" SCNu64 " %" SCNd64 " %" SCNd64, &seed, &count, &kept) != 3) continue;
    check_case(file, seed, count, kept);
    cases++;
  }
  fclose(file);
  CHECK_EQ_I64(cases, 22);
}

int main(void) {
  RUN(test_llama_cpp);
  return TEST_END();
}
