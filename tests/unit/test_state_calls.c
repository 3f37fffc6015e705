/* SPDX-License-Identifier: MIT
 * Calls on states: rows by hand, longer sequences, copies of prefixes, shifts, pools of blocks, saving and restoring,
 * going from program to program. */
#define _GNU_SOURCE
#include <rung/cache.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cts/rope_world.h"

static rope_model *new_model(bool adjacent) {
  rope_model *m = calloc(1, sizeof *m);
  if (!m) abort();
  m->adjacent = adjacent;
  return m;
}

/* Rows of both states of a slot, as far as they are held. */
typedef struct held_rows {
  int64_t length, first;
  float full[ROPE_MOST][ROPE_ROW], ring[ROPE_MOST][ROPE_ROW];
} held_rows;
static void read_all(world *w, int32_t slot, held_rows *out) {
  memset(out, 0, sizeof *out);
  out->length = rung_state_length(w->state, slot);
  out->first = rung_state_held(w->state, slot);
  CHECK_OK(rung_state_read_rows(w->state, "full", slot, 0, out->length, out->full[0], (size_t)out->length * ROPE_ROW,
                                &w->error));
  CHECK_OK(rung_state_read_rows(w->state, "ring", slot, out->first, out->length - out->first, out->ring[out->first],
                                (size_t)(out->length - out->first) * ROPE_ROW, &w->error));
}
static held_rows kept[3]; /* too large for a stack */

/* Outputs of one more run on a slot. */
static void run_on(world *w, rope_model *m, int32_t slot, int32_t count, float *out) {
  if (!rope_run(w, m, &(rung_rows){slot, count}, 1)) return;
  const rung_tensor y = world_output(w, 0), z = world_output(w, 1);
  memcpy(out, y.data, (size_t)count * 128);
  memcpy(out + count * 32, z.data, (size_t)count * 128);
}

static const struct {
  const char *type;
  double rounding; /* of a number of the type */
} types[] = {{"f32", 0x1p-24}, {"f16", 0x1p-11}, {"bf16", 0x1p-8}};

/* ---- rows by hand */

static void test_rows(void) {
  for (int d = 0; d < 2; d++) {
    world w;
    rope_model *m = new_model(false);
    if (rope_open(&w, m, d, "f16", 700, 0) && rope_fill(&w, m, 1, 500)) {
      rope_check(&w, m, 1, 2e-3);
      float row[ROPE_ROW], back[ROPE_ROW];
      for (int i = 0; i < ROPE_ROW; i++) row[i] = (float)(i - 7) * 0.25f;
      CHECK_OK(rung_state_write_rows(w.state, "full", 1, 77, 1, row, ROPE_ROW, NULL));
      CHECK_OK(rung_state_read_rows(w.state, "full", 1, 77, 1, back, ROPE_ROW, NULL));
      CHECK(memcmp(row, back, sizeof row) == 0);
      row[3] = 1 + 0x1p-20f; /* rounds to the state's type */
      CHECK_OK(rung_state_write_rows(w.state, "ring", 1, 499, 1, row, ROPE_ROW, NULL));
      CHECK_OK(rung_state_read_rows(w.state, "ring", 1, 499, 1, back, ROPE_ROW, NULL));
      CHECK(back[3] == 1);
      CHECK_OK(rung_state_read_rows(w.state, "full", 1, 500, 0, NULL, 0, NULL));
      static const struct {
        const char *name;
        int32_t slot;
        int64_t first, count;
        size_t floats;
        rung_status want;
      } bad[] = {{"full", 1, 500, 1, ROPE_ROW, RUNG_OUT_OF_RANGE},
                 {"full", 1, 499, 2, 2 * ROPE_ROW, RUNG_OUT_OF_RANGE},
                 {"full", 1, -1, 1, ROPE_ROW, RUNG_OUT_OF_RANGE},
                 {"full", 1, 3, -1, ROPE_ROW, RUNG_OUT_OF_RANGE},
                 {"full", 1, INT64_MAX, INT64_MAX, ROPE_ROW, RUNG_OUT_OF_RANGE},
                 {"full", 3, 0, 1, ROPE_ROW, RUNG_OUT_OF_RANGE},
                 {"full", -1, 0, 1, ROPE_ROW, RUNG_OUT_OF_RANGE},
                 {"full", 0, 0, 1, ROPE_ROW, RUNG_OUT_OF_RANGE},
                 {"full", 1, 0, 1, ROPE_ROW - 1, RUNG_SHAPE_MISMATCH},
                 {"full", 1, 0, 2, ROPE_ROW, RUNG_SHAPE_MISMATCH},
                 {"ring", 1, 0, 1, ROPE_ROW, RUNG_OUT_OF_RANGE},
                 {"none", 1, 0, 1, ROPE_ROW, RUNG_NOT_FOUND},
                 {NULL, 1, 0, 1, ROPE_ROW, RUNG_NOT_FOUND}};
      for (size_t i = 0; i < RUNG_COUNT(bad); i++) {
        rung_error error = {0};
        CHECK_STATUS(rung_state_write_rows(w.state, bad[i].name, bad[i].slot, bad[i].first, bad[i].count, row,
                                           bad[i].floats, &error),
                     bad[i].want);
        CHECK(error.message[0]);
        CHECK_STATUS(rung_state_read_rows(w.state, bad[i].name, bad[i].slot, bad[i].first, bad[i].count, back,
                                          bad[i].floats, &error),
                     bad[i].want);
      }
      CHECK_EQ_I64(rung_state_moved(w.state), 0);
    }
    world_close(&w);
    free(m);
  }
}

