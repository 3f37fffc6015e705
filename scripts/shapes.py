#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What open shapes cost on this machine: runs bench/shapes.c and writes docs/shapes/figures.md with its plots.

    shapes.py [--pairs N] [--build DIR] [--output DIR] [--render FILE]

Takes about ten minutes with 31 pairs on two cores; --render writes the report of an earlier run again (shapes.json of its
build). Exit 1 if bits differ between a program with a large ceiling and one made for the size.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import models
from bench import machine
from bench.plot import Bars

ROOT = Path(__file__).resolve().parent.parent
MODELS = ("smollm2", "minilm")


def run(build, pairs):
    subprocess.run(["cmake", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=RelWithDebInfo"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "-j", str(os.cpu_count() or 2), "--target", "bench_shapes"], check=True,
                   stdout=subprocess.DEVNULL)
    files = [str(models.require(model)) for model in MODELS]
    process = subprocess.Popen([build / "bench" / "shapes", "--pairs", str(pairs), *files], stdout=subprocess.PIPE, text=True)
    found = []
    for line in process.stdout:
        found.append(json.loads(line))
        print("%(figure)s %(model)s" % found[-1], found[-1].get("n", ""), flush=True)
    process.wait()
    return found, process.returncode


def of(found, figure, model):
    return [f for f in found if f["figure"] == figure and f["model"] == model]


def names(found):
    return list(dict.fromkeys(f["model"] for f in found))


def ratio(spread):
    return "%.3f (%.3f to %.3f)" % (spread[1], spread[0], spread[2])


def plots(found):
    for model in names(found):
        large, rung = of(found, "ceiling", model), of(found, "ladder", model)
        if not large:
            continue

        def per_row(figure, key):
            return [1e6 * value / figure["n"] for value in figure[key]]
        rows = [("%d row%s" % (a["n"], "s" * (a["n"] > 1)), [per_row(a, "seconds_exact"), per_row(c, "seconds"), per_row(a, "seconds")], None)
                for a, c in zip(large, rung)]
        title = "%s: time a row, by how the program was made" % model
        series = ("made for the size", "rung of a ladder (power of two)", "one program, ceiling 512")
        yield "cost-%s.svg" % slug(model), Bars(title, "microseconds a row", series, rows).svg()
    for model in names(found):
        counts = of(found, "memory", model)
        if not counts:
            continue
        rows = []
        for c in counts:
            total, copied = c["total"] / 1e6, (c["total"] + (c["sizes"] - 1) * c["weights"]) / 1e6
            rows.append(("%d size%s" % (c["sizes"], "s" * (c["sizes"] > 1)), [(total,) * 3, (copied,) * 3], None))
        series = ("held", "what it would be with weights for each size")
        yield "memory-%s.svg" % slug(model), Bars("%s: memory by sizes in use, each with its context" % model, "MB", series, rows).svg()


def slug(model):
    return "".join(c if c.isalnum() else "-" for c in model.split(".")[0].lower()).strip("-")


def report(found, about):
    lines = ["# What open shapes cost", "", "Written by `python3 scripts/shapes.py` from one run; not edited by hand.", "",
             "- Machine: %s" % about["machine"], "- Date: %s, pairs: %d, interleaved; middle (a tenth lies below, a tenth above)" % (about["date"], about["pairs"]), "",
             "## A ceiling of 512 against a program made for the size", "",
             "| | rows | time against the exact program | a ladder's rung against it | same bits |", "|---|---|---|---|---|"]
    for model in names(found):
        for a, c in zip(of(found, "ceiling", model), of(found, "ladder", model)):
            same = "yes" if a["same_bits"] and c["same_bits"] else "NO"
            lines.append("| %s | %d | %s | %s | %s |" % (model, a["n"], ratio(a["ratio"]), ratio(c["ratio"]), same))
    lines += ["", "## A length that was never seen", "", "Its first run, right after one of another length, against the middle of five later ones.", "",
              "| | first against later |", "|---|---|"]
    lines += ["| %s | %s |" % (f["model"], ratio(f["ratio"])) for f in found if f["figure"] == "first"]
    lines += ["", "## Planning for a binding", "", "| | milliseconds |", "|---|---|"]
    lines += ["| %s | %s |" % (f["model"], ratio([1e3 * x for x in f["seconds"]])) for f in found if f["figure"] == "specialise"]
    lines += ["", "## Texts of 8 to 512 tokens in one call", "",
              "Time against the sum of what each text takes among others of its own length.", "", "| | texts | ratio |", "|---|---|---|"]
    lines += ["| %s | %d | %s |" % (f["model"], f["lines"], ratio(f["ratio"])) for f in found if f["figure"] == "mixed"]
    lines += [""] + ["![%s](%s)" % (name, name) for name in about["plots"]] + [""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=31)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "shapes")
    parser.add_argument("--render", type=Path)
    options = parser.parse_args()
    status = 0
    if options.render:
        saved = json.loads(options.render.read_text())
    else:
        found, status = run(options.build, options.pairs)
        about = machine.describe(ROOT)
        shown = "%s; %d cores%s; %s; %s, commit %s" % (about["processor"], about["cores"], " (virtual)" if about["virtual"] else "", about["caches"],
                                                      about["system"], about["commit"])
        saved = {"found": found, "machine": shown, "date": about["date"], "pairs": options.pairs}
        (options.build / "shapes.json").write_text(json.dumps(saved))
    options.output.mkdir(parents=True, exist_ok=True)
    drawn = dict(plots(saved["found"]))
    for name, text in drawn.items():
        (options.output / name).write_text(text)
    (options.output / "figures.md").write_text(report(saved["found"], {**saved, "plots": list(drawn)}))
    print("wrote", options.output / "figures.md")
    return status


if __name__ == "__main__":
    sys.exit(main())
