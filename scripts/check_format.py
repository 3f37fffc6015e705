#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""C files are as clang-format 14 leaves them (.clang-format): `make format` does it.

Other versions lay some lines out differently, so with another one, or none, the check is skipped (exit 77).
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = "14"
FOLDERS = ("src", "include", "tools", "tests", "bench", "examples")


def find():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path:
            said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {VERSION}\.", said):
                return path
    return None


def main():
    tool = find()
    if not tool:
        print(f"format: there is no clang-format {VERSION} here")
        return 77
    files = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".c", ".h"))
    output = subprocess.run([tool, "--dry-run", "-Werror", *files], cwd=ROOT, capture_output=True, text=True).stderr
    bad = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", output, re.M)))
    for path in bad:
        print("differs:", Path(path).relative_to(ROOT))
    print(f"format: {len(bad)} of {len(files)} files differ from clang-format {VERSION}; make format")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
