/* SPDX-License-Identifier: MIT
 * Status texts and error buffers. */
#include "base/status.h"
#include "test.h"

static void test_texts(void) {
  CHECK_STR(rung_status_name(RUNG_OK), "OK");
  CHECK_STR(rung_status_name(RUNG_OVER_BUDGET), "OVER_BUDGET");
  CHECK_STR(rung_status_text(RUNG_OK), "ok");
  CHECK_STR(rung_status_name((rung_status)9999), "?");
  CHECK_STR(rung_status_text((rung_status)-1), "not a status");
#define X(name, value, text) CHECK_EQ_I64(RUNG_##name, value);
  RUNG_STATUS_MAP(X)
#undef X
}

static void test_fill(void) {
  rung_error error = {RUNG_OK, ""};
  CHECK_STATUS(rung_fail(&error, RUNG_IO, "%s: %d", "file", 7), RUNG_IO);
  CHECK_STATUS(error.status, RUNG_IO);
  CHECK_STR(error.message, "file: 7");
  CHECK_STATUS(rung_fail(NULL, RUNG_BUSY, "nobody listens"), RUNG_BUSY);
  CHECK_STATUS(rung_fail_prefix(&error, RUNG_CORRUPT_FILE, "tensor '%s'", "w"), RUNG_CORRUPT_FILE);
  CHECK_STR(error.message, "tensor 'w': file: 7");
  CHECK_STATUS(rung_fail_prefix(NULL, RUNG_IO, "x"), RUNG_IO);
}

/* A message that is too long ends at a whole character, whatever the character's length. */
static void test_cut(void) {
  static const char *const characters[] = {"x", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
  for (size_t c = 0; c < RUNG_COUNT(characters); c++) {
    for (size_t lead = 0; lead < 4; lead++) {
      char text[1200] = "";
      for (size_t i = 0; i < lead; i++) strcat(text, "a");
      while (strlen(text) < 1000) strcat(text, characters[c]);
      rung_error error;
      CHECK_STATUS(rung_fail(&error, RUNG_IO, "%s", text), RUNG_IO);
      const size_t length = strlen(error.message), unit = strlen(characters[c]);
      CHECK(length < RUNG_MESSAGE_BYTES && length + unit >= RUNG_MESSAGE_BYTES);
      CHECK((length - lead) % unit == 0);
      CHECK_STATUS(rung_fail_prefix(&error, RUNG_IO, "and before it"), RUNG_IO);
      CHECK(strlen(error.message) + unit >= RUNG_MESSAGE_BYTES);
    }
  }
}

int main(void) {
  RUN(test_texts);
  RUN(test_fill);
  RUN(test_cut);
  return TEST_END();
}
