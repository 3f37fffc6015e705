/* SPDX-License-Identifier: MIT
 * Whole models on the CUDA device against recorded float64 logits: prompts, decoding, ragged and paged, past a block of
 * keys and often enough to be captured. `exact` within the cpu device's bound, `fast` within its divergence. The cpu
 * device is held to the same; the CUDA part is left out where there is no GPU. */
#include "cuda_device.h"
#include "recorded.h"

/* The bound of test_logits.c: f32 arithmetic over three layers of width 64, in whatever order. */
static const double TINY_EXACT = 2e-6;

/* Where record_device.py recorded. */
static const int32_t positions[] = {0, 1, 7, 62, 63, 64, 65, 99, 126, 127, 128, 129, 146, 147, 148, 149};

/* In one run, in pieces below and above what the kernels of few rows take, row by row, and several sequences at once. */
static const recorded_way ways[] = {{256, 256, 1}, {7, 7, 1},  {40, 33, 1}, {3, 1, 1},
                                    {100, 1, 1},   {70, 2, 3}, {5, 1, 3}};

static const char *const families[] = {"llama", "gemma3"};

typedef struct texts {
  recorded text[3], kv16; /* the recorded texts a and b, the long one; that with keys and values in f16 */
} texts;

static bool open_texts(texts *t, rung_host *host, const char *family) {
  char ids[100], logits[100];
  bool all = true;
  for (int i = 0; i < 2; i++) {
    snprintf(ids, sizeof ids, "tiny/%s.%c.ids", family, 'a' + i);
    snprintf(logits, sizeof logits, "tiny/%s.%c.logits.npy", family, 'a' + i);
    all &= recorded_open(&t->text[i], host, ids, logits, NULL, 0);
  }
  snprintf(ids, sizeof ids, "expect/device/%s.ids", family);
  snprintf(logits, sizeof logits, "expect/device/%s.logits.npy", family);
  all &= recorded_open(&t->text[2], host, ids, logits, positions, RUNG_COUNT(positions));
  snprintf(logits, sizeof logits, "expect/device/%s.kv16.npy", family);
  all &= recorded_open(&t->kv16, host, ids, logits, positions, RUNG_COUNT(positions));
  return all;
}
static void close_texts(texts *t) {
  for (int i = 0; i < 3; i++) recorded_close(&t->text[i]);
  recorded_close(&t->kv16);
}

static const char *path_of(const char *family) {
  static char path[600];
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s.gguf", family);
  return path;
}

static void check_text(recorded_side *s, const recorded *r, const recorded_way *way, double bound, const char *what,
                       double *most) {
  recorded_far far = {.want = r->logits.data, .vocabulary = s->info.vocabulary};
  if (!recorded_feed(s, r, way, recorded_far_row, &far)) return;
  test_state.checks++;
  if (!(far.worst <= bound * far.largest))
    TEST_FAIL_("%s, %d rows and then %d, %d sequences: %.3g of the largest logit, the bound is %.3g", what, way->first,
               way->piece, way->slots, far.worst / far.largest, bound);
  *most = fmax(*most, far.worst / far.largest);
}

/* How far rounding keys and values to f16 moves the oracle's logits, as a share of the largest. */
static double moved(const recorded *a, const recorded *b, int64_t vocabulary) {
  double worst = 0, largest = 0;
  const double *x = a->logits.data, *y = b->logits.data;
  for (int64_t i = 0; i < a->positions * vocabulary; i++) {
    worst = fmax(worst, fabs(x[i] - y[i]));
    largest = fmax(largest, fabs(x[i]));
  }
  return worst / largest;
}

