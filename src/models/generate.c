/* SPDX-License-Identifier: MIT
 * Generators: a context, a state, and what each sequence still has to read. Every step is one ragged run. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "models/generator.h"

rung_generate_options rung_generate_options_default(void) {
  return (rung_generate_options){
      .size = sizeof(rung_generate_options), .sequences = 1, .chunk = 512, .kv = RUNG_TYPE_F16};
}

static rung_status check_options(const rung_model *m, rung_generate_options *o, rung_error *error) {
  if (o->size != sizeof *o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "generator: options.size is %zu, expected %zu", o->size, sizeof *o);
  if (o->sequences < 1 || o->sequences > RUNG_MAX_SEQUENCES)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "generator: %d sequences; 1..%d are possible", o->sequences,
                     RUNG_MAX_SEQUENCES);
  if (o->context < 0)
    return rung_fail(error, RUNG_INVALID_ARGUMENT,
                     "generator: a context of %" PRId64 " positions; at least 1 is needed", o->context);
  if (!o->context) o->context = m->config.context < 4096 ? m->config.context : 4096;
  if (o->chunk < 1)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "generator: a chunk of %" PRId64 " rows; at least 1 is needed",
                     o->chunk);
  if (o->chunk < o->sequences) o->chunk = o->sequences; /* every sequence must be able to go on in one run */
  if (o->chunk > RUNG_MAX_CHUNK)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "generator: a chunk of %" PRId64 " rows; at most %d", o->chunk,
                     RUNG_MAX_CHUNK);
  if (o->kv != RUNG_TYPE_F32 && o->kv != RUNG_TYPE_F16 && o->kv != RUNG_TYPE_BF16 && o->kv != RUNG_TYPE_Q8_0)
    return rung_fail(error, RUNG_UNSUPPORTED, "generator: keys and values as %s; f32, f16, bf16 and q8_0 are supported",
                     rung_type_name(o->kv));
  if (o->logits < 0 || o->logits > o->chunk)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "generator: logits of %" PRId64 " rows of %" PRId64, o->logits,
                     o->chunk);
  if (o->choose < RUNG_CHOOSE_AUTO || o->choose > RUNG_CHOOSE_DEVICE)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "generator: choose is %d", (int)o->choose);
  if (o->keep < 0 || (o->shift && o->keep >= o->context))
    return rung_fail(error, RUNG_INVALID_ARGUMENT,
                     "generator: %" PRId64 " positions to keep of a context of %" PRId64
                     ", which needs at least %" PRId64,
                     o->keep, o->context,
                     o->keep < 0           ? 1
                     : o->keep < INT64_MAX ? o->keep + 1
                                           : o->keep);
  return RUNG_OK;
}

static rung_status make_state(rung_generator *g, rung_error *error) {
  const rung_generate_options *o = &g->options;
  rung_state_options so = rung_state_options_default();
  so.sequences = o->sequences;
  so.capacity = o->context;
  so.chunk = o->chunk;
  so.blocks = o->blocks;
  RUNG_TRY(rung_state_create(g->template_, &so, error, &g->state));
  if (o->shift) RUNG_TRY(rung_state_shift(g->state, 0, 0, 0, error)); /* nothing: could it? */
  rung_context_options co = rung_context_options_default();
  co.threads = o->threads;
  RUNG_TRY(rung_context_create(g->template_, g->model->view, g->state, &co, error, &g->context));
  const rung_status status = rung_context_use(g->context, g->program);
  return status ? rung_fail(error, status, "%s", rung_context_message(g->context)) : RUNG_OK;
}

