/* SPDX-License-Identifier: MIT
 * The CPU backend: its target, what a plan prepares, and the loop over steps. */
#include "backends/cpu/cpu.h"

#include <string.h>

#include "backends/cpu/kernel.h"
#include "base/clock.h"
#include "ops/op_table.h"

typedef struct cpu {
  rung_host *host;
  rung_target target;
  rung_strip_compile_fn *compile_strip;
  const rung_kernel **kernel; /* what target.kernel points at */
  size_t kernels;
  rung_cpu_kernel *plain; /* one row per op that can run through its reference */
  size_t plains;
  char *names; /* of the plain rows, NAME_BYTES each */
} cpu;

enum { NAME_BYTES = 48 };

/* ---- plain rows: what has no vector kernel (yet) runs as the op defines it */

static rung_status plain_run(const rung_args *args, int64_t task, int thread) {
  (void)task;
  (void)thread;
  const rung_op *op = args->prepared;
  return op->reference(args);
}
static rung_status plain_prepare(const rung_cpu_prepare *in, const void **out_prepared) {
  *out_prepared = in->step->op;
  return RUNG_OK;
}
/* Control ops are the runtime's, declarations have no step, and a body would need an interpreter: legalise un-fuses. */
static bool runs_plain(const rung_op *op) {
  if (op == &rung_op_attention) return false; /* what it is made of has kernels */
  return op->reference && !op->bodies && !(op->flags & (RUNG_OP_CONTROL | RUNG_OP_DECLARES));
}

static rung_status make_plain_rows(cpu *self, rung_error *error) {
  const size_t ops = rung_op_count();
  for (size_t i = 0; i < ops; i++) self->plains += runs_plain(rung_op_at(i));
  self->plain = rung_host_array(self->host, self->plains, sizeof *self->plain);
  self->names = rung_host_array(self->host, self->plains, NAME_BYTES);
  if (!self->plain || !self->names) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cpu: no memory for kernel rows");
  size_t n = 0;
  for (size_t i = 0; i < ops; i++) {
    const rung_op *op = rung_op_at(i);
    if (!runs_plain(op)) continue;
    static const char prefix[] = "reference_";
    char *name = self->names + n * NAME_BYTES;
    memcpy(name, prefix, sizeof prefix);
    strncat(name, op->name, NAME_BYTES - sizeof prefix);
    self->plain[n++] = (rung_cpu_kernel){.row = rung_kernel_plain(name, op, plain_run), .prepare = plain_prepare};
  }
  return RUNG_OK;
}

/* ---- target */

static bool multiplies_a8(rung_type type) { return rung_type_is_block(type) && rung_cpu_layout_of(type) != NULL; }

/* Convolutions, recurrences and dense attention would widen what they multiply, in each run. */
static bool multiplies_narrow(const rung_target *target, const rung_op *op, rung_type type) {
  if (op == &rung_op_attention_ragged) return type == RUNG_TYPE_BF16 && (target->isa & RUNG_ISA_AVX512);
  return op == &rung_op_matmul || op == &rung_op_grouped_matmul || op == &rung_op_expert_matmul;
}

static rung_status list_kernels(cpu *self, rung_error *error) {
  const uint32_t isa = self->target.isa;
  const rung_cpu_table *table;
  size_t n = self->plains;
  for (size_t t = 0; (table = rung_cpu_table_at(t)) != NULL; t++)
    if ((table->isa & isa) == table->isa)
      for (const rung_cpu_family *f = table->family; f->name; f++) n += f->rows;
  self->kernels = n;
  self->kernel = rung_host_array(self->host, n, sizeof *self->kernel);
  if (!self->kernel) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cpu: no memory for kernel rows");
  n = 0;
  for (size_t i = 0; i < self->plains; i++) self->kernel[n++] = &self->plain[i].row;
  for (size_t t = 0; (table = rung_cpu_table_at(t)) != NULL; t++) {
    if ((table->isa & isa) != table->isa) continue;
    if (table->compile_strip) self->compile_strip = table->compile_strip;
    for (const rung_cpu_family *f = table->family; f->name; f++)
      for (size_t i = 0; i < f->rows; i++) self->kernel[n++] = &f->row[i].row;
  }
  return RUNG_OK;
}

