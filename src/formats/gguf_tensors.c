/* SPDX-License-Identifier: MIT
 * GGUF tensor directory: types, shapes, places; all sizes checked for wrap-around and against the file. */
#include <inttypes.h>

#include "base/sort.h"
#include "formats/gguf_internal.h"
#include "ir/type.h"

/* The format's type numbers. Those left out were withdrawn, or are not read: the names tell which. */
#define NOT_READ(label) \
  { label, RUNG_TYPE_LIMIT }
static const struct {
  const char *label;
  rung_type type;
} types[] = {
    [0] = {"F32", RUNG_TYPE_F32},
    [1] = {"F16", RUNG_TYPE_F16},
    [2] = {"Q4_0", RUNG_TYPE_Q4_0},
    [3] = {"Q4_1", RUNG_TYPE_Q4_1},
    [4] = NOT_READ("Q4_2"),
    [5] = NOT_READ("Q4_3"),
    [6] = {"Q5_0", RUNG_TYPE_Q5_0},
    [7] = {"Q5_1", RUNG_TYPE_Q5_1},
    [8] = {"Q8_0", RUNG_TYPE_Q8_0},
    [9] = {"Q8_1", RUNG_TYPE_Q8_1},
    [10] = {"Q2_K", RUNG_TYPE_Q2_K},
    [11] = {"Q3_K", RUNG_TYPE_Q3_K},
    [12] = {"Q4_K", RUNG_TYPE_Q4_K},
    [13] = {"Q5_K", RUNG_TYPE_Q5_K},
    [14] = {"Q6_K", RUNG_TYPE_Q6_K},
    [15] = NOT_READ("Q8_K"),
    [16] = {"IQ2_XXS", RUNG_TYPE_IQ2_XXS},
    [17] = {"IQ2_XS", RUNG_TYPE_IQ2_XS},
    [18] = {"IQ3_XXS", RUNG_TYPE_IQ3_XXS},
    [19] = {"IQ1_S", RUNG_TYPE_IQ1_S},
    [20] = {"IQ4_NL", RUNG_TYPE_IQ4_NL},
    [21] = {"IQ3_S", RUNG_TYPE_IQ3_S},
    [22] = {"IQ2_S", RUNG_TYPE_IQ2_S},
    [23] = {"IQ4_XS", RUNG_TYPE_IQ4_XS},
    [24] = {"I8", RUNG_TYPE_I8},
    [25] = {"I16", RUNG_TYPE_I16},
    [26] = {"I32", RUNG_TYPE_I32},
    [27] = {"I64", RUNG_TYPE_I64},
    [28] = {"F64", RUNG_TYPE_F64},
    [29] = {"IQ1_M", RUNG_TYPE_IQ1_M},
    [30] = {"BF16", RUNG_TYPE_BF16},
    [31] = NOT_READ("Q4_0_4_4"),
    [32] = NOT_READ("Q4_0_4_8"),
    [33] = NOT_READ("Q4_0_8_8"),
    [34] = {"TQ1_0", RUNG_TYPE_TQ1_0},
    [35] = {"TQ2_0", RUNG_TYPE_TQ2_0},
    [36] = NOT_READ("IQ4_NL_4_4"),
    [37] = NOT_READ("IQ4_NL_4_8"),
    [38] = NOT_READ("IQ4_NL_8_8"),
    [39] = {"MXFP4", RUNG_TYPE_MXFP4},
    [40] = NOT_READ("NVFP4"),
    [41] = NOT_READ("Q1_0"),
};
#undef NOT_READ

uint32_t rung_gguf_type_code(rung_type type) {
  for (uint32_t i = 0; i < RUNG_COUNT(types); i++) {
    if (types[i].type == type && type != RUNG_TYPE_LIMIT) return i;
  }
  return UINT32_MAX;
}

static rung_status read_type(gguf_cursor *c, rung_type *out) {
  uint32_t code;
  RUNG_TRY(rung_gguf_read_u32(c, "type", &code));
  if (code >= RUNG_COUNT(types)) {
    return rung_fail(c->error, RUNG_UNSUPPORTED, "type at offset %" PRIu64 " is %" PRId32 ", which is not known",
                     c->at - 4, (int32_t)code);
  }
  if (types[code].type == RUNG_TYPE_LIMIT) {
    return rung_fail(c->error, RUNG_UNSUPPORTED, "type at offset %" PRIu64 " is %s, which is not read", c->at - 4,
                     types[code].label);
  }
  *out = types[code].type;
  return RUNG_OK;
}

