/* SPDX-License-Identifier: MIT
 * The false driver: graphs, modules and kernels. A launch does nothing; what it is given is checked. */
#include <stdio.h>

#include "device/fake_inside.h"

/* ---- driver: graphs */

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode) {
  ENTER_IN_CONTEXT();
  if (!find(stream, STREAM) || mode != RUNG_CU_CAPTURE_THREAD || capturing) FAIL(wrong("a capture inside another"));
  capturing = add(GRAPH);
  LEAVE();
}
static void drop_graph(thing *graph) {
  for (thing *t = things; t;) {
    thing *next = t->next;
    if (t->kind == NODE && t->of == graph) drop(t);
    t = next;
  }
  drop(graph);
}

/* One that fails ends the capture, too. */
EXPORT int cuStreamEndCapture(void *stream, void **graph) {
  thing *made = capturing;
  bool kept = false;
  capturing = NULL;
  ENTER_IN_CONTEXT();
  if (!find(stream, STREAM) || !made) FAIL(wrong("the end of a capture that was not begun"));
  state.graphs++;
  *graph = made;
  kept = true;
end:
  if (made && !kept) drop_graph(made);
  pthread_mutex_unlock(&lock);
  return result;
}

/* The kernel that was captured last is what the next one waits for. */
EXPORT int cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph, void *const **nodes,
                                     const void **edges, size_t *count) {
  static void *last;
  ENTER_IN_CONTEXT();
  if (!find(stream, STREAM)) FAIL(INVALID);
  *status = capturing ? 1 : 0;
  *count = 0;
  *edges = NULL;
  if (!capturing) goto end;
  *id = 1;
  *graph = capturing;
  last = NULL;
  for (thing *t = things; t && !last; t = t->next)
    if (t->kind == NODE && t->of == capturing) last = t;
  *nodes = &last;
  *count = last != NULL;
  LEAVE();
}
EXPORT int cuGraphGetNodes(void *graph, void **nodes, size_t *count) {
  ENTER_IN_CONTEXT();
  const thing *from = find(graph, GRAPH);
  if (!from) FAIL(INVALID);
  size_t n = 0;
  for (thing *t = things; t; t = t->next)
    if (t->kind == NODE && t->of == from) {
      if (nodes && n < *count) nodes[n] = t;
      n++;
    }
  *count = n;
  LEAVE();
}
/* A driver keeps a copy of the parameters; how large they are is known to compiled kernels alone. */
EXPORT int cuGraphKernelNodeGetParams_v2(void *node, launch_node *out) {
  ENTER_IN_CONTEXT();
  thing *t = find(node, NODE);
  if (!t) FAIL(INVALID);
  *out = t->node;
  out->parameters = (void **)&t->memory;
  LEAVE();
}
static int check_launch(const thing *f, const unsigned grid[3], const unsigned block[3], unsigned shared);
EXPORT int cuGraphExecKernelNodeSetParams_v2(void *executable, void *node, const launch_node *to) {
  ENTER_IN_CONTEXT();
  const thing *t = find(node, NODE), *f = find(to->function, FUNCTION);
  if (!find(executable, EXECUTABLE) || !t || !f || t->node.function != to->function || !to->parameters) FAIL(INVALID);
  result = check_launch(f, to->grid, to->block, to->shared);
  state.patched++;
  LEAVE();
}
EXPORT int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  ENTER_IN_CONTEXT();
  const thing *from = find(graph, GRAPH);
  if (!from || flags) FAIL(INVALID);
  thing *t = add(EXECUTABLE);
  for (size_t i = 0; i < from->works.count; i++) {
    work w = from->works.data[i];
    w.own = false; /* what was copied belongs to the graph: nothing of that kind is captured here */
    put(&t->works, &w);
  }
  state.executables++;
  state.captured++;
  *executable = t;
  LEAVE();
}
EXPORT int cuGraphLaunch(void *executable, void *stream) {
  ENTER_IN_CONTEXT();
  const thing *t = find(executable, EXECUTABLE);
  if (!t) FAIL(INVALID);
  for (size_t i = 0; i < t->works.count && !result; i++) result = ask(stream, &t->works.data[i]);
  state.replayed++;
  LEAVE();
}
EXPORT int cuGraphDestroy(void *graph) {
  ENTER_IN_CONTEXT();
  thing *t = find(graph, GRAPH);
  if (!t) FAIL(INVALID);
  state.graphs--;
  drop_graph(t);
  LEAVE();
}
EXPORT int cuGraphExecDestroy(void *executable) {
  ENTER_IN_CONTEXT();
  thing *t = find(executable, EXECUTABLE);
  if (!t) FAIL(INVALID);
  state.executables--;
  drop(t);
  LEAVE();
}

