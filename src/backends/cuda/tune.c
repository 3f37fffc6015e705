/* SPDX-License-Identifier: MIT
 * Decode attention for the tuner: which steps of a plan have candidates, asking for winners, and trying a candidate on
 * operands of its own, with the launches that a run would make. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/run.h"
#include "ops/attrs.h"
#include "ops/op_table.h"
#include "ops/structured.h"

enum { CLUSTER = 8, ROPE_Q = 3, ROPE_K = 2, APPEND = 1, FLUSH = 192 << 20 };

/* ---- what candidates there are */

static const rung_value_type *state_of(const rung_plan *plan, const rung_step *step) {
  return &plan->state[plan->root[plan->ref[step->in + 1].root].index].type;
}

void rung_cuda_signature(rung_cuda_ways ways, const rung_plan *plan, const rung_step *step, char out[RUNG_TUNE_TEXT]) {
  const rung_attention_kv_attrs *attrs = step->attrs;
  rung_cuda_attend_shape s = {0};
  rung_cuda_attend_shape_of(plan, step, &s);
  snprintf(out, RUNG_TUNE_TEXT, "%s,kv=%s,key=%lld,value=%lld,heads=%lld,kv_heads=%lld,window=%lld,narrow=%d,cap=%d",
           ways == RUNG_CUDA_ONE ? "attend_one" : "attend_rows", rung_type_name(state_of(plan, step)->type),
           (long long)s.key_dim, (long long)s.value_dim, (long long)s.heads, (long long)s.kv_heads,
           (long long)attrs->window, attrs->narrow, attrs->soft_cap > 0);
}

rung_candidate_space rung_cuda_space(rung_cuda_ways ways, const rung_plan *plan, const rung_step *step) {
  rung_cuda_attend_shape s = {0};
  rung_cuda_attend_shape_of(plan, step, &s);
  return (rung_candidate_space){.kv = state_of(plan, step)->type,
                                .head = s.key_dim,
                                .most_splits = ways == RUNG_CUDA_ONE ? RUNG_CANDIDATE_SPLITS : CLUSTER,
                                .one_stage = true,
                                .most_keys = 512,
                                .most_tile = 1,
                                .most_padding = 1};
}

rung_candidate rung_cuda_standard(rung_cuda_ways ways, const rung_candidate_space *space, int64_t rows, int64_t keys) {
  rung_candidate c = {.splits = 1,
                      .keys = 64,
                      .tile = 1,
                      .padding = 1,
                      .head = (uint16_t)space->head,
                      .kv = (uint8_t)space->kv,
                      .stages = (uint8_t)rung_default_stages(rows, keys)};
  if (c.stages == 2) {
    c.splits = ways == RUNG_CUDA_ONE ? 16 : CLUSTER;
    c.keys = ways == RUNG_CUDA_ONE ? 256 : 64;
  }
  return c;
}

rung_status rung_cuda_find_winner(const rung_cuda_prepare *in, rung_cuda_ways ways, int64_t rows, bool *out_found,
                                  rung_candidate *out) {
  const rung_winner_source *source = in->device->winners;
  char signature[RUNG_TUNE_TEXT];
  *out_found = false;
  if (!source || in->plan->target->deterministic) return RUNG_OK;
  rung_cuda_signature(ways, in->plan, in->step, signature);
  RUNG_TRY(source->find(source->self, signature, rows, in->error, out_found, out));
  const rung_candidate_space space = rung_cuda_space(ways, in->plan, in->step);
  if (*out_found) *out_found = rung_candidate_in(&space, out); /* a file may say anything */
  return RUNG_OK;
}

/* ---- a plan's kernels */

typedef struct session {
  rung_cuda *device;
  const rung_plan *plan;
  rung_cuda_image *image;
  int64_t *upper; /* of every dimension at the ceiling */
  uint32_t dims;
} session;

