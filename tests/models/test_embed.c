/* SPDX-License-Identifier: MIT
 * Encoders: vectors against the float64 oracle (scripts/oracle/tiny_encoders.py, bert.py), the same bits alone, in any
 * batch and on any number of threads, and what is refused. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "embed_world.h"
#include "fetched.h"

static const char *const encoders[] = {"bert", "roberta", "bert-plain", "xlm-roberta"};

/* ---- numbers */

/* Each of a layer's five sums is off by up to twice the type's unit of the magnitudes in it (both factors are rounded),
 * which are a few times the rows' own, and layer norm brings rows back to about one: two layers of five sums, times four.
 * Where everything is kept narrow six more values of a layer are rounded. f32: the promise; measured 2e-6 and less. */
static const char *const policies[] = {"mixed", "mixed-f16", "bf16", "f16"};
static rung_precision policy_of(const char *name) {
  rung_precision precision = rung_precision_f32();
  CHECK(rung_precision_find(name, &precision));
  return precision;
}

static double bound_of(rung_precision precision) {
  if (precision.compute == RUNG_TYPE_F32) return 1e-5;
  const double unit = precision.compute == RUNG_TYPE_BF16 ? 0x1p-8 : 0x1p-11;
  return 2 * (precision.elementwise == RUNG_TYPE_F32 ? 5 : 11) * 2 * unit * 4;
}

static void compare(const char *device, const char *name, rung_precision precision) {
  static const struct {
    rung_pooling pooling;
    rung_unit_length unit;
    int64_t dims;
  } ways[] = {{RUNG_POOLING_MEAN, RUNG_UNIT_LENGTH_ON, 0},
              {RUNG_POOLING_FIRST, RUNG_UNIT_LENGTH_OFF, 0},
              {RUNG_POOLING_MAX, RUNG_UNIT_LENGTH_ON, 0},
              {RUNG_POOLING_LAST, RUNG_UNIT_LENGTH_ON, 12}};
  char path[1200];
  texts t;
  world w;
  texts_read(&t, TINY_MODELS "encoder.ids");
  snprintf(path, sizeof path, TINY_MODELS "%s", name);
  CHECK_OK(world_open_as(&w, device, 2, path, precision));
  snprintf(path, sizeof path, TINY_MODELS "%s.vectors.npy", name);
  const rung_source source = rung_source_path(path);
  rung_npy want;
  CHECK_OK(rung_npy_open(&want, w.host, &source, &w.error));
  CHECK(want.extent[0] == (int64_t)RUNG_COUNT(ways) && want.extent[1] == (int64_t)t.count);
  double worst = 0;
  for (size_t i = 0; i < RUNG_COUNT(ways) && w.model; i++) {
    rung_encoder_options options = rung_encoder_options_default();
    options.pooling = ways[i].pooling;
    options.unit_length = ways[i].unit;
    options.dims = ways[i].dims;
    rung_encoder *e = world_encoder(&w, &options);
    if (!e) continue;
    const int64_t width = want.extent[2], dims = ways[i].dims ? ways[i].dims : width;
    float *got = world_vectors(e, t.text, t.count);
    for (size_t k = 0; k < t.count; k++)
      for (int64_t d = 0; d < dims; d++) {
        const double exact = ((const double *)want.data)[((int64_t)(i * t.count + k)) * width + d];
        const double off = fabs(exact - (double)got[(int64_t)k * dims + d]);
        worst = off <= worst ? worst : off; /* NaN counts */
        if (t.text[k].count == 0) CHECK(got[(int64_t)k * dims + d] == 0);
      }
    free(got);
    rung_encoder_destroy(e);
  }
  CHECK(worst <= bound_of(precision));
  if (precision.compute == RUNG_TYPE_BF16) CHECK(worst > 1e-4); /* it does round */
  printf("%s %s, %s: largest difference %.2g\n", w.device ? rung_device_name(w.device) : device, name,
         rung_precision_name(precision), worst);
  rung_npy_close(&want);
  world_close(&w);
  texts_free(&t);
}

