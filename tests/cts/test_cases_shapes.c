/* SPDX-License-Identifier: MIT
 * Cases of shapes from the field: many lengths one after another, sizes in turn, extents found in the input, dimensions
 * that are open and never change, runs that follow each other on one context, many contexts over one weight. */
#include <math.h>

#include "cts/encoder_graph.h"
#include "cts/world.h"

/* ---- what a run did, for comparing runs without a clock */

typedef struct work {
  uint64_t bytes, steps, tasks, kernels; /* kernels: a hash of their names in order */
} work;
static void add_step(void *self, const rung_step_info *info) {
  work *w = self;
  w->bytes += info->bytes;
  w->steps++;
  w->tasks += (uint64_t)info->tasks;
  for (const char *c = info->kernel; *c; c++) w->kernels = w->kernels * 31 + (uint64_t)*c;
}
static work run_counted(rung_context *c) {
  work w = {0};
  rung_context_on_step(c, add_step, &w);
  CHECK_OK(rung_context_run(c));
  rung_context_on_step(c, NULL, NULL);
  return w;
}
static uint64_t calls(const rung_host *host) { return rung_host_allocations(host) + rung_host_commits(host); }
static bool same_work(const work *a, const work *b) { return memcmp(a, b, sizeof *a) == 0; }

/* ---- an encoder in a ladder or alone */

static const encoder small = {2, 64, 4, 128, 128, 512};

typedef struct model {
  rung_host *host;
  rung_device *device;
  rung_weights *store;
  rung_view *view;
  rung_template *t;
  rung_error error;
} model;

static bool open_model(model *m, const encoder *e) {
  *m = (model){0};
  rung_graph *g = NULL;
  rung_status s = rung_host_create(NULL, &m->error, &m->host);
  if (!s) s = rung_device_create(m->host, "cpu", NULL, &m->error, &m->device);
  if (!s) s = encoder_store(m->host, e, 11, &m->error, &m->store);
  if (!s) s = rung_view_create(m->store, &m->error, &m->view);
  if (!s) s = rung_graph_create(m->host, &m->error, &g);
  if (!s) s = encoder_build((void *)(uintptr_t)e, 0, g, &m->error);
  if (!s) s = rung_template_create(m->device, g, NULL, &m->error, &m->t);
  rung_graph_destroy(g);
  CHECK_OK(s);
  if (s) fprintf(stderr, "  %s\n", m->error.message);
  return !s;
}
static void close_model(model *m) {
  rung_template_release(m->t);
  rung_view_release(m->view);
  rung_weights_release(m->store);
  rung_device_release(m->device);
  rung_host_release(m->host);
}
static rung_context *context_for(model *m, int64_t batch, int64_t seq) {
  rung_program *p = NULL;
  rung_context *c = NULL;
  rung_context_options o = rung_context_options_default();
  o.threads = 1;
  CHECK_OK(rung_program_create(m->t, (const rung_binding[]){{"batch", batch}, {"seq", seq}}, 2, &m->error, &p));
  CHECK_OK(rung_context_create(m->t, m->view, NULL, &o, &m->error, &c));
  CHECK_OK(rung_context_use(c, p));
  rung_program_release(p);
  return c;
}
static void put(rung_context *c, int64_t batch, int64_t seq, int64_t width) {
  void *x;
  const rung_status s = rung_context_input(c, 0, (const int64_t[]){batch, seq, width}, &x);
  CHECK_OK(s);
  uint64_t random = (uint64_t)(batch * 1000 + seq);
  for (int64_t i = 0; !s && i < batch * seq * width; i++) ((float *)x)[i] = test_uniform(&random, -1, 1);
}

/* ---- cases 1 and 3 */

/* Lengths one after another on [?,80] within what was declared: no pass, no program, and the work of each is in
 * proportion to its length. */