static void session_end(void *session_) {
  session *s = session_;
  rung_host *host = s->device->host;
  rung_cuda_finish(s->device, s->image);
  rung_host_free(host, RUNG_MEMORY_host, s->upper, s->dims * sizeof *s->upper);
  rung_host_free(host, RUNG_MEMORY_host, s, sizeof *s);
}

static rung_status session_begin(void *self, const rung_plan *plan, rung_error *error, void **out_session) {
  rung_cuda *device = self;
  session *s = rung_host_array(device->host, 1, sizeof *s);
  if (!s) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: out of memory");
  *s = (session){.device = device, .plan = plan, .dims = plan->dims->count};
  s->upper = rung_host_array(device->host, s->dims, sizeof *s->upper);
  rung_status status = RUNG_OK;
  if (!s->upper || !rung_dims_upper(plan->dims, plan->lo, plan->ceiling, s->upper))
    status = rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory to tune a plan");
  void *image = NULL;
  if (!status) status = rung_cuda_prepare_plan(device, device->host, plan, error, &image);
  s->image = image;
  if (status)
    session_end(s);
  else
    *out_session = s;
  return status;
}

/* Does the plan have this kernel at this step? */
static bool has_ways(const session *s, rung_cuda_ways ways, uint32_t step) {
  const rung_step *at = &s->plan->step[step];
  rung_cuda_attend_shape shape;
  if (!rung_cuda_has_one_row(s->device) || at->kind != RUNG_STEP_KERNEL || at->op != &rung_op_attention_kv ||
      at->variants != 1)
    return false;
  const rung_cuda_prepared *p = &s->image->prepared[at->variant];
  if (!rung_cuda_attend_shape_of(s->plan, at, &shape) ||
      shape.kv_heads * (shape.key_dim + shape.value_dim) > RUNG_REFERENCE_KV_ROW)
    return false;
  return ways == RUNG_CUDA_ONE ? p->one != NULL : strncmp(p->kernel->row.name, "attend_rows", 11) == 0;
}

static bool session_at(void *session_, uint32_t index, rung_tunable *out) {
  const session *s = session_;
  const rung_plan *plan = s->plan;
  uint32_t found = 0;
  for (uint32_t place = 0; place < 2 * plan->steps; place++) {
    const rung_cuda_ways ways = (rung_cuda_ways)(place % 2);
    const uint32_t step = place / 2;
    if (!has_ways(s, ways, step)) continue;
    char before[RUNG_TUNE_TEXT];
    rung_tunable t = {.step = place, .space = rung_cuda_space(ways, plan, &plan->step[step])};
    rung_cuda_signature(ways, plan, &plan->step[step], t.signature);
    const int64_t rows = s->upper[plan->ref[plan->step[step].in].extent[0].id];
    const bool one = has_ways(s, RUNG_CUDA_ONE, step);
    t.least_rows = ways == RUNG_CUDA_ONE || !one ? 1 : 2;
    t.most_rows = ways == RUNG_CUDA_ONE ? 1 : rows < RUNG_CUDA_FEW_ROWS ? rows : RUNG_CUDA_FEW_ROWS - 1;
    bool seen = t.most_rows < t.least_rows;
    for (uint32_t earlier = 0; earlier < place && !seen; earlier++) {
      if (!has_ways(s, (rung_cuda_ways)(earlier % 2), earlier / 2)) continue;
      rung_cuda_signature((rung_cuda_ways)(earlier % 2), plan, &plan->step[earlier / 2], before);
      seen = strcmp(before, t.signature) == 0;
    }
    if (seen || found++ != index) continue;
    *out = t;
    return true;
  }
  return false;
}

static rung_candidate session_standard(const rung_tunable *tunable, int64_t rows, int64_t keys) {
  return rung_cuda_standard((rung_cuda_ways)(tunable->step % 2), &tunable->space, rows, keys);
}

/* ---- operands of one's own */

enum { Q, K, V, Y, FACTORS, SLOT, PAST, OFFSETS, STATE, PARTIAL, COUNTERS, REFUSAL, SWEEP, AREAS };

