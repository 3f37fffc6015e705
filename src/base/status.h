/* SPDX-License-Identifier: MIT
 * Filling error buffers. */
#ifndef RUNG_BASE_STATUS_H
#define RUNG_BASE_STATUS_H

#include <rung/status.h>
#include <stdarg.h>

#include "base/compiler.h"

/* Writes status and message into `error` (NULL: nothing to write to) and returns the status, so that a refusal is one
 * line: return rung_fail(error, RUNG_SHAPE_MISMATCH, "matmul %%%u: ...", ...). Never allocates; long text is cut at a
 * character boundary. */
rung_status rung_fail(rung_error *error, rung_status status, const char *format, ...) RUNG_PRINTF(3, 4);
rung_status rung_fail_v(rung_error *error, rung_status status, const char *format, va_list args) RUNG_PRINTF(3, 0);
/* Puts "where: " before the message that is there, for callers that know more about the place. Returns error's status.
 */
rung_status rung_fail_prefix(rung_error *error, rung_status status, const char *format, ...) RUNG_PRINTF(3, 4);

#endif
