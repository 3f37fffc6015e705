/* SPDX-License-Identifier: MIT
 * The CUDA backend: one NVIDIA GPU, by driver and run-time compiler that are looked for when the device is created. */
#ifndef RUNG_CUDA_CUDA_H
#define RUNG_CUDA_CUDA_H

#include "plan/backend.h"

extern const rung_backend rung_backend_cuda;

#endif