typedef struct bench {
  rung_cuda *device;
  const rung_plan *plan;
  const rung_step *step;
  rung_cuda_ways ways;
  rung_cuda_attend_shape s;
  const rung_attention_kv_attrs *attrs;
  int64_t rows, keys, past, blocks, factors;
  rung_arena arena; /* of what is below */
  rung_arena tried; /* of what the candidate that is tried prepared */
  size_t area_bytes[AREAS];
  uint64_t area[AREAS]; /* on the device */
  uint64_t accounted;
  float *q, *k, *v, *out, *want, *state; /* here; state: [positions][a position's numbers], as rounded */
  rung_operand *operand;                 /* by ref of the plan; the others are empty */
  rung_kv_view kv, here;                 /* the state on the device, and as `state` has it */
  void *event[2];
  rung_cuda_prepared prepared;
  rung_cuda_list list;
} bench;

static int64_t position_numbers(const bench *b) { return b->s.kv_heads * (b->s.key_dim + b->s.value_dim); }

static void read_state(const rung_kv_view *kv, int32_t slot, int64_t position, float *out) {
  const bench *b = (const bench *)(const void *)kv->base;
  const int64_t n = position_numbers(b);
  (void)slot;
  memcpy(out, b->state + position * n, (size_t)n * sizeof *out);
}

/* The same numbers at every start; spread like activations. */
static void fill(float *out, int64_t count, uint64_t seed) {
  uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  for (int64_t i = 0; i < count; i++) {
    x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
    out[i] = ((float)((x * UINT64_C(0x2545F4914F6CDD1D)) >> 40) * 0x1p-24f - 0.5f) * 3;
  }
}

static rung_status out_of_memory(const bench *b, rung_error *error) {
  return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: no memory to try attention over %lld keys", (long long)b->keys);
}

static rung_status make_here(bench *b, rung_error *error) {
  const int64_t n = position_numbers(b), positions = b->blocks * RUNG_KV_BLOCK;
  const size_t q = (size_t)(b->rows * b->s.heads * b->s.key_dim), y = (size_t)(b->rows * b->s.heads * b->s.value_dim);
  b->q = rung_arena_array(&b->arena, q, sizeof *b->q);
  b->k = rung_arena_array(&b->arena, (size_t)(b->s.kv_heads * b->s.key_dim), sizeof *b->k);
  b->v = rung_arena_array(&b->arena, (size_t)(b->s.kv_heads * b->s.value_dim), sizeof *b->v);
  b->out = rung_arena_array(&b->arena, y, sizeof *b->out);
  b->want = rung_arena_array(&b->arena, y, sizeof *b->want);
  b->state = rung_arena_array(&b->arena, (size_t)(positions * n), sizeof *b->state);
  b->operand = rung_arena_array(&b->arena, b->plan->refs, sizeof *b->operand);
  if (!b->q || !b->k || !b->v || !b->out || !b->want || !b->state || !b->operand) return out_of_memory(b, error);
  fill(b->q, (int64_t)q, 1);
  fill(b->k, b->s.kv_heads * b->s.key_dim, 2);
  fill(b->v, b->s.kv_heads * b->s.value_dim, 3);
  fill(b->state, positions * n, 4);
  return RUNG_OK;
}

