/* SPDX-License-Identifier: MIT
 * .npy reader and writer. The header is a Python dictionary literal; only the form that NumPy writes is parsed. */
#include "formats/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "weights/store.h"

static const struct {
  const char *code; /* without the byte order */
  rung_type type;
} codes[] = {
    {"f4", RUNG_TYPE_F32}, {"f2", RUNG_TYPE_F16}, {"f8", RUNG_TYPE_F64}, {"i1", RUNG_TYPE_I8},
    {"i2", RUNG_TYPE_I16}, {"i4", RUNG_TYPE_I32}, {"i8", RUNG_TYPE_I64}, {"u1", RUNG_TYPE_U8},
    {"u2", RUNG_TYPE_U16}, {"u4", RUNG_TYPE_U32}, {"u8", RUNG_TYPE_U64}, {"b1", RUNG_TYPE_BOOL},
};

/* ---- the header's literal */

typedef struct scanner {
  const char *begin, *at, *end;
  uint64_t offset; /* of begin in the file */
  rung_error *error;
} scanner;

static rung_status bad(const scanner *s, const char *what) {
  return rung_fail(s->error, RUNG_CORRUPT_FILE, "npy header: %s expected at offset %" PRIu64, what,
                   s->offset + (uint64_t)(s->at - s->begin));
}
static void skip_space(scanner *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t')) s->at++;
}
static bool take(scanner *s, char c) {
  skip_space(s);
  if (s->at == s->end || *s->at != c) return false;
  s->at++;
  return true;
}
/* A quoted word of at most 15 characters, without escapes. */
static rung_status take_word(scanner *s, char out[16]) {
  skip_space(s);
  char quote = '\0';
  if (s->at < s->end) quote = *s->at;
  if (quote != '\'' && quote != '"') return bad(s, "a quoted word");
  const char *from = s->at + 1, *to = from;
  while (to < s->end && *to != quote && to - from < 16) to++;
  if (to == s->end || *to != quote || to - from > 15) return bad(s, "the end of a short word");
  memcpy(out, from, (size_t)(to - from));
  out[to - from] = 0;
  s->at = to + 1;
  return RUNG_OK;
}

static rung_status read_descr(scanner *s, rung_npy *npy) {
  char word[16] = "";
  RUNG_TRY(take_word(s, word));
  for (size_t i = 0; word[0] && i < RUNG_COUNT(codes); i++) {
    if (strcmp(word + 1, codes[i].code) != 0) continue;
    const bool one_byte = codes[i].code[1] == '1';
    if (word[0] == '<' || (one_byte && (word[0] == '|' || word[0] == '='))) {
      npy->type = codes[i].type;
      return RUNG_OK;
    }
  }
  for (char *p = word; *p; p++) {
    if (*p < 0x20 || *p > 0x7E) *p = '?';
  }
  return rung_fail(s->error, RUNG_UNSUPPORTED,
                   "npy header: descr '%s'; little-endian f2 f4 f8, i1..i8, u1..u8 and b1 are read", word);
}

static rung_status read_order(scanner *s, bool *out_fortran) {
  skip_space(s);
  const size_t left = (size_t)(s->end - s->at);
  if (left >= 5 && memcmp(s->at, "False", 5) == 0) {
    *out_fortran = false;
    s->at += 5;
  } else if (left >= 4 && memcmp(s->at, "True", 4) == 0) {
    *out_fortran = true;
    s->at += 4;
  } else {
    return bad(s, "True or False");
  }
  return RUNG_OK;
}

