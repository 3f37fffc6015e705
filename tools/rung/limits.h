/* SPDX-License-Identifier: MIT
 * How fast this machine reads and multiplies, with the threads that a run uses. */
#ifndef RUNG_TOOLS_LIMITS_H
#define RUNG_TOOLS_LIMITS_H

#include "peaks.h"
#include "session.h"

/* Bytes per second: the best of several passes over a buffer of `bytes` (at most 512 MiB are taken). What is read again
 * and again and fits a cache comes from there, for the model as for the buffer. 0 where there is no memory for it. */
double cli_bandwidth(const cli_session *session, int threads, uint64_t bytes);

/* What loops that do nothing else reach, of f32 and of bytes. */
peak_rates cli_arithmetic(const cli_session *session, int threads);

/* Most resident memory of this process since the reset, in bytes. 0 where the system does not tell, or cannot begin anew. */
void cli_resident_reset(void);
uint64_t cli_resident_most(void);

#endif
