/* SPDX-License-Identifier: MIT
 * Feeds: what outputs made goes into dense states, by rows or whole, or into inputs of the next run. */
#include <inttypes.h>
#include <string.h>

#include "ops/attrs.h"
#include "runtime/runtime.h"

typedef enum feed_kind { FEED_ROWS, FEED_WHOLE, FEED_INPUT } feed_kind;
struct rung_feed {
  uint32_t output; /* of the graph */
  uint32_t item;   /* of the state; an input of the graph */
  feed_kind kind;
};

/* ---- registering */

static rung_status find_output(rung_context *c, const char *output, rung_feed *out) {
  const rung_graph *g = c->template_->graph;
  while (out->output < g->outputs && (!output || strcmp(g->output[out->output].name, output) != 0)) out->output++;
  return out->output < g->outputs
             ? RUNG_OK
             : rung_fail(&c->error, RUNG_NOT_FOUND, "feed: there is no output \"%s\"", output ? output : "");
}

static rung_status find_pair(rung_context *c, const char *output, const char *state, rung_feed *out) {
  const rung_graph *g = c->template_->graph;
  const bool whole = out->kind == FEED_WHOLE;
  RUNG_TRY(find_output(c, output, out));
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

static const char *input_name(const rung_graph *g, uint32_t slot) {
  return ((const rung_input_attrs *)g->node[g->input[slot]].attrs)->name;
}

/* Sizes of what is fed are known before the run that makes it: the next one is looked at before this one has ended. */
static rung_status check_fed_extents(rung_context *c, const char *output, const rung_value_type *from) {
  const rung_dims *dims = c->template_->graph->dims;
  for (int a = 0; a < from->rank; a++)
    for (uint32_t s = 0; s < dims->symbols; s++)
      if (dims->symbol[s].made && dims->node[from->extent[a].id].symbols >> s & 1)
        return rung_fail(&c->error, RUNG_UNSUPPORTED, "feed: axis %d of output \"%s\" is found during the run (%s)", a,
                         output, dims->symbol[s].name);
  return RUNG_OK;
}

static rung_status find_input(rung_context *c, const char *output, const char *input, rung_feed *out) {
  const rung_graph *g = c->template_->graph;
  RUNG_TRY(find_output(c, output, out));
  while (out->item < g->inputs && (!input || strcmp(input_name(g, out->item), input) != 0)) out->item++;
  if (out->item == g->inputs)
    return rung_fail(&c->error, RUNG_NOT_FOUND, "feed: there is no input \"%s\"", input ? input : "");
  for (uint32_t i = 0; i < c->feeds; i++)
    if (c->feed[i].kind == FEED_INPUT && c->feed[i].item == out->item)
      return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "feed: input \"%s\" is fed already", input);
  const rung_value_type *from = rung_graph_value_type(g, g->output[out->output].value),
                        *to = rung_graph_value_type(g, g->node[g->input[out->item]].first_value);
  if (from->type != to->type)
    return rung_fail(&c->error, RUNG_TYPE_MISMATCH, "feed: output \"%s\" is %s, input \"%s\" %s", output,
                     rung_type_name(from->type), input, rung_type_name(to->type));
  if (from->rank != to->rank)
    return rung_fail(&c->error, RUNG_SHAPE_MISMATCH, "feed: output \"%s\" has rank %d, input \"%s\" %d", output,
                     from->rank, input, to->rank);
  return check_fed_extents(c, output, from);
}

static rung_status add(rung_context *c, const char *output, const char *target, feed_kind kind) {
  if (!c) return RUNG_INVALID_ARGUMENT;
  rung_context_quiet(c);
  c->error = (rung_error){0};
  rung_feed feed = {.kind = kind};
  RUNG_TRY(kind == FEED_INPUT ? find_input(c, output, target, &feed) : find_pair(c, output, target, &feed));
  void *array = c->feed;
  if (!rung_host_grow(c->host, &array, &c->feed_room, (size_t)c->feeds + 1, sizeof feed))
    return rung_fail(&c->error, RUNG_OUT_OF_MEMORY, "feed: out of memory");
  c->feed = array;
  c->feed[c->feeds++] = feed;
  c->wanted_stamp++;
  return RUNG_OK;
}

static bool feeds(const rung_context *c, uint32_t slot, bool inputs) {
  for (uint32_t i = 0; i < c->feeds; i++)
    if (c->feed[i].output == slot && (inputs || c->feed[i].kind != FEED_INPUT)) return true;
  return false;
}
bool rung_context_feeds_output(const rung_context *c, uint32_t slot) { return feeds(c, slot, true); }
bool rung_context_feeds_state(const rung_context *c, uint32_t slot) { return feeds(c, slot, false); }

rung_status rung_context_add_feed(rung_context *c, const char *output, const char *state) {
  return add(c, output, state, FEED_ROWS);
}
rung_status rung_context_add_whole_feed(rung_context *c, const char *output, const char *state) {
  return add(c, output, state, FEED_WHOLE);
}
rung_status rung_context_add_input_feed(rung_context *c, const char *output, const char *input) {
  return add(c, output, input, FEED_INPUT);
}

