/* SPDX-License-Identifier: MIT
 * The CUDA backend: opening the device, its target, and what a plan prepares. */
#include "backends/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/matmul.h"
#include "backends/cuda/region.h"
#include "backends/cuda/run.h"
#include "ops/elementwise.h"
#include "ops/op_table.h"

enum { NAME_BYTES = 48, OLDEST_CHIP = 80 };

/* ---- the device */

void rung_cuda_enter(rung_cuda *self, void **out_before) {
  rung_mutex_lock(&self->lock);
  self->driver.context_get(out_before);
  if (*out_before != self->context) self->driver.context_set(self->context);
}

void rung_cuda_leave(rung_cuda *self, void *before) {
  if (before != self->context) self->driver.context_set(before);
  rung_mutex_unlock(&self->lock);
}

const char *rung_cuda_text(const rung_cuda *self, int result) {
  const char *text = NULL;
  if (self->driver.error_text(result, &text) || !text) text = "an error without a text";
  return text;
}

bool rung_cuda_ok(rung_cuda *self, int result, const char *what) {
  if (!result) return true;
  if (!self->failed) {
    self->failed = result;
    self->failed_in = what;
  }
  return false;
}

/* An error that comes from a kernel stays with the context: no later call succeeds, and each says so. */
rung_status rung_cuda_failed(rung_cuda *self, rung_error *error) {
  const int result = self->failed;
  if (!result) return RUNG_OK;
  self->failed = 0;
  return rung_fail(error, result == RUNG_CU_OUT_OF_MEMORY ? RUNG_OUT_OF_MEMORY : RUNG_SYSTEM, "cuda: %s: %s (%d)",
                   self->failed_in, rung_cuda_text(self, result), result);
}

static rung_status find_device(rung_cuda *self, rung_error *error) {
  const char *text = getenv("RUNG_CUDA_DEVICE");
  const int ordinal = text && *text ? atoi(text) : 0;
  int count = 0, result = self->driver.init(0), major = 0, minor = 0;
  if (!result) result = self->driver.device_count(&count);
  if (result || !count)
    return rung_fail(error, RUNG_UNSUPPORTED, "cuda: there is no GPU on this machine (%s)",
                     result ? rung_cuda_text(self, result) : "none is listed");
  if (ordinal < 0 || ordinal >= count)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "cuda: RUNG_CUDA_DEVICE is %d; there are GPUs 0 to %d", ordinal,
                     count - 1);
  result = self->driver.device_get(&self->device, ordinal);
  if (!result) result = self->driver.device_attribute(&self->processors, RUNG_CU_PROCESSORS, self->device);
  if (!result) result = self->driver.device_attribute(&major, RUNG_CU_MAJOR, self->device);
  if (!result) result = self->driver.device_attribute(&minor, RUNG_CU_MINOR, self->device);
  if (!result) result = self->driver.device_attribute(&self->shared_limit, RUNG_CU_SHARED_LIMIT, self->device);
  self->chip = 10 * major + minor;
  if (!result && self->chip < OLDEST_CHIP)
    return rung_fail(error, RUNG_UNSUPPORTED, "cuda: the GPU has compute capability %d.%d; 8.0 or later is needed",
                     major, minor);
  if (!result) result = self->driver.context_retain(&self->context, self->device);
  if (result) return rung_fail(error, RUNG_SYSTEM, "cuda: opening the GPU: %s", rung_cuda_text(self, result));
  snprintf(self->level, sizeof self->level, "sm_%d", self->chip);
  return RUNG_OK;
}

static rung_status open_device(rung_cuda *self, rung_error *error) {
  RUNG_TRY(rung_cu_driver_open(&self->driver, error));
  RUNG_TRY(rung_cu_compiler_open(&self->compiler, error));
  RUNG_TRY(find_device(self, error));
  void *before;
  rung_cuda_enter(self, &before);
  const int result = self->driver.stream_create(&self->stream, 1);
  rung_status status = result ? rung_fail(error, RUNG_SYSTEM, "cuda: a stream: %s", rung_cuda_text(self, result))
                              : rung_cuda_memory_open(self, error);
  if (!status) rung_cuda_products_open(self);
  rung_cuda_leave(self, before);
  return status;
}

