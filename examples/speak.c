/* SPDX-License-Identifier: MIT
 * Speech from phonemes: speak kokoro.onnx VOICE.npy OUT.wav [SPEED] < PHONEMES. What is spoken is read from standard
 * input, in the phonetic alphabet or, where it begins with a digit, as numbers of the model. The voice is an array
 * f32[rows, 1, 256], a row for each number of phonemes. */
#include <ctype.h>

#include "network.h"
#include "wav.h"

enum { MOST = 510, STYLE = 256, RATE = 24000 };

/* The symbols of Kokoro and their numbers. */
static const struct {
  const char *symbol;
  uint8_t number;
} symbols[] = {
    {";", 1},   {":", 2},   {",", 3},    {".", 4},   {"!", 5},   {"?", 6},   {"—", 9},   {"…", 10},  {"\"", 11},
    {"(", 12},  {")", 13},  {"“", 14},   {"”", 15},  {" ", 16},  {"̃", 17},   {"ʣ", 18},  {"ʥ", 19},  {"ʦ", 20},
    {"ʨ", 21},  {"ᵝ", 22},  {"ꭧ", 23}, {"A", 24},  {"I", 25},  {"O", 31},  {"Q", 33},  {"S", 35},  {"T", 36},
    {"W", 39},  {"Y", 41},  {"ᵊ", 42},   {"a", 43},  {"b", 44},  {"c", 45},  {"d", 46},  {"e", 47},  {"f", 48},
    {"h", 50},  {"i", 51},  {"j", 52},   {"k", 53},  {"l", 54},  {"m", 55},  {"n", 56},  {"o", 57},  {"p", 58},
    {"q", 59},  {"r", 60},  {"s", 61},   {"t", 62},  {"u", 63},  {"v", 64},  {"w", 65},  {"x", 66},  {"y", 67},
    {"z", 68},  {"ɑ", 69},  {"ɐ", 70},   {"ɒ", 71},  {"æ", 72},  {"β", 75},  {"ɔ", 76},  {"ɕ", 77},  {"ç", 78},
    {"ɖ", 80},  {"ð", 81},  {"ʤ", 82},   {"ə", 83},  {"ɚ", 85},  {"ɛ", 86},  {"ɜ", 87},  {"ɟ", 90},  {"ɡ", 92},
    {"ɥ", 99},  {"ɨ", 101}, {"ɪ", 102},  {"ʝ", 103}, {"ɯ", 110}, {"ɰ", 111}, {"ŋ", 112}, {"ɳ", 113}, {"ɲ", 114},
    {"ɴ", 115}, {"ø", 116}, {"ɸ", 118},  {"θ", 119}, {"œ", 120}, {"ɹ", 123}, {"ɾ", 125}, {"ɻ", 126}, {"ʁ", 128},
    {"ɽ", 129}, {"ʂ", 130}, {"ʃ", 131},  {"ʈ", 132}, {"ʧ", 133}, {"ʊ", 135}, {"ʋ", 136}, {"ʌ", 138}, {"ɣ", 139},
    {"ɤ", 140}, {"χ", 142}, {"ʎ", 143},  {"ʒ", 147}, {"ʔ", 148}, {"ˈ", 156}, {"ˌ", 157}, {"ː", 158}, {"ʰ", 162},
    {"ʲ", 164}, {"↓", 169}, {"→", 171},  {"↗", 172}, {"↘", 173}, {"ᵻ", 177}};

/* Numbers of a text; what the model has no number for is left out. */
static int64_t read_tokens(const char *text, int64_t *out) {
  int64_t n = 0;
  if (isdigit((unsigned char)*text)) {
    for (char *end; n < MOST; text = end) {
      out[n] = strtol(text, &end, 10);
      if (end == text) break;
      n++;
    }
    return n;
  }
  while (*text && n < MOST) {
    size_t length = 0;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols && !length; i++)
      if (strncmp(text, symbols[i].symbol, strlen(symbols[i].symbol)) == 0) {
        length = strlen(symbols[i].symbol);
        out[n++] = symbols[i].number;
      }
    text += length ? length : 1;
  }
  return n;
}

/* The row of a voice for so many phonemes; the file is an array of f32 behind a head. */
static bool read_style(const char *path, int64_t tokens, float *out) {
  uint8_t head[10];
  FILE *f = fopen(path, "rb");
  if (!f) return perror(path), false;
  bool good = fread(head, 1, 10, f) == 10 && memcmp(head, "\x93NUMPY\x01", 7) == 0;
  const long begin = 10 + head[8] + 256 * head[9];
  good = good && fseek(f, begin + (tokens - 1) * STYLE * (long)sizeof *out, SEEK_SET) == 0;
  good = good && fread(out, sizeof *out, STYLE, f) == STYLE;
  fclose(f);
  if (!good) fprintf(stderr, "%s: no row for %lld phonemes\n", path, (long long)tokens);
  return good;
}

static rung_status speak(network *n, const int64_t *token, int64_t tokens, const float *style, float speed,
                         const char *path) {
  void *ids, *voice, *fast;
  rung_tensor sound = {0};
  rung_status s = network_input(n, "tokens", (int64_t[]){1, tokens + 2}, &ids);
  if (!s) s = network_input(n, "style", (int64_t[]){1, STYLE}, &voice);
  if (!s) s = network_input(n, "speed", (int64_t[]){1}, &fast);
  if (s) return s;
  memset(ids, 0, (size_t)(tokens + 2) * sizeof *token); /* silence around them */
  memcpy((int64_t *)ids + 1, token, (size_t)tokens * sizeof *token);
  memcpy(voice, style, STYLE * sizeof *style);
  *(float *)fast = speed;
  s = rung_context_run(n->context);
  if (!s) s = rung_context_output(n->context, 0, &sound);
  if (s) return s;
  size_t samples = 1;
  for (int d = 0; d < sound.rank; d++) samples *= (size_t)sound.extent[d];
  if (!wav_write(path, sound.data, samples, RATE)) return perror(path), RUNG_IO;
  printf("%lld phonemes, %.2f s\n", (long long)tokens, (double)samples / RATE);
  return RUNG_OK;
}

int main(int argc, char **argv) {
  if (argc < 4 || argc > 5)
    return fprintf(stderr, "usage: speak kokoro.onnx VOICE.npy OUT.wav [SPEED] < PHONEMES\n"), 2;
  static char text[1 << 16];
  int64_t token[MOST];
  float style[STYLE];
  text[fread(text, 1, sizeof text - 1, stdin)] = 0;
  const int64_t tokens = read_tokens(text, token);
  if (tokens == 0) return fprintf(stderr, "speak: there is nothing to say\n"), 1;
  if (!read_style(argv[2], tokens, style)) return 1;
  rung_error error = {0};
  rung_host *host = NULL;
  rung_device *device = NULL;
  network n = {0};
  const rung_binding most = {"sequence_length", tokens + 2};
  rung_status s = rung_host_create(NULL, &error, &host);
  if (!s) s = rung_device_create(host, "cpu", NULL, &error, &device);
  if (!s) s = network_open(&n, device, argv[1], NULL, &most, 1, &error);
  const bool open = !s;
  if (!s) s = speak(&n, token, tokens, style, argc == 5 ? strtof(argv[4], NULL) : 1, argv[3]);
  if (s) fprintf(stderr, "%s: %s\n", rung_status_text(s), open ? rung_context_message(n.context) : error.message);
  network_close(&n);
  rung_device_release(device);
  rung_host_release(host);
  return s ? 1 : 0;
}
