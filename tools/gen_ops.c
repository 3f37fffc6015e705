/* SPDX-License-Identifier: MIT
 * Prints what is derived from the op table: include/rung/ops.h, src/ops/build_generated.c, docs/ops.md.
 *
 *   gen_ops header|source|docs PUBLIC_HEADER...
 *
 * The public headers (all of include/rung/ but ops.h) are looked through for names: an op whose builder would be named
 * like a public type or function is refused. The output is committed; a test compares it. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise.h"
#include "ops/op_table.h"
#include "ops/shape.h"

/* ---- what a builder looks like */

/* Declarations are in rung/graph.h; ops with bodies that are no control flow are made by passes alone. */
static int is_public(const rung_op *op) {
  if (op->flags & RUNG_OP_DECLARES) return 0;
  return !op->bodies || (op->flags & RUNG_OP_CONTROL);
}

static const char *const keywords[] = {
    "and",    "auto",    "bool",   "break",       "case",   "char",     "class",  "const",    "continue", "default",
    "delete", "do",      "double", "else",        "enum",   "extern",   "float",  "for",      "goto",     "if",
    "inline", "int",     "long",   "new",         "not",    "operator", "or",     "private",  "public",   "register",
    "return", "short",   "signed", "sizeof",      "static", "struct",   "switch", "template", "this",     "true",
    "false",  "typedef", "union",  "unsigned",    "using",  "virtual",  "void",   "volatile", "while",    "xor",
    "graph",  "options", "count",  "out_results", "ceil",   "floor"};
/* A name that C and C++ accept for a parameter; the buffers take turns. */
static const char *safe(const char *name) {
  static char buffer[8][64];
  static int turn;
  char *out = buffer[turn++ % 8];
  size_t n = strlen(name);
  if (n > 3 && strcmp(name + n - 3, "...") == 0) n -= 3;
  snprintf(out, sizeof buffer[0], "%.*s", (int)n, name);
  for (size_t i = 0; i < RUNG_COUNT(keywords); i++)
    if (strcmp(out, keywords[i]) == 0) strcat(out, "_");
  return out;
}
static const char *upper(const char *name) {
  static char buffer[8][64];
  static int turn;
  char *out = buffer[turn++ % 8];
  snprintf(out, sizeof buffer[0], "%s", name);
  for (char *c = out; *c; c++) *c = (char)toupper((unsigned char)*c);
  return out;
}

static int attr_count(const rung_op *op) {
  int n = 0;
  while (op->attrs && op->attrs[n].name) n++;
  return n - op->inner_attrs;
}
static int is_list(const rung_attr *attr) { return attr->kind == RUNG_ATTR_DIMS || attr->kind == RUNG_ATTR_I64S; }
static int is_required(const rung_attr *attr) { return !attr->text_default; }
/* Attributes with defaults are parameters while the op has at most three attributes, else fields of options. */
static int has_options(const rung_op *op) {
  int optional = 0;
  for (int i = 0; i < attr_count(op); i++) optional += !is_required(&op->attrs[i]);
  return attr_count(op) > 3 && optional;
}
static int in_options(const rung_op *op, int i) { return has_options(op) && !is_required(&op->attrs[i]); }

/* An attribute that is named like an operand gets a trailing underscore. */
static const char *attr_name(const rung_op *op, const rung_attr *attr) {
  static char buffer[8][64];
  static int turn;
  for (int i = 0; op->operands && op->operands[i]; i++) {
    if (strcmp(op->operands[i], attr->name) != 0) continue;
    char *out = buffer[turn++ % 8];
    snprintf(out, sizeof buffer[0], "%s_", attr->name);
    return out;
  }
  return safe(attr->name);
}

static const char *ctype(const rung_attr *attr) {
  switch ((rung_attr_kind)attr->kind) {
    case RUNG_ATTR_I64:
      return "int64_t ";
    case RUNG_ATTR_F64:
      return "double ";
    case RUNG_ATTR_BOOL:
      return "bool ";
    case RUNG_ATTR_TEXT:
      return "const char *";
    case RUNG_ATTR_TYPE:
      return "rung_type ";
    case RUNG_ATTR_ENUM:
      return "int32_t ";
    case RUNG_ATTR_DIM:
      return "rung_dim ";
    case RUNG_ATTR_DIMS:
      return "const rung_dim *";
    case RUNG_ATTR_I64S:
      return "const int64_t *";
    case RUNG_ATTR_CONSTANT:
      break;
  }
  return "const void *";
}

