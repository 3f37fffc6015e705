/* SPDX-License-Identifier: MIT
 * The op table on the CUDA device: every test case of every op, through program and context, against the op's reference.
 * Skipped where there is no GPU. */
#define _GNU_SOURCE
#include <math.h>

#include "cases.h"
#include "cts/random_run.h"
#include "runtime/runtime.h"

static rung_host *host;
static rung_device *device, *reference;
static uint64_t seed = 2027;

static uint64_t dense_bytes(const tensor *t) {
  return rung_type_bytes((rung_type)t->operand.type, (uint64_t)tensor_count(t));
}

/* The case's graph with all results as outputs. */
static bool make_graph(const op_case *c, int mode, built *b) {
  if (!build_case(host, c, mode, b)) return false;
  for (uint32_t r = 0; r < b->outs; r++) {
    char name[16];
    snprintf(name, sizeof name, "y%u", r);
    rung_graph_output(b->graph, name, b->out[r]);
  }
  return rung_graph_status(b->graph) == RUNG_OK;
}

static double room_of(const op_case *c, const rung_value_type *type, double want, double largest) {
  double unit = 0;
  if (type->type == RUNG_TYPE_F16) unit = 0x1p-10;
  if (type->type == RUNG_TYPE_BF16) unit = 0x1p-7;
  double room =
      c->op->tolerance.absolute + c->op->tolerance.relative * fmax(fabs(want), largest) + 2 * unit * fabs(want);
  if (type->type == RUNG_TYPE_F16) room += 0x1p-24;
  /* Many rows of quantised activations are multiplied in f16. */
  if (c->operand[0].type == RUNG_TYPE_A8) room += 0x1p-11 * largest;
  return room;
}

/* Products and sums: their tolerance is relative to the largest term. */
static double largest_term(const op_case *c, tensor *const *operand) {
  if (c->op->flags & RUNG_OP_ELEMENTWISE) return 0;
  double all = 1;
  int64_t k = 1;
  for (int i = 0; i < c->n; i++) {
    double most = 0;
    if (!tensor_is_float(operand[i]) && !eval_is_blocks((rung_type)operand[i]->operand.type)) continue;
    for (int64_t e = 0; e < tensor_count(operand[i]); e++) most = fmax(most, fabs(tensor_get(operand[i], e)));
    all *= most;
    if (i == 0 && operand[i]->operand.rank) k = operand[i]->extent[operand[i]->operand.rank - 1];
  }
  return all * sqrt((double)k);
}

static void compare(const op_case *c, const built *b, eval *e, rung_context *context, tensor *const *operand,
                    const char *how) {
  const double largest = largest_term(c, operand);
  for (uint32_t r = 0; r < b->outs; r++) {
    rung_tensor got;
    CHECK_OK(rung_context_output(context, (int)r, &got));
    const tensor *want = e->value[b->out[r].id];
    const rung_value_type *type = rung_graph_value_type(b->graph, b->out[r].id);
    tensor have = {.operand = want->operand};
    int64_t units = 1;
    for (int a = want->operand.rank - 1; a >= 0; a--) {
      have.extent[a] = want->extent[a];
      have.stride[a] = units;
      units *= eval_is_blocks(type->type) && a == want->operand.rank - 1
                   ? want->extent[a] / rung_type_get(type->type)->block
                   : want->extent[a];
    }
    have.operand.extent = have.extent;
    have.operand.stride = have.stride;
    have.operand.base = got.data;
    test_state.checks++;
    for (int64_t i = 0; i < tensor_count(want); i++) {
      double u, v;
      if (rung_type_takes(type->type) & (RUNG_TAKES_INT | RUNG_TAKES_BOOL)) {
        u = (double)tensor_get_i64(&have, i);
        v = (double)tensor_get_i64(want, i);
        if (u == v) continue;
      } else {
        u = tensor_get(&have, i);
        v = tensor_get(want, i);
        if (u == v || (isnan(u) && isnan(v)) || fabs(u - v) <= room_of(c, type, v, largest)) continue;
      }
      TEST_FAIL_("%s {%s} %s: result %u, element %lld is %.9g, not %.9g", c->op->name, c->attrs, how, r, (long long)i,
                 u, v);
      break;
    }
  }
}

