/* SPDX-License-Identifier: MIT
 * Tables of winners in memory: look-ups, records, and when files are read and written. */
#include "runtime/tune/winners.h"

#include <string.h>

#include "base/folder.h"
#include "base/map_file.h"
#include "base/path.h"

struct rung_winners {
  rung_mutex lock; /* of all that follows */
  rung_winner_list list;
  bool loaded; /* or nothing is to be loaded */
  bool load, save;
  size_t cap;
  rung_tune_eviction eviction;
  char *device, *signature, *path; /* one block behind the struct; path NULL: no file */
  size_t bytes;
};

static bool is_line(const char *text) { return text && *text && !strpbrk(text, "\t\r\n"); }

static char *put_text(char **at, const char *text) {
  char *here = *at;
  const size_t bytes = strlen(text) + 1;
  memcpy(here, text, bytes);
  *at += bytes;
  return here;
}

rung_status rung_winners_create(rung_host *host, const rung_winners_options *o, rung_error *error,
                                rung_winners **out_winners) {
  if (!is_line(o->device) || !is_line(o->signature))
    return rung_fail(error, RUNG_INVALID_ARGUMENT, "winners: device and signature must be lines without tabs");
  if (o->path && strlen(o->path) >= RUNG_PATH_BYTES)
    return rung_fail(error, RUNG_OVERFLOW, "winners: the path has more than %d bytes", RUNG_PATH_BYTES - 1);
  const uint32_t smaller = o->entries < o->most ? o->entries : o->most;
  const size_t bytes =
      sizeof(rung_winners) + strlen(o->device) + strlen(o->signature) + (o->path ? strlen(o->path) : 0) + 3;
  rung_winners *w = rung_host_alloc(host, RUNG_MEMORY_host, bytes, 0);
  if (!w) return rung_fail(error, RUNG_OUT_OF_MEMORY, "winners: no memory for a table");
  w->bytes = bytes;
  if (!rung_mutex_init(&w->lock)) {
    rung_host_free(host, RUNG_MEMORY_host, w, bytes);
    return rung_fail(error, RUNG_SYSTEM, "winners: a lock could not be made");
  }
  rung_host_retain(host);
  w->list.host = host;
  char *at = (char *)(w + 1);
  w->device = put_text(&at, o->device);
  w->signature = put_text(&at, o->signature);
  if (o->path) w->path = put_text(&at, o->path);
  w->load = o->load && o->path;
  w->save = o->save && o->path;
  w->cap = smaller ? smaller : 1;
  w->eviction = o->eviction;
  *out_winners = w;
  return RUNG_OK;
}

void rung_winners_destroy(rung_winners *w) {
  if (!w) return;
  rung_host *host = w->list.host;
  rung_winner_list_finish(&w->list);
  rung_mutex_finish(&w->lock);
  rung_host_free(host, RUNG_MEMORY_host, w, w->bytes);
  rung_host_release(host);
}

/* ---- the file; under the lock */

static rung_status load_file(rung_winners *w, rung_error *error) {
  rung_source source = rung_source_path(w->path);
  rung_map map;
  source.mode = RUNG_SOURCE_COPY; /* nobody promises that others replace the file by renaming only */
  rung_winner_list list = {.host = w->list.host};
  rung_status status = rung_map_open(&map, w->list.host, &source, error);
  if (status == RUNG_NOT_FOUND) return RUNG_OK;
  RUNG_TRY(status);
  status = rung_winners_read(&list, (const char *)map.data, (size_t)map.size, w->device, w->signature, error);
  rung_map_close(&map);
  if (status) {
    rung_winner_list_finish(&list);
    return status;
  }
  rung_winners_trim(&list, w->cap, w->eviction);
  w->list = list;
  return RUNG_OK;
}

static rung_status load_once(rung_winners *w, rung_error *error) {
  if (w->loaded) return RUNG_OK;
  if (w->load) RUNG_TRY(load_file(w, error));
  w->loaded = true;
  return RUNG_OK;
}