static rung_status make_there(bench *b, rung_error *error) {
  const rung_far *far = &b->device->far;
  const int64_t heads = b->s.heads;
  const size_t block = rung_cuda_kv_block_bytes(b->kv.type, b->kv.kv_heads, b->kv.key_dim, b->kv.value_dim);
  const size_t bytes[AREAS] = {
      [Q] = (size_t)(b->rows * heads * b->s.key_dim) * sizeof(float),
      [K] = (size_t)(b->s.kv_heads * b->s.key_dim) * sizeof(float),
      [V] = (size_t)(b->s.kv_heads * b->s.value_dim) * sizeof(float),
      [Y] = (size_t)(b->rows * heads * b->s.value_dim) * sizeof(float),
      [FACTORS] = (size_t)(b->factors ? b->factors : 1) * sizeof(float),
      [SLOT] = sizeof(int32_t),
      [PAST] = sizeof(int32_t),
      [OFFSETS] = 2 * sizeof(int32_t),
      [STATE] = (size_t)b->blocks * block,
      [PARTIAL] = (size_t)(heads * RUNG_CANDIDATE_SPLITS * (b->s.value_dim + 8)) * sizeof(float),
      [COUNTERS] = RUNG_CUDA_COUNTERS * sizeof(uint32_t),
      [REFUSAL] = sizeof(rung_cuda_refusal),
      [SWEEP] = FLUSH};
  uint64_t all = 0;
  for (int i = 0; i < AREAS; i++) all += bytes[i];
  RUNG_TRY(rung_host_account(b->device->host, RUNG_MEMORY_scratch, all, error));
  b->accounted = all;
  for (int i = 0; i < AREAS; i++) {
    b->area[i] = (uint64_t)(uintptr_t)far->alloc(far->self, bytes[i]);
    if (!b->area[i]) return out_of_memory(b, error);
    b->area_bytes[i] = bytes[i];
  }
  return rung_far_check(far, error);
}

static void put(const bench *b, int area, const void *from, size_t bytes) {
  rung_far_write(&b->device->far, (void *)(uintptr_t)b->area[area], from, bytes);
}

/* Keys and values as the device has them, and what rounding left of them here. */
static rung_status write_state(bench *b, rung_error *error) {
  const rung_type_row *row = rung_type_get(b->kv.type);
  const int64_t kd = b->s.key_dim, vd = b->s.value_dim, n = position_numbers(b);
  uint8_t *image = rung_host_array(b->device->host, b->area_bytes[STATE], 1);
  if (!image) return out_of_memory(b, error);
  for (int64_t p = 0; p < b->blocks * RUNG_KV_BLOCK; p++)
    for (int64_t h = 0; h < b->s.kv_heads; h++) {
      uint8_t *block = image + (size_t)(p / RUNG_KV_BLOCK) * b->kv.block_bytes;
      float *key = b->state + p * n + h * kd, *value = b->state + p * n + b->s.kv_heads * kd + h * vd;
      const int64_t at = h * RUNG_KV_BLOCK + p % RUNG_KV_BLOCK;
      uint8_t *to_key = block + (size_t)(at * kd) * row->bytes;
      uint8_t *to_value = block + (size_t)(b->s.kv_heads * RUNG_KV_BLOCK * kd + at * vd) * row->bytes;
      row->from_f32(key, to_key, (size_t)kd);
      row->to_f32(to_key, key, (size_t)kd);
      row->from_f32(value, to_value, (size_t)vd);
      row->to_f32(to_value, value, (size_t)vd);
    }
  put(b, STATE, image, b->area_bytes[STATE]);
  rung_host_free(b->device->host, RUNG_MEMORY_host, image, b->area_bytes[STATE]);
  return RUNG_OK;
}

/* An operand of up to three dense axes; a view of numbers here or of an area there. */
static rung_status set(bench *b, rung_operand *o, uint64_t base, rung_type type, int rank, const int64_t *extent,
                       rung_error *error) {
  int64_t *shape = rung_arena_array(&b->arena, 2 * RUNG_MAX_RANK, sizeof *shape), step = 1;
  if (!shape) return out_of_memory(b, error);
  for (int a = rank - 1; a >= 0; a--) {
    shape[a] = extent[a];
    shape[RUNG_MAX_RANK + a] = step;
    step *= extent[a];
  }
  *o = (rung_operand){.base = (uint8_t *)(uintptr_t)base,
                      .extent = shape,
                      .stride = shape + RUNG_MAX_RANK,
                      .rank = (uint8_t)rank,
                      .type = (uint8_t)type};
  return RUNG_OK;
}

