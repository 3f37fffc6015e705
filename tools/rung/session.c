/* SPDX-License-Identifier: MIT
 * Host, device, trace and messages of one command. */
#define _POSIX_C_SOURCE 200809L
#include "session.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"

double cli_seconds(void) { return (double)rung_trace_now() * 1e-9; }

uint64_t cli_total(const rung_memory *m) {
  uint64_t total = 0;
#define X(name, text) total += m->name;
  RUNG_MEMORY_MAP(X)
#undef X
  return total - m->host;
}

uint64_t cli_most(const rung_memory *m) {
  const uint64_t loading = m->weights + m->packed + m->load, running = cli_total(m) - m->load;
  return loading > running ? loading : running;
}

/* ---- messages */

int cli_exit_code(cli_phase phase, rung_status status) {
  switch (status) {
    case RUNG_OK:
      return CLI_OK;
    case RUNG_OUT_OF_MEMORY:
    case RUNG_OVER_BUDGET:
      return CLI_NO_MEMORY;
    case RUNG_UNSUPPORTED:
      return CLI_UNSUPPORTED;
    case RUNG_CANCELLED:
      return CLI_INTERRUPTED;
    case RUNG_CORRUPT_FILE:
      return CLI_BAD_FILE;
    case RUNG_INVALID_ARGUMENT:
    case RUNG_TYPE_MISMATCH:
    case RUNG_SHAPE_MISMATCH:
    case RUNG_OUT_OF_RANGE:
    case RUNG_NOT_FOUND:
    case RUNG_OVERFLOW:
    case RUNG_NOT_LOADED:
    case RUNG_IO:
      return phase == CLI_ON_FILE ? CLI_BAD_FILE : phase == CLI_ON_FLAGS ? CLI_USAGE : CLI_FAILED;
    default:
      return CLI_FAILED;
  }
}

static void clear_bar(void);

int cli_fail(const cli_session *s, cli_phase phase, rung_status status, const char *text) {
  if (!text) text = s->error.message;
  if (status == RUNG_CANCELLED || cli_interrupted()) return CLI_INTERRUPTED;
  return cli_refuse(s, cli_exit_code(phase, status), "%s", text && *text ? text : rung_status_text(status));
}

int cli_refuse(const cli_session *s, int code, const char *format, ...) {
  va_list args;
  clear_bar();
  fprintf(stderr, "rung %s: ", cli_commands[s->command].name);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, "\n");
  return code;
}

void cli_note(const cli_session *s, const char *format, ...) {
  if (s->options->quiet) return;
  va_list args;
  clear_bar();
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, "\n");
}

static void log_line(void *self, rung_log_level level, const char *text) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  (void)self;
  clear_bar();
  fprintf(stderr, "%s: %s\n", names[level], text);
}

/* ---- progress */

static atomic_bool bar_shown;
static _Atomic uint64_t bar_time;

static void clear_bar(void) {
  if (atomic_exchange(&bar_shown, false)) fprintf(stderr, "\r\033[K");
}

void cli_progress(const cli_session *s, const char *what, uint64_t done, uint64_t total) {
  enum { WIDTH = 30, EVERY_NS = 100 * 1000 * 1000 };
  if (s->options->quiet || !total || !isatty(STDERR_FILENO)) return;
  if (done >= total) {
    clear_bar();
    return;
  }
  const uint64_t now = rung_trace_now();
  uint64_t last = atomic_load(&bar_time);
  if (now - last < EVERY_NS || !atomic_compare_exchange_strong(&bar_time, &last, now)) return;
  static const char full[] = "##############################";
  const int filled = (int)((double)done / (double)total * WIDTH);
  atomic_store(&bar_shown, true);
  fprintf(stderr, "\r%-8s [%.*s%*s] %3.0f%%\033[K", what, filled, full, WIDTH - filled, "",
          100.0 * (double)done / (double)total);
}

static void on_progress(void *self, const char *what, uint64_t done, uint64_t total) {
  cli_progress(self, what, done, total);
}

/* ---- host and device */

rung_device *cli_device(const cli_session *s) { return s->device; }

rung_status cli_device_open(cli_session *s, int device, rung_device **out_device) {
  rung_device_options o = rung_device_options_default();
  o.threads = (int)s->options->threads;
  static const char *const names[] = {"cpu", "ref", "cuda"};
  static const rung_tune_profile profiles[] = {RUNG_TUNE_BALANCED, RUNG_TUNE_LATENCY, RUNG_TUNE_ACCURATE};
  rung_tune_policy tune = rung_tune_policy_default();
  if (s->command == CLI_TUNE) { /* elsewhere the environment says it */
    tune.folder = s->options->store;
    tune.profile = profiles[s->options->bound];
    o.tune = &tune;
  }
  return rung_device_create(s->host, names[device], &o, &s->error, out_device);
}

static int open_trace(cli_session *s) {
  const char *path = s->options->trace;
  const bool traced = cli_find_flag(s->command, "--trace") != NULL;
  if (!path && traced) path = getenv("RUNG_TRACE");
  if (!path || !*path) return CLI_OK;
  const rung_status status = rung_trace_open(s->host, path, &s->error, &s->trace);
  return status ? cli_refuse(s, CLI_FAILED, "%s", s->error.message) : CLI_OK;
}

