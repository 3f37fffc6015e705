/* SPDX-License-Identifier: MIT
 * A GGUF file as it is: metadata, tensors, and whether their numbers are numbers. */
#include <inttypes.h>
#include <stdio.h>

#include "formats/gguf.h"
#include "inspect.h"

enum { SHOWN = 6, LISTED = 64 }; /* elements of an array: in text, in JSON */

/* ---- text */

/* On one line, cut at 100 bytes; what a terminal would act on is a dot. */
static void print_text(rung_gguf_text t) {
  const int n = (int)(t.length < 100 ? t.length : 100);
  printf("\"");
  for (int i = 0; i < n; i++) {
    const unsigned char c = (unsigned char)t.data[i];
    if (c == '\n')
      printf("\\n");
    else
      putchar(c < 0x20 || c == 0x7F ? '.' : c);
  }
  printf(t.length > 100 ? "...\"" : "\"");
}

static void print_element(const rung_gguf_entry *e, uint64_t i) {
  switch (e->kind) {
    case RUNG_GGUF_STRING:
      print_text(rung_gguf_entry_text(e, i));
      break;
    case RUNG_GGUF_F32:
    case RUNG_GGUF_F64:
      printf("%.9g", rung_gguf_entry_f64(e, i));
      break;
    case RUNG_GGUF_BOOL:
      printf(rung_gguf_entry_i64(e, i) ? "true" : "false");
      break;
    case RUNG_GGUF_U64:
      printf("%" PRIu64, (uint64_t)rung_gguf_entry_i64(e, i));
      break;
    default:
      printf("%" PRId64, rung_gguf_entry_i64(e, i));
      break;
  }
}

static void print_entry(const rung_gguf_entry *e) {
  char type[48];
  if (e->array)
    snprintf(type, sizeof type, "%s[%" PRIu64 "]", rung_gguf_kind_name(e->kind), e->count);
  else
    snprintf(type, sizeof type, "%s", rung_gguf_kind_name(e->kind));
  printf("  %-44.*s %-15s ", (int)e->key.length, e->key.data, type);
  for (uint64_t i = 0; i < e->count && i < SHOWN; i++) {
    if (i) printf(", ");
    print_element(e, i);
  }
  printf(e->count > SHOWN ? ", ...\n" : "\n");
}

void cli_shape_text(int rank, const int64_t *extent, char *out, size_t bytes) {
  size_t used = (size_t)snprintf(out, bytes, "[");
  for (int i = 0; i < rank && used < bytes; i++)
    used += (size_t)snprintf(out + used, bytes - used, "%s%" PRId64, i ? "," : "", extent[i]);
  if (used < bytes) snprintf(out + used, bytes - used, "]");
}

static void print_all(const cli_session *s, const rung_gguf *gguf) {
  const size_t keys = rung_gguf_key_count(gguf), tensors = rung_gguf_tensor_count(gguf);
  uint64_t bytes = 0;
  for (size_t i = 0; i < tensors; i++) bytes += rung_gguf_tensor_at(gguf, i)->bytes;
  printf("%s: GGUF version %" PRIu32 ", %zu keys, %zu tensors of %.2f MB\n", s->options->model, rung_gguf_version(gguf),
         keys, tensors, (double)bytes * 1e-6);
  printf("metadata:\n");
  for (size_t i = 0; i < keys; i++) {
    const rung_gguf_entry e = rung_gguf_key_at(gguf, i);
    print_entry(&e);
  }
  printf("tensors:\n");
  for (size_t i = 0; i < tensors; i++) {
    const rung_gguf_tensor *t = rung_gguf_tensor_at(gguf, i);
    char shape[96];
    cli_shape_text(t->rank, t->extent, shape, sizeof shape);
    printf("  %-44.*s %-6s %-16s %12" PRIu64 " bytes\n", (int)t->name.length, t->name.data, rung_type_name(t->type),
           shape, t->bytes);
  }
}

/* ---- JSON */

static void json_element(cli_json *j, const char *key, const rung_gguf_entry *e, uint64_t i) {
  const rung_gguf_text t = e->kind == RUNG_GGUF_STRING ? rung_gguf_entry_text(e, i) : (rung_gguf_text){NULL, 0};
  switch (e->kind) {
    case RUNG_GGUF_STRING:
      cli_json_text(j, key, t.data, (size_t)t.length);
      break;
    case RUNG_GGUF_F32:
    case RUNG_GGUF_F64:
      cli_json_number(j, key, rung_gguf_entry_f64(e, i));
      break;
    case RUNG_GGUF_BOOL:
      cli_json_bool(j, key, rung_gguf_entry_i64(e, i) != 0);
      break;
    case RUNG_GGUF_U64:
      cli_json_bytes(j, key, (uint64_t)rung_gguf_entry_i64(e, i));
      break;
    default:
      cli_json_integer(j, key, rung_gguf_entry_i64(e, i));
      break;
  }
}

