/* SPDX-License-Identifier: MIT
 * Cases of memory, large tensors, bad numbers and limits: an allocator that reaches a fixed size, more than 2^31
 * elements in one tensor, NaN inside packed weights, one processor allowed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/gguf_write.h"
#include <rung/ops.h>
#include "tiny_world.h"

/* ---- case 10 */

static rung_status run_rows(tiny *t, rung_generator *g, int32_t n) {
  int32_t ids[96], last = n - 1;
  for (int32_t i = 0; i < n; i++) ids[i] = tiny_id(t, n, i);
  const float *logits;
  RUNG_TRY(rung_generator_reset(g, 0));
  return rung_generator_run(g, &(rung_rows){0, n}, 1, ids, &last, 1, &logits);
}

/* Prompts of every length: no call of the allocator the second time; after one large run trim goes back to the small
 * one. */
static void test_lengths_one_after_another(void) {
  for (int f = 0; f < 2; f++) {
    tiny t;
    if (tiny_open(&t, tiny_paths[f], 2)) {
      const rung_generate_options o = tiny_options(1, 96, 96);
      rung_generator *g = tiny_generator(&t, &o);
      CHECK_OK(run_rows(&t, g, 1));
      const uint64_t small = rung_context_memory(rung_generator_context(g)).activations;
      for (int pass = 0; pass < 2; pass++) {
        const uint64_t calls = rung_host_allocations(t.host) + rung_host_commits(t.host);
        for (int32_t n = 1; n <= 96; n += test_slow() ? 9 : 1) CHECK_OK(run_rows(&t, g, n));
        if (pass) CHECK_EQ_I64(rung_host_allocations(t.host) + rung_host_commits(t.host), calls);
      }
      CHECK(rung_context_memory(rung_generator_context(g)).activations > small);
      CHECK_OK(run_rows(&t, g, 1));
      rung_context_trim(rung_generator_context(g));
      CHECK_EQ_I64(rung_context_memory(rung_generator_context(g)).activations, small);
      CHECK_OK(run_rows(&t, g, 96));
      rung_generator_destroy(g);
    }
    tiny_close(&t);
  }
}

/* ---- case 45 */

enum { WIDTH = 64 };
static const int64_t big_rows = ((int64_t)1 << 31) / WIDTH + 100;

/* A sparse file: one tensor of 2^31 + 6400 bytes, zeros but for its last rows. */
static bool make_big(const char *path) {
  rung_host *host = NULL;
  rung_gguf_writer *w = NULL;
  rung_text header;
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  CHECK_OK(rung_gguf_writer_create(host, 0, NULL, &w));
  rung_gguf_put_text(w, "general.architecture", "none");
  rung_gguf_put_tensor(w, "table", RUNG_TYPE_I8, 2, (const int64_t[]){big_rows, WIDTH}, NULL);
  rung_text_init(&header, host);
  CHECK_OK(rung_gguf_write_header(w, &header, NULL));
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  int8_t row[WIDTH];
  bool good = file >= 0 && write(file, header.data, header.length) == (ssize_t)header.length &&
              !ftruncate(file, (off_t)((int64_t)header.length + big_rows * WIDTH));
  for (int64_t r = big_rows - 3; good && r < big_rows; r++) {
    for (int i = 0; i < WIDTH; i++) row[i] = (int8_t)(r - big_rows - i);
    good = pwrite(file, row, WIDTH, (off_t)((int64_t)header.length + r * WIDTH)) == WIDTH;
  }
  if (file >= 0) close(file);
  rung_text_finish(&header);
  rung_gguf_writer_destroy(w);
  rung_host_release(host);
  return good;
}

static void gather_from(rung_host *host, const char *device_name, rung_weights *weights) {
  rung_error error = {0};
  rung_device *device = NULL;
  rung_graph *g = NULL;
  rung_template *t = NULL;
  rung_program *p = NULL;
  rung_view *view = NULL;
  rung_context *c = NULL;
  CHECK_OK(rung_device_create(host, device_name, NULL, &error, &device));
  CHECK_OK(rung_graph_create(host, &error, &g));
  const rung_dim n = rung_graph_symbol(g, "n", 0, 8);
  const rung_value table = rung_graph_weight(g, "table", RUNG_TYPE_I8, 2, (const int64_t[]){big_rows, WIDTH});
  rung_graph_output(g, "y", rung_gather(g, table, rung_graph_input(g, "i", RUNG_TYPE_I32, 1, &n), 0));
  rung_status s = rung_template_create(device, g, NULL, &error, &t);
  if (!s) s = rung_program_create(t, NULL, 0, &error, &p);
  if (!s) s = rung_view_create(weights, &error, &view);
  if (!s) s = rung_context_create(t, view, NULL, NULL, &error, &c);
  if (!s && (s = rung_context_use(c, p))) rung_fail(&error, s, "%s", rung_context_message(c));
  CHECK_OK(s);
  if (s) fprintf(stderr, "  %s: %s\n", device_name, error.message);
  void *index;
  const int32_t rows[4] = {(int32_t)big_rows - 1, 0, -3, 1 << 25}; /* the third counts from the end */
  if (!s && !rung_context_input(c, 0, (int64_t[]){4}, &index)) {
    memcpy(index, rows, sizeof rows);
    CHECK_OK(rung_context_run(c));
    rung_tensor y;
    CHECK_OK(rung_context_output(c, 0, &y));
    for (int i = 0; i < WIDTH && y.data; i++) {
      const int8_t *got = y.data;
      CHECK_EQ_I64(got[i], -1 - i);
      CHECK_EQ_I64(got[WIDTH + i], 0);
      CHECK_EQ_I64(got[2 * WIDTH + i], (int8_t)(-3 - i));
      CHECK_EQ_I64(got[3 * WIDTH + i], 0);
    }
    memcpy(index, (int32_t[]){(int32_t)big_rows, 0, 0, 0}, 16);
    CHECK_STATUS(rung_context_run(c), RUNG_OUT_OF_RANGE);
  }
  rung_context_destroy(c);
  rung_view_release(view);
  rung_program_release(p);
  rung_template_release(t);
  rung_graph_destroy(g);
  rung_device_release(device);
}

