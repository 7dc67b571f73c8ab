# SPDX-License-Identifier: MIT
"""blocked: a program that blocks every signal and waits for them in one thread.

What sigwait, sigpending and the next program image find must be what was sent.
The main thread burns CPU with the signals blocked, then unblocked.
"""
import os
import signal
import sys
import threading
import time

from truth import burn, leave

ALL = signal.valid_signals()


def catch(found):
    while True:
        signo = signal.sigwait(ALL)
        found.append(int(signo))
        if signo == signal.SIGTERM:
            return
        sum(range(10**5))


def burn_blocked(seconds):
    burn(seconds)


def burn_unblocked(seconds):
    burn(seconds)


def main():
    if len(sys.argv) > 1:
        print("pending after exec:", sorted(int(s) for s in signal.sigpending()))
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
    found = []
    thread = threading.Thread(target=catch, args=(found,))
    thread.start()
    burn_blocked(0.5)
    pending = sorted(int(s) for s in signal.sigpending())
    os.kill(os.getpid(), signal.SIGTERM)
    thread.join()
    print("caught:", found, "pending:", pending)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ALL)
    time.sleep(0.05)
    burn_unblocked(0.5)
    leave({"pid": os.getpid()})
    signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
    burn(0.1)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, __file__, "after"])


main()
