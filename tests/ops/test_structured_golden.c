/* SPDX-License-Identifier: MIT
 * References of the structured ops against numbers that scripts/oracle/record_structured.py computed. A case is
 *
 *   case NAME
 *   (the graph's text)
 *   ---
 *   symbol NAME VALUE               a binding
 *   in NAME numbers...              an input or weight by elements;   bytes NAME hex   by its bytes
 *   kv NAME SLOTS CAPACITY          a fresh kv state
 *   want NAME RELATIVE ABSOLUTE EXTENTS : numbers...   an output, within relative * largest + absolute
 *   fail STATUS text                instead of wants: refused, when built or when run, with this in the message
 *   end
 *
 * Cases without weights and states also go through the devices: compiled, planned and run. What a device has no kernel
 * for is counted and passed over. */
#include <math.h>
#include <rung/program.h>

#include "structured_run.h"

static const char *const files[] = {"matmul", "positions", "kv",     "index",     "spatial",   "attention", "control",
                                    "random", "ragged",    "resize", "recurrent", "detection", "transform", "integer"};

typedef struct reader {
  char *text, *at;
  char name[128];
  rung_host *host;
} reader;

static char *next_line(reader *r) {
  if (!*r->at) return NULL;
  char *line = r->at, *end = strchr(line, '\n');
  r->at = end ? end + 1 : line + strlen(line);
  if (end) *end = 0;
  return line;
}
/* The next word of *p, terminated; "" at the end. */
static char *word(char **p) {
  while (**p == ' ') ++*p;
  char *start = *p;
  while (**p && **p != ' ') ++*p;
  if (**p) *(*p)++ = 0;
  return start;
}
static double number(const char *text) {
  const char *end;
  double value = 0;
  if (!rung_parse_f64(text, text + strlen(text), &value, &end)) TEST_FAIL_("no number: '%s'", text);
  return value;
}

static const rung_value_type *declared(const rung_graph *g, const char *name) {
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    const char *have = node->op->flags & RUNG_OP_DECLARES ? rung_attrs_name(node->op, node->attrs) : NULL;
    if (have && strcmp(have, name) == 0) return rung_graph_value_type(g, node->first_value);
  }
  return NULL;
}

/* ---- the lines behind the graph */

static void bind_symbol(run_state *run, const rung_graph *g, char *rest) {
  const char *name = word(&rest);
  const int symbol = rung_dims_find_symbol(g->dims, name, strlen(name));
  if (symbol >= 0)
    run->symbol[symbol] = (int64_t)number(word(&rest));
  else
    TEST_FAIL_("no symbol %s", name);
}

static void bind_tensor(run_state *run, const rung_graph *g, char *rest, bool bytes) {
  const char *name = word(&rest);
  const rung_value_type *type = declared(g, name);
  run_named *named = run_name(run, name);
  if (!type || !named) {
    TEST_FAIL_("nothing is called %s", name);
    return;
  }
  int64_t dim[4096], extent[RUNG_MAX_RANK];
  if (g->dims->count > RUNG_COUNT(dim) || rung_dims_evaluate(g->dims, run->symbol, dim, NULL)) {
    TEST_FAIL_("symbols must be bound before %s", name);
    return;
  }
  for (int axis = 0; axis < type->rank; axis++) extent[axis] = dim[type->extent[axis].id];
  named->tensor = run_tensor_new(run, type->type, type->rank, extent);
  const rung_operand o = run_operand(&named->tensor);
  for (int64_t i = 0; *rest; i++) {
    char *value = word(&rest);
    if (bytes) {
      for (; value[0] && value[1]; value += 2, i++) {
        const char digits[3] = {value[0], value[1], 0};
        named->tensor.data[i] = (uint8_t)strtol(digits, NULL, 16);
      }
    } else if (rung_operand_is_integer(&o)) {
      rung_store_i64(&o, i, strtoll(value, NULL, 10));
    } else if (*value) {
      rung_store_f64(&o, i, number(value));
    }
  }
}

