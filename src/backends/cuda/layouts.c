/* SPDX-License-Identifier: MIT
 * Packed layouts of the device. q4_k lies in tiles of 16 rows by 256 numbers, 2304 bytes, as many as in its file:
 *
 *   0     half d and half dmin of rows 0 .. 15
 *   64    32 words, one a lane; lane 4g + t: scales and minima of runs 2t and 2t + 1, four times 6 bits, of row g (low
 *         24 bits), and the low 8 of the 24 bits of row g + 8
 *   192   32 halves: the other 16 bits of row g + 8
 *   256   4 times 32 lanes times 16 bytes; lane 4g + t of chunk c: run 2c of row g, run 2c of row g + 8, run 2c + 1 of
 *         row g, of row g + 8; a word is numbers 8t .. 8t + 7 of the run, number e in half byte e / 2 + 4 (e mod 2)
 *
 * where a lane is one of a warp whose tensor cores multiply the tile: each reads its own 16 bytes, one next to the
 * other, and a mask makes operands of them. Tiles of the same 16 rows follow one another along k. */
#include <string.h>

#include "backends/cuda/matmul.h"

/* q8_0 lies in tiles of 16 rows by 128, 2176 bytes; the last ones along k are filled up with zeros:
 *
 *   0     a pair of halves for each lane: the factors of run t of rows g and g + 8
 *   128   4 times 32 lanes times 16 bytes; lane 4g + t of chunk c: numbers 8t .. 8t + 7 of run c, of row g the first word,
 *         of row g + 8 the first, of row g the second, of row g + 8 the second; the words are numbers 0 4 1 5 and 2 6 3 7,
 *         which is how a word of half bytes above comes apart, so that both multiply one and the same x */
enum { Q8_TILE = 2176, Q8_K = 128, Q8_BLOCK = 34 };
static const uint8_t q8_order[8] = {0, 4, 1, 5, 2, 6, 3, 7};

enum { TILE = 2304, ROWS = 16, BLOCK = 144, RUNS = 8 };

static uint64_t panel_bytes(int64_t k) { return (uint64_t)(k / 256) * TILE; }

/* Scale and minimum of run i of a q4_k block, 12 bits. */
static uint32_t get_scale(const uint8_t *s, int i) {
  uint32_t scale, minimum;
  if (i < 4) {
    scale = s[i] & 63u;
    minimum = s[4 + i] & 63u;
  } else {
    scale = (s[4 + i] & 15u) | (uint32_t)(s[i - 4] >> 6) << 4;
    minimum = (uint32_t)(s[4 + i] >> 4) | (uint32_t)(s[i] >> 6) << 4;
  }
  return scale | minimum << 6;
}

static void put_scale(uint8_t *s, int i, uint32_t bits) {
  const uint32_t scale = bits & 63, minimum = bits >> 6 & 63;
  if (i < 4) {
    s[i] = (uint8_t)((s[i] & 0xc0) | scale);
    s[4 + i] = (uint8_t)((s[4 + i] & 0xc0) | minimum);
  } else {
    s[4 + i] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
    s[i - 4] = (uint8_t)((s[i - 4] & 63) | (scale >> 4) << 6);
    s[i] = (uint8_t)((s[i] & 63) | (minimum >> 4) << 6);
  }
}