static rung_status make_sequences(rung_generator *g, rung_error *error) {
  const size_t n = (size_t)g->options.sequences;
  g->sequence = rung_host_array(g->host, n, sizeof *g->sequence);
  g->rows = rung_host_array(g->host, n, sizeof *g->rows);
  g->ids = rung_host_array(g->host, (size_t)g->options.chunk, sizeof *g->ids);
  g->wanted = rung_host_array(g->host, n, sizeof *g->wanted);
  g->parameters = rung_host_array(g->host, n * RUNG_SAMPLE_COLUMNS, sizeof *g->parameters);
  if (!g->sequence || !g->rows || !g->ids || !g->wanted || !g->parameters)
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "generator: out of memory");
  for (int32_t i = 0; i < g->options.sequences; i++) RUNG_TRY(rung_slot_init(g, i, error));
  return RUNG_OK;
}

static rung_status fill(rung_generator *g, rung_error *error) {
  const rung_generate_options *o = &g->options;
  const int64_t long_above = g->model->config.rope.long_above;
  const rung_compile_key key = {.kv = o->kv,
                                .hidden = o->hidden,
                                .tokens = rung_model_chooses(g->model, o->choose),
                                .long_context = long_above && o->context > long_above,
                                .threads = o->threads};
  RUNG_TRY(rung_model_template(g->model, &key, error, &g->template_));
  g->logits = o->logits ? o->logits : o->sequences;
  RUNG_TRY(rung_model_program(g->model, g->template_, o->chunk, o->sequences, g->logits, error, &g->program));
  g->in_ids = rung_program_find_input(g->program, "ids");
  g->in_wanted = rung_program_find_input(g->program, "wanted");
  g->out_logits = rung_program_find_output(g->program, "logits");
  g->out_hidden = o->hidden ? rung_program_find_output(g->program, "hidden") : -1;
  g->in_sampling = rung_program_find_input(g->program, "sampling");
  g->out_tokens = rung_program_find_output(g->program, "tokens");
  RUNG_TRY(make_state(g, error));
  return make_sequences(g, error);
}

rung_status rung_generator_create(rung_model *model, const rung_generate_options *options, rung_error *error,
                                  rung_generator **out_generator) {
  if (!model || !out_generator)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "generator: model and out_generator are required");
  rung_generate_options o = options ? *options : rung_generate_options_default();
  RUNG_TRY(check_options(model, &o, error));
  rung_generator *g = rung_host_alloc(model->host, RUNG_MEMORY_host, sizeof *g, 0);
  if (!g) return rung_fail(error, RUNG_OUT_OF_MEMORY, "generator: out of memory");
  rung_host_retain(model->host);
  rung_model_retain(model);
  g->host = model->host;
  g->model = model;
  g->options = o;
  const rung_status status = fill(g, error);
  if (status) {
    rung_generator_destroy(g);
    return status;
  }
  *out_generator = g;
  return RUNG_OK;
}

void rung_generator_destroy(rung_generator *g) {
  if (!g) return;
  const size_t n = (size_t)g->options.sequences;
  for (int32_t i = 0; g->sequence && i < g->options.sequences; i++) rung_slot_finish(g, i);
  rung_host_free(g->host, RUNG_MEMORY_host, g->sequence, n * sizeof *g->sequence);
  rung_host_free(g->host, RUNG_MEMORY_host, g->rows, n * sizeof *g->rows);
  rung_host_free(g->host, RUNG_MEMORY_host, g->ids, (size_t)g->options.chunk * sizeof *g->ids);
  rung_host_free(g->host, RUNG_MEMORY_host, g->wanted, n * sizeof *g->wanted);
  rung_host_free(g->host, RUNG_MEMORY_host, g->parameters, n * RUNG_SAMPLE_COLUMNS * sizeof *g->parameters);
  rung_host_free(g->host, RUNG_MEMORY_host, g->scratch, g->scratch_bytes);
  rung_context_destroy(g->context);
  rung_state_release(g->state);
  rung_model_program_done(g->model, g->program);
  rung_template_release(g->template_);
  rung_model_release(g->model);
  rung_host *host = g->host;
  rung_host_free(host, RUNG_MEMORY_host, g, sizeof *g);
  rung_host_release(host);
}