static rung_status bind_inputs(const op_case *c, rung_program *program, rung_context *context, tensor *const *operand) {
  for (int i = 0; i < c->n; i++) {
    char name[16];
    snprintf(name, sizeof name, "x%d", i);
    const int slot = rung_program_find_input(program, name);
    if (slot < 0) continue;
    void *to;
    RUNG_TRY(rung_context_input(context, slot, operand[i]->extent, &to));
    if (dense_bytes(operand[i])) memcpy(to, operand[i]->operand.base, dense_bytes(operand[i]));
  }
  return RUNG_OK;
}

static const char *kernel_of(const rung_program *program) {
  const rung_plan *plan = program->plan;
  for (uint32_t v = 0; v < plan->variants; v++)
    if (strncmp(plan->variant[v].kernel->name, "host_", 5) == 0) return "host";
  return "device";
}

/* Somewhat above what is run, so that open extents are below their ceilings. */
static size_t ceilings_of(const op_case *c, const built *b, char (*symbol)[32], rung_binding *out) {
  size_t n = 0;
  for (int i = 0; i < c->n; i++)
    for (int a = 0; a < c->operand[i].rank; a++) {
      const int64_t extent = c->operand[i].extent[a];
      snprintf(symbol[n], sizeof symbol[n], "n%lld", (long long)extent);
      bool there = rung_dims_find_symbol(b->graph->dims, symbol[n], strlen(symbol[n])) >= 0;
      for (size_t k = 0; k < n; k++) there &= strcmp(symbol[k], symbol[n]) != 0;
      if (!there) continue;
      out[n] = (rung_binding){symbol[n], extent * 2};
      n++;
    }
  return n;
}

/* RUNG_CUDA_ONCE: under a sanitizer of the GPU each set of kernels and types is run once, not with every shape. */
static bool is_wanted(const rung_program *program) {
  static uint64_t seen[4096];
  static size_t count;
  const rung_plan *plan = program->plan;
  uint64_t key = 1;
  if (!getenv("RUNG_CUDA_ONCE")) return true;
  for (uint32_t v = 0; v < plan->variants; v++)
    for (const char *c = plan->variant[v].kernel->name; *c; c++) key = key * 31 + (uint64_t)*c;
  for (uint32_t i = 0; i < plan->refs; i++) key = key * 67 + plan->ref[i].type;
  for (size_t i = 0; i < count; i++)
    if (seen[i] == key) return false;
  if (count < RUNG_COUNT(seen)) seen[count++] = key;
  return true;
}

/* Without kernels an op is taken apart, and in f16 and bf16 every part rounds: more than the op's tolerance. */
static bool rounds_more(const op_case *c) {
  const char *kernels = getenv("RUNG_CUDA_KERNELS");
  if (!kernels || strcmp(kernels, "0") != 0 || !c->op->decompose) return false;
  for (int i = 0; i < c->n; i++)
    if (c->operand[i].type == RUNG_TYPE_F16 || c->operand[i].type == RUNG_TYPE_BF16) return true;
  return false;
}

static int on_host, on_device, refused, left;

