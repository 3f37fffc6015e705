/* SPDX-License-Identifier: MIT
 * The text form: what print writes, parse reads, byte for byte; what is wrong is said with its place. Every op of the
 * table goes through it with its own test cases, and random graphs do. */
#include "base/hash.h"
#include "ir/graph.h"
#include "ir/rewrite.h"
#include "ops/build.h"
#include "test.h"

static rung_host *host;

static rung_status parse(const char *text, rung_error *error, rung_graph **out) {
  *error = (rung_error){RUNG_OK, ""};
  return rung_graph_parse(host, text, strlen(text), error, out);
}

static bool encoded_way(const rung_graph *g, const char *text);

static void check_round_trip(const char *text) {
  rung_error error;
  rung_graph *g = NULL;
  char *again = NULL;
  size_t bytes = 0;
  CHECK_OK(parse(text, &error, &g));
  if (!g) {
    fprintf(stderr, "%s\n%s\n", error.message, text);
    return;
  }
  CHECK_OK(rung_graph_print(g, &error, &again, &bytes));
  CHECK_STR(again, text);
  CHECK(encoded_way(g, text));
  rung_text_free(host, again, bytes);
  rung_graph_destroy(g);
}

static const char whole[] =
    "rung 1\n"
    "symbol rows 1..512\n"
    "symbol unused 0..9223372036854775807\n"
    "symbol found <= 4*rows made\n"
    "%0 = input {name=\"x\"} : f32[rows,576]\n"
    "%1 = weight {name=\"blk.0.attn_q.weight\"} : q4_1[576,576]\n"
    "%2 = matmul %0, %1 {transpose_b=true} : f32[rows,576]  # layers.0.attn\n"
    "%3, %4 = top_k %2 {k=4} : f32[rows,4], i64[rows,4]\n"
    "%s5 = state {name=\"kv.0\", window=128} : kv f16[3,64,64]\n"
    "%s6 = state {name=\"table\"} : state f32[4,8]\n"
    "%7 = constant {data=bool(1)} : bool[]\n"
    "%8 = if %7, %2 {\n"
    "  %0 = input {name=\"a\"} : f32[rows,576]\n"
    "  %1 = relu %0 : f32[rows,576]  # inside\n"
    "  output \"y\" %1\n"
    "} else {\n"
    "  %0 = input {name=\"a\"} : f32[rows,576]\n"
    "  output \"y\" %0\n"
    "} : f32[rows,576]  # \" two  spaces \\n\"\n"
    "%9 = reshape %3 {shape=[4*rows]} : f32[4*rows]\n"
    "%10 = count_nonzero %9 : i64[]\n"
    "%11 = bind_symbol %10 {symbol=\"found\", bound=4*rows} : i64[]\n"
    "%12 = nonzero %9 {count=found} : i64[1,found]  # a # in it\n"
    "%13 = leaky_relu %8 {alpha=0.1} : f32[rows,576]\n"
    "%14 = constant {data=f32(1, 2.5, nan, -inf)} : f32[2,2]\n"
    "%15 = constant "
    "{data=base64\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0A=\"} "
    ": u8[65]\n"
    "%16 = constant {data=hex\"\"} : f32[0]\n"
    "output \"y \\\"quoted\\\"\" %13\n"
    "output \"where\" %12\n";

