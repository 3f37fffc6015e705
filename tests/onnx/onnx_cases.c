/* SPDX-License-Identifier: MIT
 * Runs operator cases of the onnx package, many in one process; scripts/onnx_cases.py makes and feeds them.
 *
 * A line of standard input is a case: name, path of PATH.onnx and PATH.data, relative and absolute tolerance, with tabs
 * between them. A line of output: name, pass, fail or refused, message. PATH.data is one record a tensor: 1 byte, output
 * or input; lengths of name (2 bytes) and type (1); both; rank (1); extents (8 each); bytes (8); the bytes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/onnx/onnx.h"
#include "ir/args.h"
#include "rung/rung.h"

enum { MOST_TENSORS = 64, MOST_PINS = 16 };

typedef struct given {
  bool output;
  char name[512];
  rung_tensor tensor;
} given;

typedef struct world {
  rung_host *host;
  rung_device *device;
  given tensor[MOST_TENSORS];
  int tensors;
  uint8_t *data;
  char message[RUNG_MESSAGE_BYTES + 64];
} world;

static uint8_t *read_all(const char *path, size_t *out_bytes) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  const long bytes = ftell(f);
  rewind(f);
  uint8_t *data = malloc((size_t)bytes + 1);
  *out_bytes = data ? fread(data, 1, (size_t)bytes, f) : 0;
  fclose(f);
  return data;
}

static bool parse(world *w, size_t bytes) {
  w->tensors = 0;
  for (size_t at = 0; at < bytes;) {
    if (w->tensors == MOST_TENSORS) return false;
    given *g = &w->tensor[w->tensors++];
    memset(g, 0, sizeof *g);
    char type[16] = "";
    uint16_t length;
    g->output = w->data[at];
    memcpy(&length, w->data + at + 1, 2);
    const uint8_t type_length = w->data[at + 3];
    at += 4;
    memcpy(g->name, w->data + at, length < 511 ? length : 511);
    at += length;
    memcpy(type, w->data + at, type_length < 15 ? type_length : 15);
    at += type_length;
    const int rank = w->data[at++];
    int64_t extent[256];
    memcpy(extent, w->data + at, (size_t)rank * 8);
    at += (size_t)rank * 8;
    uint64_t size;
    memcpy(&size, w->data + at, 8);
    at += 8;
    rung_type t;
    if (rank > RUNG_MAX_RANK || !rung_type_find(type, &t)) {
      snprintf(w->message, sizeof w->message, "a tensor of %d axes of %s", rank, type);
      return false;
    }
    void *copy = aligned_alloc(64, (size + 64) / 64 * 64);
    memcpy(copy, w->data + at, size);
    g->tensor = rung_tensor_dense(t, rank, extent, copy);
    at += size;
  }
  return true;
}

static void drop(world *w) {
  for (int i = 0; i < w->tensors; i++) free(w->tensor[i].tensor.data);
  w->tensors = 0;
  free(w->data);
  w->data = NULL;
}

static given *find(world *w, const char *name, bool output) {
  for (int i = 0; i < w->tensors; i++)
    if (w->tensor[i].output == output && strcmp(w->tensor[i].name, name) == 0) return &w->tensor[i];
  return NULL;
}

/* ---- comparing, as the package's own runner does: within absolute + relative * |expected|, NaN equals NaN */

static bool same(world *w, const given *g, const rung_tensor *got, double relative, double absolute) {
  const rung_tensor *want = &g->tensor;
  char shape[2][160] = {"", ""};
  bool equal = got->type == want->type && got->rank == want->rank;
  for (int i = 0; i < 2; i++) {
    const rung_tensor *t = i ? want : got;
    for (int d = 0; d < t->rank; d++)
      snprintf(shape[i] + strlen(shape[i]), sizeof shape[i] - strlen(shape[i]), "%s%" PRId64, d ? "," : "",
               t->extent[d]);
  }
  equal = equal && strcmp(shape[0], shape[1]) == 0;
  if (!equal) {
    snprintf(w->message, sizeof w->message, "output %s is %s[%s] instead of %s[%s]", g->name, rung_type_name(got->type),
             shape[0], rung_type_name(want->type), shape[1]);
    return false;
  }
  int64_t n = 1;
  for (int d = 0; d < want->rank; d++) n *= want->extent[d];
  const rung_operand a = {.base = got->data, .type = (uint8_t)got->type},
                     b = {.base = want->data, .type = (uint8_t)want->type};
  const rung_type_row *row = rung_type_get(got->type);
  const bool whole = row->class_ == RUNG_CLASS_INT || row->class_ == RUNG_CLASS_UINT || row->class_ == RUNG_CLASS_BOOL;
  for (int64_t i = 0; i < n; i++) {
    const double x = rung_load_f64(&a, i), y = rung_load_f64(&b, i);
    bool good = whole ? rung_load_i64(&a, i) == rung_load_i64(&b, i) : x == y || (isnan(x) && isnan(y));
    if (!good && !whole) good = isfinite(x) && isfinite(y) && fabs(x - y) <= absolute + relative * fabs(y);
    if (good) continue;
    snprintf(w->message, sizeof w->message, "output %s[%" PRId64 "] is %.9g instead of %.9g", g->name, i, x, y);
    return false;
  }
  return true;
}

