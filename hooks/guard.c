/* SPDX-License-Identifier: MIT
 *
 * Everything between guard_begin and guard_end may fault, and nothing in it
 * uses the stack: at any of its instructions the stack pointer still is what
 * the call left, so that the landing code can simply return 0 to the caller.
 */
#include "hooks/guard.h"
#include "hooks/raw.h"
#include "hooks/real.h"
#include "hooks/sigaction.h"
#include "hooks/task.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/uio.h>   /* struct iovec */
#include <ucontext.h>  /* REG_RIP */

/* int guard_asm_copy(void *dst, const void *src, size_t n)
 * int guard_asm_word(const uint64_t *src, uint64_t *dst)
 * int guard_asm_store(uint64_t *dst, uint64_t value)
 * int guard_asm_gather(uint64_t *words, const struct guard_place *places, uint64_t count)
 * int guard_asm_gather_if(the same, uint64_t expected)
 * 1 (the last: as many words as were copied), or 0 after a fault. Up to 16 bytes by two overlapping moves, so that an
 * aligned word is read by one load; up to 256 by pairs of vector moves, the last
 * overlapping; beyond that the start of `rep movsb` has paid off. endbr64 is for
 * valgrind, which reports a fault of a function's first instruction at its call. */
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        "guard_begin:\n"
        ".hidden guard_asm_copy\n"
        ".globl guard_asm_copy\n"
        ".type guard_asm_copy, @function\n"
        "guard_asm_copy:\n"
        "    cmpq $8, %rdx\n"
        "    jb 2f\n"
        "    cmpq $16, %rdx\n"
        "    ja 4f\n"
        "    movq (%rsi), %rax\n"
        "    movq -8(%rsi,%rdx), %rcx\n"
        "    movq %rax, (%rdi)\n"
        "    movq %rcx, -8(%rdi,%rdx)\n"
        "1:  movl $1, %eax\n"
        "    ret\n"
        "2:  cmpq $4, %rdx\n"
        "    jb 3f\n"
        "    movl (%rsi), %eax\n"
        "    movl -4(%rsi,%rdx), %ecx\n"
        "    movl %eax, (%rdi)\n"
        "    movl %ecx, -4(%rdi,%rdx)\n"
        "    jmp 1b\n"
        "3:  testq %rdx, %rdx\n"
        "    jz 1b\n"
        "    movq %rdx, %r8\n"
        "    shrq $1, %r8\n"
        "    movb (%rsi), %al\n"
        "    movb (%rsi,%r8), %cl\n"
        "    movb -1(%rsi,%rdx), %r9b\n"
        "    movb %al, (%rdi)\n"
        "    movb %cl, (%rdi,%r8)\n"
        "    movb %r9b, -1(%rdi,%rdx)\n"
        "    jmp 1b\n"
        "4:  cmpq $256, %rdx\n"
        "    ja 6f\n"
        "    movups -16(%rsi,%rdx), %xmm1\n"
        "    leaq -16(%rdx), %rcx\n"
        "    xorl %eax, %eax\n"
        "5:  movups (%rsi,%rax), %xmm0\n"
        "    movups %xmm0, (%rdi,%rax)\n"
        "    addq $16, %rax\n"
        "    cmpq %rcx, %rax\n"
        "    jb 5b\n"
        "    movups %xmm1, -16(%rdi,%rdx)\n"
        "    jmp 1b\n"
        "6:  movq %rdx, %rcx\n"
        "    rep movsb\n"
        "    jmp 1b\n"
        ".size guard_asm_copy, . - guard_asm_copy\n"
        ".hidden guard_asm_word\n"
        ".globl guard_asm_word\n"
        ".type guard_asm_word, @function\n"
        "guard_asm_word:\n"
        "    endbr64\n"
        "    movq (%rdi), %rax\n"
        "    movq %rax, (%rsi)\n"
        "    movl $1, %eax\n"
        "    ret\n"
        ".size guard_asm_word, . - guard_asm_word\n"
        ".hidden guard_asm_store\n"
        ".globl guard_asm_store\n"
        ".type guard_asm_store, @function\n"
        "guard_asm_store:\n"
        "    endbr64\n"
        "    movq %rsi, (%rdi)\n"
        "    movl $1, %eax\n"
        "    ret\n"
        ".size guard_asm_store, . - guard_asm_store\n"
        ".hidden guard_asm_gather\n"
        ".globl guard_asm_gather\n"
        ".type guard_asm_gather, @function\n"
        ".p2align 4\n"
        "guard_asm_gather:\n"
        "    endbr64\n"
        "    xorl %r9d, %r9d\n"
        "    movl $1, %r11d\n"
        "    leaq (%rsi,%rdx,8), %r10\n"
        "    cmpq %r10, %rsi\n"
        "    je 2f\n"
        "1:  movslq (%rsi), %rax\n"
        "    movzwl 4(%rsi), %r8d\n"
        "    addq (%rdi,%r8,8), %rax\n"
        "    movzwl 6(%rsi), %r8d\n"
        "    addq $8, %rsi\n"
        "    orl %eax, %r9d\n"
        "    movq (%rax), %rax\n"
        "    movq %rax, (%rdi,%r8,8)\n"
        "    cmpq %r10, %rsi\n"
        "    jne 1b\n"
        "2:  xorl %eax, %eax\n"
        "    testl $7, %r9d\n"
        "    cmovz %r11d, %eax\n"
        "    ret\n"
        ".size guard_asm_gather, . - guard_asm_gather\n"
        ".hidden guard_asm_gather_if\n"
        ".globl guard_asm_gather_if\n"
        ".type guard_asm_gather_if, @function\n"
        ".p2align 4\n"
        "guard_asm_gather_if:\n"
        "    endbr64\n"
        "    leaq (%rsi,%rdx,8), %r10\n"
        "    movl %edx, %r11d\n"
        "    movslq (%rsi), %rax\n"
        "    movzwl 4(%rsi), %r8d\n"
        "    addq (%rdi,%r8,8), %rax\n"
        "    movzwl 6(%rsi), %r8d\n"
        "    addq $8, %rsi\n"
        "    movl %eax, %r9d\n"
        "    movq (%rax), %rax\n"
        "    movq %rax, (%rdi,%r8,8)\n"
        "    cmpq %rcx, %rax\n"
        "    je 3f\n"
        "    movl $1, %r11d\n"
        "    jmp 2b\n"
        "3:  cmpq %r10, %rsi\n"
        "    jne 1b\n"
        "    jmp 2b\n"
        ".size guard_asm_gather_if, . - guard_asm_gather_if\n"
        "guard_end:\n"
        "guard_landing:\n"
        "    xorl %eax, %eax\n"
        "    ret\n"
        ".popsection\n");

