/* SPDX-License-Identifier: MIT
 * Lists of launches, what they were made of, and the graphs that replay them, over a driver that only notes what it is
 * told to launch: whatever way a run goes, that is the list of its steps. Needs no GPU. */
#include "backends/cuda/run.h"
#include "test.h"

enum { STEPS = 6, REFS = 2 * STEPS, MOST = 4096, NODES = 2 * STEPS, LIVE = 64 };

/* ---- the driver */

typedef struct params {
  uint64_t base;
  int64_t count;
} params;
typedef struct launch {
  void *function;
  unsigned grid, threads, shared;
  params p;
} launch;
typedef struct drawn {
  launch node[NODES];
  size_t nodes;
  bool live;
} drawn;

static struct {
  launch log[MOST];
  size_t launched;
  drawn graph[LIVE], executable[LIVE], *capturing;
  void *last, *read; /* the node captured last; what node_get points at */
  int graphs, executables, alone, begun;
  bool lies, refuses_changes, refuses_graphs, refuses_capture;
} fake;

static int fake_launch(const rung_cu_launch *config, void *function, void **parameters, void **extra) {
  launch l = {.function = function, .grid = config->grid[0], .threads = config->block[0], .shared = config->shared};
  (void)extra;
  memcpy(&l.p, parameters[0], sizeof l.p);
  if (fake.capturing) {
    drawn *g = fake.capturing;
    if (g->nodes == NODES) return 1;
    g->node[g->nodes] = l;
    fake.last = &g->node[g->nodes++];
  } else {
    CHECK(fake.launched < MOST);
    fake.log[fake.launched++ % MOST] = l;
    fake.alone++;
  }
  return 0;
}

static drawn *take(drawn *from, int *count) {
  for (int i = 0; i < LIVE; i++) {
    if (from[i].live) continue;
    from[i] = (drawn){.live = true};
    ++*count;
    return &from[i];
  }
  return NULL;
}

static int fake_begin(void *stream, int mode) {
  (void)stream, (void)mode;
  fake.begun++;
  if (fake.refuses_capture) return 1;
  fake.capturing = take(fake.graph, &fake.graphs);
  return fake.capturing ? 0 : 1;
}
static int fake_info(void *stream, int *status, uint64_t *id, void **graph, void *const **nodes, const void **edges,
                     size_t *count) {
  (void)stream, (void)edges;
  *status = 1;
  *id = 1;
  *graph = fake.capturing;
  *nodes = &fake.last;
  *count = 1;
  return 0;
}
static int fake_end(void *stream, void **graph) {
  (void)stream;
  *graph = fake.capturing;
  fake.capturing = NULL;
  return 0;
}
static int fake_nodes(void *graph, void **nodes, size_t *count) {
  (void)nodes;
  *count = ((drawn *)graph)->nodes;
  return 0;
}
static int fake_get(void *node, rung_cu_node *out) {
  launch *l = node;
  fake.read = &l->p;
  *out = (rung_cu_node){.function = l->function,
                        .grid = {l->grid + fake.lies, 1, 1},
                        .block = {l->threads, 1, 1},
                        .shared = l->shared,
                        .parameters = &fake.read};
  return 0;
}
static int fake_make(void **executable, void *graph, unsigned long long flags) {
  (void)flags;
  drawn *e = fake.refuses_graphs ? NULL : take(fake.executable, &fake.executables);
  if (!e) return 1;
  *e = *(drawn *)graph;
  *executable = e;
  return 0;
}
/* Nodes are those of the graph that the executable was made of, which has to be there still. */
static int fake_set(void *executable, void *node, const rung_cu_node *to) {
  drawn *e = executable;
  if (fake.refuses_changes) return 1;
  for (int i = 0; i < LIVE; i++)
    for (size_t n = 0; n < fake.graph[i].nodes; n++) {
      if (node != &fake.graph[i].node[n]) continue;
      CHECK(fake.graph[i].live && e->live && e->node[n].function == to->function);
      e->node[n].grid = to->grid[0];
      e->node[n].threads = to->block[0];
      e->node[n].shared = to->shared;
      memcpy(&e->node[n].p, to->parameters[0], sizeof(params));
      return 0;
    }
  return 1;
}
static int fake_replay(void *executable, void *stream) {
  const drawn *e = executable;
  (void)stream;
  CHECK(e->live);
  for (size_t n = 0; n < e->nodes; n++) fake.log[fake.launched++ % MOST] = e->node[n];
  return 0;
}
static int fake_destroy(void *graph) {
  ((drawn *)graph)->live = false;
  fake.graphs--;
  return 0;
}
static int fake_drop(void *executable) {
  ((drawn *)executable)->live = false;
  fake.executables--;
  return 0;
}
static int fake_stream(void *stream) { return stream != NULL; }
static int fake_context_get(void **context) {
  *context = NULL;
  return 0;
}
static int fake_host_alloc(void **p, size_t bytes, unsigned flags) {
  (void)flags;
  *p = malloc(bytes);
  return *p ? 0 : RUNG_CU_OUT_OF_MEMORY;
}
static int fake_host_free(void *p) {
  free(p);
  return 0;
}
static int fake_alloc(uint64_t *address, size_t bytes) {
  *address = (uint64_t)(uintptr_t)calloc(1, bytes);
  return *address ? 0 : RUNG_CU_OUT_OF_MEMORY;
}
static int fake_fill(uint64_t to, unsigned char value, size_t bytes, void *stream) {
  (void)to, (void)value, (void)bytes, (void)stream;
  return 0;
}
static int fake_to_host(void *to, uint64_t from, size_t bytes, void *stream) {
  (void)stream;
  memcpy(to, (const void *)(uintptr_t)from, bytes);
  return 0;
}
static int fake_free(uint64_t address) {
  free((void *)(uintptr_t)address);
  return 0;
}
static int fake_text(int result, const char **text) {
  (void)result;
  *text = "refused";
  return 0;
}
static void *fake_far_alloc(void *self, size_t bytes) {
  (void)self;
  return malloc(bytes);
}
static rung_status fake_check(void *self, rung_error *error) { return rung_cuda_failed(self, error); }