/* Long arrays (vocabularies) are told by type and count. */
static void json_entry(cli_json *j, const rung_gguf_entry *e) {
  char key[256];
  snprintf(key, sizeof key, "%.*s", (int)(e->key.length < sizeof key ? e->key.length : sizeof key - 1), e->key.data);
  if (!e->array) {
    json_element(j, key, e, 0);
  } else if (e->count > LISTED) {
    cli_json_open(j, key, '{');
    cli_json_string(j, "type", rung_gguf_kind_name(e->kind));
    cli_json_bytes(j, "count", e->count);
    cli_json_close(j, '}');
  } else {
    cli_json_open(j, key, '[');
    for (uint64_t i = 0; i < e->count; i++) json_element(j, NULL, e, i);
    cli_json_close(j, ']');
  }
}

void cli_json_tensor(cli_json *j, const char *name, size_t length, rung_type type, int rank, const int64_t *extent,
                     uint64_t bytes) {
  cli_json_open(j, NULL, '{');
  cli_json_text(j, "name", name, length);
  cli_json_string(j, "type", rung_type_name(type));
  cli_json_open(j, "extent", '[');
  for (int d = 0; d < rank; d++) cli_json_integer(j, NULL, extent[d]);
  cli_json_close(j, ']');
  cli_json_bytes(j, "bytes", bytes);
  cli_json_close(j, '}');
}

static void json_all(cli_json *j, const rung_gguf *gguf) {
  cli_json_string(j, "format", "gguf");
  cli_json_integer(j, "version", rung_gguf_version(gguf));
  cli_json_open(j, "metadata", '{');
  for (size_t i = 0; i < rung_gguf_key_count(gguf); i++) {
    const rung_gguf_entry e = rung_gguf_key_at(gguf, i);
    json_entry(j, &e);
  }
  cli_json_close(j, '}');
  cli_json_open(j, "tensors", '[');
  for (size_t i = 0; i < rung_gguf_tensor_count(gguf); i++) {
    const rung_gguf_tensor *t = rung_gguf_tensor_at(gguf, i);
    cli_json_tensor(j, t->name.data, (size_t)t->name.length, t->type, t->rank, t->extent, t->bytes);
  }
  cli_json_close(j, ']');
}

int cli_show_gguf(const cli_inspection *i) {
  const rung_source source = cli_source(i->session);
  rung_gguf *gguf;
  const rung_status status = rung_gguf_open(i->session->host, &source, &i->session->error, &gguf);
  if (status) return cli_fail(i->session, CLI_ON_FILE, status, NULL);
  if (i->json)
    json_all(i->json, gguf);
  else
    print_all(i->session, gguf);
  rung_gguf_release(gguf);
  return CLI_OK;
}

/* ---- check */

static void show_bad(const cli_inspection *i, const rung_weights_info *info, uint64_t element) {
  if (!i->json) {
    printf("%s: %s\n", info->name, i->session->error.message);
    return;
  }
  cli_json_open(i->json, NULL, '{');
  cli_json_string(i->json, "name", info->name);
  cli_json_bytes(i->json, "element", element);
  cli_json_string(i->json, "message", i->session->error.message);
  cli_json_close(i->json, '}');
}

int cli_show_check(const cli_inspection *i) {
  cli_session *s = i->session;
  const rung_source source = cli_source(s);
  rung_weights *weights;
  rung_status status = rung_weights_open(s->host, &source, NULL, &s->error, &weights);
  if (status) return cli_fail(s, CLI_ON_FILE, status, NULL);
  const size_t count = rung_weights_count(weights);
  size_t bad = 0;
  int code = CLI_OK;
  if (i->json) cli_json_open(i->json, "bad", '[');
  for (size_t t = 0; t < count && !code; t++) {
    rung_weights_info info = {.name = ""};
    uint64_t element = 0;
    (void)rung_weights_at(weights, t, &info);
    cli_progress(s, "check", t, count);
    if (cli_interrupted()) code = CLI_INTERRUPTED;
    status = rung_weights_check_tensor(weights, t, &s->error, &element);
    if (status == RUNG_CORRUPT_FILE)
      show_bad(i, &info, element), bad++;
    else if (status)
      code = cli_fail(s, CLI_ON_RUN, status, NULL);
  }
  cli_progress(s, "check", 1, 1);
  if (i->json) {
    cli_json_close(i->json, ']');
    cli_json_integer(i->json, "checked", (int64_t)count);
  } else if (!code) {
    printf("%zu tensors: %zu with a NaN or an infinity\n", count, bad);
  }
  rung_weights_release(weights);
  return code ? code : bad ? CLI_BAD_FILE : CLI_OK;
}