/* ---- target */

static rung_status no_launch(const rung_cuda_step *step) {
  return rung_fail(step->args->error, RUNG_INTERNAL, "cuda: a step of the host was launched");
}

/* What can be taken apart is: its parts may have kernels. */
static bool runs_on_host(const rung_op *op) {
  return op->reference && !op->decompose && !op->bodies && !(op->flags & (RUNG_OP_CONTROL | RUNG_OP_DECLARES));
}

static rung_status host_task(const rung_args *args, int64_t task, int thread) {
  (void)task, (void)thread;
  return rung_fail(args->error, RUNG_INTERNAL, "a row of the CUDA backend is run by its backend");
}

/* Several numbers a byte cannot be moved between memories one by one. */
static bool fits_host(const rung_match *match, char *why) {
  for (uint32_t i = 0; i < match->n_in + match->n_out; i++) {
    const rung_type_row *row = rung_type_get(i < match->n_in ? match->in[i]->type : match->out[i - match->n_in].type);
    if (row->class_ != RUNG_CLASS_STORAGE || row->block == 1) continue;
    snprintf(why, 120, "no %s on this device", row->name);
    return false;
  }
  return true;
}

static bool is_region(const rung_op *op) {
  return op == &rung_op_fused || op == &rung_op_cast || op == &rung_op_rms_norm || op == &rung_op_layer_norm ||
         op == &rung_op_quantize_rows || rung_row_of(op) != NULL;
}

static rung_cuda_kernel region_row(const char *name, const rung_op *op) {
  rung_cuda_kernel k = {.row = rung_kernel_plain(name, op, host_task),
                        .unit = "region",
                        .function = {"region", NULL},
                        .prepare = rung_region_prepare,
                        .launch = rung_region_launch};
  k.row.fits = rung_region_fits;
  k.row.in_place = true;
  return k;
}

/* Rows that every op of a kind has. */
static rung_status make_rows(rung_cuda *self, rung_error *error) {
  const size_t ops = rung_op_count();
  for (size_t i = 0; i < ops; i++) {
    self->plains += runs_on_host(rung_op_at(i));
    self->regions += is_region(rung_op_at(i));
  }
  const size_t names = self->plains + self->regions;
  self->plain = rung_host_array(self->host, self->plains, sizeof *self->plain);
  self->region = rung_host_array(self->host, self->regions, sizeof *self->region);
  self->names = rung_host_array(self->host, names, NAME_BYTES);
  if (!self->plain || !self->region || !self->names)
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory for kernel rows");
  size_t n = 0, r = 0;
  for (size_t i = 0; i < ops; i++) {
    const rung_op *op = rung_op_at(i);
    char *name = self->names + (n + r) * NAME_BYTES;
    if (runs_on_host(op)) {
      snprintf(name, NAME_BYTES, "host_%s", op->name);
      self->plain[n] = (rung_cuda_kernel){.row = rung_kernel_plain(name, op, host_task), .launch = no_launch};
      self->plain[n++].row.fits = fits_host;
      name += NAME_BYTES;
    }
    if (is_region(op)) {
      snprintf(name, NAME_BYTES, "region_%s", op->name);
      self->region[r++] = region_row(name, op);
    }
  }
  return RUNG_OK;
}

/* To find out which kernel is to blame: RUNG_CUDA_KERNELS=0 runs every step on the host, RUNG_CUDA_WITHOUT=text leaves
 * out the kernels that have the text in their names. */
bool rung_cuda_is_wanted(const char *name) {
  const char *all = getenv("RUNG_CUDA_KERNELS"), *without = getenv("RUNG_CUDA_WITHOUT");
  if (all && strcmp(all, "0") == 0) return false;
  return !without || !*without || !strstr(name, without);
}

