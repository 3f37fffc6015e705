/* SPDX-License-Identifier: MIT
 * Saved states. Rows are stored in the canonical order, in the state's own type, so that what one machine saved another
 * loads whatever the order inside its blocks is; docs/formats.md has the layout.
 *
 * A file is read twice: nothing of the state changes before every length and every checksum was found right. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/map_file.h"
#include "runtime/runtime.h"
#include "runtime/state_save.h"

enum { ROWS = RUNG_KV_BLOCK, PIECE = 1 << 20, HASH = 16 };
static const rung_front file_front = {{'r', 'u', 'n', 'g', 's', 't', 'a', 't'}, "saved state", 1};

/* What a file holds: every sequence and the dense states, or one sequence. */
typedef struct cut {
  int32_t first, count;
  bool dense;
} cut;

static rung_status cut_of(const rung_state *s, const char *what, int32_t slot, rung_error *error, cut *out) {
  if (!s || slot < RUNG_ALL_SEQUENCES || slot >= s->sequences)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "%s: there is no sequence %d", what, slot);
  rung_state_quiet((rung_state *)(uintptr_t)s);
  *out = slot < 0 ? (cut){0, s->sequences, true} : (cut){slot, 1, false};
  if (slot >= 0 && !s->classes)
    return rung_fail(error, RUNG_UNSUPPORTED, "%s: the template has no key/value state; all sequences only", what);
  return RUNG_OK;
}

static bool in_cut(const cut *part, const rung_state_item *item) { return part->dense || rung_state_is_kv(item); }

static size_t row_bytes(const rung_state_item *item) {
  return (size_t)rung_type_bytes(item->type.type, rung_kv_row(&item->kv));
}

/* ---- writing */

/* A file, or memory, or neither: then bytes are only counted. */
typedef struct sink {
  rung_writer *writer;
  uint8_t *memory;
  uint64_t put;
  rung_error *error;
} sink;

static rung_status put(sink *to, const void *data, size_t bytes) {
  if (to->writer) RUNG_TRY(rung_writer_put(to->writer, data, bytes, to->error));
  if (to->memory) memcpy(to->memory + to->put, data, bytes);
  to->put += bytes;
  return RUNG_OK;
}

static rung_status put_piece(sink *to, const void *data, size_t bytes) {
  if (!to->writer && !to->memory) {
    to->put += bytes + HASH;
    return RUNG_OK;
  }
  const rung_hash hash = rung_hash_bytes(data, bytes);
  RUNG_TRY(put(to, data, bytes));
  uint8_t sum[HASH];
  for (int i = 0; i < 8; i++) {
    sum[i] = (uint8_t)(hash.low >> 8 * i);
    sum[8 + i] = (uint8_t)(hash.high >> 8 * i);
  }
  return put(to, sum, sizeof sum);
}

static void head(const rung_state *s, const cut *part, rung_text *out) {
  uint64_t items = 0;
  for (uint32_t i = 0; i < s->items; i++) items += in_cut(part, &s->item[i]);
  rung_put(out, part->dense, 4);
  rung_put(out, items, 4);
  rung_put(out, (uint64_t)part->count, 4);
  for (uint32_t i = 0; i < s->items; i++) {
    const rung_state_item *item = &s->item[i];
    if (!in_cut(part, item)) continue;
    rung_put_string(out, item->name);
    rung_put_string(out, rung_type_name(item->type.type));
    rung_put(out, rung_state_is_kv(item), 1);
    rung_put(out, (uint64_t)item->kv.window, 8);
    rung_put(out, (uint64_t)item->type.rank, 1);
    for (int a = 0; a < item->type.rank; a++) {
      int64_t extent = 0;
      rung_dims_is_constant(s->template_->graph->dims, item->type.extent[a], &extent);
      rung_put(out, (uint64_t)extent, 8);
    }
  }
  for (int32_t q = part->first; q < part->first + part->count; q++) {
    rung_put(out, (uint64_t)s->length[q], 8);
    for (uint32_t c = 0; c < s->classes; c++) rung_put(out, (uint64_t)rung_state_first(s, &s->class_[c], q), 8);
  }
}

