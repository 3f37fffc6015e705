/* SPDX-License-Identifier: MIT
 * The example programs with ONNX models do what they say: each runs on a file that scripts/oracle/make_examples.py made,
 * and gives what ONNX Runtime gave. Skipped without its model, or where the examples are not built. */
#define _GNU_SOURCE
#include <math.h>
#include <unistd.h>

#include "../test.h"
#include "fetched.h"

#define DATA RUNG_SOURCE_DIR "/tests/models/expect/examples/"
#define PROGRAM(name) RUNG_BINARY_DIR "/examples/" name

static char model[7][512];
/* Are all of these there? */
static bool have(const char *program, const char *const *names, int count) {
  if (!test_may_fork() || access(program, X_OK) != 0) return false;
  for (int i = 0; i < count; i++)
    if (!fetched_model(names[i], model[i], sizeof model[i])) return false;
  return true;
}
#define HAVE(program, ...) \
  have(PROGRAM(program), (const char *const[]){__VA_ARGS__}, (int)RUNG_COUNT(((const char *const[]){__VA_ARGS__})))

/* What a command prints; its status in *out_code. */
static char *output_of(const char *command, int *out_code) {
  static char text[1 << 16];
  FILE *f = popen(command, "r");
  size_t n = 0;
  if (f)
    for (size_t got; (got = fread(text + n, 1, sizeof text - 1 - n, f)) > 0;) n += got;
  text[n] = 0;
  *out_code = f ? pclose(f) : -1;
  if (*out_code) fprintf(stderr, "  %s\n", command);
  return text;
}
/* A recorded file, behind its lines of comment. */
static char *recorded(const char *name) {
  static char text[1 << 14];
  char path[512];
  snprintf(path, sizeof path, DATA "%s", name);
  FILE *f = fopen(path, "rb");
  CHECK(f != NULL);
  text[f ? fread(text, 1, sizeof text - 1, f) : 0] = 0;
  if (f) fclose(f);
  char *p = text;
  while (*p == '#') p = strchr(p, '\n') + 1;
  return p;
}

static void test_vad(void) {
  char command[2048];
  int code, n = 0;
  if (!HAVE("vad", "silero-vad")) SKIP("no program vad or no model silero-vad");
  snprintf(command, sizeof command, PROGRAM("vad") " --each %s " DATA "speech.wav", model[0]);
  char *got = output_of(command, &code), *want = recorded("vad.txt"), *end;
  CHECK(code == 0);
  for (;; n++) {
    const double w = strtod(want, &end);
    if (end == want) break;
    want = end;
    const double g = strtod(got, &end);
    CHECK(end != got && fabs(g - w) <= 1e-4);
    got = end;
  }
  CHECK(n > 100 && strtod(got, &end) >= 0 && end == got);
  /* two words, through a pipe */
  snprintf(command, sizeof command, "cat " DATA "speech.wav | " PROGRAM("vad") " %s -", model[0]);
  double from[2] = {0}, to[2] = {0};
  got = output_of(command, &code);
  CHECK(code == 0);
  CHECK(sscanf(got, "%lf %lf %lf %lf", &from[0], &to[0], &from[1], &to[1]) == 4);
  CHECK(from[0] > 0.5 && to[0] > from[0] + 0.25 && from[1] > to[0] + 0.5 && to[1] > from[1] + 0.25 && to[1] < 6);
}

static void test_ocr(void) {
  char command[4096], drawn[] = "/tmp/rung-boxes-XXXXXX";
  int code, lines = 0, want_lines = 0;
  if (!HAVE("ocr", "ppocr-det", "ppocr-rec")) SKIP("no program ocr or no models ppocr-det and ppocr-rec");
  const int file = mkstemp(drawn);
  CHECK(file >= 0);
  close(file);
  snprintf(command, sizeof command, PROGRAM("ocr") " %s %s " DATA "words.png %s", model[0], model[1], drawn);
  char *got = output_of(command, &code);
  CHECK(code == 0);
  for (char *p = got; (p = strchr(p, '\n')); p++) lines++;
  for (char *want = recorded("ocr.txt"); want && *want; want = strchr(want, '\n') ? strchr(want, '\n') + 1 : NULL) {
    int w[4], g[4];
    char word[64], read[64];
    if (sscanf(want, "%d %d %d %d %63s", &w[0], &w[1], &w[2], &w[3], word) != 5) break;
    want_lines++;
    bool found = false; /* the same word in a box around the one that was drawn, and not far around */
    for (char *line = got; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
      if (sscanf(line, "%d %d %d %d %63[^\n]", &g[0], &g[1], &g[2], &g[3], read) != 5 || strcmp(read, word) != 0)
        continue;
      found = g[0] <= w[0] + 4 && g[1] <= w[1] + 4 && g[0] + g[2] >= w[0] + w[2] - 4 &&
              g[1] + g[3] >= w[1] + w[3] - 4 && g[0] > w[0] - 30 && g[1] > w[1] - 30 && g[2] < w[2] + 60 &&
              g[3] < w[3] + 60;
    }
    CHECK(found);
    if (!found) fprintf(stderr, "  no %s in\n%s", word, got);
  }
  CHECK_EQ_I64(lines, want_lines);
  FILE *f = fopen(drawn, "rb");
  char head[8] = "";
  CHECK(f && fread(head, 1, 8, f) == 8 && memcmp(head, "\x89PNG", 4) == 0);
  if (f) fclose(f);
  unlink(drawn);
}

