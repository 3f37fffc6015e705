/* SPDX-License-Identifier: MIT
 * States against plain arrays: rows of key/value states at every length, windows, truncating, slots used again, runs
 * that fail; dense states; memory as predicted. */
#include "cts/kv_world.h"

static kv_model *new_model(uint64_t seed) {
  kv_model *m = calloc(1, sizeof *m);
  if (!m) abort();
  m->random = seed;
  return m;
}

/* The reference takes minutes under a sanitizer. */
static int first_device(void) { return test_slow() ? 1 : 0; }

/* ---- lengths */

static void test_every_length(void) {
  for (int d = first_device(); d < 2; d++) {
    world w;
    kv_model *m = new_model(5);
    if (kv_open(&w, d, 400)) {
      const int64_t most = d && !test_slow() ? 400 : 140; /* the reference is slow */
      for (int64_t n = 0; n < most; n++) {
        const rung_rows rows = {1, 1};
        if (!kv_run(&w, m, &rows, 1)) break;
        const int64_t near = m->length[1] % 64;
        if (near <= 2 || near >= 62) kv_check_rows(&w, m), kv_check_attention(&w, m, &rows, 1);
      }
      CHECK_EQ_I64(m->length[1], most);
    }
    world_close(&w);
    free(m);
  }
}

/* Three sequences of their own lengths in one run, empty ones among them, in any order. */
static void test_ragged(void) {
  for (int d = first_device(); d < 2; d++) {
    world w;
    kv_model *m = new_model(6);
    if (kv_open(&w, d, KV_MOST)) {
      uint64_t random = 17;
      for (int run = 0; run < (d && !test_slow() ? 60 : 15); run++) {
        rung_rows rows[KV_SLOTS];
        const int32_t count = (int32_t)test_below(&random, KV_SLOTS + 1),
                      first = (int32_t)test_below(&random, KV_SLOTS);
        int32_t room = KV_CHUNK;
        for (int32_t i = 0; i < count; i++) {
          const int32_t slot = (first + i) % KV_SLOTS;
          int64_t n = test_below(&random, 4) ? test_below(&random, 9) : test_below(&random, room + 1);
          if (n > room) n = room;
          if (m->length[slot] + n > KV_MOST) n = 0;
          rows[i] = (rung_rows){slot, (int32_t)n};
          room -= (int32_t)n;
        }
        if (!kv_run(&w, m, rows, count)) break;
        kv_check_attention(&w, m, rows, count);
        if (run % 10 == 9) kv_check_rows(&w, m);
      }
    }
    world_close(&w);
    free(m);
  }
}

static void test_capacity(void) {
  static const int64_t capacities[] = {1, 2, 63, 64, 65, 128, 150};
  for (int d = 0; d < 2; d++) {
    for (size_t c = 0; c < RUNG_COUNT(capacities); c++) {
      world w;
      kv_model *m = new_model(7);
      if (kv_open(&w, d, capacities[c])) {
        while (m->length[0] < capacities[c]) {
          const int64_t left = capacities[c] - m->length[0];
          if (!kv_run(&w, m, &(rung_rows){0, (int32_t)(left < 40 ? left : 40)}, 1)) break;
        }
        kv_check_rows(&w, m); /* the last slot is usable */
        CHECK(kv_bind(&w, m, (rung_rows[]){{0, 1}, {1, 1}}, 2));
        CHECK_STATUS(rung_context_run(w.context),
                     RUNG_OUT_OF_RANGE); /* one more is refused, and nothing happens to others */
        CHECK(strstr(rung_context_message(w.context), "sequence 0") != NULL);
        kv_check_rows(&w, m);
        if (kv_run(&w, m, &(rung_rows){1, 1}, 1)) kv_check_rows(&w, m);
      }
      world_close(&w);
      free(m);
    }
  }
}

