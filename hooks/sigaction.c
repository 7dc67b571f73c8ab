/* SPDX-License-Identifier: MIT
 *
 * For a claimed signal two things differ: what the kernel has (our dispatcher)
 * and what the application asked for (its wish). A wish lives in two copies:
 * the writer fills the idle one and then advances the version, whose lowest bit
 * names the one in use. So readers, which may be handlers, never wait, and a
 * writer that vanished in a fork leaves nothing half-written in sight.
 *
 * The surprising thing: SA_RESTART, SA_NODEFER and the mask of the kernel's action
 * follow the wish. A SIGURG handler of the application without SA_RESTART must see
 * its recv() end with EINTR (Python runs its handlers then), and signals that come
 * together must arrive in the order that its mask makes: only the kernel can do that.
 *
 * A fault's signal that the application ignores is ignored by the kernel too, for
 * that reaches the next program image, by whatever road it is made: execve, but
 * also posix_spawn and system, whose children only libc sees.
 */
#include "hooks/sigaction.h"
#include "hooks/raw.h"
#include "hooks/real.h"
#include "hooks/task.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>    /* offsetof */
#include <stdint.h>
#include <string.h>    /* memset, memcpy */
#include <ucontext.h>  /* ucontext_t */

#define SIGNALS 65                  /* 1..64 on Linux */
#define KERNEL_MASK_BYTES 8         /* the kernel's sigset */
#define SA_RESTORER_BIT 0x04000000  /* set by every libc on x86-64, reported back by the kernel */
/* What the kernel reports back (UAPI_SA_FLAGS); it drops the other bits. */
#define SA_KNOWN (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | \
                  (int)SA_RESETHAND | 0x800 | SA_RESTORER_BIT)

/* A wish is a struct sigaction as the kernel would report it, moved in words so
 * that a copy which races with a writer is torn (and then repeated), not undefined. */
#define WISH_WORDS (sizeof(struct sigaction) / sizeof(uint64_t))
_Static_assert(sizeof(struct sigaction) % sizeof(uint64_t) == 0, "a wish is whole words");

struct row {
    _Atomic(sigaction_mine) mine; /* NULL: not claimed, the call passes to libc */
    _Atomic int lock;             /* pid of the writer at work, 0: none; a dead pid after fork */
    _Atomic unsigned version;     /* wishes[version & 1] is in use */
    _Atomic uint64_t wishes[2][WISH_WORDS];
};

static struct row rows[SIGNALS];

/* What siginterrupt(3) said: bit signo-1 set means that signal(3) leaves SA_RESTART out. */
static _Atomic uint64_t interrupting;

/* The kernel's own structure: libc's differs in order and size. */
struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

static void dispatch(int signo, siginfo_t *info, void *ucontext);

static bool is_signal(int signo)
{
    return signo > 0 && signo < SIGNALS;
}

static struct row *claimed(int signo)
{
    if (!is_signal(signo) || atomic_load_explicit(&rows[signo].mine, memory_order_acquire) == NULL)
        return NULL;
    return &rows[signo];
}

/* ---- the wish ---- */

static void block_all(uint64_t *before)
{
    uint64_t all = ~(uint64_t)0;
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)before, KERNEL_MASK_BYTES);
}

static void set_mask(const uint64_t *mask)
{
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, (long)mask, 0, KERNEL_MASK_BYTES);
}

/* Signals are blocked while the lock is held, so that a handler which changes
 * the same action cannot wait for the code that it interrupted. A lock of
 * another pid was copied by fork from a thread that is not here: it is taken over. */
static void row_lock(struct row *row, uint64_t *mask)
{
    int self = real_pid();
    block_all(mask);
    for (;;) {
        int holder = atomic_load_explicit(&row->lock, memory_order_relaxed);
        if (holder != self && atomic_compare_exchange_weak_explicit(&row->lock, &holder, self, memory_order_acquire,
                                                                    memory_order_relaxed))
            return;
        raw0(SYS_sched_yield);
    }
}

