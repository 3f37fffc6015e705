/* SPDX-License-Identifier: MIT
 * A device's tables of winners: one for each signature that was asked for, made then. */
#ifndef RUNG_RUNTIME_TUNE_TABLES_H
#define RUNG_RUNTIME_TUNE_TABLES_H

#include "plan/tune.h"
#include "runtime/tune/winners.h"

typedef struct rung_tables rung_tables;
/* The policy's folder is copied. `device`: what heads the tables. */
rung_status rung_tables_create(rung_host *host, const rung_tune_policy *policy, uint32_t most, const char *device,
                               rung_error *error, rung_tables **out_tables);
void rung_tables_destroy(rung_tables *tables); /* NULL allowed */
const rung_tune_policy *rung_tables_policy(const rung_tables *tables);
/* What backends ask; lives as long as the tables. A file that cannot be read is said to the log, once, and then there
 * are no winners. */
const rung_winner_source *rung_tables_source(const rung_tables *tables);
/* The table of a signature; lives as long as the tables. */
rung_status rung_tables_get(rung_tables *tables, const char *signature, rung_error *error, rung_winners **out_winners);
/* The index-th in the order of first use; false: there are no more. */
bool rung_tables_at(rung_tables *tables, size_t index, const char **out_signature, rung_winners **out_winners);

#endif
