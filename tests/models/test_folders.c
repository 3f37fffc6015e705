/* SPDX-License-Identifier: MIT
 * Model folders (config.json, safetensors): logits against the float64 oracle in every type that checkpoints come in,
 * in one file and in two, mapped and read; and what a configuration may not say. scripts/oracle/tiny_folders.py wrote
 * the folders and the numbers. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/stat.h>

#include "folder_world.h"
#include "formats/npy.h"

#define TINY RUNG_SOURCE_DIR "/tests/models/tiny/"

static const char *const families[] = {"llama", "gemma3"};
static const char *const forms[] = {"f32", "f16", "bf16", "shards"};
enum { MAX_IDS = 64 };

static int32_t read_ids(const char *family, int32_t *out) {
  char path[1200];
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s-folder.ids", family);
  FILE *f = fopen(path, "r");
  int32_t n = 0;
  while (f && n < MAX_IDS && fscanf(f, "%d", &out[n]) == 1) n++;
  if (f) fclose(f);
  return n;
}

/* ---- numbers */

static void compare(world *w, const char *device, const char *family, const char *form) {
  char path[1200];
  int32_t ids[MAX_IDS], wanted[MAX_IDS];
  const int32_t n = read_ids(family, ids);
  CHECK(n == 40);
  for (int32_t i = 0; i < n; i++) wanted[i] = i;
  rung_generate_options options = rung_generate_options_default();
  options.kv = RUNG_TYPE_F32;
  options.logits = MAX_IDS;
  rung_generator *generator = NULL;
  CHECK_OK(rung_generator_create(w->model, &options, &w->error, &generator));
  if (!generator) {
    fprintf(stderr, "  %s\n", w->error.message);
    return;
  }
  const rung_rows rows = {0, n};
  const float *got = NULL;
  CHECK_OK(rung_generator_run(generator, &rows, 1, ids, wanted, n, &got));
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s-%s.logits.npy", family, form);
  const rung_source source = rung_source_path(path);
  rung_npy want;
  rung_model_info info;
  rung_model_get_info(w->model, &info);
  CHECK_OK(rung_npy_open(&want, w->host, &source, &w->error));
  CHECK(want.extent[0] == n && want.extent[1] == info.vocabulary);
  double largest = 0, worst = 0;
  for (int64_t i = 0; got && i < n * info.vocabulary; i++) {
    const double exact = ((const double *)want.data)[i];
    largest = fmax(largest, fabs(exact));
    worst = fmax(worst, isnan(got[i]) ? (double)INFINITY : fabs(exact - (double)got[i]));
  }
  CHECK(worst <= 1e-5 * largest); /* the promise; measured 1.5e-6 and less */
  printf("%s %s-%s: largest difference %.2g of the largest logit\n", device, family, form, worst / largest);
  rung_npy_close(&want);
  rung_generator_destroy(generator);
}

static void check_numbers(const char *device) {
  char path[1200];
  for (size_t f = 0; f < RUNG_COUNT(families); f++) {
    for (size_t i = 0; i < RUNG_COUNT(forms); i++) {
      world w;
      snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s-%s", families[f], forms[i]);
      const rung_status status =
          open_world(&w, device, path, RUNG_QUANT_EXACT, i % 2 ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP);
      CHECK_OK(status);
      if (status)
        fprintf(stderr, "  %s\n", w.error.message);
      else
        compare(&w, device, families[f], forms[i]);
      close_world(&w);
    }
  }
}
static void test_numbers_cpu(void) { check_numbers("cpu"); }
static void test_numbers_ref(void) { check_numbers("ref"); }

/* ---- ways to name a folder */

static void test_ways(void) {
  static const char *const ways[] = {"/llama-shards", "/llama-shards/", "/llama-shards/config.json",
                                     "/llama-shards/model.safetensors.index.json", "/llama-f32/config.json"};
  for (size_t i = 0; i < RUNG_COUNT(ways); i++) {
    char path[1200];
    world w;
    snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny%s", ways[i]);
    CHECK_OK(open_world(&w, "ref", path, RUNG_QUANT_EXACT, RUNG_SOURCE_MAP));
    const rung_source source = rung_source_path(path);
    rung_weights *weights = NULL;
    CHECK_OK(rung_weights_open(w.host, &source, NULL, &w.error, &weights));
    size_t index;
    CHECK(weights && rung_weights_index(weights, "model.layers.2.mlp.up_proj.weight", &index));
    rung_weights_release(weights);
    close_world(&w);
  }
  world w;
  CHECK_STATUS(open_world(&w, "ref", RUNG_SOURCE_DIR "/tests/models/tiny", RUNG_QUANT_EXACT, RUNG_SOURCE_MAP),
               RUNG_NOT_FOUND);
  CHECK(strstr(w.error.message, "config.json") != NULL);
  close_world(&w);
  CHECK_STATUS(open_world(&w, "ref", RUNG_SOURCE_DIR "/tests/models/tiny/llama-f32/model.safetensors", RUNG_QUANT_EXACT,
                          RUNG_SOURCE_MAP),
               RUNG_UNSUPPORTED);
  CHECK(strstr(w.error.message, "folder") != NULL);
  close_world(&w);
}

