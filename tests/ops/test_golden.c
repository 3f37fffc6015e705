/* SPDX-License-Identifier: MIT
 * References against numpy's numbers, recorded by scripts/oracle/record_ops.py in tests/ops/data. */
#include <math.h>

#include "cases.h"

static rung_host *host;
static const char *file_name;
static int line_number;
static uint64_t seed = 1234567;
static int64_t cases;

#define WRONG(...)                                            \
  do {                                                        \
    if (++test_state.failed <= 20) {                          \
      fprintf(stderr, "%s.txt:%d: ", file_name, line_number); \
      fprintf(stderr, __VA_ARGS__);                           \
      fputc('\n', stderr);                                    \
    }                                                         \
  } while (0)

static char *read_file(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/ops/data/%s.txt", RUNG_SOURCE_DIR, name);
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  const long size = ftell(f);
  rewind(f);
  char *text = (char *)calloc(1, (size_t)size + 1);
  const size_t got = fread(text, 1, (size_t)size, f);
  fclose(f);
  text[got] = 0;
  return text;
}

/* "f32[2,3]" and what follows it. */
static const char *read_shape(const char *at, operand_case *out) {
  const char *bracket = strchr(at, '[');
  char name[16] = "";
  *out = (operand_case){0};
  if (!bracket || bracket - at >= 16) return NULL;
  memcpy(name, at, (size_t)(bracket - at));
  return rung_type_find(name, &out->type) ? read_extents(bracket, out) : NULL;
}
static bool read_numbers(const char *at, const char *limit, tensor *t) {
  const bool integer = (rung_type_takes((rung_type)t->operand.type) & (RUNG_TAKES_INT | RUNG_TAKES_BOOL)) != 0;
  for (int64_t i = 0; i < tensor_count(t); i++) {
    int64_t whole;
    double real;
    while (at < limit && *at == ' ') at++;
    if (integer ? !rung_parse_i64(at, limit, &whole, &at) : !rung_parse_f64(at, limit, &real, &at)) return false;
    if (integer)
      rung_store_i64(&t->operand, tensor_offset(t, i), whole);
    else
      tensor_set(t, i, real);
  }
  return true;
}

static bool close_to(const tensor *want, const tensor *have, double relative, int64_t *out_at) {
  const bool exact = relative == 0 || !tensor_is_float(want);
  for (int64_t i = 0; i < tensor_count(want); i++) {
    *out_at = i;
    if (!tensor_is_float(want)) {
      if (tensor_get_i64(want, i) != tensor_get_i64(have, i)) return false;
      continue;
    }
    const double u = tensor_get(want, i), v = tensor_get(have, i);
    if (u == v || (u != u && v != v)) continue;
    if (exact || !(fabs(u - v) <= relative * (1 + fabs(u)))) return false;
  }
  return true;
}

typedef struct golden {
  op_case c;
  char attrs[256];
  tensor *in[CASE_OPERANDS], *want[4];
  double relative[4];
  int wants;
  char fail[32], text[128]; /* the status' name and part of its message; "" if it must work */
} golden;

static void check_result(const golden *g, const built *b, const eval *e, uint32_t r) {
  const tensor *have = result_of(e, b, r);
  int64_t at = 0;
  test_state.checks++;
  if (have->operand.type != g->want[r]->operand.type) {
    WRONG("%s: result %u is %s", g->c.op->name, r, rung_type_name((rung_type)have->operand.type));
    return;
  }
  bool same = have->operand.rank == g->want[r]->operand.rank;
  for (int axis = 0; same && axis < have->operand.rank; axis++) same = have->extent[axis] == g->want[r]->extent[axis];
  if (!same)
    WRONG("%s {%s}: result %u has other extents", g->c.op->name, g->attrs, r);
  else if (!close_to(g->want[r], have, g->relative[r], &at))
    WRONG("%s {%s}: result %u element %lld is %.17g, not %.17g", g->c.op->name, g->attrs, r, (long long)at,
          tensor_get(have, at), tensor_get(g->want[r], at));
}