/* ---- a plan of steps that are one launch each, one block for each number of the result */

static int functions[STEPS + 64];
static int made; /* launches that rows have made */

static rung_status launch_step(const rung_cuda_step *step) {
  const rung_operand *y = &step->args->out[0];
  const params p = {(uint64_t)(uintptr_t)y->base, y->extent[0]};
  made++;
  if (step->args->in[0].kv && step->lengths) {
    const int64_t *length = step->args->in[0].kv->length;
    const bool few = length[0] <= 10 && length[1] <= 10;
    step->lengths(step->kept, step->args->in[0].kv, few ? 0 : 11, few ? 10 : INT64_MAX);
  }
  return rung_cuda_emit(step, 0, y->extent[0], 1, 1, 32 * step->index + 32, step->index, &p, sizeof p);
}

static rung_status write_ones(const rung_args *args) {
  (void)args;
  return RUNG_OK;
}

static const rung_cuda_kernel kernel = {.row = {.name = "some"}, .unit = "unit", .launch = launch_step};
static const rung_cuda_kernel of_host = {.row = {.name = "host_some"}};
static const rung_op plain_op = {.name = "some"}, random_op = {.name = "some", .flags = RUNG_OP_RANDOM};
static const rung_op host_op = {.name = "some", .reference = write_ones};

typedef struct world {
  rung_host *host;
  rung_error error;
  rung_cuda cuda;
  rung_dims dims;
  rung_plan plan;
  rung_step step[STEPS];
  rung_variant variant[STEPS];
  rung_cuda_prepared prepared[STEPS];
  rung_cuda_image image;
  rung_run run;
  uint64_t held; /* by the host itself */
  int64_t dim[1], one[1];
  uint8_t chosen[STEPS];
  rung_operand operand[REFS];
  atomic_int cancel;
  void *kept;
} world;