static void test_refused_options(void) {
  world w;
  if (!kv_open(&w, 0, 64)) {
    world_close(&w);
    return;
  }
  static const struct {
    int32_t sequences;
    int64_t capacity, chunk;
    rung_status want;
  } rows[] = {{1, 0, 0, RUNG_INVALID_ARGUMENT},
              {0, 10, 0, RUNG_INVALID_ARGUMENT},
              {1, -1, 0, RUNG_INVALID_ARGUMENT},
              {1, 10, -1, RUNG_INVALID_ARGUMENT},
              {1, ((int64_t)1 << 38) + 64, 0, RUNG_OUT_OF_RANGE},
              {1, INT64_MAX, 0, RUNG_OUT_OF_RANGE},
              {1 << 20, INT32_MAX, 0, RUNG_OVERFLOW},
              {INT32_MAX, 64, 0, RUNG_OUT_OF_RANGE}};
  for (size_t i = 0; i < RUNG_COUNT(rows); i++) {
    rung_state_options so = rung_state_options_default();
    so.sequences = rows[i].sequences;
    so.capacity = rows[i].capacity;
    so.chunk = rows[i].chunk;
    rung_state *state = NULL;
    rung_error error = {0};
    CHECK_STATUS(rung_state_create(w.template_, &so, &error, &state), rows[i].want);
    CHECK(!state && error.message[0]);
  }
  world_close(&w);
}

/* ---- truncating */

static rung_status cut(world *w, kv_model *m, int32_t slot, int64_t length) {
  const rung_status status = rung_state_truncate(w->state, slot, length, NULL);
  if (!status) m->length[slot] = length;
  return status;
}

/* What truncate allows must be right afterwards: new rows see what the window says, from every cut, in one step or two.
 */
static void test_truncate(void) {
  for (int d = first_device(); d < 2; d++) {
    static const int64_t back[] = {0, 1, 5, 63, 64, 65, 100, 130, 200, 260, 359, 360};
    int allowed = 0, refused = 0;
    for (size_t first = 0; first < RUNG_COUNT(back); first++) {
      for (size_t second = 0; second < RUNG_COUNT(back); second += 2) {
        if ((d == 0 || test_slow()) && (second || first % 3 == 2))
          continue; /* the reference is slow, the rule is one */
        world w;
        kv_model *m = new_model(8);
        if (kv_open(&w, d, 512)) {
          while (m->length[2] < 360 && kv_run(&w, m, &(rung_rows){2, 60}, 1)) {
          }
          rung_status status = cut(&w, m, 2, 360 - back[first]);
          if (!status && back[second] <= m->length[2]) status = cut(&w, m, 2, m->length[2] - back[second]);
          if (status) CHECK_STATUS(status, RUNG_UNSUPPORTED);
          *(status ? &refused : &allowed) += 1;
          const rung_rows rows = {2, 3};
          if (kv_run(&w, m, &rows, 1)) kv_check_attention(&w, m, &rows, 1), kv_check_rows(&w, m);
        }
        world_close(&w);
        free(m);
      }
    }
    CHECK(allowed > 2);
    CHECK(refused > 1);
  }
}

static void test_truncate_refusals(void) {
  world w;
  kv_model *m = new_model(9);
  if (kv_open(&w, 0, 100) && kv_run(&w, m, &(rung_rows){0, 10}, 1)) {
    CHECK_STATUS(rung_state_truncate(w.state, 0, 11, NULL), RUNG_OUT_OF_RANGE);
    CHECK_STATUS(rung_state_truncate(w.state, 0, -1, NULL), RUNG_OUT_OF_RANGE);
    CHECK_STATUS(rung_state_truncate(w.state, 3, 0, NULL), RUNG_OUT_OF_RANGE);
    CHECK_STATUS(rung_state_truncate(w.state, -1, 0, NULL), RUNG_OUT_OF_RANGE);
    kv_check_rows(&w, m);
  }
  world_close(&w);
  free(m);
}

/* ---- slots used again */

