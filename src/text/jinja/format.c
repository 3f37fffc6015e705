/* SPDX-License-Identifier: MIT
 * text % values, text.format(...), and dates. */
#include <stdio.h>

#include "text/jinja/text.h"
#include "text/utf8.h"

/* How one value is laid out: the common part of both languages. */
typedef struct layout {
  const char *fill;
  size_t fill_bytes;
  char align, sign, type; /* '<' '>' '^' '='; '-' '+' ' '; 0: none */
  bool alternate, comma;
  int64_t width, precision; /* -1: none */
} layout;

enum { MOST_WIDTH = 4096 };

/* Sign and prefix, then digits: padded between the two where the layout says so. */
static rung_status put_padded(rung_jrun *run, rung_jtext *text, const layout *l, const char *prefix, const char *digits,
                              size_t bytes) {
  rung_jvalue body, padded;
  rung_jtext whole = {0};
  if (l->align == '=') {
    RUNG_TRY(rung_j_text(run, digits, bytes, &body));
    RUNG_TRY(
        rung_jtext_pad(run, body.as.string, l->width - (int64_t)strlen(prefix), l->fill, l->fill_bytes, '>', &padded));
    RUNG_TRY(rung_j_puts(run, text, prefix));
    return rung_j_put_str(run, text, padded);
  }
  RUNG_TRY(rung_j_puts(run, &whole, prefix));
  RUNG_TRY(rung_j_put(run, &whole, digits, bytes));
  RUNG_TRY(rung_j_take(run, &whole, &body));
  if (l->align == '^') { /* format centres with the odd blank on the right */
    const int64_t missing = l->width - rung_j_characters(body.as.string);
    if (missing > 0)
      RUNG_TRY(
          rung_jtext_pad(run, body.as.string, l->width - missing + missing / 2, l->fill, l->fill_bytes, '>', &body));
    RUNG_TRY(rung_jtext_pad(run, body.as.string, l->width, l->fill, l->fill_bytes, '<', &padded));
  } else {
    RUNG_TRY(rung_jtext_pad(run, body.as.string, l->width, l->fill, l->fill_bytes, l->align, &padded));
  }
  return rung_j_put_str(run, text, padded);
}

static rung_status put_text(rung_jrun *run, rung_jtext *text, const layout *l, rung_jvalue v) {
  rung_jvalue s;
  RUNG_TRY(rung_j_str(run, v, &s));
  if (l->precision >= 0 && l->precision < rung_j_characters(s.as.string))
    RUNG_TRY(rung_j_part(run, s.as.string, 0, rung_j_offset(s.as.string, l->precision), &s));
  return put_padded(run, text, l, "", s.as.string->data, s.as.string->length);
}

static void add_commas(char *digits, size_t bytes) {
  size_t whole = 0;
  while (digits[whole] >= '0' && digits[whole] <= '9') whole++;
  for (size_t at = whole; at > 3; at -= 3) {
    const size_t length = strlen(digits);
    if (length + 2 > bytes) return;
    memmove(digits + at - 2, digits + at - 3, length - (at - 3) + 1);
    digits[at - 3] = ',';
  }
}

