/* SPDX-License-Identifier: MIT
 * Branches and loops on every device: values live long enough, extents change from branch to branch and from iteration
 * to iteration, nothing runs zero times wrongly, random numbers and effects inside bodies. */
#include "cts/world.h"

static void each_device(const char *text, const world_options *options, void (*test)(world *w)) {
  for (int d = 0; d < 2; d++) {
    world_options o = *options;
    o.device = world_devices[d];
    world w;
    if (world_open(&w, text, &o)) test(&w);
    world_close(&w);
  }
}

/* What an inner loop starts from comes from outside of both: it must survive the rest of the outer body. */
static const char inner_start[] =
    "rung 1\nsymbol n 1..64\n"
    "%0 = input {name=\"trip\"} : i64[]\n"
    "%1 = input {name=\"x\"} : f32[n]\n"
    "%2 = constant {data=bool(1)} : bool[]\n"
    "%3 = neg %1 : f32[n]\n"
    "%4 = loop %0, %2, %1, %3 {carried=1} {\n"
    "  %0 = input {name=\"i\"} : i64[]\n"
    "  %1 = input {name=\"go\"} : bool[]\n"
    "  %2 = input {name=\"sum\"} : f32[n]\n"
    "  %3 = input {name=\"c\"} : f32[n]\n"
    "  %4 = constant {data=i64(2)} : i64[]\n"
    "  %5 = loop %4, %1, %3 {carried=1} {\n"
    "    %0 = input {name=\"i\"} : i64[]\n"
    "    %1 = input {name=\"go\"} : bool[]\n"
    "    %2 = input {name=\"x\"} : f32[n]\n"
    "    %3 = add %2, %2 : f32[n]\n"
    "    output \"go\" %1\n"
    "    output \"x\" %3\n"
    "  } : f32[n]\n"
    "  %6 = exp %5 : f32[n]\n"
    "  %7 = log %6 : f32[n]\n"
    "  %8 = sub %7, %6 : f32[n]\n"
    "  %9 = mul %8, %6 : f32[n]\n"
    "  %10 = sub %9, %9 : f32[n]\n"
    "  %11 = add %5, %10 : f32[n]\n"
    "  %12 = add %2, %11 : f32[n]\n"
    "  output \"go\" %1\n"
    "  output \"sum\" %12\n"
    "} : f32[n]\n"
    "output \"sum\" %4\n";

static void check_inner_start(world *w) {
  for (int64_t trip = 0; trip < 5; trip++) {
    float want[20];
    for (int i = 0; i < 20; i++) want[i] = (float)i * 0.125f * (float)(1 - 4 * trip);
    float x[20];
    for (int i = 0; i < 20; i++) x[i] = (float)i * 0.125f;
    if (world_put_i64(w, 0, trip) && world_put(w, 1, (int64_t[]){20}, x, sizeof x) && world_run(w))
      WORLD_CHECK_F32(w, 0, 20, want);
  }
}

static void test_inner_loop_starts_from_outside(void) {
  each_device(inner_start, &(world_options){0}, check_inner_start);
  each_device(inner_start, &(world_options){.plain = true}, check_inner_start);
}

/* The last step of a body reads a value from outside for the last time in this iteration, not in the loop: its result
 * must not take that memory. The same for a scan, a condition and a carried value that are the captured value itself.
 */
static const char last_step[] =
    "rung 1\nsymbol n 1..64\nsymbol times <= 9 made\n"
    "%0 = input {name=\"trip\"} : i64[]\n"
    "%1 = input {name=\"x\"} : f32[n]\n"
    "%2 = constant {data=bool(1)} : bool[]\n"
    "%3 = add %1, %1 : f32[n]\n"
    "%4 = abs %1 : f32[n]\n"
    "%5, %6 = loop %0, %2, %3, %4 {symbol=\"times\", trip=9} {\n"
    "  %0 = input {name=\"i\"} : i64[]\n"
    "  %1 = input {name=\"go\"} : bool[]\n"
    "  %2 = input {name=\"c\"} : f32[n]\n"
    "  %3 = input {name=\"d\"} : f32[n]\n"
    "  %4 = neg %2 : f32[n]\n"
    "  output \"go\" %1\n"
    "  output \"y\" %4\n"
    "  output \"d\" %3\n"
    "} : f32[times,n], f32[times,n]\n"
    "output \"y\" %5\n"
    "output \"d\" %6\n";

static void check_last_step(world *w) {
  for (int64_t trip = 0; trip < 10; trip += 3) {
    const float x[2] = {1, -3};
    float y[20], d[20];
    for (int i = 0; i < 20; i++) y[i] = -2 * x[i % 2], d[i] = i % 2 ? 3 : 1;
    if (!world_put_i64(w, 0, trip) || !world_put(w, 1, (int64_t[]){2}, x, sizeof x) || !world_run(w)) continue;
    WORLD_CHECK_F32(w, 0, 2 * trip, y);
    WORLD_CHECK_F32(w, 1, 2 * trip, d);
  }
}

