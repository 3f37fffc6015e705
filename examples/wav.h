/* SPDX-License-Identifier: MIT
 * WAV files for the examples: PCM of 8 or 16 bits is read sample by sample, from a pipe as well; 16 bits are written. */
#ifndef WAV_H
#define WAV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct wav {
  FILE *file;
  int rate, channels, bits;
} wav;

static inline uint32_t wav_number(const uint8_t *p, int bytes) {
  uint32_t n = 0;
  for (int i = 0; i < bytes; i++) n |= (uint32_t)p[i] << (8 * i);
  return n;
}

/* Reads up to the first sample; false if it is no WAV file of PCM. */
static inline bool wav_open(wav *w, FILE *file) {
  uint8_t b[24];
  *w = (wav){.file = file};
  if (fread(b, 1, 12, file) != 12 || memcmp(b, "RIFF", 4) != 0 || memcmp(b + 8, "WAVE", 4) != 0) return false;
  while (fread(b, 1, 8, file) == 8) {
    if (memcmp(b, "data", 4) == 0) return w->rate > 0 && w->channels > 0 && (w->bits == 8 || w->bits == 16);
    uint32_t bytes = wav_number(b + 4, 4), seen = 0;
    bytes += bytes & 1;
    if (memcmp(b, "fmt ", 4) == 0) {
      if (bytes < 16 || fread(b, 1, seen = 16, file) != 16 || wav_number(b, 2) != 1) return false;
      w->channels = (int)wav_number(b + 2, 2);
      w->rate = (int)wav_number(b + 4, 4);
      w->bits = (int)wav_number(b + 14, 2);
    }
    for (; seen < bytes; seen++)
      if (getc(file) == EOF) return false;
  }
  return false;
}

/* The next `count` samples of the first channel, between -1 and 1; fewer at the end. */
static inline size_t wav_read(wav *w, float *out, size_t count) {
  uint8_t b[64];
  const size_t frame = (size_t)(w->channels * w->bits / 8);
  size_t n = 0;
  for (; n < count && frame <= sizeof b && fread(b, 1, frame, w->file) == frame; n++)
    out[n] = w->bits == 8 ? (float)(b[0] - 128) / 128 : (float)(int16_t)wav_number(b, 2) / 32768;
  return n;
}

static inline bool wav_write(const char *path, const float *sample, size_t count, int rate) {
  FILE *f = fopen(path, "wb");
  const uint32_t bytes = (uint32_t)count * 2, r = (uint32_t)rate;
  if (!f) return false;
  const uint32_t head[] = {0x46464952, 36 + bytes, 0x45564157, 0x20746D66, 16,   0x00010001,
                           r,          2 * r,      0x00100002, 0x61746164, bytes};
  for (size_t i = 0; i < sizeof head / sizeof *head; i++)
    for (int k = 0; k < 4; k++) putc((int)(head[i] >> (8 * k) & 0xFF), f);
  for (size_t i = 0; i < count; i++) {
    const float x = sample[i] < -1 ? -1 : sample[i] > 1 ? 1 : sample[i];
    const int v = (int)(x * 32767);
    putc(v & 0xFF, f), putc(v >> 8 & 0xFF, f);
  }
  return fclose(f) == 0;
}

#endif
