/* SPDX-License-Identifier: MIT
 *
 * task: starting a thread of our own (a "task" in the kernel's word, so that
 * the name does not clash with hooks/threads.h, which knows the application's).
 *
 * The thread is made by libc's own pthread_create (not by our interposer), with
 * every signal blocked except SIGSEGV, SIGBUS and libc's own two, a fixed stack of
 * 256 KiB (whatever `ulimit -s` says, and beside the thread-local data that libc puts
 * there), the name "aprof", no real-time priority and no capabilities but the two
 * to change user and group (see task_drop_capabilities). It is detached: most
 * processes end without waiting for it, which a checker of threads (ThreadSanitizer)
 * would report and count as a fault of the application. Its end is announced by a
 * futex, so that waiting for it can be bounded.
 */
#ifndef APROF_HOOKS_TASK_H
#define APROF_HOOKS_TASK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct task {
    _Atomic pid_t tid;        /* set by the thread itself before run() */
    _Atomic uint32_t ended;   /* futex: 1 once run() has returned */
    void (*run)(void *arg);
    void *arg;
};

/* Zeroed struct in; 0 or a negative errno. The struct must live until joined. */
int task_start(struct task *task, void (*run)(void *), void *arg);

/* Waits until the thread has left run() and the process, at most until
 * deadline_ns. False at the deadline: it is still there; ask again. The kernel
 * thread itself is gone from /proc when this returns true. */
bool task_join(struct task *task, uint64_t deadline_ns);

/* Whether the kernel has no such thread any more, though run() did not return. Async-signal-safe. */
bool task_was_killed(const struct task *task);

/* [sampler] Leaves the shared descriptor table: 0-2 become /dev/null in a table
 * that exists for this thread alone. False where the kernel refuses
 * (close_range is Linux 5.9): then the caller opens, writes and closes. */
bool task_unshare_descriptors(void);

/* [sampler] Closes all but 0-2. Only where the table is this thread's own. */
void task_close_descriptors(void);

/* [sampler] Drops the capabilities of the calling thread, and those that it could get. But
 * for those to change user and group, which the application may have all threads do. */
void task_drop_capabilities(void);

/* Whether the calling thread has the same rights to change user and group as
 * thread tid of this process. Async-signal-safe. */
bool task_may_change_identity_like(pid_t tid);

/* [sampler] Whether the kernel would run thread tid of this process (state R in
 * /proc), rather than let it wait. Some microseconds. False when unknown. */
bool task_is_runnable(pid_t tid);

/* [sampler] The futex that thread tid of this process waits for (/proc/self/task/TID/syscall).
 * Some microseconds. False: it waits for none, or that is unknown (gVisor). */
bool task_futex(pid_t tid, uintptr_t *futex);

/* [sampler] For how long thread tid of this process has been ready to run without a CPU so far, what goes on now
 * left out (/proc/self/task/TID/schedstat). Some microseconds. False where the kernel does not say. */
bool task_run_delay(pid_t tid, uint64_t *ns);

/* [sampler] The kernel's name for thread tid of this process, any bytes but NUL; its length, 0: unknown. */
enum { TASK_NAME_BYTES = 16 };
size_t task_name(pid_t tid, char name[TASK_NAME_BYTES]);

/* [sampler] Whether thread tid of this process blocks signo (SigBlk in /proc).
 * False when unknown. */
bool task_blocks(pid_t tid, int signo);

/* [sampler] Leaves the shared root and working directory: an application that
 * changes its root does not take our files with it. False where it is refused. */
bool task_unshare_root(void);

/* [sampler] Whether no other thread of the process is left, though the process is
 * still there: libc counts us, and waits for our end to end it. False when unknown. */
bool task_is_last(void);

/* How many threads the process has, ours and a main one that has ended included; 0:
 * unknown. One system call. Any thread. */
uint32_t task_count(void);

pid_t task_tid(void); /* gettid(2), async-signal-safe */

#endif
