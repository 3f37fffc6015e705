/* SPDX-License-Identifier: MIT
 * Programs: a template planned for a ceiling, its memory report, its listing. */
#include <inttypes.h>
#include <string.h>

#include "runtime/runtime.h"

static rung_status symbol_index(const rung_dims *dims, const char *name, rung_error *error, int *out_index) {
  *out_index = name ? rung_dims_find_symbol(dims, name, strlen(name)) : -1;
  if (*out_index < 0) return rung_fail(error, RUNG_NOT_FOUND, "there is no symbol \"%s\"", name ? name : "");
  if (dims->symbol[*out_index].made)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "symbol \"%s\" gets its value from a step of the run", name);
  return RUNG_OK;
}

static rung_status ceilings(const rung_dims *dims, const rung_binding *binding, size_t count, int64_t *lo,
                            int64_t *ceiling, rung_error *error) {
  for (uint32_t s = 0; s < dims->symbols; s++) lo[s] = dims->symbol[s].lo, ceiling[s] = dims->symbol[s].hi;
  for (size_t i = 0; i < count; i++) {
    int s;
    RUNG_TRY(symbol_index(dims, binding[i].symbol, error, &s));
    if (binding[i].value < lo[s] || binding[i].value > dims->symbol[s].hi)
      return rung_fail(error, RUNG_OUT_OF_RANGE, "ceiling of symbol %s is %" PRId64 ", declared %" PRId64 "..%" PRId64,
                       binding[i].symbol, binding[i].value, lo[s], dims->symbol[s].hi);
    ceiling[s] = binding[i].value;
  }
  return RUNG_OK;
}

/* Far devices read the plan's constants in their own memory. */
static rung_status place_constants(rung_program *program, rung_error *error) {
  const rung_plan *plan = program->plan;
  rung_host *host = program->template_->device->host;
  uint64_t bytes = 0, at = 0;
  for (uint32_t i = 0; i < plan->constants; i++) bytes += rung_constant_room(&plan->constant[i]);
  if (!plan->target->far || !bytes) return RUNG_OK;
  uint8_t *all = rung_host_alloc(host, RUNG_MEMORY_host, bytes, 0);
  if (!all) return rung_fail(error, RUNG_OUT_OF_MEMORY, "program: out of memory for its constants");
  for (uint32_t i = 0; i < plan->constants; i++) {
    if (plan->constant[i].bytes) memcpy(all + at, plan->constant[i].data, plan->constant[i].bytes);
    at += rung_constant_room(&plan->constant[i]);
  }
  const rung_status status =
      rung_far_place(host, plan->target->far, RUNG_MEMORY_packed, all, bytes, error, &program->constant);
  if (!status) program->constant_bytes = bytes;
  rung_host_free(host, RUNG_MEMORY_host, all, bytes);
  return status ? rung_fail_prefix(error, status, "constants of a program") : RUNG_OK;
}

rung_status rung_template_plan(rung_template *t, const rung_binding *ceiling, size_t count, rung_error *error,
                               rung_plan **out_plan) {
  int64_t lo[RUNG_MAX_SYMBOLS] = {0}, hi[RUNG_MAX_SYMBOLS] = {0};
  RUNG_TRY(ceilings(t->graph->dims, ceiling, count, lo, hi, error));
  return rung_plan_make(t->device->host, t->graph, rung_template_target(t), lo, hi, t->threads, error, out_plan);
}

static rung_status make(rung_program *program, const rung_binding *ceiling, size_t count, rung_program_gate *gate,
                        void *self, rung_error *error) {
  rung_template *t = program->template_;
  rung_device *device = t->device;
  RUNG_TRY(rung_template_plan(t, ceiling, count, error, &program->plan));
  for (uint32_t i = 0; i < program->plan->forms; i++) {
    const uint64_t slice = rung_form_load_bytes(program->plan, &program->plan->form[i]);
    if (slice > program->load_bytes) program->load_bytes = slice;
    if (device->target->far && program->plan->form[i].bytes > program->staging)
      program->staging = program->plan->form[i].bytes;
  }
  for (uint32_t i = 0; i < program->plan->roots; i++) {
    const rung_root *root = &program->plan->root[i];
    if (root->kind != RUNG_ROOT_WEIGHT || !root->read) continue;
    const uint64_t slice = rung_weight_load_bytes(program->plan, &program->plan->weight[root->index]);
    if (slice > program->load_bytes) program->load_bytes = slice;
  }
  if (gate) RUNG_TRY(gate(self, program, error));
  RUNG_TRY(device->backend->prepare(device->self, device->host, program->plan, error, &program->image));
  RUNG_TRY(place_constants(program, error));
  return gate ? gate(self, program, error) : RUNG_OK;
}

