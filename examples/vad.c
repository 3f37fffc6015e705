/* SPDX-License-Identifier: MIT
 * Where somebody speaks: vad [--each] silero_vad.onnx FILE.wav prints the begin and end of every stretch of speech in
 * seconds, each as soon as it has ended. FILE may be "-": arecord -f S16_LE -r 16000 -t wav | vad silero_vad.onnx -
 * --each prints the probability of speech of every 32 ms instead. */
#include "network.h"
#include "wav.h"

enum { STATE = 2 * 128 };

/* From one probability to the next: speech begins above 0.5 and has ended when it was below 0.35 for 0.1 s; what is
 * shorter than 0.25 s is none. */
typedef struct segments {
  bool speaking;
  double from, quiet; /* quiet: since when, below 0: not */
} segments;
static void add(segments *g, double time, double length, float p) {
  if (!g->speaking && p >= 0.5f) *g = (segments){true, time, -1};
  if (!g->speaking) return;
  if (p >= 0.35f)
    g->quiet = -1;
  else if (g->quiet < 0)
    g->quiet = time;
  if (g->quiet < 0 || time + length - g->quiet < 0.1) return;
  if (g->quiet - g->from >= 0.25) printf("%.2f %.2f\n", g->from, g->quiet), fflush(stdout);
  g->speaking = false;
}

/* Each run hears a stretch of 32 ms behind the 4 ms before it, and takes the state that the last one gave. */
static rung_status listen(network *n, wav *w, bool each) {
  const size_t before = (size_t)w->rate / 250, fresh = (size_t)w->rate * 32 / 1000;
  const double length = 0.032;
  segments g = {0};
  float heard[576] = {0}, state[STATE] = {0};
  double time = 0;
  rung_status s = RUNG_OK;
  for (; !s && wav_read(w, heard + before, fresh) == fresh; time += length) {
    void *input, *memory;
    rung_tensor out = {0}, next = {0};
    s = network_input(n, "input", (int64_t[]){1, (int64_t)(before + fresh)}, &input);
    if (!s) s = network_input(n, "state", (int64_t[]){2, 1, 128}, &memory);
    if (s) break;
    memcpy(input, heard, (before + fresh) * sizeof *heard);
    memcpy(memory, state, sizeof state);
    s = rung_context_run(n->context);
    if (!s) s = network_output(n, "output", &out);
    if (!s) s = network_output(n, "stateN", &next);
    if (s) break;
    memcpy(state, next.data, sizeof state);
    memmove(heard, heard + fresh, before * sizeof *heard);
    if (each)
      printf("%.6f\n", (double)*(float *)out.data);
    else
      add(&g, time, length, *(float *)out.data);
  }
  if (!s && !each && g.speaking && time - g.from >= 0.25) printf("%.2f %.2f\n", g.from, g.quiet < 0 ? time : g.quiet);
  return s;
}

int main(int argc, char **argv) {
  const bool each = argc > 1 && strcmp(argv[1], "--each") == 0;
  if (argc - each != 3) return fprintf(stderr, "usage: vad [--each] silero_vad.onnx FILE.wav|-\n"), 2;
  const char *model = argv[1 + each], *path = argv[2 + each];
  FILE *file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
  wav w;
  if (!file) return perror(path), 1;
  if (!wav_open(&w, file) || (w.rate != 8000 && w.rate != 16000))
    return fprintf(stderr, "%s: not a WAV file of 8 or 16 bits at 8 or 16 kHz\n", path), 1;
  /* The model has a graph for each rate, so the rate is fixed when it is read, and with it how much a run hears. */
  int64_t rate = w.rate, samples = rate * 36 / 1000;
  const rung_onnx_pin pin[] = {{"sr", rung_tensor_dense(RUNG_TYPE_I64, 0, NULL, &rate)},
                               {"input_1", rung_tensor_dense(RUNG_TYPE_I64, 0, NULL, &samples)}};
  rung_onnx_options options = rung_onnx_options_default();
  options.pin = pin;
  options.pins = 2;
  const rung_binding one[] = {{"input_0", 1}, {"state_1", 1}};
  rung_error error = {0};
  rung_host *host = NULL;
  rung_device *device = NULL;
  network n = {0};
  rung_status s = rung_host_create(NULL, &error, &host);
  if (!s) s = rung_device_create(host, "cpu", NULL, &error, &device);
  if (!s) s = network_open(&n, device, model, &options, one, 2, &error);
  const bool open = !s;
  if (!s) s = listen(&n, &w, each);
  if (s) fprintf(stderr, "%s: %s\n", rung_status_text(s), open ? rung_context_message(n.context) : error.message);
  network_close(&n);
  rung_device_release(device);
  rung_host_release(host);
  return s ? 1 : 0;
}
