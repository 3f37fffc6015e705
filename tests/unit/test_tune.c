/* SPDX-License-Identifier: MIT
 * Measuring and choosing candidates, against kernels that are only numbers: what they take is told by a clock that the
 * test sets, what they compute by a distance. And rung_tune over a backend of such kernels. */
#define _GNU_SOURCE
#include <math.h>
#include <rung/cache.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "cts/world.h"
#include "runtime/tune/measure.h"
#include "runtime/tune/tables.h"

enum { NUMBERS = 64 };

/* How candidates behave; by splits and keys. */
typedef struct fake {
  uint64_t seed;
  uint64_t noise;                                  /* ns that a run may take longer, at random */
  uint64_t drift;                                  /* ns that each run takes longer than the one before it */
  uint64_t (*ns)(const rung_candidate *candidate); /* what it takes; 0: the device cannot do it */
  double (*far)(const rung_candidate *candidate);  /* from the reference; NAN: its result is not a number */
  rung_status failing;                             /* of every run, if not 0 */
  rung_candidate chosen;
  int runs, opened, closed, chosen_times;
  int64_t rows, keys; /* of the last open */
  float out[NUMBERS], want[NUMBERS];
} fake;

static uint64_t more_splits_faster(const rung_candidate *c) { return 100000 / c->splits + c->keys; }
static uint64_t only_even(const rung_candidate *c) { return c->splits == 4 ? 0 : 5000 - 10u * c->splits; }
static uint64_t all_same(const rung_candidate *c) {
  (void)c;
  return 7000;
}
static double exact(const rung_candidate *c) {
  (void)c;
  return 1e-7;
}
static double fast_is_wrong(const rung_candidate *c) { return c->splits >= 16 ? 0.5 : c->splits >= 8 ? 5e-3 : 1e-6; }
static double nan_from_four(const rung_candidate *c) { return c->splits >= 4 ? (double)NAN : 1e-6; }
static double all_wrong(const rung_candidate *c) {
  (void)c;
  return 3;
}

static rung_status fake_choose(void *self, const rung_candidate *candidate, rung_error *error) {
  fake *f = self;
  f->chosen = *candidate;
  f->chosen_times++;
  for (int i = 0; i < NUMBERS; i++) f->out[i] = NAN;
  return f->ns(candidate) ? RUNG_OK : rung_fail(error, RUNG_UNSUPPORTED, "not on this device");
}
static rung_status fake_run(void *self, rung_error *error, uint64_t *out_ns) {
  fake *f = self;
  if (f->failing) return rung_fail(error, f->failing, "the device is gone");
  *out_ns = f->ns(&f->chosen) + (f->noise ? (uint64_t)test_below(&f->seed, (int64_t)f->noise) : 0) +
            f->drift * (uint64_t)f->runs;
  f->runs++;
  const double far = f->far(&f->chosen);
  for (int i = 0; i < NUMBERS; i++) f->out[i] = (float)((double)f->want[i] * (1 + far));
  return RUNG_OK;
}
static rung_status fake_output(void *self, rung_error *error, const float **out, size_t *count) {
  (void)error;
  *out = ((fake *)self)->out;
  *count = NUMBERS;
  return RUNG_OK;
}
static rung_status fake_reference(void *self, rung_error *error, const float **out, size_t *count) {
  (void)error;
  *out = ((fake *)self)->want;
  *count = NUMBERS;
  return RUNG_OK;
}
static void fake_close(void *self) { ((fake *)self)->closed++; }

static fake make_fake(uint64_t (*ns)(const rung_candidate *), double (*far)(const rung_candidate *)) {
  fake f = {.seed = 5, .ns = ns, .far = far};
  for (int i = 0; i < NUMBERS; i++) f.want[i] = (float)(i - 20);
  return f;
}
static rung_bench bench_of(fake *f) {
  return (rung_bench){f, fake_choose, fake_run, fake_output, fake_reference, fake_close};
}

