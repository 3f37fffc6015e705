/* SPDX-License-Identifier: MIT
 * Candidates' tags and spaces, size buckets, and tables of winners: trimming, ticks, the file, threads, processes,
 * failing calls. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test.h"
#include "base/map_file.h"
#include "runtime/tune/winners.h"

static rung_host *host;
static rung_error error;
static char folder[64];

static rung_candidate candidate(uint16_t splits, uint16_t keys) {
  return (rung_candidate){.splits = splits,
                          .keys = keys,
                          .tile = 1,
                          .padding = 1,
                          .head = 128,
                          .kv = RUNG_TYPE_F16,
                          .stages = splits > 1 ? 2 : 1};
}

static rung_status parse(const char *text, rung_candidate *out) {
  return rung_candidate_parse(text, strlen(text), &error, out);
}

/* ---- tags */

static void test_tags(void) {
  rung_candidate c, back;
  char tag[RUNG_CANDIDATE_TAG];
  CHECK_OK(parse("splits=16,keys=256,kv=f16,head=128,stages=2", &c));
  CHECK_EQ_I64(c.splits, 16);
  CHECK_EQ_I64(c.keys, 256);
  CHECK_EQ_I64(c.tile, 1); /* missing: 1 */
  CHECK_EQ_I64(c.padding, 1);
  CHECK_EQ_I64(c.head, 128);
  CHECK_EQ_I64(c.kv, RUNG_TYPE_F16);
  CHECK_EQ_I64(c.stages, 2);
  rung_candidate_print(&c, tag);
  CHECK_STR(tag, "splits=16,keys=256,kv=f16,head=128,stages=2");
  CHECK_OK(parse("stages=1,head=512,kv=q8_0,padding=8,tile=4,keys=64,splits=1", &c));
  rung_candidate_print(&c, tag);
  CHECK_STR(tag, "splits=1,keys=64,tile=4,padding=8,kv=q8_0,head=512,stages=1");
  CHECK_OK(parse(tag, &back));
  CHECK(rung_candidate_equal(&c, &back));
}

static void refuse(const char *text, const char *names) {
  rung_candidate c;
  CHECK_STATUS(parse(text, &c), RUNG_INVALID_ARGUMENT);
  test_state.checks++;
  if (!strstr(error.message, names)) TEST_FAIL_("\"%s\": \"%s\" does not name %s", text, error.message, names);
}

static void test_tags_refused(void) {
  refuse("splits=16,keys=256,kv=f16,head=128,stages=2,warps=4", "warps=4"); /* unknown */
  refuse("splits=16,keys=256,kv=f16,head=128,stages=2,16", "16");
  refuse("splits=16,keys=256,kv=f16,head=128,stages=2,", "empty");
  refuse("", "empty");
  refuse(",splits=16", "empty");
  refuse("splits=16,splits=16,keys=256,kv=f16,head=128,stages=2", "twice");
  refuse("splits=16,keys=256,kv=f16,head=128", "stages is missing");
  refuse("keys=256,kv=f16,head=128,stages=2", "splits is missing");
  static const char *const out_of_range[] = {
      "splits=0",  "splits=3",  "splits=64", "splits=-2", "splits=+2",
      "splits= 2", "splits=2 ", "splits=",   "keys=32",   "keys=1024",
      "keys=100",  "tile=0",    "tile=65",   "padding=0", "padding=65",
      "kv=f64",    "kv=q4_0",   "kv=half",   "kv=",       "head=0",
      "head=513",  "stages=0",  "stages=3",  "stages=2x", "head=99999999999999999999"};
  for (size_t i = 0; i < RUNG_COUNT(out_of_range); i++) refuse(out_of_range[i], out_of_range[i]);
}

