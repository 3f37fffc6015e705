/* SPDX-License-Identifier: MIT
 * Walks the table of ops and names none: each case compiled and run with closed extents, with each extent open alone
 * and with all of them open, for the size and for more. The bits are the same and the results have the actual extents.
 */
#include <rung/cache.h>

#include "cases.h"
#include "runtime/runtime.h"

static rung_host *host;
static rung_device *device;
static uint64_t seed = 88172645463325252u;
static struct { int64_t cases, alone, all, more, closed_only; } done;

enum { MOST_EXTENTS = 32 };

/* The distinct extents above 1 of a case. */
static int extents_of(const op_case *c, int64_t *out) {
  int n = 0;
  for (int i = 0; i < c->n; i++)
    for (int axis = 0; axis < c->operand[i].rank; axis++) {
      const int64_t extent = c->operand[i].extent[axis];
      bool seen = extent <= 1;
      for (int k = 0; k < n; k++) seen |= out[k] == extent;
      if (!seen && n < MOST_EXTENTS) out[n++] = extent;
    }
  return n;
}

typedef struct compiled {
  rung_graph *graph;
  rung_template *template_;
  rung_program *program;
  rung_context *context;
} compiled;

static void drop(compiled *p) {
  rung_context_destroy(p->context);
  rung_program_release(p->program);
  rung_template_release(p->template_);
  rung_graph_destroy(p->graph);
  *p = (compiled){0};
}

/* The case with the extents of the mask open; false where its op needs one of them closed. */
static bool build(const op_case *c, const int64_t *extent, int n, uint32_t mask, rung_graph **out_graph,
                  rung_error *error) {
  rung_graph *g;
  rung_value in[CASE_OPERANDS];
  CHECK_OK(rung_graph_create(host, error, &g));
  for (int i = 0; i < c->n; i++) {
    const operand_case *o = &c->operand[i];
    rung_dim dim[RUNG_MAX_RANK];
    char name[32];
    for (int axis = 0; axis < o->rank; axis++) {
      int k = 0;
      while (k < n && extent[k] != o->extent[axis]) k++;
      snprintf(name, sizeof name, "n%lld", (long long)o->extent[axis]);
      dim[axis] =
          k < n && (mask >> k & 1) ? rung_graph_symbol(g, name, 0, 4096) : rung_graph_constant_dim(g, o->extent[axis]);
    }
    snprintf(name, sizeof name, "x%d", i);
    in[i] = rung_graph_input(g, name, o->type, o->rank, dim);
  }
  void *attrs = case_attrs(c, g, 0, error);
  const rung_node *node =
      attrs ? rung_graph_append(g, c->op, in, (uint32_t)c->n, c->op->attrs_bytes ? attrs : NULL, NULL, 0) : NULL;
  for (uint32_t r = 0; node && r < node->results; r++) {
    char name[16];
    snprintf(name, sizeof name, "y%u", r);
    rung_graph_output(g, name, rung_node_result(g, node, r));
  }
  if (rung_graph_status(g)) {
    rung_graph_destroy(g);
    return false;
  }
  *out_graph = g;
  return true;
}

static rung_status compile(compiled *p, const int64_t *extent, int n, uint32_t mask, int64_t factor,
                           rung_error *error) {
  rung_binding ceiling[MOST_EXTENTS];
  char name[MOST_EXTENTS][32];
  size_t count = 0;
  for (int k = 0; k < n; k++) {
    if (!(mask >> k & 1)) continue;
    snprintf(name[k], sizeof name[k], "n%lld", (long long)extent[k]);
    ceiling[count++] = (rung_binding){name[k], extent[k] * factor < 4096 ? extent[k] * factor : 4096};
  }
  RUNG_TRY(rung_template_create(device, p->graph, NULL, error, &p->template_));
  RUNG_TRY(rung_program_create(p->template_, ceiling, count, error, &p->program));
  RUNG_TRY(rung_context_create(p->template_, NULL, NULL, NULL, error, &p->context));
  const rung_status status = rung_context_use(p->context, p->program);
  return status ? rung_fail(error, status, "%s", rung_context_message(p->context)) : RUNG_OK;
}

static rung_status run(compiled *p, const op_case *c, tensor *const *operand, rung_error *error) {
  for (int i = 0; i < c->n; i++) {
    char name[16];
    void *data;
    snprintf(name, sizeof name, "x%d", i);
    const int slot = rung_program_find_input(p->program, name);
    if (slot < 0) continue;
    const rung_status status = rung_context_input(p->context, slot, c->operand[i].extent, &data);
    if (status) return rung_fail(error, status, "%s", rung_context_message(p->context));
    const uint64_t bytes = rung_type_bytes(c->operand[i].type, (uint64_t)tensor_count(operand[i]));
    if (bytes) memcpy(data, operand[i]->operand.base, bytes);
  }
  const rung_status status = rung_context_run(p->context);
  return status ? rung_fail(error, status, "%s", rung_context_message(p->context)) : RUNG_OK;
}

