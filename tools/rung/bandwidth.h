/* SPDX-License-Identifier: MIT
 * How fast this machine reads, with the threads that a run uses. */
#ifndef RUNG_TOOLS_BANDWIDTH_H
#define RUNG_TOOLS_BANDWIDTH_H

#include "session.h"

/* Bytes per second: the best of several passes over a buffer of `bytes` (at most 512 MiB are taken). What is read again
 * and again and fits a cache comes from there, for the model as for the buffer. 0 where there is no memory for it. */
double cli_bandwidth(const cli_session *session, int threads, uint64_t bytes);

#endif
