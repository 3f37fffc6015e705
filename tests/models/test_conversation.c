/* SPDX-License-Identifier: MIT
 * Texts of slots as wholes: what a prompt has in common with a slot is kept and changes no token; cut, copied, saved and
 * restored texts go on as they would have; damaged files change nothing. Also what a generator tells besides tokens. */
#include <math.h>
#include <unistd.h>

#include "tiny_world.h"

enum { CONTEXT = 96, MORE = 10 };

static void each_family(void (*test)(tiny *t)) {
  for (int f = 0; f < 2; f++) {
    tiny t;
    if (tiny_open(&t, tiny_paths[f], 2)) test(&t);
    tiny_close(&t);
  }
}

static rung_generator *generator(tiny *t, int32_t sequences, bool shift) {
  rung_generate_options o = tiny_options(sequences, CONTEXT, 32);
  o.shift = shift;
  o.keep = shift ? 4 : 0;
  rung_generator *g = tiny_generator(t, &o);
  if (g) tiny_greedy(g, sequences);
  return g;
}

static size_t fill(const tiny *t, int which, size_t common, size_t count, int32_t *ids) {
  for (size_t i = 0; i < count; i++) ids[i] = tiny_id(t, i < common ? 0 : which, (int64_t)i);
  return count;
}

/* Tokens that follow, of one slot. */
static int go_on(rung_generator *g, int32_t slot, int32_t out[TINY_TOKENS]) {
  tiny_texts texts = {0};
  CHECK(tiny_go_on(g, 1u << slot, MORE, &texts));
  memcpy(out, texts.id[slot], sizeof texts.id[slot]);
  return texts.count[slot];
}

/* What follows ids in a fresh generator. */
static int fresh(tiny *t, const int32_t *ids, size_t count, int32_t out[TINY_TOKENS]) {
  rung_generator *g = generator(t, 1, false);
  if (!g) return 0;
  CHECK_OK(rung_generator_prompt(g, 0, ids, count));
  const int n = go_on(g, 0, out);
  rung_generator_destroy(g);
  return n;
}

static void same(int n, const int32_t *got, int want_n, const int32_t *want) {
  CHECK_EQ_I64(n, want_n);
  for (int i = 0; i < n && i < want_n; i++) CHECK_EQ_I64(got[i], want[i]);
}

/* Several prompts one after another in one slot, each with some beginning in common with what is held. */
static void check_reuse(tiny *t) {
  static const struct {
    int which;
    size_t common, count, kept; /* kept where no window is in the way */
  } turns[] = {{0, 40, 40, 0}, {0, 40, 40, 39}, {1, 25, 50, 25}, {2, 7, 30, 7},
               {2, 7, 12, 11}, {3, 0, 20, 0},   {3, 0, 1, 0},    {3, 0, 60, 1}};
  rung_generator *g = generator(t, 1, false);
  if (!g) return;
  int32_t ids[CONTEXT], want[TINY_TOKENS], got[TINY_TOKENS];
  for (size_t i = 0; i < RUNG_COUNT(turns); i++) {
    const size_t count = fill(t, turns[i].which, turns[i].common, turns[i].count, ids);
    size_t kept = 99;
    CHECK_OK(rung_generator_set_text(g, 0, ids, count, &kept));
    if (t->info.window)
      CHECK(kept == turns[i].kept || kept == 0);
    else
      CHECK_EQ_I64(kept, turns[i].kept);
    CHECK_EQ_I64(rung_generator_length(g, 0), kept);
    const int n = go_on(g, 0, got), m = fresh(t, ids, count, want);
    same(n, got, m, want);
    const int32_t *held;
    size_t held_count;
    CHECK_OK(rung_generator_ids(g, 0, &held, &held_count));
    CHECK_EQ_I64(held_count, rung_generator_length(g, 0));
    CHECK(memcmp(held, ids, count * sizeof *ids) == 0);
    for (size_t k = count; k < held_count; k++) CHECK_EQ_I64(held[k], got[k - count]);
  }
  const int64_t length = rung_generator_length(g, 0);
  int32_t many[CONTEXT + 1] = {0};
  CHECK_STATUS(rung_generator_set_text(g, 0, many, CONTEXT + 1, NULL), RUNG_OUT_OF_RANGE);
  many[3] = -1;
  CHECK_STATUS(rung_generator_set_text(g, 0, many, 10, NULL), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_generator_set_text(g, 1, many, 1, NULL), RUNG_OUT_OF_RANGE);
  CHECK_EQ_I64(rung_generator_length(g, 0), length);
  CHECK_OK(rung_generator_set_text(g, 0, NULL, 0, NULL));
  CHECK_EQ_I64(rung_generator_length(g, 0), 0);
  rung_generator_destroy(g);
}
static void test_prompts_keep_what_they_share(void) { each_family(check_reuse); }

