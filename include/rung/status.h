/* SPDX-License-Identifier: MIT
 * Status codes: how every fallible call of Rung reports what happened.
 *
 * A call that can fail returns a rung_status and gives its results through `out_` pointers, which come last. Nothing is
 * written to an `out_` pointer unless the status is RUNG_OK. Constructors and calls on shared objects take a rung_error
 * *, a fixed buffer of the caller's (NULL allowed), as the argument before the `out_` pointers; objects that belong to
 * one thread (graph, context, generator) keep their last message themselves.
 *
 * The library never aborts, exits or prints.
 */
#ifndef RUNG_STATUS_H
#define RUNG_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) || defined(__CYGWIN__)
#define RUNG_API
#elif defined(__GNUC__)
#define RUNG_API __attribute__((visibility("default")))
#else
#define RUNG_API
#endif
#if defined(__GNUC__)
#define RUNG_CHECKED __attribute__((warn_unused_result))
#else
#define RUNG_CHECKED
#endif

/* One row per code: name, value (frozen once released), text. */
#define RUNG_STATUS_MAP(X)                                                        \
  X(OK, 0, "ok")                                                                  \
  X(INVALID_ARGUMENT, 1, "an argument is not valid")                              \
  X(TYPE_MISMATCH, 2, "element types do not agree")                               \
  X(SHAPE_MISMATCH, 3, "extents do not agree")                                    \
  X(OUT_OF_RANGE, 4, "a size, index or key is outside what was declared")         \
  X(OUT_OF_MEMORY, 5, "memory could not be allocated, reserved or committed")     \
  X(OVER_BUDGET, 6, "the memory budget would be exceeded")                        \
  X(UNSUPPORTED, 7, "not supported by this version or device")                    \
  X(CORRUPT_FILE, 8, "a file or text is malformed")                               \
  X(NOT_FOUND, 9, "a named thing does not exist")                                 \
  X(IO, 10, "reading or writing failed")                                          \
  X(NOT_COMPILED, 11, "compiling is switched off and this size was not compiled") \
  X(NOT_LOADED, 12, "a weight was declared but has no value")                     \
  X(CANCELLED, 13, "cancelled by the caller")                                     \
  X(BUSY, 14, "the object is in use by a run")                                    \
  X(OVERFLOW, 15, "a size does not fit 64 bits or the address space")             \
  X(SYSTEM, 16, "the operating system refused a call")                            \
  X(INTERNAL, 17, "an invariant of the library does not hold; please report this")

typedef enum rung_status {
#define X(name, value, text) RUNG_##name = value,
  RUNG_STATUS_MAP(X)
#undef X
} rung_status;

enum { RUNG_MESSAGE_BYTES = 480 };

/* The caller's error buffer. `message` is always terminated; it names the op, tensor, field or file offset. */
typedef struct rung_error {
  rung_status status;
  char message[RUNG_MESSAGE_BYTES];
} rung_error;

/* The text of a status ("ok", ...); never NULL, also for values that are no status. */
RUNG_API const char *rung_status_text(rung_status status);
/* The name of a status without its prefix ("OUT_OF_MEMORY"); never NULL. */
RUNG_API const char *rung_status_name(rung_status status);

#ifdef __cplusplus
}
#endif
#endif
