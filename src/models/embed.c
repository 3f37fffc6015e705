/* SPDX-License-Identifier: MIT
 * Encoders: a graph that ends in one vector per sequence, and runs filled with texts up to a budget of rows. */
#include <inttypes.h>
#include <string.h>

#include "models/encoding.h"
#include "models/model.h"

struct rung_encoder {
  rung_host *host;
  rung_model *model;
  rung_template *template_;
  rung_program *program;
  rung_context *context;
  rung_encoder_options options; /* resolved: no field says "as the model" any more */
  int in_ids, in_offsets, out_vectors;
  uint64_t runs;
  rung_error error;
};

rung_encoder_options rung_encoder_options_default(void) {
  return (rung_encoder_options){.size = sizeof(rung_encoder_options), .rows = 1024};
}

/* ---- graph */

static rung_value pool(rung_graph *g, rung_pooling pooling, rung_value x, rung_value offsets) {
  const rung_pool_ragged_attrs attrs = {.mode = pooling == RUNG_POOLING_FIRST  ? RUNG_POOL_FIRST
                                                : pooling == RUNG_POOLING_LAST ? RUNG_POOL_LAST
                                                : pooling == RUNG_POOLING_MAX  ? RUNG_POOL_MAX
                                                                               : RUNG_POOL_MEAN};
  return rung_graph_op(g, &rung_op_pool_ragged, (rung_value[]){x, offsets}, 2, &attrs);
}

rung_status rung_encoder_graph(const rung_model *m, const rung_compile_key *key, rung_error *error,
                               rung_graph **out_graph) {
  rung_graph *g;
  RUNG_TRY(rung_graph_create(m->host, error, &g));
  const rung_dim rows = rung_graph_symbol(g, "rows", 0, RUNG_MAX_CHUNK);
  const rung_dim sequences = rung_graph_symbol(g, "sequences", 0, RUNG_MAX_SEQUENCES);
  const rung_dim ends = rung_graph_dim(g, RUNG_DIM_ADD, sequences, rung_graph_constant_dim(g, 1));
  rung_builder b = {.graph = g, .weights = m->weights, .config = &m->config, .rows = rows};
  const rung_value ids = rung_graph_input(g, "ids", RUNG_TYPE_I32, 1, &rows);
  b.offsets = rung_graph_input(g, "offsets", RUNG_TYPE_I32, 1, &ends);
  const rung_positions_attrs positions = {.rows = rows};
  b.positions = rung_graph_op(g, &rung_op_positions, &b.offsets, 1, &positions);
  const rung_value hidden = m->family->build(&b, ids);
  rung_graph_label(g, "pooling");
  rung_value y = pool(g, key->pooling, hidden, b.offsets);
  if (key->dims && key->dims < m->config.width) {
    const rung_dim zero = rung_graph_constant_dim(g, 0), dims = rung_graph_constant_dim(g, key->dims);
    y = rung_build_slice(g, y, 1, zero, dims);
  }
  if (key->unit_length == RUNG_UNIT_LENGTH_ON) {
    const rung_value length = rung_build_reduce(g, &rung_op_reduce_l2, y, (const int64_t[]){1}, 1, true);
    /* f16 has no 1e-12: a length that is kept so is held against the smallest of its normal numbers. */
    const rung_precision *kept = &m->options.precision;
    const bool f16 = kept->reduction == RUNG_TYPE_F16 || kept->elementwise == RUNG_TYPE_F16;
    const rung_value least = rung_build_scalar(g, RUNG_TYPE_F32, f16 ? 0x1p-14 : 1e-12);
    y = rung_build_div(g, y, rung_build_max(g, length, least));
  }
  rung_graph_output(g, "vectors", y);
  if (rung_graph_status(g)) {
    const rung_status status = rung_fail(error, rung_graph_status(g), "%s", rung_graph_message(g));
    rung_graph_destroy(g);
    return status;
  }
  *out_graph = g;
  return RUNG_OK;
}

/* ---- making one */

