/* SPDX-License-Identifier: MIT
 * rung inspect: what is in a file, and what compiling makes of it. */
#include "inspect.h"

#include <inttypes.h>
#include <rung/embed.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "runtime/runtime.h"

static bool wants_compile(const cli_options *o) {
  return o->graph || o->plan || o->memory_report || o->kernels || o->fused;
}

static void show_text(const cli_inspection *i, const char *key, char *text, size_t bytes) {
  if (i->json) {
    cli_json_text(i->json, key, text, bytes);
  } else {
    fwrite(text, 1, bytes, stdout);
    if (bytes && text[bytes - 1] != '\n') printf("\n");
  }
  rung_text_free(i->session->host, text, bytes);
}

static void show_memory(const cli_inspection *i, const cli_compiled *c) {
  const rung_memory *m = &c->memory;
  const uint64_t copied = c->view ? rung_view_copied(c->view, c->program) : 0;
  static const char *const docs[] = {
#define X(name, text) text,
      RUNG_MEMORY_MAP(X)
#undef X
  };
  if (i->json) cli_json_open(i->json, "memory", '{');
  int row = 0;
#define X(name, text)                                               \
  if (i->json)                                                      \
    cli_json_bytes(i->json, #name, m->name);                        \
  else if (strcmp(#name, "host") != 0)                              \
    printf("%-12s %14" PRIu64 "  %s\n", #name, m->name, docs[row]); \
  row++;
  RUNG_MEMORY_MAP(X)
#undef X
  if (i->json)
    cli_json_bytes(i->json, "total", cli_total(m));
  else
    printf("%-12s %14" PRIu64 "\n", "total", cli_total(m));
  if (c->view && i->json)
    cli_json_bytes(i->json, "copied_weights", copied);
  else if (copied)
    printf("of the weights %12" PRIu64 "  are copied, being small or where kernels cannot read them\n", copied);
  if (i->json) cli_json_close(i->json, '}');
}

int cli_show_compiled(const cli_inspection *i, const cli_compiled *c) {
  const cli_options *o = i->session->options;
  rung_error *error = &i->session->error;
  char *text;
  size_t bytes;
  rung_status status = RUNG_OK;
  if (o->graph) {
    status = rung_template_print(c->template_, error, &text, &bytes);
    if (!status) show_text(i, "graph", text, bytes);
  }
  if (!status && o->fused) {
    status = rung_template_explain(c->template_, error, &text, &bytes);
    if (!status) show_text(i, "fused", text, bytes);
  }
  if (!status && o->plan) {
    status = rung_program_print(c->program, error, &text, &bytes);
    if (!status) show_text(i, "plan", text, bytes);
  }
  if (status) return cli_fail(i->session, CLI_ON_RUN, status, NULL);
  int code = CLI_OK;
  if (o->kernels) cli_show_kernels(i, c->program);
  if (o->kernels) code = cli_show_winners(i);
  if (o->memory_report) show_memory(i, c);
  return code;
}

/* ---- language models */

static int compile_encoder(const cli_inspection *i, rung_model *model, cli_compiled *c) {
  cli_session *s = i->session;
  rung_encoder_options o = rung_encoder_options_default();
  if (s->options->ubatch) o.rows = s->options->ubatch;
  o.longest = s->options->context;
  o.pooling = RUNG_POOLING_MEAN; /* the folder need not say */
  rung_status status = rung_encoder_compile(model, &o, &s->error, &c->template_, &c->program);
  const int64_t none = 0;
  const rung_lengths lengths = {1, &none, 1, 1, 0};
  const rung_binding binding[] = {{"rows", o.rows}, {"sequences", 1}};
  if (!status) status = rung_program_memory(c->program, binding, 2, &lengths, &s->error, &c->memory);
  return status ? cli_fail(s, CLI_ON_FLAGS, status, NULL) : CLI_OK;
}

static int compile_model(const cli_inspection *i, rung_model *model, cli_compiled *c) {
  cli_session *s = i->session;
  rung_generate_options o = cli_generate_options(s->options);
  o.context = cli_context(s->options, model, 0);
  rung_status status = rung_model_compile(model, &o, &s->error, &c->template_, &c->program);
  if (!status) {
    const rung_lengths lengths = {1, &o.context, o.context, o.chunk, 0};
    const rung_binding binding[] = {{"rows", o.chunk}, {"sequences", 1}, {"wanted", 1}};
    status = rung_program_memory(c->program, binding, 3, &lengths, &s->error, &c->memory);
  }
  return status ? cli_fail(s, CLI_ON_FLAGS, status, NULL) : CLI_OK;
}

static int inspect_model(const cli_inspection *i, cli_file kind) {
  const cli_options *o = i->session->options;
  if (o->bindings.count)
    return cli_refuse(i->session, CLI_USAGE, "--bind is for text graphs; a language model takes -c and --ubatch");
  int code = CLI_OK;
  if (!wants_compile(o) && !o->check) code = kind == CLI_FILE_GGUF ? cli_show_gguf(i) : cli_show_tensors(i);
  if (!code && wants_compile(o)) {
    rung_model *model = NULL;
    cli_compiled c = {0};
    code = cli_open_model(i->session, &model, NULL);
    rung_model_info info = {0};
    if (!code) rung_model_get_info(model, &info);
    if (!code) c.view = rung_model_view(model);
    if (!code) code = info.encoder ? compile_encoder(i, model, &c) : compile_model(i, model, &c);
    if (!code) code = cli_show_compiled(i, &c);
    rung_program_release(c.program);
    rung_template_release(c.template_);
    rung_model_release(model);
  }
  return code || !o->check ? code : cli_show_check(i);
}

/* ---- text graphs */

static int compile_graph(const cli_inspection *i, const rung_graph *graph, cli_compiled *c) {
  cli_session *s = i->session;
  cli_symbols symbols;
  const int code = cli_bind_symbols(s, graph, &symbols);
  if (code) return code;
  rung_compile_options o = cli_compile_options(s->options);
  rung_binding binding[RUNG_MAX_SYMBOLS];
  const size_t n = cli_bindings(graph, &symbols, binding);
  rung_status status = rung_template_create(s->device, graph, &o, &s->error, &c->template_);
  if (!status) status = rung_program_create(c->template_, binding, n, &s->error, &c->program);
  const int64_t none = 0;
  const rung_lengths lengths = {1, &none, 1, 1, 0};
  if (!status) status = rung_program_memory(c->program, binding, n, &lengths, &s->error, &c->memory);
  return status ? cli_fail(s, CLI_ON_FILE, status, NULL) : CLI_OK;
}

static int inspect_graph(const cli_inspection *i) {
  const cli_options *o = i->session->options;
  if (o->check)
    return cli_refuse(i->session, CLI_USAGE,
                      "--check looks at tensors of a model; a text graph has none (rung run --check compares devices)");
  rung_graph *graph = NULL;
  rung_weights *weights = NULL;
  rung_view *view = NULL;
  int code = cli_read_graph(i->session, &graph, &weights, &view);
  if (!code && !wants_compile(o)) cli_show_graph(i, graph);
  if (!code && wants_compile(o)) {
    cli_compiled c = {.view = view};
    code = compile_graph(i, graph, &c);
    if (!code) code = cli_show_compiled(i, &c);
    rung_program_release(c.program);
    rung_template_release(c.template_);
  }
  rung_view_release(view);
  rung_weights_release(weights);
  rung_graph_destroy(graph);
  return code;
}

/* ---- compiled files */

static int inspect_compiled(const cli_inspection *i) {
  cli_session *s = i->session;
  rung_compiled *compiled;
  int code = cli_open_compiled(s, &compiled);
  if (code) return code;
  if (!wants_compile(s->options)) {
    cli_show_manifest(i->json, compiled);
  } else {
    rung_compiled_info info;
    rung_compiled_get_info(compiled, &info);
    cli_compiled c = {.template_ = rung_compiled_template(compiled), .memory = info.memory};
    const rung_status status = rung_compiled_program(compiled, &s->error, &c.program);
    code = status ? cli_fail(s, CLI_ON_FILE, status, NULL) : cli_show_compiled(i, &c);
    rung_program_release(c.program);
  }
  rung_compiled_release(compiled);
  return code;
}

int cli_inspect(cli_session *s) {
  cli_file kind = CLI_FILE_GGUF;
  int code = cli_recognise(s, &kind);
  if (code) return code;
  cli_json json;
  if (s->options->json) json = cli_json_begin(stdout);
  const cli_inspection i = {s, s->options->json ? &json : NULL};
  code = kind == CLI_FILE_GRAPH      ? inspect_graph(&i)
         : kind == CLI_FILE_COMPILED ? inspect_compiled(&i)
                                     : inspect_model(&i, kind);
  if (s->options->json) cli_json_end(&json);
  return code;
}
