/* SPDX-License-Identifier: MIT
 *
 * What the tests of signals do in C, called from Python by ctypes: set actions
 * in every way that libc and the kernel have, meet real faults at known places,
 * and say what was seen, in words that are the same in every run without us.
 */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* old functions are the subject */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096
#define ODD 123 /* an offset in a page that nobody else would touch */

typedef void (*handler)(int);

static const int signals[] = {SIGSEGV, SIGBUS, SIGURG};
static const char *const signal_names[] = {"SEGV", "BUS", "URG"};
enum { SIGNALS = 3 };

static void burn(uint64_t ns)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((uint64_t)(now.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)now.tv_nsec - (uint64_t)begin.tv_nsec < ns);
}

/* ---- ways to set an action ---- */

struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

void raw_return(void) __attribute__((visibility("hidden")));
__asm__(".text\n.globl raw_return\n.hidden raw_return\nraw_return:\n    movq $15, %rax\n    syscall\n");

static int raw_action(int signo, const struct kernel_action *act, struct kernel_action *old)
{
    return (int)syscall(SYS_rt_sigaction, signo, act, old, sizeof(uint64_t));
}

static void *libc_restorer(void)
{
    static struct sigaction act;
    struct kernel_action kernel;
    if (!act.sa_restorer) {
        sigaction(SIGUSR2, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
        raw_action(SIGUSR2, NULL, &kernel);
        act.sa_restorer = (void (*)(void))kernel.restorer;
    }
    return (void *)act.sa_restorer;
}

static void on_signal(int signo, siginfo_t *info, void *context);
#define OURS ((handler)(void *)on_signal)
static void other(int signo) {}

static const char *name_of_handler(handler function)
{
    return function == SIG_DFL ? "default" : function == SIG_IGN ? "ignore" : function == OURS ? "ours"
         : function == other ? "other" : function == SIG_ERR ? "error" : function == SIG_HOLD ? "hold" : "UNKNOWN";
}

static const char *say_action(int signo)
{
    static __thread char text[2][160];
    static __thread int turn;
    struct sigaction old;
    uint64_t mask;
    void *restorer;
    memset(&old, 0, sizeof old);
    int result = sigaction(signo, NULL, &old);
    memcpy(&mask, &old.sa_mask, sizeof mask);
    restorer = (void *)old.sa_restorer;
    turn = !turn;
    snprintf(text[turn], sizeof text[0], "%d %s %x %lx %s", result, name_of_handler(old.sa_handler), (unsigned)old.sa_flags, mask,
             !restorer ? "none" : restorer == libc_restorer() ? "libc's" : restorer == (void *)raw_return ? "own" : "UNKNOWN");
    return text[turn];
}

enum way { SIGACTION, __SIGACTION, SIGNAL, BSD_SIGNAL, SSIGNAL, SYSV_SIGNAL, __SYSV_SIGNAL, SIGSET, RAW, WAYS };
static const char *const way_names[] = {"sigaction", "__sigaction", "signal", "bsd_signal", "ssignal", "sysv_signal", "__sysv_signal", "sigset", "raw"};

/* What it answers: the handler of before. */
static const char *set_action(enum way way, int signo, handler function, int flags, uint64_t mask)
{
    struct sigaction act = {.sa_handler = function, .sa_flags = flags}, old = {.sa_handler = other};
    memcpy(&act.sa_mask, &mask, sizeof mask);
    if (way == RAW) {
        struct kernel_action raw = {(void *)function, (unsigned long)flags | 0x04000000, (void *)raw_return, mask};
        return raw_action(signo, &raw, NULL) == 0 ? "" : "refused";
    }
    if (way == SIGACTION)
        return sigaction(signo, &act, &old) == 0 ? name_of_handler(old.sa_handler) : "refused";
    if (way == __SIGACTION) {
        int (*set)(int, const struct sigaction *, struct sigaction *) = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_DEFAULT, "__sigaction");
        return set(signo, &act, &old) == 0 ? name_of_handler(old.sa_handler) : "refused";
    }
    handler (*set)(int, handler) = (handler (*)(int, handler))dlsym(RTLD_DEFAULT, way_names[way]);
    return set ? name_of_handler(set(signo, function)) : "absent";
}

