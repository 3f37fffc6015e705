/* SPDX-License-Identifier: MIT
 * Weights and views: stores made by hand, sets of the store and of one view, what is visible when, conversions, shares
 * and copies between views, forms shared and trimmed. */
#include <math.h>
#include <rung/cache.h>

#include "cts/weights_world.h"

static const char *const devices[] = {"ref", "cpu"};

/* Declared, then loaded; what is neither is refused with its name, and nothing is taken for zeros. */
static void test_states_of_a_weight(void) {
  net n;
  net_values v;
  net_fill(&v, 1);
  CHECK_OK(net_try(&n, "cpu", 2, NULL, 0));
  rung_weights *store, *empty;
  rung_view *view, *none;
  rung_context *context = NULL;
  CHECK_OK(rung_weights_create(n.host, &n.error, &empty));
  CHECK_OK(rung_view_create(empty, &n.error, &none));
  CHECK_STATUS(net_context(&n, none, &context), RUNG_NOT_LOADED);
  CHECK(strstr(n.error.message, "is not in the store") != NULL);
  rung_context_destroy(context);
  CHECK_STATUS(rung_weights_declare(empty, "late", RUNG_TYPE_F32, 0, NULL, &n.error), RUNG_INVALID_ARGUMENT);
  CHECK_OK(net_declare(&n, &store));
  CHECK_STATUS(rung_weights_declare(store, "a", RUNG_TYPE_F32, 0, NULL, &n.error), RUNG_INVALID_ARGUMENT);
  CHECK_OK(rung_view_create(store, &n.error, &view));
  for (int w = 0; w < NET_WEIGHTS; w++) {
    rung_weights_info info;
    CHECK(rung_weights_at(store, (size_t)w, &info) && !info.loaded);
    CHECK_STATUS(net_context(&n, view, &context), RUNG_NOT_LOADED);
    CHECK(strstr(n.error.message, "is declared but not loaded") != NULL);
    rung_context_destroy(context);
    float one;
    CHECK_STATUS(rung_weights_get(store, net_weights[w].name, 0, RUNG_TYPE_F32, &one, 4, &n.error), RUNG_NOT_LOADED);
    CHECK_STATUS(rung_weights_set_range(store, net_weights[w].name, 0, RUNG_TYPE_F32, &one, 4, &n.error),
                 RUNG_NOT_LOADED);
    CHECK_OK(net_set(store, w, &v, &n.error));
    CHECK(rung_weights_at(store, (size_t)w, &info) && !info.loaded); /* not before the commit */
    CHECK_OK(rung_weights_commit(store, &n.error));
    CHECK(rung_weights_at(store, (size_t)w, &info) && info.loaded);
  }
  CHECK_OK(net_context(&n, view, &context));
  NET_CHECK(context, &v);
  rung_context_destroy(context);
  rung_view_release(view);
  rung_view_release(none);
  rung_weights_release(store);
  rung_weights_release(empty);
  net_close(&n);
}

/* A set of one view, whole or a range, is seen by that view alone and only after its commit; one of the store by all
 * that have no value of their own. */
