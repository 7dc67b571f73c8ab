/* SPDX-License-Identifier: MIT
 *
 * ends: ways to end a process that Python has no words for, called by ctypes.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int later_status;

static void say(const char *text, size_t length)
{
    if (write(1, text, length) != (ssize_t)length)
        _exit(99);
}
#define SAY(text) say(text "\n", sizeof text)

static void again(void)
{
    SAY("exit again");
    exit(later_status);
}

/* exit, and exit once more by one of its handlers. */
void ends_exit_again(int first, int second)
{
    later_status = second;
    atexit(again);
    exit(first);
}

void ends_abort_at_exit(void)
{
    atexit(abort);
}

static void quickly(void)
{
    SAY("at_quick_exit");
}

void ends_quick_exit(int status)
{
    at_quick_exit(quickly);
    quick_exit(status);
}

static void exit_here(int signo)
{
    exit(later_status);
}

static void _exit_here(int signo)
{
    _exit(later_status);
}

/* A signal's handler ends the process, by exit or by _exit. */
void ends_on_signal(int signo, int at_once, int status)
{
    struct sigaction action = {.sa_handler = at_once ? _exit_here : exit_here};
    later_status = status;
    sigaction(signo, &action, NULL);
}

static pthread_barrier_t together;

static void *exit_together(void *unused)
{
    pthread_barrier_wait(&together);
    _exit(later_status);
}

/* Four threads, and none is the first. */
void ends_all_at_once(int status)
{
    pthread_t thread;
    later_status = status;
    pthread_barrier_init(&together, NULL, 4);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread, NULL, exit_together, NULL);
    for (;;)
        pause();
}

static void fork_now(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        exit(0); /* the handlers that are left, again */
    if (waitpid(child, &status, 0) == child && status == 0)
        SAY("a child, at exit");
}

void ends_fork_at_exit(void)
{
    atexit(fork_now);
}

static void exec_now(void)
{
    execl("/bin/echo", "echo", "another program, at exit", (char *)NULL);
}

void ends_exec_at_exit(void)
{
    atexit(exec_now);
}

void ends_main_thread(void)
{
    pthread_exit(NULL);
}