static void row_unlock(struct row *row, const uint64_t *mask)
{
    atomic_store_explicit(&row->lock, 0, memory_order_release);
    set_mask(mask);
}

static struct sigaction wish_read(struct row *row)
{
    uint64_t words[WISH_WORDS];
    struct sigaction wish;
    unsigned version;
    do {
        version = atomic_load_explicit(&row->version, memory_order_acquire);
        for (unsigned i = 0; i < WISH_WORDS; i++)
            words[i] = atomic_load_explicit(&row->wishes[version & 1][i], memory_order_acquire);
    } while (atomic_load_explicit(&row->version, memory_order_relaxed) != version);
    memcpy(&wish, words, sizeof wish);
    return wish;
}

/* With the row locked. */
static void wish_write(struct row *row, const struct sigaction *wish)
{
    uint64_t words[WISH_WORDS];
    unsigned next = atomic_load_explicit(&row->version, memory_order_relaxed) + 1;
    memcpy(words, wish, sizeof words);
    for (unsigned i = 0; i < WISH_WORDS; i++)
        atomic_store_explicit(&row->wishes[next & 1][i], words[i], memory_order_release);
    atomic_store_explicit(&row->version, next, memory_order_release);
}

static bool is_function(const struct sigaction *wish)
{
    return wish->sa_handler != SIG_DFL && wish->sa_handler != SIG_IGN;
}

static bool is_of_faults(int signo)
{
    return signo == SIGSEGV || signo == SIGBUS;
}

/* The action that stands with the kernel for this wish. */
static struct sigaction front(int signo, const struct sigaction *wish)
{
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    if (wish->sa_handler == SIG_IGN && is_of_faults(signo)) {
        ours.sa_handler = SIG_IGN;
        return ours;
    }
    ours.sa_sigaction = dispatch;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    if (!is_function(wish))
        return ours;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (wish->sa_flags & (SA_RESTART | SA_NODEFER));
    ours.sa_mask = wish->sa_mask;
    if (!is_of_faults(signo)) { /* ours may read, and faults must not be blocked then */
        sigdelset(&ours.sa_mask, SIGSEGV);
        sigdelset(&ours.sa_mask, SIGBUS);
    }
    return ours;
}

/* What the kernel would report for an action that was set through libc. */
static struct sigaction as_reported(int signo, const struct sigaction *act)
{
    struct sigaction wish = *act, kernel;
    wish.sa_flags = (act->sa_flags & SA_KNOWN) | SA_RESTORER_BIT;
    sigdelset(&wish.sa_mask, SIGKILL);
    sigdelset(&wish.sa_mask, SIGSTOP);
    if (real_sigaction(signo, NULL, &kernel) == 0)
        wish.sa_restorer = kernel.sa_restorer;
    return wish;
}

/* ---- handing on ---- */

static bool is_ignored_by_default(int signo)
{
    return signo == SIGURG || signo == SIGCHLD || signo == SIGWINCH || signo == SIGCONT;
}

/* The kernel made this signal because of the instruction that just ran: it
 * cannot be ignored. (BUS_MCEERR_AO tells of a bad page that nobody touched.) */
static bool is_fault(int signo, const siginfo_t *info)
{
    if (signo == SIGBUS && info->si_code == BUS_MCEERR_AO)
        return false;
    return (signo == SIGSEGV || signo == SIGBUS) && info->si_code > 0;
}

static void restore_default(int signo)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    real_sigaction(signo, &action, NULL);
}

/* A fault happens again when we return, with its true address; anything else is
 * sent again as it came, to this thread, and acts once it is unblocked. */
static void die_by_default(int signo, siginfo_t *info)
{
    restore_default(signo);
    if (!is_fault(signo, info))
        raw4(SYS_rt_tgsigqueueinfo, real_pid(), task_tid(), signo, (long)info);
}

