/* SPDX-License-Identifier: MIT
 * Captured graphs. One is made for a range: lists with the same functions in the same order, whatever their sizes,
 * buffers and weights. Before a graph is launched its nodes are brought up to date with the list, those alone whose
 * bytes are others than last time; so sizes that alternate, a caller's own buffers and a new generation of weights make
 * no new graph.
 *
 * Parameters stay by value in the nodes. They could stand in one block of memory that a run writes and kernels read:
 * then nothing would have to be brought up to date, but each kernel would begin with a load from there before its first
 * address is known, and a decode step is a chain of a hundred and more kernels that wait for each other. Parameters by
 * value lie in constant memory when a kernel begins. Changing a node costs the host less than a launch, and between two
 * steps of decoding there is nothing to change: positions and lengths are in memory.
 *
 * Nodes are kept in the order of the list. The driver lists a graph's nodes in an order of its own, so the node of each
 * launch is asked for during the capture, when it is what the next launch would wait for. Capturing, not building the
 * graph by hand, since then the edges are the driver's own: between kernels that may overlap they are of a kind
 * (programmatic) that drivers have got wrong when a program added them.
 *
 * A run cannot be done twice to compare (it appends to states), so a graph is held against its list instead: as many
 * nodes as launches, and each node's function, grid and parameters, read back, those of its launch. What differs is
 * launched one by one from then on. That replaying gives the same bits is what tests are for.
 *
 * Lists with a product of the library are never captured: they have 64 rows and more, so that each kernel takes longer
 * than its launch and the host is ahead of the device. */
#include <string.h>

#include "backends/cuda/run.h"

enum { GRAPHS = 32 };

typedef struct captured {
  uint8_t *bytes; /* of the list that it stands at; NULL: free */
  size_t size;
  uint32_t launches;
  uint64_t range, serial, used;
  const void *owner; /* who used it last; NULL: nobody, or gone */
  void *graph;       /* stays as long as its executable, whose nodes are named by it */
  void *executable;  /* NULL: refused by the driver; the range is launched one by one while it is remembered */
  void **node;
} captured;

struct rung_cuda_graphs {
  captured at[GRAPHS];
  uint64_t clock, evicted, refused;
};

static void drop(rung_cuda *self, captured *g) {
  if (g->executable) self->driver.graph_drop(g->executable);
  if (g->graph) self->driver.graph_destroy(g->graph);
  rung_host_free(self->host, RUNG_MEMORY_host, g->node, g->launches * sizeof *g->node);
  rung_host_free(self->host, RUNG_MEMORY_host, g->bytes, g->size);
  *g = (captured){0};
}

rung_status rung_cuda_graphs_open(rung_cuda *self, rung_error *error) {
  self->graphs = rung_host_array(self->host, 1, sizeof *self->graphs);
  return self->graphs ? RUNG_OK : rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory for graphs");
}

void rung_cuda_graphs_close(rung_cuda *self) {
  if (!self->graphs) return;
  for (int i = 0; i < GRAPHS; i++)
    if (self->graphs->at[i].bytes) drop(self, &self->graphs->at[i]);
  rung_host_free(self->host, RUNG_MEMORY_host, self->graphs, sizeof *self->graphs);
  self->graphs = NULL;
}

bool rung_cuda_graphs_take(const rung_cuda *self, const rung_cuda_list *list) {
  return self->captures && !list->library && list->launches >= RUNG_CUDA_WORTH_A_GRAPH;
}

/* ---- finding */

static bool is_of_range(const captured *g, const rung_cuda_list *list) {
  if (!g->bytes || g->range != list->range || g->launches != list->launches || g->size != list->bytes) return false;
  if (g->serial == list->serial) return true;
  for (size_t at = 0; at < g->size;) {
    rung_cuda_launch a, b;
    memcpy(&a, g->bytes + at, sizeof a);
    memcpy(&b, list->data + at, sizeof b);
    if (a.function != b.function || a.bytes != b.bytes) return false;
    at = rung_cuda_launch_behind(&a, at);
  }
  return true;
}

/* Its own, else one that is nobody's. Where there is no room for another, that of somebody else: each of the two then
 * changes it, which is less than capturing in turn. */
static captured *find(const rung_cuda *self, const rung_cuda_list *list, const void *owner) {
  captured *unowned = NULL, *other = NULL;
  bool full = true;
  for (int i = 0; i < GRAPHS; i++) {
    captured *g = &self->graphs->at[i];
    full &= g->bytes != NULL;
    if (!is_of_range(g, list)) continue;
    if (g->owner == owner || !g->executable) return g;
    if (!g->owner)
      unowned = g;
    else if (!other || g->used < other->used)
      other = g;
  }
  return unowned ? unowned : full ? other : NULL;
}

bool rung_cuda_graph_is_there(const rung_cuda *self, const rung_cuda_list *list, const void *owner) {
  return find(self, list, owner) != NULL;
}

/* ---- bringing up to date */

static rung_cu_node node_of(const rung_cuda_launch *l, void **parameter) {
  return (rung_cu_node){.function = l->function,
                        .grid = {l->grid[0], l->grid[1], l->grid[2]},
                        .block = {l->threads, 1, 1},
                        .shared = l->shared,
                        .parameters = parameter};
}

static bool bring_up_to_date(rung_cuda *self, captured *g, const rung_cuda_list *list) {
  uint32_t n = 0;
  for (size_t at = 0; at < g->size; n++) {
    rung_cuda_launch l;
    memcpy(&l, list->data + at, sizeof l);
    const size_t next = rung_cuda_launch_behind(&l, at);
    if (memcmp(g->bytes + at, list->data + at, next - at) != 0) {
      void *parameter = list->data + at + sizeof l;
      const rung_cu_node to = node_of(&l, &parameter);
      if (self->driver.node_set(g->executable, g->node[n], &to)) return false;
      memcpy(g->bytes + at, list->data + at, next - at);
      self->counters.patches++;
    }
    at = next;
  }
  g->serial = list->serial;
  return true;
}