static void open_world(world *w) {
  memset(w, 0, sizeof *w);
  memset(&fake, 0, sizeof fake);
  made = 0;
  CHECK_OK(rung_host_create(NULL, &w->error, &w->host));
  w->held = rung_host_memory(w->host).host;
  w->cuda.host = w->host;
  w->cuda.captures = true;
  w->cuda.chip = 90;
  w->cuda.driver = (rung_cu_driver){.error_text = fake_text,
                                    .context_get = fake_context_get,
                                    .alloc = fake_alloc,
                                    .fill = fake_fill,
                                    .free = fake_free,
                                    .host_alloc = fake_host_alloc,
                                    .host_free = fake_host_free,
                                    .to_host = fake_to_host,
                                    .stream_wait = fake_stream,
                                    .capture_begin = fake_begin,
                                    .capture_end = fake_end,
                                    .capture_info = fake_info,
                                    .graph_nodes = fake_nodes,
                                    .node_get = fake_get,
                                    .node_set = fake_set,
                                    .graph_make = fake_make,
                                    .graph_launch = fake_replay,
                                    .graph_destroy = fake_destroy,
                                    .graph_drop = fake_drop,
                                    .launch = fake_launch};
  w->cuda.far = (rung_far){.self = &w->cuda, .alloc = fake_far_alloc, .check = fake_check};
  CHECK(rung_mutex_init(&w->cuda.lock));
  CHECK_OK(rung_cuda_graphs_open(&w->cuda, &w->error));
  w->dims.count = 1;
  w->one[0] = 1;
  w->plan = (rung_plan){.dims = &w->dims, .step = w->step, .steps = STEPS, .variant = w->variant, .refs = REFS};
  for (uint32_t s = 0; s < STEPS; s++) {
    w->step[s] = (rung_step){.kind = RUNG_STEP_KERNEL,
                             .op = &plain_op,
                             .variants = 1,
                             .n_in = 1,
                             .n_out = 1,
                             .variant = s,
                             .in = 2 * s,
                             .out = 2 * s + 1};
    w->prepared[s] = (rung_cuda_prepared){.kernel = &kernel, .step = &w->step[s], .function = {&functions[s]}};
  }
  for (uint32_t i = 0; i < REFS; i++)
    w->operand[i] = (rung_operand){.base = (uint8_t *)(uintptr_t)(4096 * (i + 1)),
                                   .extent = w->dim,
                                   .stride = w->one,
                                   .rank = 1,
                                   .type = RUNG_TYPE_F32};
  w->image.prepared = w->prepared;
  w->run = (rung_run){.plan = &w->plan,
                      .dim = w->dim,
                      .operand = w->operand,
                      .variant = w->chosen,
                      .cancel = &w->cancel,
                      .kept = &w->kept,
                      .error = &w->error};
}

static void close_world(world *w) {
  rung_cuda_forget(&w->cuda, w->kept);
  rung_cuda_graphs_close(&w->cuda);
  rung_cuda_words_close(&w->cuda);
  rung_mutex_finish(&w->cuda.lock);
  CHECK_EQ_I64(fake.graphs, 0);
  CHECK_EQ_I64(fake.executables, 0);
  CHECK_EQ_I64(rung_host_memory(w->host).host, w->held);
  rung_host_release(w->host);
}

static rung_status run_at(world *w, int64_t size) {
  w->dim[0] = size;
  fake.launched = 0;
  rung_status status = rung_cuda_steps(&w->cuda, &w->image, &w->run, 0, STEPS);
  if (!status) status = rung_cuda_settle(&w->cuda, w->kept, &w->error);
  return status;
}

/* What the steps are, whatever way they went. */
static void check_log(const world *w, int64_t size) {
  CHECK_EQ_I64(fake.launched, size ? STEPS : 0);
  for (size_t i = 0; i < fake.launched; i++) {
    const launch *l = &fake.log[i];
    CHECK(l->function == &functions[i] && l->grid == size && l->threads == 32 * i + 32 && l->shared == i);
    CHECK(l->p.base == (uint64_t)(uintptr_t)w->operand[2 * i + 1].base && l->p.count == size);
  }
}

static void run_checked(world *w, int64_t size) {
  CHECK_OK(run_at(w, size));
  check_log(w, size);
}

/* ---- tests */