/* Operands of the attention, and of the ropes and the append in front of it. */
static rung_status set_operands(bench *b, rung_error *error) {
  const rung_step *s = b->step;
  rung_operand *in = b->operand + s->in;
  const int64_t one = 1, two = 2, q[3] = {b->rows, b->s.heads, b->s.key_dim};
  const int64_t k[3] = {1, b->s.kv_heads, b->s.key_dim}, v[3] = {1, b->s.kv_heads, b->s.value_dim};
  const int64_t y[3] = {b->rows, b->s.heads, b->s.value_dim};
  RUNG_TRY(set(b, &in[0], b->area[Q], RUNG_TYPE_F32, 3, q, error));
  in[1].kv = &b->kv;
  RUNG_TRY(set(b, &in[2], b->area[OFFSETS], RUNG_TYPE_I32, 1, &two, error));
  RUNG_TRY(set(b, &in[3], b->area[SLOT], RUNG_TYPE_I32, 1, &one, error));
  RUNG_TRY(set(b, &in[4], b->area[PAST], RUNG_TYPE_I32, 1, &one, error));
  RUNG_TRY(set(b, &b->operand[s->out], b->area[Y], RUNG_TYPE_F32, 3, y, error));
  if (b->ways != RUNG_CUDA_ONE) return RUNG_OK;
  RUNG_TRY(set(b, &b->operand[s[-ROPE_Q].in], b->area[Q], RUNG_TYPE_F32, 3, q, error));
  RUNG_TRY(set(b, &b->operand[s[-ROPE_K].in], b->area[K], RUNG_TYPE_F32, 3, k, error));
  RUNG_TRY(set(b, &b->operand[s[-APPEND].in + 2], b->area[V], RUNG_TYPE_F32, 3, v, error));
  if (!b->factors) return RUNG_OK;
  return set(b, &b->operand[s[-ROPE_Q].in + 2], b->area[FACTORS], RUNG_TYPE_F32, 1, &b->factors, error);
}

static rung_status write_operands(bench *b, rung_error *error) {
  const int32_t slot = 0, past = (int32_t)b->past, offsets[2] = {0, (int32_t)b->rows};
  const float ones = 1;
  put(b, Q, b->q, b->area_bytes[Q]);
  put(b, K, b->k, b->area_bytes[K]);
  put(b, V, b->v, b->area_bytes[V]);
  put(b, SLOT, &slot, sizeof slot);
  put(b, PAST, &past, sizeof past);
  put(b, OFFSETS, offsets, sizeof offsets);
  for (int64_t i = 0; i < b->factors; i++)
    rung_far_write(&b->device->far, (void *)(uintptr_t)(b->area[FACTORS] + (uint64_t)i * sizeof ones), &ones,
                   sizeof ones);
  RUNG_TRY(write_state(b, error));
  return rung_far_check(&b->device->far, error);
}

/* ---- trying */

static uint64_t no_table(void *kept, const rung_kv_view *kv) {
  (void)kept, (void)kv;
  return 0; /* slot 0 has all blocks in order */
}