static void bind_kv(run_state *run, const rung_graph *g, char *rest) {
  const char *name = word(&rest);
  const rung_value_type *type = declared(g, name);
  run_named *named = run_name(run, name);
  const int32_t slots = (int32_t)number(word(&rest));
  const int64_t capacity = (int64_t)number(word(&rest));
  int64_t extent[3];
  for (int axis = 0; type && axis < 3; axis++) rung_dims_is_constant(g->dims, type->extent[axis], &extent[axis]);
  if (type) {
    named->tensor =
        run_kv_new(run, type->type, (int32_t)extent[0], (int32_t)extent[1], (int32_t)extent[2], slots, capacity, 0);
  } else {
    TEST_FAIL_("nothing is called %s", name);
  }
}

static void check_output(const reader *r, const rung_graph *g, const run_tensor *out, char *rest) {
  const char *name = word(&rest);
  const double relative = number(word(&rest)), absolute = number(word(&rest));
  const uint32_t at = rung_graph_find_name(g, RUNG_NAME_OUTPUT, name);
  if (at == UINT32_MAX) {
    TEST_FAIL_("%s: no output %s", r->name, name);
    return;
  }
  const run_tensor *y = &out[at];
  int rank = 0;
  for (const char *extent = word(&rest); strcmp(extent, ":") != 0; extent = word(&rest), rank++) {
    test_state.checks++;
    if (rank >= y->rank || y->extent[rank] != (int64_t)number(extent))
      TEST_FAIL_("%s: axis %d of %s is not %s", r->name, rank, name, extent);
  }
  test_state.checks++;
  if (rank != y->rank) TEST_FAIL_("%s: %s has rank %d, not %d", r->name, name, y->rank, rank);
  const rung_operand o = run_operand(y);
  double worst = 0, largest = 0;
  int64_t n = 0;
  bool wrong = false;
  for (; *rest; n++) {
    const char *text = word(&rest);
    if (!*text) break;
    if (n >= run_count(y)) continue;
    if (rung_operand_is_integer(&o)) {
      wrong |= rung_load_i64(&o, n) != strtoll(text, NULL, 10);
      continue;
    }
    const double read = number(text), have = rung_load_f64(&o, n);
    const double want = relative == 0 && y->type == RUNG_TYPE_F32 ? (double)(float)read : read;
    if (isnan(want) || isinf(want))
      wrong |= isnan(want) ? !isnan(have) : have != want;
    else if (!(fabs(have - want) <= worst))
      worst = fabs(have - want); /* a NaN enters and stays */
    if (fabs(want) > largest && !isinf(want)) largest = fabs(want);
  }
  test_state.checks++;
  if (wrong || n != run_count(y) || !(worst <= relative * largest + absolute)) {
    TEST_FAIL_("%s: %s has %lld of %lld numbers, off by %g at most of %g%s", r->name, name, (long long)n,
               (long long)run_count(y), worst, largest, wrong ? ", or a whole number is another" : "");
  }
}

static void check_refusal(const reader *r, rung_status status, const char *message, char *rest) {
  const char *name = word(&rest);
  test_state.checks++;
  if (strcmp(rung_status_name(status), name) != 0 || !strstr(message, rest)) {
    TEST_FAIL_("%s: %s \"%s\", not %s with \"%s\"", r->name, rung_status_name(status), message, name, rest);
  }
}

/* ---- the same on a device */

static const char *const devices[] = {"ref", "cpu"};
static struct {
  rung_device *device[2];
  int ran[2], without_kernel[2];
} on;

static bool takes_inputs_only(const rung_graph *g) {
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    if (node->op == &rung_op_weight || node->op == &rung_op_state || node->op->flags & RUNG_OP_RANDOM) return false;
  }
  return true;
}

static rung_status prepare(int d, const rung_graph *g, rung_template **out_template, rung_program **out_program,
                           rung_context **out_context, rung_error *error) {
  RUNG_TRY(rung_template_create(on.device[d], g, NULL, error, out_template));
  RUNG_TRY(rung_program_create(*out_template, NULL, 0, error, out_program));
  RUNG_TRY(rung_context_create(*out_template, NULL, NULL, NULL, error, out_context));
  const rung_status status = rung_context_use(*out_context, *out_program);
  return status ? rung_fail(error, status, "%s", rung_context_message(*out_context)) : RUNG_OK;
}

