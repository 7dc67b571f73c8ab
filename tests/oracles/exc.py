# SPDX-License-Identifier: MIT
"""exc: a program that knows for how long it handled exceptions of which type.

    exc.py SECONDS     so long in each phase, half of it working and half waiting

What is handled is what sys.exc_info() says, and so asked for in each phase.
"""
import asyncio
import json
import sys
import threading
import time

from truth import leave

notes = {}  # how the type is called, "": none is handled: seconds
lock = threading.Lock()
seconds = float(sys.argv[1]) if __name__ == "__main__" else 0


class Outer:
    class Own(ValueError):
        pass


class Error404(Exception):
    pass


class Überlauf(ArithmeticError):
    pass


class Guard:
    def __exit__(self, kind, value, traceback):
        phase("RuntimeError")
        return True

    def __enter__(self):
        return self


def name_of_handled():
    kind = sys.exc_info()[0]
    if kind is None:
        return ""
    return kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else "%s.%s" % (kind.__module__, kind.__qualname__)


def works_and_waits():
    end = time.monotonic() + seconds / 2
    while time.monotonic() < end:
        for _ in range(200):
            pass
    time.sleep(seconds / 2)


def phase(name):
    assert name_of_handled() == name, (name_of_handled(), name)
    began = time.monotonic()
    works_and_waits()
    took = time.monotonic() - began
    with lock:
        notes[name] = notes.get(name, 0) + took


def own_type():
    try:
        raise Outer.Own
    except ValueError:
        phase("Outer.Own")
    phase("")


def unwinding():
    try:
        try:
            raise Error404
        finally:
            phase("Error404")
    except Exception:
        pass


def nested():
    """The inner one while it is handled, the outer one again after it."""
    try:
        {}["key"]
    except KeyError:
        try:
            int("x")
        except ValueError:
            phase("ValueError")
        phase("KeyError")


def chained():
    try:
        try:
            1 / 0
        except ZeroDivisionError as error:
            raise Überlauf from error
    except ArithmeticError:
        phase("Überlauf")


def of_a_library():
    try:
        json.loads("{")
    except ValueError:
        phase("json.decoder.JSONDecodeError")


def leaving():
    with Guard():
        raise RuntimeError


def handles_and_yields():
    try:
        raise OSError
    except OSError:
        phase("OSError")
        yield
        phase("OSError")


def generators():
    """What a generator handles is its own while it is suspended; what its caller handles is the generator's as well."""
    own = handles_and_yields()
    next(own)
    phase("")
    next(own, None)
    try:
        raise LookupError
    except LookupError:
        list(phase(name) for name in ("LookupError",))


async def handles():
    try:
        raise EOFError
    except EOFError:
        await asyncio.sleep(0)
        phase("EOFError")


async def is_cancelled():
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        phase("asyncio.exceptions.CancelledError")


async def tasks():
    cancelled = asyncio.create_task(is_cancelled())
    await asyncio.gather(handles(), asyncio.sleep(0))
    phase("")
    cancelled.cancel()
    await cancelled


def main():
    began = time.monotonic()
    own_type()
    unwinding()
    nested()
    chained()
    of_a_library()
    leaving()
    generators()
    asyncio.run(tasks())
    other = threading.Thread(target=own_type)
    other.start()
    other.join()
    leave({"handled": {name: took for name, took in notes.items() if name}, "lived": time.monotonic() - began + 2 * seconds})


if __name__ == "__main__":
    main()
