/* SPDX-License-Identifier: MIT
 * Fuzz target of saved states: restores the bytes, with the head's checksum made right and, in every other file of one
 * short sequence, those of its rows. What was let through is read and saved again. Seeds are what
 * rung_state_save wrote for this graph. */
#include "cts/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
    "rung 1\n"
    "%a = state {name=\"full\"} : kv f16[1,2,3]\n"
    "%b = state {name=\"ring\", window=5} : kv f32[1,1,1]\n"
    "%c = state {name=\"dense\"} : state f32[3]\n"
    "%y = neg %c\n"
    "output \"y\" %y\n";

static world *the_world(void) {
  static world w;
  static bool made;
  rung_state_options so = rung_state_options_default();
  so.sequences = 2;
  so.capacity = 200;
  so.chunk = 3;
  if (!made && world_try(&w, text, &(world_options){.device = "cpu", .state = &so})) abort();
  made = true;
  return &w;
}

static void seal(uint8_t *at, uint64_t bytes) {
  const rung_hash h = rung_hash_bytes(at, (size_t)bytes);
  for (int i = 0; i < 8; i++) at[bytes + (uint64_t)i] = (uint8_t)(h.low >> 8 * i);
  for (int i = 0; i < 8; i++) at[bytes + 8 + (uint64_t)i] = (uint8_t)(h.high >> 8 * i);
}

/* The head, and the two pieces of a file of one sequence of up to 64 rows. */
static void seal_all(uint8_t *data, size_t size) {
  enum { FRONT = 24, HASH = 16 };
  if (size < FRONT + HASH) return;
  uint64_t head = 0;
  for (int i = 7; i >= 0; i--) head = head << 8 | data[16 + i];
  if (head > size - FRONT - HASH) return;
  seal(data + FRONT, head);
  uint64_t at = FRONT + head + HASH;
  static const uint64_t row[] = {10, 8}; /* bytes of a row of each kv state */
  if (!head || data[FRONT] || data[size - 1] & 1 || size - at < 3 * HASH) return;
  const uint64_t rows = (size - at - 2 * HASH) / (row[0] + row[1]);
  for (int i = 0; i < 2 && rows && at + rows * row[i] + HASH <= size; i++) {
    seal(data + at, rows * row[i]);
    at += rows * row[i] + HASH;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  world *w = the_world();
  rung_error error = {0};
  uint8_t *own = malloc(size + 1);
  if (!own) return 0;
  if (size) memcpy(own, data, size);
  seal_all(own, size);
  const rung_source source = rung_source_memory(own, size);
  const int32_t slot = size > 24 && own[24] ? RUNG_ALL_SEQUENCES : 1;
  const rung_status status = rung_state_restore(w->state, slot, &source, &error);
  free(own);
  if (status) {
    if (!error.message[0]) abort();
    return 0;
  }
  uint64_t bytes = 0;
  if (rung_state_saved_bytes(w->state, slot, &error, &bytes)) abort();
  uint8_t *again = malloc(bytes);
  if (!again || rung_state_save_memory(w->state, slot, again, bytes, &error)) abort();
  const rung_source saved = rung_source_memory(again, bytes);
  if (rung_state_restore(w->state, slot, &saved, &error)) abort();
  free(again);
  return 0;
}