static void test_filetype(void) {
  char command[8192], name[256], kind[32];
  int code, n = 0, used;
  double score;
  if (!HAVE("filetype", "magika", "magika-labels")) SKIP("no program filetype or no model magika");
  int at = snprintf(command, sizeof command, PROGRAM("filetype") " %s %s", model[0], model[1]);
  char *want = recorded("filetype.txt");
  for (char *p = want; sscanf(p, "%255s %31s %lf%n", name, kind, &score, &used) == 3; p += used)
    at += snprintf(command + at, sizeof command - (size_t)at, " " RUNG_SOURCE_DIR "/%s", name);
  char *got = output_of(command, &code);
  CHECK(code == 0);
  for (; sscanf(want, "%255s %31s %lf%n", name, kind, &score, &used) == 3; want += used, n++) {
    char file[512], found[32];
    double sure;
    int length = 0;
    CHECK(sscanf(got, "%511[^:]: %31s %lf%n", file, found, &sure, &length) == 3);
    got += length + (got[length] == '\n');
    CHECK(strstr(file, name) != NULL);
    CHECK_STR(found, kind);
    CHECK(fabs(sure - score) <= 2e-4);
  }
  CHECK(n == 5);
}

/* The model rounds to 8 bits in every layer, and what it rounds decides how long each sound lasts: ONNX Runtime itself gives
 * 37,800 to 49,200 samples where weights of its text encoder are off by 2e-7 (nine draws). So: as long as that, in whole
 * frames, silent at both ends, and as loud as recorded where it speaks. */
static void test_speak(void) {
  enum { FRAME = 600, MOST = 1 << 17 };
  char command[2048], path[] = "/tmp/rung-speak-XXXXXX";
  int code;
  long samples;
  if (!HAVE("speak", "kokoro", "kokoro-voice")) SKIP("no program speak or no models kokoro and kokoro-voice");
  const int file = mkstemp(path);
  CHECK(file >= 0);
  close(file);
  snprintf(command, sizeof command,
           "echo 50 43 158 54 57 158 16 65 76 158 54 46 156 47 158 44 | " PROGRAM("speak") " %s %s %s", model[0],
           model[1], path);
  (void)output_of(command, &code);
  CHECK(code == 0);
  char *want = recorded("speak.txt"), *end;
  CHECK(sscanf(want, "samples %ld", &samples) == 1);
  want = strchr(want, '\n') + 1;
  double loudest = -100;
  for (int part = 0; part < 20; part++, want = end) loudest = fmax(loudest, strtod(want, &end));
  FILE *f = fopen(path, "rb");
  static int16_t sound[MOST];
  CHECK(f != NULL && fseek(f, 44, SEEK_SET) == 0);
  const long n = (long)fread(sound, 2, MOST, f);
  fclose(f);
  unlink(path);
  CHECK(n % FRAME == 0 && n >= samples - 10 * FRAME && n <= samples + 30 * FRAME);
  double level[20], most = -100;
  for (int part = 0; part < 20; part++) {
    double sum = 0;
    for (long i = part * (n / 20); i < (part + 1) * (n / 20); i++)
      sum += (double)sound[i] * sound[i] / (32767.0 * 32767);
    level[part] = 10 * log10(sum / (double)(n / 20) + 1e-8);
    most = fmax(most, level[part]);
  }
  CHECK(level[0] < -40 && level[19] < -40);
  CHECK(fabs(most - loudest) <= 3);
}

int main(void) {
  RUN(test_vad);
  RUN(test_ocr);
  RUN(test_speak);
  RUN(test_filetype);
  return TEST_END();
}
