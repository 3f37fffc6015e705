# SPDX-License-Identifier: MIT
"""Whole processes measured: seconds to the first byte of output and to the end, most memory."""
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

TIMEOUT = 600  # seconds


class Finished(NamedTuple):
    output: bytes
    first: float   # seconds from the start to the first byte of standard output
    total: float
    peak: int      # bytes, the most that were resident


class EngineError(Exception):
    """An engine did not do what was asked; the text says what it printed."""


def run(command, text=b"", env=None, codes=(0,)):
    """Runs a command to its end with `text` as its input and returns its standard output."""
    done = subprocess.run([str(word) for word in command], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT,
                          env={**os.environ, **(env or {})})
    if done.returncode not in codes:
        raise EngineError("%s ended with %d:\n%s" % (" ".join(map(str, command)), done.returncode,
                                                     done.stderr.decode(errors="replace")[-2000:]))
    return done.stdout


def complaint(command):
    """What a command that fails says; "" where it does not fail."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          timeout=TIMEOUT)
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return "" if done.returncode == 0 else said[0] if said else "it ended with %d" % done.returncode


def status_bytes(name, pid="self"):
    """A line of /proc/PID/status like "VmHWM: 1234 kB"; 0 where there is none."""
    try:
        with open("/proc/%s/status" % pid, encoding="ascii", errors="replace") as lines:
            for line in lines:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0


def observe(command):
    """Runs a command with its times and its most resident memory (observe.py)."""
    helper = [sys.executable, "-I", "-S", str(Path(__file__).with_name("observe.py")), str(TIMEOUT), *map(str, command)]
    found, _, output = run(helper).partition(b"\n")
    found = json.loads(found)
    if found["code"] != 0:
        raise EngineError("%s ended with %d" % (" ".join(map(str, command)), found["code"]))
    return Finished(output, found["first"], found["total"], found["peak"])