static rung_status put_head(const rung_state *s, const cut *part, sink *to) {
  rung_text text, front;
  rung_text_init(&text, s->host);
  rung_text_init(&front, s->host);
  head(s, part, &text);
  rung_put_front(&front, &file_front, text.length);
  rung_status status = rung_text_status(&text, to->error);
  if (!status) status = rung_text_status(&front, to->error);
  if (!status) status = put(to, front.data, front.length);
  if (!status) status = put_piece(to, text.data, text.length);
  rung_text_finish(&text);
  rung_text_finish(&front);
  return status;
}

static rung_status put_rows(rung_state *s, const rung_state_item *item, int32_t slot, uint8_t *rows, sink *to) {
  const rung_kv_view *kv = &item->kv;
  const size_t bytes = row_bytes(item);
  int64_t n = 0;
  for (int64_t p = s->class_[item->class_].from[slot]; p < s->length[slot]; p += n) {
    n = s->length[slot] - p < ROWS ? s->length[slot] - p : ROWS;
    for (int64_t i = 0; i < n && (to->writer || to->memory); i++) {
      kv->read_row(kv, slot, p + i, s->row);
      rung_type_get(kv->type)->from_f32(s->row, rows + (size_t)i * bytes, rung_kv_row(kv));
    }
    RUNG_TRY(put_piece(to, rows, (size_t)n * bytes));
  }
  return RUNG_OK;
}

static rung_status put_dense(const rung_state *s, const rung_state_item *item, sink *to) {
  const rung_far *far = item->region.far;
  const size_t room = far && (to->writer || to->memory) ? PIECE : 0;
  uint8_t *here = room ? rung_host_alloc_raw(s->host, RUNG_MEMORY_host, room, 64) : NULL;
  if (room && !here) return rung_fail(to->error, RUNG_OUT_OF_MEMORY, "save: out of memory");
  rung_status status = RUNG_OK;
  for (uint64_t at = 0; !status && at < item->bytes; at += PIECE) {
    const size_t bytes = (size_t)(item->bytes - at < PIECE ? item->bytes - at : PIECE);
    if (here) rung_far_read(far, here, item->region.base + at, bytes);
    status = put_piece(to, here ? here : item->region.base + at, bytes);
  }
  if (here) rung_host_free(s->host, RUNG_MEMORY_host, here, room);
  return status;
}

static rung_status put_all(rung_state *s, const cut *part, uint8_t *rows, sink *to) {
  RUNG_TRY(put_head(s, part, to));
  for (int32_t q = part->first; q < part->first + part->count; q++)
    for (uint32_t i = 0; i < s->items; i++)
      if (rung_state_is_kv(&s->item[i])) RUNG_TRY(put_rows(s, &s->item[i], q, rows, to));
  for (uint32_t i = 0; part->dense && i < s->items; i++)
    if (!rung_state_is_kv(&s->item[i])) RUNG_TRY(put_dense(s, &s->item[i], to));
  return RUNG_OK;
}

/* Room for the rows of one piece of any state. */
static size_t piece_bytes(const rung_state *s) { return ROWS * s->row_floats * sizeof(float) + 1; }

static rung_status write_to(rung_state *s, int32_t slot, sink *to) {
  cut part;
  RUNG_TRY(cut_of(s, "save", slot, to->error, &part));
  for (int32_t q = part.first; q < part.first + part.count; q++) rung_state_settle(s, q);
  uint8_t *rows = rung_host_alloc(s->host, RUNG_MEMORY_host, piece_bytes(s), 64);
  if (!rows) return rung_fail(to->error, RUNG_OUT_OF_MEMORY, "save: out of memory");
  const rung_status status = put_all(s, &part, rows, to);
  rung_host_free(s->host, RUNG_MEMORY_host, rows, piece_bytes(s));
  return status;
}