static rung_status bench_choose(void *self, const rung_candidate *candidate, rung_error *error) {
  bench *b = self;
  b->prepared = (rung_cuda_prepared){.step = b->step};
  rung_arena_finish(&b->tried);
  rung_arena_init(&b->tried, b->device->host);
  const rung_cuda_prepare in = {.device = b->device,
                                .arena = &b->tried,
                                .plan = b->plan,
                                .step = b->step,
                                .prepared = &b->prepared,
                                .error = error};
  RUNG_TRY(b->ways == RUNG_CUDA_ONE ? rung_cuda_try_one(&in, candidate) : rung_cuda_try_rows(&in, candidate));
  const rung_args args = {.in = b->operand + b->step->in,
                          .out = b->operand + b->step->out,
                          .n_in = b->step->n_in,
                          .n_out = b->step->n_out,
                          .attrs = b->attrs,
                          .scratch = (void *)(uintptr_t)b->area[PARTIAL],
                          .prepared = b->prepared.own,
                          .threads = 1,
                          .error = error};
  const rung_run run = {.plan = b->plan, .operand = b->operand, .error = error};
  const rung_cuda_step s = {.device = b->device,
                            .args = &args,
                            .run = &run,
                            .index = (uint32_t)(b->step - b->plan->step),
                            .prepared = &b->prepared,
                            .refusal = b->area[REFUSAL],
                            .table = no_table,
                            .counters = b->area[COUNTERS],
                            .list = &b->list};
  rung_cuda_list_begin(&b->list);
  RUNG_TRY(b->ways == RUNG_CUDA_ONE ? b->prepared.kernel->launch(&s) : rung_cuda_launch_attend_to(&s, args.out));
  /* Not what a candidate before it left: bits that are no numbers. */
  void *before;
  rung_cuda_enter(b->device, &before);
  rung_cuda_ok(b->device, b->device->driver.fill(b->area[Y], 0xff, b->area_bytes[Y], b->device->stream), "filling");
  rung_cuda_leave(b->device, before);
  return RUNG_OK;
}

/* Between two runs of a step everything else of a model is read: nothing of the state is left in caches then. */
static rung_status bench_run(void *self, rung_error *error, uint64_t *out_ns) {
  bench *b = self;
  rung_cuda *device = b->device;
  float milliseconds = 0;
  void *before;
  rung_cuda_enter(device, &before);
  const bool overlap = device->overlap;
  device->overlap = false;
  rung_cuda_ok(device, device->driver.fill(b->area[SWEEP], 0, b->area_bytes[SWEEP], device->stream), "filling");
  rung_cuda_ok(device, device->driver.event_record(b->event[0], device->stream), "an event");
  for (size_t at = 0; at < b->list.bytes && !device->failed;) at = rung_cuda_launch_one(device, &b->list, at);
  device->overlap = overlap;
  rung_cuda_ok(device, device->driver.event_record(b->event[1], device->stream), "an event");
  rung_cuda_ok(device, device->driver.stream_wait(device->stream), "waiting");
  rung_cuda_ok(device, device->driver.event_between(&milliseconds, b->event[0], b->event[1]), "an event");
  const rung_status status = rung_cuda_failed(device, error);
  rung_cuda_leave(device, before);
  *out_ns = (uint64_t)(1e6 * (double)milliseconds);
  return status;
}

static rung_status bench_output(void *self, rung_error *error, const float **out, size_t *count) {
  bench *b = self;
  rung_cuda_refusal refusal;
  rung_far_read(&b->device->far, b->out, (void *)(uintptr_t)b->area[Y], b->area_bytes[Y]);
  rung_far_read(&b->device->far, &refusal, (void *)(uintptr_t)b->area[REFUSAL], sizeof refusal);
  *out = b->out;
  *count = b->area_bytes[Y] / sizeof *b->out;
  RUNG_TRY(rung_far_check(&b->device->far, error));
  return refusal.set ? rung_fail(error, RUNG_INTERNAL, "cuda: attention refuses position %lld of the tuner's own",
                                 (long long)refusal.value)
                     : RUNG_OK;
}

/* x turned as the rope `step` turns it, in place. */
static rung_status turn(bench *b, const rung_step *step, float *x, int64_t heads, rung_error *error) {
  const int32_t position = (int32_t)b->past;
  const int64_t one = 1, extent[3] = {1, heads, b->s.key_dim};
  rung_operand in[2], out;
  RUNG_TRY(set(b, &in[0], (uint64_t)(uintptr_t)x, RUNG_TYPE_F32, 3, extent, error));
  RUNG_TRY(set(b, &in[1], (uint64_t)(uintptr_t)&position, RUNG_TYPE_I32, 1, &one, error));
  out = in[0];
  const rung_args args = {
      .in = in, .out = &out, .n_in = 2, .n_out = 1, .attrs = step->attrs, .threads = 1, .error = error};
  return rung_op_rope.reference(&args);
}