static void test_sets(void) {
  for (int d = 0; d < 2; d++) {
    trio t;
    if (!trio_open(&t, devices[d])) continue;
    rung_error *e = &t.n.error;
    for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], &t.v);
    net_values mine = t.v, other;
    net_fill(&other, 12);
    memcpy(mine.a, other.a, sizeof mine.a);
    memcpy(mine.g, other.g, sizeof mine.g);
    CHECK_OK(net_set_view(t.view[1], 0, &mine, e));
    CHECK_OK(net_set_view(t.view[1], 3, &mine, e));
    for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], &t.v);
    CHECK_EQ_I64(rung_view_generation(t.view[1]), 0);
    CHECK_OK(rung_view_commit(t.view[1], e));
    CHECK_EQ_I64(rung_view_generation(t.view[1]), 1);
    CHECK_EQ_I64(rung_view_generation(t.view[0]), 0);
    for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], i == 1 ? &mine : &t.v);
    /* Ranges: 7 numbers of a from element 100, 3 of h from element 5, given as f32. */
    for (int i = 0; i < 7; i++) mine.a[100 + i] = (float)(i - 9);
    for (int i = 0; i < 3; i++) mine.h[5 + i] = (float)(i + 5);
    CHECK_OK(rung_view_set_weight_range(t.view[1], "a", 400, RUNG_TYPE_F32, mine.a + 100, 28, e));
    CHECK_OK(rung_view_set_weight_range(t.view[1], "h", 10, RUNG_TYPE_F32, mine.h + 5, 12, e));
    CHECK_OK(rung_view_commit(t.view[1], e));
    for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], i == 1 ? &mine : &t.v);
    /* The store's a stays hidden by the view's own; its b does not. */
    memcpy(t.v.a, other.a, sizeof other.a);
    memcpy(t.v.b, other.b, sizeof other.b);
    memcpy(mine.b, other.b, sizeof other.b);
    CHECK_OK(net_set(t.store, 0, &t.v, e));
    CHECK_OK(net_set(t.store, 1, &t.v, e));
    CHECK_OK(rung_weights_commit(t.store, e));
    for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], i == 1 ? &mine : &t.v);
    /* Discarded sets never come; an empty commit is no generation. */
    net_fill(&other, 13);
    CHECK_OK(net_set(t.store, 0, &other, e));
    CHECK_OK(net_set_view(t.view[2], 1, &other, e));
    rung_weights_discard(t.store);
    rung_view_discard(t.view[2]);
    const uint64_t before = rung_view_generation(t.view[2]);
    CHECK_OK(rung_weights_commit(t.store, e));
    CHECK_OK(rung_view_commit(t.view[2], e));
    CHECK_EQ_I64(rung_view_generation(t.view[2]), before);
    for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], i == 1 ? &mine : &t.v);
    trio_close(&t);
  }
}

/* A run that has begun keeps its generation, whole, however many steps are left when another is published; what only it
 * still uses goes when it ends. */
typedef struct interrupted {
  trio *t;
  net_values next;
  rung_memory during;
  int steps;
} interrupted;
static void commit_within(void *self, const rung_step_info *info) {
  interrupted *in = self;
  (void)info;
  if (in->steps++) return;
  for (int w = 0; w < NET_WEIGHTS; w++) CHECK_OK(net_set(in->t->store, w, &in->next, &in->t->n.error));
  CHECK_OK(rung_weights_commit(in->t->store, &in->t->n.error));
  in->during = rung_weights_memory(in->t->store);
}
static void test_run_keeps_its_generation(void) {
  for (int d = 0; d < 2; d++) {
    trio t;
    if (!trio_open(&t, devices[d])) continue;
    interrupted in = {.t = &t};
    net_fill(&in.next, 81);
    const rung_memory before = rung_weights_memory(t.store);
    rung_context_on_step(t.context[0], commit_within, &in);
    NET_CHECK(t.context[0], &t.v);
    CHECK(in.steps > 1);
    NET_CHECK(t.context[0], &in.next);
    NET_CHECK(t.context[1], &in.next);
    CHECK_EQ_I64(in.during.packed, 2 * before.packed);
    CHECK_EQ_I64(in.during.weights, 2 * before.weights);
    CHECK_EQ_I64(rung_weights_memory(t.store).packed, before.packed);
    CHECK_EQ_I64(rung_weights_memory(t.store).weights, before.weights);
    CHECK_EQ_I64(rung_host_memory(t.n.host).weights, before.weights);
    trio_close(&t);
  }
}

