/* SPDX-License-Identifier: MIT
 * Submitted runs that fail, are cancelled or are left behind: each says so at its ticket, those that go on with what it
 * left do not run, states are what they were; calls that wait, the n-th allocation refused. */
#include "base/thread.h"
#include "cts/kv_world.h"
#include "cts/submit_world.h"

static const char pick_text[] =
    "rung 1\nsymbol n 1..16\n"
    "%x = input {name=\"x\"} : f32[8]\n"
    "%i = input {name=\"i\"} : i32[n]\n"
    "%y = gather %x, %i\n"
    "output \"y\" %y\n";

static uint64_t submit_pick(world *w, int32_t index, float first) {
  const int64_t n = 1;
  world_put_ramp(w, 0, 8, first);
  world_put(w, 1, &n, &index, 4);
  return submit(w);
}

/* Independent runs: the one in the middle fails, the others do not care. */
static void test_one_of_many(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (submit_open(&w, pick_text, d, &(world_options){.in_flight = 4})) {
      for (int order = 0; order < 2; order++) {
        uint64_t ticket[4];
        for (int i = 0; i < 4; i++) ticket[i] = submit_pick(&w, i == 1 ? 8 : i, 10 * (float)i);
        if (order) CHECK_STATUS(rung_context_sync(w.context), RUNG_OUT_OF_RANGE);
        for (int i = 3; i >= 0; i--) {
          if (i == 1) {
            CHECK_STATUS(rung_context_wait(w.context, ticket[i]), RUNG_OUT_OF_RANGE);
            CHECK(rung_context_message(w.context)[0]);
            rung_tensor t;
            CHECK_STATUS(rung_context_output(w.context, 0, &t), RUNG_INVALID_ARGUMENT);
          } else if (submit_wait(&w, ticket[i])) {
            WORLD_CHECK_F32(&w, 0, 1, ((const float[]){11 * (float)i}));
          }
        }
        CHECK_OK(rung_context_sync(w.context)); /* all have been waited for */
      }
      /* A plain run behind one that fails says so first, and runs the next time. */
      (void)submit_pick(&w, 9, 0);
      CHECK_STATUS(rung_context_run(w.context), RUNG_OUT_OF_RANGE);
      (void)!rung_context_run(w.context);
      const uint64_t last = submit_pick(&w, 3, 0);
      if (submit_wait(&w, last)) WORLD_CHECK_F32(&w, 0, 1, ((const float[]){3}));
    }
    world_close(&w);
  }
}

/* ---- keys and values */

static kv_model model, before;

static bool open_kv(world *w, int device, int in_flight, int64_t blocks) {
  rung_state_options so = rung_state_options_default();
  so.sequences = KV_SLOTS;
  so.capacity = 300;
  so.chunk = KV_CHUNK;
  so.blocks = blocks;
  model = (kv_model){.random = 3};
  return submit_open(w, kv_text, device, &(world_options){.state = &so, .in_flight = in_flight});
}

/* The last index of a run that shall fail is beyond its rows. */
static uint64_t submit_kv(world *w, const rung_rows *rows, int32_t count, bool fails) {
  int64_t n = 0;
  CHECK(kv_bind(w, &model, rows, count));
  for (int32_t r = 0; r < count; r++) n += rows[r].count;
  if (fails) {
    int32_t index[KV_CHUNK] = {0};
    index[n - 1] = KV_CHUNK + 7;
    world_put(w, KV_IN_I, &n, index, (size_t)n * 4);
  }
  kv_grown(&model, rows, count);
  return submit(w);
}

static void check_lengths(world *w, const kv_model *m) {
  for (int32_t s = 0; s < KV_SLOTS; s++) CHECK_EQ_I64(rung_state_length(w->state, s), m->length[s]);
}

static const rung_rows part[4][2] = {{{0, 70}, {1, 3}}, {{1, 40}, {2, 9}}, {{0, 1}, {1, 1}}, {{2, 30}, {0, 2}}};

static void test_states_in_order(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    for (int64_t blocks = 0; blocks < 20; blocks += 12) {
      world w;
      if (open_kv(&w, d, 3, blocks)) {
        uint64_t ticket[6];
        for (int i = 0; i < 6; i++) {
          if (i >= 3) CHECK(submit_wait(&w, ticket[i - 3]));
          ticket[i] = submit_kv(&w, part[i % 4], 2, false);
          check_lengths(&w, &model); /* at once, so that the next rows can be set */
          if (i == 2) kv_check_rows(&w, &model);
        }
        if (submit_wait(&w, ticket[5])) kv_check_attention(&w, &model, part[1], 2);
        CHECK_OK(rung_context_sync(w.context));
        kv_check_rows(&w, &model);
      }
      world_close(&w);
    }
  }
}

