/* SPDX-License-Identifier: MIT
 * rung logits: every position's logits to a .npy file, one chunk in memory at a time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "json.h"
#include "npy_rows.h"
#include "prompt.h"

enum { USUAL_CHUNK = 64 }; /* rows whose logits are held: 67 MB for a vocabulary of 262,144 */

static int write_chunks(cli_session *s, rung_generator *g, const cli_ids *ids, int64_t chunk, int64_t vocabulary,
                        rung_writer *file) {
  int32_t *wanted = malloc((size_t)chunk * sizeof *wanted);
  if (!wanted) return cli_refuse(s, CLI_NO_MEMORY, "out of memory");
  for (int64_t i = 0; i < chunk; i++) wanted[i] = (int32_t)i;
  const int64_t count = (int64_t)ids->count;
  int code = CLI_OK;
  for (int64_t done = 0; !code && done < count;) {
    if (cli_interrupted()) code = CLI_INTERRUPTED;
    cli_progress(s, "logits", (uint64_t)done, (uint64_t)count);
    const int32_t n = (int32_t)(count - done < chunk ? count - done : chunk);
    const rung_rows rows = {0, n};
    const float *logits;
    rung_status status = code ? RUNG_CANCELLED : rung_generator_run(g, &rows, 1, ids->id + done, wanted, n, &logits);
    if (status) {
      code = cli_fail(s, CLI_ON_RUN, status, rung_generator_message(g));
      break;
    }
    status = rung_writer_put(file, logits, (size_t)n * (size_t)vocabulary * sizeof *logits, &s->error);
    if (status) code = cli_fail(s, CLI_ON_RUN, status, NULL);
    done += n;
  }
  cli_progress(s, "logits", 1, 1);
  free(wanted);
  return code;
}

static int write_file(cli_session *s, rung_generator *g, const cli_ids *ids, int64_t chunk, int64_t vocabulary) {
  rung_writer *file;
  rung_status status = rung_writer_open(s->host, s->options->output, &s->error, &file);
  if (status) return cli_fail(s, CLI_ON_RUN, status, NULL);
  status = cli_npy_header(file, (int64_t)ids->count, vocabulary, &s->error);
  int code = status ? cli_fail(s, CLI_ON_RUN, status, NULL) : write_chunks(s, g, ids, chunk, vocabulary, file);
  if (code) {
    rung_writer_discard(file);
    return code;
  }
  status = rung_writer_commit(file, &s->error);
  return status ? cli_fail(s, CLI_ON_RUN, status, NULL) : CLI_OK;
}

static void report(const cli_session *s, const cli_ids *ids, int64_t vocabulary, double seconds) {
  if (s->options->json) {
    cli_json json = cli_json_begin(stdout);
    cli_json_string(&json, "file", s->options->output);
    cli_json_integer(&json, "positions", (int64_t)ids->count);
    cli_json_integer(&json, "vocabulary", vocabulary);
    cli_json_number(&json, "seconds", seconds);
    cli_json_end(&json);
  }
  cli_note(s, "%s: %zu positions x %" PRId64 ", %.2f s", s->options->output, ids->count, vocabulary, seconds);
}

int cli_logits(cli_session *s) {
  if (s->options->prompts.count != 1)
    return cli_refuse(s, CLI_USAGE, "one prompt is needed: -p TEXT, -f FILE or --ids FILE");
  rung_model *model = NULL;
  rung_generator *g = NULL;
  cli_ids ids = {0};
  int code = cli_open_model(s, &model, NULL);
  if (!code) code = cli_prompt_ids(s, model, 0, &ids);
  if (!code) {
    rung_model_info info;
    rung_model_get_info(model, &info);
    rung_generate_options o = cli_generate_options(s->options);
    o.context = (int64_t)ids.count;
    if (!s->options->ubatch) o.chunk = USUAL_CHUNK;
    if (o.chunk > o.context) o.chunk = o.context;
    o.logits = o.chunk;
    code = cli_open_generator(s, model, &o, &g, NULL);
    const double start = cli_seconds();
    if (!code) code = write_file(s, g, &ids, o.chunk, info.vocabulary);
    if (!code) report(s, &ids, info.vocabulary, cli_seconds() - start);
  }
  cli_close_generator(g);
  free(ids.id);
  rung_model_release(model);
  return code;
}