static int open_store(cli_session *s) {
  const char *folder = s->options->store;
  if (s->command == CLI_TUNE) return CLI_OK; /* its folder is another */
  const bool stored = cli_find_flag(s->command, "--store") || cli_find_flag(s->command, "--dir");
  if (!folder && stored) folder = getenv("RUNG_STORE");
  if (!folder || !*folder) return CLI_OK;
  rung_store_options o = rung_store_options_default();
  if (s->command == CLI_CACHE) o.cap = 0; /* looking at a store changes nothing in it */
  const rung_status status = rung_store_open(s->host, folder, &o, &s->error, &s->store);
  return status ? cli_refuse(s, CLI_FAILED, "%s", s->error.message) : CLI_OK;
}

/* The library takes its cap of the instruction set from the environment only. */
static void cap_target(const cli_options *o) {
  static const char *const names[] = {"", "base", "avx2", "avx512", "neon"};
  if (o->target) setenv("RUNG_MAX_ISA", names[o->target], 1);
}

int cli_open(cli_session *s, cli_command_id command, const cli_options *options) {
  *s = (cli_session){.command = command, .options = options};
  rung_host_options o = rung_host_options_default();
  o.log = options->quiet ? NULL : log_line;
  o.log_level = options->verbose ? RUNG_LOG_DEBUG : RUNG_LOG_WARNING;
  o.progress = on_progress;
  o.progress_self = s;
  o.memory_budget = options->memory;
  cap_target(options);
  rung_status status = rung_host_create(&o, &s->error, &s->host);
  if (!status) status = cli_device_open(s, options->device, &s->device);
  if (status) return cli_fail(s, CLI_ON_FLAGS, status, NULL);
  const int code = open_trace(s);
  return code ? code : open_store(s);
}

int cli_close(cli_session *s, int code) {
  const rung_status status = rung_trace_close(s->trace, &s->error);
  if (status && !code) code = cli_refuse(s, CLI_FAILED, "%s", s->error.message);
  rung_store_release(s->store);
  rung_device_release(s->device);
  rung_host_release(s->host);
  clear_bar();
  if (cli_interrupted()) code = CLI_INTERRUPTED;
  return code;
}

rung_source cli_source(const cli_session *s) {
  rung_source source = rung_source_path(s->options->model);
  if (s->options->no_map) source.mode = RUNG_SOURCE_COPY;
  return source;
}

/* ---- models */

rung_compile_options cli_compile_options(const cli_options *options) {
  rung_compile_options o = rung_compile_options_default();
  o.quant = options->quant == CLI_QUANT_EXACT ? RUNG_QUANT_EXACT : RUNG_QUANT_FAST;
  static const char *const policy[] = {[CLI_PRECISION_F32] = "f32",
                                       [CLI_PRECISION_F16] = "f16",
                                       [CLI_PRECISION_BF16] = "bf16",
                                       [CLI_PRECISION_MIXED] = "mixed",
                                       [CLI_PRECISION_MIXED_F16] = "mixed-f16"};
  (void)!rung_precision_find(policy[options->precision], &o.precision);
  o.deterministic = options->deterministic;
  return o;
}

int cli_open_model(cli_session *s, rung_model **out_model, double *out_seconds) {
  const uint64_t start = rung_trace_now();
  rung_model_options o = rung_model_options_default();
  const rung_compile_options compile = cli_compile_options(s->options);
  o.quant = compile.quant;
  o.precision = compile.precision;
  o.deterministic = compile.deterministic;
  o.store = s->store;
  const rung_source source = cli_source(s);
  const rung_status status = rung_model_open(s->device, &source, &o, &s->error, out_model);
  if (status) return cli_fail(s, CLI_ON_FILE, status, NULL);
  const uint64_t end = rung_trace_now();
  rung_trace_phase(s->trace, "load", start, end);
  if (out_seconds) *out_seconds = (double)(end - start) * 1e-9;
  return CLI_OK;
}

rung_generate_options cli_generate_options(const cli_options *options) {
  rung_generate_options o = rung_generate_options_default();
  static const rung_type kv[] = {RUNG_TYPE_F16, RUNG_TYPE_F32, RUNG_TYPE_BF16, RUNG_TYPE_Q8_0};
  o.kv = kv[options->kv];
  o.context = options->context;
  if (options->ubatch) o.chunk = options->ubatch;
  return o;
}

void cli_may_shift(const cli_options *options, rung_generate_options *out) {
  out->shift = options->keep >= 0;
  if (out->shift) out->keep = options->keep;
}

int64_t cli_context(const cli_options *options, const rung_model *model, int64_t need) {
  enum { USUAL = 4096 };
  if (options->context) return options->context;
  rung_model_info info;
  rung_model_get_info(model, &info);
  const int64_t wanted = need > USUAL ? need : USUAL;
  return wanted < info.context ? wanted : info.context;
}

int cli_open_generator(cli_session *s, rung_model *model, const rung_generate_options *options,
                       rung_generator **out_generator, double *out_seconds) {
  const uint64_t start = rung_trace_now();
  rung_status status = rung_generator_create(model, options, &s->error, out_generator);
  if (status) return cli_fail(s, CLI_ON_FLAGS, status, NULL);
  const uint64_t end = rung_trace_now();
  rung_trace_phase(s->trace, "compile", start, end);
  if (out_seconds) *out_seconds = (double)(end - start) * 1e-9;
  rung_context *context = rung_generator_context(*out_generator);
  if (s->trace) {
    status = rung_trace_context(s->trace, context, "generator", &s->error);
    if (status) {
      rung_generator_destroy(*out_generator);
      return cli_fail(s, CLI_ON_RUN, status, NULL);
    }
  }
  cli_interrupt_target(context);
  return CLI_OK;
}

void cli_close_generator(rung_generator *generator) {
  cli_interrupt_target(NULL);
  rung_generator_destroy(generator);
}
