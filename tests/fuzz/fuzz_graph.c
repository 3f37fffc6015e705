/* SPDX-License-Identifier: MIT
 * Fuzz target of compiling and running: the bytes choose a valid graph and its sizes; the cpu device must agree with
 * the reference within what the graph allows, and with itself bit for bit whatever it was compiled for. */
#include "cts/random_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static rg_run run;

static bool open_devices(void) {
  rung_device_options o = rung_device_options_default();
  o.threads = 2;
  return !rung_host_create(NULL, NULL, &run.host) && !rung_device_create(run.host, "ref", NULL, NULL, &run.ref) &&
         !rung_device_create(run.host, "cpu", &o, NULL, &run.cpu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!run.cpu && !open_devices()) return 0;
  rg_choices c = {.data = data, .bytes = size};
  if (!size || rg_once(&run, &c, 2)) return 0;
  fprintf(stderr, "%s\n", run.why);
  abort();
}