rung_status rung_state_save_to(rung_state *s, int32_t slot, rung_writer *writer, rung_error *error) {
  sink to = {.writer = writer, .error = error};
  return write_to(s, slot, &to);
}

rung_status rung_state_save(rung_state *s, int32_t slot, const char *path, rung_error *error) {
  cut part;
  sink to = {.error = error};
  RUNG_TRY(cut_of(s, "save", slot, error, &part));
  if (!path) return rung_fail(error, RUNG_INVALID_ARGUMENT, "save: no path");
  RUNG_TRY(rung_writer_open(s->host, path, error, &to.writer));
  const rung_status status = write_to(s, slot, &to);
  if (!status) return rung_writer_commit(to.writer, error);
  rung_writer_discard(to.writer);
  return status;
}

rung_status rung_state_saved_bytes(rung_state *s, int32_t slot, rung_error *error, uint64_t *out_bytes) {
  sink to = {.error = error};
  if (!out_bytes) return rung_fail(error, RUNG_INVALID_ARGUMENT, "save: out_bytes is required");
  RUNG_TRY(write_to(s, slot, &to));
  *out_bytes = to.put;
  return RUNG_OK;
}

rung_status rung_state_save_memory(rung_state *s, int32_t slot, void *memory, uint64_t bytes, rung_error *error) {
  uint64_t needed;
  RUNG_TRY(rung_state_saved_bytes(s, slot, error, &needed));
  if (!memory || bytes != needed)
    return rung_fail(error, RUNG_OUT_OF_RANGE, "save: %" PRIu64 " bytes are given, %" PRIu64 " are needed", bytes,
                     needed);
  sink to = {.memory = memory, .error = error};
  return write_to(s, slot, &to);
}

/* ---- reading */

typedef struct reader {
  rung_state *s;
  cut part;
  rung_error *error;
  const uint8_t *start, *at, *limit;
  int32_t sequences;      /* in the file */
  int64_t *length, *from; /* [sequences], [sequences][classes] */
} reader;

static rung_status corrupt(const reader *r, const char *what) {
  return rung_fail(r->error, RUNG_CORRUPT_FILE, "saved state: %s at byte %" PRIu64, what, (uint64_t)(r->at - r->start));
}

/* The next bytes with their checksum behind them. */
static rung_status take(reader *r, uint64_t bytes, bool check, const uint8_t **out) {
  if ((uint64_t)(r->limit - r->at) < HASH || (uint64_t)(r->limit - r->at) - HASH < bytes)
    return corrupt(r, "the file ends too early");
  if (check) {
    rung_bytes sum = rung_bytes_of(r->at + bytes, HASH);
    if (!rung_hash_equal(rung_hash_bytes(r->at, (size_t)bytes), rung_get_hash(&sum)))
      return corrupt(r, "damage behind what begins");
  }
  *out = r->at;
  r->at += bytes + HASH;
  return RUNG_OK;
}

static rung_status check_item(reader *r, const rung_state_item *item, rung_bytes *in) {
  size_t name_length, type_length;
  const char *name = rung_get_string(in, 4096, &name_length), *type = rung_get_string(in, 64, &type_length);
  if (in->failed || name_length != strlen(item->name) || memcmp(name, item->name, name_length))
    return rung_fail(r->error, RUNG_NOT_FOUND, "saved state: it holds \"%.*s\" where the template has state \"%s\"",
                     in->failed || name_length > 100 ? 0 : (int)name_length, name, item->name);
  const char *own = rung_type_name(item->type.type);
  if (type_length != strlen(own) || memcmp(type, own, type_length))
    return rung_fail(r->error, RUNG_TYPE_MISMATCH, "saved state: \"%s\" is stored as %.*s, the template has %s",
                     item->name, type_length > 16 ? 0 : (int)type_length, type, own);
  const uint64_t kv = rung_get(in, 1);
  const int64_t window = (int64_t)rung_get(in, 8);
  bool same = kv == (rung_state_is_kv(item) ? 1 : 0) && window == item->kv.window;
  same = rung_get(in, 1) == (uint64_t)item->type.rank && same;
  for (int a = 0; same && a < item->type.rank; a++) {
    int64_t extent = 0;
    rung_dims_is_constant(r->s->template_->graph->dims, item->type.extent[a], &extent);
    same = (int64_t)rung_get(in, 8) == extent;
  }
  if (in->failed || !same)
    return rung_fail(r->error, RUNG_SHAPE_MISMATCH,
                     "saved state: \"%s\" has other extents or another window than the template", item->name);
  return RUNG_OK;
}