const char *rung_generator_message(const rung_generator *g) { return g ? g->error.message : ""; }
uint64_t rung_generator_runs(const rung_generator *g) { return g ? g->runs : 0; }
rung_context *rung_generator_context(rung_generator *g) { return g ? g->context : NULL; }
rung_state *rung_generator_state(rung_generator *g) {
  if (!g) return NULL;
  rung_generator_quiet(g);
  g->exposed = true;
  return g->state;
}
const rung_program *rung_generator_program(const rung_generator *g) { return g ? g->program : NULL; }
int64_t rung_generator_length(const rung_generator *g, int32_t slot) { return g ? rung_generator_held(g, slot) : 0; }

/* The graph's gathers would take negative indices as counted from the end; no caller means that. */
static rung_status check_run(rung_generator *g, const rung_rows *rows, int32_t count, const int32_t *ids,
                             const int32_t *wanted, int32_t wanted_count, int64_t *out_total) {
  int64_t total = 0;
  if (count < 0 || (count && !rows) || wanted_count < 0 || (wanted_count && !wanted))
    return rung_fail(&g->error, RUNG_INVALID_ARGUMENT, "run: %d sequences, %d rows wanted", count, wanted_count);
  for (int32_t i = 0; i < count; i++) {
    if (rows[i].count < 0)
      return rung_fail(&g->error, RUNG_INVALID_ARGUMENT, "run: entry %d has %d rows", i, rows[i].count);
    total += rows[i].count;
  }
  if (total > g->options.chunk)
    return rung_fail(&g->error, RUNG_OUT_OF_RANGE, "run: %" PRId64 " rows, the chunk is %" PRId64, total,
                     g->options.chunk);
  if (wanted_count > g->logits)
    return rung_fail(&g->error, RUNG_OUT_OF_RANGE, "run: %d rows wanted, at most %" PRId64, wanted_count, g->logits);
  if (total && !ids) return rung_fail(&g->error, RUNG_INVALID_ARGUMENT, "run: no ids");
  for (int64_t i = 0; i < total; i++)
    if (ids[i] < 0 || ids[i] >= g->model->config.vocabulary)
      return rung_fail(&g->error, RUNG_OUT_OF_RANGE, "run: id %" PRId64 " is %d, the vocabulary has %" PRId64, i,
                       ids[i], g->model->config.vocabulary);
  for (int32_t i = 0; i < wanted_count; i++)
    if (wanted[i] < 0 || wanted[i] >= total)
      return rung_fail(&g->error, RUNG_OUT_OF_RANGE, "run: row %d is wanted of %" PRId64, wanted[i], total);
  *out_total = total;
  return RUNG_OK;
}

rung_status rung_generator_ask(rung_generator *g, const double *parameters, int32_t count) {
  double *to;
  void *in;
  if (g->out_tokens < 0) return RUNG_OK;
  if (!parameters) rung_generator_unfeed(g); /* tokens need not be chosen then */
  RUNG_TRY(rung_context_want_output(g->context, g->out_logits, !parameters));
  RUNG_TRY(rung_context_want_output(g->context, g->out_tokens, parameters != NULL));
  RUNG_TRY(rung_context_input(g->context, g->in_sampling, (int64_t[]){count, RUNG_SAMPLE_COLUMNS}, &in));
  const size_t n = (size_t)count * RUNG_SAMPLE_COLUMNS;
  to = in;
  for (size_t i = 0; i < n; i++) to[i] = parameters ? parameters[i] : 0;
  return RUNG_OK;
}

/* What is wanted of a run: the ids of rows, in their order, and how they are chosen if the program does it. */
typedef struct request {
  const rung_rows *rows;
  const int32_t *ids, *wanted;
  int32_t count, wanted_count;
  const double *parameters;
} request;