/* New positions hold zeros, also where a former owner left other things; what was there stays. */
static void test_extend(void) {
  static const int64_t lengths[] = {1, 63, 64, 65, 400, 700};
  for (int blocks = 0; blocks < 40; blocks += 33) {
    for (size_t i = 0; i < RUNG_COUNT(lengths); i++) {
      world w;
      rope_model *m = new_model(false);
      if (rope_open(&w, m, 1, "f32", 700, blocks)) {
        CHECK(rope_fill(&w, m, 0, 700));
        CHECK_OK(rung_state_truncate(w.state, 0, 0, NULL));
        m->length[0] = 0;
        CHECK(rope_fill(&w, m, 0, lengths[i] / 2));
        CHECK_OK(rung_state_extend(w.state, 0, lengths[i], &w.error));
        read_all(&w, 0, &kept[0]);
        CHECK_EQ_I64(kept[0].length, lengths[i]);
        int64_t wrong = 0;
        for (int64_t p = lengths[i] / 2; p < lengths[i]; p++)
          for (int e = 0; e < ROPE_ROW; e++) wrong += kept[0].full[p][e] != 0 || kept[0].ring[p][e] != 0;
        CHECK_EQ_I64(wrong, 0);
        CHECK_STATUS(rung_state_extend(w.state, 0, 701, &w.error), RUNG_OUT_OF_RANGE);
        CHECK_STATUS(rung_state_extend(w.state, 0, lengths[i] - 1, &w.error), RUNG_OUT_OF_RANGE);
        CHECK_EQ_I64(rung_state_length(w.state, 0), lengths[i]);
      }
      world_close(&w);
      free(m);
    }
  }
}

/* ---- copies */

static bool same_rows(const held_rows *a, const held_rows *b, int64_t length) {
  const int64_t first = a->first > b->first ? a->first : b->first;
  return memcmp(a->full, b->full, (size_t)length * sizeof a->full[0]) == 0 &&
         memcmp(a->ring[first], b->ring[first], (size_t)(length > first ? length - first : 0) * sizeof a->ring[0]) == 0;
}

/* A copy goes on with the bits of the original, in the same state and in one of another capacity. */
static void test_copy(void) {
  static const int64_t lengths[] = {0, 1, 63, 64, 65, 199, 250, 330};
  for (int d = 0; d < 2; d++) {
    for (size_t i = d ? 0 : 4; i < RUNG_COUNT(lengths); i++) {
      for (int other = 0; other < 3; other++) {
        static float want[2 * 5 * 32], got[2 * 5 * 32];
        world w, v;
        rope_model *m = new_model(false), *n = new_model(false);
        const bool open = rope_open(&w, m, d, "f16", 400, other == 2 ? 20 : 0);
        if (open && rope_fill(&w, m, 0, 330) && rope_fill(&w, m, 2, 90)) {
          rung_state_options so = rung_state_options_default();
          so.sequences = 2;
          so.capacity = other == 1 ? 1000 : 400;
          so.chunk = 5;
          v = w;
          if (other) {
            CHECK_OK(rung_state_create(w.template_, &so, &w.error, &v.state));
            CHECK_OK(rung_context_create(w.template_, NULL, v.state, NULL, &w.error, &v.context));
            CHECK_OK(rung_context_use(v.context, w.program));
          }
          const uint64_t moved = rung_state_moved(v.state);
          const rung_status status = rung_state_copy(v.state, 1, w.state, 0, lengths[i], &w.error);
          const bool held = lengths[i] == 0 || lengths[i] - ROPE_WINDOW >= rung_state_held(w.state, 0) ||
                            rung_state_held(w.state, 0) == 0;
          CHECK_STATUS(status, held ? RUNG_OK : RUNG_UNSUPPORTED);
          if (!status) {
            CHECK((rung_state_moved(v.state) > moved) == (lengths[i] > 0));
            CHECK_EQ_I64(rung_state_length(v.state, 1), lengths[i]);
            read_all(&w, 0, &kept[0]);
            read_all(&v, 1, &kept[1]);
            CHECK(same_rows(&kept[0], &kept[1], lengths[i]));
            *n = *m;
            n->length[1] = n->length[0] = lengths[i];
            memcpy(n->row[1], n->row[0], sizeof n->row[1]);
            const int64_t next = n->next;
            run_on(&v, n, 1, 5, got);
            rope_check(&v, n, 1, 2e-3);
            if (!rung_state_truncate(w.state, 0, lengths[i], NULL)) {
              m->length[0] = lengths[i];
              m->next = next;
              run_on(&w, m, 0, 5, want);
              CHECK(memcmp(want, got, sizeof want) == 0);
            }
            rope_check(&w, m, 2, 2e-3); /* a third one saw nothing */
          }
          if (other) {
            rung_context_destroy(v.context);
            rung_state_release(v.state);
          }
        }
        world_close(&w);
        free(m);
        free(n);
      }
    }
  }
}