/* One graph serves all sizes of a range, any buffers, and is made the first time that the range is seen. */
static void test_one_graph_serves_a_range(void) {
  world w;
  open_world(&w);
  run_checked(&w, 5);
  CHECK_EQ_I64(w.cuda.counters.launches, STEPS);
  CHECK_EQ_I64(w.cuda.counters.captures, 1);
  for (int64_t i = 0; i < 300; i++) run_checked(&w, 1 + i * 37 % 512);
  for (uint32_t i = 0; i < REFS; i++) w.operand[i].base += 1 << 20;
  run_checked(&w, 9);
  CHECK_EQ_I64(w.cuda.counters.captures, 1);
  CHECK_EQ_I64(w.cuda.counters.launches, STEPS);
  CHECK_EQ_I64(w.cuda.counters.replays, 301);
  CHECK_EQ_I64(fake.begun, 1);
  run_checked(&w, 0); /* nothing to launch */
  CHECK_EQ_I64(w.cuda.counters.captures, 1);
  close_world(&w);
}

/* While nothing changes, no list is made and no node is changed; what changes alone is. */
static void test_what_stays_costs_nothing(void) {
  world w;
  open_world(&w);
  run_checked(&w, 5);
  run_checked(&w, 5);
  const uint64_t patches = w.cuda.counters.patches;
  CHECK_EQ_I64(patches, 0);
  CHECK_EQ_I64(made, STEPS);
  for (int i = 0; i < 50; i++) run_checked(&w, 5);
  CHECK_EQ_I64(w.cuda.counters.patches, 0);
  CHECK_EQ_I64(made, STEPS);
  w.operand[7].base += 64; /* the result of step 3 */
  run_checked(&w, 5);
  CHECK_EQ_I64(w.cuda.counters.patches, 1);
  CHECK_EQ_I64(made, 2 * STEPS);
  close_world(&w);
}

/* A row of random numbers counts in its launch: the list is made anew each time, the graph serves on. */
static void test_random_numbers_are_new(void) {
  world w;
  open_world(&w);
  w.step[1].op = &random_op;
  run_checked(&w, 5);
  const int before = made;
  run_checked(&w, 5);
  run_checked(&w, 5);
  CHECK_EQ_I64(made - before, 2 * STEPS);
  CHECK_EQ_I64(w.cuda.counters.captures, 1);
  close_world(&w);
}

/* A state's lengths change with every step: they count only where a row says so, and within what it says. */
static void test_lengths_count_where_rows_say_so(void) {
  world w;
  int64_t length[2] = {3, 0};
  rung_kv_view kv = {.contiguous = true, .slots = 2, .length = length};
  open_world(&w);
  w.operand[4].kv = &kv;
  run_checked(&w, 5);
  for (; length[1] < 10; length[1]++) run_checked(&w, 5);
  CHECK_EQ_I64(made, STEPS);
  length[1] = 11;
  run_checked(&w, 5);
  CHECK_EQ_I64(made, 2 * STEPS);
  length[0] = 100; /* as the row sees it the same */
  run_checked(&w, 5);
  CHECK_EQ_I64(made, 2 * STEPS);
  kv.capacity++; /* anything else of the view */
  run_checked(&w, 5);
  CHECK_EQ_I64(made, 3 * STEPS);
  close_world(&w);
}

/* Each context has a graph of its own, and those of contexts that are gone are used again: so a context that goes from
 * program to program captures nothing. */
static void test_contexts_and_programs(void) {
  world w;
  open_world(&w);
  void *second = NULL;
  run_checked(&w, 5);
  w.run.kept = &second;
  run_checked(&w, 6);
  CHECK_EQ_I64(w.cuda.counters.captures, 2);
  for (int i = 0; i < 10; i++) {
    w.run.kept = &w.kept;
    run_checked(&w, 5);
    w.run.kept = &second;
    run_checked(&w, 6);
  }
  CHECK_EQ_I64(w.cuda.counters.captures, 2);
  CHECK_EQ_I64(w.cuda.counters.patches, 0);
  for (int i = 0; i < 10; i++) {
    rung_cuda_forget(&w.cuda, second);
    second = NULL;
    run_checked(&w, 7 + i);
  }
  CHECK_EQ_I64(w.cuda.counters.captures, 2);
  rung_cuda_forget(&w.cuda, second);
  close_world(&w);
}