/* Counts, types and places are checked; nothing of a refused set remains. */
static void test_refused_sets(void) {
  trio t;
  if (!trio_open(&t, "cpu")) return;
  rung_error *e = &t.n.error;
  float x[NET_K * NET_N + 1] = {0};
  rung_view *v = t.view[0];
  CHECK_STATUS(rung_view_set_weight(v, "none", RUNG_TYPE_F32, x, 4, e), RUNG_NOT_FOUND);
  CHECK_STATUS(rung_view_set_weight(v, "a", RUNG_TYPE_F32, x, sizeof t.v.a - 4, e), RUNG_SHAPE_MISMATCH);
  CHECK_STATUS(rung_view_set_weight(v, "a", RUNG_TYPE_F32, x, sizeof t.v.a + 4, e), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_view_set_weight(v, "a", RUNG_TYPE_F32, x, 7, e), RUNG_SHAPE_MISMATCH);
  CHECK_STATUS(rung_view_set_weight(v, "a", RUNG_TYPE_F16, x, sizeof t.v.a / 2, e), RUNG_TYPE_MISMATCH);
  CHECK(strstr(e->message, "'a'") && strstr(e->message, "f16"));
  CHECK_STATUS(rung_view_set_weight(v, "h", RUNG_TYPE_BF16, x, NET_K * NET_H * 2, e), RUNG_TYPE_MISMATCH);
  CHECK_STATUS(rung_view_set_weight(v, "a", RUNG_TYPE_F32, NULL, sizeof t.v.a, e), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_view_set_weight_range(v, "a", 3, RUNG_TYPE_F32, x, 4, e), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_view_set_weight_range(v, "a", sizeof t.v.a, RUNG_TYPE_F32, x, 4, e), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_view_set_weight_range(v, "a", UINT64_MAX - 3, RUNG_TYPE_F32, x, 8, e), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_view_set_weight(NULL, "a", RUNG_TYPE_F32, x, 4, e), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_set(t.store, NULL, RUNG_TYPE_F32, x, 4, e), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_set(t.store, "g", RUNG_TYPE_F32, x, NET_H * 2, e), RUNG_SHAPE_MISMATCH);
  CHECK_OK(rung_view_set_weight_range(v, "a", sizeof t.v.a, RUNG_TYPE_F32, x, 0, e)); /* nothing, at the very end */
  CHECK_OK(rung_view_commit(v, e));
  CHECK_OK(rung_weights_commit(t.store, e));
  for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], &t.v);
  trio_close(&t);
}

/* Numbers go in as f32 or as they are stored and come out the same: NaN with its bits where the type is given, as a NaN
 * where it is converted; f16 and bf16 to nearest, ties to even. */
static void test_round_trips(void) {
  static const rung_type types[] = {RUNG_TYPE_F32,  RUNG_TYPE_F16, RUNG_TYPE_BF16,
                                    RUNG_TYPE_Q8_0, RUNG_TYPE_I8,  RUNG_TYPE_F64};
  enum { COUNT = 4096 };
  static float in[COUNT], out[COUNT], want[COUNT];
  static uint8_t raw[COUNT * 8], back[COUNT * 8];
  rung_host *host;
  rung_error error;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  uint64_t seed = 5;
  for (int i = 0; i < COUNT; i++) in[i] = test_uniform(&seed, -90, 90);
  for (size_t t = 0; t < RUNG_COUNT(types); t++) {
    const rung_type_row *row = rung_type_get(types[t]);
    rung_weights *w;
    CHECK_OK(rung_weights_create(host, &error, &w));
    CHECK_OK(rung_weights_declare(w, "x", types[t], 2, (int64_t[]){COUNT / 64, 64}, &error));
    const bool plain = row->class_ == RUNG_CLASS_FLOAT;
    in[0] = plain ? NAN : 1;
    in[1] = plain ? INFINITY : 2;
    in[2] = 1.0f + 0x1p-11f; /* half way in f16: to even, 1 */
    in[3] = 1.0f + 0x1p-8f;  /* half way in bf16: to even, 1 */
    in[4] = -0.0f;
    row->from_f32(in, raw, COUNT); /* the rows are checked against other programs by test_types */
    row->to_f32(raw, want, COUNT);
    CHECK_OK(rung_weights_set(w, "x", RUNG_TYPE_F32, in, sizeof in, &error));
    CHECK_OK(rung_weights_commit(w, &error));
    CHECK_OK(rung_weights_get(w, "x", 0, RUNG_TYPE_F32, out, sizeof out, &error));
    for (int i = 0; i < COUNT; i++) CHECK(isnan(want[i]) ? isnan(out[i]) : memcmp(&out[i], &want[i], 4) == 0);
    if (types[t] == RUNG_TYPE_F16) CHECK(out[2] == 1 && out[3] == in[3]);
    if (types[t] == RUNG_TYPE_BF16) CHECK(out[2] == 1 && out[3] == 1);
    /* The stored type: bits as they are, any bits. */
    const size_t bytes = (size_t)rung_type_bytes(types[t], COUNT);
    for (size_t i = 0; i < bytes; i++) raw[i] = (uint8_t)test_below(&seed, 256);
    CHECK_OK(rung_weights_set(w, "x", types[t], raw, bytes, &error));
    CHECK_OK(rung_weights_commit(w, &error));
    CHECK_OK(rung_weights_get(w, "x", 0, types[t], back, bytes, &error));
    CHECK(memcmp(raw, back, bytes) == 0);
    rung_weights_release(w);
  }
  CHECK_EQ_I64(rung_host_memory(host).weights, 0);
  rung_host_release(host);
}

