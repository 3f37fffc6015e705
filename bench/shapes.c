/* SPDX-License-Identifier: MIT
 * What open shapes cost: one program with a ceiling of 512 against programs made for each size, a length that was never
 * seen against one that was, planning for a binding, texts of mixed lengths against texts of one length.
 *
 *   shapes [--pairs N] [--threads N] [--only NAME] [--lines N] MODEL...
 *
 * MODEL: a language model (a GGUF file or a folder) or an encoder (a folder); graphs made by hand are measured beside
 * them. NAME: ceiling, first, specialise, mixed or memory. Prints JSON lines: one object for each figure. Pairs are
 * interleaved; ratios are of the two measurements of a pair, low, middle and high. Bits are compared in every pair:
 * exit 1 where they differ. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <math.h>
#include <rung/rung.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CEILING = 512, MOST_PAIRS = 1001, IDS = 4096, COLUMNS = 384 };
static const int64_t sizes[] = {1, 8, 37, 128, 300, 511};
enum { SIZES = sizeof sizes / sizeof *sizes };

static struct {
  rung_host *host;
  rung_device *device;
  rung_error error;
  int pairs, lines;
  const char *only;
  bool failed;
} b = {.pairs = 31, .lines = 1000};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static void check(rung_status status, const char *message) {
  if (!status) return;
  fprintf(stderr, "shapes: %s\n", message);
  exit(1);
}
static void *memory(size_t bytes) {
  void *p = calloc(1, bytes ? bytes : 1);
  if (!p) check(RUNG_OUT_OF_MEMORY, "out of memory");
  return p;
}

static int rising(const void *a, const void *c) {
  const double x = *(const double *)a, y = *(const double *)c;
  return x < y ? -1 : x > y;
}
typedef struct spread {
  double low, middle, high;
} spread;
static spread spread_of(double *x, int n) {
  qsort(x, (size_t)n, sizeof *x, rising);
  return (spread){x[n / 10], n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2, x[n - 1 - n / 10]};
}
static void print_spread(const char *name, spread s) {
  printf(", \"%s\": [%.6g, %.6g, %.6g]", name, s.low, s.middle, s.high);
}

/* The same numbers on every machine. */
static uint32_t seed = 1;
static uint32_t next_random(void) {
  seed = seed * 1664525u + 1013904223u;
  return seed >> 8;
}

/* ---- what runs at a size */

typedef struct subject {
  void (*run)(void *self, int64_t n);
  void (*destroy)(void *self);
  void *self;
  const float *result; /* of the last run */
  size_t count;
} subject;

typedef struct source_of {
  const char *name;
  rung_model *model; /* NULL: the graph */
  bool encoder;
  int graph;
} source_of;

static int32_t ids[IDS];

typedef struct encoding {
  rung_encoder *encoder;
  float *out;
} encoding;
static void run_encoder(void *self, int64_t n) {
  encoding *e = self;
  const rung_token_list text = {ids, (size_t)n};
  check(rung_encoder_run(e->encoder, &text, 1, e->out), rung_encoder_message(e->encoder));
}
static void destroy_encoder(void *self) {
  encoding *e = self;
  rung_encoder_destroy(e->encoder);
  free(e->out);
  free(e);
}
static void make_encoder(const source_of *from, int64_t ceiling, subject *out) {
  encoding *e = memory(sizeof *e);
  rung_encoder_options o = rung_encoder_options_default();
  rung_encoder_info info;
  o.rows = o.longest = ceiling;
  check(rung_encoder_create(from->model, &o, &b.error, &e->encoder), b.error.message);
  rung_encoder_get_info(e->encoder, &info);
  e->out = memory((size_t)info.dims * sizeof *e->out);
  *out = (subject){run_encoder, destroy_encoder, e, e->out, (size_t)info.dims};
}

typedef struct prefill {
  rung_generator *generator;
  subject *subject;
  size_t vocabulary;
} prefill;
static void run_prefill(void *self, int64_t n) {
  prefill *p = self;
  const rung_rows rows = {0, (int32_t)n};
  const int32_t wanted = (int32_t)n - 1;
  const float *logits;
  check(rung_generator_reset(p->generator, 0), rung_generator_message(p->generator));
  check(rung_generator_run(p->generator, &rows, 1, ids, &wanted, 1, &logits), rung_generator_message(p->generator));
  p->subject->result = logits;
}
static void destroy_prefill(void *self) {
  prefill *p = self;
  rung_generator_destroy(p->generator);
  free(p);
}
static void make_prefill(const source_of *from, int64_t ceiling, subject *out) {
  prefill *p = memory(sizeof *p);
  rung_generate_options o = rung_generate_options_default();
  rung_model_info info;
  rung_model_get_info(from->model, &info);
  o.chunk = ceiling;
  o.context = CEILING; /* what a sequence may reach is not what is compared */
  check(rung_generator_create(from->model, &o, &b.error, &p->generator), b.error.message);
  *out = (subject){run_prefill, destroy_prefill, p, NULL, (size_t)info.vocabulary};
  p->subject = out;
}

