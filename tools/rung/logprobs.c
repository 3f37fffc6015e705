/* SPDX-License-Identifier: MIT
 * Collecting log-probabilities. */
#include "logprobs.h"

#include <stdlib.h>
#include <string.h>

static bool grow(cli_logprobs *l) {
  if (l->count < l->capacity) return true;
  const size_t more = l->capacity ? 2 * l->capacity : 64;
  rung_log_probability *chosen = realloc(l->chosen, more * sizeof *chosen);
  if (chosen) l->chosen = chosen;
  rung_log_probability *best = realloc(l->best, more * (size_t)l->most * sizeof *best);
  if (best) l->best = best;
  int64_t *counts = realloc(l->best_count, more * sizeof *counts);
  if (counts) l->best_count = counts;
  if (!chosen || !best || !counts) return false;
  l->capacity = more;
  return true;
}

int cli_logprobs_add(const cli_session *s, cli_logprobs *l, rung_generator *g, const rung_token *token) {
  l->most = s->options->logprobs;
  if (!l->most) return CLI_OK;
  if (!grow(l)) return cli_refuse(s, CLI_NO_MEMORY, "out of memory for log-probabilities");
  const rung_log_probability *best;
  rung_log_probability *chosen = &l->chosen[l->count];
  chosen->id = token->id;
  const rung_status status =
      rung_generator_log_probabilities(g, token->slot, &chosen->value, &best, &l->best_count[l->count]);
  if (status) return cli_fail(s, CLI_ON_RUN, status, rung_generator_message(g));
  memcpy(l->best + l->count * (size_t)l->most, best, (size_t)l->best_count[l->count] * sizeof *best);
  l->count++;
  return CLI_OK;
}

static void print_one(const rung_log_probability *p, cli_json *json) {
  cli_json_integer(json, "id", p->id);
  cli_json_number(json, "logprob", p->value);
}

void cli_logprobs_print(const cli_logprobs *l, cli_json *json) {
  cli_json_open(json, "logprobs", '[');
  for (size_t i = 0; i < l->count; i++) {
    cli_json_open(json, NULL, '{');
    print_one(&l->chosen[i], json);
    cli_json_open(json, "top", '[');
    for (int64_t k = 0; k < l->best_count[i]; k++) {
      cli_json_open(json, NULL, '{');
      print_one(&l->best[i * (size_t)l->most + (size_t)k], json);
      cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_close(json, '}');
  }
  cli_json_close(json, ']');
}

void cli_logprobs_free(cli_logprobs *l) {
  free(l->chosen);
  free(l->best);
  free(l->best_count);
}
