/* SPDX-License-Identifier: MIT
 * Feeds: what outputs made goes into dense states, by rows or whole. */
#include <inttypes.h>
#include <string.h>

#include "runtime/runtime.h"

struct rung_feed {
  uint32_t output; /* of the graph */
  uint32_t item;   /* of the state */
  bool whole;
};

/* ---- registering */

static rung_status find_pair(rung_context *c, const char *output, const char *state, bool whole, rung_feed *out) {
  const rung_graph *g = c->template_->graph;
  *out = (rung_feed){.whole = whole};
  while (out->output < g->outputs && (!output || strcmp(g->output[out->output].name, output) != 0)) out->output++;
  if (out->output == g->outputs)
    return rung_fail(&c->error, RUNG_NOT_FOUND, "feed: there is no output \"%s\"", output ? output : "");
  const rung_state_item *item = rung_state_find(c->state, state);
  if (!item) return rung_fail(&c->error, RUNG_NOT_FOUND, "feed: there is no state \"%s\"", state ? state : "");
  if (rung_state_is_kv(item))
    return rung_fail(&c->error, RUNG_UNSUPPORTED, "feed: state \"%s\" holds keys and values; append writes it", state);
  out->item = (uint32_t)(item - c->state->item);
  const rung_value_type *from = rung_graph_value_type(g, g->output[out->output].value);
  if (from->type != item->type.type)
    return rung_fail(&c->error, RUNG_TYPE_MISMATCH, "feed: output \"%s\" is %s, state \"%s\" %s", output,
                     rung_type_name(from->type), state, rung_type_name(item->type.type));
  if (whole ? from->rank != item->type.rank : item->type.rank < 2)
    return rung_fail(&c->error, RUNG_SHAPE_MISMATCH,
                     whole ? "feed: output \"%s\" has another rank than state \"%s\""
                           : "feed: \"%s\" into state \"%s\", which is no [batch, capacity, row...]",
                     output, state);
  return RUNG_OK;
}

static rung_status add(rung_context *c, const char *output, const char *state, bool whole) {
  if (!c) return RUNG_INVALID_ARGUMENT;
  c->error = (rung_error){0};
  rung_feed feed;
  RUNG_TRY(find_pair(c, output, state, whole, &feed));
  void *array = c->feed;
  if (!rung_host_grow(c->host, &array, &c->feed_room, (size_t)c->feeds + 1, sizeof feed))
    return rung_fail(&c->error, RUNG_OUT_OF_MEMORY, "feed: out of memory");
  c->feed = array;
  c->feed[c->feeds++] = feed;
  c->wanted_changed = true;
  return RUNG_OK;
}

bool rung_context_feeds_output(const rung_context *c, uint32_t slot) {
  for (uint32_t i = 0; i < c->feeds; i++)
    if (c->feed[i].output == slot) return true;
  return false;
}

rung_status rung_context_add_feed(rung_context *c, const char *output, const char *state) {
  return add(c, output, state, false);
}
rung_status rung_context_add_whole_feed(rung_context *c, const char *output, const char *state) {
  return add(c, output, state, true);
}

void rung_context_clear_feeds(rung_context *c) {
  if (!c) return;
  rung_host_free(c->host, RUNG_MEMORY_host, c->feed, c->feed_room * sizeof *c->feed);
  c->feed = NULL;
  c->feeds = 0;
  c->feed_room = 0;
  c->wanted_changed = true;
}

int rung_context_feeds(const rung_context *c) { return c ? (int)c->feeds : 0; }

rung_status rung_context_copy_feeds(rung_context *to, const rung_context *from) {
  if (!from->feeds) return RUNG_OK;
  void *array = NULL;
  if (!rung_host_grow(to->host, &array, &to->feed_room, from->feeds, sizeof *to->feed))
    return rung_fail(&to->error, RUNG_OUT_OF_MEMORY, "clone: out of memory");
  to->feed = array;
  to->feeds = from->feeds;
  memcpy(to->feed, from->feed, from->feeds * sizeof *to->feed);
  return RUNG_OK;
}

/* ---- one feed with the numbers of now */

