/* SPDX-License-Identifier: MIT
 *
 * Most tests run the same steps twice, on an unclaimed and on a claimed signal,
 * and compare what the application sees: it must be the same to the last bit.
 */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* old functions are the subject */
#include "hooks/sigaction.h"
#include "hooks/real.h"
#include "tests/unit/sanitizers.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define CLAIMED SIGURG
#define PLAIN SIGIO /* not claimed: what the kernel and libc say */

static _Atomic int mine_calls, handler_calls;
static _Atomic int take_ours;

static bool mine(int signo, siginfo_t *info, void *ucontext)
{
    mine_calls++;
    errno = 99;
    return take_ours;
}

static void claim(void)
{
    ck_assert_int_eq(sigaction_claim(CLAIMED, mine), 0);
}

static void handler(int signo)
{
    handler_calls++;
}

static void other_handler(int signo)
{
}

/* What one sees of an action, without bytes that libc leaves unset. */
struct seen {
    void *handler;
    int flags;
    uint64_t mask;
    void *restorer;
};

static struct seen see(int signo)
{
    struct sigaction old;
    ck_assert_int_eq(sigaction(signo, NULL, &old), 0);
    struct seen seen = {old.sa_handler, old.sa_flags, 0, old.sa_restorer};
    memcpy(&seen.mask, &old.sa_mask, sizeof seen.mask);
    return seen;
}

/* Both signals, their own bit in the mask taken for the same. */
static void same_in_both(void)
{
    struct seen plain = see(PLAIN), claimed = see(CLAIMED);
    uint64_t plain_bit = (uint64_t)1 << (PLAIN - 1), claimed_bit = (uint64_t)1 << (CLAIMED - 1);
    if ((plain.mask & (plain_bit | claimed_bit)) == plain_bit)
        plain.mask = (plain.mask & ~plain_bit) | claimed_bit;
    ck_assert_ptr_eq(plain.handler, claimed.handler);
    ck_assert_int_eq(plain.flags, claimed.flags);
    ck_assert_uint_eq(plain.mask, claimed.mask);
    ck_assert_ptr_eq(plain.restorer, claimed.restorer);
    ck_assert(sigaction_in_force(CLAIMED));
}

START_TEST(every_setter_is_reported_as_the_kernel_would)
{
    struct sigaction act;
    claim();
    for (int flags = 0; flags < 64; flags++) {
        memset(&act, 0, sizeof act);
        act.sa_handler = handler;
        act.sa_flags = (flags & 1 ? SA_RESTART : 0) | (flags & 2 ? SA_NODEFER : 0) | (flags & 4 ? (int)SA_RESETHAND : 0) |
                       (flags & 8 ? SA_ONSTACK : 0) | (flags & 16 ? SA_SIGINFO : 0) | (flags & 32 ? 0x20000400 : 0);
        sigfillset(&act.sa_mask);
        ck_assert_int_eq(sigaction(PLAIN, &act, NULL), 0);
        ck_assert_int_eq(sigaction(CLAIMED, &act, NULL), 0);
        same_in_both();
    }
    real_handler (*const setters[])(int, real_handler) = {signal, ssignal, sysv_signal, __sysv_signal, sigset};
    for (size_t i = 0; i < sizeof setters / sizeof setters[0]; i++) {
        const real_handler values[] = {handler, SIG_IGN, SIG_DFL, other_handler};
        for (size_t j = 0; j < sizeof values / sizeof values[0]; j++) {
            ck_assert_ptr_eq(setters[i](PLAIN, values[j]), setters[i](CLAIMED, values[j]));
            same_in_both();
        }
    }
    ck_assert_int_eq(sigignore(PLAIN), sigignore(CLAIMED));
    same_in_both();
}
END_TEST

START_TEST(siginterrupt_is_remembered_by_signal)
{
    siginterrupt(CLAIMED, 1); /* before the claim as well */
    siginterrupt(PLAIN, 1);
    claim();
    for (int flag = 1; flag >= 0; flag--) {
        signal(PLAIN, handler), signal(CLAIMED, handler);
        same_in_both();
        ck_assert_int_eq(siginterrupt(PLAIN, flag), siginterrupt(CLAIMED, flag));
        same_in_both();
    }
    signal(PLAIN, handler), signal(CLAIMED, handler);
    same_in_both();
}
END_TEST