static rung_status save_file(rung_winners *w, rung_error *error) {
  rung_text text;
  char folder[RUNG_PATH_BYTES];
  if (!w->save) return RUNG_OK;
  RUNG_TRY(rung_path_folder(w->path, error, folder));
  if (!rung_folder_make(folder)) return rung_fail(error, RUNG_IO, "winners: the folder %s cannot be made", folder);
  rung_text_init(&text, w->list.host);
  rung_winners_write(&w->list, w->device, w->signature, &text);
  rung_writer *writer = NULL;
  rung_status status = rung_text_status(&text, error);
  if (!status) status = rung_writer_open(w->list.host, w->path, error, &writer);
  if (!status) {
    status = rung_writer_put(writer, text.data, text.length, error);
    if (status)
      rung_writer_discard(writer);
    else
      status = rung_writer_commit(writer, error);
  }
  rung_text_finish(&text);
  return status;
}

/* ---- rows; under the lock */

static rung_winner *find_row(rung_winners *w, uint16_t bucket) {
  for (size_t i = 0; i < w->list.rows; i++)
    if (w->list.row[i].bucket == bucket) return &w->list.row[i];
  return NULL;
}

static int64_t next_tick(rung_winners *w) {
  if (w->list.clock < INT64_MAX) w->list.clock++;
  return w->list.clock;
}

static rung_status insert(rung_winners *w, rung_winner row, rung_error *error) {
  rung_winner_list *list = &w->list;
  void *array = list->row;
  const bool grown = rung_host_grow(list->host, &array, &list->room, list->rows + 1, sizeof row);
  list->row = array;
  if (!grown) return rung_fail(error, RUNG_OUT_OF_MEMORY, "winners: no memory for a row of the table");
  size_t at = list->rows++;
  for (; at > 0 && list->row[at - 1].bucket > row.bucket; at--) list->row[at] = list->row[at - 1];
  list->row[at] = row;
  return RUNG_OK;
}

static rung_status record(rung_winners *w, uint16_t bucket, const rung_candidate *candidate, rung_error *error,
                          bool *out_changed) {
  RUNG_TRY(load_once(w, error));
  rung_winner *row = find_row(w, bucket);
  if (row && rung_candidate_equal(&row->candidate, candidate)) {
    row->tick = next_tick(w);
    return RUNG_OK;
  }
  if (row) {
    row->candidate = *candidate;
    row->tick = next_tick(w);
  } else {
    const int64_t before = w->list.clock;
    const rung_winner made = {.candidate = *candidate, .bucket = bucket, .tick = next_tick(w)};
    const rung_status status = insert(w, made, error);
    if (status) {
      w->list.clock = before;
      return status;
    }
  }
  *out_changed = true;
  rung_winners_trim(&w->list, w->cap, w->eviction);
  return save_file(w, error);
}

/* ---- calls */

rung_status rung_winners_find(rung_winners *w, uint16_t bucket, rung_error *error, bool *out_found,
                              rung_candidate *out) {
  rung_mutex_lock(&w->lock);
  const rung_status status = load_once(w, error);
  rung_winner *row = status ? NULL : find_row(w, bucket);
  if (row) {
    row->tick = next_tick(w);
    *out = row->candidate;
  }
  *out_found = row != NULL;
  rung_mutex_unlock(&w->lock);
  return status;
}

rung_status rung_winners_record(rung_winners *w, uint16_t bucket, const rung_candidate *candidate, rung_error *error,
                                bool *out_changed) {
  bool changed = false;
  rung_mutex_lock(&w->lock);
  const rung_status status = record(w, bucket, candidate, error, &changed);
  rung_mutex_unlock(&w->lock);
  if (out_changed) *out_changed = changed;
  return status;
}

rung_status rung_winners_save(rung_winners *w, rung_error *error) {
  rung_mutex_lock(&w->lock);
  rung_status status = load_once(w, error);
  if (!status) status = save_file(w, error);
  rung_mutex_unlock(&w->lock);
  return status;
}

size_t rung_winners_list(rung_winners *w, rung_winner *out, size_t most) {
  rung_mutex_lock(&w->lock);
  const size_t rows = w->list.rows, n = rows < most ? rows : most;
  if (n) memcpy(out, w->list.row, n * sizeof *out);
  rung_mutex_unlock(&w->lock);
  return rows;
}

int64_t rung_winners_clock(rung_winners *w) {
  rung_mutex_lock(&w->lock);
  const int64_t clock = w->list.clock;
  rung_mutex_unlock(&w->lock);
  return clock;
}