static void test_last_step_keeps_captures(void) {
  each_device(last_step, &(world_options){0}, check_last_step);
  each_device(last_step, &(world_options){.plain = true}, check_last_step);
}

/* Extents that double from iteration to iteration, up to what the symbol is declared for. */
static const char growing[] =
    "rung 1\nsymbol n 0..4\nsymbol m <= 16*n made\n"
    "%0 = input {name=\"trip\"} : i64[]\n"
    "%1 = input {name=\"x\"} : f32[n,2]\n"
    "%2 = constant {data=bool(1)} : bool[]\n"
    "%3 = loop %0, %2, %1 {carried=1} {\n"
    "  %0 = input {name=\"i\"} : i64[]\n"
    "  %1 = input {name=\"go\"} : bool[]\n"
    "  %2 = input {name=\"x\"} : f32[m,2]\n"
    "  %3 = neg %2 : f32[m,2]\n"
    "  %4 = concat %2, %3 {axis=0} : f32[2*m,2]\n"
    "  output \"go\" %1\n"
    "  output \"x\" %4\n"
    "} : f32[m,2]\n"
    "%4 = add %3, %3 : f32[m,2]\n"
    "output \"y\" %4\n";

static void check_growing(world *w) {
  for (int pass = 0; pass < 2; pass++) {
    const uint64_t calls = rung_host_allocations(w->host) + rung_host_commits(w->host);
    for (int64_t n = 0; n <= 4; n += 2) {
      for (int64_t trip = 0; trip <= 4; trip++) {
        float want[128];
        for (int64_t i = 0; i < 2 * n; i++) want[i] = 2 * (float)(i + 1);
        for (int64_t t = 0; t < trip; t++)
          for (int64_t i = 0; i < (2 * n) << t; i++) want[i + ((2 * n) << t)] = -want[i];
        float x[8];
        for (int i = 0; i < 8; i++) x[i] = (float)(i + 1);
        if (!world_put_i64(w, 0, trip) || !world_put(w, 1, (int64_t[]){n, 2}, x, (size_t)n * 8) || !world_run(w))
          continue;
        WORLD_CHECK_F32(w, 0, (2 * n) << trip, want);
      }
    }
    if (pass) CHECK_EQ_I64(rung_host_allocations(w->host) + rung_host_commits(w->host), calls);
  }
  /* Beyond its bound the symbol is named with its value, and the context goes on. */
  world_put_i64(w, 0, 5);
  float x[2] = {1, 2};
  CHECK(world_put(w, 1, (int64_t[]){1, 2}, x, sizeof x));
  CHECK_STATUS(rung_context_run(w->context), RUNG_OUT_OF_RANGE);
  CHECK(strstr(rung_context_message(w->context), "symbol m became 32, its bound is 16") != NULL);
  world_put_i64(w, 0, 1);
  if (world_run(w)) WORLD_CHECK_F32(w, 0, 4, ((float[]){2, 4, -2, -4}));
}

static void test_growing_extents(void) { each_device(growing, &(world_options){0}, check_growing); }

/* Branches of different extents, one of them through a loop, inside a loop; the larger one first and last. */
static const char branches[] =
    "rung 1\nsymbol n 1..8\nsymbol j <= max(2*n,n) made\n"
    "%0 = input {name=\"c\"} : bool[]\n"
    "%1 = input {name=\"x\"} : f32[n]\n"
    "%2 = exp %1 : f32[n]\n"
    "%3 = if %0, %2 {\n"
    "  %0 = input {name=\"x\"} : f32[n]\n"
    "  %1 = concat %0, %0 {axis=0} : f32[2*n]\n"
    "  output \"y\" %1\n"
    "} else {\n"
    "  %0 = input {name=\"x\"} : f32[n]\n"
    "  %1 = neg %0 : f32[n]\n"
    "  output \"y\" %1\n"
    "} : f32[j]\n"
    "%4 = add %3, %3 : f32[j]\n"
    "%5 = reduce_sum %3 : f32[]\n"
    "output \"y\" %4\n"
    "output \"sum\" %5\n";

static void check_branches(world *w) {
  const float zero[8] = {0};
  for (int i = 0; i < 12; i++) {
    const int64_t n = 1 + i * 5 % 8;
    const bool yes = i % 3 != 1;
    float want[16];
    for (int e = 0; e < 16; e++) want[e] = yes ? 2 : -2;
    if (!world_put_bool(w, 0, yes) || !world_put(w, 1, &n, zero, (size_t)n * 4) || !world_run(w)) continue;
    WORLD_CHECK_F32(w, 0, yes ? 2 * n : n, want);
    WORLD_CHECK_F32(w, 1, 1, ((float[]){yes ? 2 * (float)n : -(float)n}));
  }
}

