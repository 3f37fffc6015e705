/* SPDX-License-Identifier: MIT
 * Language models: a file becomes a model, a generator continues text with it.
 *
 *   rung_model_open -> rung_generator_create -> rung_generator_prompt -> rung_generator_step, step, step ...
 *
 * A model is shared and immutable: its weights are mapped or read once, and packed once, whatever number of generators
 * use it. A generator belongs to one thread at a time; it runs several sequences of different lengths in one ragged run.
 * Models come from GGUF files and from folders as Hugging Face has them (config.json, safetensors); docs/models.md has
 * the families. Other families and what a family does not do are refused by name.
 */
#ifndef RUNG_MODEL_H
#define RUNG_MODEL_H

#include <rung/program.h>
#include <rung/source.h>
#include <rung/store.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_model rung_model;
typedef struct rung_generator rung_generator;

typedef struct rung_model_options {
  size_t size; /* sizeof(rung_model_options) */
  rung_quant quant;
  rung_precision precision; /* its boundary is f32: logits and vectors are read so */
  bool deterministic;       /* as in rung_compile_options */
  bool check;               /* read every weight once and refuse a NaN or an infinity */
  /* Where compiles and packed forms are looked for and kept (rung/store.h), so that a start after the first makes
   * neither; kept alive. NULL: nowhere. */
  rung_store *store;
} rung_model_options;
RUNG_API rung_model_options rung_model_options_default(void);

/* Reads metadata and checks every tensor that the family needs: names, types, extents. Nothing is packed yet. The
 * source is a GGUF file, or a folder by its path or that of its config.json; what its config.json asks for and the
 * family's graph does not do is refused by its name. */
RUNG_API RUNG_CHECKED rung_status rung_model_open(rung_device *device, const rung_source *source,
                                                  const rung_model_options *options, rung_error *error,
                                                  rung_model **out_model);
RUNG_API void rung_model_retain(rung_model *model);
RUNG_API void rung_model_release(rung_model *model);

typedef struct rung_model_info {
  const char *architecture; /* "llama" */
  const char *name;         /* of the file's metadata; "" if it has none */
  int64_t layers, width, heads, kv_heads, head_dim, feed_forward;
  int64_t vocabulary;
  int64_t context; /* positions that the model was trained for */
  int64_t window;  /* sliding window of the layers that have one, else 0 */
  uint64_t weight_bytes;
  bool encoder; /* makes vectors (rung/embed.h), not text */
} rung_model_info;
RUNG_API void rung_model_get_info(const rung_model *model, rung_model_info *out_info);
RUNG_API rung_memory rung_model_memory(const rung_model *model); /* of its view: shared by all generators */
/* The view that all generators of the model run with, for setting weights (rung/program.h); borrowed. */
RUNG_API rung_view *rung_model_view(const rung_model *model);

/* ---- text. Refused with RUNG_UNSUPPORTED where the library was built without what the model's tokeniser needs. */
typedef enum rung_text_flags {
  RUNG_TEXT_ADD_SPECIAL = 1,  /* begin and end tokens, as the vocabulary says */
  RUNG_TEXT_PARSE_SPECIAL = 2 /* special tokens spelled out in the text are read as such */
} rung_text_flags;
/* *out_ids is the caller's to free with rung_ids_free. */
RUNG_API RUNG_CHECKED rung_status rung_model_encode(rung_model *model, const char *text, size_t bytes, unsigned flags,
                                                    rung_error *error, int32_t **out_ids, size_t *out_count);
RUNG_API void rung_ids_free(rung_model *model, int32_t *ids, size_t count);
/* Text of ids, special tokens as well if `special`; free with rung_text_free. */
RUNG_API RUNG_CHECKED rung_status rung_model_decode(rung_model *model, const int32_t *ids, size_t count, bool special,
                                                    rung_error *error, char **out_text, size_t *out_bytes);
/* Does this token end a text? */
RUNG_API bool rung_model_is_end(rung_model *model, int32_t id);

/* A stream of tokens to a stream of text: whole characters only. What begins a character waits for the next token;
 * bytes that cannot become one are U+FFFD. Belongs to one thread at a time; keeps the model alive. */
typedef struct rung_stream rung_stream;
typedef enum rung_stream_flags {
  RUNG_STREAM_SPECIAL = 1, /* special tokens are printed as well */
  RUNG_STREAM_CONTINUE = 2 /* the text goes on after other text: a leading blank is kept */
} rung_stream_flags;
RUNG_API RUNG_CHECKED rung_status rung_stream_create(rung_model *model, unsigned flags, rung_error *error,
                                                     rung_stream **out_stream);
