#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where the time of a generation goes, from a trace: rung generate ... --trace FILE, then

    where.py FILE [--top N]

One table for reading the prompt (all runs with more than one row) and one for decoding: kernels by time, with the time
between steps. Recording a trace costs about half a microsecond a step.
"""
import argparse
import json
import sys
from collections import defaultdict


def events(path):
    """A trace may lack its closing bracket."""
    text = open(path, encoding="utf-8").read().rstrip().rstrip(",")
    return json.loads(text if text.endswith("]") else text + "]")


def runs(found):
    """Steps of one run after another; a run begins where the step's number falls."""
    out = []
    for event in found:
        if event.get("cat") != "step":
            continue
        if not out or event["args"]["step"] <= out[-1][-1]["args"]["step"]:
            out.append([])
        out[-1].append(event)
    return out


def table(title, chosen, top):
    """Microseconds a run, by kernel."""
    if not chosen:
        return
    total = defaultdict(lambda: [0.0, 0, 0])
    span = gaps = 0.0
    for run in chosen:
        span += run[-1]["ts"] + run[-1]["dur"] - run[0]["ts"]
        gaps += sum(max(0.0, b["ts"] - a["ts"] - a["dur"]) for a, b in zip(run, run[1:]))
        for event in run:
            row = total[event["args"]["kernel"]]
            row[0] += event["dur"]
            row[1] += 1
            row[2] += event["args"]["bytes"]
    n = len(chosen)
    print("%s: %d runs of %d steps, %.1f us each" % (title, n, len(chosen[0]), span / n))
    for kernel, (time, count, moved) in sorted(total.items(), key=lambda item: -item[1][0])[:top]:
        print("  %-46s %9.1f us  %5.1f%%  %4d steps  %7.2f us a step  %6.1f GB/s of operands" % (
            kernel, time / n, 100 * time / span, count // n, time / count, moved / time / 1e3 if time else 0))
    print("  %-46s %9.1f us  %5.1f%%  %7.3f us a step" % ("between steps", gaps / n, 100 * gaps / span, gaps / n / len(chosen[0])))


def main():
    parser = argparse.ArgumentParser(description="Where the time of a generation goes, from a trace.",
                                     epilog="example: rung generate -m M -p TEXT -n 64 --trace t.json; where.py t.json")
    parser.add_argument("trace")
    parser.add_argument("--top", type=int, default=20)
    arguments = parser.parse_args()
    found = events(arguments.trace)
    for event in found:
        if event.get("cat") == "phase":
            print("%-12s %10.1f us" % (event["name"], event["dur"]))
    parts = runs(found)
    # A decode reads one row: its first gather moves the least.
    least = min((part[1]["args"]["bytes"] for part in parts if len(part) > 1), default=0)
    table("prompt", [part for part in parts if part[1]["args"]["bytes"] > least], arguments.top)
    table("decode", [part for part in parts if part[1]["args"]["bytes"] == least], arguments.top)
    return 0


if __name__ == "__main__":
    sys.exit(main())