static rung_host *host;
static rung_error error;
static const rung_candidate_space space = {RUNG_TYPE_F16, 64, 32, true, 512, 1, 1};
static const rung_candidate standard = {16, 256, 1, 1, 64, RUNG_TYPE_F16, 2};

static rung_measured measure(fake *f, double bound) {
  const rung_measuring how = {2, 8, bound};
  const rung_bench bench = bench_of(f);
  rung_measured m;
  CHECK_OK(rung_measure(host, &bench, &space, &standard, &how, &error, &m));
  return m;
}

/* ---- choosing */

static void test_median(void) {
  uint64_t odd[] = {9, 1, 5}, even[] = {8, 2, 4, 100}, one[] = {3};
  CHECK_EQ_I64(rung_tune_median(odd, 3), 5);
  CHECK_EQ_I64(rung_tune_median(even, 4), 6);
  CHECK_EQ_I64(rung_tune_median(one, 1), 3);
}

static void test_distance(void) {
  const float a[] = {3, 4}, b[] = {3, 4}, c[] = {3, 4.5f}, zero[] = {0, 0}, n[] = {NAN, 4}, i[] = {INFINITY, 4};
  CHECK(rung_tune_distance(a, b, 2) == 0);
  CHECK(fabs(rung_tune_distance(c, a, 2) - 0.1) < 1e-12);
  CHECK(isinf(rung_tune_distance(n, a, 2)) && isinf(rung_tune_distance(a, n, 2)));
  CHECK(isinf(rung_tune_distance(i, a, 2)) && isinf(rung_tune_distance(a, i, 2)));
  CHECK(rung_tune_distance(n, n, 2) == 0 && rung_tune_distance(i, i, 2) == 0);
  CHECK(rung_tune_distance(zero, zero, 2) == 0 && rung_tune_distance(zero, zero, 0) == 0);
  CHECK(fabs(rung_tune_distance(a, zero, 2) - sqrt(12.5)) < 1e-12);
}

static void test_fastest_wins(void) {
  fake f = make_fake(more_splits_faster, exact);
  const rung_measured m = measure(&f, 1e-3);
  CHECK(m.found && m.winner.splits == 32 && m.winner.keys == 64);
  CHECK_EQ_I64(m.candidates, 21);
  CHECK_EQ_I64(m.refused, 0);
  CHECK_EQ_I64(m.winner_ns, 100000 / 32 + 64);
  CHECK_EQ_I64(m.standard_ns, 100000 / 16 + 256);
  /* Each candidate: one run to look at, two to warm up, eight that count; then winner and standard in turn. */
  CHECK_EQ_I64(f.runs, 21 * (1 + 2 + 8) + 2 * (2 + 8));
}

/* The property of the bound: fast and wrong is never chosen. */
static void test_accuracy(void) {
  fake f = make_fake(more_splits_faster, fast_is_wrong);
  CHECK_EQ_I64(measure(&f, 1e-2).winner.splits, 8);
  CHECK_EQ_I64(measure(&f, 1e-3).winner.splits, 4);
  f.far = nan_from_four;
  rung_measured m = measure(&f, 1e-2);
  CHECK_EQ_I64(m.winner.splits, 2);
  CHECK_EQ_I64(m.refused, 4 * 4); /* the standard is one of them */
  CHECK_EQ_I64(m.standard_ns, 0);
  f.far = all_wrong;
  m = measure(&f, 1e-2);
  CHECK(!m.found);
  CHECK_EQ_I64(m.refused, 21);
}

static void test_what_the_device_cannot(void) {
  fake f = make_fake(only_even, exact);
  const rung_measured m = measure(&f, 1e-3);
  CHECK(m.found && m.winner.splits == 32);
  CHECK_EQ_I64(m.refused, 4);
  f.failing = RUNG_SYSTEM;
  const rung_measuring how = {2, 8, 1e-3};
  const rung_bench bench = bench_of(&f);
  rung_measured failed;
  CHECK_STATUS(rung_measure(host, &bench, &space, &standard, &how, &error, &failed), RUNG_SYSTEM);
  CHECK_STR(error.message, "the device is gone");
}

