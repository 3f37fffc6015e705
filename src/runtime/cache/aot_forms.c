/* SPDX-License-Identifier: MIT
 * Packed forms in files. A form is found by what it was made from: recipe, layout, body and the content of its weights;
 * so a file serves whatever program and store have the same weights. All forms of a program lie in one file of a store,
 * named after the keys of all. */
#include <stdio.h>
#include <string.h>

#include "base/folder.h"
#include "ops/attrs.h"
#include "runtime/cache/aot.h"

enum { HASHED_AT_ONCE = 16 << 20 }; /* bytes of sources whose pages may stay while they are read to know them */

/* ---- keys */

static rung_status form_key(rung_derived *derived, const rung_form_key *key, rung_error *error, rung_hash *out) {
  const rung_form_attrs *attrs = key->want->node->attrs;
  rung_text text;
  rung_text_init(&text, derived->host);
  rung_put_string(&text, "rung-form");
  rung_put(&text, (uint64_t)attrs->recipe, 1);
  rung_put(&text, (uint64_t)attrs->panel, 8);
  rung_put(&text, (uint64_t)attrs->layout, 2);
  rung_put_string(&text, key->layout ? key->layout->name : "");
  rung_put(&text, (uint64_t)key->want->type.type, 2);
  rung_put(&text, key->want->bytes, 8);
  rung_put_hash(&text, key->body);
  for (uint32_t i = 0; i < key->want->weights; i++) {
    rung_hash identity;
    if (!rung_tensor_value_identified(derived->weights, key->source[i], &identity)) {
      identity = rung_tensor_value_identity(derived->weights, key->source[i]);
      derived->touched += key->source[i]->entry->bytes;
    }
    rung_put_hash(&text, identity);
  }
  const rung_status status = rung_text_status(&text, error);
  if (!status) *out = rung_hash_bytes(text.data, text.length);
  rung_text_finish(&text);
  return status;
}

/* Keys of all forms of a program, in their order. Weights that somebody has set make forms that no file has or should
 * have: *out_set, and no keys. */
static rung_status all_keys(const rung_sources *sources, const rung_program *program, rung_error *error, rung_hash *out,
                            bool *out_set) {
  *out_set = false;
  rung_status status = RUNG_OK;
  for (uint32_t i = 0; i < program->plan->forms && !status; i++) {
    rung_form_key key;
    status = rung_form_key_make(sources, program, i, error, &key);
    for (uint32_t k = 0; !status && k < key.want->weights; k++) *out_set |= key.source[k]->set;
    if (!status && !*out_set) status = form_key(sources->derived, &key, error, &out[i]);
    rung_form_key_finish(sources, &key);
    if (sources->derived->touched > HASHED_AT_ONCE) rung_derived_rest(sources->derived);
  }
  return status;
}

rung_status rung_aot_identity(rung_view *view, const char *name, rung_error *error, rung_hash *out_identity) {
  const rung_tensor_entry *entry = rung_weights_find(view->weights, name);
  const rung_sources sources = {.derived = view->derived, .own = view->own};
  rung_tensor_value *value = entry ? rung_sources_value(&sources, entry) : NULL;
  if (!value) value = entry ? rung_weights_known(view->weights, entry) : NULL;
  if (!value) return rung_fail(error, RUNG_NOT_LOADED, "weight \"%s\" has no value", name);
  *out_identity = rung_tensor_value_identity(view->weights, value);
  return RUNG_OK;
}

/* ---- banks */

rung_status rung_bank_add(rung_derived *derived, rung_sections *file, rung_error *error) {
  for (const rung_bank *there = derived->bank; there; there = there->next)
    if (there->file == file) return RUNG_OK;
  rung_bank *bank = rung_host_alloc(derived->host, RUNG_MEMORY_host, sizeof *bank, 0);
  if (!bank) return rung_fail(error, RUNG_OUT_OF_MEMORY, "packed forms: out of memory");
  rung_sections_retain(file);
  *bank = (rung_bank){.next = derived->bank, .file = file};
  derived->bank = bank;
  return RUNG_OK;
}

void rung_banks_close(rung_derived *derived) {
  while (derived->bank) {
    rung_bank *next = derived->bank->next;
    rung_sections_release(derived->bank->file);
    rung_host_free(derived->host, RUNG_MEMORY_host, derived->bank, sizeof *derived->bank);
    derived->bank = next;
  }
  rung_store_release(derived->store);
}

