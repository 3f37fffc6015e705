#!/usr/bin/env python3
"""Make or update the virtual environment that oracles, converters and benchmarks run in.

    venv.py            the oracles' packages (requirements.txt)
    venv.py --bench    also the peers that benchmarks compare with (requirements-bench.txt)

Prints the path of the environment's Python, and nothing else, on standard output. The environment lies at
${RUNG_CACHE:-${XDG_CACHE_HOME:-~/.cache}/rung}/venv; nothing is done when it already holds exactly what the lists ask for.
"""
import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from models import cache_root, locked, say

HERE = Path(__file__).resolve().parent
STAMP = ".rung-requirements"


def fingerprint(lists):
    """Changes when a list or the Python that runs it changes."""
    digest = hashlib.sha256(("%d.%d\n" % sys.version_info[:2]).encode())
    for path in lists:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def stamped(folder):
    try:
        return (folder / STAMP).read_text().split()
    except OSError:
        return []


def run(command, what):
    """Run a quiet command; on failure show its end and say what to do."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        say("venv.py: %s failed:\n    %s" % (what, "\n    ".join(line[:300] for line in lines[-8:])))
        if "ensurepip" in " ".join(lines):
            say("venv.py: install Python's venv module (Debian, Ubuntu: apt install python3-venv) and run this again.")
        sys.exit(1)


def make(lists):
    """Returns the path of the environment's Python after making sure that the lists are installed there."""
    if sys.version_info < (3, 10):
        say("venv.py: the oracles' packages need Python 3.10 or later; this is %d.%d." % sys.version_info[:2])
        sys.exit(1)
    folder = cache_root() / "venv"
    python = folder / "bin" / "python"
    with locked(folder.with_name(".venv.lock")):
        wanted = [fingerprint(lists[:count + 1]) for count in range(len(lists))]
        if python.exists() and wanted[-1] in stamped(folder):
            return python
        if not python.exists() or subprocess.run([str(python), "-c", "pass"]).returncode != 0:
            say("making %s" % folder)
            shutil.rmtree(folder, ignore_errors=True)
            run([sys.executable, "-I", "-m", "venv", str(folder)], "making the environment")
        say("installing %s" % ", ".join(path.name for path in lists))
        options = [part for path in lists for part in ("--requirement", str(path))]
        run([str(python), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:",
             *options], "pip install")
        (folder / STAMP).write_text("\n".join(wanted) + "\n")
    return python


def enter(group="oracle"):
    """Run the calling script again inside the environment, unless it already runs there."""
    lists = [HERE / "requirements.txt"] + ([HERE / "requirements-bench.txt"] if group == "bench" else [])
    python = make(lists)
    if Path(sys.prefix).resolve() != python.parent.parent.resolve():
        os.execv(str(python), [str(python), *sys.argv])


def main():
    parser = argparse.ArgumentParser(description="Make or update Rung's virtual environment and print its Python.",
                                     epilog="example: $(python3 scripts/venv.py) scripts/oracle/record.py smollm2")
    parser.add_argument("--bench", action="store_true", help="also install the peers that benchmarks compare with")
    bench = parser.parse_args().bench
    print(make([HERE / "requirements.txt"] + ([HERE / "requirements-bench.txt"] if bench else [])))


if __name__ == "__main__":
    main()
