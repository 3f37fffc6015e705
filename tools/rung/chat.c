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
  cli_conversation said; /* ends with an answer, or the system prompt, between turns */
  int64_t context;
  uint64_t seed;
  bool terminal;
  char *line; /* of getline */
  size_t line_room;
} talk;

/* ---- reading a message */

static bool add(cli_bytes *in, const char *text, size_t bytes) {
  char *grown = realloc(in->data, in->bytes + bytes + 1);
  if (!grown) return false;
  memcpy(grown + in->bytes, text, bytes);
  in->data = grown;
  in->bytes += bytes;
  in->data[in->bytes] = 0;
  return true;
}

/* A line without its end (Windows' too); -1 at the end of the input, or when Ctrl-C ended the reading. */
static ssize_t read_line(talk *t, const char *sign) {
  if (t->terminal) fputs(sign, stderr);
  ssize_t bytes = getline(&t->line, &t->line_room, stdin);
  if (bytes > 0 && t->line[bytes - 1] == '\n') t->line[--bytes] = 0;
  if (bytes > 0 && t->line[bytes - 1] == '\r') t->line[--bytes] = 0;
  return bytes;
}

/* A message: a line, lines that end with a backslash and the next one, or those between two lines of """. Only the
 * last are no command, whatever they begin with. */
static int read_message(talk *t, cli_bytes *out, bool *out_command, bool *out_end) {
  static const char quotes[] = "\"\"\"";
  *out = (cli_bytes){0};
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
  if (block && out->bytes) out->data[--out->bytes] = 0; /* the line end in front of the closing quotes */
  if (cli_interrupted()) return CLI_INTERRUPTED;
  if (bytes < 0 && ferror(stdin)) return cli_refuse(t->s, CLI_FAILED, "standard input: %s", strerror(errno));
  *out_command = !block && out->bytes && out->data[0] == '/';
  *out_end = bytes < 0 && !out->bytes;
  return CLI_OK;
}

/* ---- answering */

/* An answer while it comes: the reply, and what --json tells besides. */
typedef struct answer {
  cli_reply reply;
  size_t tokens, kept; /* of the conversation; those that were not read again */
  double begun, first, last;
} answer;

/* The slot's text becomes this one; what it shares with what the slot holds is not read again. */
static int give(talk *t, const cli_ids *ids, answer *a) {
  if ((int64_t)ids->count > t->context && t->o->keep < 0)
    return cli_refuse(t->s, CLI_FAILED,
                      "the conversation has %zu tokens, the context %" PRId64 " positions; /reset, or raise -c",
                      ids->count, t->context);
  const rung_status status = rung_generator_set_text(t->generator, 0, ids->id, ids->count, &a->kept);
  if (status) return cli_fail(t->s, CLI_ON_RUN, status, rung_generator_message(t->generator));
  a->tokens = ids->count;
  if (t->o->verbose) cli_note(t->s, "%zu of %zu tokens are new", a->tokens - a->kept, a->tokens);
  return CLI_OK;
}

static int stream(talk *t, answer *a) {
  cli_reply *r = &a->reply;
  a->begun = a->first = a->last = cli_seconds();
  while (!r->finish) {
    rung_token token;
    size_t count;
    const size_t ready = r->ready;
    const rung_status status = rung_generator_step(t->generator, &token, &count, NULL);
    if (status == RUNG_CANCELLED || cli_interrupted()) {
      r->finish = CLI_AT_INTERRUPT;
      return CLI_INTERRUPTED;
    }
    if (status) return cli_fail(t->s, CLI_ON_RUN, status, rung_generator_message(t->generator));
    if (!count) continue;
    a->last = cli_seconds();
    if (a->first == a->begun) a->first = a->last;
    const int code = cli_reply_take(t->s, r, t->generator, &token, t->context);
    if (code) return code;
    if (t->o->json) continue;
    fwrite(r->text + ready, 1, r->ready - ready, stdout);
    fflush(stdout);
  }
  return CLI_OK;
}

static double rate(size_t tokens, double seconds) { return seconds > 0 ? (double)tokens / seconds : 0; }

static void print_answer(const talk *t, const answer *a) {
  if (t->o->json) {
    const size_t made = a->reply.ids.count;
    cli_json json = cli_json_begin(stdout);
    cli_reply_print(t->s, &a->reply, &json);
    cli_json_integer(&json, "prompt_tokens", (int64_t)a->tokens);
    cli_json_integer(&json, "kept_tokens", (int64_t)a->kept);
    cli_json_number(&json, "prompt_tokens_per_second", rate(a->tokens - a->kept, a->first - a->begun));
    cli_json_integer(&json, "decode_tokens", (int64_t)made);
    cli_json_number(&json, "decode_tokens_per_second", rate(made ? made - 1 : 0, a->last - a->first));
    cli_json_bytes(&json, "seed", t->seed);
    cli_json_end(&json);
  } else {
    printf("\n");
  }
  fflush(stdout);
  if (a->reply.finish == CLI_AT_CONTEXT) cli_note(t->s, "the context is full; /reset begins anew");
}