/* Fields that say "as the model" get what it says. */
static rung_status resolve(const rung_model *m, rung_encoder_options *o, rung_error *error) {
  const rung_encoding *e = &m->encoding;
  if (o->size != sizeof *o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "encoder: options.size is %zu, expected %zu", o->size, sizeof *o);
  if (!m->family->encoder)
    return rung_fail(error, RUNG_UNSUPPORTED, "encoder: architecture %s makes text; vectors come from encoders",
                     m->family->architecture);
  if ((unsigned)o->pooling > RUNG_POOLING_MAX || (unsigned)o->unit_length > RUNG_UNIT_LENGTH_OFF)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "encoder: pooling %d, unit_length %d", (int)o->pooling,
                     (int)o->unit_length);
  if (o->pooling == RUNG_POOLING_MODEL) o->pooling = e->pooling;
  if (o->pooling == RUNG_POOLING_MODEL)
    return rung_fail(error, RUNG_UNSUPPORTED,
                     "encoder: the model's folder has no modules.json that says how rows are pooled; give a pooling");
  if (o->unit_length == RUNG_UNIT_LENGTH_MODEL)
    o->unit_length = e->normalize ? RUNG_UNIT_LENGTH_ON : RUNG_UNIT_LENGTH_OFF;
  const int64_t positions = m->config.context;
  if (o->longest < 0 || o->longest > positions)
    return rung_fail(error, RUNG_OUT_OF_RANGE,
                     "encoder: texts of %" PRId64 " tokens; the model has %" PRId64 " positions", o->longest,
                     positions);
  if (!o->longest) o->longest = e->longest && e->longest < positions ? e->longest : positions;
  if (o->dims < 0 || o->dims > m->config.width)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "encoder: vectors of %" PRId64 " numbers; the model has %" PRId64,
                     o->dims, m->config.width);
  if (!o->dims) o->dims = m->config.width;
  const int64_t least = o->rows < 1 || o->rows > o->longest ? o->rows : o->longest;
  if (least < 1 || least > RUNG_MAX_CHUNK)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "encoder: runs of %" PRId64 " tokens; 1..%d are possible", least,
                     RUNG_MAX_CHUNK);
  o->rows = least;
  return RUNG_OK;
}

static rung_status template_of(rung_model *m, const rung_encoder_options *o, rung_error *error,
                               rung_template **out_template) {
  const rung_compile_key key = {
      .encoder = true, .pooling = o->pooling, .unit_length = o->unit_length, .dims = o->dims, .threads = o->threads};
  return rung_model_template(m, &key, error, out_template);
}

rung_status rung_encoder_compile(rung_model *model, const rung_encoder_options *options, rung_error *error,
                                 rung_template **out_template, rung_program **out_program) {
  if (!model || !out_template || !out_program)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "encoder: an argument is missing");
  rung_encoder_options o = options ? *options : rung_encoder_options_default();
  rung_template *template_;
  RUNG_TRY(resolve(model, &o, error));
  RUNG_TRY(template_of(model, &o, error, &template_));
  const rung_binding ceiling[] = {{"rows", o.rows}, {"sequences", o.rows}};
  const rung_status status = rung_program_create(template_, ceiling, RUNG_COUNT(ceiling), error, out_program);
  if (status)
    rung_template_release(template_);
  else
    *out_template = template_;
  return status;
}

static rung_status fill(rung_encoder *e, rung_error *error) {
  const rung_encoder_options *o = &e->options;
  RUNG_TRY(template_of(e->model, o, error, &e->template_));
  RUNG_TRY(rung_model_program(e->model, e->template_, o->rows, o->rows, 0, error, &e->program));
  e->in_ids = rung_program_find_input(e->program, "ids");
  e->in_offsets = rung_program_find_input(e->program, "offsets");
  e->out_vectors = rung_program_find_output(e->program, "vectors");
  rung_context_options co = rung_context_options_default();
  co.threads = e->options.threads;
  RUNG_TRY(rung_context_create(e->template_, e->model->view, NULL, &co, error, &e->context));
  const rung_status status = rung_context_use(e->context, e->program);
  return status ? rung_fail(error, status, "%s", rung_context_message(e->context)) : RUNG_OK;
}

