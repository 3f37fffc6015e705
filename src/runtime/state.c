/* SPDX-License-Identifier: MIT
 * States. Key/value states are grouped by retention class; a class's blocks hold 64 positions of all its layers; a
 * sequence is a row of the block table. Here the table is the identity over reserved addresses. */
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
                            .ring = class_->ring,
                            .length = s->length,
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
  RUNG_TRY(rung_region_init(&item->region, s->host, RUNG_MEMORY_state, item->bytes ? item->bytes : 1, error));
  return item->bytes ? rung_region_commit(&item->region, 0, item->bytes, error) : RUNG_OK;
}

static rung_status make_classes(rung_state *s, rung_error *error) {
  for (uint32_t c = 0; c < s->classes; c++) {
    rung_kv_class *class_ = &s->class_[c];
    uint64_t blocks, bytes;
    if (rung_mul_overflows((uint64_t)s->sequences, class_->ring, &blocks) ||
        rung_mul_overflows(blocks, class_->block_bytes, &bytes) || blocks > UINT32_MAX || bytes > (uint64_t)PTRDIFF_MAX)
      return rung_fail(error, RUNG_OVERFLOW,
                       "state: %d sequences of %" PRId64 " positions do not fit the address space", s->sequences,
                       s->capacity);
    RUNG_TRY(rung_region_init(&class_->region, s->host, RUNG_MEMORY_state, bytes, error));
    class_->table = rung_host_array(s->host, blocks, sizeof *class_->table);
    if (!class_->table)
      return rung_fail(error, RUNG_OUT_OF_MEMORY, "state: out of memory for a table of %" PRIu64 " blocks", blocks);
    for (uint64_t b = 0; b < blocks; b++) class_->table[b] = (uint32_t)b;
  }
  for (uint32_t i = 0; i < s->items; i++) {
    if (s->item[i].type.kind != RUNG_VALUE_STATE_KV) continue;
    const rung_kv_class *class_ = &s->class_[s->item[i].class_];
    s->item[i].kv.base = class_->region.base;
    s->item[i].kv.block_bytes = class_->block_bytes;
    s->item[i].kv.table = class_->table;
  }
  return RUNG_OK;
}

static rung_status fill(rung_state *s, rung_error *error) {
  const rung_graph *graph = s->template_->graph;
  uint32_t at = 0;
  while (next_state(graph, &at)) s->items++;
  s->item = rung_host_array(s->host, s->items, sizeof *s->item);
  s->length = rung_host_array(s->host, (size_t)s->sequences, sizeof *s->length);
  s->reached = rung_host_array(s->host, (size_t)s->sequences, sizeof *s->reached);
  s->mark = rung_host_array(s->host, (size_t)s->sequences, sizeof *s->mark);
  if (!s->item || !s->length || !s->reached || !s->mark)
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "state: out of memory");
  at = 0;
  for (uint32_t i = 0; i < s->items; i++) {
    const rung_node *node = next_state(graph, &at);
    const rung_state_attrs *attrs = node->attrs;
    rung_state_item *item = &s->item[i];
    item->name = attrs->name;
    item->type = *rung_graph_value_type(graph, node->first_value);
    if (item->type.kind == RUNG_VALUE_STATE_KV)
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
  for (uint32_t c = 0; c < s->classes; c++) {
    rung_host_free(s->host, RUNG_MEMORY_host, s->class_[c].table,
                   (size_t)s->sequences * s->class_[c].ring * sizeof(uint32_t));
    rung_region_finish(&s->class_[c].region);
  }
  for (uint32_t i = 0; s->item && i < s->items; i++) rung_region_finish(&s->item[i].region);
  rung_host_free(s->host, RUNG_MEMORY_host, s->item, s->items * sizeof *s->item);
  rung_host_free(s->host, RUNG_MEMORY_host, s->length, (size_t)s->sequences * sizeof *s->length);
  rung_host_free(s->host, RUNG_MEMORY_host, s->reached, (size_t)s->sequences * sizeof *s->reached);
  rung_host_free(s->host, RUNG_MEMORY_host, s->mark, (size_t)s->sequences * sizeof *s->mark);
  rung_host *host = s->host;
  rung_template_release(s->template_);
  rung_host_free(host, RUNG_MEMORY_host, s, sizeof *s);
  rung_host_release(host);
}

/* ---- growth */

static rung_status commit_blocks(rung_state *s, rung_kv_class *class_, int32_t slot, int64_t past, int64_t count,
                                 rung_error *error) {
  int64_t first = past / RUNG_KV_BLOCK;
  const int64_t last = (past + count - 1) / RUNG_KV_BLOCK;
  if (last - first >= class_->ring) first = last - class_->ring + 1;
  for (int64_t b = first; b <= last; b++) {
    const uint32_t block = class_->table[(uint64_t)slot * class_->ring + (uint64_t)b % class_->ring];
    RUNG_TRY(rung_region_commit(&class_->region, (size_t)block * class_->block_bytes, class_->block_bytes, error));
  }
  (void)s;
  return RUNG_OK;
}