/* Behind a shift only what was kept in its place is a beginning of the same text. */
static void check_shifted(tiny *t) {
  rung_generator *g = generator(t, 1, true);
  if (!g) return;
  int32_t ids[CONTEXT], want[TINY_TOKENS], got[TINY_TOKENS];
  const int32_t *held;
  size_t count = fill(t, 0, CONTEXT, CONTEXT, ids), kept;
  CHECK_OK(rung_generator_prompt(g, 0, ids, count));
  CHECK_OK(rung_generator_prompt(g, 0, ids, 20)); /* longer than the context: the oldest half goes */
  (void)go_on(g, 0, got);
  CHECK_OK(rung_generator_ids(g, 0, &held, &count));
  CHECK_EQ_I64(count, rung_generator_length(g, 0));
  CHECK(count > 30 && held[3] == ids[3] && held[4] != ids[4]);
  memcpy(ids, held, count * sizeof *ids);
  count = 30;
  CHECK_OK(rung_generator_set_text(g, 0, ids, count, &kept));
  CHECK(kept == 4 || (t->info.window && kept == 0));
  const int n = go_on(g, 0, got), m = fresh(t, ids, count, want);
  same(n, got, m, want);
  rung_generator_destroy(g);
}
static void test_shifted_texts_are_no_beginnings(void) { each_family(check_shifted); }

static void check_copy(tiny *t) {
  rung_generator *g = generator(t, 3, false);
  if (!g) return;
  int32_t ids[CONTEXT], want[TINY_TOKENS], got[TINY_TOKENS];
  const size_t count = fill(t, 1, 9, 30, ids);
  CHECK_OK(rung_generator_prompt(g, 0, ids, count - 1));
  size_t n = 1;
  rung_token tokens[3];
  CHECK_OK(rung_generator_step(g, tokens, &n, NULL));
  CHECK_OK(rung_generator_prompt(g, 2, ids, 20)); /* what waited there goes */
  CHECK_OK(rung_generator_copy(g, 2, 0, (int64_t)count - 1));
  CHECK_EQ_I64(rung_generator_length(g, 2), count - 1);
  rung_generator_pause(g, 0);
  CHECK_OK(rung_generator_prompt(g, 2, ids + count - 1, 1));
  const int made = go_on(g, 2, got), m = fresh(t, ids, count, want);
  same(made, got, m, want);
  CHECK_STATUS(rung_generator_copy(g, 3, 0, 1), RUNG_OUT_OF_RANGE);
  CHECK_STATUS(rung_generator_copy(g, 0, -1, 1), RUNG_OUT_OF_RANGE);
  CHECK(rung_generator_copy(g, 1, 0, 1000) != RUNG_OK);
  CHECK(rung_generator_copy(g, 1, 0, -1) != RUNG_OK);
  CHECK_EQ_I64(rung_generator_length(g, 1), 0);
  /* Cut back, the original goes on the same way, unless a window is in the way. */
  const rung_status status = rung_generator_truncate(g, 0, 5);
  CHECK(status == RUNG_OK || (t->info.window && status == RUNG_UNSUPPORTED));
  if (!status) {
    CHECK_OK(rung_generator_prompt(g, 0, ids + 5, count - 5));
    rung_generator_pause(g, 2);
    same(go_on(g, 0, got), got, m, want);
  }
  rung_generator_destroy(g);
}
static void test_copies(void) { each_family(check_copy); }

/* ---- files */

