/* SPDX-License-Identifier: MIT
 *
 * The caller blocks its own signals while the thread is made, for a new thread
 * inherits the mask: no signal of the application can land on it in between.
 */
#include "hooks/task.h"
#include "hooks/clock.h"
#include "hooks/futex.h"
#include "hooks/log.h"
#include "hooks/raw.h"
#include "hooks/real.h"

#include <errno.h>
#include <fcntl.h>            /* O_RDWR */
#include <linux/capability.h> /* capset's structures */
#include <linux/close_range.h>
#include <link.h>             /* dl_iterate_phdr */
#include <sched.h>            /* SCHED_OTHER */
#include <signal.h>
#include <string.h>           /* memset */
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define STACK_BYTES (256u * 1024u) /* beside what libc takes of it for thread-local data */
#define PAGE 4096u
#define KERNEL_MASK_BYTES 8
#define CAPABILITIES 64 /* as many bits has a set; a filter may answer 0 to whatever is asked */
#define SLICE_NS 100000 /* the shortest that the kernel takes */

struct sched_attributes { /* include/uapi/linux/sched/types.h, struct sched_attr, first version */
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* A real-time application starts threads that are as urgent as it is. */
static void be_ordinary(int policy)
{
    int priority = 0;
    if (policy == SCHED_FIFO || policy == SCHED_RR)
        raw3(SYS_sched_setscheduler, 0, SCHED_OTHER, (long)&priority);
}

/* On Linux 6.12 and later a thread may ask for a shorter slice than the usual 3 ms
 * and then need not wait for those of others: ticks come on time, and a fork that
 * waits for us waits less. No more CPU time, and no privilege. Earlier kernels
 * ignore it. */
static void ask_for_short_slices(void)
{
    struct sched_attributes attributes = {.size = sizeof attributes};
    if (raw4(SYS_sched_getattr, 0, (long)&attributes, sizeof attributes, 0) != 0 || attributes.policy != SCHED_OTHER)
        return;
    attributes.size = sizeof attributes;
    attributes.runtime = SLICE_NS;
    raw3(SYS_sched_setattr, 0, (long)&attributes, 0);
}

static void *task_main(void *arg)
{
    struct task *task = arg;
    task->tid = task_tid();
    raw6(SYS_prctl, PR_SET_NAME, (long)"aprof", 0, 0, 0, 0);
    be_ordinary((int)raw1(SYS_sched_getscheduler, 0));
    ask_for_short_slices();
    raw6(SYS_prctl, PR_SET_TIMERSLACK, 1, 0, 0, 0, 0); /* not woken together with the application's own timers: it would meet it waking */
    task->run(task->arg);
    atomic_store(&task->ended, 1);
    futex_wake(&task->ended);
    return NULL;
}

bool task_was_killed(const struct task *task)
{
    pid_t tid = atomic_load(&task->tid);
    return tid != 0 && raw3(SYS_tgkill, real_pid(), tid, 0) == -ESRCH && atomic_load(&task->ended) == 0;
}

/* All but the signals of guarded reads and libc's own (it unblocks them itself only
 * before the first thread of a process, not of a forked one). */
static uint64_t blocked_mask(void)
{
    return ~((uint64_t)1 << (SIGSEGV - 1) | (uint64_t)1 << (SIGBUS - 1) | REAL_LIBC_SIGNALS);
}

static int start_masked(struct task *task, const pthread_attr_t *attr)
{
    pthread_t thread;
    uint64_t mask = blocked_mask(), before;
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, (long)&before, KERNEL_MASK_BYTES);
    int error = real_pthread_create(&thread, attr, task_main, task);
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, KERNEL_MASK_BYTES);
    return -error;
}

static int add_tls(struct dl_phdr_info *info, size_t size, void *bytes)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            *(size_t *)bytes += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
    return 0;
}

/* libc lays the thread-local data of all that was loaded at start into each stack.
 * Counted once: later the loader's lock may be somebody's. */
static size_t stack_bytes(void)
{
    static size_t tls;
    if (tls == 0)
        dl_iterate_phdr(add_tls, &tls);
    return STACK_BYTES + (tls + PAGE - 1) / PAGE * PAGE;
}

int task_start(struct task *task, void (*run)(void *), void *arg)
{
    pthread_attr_t attr;
    task->run = run;
    task->arg = arg;
    atomic_store(&task->ended, 0);
    int error = -pthread_attr_init(&attr);
    if (error != 0)
        return error;
    error = -pthread_attr_setstacksize(&attr, stack_bytes());
    if (error == 0)
        error = -pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (error == 0)
        error = start_masked(task, &attr);
    pthread_attr_destroy(&attr);
    return error;
}

/* The thread has left run(), but not yet the process: whoever counts threads
 * (Python does after a fork) would still see it. */
static bool wait_until_gone(pid_t tid, uint64_t deadline_ns)
{
    while (raw3(SYS_tgkill, real_pid(), tid, 0) == 0) {
        if (clock_now() >= deadline_ns)
            return false;
        raw0(SYS_sched_yield);
    }
    return true;
}

bool task_join(struct task *task, uint64_t deadline_ns)
{
    while (atomic_load(&task->ended) == 0)
        if (!futex_wait(&task->ended, 0, deadline_ns) && atomic_load(&task->ended) == 0)
            return false;
    return wait_until_gone(task->tid, deadline_ns);
}