static uint32_t load_word(const uint8_t *p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

static uint32_t load_tile_scales(const uint8_t *tile, int row, int lane) {
  const uint32_t a = load_word(tile + 64 + 4 * lane);
  uint16_t b;
  memcpy(&b, tile + 192 + 2 * lane, sizeof b);
  return row < 8 ? a & 0xffffff : a >> 24 | (uint32_t)b << 8;
}

static void store_tile_scales(uint8_t *tile, int row, int lane, uint32_t bits) {
  uint32_t a = load_word(tile + 64 + 4 * lane);
  if (row < 8) {
    a = (a & 0xff000000u) | bits;
  } else {
    const uint16_t b = (uint16_t)(bits >> 8);
    a = (a & 0xffffff) | bits << 24;
    memcpy(tile + 192 + 2 * lane, &b, sizeof b);
  }
  memcpy(tile + 64 + 4 * lane, &a, sizeof a);
}

/* Where the numbers 8t .. 8t + 7 of a run of a row lie. */
static size_t word_at(int row, int run, int t) {
  return 256 + (size_t)(run / 2) * 512 + (size_t)(4 * (row & 7) + t) * 16 + (size_t)(run & 1) * 8 + (row >= 8 ? 4 : 0);
}

static void pack_row(const uint8_t *block, int row, uint8_t *tile) {
  memcpy(tile + 4 * row, block, 4);
  for (int run = 0; run < RUNS; run++) {
    const int lane = 4 * (row & 7) + run / 2, shift = 12 * (run & 1);
    const uint32_t there = load_tile_scales(tile, row, lane) & ~(0xfffu << shift) & 0xffffff;
    store_tile_scales(tile, row, lane, there | get_scale(block + 4, run) << shift);
    const uint8_t *levels = block + 16 + 32 * (run / 2);
    for (int t = 0; t < 4; t++) {
      uint32_t word = 0;
      for (int e = 0; e < 8; e++) {
        const uint32_t level = levels[8 * t + e] >> 4 * (run & 1) & 15u;
        word |= level << 4 * (e / 2 + 4 * (e & 1));
      }
      memcpy(tile + word_at(row, run, t), &word, sizeof word);
    }
  }
}

static void unpack_row(const uint8_t *tile, int row, uint8_t *block) {
  memset(block, 0, BLOCK);
  memcpy(block, tile + 4 * row, 4);
  for (int run = 0; run < RUNS; run++) {
    const int lane = 4 * (row & 7) + run / 2;
    put_scale(block + 4, run, load_tile_scales(tile, row, lane) >> 12 * (run & 1) & 0xfff);
    uint8_t *levels = block + 16 + 32 * (run / 2);
    for (int t = 0; t < 4; t++) {
      const uint32_t word = load_word(tile + word_at(row, run, t));
      for (int e = 0; e < 8; e++) {
        const uint32_t level = word >> 4 * (e / 2 + 4 * (e & 1)) & 15u;
        levels[8 * t + e] = (uint8_t)(levels[8 * t + e] | level << 4 * (run & 1));
      }
    }
  }
}

static void pack(const uint8_t *const *row, int64_t rows, int64_t k, uint8_t *out_panel) {
  memset(out_panel, 0, panel_bytes(k));
  for (int64_t b = 0; b < k / 256; b++)
    for (int64_t r = 0; r < rows; r++) pack_row(row[r] + b * BLOCK, (int)r, out_panel + b * TILE);
}

static void unpack(const uint8_t *panel, int64_t rows, int64_t k, uint8_t *const *out_row) {
  for (int64_t b = 0; b < k / 256; b++)
    for (int64_t r = 0; r < rows; r++) unpack_row(panel + b * TILE, (int)r, out_row[r] + b * BLOCK);
}

static void row_of(const uint8_t *form, int64_t n, int64_t k, float *out) {
  const uint8_t *panel = form + (uint64_t)(n / ROWS) * panel_bytes(k);
  uint8_t block[BLOCK];
  for (int64_t b = 0; b < k / 256; b++) {
    unpack_row(panel + b * TILE, (int)(n % ROWS), block);
    rung_type_get(RUNG_TYPE_Q4_K)->to_f32(block, out + 256 * b, 256);
  }
}

/* ---- q8_0 */

static uint64_t q8_panel_bytes(int64_t k) { return (uint64_t)((k + Q8_K - 1) / Q8_K) * Q8_TILE; }

/* Where the eight numbers 8t .. 8t + 7 of a run of a row begin; the second word lies 8 bytes behind. */
static size_t q8_word_at(int row, int run, int t) {
  return 128 + (size_t)run * 512 + (size_t)(4 * (row & 7) + t) * 16 + (row >= 8 ? 4 : 0);
}
static size_t q8_scale_at(int row, int run) { return (size_t)(4 * (row & 7) + run) * 4 + (row >= 8 ? 2 : 0); }

static void q8_pack(const uint8_t *const *row, int64_t rows, int64_t k, uint8_t *out_panel) {
  memset(out_panel, 0, q8_panel_bytes(k));
  for (int64_t b = 0; b < k / 32; b++) {
    uint8_t *tile = out_panel + b / 4 * Q8_TILE;
    for (int r = 0; r < (int)rows; r++) {
      const uint8_t *block = row[r] + b * Q8_BLOCK;
      memcpy(tile + q8_scale_at(r, (int)(b & 3)), block, 2);
      for (int i = 0; i < 32; i++) {
        const uint8_t *from = block + 2 + (i & ~7) + q8_order[i & 7];
        tile[q8_word_at(r, (int)(b & 3), i / 8) + (size_t)(i & 4) * 2 + (size_t)(i & 3)] = *from;
      }
    }
  }
}

static void q8_unpack_block(const uint8_t *panel, int row, int64_t b, uint8_t *block) {
  const uint8_t *tile = panel + b / 4 * Q8_TILE;
  memcpy(block, tile + q8_scale_at(row, (int)(b & 3)), 2);
  for (int i = 0; i < 32; i++)
    block[2 + (i & ~7) + q8_order[i & 7]] =
        tile[q8_word_at(row, (int)(b & 3), i / 8) + (size_t)(i & 4) * 2 + (size_t)(i & 3)];
}

static void q8_unpack(const uint8_t *panel, int64_t rows, int64_t k, uint8_t *const *out_row) {
  for (int64_t b = 0; b < k / 32; b++)
    for (int64_t r = 0; r < rows; r++) q8_unpack_block(panel, (int)r, b, out_row[r] + b * Q8_BLOCK);
}

static void q8_row_of(const uint8_t *form, int64_t n, int64_t k, float *out) {
  const uint8_t *panel = form + (uint64_t)(n / ROWS) * q8_panel_bytes(k);
  uint8_t block[Q8_BLOCK];
  for (int64_t b = 0; b < k / 32; b++) {
    q8_unpack_block(panel, (int)(n % ROWS), b, block);
    rung_type_get(RUNG_TYPE_Q8_0)->to_f32(block, out + 32 * b, 32);
  }
}

static const rung_layout layouts[] = {{.id = RUNG_CUDA_TILES,
                                       .name = "q4_kx16.tile",
                                       .source = RUNG_TYPE_Q4_K,
                                       .panel = ROWS,
                                       .panel_bytes = panel_bytes,
                                       .pack = pack,
                                       .unpack = unpack,
                                       .row = row_of},
                                      {.id = RUNG_CUDA_Q8_TILES,
                                       .name = "q8_0x16.tile",
                                       .source = RUNG_TYPE_Q8_0,
                                       .panel = ROWS,
                                       .panel_bytes = q8_panel_bytes,
                                       .pack = q8_pack,
                                       .unpack = q8_unpack,
                                       .row = q8_row_of}};

const rung_layout *rung_cuda_layouts(size_t *out_count) {
  *out_count = RUNG_COUNT(layouts);
  return layouts;
}

const rung_layout *rung_cuda_layout_of(rung_type type) {
  for (size_t i = 0; i < RUNG_COUNT(layouts); i++)
    if (layouts[i].source == type) return &layouts[i];
  return NULL;
}
