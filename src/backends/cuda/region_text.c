/* SPDX-License-Identifier: MIT
 * The text of regions' kernels, from the same rows that the reference and the CPU's kernels are made of. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/region.h"
#include "ops/attrs.h"
#include "ops/elementwise.h"
#include "ops/op_table.h"
#include "ops/shape.h"

bool rung_region_has_norm(const rung_region_list *list) {
  bool whole = false;
  for (int i = 0; i < list->ops; i++)
    whole |= list->op[i].op == &rung_op_rms_norm || list->op[i].op == &rung_op_layer_norm;
  return whole;
}

/* Fewer threads than a product's blocks have give the same sums where they have all columns at once: the others add
 * nothing. */
static rung_region_cut cut_eights(int64_t columns) {
  const int64_t groups = (columns + 7) / 8, all = (groups + 31) / 32 * 32, most = RUNG_REGION_ROW_THREADS;
  const int64_t threads = all < most ? all : most;
  return (rung_region_cut){.threads = (int)threads, .part = (groups + threads - 1) / threads * 8, .blocks = 1};
}

rung_region_cut rung_region_cut_of(const rung_region_list *list) {
  const bool whole = rung_region_has_norm(list);
  if (list->eights) return cut_eights(list->columns);
  const int64_t most = 256, rounded = (list->columns + 31) / 32 * 32;
  rung_region_cut cut = {.threads = (int)(rounded < most ? rounded : most), .part = 1};
  /* Several loads of a thread are on their way at once. */
  const int64_t all = (list->columns + cut.threads - 1) / cut.threads;
  cut.part = whole || all < 4 ? all : 4;
  cut.blocks = (list->columns + cut.part * cut.threads - 1) / (cut.part * cut.threads);
  return cut;
}

const char *rung_cuda_number(int type) {
  static const char *const names[] = {"float", "f16", "bf16", "double", "i8",  "i16", "i32",
                                      "i64",   "u8",  "u16",  "u32",    "u64", "u8"};
  return type <= RUNG_TYPE_BOOL ? names[type] : "u8";
}

/* What a value of a type is computed in. */
static const char *class_name(int type) {
  if (type == RUNG_TYPE_F64) return "double";
  if (rung_cuda_is_float(type)) return "float";
  return type >= RUNG_TYPE_U8 ? "u64" : "i64";
}

static void print_load(const rung_region_list *l, int k, const char *offset, rung_text *out) {
  const int type = l->type[k];
  const char *m = rung_cuda_number(type);
  if (rung_cuda_is_float(type))
    rung_text_printf(out, "get_float((const %s *)p.base[%d] + %s)", m, k, offset);
  else
    rung_text_printf(out, "(%s)((const %s *)p.base[%d])[%s]", class_name(type), m, k, offset);
}

static void print_store(const rung_region_list *l, int r, const char *value, const char *offset, rung_text *out) {
  const int type = l->type[l->output[r]], k = l->inputs + r;
  const char *m = rung_cuda_number(type);
  if (rung_cuda_is_float(type))
    rung_text_printf(out, "put_float((%s *)p.base[%d] + %s, %s);", m, k, offset, value);
  else
    rung_text_printf(out, "((%s *)p.base[%d])[%s] = (%s)%s;", m, k, offset, m, value);
}

/* A number that reads back as the same. */
static void print_number(double v, int type, rung_text *out) {
  if (!rung_type_is_float((rung_type)type)) {
    rung_text_printf(out, "(%s)%" PRId64 "ll", class_name(type), (int64_t)v);
  } else if (isnan(v) || isinf(v)) {
    rung_text_puts(out, isnan(v) ? "RUNG_NAN" : v > 0 ? "RUNG_INF" : "-RUNG_INF");
  } else {
    rung_text_printf(out, "(%s)", class_name(type));
    rung_text_double(out, v);
  }
}

/* The name of value k for element `index` of a thread's part of the row. */
static void print_value(const rung_region_list *l, int k, rung_text *out) {
  rung_text_printf(out, l->columns ? "v%d[k]" : "v%d", k);
}

