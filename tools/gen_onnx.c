/* SPDX-License-Identifier: MIT
 * Prints docs/onnx.md: the table of ONNX operators. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/onnx/onnx.h"
#include "ops/op_table.h"
#include "ops/shape.h"

/* The classes of an op's test cases, for the column of types: what an operator of one op takes. */
static void print_types(const char *name) {
  const rung_op *op = *name ? rung_op_find(name, strlen(name)) : NULL;
  bool seen[RUNG_TYPE_LIMIT] = {false};
  for (const rung_test_case *t = op ? op->tests : NULL; t && t->operands; t++)
    for (int type = 0; type < RUNG_TYPE_LIMIT; type++) {
      char text[24];
      snprintf(text, sizeof text, "%s[", rung_type_name((rung_type)type));
      const char *at = rung_type_get((rung_type)type) ? strstr(t->operands, text) : NULL;
      if (at && (at == t->operands || at[-1] == ' ')) seen[type] = true;
    }
  bool first = true;
  for (int type = 0; type < RUNG_TYPE_LIMIT; type++) {
    if (!seen[type]) continue;
    printf("%s%s", first ? "" : " ", rung_type_name((rung_type)type));
    first = false;
  }
}

static void print_domain(const char *domain, const char *title) {
  printf("\n## %s\n\n| operator | opsets | op | types | refused |\n|---|---|---|---|---|\n", title);
  for (size_t i = 0; i < rung_onnx_operators(); i++) {
    const rung_onnx_operator o = rung_onnx_operator_at(i);
    if (strcmp(o.domain, domain) != 0) continue;
    char until[16] = "";
    if (o.until) snprintf(until, sizeof until, "%d", o.until);
    printf("| %s | %d..%s | %s%s%s | ", o.name, o.since, until, *o.op ? "`" : "", *o.op ? o.op : "several",
           *o.op ? "`" : "");
    print_types(o.op);
    printf(" | %s |\n", o.limits);
  }
}

int main(void) {
  printf(
      "# ONNX\n\nPrinted by `tools/gen_onnx` from `src/formats/onnx/table.def`; not edited by hand. %zu rows; opsets 1 "
      "to %d of the standard "
      "domain.\n\n"
      "`rung run -m model.onnx -i NAME=FILE.npy` runs a model, `rung inspect -m model.onnx` shows its inputs, symbols "
      "and "
      "outputs, and with `--fused` and `--kernels` what became of it. Named dimensions of inputs become symbols, "
      "others are "
      "called after their input and axis (`x_2`); both go from 1 to 65536 until `--bind` or an input says more. Shapes "
      "that the "
      "graph computes are followed while it is read, so that they end as extents; sizes that depend on data are found "
      "while it "
      "runs, and are bounded by what the file declares, by the operator, or by 65536. Weights stay in the file, or in "
      "the files "
      "that it names, which must lie beside it; they are read there at whatever byte they stand, but for small ones "
      "and "
      "those of kernels that need numbers aligned, which are copied once (`inspect --memory` says how much).\n\n"
      "What must be known when a model is opened (axes, steps, branches whose results have different ranks) and "
      "depends on an "
      "input or an open extent is taken from `-i` and `--bind`, and is then fixed for that graph; a note says so. An "
      "operator "
      "that is missing is refused with a list of all that are. `scripts/onnx_cases.py` runs the operator cases of the "
      "onnx "
      "package; those that fail stand with their reasons in `tests/onnx/failing.txt`. `scripts/oracle/onnx_models.py` "
      "compares "
      "real models with ONNX Runtime.\n\n"
      "Not read: strings, sequences, optionals, maps, sparse and complex tensors, training. Types are those of the "
      "op's own "
      "test cases; operators made of several ops take what these take.\n",
      rung_onnx_operators(), RUNG_ONNX_NEWEST_OPSET);
  print_domain("", "ai.onnx");
  print_domain("ai.onnx.ml", "ai.onnx.ml");
  print_domain("ai.onnx.preview", "ai.onnx.preview");
  print_domain("com.microsoft", "com.microsoft");
  return fflush(stdout) != 0;
}
