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

static const rung_layout layouts[] = {{.id = RUNG_CUDA_TILES,
                                       .name = "q4_kx16.tile",
                                       .source = RUNG_TYPE_Q4_K,
                                       .panel = ROWS,
                                       .panel_bytes = panel_bytes,
                                       .pack = pack,
                                       .unpack = unpack,
                                       .row = row_of}};

const rung_layout *rung_cuda_layouts(size_t *out_count) {
  *out_count = RUNG_COUNT(layouts);
  return layouts;
}

const rung_layout *rung_cuda_layout_of(rung_type type) { return type == RUNG_TYPE_Q4_K ? &layouts[0] : NULL; }
