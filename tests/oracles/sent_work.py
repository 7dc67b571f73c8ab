# SPDX-License-Identifier: MIT
"""sent_work: what functions that are sent to other threads do, and what they note. Used by executor_work.py and anyio_work.py."""
import collections
import threading
import time

from truth import burn, leave

used, ran = collections.Counter(), collections.Counter()
lock = threading.Lock()


def work(way, compute, wait):
    """What it used and how long it ran is noted under the way that leads to it."""
    cpu, began = time.thread_time(), time.monotonic()
    for _ in range(5):
        burn(compute / 5)
        time.sleep(wait / 5)
    with lock:
        used[way] += time.thread_time() - cpu
        ran[way] += time.monotonic() - began


def warm_up():
    """The way is known once a worker was seen on it."""
    burn(0.3)


def leave_work():
    leave({"cpu": used, "wall": ran})