START_TEST(sigset_knows_what_is_held)
{
    claim();
    ck_assert_ptr_eq(sigset(PLAIN, SIG_HOLD), sigset(CLAIMED, SIG_HOLD));
    ck_assert_ptr_eq(sigset(PLAIN, SIG_HOLD), SIG_HOLD);
    ck_assert_ptr_eq(sigset(CLAIMED, SIG_HOLD), SIG_HOLD);
    ck_assert_ptr_eq(sigset(PLAIN, handler), SIG_HOLD);
    ck_assert_ptr_eq(sigset(CLAIMED, handler), SIG_HOLD);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    ck_assert(!sigismember(&now, CLAIMED) && !sigismember(&now, PLAIN));
    same_in_both();
    ck_assert_ptr_eq(sigset(CLAIMED, SIG_DFL), handler);
}
END_TEST

START_TEST(bad_calls_fail_alike)
{
    claim();
    real_handler (*const setters[])(int, real_handler) = {signal, sysv_signal, sigset};
    for (size_t i = 0; i < sizeof setters / sizeof setters[0]; i++) {
        errno = 0;
        real_handler plain = setters[i](PLAIN, SIG_ERR);
        int plain_error = errno;
        errno = 0;
        ck_assert_ptr_eq(setters[i](CLAIMED, SIG_ERR), plain);
        ck_assert_int_eq(errno, plain_error);
        same_in_both();
    }
    struct sigaction act = {.sa_handler = handler};
    const int bad[] = {0, -1, 65, 1000, SIGKILL, SIGSTOP, 32, 33};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        errno = 0;
        ck_assert_int_eq(sigaction(bad[i], &act, NULL), -1);
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_eq(signal(bad[i], handler), SIG_ERR);
    }
    ck_assert_int_eq(sigaction_claim(0, mine), -EINVAL);
    ck_assert_int_eq(sigaction_claim(65, mine), -EINVAL);
    ck_assert_int_eq(sigaction_claim(CLAIMED, mine), -EBUSY);
}
END_TEST

START_TEST(act_and_old_may_be_one_object)
{
    claim();
    struct sigaction act = {.sa_handler = handler};
    struct sigaction *volatile same = &act;
    ck_assert_int_eq(sigaction(CLAIMED, &act, same), 0);
    ck_assert_ptr_eq(act.sa_handler, SIG_DFL);
    ck_assert_ptr_eq(see(CLAIMED).handler, handler);
}
END_TEST

START_TEST(what_was_there_is_the_first_wish_and_comes_back)
{
    signal(CLAIMED, handler);
    struct seen before = see(CLAIMED), after;
    claim();
    after = see(CLAIMED);
    ck_assert_ptr_eq(before.handler, after.handler);
    ck_assert_int_eq(before.flags, after.flags);
    raise(CLAIMED);
    ck_assert_int_eq(mine_calls, 1);
    ck_assert_int_eq(handler_calls, 1);
    sigaction_release(CLAIMED);
    after = see(CLAIMED);
    ck_assert_ptr_eq(before.handler, after.handler);
    ck_assert_int_eq(before.flags, after.flags);
    raise(CLAIMED);
    ck_assert_int_eq(mine_calls, 1);
    ck_assert_int_eq(handler_calls, 2);
}
END_TEST

START_TEST(ours_is_not_handed_on_and_keeps_errno)
{
    claim();
    signal(CLAIMED, handler);
    take_ours = 1;
    errno = 5;
    raise(CLAIMED);
    ck_assert_int_eq(errno, 5);
    ck_assert_int_eq(handler_calls, 0);
}
END_TEST

static sigset_t mask_in_handler;
static siginfo_t info_in_handler;

static void full_handler(int signo, siginfo_t *info, void *ucontext)
{
    handler_calls++;
    info_in_handler = *info;
    pthread_sigmask(SIG_BLOCK, NULL, &mask_in_handler);
    ck_assert_ptr_ne(ucontext, NULL);
}

static uint64_t mask_during(int signo, int flags, int also)
{
    struct sigaction act = {.sa_sigaction = full_handler, .sa_flags = flags | SA_SIGINFO};
    uint64_t mask;
    if (also)
        sigaddset(&act.sa_mask, also);
    sigaction(signo, &act, NULL);
    union sigval value = {.sival_int = 77};
    sigqueue(getpid(), signo, value);
    ck_assert_int_eq(info_in_handler.si_value.sival_int, 77);
    ck_assert_int_eq(info_in_handler.si_pid, getpid());
    memcpy(&mask, &mask_in_handler, sizeof mask);
    return mask;
}

