#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure rung against its peers and against what the machine can do at most.

    bench.py                       everything; writes docs/benchmarks.md and docs/benchmarks/*.svg
    bench.py --only NAME ...       the workloads of these names, or that have all parts of one: gemma3, prompt-512, 1t, avx2, encode
    bench.py --quick               few measurements of each, within some minutes
    bench.py --no-peers            rung alone
    bench.py --list                names of workloads

Builds what is missing, fetches the models, builds the peers, measures the limits of the machine, then runs each workload
with the engines in turn, and checks that they compute the same and that rung's bits do not move. Only a full run writes the
report into docs/; --output says where else. Exit 1 if an engine failed, results do not agree, or bits differ.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import models
import peers
import venv
from models import FetchError, say

ROOT = Path(__file__).resolve().parent.parent
MINUTES, QUICK_MINUTES = 17, 5.5  # shared out among the workloads; each gets its fewest measurements however late it is
PROGRAMS = ("limits", "memory", "encode", "overhead", "bits", "tokens")
CHECKS = 6  # as many workloads' time is kept for comparing logits and bits


def build(folder):
    """The programs of a release build; nothing is done where they are up to date."""
    if not (folder / "CMakeCache.txt").exists():
        subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=RelWithDebInfo"], check=True, stdout=subprocess.DEVNULL)
    jobs = str(os.cpu_count() or 2)
    done = subprocess.run(["cmake", "--build", str(folder), "-j", jobs, "--target", "rung_tool", *("bench_" + name for name in PROGRAMS)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise FetchError("the build in %s failed:\n%s" % (folder, done.stdout[-2000:]))


def peer_lines(chosen):
    """Like "llama.cpp as in llama-cpp-python 0.3.36, built for this machine's own processor, keys and values as f16"."""
    from importlib.metadata import version
    names = list(dict.fromkeys(name for workload in chosen for name in workload.peers))
    source = models.MODELS["llama-cpp-src"].wheel
    known = {"llama.cpp": "llama.cpp as in %s %s, built for this machine's own processor, keys and values as f16" % (source.name, source.version)}
    for name, package in (("ONNX Runtime", "onnxruntime"), ("OpenVINO", "openvino"), ("tokenizers", "tokenizers")):
        if name in names:
            known[name] = "%s %s" % (name, version(package))
    return [known[name] for name in names if name in known]


def tell(title, passed, words):
    say("%-28s %s: %s" % (title, words, "yes" if passed else "NO"))


def check_all(bench, chosen, run):
    """Logits of one text by both engines, and rung's bits in every setting, for each model and instruction set measured."""
    from bench import checks, workloads
    settings = dict.fromkeys((w.model, w.isa) for w in chosen if "llama.cpp" in w.peers)
    for model, isa in settings:
        title = workloads.MODELS[model] + (", AVX2 only" if isa else "")
        if bench.with_peers:
            found = checks.logits_agree(bench, model, isa, title)
            tell(title, found["agrees"], "mean KL %.5f over %d positions, same best token %.1f%%, agree" % (
                found["mean_kl"], found["positions"], 100 * found["same_best"]))
            run["agreement"].append(found)
        run["bits"].append(checks.language_bits(bench, model, isa, title))
    encoders = {w.model: w for w in chosen if w.kind in ("encode", "texts", "embed") and w.precision == "f32"}
    run["bits"] += [checks.encoder_bits(bench, w, workloads.MODELS[model]) for model, w in encoders.items()]
    for one in run["bits"]:
        tell(one["title"], one["equal"], "equal bits in %d settings" % one["settings"])


def measure_one(bench, workload, run):
    """Adds the results of a workload to the run, or why there are none."""
    from bench import measure, report
    from bench.process import EngineError
    try:
        results = measure.KINDS[workload.kind](bench, workload)
    except measure.Skipped as why:
        say("%-28s skipped: %s" % (workload.name, why))
        run["skipped"].append({"title": workload.title, "why": str(why)})
    except (EngineError, subprocess.SubprocessError, OSError) as error:
        say("%-28s FAILED: %s" % (workload.name, error))
        run["failures"].append({"name": workload.name, "error": str(error)})
    else:
        run["results"] += results
        for result in results:
            print(report.line(result), flush=True)


def measure_all(chosen, arguments, began):
    """The whole run as one dictionary, which JSON can hold."""
    from bench import machine, measure, workloads
    deadline = began + 60 * (QUICK_MINUTES if arguments.quick else MINUTES)
    bench = measure.Bench(arguments.build, not arguments.no_peers, arguments.quick, say)
    bench.pause, bench.threads = arguments.pause, machine.cores()
    load = machine.load()
    if load > 0.5:
        say("load average %.1f: other work disturbs what is measured" % load)
    limits = bench.limits()
    for (name, threads), figure in limits.figure.items():
        say("%-28s %.4g (%.4g to %.4g) at %d threads" % ("limit " + name, figure.median, figure.low, figure.high, threads))
    run = {"machine": machine.describe(ROOT), "isa": limits.isa, "peers": peer_lines(chosen) if bench.with_peers else [], "results": [],
           "failures": [], "skipped": [], "limits": {"%s/%d" % key: figure for key, figure in limits.figure.items()}, "agreement": [], "bits": []}
    run["command"], run["models"] = arguments.command, [workloads.FILES[name] for name in workloads.FILES if any(w.model == name for w in chosen)]
    for i, workload in enumerate(chosen):
        now = time.monotonic()
        bench.until = now + max(0.0, deadline - now) / (len(chosen) - i + CHECKS)
        measure_one(bench, workload, run)
    check_all(bench, chosen, run)
    run["seconds"] = time.monotonic() - began
    run["load"] = [load, machine.load()]
    return run


def prepare(chosen, arguments):
    """Everything that the workloads need; nothing is fetched or built that none of them asks for."""
    build(arguments.build)
    for name in sorted({workload.model for workload in chosen} & set(models.MODELS)):
        models.fetch(name)
    jobs = min(2, os.cpu_count() or 1)
    for isa in sorted({workload.isa for workload in chosen if "llama.cpp" in workload.peers and not arguments.no_peers}):
        peers.build(jobs, isa or "native")


def finish(run, arguments):
    """Keeps the figures beside the build, writes the report where a full run or --output says; the exit status."""
    from bench import report
    kept = arguments.build / "benchmarks.json"
    if not arguments.render:
        kept.write_text(json.dumps(run, indent=1) + "\n")
    full = not (arguments.only or arguments.quick or arguments.no_peers)
    output = arguments.output or (ROOT / "docs" if full or arguments.render else None)
    if output and run["results"]:
        report.write(run, output)
        say("wrote %s" % (output / "benchmarks.md"))
    wrong = ["%s: the engines do not agree" % one["title"] for one in run["agreement"] if not one["agrees"]]
    wrong += ["%s: the engines do not agree" % one["title"] for one in run["results"] if not one.get("agrees", True)]
    wrong += ["%s: bits differ" % one["title"] for one in run["bits"] if not one["equal"]]
    for text in wrong:
        say(text)
    goals = [goal["reached"] for one in run["results"] for goal in one["goals"]]
    say("%.1f minutes, %d results, %d of %d goals reached, %d skipped, %d failed" % (
        run["seconds"] / 60, len(run["results"]), sum(goals), len(goals), len(run["skipped"]), len(run["failures"])))
    return 1 if wrong or run["failures"] else 0


def parse():
    parser = argparse.ArgumentParser(description="Measure rung against its peers and against the limits of this machine.",
                                     epilog="example: bench.py --only smollm2-prompt gemma3-decode --quick")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="workloads with all parts of a NAME (see --list)")
    parser.add_argument("--quick", action="store_true", help="few measurements of each")
    parser.add_argument("--no-peers", action="store_true", help="rung alone")
    parser.add_argument("--pause", type=float, default=0, metavar="SECONDS", help="between measurements, where the machine has other work or heats up")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", metavar="DIR", help="default: build/release")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write benchmarks.md and benchmarks/ there, also for a part")
    parser.add_argument("--render", type=Path, metavar="FILE", help="no run: write the report of an earlier one again (benchmarks.json of its build)")
    arguments = parser.parse_args()
    shown = [word for i, word in enumerate(sys.argv[1:]) if word not in ("--build", "--output") and sys.argv[i] not in ("--build", "--output")]
    arguments.command = "make bench" if not shown else "scripts/bench.py " + " ".join(map(shlex.quote, shown))
    return arguments


def main():
    arguments = parse()
    from bench import workloads
    chosen = workloads.choose(arguments.only)
    if arguments.list:
        for workload in chosen:
            print("%-28s %s, %d threads%s" % (workload.name, workload.title, workload.threads,
                                              ", beside " + " and ".join(workload.peers) if workload.peers else ""))
        return 0
    if arguments.render:
        return finish(json.loads(arguments.render.read_text()), arguments)
    if not chosen:
        say("bench.py: no workload is called like that; --list shows them")
        return 2
    try:
        if any(workload.kind != "scaling" for workload in chosen):  # which needs nothing but Python
            venv.enter("bench")
        prepare(chosen, arguments)
        return finish(measure_all(chosen, arguments, time.monotonic()), arguments)
    except FetchError as error:
        say("bench.py: %s" % error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
