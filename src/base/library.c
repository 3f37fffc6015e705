/* SPDX-License-Identifier: MIT
 * Opening shared libraries at run time. */
#include "base/library.h"

#include <dlfcn.h>
#include <stddef.h>

void *rung_library_open(const char *const *names) {
  for (; *names; names++) {
    void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
  }
  return NULL;
}

void *rung_library_symbol(void *library, const char *name) { return library ? dlsym(library, name) : NULL; }

void rung_library_close(void *library) {
  if (library) dlclose(library);
}
