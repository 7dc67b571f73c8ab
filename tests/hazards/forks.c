/* SPDX-License-Identifier: MIT
 *
 * Forks, spawns and execs that Python's own functions do not make, for
 * tests/hazards/programs/forks.py: loaded with ctypes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* --- forks --- */

/* A fork of libc's: what C libraries do, without Python's hooks. */
pid_t c_fork(void)
{
    return fork();
}

/* A fork past libc: no atfork handler runs. */
pid_t raw_fork(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
}

static void burn(long ns)
{
    struct timespec now;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec * 1000000000 + now.tv_nsec < ns);
}

static int wait_for(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

struct forker {
    pthread_t thread;
    int forks, burners, wrong;
};

/* Every second child ends at once, the others use some CPU first. */
static void *fork_often(void *arg)
{
    struct forker *forker = arg;
    for (int n = 0; n < forker->forks; n++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (n & 1)
                burn(2000000);
            else
                execl("/", "/", (char *)NULL); /* fails: still a process that is counted */
            _exit(n & 63);
        }
        int status = pid > 0 ? wait_for(pid) : -1;
        forker->wrong += !(WIFEXITED(status) && WEXITSTATUS(status) == (n & 63));
    }
    return NULL;
}

/* Threads that fork at the same time: how many children ended otherwise than they should. */
int fork_together(int threads, int forks)
{
    struct forker forkers[16] = {{0}};
    int wrong = 0;
    for (int i = 0; i < threads; i++) {
        forkers[i].forks = forks;
        if (pthread_create(&forkers[i].thread, NULL, fork_often, &forkers[i]) != 0)
            return -1;
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(forkers[i].thread, NULL);
        wrong += forkers[i].wrong;
    }
    return wrong;
}

static _Atomic int handler_forks, handler_wrong;

/* fork in a handler of C's: the child ends, the parent waits. */
static void on_signal(int signo)
{
    int saved = errno;
    pid_t pid = fork();
    if (pid == 0)
        _exit(9);
    int status = pid > 0 ? wait_for(pid) : -1;
    handler_forks++;
    handler_wrong += !(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    errno = saved;
}

void fork_on(int signo)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(signo, &action, NULL);
}

int handler_result(int *wrong)
{
    *wrong = handler_wrong;
    return handler_forks;
}

/* --- what others spend around a fork ---
 *
 * Preloaded behind the profiler, this library's constructor runs before the
 * profiler's: of the handlers that it registers, prepare runs after all others and
 * parent before them. Those of watch_forks, registered last, are the other end. */

enum { WATCHED = 4096 };
static long watched[WATCHED];
static int watched_count = -1; /* not watching */
static struct timespec mark;

static void mark_now(void)
{
    clock_gettime(CLOCK_MONOTONIC, &mark);
}

static void add_since_mark(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (watched_count >= 0 && watched_count < WATCHED)
        watched[watched_count] += (now.tv_sec - mark.tv_sec) * 1000000000 + now.tv_nsec - mark.tv_nsec;
}

static void end_of_parent(void)
{
    add_since_mark();
    watched_count++;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(add_since_mark, mark_now, NULL);
}

void watch_forks(void)
{
    watched_count = 0;
    pthread_atfork(mark_now, end_of_parent, NULL);
}

/* Nanoseconds, a fork each; how many. */
int watched_forks(long *spent, int most)
{
    int count = watched_count < most ? watched_count : most;
    memcpy(spent, watched, (size_t)count * sizeof *spent);
    return count;
}

/* --- storms --- */

static _Atomic int storm_over;
static _Atomic long storm_rounds[3];
static pthread_t storm_threads[3];
static const char *storm_library;

static void *storm_malloc(void *arg)
{
    void *blocks[64] = {0};
    unsigned n = 1;
    while (!storm_over) {
        n = n * 1103515245u + 12345u;
        unsigned at = n >> 20 & 63;
        free(blocks[at]);
        blocks[at] = malloc(n >> 8 & 0x3ffff);
        storm_rounds[0]++;
    }
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    return NULL;
}

static void *storm_dlopen(void *arg)
{
    while (!storm_over) {
        void *handle = dlopen(storm_library, RTLD_NOW | RTLD_LOCAL);
        if (handle)
            dlclose(handle);
        storm_rounds[1] += handle != NULL;
    }
    return NULL;
}

static void *nothing(void *arg)
{
    return arg;
}

static void *storm_create(void *arg)
{
    while (!storm_over) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) == 0) {
            pthread_join(thread, NULL);
            storm_rounds[2]++;
        }
    }
    return NULL;
}

void storm_begin(const char *library)
{
    static void *(*const runs[3])(void *) = {storm_malloc, storm_dlopen, storm_create};
    storm_library = strdup(library);
    for (int i = 0; i < 3; i++)
        pthread_create(&storm_threads[i], NULL, runs[i], NULL);
}

/* How many of the three did anything. */
int storm_busy(void)
{
    int busy = 0;
    for (int i = 0; i < 3; i++)
        busy += storm_rounds[i] > 0;
    return busy;
}

void storm_end(void)
{
    storm_over = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(storm_threads[i], NULL);
}

/* --- vfork and exec --- */

/* vfork: an exec that works, one that fails, an end at once. The wait status. */
int vfork_exec(const char *path, char **argv)
{
    pid_t pid = vfork();
    if (pid == 0) {
        execv(path, argv);
        _exit(100 + (errno & 63));
    }
    return wait_for(pid);
}

int vfork_exit(int status)
{
    pid_t pid = vfork();
    if (pid == 0)
        _exit(status);
    return wait_for(pid);
}

/* Every function of the exec family on something that cannot be executed; the
 * error numbers, in order. Those that search give what is no program to a shell:
 * left out where that would succeed. */
int exec_all(const char *path, char **argv, int searching, int *errors)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), n = 0;
#define TRY(call)            \
    do {                     \
        errno = 0;           \
        call;                \
        errors[n++] = errno; \
    } while (0)
    TRY(execl(path, argv[0], argv[1], (char *)NULL));
    TRY(execle(path, argv[0], argv[1], (char *)NULL, environ));
    TRY(execv(path, argv));
    TRY(execve(path, argv, environ));
    TRY(fexecve(fd, argv, environ));
    TRY(execveat(AT_FDCWD, path, argv, environ, 0));
    if (searching) {
        TRY(execlp(path, argv[0], argv[1], (char *)NULL));
        TRY(execvp(path, argv));
        TRY(execvpe(path, argv, environ));
    }
#undef TRY
    if (fd >= 0)
        close(fd);
    return n;
}

/* The forms that Python lacks, where they work. */
void exec_by_fd(const char *path, char **argv, int at)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (at)
        execveat(fd, "", argv, environ, AT_EMPTY_PATH);
    else
        fexecve(fd, argv, environ);
}