static void test_copy_refusals(void) {
  world w, v;
  rope_model *m = new_model(false), *n = new_model(false);
  if (rope_open(&w, m, 1, "f32", 600, 0) && rope_fill(&w, m, 0, 600) && rope_fill(&w, m, 1, 100)) {
    CHECK_STATUS(rung_state_copy(w.state, 0, w.state, 0, 10, NULL), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_state_copy(w.state, 3, w.state, 0, 10, NULL), RUNG_OUT_OF_RANGE);
    CHECK_STATUS(rung_state_copy(w.state, 2, w.state, -1, 10, NULL), RUNG_OUT_OF_RANGE);
    CHECK_STATUS(rung_state_copy(w.state, 2, w.state, 1, 101, NULL), RUNG_OUT_OF_RANGE);
    CHECK_STATUS(rung_state_copy(w.state, 2, w.state, 1, -1, NULL), RUNG_OUT_OF_RANGE);
    CHECK_STATUS(rung_state_copy(w.state, 2, w.state, 0, 300, &w.error), RUNG_UNSUPPORTED);
    CHECK(strstr(w.error.message, "window of 200") != NULL);
    CHECK_EQ_I64(rung_state_length(w.state, 2), 0);
    if (rope_open(&v, n, 1, "f32", 99, 0)) {
      CHECK_STATUS(rung_state_copy(v.state, 0, w.state, 1, 50, NULL), RUNG_INVALID_ARGUMENT); /* another template */
      rung_state_options so = rung_state_options_default();
      rung_state *small;
      so.capacity = 99;
      CHECK_OK(rung_state_create(w.template_, &so, NULL, &small));
      CHECK_STATUS(rung_state_copy(small, 0, w.state, 1, 100, NULL), RUNG_OUT_OF_RANGE);
      CHECK_OK(rung_state_copy(small, 0, w.state, 1, 99, NULL));
      rung_state_release(small);
    }
    world_close(&v);
    rope_check(&w, m, 0, 1e-5);
    rope_check(&w, m, 1, 1e-5);
  }
  world_close(&w);
  free(m);
  free(n);
}

/* ---- shifts */

/* Shifts of every size behind every `keep`, windows that have gone round included: rows stand where they should, turned
 * by where they stand, and the sequence goes on. */
static void test_shift(void) {
  static const int64_t lengths[] = {20, 200, 330, 500, 900, 1100}, keeps[] = {0, 1, 4, 70, 300},
                       counts[] = {1, 2, 63, 64, 65, 100, 300, 384, 448, 700};
  int done = 0, refused = 0, gone_round = 0;
  for (size_t t = 0; t < RUNG_COUNT(types); t++) {
    for (size_t l = 0; l < RUNG_COUNT(lengths); l++) {
      for (size_t k = 0; k < RUNG_COUNT(keeps); k++) {
        for (size_t c = 0; c < RUNG_COUNT(counts); c++) {
          const int64_t length = lengths[l], keep = keeps[k], count = counts[c];
          if (keep + count > length || (test_slow() && (c + k) % 3)) continue;
          if ((l + k + c + t) % 2 && !(l > 3 && c > 4)) continue;
          world w;
          rope_model *m = new_model(t == 1);
          if (rope_open(&w, m, 1, types[t].type, 1200, (l + c) % 2 ? 50 : 0) && rope_fill(&w, m, 1, length)) {
            const rung_status status = rung_state_shift(w.state, 1, keep, count, &w.error);
            if (status) {
              CHECK_STATUS(status, RUNG_UNSUPPORTED); /* kept rows have left the window */
              CHECK(keep > 0 && length > ROPE_WINDOW);
              refused++;
            } else {
              rope_shifted(m, 1, keep, count);
              done++;
              gone_round += length > 384;
            }
            rope_check(&w, m, 1, 3 * types[t].rounding + 1e-6);
            CHECK(rope_fill(&w, m, 1, m->length[1] + 40));
            rope_check(&w, m, 1, 3 * types[t].rounding + 1e-6);
          }
          world_close(&w);
          free(m);
        }
      }
    }
  }
  CHECK(done > 90 && refused > 4 && gone_round > 15);
}

/* Two by 1 before a read are one by 2, bit for bit; with a read between them they are within two roundings. */
static void test_shifts_add_up(void) {
  for (int d = test_slow() ? 1 : 0; d < 2; d++) {
    for (size_t t = 0; t < RUNG_COUNT(types); t++) {
      world w;
      rope_model *m = new_model(t == 0);
      if (rope_open(&w, m, d, types[t].type, 500, 0) && rope_fill(&w, m, 0, d ? 430 : 300)) {
        CHECK_OK(rung_state_copy(w.state, 1, w.state, 0, m->length[0], NULL));
        CHECK_OK(rung_state_copy(w.state, 2, w.state, 0, m->length[0], NULL));
        CHECK_OK(rung_state_shift(w.state, 0, 0, 2, NULL));
        CHECK_OK(rung_state_shift(w.state, 1, 0, 1, NULL));
        CHECK_EQ_I64(rung_state_length(w.state, 1), m->length[0] - 1);
        CHECK_OK(rung_state_shift(w.state, 1, 0, 1, NULL));
        CHECK_OK(rung_state_shift(w.state, 2, 0, 1, NULL));
        read_all(&w, 2, &kept[2]);
        CHECK_OK(rung_state_shift(w.state, 2, 0, 1, NULL));
        for (int32_t s = 0; s < 3; s++) read_all(&w, s, &kept[s]);
        CHECK(memcmp(&kept[0], &kept[1], sizeof kept[0]) == 0);
        double worst = 0;
        for (int64_t p = 0; p < kept[0].length; p++)
          for (int e = 0; e < ROPE_ROW; e++) {
            const double a = (double)kept[0].full[p][e], b = (double)kept[2].full[p][e];
            /* A pair's numbers are rounded relative to themselves: its length bounds both. */
            worst = fmax(worst, fabs(a - b) / (2 * sqrt(2) * 2));
          }
        CHECK(worst <= 2 * types[t].rounding);
        CHECK(worst > 0);
      }
      world_close(&w);
      free(m);
    }
  }
}