static rung_status bind_and_run(run_state *run, const rung_dims *dims, const rung_program *program,
                                rung_context *context) {
  for (uint32_t i = 0; i < dims->symbols; i++) {
    if (dims->symbol[i].made || run->symbol[i] == RUNG_UNBOUND) continue;
    RUNG_TRY(rung_context_set_extent(context, dims->symbol[i].name, run->symbol[i]));
  }
  for (int slot = 0; slot < rung_program_inputs(program); slot++) {
    const run_tensor *t = &run_name(run, rung_program_input_name(program, slot))->tensor;
    rung_tensor tensor = rung_tensor_dense(t->type, t->rank, t->extent, t->data);
    RUNG_TRY(rung_context_bind_input(context, slot, &tensor));
  }
  return rung_context_run(context);
}

/* `out` holds what the references gave, if `status` says so; else the device must refuse with the same status. */
static void check_device(const reader *r, int d, const rung_graph *g, run_state *run, rung_status status,
                         const run_tensor *out) {
  rung_template *template_ = NULL;
  rung_program *program = NULL;
  rung_context *context = NULL;
  rung_error error = {RUNG_OK, ""};
  rung_status have = prepare(d, g, &template_, &program, &context, &error);
  const bool no_kernel = have == RUNG_UNSUPPORTED;
  if (no_kernel && d > 0)
    on.without_kernel[d]++;
  else if (have)
    TEST_FAIL_("%s on %s: %s", r->name, devices[d], error.message);
  if (!have) {
    on.ran[d]++;
    have = bind_and_run(run, g->dims, program, context);
    test_state.checks++;
    if (have != status)
      TEST_FAIL_("%s on %s: %s: %s", r->name, devices[d], rung_status_name(have), rung_context_message(context));
    for (uint32_t i = 0; !have && !status && i < g->outputs; i++) {
      rung_tensor y;
      CHECK_OK(rung_context_output(context, rung_program_find_output(program, g->output[i].name), &y));
      const run_tensor got = {.type = y.type, .rank = y.rank, .data = (uint8_t *)y.data};
      const rung_operand a = run_operand(&got);
      double largest = 0;
      bool same = y.rank == out[i].rank && y.type == out[i].type;
      for (int axis = 0; same && axis < y.rank; axis++) same = y.extent[axis] == out[i].extent[axis];
      const run_tensor dense = run_tensor_new(run, out[i].type, out[i].rank, out[i].extent);
      run_copy(&out[i], &dense);
      const rung_operand want = run_operand(&dense);
      for (int64_t e = 0; same && e < run_count(&dense); e++) largest = fmax(largest, fabs(rung_load_f64(&want, e)));
      for (int64_t e = 0; same && e < run_count(&dense); e++) {
        const double u = rung_load_f64(&a, e), v = rung_load_f64(&want, e);
        same = u == v || (isnan(u) && isnan(v)) || fabs(u - v) <= (d ? 4e-6 : 2e-7) * largest;
      }
      test_state.checks++;
      if (!same) TEST_FAIL_("%s on %s: output %s is another", r->name, devices[d], g->output[i].name);
    }
  }
  rung_context_destroy(context);
  rung_program_release(program);
  rung_template_release(template_);
}

/* ---- a case */

static void check_text(const reader *r, const rung_graph *g) {
  rung_error error = {RUNG_OK, ""};
  char *text = NULL, *again = NULL;
  size_t bytes = 0, bytes_again = 0;
  rung_graph *copy = NULL;
  test_state.checks++;
  if (rung_graph_verify(g, &error)) TEST_FAIL_("%s: %s", r->name, error.message);
  CHECK_OK(rung_graph_print(g, &error, &text, &bytes));
  if (rung_graph_parse(r->host, text, bytes, &error, &copy))
    TEST_FAIL_("%s: reads back with %s", r->name, error.message);
  if (copy) CHECK_OK(rung_graph_print(copy, &error, &again, &bytes_again));
  test_state.checks++;
  if (!again || bytes != bytes_again || memcmp(text, again, bytes) != 0)
    TEST_FAIL_("%s: does not read back as printed", r->name);
  rung_graph_destroy(copy);
  rung_text_free(r->host, text, bytes);
  rung_text_free(r->host, again, bytes_again);
}

static bool has_control(const rung_graph *g) {
  bool any = false, made = g->made != 0;
  for (uint32_t i = 0; i < g->nodes; i++) any |= (g->node[i].op->flags & RUNG_OP_CONTROL) != 0;
  return any && !made;
}

