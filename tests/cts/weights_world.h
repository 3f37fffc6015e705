/* SPDX-License-Identifier: MIT
 * A network over four weights of different types, stores filled by hand, and views and contexts over them. All numbers
 * are small integers, so that every sum is exact and the expected result is a plain sum over them. */
#ifndef RUNG_TESTS_CTS_WEIGHTS_WORLD_H
#define RUNG_TESTS_CTS_WEIGHTS_WORLD_H

#include <rung/program.h>

#include "../test.h"
#include "base/half.h"
#include "ir/type.h"
#include "runtime/runtime.h"

enum { NET_K = 24, NET_N = 40, NET_H = 8, NET_ROWS = 5 };
static const char net_text[] =
    "rung 1\n"
    "symbol n 1..16\n"
    "%0 = input {name=\"x\"} : f32[n,24]\n"
    "%1 = weight {name=\"a\"} : f32[24,40]\n"
    "%2 = matmul %0, %1 : f32[n,40]\n"
    "%3 = weight {name=\"b\"} : f32[40]\n"
    "%4 = add %2, %3 : f32[n,40]\n"
    "%5 = weight {name=\"h\"} : f16[24,8]\n"
    "%6 = cast %5 {type=f32} : f32[24,8]\n"
    "%7 = matmul %0, %6 : f32[n,8]\n"
    "%8 = weight {name=\"g\"} : bf16[8]\n"
    "%9 = cast %8 {type=f32} : f32[8]\n"
    "%10 = add %7, %9 : f32[n,8]\n"
    "output \"y\" %4\n"
    "output \"z\" %10\n";

typedef struct net_values {
  float a[NET_K * NET_N], b[NET_N], h[NET_K * NET_H], g[NET_H];
} net_values;
typedef struct net_weight {
  const char *name;
  rung_type type;
  int rank;
  int64_t extent[2];
  size_t at, count; /* in net_values */
} net_weight;
static const net_weight net_weights[] = {
    {"a", RUNG_TYPE_F32, 2, {NET_K, NET_N}, offsetof(net_values, a) / 4, NET_K *NET_N},
    {"b", RUNG_TYPE_F32, 1, {NET_N}, offsetof(net_values, b) / 4, NET_N},
    {"h", RUNG_TYPE_F16, 2, {NET_K, NET_H}, offsetof(net_values, h) / 4, NET_K *NET_H},
    {"g", RUNG_TYPE_BF16, 1, {NET_H}, offsetof(net_values, g) / 4, NET_H},
};
enum { NET_WEIGHTS = 4 };
static inline float *net_of(net_values *v, int weight) { return (float *)(void *)v + net_weights[weight].at; }

static inline void net_fill(net_values *v, uint64_t seed) {
  for (size_t i = 0; i < sizeof *v / 4; i++) ((float *)(void *)v)[i] = (float)(test_below(&seed, 9) - 4);
}
static inline float net_x(int64_t row, int64_t k) { return (float)((row * 7 + k * 3) % 5 - 2); }

typedef struct net {
  rung_host *host;
  rung_device *device;
  rung_graph *graph;
  rung_template *template_;
  rung_program *program;
  rung_error error;
} net;

static inline rung_status net_try(net *n, const char *device, int threads, const rung_allocator *allocator,
                                  uint64_t budget) {
  rung_host_options host = rung_host_options_default();
  host.allocator = allocator;
  host.memory_budget = budget;
  *n = (net){0};
  RUNG_TRY(rung_host_create(&host, &n->error, &n->host));
  rung_device_options o = rung_device_options_default();
  o.threads = threads;
  RUNG_TRY(rung_device_create(n->host, device, &o, &n->error, &n->device));
  RUNG_TRY(rung_graph_parse(n->host, net_text, strlen(net_text), &n->error, &n->graph));
  RUNG_TRY(rung_template_create(n->device, n->graph, NULL, &n->error, &n->template_));
  return rung_program_create(n->template_, NULL, 0, &n->error, &n->program);
}

static inline void net_close(net *n) {
  rung_program_release(n->program);
  rung_template_release(n->template_);
  rung_graph_destroy(n->graph);
  rung_device_release(n->device);
  if (n->host) {
    const rung_memory m = rung_host_memory(n->host);
    CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state + m.weights + m.load, 0);
  }
  rung_host_release(n->host);
}