static void cpu_close(void *self_) {
  cpu *self = self_;
  if (!self) return;
  rung_host *host = self->host;
  rung_host_free(host, RUNG_MEMORY_host, self->kernel, self->kernels * sizeof *self->kernel);
  rung_host_free(host, RUNG_MEMORY_host, self->plain, self->plains * sizeof *self->plain);
  rung_host_free(host, RUNG_MEMORY_host, self->names, self->plains * NAME_BYTES);
  rung_host_free(host, RUNG_MEMORY_host, self, sizeof *self);
}

static rung_status cpu_open(rung_host *host, rung_error *error, void **out_self) {
  cpu *self = rung_host_array(host, 1, sizeof *self);
  if (!self) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cpu: no memory for the device");
  const uint32_t isa = rung_isa_detect();
  self->host = host;
  self->target = (rung_target){.name = "cpu",
                               .deterministic = true,
                               .isa = isa,
                               .layout_of = rung_cpu_layout_of,
                               .multiplies_a8 = multiplies_a8,
                               .multiplies_narrow = multiplies_narrow,
                               .kv_block_bytes = rung_cpu_kv_block_bytes,
                               .kv_read_row = rung_cpu_kv_read_row,
                               .kv_write_row = rung_cpu_kv_write_row,
                               .align = 64};
  self->target.level = rung_isa_name(self->target.isa);
  self->target.layout = rung_cpu_layouts(&self->target.layouts);
  rung_status status = make_plain_rows(self, error);
  if (!status) status = list_kernels(self, error);
  if (status) {
    cpu_close(self);
    return status;
  }
  self->target.kernel = self->kernel;
  self->target.kernels = self->kernels;
  *out_self = self;
  return RUNG_OK;
}

static const rung_target *cpu_target(void *self) { return &((cpu *)self)->target; }

/* ---- image: what the kernels of a plan prepared, one pointer per variant */

typedef struct image {
  rung_arena arena;
  const void **prepared;
} image;

static void cpu_finish(void *self, void *image_) {
  image *im = image_;
  if (!im) return;
  rung_host *host = ((cpu *)self)->host;
  rung_arena_finish(&im->arena);
  rung_host_free(host, RUNG_MEMORY_host, im, sizeof *im);
}

static uint64_t cpu_image_bytes(void *self, const void *image_) {
  (void)self;
  const image *im = image_;
  return im ? sizeof *im + rung_arena_bytes(&im->arena) : 0;
}

static rung_status prepare_step(cpu *self, image *im, const rung_plan *plan, const rung_step *step, rung_error *error) {
  for (uint32_t v = step->variant; v < step->variant + step->variants; v++) {
    const rung_cpu_kernel *kernel = (const rung_cpu_kernel *)plan->variant[v].kernel;
    if (!kernel->prepare) continue;
    const rung_cpu_prepare in = {.arena = &im->arena,
                                 .plan = plan,
                                 .step = step,
                                 .kernel = kernel,
                                 .compile_strip = self->compile_strip,
                                 .error = error};
    RUNG_TRY(kernel->prepare(&in, &im->prepared[v]));
  }
  return RUNG_OK;
}

static rung_status cpu_prepare(void *self_, rung_host *host, const rung_plan *plan, rung_error *error,
                               void **out_image) {
  cpu *self = self_;
  image *im = rung_host_array(host, 1, sizeof *im);
  if (!im) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cpu: no memory to prepare a plan");
  rung_arena_init(&im->arena, host);
  rung_status status = RUNG_OK;
  im->prepared = rung_arena_array(&im->arena, plan->variants, sizeof *im->prepared);
  if (!im->prepared) status = rung_fail(error, RUNG_OUT_OF_MEMORY, "cpu: no memory to prepare a plan");
  for (uint32_t s = 0; !status && s < plan->steps; s++)
    if (plan->step[s].kind == RUNG_STEP_KERNEL) status = prepare_step(self, im, plan, &plan->step[s], error);
  if (status) {
    cpu_finish(self, im);
    return status;
  }
  *out_image = im;
  return RUNG_OK;
}

/* ---- steps */

/* Lines of its own: helpers read it while the caller's frames, which lie beside it, change. */
typedef struct job {
  _Alignas(128) rung_args args;
  rung_status (*run)(const rung_args *args, int64_t task, int thread);
  atomic_llong refused; /* smallest task that refused, or the number of tasks */
} job;

