/* SPDX-License-Identifier: MIT
 * Devices: the list of backends, and what one process opens them with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/cuda/cuda.h"
#include "backends/ref/ref.h"
#include "runtime/runtime.h"
#include "runtime/tune/tables.h"

static const rung_backend *const backends[] = {&rung_backend_cpu, &rung_backend_ref, &rung_backend_cuda};

rung_device_options rung_device_options_default(void) {
  return (rung_device_options){.size = sizeof(rung_device_options)};
}

static const rung_backend *find(const char *name) {
  for (size_t i = 0; i < RUNG_COUNT(backends); i++)
    if (strcmp(backends[i]->name, name) == 0) return backends[i];
  return NULL;
}

/* RUNG_THREADS, then what affinity and quota leave. */
static rung_status default_threads(int asked, rung_error *error, int *out_threads) {
  const char *text = getenv("RUNG_THREADS");
  *out_threads = asked;
  if (asked > 0) return RUNG_OK;
  if (asked < 0)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "threads is %d; give at least 1, or 0 for the default", asked);
  if (!text || !*text) {
    *out_threads = rung_pool_default_threads(NULL);
    return RUNG_OK;
  }
  char *end;
  const long value = strtol(text, &end, 10);
  if (*end || value < 1 || value > 1024)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "RUNG_THREADS is \"%s\"; it must be 1..1024", text);
  *out_threads = (int)value;
  return RUNG_OK;
}

/* The caller's policy, or one out of the environment, which also names a folder that the caller left open. */
static rung_status find_policy(const rung_tune_policy *asked, rung_error *error, rung_tune_policy *out) {
  static const char *const profiles[] = {"balanced", "latency", "accurate", "deterministic"};
  const char *folder = getenv("RUNG_TUNE"), *profile = asked ? NULL : getenv("RUNG_TUNE_PROFILE");
  *out = asked ? *asked : rung_tune_policy_default();
  if (out->size != sizeof *out)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "device: tune.size is %zu, expected %zu", out->size, sizeof *out);
  if ((unsigned)out->profile > RUNG_TUNE_DETERMINISTIC || (unsigned)out->eviction > RUNG_TUNE_LRU)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "device: tune has profile %d and eviction %d, which are none",
                     (int)out->profile, (int)out->eviction);
  if (!out->folder && folder && *folder) out->folder = folder;
  if (!profile || !*profile) return RUNG_OK;
  for (size_t i = 0; i < RUNG_COUNT(profiles); i++) {
    if (strcmp(profiles[i], profile) != 0) continue;
    out->profile = (rung_tune_profile)i;
    return RUNG_OK;
  }
  return rung_fail(error, RUNG_INVALID_ARGUMENT,
                   "RUNG_TUNE_PROFILE is \"%s\"; it must be balanced, latency, accurate or deterministic", profile);
}

static rung_status make_tables(rung_device *device, const rung_tune_policy *policy, uint32_t most, rung_error *error) {
  const rung_tuning *tuning = device->backend->tuning;
  char name[RUNG_TUNE_TEXT];
  if (!tuning) return RUNG_OK;
  tuning->device(device->self, name);
  RUNG_TRY(rung_tables_create(device->host, policy, most ? most : RUNG_WINNERS, name, error, &device->tables));
  tuning->ask(device->self, rung_tables_source(device->tables));
  return RUNG_OK;
}

rung_status rung_device_create(rung_host *host, const char *name, const rung_device_options *options, rung_error *error,
                               rung_device **out_device) {
  const rung_device_options o = options ? *options : rung_device_options_default();
  if (!host || !name || !out_device)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "device: host, name and out_device are required");
  if (o.size != sizeof o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "device: options.size is %zu, expected %zu", o.size, sizeof o);
  const rung_backend *backend = find(name);
  if (!backend) return rung_fail(error, RUNG_NOT_FOUND, "no device \"%s\"; there are: cpu, cuda, ref", name);
  int threads;
  RUNG_TRY(default_threads(o.threads, error, &threads));
  rung_tune_policy policy;
  RUNG_TRY(find_policy(o.tune, error, &policy));
  rung_device *device = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *device, 0);
  if (!device) return rung_fail(error, RUNG_OUT_OF_MEMORY, "device: out of memory");
  atomic_init(&device->references, 1);
  device->host = host;
  device->backend = backend;
  rung_status status = backend->open(host, error, &device->self);
  if (!status && (status = make_tables(device, &policy, o.winners, error)) != RUNG_OK) backend->close(device->self);
  if (status) {
    rung_host_free(host, RUNG_MEMORY_host, device, sizeof *device);
    return status;
  }
  rung_host_retain(host);
  device->target = backend->target(device->self);
  device->deterministic = backend->deterministic ? backend->deterministic(device->self) : device->target;
  device->pool = rung_pool_shared(host);
  device->threads = threads;
  const char *level = device->target->level ? device->target->level : "";
  snprintf(device->name, sizeof device->name, "%s%s%s%s", device->target->name, level[0] ? " (" : "", level,
           level[0] ? ")" : "");
  *out_device = device;
  return RUNG_OK;
}

void rung_device_retain(rung_device *device) {
  if (device) atomic_fetch_add(&device->references, 1);
}

void rung_device_release(rung_device *device) {
  if (!device || atomic_fetch_sub(&device->references, 1) != 1) return;
  rung_host *host = device->host;
  device->backend->close(device->self);
  rung_tables_destroy(device->tables);
  rung_host_free(host, RUNG_MEMORY_host, device, sizeof *device);
  rung_host_release(host);
}

const char *rung_device_name(const rung_device *device) { return device ? device->name : ""; }
uint64_t rung_device_passes(const rung_device *device) { return device ? atomic_load(&device->passes) : 0; }
void rung_device_get_counters(const rung_device *device, rung_device_counters *out) {
  *out = (rung_device_counters){0};
  if (device && device->backend->counters) device->backend->counters(device->self, out);
}
int rung_device_threads(const rung_device *device) { return device ? device->threads : 0; }
rung_host *rung_device_host(const rung_device *device) { return device ? device->host : NULL; }