/* Waiting shifts and everything else: cutting, cloning, another keep, sequences beside. */
static void test_shift_waits(void) {
  world w, v;
  rope_model *m = new_model(false), *n = new_model(false);
  if (rope_open(&w, m, 1, "f32", 300, 0) && rope_fill(&w, m, 0, 180) && rope_fill(&w, m, 1, 170)) {
    CHECK_OK(rung_state_shift(w.state, 0, 10, 20, NULL));
    CHECK_EQ_I64(rung_state_moved(w.state), 0);
    v = w;
    CHECK_OK(rung_context_clone(w.context, &w.error, &v.context));
    v.state = v.context->state;
    CHECK_EQ_I64(rung_state_moved(w.state), 0); /* cloning is no reading: both wait */
    CHECK_OK(rung_state_truncate(w.state, 0, 100, NULL));
    CHECK_OK(rung_state_shift(w.state, 0, 10, 5, NULL));
    CHECK_EQ_I64(rung_state_moved(w.state), 0);
    CHECK_OK(rung_state_shift(w.state, 0, 3, 4, NULL)); /* another keep: the first is done */
    CHECK(rung_state_moved(w.state) > 0);
    *n = *m;
    rope_shifted(n, 0, 10, 20);
    rope_check(&v, n, 0, 1e-5);
    rope_shifted(m, 0, 10, 20);
    m->length[0] = 100;
    rope_shifted(m, 0, 10, 5);
    rope_shifted(m, 0, 3, 4);
    CHECK(rope_run(&w, m, (rung_rows[]){{0, 3}, {1, 4}}, 2));
    rope_check(&w, m, 0, 1e-5);
    rope_check(&w, m, 1, 1e-5);
    CHECK_OK(rung_state_shift(w.state, 0, 50, 7, NULL));
    CHECK_OK(rung_state_truncate(w.state, 0, 20, NULL)); /* below keep: nothing waits any more */
    m->length[0] = 20;
    const uint64_t moved = rung_state_moved(w.state);
    CHECK(rope_fill(&w, m, 0, 60));
    CHECK_EQ_I64(rung_state_moved(w.state), moved);
    rope_check(&w, m, 0, 1e-5);
    CHECK_OK(rung_state_shift(w.state, 0, 0, 60, NULL)); /* all of it */
    CHECK_EQ_I64(rung_state_length(w.state, 0), 0);
    rung_context_destroy(v.context);
  }
  world_close(&w);
  free(m);
  free(n);
}

/* What cannot be turned back is refused by name; nothing changes. */
static void test_shift_refusals(void) {
  static const char front[] =
      "rung 1\nsymbol rows 0..32\nsymbol sequences 0..3\n"
      "%o = input {name=\"offsets\"} : i32[sequences+1]\n"
      "%s = input {name=\"slot\"} : i32[sequences]\n"
      "%p = input {name=\"past\"} : i32[sequences]\n"
      "%k = input {name=\"k\"} : f32[rows,2,8]\n"
      "%own = input {name=\"own\"} : i32[rows]\n"
      "%f = input {name=\"f\"} : f32[4]\n"
      "%at = positions %o, %p {rows=rows}\n"
      "%from0 = positions %o {rows=rows}\n"
      "%kv = state {name=\"kv\"} : kv f32[2,8,8]\n";
  static const struct {
    const char *text, *why;
  } rows[] = {
      {"%n = append %kv, %k, %k, %o, %s, %p\noutput \"a\" %at\n", "no rope"},
      {"%r = rope %k, %at\n%x = mul %r, %r\n%n = append %kv, %x, %k, %o, %s, %p\noutput \"a\" %at\n", "no rope"},
      {"%r = rope %k, %own\n%n = append %kv, %r, %k, %o, %s, %p\noutput \"a\" %at\n", "does not count"},
      {"%r = rope %k, %from0\n%n = append %kv, %r, %k, %o, %s, %p\noutput \"a\" %at\n", "does not count"},
      {"%r = rope %k, %at, %f\n%n = append %kv, %r, %k, %o, %s, %p\noutput \"a\" %at\n", "factors"},
      {"output \"a\" %at\n", "one append"},
      {"%r = rope %k, %at\n%n = append %kv, %r, %k, %o, %s, %p\n%m = append %n, %k, %k, %o, %s, %p\n"
       "output \"a\" %at\n",
       "one append"},
      {"%r = rope %k, %at\n%h = cast %r {type=f16}\n%n = append %kv, %h, %k, %o, %s, %p\noutput \"a\" %at\n", NULL}};
  for (size_t i = 0; i < RUNG_COUNT(rows); i++) {
    char text[2000];
    snprintf(text, sizeof text, "%s%s", front, rows[i].text);
    world w;
    rung_state_options so = rung_state_options_default();
    so.capacity = 100;
    if (world_open(&w, text, &(world_options){.device = "cpu", .state = &so})) {
      CHECK_OK(rung_state_extend(w.state, 0, 50, NULL));
      CHECK_STATUS(rung_state_shift(w.state, 0, 0, 5, &w.error), rows[i].why ? RUNG_UNSUPPORTED : RUNG_OK);
      if (rows[i].why) CHECK(strstr(w.error.message, rows[i].why) && strstr(w.error.message, "\"kv\""));
      if (rows[i].why) CHECK_EQ_I64(rung_state_length(w.state, 0), 50);
      CHECK_STATUS(rung_state_shift(w.state, 0, -1, 5, NULL), RUNG_OUT_OF_RANGE);
      CHECK_STATUS(rung_state_shift(w.state, 0, 0, 51, NULL), RUNG_OUT_OF_RANGE);
      CHECK_STATUS(rung_state_shift(w.state, 0, INT64_MAX, INT64_MAX, NULL), RUNG_OUT_OF_RANGE);
      CHECK_STATUS(rung_state_shift(w.state, 1, 0, 1, NULL), RUNG_OUT_OF_RANGE);
    }
    world_close(&w);
  }
}

