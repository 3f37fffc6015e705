/* SPDX-License-Identifier: MIT
 * Packing, unpacking and reading rows of the layouts of layouts.h. Words of four bytes are moved and, where levels
 * share bytes differently than in the source, cut with masks that treat the four bytes of a word at once. */
#include "backends/cpu/layouts.h"

#include <string.h>

#include "backends/cpu/kernel.h"
#include "base/half.h"

static uint32_t load32(const uint8_t *p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static void store32(uint8_t *p, uint32_t v) { memcpy(p, &v, sizeof v); }
static uint16_t load16(const uint8_t *p) {
  uint16_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static void store16(uint8_t *p, uint16_t v) { memcpy(p, &v, sizeof v); }

enum { LOW_HALVES = 0x0f0f0f0f };
static const uint32_t high_halves = 0xf0f0f0f0u, low_pairs = 0x03030303u, low_bits = 0x01010101u;

/* ---- levels of one row c in the vectors of a block: put moves them in, take moves them out */

/* 16 bytes with two 4-bit levels each, in the source's own order. */
static void put_halves(uint8_t (*q)[64], int c, const uint8_t *bytes) {
  for (int j = 0; j < 4; j++) memcpy(q[j] + 4 * c, bytes + 4 * j, 4);
}
static void take_halves(const uint8_t (*q)[64], int c, uint8_t *bytes) {
  for (int j = 0; j < 4; j++) memcpy(bytes + 4 * j, q[j] + 4 * c, 4);
}

/* 32 levels in the low (shift 0) or high (shift 4) halves of 32 bytes, as blocks of 256 keep a run. */
static void put_run(uint8_t (*q)[64], int c, const uint8_t *bytes, int shift) {
  for (int j = 0; j < 4; j++) {
    const uint32_t first = load32(bytes + 4 * j) >> shift & LOW_HALVES;
    const uint32_t second = load32(bytes + 16 + 4 * j) >> shift & LOW_HALVES;
    store32(q[j] + 4 * c, first | second << 4);
  }
}
static void take_run(const uint8_t (*q)[64], int c, uint8_t *bytes, int shift) {
  const uint32_t keep = shift ? LOW_HALVES : high_halves;
  for (int j = 0; j < 4; j++) {
    const uint32_t word = load32(q[j] + 4 * c);
    uint8_t *first = bytes + 4 * j, *second = bytes + 16 + 4 * j;
    store32(first, (load32(first) & keep) | (word & LOW_HALVES) << shift);
    store32(second, (load32(second) & keep) | (word >> 4 & LOW_HALVES) << shift);
  }
}

/* Fifth bits as a word with number i's in bit i: bit 4g + t goes to bit g of byte t. */
static void put_bits(uint8_t *h, int c, uint32_t bits) {
  for (int t = 0; t < 4; t++) {
    uint32_t x = bits >> t & 0x11111111u; /* the eight groups' bits t, four apart: close the gaps */
    x = (x | x >> 3) & 0x03030303u;
    x = (x | x >> 6) & 0x000f000fu;
    h[4 * c + t] = (uint8_t)(x | x >> 12);
  }
}
static uint32_t take_bits(const uint8_t *h, int c) {
  uint32_t bits = 0;
  for (int t = 0; t < 4; t++) {
    uint32_t x = h[4 * c + t];
    x = (x | x << 12) & 0x000f000fu;
    x = (x | x << 6) & 0x03030303u;
    x = (x | x << 3) & 0x11111111u;
    bits |= x << t;
  }
  return bits;
}

/* ---- blocks: block b of a panel and its source block of row c */

static void put_Q4_0(void *block, int c, const uint8_t *s) {
  rung_q4_0x16 *p = block;
  p->d[c] = load16(s);
  put_halves(p->q, c, s + 2);
}
static void take_Q4_0(const void *block, int c, uint8_t *s) {
  const rung_q4_0x16 *p = block;
  store16(s, p->d[c]);
  take_halves(p->q, c, s + 2);
}
static void put_Q4_1(void *block, int c, const uint8_t *s) {
  rung_q4_1x16 *p = block;
  p->d[c] = load16(s);
  p->m[c] = load16(s + 2);
  put_halves(p->q, c, s + 4);
}
static void take_Q4_1(const void *block, int c, uint8_t *s) {
  const rung_q4_1x16 *p = block;
  store16(s, p->d[c]);
  store16(s + 2, p->m[c]);
  take_halves(p->q, c, s + 4);
}
static void put_Q5_0(void *block, int c, const uint8_t *s) {
  rung_q5_0x16 *p = block;
  p->d[c] = load16(s);
  put_bits(p->h, c, load32(s + 2));
  put_halves(p->q, c, s + 6);
}
static void take_Q5_0(const void *block, int c, uint8_t *s) {
  const rung_q5_0x16 *p = block;
  store16(s, p->d[c]);
  store32(s + 2, take_bits(p->h, c));
  take_halves(p->q, c, s + 6);
}
static void put_Q5_1(void *block, int c, const uint8_t *s) {
  rung_q5_1x16 *p = block;
  p->d[c] = load16(s);
  p->m[c] = load16(s + 2);
  put_bits(p->h, c, load32(s + 4));
  put_halves(p->q, c, s + 8);
}
static void take_Q5_1(const void *block, int c, uint8_t *s) {
  const rung_q5_1x16 *p = block;
  store16(s, p->d[c]);
  store16(s + 2, p->m[c]);
  store32(s + 4, take_bits(p->h, c));
  take_halves(p->q, c, s + 8);
}
static void put_Q8_0(void *block, int c, const uint8_t *s) {
  rung_q8_0x16 *p = block;
  p->d[c] = load16(s);
  for (int g = 0; g < 8; g++) store32(p->q[g] + 4 * c, load32(s + 2 + 4 * g) ^ 0x80808080u);
}
static void take_Q8_0(const void *block, int c, uint8_t *s) {
  const rung_q8_0x16 *p = block;
  store16(s, p->d[c]);
  for (int g = 0; g < 8; g++) store32(s + 2 + 4 * g, load32(p->q[g] + 4 * c) ^ 0x80808080u);
}

/* The 12 bytes of 6-bit scales and minima (ir/blocks.c says how they share bytes). */
static void put_scales(rung_k_scales *k, int c, const uint8_t *s) {
  k->d[c] = load16(s);
  k->m[c] = load16(s + 2);
  const uint8_t *p = s + 4;
  for (int r = 0; r < 8; r++) {
    const int scale = r < 4 ? p[r] & 63 : (p[4 + r] & 15) | (p[r - 4] >> 6) << 4;
    const int minimum = r < 4 ? p[4 + r] & 63 : p[4 + r] >> 4 | (p[r] >> 6) << 4;
    k->a[r][c] = (uint8_t)(scale | (minimum & 3) << 6);
    const int above = minimum >> 2 << 4 * (r % 2);
    k->b[r / 2][c] = (uint8_t)(r % 2 ? k->b[r / 2][c] | above : above);
  }
}
static void take_scales(const rung_k_scales *k, int c, uint8_t *s) {
  store16(s, k->d[c]);
  store16(s + 2, k->m[c]);
  uint8_t *p = s + 4;
  memset(p, 0, 12);
  for (int r = 0; r < 8; r++) {
    const int scale = k->a[r][c] & 63;
    const int minimum = k->a[r][c] >> 6 | (k->b[r / 2][c] >> 4 * (r % 2) & 15) << 2;
    if (r < 4) {
      p[r] = (uint8_t)(p[r] | scale);
      p[4 + r] = (uint8_t)(p[4 + r] | minimum);
    } else {
      p[4 + r] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
      p[r - 4] = (uint8_t)(p[r - 4] | scale >> 4 << 6);
      p[r] = (uint8_t)(p[r] | minimum >> 4 << 6);
    }
  }
}
static void put_Q4_K(void *block, int c, const uint8_t *s) {
  rung_q4_kx16 *p = block;
  put_scales(&p->scales, c, s);
  for (int r = 0; r < 8; r++) put_run(p->q[r], c, s + 16 + 32 * (r / 2), 4 * (r % 2));
}
static void take_Q4_K(const void *block, int c, uint8_t *s) {
  const rung_q4_kx16 *p = block;
  take_scales(&p->scales, c, s);
  for (int r = 0; r < 8; r++) take_run(p->q[r], c, s + 16 + 32 * (r / 2), 4 * (r % 2));
}
static void put_Q5_K(void *block, int c, const uint8_t *s) {
  rung_q5_kx16 *p = block;
  put_scales(&p->scales, c, s);
  for (int r = 0; r < 8; r++) {
    put_run(p->run[r].q, c, s + 48 + 32 * (r / 2), 4 * (r % 2));
    uint32_t word = 0;
    for (int g = 0; g < 8; g++) word |= (load32(s + 16 + 4 * g) >> r & low_bits) << g;
    store32(p->run[r].h + 4 * c, word);
  }
}
static void take_Q5_K(const void *block, int c, uint8_t *s) {
  const rung_q5_kx16 *p = block;
  take_scales(&p->scales, c, s);
  memset(s + 16, 0, 32);
  for (int r = 0; r < 8; r++) {
    take_run(p->run[r].q, c, s + 48 + 32 * (r / 2), 4 * (r % 2));
    const uint32_t word = load32(p->run[r].h + 4 * c);
    for (int g = 0; g < 8; g++) {
      uint8_t *fifth = s + 16 + 4 * g;
      store32(fifth, load32(fifth) | (word >> g & low_bits) << r);
    }
  }
}

/* Where run r of a q6_k block keeps its low halves and its pairs (after the 128 bytes of halves). */
static int q6_low(int r) { return 64 * (r / 4) + 32 * (r % 2); }
static int q6_pairs(int r) { return 128 + 32 * (r / 4); }
static void put_Q6_K(void *block, int c, const uint8_t *s) {
  rung_q6_kx16 *p = block;
  p->d[c] = load16(s + 208);
  for (int i = 0; i < 16; i++) p->s[i][c] = (int8_t)s[192 + i];
  for (int r = 0; r < 8; r++) {
    put_run(p->run[r].q, c, s + q6_low(r), 4 * (r % 4 / 2));
    for (int i = 0; i < 2; i++) {
      uint32_t word = 0;
      for (int g = 0; g < 4; g++)
        word |= (load32(s + q6_pairs(r) + 16 * i + 4 * g) >> 2 * (r % 4) & low_pairs) << 2 * g;
      store32(p->run[r].h[i] + 4 * c, word);
    }
  }
}
static void take_Q6_K(const void *block, int c, uint8_t *s) {
  const rung_q6_kx16 *p = block;
  store16(s + 208, p->d[c]);
  for (int i = 0; i < 16; i++) s[192 + i] = (uint8_t)p->s[i][c];
  memset(s + 128, 0, 64);
  for (int r = 0; r < 8; r++) {
    take_run(p->run[r].q, c, s + q6_low(r), 4 * (r % 4 / 2));
    for (int i = 0; i < 2; i++) {
      const uint32_t word = load32(p->run[r].h[i] + 4 * c);
      for (int g = 0; g < 4; g++) {
        uint8_t *pairs = s + q6_pairs(r) + 16 * i + 4 * g;
        store32(pairs, load32(pairs) | (word >> 2 * g & low_pairs) << 2 * (r % 4));
      }
    }
  }
}

/* Plain types as blocks of one (bf16: of two) elements. */
static void put_F32(void *block, int c, const uint8_t *s) { memcpy((uint8_t *)block + 4 * c, s, 4); }
static void take_F32(const void *block, int c, uint8_t *s) { memcpy(s, (const uint8_t *)block + 4 * c, 4); }
static void put_F16(void *block, int c, const uint8_t *s) { memcpy((uint8_t *)block + 2 * c, s, 2); }
static void take_F16(const void *block, int c, uint8_t *s) { memcpy(s, (const uint8_t *)block + 2 * c, 2); }

/* ---- whole panels */

typedef struct shape {
  int block;     /* elements of k */
  size_t source; /* bytes of a source block */
  size_t packed; /* bytes of a packed block */
  void (*put)(void *block, int c, const uint8_t *source);
  void (*take)(const void *block, int c, uint8_t *source);
} shape;

static void pack_panel(const shape *s, const uint8_t *const *row, int64_t rows, int64_t k, uint8_t *out_panel) {
  const int64_t blocks = k / s->block;
  for (int64_t b = 0; b < blocks; b++) {
    uint8_t *block = out_panel + (size_t)b * s->packed;
    if (rows < RUNG_PANEL) memset(block, 0, s->packed);
    for (int c = 0; c < rows; c++) s->put(block, c, row[c] + (size_t)b * s->source);
  }
}
static void unpack_panel(const shape *s, const uint8_t *panel, int64_t rows, int64_t k, uint8_t *const *out_row) {
  const int64_t blocks = k / s->block;
  for (int64_t b = 0; b < blocks; b++) {
    const uint8_t *block = panel + (size_t)b * s->packed;
    for (int c = 0; c < rows; c++) s->take(block, c, out_row[c] + (size_t)b * s->source);
  }
}
/* Through source blocks, so that a gathered row has the very floats of the type's definition. */
static void read_row(const shape *s, rung_type type, const uint8_t *form, int64_t n, int64_t k, float *out) {
  const rung_type_row *row = rung_type_get(type);
  const int64_t blocks = k / s->block;
  const uint8_t *panel = form + (uint64_t)(n / RUNG_PANEL) * (uint64_t)blocks * s->packed;
  const int c = (int)(n % RUNG_PANEL);
  uint8_t source[1024];
  const int64_t at_once = (int64_t)(sizeof source / s->source);
  for (int64_t b = 0; b < blocks; b += at_once) {
    const int64_t some = blocks - b < at_once ? blocks - b : at_once;
    for (int64_t i = 0; i < some; i++) s->take(panel + (size_t)(b + i) * s->packed, c, source + (size_t)i * s->source);
    row->to_f32(source, out + b * s->block, (size_t)(some * s->block));
  }
}

#define PLAIN_LIST(X)          \
  X(F32, "f32x16.1", 1, 4, 64) \
  X(F16, "f16x16.1", 1, 2, 32)
#define BLOCK_LIST(X)                                  \
  X(Q4_0, "q4_0x16.1", 32, 18, sizeof(rung_q4_0x16))   \
  X(Q4_1, "q4_1x16.1", 32, 20, sizeof(rung_q4_1x16))   \
  X(Q5_0, "q5_0x16.1", 32, 22, sizeof(rung_q5_0x16))   \
  X(Q5_1, "q5_1x16.1", 32, 24, sizeof(rung_q5_1x16))   \
  X(Q8_0, "q8_0x16.1", 32, 34, sizeof(rung_q8_0x16))   \
  X(Q4_K, "q4_kx16.1", 256, 144, sizeof(rung_q4_kx16)) \
  X(Q5_K, "q5_kx16.1", 256, 176, sizeof(rung_q5_kx16)) \
  X(Q6_K, "q6_kx16.1", 256, 210, sizeof(rung_q6_kx16))
#define X(NAME, text, elements, bytes, packed_bytes) \
  _Static_assert((packed_bytes) == RUNG_PANEL * (bytes), "a packed block has the bytes of its 16 source blocks");
PLAIN_LIST(X)
BLOCK_LIST(X)
#undef X

#define X(NAME, text, elements, bytes, packed_bytes)                                                  \
  static const shape shape_##NAME = {elements, bytes, packed_bytes, put_##NAME, take_##NAME};         \
  static uint64_t bytes_##NAME(int64_t k) { return (uint64_t)(k / (elements)) * (packed_bytes); }     \
  static void pack_##NAME(const uint8_t *const *row, int64_t rows, int64_t k, uint8_t *out_panel) {   \
    pack_panel(&shape_##NAME, row, rows, k, out_panel);                                               \
  }                                                                                                   \
  static void unpack_##NAME(const uint8_t *panel, int64_t rows, int64_t k, uint8_t *const *out_row) { \
    unpack_panel(&shape_##NAME, panel, rows, k, out_row);                                             \
  }
PLAIN_LIST(X)
BLOCK_LIST(X)
#undef X

#define X(NAME, text, elements, bytes, packed_bytes)                              \
  static void row_##NAME(const uint8_t *form, int64_t n, int64_t k, float *out) { \
    read_row(&shape_##NAME, RUNG_TYPE_##NAME, form, n, k, out);                   \
  }
BLOCK_LIST(X)
#undef X
static void row_F32(const uint8_t *form, int64_t n, int64_t k, float *out) {
  const uint8_t *column = form + (uint64_t)(n / RUNG_PANEL) * bytes_F32(k) + n % RUNG_PANEL * 4;
  for (int64_t i = 0; i < k; i++) memcpy(out + i, column + i * 64, 4);
}
static void row_F16(const uint8_t *form, int64_t n, int64_t k, float *out) {
  const uint8_t *column = form + (uint64_t)(n / RUNG_PANEL) * bytes_F16(k) + n % RUNG_PANEL * 2;
  for (int64_t i = 0; i < k; i++) out[i] = rung_f16_to_f32(load16(column + i * 32));
}

/* ---- bf16: pairs along k, the last one filled up with zero */

static uint64_t bytes_BF16(int64_t k) { return (uint64_t)((k + 1) / 2) * 64; }
static int64_t bf16_at(int64_t k, int64_t c) { return k / 2 * 64 + 4 * c + 2 * (k % 2); }
static void pack_BF16(const uint8_t *const *row, int64_t rows, int64_t k, uint8_t *out_panel) {
  if (rows < RUNG_PANEL || k % 2) memset(out_panel, 0, bytes_BF16(k));
  for (int64_t i = 0; i < k; i++)
    for (int64_t c = 0; c < rows; c++) memcpy(out_panel + bf16_at(i, c), row[c] + 2 * i, 2);
}
static void unpack_BF16(const uint8_t *panel, int64_t rows, int64_t k, uint8_t *const *out_row) {
  for (int64_t i = 0; i < k; i++)
    for (int64_t c = 0; c < rows; c++) memcpy(out_row[c] + 2 * i, panel + bf16_at(i, c), 2);
}
static void row_BF16(const uint8_t *form, int64_t n, int64_t k, float *out) {
  const uint8_t *panel = form + (uint64_t)(n / RUNG_PANEL) * bytes_BF16(k);
  for (int64_t i = 0; i < k; i++) out[i] = rung_bf16_to_f32(load16(panel + bf16_at(i, n % RUNG_PANEL)));
}

/* ---- the list */

#define X(NAME, text, ...)      \
  {.id = RUNG_X16(NAME),        \
   .source = RUNG_TYPE_##NAME,  \
   .panel = RUNG_PANEL,         \
   .panel_bytes = bytes_##NAME, \
   .pack = pack_##NAME,         \
   .unpack = unpack_##NAME,     \
   .row = row_##NAME,           \
   .name = text},
static const rung_layout layouts[] = {PLAIN_LIST(X) X(BF16, "bf16x16.1", 2) BLOCK_LIST(X)};
#undef X
#undef PLAIN_LIST
#undef BLOCK_LIST

const rung_layout *rung_cpu_layouts(size_t *out_count) {
  *out_count = RUNG_COUNT(layouts);
  return layouts;
}
const rung_layout *rung_cpu_layout_of(rung_type type) {
  for (size_t i = 0; i < RUNG_COUNT(layouts); i++)
    if (layouts[i].source == type) return &layouts[i];
  return NULL;
}