/* ---- faults at known places ---- */

static struct {
    char *page[2];     /* nothing to be read there: for SIGSEGV */
    char *beyond[2];   /* behind the end of a file: for SIGBUS */
    int file;
} ground;

static void make_ground(void)
{
    if (ground.file)
        return;
    ground.file = memfd_create("ground", 0);
    for (int i = 0; i < 2; i++) {
        ground.page[i] = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ground.beyond[i] = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ground.file, 0);
    }
}

static void spoil(void)
{
    for (int i = 0; i < 2; i++)
        mprotect(ground.page[i], PAGE, PROT_NONE);
    if (ftruncate(ground.file, 0) != 0)
        abort();
}

static void repair(int signo)
{
    for (int i = 0; i < 2; i++)
        mprotect(ground.page[i], PAGE, PROT_READ);
    if (signo == SIGBUS && ftruncate(ground.file, PAGE) != 0)
        abort();
}

static const char *bad_place(int signo, int which)
{
    return (signo == SIGSEGV ? ground.page : ground.beyond)[which] + ODD;
}

/* The only instruction that may fault. */
extern const char touch_begin[], touch_end[];
__asm__(".text\n.globl touch\n.hidden touch\n.hidden touch_begin\n.hidden touch_end\n.type touch, @function\n"
        "touch:\n    endbr64\ntouch_begin:\n    movb (%rdi), %al\ntouch_end:\n    ret\n");
char touch(const char *place) __attribute__((visibility("hidden")));

static void provoke(int signo)
{
    if (signo == SIGURG) {
        union sigval value = {.sival_int = 77};
        pthread_sigqueue(pthread_self(), SIGURG, value);
    } else
        touch(bad_place(signo, 0));
}

/* ---- what a handler saw ---- */

struct sight {
    int times, code, deep, errno_before;
    bool signo, info, address, pc, cr2, thread, on_alternate, value;
    uint64_t mask, interrupted_mask;
    long trap, error;
};

static __thread struct sight sight;
static __thread sigjmp_buf way_out;
static __thread pid_t expected_thread;
static __thread char *alternate;
static __thread bool jumps, nests, informed; /* informed: SA_SIGINFO, else the kernel leaves siginfo empty */

enum { ALTERNATE_BYTES = 65536 };

static uint64_t current_mask(void)
{
    uint64_t mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
    return mask;
}

static void look(int signo, siginfo_t *info, void *ucontext)
{
    ucontext_t *context = ucontext;
    greg_t *registers = context->uc_mcontext.gregs;
    char here;
    sight.signo = informed && info->si_signo == signo;
    sight.code = informed ? info->si_code : 0;
    sight.mask = current_mask();
    memcpy(&sight.interrupted_mask, &context->uc_sigmask, sizeof sight.interrupted_mask);
    sight.thread = syscall(SYS_gettid) == expected_thread;
    sight.on_alternate = alternate && &here >= alternate && &here < alternate + ALTERNATE_BYTES;
    if (signo == SIGURG) {
        sight.value = informed && info->si_value.sival_int == 77 && info->si_pid == getpid() && info->si_uid == getuid();
    } else {
        const char *place = bad_place(signo, sight.times > 1);
        sight.address = informed && info->si_addr == place;
        sight.pc = registers[REG_RIP] == (greg_t)touch_begin;
        sight.cr2 = registers[REG_CR2] == (greg_t)place;
        sight.trap = registers[REG_TRAPNO];
        sight.error = registers[REG_ERR] & 7;
    }
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
    int saved = errno;
    if (sight.times++ == 0)
        sight.errno_before = saved;
    if (nests && sight.times == 1) {
        touch(bad_place(signo, 1)); /* a fault in the handler of a fault */
        sight.deep = sight.times;
        sight.times = 1;
    }
    look(signo, info, context);
    if (jumps)
        siglongjmp(way_out, 1);
    repair(signo);
    errno = saved + 1;
}

