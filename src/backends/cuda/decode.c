/* SPDX-License-Identifier: MIT
 * Products of one row, which decoding consists of. Neighbouring products of the same row are one kernel, and the region
 * that makes the row is part of it: each block makes the whole row for itself, which costs less than another kernel and
 * the wait for it. What stands between two products and a third, number by number, is done where the two are made. The
 * plan is as for any number of rows; a run of one row takes these kernels in place of its steps. */
#include <string.h>

#include "backends/cuda/join.h"
#include "backends/cuda/matmul.h"
#include "backends/cuda/region.h"
#include "ops/op_table.h"

enum {
  MOST_MEMBERS = 4,
  SLOTS = 2, /* of a warp (kernels/decode.cu) */
  THREADS = RUNG_REGION_ROW_THREADS,
  WARPS = THREADS / 32,
  MOST_PANELS = 16,         /* of a block: its sums stand in shared memory */
  PANEL_BYTES = WARPS * 64, /* of sums */
  MOST_NORM = 8192,         /* columns that stand in registers */
  MOST_SHARED = 100 * 1024  /* so that blocks of two kernels share a processor */
};

struct row_own;
typedef struct row_reader {
  const struct row_own *own; /* NULL: none */
  uint32_t on;               /* so many steps behind */
} row_reader;

typedef struct row_own {
  int members;
  bool tiled, region, after;                        /* after: the step behind is done, up to the quantising */
  bool levels, ready;                               /* and much of that, too (kernels/decode.cu); x comes so */
  int64_t k;                                        /* numbers in the row of x */
  uint32_t x_shared, region_inputs, region_outputs; /* bytes; operands */
  const struct row_own *maker; /* whose kernel does a part of this one's step; both run or neither */
  uint32_t maker_back;         /* so many steps in front */
  row_reader *reader;          /* the other side of that */
} row_own;

/* As kernels/row.cu has it. */
typedef struct row_params {
  uint64_t base[RUNG_REGION_OPERANDS], x;
  struct {
    uint64_t w, y;
    int32_t rows, first, type, pad;
  } member[MOST_MEMBERS];
  int32_t units, whole, x_whole, pad;
} row_params;

/* ---- running */

static const rung_operand *operands_of(const rung_run *run, uint32_t step) {
  return &run->operand[run->plan->step[step].in];
}

static bool is_aligned(const rung_operand *o) { return (uint64_t)(uintptr_t)o->base % 16 == 0; }

static bool are_aligned(const rung_run *run, uint32_t index) {
  const rung_step *step = &run->plan->step[index];
  for (uint32_t i = 0; i < step->n_in; i++)
    if (!is_aligned(&run->operand[step->in + i])) return false;
  for (uint32_t i = 0; i < step->n_out; i++)
    if (!is_aligned(&run->operand[step->out + i])) return false;
  return true;
}

static bool own_applies(const row_own *own, const rung_run *run, uint32_t index) {
  const rung_operand *x = operands_of(run, index);
  for (uint32_t m = 0; m < (uint32_t)own->members; m++)
    if (!is_aligned(operands_of(run, index - m) + 1)) return false; /* copied in sixteens */
  for (int a = 0; a < x->rank - 1; a++)
    if (x->extent[a] != 1) return false;
  if (own->after && !are_aligned(run, index + 1)) return false;
  return own->region ? are_aligned(run, index - (uint32_t)own->members) : is_aligned(x);
}

static bool row_applies(const rung_cuda_prepared *prepared, const rung_run *run, uint32_t index) {
  uint32_t at = index;
  for (const row_own *own = prepared->own; own; own = own->maker) {
    if (!own_applies(own, run, at)) return false;
    at -= own->maker_back;
  }
  at = index;
  for (const row_own *own = prepared->own; own->reader->own; own = own->reader->own) {
    at += own->reader->on;
    if (!own_applies(own->reader->own, run, at)) return false;
  }
  return true;
}

/* Blocks of a kernel over tiles: one for each processor, or several where its sums would not fit. */
static int64_t tiled_blocks(int64_t processors, int64_t units, int64_t sides) {
  const int64_t blocks = processors * ((units + processors * MOST_PANELS - 1) / (processors * MOST_PANELS));
  return blocks < units / sides ? blocks : units / sides;
}
/* How many groups of 32 results such a kernel has in one block each: all, unless that made some blocks a panel longer. */
static int32_t whole_groups(int64_t blocks, int64_t groups) {
  return (int32_t)(2 * (groups % blocks) > blocks ? groups : groups / blocks * blocks);
}