static void test_lengths_of_features(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..2048\n%0 = input {name=\"x\"} : f32[n,80]\n%1 = input {name=\"w\"} : f32[80,80]\n"
      "%2 = matmul %0, %1 : f32[n,80]\n%3 = softmax %2 : f32[n,80]\n%4 = add %3, %0 : f32[n,80]\noutput \"y\" %4\n";
  static const int64_t lengths[] = {1444, 1182, 614, 874, 1743, 1649, 1841};
  world w;
  if (world_open(&w, text, &(world_options){.device = "cpu", .commit_all = true})) {
    static float weights[80 * 80], x[2048 * 80];
    const uint64_t passes = rung_device_passes(w.device);
    uint64_t before = 0, weight_bytes = 0;
    double per_row = 0;
    for (int round = 0; round < 2; round++)
      for (size_t i = 0; i < RUNG_COUNT(lengths); i++) {
        CHECK(world_put(&w, 0, (const int64_t[]){lengths[i], 80}, x, (size_t)lengths[i] * 80 * 4));
        CHECK(world_put(&w, 1, (const int64_t[]){80, 80}, weights, sizeof weights));
        if (round && !i) before = calls(w.host);
        const work done = run_counted(w.context);
        /* All bytes but those of the second factor belong to rows. */
        if (!weight_bytes) weight_bytes = 80 * 80 * 4;
        const double bytes = (double)(done.bytes - weight_bytes) / (double)lengths[i];
        if (per_row == 0) per_row = bytes;
        CHECK(fabs(bytes - per_row) < 1e-6 * per_row);
      }
    CHECK_EQ_I64(calls(w.host), before);
    CHECK_EQ_I64(rung_device_passes(w.device), passes);
  }
  world_close(&w);
}

/* More batch sizes than a context remembers bindings, twenty times over: each runs the kernels that a program made for
 * it runs, the second time as the first, and nothing is called for it. */
static void test_many_batch_sizes(void) {
  model m;
  if (open_model(&m, &small)) {
    rung_context *c = context_for(&m, 100, 3);
    static work first[101];
    put(c, 100, 3, small.width);
    CHECK_OK(rung_context_run(c));
    const uint64_t before = calls(m.host);
    for (int round = 0; round < 2; round++)
      for (int64_t b = 1; b <= 100; b++) {
        put(c, b, 3, small.width);
        const work done = run_counted(c);
        if (!round) first[b] = done;
        CHECK(same_work(&done, &first[b]));
      }
    CHECK_EQ_I64(calls(m.host), before);
    for (int64_t b = 1; b <= 100; b += 11) {
      rung_context *fit = context_for(&m, b, 3);
      put(fit, b, 3, small.width);
      const work done = run_counted(fit);
      CHECK(same_work(&done, &first[b]));
      rung_context_destroy(fit);
    }
    rung_context_destroy(c);
  }
  close_model(&m);
}

/* ---- cases 2, 4 and 13: sizes in turn */

/* Two sizes in turn, eight in turn, and one alone: a visit does the same work whatever came before, calls no allocator,
 * and gives the same bits. */
static void test_sizes_in_turn(void) {
  model m;
  if (open_model(&m, &small)) {
    static const int64_t size[8] = {1024 / 8, 960 / 8, 7, 64, 33, 1, 100, 2};
    rung_context *c = context_for(&m, 1, 128);
    static float alone[8][128 * 64];
    work steady[8];
    for (int i = 0; i < 8; i++) {
      for (int k = 0; k < 2; k++) {
        put(c, 1, size[i], small.width);
        steady[i] = run_counted(c);
      }
      rung_tensor y;
      CHECK_OK(rung_context_output(c, 0, &y));
      memcpy(alone[i], y.data, (size_t)size[i] * 64 * 4);
    }
    const uint64_t before = calls(m.host);
    for (int i = 0; i < 64; i++) {
      const int k = i < 24 ? i % 2 : i % 8;
      put(c, 1, size[k], small.width);
      const work done = run_counted(c);
      CHECK(same_work(&done, &steady[k]));
      rung_tensor y;
      CHECK_OK(rung_context_output(c, 0, &y));
      CHECK(memcmp(y.data, alone[k], (size_t)size[k] * 64 * 4) == 0);
    }
    CHECK_EQ_I64(calls(m.host), before);
    rung_context_destroy(c);
  }
  close_model(&m);
}

/* ---- case 5 */

static void test_fill_by_input(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..64\n%0 = input {name=\"x\"} : f32[n]\n%1 = input {name=\"value\"} : f32[]\n"
      "%2 = expand %1 {shape=[n,n]} : f32[n,n]\n%3 = add %2, %0 : f32[n,n]\noutput \"y\" %3\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      for (int64_t n = 3; n <= 5; n++) {
        const float value = 10;
        float want[25];
        for (int64_t i = 0; i < n * n; i++) want[i] = value + (float)(i % n);
        if (!world_put_ramp(&w, 0, n, 0) || !world_put(&w, 1, (const int64_t[]){0}, &value, 4) || !world_run(&w))
          continue;
        WORLD_CHECK_F32(&w, 0, n * n, want);
        CHECK(world_output(&w, 0).extent[0] == n && world_output(&w, 0).extent[1] == n);
      }
    }
    world_close(&w);
  }
}

