/* SPDX-License-Identifier: MIT
 * States. Key/value states are grouped by retention class; a class's blocks hold 64 positions of all its layers; a
 * sequence is a row of the block table. The table is the identity over reserved addresses, or (paged) sequences take
 * blocks from a pool as they grow and give them back when they shrink. */
#include <inttypes.h>
#include <string.h>

#include "ops/attrs.h"
#include "ops/op_table.h"
#include "runtime/runtime.h"

enum { RUNG_MOST_SEQUENCES = 1 << 20 };

rung_state_options rung_state_options_default(void) {
  return (rung_state_options){.size = sizeof(rung_state_options), .sequences = 1, .capacity = 2048};
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* A window's ring has room for what stays visible, the largest chunk, and the block that is being begun. */
static uint32_t ring_of(int64_t window, int64_t capacity, int64_t chunk) {
  const int64_t all = ceil_div(capacity, RUNG_KV_BLOCK);
  if (!window) return (uint32_t)all;
  const int64_t ring = ceil_div(window + chunk, RUNG_KV_BLOCK) + 1;
  return (uint32_t)(ring < all ? ring : all);
}

static size_t layer_bytes(const rung_target *target, const rung_dims *dims, const rung_value_type *type) {
  int64_t e[3] = {0, 0, 0};
  for (int i = 0; i < 3; i++) rung_dims_is_constant(dims, type->extent[i], &e[i]);
  return (target->kv_block_bytes(type->type, (int32_t)e[0], (int32_t)e[1], (int32_t)e[2]) + 63) / 64 * 64;
}

/* Declared states of a graph, in node order: what a plan's states are, too. */
static const rung_node *next_state(const rung_graph *graph, uint32_t *at) {
  while (*at < graph->nodes) {
    const rung_node *node = &graph->node[(*at)++];
    if (node->op == &rung_op_state) return node;
  }
  return NULL;
}

static rung_status add_kv(rung_state *s, rung_state_item *item, int64_t window, rung_error *error) {
  const rung_graph *graph = s->template_->graph;
  const rung_target *target = s->template_->device->target;
  uint32_t c = 0;
  while (c < s->classes && s->class_[c].window != window) c++;
  if (c == RUNG_MAX_KV_CLASSES)
    return rung_fail(error, RUNG_UNSUPPORTED, "state \"%s\": more than %d different windows in one model", item->name,
                     RUNG_MAX_KV_CLASSES);
  if (c == s->classes)
    s->class_[s->classes++] = (rung_kv_class){.window = window, .ring = ring_of(window, s->capacity, s->chunk)};
  rung_kv_class *class_ = &s->class_[c];
  int64_t e[3];
  for (int i = 0; i < 3; i++) rung_dims_is_constant(graph->dims, item->type.extent[i], &e[i]);
  item->class_ = c;
  item->kv = (rung_kv_view){.type = item->type.type,
                            .kv_heads = (int32_t)e[0],
                            .key_dim = (int32_t)e[1],
                            .value_dim = (int32_t)e[2],
                            .window = window,
                            .capacity = s->capacity,
                            .slots = s->sequences,
                            .layer_offset = class_->block_bytes,
                            .contiguous = !s->pool,
                            .ring = class_->ring,
                            .length = s->length,
                            .far = target->far,
                            .read_row = target->kv_read_row,
                            .write_row = target->kv_write_row};
  class_->block_bytes += layer_bytes(target, graph->dims, &item->type);
  return RUNG_OK;
}

static rung_status add_dense(rung_state *s, rung_state_item *item, rung_error *error) {
  uint64_t elements = 1;
  int64_t last = 1;
  for (int i = 0; i < item->type.rank; i++) {
    int64_t extent;
    if (!rung_dims_is_constant(s->template_->graph->dims, item->type.extent[i], &extent) || extent < 0)
      return rung_fail(error, RUNG_INVALID_ARGUMENT, "state \"%s\": extents must be constant", item->name);
    if (rung_mul_overflows(elements, (uint64_t)extent, &elements))
      return rung_fail(error, RUNG_OVERFLOW, "state \"%s\": too large", item->name);
    last = extent;
  }
  (void)last;
  item->bytes = rung_type_bytes(item->type.type, elements);
  RUNG_TRY(rung_region_init_far(&item->region, s->host, rung_device_far(s->template_->device), RUNG_MEMORY_state,
                                item->bytes ? item->bytes : 1, error));
  return item->bytes ? rung_region_commit(&item->region, 0, item->bytes, error) : RUNG_OK;
}

static rung_status make_class(rung_state *s, rung_kv_class *class_, rung_error *error) {
  uint64_t places, blocks, bytes;
  bool fits = !rung_mul_overflows((uint64_t)s->sequences, class_->ring, &places) && places < RUNG_NO_BLOCK;
  blocks = s->pool && (uint64_t)s->pool < places ? (uint64_t)s->pool : places;
  fits = fits && !rung_mul_overflows(blocks, class_->block_bytes, &bytes) && bytes <= (uint64_t)PTRDIFF_MAX;
  if (!fits)
    return rung_fail(error, RUNG_OVERFLOW, "state: %d sequences of %" PRId64 " positions do not fit the address space",
                     s->sequences, s->capacity);
  class_->blocks = (uint32_t)blocks;
  RUNG_TRY(rung_region_init_far(&class_->region, s->host, rung_device_far(s->template_->device), RUNG_MEMORY_state,
                                bytes, error));
  class_->from = rung_host_array(s->host, (size_t)s->sequences, sizeof *class_->from);
  class_->table = rung_host_array(s->host, places, sizeof *class_->table);
  if (s->pool) class_->spare = rung_host_array(s->host, blocks, sizeof *class_->spare);
  if (!class_->from || !class_->table || (s->pool && !class_->spare))
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "state: out of memory for a table of %" PRIu64 " blocks", places);
  for (uint64_t b = 0; b < places; b++) class_->table[b] = s->pool ? RUNG_NO_BLOCK : (uint32_t)b;
  for (; s->pool && class_->spares < blocks; class_->spares++)
    class_->spare[class_->spares] = (uint32_t)blocks - 1 - class_->spares;
  return RUNG_OK;
}

