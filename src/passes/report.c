/* SPDX-License-Identifier: MIT
 * The report of a compile: what passes did and nearly did. Lines that say the same of many layers become one line with
 * a count and the places, in which numbers are stars: "30 x rms_norm + quantize_rows (layers.*.attention)". */
#include <stdio.h>
#include <string.h>

#include "passes/pass.h"

enum { PLACES = 3 };

typedef struct line {
  struct line *next;
  rung_note_kind kind;
  const char *what, *why;
  uint32_t count, places;
  const char *place[PLACES]; /* the first few that differ */
} line;

struct rung_notes {
  rung_arena arena;
  line *first, *last;
  bool failed;
};

rung_status rung_notes_create(rung_host *host, rung_error *error, rung_notes **out_notes) {
  rung_notes *notes = (rung_notes *)rung_host_alloc(host, RUNG_MEMORY_host, sizeof *notes, 0);
  if (!notes) return rung_fail(error, RUNG_OUT_OF_MEMORY, "passes: out of memory");
  rung_arena_init(&notes->arena, host);
  *out_notes = notes;
  return RUNG_OK;
}

void rung_notes_destroy(rung_notes *notes) {
  if (!notes) return;
  rung_host *host = notes->arena.host;
  rung_arena_finish(&notes->arena);
  rung_host_free(host, RUNG_MEMORY_host, notes, sizeof *notes);
}

/* "layers.3.attention" -> "layers.*.attention". */
static void star_numbers(const char *label, char *out, size_t bytes) {
  size_t n = 0;
  for (const char *c = label; *c && n + 1 < bytes; c++) {
    const bool digit = *c >= '0' && *c <= '9';
    if (digit && n && out[n - 1] == '*') continue;
    /* Only a number that stands alone: "conv2d" keeps its name. */
    const bool start = c == label || c[-1] == '.' || c[-1] == '/' || c[-1] == '_';
    out[n++] = digit && start ? '*' : *c;
  }
  out[n] = 0;
}

static void add_place(rung_notes *notes, line *l, const char *label) {
  char place[128];
  star_numbers(label, place, sizeof place);
  for (uint32_t i = 0; i < l->places && i < PLACES; i++)
    if (strcmp(l->place[i], place) == 0) return;
  if (l->places < PLACES) {
    l->place[l->places] = rung_arena_text(&notes->arena, place, strlen(place));
    if (!l->place[l->places]) {
      notes->failed = true;
      return;
    }
  }
  l->places++;
}

static line *find_line(rung_notes *notes, rung_note_kind kind, const char *what, const char *why) {
  for (line *l = notes->first; l; l = l->next)
    if (l->kind == kind && strcmp(l->what, what) == 0 && strcmp(l->why, why) == 0) return l;
  line *l = (line *)rung_arena_alloc(&notes->arena, sizeof *l);
  const char *what_copy = rung_arena_text(&notes->arena, what, strlen(what));
  const char *why_copy = rung_arena_text(&notes->arena, why, strlen(why));
  if (!l || !what_copy || !why_copy) return NULL;
  *l = (line){.kind = kind, .what = what_copy, .why = why_copy};
  if (notes->last)
    notes->last->next = l;
  else
    notes->first = l;
  return notes->last = l;
}

void rung_note(const rung_pass_env *env, rung_note_kind kind, const char *label, const char *what, const char *why) {
  rung_notes *notes = env->notes;
  if (!notes || notes->failed) return;
  line *l = find_line(notes, kind, what, why ? why : "");
  if (!l) {
    notes->failed = true;
    return;
  }
  l->count++;
  if (label) add_place(notes, l, label);
}

static void print_line(const line *l, rung_text *out) {
  rung_text_printf(out, "%6u x %s", l->count, l->what);
  for (uint32_t i = 0; i < l->places && i < PLACES; i++) rung_text_printf(out, "%s%s", i ? ", " : "  (", l->place[i]);
  if (l->places > PLACES) rung_text_printf(out, ", and %u more", l->places - PLACES);
  rung_text_printf(out, "%s%s%s\n", l->places ? ")" : "", l->why[0] ? ": " : "", l->why);
}

rung_status rung_notes_print(const rung_notes *notes, rung_text *out, rung_error *error) {
  static const char *const heading[RUNG_NOTES] = {
      [RUNG_NOTE_REPLACED] = "recognised", [RUNG_NOTE_FOLDED] = "computed from weights once",
      [RUNG_NOTE_MERGED] = "merged",       [RUNG_NOTE_FORM] = "packed",
      [RUNG_NOTE_FUSED] = "fused",         [RUNG_NOTE_NEARLY] = "not done",
  };
  if (notes->failed) return rung_fail(error, RUNG_OUT_OF_MEMORY, "passes: out of memory for the report");
  for (int kind = 0; kind < RUNG_NOTES; kind++) {
    bool any = false;
    for (const line *l = notes->first; l; l = l->next) {
      if ((int)l->kind != kind) continue;
      if (!any) rung_text_printf(out, "%s\n", heading[kind]);
      any = true;
      print_line(l, out);
    }
  }
  return rung_text_status(out, error);
}

void rung_note_ops(const rung_graph *g, const uint32_t *node, uint32_t count, char *out, size_t bytes) {
  size_t n = 0;
  out[0] = 0;
  for (uint32_t i = 0; i < count && n + 1 < bytes; i++) {
    const int more = snprintf(out + n, bytes - n, "%s%s", i ? " + " : "", g->node[node[i]].op->name);
    if (more > 0) n += (size_t)more;
  }
}