START_TEST(the_mask_in_the_handler_is_the_kernels)
{
    claim();
    uint64_t plain_bit = (uint64_t)1 << (PLAIN - 1), claimed_bit = (uint64_t)1 << (CLAIMED - 1);
    ck_assert_uint_eq(mask_during(PLAIN, 0, SIGHUP) & ~plain_bit, mask_during(CLAIMED, 0, SIGHUP) & ~claimed_bit);
    ck_assert(mask_during(CLAIMED, 0, 0) & claimed_bit);
    ck_assert(!(mask_during(CLAIMED, SA_NODEFER, 0) & claimed_bit));
    ck_assert(mask_during(CLAIMED, SA_NODEFER, CLAIMED) & claimed_bit);
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    ck_assert(!sigismember(&now, CLAIMED) && !sigismember(&now, SIGHUP));
}
END_TEST

START_TEST(resethand_calls_once)
{
    claim();
    sysv_signal(CLAIMED, handler);
    raise(CLAIMED);
    raise(CLAIMED); /* SIGURG's default is to be ignored */
    ck_assert_int_eq(handler_calls, 1);
    sysv_signal(PLAIN, handler);
    raise(PLAIN);
    same_in_both(); /* the flags stay, the handler is the default */
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(CLAIMED, &act, NULL);
    sigaction(PLAIN, &act, NULL);
    same_in_both();
}
END_TEST

START_TEST(ignored_and_default_sigurg_do_nothing)
{
    claim();
    signal(CLAIMED, SIG_IGN);
    raise(CLAIMED);
    signal(CLAIMED, SIG_DFL);
    raise(CLAIMED);
    ck_assert_int_eq(mine_calls, 2);
}
END_TEST

struct interrupted {
    pthread_t thread;
    pid_t tid;
    int fd;
};

/* In the call of that number, as the kernel says. */
static bool is_in_call(pid_t tid, long call)
{
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)tid);
    FILE *file = fopen(path, "r");
    bool read = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    return read && text[0] >= '0' && text[0] <= '9' && strtol(text, NULL, 10) == call;
}

/* The signal comes once the reader waits, the byte once the signal has been there. */
static void *interrupter(void *arg)
{
    struct interrupted *reader = arg;
    while (!is_in_call(reader->tid, SYS_read))
        usleep(100);
    int calls = mine_calls + handler_calls;
    pthread_kill(reader->thread, CLAIMED);
    while (mine_calls + handler_calls == calls)
        usleep(100);
    ck_assert_int_eq((int)write(reader->fd, "x", 1), 1);
    return NULL;
}

static ssize_t read_interrupted(void)
{
    struct interrupted arg = {.thread = pthread_self(), .tid = gettid()};
    int pipes[2];
    char byte;
    pthread_t thread;
    ck_assert_int_eq(pipe(pipes), 0);
    arg.fd = pipes[1];
    pthread_create(&thread, NULL, interrupter, &arg);
    ssize_t got = read(pipes[0], &byte, 1);
    int error = errno;
    pthread_join(thread, NULL);
    return got == 1 ? 1 : -error;
}

START_TEST(waiting_calls_end_only_where_the_application_said_so)
{
    claim();
    ck_assert_int_eq(read_interrupted(), 1); /* default: no EINTR, like a signal that is ignored */
    struct sigaction act = {.sa_handler = handler};
    sigaction(CLAIMED, &act, NULL);
    ck_assert_int_eq(read_interrupted(), -EINTR);
    act.sa_flags = SA_RESTART;
    sigaction(CLAIMED, &act, NULL);
    ck_assert_int_eq(read_interrupted(), 1);
    ck_assert_int_eq(handler_calls, 2);
}
END_TEST

/* ---- faults ---- */

static void nothing_there(void)
{
    int *volatile nowhere = (int *)16;
    *nowhere = 1;
}

static bool not_mine(int signo, siginfo_t *info, void *ucontext)
{
    return false;
}