static rung_status make_classes(rung_state *s, rung_error *error) {
  for (uint32_t c = 0; c < s->classes; c++) RUNG_TRY(make_class(s, &s->class_[c], error));
  size_t pairs = 0;
  for (uint32_t i = 0; i < s->items; i++) {
    rung_state_item *item = &s->item[i];
    if (!rung_state_is_kv(item)) continue;
    const rung_kv_class *class_ = &s->class_[item->class_];
    item->kv.base = class_->region.base;
    item->kv.block_bytes = class_->block_bytes;
    item->kv.table = class_->table;
    if (rung_kv_row(&item->kv) > s->row_floats) s->row_floats = rung_kv_row(&item->kv);
    if ((size_t)item->kv.key_dim > pairs) pairs = (size_t)item->kv.key_dim;
  }
  if (!s->row_floats) return RUNG_OK;
  rung_state_find_turns(s);
  s->scratch_floats = 2 * s->row_floats + 2 * pairs; /* key_dim / 2 pairs of doubles */
  s->row = rung_host_array(s->host, s->scratch_floats + 2, sizeof *s->row);
  return s->row ? RUNG_OK : rung_fail(error, RUNG_OUT_OF_MEMORY, "state: out of memory");
}

static rung_status fill(rung_state *s, rung_error *error) {
  const rung_graph *graph = s->template_->graph;
  uint32_t at = 0;
  while (next_state(graph, &at)) s->items++;
  s->item = rung_host_array(s->host, s->items, sizeof *s->item);
  s->length = rung_host_array(s->host, (size_t)s->sequences, sizeof *s->length);
  s->shift = rung_host_array(s->host, (size_t)s->sequences, sizeof *s->shift);
  s->mark = rung_host_array(s->host, (size_t)s->sequences, sizeof *s->mark);
  if (!s->item || !s->length || !s->shift || !s->mark)
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "state: out of memory");
  at = 0;
  for (uint32_t i = 0; i < s->items; i++) {
    const rung_node *node = next_state(graph, &at);
    const rung_state_attrs *attrs = node->attrs;
    rung_state_item *item = &s->item[i];
    item->name = attrs->name;
    item->type = *rung_graph_value_type(graph, node->first_value);
    if (rung_state_is_kv(item))
      RUNG_TRY(add_kv(s, item, attrs->window, error));
    else
      RUNG_TRY(add_dense(s, item, error));
  }
  return make_classes(s, error);
}

