/* SPDX-License-Identifier: MIT
 * Matrix products: operands, division among threads, the loops around tiles, finished results.
 *
 * A task is a range of rows times a range of columns, and takes columns in chunks: as many as are held back for a strip.
 *
 *   panels read as they lie                          panels that are made into something
 *     for chunk of k whose panels stay near            for chunk of k (all of k where no panels are filled)
 *       for tile_rows rows                               for tile_panels panels
 *         for tile_panels panels                           for tile_rows rows
 *           tile                                             tile
 *         strips                                         strips
 *
 * On the left a block of rows and its results stay in the first cache, and panels come from the second; on the right
 * what was made of panels (levels unpacked, numbers widened) serves all rows. */
#include "backends/cpu/matmul.h"

#include <string.h>

#include "backends/cpu/simd/transpose.h"
#include "ops/attrs.h"
#include "ops/op_table.h"

/* ---- operands */

/* What prepare leaves for run inside a fused step. */
typedef struct prepared {
  uint32_t a, b; /* operands of the step */
  const void *attrs;
  int64_t members;
  rung_cpu_strip strip;
} prepared;

static int64_t unit_bytes(const rung_operand *o) { return rung_type_get((rung_type)o->type)->bytes; }

/* Bytes between neighbours along an axis; the last one of a block type is dense. */
static int64_t axis_bytes(const rung_operand *o, int axis) { return o->stride[axis] * unit_bytes(o); }

/* Do axes [0, end) lie so that one distance, that of the last of them, leads from row to row? */
static bool one_distance(const rung_operand *o, int end) {
  int64_t next = o->stride[end - 1] * o->extent[end - 1];
  for (int i = end - 1; i-- > 0;) {
    if (o->extent[i] == 1) continue;
    if (o->stride[i] != next) return false;
    next *= o->extent[i];
  }
  return true;
}

void rung_product_resolve(const rung_args *args, bool grouped, rung_product *out_product) {
  const prepared *in = args->prepared;
  const void *attrs = in ? in->attrs : args->attrs;
  const rung_operand *a = &args->in[in ? in->a : 0], *b = &args->in[in ? in->b : 1];
  rung_product p = {.args = args, .a_operand = a, .b_operand = b, .y_operand = in ? NULL : &args->out[0], .members = 1};
  if (in) {
    p.strip = in->strip;
    p.members = in->members;
  } else if (grouped && ((const rung_grouped_matmul_attrs *)attrs)->interleave) {
    p.members = args->n_out;
  }
  p.packed = b->layout != 0;
  p.transposed = p.packed || grouped || ((const rung_matmul_attrs *)attrs)->transpose_b;
  p.k = a->extent[a->rank - 1];
  p.n = b->extent[b->rank - (p.transposed ? 2 : 1)];
  p.a_row = axis_bytes(a, a->rank - 2);
  p.a_k = axis_bytes(a, a->rank - 1);
  p.b_n = axis_bytes(b, b->rank - (p.transposed ? 2 : 1));
  p.b_k = axis_bytes(b, b->rank - (p.transposed ? 1 : 2));
  if (p.y_operand) p.y_row = axis_bytes(p.y_operand, p.y_operand->rank - 2);
  p.batches = 1;
  p.m = a->extent[a->rank - 2];
  /* Against a matrix all rows of a are alike; where no single distance leads through them, batches do. */
  const rung_operand *rows = p.y_operand ? p.y_operand : a;
  p.leading = rows->rank - 2;
  if (b->rank == 2 && one_distance(a, a->rank - 1) && (!p.y_operand || one_distance(p.y_operand, p.leading + 1))) {
    for (int i = 0; i < p.leading; i++) p.m *= rows->extent[i];
    p.leading = 0;
  }
  for (int i = 0; i < p.leading; i++) p.batches *= rows->extent[i];
  *out_product = p;
}

/* Bytes from the leading index of y, aligned at the last axis; an extent of 1 stands still. */
static int64_t leading_bytes(const rung_operand *o, const int64_t *index, int leading) {
  int64_t at = 0;
  for (int i = 0; i < leading; i++) {
    const int axis = o->rank - 2 - leading + i;
    if (axis >= 0 && o->extent[axis] != 1) at += index[i] * axis_bytes(o, axis);
  }
  return at;
}