START_TEST(a_fault_dies_of_its_signal)
{
    ck_assert_int_eq(sigaction_claim(SIGSEGV, not_mine), 0);
    nothing_there();
}
END_TEST

START_TEST(an_ignored_fault_dies_too)
{
    ck_assert_int_eq(sigaction_claim(SIGSEGV, not_mine), 0);
    signal(SIGSEGV, SIG_IGN);
    raise(SIGSEGV); /* sent, so it is ignored */
    nothing_there();
}
END_TEST

START_TEST(a_sent_fatal_signal_kills)
{
    ck_assert_int_eq(sigaction_claim(SIGSEGV, not_mine), 0);
    kill(getpid(), SIGSEGV);
    usleep(100000);
}
END_TEST

static sigjmp_buf after_fault;
static void *fault_address;

static void jumper(int signo, siginfo_t *info, void *ucontext)
{
    fault_address = info->si_addr;
    siglongjmp(after_fault, 1);
}

START_TEST(the_applications_handler_gets_the_true_fault)
{
    struct sigaction act = {.sa_sigaction = jumper, .sa_flags = SA_SIGINFO};
    ck_assert_int_eq(sigaction_claim(SIGSEGV, not_mine), 0);
    sigaction(SIGSEGV, &act, NULL);
    for (int i = 0; i < 3; i++) {
        fault_address = NULL;
        if (sigsetjmp(after_fault, 1) == 0)
            nothing_there();
        ck_assert_ptr_eq(fault_address, (void *)16);
    }
}
END_TEST

static void crash_again(int signo)
{
    nothing_there();
}

START_TEST(a_fault_in_the_handler_kills_unless_nodefer)
{
    ck_assert_int_eq(sigaction_claim(SIGSEGV, not_mine), 0);
    signal(SIGSEGV, crash_again);
    nothing_there();
}
END_TEST

/* ---- alternate stack ---- */

static char alternate[65536];
static _Atomic int on_alternate;
static volatile int canary;