rung_status rung_state_create(rung_template *template_, const rung_state_options *options, rung_error *error,
                              rung_state **out_state) {
  const rung_state_options o = options ? *options : rung_state_options_default();
  if (!template_ || !out_state)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "state: template and out_state are required");
  if (o.size != sizeof o)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "state: options.size is %zu, expected %zu", o.size, sizeof o);
  if (o.sequences < 1)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "state: %d sequences; at least 1 is needed", o.sequences);
  if (o.sequences > RUNG_MOST_SEQUENCES)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "state: %d sequences; at most %d", o.sequences, RUNG_MOST_SEQUENCES);
  if (o.capacity < 1)
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "state: a capacity of %" PRId64 " positions; at least 1 is needed",
                     o.capacity);
  if (o.capacity > INT32_MAX)
    return rung_fail(error, RUNG_OUT_OF_RANGE,
                     "state: a capacity of %" PRId64 " positions; positions are 32-bit numbers, at most %d", o.capacity,
                     INT32_MAX);
  if (o.chunk < 0) return rung_fail(error, RUNG_INVALID_ARGUMENT, "state: chunk is %" PRId64, o.chunk);
  if (o.blocks < 0) return rung_fail(error, RUNG_INVALID_ARGUMENT, "state: %" PRId64 " blocks", o.blocks);
  rung_host *host = template_->device->host;
  rung_state *s = rung_host_alloc(host, RUNG_MEMORY_host, sizeof *s, 0);
  if (!s) return rung_fail(error, RUNG_OUT_OF_MEMORY, "state: out of memory");
  atomic_init(&s->references, 1);
  rung_host_retain(host);
  rung_template_retain(template_);
  s->host = host;
  s->template_ = template_;
  s->sequences = o.sequences;
  s->capacity = o.capacity;
  s->chunk = o.chunk && o.chunk < o.capacity ? o.chunk : o.capacity;
  s->pool = o.blocks;
  const rung_status status = fill(s, error);
  if (status) {
    rung_state_release(s);
    return status;
  }
  *out_state = s;
  return RUNG_OK;
}

void rung_state_retain(rung_state *state) {
  if (state) atomic_fetch_add(&state->references, 1);
}

void rung_state_release(rung_state *s) {
  if (!s || atomic_fetch_sub(&s->references, 1) != 1) return;
  const size_t n = (size_t)s->sequences;
  for (uint32_t c = 0; c < s->classes; c++) {
    rung_kv_class *class_ = &s->class_[c];
    rung_host_free(s->host, RUNG_MEMORY_host, class_->table, n * class_->ring * sizeof *class_->table);
    rung_host_free(s->host, RUNG_MEMORY_host, class_->spare, class_->blocks * sizeof *class_->spare);
    rung_host_free(s->host, RUNG_MEMORY_host, class_->from, n * sizeof *class_->from);
    rung_region_finish(&class_->region);
  }
  for (uint32_t i = 0; s->item && i < s->items; i++) rung_region_finish(&s->item[i].region);
  rung_host_free(s->host, RUNG_MEMORY_host, s->item, s->items * sizeof *s->item);
  rung_host_free(s->host, RUNG_MEMORY_host, s->length, n * sizeof *s->length);
  rung_host_free(s->host, RUNG_MEMORY_host, s->shift, n * sizeof *s->shift);
  rung_host_free(s->host, RUNG_MEMORY_host, s->mark, n * sizeof *s->mark);
  rung_host_free(s->host, RUNG_MEMORY_host, s->row, (s->scratch_floats + 2) * sizeof *s->row);
  rung_host *host = s->host;
  rung_template_release(s->template_);
  rung_host_free(host, RUNG_MEMORY_host, s, sizeof *s);
  rung_host_release(host);
}

/* ---- growth */

/* Blocks [first, last] that positions [past, past + count) need: no more than the ring has. */
static void blocks_of(const rung_kv_class *class_, int64_t past, int64_t count, int64_t *first, int64_t *last) {
  *first = past / RUNG_KV_BLOCK;
  *last = (past + count - 1) / RUNG_KV_BLOCK;
  if (*last - *first >= class_->ring) *first = *last - class_->ring + 1;
}