rung_account *rung_account_create(rung_host *host) {
  rung_account *account = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *account, 0);
  if (!account) return NULL;
  atomic_init(&account->references, 1);
  atomic_init(&account->bytes, 0);
  account->host = host;
  rung_host_retain(host);
  return account;
}
void rung_account_release(rung_account *account) {
  if (!account || atomic_fetch_sub(&account->references, 1) != 1) return;
  rung_host *host = account->host;
  rung_host_free(host, RUNG_MEMORY_host, account, sizeof *account);
  rung_host_release(host);
}
void rung_program_account(rung_program *program, rung_account *account, uint64_t bytes) {
  if (!program->account) {
    program->account = account;
    atomic_fetch_add(&account->references, 1);
  }
  atomic_fetch_add(&account->bytes, bytes - program->accounted);
  program->accounted = bytes;
}

uint64_t rung_program_bytes(const rung_program *program) {
  const rung_device *device = program->template_->device;
  const rung_plan *plan = program->plan;
  return sizeof *program + sizeof *plan + rung_arena_bytes(&plan->arena) + sizeof *plan->dims +
         rung_arena_bytes(&plan->dims->arena) + device->backend->image_bytes(device->self, program->image);
}

rung_status rung_program_create(rung_template *t, const rung_binding *ceiling, size_t count, rung_error *error,
                                rung_program **out_program) {
  return rung_program_make(t, ceiling, count, NULL, NULL, error, out_program);
}

rung_status rung_program_make(rung_template *t, const rung_binding *ceiling, size_t count, rung_program_gate *gate,
                              void *self, rung_error *error, rung_program **out_program) {
  if (!t || !out_program || (count && !ceiling))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "program: template, ceiling and out_program are required");
  rung_program *program = rung_host_alloc(t->device->host, RUNG_MEMORY_host, sizeof *program, 0);
  if (!program) return rung_fail(error, RUNG_OUT_OF_MEMORY, "program: out of memory");
  atomic_init(&program->references, 1);
  rung_template_retain(t);
  program->template_ = t;
  const rung_status status = make(program, ceiling, count, gate, self, error);
  if (status) {
    rung_program_release(program);
    return status;
  }
  *out_program = program;
  return RUNG_OK;
}

void rung_program_retain(rung_program *program) {
  if (program) atomic_fetch_add(&program->references, 1);
}

void rung_program_release(rung_program *program) {
  if (!program || atomic_fetch_sub(&program->references, 1) != 1) return;
  rung_template *t = program->template_;
  rung_device *device = t->device;
  if (program->plan) device->backend->finish(device->self, program->image);
  rung_far_remove(device->host, rung_device_far(device), RUNG_MEMORY_packed, program->constant,
                  program->constant_bytes);
  rung_plan_destroy(program->plan);
  if (program->account) atomic_fetch_sub(&program->account->bytes, program->accounted);
  rung_account_release(program->account);
  rung_host_free(device->host, RUNG_MEMORY_host, program, sizeof *program);
  rung_template_release(t);
}

rung_template *rung_program_template(const rung_program *program) { return program ? program->template_ : NULL; }