/* A block format that f32 cannot be converted to takes its blocks; ranges are whole blocks. */
static void test_blocks(void) {
  rung_host *host;
  rung_error error;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  rung_weights *w;
  CHECK_OK(rung_weights_create(host, &error, &w));
  CHECK_OK(rung_weights_declare(w, "q", RUNG_TYPE_Q8_0, 2, (int64_t[]){4, 64}, &error));
  CHECK_OK(rung_weights_declare(w, "iq", RUNG_TYPE_IQ2_XS, 2, (int64_t[]){2, 256}, &error));
  CHECK_STATUS(rung_weights_declare(w, "r", RUNG_TYPE_Q8_0, 2, (int64_t[]){4, 63}, &error), RUNG_SHAPE_MISMATCH);
  float x[512] = {0}, back[64];
  uint8_t raw[148] = {0};
  CHECK_OK(rung_weights_set(w, "q", RUNG_TYPE_F32, x, 256 * 4, &error));
  CHECK_OK(rung_weights_commit(w, &error));
  for (int i = 0; i < 64; i++) x[i] = (float)(i - 32) * 4;
  x[0] = -127;
  CHECK_OK(rung_weights_set_range(w, "q", 34 * 3, RUNG_TYPE_F32, x, 32 * 4, &error));
  CHECK_STATUS(rung_weights_set_range(w, "q", 34 * 3, RUNG_TYPE_F32, x, 31 * 4, &error), RUNG_SHAPE_MISMATCH);
  CHECK_STATUS(rung_weights_set_range(w, "q", 33, RUNG_TYPE_F32, x, 32 * 4, &error), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_weights_set_range(w, "q", 34 * 7, RUNG_TYPE_F32, x, 64 * 4, &error), RUNG_OUT_OF_RANGE);
  CHECK_OK(rung_weights_commit(w, &error));
  CHECK_OK(rung_weights_get(w, "q", 34 * 2, RUNG_TYPE_F32, back, sizeof back, &error));
  for (int i = 0; i < 32; i++) CHECK(back[i] == 0 && back[32 + i] == x[i]);
  if (!rung_type_get(RUNG_TYPE_IQ2_XS)->from_f32)
    CHECK_STATUS(rung_weights_set(w, "iq", RUNG_TYPE_F32, x, 512 * 4, &error), RUNG_UNSUPPORTED);
  CHECK_OK(rung_weights_set(w, "iq", RUNG_TYPE_IQ2_XS, raw, sizeof raw, &error));
  CHECK_OK(rung_weights_commit(w, &error));
  rung_weights_release(w);
  rung_host_release(host);
}

/* One packed form whatever the number of views and contexts; a set of one view makes anew only what it is made from;
 * trim drops what no context uses, and the next use has the same bits. */
