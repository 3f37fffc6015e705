/* SPDX-License-Identifier: MIT
 * Tokens chosen on the CUDA device: the op at rows of every kind and size, generators beside those whose logits come to
 * the host, and what a step of decoding moves. Skipped where there is no GPU. */
#include "backends/cuda/device.h"
#include "cts/sample_device.h"
#include "cuda_device.h"
#include "tiny_world.h"

enum { SLOTS = 3, CONTEXT = 256 };

/* Sums over a whole row are added in another order than on the host: a token may only be another where a random number
 * or top-p lies within that rounding, some 1e-13, of its edge. None does here. */
static void test_op(void) {
  static const struct {
    int64_t vocabulary;
    int rounds;
  } of[] = {{1, 5},     {37, 30},    {128, 20},   {1024, 30},  {1025, 20},
            {5000, 30}, {32000, 20}, {128256, 8}, {262144, 4}, {300001, 3}};
  for (size_t i = 0; i < RUNG_COUNT(of); i++)
    CHECK_EQ_I64(sample_on_device("cuda", of[i].vocabulary, of[i].rounds, 40 + i), 0);
}

static void test_shares(void) {
  sample_shares("cuda", 0.7);
  sample_shares("cuda", 3);
}

static bool open_on_device(tiny *t, const char *path) {
  const rung_source source = rung_source_path(path);
  rung_model_options mo = rung_model_options_default();
  mo.quant = RUNG_QUANT_EXACT;
  *t = (tiny){0};
  rung_status s = rung_host_create(NULL, &t->error, &t->host);
  if (!s) s = rung_device_create(t->host, "cuda", NULL, &t->error, &t->device);
  if (!s) s = rung_model_open(t->device, &source, &mo, &t->error, &t->model);
  test_state.checks++;
  if (s) TEST_FAIL_("%s: %s", path, t->error.message);
  if (!s) rung_model_get_info(t->model, &t->info);
  return !s;
}

static rung_generator *open_generator(tiny *t, rung_choose choose, int32_t slots) {
  rung_generate_options o = tiny_options(slots, CONTEXT, 64);
  o.choose = choose;
  return tiny_generator(t, &o);
}

/* Texts of slots with their own seeds, begun anew until there are enough tokens. Where the two differ once they go on
 * apart: this counts texts that differ. */
static int compare_texts(tiny *t, double temperature, int tokens, int *out_compared) {
  rung_generator *g[2] = {open_generator(t, RUNG_CHOOSE_HOST, SLOTS), open_generator(t, RUNG_CHOOSE_AUTO, SLOTS)};
  int differ = 0;
  *out_compared = 0;
  for (int round = 0; g[0] && g[1] && *out_compared < tokens; round++) {
    static tiny_texts texts[2];
    memset(texts, 0, sizeof texts);
    for (int way = 0; way < 2; way++)
      for (int32_t s = 0; s < SLOTS; s++) {
        rung_sample_options o = rung_sample_options_default();
        o.temperature = temperature;
        o.seed = (uint64_t)(round * SLOTS + s);
        if (s == 1) o.top_k = 0, o.min_p = 0;
        if (s == 2) o.top_k = 0, o.min_p = 0, o.top_p = 1;
        CHECK_OK(rung_generator_reset(g[way], s));
        CHECK_OK(rung_generator_sampling(g[way], s, &o));
        CHECK_OK(tiny_prompt(t, g[way], s, round * SLOTS + s, 5 + round % 7));
      }
    for (int way = 0; way < 2; way++) CHECK(tiny_go_on(g[way], (1 << SLOTS) - 1, TINY_TOKENS, &texts[way]));
    differ += memcmp(&texts[0], &texts[1], sizeof texts[0]) != 0;
    for (int s = 0; s < SLOTS; s++) *out_compared += texts[1].count[s];
    if (round > tokens) break; /* texts that end at once */
  }
  rung_generator_destroy(g[0]);
  rung_generator_destroy(g[1]);
  return differ;
}

static void test_texts(void) {
  for (size_t f = 0; f < RUNG_COUNT(tiny_paths); f++) {
    tiny t;
    int compared = 0;
    if (open_on_device(&t, tiny_paths[f])) {
      CHECK_EQ_I64(compare_texts(&t, 0, 300, &compared), 0);
      CHECK(compared >= 300);
      CHECK_EQ_I64(compare_texts(&t, 1, 1000, &compared), 0);
      CHECK(compared >= 1000);
    }
    tiny_close(&t);
  }
}

