/* SPDX-License-Identifier: MIT
 * Submitted runs: order, tickets, the limit, outputs kept apart or shared, inputs consumed or by reference, sizes found on
 * the way, feeds from outputs to inputs; the same bits as plain runs, and no allocation once sizes have been reached. */
#include "cts/submit_world.h"

static const char line_text[] =
    "rung 1\nsymbol n 0..64\n"
    "%x = input {name=\"x\"} : f32[n]\n"
    "%y = add %x, %x\n"
    "%z = mul %y, %x\n"
    "output \"y\" %y\n"
    "output \"z\" %z\n";

static void check_line(world *w, int64_t n, float first) {
  float y[64], z[64];
  for (int64_t i = 0; i < n; i++) {
    y[i] = 2 * (first + (float)i);
    z[i] = y[i] * (first + (float)i);
  }
  WORLD_CHECK_F32(w, 0, n, y);
  WORLD_CHECK_F32(w, 1, n, z);
}

static void test_order_and_limit(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (submit_open(&w, line_text, d, &(world_options){.in_flight = 3})) {
      uint64_t ticket[8];
      CHECK_STATUS(rung_context_submit(w.context, NULL), RUNG_INVALID_ARGUMENT);
      CHECK_STATUS(rung_context_wait(w.context, 1), RUNG_NOT_FOUND);
      CHECK_OK(rung_context_sync(w.context));
      CHECK_STATUS(rung_context_submit(w.context, ticket), RUNG_INVALID_ARGUMENT); /* nothing is bound */
      for (int i = 0; i < 3; i++) {
        world_put_ramp(&w, 0, 5 + i, (float)i);
        ticket[i] = submit(&w);
        CHECK_EQ_I64(ticket[i], i + 1);
      }
      CHECK_STATUS(rung_context_submit(w.context, ticket + 3), RUNG_BUSY);
      CHECK_STATUS(rung_context_wait(w.context, 4), RUNG_NOT_FOUND);
      for (int i = 0; i < 3; i++)
        if (submit_wait(&w, ticket[i])) check_line(&w, 5 + i, (float)i);
      if (submit_wait(&w, ticket[1])) check_line(&w, 6, 1); /* again */
      for (int i = 3; i < 6; i++) {
        world_put_ramp(&w, 0, 5, (float)i);
        ticket[i] = submit(&w);
        if (i == 3) CHECK_STATUS(rung_context_wait(w.context, ticket[0]), RUNG_NOT_FOUND);
        if (i == 3 && submit_wait(&w, ticket[1])) check_line(&w, 6, 1);
      }
      CHECK_OK(rung_context_sync(w.context));
      for (int i = 5; i >= 3; i--)
        if (submit_wait(&w, ticket[i])) check_line(&w, 5, (float)i);
      world_put_ramp(&w, 0, 7, 9); /* and a plain run between them */
      if (world_run(&w)) check_line(&w, 7, 9);
      world_put_ramp(&w, 0, 0, 9);
      ticket[6] = submit(&w); /* empty */
      world_put_ramp(&w, 0, 3, 2);
      if (world_run(&w)) check_line(&w, 3, 2);
      if (submit_wait(&w, ticket[6])) check_line(&w, 0, 0);
    }
    world_close(&w);
  }
  world w;
  CHECK_STATUS(world_try(&w, line_text, &(world_options){.in_flight = 65}), RUNG_OUT_OF_RANGE);
  world_close(&w);
}

/* What a run made stays where it is until as many more have been submitted as may be in flight. */
static void test_outputs_apart(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (submit_open(&w, line_text, d, &(world_options){.in_flight = 4})) {
      for (int round = 0; round < 3; round++) {
        uint64_t ticket[4];
        rung_tensor made[4] = {{0}};
        for (int i = 0; i < 4; i++) {
          world_put_ramp(&w, 0, 10, (float)(10 * round + i));
          ticket[i] = submit(&w);
        }
        for (int i = 3; i >= 0; i--)
          if (submit_wait(&w, ticket[i])) CHECK_OK(rung_context_output(w.context, 0, &made[i]));
        for (int i = 0; i < 4; i++) {
          const float *data = made[i].data;
          for (int e = 0; data && e < 10; e++) CHECK(data[e] == 2 * (float)(10 * round + i + e));
        }
      }
      CHECK(rung_context_memory(w.context).load > 0);
    }
    world_close(&w);
  }
}

