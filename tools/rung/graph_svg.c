/* SPDX-License-Identifier: MIT
 * A graph as SVG. Nodes stand in rows: a node one row below the lowest of its operands, its place in the row near the
 * middle of theirs. What holds weights and constants only is written inside the boxes of its readers. */
#include "graph_svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOX = 230, GAP = 30, LINE = 15, PAD = 8, BETWEEN = 46, MARGIN = 30, LETTERS = 34 };

typedef struct box {
  uint32_t node;
  int row, lines;
  double want, x, y, height;
} box;

typedef struct drawing {
  const rung_graph *graph;
  rung_text *out;
  box *box; /* drawn nodes, by row and place */
  uint32_t boxes;
  int32_t *at; /* box of a node, -1: not drawn */
  double *row_y;
  int rows;
  double width, height;
} drawing;

static bool is_inside(const rung_node *node) {
  return (node->op->flags & RUNG_OP_DECLARES) && !(node->op->flags & RUNG_OP_INPUT) &&
         strcmp(node->op->name, "state") != 0;
}

/* ---- text */

static void put_escaped(rung_text *out, const char *text, size_t most) {
  const size_t n = strlen(text);
  for (size_t i = 0; i < n && i < most; i++) {
    const unsigned char c = (unsigned char)text[i];
    if (i + 1 == most && n > most)
      rung_text_puts(out, "…");
    else if (c == '<')
      rung_text_puts(out, "&lt;");
    else if (c == '>')
      rung_text_puts(out, "&gt;");
    else if (c == '&')
      rung_text_puts(out, "&amp;");
    else if (c == '"')
      rung_text_puts(out, "&quot;");
    else if (c < 0x20 || c >= 0x7F) /* labels may hold anything */
      rung_text_puts(out, "?");
    else
      rung_text_add(out, text + i, 1);
  }
}

static void put_line(const drawing *d, const box *b, int line, const char *class_, const char *text) {
  rung_text_printf(d->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class_, b->x + BOX / 2.0,
                   b->y + PAD + LINE * (line + 1) - 4.0);
  put_escaped(d->out, text, LETTERS);
  rung_text_puts(d->out, "</text>");
}

static void type_of(const drawing *d, uint32_t value, rung_text *out) {
  out->length = 0;
  rung_value_type_print(d->graph->dims, rung_graph_value_type(d->graph, value), out);
}

/* Ops of a body in order, without its inputs. */
static void body_ops(const rung_graph *body, char *out, size_t bytes) {
  size_t used = strlen(out);
  for (uint32_t i = 0; i < body->nodes && used + 8 < bytes; i++) {
    if (body->node[i].op->flags & RUNG_OP_DECLARES) continue;
    const int n = snprintf(out + used, bytes - used, "%s%s", used ? " + " : "", body->node[i].op->name);
    if (n > 0) used += (size_t)n < bytes - used ? (size_t)n : bytes - used - 1;
  }
}

/* The lines of a box: what it is, what is inside, what comes out. draw false: only how many. */
static int lines_of(const drawing *d, const box *b, bool draw) {
  const rung_graph *g = d->graph;
  const rung_node *node = &g->node[b->node];
  rung_text text;
  rung_text_init(&text, g->host);
  int line = 0;
  const char *name = cli_node_name(node);
  if (name[0])
    rung_text_printf(&text, "%s %s", node->op->name, name);
  else
    rung_text_puts(&text, node->op->name);
  if (draw) put_line(d, b, line, "op", text.failed ? node->op->name : text.data);
  line++;
  for (uint32_t i = 0; i < node->bodies; i++, line++) {
    char ops[256] = "";
    body_ops(node->body[i], ops, sizeof ops);
    if (draw) put_line(d, b, line, "inside", ops);
  }
  for (uint32_t i = 0; i < node->n_in; i++) {
    const rung_node *from = rung_graph_producer(g, node->in[i]);
    if (!is_inside(from)) continue;
    const char *weight = cli_node_name(from);
    type_of(d, node->in[i], &text);
    if (draw) put_line(d, b, line, "inside", weight[0] ? weight : text.failed ? from->op->name : text.data);
    line++;
  }
  for (uint32_t i = 0; i < node->results && i < 4; i++, line++) {
    type_of(d, node->first_value + i, &text);
    if (draw && !text.failed) put_line(d, b, line, "type", text.data);
  }
  if (node->label) {
    if (draw) put_line(d, b, line, "label", node->label);
    line++;
  }
  rung_text_finish(&text);
  return line;
}

/* ---- places */

static int by_row(const void *a, const void *b) {
  const box *x = a, *y = b;
  if (x->row != y->row) return x->row < y->row ? -1 : 1;
  if (x->want != y->want) return x->want < y->want ? -1 : 1;
  return x->node < y->node ? -1 : 1;
}

static void choose_rows(drawing *d) {
  const rung_graph *g = d->graph;
  for (uint32_t i = 0; i < g->nodes; i++) {
    const rung_node *node = &g->node[i];
    d->at[i] = -1;
    if (is_inside(node)) continue;
    box *b = &d->box[d->boxes];
    *b = (box){.node = i};
    for (uint32_t k = 0; k < node->n_in; k++) {
      const int32_t from = d->at[g->value[node->in[k]].node];
      if (from >= 0 && d->box[from].row + 1 > b->row) b->row = d->box[from].row + 1;
    }
    if (b->row + 1 > d->rows) d->rows = b->row + 1;
    d->at[i] = (int32_t)d->boxes++;
  }
}

