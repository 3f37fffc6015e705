/* SPDX-License-Identifier: MIT
 * Which of the three ways a plan's runs go: as one captured graph, as captured stretches between steps that the host
 * takes part in, or as plain launches. */
#include <inttypes.h>

#include "backends/cuda/run.h"

typedef struct census {
  uint32_t stretches, captured; /* of kernels in a row; long enough for a graph */
  uint32_t kernels, host, control;
  int64_t library; /* rows from which on it multiplies; -1: never */
} census;

static void end_stretch(census *c, uint32_t *kernels) {
  c->stretches += *kernels > 0;
  c->captured += *kernels >= RUNG_CUDA_WORTH_A_GRAPH;
  c->kernels += *kernels;
  *kernels = 0;
}

static void look(const rung_plan *plan, const rung_cuda_image *image, const rung_step *step, census *c,
                 uint32_t *kernels) {
  bool absorbed = false, host = false;
  for (uint32_t v = step->variant; v < step->variant + step->variants; v++) {
    const rung_cuda_prepared *p = &image->prepared[v];
    absorbed |= p->absorbed;
    host |= !p->kernel->unit;
    if (strncmp(p->kernel->row.name, "library_", 8) != 0) continue;
    if (c->library < 0 || plan->variant[v].kernel->guard_lo < c->library)
      c->library = plan->variant[v].kernel->guard_lo;
  }
  *kernels += !absorbed && !host;
  if (!host) return;
  c->host++;
  end_stretch(c, kernels);
}

static census count(const rung_plan *plan, const rung_cuda_image *image) {
  census c = {.library = -1};
  uint32_t kernels = 0;
  for (uint32_t s = 0; s < plan->steps; s++) {
    const rung_step *step = &plan->step[s];
    if (step->kind == RUNG_STEP_KERNEL) {
      look(plan, image, step, &c, &kernels);
      continue;
    }
    c.control++;
    end_stretch(&c, &kernels);
  }
  end_stretch(&c, &kernels);
  return c;
}

void rung_cuda_describe(void *self_, const void *image, const rung_plan *plan, rung_text *out) {
  const rung_cuda *self = self_;
  const census c = count(plan, image);
  if (!self->captures)
    rung_text_puts(out, "runs: plain launches, captures are switched off\n");
  else if (!c.captured)
    rung_text_printf(out, "runs: plain launches, no more than %d kernels are in a row\n", RUNG_CUDA_WORTH_A_GRAPH - 1);
  else if (c.stretches == 1 && !c.host && !c.control)
    rung_text_printf(out, "runs: one captured graph for each range of sizes, of at most %" PRIu32 " kernels\n",
                     c.kernels);
  else
    rung_text_printf(out,
                     "runs: hybrid, %" PRIu32 " of %" PRIu32 " stretches of kernels captured, between %" PRIu32
                     " steps of the host and %" PRIu32 " that are decided there\n",
                     c.captured, c.stretches, c.host, c.control);
  if (self->captures && c.captured && c.library >= 0)
    rung_text_printf(out, "runs: from %" PRId64 " rows on plain launches, where the library multiplies\n", c.library);
}
