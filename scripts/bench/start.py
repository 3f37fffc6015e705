#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""From exec to the first token, in three ways: nothing stored, filling a store, and out of a store.

    scripts/bench/start.py TOOL MODEL [--repeat 9]

Runs are made in turn, files are in the page cache; medians and ranges of the whole process's time in milliseconds. For
folders of encoders the first vector is what ends a run. Nothing is asserted.
"""
import argparse
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path


def run(tool, model, store):
    if Path(model).is_dir():
        command = [tool, "embed", "-m", model, "-q"]
        text = b"The capital of France is\n"
    else:
        command = [tool, "generate", "-m", model, "-p", "The capital of France is", "-n", "1", "--temp", "0", "-q"]
        text = b""
    start = time.monotonic()
    out = subprocess.run(command + (["--store", store] if store else []), input=text, stdout=subprocess.PIPE, check=True)
    return (time.monotonic() - start) * 1e3, out.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("model")
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args()
    times = {"nothing stored": [], "filling a store": [], "out of a store": []}
    outputs = set()
    with tempfile.TemporaryDirectory() as folder:
        warm = folder + "/warm"
        run(options.tool, options.model, None)
        run(options.tool, options.model, warm)
        time.sleep(2.1)  # younger files are checked at every start
        run(options.tool, options.model, warm)
        for _ in range(options.repeat):
            shutil.rmtree(folder + "/cold", ignore_errors=True)
            for name, store in zip(times, (None, folder + "/cold", warm)):
                took, out = run(options.tool, options.model, store)
                times[name].append(took)
                outputs.add(out)
    if len(outputs) != 1:
        raise SystemExit("the outputs differ")
    for name, all_of in times.items():
        print(f"{name:16} {statistics.median(all_of):7.0f} ms  ({min(all_of):.0f}..{max(all_of):.0f})")


if __name__ == "__main__":
    main()