static void test_one_output(void) {
  for (int d = submit_on.first; d < SUBMIT_FAR; d++) {
    world w;
    if (submit_open(&w, line_text, d, &(world_options){.in_flight = 2, .one_output = true})) {
      rung_tensor made[2] = {{0}};
      for (int i = 0; i < 2; i++) {
        world_put_ramp(&w, 0, 10, (float)i);
        if (!submit_wait(&w, submit(&w))) continue;
        CHECK_OK(rung_context_output(w.context, 0, &made[i]));
        check_line(&w, 10, (float)i);
      }
      CHECK(made[0].data == made[1].data);
    }
    world_close(&w);
  }
}

static rung_tensor vector(float *data, int64_t n) {
  return (rung_tensor){.type = RUNG_TYPE_F32, .rank = 1, .extent = {n}, .data = data};
}

/* Memory of the caller: read before the call returns, in any strides; written by the run, each its own. */
static void test_memory_of_the_caller(void) {
  static _Alignas(64) float in[2 * 64 + 1], out[3][64];
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (submit_open(&w, line_text, d, &(world_options){.in_flight = 3})) {
      uint64_t ticket[3];
      memset(out, 0, sizeof out);
      for (int i = 0; i < 3; i++) {
        rung_tensor x = vector(in + (i == 1), 8), y = vector(out[i], 64); /* the second begins at an odd place */
        if (i == 2) x.stride[0] = 2;
        for (int e = 0; e < 8; e++) in[(i == 1) + (i == 2 ? 2 * e : e)] = (float)(i + e);
        CHECK_OK(rung_context_bind_input(w.context, 0, &x));
        CHECK_OK(rung_context_bind_output_ceiling(w.context, 0, &y));
        ticket[i] = submit(&w);
        memset(in, 0x55, sizeof in);
      }
      CHECK_OK(rung_context_bind_output(w.context, 0, NULL));
      for (int i = 0; i < 3; i++) {
        if (!submit_wait(&w, ticket[i])) continue;
        check_line(&w, 8, (float)i);
        CHECK(out[i][0] == 2 * (float)i && out[i][7] == 2 * (float)(i + 7) && out[i][8] == 0);
      }
      for (int e = 0; e < 64; e++) in[e] = (float)e; /* a larger buffer, of which five are meant */
      const rung_tensor room = vector(in, 64);
      CHECK_OK(rung_context_bind_input_ceiling(w.context, 0, &room));
      CHECK_OK(rung_context_set_extent(w.context, "n", 5));
      const uint64_t last = submit(&w);
      CHECK_OK(rung_context_set_extent(w.context, "n", -1));
      memset(in, 0x55, sizeof in);
      if (submit_wait(&w, last)) check_line(&w, 5, 0);
    }
    world_close(&w);
  }
}

/* No thread can be had: whoever waits runs. So it is known when an input by reference is read. */
static void test_by_reference_without_threads(void) {
  static _Alignas(64) float in[2][8];
  for (int d = submit_on.first; d < SUBMIT_FAR; d++) {
    world w;
    rung_runners_stop();
    if (submit_open(&w, line_text, d, NULL)) {
      test_fault fault = {.kind = RUNG_FAULT_THREAD, .at = 1};
      rung_host_set_fault(w.host, test_fault_hit, &fault);
      const rung_tensor x[2] = {vector(in[0], 8), vector(in[1], 8)};
      uint64_t ticket[2];
      for (int i = 0; i < 2; i++) {
        fault = (test_fault){.kind = RUNG_FAULT_THREAD, .at = 1};
        CHECK_OK(i ? rung_context_bind_input_reference(w.context, 0, &x[i])
                   : rung_context_bind_input(w.context, 0, &x[i]));
        for (int e = 0; e < 8; e++) in[i][e] = (float)e;
        ticket[i] = submit(&w);
        for (int e = 0; e < 8; e++) in[i][e] = (float)(100 + e);
      }
      CHECK_EQ_I64(rung_runners(), 0);
      if (submit_wait(&w, ticket[0])) check_line(&w, 8, 0);
      if (submit_wait(&w, ticket[1])) check_line(&w, 8, 100);
      rung_host_set_fault(w.host, NULL, NULL);
    }
    world_close(&w);
  }
}