/* The wish as the kernel would take it for one delivery: SA_RESETHAND turns it
 * to the default for the next one. */
static struct sigaction wish_take(struct row *row, int signo)
{
    struct sigaction wish = wish_read(row);
    if (!is_function(&wish) || !(wish.sa_flags & (int)SA_RESETHAND) || !real_owns_memory())
        return wish;
    uint64_t mask;
    row_lock(row, &mask);
    wish = wish_read(row);
    if (is_function(&wish) && (wish.sa_flags & (int)SA_RESETHAND)) {
        struct sigaction next = wish, ours;
        next.sa_handler = SIG_DFL;
        wish_write(row, &next);
        ours = front(signo, &next);
        real_sigaction(signo, &ours, NULL);
    }
    row_unlock(row, &mask);
    return wish;
}

static void enter_mask(int signo, const struct sigaction *wish)
{
    uint64_t mask, self = (uint64_t)1 << (signo - 1);
    memcpy(&mask, &wish->sa_mask, sizeof mask);
    if (!(wish->sa_flags & SA_NODEFER))
        mask |= self;
    if (mask != 0)
        raw4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, 0, KERNEL_MASK_BYTES);
}

/* ---- a wish without SA_ONSTACK in a thread that has an alternate stack ----
 *
 * The kernel put our frame on the alternate stack, the wish wants its handler on
 * the interrupted one. A mere change of the stack pointer would leave our frame
 * where the next signal, seeing the alternate stack unused, writes its own. So
 * the frame moves: what the kernel would have put on the interrupted stack is
 * put there, and the handler returns to rt_sigreturn with it. */

#define RED_ZONE 128
#define FP_ALIGN 64            /* of the XSAVE area */
#define FP_LEGACY_BYTES 512
#define FP_SOFTWARE_OFFSET 464 /* struct _fpx_sw_bytes: magic1, extended_size */
#define FP_MAGIC 0x46505853u   /* FP_XSTATE_MAGIC1 */
#define KERNEL_UCONTEXT_BYTES (offsetof(ucontext_t, uc_sigmask) + KERNEL_MASK_BYTES)
#define KERNEL_INFO_BYTES 128

struct frame {
    uint8_t ucontext[(KERNEL_UCONTEXT_BYTES + 15) / 16 * 16];
    uint8_t info[KERNEL_INFO_BYTES];
} __attribute__((aligned(16)));

/* void sigaction_enter(int signo, void *info, void *ucontext, void *handler)
 * Calls handler with the stack pointer at ucontext and returns from the signal
 * with that frame. The code behind the call is what unwinders know libc's
 * restorer by. */
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".hidden sigaction_enter\n"
        ".globl sigaction_enter\n"
        ".type sigaction_enter, @function\n"
        "sigaction_enter:\n"
        "    movq %rdx, %rsp\n"
        "    xorl %eax, %eax\n"
        "    call *%rcx\n"
        "    movq $15, %rax\n"
        "    syscall\n"
        "    hlt\n"
        ".size sigaction_enter, . - sigaction_enter\n"
        ".popsection\n");
void sigaction_enter(int signo, void *info, void *ucontext, void *handler) __attribute__((visibility("hidden"), noreturn));

static size_t fp_bytes(const uint8_t *fp)
{
    uint32_t software[2];
    memcpy(software, fp + FP_SOFTWARE_OFFSET, sizeof software);
    return software[0] == FP_MAGIC ? software[1] : FP_LEGACY_BYTES;
}

/* Whether the kernel would find room there (the thread's stack may have
 * overflowed): it answers EFAULT where we would fault. */
static bool is_writable(uintptr_t from, uintptr_t to)
{
    for (uintptr_t at = from; at < to; at += 4096)
        if (raw4(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)at, KERNEL_MASK_BYTES) != 0)
            return false;
    return raw4(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)(to - KERNEL_MASK_BYTES), KERNEL_MASK_BYTES) == 0;
}

