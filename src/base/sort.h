/* SPDX-License-Identifier: MIT
 * Heap sort: in place, no recursion, no bad case. The C library's qsort may allocate behind our back. */
#ifndef RUNG_BASE_SORT_H
#define RUNG_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>

/* Does a stand before b? `self` is the caller's. */
typedef bool rung_before_fn(const void *self, const void *a, const void *b);

enum { RUNG_SORT_BYTES = 64 }; /* most of an element */
/* Equal elements come out in any order. */
void rung_sort(void *data, size_t count, size_t bytes, rung_before_fn *before, const void *self);

#endif
