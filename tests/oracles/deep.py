# SPDX-License-Identifier: MIT
"""deep: burns at the bottom of a recursion of known depth.

    deep.py SECONDS DEPTH

Frames of a stack at the bottom: <module>, main, DEPTH x down, burn.
"""
import sys
import time

from truth import burn, leave


def down(n, seconds):
    if n > 1:
        down(n - 1, seconds)
    else:
        burn(seconds)


def main():
    depth = int(sys.argv[2])
    before = time.thread_time()
    down(depth, float(sys.argv[1]))
    leave({"frames": depth + 3, "cpu": time.thread_time() - before})


sys.setrecursionlimit(100000)
main()