/* What steps find, and states that go through bodies. */
static const char control[] =
    "rung 1\n"
    "symbol n 1..16\n"
    "symbol steps <= 8 made\n"
    "symbol s0 <= 2*n made\n"
    "%0 = input {name=\"x\"} : f32[n,3]\n"
    "%1 = constant {data=i64(8)} : i64[]\n"
    "%2 = constant {data=bool(1)} : bool[]\n"
    "%s3 = state {name=\"s\"} : state f32[2]\n"
    "%s4, %5, %6 = loop %1, %2, %s3, %0 {carried=2, symbol=\"steps\", trip=8} {\n"
    "  %0 = input {name=\"i\"} : i64[]\n"
    "  %1 = input {name=\"c\"} : bool[]\n"
    "  %s2 = input {name=\"s\"} : state f32[2]\n"
    "  %3 = input {name=\"x\"} : f32[n,3]\n"
    "  %4 = relu %s2 : f32[2]\n"
    "  %s5 = assign %s2, %4 : state f32[2]\n"
    "  output \"c\" %1\n"
    "  output \"s\" %s5\n"
    "  output \"x\" %3\n"
    "  output \"y\" %3\n"
    "} : state f32[2], f32[n,3], f32[steps,n,3]\n"
    "%7 = if %2, %5 {\n"
    "  %0 = input {name=\"x\"} : f32[n,3]\n"
    "  output \"y\" %0\n"
    "} else {\n"
    "  %0 = input {name=\"x\"} : f32[n,3]\n"
    "  %1 = concat %0, %0 {axis=0} : f32[2*n,3]\n"
    "  output \"y\" %1\n"
    "} : f32[s0,3]\n"
    "%s8 = if %2, %s4 {\n"
    "  %s0 = input {name=\"s\"} : state f32[2]\n"
    "  output \"s\" %s0\n"
    "} else {\n"
    "  %s0 = input {name=\"s\"} : state f32[2]\n"
    "  %1 = exp %s0 : f32[2]\n"
    "  %s2 = assign %s0, %1 : state f32[2]\n"
    "  output \"s\" %s2\n"
    "} : state f32[2]\n"
    "%9 = relu %s8 : f32[2]\n"
    "output \"scan\" %6\n"
    "output \"branch\" %7\n"
    "output \"state\" %9\n";

static void test_whole(void) {
  check_round_trip(whole);
  check_round_trip(control);
  check_round_trip("rung 1\n");
}

/* Text behind `control` that breaks a rule over several nodes. */
static void test_control_rules(void) {
  static const char *const cases[][2] = {
      {"%z = relu %s3 : f32[2]\n", "%10 relu: it uses a version of a state that is overwritten"},
      {"%z = relu %s4 : f32[2]\n", "overwritten"},
      {"%z = relu %s8 : f32[2]\n", NULL},
      {"output \"old\" %s3\n", "output 'old' is a version of a state that is overwritten"},
      {"output \"new\" %s8\n", NULL},
      {"%z = reshape %6 {shape=[3*n*steps]} : f32[3*n*steps]\n", NULL},
      {"%z = iota {shape=[unmade]} : i64[unmade]\n", "no step before it made"},
      {"%z = input {name=\"late\"} : f32[steps]\n", "only known after a step"},
      {"%z = if %2, %5 {\n%0 = input {name=\"x\"} : f32[n,3]\noutput \"y\" %0\n} else {\n%0 = input {name=\"x\"} : "
       "f32[n,3]\n%1 = concat %0, %0 {axis=0}\noutput \"y\" %1\n} : f32[s0,3]\n",
       "the text says f32[s0,3]"},
      {"%z = weight {name=\"w\"} : f32[n]\n", "not constant"},
      {"%z = input {name=\"s\"} : state f32[2]\n", "a state is no input"},
      {"%z = state {name=\"s\"} : state f32[2]\n", "declared twice"},
      {"%z = weight {name=\"w\"} : q4_0[]\n", "rank 0 has none"},
      {"%z = constant {data=hex\"\"} : f32[4611686018427387904,4]\n", "64 bits"},
      {"%z = iota {shape=[n - 17]} : i64[n - 17]\n", "below 0"},
  };
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    rung_text text;
    rung_text_init(&text, host);
    rung_text_puts(&text, "rung 1\nsymbol unmade made\n");
    rung_text_puts(&text, control + strlen("rung 1\n"));
    rung_text_puts(&text, cases[i][0]);
    rung_error error;
    rung_graph *g = NULL;
    const rung_status status = parse(text.data, &error, &g);
    test_state.checks++;
    const bool right = cases[i][1] ? status && strstr(error.message, cases[i][1]) : status == RUNG_OK;
    if (!right) TEST_FAIL_("case %zu: %s: %s", i, cases[i][0], status ? error.message : "accepted");
    rung_graph_destroy(g);
    rung_text_finish(&text);
  }
}

