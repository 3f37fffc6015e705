/* SPDX-License-Identifier: MIT
 * What of a plan stays: arrays of their exact size, and only the references that steps and loops name. Planning itself
 * works in memory that goes when it is done; a run resolves every reference, so each one left out saves time as well.
 */
#include <string.h>

#include "plan/planner.h"

typedef void visit_fn(void *self, uint32_t *first, uint32_t count);

/* Every place of the plan that names references. */
static void visit_refs(rung_plan *plan, visit_fn *visit, void *self) {
  for (uint32_t i = 0; i < plan->steps; i++) {
    visit(self, &plan->step[i].in, plan->step[i].n_in);
    visit(self, &plan->step[i].out, plan->step[i].n_out);
  }
  for (uint32_t i = 0; i < plan->loops; i++) {
    rung_plan_loop *l = &plan->loop[i];
    uint32_t *const one[] = {&l->iteration_ref, &l->condition_in_ref, &l->condition_ref, &l->trip_ref, &l->start_ref};
    for (size_t k = 0; k < RUNG_COUNT(one); k++) visit(self, one[k], 1);
  }
  for (uint32_t i = 0; i < plan->carrieds; i++) {
    rung_carried *c = &plan->carried[i];
    uint32_t *const one[] = {&c->start_ref, &c->in_ref, &c->out_ref, &c->result_ref};
    for (size_t k = 0; k < RUNG_COUNT(one); k++) visit(self, one[k], 1);
  }
  for (uint32_t i = 0; i < plan->scans; i++) {
    visit(self, &plan->scan[i].body_ref, 1);
    visit(self, &plan->scan[i].ref, 1);
  }
}

static void mark(void *self, uint32_t *first, uint32_t count) {
  uint32_t *place = self;
  for (uint32_t i = 0; i < count; i++) place[*first + i] = 1;
}

/* The order stays, so those that stood one after another still do. */
static void move(void *self, uint32_t *first, uint32_t count) {
  const uint32_t *place = self;
  *first = count ? place[*first] : 0;
}

static rung_status drop_unused_refs(rung_planner *p) {
  rung_plan *plan = p->plan;
  uint32_t *place = rung_arena_array(&p->work, plan->refs + 1, sizeof *place);
  if (!place) return rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory");
  memset(place, 0, (plan->refs + 1) * sizeof *place);
  visit_refs(plan, mark, place);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < plan->refs; i++) {
    if (!place[i]) continue;
    plan->ref[kept] = plan->ref[i];
    place[i] = kept++;
  }
  visit_refs(plan, move, place);
  plan->refs = kept;
  return RUNG_OK;
}

static bool settle(rung_arena *arena, void **array, uint32_t count, uint32_t *capacity, size_t element) {
  void *exact = count ? rung_arena_array(arena, count, element) : NULL;
  if (count && !exact) return false;
  if (count) memcpy(exact, *array, count * element);
  *array = exact;
  *capacity = count;
  return true;
}

rung_status rung_planner_compact(rung_planner *p) {
  rung_plan *plan = p->plan;
  RUNG_TRY(drop_unused_refs(p));
  bool good = true;
#define X(type, name) \
  good = good && settle(&plan->arena, (void **)&plan->name, plan->name##s, &plan->name##_capacity, sizeof(type));
  RUNG_PLAN_ARRAYS(X)
#undef X
  return good ? RUNG_OK : rung_planner_fail(p, RUNG_OUT_OF_MEMORY, "plan: out of memory");
}
