/* SPDX-License-Identifier: MIT
 * Rotary positions that were put together by patterns: the bits of the ops that spelled them, for every way to spell
 * them, every instruction set and widths that fill no vector; what only looks like one, or lends its parts, is still
 * right and asks nothing more of its sizes; every allocation of a compile and run fails once. */
#define _GNU_SOURCE
#include <stdarg.h>

#include "run_graph.h"

enum { TEXT = 1 << 13 };

typedef struct writer {
  char text[TEXT];
  size_t length;
  int next;
  const char *type;
} writer;

static void put(writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(w->text + w->length, TEXT - w->length, format, args);
  va_end(args);
  if (n > 0 && w->length + (size_t)n < TEXT) w->length += (size_t)n;
}
/* One statement whose result has these extents behind "b,3,n,"; gives its number. */
static int say(writer *w, const char *extents, const char *format, ...) {
  char what[256];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  put(w, "%%%d = %s : %s[b,3,n,%s]\n", w->next, what, w->type, extents);
  return w->next++;
}

/* ---- the spellings */

typedef struct spelling {
  bool adjacent, channel;
  int cut;  /* adjacent: 0 steps of 2, 1 gathers from an axis of pairs, 2 slices of it; half: 1 an opposite by -1 */
  int rest; /* channels that stay */
} spelling;

static int part(writer *w, int x, int first, int count, int step) {
  char extents[16];
  snprintf(extents, sizeof extents, "%d", count);
  return say(w, extents, "slice %%%d {start=[0,0,0,%d], length=[b,3,n,%d], step=[1,1,1,%d]}", x, first, count, step);
}

static void cut_pairs(writer *w, const spelling *s, int x, int n, int *out_a, int *out_b) {
  int *const out[2] = {out_a, out_b};
  char pairs[32], one[32], half[16];
  snprintf(pairs, sizeof pairs, "%d,2", n), snprintf(one, sizeof one, "%d,1", n), snprintf(half, sizeof half, "%d", n);
  const int wide = s->adjacent && s->cut ? say(w, pairs, "reshape %%%d {shape=[b,3,n,%s]}", x, pairs) : 0;
  for (int i = 0; i < 2; i++) {
    if (!s->adjacent) {
      *out[i] = part(w, x, i * n, n, 1);
    } else if (s->cut == 0) {
      *out[i] = part(w, x, i, n, 2);
    } else if (s->cut == 1) {
      put(w, "%%%d = constant {data=i64(%d)} : i64[]\n", w->next++, i);
      *out[i] = say(w, half, "gather %%%d, %%%d {axis=4}", wide, w->next - 1);
    } else {
      const int slice =
          say(w, one, "slice %%%d {start=[0,0,0,0,%d], length=[b,3,n,%s], step=[1,1,1,1,1]}", wide, i, one);
      *out[i] = say(w, half, "reshape %%%d {shape=[b,3,n,%s]}", slice, half);
    }
  }
}

static int join_pairs(writer *w, const spelling *s, int a, int b, int n) {
  char whole[16], one[32], pairs[32];
  snprintf(whole, sizeof whole, "%d", 2 * n), snprintf(one, sizeof one, "%d,1", n),
      snprintf(pairs, sizeof pairs, "%d,2", n);
  if (!s->adjacent) return say(w, whole, "concat %%%d, %%%d {axis=-1}", a, b);
  a = say(w, one, "reshape %%%d {shape=[b,3,n,%s]}", a, one);
  b = say(w, one, "reshape %%%d {shape=[b,3,n,%s]}", b, one);
  const int both = say(w, pairs, "concat %%%d, %%%d {axis=4}", a, b);
  return say(w, whole, "reshape %%%d {shape=[b,3,n,%s]}", both, whole);
}

/* An input of 2n channels and some that stay; tables for each row of each batch entry. */
static void spell(writer *w, const spelling *s, const char *type, int n) {
  *w = (writer){.type = type};
  put(w, "rung 1\nsymbol b 1..8\nsymbol n 1..64\n");
  char half[16], whole[16], width[16];
  snprintf(half, sizeof half, "%d", n), snprintf(whole, sizeof whole, "%d", 2 * n);
  snprintf(width, sizeof width, "%d", 2 * n + s->rest);
  const int in = say(w, width, "input {name=\"x\"}");
  for (int i = 0; i < 2; i++)
    put(w, "%%%d = input {name=\"%s\"} : %s[b,1,n,%s]\n", w->next++, i ? "s" : "c", type, s->channel ? whole : half);
  const int c = in + 1, t = in + 2, x = s->rest ? part(w, in, 0, 2 * n, 1) : in;
  int a, b, y;
  cut_pairs(w, s, x, n, &a, &b);
  if (s->channel) {
    int opposite;
    if (!s->adjacent && s->cut) {
      put(w, "%%%d = constant {data=%s(-1)} : %s[]\n", w->next++, type, type);
      opposite = say(w, half, "mul %%%d, %%%d", w->next - 1, b);
    } else {
      opposite = say(w, half, "neg %%%d", b);
    }
    const int turned = join_pairs(w, s, opposite, a, n), u = say(w, whole, "mul %%%d, %%%d", x, c);
    y = say(w, whole, "add %%%d, %%%d", u, say(w, whole, "mul %%%d, %%%d", turned, t));
  } else {
    const int ac = say(w, half, "mul %%%d, %%%d", a, c), bs = say(w, half, "mul %%%d, %%%d", t, b);
    const int re = say(w, half, "sub %%%d, %%%d", ac, bs), as = say(w, half, "mul %%%d, %%%d", t, a);
    const int bc = say(w, half, "mul %%%d, %%%d", c, b);
    y = join_pairs(w, s, re, say(w, half, "add %%%d, %%%d", as, bc), n);
  }
  if (s->rest) y = say(w, width, "concat %%%d, %%%d {axis=3}", y, part(w, in, 2 * n, s->rest, 1));
  put(w, "output \"y\" %%%d\n", y);
}