static void enter_batch(rung_product *p, int64_t batch) {
  const rung_operand *rows = p->y_operand ? p->y_operand : p->a_operand;
  int64_t index[RUNG_MAX_RANK] = {0};
  int64_t rest = batch;
  for (int i = p->leading; i-- > 0;) {
    index[i] = rest % rows->extent[i];
    rest /= rows->extent[i];
  }
  p->first_row = batch * p->m;
  p->a = p->a_operand->base + leading_bytes(p->a_operand, index, p->leading);
  p->b = p->b_operand->base + (p->b_operand->rank > 2 ? leading_bytes(p->b_operand, index, p->leading) : 0);
  if (p->y_operand) p->y = p->y_operand->base + leading_bytes(p->y_operand, index, p->leading);
}

/* ---- division */

typedef struct division {
  int64_t blocks;       /* of rows, evenly sized, at most tile_rows each */
  int64_t row_parts;    /* ranges of blocks */
  int64_t units;        /* of 32 columns of every member */
  int64_t column_parts; /* ranges of units */
} division;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

/* Enough tasks that threads of unequal speed end together, none so small that handing it out costs more than it saves.
 */
static division divide(const rung_product *p, const rung_product_kernel *kernel) {
  division d = {.blocks = ceil_div(p->m, kernel->tile_rows), .units = ceil_div(p->n, 32 * p->members)};
  const int64_t threads = p->args->threads;
  /* A single row waits for memory as long as some eight rows compute. */
  const double products = (double)max64(p->m, 8) * (double)p->n * (double)p->k * (double)p->batches;
  const double grains = products / (double)kernel->grain, each = grains / (double)threads;
  /* A microsecond is worth handing out; more than one task for each thread only where they take ten. */
  int64_t want = (int64_t)(each < 1 ? grains : (double)threads);
  if (each >= 20) want = (int64_t)(each < 80 ? each / 10 : 8) * threads;
  if (threads == 1 || want < 1) want = 1;
  d.row_parts = max64(1, ceil_div(d.blocks, RUNG_TASK_ROWS / kernel->tile_rows));
  /* As many for every thread, so that each keeps to its rows from step to step. */
  if (d.row_parts > 1) d.row_parts = min64(d.blocks, ceil_div(d.row_parts, threads) * threads);
  const int64_t given = d.row_parts * p->batches;
  d.column_parts = ceil_div(want, max64(given, 1));
  if (given % threads && d.column_parts > 1) d.column_parts = ceil_div(d.column_parts, threads) * threads;
  d.column_parts = max64(1, min64(d.column_parts, d.units));
  if (given * d.column_parts < want)
    d.row_parts = max64(d.row_parts, min64(d.blocks, want / max64(1, p->batches * d.column_parts)));
  return d;
}

enum { MARK_BYTES = 64, SIDE_SHARED = 32 /* rows from which tasks of the same rows share their side values */ };

/* Which range of rows a thread's side values are of: tasks go through the columns of a range one after another. */
typedef struct side_mark {
  int64_t rows; /* batch * row_parts + part; -1: none yet */
} side_mark;

static side_mark *mark_of(const rung_args *args, int thread) {
  return (side_mark *)((uint8_t *)args->scratch + (size_t)thread * args->scratch_stride);
}

/* Few rows are not worth a line of every thread that the caller writes. */
static bool shares_side(const rung_product *p, const rung_product_kernel *kernel, const division *d) {
  return kernel->quantised && d->column_parts > 1 && p->m >= SIDE_SHARED;
}

int64_t rung_product_tasks(const rung_args *args, bool grouped, const rung_product_kernel *kernel) {
  rung_product p;
  rung_product_resolve(args, grouped, &p);
  if (!p.m || !p.n || !p.batches) return 1;
  const division d = divide(&p, kernel);
  for (int thread = 0; shares_side(&p, kernel, &d) && thread < args->threads; thread++)
    mark_of(args, thread)->rows = -1;
  return p.batches * d.row_parts * d.column_parts;
}

/* ---- scratch of a thread: mark | side | copied rows of a | filled panels | results held back */

enum { PANELS_NEAR = 512 << 10 }; /* bytes of panels that stay in the second cache while rows go by */
enum { COPY_PAD = 16 }; /* floats between copied rows, so that rows of 4 KiB do not meet in one set of the cache */

static bool results_wait(const rung_match *match, int64_t *out_columns) {
  const rung_op *op = match->node->op;
  *out_columns = RUNG_STRIP_COLUMNS;
  bool wait = op == &rung_op_fused || op == &rung_op_expert_matmul || match->out[0].type != RUNG_TYPE_F32;
  if (op == &rung_op_grouped_matmul && ((const rung_grouped_matmul_attrs *)match->node->attrs)->interleave) {
    *out_columns = max64(RUNG_STRIP_COLUMNS, RUNG_STRIP_COLUMNS / 2 * match->n_out);
    wait = true;
  }
  return wait;
}