static void say_sight(char *text, size_t size)
{
    snprintf(text, size, "%d times, deep %d, code %d, errno %d, %s%s%s%s%s%s%s, mask %lx over %lx, trap %ld %ld", sight.times, sight.deep, sight.code,
             sight.errno_before, sight.signo ? "signo " : "", sight.address ? "address " : "", sight.pc ? "pc " : "", sight.cr2 ? "cr2 " : "",
             sight.thread ? "thread " : "", sight.on_alternate ? "alternate " : "", sight.value ? "value" : "", sight.mask,
             sight.interrupted_mask, sight.trap, sight.error);
}

/* One action set, asked for, met and asked for again. */
static void meet(FILE *out, int which, enum way way, int flags, uint64_t mask, bool jump)
{
    int signo = signals[which];
    char saw[400];
    memset(&sight, 0, sizeof sight);
    expected_thread = (pid_t)syscall(SYS_gettid);
    jumps = jump;
    informed = flags & SA_SIGINFO;
    nests = signo != SIGURG && flags & SA_NODEFER && !(flags & (int)SA_RESETHAND) && !(mask >> (signo - 1) & 1) && !jump;
    const char *answer = set_action(way, signo, OURS, flags, mask);
    const char *before = say_action(signo);
    spoil();
    errno = 40;
    if (sigsetjmp(way_out, 1) == 0)
        provoke(signo);
    int error = errno;
    say_sight(saw, sizeof saw);
    fprintf(out, "%s by %s, flags %x, mask %lx%s: answered %s, is %s; saw %s; errno %d, mask %lx; is %s\n", signal_names[which], way_names[way],
            (unsigned)flags, mask, jump ? ", jumps" : "", answer, before, saw, jump ? 0 : error, current_mask(), say_action(signo));
    set_action(way, signo, SIG_DFL, 0, 0);
}

static const int flags_of_bits[] = {SA_RESTART, SA_NODEFER, (int)SA_RESETHAND, SA_ONSTACK, SA_SIGINFO};

static void meet_all(FILE *out, bool raw)
{
    const uint64_t masks[] = {0, 1ull << (SIGUSR1 - 1), ~0ull};
    make_ground();
    for (int which = 0; which < SIGNALS; which++) {
        for (int bits = 0; bits < 32; bits++) {
            int flags = 0;
            for (int bit = 0; bit < 5; bit++)
                flags |= bits >> bit & 1 ? flags_of_bits[bit] : 0;
            for (int m = 0; m < 3; m++)
                meet(out, which, raw ? RAW : bits & 1 ? SIGACTION : __SIGACTION, flags, masks[m], (bits + m) % 2);
        }
        for (int way = SIGNAL; way <= SIGSET && !raw; way++)
            for (int jump = 0; jump < 2; jump++)
                meet(out, which, (enum way)way, 0, 0, jump);
    }
}

/* ---- what is not a delivery ---- */

static _Atomic int order[16], arrivals;
static void note_arrival(int signo) { order[arrivals++ % 16] = signo; }

/* A mask in the action orders what comes together. */
static void order_of_arrival(FILE *out, int signo)
{
    const int companions[] = {SIGUSR1, SIGIO, SIGRTMIN + 3};
    for (int masked = 0; masked < 2; masked++)
        for (int i = 0; i < 3; i++) {
            struct sigaction act = {.sa_handler = note_arrival}, plain = {.sa_handler = note_arrival};
            sigset_t both, before;
            if (masked)
                sigaddset(&act.sa_mask, companions[i]);
            sigaction(signo, &act, NULL);
            sigaction(companions[i], &plain, NULL);
            sigemptyset(&both);
            sigaddset(&both, signo);
            sigaddset(&both, companions[i]);
            pthread_sigmask(SIG_BLOCK, &both, &before);
            arrivals = 0;
            pthread_kill(pthread_self(), signo);
            pthread_kill(pthread_self(), companions[i]);
            pthread_sigmask(SIG_SETMASK, &before, NULL);
            fprintf(out, "%d and companion %d%s: first %d, then %d of %d\n", signo, i, masked ? " masked" : "", order[0] == signo, order[1] == signo, arrivals);
            signal(companions[i], SIG_DFL);
            signal(signo, SIG_DFL);
        }
}