static uint32_t *place_of(const rung_kv_class *class_, int32_t slot, int64_t block) {
  return &class_->table[(uint64_t)slot * class_->ring + (uint64_t)block % class_->ring];
}

/* Before any block is taken: a refusal leaves the pool as it was. */
static rung_status check_pool(const rung_state *s, const rung_kv_class *class_, int32_t slot, int64_t past,
                              int64_t count, rung_error *error) {
  int64_t first, last;
  uint32_t missing = 0;
  blocks_of(class_, past, count, &first, &last);
  for (int64_t b = first; b <= last; b++) missing += *place_of(class_, slot, b) == RUNG_NO_BLOCK;
  if (missing <= class_->spares) return RUNG_OK;
  return rung_fail(error, RUNG_OUT_OF_RANGE,
                   "sequence %d needs %u more blocks of %d positions; %u of the %u that %d sequences share are free",
                   slot, missing, RUNG_KV_BLOCK, class_->spares, class_->blocks, s->sequences);
}

static rung_status take_blocks(rung_kv_class *class_, int32_t slot, int64_t past, int64_t count, rung_error *error) {
  int64_t first, last;
  blocks_of(class_, past, count, &first, &last);
  for (int64_t b = first; b <= last; b++) {
    uint32_t *place = place_of(class_, slot, b);
    const uint32_t block = *place == RUNG_NO_BLOCK ? class_->spare[class_->spares - 1] : *place;
    RUNG_TRY(rung_region_commit(&class_->region, (size_t)block * class_->block_bytes, class_->block_bytes, error));
    if (*place == RUNG_NO_BLOCK) class_->spares--;
    *place = block;
  }
  return RUNG_OK;
}

rung_status rung_state_reserve(rung_state *s, int32_t slot, int64_t past, int64_t count, rung_error *error) {
  if (count <= 0) return RUNG_OK;
  if (count > s->capacity - past)
    return rung_fail(error, RUNG_OUT_OF_RANGE,
                     "sequence %d holds %" PRId64 " positions; %" PRId64 " more pass the capacity of %" PRId64, slot,
                     past, count, s->capacity);
  for (uint32_t c = 0; s->pool && c < s->classes; c++) RUNG_TRY(check_pool(s, &s->class_[c], slot, past, count, error));
  for (uint32_t c = 0; c < s->classes; c++) RUNG_TRY(take_blocks(&s->class_[c], slot, past, count, error));
  return RUNG_OK;
}

rung_status rung_state_grow(rung_state *s, int32_t slot, int64_t past, int64_t count, rung_error *error) {
  if (count <= 0) return RUNG_OK;
  for (uint32_t c = 0; c < s->classes; c++)
    if (s->class_[c].window && count > s->chunk && count <= s->capacity - past)
      return rung_fail(error, RUNG_OUT_OF_RANGE,
                       "sequence %d: a chunk of %" PRId64 " rows; the state has room for %" PRId64 " at once", slot,
                       count, s->chunk);
  RUNG_TRY(rung_state_reserve(s, slot, past, count, error));
  rung_state_overwrite(s, slot, past + count);
  return RUNG_OK;
}

void rung_state_overwrite(rung_state *s, int32_t slot, int64_t end) {
  for (uint32_t c = 0; c < s->classes; c++) {
    const int64_t oldest = ((end - 1) / RUNG_KV_BLOCK - s->class_[c].ring + 1) * RUNG_KV_BLOCK;
    if (oldest > s->class_[c].from[slot]) s->class_[c].from[slot] = oldest;
  }
}

void rung_state_give_back(rung_state *s, int32_t slot) {
  const int64_t end = s->length[slot] ? s->length[slot] + s->shift[slot].by : 0;
  for (uint32_t c = 0; s->pool && c < s->classes; c++) {
    rung_kv_class *class_ = &s->class_[c];
    const int64_t last = ceil_div(end, RUNG_KV_BLOCK) - 1;
    for (uint32_t e = 0; e < class_->ring; e++) {
      uint32_t *place = place_of(class_, slot, e);
      if (*place == RUNG_NO_BLOCK || e <= last) continue;
      class_->spare[class_->spares++] = *place;
      *place = RUNG_NO_BLOCK;
    }
  }
}

