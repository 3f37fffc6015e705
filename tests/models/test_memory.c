/* SPDX-License-Identifier: MIT
 * Known memory: what is predicted before anything is taken equals, class by class, what the allocator and the page
 * calls give out; the kernel's high-water mark agrees; the same text again takes nothing. */
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>

#include "../test.h"
#include "fetched.h"
#include "memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#define TINY(name) RUNG_SOURCE_DIR "/tests/models/tiny/" name ".gguf"

/* The program's own code, its libraries and the threads' stacks become resident when they are first used; they are no
 * memory of a model, so a tiny one runs first where the process is looked at. */
static rung_status warm_up(rung_error *error) {
  const memory_case tiny = {.path = TINY("gemma3"),
                            .kv = RUNG_TYPE_F16,
                            .prompt = 9,
                            .decode = 2,
                            .context = 64,
                            .sequences = 1,
                            .threads = 2};
  memory_result ignored;
  RUNG_TRY(memory_run(&tiny, error, &ignored));
#ifdef __GLIBC__
  malloc_trim(0); /* or what it left free would be used again */
#endif
  return RUNG_OK;
}

/* Every case runs in a process of its own, so that no other leaves resident pages or free heap behind. */
static bool in_child(const memory_case *c, memory_result *out) {
  int channel[2];
  if (pipe(channel)) return false;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    rung_error error = {0};
    memory_result result;
    rung_status status = c->counted ? RUNG_OK : warm_up(&error);
    if (!status) status = memory_run(c, &error, &result);
    if (status) fprintf(stderr, "  %s: %s\n", c->path, error.message);
    const bool sent = !status && write(channel[1], &result, sizeof result) == (ssize_t)sizeof result;
    _exit(sent ? 0 : 1);
  }
  close(channel[1]);
  const bool received = child > 0 && read(channel[0], out, sizeof *out) == (ssize_t)sizeof *out;
  close(channel[0]);
  int status = 1;
  if (child > 0) waitpid(child, &status, 0);
  return received && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void check_classes(const memory_case *c, const memory_result *r) {
#define X(name, text)                                                                      \
  if (RUNG_MEMORY_##name != RUNG_MEMORY_host && RUNG_MEMORY_##name != RUNG_MEMORY_load) {  \
    if (r->held.name != r->predicted.name) fprintf(stderr, "  %s, %s:\n", c->path, #name); \
    CHECK_EQ_I64(r->held.name, r->predicted.name);                                         \
  }
  RUNG_MEMORY_MAP(X)
#undef X
  CHECK_EQ_I64(r->held.load, 0);
  /* The highest total is that of running, or is met while the last form is packed: never above the prediction. */
  const uint64_t most = memory_most(&r->predicted),
                 running = most == r->predicted.weights + r->predicted.packed + r->predicted.load ? 0 : most;
  if (running) CHECK_EQ_I64(r->peak, most);
  CHECK(r->peak <= most);
  CHECK(r->host_most <= 3 * r->metadata + (2 << 20));
  CHECK_EQ_I64(r->later_allocations, 0);
  CHECK_EQ_I64(r->later_commits, 0);
}

/* The account against an allocator that counts for itself. */
static void check_counted(memory_case c) {
  memory_result r;
  c.counted = true;
  CHECK(in_child(&c, &r));
  check_classes(&c, &r);
  uint64_t all = 0;
#define X(name, text) all += r.held.name;
  RUNG_MEMORY_MAP(X)
#undef X
  CHECK_EQ_I64(r.counted, all - r.in_place);
}

/* The kernel's figure. Sanitizers keep their own books in the process, so nothing can be said there. */
static void check_process(const memory_case *c) {
  memory_result r;
  CHECK(in_child(c, &r));
  check_classes(c, &r);
  if (test_slow() || !r.before) return;
  const uint64_t promised = memory_most(&r.predicted) + r.held.host, seen = r.most - r.before,
                 slack = promised / 100 + (1 << 20);
  const char *name = strrchr(c->path, '/') + 1;
  printf("%s: predicted %" PRIu64 " + host %" PRIu64 ", VmHWM rose by %" PRIu64 " (%+.2f%%); at the end %" PRIu64
         " anonymous, %" PRIu64 " of files\n",
         name, memory_most(&r.predicted), r.held.host, seen, ((double)seen / (double)promised - 1) * 100, r.anonymous,
         r.file_backed);
  CHECK(seen <= promised + slack);
  CHECK(seen + slack >= promised);
}

static void check_tiny(const char *path) {
  static const rung_type kv[] = {RUNG_TYPE_F16, RUNG_TYPE_F32};
  for (int quant = 0; quant < 2; quant++) {
    for (int k = 0; k < 2; k++) {
      for (int32_t sequences = 1; sequences <= 3; sequences += 2) {
        const memory_case c = {.path = path,
                               .quant = quant ? RUNG_QUANT_EXACT : RUNG_QUANT_FAST,
                               .kv = kv[k],
                               .prompt = 37,
                               .decode = 30,
                               .context = 96,
                               .sequences = sequences,
                               .threads = 2};
        check_counted(c);
        if (sequences == 1) check_process(&c);
      }
    }
  }
}

static void test_tiny_llama(void) {
  if (!RUNG_HAVE_PCRE2) SKIP("its pre-tokeniser needs PCRE2");
  check_tiny(TINY("llama"));
}
static void test_tiny_gemma3(void) { check_tiny(TINY("gemma3")); }

static void check_real(const char *name) {
  char path[1024];
  if (!fetched_model(name, path, sizeof path)) SKIP("%s is not there", path);
  if (test_slow()) SKIP("too slow here");
  memory_case c = {.path = path,
                   .quant = RUNG_QUANT_FAST,
                   .kv = RUNG_TYPE_F16,
                   .prompt = 512,
                   .decode = 64,
                   .context = 2048,
                   .sequences = 1,
                   .threads = 2};
  check_process(&c);
  check_counted(c);
  c.quant = RUNG_QUANT_EXACT;
  c.kv = RUNG_TYPE_F32;
  c.prompt = 64;
  c.decode = 8;
  check_process(&c);
}

static void test_smollm2(void) {
  if (!RUNG_HAVE_PCRE2) SKIP("its pre-tokeniser needs PCRE2");
  check_real("smollm2");
}
static void test_gemma3(void) { check_real("gemma3"); }

int main(void) {
  RUN(test_tiny_llama);
  RUN(test_tiny_gemma3);
  RUN(test_smollm2);
  RUN(test_gemma3);
  return TEST_END();
}
