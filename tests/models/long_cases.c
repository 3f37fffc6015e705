/* SPDX-License-Identifier: MIT
 * Case 12 on a real model: what a further session takes, and that loading, running and dropping a model leaves nothing.
 */
#include <malloc.h>

#include "../process.h"
#include "fetched.h"
#include "tiny_world.h"

/* Bytes of the process that are resident and its own. What the C library keeps of freed memory comes and goes, round by
 * round: it is given back first. */
static uint64_t resident(void) {
  malloc_trim(0);
  return process_bytes("RssAnon");
}

static bool read_some(tiny *t, rung_generator *g, int which) {
  tiny_greedy(g, 1);
  tiny_texts texts = {0};
  CHECK_OK(tiny_prompt(t, g, 0, which, 100));
  return tiny_go_on(g, 1, 4, &texts);
}

static void test_eight_sessions(void) {
  char path[512];
  if (!fetched_model("smollm2", path, sizeof path)) SKIP("smollm2 is not fetched");
  tiny t;
  if (tiny_open(&t, path, 2)) {
    rung_generator *g[8] = {NULL};
    const rung_generate_options o = tiny_options(1, 512, 128);
    for (int i = 0; i < 8; i++) {
      const uint64_t before = tiny_held(&t);
      const rung_memory first = rung_host_memory(t.host);
      g[i] = tiny_generator(&t, &o);
      if (!g[i] || !read_some(&t, g[i], i)) break;
      const rung_memory now = rung_host_memory(t.host);
      const rung_memory own = rung_context_memory(rung_generator_context(g[i]));
      const uint64_t more =
          tiny_held(&t) - before - own.activations - own.scratch - rung_state_bytes(rung_generator_state(g[i]));
      if (i == 0) continue; /* the first one packs and compiles */
      CHECK_EQ_I64(now.packed, first.packed);
      CHECK_EQ_I64(now.weights, first.weights);
      CHECK(more < (1 << 20));
      if (i == 7) printf("the eighth session: %" PRIu64 " bytes beyond arena and state\n", more);
    }
    for (int i = 0; i < 8; i++) rung_generator_destroy(g[i]);
  }
  tiny_close(&t);
}

static void test_ten_rounds(void) {
  char path[512];
  if (!fetched_model("smollm2", path, sizeof path)) SKIP("smollm2 is not fetched");
  uint64_t first = 0;
  for (int round = 0; round < 10; round++) {
    tiny t;
    if (tiny_open(&t, path, 2)) {
      const rung_generate_options o = tiny_options(1, 256, 128);
      rung_generator *g = tiny_generator(&t, &o);
      if (g) CHECK(read_some(&t, g, round));
      rung_generator_destroy(g);
    }
    tiny_close(&t);
    if (round == 0) first = resident();
    CHECK(resident() < first + (1 << 20));
  }
  printf("resident after the first round %" PRIu64 " bytes, after the tenth %" PRIu64 "\n", first, resident());
}

int main(void) {
  RUN(test_eight_sessions);
  RUN(test_ten_rounds);
  return TEST_END();
}
