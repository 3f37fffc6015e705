/* SPDX-License-Identifier: MIT
 * rung compile: a compiled file of a text graph or a model. */
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "inspect.h"

static void show_tensors(cli_json *json, const rung_compiled *c, rung_compiled_kind kind, const char *word) {
  rung_compiled_tensor t;
  if (json) cli_json_open(json, word, '[');
  for (size_t i = 0; rung_compiled_at(c, kind, i, &t); i++) {
    if (!json) {
      printf("%-8s %s %s[%s]%s%s\n", word, t.name, rung_type_name(t.type), t.extents, t.hash[0] ? "  " : "", t.hash);
      continue;
    }
    cli_json_open(json, NULL, '{');
    cli_json_string(json, "name", t.name);
    cli_json_string(json, "type", rung_type_name(t.type));
    cli_json_string(json, "extents", t.extents);
    if (t.hash[0]) cli_json_string(json, "hash", t.hash);
    cli_json_close(json, '}');
  }
  if (json) cli_json_close(json, ']');
}

void cli_show_manifest(cli_json *json, const rung_compiled *c) {
  rung_compiled_info info;
  rung_compiled_get_info(c, &info);
  if (json) {
    cli_json_string(json, "device", info.device);
    cli_json_string(json, "version", info.version);
    cli_json_string(json, "key", info.key);
    cli_json_bool(json, "packed", info.packed);
    cli_json_open(json, "ceiling", '{');
    for (size_t i = 0; i < info.ceilings; i++) cli_json_integer(json, info.ceiling[i].symbol, info.ceiling[i].value);
    cli_json_close(json, '}');
  } else {
    printf("device   %s\nversion  %s\nkey      %s\nweights  %s\n", info.device, info.version, info.key,
           info.packed    ? "in the file, packed"
           : info.weights ? "brought by whoever runs it"
                          : "none");
    for (size_t i = 0; i < info.ceilings; i++)
      printf("ceiling  %s %" PRId64 "\n", info.ceiling[i].symbol, info.ceiling[i].value);
  }
  show_tensors(json, c, RUNG_COMPILED_INPUT, "input");
  show_tensors(json, c, RUNG_COMPILED_OUTPUT, "output");
  show_tensors(json, c, RUNG_COMPILED_WEIGHT, "weight");
}

int cli_compile(cli_session *s) {
  cli_work work;
  int code = cli_compile_any(s, &work);
  if (!code && work.compiled) code = cli_refuse(s, CLI_USAGE, "%s is compiled already", s->options->model);
  if (!code && s->options->pack && !work.view)
    code = cli_refuse(s, CLI_USAGE, "--pack: %s has no weights; name them with --weights FILE", s->options->model);
  if (!code) {
    const rung_status status =
        rung_compiled_write(work.program, s->options->pack ? work.view : NULL, s->options->output, &s->error);
    if (status) code = cli_fail(s, status == RUNG_IO ? CLI_ON_RUN : CLI_ON_FILE, status, NULL);
  }
  cli_progress(s, "pack", 1, 1);
  if (!code && s->options->json) { /* what is in it, read back */
    rung_compiled *c;
    const rung_source source = rung_source_path(s->options->output);
    const rung_status status = rung_compiled_open(s->device, &source, &s->error, &c);
    if (status) {
      code = cli_fail(s, CLI_ON_RUN, status, NULL);
    } else {
      cli_json json = cli_json_begin(stdout);
      cli_show_manifest(&json, c);
      cli_json_end(&json);
      rung_compiled_release(c);
    }
  } else if (!code) {
    cli_note(s, "%s", s->options->output);
  }
  cli_release_work(&work);
  return code;
}
