/* SPDX-License-Identifier: MIT
 * ONNX models: opened with what must be known then. Axes and the like that depend on an input, or branches of different
 * ranks that depend on an extent, are fixed at the values that -i and --bind give; a note says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "formats/npy.h"
#include "formats/onnx/onnx.h"
#include "graph_file.h"

enum { MOST = CLI_MOST_PINS };

typedef struct pins {
  rung_onnx_pin pin[MOST];
  rung_npy file[MOST];
  int64_t number[MOST];
  size_t count;
} pins;

/* What stands behind NAME= in one of the items; NULL: nothing. */
static const char *given(const cli_texts *items, const char *name) {
  const size_t n = strlen(name);
  for (int i = 0; i < items->count; i++)
    if (strncmp(items->item[i], name, n) == 0 && items->item[i][n] == '=') return items->item[i] + n + 1;
  return NULL;
}

/* The name that a refusal ends with is fixed, if there is a value for it. */
static bool pin(cli_session *s, pins *p) {
  const char *colon = strrchr(s->error.message, ':');
  if (!colon || p->count == MOST) return false;
  char *name = s->pinned[p->count];
  snprintf(name, sizeof s->pinned[0], "%s", colon + 2);
  for (size_t i = 0; i < p->count; i++)
    if (strcmp(s->pinned[i], name) == 0) return false;
  const char *file = given(&s->options->inputs, name), *number = given(&s->options->bindings, name), *end;
  rung_onnx_pin *one = &p->pin[p->count];
  if (file) {
    const rung_source source = rung_source_path(file);
    rung_npy *npy = &p->file[p->count];
    if (rung_npy_open(npy, s->host, &source, &s->error)) return false;
    one->value = rung_tensor_dense(npy->type, npy->rank, npy->extent, (void *)(uintptr_t)npy->data);
  } else if (number && rung_parse_i64(number, NULL, &p->number[p->count], &end) && !*end) {
    one->value = rung_tensor_dense(RUNG_TYPE_I64, 0, NULL, &p->number[p->count]);
  } else {
    return false;
  }
  one->name = name;
  p->count++;
  cli_note(s, "%s is fixed for this graph, which depends on it", name);
  return true;
}

bool cli_is_pinned(const cli_session *s, const char *item) {
  for (int i = 0; i < CLI_MOST_PINS && s->pinned[i][0]; i++) {
    const size_t n = strlen(s->pinned[i]);
    if (strncmp(item, s->pinned[i], n) == 0 && item[n] == '=') return true;
  }
  return false;
}

int cli_read_onnx(cli_session *s, rung_graph **out_graph, rung_weights **out_weights, rung_view **out_view) {
  const rung_source source = cli_source(s);
  rung_onnx model = {0};
  rung_text missing;
  rung_status status;
  pins *p = calloc(1, sizeof *p);
  if (!p) return cli_refuse(s, CLI_NO_MEMORY, "out of memory");
  memset(s->pinned, 0, sizeof s->pinned);
  rung_text_init(&missing, s->host);
  do {
    const rung_onnx_options options = {.pin = p->pin, .pins = p->count};
    missing.length = 0;
    status = rung_onnx_open(s->host, &source, &options, &missing, &s->error, &model);
  } while (status == RUNG_NOT_FOUND && pin(s, p));
  if (p->count < MOST) s->pinned[p->count][0] = 0;
  if (missing.length) fwrite(missing.data, 1, missing.length, stderr); /* a line each */
  rung_text_finish(&missing);
  for (size_t i = 0; i < p->count; i++) rung_npy_close(&p->file[i]);
  free(p);
  if (status == RUNG_NOT_FOUND) status = RUNG_UNSUPPORTED;
  if (status) return cli_refuse(s, cli_exit_code(CLI_ON_FILE, status), "%s: %s", s->options->model, s->error.message);
  *out_graph = model.graph;
  *out_weights = model.weights;
  status = rung_view_create(model.weights, &s->error, out_view);
  return status ? cli_fail(s, CLI_ON_FILE, status, NULL) : CLI_OK;
}
