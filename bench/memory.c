/* SPDX-License-Identifier: MIT
 * What a model takes: predicted by class, counted, and as the kernel sees it.
 *
 *   memory MODEL [--prompt N] [--decode N] [--context N] [--threads N] [--sequences N] [--kv f16|f32] [--exact]
 *          [--json]
 *
 * Loads the model, reads a prompt, decodes, and does both once more. VmHWM is reset just before the load. */
#define _GNU_SOURCE
#include "../tests/models/memory.h"

#include <stdlib.h>

static int usage(void) {
  fprintf(stderr,
          "usage: memory MODEL [--prompt N] [--decode N] [--context N] [--threads N] [--sequences N] [--kv f16|f32] "
          "[--exact] [--json]\n"
          "example: memory model.gguf --prompt 512 --decode 64 --context 2048 --threads 2\n");
  return 2;
}

static bool number(const char *flag, const char *name, const char *value, int64_t *out) {
  if (strcmp(flag, name) != 0) return false;
  *out = strtoll(value, NULL, 10);
  return true;
}

static bool parse(int count, char **argument, memory_case *c, bool *json) {
  int64_t threads = c->threads, sequences = c->sequences;
  for (int i = 2; i < count; i++) {
    const char *flag = argument[i], *value = i + 1 < count ? argument[i + 1] : NULL;
    if (strcmp(flag, "--json") == 0) {
      *json = true;
    } else if (strcmp(flag, "--exact") == 0) {
      c->quant = RUNG_QUANT_EXACT;
    } else if (value && strcmp(flag, "--kv") == 0) {
      c->kv = strcmp(value, "f32") == 0 ? RUNG_TYPE_F32 : RUNG_TYPE_F16;
      i++;
    } else if (value && (number(flag, "--prompt", value, &c->prompt) || number(flag, "--decode", value, &c->decode) ||
                         number(flag, "--context", value, &c->context) || number(flag, "--threads", value, &threads) ||
                         number(flag, "--sequences", value, &sequences))) {
      i++;
    } else {
      return false;
    }
  }
  c->threads = (int)threads;
  c->sequences = (int32_t)sequences;
  return c->prompt > 0 && c->decode > 0 && threads >= 0 && sequences > 0;
}

static void print_json(const memory_result *r) {
  printf("{");
#define X(name, text) \
  printf("\"predicted_%s\": %" PRIu64 ", \"held_%s\": %" PRIu64 ", ", #name, r->predicted.name, #name, r->held.name);
  RUNG_MEMORY_MAP(X)
#undef X
  printf("\"predicted_most\": %" PRIu64 ", \"peak\": %" PRIu64 ", \"host_most\": %" PRIu64 ", \"metadata\": %" PRIu64,
         memory_most(&r->predicted), r->peak, r->host_most, r->metadata);
  printf(", \"before\": %" PRIu64 ", \"most\": %" PRIu64 ", \"anonymous\": %" PRIu64 ", \"file_backed\": %" PRIu64,
         r->before, r->most, r->anonymous, r->file_backed);
  printf(", \"later_allocations\": %" PRIu64 ", \"later_commits\": %" PRIu64 "}\n", r->later_allocations,
         r->later_commits);
}

static void print_table(const memory_result *r) {
  printf("%-12s %14s %14s\n", "class", "predicted", "held");
#define X(name, text)                    \
  if (r->predicted.name || r->held.name) \
    printf("%-12s %14" PRIu64 " %14" PRIu64 "\n", #name, r->predicted.name, r->held.name);
  RUNG_MEMORY_MAP(X)
#undef X
  const uint64_t promised = memory_most(&r->predicted) + r->host_most, seen = r->most - r->before;
  printf("%-12s %14" PRIu64 " %14" PRIu64 "  (peak of the account)\n", "most", memory_most(&r->predicted), r->peak);
  printf("host at most %" PRIu64 ", metadata of the file %" PRIu64 "\n", r->host_most, r->metadata);
  printf("VmHWM before the load %" PRIu64 ", after %" PRIu64 ": %" PRIu64 " more; prediction + host %" PRIu64
         " (%+.2f%%, %+" PRId64 " bytes)\n",
         r->before, r->most, seen, promised, 100 * ((double)seen / (double)promised - 1), (int64_t)(seen - promised));
  printf("resident at the end: %" PRIu64 " anonymous, %" PRIu64 " of files\n", r->anonymous, r->file_backed);
  printf("the same again: %" PRIu64 " allocations, %" PRIu64 " commits\n", r->later_allocations, r->later_commits);
}

int main(int count, char **argument) {
  bool json = false;
  if (count < 2 || argument[1][0] == '-') return usage();
  memory_case c = {.path = argument[1],
                   .quant = RUNG_QUANT_FAST,
                   .kv = RUNG_TYPE_F16,
                   .prompt = 512,
                   .decode = 64,
                   .context = 2048,
                   .sequences = 1};
  if (!parse(count, argument, &c, &json)) return usage();
  rung_error error = {0};
  memory_result result;
  if (memory_run(&c, &error, &result)) {
    fprintf(stderr, "memory: %s\n", error.message);
    return 1;
  }
  if (json)
    print_json(&result);
  else
    print_table(&result);
  return 0;
}