static void test_branches_of_different_extents(void) { each_device(branches, &(world_options){0}, check_branches); }

/* ---- nesting */

static size_t put_nested(char *text, size_t at, size_t limit, int depth, int levels) {
  const char *pad = "";
  at += (size_t)snprintf(
      text + at, limit - at,
      "%s%%0 = input {name=\"c\"} : bool[]\n%%1 = input {name=\"x\"} : f32[n]\n%%2 = add %%1, %%1 : f32[n]\n", pad);
  if (depth < levels) {
    at += (size_t)snprintf(text + at, limit - at, "%%3 = if %%0, %%0, %%2 {\n");
    at = put_nested(text, at, limit, depth + 1, levels);
    at += (size_t)snprintf(text + at, limit - at,
                           "} else {\n%%0 = input {name=\"c\"} : bool[]\n%%1 = input {name=\"x\"} : f32[n]\n%%2 = neg "
                           "%%1 : f32[n]\noutput \"y\" %%2\n} : f32[n]\n");
  } else {
    at += (size_t)snprintf(text + at, limit - at, "%%3 = neg %%2 : f32[n]\n");
  }
  return at + (size_t)snprintf(text + at, limit - at, "output \"y\" %%3\n");
}

static char nested_text[64 * 1024];
static const char *nested(int levels) {
  const size_t at = (size_t)snprintf(nested_text, sizeof nested_text, "rung 1\nsymbol n 0..5\n");
  put_nested(nested_text, at, sizeof nested_text, 0, levels);
  return nested_text;
}

static int nested_levels;
static void check_nested(world *w) {
  for (int yes = 0; yes < 2; yes++) {
    const float x[2] = {0x1p-60f, -0x1p-62f};
    float want[2];
    for (int i = 0; i < 2; i++) {
      want[i] = -x[i];
      for (int l = 0; l < (yes ? nested_levels + 1 : 1); l++) want[i] *= 2;
    }
    if (world_put_bool(w, 0, yes) && world_put(w, 1, (int64_t[]){2}, x, sizeof x) && world_run(w))
      WORLD_CHECK_F32(w, 0, 2, want);
  }
}

/* 64 bodies inside each other; a region would be one of them, so that none is made in the innermost. */
static void test_nested_branches(void) {
  static const int levels[] = {1, 4, 17, 63, 64};
  for (int i = 0; i < 5; i++) {
    nested_levels = levels[i];
    each_device(nested(levels[i]), &(world_options){0}, check_nested);
  }
  world w;
  CHECK_STATUS(world_try(&w, nested(65), &(world_options){0}), RUNG_OUT_OF_RANGE);
  CHECK(strstr(w.error.message, "64") != NULL);
  world_close(&w);
}

/* ---- random numbers */

static const char dice[] =
    "rung 1\nsymbol times <= 50 made\n"
    "%0 = input {name=\"trip\"} : i64[]\n"
    "%1 = constant {data=bool(1)} : bool[]\n"
    "%2 = loop %0, %1 {symbol=\"times\", trip=50} {\n"
    "  %0 = input {name=\"i\"} : i64[]\n"
    "  %1 = input {name=\"go\"} : bool[]\n"
    "  %2 = random_uniform {shape=[3]} : f32[3]\n"
    "  output \"go\" %1\n"
    "  output \"r\" %2\n"
    "} : f32[times,3]\n"
    "%3 = random_uniform {shape=[3]} : f32[3]\n"
    "output \"r\" %2\n"
    "output \"after\" %3\n";

static float dice_seen[2][153];
static void check_dice(world *w) {
  float *seen = dice_seen[strncmp(rung_device_name(w->device), "cpu", 3) == 0], first[153];
  for (int pass = 0; pass < 3; pass++) {
    if (pass == 1) rung_context_set_seed(w->context, 5);
    if (!world_put_i64(w, 0, 50) || !world_run(w)) return;
    const rung_tensor r = world_output(w, 0), after = world_output(w, 1);
    memcpy(first, r.data, 600);
    memcpy(first + 150, after.data, 12);
    if (pass == 0) memcpy(seen, first, sizeof first);
    if (pass == 1) CHECK(memcmp(first, seen, sizeof first) == 0); /* the seed begins anew */
    if (pass == 2) CHECK(memcmp(first, seen, sizeof first) != 0); /* and goes on from run to run */
  }
  for (int i = 0; i < 153; i++) {
    CHECK(seen[i] >= 0 && seen[i] < 1);
    for (int j = 0; j < i; j++) CHECK(seen[i] != seen[j]); /* every iteration takes numbers of its own */
  }
}