int guard_asm_copy(void *dst, uintptr_t src, size_t n) __attribute__((visibility("hidden")));
int guard_asm_word(uintptr_t src, uint64_t *word) __attribute__((visibility("hidden")));
int guard_asm_store(uint64_t *dst, uint64_t value) __attribute__((visibility("hidden")));
int guard_asm_gather(uint64_t *words, const struct guard_place *places, uint64_t count) __attribute__((visibility("hidden")));
int guard_asm_gather_if(uint64_t *words, const struct guard_place *places, uint64_t count, uint64_t expected)
    __attribute__((visibility("hidden")));
extern const char guard_begin[], guard_end[], guard_landing[];

/* OFF, the state before guard_start, fails every copy: no reader is chosen yet. */
enum mode { OFF, COPYING, SYSCALLS };

static _Atomic int mode;                /* written by [loader] and [sampler], read anywhere */
static enum guard_reader asked;         /* written once, in guard_start */
static bool started;                    /* likewise */

/* The mode that fits the reader asked for, now that faults are caught or not. */
static enum mode mode_for(bool caught)
{
    if (asked == GUARD_SYSCALL)
        return SYSCALLS;
    if (caught)
        return COPYING;
    return asked == GUARD_COPY ? OFF : SYSCALLS;
}

static bool are_caught(void)
{
    return sigaction_in_force(SIGSEGV) && sigaction_in_force(SIGBUS);
}

