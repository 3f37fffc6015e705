/* SPDX-License-Identifier: MIT
 * The reference device: every op as its table entry defines it, one after another, in double. Slow and plain: what
 * other backends are compared with. */
#include "backends/ref/ref.h"

#include <string.h>

#include "base/clock.h"
#include "ops/op_table.h"

typedef struct ref {
  rung_host *host;
  rung_target target;
  rung_kernel *row;
  const rung_kernel **kernel;
  size_t count;
} ref;

/* ---- keys and values: 64 rows of key[kv_heads][key_dim], value[kv_heads][value_dim] in the state's type */

static size_t row_elements(const rung_kv_view *kv) {
  return (size_t)kv->kv_heads * ((size_t)kv->key_dim + (size_t)kv->value_dim);
}

static size_t block_bytes(rung_type type, int32_t kv_heads, int32_t key_dim, int32_t value_dim) {
  return (size_t)RUNG_KV_BLOCK * rung_type_bytes(type, (uint64_t)kv_heads * ((uint64_t)key_dim + (uint64_t)value_dim));
}

static uint8_t *row_at(const rung_kv_view *kv, int32_t slot, int64_t position) {
  return rung_kv_block(kv, slot, position) +
         (size_t)(position % RUNG_KV_BLOCK) * rung_type_bytes(kv->type, row_elements(kv));
}

static void read_row(const rung_kv_view *kv, int32_t slot, int64_t position, float *out) {
  rung_type_get(kv->type)->to_f32(row_at(kv, slot, position), out, row_elements(kv));
}

static void write_row(const rung_kv_view *kv, int32_t slot, int64_t position, const float *row) {
  rung_type_get(kv->type)->from_f32(row, row_at(kv, slot, position), row_elements(kv));
}

/* ---- target */

static const rung_layout *no_layout(rung_type type) {
  (void)type;
  return NULL;
}
static bool no_a8(rung_type type) {
  (void)type;
  return false;
}

/* Bodies are the runtime's (if, loop) or un-fused before they come here; declarations have no step. */
static bool has_step(const rung_op *op) {
  return op->reference && !op->bodies && !(op->flags & (RUNG_OP_CONTROL | RUNG_OP_DECLARES));
}

static rung_status run_row(const rung_args *args, int64_t task, int thread) {
  (void)task;
  (void)thread;
  return rung_fail(args->error, RUNG_INTERNAL, "a reference row is run by its backend");
}

static rung_status ref_open(rung_host *host, rung_error *error, void **out_self) {
  ref *self = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *self, 0);
  if (!self) return rung_fail(error, RUNG_OUT_OF_MEMORY, "ref: out of memory");
  self->host = host;
  const size_t ops = rung_op_count();
  self->count = ops;
  self->row = rung_host_array(host, ops, sizeof *self->row);
  self->kernel = rung_host_array(host, ops, sizeof *self->kernel);
  *out_self = self;
  if (!self->row || !self->kernel) {
    rung_backend_ref.close(self);
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "ref: out of memory");
  }
  size_t n = 0;
  for (size_t i = 0; i < ops; i++) {
    const rung_op *op = rung_op_at(i);
    if (!has_step(op)) continue;
    self->row[n] = rung_kernel_plain(op->name, op, run_row);
    self->kernel[n] = &self->row[n];
    n++;
  }
  self->target = (rung_target){.name = "ref",
                               .deterministic = true,
                               .kernel = self->kernel,
                               .kernels = n,
                               .layout_of = no_layout,
                               .multiplies_a8 = no_a8,
                               .kv_block_bytes = block_bytes,
                               .kv_read_row = read_row,
                               .kv_write_row = write_row,
                               .align = 64};
  return RUNG_OK;
}

static void ref_close(void *self_) {
  ref *self = self_;
  if (!self) return;
  rung_host *host = self->host;
  rung_host_free(host, RUNG_MEMORY_host, self->row, self->count * sizeof *self->row);
  rung_host_free(host, RUNG_MEMORY_host, self->kernel, self->count * sizeof *self->kernel);
  rung_host_free(host, RUNG_MEMORY_host, self, sizeof *self);
}

static const rung_target *ref_target(void *self) { return &((ref *)self)->target; }

static rung_status ref_prepare(void *self, rung_host *host, const rung_plan *plan, rung_error *error,
                               void **out_image) {
  (void)self, (void)host, (void)plan, (void)error;
  *out_image = NULL;
  return RUNG_OK;
}
static void ref_finish(void *self, void *image) { (void)self, (void)image; }
static uint64_t ref_image_bytes(void *self, const void *image) {
  (void)self, (void)image;
  return 0;
}

static rung_status ref_steps(void *self, void *image, rung_run *run, uint32_t first, uint32_t count) {
  (void)self, (void)image;
  for (uint32_t s = first; s < first + count; s++) {
    const rung_step *step = &run->plan->step[s];
    if (atomic_load_explicit(run->cancel, memory_order_relaxed))
      return rung_fail(run->error, RUNG_CANCELLED, "cancelled before step %u", s);
    if (run->left_out && run->left_out[s]) continue;
    const rung_args args = {.in = run->operand + step->in,
                            .out = run->operand + step->out,
                            .n_in = step->n_in,
                            .n_out = step->n_out,
                            .attrs = step->attrs,
                            .dim = run->dim,
                            .role = run->role + step->role,
                            .random = run->random,
                            .threads = 1,
                            .error = run->error};
    const uint64_t start = run->on_step ? rung_clock_ns() : 0;
    const rung_status status = step->op->reference(&args);
    if (status) {
      const uint32_t label = step->label;
      return rung_fail_prefix(run->error, status, "%s%s%s", step->op->name, label == RUNG_NONE ? "" : " in ",
                              label == RUNG_NONE ? "" : run->plan->label[label]);
    }
    if (!run->on_step) continue;
    const rung_step_event event = {.plan = run->plan,
                                   .step = s,
                                   .kernel = run->plan->variant[step->variant].kernel,
                                   .in = args.in,
                                   .out = args.out,
                                   .start_ns = start,
                                   .end_ns = rung_clock_ns(),
                                   .tasks = 1};
    run->on_step(run->on_step_self, &event);
  }
  return RUNG_OK;
}

const rung_backend rung_backend_ref = {.name = "ref",
                                       .open = ref_open,
                                       .close = ref_close,
                                       .target = ref_target,
                                       .prepare = ref_prepare,
                                       .finish = ref_finish,
                                       .image_bytes = ref_image_bytes,
                                       .steps = ref_steps};