/* ---- case 7 */

static void test_replayed_views(void) {
  static const char text[] =
      "rung 1\nsymbol a 1..9\nsymbol b 1..9\n%0 = input {name=\"x\"} : f32[a,b]\n%1 = constant {data=f32(1)} : f32[]\n"
      "%2 = add %0, %1 : f32[a,b]\n%3 = transpose %2 {permutation=[1,0]} : f32[b,a]\n"
      "%4 = reshape %3 {shape=[a*b]} : f32[a*b]\noutput \"t\" %3\noutput \"flat\" %4\n";
  for (int d = 0; d < 2; d++) {
    world w;
    if (world_open(&w, text, &(world_options){.device = world_devices[d]})) {
      static const int64_t sizes[][2] = {{2, 3}, {5, 4}, {1, 9}, {2, 3}, {9, 1}};
      for (size_t i = 0; i < RUNG_COUNT(sizes); i++) {
        const int64_t a = sizes[i][0], b = sizes[i][1];
        float x[81], want[81];
        for (int64_t k = 0; k < a * b; k++) x[k] = (float)k;
        for (int64_t r = 0; r < b; r++)
          for (int64_t c = 0; c < a; c++) want[r * a + c] = x[c * b + r] + 1;
        if (!world_put(&w, 0, (const int64_t[]){a, b}, x, (size_t)(a * b) * 4) || !world_run(&w)) continue;
        const rung_tensor t = world_output(&w, 0), flat = world_output(&w, 1);
        int64_t stride[RUNG_MAX_RANK]; /* none given means dense */
        rung_buffer_strides(&t, stride);
        CHECK(t.extent[0] == b && t.extent[1] == a && stride[0] == a && stride[1] == 1);
        rung_buffer_strides(&flat, stride);
        CHECK(flat.rank == 1 && flat.extent[0] == a * b && stride[0] == 1);
        WORLD_CHECK_F32(&w, 0, a * b, want);
        WORLD_CHECK_F32(&w, 1, a * b, want);
      }
    }
    world_close(&w);
  }
}

/* ---- case 9 */

/* Open and never used so: the same kernels, work and bits as fixed, and nothing grows in a thousand runs. */
static void test_open_but_constant(void) {
  model m;
  if (open_model(&m, &small)) {
    rung_context *open = context_for(&m, 128, 512), *fixed = context_for(&m, 1, 9);
    rung_context *const both[2] = {open, fixed};
    work w[2];
    rung_tensor y[2];
    for (int k = 0; k < 2; k++) {
      put(both[k], 1, 9, small.width);
      w[k] = run_counted(both[k]);
      CHECK_OK(rung_context_output(both[k], 0, &y[k]));
    }
    CHECK(same_work(&w[0], &w[1]));
    CHECK(memcmp(y[0].data, y[1].data, 9 * 64 * 4) == 0);
    const uint64_t before = calls(m.host);
    const rung_memory held = rung_context_memory(open);
    for (int i = 0; i < (test_slow() ? 100 : 1000); i++) CHECK_OK(rung_context_run(open));
    CHECK_EQ_I64(calls(m.host), before);
    CHECK_EQ_I64(rung_context_memory(open).activations, held.activations);
    rung_context_destroy(open);
    rung_context_destroy(fixed);
  }
  close_model(&m);
}