rung_status rung_encoder_create(rung_model *model, const rung_encoder_options *options, rung_error *error,
                                rung_encoder **out_encoder) {
  if (!model || !out_encoder)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "encoder: model and out_encoder are required");
  rung_encoder_options o = options ? *options : rung_encoder_options_default();
  RUNG_TRY(resolve(model, &o, error));
  rung_encoder *e = rung_host_alloc(model->host, RUNG_MEMORY_host, sizeof *e, 0);
  if (!e) return rung_fail(error, RUNG_OUT_OF_MEMORY, "encoder: out of memory");
  rung_host_retain(model->host);
  rung_model_retain(model);
  e->host = model->host;
  e->model = model;
  e->options = o;
  const rung_status status = fill(e, error);
  if (status) {
    rung_encoder_destroy(e);
    return status;
  }
  *out_encoder = e;
  return RUNG_OK;
}

void rung_encoder_destroy(rung_encoder *e) {
  if (!e) return;
  rung_context_destroy(e->context);
  rung_model_program_done(e->model, e->program);
  rung_template_release(e->template_);
  rung_model_release(e->model);
  rung_host *host = e->host;
  rung_host_free(host, RUNG_MEMORY_host, e, sizeof *e);
  rung_host_release(host);
}

const char *rung_encoder_message(const rung_encoder *e) { return e ? e->error.message : ""; }
rung_context *rung_encoder_context(rung_encoder *e) { return e ? e->context : NULL; }
const rung_program *rung_encoder_program(const rung_encoder *e) { return e ? e->program : NULL; }
uint64_t rung_encoder_runs(const rung_encoder *e) { return e ? e->runs : 0; }

void rung_encoder_get_info(const rung_encoder *e, rung_encoder_info *out) {
  const rung_encoder_options *o = &e->options;
  *out = (rung_encoder_info){.dims = o->dims,
                             .longest = o->longest,
                             .rows = o->rows,
                             .pooling = o->pooling,
                             .unit_length = o->unit_length == RUNG_UNIT_LENGTH_ON};
}

/* ---- texts */

/* Cuts to `room` ids; the special tokens that stand behind the text, as they stand behind an empty one, stay. */
static rung_status cut(rung_encoder *e, int32_t *ids, size_t count, size_t room) {
  int32_t *bare;
  size_t special, behind = 0;
  RUNG_TRY(rung_model_encode(e->model, "", 0, RUNG_TEXT_ADD_SPECIAL, &e->error, &bare, &special));
  while (behind < special && bare[special - 1 - behind] == ids[count - 1 - behind]) behind++;
  if (behind == special && special > 1) behind = special - 1; /* the first one stands in front */
  rung_ids_free(e->model, bare, special);
  if (special > room)
    return rung_fail(&e->error, RUNG_OUT_OF_RANGE, "tokens: %zu special tokens leave no room in %zu", special, room);
  memmove(ids + room - behind, ids + count - behind, behind * sizeof *ids);
  return RUNG_OK;
}

rung_status rung_encoder_tokens(rung_encoder *e, const char *text, size_t bytes, bool truncate, int32_t **out_ids,
                                size_t *out_count) {
  if (!e) return RUNG_INVALID_ARGUMENT;
  e->error = (rung_error){0};
  if (!out_ids || !out_count) return rung_fail(&e->error, RUNG_INVALID_ARGUMENT, "tokens: an argument is missing");
  int32_t *ids;
  size_t count;
  RUNG_TRY(rung_model_encode(e->model, text, bytes, RUNG_TEXT_ADD_SPECIAL, &e->error, &ids, &count));
  const size_t room = (size_t)e->options.longest;
  if (count > room) {
    rung_status status = RUNG_OUT_OF_RANGE;
    int32_t *shorter = NULL;
    if (!truncate)
      rung_fail(&e->error, status, "tokens: the text has %zu tokens, the longest may have %zu", count, room);
    else if (!(status = cut(e, ids, count, room)) && !(shorter = rung_host_array(e->host, room, sizeof *ids)))
      status = rung_fail(&e->error, RUNG_OUT_OF_MEMORY, "tokens: out of memory");
    if (shorter) memcpy(shorter, ids, room * sizeof *ids);
    rung_ids_free(e->model, ids, count);
    if (status) return status;
    ids = shorter;
    count = room;
  }
  *out_ids = ids;
  *out_count = count;
  return RUNG_OK;
}

