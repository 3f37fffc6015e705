/* SPDX-License-Identifier: MIT
 * A cut of SmolLM2 (real weights: four layers, 4096 rows of the vocabulary) on the CUDA device against what the float64
 * oracle said of it: `exact` within the cpu device's bound, `fast` within its divergence. The cpu device is held to the
 * same. The file is made by
 *
 *   scripts/cut_model.py SmolLM2-135M-Instruct.Q4_1.gguf build/cuts/smollm2.gguf
 *
 * and travels to where the GPU is; RUNG_CUTS names another folder. Skipped where it is not there. */
#include <unistd.h>

#include "cuda_device.h"
#include "recorded.h"

enum { TOP = 32, COLUMNS = 64, EVERY = 5, MOST_VOCABULARY = 4096 };

/* The bound of test_logits.c for real models. */
static const double REAL_EXACT = 1e-4;

static const recorded_way ways[] = {{256, 256, 1}, {33, 33, 1}, {100, 1, 1}, {60, 1, 3}};

static const char *cut_path(void) {
  static char path[600];
  const char *folder = getenv("RUNG_CUTS");
  if (folder && *folder)
    snprintf(path, sizeof path, "%s/smollm2.gguf", folder);
  else
    snprintf(path, sizeof path, RUNG_SOURCE_DIR "/build/cuts/smollm2.gguf");
  return path;
}

/* What record_device.py keeps of each position: the best 32, 64 fixed columns, the log-sum-exp. */
typedef struct cut {
  recorded r; /* its `logits` are those of the best */
  rung_npy ids, columns, at, lse, most;
  int parts; /* that are open */
  double largest;
} cut;

static bool open_cut(cut *c, rung_host *host) {
  static const char *const name[] = {"top_ids", "columns", "column_logits", "lse", "max_abs"};
  rung_npy *part[] = {&c->ids, &c->columns, &c->at, &c->lse, &c->most};
  int32_t position[RECORDED_IDS];
  char path[600];
  *c = (cut){.parts = 0};
  for (int32_t i = 0; i < RECORDED_IDS / EVERY; i++) position[i] = EVERY * (i + 1) - 1;
  if (!recorded_open(&c->r, host, "expect/device/smollm2-cut.ids", "expect/device/smollm2-cut.top_logits.npy", position,
                     RECORDED_IDS / EVERY))
    return false;
  c->r.positions = (int32_t)c->r.logits.extent[0];
  CHECK_EQ_I64(c->r.positions, c->r.ids / EVERY);
  for (; c->parts < (int)RUNG_COUNT(part); c->parts++) {
    snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/expect/device/smollm2-cut.%s.npy", name[c->parts]);
    if (!recorded_npy(host, path, part[c->parts])) return false;
  }
  for (int32_t i = 0; i < c->r.positions; i++) c->largest = fmax(c->largest, ((const double *)c->most.data)[i]);
  return true;
}
static void close_cut(cut *c) {
  rung_npy *part[] = {&c->ids, &c->columns, &c->at, &c->lse, &c->most};
  for (int i = 0; i < c->parts; i++) rung_npy_close(part[i]);
  recorded_close(&c->r);
}

typedef struct looking {
  const cut *c;
  int64_t vocabulary;
  double worst;
  recorded_kl kl; /* of the best 32 and all others as one: no more than the whole divergence */
} looking;