static rung_status list_kernels(rung_cuda *self, rung_error *error) {
  const rung_cuda_family *f;
  self->kernels = self->plains + self->regions;
  for (size_t i = 0; (f = rung_cuda_family_at(i)) != NULL; i++) self->kernels += f->rows;
  self->kernel = rung_host_array(self->host, self->kernels, sizeof *self->kernel);
  if (!self->kernel) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory for kernel rows");
  size_t n = 0;
  for (size_t i = 0; i < self->plains; i++) self->kernel[n++] = &self->plain[i].row;
  for (size_t i = 0; i < self->regions; i++)
    if (rung_cuda_is_wanted(self->region[i].row.name)) self->kernel[n++] = &self->region[i].row;
  for (size_t i = 0; (f = rung_cuda_family_at(i)) != NULL; i++)
    for (size_t r = 0; r < f->rows; r++)
      if (rung_cuda_is_wanted(f->row[r].row.name) &&
          (self->product_handle || strncmp(f->row[r].row.name, "library_", 8) != 0))
        self->kernel[n++] = &f->row[r].row;
  self->listed = n;
  return RUNG_OK;
}

static void cuda_close(void *self_) {
  rung_cuda *self = self_;
  if (!self) return;
  rung_host *host = self->host;
  if (self->context) {
    void *before;
    rung_cuda_enter(self, &before);
    if (self->stream) self->driver.stream_wait(self->stream);
    rung_cuda_products_close(self);
    rung_cuda_modules_close(self);
    rung_cuda_memory_close(self);
    if (self->stream) self->driver.stream_destroy(self->stream);
    rung_cuda_leave(self, before);
    self->driver.context_release(self->device);
  }
  rung_mutex_finish(&self->lock);
  rung_host_free(host, RUNG_MEMORY_host, self->kernel, self->kernels * sizeof *self->kernel);
  rung_host_free(host, RUNG_MEMORY_host, self->plain, self->plains * sizeof *self->plain);
  rung_host_free(host, RUNG_MEMORY_host, self->region, self->regions * sizeof *self->region);
  rung_host_free(host, RUNG_MEMORY_host, self->names, (self->plains + self->regions) * NAME_BYTES);
  rung_host_free(host, RUNG_MEMORY_host, self, sizeof *self);
}

static rung_status cuda_open(rung_host *host, rung_error *error, void **out_self) {
  rung_cuda *self = rung_host_array(host, 1, sizeof *self);
  if (!self) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory for the device");
  self->host = host;
  if (!rung_mutex_init(&self->lock)) {
    rung_host_free(host, RUNG_MEMORY_host, self, sizeof *self);
    return rung_fail(error, RUNG_SYSTEM, "cuda: a lock could not be made");
  }
  rung_status status = open_device(self, error);
  if (!status) status = make_rows(self, error);
  if (!status) status = list_kernels(self, error);
  if (status) {
    cuda_close(self);
    return status;
  }
  self->target = (rung_target){.name = "cuda",
                               .level = self->level,
                               .kernel = self->kernel,
                               .kernels = self->listed,
                               .layout_of = rung_cuda_layout_of,
                               .multiplies_a8 = rung_cuda_multiplies_a8,
                               .narrows = true,
                               .kv_block_bytes = rung_cuda_kv_block_bytes,
                               .kv_read_row = rung_cuda_kv_read_row,
                               .kv_write_row = rung_cuda_kv_write_row,
                               .align = 256,
                               .slack = RUNG_CUDA_SLACK,
                               .own_memory = true,
                               .far = &self->far};
  self->target.layout = rung_cuda_layouts(&self->target.layouts);
  *out_self = self;
  return RUNG_OK;
}

static const rung_target *cuda_target(void *self) { return &((rung_cuda *)self)->target; }

/* ---- images */