static rung_status launch_row(const rung_cuda_step *step) {
  const row_own *own = step->prepared->own;
  const uint32_t first = step->index - (uint32_t)own->members + 1;
  row_params p = {.x = (uint64_t)(uintptr_t)step->args->in[0].base};
  for (int m = 0; m < own->members; m++) {
    const rung_step *s = &step->run->plan->step[first + (uint32_t)m];
    const rung_operand *w = &step->run->operand[s->in + 1], *y = &step->run->operand[s->out];
    p.member[m].w = (uint64_t)(uintptr_t)w->base;
    p.member[m].y = (uint64_t)(uintptr_t)y->base;
    p.member[m].rows = (int32_t)w->extent[0];
    p.member[m].first = p.units;
    p.member[m].type = y->type;
    p.units += own->tiled ? (int32_t)((w->extent[0] + 15) / 16) : (int32_t)w->extent[0];
  }
  if (own->region) {
    const rung_step *s = &step->run->plan->step[first - 1];
    for (uint32_t i = 0; i < s->n_in; i++) p.base[i] = (uint64_t)(uintptr_t)step->run->operand[s->in + i].base;
    for (uint32_t i = 0; i < s->n_out; i++)
      p.base[s->n_in + i] = (uint64_t)(uintptr_t)step->run->operand[s->out + i].base;
  }
  int64_t blocks = step->device->processors;
  uint32_t shared = own->x_shared;
  if (own->ready) {
    p.x = p.base[0];
    p.x_whole = whole_groups(tiled_blocks(blocks, own->k / 8, 2), own->k / 32);
  }
  if (own->tiled) {
    const int64_t sides = own->after ? 2 : 1, units = p.units / sides;
    blocks = tiled_blocks(blocks, p.units, sides);
    if (own->levels) p.whole = whole_groups(blocks, units / 2);
    if (blocks) shared += (uint32_t)((units + blocks - 1) / blocks * sides) * PANEL_BYTES;
  }
  return rung_cuda_emit(step, 0, blocks, 1, 1, THREADS, shared, &p, sizeof p);
}

static const rung_cuda_kernel row_kernel = {.row = {.name = "decode_row"},
                                            .unit = "decode",
                                            .function = {"decode", NULL},
                                            .launch = launch_row,
                                            .applies = row_applies};

/* ---- preparing */

typedef struct row_group {
  uint32_t first, members; /* steps */
  int64_t k;
  const rung_ref *x, *w;
  bool tiled;
  const rung_step *region; /* in front; NULL: none */
  rung_region_list *list;
  rung_region_row row;
  rung_region_list *after; /* of the step behind; NULL: none */
  int after_value;
  bool levels;          /* the reader multiplies levels, in tiles */
  const row_own *maker; /* whose kernel does a part of the region in front */
} row_group;

/* The variant of a product for few rows; NULL: none. */
static rung_cuda_prepared *few_of(const rung_cuda_looking *l, uint32_t s) {
  if (s >= l->plan->steps || l->plan->step[s].kind != RUNG_STEP_KERNEL) return NULL;
  const rung_step *step = &l->plan->step[s];
  for (uint32_t v = step->variant; v < step->variant + step->variants; v++)
    if (strncmp(l->prepared[v].kernel->row.name, "gemv_weights", 12) == 0) return &l->prepared[v];
  return NULL;
}

static bool is_dense_row(const rung_cuda_looking *l, const rung_ref *ref, int64_t k) {
  int64_t extent, stride;
  return ref->rank && rung_dims_is_constant(l->plan->dims, ref->extent[ref->rank - 1], &extent) && extent == k &&
         (ref->type == RUNG_TYPE_A8 ||
          (rung_dims_is_constant(l->plan->dims, ref->stride[ref->rank - 1], &stride) && stride == 1));
}

static bool take_product(const rung_cuda_looking *l, uint32_t s, row_group *g) {
  const rung_step *step = &l->plan->step[s];
  const rung_ref *x = rung_cuda_in_ref(l, step, 0), *w = rung_cuda_in_ref(l, step, 1);
  if (!few_of(l, s) || !rung_dims_is_constant(l->plan->dims, x->extent[x->rank - 1], &g->k)) return false;
  if (!rung_cuda_is_early(l, w)) return false;
  g->tiled = x->type == RUNG_TYPE_A8 && w->layout;
  if (!g->tiled && (x->type == RUNG_TYPE_A8 || (w->type != RUNG_TYPE_F16 && w->type != RUNG_TYPE_BF16))) return false;
  *g = (row_group){.first = s, .members = 1, .k = g->k, .x = x, .w = w, .tiled = g->tiled};
  return true;
}