static void where_am_i(int signo, siginfo_t *info, void *ucontext)
{
    char here;
    on_alternate = &here >= alternate && &here < alternate + sizeof alternate;
    handler_calls++;
    ck_assert_ptr_ne(info, NULL);
    ck_assert_int_eq(info->si_signo, signo);
    errno = 7;
    canary = 1;
    ((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_R15] = (greg_t)0x5eed;
}

/* R15 as the handler left it in the context: it went back to the interrupted code. */
static long raise_and_read_r15(int signo)
{
    register long r15 __asm__("r15") = 1;
    long result = SYS_tgkill;
    __asm__ volatile("syscall" : "+a"(result), "+r"(r15) : "D"((long)getpid()), "S"((long)gettid()), "d"((long)signo)
                     : "rcx", "r11", "memory");
    return r15;
}

START_TEST(the_handler_runs_on_the_stack_that_it_asked_for)
{
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
    claim();
    for (int i = 0; i < 100; i++) {
        struct sigaction act = {.sa_sigaction = where_am_i, .sa_flags = SA_SIGINFO | (i % 2 ? SA_ONSTACK : 0)};
        double number = i * 1.5; /* in a vector register across the signal */
        sigaction(CLAIMED, &act, NULL);
        ck_assert_int_eq(raise_and_read_r15(CLAIMED), 0x5eed);
        ck_assert_int_eq(on_alternate, i % 2);
        ck_assert(number == i * 1.5);
    }
    ck_assert_int_eq(handler_calls, 100);
    ck_assert_int_eq(sigaltstack(NULL, &stack), 0);
    ck_assert_ptr_eq(stack.ss_sp, alternate);
    ck_assert_int_eq(stack.ss_flags, 0);
}
END_TEST

/* ---- processes ---- */

START_TEST(a_forked_child_owns_its_store)
{
    real_resolve();
    claim();
    signal(CLAIMED, handler);
    pid_t child = fork();
    if (child == 0) {
        if (signal(CLAIMED, other_handler) != handler || signal(CLAIMED, SIG_DFL) != other_handler)
            _exit(1);
        _exit(sigaction_in_force(CLAIMED) ? 0 : 2);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_ptr_eq(see(CLAIMED).handler, handler);
}
END_TEST

START_TEST(a_vfork_child_does_not_write_the_store)
{
    real_resolve();
    claim();
    signal(CLAIMED, handler);
    pid_t child = vfork();
    if (child == 0) {
        signal(CLAIMED, SIG_IGN);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_ptr_eq(see(CLAIMED).handler, handler);
    ck_assert(sigaction_in_force(CLAIMED));
}
END_TEST

START_TEST(a_vfork_child_sees_the_wish_and_has_its_own)
{
    static struct sigaction seen[3]; /* the child's memory is ours */
    real_resolve();
    claim();
    signal(CLAIMED, handler);
    pid_t child = vfork();
    if (child == 0) {
        struct sigaction act = {.sa_handler = other_handler};
        sigaction(CLAIMED, NULL, &seen[0]);
        sigaction(CLAIMED, &act, &seen[1]);
        sigaction(CLAIMED, NULL, &seen[2]);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_ptr_eq(seen[0].sa_handler, handler);
    ck_assert_ptr_eq(seen[1].sa_handler, handler);
    ck_assert_int_eq(seen[0].sa_flags, see(CLAIMED).flags);
    ck_assert_ptr_eq(seen[2].sa_handler, other_handler);
    ck_assert_ptr_eq(see(CLAIMED).handler, handler);
}
END_TEST

START_TEST(who_goes_around_is_left_alone_until_he_gives_it_back)
{
    claim();
    struct sigaction act = {.sa_handler = other_handler, .sa_flags = SA_RESTART}, kernels;
    real_sigaction(CLAIMED, &act, &kernels);
    ck_assert(!sigaction_in_force(CLAIMED));
    ck_assert_ptr_eq(see(CLAIMED).handler, other_handler);
    ck_assert_ptr_eq(signal(CLAIMED, handler), other_handler);
    ck_assert(!sigaction_in_force(CLAIMED)); /* it may call what it found */
    real_sigaction(CLAIMED, &kernels, NULL);
    ck_assert(sigaction_in_force(CLAIMED));
    ck_assert_ptr_eq(see(CLAIMED).handler, SIG_DFL);

    real_sigaction(CLAIMED, &act, NULL);
    ck_assert_ptr_eq(signal(CLAIMED, SIG_DFL), other_handler); /* nothing is called from there */
    ck_assert(sigaction_in_force(CLAIMED));
    ck_assert_ptr_eq(see(CLAIMED).handler, SIG_DFL);
}
END_TEST

START_TEST(what_the_kernel_said_can_be_set_without_a_circle)
{
    struct sigaction kernels, old;
    claim();
    signal(CLAIMED, handler);
    real_sigaction(CLAIMED, NULL, &kernels);
    ck_assert_int_eq(sigaction(CLAIMED, &kernels, &old), 0);
    ck_assert_ptr_eq(old.sa_handler, handler);
    ck_assert_ptr_eq(see(CLAIMED).handler, handler);
    raise(CLAIMED);
    ck_assert_int_eq(handler_calls, 1);
}
END_TEST

static void *plain_info, *plain_context;

static void plain_handler(int signo, siginfo_t *info, void *ucontext)
{
    plain_info = info;
    plain_context = ucontext;
}

START_TEST(a_handler_of_one_argument_finds_the_context_too)
{
    claim();
    signal(CLAIMED, (real_handler)(void *)plain_handler);
    raise(CLAIMED);
    ck_assert_ptr_ne(plain_info, NULL);
    ck_assert_ptr_ne(plain_context, NULL);
    ck_assert_int_ne(((ucontext_t *)plain_context)->uc_mcontext.gregs[REG_RIP], 0);
}
END_TEST

static _Atomic int arrived[4], arrivals;

static void note_arrival(int signo)
{
    arrived[arrivals++ % 4] = signo;
}

/* Both pending at once: the first of them, unless that one's mask says otherwise. */
static int first_to_arrive(int signo, bool masked)
{
    struct sigaction act = {.sa_handler = note_arrival}, companion = {.sa_handler = note_arrival};
    sigset_t both;
    if (masked)
        sigaddset(&act.sa_mask, SIGWINCH);
    sigaction(signo, &act, NULL);
    sigaction(SIGWINCH, &companion, NULL);
    sigemptyset(&both);
    sigaddset(&both, signo);
    sigaddset(&both, SIGWINCH);
    sigprocmask(SIG_BLOCK, &both, NULL);
    arrivals = 0;
    raise(signo);
    raise(SIGWINCH);
    sigprocmask(SIG_UNBLOCK, &both, NULL);
    ck_assert_int_eq(arrivals, 2);
    return arrived[0] == signo;
}

START_TEST(masks_order_what_comes_together)
{
    int before = first_to_arrive(CLAIMED, false), before_masked = first_to_arrive(CLAIMED, true);
    claim();
    ck_assert_int_eq(first_to_arrive(CLAIMED, false), before);
    ck_assert_int_eq(first_to_arrive(CLAIMED, true), before_masked);
    ck_assert_int_ne(before, before_masked);
}
END_TEST

START_TEST(a_tick_never_runs_with_faults_blocked)
{
    struct sigaction act = {.sa_handler = handler}, kernels;
    claim();
    sigfillset(&act.sa_mask);
    sigaction(CLAIMED, &act, NULL);
    real_sigaction(CLAIMED, NULL, &kernels);
    ck_assert(sigismember(&kernels.sa_mask, SIGWINCH));
    ck_assert(!sigismember(&kernels.sa_mask, SIGSEGV) && !sigismember(&kernels.sa_mask, SIGBUS));
}
END_TEST

START_TEST(to_ignore_discards_what_is_pending)
{
    const real_handler wishes[] = {SIG_IGN, SIG_DFL, other_handler};
    sigset_t one, pending;
    claim();
    sigemptyset(&one);
    sigaddset(&one, CLAIMED);
    for (int i = 0; i < 3; i++) {
        signal(CLAIMED, handler);
        sigprocmask(SIG_BLOCK, &one, NULL);
        raise(CLAIMED);
        signal(CLAIMED, wishes[i]);
        sigpending(&pending);
        ck_assert_int_eq(sigismember(&pending, CLAIMED), i == 2);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
        ck_assert(sigaction_in_force(CLAIMED));
    }
    ck_assert_int_eq(handler_calls, 0);
}
END_TEST

static bool not_mine(int signo, siginfo_t *info, void *ucontext);
static _Atomic int told;
static void tell(void) { told++; }

static real_handler kernels_handler(int signo)
{
    struct sigaction kernels;
    real_sigaction(signo, NULL, &kernels);
    return kernels.sa_handler;
}

START_TEST(the_kernel_ignores_faults_that_are_ignored)
{
    signal(SIGBUS, SIG_IGN); /* as from the program before an exec */
    sigaction_on_ignored(tell);
    ck_assert_int_eq(sigaction_claim(SIGSEGV, not_mine), 0);
    ck_assert_int_eq(sigaction_claim(SIGBUS, not_mine), 0);
    ck_assert_ptr_eq(kernels_handler(SIGBUS), SIG_IGN);
    ck_assert_ptr_eq(see(SIGBUS).handler, SIG_IGN);
    ck_assert_int_eq(told, 0);
    signal(SIGSEGV, SIG_IGN);
    ck_assert_int_eq(told, 2); /* before, and after */
    ck_assert_ptr_eq(kernels_handler(SIGSEGV), SIG_IGN);
    for (int i = 0; i < 2; i++) {
        int signo = i ? SIGSEGV : SIGBUS;
        ck_assert(!sigaction_in_force(signo));
        ck_assert_ptr_eq(see(signo).handler, SIG_IGN);
        raise(signo);
        ck_assert_ptr_eq(signal(signo, handler), SIG_IGN);
        ck_assert(sigaction_in_force(signo));
        raise(signo);
        ck_assert_int_eq(handler_calls, i + 1);
    }
}
END_TEST

START_TEST(an_exec_finds_ignored_what_is_ignored)
{
    claim();
    sigaction_before_exec();
    ck_assert(sigaction_in_force(CLAIMED)); /* the default */
    signal(CLAIMED, SIG_IGN);
    ck_assert(sigaction_in_force(CLAIMED));
    sigaction_before_exec();
    ck_assert_ptr_eq(kernels_handler(CLAIMED), SIG_IGN);
    ck_assert_ptr_eq(see(CLAIMED).handler, SIG_IGN);
    sigaction_after_exec(); /* it failed */
    ck_assert(sigaction_in_force(CLAIMED));
    ck_assert_ptr_eq(see(CLAIMED).handler, SIG_IGN);
}
END_TEST

static _Atomic int setters_stop;

static void *setter(void *arg)
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART}, b = {.sa_handler = other_handler, .sa_flags = SA_ONSTACK};
    while (!setters_stop) {
        sigaction(CLAIMED, &a, NULL);
        sigaction(CLAIMED, &b, NULL);
    }
    return NULL;
}

START_TEST(no_reader_ever_sees_half_a_wish)
{
    pthread_t threads[2];
    claim();
    signal(CLAIMED, handler);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, setter, NULL);
    for (int i = 0; i < 20000; i++) {
        struct seen seen = see(CLAIMED);
        ck_assert(seen.handler == (void *)handler ? !!(seen.flags & SA_RESTART)
                                                  : seen.handler == (void *)other_handler && (seen.flags & SA_ONSTACK));
        if (i % 100 == 0)
            raise(CLAIMED);
    }
    setters_stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

static void set_again(int signo)
{
    handler_calls++;
    signal(CLAIMED, set_again);
}

START_TEST(a_handler_that_sets_itself_again_cannot_deadlock)
{
    claim();
    signal(CLAIMED, set_again);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 20000; i++) {
            kill(getppid(), CLAIMED);
            if (i % 64 == 0)
                usleep(1);
        }
        _exit(0);
    }
    while (waitpid(child, NULL, WNOHANG) == 0)
        signal(CLAIMED, set_again);
    ck_assert_int_gt(handler_calls, 0);
}
END_TEST

