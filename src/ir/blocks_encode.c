/* SPDX-License-Identifier: MIT
 * Float to block formats. The formats of 32 numbers and the ternary ones give the same bytes as the `gguf` package for
 * finite numbers whose scale fits a half float; a larger scale is held at the largest half float, so that finite input
 * never becomes infinite. The k-quants take the plain range of each run, without a search for a better scale. A NaN or
 * an infinity in a block makes its scale so, and is thereby not lost. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "ir/blocks.h"
#include "ir/type.h"

static const float F16_MAX = 65504.0f;

/* Truncation into [0, top]; NaN gives 0. */
static uint8_t level(float x, int top) {
  if (!(x > 0)) return 0;
  return x >= (float)top ? (uint8_t)top : (uint8_t)x;
}
/* Nearest integer, ties to even, into [low, high]; NaN gives 0. */
static int nearest(float x, int low, int high) {
  if (x != x) return 0;
  if (x <= (float)low) return low;
  if (x >= (float)high) return high;
  return (int)rintf(x);
}
/* As nearest, ties away from zero: what the 8-bit and ternary formats define. */
static int nearest_away(float x, int limit) {
  if (x != x) return 0;
  if (x <= (float)-limit) return -limit;
  if (x >= (float)limit) return limit;
  return (int)roundf(x);
}
static float inverse(float d) { return d == 0 || !(fabsf(d) <= FLT_MAX_) ? 0 : 1 / d; }

/* A scale as it will be stored: finite stays finite. */
static float hold(float d) {
  if (d > F16_MAX && d < (float)INFINITY) return F16_MAX;
  if (d < -F16_MAX && d > -(float)INFINITY) return -F16_MAX;
  return d;
}