static void test_forms(void) {
  trio t;
  if (!trio_open(&t, "cpu")) return;
  rung_error *e = &t.n.error;
  const uint64_t packed = rung_weights_memory(t.store).packed, weights = rung_weights_memory(t.store).weights;
  CHECK(packed > 0);
  for (int i = 0; i < 3; i++) {
    CHECK_EQ_I64(rung_view_memory(t.view[i]).packed, packed);
    CHECK_EQ_I64(rung_view_memory(t.view[i]).weights, weights);
  }
  CHECK_EQ_I64(rung_host_memory(t.n.host).packed, packed);
  CHECK_EQ_I64(rung_host_memory(t.n.host).weights, weights);
  net_values mine = t.v;
  mine.a[0] += 3;
  CHECK_OK(net_set_view(t.view[1], 0, &mine, e));
  CHECK_EQ_I64(rung_weights_memory(t.store).weights, weights + sizeof mine.a); /* waiting */
  CHECK_EQ_I64(rung_weights_memory(t.store).packed, packed);
  CHECK_OK(rung_view_commit(t.view[1], e));
  uint64_t both = rung_weights_memory(t.store).packed;
  CHECK(both > packed && both < 2 * packed); /* the form of h and the others are those of all */
  CHECK_EQ_I64(rung_view_memory(t.view[1]).packed, packed);
  CHECK_EQ_I64(rung_view_memory(t.view[0]).packed, packed);
  CHECK_EQ_I64(rung_host_memory(t.n.host).packed, both);
  /* A new generation of the store: what nobody binds any more is gone at once. */
  t.v.a[1] -= 2;
  CHECK_OK(net_set(t.store, 0, &t.v, e));
  CHECK_OK(rung_weights_commit(t.store, e));
  CHECK_EQ_I64(rung_weights_memory(t.store).packed, both);
  CHECK_EQ_I64(rung_weights_memory(t.store).weights, weights + sizeof mine.a);
  CHECK_EQ_I64(rung_host_memory(t.n.host).weights, weights + sizeof mine.a);
  /* In use: nothing to trim. */
  rung_weights_trim(t.store);
  CHECK_EQ_I64(rung_weights_memory(t.store).packed, both);
  for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], i == 1 ? &mine : &t.v);
  /* The contexts of views 0 and 2 go: their forms stay until they are trimmed, those that view 1 uses stay then, too.
   */
  rung_context_destroy(t.context[0]);
  rung_context_destroy(t.context[2]);
  CHECK_EQ_I64(rung_weights_memory(t.store).packed, both);
  rung_view_trim(t.view[1]);
  CHECK_EQ_I64(rung_weights_memory(t.store).packed, both);
  rung_view_trim(t.view[0]);
  CHECK_EQ_I64(rung_weights_memory(t.store).packed, packed);
  CHECK_EQ_I64(rung_host_memory(t.n.host).packed, packed);
  NET_CHECK(t.context[1], &mine);
  CHECK_OK(net_context(&t.n, t.view[0], &t.context[0]));
  CHECK_OK(net_context(&t.n, t.view[2], &t.context[2]));
  CHECK_EQ_I64(rung_weights_memory(t.store).packed, both);
  for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], i == 1 ? &mine : &t.v);
  /* A view that goes takes its values and what is made of them alone. */
  rung_context_destroy(t.context[1]);
  rung_view_release(t.view[1]);
  t.context[1] = NULL, t.view[1] = NULL;
  CHECK_EQ_I64(rung_weights_memory(t.store).packed, packed);
  CHECK_EQ_I64(rung_weights_memory(t.store).weights, weights);
  trio_close(&t);
}

/* A ladder of six rungs: weights once, forms once; a commit reaches every rung, also one that runs later. */
static void test_ladder(void) {
  static const rung_range ranges[] = {{1, 2}, {2, 4}, {4, 6}, {6, 9}, {9, 13}, {13, 17}};
  trio t;
  if (!trio_open(&t, "cpu")) return;
  rung_error *e = &t.n.error;
  rung_build build = rung_build_default();
  rung_ladder_options options = rung_ladder_options_default();
  rung_ladder *ladder;
  rung_context *context;
  const rung_memory before = rung_weights_memory(t.store);
  build.template_ = t.n.template_;
  build.view = t.view[0];
  options.symbol = "n";
  CHECK_OK(rung_ladder_create(t.n.device, &build, ranges, RUNG_COUNT(ranges), &options, e, &ladder));
  CHECK_OK(rung_ladder_warm(ladder, NULL, 0, e));
  CHECK_OK(rung_context_create(t.n.template_, t.view[0], NULL, NULL, e, &context));
  for (int round = 0; round < 3; round++) {
    for (size_t i = 0; i < RUNG_COUNT(ranges); i++) {
      CHECK_OK(rung_ladder_use(ladder, context, ranges[i].start, e));
      CHECK_OK(net_run_rows(context, ranges[i].end - 1));
      CHECK_EQ_I64(net_wrong(context, &t.v), 0);
    }
    CHECK_EQ_I64(rung_weights_memory(t.store).packed, before.packed);
    CHECK_EQ_I64(rung_weights_memory(t.store).weights, before.weights);
    if (round == 1) rung_ladder_clear(ladder); /* evicted and compiled again: the same weights */
    net_fill(&t.v, 90 + (uint64_t)round);
    for (int w = 0; w < NET_WEIGHTS; w++) CHECK_OK(net_set(t.store, w, &t.v, e));
    CHECK_OK(rung_weights_commit(t.store, e));
  }
  rung_context_destroy(context);
  rung_ladder_destroy(ladder);
  trio_close(&t);
}