/* ---- graphs by hand: x[n, 384] */

static const char *const graph_names[] = {"sum of all elements", "matmul over the rows"};
typedef struct by_hand {
  rung_context *context;
  rung_program *program;
  rung_template *template_;
  float *x;
  subject *subject;
} by_hand;
static void run_graph(void *self, int64_t n) {
  by_hand *h = self;
  const rung_tensor x = rung_tensor_dense(RUNG_TYPE_F32, 2, (const int64_t[]){n, COLUMNS}, h->x);
  rung_tensor y;
  check(rung_context_bind_input(h->context, 0, &x), rung_context_message(h->context));
  check(rung_context_run(h->context), rung_context_message(h->context));
  check(rung_context_output(h->context, 0, &y), rung_context_message(h->context));
  h->subject->result = y.data;
}
static void destroy_graph(void *self) {
  by_hand *h = self;
  rung_context_destroy(h->context);
  rung_program_release(h->program);
  rung_template_release(h->template_);
  free(h->x);
  free(h);
}
static void make_graph(const source_of *from, int64_t ceiling, subject *out) {
  by_hand *h = memory(sizeof *h);
  rung_graph *g;
  check(rung_graph_create(b.host, &b.error, &g), b.error.message);
  const rung_dim extent[] = {rung_graph_symbol(g, "n", 0, CEILING), rung_graph_constant_dim(g, COLUMNS)};
  const rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 2, extent);
  if (from->graph == 0) {
    rung_graph_output(g, "y", rung_reduce_sum(g, rung_exp(g, x), 0, NULL, false));
  } else {
    const rung_value turned = rung_transpose(g, x, 2, (const int64_t[]){1, 0});
    rung_graph_output(g, "y", rung_matmul(g, turned, x, false, RUNG_TYPE_F32));
  }
  check(rung_template_create(b.device, g, NULL, &b.error, &h->template_), b.error.message);
  rung_graph_destroy(g);
  const rung_binding binding = {"n", ceiling};
  check(rung_program_create(h->template_, &binding, 1, &b.error, &h->program), b.error.message);
  check(rung_context_create(h->template_, NULL, NULL, NULL, &b.error, &h->context), b.error.message);
  check(rung_context_use(h->context, h->program), rung_context_message(h->context));
  h->x = memory((size_t)CEILING * COLUMNS * sizeof *h->x);
  for (int i = 0; i < CEILING * COLUMNS; i++) h->x[i] = (float)(next_random() % 2001) * 1e-3f - 1;
  *out = (subject){run_graph, destroy_graph, h, NULL, from->graph ? (size_t)COLUMNS * COLUMNS : 1};
  h->subject = out;
}

static void make(const source_of *from, int64_t ceiling, subject *out) {
  seed = 7; /* graphs of a pair get the same numbers */
  if (!from->model)
    make_graph(from, ceiling, out);
  else if (from->encoder)
    make_encoder(from, ceiling, out);
  else
    make_prefill(from, ceiling, out);
}

/* ---- figures */

/* Seconds of a run: of as many as fill a millisecond, so that the clock does not count. */
static double time_of(subject *s, int64_t n, int repeats) {
  const double start = now();
  for (int i = 0; i < repeats; i++) s->run(s->self, n);
  return (now() - start) / repeats;
}
static int repeats_for(subject *s, int64_t n) {
  s->run(s->self, n);
  const double once = time_of(s, n, 1);
  return once > 1e-3 ? 1 : (int)ceil(1e-3 / (once > 1e-7 ? once : 1e-7));
}

static void compare(const source_of *from, const char *figure, int64_t n, subject *large, subject *exact) {
  static double ratio[MOST_PAIRS], a[MOST_PAIRS], c[MOST_PAIRS];
  const int repeats = repeats_for(exact, n);
  large->run(large->self, n);
  bool same = true;
  for (int i = 0; i < b.pairs; i++) {
    if (i % 2) c[i] = time_of(exact, n, repeats);
    a[i] = time_of(large, n, repeats);
    if (i % 2 == 0) c[i] = time_of(exact, n, repeats);
    ratio[i] = a[i] / c[i];
    same = same && memcmp(large->result, exact->result, large->count * sizeof(float)) == 0;
  }
  if (!same) b.failed = true;
  printf("{\"figure\": \"%s\", \"model\": \"%s\", \"n\": %lld", figure, from->name, (long long)n);
  print_spread("ratio", spread_of(ratio, b.pairs));
  print_spread("seconds", spread_of(a, b.pairs));
  print_spread("seconds_exact", spread_of(c, b.pairs));
  printf(", \"same_bits\": %s}\n", same ? "true" : "false");
  fflush(stdout);
}