static void print_cast(const rung_region_list *l, const rung_region_op *o, rung_text *out) {
  const int from = l->type[o->in[0]], to = l->type[o->out];
  const char *m = rung_cuda_number(to);
  rung_text_puts(out, "    { const auto x = ");
  print_value(l, o->in[0], out);
  rung_text_puts(out, "; ");
  print_value(l, o->out, out);
  if (to == RUNG_TYPE_BOOL)
    rung_text_puts(out, " = x != 0;");
  else if (rung_cuda_is_float(to))
    rung_text_printf(out, " = cast_float(x, (const %s *)0);", m);
  else if (to == RUNG_TYPE_F64)
    rung_text_puts(out, " = (double)x;");
  else if (rung_type_is_float((rung_type)from))
    rung_text_printf(out, " = whole<%s>((double)x);", m);
  else
    rung_text_printf(out, " = (%s)(%s)x;", class_name(to), m);
  rung_text_puts(out, " }\n");
}

static void print_row(const rung_region_list *l, const rung_region_op *o, rung_text *out) {
  static const char letter[] = "abc";
  const rung_row *row = rung_row_of(o->op);
  const int class_ = l->type[o->in[o->n_in - 1]], to = l->type[o->out];
  const bool floats = rung_type_is_float((rung_type)class_);
  rung_text_printf(out, "    { typedef %s T; ", class_name(class_));
  for (int i = 0; i < o->n_in; i++) {
    const char *t = row->selection && i == 0 ? "u64" : "T";
    rung_text_printf(out, "const %s %c = ", t, o->n_in == 1 ? 'x' : letter[i]);
    print_value(l, o->in[i], out);
    rung_text_puts(out, "; ");
  }
  const rung_row_attrs *attrs = o->attrs;
  for (int i = 0; i < row->parameters; i++) {
    rung_text_printf(out, "const T %c = ", "PQ"[i]);
    print_number(i ? attrs->q : attrs->p, class_, out);
    rung_text_puts(out, "; ");
  }
  print_value(l, o->out, out);
  const char *m = rung_cuda_number(to), *value = floats ? row->value : row->integer;
  if (row->to_bool)
    rung_text_printf(out, " = (%s) ? 1 : 0; }\n", value);
  else if (rung_cuda_is_float(to))
    rung_text_printf(out, " = round_to(%s, (const %s *)0); }\n", value, m);
  else if (to == RUNG_TYPE_F64)
    rung_text_printf(out, " = %s; }\n", value);
  else
    rung_text_printf(out, " = (%s)(%s)(%s); }\n", class_name(to), m, value);
}

static void print_elementwise(const rung_region_list *l, const rung_region_op *o, rung_text *out) {
  if (!o->op) {
    rung_text_puts(out, "    ");
    print_value(l, o->out, out);
    rung_text_puts(out, " = ");
    print_number(o->constant, l->type[o->out], out);
    rung_text_puts(out, ";\n");
  } else if (o->op == &rung_op_cast) {
    print_cast(l, o, out);
  } else {
    print_row(l, o, out);
  }
}

/* ---- element by element */