/* Where all take the same time, noise must not choose: the standard stays unless it loses twice, and what wins is never
 * slower than the standard by more than the spread. */
static void test_never_slower(void) {
  static uint64_t (*const kinds[])(const rung_candidate *) = {more_splits_faster, only_even, all_same};
  for (uint64_t seed = 1; seed <= 200; seed++) {
    fake f = make_fake(kinds[seed % 3], exact);
    f.seed = seed * 7919;
    f.noise = 1 + seed * 10;
    f.drift = seed % 5 ? 0 : 20; /* a device that gets slower: later candidates look worse, the standard best */
    const rung_measured m = measure(&f, 1e-3);
    CHECK(m.found && m.winner_ns <= m.standard_ns);
    CHECK(f.ns(&m.winner) <= f.ns(&standard) + f.noise + f.drift);
  }
  fake f = make_fake(all_same, exact);
  const rung_measured same = measure(&f, 1e-3);
  CHECK(rung_candidate_equal(&same.winner, &standard));
}

static void test_measure_fails(void) {
  for (int64_t n = 1;; n++) {
    fake f = make_fake(more_splits_faster, exact);
    test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = n};
    const rung_measuring how = {2, 8, 1e-3};
    const rung_bench bench = bench_of(&f);
    rung_measured m;
    const rung_memory before = rung_host_memory(host);
    rung_host_set_fault(host, test_fault_hit, &fault);
    const rung_status status = rung_measure(host, &bench, &space, &standard, &how, &error, &m);
    rung_host_set_fault(host, NULL, NULL);
    CHECK_EQ_I64(rung_host_memory(host).host, before.host);
    if (!fault.hit) {
      CHECK_OK(status);
      CHECK(n > 3);
      return;
    }
    CHECK_STATUS(status, RUNG_OUT_OF_MEMORY);
  }
}

/* ---- rung_tune over a backend of such kernels */

static fake kernels;
static int64_t most_rows = 16;
static const rung_winner_source *asked;

static void fake_device(void *self, char out[RUNG_TUNE_TEXT]) {
  (void)self;
  snprintf(out, RUNG_TUNE_TEXT, "%s", "fake device");
}
static void fake_ask(void *self, const rung_winner_source *source) {
  (void)self;
  asked = source;
}
static int sessions;
static rung_status fake_begin(void *self, const rung_plan *plan, rung_error *e, void **out_session) {
  (void)self, (void)plan, (void)e;
  sessions++;
  *out_session = &kernels;
  return RUNG_OK;
}
static void fake_end(void *session) {
  (void)session;
  sessions--;
}
static bool fake_at(void *session, uint32_t index, rung_tunable *out) {
  static const char *const names[] = {"one", "two"};
  (void)session;
  if (index >= 2) return false;
  *out = (rung_tunable){.space = space, .least_rows = 1, .most_rows = index ? 1 : most_rows, .step = index};
  snprintf(out->signature, sizeof out->signature, "%s", names[index]);
  return true;
}
static rung_candidate fake_standard(const rung_tunable *tunable, int64_t rows, int64_t keys) {
  (void)tunable;
  rung_candidate c = standard;
  if (rung_default_stages(rows, keys) == 1) c.splits = 1, c.keys = 64, c.stages = 1;
  return c;
}
static rung_status fake_open(void *session, const rung_tunable *tunable, int64_t rows, int64_t keys, rung_error *e,
                             rung_bench *out) {
  (void)session, (void)tunable, (void)e;
  kernels.opened++;
  kernels.rows = rows;
  kernels.keys = keys;
  *out = bench_of(&kernels);
  return RUNG_OK;
}
static const rung_tuning fake_tuning = {fake_device, fake_ask, fake_begin, fake_end, fake_at, fake_standard, fake_open};
static rung_backend fake_backend;