static void test_states_after_a_failure(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    for (int how = 0; how < 4; how++) {
      world w;
      if (open_kv(&w, d, 4, how & 1 ? 12 : 0)) {
        uint64_t ticket[4];
        for (int i = 0; i < 4; i++) {
          if (i == 1) before = model;
          ticket[i] = submit_kv(&w, part[i], 2, i == 1);
        }
        if (how & 2) CHECK_STATUS(rung_context_sync(w.context), RUNG_OUT_OF_RANGE);
        CHECK(submit_wait(&w, ticket[0]));
        if (!(how & 2)) check_lengths(&w, &model); /* nobody has been told */
        CHECK_STATUS(rung_context_wait(w.context, ticket[2]), RUNG_CANCELLED);
        CHECK(strstr(rung_context_message(w.context), "run 2") != NULL);
        before.random = model.random;
        check_lengths(&w, &before);
        CHECK_STATUS(rung_context_wait(w.context, ticket[1]), RUNG_OUT_OF_RANGE);
        kv_check_rows(&w, &before);
        model = before;
        const uint64_t next = submit_kv(&w, part[1], 2, false); /* goes on where the first one stopped */
        CHECK_STATUS(rung_context_wait(w.context, ticket[3]), RUNG_CANCELLED);
        if (submit_wait(&w, next)) kv_check_attention(&w, &model, part[1], 2);
        kv_check_rows(&w, &model);
      }
      world_close(&w);
    }
  }
}

/* Submitted before the failure is known, a run does not go on either, though nothing of it was in the queue yet. */
static void test_submitted_behind_a_failure(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (open_kv(&w, d, 4, 0)) {
      before = model;
      const uint64_t bad = submit_kv(&w, part[0], 2, true);
      rung_thread_yield();
      const uint64_t behind = submit_kv(&w, part[1], 2, false);
      CHECK_STATUS(rung_context_wait(w.context, bad), RUNG_OUT_OF_RANGE);
      check_lengths(&w, &before);
      CHECK_STATUS(rung_context_wait(w.context, behind), RUNG_CANCELLED);
    }
    world_close(&w);
  }
}

static void test_calls_that_wait(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    rung_context *other = NULL, *copy = NULL;
    if (open_kv(&w, d, 4, 0)) {
      CHECK_OK(rung_context_create(w.template_, NULL, w.state, NULL, NULL, &other));
      CHECK_OK(rung_context_use(other, w.program));
      (void)submit_kv(&w, part[0], 2, false);
      world two = w;
      two.context = other;
      uint64_t none;
      CHECK(kv_bind(&two, &model, part[1], 2));
      const rung_status status = rung_context_submit(other, &none); /* refused, or the first one has ended already */
      CHECK(status == RUNG_BUSY || status == RUNG_OK);
      if (!status) kv_grown(&model, part[1], 2);
      if (!status) CHECK_OK(rung_context_wait(other, none));
      CHECK_OK(rung_context_sync(w.context));
      (void)submit_kv(&w, part[2], 2, false);
      CHECK_OK(rung_state_truncate(w.state, 0, 5, NULL)); /* behind the run, not beside it */
      model.length[0] = 5;
      kv_check_rows(&w, &model);
      (void)submit_kv(&w, part[2], 2, false);
      CHECK_OK(rung_context_clone(w.context, NULL, &copy));
      (void)submit_kv(&w, part[2], 2, false);
      rung_context_trim(w.context);
      kv_check_rows(&w, &model);
      CHECK_OK(rung_context_sync(w.context));
      (void)submit_kv(&w, part[3], 2, false);
      rung_state_clear(w.state);
      memset(model.length, 0, sizeof model.length);
      check_lengths(&w, &model);
      CHECK_OK(rung_context_sync(w.context));
      const uint64_t last = submit_kv(&w, part[0], 2, false);
      if (submit_wait(&w, last)) kv_check_attention(&w, &model, part[0], 2);
    }
    rung_context_destroy(copy);
    rung_context_destroy(other);
    world_close(&w);
  }
}

/* ---- dense states */