static void test_random_in_loops(void) {
  each_device(dice, &(world_options){.seed = 5}, check_dice);
  CHECK(memcmp(dice_seen[0], dice_seen[1], sizeof dice_seen[0]) == 0);
}

/* ---- effects */

static const char effects[] =
    "rung 1\n"
    "%0 = input {name=\"c\"} : bool[]\n"
    "%1 = input {name=\"trip\"} : i64[]\n"
    "%s2 = state {name=\"s\"} : state f32[2]\n"
    "%3 = constant {data=f32(1,10)} : f32[2]\n"
    "%4 = constant {data=bool(1)} : bool[]\n"
    "%s5 = if %0, %s2, %3 {\n"
    "  %s0 = input {name=\"s\"} : state f32[2]\n"
    "  %1 = input {name=\"d\"} : f32[2]\n"
    "  %2 = add %s0, %1 : f32[2]\n"
    "  %s3 = assign %s0, %2 : state f32[2]\n"
    "  output \"s\" %s3\n"
    "} else {\n"
    "  %s0 = input {name=\"s\"} : state f32[2]\n"
    "  %1 = input {name=\"d\"} : f32[2]\n"
    "  output \"s\" %s0\n"
    "} : state f32[2]\n"
    "%s6 = loop %1, %4, %s5 {carried=1} {\n"
    "  %0 = input {name=\"i\"} : i64[]\n"
    "  %1 = input {name=\"go\"} : bool[]\n"
    "  %s2 = input {name=\"s\"} : state f32[2]\n"
    "  %3 = add %s2, %s2 : f32[2]\n"
    "  %s4 = assign %s2, %3 : state f32[2]\n"
    "  output \"go\" %1\n"
    "  output \"s\" %s4\n"
    "} : state f32[2]\n"
    "%7 = neg %s6 : f32[2]\n"
    "output \"y\" %7\n";

static void check_effects(world *w) {
  float want[2] = {0, 0};
  for (int run = 0; run < 12; run++) {
    const bool yes = run % 3 != 2;
    const int64_t trip = run % 4;
    if (yes) want[0] += 1, want[1] += 10;
    for (int64_t t = 0; t < trip; t++) want[0] *= 2, want[1] *= 2;
    if (!world_put_bool(w, 0, yes) || !world_put_i64(w, 1, trip) || !world_run(w)) return;
    WORLD_CHECK_F32(w, 0, 2, ((float[]){-want[0], -want[1]}));
    rung_tensor s;
    CHECK_OK(rung_state_tensor(w->state, "s", NULL, &s));
    CHECK(((float *)s.data)[0] == want[0] && ((float *)s.data)[1] == want[1]);
  }
}

static void test_effects_in_bodies(void) {
  const rung_state_options so = rung_state_options_default();
  each_device(effects, &(world_options){.state = &so}, check_effects);
}

/* A loop that writes a state also reads the version before it as a plain value: that stays what it was. */
static const char old_version[] =
    "rung 1\n"
    "%0 = input {name=\"trip\"} : i64[]\n"
    "%s1 = state {name=\"s\"} : state f32[2]\n"
    "%2 = constant {data=bool(1)} : bool[]\n"
    "%s3 = loop %0, %2, %s1, %s1 {carried=1} {\n"
    "  %0 = input {name=\"i\"} : i64[]\n"
    "  %1 = input {name=\"go\"} : bool[]\n"
    "  %s2 = input {name=\"s\"} : state f32[2]\n"
    "  %3 = input {name=\"before\"} : f32[2]\n"
    "  %4 = constant {data=f32(1,2)} : f32[2]\n"
    "  %5 = add %s2, %3 : f32[2]\n"
    "  %6 = add %5, %4 : f32[2]\n"
    "  %s7 = assign %s2, %6 : state f32[2]\n"
    "  output \"go\" %1\n"
    "  output \"s\" %s7\n"
    "} : state f32[2]\n"
    "%4 = neg %s3 : f32[2]\n"
    "output \"y\" %4\n";

static void check_old_version(world *w) {
  float s = 0; /* s' = s + before + 1, three times: 4 s + 3 */
  for (int run = 0; run < 4; run++) {
    s = 4 * s + 3;
    if (!world_put_i64(w, 0, 3) || !world_run(w)) return;
    WORLD_CHECK_F32(w, 0, 2, ((float[]){-s, -2 * s}));
  }
}

static void test_captured_version_stays(void) {
  const rung_state_options so = rung_state_options_default();
  each_device(old_version, &(world_options){.state = &so}, check_old_version);
}

int main(void) {
  RUN(test_branches_of_different_extents);
  RUN(test_growing_extents);
  RUN(test_effects_in_bodies);
  RUN(test_captured_version_stays);
  RUN(test_random_in_loops);
  RUN(test_last_step_keeps_captures);
  RUN(test_inner_loop_starts_from_outside);
  RUN(test_nested_branches);
  return TEST_END();
}