static const char graph_text[] =
    "rung 1\nsymbol n 1..64\n%x = input {name=\"x\"} : f32[n]\n%y = neg %x : f32[n]\noutput \"y\" %y\n";

/* A cpu device whose backend says that it has two kernels with candidates. */
static bool open_world(world *w, const rung_tune_policy *policy) {
  if (world_try(w, graph_text, &(world_options){.device = "cpu"})) return false;
  fake_backend = rung_backend_cpu;
  fake_backend.tuning = &fake_tuning;
  w->device->backend = &fake_backend;
  CHECK(w->device->tables == NULL);
  return rung_tables_create(w->host, policy, RUNG_WINNERS, "fake device", &w->error, &w->device->tables) == RUNG_OK;
}

static char folder[64];
static rung_tune_policy policy_in(const char *name) {
  static char path[128];
  rung_tune_policy p = rung_tune_policy_default();
  snprintf(path, sizeof path, "%s/%s", folder, name);
  p.folder = name ? path : NULL;
  return p;
}

static void note_winner(void *text, const rung_tune_winner *winner) {
  const size_t used = strlen(text);
  snprintf((char *)text + used, 1024 - used, "%s:%u:%s ", winner->signature, winner->bucket, winner->tag);
}
static void list(rung_device *device, char out[1024]) {
  out[0] = 0;
  CHECK_OK(rung_tune_winners(device, note_winner, out, &error));
}

static rung_tune_report tune(world *w, const rung_tune_options *options) {
  rung_tune_report report;
  CHECK_OK(rung_tune(w->template_, NULL, 0, options, &w->error, &report));
  return report;
}

#define FASTEST "splits=32,keys=64,kv=f16,head=64,stages=2 "
#define ALL "one:0:" FASTEST "one:1:" FASTEST "one:2:" FASTEST "one:3:" FASTEST "one:4:" FASTEST "two:0:" FASTEST

static void test_tune(void) {
  world w;
  char text[1024];
  const rung_tune_policy policy = policy_in("tune");
  kernels = make_fake(more_splits_faster, exact);
  CHECK(open_world(&w, &policy));
  rung_tune_report r = tune(&w, NULL);
  CHECK_EQ_I64(r.kernels, 2);
  CHECK_EQ_I64(r.sizes, 5 + 1);
  CHECK_EQ_I64(r.candidates, 6 * 21);
  CHECK_EQ_I64(r.recorded, 6);
  CHECK_EQ_I64(r.changed, 6);
  CHECK_EQ_I64(kernels.opened, 6);
  CHECK_EQ_I64(kernels.closed, 6);
  list(w.device, text);
  CHECK_STR(text, ALL);
  r = tune(&w, NULL); /* all have winners */
  CHECK_EQ_I64(r.sizes, 0);
  CHECK_EQ_I64(kernels.opened, 6);
  rung_tune_options o = rung_tune_options_default();
  o.again = true;
  r = tune(&w, &o);
  CHECK_EQ_I64(r.sizes, 6);
  CHECK_EQ_I64(r.recorded, 6);
  CHECK_EQ_I64(r.changed, 0);
  kernels.ns = only_even; /* another machine's clock */
  kernels.far = fast_is_wrong;
  r = tune(&w, &o);
  CHECK_EQ_I64(r.changed, 6);
  CHECK_EQ_I64(kernels.keys, 1024);
  world_close(&w);
}

/* A table that was written is there for the next process, which measures nothing. */
static void test_restart(void) {
  world w;
  char text[1024];
  for (int start = 0; start < 2; start++) {
    const rung_tune_policy policy = policy_in("restart");
    kernels = make_fake(more_splits_faster, exact);
    CHECK(open_world(&w, &policy));
    const rung_tune_report r = tune(&w, NULL);
    CHECK_EQ_I64(r.sizes, start ? 0 : 6);
    CHECK_EQ_I64(kernels.runs > 0, start == 0);
    list(w.device, text);
    CHECK_STR(text, ALL);
    bool found;
    rung_candidate c;
    const rung_winner_source *source = rung_tables_source(w.device->tables);
    CHECK_OK(source->find(source->self, "one", 5, &error, &found, &c));
    CHECK(found && c.splits == 32);
    CHECK_OK(source->find(source->self, "one", 17, &error, &found, &c));
    CHECK(!found);
    CHECK_OK(source->find(source->self, "three", 1, &error, &found, &c));
    CHECK(!found);
    world_close(&w);
  }
}