/* Every candidate of every kind of space prints, parses back, is found in its space, and comes once. */
static void test_spaces(void) {
  static rung_candidate all[RUNG_CANDIDATES];
  const rung_candidate_space widest = {RUNG_TYPE_Q8_0, 512, 32, true, 512, 64, 64};
  CHECK_EQ_I64(rung_candidates(&widest, all, RUNG_CANDIDATES), RUNG_CANDIDATES);
  const size_t n = rung_candidates(&widest, all, RUNG_CANDIDATES);
  for (size_t i = 0; i < n; i++) {
    rung_candidate back;
    char tag[RUNG_CANDIDATE_TAG];
    rung_candidate_print(&all[i], tag);
    CHECK_OK(parse(tag, &back));
    CHECK(rung_candidate_equal(&all[i], &back) && rung_candidate_in(&widest, &back));
    for (size_t k = 0; k < i; k++) CHECK(!rung_candidate_equal(&all[i], &all[k]));
  }
  const rung_candidate_space decode = {RUNG_TYPE_F16, 128, 32, true, 512, 1, 1};
  CHECK_EQ_I64(rung_candidates(&decode, all, RUNG_CANDIDATES), 1 + 5 * 4);
  CHECK_EQ_I64(all[0].splits, 1);
  CHECK_EQ_I64(all[0].stages, 1);
  CHECK_EQ_I64(rung_candidates(&decode, all, 3), 3);
  rung_candidate_space less = decode;
  less.most_splits = 8, less.most_keys = 128, less.one_stage = false;
  CHECK_EQ_I64(rung_candidates(&less, all, RUNG_CANDIDATES), 3 * 2);
  less.head = 0;
  CHECK_EQ_I64(rung_candidates(&less, all, RUNG_CANDIDATES), 0);
  less.head = 513;
  CHECK_EQ_I64(rung_candidates(&less, all, RUNG_CANDIDATES), 0);
  rung_candidate other = candidate(16, 256);
  CHECK(rung_candidate_in(&decode, &other));
  other.kv = RUNG_TYPE_F32;
  CHECK(!rung_candidate_in(&decode, &other));
  other = candidate(16, 256), other.head = 64;
  CHECK(!rung_candidate_in(&decode, &other));
  other = candidate(16, 256), other.tile = 2;
  CHECK(!rung_candidate_in(&decode, &other));
  other = candidate(16, 256), other.stages = 1;
  CHECK(!rung_candidate_in(&decode, &other));
}