static void test_more_than_2_31_elements(void) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/rung-big-%d.gguf", (int)getpid());
  if (!make_big(path)) {
    unlink(path);
    SKIP("no sparse file of 2 GiB in /tmp");
  }
  rung_host_options ho = rung_host_options_default();
  ho.memory_budget = (uint64_t)8 << 30; /* of addresses: next to nothing is read */
  rung_host *host = NULL;
  rung_weights *weights = NULL;
  rung_error error = {0};
  CHECK_OK(rung_host_create(&ho, &error, &host));
  const rung_source source = rung_source_path(path);
  CHECK_OK(rung_weights_open(host, &source, NULL, &error, &weights));
  if (weights) {
    gather_from(host, "ref", weights);
    gather_from(host, "cpu", weights);
  }
  rung_weights_release(weights);
  rung_host_release(host);
  unlink(path);
}

/* ---- case 46 */

/* One scale of one block is no number: found, with the tensor's name, in every tensor of a packed or plain type. */
static void test_nan_in_weights(void) {
  for (int f = 0; f < 2; f++) {
    rung_host *host = NULL;
    rung_gguf *gguf = NULL;
    rung_error error = {0};
    CHECK_OK(rung_host_create(NULL, &error, &host));
    rung_source source = rung_source_path(tiny_paths[f]);
    CHECK_OK(rung_gguf_open(host, &source, &error, &gguf));
    const uint64_t bytes = rung_gguf_map(gguf)->size;
    uint8_t *copy = malloc(bytes);
    memcpy(copy, rung_gguf_map(gguf)->data, bytes);
    rung_device *device = NULL;
    CHECK_OK(rung_device_create(host, "cpu", NULL, &error, &device));
    int tested = 0;
    for (size_t i = 0; i < rung_gguf_tensor_count(gguf); i++) {
      const rung_gguf_tensor *t = rung_gguf_tensor_at(gguf, i);
      /* Where a number or a scale lies: at the front of a block for these types. */
      const bool front = t->type == RUNG_TYPE_Q4_0 || t->type == RUNG_TYPE_Q4_1 || t->type == RUNG_TYPE_Q5_0 ||
                         t->type == RUNG_TYPE_Q5_1 || t->type == RUNG_TYPE_Q8_0 || t->type == RUNG_TYPE_Q4_K ||
                         t->type == RUNG_TYPE_Q5_K || t->type == RUNG_TYPE_F16;
      const uint64_t size =
          rung_type_bytes(t->type, 256) / (256 / (t->type == RUNG_TYPE_Q4_K || t->type == RUNG_TYPE_Q5_K ? 256
                                                  : t->type == RUNG_TYPE_F16                             ? 1
                                                                                                         : 32));
      if (!front && t->type != RUNG_TYPE_F32) continue;
      uint8_t *at = copy + t->offset + (front ? (t->bytes / size - 1) * size : t->bytes - 4), keep[4];
      memcpy(keep, at, 4);
      if (front)
        memcpy(at, &(uint16_t){0x7e00}, 2);
      else
        memcpy(at, &(float){INFINITY}, 4);
      rung_model_options o = rung_model_options_default();
      o.check = true;
      source = rung_source_memory(copy, bytes);
      rung_model *model = NULL;
      char name[128];
      snprintf(name, sizeof name, "%.*s", (int)t->name.length, t->name.data);
      CHECK_STATUS(rung_model_open(device, &source, &o, &error, &model), RUNG_CORRUPT_FILE);
      CHECK(!model && strstr(error.message, name) != NULL);
      memcpy(at, keep, 4);
      tested++;
    }
    CHECK(tested > 10);
    rung_device_release(device);
    free(copy);
    rung_gguf_release(gguf);
    rung_host_release(host);
  }
}

/* ---- case 47 */

/* In a child that may use one processor: what nobody asked for otherwise follows. */
static void test_one_processor(void) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    cpu_set_t one, all;
    if (sched_getaffinity(0, sizeof all, &all)) _exit(3);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++) {
      if (!CPU_ISSET(i, &all)) continue;
      CPU_SET(i, &one);
      break;
    }
    if (sched_setaffinity(0, sizeof one, &one)) _exit(3);
    unsetenv("RUNG_THREADS");
    rung_host *host = NULL;
    rung_device *device = NULL;
    if (rung_host_create(NULL, NULL, &host) || rung_device_create(host, "cpu", NULL, NULL, &device)) _exit(4);
    const int threads = rung_device_threads(device);
    rung_device_release(device);
    rung_host_release(host);
    _exit(threads == 1 ? 0 : 5);
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) SKIP("the affinity cannot be set here");
  CHECK_EQ_I64(WEXITSTATUS(status), 0);
}

int main(void) {
  RUN(test_one_processor);
  RUN(test_nan_in_weights);
  RUN(test_more_than_2_31_elements);
  RUN(test_lengths_one_after_another);
  return TEST_END();
}