static bool joins(const rung_cuda_looking *l, const row_group *g, uint32_t s) {
  row_group other;
  if (s >= l->plan->steps || !few_of(l, s) || !take_product(l, s, &other)) return false;
  if (!rung_cuda_same_ref(g->x, other.x) || g->w->type != other.w->type || g->w->layout != other.w->layout)
    return false;
  for (uint32_t i = 0; i < g->members; i++)
    if (rung_cuda_overlap(l, rung_cuda_out_ref(l, &l->plan->step[g->first + i], 0),
                          rung_cuda_out_ref(l, &l->plan->step[s], 0)))
      return false;
  return rung_cuda_lives_until(l, g->x, s) && !rung_cuda_overlap(l, g->x, rung_cuda_out_ref(l, &l->plan->step[s], 0));
}

/* Nothing that the kernel writes may lie where another of its blocks still reads. */
static bool is_apart(const rung_cuda_looking *l, const row_group *g, const rung_step *region) {
  const uint32_t last = g->first + g->members - 1;
  for (uint32_t i = 0; i < region->n_in; i++) {
    const rung_ref *in = rung_cuda_in_ref(l, region, i);
    if (!rung_cuda_lives_until(l, in, last)) return false;
    for (uint32_t o = 0; o < region->n_out; o++)
      if (!rung_cuda_same_ref(rung_cuda_out_ref(l, region, o), g->x) &&
          rung_cuda_overlap(l, in, rung_cuda_out_ref(l, region, o)))
        return false;
    for (uint32_t m = 0; m < g->members; m++)
      if (rung_cuda_overlap(l, in, rung_cuda_out_ref(l, &l->plan->step[g->first + m], 0))) return false;
  }
  return true;
}

static bool describe_region(const rung_cuda_looking *l, row_group *g, const rung_step *region) {
  rung_region_list *list = g->list;
  for (int v = 0; v < list->values; v++)
    if (!rung_cuda_is_float(list->type[v]) && list->type[v] != RUNG_TYPE_A8) return false;
  g->row = (rung_region_row){.x = -1, .quantized = -1};
  for (int i = 0; i < list->inputs; i++) {
    const rung_ref *in = rung_cuda_in_ref(l, region, (uint32_t)i);
    const uint8_t kind = l->plan->root[in->root].kind;
    if (!is_dense_row(l, in, g->k)) return false;
    g->row.early[i] = kind == RUNG_ROOT_WEIGHT || kind == RUNG_ROOT_CONSTANT;
  }
  for (int r = 0; r < list->outputs; r++) {
    const rung_ref *out = rung_cuda_out_ref(l, region, (uint32_t)r);
    if (!is_dense_row(l, out, g->k)) return false;
    if (rung_cuda_same_ref(out, g->x)) g->row.x = r;
    if (list->type[list->output[r]] == RUNG_TYPE_A8 && !rung_cuda_same_ref(out, g->x)) return false;
  }
  for (int i = 0; i < list->ops; i++)
    if (list->op[i].op == &rung_op_quantize_rows) g->row.quantized = list->op[i].in[0];
  list->columns = g->k;
  return g->row.x >= 0 && (!rung_region_has_norm(list) || g->k <= MOST_NORM);
}