static bool is_moved_to_alternate(const struct sigaction *wish, const ucontext_t *context)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), base = (uintptr_t)context->uc_stack.ss_sp;
    return !(wish->sa_flags & SA_ONSTACK) && here - base < context->uc_stack.ss_size &&
           (uintptr_t)context->uc_mcontext.gregs[REG_RSP] - base >= context->uc_stack.ss_size;
}

/* Answers only when there is no room: then the kernel kills with SIGSEGV. */
static void call_on_interrupted_stack(int signo, const struct sigaction *wish, siginfo_t *info, ucontext_t *context)
{
    uint8_t *fp = (uint8_t *)context->uc_mcontext.fpregs;
    size_t fp_size = fp ? fp_bytes(fp) : 0;
    uintptr_t top = (uintptr_t)context->uc_mcontext.gregs[REG_RSP] - RED_ZONE;
    uintptr_t new_fp = (top - fp_size) / FP_ALIGN * FP_ALIGN;
    struct frame *frame = (struct frame *)((new_fp - sizeof *frame) / 16 * 16);
    if (!is_writable((uintptr_t)frame - 2 * sizeof(long), top))
        return;
    if (fp != NULL) {
        memcpy((void *)new_fp, fp, fp_size);
        context->uc_mcontext.fpregs = (void *)new_fp;
    }
    memcpy(frame->ucontext, context, KERNEL_UCONTEXT_BYTES);
    memcpy(frame->info, info, KERNEL_INFO_BYTES);
    enter_mask(signo, wish);
    sigaction_enter(signo, frame->info, frame->ucontext, (void *)wish->sa_sigaction);
}

/* Our own return restores the mask that the kernel saved in ucontext. Handlers of
 * one argument get all three, as on this machine from the kernel: old ones read them. */
static void call_function(int signo, const struct sigaction *wish, siginfo_t *info, void *ucontext)
{
    if (is_moved_to_alternate(wish, ucontext)) {
        call_on_interrupted_stack(signo, wish, info, ucontext);
        restore_default(SIGSEGV);
        raw3(SYS_tgkill, real_pid(), task_tid(), SIGSEGV);
        return;
    }
    enter_mask(signo, wish);
    wish->sa_sigaction(signo, info, ucontext);
}

static void hand_on(struct row *row, int signo, siginfo_t *info, void *ucontext)
{
    struct sigaction wish = wish_take(row, signo);
    if (is_function(&wish))
        call_function(signo, &wish, info, ucontext);
    else if (is_fault(signo, info) || (wish.sa_handler == SIG_DFL && !is_ignored_by_default(signo)))
        die_by_default(signo, info);
}

static void dispatch(int signo, siginfo_t *info, void *ucontext)
{
    struct row *row = &rows[signo];
    sigaction_mine mine = atomic_load_explicit(&row->mine, memory_order_acquire);
    int saved = errno;
    bool done = mine != NULL && mine(signo, info, ucontext);
    errno = saved; /* the application's handler sees, and may change, the thread's errno */
    if (!done)
        hand_on(row, signo, info, ucontext);
}

/* ---- claiming ---- */

static void *kernels_handler(int signo)
{
    struct kernel_action now;
    return raw4(SYS_rt_sigaction, signo, 0, (long)&now, KERNEL_MASK_BYTES) == 0 ? now.handler : NULL;
}

bool sigaction_in_force(int signo)
{
    return kernels_handler(signo) == (void *)dispatch;
}

/* Nobody went around us: the kernel has what it got from here. */
static bool is_undisturbed(struct row *row, int signo)
{
    void *now = kernels_handler(signo);
    if (now != (void *)SIG_IGN)
        return now == (void *)dispatch;
    return wish_read(row).sa_handler == SIG_IGN;
}

/* Takes what the kernel has as the wish and puts the dispatcher there. The wish
 * is in place first: a signal may come in between. */
