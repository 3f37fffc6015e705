/* SPDX-License-Identifier: MIT
 * What commands share: host and device, messages, progress, exit codes, interruption. */
#ifndef RUNG_TOOLS_SESSION_H
#define RUNG_TOOLS_SESSION_H

#include <rung/model.h>
#include <rung/store.h>
#include <rung/trace.h>
#include <rung/tune.h>

#include "base/compiler.h"
#include "table.h"

enum { CLI_MOST_PINS = 16 };
typedef struct cli_session {
  cli_command_id command;
  const cli_options *options;
  rung_host *host;
  rung_device *device;
  rung_trace *trace; /* NULL: none wanted */
  rung_store *store; /* of compiles; NULL: none wanted */
  rung_error error;
  char pinned[CLI_MOST_PINS][128]; /* inputs and symbols that an ONNX model was opened with; "" behind the last */
} cli_session;

/* What was being done when a status came: the same status of a file and of a flag are different exit codes. */
typedef enum cli_phase { CLI_ON_FLAGS, CLI_ON_FILE, CLI_ON_RUN } cli_phase;
int cli_exit_code(cli_phase phase, rung_status status);
/* Prints "rung COMMAND: message" and returns the exit code. With text NULL the message is session->error's. */
int cli_fail(const cli_session *session, cli_phase phase, rung_status status, const char *text);
/* The same for refusals of the tool's own. */
RUNG_PRINTF(3, 4) int cli_refuse(const cli_session *session, int code, const char *format, ...);
/* A line on standard error, unless -q. */
RUNG_PRINTF(2, 3) void cli_note(const cli_session *session, const char *format, ...);

/* Opens host, device and trace as the options say. Returns an exit code; close in any case. */
int cli_open(cli_session *session, cli_command_id command, const cli_options *options);
/* Returns the exit code of closing, or `code` if that is not 0. */
int cli_close(cli_session *session, int code);
rung_device *cli_device(const cli_session *session); /* borrowed */
rung_status cli_device_open(cli_session *session, int device, rung_device **out_device);
rung_source cli_source(const cli_session *session);

/* What --quant, --precision and --deterministic ask of a compile. */
rung_compile_options cli_compile_options(const cli_options *options);
/* A model, opened, and how long that took. Prints what went wrong; returns an exit code. */
int cli_open_model(cli_session *session, rung_model **out_model, double *out_seconds);
rung_generate_options cli_generate_options(const cli_options *options);
/* --keep, for commands that have it. */
void cli_may_shift(const cli_options *options, rung_generate_options *out);
/* -c; without it `need` positions, at least 4096, at most what the model was trained for. */
int64_t cli_context(const cli_options *options, const rung_model *model, int64_t need);
/* A generator for the options, traced and made the one that Ctrl-C ends. */
int cli_open_generator(cli_session *session, rung_model *model, const rung_generate_options *options,
                       rung_generator **out_generator, double *out_seconds);
void cli_close_generator(rung_generator *generator);

uint64_t cli_total(const rung_memory *memory); /* what the budget counts: all classes but host */
/* The most that is held at once: slices of packing are gone before anything runs. */
uint64_t cli_most(const rung_memory *memory);

/* ---- interruption: Ctrl-C sets a flag and cancels the run of this context; a second one ends the process */
void cli_interrupt_install(void);
void cli_interrupt_target(rung_context *context); /* NULL: none */
bool cli_interrupted(void);
void cli_interrupt_clear(void); /* as if it had not happened: the next Ctrl-C is a first one again */

/* A bar on standard error, if that is a terminal; done == total takes it away. */
void cli_progress(const cli_session *session, const char *what, uint64_t done, uint64_t total);
double cli_seconds(void);

#endif