static const char sum_text[] =
    "rung 1\n"
    "%x = input {name=\"x\"} : f32[4]\n"
    "%i = input {name=\"i\"} : i32[4]\n"
    "%sum = state {name=\"sum\"} : state f32[4]\n"
    "%last = state {name=\"last\"} : state f32[4]\n"
    "%t = add %sum, %x\n"
    "%sum1 = assign %sum, %t\n"
    "%y = gather %sum1, %i\n"
    "%z = add %last, %x\n"
    "output \"y\" %y\noutput \"z\" %z\n";

static uint64_t submit_sum(world *w, int32_t index) {
  const int32_t i[4] = {0, 1, 2, index};
  world_put_ramp(w, 0, 4, 1);
  world_put(w, 1, (int64_t[]){4}, i, 16);
  return submit(w);
}

static void test_dense_states(void) {
  const rung_state_options so = rung_state_options_default();
  for (int d = submit_on.first; d < submit_on.end; d++) {
    for (int whole = 0; whole < 2; whole++) {
      world w;
      if (submit_open(&w, sum_text, d, &(world_options){.state = &so, .in_flight = 5})) {
        if (whole) CHECK_OK(rung_context_add_whole_feed(w.context, "z", "last"));
        uint64_t ticket[4];
        for (int i = 0; i < 4; i++) ticket[i] = submit_sum(&w, i == 2 ? 4 : 3);
        CHECK(submit_wait(&w, ticket[1]));
        WORLD_CHECK_F32(&w, 0, 4, ((const float[]){2, 4, 6, 8}));
        CHECK_STATUS(rung_context_wait(w.context, ticket[2]), RUNG_OUT_OF_RANGE);
        CHECK_STATUS(rung_context_wait(w.context, ticket[3]), RUNG_CANCELLED);
        if (submit_wait(&w, submit_sum(&w, 3))) {
          WORLD_CHECK_F32(&w, 0, 4, ((const float[]){3, 6, 9, 12}));
          if (whole) WORLD_CHECK_F32(&w, 1, 4, ((const float[]){3, 6, 9, 12}));
        }
      }
      world_close(&w);
    }
  }
}

/* Rows that are fed by a call come from the run that was submitted last. */
static void test_rows_are_fed(void) {
  static const char text[] =
      "rung 1\n%x = input {name=\"x\"} : f32[1,4]\n%s = state {name=\"s\"} : state f32[1,3,4]\n"
      "%y = add %x, %x\n%r = reduce_sum %s {axes=[0,2]}\noutput \"y\" %y\noutput \"r\" %r\n";
  const rung_state_options so = rung_state_options_default();
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (submit_open(&w, text, d, &(world_options){.state = &so})) {
      CHECK_OK(rung_context_add_feed(w.context, "y", "s"));
      CHECK_STATUS(rung_context_feed_row(w.context, 0, 0), RUNG_INVALID_ARGUMENT);
      for (int i = 0; i < 2; i++) {
        const float x[4] = {1 + (float)i, 0, 0, 0};
        world_put(&w, 0, (int64_t[]){1, 4}, x, 16);
        (void)submit(&w);
      }
      CHECK_OK(rung_context_feed_row(w.context, 0, 2));
      CHECK_OK(rung_context_sync(w.context));
      if (submit_wait(&w, submit(&w))) WORLD_CHECK_F32(&w, 1, 3, ((const float[]){0, 0, 4}));
    }
    world_close(&w);
  }
}

/* ---- feeds */

static void test_fed_by_a_failure(void) {
  static const char text[] =
      "rung 1\nsymbol n 1..4\n%i = input {name=\"i\"} : i32[n]\n%x = input {name=\"x\"} : i32[8]\n%y = gather %x, "
      "%i\noutput \"y\" %y\n";
  const int32_t steps[8] = {1, 2, 3, 8, 0, 0, 0, 0};
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (submit_open(&w, text, d, &(world_options){.in_flight = 8})) {
      const int64_t one = 1;
      const int32_t first = 0;
      CHECK_OK(rung_context_add_input_feed(w.context, "y", "i"));
      world_put(&w, 0, &one, &first, 4);
      world_put(&w, 1, (int64_t[]){8}, steps, 32);
      for (int i = 0; i < 8; i++) {
        if (i == 6) world_put(&w, 0, &one, &first, 4); /* starts anew, whatever has become of the others */
        (void)submit(&w);
      }
      for (uint64_t t = 1; t <= 8; t++) {
        const rung_status want = t < 5 || t > 6 ? RUNG_OK : t == 5 ? RUNG_OUT_OF_RANGE : RUNG_CANCELLED;
        CHECK_STATUS(rung_context_wait(w.context, t), want);
      }
      const int32_t bad = 3;
      world_put(&w, 0, &one, &bad, 4);
      (void)submit(&w);
      (void)submit(&w);
      CHECK_STATUS(rung_context_sync(w.context), RUNG_OUT_OF_RANGE);
      uint64_t ticket;
      CHECK_STATUS(rung_context_submit(w.context, &ticket), RUNG_INVALID_ARGUMENT); /* nothing to go on with */
      CHECK_STATUS(rung_context_run(w.context), RUNG_INVALID_ARGUMENT);
      world_put(&w, 0, &one, &first, 4);
      CHECK(world_run(&w));
    }
    world_close(&w);
  }
}

