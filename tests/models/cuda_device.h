/* SPDX-License-Identifier: MIT
 * Tests that need a GPU: is there one? */
#ifndef RUNG_TESTS_CUDA_DEVICE_H
#define RUNG_TESTS_CUDA_DEVICE_H

#include <rung/rung.h>

#include "test.h"

/* False, and why is printed: the test is skipped (exit 77). */
static inline bool cuda_is_here(void) {
  rung_host *host = NULL;
  rung_device *device = NULL;
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_host_create(NULL, &error, &host));
  const rung_status status = rung_device_create(host, "cuda", NULL, &error, &device);
  rung_device_release(device);
  rung_host_release(host);
  if (status) printf("skipped: %s\n", error.message);
  return status == RUNG_OK;
}

#endif
