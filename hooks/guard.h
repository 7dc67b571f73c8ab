/* SPDX-License-Identifier: MIT
 *
 * guard: reading memory that may not be there.
 *
 * The only module that touches memory of the interpreter. A copy is a few
 * instructions of assembly with known bounds; when one of them faults, the
 * SIGSEGV/SIGBUS handler sees the interrupted program counter inside these
 * bounds and continues at a landing label that reports failure. No arming
 * flag, no setjmp, no thread-local state: any number of threads may copy at
 * once, also inside a signal handler. 1-4 ns for up to 64 bytes; a fault costs
 * about 2 us, so check alignment and range before following a pointer.
 *
 * Second reader: process_vm_readv on ourselves, used whenever our handler is
 * not the kernel's (somebody replaced it by a raw system call, or the application
 * ignores these signals) or when the user asked for it. It is never called before it is needed: a seccomp filter
 * may kill for it.
 *
 * Runs in: [handler] [sampler] [loader], unless said otherwise. Async-signal-safe.
 * Failure: false; the destination then holds unspecified bytes.
 * Unit tests link tests/unit/fake_memory.c in place of guard.c.
 */
#ifndef APROF_HOOKS_GUARD_H
#define APROF_HOOKS_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What APROF_READER asks for. */
enum guard_reader { GUARD_AUTO, GUARD_COPY, GUARD_SYSCALL };

/* [loader] Installs the fault handlers through hooks/sigaction.h and chooses
 * the reader. 0 or a negative errno; after a failure every copy goes by the
 * system call, with GUARD_COPY every copy fails. Call once a process image. */
int guard_start(enum guard_reader reader);

/* Copies n bytes from the address src. False when any of them is unreadable. */
bool guard_copy(void *dst, uintptr_t src, size_t n);

/* Copies one aligned 8-byte word; false for a misaligned or unreadable address. */
bool guard_word(uintptr_t src, uint64_t *word);

/* One word of a gather: words[to] becomes the word at words[from] + offset. */
struct guard_place {
    int32_t offset;
    uint16_t from, to;
};

/* Copies several aligned words, at about 1 ns each: the places in order (words has at most 64),
 * so that what one of them read may be the base of a later one. False when any of them is
 * misaligned or unreadable. */
bool guard_gather(uint64_t *words, const struct guard_place *places, uint32_t count);

/* The same, unless the first of them (an object's type) is not what is expected: then the
 * others are not touched. How many words were copied: all, 1 or (misaligned or unreadable) 0. */
uint32_t guard_gather_if(uint64_t *words, const struct guard_place *places, uint32_t count, uint64_t expected);

/* One aligned 8-byte store that may fault (a mapping of a file that somebody
 * truncated: SIGBUS). False when it faulted or when the guard is not in force:
 * then use pwrite. */
bool guard_store(uint64_t *dst, uint64_t value);

/* [sampler] [handler] Once a tick, before anything is read: asks the kernel (raw
 * rt_sigaction) whether SIGSEGV and SIGBUS are still ours and switches the reader
 * accordingly, both ways. */
void guard_recheck(void);

/* [sampler] At the start of our own thread, which leaves SIGSEGV and SIGBUS
 * unblocked while faults are caught. One that is sent to the process and that all
 * other threads block would be ours to take: it goes back to where it came from,
 * and we block it, reading by system call, until somebody has taken it. */
void guard_own_thread(void);

/* True while faults are caught by us: then threads may walk themselves in their
 * CPU ticks. */
bool guard_in_force(void);

/* "copy" or "syscall": the reader in use now, for the metadata. */
const char *guard_reader_name(void);

#endif
