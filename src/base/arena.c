/* SPDX-License-Identifier: MIT
 * The bump allocator: a list of blocks that double up to a limit, released together. */
#include "base/arena.h"

#include <string.h>

enum { ARENA_ALIGN = 16, ARENA_FIRST = 4096, ARENA_LARGEST = 1 << 20 };

struct rung_arena_block {
  rung_arena_block *next;
  size_t bytes; /* of the whole block, this header included */
  size_t used;
};
enum { ARENA_HEADER = (sizeof(struct rung_arena_block) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN };

void rung_arena_init(rung_arena *arena, rung_host *host) { *arena = (rung_arena){.host = host}; }
void rung_arena_init_raw(rung_arena *arena, rung_host *host) { *arena = (rung_arena){.host = host, .raw = true}; }

/* Adds a block with room for `bytes`. A request that is large beside the block size gets a block of its own, put behind
 * the newest so that the room left there stays in use. */
static rung_arena_block *add_block(rung_arena *arena, size_t bytes) {
  rung_arena_block *newest = arena->block;
  size_t size = newest ? newest->bytes * 2 : ARENA_FIRST;
  if (size > ARENA_LARGEST) size = ARENA_LARGEST;
  size_t need;
  if (rung_add_overflows(bytes, (size_t)ARENA_HEADER, &need)) return NULL;
  const bool own = newest && need > size / 4 && newest->bytes - newest->used > newest->bytes / 4;
  if (own || need > size) size = need;
  rung_arena_block *block =
      (rung_arena_block *)(arena->raw ? rung_host_alloc_raw(arena->host, RUNG_MEMORY_host, size, 0)
                                      : rung_host_alloc(arena->host, RUNG_MEMORY_host, size, 0));
  if (!block) return NULL;
  block->bytes = size;
  block->used = ARENA_HEADER;
  if (own) {
    block->next = newest->next;
    newest->next = block;
  } else {
    block->next = newest;
    arena->block = block;
  }
  return block;
}

void *rung_arena_alloc(rung_arena *arena, size_t bytes) {
  size_t rounded;
  if (rung_add_overflows(bytes ? bytes : (size_t)1, (size_t)ARENA_ALIGN - 1, &rounded)) return NULL;
  rounded &= ~(size_t)(ARENA_ALIGN - 1);
  rung_arena_block *block = arena->block;
  if (!block || block->bytes - block->used < rounded) {
    block = add_block(arena, rounded);
    if (!block) return NULL;
  }
  void *p = (uint8_t *)block + block->used; /* zeros: blocks come zeroed and bytes are handed out once */
  block->used += rounded;
  return p;
}

void *rung_arena_array(rung_arena *arena, size_t count, size_t element) {
  size_t bytes;
  return rung_mul_overflows(count, element, &bytes) ? NULL : rung_arena_alloc(arena, bytes);
}

void *rung_arena_copy(rung_arena *arena, const void *data, size_t bytes) {
  void *p = rung_arena_alloc(arena, bytes);
  if (p && bytes) memcpy(p, data, bytes);
  return p;
}

char *rung_arena_text(rung_arena *arena, const char *text, size_t length) {
  size_t bytes;
  if (rung_add_overflows(length, (size_t)1, &bytes)) return NULL;
  char *p = (char *)rung_arena_alloc(arena, bytes);
  if (p && length) memcpy(p, text, length);
  return p;
}

void rung_arena_finish(rung_arena *arena) {
  if (!arena) return;
  rung_arena_block *block = arena->block;
  while (block) {
    rung_arena_block *next = block->next;
    rung_host_free(arena->host, RUNG_MEMORY_host, block, block->bytes);
    block = next;
  }
  arena->block = NULL;
}

size_t rung_arena_bytes(const rung_arena *arena) {
  size_t bytes = 0;
  for (const rung_arena_block *block = arena->block; block; block = block->next) bytes += block->bytes;
  return bytes;
}

bool rung_arena_grow(rung_arena *arena, void **array, uint32_t *capacity, uint32_t need, size_t element) {
  if (need <= *capacity) return true;
  uint64_t larger = *capacity ? (uint64_t)*capacity * 2 : 8;
  if (larger < need) larger = need;
  if (larger > UINT32_MAX) larger = UINT32_MAX;
  void *grown = rung_arena_array(arena, (size_t)larger, element);
  if (!grown) return false;
  if (*capacity) memcpy(grown, *array, *capacity * element);
  *array = grown;
  *capacity = (uint32_t)larger;
  return true;
}
