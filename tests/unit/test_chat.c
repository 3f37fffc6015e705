/* SPDX-License-Identifier: MIT
 * Chat templates: what bounds a render, what messages name, that any allocation may fail, that threads share one. */
#include <rung/rung.h>

#include "base/thread.h"
#include "test.h"

static rung_host *host;

static rung_status render(const char *source, const rung_chat_input *input, rung_error *error, char **out,
                          size_t *bytes) {
  rung_chat_template *t = NULL;
  const rung_status created = rung_chat_template_create(host, source, strlen(source), error, &t);
  if (created) return created;
  const rung_status status = rung_chat_render(t, input, error, out, bytes);
  rung_chat_template_release(t);
  return status;
}

static rung_chat_input plain(void) {
  rung_chat_input input = rung_chat_input_default();
  input.messages = "[{\"role\": \"user\", \"content\": \"Hi\"}]";
  return input;
}

/* Renders, and checks the status and a part of the message or the text. */
static void expect(const char *source, const rung_chat_input *input, rung_status want, const char *part) {
  rung_error error = {0};
  char *text = NULL;
  size_t bytes = 0;
  const rung_status status = render(source, input, &error, &text, &bytes);
  test_state.checks++;
  const char *said = status ? error.message : text;
  if (status != want || !strstr(said, part))
    TEST_FAIL_("%s: %s \"%s\", not %s \"%s\"", source, rung_status_name(status), said, rung_status_name(want), part);
  rung_text_free(host, text, bytes);
}

static void test_messages_name_line_and_construct(void) {
  const rung_chat_input input = plain();
  expect("a\n{{ raise_exception('no: ' ~ messages[0].role) }}", &input, RUNG_INVALID_ARGUMENT,
         "chat template: line 2: the call raise_exception: no: user");
  expect("\n\n{% for x in 5 %}{% endfor %}", &input, RUNG_INVALID_ARGUMENT,
         "line 3: {% for %}: 'int' object is not iterable");
  expect("{{ 'a' +\n 1 }}", &input, RUNG_INVALID_ARGUMENT, "line 1: +: unsupported operand type(s)");
  expect("{{ messages | wordwrap }}", &input, RUNG_UNSUPPORTED,
         "line 1: the filter wordwrap: this filter is not supported");
  expect("{% macro m() %}\n{{ missing.x }}{% endmacro %}{{ m() }}", &input, RUNG_INVALID_ARGUMENT,
         "line 2: the attribute x: 'missing' is undefined");
  expect("{% if true %}\n{{ 1 }}", &input, RUNG_CORRUPT_FILE, "line 2: the template ends inside {% if %} of line 1");
  expect("{{ 1 | nope }}", &input, RUNG_UNSUPPORTED, "line 1: the filter nope is not known");
  expect("{% block x %}", &input, RUNG_UNSUPPORTED, "line 1: {% block %} is not supported");
  expect("{{ [1].append(2) }}", &input, RUNG_INVALID_ARGUMENT,
         "access to attribute 'append' of 'list' object is unsafe");
}

static void test_input_is_checked(void) {
  rung_chat_input input = plain();
  expect("{{ bos_token is defined }}{{ tools }}{{ documents }}{{ add_generation_prompt }}", &input, RUNG_OK,
         "FalseNoneNoneTrue");
  input.messages = "[{]";
  expect("x", &input, RUNG_CORRUPT_FILE, "chat template: messages: JSON");
  input = plain();
  input.variables = "[]";
  expect("x", &input, RUNG_INVALID_ARGUMENT, "variables: a JSON object expected");
  input.variables = "{\"add_generation_prompt\": 5, \"q\": 1e400}";
  expect("x", &input, RUNG_UNSUPPORTED, "too large");
  input.variables = "{\"add_generation_prompt\": 5, \"bos_token\": \"V\"}";
  input.bos_token = "B";
  expect("{{ add_generation_prompt }}{{ bos_token }}", &input, RUNG_OK, "5V");
  input.size = 3;
  expect("x", &input, RUNG_INVALID_ARGUMENT, "input.size is 3");
  input = plain();
  input.messages = NULL;
  expect("x", &input, RUNG_INVALID_ARGUMENT, "messages are required");
  input = plain();
  input.depth = 1000000;
  expect("x", &input, RUNG_INVALID_ARGUMENT, "depth");
  rung_error error;
  rung_chat_template *t = NULL;
  CHECK_STATUS(rung_chat_template_create(host, "\xFF", 1, &error, &t), RUNG_CORRUPT_FILE);
}

