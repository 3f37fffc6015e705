/* SPDX-License-Identifier: MIT
 * The container of compiled files: a head with a table, then sections one after another, every byte under a checksum.
 * What is in the sections is the runtime's (runtime/cache/aot.h); docs/formats.md has the layout.
 *
 * Opening checks the head, where everything lies, and the content of small sections. Packed forms and weights are many
 * megabytes that a start should not read: their checksums are looked at when rung_sections_check is asked, once. */
#ifndef RUNG_FORMATS_SECTIONS_H
#define RUNG_FORMATS_SECTIONS_H

#include "base/bytes.h"
#include "base/map_file.h"

enum { RUNG_FILE_VERSION = 1, RUNG_SECTION_ALIGN = 64, RUNG_SECTION_PAGE = 4096 };
typedef enum rung_file_kind { RUNG_FILE_TEMPLATE = 1, RUNG_FILE_PACK = 2, RUNG_FILE_KNOWN = 3 } rung_file_kind;
typedef enum rung_section_kind {
  RUNG_SECTION_GRAPH = 1, /* canonical encoding */
  RUNG_SECTION_NOTES,     /* labels, symbols */
  RUNG_SECTION_EXPLAIN,   /* what was fused, for people */
  RUNG_SECTION_MANIFEST,
  RUNG_SECTION_KNOWN,  /* hashes of a file's tensors, or that a file was checked */
  RUNG_SECTION_WEIGHT, /* a weight as it lies in its source; `index` counts the manifest's weights */
  RUNG_SECTION_FORM,   /* a packed form; `key` is the form's */
  RUNG_SECTION_LIMIT
} rung_section_kind;

typedef struct rung_section {
  uint32_t kind, index;
  const uint8_t *data;
  uint64_t bytes;
  rung_hash key;
  /* Filled by writing and opening. */
  uint64_t offset;
  rung_hash checksum;
} rung_section;

/* Writes the file whole or not at all. Weights must stand together: they begin and end at page boundaries. */
rung_status rung_sections_write(rung_host *host, const char *path, rung_file_kind kind, rung_hash key,
                                rung_section *section, uint32_t count, rung_error *error);

typedef struct rung_sections rung_sections;
/* The first bytes of such a file. */
bool rung_sections_recognise(const void *data, size_t bytes);
/* CORRUPT_FILE: damaged, with the place; UNSUPPORTED: of another version. */
rung_status rung_sections_open(rung_host *host, const rung_source *source, rung_error *error, rung_sections **out_file);
void rung_sections_retain(rung_sections *file);
void rung_sections_release(rung_sections *file); /* NULL allowed */

rung_file_kind rung_sections_kind(const rung_sections *file);
rung_hash rung_sections_key(const rung_sections *file);
const rung_map *rung_sections_map(const rung_sections *file);
uint32_t rung_sections_count(const rung_sections *file);
const rung_section *rung_sections_at(const rung_sections *file, uint32_t index);
/* The only section of a kind, NULL if there is none. */
const rung_section *rung_sections_find(const rung_sections *file, rung_section_kind kind);
/* Looks at the checksum of a section the first time; from any thread. */
rung_status rung_sections_check(rung_sections *file, uint32_t index, rung_error *error);
/* Takes all checksums as right: the caller knows that this very file was checked before. */
void rung_sections_trust(rung_sections *file);

/* For tests and fuzzing: makes all checksums of a file's bytes right, as far as its table can be read. */
void rung_sections_seal(uint8_t *data, uint64_t bytes);

#endif