static int operand_names(const rung_op *op) {
  int n = 0;
  while (op->operands && op->operands[n]) n++;
  return n;
}
static int repeats(const char *name) {
  const size_t n = strlen(name);
  return n > 3 && strcmp(name + n - 3, "...") == 0;
}
static int result_names(const rung_op *op) {
  int n = 0;
  while (op->results_named && op->results_named[n]) n++;
  return n;
}
/* 0: as many as the node has, which the caller must know. */
static int fixed_results(const rung_op *op) { return op->results; }

/* ---- the prototype, wrapped at 120 columns */
static char line[4096];
static size_t column;
static void part(const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const size_t n = strlen(text);
  if (column + n > 119) {
    while (*line && line[strlen(line) - 1] == ' ') line[strlen(line) - 1] = 0;
    strcat(line, "\n    ");
    column = 4;
  }
  strcat(line, text);
  column += n;
}

static void list_parameter(const rung_op *op, int i, int *shared) {
  const rung_attr *attr = &op->attrs[i];
  if (is_required(attr)) {
    if (!*shared) part("int count, ");
    *shared = 1;
  } else
    part("int %s_count, ", attr_name(op, attr));
}

static const char *prototype(const rung_op *op, const char *prefix) {
  int shared = 0;
  *line = 0;
  column = 0;
  part("%s%s rung_%s(rung_graph *graph, ", prefix, op->results == 1 ? "rung_value" : "void", op->name);
  for (int i = 0; i < operand_names(op); i++) {
    const char *name = op->operands[i];
    if (repeats(name))
      part("const rung_value *%s, uint32_t %s_count, ", safe(name), safe(name));
    else
      part("rung_value %s, ", safe(name));
  }
  for (int i = 0; i < op->bodies; i++) part(op->bodies > 1 ? "rung_graph *body_%d, " : "rung_graph *body, ", i);
  for (int required = 1; required >= 0; required--) {
    for (int i = 0; i < attr_count(op); i++) {
      const rung_attr *attr = &op->attrs[i];
      if (is_required(attr) != required || in_options(op, i)) continue;
      if (is_list(attr)) list_parameter(op, i, &shared);
      part("%s%s, ", ctype(attr), attr_name(op, attr));
    }
  }
  if (has_options(op)) part("const rung_%s_options *options, ", op->name);
  if (op->results != 1)
    part(fixed_results(op) ? "rung_value *out_results, " : "uint32_t results, rung_value *out_results, ");
  size_t n = strlen(line);
  while (n && (line[n - 1] == ' ' || line[n - 1] == ',' || line[n - 1] == '\n')) line[--n] = 0;
  strcat(line, ")");
  return line;
}

/* ---- ops.h */
static void attr_doc(const rung_op *op, const rung_attr *attr) {
  printf("\n * %s", attr->name);
  if (attr->text_default && *attr->text_default) printf(" (default %s)", attr->text_default);
  if (attr->doc) printf(": %s", attr->doc);
  for (int k = 0; attr->kind == RUNG_ATTR_ENUM && attr->names[k]; k++) printf("%s%s", k ? ", " : "; ", attr->names[k]);
  (void)op;
}

static void print_comment(const rung_op *op) {
  printf("/* %s.", op->doc);
  for (int i = op->in_lo; op->in_hi != 255 && i < op->in_hi; i++)
    printf("\n * %s: optional, {0, 0} for none", op->operands[i]);
  for (int i = 0; i < attr_count(op); i++)
    if (!in_options(op, i)) attr_doc(op, &op->attrs[i]);
  if (op->results > 1) {
    printf("\n * out_results[%d]:", op->results);
    for (int i = 0; i < result_names(op); i++) printf("%s %s", i ? "," : "", op->results_named[i]);
  }
  if (!op->results) printf("\n * results: how many out_results has room for; must be what the node has");
  printf(" */\n");
}

