/* SPDX-License-Identifier: MIT
 * The 128-bit hash against values of the reference implementation (its Python package, xxh3_128, seed 0). */
#include "base/hash.h"
#include "test.h"

static const struct {
  size_t bytes;
  const char *want;
} rows[] = {
    /* clang-format off */
    {0, "99aa06d3014798d86001c324468d497f"},
    {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
    {2, "59264f999f5b71511ca5cfa6a6d57dc2"},
    {3, "95c705060a313bf8a1c4a8259b827291"},
    {4, "afbf64f9281b8de2fde8d93ae8794d8e"},
    {5, "a872e23fe32357632be2d19951c07993"},
    {6, "42e79147a7d1132df129eda3938ebfac"},
    {7, "c64dca5a80a280cb75c20f7ea6fdec78"},
    {8, "2761698c33953c430234362aaf47b71a"},
    {9, "0d39db6431d37a74895c8a562da51412"},
    {10, "e3ca0a8adcb4eef110a0fec02acef053"},
    {11, "c8cbb320c8300d791ebc2e4629ecfacc"},
    {12, "2bc81486652df906bf890582d2f3aa52"},
    {13, "239aa0187ab5a4a4050630ab48f75512"},
    {14, "53cd7087d40bf209ac7751bc1d2fbe8f"},
    {15, "25bce72548003f03ebab99da883ac189"},
    {16, "29be75b0bbbb5284aafffcec5df2cb27"},
    {17, "db7e8f77961e47fd878751509ecfdb8b"},
    {31, "c7d62971fdc7cbdef165f912bffdeb23"},
    {32, "3e97336e6cbb6ee0de94574d7a589440"},
    {33, "3411cfe692c2e51ee2928442749dbe83"},
    {48, "3bd6de116648e9bde5a81a5dfeaca691"},
    {63, "7799ae11f05a258afb05e0b272e66ddf"},
    {64, "492893316886558766fa129223be93a5"},
    {65, "b6dfa5aac5c63dc2f5b4ade8de9a76a3"},
    {95, "6f9e0125d27cf9bb6b5cc95aef2f7172"},
    {96, "e83e939b9571947cb9de9a9696c420fc"},
    {97, "dd6ad8d4fb1433a98ea932450271fde4"},
    {127, "4e3b459b60f6cafa8dc4748447f5628b"},
    {128, "ba44fd018231af4cbbe087d879edcc78"},
    {129, "522c922743fd67f1b8075934107218e5"},
    {130, "cf90b66235522711ecd8e03310c80923"},
    {159, "b8d84928ce30df2ad19ad5c36f243195"},
    {160, "b5514c067fd629180e08f445e497507a"},
    {161, "e4072cf8ee2a75b5e98385a75e9fb9b2"},
    {191, "d0dbcc2422b44f19480841c9774e7cb1"},
    {192, "e56ca7e913690426a2ce6a625bea6b31"},
    {193, "e03db4d6291edf3ba0fba4ee1c7b9d93"},
    {239, "c1e42329e230196f964c0b96c0e4e615"},
    {240, "4f49ccc8526aa7ad407883ea5ef95b9a"},
    {241, "50b62ee1ee6455a7bc424a2c480dd281"},
    {255, "13c4fb2eb194824f155baa5891f7606f"},
    {256, "20d618055259b36c2d040b1ab40f0d78"},
    {257, "06d2f2dce7891e45d0515fbec69efb50"},
    {319, "4fa135af16f380de27131b77faa0c5da"},
    {320, "ae31e3a96bbe40f35995107115f0890e"},
    {321, "bddcaf52b3a04bf9f2630d918a2b6822"},
    {511, "738e1d88a23cff63f3848293e35ddb39"},
    {512, "17d1143c4bfb7ce017ec4809d1a9ad43"},
    {513, "ac5683cac52a75618f6e87d203da15b7"},
    {1023, "d34ef4f411b9a93e3071307bafa2f8f4"},
    {1024, "53bd178b75ab292e1fd15e7d36f5e1bc"},
    {1025, "d1ad5f4a3cce4374fe08e5a874d23fd2"},
    {1087, "37d8d68382d6e18531bd71b326693b7f"},
    {1088, "9c1e8a4061056e7d0ac7cf3a6009bab5"},
    {1089, "76f7b4fc407270d6b246626fdf150fcb"},
    {2047, "02ee993d673c565700e9914a63660650"},
    {2048, "2e141090da5502aa81ec4a6a9ee23d55"},
    {2049, "3b45eb7c64d498329156a1fd2d1a8c37"},
    {4096, "0c263f435125451084d9e7ce664c8217"},
    {4097, "1487c90386606b4552606c941adb173b"},
    {10000, "1cd212e1c176391d47a14da2fa124276"},
    {20000, "335730fe0c95221e029d5eb7e8999845"},
    /* clang-format on */
};

static const struct {
  const char *text, *want;
} texts[] = {
    {"abc", "06b05ab6733a618578af5f94892f3950"},
    {"", "99aa06d3014798d86001c324468d497f"},
    {"a", "a96faf705af16834e6c632b61e964e1f"},
    {"Nobody inspects the spammish repetition", "a32c6f55b80b5f449f1a957522431b91"},
};

enum { LONGEST = 20000 };
static uint8_t data[LONGEST + 1];

static void test_lengths(void) {
  char hex[33];
  for (size_t i = 0; i < LONGEST; i++) data[i] = (uint8_t)((uint32_t)i * 2654435761u >> 13);
  for (size_t r = 0; r < RUNG_COUNT(rows); r++) {
    rung_hash_hex(rung_hash_bytes(data, rows[r].bytes), hex);
    CHECK_STR(hex, rows[r].want);
  }
  /* Unaligned input gives the same. */
  memmove(data + 1, data, LONGEST);
  for (size_t r = 0; r < RUNG_COUNT(rows); r++) {
    rung_hash_hex(rung_hash_bytes(data + 1, rows[r].bytes), hex);
    CHECK_STR(hex, rows[r].want);
  }
}

static void test_texts(void) {
  char hex[33];
  for (size_t t = 0; t < RUNG_COUNT(texts); t++) {
    rung_hash_hex(rung_hash_bytes(texts[t].text, strlen(texts[t].text)), hex);
    CHECK_STR(hex, texts[t].want);
  }
  CHECK(rung_hash_equal(rung_hash_bytes("x", 1), rung_hash_bytes("x", 1)));
  CHECK(!rung_hash_equal(rung_hash_bytes("x", 1), rung_hash_bytes("y", 1)));
  CHECK(rung_hash64("key", 3) == rung_hash64("key", 3) && rung_hash64("key", 3) != rung_hash64("kez", 3));
}

/* Every byte matters, at every length. */
static void test_each_byte(void) {
  static const size_t lengths[] = {1, 3, 4, 8, 9, 16, 17, 64, 128, 129, 240, 241, 1024, 1100};
  for (size_t l = 0; l < RUNG_COUNT(lengths); l++) {
    const rung_hash whole = rung_hash_bytes(data, lengths[l]);
    for (size_t i = 0; i < lengths[l]; i++) {
      data[i] ^= 1;
      CHECK(!rung_hash_equal(whole, rung_hash_bytes(data, lengths[l])));
      data[i] ^= 1;
    }
  }
}

int main(void) {
  RUN(test_lengths);
  RUN(test_texts);
  RUN(test_each_byte);
  return TEST_END();
}