static void test_numbers_cpu(void) {
  for (size_t i = 0; i < RUNG_COUNT(encoders); i++) compare("cpu", encoders[i], rung_precision_f32());
}
static void test_numbers_narrow(void) {
  static const char *const levels[] = {"base", "avx2", "avx512", "neon"};
  for (size_t l = 0; l < RUNG_COUNT(levels); l++) {
    setenv("RUNG_MAX_ISA", levels[l], 1);
    for (size_t i = 0; i < RUNG_COUNT(encoders); i++)
      for (size_t p = 0; p < RUNG_COUNT(policies); p++) compare("cpu", encoders[i], policy_of(policies[p]));
  }
  unsetenv("RUNG_MAX_ISA");
}
static void test_numbers_ref(void) {
  for (size_t i = 0; i < RUNG_COUNT(encoders); i++) compare("ref", encoders[i], rung_precision_f32());
  for (size_t p = 0; p < RUNG_COUNT(policies); p++) compare("ref", encoders[0], policy_of(policies[p]));
}

/* What the folder says is what one gets without options. */
static void test_folder_says(void) {
  world w;
  CHECK_OK(world_open(&w, "cpu", 1, TINY_MODELS "bert"));
  rung_encoder *e = world_encoder(&w, NULL);
  rung_encoder_info info;
  rung_encoder_get_info(e, &info);
  CHECK(info.dims == 32 && info.longest == 130 && info.pooling == RUNG_POOLING_MEAN && info.unit_length);
  rung_encoder_destroy(e);
  rung_model_info model;
  rung_model_get_info(w.model, &model);
  CHECK(model.encoder && model.context == 140 && model.vocabulary == 61);
  world_close(&w);
  CHECK_OK(world_open(&w, "cpu", 1, TINY_MODELS "roberta"));
  e = world_encoder(&w, NULL);
  rung_encoder_get_info(e, &info);
  CHECK(info.pooling == RUNG_POOLING_FIRST && !info.unit_length);
  rung_encoder_destroy(e);
  world_close(&w);
}

/* Encoders of one model that ask for the same share template and program; others have their own. */
static void test_one_compile(void) {
  world w;
  CHECK_OK(world_open(&w, "cpu", 1, TINY_MODELS "bert"));
  rung_encoder_options other = rung_encoder_options_default();
  other.pooling = RUNG_POOLING_FIRST;
  rung_encoder *a = world_encoder(&w, NULL), *b = world_encoder(&w, NULL), *c = world_encoder(&w, &other);
  CHECK(a && b && c);
  if (a && b && c) {
    CHECK(rung_encoder_program(a) == rung_encoder_program(b));
    CHECK(rung_encoder_program(a) != rung_encoder_program(c));
  }
  rung_encoder_destroy(a);
  rung_encoder_destroy(b);
  rung_encoder_destroy(c);
  world_close(&w);
}

/* The recorded lines as text give the recorded ids. */
static void check_lines(rung_encoder *e, rung_model *model, const texts *t) {
  FILE *f = fopen(RUNG_SOURCE_DIR "/tests/models/expect/minilm/lines.txt", "rb");
  char line[4096];
  size_t n = 0;
  for (; f && fgets(line, sizeof line, f); n++) {
    int32_t *ids = NULL;
    size_t count = 0;
    CHECK_OK(rung_encoder_tokens(e, line, strlen(line) - 1, false, &ids, &count));
    CHECK(count == t->text[n].count && memcmp(ids, t->text[n].ids, count * sizeof *ids) == 0);
    rung_ids_free(model, ids, count);
  }
  if (f) fclose(f);
  CHECK_EQ_I64(n, t->count);
}