/* ---- driver: kernels */

const char magic[16] = "false code";

EXPORT int cuModuleLoadData(void **module, const void *image) {
  ENTER_IN_CONTEXT();
  if (memcmp(image, magic, sizeof magic) != 0) FAIL(wrong("a module that the false compiler did not make"));
  *module = add(MODULE);
  state.modules++;
  LEAVE();
}
EXPORT int cuModuleUnload(void *module) {
  ENTER_IN_CONTEXT();
  thing *t = find(module, MODULE);
  if (!t) FAIL(INVALID);
  for (thing *f = things; f;) {
    thing *next = f->next;
    if (f->kind == FUNCTION && f->of == t) drop(f);
    f = next;
  }
  state.modules--;
  drop(t);
  LEAVE();
}
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name) {
  ENTER_IN_CONTEXT();
  thing *of = find(module, MODULE);
  if (!of) FAIL(INVALID);
  for (thing *f = things; f; f = f->next)
    if (f->kind == FUNCTION && f->of == of && strcmp(f->name, name) == 0) {
      *function = f;
      goto end;
    }
  thing *t = add(FUNCTION);
  t->of = of;
  t->shared = SHARED_STANDARD;
  snprintf(t->name, sizeof t->name, "%s", name);
  *function = t;
  LEAVE();
}
EXPORT int cuFuncGetName(const char **name, void *function) {
  ENTER_IN_CONTEXT();
  const thing *t = find(function, FUNCTION);
  if (!t) FAIL(INVALID);
  *name = t->name;
  LEAVE();
}
EXPORT int cuFuncSetAttribute(void *function, int attribute, int value) {
  ENTER_IN_CONTEXT();
  thing *t = find(function, FUNCTION);
  if (!t || (attribute == RUNG_CU_SHARED_BYTES && value > SHARED_LIMIT)) FAIL(INVALID);
  if (attribute == RUNG_CU_SHARED_BYTES && value > t->shared) t->shared = value;
  LEAVE();
}
static int check_launch(const thing *f, const unsigned grid[3], const unsigned block[3], unsigned shared) {
  const unsigned threads = block[0] * block[1] * block[2];
  if (!threads || threads > MOST_THREADS || threads % 32 || !grid[0] || !grid[1] || !grid[2] || grid[1] > 65535 ||
      grid[2] > 65535)
    return wrong("%s: a grid of %u by %u by %u blocks of %u threads", f->name, grid[0], grid[1], grid[2], threads);
  if ((int)shared > f->shared) return wrong("%s: %u bytes of shared memory", f->name, shared);
  return 0;
}

#ifndef FAKE_LACKS
EXPORT int cuLaunchKernelEx(const rung_cu_launch *launch, void *function, void **parameters, void **extra) {
  ENTER_IN_CONTEXT();
  const thing *f = find(function, FUNCTION);
  if (!f || !parameters || extra) FAIL(INVALID);
  result = check_launch(f, launch->grid, launch->block, launch->shared);
  if (!result) result = ask(launch->stream, &(work){.what = LAUNCH});
  if (!result && capturing) {
    thing *t = add(NODE);
    t->of = capturing;
    t->memory = *parameters;
    t->node = (launch_node){.function = function, .shared = launch->shared};
    memcpy(t->node.grid, launch->grid, sizeof launch->grid);
    memcpy(t->node.block, launch->block, sizeof launch->block);
  }
  if (!capturing) state.launches++;
  LEAVE();
}
#endif