RUNG_API void rung_stream_destroy(rung_stream *stream); /* NULL allowed */
/* The text that is complete with this token, maybe none; borrowed until the next call, not terminated. */
RUNG_API RUNG_CHECKED rung_status rung_stream_push(rung_stream *stream, int32_t id, rung_error *error,
                                                   const char **out_text, size_t *out_bytes);
/* The end: what still waits. The stream can be used again, for text that goes on. */
RUNG_API RUNG_CHECKED rung_status rung_stream_end(rung_stream *stream, rung_error *error, const char **out_text,
                                                  size_t *out_bytes);

/* ---- generating */
/* Where tokens are chosen. DEVICE: by a step of the program (the op `sample`), as far as a slot's sampling looks at
 * nothing but its row and uses no more than top_k, top_p, min_p and temperature, and only for runs all of whose slots do;
 * then ids come out of such a run, and its logits stay where they are. Else, and with HOST always, logits come out and
 * the host chooses. AUTO: DEVICE where the device has memory of its own. The tokens are the same, but
 * for one that stands at the very edge of top_p (sums in another order).
 *
 * There, a generator of one slot, whose model has no windows, submits the run behind a token before it gives the token. Any
 * other call undoes that run where it matters; weights that are committed in between count from the token after next on,
 * and rung_context_cancel ends it, so that the next step is RUNG_CANCELLED. Once rung_generator_state was called no run is
 * ahead any more. */
typedef enum rung_choose { RUNG_CHOOSE_AUTO, RUNG_CHOOSE_HOST, RUNG_CHOOSE_DEVICE } rung_choose;
typedef struct rung_generate_options {
  size_t size;       /* sizeof(rung_generate_options) */
  int32_t sequences; /* slots; default 1 */
  int64_t context;   /* positions of each; 0: the smaller of the model's and 4096. At least 1 */
  int64_t chunk;     /* most rows of one run; default 512 */
  rung_type kv;      /* F32, F16, BF16, or Q8_0 where the heads are multiples of 32; default F16 */
  int64_t logits;    /* most rows whose logits one run gives; 0: one for each sequence */
  int threads;       /* 0: the device's */
  /* What happens when a sequence has filled its context: nothing follows it (false), or the oldest half of what is behind
   * its first `keep` positions is forgotten and the text goes on (rung_state_shift; RUNG_UNSUPPORTED where the model's
   * keys cannot be turned back). keep is less than the context. A window that no longer holds what the kept positions
   * need makes it forget fewer, and ends the step with RUNG_UNSUPPORTED where not even one can go. */
  bool shift;
  int64_t keep;
  int64_t blocks; /* as in rung_state_options: 0, or how many blocks of 64 positions the slots share */
  bool hidden;    /* hidden states as well, see rung_generator_hidden */
  rung_choose choose;
} rung_generate_options;
RUNG_API rung_generate_options rung_generate_options_default(void);
/* Compiles the model's graph for these sizes, unless that was done before, and packs weights that are not packed yet.
 */
RUNG_API RUNG_CHECKED rung_status rung_generator_create(rung_model *model, const rung_generate_options *options,
                                                        rung_error *error, rung_generator **out_generator);
RUNG_API void rung_generator_destroy(rung_generator *generator);
/* The same compile without a generator: nothing is packed, no state is made. For looking at a model
 * (rung_template_print, rung_program_print, rung_program_memory). Both results are the caller's to release. */
RUNG_API RUNG_CHECKED rung_status rung_model_compile(rung_model *model, const rung_generate_options *options,
                                                     rung_error *error, rung_template **out_template,
                                                     rung_program **out_program);

/* Added to a token's logit before anything else; minus infinity: never. */
typedef struct rung_logit_bias {
  int32_t id;
  float bias;
} rung_logit_bias;

/* A row of logits, shown to a caller's own function, which may change it (minus infinity: never this token) or choose. */
typedef struct rung_sample_row {
  int32_t slot;
  float *logits; /* of the vocabulary, with the biases added; a copy */
  int64_t vocabulary;
  const int32_t *ids; /* what the slot holds, oldest first; -1 where that is not known */
  int64_t count;
  int32_t id; /* -1; set it to choose this token: the chain is not run */
} rung_sample_row;
/* Any status but RUNG_OK ends the step with it; the slot rests then. */
typedef rung_status rung_sample_fn(void *self, rung_sample_row *row);

