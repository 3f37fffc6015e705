/* SPDX-License-Identifier: MIT
 * Products with chosen experts at every level that this machine has: each result has the bits that the plain product of
 * its row with its expert's own matrix has, whatever the other rows choose, however it is split; and an expert that no
 * index names is not read. */
#include "cpu_product.h"

enum { EXPERTS = 5, PLACES = 3 };

typedef struct setting {
  const level *level;
  rung_type a_type, b_type;
  const rung_layout *layout; /* NULL: b as it lies */
  int64_t rows, a_places, n, k;
  bool joined; /* b is [experts * n, k] */
} setting;

static const char *run_experts(const setting *s, const uint8_t *a, const uint8_t *b, const int32_t *index, int64_t rows,
                               float *y, int threads) {
  const int64_t a_block = rung_type_get(s->a_type)->block, b_block = rung_type_get(s->b_type)->block;
  const int64_t a_units = s->k / a_block, b_units = s->k / b_block;
  const int64_t a_extent[] = {rows, s->a_places, s->k}, a_stride[] = {s->a_places * a_units, a_units, 1};
  const int64_t b_extent[] = {EXPERTS, s->n, s->k}, b_stride[] = {s->n * b_units, b_units, 1};
  const int64_t j_extent[] = {EXPERTS * s->n, s->k}, j_stride[] = {b_units, 1};
  const int64_t i_extent[] = {rows, PLACES}, i_stride[] = {PLACES, 1};
  const int64_t y_extent[] = {rows, PLACES, s->n}, y_stride[] = {PLACES * s->n, s->n, 1};
  const uint16_t layout = s->layout ? s->layout->id : 0;
  const rung_operand in[3] = {{(uint8_t *)a, a_extent, a_stride, 3, (uint8_t)s->a_type, 0, NULL},
                              {(uint8_t *)b, s->joined ? j_extent : b_extent, s->joined ? j_stride : b_stride,
                               s->joined ? 2 : 3, (uint8_t)s->b_type, layout, NULL},
                              {(uint8_t *)index, i_extent, i_stride, 2, RUNG_TYPE_I32, 0, NULL}};
  const rung_operand out = {(uint8_t *)y, y_extent, y_stride, 3, RUNG_TYPE_F32, 0, NULL};
  const rung_expert_matmul_attrs attrs = {.experts = EXPERTS, .type = RUNG_TYPE_F32};
  rung_graph *graph = NULL;
  CHECK_OK(rung_graph_create(host, NULL, &graph));
  rung_node node = {.op = &rung_op_expert_matmul, .attrs = &attrs, .n_in = 3, .results = 1};
  rung_match match = {.graph = graph, .node = &node, .n_in = 3, .n_out = 1};
  rung_value_type type[3];
  for (int i = 0; i < 3; i++) {
    type[i] = value_type(graph->dims, &in[i]);
    match.in[i] = &type[i];
  }
  match.out_type[0] = value_type(graph->dims, &out);
  match.out = match.out_type;
  const rung_args args = {.in = in, .out = &out, .n_in = 3, .n_out = 1, .attrs = &attrs, .threads = threads};
  const char *name = run_match_roles(s->level, graph->dims, &match, args, (int64_t[]){rows, s->n, s->k, PLACES}, 4);
  rung_graph_destroy(graph);
  return name;
}

/* The plain product of one row with one expert's matrix. */
static void run_plain(const setting *s, const uint8_t *a, const uint8_t *b, float *y) {
  const int64_t a_extent[] = {1, s->k}, b_extent[] = {s->n, s->k}, y_extent[] = {1, s->n};
  const int64_t a_stride[] = {s->k / rung_type_get(s->a_type)->block, 1},
                b_stride[] = {s->k / rung_type_get(s->b_type)->block, 1}, y_stride[] = {s->n, 1};
  const rung_matmul_attrs attrs = {.transpose_b = true, .type = RUNG_TYPE_F32};
  const product p = {
      .op = &rung_op_matmul,
      .attrs = &attrs,
      .in = {{(uint8_t *)a, a_extent, a_stride, 2, (uint8_t)s->a_type, 0, NULL},
             {(uint8_t *)b, b_extent, b_stride, 2, (uint8_t)s->b_type, s->layout ? s->layout->id : 0, NULL}},
      .out = {{(uint8_t *)y, y_extent, y_stride, 2, RUNG_TYPE_F32, 0, NULL}},
      .n_out = 1,
      .m = 1,
      .n = s->n,
      .k = s->k,
      .threads = 1};
  (void)run(s->level, &p);
}

