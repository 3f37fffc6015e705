/* SPDX-License-Identifier: MIT
 * Outputs that are not wanted: which steps are left out, and that everything else is as if they were wanted; of runs and
 * of submitted runs, on the host's devices and one whose memory is far. With the argument "cuda" on the GPU. */
#include "cts/submit_world.h"

enum { N = 5 };

/* p = softmax(x); q = cumsum(p), r = cumsum(x); random numbers u and v; s holds x. */
static const char text[] =
    "rung 1\nsymbol n 1..64\n"
    "%x = input {name=\"x\"} : f32[n]\n"
    "%s = state {name=\"s\"} : state f32[5]\n"
    "%v0 = input {name=\"v\"} : f32[5]\n"
    "%p = softmax %x\n"
    "%q = cumsum %p\n"
    "%r = cumsum %x\n"
    "%u = random_uniform {shape=[n]}\n"
    "%v = random_uniform {shape=[n]}\n"
    "%t = assign %s, %v0\n"
    "output \"p\" %p\noutput \"q\" %q\noutput \"r\" %r\noutput \"u\" %u\noutput \"v\" %v\n";
enum { OUT_P, OUT_Q, OUT_R, OUT_U, OUT_V, OUTS };

static void count_step(void *self, const rung_step_info *info) {
  int *counts = self;
  counts[0]++;
  counts[1] += strcmp(info->op, "softmax") == 0;
  counts[2] += strcmp(info->op, "cumsum") == 0;
}

static bool open_it(world *w, int device) {
  const rung_state_options so = rung_state_options_default();
  return submit_open(w, text, device, &(world_options){.state = &so, .seed = 7});
}

static bool run_it(world *w, int round) {
  return world_put_ramp(w, 0, N, (float)round) && world_put_ramp(w, 1, 5, (float)(10 * round)) && world_run(w);
}

/* Every set of outputs in turn, on one context, beside a context that wants all of them each time. */
/* far_world.h is one device at a time: beside it stands the one that it is made of. */
static int beside(int device) { return device == SUBMIT_FAR ? SUBMIT_REF : device; }

static void check_sets(int device) {
  world all, some;
  const bool both = open_it(&all, beside(device)), too = open_it(&some, device) && both;
  int taken[3], whole[3] = {0};
  rung_context_on_step(some.context, count_step, taken);
  for (unsigned set = 0; too && set < 1u << OUTS; set++) {
    const unsigned wanted = set ^ set >> 1; /* one changes at a time */
    for (int i = 0; i < OUTS; i++) CHECK_OK(rung_context_want_output(some.context, i, wanted >> i & 1));
    memset(taken, 0, sizeof taken);
    CHECK(run_it(&all, (int)set) && run_it(&some, (int)set));
    for (int i = 0; i < OUTS; i++) {
      rung_tensor x = world_output(&all, i), y;
      CHECK_STATUS(rung_context_output(some.context, i, &y), wanted >> i & 1 ? RUNG_OK : RUNG_INVALID_ARGUMENT);
      if (wanted >> i & 1) CHECK(memcmp(x.data, y.data, N * sizeof(float)) == 0);
      if (!(wanted >> i & 1)) CHECK(strstr(rung_context_message(some.context), "not wanted") != NULL);
    }
    rung_tensor s, t;
    if (device < SUBMIT_FAR) {
      CHECK_OK(rung_state_tensor(all.state, "s", &all.error, &s));
      CHECK_OK(rung_state_tensor(some.state, "s", &some.error, &t));
      CHECK(memcmp(s.data, t.data, 5 * sizeof(float)) == 0 && *(float *)s.data == (float)(10 * set));
    }
    const bool p = wanted >> OUT_P & 1, q = wanted >> OUT_Q & 1, r = wanted >> OUT_R & 1;
    CHECK_EQ_I64(taken[1], p || q);
    CHECK_EQ_I64(taken[2], q + r);
    if (wanted == (1u << OUTS) - 1) memcpy(whole, taken, sizeof taken);
    world_check_memory(&some, (const rung_binding[]){{"n", N}}, 1);
  }
  CHECK(whole[0] > 5);
  world_close(&all);
  world_close(&some);
}
static void test_sets(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) check_sets(d);
}