/* A pool gives its first block first. */
static uint64_t pages_of_pool(const rung_lengths *lengths, uint32_t ring, size_t block_bytes, size_t page) {
  uint64_t blocks = 0;
  for (int s = 0; s < lengths->sequences; s++) {
    const uint64_t own = (uint64_t)ceil_div(lengths->length[s], RUNG_KV_BLOCK);
    blocks += own < ring ? own : ring;
  }
  return (blocks * block_bytes + page - 1) / page;
}

/* Pages that growing sequences from 0 to their lengths touches: blocks of a class are contiguous per sequence. */
uint64_t rung_state_predict(const rung_program *program, const rung_lengths *lengths, size_t page) {
  const int64_t capacity = lengths ? lengths->capacity : 1;
  const int64_t chunk = lengths && lengths->chunk && lengths->chunk < capacity ? lengths->chunk : capacity;
  const rung_graph *graph = program->template_->graph;
  const rung_target *target = program->template_->device->target;
  struct {
    int64_t window;
    size_t block_bytes;
  } class_[RUNG_MAX_KV_CLASSES];
  uint32_t classes = 0, at = 0;
  uint64_t total = 0;
  const rung_node *node;
  while ((node = next_state(graph, &at)) != NULL) {
    const rung_value_type *type = rung_graph_value_type(graph, node->first_value);
    const int64_t window = ((const rung_state_attrs *)node->attrs)->window;
    if (type->kind != RUNG_VALUE_STATE_KV) {
      uint64_t elements = 1;
      for (int i = 0; i < type->rank; i++) {
        int64_t extent = 0;
        rung_dims_is_constant(graph->dims, type->extent[i], &extent);
        elements *= (uint64_t)extent;
      }
      total += (rung_type_bytes(type->type, elements) + page - 1) / page * page;
      continue;
    }
    uint32_t c = 0;
    while (c < classes && class_[c].window != window) c++;
    if (c == RUNG_MAX_KV_CLASSES) return UINT64_MAX; /* such a state cannot be created */
    if (c == classes) class_[classes].window = window, class_[classes++].block_bytes = 0;
    class_[c].block_bytes += layer_bytes(target, graph->dims, type);
  }
  for (uint32_t c = 0; c < classes; c++) {
    const uint32_t ring = ring_of(class_[c].window, capacity, chunk);
    if (lengths && lengths->blocks) {
      total += pages_of_pool(lengths, ring, class_[c].block_bytes, page) * page;
      continue;
    }
    uint64_t pages = 0, end = 0; /* one behind the last page counted: neighbours may share one */
    for (int s = 0; lengths && s < lengths->sequences; s++) {
      uint64_t blocks = (uint64_t)ceil_div(lengths->length[s], RUNG_KV_BLOCK);
      if (blocks > ring) blocks = ring;
      if (!blocks) continue;
      uint64_t first = (uint64_t)s * ring * class_[c].block_bytes / page;
      const uint64_t last = (((uint64_t)s * ring + blocks) * class_[c].block_bytes - 1) / page;
      if (first < end) first = end;
      if (last + 1 > end) pages += last + 1 - first, end = last + 1;
    }
    total += pages * page;
  }
  return total;
}

/* ---- calls */

int32_t rung_state_sequences(const rung_state *state) { return state ? state->sequences : 0; }
int64_t rung_state_capacity(const rung_state *state) { return state ? state->capacity : 0; }
int64_t rung_state_length(const rung_state *state, int32_t slot) {
  return state && slot >= 0 && slot < state->sequences ? state->length[slot] : 0;
}

int64_t rung_state_first(const rung_state *s, const rung_kv_class *class_, int32_t slot) {
  const int64_t from = class_->from[slot], keep = s->shift[slot].keep, by = s->shift[slot].by;
  if (!by || from <= keep) return from;
  return from - by > keep ? from - by : keep;
}

int64_t rung_state_held(const rung_state *s, int32_t slot) {
  int64_t first = 0;
  rung_state_quiet((rung_state *)(uintptr_t)s);
  for (uint32_t c = 0; s && slot >= 0 && slot < s->sequences && c < s->classes; c++) {
    const int64_t own = rung_state_first(s, &s->class_[c], slot);
    if (own > first) first = own;
  }
  return first;
}

