/* SPDX-License-Identifier: MIT
 * The process-wide pool: a board of open jobs that idle helpers look at.
 *
 * All of a job's changing state is one 64-bit word, so that joining a job and taking its next task is one
 * compare-and-swap, and no lock is met while helpers are awake:
 *
 *   63 waiter | 62..54 active helpers | 53..45 most helpers | 44..36 joined | 35..18 left at back | 17..0 left at front
 *
 * Tasks are two ranges, each taken from its beginning: the caller and every second helper go through the front, the
 * others through the back, and then help each other out. Steps number their tasks along rows, so a thread meets, step
 * after step, the rows that it has just written: with two threads taking turns instead, half of all lines come from the
 * other core's cache (docs/kernels.md: what that costs).
 *
 * A job can be joined while tasks are left and joined < most. That is decided on the word alone, and a successful swap
 * proves that it still was so; only then are the other fields read, which cannot change while a helper is active. Slots
 * of the board are never freed: a helper that looks at an old job sees no more than a word that cannot be joined. */
#define _GNU_SOURCE
#include "base/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

enum {
  SLOTS = 64,           /* jobs open at once; more run in their callers alone */
  MOST_HELPERS = 500,   /* fits 9 bits */
  MOST_CHUNKS = 260000, /* half of them fit 18 bits, above NONE_LEFT */
  NONE_LEFT = 512,      /* what a range counts down to: every thread may count one further */
  SPIN = 20000,         /* pauses before a helper parks: about 0.3 ms */
  YIELD_EVERY = 1024    /* pauses between offers of the processor to somebody else */
};

#define RANGE_SHIFT 18
#define JOINED_SHIFT 36
#define MOST_SHIFT 45
#define ACTIVE_SHIFT 54
#define JOINED_ONE ((uint64_t)1 << JOINED_SHIFT)
#define ACTIVE_ONE ((uint64_t)1 << ACTIVE_SHIFT)
#define WAITER ((uint64_t)1 << 63)

static uint64_t range_one(int range) { return (uint64_t)1 << (range * RANGE_SHIFT); }
/* Chunks left in the front (0) or the back (1). */
static int64_t left_of(uint64_t word, int range) {
  const int64_t left = (int64_t)(word >> (range * RANGE_SHIFT) & 0x3FFFF) - NONE_LEFT;
  return left > 0 ? left : 0;
}
static uint64_t joined_of(uint64_t word) { return word >> JOINED_SHIFT & 0x1FF; }
static uint64_t most_of(uint64_t word) { return word >> MOST_SHIFT & 0x1FF; }
static uint64_t active_of(uint64_t word) { return word >> ACTIVE_SHIFT & 0x1FF; }
static bool joinable(uint64_t word) {
  return joined_of(word) < most_of(word) && (left_of(word, 0) || left_of(word, 1));
}
/* Where a thread goes on: in its own range while anything is left there. */
static int range_for(uint64_t word, int thread) {
  const int own = thread & 1;
  return left_of(word, own) ? own : !own;
}

/* One job: a line of its own, and its neighbour, which some processors fetch along. */
typedef struct slot {
  _Alignas(128) _Atomic uint64_t word;
  rung_task_fn *fn;
  void *self;
  int64_t tasks, grain; /* a chunk is `grain` tasks: chunks are what the word counts */
  int64_t end[2];       /* the chunk behind the front and behind the back */
  atomic_uint done;     /* futex of a caller that waits */
} slot;

struct rung_pool {
  slot slots[SLOTS];
  _Alignas(128) _Atomic uint64_t free_slots; /* one bit each; callers only */
  _Alignas(128) atomic_int open_slots;       /* helpers look at the first so many; grows only */
  atomic_int started, parked;
  atomic_bool stop, forked;
  atomic_uint epoch;                  /* futex of parked helpers */
  _Alignas(128) pthread_mutex_t lock; /* starting and ending helpers */
  int wanted;
  rung_thread helpers[MOST_HELPERS];
};

static rung_pool shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .free_slots = UINT64_MAX};

static void futex_wait(atomic_uint *at, unsigned seen) {
  syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}
static void futex_wake(atomic_uint *at, int count) { syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0); }

/* ---- working on a job ---- */

/* Runs chunks, `chunk` being claimed already, until none is left. */
static void work(slot *s, int64_t chunk, int thread) {
  for (;;) {
    const int64_t first = chunk * s->grain;
    const int64_t end = s->tasks - first < s->grain ? s->tasks : first + s->grain;
    for (int64_t task = first; task < end; task++) s->fn(s->self, task, thread);
    int64_t left = 0;
    int range = 0;
    while (!left) {
      /* Looking first leaves the line shared when nothing is left, which is the common end of a short job. */
      uint64_t word = atomic_load_explicit(&s->word, memory_order_relaxed);
      range = range_for(word, thread);
      if (!left_of(word, range)) return;
      word = atomic_fetch_sub_explicit(&s->word, range_one(range), memory_order_acq_rel);
      left = left_of(word, range);
    }
    chunk = s->end[range] - left;
  }
}

