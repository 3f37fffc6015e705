/* SPDX-License-Identifier: MIT
 * The reference backend. */
#ifndef RUNG_BACKENDS_REF_REF_H
#define RUNG_BACKENDS_REF_REF_H
#include "plan/backend.h"
extern const rung_backend rung_backend_ref;
#endif