/* share: the same values, whichever store they are of, nothing copied; later sets go each their own way. */
static void test_share(void) {
  for (int d = 0; d < 2; d++) {
    trio t;
    if (!trio_open(&t, devices[d])) continue;
    rung_error *e = &t.n.error;
    net_values mine = t.v, far;
    net_fill(&mine, 31);
    CHECK_OK(net_set_view(t.view[1], 0, &mine, e));
    CHECK_OK(rung_view_commit(t.view[1], e));
    memcpy(mine.b, t.v.b, sizeof mine.b), memcpy(mine.h, t.v.h, sizeof mine.h), memcpy(mine.g, t.v.g, sizeof mine.g);
    const rung_memory before = rung_weights_memory(t.store);
    CHECK_STATUS(rung_view_share_from(t.view[1], t.view[1], e), RUNG_INVALID_ARGUMENT);
    CHECK_OK(rung_view_share_from(t.view[2], t.view[1], e));
    CHECK_EQ_I64(rung_weights_memory(t.store).weights, before.weights);
    CHECK_EQ_I64(rung_weights_memory(t.store).packed, before.packed);
    for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], i ? &mine : &t.v);
    net_values apart = mine;
    apart.a[5] = 2;
    CHECK_OK(rung_view_set_weight_range(t.view[1], "a", 20, RUNG_TYPE_F32, &apart.a[5], 4, e));
    CHECK_OK(rung_view_commit(t.view[1], e));
    NET_CHECK(t.context[1], &apart);
    NET_CHECK(t.context[2], &mine);
    /* From a view of another store: the view is one of that store from now on. */
    rung_weights *store;
    rung_view *view;
    rung_context *there;
    if (!other_open(&t, &far, &store, &view)) continue;
    CHECK_OK(net_context(&t.n, view, &there));
    NET_CHECK(there, &far);
    const rung_memory others = rung_weights_memory(store);
    CHECK_OK(rung_view_share_from(t.view[1], view, e));
    CHECK_OK(rung_view_share_from(t.view[2], t.view[1], e));
    CHECK_EQ_I64(rung_weights_memory(store).packed, others.packed);
    CHECK_EQ_I64(rung_weights_memory(store).weights, others.weights);
    rung_context_destroy(there);
    rung_view_release(view);
    for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], i ? &far : &t.v);
    far.b[7] = -3;
    CHECK_OK(net_set(store, 1, &far, e));
    CHECK_OK(rung_weights_commit(store, e));
    rung_weights_release(store); /* the views keep it */
    t.v.b[7] = 1;
    CHECK_OK(net_set(t.store, 1, &t.v, e));
    CHECK_OK(rung_weights_commit(t.store, e));
    for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], i ? &far : &t.v);
    trio_close(&t);
  }
}

