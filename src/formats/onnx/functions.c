/* SPDX-License-Identifier: MIT
 * Functions of the model are imported in the place of each call, and what no row of the table builds is listed. */
#include "formats/onnx/functions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const onnx_function *onnx_function_find(const onnx_import *imp, const onnx_node *node) {
  for (uint32_t i = 0; i < imp->model.functions; i++) {
    const onnx_function *f = &imp->model.function[i];
    if (onnx_name_equal(f->name, node->op) && onnx_name_equal(onnx_domain(f->domain), onnx_domain(node->domain)) &&
        onnx_name_equal(f->overload, node->overload))
      return f;
  }
  return NULL;
}

void onnx_function_call(onnx_call *c, const onnx_function *f) {
  onnx_import *imp = c->imp;
  if (imp->calls >= ONNX_MAX_NESTING) {
    onnx_refuse(c, RUNG_UNSUPPORTED, "functions call each other deeper than %d", ONNX_MAX_NESTING);
    return;
  }
  onnx_scope *s = onnx_scope_create(imp, NULL, c->scope->body, NULL);
  if (!s) return;
  s->function = f;
  s->caller = c->node;
  s->caller_scope = c->scope;
  if (f->opsets) {
    s->opset = f->opset;
    s->opsets = f->opsets;
  }
  if (c->n_in > f->inputs || c->n_out > f->outputs) {
    onnx_refuse(c, RUNG_CORRUPT_FILE, "the function has %u inputs and %u outputs", f->inputs, f->outputs);
    return;
  }
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->in[i].id) (void)onnx_bind_name(s, f->input[i], c->in[i]);
  imp->calls++;
  (void)onnx_import_nodes(s, f->node, f->nodes);
  imp->calls--;
  for (uint32_t i = 0; i < c->n_out && !imp->status; i++) c->out[i] = onnx_look_up(s, f->output[i]);
}

/* ---- what is missing */

typedef struct absent {
  onnx_name op, domain;
  int64_t version;
  uint32_t count;
  onnx_name first[4]; /* nodes */
  struct absent *next;
} absent;

typedef struct search {
  onnx_import *imp;
  absent *list;
  uint32_t kinds, total;
} search;

static int64_t opset_of(const onnx_opset *opset, uint32_t opsets, onnx_name domain) {
  for (uint32_t i = 0; i < opsets; i++)
    if (onnx_name_equal(onnx_domain(opset[i].domain), onnx_domain(domain))) return opset[i].version;
  return 0;
}

static rung_status note_absent(search *s, const onnx_node *node, int64_t version) {
  absent *a = s->list;
  while (a && !(onnx_name_equal(a->op, node->op) && onnx_name_equal(a->domain, node->domain) && a->version == version))
    a = a->next;
  if (!a) {
    a = (absent *)rung_arena_alloc(&s->imp->arena, sizeof *a);
    if (!a) return onnx_fail(s->imp, RUNG_OUT_OF_MEMORY, "no memory for the list of missing operators");
    *a = (absent){.op = node->op, .domain = node->domain, .version = version, .next = s->list};
    s->list = a;
    s->kinds++;
  }
  if (a->count < RUNG_COUNT(a->first))
    a->first[a->count] = node->name.length ? node->name : node->outputs ? node->output[0] : node->op;
  a->count++;
  s->total++;
  return RUNG_OK;
}

static rung_status look(search *s, const onnx_node *node, uint32_t nodes, const onnx_opset *opset, uint32_t opsets) {
  for (uint32_t i = 0; i < nodes; i++) {
    const onnx_node *n = &node[i];
    const int64_t version = opset_of(opset, opsets, n->domain);
    if (!onnx_function_find(s->imp, n) && !onnx_row_find(n->domain, n->op, version))
      RUNG_TRY(note_absent(s, n, version));
    for (uint32_t k = 0; k < n->attrs; k++)
      if (n->attr[k].g) RUNG_TRY(look(s, n->attr[k].g->node, n->attr[k].g->nodes, opset, opsets));
  }
  return RUNG_OK;
}

static void describe(const absent *a, char *out, size_t bytes) {
  snprintf(out, bytes, "%s%s%s version %" PRId64 " (%u)", onnx_show(a->domain).text, a->domain.length ? "." : "",
           onnx_show(a->op).text, a->version, a->count);
}

static rung_status refuse_missing(search *s) {
  char list[RUNG_MESSAGE_BYTES - 80] = "", one[256];
  for (const absent *a = s->list; a; a = a->next) {
    describe(a, one, sizeof one);
    if (s->imp->missing) {
      rung_text_printf(s->imp->missing, "%s:", one);
      for (uint32_t i = 0; i < a->count && i < RUNG_COUNT(a->first); i++)
        rung_text_printf(s->imp->missing, " \"%s\"", onnx_show(a->first[i]).text);
      rung_text_puts(s->imp->missing, a->count > RUNG_COUNT(a->first) ? " ...\n" : "\n");
    }
    const size_t used = strlen(list);
    if (used + strlen(one) + 8 < sizeof list)
      snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", one);
    else if (used + 8 < sizeof list && strcmp(list + used - 3, "...") != 0)
      snprintf(list + used, sizeof list - used, ", ...");
  }
  return onnx_fail(s->imp, RUNG_UNSUPPORTED, "%u operators at %u nodes are not supported: %s", s->kinds, s->total,
                   list);
}

rung_status onnx_check_missing(onnx_import *imp) {
  search s = {.imp = imp};
  const onnx_model *m = &imp->model;
  RUNG_TRY(look(&s, m->graph->node, m->graph->nodes, m->opset, m->opsets));
  for (uint32_t i = 0; i < m->functions; i++) {
    const onnx_function *f = &m->function[i];
    const bool own = f->opsets != 0;
    RUNG_TRY(look(&s, f->node, f->nodes, own ? f->opset : m->opset, own ? f->opsets : m->opsets));
  }
  return s.kinds ? refuse_missing(&s) : RUNG_OK;
}
