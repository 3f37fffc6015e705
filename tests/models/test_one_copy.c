/* SPDX-License-Identifier: MIT
 * A real model: eight generators take its weights and packed forms once, and so do six rungs of a ladder and eight
 * programs with a context each; a weight set in its view reaches all generators, and setting it back gives the bits from
 * before. */
#include <rung/cache.h>
#include <rung/model.h>

#include "../process.h"
#include "fetched.h"
#include "runtime/runtime.h"
#include "tiny_world.h"

enum { GENERATORS = 8, IDS = 9, EXTRA = 1 << 20 };
static const int32_t text[IDS] = {1, 504, 3575, 17, 4016, 282, 9, 338, 25};

/* Reads the text from the start; the bits of the last row's logits as one number. */
static uint64_t logits_of(rung_generator *g) {
  const rung_rows rows = {.slot = 0, .count = IDS};
  const int32_t wanted = IDS - 1;
  const float *logits = NULL;
  CHECK_OK(rung_generator_reset(g, 0));
  CHECK_OK(rung_generator_run(g, &rows, 1, text, &wanted, 1, &logits));
  uint64_t h = 14695981039346656037u;
  const uint8_t *bytes = (const uint8_t *)logits;
  for (size_t i = 0; logits && i < 49152 * sizeof(float); i++) h = (h ^ bytes[i]) * 1099511628211u;
  return h;
}

static uint64_t own_bytes(rung_generator *g) {
  const rung_memory m = rung_context_memory(rung_generator_context(g));
  return m.activations + m.scratch + rung_state_bytes(rung_generator_state(g));
}
/* Doubled it is another model, and with the old numbers again the old one. */
static void check_sets(rung_model *model, rung_generator *const *g, uint64_t before) {
  rung_error error;
  rung_view *view = rung_model_view(model);
  float norm[576], twice[576];
  CHECK_OK(rung_view_get_weight(view, "output_norm.weight", 0, RUNG_TYPE_F32, norm, sizeof norm, &error));
  for (int i = 0; i < 576; i++) twice[i] = 2 * norm[i];
  CHECK_OK(rung_view_set_weight(view, "output_norm.weight", RUNG_TYPE_F32, twice, sizeof twice, &error));
  CHECK(logits_of(g[0]) == before);
  CHECK_OK(rung_view_commit(view, &error));
  const uint64_t other = logits_of(g[0]);
  CHECK(other != before);
  for (int i = 1; i < GENERATORS; i++) CHECK(logits_of(g[i]) == other);
  CHECK_OK(rung_view_set_weight(view, "output_norm.weight", RUNG_TYPE_F32, norm, sizeof norm, &error));
  CHECK_OK(rung_view_commit(view, &error));
  for (int i = 0; i < GENERATORS; i++) CHECK(logits_of(g[i]) == before);
}

static bool open_real(tiny *t) {
  char path[1024];
  if (!fetched_model("smollm2", path, sizeof path)) {
    CHECK(!"the model is not there; run scripts/models.py fetch");
    return false;
  }
  return tiny_open(t, path, 0);
}

static void test_generators(void) {
  if (test_slow()) SKIP("too slow here");
  tiny t;
  if (!open_real(&t)) return;
  rung_generator *g[GENERATORS];
  const rung_generate_options options = tiny_options(1, 256, 64);
  uint64_t process = 0, account = 0, most[2] = {0, 0}, bits = 0;
  rung_memory first = {0};
  for (int i = 0; i < GENERATORS; i++) {
    g[i] = tiny_generator(&t, &options);
    const uint64_t now = logits_of(g[i]), process_now = process_bytes("VmRSS"), account_now = tiny_held(&t),
                   own = own_bytes(g[i]);
    const rung_memory m = rung_model_memory(t.model);
    if (i == 0) {
      bits = now;
      first = m;
    } else {
      const int64_t grown = (int64_t)(process_now - process) - (int64_t)own;
      CHECK(now == bits);
      CHECK(m.packed == first.packed && m.weights == first.weights);
      CHECK(account_now - account - own < EXTRA);
      CHECK(grown < EXTRA);
      if (account_now - account - own > most[0]) most[0] = account_now - account - own;
      if (grown > (int64_t)most[1]) most[1] = (uint64_t)grown;
    }
    process = process_now, account = account_now;
  }
  printf("weights %" PRIu64 ", packed %" PRIu64 " bytes for all; each further generator at most %" PRIu64
         " bytes by the host's account, %" PRIu64 " of the process, besides its arena and states\n",
         first.weights, first.packed, most[0], most[1]);
  check_sets(t.model, g, bits);
  for (int i = 0; i < GENERATORS; i++) rung_generator_destroy(g[i]);
  rung_view_trim(rung_model_view(t.model));
  CHECK_EQ_I64(rung_model_memory(t.model).packed, 0);
  tiny_close(&t);
}

