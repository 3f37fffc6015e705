/* SPDX-License-Identifier: MIT
 * Texts of slots as wholes: replaced with what they begin with kept, cut, copied, saved to a file and restored. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "models/generator.h"
#include "runtime/state_save.h"

enum { HASH = 16 };
static const rung_front file_front = {{'r', 'u', 'n', 'g', 't', 'e', 'x', 't'}, "saved conversation", 1};

/* Nothing waits to be read. */
static void rest(rung_sequence *s) {
  s->pending.count = s->read = 0;
  s->live = false;
  s->has_chosen = false;
}

static void cut(rung_sequence *s, size_t length) {
  if (s->held.count > length) s->held.count = length;
  if (s->plain > length) s->plain = length;
}

rung_status rung_generator_set_text(rung_generator *g, int32_t slot, const int32_t *ids, size_t count,
                                    size_t *out_kept) {
  RUNG_TRY(rung_slot_check(g, slot));
  rung_sequence *s = &g->sequence[slot];
  RUNG_TRY(rung_slot_check_ids(g, ids, count));
  if (count > (size_t)g->options.context && !g->options.shift)
    return rung_fail(&g->error, RUNG_OUT_OF_RANGE, "text: slot %d would hold %zu positions, the context has %" PRId64,
                     slot, count, g->options.context);
  RUNG_TRY(rung_slot_sync(g, slot, 0));
  RUNG_TRY(rung_slot_reserve(g, &s->pending, count, &g->error));
  size_t kept = 0;
  while (kept < s->plain && kept + 1 < count && s->held.id[kept] == ids[kept]) kept++;
  rung_status status = rung_state_truncate(g->state, slot, (int64_t)kept, &g->error);
  if (status == RUNG_UNSUPPORTED) {
    kept = 0;
    status = rung_state_truncate(g->state, slot, 0, &g->error);
  }
  RUNG_TRY(status);
  g->error = (rung_error){0};
  cut(s, kept);
  rest(s);
  if (count) memcpy(s->pending.id, ids + kept, (count - kept) * sizeof *ids);
  s->pending.count = count - kept;
  s->live = count > kept;
  if (out_kept) *out_kept = kept;
  return RUNG_OK;
}

rung_status rung_generator_truncate(rung_generator *g, int32_t slot, int64_t length) {
  RUNG_TRY(rung_slot_check(g, slot));
  RUNG_TRY(rung_slot_sync(g, slot, 0));
  RUNG_TRY(rung_state_truncate(g->state, slot, length, &g->error));
  cut(&g->sequence[slot], (size_t)length);
  rest(&g->sequence[slot]);
  return RUNG_OK;
}

/* Needs no room, so that it cannot fail for want of memory. */
rung_status rung_generator_reset(rung_generator *g, int32_t slot) {
  RUNG_TRY(rung_slot_check(g, slot));
  RUNG_TRY(rung_state_truncate(g->state, slot, 0, &g->error));
  cut(&g->sequence[slot], 0);
  rest(&g->sequence[slot]);
  return RUNG_OK;
}

rung_status rung_generator_copy(rung_generator *g, int32_t to, int32_t from, int64_t length) {
  RUNG_TRY(rung_slot_check(g, to));
  RUNG_TRY(rung_slot_check(g, from));
  rung_sequence *t = &g->sequence[to];
  const rung_sequence *f = &g->sequence[from];
  if (to == from) return rung_generator_truncate(g, to, length);
  RUNG_TRY(rung_slot_sync(g, from, 0));
  if (length > 0) RUNG_TRY(rung_slot_reserve(g, &t->held, f->held.count, &g->error));
  RUNG_TRY(rung_state_copy(g->state, to, g->state, from, length, &g->error));
  if (length) memcpy(t->held.id, f->held.id, (size_t)length * sizeof *t->held.id);
  t->held.count = (size_t)length;
  t->plain = f->plain < (size_t)length ? f->plain : (size_t)length;
  rest(t);
  return RUNG_OK;
}