/* Two runs in flight that want different outputs: each gives its own. */
static void check_submitted(int device) {
  world all, some;
  const bool both = open_it(&all, beside(device)), too = open_it(&some, device) && both;
  for (int round = 0; too && round < 12; round++) {
    uint64_t ticket[2];
    const unsigned wanted[2] = {(unsigned)round % 31u + 1u, (unsigned)(7 * round + 5) % 32u};
    for (int k = 0; k < 2; k++) {
      for (int i = 0; i < OUTS; i++) CHECK_OK(rung_context_want_output(some.context, i, wanted[k] >> i & 1));
      CHECK(world_put_ramp(&some, 0, N, (float)(2 * round + k)) && world_put_ramp(&some, 1, 5, 0));
      ticket[k] = submit(&some);
    }
    for (int k = 0; k < 2; k++) {
      CHECK(run_it(&all, 2 * round + k) && submit_wait(&some, ticket[k]));
      for (int i = 0; i < OUTS; i++) {
        rung_tensor x = world_output(&all, i), y;
        CHECK_STATUS(rung_context_output(some.context, i, &y), wanted[k] >> i & 1 ? RUNG_OK : RUNG_INVALID_ARGUMENT);
        if (wanted[k] >> i & 1) CHECK(memcmp(x.data, y.data, N * sizeof(float)) == 0);
      }
    }
  }
  world_close(&all);
  world_close(&some);
}
static void test_submitted(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) check_submitted(d);
}

/* What is fed to an input is computed, wanted or not. */
static void test_input_feeds(void) {
  static const char fed[] =
      "rung 1\n"
      "%x = input {name=\"x\"} : f32[3]\n"
      "%y = cumsum %x\n"
      "%z = argmax %y\n"
      "output \"y\" %y\noutput \"z\" %z\n";
  static const float want[4][3] = {{1, 2, 3}, {1, 3, 6}, {1, 4, 10}, {1, 5, 15}};
  for (int d = submit_on.first; d < submit_on.end; d++)
    for (int flights = 0; flights < 2; flights++) {
      world w;
      rung_tensor t;
      const float x[3] = {1, 1, 1};
      if (submit_open(&w, fed, d, &(world_options){.in_flight = 4})) {
        uint64_t ticket[4];
        CHECK_OK(rung_context_add_input_feed(w.context, "y", "x"));
        CHECK(world_put(&w, 0, (int64_t[]){3}, x, sizeof x));
        for (int run = 0; run < 4; run++) {
          CHECK_OK(rung_context_want_output(w.context, 0, run == 3));
          CHECK_OK(rung_context_want_output(w.context, 1, run == 1));
          if (flights)
            ticket[run] = submit(&w);
          else
            CHECK(world_run(&w));
          if (!flights) CHECK_STATUS(rung_context_output(w.context, 0, &t), run == 3 ? RUNG_OK : RUNG_INVALID_ARGUMENT);
        }
        for (int run = 0; flights && run < 4; run++) {
          CHECK(submit_wait(&w, ticket[run]));
          CHECK_STATUS(rung_context_output(w.context, 0, &t), run == 3 ? RUNG_OK : RUNG_INVALID_ARGUMENT);
          CHECK_STATUS(rung_context_output(w.context, 1, &t), run == 1 ? RUNG_OK : RUNG_INVALID_ARGUMENT);
        }
        WORLD_CHECK_F32(&w, 0, 3, want[3]);
      }
      world_close(&w);
    }
}