/* Names, blanks, comments, types left out: hand-written text means the same as what is printed for it. */
static void test_hand_written(void) {
  static const char text[] = "# a comment\n\n  rung 1   # version\r\n\tsymbol n 1 .. 8\n";
  rung_error error;
  rung_graph *g = NULL;
  CHECK_STATUS(parse(text, &error, &g), RUNG_CORRUPT_FILE); /* no blank in a range */
  static const char loose[] =
      "# a comment\n\n  rung 1   # version\r\n\tsymbol n 1..8\n"
      "%in=input{name=\"x\"}:f32[ n , 3 ]\n"
      "\n# more\n"
      "%r.1 =  relu  %in # why\n"
      "%out = add %r.1,%in : f32[n,3]\n"
      "   output \"y\" %out # the end";
  CHECK_OK(parse(loose, &error, &g));
  if (!g) return;
  char *again;
  size_t bytes;
  CHECK_OK(rung_graph_print(g, &error, &again, &bytes));
  CHECK_STR(again,
            "rung 1\nsymbol n 1..8\n%0 = input {name=\"x\"} : f32[n,3]\n%1 = relu %0 : f32[n,3]  # why\n"
            "%2 = add %1, %0 : f32[n,3]\noutput \"y\" %2\n");
  rung_text_free(host, again, bytes);
  rung_build_relu(g, (rung_value){g->serial, 1}); /* and it can be built on */
  CHECK_OK(rung_graph_status(g));
  rung_graph_destroy(g);
}