/* ---- runs */

static const char *const levels[] = {"base", "avx2", NULL}; /* NULL: all that the machine has */

static rung_host *open_host(void) {
  rung_host *host = NULL;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  return host;
}

static graph_run execute(rung_host *host, const char *device, const char *level, const char *text, bool fuse,
                         int64_t size) {
  rung_compile_options o = rung_compile_options_default();
  o.fuse = fuse;
  if (level) setenv("RUNG_MAX_ISA", level, 1);
  const graph_run r = graph_execute(host, device, text, &o, size);
  unsetenv("RUNG_MAX_ISA");
  CHECK_OK(r.status);
  if (r.status) fprintf(stderr, "%s\n%s", r.error.message, text);
  return r;
}

static bool same_bits(const graph_run *a, const graph_run *b) {
  bool same = a->outputs == b->outputs;
  for (uint32_t i = 0; same && i < a->outputs; i++)
    same = a->elements[i] == b->elements[i] &&
           memcmp(a->value[i], b->value[i], (size_t)a->elements[i] * sizeof(float)) == 0;
  return same;
}

/* The nodes of an op in what a compile makes of a text. */
static int count_ops(rung_host *host, const char *text, const rung_op *op) {
  graph_world w = {.maps = 0};
  rung_error error;
  int n = 0;
  CHECK_OK(graph_open(host, &w, "cpu", text, NULL, &error));
  for (uint32_t i = 0; w.template_ && i < w.template_->graph->nodes; i++) n += w.template_->graph->node[i].op == op;
  graph_close(&w);
  return n;
}

static void check_spelling(rung_host *host, const spelling *s, const char *type, int n, int64_t size) {
  static writer w;
  spell(&w, s, type, n);
  const bool whole = count_ops(host, w.text, &rung_op_rotate) == 1 && count_ops(host, w.text, &rung_op_concat) == 0;
  CHECK(whole);
  if (!whole) fprintf(stderr, "not recognised:\n%s", w.text);
  const bool exact = strcmp(type, "f32") == 0 || strcmp(type, "f64") == 0;
  /* Three roundings in the place of one. */
  const double room = strcmp(type, "f16") == 0 ? 0x1p-10 : 0x1p-7;
  graph_run reference = execute(host, "ref", NULL, w.text, false, size);
  for (size_t k = 0; k < RUNG_COUNT(levels); k++) {
    graph_run apart = execute(host, "cpu", levels[k], w.text, false, size);
    graph_run fused = execute(host, "cpu", levels[k], w.text, true, size);
    const bool same = exact ? same_bits(&apart, &fused) : graph_difference(&apart, &fused) <= room;
    CHECK(same);
    CHECK(graph_difference(&reference, &fused) <= (exact ? 1e-6 : room));
    if (!same) fprintf(stderr, "%s, %d pairs, level %s:\n%s", type, n, levels[k] ? levels[k] : "all", w.text);
    graph_run_free(&apart);
    graph_run_free(&fused);
  }
  graph_run_free(&reference);
}

static void test_spellings(void) {
  static const char *const types[] = {"f32", "f64", "f16", "bf16"};
  static const int pairs[] = {1, 2, 3, 8, 15, 16, 17, 32, 40};
  rung_host *host = open_host();
  uint64_t random = 5;
  for (int form = 0; form < 10; form++) {
    const spelling s = {.adjacent = form >= 4, .channel = form % 2, .cut = form < 4 ? form / 2 : (form - 4) / 2};
    for (size_t i = 0; i < RUNG_COUNT(pairs); i++) {
      spelling here = s;
      here.rest = test_below(&random, 2) ? (int)(1 + test_below(&random, 20)) : 0;
      check_spelling(host, &here, types[test_below(&random, test_slow() ? 1 : 4)], pairs[i],
                     1 + test_below(&random, 8));
      check_spelling(host, &s, "f32", pairs[i], 5);
    }
  }
  rung_host_release(host);
}

/* ---- the same row alone, in any batch and length */

