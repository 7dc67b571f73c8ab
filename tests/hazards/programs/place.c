/* SPDX-License-Identifier: MIT
 *
 * place: takes things away from a program, then becomes it. Linked statically: it
 * is in no preload's way, and runs in any root.
 *
 *     place ITEM... -- command [argument...]
 *
 *     deny:CALL:HOW          the system call number CALL fails with errno HOW, or
 *                            HOW is kill (the process) or killthread
 *     deny:CALL/ARG/MASK/VALUE:HOW   only where argument ARG and MASK is VALUE
 *     allow:CALL             with at least one of these, whatever is not allowed kills
 *     close:FD               closed
 *     limit:RESOURCE:VALUE   setrlimit, both limits
 *     death:SIGNAL           prctl(PR_SET_PDEATHSIG)
 *     deadline               SCHED_DEADLINE, 10 ms of 20
 *     parent                 stays as parent, and ends as the command does
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 1024 };

static struct sock_filter filter[ROOM];
static unsigned length;
static int allows, stays_parent;

static void fail(const char *what)
{
    fprintf(stderr, "place: %s: %s\n", what, strerror(errno));
    _exit(126);
}

static void add(uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    if (length == ROOM) {
        errno = E2BIG;
        fail("filter");
    }
    filter[length++] = (struct sock_filter)BPF_JUMP(code, k, yes, no);
}

static void load(size_t offset)
{
    add(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static uint32_t verdict(const char *how)
{
    if (strcmp(how, "kill") == 0)
        return SECCOMP_RET_KILL_PROCESS;
    if (strcmp(how, "killthread") == 0)
        return SECCOMP_RET_KILL_THREAD;
    return SECCOMP_RET_ERRNO | (uint32_t)atoi(how);
}

static void deny(char *item)
{
    unsigned call, argument, mask, value;
    char *how = strrchr(item, ':');
    *how++ = '\0';
    int given = sscanf(item, "%u/%u/%u/%u", &call, &argument, &mask, &value);
    load(offsetof(struct seccomp_data, nr));
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, given == 4 ? 4 : 1);
    if (given == 4) {
        load(offsetof(struct seccomp_data, args) + 8 * argument);
        add(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
        add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    }
    add(BPF_RET | BPF_K, verdict(how), 0, 0);
}

static void allow(uint32_t call)
{
    load(offsetof(struct seccomp_data, nr));
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    allows = 1;
}

static void set_limit(const char *item)
{
    unsigned resource;
    unsigned long value;
    if (sscanf(item, "%u:%lu", &resource, &value) != 2)
        fail(item);
    struct rlimit limit = {value, value};
    if (setrlimit(resource, &limit) != 0)
        fail(item);
}

static void become_deadline(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } wish = {.size = 48, .policy = 6, .runtime = 10000000, .deadline = 20000000, .period = 20000000};
    if (syscall(SYS_sched_setattr, 0, &wish, 0) != 0)
        fail("deadline");
}

static void take_item(char *item)
{
    if (strncmp(item, "deny:", 5) == 0)
        deny(item + 5);
    else if (strncmp(item, "allow:", 6) == 0)
        allow((uint32_t)atoi(item + 6));
    else if (strncmp(item, "close:", 6) == 0)
        close(atoi(item + 6));
    else if (strncmp(item, "limit:", 6) == 0)
        set_limit(item + 6);
    else if (strncmp(item, "death:", 6) == 0)
        prctl(PR_SET_PDEATHSIG, atoi(item + 6));
    else if (strcmp(item, "deadline") == 0)
        become_deadline();
    else if (strcmp(item, "parent") == 0)
        stays_parent = 1;
    else
        fail(item);
}

static void install(void)
{
    if (length == 0)
        return;
    add(BPF_RET | BPF_K, allows ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW, 0, 0);
    struct sock_fprog program = {(unsigned short)length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        fail("seccomp");
}

static int wait_for(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child)
        fail("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    int at = 1;
    for (; at < argc && strcmp(argv[at], "--") != 0; at++)
        take_item(argv[at]);
    if (at + 1 >= argc) {
        errno = EINVAL;
        fail("no command");
    }
    pid_t child = stays_parent ? fork() : 0;
    if (child != 0)
        return wait_for(child);
    install();
    execvp(argv[at + 1], argv + at + 1);
    fail(argv[at + 1]);
}