static void run_one(const op_case *c, int mode) {
  built b;
  eval e;
  rung_error error = {0};
  rung_template *t = NULL;
  rung_program *program = NULL;
  rung_context *context = NULL;
  tensor *operand[CASE_OPERANDS] = {NULL};
  const char *how = mode & BUILD_OPEN ? "open" : "closed";
  if (!make_graph(c, mode, &b)) {
    rung_graph_destroy(b.graph);
    return;
  }
  for (int i = 0; i < c->n; i++) operand[i] = draw_operand(&c->operand[i], &seed);
  const rung_status wanted = run_case(&b, c, operand, NULL, &e);
  rung_status status = rung_template_create(device, b.graph, NULL, &error, &t);
  rung_binding ceiling[CASE_OPERANDS * RUNG_MAX_RANK];
  char symbol[CASE_OPERANDS * RUNG_MAX_RANK][32];
  const size_t ceilings = mode & BUILD_OPEN ? ceilings_of(c, &b, symbol, ceiling) : 0;
  if (!status) status = rung_program_create(t, ceiling, ceilings, &error, &program);
  if (!status) status = rung_context_create(t, NULL, NULL, NULL, &error, &context);
  if (!status) status = rung_context_use(context, program);
  if (!status) status = bind_inputs(c, program, context, operand);
  for (int i = 0; i < c->n && !status && (mode & BUILD_OPEN); i++)
    for (int a = 0; a < c->operand[i].rank; a++) {
      char name[32];
      snprintf(name, sizeof name, "n%lld", (long long)c->operand[i].extent[a]);
      (void)!rung_context_set_extent(context, name, c->operand[i].extent[a]);
    }
  const bool wanted_here = status || is_wanted(program);
  left += !wanted_here;
  for (int round = 0; round < 3 && !status && wanted_here; round++)
    status = rung_context_run(context); /* the third is captured */
  test_state.checks++;
  if (!program && status == RUNG_UNSUPPORTED) { /* said when compiling: listed in docs/cuda.md */
    refused++;
    status = wanted;
  }
  if (!wanted && status)
    TEST_FAIL_("%s {%s} %s: %s", c->op->name, c->attrs, how,
               error.message[0] ? error.message : rung_context_message(context));
  if (wanted && !status && wanted_here) TEST_FAIL_("%s {%s} %s: not refused", c->op->name, c->attrs, how);
  if (!wanted && !status && program && wanted_here) {
    compare(c, &b, &e, context, operand, how);
    if (kernel_of(program)[0] == 'h')
      on_host++;
    else
      on_device++;
  }
  rung_context_destroy(context);
  rung_program_release(program);
  rung_template_release(t);
  eval_finish(&e);
  rung_graph_destroy(b.graph);
  for (int i = 0; i < c->n; i++) tensor_free(operand[i]);
}

static bool left_out(const rung_op *op) {
  return op->bodies || (op->flags & (RUNG_OP_CONTROL | RUNG_OP_DECLARES | RUNG_OP_RANDOM | RUNG_OP_SIZES)) ||
         !op->tests;
}

static void test_ops(void) {
  const char *only = getenv("RUNG_CUDA_OP");
  for (size_t i = 0; i < rung_op_count(); i++) {
    const rung_op *op = rung_op_at(i);
    if (left_out(op) || (only && strcmp(only, op->name) != 0)) continue;
    for (const rung_test_case *test = op->tests; test->operands; test++) {
      op_case c;
      if (!read_case(op, test, &c) || rounds_more(&c)) continue;
      run_one(&c, BUILD_CLOSED);
      run_one(&c, BUILD_OPEN);
    }
  }
  printf("cases with kernels only: %d, with steps on the host: %d, refused: %d, not run again: %d\n", on_device,
         on_host, refused, left);
  CHECK(refused < 40);
}

/* Sizes that the table's cases do not reach, closed: the large tiles of convolutions in every height, long sums, pictures of
 * few places, large windows, queues of updates that are emptied more than once, several tiles of a count. */
