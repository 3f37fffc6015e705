/* SPDX-License-Identifier: MIT
 * Opening models: metadata to a configuration, weights checked by building the graph once, compiles kept by what they depend on. */
#include "models/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/tokenizer_json.h"
#include "formats/safetensors.h"
#include "ops/sampling.h"
#include "runtime/runtime.h"

rung_model_options rung_model_options_default(void) {
  return (rung_model_options){.size = sizeof(rung_model_options), .quant = RUNG_QUANT_FAST};
}

/* The vocabulary is what the embedding has rows for. */
static rung_status find_vocabulary(rung_model *m, rung_error *error) {
  const rung_builder b = {.weights = m->weights, .config = &m->config};
  char name[RUNG_TENSOR_NAME];
  const rung_tensor_entry *entry = rung_model_tensor(&b, "token_embd.weight", name);
  if (!entry) return rung_fail(error, RUNG_NOT_FOUND, "the model has no tensor \"%s\"", name);
  if (entry->rank != 2 || entry->extent[1] != m->config.width)
    return rung_fail(error, RUNG_SHAPE_MISMATCH,
                     "tensor \"%s\" is [%" PRId64 ",%" PRId64 "], the metadata makes it [vocabulary,%" PRId64 "]", name,
                     entry->rank > 0 ? entry->extent[0] : 0, entry->rank > 1 ? entry->extent[1] : 0, m->config.width);
  m->config.vocabulary = entry->extent[0];
  return RUNG_OK;
}

static rung_status check_tokens(const rung_model *m, rung_error *error) {
  rung_gguf_entry tokens;
  if (rung_gguf_find(m->gguf, "tokenizer.ggml.tokens", &tokens) && tokens.array &&
      tokens.count > (uint64_t)m->config.vocabulary)
    return rung_fail(error, RUNG_CORRUPT_FILE,
                     "tokenizer.ggml.tokens has %" PRIu64 " entries, token_embd.weight has %" PRId64 " rows",
                     tokens.count, m->config.vocabulary);
  return RUNG_OK;
}

/* ---- graph */

/* One row per sequence: `tokens` has the type and the extent that `ids` has in the run that goes on. */
static void choose_tokens(rung_graph *g, rung_value logits, rung_dim wanted) {
  const rung_dim extent[] = {wanted, rung_graph_constant_dim(g, RUNG_SAMPLE_COLUMNS)};
  const rung_value parameters = rung_graph_input(g, "sampling", RUNG_TYPE_F64, 2, extent);
  rung_graph_output(g, "tokens", rung_graph_op(g, &rung_op_sample, (rung_value[]){logits, parameters}, 2, NULL));
}

bool rung_model_chooses(const rung_model *m, rung_choose choose) {
  return choose == RUNG_CHOOSE_DEVICE || (choose == RUNG_CHOOSE_AUTO && m->device->target->own_memory);
}

static rung_status build(rung_model *m, const rung_compile_key *key, rung_error *error, rung_graph **out_graph) {
  rung_graph *g;
  if (key->encoder) return rung_encoder_graph(m, key, error, out_graph);
  if (m->family->encoder)
    return rung_fail(error, RUNG_UNSUPPORTED, "architecture %s makes vectors, not text: see rung/embed.h",
                     m->family->architecture);
  RUNG_TRY(rung_graph_create(m->host, error, &g));
  const rung_dim rows = rung_graph_symbol(g, "rows", 0, RUNG_MAX_CHUNK);
  const rung_dim sequences = rung_graph_symbol(g, "sequences", 0, RUNG_MAX_SEQUENCES);
  const rung_dim wanted = rung_graph_symbol(g, "wanted", 0, RUNG_MAX_CHUNK);
  const rung_dim offsets = rung_graph_dim(g, RUNG_DIM_ADD, sequences, rung_graph_constant_dim(g, 1));
  rung_builder b = {.graph = g,
                    .weights = m->weights,
                    .config = &m->config,
                    .kv = key->kv,
                    .rows = rows,
                    .long_context = key->long_context};
  const rung_value ids = rung_graph_input(g, "ids", RUNG_TYPE_I32, 1, &rows);
  b.offsets = rung_graph_input(g, "offsets", RUNG_TYPE_I32, 1, &offsets);
  b.slot = rung_graph_input(g, "slot", RUNG_TYPE_I32, 1, &sequences);
  b.past = rung_graph_input(g, "past", RUNG_TYPE_I32, 1, &sequences);
  const rung_value which = rung_graph_input(g, "wanted", RUNG_TYPE_I32, 1, &wanted);
  const rung_positions_attrs positions = {.rows = rows};
  b.positions = rung_graph_op(g, &rung_op_positions, (rung_value[]){b.offsets, b.past}, 2, &positions);
  const rung_value hidden = m->family->build(&b, ids);
  rung_graph_label(g, "head");
  const rung_gather_attrs gather = {.axis = 0};
  const rung_value last = rung_graph_op(g, &rung_op_gather, (rung_value[]){hidden, which}, 2, &gather);
  const rung_value logits = rung_head(&b, last);
  rung_graph_output(g, "logits", logits);
  if (key->hidden) rung_graph_output(g, "hidden", last);
  if (key->tokens) choose_tokens(g, logits, wanted);
  if (rung_graph_status(g)) {
    const rung_status status = rung_fail(error, rung_graph_status(g), "%s", rung_graph_message(g));
    rung_graph_destroy(g);
    return status;
  }
  *out_graph = g;
  return RUNG_OK;
}