static rung_status run(rung_generator *g, const request *r, const void **out_data) {
  const rung_rows *rows = r->rows;
  const int32_t count = r->count, *ids = r->ids, *wanted = r->wanted, wanted_count = r->wanted_count;
  int64_t total;
  RUNG_TRY(check_run(g, rows, count, ids, wanted, wanted_count, &total));
  for (int32_t i = 0; i < count; i++)
    if (rows[i].slot >= 0 && rows[i].slot < g->options.sequences)
      RUNG_TRY(rung_slot_sync(g, rows[i].slot, (size_t)rows[i].count));
  void *in;
  rung_status status = rung_context_set_rows(g->context, rows, count);
  if (!status) status = rung_context_input(g->context, g->in_ids, &total, &in);
  if (!status && total) memcpy(in, ids, (size_t)total * sizeof *ids);
  if (!status) status = rung_context_input(g->context, g->in_wanted, (int64_t[]){wanted_count}, &in);
  if (!status && wanted_count) memcpy(in, wanted, (size_t)wanted_count * sizeof *wanted);
  if (!status) status = rung_generator_ask(g, r->parameters, wanted_count);
  if (!status) status = rung_context_run(g->context);
  g->runs++;
  g->hidden_rows = status ? 0 : wanted_count;
  rung_tensor made = {0};
  if (!status && wanted_count)
    status = rung_context_output(g->context, r->parameters ? g->out_tokens : g->out_logits, &made);
  if (status) return rung_fail(&g->error, status, "%s", rung_context_message(g->context));
  for (int32_t i = 0; i < count; ids += rows[i++].count) rung_slot_read(g, rows[i].slot, ids, (size_t)rows[i].count);
  *out_data = made.data;
  return RUNG_OK;
}

rung_status rung_generator_run(rung_generator *g, const rung_rows *rows, int32_t count, const int32_t *ids,
                               const int32_t *wanted, int32_t wanted_count, const float **out_logits) {
  if (!g) return RUNG_INVALID_ARGUMENT;
  rung_generator_quiet(g);
  g->error = (rung_error){0};
  const request r = {.rows = rows, .ids = ids, .wanted = wanted, .count = count, .wanted_count = wanted_count};
  const void *logits;
  RUNG_TRY(run(g, &r, &logits));
  if (out_logits) *out_logits = logits;
  return RUNG_OK;
}

rung_status rung_generator_hidden(rung_generator *g, const float **out_rows, int32_t *out_count) {
  if (!g || !out_rows || !out_count) return RUNG_INVALID_ARGUMENT;
  g->error = (rung_error){0};
  if (!g->options.hidden)
    return rung_fail(&g->error, RUNG_UNSUPPORTED, "hidden states: the generator was made without options.hidden");
  rung_tensor hidden = {0};
  if (g->hidden_rows) {
    const rung_status status = rung_context_output(g->context, g->out_hidden, &hidden);
    if (status) return rung_fail(&g->error, status, "%s", rung_context_message(g->context));
  }
  *out_rows = hidden.data;
  *out_count = g->hidden_rows;
  return RUNG_OK;
}

/* How many more positions a slot can get: where it shifts, all but those kept can go. */
static int64_t room_of(const rung_generator *g, int32_t slot) {
  const int64_t length = rung_state_length(g->state, slot), context = g->options.context, keep = g->options.keep;
  return g->options.shift && length > keep ? context - keep : context - length;
}

/* Forgets half of what can go, so that it is seldom done, or as much as windows allow. */
static rung_status make_room(rung_generator *g, int32_t slot, int64_t rows) {
  const int64_t keep = g->options.keep, length = rung_state_length(g->state, slot),
                missing = length + rows - g->options.context;
  if (missing <= 0 || !g->options.shift) return RUNG_OK;
  RUNG_TRY(rung_slot_sync(g, slot, 0));
  int64_t count = (g->options.context - keep) / 2;
  if (count > length - keep) count = length - keep;
  if (count < missing) count = missing;
  for (;; count = missing + (count - missing) / 2) {
    const rung_status status = rung_state_shift(g->state, slot, keep, count, &g->error);
    if (!status) rung_slot_shifted(g, slot, (size_t)keep, (size_t)count);
    if (status != RUNG_UNSUPPORTED || count == missing) return status;
  }
}