void rung_context_clear_feeds(rung_context *c) {
  if (!c) return;
  rung_context_quiet(c);
  rung_context_unfeed_inputs(c);
  rung_host_free(c->host, RUNG_MEMORY_host, c->feed, c->feed_room * sizeof *c->feed);
  c->feed = NULL;
  c->feeds = 0;
  c->feed_room = 0;
  c->wanted_stamp++;
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

static rung_status look(rung_context *c, const rung_context *run, const rung_feed *feed, pair *p) {
  const rung_plan_output *out = &c->program->plan->output[feed->output];
  const rung_state_item *item = &c->state->item[feed->item];
  *p = (pair){.output = out->name,
              .state = item->name,
              .made = &run->result[feed->output],
              .from = run->root[out->root],
              .to = item->region.base};
  if (!p->made->data && rung_tensor_bytes(p->made))
    return rung_fail(&c->error, RUNG_INVALID_ARGUMENT, "feed: output \"%s\" was not wanted in the run", p->output);
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
  if (feed->kind == FEED_ROWS && row) {
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

/* Rows come from the run that began last. */
static rung_status ready(rung_context *c) {
  RUNG_TRY(rung_context_ready(c));
  rung_context_quiet(c);
  if (!c->feeds || (c->newest && c->newest->ran)) return RUNG_OK;
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
      if (c->feed[i].kind != FEED_ROWS) continue;
      RUNG_TRY(look(c, c->newest, &c->feed[i], &p));
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
  const rung_context *main = c->main;
  for (int moving = 0; moving < 2; moving++) {
    for (uint32_t i = 0; i < main->feeds; i++) {
      pair p;
      if (main->feed[i].kind != FEED_WHOLE) continue;
      RUNG_TRY(look(c, c, &main->feed[i], &p));
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

/* ---- into inputs */

bool rung_context_feeds_input(const rung_context *c, int slot) {
  for (uint32_t i = 0; i < c->feeds; i++)
    if (c->feed[i].kind == FEED_INPUT && c->feed[i].item == (uint32_t)slot) return true;
  return false;
}

bool rung_context_feeds_whole(const rung_context *c) {
  for (uint32_t i = 0; i < c->feeds; i++)
    if (c->feed[i].kind == FEED_WHOLE) return true;
  return false;
}

static size_t fed_bytes(const rung_context *c, const rung_feed *feed, const rung_resolved *now) {
  const rung_plan *plan = c->program->plan;
  const int64_t bytes = now->dim[plan->buffer[plan->root[plan->output[feed->output].root].buffer].bytes.id];
  return bytes > 0 ? (size_t)bytes : 0;
}

static const rung_buffer *place_of(const rung_context *c, const rung_feed *feed) {
  const rung_plan *plan = c->program->plan;
  return &plan->buffer[plan->root[plan->input[feed->item].root].buffer];
}

rung_status rung_context_feed_room(rung_context *c, const rung_resolved *now) {
  rung_context *main = c->main;
  rung_status status = RUNG_OK;
  rung_context_lock(c);
  for (uint32_t i = 0; !status && i < main->feeds; i++) {
    const rung_feed *feed = &main->feed[i];
    if (feed->kind != FEED_INPUT) continue;
    const size_t bytes = fed_bytes(c, feed, now);
    if (bytes > place_of(c, feed)->bound)
      status = rung_fail(&c->error, RUNG_OUT_OF_RANGE,
                         "feed: %zu bytes of output \"%s\", input \"%s\" has room for %" PRIu64, bytes,
                         c->program->plan->output[feed->output].name, c->program->plan->input[feed->item].name,
                         place_of(c, feed)->bound);
    else if (bytes)
      status = rung_region_commit(&main->arena, place_of(c, feed)->offset, bytes, &c->error);
  }
  rung_context_unlock(c);
  return status;
}

void rung_context_feed_inputs(rung_context *c, const rung_resolved *now) {
  rung_context *main = c->main;
  for (uint32_t i = 0; i < main->feeds; i++) {
    const rung_feed *feed = &main->feed[i];
    if (feed->kind == FEED_INPUT)
      rung_far_copy(c->far, main->arena.base + place_of(c, feed)->offset,
                    c->root[c->program->plan->output[feed->output].root], fed_bytes(c, feed, now));
  }
}

void rung_context_bind_fed_inputs(rung_context *c, const rung_resolved *now) {
  rung_context *main = c->main;
  for (uint32_t i = 0; i < main->feeds; i++) {
    const rung_feed *feed = &main->feed[i];
    if (feed->kind != FEED_INPUT) continue;
    const rung_plan_input *in = &main->program->plan->input[feed->item];
    const rung_value_type *made = &main->program->plan->output[feed->output].type;
    int64_t extent[RUNG_MAX_RANK];
    for (int a = 0; a < made->rank; a++) extent[a] = now->dim[made->extent[a].id];
    uint8_t *at = main->arena.base ? main->arena.base + place_of(c, feed)->offset : NULL;
    main->input[feed->item] = (rung_bound){
        .tensor = rung_tensor_dense(made->type, made->rank, extent, at), .set = true, .owned = true, .fed = true};
    if (main->root[in->root] != at) main->root[in->root] = at, main->root_stamp++;
  }
}

void rung_context_unfeed_inputs(rung_context *c) {
  for (uint32_t i = 0; c->program && i < c->program->plan->inputs; i++)
    if (c->input[i].fed) c->input[i] = (rung_bound){0};
}