static void print_elements(const rung_region_list *l, rung_text *out) {
  const int operands = l->inputs + l->outputs;
  rung_text_puts(out,
                 "extern \"C\" __global__ void __launch_bounds__(256) region(const __grid_constant__ params p) {\n  "
                 "GO();\n  WAIT();\n"
                 "  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < p.count; i += (i64)gridDim.x * "
                 "blockDim.x) {\n");
  for (int k = 0; k < operands; k++) rung_text_printf(out, "    i64 o%d = 0;\n", k);
  rung_text_puts(out, "    if (p.rank == 1) {\n");
  for (int k = 0; k < operands; k++) rung_text_printf(out, "      o%d = i * p.stride[%d][0];\n", k, k);
  rung_text_puts(out,
                 "    } else {\n      i64 rest = i;\n      for (int a = p.rank - 1; a >= 0; a--) {\n"
                 "        const i64 n = p.extent[a], q = rest < 0x7fffffff ? (i64)((u32)rest / (u32)n) : rest / n, "
                 "at = rest - q * n;\n        rest = q;\n");
  for (int k = 0; k < operands; k++) rung_text_printf(out, "        o%d += at * p.stride[%d][a];\n", k, k);
  rung_text_puts(out, "      }\n    }\n");
  for (int k = 0; k < l->inputs; k++) {
    char offset[8] = {'o', (char)('0' + k), 0};
    rung_text_printf(out, "    const %s v%d = ", class_name(l->type[k]), k);
    print_load(l, k, offset, out);
    rung_text_puts(out, ";\n");
  }
  for (int i = 0; i < l->ops; i++) {
    rung_text_printf(out, "    %s v%d;\n", class_name(l->type[l->op[i].out]), l->op[i].out);
    print_elementwise(l, &l->op[i], out);
  }
  for (int r = 0; r < l->outputs; r++) {
    rung_text text;
    rung_text_init(&text, out->host);
    rung_text_printf(&text, "v%d", l->output[r]);
    rung_text name;
    rung_text_init(&name, out->host);
    rung_text_printf(&name, "o%d", l->inputs + r);
    rung_text_puts(out, "    ");
    if (text.data && name.data) print_store(l, r, text.data, name.data, out);
    out->failed |= text.failed || name.failed;
    rung_text_puts(out, "\n");
    rung_text_finish(&text);
    rung_text_finish(&name);
  }
  rung_text_puts(out, "  }\n}\n");
}

/* ---- row by row: a thread has columns t, t + threads, ... of all values */

static const char each[] =
    "#pragma unroll\n  for (int k = 0; k < PART; k++) {\n    const int c = COLUMN(k); (void)c;\n";

static void print_norm(const rung_region_list *l, const rung_region_op *o, rung_text *out) {
  const bool centred = o->op == &rung_op_layer_norm;
  const double epsilon = ((const rung_norm_attrs *)o->attrs)->epsilon;
  const int x = o->in[0];
  rung_text_printf(out, "  float mean%d = 0, scale%d = 0;\n", o->out, o->out);
  if (centred) {
    rung_text_printf(
        out, "  %s    if (c < COLUMNS) mean%d += v%d[k];\n  }\n  mean%d = block_sum(mean%d, shared) / COLUMNS;\n", each,
        o->out, x, o->out, o->out);
  }
  rung_text_printf(
      out, "  %s    if (c < COLUMNS) { const float d = v%d[k] - mean%d; scale%d = fmaf(d, d, scale%d); }\n  }\n", each,
      x, o->out, o->out, o->out);
  rung_text_printf(out, "  scale%d = 1.0f / sqrtf(block_sum(scale%d, shared) / COLUMNS + ", o->out, o->out);
  print_number(epsilon, RUNG_TYPE_F32, out);
  rung_text_printf(out, ");\n  %s    float y = (v%d[k] - mean%d) * scale%d;\n", each, x, o->out, o->out);
  if (o->n_in > 1) rung_text_printf(out, "    y *= v%d[k];\n", o->in[1]);
  if (o->n_in > 2) rung_text_printf(out, "    y += v%d[k];\n", o->in[2]);
  rung_text_printf(out, "    v%d[k] = round_to(y, (const %s *)0);\n  }\n", o->out, rung_cuda_number(l->type[o->out]));
}

static void print_quantize(const rung_region_list *l, const rung_region_op *o, rung_text *out) {
  int k = l->inputs;
  for (int r = 0; r < l->outputs; r++)
    if (l->output[r] == o->out) k = l->inputs + r;
  if (l->eights)
    rung_text_printf(
        out,
        "#pragma unroll\n  for (int k = 0; k < PART; k += 8) quantize_eight(v%d + k, (a8_block *)p.base[%d] + o%d, "
        "COLUMN(k) / 8, COLUMN(k) < COLUMNS);\n",
        o->in[0], k, k);
  else
    rung_text_printf(out, "  %s    if (c < COLUMNS) quantize(v%d[k], (a8_block *)p.base[%d] + o%d + c / 32);\n  }\n",
                     each, o->in[0], k, k);
}

