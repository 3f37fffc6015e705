/* SPDX-License-Identifier: MIT
 * rung chat: a conversation. What was read stays in the state; a turn reads what its text adds. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <rung/chat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "conversation.h"
#include "reply.h"
#include "sampling.h"

typedef struct talk {
  cli_session *s;
  const cli_options *o;
  rung_model *model;
  rung_generator *generator;
  cli_conversation said;
  int64_t context;
  bool terminal;
  char *line; /* of getline */
  size_t line_room;
} talk;

/* ---- reading a message */

typedef struct input {
  char *text; /* malloc; terminated */
  size_t bytes;
} input;

static bool add(input *in, const char *text, size_t bytes) {
  char *grown = realloc(in->text, in->bytes + bytes + 1);
  if (!grown) return false;
  memcpy(grown + in->bytes, text, bytes);
  in->text = grown;
  in->bytes += bytes;
  in->text[in->bytes] = 0;
  return true;
}

/* A line without its end; -1 at the end of the input, or when Ctrl-C ended the reading. */
static ssize_t read_line(talk *t, const char *sign) {
  if (t->terminal) fputs(sign, stderr);
  ssize_t bytes = getline(&t->line, &t->line_room, stdin);
  if (bytes > 0 && t->line[bytes - 1] == '\n') t->line[--bytes] = 0;
  return bytes;
}

/* A message: a line, lines that end with a backslash and the next one, or those between two lines of """. */
static int read_message(talk *t, input *out, bool *out_end) {
  static const char quotes[] = "\"\"\"";
  *out = (input){0};
  *out_end = false;
  ssize_t bytes = read_line(t, "> ");
  const bool block = bytes >= 0 && strcmp(t->line, quotes) == 0;
  if (block) bytes = read_line(t, ". ");
  while (bytes >= 0) {
    if (block && strcmp(t->line, quotes) == 0) break;
    const bool more = block || (bytes > 0 && t->line[bytes - 1] == '\\');
    const size_t keep = (size_t)bytes - (!block && more);
    if (!add(out, t->line, keep) || (more && !add(out, "\n", 1)))
      return cli_refuse(t->s, CLI_NO_MEMORY, "out of memory for the message");
    if (!more) break;
    bytes = read_line(t, ". ");
  }
  if (block && out->bytes) out->text[--out->bytes] = 0; /* the line end in front of the closing quotes */
  if (cli_interrupted()) return CLI_INTERRUPTED;
  if (bytes < 0 && ferror(stdin)) return cli_refuse(t->s, CLI_FAILED, "standard input: %s", strerror(errno));
  *out_end = bytes < 0 && !out->bytes;
  return CLI_OK;
}

/* ---- answering */

/* The slot's text becomes this one; what it shares with what the slot holds is not read again. */
static int give(talk *t, const cli_ids *ids) {
  size_t kept = 0;
  const rung_status status = rung_generator_set_text(t->generator, 0, ids->id, ids->count, &kept);
  if (status) return cli_fail(t->s, CLI_ON_RUN, status, rung_generator_message(t->generator));
  if (t->o->verbose) cli_note(t->s, "%zu of %zu tokens are new", ids->count - kept, ids->count);
  return CLI_OK;
}

static int stream(talk *t, cli_reply *r) {
  rung_token token;
  size_t count;
  bool busy = true;
  while (!r->finish && busy) {
    const size_t ready = r->ready;
    const rung_status status = rung_generator_step(t->generator, &token, &count, &busy);
    if (status == RUNG_CANCELLED || cli_interrupted()) return CLI_INTERRUPTED;
    if (status) return cli_fail(t->s, CLI_ON_RUN, status, rung_generator_message(t->generator));
    if (!count) continue;
    int code = cli_reply_add(t->s, r, token.id);
    if (!r->finish && token.end) r->finish = CLI_AT_END;
    if (!r->finish && t->o->predict >= 0 && (int64_t)r->ids.count >= t->o->predict) r->finish = CLI_AT_LIMIT;
    if (!r->finish && !busy) r->finish = CLI_AT_CONTEXT;
    if (!code && r->finish) code = cli_reply_end(t->s, r);
    if (code) return code;
    fwrite(r->text + ready, 1, r->ready - ready, stdout);
    fflush(stdout);
  }
  return CLI_OK;
}