static rung_status read_lengths(reader *r, rung_bytes *in) {
  const rung_state *s = r->s;
  for (int32_t q = 0; q < r->sequences; q++) {
    r->length[q] = (int64_t)rung_get(in, 8);
    if (r->length[q] < 0) return corrupt(r, "a negative length behind what begins");
    if (r->length[q] > s->capacity)
      return rung_fail(r->error, RUNG_OUT_OF_RANGE,
                       "saved state: sequence %d holds %" PRId64 " positions, the state has room for %" PRId64, q,
                       r->length[q], s->capacity);
    for (uint32_t c = 0; c < s->classes; c++) {
      int64_t *from = &r->from[(size_t)q * s->classes + c];
      *from = (int64_t)rung_get(in, 8);
      if (*from < 0 || (*from && *from > rung_class_needs(&s->class_[c], r->length[q])))
        return corrupt(r, "a window that does not hold what it shows, behind what begins");
    }
  }
  return in->failed || rung_bytes_left(in) ? corrupt(r, "a head of another size than it says behind what begins")
                                           : RUNG_OK;
}

static rung_status read_head(reader *r) {
  const rung_state *s = r->s;
  rung_bytes front = rung_bytes_of(r->at, (uint64_t)(r->limit - r->at));
  uint64_t bytes;
  RUNG_TRY(rung_get_front(&front, &file_front, r->error, &bytes));
  r->at += RUNG_FRONT_BYTES;
  const uint8_t *data;
  RUNG_TRY(take(r, bytes, true, &data));
  rung_bytes in = rung_bytes_of(data, bytes);
  const uint64_t kind = rung_get(&in, 4), items = rung_get(&in, 4), sequences = rung_get(&in, 4);
  uint64_t own = 0;
  for (uint32_t i = 0; i < s->items; i++) own += in_cut(&r->part, &s->item[i]);
  if (in.failed || kind > 1) return corrupt(r, "a head that makes no sense behind what begins");
  if ((kind == 1) != r->part.dense)
    return rung_fail(r->error, RUNG_INVALID_ARGUMENT, "saved state: it holds %s, asked for is %s",
                     kind ? "all sequences" : "one sequence", r->part.dense ? "all of them" : "one");
  if (items != own)
    return rung_fail(r->error, RUNG_SHAPE_MISMATCH,
                     "saved state: it holds %" PRIu64 " states, the template has %" PRIu64, items, own);
  if (!sequences || sequences > (uint64_t)r->part.count)
    return rung_fail(r->error, RUNG_OUT_OF_RANGE, "saved state: it holds %" PRIu64 " sequences, there is room for %d",
                     sequences, r->part.count);
  r->sequences = (int32_t)sequences;
  for (uint32_t i = 0; i < s->items; i++)
    if (in_cut(&r->part, &s->item[i])) RUNG_TRY(check_item(r, &s->item[i], &in));
  return read_lengths(r, &in);
}