static void test_deterministic(void) {
  world w;
  rung_tune_policy policy = policy_in("restart"); /* where there are winners */
  policy.profile = RUNG_TUNE_DETERMINISTIC;
  policy.warm = true;
  kernels = make_fake(more_splits_faster, exact);
  CHECK(open_world(&w, &policy));
  const rung_winner_source *source = rung_tables_source(w.device->tables);
  bool found = true;
  rung_candidate c;
  CHECK_OK(source->find(source->self, "one", 5, &error, &found, &c));
  CHECK(!found);
  CHECK_STATUS(rung_tune(w.template_, NULL, 0, NULL, &w.error, NULL), RUNG_INVALID_ARGUMENT);
  CHECK_OK(rung_tune_warm(w.template_, NULL, 0, &w.error));
  CHECK_EQ_I64(kernels.opened, 0);
  world_close(&w);
  /* So is a template compiled so, whatever the profile. */
  policy = policy_in("restart");
  policy.warm = true;
  CHECK(open_world(&w, &policy));
  rung_compile_options o = rung_compile_options_default();
  o.deterministic = true;
  rung_template *t = NULL;
  CHECK_OK(rung_template_create(w.device, w.graph, &o, &w.error, &t));
  CHECK_STATUS(rung_tune(t, NULL, 0, NULL, &w.error, NULL), RUNG_INVALID_ARGUMENT);
  CHECK_OK(rung_tune_warm(t, NULL, 0, &w.error));
  CHECK_EQ_I64(kernels.opened, 0);
  rung_template_release(t);
  world_close(&w);
}

/* Profiles differ in what they let through. */
static void test_profiles(void) {
  static const struct {
    rung_tune_profile profile;
    int splits;
  } want[] = {{RUNG_TUNE_LATENCY, 8}, {RUNG_TUNE_BALANCED, 4}, {RUNG_TUNE_ACCURATE, 4}};
  for (size_t i = 0; i < RUNG_COUNT(want); i++) {
    world w;
    rung_tune_policy policy = rung_tune_policy_default();
    policy.profile = want[i].profile;
    kernels = make_fake(more_splits_faster, fast_is_wrong);
    CHECK(open_world(&w, &policy));
    tune(&w, NULL);
    bool found;
    rung_candidate c;
    const rung_winner_source *source = rung_tables_source(w.device->tables);
    CHECK_OK(source->find(source->self, "two", 1, &error, &found, &c));
    CHECK(found);
    CHECK_EQ_I64(c.splits, want[i].splits);
    world_close(&w);
  }
}

static void open_warm(world *w, bool warm) {
  rung_tune_policy policy = rung_tune_policy_default();
  policy.warm = warm;
  kernels = make_fake(more_splits_faster, exact);
  CHECK(open_world(w, &policy));
}

/* A run measures nothing and looks nothing up; warming does only where the policy says so. */
static void test_when(void) {
  for (int warm = 0; warm < 2; warm++) {
    world w;
    open_warm(&w, warm);
    void *data;
    CHECK_OK(rung_context_input(w.context, 0, (int64_t[]){4}, &data));
    CHECK_OK(rung_context_run(w.context));
    CHECK_EQ_I64(kernels.opened + kernels.runs, 0);
    const char *signature;
    rung_winners *winners;
    CHECK(!rung_tables_at(w.device->tables, 0, &signature, &winners));
    CHECK_OK(rung_tune_warm(w.template_, NULL, 0, &w.error));
    CHECK_EQ_I64(kernels.opened, warm ? 6 : 0);
    world_close(&w);
  }
}