/* copy: the same values now, and nothing that happens later. */
static void test_copy(void) {
  for (int d = 0; d < 2; d++) {
    trio t;
    if (!trio_open(&t, devices[d])) continue;
    rung_error *e = &t.n.error;
    net_values far, first = t.v;
    rung_weights *store;
    rung_view *view;
    if (!other_open(&t, &far, &store, &view)) continue;
    CHECK_OK(rung_view_copy_from(t.view[1], view, e));
    CHECK_OK(rung_view_copy_from(t.view[2], t.view[0], e));
    rung_view_release(view);
    rung_weights_release(store);
    for (int i = 0; i < 3; i++) NET_CHECK(t.context[i], i == 1 ? &far : &first);
    net_fill(&t.v, 41);
    for (int w = 0; w < NET_WEIGHTS; w++) CHECK_OK(net_set(t.store, w, &t.v, e));
    CHECK_OK(rung_weights_commit(t.store, e));
    NET_CHECK(t.context[0], &t.v);
    NET_CHECK(t.context[1], &far);
    NET_CHECK(t.context[2], &first);
    CHECK_OK(rung_view_share_from(t.view[2], t.view[0], e)); /* and back */
    NET_CHECK(t.context[2], &t.v);
    trio_close(&t);
  }
}

/* Everything is checked before anything changes. */
static void test_refused_shares(void) {
  trio t;
  if (!trio_open(&t, "cpu")) return;
  rung_error *e = &t.n.error;
  static const struct {
    int rename, retype, reshape, leave, more;
    rung_status status;
  } cases[] = {
      {2, -1, -1, -1, 0, RUNG_NOT_FOUND},      {-1, 3, -1, -1, 0, RUNG_TYPE_MISMATCH},
      {-1, -1, 1, -1, 0, RUNG_SHAPE_MISMATCH}, {-1, -1, -1, 2, 0, RUNG_NOT_LOADED},
      {-1, -1, -1, -1, 1, RUNG_NOT_FOUND},
  };
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    rung_weights *store;
    rung_view *view;
    CHECK_OK(rung_weights_create(t.n.host, e, &store));
    for (int w = 0; w < NET_WEIGHTS + cases[i].more; w++) {
      net_weight weight = net_weights[w % NET_WEIGHTS];
      if (w == cases[i].rename || w == NET_WEIGHTS) weight.name = "else";
      if (w == cases[i].retype) weight.type = RUNG_TYPE_F32;
      if (w == cases[i].reshape) weight.extent[0] = 2, weight.extent[1] = NET_N / 2, weight.rank = 2;
      CHECK_OK(rung_weights_declare(store, weight.name, weight.type, weight.rank, weight.extent, e));
      if (w != cases[i].leave)
        CHECK_OK(
            rung_weights_set(store, weight.name, RUNG_TYPE_F32, net_of(&t.v, w % NET_WEIGHTS), weight.count * 4, e));
    }
    CHECK_OK(rung_weights_commit(store, e));
    CHECK_OK(rung_view_create(store, e, &view));
    const uint64_t generation = rung_view_generation(t.view[0]);
    CHECK_STATUS(rung_view_share_from(t.view[0], view, e), cases[i].status);
    CHECK_STATUS(rung_view_copy_from(t.view[0], view, e), cases[i].status);
    CHECK_EQ_I64(rung_view_generation(t.view[0]), generation);
    NET_CHECK(t.context[0], &t.v);
    rung_view_release(view);
    rung_weights_release(store);
  }
  CHECK_OK(net_set_view(t.view[0], 0, &t.v, e));
  CHECK_STATUS(rung_view_share_from(t.view[0], t.view[1], e), RUNG_INVALID_ARGUMENT);
  CHECK(strstr(e->message, "wait") != NULL);
  rung_view_discard(t.view[0]);
  rung_host *host;
  CHECK_OK(rung_host_create(NULL, e, &host));
  rung_weights *foreign;
  rung_view *view;
  CHECK_OK(rung_weights_create(host, e, &foreign));
  CHECK_OK(rung_view_create(foreign, e, &view));
  CHECK_STATUS(rung_view_share_from(t.view[0], view, e), RUNG_INVALID_ARGUMENT);
  rung_view_release(view);
  rung_weights_release(foreign);
  rung_host_release(host);
  trio_close(&t);
}

int main(void) {
  RUN(test_states_of_a_weight);
  RUN(test_sets);
  RUN(test_run_keeps_its_generation);
  RUN(test_refused_sets);
  RUN(test_round_trips);
  RUN(test_blocks);
  RUN(test_forms);
  RUN(test_ladder);
  RUN(test_share);
  RUN(test_copy);
  RUN(test_refused_shares);
  return TEST_END();
}