static const struct {
  const rung_op *op;
  rung_test_case test;
} large_case[] = {
    {&rung_op_conv, {"f32[1,4,96,96] f32[16,4,3,3] f32[16]", "pad_before=[1,1], pad_after=[1,1]"}},
    {&rung_op_conv, {"f32[1,2,96,96] f32[32,2,3,3]", "pad_before=[1,1], pad_after=[1,1]"}},
    {&rung_op_conv, {"f32[1,10,8700] f32[64,10,1]", ""}},
    {&rung_op_conv, {"f32[1,5,17000] f32[96,5,2] f32[96]", "stride=[2]"}},
    {&rung_op_conv, {"f32[1,8,2200] f32[512,2,3]", "groups=4"}},
    {&rung_op_conv, {"f16[1,4,9000] f16[20,4,3] f16[20]", "dilation=[4]"}},
    {&rung_op_conv, {"f64[1,4,9000] f64[20,4,3]", ""}},
    {&rung_op_conv, {"f32[1,300,20] f32[40,300,3]", "pad_before=[1], pad_after=[1]"}},
    {&rung_op_conv, {"f32[3,200,1,1] f32[50,200,1,1] f32[50]", ""}},
    {&rung_op_conv, {"f32[1,70,2,2] f32[10,35,2,2]", "groups=2, pad_before=[1,0]"}},
    {&rung_op_conv, {"f32[1,130,90] f32[2,130,7] f32[2]", "pad_before=[3], pad_after=[3]"}},
    {&rung_op_conv_integer, {"u8[1,4,9000]{0,255} i8[40,4,3]{-128,127} u8[]{0,255} i8[40]{-9,9}", ""}},
    {&rung_op_conv_transpose, {"f32[1,4,48,48] f32[4,17,3,3] f32[17]", "stride=[2,2], pad_before=[1,1]"}},
    {&rung_op_conv_transpose, {"f32[1,80,3] f32[80,12,4]", "stride=[2], pad_before=[1], pad_after=[1]"}},
    {&rung_op_conv_transpose, {"f32[1,70,40] f32[70,1,16]", "stride=[8], pad_before=[4], pad_after=[4]"}},
    {&rung_op_max_pool, {"f32[2,3,40,60]", "kernel=[9,11], stride=[3,2], pad_before=[4,5], pad_after=[4,5]"}},
    {&rung_op_argmax_pool, {"i16[2,3,40,60]{-9,9}", "kernel=[9,11], stride=[3,2], pad_before=[4,5]"}},
    {&rung_op_average_pool, {"f32[2,5,60,70]", ""}},
    {&rung_op_scatter_elements, {"f32[3,5] i64[3,4000]{-5,4} f32[3,4000]", "axis=1, mode=add"}},
    {&rung_op_scatter_elements, {"f16[40] i32[9000]{0,39} f16[9000]{-0.5,0.5}", "mode=add"}},
    {&rung_op_scatter_elements, {"i32[4000] i64[9000]{0,3999} i32[9000]", "mode=max"}},
    {&rung_op_scatter_nd, {"f32[7,600] i64[900,1]{-7,6} f32[900,600]", ""}},
    {&rung_op_scatter_nd, {"f32[60,50] i32[5000,2]{0,49} f32[5000]", "mode=min"}},
    {&rung_op_count_nonzero, {"bool[90,70]{0,1}", ""}},
    {&rung_op_nonzero, {"i32[90,70]{1,9}", "count=6300"}},
};

static void test_large(void) {
  const char *kernels = getenv("RUNG_CUDA_KERNELS"), *only = getenv("RUNG_CUDA_OP");
  if (kernels && strcmp(kernels, "0") == 0) return; /* of use for kernels only */
  for (size_t i = 0; i < RUNG_COUNT(large_case); i++) {
    op_case c;
    if (only && strcmp(only, large_case[i].op->name) != 0) continue;
    CHECK(read_case(large_case[i].op, &large_case[i].test, &c));
    const int before = on_device + left;
    run_one(&c, BUILD_CLOSED);
    CHECK_EQ_I64(on_device + left, before + 1); /* what has no graph, or no kernel, is no case */
  }
}

static void test_random_graphs(void) {
  rg_run run = {.host = host, .ref = reference, .cpu = device};
  int failed = 0;
  const int count = getenv("RUNG_GRAPHS") ? atoi(getenv("RUNG_GRAPHS")) : 40;
  for (int i = 0; i < count && failed < 5; i++) {
    rg_choices c = {.random = 5001 + 2 * (uint64_t)i};
    const bool good = rg_once(&run, &c, 3);
    test_state.checks++;
    if (!good) TEST_FAIL_("random graph %d: %s", i, run.why);
    failed += !good;
  }
}

int main(void) {
  rung_error error = {0};
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK_OK(rung_host_create(NULL, &error, &host));
  if (rung_device_create(host, "cuda", NULL, &error, &device)) {
    printf("skipped: %s\n", error.message);
    rung_host_release(host);
    return 77;
  }
  CHECK_OK(rung_device_create(host, "ref", NULL, &error, &reference));
  RUN(test_ops);
  RUN(test_large);
  RUN(test_random_graphs);
  rung_device_release(device);
  rung_device_release(reference);
  const rung_memory m = rung_host_memory(host);
  CHECK_EQ_I64(m.activations + m.scratch + m.packed + m.state + m.weights, 0);
  rung_host_release(host);
  return TEST_END();
}
