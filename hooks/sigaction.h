/* SPDX-License-Identifier: MIT
 *
 * sigaction: first in line for our signals, invisibly.
 *
 * This module exports sigaction, __sigaction, signal, bsd_signal, ssignal,
 * sysv_signal, __sysv_signal, sigset, sigignore, siginterrupt and every other
 * function of libc that changes a signal's action (tests/check_exports compares
 * with libc's symbol table). For a claimed signal the application's wish is
 * stored and reported back truthfully while our handler stays with the kernel;
 * for every other signal the call passes through to libc untouched.
 *
 * What arrives and is not ours is handed on exactly as the kernel would have
 * done it: three-argument or plain handler, default, ignore, SA_NODEFER,
 * SA_RESETHAND, mask, alternate stack. Default action: the kernel's default is
 * restored and the handler returns, so that a fault repeats with its true
 * address and kill(2) is sent again. SIG_IGN of a synchronous fault kills, as
 * the kernel does.
 *
 * The store is written by the owning process only (a vfork child shares our
 * memory: the real pid is compared, the call then goes to libc unrecorded).
 *
 * Runs in: [interposer] for the exported names (before our constructor too);
 * [handler] for the dispatch. No allocation, no lock held while a handler runs.
 */
#ifndef APROF_HOOKS_SIGACTION_H
#define APROF_HOOKS_SIGACTION_H

#include <signal.h>
#include <stdbool.h>

/* Says whether the signal was ours: true ends the dispatch, false hands on. */
typedef bool (*sigaction_mine)(int signo, siginfo_t *info, void *ucontext);

/* [loader] Puts our handler in front (SA_SIGINFO|SA_ONSTACK, SA_RESTART unless
 * the wish is a handler without it, and SA_NODEFER for SIGSEGV/SIGBUS); the
 * action found becomes the application's wish. 0 or a negative errno. */
int sigaction_claim(int signo, sigaction_mine mine);

/* Gives the signal back: installs the application's wish. */
void sigaction_release(int signo);

/* Whether the kernel's action for signo is our dispatcher (raw system call,
 * 0.1-0.3 us). */
bool sigaction_in_force(int signo);

/* Puts our dispatcher back after somebody went around us, taking over what is
 * there now as the application's wish. */
int sigaction_reclaim(int signo);

/* Called at each sigaction(2) of the application: the start of an interpreter
 * makes several. Async-signal-safe code only; one callback. */
void sigaction_on_call(void (*call)(void));

#endif
