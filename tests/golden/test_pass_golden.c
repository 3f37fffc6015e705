/* SPDX-License-Identifier: MIT
 * Passes as text in, text out. A file tests/golden/<name>.rung holds
 *
 *   # what the case is about
 *   # pass: fold common          the passes to run, one after another; "all" for the whole pipeline
 *   # precision: bf16            optional: the policy by name, or the types of its five categories
 *   <graph>
 *   ----
 *   <what comes out>
 *   ---- report                  optional: the lines that `inspect --fused` prints
 *   <lines>
 *   ---- refused                 instead of both: the message
 *
 * RUNG_GOLDEN_WRITE=1 writes what comes out into the files, to be read before it is committed. */
#include <dirent.h>

#include "../test.h"
#include "passes/pass.h"
#include "toy_target.h"

enum { MOST = 1 << 16 };

typedef struct golden {
  char path[512], text[MOST];
  char passes[256];
  rung_precision precision;
  const char *graph; /* in text */
  size_t graph_bytes;
  const char *expected; /* behind the first separator, NULL: none yet */
} golden;

static bool read_policy(golden *g) {
  static const char line[] = "# precision: ";
  const char *policy = strstr(g->text, line);
  char text[64], *name = text, *next;
  g->precision = rung_precision_f32();
  if (!policy || policy > g->graph) return true;
  policy += strlen(line);
  snprintf(text, sizeof text, "%.*s", (int)strcspn(policy, "\n"), policy);
  if (!strchr(text, ' ')) return rung_precision_find(text, &g->precision);
  rung_type *const category[] = {&g->precision.compute, &g->precision.reduction, &g->precision.elementwise,
                                 &g->precision.movement, &g->precision.boundary};
  for (size_t i = 0; i < RUNG_COUNT(category); i++, name = next) {
    next = name + strcspn(name, " ");
    if (*next) *next++ = 0;
    if (!rung_type_find(name, category[i])) return false;
  }
  return true;
}

static bool read_golden(golden *g) {
  FILE *f = fopen(g->path, "rb");
  if (!f) return false;
  const size_t n = fread(g->text, 1, MOST - 1, f);
  fclose(f);
  g->text[n] = 0;
  const char *passes = strstr(g->text, "# pass: ");
  g->graph = strstr(g->text, "rung 1\n");
  if (!passes || !g->graph || n == MOST - 1) return false;
  if (!read_policy(g)) return false;
  snprintf(g->passes, sizeof g->passes, "%.*s", (int)strcspn(passes + 8, "\n"), passes + 8);
  const char *end = strstr(g->graph, "\n----");
  g->graph_bytes = end ? (size_t)(end + 1 - g->graph) : strlen(g->graph);
  g->expected = end ? end + 1 : NULL;
  return true;
}

static rung_status run_passes(rung_pass_env *env, const char *names, rung_graph **graph) {
  char list[256];
  snprintf(list, sizeof list, "%s", names);
  for (char *name = strtok(list, " "); name; name = strtok(NULL, " ")) {
    rung_graph *next = NULL;
    RUNG_TRY(strcmp(name, "all") == 0 ? rung_pipeline_run(env, *graph, &next)
                                      : rung_pipeline_pass(env, name, *graph, &next));
    rung_graph_destroy(*graph);
    *graph = next;
  }
  return RUNG_OK;
}

/* What stands behind the graph: "----\n" and the result. */
static void compute(rung_host *host, const golden *g, rung_text *out) {
  rung_error error = {RUNG_OK, ""};
  rung_graph *graph = NULL;
  rung_text report;
  rung_text_init(&report, host);
  const rung_target target = toy_target();
  rung_compile_options options = rung_compile_options_default();
  options.precision = g->precision;
  rung_pass_env env = {.host = host, .target = &target, .options = &options, .error = &error, .report = &report};
  rung_status status = rung_graph_parse(host, g->graph, g->graph_bytes, &error, &graph);
  if (!status) status = run_passes(&env, g->passes, &graph);
  if (status) {
    rung_text_printf(out, "---- refused\n%s\n", error.message);
  } else {
    rung_text_puts(out, "----\n");
    rung_graph_print_text(graph, out);
    if (report.length) rung_text_printf(out, "---- report\n%s", report.data);
    /* What is printed can be read. */
    rung_graph *again = NULL;
    rung_text text;
    rung_text_init(&text, host);
    rung_graph_print_text(graph, &text);
    CHECK_OK(rung_graph_parse(host, text.data, text.length, &error, &again));
    rung_text_finish(&text);
    rung_graph_destroy(again);
  }
  rung_graph_destroy(graph);
  rung_text_finish(&report);
}

static void show_first_difference(const char *path, const char *want, const char *have) {
  while (*want && *want == *have) {
    want++;
    have++;
  }
  fprintf(stderr, "%s: expected \"%.60s\", found \"%.60s\"\n", path, want, have);
}

static void write_golden(const golden *g, const char *result) {
  FILE *f = fopen(g->path, "wb");
  if (!f) return;
  fwrite(g->text, 1, (size_t)(g->graph - g->text) + g->graph_bytes, f);
  fputs(result, f);
  fclose(f);
}

static void check_file(rung_host *host, const char *name) {
  static golden g;
  snprintf(g.path, sizeof g.path, "%s/tests/golden/%s", RUNG_SOURCE_DIR, name);
  CHECK(read_golden(&g));
  if (!g.graph) return;
  rung_text result;
  rung_text_init(&result, host);
  compute(host, &g, &result);
  const bool same = g.expected && strcmp(g.expected, result.data) == 0;
  if (!same && getenv("RUNG_GOLDEN_WRITE")) {
    write_golden(&g, result.data);
  } else {
    CHECK(same);
    if (!same) show_first_difference(name, g.expected ? g.expected : "", result.data);
  }
  rung_text_finish(&result);
}

static void test_files(void) {
  rung_host *host;
  rung_error error;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  const uint64_t before = rung_host_memory(host).host;
  DIR *folder = opendir(RUNG_SOURCE_DIR "/tests/golden");
  CHECK(folder != NULL);
  int files = 0;
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    const size_t n = strlen(entry->d_name);
    if (n < 5 || strcmp(entry->d_name + n - 5, ".rung") != 0) continue;
    check_file(host, entry->d_name);
    files++;
  }
  if (folder) closedir(folder);
  printf("%d files\n", files);
  CHECK(files > 0);
  CHECK_EQ_I64(rung_host_memory(host).host, before);
  rung_host_release(host);
}

int main(void) {
  RUN(test_files);
  return TEST_END();
}
