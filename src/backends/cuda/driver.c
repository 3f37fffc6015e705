/* SPDX-License-Identifier: MIT
 * Finding NVIDIA's driver and run-time compiler. */
#include "backends/cuda/driver.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/library.h"

typedef struct symbol {
  const char *name;
  size_t at; /* of the pointer in the table */
} symbol;

#define DRIVER(name, symbol, parameters)
#define COMPILER(name, symbol, parameters)
#define PRODUCTS(name, symbol, parameters)
#undef DRIVER
#define DRIVER(name, symbol, parameters) {symbol, offsetof(rung_cu_driver, name)},
static const symbol driver_symbols[] = {
#include "backends/cuda/symbols.def"
};
#undef DRIVER
#define DRIVER(name, symbol, parameters)
#undef COMPILER
#define COMPILER(name, symbol, parameters) {symbol, offsetof(rung_cu_compiler, name)},
static const symbol compiler_symbols[] = {
#include "backends/cuda/symbols.def"
};
#undef COMPILER
#define COMPILER(name, symbol, parameters)
#undef PRODUCTS
#define PRODUCTS(name, symbol, parameters) {symbol, offsetof(rung_cu_products, name)},
static const symbol product_symbols[] = {
#include "backends/cuda/symbols.def"
};

static rung_status fill(void *library, const char *what, const symbol *list, size_t count, void *table,
                        rung_error *error) {
  for (size_t i = 0; i < count; i++) {
    void *address = rung_library_symbol(library, list[i].name);
    if (!address)
      return rung_fail(error, RUNG_UNSUPPORTED, "cuda: %s has no %s; it is too old, CUDA 12.4 or later is needed", what,
                       list[i].name);
    memcpy((uint8_t *)table + list[i].at, &address, sizeof address);
  }
  return RUNG_OK;
}

rung_status rung_cu_driver_open(rung_cu_driver *driver, rung_error *error) {
  const char *given = getenv("RUNG_CUDA_DRIVER");
  const char *const own[] = {given, NULL};
  static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
  const bool asked = given && *given;
  *driver = (rung_cu_driver){.library = rung_library_open(asked ? own : names)};
  if (!driver->library && asked)
    return rung_fail(error, RUNG_UNSUPPORTED, "cuda: RUNG_CUDA_DRIVER is \"%s\", which is no library that opens",
                     given);
  if (!driver->library)
    return rung_fail(error, RUNG_UNSUPPORTED, "cuda: NVIDIA's driver (libcuda.so.1) is not on this machine");
  return fill(driver->library, "libcuda", driver_symbols, RUNG_COUNT(driver_symbols), driver, error);
}

rung_status rung_cu_compiler_open(rung_cu_compiler *compiler, rung_error *error) {
  const char *given = getenv("RUNG_NVRTC");
  const char *const own[] = {given, NULL};
  static const char *const names[] = {"libnvrtc.so.13",
                                      "libnvrtc.so.12",
                                      "libnvrtc.so",
                                      "/usr/local/cuda/lib64/libnvrtc.so",
                                      "/usr/local/cuda/lib/libnvrtc.so",
                                      "/usr/local/cuda-13.0/lib64/libnvrtc.so",
                                      "/usr/local/cuda-13.0/lib/libnvrtc.so",
                                      NULL};
  *compiler = (rung_cu_compiler){.library = rung_library_open(given && *given ? own : names)};
  if (!compiler->library)
    return rung_fail(error, RUNG_UNSUPPORTED,
                     "cuda: the run-time compiler (libnvrtc) is not found; RUNG_NVRTC can name its file");
  return fill(compiler->library, "libnvrtc", compiler_symbols, RUNG_COUNT(compiler_symbols), compiler, error);
}

bool rung_cu_products_open(rung_cu_products *products) {
  const char *given = getenv("RUNG_CUBLASLT");
  const char *const own[] = {given, NULL};
  static const char *const names[] = {"libcublasLt.so.13",
                                      "libcublasLt.so.12",
                                      "libcublasLt.so",
                                      "/usr/local/cuda/lib64/libcublasLt.so",
                                      "/usr/local/cuda/lib/libcublasLt.so",
                                      "/usr/local/cuda-13.0/lib64/libcublasLt.so",
                                      "/usr/local/cuda-13.0/lib/libcublasLt.so",
                                      NULL};
  rung_error error;
  *products = (rung_cu_products){.library = NULL};
  if (given && strcmp(given, "0") == 0) return false;
  products->library = rung_library_open(given && *given ? own : names);
  return products->library &&
         !fill(products->library, "libcublasLt", product_symbols, RUNG_COUNT(product_symbols), products, &error);
}