rung_status rung_state_grow(rung_state *s, int32_t slot, int64_t past, int64_t count, rung_error *error) {
  if (count <= 0) return RUNG_OK;
  if (past + count > s->capacity)
    return rung_fail(error, RUNG_OUT_OF_RANGE,
                     "sequence %d holds %" PRId64 " positions; %" PRId64 " more pass the capacity of %" PRId64, slot,
                     past, count, s->capacity);
  for (uint32_t c = 0; c < s->classes; c++) {
    if (s->class_[c].window && count > s->chunk)
      return rung_fail(error, RUNG_OUT_OF_RANGE,
                       "sequence %d: a chunk of %" PRId64 " rows; the state has room for %" PRId64 " at once", slot,
                       count, s->chunk);
    RUNG_TRY(commit_blocks(s, &s->class_[c], slot, past, count, error));
  }
  if (past + count > s->reached[slot]) s->reached[slot] = past + count;
  return RUNG_OK;
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

/* Has a ring not yet gone over the block of a position? It went as far as any run wrote, one that failed or was taken
 * back by truncating included. */
static bool holds(const rung_state *s, const rung_kv_class *class_, int32_t slot, int64_t position) {
  return position / RUNG_KV_BLOCK > (s->reached[slot] - 1) / RUNG_KV_BLOCK - class_->ring;
}

rung_status rung_state_truncate(rung_state *s, int32_t slot, int64_t length, rung_error *error) {
  if (!s || slot < 0 || slot >= s->sequences)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "truncate: there is no sequence %d", slot);
  if (length < 0 || length > s->length[slot])
    return rung_fail(error, RUNG_OUT_OF_RANGE, "truncate: sequence %d holds %" PRId64 " positions, not %" PRId64, slot,
                     s->length[slot], length);
  for (uint32_t c = 0; c < s->classes; c++) {
    const rung_kv_class *class_ = &s->class_[c];
    if (!class_->window || length == 0) continue;
    /* Positions that a next row would see must not have been overwritten by the ring. */
    const int64_t needed = length - class_->window > 0 ? length - class_->window : 0;
    if (!holds(s, class_, slot, needed))
      return rung_fail(error, RUNG_UNSUPPORTED,
                       "truncate: sequence %d to %" PRId64 ": a window of %" PRId64
                       " no longer holds position %" PRId64,
                       slot, length, class_->window, needed);
  }
  s->length[slot] = length;
  if (!length) s->reached[slot] = 0;
  return RUNG_OK;
}

void rung_state_clear(rung_state *s) {
  if (!s) return;
  memset(s->length, 0, (size_t)s->sequences * sizeof *s->length);
  memset(s->reached, 0, (size_t)s->sequences * sizeof *s->reached);
  for (uint32_t c = 0; c < s->classes; c++) rung_region_decommit(&s->class_[c].region, 0, s->class_[c].region.reserved);
  for (uint32_t i = 0; i < s->items; i++)
    if (s->item[i].region.base && s->item[i].bytes) memset(s->item[i].region.base, 0, s->item[i].bytes);
}

static rung_state_item *find(rung_state *s, const char *name) {
  for (uint32_t i = 0; i < s->items; i++)
    if (strcmp(s->item[i].name, name) == 0) return &s->item[i];
  return NULL;
}

rung_status rung_state_tensor(rung_state *s, const char *name, rung_error *error, rung_tensor *out_tensor) {
  rung_state_item *item = s && name ? find(s, name) : NULL;
  if (!item) return rung_fail(error, RUNG_NOT_FOUND, "there is no state \"%s\"", name ? name : "");
  if (item->type.kind == RUNG_VALUE_STATE_KV)
    return rung_fail(error, RUNG_UNSUPPORTED, "state \"%s\" holds keys and values; read it by rows", name);
  int64_t extent[RUNG_MAX_RANK];
  for (int i = 0; i < item->type.rank; i++)
    rung_dims_is_constant(s->template_->graph->dims, item->type.extent[i], &extent[i]);
  *out_tensor = rung_tensor_dense(item->type.type, item->type.rank, extent, item->region.base);
  return RUNG_OK;
}

rung_status rung_state_read_row(rung_state *s, const char *name, int32_t slot, int64_t position, float *out_row,
                                size_t count, rung_error *error) {
  rung_state_item *item = s && name ? find(s, name) : NULL;
  if (!item || item->type.kind != RUNG_VALUE_STATE_KV)
    return rung_fail(error, RUNG_NOT_FOUND, "there is no key/value state \"%s\"", name ? name : "");
  const rung_kv_view *kv = &item->kv;
  const size_t row = (size_t)kv->kv_heads * ((size_t)kv->key_dim + (size_t)kv->value_dim);
  if (count != row)
    return rung_fail(error, RUNG_SHAPE_MISMATCH, "state \"%s\": a row has %zu numbers, not %zu", name, row, count);
  if (slot < 0 || slot >= s->sequences || position < 0 || position >= s->length[slot])
    return rung_fail(error, RUNG_OUT_OF_RANGE, "state \"%s\": sequence %d has no position %" PRId64, name, slot,
                     position);
  if (kv->window && !holds(s, &s->class_[item->class_], slot, position))
    return rung_fail(error, RUNG_OUT_OF_RANGE, "state \"%s\": position %" PRId64 " has left the window of %" PRId64,
                     name, position, kv->window);
  kv->read_row(kv, slot, position, out_row);
  return RUNG_OK;
}

uint64_t rung_state_bytes(const rung_state *s) {
  uint64_t bytes = 0;
  if (!s) return 0;
  for (uint32_t c = 0; c < s->classes; c++) bytes += s->class_[c].region.committed;
  for (uint32_t i = 0; i < s->items; i++) bytes += s->item[i].region.committed;
  return bytes;
}
