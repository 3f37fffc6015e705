/* SPDX-License-Identifier: MIT
 * The false compiler, which compiles anything, and the false library of products, which multiplies nothing but looks
 * where it would. */
#include <stdio.h>

#include "device/fake_inside.h"

/* ---- the compiler */

EXPORT int nvrtcVersion(int *major, int *minor) {
  *major = 12;
  *minor = 8;
  return 0;
}
EXPORT int nvrtcCreateProgram(void **program, const char *text, const char *name, int headers,
                              const char *const *header, const char *const *header_name) {
  ENTER();
  (void)header, (void)header_name;
  if (!text || !*text || !name || headers) FAIL(wrong("a program without a text"));
  *program = add(PROGRAM);
  state.programs++;
  LEAVE();
}
EXPORT int nvrtcCompileProgram(void *program, int options, const char *const *option) {
  ENTER();
  if (!find(program, PROGRAM) || !options || !option) FAIL(INVALID);
  LEAVE();
}
EXPORT int nvrtcGetProgramLogSize(void *program, size_t *bytes) {
  ENTER();
  if (!find(program, PROGRAM)) FAIL(INVALID);
  *bytes = sizeof "error: a false one";
  LEAVE();
}
EXPORT int nvrtcGetProgramLog(void *program, char *log) {
  ENTER();
  if (!find(program, PROGRAM)) FAIL(INVALID);
  strcpy(log, "error: a false one");
  LEAVE();
}
EXPORT int nvrtcGetCUBINSize(void *program, size_t *bytes) {
  ENTER();
  if (!find(program, PROGRAM)) FAIL(INVALID);
  *bytes = sizeof magic;
  LEAVE();
}
EXPORT int nvrtcGetCUBIN(void *program, char *code) {
  ENTER();
  if (!find(program, PROGRAM)) FAIL(INVALID);
  memcpy(code, magic, sizeof magic);
  LEAVE();
}
EXPORT int nvrtcDestroyProgram(void **program) {
  ENTER();
  thing *t = find(*program, PROGRAM);
  if (!t) FAIL(INVALID);
  state.programs--;
  drop(t);
  *program = NULL;
  LEAVE();
}

/* ---- products: descriptions are kept, and what is multiplied must lie in memory */

static int make_product(void **out, kind k) {
  *out = add(k);
  state.products++;
  return 0;
}
static int drop_product(void *what, kind k) {
  thing *t = find(what, k);
  if (!t) return INVALID;
  state.products--;
  drop(t);
  return 0;
}
#define DESCRIPTION(create, destroy, set)                                         \
  EXPORT int create;                                                              \
  EXPORT int destroy(void *what) {                                                \
    ENTER();                                                                      \
    result = drop_product(what, PRODUCT);                                         \
    LEAVE();                                                                      \
  }                                                                               \
  EXPORT int set(void *what, int attribute, const void *value, size_t bytes) {    \
    ENTER();                                                                      \
    if (!find(what, PRODUCT) || attribute < 0 || !value || !bytes) FAIL(INVALID); \
    LEAVE();                                                                      \
  }
DESCRIPTION(cublasLtMatmulDescCreate(void **what, int compute, int scale), cublasLtMatmulDescDestroy,
            cublasLtMatmulDescSetAttribute)
DESCRIPTION(cublasLtMatmulPreferenceCreate(void **what), cublasLtMatmulPreferenceDestroy,
            cublasLtMatmulPreferenceSetAttribute)

EXPORT int cublasLtMatmulDescCreate(void **what, int compute, int scale) {
  ENTER();
  (void)compute, (void)scale;
  result = make_product(what, PRODUCT);
  LEAVE();
}
EXPORT int cublasLtMatmulPreferenceCreate(void **what) {
  ENTER();
  result = make_product(what, PRODUCT);
  LEAVE();
}
EXPORT int cublasLtCreate(void **handle) {
  ENTER_IN_CONTEXT();
  result = make_product(handle, PRODUCT);
  LEAVE();
}
EXPORT int cublasLtDestroy(void *handle) {
  ENTER_IN_CONTEXT();
  result = drop_product(handle, PRODUCT);
  LEAVE();
}
EXPORT int cublasLtMatrixLayoutCreate(void **shape, int type, uint64_t rows, uint64_t columns, int64_t pitch) {
  ENTER();
  if (!rows || !columns || pitch < (int64_t)rows) FAIL(wrong("a matrix of no shape"));
  result = make_product(shape, SHAPE);
  thing *t = *shape;
  t->rows = (int64_t)rows;
  t->columns = (int64_t)columns;
  t->pitch = pitch;
  t->element = type ? 2 : 4;
  LEAVE();
}
EXPORT int cublasLtMatrixLayoutDestroy(void *shape) {
  ENTER();
  result = drop_product(shape, SHAPE);
  LEAVE();
}
EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d, void *wish,
                                          int most, rung_cu_way *way, int *count) {
  ENTER();
  if (!find(handle, PRODUCT) || !find(product, PRODUCT) || !find(a, SHAPE) || !find(b, SHAPE) || !find(c, SHAPE) ||
      !find(d, SHAPE) || !find(wish, PRODUCT) || most < 1)
    FAIL(INVALID);
  memset(way, 0, sizeof *way);
  *count = 1;
  LEAVE();
}

static bool lies(const void *address, void *shape) {
  const thing *t = find(shape, SHAPE);
  return t && range((uint64_t)(uintptr_t)address, (size_t)((t->columns - 1) * t->pitch + t->rows) * (size_t)t->element,
                    "multiplying");
}

EXPORT int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *a, void *a_shape, const void *b,
                          void *b_shape, const void *beta, const void *c, void *c_shape, void *d, void *d_shape,
                          const rung_cu_way *way, void *workspace, size_t bytes, void *stream) {
  ENTER_IN_CONTEXT();
  if (!find(handle, PRODUCT) || !find(product, PRODUCT) || !alpha || !beta || !way) FAIL(INVALID);
  if (!lies(a, a_shape) || !lies(b, b_shape) || !lies(c, c_shape) || !lies(d, d_shape) ||
      !range((uint64_t)(uintptr_t)workspace, bytes, "multiplying"))
    FAIL(FAULT);
  result = ask(stream, &(work){.what = LAUNCH});
  state.multiplied++;
  LEAVE();
}