/* Extents that only the run finds, and bodies. */
static void test_found_on_the_way(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..40\nsymbol found <= n made\n"
      "%x = input {name=\"x\"} : f32[n]\n"
      "%trip = input {name=\"trip\"} : i64[]\n"
      "%count = count_nonzero %x\n"
      "%bound = bind_symbol %count {symbol=\"found\", bound=n}\n"
      "%some = nonzero %x {count=found}\n"
      "%go = constant {data=bool(1)} : bool[]\n"
      "%more = loop %trip, %go, %x {carried=1} {\n"
      "  %k = input {name=\"k\"} : i64[]\n"
      "  %c = input {name=\"c\"} : bool[]\n"
      "  %v = input {name=\"v\"} : f32[n]\n"
      "  %d = add %v, %v\n"
      "  output \"c\" %c\n"
      "  output \"v\" %d\n"
      "}\n"
      "output \"some\" %some\n"
      "output \"more\" %more\n";
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (submit_open(&w, text, d, &(world_options){.in_flight = 3})) {
      for (int round = 0; round < 2; round++) {
        uint64_t ticket[3];
        for (int i = 0; i < 3; i++) {
          world_put_ramp(&w, 0, 10 + i, (float)-i); /* one of them is 0 */
          world_put_i64(&w, 1, i);
          ticket[i] = submit(&w);
        }
        for (int i = 2; i >= 0; i--) {
          if (!submit_wait(&w, ticket[i])) continue;
          const rung_tensor some = world_output(&w, 0), more = world_output(&w, 1);
          CHECK_EQ_I64(some.extent[1], 9 + i);
          const int64_t *index = some.data;
          for (int64_t e = 0; index && e < some.extent[1]; e++) CHECK_EQ_I64(index[e], e + (e >= i));
          CHECK(more.data && ((float *)more.data)[9] == (float)(9 - i) * (float)(1 << i));
        }
      }
    }
    world_close(&w);
  }
}

/* ---- a step of decoding: row of a table, product, largest number, which is the next row */

enum { WORDS = 19, WIDTH = 24, STEPS = 100 };
static const char decode_text[] =
    "rung 1\nsymbol n 1..3\n"
    "%id = input {name=\"id\"} : i64[n]\n"
    "%table = input {name=\"table\"} : f32[19,24]\n"
    "%w = input {name=\"w\"} : f32[24,19]\n"
    "%turn = random_uniform {shape=[n,19], low=0, high=6}\n"
    "%e = gather %table, %id\n"
    "%h = matmul %e, %w\n"
    "%logits = add %h, %turn\n"
    "%next = argmax %logits\n"
    "output \"next\" %next\n"
    "output \"logits\" %logits\n";

static float table[WORDS * WIDTH], product[WIDTH * WORDS];

static bool begin_decoding(world *w, int64_t n, bool feed) {
  uint64_t random = 7;
  for (int i = 0; i < WORDS * WIDTH; i++) table[i] = test_uniform(&random, -1, 1);
  for (int i = 0; i < WIDTH * WORDS; i++) product[i] = test_uniform(&random, -1, 1);
  const rung_tensor t = {.type = RUNG_TYPE_F32, .rank = 2, .extent = {WORDS, WIDTH}, .data = table},
                    p = {.type = RUNG_TYPE_F32, .rank = 2, .extent = {WIDTH, WORDS}, .data = product};
  const int64_t first[3] = {3, 0, 11};
  if (feed) CHECK_OK(rung_context_add_input_feed(w->context, "next", "id"));
  CHECK_OK(rung_context_bind_input_reference(w->context, 1, &t));
  CHECK_OK(rung_context_bind_input_reference(w->context, 2, &p));
  rung_context_set_seed(w->context, 5);
  return world_put(w, 0, &n, first, (size_t)n * 8);
}