static void path_of(const char *name, char path[256]) {
  const char *folder = getenv("TMPDIR");
  snprintf(path, 256, "%s/rung-%s-%ld", folder ? folder : "/tmp", name, (long)getpid());
}

static size_t read_whole(const char *path, uint8_t *data, size_t most) {
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  const size_t n = file ? fread(data, 1, most, file) : 0;
  if (file) fclose(file);
  return n;
}

/* Damage anywhere, and cuts, are noticed before anything changes. */
static void check_damage(rung_generator *g, uint8_t *data, size_t bytes) {
  rung_source source;
  CHECK_OK(rung_generator_reset(g, 0));
  for (size_t at = 0; at < bytes; at += at < 400 ? 1 : 997) {
    data[at] ^= 0x10;
    source = rung_source_memory(data, bytes);
    CHECK(rung_generator_restore(g, 0, &source) != RUNG_OK);
    CHECK(rung_generator_message(g)[0] != 0);
    data[at] ^= 0x10;
    source = rung_source_memory(data, at);
    CHECK(rung_generator_restore(g, 0, &source) != RUNG_OK);
    CHECK_EQ_I64(rung_generator_length(g, 0), 0);
  }
  source = rung_source_memory(data, bytes);
  CHECK_OK(rung_generator_restore(g, 0, &source));
}

/* Saved in the middle: the same tokens follow in another slot of another generator, also of one token that waits. */
static void check_save(tiny *t) {
  enum { MOST = 1 << 21 };
  rung_generator *g = generator(t, 2, false), *other = generator(t, 3, false);
  uint8_t *data = malloc(MOST);
  char path[256];
  if (!g || !other || !data) return;
  int32_t ids[CONTEXT], got[TINY_TOKENS], want[TINY_TOKENS];
  const size_t count = fill(t, 1, 9, 40, ids);
  tiny_texts texts = {0};
  CHECK_OK(rung_generator_prompt(g, 1, ids, count));
  CHECK(tiny_go_on(g, 2, 3, &texts));
  path_of("conversation", path);
  CHECK_OK(rung_generator_save(g, 1, path));
  const size_t bytes = read_whole(path, data, MOST);
  const int m = go_on(g, 1, want);
  rung_source source = rung_source_path(path);
  CHECK_OK(rung_generator_prompt(other, 2, ids, 7)); /* what waited there goes */
  CHECK_OK(rung_generator_restore(other, 2, &source));
  CHECK_EQ_I64(rung_generator_length(other, 2), count + 2);
  same(go_on(other, 2, got), got, m, want);
  CHECK_OK(rung_generator_set_text(other, 2, ids, count, NULL)); /* ids are known again */
  CHECK(rung_generator_length(other, 2) == (int64_t)count - 1 || t->info.window);
  check_damage(other, data, bytes);
  CHECK_STATUS(rung_generator_save(g, 0, NULL), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_generator_save(g, 0, "/nowhere/at/all"), RUNG_IO);
  CHECK_STATUS(rung_generator_restore(g, 0, NULL), RUNG_INVALID_ARGUMENT);
  rung_generator_destroy(g);
  rung_generator_destroy(other);
  const rung_generate_options small = tiny_options(1, 20, 4);
  g = tiny_generator(t, &small);
  CHECK_STATUS(rung_generator_restore(g, 0, &source), RUNG_OUT_OF_RANGE);
  CHECK_EQ_I64(rung_generator_length(g, 0), 0);
  rung_generator_destroy(g);
  unlink(path);
  free(data);
}
static void test_files(void) { each_family(check_save); }

static void test_another_model_is_refused(void) {
  tiny a, b;
  char path[256];
  path_of("other", path);
  if (tiny_open(&a, tiny_paths[0], 1) && tiny_open(&b, tiny_paths[1], 1)) {
    rung_generator *g = generator(&a, 1, false), *h = generator(&b, 1, false);
    CHECK_OK(rung_generator_save(g, 0, path));
    const rung_source source = rung_source_path(path);
    CHECK_STATUS(rung_generator_restore(h, 0, &source), RUNG_SHAPE_MISMATCH);
    CHECK(strstr(rung_generator_message(h), "llama") != NULL);
    rung_generator_destroy(g);
    rung_generator_destroy(h);
    unlink(path);
  }
  tiny_close(&a);
  tiny_close(&b);
}

