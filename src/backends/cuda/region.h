/* SPDX-License-Identifier: MIT
 * Regions: runs of elementwise and row-local ops as one generated kernel. */
#ifndef RUNG_CUDA_REGION_H
#define RUNG_CUDA_REGION_H

#include "backends/cuda/kernel.h"

enum { RUNG_REGION_OPERANDS = RUNG_KERNEL_IN + RUNG_KERNEL_OUT, RUNG_REGION_VALUES = 64, RUNG_REGION_OPS = 48 };

/* A region as a list: values 0 .. inputs - 1 are the operands, each op makes one more. */
typedef struct rung_region_op {
  const rung_op *op;
  const void *attrs;
  int in[3];
  int n_in;
  int out;
  double constant; /* op NULL: a value that is this number */
} rung_region_op;
typedef struct rung_region_list {
  rung_region_op op[RUNG_REGION_OPS];
  uint8_t type[RUNG_REGION_VALUES]; /* of values */
  int ops, values, inputs, outputs;
  int output[RUNG_KERNEL_OUT]; /* values */
  int64_t columns;             /* of a row kernel; 0: element by element */
  bool eights; /* a row with a norm: threads have eight neighbouring columns, as those of a product that makes its own
                  row, so that sums have one order */
} rung_region_list;

/* The list of a node: one op, or the body of a fused one. False with the reason where no kernel can be made. */
bool rung_region_read(const rung_match *match, rung_region_list *out, char *why);
/* The kernel's text, and what stands in front of one or many. */
void rung_region_print_front(rung_text *out);
void rung_region_print(const rung_region_list *list, rung_text *out);
bool rung_region_has_norm(const rung_region_list *list);
/* How a row kernel cuts rows: a block has `part` times `threads` columns, all of them where a norm needs the whole. */
typedef struct rung_region_cut {
  int threads;
  int64_t part, blocks; /* blocks of a row */
} rung_region_cut;
rung_region_cut rung_region_cut_of(const rung_region_list *list);

/* One row made by every block of a product of one row (decode.c). */
enum { RUNG_REGION_ROW_THREADS = 512 };
typedef struct rung_region_row {
  bool early[RUNG_REGION_OPERANDS]; /* inputs that no kernel makes: weights */
  int x;                            /* the output that the product reads */
  int quantized;                    /* the value that is quantised for it, where it is a8 */
} rung_region_row;
/* The function make_x of kernels/decode.cu. All values are f32, f16 or bf16, the output x may be a8. */
void rung_region_print_row(const rung_region_list *list, const rung_region_row *row, rung_text *out);
/* The function after(v0, v1): a list of two inputs without rows, number by number; `value` is its result. */
void rung_region_print_after(const rung_region_list *list, int value, rung_text *out);
/* The list of a planned step. */
rung_status rung_region_of_step(const rung_cuda_prepare *in, rung_region_list *out);

bool rung_region_fits(const rung_match *match, char *why);
rung_status rung_region_prepare(const rung_cuda_prepare *in, rung_text *front);
rung_status rung_region_launch(const rung_cuda_step *step);

#endif