rung_status rung_state_truncate(rung_state *s, int32_t slot, int64_t length, rung_error *error) {
  rung_state_quiet(s);
  if (!s || slot < 0 || slot >= s->sequences)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "truncate: there is no sequence %d", slot);
  if (length < 0 || length > s->length[slot])
    return rung_fail(error, RUNG_OUT_OF_RANGE, "truncate: sequence %d holds %" PRId64 " positions, not %" PRId64, slot,
                     s->length[slot], length);
  for (uint32_t c = 0; length && c < s->classes; c++) {
    /* Positions that a next row would see must not have been overwritten by the ring. */
    const rung_kv_class *class_ = &s->class_[c];
    const int64_t needed = rung_class_needs(class_, length);
    if (needed < rung_state_first(s, class_, slot))
      return rung_fail(error, RUNG_UNSUPPORTED,
                       "truncate: sequence %d to %" PRId64 ": a window of %" PRId64
                       " no longer holds position %" PRId64,
                       slot, length, class_->window, needed);
  }
  s->length[slot] = length;
  if (length <= s->shift[slot].keep) s->shift[slot] = (rung_slot_shift){0};
  for (uint32_t c = 0; !length && c < s->classes; c++) s->class_[c].from[slot] = 0;
  rung_state_give_back(s, slot);
  return RUNG_OK;
}

void rung_state_clear(rung_state *s) {
  rung_state_quiet(s);
  if (!s) return;
  const size_t n = (size_t)s->sequences;
  memset(s->length, 0, n * sizeof *s->length);
  memset(s->shift, 0, n * sizeof *s->shift);
  for (uint32_t c = 0; c < s->classes; c++) {
    rung_kv_class *class_ = &s->class_[c];
    memset(class_->from, 0, n * sizeof *class_->from);
    for (size_t e = 0; s->pool && e < n * class_->ring; e++) class_->table[e] = RUNG_NO_BLOCK;
    for (class_->spares = 0; s->pool && class_->spares < class_->blocks; class_->spares++)
      class_->spare[class_->spares] = class_->blocks - 1 - class_->spares;
    rung_region_decommit(&class_->region, 0, class_->region.reserved);
  }
  for (uint32_t i = 0; i < s->items; i++)
    if (s->item[i].region.base && s->item[i].bytes)
      rung_far_zero(s->item[i].region.far, s->item[i].region.base, s->item[i].bytes);
}

rung_state_item *rung_state_find(rung_state *s, const char *name) {
  for (uint32_t i = 0; s && name && i < s->items; i++)
    if (strcmp(s->item[i].name, name) == 0) return &s->item[i];
  return NULL;
}

rung_status rung_state_tensor(rung_state *s, const char *name, rung_error *error, rung_tensor *out_tensor) {
  rung_state_quiet(s);
  rung_state_item *item = rung_state_find(s, name);
  if (!item || !out_tensor) return rung_fail(error, RUNG_NOT_FOUND, "there is no state \"%s\"", name ? name : "");
  if (rung_state_is_kv(item))
    return rung_fail(error, RUNG_UNSUPPORTED, "state \"%s\" holds keys and values; read it by rows", name);
  if (item->region.far)
    return rung_fail(error, RUNG_UNSUPPORTED,
                     "state \"%s\" lies in the memory of device %s; save it, or read an output", name,
                     s->template_->device->name);
  int64_t extent[RUNG_MAX_RANK];
  for (int i = 0; i < item->type.rank; i++)
    rung_dims_is_constant(s->template_->graph->dims, item->type.extent[i], &extent[i]);
  *out_tensor = rung_tensor_dense(item->type.type, item->type.rank, extent, item->region.base);
  return RUNG_OK;
}

uint64_t rung_state_bytes(const rung_state *s) {
  uint64_t bytes = 0;
  if (!s) return 0;
  rung_state_quiet((rung_state *)(uintptr_t)s);
  for (uint32_t c = 0; c < s->classes; c++) bytes += s->class_[c].region.committed;
  for (uint32_t i = 0; i < s->items; i++) bytes += s->item[i].region.committed;
  return bytes;
}
uint64_t rung_state_moved(const rung_state *s) {
  rung_state_quiet((rung_state *)(uintptr_t)s);
  return s ? s->moved : 0;
}