/* ---- pools */

/* The same bits whichever blocks a sequence got; blocks go back, and are refused when there is none. */
static void test_pool(void) {
  static float want[2 * 30 * 32], got[2 * 30 * 32];
  world w;
  rope_model *m = new_model(false);
  if (rope_open(&w, m, 1, "f16", 500, 0) && rope_fill(&w, m, 1, 450)) run_on(&w, m, 1, 30, want);
  world_close(&w);
  *m = (rope_model){.adjacent = false};
  if (rope_open(&w, m, 1, "f16", 500, 9)) { /* 9 blocks for three sequences of up to 8 */
    CHECK(rope_fill(&w, m, 0, 260) && rope_fill(&w, m, 2, 64));
    CHECK_STATUS(rope_try(&w, m, (rung_rows[]){{2, 1}, {1, 31}}, 2), RUNG_OK); /* 5 + 2 + 1 */
    m->length[2]++, m->length[1] += 31;
    CHECK(rope_fill(&w, m, 1, 128)); /* the ninth */
    CHECK_STATUS(rope_try(&w, m, (rung_rows[]){{0, 30}, {2, 1}, {1, 1}}, 3), RUNG_OUT_OF_RANGE);
    CHECK(strstr(rung_context_message(w.context), "0 of the 9") != NULL);
    for (int32_t s = 0; s < 3; s++) rope_check(&w, m, s, 2e-3); /* nothing written, nobody longer */
    CHECK_OK(rung_state_truncate(w.state, 0, 64, NULL));
    m->length[0] = 64;
    CHECK(rope_fill(&w, m, 1, 300) && rope_fill(&w, m, 0, 100));
    for (int32_t s = 0; s < 3; s++) rope_check(&w, m, s, 2e-3);
    CHECK_OK(rung_state_truncate(w.state, 0, 0, NULL));
    CHECK_OK(rung_state_truncate(w.state, 1, 0, NULL));
    m->length[0] = m->length[1] = 0;
    m->next = 0;
    CHECK(rope_fill(&w, m, 1, 448)); /* 7 of them, and slot 2 has 2 */
    CHECK_STATUS(rope_try(&w, m, &(rung_rows){1, 1}, 1), RUNG_OUT_OF_RANGE);
    CHECK_OK(rung_state_truncate(w.state, 2, 0, NULL));
    CHECK_OK(rung_state_truncate(w.state, 1, 0, NULL));
    m->length[1] = m->length[2] = 0;
    m->next = 0;
    CHECK(rope_fill(&w, m, 1, 450));
    run_on(&w, m, 1, 30, got);
    CHECK(memcmp(want, got, sizeof want) == 0);
    const uint64_t bytes = rung_state_bytes(w.state);
    rung_state_clear(w.state);
    CHECK(bytes > 0 && rung_state_bytes(w.state) == 0);
    m->length[1] = 0;
    m->next = 0;
    CHECK(rope_fill(&w, m, 1, 450));
    run_on(&w, m, 1, 30, got);
    CHECK(memcmp(want, got, sizeof want) == 0);
    const rung_lengths lengths = {ROPE_SLOTS, m->length, 500, ROPE_CHUNK, 9};
    rung_memory need = {0};
    CHECK_OK(rung_program_memory(w.program, NULL, 0, &lengths, NULL, &need));
    CHECK_EQ_I64(rung_state_bytes(w.state), need.state);
  }
  world_close(&w);
  free(m);
}

/* ---- from program to program */

/* Every rung of a ladder on one state, up and down: the blocks stay where they are, nothing is copied, and the bits are
 * those of one large program. Rows [0, h) may also come from the host. */
static void test_rollover(void) {
  static float want[2 * 32 * 32], got[2 * 32 * 32];
  for (int host = 0; host < 2; host++) {
    world w, v;
    rope_model *m = new_model(false), *n = new_model(false);
    rung_ladder *ladder = NULL;
    if (rope_open(&w, m, 1, "f16", 600, 0) && rope_open(&v, n, 1, "f16", 600, 0)) {
      rung_range range[RUNG_MAX_RANGES];
      size_t ranges = 0;
      rung_build build = rung_build_default();
      rung_ladder_options lo = rung_ladder_options_default();
      build.template_ = w.template_;
      lo.symbol = "rows";
      CHECK_OK(rung_ranges_power_of_two(1, 32, &w.error, range, &ranges));
      CHECK_OK(rung_ladder_create(w.device, &build, range, ranges, &lo, &w.error, &ladder));
      const uint8_t *base = w.state->class_[0].region.base, *ring = w.state->class_[1].region.base;
      for (int32_t round = 0; round < 40; round++) {
        const int32_t rows = round < 6 ? 1 << round : 1 + (round * 11) % 32;
        if (m->length[0] + rows > 600) break;
        CHECK_OK(rung_ladder_use(ladder, w.context, rows, &w.error));
        run_on(&w, m, 0, rows, got);
        run_on(&v, n, 0, rows, want);
        CHECK(memcmp(got, want, (size_t)rows * 2 * 128) == 0);
        CHECK(w.state->class_[0].region.base == base && w.state->class_[1].region.base == ring);
        if (host && round == 10) { /* what the host kept of the first rows */
          const int64_t h = m->length[0] / 2;
          read_all(&w, 0, &kept[0]);
          CHECK_OK(rung_state_write_rows(w.state, "full", 0, 0, h, kept[0].full[0], (size_t)h * ROPE_ROW, NULL));
        }
      }
      CHECK(m->length[0] > 400);
      CHECK_EQ_I64(rung_state_moved(w.state), 0);
      rope_check(&w, m, 0, 2e-3);
    }
    rung_ladder_destroy(ladder);
    world_close(&w);
    world_close(&v);
    free(m);
    free(n);
  }
}

