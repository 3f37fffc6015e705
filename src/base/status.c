/* SPDX-License-Identifier: MIT
 * Status texts, and filling error buffers. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

const char *rung_status_text(rung_status status) {
  switch (status) {
#define X(name, value, text) \
  case RUNG_##name:          \
    return text;
    RUNG_STATUS_MAP(X)
#undef X
  }
  return "not a status";
}

const char *rung_status_name(rung_status status) {
  switch (status) {
#define X(name, value, text) \
  case RUNG_##name:          \
    return #name;
    RUNG_STATUS_MAP(X)
#undef X
  }
  return "?";
}

/* Cuts back to a whole UTF-8 character if vsnprintf cut one in two. */
static void trim_partial(char *message) {
  const size_t length = strlen(message);
  size_t start = length;
  while (start > 0 && length - start < 4 && ((unsigned char)message[start - 1] & 0xC0) == 0x80) start--;
  if (start == 0) return;
  const unsigned char lead = (unsigned char)message[start - 1];
  const size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (need > length - start + 1) message[start - 1] = 0;
}

rung_status rung_fail_v(rung_error *error, rung_status status, const char *format, va_list args) {
  if (!error) return status;
  error->status = status;
  const int length = vsnprintf(error->message, sizeof error->message, format, args);
  if (length < 0) error->message[0] = 0;
  if (length >= (int)sizeof error->message) trim_partial(error->message);
  return status;
}

rung_status rung_fail(rung_error *error, rung_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  rung_fail_v(error, status, format, args);
  va_end(args);
  return status;
}

rung_status rung_fail_prefix(rung_error *error, rung_status status, const char *format, ...) {
  if (!error) return status;
  char old[RUNG_MESSAGE_BYTES];
  memcpy(old, error->message, sizeof old);
  va_list args;
  va_start(args, format);
  rung_fail_v(error, status, format, args);
  va_end(args);
  const size_t have = strlen(error->message);
  const size_t room = sizeof error->message - have;
  if (snprintf(error->message + have, room, ": %s", old) >= (int)room) trim_partial(error->message);
  return status;
}