static void print_enums(const rung_op *op) {
  for (int i = 0; i < attr_count(op); i++) {
    const rung_attr *attr = &op->attrs[i];
    if (attr->kind != RUNG_ATTR_ENUM) continue;
    printf("enum { ");
    for (int k = 0; attr->names[k]; k++)
      printf("%sRUNG_%s_%s_%s", k ? ", " : "", upper(op->name), upper(attr->name), upper(attr->names[k]));
    printf(" };\n");
  }
}

static void print_options(const rung_op *op) {
  printf("typedef struct rung_%s_options {\n  size_t size; /* sizeof(rung_%s_options) */\n", op->name, op->name);
  for (int i = 0; i < attr_count(op); i++) {
    const rung_attr *attr = &op->attrs[i];
    if (!in_options(op, i)) continue;
    if (is_list(attr))
      printf("  int32_t %s_count;\n  %s%s[RUNG_MAX_RANK];", attr_name(op, attr),
             attr->kind == RUNG_ATTR_DIMS ? "rung_dim " : "int64_t ", attr_name(op, attr));
    else
      printf("  %s%s;", ctype(attr), attr_name(op, attr));
    printf(" /* ");
    if (attr->doc) printf("%s", attr->doc);
    if (attr->text_default && *attr->text_default) printf("; default %s", attr->text_default);
    printf(" */\n");
  }
  printf("} rung_%s_options;\nRUNG_API rung_%s_options rung_%s_options_default(void);\n", op->name, op->name, op->name);
}