/* Sizes in the file go from the innermost axis outwards. */
static rung_status read_shape(gguf_cursor *c, rung_gguf_tensor *t) {
  uint32_t rank;
  RUNG_TRY(rung_gguf_read_u32(c, "number of dimensions", &rank));
  if (rank > 4) {
    return rung_fail(c->error, RUNG_CORRUPT_FILE,
                     "number of dimensions at offset %" PRIu64 " is %" PRIu32 "; 4 are the most", c->at - 4, rank);
  }
  t->rank = (int)rank;
  for (int i = t->rank - 1; i >= 0; i--) {
    uint64_t extent;
    RUNG_TRY(rung_gguf_read_u64(c, "dimension", &extent));
    if (extent == 0 || extent > INT64_MAX) {
      return rung_fail(c->error, RUNG_CORRUPT_FILE, "dimension %d at offset %" PRIu64 " is %" PRId64, t->rank - 1 - i,
                       c->at - 8, (int64_t)extent);
    }
    t->extent[i] = (int64_t)extent;
  }
  return RUNG_OK;
}

static rung_status find_bytes(gguf_cursor *c, rung_gguf_tensor *t) {
  const rung_type_row *row = rung_type_get(t->type);
  const uint64_t inner = t->rank ? (uint64_t)t->extent[t->rank - 1] : 1;
  if (inner % row->block) {
    return rung_fail(c->error, RUNG_CORRUPT_FILE, "rows of %" PRIu64 " are no multiple of the block of %s, %d", inner,
                     row->name, row->block);
  }
  /* Elements are held to 63 bits too, since extents and counts of them are signed everywhere else. */
  int64_t elements = 1;
  uint64_t bytes = inner / row->block;
  bool wraps = rung_mul_overflows(bytes, (uint64_t)row->bytes, &bytes);
  for (int i = 0; i < t->rank; i++) {
    wraps = wraps || rung_mul_overflows(elements, t->extent[i], &elements);
    if (i < t->rank - 1) wraps = wraps || rung_mul_overflows(bytes, (uint64_t)t->extent[i], &bytes);
  }
  if (wraps || bytes > INT64_MAX) {
    return rung_fail(c->error, RUNG_CORRUPT_FILE, "the product of the dimensions does not fit 63 bits");
  }
  t->bytes = bytes;
  return RUNG_OK;
}

/* One record. The offset stays relative: where data begins is known after the last record. */
static rung_status read_tensor(gguf_cursor *c, uint64_t alignment, rung_gguf_tensor *t) {
  RUNG_TRY(read_shape(c, t));
  RUNG_TRY(read_type(c, &t->type));
  RUNG_TRY(find_bytes(c, t));
  RUNG_TRY(rung_gguf_read_u64(c, "data offset", &t->offset));
  if (t->offset % alignment) {
    return rung_fail(c->error, RUNG_CORRUPT_FILE,
                     "data offset at offset %" PRIu64 " is %" PRIu64 ", no multiple of the alignment %" PRIu64,
                     c->at - 8, t->offset, alignment);
  }
  return RUNG_OK;
}

static rung_status read_directory(rung_gguf *gguf, gguf_cursor *c, uint64_t count, rung_gguf_tensor **tensors,
                                  size_t *capacity) {
  for (uint64_t i = 0; i < count; i++) {
    rung_gguf_tensor t = {{NULL, 0}, RUNG_TYPE_F32, 0, {0}, 0, 0};
    rung_status status = rung_gguf_read_name(c, "name", &t.name);
    if (status) return rung_fail_prefix(c->error, status, "tensor %" PRIu64, i);
    status = read_tensor(c, gguf->alignment, &t);
    if (status) return rung_fail_prefix(c->error, status, "tensor '%s'", rung_gguf_show(t.name).text);
    if (!rung_host_grow(gguf->host, (void **)tensors, capacity, (size_t)i + 1, sizeof t)) {
      return rung_fail(c->error, RUNG_OUT_OF_MEMORY, "no memory for tensor %" PRIu64 " of the directory", i);
    }
    (*tensors)[i] = t;
  }
  return RUNG_OK;
}

/* Makes offsets absolute. */
static rung_status place_data(rung_gguf *gguf, const gguf_cursor *c) {
  uint64_t begin;
  if (rung_add_overflows(c->at, gguf->alignment - 1, &begin)) {
    return rung_fail(c->error, RUNG_CORRUPT_FILE, "padding at offset %" PRIu64 " does not fit 64 bits", c->at);
  }
  begin &= ~(gguf->alignment - 1);
  if (!gguf->tensor_count && begin > c->size) begin = c->size; /* nothing to pad for */
  for (size_t i = 0; i < gguf->tensor_count; i++) {
    rung_gguf_tensor *t = &gguf->tensors[i];
    const uint64_t room = begin < c->size ? c->size - begin : 0;
    if (t->bytes > room || t->offset > room - t->bytes) {
      return rung_fail(c->error, RUNG_CORRUPT_FILE,
                       "tensor '%s': %" PRIu64 " bytes at %" PRIu64 " + %" PRIu64
                       " pass the end of the file at %" PRIu64,
                       rung_gguf_show(t->name).text, t->bytes, begin, t->offset, c->size);
    }
    t->offset += begin;
  }
  gguf->data_offset = begin;
  return RUNG_OK;
}

