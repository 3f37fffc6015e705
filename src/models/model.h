/* SPDX-License-Identifier: MIT
 * A model inside: file, configuration, weights, tokeniser, compiled templates. */
#ifndef RUNG_MODELS_MODEL_H
#define RUNG_MODELS_MODEL_H

#include <rung/model.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "formats/gguf.h"
#include "models/encoding.h"
#include "models/family.h"
#include "models/folder.h"
#include "text/tokenizer.h"

enum { RUNG_MAX_CHUNK = 65536, RUNG_MAX_SEQUENCES = 65536 };

/* A program of a compile: generators of the same sizes share it, and it goes with the last of them. */
typedef struct rung_planned {
  struct rung_planned *next;
  int64_t chunk, sequences, logits;
  int64_t users;
  rung_program *program;
} rung_planned;

/* What a compile of the model depends on besides its file. */
typedef struct rung_compile_key {
  bool encoder;         /* vectors, not text */
  rung_type kv;         /* of generators */
  bool hidden;          /* generators that give hidden rows as well */
  bool tokens;          /* generators whose program chooses */
  bool long_context;    /* longer than short rotary factors are for */
  rung_pooling pooling; /* of encoders, all three resolved */
  rung_unit_length unit_length;
  int64_t dims;
  int threads;
} rung_compile_key;

/* One compile of the model's graph. */
typedef struct rung_kept_compile {
  struct rung_kept_compile *next;
  rung_compile_key key;
  rung_template *template_;
  rung_planned *planned;
} rung_kept_compile;

struct rung_model {
  atomic_int references;
  rung_host *host;
  rung_device *device;
  rung_model_options options;
  rung_gguf *gguf; /* one of the two */
  rung_folder *folder;
  rung_weights *weights;
  rung_view *view;
  const rung_family *family;
  rung_config config;
  rung_encoding encoding; /* of encoders */
  char name[128];
  rung_mutex lock; /* tokeniser and compiles are made on first use */
  rung_tokenizer *tokenizer;
  rung_kept_compile *compiled;
};

/* Does a program of this model's device choose tokens? */
bool rung_model_chooses(const rung_model *model, rung_choose choose);
/* The graph compiled for a key, made on first use; the reference is the caller's. */
rung_status rung_model_template(rung_model *model, const rung_compile_key *key, rung_error *error,
                                rung_template **out_template);
/* A program of such a template, shared; the model must outlive it. Given back with rung_model_program_done. logits 0:
 * an encoder's, whose graph has no such rows. */
rung_status rung_model_program(rung_model *model, rung_template *template_, int64_t chunk, int64_t sequences,
                               int64_t logits, rung_error *error, rung_program **out_program);
void rung_model_program_done(rung_model *model, rung_program *program); /* NULL allowed */
/* The graph of an encoder (embed.c). */
rung_status rung_encoder_graph(const rung_model *model, const rung_compile_key *key, rung_error *error,
                               rung_graph **out_graph);
rung_status rung_model_tokenizer(rung_model *model, rung_error *error, const rung_tokenizer **out_tokenizer);
/* Metadata of a GGUF file (config_gguf.c). */
typedef struct rung_gguf_config {
  const rung_gguf *gguf;
  char architecture[64];
} rung_gguf_config;
rung_status rung_gguf_family(const rung_gguf *gguf, rung_error *error, const rung_family **out_family,
                             rung_gguf_config *out_config);
rung_metadata rung_gguf_metadata(const rung_gguf_config *config);
/* From a GGUF file's metadata (tokenizer_gguf.c). */
rung_status rung_gguf_tokenizer(const rung_gguf *gguf, rung_error *error, rung_tokenizer **out_tokenizer);

#endif