typedef struct pair {
  const char *output, *state;
  const rung_tensor *made;
  const uint8_t *from; /* dense, of the actual extents */
  uint8_t *to;
  int64_t extent[RUNG_MAX_RANK]; /* of the state */
  int64_t batch, capacity;       /* of the state */
  int64_t rows;                  /* that the output has, if they are the state's */
  size_t row_bytes;
  bool same; /* memory */
} pair;

static rung_status look(rung_context *c, const rung_feed *feed, pair *p) {
  const rung_plan_output *out = &c->program->plan->output[feed->output];
  const rung_state_item *item = &c->state->item[feed->item];
  *p = (pair){.output = out->name,
              .state = item->name,
              .made = &c->result[feed->output],
              .from = c->root[out->root],
              .to = item->region.base};
  uint64_t row = 1, elements = 1;
  for (int a = 0; a < item->type.rank; a++) {
    rung_dims_is_constant(c->template_->graph->dims, item->type.extent[a], &p->extent[a]);
    if (a > 1) row *= (uint64_t)p->extent[a];
  }
  p->batch = item->type.rank > 0 ? p->extent[0] : 1;
  p->capacity = item->type.rank > 1 ? p->extent[1] : 1;
  for (int a = 0; a < p->made->rank; a++) elements *= (uint64_t)p->made->extent[a];
  p->row_bytes = (size_t)rung_type_bytes(item->type.type, row);
  const uint64_t bytes = rung_type_bytes(item->type.type, elements);
  if (!feed->whole && row) {
    if (elements % row)
      return rung_fail(&c->error, RUNG_SHAPE_MISMATCH,
                       "feed: output \"%s\" has %" PRIu64 " numbers, no rows of %" PRIu64 " as state \"%s\" has",
                       p->output, elements, row, p->state);
    p->rows = (int64_t)(elements / row);
  }
  p->same = p->from == p->to && bytes;
  if (!p->same && bytes && p->from < p->to + item->bytes && p->to < p->from + bytes)
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "feed: output \"%s\" lies across state \"%s\"", p->output,
                     p->state);
  return RUNG_OK;
}

/* Which rows go where: entry b's row at[b] of what the output has, `stride` rows from entry to entry. */
typedef struct fold {
  int64_t batch, stride, source;
  const int64_t *at; /* NULL: `row` for all */
  int64_t row;
} fold;

static int64_t target_of(const fold *f, int64_t b) { return f->at ? f->at[b] : f->row; }

static rung_status check(rung_context *c, const pair *p, const fold *f) {
  if (f->batch > p->batch)
    return rung_fail(&c->error, RUNG_OUT_OF_RANGE, "feed: %" PRId64 " entries, state \"%s\" has %" PRId64, f->batch,
                     p->state, p->batch);
  int64_t want;
  if (rung_mul_overflows(f->batch, f->stride, &want) || want != p->rows)
    return rung_fail(&c->error, RUNG_SHAPE_MISMATCH,
                     "feed: output \"%s\" has %" PRId64 " rows, not %" PRId64 " for each of %" PRId64 " entries",
                     p->output, p->rows, f->stride, f->batch);
  if (f->source < 0 || f->source >= f->stride)
    return rung_fail(&c->error, RUNG_OUT_OF_RANGE, "feed: row %" PRId64 " of output \"%s\", which has %" PRId64,
                     f->source, p->output, f->stride);
  for (int64_t b = 0; b < f->batch; b++)
    if (target_of(f, b) < 0 || target_of(f, b) >= p->capacity)
      return rung_fail(&c->error, RUNG_OUT_OF_RANGE,
                       "feed: row %" PRId64 " of state \"%s\", whose capacity is %" PRId64, target_of(f, b), p->state,
                       p->capacity);
  if (p->same && f->stride != p->capacity)
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT,
                     "feed: output \"%s\" and state \"%s\" are the same memory, with %" PRId64 " and %" PRId64
                     " rows for each entry",
                     p->output, p->state, f->stride, p->capacity);
  return RUNG_OK;
}

static void move(rung_context *c, const pair *p, const fold *f) {
  for (int64_t b = 0; b < f->batch; b++) {
    if (p->same && f->source == target_of(f, b)) continue;
    uint8_t *to = p->to + (size_t)(b * p->capacity + target_of(f, b)) * p->row_bytes;
    const uint8_t *from = p->from + (size_t)(b * f->stride + f->source) * p->row_bytes;
    if (c->far)
      rung_far_copy(c->far, to, from, p->row_bytes);
    else
      memmove(to, from, p->row_bytes);
    c->state->moved += p->row_bytes;
  }
}