static const rung_node *root_node(const rung_graph *body) {
  for (uint32_t i = 0; i < body->nodes; i++)
    if (body->node[i].op == &rung_op_matmul || body->node[i].op == &rung_op_grouped_matmul) return &body->node[i];
  return NULL;
}

rung_dim rung_product_scratch(rung_dims *dims, const rung_match *match, const rung_dim *role,
                              const rung_product_kernel *kernel) {
  int64_t columns;
  const bool wait = results_wait(match, &columns);
  if (match->node->op == &rung_op_fused) {
    const rung_node *root = root_node(match->node->body[0]);
    if (root->op == &rung_op_grouped_matmul)
      columns = max64(RUNG_STRIP_COLUMNS, RUNG_STRIP_COLUMNS / 2 * (int64_t)root->results);
  }
  if (!wait) columns = 16 * kernel->tile_panels;
  int64_t per_row = columns * (int64_t)sizeof(float);
  if (!kernel->quantised) per_row += (RUNG_K_CHUNK + COPY_PAD) * (int64_t)sizeof(float);
  const int64_t fill = kernel->fill ? kernel->tile_panels * RUNG_K_CHUNK * RUNG_PANEL * (int64_t)sizeof(float) : 0;
  const rung_dim rows = rung_dims_combine(dims, RUNG_DIM_MIN, role[0], rung_dims_constant(dims, RUNG_TASK_ROWS));
  rung_dim bytes = rung_dims_mul(dims, rows, rung_dims_constant(dims, per_row));
  if (kernel->quantised) {
    const rung_dim blocks = rung_dims_div(dims, role[2], rung_dims_constant(dims, 32));
    const rung_dim side = rung_dims_mul(dims, blocks, rung_dims_constant(dims, sizeof(rung_side)));
    bytes = rung_dims_add(dims, bytes, rung_dims_mul(dims, rows, side));
  }
  return rung_dims_add(dims, bytes, rung_dims_constant(dims, fill + MARK_BYTES + 4 * 64));
}

/* ---- a task */

typedef struct work {
  const rung_product *p;
  const rung_product_kernel *kernel;
  int64_t row0, rows;          /* of the batch */
  int64_t block0, blocks, all; /* blocks of rows, and how many the batch has */
  int64_t panel0, panel1;      /* packed columns, in panels */
  int64_t limit;               /* column behind the last one */
  uint64_t panel_bytes;
  const rung_layout *layout; /* NULL: b is not packed */
  rung_side *side;
  float *copy, *fill, *results;
  int64_t strip_columns; /* 0: results go to y */
  int64_t next_panel;    /* where this thread goes on; -1: elsewhere */
  bool side_filled;
} work;

/* Of the panels that the first block of rows to use them would wait for; lines are of 64 bytes. */
typedef struct next_panels {
  const uint8_t *first; /* of the first panel; NULL: nothing follows */
  int64_t lines;        /* of each panel */
  int64_t share;        /* of them, for a block of rows: each asks for a line as it has read 2^shift */
  int shift;
} next_panels;

static int64_t block_start(const work *w, int64_t block) { return w->p->m * block / w->all; }

/* What the tiles of a kernel look up of one block of activations; the flags are constants. */
RUNG_INLINE void fill_one_side(const rung_a8 *a, bool sums, bool starts, bool halves, int32_t offset, rung_side *out) {
  const int32_t sum = a->sum_low + a->sum_high;
  out->scale = a->scale;
  if (sums) out->sum = a->scale * (float)sum;
  if (starts) out->start[0] = -offset * (halves ? a->sum_low : sum);
  if (starts && halves) out->start[1] = -offset * a->sum_high;
}

/* Side values lie as tiles walk them: [block of rows][k / 32][row]. */
static void fill_side(const work *w) {
  const int64_t count = w->p->k / 32;
  const int32_t offset = w->kernel->offset;
  rung_side *out = w->side;
  for (int64_t block = w->block0; block < w->block0 + w->blocks; block++) {
    const int64_t first = block_start(w, block), rows = block_start(w, block + 1) - first;
    for (int64_t r = 0; r < rows; r++) {
      const rung_a8 *a = (const rung_a8 *)(w->p->a + (first + r) * w->p->a_row);
      rung_side *side = out + r;
      if (!offset) {
        for (int64_t i = 0; i < count; i++) fill_one_side(&a[i], true, false, false, 0, side + i * rows);
      } else if (!w->kernel->halves) {
        for (int64_t i = 0; i < count; i++) fill_one_side(&a[i], false, true, false, offset, side + i * rows);
      } else {
        for (int64_t i = 0; i < count; i++) fill_one_side(&a[i], false, true, true, offset, side + i * rows);
      }
    }
    out += rows * count;
  }
}