/* Lengths 3 and 250 in one run are the two alone, bit for bit. */
static void test_together_or_alone(void) {
  static float together[2 * 2 * 32], alone[2 * 2 * 32];
  world w, v;
  rope_model *m = new_model(false), *n = new_model(false);
  if (rope_open(&w, m, 1, "f16", 300, 0) && rope_open(&v, n, 1, "f16", 300, 0)) {
    CHECK(rope_fill(&w, m, 0, 3) && rope_fill(&w, m, 2, 250) && rope_fill(&v, n, 0, 3) && rope_fill(&v, n, 2, 250));
    for (int run = 0; run < 5; run++) {
      CHECK(rope_run(&w, m, (rung_rows[]){{0, 1}, {2, 1}}, 2));
      for (int o = 0; o < 2; o++) memcpy(together + o * 64, world_output(&w, o).data, 256);
      for (int32_t s = 0; s < 2; s++) {
        CHECK(rope_run(&v, n, &(rung_rows){2 * s, 1}, 1));
        for (int o = 0; o < 2; o++) memcpy(alone + o * 64 + s * 32, world_output(&v, o).data, 128);
      }
      CHECK(memcmp(together, alone, sizeof together) == 0);
    }
  }
  world_close(&w);
  world_close(&v);
  free(m);
  free(n);
}

/* ---- saving */

static uint8_t *save(world *w, int32_t slot, uint64_t *out_bytes) {
  CHECK_OK(rung_state_saved_bytes(w->state, slot, &w->error, out_bytes));
  uint8_t *data = malloc(*out_bytes + 1);
  CHECK_OK(rung_state_save_memory(w->state, slot, data, *out_bytes, &w->error));
  return data;
}

/* Restored states go on with the bits of the original: other capacities, pools, slots, devices' own orders. */
static void test_save(void) {
  static float want[2 * 20 * 32], got[2 * 20 * 32];
  for (int how = 0; how < 5; how++) {
    world w, v;
    rope_model *m = new_model(false), *n = new_model(false);
    const int from = how == 4 ? 0 : 1;
    if (rope_open(&w, m, from, "f16", 500, how == 1 ? 20 : 0) &&
        rope_open(&v, n, 1, "f16", how == 2 ? 800 : 450, how == 3 ? 20 : 0)) {
      CHECK(rope_fill(&w, m, 0, how == 4 ? 230 : 430) && rope_fill(&w, m, 2, 70) && rope_fill(&v, n, 1, 150));
      CHECK_OK(rung_state_shift(w.state, 0, 0, 9, NULL));
      rope_shifted(m, 0, 0, 9);
      uint64_t bytes;
      uint8_t *all = save(&w, RUNG_ALL_SEQUENCES, &bytes);
      rung_source source = rung_source_memory(all, bytes);
      CHECK_OK(rung_state_restore(v.state, RUNG_ALL_SEQUENCES, &source, &v.error));
      *n = *m;
      for (int32_t s = 0; s < 3; s++) {
        read_all(&w, s, &kept[0]);
        read_all(&v, s, &kept[1]);
        CHECK(kept[0].length == kept[1].length && same_rows(&kept[0], &kept[1], kept[0].length));
        CHECK(memcmp(kept[0].ring[kept[0].length > 200 ? kept[0].length - 200 : 0],
                     kept[1].ring[kept[0].length > 200 ? kept[0].length - 200 : 0],
                     (size_t)(kept[0].length > 200 ? 200 : kept[0].length) * sizeof kept[0].ring[0]) == 0);
      }
      free(all);
      if (from) {
        run_on(&w, m, 0, 20, want);
        run_on(&v, n, 0, 20, got);
        CHECK(memcmp(want, got, sizeof want) == 0);
        uint8_t *one = save(&w, 2, &bytes);
        source = rung_source_memory(one, bytes);
        CHECK_STATUS(rung_state_restore(v.state, RUNG_ALL_SEQUENCES, &source, &v.error), RUNG_INVALID_ARGUMENT);
        CHECK_OK(rung_state_restore(v.state, 1, &source, &v.error));
        memcpy(n->row[1], m->row[2], sizeof n->row[1]);
        n->length[1] = m->length[2];
        n->next = m->next;
        run_on(&w, m, 2, 20, want);
        run_on(&v, n, 1, 20, got);
        CHECK(memcmp(want, got, sizeof want) == 0);
        rope_check(&v, n, 0, 3e-3);
        free(one);
      }
    }
    world_close(&w);
    world_close(&v);
    free(m);
    free(n);
  }
}