/* To ignore a signal discards it where it is pending; so does the default that ignores. */
static void pending_and_ignored(FILE *out, int signo)
{
    const handler wishes[] = {SIG_IGN, SIG_DFL, other};
    for (int i = 0; i < 3; i++) {
        sigset_t one, before, pending;
        signal(signo, note_arrival);
        sigemptyset(&one);
        sigaddset(&one, signo);
        pthread_sigmask(SIG_BLOCK, &one, &before);
        arrivals = 0;
        pthread_kill(pthread_self(), signo);
        signal(signo, wishes[i]);
        sigpending(&pending);
        int waits = sigismember(&pending, signo);
        signal(signo, note_arrival);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        fprintf(out, "%d pending, then %s: still %d, arrived %d\n", signo, name_of_handler(wishes[i]), waits, arrivals);
        signal(signo, SIG_IGN);
        pthread_kill(pthread_self(), signo);
        fprintf(out, "%d ignored: %s, arrived %d\n", signo, say_action(signo), arrivals);
        signal(signo, SIG_DFL);
    }
}

/* A vfork child has its own actions, and its maker's memory. */
static void ask_in_vfork_child(FILE *out, int signo)
{
    static char saw[4][160];
    struct sigaction act = {.sa_handler = OURS, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int status;
    sigaction(signo, &act, NULL);
    pid_t child = vfork();
    if (child == 0) {
        struct sigaction old;
        strcpy(saw[0], say_action(signo));
        sigaction(signo, &(struct sigaction){.sa_handler = other}, &old);
        strcpy(saw[1], name_of_handler(old.sa_handler));
        strcpy(saw[2], say_action(signo));
        strcpy(saw[3], name_of_handler(signal(signo, SIG_IGN)));
        _exit(7);
    }
    waitpid(child, &status, 0);
    fprintf(out, "%d in a vfork child: %s; was %s; %s; was %s; ended %d; here still %s\n", signo, saw[0], saw[1], saw[2], saw[3],
            WEXITSTATUS(status), say_action(signo));
    signal(signo, SIG_DFL);
}

static void refusals(FILE *out, int signo)
{
    int (*ignore)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "sigignore");
    for (int way = SIGNAL; way <= SIGSET; way++) {
        errno = 0;
        const char *answer = set_action((enum way)way, signo, SIG_ERR, 0, 0);
        fprintf(out, "%d by %s refused: %s, errno %d, %s\n", signo, way_names[way], answer, errno, say_action(signo));
        signal(signo, SIG_DFL);
    }
    for (int flag = 1; flag >= 0; flag--) {
        signal(signo, other);
        fprintf(out, "%d siginterrupt %d: %d", signo, flag, siginterrupt(signo, flag));
        fprintf(out, ", %s", say_action(signo));
        signal(signo, other);
        fprintf(out, ", %s\n", say_action(signo));
    }
    fprintf(out, "%d sigignore: %d", signo, ignore(signo));
    fprintf(out, ", %s\n", say_action(signo));
    for (int i = 0; i < 2; i++)
        fprintf(out, "%d held: %s\n", signo, set_action(SIGSET, signo, SIG_HOLD, 0, 0));
    fprintf(out, "%d set: %s", signo, set_action(SIGSET, signo, other, 0, 0));
    fprintf(out, ", mask %lx, %s\n", current_mask(), say_action(signo));
    signal(signo, SIG_DFL);
}

struct report {
    FILE *out;
    bool raw, with_stack;
};

static void *report_run(void *arg)
{
    struct report *report = arg;
    stack_t stack = {.ss_size = ALTERNATE_BYTES}, before;
    if (report->with_stack) {
        stack.ss_sp = alternate = malloc(ALTERNATE_BYTES);
        sigaltstack(&stack, &before);
    }
    meet_all(report->out, report->raw);
    if (report->with_stack) {
        sigaltstack(&before, NULL);
        free(alternate);
        alternate = NULL;
    }
    return NULL;
}

static _Atomic int timer_signals;
static void count_timers(int signo, siginfo_t *info, void *context) { timer_signals += info->si_code == SI_TIMER; }