/* ---- cancelling, destroying */

static void test_cancel(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    rung_runners_stop();
    if (open_kv(&w, d, 4, 0)) {
      test_fault fault = {.kind = RUNG_FAULT_THREAD, .at = 1};
      rung_context_cancel(w.context); /* ends nothing */
      uint64_t ticket[4];
      for (int i = 0; i < 4; i++) {
        fault = (test_fault){.kind = RUNG_FAULT_THREAD, .at = 1};
        rung_host_set_fault(w.host, test_fault_hit, &fault); /* so that none begins before the wait */
        if (i == 1) before = model;
        ticket[i] = submit_kv(&w, part[i], 2, false);
        if (i == 0) CHECK(submit_wait(&w, ticket[0]));
      }
      rung_host_set_fault(w.host, NULL, NULL);
      rung_context_cancel(w.context);
      for (int i = 1; i < 4; i++) CHECK_STATUS(rung_context_wait(w.context, ticket[i]), RUNG_CANCELLED);
      before.random = model.random;
      model = before;
      kv_check_rows(&w, &model);
      const uint64_t next = submit_kv(&w, part[1], 2, false);
      if (submit_wait(&w, next)) kv_check_attention(&w, &model, part[1], 2);
    }
    world_close(&w);
  }
}

static void cancel_at_once(void *self, const rung_step_info *info) {
  (void)info;
  rung_context_cancel((rung_context *)self);
}

/* From inside a step: that run ends within one step, and those behind it. */
static void test_cancel_from_a_step(void) {
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    if (open_kv(&w, d, 4, 0)) {
      before = model;
      rung_context_on_step(w.context, cancel_at_once, w.context);
      const uint64_t one = submit_kv(&w, part[0], 2, false);
      CHECK_STATUS(rung_context_wait(w.context, one), RUNG_CANCELLED);
      rung_context_on_step(w.context, NULL, NULL);
      check_lengths(&w, &before);
    }
    world_close(&w);
  }
}

static void test_destroyed_while_pending(void) {
  static _Alignas(64) float out[3][16];
  for (int d = submit_on.first; d < submit_on.end; d++) {
    world w;
    memset(out, 0, sizeof out);
    if (submit_open(&w, pick_text, d, &(world_options){.in_flight = 3})) {
      for (int i = 0; i < 3; i++) {
        const rung_tensor y = {.type = RUNG_TYPE_F32, .rank = 1, .extent = {16}, .data = out[i]};
        CHECK_OK(rung_context_bind_output(w.context, 0, &y));
        (void)submit_pick(&w, i, 40);
      }
    }
    rung_program_release(w.program);
    w.program = NULL;
    world_close(&w);
    for (int i = 0; i < 3; i++) CHECK(out[i][0] == 40 + (float)i);
  }
}

/* Cancelled from another thread at any time: each run ends well or cancelled, and the state agrees with what was said. */
static void call_cancel(void *self) {
  for (int i = 0; i < 300; i++) {
    rung_context_cancel((rung_context *)self);
    rung_thread_yield();
  }
}

