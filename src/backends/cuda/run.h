/* SPDX-License-Identifier: MIT
 * Runs of steps: lists of launches, what they were made of, and the graphs that replay them. */
#ifndef RUNG_CUDA_RUN_H
#define RUNG_CUDA_RUN_H

#include "backends/cuda/kernel.h"

/* Launches in order, each with its parameters. Lists with the same functions in the same order are of one range. */
typedef struct rung_cuda_list {
  rung_host *host;
  uint8_t *data;
  size_t bytes, capacity;
  uint32_t launches;
  bool library;    /* a product of the library is in it */
  uint64_t range;  /* over its functions */
  uint64_t serial; /* of what is in it, one of its own for each list of a device; 0: it is not finished */
} rung_cuda_list;

/* What a plan has prepared: one entry per variant. */
typedef struct rung_cuda_image {
  rung_arena arena;
  rung_cuda_prepared *prepared;
} rung_cuda_image;

/* cuda.c */
rung_status rung_cuda_prepare_plan(void *self, rung_host *host, const rung_plan *plan, rung_error *error,
                                   void **out_image);
void rung_cuda_finish(void *self, void *image);

/* lists.c. Launching is under the lock. */
void rung_cuda_list_begin(rung_cuda_list *list);
/* Does the launch at byte `at`. Returns the next one's byte. */
size_t rung_cuda_launch_one(rung_cuda *self, const rung_cuda_list *list, size_t at);
void rung_cuda_launch_list(rung_cuda *self, const rung_cuda_list *list);
static inline size_t rung_cuda_launch_behind(const rung_cuda_launch *launch, size_t at) {
  return at + sizeof *launch + ((size_t)launch->bytes + 7) / 8 * 8;
}

/* record.c: a list, and all that it was made of. While none of that changes, the next run needs no new list. */
typedef struct rung_cuda_bound {
  const rung_kv_view *kv;
  int64_t from, to;
} rung_cuda_bound;
typedef struct rung_cuda_view {
  const rung_kv_view *at;
  rung_kv_view was;
} rung_cuda_view;
typedef struct rung_cuda_record {
  rung_cuda_list list;
  const rung_operand *operand; /* of the run; NULL: the list is not to be used again */
  uint32_t first;              /* step */
  uint32_t ref, refs;          /* operands that its steps name */
  uint32_t steps;
  const uint8_t *scratch;
  uint8_t *seen; /* dims, operands, variants */
  size_t seen_room;
  rung_cuda_view *view; /* states that it reads */
  size_t views, view_room;
  rung_cuda_bound *bound; /* it holds while the longest sequences of these states are within */
  size_t bounds, bound_room;
  uint32_t tables; /* bits: block tables that have to be there */
  bool lost;       /* something that it depends on could not be noted */
  bool leaves_out; /* the run said which steps nobody needs */
  uint64_t used;
} rung_cuda_record;

void rung_cuda_record_begin(rung_cuda_record *record);
/* The lengths of a state's sequences matter as far as the longest is within [from, to]. */
void rung_cuda_record_bound(rung_cuda_record *record, const rung_kv_view *kv, int64_t from, int64_t to);
/* Behind the last step: notes what the run's steps [first, first + count) were made of. */
void rung_cuda_record_keep(rung_cuda_record *record, const rung_run *run, uint32_t first, uint32_t count);
bool rung_cuda_record_holds(const rung_cuda_record *record, const rung_run *run, uint32_t first, uint32_t count);
void rung_cuda_record_finish(rung_cuda_record *record);

/* graphs.c. All but open and close under the lock. */
rung_status rung_cuda_graphs_open(rung_cuda *self, rung_error *error);
void rung_cuda_graphs_close(rung_cuda *self);
/* From so many launches on a graph costs the host less than they do. */
enum { RUNG_CUDA_WORTH_A_GRAPH = 4 };
/* Is a list one that a graph is made of? */
bool rung_cuda_graphs_take(const rung_cuda *self, const rung_cuda_list *list);
/* Launches a graph of the list's range, brought up to date first. False: there is none; nothing was launched. */
bool rung_cuda_graph_replay(rung_cuda *self, const rung_cuda_list *list, const void *owner);
/* Makes the graph of a list for later runs; nothing is launched. One that cannot be made is done without. */
void rung_cuda_graph_capture(rung_cuda *self, const rung_cuda_list *list, const void *owner);
/* Is there one that this owner, or anyone who comes, would be given? */
bool rung_cuda_graph_is_there(const rung_cuda *self, const rung_cuda_list *list, const void *owner);
/* The owner is gone: its graphs are for whoever comes next. */
void rung_cuda_graphs_leave(rung_cuda *self, const void *owner);
typedef struct rung_cuda_graph_report {
  uint32_t held, most;
  uint64_t evicted,
      refused; /* since the device was opened: for want of room; not made, or not changed, by the driver */
} rung_cuda_graph_report;
rung_cuda_graph_report rung_cuda_graphs_report(const rung_cuda *self);

/* times.c: where the time of runs goes, said to the log when a context is done with its steps (RUNG_CUDA_TIMES=1; 2: each
 * launch of the last list, too). */
typedef struct rung_cuda_times {
  int wanted;
  void *event[2];
  bool running;
  uint64_t runs, last_end_ns;
  double device,
      between; /* microseconds: on the device, and on the host from the end of a list to the next one's launch */
} rung_cuda_times;
void rung_cuda_times_open(rung_cuda *self, rung_cuda_times *t);
void rung_cuda_times_begin(rung_cuda *self, rung_cuda_times *t); /* in front of a list's launch */
void rung_cuda_times_end(rung_cuda *self, rung_cuda_times *t);   /* behind it */
void rung_cuda_times_take(rung_cuda *self, rung_cuda_times *t);  /* once the device is done */
void rung_cuda_times_close(rung_cuda *self, rung_cuda_times *t, const rung_cuda_list *last);

/* describe.c: which of the three ways a plan's runs go. */
void rung_cuda_describe(void *self, const void *image, const rung_plan *plan, rung_text *out);

/* run.c */
rung_status rung_cuda_steps(void *self, void *image, rung_run *run, uint32_t first, uint32_t count);
rung_status rung_cuda_rehearse(void *self, void *image, rung_run *run, uint32_t first, uint32_t count);
void rung_cuda_forget(void *self, void *kept);
rung_status rung_cuda_settle(void *self, void *kept, rung_error *error);
void rung_cuda_settle_later(void *self, void *kept, void *note);
rung_status rung_cuda_settle_note(void *self, const void *note, rung_error *error);

#endif