/* Joins the job of a slot if it is open and works on it; false if it is not. */
static bool help(slot *s) {
  uint64_t word = atomic_load(&s->word);
  int thread, range;
  do {
    if (!joinable(word)) return false;
    thread = (int)joined_of(word) + 1;
    range = range_for(word, thread);
  } while (!atomic_compare_exchange_weak(&s->word, &word, word + JOINED_ONE + ACTIVE_ONE - range_one(range)));
  work(s, s->end[range] - left_of(word, range), thread);
  word = atomic_fetch_sub_explicit(&s->word, ACTIVE_ONE, memory_order_acq_rel);
  if (active_of(word) == 1 && (word & WAITER)) {
    atomic_fetch_add(&s->done, 1);
    futex_wake(&s->done, 1);
  }
  return true;
}

/* Waits until no helper is active. All chunks are claimed, so none can join any more. */
static void wait_idle(slot *s) {
  for (int i = 1; i <= SPIN; i++) {
    if (!active_of(atomic_load_explicit(&s->word, memory_order_acquire))) return;
    rung_pause();
    if (i % YIELD_EVERY == 0) sched_yield();
  }
  for (;;) {
    const unsigned seen = atomic_load(&s->done);
    if (!active_of(atomic_fetch_or(&s->word, WAITER))) return;
    futex_wait(&s->done, seen);
    if (!active_of(atomic_load_explicit(&s->word, memory_order_acquire))) return;
  }
}

/* ---- helpers ---- */

static bool help_any(rung_pool *pool) {
  const int count = atomic_load_explicit(&pool->open_slots, memory_order_acquire);
  bool helped = false;
  for (int i = 0; i < count; i++) helped |= help(&pool->slots[i]);
  return helped;
}

/* Sleeps until a caller opens a job. The count is raised before the last look at the board, and callers open the job
 * before they look at the count: one of the two sees the other. */
static void park(rung_pool *pool) {
  const unsigned seen = atomic_load(&pool->epoch);
  atomic_fetch_add(&pool->parked, 1);
  if (!help_any(pool) && !atomic_load(&pool->stop)) futex_wait(&pool->epoch, seen);
  atomic_fetch_sub(&pool->parked, 1);
}

static void helper_main(void *self) {
  rung_pool *pool = (rung_pool *)self;
  while (!atomic_load_explicit(&pool->stop, memory_order_relaxed)) {
    for (int i = 1; i <= SPIN; i++) {
      if (help_any(pool)) i = 0;
      rung_pause();
      if (i % YIELD_EVERY == YIELD_EVERY - 1) {
        if (atomic_load_explicit(&pool->stop, memory_order_relaxed)) return;
        sched_yield();
      }
    }
    park(pool);
  }
}

/* Wakes as many parked helpers as a new job could use beyond those that are awake and not busy elsewhere. */
static void wake(rung_pool *pool, const slot *mine, int parked, int want) {
  int spare = atomic_load(&pool->started) - parked;
  const int count = atomic_load(&pool->open_slots);
  for (int i = 0; i < count; i++)
    if (&pool->slots[i] != mine)
      spare -= (int)active_of(atomic_load_explicit(&pool->slots[i].word, memory_order_relaxed));
  if (spare > 0) want -= spare;
  if (want <= 0) return;
  atomic_fetch_add(&pool->epoch, 1);
  futex_wake(&pool->epoch, want);
}

/* ---- callers ---- */

static void run_alone(int64_t tasks, rung_task_fn *fn, void *self) {
  for (int64_t task = 0; task < tasks; task++) fn(self, task, 0);
}

/* The lowest free slot, so that helpers have few to look at; NULL if all are taken. */
static slot *take_slot(rung_pool *pool) {
  uint64_t mask = atomic_load_explicit(&pool->free_slots, memory_order_relaxed);
  do {
    if (!mask) return NULL;
  } while (!atomic_compare_exchange_weak_explicit(&pool->free_slots, &mask, mask & (mask - 1), memory_order_acquire,
                                                  memory_order_relaxed));
  const int index = rung_lowest_bit(mask);
  int open = atomic_load_explicit(&pool->open_slots, memory_order_relaxed);
  while (open <= index && !atomic_compare_exchange_weak(&pool->open_slots, &open, index + 1)) {
  }
  return &pool->slots[index];
}