/* What the joined steps do in front of the attention, done here: turning, and the new key and value behind the others. */
static rung_status append_here(bench *b, rung_error *error) {
  const rung_type_row *row = rung_type_get(b->kv.type);
  const int64_t keys = b->s.kv_heads * b->s.key_dim, values = b->s.kv_heads * b->s.value_dim;
  float *at = b->state + b->past * position_numbers(b);
  uint8_t *rounded = rung_arena_array(&b->arena, (size_t)(keys + values), row->bytes);
  if (!rounded) return out_of_memory(b, error);
  RUNG_TRY(turn(b, &b->step[-ROPE_Q], b->q, b->s.heads, error));
  RUNG_TRY(turn(b, &b->step[-ROPE_K], b->k, b->s.kv_heads, error));
  memcpy(at, b->k, (size_t)keys * sizeof *at);
  memcpy(at + keys, b->v, (size_t)values * sizeof *at);
  row->from_f32(at, rounded, (size_t)(keys + values));
  row->to_f32(rounded, at, (size_t)(keys + values));
  return RUNG_OK;
}

static rung_status bench_reference(void *self, rung_error *error, const float **out, size_t *count) {
  bench *b = self;
  const int32_t slot = 0, past = (int32_t)b->past, offsets[2] = {0, (int32_t)b->rows};
  const int64_t one = 1, two = 2, q[3] = {b->rows, b->s.heads, b->s.key_dim}, y[3] = {q[0], q[1], b->s.value_dim};
  rung_operand in[5] = {{0}}, result;
  RUNG_TRY(set(b, &in[0], (uint64_t)(uintptr_t)b->q, RUNG_TYPE_F32, 3, q, error));
  in[1].kv = &b->here;
  RUNG_TRY(set(b, &in[2], (uint64_t)(uintptr_t)offsets, RUNG_TYPE_I32, 1, &two, error));
  RUNG_TRY(set(b, &in[3], (uint64_t)(uintptr_t)&slot, RUNG_TYPE_I32, 1, &one, error));
  RUNG_TRY(set(b, &in[4], (uint64_t)(uintptr_t)&past, RUNG_TYPE_I32, 1, &one, error));
  RUNG_TRY(set(b, &result, (uint64_t)(uintptr_t)b->want, RUNG_TYPE_F32, 3, y, error));
  const rung_args args = {
      .in = in, .out = &result, .n_in = 5, .n_out = 1, .attrs = b->attrs, .threads = 1, .error = error};
  *out = b->want;
  *count = b->area_bytes[Y] / sizeof *b->want;
  return rung_op_attention_kv.reference(&args);
}

static void bench_close(void *self) {
  bench *b = self;
  rung_host *host = b->device->host;
  for (int i = 0; i < AREAS; i++)
    if (b->area[i]) b->device->far.free(b->device->far.self, (void *)(uintptr_t)b->area[i], b->area_bytes[i]);
  rung_host_unaccount(host, RUNG_MEMORY_scratch, b->accounted);
  void *before;
  rung_cuda_enter(b->device, &before);
  for (int i = 0; i < 2; i++)
    if (b->event[i]) b->device->driver.event_destroy(b->event[i]);
  rung_cuda_leave(b->device, before);
  rung_host_free(host, RUNG_MEMORY_host, b->list.data, b->list.capacity);
  rung_arena_finish(&b->tried);
  rung_arena_finish(&b->arena);
  rung_host_free(host, RUNG_MEMORY_host, b, sizeof *b);
}

static rung_status make_events(bench *b, rung_error *error) {
  void *before;
  int result = 0;
  rung_cuda_enter(b->device, &before);
  for (int i = 0; i < 2 && !result; i++) result = b->device->driver.event_create(&b->event[i], 0);
  rung_cuda_leave(b->device, before);
  return result ? rung_fail(error, RUNG_SYSTEM, "cuda: an event: %s", rung_cuda_text(b->device, result)) : RUNG_OK;
}

