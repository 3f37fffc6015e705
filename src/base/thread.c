/* SPDX-License-Identifier: MIT
 * Mutexes, conditions, once and threads over POSIX, and the floating-point state of a thread. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(rung_mutex), "rung_mutex is too small");
_Static_assert(sizeof(pthread_cond_t) <= sizeof(rung_cond), "rung_cond is too small");
_Static_assert(sizeof(pthread_once_t) <= sizeof(rung_once), "rung_once is too small");
_Static_assert(sizeof(pthread_t) <= sizeof(void *), "rung_thread is too small");

bool rung_mutex_init(rung_mutex *mutex) { return pthread_mutex_init((pthread_mutex_t *)mutex->opaque, NULL) == 0; }
void rung_mutex_finish(rung_mutex *mutex) { pthread_mutex_destroy((pthread_mutex_t *)mutex->opaque); }
void rung_mutex_lock(rung_mutex *mutex) { pthread_mutex_lock((pthread_mutex_t *)mutex->opaque); }
void rung_mutex_unlock(rung_mutex *mutex) { pthread_mutex_unlock((pthread_mutex_t *)mutex->opaque); }

bool rung_cond_init(rung_cond *cond) {
  pthread_condattr_t attributes;
  if (pthread_condattr_init(&attributes)) return false;
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  const bool done = pthread_cond_init((pthread_cond_t *)cond->opaque, &attributes) == 0;
  pthread_condattr_destroy(&attributes);
  return done;
}
void rung_cond_finish(rung_cond *cond) { pthread_cond_destroy((pthread_cond_t *)cond->opaque); }
void rung_cond_wait(rung_cond *cond, rung_mutex *mutex) {
  pthread_cond_wait((pthread_cond_t *)cond->opaque, (pthread_mutex_t *)mutex->opaque);
}
bool rung_cond_wait_for(rung_cond *cond, rung_mutex *mutex, uint64_t nanoseconds) {
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  const uint64_t sum = (uint64_t)end.tv_nsec + nanoseconds % 1000000000u;
  end.tv_sec += (time_t)(nanoseconds / 1000000000u + sum / 1000000000u);
  end.tv_nsec = (long)(sum % 1000000000u);
  return pthread_cond_timedwait((pthread_cond_t *)cond->opaque, (pthread_mutex_t *)mutex->opaque, &end) != ETIMEDOUT;
}
void rung_cond_signal(rung_cond *cond) { pthread_cond_signal((pthread_cond_t *)cond->opaque); }
void rung_cond_broadcast(rung_cond *cond) { pthread_cond_broadcast((pthread_cond_t *)cond->opaque); }

void rung_once_run(rung_once *once, void (*fn)(void)) { pthread_once((pthread_once_t *)once->opaque, fn); }

static void *thread_main(void *self) {
  rung_thread *thread = (rung_thread *)self;
  rung_float_state_set();
  thread->fn(thread->self);
  return NULL;
}

rung_status rung_thread_start(rung_thread *thread, rung_host *host, void (*fn)(void *self), void *self,
                              rung_error *error) {
  *thread = (rung_thread){.fn = fn, .self = self};
  /* The program's signals belong to the program's threads. */
  sigset_t all, old;
  sigfillset(&all);
  pthread_t id;
  memset(&id, 0, sizeof id);
  int failed = EAGAIN;
  if (!rung_host_fault(host, RUNG_FAULT_THREAD)) {
    pthread_sigmask(SIG_SETMASK, &all, &old);
    failed = pthread_create(&id, NULL, thread_main, thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
  }
  if (failed) return rung_fail(error, RUNG_SYSTEM, "a thread could not be started: %s", strerror(failed));
  memcpy(&thread->opaque[0], &id, sizeof id);
  thread->opaque[1] = thread; /* started */
  return RUNG_OK;
}

void rung_thread_join(rung_thread *thread) {
  if (!thread || !thread->opaque[1]) return;
  pthread_t id;
  memcpy(&id, &thread->opaque[0], sizeof id);
  pthread_join(id, NULL);
  thread->opaque[1] = NULL;
}

void rung_thread_yield(void) { sched_yield(); }

#if defined(__SSE2__)
enum { FLUSH_BITS = 0x8040 }; /* results (bit 15) and operands (bit 6) */
uint64_t rung_float_state_set(void) {
  const unsigned state = _mm_getcsr();
  if ((state & FLUSH_BITS) != FLUSH_BITS) _mm_setcsr(state | FLUSH_BITS);
  return state;
}
void rung_float_state_restore(uint64_t state) {
  if (_mm_getcsr() != (unsigned)state) _mm_setcsr((unsigned)state);
}
#elif defined(__aarch64__)
enum { FLUSH_BITS = 1 << 24 }; /* FZ: results and operands */
uint64_t rung_float_state_set(void) {
  uint64_t state;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state));
  if (!(state & FLUSH_BITS)) __asm__ volatile("msr fpcr, %0" : : "r"(state | FLUSH_BITS));
  return state;
}
void rung_float_state_restore(uint64_t state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }
#else
uint64_t rung_float_state_set(void) { return 0; }
void rung_float_state_restore(uint64_t state) { (void)state; }
#endif