static void test_errors(void) {
  static const char head[] = "rung 1\n%0 = input {name=\"x\"} : f32[2,3]\n";
  static const struct {
    const char *text, *where, *what;
  } cases[] = {
      {"%1 = nosuch %0\n", "line 3, column 6", "no op is called 'nosuch'"},
      {"%1 = relu %2\n", "line 3, column 12", "%2 is not defined before its use"},
      {"%1 = relu %1\n", "line 3, column 12", "%1 is not defined before its use"},
      {"%0 = relu %0\n", "line 3, column 2", "%0 is defined twice"},
      {"%1 = relu %0 : f32[2,4]\n", "line 3, column 16", "the text says f32[2,4], relu gives f32[2,3]"},
      {"%1, %2 = relu %0\n", "line 3, column 10", "has 1 results; 2 are named"},
      {"%1 = relu %0 : f32[2,3], f32[2,3]\n", "line 3, column 6", "1 are named, 2 types"},
      {"relu %0\n", "line 3, column 1", "0 are named"},
      {"%1 = add %0\n", "line 3, column 6", "takes 2 operands, not 1"},
      {"%1 = relu %0 %0\n", "line 3, column 14", "expected the end of the line, not '%'"},
      {"%1 relu %0\n", "line 3, column 4", "expected ',' or '=', not 'r'"},
      {"% = relu %0\n", "line 3, column 2", "a name must follow %"},
      {"%1 = leaky_relu %0 {beta=1}\n", "line 3, column 25", "no attribute 'beta'"},
      {"%1 = leaky_relu %0 {alpha=x}\n", "line 3, column 27", "attribute alpha: expected a number"},
      {"%1 = leaky_relu %0 {alpha=1\n", "line 3, column 28", "expected ',' or '}', not the end of the line"},
      {"%1 = relu %0 : f33[2,3]\n", "line 3, column 16", "'f33' is no type"},
      {"%1 = relu %0 : f32[2,rows]\n", "line 3, column 22", "a symbol of this name is not declared"},
      {"%1 = relu %0 : f32[2\n", "line 3, column 21", "expected ',' or ']'"},
      {"%1 = relu %0 : f32[1,1,1,1,1,1,1,1,1]\n", "line 3, column 36", "more than 8 extents"},
      {"%1 = relu %0 : f32[2,3] place(200)\n", "line 3, column 31", "place takes a number up to 127"},
      {"%1 = input {name=\"y\"}\n", "line 3, column 6", "input needs its type"},
      {"%1 = input {name=\"x\"} : f32[]\n", "line 3, column 6", "'x' is declared twice"},
      {"%1 = input %0 {name=\"y\"} : f32[]\n", "line 3, column 6", "takes no operands"},
      {"%1 = constant {data=f32(1)} : f32[2]\n", "line 3, column 6", "data has 4 bytes where the type needs 8"},
      {"%1 = weight {name=\"w\"} : q4_k[100]\n", "line 3, column 6", "multiple of 256"},
      {"output \"y\" %7\n", "line 3, column 13", "%7 is not defined"},
      {"output y %0\n", "line 3, column 8", "quotes"},
      {"output \"y\" %0\noutput \"y\" %0\n", "line 4, column 8", "named twice"},
      {"symbol n 5..2\n", "line 3, column 8", "symbol n: a symbol's range"},
      {"symbol n 5\n", "line 3, column 11", "expected '..'"},
      {"symbol n <= 8\n", "line 3, column 14", "expected 'made'"},
      {"symbol min 1..2\n", "line 3, column 8", "identifier"},
      {"}\n", "line 3, column 1", "expected an op, not '}'"},
      {"%1 = relu %0 {\n  output \"y\" %0\n}\n", "line 3, column 15", "relu has 0 bodies"},
      {"%1 = if %0 {\n  output \"y\" %0\n}\n", "line 4, column 15", "%0 is not defined"},
      {"%1 = if %0 {\n}\n", "line 3, column 6", "has 2 bodies, not 1"},
      {"%1 = if %0 {\n", "line 4, column 1", "expected '}', not the end"},
      {"%1 = relu %0 # \"open\n", "line 3, column 16", "closing quote"},
      {"\x01\n", "line 3, column 1", "byte 01"},
      {"%1 = add %0, %0 : f32[2,3]\n%2 = nonzero %0 {count=late}\nsymbol late made\n", "line 4, column 24", "symbol"},
      {"symbol late made\n%1 = nonzero %0 {count=late} : i64[2,late]\n", "", "no step before it made"},
  };
  for (size_t i = 0; i < RUNG_COUNT(cases); i++) {
    char text[512];
    snprintf(text, sizeof text, "%s%s", head, cases[i].text);
    rung_error error;
    rung_graph *g = NULL;
    const rung_status status = parse(text, &error, &g);
    test_state.checks++;
    if (!status || !strstr(error.message, cases[i].where) || !strstr(error.message, cases[i].what)) {
      TEST_FAIL_("case %zu: %s%s", i, cases[i].text, error.message);
    }
    CHECK(rung_graph_parse(host, text, strlen(text), NULL, &g) == status);
    rung_graph_destroy(g);
  }
  static const char *const no_graph[] = {"",         "\n",         "rung",    "rung 2\n",
                                         "ring 1\n", "rung 1 1\n", "rung1\n", "%0 = input"};
  for (size_t i = 0; i < RUNG_COUNT(no_graph); i++) {
    rung_error error;
    rung_graph *g = NULL;
    CHECK_STATUS(parse(no_graph[i], &error, &g), RUNG_CORRUPT_FILE);
  }
  rung_error error;
  rung_graph *g = NULL;
  CHECK_STATUS(rung_graph_parse(host, NULL, 0, &error, &g), RUNG_CORRUPT_FILE);
  CHECK_STATUS(rung_graph_parse(NULL, "", 0, &error, &g), RUNG_INVALID_ARGUMENT);
  CHECK_STATUS(rung_graph_parse(host, NULL, 5, &error, &g), RUNG_INVALID_ARGUMENT);
}

/* Cut anywhere, or one byte changed: a status or a graph that prints, never anything else. */
static void test_damage(void) {
  const size_t length = strlen(whole);
  char copy[sizeof whole];
  uint64_t seed = 5;
  rung_error error;
  for (size_t cut = 0; cut <= length; cut++) {
    memcpy(copy, whole, cut);
    char *exact = (char *)rung_host_alloc_raw(host, RUNG_MEMORY_host, cut, 1); /* the byte behind it must not be read */
    memcpy(exact, whole, cut);
    rung_graph *g = NULL;
    const rung_status status = rung_graph_parse(host, exact, cut, &error, &g);
    CHECK(status == RUNG_OK ? g != NULL : error.message[0] != 0);
    rung_host_free(host, RUNG_MEMORY_host, exact, cut);
    rung_graph_destroy(g);
  }
  for (int i = 0; i < 1500; i++) {
    memcpy(copy, whole, sizeof whole);
    for (int k = 0; k <= i % 3; k++) copy[test_below(&seed, (int64_t)length)] = (char)test_random(&seed);
    rung_graph *g = NULL;
    if (rung_graph_parse(host, copy, length, &error, &g)) {
      CHECK(error.message[0] != 0);
      continue;
    }
    char *text;
    size_t bytes;
    CHECK_OK(rung_graph_print(g, &error, &text, &bytes));
    check_round_trip(text);
    rung_text_free(host, text, bytes);
    rung_graph_destroy(g);
  }
}

