/* SPDX-License-Identifier: MIT
 * A real model: eight generators take its weights and packed forms once; a weight set in its view reaches all of them,
 * and setting it back gives the bits from before. */
#include <rung/model.h>

#include "../test.h"
#include "fetched.h"

enum { GENERATORS = 8, IDS = 9, EXTRA = 1 << 20 };
static const int32_t text[IDS] = {1, 504, 3575, 17, 4016, 282, 9, 338, 25};

static uint64_t resident(void) {
  FILE *f = fopen("/proc/self/status", "r");
  char line[256];
  unsigned long long kb = 0;
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, "VmRSS:", 6) == 0) sscanf(line + 6, "%llu", &kb);
  if (f) fclose(f);
  return (uint64_t)kb * 1024;
}

/* Reads the text from the start; the bits of the last row's logits as one number. */
static uint64_t logits_of(rung_generator *g) {
  const rung_rows rows = {.slot = 0, .count = IDS};
  const int32_t wanted = IDS - 1;
  const float *logits = NULL;
  CHECK_OK(rung_generator_reset(g, 0));
  CHECK_OK(rung_generator_run(g, &rows, 1, text, &wanted, 1, &logits));
  uint64_t h = 14695981039346656037u;
  const uint8_t *bytes = (const uint8_t *)logits;
  for (size_t i = 0; logits && i < 49152 * sizeof(float); i++) h = (h ^ bytes[i]) * 1099511628211u;
  return h;
}

static uint64_t own_bytes(rung_generator *g) {
  const rung_memory m = rung_context_memory(rung_generator_context(g));
  return m.activations + m.scratch + rung_state_bytes(rung_generator_state(g));
}
static uint64_t total(rung_host *host) {
  const rung_memory m = rung_host_memory(host);
  return m.weights + m.packed + m.activations + m.state + m.scratch + m.cache + m.load + m.host;
}

/* Doubled it is another model, and with the old numbers again the old one. */
static void check_sets(rung_model *model, rung_generator *const *g, uint64_t before) {
  rung_error error;
  rung_view *view = rung_model_view(model);
  float norm[576], twice[576];
  CHECK_OK(rung_view_get_weight(view, "output_norm.weight", 0, RUNG_TYPE_F32, norm, sizeof norm, &error));
  for (int i = 0; i < 576; i++) twice[i] = 2 * norm[i];
  CHECK_OK(rung_view_set_weight(view, "output_norm.weight", RUNG_TYPE_F32, twice, sizeof twice, &error));
  CHECK(logits_of(g[0]) == before);
  CHECK_OK(rung_view_commit(view, &error));
  const uint64_t other = logits_of(g[0]);
  CHECK(other != before);
  for (int i = 1; i < GENERATORS; i++) CHECK(logits_of(g[i]) == other);
  CHECK_OK(rung_view_set_weight(view, "output_norm.weight", RUNG_TYPE_F32, norm, sizeof norm, &error));
  CHECK_OK(rung_view_commit(view, &error));
  for (int i = 0; i < GENERATORS; i++) CHECK(logits_of(g[i]) == before);
}

static void test_generators(void) {
  char path[1024];
  if (!fetched_model("smollm2", path, sizeof path)) SKIP("%s is not there", path);
  if (test_slow()) SKIP("too slow here");
  rung_host *host;
  rung_device *device;
  rung_model *model;
  rung_generator *g[GENERATORS];
  rung_error error;
  const rung_source source = rung_source_path(path);
  rung_generate_options options = rung_generate_options_default();
  options.context = 256;
  options.chunk = 64;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  CHECK_OK(rung_device_create(host, "cpu", NULL, &error, &device));
  CHECK_OK(rung_model_open(device, &source, NULL, &error, &model));
  uint64_t process = 0, account = 0, most[2] = {0, 0}, bits = 0;
  rung_memory first = {0};
  for (int i = 0; i < GENERATORS; i++) {
    CHECK_OK(rung_generator_create(model, &options, &error, &g[i]));
    const uint64_t now = logits_of(g[i]), process_now = resident(), account_now = total(host), own = own_bytes(g[i]);
    const rung_memory m = rung_model_memory(model);
    if (i == 0) {
      bits = now;
      first = m;
    } else {
      const int64_t grown = (int64_t)(process_now - process) - (int64_t)own;
      CHECK(now == bits);
      CHECK(m.packed == first.packed && m.weights == first.weights);
      CHECK(account_now - account - own < EXTRA);
      CHECK(grown < EXTRA);
      if (account_now - account - own > most[0]) most[0] = account_now - account - own;
      if (grown > (int64_t)most[1]) most[1] = (uint64_t)grown;
    }
    process = process_now, account = account_now;
  }
  printf("weights %" PRIu64 ", packed %" PRIu64 " bytes for all; each further generator at most %" PRIu64
         " bytes by the host's account, %" PRIu64 " of the process, besides its arena and states\n",
         first.weights, first.packed, most[0], most[1]);
  check_sets(model, g, bits);
  for (int i = 0; i < GENERATORS; i++) rung_generator_destroy(g[i]);
  rung_view_trim(rung_model_view(model));
  CHECK_EQ_I64(rung_model_memory(model).packed, 0);
  rung_model_release(model);
  rung_device_release(device);
  const rung_memory left = rung_host_memory(host);
  CHECK_EQ_I64(left.weights + left.packed + left.activations + left.state + left.scratch, 0);
  rung_host_release(host);
}

int main(void) {
  RUN(test_generators);
  return TEST_END();
}
