/* SPDX-License-Identifier: MIT
 * Architecture families and scalings of rotary positions: a GGUF file and a folder with the same numbers against the
 * float64 oracle's logits; the same bits however a text is cut; and what their configurations may not say.
 * scripts/oracle/tiny_families.py wrote the models and the numbers, and compares them with llama.cpp. */
#define _GNU_SOURCE
#include <math.h>

#include "bits.h"
#include "folder_world.h"
#include "formats/npy.h"

#define FAMILIES RUNG_SOURCE_DIR "/tests/models/tiny/families/"
static const struct {
  const char *name;
  bool quantised; /* a file of quantised experts, no folder */
} variants[] = {{"qwen2", false},        {"qwen3", false},         {"llama-linear", false}, {"llama-ntk", false},
                {"llama-llama3", false}, {"llama-yarn", false},    {"gemma2", false},       {"olmo2", false},
                {"smollm3", false},      {"phi3", false},          {"phi3-long", false},    {"phi3-window", false},
                {"qwen3moe", false},     {"qwen3moe-quants", true}};
enum { MAX_IDS = 64, CONTEXT = 256 };

static int32_t read_ids(int32_t *out) {
  FILE *f = fopen(FAMILIES "prompt.ids", "r");
  int32_t n = 0;
  while (f && n < MAX_IDS && fscanf(f, "%d", &out[n]) == 1) n++;
  if (f) fclose(f);
  return n;
}

/* ---- numbers */

/* Logits of every position, the text in chunks, in a context of so many positions. */
static bool run(world *w, int64_t context, int32_t chunk, float *out, int64_t vocabulary) {
  int32_t ids[MAX_IDS], wanted[MAX_IDS];
  const int32_t n = read_ids(ids);
  rung_generate_options options = rung_generate_options_default();
  options.chunk = options.logits = chunk;
  options.kv = RUNG_TYPE_F32;
  options.context = context;
  rung_generator *g = NULL;
  rung_status status = rung_generator_create(w->model, &options, &w->error, &g);
  CHECK_OK(status);
  for (int32_t i = 0; i < n; i++) wanted[i] = i;
  for (int32_t at = 0; at < n && !status; at += chunk) {
    const int32_t count = n - at < chunk ? n - at : chunk;
    const rung_rows rows = {0, count};
    const float *got;
    status = rung_generator_run(g, &rows, 1, ids + at, wanted, count, &got);
    CHECK_OK(status);
    if (!status) memcpy(out + at * vocabulary, got, (size_t)(count * vocabulary) * sizeof *out);
  }
  rung_generator_destroy(g);
  return !status;
}

static void compare(const char *device, const char *variant, const char *file, rung_quant quant, double bound) {
  char path[1200];
  world w;
  snprintf(path, sizeof path, FAMILIES "%s%s", variant, file);
  const rung_status status = open_world(&w, device, path, quant, RUNG_SOURCE_MAP);
  CHECK_OK(status);
  if (status) fprintf(stderr, "  %s: %s\n", path, w.error.message);
  snprintf(path, sizeof path, FAMILIES "%s/logits.npy", variant);
  const rung_source source = rung_source_path(path);
  rung_npy want;
  if (!status && !rung_npy_open(&want, w.host, &source, &w.error)) {
    const int64_t vocabulary = want.extent[1], all = want.extent[0] * vocabulary;
    float *got = calloc((size_t)all, sizeof *got);
    double largest = 0, worst = 0;
    if (run(&w, CONTEXT, MAX_IDS, got, vocabulary)) {
      for (int64_t i = 0; i < all; i++) {
        const double exact = ((const double *)want.data)[i];
        largest = fmax(largest, fabs(exact));
        worst = fmax(worst, isnan(got[i]) ? (double)INFINITY : fabs(exact - (double)got[i]));
      }
      CHECK(largest > 1 && worst <= bound * largest);
      printf("%s %s%s: largest difference %.2g of the largest logit\n", device, variant, file, worst / largest);
    }
    free(got);
    rung_npy_close(&want);
  } else {
    CHECK(!"the expectation is there");
  }
  close_world(&w);
}

/* The promise is 1e-5; measured 2.6e-6 and less. */
static void test_numbers(void) {
  static const char *const devices[] = {"cpu", "ref"}, *const files[] = {"/model.gguf", ""};
  for (size_t v = 0; v < RUNG_COUNT(variants); v++)
    for (size_t d = 0; d < 2; d++)
      for (size_t f = 0; f < (variants[v].quantised ? 1 : 2); f++)
        compare(devices[d], variants[v].name, files[f], RUNG_QUANT_EXACT, 1e-5);
}