static void check_minilm(rung_precision precision) {
  char path[1024];
  world w;
  texts t;
  if (!fetched_model("minilm", path, sizeof path)) {
    CHECK(!"the model is not there; run scripts/models.py fetch");
    return;
  }
  texts_read(&t, RUNG_SOURCE_DIR "/tests/models/expect/minilm/lines.ids");
  CHECK_OK(world_open_as(&w, "cpu", 2, path, precision));
  rung_encoder_options options = rung_encoder_options_default();
  options.longest = 512;
  rung_encoder *e = world_encoder(&w, &options);
  const rung_source source = rung_source_path(RUNG_SOURCE_DIR "/tests/models/expect/minilm/vectors.npy");
  rung_npy want;
  CHECK_OK(rung_npy_open(&want, w.host, &source, &w.error));
  if (e && want.extent[0] == (int64_t)t.count && want.extent[1] == 384) {
    float *got = world_vectors(e, t.text, t.count);
    double worst = 0;
    for (int64_t i = 0; i < want.extent[0] * 384; i++) {
      const double off = fabs(((const double *)want.data)[i] - (double)got[i]);
      worst = off <= worst ? worst : off;
    }
    /* Of numbers of some 0.05; measured 1.3e-3 under mixed, some twice that where everything is bf16. */
    CHECK(worst <= (precision.compute == RUNG_TYPE_F32 ? 1e-5 : precision.elementwise == RUNG_TYPE_BF16 ? 8e-3 : 3e-3));
    printf("minilm, %s: largest difference %.2g\n", rung_precision_name(precision), worst);
    free(got);
    check_lines(e, w.model, &t);
  } else {
    CHECK(!"recorded for these lines");
  }
  rung_npy_close(&want);
  rung_encoder_destroy(e);
  world_close(&w);
  texts_free(&t);
}

static void test_minilm(void) {
  if (test_slow()) SKIP("too slow here");
  check_minilm(rung_precision_f32());
  for (size_t p = 0; p < RUNG_COUNT(policies); p++) check_minilm(policy_of(policies[p]));
}

/* ---- bits */

static void same(const float *a, const float *b, size_t n, const char *what, size_t text) {
  test_state.checks++;
  if (memcmp(a, b, n * sizeof *a) != 0) TEST_FAIL_("text %zu has other bits %s", text, what);
}

static void bits(const char *name, rung_precision precision, int threads, const texts *t, const float *want) {
  char path[1200];
  world w;
  snprintf(path, sizeof path, TINY_MODELS "%s", name);
  CHECK_OK(world_open_as(&w, "cpu", threads, path, precision));
  static const int64_t budgets[] = {1, 200, 1024};
  for (size_t b = 0; b < RUNG_COUNT(budgets); b++) {
    rung_encoder_options options = rung_encoder_options_default();
    options.rows = budgets[b];
    options.pooling = RUNG_POOLING_MEAN;
    rung_encoder *e = world_encoder(&w, &options);
    if (!e) break;
    float *got = world_vectors(e, t->text, t->count);
    for (size_t i = 0; i < t->count; i++) same(want + 32 * i, got + 32 * i, 32, "at another budget", i);
    free(got);
    for (size_t i = 0; i < t->count; i++) {
      float *alone = world_vectors(e, &t->text[i], 1);
      same(want + 32 * i, alone, 32, "alone", i);
      free(alone);
    }
    rung_token_list turned[MOST_TEXTS]; /* the other way round, each short one beside the longest */
    for (size_t i = 0; i < t->count; i++) {
      turned[2 * i] = t->text[t->count - 1 - i];
      turned[2 * i + 1] = t->text[1];
    }
    got = world_vectors(e, turned, 2 * t->count);
    for (size_t i = 0; i < t->count; i++)
      same(want + 32 * (t->count - 1 - i), got + 32 * 2 * i, 32, "beside others", t->count - 1 - i);
    free(got);
    rung_encoder_destroy(e);
  }
  world_close(&w);
}