/* A turn. What the template or the context refuses is said, and the message forgotten. */
static int answer(talk *t, const input *message) {
  const size_t before = t->said.count;
  cli_ids ids = {0};
  int code = cli_conversation_add(t->s, &t->said, "user", message->text, message->bytes);
  if (!code && cli_conversation_ids(t->s, t->model, &t->said, &ids)) {
    cli_conversation_drop(&t->said, before);
    free(ids.id);
    return t->terminal ? CLI_OK : CLI_FAILED;
  }
  if (!code && (int64_t)ids.count >= t->context) {
    cli_conversation_drop(&t->said, before);
    code = cli_refuse(t->s, CLI_FAILED,
                      "the conversation has %zu tokens, the context %" PRId64 " positions; /reset, or raise -c",
                      ids.count, t->context);
    free(ids.id);
    return t->terminal ? CLI_OK : code;
  }
  if (!code) code = give(t, &ids);
  free(ids.id);
  cli_reply reply = {0};
  if (!code) code = cli_reply_begin(t->s, t->model, false, &reply);
  if (!code) code = stream(t, &reply);
  if (code == CLI_INTERRUPTED) { /* what was said so far counts */
    cli_interrupt_clear();
    code = CLI_OK;
  }
  if (!code) {
    printf("\n");
    fflush(stdout);
    if (reply.finish == CLI_AT_CONTEXT) cli_note(t->s, "the context is full; /reset begins anew");
    if (reply.ready)
      code = cli_conversation_add(t->s, &t->said, "assistant", reply.text, reply.ready);
    else
      cli_conversation_drop(&t->said, before);
  }
  cli_reply_free(&reply);
  return code;
}

/* ---- commands */

static int begin(talk *t, const char *system) {
  const rung_status status = rung_generator_reset(t->generator, 0);
  if (status) return cli_fail(t->s, CLI_ON_RUN, status, rung_generator_message(t->generator));
  return cli_conversation_begin(t->s, &t->said, system);
}

static int command(talk *t, const char *text, bool *out_end) {
  static const char system[] = "/system ";
  if (strcmp(text, "/quit") == 0 || strcmp(text, "/exit") == 0) {
    *out_end = true;
    return CLI_OK;
  }
  if (strncmp(text, system, sizeof system - 1) == 0) return begin(t, text + sizeof system - 1);
  if (strcmp(text, "/reset") == 0) {
    char *kept =
        t->said.count && strcmp(t->said.message[0].role, "system") == 0 ? strdup(t->said.message[0].text.data) : NULL;
    const int code = begin(t, kept);
    free(kept);
    return code;
  }
  cli_note(t->s, "there is /reset, /system TEXT and /quit");
  return CLI_OK;
}

static int converse(talk *t) {
  int code = CLI_OK;
  for (bool end = false; !code && !end;) {
    input message;
    code = read_message(t, &message, &end);
    if (!code && !end && message.bytes)
      code = message.text[0] == '/' ? command(t, message.text, &end) : answer(t, &message);
    free(message.text);
  }
  if (t->terminal) fputc('\n', stderr);
  return code;
}

static int set_up(talk *t) {
  enum { USUAL = 4096 };
  rung_model_info info;
  rung_chat_template *own;
  int code = cli_open_model(t->s, &t->model, NULL);
  if (code) return code;
  const rung_status status = rung_model_chat_template(t->model, NULL, &t->s->error, &own);
  if (status) return cli_fail(t->s, CLI_ON_FILE, status, NULL);
  rung_chat_template_release(own);
  rung_model_get_info(t->model, &info);
  rung_generate_options o = cli_generate_options(t->o);
  if (!o.context) o.context = info.context < USUAL ? info.context : USUAL;
  t->context = o.context;
  code = cli_open_generator(t->s, t->model, &o, &t->generator, NULL);
  const uint64_t seed = t->o->seed >= 0 ? (uint64_t)t->o->seed : rung_trace_now() & 0xFFFFFFFF;
  if (!code) code = cli_set_sampling(t->s, t->generator, 0, seed);
  return code ? code : cli_conversation_begin(t->s, &t->said, t->o->system);
}

int cli_chat(cli_session *s) {
  talk t = {.s = s, .o = s->options, .terminal = isatty(STDIN_FILENO)};
  int code = set_up(&t);
  if (!code && t.terminal)
    cli_note(s, "Ctrl-C ends an answer; a \\ at the end of a line goes on in the next; /quit ends");
  if (!code) code = converse(&t);
  cli_close_generator(t.generator);
  cli_conversation_free(&t.said);
  free(t.line);
  rung_model_release(t.model);
  return code;
}