/* Greedy tokens are the first largest of the logits that come out of the same text. */
static void test_largest(void) {
  tiny t;
  if (open_on_device(&t, tiny_paths[0])) {
    rung_generator *g = open_generator(&t, RUNG_CHOOSE_AUTO, 2);
    tiny_greedy(g, 1);
    CHECK_OK(tiny_prompt(&t, g, 0, 3, 12));
    int32_t ids[CONTEXT];
    int n = 0;
    while (n < 12) ids[n] = tiny_id(&t, 3, n), n++;
    for (int i = 0; i < 40; i++) {
      rung_token token;
      size_t count = 0;
      const float *logits = NULL;
      CHECK_OK(rung_generator_step(g, &token, &count, NULL));
      if (!count) break;
      CHECK_OK(rung_generator_reset(g, 1));
      CHECK_OK(rung_generator_run(g, (const rung_rows[]){{1, n}}, 1, ids, (const int32_t[]){n - 1}, 1, &logits));
      if (!logits) break;
      /* Rows of one and of several have other sums: what is chosen is at the top within that. */
      const int32_t best = rung_sample_greedy(logits, t.info.vocabulary);
      CHECK(logits[token.id] >= logits[best] - 1e-2f * (1 + fabsf(logits[best])));
      ids[n++] = token.id;
    }
    CHECK(n > 15);
    rung_generator_destroy(g);
  }
  tiny_close(&t);
}

static void test_moved(void) {
  for (int choose = 0; choose < 2; choose++) {
    tiny t;
    if (open_on_device(&t, tiny_paths[0])) {
      const rung_cuda *cuda = t.device->self;
      const size_t row = (size_t)t.info.vocabulary * sizeof(float);
      rung_generator *g = open_generator(&t, choose ? RUNG_CHOOSE_AUTO : RUNG_CHOOSE_HOST, 1);
      uint64_t start = 0;
      CHECK_OK(tiny_prompt(&t, g, 0, 0, 9));
      for (int i = 0; i < 20; i++) {
        rung_token token;
        size_t count = 0;
        const uint64_t in = cuda->counters.to_device, out = cuda->counters.to_host;
        if (!i) start = out;
        CHECK_OK(rung_generator_step(g, &token, &count, NULL));
        if (!count || token.end) break;
        /* Five inputs of a few bytes, each at an aligned place; neighbours travel with the room between them. */
        if (i) CHECK(cuda->counters.to_device - in <= 5 * t.device->target->align);
        /* One step may be on its way ahead of the token that is handed out. */
        const uint64_t tokens = (cuda->counters.to_host - start) / sizeof(int32_t);
        if (choose) CHECK(tokens >= (uint64_t)i + 1 && tokens <= (uint64_t)i + 2);
        if (!choose) CHECK_EQ_I64(cuda->counters.to_host - out, row);
      }
      rung_generator_destroy(g);
    }
    tiny_close(&t);
  }
}

/* ---- kernels beside it, at sizes that the op table's cases do not have */

/* The same graph on both devices, a few runs one after another; outputs of `far` f32 units in the last place apart, or of
 * sums by a share of the largest. */
