/* SPDX-License-Identifier: MIT
 * A program that sees nothing but the installed headers, in the common part of C11 and C++17. */
#include <stdio.h>
#include <string.h>

#include "all_headers.h"

int main(void) {
  rung_error error;
  rung_host *host = NULL;
  rung_host_options options = rung_host_options_default();
  options.memory_budget = 1 << 20;
  if (rung_host_create(&options, &error, &host) != RUNG_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  const bool right = rung_host_budget(host) == 1 << 20 && strcmp(rung_status_text(RUNG_OK), "ok") == 0;
  rung_host_release(host);
  return right ? 0 : 1;
}