static void run_task(void *self, int64_t task, int thread) {
  job *j = self;
  if (RUNG_LIKELY(!j->run(&j->args, task, thread))) return;
  long long seen = atomic_load(&j->refused);
  while (task < seen && !atomic_compare_exchange_weak(&j->refused, &seen, task)) continue;
}

/* Tasks that refuse must not write one message at once: they run without a buffer, and the first of them once more
 * alone. */
static RUNG_NOINLINE rung_status run_tasks(rung_run *run, const rung_kernel *kernel, const rung_args *args,
                                           int64_t tasks) {
  job j = {.args = *args, .run = kernel->run};
  atomic_init(&j.refused, tasks);
  j.args.error = NULL;
  rung_pool_run(run->pool, run->threads, tasks, run_task, &j);
  const int64_t refused = atomic_load(&j.refused);
  if (RUNG_LIKELY(refused == tasks)) return RUNG_OK;
  j.args.error = run->error;
  return kernel->run(&j.args, refused, 0);
}

static rung_status run_step(const image *im, rung_run *run, const rung_step *step, uint32_t variant, int *out_tasks) {
  const rung_plan *plan = run->plan;
  const rung_kernel *kernel = plan->variant[variant].kernel;
  rung_args args = {.in = run->operand + step->in,
                    .out = run->operand + step->out,
                    .n_in = step->n_in,
                    .n_out = step->n_out,
                    .attrs = step->attrs,
                    .dim = run->dim,
                    .role = run->role + step->role,
                    .scratch = run->scratch,
                    .prepared = im->prepared[variant],
                    .random = run->random,
                    .threads = run->threads,
                    .error = run->error};
  if (kernel->scratch_per_thread)
    args.scratch_stride = (size_t)(run->dim[plan->variant[variant].scratch.id] / plan->threads);
  const int64_t tasks = kernel->tasks ? kernel->tasks(&args) : 1;
  *out_tasks = (int)tasks;
  if (run->threads > 1 && tasks > 1) return run_tasks(run, kernel, &args, tasks);
  rung_status status = RUNG_OK;
  for (int64_t t = 0; !status && t < (tasks ? tasks : 1); t++) status = kernel->run(&args, t, 0);
  return status;
}

static RUNG_NOINLINE rung_status run_step_traced(const image *im, rung_run *run, uint32_t index, uint32_t variant) {
  const rung_step *step = &run->plan->step[index];
  rung_step_event event = {.plan = run->plan,
                           .step = index,
                           .kernel = run->plan->variant[variant].kernel,
                           .in = run->operand + step->in,
                           .out = run->operand + step->out,
                           .start_ns = rung_clock_ns()};
  const rung_status status = run_step(im, run, step, variant, &event.tasks);
  event.end_ns = rung_clock_ns();
  run->on_step(run->on_step_self, &event);
  return status;
}

static rung_status run_steps(const image *im, rung_run *run, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++) {
    if (RUNG_UNLIKELY(atomic_load_explicit(run->cancel, memory_order_relaxed)))
      return rung_fail(run->error, RUNG_CANCELLED, "the run was cancelled");
    const rung_step *step = &run->plan->step[i];
    const uint32_t variant = step->variant + run->variant[i];
    int tasks;
    if (RUNG_UNLIKELY(run->left_out && run->left_out[i])) continue;
    if (RUNG_UNLIKELY(run->on_step != NULL))
      RUNG_TRY(run_step_traced(im, run, i, variant));
    else
      RUNG_TRY(run_step(im, run, step, variant, &tasks));
  }
  return RUNG_OK;
}

/* Denormals are flushed for the whole stretch of steps; helpers of the pool run that way anyway. */
static rung_status cpu_steps(void *self, void *image_, rung_run *run, uint32_t first, uint32_t count) {
  (void)self;
  const uint64_t state = rung_float_state_set();
  const rung_status status = run_steps(image_, run, first, count);
  rung_float_state_restore(state);
  return status;
}

const rung_backend rung_backend_cpu = {.name = "cpu",
                                       .open = cpu_open,
                                       .close = cpu_close,
                                       .target = cpu_target,
                                       .prepare = cpu_prepare,
                                       .finish = cpu_finish,
                                       .image_bytes = cpu_image_bytes,
                                       .steps = cpu_steps};
