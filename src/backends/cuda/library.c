/* SPDX-License-Identifier: MIT
 * Products of many rows through NVIDIA's library, where it is there. Which of its algorithms a size takes is asked once
 * and remembered; so the same size gives the same bits. */
#include <string.h>

#include "backends/cuda/device.h"

enum {
  COMPUTE_F32 = 68,
  NUMBERS_F32 = 0,
  NUMBERS_F16 = 2,
  NUMBERS_BF16 = 14,
  TRANSPOSE_A = 3, /* attribute of a kind of product */
  WISH_WORKSPACE = 1
};

typedef struct shapes {
  void *kind, *w, *x, *y;
} shapes;

void rung_cuda_products_open(rung_cuda *self) {
  if (!rung_cu_products_open(&self->products)) return;
  self->way = rung_host_array(self->host, RUNG_CUDA_WAYS, sizeof *self->way);
  if (!self->way || self->products.create(&self->product_handle)) self->product_handle = NULL;
}

void rung_cuda_products_close(rung_cuda *self) {
  if (self->product_handle) self->products.destroy(self->product_handle);
  rung_host_free(self->host, RUNG_MEMORY_host, self->way, RUNG_CUDA_WAYS * sizeof *self->way);
}

static int make_shapes(const rung_cuda *self, const rung_cuda_product *p, shapes *out) {
  const rung_cu_products *f = &self->products;
  const int type = p->type == RUNG_TYPE_F16 ? NUMBERS_F16 : NUMBERS_BF16, turned = 1;
  *out = (shapes){NULL, NULL, NULL, NULL};
  int result = f->kind_create(&out->kind, COMPUTE_F32, NUMBERS_F32);
  if (!result) result = f->kind_set(out->kind, TRANSPOSE_A, &turned, sizeof turned);
  /* The library counts columns first: what is row-major here is transposed there. */
  if (!result) result = f->shape_create(&out->w, type, (uint64_t)p->k, (uint64_t)p->n, p->k);
  if (!result) result = f->shape_create(&out->x, type, (uint64_t)p->k, (uint64_t)p->m, p->k);
  if (!result) result = f->shape_create(&out->y, NUMBERS_F32, (uint64_t)p->n, (uint64_t)p->m, p->pitch);
  return result;
}

static void drop_shapes(const rung_cuda *self, shapes *s) {
  if (s->y) self->products.shape_destroy(s->y);
  if (s->x) self->products.shape_destroy(s->x);
  if (s->w) self->products.shape_destroy(s->w);
  if (s->kind) self->products.kind_destroy(s->kind);
}

static int ask(const rung_cuda *self, const shapes *s, rung_cu_way *out) {
  const rung_cu_products *f = &self->products;
  const size_t room = RUNG_CUDA_WORKSPACE;
  void *wish = NULL;
  int count = 0, result = f->wish_create(&wish);
  if (!result) result = f->wish_set(wish, WISH_WORKSPACE, &room, sizeof room);
  if (!result) result = f->ways(self->product_handle, s->kind, s->w, s->x, s->y, s->y, wish, 1, out, &count);
  if (wish) f->wish_destroy(wish);
  return result ? result : count ? out->status : -1;
}

static int find_way(rung_cuda *self, const rung_cuda_product *p, const shapes *s, rung_cuda_way **out) {
  rung_cuda_way *victim = &self->way[0];
  for (int i = 0; i < RUNG_CUDA_WAYS; i++) {
    rung_cuda_way *w = &self->way[i];
    if (w->used && w->m == p->m && w->n == p->n && w->k == p->k && w->pitch == p->pitch && w->type == p->type) {
      w->used = ++self->way_clock;
      *out = w;
      return 0;
    }
    if (w->used < victim->used) victim = w;
  }
  *victim = (rung_cuda_way){.m = p->m, .n = p->n, .k = p->k, .pitch = p->pitch, .type = p->type};
  const int result = ask(self, s, &victim->way);
  if (!result) victim->used = ++self->way_clock;
  *out = victim;
  return result;
}

bool rung_cuda_multiply(rung_cuda *self, const rung_cuda_product *p) {
  const float one = 1, zero = 0;
  shapes s;
  rung_cuda_way *way = NULL;
  int result = make_shapes(self, p, &s);
  if (!result) result = find_way(self, p, &s, &way);
  void *y = (void *)(uintptr_t)p->y;
  if (!result)
    result = self->products.multiply(self->product_handle, s.kind, &one, (const void *)(uintptr_t)p->w, s.w,
                                     (const void *)(uintptr_t)p->x, s.x, &zero, y, s.y, y, s.y, &way->way,
                                     (void *)(uintptr_t)p->workspace, RUNG_CUDA_WORKSPACE, self->stream);
  drop_shapes(self, &s);
  /* The library's numbers are not the driver's: it failed for a reason of its own. */
  return rung_cuda_ok(self, result ? RUNG_CU_UNKNOWN : 0, "a product of the library");
}
