# SPDX-License-Identifier: MIT
"""profile_proto: pprof's file format, read by nothing but Python, and what its
documentation demands of a file (github.com/google/pprof, proto/profile.proto)."""

import collections
import gzip

MESSAGES = {  # field: (name, type); types in brackets come many times
    "Profile": {1: ("sample_type", ["ValueType"]), 2: ("sample", ["Sample"]), 3: ("mapping", ["Mapping"]), 4: ("location", ["Location"]),
                5: ("function", ["Function"]), 6: ("string_table", ["string"]), 7: ("drop_frames", "int"), 8: ("keep_frames", "int"),
                9: ("time_nanos", "int"), 10: ("duration_nanos", "int"), 11: ("period_type", "ValueType"), 12: ("period", "int"),
                13: ("comment", ["int"]), 14: ("default_sample_type", "int"), 15: ("doc_url", "int")},
    "ValueType": {1: ("type", "int"), 2: ("unit", "int")},
    "Sample": {1: ("location_id", ["int"]), 2: ("value", ["int"]), 3: ("label", ["Label"])},
    "Label": {1: ("key", "int"), 2: ("str", "int"), 3: ("num", "int"), 4: ("num_unit", "int")},
    "Mapping": {1: ("id", "int"), 2: ("memory_start", "int"), 3: ("memory_limit", "int"), 4: ("file_offset", "int"), 5: ("filename", "int"),
                6: ("build_id", "int"), 7: ("has_functions", "int"), 8: ("has_filenames", "int"), 9: ("has_line_numbers", "int"),
                10: ("has_inline_frames", "int")},
    "Location": {1: ("id", "int"), 2: ("mapping_id", "int"), 3: ("address", "int"), 4: ("line", ["Line"]), 5: ("is_folded", "int")},
    "Line": {1: ("function_id", "int"), 2: ("line", "int"), 3: ("column", "int")},
    "Function": {1: ("id", "int"), 2: ("name", "int"), 3: ("system_name", "int"), 4: ("filename", "int"), 5: ("start_line", "int")},
}
VARINT, BYTES = 0, 2


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value - (value >> 63 << 64), at


def parse(data, kind="Profile"):
    """A message as a dict; unknown fields are wrong."""
    message = {name: [] if isinstance(of, list) else 0 for name, of in MESSAGES[kind].values()}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        name, of = MESSAGES[kind][tag >> 3]
        one = of[0] if isinstance(of, list) else of
        value, at = varint(data, at)
        if tag & 7 == BYTES:
            part, at = data[at:at + value], at + value
            assert len(part) == value, "cut"
            if one == "int":  # packed
                values, where = [], 0
                while where < len(part):
                    value, where = varint(part, where)
                    values.append(value)
            else:
                values = [part.decode("utf-8") if one == "string" else parse(part, one)]
        else:
            assert tag & 7 == VARINT and one == "int", (name, tag & 7)
            values = [value]
        if isinstance(of, list):
            message[name] += values
        else:
            message[name] = values[-1]
    return message


def read(data):
    """The profile with texts for their numbers, after what the format demands is checked."""
    profile = parse(gzip.decompress(data))
    strings = profile["string_table"]
    assert strings[0] == "" and len(set(strings)) == len(strings), "string table"
    tables = {name: {one["id"]: one for one in profile[name]} for name in ("mapping", "location", "function")}
    for name, table in tables.items():
        assert 0 not in table and len(table) == len(profile[name]), f"ids of {name}"
    types = [(strings[one["type"]], strings[one["unit"]]) for one in profile["sample_type"]]
    frames = {}
    for number, location in tables["location"].items():
        assert location["mapping_id"] in tables["mapping"] and len(location["line"]) == 1, "location"
        line = location["line"][0]
        function = tables["function"][line["function_id"]]
        frames[number] = (strings[function["name"]], strings[function["filename"]], line["line"])
    samples = []
    for sample in profile["sample"]:
        assert len(sample["value"]) == len(types), "values"
        labels = {strings[one["key"]]: strings[one["str"]] for one in sample["label"]}
        assert len(labels) == len(sample["label"]), "a key twice"
        samples.append((tuple(frames[number] for number in reversed(sample["location_id"])), sample["value"], labels))
    return {**profile, "types": types, "samples": samples, "default": strings[profile["default_sample_type"]],
            "comments": [strings[row] for row in profile["comment"]], "mappings": [strings[one["filename"]] for one in profile["mapping"]],
            "names": {strings[one["system_name"]] for one in profile["function"]}}


def stacks_of(profile, metric, **labels):
    at = [name for name, _ in profile["types"]].index(metric)
    sums = collections.Counter()
    for frames, values, of in profile["samples"]:
        if values[at] and labels.items() <= of.items():
            sums[frames] += values[at]
    return sums