static void beside_reference(const char *text, double relative, int ulps) {
  world w[2];
  const world_options o[2] = {{.device = "cuda", .seed = 99}, {.device = "ref", .seed = 99}};
  const bool first = world_open(&w[0], text, &o[0]), both = world_open(&w[1], text, &o[1]) && first;
  for (int run = 0; both && run < 3; run++) {
    for (int d = 0; d < 2; d++) {
      uint64_t seed = 17 + (uint64_t)run;
      const rung_plan *plan = w[d].program->plan;
      for (uint32_t i = 0; i < plan->inputs; i++) {
        int64_t extent[RUNG_MAX_RANK], n = 1;
        void *to = NULL;
        for (int a = 0; a < plan->input[i].type.rank; a++) {
          CHECK(rung_dims_is_constant(plan->dims, plan->input[i].type.extent[a], &extent[a]));
          n *= extent[a];
        }
        CHECK_OK(rung_context_input(w[d].context, (int)i, extent, &to));
        for (int64_t k = 0; to && k < n; k++) {
          if (plan->input[i].type.type == RUNG_TYPE_F32) ((float *)to)[k] = (float)test_below(&seed, 4001) * 1e-3f - 2;
          if (plan->input[i].type.type == RUNG_TYPE_I32) ((int32_t *)to)[k] = (int32_t)test_below(&seed, 20001) - 10000;
          if (plan->input[i].type.type == RUNG_TYPE_I64) ((int64_t *)to)[k] = (int64_t)test_random(&seed);
        }
      }
      CHECK(world_run(&w[d]));
    }
    const rung_plan *plan = w[0].program->plan;
    for (uint32_t v = 0; v < plan->variants; v++) CHECK(strncmp(plan->variant[v].kernel->name, "host_", 5) != 0);
    for (uint32_t i = 0; i < plan->outputs; i++) {
      const rung_tensor a = world_output(&w[0], (int)i), b = world_output(&w[1], (int)i);
      if (!a.data || !b.data) break;
      if (a.type != RUNG_TYPE_F32) {
        CHECK(memcmp(a.data, b.data, (size_t)rung_tensor_bytes(&b)) == 0);
        continue;
      }
      double largest = 0;
      int64_t differ = 0;
      const float *x = a.data, *y = b.data;
      for (int64_t k = 0; k < world_count(&b); k++) largest = fmax(largest, fabs((double)y[k]));
      for (int64_t k = 0; k < world_count(&b); k++) {
        const double ulp = ldexp(1, ilogb(fmax(fabs((double)y[k]), 0x1p-100)) - 23);
        differ += !(fabs((double)x[k] - (double)y[k]) <= ulps * ulp + relative * largest);
      }
      test_state.checks++;
      if (differ) TEST_FAIL_("output \"%s\": %lld differ", plan->output[i].name, (long long)differ);
    }
  }
  world_close(&w[0]);
  world_close(&w[1]);
}

static void test_random_numbers(void) {
  beside_reference(
      "rung 1\n%u = random_uniform {shape=[3,1001], low=-2, high=3, seed=7}\n"
      "%v = random_uniform {shape=[70001]}\noutput \"u\" %u\noutput \"v\" %v\n",
      0, 0);
  beside_reference(
      "rung 1\n%u = random_normal {shape=[3,1001]}\n%v = random_normal {shape=[70001], seed=3}\n"
      "output \"u\" %u\noutput \"v\" %v\n",
      0, 2);
}

static void test_lanes(void) {
  beside_reference(
      "rung 1\n%x = input {name=\"x\"} : f32[3,9001]\n%a, %b = top_k %x {k=40}\n"
      "%c, %d = top_k %x {k=7, largest=false}\n%e, %f = top_k %x {k=3, axis=0}\n"
      "output \"a\" %a\noutput \"b\" %b\noutput \"c\" %c\noutput \"d\" %d\noutput \"e\" %e\n"
      "output \"f\" %f\n",
      0, 0);
  beside_reference(
      "rung 1\n%x = input {name=\"x\"} : i32[5,3001]\n%y = input {name=\"y\"} : i64[700,3]\n"
      "%a = argmax %x\n%b = argmin %x {last=true}\n%c = argmin %y {axis=0}\n%d = reduce_sum %y {axes=[0]}\n"
      "%e = reduce_max %x {axes=[1]}\n%f = reduce_min %y {axes=[0,1]}\n%g = reduce_mean %x {axes=[0]}\n"
      "%h = reduce_prod %y {axes=[0]}\n%i = cumsum %y {axis=0, reverse=true}\n%j = cumprod %x\n"
      "output \"a\" %a\noutput \"b\" %b\noutput \"c\" %c\noutput \"d\" %d\noutput \"e\" %e\n"
      "output \"f\" %f\noutput \"g\" %g\noutput \"h\" %h\noutput \"i\" %i\noutput \"j\" %j\n",
      0, 0);
  beside_reference(
      "rung 1\n%x = input {name=\"x\"} : f32[4,5003]\n%a = cumsum %x\n%b = cumsum %x {exclusive=true, reverse=true}\n"
      "%c = cumsum %x {axis=0}\noutput \"a\" %a\noutput \"b\" %b\noutput \"c\" %c\n",
      1e-9, 1);
}

int main(void) {
  if (!cuda_is_here()) return 77;
  RUN(test_op);
  RUN(test_shares);
  RUN(test_texts);
  RUN(test_largest);
  RUN(test_moved);
  RUN(test_random_numbers);
  RUN(test_lanes);
  return TEST_END();
}
