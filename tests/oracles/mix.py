# SPDX-License-Identifier: MIT
"""mix: a program of some functions whose shares are nobody's business, for `aprof diff`.

    mix.py [ROUNDS [EXTRA]]       so much work; EXTRA is what extra() loops

The work is fixed, not its time: what the machine and the interpreter make of it
differs from run to run, which is what noise is.
"""
import itertools
import json
import re
import sys

EXTRA = 600
DATA = {"k%d" % i: [i, str(i), {"a": i * 1.5}] for i in range(60)}
TEXT = "the quick brown fox jumps 42 times over 17 lazy dogs " * 12
WORD = re.compile(r"(\w+) (\d+)")


def encode():
    return json.dumps(DATA)


def match():
    return len(WORD.findall(TEXT))


def order():
    numbers = [(i * 7919) % 1009 for i in range(700)]
    numbers.sort()
    return numbers


def total():
    result = 0.0
    for i in range(2200):
        result += i * 0.5
    return result


def fill():
    table = {}
    for i in range(900):
        table[i] = i
    return table


def join():
    return "".join(str(i) for i in range(500))


def chase(depth=60):
    return 0 if depth == 0 else 1 + chase(depth - 1)


def extra(loops):
    result = 0.0
    for _ in itertools.repeat(None, loops):  # each loop costs the same: no integer grows
        result += 0.5
    return result


PARTS = (encode, match, order, total, fill, join, chase)


def work(rounds, loops):
    for _ in range(rounds):
        for part in PARTS:
            part()
        extra(loops)


if __name__ == "__main__":
    work(int(sys.argv[1]) if sys.argv[1:] else 1000, int(sys.argv[2]) if sys.argv[2:] else EXTRA)
