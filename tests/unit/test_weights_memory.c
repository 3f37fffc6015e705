/* SPDX-License-Identifier: MIT
 * One copy: eight programs, contexts and views over one large weight take what one takes, and little besides, by the
 * host's account and as the kernel counts the process. Loading and unloading goes back to where it began. */
#include <rung/program.h>
#include <rung/weights.h>

#include "../process.h"
#include "../test.h"
#include "formats/gguf_write.h"

enum { SESSIONS = 8, ROUNDS = 10, ROWS = 3, EXTRA = 1 << 20 };

/* 64 MiB; under a sanitizer, whose own memory hides everything, 1 MiB. */
static int64_t side(void) { return test_slow() ? 512 : 4096; }
static uint64_t weight_bytes(void) { return (uint64_t)(side() * side()) * 4; }

static float weight_at(int64_t k, int64_t n) { return (float)((k * 3 + n * 5) % 7 - 3); }
static float input_at(int64_t r, int64_t k) { return (float)((r * 5 + k) % 5 - 2); }

static const char *path(void) {
  static char text[512];
  snprintf(text, sizeof text, "%s/test_weights_memory.gguf", RUNG_BINARY_DIR);
  return text;
}

/* Resident bytes of the process; 0 where that cannot be asked, or means nothing. */
static uint64_t resident(void) { return test_slow() ? 0 : process_bytes("VmRSS"); }

static bool write_file(void) {
  rung_host *host;
  rung_gguf_writer *writer;
  rung_error error;
  float *data = malloc(weight_bytes());
  if (!data || rung_host_create(NULL, &error, &host)) return false;
  for (int64_t k = 0; k < side(); k++)
    for (int64_t n = 0; n < side(); n++) data[k * side() + n] = weight_at(k, n);
  CHECK_OK(rung_gguf_writer_create(host, 0, &error, &writer));
  rung_gguf_put_text(writer, "general.architecture", "none");
  rung_gguf_put_tensor(writer, "w", RUNG_TYPE_F32, 2, (int64_t[]){side(), side()}, data);
  CHECK_OK(rung_gguf_write_file(writer, path(), &error));
  rung_gguf_writer_destroy(writer);
  rung_host_release(host);
  free(data);
  return true;
}

typedef struct session {
  rung_template *template_;
  rung_program *program;
  rung_view *view;
  rung_context *context;
} session;

/* Everything of its own but the store. */
static rung_status open_session(rung_device *device, rung_weights *store, session *s, rung_error *error) {
  char text[512];
  const int side_ = (int)side();
  snprintf(text, sizeof text,
           "rung 1\nsymbol n 1..64\n%%0 = input {name=\"x\"} : f32[n,%d]\n%%1 = weight {name=\"w\"} : f32[%d,%d]\n"
           "%%2 = matmul %%0, %%1 : f32[n,%d]\noutput \"y\" %%2\n",
           side_, side_, side_, side_);
  rung_graph *graph;
  RUNG_TRY(rung_graph_parse(rung_device_host(device), text, strlen(text), error, &graph));
  rung_status status = rung_template_create(device, graph, NULL, error, &s->template_);
  rung_graph_destroy(graph);
  if (!status) status = rung_program_create(s->template_, NULL, 0, error, &s->program);
  if (!status) status = rung_view_create(store, error, &s->view);
  if (!status) status = rung_context_create(s->template_, s->view, NULL, NULL, error, &s->context);
  if (!status && (status = rung_context_use(s->context, s->program)))
    rung_fail(error, status, "%s", rung_context_message(s->context));
  return status;
}
static void close_session(session *s) {
  rung_context_destroy(s->context);
  rung_view_release(s->view);
  rung_program_release(s->program);
  rung_template_release(s->template_);
  *s = (session){0};
}

static bool session_runs(session *s) {
  void *data;
  rung_tensor y;
  if (rung_context_input(s->context, 0, (int64_t[]){ROWS, side()}, &data)) return false;
  for (int64_t r = 0; r < ROWS; r++)
    for (int64_t k = 0; k < side(); k++) ((float *)data)[r * side() + k] = input_at(r, k);
  if (rung_context_run(s->context) || rung_context_output(s->context, 0, &y)) return false;
  for (int64_t n = 0; n < side(); n += side() / 16 + 1) {
    float sum = 0; /* whole numbers below 2^24: exact in any order */
    for (int64_t k = 0; k < side(); k++) sum += input_at(ROWS - 1, k) * weight_at(k, n);
    if (((const float *)y.data)[(ROWS - 1) * side() + n] != sum) return false;
  }
  return true;
}