/* SIGURG by the system call: the ticks of the profiler come no more, once it saw that. */
static void take_and_wait_for_silence(void)
{
    struct kernel_action act = {(void *)count_timers, SA_SIGINFO | SA_RESTART | 0x04000000, (void *)raw_return, 0};
    int before;
    raw_action(SIGURG, &act, NULL);
    do {
        before = timer_signals;
        burn(50000000);
    } while (before != timer_signals);
}

/* On the calling thread and on another, with and without an alternate stack. */
int signals_matrix(const char *path, int raw)
{
    FILE *out = fopen(path, "w");
    setvbuf(out, NULL, _IOLBF, 0); /* should it crash, the last line says where */
    libc_restorer();
    if (raw)
        take_and_wait_for_silence();
    for (int elsewhere = 0; elsewhere < 2; elsewhere++)
        for (int with_stack = 0; with_stack < 2; with_stack++) {
            struct report report = {out, raw, with_stack};
            pthread_t thread;
            fprintf(out, "--- %s thread, %s alternate stack\n", elsewhere ? "another" : "this", with_stack ? "with" : "without");
            if (!elsewhere)
                report_run(&report);
            else if (pthread_create(&thread, NULL, report_run, &report) == 0)
                pthread_join(thread, NULL);
        }
    for (int i = 0; i < SIGNALS && !raw; i++) {
        order_of_arrival(out, signals[i]);
        pending_and_ignored(out, signals[i]);
        ask_in_vfork_child(out, signals[i]);
        refusals(out, signals[i]);
    }
    return fclose(out);
}

/* ---- faults of the profiler's own: a thread state whose frame is no frame ---- */

static struct {
    pthread_t thread;
    _Atomic bool stop, up;
    int through, offset; /* where the frame pointer is; through: the offset of a structure between, or -1 */
} junk;

static void *python(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static void *junk_run(void *arg)
{
    int (*ensure)(void) = (int (*)(void))python("PyGILState_Ensure");
    void (*release)(int) = (void (*)(int))python("PyGILState_Release");
    void *(*save)(void) = (void *(*)(void))python("PyEval_SaveThread");
    void (*restore)(void *) = (void (*)(void *))python("PyEval_RestoreThread");
    char *const junks[] = {ground.page[0], ground.beyond[0], (char *)0x00dddddddddddd00ull, (char *)0xdddddddddddddd00ull, (char *)PAGE};
    int token = ensure();
    char *state = save();
    char *volatile *slot = (char *volatile *)((junk.through < 0 ? state : *(char **)(state + junk.through)) + junk.offset);
    char *frame = *slot;
    for (int i = 0; !junk.stop; i++) {
        *slot = junks[i % 5];
        junk.up = true;
        burn(1500000);
        usleep(1500); /* the pace of the change; how many there were is nobody's figure */
    }
    *slot = frame;
    restore(state);
    release(token);
    return NULL;
}

/* Until junk_end every look at this thread is a fault, in its own ticks and from outside. */
void junk_begin(int through, int offset)
{
    make_ground();
    junk.through = through;
    junk.offset = offset;
    junk.stop = junk.up = false;
    pthread_create(&junk.thread, NULL, junk_run, NULL);
    while (!junk.up)
        usleep(100); /* until it is there, however long */
}

void junk_end(void)
{
    junk.stop = true;
    pthread_join(junk.thread, NULL);
}

/* ---- handlers that end the process, that chain, that come and go ---- */

static void end_99(int signo)
{
    _exit(99);
}

/* As libraries do that cannot be chained: the next bad read of anybody ends it all. */
void take_for_good(int raw)
{
    for (int i = 0; i < 2; i++)
        set_action(raw ? RAW : SIGACTION, signals[i], end_99, 0, 0);
}

static struct kernel_action chained[SIGNALS];
static _Atomic int chain_passed;

static void chain(int signo, siginfo_t *info, void *context)
{
    if (info->si_addr == bad_place(signo, 0)) {
        repair(signo);
        return;
    }
    chain_passed++;
    ((void (*)(int, siginfo_t *, void *))chained[signo == SIGBUS].handler)(signo, info, context);
}

/* By the system call, and what it does not know goes to whoever was there before. */
int chain_raw(double seconds)
{
    struct timespec now, end;
    int faults = 0;
    make_ground();
    for (int i = 0; i < 2; i++) {
        struct kernel_action act = {(void *)chain, SA_SIGINFO | SA_ONSTACK | SA_NODEFER | 0x04000000, (void *)raw_return, 0};
        raw_action(signals[i], &act, &chained[i]);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += (long)(seconds * 1e9);
    do {
        spoil();
        touch(bad_place(SIGSEGV, 0));
        touch(bad_place(SIGBUS, 0));
        faults++;
        burn(100000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - end.tv_sec) + (double)(now.tv_nsec - end.tv_nsec) / 1e9 < 0);
    for (int i = 0; i < 2; i++)
        raw_action(signals[i], &chained[i], NULL);
    return faults;
}

int chained_faults(void)
{
    return chain_passed;
}

/* Every millisecond another action by another way, and a real fault in it. Answers the faults that went wrong. */
int change_for(double seconds, int raw)
{
    struct timespec begin, now;
    int wrong = 0;
    make_ground();
    expected_thread = (pid_t)syscall(SYS_gettid);
    jumps = nests = false;
    informed = true;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0;; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 > seconds)
            return wrong;
        int signo = signals[i % 2], flags = 0;
        for (int bit = 0; bit < 5; bit++)
            flags |= i / 2 >> bit & 1 ? flags_of_bits[bit] : 0;
        struct kernel_action before;
        raw_action(signo, NULL, &before);
        set_action(raw ? RAW : (enum way)(i % WAYS % RAW), signo, OURS, flags | SA_SIGINFO, 0);
        memset(&sight, 0, sizeof sight);
        spoil();
        touch(bad_place(signo, 0));
        wrong += !(sight.times == 1 && sight.address && sight.pc && sight.cr2 && sight.thread && sight.signo);
        if (raw)
            raw_action(signo, &before, NULL);
        else
            signal(signo, SIG_DFL);
        usleep(1000); /* the hazard: an action changed every millisecond */
    }
}

