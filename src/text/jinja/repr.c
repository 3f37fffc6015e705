/* SPDX-License-Identifier: MIT
 * Values as text: str, repr, and JSON as Python's json.dumps writes it. */
#include <math.h>
#include <stdio.h>

#include "text/jinja/characters.h"
#include "text/jinja/value.h"
#include "text/utf8.h"

/* The shortest digits that read back, laid out as Python does: an exponent below 1e-4 and from 1e16 on, else a point. */
rung_status rung_j_put_float(rung_jrun *run, rung_jtext *text, double value) {
  if (isnan(value)) return rung_j_puts(run, text, "nan");
  if (isinf(value)) return rung_j_puts(run, text, value < 0 ? "-inf" : "inf");
  char digits[40] = "", exponent[16];
  rung_text made;
  rung_text_init(&made, run->host);
  for (int precision = 0; precision <= 16; precision++) {
    double back = 0;
    made.length = 0;
    rung_text_printf(&made, "%.*e", precision, fabs(value));
    if (made.failed) break;
    if (rung_parse_f64(made.data, NULL, &back, NULL) && back == fabs(value)) break;
  }
  const rung_status status = rung_text_status(&made, run->error);
  if (!status) snprintf(digits, sizeof digits, "%s", made.data);
  rung_text_finish(&made);
  RUNG_TRY(status);
  int power = 0, count = 0;
  for (char *p = digits; *p; p++) { /* d.ddde+xx, whatever the point looks like */
    if (*p == 'e') {
      int64_t read = 0;
      (void)rung_parse_i64(p + 1, NULL, &read, NULL);
      power = (int)read;
      break;
    }
    if (*p >= '0' && *p <= '9') digits[count++] = *p;
  }
  while (count > 1 && digits[count - 1] == '0') count--;
  if (signbit(value)) RUNG_TRY(rung_j_puts(run, text, "-"));
  if (power < -4 || power >= 16) {
    RUNG_TRY(rung_j_put(run, text, digits, 1));
    if (count > 1) RUNG_TRY(rung_j_puts(run, text, "."));
    RUNG_TRY(rung_j_put(run, text, digits + 1, (size_t)count - 1));
    snprintf(exponent, sizeof exponent, "e%c%02d", power < 0 ? '-' : '+', power < 0 ? -power : power);
    return rung_j_puts(run, text, exponent);
  }
  if (power < 0) RUNG_TRY(rung_j_puts(run, text, "0."));
  for (int i = power + 1; i < 0; i++) RUNG_TRY(rung_j_puts(run, text, "0"));
  for (int i = 0; i < count || i <= power; i++) {
    if (i == power + 1 && power >= 0) RUNG_TRY(rung_j_puts(run, text, "."));
    RUNG_TRY(rung_j_put(run, text, i < count ? &digits[i] : "0", 1));
  }
  return count <= power + 1 ? rung_j_puts(run, text, ".0") : RUNG_OK;
}

/* ---- repr */

