/* SPDX-License-Identifier: MIT
 * The CPU backend as runtime/device.c lists it. */
#ifndef RUNG_CPU_CPU_H
#define RUNG_CPU_CPU_H

#include "plan/backend.h"

extern const rung_backend rung_backend_cpu;

#endif
