/* SPDX-License-Identifier: MIT
 * Ctrl-C: the handler does nothing but two stores. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "session.h"

static volatile sig_atomic_t hit;
static _Atomic(rung_context *) target;

static void handle(int number) {
  (void)number;
  hit = 1;
  /* Cancelling is one store into a lock-free flag of the context, which the handler may do. */
  rung_context_cancel(atomic_load(&target));
}

void cli_interrupt_install(void) {
  /* No restart: a read of standard input ends as well. Reset: the second Ctrl-C kills. */
  struct sigaction action = {.sa_handler = handle, .sa_flags = (int)SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  (void)sigaction(SIGINT, &action, NULL);
}

void cli_interrupt_target(rung_context *context) { atomic_store(&target, context); }
bool cli_interrupted(void) { return hit != 0; }
void cli_interrupt_clear(void) {
  hit = 0;
  cli_interrupt_install();
}