static bool same_key(const rung_compile_key *a, const rung_compile_key *b) {
  return a->encoder == b->encoder && a->kv == b->kv && a->pooling == b->pooling && a->unit_length == b->unit_length &&
         a->dims == b->dims && a->threads == b->threads && a->long_context == b->long_context &&
         a->hidden == b->hidden && a->tokens == b->tokens;
}

rung_status rung_model_template(rung_model *m, const rung_compile_key *key, rung_error *error,
                                rung_template **out_template) {
  rung_mutex_lock(&m->lock);
  rung_kept_compile *c = m->compiled;
  while (c && !same_key(&c->key, key)) c = c->next;
  rung_status status = RUNG_OK;
  if (!c) {
    rung_graph *graph;
    rung_template *t = NULL;
    rung_compile_options options = rung_compile_options_default();
    options.quant = m->options.quant;
    options.precision = m->options.precision;
    options.deterministic = m->options.deterministic;
    options.threads = key->threads;
    status = build(m, key, error, &graph);
    if (!status) {
      status = rung_store_template(m->options.store, m->device, graph, &options, error, &t);
      rung_graph_destroy(graph);
    }
    c = status ? NULL : rung_host_alloc(m->host, RUNG_MEMORY_host, sizeof *c, 0);
    if (!status && !c) {
      rung_template_release(t);
      status = rung_fail(error, RUNG_OUT_OF_MEMORY, "model: out of memory");
    }
    if (c) {
      *c = (rung_kept_compile){.next = m->compiled, .key = *key, .template_ = t};
      m->compiled = c;
    }
  }
  if (c) {
    rung_template_retain(c->template_);
    *out_template = c->template_;
  }
  rung_mutex_unlock(&m->lock);
  return status;
}

static rung_status plan(rung_model *m, rung_kept_compile *c, int64_t chunk, int64_t sequences, int64_t logits,
                        rung_error *error, rung_planned **out_planned) {
  for (rung_planned *p = c->planned; p; p = p->next) {
    if (p->chunk != chunk || p->sequences != sequences || p->logits != logits) continue;
    *out_planned = p;
    return RUNG_OK;
  }
  rung_planned *p = rung_host_alloc(m->host, RUNG_MEMORY_host, sizeof *p, 0);
  if (!p) return rung_fail(error, RUNG_OUT_OF_MEMORY, "model: out of memory");
  *p = (rung_planned){.next = c->planned, .chunk = chunk, .sequences = sequences, .logits = logits};
  const rung_binding ceiling[] = {{"rows", chunk}, {"sequences", sequences}, {"wanted", logits}};
  const rung_status status = rung_program_create(c->template_, ceiling, logits ? 3 : 2, error, &p->program);
  if (status) {
    rung_host_free(m->host, RUNG_MEMORY_host, p, sizeof *p);
    return status;
  }
  c->planned = *out_planned = p;
  return RUNG_OK;
}

rung_status rung_model_program(rung_model *m, rung_template *template_, int64_t chunk, int64_t sequences,
                               int64_t logits, rung_error *error, rung_program **out_program) {
  rung_mutex_lock(&m->lock);
  rung_kept_compile *c = m->compiled;
  while (c && c->template_ != template_) c = c->next;
  rung_planned *planned = NULL;
  const rung_status status = c ? plan(m, c, chunk, sequences, logits, error, &planned)
                               : rung_fail(error, RUNG_INTERNAL, "model: an unknown template");
  if (!status) {
    planned->users++;
    *out_program = planned->program;
  }
  rung_mutex_unlock(&m->lock);
  return status;
}

