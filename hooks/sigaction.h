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
 * done it: arguments, default, ignore, SA_NODEFER, SA_RESETHAND, SA_RESTART, mask,
 * alternate stack, order of arrival. Default action: the kernel's default is
 * restored and the handler returns, so that a fault repeats with its true
 * address and kill(2) is sent again. SIG_IGN of SIGSEGV and SIGBUS is left to the
 * kernel, which kills for a fault all the same: then we are not in force.
 *
 * The store is written by the owning process only (a vfork child shares our
 * memory: the real pid is compared, the call then goes to libc unrecorded). Who
 * sets an action by the system call has it: that is left alone, and in force no
 * more, until he sets back what he had from the kernel, or calls sigaction for the
 * default.
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

/* [loader] Puts our handler in front (SA_SIGINFO|SA_ONSTACK, and SA_RESTART unless
 * the wish is a handler: then its own SA_RESTART, SA_NODEFER and mask, the mask of
 * what is no fault without SIGSEGV and SIGBUS); the action found becomes the
 * application's wish. 0 or a negative errno. */
int sigaction_claim(int signo, sigaction_mine mine);

/* Gives the signal back: installs the application's wish. */
void sigaction_release(int signo);

/* Whether the kernel's action for signo is our dispatcher (raw system call,
 * 0.1-0.3 us). */
bool sigaction_in_force(int signo);

/* Called before SIGSEGV or SIGBUS is left to the kernel to ignore, and after it:
 * from then on faults are not caught. Async-signal-safe code only; one callback. */
void sigaction_on_ignored(void (*call)(void));

/* [interposer] Around what may replace the image: signals that the application
 * ignores are ignored by the kernel, so that the next image has it so, and are
 * taken again when it failed. Also in a vfork child; writes nothing. */
void sigaction_before_exec(void);
void sigaction_after_exec(void);

/* Called at each sigaction(2) of the application: the start of an interpreter
 * makes several. Async-signal-safe code only; one callback. */
void sigaction_on_call(void (*call)(void));

#endif
