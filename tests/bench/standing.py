# SPDX-License-Identifier: MIT
"""standing: many threads that stand still, and one that computes a little now and then.

    standing.py THREADS SECONDS [BEAT_MS [WAIT]]

The main thread computes 0.5 ms every BEAT_MS (5 by default), so that the profiler does
not slow down; 0: nothing runs at all. The others stand in Event.wait, or in time.sleep
if WAIT is "sleep".
"""
import sys
import threading
import time

count, seconds = int(sys.argv[1]), float(sys.argv[2])
beat = float(sys.argv[3]) / 1000 if len(sys.argv) > 3 else 0.005
over = threading.Event()


def stand():
    if len(sys.argv) > 4 and sys.argv[4] == "sleep":
        time.sleep(max(0, end - time.monotonic()))
    else:
        over.wait()


threading.stack_size(256 << 10)
end = time.monotonic() + seconds
threads = [threading.Thread(target=stand) for _ in range(count)]
for thread in threads:
    thread.start()
while time.monotonic() < end:
    until = time.thread_time() + 0.0005
    while beat and time.thread_time() < until:
        pass
    time.sleep(beat if beat else max(0, end - time.monotonic()))
over.set()
for thread in threads:
    thread.join()