static void check_exact(const char *device, const char *family, bool deterministic) {
  for (int form = 0; form < 3; form++) { /* keys and values in f32, in f32 paged, in f16 */
    recorded_side s;
    texts t = {0};
    char what[100];
    double most = 0;
    snprintf(what, sizeof what, "%s exact on %s%s, kv %s%s", family, device, deterministic ? ", deterministic" : "",
             form == 2 ? "f16" : "f32", form == 1 ? ", paged" : "");
    if (recorded_side_open(&s, device, path_of(family), RUNG_QUANT_EXACT, deterministic,
                           form == 2 ? RUNG_TYPE_F16 : RUNG_TYPE_F32, form == 1 ? 12 : 0) &&
        open_texts(&t, s.host, family)) {
      /* With f16 the oracle rounds as well. Where its key and the device's stand on two sides of a tie they round apart:
       * an f32 key is some 4e-7 away, a tie every 2^-11, so this happens to one number in a thousand, which then errs by
       * a whole unit instead of by a twelfth of its square: sqrt(12 / 1000) of what all rounding does, a third with room
       * for the largest of many. */
      const double bound = TINY_EXACT + (form == 2 ? moved(&t.text[2], &t.kv16, s.info.vocabulary) / 3 : 0);
      for (size_t w = 0; w < RUNG_COUNT(ways); w++) {
        for (int i = 0; i < 2 && form < 2; i++) check_text(&s, &t.text[i], &ways[w], bound, what, &most);
        check_text(&s, form == 2 ? &t.kv16 : &t.text[2], &ways[w], bound, what, &most);
      }
      printf("%s: at most %.2g of the largest logit, the bound is %.2g\n", what, most, bound);
    }
    close_texts(&t);
    recorded_side_close(&s);
  }
}

/* The divergence of all recorded positions of a family, fed one way. */
static bool diverge(const char *device, const char *family, bool deterministic, const recorded_way *way, int64_t blocks,
                    recorded_kl *out) {
  recorded_side s;
  texts t = {0};
  bool done = false;
  *out = (recorded_kl){0};
  if (recorded_side_open(&s, device, path_of(family), RUNG_QUANT_FAST, deterministic, RUNG_TYPE_F16, blocks) &&
      open_texts(&t, s.host, family)) {
    out->vocabulary = s.info.vocabulary;
    done = true;
    for (int i = 0; i < 3; i++) {
      out->want = t.text[i].logits.data;
      done &= recorded_feed(&s, &t.text[i], way, recorded_kl_row, out);
    }
  }
  close_texts(&t);
  recorded_side_close(&s);
  return done;
}

static void check_fast(const char *family, bool deterministic) {
  recorded_kl cpu, gpu;
  const char *said = deterministic ? ", deterministic" : "";
  if (!diverge("cpu", family, false, &ways[0], 0, &cpu)) return;
  for (size_t w = 0; w < RUNG_COUNT(ways); w++) {
    if (!diverge("cuda", family, deterministic, &ways[w], w % 2 ? 12 : 0, &gpu)) return;
    test_state.checks++;
    if (!recorded_kl_holds(&gpu, &cpu))
      TEST_FAIL_("%s fast%s, %d rows and then %d, %d sequences: mean KL %.3g, on the cpu device %.3g", family, said,
                 ways[w].first, ways[w].piece, ways[w].slots, recorded_kl_mean(&gpu), recorded_kl_mean(&cpu));
    printf("%s fast%s, %d rows and then %d, %d sequences: mean KL %.3g (+- %.1g), on the cpu device %.3g (+- %.1g)\n",
           family, said, ways[w].first, ways[w].piece, ways[w].slots, recorded_kl_mean(&gpu),
           sqrt(recorded_kl_error(&gpu)), recorded_kl_mean(&cpu), sqrt(recorded_kl_error(&cpu)));
  }
}

static void test_cpu(void) {
  for (size_t i = 0; i < RUNG_COUNT(families); i++) check_exact("cpu", families[i], false);
}
static void test_exact(void) {
  if (!cuda_is_here()) SKIP("no GPU");
  for (size_t i = 0; i < 2 * RUNG_COUNT(families); i++) check_exact("cuda", families[i / 2], i % 2);
}
static void test_fast(void) {
  if (!cuda_is_here()) SKIP("no GPU");
  for (size_t i = 0; i < 2 * RUNG_COUNT(families); i++) check_fast(families[i / 2], i % 2);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  RUN(test_cpu);
  RUN(test_exact);
  RUN(test_fast);
  return TEST_END();
}
