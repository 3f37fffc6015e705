/* SPDX-License-Identifier: MIT
 * Shared libraries that are looked for when they are needed: nothing is linked against them. */
#ifndef RUNG_BASE_LIBRARY_H
#define RUNG_BASE_LIBRARY_H

/* The first of the names (ended by NULL) that opens; NULL if none does. */
void *rung_library_open(const char *const *names);
/* NULL if the library has no such symbol. A function's address is copied into a pointer to that function by memcpy. */
void *rung_library_symbol(void *library, const char *name);
void rung_library_close(void *library); /* NULL allowed */

#endif
