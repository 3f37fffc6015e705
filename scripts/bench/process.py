# SPDX-License-Identifier: MIT
"""Whole processes measured: seconds to the first byte of output and to the end, most memory."""
import os
import resource
import subprocess
import threading
import time
from typing import NamedTuple

TIMEOUT = 600


class Finished(NamedTuple):
    output: bytes
    first: float   # seconds from the start to the first byte of standard output
    total: float
    peak: int      # bytes of VmHWM


class EngineError(Exception):
    """An engine did not do what was asked; the text says what it printed."""


def surroundings(env):
    return {**os.environ, **env} if env else None


def run(command, text=b"", env=None, codes=(0,)):
    """Runs a command to its end with `text` as its input and returns its standard output."""
    done = subprocess.run([str(word) for word in command], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT,
                          env=surroundings(env))
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


def observe(command, watch_memory=False, env=None):
    """Runs a command with its times and its most resident memory."""
    command = [str(word) for word in command]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=surroundings(env))
    timer = threading.Timer(TIMEOUT, process.kill)
    timer.start()
    peak = [0]
    stop = threading.Event()

    def watch():
        while not stop.wait(0.002):
            peak[0] = max(peak[0], status_bytes("VmHWM", process.pid))

    watcher = threading.Thread(target=watch, daemon=True)
    if watch_memory:
        watcher.start()
    descriptor = process.stdout.fileno()
    pieces, first = [], None
    while True:
        piece = os.read(descriptor, 65536)
        if first is None:
            first = time.perf_counter() - start
        if not piece:
            break
        pieces.append(piece)
    _, status, usage = os.wait4(process.pid, 0)
    total = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    stop.set()
    timer.cancel()
    process.stdout.close()
    if watch_memory:
        watcher.join()
    if process.returncode != 0:
        raise EngineError("%s ended with %d" % (" ".join(command), process.returncode))
    # The kernel's figure at the end misses nothing, but begins with what this process had when it started the other.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if usage.ru_maxrss > own:
        peak[0] = max(peak[0], usage.ru_maxrss * 1024)
    return Finished(b"".join(pieces), first, total, peak[0])