rung_status rung_generator_ids(rung_generator *g, int32_t slot, const int32_t **out_ids, size_t *out_count) {
  RUNG_TRY(rung_slot_check(g, slot));
  if (!out_ids || !out_count) return rung_fail(&g->error, RUNG_INVALID_ARGUMENT, "ids: an argument is missing");
  RUNG_TRY(rung_slot_sync(g, slot, 0));
  *out_ids = g->sequence[slot].held.id;
  *out_count = g->sequence[slot].held.count;
  return RUNG_OK;
}

/* ---- files: the front, a head with a checksum, then the saved state */

static void put_list(rung_text *out, const int32_t *ids, size_t count) {
  rung_put(out, count, 8);
  for (size_t i = 0; i < count; i++) rung_put(out, (uint32_t)ids[i], 4);
}

static void put_head(const rung_generator *g, const rung_sequence *s, rung_text *out) {
  rung_put_string(out, g->model->family->architecture);
  rung_put(out, (uint64_t)g->model->config.vocabulary, 8);
  rung_put(out, s->plain, 8);
  put_list(out, s->held.id, s->held.count);
  put_list(out, s->pending.id + s->read, s->pending.count - s->read);
  rung_put(out, s->live, 1);
}

static rung_status write_head(rung_generator *g, const rung_sequence *s, rung_writer *writer) {
  rung_text text, front;
  rung_text_init(&text, g->host);
  rung_text_init(&front, g->host);
  put_head(g, s, &text);
  rung_put_front(&front, &file_front, text.length);
  rung_status status = rung_text_status(&text, &g->error);
  if (!status) {
    rung_put_hash(&text, rung_hash_bytes(text.data, text.length));
    status = rung_text_status(&text, &g->error);
  }
  if (!status) status = rung_text_status(&front, &g->error);
  if (!status) status = rung_writer_put(writer, front.data, front.length, &g->error);
  if (!status) status = rung_writer_put(writer, text.data, text.length, &g->error);
  rung_text_finish(&text);
  rung_text_finish(&front);
  return status;
}

rung_status rung_generator_save(rung_generator *g, int32_t slot, const char *path) {
  RUNG_TRY(rung_slot_check(g, slot));
  if (!path) return rung_fail(&g->error, RUNG_INVALID_ARGUMENT, "save: no path");
  RUNG_TRY(rung_slot_sync(g, slot, 0));
  rung_writer *writer;
  RUNG_TRY(rung_writer_open(g->host, path, &g->error, &writer));
  rung_status status = write_head(g, &g->sequence[slot], writer);
  if (!status) status = rung_state_save_to(g->state, slot, writer, &g->error);
  if (!status) return rung_writer_commit(writer, &g->error);
  rung_writer_discard(writer);
  return status;
}

/* What a file says; ids lie where they were found. */
typedef struct saved {
  const uint8_t *held, *pending;
  uint64_t plain, held_count, pending_count;
  bool live;
  rung_bytes state;
} saved;

static const uint8_t *take_list(rung_bytes *in, uint64_t *out_count) {
  *out_count = rung_get(in, 8);
  if (in->failed || *out_count > rung_bytes_left(in) / 4) {
    in->failed = true;
    return NULL;
  }
  const uint8_t *at = in->at;
  in->at += *out_count * 4;
  return at;
}