static void test_buckets(void) {
  static const int64_t edge[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  for (uint16_t b = 0; b < RUNG_COUNT(edge); b++) {
    CHECK_EQ_I64(rung_tune_bucket(edge[b]), b);
    CHECK_EQ_I64(rung_tune_bucket(edge[b] + 1), b + 1);
    CHECK_EQ_I64(rung_tune_bucket_rows(b), edge[b]);
  }
  CHECK_EQ_I64(rung_tune_bucket(0), 0);
  CHECK_EQ_I64(rung_tune_bucket(INT64_MAX), 10);
  CHECK_EQ_I64(rung_tune_bucket_rows(10), 513);
  CHECK_EQ_I64(RUNG_TUNE_BUCKETS, 11);
  CHECK_EQ_I64(rung_default_stages(8, 1), 2);
  CHECK_EQ_I64(rung_default_stages(9, 1024), 1);
  CHECK_EQ_I64(rung_default_stages(9, 1025), 2);
  CHECK_EQ_I64(rung_default_stages(512, 1025), 2);
  CHECK_EQ_I64(rung_default_stages(1, 4096), 2);
}

/* ---- tables */

static const char *path_of(const char *name) {
  static char path[4][128];
  static int at;
  at = (at + 1) % 4;
  snprintf(path[at], sizeof path[at], "%s/%s", folder, name);
  return path[at];
}

static rung_winners_options options_of(const char *path) {
  return (rung_winners_options){.device = "a device",
                                .signature = "a kernel,kv=f16",
                                .path = path,
                                .load = true,
                                .save = true,
                                .entries = RUNG_WINNERS,
                                .most = RUNG_WINNERS,
                                .eviction = RUNG_TUNE_LRU};
}

static rung_winners *create(rung_winners_options o) {
  rung_winners *w = NULL;
  CHECK_OK(rung_winners_create(host, &o, &error, &w));
  return w;
}

static rung_winners *open_capped(const char *path, uint32_t cap, rung_tune_eviction eviction) {
  rung_winners_options o = options_of(path);
  o.entries = cap;
  o.eviction = eviction;
  return create(o);
}

static void put(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  CHECK(file != NULL);
  if (!file) return;
  fputs(text, file);
  fclose(file);
}

static bool is_file(const char *path, const char *text) {
  static char got[4096];
  FILE *file = fopen(path, "rb");
  const size_t n = file ? fread(got, 1, sizeof got - 1, file) : 0;
  got[n] = 0;
  if (file) fclose(file);
  if (strcmp(got, text) != 0) fprintf(stderr, "%s:\n%s", path, got);
  return strcmp(got, text) == 0;
}

#define HEAD "# rung winners 1\n# columns\tbucket\ttag\ttick\n# device\ta device\n# signature\ta kernel,kv=f16\n"
#define TAG "splits=16,keys=256,kv=f16,head=128,stages=2"
#define TAG_8 "splits=8,keys=64,kv=f16,head=128,stages=2"

static bool has(rung_winners *w, const char *text) {
  rung_winner row[64];
  char got[1024] = "";
  const size_t n = rung_winners_list(w, row, RUNG_COUNT(row));
  for (size_t i = 0; i < n; i++) {
    const size_t used = strlen(got);
    snprintf(got + used, sizeof got - used, "%s%u:%lld", i ? " " : "", row[i].bucket, (long long)row[i].tick);
  }
  if (strcmp(got, text) != 0) fprintf(stderr, "rows are \"%s\"\n", got);
  return strcmp(got, text) == 0;
}

/* Reads the file, renewing nothing: the bucket is in no table here. */
static void load(rung_winners *w) {
  bool found = true;
  rung_candidate c;
  CHECK_OK(rung_winners_find(w, 60000, &error, &found, &c));
  CHECK(!found);
}

static void test_trim_buckets(void) {
  const char *path = path_of("buckets");
  put(path, HEAD "0\t" TAG "\t1\n2\t" TAG "\t2\n5\t" TAG "\t3\n");
  rung_winners *w = open_capped(path, 2, RUNG_TUNE_KEEP_LOW);
  load(w);
  CHECK(has(w, "0:1 2:2")); /* 5 went */
  CHECK_EQ_I64(rung_winners_clock(w), 3);
  rung_winners_destroy(w);
  w = open_capped(path, 2, RUNG_TUNE_KEEP_HIGH);
  load(w);
  CHECK(has(w, "2:2 5:3")); /* 0 went */
  rung_winners_destroy(w);
  w = open_capped(path, 0, RUNG_TUNE_KEEP_HIGH); /* each cap is at least 1 */
  load(w);
  CHECK(has(w, "5:3"));
  rung_winners_destroy(w);
  rung_winners_options o = options_of(path); /* the smaller cap holds */
  o.entries = 3, o.most = 2, o.eviction = RUNG_TUNE_KEEP_LOW;
  w = create(o);
  load(w);
  CHECK(has(w, "0:1 2:2"));
  rung_winners_destroy(w);
}

static void test_trim_ticks(void) {
  const char *path = path_of("ticks"), *copy = path_of("copy");
  put(path, HEAD "1\t" TAG "\t30\n2\t" TAG "\t10\n3\t" TAG "\t20\n");
  rung_winners *w = open_capped(path, 2, RUNG_TUNE_LRU);
  load(w);
  CHECK(has(w, "1:30 3:20"));
  CHECK_EQ_I64(rung_winners_clock(w), 30);
  CHECK_OK(rung_winners_save(w, &error));
  rung_winners_destroy(w);
  CHECK(is_file(path, HEAD "1\t" TAG "\t30\n3\t" TAG "\t20\n"));
  w = open_capped(path, 2, RUNG_TUNE_LRU); /* and again: nothing moves */
  CHECK_OK(rung_winners_save(w, &error));
  CHECK(has(w, "1:30 3:20"));
  CHECK_EQ_I64(rung_winners_clock(w), 30);
  rung_winners_destroy(w);
  CHECK(is_file(path, HEAD "1\t" TAG "\t30\n3\t" TAG "\t20\n"));
  put(copy, HEAD "1\t" TAG "\t7\n2\t" TAG "\t7\n3\t" TAG "\t7\n4\t" TAG "\t9\n"); /* ties go by bucket */
  w = open_capped(copy, 2, RUNG_TUNE_LRU);
  load(w);
  CHECK(has(w, "3:7 4:9"));
  rung_winners_destroy(w);
  put(copy, HEAD "1\t" TAG "\t70\n2\t" TAG "\t3\n"); /* the clock goes on behind what was trimmed, too */
  w = open_capped(copy, 1, RUNG_TUNE_KEEP_HIGH);
  load(w);
  CHECK(has(w, "2:3"));
  CHECK_EQ_I64(rung_winners_clock(w), 70);
  bool found;
  rung_candidate c;
  CHECK_OK(rung_winners_find(w, 2, &error, &found, &c));
  CHECK(has(w, "2:71"));
  rung_winners_destroy(w);
}

static void test_rows(void) {
  const char *path = path_of("rows");
  put(path, HEAD "4\t" TAG "\n1\t" TAG "\n"); /* two columns */
  rung_winners *w = create(options_of(path));
  load(w);
  CHECK(has(w, "1:0 4:0"));
  CHECK_EQ_I64(rung_winners_clock(w), 0);
  rung_winners_destroy(w);
  put(path, HEAD "9\t" TAG
                 "\tx\n" /* bad ticks: 0 */
                 "8\t" TAG "\t-4\n7\t" TAG "\t99999999999999999999\n6\t" TAG
                 "\t\n"
                 "5\t" TAG
                 "\t3\tmore\tcolumns\n" /* ignored */
                 "3\t" TAG "\t4\n3\t" TAG_8
                 "\t2\r\n" /* the last wins, also with another end of line */
                 "-1\t" TAG "\t5\n65536\t" TAG "\t5\nx\t" TAG "\t5\n\t" TAG
                 "\t5\n"
                 "2\tsplits=3\t5\n2\t\t5\n2\n\n# a remark\n65535\t" TAG "\t6"); /* no end of line */
  w = create(options_of(path));
  load(w);
  CHECK(has(w, "3:2 5:3 6:0 7:0 8:0 9:0 65535:6"));
  CHECK_EQ_I64(rung_winners_clock(w), 6);
  bool found;
  rung_candidate c;
  CHECK_OK(rung_winners_find(w, 3, &error, &found, &c));
  CHECK(found && c.splits == 8 && c.keys == 64);
  rung_winners_destroy(w);
}

static void test_other_tables(void) {
  static const char *const text[] = {
      "# device\tanother\n# signature\ta kernel,kv=f16\n1\t" TAG "\t3\n",
      "# device\ta device\n# signature\ta kernel,kv=f32\n1\t" TAG "\t3\n",
      "# device\ta device\n1\t" TAG "\t3\n",
      "# signature\ta kernel,kv=f16\n1\t" TAG "\t3\n",
      "1\t" TAG "\t3\n",
      "",
      "# device\ta device \n# signature\ta kernel,kv=f16\n1\t" TAG "\t3\n",
  };
  const char *path = path_of("other");
  for (size_t i = 0; i < RUNG_COUNT(text); i++) {
    put(path, text[i]);
    rung_winners *w = create(options_of(path));
    load(w);
    CHECK(has(w, ""));
    CHECK_EQ_I64(rung_winners_clock(w), 0);
    rung_winners_destroy(w);
  }
}

static int64_t writes_of(const char *path) {
  struct stat info;
  return stat(path, &info) ? 0 : (int64_t)info.st_ino;
}

/* Records, and what is written when. */
static void test_records(void) {
  const char *path = path_of("deep/er/records");
  const rung_candidate a = candidate(16, 256), b = candidate(8, 64);
  rung_winners *w = create(options_of(path));
  bool changed, found;
  rung_candidate got;
  CHECK_OK(rung_winners_find(w, 3, &error, &found, &got));
  CHECK(!found);
  CHECK_OK(rung_winners_record(w, 3, &a, &error, &changed));
  CHECK(changed);
  CHECK(is_file(path, HEAD "3\t" TAG "\t1\n")); /* folders were made */
  const int64_t first = writes_of(path);
  CHECK_OK(rung_winners_record(w, 3, &a, &error, &changed)); /* the same: a new tick, nothing written */
  CHECK(!changed);
  CHECK(has(w, "3:2"));
  CHECK_EQ_I64(writes_of(path), first);
  CHECK(is_file(path, HEAD "3\t" TAG "\t1\n"));
  CHECK_OK(rung_winners_find(w, 3, &error, &found, &got));
  CHECK(found && rung_candidate_equal(&got, &a));
  CHECK(has(w, "3:3"));
  CHECK_OK(rung_winners_record(w, 3, &b, &error, &changed));
  CHECK(changed);
  CHECK(is_file(path, HEAD "3\t" TAG_8 "\t4\n"));
  CHECK_OK(rung_winners_record(w, 0, &a, &error, NULL));
  CHECK(is_file(path, HEAD "0\t" TAG "\t5\n3\t" TAG_8 "\t4\n"));
  rung_winners_destroy(w);
  w = create(options_of(path)); /* a later process: it has them before its first look-up */
  CHECK_OK(rung_winners_find(w, 3, &error, &found, &got));
  CHECK(found && rung_candidate_equal(&got, &b));
  CHECK(has(w, "0:5 3:6"));
  rung_winners_destroy(w);
  w = create(options_of(path)); /* or its first record, which changes nothing then */
  CHECK_OK(rung_winners_record(w, 0, &a, &error, &changed));
  CHECK(!changed);
  CHECK(has(w, "0:6 3:4"));
  rung_winners_destroy(w);
}

static void test_switches(void) {
  const char *path = path_of("switches");
  const rung_candidate a = candidate(16, 256);
  put(path, HEAD "1\t" TAG "\t30\n");
  rung_winners_options o = options_of(path);
  o.load = false;
  rung_winners *w = create(o);
  load(w);
  CHECK(has(w, ""));
  rung_winners_destroy(w);
  o = options_of(path);
  o.save = false;
  w = create(o);
  CHECK_OK(rung_winners_record(w, 2, &a, &error, NULL));
  CHECK(has(w, "1:30 2:31"));
  rung_winners_destroy(w);
  CHECK(is_file(path, HEAD "1\t" TAG "\t30\n"));
  o = options_of(NULL); /* no file at all */
  w = create(o);
  CHECK_OK(rung_winners_record(w, 2, &a, &error, NULL));
  CHECK_OK(rung_winners_save(w, &error));
  CHECK(has(w, "2:1"));
  rung_winners_destroy(w);
  o.device = "a\tb";
  CHECK_STATUS(rung_winners_create(host, &o, &error, &w), RUNG_INVALID_ARGUMENT);
  o = options_of(NULL), o.signature = "";
  CHECK_STATUS(rung_winners_create(host, &o, &error, &w), RUNG_INVALID_ARGUMENT);
}

/* What cannot be written is said, and had all the same; what cannot be read is said. */
static void test_bad_paths(void) {
  const rung_candidate a = candidate(16, 256);
  put(path_of("file"), "x");
  rung_winners *w = create(options_of(path_of("file/below")));
  bool changed = false, found;
  CHECK_STATUS(rung_winners_record(w, 2, &a, &error, &changed), RUNG_IO); /* read as one that cannot be opened */
  CHECK(!changed);
  rung_winners_destroy(w);
  rung_winners_options o = options_of(path_of("file/below"));
  o.load = false;
  w = create(o);
  CHECK_STATUS(rung_winners_record(w, 2, &a, &error, &changed), RUNG_IO);
  CHECK(changed);
  CHECK(strstr(error.message, "file") != NULL);
  rung_candidate got;
  CHECK_OK(rung_winners_find(w, 2, &error, &found, &got));
  CHECK(found);
  rung_winners_destroy(w);
}

/* ---- against a plain table: rows in arrays by bucket */

typedef struct plain {
  bool there[12];
  rung_candidate candidate[12];
  int64_t tick[12], clock;
  int rows;
} plain;

static void plain_trim(plain *p, int cap, rung_tune_eviction eviction) {
  while (p->rows > cap) {
    int victim = -1;
    for (int b = 0; b < 12; b++) {
      if (!p->there[b]) continue;
      const bool later =
          eviction == RUNG_TUNE_KEEP_LOW || victim < 0 || (eviction == RUNG_TUNE_LRU && p->tick[b] < p->tick[victim]);
      if (later) victim = b;
    }
    p->there[victim] = false;
    p->rows--;
  }
}

static void random_table(uint64_t *seed) {
  const char *path = path_of("random");
  const int cap = 1 + (int)test_below(seed, 5);
  const rung_tune_eviction eviction = (rung_tune_eviction)test_below(seed, 3);
  static const uint16_t sizes[] = {64, 128, 256, 512};
  plain p = {.rows = 0};
  unlink(path);
  rung_winners *w = open_capped(path, (uint32_t)cap, eviction);
  for (int step = 0; step < 40; step++) {
    const uint16_t bucket = (uint16_t)test_below(seed, 12);
    rung_candidate got, c = candidate((uint16_t)(2 << test_below(seed, 2)), sizes[test_below(seed, 2)]);
    if (test_below(seed, 3) == 0) {
      bool found;
      CHECK_OK(rung_winners_find(w, bucket, &error, &found, &got));
      CHECK(found == p.there[bucket] && (!found || rung_candidate_equal(&got, &p.candidate[bucket])));
      if (found) p.tick[bucket] = ++p.clock;
    } else {
      bool changed;
      const bool same = p.there[bucket] && rung_candidate_equal(&c, &p.candidate[bucket]);
      CHECK_OK(rung_winners_record(w, bucket, &c, &error, &changed));
      CHECK(changed == !same);
      p.rows += !p.there[bucket];
      p.there[bucket] = true;
      p.candidate[bucket] = c;
      p.tick[bucket] = ++p.clock;
      plain_trim(&p, cap, eviction);
    }
    if (test_below(seed, 8) == 0) { /* the next process */
      CHECK_OK(rung_winners_save(w, &error));
      rung_winners_destroy(w);
      w = open_capped(path, (uint32_t)cap, eviction);
      load(w);
      p.clock = 0;
      for (int b = 0; b < 12; b++)
        if (p.there[b] && p.tick[b] > p.clock) p.clock = p.tick[b];
      CHECK_EQ_I64(rung_winners_clock(w), p.clock);
    }
    rung_winner row[12];
    CHECK_EQ_I64(rung_winners_list(w, row, 12), p.rows);
    int at = 0;
    for (int b = 0; b < 12; b++) {
      if (!p.there[b]) continue;
      CHECK(row[at].bucket == b && row[at].tick == p.tick[b]);
      at++;
    }
  }
  rung_winners_destroy(w);
}

static void test_random_tables(void) {
  uint64_t seed = 31;
  for (int i = 0; i < 15; i++) random_table(&seed);
}

/* A table of every number that 16 bits have, cut down by each policy. */
static void test_large_table(void) {
  const char *path = path_of("large");
  FILE *file = fopen(path, "wb");
  CHECK(file != NULL);
  if (!file) return;
  fputs(HEAD, file);
  for (int b = 65535; b >= 0; b--) fprintf(file, "%d\t" TAG "\t%d\n", b, (b * 7919) % 65536);
  fclose(file);
  for (int e = RUNG_TUNE_KEEP_LOW; e <= RUNG_TUNE_LRU; e++) {
    rung_winners *w = open_capped(path, 3, (rung_tune_eviction)e);
    load(w);
    rung_winner row[3];
    CHECK_EQ_I64(rung_winners_list(w, row, 3), 3);
    CHECK_EQ_I64(rung_winners_clock(w), 65535);
    for (int i = 0; i < 3; i++) {
      if (e == RUNG_TUNE_KEEP_LOW) CHECK_EQ_I64(row[i].bucket, i);
      if (e == RUNG_TUNE_KEEP_HIGH) CHECK_EQ_I64(row[i].bucket, 65533 + i);
      if (e == RUNG_TUNE_LRU) CHECK(row[i].tick >= 65533);
    }
    rung_winners_destroy(w);
  }
}

/* ---- threads and processes */

static void *hammer(void *w_) {
  rung_winners *w = w_;
  rung_error own;
  for (int i = 0; i < 40; i++) {
    const uint16_t bucket = (uint16_t)(i % 5);
    const rung_candidate c = candidate((uint16_t)(2 << i % 4), 64);
    bool found;
    rung_candidate got;
    if (i % 3 == 0 && rung_winners_record(w, bucket, &c, &own, NULL)) return w;
    if (rung_winners_find(w, bucket, &own, &found, &got)) return w;
    if (found && (got.keys != 64 || got.stages != 2)) return w;
  }
  return NULL;
}

static void test_threads(void) {
  rung_winners_options o = options_of(path_of("threads"));
  o.entries = 3;
  rung_winners *w = create(o);
  pthread_t thread[4];
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&thread[i], NULL, hammer, w) == 0);
  for (int i = 0; i < 4; i++) {
    void *failed = w;
    CHECK(pthread_join(thread[i], &failed) == 0 && !failed);
  }
  CHECK_EQ_I64(rung_winners_list(w, NULL, 0), 3);
  rung_winners_destroy(w);
}