static void check_bits(rung_precision precision) {
  texts t;
  texts_read(&t, TINY_MODELS "encoder.ids");
  for (size_t i = 0; i < RUNG_COUNT(encoders); i++) {
    char path[1200];
    world w;
    snprintf(path, sizeof path, TINY_MODELS "%s", encoders[i]);
    CHECK_OK(world_open_as(&w, "cpu", 1, path, precision));
    rung_encoder_options options = rung_encoder_options_default();
    options.pooling = RUNG_POOLING_MEAN;
    rung_encoder *e = world_encoder(&w, &options);
    float *want = world_vectors(e, t.text, t.count);
    rung_encoder_destroy(e);
    world_close(&w);
    for (int threads = 1; threads <= 3; threads++) bits(encoders[i], precision, threads, &t, want);
    free(want);
  }
  texts_free(&t);
}
static void test_bits(void) { check_bits(rung_precision_f32()); }
/* One policy of each kind; the others have the same kernels (test_policies and test_precision take all). */
static void test_bits_narrow(void) {
  check_bits(policy_of("mixed"));
  check_bits(policy_of("f16"));
}

/* ---- texts */

/* Longer texts are refused, or cut so that the special tokens stay, as the tokenizers package cuts them. */
static void test_tokens(void) {
  if (!RUNG_HAVE_UTF8PROC) SKIP("its normaliser needs utf8proc");
  world w;
  texts want;
  texts_read(&want, TINY_MODELS "encoder.cut.ids");
  CHECK_OK(world_open(&w, "cpu", 1, TINY_MODELS "bert"));
  rung_encoder_options options = rung_encoder_options_default();
  options.longest = 10;
  rung_encoder *e = world_encoder(&w, &options);
  FILE *f = fopen(TINY_MODELS "encoder.txt", "rb");
  char line[256];
  size_t n = 0, refused = 0;
  for (; e && f && fgets(line, sizeof line, f); n++) {
    int32_t *ids = NULL, *same = NULL;
    size_t count = 0, length = strlen(line) - 1;
    CHECK_OK(rung_encoder_tokens(e, line, length, true, &ids, &count));
    CHECK(count == want.text[n].count && memcmp(ids, want.text[n].ids, count * sizeof *ids) == 0);
    rung_ids_free(w.model, ids, count);
    const rung_status status = rung_encoder_tokens(e, line, length, false, &same, &count);
    if (status) {
      CHECK_STATUS(status, RUNG_OUT_OF_RANGE);
      CHECK(strstr(rung_encoder_message(e), "the longest may have 10") != NULL);
      refused++;
    } else {
      rung_ids_free(w.model, same, count);
    }
  }
  if (f) fclose(f);
  CHECK(n == want.count && refused == 3);
  rung_encoder_destroy(e);
  options.longest = 1;
  e = world_encoder(&w, &options);
  int32_t *ids;
  size_t count;
  CHECK_STATUS(rung_encoder_tokens(e, "ab", 2, true, &ids, &count), RUNG_OUT_OF_RANGE);
  CHECK(strstr(rung_encoder_message(e), "leave no room") != NULL);
  rung_encoder_destroy(e);
  world_close(&w);
  texts_free(&want);
}

/* ---- what is filled into runs, and what is refused */