/* A ladder that is warmed tunes the sizes of its rungs if the policy says so; one that climbs by a run never does. */
static void test_ladder(void) {
  for (int warm = 0; warm < 2; warm++) {
    world w;
    open_warm(&w, warm);
    rung_build build = rung_build_default();
    build.template_ = w.template_;
    rung_ladder_options o = rung_ladder_options_default();
    o.symbol = "n";
    const rung_range ranges[] = {{1, 9}, {9, 33}};
    rung_ladder *ladder = NULL;
    rung_program *program = NULL;
    CHECK_OK(rung_ladder_create(w.device, &build, ranges, 2, &o, &error, &ladder));
    CHECK_OK(rung_ladder_get(ladder, 20, &error, &program));
    CHECK_EQ_I64(kernels.opened, 0);
    rung_program_release(program);
    const size_t first = 0;
    CHECK_OK(rung_ladder_warm(ladder, &first, 1, &error));
    CHECK_EQ_I64(kernels.opened, warm ? 6 : 0);
    rung_ladder_destroy(ladder);
    world_close(&w);
  }
}

static void test_refusals(void) {
  world w;
  rung_tune_policy policy = rung_tune_policy_default();
  kernels = make_fake(more_splits_faster, exact);
  CHECK(open_world(&w, &policy));
  rung_tune_options o = rung_tune_options_default();
  CHECK_EQ_I64(o.warmups, 2);
  CHECK_EQ_I64(o.repeats, 8);
  o.repeats = 0;
  CHECK_STATUS(rung_tune(w.template_, NULL, 0, &o, &error, NULL), RUNG_INVALID_ARGUMENT);
  o = rung_tune_options_default(), o.keys = 0;
  CHECK_STATUS(rung_tune(w.template_, NULL, 0, &o, &error, NULL), RUNG_INVALID_ARGUMENT);
  o = rung_tune_options_default(), o.size = 1;
  CHECK_STATUS(rung_tune(w.template_, NULL, 0, &o, &error, NULL), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_tune(NULL, NULL, 0, NULL, &error, NULL), RUNG_INVALID_ARGUMENT);
  const rung_binding unknown = {"m", 3};
  CHECK_STATUS(rung_tune(w.template_, &unknown, 1, NULL, &error, NULL), RUNG_NOT_FOUND);
  kernels.failing = RUNG_SYSTEM;
  CHECK_STATUS(rung_tune(w.template_, NULL, 0, NULL, &error, NULL), RUNG_SYSTEM);
  CHECK_EQ_I64(kernels.opened, kernels.closed);
  CHECK_EQ_I64(sessions, 0);
  CHECK(strstr(error.message, "one") && strstr(error.message, "the device is gone"));
  world_close(&w);
}

/* A folder that cannot be: the winners are there all the same. */
static void test_no_folder(void) {
  world w;
  char text[1024];
  rung_tune_policy policy = rung_tune_policy_default();
  policy.folder = "/dev/null/winners";
  policy.load = false;
  policy.warm = true;
  kernels = make_fake(more_splits_faster, exact);
  CHECK(open_world(&w, &policy));
  rung_tune_report r;
  CHECK_STATUS(rung_tune(w.template_, NULL, 0, NULL, &error, &r), RUNG_IO);
  CHECK_EQ_I64(r.recorded, 6);
  list(w.device, text);
  CHECK_STR(text, ALL);
  CHECK_OK(rung_tune_warm(w.template_, NULL, 0, &error));
  world_close(&w);
  policy.load = true; /* not to be read: said once, and then there are none */
  CHECK(open_world(&w, &policy));
  bool found = true;
  rung_candidate c;
  const rung_winner_source *source = rung_tables_source(w.device->tables);
  CHECK_OK(source->find(source->self, "one", 1, &error, &found, &c));
  CHECK(!found);
  world_close(&w);
}