static rung_status read_shape(scanner *s, rung_npy *npy) {
  if (!take(s, '(')) return bad(s, "'('");
  npy->rank = 0;
  while (!take(s, ')')) {
    int64_t extent;
    const char *next;
    skip_space(s);
    if (s->at == s->end || *s->at < '0' || *s->at > '9' || !rung_parse_i64(s->at, s->end, &extent, &next)) {
      return bad(s, "an extent");
    }
    if (npy->rank == RUNG_MAX_RANK) {
      return rung_fail(s->error, RUNG_UNSUPPORTED, "npy header: shape of rank above %d", RUNG_MAX_RANK);
    }
    s->at = next;
    npy->extent[npy->rank++] = extent;
    const bool comma = take(s, ',');
    if (!comma && npy->rank == 1) return bad(s, "','"); /* (3) is no tuple */
    if (!comma) {
      if (!take(s, ')')) return bad(s, "')'");
      break;
    }
  }
  return RUNG_OK;
}

static rung_status read_dictionary(scanner *s, rung_npy *npy) {
  enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
  int seen = 0;
  bool fortran = false;
  if (!take(s, '{')) return bad(s, "'{'");
  while (!take(s, '}')) {
    char key[16] = "";
    RUNG_TRY(take_word(s, key));
    const int bit = strcmp(key, "descr") == 0           ? DESCR
                    : strcmp(key, "fortran_order") == 0 ? ORDER
                    : strcmp(key, "shape") == 0         ? SHAPE
                                                        : 0;
    if (!bit || (seen & bit)) return bad(s, "one of descr, fortran_order and shape, each once, before this");
    seen |= bit;
    if (!take(s, ':')) return bad(s, "':'");
    RUNG_TRY(bit == DESCR ? read_descr(s, npy) : bit == ORDER ? read_order(s, &fortran) : read_shape(s, npy));
    if (!take(s, ',')) {
      if (!take(s, '}')) return bad(s, "'}'");
      break;
    }
  }
  if (seen != (DESCR | ORDER | SHAPE)) return bad(s, "all of descr, fortran_order and shape before this");
  skip_space(s);
  if (s->at != s->end) return bad(s, "the end");
  if (fortran && npy->rank > 1) {
    return rung_fail(s->error, RUNG_UNSUPPORTED, "npy header: fortran_order True; C order is read");
  }
  return RUNG_OK;
}

static rung_status find_header(const rung_map *map, rung_error *error, scanner *out) {
  const uint8_t *p = map->data;
  if (map->size < 10 || memcmp(p, "\x93NUMPY", 6) != 0) {
    return rung_fail(error, RUNG_CORRUPT_FILE, "offset 0: an npy file begins with \\x93NUMPY and a version");
  }
  if ((p[6] != 1 && p[6] != 2) || p[7] != 0) {
    return rung_fail(error, RUNG_UNSUPPORTED, "npy version %d.%d at offset 6; 1.0 and 2.0 are read", p[6], p[7]);
  }
  const uint64_t begin = p[6] == 1 ? 10 : 12;
  if (map->size < begin) return rung_fail(error, RUNG_CORRUPT_FILE, "npy: the file ends inside the header's length");
  uint64_t length = p[8] | (uint64_t)p[9] << 8;
  if (p[6] == 2) length |= (uint64_t)p[10] << 16 | (uint64_t)p[11] << 24;
  if (length > map->size - begin) {
    return rung_fail(error, RUNG_CORRUPT_FILE,
                     "npy header length at offset 8 is %" PRIu64 ", %" PRIu64 " bytes are left", length,
                     map->size - begin);
  }
  const char *text = (const char *)p + begin;
  *out = (scanner){text, text, text + length, begin, error};
  return RUNG_OK;
}

static rung_status parse(rung_npy *npy, rung_error *error) {
  scanner s = {NULL, NULL, NULL, 0, error};
  RUNG_TRY(find_header(&npy->map, error, &s));
  RUNG_TRY(read_dictionary(&s, npy));
  const rung_status status = rung_weights_size(npy->type, npy->rank, npy->extent, error, &npy->bytes);
  if (status) return rung_fail_prefix(error, status, "npy shape");
  const uint64_t begin = s.offset + (uint64_t)(s.end - s.begin);
  if (npy->map.size - begin != npy->bytes) {
    return rung_fail(error, RUNG_CORRUPT_FILE,
                     "npy data at offset %" PRIu64 " has %" PRIu64 " bytes, the shape asks for %" PRIu64, begin,
                     npy->map.size - begin, npy->bytes);
  }
  npy->data = npy->map.data + begin;
  for (uint64_t i = 0; npy->type == RUNG_TYPE_BOOL && i < npy->bytes; i++) {
    if (npy->map.data[begin + i] > 1) {
      return rung_fail(error, RUNG_CORRUPT_FILE, "npy bool at offset %" PRIu64 " is %d, not 0 or 1", begin + i,
                       npy->map.data[begin + i]);
    }
  }
  return RUNG_OK;
}

