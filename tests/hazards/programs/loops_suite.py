# SPDX-License-Identifier: MIT
"""loops_suite: a pytest suite whose every test has an event loop in a thread of its own.

SUITE_TESTS tests; each leaves a line in SUITE_PIDS: pid and milliseconds of CPU burnt.
"""
import asyncio
import os
import threading
import time

import pytest


def burn_in_loop():
    begin = time.thread_time()
    while time.thread_time() - begin < 0.01:
        sum(range(200))


async def work():
    for _ in range(3):
        await asyncio.sleep(0.001)
        burn_in_loop()
    return sum(await asyncio.gather(*(asyncio.sleep(0.001, i) for i in range(10))))


@pytest.fixture
def loop():
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


@pytest.mark.parametrize("number", range(int(os.environ["SUITE_TESTS"])))
def test_loop(loop, number):
    assert asyncio.run_coroutine_threadsafe(work(), loop).result(20) == 45
    with open(os.environ["SUITE_PIDS"], "a", encoding="utf-8") as f:
        f.write("%d 30\n" % os.getpid())