/* The real thing: nobody handles it. */
void crash(int signo)
{
    make_ground();
    spoil();
    touch(bad_place(signo, 0));
}

/* ---- waiting calls that take EINTR for a failure ---- */

static int fds[2], locked[2], slow, listening; /* slow: takes no more than one connection at a time */
static sem_t never;
static uint32_t word;
static int queue;

static int wait_poll(void) { struct pollfd fd = {fds[0], POLLIN, 0}; return poll(&fd, 1, 1); }
static int wait_ppoll(void) { struct pollfd fd = {fds[0], POLLIN, 0}; return ppoll(&fd, 1, &(struct timespec){0, 1000000}, NULL); }
static int wait_select(void) { return select(0, NULL, NULL, NULL, &(struct timeval){0, 1000}); }
static int wait_nanosleep(void) { return nanosleep(&(struct timespec){0, 1000000}, NULL); }
static int wait_clock(void) { errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, 1000000}, NULL); return errno ? -1 : 0; }
static int wait_usleep(void) { return usleep(1000); } /* the call that is tried */
static int wait_recv(void) { char byte; return (int)recv(fds[0], &byte, 1, 0); }
static int wait_read(void) { char byte; return (int)read(fds[0], &byte, 1); }
static int wait_futex(void) { return (int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){0, 1000000}, NULL, 0); }

static int wait_epoll(void)
{
    static __thread int epoll;
    if (!epoll)
        epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, 1);
}

static int wait_semaphore(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return sem_timedwait(&never, &until);
}

static int wait_sigtimedwait(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &(struct timespec){0, 1000000});
}

static int connect_to(int to, int flags)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t size = sizeof name;
    getsockname(to, (struct sockaddr *)&name, &size);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), result = connect(s, (struct sockaddr *)&name, size), error = errno;
    close(s);
    errno = error;
    return result;
}

static int listen_at(int backlog)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX}; /* the kernel makes a name up */
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(s, (struct sockaddr *)&name, sizeof(sa_family_t)) == 0 && listen(s, backlog) == 0 ? s : -1;
}

static int wait_connect(void) { return connect_to(slow, 0); }

static int wait_accept(void)
{
    int s = accept(listening, NULL, NULL), error = errno;
    if (s >= 0)
        close(s);
    errno = error;
    return s;
}