static int take_turn(talk *t, const cli_bytes *message, answer *a) {
  cli_ids ids;
  int code = cli_conversation_add(t->s, &t->said, "user", message->data, message->bytes);
  if (code) return code;
  code = cli_conversation_ids(t->s, t->model, &t->said, &ids);
  if (!code) code = give(t, &ids, a);
  free(ids.id);
  if (!code) code = cli_reply_begin(t->s, t->model, false, &a->reply);
  if (!code) code = stream(t, a);
  if (code && code != CLI_INTERRUPTED) return code;
  cli_interrupt_clear(); /* what was said so far counts */
  print_answer(t, a);
  return a->reply.ready ? cli_conversation_add(t->s, &t->said, "assistant", a->reply.text, a->reply.ready) : CLI_OK;
}

/* A turn that fails is said, and its message forgotten: the conversation before it stays. A terminal then waits for the
 * next message; where the messages come from a file the program ends. */
static int reply_to(talk *t, const cli_bytes *message) {
  const size_t before = t->said.count;
  answer a = {0};
  const int code = take_turn(t, message, &a);
  if (code || !a.reply.ready) cli_conversation_drop(&t->said, before);
  cli_reply_free(&a.reply);
  return t->terminal ? CLI_OK : code;
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
    const bool has_system = t->said.count && strcmp(t->said.message[0].role, "system") == 0;
    char *kept = has_system ? strdup(t->said.message[0].text.data) : NULL;
    if (has_system && !kept) return cli_refuse(t->s, CLI_NO_MEMORY, "out of memory for the system prompt");
    const int code = begin(t, kept);
    free(kept);
    return code;
  }
  (void)cli_refuse(
      t->s, CLI_USAGE,
      "\"%s\" is no command; there are /reset, /system TEXT and /quit. A message that begins with / stands "
      "between two lines of \"\"\"",
      text);
  return CLI_OK;
}

/* Messages of the command line come first. */
static int say_given(talk *t, int index) {
  const char *item = t->o->prompts.item[index];
  cli_bytes file = {0}, message = {(char *)(uintptr_t)item, strlen(item)};
  int code = CLI_OK;
  if (t->o->prompts.letter[index] == 'f') {
    code = cli_read_file(t->s, item, &file);
    message = file;
  }
  if (!code && !message.bytes) code = cli_refuse(t->s, CLI_USAGE, "an empty message");
  if (!code) code = reply_to(t, &message);
  free(file.data);
  return code;
}

static int converse(talk *t) {
  int code = CLI_OK;
  for (int i = 0; !code && i < t->o->prompts.count; i++) code = say_given(t, i);
  for (bool end = false, is_command = false; !code && !end;) {
    cli_bytes message;
    code = read_message(t, &message, &is_command, &end);
    if (!code && !end && message.bytes) code = is_command ? command(t, message.data, &end) : reply_to(t, &message);
    free(message.data);
  }
  if (t->terminal) fputc('\n', stderr);
  return code;
}

static int set_up(talk *t) {
  rung_chat_template *own;
  int code = cli_open_model(t->s, &t->model, NULL);
  if (code) return code;
  const rung_status status = rung_model_chat_template(t->model, NULL, &t->s->error, &own);
  if (status) return cli_fail_template(t->s, status);
  rung_chat_template_release(own);
  rung_generate_options o = cli_generate_options(t->o);
  cli_may_shift(t->o, &o);
  t->context = o.context = cli_context(t->o, t->model, 0);
  code = cli_open_generator(t->s, t->model, &o, &t->generator, NULL);
  t->seed = cli_seed(t->o);
  if (!code) code = cli_set_sampling(t->s, t->generator, 0, t->seed);
  return code ? code : cli_conversation_begin(t->s, &t->said, t->o->system);
}

int cli_chat(cli_session *s) {
  talk t = {.s = s, .o = s->options, .terminal = isatty(STDIN_FILENO)};
  int code = set_up(&t);
  if (!code && t.terminal)
    cli_note(s, "Ctrl-C ends an answer; a \\ at the end of a line goes on in the next; /reset, /system TEXT, /quit");
  if (!code) code = converse(&t);
  cli_close_generator(t.generator);
  cli_conversation_free(&t.said);
  free(t.line);
  rung_model_release(t.model);
  return code;
}