/* ---- case 11 */

/* A run of 32 rows, then of one, in programs of two rungs on one context: no run touches what another was given. */
static void test_runs_do_not_share_buffers(void) {
  model m;
  if (open_model(&m, &small)) {
    rung_program *p[2] = {NULL, NULL};
    rung_context *c = NULL;
    const int64_t rows[2] = {32, 1};
    static _Alignas(64) float x[2][32 * 64], y[2][32 * 64], keep[2][2][32 * 64];
    for (int k = 0; k < 2; k++)
      CHECK_OK(rung_program_create(m.t, (const rung_binding[]){{"batch", 1}, {"seq", rows[k]}}, 2, &m.error, &p[k]));
    CHECK_OK(rung_context_create(m.t, m.view, NULL, NULL, &m.error, &c));
    for (int i = 0; i < 6; i++) {
      const int k = i % 2;
      uint64_t random = 5 + (uint64_t)i;
      const rung_tensor in = {.type = RUNG_TYPE_F32, .rank = 3, .extent = {1, rows[k], 64}, .data = x[k]};
      rung_tensor out = in;
      out.data = y[k];
      for (int j = 0; j < 32 * 64; j++) x[k][j] = test_uniform(&random, -1, 1), y[k][j] = -5;
      CHECK_OK(rung_context_use(c, p[k]));
      CHECK_OK(rung_context_bind_input(c, 0, &in));
      CHECK_OK(rung_context_bind_output(c, 0, &out));
      memcpy(keep[0][k], x[k], sizeof x[k]);
      CHECK_OK(rung_context_run(c));
      memcpy(keep[1][k], y[k], sizeof y[k]);
      for (int j = i ? 0 : k; j < 2; j++) { /* this run's and the other's: inputs as they were, outputs as they came */
        CHECK(memcmp(keep[0][j], x[j], sizeof x[j]) == 0);
        CHECK(i == 0 || memcmp(keep[1][j], y[j], sizeof y[j]) == 0);
      }
      for (int64_t j = rows[k] * 64; j < 32 * 64; j++) CHECK(y[k][j] == -5);
    }
    rung_context_destroy(c);
    for (int k = 0; k < 2; k++) rung_program_release(p[k]);
  }
  close_model(&m);
}

/* ---- case 12 */

static uint64_t all_held(const rung_host *host) {
  const rung_memory m = rung_host_memory(host);
  uint64_t sum = 0;
#define X(name, text) sum += m.name;
  RUNG_MEMORY_MAP(X)
#undef X
  return sum;
}

/* Eight contexts, each with a program of its own, over one matrix of 4096 x 4096: the weight once, less than 1 MiB for
 * each further one. Ten rounds of loading, running and dropping: back to where it began. */
