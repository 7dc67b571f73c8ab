# SPDX-License-Identifier: MIT
"""processed_profile: the Firefox Profiler's processed profile format, version 70, as the
types in its source document it (src/types/profile.ts), checked strictly: every key that
they demand, none that they do not know, columns of one length, indices that are there."""

import collections
import numbers

VERSION = 70


def number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def whole(value):
    return number(value) and value == int(value)


def text(value):
    return isinstance(value, str)


def boolean(value):
    return isinstance(value, bool)


def either(*kinds):
    return lambda value: any(kind(value) for kind in kinds)


def among(*values):
    return lambda value: value in values and not isinstance(value, bool)


def nothing(value):
    return value is None


def listed(kind):
    return lambda value: isinstance(value, list) and all(map(kind, value))


def row(table, *more):
    """An index into a table of that length, or one of more."""
    return lambda value: (whole(value) and 0 <= value < table) or value in more


def fields(value, what, must, may=()):
    """must, may: {key: kind}."""
    assert isinstance(value, dict), f"{what} is no object"
    may = dict(may)
    for key in must:
        assert key in value, f"{what}: {key} is missing"
    for key, one in value.items():
        assert key in must or key in may, f"{what}: {key} is not in the types"
        kind = must.get(key) or may.get(key)
        assert kind(one), f"{what}: {key} is {str(one)[:60]}"


def table(value, what, columns, may=()):
    fields(value, what, {**{key: listed(kind) for key, kind in columns.items()}, "length": whole}, {key: listed(kind) for key, kind in dict(may).items()})
    for key in value:
        assert key == "length" or len(value[key]) == value["length"], f"{what}: {key} has {len(value[key])} rows, not {value['length']}"


COLOURS = ("transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red", "lightred", "darkgrey", "grey")


def check_meta(meta, threads):
    optional = {**dict.fromkeys(("startTimeAsClockMonotonicNanosecondsSinceBoot", "endTime", "profilingStartTime", "profilingEndTime",
                                 "physicalCPUs", "logicalCPUs", "mainMemory"), number),
                **dict.fromkeys(("abi", "misc", "oscpu", "platform", "toolkit", "appBuildID", "arguments", "sourceURL", "CPUName", "updateChannel",
                                 "device", "importedFrom", "fileName"), text),
                **dict.fromkeys(("debug", "symbolicated", "symbolicationNotSupported", "usesOnlyOneStackType", "sourceCodeIsNotOnSearchfox",
                                 "keepProfileThreadOrder"), boolean),
                **dict.fromkeys(("initialVisibleThreads", "initialSelectedThreads"), listed(row(threads))),
                "sampleUnits": lambda value: isinstance(value, dict), "categories": lambda value: isinstance(value, list),
                "extra": lambda value: isinstance(value, list)}
    fields(meta, "meta", {"interval": number, "startTime": number, "processType": whole, "product": text, "stackwalk": among(0, 1),
                          "version": whole, "preprocessedProfileVersion": among(VERSION), "markerSchema": listed(lambda one: False)}, optional)
    assert meta["interval"] > 0, "interval"
    fields(meta["sampleUnits"], "sampleUnits", {"time": among("ms", "bytes"), "eventDelay": among("ms"),
                                                "threadCPUDelta": among("ns", "µs", "variable CPU cycles")})
    for category in meta["categories"]:
        fields(category, "category", {"name": text, "color": among(*COLOURS), "subcategories": listed(text)})
        assert category["subcategories"][0] == "Other", "the first subcategory is to be the default one"
    assert any(category["color"] == "grey" for category in meta["categories"]), "no default category"