/* Whoever reads while others write finds a whole table. */
static int write_often(const char *path, uint16_t mine) {
  for (int i = 0; i < 12; i++) {
    rung_winners *w = NULL;
    rung_winners_options o = options_of(path);
    const rung_candidate c = candidate((uint16_t)(2 << i % 4), 128);
    if (rung_winners_create(host, &o, &error, &w)) return 1;
    if (rung_winners_record(w, mine, &c, &error, NULL)) return 2;
    rung_winner row[8];
    const size_t n = rung_winners_list(w, row, 8);
    for (size_t k = 0; k < n; k++)
      if (row[k].candidate.keys != 128 || row[k].bucket > 3) return 3;
    rung_winners_destroy(w);
  }
  return 0;
}

static void test_processes(void) {
  if (!test_may_fork()) SKIP(NO_FORK);
  const char *path = path_of("processes");
  pid_t child[4];
  for (uint16_t i = 0; i < 4; i++) {
    child[i] = fork();
    if (child[i] == 0) _exit(write_often(path, i));
  }
  for (int i = 0; i < 4; i++) {
    int status = -1;
    CHECK(waitpid(child[i], &status, 0) == child[i]);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  rung_winners *w = create(options_of(path));
  load(w);
  CHECK(rung_winners_list(w, NULL, 0) >= 1);
  rung_winners_destroy(w);
}

/* ---- failing calls */

static rung_status scenario(const char *path) {
  rung_winners *w = NULL;
  rung_winners_options o = options_of(path);
  rung_status status = rung_winners_create(host, &o, &error, &w);
  bool found;
  rung_candidate got, a = candidate(16, 256);
  if (!status) status = rung_winners_find(w, 1, &error, &found, &got);
  for (uint16_t b = 0; b < 6 && !status; b++) status = rung_winners_record(w, b, &a, &error, NULL);
  if (!status) status = rung_winners_find(w, 5, &error, &found, &got);
  if (!status && (!found || got.splits != 16)) status = RUNG_INTERNAL;
  rung_winners_destroy(w);
  return status;
}

/* The n-th allocation or file operation fails: a status with a message, nothing is lost or leaked, and the file holds
 * what some call that succeeded wrote. */
static void fail_nth(rung_fault kind, rung_status want) {
  const char *path = path_of("failing");
  int64_t n = 1;
  for (;; n++) {
    test_fault f = {.kind = kind, .at = n};
    put(path, HEAD "1\t" TAG_8 "\t30\n9\t" TAG_8 "\t31\n");
    error.message[0] = 0;
    const rung_memory before = rung_host_memory(host);
    rung_host_set_fault(host, test_fault_hit, &f);
    const rung_status status = scenario(path);
    rung_host_set_fault(host, NULL, NULL);
    CHECK_EQ_I64(rung_host_memory(host).host, before.host);
    if (!f.hit) {
      CHECK_OK(status);
      break;
    }
    CHECK_STATUS(status, want);
    CHECK(error.message[0] != 0);
    rung_winners *w = create(options_of(path));
    load(w);
    CHECK(rung_winners_list(w, NULL, 0) >= 2);
    rung_winners_destroy(w);
  }
  CHECK(n > 5);
}

static void test_allocations_fail(void) { fail_nth(RUNG_FAULT_ALLOC, RUNG_OUT_OF_MEMORY); }
static void test_files_fail(void) { fail_nth(RUNG_FAULT_READ, RUNG_IO); }

int main(void) {
  /* In memory if possible: every table that is written is flushed to the disk. */
  snprintf(folder, sizeof folder, "/dev/shm/rung_winners_XXXXXX");
  if (!mkdtemp(folder)) {
    snprintf(folder, sizeof folder, "/tmp/rung_winners_XXXXXX");
    if (!mkdtemp(folder)) return 1;
  }
  CHECK_OK(rung_host_create(NULL, &error, &host));
  RUN(test_tags);
  RUN(test_tags_refused);
  RUN(test_spaces);
  RUN(test_buckets);
  RUN(test_trim_buckets);
  RUN(test_trim_ticks);
  RUN(test_rows);
  RUN(test_other_tables);
  RUN(test_records);
  RUN(test_switches);
  RUN(test_bad_paths);
  RUN(test_random_tables);
  RUN(test_large_table);
  RUN(test_threads);
  RUN(test_processes);
  RUN(test_allocations_fail);
  RUN(test_files_fail);
  const rung_memory m = rung_host_memory(host);
  CHECK_EQ_I64(m.weights, 0);
  rung_host_release(host);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command)) return 1;
  return TEST_END();
}