/* Eight-bit activations of few terms, and a router that may choose otherwise for them. */
static void test_fast(void) { compare("cpu", "qwen3moe-quants", "/model.gguf", RUNG_QUANT_FAST, 0.1); }

/* Short factors up to the context that was trained, long ones beyond: another context, other numbers, of one model. */
static void test_long_context(void) {
  float *logits[3];
  world w;
  CHECK_OK(open_world(&w, "cpu", FAMILIES "phi3-long", RUNG_QUANT_EXACT, RUNG_SOURCE_MAP));
  static const int64_t contexts[] = {64, 65, CONTEXT};
  for (int i = 0; i < 3; i++) {
    logits[i] = calloc(40 * 61, sizeof(float));
    CHECK(w.model && run(&w, contexts[i], MAX_IDS, logits[i], 61));
  }
  CHECK(memcmp(logits[0], logits[1], 40 * 61 * sizeof(float)) != 0);
  CHECK(memcmp(logits[1], logits[2], 40 * 61 * sizeof(float)) == 0);
  for (int i = 0; i < 3; i++) free(logits[i]);
  close_world(&w);
}

/* ---- bits */

static void test_bits(void) {
  static const int64_t chunks[] = {40, 7, 1, 0};
  static const int threads[] = {1, 2, 0};
  for (size_t v = 0; v <= RUNG_COUNT(variants); v++) { /* the last one also with quantised activations */
    const bool fast = v == RUNG_COUNT(variants);
    char path[1200];
    snprintf(path, sizeof path, FAMILIES "%s/model.gguf", variants[v - fast].name);
    const bits_case c = {.path = path,
                         .quant = fast ? RUNG_QUANT_FAST : RUNG_QUANT_EXACT,
                         .kv = RUNG_TYPE_F16,
                         .length = 40,
                         .chunk = chunks,
                         .largest_chunk = 40,
                         .threads = threads};
    bits_matrix(&c);
  }
}

/* ---- configurations that are refused, each by naming the key */

static void test_configurations(void) {
  static const config_change changes[] = {
      {"qwen2", "\"use_sliding_window\": false", "\"use_sliding_window\": true", RUNG_UNSUPPORTED,
       "use_sliding_window"},
      {"qwen2", "\"silu\"", "\"gelu\"", RUNG_UNSUPPORTED, "hidden_act \"gelu\""},
      {"qwen3", "\"head_dim\": 16", "\"head_dim\": 8", RUNG_SHAPE_MISMATCH, "q_proj.weight\" is [64,32]"},
      {"qwen3", "\"head_dim\": 16", "\"other\": 16", RUNG_SHAPE_MISMATCH, "the metadata makes it [512,32]"},
      {"llama-yarn", "\"factor\": 8.0,", "", RUNG_NOT_FOUND, "rope_scaling.factor is missing"},
      {"llama-yarn", "\"yarn\"", "\"dynamic\"", RUNG_UNSUPPORTED, "rope_scaling.rope_type \"dynamic\""},
      {"llama-yarn", "\"rope_theta\": 10000.0", "\"rope_theta\": 1", RUNG_CORRUPT_FILE, "rope_theta is 1"},
      {"llama-ntk", "\"factor\": 4.0", "\"factor\": -4.0", RUNG_CORRUPT_FILE, "rope_scaling.factor is -4"},
      {"gemma2", "\"final_logit_softcapping\": 8.0", "\"final_logit_softcapping\": null", RUNG_NOT_FOUND,
       "final_logit_softcapping is missing"},
      {"gemma2", "\"hidden_activation\": \"gelu_pytorch_tanh\"", "\"hidden_activation\": \"gelu\"", RUNG_UNSUPPORTED,
       "hidden_activation \"gelu\""},
      {"olmo2", "\"attention_bias\": false", "\"attention_bias\": true", RUNG_UNSUPPORTED, "attention_bias"},
      {"olmo2", "\"attention_bias\": false", "\"sliding_window\": 8", RUNG_UNSUPPORTED, "sliding_window 8"},
      {"olmo2", "\"olmo2\"", "\"olmo3\"", RUNG_UNSUPPORTED, "\"olmo3\" is not supported; there are: llama, qwen2"},
      {"smollm3", "0\n  ]", "0, 0\n  ]", RUNG_CORRUPT_FILE, "no_rope_layers has not 4 numbers"},
      {"smollm3", "0\n  ]", "\"0\"\n  ]", RUNG_TYPE_MISMATCH, "no_rope_layers"},
      {"qwen3moe", "\"mlp_only_layers\": []", "\"mlp_only_layers\": [0]", RUNG_UNSUPPORTED, "mlp_only_layers"},
      {"qwen3moe", "\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 2", RUNG_CORRUPT_FILE,
       "is 2, expected 1..1"},
      {"qwen3moe", "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 7", RUNG_CORRUPT_FILE,
       "is 7, expected 1..6"},
      {"qwen3moe", "\"num_experts\": 6", "\"num_experts\": 7", RUNG_SHAPE_MISMATCH, "mlp.gate.weight\" is [6,32]"},
      {"qwen3moe", "\"num_experts\": 6", "\"num_experts\": 256", RUNG_CORRUPT_FILE, "num_experts is 256"},
      {"qwen3moe", "\"moe_intermediate_size\": 24", "\"moe_intermediate_size\": 25", RUNG_SHAPE_MISMATCH,
       "experts.0.gate_proj.weight\" is [24,32]"},
      {"phi3", "\"short_factor\"", "\"shorter\"", RUNG_NOT_FOUND, "rope_scaling.short_factor is missing"},
      {"phi3", "\"long_factor\": [", "\"long_factor\": [1.0, ", RUNG_CORRUPT_FILE, "long_factor has not 4 numbers"},
      {"phi3", "\"long_factor\": [", "\"long_factor\": [1.0, -1.0, 1, 1], \"x\": [", RUNG_CORRUPT_FILE,
       "rope_scaling.long_factor[1] is -1"},
      {"phi3", "\"original_max_position_embeddings\": 256", "\"x\": 0", RUNG_NOT_FOUND, "is missing"},
      {"phi3", "\"sliding_window\": null", "\"partial_rotary_factor\": 1.5", RUNG_UNSUPPORTED, "partial_rotary_factor"},
      {"phi3", "\"sliding_window\": null", "\"sliding_window\": -3", RUNG_CORRUPT_FILE, "sliding_window is -3"},
  };
  check_changes(FAMILIES, "", changes, RUNG_COUNT(changes));
}