/* The table is replaced in one call: a copy of the shared one would hold the
 * application's files open for a moment, and keep a pipe's reader waiting. */
bool task_unshare_descriptors(void)
{
    if (raw3(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE) != 0)
        return false;
    for (int fd = 0; fd <= 2; fd++)
        raw4(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR, 0); /* the lowest free number each time */
    return true;
}

void task_close_descriptors(void)
{
    raw3(SYS_close_range, 3, ~0u, 0);
}

void task_drop_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    if (raw2(SYS_capget, (long)&header, (long)none) != 0)
        memset(none, 0, sizeof none);
    none[0].permitted = none[0].effective &= 1u << CAP_SETUID | 1u << CAP_SETGID;
    none[0].inheritable = none[1].permitted = none[1].effective = none[1].inheritable = 0;
    for (int one = 0; one < CAPABILITIES && raw6(SYS_prctl, PR_CAPBSET_DROP, one, 0, 0, 0, 0) == 0;) /* needs one of those that go next */
        one++;
    raw2(SYS_capset, (long)&header, (long)none);
}

/* Which of the two may be used now, as bits; 0 also where it is not known. */
static uint32_t identity_rights(pid_t tid)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, tid};
    struct __user_cap_data_struct data[2];
    if (raw2(SYS_capget, (long)&header, (long)data) != 0)
        return 0;
    return data[0].effective & (1u << CAP_SETUID | 1u << CAP_SETGID);
}

bool task_may_change_identity_like(pid_t tid)
{
    return identity_rights(0) == identity_rights(tid);
}

pid_t task_tid(void)
{
    return (pid_t)raw0(SYS_gettid);
}

/* A file of /proc about one thread of ours; the length, 0: not readable. */
static size_t read_about(pid_t tid, const char *name, char *text, size_t size)
{
    char path[64];
    log_format(path, sizeof path, "/proc/self/task/%d/%s", (int)tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, size - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

static char state_of(pid_t tid)
{
    char text[512]; /* "TID (name of at most 15 bytes) R ..." */
    size_t length = read_about(tid, "stat", text, sizeof text);
    while (length > 0 && text[length - 1] != ')') /* a name may hold anything, ')' too */
        length--;
    return length > 0 && text[length] == ' ' ? text[length + 1] : '\0';
}

bool task_is_runnable(pid_t tid)
{
    return state_of(tid) == 'R';
}

/* "202 0x7f00... 0x80 ..." while it is in a system call, "running" or "-1 ..." else. */
bool task_futex(pid_t tid, uintptr_t *futex)
{
    char text[256], *at;
    if (!read_about(tid, "syscall", text, sizeof text) || text[0] < '0' || text[0] > '9')
        return false;
    long number = 0;
    for (at = text; *at >= '0' && *at <= '9'; at++)
        number = number * 10 + *at - '0';
    if (number != SYS_futex || strncmp(at, " 0x", 3) != 0)
        return false;
    *futex = 0;
    for (at += 3; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
        *futex = *futex << 4 | (uintptr_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    return true;
}

/* "CPU DELAY SLICES" */
bool task_run_delay(pid_t tid, uint64_t *ns)
{
    char text[96], *at = text;
    if (!read_about(tid, "schedstat", text, sizeof text))
        return false;
    while (*at >= '0' && *at <= '9')
        at++;
    if (at == text || *at != ' ')
        return false;
    *ns = 0;
    for (at++; *at >= '0' && *at <= '9'; at++)
        *ns = *ns * 10 + (uint64_t)(*at - '0');
    return *at == ' ';
}

size_t task_name(pid_t tid, char name[TASK_NAME_BYTES])
{
    char text[TASK_NAME_BYTES + 1]; /* a newline behind it */
    size_t length = read_about(tid, "comm", text, sizeof text);
    if (length > 0 && text[length - 1] == '\n')
        length--;
    memcpy(name, text, length);
    return length;
}

/* A thread that has ended has no memory, and so no program: asked first, for its
 * state is a long text that the kernel gathers from everywhere. */
static bool has_no_program(pid_t tid)
{
    char path[64], program[16];
    log_format(path, sizeof path, "/proc/self/task/%d/exe", (int)tid);
    return readlink(path, program, sizeof program) < 0;
}

bool task_is_last(void)
{
    return task_count() == 2 && has_no_program(real_pid()) && state_of(real_pid()) == 'Z';
}

uint32_t task_count(void)
{
    struct stat threads; /* a folder has a link for each folder in it, and two of its own */
    return fstatat(AT_FDCWD, "/proc/self/task", &threads, 0) == 0 && threads.st_nlink > 2 ? (uint32_t)threads.st_nlink - 2 : 0;
}

bool task_blocks(pid_t tid, int signo)
{
    static const char label[] = "\nSigBlk:\t";
    char text[4096];
    uint64_t mask = 0;
    if (!read_about(tid, "status", text, sizeof text))
        return false;
    const char *digit = strstr(text, label);
    for (digit = digit ? digit + sizeof label - 1 : ""; *digit && *digit != '\n'; digit++)
        mask = mask << 4 | (uint64_t)(*digit <= '9' ? *digit - '0' : *digit - 'a' + 10);
    return mask >> (signo - 1) & 1;
}

bool task_unshare_root(void)
{
    return raw1(SYS_unshare, CLONE_FS) == 0;
}
