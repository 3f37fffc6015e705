/* SPDX-License-Identifier: MIT
 * Fuzz target of chat templates: whatever the bytes are, a status, and with one a message; a text that was rendered is
 * UTF-8, and the same when it is rendered again.
 *
 * Input: the template, then perhaps a zero byte and the variables as a JSON object. */
#include <stdlib.h>
#include <string.h>

#include "text/jinja/jinja.h"
#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition) {
  if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char messages[] =
      "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"a "
      "b\"},{\"role\":\"assistant\",\"content\":null,"
      "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"x\":[1,2.5,true]}}}]}]";
  static const rung_jlimits limits = {.steps = 200000, .bytes = 4 << 20, .depth = 300};
  const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
  const size_t length = zero ? (size_t)(zero - data) : size, rest = zero ? size - length - 1 : 0;
  char *members = malloc(rest + 1);
  rung_host *host = NULL;
  must(members != NULL);
  if (rest) memcpy(members, zero + 1, rest);
  members[rest] = 0;
  if (rung_host_create(NULL, NULL, &host)) return 0;
  const rung_jvariable variable[] = {{.name = "messages", .json = messages, .json_bytes = sizeof messages - 1},
                                     {.name = "bos_token", .text = "<s>", .text_bytes = 3}};
  rung_error error = {0};
  rung_jtemplate *t = NULL;
  rung_status status = rung_jtemplate_create(host, (const char *)data, length, &error, &t);
  must(status ? error.message[0] != 0 && !t : t != NULL);
  for (int i = 0; t && i < 2; i++) {
    static char *first;
    static size_t first_bytes;
    char *text = NULL;
    size_t bytes = 0;
    status = rung_jtemplate_render(t, variable, 2, zero ? members : NULL, 1721999999, &limits, &error, &text, &bytes);
    must(status ? error.message[0] != 0 && !text : text != NULL);
    must(i == 0 || !status);
    if (status) break;
    must(rung_utf8_valid_prefix((const uint8_t *)text, bytes) == bytes);
    if (i) {
      must(bytes == first_bytes && memcmp(text, first, bytes) == 0);
      free(first);
    } else {
      first_bytes = bytes;
      first = malloc(bytes + 1);
      must(first != NULL);
      memcpy(first, text, bytes + 1);
    }
    rung_host_free(host, RUNG_MEMORY_host, text, bytes + 1);
  }
  rung_jtemplate_release(t);
  rung_host_release(host);
  free(members);
  return 0;
}