/* Rows of a, k0 .. k0 + count, side by side: as floats, or bf16 as they are. */
static void copy_rows(const work *w, int64_t k0, int64_t count) {
  const rung_product *p = w->p;
  const rung_type_row *type = rung_type_get((rung_type)p->a_operand->type);
  for (int64_t r = 0; r < w->rows; r++) {
    const uint8_t *from = p->a + (w->row0 + r) * p->a_row + k0 * p->a_k;
    float *to = w->copy + r * (RUNG_K_CHUNK + COPY_PAD);
    if (w->kernel->pairs) {
      memcpy(to, from, (size_t)(count * p->a_k));
    } else if (p->a_k == type->bytes) {
      type->to_f32(from, to, (size_t)count);
    } else {
      for (int64_t i = 0; i < count; i++) type->to_f32(from + i * p->a_k, to + i, 1);
    }
  }
}

/* Rows that tiles cannot read where they lie: another type, other strides, or a distance at which a dozen rows fall
 * into one set of the first cache. */
static bool rows_need_copy(const work *w) {
  const rung_product *p = w->p;
  if (w->kernel->quantised) return false;
  const bool meet = p->a_row % 4096 == 0 && w->rows > 4;
  if (w->kernel->pairs) return meet;
  return p->a_operand->type != RUNG_TYPE_F32 || p->a_k != sizeof(float) || meet;
}

/* Where results of the panels from `panel` go, for row 0 of the task. */
typedef struct target {
  float *c[RUNG_TILE_PANELS];
  int64_t c_row;
} target;

static target target_of(const work *w, int64_t panel, int64_t first_panel) {
  const rung_product *p = w->p;
  const int count = w->kernel->tile_panels;
  target t;
  if (w->strip_columns) {
    t.c_row = w->strip_columns;
    for (int i = 0; i < count; i++) {
      const uint32_t at = (uint32_t)(panel + i - first_panel), members = (uint32_t)p->members; /* short divisions */
      t.c[i] = w->results + (int64_t)(at % members) * w->rows * t.c_row + at / members * RUNG_PANEL;
    }
    return t;
  }
  /* Straight to y where all columns are ours, else aside: narrow, and copied at the end. */
  const bool whole = (panel + count) * RUNG_PANEL <= w->limit;
  t.c_row = whole ? p->y_row / (int64_t)sizeof(float) : RUNG_PANEL * count;
  float *base = whole ? (float *)(p->y + w->row0 * p->y_row) + panel * RUNG_PANEL : w->results;
  for (int i = 0; i < count; i++) t.c[i] = base + i * RUNG_PANEL;
  return t;
}

/* What follows panels [panel, end) over k0 .. k0 + count, of chunks of k: more of k, the next panels, another task's. */
static next_panels what_follows(const work *w, int64_t panel, int64_t end, int64_t k0, int64_t count, int64_t chunk) {
  const rung_product *p = w->p;
  const bool more = k0 + count < p->k;
  const int64_t at = more ? panel : end < w->panel1 ? end : w->next_panel;
  if (w->kernel->fill || !p->packed || at < 0) return (next_panels){0};
  const int64_t from = more ? k0 + count : 0, read = (int64_t)w->layout->panel_bytes(count) / 64;
  next_panels next = {.lines = (int64_t)w->layout->panel_bytes(min64(chunk, p->k - from)) / 64};
  next.first = p->b + (uint64_t)at * w->panel_bytes + (from ? w->layout->panel_bytes(from) : 0);
  while (read * w->blocks >> (next.shift + 1) >= next.lines) next.shift++;
  next.share = read >> next.shift;
  return next;
}

/* Block `at`'s share of what follows the panels from `panel` on. */
static void ask_for_share(const work *w, const next_panels *next, int64_t panel, int64_t at, rung_tile *tile) {
  const int64_t line = at * next->share;
  tile->next_shift = next->shift;
  for (int i = 0; i < w->kernel->tile_panels; i++)
    tile->next[i] = line < next->lines ? next->first + (uint64_t)(panel + i) * w->panel_bytes + line * 64 : NULL;
}