typedef struct decoded {
  int64_t id[3];
  float logits[3 * WORDS];
} decoded;

static void read_step(world *w, int64_t n, decoded *out) {
  const rung_tensor id = world_output(w, 0), logits = world_output(w, 1);
  memset(out, 0, sizeof *out);
  CHECK_EQ_I64(id.extent[0], n);
  if (id.data) memcpy(out->id, id.data, (size_t)n * 8);
  if (logits.data) memcpy(out->logits, logits.data, (size_t)(n * WORDS) * 4);
}

/* Plain runs, in front of each of which the caller binds what the one before has made. */
static void decode_plainly(int device, int64_t n, decoded *out) {
  world w;
  if (submit_open(&w, decode_text, device, NULL) && begin_decoding(&w, n, false)) {
    for (int i = 0; i < STEPS; i++) {
      if (i) world_put(&w, 0, &n, out[i - 1].id, (size_t)n * 8);
      if (world_run(&w)) read_step(&w, n, &out[i]);
    }
  }
  world_close(&w);
}

static void test_decoding(void) {
  static decoded want[STEPS], got[STEPS];
  for (int d = submit_on.first; d < submit_on.end; d++) {
    for (int64_t n = 1; n < 4; n += 2) {
      decode_plainly(d, n, want);
      for (int ahead = 0; ahead < 4; ahead++) { /* 0: plain runs with the feed */
        world w;
        memset(got, 0, sizeof got);
        if (submit_open(&w, decode_text, d, &(world_options){.in_flight = ahead}) && begin_decoding(&w, n, true)) {
          uint64_t ticket[STEPS];
          for (int i = 0, waited = 0; waited < STEPS; i++) {
            if (!ahead && world_run(&w)) read_step(&w, n, &got[i]);
            if (!ahead) {
              waited++;
              continue;
            }
            if (i < STEPS) ticket[i] = submit(&w);
            if (i - waited < ahead - 1 && i < STEPS - 1) continue;
            if (submit_wait(&w, ticket[waited])) read_step(&w, n, &got[waited]);
            waited++;
          }
        }
        world_close(&w);
        CHECK(memcmp(want, got, sizeof got) == 0);
      }
    }
  }
  int64_t other = 0;
  for (int i = 1; i < STEPS; i++) other += want[i].id[0] != want[i - 1].id[0];
  CHECK(other > STEPS / 4); /* it does not only say one word */
}

/* Bound anew, an input takes that once; the feed goes on behind it. Other extents as well. */
static void test_feed_is_interrupted(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w, plain;
    const bool both = submit_open(&w, decode_text, d, NULL) && begin_decoding(&w, 1, true);
    decoded a, b;
    if (both) {
      const uint64_t one = submit(&w);
      const int64_t n = 2, ids[2] = {17, 4};
      world_put(&w, 0, &n, ids, 16);
      CHECK(submit_wait(&w, one));
      const uint64_t two = submit(&w);
      CHECK(submit_wait(&w, two));
      read_step(&w, 2, &a);
      if (world_run(&w)) read_step(&w, 2, &a);
    }
    world_close(&w);
    if (submit_open(&plain, decode_text, d, NULL) && begin_decoding(&plain, 1, false)) {
      CHECK(world_run(&plain));
      const int64_t n = 2, ids[2] = {17, 4};
      world_put(&plain, 0, &n, ids, 16);
      if (world_run(&plain)) read_step(&plain, 2, &b);
      world_put(&plain, 0, &n, b.id, 16);
      if (world_run(&plain)) read_step(&plain, 2, &b);
      if (both) CHECK(memcmp(&a, &b, sizeof a) == 0);
    }
    world_close(&plain);
  }
}