/* [interposer] The kernel is about to ignore them, or we to block them: it kills for a fault. */
static void stop_copying(void)
{
    atomic_store(&mode, mode_for(false));
}

/* Our own thread: */
static _Atomic int own_thread;          /* its tid, 0: none yet */
static _Atomic bool own_blocks;         /* it blocks SIGSEGV and SIGBUS; written by it alone */
static _Atomic bool given_back;         /* ... because one of them waits for a thread of the application */

static const uint64_t both = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1); /* as the kernel has masks */

static bool is_own_thread(void)
{
    return task_tid() == atomic_load_explicit(&own_thread, memory_order_relaxed);
}

static void own_mask(bool blocks)
{
    raw4(SYS_rt_sigprocmask, blocks ? SIG_BLOCK : SIG_UNBLOCK, (long)&both, 0, sizeof both);
    atomic_store(&own_blocks, blocks);
}

/* [own thread, in the handler] Back to the process, with its sender; the mask is
 * blocked at once and stays so after our return. What kill(2) says of itself only
 * the kernel may say, so it then comes as if by sigqueue(3). */
static void give_back(int signo, siginfo_t *info, ucontext_t *context)
{
    own_mask(true);
    sigaddset(&context->uc_sigmask, SIGSEGV);
    sigaddset(&context->uc_sigmask, SIGBUS);
    atomic_store(&given_back, true);
    stop_copying();
    if (raw3(SYS_rt_sigqueueinfo, real_pid(), signo, (long)info) == 0)
        return;
    info->si_code = SI_QUEUE;
    raw3(SYS_rt_sigqueueinfo, real_pid(), signo, (long)info);
}

/* SIGSEGV and SIGBUS of the instructions above. Signals that somebody sent
 * (si_code <= 0; faulthandler raises again like this) are not faults of ours,
 * wherever they arrive; on our own thread they end a copy that was under way. */
