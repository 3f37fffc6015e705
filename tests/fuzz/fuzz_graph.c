/* SPDX-License-Identifier: MIT
 * Fuzz target of compiling and running: the bytes choose a valid graph and its sizes; the cpu device must agree with the
 * reference within what the graph allows, and with itself bit for bit whatever it was compiled for.
 *
 * The fuzz preset links its targets to the readers alone, and there this one does nothing. With the whole library:
 *   cmake --preset fuzz && cmake --build --preset fuzz --target rung_static
 *   clang -std=c11 -O2 -g1 -fsanitize=fuzzer,address,undefined -DRUNG_FUZZ_WHOLE -Isrc -Iinclude -Itests \
 *     tests/fuzz/fuzz_graph.c build/fuzz/librung.a -lpcre2-8 -lutf8proc -lm -lpthread -o /tmp/fuzz_graph
 *   mkdir -p /tmp/found && /tmp/fuzz_graph -max_len=4096 -max_total_time=60 /tmp/found tests/fuzz/corpus/fuzz_graph */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#if defined(__has_feature)
#if __has_feature(coverage_sanitizer) && !defined(RUNG_FUZZ_WHOLE)
#define LEFT_OUT
#endif
#endif

#ifdef LEFT_OUT
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  (void)data, (void)size;
  return 0;
}
#else
#include "cts/random_run.h"

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
#endif