/* Blocks [begin, end) of rows times the panels of a tile from `panel` on, over k0 .. k0 + k_count. */
static void run_tiles(const work *w, int64_t panel, int64_t first_panel, int64_t k0, int64_t k_count, bool copied,
                      int64_t begin, int64_t end, const next_panels *next) {
  const rung_product *p = w->p;
  const rung_product_kernel *kernel = w->kernel;
  const target to = target_of(w, panel, first_panel);
  rung_tile tile = {.k = k_count, .first = k0 == 0, .turns = (int)w->blocks, .c_row = to.c_row};
  const int64_t left = w->panel1 - panel;
  tile.panels = left < kernel->tile_panels ? (int)left : kernel->tile_panels;
  for (int i = 0; i < kernel->tile_panels; i++) {
    const int64_t at = panel + (i < tile.panels ? i : 0);
    float *filled = w->fill + (i < tile.panels ? i : 0) * RUNG_K_CHUNK * RUNG_PANEL;
    if (kernel->fill) {
      if (i < tile.panels) kernel->fill(p, at, k0, k_count, filled);
      tile.panel[i] = (const uint8_t *)filled;
    } else {
      tile.panel[i] = p->b + (uint64_t)at * w->panel_bytes + (k0 ? w->layout->panel_bytes(k0) : 0);
    }
  }
  const rung_side *side = w->side;
  for (int64_t block = begin; block < end; block++) {
    const int64_t first = block_start(w, block);
    const int64_t row = first - w->row0;
    tile.rows = (int)(block_start(w, block + 1) - first);
    tile.turn = (int)(block - w->block0);
    tile.a = p->a + first * p->a_row + k0 * p->a_k;
    tile.a_row = p->a_row;
    if (copied) {
      tile.a_row = (RUNG_K_CHUNK + COPY_PAD) * (int64_t)sizeof(float);
      tile.a = (const uint8_t *)w->copy + row * tile.a_row;
    }
    tile.side = side;
    if (next && next->first) ask_for_share(w, next, panel - first_panel, tile.turn, &tile);
    for (int i = 0; i < kernel->tile_panels; i++) tile.c[i] = to.c[i] + row * to.c_row;
    kernel->tile(&tile);
    if (kernel->quantised) side += tile.rows * (p->k / 32);
  }
}

/* ---- filling panels from an unpacked b */

/* Four rows of floats become four columns of a panel; four by four numbers are turned in registers. */
static void turn_rows(const float *const *row, int64_t count, float *out) {
  int64_t k = 0;
  for (; k + 4 <= count; k += 4)
    rung_transpose_4x4(row[0] + k, row[1] + k, row[2] + k, row[3] + k, out + k * RUNG_PANEL, RUNG_PANEL);
  for (; k < count; k++)
    for (int c = 0; c < 4; c++) out[k * RUNG_PANEL + c] = row[c][k];
}

/* `count` numbers of one column as floats side by side: where they lie, or in `space`. */
static const float *column_floats(const rung_product *p, const rung_type_row *type, const uint8_t *from, int64_t count,
                                  float *space) {
  const bool dense = type->block > 1 || p->b_k == type->bytes;
  if (dense && p->b_operand->type == RUNG_TYPE_F32) return (const float *)from;
  if (dense) {
    type->to_f32(from, space, (size_t)count);
  } else {
    for (int64_t k = 0; k < count; k++) type->to_f32(from + k * p->b_k, space + k, 1);
  }
  return space;
}

void rung_product_fill(const rung_product *p, int64_t panel, int64_t k0, int64_t count, float *out) {
  const rung_type_row *type = rung_type_get((rung_type)p->b_operand->type);
  const int64_t columns = min64(RUNG_PANEL, p->n - panel * RUNG_PANEL);
  const uint8_t *from = p->b + panel * RUNG_PANEL * p->b_n;
  from += type->block > 1 ? k0 / type->block * type->bytes : k0 * p->b_k;
  if (columns < RUNG_PANEL) memset(out, 0, (size_t)count * RUNG_PANEL * sizeof(float));
  if (type->block == 1 && p->b_n == type->bytes) { /* columns side by side */
    const bool copies = columns == RUNG_PANEL && p->b_operand->type == RUNG_TYPE_F32;
    for (int64_t k = 0; k < count; k++, from += p->b_k, out += RUNG_PANEL) {
      if (copies) {
        memcpy(out, from, RUNG_PANEL * sizeof(float));
      } else {
        type->to_f32(from, out, (size_t)columns);
      }
    }
    return;
  }
  static const float zeros[RUNG_K_CHUNK];
  float space[4][RUNG_K_CHUNK];
  for (int64_t c = 0; c < columns; c += 4) {
    const float *row[4];
    for (int64_t i = 0; i < 4; i++)
      row[i] = c + i < columns ? column_floats(p, type, from + (c + i) * p->b_n, count, space[i]) : zeros;
    turn_rows(row, count, out + c);
  }
}