bool rung_cuda_graph_replay(rung_cuda *self, const rung_cuda_list *list, const void *owner) {
  captured *g = find(self, list, owner);
  if (!g) return false;
  g->used = ++self->graphs->clock;
  if (!g->executable) return false;
  if (g->serial != list->serial && !bring_up_to_date(self, g, list)) {
    /* Another may be made of the same functions: this one stood at other sizes when it was captured. */
    self->graphs->refused++;
    drop(self, g);
    return false;
  }
  if (self->driver.graph_launch(g->executable, self->stream)) { /* nothing of it has run */
    self->driver.graph_drop(g->executable);
    g->executable = NULL; /* launched one by one from now on */
    self->graphs->refused++;
    rung_host_log(self->host, RUNG_LOG_WARNING,
                  "cuda: launches are done one by one: the driver does not launch their graph");
    return false;
  }
  g->owner = owner;
  self->counters.replays++;
  return true;
}

/* ---- capturing */

/* The launch that was just captured. */
static bool take_node(rung_cuda *self, void **out_node) {
  int status = 0;
  uint64_t id = 0;
  void *graph = NULL, *const *nodes = NULL;
  const void *edges = NULL;
  size_t count = 0;
  if (self->driver.capture_info(self->stream, &status, &id, &graph, &nodes, &edges, &count) || count != 1) return false;
  *out_node = nodes[0];
  return true;
}

static bool capture_list(rung_cuda *self, captured *g, const rung_cuda_list *list) {
  if (self->driver.capture_begin(self->stream, RUNG_CU_CAPTURE_THREAD)) return false;
  bool whole = true;
  uint32_t n = 0;
  for (size_t at = 0; at < list->bytes && whole; n++) {
    at = rung_cuda_launch_one(self, list, at);
    whole = !self->failed && take_node(self, &g->node[n]);
  }
  if (self->driver.capture_end(self->stream, &g->graph)) g->graph = NULL;
  return whole && g->graph;
}

/* Is each node what its launch is? A function may be read back as the handle that it has without a context. */
static bool is_as_listed(const rung_cuda *self, const captured *g) {
  size_t nodes = 0;
  uint32_t n = 0;
  if (self->driver.graph_nodes(g->graph, NULL, &nodes) || nodes != g->launches) return false;
  for (size_t at = 0; at < g->size; n++) {
    rung_cuda_launch l;
    rung_cu_node have = {0};
    memcpy(&l, g->bytes + at, sizeof l);
    const void *parameter = g->bytes + at + sizeof l;
    if (self->driver.node_get(g->node[n], &have) || (have.function && have.function != l.function)) return false;
    if (memcmp(have.grid, l.grid, sizeof l.grid) != 0 || have.block[0] != l.threads || have.shared != l.shared)
      return false;
    if (!have.parameters || memcmp(have.parameters[0], parameter, l.bytes) != 0) return false;
    at = rung_cuda_launch_behind(&l, at);
  }
  return true;
}

static captured *room(rung_cuda *self) {
  captured *victim = &self->graphs->at[0];
  for (int i = 0; i < GRAPHS && victim->bytes; i++) {
    captured *g = &self->graphs->at[i];
    if (!g->bytes || g->used < victim->used) victim = g;
  }
  if (victim->bytes) {
    self->graphs->evicted++;
    drop(self, victim);
  }
  return victim;
}

void rung_cuda_graph_capture(rung_cuda *self, const rung_cuda_list *list, const void *owner) {
  const int failed = self->failed;
  const char *failed_in = self->failed_in;
  if (failed) return;
  captured *g = room(self);
  *g = (captured){.bytes = rung_host_alloc_raw(self->host, RUNG_MEMORY_host, list->bytes, 0),
                  .size = list->bytes,
                  .launches = list->launches,
                  .node = rung_host_array(self->host, list->launches, sizeof *g->node),
                  .range = list->range,
                  .serial = list->serial,
                  .owner = owner,
                  .used = ++self->graphs->clock};
  if (!g->bytes || !g->node) {
    drop(self, g);
    return; /* then it stays a list of launches */
  }
  memcpy(g->bytes, list->data, list->bytes);
  bool made = capture_list(self, g, list);
  const bool whole = made;
  if (made) made = is_as_listed(self, g);
  const bool same = made;
  if (made) made = !self->driver.graph_make(&g->executable, g->graph, 0);
  self->failed = failed; /* launching worked, or will be tried: a capture is no run */
  self->failed_in = failed_in;
  if (made) {
    self->counters.captures++;
    return;
  }
  g->executable = NULL;
  self->graphs->refused++;
  rung_host_log(self->host, RUNG_LOG_WARNING, "cuda: %u launches are done one by one: the driver %s", list->launches,
                !whole  ? "does not capture them"
                : !same ? "captured something else"
                        : "makes no graph of them");
}

void rung_cuda_graphs_leave(rung_cuda *self, const void *owner) {
  for (int i = 0; self->graphs && i < GRAPHS; i++)
    if (self->graphs->at[i].owner == owner) self->graphs->at[i].owner = NULL;
}

rung_cuda_graph_report rung_cuda_graphs_report(const rung_cuda *self) {
  rung_cuda_graph_report r = {.most = GRAPHS};
  if (!self->graphs) return r;
  r.evicted = self->graphs->evicted;
  r.refused = self->graphs->refused;
  for (int i = 0; i < GRAPHS; i++) r.held += self->graphs->at[i].executable != NULL;
  return r;
}