static bool find_form(const rung_derived *derived, rung_hash key, uint64_t bytes, rung_sections **out_file,
                      const rung_section **out_section) {
  for (const rung_bank *bank = derived->bank; bank; bank = bank->next) {
    for (uint32_t i = 0; i < rung_sections_count(bank->file); i++) {
      const rung_section *s = rung_sections_at(bank->file, i);
      if (s->kind != RUNG_SECTION_FORM || !rung_hash_equal(s->key, key) || s->bytes != bytes) continue;
      *out_file = bank->file;
      *out_section = s;
      return true;
    }
  }
  return false;
}

rung_status rung_bank_map(rung_derived *derived, const rung_form_key *key, rung_form *form, rung_error *error) {
  rung_hash hash;
  rung_sections *file;
  const rung_section *section;
  if (!derived->bank || !key->want->bytes) return RUNG_OK;
  RUNG_TRY(form_key(derived, key, error, &hash));
  if (!find_form(derived, hash, key->want->bytes, &file, &section)) return RUNG_OK;
  const uint64_t held = rung_form_committed(key->want, rung_host_page(derived->host));
  RUNG_TRY(rung_host_account(derived->host, RUNG_MEMORY_packed, held, error));
  rung_sections_retain(file);
  form->bank = file;
  form->mapped = held;
  form->data = section->data;
  if (derived->store) rung_store_count(derived->store, &derived->store->counters.forms_mapped, 1);
  return RUNG_OK;
}

/* ---- checking, by all threads: files are as large as the weights */

typedef struct checking {
  rung_sections *file;
  atomic_bool bad;
} checking;

static void check_one(void *self, int64_t task, int thread) {
  (void)thread;
  checking *c = self;
  if (rung_sections_check(c->file, (uint32_t)task, NULL)) atomic_store(&c->bad, true);
}

rung_status rung_aot_check(rung_sections *file, const rung_template *t, rung_error *error) {
  checking c = {.file = file};
  atomic_init(&c.bad, false);
  const uint32_t count = rung_sections_count(file);
  rung_pool_run(t->device->pool, t->threads, count, check_one, &c);
  for (uint32_t i = 0; atomic_load(&c.bad) && i < count; i++) RUNG_TRY(rung_sections_check(file, i, error));
  return RUNG_OK;
}

/* ---- a program's file in a store */

static rung_hash file_key(const rung_hash *key, uint32_t count) {
  const rung_hash all = rung_hash_bytes(key, count * sizeof *key);
  const uint64_t words[4] = {RUNG_FILE_VERSION, count, all.low, all.high};
  return rung_hash_bytes(words, sizeof words);
}

static void pack_name(rung_hash key, char out[RUNG_STORE_NAME]) {
  char hex[33];
  rung_hash_hex(key, hex);
  snprintf(out, RUNG_STORE_NAME, "%s.pack", hex);
}

/* What was found is whole, and has every form. */
static rung_status take_file(rung_derived *derived, const rung_program *program, const rung_hash *key, const char *name,
                             rung_sections *file, rung_error *error) {
  rung_store *store = derived->store;
  const rung_stamp stamp = rung_sections_map(file)->stamp;
  if (rung_known_checked(store, &stamp)) {
    rung_sections_trust(file);
  } else {
    const rung_status status = rung_aot_check(file, program->template_, error);
    if (status) return status;
    rung_store_count(store, &store->counters.checked_bytes, rung_sections_map(file)->size);
    rung_known_keep_checked(store, &stamp);
  }
  RUNG_TRY(rung_bank_add(derived, file, error));
  for (uint32_t i = 0; i < program->plan->forms; i++) {
    rung_sections *there;
    const rung_section *section;
    if (program->plan->form[i].bytes && !find_form(derived, key[i], program->plan->form[i].bytes, &there, &section))
      return rung_fail(error, RUNG_CORRUPT_FILE, "%s does not hold all that its name says", name);
  }
  return RUNG_OK;
}

