/* SPDX-License-Identifier: MIT
 * Everything. See the single headers: each is the manual of its part.
 *
 *   status.h tensor.h host.h source.h   status codes, element types, allocator and log, where bytes come from
 *   graph.h ops.h                       stating a model by hand or as text
 *   weights.h                           stores of named tensors
 *   onnx.h                              ONNX models as graphs
 *   compile.h program.h state.h         templates, programs, contexts, memory that outlives a run
 *   cache.h                             programs kept by size: exact cache, template entries, ladder
 *   model.h                             language models from files: tokens, prompts, generation
 *   chat.h                              conversations to text by a model's template
 *   embed.h                             texts as vectors
 *   tune.h                              measuring kernels, and keeping what was best
 *   trace.h                             what ran when
 */
#ifndef RUNG_RUNG_H
#define RUNG_RUNG_H

#include <rung/cache.h>
#include <rung/chat.h>
#include <rung/compile.h>
#include <rung/embed.h>
#include <rung/graph.h>
#include <rung/host.h>
#include <rung/model.h>
#include <rung/onnx.h>
#include <rung/ops.h>
#include <rung/program.h>
#include <rung/source.h>
#include <rung/state.h>
#include <rung/status.h>
#include <rung/store.h>
#include <rung/tensor.h>
#include <rung/trace.h>
#include <rung/tune.h>
#include <rung/weights.h>

#endif