static void test_runs(void) {
  texts t;
  world w;
  texts_read(&t, TINY_MODELS "encoder.ids");
  CHECK_OK(world_open(&w, "cpu", 2, TINY_MODELS "bert"));
  rung_encoder_options options = rung_encoder_options_default();
  options.rows = 200;
  rung_encoder *e = world_encoder(&w, &options);
  float *got = world_vectors(e, t.text, t.count);
  CHECK_EQ_I64(rung_encoder_runs(e), 3); /* 5+130+1+0+64, 17+65+2+33, 128+3+9: in their order, as many as fit */
  free(got);
  got = world_vectors(e, NULL, 0);
  CHECK_EQ_I64(rung_encoder_runs(e), 3);
  free(got);
  const rung_token_list none[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
  got = world_vectors(e, none, 3);
  for (int i = 0; i < 96; i++) CHECK(got[i] == 0);
  free(got);
  rung_encoder_destroy(e);
  world_close(&w);
  texts_free(&t);
}

static void check_options(world *w, const rung_encoder_options *o, rung_status status, const char *says) {
  rung_encoder *e = NULL;
  CHECK_STATUS(rung_encoder_create(w->model, o, &w->error, &e), status);
  test_state.checks++;
  if (!strstr(w->error.message, says)) TEST_FAIL_("\"%s\" does not say \"%s\"", w->error.message, says);
  CHECK(e == NULL);
}

static void test_refused(void) {
  world w;
  CHECK_OK(world_open(&w, "cpu", 1, TINY_MODELS "bert"));
  rung_encoder_options o = rung_encoder_options_default();
#define TRY(field, value, status, says) \
  o = rung_encoder_options_default();   \
  o.field = value;                      \
  check_options(&w, &o, status, says)
  TRY(size, 0, RUNG_INVALID_ARGUMENT, "options.size");
  TRY(rows, 0, RUNG_OUT_OF_RANGE, "runs of 0 tokens");
  TRY(rows, 65537, RUNG_OUT_OF_RANGE, "runs of 65537 tokens");
  TRY(longest, 141, RUNG_OUT_OF_RANGE, "the model has 140 positions");
  TRY(longest, -1, RUNG_OUT_OF_RANGE, "texts of -1");
  TRY(dims, 33, RUNG_OUT_OF_RANGE, "the model has 32");
  TRY(pooling, (rung_pooling)9, RUNG_INVALID_ARGUMENT, "pooling 9");
#undef TRY
  rung_encoder *e = world_encoder(&w, NULL);
  int32_t ids[140] = {0};
  float out[64];
  CHECK_STATUS(rung_encoder_run(e, &(rung_token_list){ids, 131}, 1, out), RUNG_OUT_OF_RANGE);
  CHECK(strstr(rung_encoder_message(e), "text 0 has 131 tokens, the longest may have 130") != NULL);
  ids[3] = 61;
  CHECK_STATUS(rung_encoder_run(e, (const rung_token_list[]){{ids, 2}, {ids, 4}}, 2, out), RUNG_OUT_OF_RANGE);
  CHECK(strstr(rung_encoder_message(e), "id 3 of text 1 is 61, the vocabulary has 61") != NULL);
  ids[3] = -1;
  CHECK_STATUS(rung_encoder_run(e, &(rung_token_list){ids, 4}, 1, out), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_encoder_run(e, &(rung_token_list){NULL, 4}, 1, out), RUNG_INVALID_ARGUMENT);
  CHECK_EQ_I64(rung_encoder_runs(e), 0);
  ids[3] = 0;
  CHECK_OK(rung_encoder_run(e, &(rung_token_list){ids, 4}, 1, out));
  rung_encoder_destroy(e);
  rung_generator *g = NULL;
  CHECK_STATUS(rung_generator_create(w.model, NULL, &w.error, &g), RUNG_UNSUPPORTED);
  CHECK(strstr(w.error.message, "makes vectors, not text") != NULL);
  world_close(&w);
  CHECK_OK(world_open(&w, "cpu", 1, TINY_MODELS "llama-f32"));
  check_options(&w, NULL, RUNG_UNSUPPORTED, "architecture llama makes text");
  world_close(&w);
  CHECK_OK(world_open(&w, "cpu", 1, TINY_MODELS "bert-plain"));
  check_options(&w, NULL, RUNG_UNSUPPORTED, "no modules.json");
  world_close(&w);
}

int main(void) {
  RUN(test_numbers_cpu);
  RUN(test_numbers_narrow);
  RUN(test_numbers_ref);
  RUN(test_folder_says);
  RUN(test_one_compile);
  RUN(test_minilm);
  RUN(test_bits);
  RUN(test_bits_narrow);
  RUN(test_tokens);
  RUN(test_runs);
  RUN(test_refused);
  return TEST_END();
}