static void test_nesting(void) {
  for (int depth = 60; depth <= 70; depth += 2) {
    rung_text text;
    rung_text_init(&text, host);
    rung_text_puts(&text, "rung 1\n%x = input {name=\"x\"} : f32[2]\n%c = constant {data=bool(1)} : bool[]\n");
    for (int i = 0; i < depth; i++) {
      rung_text_puts(&text,
                     "%y = if %c, %c, %x {\n%c = input {name=\"c\"} : bool[]\n%x = input {name=\"x\"} : f32[2]\n");
    }
    rung_text_puts(&text, "output \"y\" %x\n");
    for (int i = 0; i < depth; i++) {
      rung_text_puts(
          &text,
          "} else {\n%c = input {name=\"c\"} : bool[]\n%x = input {name=\"x\"} : f32[2]\noutput \"y\" %x\n}\n"
          "output \"y\" %y\n");
    }
    rung_error error;
    rung_graph *g = NULL;
    const rung_status status = parse(text.data, &error, &g);
    CHECK_STATUS(status, depth <= 64 ? RUNG_OK : RUNG_OUT_OF_RANGE);
    if (status && depth <= 64) fprintf(stderr, "%s\n", error.message);
    if (g) {
      char *again;
      size_t bytes;
      CHECK_OK(rung_graph_print(g, &error, &again, &bytes));
      check_round_trip(again);
      rung_text_free(host, again, bytes);
    }
    rung_graph_destroy(g);
    rung_text_finish(&text);
  }
}

/* ---- every op with its own cases */

static rung_graph *copied(const rung_graph *from) {
  rung_graph *to = NULL;
  rung_rewrite rewrite;
  rung_error error;
  if (rung_graph_create_like(from, &error, &to)) return NULL;
  bool ok = !rung_rewrite_init(&rewrite, from, to, &error);
  for (uint32_t i = 0; ok && i < from->nodes; i++) ok = !rung_rewrite_copy(&rewrite, i);
  if (ok && !rung_rewrite_finish(&rewrite, &error)) return to;
  rung_graph_destroy(to);
  return NULL;
}

static bool hash(const rung_graph *g, rung_hash *out) { return g && !rung_graph_hash(g, out, NULL); }

/* Encodes with notes and reads that back: the same text, labels and unused symbols included. False without memory. */
static bool encoded_way(const rung_graph *g, const char *text) {
  rung_text code, notes;
  rung_text_init(&code, host);
  rung_text_init(&notes, host);
  rung_error error = {RUNG_OK, ""};
  rung_graph *decoded = NULL;
  char *again = NULL;
  size_t bytes = 0;
  const bool ok = !rung_graph_encode(g, &code) && !rung_graph_encode_notes(g, &notes) &&
                  !rung_graph_decode(host, code.data, code.length, notes.data, notes.length, &error, &decoded) &&
                  !rung_graph_print(decoded, &error, &again, &bytes);
  if (ok) {
    CHECK_STR(again, text);
    CHECK_EQ_I64(decoded->checks, g->checks);
  } else if (error.status && error.status != RUNG_OUT_OF_MEMORY) {
    TEST_FAIL_("%s\n%s", error.message, text);
  }
  rung_text_free(host, again, bytes);
  rung_graph_destroy(decoded);
  rung_text_finish(&code);
  rung_text_finish(&notes);
  return ok;
}