static void print_rows(const rung_region_list *l, rung_text *out) {
  const int operands = l->inputs + l->outputs;
  const rung_region_cut cut = rung_region_cut_of(l);
  rung_text_printf(out, "#define COLUMNS %" PRId64 "\n#define THREADS %d\n#define PART %" PRId64 "\n", l->columns,
                   cut.threads, cut.part);
  rung_text_puts(
      out, l->eights
               ? "#undef COLUMN\n#define COLUMN(k) (8 * ((int)threadIdx.x + (k) / 8 * THREADS) + (k) % 8)\n"
               : "#undef COLUMN\n#define COLUMN(k) (blockIdx.y * PART * THREADS + threadIdx.x + (k) * THREADS)\n");
  rung_text_puts(out,
                 "extern \"C\" __global__ void __launch_bounds__(THREADS) region(const __grid_constant__ params p) {\n"
                 "  __shared__ float shared[32];\n  GO();\n  i64 rest = blockIdx.x;\n");
  for (int k = 0; k < operands; k++) rung_text_printf(out, "  i64 o%d = 0;\n", k);
  rung_text_puts(out,
                 "  for (int a = p.rank - 2; a >= 0; a--) {\n    const i64 n = p.extent[a], q = rest / n, at = rest - "
                 "q * n;\n    rest = q;\n");
  for (int k = 0; k < operands; k++) rung_text_printf(out, "    o%d += at * p.stride[%d][a];\n", k, k);
  rung_text_puts(out, "  }\n  WAIT();\n");
  for (int k = 0; k < l->inputs; k++) {
    char offset[64];
    snprintf(offset, sizeof offset, "o%d + c * p.stride[%d][p.rank - 1]", k, k);
    rung_text_printf(out, "  %s v%d[PART];\n  %s    v%d[k] = c < COLUMNS ? ", class_name(l->type[k]), k, each, k);
    print_load(l, k, offset, out);
    rung_text_printf(out, " : (%s)0;\n  }\n", class_name(l->type[k]));
  }
  for (int i = 0; i < l->ops; i++) {
    const rung_region_op *o = &l->op[i];
    if (o->op == &rung_op_quantize_rows) {
      print_quantize(l, o, out);
      continue;
    }
    rung_text_printf(out, "  %s v%d[PART];\n", class_name(l->type[o->out]), o->out);
    if (o->op == &rung_op_rms_norm || o->op == &rung_op_layer_norm) {
      print_norm(l, o, out);
      continue;
    }
    rung_text_printf(out, "  %s", each);
    print_elementwise(l, o, out);
    rung_text_puts(out, "  }\n");
  }
  for (int r = 0; r < l->outputs; r++) {
    if (l->type[l->output[r]] == RUNG_TYPE_A8) continue;
    const int k = l->inputs + r;
    char value[16], offset[64];
    snprintf(value, sizeof value, "v%d[k]", l->output[r]);
    snprintf(offset, sizeof offset, "o%d + c * p.stride[%d][p.rank - 1]", k, k);
    rung_text_printf(out, "  %s    if (c < COLUMNS) ", each);
    print_store(l, r, value, offset, out);
    rung_text_puts(out, "\n  }\n");
  }
  rung_text_puts(out, "}\n");
}

/* ---- one row, by every block of a product that reads it (kernels/decode.cu): a thread has eight neighbouring columns
 * at a time. What a norm needs whole stands in registers; without one the columns come in rounds. */

static void print_inputs(const rung_region_list *l, const rung_region_row *row, bool early, rung_text *out) {
  for (int k = 0; k < l->inputs; k++) {
    if (row->early[k] != early) continue;
    rung_text_printf(out, "  for (int j = 0; j < PART / 8; j++) load_8(v%d + 8 * j, (const %s *)p.base[%d], %s);\n", k,
                     rung_cuda_number(l->type[k]), k, early ? "GROUP_AT(j)" : "real ? GROUP_AT(j) : GROUPS");
  }
}
static void print_arrays(const rung_region_list *l, const rung_region_row *row, bool early, rung_text *out) {
  for (int k = 0; k < l->inputs; k++)
    if (row->early[k] == early) rung_text_printf(out, "  float v%d[PART];\n", k);
}

