/* SPDX-License-Identifier: MIT
 * How fast this machine reads memory, with the threads that a run uses. */
#ifndef RUNG_TOOLS_BANDWIDTH_H
#define RUNG_TOOLS_BANDWIDTH_H

#include "session.h"

/* Bytes per second: the best of several passes over a buffer larger than any cache; 0 where there is no memory for it.
 */
double cli_bandwidth(const cli_session *session, int threads);

#endif
