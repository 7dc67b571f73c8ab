# SPDX-License-Identifier: MIT
"""passed: calls libc a known number of times and prints what company_nosy counted.

    passed calls          everything that returns
    passed end WAY        ends by exit, _exit, quick_exit, execv, execl, ...
"""
import ctypes
import os
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
TIMES = 3


def counted(name, call):
    before = libc.nosy_calls(name.encode())
    for _ in range(TIMES):
        call()
    return "%s %d" % (name, libc.nosy_calls(name.encode()) - before)


def fork_and_wait():
    pid = libc.fork()
    if pid == 0:
        libc._exit(0)
    os.waitpid(pid, 0)


def start_thread():
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


def spawn_and_wait():
    pid = ctypes.c_int()
    libc.posix_spawn(ctypes.byref(pid), b"/bin/true", None, None, (ctypes.c_char_p * 2)(b"true", None), (ctypes.c_char_p * 1)(None))
    os.waitpid(pid.value, 0)


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))


def calls():
    room = ctypes.create_string_buffer(256)
    burn(0.2)
    print(counted("sigaction", lambda: libc.sigaction(12, None, room)))
    print(counted("signal", lambda: libc.signal(12, None)))
    print(counted("pthread_sigmask", lambda: libc.pthread_sigmask(0, None, room)))
    print(counted("sigprocmask", lambda: libc.sigprocmask(0, None, room)))
    print(counted("pthread_create", start_thread))
    print(counted("fork", fork_and_wait))
    print(counted("posix_spawn", spawn_and_wait))
    burn(0.1)
    asked = "malloc calloc realloc free openat open close read write pread pwrite mmap munmap mremap madvise mprotect fstat getpid clock_gettime ftruncate"
    print("libaprof itself asks for", {name: libc.nosy_ours(name.encode()) for name in asked.split() if libc.nosy_ours(name.encode())})


def end(way):
    true = b"/bin/true"
    words = (ctypes.c_char_p * 2)(true, None)
    environment = (ctypes.c_char_p * 1)(None)
    {"exit": lambda: libc.exit(3), "_exit": lambda: libc._exit(3), "quick_exit": lambda: libc.quick_exit(3),
     "execv": lambda: libc.execv(true, words), "execvp": lambda: libc.execvp(b"true", words),
     "execve": lambda: libc.execve(true, words, environment), "execl": lambda: libc.execl(true, true, None),
     "execlp": lambda: libc.execlp(b"true", true, None),
     "execle": lambda: libc.execle(true, true, None, environment)}[way]()


end(sys.argv[2]) if sys.argv[1] == "end" else calls()