static inline rung_status net_declare(net *n, rung_weights **out) {
  RUNG_TRY(rung_weights_create(n->host, &n->error, out));
  for (int w = 0; w < NET_WEIGHTS; w++)
    RUNG_TRY(rung_weights_declare(*out, net_weights[w].name, net_weights[w].type, net_weights[w].rank,
                                  net_weights[w].extent, &n->error));
  return RUNG_OK;
}
static inline rung_status net_set(rung_weights *store, int w, net_values *v, rung_error *error) {
  return rung_weights_set(store, net_weights[w].name, RUNG_TYPE_F32, net_of(v, w), net_weights[w].count * 4, error);
}
static inline rung_status net_set_view(rung_view *view, int w, net_values *v, rung_error *error) {
  return rung_view_set_weight(view, net_weights[w].name, RUNG_TYPE_F32, net_of(v, w), net_weights[w].count * 4, error);
}
/* A store that holds `v`. */
static inline rung_status net_store(net *n, net_values *v, rung_weights **out) {
  RUNG_TRY(net_declare(n, out));
  for (int w = 0; w < NET_WEIGHTS; w++) RUNG_TRY(net_set(*out, w, v, &n->error));
  return rung_weights_commit(*out, &n->error);
}
static inline rung_status net_context(net *n, rung_view *view, rung_context **out) {
  RUNG_TRY(rung_context_create(n->template_, view, NULL, NULL, &n->error, out));
  const rung_status status = rung_context_use(*out, n->program);
  return status ? rung_fail(&n->error, status, "%s", rung_context_message(*out)) : RUNG_OK;
}

static inline rung_status net_run_rows(rung_context *c, int64_t rows) {
  void *data;
  RUNG_TRY(rung_context_input(c, 0, (int64_t[]){rows, NET_K}, &data));
  for (int64_t r = 0; r < rows; r++)
    for (int64_t k = 0; k < NET_K; k++) ((float *)data)[r * NET_K + k] = net_x(r, k);
  return rung_context_run(c);
}
static inline rung_status net_run(rung_context *c) { return net_run_rows(c, NET_ROWS); }

/* How many of the results of the last run are not those of `v`. */
static inline int64_t net_wrong(rung_context *c, const net_values *v) {
  rung_tensor y, z;
  if (rung_context_output(c, 0, &y) || rung_context_output(c, 1, &z)) return -1;
  int64_t wrong = 0;
  for (int64_t r = 0; r < y.extent[0]; r++) {
    for (int64_t j = 0; j < NET_N; j++) {
      float sum = v->b[j];
      for (int64_t k = 0; k < NET_K; k++) sum += net_x(r, k) * v->a[k * NET_N + j];
      wrong += ((const float *)y.data)[r * NET_N + j] != sum;
    }
    for (int64_t j = 0; j < NET_H; j++) {
      float sum = v->g[j];
      for (int64_t k = 0; k < NET_K; k++) sum += net_x(r, k) * v->h[k * NET_H + j];
      wrong += ((const float *)z.data)[r * NET_H + j] != sum;
    }
  }
  return wrong;
}
#define NET_CHECK(context, values)               \
  do {                                           \
    CHECK_OK(net_run(context));                  \
    CHECK_EQ_I64(net_wrong(context, values), 0); \
  } while (0)

typedef struct trio {
  net n;
  net_values v;
  rung_weights *store;
  rung_view *view[3];
  rung_context *context[3];
} trio;
/* Three views and a context of each. */
static inline bool trio_open(trio *t, const char *device) {
  *t = (trio){0};
  net_fill(&t->v, 11);
  rung_status s = net_try(&t->n, device, 2, NULL, 0);
  if (!s) s = net_store(&t->n, &t->v, &t->store);
  for (int i = 0; i < 3 && !s; i++) {
    s = rung_view_create(t->store, &t->n.error, &t->view[i]);
    if (!s) s = net_context(&t->n, t->view[i], &t->context[i]);
  }
  test_state.checks++;
  if (s) TEST_FAIL_("%s: %s", device, t->n.error.message);
  return !s;
}
static inline void trio_close(trio *t) {
  for (int i = 0; i < 3; i++) {
    rung_context_destroy(t->context[i]);
    rung_view_release(t->view[i]);
  }
  rung_weights_release(t->store);
  net_close(&t->n);
}

/* Another store with the same weights. */
static inline bool other_open(trio *t, net_values *v, rung_weights **store, rung_view **view) {
  net_fill(v, 21);
  CHECK_OK(net_store(&t->n, v, store));
  CHECK_OK(rung_view_create(*store, &t->n.error, view));
  return *view != NULL;
}

#endif