/* Prints, parses, copies, encodes, hashes and verifies; false if something ran out of memory. */
static bool whole_way(const rung_graph *g) {
  char *text = NULL, *again = NULL;
  size_t bytes = 0, again_bytes = 0;
  rung_error error = {RUNG_OK, ""};
  rung_graph *parsed = NULL;
  rung_graph *copy = copied(g);
  rung_hash a, b, c;
  const bool ok = copy && !rung_graph_verify(g, &error) && !rung_graph_print(g, &error, &text, &bytes) &&
                  !rung_graph_parse(host, text, bytes, &error, &parsed) &&
                  !rung_graph_print(parsed, &error, &again, &again_bytes) && hash(g, &a) && hash(parsed, &b) &&
                  hash(copy, &c) && encoded_way(g, text);
  if (ok) {
    CHECK_STR(again, text);
    CHECK(rung_hash_equal(a, b));
    CHECK(rung_hash_equal(a, c));
    CHECK_EQ_I64(parsed->checks, g->checks);
  } else {
    CHECK(error.status == RUNG_OK || error.status == RUNG_OUT_OF_MEMORY);
    if (error.status && error.status != RUNG_OUT_OF_MEMORY) fprintf(stderr, "%s\n%s\n", error.message, text);
  }
  rung_text_free(host, text, bytes);
  rung_text_free(host, again, again_bytes);
  rung_graph_destroy(parsed);
  rung_graph_destroy(copy);
  return ok;
}

/* "f32[5,67] i32[9]{0,4}" as input lines; extents above 1 become symbols n5 if `open`. */
static void case_inputs(const char *operands, bool open, rung_text *out) {
  rung_text lines;
  rung_text_init(&lines, host);
  rung_text_puts(out, "rung 1\n");
  int number = 0;
  for (const char *p = operands; *p;) {
    rung_text_printf(&lines, "%%%d = input {name=\"x%d\"} : ", number, number);
    number++;
    for (; *p && *p != '['; p++) rung_text_add(&lines, p, 1);
    while (*p && *p != ']') {
      rung_text_add(&lines, p++, 1);
      int64_t extent;
      const char *end;
      if (!rung_parse_i64(p, NULL, &extent, &end)) continue;
      if (open && extent > 1) {
        rung_text_printf(out, "symbol n%d_%d 0..4096\n", (int)extent, number);
        rung_text_printf(&lines, "n%d_%d", (int)extent, number);
      } else {
        rung_text_printf(&lines, "%d", (int)extent);
      }
      p = end;
    }
    rung_text_puts(&lines, "]\n");
    for (p += *p == ']'; *p && *p != ' '; p++) continue;
    while (*p == ' ') p++;
  }
  if (lines.length) rung_text_puts(out, lines.data);
  rung_text_finish(&lines);
}

static bool append_case(rung_graph *g, const rung_op *op, const char *attrs_text) {
  rung_value in[16];
  uint32_t n = g->values - 1;
  for (uint32_t i = 0; i < n && i < 16; i++) in[i] = (rung_value){g->serial, i + 1};
  void *attrs = rung_arena_alloc(&g->arena, op->attrs_bytes);
  const char *end;
  rung_error error = {RUNG_OK, ""};
  CHECK_OK(rung_attrs_parse(op, g->dims, &g->arena, attrs_text, attrs_text + strlen(attrs_text), &end, attrs, &error));
  const rung_node *node = rung_graph_append(g, op, in, n, op->attrs_bytes ? attrs : NULL, NULL, 0);
  if (!node) return false;
  const uint32_t first = node->first_value, results = node->results;
  for (uint32_t i = 0; i < results; i++) {
    char name[16];
    snprintf(name, sizeof name, "y%u", i);
    rung_graph_output(g, name, (rung_value){g->serial, first + i});
  }
  return !rung_graph_status(g);
}

