#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and runs everything that `make test` promises, quickest group first.

    run_tests.py                 all groups
    run_tests.py --only G[,G]    some of them (see --list)
    run_tests.py --long          the tests labelled long, on the release build

Each group has a time budget; what it took is printed beside it. Tests are counted by ctest, plus one for each static check,
generated file and fuzz target. The last line is "N passed, N failed" with ", N skipped" where some were; exit 1 if any
failed. Full output goes to build/test-logs/; a failure's is printed.
"""
import argparse
import os
import re
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
MODELS = ("smollm2", "gemma3")  # what tests/models reads; without them those tests are skipped
# Files made by a program of the build and committed: (program and arguments, file). The program prints the file.
GENERATED = [
    (["tools/gen_ops", "docs"], "docs/ops.md"),
    (["tools/gen_ops", "header"], "include/rung/ops.h"),
]
RESULT = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: (\S+) \.*\s*(\*\*\*)?(Passed|Failed|Skipped|Not Run|Timeout|Exception)", re.M)


class Counts:
    def __init__(self):
        self.passed, self.failed, self.skipped, self.names = 0, 0, 0, []

    def add(self, name, outcome):
        if outcome == "Passed":
            self.passed += 1
        elif outcome in ("Skipped", "Not Run"):
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


def build(counts, preset, folder, timeout, extra=()):
    """Configures and builds a preset; a failure counts as one failed test."""
    env = {}
    if not (ROOT / "build" / folder / "CMakeCache.txt").exists() and shutil.which("ninja"):
        env["CMAKE_GENERATOR"] = "Ninja"
    status, text = run(folder, ["cmake", "--preset", preset, *extra], timeout, env)
    if not status:
        status, text = run(folder, ["cmake", "--build", f"build/{folder}", "-j", JOBS], timeout)
    if status:
        tail(text)
        counts.add(f"build {folder}", "Failed")
    return status == 0


def ctest(counts, folder, timeout, arguments=(), env=None, tag=""):
    status, text = run(folder + tag, ["ctest", "--test-dir", f"build/{folder}", "--output-on-failure", "-j", JOBS,
                                      "--timeout", "600", *arguments], timeout, env)
    found = RESULT.findall(text)
    for name, _, outcome in found:
        counts.add(f"{folder}{tag}: {name}", outcome)
    failed = any(outcome not in ("Passed", "Skipped", "Not Run") for _, _, outcome in found)
    if failed:
        tail(text, 120)
    elif status and "No tests were found" not in text:
        tail(text)
        counts.add(f"ctest {folder}{tag}", "Failed")


def group_checks(counts, limit):
    for name in ("layers", "sizes", "style"):
        status, text = run("checks", [sys.executable, f"scripts/check_{name}.py"], limit)
        counts.add(f"check_{name}", "Failed" if status else "Passed")
        if status:
            tail(text)


def check_generated(counts, limit):
    for (program, *arguments), file in GENERATED:
        path = ROOT / "build" / "release" / program
        if not path.exists():
            continue
        output = subprocess.run([path, *arguments], cwd=ROOT, capture_output=True, timeout=limit)
        committed = ROOT / file
        same = output.returncode == 0 and committed.exists() and committed.read_bytes() == output.stdout
        counts.add(f"generated {file}", "Passed" if same else "Failed")
        if not same:
            print(f"{file} differs from what build/release/{program} {' '.join(arguments)} prints")


def fetch_models():
    status, text = run("models", [sys.executable, "scripts/models.py", "fetch", *MODELS], 600)
    if status:
        print("models could not be fetched; tests that read them are skipped")
        tail(text, 5)


def group_release(counts, limit):
    if build(counts, "ci", "release", limit):
        fetch_models()
        check_generated(counts, limit)
        ctest(counts, "release", limit, ["-LE", "long"])


def group_isa(counts, limit):
    if not (ROOT / "build/release/CMakeCache.txt").exists() and not build(counts, "ci", "release", limit):
        return
    for level in ("base", "avx2", "avx512"):
        ctest(counts, "release", limit, ["-L", "^(ops|golden|cts|models)$"], {"RUNG_MAX_ISA": level}, f"-{level}")


def group_asan(counts, limit):
    if build(counts, "asan", "asan", limit, ["-DRUNG_WERROR=ON"]):
        ctest(counts, "asan", limit, ["-LE", "long"])


def group_tsan(counts, limit):
    # What threads touch: base and the runtime; kernels see one slice each and are left to the other groups.
    if build(counts, "tsan", "tsan", limit):
        ctest(counts, "tsan", limit, ["-L", "^(unit|cts|models)$"])


def group_aarch64(counts, limit):
    if build(counts, "aarch64", "aarch64", limit):
        ctest(counts, "aarch64", limit, ["-L", "^(unit|ops|golden|cts|formats|models)$"])


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
    if not build(counts, "fuzz", "fuzz", limit, ["-DRUNG_WERROR=OFF"]):
        return
    targets = sorted(p for p in (ROOT / "build/fuzz/tests/fuzz").glob("fuzz_*") if os.access(p, os.X_OK) and p.is_file())
    with ThreadPoolExecutor(max_workers=JOBS) as pool:
        for name, (status, text) in pool.map(fuzz_one, targets):
            counts.add(name, "Failed" if status else "Passed")
            runs = re.search(r"number_of_executed_units: (\d+)", text)
            print(f"  {name}: {runs.group(1) if runs else '?'} inputs in {FUZZ_SECONDS} s")
            if status:
                tail(text)


def group_long(counts, limit):
    if build(counts, "ci", "release", limit):
        fetch_models()
        ctest(counts, "release", limit, ["-L", "^long$", "--timeout", "3600"], tag="-long")


# Name, function, budget in seconds on two cores. Their sum is the promise of 45 minutes.
GROUPS = [
    ("checks", group_checks, 10),
    ("release", group_release, 600),
    ("isa", group_isa, 300),
    ("asan", group_asan, 600),
    ("tsan", group_tsan, 420),
    ("aarch64", group_aarch64, 420),
    ("fuzz", group_fuzz, 330),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="comma-separated names of groups")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    groups = [("long", group_long, 5400)] if options.long else GROUPS
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
        counts, start = Counts(), time.monotonic()
        print(f"== {name}", flush=True)
        function(counts, 2 * budget)  # a command that takes twice the whole budget is stopped
        took = time.monotonic() - start
        print(f"== {name}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped; "
              f"{took:.0f} s of {budget} s{'  OVER BUDGET' if took > budget else ''}", flush=True)
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