static int64_t rung_of(int64_t n) {
  int64_t ceiling = 16;
  while (ceiling < n) ceiling *= 2;
  return ceiling;
}
static void measure_ceiling(const source_of *from) {
  subject large, exact, rung;
  make(from, CEILING, &large);
  for (int i = 0; i < SIZES; i++) {
    make(from, sizes[i], &exact);
    compare(from, "ceiling", sizes[i], &large, &exact);
    make(from, rung_of(sizes[i]), &rung);
    compare(from, "ladder", sizes[i], &rung, &exact);
    rung.destroy(rung.self);
    exact.destroy(exact.self);
  }
  large.destroy(large.self);
}

/* Every length once: its first run, right after one of another length, against the middle of five after it. */
static void measure_first(const source_of *from) {
  static double ratio[MOST_PAIRS];
  subject s;
  make(from, CEILING, &s);
  s.run(s.self, CEILING);
  for (int i = 0; i < b.pairs; i++) {
    const int64_t n = 2 + (int64_t)(i * 157 % 509);
    double later[5];
    s.run(s.self, i % 2 ? 1 : CEILING);
    const double first = time_of(&s, n, 1);
    for (int k = 0; k < 5; k++) later[k] = time_of(&s, n, 1);
    ratio[i] = first / spread_of(later, 5).middle;
  }
  printf("{\"figure\": \"first\", \"model\": \"%s\"", from->name);
  print_spread("ratio", spread_of(ratio, b.pairs));
  printf("}\n");
  fflush(stdout);
  s.destroy(s.self);
}

static void compile(const source_of *from, rung_template **out_template, rung_program **out_program) {
  if (from->encoder)
    check(rung_encoder_compile(from->model, NULL, &b.error, out_template, out_program), b.error.message);
  else
    check(rung_model_compile(from->model, NULL, &b.error, out_template, out_program), b.error.message);
}
/* A program of the same template, planned for a ceiling of its own. */
static void measure_specialise(const source_of *from) {
  static double seconds[MOST_PAIRS];
  rung_template *t;
  rung_program *p;
  compile(from, &t, &p);
  for (int i = 0; i < b.pairs; i++) {
    rung_program *other;
    const rung_binding rows = {RUNG_SYMBOL_ROWS, 64 + i};
    const double start = now();
    check(rung_program_create(t, &rows, 1, &b.error, &other), b.error.message);
    seconds[i] = now() - start;
    rung_program_release(other);
  }
  printf("{\"figure\": \"specialise\", \"model\": \"%s\"", from->name);
  print_spread("seconds", spread_of(seconds, b.pairs));
  printf("}\n");
  fflush(stdout);
  rung_program_release(p);
  rung_template_release(t);
}

/* ---- mixed lengths */

static const int64_t anchors[] = {8, 16, 32, 64, 128, 256, 512};
enum { ANCHORS = sizeof anchors / sizeof *anchors };

/* Time a text takes among others of its length, in runs of the same number of tokens. */
static double time_at(rung_encoder *e, int64_t length, int64_t rows, float *out) {
  enum { MOST = 1024 };
  static rung_token_list text[MOST];
  const int64_t runs = rows / length * 4, count = runs < MOST ? runs : MOST;
  for (int64_t i = 0; i < count; i++) text[i] = (rung_token_list){ids, (size_t)length};
  const double start = now();
  check(rung_encoder_run(e, text, (size_t)count, out), rung_encoder_message(e));
  return (now() - start) / (double)count;
}
static double between(const double *t, double length) {
  int i = 0;
  while (i < ANCHORS - 2 && length > (double)anchors[i + 1]) i++;
  const double share = (length - (double)anchors[i]) / (double)(anchors[i + 1] - anchors[i]);
  return t[i] + share * (t[i + 1] - t[i]);
}
static void measure_mixed(const source_of *from) {
  static double ratio[MOST_PAIRS], seconds[MOST_PAIRS];
  const int repeats = b.pairs < 9 ? b.pairs : 9;
  rung_encoder *e;
  rung_encoder_options o = rung_encoder_options_default();
  rung_encoder_info info;
  o.longest = CEILING;
  check(rung_encoder_create(from->model, &o, &b.error, &e), b.error.message);
  rung_encoder_get_info(e, &info);
  const size_t count = (size_t)b.lines, most = count > 1024 ? count : 1024;
  float *out = memory(most * (size_t)info.dims * sizeof *out);
  rung_token_list *text = memory(count * sizeof *text);
  seed = 3;
  for (size_t i = 0; i < count; i++) /* from 8 to 512, short ones as often as long ones by their logarithm */
    text[i] = (rung_token_list){ids + i % 512, (size_t)(8 * pow(64, (double)(next_random() % 4096) / 4095))};
  for (int r = 0; r < repeats; r++) {
    double t[ANCHORS], sum = 0;
    for (int i = 0; i < ANCHORS; i++) t[i] = time_at(e, anchors[i], info.rows, out);
    const double start = now();
    check(rung_encoder_run(e, text, count, out), rung_encoder_message(e));
    seconds[r] = now() - start;
    for (size_t i = 0; i < count; i++) sum += between(t, (double)text[i].count);
    ratio[r] = seconds[r] / sum;
  }
  printf("{\"figure\": \"mixed\", \"model\": \"%s\", \"lines\": %d", from->name, b.lines);
  print_spread("ratio", spread_of(ratio, repeats));
  print_spread("seconds", spread_of(seconds, repeats));
  printf("}\n");
  fflush(stdout);
  free(text);
  free(out);
  rung_encoder_destroy(e);
}