static void test_cancel_from_a_thread(void) {
  for (int d = submit_on.first; d < SUBMIT_FAR; d++) {
    world w;
    rung_thread thread = {.self = NULL};
    if (open_kv(&w, d, 2, 0)) {
      CHECK_OK(rung_thread_start(&thread, w.host, call_cancel, w.context, NULL));
      int64_t length = 0, bad = 0;
      for (int i = 0; i < 100; i++) {
        model.length[0] = rung_state_length(w.state, 0);
        const uint64_t one = submit_kv(&w, (const rung_rows[]){{0, 1}}, 1, false);
        const uint64_t two = submit_kv(&w, (const rung_rows[]){{0, 2}}, 1, false);
        const rung_status a = rung_context_wait(w.context, one), b = rung_context_wait(w.context, two);
        bad += (a && a != RUNG_CANCELLED) || (b && b != RUNG_CANCELLED) || (a && !b);
        length += (a ? 0 : 1) + (b ? 0 : 2);
        if (length > 250) {
          length = 0;
          CHECK_OK(rung_state_truncate(w.state, 0, 0, NULL));
        }
        bad += rung_state_length(w.state, 0) != length;
      }
      CHECK_EQ_I64(bad, 0);
      rung_thread_join(&thread);
    }
    world_close(&w);
  }
}

/* ---- no memory */

/* What the caller's thread binds is not part of it. */
static _Thread_local bool binding;
static bool hit_elsewhere(void *self, rung_fault kind) { return !binding && test_fault_hit(self, kind); }

static rung_status scenario(int device, test_fault *fault) {
  rung_state_options so = rung_state_options_default();
  so.sequences = KV_SLOTS;
  so.capacity = 300;
  so.chunk = KV_CHUNK;
  so.blocks = 12;
  world w;
  model = (kv_model){.random = 3};
  rung_status s = submit_try(&w, kv_text, device, &(world_options){.state = &so, .in_flight = 3});
  uint64_t ticket[3] = {0};
  if (!s) rung_host_set_fault(w.host, hit_elsewhere, fault);
  for (int i = 0; !s && i < 3; i++) {
    binding = true;
    CHECK(kv_bind(&w, &model, part[i], 2));
    binding = false;
    s = rung_context_submit(w.context, &ticket[i]);
    if (!s) kv_grown(&model, part[i], 2);
  }
  for (int i = 0; i < 3; i++) {
    const rung_status own = ticket[i] ? rung_context_wait(w.context, ticket[i]) : RUNG_OK;
    if (!s) s = own;
  }
  if (!s) kv_check_attention(&w, &model, part[2], 2);
  if (w.context) CHECK_STATUS(rung_context_sync(w.context), RUNG_OK);
  if (w.host) rung_host_set_fault(w.host, NULL, NULL);
  if (w.context) { /* what failed can be done again, from where the state is */
    for (int32_t q = 0; q < KV_SLOTS; q++) model.length[q] = rung_state_length(w.state, q);
    CHECK(kv_bind(&w, &model, part[2], 2));
    CHECK_OK(rung_context_submit(w.context, &ticket[0]));
    CHECK_OK(rung_context_wait(w.context, ticket[0]));
  }
  world_close(&w);
  return s;
}

static void test_no_memory(void) {
  static const rung_fault kinds[] = {RUNG_FAULT_ALLOC, RUNG_FAULT_COMMIT, RUNG_FAULT_THREAD};
  for (int d = submit_on.first; d < SUBMIT_DEVICES; d++) { /* on the GPU each device takes too long to open */
    for (size_t k = 0; k < RUNG_COUNT(kinds); k++) {
      int64_t n = 1;
      for (;; n++) {
        test_fault fault = {.kind = kinds[k], .at = n};
        rung_runners_stop();
        const rung_status s = scenario(d, &fault);
        if (!fault.hit) {
          CHECK_OK(s);
          break;
        }
        if (kinds[k] == RUNG_FAULT_THREAD)
          CHECK_OK(s);
        else
          CHECK(s == RUNG_OUT_OF_MEMORY || s == RUNG_OVER_BUDGET);
      }
      CHECK(n > 1 || d == SUBMIT_FAR);
    }
  }
  CHECK(far_device.pinned == 0 && far_device.marks == 0 && far_device.reads == 0);
}

int main(int argc, char **argv) {
  if (!submit_begin(argc, argv)) return 77;
  if (submit_on.gpu) kv_bound = 1e-4;
  RUN(test_one_of_many);
  RUN(test_states_in_order);
  RUN(test_states_after_a_failure);
  RUN(test_submitted_behind_a_failure);
  RUN(test_calls_that_wait);
  RUN(test_dense_states);
  RUN(test_rows_are_fed);
  RUN(test_fed_by_a_failure);
  RUN(test_cancel);
  RUN(test_cancel_from_a_step);
  RUN(test_destroyed_while_pending);
  RUN(test_cancel_from_a_thread);
  RUN(test_no_memory);
  submit_end();
  return TEST_END();
}