/* Branches and loops: nothing is left out, and nothing is given either. */
static void test_branches(void) {
  static const char branches[] =
      "rung 1\n"
      "%f = input {name=\"f\"} : bool[]\n"
      "%x = input {name=\"x\"} : f32[5]\n"
      "%y = if %f, %x {\n%0 = input {name=\"x\"} : f32[5]\n%1 = exp %0\noutput \"y\" %1\n"
      "} else {\n%0 = input {name=\"x\"} : f32[5]\n%1 = neg %0\noutput \"y\" %1\n}\n"
      "%z = cumsum %y\n"
      "output \"y\" %y\noutput \"z\" %z\n";
  world w;
  rung_error error = {0};
  rung_host *host;
  rung_graph *g = NULL;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  const bool reads = !rung_graph_parse(host, branches, strlen(branches), &error, &g);
  rung_graph_destroy(g);
  rung_host_release(host);
  if (reads && world_open(&w, branches, &(world_options){.device = "cpu"})) {
    rung_tensor t;
    CHECK_OK(rung_context_want_output(w.context, 0, false));
    CHECK(world_put_bool(&w, 0, true) && world_put_ramp(&w, 1, 5, 0) && world_run(&w));
    CHECK_STATUS(rung_context_output(w.context, 0, &t), RUNG_INVALID_ARGUMENT);
    CHECK_OK(rung_context_output(w.context, 1, &t));
    CHECK(((const float *)t.data)[0] == 1);
    world_close(&w);
  }
  test_state.checks++;
  if (!reads) TEST_FAIL_("%s", error.message);
}

/* A feed wants its output; a program that is taken into use has all of them. */
static void test_feeds_and_use(void) {
  static const char fed[] =
      "rung 1\n"
      "%x = input {name=\"x\"} : f32[1,2,3]\n"
      "%s = state {name=\"s\"} : state f32[1,2,3]\n"
      "%y = cumsum %x\n"
      "%r = reduce_sum %s {axes=[0,1,2]}\n"
      "output \"y\" %y\noutput \"r\" %r\n";
  world w;
  const rung_state_options so = rung_state_options_default();
  if (world_open(&w, fed, &(world_options){.device = "cpu", .state = &so})) {
    const float x[6] = {1, 1, 1, 1, 1, 1};
    rung_tensor t;
    CHECK_OK(rung_context_want_output(w.context, 0, false));
    CHECK_OK(rung_context_add_whole_feed(w.context, "y", "s"));
    for (int run = 0; run < 2; run++) {
      CHECK(world_put(&w, 0, (int64_t[]){1, 2, 3}, x, sizeof x) && world_run(&w));
      CHECK_OK(rung_context_output(w.context, 0, &t));
      CHECK_OK(rung_context_output(w.context, 1, &t));
      CHECK(*(float *)t.data == (run ? 12.0f : 0.0f));
    }
    rung_context_clear_feeds(w.context);
    CHECK(world_run(&w));
    CHECK_STATUS(rung_context_output(w.context, 0, &t), RUNG_INVALID_ARGUMENT);
    rung_program *other = NULL;
    CHECK_OK(rung_program_create(w.template_, NULL, 0, &w.error, &other));
    CHECK_OK(rung_context_use(w.context, other));
    CHECK(world_put(&w, 0, (int64_t[]){1, 2, 3}, x, sizeof x) && world_run(&w));
    CHECK_OK(rung_context_output(w.context, 0, &t));
    rung_program_release(other);
    CHECK_STATUS(rung_context_want_output(w.context, 2, true), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_context_want_output(w.context, -1, true), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_context_want_output(NULL, 0, true), RUNG_INVALID_ARGUMENT);
  }
  world_close(&w);
}

int main(int argc, char **argv) {
  if (!submit_begin(argc, argv)) return 77;
  RUN(test_sets);
  RUN(test_submitted);
  RUN(test_input_feeds);
  RUN(test_branches);
  RUN(test_feeds_and_use);
  submit_end();
  return TEST_END();
}
