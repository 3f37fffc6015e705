#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one command and watches it from outside.

    observe.py SECONDS COMMAND ...        SECONDS: after that it is killed

Prints a line of JSON (seconds to the first byte and to the end, exit code, most resident memory in bytes), then what the command
printed. A program of its own because the kernel counts what the starting process had to the memory of the one it starts: this one
has little.
"""
import json
import os
import subprocess
import sys
import threading
import time


def main():
    start = time.perf_counter()
    process = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    timer = threading.Timer(float(sys.argv[1]), process.kill)
    timer.daemon = True
    timer.start()
    pieces, first = [], None
    while True:
        piece = os.read(process.stdout.fileno(), 65536)
        if first is None:
            first = time.perf_counter() - start
        if not piece:
            break
        pieces.append(piece)
    _, status, usage = os.wait4(process.pid, 0)
    total = time.perf_counter() - start
    found = {"first": first, "total": total, "code": os.waitstatus_to_exitcode(status), "peak": usage.ru_maxrss * 1024}
    sys.stdout.buffer.write(json.dumps(found).encode() + b"\n" + b"".join(pieces))


if __name__ == "__main__":
    main()