void rung_model_program_done(rung_model *m, rung_program *program) {
  if (!program) return;
  rung_mutex_lock(&m->lock);
  for (rung_kept_compile *c = m->compiled; c; c = c->next) {
    for (rung_planned **at = &c->planned, *p; (p = *at) != NULL; at = &p->next) {
      if (p->program != program) continue;
      if (--p->users == 0) {
        *at = p->next;
        rung_program_release(p->program);
        rung_host_free(m->host, RUNG_MEMORY_host, p, sizeof *p);
      }
      break;
    }
  }
  rung_mutex_unlock(&m->lock);
}

static bool left_aside(const rung_family *family, const char *name) {
  const size_t prefix = family->name_prefix ? strlen(family->name_prefix) : 0;
  if (prefix && strncmp(name, family->name_prefix, prefix) == 0) name += prefix;
  for (const char *const *start = family->aside; start && *start; start++)
    if (strncmp(name, *start, strlen(*start)) == 0) return true;
  return false;
}

/* Tensors that the family does not read are no error (files carry such things), but nobody should have to guess: the
 * log names them. */
static rung_status log_unused(rung_model *m, const rung_graph *graph, rung_error *error) {
  enum { NAMED = 8 };
  const size_t count = rung_weights_count(m->weights);
  bool *used = rung_host_array(m->host, count, sizeof *used);
  if (!used) return rung_fail(error, RUNG_OUT_OF_MEMORY, "model: out of memory");
  for (uint32_t i = 0; i < graph->nodes; i++) {
    size_t at;
    if (graph->node[i].op != &rung_op_weight) continue;
    if (rung_weights_index(m->weights, ((const rung_weight_attrs *)graph->node[i].attrs)->name, &at)) used[at] = true;
  }
  size_t unused = 0;
  for (size_t i = 0; i < count; i++) {
    if (used[i] || left_aside(m->family, rung_weights_entry(m->weights, i)->name) || ++unused > NAMED) continue;
    rung_host_log(m->host, RUNG_LOG_WARNING, "tensor \"%s\" is not used by architecture %s",
                  rung_weights_entry(m->weights, i)->name, m->family->architecture);
  }
  if (unused > NAMED) rung_host_log(m->host, RUNG_LOG_WARNING, "%zu more tensors are not used", unused - NAMED);
  rung_host_free(m->host, RUNG_MEMORY_host, used, count * sizeof *used);
  return RUNG_OK;
}

/* ---- open */

static rung_status open_gguf(rung_model *m, const rung_source *source, rung_error *error) {
  RUNG_TRY(rung_gguf_open(m->host, source, error, &m->gguf));
  const rung_status status = rung_gguf_weights(m->gguf, source, error, &m->weights);
  if (status && source->kind == RUNG_SOURCE_PATH) return rung_fail_prefix(error, status, "%s", source->path);
  RUNG_TRY(status);
  if (m->options.check) RUNG_TRY(rung_weights_check(m->weights, error));
  rung_gguf_config config;
  RUNG_TRY(rung_gguf_family(m->gguf, error, &m->family, &config));
  rung_gguf_text title;
  rung_error ignored;
  if (!rung_gguf_get_text(m->gguf, "general.name", &ignored, &title))
    snprintf(m->name, sizeof m->name, "%.*s", (int)(title.length < sizeof m->name ? title.length : sizeof m->name - 1),
             title.data);
  const rung_metadata meta = rung_gguf_metadata(&config);
  RUNG_TRY(m->family->configure(&meta, &m->config, error));
  RUNG_TRY(find_vocabulary(m, error));
  return check_tokens(m, error);
}

static rung_status open_folder(rung_model *m, const rung_source *source, const char *path, rung_error *error) {
  RUNG_TRY(rung_folder_open(m->host, source, path, error, &m->folder));
  RUNG_TRY(rung_folder_family(m->folder, error, &m->family));
  RUNG_TRY(rung_folder_configure(m->folder, m->family, &m->config, error));
  if (m->family->encoder) RUNG_TRY(rung_folder_encoding(m->folder, m->config.width, &m->encoding, error));
  RUNG_TRY(rung_folder_weights(m->host, path, source->mode, error, &m->weights));
  if (m->options.check) RUNG_TRY(rung_weights_check(m->weights, error));
  RUNG_TRY(find_vocabulary(m, error));
  int64_t rows = m->config.vocabulary;
  const rung_metadata meta = rung_folder_metadata(m->folder);
  RUNG_TRY(rung_metadata_maybe_count(&meta, "vocabulary", rows, rows, error, &rows));
  snprintf(m->name, sizeof m->name, "%s", rung_path_name(m->folder->path));
  return RUNG_OK;
}