static void copy_outputs(world *w, float *out) {
  const rung_tensor full = world_output(w, 0), ring = world_output(w, 1);
  memcpy(out, full.data, (size_t)world_count(&full) * 4);
  memcpy(out + world_count(&full), ring.data, (size_t)world_count(&ring) * 4);
}

/* A slot whose former owner left NaN everywhere gives the bits of a fresh one. */
static void test_slot_used_again(void) {
  for (int d = first_device(); d < 2; d++) {
    static float first[2 * 70 * 32], again[2 * 70 * 32];
    const rung_rows rows = {1, 70};
    world w;
    kv_model *m = new_model(10);
    if (kv_open(&w, d, 512) && kv_run(&w, m, &rows, 1)) copy_outputs(&w, first);
    world_close(&w);
    for (int how = 0; how < 2; how++) {
      *m = (kv_model){.random = 11, .poison = true};
      if (kv_open(&w, d, 512)) {
        while (m->length[1] < 480 && kv_run(&w, m, &(rung_rows){1, 60}, 1)) {
        }
        if (how)
          rung_state_clear(w.state);
        else
          CHECK_OK(rung_state_truncate(w.state, 1, 0, NULL));
        *m = (kv_model){.random = 10};
        if (kv_run(&w, m, &rows, 1)) copy_outputs(&w, again);
        CHECK(memcmp(first, again, sizeof first) == 0);
        kv_check_rows(&w, m);
      }
      world_close(&w);
    }
    free(m);
  }
}

/* ---- runs that fail */

static void cancel_here(void *self, const rung_step_info *info) {
  if (strcmp(info->op, "append") == 0) rung_context_cancel((rung_context *)self);
}

/* A run that fails after its rows were written leaves the lengths; the same run then gives what it would have given,
 * also where truncating comes between. */
static void test_failed_run(void) {
  for (int how = 0; how < 4; how++) {
    const int d = how % 2;
    if (d < first_device()) continue;
    static float want[2 * 80 * 32], got[2 * 80 * 32];
    for (int second = 0; second < 2; second++) {
      world w;
      kv_model *m = new_model(12);
      if (kv_open(&w, d, 512)) {
        while (m->length[0] < 240 && kv_run(&w, m, &(rung_rows){0, 60}, 1)) {
        }
        for (int attempt = 0; second && attempt < 2; attempt++) {
          const uint64_t random = m->random;
          CHECK(kv_bind(&w, m, &(rung_rows){0, 80}, 1));
          int32_t wrong[80] = {0};
          wrong[79] = 80;
          if (how / 2)
            rung_context_on_step(w.context, cancel_here, w.context);
          else
            CHECK(world_put(&w, KV_IN_I, (int64_t[]){80}, wrong, sizeof wrong));
          CHECK_STATUS(rung_context_run(w.context), how / 2 ? RUNG_CANCELLED : RUNG_OUT_OF_RANGE);
          rung_context_on_step(w.context, NULL, NULL);
          m->random = random;
          CHECK_EQ_I64(rung_state_length(w.state, 0), 240);
        }
        const rung_rows rows = {0, 80};
        if (kv_run(&w, m, &rows, 1))
          copy_outputs(&w, second ? got : want), kv_check_attention(&w, m, &rows, 1), kv_check_rows(&w, m);
      }
      world_close(&w);
      free(m);
    }
    CHECK(memcmp(want, got, sizeof want) == 0);
  }
}

