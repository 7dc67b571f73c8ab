/* SPDX-License-Identifier: MIT
 * interrupted: what is told of code that a signal stopped. */
#include "hooks/interrupted.h"

#include <check.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "hooks/guard.h"
#include "hooks/real.h"
#include "tests/unit/sanitizers.h"

Suite *suite_interrupted(void);

/* Code that stands behind these two bytes. */
static bool behind(uint8_t first, uint8_t second)
{
    uint8_t code[4] = {first, second, 0x90, 0x90};
    ucontext_t context;
    memset(&context, 0, sizeof context);
    context.uc_mcontext.gregs[REG_RIP] = (greg_t)(code + 2);
    return interrupted_in_syscall(&context);
}

static bool at(uintptr_t pc)
{
    ucontext_t context;
    memset(&context, 0, sizeof context);
    context.uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
    return interrupted_in_syscall(&context);
}

START_TEST(behind_a_system_call)
{
    real_resolve();
    guard_start(GUARD_SYSCALL);
    ck_assert(behind(0x0f, 0x05));
    ck_assert(!behind(0x0f, 0x34)); /* sysenter */
    ck_assert(!behind(0x05, 0x0f));
    ck_assert(!behind(0x90, 0x05));
}
END_TEST

/* Jumps to nowhere: the code before the program counter cannot be read. */
START_TEST(behind_nothing_at_all)
{
    real_resolve();
    guard_start(UNDER_ASAN || UNDER_TSAN ? GUARD_SYSCALL : GUARD_COPY);
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages, 4096, PROT_NONE);
    memcpy(pages + 4096, "\x05\x0f\x05", 3);
    ck_assert(!at(0));
    ck_assert(!at(1));
    ck_assert(!at((uintptr_t)pages));
    ck_assert(!at((uintptr_t)pages + 4096)); /* both bytes in the page before */
    ck_assert(!at((uintptr_t)pages + 4097)); /* one in each */
    ck_assert(at((uintptr_t)pages + 4099));
    ck_assert(!at(UINTPTR_MAX));
}
END_TEST

static volatile struct {
    int calls, blocks_usr2, blocks_segv;
    size_t left;
} seen;

static void look(int signo, siginfo_t *info, void *context)
{
    seen.calls++;
    seen.blocks_usr2 = interrupted_blocks(context, SIGUSR2);
    seen.blocks_segv = interrupted_blocks(context, SIGSEGV);
    seen.left = interrupted_stack_left(context);
}

static void install(int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = look;
    action.sa_flags = SA_SIGINFO | flags;
    sigaddset(&action.sa_mask, SIGSEGV); /* blocked in the handler: not by the code that it interrupted */
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
}

START_TEST(what_the_code_blocked)
{
    sigset_t set;
    install(0);
    raise(SIGUSR1);
    ck_assert_int_eq(seen.calls, 1);
    ck_assert(!seen.blocks_usr2 && !seen.blocks_segv);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    ck_assert_int_eq(seen.calls, 2);
    ck_assert(seen.blocks_usr2 && !seen.blocks_segv);
}
END_TEST

START_TEST(a_threads_own_stack_is_not_measured)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL); /* a sanitizer's */
    install(SA_ONSTACK);
    raise(SIGUSR1);
    ck_assert_uint_eq(seen.left, SIZE_MAX);
}
END_TEST

START_TEST(an_alternate_stack_is_measured)
{
    enum { BYTES = 128 << 10 };
    static char bytes[BYTES];
    stack_t stack = {.ss_sp = bytes, .ss_size = BYTES};
    ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
    install(SA_ONSTACK);
    raise(SIGUSR1);
    ck_assert_uint_lt(seen.left, BYTES);
    ck_assert_uint_gt(seen.left, BYTES / 2);
    install(0); /* there is one, but the handler runs elsewhere */
    raise(SIGUSR1);
    ck_assert_uint_eq(seen.left, SIZE_MAX);
}
END_TEST

/* The kernel disarms such a stack while a handler runs on it. */
START_TEST(an_alternate_stack_that_disarms_itself)
{
    enum { BYTES = 128 << 10 };
    static char bytes[BYTES];
    stack_t stack = {.ss_sp = bytes, .ss_size = BYTES, .ss_flags = (int)(1u << 31)};
    if (sigaltstack(&stack, NULL) != 0)
        return; /* an old kernel */
    install(SA_ONSTACK);
    raise(SIGUSR1);
    ck_assert_uint_lt(seen.left, BYTES);
}
END_TEST

Suite *suite_interrupted(void)
{
    const TTest *const tests[] = {
        behind_a_system_call, behind_nothing_at_all, what_the_code_blocked, a_threads_own_stack_is_not_measured,
        an_alternate_stack_is_measured, an_alternate_stack_that_disarms_itself,
    };
    Suite *suite = suite_create("interrupted");
    TCase *core = tcase_create("core");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(core, tests[i]);
    suite_add_tcase(suite, core);
    return suite;
}