/* A file of weights says nothing about the model that they are of. */
static rung_status refuse_bare(const rung_source *source, rung_error *error) {
  const char *dot = source->kind == RUNG_SOURCE_PATH && source->path ? strrchr(source->path, '.') : NULL;
  if (!dot || strcmp(dot, ".safetensors") != 0) return RUNG_OK;
  return rung_fail(error, RUNG_UNSUPPORTED, "%s: name the folder instead, which has the config.json", source->path);
}

static rung_status fill(rung_model *m, const rung_source *source, rung_error *error) {
  if (!rung_mutex_init(&m->lock)) return rung_fail(error, RUNG_SYSTEM, "model: no lock");
  char path[RUNG_PATH_BYTES];
  if (rung_find_folder(source, path)) {
    const rung_status status = open_folder(m, source, path, error);
    if (status) return rung_fail_prefix(error, status, "%s", path);
  } else {
    RUNG_TRY(refuse_bare(source, error));
    RUNG_TRY(open_gguf(m, source, error));
  }
  RUNG_TRY(rung_view_create(m->weights, error, &m->view));
  if (m->options.store) RUNG_TRY(rung_store_attach(m->options.store, m->weights, error));
  rung_graph *graph; /* built once here so that a wrong file is refused at once */
  const rung_compile_key key = {.encoder = m->family->encoder, .kv = RUNG_TYPE_F16, .pooling = RUNG_POOLING_MEAN};
  RUNG_TRY(build(m, &key, error, &graph));
  const rung_status status = log_unused(m, graph, error);
  rung_graph_destroy(graph);
  return status;
}

rung_status rung_model_open(rung_device *device, const rung_source *source, const rung_model_options *options,
                            rung_error *error, rung_model **out_model) {
  const rung_model_options o = options ? *options : rung_model_options_default();
  if (!device || !source || !out_model)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "model: device, source and out_model are required");
  if (o.size != sizeof o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "model: options.size is %zu, expected %zu", o.size, sizeof o);
  if (o.precision.boundary != RUNG_TYPE_F32)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "model: precision.boundary must be f32, as callers read it");
  rung_host *host = rung_device_host(device);
  rung_model *m = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *m, 0);
  if (!m) return rung_fail(error, RUNG_OUT_OF_MEMORY, "model: out of memory");
  atomic_init(&m->references, 1);
  rung_host_retain(host);
  rung_device_retain(device);
  m->host = host;
  m->device = device;
  m->options = o;
  rung_store_retain(o.store);
  const rung_status status = fill(m, source, error);
  if (status) {
    rung_model_release(m);
    return status;
  }
  *out_model = m;
  return RUNG_OK;
}

void rung_model_retain(rung_model *m) {
  if (m) atomic_fetch_add(&m->references, 1);
}

void rung_model_release(rung_model *m) {
  if (!m || atomic_fetch_sub(&m->references, 1) != 1) return;
  while (m->compiled) {
    rung_kept_compile *next = m->compiled->next;
    rung_template_release(m->compiled->template_);
    rung_host_free(m->host, RUNG_MEMORY_host, m->compiled, sizeof *m->compiled);
    m->compiled = next;
  }
  rung_store_release(m->options.store);
  rung_tokenizer_release(m->tokenizer);
  rung_view_release(m->view);
  rung_weights_release(m->weights);
  rung_gguf_release(m->gguf);
  rung_folder_close(m->folder);
  rung_mutex_finish(&m->lock);
  rung_host *host = m->host;
  rung_device *device = m->device;
  rung_host_free(host, RUNG_MEMORY_host, m, sizeof *m);
  rung_device_release(device);
  rung_host_release(host);
}

void rung_model_get_info(const rung_model *m, rung_model_info *out) {
  const rung_config *c = &m->config;
  *out = (rung_model_info){.architecture = m->family->architecture,
                           .name = m->name,
                           .layers = c->layers,
                           .width = c->width,
                           .heads = c->heads,
                           .kv_heads = c->kv_heads,
                           .head_dim = c->head_dim,
                           .feed_forward = c->feed_forward,
                           .vocabulary = c->vocabulary,
                           .context = c->context,
                           .window = c->window,
                           .encoder = m->family->encoder};
  for (size_t i = 0; i < rung_weights_count(m->weights); i++)
    out->weight_bytes += rung_weights_entry(m->weights, i)->bytes;
}

