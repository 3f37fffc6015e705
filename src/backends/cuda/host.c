/* SPDX-License-Identifier: MIT
 * Steps that have no kernel: operands are read, the op's reference computes, results are written. Slow, and shown as
 * host_<op> wherever kernels are listed. */
#include <inttypes.h>

#include "backends/cuda/kernel.h"

/* The bytes that an operand's elements span, from its lowest to behind its highest. */
typedef struct span {
  uint8_t *here;
  int64_t low;
  size_t bytes;
} span;

static span span_of(const rung_operand *o) {
  const rung_type_row *row = rung_type_get((rung_type)o->type);
  int64_t low = 0, high = 0;
  const bool blocks = row->class_ == RUNG_CLASS_BLOCK;
  if (!o->base) return (span){NULL, 0, 0};
  for (int a = 0; a < o->rank; a++) {
    const int64_t extent = blocks && a == o->rank - 1 ? o->extent[a] / row->block : o->extent[a];
    if (extent <= 0) return (span){NULL, 0, 0};
    const int64_t reach = (extent - 1) * o->stride[a];
    if (reach < 0)
      low += reach;
    else
      high += reach;
  }
  if (blocks || row->block == 1) return (span){NULL, low * row->bytes, (size_t)(high + 1 - low) * row->bytes};
  /* Narrow storage: several elements a byte. */
  return (span){NULL, low / row->block * row->bytes, (size_t)((high - low) / row->block + 1) * row->bytes};
}

static rung_status fetch(rung_cuda *self, const rung_operand *o, rung_operand *here, span *s, rung_error *error) {
  *here = *o;
  *s = span_of(o);
  if (o->kv || !s->bytes) return RUNG_OK;
  s->here = rung_host_alloc_raw(self->host, RUNG_MEMORY_scratch, s->bytes, 64);
  if (!s->here)
    return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory for %zu bytes of an operand on the host", s->bytes);
  rung_far_read(&self->far, s->here, o->base + s->low, s->bytes);
  here->base = s->here - s->low;
  return RUNG_OK;
}

/* What lies between an operand's elements may be another's: only the elements go back, in runs as long as there are. */
static void store(rung_cuda *self, const rung_operand *o, const span *s) {
  const rung_type_row *row = rung_type_get((rung_type)o->type);
  const bool blocks = row->class_ == RUNG_CLASS_BLOCK;
  int64_t extent[RUNG_MAX_RANK], index[RUNG_MAX_RANK] = {0}, run = 1, n = 1;
  int inner = o->rank;
  for (int a = 0; a < o->rank; a++) {
    extent[a] = blocks && a == o->rank - 1 ? o->extent[a] / row->block : o->extent[a];
    n *= extent[a];
  }
  while (inner > 0 && o->stride[inner - 1] == run) run *= extent[--inner];
  for (int64_t e = 0; e < n; e += run) {
    int64_t at = 0;
    for (int a = 0; a < inner; a++) at += index[a] * o->stride[a];
    at *= row->bytes;
    rung_far_write(&self->far, o->base + at, s->here - s->low + at, (size_t)run * row->bytes);
    for (int a = inner - 1; a >= 0 && ++index[a] == extent[a]; a--) index[a] = 0;
  }
}

static rung_status run(rung_cuda *self, const rung_op *op, const rung_args *args, rung_operand *here, span *s) {
  const uint32_t n = (uint32_t)args->n_in + args->n_out;
  for (uint32_t i = 0; i < n; i++) {
    const rung_operand *o = i < args->n_in ? &args->in[i] : &args->out[i - args->n_in];
    RUNG_TRY(fetch(self, o, &here[i], &s[i], args->error));
  }
  rung_args local = *args;
  local.in = here;
  local.out = here + args->n_in;
  RUNG_TRY(op->reference(&local));
  for (uint32_t r = 0; r < args->n_out; r++)
    if (s[args->n_in + r].here) store(self, &args->out[r], &s[args->n_in + r]);
  return RUNG_OK;
}

rung_status rung_cuda_run_host(rung_cuda *self, const rung_op *op, const rung_args *args) {
  const uint32_t n = (uint32_t)args->n_in + args->n_out;
  rung_operand *here = rung_host_array(self->host, n, sizeof *here);
  span *s = rung_host_array(self->host, n, sizeof *s);
  rung_status status =
      here && s ? run(self, op, args, here, s) : rung_fail(args->error, RUNG_OUT_OF_MEMORY, "cuda: out of memory");
  for (uint32_t i = 0; s && i < n; i++)
    if (s[i].here) rung_host_free(self->host, RUNG_MEMORY_scratch, s[i].here, s[i].bytes);
  rung_host_free(self->host, RUNG_MEMORY_host, here, n * sizeof *here);
  rung_host_free(self->host, RUNG_MEMORY_host, s, n * sizeof *s);
  return status;
}

/* ---- rows of keys and values */

static size_t element_bytes(const rung_kv_view *kv) { return rung_type_get(kv->type)->bytes; }

size_t rung_cuda_kv_block_bytes(rung_type type, int32_t kv_heads, int32_t key_dim, int32_t value_dim) {
  return (size_t)RUNG_KV_BLOCK * rung_type_bytes(type, (uint64_t)kv_heads * ((uint64_t)key_dim + (uint64_t)value_dim));
}

enum { ROW_PIECE = 1024 };

/* One head's numbers at a position, in pieces that fit a buffer on the stack. */
static void move_head(const rung_kv_view *kv, uint8_t *at, int32_t dim, float *out, const float *in) {
  uint8_t piece[ROW_PIECE * sizeof(float)];
  const rung_type_row *row = rung_type_get(kv->type);
  for (int32_t d = 0; d < dim; d += ROW_PIECE) {
    const int32_t n = dim - d < ROW_PIECE ? dim - d : ROW_PIECE;
    uint8_t *there = at + (size_t)d * row->bytes;
    if (in) {
      row->from_f32(in + d, piece, (size_t)n);
      rung_far_write(kv->far, there, piece, (size_t)n * row->bytes);
    } else {
      rung_far_read(kv->far, piece, there, (size_t)n * row->bytes);
      row->to_f32(piece, out + d, (size_t)n);
    }
  }
}

static void move_row(const rung_kv_view *kv, int32_t slot, int64_t position, float *out, const float *in) {
  uint8_t *block = rung_kv_block(kv, slot, position);
  const size_t at = (size_t)(position % RUNG_KV_BLOCK), unit = element_bytes(kv);
  uint8_t *values = block + (size_t)kv->kv_heads * RUNG_KV_BLOCK * (size_t)kv->key_dim * unit;
  for (int32_t part = 0; part < 2; part++) {
    const int32_t dim = part ? kv->value_dim : kv->key_dim;
    for (int32_t h = 0; h < kv->kv_heads; h++) {
      uint8_t *head = (part ? values : block) + ((size_t)h * RUNG_KV_BLOCK + at) * (size_t)dim * unit;
      move_head(kv, head, dim, out, in);
      if (out) out += dim;
      if (in) in += dim;
    }
  }
}

void rung_cuda_kv_read_row(const rung_kv_view *kv, int32_t slot, int64_t position, float *out) {
  move_row(kv, slot, position, out, NULL);
}
void rung_cuda_kv_write_row(const rung_kv_view *kv, int32_t slot, int64_t position, const float *row) {
  move_row(kv, slot, position, NULL, row);
}