Suite *suite_sigaction(void)
{
    Suite *suite = suite_create("sigaction");
    TCase *tests = tcase_create("sigaction");
    if (!UNDER_TSAN) { /* its runtime puts a handler of its own in front of ours */
        tcase_set_timeout(tests, 20);
        tcase_add_test(tests, every_setter_is_reported_as_the_kernel_would);
        tcase_add_test(tests, siginterrupt_is_remembered_by_signal);
        tcase_add_test(tests, sigset_knows_what_is_held);
        tcase_add_test(tests, bad_calls_fail_alike);
        tcase_add_test(tests, act_and_old_may_be_one_object);
        tcase_add_test(tests, what_was_there_is_the_first_wish_and_comes_back);
        tcase_add_test(tests, ours_is_not_handed_on_and_keeps_errno);
        tcase_add_test(tests, the_mask_in_the_handler_is_the_kernels);
        tcase_add_test(tests, resethand_calls_once);
        tcase_add_test(tests, ignored_and_default_sigurg_do_nothing);
        tcase_add_test(tests, waiting_calls_end_only_where_the_application_said_so);
        tcase_add_test(tests, the_applications_handler_gets_the_true_fault);
        tcase_add_test(tests, the_handler_runs_on_the_stack_that_it_asked_for);
        tcase_add_test(tests, a_forked_child_owns_its_store);
        tcase_add_test(tests, a_vfork_child_does_not_write_the_store);
        tcase_add_test(tests, a_vfork_child_sees_the_wish_and_has_its_own);
        tcase_add_test(tests, who_goes_around_is_left_alone_until_he_gives_it_back);
        tcase_add_test(tests, what_the_kernel_said_can_be_set_without_a_circle);
        tcase_add_test(tests, a_handler_of_one_argument_finds_the_context_too);
        tcase_add_test(tests, masks_order_what_comes_together);
        tcase_add_test(tests, a_tick_never_runs_with_faults_blocked);
        tcase_add_test(tests, to_ignore_discards_what_is_pending);
        tcase_add_test(tests, an_exec_finds_ignored_what_is_ignored);
        tcase_add_test(tests, no_reader_ever_sees_half_a_wish);
        tcase_add_test(tests, a_handler_that_sets_itself_again_cannot_deadlock);
    }
    if (!UNDER_ASAN && !UNDER_TSAN) {
        tcase_add_test(tests, the_kernel_ignores_faults_that_are_ignored);
        tcase_add_test_raise_signal(tests, a_fault_dies_of_its_signal, SIGSEGV);
        tcase_add_test_raise_signal(tests, an_ignored_fault_dies_too, SIGSEGV);
        tcase_add_test_raise_signal(tests, a_sent_fatal_signal_kills, SIGSEGV);
        tcase_add_test_raise_signal(tests, a_fault_in_the_handler_kills_unless_nodefer, SIGSEGV);
    }
    suite_add_tcase(suite, tests);
    return suite;
}