static uint64_t held_by(const session *s) {
  const rung_memory m = rung_context_memory(s->context);
  return m.activations + m.scratch + m.state;
}
static uint64_t total(rung_host *host) {
  const rung_memory m = rung_host_memory(host);
  return m.weights + m.packed + m.activations + m.state + m.scratch + m.cache + m.load + m.host;
}

static void check_sessions(const char *name, int sessions) {
  rung_host *host;
  rung_device *device;
  rung_weights *store;
  rung_error error;
  session s[SESSIONS] = {{NULL}};
  const rung_source source = rung_source_path(path());
  CHECK_OK(rung_host_create(NULL, &error, &host));
  CHECK_OK(rung_device_create(host, name, NULL, &error, &device));
  CHECK_OK(rung_weights_open(host, &source, NULL, &error, &store));
  uint64_t process = 0, account = 0, most_process = 0, most_account = 0;
  rung_memory first = {0};
  for (int i = 0; i < sessions; i++) {
    CHECK_OK(open_session(device, store, &s[i], &error));
    CHECK(session_runs(&s[i]));
    const uint64_t process_now = resident(), account_now = total(host), own = held_by(&s[i]);
    if (i == 0) {
      first = rung_weights_memory(store);
      CHECK_EQ_I64(first.packed + first.weights, weight_bytes());
    } else {
      const uint64_t more = account_now - account - own;
      const int64_t grown = (int64_t)(process_now - process) - (int64_t)own;
      CHECK(more < EXTRA);
      if (process_now) CHECK(grown < EXTRA);
      if (more > most_account) most_account = more;
      if (grown > (int64_t)most_process) most_process = (uint64_t)grown;
    }
    const rung_memory m = rung_weights_memory(store);
    CHECK_EQ_I64(m.packed, first.packed);
    CHECK_EQ_I64(m.weights, first.weights);
    CHECK_EQ_I64(rung_view_memory(s[i].view).packed + rung_view_memory(s[i].view).weights, weight_bytes());
    process = process_now, account = account_now;
  }
  printf("%s: each further session takes at most %" PRIu64 " bytes by the host's account, %" PRIu64
         " of the process, besides its arena\n",
         name, most_account, most_process);
  CHECK(session_runs(&s[0]));
  for (int i = 0; i < sessions; i++) close_session(&s[i]);
  CHECK_EQ_I64(rung_weights_memory(store).packed + rung_weights_memory(store).weights, 0); /* no view is left */
  rung_weights_release(store);
  rung_device_release(device);
  CHECK_EQ_I64(rung_host_memory(host).packed + rung_host_memory(host).weights, 0);
  rung_host_release(host);
}

static void test_sessions(void) {
  if (!write_file()) return;
  check_sessions("cpu", SESSIONS);
  check_sessions("ref", 3); /* plain and slow */
  remove(path());
}

/* Load, run, unload: nothing stays, neither with the host nor in the process. */
static void test_rounds(void) {
  if (!write_file()) return;
  rung_host *host;
  rung_device *device;
  rung_error error;
  CHECK_OK(rung_host_create(NULL, &error, &host));
  CHECK_OK(rung_device_create(host, "cpu", NULL, &error, &device));
  uint64_t process = 0, account = 0;
  for (int round = 0; round < ROUNDS; round++) {
    rung_weights *store;
    session s = {NULL};
    const rung_source source = rung_source_path(path());
    CHECK_OK(rung_weights_open(host, &source, NULL, &error, &store));
    CHECK_OK(open_session(device, store, &s, &error));
    CHECK(session_runs(&s));
    close_session(&s);
    rung_weights_release(store);
    if (round == 0) process = resident(), account = total(host);
    CHECK_EQ_I64(total(host), account);
    if (process) CHECK(resident() < process + EXTRA);
  }
  rung_device_release(device);
  rung_host_release(host);
  remove(path());
}

/* A private value is one copy more and one form more; what it took the place of stays for the others; without it and
 * after trimming all is as before. */