static void check_golden(golden *g) {
  built b;
  eval e;
  rung_status status;
  const char *message;
  cases++;
  const bool made = build_case(host, &g->c, BUILD_CLOSED, &b);
  if (made) {
    status = run_case(&b, &g->c, g->in, &seed, &e);
    message = e.error.message;
  } else {
    status = rung_graph_status(b.graph);
    message = rung_graph_message(b.graph);
  }
  if (g->fail[0]) {
    test_state.checks++;
    if (strcmp(rung_status_name(status), g->fail) != 0 || !strstr(message, g->text))
      WRONG("%s: %s, \"%s\", not %s, \"%s\"", g->c.op->name, rung_status_name(status), message, g->fail, g->text);
  } else if (status) {
    WRONG("%s {%s}: %s", g->c.op->name, g->attrs, message);
  } else if ((int)b.outs != g->wants) {
    WRONG("%s has %u results", g->c.op->name, b.outs);
  } else {
    for (uint32_t r = 0; r < b.outs; r++) check_result(g, &b, &e, r);
  }
  if (made) eval_finish(&e);
  rung_graph_destroy(b.graph);
}
static void finish_golden(golden *g) {
  if (g->c.op && (g->wants || g->fail[0])) check_golden(g);
  for (int i = 0; i < g->c.n; i++) tensor_free(g->in[i]);
  for (int i = 0; i < g->wants; i++) tensor_free(g->want[i]);
  memset(g, 0, sizeof *g);
}

static bool read_line(golden *g, const char *line, const char *limit) {
  operand_case o;
  if (strncmp(line, "op ", 3) == 0) {
    finish_golden(g);
    const char *brace = strchr(line, '{');
    if (!brace || limit[-1] != '}') return false;
    snprintf(g->attrs, sizeof g->attrs, "%.*s", (int)(limit - 1 - (brace + 1)), brace + 1);
    g->c.attrs = g->attrs;
    g->c.op = rung_op_find(line + 3, (size_t)(brace - 1 - (line + 3)));
    return g->c.op != NULL;
  }
  if (strncmp(line, "in ", 3) == 0) {
    const char *at = read_shape(line + 3, &o);
    if (!at || g->c.n == CASE_OPERANDS) return false;
    g->c.operand[g->c.n] = o;
    g->in[g->c.n] = tensor_make(o.type, o.rank, o.extent, NULL);
    return read_numbers(at + 3, limit, g->in[g->c.n++]);
  }
  if (strncmp(line, "want ", 5) == 0) {
    const char *at = read_shape(line + 5, &o);
    if (!at || g->wants == 4 || !rung_parse_f64(at + 1, limit, &g->relative[g->wants], &at)) return false;
    g->want[g->wants] = tensor_make(o.type, o.rank, o.extent, NULL);
    return read_numbers(at + 3, limit, g->want[g->wants++]);
  }
  if (strncmp(line, "fail ", 5) != 0) return false;
  const char *space = strchr(line + 5, ' ');
  snprintf(g->fail, sizeof g->fail, "%.*s", (int)(space - (line + 5)), line + 5);
  snprintf(g->text, sizeof g->text, "%.*s", (int)(limit - (space + 1)), space + 1);
  return true;
}

static void run_file(const char *name) {
  char *text = read_file(name);
  golden g;
  memset(&g, 0, sizeof g);
  file_name = name;
  CHECK(text != NULL);
  if (!text) return;
  line_number = 0;
  for (char *line = text; *line;) {
    char *end = strchr(line, '\n');
    if (!end) end = line + strlen(line);
    const bool more = *end != 0;
    *end = 0;
    line_number++;
    if (!read_line(&g, line, end)) WRONG("cannot be read: %.60s", line);
    line = end + more;
  }
  finish_golden(&g);
  free(text);
}

static void test_unary(void) { run_file("unary"); }
static void test_binary(void) { run_file("binary"); }
static void test_ternary(void) { run_file("ternary"); }
static void test_nan(void) { run_file("nan"); }
static void test_reduce(void) { run_file("reduce"); }
static void test_norm(void) { run_file("norm"); }
static void test_movement(void) { run_file("movement"); }
static void test_cast(void) { run_file("cast"); }

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  RUN(test_unary);
  RUN(test_binary);
  RUN(test_ternary);
  RUN(test_nan);
  RUN(test_reduce);
  RUN(test_norm);
  RUN(test_movement);
  RUN(test_cast);
  printf("%lld golden cases\n", (long long)cases);
  rung_host_release(host);
  return TEST_END();
}
