/* SPDX-License-Identifier: MIT
 * A ladder: ranges over one table of programs, and contexts for its own runs. */
#ifndef RUNG_RUNTIME_CACHE_LADDER_H
#define RUNG_RUNTIME_CACHE_LADDER_H

#include "runtime/cache/entries.h"

struct rung_ladder {
  rung_cache cache; /* keys: indices of rungs */
  rung_range *range;
  size_t rungs;
  char symbol[64];
  rung_binding *ceiling; /* of the other symbols, then of the symbol; names in `names` */
  size_t ceilings;
  char *names;
  size_t names_bytes;
  rung_context_options context;
};

/* The program of a rung, as rung_entries_get. `run`: counts a run; `own`: on a context of the ladder. */
typedef struct rung_climb {
  bool warm, run, own;
} rung_climb;
rung_status rung_ladder_program(rung_ladder *ladder, size_t rung, rung_climb how, rung_error *error,
                                rung_program **out_program, rung_entry **out_entry);

#endif