static int take_over(struct row *row, int signo)
{
    struct sigaction found, ours;
    if (real_sigaction(signo, NULL, &found) != 0)
        return -errno;
    if (found.sa_sigaction == dispatch)
        return 0;
    wish_write(row, &found);
    ours = front(signo, &found);
    return real_sigaction(signo, &ours, NULL) == 0 ? 0 : -errno;
}

int sigaction_claim(int signo, sigaction_mine mine)
{
    if (!is_signal(signo) || mine == NULL)
        return -EINVAL;
    struct row *row = &rows[signo];
    sigaction_mine none = NULL;
    uint64_t mask;
    row_lock(row, &mask);
    int error = atomic_compare_exchange_strong(&row->mine, &none, mine) ? take_over(row, signo) : -EBUSY;
    if (error != 0 && error != -EBUSY)
        atomic_store(&row->mine, NULL);
    row_unlock(row, &mask);
    return error;
}

void sigaction_release(int signo)
{
    struct row *row = claimed(signo);
    if (row == NULL)
        return;
    uint64_t mask;
    row_lock(row, &mask);
    struct sigaction wish = wish_read(row);
    if (sigaction_in_force(signo))
        real_sigaction(signo, &wish, NULL);
    atomic_store(&row->mine, NULL);
    row_unlock(row, &mask);
}

/* ---- exec ---- */

static bool is_ignored_in_front(int signo)
{
    struct row *row = claimed(signo);
    return row != NULL && !is_of_faults(signo) && wish_read(row).sa_handler == SIG_IGN;
}

void sigaction_before_exec(void)
{
    struct sigaction ignore;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    for (int signo = 1; signo < SIGNALS; signo++)
        if (is_ignored_in_front(signo) && sigaction_in_force(signo))
            real_sigaction(signo, &ignore, NULL);
}

void sigaction_after_exec(void)
{
    for (int signo = 1; signo < SIGNALS; signo++)
        if (is_ignored_in_front(signo) && kernels_handler(signo) == (void *)SIG_IGN) {
            struct sigaction wish = wish_read(&rows[signo]), ours = front(signo, &wish);
            real_sigaction(signo, &ours, NULL);
        }
}

/* ---- what the application calls ---- */

static void (*_Atomic on_ignored)(void);

void sigaction_on_ignored(void (*call)(void))
{
    atomic_store_explicit(&on_ignored, call, memory_order_release);
}

/* A signal that is ignored from now on is discarded where it is pending. The
 * kernel does that when it is told to ignore it, as SIGURG's default does. */
static void discard_pending(int signo, const struct sigaction *wish)
{
    struct sigaction ignore;
    if (is_function(wish) || is_of_faults(signo) || (wish->sa_handler == SIG_DFL && !is_ignored_by_default(signo)))
        return;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    real_sigaction(signo, &ignore, NULL);
}

/* What stands with the kernel follows the wish. */
static int put_in_front(int signo, const struct sigaction *wish)
{
    struct sigaction ours = front(signo, wish);
    void (*call)(void) = atomic_load_explicit(&on_ignored, memory_order_acquire);
    bool leaves = ours.sa_handler == SIG_IGN && call != NULL;
    if (leaves)
        call();
    discard_pending(signo, wish);
    int result = real_sigaction(signo, &ours, NULL);
    if (leaves)
        call(); /* who asked the kernel just before may have been told that all is well */
    return result;
}

/* A new wish for a claimed signal. */
static int wish_set(struct row *row, int signo, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction wish = as_reported(signo, act), before;
    uint64_t mask;
    row_lock(row, &mask);
    before = wish_read(row);
    wish_write(row, &wish);
    int result = put_in_front(signo, &wish);
    row_unlock(row, &mask);
    if (old != NULL && result == 0)
        *old = before;
    return result;
}

/* A vfork child has actions of its own, but not the store; those that it has from
 * its maker are as they were wished. */