def check_shared(shared, meta):
    strings = len(shared["stringArray"])
    sizes = {key: shared[key]["length"] for key in ("stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "sources", "sourceLocationTable")}
    fields(shared, "shared", {**{key: lambda value: True for key in sizes}, "stringArray": listed(text)})
    assert len(set(shared["stringArray"])) == strings, "a string twice"
    table(shared["stackTable"], "stackTable", {"frame": row(sizes["frameTable"]), "prefixOffset": whole})
    assert all(0 <= offset <= at for at, offset in enumerate(shared["stackTable"]["prefixOffset"])), "prefixOffset"
    table(shared["frameTable"], "frameTable", {
        "address": among(-1), "lib": among(-1), "inlineDepth": among(0), "category": row(len(meta["categories"]), None), "subcategory": among(0, None),
        "func": row(sizes["funcTable"]), "nativeSymbol": nothing, "innerWindowID": nothing, "line": either(nothing, whole), "column": either(nothing, whole),
        "originalLocation": nothing})
    table(shared["funcTable"], "funcTable", {
        "name": row(strings), "isJS": boolean, "relevantForJS": boolean, "resource": row(sizes["resourceTable"], -1), "source": row(sizes["sources"], None),
        "lineNumber": either(nothing, whole), "columnNumber": either(nothing, whole), "originalLocation": nothing})
    table(shared["resourceTable"], "resourceTable", {"name": row(strings), "host": row(strings, None), "type": whole})
    table(shared["nativeSymbols"], "nativeSymbols", {"libIndex": whole, "address": whole, "name": row(strings), "functionSize": either(nothing, whole)})
    table(shared["sources"], "sources", {"id": either(nothing, text), "filename": row(strings), "startLine": whole, "startColumn": whole,
                                         "sourceMapURL": row(strings, None), "content": either(nothing, text)})
    table(shared["sourceLocationTable"], "sourceLocationTable", {"source": row(sizes["sources"]), "line": whole, "column": whole})


def check_thread(thread, stacks, what):
    fields(thread, what, {"processType": text, "processStartupTime": number, "processShutdownTime": either(nothing, number), "registerTime": number,
                          "unregisterTime": either(nothing, number), "pausedRanges": listed(lambda one: False), "name": text, "isMainThread": boolean,
                          "pid": text, "tid": either(whole, text), "samples": lambda value: True, "markers": lambda value: True}, {"processName": text})
    samples = dict(thread["samples"])
    assert samples.pop("weightType") in ("samples", "tracing-ms", "bytes"), f"{what}: weightType"
    table(samples, f"{what}: samples", {"stack": row(stacks, None), "time": number, "weight": number})
    assert samples["time"] == sorted(samples["time"]), f"{what}: times go back"
    table(thread["markers"], f"{what}: markers", {key: lambda one: False for key in ("data", "name", "startTime", "endTime", "phase", "category")})


def check(profile):
    fields(profile, "profile", {"meta": lambda value: True, "libs": listed(lambda one: False), "shared": lambda value: True,
                                "threads": lambda value: isinstance(value, list)}, {"pages": listed(lambda one: False)})
    check_meta(profile["meta"], len(profile["threads"]))
    check_shared(profile["shared"], profile["meta"])
    tids = [thread["tid"] for thread in profile["threads"]]
    assert len(set(tids)) == len(tids) and tids, "tids"
    for at, thread in enumerate(profile["threads"]):
        check_thread(thread, profile["shared"]["stackTable"]["length"], f"thread {at}")


def stacks_of(profile, thread):
    """By frames, root first, the thousandths of what each weighs (microseconds)."""
    shared = profile["shared"]
    texts, functions = shared["stringArray"], shared["funcTable"]
    per = 1 if thread["samples"]["weightType"] == "bytes" else 1000

    def frame(at):
        function = shared["frameTable"]["func"][at]
        source = functions["source"][function]
        return (texts[functions["name"][function]], "" if source is None else texts[shared["sources"]["filename"][source]],
                shared["frameTable"]["line"][at] or 0)

    sums = collections.Counter()
    for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
        frames = []
        while True:
            frames.append(frame(shared["stackTable"]["frame"][stack]))
            offset = shared["stackTable"]["prefixOffset"][stack]
            if not offset:
                break
            stack -= offset
        sums[tuple(reversed(frames))] += round(weight * per)
    return sums
