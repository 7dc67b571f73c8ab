/* SPDX-License-Identifier: MIT */
#include "hooks/interrupted.h"

#include <stdint.h>
#include <ucontext.h>

#include "hooks/guard.h"

#if !defined(__x86_64__)
#error "interrupted.c knows x86-64 only"
#endif

/* CPU timers fire between system calls (Linux 5.9+): a call that was under way
 * has returned, and the program counter stands behind its `syscall`. */
bool interrupted_in_syscall(const void *ucontext)
{
    const ucontext_t *context = ucontext;
    uint8_t bytes[2];
    uintptr_t pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    return guard_copy(bytes, pc - 2, 2) && bytes[0] == 0x0f && bytes[1] == 0x05;
}

bool interrupted_blocks(const void *ucontext, int signo)
{
    return sigismember(&((const ucontext_t *)ucontext)->uc_sigmask, signo) == 1;
}

size_t interrupted_stack_left(const void *ucontext)
{
    const stack_t *stack = &((const ucontext_t *)ucontext)->uc_stack;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), low = (uintptr_t)stack->ss_sp;
    if ((stack->ss_flags & SS_DISABLE) || here < low || here - low >= stack->ss_size)
        return SIZE_MAX;
    return here - low;
}