/* Every allocation, read and write of these calls fails once: a status, and the call succeeds next. */
static void test_nth_failure(void) {
  tiny t;
  char path[256];
  path_of("failing", path);
  const rung_source source = rung_source_path(path);
  int32_t ids[CONTEXT];
  if (!tiny_open(&t, tiny_paths[0], 1)) return;
  const size_t count = fill(&t, 0, 0, 30, ids);
  for (int kind = 0; kind < RUNG_FAULTS; kind++) {
    for (int64_t n = 1, more = 1; more && n < 200; n++) {
      rung_generator *g = generator(&t, 2, false);
      rung_token tokens[2];
      size_t made;
      CHECK_OK(rung_generator_prompt(g, 0, ids, 10));
      CHECK_OK(rung_generator_step(g, tokens, &made, NULL));
      test_fault f = {.kind = (rung_fault)kind, .at = n};
      rung_host_set_fault(t.host, test_fault_hit, &f);
      for (int call = 0; call < 5; call++) {
        for (int again = 0; again < 2; again++) {
          const bool before = f.hit;
          const rung_status status = call == 0   ? rung_generator_set_text(g, 0, ids, count, NULL)
                                     : call == 1 ? rung_generator_step(g, tokens, &made, NULL)
                                     : call == 2 ? rung_generator_copy(g, 1, 0, (int64_t)count)
                                     : call == 3 ? rung_generator_save(g, 1, path)
                                                 : rung_generator_restore(g, 0, &source);
          CHECK((status != RUNG_OK) == (f.hit && !before));
          if (!status) break;
          CHECK(rung_generator_message(g)[0] != 0);
        }
      }
      rung_host_set_fault(t.host, NULL, NULL);
      CHECK_EQ_I64(rung_generator_length(g, 0), count);
      more = f.hit;
      rung_generator_destroy(g);
    }
  }
  unlink(path);
  tiny_close(&t);
}

/* ---- besides tokens */

/* Log-probabilities are those of the logits; the best of them is the greedy token. */
static void check_log_probabilities(tiny *t) {
  rung_generator *g = generator(t, 2, false), *plain = generator(t, 1, false);
  if (!g || !plain) return;
  int32_t ids[16];
  const size_t count = fill(t, 0, 0, 12, ids);
  rung_sample_options o = rung_sample_options_default();
  o.temperature = 0;
  o.log_probabilities = 3;
  CHECK_OK(rung_generator_sampling(g, 1, &o));
  double chosen;
  const rung_log_probability *best;
  int64_t n;
  CHECK_STATUS(rung_generator_log_probabilities(g, 1, &chosen, &best, &n), RUNG_NOT_FOUND);
  CHECK_OK(rung_generator_prompt(g, 1, ids, count));
  rung_token tokens[2];
  size_t made;
  CHECK_OK(rung_generator_step(g, tokens, &made, NULL));
  CHECK_OK(rung_generator_log_probabilities(g, 1, &chosen, &best, &n));
  CHECK_EQ_I64(n, 3);
  CHECK(best[0].id == tokens[0].id && best[0].value == chosen && best[1].value <= chosen);
  const float *logits;
  const rung_rows rows = {0, (int32_t)count};
  const int32_t last = (int32_t)count - 1;
  CHECK_OK(rung_generator_run(plain, &rows, 1, ids, &last, 1, &logits));
  double sum = 0;
  for (int64_t i = 0; i < t->info.vocabulary; i++) sum += exp((double)logits[i]);
  for (int64_t i = 0; i < n; i++) CHECK(fabs(best[i].value - ((double)logits[best[i].id] - log(sum))) < 1e-9);
  o.log_probabilities = t->info.vocabulary + 1;
  CHECK_STATUS(rung_generator_sampling(g, 1, &o), RUNG_INVALID_ARGUMENT);
  rung_generator_destroy(g);
  rung_generator_destroy(plain);
}
static void test_log_probabilities(void) { each_family(check_log_probabilities); }

