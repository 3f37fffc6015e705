/* SPDX-License-Identifier: MIT
 * Chat templates: a conversation becomes the text that a model was trained on.
 *
 *   rung_model_chat_render(model, NULL, &input, &error, &text, &bytes)      with the model's own template
 *   rung_chat_template_create -> rung_chat_render                           with any template, without a model
 *
 * Templates are written in Jinja, in the settings of Hugging Face's transformers; what is rendered is byte for byte what
 * Python's jinja2 renders there. A template is code from a stranger: it reaches the values that it is given and nothing
 * else, and a render is bounded in steps, depth and memory.
 *
 * Understood are the statements for (with if, else, recursive, break, continue), if, set, macro, call, filter, with,
 * print, raw and generation (its body is rendered, nothing is tracked); all of jinja2's operators and tests; its filters
 * but filesizeformat, pprint, random, striptags, urlize, wordwrap and xmlattr; the methods of Python's str, dict, list
 * and tuple but the rare ones; and the functions range, dict, namespace, cycler, joiner, raise_exception and
 * strftime_now. What would change a value (list.append) is refused, as the immutable sandbox does. Not there: extends,
 * block, include, import, autoescape; integers of more than 64 bits are passed through but not computed with; what
 * Python makes lazily is made at once.
 *
 * A text that has been rendered holds special tokens spelled out: encode it with RUNG_TEXT_PARSE_SPECIAL and without
 * RUNG_TEXT_ADD_SPECIAL, since templates write the begin token themselves. Special tokens that a user spells out in a
 * message are read as such too; who must not allow that looks for them before.
 */
#ifndef RUNG_CHAT_H
#define RUNG_CHAT_H

#include <rung/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Immutable and counted; any number of threads may render one template at once. */
typedef struct rung_chat_template rung_chat_template;

/* Parses a template; the text is copied. RUNG_CORRUPT_FILE: it is none, the message names line and construct;
 * RUNG_UNSUPPORTED: it asks for what is not understood. */
RUNG_API RUNG_CHECKED rung_status rung_chat_template_create(rung_host *host, const char *text, size_t bytes,
                                                            rung_error *error, rung_chat_template **out_template);
RUNG_API void rung_chat_template_retain(rung_chat_template *chat_template);
RUNG_API void rung_chat_template_release(rung_chat_template *chat_template); /* NULL allowed */
/* The text that it was made from, not terminated; borrowed. */
RUNG_API const char *rung_chat_template_text(const rung_chat_template *chat_template, size_t *out_bytes);

/* What a template sees, as variables of these names. JSON texts are terminated and may nest 64 deep. */
typedef struct rung_chat_input {
  size_t size;           /* sizeof(rung_chat_input) */
  const char *messages;  /* JSON: a list of {"role": ..., "content": ..., "tool_calls": ...}. Required */
  const char *tools;     /* JSON: a list of functions; NULL: none, as the variable is then */
  const char *documents; /* likewise */
  const char *variables; /* JSON object: further variables ("enable_thinking"), which count before all others; NULL */
  const char *bos_token, *eos_token; /* NULL: not defined, or the model's */
  bool add_generation_prompt;        /* the text ends where the answer begins; default true */
  int64_t now;    /* what strftime_now shows: seconds since 1970 of local time; INT64_MIN: the clock, the default */
  uint64_t steps; /* most steps: nodes evaluated, and one for every 64 bytes worked on; default 100 million */
  uint64_t bytes; /* most memory of a render; default 256 MiB */
  int depth;      /* most levels of statements, expressions, calls and values; default 1000, at most 4000 */
} rung_chat_input;
RUNG_API rung_chat_input rung_chat_input_default(void);

/* The text of a conversation; *out_text is terminated and freed with rung_text_free (rung/graph.h) of the template's
 * host. RUNG_INVALID_ARGUMENT: the template raised an exception (raise_exception too: the message is its), with line and
 * construct; RUNG_CORRUPT_FILE: what should be JSON is not; RUNG_OUT_OF_RANGE, RUNG_OVER_BUDGET: steps or depth, memory
 * are used up; RUNG_UNSUPPORTED: a filter or a value that is not understood was reached. */
RUNG_API RUNG_CHECKED rung_status rung_chat_render(const rung_chat_template *chat_template,
                                                   const rung_chat_input *input, rung_error *error, char **out_text,
                                                   size_t *out_bytes);

/* A template of a model's own: of GGUF metadata (tokenizer.chat_template, tokenizer.chat_template.NAME) or of its folder
 * (chat_template.jinja, additional_chat_templates/NAME.jinja, tokenizer_config.json). name NULL: the default one.
 * RUNG_NOT_FOUND: it has none of that name. The result is the caller's to release. */
RUNG_API RUNG_CHECKED rung_status rung_model_chat_template(rung_model *model, const char *name, rung_error *error,
                                                           rung_chat_template **out_template);
/* Renders with the model's special tokens (bos_token, eos_token, unk_token, pad_token ... where it has them, unless the
 * input says otherwise). chat_template NULL: its own; "tool_use" where there are tools and it has one of that name. The
 * text is freed with rung_text_free of the host of the model's device. */
RUNG_API RUNG_CHECKED rung_status rung_model_chat_render(rung_model *model, const rung_chat_template *chat_template,
                                                         const rung_chat_input *input, rung_error *error,
                                                         char **out_text, size_t *out_bytes);

#ifdef __cplusplus
}
#endif
#endif