static void print_outputs(const rung_region_list *l, const rung_region_row *row, rung_text *out) {
  for (int r = 0; r < l->outputs; r++) {
    const int v = l->output[r];
    if (r == row->x) {
      const char *put = l->type[v] == RUNG_TYPE_A8 ? "quantize_8" : "keep_8";
      const int from = l->type[v] == RUNG_TYPE_A8 ? row->quantized : v;
      rung_text_printf(out, "  for (int j = 0; j < PART / 8; j++) %s(v%d + 8 * j, GROUP_AT(j), image);\n", put, from);
    } else {
      rung_text_printf(
          out, "  for (int j = 0; real && j < PART / 8; j++) store_8((%s *)p.base[%d], GROUP_AT(j), v%d + 8 * j);\n",
          rung_cuda_number(l->type[v]), l->inputs + r, v);
    }
  }
}

void rung_region_print_row(const rung_region_list *l, const rung_region_row *row, rung_text *out) {
  const bool whole = rung_region_has_norm(l);
  const int64_t rounds = (l->columns + 8 * RUNG_REGION_ROW_THREADS - 1) / (8 * RUNG_REGION_ROW_THREADS);
  /* Without a norm in batches of rounds, so that their loads are on their way together; values stand in registers. */
  const int64_t most = whole || l->values <= 2 ? 4
                       : l->values <= 4        ? 2
                                               : 1,
                batch = whole || rounds < most ? rounds : most;
  rung_text_printf(out, "#define COLUMNS %" PRId64 "\n#define PART %" PRId64 "\n", l->columns, 8 * batch);
  rung_text_puts(out,
                 "#define GROUP_AT(j) (first + (int)threadIdx.x + (j) * THREADS)\n"
                 "#define COLUMN(k) (8 * GROUP_AT((k) / 8) + (k) % 8)\n"
                 "__device__ __forceinline__ void make_x(const step_params &p, float *shared, u8 *image) {\n");
  if (whole) {
    rung_text_puts(out, "  const int first = 0;\n");
    print_arrays(l, row, true, out);
    print_inputs(l, row, true, out);
  }
  rung_text_puts(out, "  twice(real) {\n  if (real) WAIT();\n");
  if (!whole) {
    rung_text_puts(out, "  for (int first = 0; first < (real ? GROUPS : 1); first += THREADS * PART / 8) {\n");
    print_arrays(l, row, true, out);
    print_inputs(l, row, true, out);
  }
  print_arrays(l, row, false, out);
  print_inputs(l, row, false, out);
  for (int i = 0; i < l->ops; i++) {
    const rung_region_op *o = &l->op[i];
    if (o->op == &rung_op_quantize_rows) continue;
    rung_text_printf(out, "  float v%d[PART];\n", o->out);
    if (o->op == &rung_op_rms_norm || o->op == &rung_op_layer_norm) {
      print_norm(l, o, out);
      continue;
    }
    rung_text_printf(out, "  %s", each);
    print_elementwise(l, o, out);
    rung_text_puts(out, "  }\n");
  }
  print_outputs(l, row, out);
  rung_text_puts(out, whole ? "  }\n}\n" : "  }\n  }\n}\n");
}

void rung_region_print_after(const rung_region_list *list, int value, rung_text *out) {
  rung_region_list l = *list;
  l.columns = 0; /* values have no index */
  rung_text_puts(out, "__device__ __forceinline__ float after(float v0, float v1) {\n");
  for (int i = 0; i < l.ops; i++) {
    if (l.op[i].op == &rung_op_quantize_rows) continue;
    rung_text_printf(out, "    float v%d;\n", l.op[i].out);
    print_elementwise(&l, &l.op[i], out);
  }
  rung_text_printf(out, "  return v%d;\n}\n", value);
}

void rung_region_print_front(rung_text *out) {
  rung_text_puts(out, rung_cuda_unit_text("values"));
  rung_text_printf(out,
                   "struct params {\n  u8 *base[%d];\n  i64 count;\n  i32 rank, pad;\n  i64 extent[%d];\n"
                   "  i64 stride[%d][%d];\n};\n",
                   RUNG_REGION_OPERANDS, RUNG_MAX_RANK, RUNG_REGION_OPERANDS, RUNG_MAX_RANK);
}

void rung_region_print(const rung_region_list *list, rung_text *out) {
  if (list->columns)
    print_rows(list, out);
  else
    print_elements(list, out);
}