static void look(void *self, int32_t slot, int32_t index, const float *row) {
  looking *l = self;
  const int32_t *best = (const int32_t *)l->c->ids.data + index * TOP, *column = l->c->columns.data;
  const double *top = (const double *)l->c->r.logits.data + index * TOP,
               *at = (const double *)l->c->at.data + index * COLUMNS;
  const double a = ((const double *)l->c->lse.data)[index], b = recorded_lse(NULL, row, l->vocabulary);
  double kl = 0, rest_a = 1, rest_b = 1;
  (void)slot;
  l->worst = fmax(l->worst, isnan(b) ? (double)INFINITY : fabs(a - b));
  for (int i = 0; i < TOP; i++) {
    const double p = exp(top[i] - a), q = exp((double)row[best[i]] - b);
    l->worst = fmax(l->worst, fabs(top[i] - (double)row[best[i]]));
    kl += p * log(p / q);
    rest_a -= p;
    rest_b -= q;
  }
  for (int i = 0; i < COLUMNS; i++) l->worst = fmax(l->worst, fabs(at[i] - (double)row[column[i]]));
  if (rest_a > 0 && rest_b > 0) kl += rest_a * log(rest_a / rest_b);
  l->kl.sum += isnan(kl) ? (double)INFINITY : kl;
  l->kl.squares += kl * kl;
  l->kl.count++;
}

static bool run(const char *device, rung_quant quant, const recorded_way *way, looking *out, double *largest) {
  recorded_side s;
  cut c = {.parts = 0};
  bool done = false;
  *out = (looking){0};
  if (recorded_side_open(&s, device, cut_path(), quant, false, quant == RUNG_QUANT_FAST ? RUNG_TYPE_F16 : RUNG_TYPE_F32,
                         0) &&
      open_cut(&c, s.host)) {
    CHECK_EQ_I64(s.info.vocabulary, MOST_VOCABULARY);
    out->c = &c;
    out->vocabulary = s.info.vocabulary;
    *largest = c.largest;
    done = recorded_feed(&s, &c.r, way, look, out);
  }
  close_cut(&c);
  recorded_side_close(&s);
  return done;
}

static void check_exact(const char *device) {
  for (size_t w = 0; w < RUNG_COUNT(ways); w++) {
    looking l;
    double largest;
    if (!run(device, RUNG_QUANT_EXACT, &ways[w], &l, &largest)) return;
    test_state.checks++;
    if (!(l.worst <= REAL_EXACT * largest))
      TEST_FAIL_("exact on %s: %g of the largest logit", device, l.worst / largest);
    printf("exact on %s, %d rows and then %d, %d sequences: %.2g of the largest logit\n", device, ways[w].first,
           ways[w].piece, ways[w].slots, l.worst / largest);
  }
}

static bool is_there(void) {
  if (access(cut_path(), R_OK) == 0) return true;
  printf("skipped: %s is not there\n", cut_path());
  return false;
}

static void test_cpu(void) {
  if (!is_there()) SKIP("no cut");
  check_exact("cpu");
}
static void test_exact(void) {
  if (!is_there() || !cuda_is_here()) SKIP("no cut, or no GPU");
  check_exact("cuda");
}
static void test_fast(void) {
  looking cpu, gpu;
  double largest;
  if (!is_there() || !cuda_is_here()) SKIP("no cut, or no GPU");
  if (!run("cpu", RUNG_QUANT_FAST, &ways[0], &cpu, &largest)) return;
  for (size_t w = 0; w < RUNG_COUNT(ways); w++) {
    if (!run("cuda", RUNG_QUANT_FAST, &ways[w], &gpu, &largest)) return;
    test_state.checks++;
    if (!recorded_kl_holds(&gpu.kl, &cpu.kl))
      TEST_FAIL_("fast: mean KL %.3g, on the cpu device %.3g", recorded_kl_mean(&gpu.kl), recorded_kl_mean(&cpu.kl));
    printf("fast, %d rows and then %d, %d sequences: mean KL %.3g, on the cpu device %.3g (+- %.1g)\n", ways[w].first,
           ways[w].piece, ways[w].slots, recorded_kl_mean(&gpu.kl), recorded_kl_mean(&cpu.kl),
           sqrt(recorded_kl_error(&cpu.kl)));
  }
}

int main(void) {
  RUN(test_cpu);
  RUN(test_exact);
  RUN(test_fast);
  return TEST_END();
}
