/* SPDX-License-Identifier: MIT
 *
 * last_call: preloaded behind the profiler, it notes on stdout when the profiler
 * has let go of a process that ends: what is left then is the kernel's.
 */
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void note(void)
{
    char text[64];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int length = snprintf(text, sizeof text, "%ld.%06ld\n", (long)now.tv_sec, now.tv_nsec / 1000);
    if (write(1, text, (size_t)length) != length)
        return;
}

void _exit(int status)
{
    note();
    for (;;)
        syscall(SYS_exit_group, status);
}

int execv(const char *path, char *const argv[])
{
    note();
    return (int)syscall(SYS_execve, path, argv, (char *[]){NULL});
}

__attribute__((destructor)) static void end(void)
{
    note();
}