int rung_program_inputs(const rung_program *program) { return program ? (int)program->plan->inputs : 0; }
int rung_program_outputs(const rung_program *program) { return program ? (int)program->plan->outputs : 0; }
const char *rung_program_input_name(const rung_program *program, int slot) {
  return program && slot >= 0 && (uint32_t)slot < program->plan->inputs ? program->plan->input[slot].name : NULL;
}
const char *rung_program_output_name(const rung_program *program, int slot) {
  return program && slot >= 0 && (uint32_t)slot < program->plan->outputs ? program->plan->output[slot].name : NULL;
}
int rung_program_find_input(const rung_program *program, const char *name) {
  for (uint32_t i = 0; program && name && i < program->plan->inputs; i++)
    if (strcmp(program->plan->input[i].name, name) == 0) return (int)i;
  return -1;
}
int rung_program_find_output(const rung_program *program, const char *name) {
  for (uint32_t i = 0; program && name && i < program->plan->outputs; i++)
    if (strcmp(program->plan->output[i].name, name) == 0) return (int)i;
  return -1;
}

/* ---- memory */

static rung_status resolve_at(const rung_program *program, const rung_binding *binding, size_t count, void *memory,
                              rung_resolved *out, rung_error *error) {
  const rung_plan *plan = program->plan;
  uint8_t *cursor = memory;
  rung_resolved_carve(out, plan, &cursor);
  for (uint32_t s = 0; s < plan->dims->symbols; s++) {
    out->symbol[s] = plan->ceiling[s];
    /* A symbol that a step binds can reach its bound. */
    if (plan->dims->symbol[s].made) out->symbol[s] = RUNG_UNBOUND;
  }
  for (size_t i = 0; i < count; i++) {
    int s;
    RUNG_TRY(symbol_index(plan->dims, binding[i].symbol, error, &s));
    out->symbol[s] = binding[i].value;
  }
  int64_t known[RUNG_MAX_SYMBOLS];
  memcpy(known, out->symbol, sizeof known);
  for (uint32_t s = 0; s < plan->dims->symbols; s++) {
    if (!plan->dims->symbol[s].made) continue;
    RUNG_TRY(rung_dims_evaluate(plan->dims, out->symbol, out->dim, error));
    const rung_dim bound = plan->dims->symbol[s].bound;
    out->symbol[s] = bound.id && out->dim[bound.id] != RUNG_UNBOUND ? out->dim[bound.id] : plan->dims->symbol[s].hi;
  }
  RUNG_TRY(rung_check_binding(plan, known, error));
  return rung_resolve(plan, out, error);
}

static uint64_t to_pages(uint64_t bytes, size_t page) { return (bytes + page - 1) / page * page; }

rung_status rung_program_memory(const rung_program *program, const rung_binding *binding, size_t count,
                                const rung_lengths *lengths, rung_error *error, rung_memory *out_memory) {
  if (!program || !out_memory || (count && !binding))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "memory: program, binding and out_memory are required");
  const rung_plan *plan = program->plan;
  rung_host *host = program->template_->device->host;
  const rung_far *far = plan->target->far;
  const size_t page = rung_far_page(far, host), bytes = rung_resolved_bytes(plan);
  const bool pages = far || rung_host_has_pages(host);
  void *memory = rung_host_alloc(host, RUNG_MEMORY_host, bytes, 0);
  if (!memory) return rung_fail(error, RUNG_OUT_OF_MEMORY, "memory report: out of memory");
  rung_resolved at;
  rung_memory m = {0};
  rung_status status = resolve_at(program, binding, count, memory, &at, error);
  if (!status && pages) status = rung_plan_committed(host, plan, at.dim, page, error, &m.activations);
  if (!status) {
    if (!pages) m.activations = to_pages(plan->arena_bytes, page);
    m.scratch = to_pages(pages ? at.scratch : plan->scratch_bytes, page);
    for (uint32_t i = 0; i < plan->forms; i++) m.packed += rung_form_committed(&plan->form[i], far ? 1 : page);
    m.packed += program->constant_bytes;
    for (uint32_t i = 0; i < plan->roots; i++) {
      if (plan->root[i].kind != RUNG_ROOT_WEIGHT || !plan->root[i].read) continue;
      const rung_value_type *type = &plan->weight[plan->root[i].index].type;
      uint64_t elements = 1;
      for (int a = 0; a < type->rank; a++) elements *= (uint64_t)at.dim[type->extent[a].id];
      m.weights += rung_type_bytes(type->type, elements);
    }
    m.load = program->load_bytes + program->staging;
    m.state = rung_state_predict(program, lengths, page);
    *out_memory = m;
  }
  rung_host_free(host, RUNG_MEMORY_host, memory, bytes);
  return status;
}