static rung_status put_quoted(rung_jrun *run, rung_jtext *text, const rung_jstring *s) {
  const bool single = s->length && memchr(s->data, '\'', s->length) != NULL;
  const bool twice = s->length && memchr(s->data, '"', s->length) != NULL;
  const char quote = single && !twice ? '"' : '\'';
  RUNG_TRY(rung_j_put(run, text, &quote, 1));
  for (size_t at = 0; at < s->length;) {
    uint32_t c = 0;
    const int n = rung_utf8_read((const uint8_t *)s->data + at, s->length - at, &c);
    char escape[16] = "";
    if (c == '\\' || c == (uint8_t)quote)
      snprintf(escape, sizeof escape, "\\%c", (char)c);
    else if (c == '\n' || c == '\r' || c == '\t')
      snprintf(escape, sizeof escape, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (rung_jclass_is(c, RUNG_J_UNPRINTABLE))
      snprintf(escape, sizeof escape, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
    RUNG_TRY(escape[0] ? rung_j_puts(run, text, escape) : rung_j_put(run, text, s->data + at, (size_t)n));
    at += (size_t)n;
  }
  return rung_j_put(run, text, &quote, 1);
}

static rung_status put_elements(rung_jrun *run, rung_jtext *text, const rung_jlist *list, const char *open,
                                const char *close) {
  RUNG_TRY(rung_j_puts(run, text, open));
  for (size_t i = 0; i < list->count; i++) {
    if (i) RUNG_TRY(rung_j_puts(run, text, ", "));
    RUNG_TRY(rung_j_put_repr(run, text, list->item[i]));
  }
  return rung_j_puts(run, text, close);
}

static rung_status put_members(rung_jrun *run, rung_jtext *text, const rung_jdict *dict) {
  RUNG_TRY(rung_j_puts(run, text, "{"));
  for (uint32_t i = 0; i < dict->count; i++) {
    if (i) RUNG_TRY(rung_j_puts(run, text, ", "));
    RUNG_TRY(rung_j_put_repr(run, text, dict->entry[i].key));
    RUNG_TRY(rung_j_puts(run, text, ": "));
    RUNG_TRY(rung_j_put_repr(run, text, dict->entry[i].value));
  }
  return rung_j_puts(run, text, "}");
}

static rung_status put_range(rung_jrun *run, rung_jtext *text, const rung_jlist *list) {
  char shown[96];
  snprintf(shown, sizeof shown, list->step == 1 ? "range(%lld, %lld)" : "range(%lld, %lld, %lld)",
           (long long)list->start, (long long)list->stop, (long long)list->step);
  return rung_j_puts(run, text, shown);
}

static rung_status put_repr(rung_jrun *run, rung_jtext *text, rung_jvalue v) {
  char number[24];
  switch (v.kind) {
    case RUNG_J_UNDEFINED:
      return rung_j_puts(run, text, "Undefined");
    case RUNG_J_NONE:
      return rung_j_puts(run, text, "None");
    case RUNG_J_BOOL:
      return rung_j_puts(run, text, v.as.truth ? "True" : "False");
    case RUNG_J_INT:
      snprintf(number, sizeof number, "%lld", (long long)v.as.integer);
      return rung_j_puts(run, text, number);
    case RUNG_J_BIG:
      return rung_j_put(run, text, v.as.string->data, v.as.string->length);
    case RUNG_J_FLOAT:
      return rung_j_put_float(run, text, v.as.number);
    case RUNG_J_STRING:
      if (v.as.string->safe) RUNG_TRY(rung_j_puts(run, text, "Markup("));
      RUNG_TRY(put_quoted(run, text, v.as.string));
      return v.as.string->safe ? rung_j_puts(run, text, ")") : RUNG_OK;
    case RUNG_J_LIST:
      return put_elements(run, text, v.as.list, "[", "]");
    case RUNG_J_TUPLE:
      return put_elements(run, text, v.as.list, "(", v.as.list->count == 1 ? ",)" : ")");
    case RUNG_J_RANGE:
      return put_range(run, text, v.as.list);
    case RUNG_J_VIEW:
      RUNG_TRY(rung_j_puts(run, text, v.as.list->name));
      return put_elements(run, text, v.as.list, "([", "])");
    case RUNG_J_DICT:
      return put_members(run, text, v.as.dict);
    case RUNG_J_NAMESPACE:
      RUNG_TRY(rung_j_puts(run, text, "<Namespace "));
      RUNG_TRY(put_members(run, text, v.as.dict));
      return rung_j_puts(run, text, ">");
    default: /* Python prints an address */
      return rung_j_refuse(run, RUNG_UNSUPPORTED, "a %s as text", rung_j_type(v));
  }
}

rung_status rung_j_put_repr(rung_jrun *run, rung_jtext *text, rung_jvalue v) {
  RUNG_TRY(rung_j_enter(run));
  const rung_status status = put_repr(run, text, v);
  rung_j_leave(run);
  return status;
}

rung_status rung_j_put_str(rung_jrun *run, rung_jtext *text, rung_jvalue v) {
  if (v.kind == RUNG_J_STRING) return rung_j_put(run, text, v.as.string->data, v.as.string->length);
  if (v.kind == RUNG_J_UNDEFINED) return RUNG_OK;
  return rung_j_put_repr(run, text, v);
}

rung_status rung_j_str(rung_jrun *run, rung_jvalue v, rung_jvalue *out) {
  if (v.kind == RUNG_J_STRING) {
    *out = v;
    return RUNG_OK;
  }
  rung_jtext text = {0};
  RUNG_TRY(rung_j_put_str(run, &text, v));
  return rung_j_take(run, &text, out);
}

/* ---- JSON */

static rung_status put_json_string(rung_jrun *run, rung_jtext *text, const rung_jstring *s, bool ascii) {
  RUNG_TRY(rung_j_puts(run, text, "\""));
  size_t plain = 0; /* where what needs no escape began */
  for (size_t at = 0; at < s->length;) {
    const uint8_t first = (uint8_t)s->data[at];
    if (first >= 0x20 && first != '"' && first != '\\' && (first < 0x7F || !ascii)) {
      at++;
      continue;
    }
    RUNG_TRY(rung_j_put(run, text, s->data + plain, at - plain));
    uint32_t c = 0;
    const int n = rung_utf8_read((const uint8_t *)s->data + at, s->length - at, &c);
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = c && c < 0x80 ? strchr(named, (int)c) : NULL;
    char escape[16];
    if (found)
      snprintf(escape, sizeof escape, "\\%c", letters[found - named]);
    else if (c < 0x10000)
      snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
    else
      snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xD7C0u + (unsigned)(c >> 10), 0xDC00u + (unsigned)(c & 0x3FF));
    RUNG_TRY(rung_j_puts(run, text, escape));
    at += (size_t)n;
    plain = at;
  }
  RUNG_TRY(rung_j_put(run, text, s->data + plain, s->length - plain));
  return rung_j_puts(run, text, "\"");
}

static rung_status put_line(rung_jrun *run, rung_jtext *text, const rung_jlayout *layout, int level) {
  if (!layout->lines) return RUNG_OK;
  RUNG_TRY(rung_j_puts(run, text, "\n"));
  for (int i = 0; i < level; i++) RUNG_TRY(rung_j_put(run, text, layout->indent, layout->indent_length));
  return RUNG_OK;
}

static rung_status put_json(rung_jrun *run, rung_jtext *text, rung_jvalue v, const rung_jlayout *layout, int level);

static rung_status put_json_list(rung_jrun *run, rung_jtext *text, const rung_jlist *list, const rung_jlayout *layout,
                                 int level) {
  if (!list->count) return rung_j_puts(run, text, "[]");
  RUNG_TRY(rung_j_puts(run, text, "["));
  for (size_t i = 0; i < list->count; i++) {
    if (i) RUNG_TRY(rung_j_put(run, text, layout->item, layout->item_length));
    RUNG_TRY(put_line(run, text, layout, level + 1));
    RUNG_TRY(put_json(run, text, list->item[i], layout, level + 1));
  }
  RUNG_TRY(put_line(run, text, layout, level));
  return rung_j_puts(run, text, "]");
}

static rung_status put_json_name(rung_jrun *run, rung_jtext *text, rung_jvalue key, const rung_jlayout *layout) {
  if (key.kind == RUNG_J_STRING) return put_json_string(run, text, key.as.string, layout->ascii);
  if (key.kind != RUNG_J_NONE && key.kind != RUNG_J_BIG && !rung_j_is_number(key))
    return rung_j_fail(run, "keys must be str, int, float, bool or None, not %s", rung_j_type(key));
  RUNG_TRY(rung_j_puts(run, text, "\""));
  RUNG_TRY(put_json(run, text, key, layout, 0));
  return rung_j_puts(run, text, "\"");
}

/* Insertion into a sorted copy by halving: stable, and Python's TypeError where keys have no order. */
static rung_status sort_members(rung_jrun *run, const rung_jdict *dict, rung_jentry **out) {
  rung_jentry *sorted;
  RUNG_TRY(rung_j_alloc(run, dict->count * sizeof *sorted, &sorted));
  for (uint32_t i = 0; i < dict->count; i++) {
    uint32_t low = 0, high = i;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      int order;
      RUNG_TRY(rung_j_order(run, dict->entry[i].key, sorted[middle].key, "<", &order));
      if (order < 0)
        high = middle;
      else
        low = middle + 1;
    }
    RUNG_TRY(rung_j_work(run, (i - low) * sizeof *sorted));
    memmove(sorted + low + 1, sorted + low, (i - low) * sizeof *sorted);
    sorted[low] = dict->entry[i];
  }
  *out = sorted;
  return RUNG_OK;
}

