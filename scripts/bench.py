#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure rung against its peers and against what the machine can do at most.

    bench.py                       everything; writes docs/benchmarks.md and docs/benchmarks/*.svg
    bench.py --only NAME ...       the workloads of these names, or that have all parts of one: gemma3, prompt-512, 1t
    bench.py --quick               few measurements of each, within four minutes
    bench.py --no-peers            rung alone
    bench.py --list                names of workloads

Builds what is missing, fetches the models, builds the peer, measures the limits of the machine, then runs each workload
with the engines in turn, and checks that they compute the same. Only a full run writes the report into docs/; --output
says where else. Exit 1 if an engine failed or the results do not agree.
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
MINUTES, QUICK_MINUTES = 18, 3.5  # after that every workload gets its fewest measurements
CHECK_POSITIONS, QUICK_POSITIONS = 256, 64
MOST_KL, LEAST_SAME = 0.05, 0.8  # engines that quantise activations differently are closer than that


def build(folder):
    """The programs of a release build; nothing is done where they are up to date."""
    if not (folder / "CMakeCache.txt").exists():
        subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=RelWithDebInfo"], check=True, stdout=subprocess.DEVNULL)
    jobs = str(os.cpu_count() or 2)
    done = subprocess.run(["cmake", "--build", str(folder), "-j", jobs, "--target", "rung_tool", "bench_limits", "bench_memory"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise FetchError("the build in %s failed:\n%s" % (folder, done.stdout[-2000:]))


def peer_version():
    """Like "llama.cpp 0.3.36 (llama-cpp-python sources)"."""
    source = models.MODELS["llama-cpp-src"].wheel
    return "llama.cpp as in %s %s" % (source.name, source.version)


def check_agreement(bench, wanted, rung):
    """Logits of one text from both engines, for each model that is measured."""
    from bench import process, workloads
    script, count = ROOT / "scripts" / "bench" / "agree.py", QUICK_POSITIONS if bench.quick else CHECK_POSITIONS
    out = []
    for model in wanted:
        found = json.loads(process.run([sys.executable, script, model, "--rung", rung, "--ids", bench.ids_file(model, count),
                                        "--threads", bench.threads]))
        found.update(model=model, title=workloads.MODELS[model], agrees=found["mean_kl"] <= MOST_KL and found["same_best"] >= LEAST_SAME)
        say("%-28s mean KL %.5f over %d positions, same best token %.1f%%: %s" % (
            model + "-agreement", found["mean_kl"], found["positions"], 100 * found["same_best"], "agree" if found["agrees"] else "DIFFER"))
        out.append(found)
    return out


def measure_all(chosen, arguments, began):
    """The whole run as one dictionary, which JSON can hold."""
    from bench import engines, machine, measure, report, workloads
    from bench.process import EngineError
    folder = arguments.build
    rung = engines.Rung(folder)
    both = [rung] + ([] if arguments.no_peers else [engines.LlamaCpp(peers.programs())])
    peer = both[1].name if len(both) > 1 else None
    wanted = sorted({workload.model for workload in chosen}, key=[w.model for w in chosen].index)
    paths = {model: models.require(model) for model in wanted}
    deadline = began + 60 * (QUICK_MINUTES if arguments.quick else MINUTES)
    bench = measure.Bench(folder, both, paths, arguments.quick, deadline, say)
    bench.pause = arguments.pause
    bench.threads = len(os.sched_getaffinity(0))
    load = machine.load()
    if load > 0.5:
        say("load average %.1f: other work disturbs what is measured" % load)
    bench.limits = machine.measure(bench.limits_program, bench.threads, quick=arguments.quick)
    for (name, threads), figure in bench.limits.figure.items():
        say("%-28s %.4g (%.4g to %.4g) at %d threads" % ("limit " + name, figure.median, figure.low, figure.high, threads))
    run = {"machine": machine.describe(ROOT), "isa": bench.limits.isa, "peer": peer, "peer_version": peer_version(), "results": [], "failures": [],
           "limits": {"%s/%d" % key: figure for key, figure in bench.limits.figure.items()}, "agreement": []}
    run["command"], run["models"] = arguments.command, [workloads.FILES[model] for model in wanted]
    if peer:
        run["agreement"] = check_agreement(bench, wanted, rung.program)
    for workload in chosen:
        try:
            result = measure.KINDS[workload.kind](bench, workload)
        except (EngineError, subprocess.SubprocessError) as error:
            say("%-28s FAILED: %s" % (workload.name, error))
            run["failures"].append({"name": workload.name, "error": str(error)})
            continue
        run["results"].append(result)
        print(report.line(result, peer), flush=True)
    run["seconds"] = time.monotonic() - began
    run["load"] = [load, machine.load()]
    return run


def prepare(arguments):
    build(arguments.build)
    for name in ("smollm2", "gemma3"):
        models.fetch(name)
    if not arguments.no_peers:
        peers.build(min(2, os.cpu_count() or 1))


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
    differ = [a["model"] for a in run["agreement"] if not a["agrees"]]
    for name in differ:
        say("%s: the engines do not agree" % name)
    say("%.1f minutes, %d workloads, %d failed" % (run["seconds"] / 60, len(run["results"]), len(run["failures"])))
    return 1 if differ or run["failures"] else 0


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
            print("%-28s %s, %d threads" % (workload.name, workload.title, workload.threads))
        return 0
    if arguments.render:
        return finish(json.loads(arguments.render.read_text()), arguments)
    if not chosen:
        say("bench.py: no workload is called like that; --list shows them")
        return 2
    try:
        venv.enter()
        prepare(arguments)
        return finish(measure_all(chosen, arguments, time.monotonic()), arguments)
    except FetchError as error:
        say("bench.py: %s" % error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