/* ---- rungs and programs */

enum { RUNGS = 6, PROGRAMS = 8 };

/* The ceilings of a program but for one symbol, and whose place that is: last. */
static size_t others(const rung_program *p, const char *but, rung_binding *out) {
  size_t n = 0;
  for (uint32_t s = 0; s < p->plan->dims->symbols; s++) {
    const rung_symbol *symbol = &p->plan->dims->symbol[s];
    if (!symbol->made && strcmp(symbol->name, but) != 0) out[n++] = (rung_binding){symbol->name, p->plan->ceiling[s]};
  }
  out[n] = (rung_binding){but, 0};
  return n;
}

static void check_rungs(tiny *w, rung_template *t, rung_program *p) {
  static const rung_range range[RUNGS] = {{1, 3}, {3, 5}, {5, 9}, {9, 17}, {17, 33}, {33, 65}};
  rung_binding ceiling[RUNG_MAX_SYMBOLS];
  rung_build build = rung_build_default();
  build.template_ = t;
  build.view = rung_model_view(w->model);
  rung_ladder_options o = rung_ladder_options_default();
  o.symbol = "rows";
  o.ceilings = others(p, o.symbol, ceiling);
  o.ceiling = ceiling;
  rung_ladder *ladder = NULL;
  CHECK_OK(rung_ladder_create(w->device, &build, range, RUNGS, &o, &w->error, &ladder));
  rung_memory first = {0};
  uint64_t most = 0;
  for (int i = 0; i < RUNGS && ladder; i++) {
    rung_program *rung = NULL;
    const uint64_t before = tiny_held(w);
    CHECK_OK(rung_ladder_get(ladder, range[i].start, &w->error, &rung));
    const uint64_t more = tiny_held(w) - before;
    const rung_memory m = rung_model_memory(w->model);
    if (i == 0) first = m;
    CHECK(first.packed > 0 && m.packed == first.packed && m.weights == first.weights);
    if (i > 0 && more > most) most = more;
    rung_program_release(rung);
  }
  CHECK(most < EXTRA);
  printf("each further rung at most %" PRIu64 " bytes\n", most);
  rung_ladder_destroy(ladder);
}

static void check_programs(tiny *w, rung_template *t, rung_program *p) {
  rung_binding ceiling[RUNG_MAX_SYMBOLS];
  const size_t n = others(p, "rows", ceiling);
  rung_program *program[PROGRAMS] = {NULL};
  rung_context *context[PROGRAMS] = {NULL};
  rung_state *state[PROGRAMS] = {NULL};
  rung_state_options so = rung_state_options_default();
  so.sequences = 1;
  so.capacity = 256;
  so.chunk = 64;
  rung_memory first = {0};
  uint64_t most = 0;
  for (int i = 0; i < PROGRAMS; i++) {
    const uint64_t before = tiny_held(w);
    ceiling[n].value = 8 * (i + 1);
    CHECK_OK(rung_template_specialise(t, ceiling, n + 1, &w->error, &program[i]));
    CHECK_OK(rung_state_create(t, &so, &w->error, &state[i]));
    CHECK_OK(rung_context_create(t, rung_model_view(w->model), state[i], NULL, &w->error, &context[i]));
    CHECK_OK(rung_context_use(context[i], program[i]));
    const rung_memory own = rung_context_memory(context[i]), m = rung_model_memory(w->model);
    const uint64_t more = tiny_held(w) - before - own.activations - own.scratch - rung_state_bytes(state[i]);
    if (i == 0) first = m;
    CHECK(first.packed > 0 && m.packed == first.packed && m.weights == first.weights);
    if (i > 0 && more > most) most = more;
  }
  CHECK(most < EXTRA);
  printf("each further program with its context at most %" PRIu64 " bytes besides its arena and states\n", most);
  for (int i = 0; i < PROGRAMS; i++) {
    rung_context_destroy(context[i]);
    rung_state_release(state[i]);
    rung_program_release(program[i]);
  }
}

static void test_programs_and_rungs(void) {
  if (test_slow()) SKIP("too slow here");
  tiny w;
  if (!open_real(&w)) return;
  rung_template *t = NULL;
  rung_program *p = NULL;
  const rung_generate_options options = tiny_options(1, 256, 64);
  const rung_status status = rung_model_compile(w.model, &options, &w.error, &t, &p);
  CHECK_OK(status);
  if (!status) {
    check_rungs(&w, t, p);
    check_programs(&w, t, p);
  }
  rung_program_release(p);
  rung_template_release(t);
  tiny_close(&w);
}

int main(void) {
  RUN(test_programs_and_rungs);
  RUN(test_generators);
  return TEST_END();
}
