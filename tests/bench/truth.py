#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""truth: how true stacks are, ours beside Tachyon's, on the same program in one run.

    tests/bench/truth.py [--samples N] [--seconds S] [--python LABEL]

The program is tests/oracles/edges.py: every call edge and call line is known, and
it times its own phases. A row for each Python and way: samples, impossible
stacks per million, what was lost (dropped, and ticks missed), what was dropped
alone (for Tachyon: its own error rate), the worst share of a phase against the
program's own clock, and the CPU that the tool took beside the program's. Only
ratios within this run mean anything.
"""
import argparse
import json
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

import harness as h  # noqa: E402
import truths  # noqa: E402

COLUMNS = "%-14s %-26s %10s %12s %9s %9s %9s %9s"
STRETCH = 60  # s of one run of the program


def row(label, way, samples, wrong, lost, dropped, share, cpu):
    print(COLUMNS % (label, way, samples, wrong, lost, dropped, share, cpu), flush=True)


class Sums:
    """What several runs of one way came to."""

    def __init__(self):
        self.samples, self.wrong, self.all, self.lost, self.dropped, self.tool_cpu, self.app_cpu = 0, 0.0, 0.0, 0, 0, 0.0, 0.0
        self.found, self.spent, self.reasons = {}, {}, {}

    def add_stacks(self, truth, lines):
        self.all += sum(n for _, n in lines)
        for reason, n in truths.impossible(truth, lines):
            self.wrong += n
            self.reasons[reason] = self.reasons.get(reason, 0) + n
        for phase, n in truths.phase_shares(truth, lines).items():
            self.found[phase] = self.found.get(phase, 0) + n
            self.spent[phase] = self.spent.get(phase, 0) + truth["spent"][phase]

    def worst(self):
        """Points by which the worst phase is off."""
        found, spent = sum(self.found.values()), sum(self.spent.values())
        return max(100 * abs(self.found[p] / found - self.spent[p] / spent) for p in self.found) if found else float("nan")

    def show(self, label, way):
        lost, dropped = (n / (self.samples + self.lost) for n in (self.lost, self.dropped))
        row(label, way, self.samples, "%.1f" % (1e6 * self.wrong / self.all) if self.wrong else "0", "%.2f %%" % (100 * lost),
            "%.2f %%" % (100 * dropped), "%.2f" % self.worst(), "%.2f %%" % (100 * self.tool_cpu / self.app_cpu))
        for reason, n in sorted(self.reasons.items(), key=lambda item: -item[1])[:3]:
            print("    %.1f per million: %s" % (1e6 * n / self.all, reason))


def ours(python, samples, seconds, settings):
    """Runs until there are so many samples, or for so long."""
    sums, left = Sums(), seconds
    while sums.samples < samples if samples else left > 0:
        length = min(STRETCH, max(2, (samples - sums.samples) / 9000)) if samples else min(STRETCH, left)
        truth, spool, _ = h.run_oracle(python, "edges.py", "%.1f" % length, settings=truths.unbudgeted(dict(settings)), timeout=6 * length + 60)
        process = spool.one()
        took = process.counter("samples")
        h.need(took > 0, "no sample in %.1f s", length)
        sums.samples += took
        sums.lost += process.lost()
        sums.dropped += process.lost() - process.counter("ticks", "missed")
        sums.tool_cpu += (process.counter("sampler_cpu_us") + process.counter("handler_us")) / 1e6
        sums.app_cpu += truth["cpu"]
        sums.add_stacks(truth, list(process.stacks("cpu")))
        left -= length
    return sums


def tachyon_stacks(path):
    """Its collapsed lines: (frames of file:qualname:line, count)."""
    lines = []
    with open(path, encoding="utf-8") as f:
        for text in f:
            stack, _, count = text.rstrip("\n").rpartition(" ")
            matches = [(part, re.match(r"^(.*?):(.*):(\d+)$", part)) for part in stack.split(";")]
            lines.append(([h.Frame(part, m[2], m[1], int(m[3])) for part, m in matches if m and m[1] != "<frozen runpy>"], int(count)))
    return lines


def tachyon_lines(path):
    """Those of the program."""
    return [(frames, count) for frames, count in tachyon_stacks(path) if any(f.path.startswith("edges") for f in frames)]


def tachyon(python, seconds, rate, extra):
    folder = h.fresh_folder("tachyon")
    truth_path, out = os.path.join(folder, "truth.json"), os.path.join(folder, "stacks")
    words = ["-m", "profiling.sampling", "run", "-r", str(rate), "--collapsed", "-o", out] + extra + [h.oracle("edges.py"), str(seconds)]
    result = h.run(words, "tachyon", python=python, preload=False, env={"ORACLE_TRUTH": truth_path}, timeout=6 * seconds + 60)
    h.need(result.status == 0 and os.path.exists(out), "status %d: %s", result.status, h.tail(result.err))
    with open(truth_path, encoding="utf-8") as f:
        truth = json.load(f)
    sums = Sums()
    sums.add_stacks(truth, tachyon_lines(out))
    said = (result.out + result.err).decode("utf-8", "replace")
    errors = re.search(r"Error rate: ([0-9.]+)", said)
    captured = re.search(r"Captured ([0-9,]+) samples", said)
    sums.samples = int(captured[1].replace(",", "")) if captured else int(sums.all)
    share = float(errors[1]) / 100 if errors else 0.0
    sums.lost = sums.dropped = sums.samples * share / (1 - share) if share < 1 else 0
    sums.app_cpu = truth["cpu"]
    # of two processes: what the kernel says of both, less the program's own
    sums.tool_cpu = result.rusage.ru_utime + result.rusage.ru_stime - truth["cpu"]
    return sums


def attempt(label, way, function, *args):
    try:
        function(*args).show(label, way)
    except (h.Failure, h.Skip) as reason:
        row(label, way, "failed:", str(reason)[:60], "", "", "", "")
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=1000000, help="samples at 10 kHz on each Python")
    parser.add_argument("--seconds", type=int, default=60, help="seconds at the kernel's tick, and of each peer")
    parser.add_argument("--python", metavar="LABEL")
    options = parser.parse_args()
    pythons, refused = h.usable(h.pythons(options.python))
    for label, reason in refused:
        print("not run: %s: %s" % (label, reason))
    print(COLUMNS % ("Python", "way", "samples", "impossible/M", "lost", "dropped", "worst pt", "tool CPU"))
    failed = 0
    for python in pythons:
        failed += attempt(python.label, "libaprof 10 kHz", ours, python, options.samples, 0, truths.FAST)
        failed += attempt(python.label, "libaprof CPU ticks", ours, python, 0, options.seconds, {"APROF_RATE": "1000"})
        failed += attempt(python.label, "libaprof as it comes", ours, python, 0, options.seconds, {})
    peers = [p for p in pythons if p.version >= (3, 15) and p.ask("import profiling.sampling; print(1)") == "1"]
    for python in peers[:1]:
        for rate in (1000, 10000):
            for extra in ([], ["--blocking"]):
                failed += attempt(python.label, " ".join(["Tachyon %d kHz" % (rate // 1000)] + extra), tachyon, python, options.seconds, rate, extra)
    if not peers:
        row("3.15", "Tachyon", "absent", "", "", "", "", "")
    h.remove_work()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