static rung_status ready(rung_context *c) {
  RUNG_TRY(rung_context_ready(c));
  if (!c->feeds || c->ran) return RUNG_OK;
  return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "feed: no run has made the outputs");
}

/* All feeds are looked at before the first row moves. stride 0: as many rows as the output has for each entry. */
static rung_status fold_all(rung_context *c, const fold *f) {
  RUNG_TRY(ready(c));
  if (f->batch < 0) return rung_fail(&c->error, RUNG_OUT_OF_RANGE, "feed: %" PRId64 " entries", f->batch);
  if (!f->batch) return RUNG_OK;
  for (int moving = 0; moving < 2; moving++) {
    for (uint32_t i = 0; i < c->feeds; i++) {
      pair p;
      if (c->feed[i].whole) continue;
      RUNG_TRY(look(c, &c->feed[i], &p));
      if (!p.row_bytes) continue;
      fold own = *f;
      if (!own.stride) own.stride = p.rows;
      if (moving)
        move(c, &p, &own);
      else
        RUNG_TRY(check(c, &p, &own));
    }
  }
  return RUNG_OK;
}

rung_status rung_context_feed_row(rung_context *c, int64_t source, int64_t row) {
  return fold_all(c, &(fold){.batch = 1, .source = source, .row = row});
}

rung_status rung_context_feed_batch(rung_context *c, int64_t batch, int64_t row) {
  return fold_all(c, &(fold){.batch = batch, .stride = 1, .row = row});
}

rung_status rung_context_feed_cache(rung_context *c, int64_t batch, int64_t capacity, int64_t source, int64_t row) {
  RUNG_TRY(ready(c));
  if (batch && capacity < 1)
    return rung_fail(&c->error, RUNG_OUT_OF_RANGE, "feed: a source capacity of %" PRId64 " rows", capacity);
  return fold_all(c, &(fold){.batch = batch, .stride = capacity, .source = source, .row = row});
}

rung_status rung_context_feed_ragged(rung_context *c, const int64_t *rows, int64_t sequences) {
  RUNG_TRY(ready(c));
  if (sequences > 0 && !rows) return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "feed: no rows are given");
  return fold_all(c, &(fold){.batch = sequences, .stride = 1, .at = rows});
}

/* ---- whole outputs */

static rung_status check_whole(rung_context *c, const pair *p) {
  for (int a = 0; a < p->made->rank; a++) {
    const int64_t have = p->made->extent[a];
    if (have == p->extent[a] || (a < 2 && have < p->extent[a])) continue;
    return rung_fail(&c->error, RUNG_SHAPE_MISMATCH,
                     "feed: axis %d of output \"%s\" is %" PRId64 ", of state \"%s\" %" PRId64, a, p->output, have,
                     p->state, p->extent[a]);
  }
  if (p->same && p->made->rank > 1 && p->made->extent[0] > 1 && p->made->extent[1] != p->capacity)
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT,
                     "feed: output \"%s\" and state \"%s\" are the same memory, with %" PRId64 " and %" PRId64
                     " rows for each entry",
                     p->output, p->state, p->made->extent[1], p->capacity);
  return RUNG_OK;
}

rung_status rung_context_feed_whole(rung_context *c) {
  for (int moving = 0; moving < 2; moving++) {
    for (uint32_t i = 0; i < c->feeds; i++) {
      pair p;
      if (!c->feed[i].whole) continue;
      RUNG_TRY(look(c, &c->feed[i], &p));
      if (!moving) RUNG_TRY(check_whole(c, &p));
      if (!moving || p.same) continue;
      int64_t batch = p.made->rank ? p.made->extent[0] : 1, rows = p.made->rank > 1 ? p.made->extent[1] : 1;
      if (rows == p.capacity) rows *= batch, batch = 1; /* one piece */
      const size_t bytes = (size_t)rows * p.row_bytes;
      for (int64_t b = 0; bytes && b < batch; b++) {
        rung_far_copy(c->far, p.to + (size_t)(b * p.capacity) * p.row_bytes, p.from + (size_t)b * bytes, bytes);
        c->state->moved += bytes;
      }
    }
  }
  return RUNG_OK;
}
