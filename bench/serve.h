/* SPDX-License-Identifier: MIT
 * A program that stays and does one piece of work whenever it is told to, so that engines can take turns without loading
 * anew. scripts/bench/serve.py speaks the same for the peers. A line in, a line out, which is one JSON object:
 *
 *   ids FILE, text FILE   what is worked on from now on      {}
 *   time SECONDS          once to warm up, then until so much time is taken, once at least
 *                                                             {"seconds": the middle one, "runs": how many}
 *   save FILE             once; the result as bare f32        {}
 *   peak                  most resident memory so far         {"peak": bytes, "before": bytes that are not the engine's}
 *
 * What fails gives {"error": text}. */
#ifndef RUNG_BENCH_SERVE_H
#define RUNG_BENCH_SERVE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/process.h"
#include "base/clock.h"

typedef struct serve_work {
  void *self;
  bool (*load)(void *self, const char *kind, const char *path); /* NULL: there is only one work */
  bool (*run)(void *self);
  const float *(*result)(void *self, size_t *out_count); /* of the last run */
  const char *(*message)(void *self);                    /* of what failed */
} serve_work;

static inline int serve_compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline bool serve_time(const serve_work *w, double seconds) {
  enum { MOST = 4096 };
  static double taken[MOST];
  int runs = 0;
  if (!w->run(w->self)) return false;
  for (double all = 0; runs < MOST && (runs == 0 || all < seconds); runs++) {
    const uint64_t start = rung_clock_ns();
    if (!w->run(w->self)) return false;
    taken[runs] = (double)(rung_clock_ns() - start) * 1e-9;
    all += taken[runs];
  }
  qsort(taken, (size_t)runs, sizeof *taken, serve_compare);
  printf("{\"seconds\": %.9g, \"runs\": %d}\n", taken[runs / 2], runs);
  return true;
}

static inline bool serve_save(const serve_work *w, const char *path) {
  if (!w->run(w->self)) return false;
  size_t count = 0;
  const float *data = w->result(w->self, &count);
  FILE *f = fopen(path, "wb");
  bool written = f && fwrite(data, sizeof *data, count, f) == count;
  if (f) written &= fclose(f) == 0;
  puts(written ? "{}" : "{\"error\": \"the file cannot be written\"}");
  return true;
}

/* Answers one line; false: the engine failed. */
static inline bool serve_line(const serve_work *w, char *line) {
  char *value = strchr(line, ' ');
  if (value) *value++ = 0;
  if (strcmp(line, "peak") == 0) {
    printf("{\"peak\": %" PRIu64 ", \"before\": 0}\n", process_bytes("VmHWM"));
  } else if (value && strcmp(line, "time") == 0) {
    return serve_time(w, strtod(value, NULL));
  } else if (value && strcmp(line, "save") == 0) {
    return serve_save(w, value);
  } else if (value && w->load && (strcmp(line, "ids") == 0 || strcmp(line, "text") == 0)) {
    if (!w->load(w->self, line, value)) return false;
    puts("{}");
  } else {
    puts("{\"error\": \"no such command\"}");
  }
  return true;
}

static inline void serve(const serve_work *w) {
  char line[4096];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (!serve_line(w, line)) { /* messages of the library hold quotes */
      printf("{\"error\": \"");
      for (const char *c = w->message(w->self); *c; c++)
        putchar(*c == '"' || *c == '\\' || (unsigned char)*c < 32 ? '\'' : *c);
      puts("\"}");
    }
    fflush(stdout);
  }
}

#endif
