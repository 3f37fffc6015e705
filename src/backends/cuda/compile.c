/* SPDX-License-Identifier: MIT
 * From the text of kernels to functions on the chip. What has been compiled is kept by the device for as long as it
 * lives, found by the hash of text and options; in the folder that RUNG_CUDA_CACHE names it is kept for the next
 * process, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/device.h"
#include "base/folder.h"
#include "base/map_file.h"

const char *rung_cuda_unit_text(const char *name) {
  for (size_t i = 0; i < rung_cuda_unit_count; i++)
    if (strcmp(rung_cuda_units[i].name, name) == 0) return (const char *)rung_cuda_units[i].text;
  return NULL;
}

/* ---- compiling */

enum { LOG_SHOWN = 320 };

static rung_status say_log(rung_host *host, const rung_cu_compiler *c, void *program, const char *name,
                           rung_error *error) {
  size_t bytes = 0;
  char shown[LOG_SHOWN + 1] = "";
  char *log = !c->log_bytes(program, &bytes) && bytes ? rung_host_array(host, bytes + 1, 1) : NULL;
  if (log && !c->log(program, log)) {
    const char *at = strstr(log, "error");
    snprintf(shown, sizeof shown, "%s", at ? at : log);
    rung_host_log(host, RUNG_LOG_ERROR, "cuda: %s: %s", name, log);
  }
  if (log) rung_host_free(host, RUNG_MEMORY_host, log, bytes + 1);
  return rung_fail(error, RUNG_INTERNAL, "cuda: kernels %s do not compile: %s", name, shown);
}

rung_status rung_cuda_compile_text(rung_host *host, const rung_cu_compiler *c, int chip, const char *name,
                                   const char *text, rung_error *error, uint8_t **out_code, size_t *out_bytes) {
  void *program = NULL;
  char architecture[40];
  /* Instructions of Hopper and its followers that are tied to one chip have an `a` behind the number. */
  snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%s", chip, chip >= 90 ? "a" : "");
  const char *const option[] = {architecture, "--std=c++17", "--fmad=false", "--device-as-default-execution-space"};
  int result = c->create(&program, text, name, 0, NULL, NULL);
  if (result) return rung_fail(error, RUNG_INTERNAL, "cuda: the run-time compiler refused a program (%d)", result);
  rung_status status = RUNG_OK;
  *out_code = NULL;
  *out_bytes = 0;
  if (c->compile(program, (int)RUNG_COUNT(option), option)) status = say_log(host, c, program, name, error);
  if (!status && (c->code_bytes(program, out_bytes) || !*out_bytes))
    status = rung_fail(error, RUNG_INTERNAL, "cuda: kernels %s: no machine code for chip %d", name, chip);
  if (!status && !(*out_code = rung_host_array(host, *out_bytes, 1)))
    status = rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory for compiled kernels");
  if (!status && c->code(program, (char *)*out_code))
    status = rung_fail(error, RUNG_INTERNAL, "cuda: kernels %s: the machine code could not be read", name);
  if (status && *out_code) {
    rung_host_free(host, RUNG_MEMORY_host, *out_code, *out_bytes);
    *out_code = NULL;
  }
  c->destroy(&program);
  return status;
}

/* ---- the folder */

static bool cache_path(rung_hash key, char *out, size_t bytes) {
  const char *folder = getenv("RUNG_CUDA_CACHE");
  char hex[33];
  rung_hash_hex(key, hex);
  return folder && *folder && snprintf(out, bytes, "%s/%s.cubin", folder, hex) < (int)bytes;
}

/* Machine code is preceded by its hash: what is not whole is compiled again. */
static bool load_kept(rung_cuda *self, rung_hash key, void **out_module) {
  char path[1024];
  rung_map map;
  if (!cache_path(key, path, sizeof path)) return false;
  const rung_source source = rung_source_path(path);
  if (rung_map_open(&map, self->host, &source, NULL)) return false;
  bool loaded = false;
  rung_hash sum;
  if (map.size > sizeof sum) {
    memcpy(&sum, map.data, sizeof sum);
    if (rung_hash_equal(sum, rung_hash_bytes((const uint8_t *)map.data + sizeof sum, map.size - sizeof sum)))
      loaded = self->driver.module_load(out_module, (const uint8_t *)map.data + sizeof sum) == 0;
  }
  rung_map_close(&map);
  return loaded;
}

