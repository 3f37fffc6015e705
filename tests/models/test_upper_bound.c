/* SPDX-License-Identifier: MIT
 * An upper bound that is not reached costs next to nothing: a model compiled for 2,048 rows and run at 64 takes at most
 * 1.75 times the memory of one compiled for 64, and one page for each buffer. By what is predicted, which runs are held
 * to elsewhere (test_memory). */
#include "fetched.h"

#include "../test.h"
#include "models/model.h"
#include "runtime/runtime.h"

static void check(const char *name) {
  char path[512];
  if (test_slow()) SKIP("too slow here");
  if (!fetched_model(name, path, sizeof path)) SKIP("%s is not fetched", name);
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_model *model = NULL;
  rung_error error = {0};
  const rung_source source = rung_source_path(path);
  CHECK_OK(rung_host_create(NULL, &error, &host));
  CHECK_OK(rung_device_create(host, "cpu", NULL, &error, &device));
  CHECK_OK(rung_model_open(device, &source, NULL, &error, &model));
  rung_memory at[2] = {{0}};
  uint32_t buffers = 0;
  for (int k = 0; k < 2 && model; k++) {
    rung_generate_options o = rung_generate_options_default();
    rung_template *t = NULL;
    rung_program *p = NULL;
    o.chunk = k ? 64 : 2048;
    o.context = 2048;
    CHECK_OK(rung_model_compile(model, &o, &error, &t, &p));
    const int64_t length = 64;
    const rung_binding now[] = {{"rows", 64}, {"sequences", 1}, {"wanted", 1}};
    const rung_lengths lengths = {.sequences = 1, .length = &length, .capacity = o.context, .chunk = o.chunk};
    CHECK_OK(rung_program_memory(p, now, 3, &lengths, &error, &at[k]));
    if (p) buffers = p->plan->buffers;
    rung_program_release(p);
    rung_template_release(t);
  }
  const double large = (double)(at[0].activations + at[0].scratch + at[0].state);
  const double fit = (double)(at[1].activations + at[1].scratch + at[1].state);
  printf("%s compiled for 2048, at 64: %.0f KiB beside the weights, %.2f times what one compiled for 64 takes\n", name,
         large / 1024, large / fit);
  CHECK(fit > 0 && large <= 1.75 * fit + (double)buffers * (double)rung_host_page(host));
  CHECK_EQ_I64(at[0].packed, at[1].packed);
  rung_model_release(model);
  rung_device_release(device);
  rung_host_release(host);
}

static void test_smollm2(void) { check("smollm2"); }
static void test_gemma3(void) { check("gemma3"); }

int main(void) {
  RUN(test_smollm2);
  RUN(test_gemma3);
  return TEST_END();
}