/* What each live slot puts into the next run: those that go on come first with one id each, so that long prompts never
 * make them wait; the rest of the chunk is shared by those that read. A slot's last id waits for a run that has room
 * for its logits; where there are fewer of these than slots, each run begins with another slot, so that none waits
 * forever. */
static rung_status gather_rows(rung_generator *g, int32_t *out_rows, int32_t *out_wanted) {
  const int32_t sequences = g->options.sequences,
                turn = g->logits < sequences ? (int32_t)(g->runs % (uint64_t)sequences) : 0;
  int64_t room = g->options.chunk;
  int32_t n = 0, wanted = 0, row = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t k = 0; k < sequences; k++) {
      const int32_t i = (k + turn) % sequences;
      rung_sequence *s = &g->sequence[i];
      const size_t left = s->pending.count - s->read;
      if (!s->live || !left || (left == 1) != (pass == 0)) continue;
      int64_t take = (int64_t)left < room ? (int64_t)left : room;
      if (take > room_of(g, i)) take = room_of(g, i);
      if (take == (int64_t)left && wanted == g->logits) take--;
      s->wanted = -1;
      if (!take) continue;
      RUNG_TRY(make_room(g, i, take));
      g->rows[n++] = (rung_rows){i, (int32_t)take};
      memcpy(g->ids + row, s->pending.id + s->read, (size_t)take * sizeof *g->ids);
      row += (int32_t)take;
      room -= take;
      if ((size_t)take == left) {
        s->wanted = wanted;
        g->wanted[wanted++] = row - 1;
      }
    }
  }
  *out_rows = n;
  *out_wanted = wanted;
  return RUNG_OK;
}

/* Once, before anything is read. Models may have no tokeniser, or one that is not supported: ids go on without an end. */
static rung_status ask_for_tokenizer(rung_generator *g) {
  if (g->tokenizer_asked) return RUNG_OK;
  const rung_status status = rung_model_tokenizer(g->model, &g->error, &g->tokenizer);
  if (status && status != RUNG_NOT_FOUND && status != RUNG_UNSUPPORTED) return status;
  g->error = (rung_error){0};
  g->tokenizer_asked = true;
  return RUNG_OK;
}

/* A token that was chosen for a slot becomes what it reads next. */
static rung_status give_token(rung_generator *g, int32_t slot, int32_t id, rung_token *out) {
  rung_sequence *s = &g->sequence[slot];
  *out = (rung_token){.slot = slot, .id = id, .end = g->tokenizer && rung_tokenizer_is_eog(g->tokenizer, id)};
  if (out->end || (rung_generator_held(g, slot) >= g->options.context && !g->options.shift)) {
    s->live = false; /* the last slot of the context is used: the token is given, nothing follows it */
    return RUNG_OK;
  }
  return rung_slot_prompt(g, slot, &id, 1);
}

/* What a run gave for the rows that tokens are chosen from: one of the two. */
typedef struct given {
  const float *logits;
  const int32_t *tokens;
} given;

static rung_status take_token(rung_generator *g, int32_t slot, const given *from, rung_token *out) {
  rung_sequence *s = &g->sequence[slot];
  int32_t id = from->tokens ? from->tokens[s->wanted] : -1;
  const rung_status status =
      from->tokens ? rung_slot_take(g, slot, id)
                   : rung_slot_pick(g, slot, from->logits + (int64_t)s->wanted * g->model->config.vocabulary, &id);
  if (status) {
    s->live = false;
    return status;
  }
  return give_token(g, slot, id, out);
}

/* A slot whose token cannot be chosen does not take the others' away: the first such message is kept. */
static rung_status take_tokens(rung_generator *g, int32_t n, const given *from, rung_token *tokens, size_t *out_count) {
  rung_status first = RUNG_OK;
  rung_error error = {0};
  for (int32_t i = 0; i < n; i++) {
    const int32_t slot = g->rows[i].slot;
    if (g->sequence[slot].wanted < 0) continue;
    const rung_status status = take_token(g, slot, from, &tokens[*out_count]);
    *out_count += status == RUNG_OK;
    if (!status || first) continue;
    first = status;
    error = g->error;
  }
  if (first) g->error = error;
  return first;
}