static int wait_flock(void)
{
    int result = flock(locked[1], LOCK_EX), error = errno; /* held by let_go's descriptor most of the time */
    flock(locked[1], LOCK_UN);
    errno = error;
    return result;
}

static int wait_message(void)
{
    struct { long type; char text[8]; } message;
    return (int)msgrcv(queue, &message, sizeof message.text, 1, 0);
}

static int (*const waits[])(void) = {wait_poll, wait_ppoll, wait_select, wait_nanosleep, wait_clock, wait_usleep, wait_recv, wait_read, wait_futex,
                                     wait_epoll, wait_semaphore, wait_sigtimedwait, wait_connect, wait_accept, wait_flock, wait_message};
enum { WAITS = sizeof waits / sizeof waits[0] };

static _Atomic int interrupted;
static _Atomic bool feeding;
static pthread_t feeder;

/* What the waits wait for, every millisecond; without a thread state, so without ticks. */
static void *feed(void *arg)
{
    struct { long type; char text[8]; } message = {1, "x"};
    while (feeding) {
        flock(locked[0], LOCK_EX);
        usleep(700);
        if (send(fds[1], "xx", 2, MSG_DONTWAIT) < 0 || msgsnd(queue, &message, 8, IPC_NOWAIT) < 0)
            usleep(100);
        connect_to(listening, SOCK_NONBLOCK);
        for (int s; (s = accept4(slow, NULL, NULL, SOCK_CLOEXEC)) >= 0; close(s))
            ;
        flock(locked[0], LOCK_UN);
        usleep(300);
    }
    return NULL;
}

int waits_begin(const char *file)
{
    sem_init(&never, 0, 0);
    queue = msgget(IPC_PRIVATE, 0600);
    listening = listen_at(64);
    slow = listen_at(0);
    if (listening < 0 || slow < 0 || fcntl(slow, F_SETFL, O_NONBLOCK) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
        return -1;
    for (int i = 0; i < 2; i++)
        locked[i] = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    feeding = true;
    pthread_create(&feeder, NULL, feed, NULL);
    return queue < 0 || locked[1] < 0 ? -1 : WAITS;
}

/* So often the naive call, with work before it; how often it was interrupted. */
int waits_run(int which, int times)
{
    int before = interrupted;
    for (int i = 0; i < times; i++) {
        burn(1000000);
        if (waits[which]() < 0 && errno == EINTR)
            interrupted++;
    }
    return interrupted - before;
}

void waits_end(void)
{
    feeding = false;
    pthread_join(feeder, NULL);
    msgctl(queue, IPC_RMID, NULL);
}

/* ---- SIGURG of the application, beside ours ---- */

static _Atomic int urgent, strangers, timed;

static void on_urgent(int signo, siginfo_t *info, void *context)
{
    if (info->si_code == SI_TKILL && info->si_pid == getpid())
        urgent++;
    else if (info->si_code == SI_TIMER && info->si_value.sival_int == 77)
        timed++;
    else
        strangers++;
}

static void hear_urgent(void)
{
    struct sigaction act = {.sa_sigaction = on_urgent, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGURG, &act, NULL);
    urgent = strangers = timed = 0;
}

/* One after the other to a thread, each waited for: how many never came. */
int urgent_lost(unsigned long thread, int times)
{
    struct timespec begin, now;
    int lost = 0;
    hear_urgent();
    for (int i = 1; i <= times; i++) {
        int before = urgent;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        pthread_kill((pthread_t)thread, SIGURG);
        do {
            sched_yield();
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while (urgent == before && now.tv_sec - begin.tv_sec < 3);
        lost += urgent == before;
    }
    return lost;
}

int urgent_strangers(void)
{
    return strangers;
}

/* A timer of the application that sends SIGURG: its signals are the application's. How many came, -1: also others. */
int urgent_timed(int times)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG, .sigev_value.sival_int = 77};
    struct itimerspec period = {{0, 1000000}, {0, 1000000}};
    timer_t timer;
    hear_urgent();
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &period, NULL) != 0)
        return -2;
    while (timed < times)
        burn(1000000);
    timer_delete(timer);
    return strangers ? -1 : timed >= times;
}