/* ---- overlap: in order of offset each tensor must end before the next begins */

static bool before(const void *gguf, const void *a, const void *b) {
  const rung_gguf_tensor *tensors = ((const rung_gguf *)gguf)->tensors;
  return tensors[*(const uint32_t *)a].offset < tensors[*(const uint32_t *)b].offset;
}

static rung_status check_pair(const rung_gguf *gguf, size_t low, size_t high, rung_error *error) {
  const rung_gguf_tensor *a = &gguf->tensors[low], *b = &gguf->tensors[high];
  if (a->offset + a->bytes <= b->offset) return RUNG_OK;
  return rung_fail(error, RUNG_CORRUPT_FILE,
                   "tensors '%s' and '%s' overlap: the first ends at offset %" PRIu64 ", the second begins at %" PRIu64,
                   rung_gguf_show(a->name).text, rung_gguf_show(b->name).text, a->offset + a->bytes, b->offset);
}

static rung_status check_overlap(const rung_gguf *gguf, rung_error *error) {
  const size_t n = gguf->tensor_count;
  size_t sorted = 1;
  while (sorted < n && gguf->tensors[sorted - 1].offset <= gguf->tensors[sorted].offset) sorted++;
  if (sorted >= n) { /* as every writer lays them out */
    for (size_t i = 1; i < n; i++) RUNG_TRY(check_pair(gguf, i - 1, i, error));
    return RUNG_OK;
  }
  uint32_t *order = (uint32_t *)rung_host_array(gguf->host, n, sizeof *order);
  if (!order) return rung_fail(error, RUNG_OUT_OF_MEMORY, "no memory to sort %zu tensors", n);
  for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
  rung_sort(order, n, sizeof *order, before, gguf);
  rung_status status = RUNG_OK;
  for (size_t i = 1; i < n && !status; i++) status = check_pair(gguf, order[i - 1], order[i], error);
  rung_host_free(gguf->host, RUNG_MEMORY_host, order, n * sizeof *order);
  return status;
}

/* ---- */

static rung_gguf_text tensor_name(const rung_gguf *gguf, size_t index) { return gguf->tensors[index].name; }

rung_status rung_gguf_parse_tensors(rung_gguf *gguf, gguf_cursor *c, uint64_t count) {
  rung_gguf_tensor *tensors = NULL;
  size_t capacity = 0;
  rung_status status = read_directory(gguf, c, count, &tensors, &capacity);
  if (!status) {
    gguf->tensors = (rung_gguf_tensor *)rung_arena_array(&gguf->arena, (size_t)count, sizeof *tensors);
    if (!gguf->tensors) status = rung_fail(c->error, RUNG_OUT_OF_MEMORY, "no memory for %" PRIu64 " tensors", count);
    if (gguf->tensors && tensors) memcpy(gguf->tensors, tensors, (size_t)count * sizeof *tensors);
  }
  rung_host_free(gguf->host, RUNG_MEMORY_host, tensors, capacity * sizeof *tensors);
  if (status) return status;
  gguf->tensor_count = (size_t)count;
  RUNG_TRY(rung_gguf_names_build(gguf, &gguf->tensor_names, tensor_name, gguf->tensor_count, "tensor", c->error));
  RUNG_TRY(place_data(gguf, c));
  return check_overlap(gguf, c->error);
}

size_t rung_gguf_tensor_count(const rung_gguf *gguf) { return gguf->tensor_count; }
const rung_gguf_tensor *rung_gguf_tensor_at(const rung_gguf *gguf, size_t index) { return &gguf->tensors[index]; }

const rung_gguf_tensor *rung_gguf_tensor_find(const rung_gguf *gguf, const char *name) {
  const size_t i = rung_gguf_names_find(gguf, &gguf->tensor_names, tensor_name, gguf->tensor_count, name, strlen(name));
  return i == gguf->tensor_count ? NULL : &gguf->tensors[i];
}

const void *rung_gguf_tensor_data(const rung_gguf *gguf, const rung_gguf_tensor *tensor) {
  return gguf->map.data + tensor->offset;
}
