/* SPDX-License-Identifier: MIT
 * Nearest neighbours: nearest MODEL_FOLDER LINES.txt embeds the lines of a file, then answers each line of standard
 * input with the three of them that are nearest in meaning. */
#include <rung/rung.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100000, WIDTH = 4096, BEST = 3 };
typedef struct lines {
  char *text[MOST];
  rung_token_list ids[MOST];
  size_t count;
} lines;

/* One line of a file as ids; false at its end. Long lines are cut. */
static rung_status next(FILE *file, rung_encoder *encoder, char **text, rung_token_list *ids) {
  char line[WIDTH];
  int32_t *own;
  *text = NULL;
  if (!fgets(line, sizeof line, file)) return RUNG_OK;
  line[strcspn(line, "\r\n")] = 0;
  const rung_status s = rung_encoder_tokens(encoder, line, strlen(line), true, &own, &ids->count);
  if (s) return s;
  ids->ids = own;
  *text = malloc(strlen(line) + 1);
  return *text ? (strcpy(*text, line), RUNG_OK) : RUNG_OUT_OF_MEMORY;
}

static void answer(const lines *all, const float *vectors, const float *query, int64_t dims) {
  size_t best[BEST + 1];
  float score[BEST + 1];
  int found = 0;
  for (size_t i = 0; i < all->count; i++) { /* vectors have length 1: the product is the cosine of the angle */
    float sum = 0;
    for (int64_t d = 0; d < dims; d++) sum += vectors[(int64_t)i * dims + d] * query[d];
    int at = found;
    for (; at > 0 && score[at - 1] < sum; at--) score[at] = score[at - 1], best[at] = best[at - 1];
    score[at] = sum, best[at] = i;
    if (found < BEST) found++;
  }
  for (int i = 0; i < found; i++) printf("%6.3f  %s\n", (double)score[i], all->text[best[i]]);
  fflush(stdout);
}

static rung_status serve(rung_model *model, rung_encoder *encoder, FILE *file, lines *all) {
  rung_encoder_info info;
  rung_encoder_get_info(encoder, &info);
  rung_status s = RUNG_OK;
  while (!s && all->count < MOST) {
    s = next(file, encoder, &all->text[all->count], &all->ids[all->count]);
    if (s || !all->text[all->count]) break;
    all->count++;
  }
  float *vectors = malloc((all->count + 1) * (size_t)info.dims * sizeof *vectors);
  if (!s) s = vectors ? rung_encoder_run(encoder, all->ids, all->count, vectors) : RUNG_OUT_OF_MEMORY;
  while (!s) {
    char *text;
    rung_token_list ids;
    s = next(stdin, encoder, &text, &ids);
    if (s || !text) break;
    float *query = vectors + all->count * (size_t)info.dims;
    s = rung_encoder_run(encoder, &ids, 1, query);
    if (!s) answer(all, vectors, query, info.dims);
    rung_ids_free(model, (int32_t *)ids.ids, ids.count);
    free(text);
  }
  free(vectors);
  return s;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: nearest MODEL_FOLDER LINES.txt\n"), 2;
  rung_error error = {0};
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_model *model = NULL;
  rung_encoder *encoder = NULL;
  static lines all;
  FILE *file = fopen(argv[2], "rb");
  if (!file) return perror(argv[2]), 1;
  const rung_source folder = rung_source_path(argv[1]);
  rung_status s = rung_host_create(NULL, &error, &host);
  if (!s) s = rung_device_create(host, "cpu", NULL, &error, &device);
  if (!s) s = rung_model_open(device, &folder, NULL, &error, &model);
  if (!s) s = rung_encoder_create(model, NULL, &error, &encoder);
  if (!s) s = serve(model, encoder, file, &all);
  if (s) fprintf(stderr, "%s: %s\n", rung_status_text(s), encoder ? rung_encoder_message(encoder) : error.message);
  for (size_t i = 0; i < all.count; i++)
    rung_ids_free(model, (int32_t *)all.ids[i].ids, all.ids[i].count), free(all.text[i]);
  fclose(file);
  rung_encoder_destroy(encoder);
  rung_model_release(model);
  rung_device_release(device);
  rung_host_release(host);
  return s ? 1 : 0;
}
