#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What Python does with signals: signals_py.py LIBRARY WHAT. Says the same in every run."""
import asyncio
import ctypes
import faulthandler
import os
import signal
import socket
import sys
import tempfile
import threading
import time

OURS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGURG)  # those that a profiler stands in front of
lib = ctypes.CDLL(sys.argv[1])
lib.urgent_lost.argtypes = [ctypes.c_ulong, ctypes.c_int]


def busy(seconds):
    """So much CPU time of this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


class Beside:
    """Python threads that compute beside."""

    def __init__(self, count=1):
        self.stop = False
        self.threads = [threading.Thread(target=self.work) for _ in range(count)]

    def work(self):
        while not self.stop:
            busy(0.002)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        for thread in self.threads:
            thread.join()


def name_of(handler):
    return getattr(handler, "__name__", str(handler))


def handlers():
    """signal.signal and getsignal in every order, each sent signal handled once."""
    count = dict.fromkeys(OURS, 0)

    def on_signal(signo, frame):
        count[signo] += 1
    for signo in OURS:
        print(name_of(signal.getsignal(signo)), name_of(signal.signal(signo, on_signal)), name_of(signal.getsignal(signo)))
    for i in range(20):
        busy(0.002)
        for signo in OURS:
            os.kill(os.getpid(), signo)
            signal.raise_signal(signo)
            signal.pthread_kill(threading.get_ident(), signo)
    print([count[signo] for signo in OURS])
    for signo in OURS:
        print(name_of(signal.signal(signo, signal.SIG_IGN)), name_of(signal.getsignal(signo)))
        os.kill(os.getpid(), signo)
        print(name_of(signal.signal(signo, signal.SIG_DFL)), name_of(signal.getsignal(signo)))
    print([count[signo] for signo in OURS])


def faults():
    """faulthandler on and off and on; its dumps, and its handlers for other signals, chained ones included."""
    seen = []
    signal.signal(signal.SIGURG, lambda *_: seen.append("urgent"))
    with tempfile.TemporaryFile() as out:
        for i in range(10):
            faulthandler.enable(out)
            busy(0.004)
            print(faulthandler.is_enabled(), end=" ")
            faulthandler.disable()
            print(faulthandler.is_enabled(), end=" ")
        faulthandler.enable(out)
        for chain in (False, True):
            faulthandler.register(signal.SIGURG, out, chain=chain)
            os.kill(os.getpid(), signal.SIGURG)
            busy(0.01)
            print(faulthandler.unregister(signal.SIGURG))
        faulthandler.dump_traceback_later(0.02, repeat=True, file=out)
        while os.fstat(out.fileno()).st_size < 2000:
            busy(0.005)
        faulthandler.cancel_dump_traceback_later()
        out.seek(0)
        text = out.read()
        print(seen, b"Timeout" in text, b"Fatal" in text, b"in faults" in text)
    with open(os.devnull, "wb") as null:
        faulthandler.enable(null)
        faulthandler.dump_traceback(null)


def loops():
    """asyncio's handlers: every signal that was sent is handled, in a loop that is woken by it."""
    async def main():
        loop, arrived, count = asyncio.get_running_loop(), asyncio.Event(), [0]

        def on_signal():
            count[0] += 1
            arrived.set()
        for signo in (signal.SIGURG, signal.SIGUSR1, signal.SIGTERM):
            loop.add_signal_handler(signo, on_signal)
            for i in range(20):
                arrived.clear()
                loop.call_soon(os.kill, os.getpid(), signo)
                await asyncio.wait_for(arrived.wait(), 30)
                busy(0.001)
            print(count[0], loop.remove_signal_handler(signo), name_of(signal.getsignal(signo)))
    asyncio.run(main())


def wakeups():
    """A byte for each signal, and for no other."""
    here, there = socket.socketpair()
    here.setblocking(False)
    there.settimeout(30)
    signal.signal(signal.SIGURG, lambda *_: None)
    signal.set_wakeup_fd(here.fileno())
    got = b""
    for i in range(20):
        busy(0.004)
        os.kill(os.getpid(), signal.SIGURG)
        got += there.recv(1)
    there.settimeout(0)
    try:
        got += there.recv(100)
    except BlockingIOError:
        pass
    print(got == bytes([signal.SIGURG]) * 20, signal.set_wakeup_fd(-1) == here.fileno())


class SignalInfo(ctypes.Structure):
    _fields_ = [("signo", ctypes.c_uint32), ("errno", ctypes.c_int32), ("code", ctypes.c_int32), ("rest", ctypes.c_uint8 * 116)]


def waits():
    """Who blocks a signal and waits for it gets what was sent, and nothing else."""
    libc = ctypes.CDLL(None, use_errno=True)
    busy(0.05)
    signal.pthread_sigmask(signal.SIG_BLOCK, OURS)  # of the others too, that none of them takes it
    with Beside(1):
        for i in range(10):
            busy(0.005)
            print(sorted(signal.sigpending()), signal.sigtimedwait(OURS, 0), end=" ")
            os.kill(os.getpid(), signal.SIGURG)
            print(signal.sigwait(OURS) == signal.SIGURG, end=" ")
            signal.pthread_kill(threading.get_ident(), signal.SIGURG)
            info = signal.sigwaitinfo(OURS)
            print(info.si_signo, info.si_code, info.si_pid == os.getpid(), end=" ")
            os.kill(os.getpid(), signal.SIGBUS)
            print(signal.sigtimedwait(OURS, 30).si_signo)
        wanted = (ctypes.c_uint64 * 16)(1 << signal.SIGURG - 1)
        fd = libc.signalfd(-1, ctypes.byref(wanted), os.O_NONBLOCK)
        for i in range(10):
            busy(0.005)
            try:
                os.read(fd, 128)
                print("a stranger")
            except BlockingIOError:
                pass
            os.kill(os.getpid(), signal.SIGURG)
            info = SignalInfo.from_buffer_copy(os.read(fd, 128))
            print(info.signo, info.code)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, OURS)


def deaf():
    """Threads that block every signal find none pending, however long they compute."""
    found = []

    def work():
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        for i in range(10):
            busy(0.005)
            found.extend(signal.sigpending())
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(found)


def urgent():
    """SIGURG to a thread that is ticked: each arrives, and nobody else's."""
    times = int(sys.argv[3])
    with Beside(2) as beside:
        print(lib.urgent_lost(beside.threads[0].ident, times), lib.urgent_lost(threading.main_thread().ident, times), lib.urgent_strangers())
        print(lib.urgent_timed(times // 10))


def timers():
    """Interval timers of the application's own, stopped before the end."""
    for which, signo in ((signal.ITIMER_REAL, signal.SIGALRM), (signal.ITIMER_VIRTUAL, signal.SIGVTALRM), (signal.ITIMER_PROF, signal.SIGPROF)):
        hits = [0]

        def on_signal(*_):
            hits[0] += 1
        signal.signal(signo, on_signal)
        signal.setitimer(which, 0.01, 0.01)
        while hits[0] < 5:
            busy(0.01)
        print(signal.setitimer(which, 0)[1])


def last():
    """An interval timer that goes on to the end, whose signal would kill: so short before it."""
    busy(0.05)
    leave, start, real = os._exit, signal.setitimer, signal.ITIMER_REAL
    sys.stdout.flush()
    start(real, 0.003)
    leave(0)


if __name__ == "__main__":
    globals()[sys.argv[2]]()