/* Rows of a failed run may have gone over the oldest block of a ring: truncating then knows. */
static void test_truncate_after_failure(void) {
  int refused = 0;
  for (int64_t back = 0; back < 120; back += 7) {
    world w;
    kv_model *m = new_model(13);
    if (kv_open(&w, 1, 512)) {
      while (m->length[0] < 300 && kv_run(&w, m, &(rung_rows){0, 60}, 1)) {
      }
      kv_model *before = new_model(1);
      *before = *m;
      CHECK(kv_bind(&w, m, &(rung_rows){0, 80}, 1));
      rung_context_on_step(w.context, cancel_here, w.context);
      CHECK_STATUS(rung_context_run(w.context), RUNG_CANCELLED);
      rung_context_on_step(w.context, NULL, NULL);
      *m = *before;
      free(before);
      const rung_rows rows = {0, 2};
      if (cut(&w, m, 0, 300 - back)) refused++;
      if (kv_run(&w, m, &rows, 1)) kv_check_attention(&w, m, &rows, 1), kv_check_rows(&w, m);
    }
    world_close(&w);
    free(m);
  }
  CHECK(refused > 0 && refused < 18);
}

/* ---- ragged inputs by hand */

static void test_hand_made_rows(void) {
  static const struct {
    int32_t offsets[3], slot[2], past[2];
    rung_status want;
  } rows[] = {{{0, 2, 5}, {0, 1}, {10, 0}, RUNG_OK},
              {{1, 2, 5}, {0, 1}, {10, 0}, RUNG_OUT_OF_RANGE},
              {{0, 6, 5}, {0, 1}, {10, 0}, RUNG_OUT_OF_RANGE},
              {{0, 2, 4}, {0, 1}, {10, 0}, RUNG_SHAPE_MISMATCH},
              {{0, 2, 6}, {0, 1}, {10, 0}, RUNG_SHAPE_MISMATCH},
              {{0, 2, 5}, {0, 3}, {10, 0}, RUNG_OUT_OF_RANGE},
              {{0, 2, 5}, {0, -1}, {10, 0}, RUNG_OUT_OF_RANGE},
              {{0, 2, 5}, {1, 1}, {0, 0}, RUNG_INVALID_ARGUMENT},
              {{0, 2, 5}, {0, 1}, {9, 0}, RUNG_OUT_OF_RANGE},
              {{0, 2, 5}, {0, 1}, {11, 0}, RUNG_OUT_OF_RANGE},
              {{0, 2, 5}, {0, 1}, {-2147483647, 0}, RUNG_OUT_OF_RANGE},
              {{0, 2147483647, 5}, {0, 1}, {10, 0}, RUNG_OUT_OF_RANGE}};
  for (size_t i = 0; i < RUNG_COUNT(rows); i++) {
    world w;
    kv_model *m = new_model(14);
    if (kv_open(&w, 1, 512) && kv_run(&w, m, &(rung_rows){0, 10}, 1) &&
        kv_bind(&w, m, (rung_rows[]){{0, 2}, {1, 3}}, 2)) {
      CHECK(world_put(&w, KV_IN_OFFSETS, (int64_t[]){3}, rows[i].offsets, 12) &&
            world_put(&w, KV_IN_SLOT, (int64_t[]){2}, rows[i].slot, 8) &&
            world_put(&w, KV_IN_PAST, (int64_t[]){2}, rows[i].past, 8));
      const rung_status status = rung_context_run(w.context);
      CHECK_STATUS(status, rows[i].want);
      CHECK_EQ_I64(rung_state_length(w.state, 0), status ? 10 : 12);
    }
    world_close(&w);
    free(m);
  }
}

/* ---- memory */

static void test_memory_is_as_predicted(void) {
  uint64_t random = 23;
  for (int i = 0; i < (test_slow() ? 8 : 40); i++) {
    static const int64_t capacities[] = {1, 64, 100, 300, 600};
    const int64_t capacity = capacities[test_below(&random, 5)];
    world w;
    kv_model *m = new_model(15);
    if (kv_open(&w, i % 4 ? 1 : first_device(), capacity)) {
      for (int32_t s = 0; s < KV_SLOTS; s++) {
        const int64_t want = test_below(&random, 3) ? test_below(&random, capacity + 1) : 0;
        while (m->length[s] < want &&
               kv_run(&w, m, &(rung_rows){s, (int32_t)(want - m->length[s] < 80 ? want - m->length[s] : 80)}, 1)) {
        }
      }
      const rung_lengths lengths = {KV_SLOTS, m->length, capacity, KV_CHUNK, 0};
      rung_memory need = {0};
      CHECK_OK(
          rung_program_memory(w.program, (rung_binding[]){{"rows", 1}, {"sequences", 1}}, 2, &lengths, NULL, &need));
      CHECK_EQ_I64(rung_state_bytes(w.state), need.state);
      CHECK_EQ_I64(rung_host_memory(w.host).state, need.state);
      rung_state_clear(w.state);
      CHECK_EQ_I64(rung_state_bytes(w.state), 0);
    }
    world_close(&w);
    free(m);
  }
}

