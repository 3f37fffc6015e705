/* SPDX-License-Identifier: MIT
 * The sampling that the flags ask for, for every command that generates. */
#ifndef RUNG_TOOLS_SAMPLING_H
#define RUNG_TOOLS_SAMPLING_H

#include "session.h"

/* --seed, or one of the clock. */
uint64_t cli_seed(const cli_options *options);
/* Sets the sampling of a slot. Prints what is wrong; returns an exit code. */
int cli_set_sampling(const cli_session *session, rung_generator *generator, int32_t slot, uint64_t seed);

#endif
