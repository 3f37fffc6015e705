/* SPDX-License-Identifier: MIT
 * All bytes that a host has counted, of every class: what a test finds again once it has given everything back. */
#ifndef RUNG_TESTS_HELD_H
#define RUNG_TESTS_HELD_H

#include <rung/host.h>

static inline uint64_t held(const rung_host *host) {
  const rung_memory m = rung_host_memory(host);
#define X(name, text) +m.name
  return 0 RUNG_MEMORY_MAP(X);
#undef X
}

#endif