static bool guard_caught(int signo, siginfo_t *info, void *ucontext)
{
    greg_t *pc = &((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RIP];
    bool copying = *pc >= (greg_t)guard_begin && *pc < (greg_t)guard_end;
    if (info->si_code <= 0) {
        if (!is_own_thread())
            return false;
        give_back(signo, info, ucontext);
    } else if (!copying)
        return false;
    if (copying)
        *pc = (greg_t)guard_landing;
    return true;
}

/* Whether one of them still waits to be taken: pending for the process, as our own
 * thread sees what it blocks. */
static bool is_taken(void)
{
    uint64_t pending = 0;
    raw2(SYS_rt_sigpending, (long)&pending, sizeof pending);
    return !(pending & both);
}

static int claim_both(void)
{
    int error = sigaction_claim(SIGSEGV, guard_caught);
    if (error != 0)
        return error;
    error = sigaction_claim(SIGBUS, guard_caught);
    if (error != 0)
        sigaction_release(SIGSEGV);
    return error;
}

int guard_start(enum guard_reader reader)
{
    int error = reader == GUARD_SYSCALL ? 0 : claim_both();
    asked = reader;
    started = true;
    atomic_store(&mode, mode_for(error == 0 && are_caught()));
    sigaction_on_ignored(stop_copying);
    return error;
}

static void switch_to(enum mode next)
{
    if ((int)next == atomic_load(&mode))
        return;
    atomic_store(&mode, next);
    if (next == COPYING && (!are_caught() || atomic_load(&given_back))) /* since a moment ago */
        stop_copying();
}

void guard_recheck(void)
{
    if (!started)
        return;
    if (atomic_load(&given_back) && is_own_thread() && is_taken())
        atomic_store(&given_back, false);
    enum mode next = mode_for(asked != GUARD_SYSCALL && are_caught() && !atomic_load(&given_back));
    if (next == COPYING && atomic_load(&own_blocks)) {
        if (!is_own_thread())
            return; /* it must not block them by then: at its own next tick */
        own_mask(false);
    }
    switch_to(next);
    if (!guard_in_force() && !atomic_load(&own_blocks) && is_own_thread())
        own_mask(true);
}

void guard_own_thread(void)
{
    atomic_store(&own_blocks, false); /* as it was made */
    atomic_store(&given_back, false);
    atomic_store(&own_thread, task_tid());
    guard_recheck();
}

/* The pid is asked each time: it is another one after a fork. */
static bool copy_by_syscall(void *dst, uintptr_t src, size_t n)
{
    struct iovec to = {dst, n}, from = {(void *)src, n};
    return raw6(SYS_process_vm_readv, real_pid(), (long)&to, 1, (long)&from, 1, 0) == (long)n;
}

bool guard_copy(void *dst, uintptr_t src, size_t n)
{
    int now = atomic_load_explicit(&mode, memory_order_relaxed);
    if (now == COPYING)
        return guard_asm_copy(dst, src, n) != 0;
    return now == SYSCALLS && copy_by_syscall(dst, src, n);
}

bool guard_word(uintptr_t src, uint64_t *word)
{
    if (src % sizeof *word != 0)
        return false;
    int now = atomic_load_explicit(&mode, memory_order_relaxed);
    if (now == COPYING)
        return guard_asm_word(src, word) != 0;
    return now == SYSCALLS && copy_by_syscall(word, src, sizeof *word);
}

enum { CALL_MOST = 8 }; /* places of one system call */

/* As many places as do not stand on each other, by one call: false, or how many in *taken. */
static bool gather_some(uint64_t *words, const struct guard_place *places, uint32_t count, uint32_t *taken)
{
    struct iovec to[CALL_MOST], from[CALL_MOST];
    uint64_t filled = 0;
    uint32_t n = 0;
    for (; n < count && n < CALL_MOST && !(filled >> places[n].from & 1); n++) {
        uintptr_t src = words[places[n].from] + (uintptr_t)(intptr_t)places[n].offset;
        if (src % sizeof *words != 0)
            return false;
        to[n] = (struct iovec){&words[places[n].to], sizeof *words};
        from[n] = (struct iovec){(void *)src, sizeof *words};
        filled |= 1ull << places[n].to;
    }
    *taken = n;
    return raw6(SYS_process_vm_readv, real_pid(), (long)to, n, (long)from, n, 0) == (long)(n * sizeof *words);
}

static bool gather_by_syscall(uint64_t *words, const struct guard_place *places, uint32_t count)
{
    for (uint32_t taken; count; places += taken, count -= taken)
        if (!gather_some(words, places, count, &taken))
            return false;
    return true;
}

bool guard_gather(uint64_t *words, const struct guard_place *places, uint32_t count)
{
    int now = atomic_load_explicit(&mode, memory_order_relaxed);
    if (now == COPYING)
        return guard_asm_gather(words, places, count) != 0;
    return now == SYSCALLS && gather_by_syscall(words, places, count);
}

uint32_t guard_gather_if(uint64_t *words, const struct guard_place *places, uint32_t count, uint64_t expected)
{
    int now = atomic_load_explicit(&mode, memory_order_relaxed);
    if (now == COPYING)
        return (uint32_t)guard_asm_gather_if(words, places, count, expected);
    if (now != SYSCALLS || !gather_by_syscall(words, places, 1))
        return 0;
    if (words[places[0].to] != expected)
        return 1;
    return gather_by_syscall(words, places + 1, count - 1) ? count : 0;
}

bool guard_store(uint64_t *dst, uint64_t value)
{
    return guard_in_force() && guard_asm_store(dst, value) != 0;
}

bool guard_in_force(void)
{
    return atomic_load_explicit(&mode, memory_order_relaxed) == COPYING;
}

const char *guard_reader_name(void)
{
    return atomic_load_explicit(&mode, memory_order_relaxed) == COPYING ? "copy" : "syscall";
}
