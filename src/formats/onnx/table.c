/* SPDX-License-Identifier: MIT
 * The table of operators. A node takes the row of its operator whose versions hold that of its opset. */
#include <string.h>

#include "formats/onnx/import.h"

#define ROW(domain, name, since, until, builder, op, variant, limits) void onnx_build_##builder(onnx_call *call);
#include "formats/onnx/table.def"
#undef ROW

#define STANDARD ""
#define MICROSOFT "com.microsoft"
#define ML "ai.onnx.ml"
#define PREVIEW "ai.onnx.preview"
static const onnx_row rows[] = {
#define ROW(domain, name, since, until, builder, op, variant, limits) \
  {domain, #name, since, until, onnx_build_##builder, op, variant, limits},
#include "formats/onnx/table.def"
#undef ROW
};

onnx_name onnx_domain(onnx_name domain) { return onnx_name_is(domain, "ai.onnx") ? (onnx_name){"", 0} : domain; }

const onnx_row *onnx_row_find(onnx_name domain, onnx_name op, int64_t version) {
  domain = onnx_domain(domain);
  const bool standard = domain.length == 0;
  if (standard && (version < 1 || version > RUNG_ONNX_NEWEST_OPSET)) return NULL;
  for (size_t i = 0; i < RUNG_COUNT(rows); i++) {
    const onnx_row *row = &rows[i];
    if (!onnx_name_is(op, row->name) || !onnx_name_is(domain, row->domain)) continue;
    if (version >= row->since && (!row->until || version <= row->until)) return row;
  }
  return NULL;
}

size_t rung_onnx_operators(void) { return RUNG_COUNT(rows); }
rung_onnx_operator rung_onnx_operator_at(size_t index) {
  const onnx_row *row = &rows[index];
  return (rung_onnx_operator){row->domain, row->name,  row->op ? row->op->name : "",
                              row->since,  row->until, row->limits};
}