static int32_t id_at(const uint8_t *list, uint64_t i) {
  const uint8_t *b = list + 4 * i;
  return (int32_t)((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24);
}

static bool ids_below(const uint8_t *list, uint64_t count, int32_t least, int64_t most) {
  for (uint64_t i = 0; i < count; i++)
    if (id_at(list, i) < least || id_at(list, i) >= most) return false;
  return true;
}

static rung_status read_head(rung_generator *g, const rung_map *map, saved *out) {
  rung_error *error = &g->error;
  rung_bytes in = rung_bytes_of(map->data, map->size);
  uint64_t bytes;
  RUNG_TRY(rung_get_front(&in, &file_front, error, &bytes));
  if (rung_bytes_left(&in) < HASH || bytes > rung_bytes_left(&in) - HASH)
    return rung_fail(error, RUNG_CORRUPT_FILE, "saved conversation: the file ends too early");
  rung_bytes head = rung_bytes_of(in.at, bytes), sum = rung_bytes_of(in.at + bytes, HASH);
  if (!rung_hash_equal(rung_hash_bytes(in.at, (size_t)bytes), rung_get_hash(&sum)))
    return rung_fail(error, RUNG_CORRUPT_FILE, "saved conversation: damage in its head");
  size_t length;
  const char *architecture = rung_get_string(&head, 256, &length), *own = g->model->family->architecture;
  const int64_t vocabulary = (int64_t)rung_get(&head, 8);
  if (head.failed || length != strlen(own) || memcmp(architecture, own, length) != 0 ||
      vocabulary != g->model->config.vocabulary)
    return rung_fail(error, RUNG_SHAPE_MISMATCH,
                     "saved conversation: of a model %.*s with a vocabulary of %" PRId64 ", this is %s with %" PRId64,
                     head.failed ? 0 : (int)length, architecture, vocabulary, own, g->model->config.vocabulary);
  out->plain = rung_get(&head, 8);
  out->held = take_list(&head, &out->held_count);
  out->pending = take_list(&head, &out->pending_count);
  out->live = rung_get(&head, 1) != 0;
  if (head.failed || rung_bytes_left(&head) || out->plain > out->held_count ||
      !ids_below(out->held, out->held_count, -1, vocabulary) ||
      !ids_below(out->pending, out->pending_count, 0, vocabulary))
    return rung_fail(error, RUNG_CORRUPT_FILE, "saved conversation: a head that makes no sense");
  out->state = rung_bytes_of(in.at + bytes + HASH, rung_bytes_left(&in) - bytes - HASH);
  return RUNG_OK;
}

static rung_status restore(rung_generator *g, int32_t slot, const rung_map *map) {
  rung_sequence *s = &g->sequence[slot];
  saved from;
  RUNG_TRY(read_head(g, map, &from));
  if (from.held_count + from.pending_count > (uint64_t)g->options.context && !g->options.shift)
    return rung_fail(&g->error, RUNG_OUT_OF_RANGE,
                     "saved conversation: %" PRIu64 " positions, the context has %" PRId64,
                     from.held_count + from.pending_count, g->options.context);
  RUNG_TRY(rung_slot_reserve(g, &s->held, (size_t)from.held_count, &g->error));
  RUNG_TRY(rung_slot_reserve(g, &s->pending, (size_t)from.pending_count, &g->error));
  const rung_source state = rung_source_memory(from.state.at, rung_bytes_left(&from.state));
  RUNG_TRY(rung_state_restore(g->state, slot, &state, &g->error));
  rest(s);
  for (uint64_t i = 0; i < from.held_count; i++) s->held.id[i] = id_at(from.held, i);
  for (uint64_t i = 0; i < from.pending_count; i++) s->pending.id[i] = id_at(from.pending, i);
  s->held.count = (size_t)from.held_count;
  s->plain = (size_t)from.plain;
  s->pending.count = (size_t)from.pending_count;
  s->live = from.live && s->pending.count;
  return RUNG_OK;
}

rung_status rung_generator_restore(rung_generator *g, int32_t slot, const rung_source *source) {
  RUNG_TRY(rung_slot_check(g, slot));
  if (!source) return rung_fail(&g->error, RUNG_INVALID_ARGUMENT, "restore: no source");
  rung_map map = {0};
  RUNG_TRY(rung_map_open(&map, g->host, source, &g->error));
  const rung_status status = restore(g, slot, &map);
  rung_map_close(&map);
  return status;
}