static void test_rows(void) {
  rung_host *host = open_host();
  static writer w;
  rung_error error;
  enum { B = 3, N = 40, HEADS = 3, WIDTH = 52, TABLE = 20 };
  static float x[B * HEADS * N * WIDTH], c[B * N * TABLE], s[B * N * TABLE], whole[B * HEADS * N * WIDTH],
      some[B * HEADS * N * WIDTH], cs[2][B * N * TABLE];
  graph_fill(RUNG_TYPE_F32, (int64_t)RUNG_COUNT(x), "x", x);
  graph_fill(RUNG_TYPE_F32, (int64_t)RUNG_COUNT(c), "c", c);
  graph_fill(RUNG_TYPE_F32, (int64_t)RUNG_COUNT(s), "s", s);
  spell(&w, &(spelling){.adjacent = true, .rest = WIDTH - 2 * TABLE}, "f32", TABLE);
  graph_world world = {.maps = 0};
  CHECK_OK(graph_open(host, &world, "cpu", w.text, NULL, &error));
  for (int64_t chunk = N; chunk > 0; chunk = chunk == N ? 7 : chunk == 7 ? 1 : 0)
    for (int64_t batch = B; batch > 0; batch -= B - 1)
      for (int64_t b = 0; b < B; b += batch)
        for (int64_t at = 0; at < N; at += chunk) {
          const int64_t n = at + chunk < N ? chunk : N - at, extents[4] = {batch, HEADS, n, WIDTH},
                        rows[4] = {batch, 1, n, TABLE};
          for (int64_t i = 0; i < batch * HEADS; i++)
            memcpy(some + i * n * WIDTH, x + ((b * HEADS + i) * N + at) * WIDTH, (size_t)(n * WIDTH) * sizeof *x);
          for (int64_t i = 0; i < batch; i++) {
            memcpy(cs[0] + i * n * TABLE, c + ((b + i) * N + at) * TABLE, (size_t)(n * TABLE) * sizeof *c);
            memcpy(cs[1] + i * n * TABLE, s + ((b + i) * N + at) * TABLE, (size_t)(n * TABLE) * sizeof *s);
          }
          rung_tensor in[3] = {rung_tensor_dense(RUNG_TYPE_F32, 4, extents, some),
                               rung_tensor_dense(RUNG_TYPE_F32, 4, rows, cs[0]),
                               rung_tensor_dense(RUNG_TYPE_F32, 4, rows, cs[1])},
                      y;
          for (int i = 0; i < 3; i++) CHECK_OK(rung_context_bind_input(world.context, i, &in[i]));
          CHECK_OK(rung_context_run(world.context));
          CHECK_OK(rung_context_output(world.context, 0, &y));
          for (int64_t i = 0; i < batch * HEADS; i++) {
            float *const kept = whole + ((b * HEADS + i) * N + at) * WIDTH;
            const float *have = (const float *)y.data + i * n * WIDTH;
            if (chunk == N && batch == B) memcpy(kept, have, (size_t)(n * WIDTH) * sizeof *kept);
            CHECK(memcmp(kept, have, (size_t)(n * WIDTH) * sizeof *kept) == 0);
          }
        }
  graph_close(&world);
  rung_host_release(host);
}

/* ---- what is no rotation, or lends its parts */

/* The graph of a golden file. */
static bool read_graph(const char *name, char *out, size_t room) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/golden/%s", RUNG_SOURCE_DIR, name);
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  const size_t n = fread(out, 1, room - 1, f);
  fclose(f);
  out[n] = 0;
  char *start = strstr(out, "rung 1\n"), *end = strstr(out, "\n----");
  if (!start || !end) return false;
  end[1] = 0;
  memmove(out, start, strlen(start) + 1);
  return true;
}

static void test_near(void) {
  static const char *const files[] = {"pattern_rotate.rung", "pattern_rotate_neighbours.rung",
                                      "pattern_rotate_not.rung"};
  static char text[1 << 14];
  rung_host *host = open_host();
  for (size_t i = 0; i < RUNG_COUNT(files); i++) {
    CHECK(read_graph(files[i], text, sizeof text));
    for (int64_t size = 1; size < 9; size += 3) {
      graph_run apart = execute(host, "cpu", NULL, text, false, size),
                fused = execute(host, "cpu", NULL, text, true, size);
      graph_run reference = execute(host, "ref", NULL, text, false, size);
      CHECK(same_bits(&apart, &fused));
      CHECK(graph_difference(&reference, &fused) <= 1e-6);
      graph_run_free(&apart);
      graph_run_free(&fused);
      graph_run_free(&reference);
    }
  }
  rung_host_release(host);
}

/* ---- failures */

static void test_failures(void) {
  static writer w;
  rung_host *host = open_host();
  for (int adjacent = 0; adjacent < 2; adjacent++) {
    spell(&w, &(spelling){.adjacent = adjacent, .channel = !adjacent, .cut = 2 * adjacent, .rest = 3}, "f16", 5);
    const int64_t failed = graph_fail_each(host, w.text, RUNG_FAULT_ALLOC, test_slow() ? 5 : 1);
    printf("%" PRId64 " allocations failed\n", failed);
  }
  rung_host_release(host);
}

int main(void) {
  RUN(test_spellings);
  RUN(test_rows);
  RUN(test_near);
  RUN(test_failures);
  return TEST_END();
}
