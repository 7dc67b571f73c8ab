/* SPDX-License-Identifier: MIT
 *
 * raw: system calls without libc in between. They never touch errno (a handler
 * need not save it for them), can be interposed by nobody, and answer like the
 * kernel: a negative errno on failure.
 * Runs in: any context. x86-64 Linux.
 */
#ifndef APROF_HOOKS_RAW_H
#define APROF_HOOKS_RAW_H

#include <sys/syscall.h> /* SYS_* */

static inline long raw6(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline long raw0(long number) { return raw6(number, 0, 0, 0, 0, 0, 0); }
static inline long raw1(long number, long a) { return raw6(number, a, 0, 0, 0, 0, 0); }
static inline long raw2(long number, long a, long b) { return raw6(number, a, b, 0, 0, 0, 0); }
static inline long raw3(long number, long a, long b, long c) { return raw6(number, a, b, c, 0, 0, 0); }
static inline long raw4(long number, long a, long b, long c, long d) { return raw6(number, a, b, c, d, 0, 0); }

#endif
