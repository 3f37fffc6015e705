/* SPDX-License-Identifier: MIT
 * Tensors of safetensors files and of model folders. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inspect.h"

static void print_tensors(const cli_session *s, const rung_weights *weights) {
  const size_t count = rung_weights_count(weights);
  rung_weights_info info;
  uint64_t bytes = 0;
  for (size_t i = 0; rung_weights_at(weights, i, &info); i++) bytes += info.bytes;
  printf("%s: safetensors, %zu tensors of %.2f MB\ntensors:\n", s->options->model, count, (double)bytes * 1e-6);
  for (size_t i = 0; rung_weights_at(weights, i, &info); i++) {
    char shape[160];
    cli_shape_text(info.rank, info.extent, shape, sizeof shape);
    printf("  %-44s %-6s %-16s %12" PRIu64 " bytes\n", info.name, rung_type_name(info.type), shape, info.bytes);
  }
}

static void json_tensors(cli_json *j, const rung_weights *weights) {
  rung_weights_info info;
  cli_json_string(j, "format", "safetensors");
  cli_json_open(j, "tensors", '[');
  for (size_t i = 0; rung_weights_at(weights, i, &info); i++)
    cli_json_tensor(j, info.name, strlen(info.name), info.type, info.rank, info.extent, info.bytes);
  cli_json_close(j, ']');
}

int cli_show_tensors(const cli_inspection *i) {
  const rung_source source = cli_source(i->session);
  rung_weights *weights;
  const rung_status status = rung_weights_open(i->session->host, &source, NULL, &i->session->error, &weights);
  if (status) return cli_fail(i->session, CLI_ON_FILE, status, NULL);
  if (i->json)
    json_tensors(i->json, weights);
  else
    print_tensors(i->session, weights);
  rung_weights_release(weights);
  return CLI_OK;
}