/* ---- configurations that are refused, each by naming the key */

static void test_configurations(void) {
  static const config_change changes[] = {
      {"llama", "\"llama\"", "\"mistral\"", RUNG_UNSUPPORTED, "\"mistral\" is not supported; there are: llama"},
      {"llama", "\"llama\"", "7", RUNG_TYPE_MISMATCH, "model_type is a number, expected a string"},
      {"llama", "\"model_type\": \"llama\",", "", RUNG_NOT_FOUND, "model_type is missing"},
      {"llama", "\"num_hidden_layers\": 3,", "", RUNG_NOT_FOUND, "num_hidden_layers is missing"},
      {"llama", "\"num_hidden_layers\": 3,", "\"num_hidden_layers\": null,", RUNG_NOT_FOUND, "num_hidden_layers"},
      {"llama", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 3.5", RUNG_TYPE_MISMATCH, "num_hidden_layers"},
      {"llama", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 0", RUNG_CORRUPT_FILE, "num_hidden_layers is 0"},
      {"llama", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 513", RUNG_CORRUPT_FILE, "513, expected 1..512"},
      {"llama", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4", RUNG_NOT_FOUND,
       "no tensor \"model.layers.3.input_layernorm.weight\""},
      {"llama", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": \"3\"", RUNG_TYPE_MISMATCH, "is a string"},
      {"llama", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 3, \"num_hidden_layers\": 3", RUNG_CORRUPT_FILE,
       "num_hidden_layers comes twice"},
      {"llama", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", RUNG_CORRUPT_FILE,
       "no multiple of num_key_value_heads, 3"},
      {"llama", "\"hidden_size\": 32", "\"hidden_size\": 40", RUNG_SHAPE_MISMATCH, "model.embed_tokens.weight"},
      {"llama", "\"intermediate_size\": 80", "\"intermediate_size\": 81", RUNG_SHAPE_MISMATCH,
       "\"model.layers.0.mlp.gate_proj.weight\" is [80,32], the metadata makes it [81,32]"},
      {"llama", "\"vocab_size\": 61", "\"vocab_size\": 60", RUNG_CORRUPT_FILE, "vocab_size is 60, expected 61..61"},
      {"llama", "\"silu\"", "\"gelu\"", RUNG_UNSUPPORTED, "hidden_act \"gelu\""},
      {"llama", "\"attention_bias\": false", "\"attention_bias\": true", RUNG_UNSUPPORTED, "attention_bias"},
      {"llama", "\"attention_bias\": false", "\"attention_bias\": 1", RUNG_TYPE_MISMATCH, "attention_bias is a number"},
      {"llama", "\"attention_bias\": false", "\"mlp_bias\": true", RUNG_UNSUPPORTED, "mlp_bias"},
      {"llama", "\"rope_scaling\": null", "\"rope_scaling\": {\"rope_type\": \"mrope\", \"factor\": 4.0}",
       RUNG_UNSUPPORTED, "rope_scaling.rope_type \"mrope\""},
      {"llama", "\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 4.0}",
       RUNG_UNSUPPORTED, "rope_scaling.type \"dynamic\""},
      {"llama", "\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0}", RUNG_CORRUPT_FILE,
       "rope_scaling.factor is 0"},
      {"llama", "\"rope_scaling\": null", "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 4.0}",
       RUNG_NOT_FOUND, "rope_scaling.low_freq_factor is missing"},
      {"llama", "\"rope_scaling\": null",
       "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 4.0, \"low_freq_factor\": 4, \"high_freq_factor\": "
       "4, "
       "\"original_max_position_embeddings\": 64}",
       RUNG_CORRUPT_FILE, "rope_scaling.low_freq_factor 4 is not below rope_scaling.high_freq_factor, 4"},
      {"gemma3", "\"linear\"", "\"llama3\"", RUNG_NOT_FOUND, "low_freq_factor"},
      {"llama", "\"rope_scaling\": null", "\"partial_rotary_factor\": 0.5", RUNG_UNSUPPORTED, "partial_rotary_factor"},
      {"llama", "\"rope_theta\": 10000.0", "\"rope_theta\": -1", RUNG_CORRUPT_FILE, "rope_theta is -1"},
      {"llama", "\"rope_scaling\": null", "\"quantization_config\": {}", RUNG_UNSUPPORTED, "quantization_config"},
      {"llama", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", RUNG_NOT_FOUND, "lm_head.weight"},
      {"llama", "{", "[{", RUNG_CORRUPT_FILE, "config.json: JSON: "},
      {"gemma3", "\"gelu_pytorch_tanh\"", "\"gelu\"", RUNG_UNSUPPORTED, "hidden_activation \"gelu\""},
      {"gemma3", "\"final_logit_softcapping\": null", "\"final_logit_softcapping\": 30.0", RUNG_UNSUPPORTED,
       "final_logit_softcapping 30"},
      {"gemma3", "\"use_bidirectional_attention\": false", "\"use_bidirectional_attention\": true", RUNG_UNSUPPORTED,
       "use_bidirectional_attention"},
      {"gemma3", "\"full_attention\"", "\"chunked_attention\"", RUNG_UNSUPPORTED, "layer_types[1]"},
      {"gemma3", "\"full_attention\",", "", RUNG_CORRUPT_FILE, "layer_types names fewer layers"},
      {"gemma3", "\"full_attention\",", "\"full_attention\", \"full_attention\",", RUNG_CORRUPT_FILE,
       "layer_types names more layers"},
      {"gemma3", "\"sliding_window\": 8,", "", RUNG_NOT_FOUND, "sliding_window is missing"},
      {"gemma3", "\"head_dim\": 16", "\"head_dim\": 0", RUNG_CORRUPT_FILE, "head_dim is 0"},
  };
  check_changes(TINY, "-f32", changes, RUNG_COUNT(changes));
  rung_error error;
  CHECK_OK(try_config(TINY "llama-f32", "\"rope_theta\": 10000.0", "\"rope_parameters\": {\"rope_theta\": 10000.0}",
                      &error));
  CHECK_OK(try_config(TINY "llama-f32", "\"rope_scaling\": null",
                      "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}", &error));
}

/* ---- the format aligns nothing: one blank in the header puts every tensor at an odd offset */

static void check_odd(const char *family, const char *form) {
  char path[1200];
  size_t bytes;
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s-%s/config.json", family, form);
  char *text = read_text(path, &bytes);
  write_file("config.json", text, bytes);
  free(text);
  snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/%s-%s/model.safetensors", family, form);
  text = read_text(path, &bytes);
  const size_t header = 8 + (size_t)(uint8_t)text[0] + ((size_t)(uint8_t)text[1] << 8);
  CHECK(bytes > header && text[2] == 0);
  memmove(text + header + 1, text + header, bytes - header);
  text[header] = ' ';
  const size_t length = header - 8 + 1;
  text[0] = (char)(length & 255);
  text[1] = (char)(length >> 8);
  snprintf(path, sizeof path, "%s/model.safetensors", scratch);
  unlink(path);
  write_file("model.safetensors", text, bytes + 1);
  free(text);
  static const char *const devices[] = {"cpu", "ref"};
  for (size_t d = 0; d < RUNG_COUNT(devices); d++) {
    world w;
    const rung_status status = open_world(&w, devices[d], scratch, RUNG_QUANT_EXACT, RUNG_SOURCE_MAP);
    CHECK_OK(status);
    if (!status) compare(&w, devices[d], family, form);
    close_world(&w);
  }
}

static void test_odd_offsets(void) {
  for (size_t f = 0; f < RUNG_COUNT(families); f++)
    for (size_t i = 0; i < 3; i++) check_odd(families[f], forms[i]);
}

/* ---- opening, with each call that can fail failing once */

static void test_faults(void) {
  world w = {0};
  CHECK_OK(rung_host_create(NULL, &w.error, &w.host));
  CHECK_OK(rung_device_create(w.host, "ref", NULL, &w.error, &w.device));
  const uint64_t before = rung_host_memory(w.host).host;
  int64_t fired = 0;
  for (size_t f = 0; f < RUNG_COUNT(forms); f += RUNG_COUNT(forms) - 1) { /* one file, and two */
    for (int kind = 0; kind < RUNG_FAULTS; kind++) {
      for (int64_t n = 1;; n++) {
        char path[1200];
        snprintf(path, sizeof path, RUNG_SOURCE_DIR "/tests/models/tiny/gemma3-%s", forms[f]);
        test_fault fault = {.kind = (rung_fault)kind, .at = n};
        rung_source source = rung_source_path(path);
        source.mode = n % 2 ? RUNG_SOURCE_COPY : RUNG_SOURCE_MAP;
        if (kind == RUNG_FAULT_MAP) source.mode = RUNG_SOURCE_MAP;
        rung_model *model = NULL;
        rung_host_set_fault(w.host, test_fault_hit, &fault);
        const rung_status status = rung_model_open(w.device, &source, NULL, &w.error, &model);
        rung_host_set_fault(w.host, NULL, NULL);
        CHECK((status == RUNG_OK) == !fault.hit);
        if (!status) rung_model_release(model);
        CHECK_EQ_I64(rung_host_memory(w.host).host, before);
        CHECK_EQ_I64(rung_host_memory(w.host).weights, 0);
        if (!fault.hit) break;
        fired++;
      }
    }
  }
  CHECK(fired > 40);
  printf("%" PRId64 " calls, each failed once\n", fired);
  close_world(&w);
}

int main(void) {
  if (!begin_scratch()) return 1;
  RUN(test_numbers_cpu);
  RUN(test_numbers_ref);
  RUN(test_ways);
  RUN(test_configurations);
  RUN(test_odd_offsets);
  RUN(test_faults);
  end_scratch();
  return TEST_END();
}
