#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_symbols.py BUILD [--write]

The shared library exports exactly the names of scripts/symbols.txt (--write makes that list), and each object of an
instruction set exports exactly one symbol, its table: a helper shared by accident could be linked in from the object with
the newest instructions and crash an older processor.
"""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts" / "symbols.txt"


def names(*arguments):
    output = subprocess.run(["nm", "--defined-only", "-P", *map(str, arguments)], check=True, capture_output=True, text=True)
    return sorted(line.split()[0] for line in output.stdout.splitlines() if line.strip())


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("-")]
    if len(arguments) != 1:
        print(__doc__)
        return 2
    build, problems = Path(arguments[0]), []
    exported = names("-D", build / "librung.so")
    if "--write" in sys.argv:
        LIST.write_text("".join(name + "\n" for name in exported))
        print(f"symbols: {len(exported)} written")
        return 0
    wanted = LIST.read_text().split() if LIST.exists() else []
    problems += [f"exported but not in scripts/symbols.txt: {name}" for name in exported if name not in set(wanted)]
    problems += [f"in scripts/symbols.txt but not exported: {name}" for name in wanted if name not in set(exported)]
    problems += [f"exported without our prefix: {name}" for name in exported if not name.startswith("rung_")]
    objects = sorted(build.glob("CMakeFiles/rung_objects.dir/src/backends/cpu/isa_*.o"))
    for path in objects:
        found = names("-g", path)
        if len(found) != 1:
            problems.append(f"{path.name} exports {len(found)} symbols instead of one: {' '.join(found)}")
    print("\n".join(problems), end="\n" if problems else "")
    if problems:
        print("If the change of the interface is meant: scripts/check_symbols.py BUILD --write")
    print(f"symbols: {len(exported)} exported, {len(objects)} objects of instruction sets, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