static rung_status put_json_dict(rung_jrun *run, rung_jtext *text, const rung_jdict *dict, const rung_jlayout *layout,
                                 int level) {
  if (!dict->count) return rung_j_puts(run, text, "{}");
  rung_jentry *entry = dict->entry;
  if (layout->sort) RUNG_TRY(sort_members(run, dict, &entry));
  RUNG_TRY(rung_j_puts(run, text, "{"));
  for (uint32_t i = 0; i < dict->count; i++) {
    if (i) RUNG_TRY(rung_j_put(run, text, layout->item, layout->item_length));
    RUNG_TRY(put_line(run, text, layout, level + 1));
    RUNG_TRY(put_json_name(run, text, entry[i].key, layout));
    RUNG_TRY(rung_j_put(run, text, layout->member, layout->member_length));
    RUNG_TRY(put_json(run, text, entry[i].value, layout, level + 1));
  }
  RUNG_TRY(put_line(run, text, layout, level));
  return rung_j_puts(run, text, "}");
}

static rung_status put_json_scalar(rung_jrun *run, rung_jtext *text, rung_jvalue v, const rung_jlayout *layout) {
  switch (v.kind) {
    case RUNG_J_NONE:
      return rung_j_puts(run, text, "null");
    case RUNG_J_BOOL:
      return rung_j_puts(run, text, v.as.truth ? "true" : "false");
    case RUNG_J_STRING:
      return put_json_string(run, text, v.as.string, layout->ascii);
    case RUNG_J_FLOAT:
      if (isnan(v.as.number)) return rung_j_puts(run, text, "NaN");
      if (isinf(v.as.number)) return rung_j_puts(run, text, v.as.number < 0 ? "-Infinity" : "Infinity");
      return rung_j_put_float(run, text, v.as.number);
    case RUNG_J_INT:
    case RUNG_J_BIG:
      return rung_j_put_repr(run, text, v);
    default:
      return rung_j_fail(run, "Object of type %s is not JSON serializable", rung_j_type(v));
  }
}

static rung_status put_json(rung_jrun *run, rung_jtext *text, rung_jvalue v, const rung_jlayout *layout, int level) {
  RUNG_TRY(rung_j_enter(run));
  rung_status status;
  if (v.kind == RUNG_J_LIST || v.kind == RUNG_J_TUPLE)
    status = put_json_list(run, text, v.as.list, layout, level);
  else if (v.kind == RUNG_J_DICT)
    status = put_json_dict(run, text, v.as.dict, layout, level);
  else
    status = put_json_scalar(run, text, v, layout);
  rung_j_leave(run);
  return status;
}

rung_status rung_j_put_json(rung_jrun *run, rung_jtext *text, rung_jvalue value, const rung_jlayout *layout) {
  return put_json(run, text, value, layout, 0);
}