static void print_header(void) {
  printf(
      "/* SPDX-License-Identifier: MIT\n"
      " * Ops as verbs on a graph. Generated by tools/gen_ops from the table of ops; not edited by hand.\n"
      " *\n"
      " * Each call appends one node and gives its result. Building is sticky (rung/graph.h): operands are checked, "
      "and\n"
      " * after an error every call gives the null value. Operands of elementwise ops broadcast as in numpy. Lists "
      "hold at\n"
      " * most RUNG_MAX_RANK entries and are copied. Options NULL means defaults.\n"
      " */\n"
      "#ifndef RUNG_OPS_H\n#define RUNG_OPS_H\n\n#include <rung/graph.h>\n\n"
      "#ifdef __cplusplus\nextern \"C\" {\n#endif\n/* clang-format off */\n");
  for (size_t i = 0; i < rung_op_count(); i++) {
    const rung_op *op = rung_op_at(i);
    if (!is_public(op)) continue;
    printf("\n");
    print_enums(op);
    if (has_options(op)) print_options(op);
    print_comment(op);
    printf("%s;\n", prototype(op, "RUNG_API "));
  }
  printf("\n/* clang-format on */\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

/* ---- build_generated.c */
static void print_default(const rung_op *op, const rung_attr *attr) {
  const char *text = attr->text_default;
  const char *name = attr_name(op, attr);
  rung_type type;
  switch ((rung_attr_kind)attr->kind) {
    case RUNG_ATTR_TEXT:
      printf("  options.%s = NULL;\n", name);
      break;
    case RUNG_ATTR_TYPE:
      if (rung_type_find(text, &type)) printf("  options.%s = RUNG_TYPE_%s;\n", name, upper(text));
      break;
    case RUNG_ATTR_ENUM:
      printf("  options.%s = RUNG_%s_%s_%s;\n", name, upper(op->name), upper(attr->name), upper(text));
      break;
    case RUNG_ATTR_DIM:
      break; /* the null dimension stands for the default */
    case RUNG_ATTR_DIMS:
    case RUNG_ATTR_I64S:
      if (strcmp(text, "[]") != 0)
        fprintf(stderr, "gen_ops: %s.%s: a list's default can only be empty\n", op->name, attr->name), exit(1);
      break;
    default:
      printf("  options.%s = %s;\n", name, text);
  }
}

static const char *setter(const rung_attr *attr) {
  static const char *const names[] = {[RUNG_ATTR_I64] = "i64",   [RUNG_ATTR_F64] = "f64",   [RUNG_ATTR_BOOL] = "bool",
                                      [RUNG_ATTR_TEXT] = "text", [RUNG_ATTR_TYPE] = "type", [RUNG_ATTR_ENUM] = "enum",
                                      [RUNG_ATTR_DIM] = "dim",   [RUNG_ATTR_DIMS] = "dims", [RUNG_ATTR_I64S] = "i64s"};
  return names[attr->kind];
}

static void print_setters(const rung_op *op) {
  for (int i = 0; i < attr_count(op); i++) {
    const rung_attr *attr = &op->attrs[i];
    const char *name = attr_name(op, attr), *from = in_options(op, i) ? "o." : "";
    printf("  rung_builder_%s(&builder, %d, ", setter(attr), i);
    if (is_list(attr) && is_required(attr))
      printf("count, ");
    else if (is_list(attr))
      printf("%s%s_count, ", from, name);
    printf("%s%s);\n", from, name);
  }
}

static void print_builder(const rung_op *op) {
  if (has_options(op)) {
    printf(
        "\nrung_%s_options rung_%s_options_default(void) {\n  rung_%s_options options;\n"
        "  memset(&options, 0, sizeof options);\n  options.size = sizeof options;\n",
        op->name, op->name, op->name);
    for (int i = 0; i < attr_count(op); i++)
      if (in_options(op, i)) print_default(op, &op->attrs[i]);
    printf("  return options;\n}\n");
  }
  printf("\n%s {\n  rung_builder builder;\n  rung_builder_begin(&builder, graph, &rung_op_%s);\n", prototype(op, ""),
         op->name);
  if (has_options(op))
    printf(
        "  rung_%s_options o = rung_%s_options_default();\n"
        "  if (options && rung_builder_options(&builder, options->size))\n"
        "    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);\n",
        op->name, op->name);
  for (int i = 0; i < operand_names(op); i++) {
    const char *name = safe(op->operands[i]);
    if (repeats(op->operands[i]))
      printf("  rung_builder_many(&builder, %s, %s_count);\n", name, name);
    else
      printf("  rung_builder_%s(&builder, %s);\n", i < op->in_lo ? "in" : "optional", name);
  }
  for (int i = 0; i < op->bodies; i++)
    printf(op->bodies > 1 ? "  rung_builder_body(&builder, body_%d);\n" : "  rung_builder_body(&builder, body);\n", i);
  print_setters(op);
  if (op->results == 1)
    printf("  return rung_builder_end(&builder);\n}\n");
  else if (op->results)
    printf("  rung_builder_end_all(&builder, %d, out_results);\n}\n", op->results);
  else
    printf("  rung_builder_end_all(&builder, results, out_results);\n}\n");
}

static void print_source(void) {
  printf(
      "/* SPDX-License-Identifier: MIT\n"
      " * The builders of rung/ops.h. Generated by tools/gen_ops from the table of ops; not edited by hand. */\n"
      "/* clang-format off */\n#include <rung/ops.h>\n#include <string.h>\n\n#include \"ops/build_attrs.h\"\n#include "
      "\"ops/op_table.h\"\n");
  for (size_t i = 0; i < rung_op_count(); i++)
    if (is_public(rung_op_at(i))) print_builder(rung_op_at(i));
}

/* ---- docs/ops.md */
static void print_cell(const char *text) {
  for (; *text; text++) printf(*text == '|' ? "\\|" : "%c", *text);
}

static void print_operands(const rung_op *op) {
  for (int i = 0; i < operand_names(op); i++) {
    const int optional = op->in_hi != 255 && i >= op->in_lo;
    printf("%s%s%s%s", i ? ", " : "", optional ? "[" : "", op->operands[i], optional ? "]" : "");
  }
}

static void print_attrs(const rung_op *op) {
  for (int i = 0; i < attr_count(op); i++) {
    const rung_attr *attr = &op->attrs[i];
    printf("%s`%s", i ? ", " : "", attr->name);
    if (attr->text_default) printf("=%s", *attr->text_default ? attr->text_default : "\"\"");
    printf("`");
  }
}

/* Rows say what they take; of other ops, the types that their test cases show. */
static void print_types(const rung_op *op) {
  const rung_row *row = rung_row_of(op);
  if (row) {
    static const struct {
      uint32_t bit;
      const char *text;
    } classes[] = {{RUNG_TAKES_FLOAT, "float"}, {RUNG_TAKES_INT, "integer"}, {RUNG_TAKES_BOOL, "bool"}};
    int n = 0;
    for (size_t k = 0; k < RUNG_COUNT(classes); k++)
      if (row->takes & classes[k].bit) printf("%s%s", n++ ? ", " : "", classes[k].text);
    return;
  }
  int n = 0;
  for (size_t k = 0; k < rung_type_count(); k++) {
    const char *name = rung_type_name(rung_type_at(k));
    const size_t length = strlen(name);
    int seen = 0;
    for (const rung_test_case *t = op->tests; t && t->operands && !seen; t++)
      for (const char *at = t->operands; (at = strstr(at, name)) != NULL && !seen; at++)
        seen = at[length] == '[' && (at == t->operands || at[-1] == ' ');
    if (seen) printf("%s%s", n++ ? " " : "", name);
  }
}

static void print_docs(void) {
  size_t rows = 0;
  for (size_t i = 0; i < rung_op_count(); i++) rows += rung_row_of(rung_op_at(i)) != NULL;
  printf(
      "# Ops\n\nPrinted by `tools/gen_ops` from the table of ops (`src/ops/`); not edited by hand. %zu ops, %zu of "
      "them "
      "elementwise.\n\nOperands in brackets are optional; `x...` repeats. *Types*: for elementwise ops the classes "
      "that "
      "are taken, for others the types of their test cases. *Gradient*: yes, or why there is none. *Smaller*: has a "
      "decomposition into smaller ops, which a target without a kernel runs.\n\n",
      rung_op_count(), rows);
  printf("| op | operands | attributes | types | gradient | smaller | meaning |\n|---|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < rung_op_count(); i++) {
    const rung_op *op = rung_op_at(i);
    printf("| `%s` | ", op->name);
    print_operands(op);
    printf(" | ");
    print_attrs(op);
    printf(" | ");
    print_types(op);
    printf(" | %s | %s | ",
           op->gradient      ? "yes"
           : op->no_gradient ? op->no_gradient
                             : "no",
           op->decompose ? "yes" : "");
    print_cell(op->doc);
    printf(" |\n");
  }
}

/* ---- names that are taken */
static int word_char(int c) { return isalnum(c) || c == '_'; }

/* Does a line that declares (a typedef, the end of one, an API function) contain the word? Comments do not declare. */
static int declares(const char *text, const char *word) {
  if (strncmp(text, "typedef", 7) != 0 && *text != '}' && strncmp(text, "RUNG_API", 8) != 0) return 0;
  const size_t n = strlen(word);
  for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
    if ((at > text && word_char((unsigned char)at[-1])) || word_char((unsigned char)at[n])) continue;
    const char *comment = strstr(text, "/*");
    return !comment || at < comment;
  }
  return 0;
}

static int check_names(const char *path) {
  FILE *file = fopen(path, "r");
  char text[1024], word[96];
  int bad = 0;
  if (!file) {
    fprintf(stderr, "gen_ops: cannot read %s\n", path);
    return 1;
  }
  for (int number = 1; fgets(text, sizeof text, file); number++)
    for (size_t i = 0; i < rung_op_count(); i++) {
      const rung_op *op = rung_op_at(i);
      snprintf(word, sizeof word, "rung_%s", op->name);
      if (!is_public(op) || !declares(text, word)) continue;
      fprintf(stderr, "gen_ops: op %s: its builder %s has a name that is taken (%s:%d)\n", op->name, word, path,
              number);
      bad = 1;
    }
  fclose(file);
  return bad;
}

int main(int argc, char **argv) {
  int bad = 0;
  for (int i = 2; i < argc; i++) {
    const char *slash = strrchr(argv[i], '/');
    if (strcmp(slash ? slash + 1 : argv[i], "ops.h") != 0) bad |= check_names(argv[i]);
  }
  for (size_t i = 0; i < rung_op_count(); i++)
    for (size_t k = 0; k < i; k++)
      if (strcmp(rung_op_at(i)->name, rung_op_at(k)->name) == 0)
        fprintf(stderr, "gen_ops: op %s is listed twice\n", rung_op_at(i)->name), bad = 1;
  if (bad) return 1;
  if (argc > 1 && strcmp(argv[1], "header") == 0)
    print_header();
  else if (argc > 1 && strcmp(argv[1], "source") == 0)
    print_source();
  else if (argc > 1 && strcmp(argv[1], "docs") == 0)
    print_docs();
  else {
    fprintf(stderr, "usage: gen_ops header|source|docs PUBLIC_HEADER...\n");
    return 2;
  }
  return fflush(stdout) != 0;
}