/* ---- one case */

static const char *run(world *w, const rung_onnx *model, double relative, double absolute) {
  rung_error error = {RUNG_OK, ""};
  rung_template *made = NULL;
  rung_program *program = NULL;
  rung_view *view = NULL;
  rung_context *context = NULL;
  const char *state = "refused";
  w->message[0] = 0;
  rung_status status = rung_template_create(w->device, model->graph, NULL, &error, &made);
  if (!status) status = rung_program_create(made, NULL, 0, &error, &program);
  if (!status && rung_weights_count(model->weights)) status = rung_view_create(model->weights, &error, &view);
  if (!status) status = rung_context_create(made, view, NULL, NULL, &error, &context);
  if (!status) status = rung_context_use(context, program);
  for (int i = 0; !status && i < rung_program_inputs(program); i++) {
    const given *g = find(w, rung_program_input_name(program, i), false);
    if (!g) {
      status = RUNG_NOT_FOUND;
      snprintf(error.message, sizeof error.message, "no data for input %s", rung_program_input_name(program, i));
      break;
    }
    status = rung_context_bind_input(context, i, &g->tensor);
  }
  if (!status) status = rung_context_run(context);
  if (status) {
    snprintf(w->message, sizeof w->message, "%s",
             context && !error.message[0] ? rung_context_message(context) : error.message);
  } else {
    state = "pass";
    for (int i = 0; i < w->tensors; i++) {
      if (!w->tensor[i].output) continue;
      const int slot = rung_program_find_output(program, w->tensor[i].name);
      rung_tensor got;
      if (slot < 0 || rung_context_output(context, slot, &got)) {
        snprintf(w->message, sizeof w->message, "there is no output %s", w->tensor[i].name);
        state = "fail";
        break;
      }
      if (!same(w, &w->tensor[i], &got, relative, absolute)) {
        state = "fail";
        break;
      }
    }
  }
  rung_context_destroy(context);
  rung_view_release(view);
  rung_program_release(program);
  rung_template_release(made);
  return state;
}

/* Opens the model; inputs that must be known then are pinned, one after another. */
static rung_status open_pinned(world *w, const char *path, rung_onnx_pin *pin, size_t *pins, rung_error *error,
                               rung_onnx *out) {
  const rung_source source = rung_source_path(path);
  for (;;) {
    const rung_onnx_options options = {.pin = pin, .pins = *pins};
    const rung_status status = rung_onnx_open(w->host, &source, &options, NULL, error, out);
    if (status != RUNG_NOT_FOUND || *pins == MOST_PINS) return status;
    const char *colon = strrchr(error->message, ':');
    given *g = colon ? find(w, colon + 2, false) : NULL;
    for (size_t i = 0; g && i < *pins; i++)
      if (strcmp(pin[i].name, g->name) == 0) g = NULL;
    if (!g) return status;
    pin[(*pins)++] = (rung_onnx_pin){g->name, g->tensor};
  }
}

static void run_case(world *w, const char *name, const char *base, double relative, double absolute) {
  char path[4096];
  size_t bytes = 0, pins = 0;
  rung_onnx_pin pin[MOST_PINS];
  rung_onnx model = {0};
  rung_error error = {RUNG_OK, ""};
  const char *state = "refused";
  snprintf(path, sizeof path, "%s.data", base);
  w->data = read_all(path, &bytes);
  w->message[0] = 0;
  if (w->data && parse(w, bytes)) {
    snprintf(path, sizeof path, "%s.onnx", base);
    if (open_pinned(w, path, pin, &pins, &error, &model)) {
      snprintf(w->message, sizeof w->message, "%s", error.message);
    } else {
      state = run(w, &model, relative, absolute);
      if (pins && strcmp(state, "pass") == 0) snprintf(w->message, sizeof w->message, "pinned %zu", pins);
    }
  }
  rung_onnx_close(&model);
  drop(w);
  for (char *p = w->message; *p; p++)
    if (*p == '\n' || *p == '\t') *p = ' ';
  printf("%s\t%s\t%s\n", name, state, w->message);
  fflush(stdout);
}

int main(int argc, char **argv) {
  static world w;
  char line[8192];
  rung_error error;
  rung_device_options options = rung_device_options_default();
  options.threads = 1;
  if (rung_host_create(NULL, &error, &w.host) ||
      rung_device_create(w.host, argc > 1 ? argv[1] : "cpu", &options, &error, &w.device)) {
    fprintf(stderr, "onnx_cases: %s\n", error.message);
    return 1;
  }
  while (fgets(line, sizeof line, stdin)) {
    char *part[4] = {line};
    for (int i = 1; i < 4; i++) {
      part[i] = strchr(part[i - 1], '\t');
      if (!part[i]) return 2;
      *part[i]++ = 0;
    }
    run_case(&w, part[0], part[1], strtod(part[2], NULL), strtod(part[3], NULL));
  }
  rung_device_release(w.device);
  rung_host_release(w.host);
  return 0;
}
