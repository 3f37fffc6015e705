/* SPDX-License-Identifier: MIT
 * Saving a sequence as a part of a larger file. */
#ifndef RUNG_RUNTIME_STATE_SAVE_H
#define RUNG_RUNTIME_STATE_SAVE_H

#include <rung/state.h>

#include "base/map_file.h"

/* As rung_state_save, into a file that is being written. */
rung_status rung_state_save_to(rung_state *state, int32_t slot, rung_writer *writer, rung_error *error);

#endif