static void test_private_value(void) {
  rung_host *host;
  rung_device *device;
  rung_weights *store;
  rung_error error;
  session s[2] = {{NULL}};
  float *data = malloc(weight_bytes());
  CHECK_OK(rung_host_create(NULL, &error, &host));
  CHECK_OK(rung_device_create(host, "cpu", NULL, &error, &device));
  CHECK_OK(rung_weights_create(host, &error, &store));
  CHECK_OK(rung_weights_declare(store, "w", RUNG_TYPE_F32, 2, (int64_t[]){side(), side()}, &error));
  for (int64_t k = 0; k < side(); k++)
    for (int64_t n = 0; n < side(); n++) data[k * side() + n] = weight_at(k, n);
  CHECK_OK(rung_weights_set(store, "w", RUNG_TYPE_F32, data, weight_bytes(), &error));
  CHECK_OK(rung_weights_commit(store, &error));
  for (int i = 0; i < 2; i++) {
    CHECK_OK(open_session(device, store, &s[i], &error));
    CHECK(session_runs(&s[i]));
  }
  const rung_memory one = rung_host_memory(host);
  CHECK_EQ_I64(one.packed, weight_bytes());
  CHECK_EQ_I64(one.weights, weight_bytes());
  CHECK_OK(rung_view_set_weight(s[0].view, "w", RUNG_TYPE_F32, data, weight_bytes(), &error)); /* equal numbers */
  CHECK_OK(rung_view_commit(s[0].view, &error));
  CHECK(session_runs(&s[0]) && session_runs(&s[1]));
  CHECK_EQ_I64(rung_host_memory(host).packed, 2 * one.packed);
  CHECK_EQ_I64(rung_host_memory(host).weights, 2 * one.weights);
  CHECK_OK(rung_view_share_from(s[0].view, s[1].view, &error));
  CHECK_EQ_I64(rung_host_memory(host).packed, one.packed);
  CHECK_EQ_I64(rung_host_memory(host).weights, one.weights);
  CHECK(session_runs(&s[0]) && session_runs(&s[1]));
  rung_context_destroy(s[0].context);
  rung_context_destroy(s[1].context);
  s[0].context = s[1].context = NULL;
  const uint64_t before = resident();
  rung_weights_trim(store);
  CHECK_EQ_I64(rung_host_memory(host).packed, 0);
  if (before) CHECK(resident() + weight_bytes() < before + EXTRA);
  for (int i = 0; i < 2; i++) close_session(&s[i]);
  rung_weights_release(store);
  rung_device_release(device);
  rung_host_release(host);
  free(data);
}

/* Reading a mapped tensor, setting a part of it and copying it to another store leave the file's pages where they are.
 */
static void test_mapped(void) {
  if (!write_file()) return;
  rung_host *host;
  rung_weights *store, *other;
  rung_view *view, *copy;
  rung_error error;
  const rung_source source = rung_source_path(path());
  CHECK_OK(rung_host_create(NULL, &error, &host));
  CHECK_OK(rung_weights_open(host, &source, NULL, &error, &store));
  CHECK_OK(rung_view_create(store, &error, &view));
  float *data = malloc(weight_bytes());
  memset(data, 1, weight_bytes());
  uint64_t before = resident();
  CHECK_OK(rung_weights_get(store, "w", 0, RUNG_TYPE_F32, data, weight_bytes(), &error));
  int64_t wrong = 0;
  for (int64_t k = 0; k < side(); k++)
    for (int64_t n = 0; n < side(); n++) wrong += data[k * side() + n] != weight_at(k, n);
  CHECK_EQ_I64(wrong, 0);
  if (before) CHECK(resident() < before + EXTRA);
  CHECK_OK(rung_weights_create(host, &error, &other));
  CHECK_OK(rung_weights_declare(other, "w", RUNG_TYPE_F32, 2, (int64_t[]){side(), side()}, &error));
  CHECK_OK(rung_view_create(other, &error, &copy));
  CHECK_OK(rung_view_copy_from(copy, view, &error));
  CHECK_EQ_I64(rung_host_memory(host).weights, weight_bytes());
  if (before) CHECK(resident() < before + weight_bytes() + EXTRA);
  const float five = 5;
  CHECK_OK(rung_weights_set_range(store, "w", 8, RUNG_TYPE_F32, &five, 4, &error));
  CHECK_OK(rung_weights_commit(store, &error));
  if (before) CHECK(resident() < before + 2 * weight_bytes() + EXTRA);
  CHECK_OK(rung_view_get_weight(view, "w", 4, RUNG_TYPE_F32, data, 12, &error));
  CHECK(data[0] == weight_at(0, 1) && data[1] == 5 && data[2] == weight_at(0, 3));
  CHECK_OK(rung_view_get_weight(copy, "w", 4, RUNG_TYPE_F32, data, 12, &error));
  CHECK(data[0] == weight_at(0, 1) && data[1] == weight_at(0, 2));
  rung_view_release(view);
  rung_view_release(copy);
  rung_weights_release(store);
  rung_weights_release(other);
  CHECK_EQ_I64(rung_host_memory(host).weights, 0);
  rung_host_release(host);
  free(data);
  remove(path());
}

int main(void) {
  RUN(test_mapped);
  RUN(test_sessions);
  RUN(test_rounds);
  RUN(test_private_value);
  return TEST_END();
}