/* Rows of one sequence and state: looked at, or written into the state. */
static rung_status take_rows(reader *r, const rung_state_item *item, int32_t q, bool write) {
  const size_t bytes = row_bytes(item);
  const rung_kv_class *class_ = &r->s->class_[item->class_];
  const int32_t slot = r->part.first + q;
  int64_t n = 0;
  for (int64_t p = r->from[(size_t)q * r->s->classes + item->class_]; p < r->length[q]; p += n) {
    const uint8_t *rows;
    n = r->length[q] - p < ROWS ? r->length[q] - p : ROWS;
    RUNG_TRY(take(r, (uint64_t)n * bytes, !write, &rows));
    for (int64_t i = 0; write && i < n; i++) {
      if (p + i < class_->from[slot]) continue; /* a smaller ring */
      rung_type_get(item->kv.type)->to_f32(rows + (size_t)i * bytes, r->s->row, rung_kv_row(&item->kv));
      item->kv.write_row(&item->kv, slot, p + i, r->s->row);
    }
  }
  return RUNG_OK;
}

static rung_status take_all(reader *r, bool write) {
  const rung_state *s = r->s;
  for (int32_t q = 0; q < r->sequences; q++)
    for (uint32_t i = 0; i < s->items; i++)
      if (rung_state_is_kv(&s->item[i])) RUNG_TRY(take_rows(r, &s->item[i], q, write));
  for (uint32_t i = 0; r->part.dense && i < s->items; i++) {
    const rung_state_item *item = &s->item[i];
    for (uint64_t at = 0; !rung_state_is_kv(item) && at < item->bytes; at += PIECE) {
      const uint64_t bytes = item->bytes - at < PIECE ? item->bytes - at : PIECE;
      const uint8_t *data;
      RUNG_TRY(take(r, bytes, !write, &data));
      if (write) rung_far_write(item->region.far, item->region.base + at, data, (size_t)bytes);
    }
  }
  return r->at == r->limit ? RUNG_OK : corrupt(r, "more bytes than there should be");
}

static rung_status restore(reader *r) {
  rung_state *s = r->s;
  const uint8_t *body = r->at;
  RUNG_TRY(take_all(r, false));
  for (int32_t q = 0; q < r->sequences; q++)
    RUNG_TRY(rung_state_reserve(s, r->part.first + q, 0, r->length[q], r->error));
  for (int32_t q = 0; q < r->part.count; q++) {
    const int32_t slot = r->part.first + q;
    s->shift[slot] = (rung_slot_shift){0};
    s->length[slot] = q < r->sequences ? r->length[q] : 0;
    for (uint32_t c = 0; c < s->classes; c++)
      s->class_[c].from[slot] = q < r->sequences ? r->from[(size_t)q * s->classes + c] : 0;
    if (s->length[slot]) rung_state_overwrite(s, slot, s->length[slot]);
    rung_state_give_back(s, slot);
  }
  r->at = body;
  return take_all(r, true);
}

rung_status rung_state_restore(rung_state *s, int32_t slot, const rung_source *source, rung_error *error) {
  reader r = {.s = s, .error = error};
  RUNG_TRY(cut_of(s, "restore", slot, error, &r.part));
  if (!source) return rung_fail(error, RUNG_INVALID_ARGUMENT, "restore: no source");
  rung_map map = {0};
  RUNG_TRY(rung_map_open(&map, s->host, source, error));
  r.start = r.at = map.data;
  r.limit = map.data + map.size;
  const size_t n = (size_t)r.part.count, m = n * s->classes + 1;
  r.length = rung_host_array(s->host, n, sizeof *r.length);
  r.from = rung_host_array(s->host, m, sizeof *r.from);
  rung_status status = r.length && r.from ? RUNG_OK : rung_fail(error, RUNG_OUT_OF_MEMORY, "restore: out of memory");
  if (!status) status = read_head(&r);
  if (!status) status = restore(&r);
  rung_host_free(s->host, RUNG_MEMORY_host, r.length, n * sizeof *r.length);
  rung_host_free(s->host, RUNG_MEMORY_host, r.from, m * sizeof *r.from);
  rung_map_close(&map);
  return status;
}