/* How tokens are chosen: a chain of steps, in this order, each working on what the one before it left. "Best" is the
 * larger logit, ties to the lower id; probabilities are those of the tokens that are left, at temperature 1. At least one
 * token is left by every step. */
typedef struct rung_sample_options {
  size_t size;                 /* sizeof(rung_sample_options) */
  const rung_logit_bias *bias; /* `biases` of them, copied */
  size_t biases;
  rung_sample_fn *fn; /* the caller's own; NULL: none */
  void *fn_self;
  /* Of tokens among the last repeat_last_n of the text (prompts too; -1: all, default 64): logits above 0 are divided by
   * repeat_penalty, others multiplied (Keskar et al. 2019; 1: off), then presence_penalty and frequency_penalty times
   * their number are taken off (0: off). */
  double repeat_penalty, presence_penalty, frequency_penalty;
  int64_t repeat_last_n;
  /* DRY: where the end of the text, of at least dry_allowed_length tokens (default 2), stood before, what followed it
   * then loses dry_multiplier * dry_base^(length - dry_allowed_length); 0: off, base 1.75. Among the last dry_last_n
   * tokens (-1: all). Repetitions end at dry_breakers, `dry_breaker_count` texts; NULL: newline, colon, quote, asterisk.
   * Breakers need the model's tokeniser. */
  double dry_multiplier, dry_base;
  int64_t dry_allowed_length, dry_last_n;
  const char *const *dry_breakers;
  size_t dry_breaker_count;
  double top_n_sigma; /* logits within this many standard deviations of the largest (Tang et al. 2024); 0: all */
  int64_t top_k;      /* at most this many best tokens; 0: all; default 40 */
  double typical_p; /* the fewest tokens whose information is nearest to the expected one and whose probabilities exceed
                         * this (Meister et al. 2022); 1: all */
  double top_p; /* the fewest best tokens whose probabilities reach this (Holtzman et al. 2019); 1: all; default 0.95 */
  double min_p; /* tokens at least this probable relative to the best one; 0: all; default 0.05 */
  /* XTC: with this probability (0: off) all tokens go whose own is at least xtc_threshold (default 0.1; above 0.5: off),
   * except the least probable of these. */
  double xtc_probability, xtc_threshold;
  double temperature;        /* 0: the best token, and no random number unless XTC uses one; default 0.8 */
  uint64_t seed;             /* the same seed gives the same tokens on every machine for equal logits; default 0 */
  int64_t log_probabilities; /* how many best tokens' log-probabilities to keep with each token; 0: none */
} rung_sample_options;
RUNG_API rung_sample_options rung_sample_options_default(void);
/* From the next token on; the random numbers begin anew. RUNG_INVALID_ARGUMENT names the option that is wrong. */
RUNG_API RUNG_CHECKED rung_status rung_generator_sampling(rung_generator *generator, int32_t slot,
                                                          const rung_sample_options *options);

/* Log-probabilities (natural) as the model gives them: over the whole vocabulary, at temperature 1, before any step. */
typedef struct rung_log_probability {
  int32_t id;
  double value;
} rung_log_probability;
/* Of the last token of a slot whose sampling asks for them, and of the best ones, best first; borrowed until the next
 * step. RUNG_NOT_FOUND where there is none. */
RUNG_API RUNG_CHECKED rung_status rung_generator_log_probabilities(rung_generator *generator, int32_t slot,
                                                                   double *out_chosen,
                                                                   const rung_log_probability **out_best,
                                                                   int64_t *out_count);

/* Gives a slot more text to read behind what it holds, before it goes on; the ids are copied. RUNG_OUT_OF_RANGE if they
 * pass the context, which with `shift` no text does. */
RUNG_API RUNG_CHECKED rung_status rung_generator_prompt(rung_generator *generator, int32_t slot, const int32_t *ids,
                                                        size_t count);
/* Forgets what a slot holds, so that it can begin another text. */
RUNG_API RUNG_CHECKED rung_status rung_generator_reset(rung_generator *generator, int32_t slot);
/* The slot's whole text becomes these ids: the longest beginning that it holds already is kept, everything else is
 * forgotten, the rest is read. The last id is always read again, since a token follows from it. What a shift has moved is
 * not kept, nor anything where a window no longer holds what the kept part needs. The tokens are those of a fresh slot.
 * out_kept NULL allowed. RUNG_OUT_OF_RANGE as for rung_generator_prompt, with nothing changed. */