static void keep(rung_cuda *self, rung_hash key, const uint8_t *code, size_t bytes) {
  char path[1024];
  if (!cache_path(key, path, sizeof path)) return;
  rung_folder_make(getenv("RUNG_CUDA_CACHE"));
  rung_writer *writer;
  rung_error why;
  const rung_hash sum = rung_hash_bytes(code, bytes);
  rung_status status = rung_writer_open(self->host, path, &why, &writer);
  if (!status) {
    status = rung_writer_put(writer, &sum, sizeof sum, &why);
    if (!status) status = rung_writer_put(writer, code, bytes, &why);
    if (status)
      rung_writer_discard(writer);
    else
      status = rung_writer_commit(writer, &why);
  }
  if (status) rung_host_log(self->host, RUNG_LOG_WARNING, "cuda: compiled kernels are not kept: %s", why.message);
}

/* ---- modules */

static rung_status load_module(rung_cuda *self, const char *unit, const char *text, rung_hash key, rung_error *error,
                               void **out_module) {
  uint8_t *code;
  size_t bytes;
  if (load_kept(self, key, out_module)) return RUNG_OK;
  RUNG_TRY(rung_cuda_compile_text(self->host, &self->compiler, self->chip, unit, text, error, &code, &bytes));
  const int result = self->driver.module_load(out_module, code);
  if (!result) keep(self, key, code, bytes);
  rung_host_free(self->host, RUNG_MEMORY_host, code, bytes);
  if (result)
    return rung_fail(error, result == RUNG_CU_OUT_OF_MEMORY ? RUNG_OUT_OF_MEMORY : RUNG_SYSTEM,
                     "cuda: kernels %s could not be loaded: %s", unit, rung_cuda_text(self, result));
  return RUNG_OK;
}

static rung_status find_module(rung_cuda *self, const char *unit, const char *text, rung_error *error,
                               void **out_module) {
  int version[2] = {0, 0};
  self->compiler.version(&version[0], &version[1]);
  const rung_hash body = rung_hash_bytes(text, strlen(text));
  const uint64_t words[] = {body.low, body.high, (uint64_t)self->chip, (uint64_t)version[0], (uint64_t)version[1]};
  const rung_hash key = rung_hash_bytes(words, sizeof words);
  for (const rung_cuda_module *m = self->module; m; m = m->next) {
    if (!rung_hash_equal(m->key, key)) continue;
    *out_module = m->module;
    return RUNG_OK;
  }
  rung_cuda_module *made = rung_host_array(self->host, 1, sizeof *made);
  if (!made) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: out of memory");
  const rung_status status = load_module(self, unit, text, key, error, &made->module);
  if (status) {
    rung_host_free(self->host, RUNG_MEMORY_host, made, sizeof *made);
    return status;
  }
  made->key = key;
  made->next = self->module;
  self->module = made;
  *out_module = made->module;
  return RUNG_OK;
}

rung_status rung_cuda_compile(rung_cuda *self, const char *unit, const rung_text *front, const char *const *entry,
                              int entries, void **out_function, rung_error *error) {
  rung_text all;
  rung_text_init(&all, self->host);
  rung_text_puts(&all, rung_cuda_unit_text("common"));
  if (front && front->data) rung_text_add(&all, front->data, front->length);
  const char *text = rung_cuda_unit_text(unit);
  if (text) rung_text_puts(&all, text);
  rung_status status = rung_text_status(&all, error);
  void *before, *module = NULL;
  rung_cuda_enter(self, &before);
  if (!status) status = find_module(self, unit, all.data, error, &module);
  for (int i = 0; i < entries && !status; i++) {
    const int result = self->driver.module_function(&out_function[i], module, entry[i]);
    if (result)
      status = rung_fail(error, RUNG_INTERNAL, "cuda: kernels %s have no %s: %s", unit, entry[i],
                         rung_cuda_text(self, result));
    /* One division of a processor's memory for all: kernels that want different ones cannot overlap. */
    if (!result) self->driver.function_set(out_function[i], RUNG_CU_SHARED_SHARE, 100);
  }
  rung_cuda_leave(self, before);
  rung_text_finish(&all);
  return status;
}

rung_status rung_cuda_allow_shared(const rung_cuda *self, void *function, uint32_t bytes, rung_error *error) {
  const int result = self->driver.function_set(function, RUNG_CU_SHARED_BYTES, (int)bytes);
  return result
             ? rung_fail(error, RUNG_SYSTEM, "cuda: %u bytes of shared memory: %s", bytes, rung_cuda_text(self, result))
             : RUNG_OK;
}

void rung_cuda_modules_close(rung_cuda *self) {
  while (self->module) {
    rung_cuda_module *next = self->module->next;
    self->driver.module_unload(self->module->module);
    rung_host_free(self->host, RUNG_MEMORY_host, self->module, sizeof *self->module);
    self->module = next;
  }
}