/* Ranges beyond the limit push out those used least recently. */
static void test_memory_is_bounded(void) {
  world w;
  open_world(&w);
  const uint32_t most = rung_cuda_graphs_report(&w.cuda).most;
  CHECK(most + 8 <= 64);
  for (uint32_t i = 0; i < most + 8; i++) {
    w.prepared[0].function[0] = &functions[STEPS + i];
    w.chosen[0] = 0;
    w.operand[0].base += 64; /* so that the list is made */
    CHECK_OK(run_at(&w, 5));
    CHECK(fake.log[0].function == &functions[STEPS + i]);
  }
  const rung_cuda_graph_report r = rung_cuda_graphs_report(&w.cuda);
  CHECK_EQ_I64(r.held, most);
  CHECK_EQ_I64(r.evicted, 8);
  CHECK_EQ_I64(fake.executables, most);
  close_world(&w);
}

/* What the driver refuses, or captures otherwise than it was told, is launched one by one, and asked for once. */
static void test_refusals(void) {
  for (int kind = 0; kind < 3; kind++) {
    world w;
    open_world(&w);
    fake.lies = kind == 0;
    fake.refuses_graphs = kind == 1;
    fake.refuses_capture = kind == 2;
    for (int i = 0; i < 5; i++) run_checked(&w, 5 + i);
    CHECK_EQ_I64(w.cuda.counters.captures, 0);
    CHECK_EQ_I64(w.cuda.counters.launches, 5 * STEPS);
    CHECK_EQ_I64(fake.begun, 1);
    CHECK_EQ_I64(rung_cuda_graphs_report(&w.cuda).refused, 1);
    close_world(&w);
  }
  world w;
  open_world(&w);
  run_checked(&w, 5);
  fake.refuses_changes = true;
  run_checked(&w, 6);
  CHECK_EQ_I64(w.cuda.counters.captures, 2);
  CHECK_EQ_I64(rung_cuda_graphs_report(&w.cuda).refused, 1);
  fake.refuses_changes = false;
  run_checked(&w, 7);
  CHECK_EQ_I64(w.cuda.counters.captures, 2);
  close_world(&w);
}

/* Short lists, lists with a product of the library, and all where captures are switched off. */
static void test_what_is_not_captured(void) {
  world w;
  open_world(&w);
  rung_cuda_list list = {.launches = 100};
  CHECK(rung_cuda_graphs_take(&w.cuda, &list));
  list.library = true;
  CHECK(!rung_cuda_graphs_take(&w.cuda, &list));
  list = (rung_cuda_list){.launches = 1};
  CHECK(!rung_cuda_graphs_take(&w.cuda, &list));
  w.cuda.captures = false;
  for (int i = 0; i < 5; i++) run_checked(&w, 5 + i % 2);
  CHECK_EQ_I64(fake.begun, 0);
  CHECK_EQ_I64(w.cuda.counters.launches, 5 * STEPS);
  close_world(&w);
}

/* A step of the host cuts the list in two: what is in front of it is launched first. */
static void test_steps_of_the_host(void) {
  world w;
  open_world(&w);
  w.step[3].op = &host_op;
  w.prepared[3].kernel = &of_host;
  w.operand[6].base = w.operand[7].base = NULL;
  for (int i = 0; i < 4; i++) {
    CHECK_OK(run_at(&w, 5 + i));
    CHECK_EQ_I64(fake.launched, STEPS - 1);
    for (size_t l = 0; l < fake.launched; l++) CHECK(fake.log[l].function == &functions[l < 3 ? l : l + 1]);
  }
  close_world(&w);
}

static void note_step(void *self, const rung_step_event *event) {
  (void)event;
  ++*(int *)self;
}

