/* SPDX-License-Identifier: MIT
 * Inside fusing: fuse.c finds groups of nodes, fuse_emit.c makes fused nodes of them. */
#ifndef RUNG_PASSES_FUSE_H
#define RUNG_PASSES_FUSE_H

#include "passes/pass.h"

enum { RUNG_FUSE_MEMBERS = 32 };

typedef struct rung_fuse_group {
  uint32_t member[RUNG_FUSE_MEMBERS]; /* nodes, ascending */
  uint32_t count;
  bool closed, early; /* early: it stands where it was closed, members came behind that */
  uint32_t closed_at; /* the first reader outside */
} rung_fuse_group;

typedef struct rung_fuser {
  rung_pass_env *env;
  rung_rewrite rw;
  bool roots; /* epilogues of products; else regions without a root */
  rung_fuse_group *group;
  uint32_t groups;
  uint32_t *of; /* by node: its group, UINT32_MAX without */
  const uint32_t *uses;
  rung_value *inner; /* map for bodies, kept null between them */
} rung_fuser;

/* Members that are to become one node, and the values that they read from outside and give to the outside. */
typedef struct rung_fuse_run {
  const uint32_t *member;
  uint32_t count;
  uint32_t in[RUNG_KERNEL_IN], out[RUNG_KERNEL_OUT], n_in, n_out;
} rung_fuse_run;

/* Makes the fused node if the target has a kernel for it, else says why not. */
rung_status rung_fuse_emit(rung_fuser *f, const rung_fuse_run *run, char *why, size_t why_bytes, bool *out_is);

rung_status rung_pass_epilogues(rung_pass_env *env, const rung_graph *from, rung_graph *to);
rung_status rung_pass_regions(rung_pass_env *env, const rung_graph *from, rung_graph *to);

#endif
