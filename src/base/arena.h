/* SPDX-License-Identifier: MIT
 * A bump allocator: graphs, plans and pass scratch live in one and go at once. Class host. */
#ifndef RUNG_BASE_ARENA_H
#define RUNG_BASE_ARENA_H

#include "base/host.h"

typedef struct rung_arena_block rung_arena_block;
typedef struct rung_arena {
  rung_host *host;
  rung_arena_block *block; /* newest first */
  bool raw;                /* memory is not zeroed */
} rung_arena;

void rung_arena_init(rung_arena *arena, rung_host *host); /* allocates nothing */
/* For work that writes all it takes: what comes from it is not zeroed. */
void rung_arena_init_raw(rung_arena *arena, rung_host *host);
/* Zeroed, aligned to 16; NULL on failure (the arena stays valid). count * element is checked. */
void *rung_arena_alloc(rung_arena *arena, size_t bytes);
void *rung_arena_array(rung_arena *arena, size_t count, size_t element);
char *rung_arena_text(rung_arena *arena, const char *text, size_t length); /* a terminated copy */
void *rung_arena_copy(rung_arena *arena, const void *data, size_t bytes);
void rung_arena_finish(rung_arena *arena);
size_t rung_arena_bytes(const rung_arena *arena);

/* An array inside an arena that doubles; old copies stay until the arena goes. Use through rung_arena_push. */
bool rung_arena_grow(rung_arena *arena, void **array, uint32_t *capacity, uint32_t need, size_t element);

#endif