/* A run that is watched goes step by step, and what is remembered serves the next one that is not. */
static void test_watched_runs(void) {
  world w;
  int steps = 0;
  open_world(&w);
  run_checked(&w, 5);
  w.run.on_step = note_step;
  w.run.on_step_self = &steps;
  run_checked(&w, 6);
  CHECK_EQ_I64(steps, STEPS);
  w.run.on_step = NULL;
  run_checked(&w, 6);
  run_checked(&w, 5);
  CHECK_EQ_I64(w.cuda.counters.captures, 1);
  atomic_store(&w.cancel, 1);
  CHECK_STATUS(run_at(&w, 5), RUNG_CANCELLED);
  CHECK_EQ_I64(fake.launched, 0);
  close_world(&w);
}

/* A rehearsal makes the graph and launches nothing; the first context that comes takes it. */
static void test_rehearsals(void) {
  world w;
  open_world(&w);
  w.dim[0] = 5;
  CHECK_OK(rung_cuda_rehearse(&w.cuda, &w.image, &w.run, 0, STEPS));
  w.dim[0] = 9;
  CHECK_OK(rung_cuda_rehearse(&w.cuda, &w.image, &w.run, 0, STEPS));
  CHECK_EQ_I64(w.cuda.counters.captures, 1);
  CHECK_EQ_I64(fake.launched, 0);
  CHECK(w.kept == NULL);
  for (int i = 0; i < 5; i++) run_checked(&w, 5 + i);
  CHECK_EQ_I64(w.cuda.counters.captures, 1);
  CHECK_EQ_I64(w.cuda.counters.launches, 0);
  close_world(&w);
}

static void check_says(world *w, const char *says) {
  rung_text text;
  rung_text_init(&text, w->host);
  rung_cuda_describe(&w->cuda, &w->image, &w->plan, &text);
  CHECK(text.data && strstr(text.data, says));
  if (text.data && !strstr(text.data, says)) fprintf(stderr, "  %s", text.data);
  rung_text_finish(&text);
}

/* Which of the three ways runs of a plan go. */
static void test_what_is_said(void) {
  world w;
  open_world(&w);
  check_says(&w, "one captured graph");
  w.prepared[1].absorbed = w.prepared[2].absorbed = w.prepared[3].absorbed = true;
  check_says(&w, "plain launches, no more than 3");
  w.prepared[1].absorbed = w.prepared[2].absorbed = w.prepared[3].absorbed = false;
  w.prepared[1].kernel = &of_host;
  check_says(&w, "hybrid, 1 of 2 stretches of kernels captured, between 1 steps of the host and 0");
  w.cuda.captures = false;
  check_says(&w, "plain launches, captures are switched off");
  close_world(&w);
}

typedef struct countdown {
  int left;
} countdown;
static bool fails_at(void *self, rung_fault kind) {
  (void)kind;
  return ((countdown *)self)->left-- == 0;
}

/* Without memory a run is refused or done without a graph; later ones find everything in order. */
static void test_no_memory(void) {
  bool reached = true;
  for (int n = 0; reached && n < 200; n++) {
    world w;
    countdown c = {n};
    open_world(&w);
    rung_host_set_fault(w.host, fails_at, &c);
    const rung_status status = run_at(&w, 5);
    if (!status) check_log(&w, 5);
    if (!run_at(&w, 6)) check_log(&w, 6);
    reached = c.left < 0;
    rung_host_set_fault(w.host, NULL, NULL);
    CHECK(status == RUNG_OK || status == RUNG_OUT_OF_MEMORY);
    run_checked(&w, 7);
    run_checked(&w, 8);
    close_world(&w);
  }
  CHECK(!reached);
}

int main(void) {
  RUN(test_one_graph_serves_a_range);
  RUN(test_what_stays_costs_nothing);
  RUN(test_random_numbers_are_new);
  RUN(test_lengths_count_where_rows_say_so);
  RUN(test_contexts_and_programs);
  RUN(test_memory_is_bounded);
  RUN(test_refusals);
  RUN(test_what_is_not_captured);
  RUN(test_steps_of_the_host);
  RUN(test_watched_runs);
  RUN(test_rehearsals);
  RUN(test_what_is_said);
  RUN(test_no_memory);
  return TEST_END();
}