static void set_states(bench *b) {
  const rung_value_type *type = state_of(b->plan, b->step);
  const int64_t window = b->attrs->window;
  if (window && b->keys > window) b->keys = window > b->rows ? window : b->rows;
  b->past = b->keys - b->rows;
  b->blocks = (b->keys + RUNG_KV_BLOCK - 1) / RUNG_KV_BLOCK;
  b->kv = (rung_kv_view){.type = type->type,
                         .kv_heads = (int32_t)b->s.kv_heads,
                         .key_dim = (int32_t)b->s.key_dim,
                         .value_dim = (int32_t)b->s.value_dim,
                         .capacity = b->blocks * RUNG_KV_BLOCK,
                         .slots = 1,
                         .contiguous = true,
                         .ring = (uint32_t)b->blocks,
                         .length = &b->past,
                         .far = &b->device->far};
  b->kv.block_bytes = rung_cuda_kv_block_bytes(type->type, b->kv.kv_heads, b->kv.key_dim, b->kv.value_dim);
  b->here = b->kv;
  b->here.far = NULL;
  b->here.base = (uint8_t *)(void *)b;
  b->here.read_row = read_state;
}

static rung_status session_open(void *session_, const rung_tunable *tunable, int64_t rows, int64_t keys,
                                rung_error *error, rung_bench *out) {
  const session *s = session_;
  bench *b = rung_host_array(s->device->host, 1, sizeof *b);
  if (!b) return rung_fail(error, RUNG_OUT_OF_MEMORY, "cuda: out of memory");
  b->device = s->device;
  b->plan = s->plan;
  b->ways = (rung_cuda_ways)(tunable->step % 2);
  b->step = &s->plan->step[tunable->step / 2];
  b->attrs = b->step->attrs;
  b->rows = rows;
  b->keys = keys;
  b->list.host = s->device->host;
  rung_arena_init(&b->arena, s->device->host);
  rung_arena_init(&b->tried, s->device->host);
  rung_cuda_attend_shape_of(b->plan, b->step, &b->s);
  if (b->ways == RUNG_CUDA_ONE && b->step[-ROPE_Q].n_in > 2) {
    const rung_rope_attrs *rope = b->step[-ROPE_Q].attrs;
    b->factors = (rope->dims ? rope->dims : b->s.key_dim) / 2;
  }
  set_states(b);
  rung_status status = make_events(b, error);
  if (!status) status = make_here(b, error);
  if (!status) status = make_there(b, error);
  b->kv.base = (uint8_t *)(uintptr_t)b->area[STATE];
  if (!status) status = set_operands(b, error);
  if (!status) status = write_operands(b, error);
  if (!status && b->ways == RUNG_CUDA_ONE) status = append_here(b, error);
  if (status) {
    bench_close(b);
    return status;
  }
  *out = (rung_bench){b, bench_choose, bench_run, bench_output, bench_reference, bench_close};
  return RUNG_OK;
}

/* ---- the backend's part */

static void tuning_device(void *self, char out[RUNG_TUNE_TEXT]) {
  const rung_cuda *device = self;
  char name[100] = "GPU";
  if (device->driver.device_name(name, (int)sizeof name, device->device)) snprintf(name, sizeof name, "GPU");
  snprintf(out, RUNG_TUNE_TEXT, "cuda %s %s %d", name, device->level, device->processors);
}

static void tuning_ask(void *self, const rung_winner_source *source) { ((rung_cuda *)self)->winners = source; }

const rung_tuning rung_cuda_tuning = {.device = tuning_device,
                                      .ask = tuning_ask,
                                      .begin = session_begin,
                                      .end = session_end,
                                      .at = session_at,
                                      .standard = session_standard,
                                      .open = session_open};