static void give_slot(rung_pool *pool, const slot *s) {
  atomic_fetch_or_explicit(&pool->free_slots, (uint64_t)1 << (s - pool->slots), memory_order_release);
}

static void start_helpers(rung_pool *pool, rung_host *host);

void rung_pool_run(rung_pool *pool, int max_threads, int64_t tasks, rung_task_fn *fn, void *self) {
  if (RUNG_UNLIKELY(atomic_load_explicit(&pool->forked, memory_order_relaxed))) start_helpers(pool, NULL);
  const int started = atomic_load_explicit(&pool->started, memory_order_relaxed);
  int most = max_threads - 1 < started ? max_threads - 1 : started;
  if (tasks - 1 < most) most = (int)(tasks - 1);
  slot *s = most > 0 ? take_slot(pool) : NULL;
  if (!s) {
    run_alone(tasks, fn, self);
    return;
  }
  const int64_t grain = (tasks - 1) / MOST_CHUNKS + 1;
  s->fn = fn;
  s->self = self;
  s->tasks = tasks;
  s->grain = grain;
  s->end[1] = (tasks - 1) / grain + 1;
  s->end[0] = rung_pool_front(s->end[1]);
  /* The caller has taken the first chunk already. */
  const uint64_t front = (uint64_t)(NONE_LEFT + s->end[0] - 1), back = (uint64_t)(NONE_LEFT + s->end[1] - s->end[0]);
  atomic_exchange(&s->word, (uint64_t)most << MOST_SHIFT | back << RANGE_SHIFT | front);
  const int parked = atomic_load(&pool->parked);
  if (RUNG_UNLIKELY(parked > 0)) wake(pool, s, parked, most);
  work(s, 0, 0);
  wait_idle(s);
  give_slot(pool, s);
}

/* ---- starting, ending, fork ---- */

static void start_helpers(rung_pool *pool, rung_host *host) {
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->forked, false);
  rung_error error;
  for (int n = atomic_load(&pool->started); n < pool->wanted; n++) {
    if (rung_thread_start(&pool->helpers[n], host, helper_main, pool, &error)) {
      rung_host_log(host, RUNG_LOG_WARNING, "pool: %d of %d helpers: %s", n, pool->wanted, error.message);
      break;
    }
    atomic_store(&pool->started, n + 1);
  }
  pthread_mutex_unlock(&pool->lock);
}

void rung_pool_stop(rung_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->stop, true);
  atomic_fetch_add(&pool->epoch, 1);
  futex_wake(&pool->epoch, MOST_HELPERS);
  const int count = atomic_load(&pool->started);
  atomic_store(&pool->started, 0);
  for (int i = 0; i < count; i++) rung_thread_join(&pool->helpers[i]);
  atomic_store(&pool->stop, false);
  pthread_mutex_unlock(&pool->lock);
}

/* The lock is held over a fork, so that the child finds it in a known state. */
static void before_fork(void) { pthread_mutex_lock(&shared.lock); }
static void after_fork_parent(void) { pthread_mutex_unlock(&shared.lock); }
/* Helpers and other callers are gone: the board is empty and helpers are started again by the next run. */
static void after_fork_child(void) {
  for (int i = 0; i < SLOTS; i++) atomic_store(&shared.slots[i].word, 0);
  atomic_store(&shared.free_slots, UINT64_MAX);
  atomic_store(&shared.started, 0);
  atomic_store(&shared.parked, 0);
  atomic_store(&shared.forked, true);
  pthread_mutex_unlock(&shared.lock);
}

static void set_up(void) {
  shared.wanted = rung_pool_default_threads(NULL) - 1;
  if (shared.wanted > MOST_HELPERS) shared.wanted = MOST_HELPERS;
  (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

rung_pool *rung_pool_shared(rung_host *host) {
  static rung_once once;
  rung_once_run(&once, set_up);
  start_helpers(&shared, host);
  return &shared;
}

int rung_pool_ensure(rung_pool *pool, rung_host *host, int threads) {
  const int wanted = threads - 1 < MOST_HELPERS ? threads - 1 : MOST_HELPERS;
  pthread_mutex_lock(&pool->lock);
  if (wanted > pool->wanted) pool->wanted = wanted;
  pthread_mutex_unlock(&pool->lock);
  if (atomic_load(&pool->started) < wanted) start_helpers(pool, host);
  return rung_pool_threads(pool);
}

int rung_pool_threads(const rung_pool *pool) { return 1 + atomic_load_explicit(&pool->started, memory_order_relaxed); }

/* Without this a helper would be left running code that dlclose has unmapped. */
static RUNG_AT_UNLOAD void end_helpers(void) {
  if (atomic_load(&shared.started)) rung_pool_stop(&shared);
}