static void check_setting(const setting *s) {
  const uint64_t a_bytes = rung_type_bytes(s->a_type, (uint64_t)s->k);
  uint8_t *a = make_rows(s->a_type, s->rows * s->a_places, s->k), *b[EXPERTS];
  const uint64_t bytes = s->layout ? rung_layout_bytes(s->layout, s->n, s->k)
                                   : rung_type_bytes(s->b_type, (uint64_t)s->k) * (uint64_t)s->n;
  uint8_t *all = malloc(bytes * EXPERTS + 1);
  for (int e = 0; e < EXPERTS; e++) {
    uint8_t *plain = make_rows(s->b_type, s->n, s->k);
    b[e] = s->layout ? pack(s->layout, plain, s->n, s->k) : plain;
    if (s->layout) free(plain);
    /* Expert 2 is chosen by nobody: the memory that would be its own holds none of its numbers. */
    if (e == 2)
      memset(all + bytes * 2, 0x7f, bytes);
    else
      memcpy(all + bytes * (uint64_t)e, b[e], bytes);
  }
  static const int32_t choice[] = {0, 1, 3, 4};
  const int64_t pairs = s->rows * PLACES;
  int32_t *index = malloc((size_t)(pairs + 1) * sizeof *index);
  for (int64_t i = 0; i < pairs; i++) index[i] = choice[test_below(&seed, 4)];
  float *y = malloc((size_t)(pairs * s->n + 1) * sizeof *y), *other = malloc((size_t)(pairs * s->n + 1) * sizeof *y);
  const char *name = run_experts(s, a, all, index, s->rows, y, 1);
  CHECK(strncmp(name, "expert_matmul", 13) == 0);
  run_experts(s, a, all, index, s->rows, other, 3);
  CHECK(memcmp(y, other, (size_t)(pairs * s->n) * sizeof *y) == 0);
  int64_t differ = 0;
  for (int64_t pair = 0; pair < pairs; pair++) {
    const int64_t row = pair / PLACES, place = s->a_places == 1 ? 0 : pair % PLACES;
    run_plain(s, a + (uint64_t)(row * s->a_places + place) * a_bytes, b[index[pair]], other);
    differ += memcmp(y + pair * s->n, other, (size_t)s->n * sizeof *y) != 0;
  }
  CHECK_EQ_I64(differ, 0);
  if (differ) fprintf(stderr, "  %s: %s, %lld rows\n", s->level->name, name, (long long)s->rows);
  for (int e = 0; e < EXPERTS; e++) free(b[e]);
  free(a), free(all), free(index), free(y), free(other);
}

static void test_bits(void) {
  static const rung_type types[] = {RUNG_TYPE_F32,  RUNG_TYPE_F16,  RUNG_TYPE_BF16, RUNG_TYPE_Q4_0,
                                    RUNG_TYPE_Q4_1, RUNG_TYPE_Q5_0, RUNG_TYPE_Q5_1, RUNG_TYPE_Q8_0,
                                    RUNG_TYPE_Q4_K, RUNG_TYPE_Q5_K, RUNG_TYPE_Q6_K};
  static const int64_t rows[] = {1, 2, 9, 70};
  int64_t settings = 0;
  for (int l = 0; l < level_count; l++) {
    for (size_t t = 0; t < RUNG_COUNT(types); t++) {
      const rung_layout *layout = levels[l].target->layout_of(types[t]);
      const bool block = rung_type_is_block(types[t]);
      const int64_t k = rung_type_get(types[t])->block == 256 ? 256 : 96;
      for (size_t r = 0; r < RUNG_COUNT(rows); r++) {
        for (int way = 0; way < 4; way++) {
          const bool packed = way < 3, a8 = way == 2;
          if ((a8 && !block) || (packed && !layout)) continue;
          const setting s = {.level = &levels[l],
                             .a_type = a8 ? RUNG_TYPE_A8 : RUNG_TYPE_F32,
                             .b_type = types[t],
                             .layout = packed ? layout : NULL,
                             .rows = rows[r],
                             .a_places = way == 1 ? PLACES : 1,
                             .n = packed ? 80 : 23,
                             .k = k,
                             .joined = way % 2};
          check_setting(&s);
          settings++;
        }
      }
    }
  }
  printf("%lld settings\n", (long long)settings);
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  open_levels();
  RUN(test_bits);
  close_levels();
  rung_host_release(host);
  return TEST_END();
}
