/* SPDX-License-Identifier: MIT
 * rung tune: measures what a model's kernels can choose among; and the listing of winners, which inspect shows too. */
#include <rung/embed.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "inspect.h"

/* ---- winners */

typedef struct listing {
  cli_json *json; /* NULL: plain text */
} listing;

static void show_winner(void *self, const rung_tune_winner *w) {
  const listing *l = self;
  if (!l->json) {
    printf("winner %s, bucket %u: %s\n", w->signature, w->bucket, w->tag);
    return;
  }
  cli_json_open(l->json, NULL, '{');
  cli_json_string(l->json, "signature", w->signature);
  cli_json_integer(l->json, "bucket", w->bucket);
  cli_json_string(l->json, "tag", w->tag);
  cli_json_integer(l->json, "tick", w->tick);
  cli_json_close(l->json, '}');
}

int cli_show_winners(const cli_inspection *i) {
  listing l = {.json = i->json};
  if (i->json) cli_json_open(i->json, "winners", '[');
  const rung_status status = rung_tune_winners(i->session->device, show_winner, &l, &i->session->error);
  if (i->json) cli_json_close(i->json, ']');
  return status ? cli_fail(i->session, CLI_ON_RUN, status, NULL) : CLI_OK;
}

/* ---- tuning */

/* The template, and the most rows of a run. */
static rung_status compile(cli_session *s, rung_model *model, rung_template **out_template, int64_t *out_rows) {
  rung_model_info info;
  rung_program *program = NULL;
  rung_status status;
  rung_model_get_info(model, &info);
  if (info.encoder) {
    rung_encoder_options o = rung_encoder_options_default();
    if (s->options->ubatch) o.rows = s->options->ubatch;
    o.pooling = RUNG_POOLING_MEAN; /* the folder need not say */
    *out_rows = o.rows;
    status = rung_encoder_compile(model, &o, &s->error, out_template, &program);
  } else {
    const rung_generate_options o = cli_generate_options(s->options);
    *out_rows = o.chunk;
    status = rung_model_compile(model, &o, &s->error, out_template, &program);
  }
  rung_program_release(program);
  return status;
}

static int report(cli_session *s, const rung_tune_report *r) {
  cli_json json;
  const cli_inspection i = {s, s->options->json ? &json : NULL};
  if (i.json) {
    json = cli_json_begin(stdout);
    cli_json_integer(&json, "kernels", r->kernels);
    cli_json_integer(&json, "sizes", r->sizes);
    cli_json_integer(&json, "candidates", r->candidates);
    cli_json_integer(&json, "refused", r->refused);
    cli_json_integer(&json, "recorded", r->recorded);
    cli_json_integer(&json, "changed", r->changed);
  } else {
    printf("%u kernels with candidates, %u sizes and %u candidates measured, %u of them refused; %u winners, %u new\n",
           r->kernels, r->sizes, r->candidates, r->refused, r->recorded, r->changed);
  }
  const int code = cli_show_winners(&i);
  if (i.json) cli_json_end(&json);
  return code;
}

int cli_tune(cli_session *s) {
  const cli_options *o = s->options;
  const char *folder = o->store ? o->store : getenv("RUNG_TUNE");
  rung_model *model = NULL;
  rung_template *template_ = NULL;
  if (!folder || !*folder) return cli_refuse(s, CLI_USAGE, "which folder? Give --dir DIR, or set RUNG_TUNE");
  const int code = cli_open_model(s, &model, NULL);
  if (code) return code;
  rung_tune_options t = rung_tune_options_default();
  rung_tune_report r = {0};
  t.keys = o->depth;
  t.repeats = (int)o->repeat;
  t.again = o->again;
  rung_binding ceiling[] = {{"rows", 1}, {"sequences", 1}};
  rung_status status = compile(s, model, &template_, &ceiling[0].value);
  if (!status) status = rung_tune(template_, ceiling, 2, &t, &s->error, &r);
  rung_template_release(template_);
  rung_model_release(model);
  return status ? cli_fail(s, CLI_ON_RUN, status, NULL) : report(s, &r);
}