rung_memory rung_model_memory(const rung_model *m) { return rung_view_memory(m->view); }
rung_view *rung_model_view(const rung_model *m) { return m ? m->view : NULL; }

/* ---- text */

static rung_status folder_tokenizer(rung_model *m, rung_error *error, rung_tokenizer **out_tokenizer) {
  rung_tokenizer *made;
  RUNG_TRY(rung_tokenizer_json_folder(m->host, m->folder->path, error, &made));
  if (rung_tokenizer_count(made) > m->config.vocabulary) {
    const rung_status status =
        rung_fail(error, RUNG_CORRUPT_FILE, "%s/tokenizer.json has %d tokens, the embedding has %" PRId64 " rows",
                  m->folder->path, (int)rung_tokenizer_count(made), m->config.vocabulary);
    rung_tokenizer_release(made);
    return status;
  }
  *out_tokenizer = made;
  return RUNG_OK;
}

rung_status rung_model_tokenizer(rung_model *m, rung_error *error, const rung_tokenizer **out_tokenizer) {
  rung_mutex_lock(&m->lock);
  rung_status status = RUNG_OK;
  if (!m->tokenizer)
    status = m->gguf ? rung_gguf_tokenizer(m->gguf, error, &m->tokenizer) : folder_tokenizer(m, error, &m->tokenizer);
  *out_tokenizer = m->tokenizer;
  rung_mutex_unlock(&m->lock);
  return status;
}

rung_status rung_model_encode(rung_model *m, const char *text, size_t bytes, unsigned flags, rung_error *error,
                              int32_t **out_ids, size_t *out_count) {
  if (!m || (!text && bytes) || !out_ids || !out_count)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "encode: an argument is missing");
  const rung_tokenizer *tokenizer;
  RUNG_TRY(rung_model_tokenizer(m, error, &tokenizer));
  rung_ids ids;
  rung_ids_init(&ids, m->host);
  const unsigned f = (flags & RUNG_TEXT_ADD_SPECIAL ? RUNG_ENCODE_ADD_SPECIAL : 0u) |
                     (flags & RUNG_TEXT_PARSE_SPECIAL ? RUNG_ENCODE_PARSE_SPECIAL : 0u);
  rung_status status = rung_tokenizer_encode(tokenizer, text, bytes, f, error, &ids);
  int32_t *copy = status ? NULL : rung_host_array(m->host, ids.count, sizeof *copy);
  if (!status && !copy) status = rung_fail(error, RUNG_OUT_OF_MEMORY, "encode: out of memory");
  if (!status) {
    if (ids.count) memcpy(copy, ids.data, ids.count * sizeof *copy);
    *out_ids = copy;
    *out_count = ids.count;
  }
  rung_ids_finish(&ids);
  return status;
}

void rung_ids_free(rung_model *m, int32_t *ids, size_t count) {
  if (m && ids) rung_host_free(m->host, RUNG_MEMORY_host, ids, count * sizeof *ids);
}

rung_status rung_model_decode(rung_model *m, const int32_t *ids, size_t count, bool special, rung_error *error,
                              char **out_text, size_t *out_bytes) {
  if (!m || (!ids && count) || !out_text || !out_bytes)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "decode: an argument is missing");
  const rung_tokenizer *tokenizer;
  RUNG_TRY(rung_model_tokenizer(m, error, &tokenizer));
  rung_text text;
  rung_text_init(&text, m->host);
  rung_status status = rung_tokenizer_decode(tokenizer, ids, count, special ? RUNG_DECODE_SPECIAL : 0u, error, &text);
  char *copy = status ? NULL : rung_host_alloc(m->host, RUNG_MEMORY_host, text.length + 1, 0);
  if (!status && !copy) status = rung_fail(error, RUNG_OUT_OF_MEMORY, "decode: out of memory");
  if (!status) {
    if (text.length) memcpy(copy, text.data, text.length);
    *out_text = copy;
    *out_bytes = text.length;
  }
  rung_text_finish(&text);
  return status;
}

bool rung_model_is_end(rung_model *m, int32_t id) {
  const rung_tokenizer *tokenizer;
  rung_error ignored;
  return m && !rung_model_tokenizer(m, &ignored, &tokenizer) && rung_tokenizer_is_eog(tokenizer, id);
}
