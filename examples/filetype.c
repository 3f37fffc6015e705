/* SPDX-License-Identifier: MIT
 * What kind of file is it? filetype model.onnx config.min.json FILE... asks Magika, all files in one run, and prints
 * each with its kind and how sure that is. The two files come with the Python package magika. */
#include <ctype.h>

#include "network.h"

enum { HALF = 1024, BLOCK = 4096, PADDING = 256, MOST = 1000 };

/* Blanks do not count: of the first 4096 bytes the first 1024 behind them, of the last 4096 the last 1024 before them. */
static bool features(const char *path, int32_t *out) {
  uint8_t front[BLOCK], back[BLOCK];
  FILE *f = fopen(path, "rb");
  if (!f) return perror(path), false;
  fseek(f, 0, SEEK_END);
  const long bytes = ftell(f), part = bytes < BLOCK ? bytes : BLOCK;
  rewind(f);
  size_t n = fread(front, 1, (size_t)part, f), a = 0, b = n;
  fseek(f, bytes - part, SEEK_SET);
  size_t m = fread(back, 1, (size_t)part, f), c = 0, d = m;
  fclose(f);
  while (a < b && isspace(front[a])) a++;
  while (d > c && isspace(back[d - 1])) d--;
  if (bytes <= BLOCK) { /* all of it is in both */
    while (b > a && isspace(front[b - 1])) b--;
    while (c < d && isspace(back[c])) c++;
  }
  for (size_t i = 0; i < HALF; i++) {
    out[i] = a + i < b ? front[a + i] : PADDING;
    out[2 * HALF - 1 - i] = d > c + i ? back[d - 1 - i] : PADDING;
  }
  return true;
}

/* The label of a number: the n-th text of the list "target_labels_space". */
static void label(const char *config, int64_t n, char out[32]) {
  const char *p = strstr(config, "\"target_labels_space\"");
  p = p ? strchr(p, '[') : NULL;
  for (; p && n > 0; n--) p = strchr(p + 1, ',');
  out[0] = 0;
  if (p) sscanf(p + 1, " \"%31[^\"]\"", out);
}

static rung_status guess(network *n, const char *config, char **path, int64_t files) {
  void *bytes;
  rung_tensor scores = {0};
  rung_status s = network_input(n, "bytes", (int64_t[]){files, 2 * HALF}, &bytes);
  for (int64_t i = 0; i < files && !s; i++)
    if (!features(path[i], (int32_t *)bytes + i * 2 * HALF)) return RUNG_IO;
  if (!s) s = rung_context_run(n->context);
  if (!s) s = network_output(n, "target_label", &scores);
  for (int64_t i = 0; i < files && !s; i++) {
    const float *row = (float *)scores.data + i * scores.extent[1];
    int64_t best = 0;
    for (int64_t k = 1; k < scores.extent[1]; k++)
      if (row[k] > row[best]) best = k;
    char name[32];
    label(config, best, name);
    printf("%s: %s %.4f\n", path[i], name, (double)row[best]);
  }
  return s;
}

int main(int argc, char **argv) {
  if (argc < 4 || argc > MOST + 3) return fprintf(stderr, "usage: filetype model.onnx config.min.json FILE...\n"), 2;
  static char config[1 << 16];
  FILE *f = fopen(argv[2], "rb");
  if (!f) return perror(argv[2]), 1;
  config[fread(config, 1, sizeof config - 1, f)] = 0;
  fclose(f);
  rung_error error = {0};
  rung_host *host = NULL;
  rung_device *device = NULL;
  network n = {0};
  rung_onnx_options options = rung_onnx_options_default();
  options.largest = MOST;
  rung_status s = rung_host_create(NULL, &error, &host);
  if (!s) s = rung_device_create(host, "cpu", NULL, &error, &device);
  if (!s) s = network_open(&n, device, argv[1], &options, NULL, 0, &error);
  const bool open = !s;
  if (!s) s = guess(&n, config, argv + 3, argc - 3);
  if (s) fprintf(stderr, "%s: %s\n", rung_status_text(s), open ? rung_context_message(n.context) : error.message);
  network_close(&n);
  rung_device_release(device);
  rung_host_release(host);
  return s ? 1 : 0;
}