static int change_in_vfork_child(struct row *row, int signo, const struct sigaction *act, struct sigaction *old)
{
    bool inherited = sigaction_in_force(signo);
    struct sigaction wish = wish_read(row);
    int result = real_sigaction(signo, act, old);
    if (result == 0 && old != NULL && inherited)
        *old = wish;
    return result;
}

/* Somebody went around us by a system call: the kernel's action is theirs, and so
 * is the answer. Only a return to the default gives the signal back: whatever else
 * is set may call theirs, and theirs may call us, who would call what is set. */
static int change_disturbed(struct row *row, int signo, const struct sigaction *act, struct sigaction *old)
{
    if (act == NULL || act->sa_handler != SIG_DFL)
        return real_sigaction(signo, act, old);
    struct sigaction copy = *act;
    if (old != NULL && real_sigaction(signo, NULL, old) != 0)
        return -1;
    return wish_set(row, signo, &copy, NULL);
}

static int change(int signo, const struct sigaction *act, struct sigaction *old)
{
    struct row *row = claimed(signo);
    if (row == NULL)
        return real_sigaction(signo, act, old);
    if (!real_owns_memory())
        return change_in_vfork_child(row, signo, act, old);
    if (!is_undisturbed(row, signo))
        return change_disturbed(row, signo, act, old);
    if (act != NULL && act->sa_sigaction != dispatch) { /* else somebody sets what he had from the kernel: it stands */
        struct sigaction copy = *act; /* act and old may be the same object */
        return wish_set(row, signo, &copy, old);
    }
    if (old != NULL)
        *old = wish_read(row);
    return 0;
}

static real_handler set_handler(int signo, real_handler handler, int flags, bool mask_self)
{
    struct sigaction act, old;
    memset(&act, 0, sizeof act);
    act.sa_handler = handler;
    act.sa_flags = flags;
    if (mask_self)
        sigaddset(&act.sa_mask, signo);
    return change(signo, &act, &old) == 0 ? old.sa_handler : SIG_ERR;
}

/* As in libc, sigset(3) alone takes SIG_ERR for a handler. */
static bool is_refused(real_handler handler)
{
    if (handler == SIG_ERR)
        errno = EINVAL;
    return handler == SIG_ERR;
}

static real_handler bsd_handler(int signo, real_handler handler)
{
    if (claimed(signo) == NULL)
        return real_signal(signo, handler);
    if (is_refused(handler))
        return SIG_ERR;
    bool interrupt = atomic_load(&interrupting) >> (signo - 1) & 1;
    return set_handler(signo, handler, interrupt ? 0 : SA_RESTART, true);
}

static real_handler sysv_handler(int signo, real_handler handler)
{
    if (claimed(signo) == NULL)
        return real_sysv_signal(signo, handler);
    if (is_refused(handler))
        return SIG_ERR;
    return set_handler(signo, handler, (int)SA_RESETHAND | SA_NODEFER, false);
}

#define EXPORT __attribute__((visibility("default")))

int __sigaction(int signo, const struct sigaction *act, struct sigaction *old);
real_handler __sysv_signal(int signo, real_handler handler);
real_handler bsd_signal(int signo, real_handler handler);

static void (*_Atomic on_call)(void);

void sigaction_on_call(void (*call)(void))
{
    atomic_store_explicit(&on_call, call, memory_order_release);
}

EXPORT int sigaction(int signo, const struct sigaction *act, struct sigaction *old)
{
    void (*call)(void) = atomic_load_explicit(&on_call, memory_order_acquire);
    if (call)
        call();
    return change(signo, act, old);
}

EXPORT int __sigaction(int signo, const struct sigaction *act, struct sigaction *old)
{
    return change(signo, act, old);
}

EXPORT real_handler signal(int signo, real_handler handler) { return bsd_handler(signo, handler); }
EXPORT real_handler bsd_signal(int signo, real_handler handler) { return bsd_handler(signo, handler); }
EXPORT real_handler ssignal(int signo, real_handler handler) { return bsd_handler(signo, handler); }
EXPORT real_handler sysv_signal(int signo, real_handler handler) { return sysv_handler(signo, handler); }
EXPORT real_handler __sysv_signal(int signo, real_handler handler) { return sysv_handler(signo, handler); }