/* ---- finished results */

/* What a step without an epilogue does where results do not go straight to y: other types, members in turn. */
static void store_strip(const void *program, const rung_args *args, int64_t row, int64_t rows, int64_t col, int64_t n,
                        float *const *value, int64_t value_row) {
  const rung_product *p = program;
  for (int64_t i = 0; i < p->members; i++) {
    const rung_operand *y = p->members > 1 ? &args->out[i] : p->y_operand;
    const rung_type_row *type = rung_type_get((rung_type)y->type);
    uint8_t *to = p->y + (y->base - p->y_operand->base) + (row - p->first_row) * p->y_row + col * type->bytes;
    for (int64_t r = 0; r < rows; r++) type->from_f32(value[i] + r * value_row, to + r * p->y_row, (size_t)n);
  }
}

/* Of blocks [begin, end_block) of rows and panels [panel, end). */
static void run_strips(const work *w, int64_t panel, int64_t end, int64_t begin, int64_t end_block) {
  const rung_product *p = w->p;
  const rung_cpu_strip strip = p->strip.fn ? p->strip : (rung_cpu_strip){store_strip, p};
  const int64_t members = p->members, col = panel / members * RUNG_PANEL;
  const int64_t n = min64((end - panel) / members * RUNG_PANEL, p->n / members - col);
  const int64_t first = block_start(w, begin), row = first - w->row0;
  float *value[RUNG_MAX_MEMBERS];
  for (int64_t i = 0; i < members; i++) value[i] = w->results + (i * w->rows + row) * w->strip_columns;
  strip.fn(strip.program, p->args, p->first_row + first, block_start(w, end_block) - first, col, n, value,
           w->strip_columns);
}

/* The columns of a last tile that is not whole. */
static void copy_tail(const work *w) {
  const int64_t width = w->kernel->tile_panels;
  const int64_t last = w->panel0 + (w->panel1 - w->panel0 - 1) / width * width;
  if ((last + width) * RUNG_PANEL <= w->limit) return;
  uint8_t *to = w->p->y + w->row0 * w->p->y_row + last * RUNG_PANEL * (int64_t)sizeof(float);
  const size_t bytes = (size_t)(w->limit - last * RUNG_PANEL) * sizeof(float);
  for (int64_t r = 0; r < w->rows; r++) memcpy(to + r * w->p->y_row, w->results + r * width * RUNG_PANEL, bytes);
}

/* ---- orders of the loops */

/* Panels outside, rows inside: what is made of a panel (quantised levels unpacked, numbers widened) serves all rows. */
static void panels_outside(const work *w, int64_t panel, int64_t end, bool copied) {
  const rung_product *p = w->p;
  const int64_t chunk = copied || w->kernel->fill ? RUNG_K_CHUNK : p->k, blocks = w->block0 + w->blocks;
  int64_t k0 = 0;
  do {
    const int64_t count = min64(chunk, p->k - k0);
    if (copied) copy_rows(w, k0, count);
    for (int64_t at = panel; at < end; at += w->kernel->tile_panels)
      run_tiles(w, at, panel, k0, count, copied, w->block0, blocks, NULL);
    k0 += count;
  } while (k0 < p->k);
  if (w->strip_columns) run_strips(w, panel, end, w->block0, blocks);
}

/* Rows outside, panels inside: a block of rows stays in the first cache, the panels come from the second, and results
 * are finished while they are near. */
static void rows_outside(const work *w, int64_t panel, int64_t end, bool copied) {
  const rung_product *p = w->p;
  const int64_t blocks = w->block0 + w->blocks;
  const int64_t least = w->kernel->pairs ? RUNG_K_PAIRS : RUNG_K_CHUNK;
  int64_t chunk = p->k;
  if (copied)
    chunk = least;
  else if (w->blocks > 1 && p->packed)
    chunk = max64(1, PANELS_NEAR / ((end - panel) * (int64_t)w->layout->panel_bytes(least))) * least;
  int64_t k0 = 0;
  do {
    const int64_t count = min64(chunk, p->k - k0);
    if (copied) copy_rows(w, k0, count);
    const next_panels next = what_follows(w, panel, end, k0, count, chunk);
    for (int64_t block = w->block0; block < blocks; block++) {
      for (int64_t at = panel; at < end; at += w->kernel->tile_panels)
        run_tiles(w, at, panel, k0, count, copied, block, block + 1, &next);
      if (w->strip_columns && k0 + count == p->k) run_strips(w, panel, end, block, block + 1);
    }
    k0 += count;
  } while (k0 < p->k);
}

