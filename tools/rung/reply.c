/* SPDX-License-Identifier: MIT
 * Collecting a reply. */
#include "reply.h"

#include <stdlib.h>
#include <string.h>

int cli_reply_begin(cli_session *s, rung_model *model, bool without_text, cli_reply *out) {
  *out = (cli_reply){.stops = &s->options->stops};
  const rung_status status = rung_stream_create(model, RUNG_STREAM_CONTINUE, &s->error, &out->stream);
  if (status == RUNG_UNSUPPORTED && without_text && !out->stops->count) return CLI_OK;
  return status ? cli_fail(s, CLI_ON_FILE, status, NULL) : CLI_OK;
}

static bool grow(void **array, size_t *capacity, size_t need, size_t element) {
  if (need <= *capacity) return true;
  const size_t more = need > 2 * *capacity ? need : 2 * *capacity;
  void *grown = realloc(*array, more * element);
  if (!grown) return false;
  *array = grown;
  *capacity = more;
  return true;
}

/* The place of the first stop text at or behind `from`; bytes where there is none. */
static size_t find_stop(const cli_reply *r, size_t from) {
  size_t best = r->bytes;
  for (int i = 0; i < r->stops->count; i++) {
    const char *stop = r->stops->item[i];
    const size_t n = strlen(stop);
    for (size_t at = from; n && at + n <= r->bytes && at < best; at++)
      if (memcmp(r->text + at, stop, n) == 0) best = at;
  }
  return best;
}

/* How much of the end of the text may be the beginning of a stop text. */
static size_t held_back(const cli_reply *r) {
  size_t most = 0;
  for (int i = 0; i < r->stops->count; i++) {
    const char *stop = r->stops->item[i];
    const size_t n = strlen(stop);
    for (size_t k = n ? n - 1 : 0; k > most; k--)
      if (k <= r->bytes && memcmp(r->text + r->bytes - k, stop, k) == 0) most = k;
  }
  return most;
}

static int add_text(cli_session *s, cli_reply *r, const char *text, size_t bytes) {
  void *array = r->text;
  if (!grow(&array, &r->capacity, r->bytes + bytes + 1, 1))
    return cli_refuse(s, CLI_NO_MEMORY, "out of memory for the reply");
  r->text = array;
  if (bytes) memcpy(r->text + r->bytes, text, bytes);
  r->bytes += bytes;
  const size_t stop = find_stop(r, r->ready); /* none begins earlier: that text was let go because none could */
  if (stop < r->bytes) {
    r->bytes = r->ready = stop;
    r->finish = CLI_AT_STOP;
  } else {
    r->ready = r->bytes - held_back(r);
  }
  return CLI_OK;
}

static int add_token(cli_session *s, cli_reply *r, int32_t id) {
  void *array = r->ids.id;
  if (!grow(&array, &r->ids_capacity, r->ids.count + 1, sizeof id))
    return cli_refuse(s, CLI_NO_MEMORY, "out of memory for the reply");
  r->ids.id = array;
  r->ids.id[r->ids.count++] = id;
  if (!r->stream) return CLI_OK;
  const char *text;
  size_t bytes;
  const rung_status status = rung_stream_push(r->stream, id, &s->error, &text, &bytes);
  if (status) return cli_fail(s, CLI_ON_RUN, status, NULL);
  return add_text(s, r, text, bytes);
}

/* What still waits in the stream may end with a stop text too. */
static int end(cli_session *s, cli_reply *r) {
  if (r->finish != CLI_AT_STOP && r->stream) {
    const char *text;
    size_t bytes;
    const rung_status status = rung_stream_end(r->stream, &s->error, &text, &bytes);
    if (status) return cli_fail(s, CLI_ON_RUN, status, NULL);
    const int code = add_text(s, r, text, bytes);
    if (code) return code;
  }
  r->ready = r->bytes;
  return CLI_OK;
}

int cli_reply_take(cli_session *s, cli_reply *r, rung_generator *g, const rung_token *token, int64_t context) {
  const cli_options *o = s->options;
  if (o->predict) {
    int code = cli_logprobs_add(s, &r->logprobs, g, token);
    if (!code) code = add_token(s, r, token->id);
    if (code) return code;
  }
  if (!r->finish) {
    if (o->predict && token->end && !o->ignore_eos)
      r->finish = CLI_AT_END;
    else if (o->predict >= 0 && (int64_t)r->ids.count >= o->predict)
      r->finish = CLI_AT_LIMIT;
    else if (o->keep < 0 && rung_generator_length(g, token->slot) >= context)
      r->finish = CLI_AT_CONTEXT;
  }
  if (r->finish) {
    rung_generator_pause(g, token->slot);
    return end(s, r);
  }
  if (!token->end) return CLI_OK;
  const rung_status status = rung_generator_prompt(g, token->slot, &token->id, 1); /* read like any other */
  return status ? cli_fail(s, CLI_ON_RUN, status, rung_generator_message(g)) : CLI_OK;
}

void cli_reply_print(const cli_session *s, const cli_reply *r, cli_json *json) {
  static const char *const names[] = {"", "end", "stop", "limit", "context", "interrupt"};
  if (r->stream)
    cli_json_text(json, "text", r->text ? r->text : "", r->ready);
  else
    cli_json_string(json, "text", NULL);
  cli_json_ids(json, "ids", r->ids.id, r->ids.count);
  if (s->options->logprobs) cli_logprobs_print(&r->logprobs, json);
  cli_json_string(json, "finish", names[r->finish]);
}

void cli_reply_free(cli_reply *r) {
  rung_stream_destroy(r->stream);
  cli_logprobs_free(&r->logprobs);
  free(r->ids.id);
  free(r->text);
}
