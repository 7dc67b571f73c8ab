/* SPDX-License-Identifier: MIT
 *
 * fork: the one place that knows what happens around fork, and in which order.
 *
 * Policy: the child profiles itself, as a new process with a START of its own;
 * the parent goes on. The child touches nothing of the parent's: everything is
 * void, its heap is a new arena, its sampler starts from nothing through a
 * pending call of the interpreter, so that a child that only execs never pays
 * for it. Should that call be refused, each CPU tick of the surviving thread
 * posts it again.
 *
 * Python 3.12+ warns in os.fork() when the process has a second thread, and our
 * sampler would be one. In programs without a thread of their own, and only
 * there, it is joined before the fork (20 ms at most) and comes back through a
 * pending call.
 *
 * A vfork child runs no handler and shares our memory: interposers compare the
 * real pid before they write.
 *
 * Runs in: [fork] for the handlers; [interposer] and [sampler] as named.
 */
#ifndef APROF_PRELOAD_FORK_H
#define APROF_PRELOAD_FORK_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/target.h"

/* [loader] After mem_init: prepare handlers run last-registered first, and the
 * heap's must come after ours. 0 or a negative errno. */
int fork_start(const struct py_target *target);

/* [sampler] The process has taken its first sample: its parent need not count it. */
void fork_first_sample(void);

/* [interposer] The process image is about to be replaced: likewise; and it was not.
 * Async-signal-safe; not in a vfork child. */
void fork_before_exec(void);
void fork_after_exec(void);

/* Forked children that ended without a sample (or have none yet), and what these
 * forked in turn. */
uint64_t fork_children_without_sample(void);

/* When this process began: of the fork, or of the image. Microseconds since the epoch. */
uint64_t fork_start_us(void);

/* [interposer] The sampler thread goes (20 ms at most; false: it stays), and comes
 * back: unshare and setns of some namespaces are refused beside a second thread. */
bool fork_step_aside(void);
void fork_step_back(void);

/* False in a vfork child. */
bool fork_owns_process(void);

/* Called in the child after everything is void. */
void fork_on_child(void (*call)(void));

#endif