/* The region of the step in front, where it can be part of the kernel. */
static rung_status find_region(const rung_cuda_looking *l, row_group *g) {
  if (!g->first || l->plan->step[g->first - 1].kind != RUNG_STEP_KERNEL) return RUNG_OK;
  const rung_step *region = &l->plan->step[g->first - 1];
  const rung_cuda_prepared *there = &l->prepared[region->variant];
  if (region->variants != 1 || !there->kernel->unit || strcmp(there->kernel->unit, "region") != 0 || there->absorbed)
    return RUNG_OK;
  if (!rung_cuda_dies_in(l, g->x, g->first + g->members - 1) || !is_apart(l, g, region)) return RUNG_OK;
  g->list = rung_arena_alloc(l->arena, sizeof *g->list);
  if (!g->list) return rung_fail(l->error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare a product");
  const rung_cuda_prepare in = {
      .device = l->self, .arena = l->arena, .plan = l->plan, .step = region, .error = l->error};
  RUNG_TRY(rung_region_of_step(&in, g->list));
  if (describe_region(l, g, region)) g->region = region;
  return RUNG_OK;
}

static bool is_half(int type) { return type == RUNG_TYPE_F16 || type == RUNG_TYPE_BF16; }
/* Of a tile; or of a piece of a row of floats, halved where the row of x leaves no room for more. */
static uint32_t slot_bytes(rung_type weight, rung_type x, bool tiled, int64_t k) {
  if (tiled) return weight == RUNG_TYPE_Q8_0 ? 2176 : 2304;
  return k * (is_half(x) ? 2 : 4) + WARPS * SLOTS * 2048 <= MOST_SHARED ? 2048 : 1024;
}
static int64_t padded(rung_type weight, bool tiled, int64_t k) {
  const int64_t tile = !tiled ? 1 : weight == RUNG_TYPE_Q8_0 ? 128 : 256;
  return (k + tile - 1) / tile * tile;
}
static uint32_t shared_of(const row_group *g) {
  const int64_t n = padded(g->w->type, g->tiled, g->k);
  const int64_t x = g->tiled ? n + n / 4 : n * (is_half(g->x->type) ? 2 : 4);
  return (uint32_t)(WARPS * SLOTS * slot_bytes(g->w->type, g->x->type, g->tiled, g->k) + x);
}

/* The two results that a group's kernel makes; false where it makes others. */
static bool two_results(const rung_cuda_looking *l, const row_group *g, const rung_ref **a, const rung_ref **b) {
  const rung_step *first = &l->plan->step[g->first];
  int64_t columns[2];
  if (g->members == 1 && first->n_out == 2) {
    *a = rung_cuda_out_ref(l, first, 0);
    *b = rung_cuda_out_ref(l, first, 1);
  } else if (g->members == 2 && first->n_out == 1 && first[1].n_out == 1) {
    *a = rung_cuda_out_ref(l, first, 0);
    *b = rung_cuda_out_ref(l, first + 1, 0);
  } else {
    return false;
  }
  for (int i = 0; i < 2; i++) {
    const rung_ref *r = i ? *b : *a;
    if (r->type != RUNG_TYPE_F32 || !rung_dims_is_constant(l->plan->dims, r->extent[r->rank - 1], &columns[i]))
      return false;
  }
  return columns[0] == columns[1] && columns[0] % 16 == 0;
}

/* Is what the steps behind do with two results part of this kernel? Both this group and the one that reads it look. */
static rung_status find_after(const rung_cuda_looking *l, row_group *g) {
  const uint32_t next = g->first + g->members;
  const rung_ref *a, *b;
  row_group reader;
  if (!two_results(l, g, &a, &b) || next + 1 >= l->plan->steps || !take_product(l, next + 1, &reader)) return RUNG_OK;
  while (reader.members < MOST_MEMBERS && joins(l, &reader, reader.first + reader.members)) reader.members++;
  if (shared_of(&reader) > MOST_SHARED) return RUNG_OK;
  RUNG_TRY(find_region(l, &reader));
  const rung_region_list *list = reader.list;
  if (!reader.region || list->inputs != 2 || list->outputs != 1) return RUNG_OK;
  if (!rung_cuda_same_ref(rung_cuda_in_ref(l, reader.region, 0), a) ||
      !rung_cuda_same_ref(rung_cuda_in_ref(l, reader.region, 1), b) || !rung_cuda_dies_in(l, a, next) ||
      !rung_cuda_dies_in(l, b, next))
    return RUNG_OK;
  if (rung_region_has_norm(list)) return RUNG_OK;
  g->after = reader.list;
  g->after_value = reader.row.quantized >= 0 ? reader.row.quantized : list->output[0];
  g->levels = g->tiled && reader.tiled && reader.k % 32 == 0;
  return RUNG_OK;
}

/* The other side: the region in front of this group has been done up to the quantising. */
static void shorten_region(const rung_cuda_looking *l, row_group *g) {
  if (!g->region || g->first < 2) return;
  const rung_cuda_prepared *maker = few_of(l, g->first - 2);
  if (!maker || !maker->one || !((const row_own *)maker->one->own)->after) return;
  g->maker = maker->one->own;
  rung_region_list *list = g->list;
  const bool quantized = g->row.quantized >= 0;
  *list = (rung_region_list){.inputs = 1, .values = quantized ? 2 : 1, .ops = quantized, .outputs = 1, .columns = g->k};
  list->type[0] = RUNG_TYPE_F32;
  list->type[1] = RUNG_TYPE_A8;
  list->op[0] = (rung_region_op){.op = &rung_op_quantize_rows, .n_in = 1, .out = 1};
  list->output[0] = quantized ? 1 : 0;
  g->row = (rung_region_row){.x = 0, .quantized = quantized ? 0 : -1};
}
static bool is_ready(const row_group *g) { return g->maker && g->maker->levels; }

void rung_cuda_put_row(const rung_cuda_row *row, rung_text *front) {
  rung_cuda_put_weights(row->weight, row->layout, front);
  rung_text_printf(front,
                   "#define WIDTH %lld\n#define PADDED %lld\n#define TILED %d\n#define SLOT %u\n#define X_HALF %d\n"
                   "#define MEMBERS %d\n#define JOINED %d\n#define AFTER %d\n#define LEVELS %d\n#define READY %d\n"
                   "typedef %s x_number;\n",
                   (long long)row->k, (long long)padded(row->weight, row->tiled, row->k), row->tiled,
                   slot_bytes(row->weight, row->x, row->tiled, row->k), is_half(row->x) ? (int)row->x : 0, row->members,
                   row->list != NULL, row->after != NULL, row->levels, row->ready, rung_cuda_number(row->x));
  rung_text_puts(front, rung_cuda_unit_text("row"));
  if (row->list || row->after) rung_text_puts(front, rung_cuda_unit_text("values"));
  if (row->list) rung_region_print_row(row->list, row->region, front);
  if (row->after) rung_region_print_after(row->after, row->after_value, front);
}

static rung_status prepare_row(const rung_cuda_looking *l, const row_group *g) {
  rung_cuda_prepared *one = rung_arena_alloc(l->arena, sizeof *one), *last = few_of(l, g->first + g->members - 1);
  row_own *own = rung_arena_alloc(l->arena, sizeof *own);
  row_reader *reader = rung_arena_alloc(l->arena, sizeof *reader);
  if (!one || !own || !reader) return rung_fail(l->error, RUNG_OUT_OF_MEMORY, "cuda: no memory to prepare a product");
  *reader = (row_reader){0};
  *own = (row_own){.members = (int)g->members,
                   .tiled = g->tiled,
                   .region = g->region != NULL,
                   .after = g->after != NULL,
                   .levels = g->levels,
                   .ready = is_ready(g),
                   .k = g->k,
                   .x_shared = shared_of(g),
                   .maker = g->maker,
                   .maker_back = g->members + 1,
                   .reader = reader};
  *one = (rung_cuda_prepared){.kernel = &row_kernel, .step = last->step, .own = own};
  const rung_cuda_row row = {.weight = g->w->type,
                             .layout = g->w->layout,
                             .x = g->x->type,
                             .k = g->k,
                             .members = (int)g->members,
                             .tiled = g->tiled,
                             .list = g->region && !is_ready(g) ? g->list : NULL,
                             .region = &g->row,
                             .after = g->after,
                             .after_value = g->after_value,
                             .levels = g->levels,
                             .ready = is_ready(g)};
  rung_text front;
  rung_text_init(&front, l->self->host);
  rung_cuda_put_row(&row, &front);
  rung_status status = rung_text_status(&front, l->error);
  if (!status) status = rung_cuda_compile(l->self, "decode", &front, row_kernel.function, 1, one->function, l->error);
  rung_text_finish(&front);
  RUNG_TRY(status);
  const uint32_t shared = own->x_shared + (g->tiled ? MOST_PANELS * PANEL_BYTES : 0);
  RUNG_TRY(rung_cuda_allow_shared(l->self, one->function[0], shared, l->error));
  if (g->maker) *g->maker->reader = (row_reader){.own = own, .on = own->maker_back};
  last->one = one;
  last->before = (uint8_t)(g->members - 1 + (g->region != NULL));
  for (uint32_t m = 0; m + 1 < g->members; m++) few_of(l, g->first + m)->ahead = (uint8_t)(g->members - 1 - m);
  if (g->region) l->prepared[g->region->variant].ahead = (uint8_t)g->members;
  return RUNG_OK;
}

rung_status rung_cuda_join_row(rung_cuda *self, const rung_plan *plan, rung_arena *arena, rung_cuda_prepared *prepared,
                               uint32_t step, rung_error *error) {
  const rung_cuda_looking l = {self, plan, arena, prepared, error};
  row_group g;
  const rung_cuda_prepared *few = few_of(&l, step);
  if (!rung_cuda_has_one_row(self) || !rung_cuda_is_wanted(row_kernel.row.name) || !few || few->one || few->ahead ||
      !take_product(&l, step, &g))
    return RUNG_OK;
  if (shared_of(&g) > MOST_SHARED) return RUNG_OK;
  while (g.members < MOST_MEMBERS && joins(&l, &g, g.first + g.members)) g.members++;
  RUNG_TRY(find_region(&l, &g));
  shorten_region(&l, &g);
  RUNG_TRY(find_after(&l, &g));
  return prepare_row(&l, &g);
}
