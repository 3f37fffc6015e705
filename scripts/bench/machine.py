# SPDX-License-Identifier: MIT
"""This machine: what it is, and what it can do at most (bench/limits.c)."""
import json
import os
import platform
import subprocess
import time
from typing import NamedTuple


class Limit(NamedTuple):
    low: float
    median: float
    high: float


class Limits:
    """Figures of one run of bench/limits by (name, threads)."""

    def __init__(self, found):
        self.isa = found["isa"]
        self.threads = found["threads"]
        self.figure = {(row["name"], row["threads"]): Limit(row["low"], row["median"], row["high"])
                       for row in found["limits"]}

    @staticmethod
    def none():
        return Limits({"isa": "", "threads": 0, "limits": []})

    def get(self, name, threads):
        return self.figure.get((name, threads))

    def best(self, name, threads):
        """What was reached at most; None where the machine has no such thing."""
        found = self.get(name, threads)
        return found.high if found else None


def cores():
    return len(os.sched_getaffinity(0))


def measure(program, threads, only=None, quick=False, isa=""):
    """All limits, or those named with commas between them: some change from minute to minute and are taken right beside a
    measurement. isa: the cap of the instruction set."""
    command = [str(program), "--threads", str(threads)]
    command += ["--only", only] if only else []
    command += ["--quick"] if quick else []
    env = {**os.environ, "RUNG_MAX_ISA": isa} if isa else None
    return Limits(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=env).stdout))


def _first_line(path, key):
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.split(":")[0].strip() == key:
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def _command(*words):
    try:
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _caches():
    """Like "L1d 32 KiB, L2 1024 KiB, L3 32768 KiB" of the first core."""
    found = []
    base = "/sys/devices/system/cpu/cpu0/cache"
    for index in sorted(os.listdir(base)) if os.path.isdir(base) else []:
        try:
            level, kind, size = (open(os.path.join(base, index, name)).read().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            found.append("L%s %s" % (level + ("d" if kind == "Data" else ""), size.replace("K", " KiB")))
    return ", ".join(found)


def describe(root):
    """What a reader needs to know about where figures come from."""
    changed = _command("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")
    model = _first_line("/proc/cpuinfo", "model name") or platform.machine()
    family = _first_line("/proc/cpuinfo", "cpu family")
    if family:
        model += ", family %s model %s" % (family, _first_line("/proc/cpuinfo", "model"))
    return {
        "processor": model,
        "cores": cores(),
        "caches": _caches(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": "%s %s" % (platform.system(), platform.release().split("-")[0]),
        "virtual": "hypervisor" in _first_line("/proc/cpuinfo", "flags").split(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": _command("git", "-C", str(root), "rev-parse", "--short=12", "HEAD") + (" with changes" if changed else ""),
    }


def load():
    return os.getloadavg()[0]