static void test_sessions_share_a_weight(void) {
  enum { SIDE = 4096, SESSIONS = 8 };
  const int side = test_slow() ? 1024 : SIDE;
  rung_host *host = NULL;
  rung_error error = {0};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  const uint64_t begin = all_held(host);
  for (int round = 0; round < (test_slow() ? 2 : 10); round++) {
    rung_device *device = NULL;
    rung_graph *g = NULL;
    rung_template *t = NULL;
    rung_weights *store = NULL;
    rung_view *view = NULL;
    rung_context *c[SESSIONS] = {NULL};
    CHECK_OK(rung_device_create(host, "cpu", NULL, &error, &device));
    CHECK_OK(rung_weights_create(host, &error, &store));
    CHECK_OK(rung_weights_declare(store, "w", RUNG_TYPE_F32, 2, (const int64_t[]){side, side}, &error));
    const size_t bytes = (size_t)side * (size_t)side * 4;
    float *data = calloc(1, bytes);
    for (int i = 0; i < side; i++) data[(size_t)i * (size_t)side + (size_t)i] = 2;
    CHECK_OK(rung_weights_set(store, "w", RUNG_TYPE_F32, data, bytes, &error));
    CHECK_OK(rung_weights_commit(store, &error));
    free(data);
    CHECK_OK(rung_view_create(store, &error, &view));
    CHECK_OK(rung_graph_create(host, &error, &g));
    const rung_dim extent[] = {rung_graph_symbol(g, "n", 1, 64), rung_graph_constant_dim(g, side)};
    const rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 2, extent);
    const rung_value w = rung_graph_weight(g, "w", RUNG_TYPE_F32, 2, (const int64_t[]){side, side});
    rung_graph_output(g, "y", rung_matmul(g, x, w, true, RUNG_TYPE_F32));
    CHECK_OK(rung_template_create(device, g, NULL, &error, &t));
    rung_graph_destroy(g);
    uint64_t before = 0;
    for (int i = 0; i < (round ? 1 : SESSIONS); i++) {
      rung_program *p = NULL;
      void *in;
      const rung_binding ceiling = {"n", 1 + i};
      CHECK_OK(rung_program_create(t, &ceiling, 1, &error, &p));
      CHECK_OK(rung_context_create(t, view, NULL, NULL, &error, &c[i]));
      CHECK_OK(rung_context_use(c[i], p));
      rung_program_release(p);
      CHECK_OK(rung_context_input(c[i], 0, (const int64_t[]){1, side}, &in));
      for (int k = 0; k < side; k++) ((float *)in)[k] = (float)k;
      CHECK_OK(rung_context_run(c[i]));
      rung_tensor y = {0};
      CHECK_OK(rung_context_output(c[i], 0, &y));
      for (int k = 0; k < side && y.data; k += 97) CHECK(((float *)y.data)[k] == 2 * (float)k);
      if (i) CHECK(all_held(host) - before < 1 << 20);
      before = all_held(host);
    }
    for (int i = 0; i < SESSIONS; i++) rung_context_destroy(c[i]);
    rung_template_release(t);
    rung_view_release(view);
    rung_weights_release(store);
    rung_device_release(device);
    CHECK_EQ_I64(all_held(host), begin);
  }
  rung_host_release(host);
}

/* ---- case 14, for graphs that are no model of ours: printed */

static void test_upper_bound(void) {
  static const encoder wide = {6, 384, 12, 1536, 1, 2048};
  encoder e = wide;
  if (test_slow()) e.layers = 1;
  model m;
  if (open_model(&m, &e)) {
    rung_memory at[2];
    const int64_t ceiling[2] = {2048, 64};
    uint32_t buffers = 0;
    for (int k = 0; k < 2; k++) {
      rung_program *p = NULL;
      const rung_binding to = {"seq", ceiling[k]}, now = {"seq", 64};
      CHECK_OK(rung_program_create(m.t, &to, 1, &m.error, &p));
      CHECK_OK(rung_program_memory(p, &now, 1, NULL, &m.error, &at[k]));
      if (p) buffers = p->plan->buffers;
      rung_program_release(p);
    }
    const double large = (double)(at[0].activations + at[0].scratch), fit = (double)(at[1].activations + at[1].scratch);
    printf("encoder compiled for 2048, at 64: %.0f KiB, %.2f times what one compiled for 64 takes\n", large / 1024,
           large / fit);
    CHECK(large <= 1.75 * fit + (double)buffers * (double)rung_host_page(m.host));
  }
  close_model(&m);
}

int main(void) {
  RUN(test_lengths_of_features);
  RUN(test_many_batch_sizes);
  RUN(test_sizes_in_turn);
  RUN(test_fill_by_input);
  RUN(test_replayed_views);
  RUN(test_open_but_constant);
  RUN(test_runs_do_not_share_buffers);
  RUN(test_sessions_share_a_weight);
  RUN(test_upper_bound);
  return TEST_END();
}