static void based(uint64_t value, unsigned base, bool capitals, char *out) {
  char turned[72];
  int n = 0;
  do turned[n++] = (capitals ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
  while ((value /= base) != 0);
  while (n) *out++ = turned[--n];
  *out = 0;
}

static rung_status put_integer(rung_jrun *run, rung_jtext *text, const layout *l, int64_t value) {
  char digits[128], prefix[4] = "";
  size_t n = 0;
  const uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  const unsigned base = l->type == 'x' || l->type == 'X' ? 16 : l->type == 'o' ? 8 : l->type == 'b' ? 2 : 10;
  based(size, base, l->type == 'X', digits);
  if (l->comma) add_commas(digits, sizeof digits);
  if (value < 0 || l->sign == '+' || l->sign == ' ') prefix[n++] = value < 0 ? '-' : l->sign;
  if (l->alternate && base != 10) {
    prefix[n++] = '0';
    prefix[n++] = l->type;
  }
  prefix[n] = 0;
  return put_padded(run, text, l, prefix, digits, strlen(digits));
}

static rung_status put_float(rung_jrun *run, rung_jtext *text, const layout *l, double value) {
  char digits[512], prefix[2] = "";
  rung_text made;
  const int precision = l->precision < 0 ? 6 : (int)l->precision;
  if (precision > 100) return rung_j_refuse(run, RUNG_UNSUPPORTED, "a precision of more than 100 digits");
  rung_text_init(&made, run->host);
  const double size = value < 0 ? -value : value;
  if (l->type == '%')
    rung_text_printf(&made, "%.*f%%", precision, size * 100);
  else
    rung_text_printf(&made,
                     l->type == 'e'   ? "%.*e"
                     : l->type == 'E' ? "%.*E"
                     : l->type == 'g' ? "%.*g"
                     : l->type == 'G' ? "%.*G"
                                      : "%.*f",
                     precision, size);
  const rung_status status = rung_text_status(&made, run->error);
  snprintf(digits, sizeof digits, "%s", made.data ? made.data : "");
  rung_text_finish(&made);
  RUNG_TRY(status);
  if (l->comma) add_commas(digits, sizeof digits);
  if (value < 0 || l->sign == '+' || l->sign == ' ') prefix[0] = value < 0 ? '-' : l->sign;
  return put_padded(run, text, l, prefix, digits, strlen(digits));
}

static rung_status put_number(rung_jrun *run, rung_jtext *text, layout *l, rung_jvalue v) {
  const bool whole = l->type && strchr("dioxXbuc", l->type);
  if (v.kind == RUNG_J_UNDEFINED) return rung_j_undefined_error(run, v);
  if (v.kind == RUNG_J_BIG) return rung_j_refuse(run, RUNG_UNSUPPORTED, "an integer of more than 64 bits");
  if (!rung_j_is_number(v))
    return rung_j_fail(run, "%%%c format: a real number is required, not %s", l->type, rung_j_type(v));
  if (!whole) return put_float(run, text, l, rung_j_number(v));
  if (l->type == 'c') return rung_j_refuse(run, RUNG_UNSUPPORTED, "the format c of a number");
  return put_integer(run, text, l, rung_j_integer(v));
}

/* ---- text % values */

typedef struct values {
  rung_jvalue from;
  size_t used;
} values;

static rung_status next_value(rung_jrun *run, values *v, rung_jvalue *out) {
  const bool tuple = v->from.kind == RUNG_J_TUPLE;
  if (v->used >= (tuple ? v->from.as.list->count : 1))
    return rung_j_fail(run, "not enough arguments for format string");
  *out = tuple ? v->from.as.list->item[v->used] : v->from;
  v->used++;
  return RUNG_OK;
}

/* A number or * in a conversion. */
static rung_status read_count(rung_jrun *run, const char **at, const char *end, values *v, int64_t *out) {
  if (*at < end && **at == '*') {
    rung_jvalue one;
    (*at)++;
    RUNG_TRY(next_value(run, v, &one));
    RUNG_TRY(rung_jarg_integer(run, one, "*", 0, out));
  } else {
    for (; *at < end && **at >= '0' && **at <= '9' && *out <= MOST_WIDTH; (*at)++)
      *out = (*out < 0 ? 0 : *out) * 10 + (**at - '0');
  }
  return *out <= MOST_WIDTH ? RUNG_OK : rung_j_refuse(run, RUNG_UNSUPPORTED, "a width of more than %d", MOST_WIDTH);
}

static rung_status convert(rung_jrun *run, rung_jtext *text, const char **at, const char *end, values *v) {
  layout l = {.fill = " ", .fill_bytes = 1, .align = '>', .precision = -1};
  rung_jvalue value = {0}, key;
  bool left = false, zero = false;
  if (*at < end && **at == '(') {
    const char *close = memchr(*at, ')', (size_t)(end - *at));
    const rung_jvalue *found;
    if (!close) return rung_j_fail(run, "incomplete format key");
    if (v->from.kind != RUNG_J_DICT) return rung_j_fail(run, "format requires a mapping");
    RUNG_TRY(rung_j_text(run, *at + 1, (size_t)(close - *at - 1), &key));
    RUNG_TRY(rung_j_get(run, v->from.as.dict, key, &found));
    if (!found) return rung_j_fail(run, "KeyError in a format");
    value = *found;
    *at = close + 1;
  }
  for (; *at < end && **at && strchr("-+ #0", **at); (*at)++) {
    left = left || **at == '-';
    zero = zero || **at == '0';
    if (**at == '+' || (**at == ' ' && l.sign != '+')) l.sign = **at;
    l.alternate = l.alternate || **at == '#';
  }
  RUNG_TRY(read_count(run, at, end, v, &l.width));
  if (l.width < 0) {
    left = true;
    l.width = -l.width;
  }
  if (*at < end && **at == '.') {
    (*at)++;
    l.precision = 0;
    RUNG_TRY(read_count(run, at, end, v, &l.precision));
  }
  while (*at < end && (**at == 'l' || **at == 'h' || **at == 'L')) (*at)++;
  if (*at == end) return rung_j_fail(run, "incomplete format");
  l.type = *(*at)++;
  if (l.type == '%') return rung_j_puts(run, text, "%");
  if (value.kind == RUNG_J_MISSING) RUNG_TRY(next_value(run, v, &value));
  if (left) l.align = '<';
  if (l.type == 's') return put_text(run, text, &l, value);
  if (l.type == 'r') {
    rung_jtext shown = {0};
    RUNG_TRY(rung_j_put_repr(run, &shown, value));
    RUNG_TRY(rung_j_take(run, &shown, &value));
    return put_text(run, text, &l, value);
  }
  if (!strchr("diuoxXeEfFgG", l.type)) return rung_j_refuse(run, RUNG_UNSUPPORTED, "the format %%%c", l.type);
  if (zero && !left) {
    l.align = '=';
    l.fill = "0";
  }
  if (strchr("oxX", l.type) && value.kind == RUNG_J_FLOAT)
    return rung_j_fail(run, "%%%c format: an integer is required, not float", l.type);
  if (value.kind == RUNG_J_FLOAT && strchr("diu", l.type)) {
    if (!(value.as.number > -9e18 && value.as.number < 9e18)) return rung_j_fail(run, "no integer");
    value = rung_j_int((int64_t)value.as.number);
  }
  if (l.precision >= 0 && strchr("diuoxX", l.type))
    return rung_j_refuse(run, RUNG_UNSUPPORTED, "a precision of integers");
  return put_number(run, text, &l, value);
}

rung_status rung_j_percent(rung_jrun *run, const rung_jstring *format, rung_jvalue value, rung_jvalue *out) {
  rung_jtext text = {0};
  values v = {.from = value};
  const char *at = format->data, *end = at + format->length;
  if (format->safe) return rung_j_refuse(run, RUNG_UNSUPPORTED, "%% of markup");
  while (at < end) {
    const char *mark = memchr(at, '%', (size_t)(end - at));
    RUNG_TRY(rung_j_put(run, &text, at, (size_t)((mark ? mark : end) - at)));
    if (!mark) break;
    at = mark + 1;
    RUNG_TRY(convert(run, &text, &at, end, &v));
  }
  const size_t given = value.kind == RUNG_J_TUPLE                               ? value.as.list->count
                       : value.kind == RUNG_J_DICT || value.kind == RUNG_J_LIST ? 0
                                                                                : 1;
  if (v.used < given) return rung_j_fail(run, "not all arguments converted during string formatting");
  return rung_j_take(run, &text, out);
}

/* ---- text.format(...) */

typedef struct fields {
  const rung_jcall *call;
  size_t next; /* of fields without a name */
} fields;

/* name.attribute[item]... */
static rung_status read_field(rung_jrun *run, const char *at, const char *end, fields *f, rung_jvalue *out) {
  const char *stop = at;
  while (stop < end && *stop != '.' && *stop != '[') stop++;
  int64_t index;
  const char *behind;
  if (stop == at) {
    index = (int64_t)f->next++;
    behind = stop;
  } else if (*at < '0' || *at > '9' || !rung_parse_i64(at, stop, &index, &behind) || behind != stop) {
    index = -1;
  }
  if (index >= 0) {
    if ((size_t)index >= f->call->count)
      return rung_j_fail(run, "Replacement index %lld out of range", (long long)index);
    *out = f->call->item[index];
  } else {
    const rung_jvalue *found = f->call->named ? rung_j_find(f->call->named, at, (size_t)(stop - at)) : NULL;
    if (!found) return rung_j_fail(run, "KeyError: '%.*s'", stop - at < 60 ? (int)(stop - at) : 60, at);
    *out = *found;
  }
  while (stop < end) {
    const bool item = *stop == '[';
    const char *from = stop + 1;
    for (stop = from; stop < end && (item ? *stop != ']' : *stop != '.' && *stop != '['); stop++) continue;
    if (from == stop || (item && stop == end)) return rung_j_fail(run, "a malformed field in a format");
    rung_jvalue key;
    if (!item) {
      RUNG_TRY(rung_j_attribute(run, *out, from, (size_t)(stop - from), out));
      continue;
    }
    if (*from >= '0' && *from <= '9' && rung_parse_i64(from, stop, &index, &behind) && behind == stop)
      key = rung_j_int(index);
    else
      RUNG_TRY(rung_j_text(run, from, (size_t)(stop - from), &key));
    RUNG_TRY(rung_j_item(run, *out, key, out));
    stop++;
  }
  return RUNG_OK;
}

static rung_status read_spec(rung_jrun *run, const char *at, const char *end, layout *l) {
  *l = (layout){.fill = " ", .fill_bytes = 1, .precision = -1};
  const size_t n = at < end ? rung_utf8_announced((uint8_t)*at) : 1;
  if (at + n < end && strchr("<>^=", at[n]) && at[n]) {
    l->fill = at;
    l->fill_bytes = n;
    l->align = at[n];
    at += n + 1;
  } else if (at < end && *at && strchr("<>^=", *at)) {
    l->align = *at++;
  }
  if (at < end && (*at == '+' || *at == '-' || *at == ' ')) l->sign = *at++;
  if (at < end && *at == '#') l->alternate = *at++ == '#';
  if (at < end && *at == '0') {
    at++;
    if (!l->align) {
      l->align = '=';
      l->fill = "0";
      l->fill_bytes = 1;
    }
  }
  values none = {0};
  if (at < end && *at != '*') RUNG_TRY(read_count(run, &at, end, &none, &l->width));
  if (at < end && *at == ',') l->comma = *at++ == ',';
  if (at < end && *at == '.') {
    at++;
    if (at == end || *at < '0' || *at > '9') return rung_j_fail(run, "Format specifier missing precision");
    RUNG_TRY(read_count(run, &at, end, &none, &l->precision));
  }
  if (at < end) l->type = *at++;
  return at == end ? RUNG_OK : rung_j_fail(run, "Invalid format specifier");
}

static rung_status put_field(rung_jrun *run, rung_jtext *text, rung_jvalue v, const char *spec, const char *end) {
  layout l;
  if (spec == end) return rung_j_put_str(run, text, v);
  RUNG_TRY(read_spec(run, spec, end, &l));
  if (v.kind == RUNG_J_STRING) {
    if (l.type && l.type != 's') return rung_j_fail(run, "Unknown format code '%c' for object of type 'str'", l.type);
    if (l.align == '=' || l.sign || l.comma) return rung_j_fail(run, "a format of numbers for a str");
    if (!l.align) l.align = '<';
    return put_text(run, text, &l, v);
  }
  if (!rung_j_is_number(v))
    return rung_j_fail(run, "unsupported format string passed to %s.__format__", rung_j_type(v));
  if (!l.align) l.align = '>';
  if (v.kind == RUNG_J_FLOAT ? !l.type || !strchr("eEfFgG%", l.type) : l.type && !strchr("dxXobeEfFgG%", l.type))
    return rung_j_refuse(run, RUNG_UNSUPPORTED, "this format of a number");
  if (!l.type) l.type = 'd';
  if (l.precision >= 0 && strchr("dxXob", l.type))
    return rung_j_fail(run, "Precision not allowed in integer format specifier");
  return put_number(run, text, &l, v);
}

/* One {field!conversion:spec}, at the byte behind the brace. */
static rung_status put_replacement(rung_jrun *run, rung_jtext *text, const char **at, const char *end, fields *f) {
  const char *close = *at, *mark;
  while (close < end && *close != '}' && *close != '{') close++;
  if (close == end) return rung_j_fail(run, "expected '}' before end of string");
  if (*close == '{') return rung_j_refuse(run, RUNG_UNSUPPORTED, "a field inside a field of a format");
  const char *name_end = *at;
  while (name_end < close && *name_end != '!' && *name_end != ':') name_end++;
  rung_jvalue value;
  RUNG_TRY(read_field(run, *at, name_end, f, &value));
  mark = name_end;
  if (mark < close && *mark == '!') {
    rung_jtext shown = {0};
    const char kind = mark + 1 < close ? mark[1] : 0;
    if ((kind != 'r' && kind != 's') || (mark + 2 < close && mark[2] != ':'))
      return rung_j_refuse(run, RUNG_UNSUPPORTED, "this conversion of a format");
    RUNG_TRY(kind == 'r' ? rung_j_put_repr(run, &shown, value) : rung_j_put_str(run, &shown, value));
    RUNG_TRY(rung_j_take(run, &shown, &value));
    mark += 2;
  }
  *at = close + 1;
  return put_field(run, text, value, mark < close ? mark + 1 : close, close);
}

rung_status rung_j_format(rung_jrun *run, const rung_jstring *format, const rung_jcall *call, rung_jvalue *out) {
  rung_jtext text = {0};
  fields f = {.call = call};
  const char *at = format->data, *end = at + format->length;
  if (format->safe) return rung_j_refuse(run, RUNG_UNSUPPORTED, "format of markup");
  while (at < end) {
    const char *from = at;
    while (at < end && *at != '{' && *at != '}') at++;
    RUNG_TRY(rung_j_put(run, &text, from, (size_t)(at - from)));
    if (at == end) break;
    const char brace = *at++;
    if (at < end && *at == brace) {
      RUNG_TRY(rung_j_put(run, &text, at++, 1));
      continue;
    }
    if (brace == '}') return rung_j_fail(run, "Single '}' encountered in format string");
    if (at == end) return rung_j_fail(run, "Single '{' encountered in format string");
    RUNG_TRY(put_replacement(run, &text, &at, end, &f));
  }
  return rung_j_take(run, &text, out);
}

/* ---- dates */

typedef struct date {
  int64_t year;
  int month, day, hour, minute, second, weekday,
      yearday; /* month and day from 1, weekday 0 is Sunday, yearday from 0 */
} date;

static bool is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

static date date_of(int64_t now) {
  static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
  int64_t days = now / 86400, rest = now % 86400;
  if (rest < 0) {
    rest += 86400;
    days--;
  }
  date d = {.hour = (int)(rest / 3600), .minute = (int)(rest / 60 % 60), .second = (int)(rest % 60)};
  d.weekday = (int)(((days + 4) % 7 + 7) % 7);
  days += 719468; /* from the first of March of the year 0, in eras of 400 years */
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097, day = days - era * 146097;
  const int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
  const int64_t in_year = day - (365 * year + year / 4 - year / 100), month = (5 * in_year + 2) / 153;
  d.day = (int)(in_year - (153 * month + 2) / 5 + 1);
  d.month = (int)(month < 10 ? month + 3 : month - 9);
  d.year = year + era * 400 + (d.month <= 2);
  d.yearday = before[d.month - 1] + d.day - 1 + (d.month > 2 && is_leap(d.year));
  return d;
}

/* What one letter stands for in the C locale; false: it is not known. */
static bool date_part(const date *d, char letter, char *out, size_t bytes, int *out_number, int *out_width) {
  static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                       "July",    "August",   "September", "October", "November", "December"};
  static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
  const char *month = months[d->month - 1], *day = days[d->weekday];
  const int half = d->hour % 12 ? d->hour % 12 : 12;
  *out_width = 2;
  out[0] = 0;
  switch (letter) { /* clang-format off */
    case 'B': snprintf(out, bytes, "%s", month); return true;
    case 'b': case 'h': snprintf(out, bytes, "%.3s", month); return true;
    case 'A': snprintf(out, bytes, "%s", day); return true;
    case 'a': snprintf(out, bytes, "%.3s", day); return true;
    case 'p': snprintf(out, bytes, "%s", d->hour < 12 ? "AM" : "PM"); return true;
    case 'Y': snprintf(out, bytes, "%lld", (long long)d->year); return true;
    case 'F': snprintf(out, bytes, "%lld-%02d-%02d", (long long)d->year, d->month, d->day); return true;
    case 'D': case 'x': snprintf(out, bytes, "%02d/%02d/%02d", d->month, d->day, (int)(d->year % 100)); return true;
    case 'T': case 'X': snprintf(out, bytes, "%02d:%02d:%02d", d->hour, d->minute, d->second); return true;
    case 'R': snprintf(out, bytes, "%02d:%02d", d->hour, d->minute); return true;
    case 'r': snprintf(out, bytes, "%02d:%02d:%02d %s", half, d->minute, d->second, d->hour < 12 ? "AM" : "PM"); return true;
    case 'c':
      snprintf(out, bytes, "%.3s %.3s %2d %02d:%02d:%02d %lld", day, month, d->day, d->hour, d->minute, d->second, (long long)d->year);
      return true;
    case 'Z': case 'z': return true; /* no time zone */
    case 'n': snprintf(out, bytes, "\n"); return true;
    case 't': snprintf(out, bytes, "\t"); return true;
    case '%': snprintf(out, bytes, "%%"); return true;
    case 'f': snprintf(out, bytes, "000000"); return true;
    case 'm': *out_number = d->month; return true;
    case 'd': case 'e': *out_number = d->day; return true;
    case 'H': case 'k': *out_number = d->hour; return true;
    case 'I': case 'l': *out_number = half; return true;
    case 'M': *out_number = d->minute; return true;
    case 'S': *out_number = d->second; return true;
    case 'y': *out_number = (int)(d->year % 100); return true;
    case 'j': *out_number = d->yearday + 1; *out_width = 3; return true;
    case 'w': *out_number = d->weekday; *out_width = 1; return true;
    case 'u': *out_number = d->weekday ? d->weekday : 7; *out_width = 1; return true;
    default: return false; /* clang-format on */
  }
}

rung_status rung_j_strftime(rung_jrun *run, const rung_jstring *format, int64_t now, rung_jvalue *out) {
  rung_jtext text = {0};
  const date d = date_of(now);
  const char *at = format->data, *end = at + format->length;
  while (at < end) {
    char part[64];
    int number = -1, width;
    if (*at != '%') {
      RUNG_TRY(rung_j_put(run, &text, at++, 1));
      continue;
    }
    at++;
    const bool bare = at < end && *at == '-'; /* %-d: no zero in front */
    at += bare;
    if (at == end || !date_part(&d, *at, part, sizeof part, &number, &width))
      return rung_j_refuse(run, RUNG_UNSUPPORTED, "strftime_now: the format %%%c", at < end ? *at : ' ');
    const bool blank = *at == 'e' || *at == 'k' || *at == 'l';
    if (number >= 0) snprintf(part, sizeof part, blank ? "%*d" : "%0*d", bare ? 1 : width, number);
    RUNG_TRY(rung_j_puts(run, &text, part));
    at++;
  }
  return rung_j_take(run, &text, out);
}