RUNG_API RUNG_CHECKED rung_status rung_generator_set_text(rung_generator *generator, int32_t slot, const int32_t *ids,
                                                          size_t count, size_t *out_kept);
/* Keeps the first `length` positions of what a slot holds; nothing waits to be read then, and the slot rests until it
 * gets a prompt. RUNG_UNSUPPORTED where a window no longer holds what would be needed. */
RUNG_API RUNG_CHECKED rung_status rung_generator_truncate(rung_generator *generator, int32_t slot, int64_t length);
/* Slot `to` holds the first `length` positions of slot `from`, instead of what it held; otherwise as above. */
RUNG_API RUNG_CHECKED rung_status rung_generator_copy(rung_generator *generator, int32_t to, int32_t from,
                                                      int64_t length);
/* Ids that a slot holds, oldest first; -1 for positions that were put into its state by hand. Borrowed until the next
 * call. */
RUNG_API RUNG_CHECKED rung_status rung_generator_ids(rung_generator *generator, int32_t slot, const int32_t **out_ids,
                                                     size_t *out_count);
/* A conversation in a file: ids, what still waits to be read, keys and values (docs/formats.md). Written beside its name
 * and renamed. Restored into any slot of a generator of the same model and type of keys and values, on any instruction
 * set, it goes on as it would have; sampling is not in it. A damaged file, another model's, or one with more positions
 * than the context is refused before anything changes. */
RUNG_API RUNG_CHECKED rung_status rung_generator_save(rung_generator *generator, int32_t slot, const char *path);
RUNG_API RUNG_CHECKED rung_status rung_generator_restore(rung_generator *generator, int32_t slot,
                                                         const rung_source *source);
/* A slot rests: it takes part in no step until it gets a prompt. */
RUNG_API void rung_generator_pause(rung_generator *generator, int32_t slot);

typedef struct rung_token {
  int32_t slot, id;
  bool end; /* the model's end of text or turn: the slot rests */
} rung_token;
/* One ragged run over all slots that have work: slots that read prompts read up to a chunk in all, the others go on by
 * one token. Gives a token for each slot that has read everything; tokens holds at least as many as there are slots.
 * *out_count may be 0 while long prompts are read. `*out_busy` (NULL allowed): is there more to do? */
RUNG_API RUNG_CHECKED rung_status rung_generator_step(rung_generator *generator, rung_token *tokens, size_t *out_count,
                                                      bool *out_busy);

/* The lower level: rows of one run by hand, without sampling and shifting. `rows` says how many ids of `ids` each slot
 * takes; logits of the rows named by `wanted` (rising) are borrowed until the next call, one row of `vocabulary` floats
 * after another. */
RUNG_API RUNG_CHECKED rung_status rung_generator_run(rung_generator *generator, const rung_rows *rows, int32_t count,
                                                     const int32_t *ids, const int32_t *wanted, int32_t wanted_count,
                                                     const float **out_logits);
/* Hidden states of the last run (rows of `width` floats, behind the final norm: what logits are made from), one row for
 * each wanted one; after a step one for each token that it gave, in their order. Borrowed until the next run.
 * RUNG_UNSUPPORTED without options.hidden. */
RUNG_API RUNG_CHECKED rung_status rung_generator_hidden(rung_generator *generator, const float **out_rows,
                                                        int32_t *out_count);
RUNG_API int64_t rung_generator_length(const rung_generator *generator, int32_t slot);
RUNG_API rung_context *rung_generator_context(rung_generator *generator); /* for tracing and
                                        cancelling only: runs, feeds and bindings are the generator's; borrowed */
/* For what the calls above do not do: a slot goes on behind what its sequence holds, by what it is given to read.
 * rung_generator_reset a slot before its sequence is replaced by hand. Borrowed. */
RUNG_API rung_state *rung_generator_state(rung_generator *generator);
RUNG_API const rung_program *rung_generator_program(const rung_generator *generator);
RUNG_API const char *rung_generator_message(const rung_generator *generator);
RUNG_API uint64_t rung_generator_runs(const rung_generator *generator); /* so far */
/* What it will take at most with every slot at `length` positions and runs of `rows` rows: by class, see
 * rung_program_memory. */
RUNG_API RUNG_CHECKED rung_status rung_generator_memory(const rung_generator *generator, int64_t rows, int64_t length,
                                                        rung_error *error, rung_memory *out_memory);

#ifdef __cplusplus
}
#endif
#endif