static void test_save_file(void) {
  char path[] = "/tmp/rung_state_XXXXXX", text[64], part[128];
  const int file = mkstemp(path);
  CHECK(file >= 0);
  close(file);
  world w, v;
  rope_model *m = new_model(false), *n = new_model(false);
  if (rope_open(&w, m, 1, "f32", 300, 0) && rope_open(&v, n, 1, "f32", 300, 0) && rope_fill(&w, m, 0, 100)) {
    CHECK_OK(rung_state_save(w.state, 0, path, &w.error));
    const rung_source source = rung_source_path(path);
    CHECK_OK(rung_state_restore(v.state, 2, &source, &v.error));
    memcpy(n->row[2], m->row[0], sizeof n->row[2]);
    n->length[2] = 100;
    rope_check(&v, n, 2, 1e-5);
    uint64_t bytes = 0;
    struct stat st;
    CHECK_OK(rung_state_saved_bytes(w.state, 0, NULL, &bytes));
    CHECK(stat(path, &st) == 0 && (uint64_t)st.st_size == bytes);
    snprintf(part, sizeof part, "%s/none/here", path);
    CHECK_STATUS(rung_state_save(w.state, 0, part, &w.error), RUNG_IO);
    CHECK_STATUS(rung_state_save(w.state, 3, path, &w.error), RUNG_OUT_OF_RANGE);
    CHECK_STATUS(rung_state_save(w.state, 0, NULL, &w.error), RUNG_INVALID_ARGUMENT);
    CHECK_STATUS(rung_state_save_memory(w.state, 0, text, sizeof text, &w.error), RUNG_OUT_OF_RANGE);
    const rung_source nothing = rung_source_path("/nowhere/at/all");
    CHECK(rung_state_restore(v.state, 2, &nothing, &v.error) != RUNG_OK);
    rope_check(&v, n, 2, 1e-5);
  }
  unlink(path);
  world_close(&w);
  world_close(&v);
  free(m);
  free(n);
}

/* Cut at every byte, every byte changed: refused, and the state holds what it held. */
static void test_hostile_files(void) {
  world w, v;
  rope_model *m = new_model(false), *n = new_model(false);
  if (rope_open(&w, m, 1, "f16", 300, 0) && rope_open(&v, n, 1, "f16", 300, 0) && rope_fill(&w, m, 0, 7) &&
      rope_fill(&w, m, 1, 66) && rope_fill(&v, n, 0, 90)) {
    uint64_t bytes;
    uint8_t *all = save(&w, RUNG_ALL_SEQUENCES, &bytes);
    int64_t taken = 0;
    rung_error error;
    for (uint64_t i = 0; i < bytes; i += i < 600 ? 1 : 37) {
      uint8_t *cut = malloc(i + 1); /* so that reading behind the end is seen */
      memcpy(cut, all, i);
      rung_source source = rung_source_memory(cut, i);
      taken += rung_state_restore(v.state, RUNG_ALL_SEQUENCES, &source, &error) == RUNG_OK;
      free(cut);
      source = rung_source_memory(all, bytes);
      all[i] ^= (uint8_t)(1 << i % 8);
      taken += rung_state_restore(v.state, RUNG_ALL_SEQUENCES, &source, &error) == RUNG_OK;
      all[i] ^= (uint8_t)(1 << i % 8);
    }
    CHECK_EQ_I64(taken, 0);
    uint8_t *longer = calloc(1, bytes + 1);
    memcpy(longer, all, bytes);
    rung_source source = rung_source_memory(longer, bytes + 1);
    CHECK_STATUS(rung_state_restore(v.state, RUNG_ALL_SEQUENCES, &source, &error), RUNG_CORRUPT_FILE);
    rope_check(&v, n, 0, 2e-3);
    free(longer);
    free(all);
  }
  world_close(&w);
  world_close(&v);
  free(m);
  free(n);
}

/* Checksums can be made right by anyone: lengths, windows, names and sizes of an honest-looking file are checked, too.
 */
static void test_forged_files(void) {
  world w, v;
  rope_model *m = new_model(false), *n = new_model(false);
  if (rope_open(&w, m, 1, "f16", 300, 0) && rope_open(&v, n, 1, "f16", 300, 0) && rope_fill(&w, m, 1, 66) &&
      rope_fill(&v, n, 0, 90)) {
    uint64_t bytes;
    uint8_t *all = save(&w, RUNG_ALL_SEQUENCES, &bytes);
    const uint64_t head = all[16] | (uint64_t)all[17] << 8;
    rung_error error;
    int64_t taken = 0;
    for (uint64_t i = 24; i < 24 + head; i++) {
      for (int k = 0; k < 3; k++) {
        const uint8_t before = all[i];
        all[i] = (uint8_t)(k == 0 ? 0xFF : k == 1 ? before + 1 : before ^ 0x80);
        const rung_hash h = rung_hash_bytes(all + 24, head);
        for (int b = 0; b < 8; b++) all[24 + head + (uint64_t)b] = (uint8_t)(h.low >> 8 * b);
        for (int b = 0; b < 8; b++) all[32 + head + (uint64_t)b] = (uint8_t)(h.high >> 8 * b);
        const rung_source source = rung_source_memory(all, bytes);
        taken += rung_state_restore(v.state, RUNG_ALL_SEQUENCES, &source, &error) == RUNG_OK;
        all[i] = before;
      }
    }
    CHECK_EQ_I64(taken, 0);
    rope_check(&v, n, 0, 2e-3);
    free(all);
  }
  world_close(&w);
  world_close(&v);
  free(m);
  free(n);
  /* States of another type, by name. */
  n = new_model(false), m = new_model(false);
  if (rope_open(&w, m, 1, "f32", 300, 0) && rope_open(&v, n, 1, "f16", 300, 0)) {
    uint64_t bytes;
    uint8_t *all = save(&w, RUNG_ALL_SEQUENCES, &bytes);
    const rung_source source = rung_source_memory(all, bytes);
    CHECK_STATUS(rung_state_restore(v.state, RUNG_ALL_SEQUENCES, &source, &v.error), RUNG_TYPE_MISMATCH);
    CHECK(strstr(v.error.message, "\"full\"") != NULL);
    free(all);
  }
  world_close(&w);
  world_close(&v);
  free(m);
  free(n);
}

