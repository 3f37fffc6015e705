/* SPDX-License-Identifier: MIT
 * A generator inside: a context, a state, and what each sequence holds and still has to read. */
#ifndef RUNG_MODELS_GENERATOR_H
#define RUNG_MODELS_GENERATOR_H

#include "models/model.h"
#include "models/sample.h"

/* A growing list of ids, class host. */
typedef struct rung_id_list {
  int32_t *id;
  size_t count, capacity;
} rung_id_list;

typedef struct rung_sequence {
  rung_id_list pending; /* ids to read, from `read` on */
  size_t read;
  /* Ids of the positions that the state holds, as far as they are known (rung_slot_sync). The first `plain` positions are
   * as a fresh reading of these ids leaves them: what a shift has moved is not. */
  rung_id_list held;
  size_t plain;
  bool live;      /* takes part in steps */
  int32_t wanted; /* its row in the logits of the step being made, -1 if it reads on */
  rung_sampler sampler;
  rung_log_probability *best; /* of its last token, room for sampler.options.log_probabilities */
  int64_t best_room, best_count;
  double chosen;
  bool has_chosen;
} rung_sequence;

struct rung_generator {
  rung_host *host;
  rung_model *model;
  rung_template *template_;
  rung_program *program;
  rung_state *state;
  rung_context *context;
  rung_generate_options options;
  int64_t logits;
  int in_ids, in_wanted, in_sampling, out_logits, out_hidden, out_tokens; /* -1: the program has none */
  int32_t hidden_rows;                                                    /* of the last run */
  rung_sequence *sequence;
  rung_rows *rows; /* scratch of a step */
  int32_t *ids, *wanted;
  double *parameters; /* a row for each sequence */
  void *scratch;
  size_t scratch_bytes;
  uint64_t runs;
  const rung_tokenizer
      *tokenizer; /* the model's, which knows what ends a text; NULL: it has none, or before the first step */
  bool tokenizer_asked;
  /* ahead.c: a run is on its way, behind so many positions; tokens are fed to ids; the caller has the state and may look
   * at it at any time. */
  bool ahead, fed, exposed;
  uint64_t ahead_ticket;
  int64_t ahead_from;
  rung_error error;
};

/* generate.c: what comes out of the next run of `count` wanted rows: tokens, chosen with these rows of parameters, or logits
 * (NULL). */
rung_status rung_generator_ask(rung_generator *generator, const double *parameters, int32_t count);
/* ahead.c: begins the run behind the token that was given last, where that can be done; undoes it; takes its token. */
void rung_generator_look_ahead(rung_generator *generator);
void rung_generator_quiet(rung_generator *generator);
void rung_generator_unfeed(rung_generator *generator);
rung_status rung_generator_take_ahead(rung_generator *generator, int32_t *out_id);
/* Positions of a slot, without those of a run on its way. */
int64_t rung_generator_held(const rung_generator *generator, int32_t slot);

/* slots.c */
/* Forgets the last message, and a run that is on its way. */
rung_status rung_slot_check(rung_generator *generator, int32_t slot);
/* rung_generator_prompt without that. */
rung_status rung_slot_prompt(rung_generator *generator, int32_t slot, const int32_t *ids, size_t count);
rung_status rung_slot_init(rung_generator *generator, int32_t slot, rung_error *error);
void rung_slot_finish(rung_generator *generator, int32_t slot);
/* The state may have been changed by hand: positions that nobody told us of hold unknown ids (-1). Then room for `more`
 * ids; fails only for want of memory. */
rung_status rung_slot_sync(rung_generator *generator, int32_t slot, size_t more);
/* Ids that a run has read, after rung_slot_sync made room. */
void rung_slot_read(rung_generator *generator, int32_t slot, const int32_t *ids, size_t count);
/* Positions [keep, keep + count) were forgotten. */
void rung_slot_shifted(rung_generator *generator, int32_t slot, size_t keep, size_t count);
/* What the program chose for a slot, -1 for none. */
rung_status rung_slot_take(rung_generator *generator, int32_t slot, int32_t id);
rung_status rung_slot_pick(rung_generator *generator, int32_t slot, const float *logits, int32_t *out_id);

rung_status rung_slot_reserve(rung_generator *generator, rung_id_list *list, size_t count, rung_error *error);
rung_status rung_slot_check_ids(rung_generator *generator, const int32_t *ids, size_t count);

/* breakers.c: DRY's breakers from texts, which a vocabulary may cut in many ways. texts NULL: the usual ones. */
rung_status rung_breakers_of_texts(rung_model *model, const char *const *texts, size_t count, rung_error *error,
                                   rung_breakers *breakers);

#endif