static void run_work(work *w) {
  const rung_product *p = w->p;
  const bool copied = rows_need_copy(w), rows_first = !w->kernel->quantised && !w->kernel->fill;
  if (w->kernel->quantised && !w->side_filled) fill_side(w);
  int64_t step = w->panel1 - w->panel0;
  if (w->strip_columns || rows_first)
    step = (w->strip_columns ? w->strip_columns : RUNG_STRIP_COLUMNS) / RUNG_PANEL * p->members;
  for (int64_t panel = w->panel0; panel < w->panel1; panel += step)
    (rows_first ? rows_outside : panels_outside)(w, panel, min64(panel + step, w->panel1), copied);
  if (!w->strip_columns) copy_tail(w);
}

/* 64-byte aligned pieces of the thread's scratch, in the order of rung_product_scratch. */
static void place_scratch(work *w, uint8_t *base) {
  const rung_product *p = w->p;
  size_t at = 0;
  base += MARK_BYTES;
  w->side = (rung_side *)base;
  if (w->kernel->quantised) at += (size_t)(w->rows * (p->k / 32)) * sizeof(rung_side);
  at = (at + 63) & ~(size_t)63;
  w->copy = (float *)(base + at);
  if (!w->kernel->quantised) at += (size_t)w->rows * (RUNG_K_CHUNK + COPY_PAD) * sizeof(float);
  at = (at + 63) & ~(size_t)63;
  w->fill = (float *)(base + at);
  if (w->kernel->fill) at += (size_t)w->kernel->tile_panels * RUNG_K_CHUNK * RUNG_PANEL * sizeof(float);
  w->results = (float *)(base + at);
}

static void set_panels(work *w, const rung_product *p, int64_t panel0, int64_t panel1) {
  w->panel0 = panel0;
  w->panel1 = panel1;
  w->limit = min64(panel1 * RUNG_PANEL, p->n);
  if (!p->packed) return;
  w->layout = rung_cpu_layout_of((rung_type)p->b_operand->type);
  w->panel_bytes = w->layout->panel_bytes(p->k);
}

void rung_product_panels(const rung_product *p, const rung_product_kernel *kernel, int64_t panel0, int64_t panel1,
                         void *space) {
  const int64_t blocks = ceil_div(p->m, kernel->tile_rows);
  work w = {.p = p, .kernel = kernel, .all = blocks, .blocks = blocks, .rows = p->m, .next_panel = -1};
  set_panels(&w, p, panel0, panel1);
  w.strip_columns = RUNG_STRIP_COLUMNS;
  place_scratch(&w, space);
  run_work(&w);
}

rung_status rung_product_run(const rung_args *args, bool grouped, const rung_product_kernel *kernel, int64_t task,
                             int thread) {
  rung_product p;
  rung_product_resolve(args, grouped, &p);
  if (!p.m || !p.n || !p.batches) return RUNG_OK;
  const division d = divide(&p, kernel);
  const int64_t column = task % d.column_parts, row = task / d.column_parts % d.row_parts;
  enter_batch(&p, task / d.column_parts / d.row_parts);
  work w = {.p = &p, .kernel = kernel, .all = d.blocks, .next_panel = -1};
  w.block0 = d.blocks * row / d.row_parts;
  w.blocks = d.blocks * (row + 1) / d.row_parts - w.block0;
  w.row0 = block_start(&w, w.block0);
  w.rows = block_start(&w, w.block0 + w.blocks) - w.row0;
  const int64_t last = min64(d.units * (column + 1) / d.column_parts * 2 * p.members, ceil_div(p.n, RUNG_PANEL));
  set_panels(&w, &p, d.units * column / d.column_parts * 2 * p.members, last);
  if (task + 1 < p.batches * d.row_parts * d.column_parts)
    w.next_panel = d.units * ((column + 1) % d.column_parts) / d.column_parts * 2 * p.members;
  if (p.strip.fn || p.members > 1 || p.y_operand->type != RUNG_TYPE_F32)
    w.strip_columns = p.members > 1 ? RUNG_STRIP_COLUMNS / 2 : RUNG_STRIP_COLUMNS;
  place_scratch(&w, (uint8_t *)args->scratch + (size_t)thread * args->scratch_stride);
  if (shares_side(&p, kernel, &d)) {
    side_mark *mark = mark_of(args, thread);
    const int64_t rows = task / d.column_parts;
    w.side_filled = mark->rows == rows;
    mark->rows = rows;
  }
  run_work(&w);
  return RUNG_OK;
}