static rung_status refuse_slot_0(void *self, rung_sample_row *row) {
  ++*(int *)self;
  CHECK(row->count > 0 && row->ids[0] >= 0);
  return row->slot == 0 ? RUNG_NOT_FOUND : RUNG_OK;
}

/* A caller's function that fails ends its own slot only. */
static void check_own(tiny *t) {
  rung_generator *g = generator(t, 2, false);
  if (!g) return;
  int calls = 0;
  rung_sample_options o = rung_sample_options_default();
  o.temperature = 0;
  o.fn = refuse_slot_0;
  o.fn_self = &calls;
  for (int32_t s = 0; s < 2; s++) {
    CHECK_OK(rung_generator_sampling(g, s, &o));
    CHECK_OK(tiny_prompt(t, g, s, s, 5));
  }
  rung_token tokens[2];
  size_t n;
  bool busy;
  CHECK_STATUS(rung_generator_step(g, tokens, &n, &busy), RUNG_NOT_FOUND);
  CHECK(n == 1 && tokens[0].slot == 1);
  CHECK(strstr(rung_generator_message(g), "the caller's sampler") != NULL);
  CHECK_EQ_I64(calls, 2);
  if (busy) CHECK_OK(rung_generator_step(g, tokens, &n, &busy));
  CHECK(n == 1 && tokens[0].slot == 1);
  rung_generator_destroy(g);
}
static void test_own_function(void) { each_family(check_own); }

/* Hidden states come as an output, and the logits keep their bits. */
static void check_hidden(tiny *t) {
  rung_generate_options o = tiny_options(2, CONTEXT, 32);
  rung_generator *plain = tiny_generator(t, &o);
  o.hidden = true;
  rung_generator *g = tiny_generator(t, &o);
  if (!g || !plain) return;
  int32_t ids[20];
  const int32_t wanted[2] = {11, 19};
  fill(t, 0, 0, 20, ids);
  const rung_rows rows[] = {{0, 12}, {1, 8}};
  const float *a, *b, *hidden;
  int32_t count = 9;
  CHECK_OK(rung_generator_hidden(g, &hidden, &count));
  CHECK_EQ_I64(count, 0);
  CHECK_OK(rung_generator_run(plain, rows, 2, ids, wanted, 2, &a));
  CHECK_OK(rung_generator_run(g, rows, 2, ids, wanted, 2, &b));
  CHECK(memcmp(a, b, 2 * (size_t)t->info.vocabulary * sizeof *a) == 0);
  CHECK_OK(rung_generator_hidden(g, &hidden, &count));
  CHECK_EQ_I64(count, 2);
  double size[2] = {0, 0};
  for (int64_t i = 0; i < t->info.width; i++)
    for (int r = 0; r < 2; r++) size[r] += fabs((double)hidden[r * t->info.width + i]);
  CHECK(size[0] > 0 && size[1] > 0 && size[0] != size[1]);
  /* A row is the same whatever is run beside it. */
  float *first = malloc((size_t)t->info.width * sizeof *first);
  memcpy(first, hidden, (size_t)t->info.width * sizeof *first);
  CHECK_OK(rung_generator_reset(g, 0));
  CHECK_OK(rung_generator_run(g, rows, 1, ids, wanted, 1, NULL));
  CHECK_OK(rung_generator_hidden(g, &hidden, &count));
  CHECK(count == 1 && memcmp(first, hidden, (size_t)t->info.width * sizeof *first) == 0);
  free(first);
  CHECK_STATUS(rung_generator_hidden(plain, &hidden, &count), RUNG_UNSUPPORTED);
  rung_generator_destroy(g);
  rung_generator_destroy(plain);
}
static void test_hidden_states(void) { each_family(check_hidden); }

int main(void) {
  RUN(test_prompts_keep_what_they_share);
  RUN(test_shifted_texts_are_no_beginnings);
  RUN(test_copies);
  RUN(test_files);
  RUN(test_another_model_is_refused);
  RUN(test_nth_failure);
  RUN(test_log_probabilities);
  RUN(test_own_function);
  RUN(test_hidden_states);
  return TEST_END();
}
