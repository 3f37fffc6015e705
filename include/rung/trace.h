/* SPDX-License-Identifier: MIT
 * Traces: what ran when, in a file that Perfetto (ui.perfetto.dev) and chrome://tracing open.
 *
 * The file is a JSON array with one complete event a line and no need of its closing bracket: it can be opened after a
 * crash, with everything up to the last write (made every tenth of a second while events come). Safe to use from many
 * threads; contexts that nobody traces pay nothing. */
#ifndef RUNG_TRACE_H
#define RUNG_TRACE_H

#include <rung/program.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_trace rung_trace;

/* Begins the file, replacing one that is there. */
RUNG_API RUNG_CHECKED rung_status rung_trace_open(rung_host *host, const char *path, rung_error *error,
                                                  rung_trace **out_trace);
/* Ends the file; reports the first write that failed since it was opened. The trace is gone either way. No context may
 * be running under it; those that go on later must be given another listener first (rung_context_on_step, NULL). */
RUNG_API rung_status rung_trace_close(rung_trace *trace, rung_error *error);

/* Writes an event for every step that the context runs from now on: op as its name, kernel, label, bytes of the
 * operands, tasks. Each context gets a line of its own, called `name`. Replaces the context's listener. */
RUNG_API RUNG_CHECKED rung_status rung_trace_context(rung_trace *trace, rung_context *context, const char *name,
                                                     rung_error *error);

/* The clock of all events, in nanoseconds; for the call below. */
RUNG_API uint64_t rung_trace_now(void);
/* A phase of the caller's ("load", "compile"), on a line of its own. */
RUNG_API void rung_trace_phase(rung_trace *trace, const char *name, uint64_t start_ns,
                               uint64_t end_ns); /* trace NULL: nothing */

#ifdef __cplusplus
}
#endif
#endif
