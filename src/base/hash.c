/* SPDX-License-Identifier: MIT
 * XXH3, 128-bit variant, seed 0, after its published specification (Y. Collet, xxHash): one short function for each
 * class of lengths, and a loop over 64-byte stripes for long input. Words are read little-endian. */
#include "base/hash.h"

#include <string.h>

#include "base/compiler.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "base/hash.c reads words in place and needs a little-endian machine"
#endif

#define P32_1 UINT32_C(0x9E3779B1)
#define P32_2 UINT32_C(0x85EBCA77)
#define P32_3 UINT32_C(0xC2B2AE3D)
#define P64_1 UINT64_C(0x9E3779B185EBCA87)
#define P64_2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define P64_3 UINT64_C(0x165667B19E3779F9)
#define P64_4 UINT64_C(0x85EBCA77C2B2AE63)
#define P64_5 UINT64_C(0x27D4EB2F165667C5)
#define MIX_1 UINT64_C(0x165667919E3779F9)
#define MIX_2 UINT64_C(0x9FB21C651E98DF25)

enum { SECRET_BYTES = 192, STRIPE = 64, STRIPES_PER_BLOCK = 16, LANES = 8 };

/* clang-format off */
static const uint8_t secret[SECRET_BYTES] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};
/* clang-format on */