/* ---- fused steps */

/* Which operand of the fused node a value of its body is; -1 if it is none. */
static int64_t input_index(const rung_graph *body, uint32_t value) {
  for (uint32_t i = 0; i < body->inputs; i++)
    if (body->node[body->input[i]].first_value == value) return i;
  return -1;
}

static bool refuse(char *why, const char *text) {
  strncpy(why, text, 119);
  return false;
}

/* Floats that f32 holds exactly. */
static bool narrow_float(rung_type type) {
  return type == RUNG_TYPE_F32 || type == RUNG_TYPE_F16 || type == RUNG_TYPE_BF16;
}
static bool widens(rung_type type) {
  return narrow_float(type) || (type != RUNG_TYPE_A8 && rung_type_get(type)->class_ == RUNG_CLASS_BLOCK);
}

bool rung_product_takes(const rung_match *match, int a, char *why) {
  const rung_value_type *b = match->in[1];
  if (!narrow_float(match->out[0].type)) return refuse(why, "gives f32, f16 and bf16");
  if (a == RUNG_ANY_TYPE && !narrow_float(match->in[0]->type)) return refuse(why, "takes rows of f32, f16 and bf16");
  if (!b->layout && !widens(b->type)) return refuse(why, "has no way to read b");
  return true;
}

bool rung_product_fits(const rung_match *match, int a, char *why) {
  const rung_value_type *b = match->in[1];
  if (!rung_product_takes(match, a, why)) return false;
  if (b->layout && b->rank != 2) return refuse(why, "takes one packed matrix only");
  if (match->node->op != &rung_op_grouped_matmul) return true;
  const rung_grouped_matmul_attrs *attrs = match->node->attrs;
  if (attrs->interleave && attrs->interleave != RUNG_PANEL) return refuse(why, "takes members in turn by 16 only");
  return true;
}

/* Are a and b of the fused root what the kernel takes? */
static bool operands_fit(const rung_value_type *a, const rung_value_type *b, int want_a, int want_b) {
  if (want_a == RUNG_ANY_TYPE ? !narrow_float(a->type) : a->type != (rung_type)want_a) return false;
  if (want_b == RUNG_ANY_TYPE) return widens(b->type) && !b->layout;
  const rung_layout *layout = rung_cpu_layout_of((rung_type)want_b);
  return b->type == (rung_type)want_b && b->layout == layout->id;
}

bool rung_product_fits_fused(const rung_match *match, int a, int b, char *why) {
  const rung_graph *body = match->node->body[0];
  const rung_node *root = root_node(body);
  const int64_t ia = input_index(body, root->in[0]), ib = input_index(body, root->in[1]);
  if (ia < 0 || ib < 0) return refuse(why, "takes no prologue");
  if (!operands_fit(match->in[ia], match->in[ib], a, b)) return refuse(why, "takes other types");
  if (match->in[ib]->rank != 2) return refuse(why, "takes an epilogue after one matrix only");
  for (uint32_t i = 0; i < match->n_in; i++)
    if (match->in[i]->layout && i != ib) return refuse(why, "an operand of the epilogue is packed");
  if (root->op == &rung_op_grouped_matmul && ((const rung_grouped_matmul_attrs *)root->attrs)->interleave != RUNG_PANEL)
    return refuse(why, "an epilogue of several members needs them in turn by 16");
  return rung_cpu_strip_fits(body, root, why);
}

rung_status rung_product_prepare(const rung_cpu_prepare *in, const void **out_prepared) {
  const rung_graph *body = in->step->body;
  const rung_node *root = root_node(body);
  prepared *p = rung_arena_alloc(in->arena, sizeof *p);
  if (!p) return rung_fail(in->error, RUNG_OUT_OF_MEMORY, "cpu: no memory to prepare a product");
  p->a = (uint32_t)input_index(body, root->in[0]);
  p->b = (uint32_t)input_index(body, root->in[1]);
  p->attrs = root->attrs;
  p->members = root->op == &rung_op_grouped_matmul ? root->results : 1;
  RUNG_TRY(in->compile_strip(in->arena, body, root, in->error, &p->strip));
  *out_prepared = p;
  return RUNG_OK;
}