static void test_save_dense(void) {
  static const char text[] =
      "rung 1\n"
      "%0 = input {name=\"x\"} : f32[3,4]\n"
      "%s1 = state {name=\"s\"} : state f32[3,4]\n"
      "%2 = add %s1, %0 : f32[3,4]\n"
      "%s3 = assign %s1, %2 : state f32[3,4]\n"
      "output \"y\" %2\n";
  world w, v;
  const rung_state_options so = rung_state_options_default();
  const world_options o = {.device = "cpu", .state = &so};
  if (world_open(&w, text, &o) && world_open(&v, text, &o)) {
    float x[12];
    for (int i = 0; i < 12; i++) x[i] = (float)i;
    for (int run = 0; run < 3; run++) CHECK(world_put(&w, 0, (int64_t[]){3, 4}, x, sizeof x) && world_run(&w));
    uint64_t bytes;
    uint8_t *all = save(&w, RUNG_ALL_SEQUENCES, &bytes);
    const rung_source source = rung_source_memory(all, bytes);
    CHECK_OK(rung_state_restore(v.state, RUNG_ALL_SEQUENCES, &source, &v.error));
    CHECK(world_put(&v, 0, (int64_t[]){3, 4}, x, sizeof x) && world_run(&v));
    for (int i = 0; i < 12; i++) x[i] *= 4;
    WORLD_CHECK_F32(&v, 0, 12, x);
    CHECK_STATUS(rung_state_saved_bytes(w.state, 0, &w.error, &bytes), RUNG_UNSUPPORTED);
    CHECK_STATUS(rung_state_extend(w.state, 0, 1, &w.error), RUNG_UNSUPPORTED);
    CHECK_STATUS(rung_state_shift(w.state, 0, 0, 0, &w.error), RUNG_UNSUPPORTED);
    CHECK_STATUS(rung_state_copy(w.state, 0, v.state, 0, 0, &w.error), RUNG_INVALID_ARGUMENT);
    free(all);
  }
  world_close(&w);
  world_close(&v);
}

/* ---- what fails */

/* Calls whose n-th allocation, commit or write fails leave everything as it was. */
static void test_failures(void) {
  static const rung_fault kinds[] = {RUNG_FAULT_ALLOC, RUNG_FAULT_COMMIT, RUNG_FAULT_READ};
  char path[] = "/tmp/rung_state_XXXXXX";
  const int file = mkstemp(path);
  CHECK(file >= 0);
  close(file);
  for (int pool = 0; pool < 2; pool++) {
    for (int call = 0; call < 4; call++) {
      for (size_t k = 0; k < RUNG_COUNT(kinds); k++) {
        bool hit = true;
        for (int64_t at = 1; hit && at < 100; at++) {
          world w;
          rope_model *m = new_model(false);
          hit = false;
          if (rope_open(&w, m, 1, "f16", 500, pool ? 30 : 0) && rope_fill(&w, m, 0, 400) && rope_fill(&w, m, 1, 10)) {
            rung_state_options so = rung_state_options_default();
            so.sequences = 2;
            so.capacity = 450;
            so.blocks = pool ? 10 : 0;
            rung_state *other;
            CHECK_OK(rung_state_create(w.template_, &so, &w.error, &other));
            uint64_t bytes;
            uint8_t *all = save(&w, 0, &bytes);
            const rung_source source = rung_source_memory(all, bytes);
            test_fault f = {.kind = kinds[k], .at = at};
            rung_host_set_fault(w.host, test_fault_hit, &f);
            rung_status status = RUNG_OK;
            if (call == 0) status = rung_state_copy(other, 1, w.state, 0, 400, &w.error);
            if (call == 1) status = rung_state_restore(other, 1, &source, &w.error);
            if (call == 2) status = rung_state_extend(w.state, 1, 480, &w.error);
            if (call == 3) status = rung_state_save(w.state, 0, path, &w.error);
            rung_host_set_fault(w.host, NULL, NULL);
            hit = f.hit;
            CHECK((status != RUNG_OK) == hit);
            CHECK_EQ_I64(rung_state_length(other, 1), call < 2 && !hit ? 400 : 0);
            CHECK_EQ_I64(rung_state_length(w.state, 1), call == 2 && !hit ? 480 : 10);
            if (hit) rope_check(&w, m, 1, 2e-3);
            rope_check(&w, m, 0, 2e-3);
            if (call == 0 && hit) CHECK_OK(rung_state_copy(other, 1, w.state, 0, 400, &w.error));
            rung_state_release(other);
            free(all);
          }
          world_close(&w);
          free(m);
        }
      }
    }
  }
  unlink(path);
}

int main(void) {
  RUN(test_rows);
  RUN(test_extend);
  RUN(test_copy);
  RUN(test_copy_refusals);
  RUN(test_shift);
  RUN(test_shifts_add_up);
  RUN(test_shift_waits);
  RUN(test_shift_refusals);
  RUN(test_pool);
  RUN(test_rollover);
  RUN(test_together_or_alone);
  RUN(test_save);
  RUN(test_save_file);
  RUN(test_save_dense);
  RUN(test_hostile_files);
  RUN(test_forged_files);
  RUN(test_failures);
  return TEST_END();
}