static rung_status look(const rung_sources *sources, const rung_program *program, rung_hash *key, rung_error *error,
                        rung_bank_use *out) {
  rung_derived *derived = sources->derived;
  rung_store *store = derived->store;
  rung_known_sources(derived);
  bool set;
  RUNG_TRY(all_keys(sources, program, error, key, &set));
  if (set) return RUNG_OK;
  rung_known_keep_sources(derived);
  out->key = file_key(key, program->plan->forms);
  for (const rung_bank *bank = derived->bank; bank; bank = bank->next)
    if (rung_hash_equal(rung_sections_key(bank->file), out->key)) return RUNG_OK;
  char name[RUNG_STORE_NAME];
  pack_name(out->key, name);
  rung_sections *file;
  rung_error why = {RUNG_OK, ""};
  out->keep = true;
  if (rung_store_entry_open(store, name, RUNG_FILE_PACK, NULL, &file)) {
    rung_store_count(store, &store->counters.misses, 1);
    return RUNG_OK;
  }
  const rung_status status = rung_hash_equal(rung_sections_key(file), out->key)
                                 ? take_file(derived, program, key, name, file, &why)
                                 : rung_fail(&why, RUNG_CORRUPT_FILE, "it is not what its name says");
  rung_sections_release(file);
  rung_store_count(store, status ? &store->counters.misses : &store->counters.hits, 1);
  if (!status) out->keep = false;
  if (status && status != RUNG_OUT_OF_MEMORY) rung_store_entry_bad(store, name, &why);
  return RUNG_OK;
}

rung_status rung_bank_fetch(const rung_sources *sources, const rung_program *program, rung_error *error,
                            rung_bank_use *out) {
  *out = (rung_bank_use){.keep = false};
  const rung_store *store = sources->derived->store;
  const uint32_t forms = program->plan->forms;
  if (!store || !store->options.packed || !forms || program->plan->target->far) return RUNG_OK;
  rung_host *host = sources->derived->host;
  rung_hash *key = rung_host_array(host, forms, sizeof *key);
  if (!key) return rung_fail(error, RUNG_OUT_OF_MEMORY, "packed forms: out of memory");
  const rung_status status = look(sources, program, key, error, out);
  rung_host_free(host, RUNG_MEMORY_host, key, forms * sizeof *key);
  return status;
}

/* ---- writing */

static bool listed(const rung_section *section, uint32_t count, const uint8_t *data) {
  for (uint32_t i = 0; i < count; i++)
    if (section[i].data == data) return true;
  return false;
}

rung_status rung_aot_list_forms(const rung_sources *sources, const rung_program *program, const rung_table *table,
                                rung_error *error, rung_section *out, uint32_t *out_count) {
  const rung_plan *plan = program->plan;
  rung_status status = RUNG_OK;
  *out_count = 0;
  for (uint32_t i = 0; i < plan->roots && !status; i++) {
    const rung_root *root = &plan->root[i];
    const uint8_t *data = table->root[i].data;
    if (root->kind != RUNG_ROOT_FORM || !plan->form[root->index].bytes || listed(out, *out_count, data)) continue;
    rung_form_key key;
    rung_section *s = &out[*out_count];
    *s = (rung_section){.kind = RUNG_SECTION_FORM, .data = data, .bytes = plan->form[root->index].bytes};
    status = rung_form_key_make(sources, program, root->index, error, &key);
    if (!status) status = form_key(sources->derived, &key, error, &s->key);
    rung_form_key_finish(sources, &key);
    ++*out_count;
  }
  return status;
}

void rung_bank_keep(const rung_sources *sources, const rung_program *program, const rung_table *table,
                    const rung_bank_use *use) {
  rung_store *store = sources->derived->store;
  if (!use->keep || store->options.read_only) return;
  rung_host *host = sources->derived->host;
  const uint32_t most = program->plan->roots;
  rung_section *section = rung_host_array(host, most, sizeof *section);
  rung_error why = {RUNG_OK, "out of memory"};
  uint32_t count = 0;
  if (section && !rung_aot_list_forms(sources, program, table, &why, section, &count)) {
    char name[RUNG_STORE_NAME];
    pack_name(use->key, name);
    rung_store_entry_write(store, name, RUNG_FILE_PACK, use->key, section, count);
  } else {
    rung_store_warn(store, RUNG_AOT_WRITING, "packed forms are not stored: %s", why.message);
  }
  rung_host_free(host, RUNG_MEMORY_host, section, most * sizeof *section);
}

rung_status rung_store_attach(rung_store *store, rung_weights *weights, rung_error *error) {
  if (!store || !weights) return rung_fail(error, RUNG_INVALID_ARGUMENT, "attach: store and weights are required");
  rung_derived *derived;
  RUNG_TRY(rung_derived_of(weights, error, &derived));
  rung_weights_lock_change(weights);
  rung_store_retain(store);
  rung_store *before = derived->store;
  derived->store = store;
  rung_weights_unlock_change(weights);
  rung_store_release(before);
  return RUNG_OK;
}