/* `lines`: what follows the graph, up to the line "end"; they are changed by reading. */
static void run_case(const reader *r, const rung_graph *g, const char *lines, bool by_reference) {
  run_state *run = (run_state *)calloc(1, sizeof *run);
  char *copy = (char *)malloc(strlen(lines) + 1);
  if (!run || !copy) exit(1);
  strcpy(copy, lines);
  run_init(run, r->host);
  run->by_reference = by_reference;
  reader inner = {.at = copy};
  run_tensor out[16];
  rung_status status = RUNG_OK;
  bool ran = false;
  for (char *line = next_line(&inner); line && strcmp(line, "end") != 0; line = next_line(&inner)) {
    const char *kind = word(&line);
    const bool result = strcmp(kind, "want") == 0 || strcmp(kind, "fail") == 0;
    if (result && !ran) {
      status = run_graph(run, g, out);
      ran = true;
      if (status && strcmp(kind, "want") == 0) TEST_FAIL_("%s: %s", r->name, run->error.message);
    }
    if (strcmp(kind, "symbol") == 0) bind_symbol(run, g, line);
    if (strcmp(kind, "in") == 0) bind_tensor(run, g, line, false);
    if (strcmp(kind, "bytes") == 0) bind_tensor(run, g, line, true);
    if (strcmp(kind, "seed") == 0) run->random[0] = strtoull(line, NULL, 10);
    if (strcmp(kind, "counter") == 0) run->random[1] = strtoull(line, NULL, 10);
    if (strcmp(kind, "kv") == 0) bind_kv(run, g, line);
    if (strcmp(kind, "want") == 0 && !status) check_output(r, g, out, line);
    if (strcmp(kind, "fail") == 0) check_refusal(r, status, run->error.message, line);
  }
  for (int d = 0; d < 2 && ran && !by_reference && takes_inputs_only(g); d++) check_device(r, d, g, run, status, out);
  run_finish(run);
  free(run);
  free(copy);
}

static void check_case(reader *r) {
  char *graph = r->at, *rule = strstr(r->at, "---\n");
  char *end = rule ? strstr(rule, "\nend\n") : NULL;
  if (!end) {
    TEST_FAIL_("%s: has no end", r->name);
    r->at += strlen(r->at);
    return;
  }
  rung_error error = {RUNG_OK, ""};
  rung_graph *g = NULL;
  r->at = end + 5;
  end[5 - 1] = 0;
  char *lines = rule + 4;
  const rung_status status = rung_graph_parse(r->host, graph, (size_t)(rule - graph), &error, &g);
  if (status && strncmp(lines, "fail ", 5) == 0) {
    *strchr(lines, '\n') = 0;
    check_refusal(r, status, error.message, lines + 5);
  } else if (status) {
    TEST_FAIL_("%s: %s", r->name, error.message);
  } else {
    check_text(r, g);
    run_case(r, g, lines, false);
    if (has_control(g)) run_case(r, g, lines, true);
  }
  rung_graph_destroy(g);
}

static char *load(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/ops/data_structured/%s.txt", RUNG_SOURCE_DIR, name);
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  const long bytes = ftell(file);
  char *text = (char *)calloc(1, (size_t)bytes + 1);
  rewind(file);
  if (text && fread(text, 1, (size_t)bytes, file) != (size_t)bytes) text[0] = 0;
  fclose(file);
  return text;
}

static void test_recorded(void) {
  reader r = {0};
  int cases = 0;
  CHECK_OK(rung_host_create(NULL, NULL, &r.host));
  for (int d = 0; d < 2; d++) CHECK_OK(rung_device_create(r.host, devices[d], NULL, NULL, &on.device[d]));
  for (size_t i = 0; i < RUNG_COUNT(files); i++) {
    r.text = r.at = load(files[i]);
    if (!r.text) {
      TEST_FAIL_("data_structured/%s.txt cannot be read", files[i]);
      continue;
    }
    for (char *line = next_line(&r); line; line = next_line(&r)) {
      if (strncmp(line, "case ", 5) != 0) continue;
      snprintf(r.name, sizeof r.name, "%s/%s", files[i], line + 5);
      check_case(&r);
      cases++;
    }
    free(r.text);
  }
  printf("%d cases\n", cases);
  for (int d = 0; d < 2; d++) {
    printf("%s: %d run, %d without a kernel\n", devices[d], on.ran[d], on.without_kernel[d]);
    rung_device_release(on.device[d]);
  }
  rung_host_release(r.host);
}

int main(void) {
  RUN(test_recorded);
  return TEST_END();
}