/* ---- dense states */

static void test_dense(void) {
  static const char text[] =
      "rung 1\nsymbol n 0..5\n"
      "%0 = input {name=\"x\"} : f32[2,n,3]\n"
      "%1 = input {name=\"at\"} : i32[2]\n"
      "%s2 = state {name=\"s\"} : state f32[2,8,3]\n"
      "%s3 = append_dense %s2, %0, %1 : state f32[2,8,3]\n"
      "%4 = reduce_sum %s3 {axes=[2]} : f32[2,8]\n"
      "output \"y\" %4\n";
  for (int d = 0; d < 2; d++) {
    world w;
    const rung_state_options so = rung_state_options_default();
    if (world_open(&w, text, &(world_options){.device = world_devices[d], .state = &so})) {
      float model[2][8][3] = {{{0}}}, x[2][5][3];
      uint64_t random = 31;
      for (int run = 0; run < 60; run++) {
        const int64_t n = test_below(&random, 6);
        const int32_t at[2] = {(int32_t)test_below(&random, 10 - n), (int32_t)test_below(&random, 10 - n)};
        float *to = &x[0][0][0];
        for (int64_t e = 0; e < 2 * n * 3; e++) to[e] = (float)(run * 100 + (int)e);
        const bool fits = at[0] + n <= 8 && at[1] + n <= 8;
        for (int b = 0; fits && b < 2; b++)
          for (int64_t i = 0; i < n * 3; i++) (&model[b][at[b]][0])[i] = to[b * n * 3 + i];
        if (!world_put(&w, 0, (int64_t[]){2, n, 3}, x, (size_t)n * 24) || !world_put(&w, 1, (int64_t[]){2}, at, 8))
          continue;
        CHECK_STATUS(rung_context_run(w.context), fits ? RUNG_OK : RUNG_OUT_OF_RANGE);
        rung_tensor s;
        CHECK_OK(rung_state_tensor(w.state, "s", NULL, &s));
        CHECK(memcmp(s.data, model, sizeof model) == 0); /* nothing is written unless all rows have room */
        float want[16];
        for (int i = 0; i < 16; i++)
          want[i] = (&model[0][0][0])[3 * i] + (&model[0][0][0])[3 * i + 1] + (&model[0][0][0])[3 * i + 2];
        if (fits) WORLD_CHECK_F32(&w, 0, 16, want);
      }
      rung_state_clear(w.state);
      rung_tensor s;
      CHECK_OK(rung_state_tensor(w.state, "s", NULL, &s));
      for (int i = 0; i < 48; i++) CHECK(((float *)s.data)[i] == 0);
      CHECK_STATUS(rung_state_tensor(w.state, "t", NULL, &s), RUNG_NOT_FOUND);
    }
    world_close(&w);
  }
}

int main(void) {
  RUN(test_refused_options);
  RUN(test_truncate_refusals);
  RUN(test_dense);
  RUN(test_hand_made_rows);
  RUN(test_capacity);
  RUN(test_slot_used_again);
  RUN(test_failed_run);
  RUN(test_truncate_after_failure);
  RUN(test_memory_is_as_predicted);
  RUN(test_ragged);
  RUN(test_every_length);
  RUN(test_truncate);
  return TEST_END();
}