/* ---- running */

static rung_status check(rung_encoder *e, const rung_token_list *texts, size_t count) {
  const int64_t vocabulary = e->model->config.vocabulary;
  for (size_t i = 0; i < count; i++) {
    if (texts[i].count > (size_t)e->options.longest)
      return rung_fail(&e->error, RUNG_OUT_OF_RANGE, "encoder: text %zu has %zu tokens, the longest may have %" PRId64,
                       i, texts[i].count, e->options.longest);
    if (texts[i].count && !texts[i].ids)
      return rung_fail(&e->error, RUNG_INVALID_ARGUMENT, "encoder: text %zu has no ids", i);
    for (size_t k = 0; k < texts[i].count; k++)
      if (texts[i].ids[k] < 0 || texts[i].ids[k] >= vocabulary)
        return rung_fail(&e->error, RUNG_OUT_OF_RANGE, "encoder: id %zu of text %zu is %d, the vocabulary has %" PRId64,
                         k, i, texts[i].ids[k], vocabulary);
  }
  return RUNG_OK;
}

/* How many texts the next run takes: as many as fit, in their order. */
static size_t fit(const rung_encoder *e, const rung_token_list *texts, size_t count, int64_t *out_rows) {
  size_t n = 0;
  *out_rows = 0;
  for (; n < count && n < (size_t)e->options.rows; n++) {
    if (*out_rows + (int64_t)texts[n].count > e->options.rows) break;
    *out_rows += (int64_t)texts[n].count;
  }
  return n;
}

static rung_status run(rung_encoder *e, const rung_token_list *texts, size_t count, int64_t rows, float *out) {
  void *ids, *offsets;
  RUNG_TRY(rung_context_input(e->context, e->in_ids, &rows, &ids));
  RUNG_TRY(rung_context_input(e->context, e->in_offsets, (const int64_t[]){(int64_t)count + 1}, &offsets));
  int32_t at = 0;
  for (size_t i = 0; i < count; i++) {
    ((int32_t *)offsets)[i] = at;
    if (texts[i].count) memcpy((int32_t *)ids + at, texts[i].ids, texts[i].count * sizeof *texts[i].ids);
    at += (int32_t)texts[i].count;
  }
  ((int32_t *)offsets)[count] = at;
  RUNG_TRY(rung_context_run(e->context));
  e->runs++;
  rung_tensor vectors;
  RUNG_TRY(rung_context_output(e->context, e->out_vectors, &vectors));
  memcpy(out, vectors.data, count * (size_t)e->options.dims * sizeof *out);
  return RUNG_OK;
}

rung_status rung_encoder_run(rung_encoder *e, const rung_token_list *texts, size_t count, float *out) {
  if (!e) return RUNG_INVALID_ARGUMENT;
  e->error = (rung_error){0};
  if (count && (!texts || !out)) return rung_fail(&e->error, RUNG_INVALID_ARGUMENT, "encoder: an argument is missing");
  RUNG_TRY(check(e, texts, count));
  for (size_t done = 0; done < count;) {
    int64_t rows;
    const size_t n = fit(e, texts + done, count - done, &rows);
    const rung_status status = run(e, texts + done, n, rows, out + done * (size_t)e->options.dims);
    if (status) return rung_fail(&e->error, status, "%s", rung_context_message(e->context));
    done += n;
  }
  return RUNG_OK;
}