static void test_every_op(void) {
  int cases = 0, opened = 0;
  for (size_t o = 0; o < rung_op_count(); o++) {
    const rung_op *op = rung_op_at(o);
    CHECK(rung_op_find(op->name, strlen(op->name)) == op);
    for (const rung_test_case *test = op->tests; test && test->operands; test++) {
      for (int open = 0; open < 2; open++) {
        rung_text text;
        rung_text_init(&text, host);
        case_inputs(test->operands, open, &text);
        rung_error error;
        rung_graph *g = NULL;
        const rung_status status = parse(text.data, &error, &g);
        if (status) TEST_FAIL_("%s %s: %s", op->name, test->operands, error.message);
        if (!status && op->bodies == 0) {
          const bool built = append_case(g, op, test->attrs ? test->attrs : "");
          if (!built && !open) TEST_FAIL_("%s %s: %s", op->name, test->operands, rung_graph_message(g));
          if (built) CHECK(whole_way(g));
          cases += !open && built;
          opened += open && built;
        }
        rung_graph_destroy(g);
        rung_text_finish(&text);
      }
    }
  }
  CHECK(cases > 300 && opened > 100);
}

/* ---- random graphs: any elementwise op of the table, branches, states, constants, labels */

typedef struct generator {
  const rung_op *op[256]; /* those that take f32 operands of one shape */
  uint32_t ops;
  uint64_t seed;
} generator;

static void find_ops(generator *r) {
  for (size_t o = 0; o < rung_op_count() && r->ops < RUNG_COUNT(r->op); o++) {
    const rung_op *op = rung_op_at(o);
    if (!(op->flags & RUNG_OP_ELEMENTWISE) || op->results != 1 || op->in_lo > 3) continue;
    rung_graph *g = NULL;
    if (rung_graph_create(host, NULL, &g)) return;
    const rung_value x = rung_graph_input(g, "x", RUNG_TYPE_F32, 0, NULL), in[3] = {x, x, x};
    if (rung_graph_op(g, op, in, op->in_lo, NULL).id) r->op[r->ops++] = op;
    rung_graph_destroy(g);
  }
}

static rung_dim random_dim(generator *r, rung_graph *g) {
  rung_dim dim = g->dims->symbol[test_below(&r->seed, g->dims->symbols ? g->dims->symbols : 1)].dim;
  for (int i = 0; i < 3 && test_below(&r->seed, 2); i++) {
    const rung_dim_op op = (rung_dim_op)test_below(&r->seed, 7);
    if (op == RUNG_DIM_SUB) continue;
    dim = rung_graph_dim(g, op, dim, rung_graph_constant_dim(g, 1 + test_below(&r->seed, 70)));
  }
  return dim;
}

static void random_nodes(generator *r, rung_graph *g, const rung_dim *extent, int depth);

static rung_value random_branch(generator *r, rung_graph *g, const rung_dim *extent, rung_value x, int depth) {
  rung_graph *body[2];
  for (int b = 0; b < 2; b++) {
    body[b] = rung_graph_body(g);
    rung_graph_input(body[b], "x", RUNG_TYPE_F32, 2, extent);
    random_nodes(r, body[b], extent, depth + 1);
  }
  const rung_value in[2] = {rung_graph_scalar(g, RUNG_TYPE_BOOL, (double)test_below(&r->seed, 2)), x};
  return rung_node_result(g, rung_graph_append(g, &rung_op_if, in, 2, NULL, body, 2), 0);
}

/* Adds nodes over f32 values of one shape; the last is the output. */
static void random_nodes(generator *r, rung_graph *g, const rung_dim *extent, int depth) {
  rung_value pool[40];
  int count = 0;
  for (uint32_t i = 1; i < g->values && count < 8; i++) {
    if (g->value[i].type.kind == RUNG_VALUE_TENSOR && g->value[i].type.rank == 2)
      pool[count++] = (rung_value){g->serial, i};
  }
  const int nodes = 2 + (int)test_below(&r->seed, depth ? 4 : 12);
  for (int i = 0; i < nodes && count > 0; i++) {
    char label[40];
    snprintf(label, sizeof label, "layers.%d%s", (int)test_below(&r->seed, 4),
             test_below(&r->seed, 8) ? "" : " \n\xff ");
    rung_graph_label(g, test_below(&r->seed, 3) ? label : NULL);
    rung_value in[3];
    for (int k = 0; k < 3; k++) in[k] = pool[test_below(&r->seed, count)];
    const int64_t choice = test_below(&r->seed, 10);
    if (choice == 0 && depth < 3) {
      pool[count++] = random_branch(r, g, extent, in[0], depth);
    } else if (choice == 1) {
      in[1] = rung_graph_scalar(g, RUNG_TYPE_F32, (double)test_uniform(&r->seed, -2, 2));
      pool[count++] = rung_build_mul(g, in[0], in[1]);
    } else {
      const rung_op *op = r->op[test_below(&r->seed, r->ops)];
      const rung_value y = rung_graph_op(g, op, in, op->in_lo, NULL);
      if (rung_graph_type_of(g, y) == RUNG_TYPE_F32) pool[count++] = y;
    }
  }
  rung_graph_output(g, "y", count ? pool[count - 1] : (rung_value){0, 0});
}