/* ---- listing */

static void print_ref(const rung_plan *plan, const rung_ref *ref, rung_text *out) {
  static const char *const kinds[] = {"buffer", "input", "output", "weight", "form", "state", "constant", "carried"};
  const rung_root *root = &plan->root[ref->root];
  rung_text_printf(out, "%s%u:%s[", kinds[root->kind],
                   root->buffer != RUNG_NONE && root->kind == RUNG_ROOT_BUFFER ? root->buffer : root->index,
                   rung_type_name((rung_type)ref->type));
  for (int i = 0; i < ref->rank; i++) {
    if (i) rung_text_puts(out, ",");
    rung_dims_print(plan->dims, ref->extent[i], out);
  }
  rung_text_puts(out, "]");
}

static void print_step(const rung_plan *plan, uint32_t s, rung_text *out) {
  static const char *const kinds[] = {"kernel", "if", "loop", "bind", "keep"};
  const rung_step *step = &plan->step[s];
  rung_text_printf(out, "%4u %-6s %-18s", s, kinds[step->kind], step->op ? step->op->name : "");
  for (uint32_t i = 0; i < step->n_in; i++) {
    rung_text_puts(out, i ? ", " : " ");
    print_ref(plan, &plan->ref[step->in + i], out);
  }
  rung_text_puts(out, " ->");
  for (uint32_t i = 0; i < step->n_out; i++) {
    rung_text_puts(out, i ? ", " : " ");
    print_ref(plan, &plan->ref[step->out + i], out);
  }
  for (uint32_t v = 0; v < step->variants; v++) {
    const rung_kernel *k = plan->variant[step->variant + v].kernel;
    rung_text_printf(out, "%s%s", v ? " | " : "  # ", k->name);
    if (k->guard_role >= 0)
      rung_text_printf(out, " %" PRId64 "..%" PRId64, k->guard_lo, k->guard_hi ? k->guard_hi - 1 : INT64_MAX);
  }
  if (step->label != RUNG_NONE) rung_text_printf(out, "  (%s)", plan->label[step->label]);
  rung_text_puts(out, "\n");
}

rung_status rung_program_print(const rung_program *program, rung_error *error, char **out_text, size_t *out_bytes) {
  if (!program || !out_text || !out_bytes)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "print: program, out_text and out_bytes are required");
  const rung_plan *plan = program->plan;
  rung_text text;
  rung_text_init(&text, program->template_->device->host);
  rung_text_printf(&text, "arena %" PRIu64 " bytes at the ceiling, scratch %" PRIu64 ", %u steps, %u forms\n",
                   plan->arena_bytes, plan->scratch_bytes, plan->steps, plan->forms);
  for (uint32_t i = 0; i < plan->buffers; i++) {
    const rung_buffer *b = &plan->buffer[i];
    if (!b->bound) continue;
    rung_text_printf(&text, "buffer%u at %" PRIu64 ", at most %" PRIu64 " bytes (", i, b->offset, b->bound);
    rung_dims_print(plan->dims, b->bytes, &text);
    rung_text_printf(&text, "), steps %u..%u\n", b->first, b->last);
  }
  for (uint32_t s = 0; s < plan->steps; s++) print_step(plan, s, &text);
  const rung_device *device = program->template_->device;
  if (device->backend->describe) device->backend->describe(device->self, program->image, plan, &text);
  const rung_status status = rung_text_status(&text, error);
  char *copy = status ? NULL : rung_host_alloc(program->template_->device->host, RUNG_MEMORY_host, text.length + 1, 0);
  if (copy) {
    memcpy(copy, text.data, text.length);
    *out_text = copy;
    *out_bytes = text.length;
  }
  rung_text_finish(&text);
  if (!status && !copy) return rung_fail(error, RUNG_OUT_OF_MEMORY, "print: out of memory");
  return status;
}