static void fail_nth(rung_fault kind, rung_status want) {
  for (int64_t n = 1;; n++) {
    world w;
    rung_tune_policy policy = policy_in("failing");
    kernels = make_fake(more_splits_faster, exact);
    CHECK(open_world(&w, &policy));
    test_fault f = {.kind = kind, .at = n};
    rung_tune_options o = rung_tune_options_default();
    o.again = true;
    w.error.message[0] = 0;
    rung_host_set_fault(w.host, test_fault_hit, &f);
    const rung_status status = rung_tune(w.template_, NULL, 0, &o, &w.error, NULL);
    rung_host_set_fault(w.host, NULL, NULL);
    CHECK_EQ_I64(kernels.opened, kernels.closed);
    CHECK_EQ_I64(sessions, 0);
    if (f.hit) CHECK_STATUS(status, want);
    if (f.hit) CHECK(w.error.message[0] != 0);
    if (!f.hit) CHECK_OK(status);
    world_close(&w);
    if (!f.hit) return;
  }
}
static void test_tune_allocations_fail(void) { fail_nth(RUNG_FAULT_ALLOC, RUNG_OUT_OF_MEMORY); }
static void test_tune_files_fail(void) { fail_nth(RUNG_FAULT_READ, RUNG_IO); }

/* ---- devices */

/* What the environment fills, and what is refused. The cpu device has no candidates. */
static void test_devices(void) {
  rung_device *device = NULL;
  rung_device_options o = rung_device_options_default();
  rung_tune_policy policy = rung_tune_policy_default();
  CHECK_EQ_I64(policy.entries, 256);
  CHECK(policy.load && policy.save && !policy.warm);
  policy.size = 3;
  o.tune = &policy;
  CHECK_STATUS(rung_device_create(host, "cpu", &o, &error, &device), RUNG_INVALID_ARGUMENT);
  policy = rung_tune_policy_default(), policy.profile = (rung_tune_profile)9;
  CHECK_STATUS(rung_device_create(host, "cpu", &o, &error, &device), RUNG_INVALID_ARGUMENT);
  setenv("RUNG_TUNE_PROFILE", "fastest", 1);
  CHECK_STATUS(rung_device_create(host, "cpu", NULL, &error, &device), RUNG_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "fastest") != NULL);
  setenv("RUNG_TUNE_PROFILE", "latency", 1);
  CHECK_OK(rung_device_create(host, "cpu", NULL, &error, &device));
  unsetenv("RUNG_TUNE_PROFILE");
  char text[1024];
  list(device, text);
  CHECK_STR(text, "");
  rung_device_release(device);
  world w;
  CHECK_OK(world_try(&w, graph_text, &(world_options){.device = "cpu"}));
  rung_tune_report r = {.kernels = 7};
  CHECK_OK(rung_tune(w.template_, NULL, 0, NULL, &error, &r));
  CHECK_EQ_I64(r.kernels, 0);
  world_close(&w);
}

int main(void) {
  snprintf(folder, sizeof folder, "/dev/shm/rung_tune_XXXXXX");
  if (!mkdtemp(folder)) {
    snprintf(folder, sizeof folder, "/tmp/rung_tune_XXXXXX");
    if (!mkdtemp(folder)) return 1;
  }
  CHECK_OK(rung_host_create(NULL, &error, &host));
  RUN(test_median);
  RUN(test_distance);
  RUN(test_fastest_wins);
  RUN(test_accuracy);
  RUN(test_what_the_device_cannot);
  RUN(test_never_slower);
  RUN(test_measure_fails);
  RUN(test_tune);
  RUN(test_restart);
  RUN(test_deterministic);
  RUN(test_profiles);
  RUN(test_when);
  RUN(test_ladder);
  RUN(test_refusals);
  RUN(test_no_folder);
  RUN(test_tune_allocations_fail);
  RUN(test_tune_files_fail);
  RUN(test_devices);
  rung_host_release(host);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command)) return 1;
  return TEST_END();
}