static rung_graph *random_graph(generator *r) {
  rung_graph *g = NULL;
  if (rung_graph_create(host, NULL, &g)) return NULL;
  rung_graph_symbol(g, "rows", 1, 512);
  rung_graph_symbol(g, "b", 2, 9);
  const rung_dim extent[2] = {random_dim(r, g), random_dim(r, g)};
  rung_graph_input(g, "x", RUNG_TYPE_F32, 2, extent);
  if (test_below(&r->seed, 2)) {
    const rung_state_desc desc = {sizeof desc, RUNG_STATE_DENSE, RUNG_TYPE_F32, 1, {8}, 0};
    const rung_value s = rung_graph_state(g, "s", &desc);
    const rung_value s1 = rung_graph_op(g, &rung_op_assign, (rung_value[]){s, rung_build_relu(g, s)}, 2, NULL);
    rung_graph_output(g, "state", s1);
  }
  random_nodes(r, g, extent, 0);
  return g;
}

static void test_random_graphs(void) {
  generator r = {.seed = 99};
  find_ops(&r);
  CHECK(r.ops > 40);
  for (int i = 0; i < 300; i++) {
    rung_graph *g = random_graph(&r);
    if (rung_graph_status(g)) TEST_FAIL_("graph %d: %s", i, rung_graph_message(g));
    CHECK(whole_way(g));
    rung_graph_destroy(g);
  }
}

/* Reading, copying, writing, hashing, with the n-th allocation failing. */
static void fail_each_allocation(const char *text) {
  for (int64_t at = 1;; at++) {
    test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = at};
    rung_host_set_fault(host, test_fault_hit, &fault);
    rung_error error;
    rung_graph *g = NULL;
    const rung_status status = parse(text, &error, &g);
    CHECK(status == (g ? RUNG_OK : RUNG_OUT_OF_MEMORY));
    if (g) CHECK(whole_way(g) == !fault.hit);
    rung_graph_destroy(g);
    rung_host_set_fault(host, NULL, NULL);
    if (!fault.hit) break;
  }
}

/* Every allocation of building, printing, parsing, copying and hashing fails once. */
static void test_memory(void) {
  generator r = {.seed = 0};
  find_ops(&r);
  for (uint64_t seed = 1; seed <= 3; seed++) {
    for (int64_t at = 1;; at++) {
      test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = at};
      const uint64_t before = rung_host_memory(host).host;
      rung_host_set_fault(host, test_fault_hit, &fault);
      r.seed = seed * 77;
      rung_graph *g = random_graph(&r);
      bool ok = g && !rung_graph_status(g);
      if (g && !ok) CHECK_STATUS(rung_graph_status(g), RUNG_OUT_OF_MEMORY);
      if (ok) ok = whole_way(g);
      CHECK(ok == !fault.hit);
      rung_graph_destroy(g);
      rung_host_set_fault(host, NULL, NULL);
      CHECK_EQ_I64(rung_host_memory(host).host, before);
      if (!fault.hit) break;
    }
  }
  fail_each_allocation(whole);
  fail_each_allocation(control);
}

int main(void) {
  if (rung_host_create(NULL, NULL, &host)) return 1;
  const uint64_t before = rung_host_memory(host).host;
  RUN(test_whole);
  RUN(test_control_rules);
  RUN(test_hand_written);
  RUN(test_errors);
  RUN(test_damage);
  RUN(test_nesting);
  RUN(test_every_op);
  RUN(test_random_graphs);
  RUN(test_memory);
  CHECK_EQ_I64(rung_host_memory(host).host, before);
  rung_host_release(host);
  return TEST_END();
}