/* X/Open: SIG_HOLD blocks the signal and leaves its action; any other
 * disposition unblocks it. The answer is SIG_HOLD when it was blocked. */
EXPORT real_handler sigset(int signo, real_handler handler)
{
    if (claimed(signo) == NULL)
        return real_sigset(signo, handler);
    struct sigaction old;
    uint64_t bit = (uint64_t)1 << (signo - 1), before = 0;
    if (handler == SIG_HOLD) {
        if (change(signo, NULL, &old) != 0)
            return SIG_ERR;
        raw4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&bit, (long)&before, KERNEL_MASK_BYTES);
        return before & bit ? SIG_HOLD : old.sa_handler;
    }
    real_handler previous = set_handler(signo, handler, 0, false);
    if (previous == SIG_ERR)
        return SIG_ERR;
    raw4(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&bit, (long)&before, KERNEL_MASK_BYTES);
    return before & bit ? SIG_HOLD : previous;
}

EXPORT int sigignore(int signo)
{
    if (claimed(signo) == NULL)
        return real_sigignore(signo);
    return set_handler(signo, SIG_IGN, 0, false) == SIG_ERR ? -1 : 0;
}

/* libc keeps the same set for its own signal(3); ours is kept for every signal
 * from the first call on, since a signal may be claimed later. */
EXPORT int siginterrupt(int signo, int flag)
{
    if (is_signal(signo) && real_owns_memory()) {
        uint64_t bit = (uint64_t)1 << (signo - 1);
        flag ? atomic_fetch_or(&interrupting, bit) : atomic_fetch_and(&interrupting, ~bit);
    }
    if (claimed(signo) == NULL)
        return real_siginterrupt(signo, flag);
    struct sigaction act;
    if (change(signo, NULL, &act) != 0)
        return -1;
    act.sa_flags = flag ? act.sa_flags & ~SA_RESTART : act.sa_flags | SA_RESTART;
    return change(signo, &act, NULL);
}

/* 4.3BSD's, gone from the headers, but glibc still has it for old programs. */
struct sigvec {
    real_handler handler;
    int mask, flags;
};
#define SV_ONSTACK 1
#define SV_INTERRUPT 2
#define SV_RESETHAND 4

static void from_sigvec(struct sigaction *act, const struct sigvec *vec)
{
    memset(act, 0, sizeof *act);
    act->sa_handler = vec->handler;
    memcpy(&act->sa_mask, &vec->mask, sizeof vec->mask);
    act->sa_flags = (vec->flags & SV_ONSTACK ? SA_ONSTACK : 0) | (vec->flags & SV_INTERRUPT ? 0 : SA_RESTART) |
                    (vec->flags & SV_RESETHAND ? (int)SA_RESETHAND : 0);
}

static void to_sigvec(struct sigvec *vec, const struct sigaction *act)
{
    vec->handler = act->sa_handler;
    memcpy(&vec->mask, &act->sa_mask, sizeof vec->mask);
    vec->flags = (act->sa_flags & SA_ONSTACK ? SV_ONSTACK : 0) | (act->sa_flags & SA_RESTART ? 0 : SV_INTERRUPT) |
                 (act->sa_flags & (int)SA_RESETHAND ? SV_RESETHAND : 0);
}

int sigvec(int signo, const struct sigvec *vec, struct sigvec *old);
EXPORT int sigvec(int signo, const struct sigvec *vec, struct sigvec *old)
{
    struct sigaction act, before;
    if (vec != NULL)
        from_sigvec(&act, vec);
    if (change(signo, vec ? &act : NULL, &before) != 0)
        return -1;
    if (old != NULL)
        to_sigvec(old, &before);
    return 0;
}