static void test_steps_end_everything(void) {
  static const char *const endless[] = {
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{% set x = 'a' * 1000000 %}{% for a in range(100000) %}{{ x.count('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab') }}{% "
      "endfor %}",
      "{% set x = 'ab' * 300000 %}{{ x.replace('a' * 100000 + 'c', '') }}{% for a in range(9999) %}{{ x | upper | "
      "length }}{% endfor %}",
      "{% set x = range(99999) | list %}{% for a in x %}{{ x == x }}{% endfor %}",
      "{% set x = range(99999) | list %}{% for a in x %}{{ -1 in x }}{% endfor %}",
      "{% set ns = namespace(s='') %}{% for a in range(100000) %}{% for b in range(1000) %}{% set ns.s = ns.s %}{% "
      "endfor %}{% endfor %}"};
  for (size_t i = 0; i < RUNG_COUNT(endless); i++) {
    rung_chat_input input = plain();
    input.steps = 2000000;
    expect(endless[i], &input, RUNG_OUT_OF_RANGE, "steps");
  }
}

static void test_memory_is_bounded(void) {
  static const char *const large[] = {
      "{{ 'a' * 100000000000 }}",
      "{{ [1] * 10000000000 }}",
      "{{ 'a'.center(99999999999) }}",
      "{{ '%100000d' % 1 }}",
      "{% set ns = namespace(s='x') %}{% for a in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for a in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% for a in range(100000) %}{{ 'x' * 10000 }}{% endfor %}",
      "{{ [1] | batch(99999999999, 2) | list }}"};
  for (size_t i = 0; i < RUNG_COUNT(large); i++) {
    rung_chat_input input = plain();
    rung_error error = {0};
    char *text = NULL;
    size_t bytes = 0;
    input.bytes = 1 << 20;
    const rung_status status = render(large[i], &input, &error, &text, &bytes);
    CHECK(status == RUNG_OVER_BUDGET || status == RUNG_UNSUPPORTED || status == RUNG_OVERFLOW);
    if (!status) fprintf(stderr, "%s\n", large[i]);
    rung_text_free(host, text, bytes);
  }
}

static void test_depth_is_bounded(void) {
  rung_chat_input input = plain();
  expect("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", &input, RUNG_OUT_OF_RANGE, "nested more than 1000 deep");
  expect("{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
         &input, RUNG_OUT_OF_RANGE, "nested more than");
  expect(
      "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x == [ns.x] }}",
      &input, RUNG_OUT_OF_RANGE, "nested more than");
  expect(
      "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}",
      &input, RUNG_OUT_OF_RANGE, "nested more than");
  expect("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", &input, RUNG_OUT_OF_RANGE, "nested more than");
  input.depth = 4000;
  expect("{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}", &input, RUNG_OUT_OF_RANGE,
         "nested more than 4000 deep");
  enum { DEEP = 100000 };
  char *source = malloc(DEEP + 64);
  static const char opening[] = "([{-";
  for (const char *c = opening; *c; c++) {
    memset(source, *c, DEEP);
    memcpy(source, "{{ ", 3);
    strcpy(source + DEEP, " }}");
    expect(source, &input, RUNG_CORRUPT_FILE, "deep");
  }
  source[0] = 0;
  char *at = source + sprintf(source, "{{ 1");
  for (int i = 0; i < 5000; i++) at += sprintf(at, "+1");
  sprintf(at, " }}");
  expect(source, &input, RUNG_CORRUPT_FILE, "levels");
  at = source;
  for (int i = 0; i < 5000; i++) at += sprintf(at, "{%%if 1%%}");
  expect(source, &input, RUNG_CORRUPT_FILE, "deep");
  free(source);
}

/* Everything that allocates: statements, values of each kind, filters, formats. */
static const char mixed[] =
    "{% macro m(a, b=2) %}{{ varargs }}{{ kwargs }}{{ caller() if caller }}[{{ a }}{{ b }}]{% endmacro %}"
    "{% set ns = namespace(x=1) %}{% for x in messages recursive %}{% set ns.x = ns.x + 1 %}{{ loop.nextitem }}"
    "{{ x | tojson(indent=2, sort_keys=true) }}{{ loop([]) }}{% else %}e{% endfor %}{% call m(1, 2, 3, z=4) %}c{% "
    "endcall %}"
    "{% filter upper %}{{ 'é' ~ ns.x ~ 1.5 }}{% endfilter %}{{ [3, 1, 'x'] | map('string') | sort | join(',') }}"
    "{{ messages | selectattr('role', 'eq', 'user') | map(attribute='content') | list }}{{ {'a': {'b': (1,)}} }}"
    "{{ '{:>5} {}'.format(1, 2.5) }}{{ '%05.2f' % 2.5 }}{{ 'a b c'.split()[::-1] }}{{ strftime_now('%Y') | length }}"
    "{{ {'b': 1, 'a': 2} | dictsort }}{{ [1, 2, 3] | batch(2) | list }}{{ ('<' | safe) + '>' }}{{ 'abc' | indent }}"
    "{{ [1, 2] | groupby(0) | length if false }}{% with q = 5 %}{{ q | round(1) }}{{ 2.345 | round(2) }}{% endwith %}"
    "{% set z %}{{ messages[0].content.title().center(9, '*') }}{% endset %}{{ z }}{{ cycler(1, 2).next() }}{{ "
    "dict(a=1).items() }}";

static void test_every_allocation_may_fail(void) {
  const rung_chat_input input = plain();
  rung_error error = {0};
  char *want = NULL, *text = NULL;
  size_t want_bytes = 0, bytes = 0;
  CHECK_OK(render(mixed, &input, &error, &want, &want_bytes));
  if (error.status) fprintf(stderr, "%s\n", error.message);
  const uint64_t before = rung_host_memory(host).host;
  bool done = false;
  for (int64_t n = 1; n < 4000 && !done; n++) {
    test_fault fault = {.kind = RUNG_FAULT_ALLOC, .at = n};
    rung_host_set_fault(host, test_fault_hit, &fault);
    const rung_status status = render(mixed, &input, &error, &text, &bytes);
    rung_host_set_fault(host, NULL, NULL);
    if (status) {
      CHECK_STATUS(status, RUNG_OUT_OF_MEMORY);
      CHECK(error.message[0] != 0);
    } else {
      done = true;
      CHECK(bytes == want_bytes && memcmp(text, want, bytes) == 0);
      rung_text_free(host, text, bytes);
    }
    CHECK_EQ_I64(rung_host_memory(host).host, before);
  }
  CHECK(done);
  rung_text_free(host, want, want_bytes);
}

typedef struct shared {
  const rung_chat_template *t;
  const char *want;
  size_t bytes;
  int wrong;
} shared;

static void render_often(void *argument) {
  shared *s = argument;
  const rung_chat_input input = plain();
  for (int i = 0; i < 200; i++) {
    char *text = NULL;
    size_t bytes = 0;
    if (rung_chat_render(s->t, &input, NULL, &text, &bytes) || bytes != s->bytes || memcmp(text, s->want, bytes) != 0)
      s->wrong++;
    rung_text_free(host, text, bytes);
  }
}

static void test_threads_share_a_template(void) {
  enum { THREADS = 4 };
  const rung_chat_input input = plain();
  rung_chat_template *t = NULL;
  char *want = NULL;
  size_t bytes = 0;
  CHECK_OK(rung_chat_template_create(host, mixed, strlen(mixed), NULL, &t));
  CHECK_OK(rung_chat_render(t, &input, NULL, &want, &bytes));
  rung_thread thread[THREADS] = {0};
  shared s[THREADS];
  for (int i = 0; i < THREADS; i++) {
    s[i] = (shared){t, want, bytes, 0};
    CHECK_OK(rung_thread_start(&thread[i], host, render_often, &s[i], NULL));
  }
  for (int i = 0; i < THREADS; i++) {
    rung_thread_join(&thread[i]);
    CHECK_EQ_I64(s[i].wrong, 0);
  }
  rung_text_free(host, want, bytes);
  rung_chat_template_release(t);
}

int main(void) {
  CHECK_OK(rung_host_create(NULL, NULL, &host));
  RUN(test_messages_name_line_and_construct);
  RUN(test_input_is_checked);
  RUN(test_steps_end_everything);
  RUN(test_memory_is_bounded);
  RUN(test_depth_is_bounded);
  RUN(test_every_allocation_may_fail);
  RUN(test_threads_share_a_template);
  rung_host_release(host);
  return TEST_END();
}
