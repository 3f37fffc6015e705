/* SPDX-License-Identifier: MIT
 * How fast a tokeniser reads on one thread.
 *
 *   tokens TOKENIZER TEXT [ROUNDS]
 *
 * TOKENIZER is a GGUF file or a tokenizer.json; TEXT holds documents, each ended by a zero byte. Prints the megabytes a
 * second of the best round, the number of ids and a digest of them, so that two programs can be compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map_file.h"
#include "formats/tokenizer_json.h"
#include "models/model.h"

static rung_status open_tokenizer(rung_host *host, const char *path, rung_error *error, rung_gguf **gguf,
                                  rung_tokenizer **out) {
  const rung_source source = rung_source_path(path);
  const size_t length = strlen(path);
  if (length > 5 && strcmp(path + length - 5, ".json") == 0)
    return rung_tokenizer_json(host, &source, NULL, error, out);
  const rung_status status = rung_gguf_open(host, &source, error, gguf);
  return status ? status : rung_gguf_tokenizer(*gguf, error, out);
}

static rung_status read_all(const rung_tokenizer *t, const rung_map *map, rung_error *error, rung_ids *ids) {
  const char *text = (const char *)map->data, *end = text + map->size;
  ids->count = 0;
  while (text < end) {
    const char *stop = memchr(text, 0, (size_t)(end - text));
    const size_t length = (size_t)((stop ? stop : end) - text);
    const rung_status status = rung_tokenizer_encode(t, text, length, 0, error, ids);
    if (status) return status;
    text += length + 1;
  }
  return RUNG_OK;
}

int main(int count, char **argument) {
  if (count < 3) {
    fprintf(stderr, "usage: tokens TOKENIZER TEXT [ROUNDS]\nexample: tokens model.gguf documents.bin 5\n");
    return 2;
  }
  rung_error error = {0};
  rung_host *host = NULL;
  rung_gguf *gguf = NULL;
  rung_tokenizer *t = NULL;
  rung_map map = {0};
  rung_ids ids = {0};
  const rung_source source = rung_source_path(argument[2]);
  rung_status status = rung_host_create(NULL, &error, &host);
  if (!status) status = open_tokenizer(host, argument[1], &error, &gguf, &t);
  if (!status) status = rung_map_open(&map, host, &source, &error);
  if (!status) {
    rung_ids_init(&ids, host);
    double best = 1e30;
    const int rounds = count > 3 ? atoi(argument[3]) : 5;
    for (int i = 0; i < rounds && !status; i++) {
      const uint64_t start = rung_clock_ns();
      status = read_all(t, &map, &error, &ids);
      const double spent = (double)(rung_clock_ns() - start);
      if (spent < best) best = spent;
    }
    uint64_t digest = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < ids.count; i++) digest = (digest ^ (uint32_t)ids.data[i]) * UINT64_C(0x100000001B3);
    if (!status) printf("%.3f %zu %016llx\n", (double)map.size * 1e3 / best, ids.count, (unsigned long long)digest);
    rung_ids_finish(&ids);
  }
  if (status) fprintf(stderr, "tokens: %s\n", error.message);
  rung_map_close(&map);
  rung_tokenizer_release(t);
  rung_gguf_release(gguf);
  rung_host_release(host);
  return status ? 1 : 0;
}