/* ---- memory against the number of sizes */

static uint64_t total(rung_memory m) { return m.weights + m.packed + m.activations + m.state + m.scratch + m.host; }
static void measure_memory(const source_of *from) {
  enum { MOST = 8 };
  subject s[MOST];
  for (int i = 0; i < MOST; i++) {
    make(from, 64 * (i + 1), &s[i]);
    s[i].run(s[i].self, 64 * (i + 1));
    const rung_memory m = rung_host_memory(b.host);
    printf("{\"figure\": \"memory\", \"model\": \"%s\", \"sizes\": %d, \"weights\": %llu, \"total\": %llu}\n",
           from->name, i + 1, (unsigned long long)(m.weights + m.packed), (unsigned long long)total(m));
  }
  for (int i = 0; i < MOST; i++) s[i].destroy(s[i].self);
}

static bool wanted(const char *name) { return !b.only || strcmp(b.only, name) == 0; }
static void measure(const source_of *from) {
  if (wanted("ceiling")) measure_ceiling(from);
  if (wanted("first")) measure_first(from);
  if (wanted("specialise") && from->model) measure_specialise(from);
  if (wanted("mixed") && from->encoder) measure_mixed(from);
  if (wanted("memory") && from->model) measure_memory(from);
}

static int usage(void) {
  fprintf(stderr,
          "usage: shapes [--pairs N] [--threads N] [--only NAME] [--lines N] MODEL...\n"
          "example: shapes --pairs 31 model.gguf all-MiniLM-L6-v2\n");
  return 2;
}

int main(int count, char **argument) {
  rung_device_options options = rung_device_options_default();
  int first = 1;
  for (; first + 1 < count && argument[first][0] == '-'; first += 2) {
    const char *flag = argument[first], *value = argument[first + 1];
    if (strcmp(flag, "--pairs") == 0)
      b.pairs = atoi(value);
    else if (strcmp(flag, "--threads") == 0)
      options.threads = atoi(value);
    else if (strcmp(flag, "--lines") == 0)
      b.lines = atoi(value);
    else if (strcmp(flag, "--only") == 0)
      b.only = value;
    else
      return usage();
  }
  if (first >= count || b.pairs < 1 || b.pairs > MOST_PAIRS || b.lines < 1) return usage();
  for (int i = 0; i < IDS; i++) ids[i] = (int32_t)(1000 + next_random() % 20000);
  check(rung_host_create(NULL, &b.error, &b.host), b.error.message);
  check(rung_device_create(b.host, "cpu", &options, &b.error, &b.device), b.error.message);
  for (int i = first; i < count; i++) {
    const rung_source file = rung_source_path(argument[i]);
    const char *slash = strrchr(argument[i], '/');
    source_of from = {.name = slash ? slash + 1 : argument[i]};
    rung_model_info info;
    check(rung_model_open(b.device, &file, NULL, &b.error, &from.model), b.error.message);
    rung_model_get_info(from.model, &info);
    from.encoder = strcmp(info.architecture, "bert") == 0 || strcmp(info.architecture, "roberta") == 0;
    measure(&from);
    rung_model_release(from.model);
  }
  for (int i = 0; i < 2; i++) measure(&(source_of){.name = graph_names[i], .graph = i});
  rung_device_release(b.device);
  rung_host_release(b.host);
  return b.failed ? 1 : 0;
}