/* Can the program choose for every slot whose token comes out of the run? Then their parameters are laid out. */
static bool can_choose(rung_generator *g, int32_t n) {
  if (g->out_tokens < 0) return false;
  for (int32_t i = 0; i < n; i++) {
    const rung_sequence *s = &g->sequence[g->rows[i].slot];
    if (s->wanted < 0) continue;
    if (!rung_sampler_is_plain(&s->sampler)) return false;
    rung_sampler_parameters(&s->sampler, g->parameters + (int64_t)s->wanted * RUNG_SAMPLE_COLUMNS);
  }
  return true;
}

/* The step that was begun by the one before it. */
static rung_status step_ahead(rung_generator *g, rung_token *tokens, size_t *out_count) {
  rung_sequence *s = &g->sequence[0];
  int32_t id;
  RUNG_TRY(rung_generator_take_ahead(g, &id));
  rung_status status = rung_slot_take(g, 0, id);
  if (status)
    s->live = false;
  else
    status = give_token(g, 0, id, &tokens[0]);
  *out_count = !status;
  if (status || !s->live) {
    const rung_error error = g->error;
    rung_generator_quiet(g);
    g->error = error;
  }
  return status;
}

rung_status rung_generator_step(rung_generator *g, rung_token *tokens, size_t *out_count, bool *out_busy) {
  if (!g || !tokens || !out_count) return RUNG_INVALID_ARGUMENT;
  int32_t wanted, n;
  *out_count = 0;
  if (out_busy) *out_busy = false;
  g->error = (rung_error){0};
  RUNG_TRY(ask_for_tokenizer(g));
  if (g->ahead) {
    const rung_status status = step_ahead(g, tokens, out_count);
    if (!status) rung_generator_look_ahead(g);
    if (out_busy) *out_busy = g->sequence[0].live;
    return status;
  }
  RUNG_TRY(gather_rows(g, &n, &wanted));
  if (!n) return RUNG_OK;
  const bool chosen = can_choose(g, n);
  const request r = {.rows = g->rows,
                     .ids = g->ids,
                     .wanted = g->wanted,
                     .count = n,
                     .wanted_count = wanted,
                     .parameters = chosen ? g->parameters : NULL};
  const void *made;
  RUNG_TRY(run(g, &r, &made));
  const given from = {.logits = chosen ? NULL : made, .tokens = chosen ? made : NULL};
  for (int32_t i = 0; i < n; i++) g->sequence[g->rows[i].slot].read += (size_t)g->rows[i].count;
  const rung_status status = take_tokens(g, n, &from, tokens, out_count);
  if (!status && chosen) rung_generator_look_ahead(g);
  for (int32_t i = 0; out_busy && i < g->options.sequences; i++) *out_busy |= g->sequence[i].live;
  return status;
}

rung_status rung_generator_memory(const rung_generator *g, int64_t rows, int64_t length, rung_error *error,
                                  rung_memory *out_memory) {
  if (!g || !out_memory || length < 0) return rung_fail(error, RUNG_INVALID_ARGUMENT, "memory: an argument is missing");
  const int32_t n = g->options.sequences;
  int64_t *lengths = rung_host_array(g->host, (size_t)n, sizeof *lengths);
  if (!lengths) return rung_fail(error, RUNG_OUT_OF_MEMORY, "memory: out of memory");
  for (int32_t i = 0; i < n; i++) lengths[i] = length;
  const rung_lengths l = {n, lengths, g->options.context, g->options.chunk, g->options.blocks};
  const rung_binding binding[] = {{"rows", rows}, {"sequences", n}, {"wanted", g->logits < rows ? g->logits : rows}};
  const rung_status status = rung_program_memory(g->program, binding, RUNG_COUNT(binding), &l, error, out_memory);
  rung_host_free(g->host, RUNG_MEMORY_host, lengths, (size_t)n * sizeof *lengths);
  return status;
}
