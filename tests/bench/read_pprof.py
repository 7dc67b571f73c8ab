# SPDX-License-Identifier: MIT
"""read_pprof: what a zstd-compressed pprof file holds, a line of JSON a sample.

    read_pprof.py FILE...       [{"values": {type: n}, "frames": [[name, path, line], root first]}]

Runs in the environment of packages.py, which has zstandard. Numbers of fields are
those of pprof's profile.proto.
"""
import io
import json
import sys

import zstandard


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a message; a value is an int or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            length = 8 if kind == 1 else 4
            value, at = data[at:at + length], at + length
        yield key >> 3, value


def numbers(value):
    """A repeated number, packed or not."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


def first(message, number):
    return next((value for n, value in fields(message) if n == number), 0)


class Profile:
    def __init__(self, data):
        self.strings, self.types, self.samples, self.locations, self.functions = [], [], [], {}, {}
        for number, value in fields(data):
            if number == 1:
                self.types.append(first(value, 1))
            elif number == 2:
                self.samples.append(value)
            elif number == 4:
                line = first(value, 4) or b""
                self.locations[first(value, 1)] = (first(line, 1), first(line, 2))
            elif number == 5:
                self.functions[first(value, 1)] = (first(value, 2), first(value, 4))
            elif number == 6:
                self.strings.append(value.decode("utf-8", "replace"))

    def frame(self, location):
        function, line = self.locations[location]
        name, path = self.functions.get(function, (0, 0))
        return [self.strings[name], self.strings[path], line]

    def each(self):
        for sample in self.samples:
            locations, values = [], []
            for number, value in fields(sample):
                if number == 1:
                    locations += numbers(value)
                elif number == 2:
                    values += numbers(value)
            yield {"values": {self.strings[t]: v for t, v in zip(self.types, values)}, "frames": [self.frame(l) for l in reversed(locations)]}


for path in sys.argv[1:]:
    with open(path, "rb") as f:
        whole = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(f.read())).read()
    for sample in Profile(whole).each():
        print(json.dumps(sample))