rung_status rung_npy_open(rung_npy *npy, rung_host *host, const rung_source *source, rung_error *error) {
  *npy = (rung_npy){.type = RUNG_TYPE_F32};
  RUNG_TRY(rung_map_open(&npy->map, host, source, error));
  const rung_status status = parse(npy, error);
  if (!status) return RUNG_OK;
  rung_npy_close(npy);
  return source->kind == RUNG_SOURCE_PATH ? rung_fail_prefix(error, status, "%s", source->path) : status;
}

void rung_npy_close(rung_npy *npy) {
  if (!npy) return;
  rung_map_close(&npy->map);
  *npy = (rung_npy){.type = RUNG_TYPE_F32};
}

/* ---- writing */

static bool is_dense(const rung_tensor *tensor) {
  int64_t stride = 1;
  bool zeros = true, dense = true;
  for (int i = tensor->rank - 1; i >= 0; i--) {
    zeros = zeros && tensor->stride[i] == 0;
    dense = dense && (tensor->stride[i] == stride || tensor->extent[i] <= 1);
    if (rung_mul_overflows(stride, tensor->extent[i], &stride)) return false;
  }
  return zeros || dense;
}

static void format_header(rung_text *out, const rung_tensor *tensor, const char *code) {
  rung_text_printf(out, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", code[1] == '1' ? '|' : '<', code);
  for (int i = 0; i < tensor->rank; i++) {
    rung_text_printf(out, "%s%" PRId64, i ? ", " : "", tensor->extent[i]);
  }
  rung_text_puts(out, tensor->rank == 1 ? ",), }" : "), }");
  while (!out->failed && (10 + out->length + 1) % 64) rung_text_puts(out, " ");
  rung_text_puts(out, "\n");
}

static rung_status write_parts(rung_writer *file, const rung_text *header, const rung_tensor *tensor, uint64_t bytes,
                               rung_error *error) {
  const uint8_t prefix[10] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)header->length, (uint8_t)(header->length >> 8)};
  RUNG_TRY(rung_writer_put(file, prefix, sizeof prefix, error));
  RUNG_TRY(rung_writer_put(file, header->data, header->length, error));
  return bytes ? rung_writer_put(file, tensor->data, (size_t)bytes, error) : RUNG_OK;
}

rung_status rung_npy_write(rung_host *host, const char *path, const rung_tensor *tensor, rung_error *error) {
  const char *code = NULL;
  for (size_t i = 0; i < RUNG_COUNT(codes); i++) {
    if (codes[i].type == tensor->type) code = codes[i].code;
  }
  if (!code) return rung_fail(error, RUNG_UNSUPPORTED, "%s: npy has no type %s", path, rung_type_name(tensor->type));
  uint64_t bytes;
  RUNG_TRY(rung_weights_size(tensor->type, tensor->rank, tensor->extent, error, &bytes));
  if (!is_dense(tensor)) return rung_fail(error, RUNG_UNSUPPORTED, "%s: npy takes a dense tensor", path);
  rung_text header;
  rung_text_init(&header, host);
  format_header(&header, tensor, code);
  rung_writer *file = NULL;
  rung_status status = rung_text_status(&header, error);
  if (!status) status = rung_writer_open(host, path, error, &file);
  if (!status) status = write_parts(file, &header, tensor, bytes, error);
  rung_text_finish(&header);
  if (!status) return rung_writer_commit(file, error);
  if (file) rung_writer_discard(file);
  return status;
}
