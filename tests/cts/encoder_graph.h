/* SPDX-License-Identifier: MIT
 * A transformer encoder built through the C API, of the shape of MiniLM: hidden rows in, hidden rows out, batch and seq
 * open. For tests of caches and for the time of planning. */
#ifndef RUNG_TESTS_CTS_ENCODER_GRAPH_H
#define RUNG_TESTS_CTS_ENCODER_GRAPH_H

#include <rung/cache.h>
#include <rung/ops.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct encoder {
  int layers;
  int64_t width, heads, inner;
  int64_t batch, seq; /* declared maxima */
} encoder;
static const encoder encoder_minilm = {6, 384, 12, 1536, 64, 512};

static inline rung_value encoder_weight(rung_graph *g, int layer, const char *name, int64_t rows, int64_t columns) {
  char full[96];
  snprintf(full, sizeof full, "%d.%s", layer, name);
  return rung_graph_weight(g, full, RUNG_TYPE_F32, columns ? 2 : 1, (const int64_t[]){rows, columns});
}

static inline rung_value encoder_linear(rung_graph *g, int layer, const char *name, rung_value x, int64_t out,
                                        int64_t in) {
  char bias[64];
  snprintf(bias, sizeof bias, "%s.bias", name);
  const rung_value y = rung_matmul(g, x, encoder_weight(g, layer, name, out, in), true, RUNG_TYPE_F32);
  return rung_add(g, y, encoder_weight(g, layer, bias, out, 0));
}

static inline rung_value encoder_norm(rung_graph *g, int layer, const char *name, rung_value x, int64_t width) {
  char weight[64], bias[64];
  snprintf(weight, sizeof weight, "%s.weight", name);
  snprintf(bias, sizeof bias, "%s.bias", name);
  return rung_layer_norm(g, x, encoder_weight(g, layer, weight, width, 0), encoder_weight(g, layer, bias, width, 0),
                         1e-12);
}

/* [batch, seq, width] -> [batch, heads, seq, width / heads] */
static inline rung_value encoder_heads(rung_graph *g, const encoder *e, rung_value x, rung_dim batch, rung_dim seq) {
  const rung_dim shape[] = {batch, seq, rung_graph_constant_dim(g, e->heads),
                            rung_graph_constant_dim(g, e->width / e->heads)};
  return rung_transpose(g, rung_reshape(g, x, 4, shape), 4, (const int64_t[]){0, 2, 1, 3});
}

static inline rung_status encoder_build(void *self, uint64_t key, rung_graph *g, rung_error *error) {
  const encoder *e = (const encoder *)self;
  (void)key, (void)error;
  const rung_dim batch = rung_graph_symbol(g, RUNG_SYMBOL_BATCH, 1, e->batch);
  const rung_dim seq = rung_graph_symbol(g, RUNG_SYMBOL_SEQ, 1, e->seq);
  const rung_dim shape[] = {batch, seq, rung_graph_constant_dim(g, e->width)};
  rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 3, shape);
  for (int i = 0; i < e->layers; i++) {
    char label[32];
    snprintf(label, sizeof label, "layers.%d", i);
    rung_graph_label(g, label);
    const rung_value q = encoder_heads(g, e, encoder_linear(g, i, "q", x, e->width, e->width), batch, seq);
    const rung_value k = encoder_heads(g, e, encoder_linear(g, i, "k", x, e->width, e->width), batch, seq);
    const rung_value v = encoder_heads(g, e, encoder_linear(g, i, "v", x, e->width, e->width), batch, seq);
    const rung_value seen = rung_attention(g, q, k, v, (rung_value){0, 0}, NULL);
    const rung_value rows = rung_reshape(g, rung_transpose(g, seen, 4, (const int64_t[]){0, 2, 1, 3}), 3, shape);
    x = encoder_norm(g, i, "norm1", rung_add(g, x, encoder_linear(g, i, "o", rows, e->width, e->width)), e->width);
    const rung_value inner = rung_gelu(g, encoder_linear(g, i, "up", x, e->inner, e->width));
    x = encoder_norm(g, i, "norm2", rung_add(g, x, encoder_linear(g, i, "down", inner, e->width, e->inner)), e->width);
  }
  rung_graph_output(g, "y", x);
  return RUNG_OK;
}

/* A store with random values for the graph's weights. */
static inline rung_status encoder_store(rung_host *host, const encoder *e, uint64_t seed, rung_error *error,
                                        rung_weights **out_store) {
  static const struct {
    const char *name;
    int rows, columns; /* 0: 1, 1: width, 2: inner */
  } part[] = {{"q", 1, 1},
              {"k", 1, 1},
              {"v", 1, 1},
              {"o", 1, 1},
              {"up", 2, 1},
              {"down", 1, 2},
              {"q.bias", 1, 0},
              {"k.bias", 1, 0},
              {"v.bias", 1, 0},
              {"o.bias", 1, 0},
              {"up.bias", 2, 0},
              {"down.bias", 1, 0},
              {"norm1.weight", 1, 0},
              {"norm1.bias", 1, 0},
              {"norm2.weight", 1, 0},
              {"norm2.bias", 1, 0}};
  const int64_t size[] = {1, e->width, e->inner};
  float *data = malloc((size_t)(e->width * e->inner) * sizeof *data);
  rung_weights *store = NULL;
  rung_status status = data ? rung_weights_create(host, error, &store) : RUNG_OUT_OF_MEMORY;
  for (int layer = 0; layer < e->layers; layer++)
    for (size_t i = 0; !status && i < sizeof part / sizeof *part; i++) {
      char name[64];
      snprintf(name, sizeof name, "%d.%s", layer, part[i].name);
      const int64_t extent[] = {size[part[i].rows], size[part[i].columns]};
      const int64_t n = extent[0] * extent[1];
      for (int64_t k = 0; k < n; k++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data[k] = ((float)(seed >> 40) * 0x1p-24f - 0.5f) * (part[i].columns ? 0.2f : 1.0f);
      }
      status = rung_weights_declare(store, name, RUNG_TYPE_F32, part[i].columns ? 2 : 1, extent, error);
      if (!status) status = rung_weights_set(store, name, RUNG_TYPE_F32, data, (uint64_t)n * sizeof *data, error);
    }
  if (!status) status = rung_weights_commit(store, error);
  free(data);
  if (status)
    rung_weights_release(store);
  else
    *out_store = store;
  return status;
}

#endif