/* ---- opening and running, with each call that can fail failing once */

static void test_faults(void) {
  static const char *const paths[] = {FAMILIES "qwen3moe", FAMILIES "qwen3moe-quants/model.gguf", FAMILIES "phi3-long"};
  world w = {0};
  CHECK_OK(rung_host_create(NULL, &w.error, &w.host));
  rung_device_options options = rung_device_options_default();
  options.threads = 1;
  CHECK_OK(rung_device_create(w.host, "cpu", &options, &w.error, &w.device));
  const uint64_t before = rung_host_memory(w.host).host;
  int64_t fired = 0;
  for (size_t p = 0; p < RUNG_COUNT(paths); p++) {
    for (int64_t n = 1;; n += 1 + n / 40) {
      test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = n};
      const rung_source source = rung_source_path(paths[p]);
      rung_generate_options o = rung_generate_options_default();
      o.context = 64;
      o.chunk = 8;
      rung_generator *g = NULL;
      rung_host_set_fault(w.host, test_fault_hit, &fault);
      rung_status status = rung_model_open(w.device, &source, NULL, &w.error, &w.model);
      if (!status) status = rung_generator_create(w.model, &o, &w.error, &g);
      const int32_t ids[] = {1, 2, 3}, wanted[] = {2};
      const rung_rows rows = {0, 3};
      const float *logits;
      if (!status) status = rung_generator_run(g, &rows, 1, ids, wanted, 1, &logits);
      rung_host_set_fault(w.host, NULL, NULL);
      CHECK((status == RUNG_OK) == !fault.hit);
      rung_generator_destroy(g);
      rung_model_release(w.model);
      w.model = NULL;
      CHECK_EQ_I64(rung_host_memory(w.host).host, before);
      if (!fault.hit) break;
      fired++;
    }
  }
  CHECK(fired > 100);
  printf("%" PRId64 " calls, each failed once\n", fired);
  close_world(&w);
}

int main(void) {
  if (!begin_scratch()) return 1;
  RUN(test_numbers);
  RUN(test_fast);
  RUN(test_long_context);
  RUN(test_bits);
  RUN(test_configurations);
  RUN(test_faults);
  end_scratch();
  return TEST_END();
}