static void test_feeds_refused(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..4\nsymbol found <= n made\n"
      "%x = input {name=\"x\"} : f32[n]\n"
      "%i = input {name=\"i\"} : i64[1,n]\n"
      "%count = count_nonzero %x\n"
      "%bound = bind_symbol %count {symbol=\"found\", bound=n}\n"
      "%some = nonzero %x {count=found}\n"
      "%y = neg %x\n"
      "%j = add %i, %i\n"
      "output \"y\" %y\noutput \"some\" %some\noutput \"j\" %j\n";
  world w;
  if (submit_open(&w, text, SUBMIT_REF, NULL)) {
    rung_context *c = w.context;
    CHECK_STATUS(rung_context_add_input_feed(c, "no", "x"), RUNG_NOT_FOUND);
    CHECK_STATUS(rung_context_add_input_feed(c, "y", "no"), RUNG_NOT_FOUND);
    CHECK_STATUS(rung_context_add_input_feed(c, "y", NULL), RUNG_NOT_FOUND);
    CHECK_STATUS(rung_context_add_input_feed(c, "y", "i"), RUNG_TYPE_MISMATCH);
    CHECK_STATUS(rung_context_add_input_feed(c, "some", "x"), RUNG_TYPE_MISMATCH);
    CHECK_STATUS(rung_context_add_input_feed(c, "some", "i"), RUNG_UNSUPPORTED);
    CHECK_OK(rung_context_add_input_feed(c, "y", "x"));
    CHECK_STATUS(rung_context_add_input_feed(c, "y", "x"), RUNG_INVALID_ARGUMENT);
    CHECK_EQ_I64(rung_context_feeds(c), 1);
    const int64_t i[2] = {1, 2};
    world_put_ramp(&w, 0, 2, 1);
    world_put(&w, 1, (int64_t[]){1, 2}, i, 16);
    CHECK(world_run(&w) && world_run(&w));
    WORLD_CHECK_F32(&w, 0, 2, ((const float[]){1, 2}));
    rung_context_clear_feeds(c); /* and with it what was fed */
    CHECK_STATUS(rung_context_run(c), RUNG_INVALID_ARGUMENT);
  }
  world_close(&w);
}

/* ---- memory */

/* On the GPU without steps of the host, which take memory for their operands. */
static bool open_steady(world *w, int device) {
  if (device != SUBMIT_CUDA) return submit_open(w, decode_text, device, NULL) && begin_decoding(w, 3, true);
  return submit_open(w, line_text, device, NULL) && world_put_ramp(w, 0, 50, 1);
}

static void test_steady(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (open_steady(&w, d)) {
      test_fault fault = {.at = 0};
      uint64_t ticket[2] = {submit(&w), submit(&w)};
      for (int i = 0; i < 50; i++) {
        if (i == 10) rung_host_set_fault(w.host, test_fault_hit, &fault);
        CHECK(submit_wait(&w, ticket[i % 2]));
        ticket[i % 2] = submit(&w);
      }
      CHECK_OK(rung_context_sync(w.context));
      rung_host_set_fault(w.host, NULL, NULL);
      CHECK_EQ_I64(fault.count[RUNG_FAULT_ALLOC], 0);
      CHECK_EQ_I64(fault.count[RUNG_FAULT_COMMIT], 0);
    }
    world_close(&w);
    CHECK(far_device.pinned == 0 && far_device.marks == 0 && far_device.reads == 0);
  }
}

int main(int argc, char **argv) {
  if (!submit_begin(argc, argv)) return 77;
  RUN(test_order_and_limit);
  RUN(test_outputs_apart);
  RUN(test_one_output);
  RUN(test_memory_of_the_caller);
  RUN(test_by_reference_without_threads);
  RUN(test_found_on_the_way);
  RUN(test_decoding);
  RUN(test_feed_is_interrupted);
  RUN(test_feeds_refused);
  RUN(test_steady);
  submit_end();
  return TEST_END();
}
