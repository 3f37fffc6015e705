/* SPDX-License-Identifier: MIT
 * What a mistyped word was meant to be: optimal string alignment distance. */
#include <string.h>

#include "args.h"

enum { MOST = 48 }; /* longer words are not compared: distance as if nothing agreed */

int cli_distance(const char *a, const char *b) {
  const int n = (int)strlen(a), m = (int)strlen(b);
  if (n > MOST || m > MOST) return n > m ? n : m;
  int row[3][MOST + 1]; /* the row being made and the two before it, by i % 3 */
  for (int j = 0; j <= m; j++) row[0][j] = j;
  for (int i = 1; i <= n; i++) {
    int *now = row[i % 3], *above = row[(i + 2) % 3], *two = row[(i + 1) % 3];
    now[0] = i;
    for (int j = 1; j <= m; j++) {
      int best = above[j - 1] + (a[i - 1] != b[j - 1]);
      if (above[j] + 1 < best) best = above[j] + 1;
      if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two[j - 2] + 1 < best)
        best = two[j - 2] + 1;
      now[j] = best;
    }
  }
  return row[n % 3][m];
}

cli_nearest cli_nearest_begin(const char *word) {
  /* Half of the letters may be wrong; beyond that a suggestion only puzzles. */
  return (cli_nearest){.word = word, .distance = (int)strlen(word) / 2 + 1};
}

void cli_nearest_offer(cli_nearest *nearest, const char *candidate) {
  const size_t n = strlen(nearest->word);
  int distance = cli_distance(nearest->word, candidate);
  /* The beginning of a word is a good guess at it. */
  if (n >= 3 && strncmp(nearest->word, candidate, n) == 0 && distance > 1) distance = 1;
  if (distance >= nearest->distance) return;
  nearest->best = candidate;
  nearest->distance = distance;
}