void rung_cuda_finish(void *self, void *image_) {
  rung_cuda_image *image = image_;
  if (!image) return;
  rung_host *host = ((rung_cuda *)self)->host;
  rung_arena_finish(&image->arena);
  rung_host_free(host, RUNG_MEMORY_host, image, sizeof *image);
}

static uint64_t cuda_image_bytes(void *self, const void *image_) {
  (void)self;
  const rung_cuda_image *image = image_;
  return image ? sizeof *image + rung_arena_bytes(&image->arena) : 0;
}

rung_status rung_cuda_prepare_kernel(const rung_cuda_prepare *in) {
  const rung_cuda_kernel *kernel = in->prepared->kernel;
  rung_text front;
  rung_text_init(&front, in->device->host);
  rung_status status = kernel->prepare ? kernel->prepare(in, &front) : RUNG_OK;
  if (!status) status = rung_text_status(&front, in->error);
  int n = 0;
  while (kernel->function[n]) n++;
  if (!status)
    status =
        rung_cuda_compile(in->device, kernel->unit, &front, kernel->function, n, in->prepared->function, in->error);
  rung_text_finish(&front);
  return status;
}

static rung_status prepare_variant(rung_cuda *self, rung_cuda_image *image, const rung_plan *plan,
                                   const rung_step *step, uint32_t variant, rung_error *error) {
  rung_cuda_prepared *prepared = &image->prepared[variant];
  const rung_cuda_kernel *kernel = (const rung_cuda_kernel *)plan->variant[variant].kernel;
  *prepared = (rung_cuda_prepared){.kernel = kernel, .step = step};
  const rung_cuda_prepare in = {
      .device = self, .arena = &image->arena, .plan = plan, .step = step, .prepared = prepared, .error = error};
  return kernel->unit ? rung_cuda_prepare_kernel(&in) : RUNG_OK;
}

rung_status rung_cuda_prepare_plan(void *self_, rung_host *host, const rung_plan *plan, rung_error *error,
                                   void **out_image) {
  rung_cuda *self = self_;
  rung_cuda_image *image = rung_host_array(host, 1, sizeof *image);
  if (!image) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare a plan");
  rung_arena_init(&image->arena, host);
  rung_status status = RUNG_OK;
  image->prepared = rung_arena_array(&image->arena, plan->variants, sizeof *image->prepared);
  if (!image->prepared) status = rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare a plan");
  for (uint32_t s = 0; !status && s < plan->steps; s++) {
    const rung_step *step = &plan->step[s];
    if (step->kind != RUNG_STEP_KERNEL) continue;
    for (uint32_t v = step->variant; !status && v < step->variant + step->variants; v++)
      status = prepare_variant(self, image, plan, step, v, error);
  }
  for (uint32_t s = 0; !status && s < plan->steps; s++)
    status = rung_cuda_join(self, plan, &image->arena, image->prepared, s, error);
  for (uint32_t s = 0; !status && s < plan->steps; s++)
    status = rung_cuda_join_one(self, plan, &image->arena, image->prepared, s, error);
  for (uint32_t s = 0; !status && s < plan->steps; s++)
    status = rung_cuda_join_row(self, plan, &image->arena, image->prepared, s, error);
  if (status) {
    rung_cuda_finish(self, image);
    return status;
  }
  *out_image = image;
  return RUNG_OK;
}

const rung_backend rung_backend_cuda = {.name = "cuda",
                                        .open = cuda_open,
                                        .close = cuda_close,
                                        .target = cuda_target,
                                        .prepare = rung_cuda_prepare_plan,
                                        .finish = rung_cuda_finish,
                                        .image_bytes = cuda_image_bytes,
                                        .steps = rung_cuda_steps,
                                        .forget = rung_cuda_forget,
                                        .settle = rung_cuda_settle,
                                        .settle_later = rung_cuda_settle_later,
                                        .settle_note = rung_cuda_settle_note,
                                        .tuning = &rung_cuda_tuning};