/* Rows from the top: each box near the middle of what it reads. */
static void place(drawing *d) {
  const rung_graph *g = d->graph;
  double y = MARGIN;
  for (uint32_t first = 0, end; first < d->boxes; first = end) {
    for (end = first; end < d->boxes && d->box[end].row == d->box[first].row; end++) {
      box *b = &d->box[end];
      const rung_node *node = &g->node[b->node];
      double total = 0;
      int count = 0;
      for (uint32_t k = 0; k < node->n_in; k++) {
        const int32_t from = d->at[g->value[node->in[k]].node];
        if (from >= 0) total += d->box[from].x, count++;
      }
      b->want = count ? total / count : (double)(end - first) * (BOX + GAP);
    }
    qsort(d->box + first, end - first, sizeof *d->box, by_row);
    double x = MARGIN, tallest = 0;
    for (uint32_t i = first; i < end; i++) {
      box *b = &d->box[i];
      d->at[b->node] = (int32_t)i;
      if (b->want > x) x = b->want;
      b->x = x;
      b->y = y;
      b->lines = lines_of(d, b, false);
      b->height = b->lines * LINE + 2 * PAD;
      x += BOX + GAP;
      if (b->height > tallest) tallest = b->height;
    }
    if (x > d->width) d->width = x;
    y += tallest + BETWEEN;
  }
  d->height = y;
}

/* ---- drawing */

static void draw_edge(const drawing *d, const box *from, const box *to, uint32_t index, uint32_t count,
                      uint32_t value) {
  const double x0 = from->x + BOX / 2.0, y0 = from->y + from->height;
  const double x1 = to->x + BOX * (double)(index + 1) / (double)(count + 1), y1 = to->y;
  /* What passes rows goes around them. */
  const double bulge = to->row - from->row > 1 ? BOX * 0.75 : 0, bend = (y1 - y0) * 0.45;
  rung_text_printf(d->out, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"><title>", x0, y0, x0 + bulge,
                   y0 + bend, x1 + bulge, y1 - bend, x1, y1);
  rung_text text;
  rung_text_init(&text, d->graph->host);
  type_of(d, value, &text);
  if (!text.failed && text.data) put_escaped(d->out, text.data, 200);
  rung_text_finish(&text);
  rung_text_puts(d->out, "</title></path>\n");
}

static void draw_edges(const drawing *d) {
  for (uint32_t i = 0; i < d->boxes; i++) {
    const rung_node *node = &d->graph->node[d->box[i].node];
    for (uint32_t k = 0; k < node->n_in; k++) {
      const int32_t from = d->at[d->graph->value[node->in[k]].node];
      if (from >= 0) draw_edge(d, &d->box[from], &d->box[i], k, node->n_in, node->in[k]);
    }
  }
}

static void draw_box(const drawing *d, const box *b) {
  const rung_node *node = &d->graph->node[b->node];
  const char *class_ = node->op->flags & RUNG_OP_INPUT      ? "input"
                       : node->op->flags & RUNG_OP_DECLARES ? "state"
                       : node->op->flags & RUNG_OP_VIEW     ? "view"
                                                            : "node";
  rung_text_printf(d->out, "<g><rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" rx=\"4\"/>",
                   class_, b->x, b->y, BOX, b->height);
  lines_of(d, b, true);
  rung_text_puts(d->out, "</g>\n");
}

static void draw_outputs(const drawing *d) {
  for (uint32_t i = 0; i < d->graph->outputs; i++) {
    const int32_t at = d->at[d->graph->value[d->graph->output[i].value].node];
    if (at < 0) continue;
    const box *b = &d->box[at];
    rung_text_printf(d->out, "<text class=\"output\" x=\"%.1f\" y=\"%.1f\">", b->x + BOX / 2.0,
                     b->y + b->height + LINE);
    put_escaped(d->out, d->graph->output[i].name, LETTERS);
    rung_text_puts(d->out, "</text>\n");
  }
}

static void draw(drawing *d) {
  static const char style[] =
      "<style>text{font:11px sans-serif;text-anchor:middle}.op{font-weight:bold}.inside{fill:#555}"
      ".type{font-family:monospace;font-size:10px}.label{fill:#888;font-style:italic}"
      ".output{font-weight:bold;fill:#060}rect{stroke:#444}.node{fill:#fff}.input{fill:#dfd}.state{fill:#fdf}"
      ".view{fill:#eee}path{fill:none;stroke:#89a}</style>\n";
  choose_rows(d);
  qsort(d->box, d->boxes, sizeof *d->box, by_row);
  for (uint32_t i = 0; i < d->boxes; i++) d->at[d->box[i].node] = (int32_t)i;
  place(d);
  rung_text_printf(d->out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
                   "height=\"%.0f\">\n",
                   d->width + MARGIN, d->height, d->width + MARGIN, d->height);
  rung_text_puts(d->out, style);
  draw_edges(d);
  for (uint32_t i = 0; i < d->boxes; i++) draw_box(d, &d->box[i]);
  draw_outputs(d);
  rung_text_puts(d->out, "</svg>\n");
}

rung_status cli_draw_graph(const rung_graph *graph, rung_text *out, rung_error *error) {
  drawing d = {.graph = graph, .out = out};
  d.box = calloc(graph->nodes + 1, sizeof *d.box);
  d.at = calloc(graph->nodes + 1, sizeof *d.at);
  if (d.box && d.at) draw(&d);
  const bool failed = !d.box || !d.at;
  free(d.box);
  free(d.at);
  return failed ? rung_fail(error, RUNG_OUT_OF_MEMORY, "picture: out of memory") : rung_text_status(out, error);
}