static uint32_t read32(const uint8_t *p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static uint64_t read64(const uint8_t *p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static uint32_t swap32(uint32_t v) { return v >> 24 | (v >> 8 & 0xFF00) | (v & 0xFF00) << 8 | v << 24; }
static uint64_t swap64(uint64_t v) { return (uint64_t)swap32((uint32_t)v) << 32 | swap32((uint32_t)(v >> 32)); }

static rung_hash product(uint64_t a, uint64_t b) {
  rung_hash r;
  r.low = rung_mul_wide(a, b, &r.high);
  return r;
}
static uint64_t folded(uint64_t a, uint64_t b) {
  const rung_hash r = product(a, b);
  return r.low ^ r.high;
}

static uint64_t avalanche(uint64_t h) {
  h ^= h >> 37;
  h *= MIX_1;
  return h ^ h >> 32;
}
/* The older finisher, which the shortest inputs use. */
static uint64_t avalanche_64(uint64_t h) {
  h ^= h >> 33;
  h *= P64_2;
  h ^= h >> 29;
  h *= P64_3;
  return h ^ h >> 32;
}

static rung_hash hash_0_to_3(const uint8_t *p, size_t n) {
  if (n == 0)
    return (rung_hash){avalanche_64(read64(secret + 64) ^ read64(secret + 72)),
                       avalanche_64(read64(secret + 80) ^ read64(secret + 88))};
  const uint32_t low = (uint32_t)p[0] << 16 | (uint32_t)p[n >> 1] << 24 | p[n - 1] | (uint32_t)n << 8;
  const uint32_t swapped = swap32(low), high = swapped << 13 | swapped >> 19;
  return (rung_hash){avalanche_64(low ^ (uint64_t)(read32(secret) ^ read32(secret + 4))),
                     avalanche_64(high ^ (uint64_t)(read32(secret + 8) ^ read32(secret + 12)))};
}

static rung_hash hash_4_to_8(const uint8_t *p, size_t n) {
  const uint64_t word = read32(p) | (uint64_t)read32(p + n - 4) << 32;
  rung_hash m = product(word ^ read64(secret + 16) ^ read64(secret + 24), P64_1 + ((uint64_t)n << 2));
  m.high += m.low << 1;
  m.low ^= m.high >> 3;
  m.low ^= m.low >> 35;
  m.low *= MIX_2;
  m.low ^= m.low >> 28;
  m.high = avalanche(m.high);
  return m;
}

static rung_hash hash_9_to_16(const uint8_t *p, size_t n) {
  const uint64_t low = read64(p);
  uint64_t high = read64(p + n - 8);
  rung_hash m = product(low ^ high ^ read64(secret + 32) ^ read64(secret + 40), P64_1);
  m.low += (uint64_t)(n - 1) << 54;
  high ^= read64(secret + 48) ^ read64(secret + 56);
  m.high += high + (high & UINT32_MAX) * (P32_2 - 1);
  m.low ^= swap64(m.high);
  rung_hash h = product(m.low, P64_2);
  h.high += m.high * P64_2;
  return (rung_hash){avalanche(h.low), avalanche(h.high)};
}

static uint64_t mix16(const uint8_t *p, const uint8_t *key) {
  return folded(read64(p) ^ read64(key), read64(p + 8) ^ read64(key + 8));
}

/* Takes 16 bytes at a and 16 at b. */
static void mix32(rung_hash *acc, const uint8_t *a, const uint8_t *b, const uint8_t *key) {
  acc->low += mix16(a, key);
  acc->low ^= read64(b) + read64(b + 8);
  acc->high += mix16(b, key + 16);
  acc->high ^= read64(a) + read64(a + 8);
}

static rung_hash finish_middle(rung_hash acc, size_t n) {
  const uint64_t low = acc.low + acc.high, high = acc.low * P64_1 + acc.high * P64_4 + (uint64_t)n * P64_2;
  return (rung_hash){avalanche(low), 0 - avalanche(high)};
}

/* Pairs of 16 bytes from both ends, the innermost first. */
static rung_hash hash_17_to_128(const uint8_t *p, size_t n) {
  rung_hash acc = {(uint64_t)n * P64_1, 0};
  for (size_t i = (n - 1) / 32 + 1; i-- > 0;) mix32(&acc, p + 16 * i, p + n - 16 * (i + 1), secret + 32 * i);
  return finish_middle(acc, n);
}

static rung_hash hash_129_to_240(const uint8_t *p, size_t n) {
  rung_hash acc = {(uint64_t)n * P64_1, 0};
  for (size_t i = 0; i < 4; i++) mix32(&acc, p + 32 * i, p + 32 * i + 16, secret + 32 * i);
  acc.low = avalanche(acc.low);
  acc.high = avalanche(acc.high);
  for (size_t i = 4; 32 * (i + 1) <= n; i++) mix32(&acc, p + 32 * i, p + 32 * i + 16, secret + 3 + 32 * (i - 4));
  mix32(&acc, p + n - 16, p + n - 32, secret + 103);
  return finish_middle(acc, n);
}

static void accumulate(uint64_t acc[LANES], const uint8_t *p, const uint8_t *key) {
  uint64_t word[LANES], keyed[LANES];
  for (int i = 0; i < LANES; i++) {
    word[i] = read64(p + 8 * i);
    keyed[i] = word[i] ^ read64(key + 8 * i);
  }
  for (int i = 0; i < LANES; i++) acc[i] += word[i ^ 1] + (keyed[i] & UINT32_MAX) * (keyed[i] >> 32);
}

static void scramble(uint64_t acc[LANES]) {
  const uint8_t *key = secret + SECRET_BYTES - STRIPE;
  for (int i = 0; i < LANES; i++) acc[i] = (acc[i] ^ acc[i] >> 47 ^ read64(key + 8 * i)) * P32_1;
}

static uint64_t merge(const uint64_t acc[LANES], const uint8_t *key, uint64_t start) {
  for (int i = 0; i < 4; i++)
    start += folded(acc[2 * i] ^ read64(key + 16 * i), acc[2 * i + 1] ^ read64(key + 16 * i + 8));
  return avalanche(start);
}

static rung_hash hash_long(const uint8_t *p, size_t n) {
  uint64_t acc[LANES] = {P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1};
  const size_t stripes = (n - 1) / STRIPE; /* whole ones before the last 64 bytes, which are taken apart */
  for (size_t s = 0; s < stripes; s++) {
    accumulate(acc, p + s * STRIPE, secret + 8 * (s % STRIPES_PER_BLOCK));
    if (s % STRIPES_PER_BLOCK == STRIPES_PER_BLOCK - 1) scramble(acc);
  }
  accumulate(acc, p + n - STRIPE, secret + SECRET_BYTES - STRIPE - 7);
  return (rung_hash){merge(acc, secret + 11, (uint64_t)n * P64_1),
                     merge(acc, secret + SECRET_BYTES - STRIPE - 11, ~((uint64_t)n * P64_2))};
}

rung_hash rung_hash_bytes(const void *data, size_t bytes) {
  const uint8_t *p = (const uint8_t *)data;
  if (bytes <= 3) return hash_0_to_3(p, bytes);
  if (bytes <= 8) return hash_4_to_8(p, bytes);
  if (bytes <= 16) return hash_9_to_16(p, bytes);
  if (bytes <= 128) return hash_17_to_128(p, bytes);
  if (bytes <= 240) return hash_129_to_240(p, bytes);
  return hash_long(p, bytes);
}

uint64_t rung_hash64(const void *data, size_t bytes) { return rung_hash_bytes(data, bytes).low; }

void rung_hash_hex(rung_hash hash, char out_text[33]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 16; i++) {
    out_text[i] = digits[hash.high >> (60 - 4 * i) & 15];
    out_text[16 + i] = digits[hash.low >> (60 - 4 * i) & 15];
  }
  out_text[32] = 0;
}