static void fail(const op_case *c, const char *what, const char *why) {
  if (++test_state.failed <= 30) {
    fprintf(stderr, "%s {%s} of", c->op->name, c->attrs);
    for (int i = 0; i < c->n; i++) {
      fprintf(stderr, " %s[", rung_type_name(c->operand[i].type));
      for (int a = 0; a < c->operand[i].rank; a++)
        fprintf(stderr, "%s%lld", a ? "," : "", (long long)c->operand[i].extent[a]);
      fprintf(stderr, "]");
    }
    fprintf(stderr, ": %s: %s\n", what, why);
  }
}

static void compare(const op_case *c, const char *what, compiled *want, compiled *have) {
  const int n = rung_program_outputs(want->program);
  for (int i = 0; i < n; i++) {
    rung_tensor a, b;
    test_state.checks++;
    if (rung_context_output(want->context, i, &a) || rung_context_output(have->context, i, &b)) {
      fail(c, what, "no output");
      return;
    }
    uint64_t count = 1;
    bool same = a.rank == b.rank;
    for (int k = 0; same && k < a.rank; k++) same = a.extent[k] == b.extent[k], count *= (uint64_t)a.extent[k];
    if (!same) fail(c, what, "other extents");
    const uint64_t bytes = rung_type_bytes(a.type, count);
    if (same && bytes && memcmp(a.data, b.data, bytes) != 0) fail(c, what, "other bits");
  }
}

static void check_mask(const op_case *c, tensor *const *operand, compiled *closed, const int64_t *extent, int n,
                       uint32_t mask) {
  for (int64_t factor = 1; factor <= 3; factor += 2) {
    compiled p = {0};
    rung_error error = {0};
    const char *what = factor > 1 ? "open, compiled for more" : "open";
    if (!build(c, extent, n, mask, &p.graph, &error)) {
      done.closed_only++;
      return;
    }
    rung_status status = compile(&p, extent, n, mask, factor, &error);
    if (!status) status = run(&p, c, operand, &error);
    if (status)
      fail(c, what, error.message);
    else
      compare(c, what, closed, &p);
    drop(&p);
    done.alone += factor == 1 && !(mask & (mask - 1));
    done.all += factor == 1 && (mask & (mask - 1));
    done.more += factor > 1;
  }
}

static void check_case(const op_case *c) {
  int64_t extent[MOST_EXTENTS];
  tensor *operand[CASE_OPERANDS];
  const int n = extents_of(c, extent);
  rung_error error = {0};
  compiled closed = {0};
  if (!build(c, extent, n, 0, &closed.graph, &error)) return; /* states and bodies: other tests */
  if (compile(&closed, extent, n, 0, 1, &error)) {
    drop(&closed); /* what no device runs by itself */
    return;
  }
  for (int i = 0; i < c->n; i++) operand[i] = draw_operand(&c->operand[i], &seed);
  const rung_status status = run(&closed, c, operand, &error);
  if (status) {
    fail(c, "closed", error.message);
  } else {
    done.cases++;
    for (int k = 0; k < n; k++) check_mask(c, operand, &closed, extent, n, (uint32_t)1 << k);
    if (n > 1) check_mask(c, operand, &closed, extent, n, (uint32_t)(((uint64_t)1 << n) - 1));
  }
  for (int i = 0; i < c->n; i++) tensor_free(operand[i]);
  drop(&closed);
}

static void test_every_op(void) {
  for (size_t i = 0; i < rung_op_count(); i++) {
    const rung_op *op = rung_op_at(i);
    for (const rung_test_case *t = op->tests; t && t->operands; t++) {
      op_case c;
      if (read_case(op, t, &c)) check_case(&c);
    }
  }
  printf("%lld cases; open alone %lld, all open %lld, for more %lld; closed only %lld\n", (long long)done.cases,
         (long long)done.alone, (long long)done.all, (long long)done.more, (long long)done.closed_only);
  CHECK(done.cases > 200 && done.alone > 300 && done.all > 100);
}

int main(void) {
  if (rung_host_create(NULL, NULL, &host) || rung_device_create(host, "cpu", NULL, NULL, &device)) return 1;
  RUN(test_every_op);
  rung_device_release(device);
  rung_host_release(host);
  return TEST_END();
}
