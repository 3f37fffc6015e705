#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and runs everything that `make test` promises, quickest group first.

    run_tests.py                 all groups
    run_tests.py --only G[,G]    some of them (see --list)
    run_tests.py --long          the tests labelled long, on the release build

Each group has a time budget; what it took, and how much of it the processors worked, is printed beside it. Tests are
counted by ctest, plus one for each static check, model and fuzz target. The last line is "N passed, N failed" with
", N skipped" where some were; exit 1 if any failed. Full output goes to build/test-logs/; a failure's is printed.
RUNG_FUZZ_SECONDS (60) is the time of a fuzz target.
"""
import argparse
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"
JOBS = os.cpu_count() or 2
FUZZ_SECONDS = int(os.environ.get("RUNG_FUZZ_SECONDS", "60"))
# What tests/models and tests/cli read: one that cannot be had is a failure.
MODELS = ("smollm2", "gemma3", "minilm", "llama-cpp-src", "silero-vad", "magika", "magika-labels", "ppocr-det", "ppocr-rec",
          "kokoro", "kokoro-voice")
RESULT = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: (\S+) \.*[\w ]*?(?:\*\*\*)?(Passed|Failed|Skipped|Not Run|Timeout|Exception)", re.M)


OUTCOME = {0: "Passed", 77: "Skipped"}


class Counts:
    def __init__(self):
        self.passed, self.failed, self.skipped, self.names = 0, 0, 0, []

    def add(self, name, outcome):
        if outcome == "Passed":
            self.passed += 1
        elif outcome == "Skipped":
            self.skipped += 1
        else:
            self.failed += 1
            self.names.append(name)


def run(log, command, timeout, env=None):
    """Runs a command with its output in the log; (status, output). A time-out ends its whole process group, status 124."""
    with open(LOGS / f"{log}.log", "a+", encoding="utf-8", errors="replace") as file:
        file.seek(0, os.SEEK_END)
        start = file.tell()
        file.write(f"$ {' '.join(map(str, command))}\n")
        file.flush()
        process = subprocess.Popen(list(map(str, command)), cwd=ROOT, stdout=file, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, start_new_session=True)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = 124
        file.seek(start)
        return status, file.read()


def tail(text, lines=60):
    print("\n".join(text.rstrip().split("\n")[-lines:]), flush=True)


def build(counts, preset, folder, timeout, extra=(), targets=()):
    """Configures and builds a preset (all of it, or some targets); a failure counts as one failed test."""
    env = {}
    if not (ROOT / "build" / folder / "CMakeCache.txt").exists() and shutil.which("ninja"):
        env["CMAKE_GENERATOR"] = "Ninja"
    status, text = run(folder, ["cmake", "--preset", preset, *extra], timeout, env)
    if not status:
        only = ["--target", *targets] if targets else []
        status, text = run(folder, ["cmake", "--build", f"build/{folder}", "-j", JOBS, *only], timeout)
    if status:
        tail(text)
        counts.add(f"build {folder}", "Failed")
    return status == 0


def ctest(counts, folder, timeout, arguments=(), env=None, tag=""):
    status, text = run(folder + tag, ["ctest", "--test-dir", f"build/{folder}", "--output-on-failure", "-j", JOBS, *arguments],
                       timeout, env)
    found = RESULT.findall(text)
    for name, outcome in found:
        counts.add(f"{folder}{tag}: {name}", outcome)
    if any(outcome not in ("Passed", "Skipped") for _, outcome in found):
        tail(text, 120)
    elif status or not found:
        tail(text)
        counts.add(f"ctest {folder}{tag}", "Failed")


def group_checks(counts, limit):
    for name in ("layers", "sizes", "style", "format"):
        status, text = run("checks", [sys.executable, f"scripts/check_{name}.py"], limit)
        counts.add(f"check_{name}", OUTCOME.get(status, "Failed"))
        if status:
            tail(text)


def fetch_models(counts):
    for model in MODELS:
        status, text = run("models", [sys.executable, "scripts/models.py", "fetch", model], 900)
        counts.add(f"model {model}", "Failed" if status else "Passed")
        if status:
            print(f"the model {model} could not be fetched; the tests that read it need it")
            tail(text, 12)


def group_release(counts, limit):
    if build(counts, "ci", "release", limit):
        fetch_models(counts)
        ctest(counts, "release", limit, ["-LE", "^(long|install)$"])


def group_install(counts, limit):
    # What a user's project sees: tests/install and examples/ against an installation that was moved.
    if build(counts, "ci", "release", limit):
        ctest(counts, "release", limit, ["-L", "^install$"], tag="-install")


def group_isa(counts, limit):
    # The release group ran at the processor's best level. Real models are left to it: arithmetic is under test here.
    if build(counts, "ci", "release", limit):
        for level in ("base", "avx2", "avx512"):
            ctest(counts, "release", limit,
                  ["-L", "^(ops|golden|cts|models)$", "-LE", "^long$", "-E", "^test_cuda_compile$"],
                  {"RUNG_MAX_ISA": level, "RUNG_SLOW": "1"}, f"-{level}")


def group_asan(counts, limit):
    if build(counts, "asan", "asan", limit, ["-DRUNG_WERROR=ON"]):
        ctest(counts, "asan", limit, ["-LE", "long"])


def group_tsan(counts, limit):
    # What threads touch: base and the runtime; kernels see one slice each and are left to the other groups.
    if build(counts, "tsan", "tsan", limit):
        ctest(counts, "tsan", limit, ["-L", "^(unit|cts|models)$", "-LE", "^long$"])


def group_aarch64(counts, limit):
    if build(counts, "aarch64", "aarch64", limit):
        ctest(counts, "aarch64", limit, ["-L", "^(unit|ops|golden|cts|formats|models)$", "-LE", "^long$"])


def fuzz_one(path):
    """One target for its time; new inputs go to a folder of their own and are dropped."""
    corpus = ROOT / "tests" / "fuzz" / "corpus" / path.name
    artifacts = LOGS / f"{path.name}-"
    with tempfile.TemporaryDirectory() as fresh:
        command = [path, f"-max_total_time={FUZZ_SECONDS}", "-rss_limit_mb=3000", "-timeout=25", "-print_final_stats=1",
                   f"-artifact_prefix={artifacts}", fresh]
        if corpus.exists():
            command.append(corpus)
        return path.name, run(path.name, command, FUZZ_SECONDS + 120,
                              {"ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1"})


def group_fuzz(counts, limit):
    names = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("fuzz_*.c"))
    if not build(counts, "fuzz", "fuzz", limit, targets=names):
        return
    targets = [ROOT / "build/fuzz/tests/fuzz" / name for name in names]
    with ThreadPoolExecutor(max_workers=JOBS) as pool:
        for name, (status, text) in pool.map(fuzz_one, targets):
            counts.add(name, "Failed" if status else "Passed")
            runs = re.search(r"number_of_executed_units: (\d+)", text)
            print(f"  {name}: {runs.group(1) if runs else '?'} inputs in {FUZZ_SECONDS} s")
            if status:
                tail(text)


def group_long(counts, limit):
    if build(counts, "ci", "release", limit):
        fetch_models(counts)
        ctest(counts, "release", limit, ["-L", "^long$"], tag="-long")
        status, text = run("embeddings", [sys.executable, "scripts/oracle/bert.py", "minilm", "--rung", "build/release/rung", "--lines", "1000"], limit)
        counts.add("a thousand embeddings against the oracle", OUTCOME.get(status, "Failed"))
        tail(text, 1)


def group_coverage(counts, limit):
    status, text = run("coverage", [sys.executable, "scripts/fuzz_coverage.py"], limit)
    counts.add("fuzz coverage", OUTCOME.get(status, "Failed"))
    tail(text)


# Name, function, budget in seconds on two cores. Their sum is the promise of 50 minutes.
GROUPS = [
    ("checks", group_checks, 20),
    ("release", group_release, 600),
    ("install", group_install, 60),
    ("isa", group_isa, 240),
    ("asan", group_asan, 460),
    ("tsan", group_tsan, 400),
    ("aarch64", group_aarch64, 700),
    ("fuzz", group_fuzz, 420),
]
LONG = [("long", group_long, 5400), ("coverage", group_coverage, 600)]


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="comma-separated names of groups")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    groups = LONG if options.long else GROUPS
    if options.list:
        for name, _, budget in groups:
            print(f"{name}: budget {budget} s")
        return 0
    only = [name for name in options.only.split(",") if name]
    unknown = set(only) - {name for name, _, _ in groups}
    if unknown:
        parser.error(f"no group {', '.join(sorted(unknown))}; see --list")
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    total, began = Counts(), time.monotonic()
    for name, function, budget in groups:
        if only and name not in only:
            continue
        counts, start, used = Counts(), time.monotonic(), processor_seconds()
        print(f"== {name}", flush=True)
        function(counts, max(3 * budget, 900))  # a command that takes three times the whole budget is stopped
        took = time.monotonic() - start
        print(f"== {name}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped; "
              f"{took:.0f} s of {budget} s, {processor_seconds() - used:.0f} s of processor time"
              f"{'  OVER BUDGET' if took > budget else ''}", flush=True)
        total.passed += counts.passed
        total.failed += counts.failed
        total.skipped += counts.skipped
        total.names += counts.names
    for name in total.names:
        print("FAILED:", name)
    print(f"all groups: {time.monotonic() - began:.0f} s")
    print(f"{total.passed} passed, {total.failed} failed" + (f", {total.skipped} skipped" if total.skipped else ""))
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
